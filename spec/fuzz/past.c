/* past.c - any file as a recording: it is read or rejected with file and line, and what was read runs again.
 */
#include "fuzz/fuzz.h"

#include "lab/replay.h"

static void *open_state(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    (void)controller, (void)err, (void)stop;
    return p;
}

static void close_state(void *state) { (void)state; }

/* A call, then the end. */
static kl_run_state start(void *state, kl_run *run)
{
    (void)state;
    kl_op op;
    kl_op_init(&op, KL_GET, "v1/Secret");
    op.name = "a";
    (void)kl_run_wall(run);
    kl_run_call(run, &op);
    return KL_RUN_WAITING;
}

static kl_run_state resume(void *state, kl_run *run)
{
    (void)state;
    kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
    return KL_RUN_DONE;
}

static void abandon(void *state, kl_run *run) { (void)state, (void)run; }
static void release(kl_program *p) { (void)p; }

static void told(void *arg, const kl_replayed *x)
{
    ++*(size_t *)arg;
    CLAIM(x->run && x->result && x->verdict <= KL_REPLAY_CUT);
}

static void run_again(const kl_past *p)
{
    static const kl_program_ops ops = {.open = open_state,
        .close = close_state,
        .start = start,
        .resume = resume,
        .abandon = abandon,
        .free = release};
    kl_controller_spec spec = {.name = (char *)"x", .resource = (char *)"v1/ConfigMap"};
    kl_program program = {.ops = &ops, .name = "x", .specs = &spec, .n_specs = 1, .refs = 1000000};
    kl_program *programs[] = {&program};
    kl_replay_sum sum;
    size_t n = 0;
    if (kl_replay(
            &(kl_replay_options){.past = p, .programs = programs, .n_programs = 1, .told = told, .arg = &n},
            &sum, NULL))
        return;
    CLAIM(sum.runs == n && sum.same + sum.differ + sum.fail + sum.cut == n && n + sum.others == p->n_runs);
    kl_replay_sum_fini(&sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    kl_past *p = NULL;
    kl_err err = KL_ERR_INIT;
    kl_log_set_level(KL_LOG_OFF);
    kl_status st = kl_past_read_text("tape", (const char *)data, n, &p, &err);
    CLAIM(!st == !!p && (!st || strstr(kl_err_message(&err), "tape")));
    kl_err_fini(&err);
    if (p)
        run_again(p);
    kl_past_free(p);
    return 0;
}
