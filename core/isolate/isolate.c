/* isolate.c - the life of an isolated process and its turns.
 *
 *   open: BOOT -> READY   a turn: START | RESUME | FUNCTION -> (tell | ask -> ANSWER)* -> waits, or has ended
 *   the process ended, sent an invalid message or hangs: dead, permanently; its runs fail */
#include "isolate/isolate.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/child.h"
#include "base/hangup.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"
#include "isolate/isolate_impl.h"
#include "run/run_impl.h"

/* The time between two checks for a hanging turn. */
#define LOOK_EVERY_MS 50
#define LOOK_EVERY KL_MILLISECONDS(LOOK_EVERY_MS)
/* Each part of a turn has the whole CPU budget: the code, the text of its error, variables to be closed. */
#define PARTS 3
/* The longest silence, whatever the machine's load: a process below its CPU budget can only be waiting for
 * us. */
#define SILENCE KL_MINUTES(2)
/* The longest turn of a function, whatever it asks. A run has its `timeout` instead. */
#define TALK KL_MINUTES(5)
/* The CPU budget of the start: the process loads the script, which has its own budget. */
#define OPENING KL_SECONDS(30)
/* The exit status of a process whose memory is exhausted. */
#define NO_MEMORY 9

/* --- its end ------------------------------------------------------------------------------ */

static char *ended(int status)
{
    if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == NO_MEMORY)
        return kl_strdup("exceeded its memory limit (`memory`)");
    if (status >= 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
        return kl_sprintf("was killed by signal %d: it made a forbidden system call (seccomp)", SIGSYS);
    if (status >= 0 && WIFSIGNALED(status))
        return kl_sprintf("was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    if (status >= 0 && WIFEXITED(status))
        return kl_sprintf("exited with status %d", WEXITSTATUS(status));
    return kl_strdup("has ended");
}

/* Records the end of the process. KL_ECLOSED: it has exited, and its status is the reason. Otherwise err has
 * the reason. */
static void die(kl_isolate *i, kl_status st, const kl_err *err)
{
    int status = -1;
    if (i->dead)
        return;
    if (st == KL_ECLOSED) { /* the socket closes a moment before waitid sees the exit */
        siginfo_t info;
        kl_time until = kl_clock_now(kl_clock_real()) + KL_SECONDS(5);
        do
            info.si_pid = 0;
        while (!waitid(P_PID, (id_t)i->pid, &info, WEXITED | WNOWAIT | WNOHANG) && !info.si_pid
            && !atomic_load(i->stop) && kl_clock_now(kl_clock_real()) < until && !poll(NULL, 0, 1));
    }
    kl_child_end(i->wire.fd, i->pid, &status);
    char *how = st == KL_ECLOSED ? ended(status) : kl_sprintf("was killed: %s", kl_err_message(err));
    i->dead = kl_sprintf(
        "the isolated Lua process of %s %s; its keys run again in a fresh one", i->spec->name, how);
    kl_free(how);
    kl_error("an isolated Lua process ended", "controller=%s pid=%d why=%s", i->spec->name, (int)i->pid,
        kl_log_quoted(i->dead));
}

/* --- waiting for it ----------------------------------------------------------------------- */

static kl_status too_long(kl_err *err, const char *what)
{
    return kl_fail(err, KL_ETIMEOUT, "its turn did not finish: %s", what);
}

/* Processor time of the turn: the process's own, and ours, which serves what the process asks. */
static kl_time turn_cpu(const kl_isolate *i)
{
    return kl_clock_cpu_of_process(i->pid) + kl_clock_thread_cpu();
}

/* The process's own watchdog ends turns that take too long. If that fails, we kill the process, even one that
 * never stops talking. */
static kl_status judge(kl_isolate *i, kl_err *err)
{
    kl_time now = kl_clock_now(kl_clock_real()), deadline = i->run ? kl_run_deadline(i->run) : KL_NEVER;
    i->judged = now;
    if (atomic_load(i->stop))
        return kl_fail(err, KL_ECANCELLED, "its worker ends");
    if (deadline != KL_NEVER && now - deadline > i->patience)
        return too_long(err, "it is beyond its `timeout`");
    if (turn_cpu(i) - i->used > PARTS * i->cpu + i->patience)
        return too_long(err, "it is far beyond its `cpu` budget");
    if (now - i->heard > SILENCE + PARTS * i->cpu)
        return too_long(err, "it says nothing");
    return !i->run && now - i->began > TALK + PARTS * i->cpu ? too_long(err, "it only talks") : KL_OK;
}

static kl_status await(void *arg, int events, kl_err *err)
{
    kl_isolate *i = arg;
    for (;;) {
        struct pollfd p = {.fd = i->wire.fd, .events = (short)events};
        int ready = poll(&p, 1, LOOK_EVERY_MS);
        /* of one that sends a byte now and then, something is always ready */
        kl_status st = !ready || kl_clock_now(kl_clock_real()) - i->judged > LOOK_EVERY ? judge(i, err)
                                                                                        : KL_OK;
        if (st || ready > 0)
            return st;
    }
}

/* --- who hears of its end ----------------------------------------------------------------- */

/* All living processes. One thread watches their sockets while there are any. */
static struct {
    kl_mutex mu;
    kl_list living KL_GUARDED_BY(mu);
    kl_hangup *hangup KL_GUARDED_BY(mu);
    uint64_t numbers KL_GUARDED_BY(mu);
} all = {.mu = KL_MUTEX_INIT, .living = {&all.living, &all.living}};

/* Wakes a sleeping worker to end its runs. */
static void gone(void *arg, uint64_t number)
{
    (void)arg;
    kl_lock(&all.mu);
    for (kl_list *n = all.living.next; n != &all.living; n = n->next) {
        kl_isolate *i = KL_CONTAINER(n, kl_isolate, link);
        if (i->number == number && i->worker)
            kl_worker_poke(i->worker);
    }
    kl_unlock(&all.mu);
}

static void enlist(kl_isolate *i)
{
    kl_lock(&all.mu);
    i->number = ++all.numbers;
    kl_list_push(&all.living, &i->link);
    if (!all.hangup && kl_hangup_start(gone, NULL, &all.hangup, NULL))
        all.hangup = NULL; /* without that thread, its end is noticed at the next request */
    kl_unlock(&all.mu);
}

static void watch(kl_isolate *i, kl_worker *w)
{
    if (i->worker)
        return;
    kl_lock(&all.mu);
    i->worker = w;
    if (all.hangup)
        kl_hangup_add(all.hangup, i->wire.fd, i->number);
    kl_unlock(&all.mu);
}

static void strike(kl_isolate *i)
{
    kl_lock(&all.mu);
    kl_list_remove(&i->link);
    if (all.hangup && i->worker && !i->dead)
        kl_hangup_remove(all.hangup, i->wire.fd);
    kl_hangup *last = kl_list_empty(&all.living) ? all.hangup : NULL;
    if (last)
        all.hangup = NULL;
    kl_unlock(&all.mu);
    if (last)
        kl_hangup_stop(last);
}

/* --- turns -------------------------------------------------------------------------------- */

static void turn_begin(kl_isolate *i, kl_run *run, kl_reader *reader)
{
    i->run = run;
    i->reader = reader;
    i->used = turn_cpu(i);
    i->began = i->heard = i->judged = kl_clock_now(kl_clock_real());
}

/* Serves until the message that ends the turn, which the caller frees. On failure the process is dead. */
static kl_status turn(
    kl_isolate *i, kl_word what, const kl_value *const *v, size_t n, kl_message *last, kl_err *err)
{
    kl_status st = kl_wire_send(&i->wire, i->most, what, v, n, err);
    if (st == KL_ETOOBIG)
        return st; /* nothing was sent: the process lives */
    *last = (kl_message){0};
    while (!st) {
        st = kl_wire_take(&i->wire, last, err);
        i->heard = kl_clock_now(kl_clock_real());
        if (st || last->what < KL_WORD_GET)
            break;
        st = kl__isolate_serve(i, last, err);
        if (!st && i->heard - i->judged > LOOK_EVERY)
            st = judge(i, err);
        kl_message_fini(last);
    }
    if (st)
        die(i, st, err);
    return st;
}

static kl_status nonsense(kl_isolate *i, const kl_message *m, kl_err *err)
{
    kl_status st = kl_fail(err, KL_ESYNTAX, "invalid message %d", m->what);
    die(i, st, err);
    return st;
}

/* --- runs --------------------------------------------------------------------------------- */

static kl_run_state fail(const kl_isolate *i, kl_run *run, const char *why)
{
    if (i->dead)
        kl_run_spent(run, KL_SPENT_PROCESS);
    kl_run_finish(run, KL_RESULT_ERROR, 0, why, NULL);
    return KL_RUN_DONE;
}

static bool done(kl_isolate *i, kl_run *run, const kl_message *m)
{
    int64_t result = -1, after = -1, priority = 0;
    if (!kl_value_int(kl_message_value(m, 0), &result) || result < KL_RESULT_DONE || result > KL_RESULT_FAIL
        || !kl_value_int(kl_message_value(m, 1), &after) || !kl_value_int(kl_message_value(m, 4), &priority)
        || priority < INT32_MIN || priority > INT32_MAX)
        return false;
    i->worn = kl_value_bool(kl_message_value(m, 5), false);
    kl_run_set_priority(run, (int)priority);
    kl_run_finish(
        run, (kl_result_kind)result, after > 0 ? after : 0, kl_message_text(m, 2), kl_message_text(m, 3));
    return true;
}

static bool aim(kl_run *run, const kl_value *v)
{
    int64_t n = 0;
    kl_run_at(run, KL_FLEET_NONE);
    if (!v)
        return true;
    if (!kl_value_int(v, &n) || n < 0 || (size_t)n >= kl_fleet_size(kl_run_fleet(run)))
        return false;
    kl_run_at(run, (size_t)n);
    return true;
}

/* Applies the result of a turn to our run. False: the result is invalid. */
static bool settle(kl_isolate *i, kl_run *run, const kl_message *m, kl_run_state *state)
{
    int64_t d = 0;
    kl_op op;
    *state = m->what == KL_WORD_DONE ? KL_RUN_DONE : KL_RUN_WAITING;
    switch (m->what) {
    case KL_WORD_DONE: return done(i, run, m);
    case KL_WORD_CALL:
        if (!kl_far_op_read(kl_message_value(m, 0), &op) || !aim(run, kl_message_value(m, 2)))
            return false;
        op.body = kl_message_value(m, 1);
        kl_run_call(run, &op);
        return true;
    case KL_WORD_RESOLVE:
        if (!kl_message_text(m, 0) || !aim(run, kl_message_value(m, 1)))
            return false;
        kl_run_resolve(run, kl_message_text(m, 0));
        return true;
    case KL_WORD_SLEEP:
        if (!kl_value_int(kl_message_value(m, 0), &d) || d > KL_NEVER / 4)
            return false;
        kl_run_sleep(run, d);
        return true;
    default: return false;
    }
}

static kl_run_state drive(kl_isolate *i, kl_run *run, kl_word what, const kl_value *const *v, size_t n)
{
    kl_err err = KL_ERR_INIT;
    kl_message m = {0};
    kl_run_state state = KL_RUN_WAITING;
    turn_begin(i, run, kl_run_reader(run));
    kl_status st = turn(i, what, v, n, &m, &err);
    if (!st && !settle(i, run, &m, &state))
        st = nonsense(i, &m, &err);
    i->run = NULL;
    i->reader = NULL;
    if (st == KL_ECANCELLED)
        state = KL_RUN_WAITING; /* the worker abandons the run next */
    else if (st)
        state = fail(i, run, i->dead ? i->dead : kl_err_message(&err));
    kl_message_fini(&m);
    kl_err_fini(&err);
    return state;
}

/* The part of an event's object that a script sees. */
static const kl_value *cause_value(const kl_value *o)
{
    if (!o)
        return NULL;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", kl_object_api_version(o));
    kl_build_kstr(b, "kind", kl_object_kind(o));
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", kl_object_name(o));
    kl_build_kstr(b, "namespace", kl_object_namespace(o));
    kl_build_kstr(b, "resourceVersion", kl_value_str_at(o, "metadata", "resourceVersion", NULL));
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void build_fleet(kl_builder *b, const kl_run *run)
{
    const kl_fleet *f = kl_run_fleet(run);
    kl_build_key(b, "fleet");
    kl_build_array(b);
    for (size_t n = 0; n < kl_fleet_size(f); n++)
        kl_build_str(b, kl_fleet_name(f, n));
    kl_build_end(b);
    kl_build_kint(b, "cluster", (int64_t)kl_run_cluster(run));
}

static kl_log_level log_level(void)
{
    int level = KL_LOG_DEBUG;
    while (level < KL_LOG_OFF && !kl_log_enabled((kl_log_level)level))
        level++;
    return (kl_log_level)level;
}

static const kl_value *start_value(kl_isolate *i, kl_run *run, bool params)
{
    const kl_value *o;
    unsigned events;
    kl_why why = kl_run_cause(run, &o, &events);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "id", i->runs);
    kl_build_kstr(b, "key", kl_run_key(run));
    kl_build_kstr(b, "uuid", kl_run_id(run));
    kl_build_kint(b, "attempt", kl_run_attempt(run));
    kl_build_kint(b, "generation", kl_run_generation(run));
    kl_build_kint(b, "epoch", kl_run_epoch(run));
    kl_build_kint(b, "why", why);
    kl_build_kint(b, "events", events);
    kl_build_kint(b, "priority", kl_run_priority(run));
    kl_build_kint(b, "level", log_level());
    if (kl_run_deadline(run) != KL_NEVER)
        kl_build_kint(b, "deadline", kl_run_deadline(run));
    if (params)
        kl_build_kint(b, "params", 1);
    if (kl_run_fleet(run) && !i->told_fleet)
        build_fleet(b, run);
    i->told_fleet = true;
    kl_build_end(b);
    return kl_builder_done(b);
}

kl_run_state kl_isolate_start(kl_isolate *i, kl_run *run)
{
    const kl_value *params = kl_run_params(run), *o;
    bool news = params != i->params;
    kl_run_set_user(run, (void *)(intptr_t)++i->runs);
    if (i->dead)
        return fail(i, run, i->dead);
    watch(i, run->w);
    (void)kl_run_cause(run, &o, NULL);
    const kl_value *head = start_value(i, run, news), *cause = cause_value(o);
    if (news) {
        kl_value_unref(i->params);
        i->params = kl_value_ref(params);
    }
    kl_run_state state = drive(i, run, KL_WORD_START,
        (const kl_value *[]){head, kl_run_object(run), cause, news ? params : NULL}, 4);
    kl_value_unref(head);
    kl_value_unref(cause);
    return state;
}

kl_run_state kl_isolate_resume(kl_isolate *i, kl_run *run)
{
    const kl_value *body = NULL;
    kl_err *err = NULL;
    if (i->dead)
        return fail(i, run, i->dead);
    kl_status st = kl_run_reply(run, &body, &err);
    const kl_value *id = kl_value_of_int((intptr_t)kl_run_user(run)), *failure = kl_far_error(st, err),
                   *deposed = kl__isolate_deposed(run);
    kl_run_state state = drive(i, run, KL_WORD_RESUME, (const kl_value *[]){id, failure, deposed, body}, 4);
    kl_value_unref(id);
    kl_value_unref(failure);
    kl_value_unref(deposed);
    return state;
}

void kl_isolate_abandon(kl_isolate *i, kl_run *run)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *id = kl_value_of_int((intptr_t)kl_run_user(run));
    turn_begin(i, NULL, NULL);
    kl_status st = i->dead ? KL_OK : kl_wire_send(&i->wire, i->most, KL_WORD_ABANDON, &id, 1, &err);
    if (st)
        die(i, st, &err);
    kl_value_unref(id);
    kl_err_fini(&err);
}

const char *kl_isolate_look(kl_isolate *i)
{
    struct pollfd p = {.fd = i->wire.fd};
    if (!i->dead && poll(&p, 1, 0) == 1 && p.revents & (POLLHUP | POLLERR))
        die(i, KL_ECLOSED, NULL);
    return i->dead;
}

bool kl_isolate_worn(kl_isolate *i) { return i->worn || kl_isolate_look(i); }
const char *kl_isolate_dead(const kl_isolate *i) { return i->dead; }
pid_t kl_isolate_pid(const kl_isolate *i) { return i->pid; }

/* --- functions ---------------------------------------------------------------------------- */

typedef struct function {
    const char *what; /* "map", "index", "predicate" */
    size_t number;
    kl_reader *reader;     /* NULL: the function reads nothing */
    const kl_value *a, *b; /* its arguments */
    size_t most; /* texts that it may emit; the process has checked it, if it is still what it was */
} function;

static kl_status call_fn(kl_isolate *i, const function *f, kl_message *m, kl_err *err)
{
    if (i->dead)
        return kl_fail(err, KL_ESCRIPT, "%s", i->dead);
    const kl_value *name = kl_value_of_str(f->what), *number = kl_value_of_int((int64_t)f->number);
    turn_begin(i, NULL, f->reader);
    kl_status st = turn(i, KL_WORD_FUNCTION, (const kl_value *[]){name, number, f->a, f->b}, 4, m, err);
    i->reader = NULL;
    kl_value_unref(name);
    kl_value_unref(number);
    const kl_value *texts = kl_message_value(m, 1);
    if (!st
        && (m->what != KL_WORD_RESULT || kl_value_type(texts) != KL_ARRAY || kl_value_len(texts) > f->most))
        st = nonsense(i, m, err);
    if (i->dead)
        return kl_fail(err, KL_ESCRIPT, "%s", i->dead);
    if (!st) {
        i->worn = kl_value_bool(kl_message_value(m, 3), false);
        st = kl_far_error_read(kl_message_value(m, 0), err);
    }
    return st;
}

/* Passes the emitted texts on, unless the function failed, as for functions in this process. */
static kl_status emitting(kl_isolate *i, const function *f, kl_emit_fn *emit, void *arg, kl_err *err)
{
    kl_message m = {0};
    kl_status st = call_fn(i, f, &m, err);
    const kl_value *texts = kl_message_value(&m, 1);
    for (size_t k = 0; !st && k < kl_value_len(texts); k++)
        if (kl_value_str(kl_value_item(texts, k)))
            emit(arg, kl_value_str(kl_value_item(texts, k)));
    kl_message_fini(&m);
    return st;
}

kl_status kl_isolate_map(kl_isolate *i, size_t fn, kl_reader *reader, const kl_value *object,
    kl_emit_fn *emit, void *arg, kl_err *err)
{
    function f = {.what = "map", .number = fn, .reader = reader, .a = object, .most = KL_EMITTED_KEYS};
    return emitting(i, &f, emit, arg, err);
}

kl_status kl_isolate_index(
    kl_isolate *i, size_t fn, const kl_value *object, kl_emit_fn *emit, void *arg, kl_err *err)
{
    function f = {.what = "index", .number = fn, .a = object, .most = KL_EMITTED_VALUES};
    return emitting(i, &f, emit, arg, err);
}

kl_status kl_isolate_predicate(
    kl_isolate *i, size_t fn, const kl_value *now, const kl_value *old, bool *pass, kl_err *err)
{
    kl_message m = {0};
    kl_status st = call_fn(i, &(function){.what = "predicate", .number = fn, .a = now, .b = old}, &m, err);
    *pass = kl_value_bool(kl_message_value(&m, 2), true);
    kl_message_fini(&m);
    return st;
}

/* --- life --------------------------------------------------------------------------------- */

/* Starts the script. The reason of a failure comes from the process. */
static kl_status boot(kl_isolate *i, const kl_isolate_order *o, const kl_value **said, kl_err *err)
{
    kl_message m = {0};
    i->cpu = OPENING;
    turn_begin(i, NULL, NULL);
    kl_status st = turn(i, KL_WORD_BOOT, &o->boot, 1, &m, err);
    if (!st && m.what == KL_WORD_FAILED)
        st = kl_far_error_read(kl_message_value(&m, 0), err);
    else if (!st && m.what != KL_WORD_READY)
        st = nonsense(i, &m, err);
    if (i->dead)
        st = kl_fail(err, KL_ESCRIPT, "%s", i->dead);
    else if (m.what == KL_WORD_FAILED && !st)
        st = kl_fail(err, KL_ESCRIPT, "%s: it cannot be reloaded", i->spec->name);
    if (!st && said)
        *said = kl_value_ref(kl_message_value(&m, 0));
    i->cpu = o->cpu;
    kl_message_fini(&m);
    return st;
}

kl_status kl_isolate_open(const kl_isolate_order *o, kl_isolate **out, const kl_value **said, kl_err *err)
{
    kl_isolate *i = kl_new(kl_isolate);
    int fd;
    i->program = o->program;
    i->spec = kl_program_spec(o->program, o->controller);
    i->stop = o->stop;
    i->patience = o->patience;
    i->most = o->message;
    kl_status st = kl_child_talk(o->path, o->argv, &fd, &i->pid, err);
    if (st) {
        kl_free(i);
        return st;
    }
    kl_wire_init(&i->wire, fd, KL_FAR_OUT_MAX);
    i->wire.max_values = KL_FAR_OUT_VALUES;
    i->wire.max_parts = KL_FAR_OUT_PARTS;
    i->wire.wait = await;
    i->wire.arg = i;
    enlist(i);
    st = boot(i, o, said, err);
    if (st)
        kl_isolate_close(i);
    else
        *out = i;
    return st;
}

void kl_isolate_close(kl_isolate *i)
{
    int status;
    if (!i)
        return;
    strike(i);
    if (!i->dead)
        kl_child_end(i->wire.fd, i->pid, &status);
    kl_wire_fini(&i->wire);
    kl_value_unref(i->params);
    kl_free(i->dead);
    kl_free(i);
}
