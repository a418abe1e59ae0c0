/* elide_run.c - a run's requests before the door: writes that would change nothing are answered from the
 * cache, and the record gets the others. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "run/remote.h"
#include "run/run_impl.h"

/* A running request whose answer goes to the record first. */
typedef struct heard {
    kl_elide *e;
    kl_elide_write *write;  /* NULL: the request reads */
    char *kind, *ns, *name; /* of a read */
    kl_reply_fn *done;
    void *arg;
} heard;

static void on_answer(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    heard *h = arg;
    if (h->write)
        kl_elide_end(h->write, st, body);
    else if (!st)
        kl_elide_saw(h->e, &(kl_op){.kind = h->kind, .name = h->name}, h->ns, body);
    h->done(h->arg, st, code, body, err);
    kl_free(h->kind);
    kl_free(h->ns);
    kl_free(h->name);
    kl_free(h);
}

static const kl_resource *resource_of(kl_run *r, const char *kind)
{
    const kl_resource *known = kl_reader_resource(r->gen->logic->reader, kind);
    return known || !r->w->o.resource ? known : r->w->o.resource(r->w->o.arg, kind);
}

static const char *namespace_of(const kl_op *op, const kl_resource *res)
{
    return res && !res->namespaced ? NULL : op->ns ? op->ns : op->default_ns;
}

/* Whether the cache has complete objects of a declared kind. */
static bool is_whole(const kl_controller_spec *s, const char *kind)
{
    for (char **k = s->metadata_only; k && *k; k++)
        if (!strcmp(*k, kind))
            return false;
    return !kl_controller_spec_fields(s, kind);
}

/* The object in the cache, a new reference; NULL also when the controller does not keep its kind. */
static const kl_value *cached(kl_run *r, const char *kind, const char *ns, const char *name)
{
    const kl_value *o = NULL;
    kl_err err = KL_ERR_INIT;
    if (!kl_reader_resource(r->gen->logic->reader, kind)
        || kl_reader_get(r->gen->logic->reader, kind, ns, name, &o, &err))
        kl_err_fini(&err);
    return o;
}

/* The same op, with the kind's full name. */
static kl_op named(const kl_op *op, const kl_resource *res)
{
    kl_op n = *op;
    if (res)
        n.kind = res->kind;
    return n;
}

uint64_t kl__run_submit(kl_run *r, const kl_op *op, kl_reply_fn *done, void *arg)
{
    kl_door *door = r->w->o.door;
    kl_elide *e = r->w->o.elide;
    bool write = kl_verb_is_write(op->verb);
    if (!e || !op->kind)
        return write ? kl_door_write(door, r->w->o.name, op, done, arg)
                     : kl_door_read(door, r->w->o.name, op, done, arg);
    const kl_resource *res = resource_of(r, op->kind);
    const char *ns = namespace_of(op, res);
    kl_op n = named(op, res);
    if (write && op->name
        && (is_whole(r->gen->logic->spec, op->kind) || (op->unread && op->verb == KL_APPLY))) {
        const kl_value *o = cached(r, op->kind, ns, op->name);
        bool same = o && kl_elide_proves(e, &n, ns, o);
        if (same) {
            if (r->w->o.metrics)
                kl_metrics_elided(r->w->o.metrics);
            done(arg, KL_OK, 0, o, NULL);
        }
        kl_value_unref(o);
        if (same)
            return 0;
    }
    heard *h = kl_new(heard);
    *h = (heard){.e = e, .done = done, .arg = arg};
    if (write) {
        h->write = kl_elide_begin(e, &n, ns);
        return kl_door_write(door, r->w->o.name, op, on_answer, h);
    }
    h->kind = kl_strdup(n.kind);
    h->ns = kl_strdup(ns);
    h->name = kl_strdup(op->name);
    return kl_door_read(door, r->w->o.name, op, on_answer, h);
}

static const kl_value *believed(kl_run *r, const char *kind, const char *ns, const char *name)
{
    if (r->w->o.believed)
        return r->w->o.believed(r->w->o.arg, r, kind, ns, name);
    const kl_resource *res = kl_reader_resource(r->gen->logic->reader, kind);
    if (!r->w->o.elide || !res || !is_whole(r->gen->logic->spec, kind))
        return NULL;
    ns = res->namespaced ? (ns ? ns : r->ns) : NULL;
    const kl_value *o = cached(r, kind, ns, name);
    if (o && kl_elide_fresh(r->w->o.elide, res->kind, ns, name, o))
        return o;
    kl_value_unref(o);
    return NULL;
}

const kl_value *kl_run_believed(kl_run *r, const char *kind, const char *ns, const char *name)
{
    const kl_value *o = believed(r, kind, ns, name);
    kl__tell_believed(r, &(kl_saw){.kind = kind, .ns = ns, .name = name, .found = &o, .n = o != NULL});
    return o;
}

void kl_run_elided(kl_run *r)
{
    if (r->w->o.remote)
        r->w->o.remote->elided(r);
    if (r->w->o.metrics)
        kl_metrics_elided(r->w->o.metrics);
}
