/* command.c - finds the controller of a command, on the loop, and runs the command. */
#include "control/command.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "controller/controller.h"
#include "controller/wiring_impl.h"
#include "control/why.h"

/* The controller to find, and the action. `controller` may have its cluster before it, as in "west/maps". */
typedef struct search {
    const char *cluster;           /* of the searched manager, or NULL */
    const char *controller, *kind; /* either may be NULL */
    bool any; /* by kind: any controller that caches it; otherwise the one that reconciles it */
    void (*found)(struct search *s, kl_controller *c, const kl_controller_look *l, const char *kind);
    void *arg;
    size_t n;
    const char **names; /* names of all controllers, for a failed search; copies */
    size_t n_names;
    char **kinds; /* the same for kinds */
    size_t n_kinds;
} search;

static bool is_named(const search *s, const char *name)
{
    size_t n = s->cluster ? strlen(s->cluster) : 0;
    return !strcmp(s->controller, name)
        || (n && !strncmp(s->controller, s->cluster, n) && s->controller[n] == '/'
            && !strcmp(s->controller + n + 1, name));
}

static void look(void *arg, kl_controller *c)
{
    search *s = arg;
    kl_controller_look l;
    kl_controller_look_at(c, &l);
    const char *kind = s->kind && l.wiring ? kl_why_kind(l.wiring, s->kind, !s->any) : NULL;
    s->names = kl_realloc(s->names, (s->n_names + 1) * sizeof *s->names);
    s->names[s->n_names++] = kl_strdup(l.name);
    if (s->kind && l.wiring)
        kl_why_kinds(l.wiring, !s->any, &s->kinds, &s->n_kinds);
    if ((!s->controller || is_named(s, l.name)) && (!s->kind || kind)) {
        s->n++;
        s->found(s, c, &l, kind);
    }
    kl_wiring_unref(l.wiring);
}

static void find(search *s, kl_manager *m)
{
    kl_manager *one;
    for (size_t i = 0; (one = kl_manager_at(m, i, &s->cluster)); i++)
        kl_manager_each(one, look, s);
}

static void nobody_for(const search *s, kl_control_request *q)
{
    char *meant = kl_why_meant(s->kind, s->kinds, s->n_kinds, s->any ? "they keep " : "they are for ");
    kl_control_refuse(q, 404,
        s->any ? "no controller of this process keeps %s in its cache%s"
               : "no controller of this process reconciles %s%s",
        s->kind, meant);
    kl_free(meant);
}

/* Answers when no controller was found. */
static bool nobody(search *s, kl_control_request *q)
{
    const char *near = s->controller ? kl_suggest(s->controller, s->names, s->n_names) : NULL;
    if (!s->n && s->kind && s->controller)
        kl_control_refuse(q, 404, "this process has no controller %s that %s %s", s->controller,
            s->any ? "caches" : "reconciles", s->kind);
    else if (!s->n && s->kind)
        nobody_for(s, q);
    else if (!s->n)
        kl_control_refuse(q, 404, "there is no controller %s%s%s%s", s->controller,
            near ? ": did you mean " : "", near ? near : "", near ? "?" : "");
    for (size_t i = 0; i < s->n_names; i++)
        kl_free((char *)s->names[i]);
    kl_free(s->names);
    kl_why_kinds_free(s->kinds, s->n_kinds);
    return !s->n;
}

/* --- caches ------------------------------------------------------------------------------- */

typedef struct kept {
    kl_wiring *wiring;
    char *kind;
} kept;

static void keep(search *s, kl_controller *c, const kl_controller_look *l, const char *kind)
{
    (void)c;
    kept *k = s->arg;
    if (k->wiring)
        return;
    k->wiring = kl_wiring_ref(l->wiring);
    k->kind = kl_strdup(kind);
}

static bool cache_of(kl_manager *m, kl_control_request *q, kept *out)
{
    search s = {.controller = kl_control_query(q, "controller"),
        .kind = kl_control_query(q, "kind"),
        .any = true,
        .found = keep,
        .arg = out};
    if (!s.kind || !*s.kind) {
        kl_control_refuse(q, 400, "name the kind: kind=v1/Secret");
        return false;
    }
    find(&s, m);
    return !nobody(&s, q);
}

static void kept_free(kept *k)
{
    kl_wiring_unref(k->wiring);
    kl_free(k->kind);
}

static void answer_object(void *arg, kl_control_request *q)
{
    kept k = {0};
    const char *key = kl_control_query(q, "key");
    if (!key || !*key) {
        kl_control_refuse(q, 400, "name the object: key=namespace/name, or key=name");
        return;
    }
    if (!cache_of(arg, q, &k))
        return;
    kl_reader *reader = kl_wiring_logic(k.wiring)->reader;
    char *placed = kl_why_key(kl_reader_resource(reader, k.kind), key), *slash = strchr(placed, '/');
    char *ns = slash ? kl_strndup(placed, (size_t)(slash - placed)) : NULL;
    const kl_value *o = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_reader_get(reader, k.kind, ns, slash ? slash + 1 : placed, &o, &err))
        kl_control_fail(q, &err);
    else if (!o)
        kl_control_refuse(q, 404, "%s %s is not in the cache", k.kind, key);
    else
        kl_control_reply(q, 200, o);
    kl_err_fini(&err);
    kl_free(ns);
    kl_free(placed);
    kept_free(&k);
}

static void reply_items(kl_control_request *q, const char *kind, const kl_objects *o)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", kind);
    kl_build_key(b, "items");
    kl_build_array(b);
    for (size_t i = 0; i < o->len; i++)
        kl_build_value(b, o->v[i]);
    kl_build_end(b);
    kl_build_end(b);
    kl_control_reply(q, 200, kl_builder_done(b));
}

static void answer_list(void *arg, kl_control_request *q)
{
    kept k = {0};
    const char *limit = kl_control_query(q, "limit");
    if (limit && (!*limit || limit[strspn(limit, "0123456789")])) {
        kl_control_refuse(q, 400, "limit must be a number, as in limit=100, not \"%s\"", limit);
        return;
    }
    kl_read_query read = {.ns = kl_control_query(q, "namespace"),
        .labels = kl_control_query(q, "labels"),
        .fields = kl_control_query(q, "fields"),
        .index = kl_control_query(q, "index"),
        .value = kl_control_query(q, "value"),
        .limit = limit ? strtoul(limit, NULL, 10) : 0};
    if (!cache_of(arg, q, &k))
        return;
    kl_objects o = {0};
    kl_err err = KL_ERR_INIT;
    if (kl_reader_list(kl_wiring_logic(k.wiring)->reader, k.kind, &read, &o, &err))
        kl_control_fail(q, &err);
    else
        reply_items(q, k.kind, &o);
    kl_objects_fini(&o);
    kl_err_fini(&err);
    kept_free(&k);
}

/* --- controllers -------------------------------------------------------------------------- */

static void pause_one(search *s, kl_controller *c, const kl_controller_look *l, const char *kind)
{
    (void)l;
    (void)kind;
    kl_controller_pause(c, *(bool *)s->arg);
}

static void say_paused(kl_manager *m, kl_control_request *q, bool pause)
{
    search s = {.controller = kl_value_str_at(kl_control_body(q), "controller", NULL),
        .found = pause_one,
        .arg = &pause};
    if (!s.controller) {
        kl_control_refuse(q, 400, "name the controller: {\"controller\": \"NAME\"}");
        return;
    }
    find(&s, m);
    if (!nobody(&s, q))
        kl_control_reply(q, 200, NULL);
}

static void answer_pause(void *arg, kl_control_request *q) { say_paused(arg, q, true); }
static void answer_resume(void *arg, kl_control_request *q) { say_paused(arg, q, false); }

/* The full key that the user means, in the controller's own kind; the caller frees it. */
static char *placed_in(const kl_controller_look *l, const char *key)
{
    return kl_why_key(l->published ? kl_cache_resource(l->wiring->needs[0].cache) : NULL, key);
}

typedef struct waking {
    const char *key; /* NULL: all */
    size_t woken;
} waking;

static void wake(search *s, kl_controller *c, const kl_controller_look *l, const char *kind)
{
    (void)c;
    (void)kind;
    waking *w = s->arg;
    if (!w->key) {
        if (l->published)
            kl_wiring_enqueue_all(l->wiring, KL_WHY_HAND);
        w->woken++;
        return;
    }
    char *key = placed_in(l, w->key);
    const kl_value *o = l->published ? kl_wiring_object(l->wiring, key) : NULL;
    if (o) {
        kl_workqueue_add_with(l->queue, key,
            &(kl_add){.priority = KL_PRIORITY_MOST, .cause = kl_cause_of(KL_WHY_HAND, NULL)},
            kl_clock_now(l->clock));
        w->woken++;
    }
    kl_value_unref(o);
    kl_free(key);
}

static void answer_reconcile(void *arg, kl_control_request *q)
{
    const kl_value *body = kl_control_body(q);
    waking w = {.key = kl_value_str_at(body, "key", NULL)};
    search s = {.controller = kl_value_str_at(body, "controller", NULL),
        .kind = kl_value_str_at(body, "kind", NULL),
        .found = wake,
        .arg = &w};
    bool all = kl_value_bool(kl_value_get(body, "all"), false);
    if (all ? w.key || !s.controller : !w.key || (!s.controller && !s.kind)) {
        kl_control_refuse(q, 400,
            "name the object: {\"kind\": \"v1/ConfigMap\", \"key\": \"namespace/name\"}, and \"controller\" "
            "if several match; or {\"controller\": \"NAME\", \"all\": true}");
        return;
    }
    find(&s, arg);
    if (nobody(&s, q))
        return;
    if (!w.woken) {
        kl_control_refuse(
            q, 404, "%s is not in the cache of %s", w.key, s.controller ? s.controller : s.kind);
        return;
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "controllers", (int64_t)w.woken);
    kl_build_end(b);
    kl_control_reply(q, 200, kl_builder_done(b));
}

/* --- a dry run ---------------------------------------------------------------------------- */

typedef struct rehearsing {
    kl_control_request *q; /* NULL: the request is answered elsewhere */
    const char *key;
    kl_status status;
    kl_err err;
} rehearsing;

static void rehearsed(void *arg, const kl_value *report) { kl_control_reply(arg, 200, report); }

/* Starts the dry run in the first controller that has the object. */
static void rehearse(search *s, kl_controller *c, const kl_controller_look *l, const char *kind)
{
    (void)kind;
    rehearsing *x = s->arg;
    char *key = placed_in(l, x->key);
    const kl_value *o = x->q && l->published ? kl_wiring_object(l->wiring, key) : NULL;
    if (o) {
        kl_err_fini(&x->err);
        x->status = kl_controller_rehearse(c, key, rehearsed, x->q, &x->err);
        if (!x->status)
            x->q = NULL;
    }
    kl_value_unref(o);
    kl_free(key);
}

static void answer_run(void *arg, kl_control_request *q)
{
    const kl_value *body = kl_control_body(q);
    const char *key = kl_value_str_at(body, "key", NULL),
               *controller = kl_value_str_at(body, "controller", NULL),
               *kind = kl_value_str_at(body, "kind", NULL);
    if (!key || (!controller && !kind) || !kl_value_bool(kl_value_get(body, "dry"), false)) {
        kl_control_refuse(q, 400,
            "name the object: {\"kind\": \"v1/ConfigMap\", \"key\": \"namespace/name\", \"dry\": true}, and "
            "\"controller\" if several match; /v1/reconcile runs a key and sends its writes");
        return;
    }
    char *named = kl_strdup(key); /* the request may be answered, and gone, before we return */
    rehearsing x = {.q = q, .key = named};
    search s = {.controller = kl_strdup(controller), .kind = kl_strdup(kind), .found = rehearse, .arg = &x};
    find(&s, arg);
    if (!nobody(&s, q) && x.q && x.status)
        kl_control_fail(q, &x.err);
    else if (s.n && x.q)
        kl_control_refuse(
            q, 404, "%s is not in the cache of %s", named, s.controller ? s.controller : s.kind);
    kl_free((char *)s.controller);
    kl_free((char *)s.kind);
    kl_free(named);
    kl_err_fini(&x.err);
}

/* --- params ------------------------------------------------------------------------------- */

typedef struct setting {
    const kl_value *wish, *now; /* now: a reference */
    kl_status status;
    kl_err err;
} setting;

static void see_params(search *s, kl_controller *c, const kl_controller_look *l, const char *kind)
{
    (void)c;
    (void)kind;
    setting *x = s->arg;
    kl_value_unref(x->now);
    x->now = l->wiring ? kl_wiring_params(l->wiring) : NULL;
}

static void set_params(search *s, kl_controller *c, const kl_controller_look *l, const char *kind)
{
    (void)l, (void)kind;
    setting *x = s->arg;
    kl_value_unref(x->now);
    x->now = NULL;
    if (!x->status)
        x->status = kl_controller_set_params(c, x->wish, &x->now, &x->err);
}

static void reply_params(kl_control_request *q, setting *x)
{
    if (x->status)
        kl_control_fail(q, &x->err);
    else
        kl_control_reply(q, 200, kl_value_ref(x->now));
    kl_value_unref(x->now);
    kl_err_fini(&x->err);
}

static void answer_params(void *arg, kl_control_request *q)
{
    setting x = {0};
    search s = {.controller = kl_control_query(q, "controller"), .found = see_params, .arg = &x};
    if (!s.controller) {
        kl_control_refuse(q, 400, "name the controller: controller=NAME");
        return;
    }
    find(&s, arg);
    if (!nobody(&s, q))
        reply_params(q, &x);
}

static void answer_set_params(void *arg, kl_control_request *q)
{
    setting x = {.wish = kl_value_get(kl_control_body(q), "params")};
    search s = {.controller = kl_value_str_at(kl_control_body(q), "controller", NULL),
        .found = set_params,
        .arg = &x};
    if (!s.controller || kl_value_type(x.wish) != KL_OBJECT) {
        kl_control_refuse(q, 400,
            "name the controller and its params: {\"controller\": \"NAME\", \"params\": {\"name\": value}}");
        return;
    }
    find(&s, arg);
    if (!nobody(&s, q))
        reply_params(q, &x);
}

void kl_command_add(kl_control *c, kl_manager *m)
{
    kl_control_route(c, "GET", "/v1/object", "an object of the caches: kind=, key=", answer_object, m);
    kl_control_route(c, "GET", "/v1/list",
        "objects of the caches: kind=, and namespace=, labels=, fields=, index= with value=, limit=; "
        "controller=",
        answer_list, m);
    kl_control_guard(c, "/v1/object");
    kl_control_guard(c, "/v1/list");
    kl_control_route(c, "POST", "/v1/reconcile",
        "run a key now: {kind or controller, key}; or all keys, with low priority: {controller, all: true}",
        answer_reconcile, m);
    kl_control_route(c, "GET", "/v1/params", "the params of a controller: controller=", answer_params, m);
    kl_control_route(c, "POST", "/v1/params", "set params of the running generation: {controller, params}",
        answer_set_params, m);
    kl_control_guard(c, "/v1/params");
    kl_control_route(c, "POST", "/v1/run",
        "a dry run of a key, and what it would write: {kind or controller, key, dry: true}", answer_run, m);
    kl_control_route(c, "POST", "/v1/pause", "pause a controller: {controller}", answer_pause, m);
    kl_control_route(c, "POST", "/v1/resume", "resume a controller: {controller}", answer_resume, m);
}
