/* replay_run.c - the inputs of a replayed run: those of the recorded run for equal requests, and otherwise
 * derived ones.
 *
 * A read, a call, a sleep is matched with the next one of the recorded run that asks the same. So an
 * unchanged script gets the same inputs, in any order; further requests are answered from the recording's
 * state, or from its own writes to it. */
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/selector.h"
#include "client/web.h"
#include "lab/replay_impl.h"

/* A run with this many more requests and sleeps than the recorded one is stopped: it may never end. */
#define MORE_QUESTIONS 1000

static bool same_text(const char *a, const char *b)
{
    return !a || !b ? (!a || !*a) && (!b || !*b) : !strcmp(a, b);
}

/* --- reads -------------------------------------------------------------------------------- */

/* The next equal read, from *at on and then from the start. NULL: there is none. */
static const kl_past_saw *find_saw(const kl_past_saws *s, size_t *at, const kl_past_saw *like)
{
    for (size_t i = 0; i < s->n; i++) {
        const kl_past_saw *x = &s->v[(*at + i) % s->n];
        if (!strcmp(x->kind, like->kind) && same_text(x->ns, like->ns) && same_text(x->name, like->name)
            && same_text(x->query, like->query)) {
            *at = (*at + i + 1) % s->n;
            return x;
        }
    }
    return NULL;
}

bool kl__told_get(void *engine, const char *kind, const char *ns, const char *name, const kl_value **out)
{
    kl__live *l = ((kl__engine *)engine)->now;
    const kl_past_saw *x = l
        ? find_saw(&l->past->gets, &l->gets, &(kl_past_saw){.kind = kind, .ns = ns, .name = name})
        : NULL;
    if (!x)
        return false;
    *out = kl_value_ref(x->found);
    return true;
}

bool kl__told_list(void *engine, const char *kind, const kl_read_query *q, kl_objects *out)
{
    kl__live *l = ((kl__engine *)engine)->now;
    if (!l)
        return false;
    kl_buf query = KL_BUF_INIT;
    kl_record_query(q, &query);
    const kl_past_saw *x = find_saw(
        &l->past->lists, &l->lists, &(kl_past_saw){.kind = kind, .query = kl_buf_str(&query)});
    kl_buf_fini(&query);
    if (!x)
        return false;
    out->v = kl_new_array(const kl_value *, x->set->n + 1);
    for (out->len = 0; out->len < x->set->n; out->len++)
        out->v[out->len] = kl_value_ref(x->set->v[out->len]);
    return true;
}

const kl_value *kl__told_believed(void *crew, kl_run *r, const char *kind, const char *ns, const char *name)
{
    (void)r;
    kl__live *l = kl__engine_of(crew)->now;
    const kl_past_saw *x = l
        ? find_saw(&l->past->believed, &l->believed, &(kl_past_saw){.kind = kind, .ns = ns, .name = name})
        : NULL;
    return x ? kl_value_ref(x->found) : NULL;
}

kl_time kl__told_wall(void *crew, kl_run *r)
{
    (void)r;
    kl__engine *e = kl__engine_of(crew);
    kl__live *l = e->now;
    if (l && l->clocks < l->past->n_clocks)
        return l->past->clocks[l->clocks++];
    return kl_clock_wall(e->clock);
}

static void fail_as_then(const kl_past_asked *q, kl_err *err)
{
    const char *message = kl_value_str_at(q->error, "message", NULL),
               *reason = kl_value_str_at(q->error, "reason", NULL);
    const char *details = kl_value_str_at(q->error, "details", NULL);
    (void)!kl_fail(err, q->status, "%s", message ? message : "");
    err->http_code = (int)kl_value_int_at(q->error, 0, "code", NULL);
    err->reason = kl_strdup(reason);
    err->details = kl_strdup(details);
    err->retry_after_ns = kl_value_int_at(q->error, 0, "retry", NULL);
}

void kl__told_resolve(void *crew, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl__engine *e = kl__engine_of(crew);
    const kl_resource *r = kl__world_resource(e->world, kind);
    kl_err err = KL_ERR_INIT;
    kl_status st = r ? KL_OK : KL_ENOTFOUND;
    for (size_t i = 0; !r && e->now && i < e->now->past->n_asked; i++) {
        const kl_past_asked *q = &e->now->past->asked[i];
        if (q->kind && !strcmp(q->kind, kind) && q->answered && q->status)
            fail_as_then(q, &err);
    }
    if (!r && !err.status)
        st = kl_fail(
            &err, KL_ENOTFOUND, "the recording has no kind %s: the recorded runs did not use it", kind);
    done(done_arg, r ? KL_OK : err.status ? err.status : st, r, &err);
    kl_err_fini(&err);
}

/* --- calls -------------------------------------------------------------------------------- */

static const char *word(const kl_value *op, const char *key) { return kl_value_str_at(op, key, NULL); }

static bool same_target(const kl_value *a, const kl_value *b)
{
    static const char *const keys[] = {"verb", "kind", "ns", "name", "sub", "labels", "fields", NULL};
    for (const char *const *k = keys; *k; k++)
        if (!same_text(word(a, *k), word(b, *k)))
            return false;
    return true;
}

static size_t find_call(const kl__live *l, const kl_value *op)
{
    size_t like = KL__NO_MATCH;
    for (size_t i = 0; i < l->past->n_asked; i++) {
        const kl_past_asked *q = &l->past->asked[i];
        if (l->used[i] || !q->op || !same_target(q->op, op))
            continue;
        if (kl__same_op(q->op, op))
            return i;
        if (like == KL__NO_MATCH)
            like = i;
    }
    return like;
}

static size_t find_sleep(const kl__live *l)
{
    for (size_t i = 0; i < l->past->n_asked; i++)
        if (!l->used[i] && !strcmp(l->past->asked[i].what, "sleep"))
            return i;
    return KL__NO_MATCH;
}

/* A recorded answer comes at its recorded time; without one, the request is never answered. A request that
 * was not recorded is answered at once. */
static void await(kl__live *l, kl__wait what, size_t match)
{
    l->waits = what;
    l->match = match;
    l->ready = match == KL__NO_MATCH || l->blocks;
    if (match != KL__NO_MATCH)
        l->used[match] = true;
}

void kl__heard_asked(void *engine, kl_run *r, const kl_asked *x)
{
    kl__live *l = ((kl__engine *)engine)->now;
    if (!l)
        return;
    l->blocks = x->blocks;
    if (++l->asked == l->past->n_asked + MORE_QUESTIONS)
        kl__run_expire(r,
            kl_sprintf("this run keeps sending requests: %u so far, and %zu when it was recorded", l->asked,
                l->past->n_asked));
    if (!strcmp(x->what, "sleep") && !x->blocks)
        await(l, KL__WAITS_SLEEP, find_sleep(l));
}

static const kl_value *base_of(kl__live *l, const kl_resource *r, const char *ns, const char *name)
{
    const kl_value *v = NULL;
    if (kl_overlay_get(l->overlay, r, ns, name, &v))
        return v;
    const kl_value *own = l->past->object;
    const kl_resource *of = kl__world_resource(l->e->world, kl_run_spec(l->run)->resource);
    if (of && !strcmp(of->plural, r->plural) && !strcmp(of->group, r->group)
        && same_text(kl_object_name(own), name) && same_text(kl_object_namespace(own), ns))
        return kl_value_ref(own);
    return kl_value_ref(kl__world_object(l->e->world, r, ns, name));
}

/* The op of a recorded write. Its texts are borrowed from v. */
static kl_op op_of(const kl_value *v)
{
    kl_op op;
    kl_verb verb = KL_GET;
    for (int i = KL_GET; i <= KL_DELETE_COLLECTION; i++)
        if (same_text(word(v, "verb"), kl_verb_name((kl_verb)i)))
            verb = (kl_verb)i;
    kl_op_init(&op, verb, word(v, "kind"));
    const char *patch = word(v, "patch");
    op.ns = word(v, "ns");
    op.name = word(v, "name");
    op.subresource = word(v, "sub");
    op.body = kl_value_get(v, "body");
    op.patch_type = patch && !strcmp(patch, "json") ? KL_PATCH_JSON
        : patch && !strcmp(patch, "strategic")      ? KL_PATCH_STRATEGIC
                                                    : KL_PATCH_MERGE;
    op.field_manager = word(v, "manager");
    op.force = kl_value_bool(kl_value_get(v, "force"), false);
    op.dry_run = kl_value_bool(kl_value_get(v, "dryRun"), false);
    op.propagation = word(v, "propagation");
    return op;
}

/* Simulates the recorded write (`then`; NULL: there was none) and this one on the same object. */
static void outcomes(kl__live *l, kl__wrote *x, const kl_op *op, const kl_value *then)
{
    const kl_resource *r = op->kind ? kl__world_resource(l->e->world, op->kind) : op->resource;
    const char *name = kl_op_name(op);
    if (!r || (!name && op->verb != KL_CREATE))
        return;
    const char *ns = r->namespaced ? (op->ns ? op->ns : op->default_ns) : NULL;
    const kl_value *base = name ? base_of(l, r, ns, name) : NULL;
    kl_simulation s = {
        .op = op, .resource = r, .ns = ns, .base = base, .wall = kl_clock_wall(l->e->clock), .number = 1};
    kl_simulated now = {0}, was = {0};
    kl_op old = then ? op_of(then) : *op;
    kl_simulation before = s;
    before.op = &old;
    if (!kl_simulate(&s, &now, NULL) && (!then || !kl_simulate(&before, &was, NULL))) {
        x->known = true;
        x->now = kl_value_ref(now.object);
        x->then = kl_value_ref(then ? was.object : base);
        x->same = !then && !now.changed;
    }
    kl_simulated_fini(&now);
    kl_simulated_fini(&was);
    kl_value_unref(base);
}

static void note_write(kl__live *l, const kl_op *op, const kl_value *as, size_t match)
{
    l->wrote = kl_realloc(l->wrote, (l->n_wrote + 1) * sizeof *l->wrote);
    kl__wrote *x = &l->wrote[l->n_wrote++];
    const kl_value *then = match == KL__NO_MATCH ? NULL : kl__told_op(l->past->asked[match].op);
    *x = (kl__wrote){.op = op->verb == KL_HTTP ? kl__shown_op(then, as) : kl_value_ref(as), .match = match};
    x->same = then && kl__same_op(then, x->op);
    if (!x->same && !op->dry_run)
        outcomes(l, x, op, then);
    kl_value_unref(then);
}

/* --- answers ------------------------------------------------------------------------------ */

static void answer(kl__live *l, kl_status st, int code, const kl_value *body, kl_err *err)
{
    kl_reply_fn *done = l->done;
    l->waits = KL__WAITS_NOT;
    l->done = NULL;
    done(l->done_arg, st, code, body, err);
}

/* Later live reads of the run see its writes and the server's earlier answers. */
static void remember(kl__live *l, const kl_value *op, const kl_value *body)
{
    const kl_resource *r = word(op, "kind") ? kl__world_resource(l->e->world, word(op, "kind")) : NULL;
    const char *verb = word(op, "verb"),
               *name = kl_object_name(body) ? kl_object_name(body) : word(op, "name");
    if (!r || !name || !verb || (word(op, "sub") && strcmp(word(op, "sub"), "status"))
        || !strcmp(verb, "list"))
        return;
    const char *ns = r->namespaced ? word(op, "ns") : NULL;
    bool deleted = !strcmp(verb, "delete") && !kl_object_deleting(body);
    kl_overlay_set(l->overlay, r, ns, name, deleted ? NULL : body);
}

static void answer_as_then(kl__live *l, const kl_past_asked *q)
{
    kl_err err = KL_ERR_INIT;
    if (q->status)
        fail_as_then(q, &err);
    else if (q->body)
        remember(l, q->op, q->body);
    answer(l, q->status, q->code, q->body, &err);
    kl_err_fini(&err);
}

static void answer_write(kl__live *l, const kl_op *op, const kl_resource *r, const char *ns)
{
    kl_err err = KL_ERR_INIT;
    kl_simulated sim = {0};
    const char *name = kl_op_name(op);
    const kl_value *base = name ? base_of(l, r, ns, name) : NULL;
    kl_simulation write = {
        .op = op, .resource = r, .ns = ns, .base = base, .wall = kl_clock_wall(l->e->clock)};
    kl_status st = kl_overlay_write(l->overlay, &write, &sim, NULL, &err);
    answer(l, st, st ? err.http_code : sim.code, st ? NULL : sim.answer, &err);
    kl_simulated_fini(&sim);
    kl_value_unref(base);
    kl_err_fini(&err);
}

typedef struct listing {
    kl_builder *b;
    kl_selector *labels;
} listing;

static void list_one(void *arg, const kl_value *v)
{
    listing *x = arg;
    if (!x->labels || kl_selector_matches(x->labels, kl_value_at(v, "metadata", "labels", NULL)))
        kl_build_value(x->b, v);
}

static void answer_list(kl__live *l, const kl_op *op, const kl_resource *r)
{
    listing x = {.b = kl_builder_new()};
    char *api = kl_api_version(r->group, r->version), *kind = kl_sprintf("%sList", r->kind);
    if (op->labels && kl_selector_parse(op->labels, &x.labels, NULL))
        x.labels = NULL;
    kl_build_object(x.b);
    kl_build_kstr(x.b, "apiVersion", api);
    kl_build_kstr(x.b, "kind", kind);
    kl_build_key(x.b, "metadata");
    kl_build_object(x.b);
    kl_build_kstr(x.b, "resourceVersion", "1");
    kl_build_end(x.b);
    kl_build_key(x.b, "items");
    kl_build_array(x.b);
    kl__world_each(l->e->world, r, op->ns, list_one, &x);
    kl_build_end(x.b);
    kl_build_end(x.b);
    const kl_value *body = kl_builder_done(x.b);
    answer(l, KL_OK, 200, body, NULL);
    kl_value_unref(body);
    kl_selector_free(x.labels);
    kl_free(api);
    kl_free(kind);
}

static void answer_get(kl__live *l, const kl_op *op, const kl_resource *r, const char *ns)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = op->subresource ? NULL : base_of(l, r, ns, op->name);
    kl_status st = KL_OK;
    if (!v) {
        st = kl_fail(&err, KL_ENOTFOUND, "%s \"%s\" not found (not in the recording)", r->plural,
            op->name ? op->name : "");
        err.http_code = 404;
        err.reason = kl_strdup("NotFound");
    }
    answer(l, st, st ? 404 : 200, v, &err);
    kl_value_unref(v);
    kl_err_fini(&err);
}

/* Answers a request that is not in the recording. */
static void answer_made_out(kl__live *l)
{
    kl_op op = op_of(l->op);
    kl_err err = KL_ERR_INIT;
    const kl_resource *r = op.kind ? kl__world_resource(l->e->world, op.kind) : NULL;
    op.labels = word(l->op, "labels");
    if (same_text(word(l->op, "verb"), "http")) {
        answer(l,
            kl_fail(&err, KL_ENOTFOUND, "the recording has no answer to %s %s: the recorded run did not ask",
                word(l->op, "sub"), word(l->op, "name")),
            0, NULL, &err);
    } else if (!r) {
        answer(l,
            kl_fail(&err, KL_ENOTFOUND, "the recording has no kind %s: the recorded runs did not use it",
                op.kind ? op.kind : "of this object"),
            0, NULL, &err);
    } else {
        const char *ns = r->namespaced ? op.ns : NULL;
        if (kl_verb_is_write(op.verb))
            answer_write(l, &op, r, ns);
        else if (op.verb == KL_LIST)
            answer_list(l, &op, r);
        else
            answer_get(l, &op, r, ns);
    }
    kl_err_fini(&err);
}

void kl__give_answer(kl__live *l)
{
    const kl_past_asked *q = l->match == KL__NO_MATCH ? NULL : &l->past->asked[l->match];
    l->ready = false;
    if (l->waits == KL__WAITS_SLEEP) {
        l->waits = KL__WAITS_NOT;
        kl_heap_remove(&l->run->w->due, &l->run->wait.sleep);
        kl_heap_push(&l->run->w->due, &l->run->wait.sleep, kl_clock_now(l->e->clock));
    } else if (q && q->answered
        && (q->status || kl__same_op(q->op, l->op) || !kl_verb_is_write(op_of(l->op).verb))) {
        answer_as_then(l, q);
    } else {
        answer_made_out(l);
    }
    if (l->waits == KL__WAITS_NOT) {
        kl_value_unref(l->op);
        l->op = NULL;
    }
}

uint64_t kl__take_call(void *engine, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    kl__engine *e = engine;
    kl__live *l = e->now;
    if (!l)
        return 0; /* only runs send requests */
    kl_value_unref(l->op);
    l->op = kl_record_op(op);
    l->done = done;
    l->done_arg = done_arg;
    size_t match = find_call(l, l->op);
    if (kl_verb_is_write(op->verb) || (op->verb == KL_HTTP && !kl_web_reads(op)))
        note_write(l, op, l->op, match);
    await(l, KL__WAITS_CALL, match);
    l->id = ++e->ids;
    uint64_t id = l->id;
    if (l->blocks) /* a blocking request cannot wait for an event */
        kl__give_answer(l);
    return id;
}

void kl__drop_call(void *engine, uint64_t id)
{
    kl__engine *e = engine;
    size_t it = 0;
    const char *key;
    void *v;
    while (kl_map_next(e->live, &it, &key, &v)) {
        kl__live *l = v;
        if (l->id != id || l->waits != KL__WAITS_CALL)
            continue;
        kl_err err = KL_ERR_INIT;
        answer(l, kl_fail(&err, KL_ECANCELLED, "the run has ended"), 0, NULL, &err);
        kl_err_fini(&err);
    }
}
