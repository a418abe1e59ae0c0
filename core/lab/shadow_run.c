/* shadow_run.c - records a live run, and replays its inputs for the candidate.
 *
 * The difficulty: the live run's writes return to the caches, so later reads see their results. So for every
 * object that the live run read or wrote, the candidate gets the state that the live run saw first (values
 * are immutable: a reference is enough); only other objects are read from the present caches. */
#include "lab/shadow_run.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "client/web.h"
#include "model/object.h"
#include "model/time.h"
#include "run/run_impl.h"
#include "run/shared.h"
#include "controller/view.h"

/* A larger run is not followed: its trace would take too much memory. */
#define SIGHTS_MAX 4096
#define FOUND_MAX 200000

/* --- calls -------------------------------------------------------------------------------- */

kl_shadow_call *kl_shadow_call_new(const kl_op *op, const kl_resource *r)
{
    kl_shadow_call *c = kl_new(kl_shadow_call);
    c->copy = kl__op_copy_new(op);
    c->writes = op->verb == KL_HTTP ? !kl_web_reads(op) : kl_verb_is_write(op->verb);
    c->copy->op.http = NULL; /* belongs to the program, which may end first */
    c->resource = r;
    c->ns = r && !r->namespaced ? NULL : c->copy->op.ns ? c->copy->op.ns : c->copy->op.default_ns;
    c->name = kl_strdup(kl_op_name(op));
    return c;
}

void kl_shadow_call_free(kl_shadow_call *c)
{
    if (!c)
        return;
    kl__op_copy_free(c->copy);
    kl_value_unref(c->body);
    kl_err_fini(&c->err);
    kl_free(c->name);
    kl_free(c);
}

static void calls_add(kl_shadow_calls *l, kl_shadow_call *c)
{
    if (!(l->n & (l->n - 1)))
        l->v = kl_realloc(l->v, (l->n ? 2 * l->n : 1) * sizeof *l->v);
    l->v[l->n++] = c;
}

static void calls_fini(kl_shadow_calls *l)
{
    for (size_t i = 0; i < l->n; i++)
        kl_shadow_call_free(l->v[i]);
    kl_free(l->v);
}

static char *address(const kl_op *op)
{
    char *url = kl_web_shown(op), *all = kl_sprintf("%s %s", op->subresource, url);
    kl_free(url);
    return all;
}

char *kl_shadow_object(const kl_shadow_call *c)
{
    if (c->copy->op.verb == KL_HTTP)
        return address(&c->copy->op);
    char *kind = c->resource ? kl_gvk_text(c->resource->group, c->resource->version, c->resource->kind)
                             : kl_strdup(c->copy->op.kind ? c->copy->op.kind : "?");
    const char *prefix = kl_value_str_at(c->copy->op.body, "metadata", "generateName", NULL);
    char *name = kl_op_name(&c->copy->op) ? kl_strdup(kl_op_name(&c->copy->op))
                                          : kl_sprintf("%s*", prefix ? prefix : "");
    char *all = kl_sprintf("%s %s%s%s", kind, c->ns ? c->ns : "", c->ns ? "/" : "", name);
    kl_free(kind);
    kl_free(name);
    return all;
}

/* --- what is alike ------------------------------------------------------------------------ */

#define TIME_SLACK KL_SECONDS(1) /* API times are cut to seconds */

static bool of_the_run(const kl_shadow_run *s, const kl_value *v)
{
    const char *text = kl_value_str(v);
    int64_t sec;
    int32_t nsec;
    if (!text || strlen(text) < 20 || text[4] != '-' || kl_time_parse(text, &sec, &nsec, NULL))
        return false;
    kl_time t = sec * KL_SECONDS(1) + nsec;
    return t >= s->wall - TIME_SLACK && t <= s->ended_wall + TIME_SLACK;
}

bool kl_shadow_alike(const kl_shadow_run *s, const kl_value *a, const kl_value *b)
{
    if (a == b || (a && b && kl_value_equal(a, b)))
        return true;
    if (!a || !b || kl_value_type(a) != kl_value_type(b))
        return false;
    if (kl_value_type(a) == KL_STRING)
        return of_the_run(s, a) && of_the_run(s, b);
    size_t n = kl_value_len(a);
    if ((kl_value_type(a) != KL_OBJECT && kl_value_type(a) != KL_ARRAY) || n != kl_value_len(b))
        return false;
    for (size_t i = 0; i < n; i++) {
        const char *key;
        const kl_value *x = kl_value_type(a) == KL_ARRAY ? kl_value_item(a, i)
                                                         : kl_value_member(a, i, &key, NULL);
        if (!kl_shadow_alike(s, x, kl_value_type(a) == KL_ARRAY ? kl_value_item(b, i) : kl_value_get(b, key)))
            return false;
    }
    return true;
}

static bool same(const char *a, const char *b) { return a == b || !strcmp(a ? a : "", b ? b : ""); }

static bool same_kind(const kl_shadow_call *a, const kl_shadow_call *b)
{
    if (a->resource && b->resource)
        return same(a->resource->group, b->resource->group) && same(a->resource->plural, b->resource->plural)
            && same(a->resource->version, b->resource->version);
    return same(a->copy->op.kind, b->copy->op.kind);
}

/* For a write, target and body count; headers do not, since they may contain the time. For a read, everything
 * counts. */
static bool same_request(const kl_shadow_run *s, const kl_shadow_call *a, const kl_shadow_call *b)
{
    const kl_op *x = &a->copy->op, *y = &b->copy->op;
    static const char *const bodies[] = {"json", "text", "base64", NULL};
    bool alike = x->verb == y->verb && same(x->subresource, y->subresource) && same(x->name, y->name);
    if (!a->writes || !b->writes)
        return alike && kl_shadow_alike(s, x->body, y->body);
    for (const char *const *k = bodies; alike && *k; k++)
        alike = kl_shadow_alike(s, kl_value_get(x->body, *k), kl_value_get(y->body, *k));
    return alike;
}

bool kl_shadow_same_op(const kl_shadow_run *s, const kl_shadow_call *a, const kl_shadow_call *b)
{
    const kl_op *x = &a->copy->op, *y = &b->copy->op;
    if (x->verb == KL_HTTP)
        return same_request(s, a, b);
    return x->verb == y->verb && same_kind(a, b) && same(a->ns, b->ns) && same(kl_op_name(x), kl_op_name(y))
        && same(x->subresource, y->subresource) && (x->verb != KL_PATCH || x->patch_type == y->patch_type)
        && same(x->field_manager, y->field_manager) && x->force == y->force
        && same(x->propagation, y->propagation) && same(x->uid, y->uid)
        && same(x->precondition_rv, y->precondition_rv) && x->grace_seconds == y->grace_seconds
        && same(x->labels, y->labels) && same(x->fields, y->fields) && x->limit == y->limit
        && same(x->continue_token, y->continue_token) && x->form == y->form
        && kl_shadow_alike(s, x->body, y->body);
}

/* --- recording ---------------------------------------------------------------------------- */

kl_shadow_run *kl_shadow_run_new(kl_run *r, void *owner)
{
    kl_shadow_run *s = kl_new(kl_shadow_run);
    s->owner = owner;
    s->key = kl_strdup(r->key);
    s->object = kl_value_ref(r->object);
    s->attempt = r->attempt;
    s->memo = kl_run_memo(r);
    s->cause = kl_cause_of((kl_why)r->item.cause.why, kl_cause_object(&r->item.cause));
    s->wall = kl_clock_wall(r->w->o.clock);
    kl_mutex_init(&s->mu);
    return s;
}

void kl_shadow_run_free(kl_shadow_run *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->n_sights; i++) {
        kl_free(s->sights[i].ns);
        kl_free(s->sights[i].name);
        kl_free(s->sights[i].question);
        kl_objects_fini(&s->sights[i].found);
    }
    kl_free(s->sights);
    calls_fini(&s->live);
    calls_fini(&s->own);
    kl_map_free(s->strayed, NULL);
    kl_cause_forget(s->cause.what);
    kl_value_unref(s->object);
    kl_value_unref(s->memo);
    kl_free(s->live_end.message);
    kl_mutex_fini(&s->mu);
    kl_free(s->key);
    kl_free(s);
}

static kl_sight *sight(kl_shadow_run *s, kl_sight_kind what, const kl_resource *r)
{
    if (s->n_sights == SIGHTS_MAX) {
        s->unfit = "it read or asked too much";
        return NULL;
    }
    if (!(s->n_sights & (s->n_sights - 1)))
        s->sights = kl_realloc(s->sights, (s->n_sights ? 2 * s->n_sights : 1) * sizeof *s->sights);
    kl_sight *x = &s->sights[s->n_sights++];
    *x = (kl_sight){.what = what, .resource = r};
    return x;
}

static void text_of(kl_buf *b, const char *s)
{
    kl_buf_printf(b, "%zu:%s ", s ? strlen(s) + 1 : 0, s ? s : "");
}

/* A list's query as a text, for comparison. */
static char *question_of(const char *kind, const kl_read_query *q)
{
    kl_buf b = KL_BUF_INIT;
    text_of(&b, kind);
    text_of(&b, q->ns);
    text_of(&b, q->labels);
    text_of(&b, q->fields);
    text_of(&b, q->index);
    text_of(&b, q->value);
    kl_buf_printf(&b, "%zu", q->limit);
    for (size_t i = 0; i < q->n_terms; i++) {
        kl_buf_printf(&b, " %d ", (int)q->terms[i].op);
        text_of(&b, q->terms[i].index);
        for (const char *const *v = q->terms[i].values; v && *v; v++)
            text_of(&b, *v);
    }
    return kl_buf_take(&b);
}

static void keep(kl_sight *x, const kl_value *const *v, size_t n)
{
    x->found = (kl_objects){n, kl_zalloc_array(sizeof *x->found.v, n + 1)};
    for (size_t i = 0; i < n; i++)
        x->found.v[i] = kl_value_ref(v[i]);
}

void kl_shadow_run_saw(kl_shadow_run *s, kl_run *r, const kl_saw *x)
{
    const kl_resource *res = kl_reader_resource(kl_run_reader(r), x->kind);
    if (s->unfit || !res)
        return;
    if (x->n > FOUND_MAX - s->n_found) {
        s->unfit = "it listed too much";
        return;
    }
    s->n_found += x->n;
    kl_sight *g = sight(s, x->name ? KL_SIGHT_GET : KL_SIGHT_LIST, res);
    if (!g)
        return;
    if (x->name) {
        g->ns = res->namespaced ? kl_strdup(x->ns) : NULL;
        g->name = kl_strdup(x->name);
    } else {
        g->question = question_of(x->kind, x->query);
    }
    keep(g, x->found, x->n);
}

static const kl_resource *resource_of(kl_run *r, const kl_op *op)
{
    if (op->resource)
        return op->resource;
    kl_reader *rd = r->gen->logic->reader;
    const kl_resource *known = rd ? kl_reader_resource(rd, op->kind) : NULL;
    return known || !r->w->o.resource ? known : r->w->o.resource(r->w->o.arg, op->kind);
}

/* Keeps the cached state of an object that is about to be written, before the write returns to the cache. */
static void see_base(kl_shadow_run *s, kl_run *r, const kl_shadow_call *c)
{
    const kl_value *o = NULL;
    kl_err err = KL_ERR_INIT;
    kl_reader *rd = kl_run_reader(r);
    if (!c->name || !c->copy->op.kind || !rd || !kl_reader_resource(rd, c->copy->op.kind))
        return;
    if (kl_reader_get(rd, c->copy->op.kind, c->ns, c->name, &o, &err)) {
        kl_err_fini(&err);
        return;
    }
    kl_sight *x = sight(s, KL_SIGHT_GET, c->resource);
    if (x) {
        x->ns = kl_strdup(c->ns);
        x->name = kl_strdup(c->name);
        keep(x, &o, o != NULL);
    }
    kl_value_unref(o);
}

void kl_shadow_run_asked(kl_shadow_run *s, kl_run *r, const kl_asked *x)
{
    if (!x->op || s->unfit)
        return;
    if (x->elsewhere) {
        s->unfit = "it asked another cluster";
        return;
    }
    kl_shadow_call *c = kl_shadow_call_new(x->op, resource_of(r, x->op));
    if (kl_verb_is_write(x->op->verb))
        see_base(s, r, c);
    calls_add(&s->live, c);
}

void kl_shadow_run_answered(kl_shadow_run *s, kl_run *r, const kl_answered *x)
{
    kl_shadow_call *c = s->live.n ? s->live.v[s->live.n - 1] : NULL;
    if (!c || c->answered || s->unfit) /* the answer to a sleep or a discovery */
        return;
    c->answered = true;
    c->status = x->status;
    c->code = x->code;
    c->body = kl_value_ref(x->body);
    if (x->err)
        kl_err_copy(&c->err, x->err);
    if (!c->resource) /* the kind was resolved meanwhile */
        c->resource = resource_of(r, &c->copy->op);
    if (c->resource && !c->resource->namespaced)
        c->ns = NULL;
    if (!c->name)
        c->name = kl_strdup(kl_object_name(x->body));
    kl_sight *g = sight(s, KL_SIGHT_CALL, c->resource);
    if (g)
        g->call = s->live.n - 1;
}

void kl_shadow_run_ended(kl_shadow_run *s, kl_run *r)
{
    s->ended_wall = kl_clock_wall(r->w->o.clock);
    s->live_end = (kl_ending){r->outcome.kind, r->outcome.after, kl_strdup(r->outcome.message)};
}

/* --- the world as it was ------------------------------------------------------------------ */

static void show_objects(kl_overlay *o, const kl_resource *r, const kl_objects *found)
{
    for (size_t i = 0; i < found->len; i++)
        (void)kl_overlay_show(o, r, r->namespaced ? kl_object_namespace(found->v[i]) : NULL,
            kl_object_name(found->v[i]), found->v[i]);
}

static bool is_object(const kl_shadow_call *c)
{
    const char *kind = kl_object_kind(c->body);
    return kind && c->resource && !strcmp(kind, c->resource->kind) && kl_object_name(c->body);
}

/* Shows the state of an object that only an answer tells. After a create it is none; after another write, the
 * result is the best approximation. */
static void show_call(kl_overlay *o, const kl_shadow_call *c)
{
    const kl_op *op = &c->copy->op;
    if (!c->resource || !c->name || op->form != KL_AS_OBJECT || op->subresource)
        return;
    bool write = kl_verb_is_write(op->verb);
    if (c->status == KL_ENOTFOUND && op->verb != KL_CREATE)
        (void)kl_overlay_show(o, c->resource, c->ns, c->name, NULL);
    else if (!c->status && write && c->code == 201)
        (void)kl_overlay_show(o, c->resource, c->ns, c->name, NULL);
    else if (!c->status && (write || op->verb == KL_GET) && is_object(c))
        (void)kl_overlay_show(o, c->resource, c->ns, c->name, c->body);
}

void kl_shadow_run_show(const kl_shadow_run *s, const kl_resource *own, kl_overlay *o)
{
    if (own)
        (void)kl_overlay_show(o, own, own->namespaced ? kl_object_namespace(s->object) : NULL,
            kl_object_name(s->object), s->object);
    for (size_t i = 0; i < s->n_sights; i++) {
        const kl_sight *x = &s->sights[i];
        if (x->what == KL_SIGHT_GET)
            (void)kl_overlay_show(o, x->resource, x->ns, x->name, x->found.len ? x->found.v[0] : NULL);
        else if (x->what == KL_SIGHT_LIST)
            show_objects(o, x->resource, &x->found);
        else
            show_call(o, s->live.v[x->call]);
    }
}

/* --- answers of the live run -------------------------------------------------------------- */

static bool is_plain_get(const kl_op *op)
{
    return op->verb == KL_GET && !op->subresource && op->form == KL_AS_OBJECT;
}

static bool keeps_whole(kl_run *r, const kl_op *op)
{
    const kl_controller_spec *s = r->gen->logic->spec;
    return !op->kind
        || (!kl_controller_spec_metadata(s, op->kind) && !kl_controller_spec_fields(s, op->kind));
}

static void answer(const kl_shadow_call *c, kl_overlay *o, kl_recalled *out)
{
    *out = (kl_recalled){.status = c->status, .code = c->code};
    if (c->status)
        kl_err_copy(&out->err, &c->err);
    if (!c->status && c->copy->op.verb == KL_LIST && c->resource && c->copy->op.form == KL_AS_OBJECT)
        out->body = kl_view_answer(o, c->resource, c->copy->op.ns, c->copy->op.labels, c->body);
    else
        out->body = kl_value_ref(c->body);
}

static bool strayed(kl_shadow_run *s, const kl_shadow_call *c)
{
    char *object = kl_shadow_object(c);
    bool yes = s->strayed && kl_map_has(s->strayed, object);
    kl_free(object);
    return yes;
}

static void stray(kl_shadow_run *s, const kl_shadow_call *c)
{
    char *object = kl_shadow_object(c);
    if (!s->strayed)
        s->strayed = kl_map_new();
    kl_map_set(s->strayed, object, s);
    kl_free(object);
}

static void add_own(kl_shadow_run *s, kl_shadow_call *c)
{
    kl_lock(&s->mu);
    calls_add(&s->own, c);
    kl_unlock(&s->mu);
}

/* The answered live request that is equal: the first unused one, otherwise the last. A write is used only
 * once. */
static kl_shadow_call *find(kl_shadow_run *s, const kl_shadow_call *wanted)
{
    bool write = wanted->writes;
    kl_shadow_call *found = NULL;
    for (size_t i = 0; i < s->live.n; i++) {
        kl_shadow_call *c = s->live.v[i];
        if (!c->answered || (c->used && write) || !kl_shadow_same_op(s, c, wanted))
            continue;
        found = c;
        if (!c->used) /* a repeated request may have had another answer */
            break;
    }
    return found;
}

bool kl_shadow_run_recall(kl_shadow_run *s, kl_run *r, const kl_op *op, kl_recalled *out)
{
    kl_shadow_call *own = kl_shadow_call_new(op, resource_of(r, op)), *c = NULL;
    bool write = own->writes;
    const kl_value *known = NULL;
    bool shown = is_plain_get(op) && keeps_whole(r, op) && own->resource && own->name
        && kl_overlay_get(kl_run_overlay(r), own->resource, own->ns, own->name, &known);
    kl_value_unref(known);
    if (!shown && !(write && strayed(s, own)))
        c = find(s, own);
    if (c) {
        c->used = true;
        answer(c, kl_run_overlay(r), out);
    } else if (write) {
        stray(s, own);
    }
    if (c && write) {
        own->status = c->status;
        own->answered = true;
        own->body = kl_value_ref(c->body);
        add_own(s, own);
    } else {
        kl_shadow_call_free(own);
    }
    return c;
}

bool kl_shadow_run_recall_list(kl_shadow_run *s, const char *kind, const kl_read_query *q, kl_objects *out)
{
    char *question = question_of(kind, q);
    const kl_sight *x = NULL;
    for (size_t i = 0; i < s->n_sights && !x; i++)
        if (s->sights[i].what == KL_SIGHT_LIST && !strcmp(s->sights[i].question, question))
            x = &s->sights[i];
    kl_free(question);
    if (!x)
        return false;
    *out = (kl_objects){x->found.len, kl_zalloc_array(sizeof *out->v, x->found.len + 1)};
    for (size_t i = 0; i < x->found.len; i++)
        out->v[i] = kl_value_ref(x->found.v[i]);
    return true;
}

void kl_shadow_run_wrote(kl_shadow_run *s, const kl_imagined *x)
{
    kl_shadow_call *c = kl_shadow_call_new(x->op, x->resource);
    c->status = x->status;
    c->answered = true;
    c->body = kl_value_ref(x->was); /* the object's original state, in case the live run did not read it */
    add_own(s, c);
}
