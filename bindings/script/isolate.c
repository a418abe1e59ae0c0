/* isolate.c - both ends of an isolated script: here its states, which are other processes; there such a
 * process.
 *
 *   here:  open -> kl_isolate_open(sources) ...
 *   there: BOOT -> limits and filter -> load -> open -> READY -> kl_far_serve */
#include "script/isolate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/base64.h"
#include "isolate/jail.h"
#include "base/mem.h"
#include "state/budget.h"
#include "state/ceiling.h"
#include "model/time.h"
#include "script/program.h"
#include "isolate/far.h"
#include "isolate/isolate.h"

/* A process is killed when its turn takes this much longer than its budgets. */
#define PATIENCE KL_SECONDS(5)
/* The pause after the second death in a row. It doubles with each further death, up to REST_MAX. */
#define REST_FIRST KL_MILLISECONDS(500)
#define REST_MAX KL_SECONDS(30)
/* Address space beyond the script's budget: for messages, decoded values and the allocator. */
#define ROOM ((size_t)64 << 20)
#define MESSAGE_MIN ((size_t)16 << 20)
#define MESSAGE_MAX ((size_t)64 << 20)
/* The exit status of a process that has no memory left (core/isolate/isolate.c). */
#define NO_MEMORY 9

static atomic_bool offered, all, is_child;

void lkl_isolate_offer(void) { atomic_store(&offered, true); }
void lkl_isolate_all(void) { atomic_store(&all, true); }

/* --- states that are processes ------------------------------------------------------------ */

typedef struct state {
    kl_program *program;
    lkl_isolation *of;
    size_t controller;
    const atomic_bool *stop;
    void *here;        /* in this process: a state of of->here; or NULL */
    bool counted;      /* its death has been counted */
    kl_isolate *there; /* or in another one; NULL after a failure to open it again */
} state;

static bool wants(const kl_program *p, size_t controller)
{
    return atomic_load(&all) || kl_program_spec(p, controller)->isolate;
}

static size_t memory_of(const kl_controller_spec *s) { return s->memory ? s->memory : LKL_MEMORY_DEFAULT; }

static size_t message_of(const kl_controller_spec *s)
{
    size_t n = memory_of(s);
    return n < MESSAGE_MIN ? MESSAGE_MIN : n > MESSAGE_MAX ? MESSAGE_MAX : n;
}

static void build_sources(kl_builder *b, const lkl_bundle *bundle)
{
    kl_build_key(b, "sources");
    kl_build_array(b);
    for (size_t i = 0; i < bundle->n; i++) {
        const lkl_source *s = &bundle->sources[i];
        char *text = kl_base64_encode(s->text, s->len); /* which may be no UTF-8 */
        kl_build_array(b);
        kl_build_str(b, s->module);
        kl_build_str(b, s->path);
        kl_build_str(b, text);
        kl_build_end(b);
        kl_free(text);
    }
    kl_build_end(b);
}

static const kl_value *boot_value(const kl_program *p, size_t controller)
{
    const kl_controller_spec *spec = kl_program_spec(p, controller);
    const lkl_bundle *bundle = lkl_program_bundle(p);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "controller", (int64_t)controller);
    kl_build_kint(b, "memory", (int64_t)(2 * memory_of(spec) + 3 * message_of(spec) + ROOM));
    kl_build_kstr(b, "dir", bundle->dir);
    build_sources(b, bundle);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* A process that dies again and again is not restarted at once. */
static kl_status may_open(const lkl_isolation *of, const char *name, kl_err *err)
{
    kl_time left = atomic_load(&of->until) - kl_clock_now(kl_clock_real());
    char t[KL_DURATION_MAX];
    return left <= 0
        ? KL_OK
        : kl_fail(err, KL_EAGAIN,
            "the isolated Lua process of %s died %d times in a row; the next one is started in %s", name,
            atomic_load(&of->deaths), kl_duration_format(left, t));
}

static kl_status begin(state *s, kl_err *err)
{
    static const char *const argv[] = {"kubelua", LKL_ISOLATE_WORD, NULL};
    const kl_controller_spec *spec = kl_program_spec(s->program, s->controller);
    /* A program with a loader of its own is started by a script: /proc/self/exe would be the loader. */
    const char *own = getenv("KUBELUA_SELF");
    kl_status st = may_open(s->of, spec->name, err);
    if (st)
        return st;
    const kl_value *boot = boot_value(s->program, s->controller);
    st = kl_isolate_open(&(kl_isolate_order){.program = s->program,
                             .controller = s->controller,
                             .path = own ? own : "/proc/self/exe",
                             .argv = argv,
                             .boot = boot,
                             .stop = s->stop,
                             .cpu = spec->cpu ? spec->cpu : LKL_CPU_DEFAULT,
                             .patience = PATIENCE,
                             .message = message_of(spec)},
        &s->there, NULL, err);
    kl_value_unref(boot);
    return st;
}

static void *open_state(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    state *s = kl_new(state);
    *s = (state){.program = p, .of = lkl_program_isolation(p), .controller = controller, .stop = stop};
    if (!wants(p, controller))
        s->here = s->of->here->open(p, controller, stop, err);
    else if (begin(s, err))
        s->there = NULL;
    if (s->here || s->there)
        return s;
    kl_free(s);
    return NULL;
}

static void close_state(void *of)
{
    state *s = of;
    if (s->here)
        s->of->here->close(s->here);
    kl_isolate_close(s->there);
    kl_free(s);
}

/* After a turn: counts a death; a turn that ends well resets the count. */
static void note(state *s)
{
    if (!kl_isolate_dead(s->there)) {
        atomic_store(&s->of->deaths, 0);
        return;
    }
    if (s->counted)
        return;
    s->counted = true;
    int n = atomic_fetch_add(&s->of->deaths, 1);
    kl_time rest = n ? REST_FIRST : 0;
    for (int k = 1; k < n && rest < REST_MAX; k++)
        rest *= 2;
    atomic_store(&s->of->until, kl_clock_now(kl_clock_real()) + (rest < REST_MAX ? rest : REST_MAX));
}

static kl_run_state drive(state *s, kl_run *run, kl_run_state (*here)(void *, kl_run *),
    kl_run_state (*there)(kl_isolate *, kl_run *))
{
    if (s->here)
        return here(s->here, run);
    kl_run_state state = there(s->there, run);
    note(s);
    return state;
}

static kl_run_state start(void *of, kl_run *run)
{
    state *s = of;
    return drive(s, run, s->of->here->start, kl_isolate_start);
}

static kl_run_state resume(void *of, kl_run *run)
{
    state *s = of;
    return drive(s, run, s->of->here->resume, kl_isolate_resume);
}

static bool rest(void *of, bool idle)
{
    state *s = of;
    return s->here && s->of->here->rest(s->here, idle); /* an isolated state does this by itself */
}

static bool worn(void *of)
{
    state *s = of;
    return s->here ? s->of->here->worn(s->here) : kl_isolate_worn(s->there);
}

static const char *lost(void *of)
{
    state *s = of;
    const char *why = s->here ? NULL : kl_isolate_look(s->there);
    if (why)
        note(s);
    return why;
}

static void abandon(void *of, kl_run *run)
{
    state *s = of;
    if (s->here)
        s->of->here->abandon(s->here, run);
    else
        kl_isolate_abandon(s->there, run);
}

/* For functions, whose state nobody else replaces: makes sure that there is a living one. */
static kl_status revive(state *s, kl_err *err)
{
    if (s->there && !kl_isolate_worn(s->there))
        return KL_OK;
    kl_isolate_close(s->there);
    s->there = NULL;
    s->counted = false;
    return begin(s, err);
}

/* The events of a function would be lost with its process, so a second process is asked. */
#define TWICE(s, st, err, ...)                                                                               \
    do {                                                                                                     \
        for (int try_ = 0; try_ < 2; try_++) {                                                               \
            if ((st = revive(s, err)))                                                                       \
                break;                                                                                       \
            st = (__VA_ARGS__);                                                                              \
            note(s);                                                                                         \
            if (!kl_isolate_dead((s)->there))                                                                \
                break;                                                                                       \
        }                                                                                                    \
    } while (0)

static kl_status map(void *of, size_t fn, kl_reader *reader, const kl_value *object, kl_emit_fn *emit_key,
    void *arg, kl_err *err)
{
    state *s = of;
    kl_status st;
    if (s->here)
        return s->of->here->map(s->here, fn, reader, object, emit_key, arg, err);
    TWICE(s, st, err, kl_isolate_map(s->there, fn, reader, object, emit_key, arg, err));
    return st;
}

static kl_status index_of(
    void *of, size_t fn, const kl_value *object, kl_emit_fn *emit_value, void *arg, kl_err *err)
{
    state *s = of;
    kl_status st;
    if (s->here)
        return s->of->here->index(s->here, fn, object, emit_value, arg, err);
    TWICE(s, st, err, kl_isolate_index(s->there, fn, object, emit_value, arg, err));
    return st;
}

static kl_status predicate(
    void *of, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err)
{
    state *s = of;
    kl_status st;
    if (s->here)
        return s->of->here->predicate(s->here, fn, now, old, pass, err);
    *pass = true;
    TWICE(s, st, err, kl_isolate_predicate(s->there, fn, now, old, pass, err));
    return st;
}

static void free_program(kl_program *p) { lkl_program_isolation(p)->here->free(p); }

pid_t lkl_isolate_pid(void *of)
{
    state *s = of;
    return s->there ? kl_isolate_pid(s->there) : 0;
}

kl_status lkl_isolate_apply(kl_program *p, kl_err *err)
{
    static const kl_program_ops ops = {.open = open_state,
        .close = close_state,
        .start = start,
        .resume = resume,
        .rest = rest,
        .worn = worn,
        .lost = lost,
        .abandon = abandon,
        .map = map,
        .index = index_of,
        .predicate = predicate,
        .free = free_program};
    for (size_t i = 0; i < p->n_specs + p->n_hooks && !atomic_load(&is_child); i++) {
        if (!wants(p, i))
            continue;
        if (!atomic_load(&offered))
            return kl_fail(err, KL_EINVAL,
                "\"%s\" has isolate = true, but this process cannot isolate scripts: run it with the program "
                "kubelua, or remove the option",
                kl_program_spec(p, i)->name);
        lkl_program_isolation(p)->here = p->ops;
        p->ops = &ops;
        break;
    }
    return KL_OK;
}

/* --- the process -------------------------------------------------------------------------- */

static void out_of_memory(const char *what)
{
    (void)what;
    _exit(NO_MEMORY);
}

static bool started_by_us(void)
{
    struct ucred who;
    socklen_t n = sizeof who;
    return !getsockopt(STDIN_FILENO, SOL_SOCKET, SO_PEERCRED, &who, &n) && who.pid == getppid();
}

/* Moves the sources into a bundle that finds nothing else. */
static kl_status read_bundle(const kl_value *boot, lkl_bundle *b, kl_err *err)
{
    const kl_value *sources = kl_value_get(boot, "sources");
    kl_builder *nothing = kl_builder_new();
    kl_build_object(nothing);
    kl_build_end(nothing);
    *b = (lkl_bundle){
        .dir = kl_strdup(kl_value_str_at(boot, "dir", NULL)), .texts = kl_builder_done(nothing)};
    for (size_t i = 0; i < kl_value_len(sources); i++) {
        const kl_value *s = kl_value_item(sources, i);
        size_t n;
        const char *text = kl_value_strn(kl_value_item(s, 2), &n);
        kl_buf bytes = KL_BUF_INIT;
        kl_status st = kl_base64_decode(text, n, &bytes, err);
        if (st)
            return st;
        size_t len = bytes.len;
        lkl_bundle_keep(b, kl_value_str(kl_value_item(s, 0)), kl_value_str(kl_value_item(s, 1)),
            kl_buf_take(&bytes), len);
    }
    return KL_OK;
}

static kl_status become(const kl_value *boot, kl_program **program, void **opened, kl_err *err)
{
    static const atomic_bool never; /* never set: to stop this, the process is ended */
    lkl_bundle bundle;
    int64_t controller = kl_value_int_at(boot, 0, "controller", NULL);
    kl_status st = read_bundle(boot, &bundle, err);
    if (!st)
        st = kl_jail_enter((size_t)kl_value_int_at(boot, 0, "memory", NULL), err);
    if (!st)
        st = lkl_program_load_bundle(&bundle, program, err);
    if (!st && (size_t)controller >= (*program)->n_specs + (*program)->n_hooks)
        st = kl_fail(err, KL_ESCRIPT,
            "the script returned no controller %d when loaded again: it must return the same controllers "
            "each time",
            (int)controller);
    if (!st && !(*opened = (*program)->ops->open(*program, (size_t)controller, &never, err)))
        st = KL_ESCRIPT;
    return st;
}

int lkl_isolate_child(void)
{
    /* starts the watchdog's thread before the filter, and keeps it */
    static kl_guard awake;
    kl_err err = KL_ERR_INIT;
    kl_message m;
    kl_program *program = NULL;
    void *opened = NULL;
    if (!started_by_us()) {
        fprintf(stderr, "kubelua: %s is internal: kubelua starts it for scripts with isolate = true\n",
            LKL_ISOLATE_WORD);
        return 2;
    }
    if (kl_jail_tie(getppid(), &err))
        return 1;
    atomic_store(&is_child, true);
    kl_mem_set_hook(out_of_memory);
    lkl_budget_choose(LKL_BUDGET_SIGNALS);
    kl_guard_init(&awake, NULL, NULL);
    kl_far *f = kl_far_new(STDIN_FILENO);
    kl_wire *w = kl_far_wire(f);
    if (kl_wire_take(w, &m, NULL) || m.what != KL_WORD_BOOT)
        return 1;
    kl_far_log(f, KL_LOG_INFO);
    kl_status st = become(kl_message_value(&m, 0), &program, &opened, &err);
    const kl_value *failed = kl_far_error(st, &err);
    if (kl_wire_send(w, KL_FAR_OUT_MAX, st ? KL_WORD_FAILED : KL_WORD_READY, &failed, 1, NULL) || st)
        _exit(1);
    size_t controller = (size_t)kl_value_int_at(kl_message_value(&m, 0), 0, "controller", NULL);
    kl_message_fini(&m);
    kl_far_serve(f, program, controller, opened);
    return 0;
}
