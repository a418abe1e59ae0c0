/* virtual.c - one thread runs the stand-ins whenever an object has changed. On request it moves the clock,
 * from each moment at which something is due to the next.
 *
 *   asleep --an object changed--> settling --> asleep
 *   asleep --POST--> settling, moving, settling, ... until the time is there --> the answer --> asleep */
#include "cli/virtual.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "faults/faults.h"
#include "base/mem.h"
#include "base/sync.h"
#include "httpd/httpd.h"
#include "model/time.h"
#include "script/stage.h"

#define PATH KL_SERVER_EXTRA "v1/clock"
/* Ten years: a longer time is a mistake. */
#define ADVANCE_MOST KL_SECONDS(10LL * 365 * 24 * 3600)
/* More requests than this are refused; their clients may ask again. */
#define QUEUE_MOST 64

typedef struct asked {
    kl_httpd_request *request;
    kl_time by;
} asked;

struct cli_virtual {
    kl_clock *clock;
    kl_server *server;
    lkl_stage *stage; /* NULL until the thread starts */
    kl_thread *thread;
    kl_mutex mu;
    kl_cond wake;
    bool stopping KL_GUARDED_BY(mu);
    bool changed KL_GUARDED_BY(mu); /* an object has changed since the stand-ins ran */
    asked queue[QUEUE_MOST] KL_GUARDED_BY(mu);
    size_t queued KL_GUARDED_BY(mu);
};

/* ---------------------------------------------------------------- answers */

static void answer(kl_httpd_request *r, int code, kl_builder *b)
{
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_buf text = KL_BUF_INIT;
    kl_value_encode(v, &text);
    kl_buf_puts(&text, "\n");
    kl_value_unref(v);
    kl_httpd_reply_take(r, code, "application/json", NULL, &text);
    kl_buf_fini(&text);
}

static void answer_now(cli_virtual *v, kl_httpd_request *r)
{
    char text[KL_TIME_MAX];
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "now", kl_time_format_wall(kl_clock_wall(v->clock), text));
    answer(r, 200, b);
}

/* Answers with a Status, so that kubectl shows the message. */
static void refuse(kl_httpd_request *r, int code, const char *reason, const char *message)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Status");
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_kstr(b, "status", "Failure");
    kl_build_kstr(b, "message", message);
    kl_build_kstr(b, "reason", reason);
    kl_build_kint(b, "code", code);
    answer(r, code, b);
}

/* ---------------------------------------------------------------- requests: the HTTP thread */

/* Reads {"advance": "10m"}. */
static kl_status read_advance(kl_httpd_request *r, kl_time *out, kl_err *err)
{
    size_t n = 0;
    const char *body = kl_httpd_body(r, &n);
    const kl_value *v = NULL;
    kl_status st = kl_value_decode(body, n, &v, err);
    if (st)
        return st;
    const char *text = kl_value_str_at(v, "advance", NULL);
    if (!text || kl_value_len(v) != 1)
        st = kl_fail(
            err, KL_EINVAL, "the body must be {\"advance\": \"10m\"}, the time by which the clock moves");
    else
        st = kl_duration_parse(text, out, err);
    if (!st && (*out < 0 || *out > ADVANCE_MOST))
        st = kl_fail(err, KL_EINVAL, "advance: expected a duration from 0 to ten years, got %s", text);
    kl_value_unref(v);
    return st;
}

static void queue(cli_virtual *v, kl_httpd_request *r, kl_time by)
{
    kl_lock(&v->mu);
    bool taken = !v->stopping && v->thread && v->queued < QUEUE_MOST;
    if (taken) {
        v->queue[v->queued++] = (asked){r, by};
        kl_cond_signal(&v->wake);
    }
    kl_unlock(&v->mu);
    if (!taken)
        refuse(r, 503, "ServiceUnavailable", "the clock cannot be moved now: try again");
}

static void handle(void *arg, kl_httpd_request *r)
{
    cli_virtual *v = arg;
    kl_err err = KL_ERR_INIT;
    kl_time by = 0;
    const char *method = kl_httpd_method(r);
    if (strcmp(kl_httpd_path(r), PATH) != 0)
        refuse(r, 404, "NotFound",
            "there are " PATH " and " KL_FAULTS_PATH ", and nothing else below " KL_SERVER_EXTRA);
    else if (!strcmp(method, "GET"))
        answer_now(v, r);
    else if (strcmp(method, "POST") != 0)
        refuse(r, 405, "MethodNotAllowed", "the clock is read by GET and moved by POST");
    else if (read_advance(r, &by, &err))
        refuse(r, 400, "BadRequest", kl_err_message(&err));
    else
        queue(v, r, by);
    kl_err_fini(&err);
}

/* Called under the server's lock. */
static void changed(void *arg, const kl_server_change *c)
{
    cli_virtual *v = arg;
    (void)c;
    kl_lock(&v->mu);
    v->changed = true;
    kl_cond_signal(&v->wake);
    kl_unlock(&v->mu);
}

/* ---------------------------------------------------------------- its thread */

static void settle(cli_virtual *v)
{
    kl_outlook o = {0};
    kl_err err = KL_ERR_INIT;
    if (lkl__stage_settle(v->stage, &o, &err))
        kl_warn("stand-ins still have work to do", "why=%s", kl_log_quoted(kl_err_message(&err)));
    kl_err_fini(&err);
}

static void advance(cli_virtual *v, const asked *a)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = lkl__stage_advance(v->stage, a->by, &err);
    kl_server_tick(v->server);
    if (st)
        refuse(a->request, 500, "InternalError", kl_err_message(&err));
    else if (atomic_load(&v->stage->leaving))
        refuse(a->request, 503, "ServiceUnavailable", "the server is stopping");
    else
        answer_now(v, a->request);
    kl_err_fini(&err);
}

static void work(void *arg)
{
    cli_virtual *v = arg;
    kl_lock(&v->mu);
    while (!v->stopping) {
        asked first = {0};
        if (v->queued) {
            first = v->queue[0];
            memmove(v->queue, v->queue + 1, --v->queued * sizeof *v->queue);
        } else if (!v->changed) {
            kl_cond_wait(&v->wake, &v->mu);
            continue;
        }
        v->changed = false;
        kl_unlock(&v->mu);
        if (first.request)
            advance(v, &first);
        else
            settle(v);
        kl_lock(&v->mu);
    }
    kl_unlock(&v->mu);
}

/* ---------------------------------------------------------------- life */

cli_virtual *cli_virtual_new(kl_server_options *o)
{
    cli_virtual *v = kl_new(cli_virtual);
    kl_mutex_init(&v->mu);
    kl_cond_init(&v->wake);
    kl_time wall = kl_clock_wall(kl_clock_real());
    v->clock = kl_clock_fake_new(KL_TURNS_EPOCH, wall - wall % KL_SECONDS(1));
    o->clock = v->clock;
    o->changed = changed;
    o->changed_arg = v;
    o->extra = handle;
    o->extra_arg = v;
    return v;
}

static kl_status start_stage(cli_virtual *v, const cli_simulate_options *simulate, kl_server *s, kl_err *err)
{
    kl_program *programs[LKL_SIMULATE_MOST];
    size_t n = 0;
    kl_client *client = NULL;
    kl_status st = cli_simulate_client(s, &client, err);
    if (st)
        return st;
    v->stage = lkl__stage_beside(s, v->clock, client);
    st = cli_simulate_load(simulate, programs, &n, err);
    if (!st && n)
        st = lkl__stage_start(v->stage, programs, n, NULL, err);
    for (size_t i = 0; i < n; i++)
        kl_program_unref(programs[i]);
    return st;
}

int cli_virtual_start(const char *command, cli_virtual *v, const cli_simulate_options *simulate, kl_server *s)
{
    kl_err err = KL_ERR_INIT;
    v->server = s;
    if (start_stage(v, simulate, s, &err))
        return cli_fail_err(1, command, &err);
    kl_lock(&v->mu);
    v->changed = true;
    v->thread = kl_thread_start("kl-virtual", work, v);
    kl_unlock(&v->mu);
    return 0;
}

void cli_virtual_stop(cli_virtual *v)
{
    if (!v)
        return;
    kl_lock(&v->mu);
    v->stopping = true;
    if (v->stage)
        atomic_store(&v->stage->leaving, true);
    kl_cond_signal(&v->wake);
    kl_unlock(&v->mu);
    kl_thread_join(v->thread);
    kl_lock(&v->mu);
    size_t n = v->queued;
    v->queued = 0;
    kl_unlock(&v->mu);
    for (size_t i = 0; i < n; i++)
        refuse(v->queue[i].request, 503, "ServiceUnavailable", "the server is stopping");
    lkl__stage_free(v->stage);
    v->stage = NULL;
}

void cli_virtual_free(cli_virtual *v)
{
    if (!v)
        return;
    kl_clock_fake_free(v->clock);
    kl_cond_fini(&v->wake);
    kl_mutex_fini(&v->mu);
    kl_free(v);
}
