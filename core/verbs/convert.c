/* convert.c - objects into the stored version and out of it: renamed where that is enough, else converted. */
#include "verbs/convert.h"

#include "base/mem.h"
#include "model/object.h"
#include "model/resource.h"
#include "schema/edit.h"
#include "schema/normalize.h"
#include "verbs/first.h"
#include "verbs/lifecycle.h"
#include "show/render.h"

kl_status kl__see_as(
    const kl__call *c, const kl__kind *k, const kl_value *o, const kl_value **out, kl_err *err)
{
    if (!k->conversion) {
        *out = kl_render_version(k, o);
        return KL_OK;
    }
    return kl_conversions_get(c->conversions, k, o, out, err);
}

kl_status kl__see(const kl__call *c, const kl_value *stored, const kl_value **out, kl_err *err)
{
    return kl__see_as(c, c->kind, stored, out, err);
}

kl_status kl__verb_see(const kl__call *c, const kl_value **out, kl_err *err)
{
    const kl_value *stored;
    kl_status st = kl__verb_get(c, &stored, err);
    return st ? st : kl__see(c, stored, out, err);
}

kl_status kl__see_all(const kl__call *c, kl__picture *p, kl_err *err)
{
    kl_err later = KL_ERR_INIT;
    kl_status st = KL_OK;
    for (size_t i = 0; c->kind->conversion && i < p->len; i++) {
        const kl_value *seen;
        kl_status one = kl__see(c, p->objects[i], &seen, st ? &later : err);
        if (!one)
            kl__replace(&p->objects[i], seen);
        else if (!st || st == KL_EAGAIN) /* all that are not known go with one call */
            st = one;
        if ((one && one != KL_EAGAIN) || kl_conversions_full(c->conversions))
            break;
    }
    kl_err_fini(&later);
    return st;
}

void kl__conversion_send(kl__world *w, kl_conversion_call *call, kl_server_webhook_done *done, void *arg)
{
    w->webhook(w->webhook_arg,
        &(kl_server_webhook){.url = call->url,
            .ca = call->ca,
            .body = kl_buf_str(&call->body),
            .len = call->body.len,
            .timeout = call->timeout},
        done, arg);
    kl_conversion_call_fini(call);
}

/* ------------------------------------------------------------------ writing */

/* Converts to the stored version. An object stays unchanged if no webhook can be called, as in an etcd with
 * several versions. */
static kl_status store_as(const kl__call *c, const kl_value *o, const kl_value **out, kl_err *err)
{
    const kl__kind *k = c->kind, *stored = kl__kinds_get(c->w->kinds, k->group, k->storage, k->plural);
    if (!c->conversions || stored == k) {
        *out = kl_value_ref(o);
        return KL_OK;
    }
    return stored ? kl__see_as(c, stored, o, out, err)
                  : kl_conversions_stored(c->conversions, k, o, out, err);
}

kl_status kl__write_begin(const kl__call *c, const kl_value *o, kl__written *out, kl_err *err)
{
    *out = (kl__written){.why = KL_ERR_INIT};
    if (!c->kind->conversion) {
        out->stored = kl_render_stored(c->kind, kl_value_ref(o));
        return KL_OK;
    }
    kl_status st = store_as(c, o, &out->stored, err);
    if (!st)
        out->seen_status = kl__see(c, out->stored, &out->seen, &out->why);
    if (!st && out->seen_status == KL_EAGAIN)
        st = kl_fail(err, KL_EAGAIN, "%s", kl_err_message(&out->why));
    if (st)
        kl__write_drop(out);
    return st;
}

void kl__write_drop(kl__written *w)
{
    kl_value_unref(w->stored);
    kl_value_unref(w->seen);
    kl_err_fini(&w->why);
    *w = (kl__written){.why = KL_ERR_INIT};
}

/* The writer's view has the resource version of the stored object. */
static kl_status tell(kl__written *w, const kl_value *now, const kl_value **out, kl_err *err)
{
    if (w->seen_status) {
        if (err)
            kl_err_move(err, &w->why);
        return w->seen_status;
    }
    if (!w->seen)
        *out = kl_value_ref(now);
    else {
        *out = kl_value_ref(w->seen);
        KL_EDIT(out, kl_value_ref(kl_value_at(now, "metadata", "resourceVersion", NULL)), "metadata",
            "resourceVersion");
    }
    return KL_OK;
}

kl_status kl__write_end(
    const kl__call *c, kl__written *w, const char *key, bool remove, const kl_value **out, kl_err *err)
{
    const kl_value *now = NULL;
    if (c->dry_run)
        now = kl_value_ref(w->stored);
    else if (remove) {
        now = kl__store_remove(c->w->store, c->kind->bucket, key, w->stored);
        kl__after_remove(c->w, c->kind, now);
    } else {
        const kl__entry *e = kl__bucket_get(c->kind->bucket, key);
        kl__first_addresses(c->w, c->kind, e ? e->object : NULL, w->stored);
        now = kl_value_ref(kl__store_put(c->w->store, c->kind->bucket, key, kl_value_ref(w->stored)));
        kl__after_put(c->w, c->kind, now);
    }
    kl_status st = tell(w, now, out, err);
    kl_value_unref(now);
    kl__write_drop(w);
    return st;
}

kl__kind *kl__kind_of_stored(const kl__world *w, kl__kind *k, const kl_value *stored)
{
    char *group = NULL, *version = NULL;
    if (!k->conversion || !kl_object_api_version(stored))
        return k;
    kl_api_version_split(kl_object_api_version(stored), &group, &version);
    kl__kind *is = kl__kinds_get(w->kinds, group, version, k->plural);
    kl_free(group);
    kl_free(version);
    return is ? is : k;
}
