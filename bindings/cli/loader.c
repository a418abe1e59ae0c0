/* loader.c - a job belongs to its thread until `done`, the thread's last access to it, and then to the main
 * thread. A thread that never returns keeps its job for good. */
#include "cli/loader.h"

#include <stdatomic.h>
#include <string.h>

#include "script/program.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/watchdog.h"

/* Longer than any budget of a load (bindings/state/state.c). The watchdog reports earlier a load that has
 * spent its processor time and still runs. */
#define PATIENCE KL_SECONDS(65)
#define LOOK_EVERY KL_SECONDS(1)
/* The same, when the process ends. */
#define PATIENCE_AT_END KL_SECONDS(3)

typedef struct job {
    struct job *next; /* in the list of jobs that did not end in time */
    char *path, *main;
    uint64_t version;      /* of the files */
    const kl_value *texts; /* NULL: a file */
    kl_program *program;
    kl_err err;
    kl_status st;
    atomic_bool done;
} job;

struct cli_loader {
    job *left;
};

/* Frees a job that is done or never began, so no thread has it. */
static void job_free(job *j)
{
    kl_program_unref(j->program);
    kl_err_fini(&j->err);
    kl_value_unref(j->texts);
    kl_free(j->path);
    kl_free(j->main);
    kl_free(j);
}

static void load_main(void *arg)
{
    job *j = arg;
    if (j->texts)
        j->st = lkl_program_load_texts(j->path, j->texts, j->main, &j->program, &j->err);
    else
        j->st = lkl_program_load(j->path, &j->program, &j->err);
    atomic_store(&j->done, true);
    cli_wake();
}

static kl_status take(job *j, kl_program **out, kl_err *err)
{
    kl_status st = j->st;
    if (st) {
        *err = j->err;
        j->err = KL_ERR_INIT;
    } else {
        *out = j->program;
        j->program = NULL;
    }
    job_free(j);
    return st;
}

/* Whether an earlier load of the same version has not returned. */
static bool is_left(const cli_loader *l, const job *j)
{
    const job *o = l->left;
    while (o
        && (atomic_load(&o->done) || strcmp(o->path, j->path) || o->version != j->version
            || !kl_value_equal(o->texts, j->texts)))
        o = o->next;
    return o;
}

typedef struct stuck_loads {
    const char *path;
    size_t n;
} stuck_loads;

static void count_stuck(void *arg, const kl_stuck *s)
{
    stuck_loads *loads = arg;
    const char *slash = strchr(s->name, '/');
    loads->n += slash && !strcmp(slash + 1, loads->path);
}

/* Whether the watchdog knows of one more stuck load than were left behind. */
static bool is_stuck(const cli_loader *l, const job *j)
{
    stuck_loads loads = {.path = j->path};
    size_t left = 0;
    for (const job *o = l->left; o; o = o->next)
        left += !atomic_load(&o->done) && !strcmp(o->path, j->path);
    kl_watchdog_stuck(count_stuck, &loads);
    return loads.n > left;
}

/* True when it is done. */
static bool wait_for(const cli_loader *l, const job *j, bool *told_to_end)
{
    kl_clock *c = kl_clock_real();
    kl_time until = kl_clock_now(c) + PATIENCE;
    bool done = false;
    do
        done = cli_wait_until(&j->done, LOOK_EVERY, told_to_end);
    while (!done && !*told_to_end && kl_clock_now(c) < until && !is_stuck(l, j));
    return done;
}

static kl_status fail_left(const job *j, kl_err *err)
{
    return kl_fail(err, KL_ETIMEOUT,
        "%s: its load is stuck in a C function and was abandoned; its thread is lost until the process "
        "ends. A change of the script loads it again",
        j->path);
}

static kl_status leave(cli_loader *l, job *j, bool told_to_end, kl_err *err)
{
    j->next = l->left;
    l->left = j;
    if (told_to_end)
        return kl_fail(err, KL_ECANCELLED, "%s: the process was told to stop while loading it", j->path);
    return fail_left(j, err);
}

static kl_status run(cli_loader *l, job *j, kl_program **out, kl_err *err)
{
    bool told_to_end = false;
    atomic_init(&j->done, false);
    if (is_left(l, j)) {
        (void)fail_left(j, err);
        job_free(j);
        return KL_ETIMEOUT;
    }
    kl_thread_start_alone("kl-load", load_main, j);
    if (wait_for(l, j, &told_to_end))
        return take(j, out, err);
    return leave(l, j, told_to_end, err);
}

kl_status cli_loader_file(cli_loader *l, const char *path, uint64_t version, kl_program **out, kl_err *err)
{
    job *j = kl_new(job);
    j->version = version;
    j->path = kl_strdup(path);
    return run(l, j, out, err);
}

kl_status cli_loader_texts(
    cli_loader *l, const char *name, const kl_value *texts, const char *main, kl_program **out, kl_err *err)
{
    job *j = kl_new(job);
    j->path = kl_strdup(name);
    j->main = kl_strdup(main);
    j->texts = texts ? kl_value_ref(texts) : kl_value_of_str("");
    return run(l, j, out, err);
}

bool cli_loader_end(cli_loader *l)
{
    bool all = true;
    for (job *j = l->left; j; j = j->next) {
        bool again;
        if (!atomic_load(&j->done) && !cli_wait_until(&j->done, PATIENCE_AT_END, &again)
            && !atomic_load(&j->done)) {
            kl_error("a script's load is stuck; exiting without waiting for it", "script=%s", j->path);
            all = false;
        }
    }
    return all;
}

cli_loader *cli_loader_new(void) { return kl_new(cli_loader); }

void cli_loader_free(cli_loader *l)
{
    if (!l)
        return;
    for (job *j; (j = l->left);) {
        l->left = j->next;
        if (atomic_load(&j->done))
            job_free(j);
    }
    kl_free(l);
}
