/* dry_writes.c - a call of a dry run, step by step: resolves its kind, finds its object, computes its result.
 * Each step may continue on another thread, even after the run's end: a wish owns all its data. */
#include "controller/dry_writes.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "client/request.h"
#include "client/web.h"
#include "run/run_impl.h"
#include "controller/view.h"

typedef struct wish {
    const kl_imagination *how;
    kl__op_copy *copy;
    const kl_op *op; /* its op */
    const kl_resource *resource;
    const char *ns; /* into the op; NULL: cluster scope */
    char *controller, *key;
    kl_overlay *overlay; /* NULL: the call is for another cluster */
    kl_door *door;
    kl_clock *clock;
    const kl_value *cached; /* the cached object, if it is complete, or NULL */
    bool known;             /* ... and whether the cache knows it */
    kl_reply_fn *done;
    void *arg;
} wish;

static void wish_free(wish *w)
{
    kl__op_copy_free(w->copy);
    kl_overlay_unref(w->overlay);
    kl_value_unref(w->cached);
    kl_free(w->controller);
    kl_free(w->key);
    kl_free(w);
}

static void grant(wish *w, kl_status st, int code, const kl_value *body, kl_err *err)
{
    w->done(w->arg, st, code, body, err);
    wish_free(w);
}

static void tell(wish *w, const kl_op *op, const char *name, const kl_value *was, const kl_value *is,
    kl_status st, const kl_err *err)
{
    if (w->how->wrote)
        w->how->wrote(w->how->arg,
            &(kl_imagined){.controller = w->controller,
                .key = w->key,
                .op = op,
                .resource = w->resource,
                .ns = w->ns,
                .name = name,
                .was = was,
                .is = is,
                .status = st,
                .err = err});
}

/* --- imagining ---------------------------------------------------------------------------- */

static kl_status simulate(wish *w, const kl_op *op, const kl_value *base, kl_simulated *out, kl_err *err)
{
    const kl_value *was = NULL;
    kl_time wall = kl_clock_wall(w->clock);
    kl_simulation write = {
        .op = op, .resource = w->resource, .ns = w->ns, .base = base, .wall = wall, .number = (uint64_t)wall};
    if (!w->overlay)
        was = kl_value_ref(base);
    kl_status st = w->overlay ? kl_overlay_write(w->overlay, &write, out, &was, err)
                              : kl_simulate(&write, out, err);
    const char *name = kl_op_name(op) ? kl_op_name(op) : kl_object_name(out->object);
    if (st)
        tell(w, op, name, NULL, NULL, st, err);
    else if (out->changed)
        tell(w, op, name, was, out->object, KL_OK, NULL);
    kl_value_unref(was);
    return st;
}

static void imagine(wish *w, const kl_value *base)
{
    kl_simulated out = {0};
    kl_err err = KL_ERR_INIT;
    kl_status st = simulate(w, w->op, base, &out, &err);
    grant(w, st, st ? err.http_code : out.code, out.answer, &err);
    kl_simulated_fini(&out);
    kl_err_fini(&err);
}

static bool is_absent(kl_status st) { return st == KL_ENOTFOUND; }

static void on_base(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    wish *w = arg;
    if (st && !is_absent(st))
        grant(w, st, code, NULL, err);
    else
        imagine(w, st ? NULL : body);
}

/* --- many at once ------------------------------------------------------------------------- */

static void on_collection(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    wish *w = arg;
    const kl_value *items = kl_value_get(body, "items");
    for (size_t i = 0; !st && i < kl_value_len(items); i++) {
        const kl_value *o = kl_value_item(items, i),
                       *typed = kl_object_with_type(o, kl_object_api_version(body), w->resource->kind);
        kl_op one = *w->op;
        kl_simulated out = {0};
        kl_err mine = KL_ERR_INIT;
        one.verb = KL_DELETE;
        one.name = kl_object_name(o);
        w->ns = kl_object_namespace(o);
        /* the object is gone, or its deletion is refused */
        if (simulate(w, &one, typed, &out, &mine))
            kl_err_fini(&mine);
        kl_simulated_fini(&out);
        kl_value_unref(typed);
    }
    grant(w, st, code, body, err);
}

static void collect(wish *w)
{
    kl_op list = {.verb = KL_LIST,
        .kind = w->op->kind,
        .resource = w->op->resource,
        .ns = w->ns,
        .labels = w->op->labels,
        .fields = w->op->fields,
        .grace_seconds = -1};
    (void)kl_door_read(w->door, w->controller, &list, on_collection, w);
}

/* --- the server's word -------------------------------------------------------------------- */

static bool is_object(const wish *w, const kl_value *body)
{
    const char *kind = kl_object_kind(body), *name = kl_op_name(w->op);
    return kind && !strcmp(kind, w->resource->kind) && kl_object_name(body)
        && (!name || !strcmp(name, kl_object_name(body)));
}

/* The answer has the resulting object, except for deletions and subresources: those are simulated. */
static void on_word(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    wish *w = arg;
    const char *name = kl_op_name(w->op);
    if (st) {
        tell(w, w->op, name, NULL, NULL, st, err);
    } else if (is_object(w, body) && !(w->op->verb == KL_DELETE && !kl_object_deleting(body))) {
        name = kl_object_name(body);
        if (!kl_value_equal(w->cached, body))
            tell(w, w->op, name, w->cached, body, KL_OK, NULL);
        if (w->overlay)
            kl_overlay_set(w->overlay, w->resource, w->ns, name, body);
    } else {
        kl_simulated out = {0};
        kl_err mine = KL_ERR_INIT;
        if (simulate(w, w->op, w->cached, &out, &mine))
            kl_err_fini(&mine);
        kl_simulated_fini(&out);
    }
    grant(w, st, code, body, err);
}

static void ask(wish *w)
{
    kl_op op = *w->op;
    op.dry_run = true;
    (void)kl_door_write(w->door, w->controller, &op, on_word, w);
}

static void on_base_first(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    wish *w = arg;
    if (st && !is_absent(st)) {
        grant(w, st, code, NULL, err);
        return;
    }
    kl_value_unref(w->cached);
    w->cached = st ? NULL : kl_value_ref(body);
    ask(w);
}

/* --- finding the object ------------------------------------------------------------------- */

static void find(wish *w)
{
    const kl_value *mine = NULL;
    const char *name = kl_op_name(w->op);
    kl_reply_fn *then = w->how->ask ? on_base_first : on_base;
    if (w->op->verb == KL_DELETE_COLLECTION) {
        collect(w);
        return;
    }
    bool wrote = name && w->overlay && kl_overlay_wrote(w->overlay, w->resource, w->ns, name);
    if (wrote || !name || w->known) { /* simulated writes are unknown to the server */
        if (w->how->ask && !wrote)
            ask(w);
        else
            imagine(w, w->cached);
        return;
    }
    if (w->overlay && kl_overlay_get(w->overlay, w->resource, w->ns, name, &mine)) {
        kl_value_unref(w->cached);
        w->cached = mine;
        if (w->how->ask)
            ask(w);
        else
            imagine(w, mine);
        return;
    }
    kl_op get = {.verb = KL_GET,
        .kind = w->op->kind,
        .resource = w->op->resource,
        .ns = w->ns,
        .name = name,
        .grace_seconds = -1};
    (void)kl_door_read(w->door, w->controller, &get, then, w);
}

static const char *namespace_of(const kl_op *op, const kl_resource *r)
{
    return !r->namespaced ? NULL : op->ns ? op->ns : op->default_ns;
}

static void on_resource(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    wish *w = arg;
    if (st) {
        grant(w, st, err ? err->http_code : 0, NULL, err);
        return;
    }
    w->resource = r;
    w->ns = namespace_of(w->op, r);
    find(w);
}

/* --- the beginning, on the worker's thread ------------------------------------------------ */

static bool is_whole(const kl_controller_spec *s, const char *kind)
{
    return !kl_controller_spec_metadata(s, kind) && !kl_controller_spec_fields(s, kind);
}

/* The cached object, if it has all that the result depends on: an apply needs managedFields. */
static void look_up(kl_run *r, wish *w)
{
    const char *name = kl_op_name(w->op);
    kl_reader *rd = kl_run_reader(r);
    kl_err err = KL_ERR_INIT;
    const kl_value *o = NULL;
    if (!w->overlay || !name || !w->op->kind || !rd || !kl_reader_resource(rd, w->op->kind)
        || !is_whole(r->gen->logic->spec, w->op->kind))
        return;
    if (kl_reader_get(rd, w->op->kind, namespace_of(w->op, w->resource), name, &o, &err)) {
        kl_err_fini(&err);
        return;
    }
    if (w->op->verb == KL_APPLY && o && !kl_value_at(o, "metadata", "managedFields", NULL)
        && !w->how->recall) {
        kl_value_unref(o);
        return;
    }
    w->cached = o;
    w->known = true;
}

static const kl_resource *resource_of(kl_run *r, size_t at, const kl_op *op)
{
    if (op->resource)
        return op->resource;
    if (at != KL_FLEET_NONE)
        return kl_run_resource_at(r, at, op->kind);
    kl_reader *rd = r->gen->logic->reader;
    const kl_resource *known = rd ? kl_reader_resource(rd, op->kind) : NULL;
    return known || !r->w->o.resource ? known : r->w->o.resource(r->w->o.arg, op->kind);
}

static wish *wish_new(kl_run *r, const kl_op *op, size_t at, kl_reply_fn *done, void *arg)
{
    wish *w = kl_new(wish);
    w->how = r->w->o.imagine;
    w->copy = kl__op_copy_new(op);
    w->op = &w->copy->op;
    w->controller = kl_strdup(r->w->o.name);
    w->key = kl_strdup(r->key);
    w->overlay = at == KL_FLEET_NONE ? kl_overlay_ref(kl_run_overlay(r)) : NULL;
    w->door = r->wait.door;
    w->clock = r->w->o.clock;
    w->done = done;
    w->arg = arg;
    return w;
}

static void begin_write(kl_run *r, const kl_op *op, size_t at, kl_reply_fn *done, void *arg)
{
    wish *w = wish_new(r, op, at, done, arg);
    const kl_resource *res = resource_of(r, at, op);
    if (res) {
        w->resource = res;
        w->ns = namespace_of(w->op, res);
        look_up(r, w);
        find(w);
    } else if (at != KL_FLEET_NONE) {
        kl_client_resolve(kl_fleet_client(r->w->o.fleet, at), op->kind, on_resource, w);
    } else {
        r->w->o.resolve(r->w->o.arg, op->kind, on_resource, w);
    }
}

/* --- live reads --------------------------------------------------------------------------- */

static void on_read(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    wish *w = arg;
    const kl_value *shown = NULL;
    if (!st && w->op->verb == KL_LIST && w->op->form == KL_AS_OBJECT)
        shown = kl_view_answer(w->overlay, w->resource, w->ns, w->op->labels, body);
    else if (!st && w->op->verb == KL_GET && w->op->form == KL_AS_OBJECT && !w->op->subresource)
        (void)kl_overlay_show(w->overlay, w->resource, w->ns, w->op->name, body);
    grant(w, st, code, shown ? shown : body, err);
    kl_value_unref(shown);
}

static bool answer_absent(const kl_op *op, const kl_resource *res, kl_reply_fn *done, void *arg)
{
    kl_err err = KL_ERR_INIT;
    char *plural = kl_resource_display(res);
    kl_status st = kl_fail(&err, KL_ENOTFOUND, "%s \"%s\" not found", plural, op->name);
    err.http_code = 404;
    err.reason = kl_strdup("NotFound");
    done(arg, st, 404, NULL, &err);
    kl_err_fini(&err);
    kl_free(plural);
    return true;
}

/* A get of an object that the run wrote, or (`shown`) has read before. */
static bool read_own(kl_run *r, const kl_op *op, const kl_resource *res, kl_reply_fn *done, void *arg)
{
    const kl_value *o = NULL;
    const char *ns = namespace_of(op, res);
    if (op->verb != KL_GET || !op->name || op->subresource || op->form != KL_AS_OBJECT)
        return false;
    bool whole = !op->kind || is_whole(r->gen->logic->spec, op->kind);
    if (!whole && !kl_overlay_wrote(kl_run_overlay(r), res, ns, op->name))
        return false;
    if (!kl_overlay_get(kl_run_overlay(r), res, ns, op->name, &o))
        return false;
    if (!o)
        return answer_absent(op, res, done, arg);
    done(arg, KL_OK, 200, o, NULL);
    kl_value_unref(o);
    return true;
}

static uint64_t look(kl_run *r, const kl_op *op, size_t at, kl_reply_fn *done, void *arg)
{
    const kl_resource *res = at == KL_FLEET_NONE ? resource_of(r, at, op) : NULL;
    if (!res) /* the run wrote no object of a kind that is not resolved */
        return kl_door_read(r->wait.door, r->w->o.name, op, done, arg);
    if (read_own(r, op, res, done, arg))
        return 0;
    wish *w = wish_new(r, op, at, done, arg);
    w->resource = res;
    w->ns = op->verb == KL_LIST ? w->op->ns : namespace_of(w->op, res);
    return kl_door_read(r->wait.door, r->w->o.name, op, on_read, w);
}

/* --- all of it ---------------------------------------------------------------------------- */

/* Puts a recorded answer into the overlay. */
static void take_over(kl_run *r, const kl_op *op, const kl_recalled *x)
{
    const kl_resource *res = resource_of(r, KL_FLEET_NONE, op);
    const char *name = kl_op_name(op) ? kl_op_name(op) : kl_object_name(x->body),
               *kind = kl_object_kind(x->body);
    if (x->status || !res || !name || !kl_verb_is_write(op->verb))
        return;
    const char *ns = namespace_of(op, res);
    if (kind && !strcmp(kind, res->kind)) {
        bool gone = op->verb == KL_DELETE && !kl_object_deleting(x->body);
        kl_overlay_set(kl_run_overlay(r), res, ns, name, gone ? NULL : x->body);
    } else if (!op->subresource || !strcmp(op->subresource, "scale")
        || !strcmp(op->subresource, "eviction")) {
        kl_simulated out = {0};
        kl_err err = KL_ERR_INIT;
        kl_simulation write = {.op = op, .resource = res, .ns = ns, .wall = kl_run_wall(r)};
        if (kl_overlay_write(kl_run_overlay(r), &write, &out, NULL, &err))
            kl_err_fini(&err);
        kl_simulated_fini(&out);
    }
}

static bool recalled(kl_run *r, const kl_op *op, kl_reply_fn *done, void *arg)
{
    const kl_imagination *how = r->w->o.imagine;
    kl_recalled x = {0};
    if (!how->recall || !how->recall(how->arg, r, op, &x))
        return false;
    take_over(r, op, &x);
    done(arg, x.status, x.code, x.body, &x.err);
    kl_value_unref(x.body);
    kl_err_fini(&x.err);
    return true;
}

/* Only reads go to other servers. */
static uint64_t reach(kl_run *r, const kl_op *op, kl_reply_fn *done, void *arg)
{
    if (kl_web_reads(op))
        return kl_door_read(r->wait.door, r->w->o.name, op, done, arg);
    kl_door_imagined(r->wait.door, r->w->o.name, op);
    char *url = kl_web_shown(op);
    const kl_imagination *how = r->w->o.imagine;
    if (r->w->o.shadow && how->wrote) /* compared with the live run's request */
        how->wrote(
            how->arg, &(kl_imagined){.controller = r->w->o.name, .key = r->key, .op = op, .name = op->name});
    else
        kl_info("dry run: not sent", "controller=%s key=%s verb=%s url=%s", r->w->o.name, r->key,
            op->subresource, url);
    const kl_value *v = kl_web_unsent();
    done(arg, KL_OK, (int)kl_value_int_at(v, 0, "status", NULL), v, NULL);
    kl_value_unref(v);
    kl_free(url);
    return 0;
}

static uint64_t submit(kl_run *r, const kl_op *op, size_t at, kl_reply_fn *done, void *arg)
{
    if (at == KL_FLEET_NONE && recalled(r, op, done, arg))
        return 0;
    if (op->verb == KL_HTTP)
        return reach(r, op, done, arg);
    if (!kl_verb_is_write(op->verb))
        return look(r, op, at, done, arg);
    kl_door_imagined(r->wait.door, r->w->o.name, op);
    begin_write(r, op, at, done, arg);
    return 0;
}

static kl_reader *view(kl_run *r, kl_reader *of)
{
    kl_reader *v = kl_view_new(of, kl_run_overlay(r));
    if (r->w->o.imagine->recall_list)
        kl_view_set_recall(v, r->w->o.imagine->recall_list, r);
    return v;
}

const kl_imagine_ops kl_dry_writes = {
    .submit = submit,
    .view = view,
    .view_free = kl_view_free,
};
