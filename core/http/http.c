/* http.c - the only door to libcurl (with the other http_*.c): one thread that owns one multi handle.
 *
 *   any thread --command--> fifo --thread--> multi --callbacks on the thread--> on_head, on_data..., on_lull, on_done
 *
 * The thread sleeps in a poller and tells libcurl which sockets are ready (curl_multi_socket_action), so that
 * a watch event costs two system calls, however many transfers there are. Commands (start, cancel, run this)
 * come through a fifo under the lock and are carried out in order. A transfer belongs to its submitter until
 * it is in the fifo, then to the thread; its id names a slot, so cancelling an ended transfer is harmless.
 *
 * libcurl 7.88 as it is:
 * - When all HTTP/2 connections are full, every further transfer opens one of its own at once. So each
 *   server has a gate.
 * - Data for a neighbour stream stops the whole HTTP/2 connection until that stream is run by its timer.
 *   curl_multi_perform may drop that timer (it clears what falls due within the same millisecond after the
 *   run);
 *   curl_multi_socket_action clears before the run, so it is the one to use. */
#include "http/http_impl.h"

#include <inttypes.h>
#include <unistd.h>
#include "base/locks.h"
#include "base/mem.h"

#define MAX_STREAMS_DEFAULT 80 /* kube-apiserver allows 100 per connection */
#define READY_MAX 32           /* sockets served before commands and timers get their turn */

/* The HTTP/2 transfers to one server. Thread only. */
typedef struct server {
    kl__gate gate;
    kl_http *h;
} server;

typedef struct timer {
    kl_heap_node node;
    uint64_t id;
    void (*fn)(void *arg);
    void *arg;
} timer;

typedef enum command_type { START, CANCEL, RUN, RUN_WITH } command_type;

typedef struct command {
    kl_list link;
    command_type type;
    kl__transfer *t;                         /* START */
    uint64_t id;                             /* CANCEL, RUN_WITH */
    void (*fn)(void *arg);                   /* RUN */
    void (*fn_with)(void *arg, uint64_t id); /* RUN_WITH */
    void *arg;
} command;

/* --- the thread --------------------------------------------------------------------------- */

static void leave_gate(kl__transfer *t, kl_status st, const kl_err *err);

static void transfer_finish(kl__transfer *t, CURLcode rc)
{
    kl_http *h = t->h;
    long code = 0, size = 0;
    kl_err err = KL_ERR_INIT;
    kl__curl.easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
    kl__curl.easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &size);
    bool sent = size > 0 || code > 0;
    kl_status st = kl__transfer_explain(t, rc, sent, &err);
    kl__transfer_lookup(t, rc);
    kl__pipe_close(t);
    if (t->running)
        kl__curl.multi_remove_handle(h->multi, t->easy);
    t->well = rc == CURLE_OK;
    if (t->pass.gate)
        leave_gate(t, st, &err);
    kl_list_remove(&t->link);
    kl__transfer_lull(t);
    kl_lock(&h->mu);
    kl_slots_remove(&h->transfers, t->id);
    kl_unlock(&h->mu);
    t->on_done(t->arg, st, (int)code, sent, &err);
    kl_err_fini(&err);
    kl__transfer_free(t);
}

static void transfer_cancel(kl__transfer *t)
{
    t->cancelled = true;
    transfer_finish(t, CURLE_ABORTED_BY_CALLBACK);
}

/* Called for sockets that no gate counts. */
static int on_plain_close(void *arg, curl_socket_t fd)
{
    kl_http *h = arg;
    kl_poller_closing(h->poller, fd);
    kl__socket_closing(h, fd);
    return close(fd);
}

static void transfer_run(kl__transfer *t)
{
    if (!t->pass.gate) {
        (void)kl__curl.easy_setopt(t->easy, CURLOPT_CLOSESOCKETFUNCTION, on_plain_close);
        (void)kl__curl.easy_setopt(t->easy, CURLOPT_CLOSESOCKETDATA, t->h);
    }
    CURLMcode rc = kl__curl.multi_add_handle(t->h->multi, t->easy);
    t->running = !rc;
    if (!rc)
        return;
    t->stopped = kl_fail(
        &t->err, KL_EINTERNAL, "the request to %s could not start: %s", t->peer, kl__curl.multi_strerror(rc));
    transfer_finish(t, CURLE_FAILED_INIT);
}

/* --- gates -------------------------------------------------------------------------------- */

/* Old connections with previous certificates cannot take new requests. */
static server *server_get(kl_http *h, const kl__transfer *t)
{
    char *key = kl_sprintf("%s %s %" PRIu64, t->peer, t->server_name, t->identity);
    server *s = kl_map_get(h->servers, key);
    if (!s) {
        s = kl_new(server);
        s->h = h;
        kl__gate_init(&s->gate);
        kl_map_set(h->servers, key, s);
    }
    kl_free(key);
    return s;
}

/* Called for the sockets of a server, also long after the transfer that opened them. */
static int on_socket_close(void *arg, curl_socket_t fd)
{
    server *s = arg;
    s->gate.sockets--;
    s->h->gates_changed = true;
    return on_plain_close(s->h, fd);
}

static void admit(kl__transfer *t)
{
    kl_heap_remove(&t->h->patience, &t->patience);
    if (t->total_timeout > 0)
        kl__transfer_set_timeout(t, t->patience.when - kl_clock_now(kl_clock_real()));
    (void)kl__curl.easy_setopt(t->easy, CURLOPT_CLOSESOCKETFUNCTION, on_socket_close);
    (void)kl__curl.easy_setopt(t->easy, CURLOPT_CLOSESOCKETDATA, KL_CONTAINER(t->pass.gate, server, gate));
    transfer_run(t);
}

static kl__transfer *waiting_transfer(kl_list *l) { return KL_CONTAINER(KL__PASS_OF(l), kl__transfer, pass); }

static void leave_gate(kl__transfer *t, kl_status st, const kl_err *err)
{
    kl__gate *g = t->pass.gate;
    kl_heap_remove(&t->h->patience, &t->patience);
    t->h->gates_changed = true;
    if (!kl__gate_leave(&t->pass, st == KL_ECONNECT))
        return;
    for (kl_list *l = g->waiting.next; l != &g->waiting; l = l->next) {
        kl__transfer *other = waiting_transfer(l);
        if (other->stopped || other->cancelled)
            continue;
        other->stopped = st;
        kl_err_copy(&other->err, err);
    }
}

/* Ends the transfers whose opener failed, then admits as many as fit. */
static void run_gates(kl_http *h)
{
    while (h->gates_changed) {
        h->gates_changed = false;
        size_t it = 0;
        const char *key;
        void *value;
        while (kl_map_next(h->servers, &it, &key, &value)) {
            kl__gate *g = &((server *)value)->gate;
            for (kl_list *l = g->waiting.next; l != &g->waiting;) {
                kl__transfer *t = waiting_transfer(l);
                l = l->next;
                if (t->stopped)
                    transfer_finish(t, CURLE_COULDNT_CONNECT);
            }
            for (kl__pass *p; (p = kl__gate_next(g, h->max_streams));)
                admit(KL_CONTAINER(p, kl__transfer, pass));
            /* each rotation of certificates leaves an unused server */
            if (!g->sockets && !g->admitted && kl_list_empty(&g->waiting))
                kl_free(kl_map_take(h->servers, key));
        }
    }
}

/* Ends the transfers whose timeout expired before they were admitted. */
static void run_patience(kl_http *h)
{
    kl_time now = kl_clock_now(kl_clock_real());
    for (kl_heap_node *n; (n = kl_heap_pop_due(&h->patience, now));) {
        kl__transfer *t = KL_CONTAINER(n, kl__transfer, patience);
        t->stopped = kl__transfer_too_late(t, &t->err);
        transfer_finish(t, CURLE_OPERATION_TIMEDOUT);
    }
}

static void transfer_start(kl__transfer *t)
{
    kl_http *h = t->h;
    kl_list_push(&h->active, &t->link);
    if (!t->shares) {
        transfer_run(t);
        return;
    }
    kl__gate_enter(&server_get(h, t)->gate, &t->pass);
    if (t->total_timeout > 0)
        kl_heap_push(&h->patience, &t->patience, t->patience.when);
    h->gates_changed = true;
}

static void run_commands(kl_http *h, bool stopping)
{
    for (;;) {
        kl_lock(&h->mu);
        kl_list *l = kl_list_shift(&h->commands);
        kl__transfer *t = NULL;
        command *c = l ? KL_CONTAINER(l, command, link) : NULL;
        if (c && c->type == CANCEL)
            t = kl_slots_get(&h->transfers, c->id);
        if (!c)
            h->closed = stopping;
        kl_unlock(&h->mu);
        if (!c)
            return;
        if (c->type == START && stopping)
            transfer_cancel(c->t);
        else if (c->type == START)
            transfer_start(c->t);
        else if (t)
            transfer_cancel(t);
        else if (c->type == RUN)
            c->fn(c->arg);
        else if (c->type == RUN_WITH)
            c->fn_with(c->arg, c->id);
        kl_free(c);
    }
}

static void run_timers(kl_http *h)
{
    for (;;) {
        kl_time now = kl_clock_now(kl_clock_real());
        kl_lock(&h->mu);
        kl_heap_node *n = kl_heap_pop_due(&h->timers_due, now);
        timer *tm = n ? KL_CONTAINER(n, timer, node) : NULL;
        if (tm)
            kl_slots_remove(&h->timers, tm->id);
        kl_unlock(&h->mu);
        if (!tm)
            return;
        tm->fn(tm->arg);
        kl_free(tm);
    }
}

/* libcurl names the sockets it waits for... */
static int on_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *mine)
{
    kl_http *h = arg;
    (void)easy;
    (void)mine;
    kl_poller_watch(h->poller, fd,
        what == CURL_POLL_IN          ? KL_POLL_IN
            : what == CURL_POLL_OUT   ? KL_POLL_OUT
            : what == CURL_POLL_INOUT ? KL_POLL_IN | KL_POLL_OUT
                                      : 0);
    return 0;
}

/* ...and the time of its next call in any case; -1: none. */
static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
    kl_http *h = arg;
    (void)multi;
    h->due = timeout_ms < 0 ? KL_NEVER
        : timeout_ms        ? kl_clock_now(kl_clock_real()) + KL_MILLISECONDS(timeout_ms)
                            : 0;
    return 0;
}

static void finish_what_ended(kl_http *h)
{
    int left;
    for (CURLMsg *m; (m = kl__curl.multi_info_read(h->multi, &left));) {
        if (m->msg != CURLMSG_DONE)
            continue;
        char *p = NULL;
        CURLcode rc = m->data.result;
        kl__curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &p);
        kl__transfer *t = (kl__transfer *)p;
        if (rc || !t->on_pipe || t->cancelled || !kl__pipe_open(t))
            transfer_finish(t, rc);
    }
}

static void act(kl_http *h, curl_socket_t fd, int what)
{
    int running;
    kl__turn_begin(h);
    kl__curl.multi_socket_action(h->multi, fd, what, &running);
    kl__turn_end(h);
}

/* Reads the ready sockets, then calls on_lull of the transfers that got data. */
static void run_multi(kl_http *h, const kl_ready *ready, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (kl__http_ready(h, &ready[i]))
            continue;
        int what = (ready[i].what & KL_POLL_IN ? CURL_CSELECT_IN : 0)
            | (ready[i].what & KL_POLL_OUT ? CURL_CSELECT_OUT : 0)
            | (ready[i].what & KL_POLL_ERR ? CURL_CSELECT_ERR : 0);
        act(h, ready[i].fd, what);
    }
    if (h->due != KL_NEVER && (!h->due || h->due <= kl_clock_now(kl_clock_real()))) {
        h->due = KL_NEVER;
        act(h, CURL_SOCKET_TIMEOUT, 0);
    }
    kl__http_lulls(h);
    finish_what_ended(h);
}

/* Sleeps until the network, a timer or a command wants something. */
static size_t wait_for_work(kl_http *h, kl_ready ready[READY_MAX])
{
    kl_lock(&h->mu);
    bool busy = !kl_list_empty(&h->commands) || h->stopping;
    kl_heap_node *first = kl_heap_peek(&h->timers_due);
    kl_time next = first ? first->when : KL_NEVER;
    kl_unlock(&h->mu);
    first = kl_heap_peek(&h->patience);
    if (first && first->when < next)
        next = first->when;
    if (h->due < next)
        next = h->due;
    return kl_poller_wait(h->poller, busy || h->gates_changed ? 0 : next, ready, READY_MAX);
}

static void thread_main(void *arg)
{
    kl_http *h = arg;
    atomic_store(&h->thread_id, kl_thread_self());
    kl_ready ready[READY_MAX];
    for (bool stopping = false; !stopping;) {
        run_commands(h, false);
        run_timers(h);
        run_patience(h);
        run_gates(h);
        if (!h->due)
            /* new requests are sent before the thread polls again */
            run_multi(h, ready, 0);
        run_multi(h, ready, wait_for_work(h, ready));
        kl_lock(&h->mu);
        stopping = h->stopping;
        kl_unlock(&h->mu);
    }
    while (!kl_list_empty(&h->active))
        transfer_cancel(KL_CONTAINER(h->active.next, kl__transfer, link));
    run_commands(h, true);
}

/* --- the door ----------------------------------------------------------------------------- */

kl_status kl_http_new(const kl_http_options *o, kl_http **out, kl_err *err)
{
    kl_status st = kl__curl_load(err);
    if (st)
        return st;
    CURLM *multi = kl__curl.multi_init();
    kl_poller *poller = kl_poller_new();
    if (!multi || !poller) {
        kl__curl.multi_cleanup(multi);
        kl_poller_free(poller);
        return kl_fail(err, KL_EINTERNAL, "cannot open connections: out of memory or file descriptors?");
    }
    kl__curl.multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    kl_http *h = kl_new(kl_http);
    h->max_streams = o->max_streams > 0 ? o->max_streams : MAX_STREAMS_DEFAULT;
    kl__curl.multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)h->max_streams);
    h->multi = multi;
    h->poller = poller;
    h->due = KL_NEVER;
    kl__curl.multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_interest);
    kl__curl.multi_setopt(multi, CURLMOPT_SOCKETDATA, h);
    kl__curl.multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    kl__curl.multi_setopt(multi, CURLMOPT_TIMERDATA, h);
    h->http1 = o->http1;
    h->on_lookup = o->on_lookup;
    h->on_lookup_arg = o->on_lookup_arg;
    h->user_agent = kl_strdup(o->user_agent);
    kl_list_init(&h->active);
    h->servers = kl_map_new();
    kl_heap_init(&h->patience);
    kl_list_init(&h->lulls);
    kl_list_init(&h->watched);
    kl_mutex_init_as(&h->mu, KL_LOCK_POST);
    kl_list_init(&h->commands);
    kl_heap_init(&h->timers_due);
    kl_list_init(&h->spare);
    kl__turns_init(h);
    h->thread = kl_thread_start(o->name ? o->name : "http", thread_main, h);
    *out = h;
    return KL_OK;
}

void kl_http_free(kl_http *h)
{
    if (!h)
        return;
    kl_lock(&h->mu);
    h->stopping = true;
    kl_unlock(&h->mu);
    kl_poller_wake(h->poller);
    kl_thread_join(h->thread);
    for (kl_heap_node *n; (n = kl_heap_pop_due(&h->timers_due, KL_NEVER));)
        kl_free(KL_CONTAINER(n, timer, node));
    kl__handles_free(h);
    kl__http_forget_fds(h);
    kl__curl.multi_cleanup(h->multi); /* closes sockets, which gates count */
    kl__turns_fini(h);
    kl_poller_free(h->poller);
    kl_map_free(h->servers, kl_free);
    kl_heap_fini(&h->patience);
    kl_heap_fini(&h->timers_due);
    kl_slots_fini(&h->transfers);
    kl_slots_fini(&h->timers);
    kl_mutex_fini(&h->mu);
    kl_free(h->user_agent);
    kl_free(h);
}

bool kl_http_on_thread(const kl_http *h)
{
    return atomic_load(&((kl_http *)h)->thread_id) == kl_thread_self();
}

/* True when the thread must be woken after the lock is released. */
static bool push_locked(kl_http *h, command *c) KL_REQUIRES(h->mu);
static bool push_locked(kl_http *h, command *c)
{
    kl_list_push(&h->commands, &c->link);
    return !kl_http_on_thread(h);
}

uint64_t kl_http_submit(kl_http *h, const kl_http_request *r)
{
    kl__transfer *t = kl__transfer_new(h, r);
    command *c = kl_new(command);
    c->type = START;
    c->t = t;
    kl_lock(&h->mu);
    bool refused = h->stopping, wake = false;
    uint64_t id = 0;
    if (!refused) {
        id = t->id = kl_slots_add(&h->transfers, t);
        wake = push_locked(h, c);
    }
    kl_unlock(&h->mu);
    if (refused) {
        kl__transfer_free(t);
        kl_free(c);
    }
    if (wake)
        kl_poller_wake(h->poller);
    return id;
}

/* A command other than START; dropped when the thread accepts no more. */
static void command_send(kl_http *h, command what)
{
    command *c = kl_new(command);
    *c = what;
    kl_lock(&h->mu);
    bool closed = h->closed, wake = !closed && push_locked(h, c);
    kl_unlock(&h->mu);
    if (closed)
        kl_free(c);
    if (wake)
        kl_poller_wake(h->poller);
}

void kl_http_cancel(kl_http *h, uint64_t id)
{
    /* from its own callbacks: no further data, on_done comes after this returns */
    if (kl_http_on_thread(h)) {
        kl_lock(&h->mu);
        kl__transfer *t = kl_slots_get(&h->transfers, id);
        kl_unlock(&h->mu);
        if (!t)
            return;
        t->cancelled = true;
    }
    command_send(h, (command){.type = CANCEL, .id = id});
}

void kl_http_post(kl_http *h, void (*fn)(void *arg), void *arg)
{
    command_send(h, (command){.type = RUN, .fn = fn, .arg = arg});
}

void kl_http_post_with(kl_http *h, void (*fn)(void *arg, uint64_t id), void *arg, uint64_t id)
{
    command_send(h, (command){.type = RUN_WITH, .fn_with = fn, .arg = arg, .id = id});
}

uint64_t kl_http_timer(kl_http *h, kl_time after, void (*fn)(void *arg), void *arg)
{
    timer *tm = kl_new(timer);
    tm->fn = fn;
    tm->arg = arg;
    kl_time now = kl_clock_now(kl_clock_real());
    kl_time when = after > 0 ? kl_time_after(now, after) : now;
    kl_lock(&h->mu);
    bool wake = false;
    uint64_t id = 0;
    if (!h->closed) {
        id = tm->id = kl_slots_add(&h->timers, tm);
        kl_heap_push(&h->timers_due, &tm->node, when);
        wake = kl_heap_peek(&h->timers_due) == &tm->node && !kl_http_on_thread(h);
    }
    kl_unlock(&h->mu);
    if (!id)
        kl_free(tm);
    if (wake)
        kl_poller_wake(h->poller);
    return id;
}

void kl_http_timer_cancel(kl_http *h, uint64_t id)
{
    kl_lock(&h->mu);
    timer *tm = kl_slots_remove(&h->timers, id);
    if (tm)
        kl_heap_remove(&h->timers_due, &tm->node);
    kl_unlock(&h->mu);
    kl_free(tm);
}
