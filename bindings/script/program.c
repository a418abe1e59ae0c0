/* program.c - a script as a program of the runtime: its load, and the states of its workers. Runs are in
 * runs.c, functions for the mapper in functions.c. */
#include "script/program.h"

#include <string.h>

#include "base/mem.h"
#include "script/specs.h"
#include "script/worker.h"

typedef struct lkl_program {
    kl_program base; /* first */
    lkl_bundle bundle;
    lkl_isolation isolation;
    uint64_t digest;
    char *description;
    const kl_value *tables;
    lkl_state *_Atomic loaded; /* the state of the load, until a worker takes it */
} lkl_program;

static lkl_program *self(const kl_program *p) { return (lkl_program *)(void *)p; }

/* --- states ------------------------------------------------------------------------------- */

/* Pushes `body` with its two upvalues. */
static int make_body(lua_State *L)
{
    lkl__worker *w = lua_touserdata(L, 1);
    lkl_state_push(L, w->hook ? "review" : "run");
    lkl_state_push(L, "list");
    lua_rawgeti(L, -1, (lua_Integer)w->controller + 1);
    lua_remove(L, -2);
    lua_pushcclosure(L, lkl__run_body, 2);
    w->body = luaL_ref(L, LUA_REGISTRYINDEX);
    return 0;
}

static void close_state(void *state)
{
    lkl__worker *w = state;
    for (lkl__key *k; (k = w->pool); kl_free(k))
        w->pool = k->next;
    lkl_state_free(w->lua);
    kl_free(w);
}

/* Takes the state of the load, once; the caller owns it. Making a state takes milliseconds, and a reload
 * waits for a program's first one. */
static lkl_state *take_loaded(lkl_program *p)
{
    lkl_state *s = atomic_exchange(&p->loaded, NULL);
    if (s)
        lkl_adopt(s->L);
    return s;
}

static void *open_state(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    lkl_program *me = self(p);
    lkl__worker *w = kl_new(lkl__worker);
    w->lua = take_loaded(me);
    if (!w->lua && lkl_state_new(&me->bundle, NULL, NULL, &w->lua, err)) {
        kl_free(w);
        return NULL;
    }
    w->controller = controller;
    w->stop = stop;
    w->hook = controller >= p->n_specs;
    w->lua->controller = kl_program_spec(p, controller)->name;
    w->lua->spec = kl_program_spec(p, controller);
    lkl__border(w->lua->L)->cuts = w->lua->spec->n_fields ? w->lua->spec : NULL;
    lua_pushcfunction(w->lua->L, make_body);
    lua_pushlightuserdata(w->lua->L, w);
    if (lua_pcall(w->lua->L, 1, 0, 0)) {
        char *text = lkl_state_error(w->lua->L);
        kl_status st = kl_fail(err, KL_ESCRIPT, "%s", text);
        (void)st;
        kl_free(text);
        close_state(w);
        return NULL;
    }
    lkl_gc_start(w->lua);
    if (w->lua->spec->memory)
        w->lua->ceiling.max = w->lua->spec->memory;
    return w;
}

kl_terms lkl__worker_terms(const lkl__worker *w, const kl_run *run)
{
    kl_time cpu = w->lua->spec->cpu;
    return (kl_terms){.cpu = cpu ? cpu : LKL_CPU_DEFAULT,
        .deadline = run ? kl_run_deadline(run) : KL_NEVER,
        .stop = w->stop};
}

char *lkl__worker_too_big(const lkl__worker *w)
{
    char *other = lkl_ceiling_tell_other(&w->lua->ceiling);
    if (other)
        return other;
    const char *where = w->lua->ceiling.where;
    size_t max = w->lua->ceiling.max;
    bool whole = !(max & ((1u << 20) - 1));
    return kl_sprintf("%s%snot enough memory: a worker's state may hold %zu%s (`memory` of %s); raise it, or "
                      "keep less data at once",
        where, *where ? ": " : "", whole ? max >> 20 : max >> 10, whole ? "Mi" : "Ki", w->lua->controller);
}

void lkl__worker_make_room(lkl__worker *w)
{
    lua_gc(w->lua->L, LUA_GCCOLLECT);
    w->lua->worn |= lkl_ceiling_is_worn(&w->lua->ceiling);
}

/* --- loading ------------------------------------------------------------------------------ */

static void program_free(kl_program *p)
{
    lkl_program *me = self(p);
    for (size_t i = 0; i < p->n_specs; i++)
        kl_controller_spec_fini(&p->specs[i]);
    kl_free(p->specs);
    for (size_t i = 0; i < p->n_hooks; i++)
        kl_webhook_spec_fini(&p->hooks[i]);
    kl_free(p->hooks);
    kl_value_unref(p->metrics);
    lkl_state_free(take_loaded(me));
    kl_value_unref(p->crds);
    kl_value_unref(me->tables);
    kl_free(me->description);
    lkl_bundle_fini(&me->bundle);
    kl_free(me);
}

/* Of a program that has its bundle. */
static kl_status load_bundle(lkl_program *p, kl_program **out, kl_err *err)
{
    static const kl_program_ops ops = {.open = open_state,
        .close = close_state,
        .start = lkl__run_start,
        .resume = lkl__run_resume,
        .rest = lkl__run_rest,
        .worn = lkl__run_worn,
        .abandon = lkl__run_abandon,
        .map = lkl__call_map,
        .index = lkl__call_index,
        .predicate = lkl__call_predicate,
        .free = program_free};
    p->base.ops = &ops;
    p->base.name = p->bundle.sources[0].path;
    atomic_init(&p->base.refs, 1);
    lkl_state *loaded = NULL;
    lkl_specs read = {.program = &p->base};
    kl_status st = lkl_state_new(&p->bundle, lkl__read_specs, &read, &loaded, err);
    atomic_init(&p->loaded, loaded);
    p->description = read.description;
    p->tables = read.tables;
    if (!st)
        st = lkl_isolate_apply(&p->base, err);
    if (st) {
        program_free(&p->base);
        return st;
    }
    if (p->base.ops != &ops) /* its states are processes */
        lkl_state_free(take_loaded(p));
    p->digest = lkl_bundle_digest(&p->bundle);
    *out = &p->base;
    return KL_OK;
}

kl_status lkl_program_load(const char *path, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    kl_status st = lkl_bundle_init(&p->bundle, path, err);
    if (!st)
        return load_bundle(p, out, err);
    kl_free(p);
    return st;
}

kl_status lkl_program_load_text(const char *path, const char *text, size_t len, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    lkl_bundle_init_text(&p->bundle, path, text, len);
    return load_bundle(p, out, err);
}

kl_status lkl_program_load_texts(
    const char *name, const kl_value *texts, const char *main, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    kl_status st = lkl_bundle_init_texts(&p->bundle, name, texts, main, err);
    if (!st)
        return load_bundle(p, out, err);
    kl_free(p);
    return st;
}

kl_status lkl_program_load_bundle(lkl_bundle *bundle, kl_program **out, kl_err *err)
{
    lkl_program *p = kl_new(lkl_program);
    p->bundle = *bundle;
    return load_bundle(p, out, err);
}

const lkl_bundle *lkl_program_bundle(const kl_program *p) { return &self(p)->bundle; }
lkl_isolation *lkl_program_isolation(kl_program *p) { return &self(p)->isolation; }
uint64_t lkl_program_digest(const kl_program *p) { return self(p)->digest; }
const char *const *lkl_program_files(const kl_program *p) { return self(p)->bundle.paths; }
const kl_value *lkl_program_tables(const kl_program *p) { return self(p)->tables; }

char *lkl_program_describe(const kl_program *p) { return kl_strdup(self(p)->description); }
