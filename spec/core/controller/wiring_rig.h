/* wiring_rig.h - a cluster of scripted kinds, and one controller wired to it: caches, loops, queue and
 * clock without a thread.
 *
 * The spec answers the lists and watches of each kind by hand (support/fake_source.h); pump runs what was
 * posted until all is quiet. The program's functions are small and written in C. */
#ifndef KL_SPEC_WIRING_RIG_H
#define KL_SPEC_WIRING_RIG_H

#include "support/fake_source.h"

#include "base/buf.h"
#include "base/heap.h"
#include "base/log.h"
#include "model/object.h"
#include "controller/wiring.h"

#define RIG_KINDS 4
/* Posted work may post more, across sources and loops; nothing here does so more often than this. */
#define PUMP_ROUNDS 8

typedef struct rig_kind {
    const char *name; /* "v1/Secret" */
    kl_resource resource;
    fake_source f;
    bool missing;        /* the server does not have it */
    int sources;         /* informers made so far */
    kl_projection *keep; /* what the last of them keeps */
} rig_kind;

typedef struct rig {
    kl_clock *clock;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    kl_workqueue *queue;
    kl_wiring *w;
    kl_program program;
    kl_controller_spec spec;
    rig_kind kinds[RIG_KINDS];
    int opened, mapped, asked, changed;
    int held, released; /* since the spec last looked */
    bool lulls, fn_fails, open_fails, gone;
    kl_buf log;
} rig;

enum { APP, SECRET, MAP, NODE };

/* --- the program's functions -------------------------------------------------------------- */

static rig *rig_of_program(kl_program *p) { return KL_CONTAINER(p, rig, program); }

static void *rig_open(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    (void)controller, (void)stop;
    rig *r = rig_of_program(p);
    if (r->open_fails && kl_fail(err, KL_ESCRIPT, "not enough memory"))
        return NULL;
    r->opened++;
    return r;
}

static void rig_close(void *state) { ((rig *)state)->opened--; }

/* A Secret wakes the App that its data names, and the map of the same name when the cache has it. */
static kl_status rig_map(void *state, size_t fn, kl_reader *reader, const kl_value *object,
    kl_emit_fn *emit_key, void *arg, kl_err *err)
{
    rig *r = state;
    const kl_value *seen = NULL;
    (void)fn;
    r->mapped++;
    if (r->fn_fails)
        return kl_fail(err, KL_ESCRIPT, "x.lua:3: no field 'app'");
    const char *app = kl_value_str_at(object, "app", NULL);
    if (app)
        emit_key(arg, app);
    if (!kl_reader_get(reader, "v1/Secret", kl_object_namespace(object), kl_object_name(object), &seen, err))
        kl_value_unref(seen);
    return KL_OK;
}

static kl_status rig_index(
    void *state, size_t fn, const kl_value *object, kl_emit_fn *emit_value, void *arg, kl_err *err)
{
    rig *r = state;
    (void)fn;
    if (r->fn_fails)
        return kl_fail(err, KL_ESCRIPT, "x.lua:9: no field 'from'");
    const char *from = kl_value_str_at(object, "spec", "from", NULL);
    if (from) {
        char *text = kl_sprintf("%s/%s", kl_object_namespace(object), from);
        emit_value(arg, text);
        kl_free(text);
    }
    return KL_OK;
}

/* Only changes of spec.from count. */
static kl_status rig_predicate(
    void *state, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err)
{
    rig *r = state;
    (void)fn;
    r->asked++;
    if (r->fn_fails)
        return kl_fail(err, KL_ESCRIPT, "x.lua:5: no field 'spec'");
    *pass = !kl_value_equal(kl_value_at(now, "spec", "from", NULL), kl_value_at(old, "spec", "from", NULL));
    return KL_OK;
}

static void rig_free(kl_program *p) { (void)p; }

static const kl_program_ops rig_ops = {.open = rig_open,
    .close = rig_close,
    .map = rig_map,
    .index = rig_index,
    .predicate = rig_predicate,
    .free = rig_free};

/* --- the cluster -------------------------------------------------------------------------- */

static void rig_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    rig *r = arg;
    for (int i = 0; i < RIG_KINDS; i++)
        if (!strcmp(kind, r->kinds[i].name) && !r->kinds[i].missing) {
            done(done_arg, KL_OK, &r->kinds[i].resource, NULL);
            return;
        }
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_fail(&err, KL_ENOTFOUND, "the server has no kind %s", kind);
    done(done_arg, st, NULL, &err);
    kl_err_fini(&err);
}

static void rig_forget(void *arg) { (void)arg; }

static void rig_source(void *arg, const kl_resource *res, const kl_cache_source *want, kl_source *out)
{
    rig *r = arg;
    for (int i = 0; i < RIG_KINDS; i++)
        if (&r->kinds[i].resource == res) {
            r->kinds[i].sources++;
            r->kinds[i].keep = want->keep;
            *out = fake_source_of(&r->kinds[i].f);
            out->lulls = r->lulls;
            return;
        }
    fail_msg("a source for a resource that nobody resolved");
}

static void rig_changed(void *arg) { ((rig *)arg)->changed++; }

static void rig_log(void *arg, kl_log_level level, const char *message, const char *fields)
{
    if (level >= KL_LOG_WARN)
        kl_buf_printf(&((rig *)arg)->log, "%s: %s\n", message, fields);
}

static void rig_init(rig *r)
{
    static const struct {
        const char *name;
        kl_resource resource;
    } kinds[RIG_KINDS] = {
        {"example.com/v1/App",
            {.group = "example.com", .version = "v1", .kind = "App", .plural = "apps", .namespaced = true}},
        {"v1/Secret",
            {.group = "", .version = "v1", .kind = "Secret", .plural = "secrets", .namespaced = true}},
        {"v1/ConfigMap",
            {.group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps", .namespaced = true}},
        {"v1/Node", {.group = "", .version = "v1", .kind = "Node", .plural = "nodes", .namespaced = false}},
    };
    *r = (rig){0};
    r->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000));
    r->loop = kl_loop_new("control", r->clock);
    r->mapper = kl_loop_new("mapper", r->clock);
    r->queue = kl_workqueue_new(
        &(kl_workqueue_options){.backoff = {KL_SECONDS(1), KL_SECONDS(100), 0}, .forget = kl_cause_forget});
    for (int i = 0; i < RIG_KINDS; i++) {
        rig_kind *k = &r->kinds[i];
        k->name = kinds[i].name;
        k->resource = kinds[i].resource;
        fake_init(&k->f);
        kl_clock_fake_free(k->f.clock);
        k->f.clock = r->clock;
        k->f.freed = true; /* until an informer takes it */
    }
    r->caches = kl_caches_new(
        &(kl_caches_options){.origin = &(kl_caches_origin){rig_resolve, rig_forget, rig_source, r},
            .clock = r->clock,
            .loop = r->loop,
            .mapper = r->mapper,
            .changed = rig_changed,
            .changed_arg = r});
    r->program = (kl_program){.ops = &rig_ops, .name = "spec", .specs = &r->spec, .n_specs = 1};
    r->spec = (kl_controller_spec){.name = "ctl", .resource = "example.com/v1/App"};
    kl_log_set_level(KL_LOG_WARN);
    kl_log_set_sink(rig_log, r);
}

/* Runs what was posted anywhere. */
static void pump(rig *r)
{
    for (int n = 0; n < PUMP_ROUNDS; n++) {
        for (int i = 0; i < RIG_KINDS; i++)
            fake_pump(&r->kinds[i].f);
        kl_loop_step(r->loop);
        kl_loop_step(r->mapper);
    }
}

static void rig_hold(void *r) { ((rig *)r)->held++; }
static void rig_release(void *r) { ((rig *)r)->released++; }

static void rig_gone(void *r) { ((rig *)r)->gone = true; }

static kl_wiring *wire(rig *r, int generation)
{
    kl_wiring *w = kl_wiring_new(&(kl_wiring_options){.caches = r->caches,
        .loop = r->loop,
        .mapper = r->mapper,
        .clock = r->clock,
        .queue = r->queue,
        .program = &r->program,
        .index = 0,
        .generation = generation,
        .gone = rig_gone,
        .gone_arg = r,
        .hold = rig_hold,
        .release = rig_release,
        .hold_arg = r});
    pump(r);
    kl_wiring_advance(w);
    pump(r);
    return w;
}

/* Everything that is listing gets an empty list (but for what the spec put there before), and its watch
 * opens. */
static void sync_all(rig *r)
{
    for (int i = 0; i < RIG_KINDS; i++)
        if (r->kinds[i].f.open == FAKE_LIST) {
            fake_listed(&r->kinds[i].f, "100", NULL);
            fake_opens(&r->kinds[i].f);
        }
    pump(r);
}

/* The spec's controller, synced and active. */
static void rig_start(rig *r)
{
    r->w = wire(r, 1);
    assert_false(kl_wiring_advance(r->w));
    sync_all(r);
    assert_true(kl_wiring_advance(r->w));
    kl_wiring_activate(r->w);
}

static void rig_fini(rig *r)
{
    if (r->w)
        kl_wiring_retire(r->w);
    pump(r);
    kl_caches_free(r->caches);
    kl_loop_free(r->loop);
    kl_loop_free(r->mapper);
    assert_int_equal(r->opened, 0);
    for (int i = 0; i < RIG_KINDS; i++) {
        assert_true(r->kinds[i].f.freed);
        assert_null(r->kinds[i].f.first);
        kl_mutex_fini(&r->kinds[i].f.mu);
    }
    kl_log_set_sink(NULL, NULL);
    kl_workqueue_free(r->queue);
    kl_clock_fake_free(r->clock);
    kl_buf_fini(&r->log);
}

/* --- objects and keys --------------------------------------------------------------------- */

/* JSON of an object of namespace ns; `rest` goes beside metadata, `meta` into it. Good for four calls. */
static const char *thing(const char *name, int rv, const char *meta, const char *rest)
{
    static char text[4][768];
    static int turn;
    char *out = text[turn++ % 4];
    snprintf(out, sizeof text[0],
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"u-%s\",\"resourceVersion\":\"%d\"%s%s}"
        "%s%s}",
        name, name, rv, *meta ? "," : "", meta, *rest ? "," : "", rest);
    return out;
}

/* What the queue holds now, taken out: "ns/a ns/b". */
static inline const char *taken(rig *r)
{
    static char text[256];
    kl_queue_item item;
    text[0] = 0;
    pump(r);
    while (kl_workqueue_try_get(r->queue, kl_clock_now(r->clock), &item)) {
        size_t n = strlen(text);
        snprintf(text + n, sizeof text - n, "%s%s", n ? " " : "", item.key);
        kl_workqueue_finish(r->queue, &item, kl_clock_now(r->clock));
    }
    return text;
}

#define assert_taken(r, text) assert_string_equal(taken(r), text)

#endif
