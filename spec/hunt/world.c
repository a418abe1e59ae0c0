/* world.c - a small cluster without a socket: kinds and objects as a source of lists and watches, and a
 * door behind which writes are simulated.
 *
 * Everything is answered at once, or in world_pump. So one thread is enough, and a program can wait for
 * nothing. */
#include "hunt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/random.h"
#include "client/web.h"
#include "lab/listwatch.h"
#include "model/object.h"
#include "run/simulate.h"

#define KINDS 8
#define NAMES 3

static char *const SUBRESOURCES[] = {"status", "scale", "eviction", NULL};

typedef struct kind {
    const char *name;
    kl_resource resource;
    const char *body; /* of its objects, beside metadata */
    kl_map *objects;  /* key -> value */
    bool dirty;
} kind;

static const kind KIND[KINDS] = {
    {"v1/ConfigMap",
        {.group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps", .namespaced = true},
        "\"data\":{\"a\":\"1\",\"text\":\"x\\ny\",\"ask\":\"0\"}"},
    {"v1/Secret", {.group = "", .version = "v1", .kind = "Secret", .plural = "secrets", .namespaced = true},
        "\"type\":\"Opaque\",\"data\":{\"a\":\"YQ==\"}"},
    {"v1/Pod", {.group = "", .version = "v1", .kind = "Pod", .plural = "pods", .namespaced = true},
        "\"spec\":{\"nodeName\":\"a\",\"priority\":9000,\"containers\":"
        "[{\"name\":\"main\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"500m\",\"memory\":"
        "\"1Gi\"}}},{\"name\":\"side\",\"image\":\"j\"}]},\"status\":{\"phase\":\"Running\"}"},
    {"v1/Node", {.group = "", .version = "v1", .kind = "Node", .plural = "nodes"},
        "\"spec\":{},\"status\":{\"capacity\":{\"cpu\":\"32\",\"memory\":\"64Gi\"},"
        "\"allocatable\":{\"cpu\":\"31900m\",\"memory\":\"63Gi\"},\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"True\"}]}"},
    {"apps/v1/Deployment",
        {.group = "apps", .version = "v1", .kind = "Deployment", .plural = "deployments", .namespaced = true},
        "\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"app\":\"a\"}},\"template\":{\"metadata\":{"
        "\"labels\":{\"app\":\"a\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}},"
        "\"status\":{}"},
    {"example.com/v1/Widget",
        {.group = "example.com", .version = "v1", .kind = "Widget", .plural = "widgets", .namespaced = true},
        "\"spec\":{\"from\":\"a\",\"big\":9007199254740993,\"f\":1.5e300,\"list\":[1,[2,[3]],null,{\"x\":"
        "\"y\"}],\"deep\":{\"a\":{\"b\":{\"c\":{}}}}},\"status\":{}"},
    {"batch/v1/Job", {.group = "batch", .version = "v1", .kind = "Job", .plural = "jobs", .namespaced = true},
        "\"spec\":{\"manualSelector\":true,\"selector\":{\"matchLabels\":{\"app\":\"a\"}},"
        "\"template\":{\"metadata\":{\"labels\":{\"app\":\"a\"}},\"spec\":{\"restartPolicy\":\"Never\","
        "\"containers\":[{\"name\":\"c\","
        "\"image\":\"i\"}]}}},"
        "\"status\":{\"succeeded\":1}"},
    {"v1/Namespace", {.group = "", .version = "v1", .kind = "Namespace", .plural = "namespaces"},
        "\"spec\":{}"},
};
static const char *const NAME[NAMES] = {"a", "b", "going"};

struct world {
    kl_clock *clock;
    kl_listwatch *caches;
    kl_door *door;
    kind kinds[KINDS];
    uint64_t rv;
    world_rule rule;
    kl_random dice;
};

kl_caches *world_caches(world *w) { return kl_listwatch_caches(w->caches); }
kl_loop *world_loop(world *w) { return kl_listwatch_loop(w->caches); }
kl_loop *world_mapper(world *w) { return kl_listwatch_mapper(w->caches); }
void world_pump(world *w) { kl_listwatch_pump(w->caches); }
kl_clock *world_clock(world *w) { return w->clock; }
kl_door *world_door(world *w) { return w->door; }

/* --- what caches hear --------------------------------------------------------------------- */

static const kl_value *list_of(const kind *k, const kl_value *const *items, size_t n)
{
    kl_builder *b = kl_builder_new();
    char *name = kl_sprintf("%sList", k->resource.kind),
         *api = kl_api_version(k->resource.group, k->resource.version);
    kl_build_object(b);
    kl_build_kstr(b, "kind", name);
    kl_build_kstr(b, "apiVersion", api);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "resourceVersion", "1000");
    kl_build_end(b);
    kl_build_key(b, "items");
    kl_build_array(b);
    for (size_t i = 0; i < n; i++)
        kl_build_value(b, items[i]);
    kl_build_end(b);
    kl_build_end(b);
    kl_free(name);
    kl_free(api);
    return kl_builder_done(b);
}

static kind *kind_of(world *w, const kl_resource *r)
{
    for (int i = 0; i < KINDS; i++)
        if (r == &w->kinds[i].resource)
            return &w->kinds[i];
    return NULL;
}

static void each(void *arg, const kl_listwatch_feed *f, kl_listwatch_item *item, void *item_arg)
{
    size_t it = 0;
    const char *key;
    void *v;
    while (kl_map_next(kind_of(arg, f->resource)->objects, &it, &key, &v))
        (void)item(item_arg, v);
}

static bool hears(void *k, const kl_listwatch_feed *f) { return f->resource == &((kind *)k)->resource; }

static void tell(world *w, kind *k, const char *type, const kl_value *v)
{
    kl_listwatch_tell(w->caches, hears, k, type, v);
}

const kl_resource *world_resource(world *w, const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (!strcmp(name, w->kinds[i].name) || !strcmp(name, w->kinds[i].resource.kind))
            return &w->kinds[i].resource;
    return NULL;
}

static const kl_resource *resolve(void *w, const char *kind) { return world_resource(w, kind); }

/* --- objects ------------------------------------------------------------------------------ */

/* Takes the reference. */
static void put(world *w, kind *k, const kl_value *v)
{
    char *key = kl_object_key(v);
    const kl_value *old = kl_map_set(k->objects, key, (void *)v);
    kl_free(key);
    tell(w, k, old ? "MODIFIED" : "ADDED", v);
    kl_value_unref(old);
}

static void lose(world *w, kind *k, const char *key)
{
    const kl_value *v = kl_map_take(k->objects, key);
    if (v)
        tell(w, k, "DELETED", v);
    kl_value_unref(v);
}

static const char GOING[] = ",\"deletionTimestamp\":\"2026-01-02T03:04:06Z\"";

static const kl_value *made(world *w, const kind *k, const char *name, const char *going, const char *more)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    char *api = kl_api_version(k->resource.group, k->resource.version);
    char *text = kl_sprintf("{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\"%s,\"uid\":"
                            "\"u-%s\",\"generation\":1,\"resourceVersion\":\"%llu\","
                            "\"creationTimestamp\":\"2026-01-02T03:04:05Z\",\"labels\":{\"app\":\"a\",\"x.y/"
                            "z\":\"1\"},\"annotations\":{\"note\":\"n\"},\"finalizers\":"
                            "[\"kubelua.dev/hunt\"]%s%s},%s}",
        api, k->resource.kind, name, k->resource.namespaced ? ",\"namespace\":\"default\"" : "", name,
        (unsigned long long)++w->rv, strcmp(name, "going") ? "" : going, more, k->body);
    if (kl_value_decode(text, strlen(text), &v, &err))
        hunt_wrong("the world's own object: %s", kl_err_message(&err));
    kl_free(text);
    kl_free(api);
    return v;
}

void world_begin(world *w, world_rule rule, uint64_t dice)
{
    w->rule = rule;
    w->dice = (kl_random){dice};
    for (int i = 0; i < KINDS; i++) {
        kind *k = &w->kinds[i];
        if (!k->dirty)
            continue;
        char **keys = kl_map_sorted_keys(k->objects);
        for (char **key = keys; *key; key++) {
            char *one = kl_strdup(*key);
            lose(w, k, one);
            kl_free(one);
        }
        kl_free(keys);
        for (int n = 0; n < NAMES; n++)
            put(w, k, made(w, k, NAME[n], GOING, ""));
        k->dirty = false;
    }
    world_pump(w);
}

void world_happen(world *w)
{
    uint64_t dice = kl_random_next(&w->dice);
    kind *k = &w->kinds[dice % KINDS];
    char *key = kl_key_join(k->resource.namespaced ? "default" : NULL, NAME[dice / KINDS % NAMES]);
    k->dirty = true;
    if (dice / 256 % 8 == 0)
        lose(w, k, key);
    else
        put(w, k,
            made(w, k, NAME[dice / KINDS % NAMES], GOING,
                dice / 256 % 2 ? ",\"deletionGracePeriodSeconds\":30" : ""));
    kl_free(key);
}

void world_each(world *w, void (*fn)(void *arg, const kl_value *v), void *arg)
{
    for (int i = 0; i < KINDS * NAMES; i++) {
        const kl_value *v = made(w, &w->kinds[i / NAMES], NAME[i % NAMES], GOING, "");
        fn(arg, v);
        kl_value_unref(v);
    }
}

void world_change(world *w, kl_random *dice, void (*fn)(void *arg, const kl_value *v), void *arg)
{
    uint64_t n = kl_random_next(dice);
    char *more = kl_sprintf(",\"generateName\":\"g%u\"", (unsigned)(n >> 32) % 1000);
    /* the stage's server sets a deletionTimestamp itself, and takes none */
    const kl_value *v = made(w, &w->kinds[n % KINDS], NAME[n / KINDS % NAMES], "", more);
    fn(arg, v);
    kl_value_unref(v);
    kl_free(more);
}

/* --- the server --------------------------------------------------------------------------- */

typedef struct answer {
    kl_status status;
    int code;
    const kl_value *body;
} answer;

static kind *kind_asked(world *w, const kl_op *op)
{
    const kl_resource *r = op->resource ? kind_of(w, op->resource) ? op->resource : NULL
        : op->kind                      ? world_resource(w, op->kind)
                                        : NULL;
    return r ? kind_of(w, r) : NULL;
}

static answer listed(kind *k)
{
    const kl_value *items[64];
    size_t n = 0, it = 0;
    const char *key;
    void *v;
    while (n < 64 && kl_map_next(k->objects, &it, &key, &v))
        items[n++] = v;
    return (answer){KL_OK, 200, list_of(k, items, n)};
}

static answer simulated(world *w, kind *k, const kl_op *op, const char *ns, const char *key, kl_err *err)
{
    kl_simulated s = {0};
    kl_status st = kl_simulate(&(kl_simulation){.op = op,
                                   .resource = &k->resource,
                                   .ns = ns,
                                   .base = key ? kl_map_get(k->objects, key) : NULL,
                                   .wall = kl_clock_wall(w->clock),
                                   .number = ++w->rv},
        &s, err);
    if (st)
        return (answer){st, err->http_code, NULL};
    char *made_key = s.object ? kl_object_key(s.object) : NULL;
    if (!op->dry_run && s.changed) {
        k->dirty = true;
        if (made_key)
            put(w, k, kl_value_ref(s.object));
        else if (!s.object && key)
            lose(w, k, key);
    }
    answer a = {KL_OK, s.code, kl_value_ref(s.answer)};
    kl_free(made_key);
    kl_simulated_fini(&s);
    return a;
}

/* A server outside: what it may say, good and bad. */
static answer web(uint64_t dice)
{
    static const char *const SAID[] = {
        "{\"status\":200,\"url\":\"https://a.example.com/v1\",\"headers\":{\"etag\":\"x\",\"set-cookie\":"
        "[\"a\",\"b\"]},\"json\":{\"items\":[{\"name\":\"a\"},null,1e300]}}",
        "{\"status\":201,\"headers\":{},\"body\":\"x\\u0000y\"}",
        "{\"status\":200,\"headers\":{},\"base64\":\"//79\"}",
        "{\"status\":204,\"headers\":{},\"body\":\"\"}"};
    const kl_value *v = NULL;
    const char *text = SAID[dice % (sizeof SAID / sizeof *SAID)];
    if (kl_value_decode(text, strlen(text), &v, NULL))
        hunt_wrong("the answer of a server outside does not parse");
    return (answer){KL_OK, 200, v};
}

static answer answered(world *w, const kl_op *op, kl_err *err)
{
    static const struct {
        kl_status status;
        int code;
        const char *text;
    } TROUBLE[] = {{KL_ECONFLICT, 409, "the object has been modified"}, {KL_EFORBIDDEN, 403, "may not"},
        {KL_ESERVER, 503, "busy"}, {KL_ECONNECT, 0, "away"}};
    kind *k = op->verb == KL_HTTP ? NULL : kind_asked(w, op);
    uint64_t dice = kl_random_next(&w->dice);
    if (op->verb == KL_HTTP && dice % 16)
        return web(dice / 16);
    if (!k && op->verb != KL_HTTP)
        return (answer){kl_fail(err, KL_ENOTFOUND, "the server has no such kind"), 404, NULL};
    if (dice % 16 == 0) {
        size_t n = dice / 16 % (sizeof TROUBLE / sizeof *TROUBLE);
        kl_status st = kl_fail(err, TROUBLE[n].status, "%s", TROUBLE[n].text);
        err->http_code = TROUBLE[n].code;
        return (answer){st, TROUBLE[n].code, NULL};
    }
    if (op->verb == KL_LIST)
        return listed(k);
    const char *ns = k->resource.namespaced ? op->ns ? op->ns : op->default_ns : NULL, *name = kl_op_name(op);
    char *key = name ? kl_key_join(ns, name) : NULL;
    answer a;
    if (op->verb == KL_GET && key && kl_map_get(k->objects, key))
        a = (answer){KL_OK, 200, kl_value_ref(kl_map_get(k->objects, key))};
    else if (op->verb == KL_GET || op->verb == KL_WATCH)
        a = (answer){kl_fail(err, KL_ENOTFOUND, "not found"), 404, NULL};
    else
        a = simulated(w, k, op, ns, key, err);
    kl_free(key);
    return a;
}

static uint64_t send(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    world *w = arg;
    bool web = op->verb == KL_HTTP, write = web ? !kl_web_reads(op) : kl_verb_is_write(op->verb);
    kl_err err = KL_ERR_INIT;
    if (web && kl_web_check(op, &err))
        hunt_wrong("a request left for where no rule leads: %s", kl_err_message(&err));
    the_page->web += web;
    if (write && w->rule == WORLD_DRY_RUN && !op->dry_run)
        hunt_wrong("a write left a dry run: %s %s", kl_verb_name(op->verb), op->kind ? op->kind : "");
    if (write && w->rule == WORLD_NOT_LEADING)
        hunt_wrong("a write left without the lease: %s %s", kl_verb_name(op->verb), op->kind ? op->kind : "");
    the_page->calls++;
    the_page->writes += write;
    answer a = answered(w, op, &err);
    done(done_arg, a.status, a.code, a.body, &err);
    kl_value_unref(a.body);
    kl_err_fini(&err);
    return kl_listwatch_id(w->caches);
}

static void cancel(void *arg, uint64_t id) { (void)arg, (void)id; }

/* --- a recording -------------------------------------------------------------------------- */

static void record_kinds(world *w, kl_buf *b)
{
    kl_buf_printf(b,
        "{\"t\":\"tape\",\"format\":1,\"version\":\"0\",\"recording\":\"hunt\",\"file\":1,\"at\":1,"
        "\"secrets\":\"redacted\",\"scripts\":[]}\n");
    for (int i = 0; i < KINDS; i++) {
        const kl_resource *r = &w->kinds[i].resource;
        kl_buf_printf(b,
            "{\"t\":\"kind\",\"kind\":\"%s\",\"group\":\"%s\",\"version\":\"%s\",\"is\":\"%s\","
            "\"plural\":\"%s\",\"namespaced\":%s,\"sub\":[\"status\"]}\n",
            w->kinds[i].name, r->group, r->version, r->kind, r->plural, r->namespaced ? "true" : "false");
        kl_buf_printf(b, "{\"t\":\"cache\",\"c\":%d,\"label\":\"%s\",\"kind\":\"%s\"}\n", i + 1,
            w->kinds[i].name, w->kinds[i].name);
    }
}

static void record_objects(world *w, kl_buf *b)
{
    for (int i = 0; i < KINDS * NAMES; i++) {
        const kl_value *v = made(w, &w->kinds[i / NAMES], NAME[i % NAMES], GOING, "");
        kl_buf_printf(b, "{\"t\":\"put\",\"c\":%d,\"o\":%d,\"v\":", i / NAMES + 1, i + 1);
        kl_value_encode(v, b);
        kl_buf_printf(b, "}\n");
        kl_value_unref(v);
    }
    for (int i = 0; i < KINDS; i++)
        kl_buf_printf(b, "{\"t\":\"synced\",\"c\":%d}\n", i + 1);
}

/* One that read, waited, asked and wrote. */
static void record_run(kl_buf *b, const char *key, int n, int object)
{
    kl_buf_printf(b,
        "{\"t\":\"began\",\"r\":\"r%d\",\"at\":%d000000000,\"controller\":\"hunt\",\"worker\":1,"
        "\"key\":\"%s\",\"attempt\":1,\"generation\":1,\"epoch\":0,\"o\":%d,\"why\":\"added\","
        "\"events\":1}\n"
        "{\"t\":\"get\",\"r\":\"r%d\",\"kind\":\"v1/ConfigMap\",\"ns\":\"default\",\"name\":\"a\","
        "\"o\":1}\n{\"t\":\"set\",\"s\":%d,\"ids\":[1,2]}\n"
        "{\"t\":\"list\",\"r\":\"r%d\",\"kind\":\"v1/ConfigMap\",\"query\":\"\",\"s\":%d}\n"
        "{\"t\":\"clock\",\"r\":\"r%d\",\"at\":%d000000001}\n",
        n, n, key, object, n, n, n, n, n, n);
    kl_buf_printf(b,
        "{\"t\":\"asked\",\"r\":\"r%d\",\"n\":1,\"what\":\"sleep\",\"wait\":5}\n"
        "{\"t\":\"answered\",\"r\":\"r%d\",\"n\":1,\"at\":%d000000002}\n"
        "{\"t\":\"asked\",\"r\":\"r%d\",\"n\":2,\"what\":\"call\",\"op\":{\"verb\":\"patch\","
        "\"kind\":\"v1/ConfigMap\",\"ns\":\"default\",\"name\":\"a\",\"patch\":\"merge\","
        "\"body\":{\"data\":{\"a\":\"2\"}},\"manager\":\"hunt\"}}\n"
        "{\"t\":\"answered\",\"r\":\"r%d\",\"n\":2,\"at\":%d000000003,\"error\":{\"is\":\"conflict\","
        "\"code\":409,\"reason\":\"Conflict\",\"message\":\"modified\"}}\n"
        "{\"t\":\"ended\",\"r\":\"r%d\",\"at\":%d000000004,\"result\":\"done\"}\n",
        n, n, n, n, n, n, n, n);
}

char *world_recording(world *w, const char *kind)
{
    kl_buf b = KL_BUF_INIT;
    int k = 0;
    while (k < KINDS - 1 && strcmp(kind, w->kinds[k].name))
        k++;
    record_kinds(w, &b);
    record_objects(w, &b);
    for (int i = 0; i < NAMES; i++) {
        char *key = kl_key_join(w->kinds[k].resource.namespaced ? "default" : NULL, NAME[i]);
        record_run(&b, key, i + 1, k * NAMES + i + 1);
        kl_free(key);
    }
    char *text = kl_strdup(kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

/* --- life --------------------------------------------------------------------------------- */

world *world_new(void)
{
    world *w = kl_new(world);
    w->rv = 1000;
    w->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1800000000));
    w->door = kl_door_new(
        &(kl_door_options){.send = send, .cancel = cancel, .send_arg = w, .clock = w->clock});
    for (int i = 0; i < KINDS; i++) {
        kind *k = &w->kinds[i];
        *k = KIND[i];
        k->resource.subresources = (char **)SUBRESOURCES;
        k->objects = kl_map_new();
        k->dirty = true;
    }
    w->caches = kl_listwatch_new(&(kl_listwatch_options){.name = "hunt",
        .clock = w->clock,
        .timers = true,
        .where = "the server",
        .resolve = resolve,
        .each = each,
        .arg = w});
    world_begin(w, WORLD_LEADS, 1);
    return w;
}

static void value_free(void *v) { kl_value_unref(v); }

void world_free(world *w)
{
    kl_listwatch_free(w->caches);
    kl_door_free(w->door);
    for (int i = 0; i < KINDS; i++)
        kl_map_free(w->kinds[i].objects, value_free);
    kl_clock_fake_free(w->clock);
    kl_free(w);
}
