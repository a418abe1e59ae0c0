/* effects.c - keeps a run's write until it is answered, then writes the line. */
#include "observe/effects.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/tape.h"
#include "model/diff.h"
#include "model/object.h"
#include "model/time.h"
#include "client/request.h"
#include "client/web.h"
#include "observe/changed.h"
#include "run/run_impl.h"

struct kl_effects {
    kl_mutex mu;
    kl_tape *tape KL_GUARDED_BY(mu); /* NULL: no file */
    bool tell;
    kl_time second KL_GUARDED_BY(mu); /* when the present second began, which has `told` lines */
    unsigned told KL_GUARDED_BY(mu), untold KL_GUARDED_BY(mu);
};

typedef struct effect { /* a write under way */
    kl__op_copy *copy;
    const kl_value *before; /* NULL: there was none, or it is not known */
    bool known;
    bool elsewhere;
} effect;

static void effect_free(effect *x)
{
    if (!x)
        return;
    kl__op_copy_free(x->copy);
    kl_value_unref(x->before);
    kl_free(x);
}

static void look(kl_run *r, effect *x)
{
    const kl_op *op = &x->copy->op;
    kl_reader *rd = kl_run_reader(r);
    const char *name = kl_op_name(op);
    kl_err err = KL_ERR_INIT;
    const kl_resource *res = rd && op->kind && !x->elsewhere ? kl_reader_resource(rd, op->kind) : NULL;
    if (!res || !name)
        return;
    if (kl_reader_get(rd, op->kind,
            !res->namespaced ? NULL
                : op->ns     ? op->ns
                             : op->default_ns,
            name, &x->before, &err))
        kl_err_fini(&err);
    else
        x->known = true;
}

static bool reads_elsewhere(const kl_run *r, const kl_op *op)
{
    kl_op with = *op;
    with.http = kl_run_spec(r)->http;
    return kl_web_reads(&with);
}

static void asked(void *arg, kl_run *r, const kl_asked *a)
{
    (void)arg;
    if (!a->op || !(a->op->verb == KL_HTTP ? !reads_elsewhere(r, a->op) : kl_verb_is_write(a->op->verb)))
        return;
    effect *x = kl_new(effect);
    x->copy = kl__op_copy_new(a->op);
    x->elsewhere = a->elsewhere;
    look(r, x);
    effect_free(r->observed.effect);
    r->observed.effect = x;
}

/* --- the line ----------------------------------------------------------------------------- */

typedef struct changes {
    kl_builder *b;
    const kl_value *object;
} changes;

static void build_value(kl_builder *b, const char *key, const kl_value *v)
{
    kl_buf text = KL_BUF_INIT;
    if (!v)
        return;
    kl_diff_value(v, &text);
    kl_build_kstr(b, key, kl_buf_str(&text));
    kl_buf_fini(&text);
}

static void build_change(void *arg, const char *path, const kl_value *was, const kl_value *is)
{
    changes *c = arg;
    kl_build_object(c->b);
    kl_build_kstr(c->b, "path", path);
    if (kl_diff_is_secret(c->object, path)) {
        kl_build_key(c->b, "redacted");
        kl_build_bool(c->b, true);
    } else {
        build_value(c->b, "old", was);
        build_value(c->b, "new", is);
    }
    kl_build_end(c->b);
}

static bool is_the_object(const effect *x, const kl_value *body)
{
    const char *name = kl_op_name(&x->copy->op), *found = kl_object_name(body), *kind = kl_object_kind(body);
    return found && kind && strcmp(kind, "Status") && strcmp(kind, "Scale")
        && (!name || !strcmp(name, found));
}

/* The object as our write alone left it, a new reference. NULL: unknown, or the answer has no object. */
static const kl_value *ours(const effect *x, const kl_answered *a)
{
    bool compares = is_the_object(x, a->body) && (x->known || a->code == 201);
    return compares ? kl_changed(&x->copy->op, x->before, a->body) : NULL;
}

static void build_outcome(kl_builder *b, const effect *x, const kl_answered *a)
{
    bool object = is_the_object(x, a->body),
         gone = x->copy->op.verb == KL_DELETE && !(object && kl_object_deleting(a->body));
    kl_build_kstr(b, "before", kl_object_rv(x->before));
    if (object && !gone)
        kl_build_kstr(b, "after", kl_object_rv(a->body));
    if (gone) {
        kl_build_key(b, "gone");
        kl_build_bool(b, true);
    }
    const kl_value *now = gone ? NULL : ours(x, a);
    if (!now)
        return;
    changes c = {b, a->body};
    kl_build_key(b, "changes");
    kl_build_array(b);
    kl_diff_objects(x->before, now, build_change, &c);
    kl_build_end(b);
    kl_value_unref(now);
}

static void build_line(kl_builder *b, kl_run *r, const effect *x, const kl_answered *a)
{
    char at[KL_TIME_MAX];
    const kl_op *op = &x->copy->op;
    kl_time wall = kl_clock_wall(r->w->o.clock);
    const char *name = kl_op_name(op), *ns = op->ns ? op->ns : op->default_ns;
    if (a->body && is_the_object(x, a->body)) {
        name = kl_object_name(a->body);
        ns = kl_object_namespace(a->body);
    }
    kl_build_object(b);
    kl_build_kstr(b, "time", kl_time_format_micro(wall / KL_SECONDS(1), (int32_t)(wall % KL_SECONDS(1)), at));
    kl_build_kstr(b, "controller", r->w->o.name);
    kl_build_kstr(b, "key", r->key);
    kl_build_kstr(b, "reconcileID", kl_run_id(r));
    kl_build_kint(b, "generation", r->gen->logic->generation);
    bool web = op->verb == KL_HTTP;
    char *url = web ? kl_web_shown(op) : NULL;
    kl_build_kstr(b, "verb", web ? op->subresource : kl_verb_name(op->verb));
    kl_build_kstr(b, "kind", op->kind ? op->kind : op->resource ? op->resource->kind : NULL);
    kl_build_kstr(b, "namespace", web ? NULL : ns);
    kl_build_kstr(b, "name", web ? url : name);
    kl_build_kstr(b, "subresource", web ? NULL : op->subresource);
    kl_free(url);
    if (x->elsewhere || r->w->o.imagine) {
        kl_build_key(b, x->elsewhere ? "elsewhere" : "dry_run");
        kl_build_bool(b, true);
    }
    kl_build_kstr(b, "status", a->status ? kl_status_name(a->status) : "ok");
    kl_build_kint(b, "code", a->code);
    kl_build_key(b, "ms");
    kl_build_double(b, (double)(a->took / 1000) / 1000.0);
    if (a->status)
        kl_build_kstr(b, "error", a->err ? kl_err_message(a->err) : NULL);
    else
        build_outcome(b, x, a);
    kl_build_end(b);
}

/* Whether another line is allowed in this second; *untold: lines dropped since the last allowed one. */
static bool may_tell(kl_effects *e, kl_time now, unsigned *untold)
{
    kl_lock(&e->mu);
    if (now - e->second >= KL_SECONDS(1)) {
        e->second = now;
        e->told = 0;
    }
    bool room = e->told < KL_EFFECTS_TOLD;
    *untold = room ? e->untold : 0;
    e->told += room;
    e->untold = room ? 0 : e->untold + 1;
    kl_unlock(&e->mu);
    return room;
}

static void tell(kl_effects *e, kl_run *r, const effect *x, const kl_answered *a)
{
    const kl_op *op = &x->copy->op;
    unsigned untold = 0;
    bool object = is_the_object(x, a->body);
    if (op->verb == KL_HTTP || a->status || !a->code || !may_tell(e, kl_clock_now(r->w->o.clock), &untold))
        return;
    kl_buf changes = KL_BUF_INIT;
    const kl_value *now = op->verb == KL_DELETE ? NULL : ours(x, a);
    if (now)
        kl_diff_text(x->before, now, &changes);
    kl_value_unref(now);
    const char *name = object ? kl_object_name(a->body) : kl_op_name(op),
               *ns = object ? kl_object_namespace(a->body)
        : op->ns            ? op->ns
                            : op->default_ns;
    char *key = kl_key_join(ns, name ? name : ""), more[32] = "";
    if (untold)
        snprintf(more, sizeof more, " not_told=%u", untold);
    kl_info("wrote", "controller=%s key=%s verb=%s kind=%s object=%s%s%s%s%s%s", r->w->o.name, r->key,
        kl_verb_name(op->verb),
        op->kind           ? op->kind
            : op->resource ? op->resource->kind
                           : "?",
        key, op->subresource ? " subresource=" : "", op->subresource ? op->subresource : "",
        changes.len ? " changes=" : "", changes.len ? kl_log_quoted(kl_buf_str(&changes)) : "", more);
    kl_free(key);
    kl_buf_fini(&changes);
}

static void keep(kl_effects *e, kl_run *r, const effect *x, const kl_answered *a)
{
    kl_builder *b = kl_builder_new();
    build_line(b, r, x, a);
    const kl_value *line = kl_builder_done(b);
    char *text = kl_value_to_json(line), *whole = kl_sprintf("%s\n", text);
    kl_lock(&e->mu);
    if (kl_tape_full(e->tape))
        kl_tape_next(e->tape);
    kl_tape_add(e->tape, whole, strlen(whole));
    kl_unlock(&e->mu);
    kl_free(text);
    kl_free(whole);
    kl_value_unref(line);
}

static void answered(void *arg, kl_run *r, const kl_answered *a)
{
    kl_effects *e = arg;
    effect *x = r->observed.effect;
    if (!x)
        return;
    r->observed.effect = NULL;
    if (e->tape)
        keep(e, r, x, a);
    if (e->tell && kl_log_enabled(KL_LOG_INFO))
        tell(e, r, x, a);
    effect_free(x);
}

static void ended(void *arg, kl_run *r, const kl_ran *x)
{
    kl_effects *e = arg;
    (void)x;
    effect_free(r->observed.effect);
    r->observed.effect = NULL;
    kl_lock(&e->mu);
    if (e->tape)
        kl_tape_flush(e->tape);
    kl_unlock(&e->mu);
}

kl_status kl_effects_new(const char *path, size_t max, bool tell, kl_effects **out, kl_err *err)
{
    kl_tape *tape = NULL;
    kl_status st = path ? kl_tape_new(path, max ? max : KL_EFFECTS_MAX, "{\"time\":", &tape, err) : KL_OK;
    if (st)
        return st;
    kl_effects *e = kl_new(kl_effects);
    kl_mutex_init(&e->mu);
    e->tape = tape;
    e->tell = tell;
    *out = e;
    return KL_OK;
}

void kl_effects_free(kl_effects *e)
{
    if (!e)
        return;
    kl_tape_free(e->tape);
    kl_mutex_fini(&e->mu);
    kl_free(e);
}

kl_witness kl_effects_witness(kl_effects *e)
{
    return (kl_witness){.asked = asked, .answered = answered, .ended = ended, .arg = e};
}
