/* sim_world.c - the embedded server as what caches list and watch, and as what runs call. */
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"
#include "run/simulate.h"
#include "sim/sim_impl.h"

typedef struct change {
    const char *group, *plural; /* in the server's terms */
    const char *type;
    const kl_value *now;
} change;

struct kl__scene {
    const kl_sim_options *o;
    kl_server *server;
    kl_listwatch *caches;
    kl_map *kinds; /* kind as it was requested -> resource; several names may mean one */
    change *news;
    size_t n_news, cap_news, objects;
    void (*wrote)(void *arg, const kl_sim_wrote *w);
    void *wrote_arg;
};

kl_listwatch *kl__scene_listwatch(kl__scene *s) { return s->caches; }
kl_server *kl__scene_server(kl__scene *s) { return s->server; }
size_t kl__scene_objects(const kl__scene *s) { return s->objects; }

/* --- kinds -------------------------------------------------------------------------------- */

static kl_resource *resource_of(const kl_server_kind *k)
{
    const char *const subresources[] = {
        "eviction", "binding", k->status ? "status" : NULL, k->scale ? "scale" : NULL};
    const size_t most = sizeof subresources / sizeof *subresources;
    kl_resource *r = kl_new(kl_resource);
    *r = (kl_resource){.group = kl_strdup(k->group),
        .version = kl_strdup(k->version),
        .kind = kl_strdup(k->kind),
        .plural = kl_strdup(k->plural),
        .namespaced = k->namespaced};
    r->subresources = kl_new_array(char *, most + 1);
    for (size_t i = 0, n = 0; i < most; i++)
        if (subresources[i])
            r->subresources[n++] = kl_strdup(subresources[i]);
    return r;
}

const kl_resource *kl__scene_resource(kl__scene *s, const char *kind)
{
    kl_resource *r = kl_map_get(s->kinds, kind);
    kl_gvk g;
    kl_server_kind k;
    if (r || kl_gvk_parse(kind, &g, NULL))
        return r;
    if (kl_server_find(s->server, g.group, g.version, g.kind, &k)) {
        char *whole = kl_gvk_text(k.group, k.version, k.kind);
        r = kl_map_get(s->kinds, whole);
        if (!r)
            kl_map_set(s->kinds, whole, r = resource_of(&k));
        kl_free(whole);
    }
    kl_gvk_fini(&g);
    return r;
}

static kl_server_kind kind_of(const kl_resource *r)
{
    return (kl_server_kind){.group = r->group,
        .version = r->version,
        .kind = r->kind,
        .plural = r->plural,
        .namespaced = r->namespaced};
}

static const kl_resource *resolve(void *arg, const char *kind) { return kl__scene_resource(arg, kind); }

/* --- what caches hear --------------------------------------------------------------------- */

typedef struct listing {
    kl_listwatch_item *item;
    void *arg;
} listing;

static void list_one(void *arg, const kl_value *v)
{
    listing *l = arg;
    (void)l->item(l->arg, v);
}

static void each(void *arg, const kl_listwatch_feed *f, kl_listwatch_item *item, void *item_arg)
{
    kl__scene *s = arg;
    kl_server_kind k = kind_of(f->resource);
    kl_server_each(s->server, &k, list_one, &(listing){item, item_arg});
}

static void changed(void *arg, const kl_server_change *c)
{
    kl__scene *s = arg;
    if (s->n_news == s->cap_news) {
        s->cap_news = s->cap_news ? 2 * s->cap_news : 64;
        s->news = kl_realloc(s->news, s->cap_news * sizeof *s->news);
    }
    s->news[s->n_news++] = (change){c->group, c->plural, c->type, kl_value_ref(c->now)};
    s->objects++;
    if (s->o->changed)
        s->o->changed(s->o->arg, c);
}

/* Two APIs have the same Events. */
static bool is_of(const kl_resource *r, const change *c)
{
    const char *group = strcmp(r->group, "events.k8s.io") ? r->group : "";
    return !strcmp(group, c->group) && !strcmp(r->plural, c->plural);
}

static bool hears(void *resource, const kl_listwatch_feed *f) { return f->resource == resource; }

static void tell(kl__scene *s, const change *c)
{
    size_t it = 0;
    const char *name;
    void *r;
    while (kl_map_next(s->kinds, &it, &name, &r)) {
        if (!is_of(r, c))
            continue;
        kl_server_kind k = kind_of(r);
        const kl_value *v = kl_server_as(s->server, &k, c->now);
        kl_listwatch_tell(s->caches, hears, r, c->type, v);
        kl_value_unref(v);
    }
}

bool kl__scene_flush(kl__scene *s)
{
    bool some = s->n_news;
    for (size_t i = 0; i < s->n_news; i++) {
        change c = s->news[i]; /* a copy: telling may move the array */
        tell(s, &c);
        kl_value_unref(c.now);
    }
    s->n_news = 0;
    kl_listwatch_pump(s->caches);
    return some;
}

/* --- calls -------------------------------------------------------------------------------- */

void kl__scene_heard(kl__scene *s, void (*fn)(void *arg, const kl_sim_wrote *w), void *arg)
{
    s->wrote = fn;
    s->wrote_arg = arg;
}

static kl_server_call call_of(const kl_op *op, const kl_resource *r)
{
    static const char *const patches[] = {
        [KL_PATCH_MERGE] = "merge", [KL_PATCH_JSON] = "json", [KL_PATCH_STRATEGIC] = "strategic"};
    bool apply = op->verb == KL_APPLY, many = op->verb == KL_LIST || op->verb == KL_DELETE_COLLECTION;
    const char *ns = op->ns ? op->ns : kl_object_namespace(op->body);
    return (kl_server_call){.group = r->group,
        .version = r->version,
        .plural = r->plural,
        .verb = kl_verb_rbac(op->verb),
        .ns = ns || many ? ns : op->default_ns,
        .name = many ? NULL : kl_op_name(op),
        .sub = op->subresource,
        .patch = apply             ? "apply"
            : op->verb == KL_PATCH ? patches[op->patch_type]
                                   : NULL,
        .manager = op->field_manager ? op->field_manager : "kubelua",
        .labels = op->labels,
        .fields = op->fields,
        .propagation = op->propagation,
        .uid = op->uid,
        .rv = op->precondition_rv,
        .force = op->force,
        .dry_run = op->dry_run,
        .body = op->body};
}

static kl_status answer(
    kl__scene *s, const kl_op *op, const kl_resource *r, const kl_value **out, int *code, kl_err *err)
{
    if (op->verb == KL_HTTP)
        return kl_fail(err, KL_ENOTFOUND, "a simulation cannot send requests: no answer to %s %s",
            op->subresource ? op->subresource : "", op->name ? op->name : "");
    if (!r)
        return kl_fail(err, KL_ENOTFOUND, "the simulated cluster has no kind %s", op->kind ? op->kind : "");
    kl_server_call c = call_of(op, r);
    if (op->verb == KL_CREATE && !op->subresource)
        c.name = kl_object_name(op->body);
    return kl_server_do(s->server, &c, out, code, err);
}

static kl_status kind_named(kl_status st, kl_err *err)
{
    return st && err->http_code == 409 && err->reason && !strcmp(err->reason, "AlreadyExists") ? KL_EEXISTS
                                                                                               : st;
}

uint64_t kl__scene_send(void *scene, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    kl__scene *s = scene;
    const kl_resource *r = op->resource ? op->resource : op->kind ? kl__scene_resource(s, op->kind) : NULL;
    const kl_value *out = NULL;
    kl_err err = KL_ERR_INIT;
    int code = 0;
    kl_status st = kind_named(answer(s, op, r, &out, &code, &err), &err);
    if (kl_verb_is_write(op->verb) && r && s->wrote)
        s->wrote(s->wrote_arg,
            &(kl_sim_wrote){.op = op,
                .resource = r,
                .ns = r->namespaced ? op->ns ? op->ns : op->default_ns : NULL,
                .answer = out,
                .status = st,
                .err = &err});
    done(done_arg, st, st ? err.http_code : code, st ? NULL : out, &err);
    kl_value_unref(out);
    kl_err_fini(&err);
    return kl_listwatch_id(s->caches);
}

/* --- life --------------------------------------------------------------------------------- */

kl__scene *kl__scene_new(const kl_sim_options *o, kl_clock *clock, kl_err *err)
{
    kl__scene *s = kl_new(kl__scene);
    s->o = o;
    s->kinds = kl_map_new();
    if (kl_server_start(&(kl_server_options){.clock = clock,
                            .unheard = true,
                            .history = 1, /* nobody watches from an earlier version */
                            .changed = changed,
                            .changed_arg = s,
                            .seed = o->seed ? o->seed : 1},
            &s->server, err)) {
        kl_map_free(s->kinds, NULL);
        kl_free(s);
        return NULL;
    }
    s->caches = kl_listwatch_new(&(kl_listwatch_options){.name = "sim",
        .clock = clock,
        .timers = true,
        .drop_managed_fields = true,
        .where = "the simulated cluster",
        .resolve = resolve,
        .each = each,
        .arg = s});
    return s;
}

static void resource_free(void *p)
{
    kl_resource_fini(p);
    kl_free(p);
}

void kl__scene_free(kl__scene *s)
{
    (void)kl__scene_flush(s);
    kl_listwatch_free(s->caches);
    kl_server_stop(s->server);
    kl_map_free(s->kinds, resource_free);
    kl_free(s->news);
    kl_free(s);
}
