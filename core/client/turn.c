/* turn.c - the queue of calls that wait until a busy server is ready for them. */
#include "client/client_impl.h"

#include "base/heap.h"
#include "base/log.h"
#include "client/turn.h"

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

void kl__turn_init(
    kl__turn *t, kl_client *c, void (*go)(kl__turn *t), void (*late)(kl__turn *t, kl_status st, kl_err *err))
{
    *t = (kl__turn){.c = c, .go = go, .late = late};
    kl_list_init(&t->link);
}

static void start(kl__turn *t)
{
    t->state = KL__TURN_NONE;
    t->paced = !t->urgent;
    if (t->paced)
        kl__pace_start(&t->c->pace);
    t->go(t);
}

static void on_rested(void *client);

/* Starts held calls while there is room, in order. */
static void let_in(kl_client *c)
{
    kl_time when = KL_NEVER;
    if (c->letting_in || atomic_load(&c->closing))
        return;
    c->letting_in = true; /* a started call may end at once, and re-enter here */
    while (!kl_list_empty(&c->held) && kl__pace_room(&c->pace, now(), &when)) {
        kl__turn *t = KL_CONTAINER(c->held.next, kl__turn, link);
        kl_list_remove(&t->link);
        kl_http_timer_cancel(c->calls, t->timer);
        t->timer = 0;
        kl__client_delayed(c, t->q, now() - t->since);
        start(t);
    }
    c->letting_in = false;
    if (!kl_list_empty(&c->held) && when != KL_NEVER && !c->rest_timer)
        c->rest_timer = kl_http_timer(c->calls, when - now(), on_rested, c);
}

static void on_rested(void *client)
{
    kl_client *c = client;
    c->rest_timer = 0;
    let_in(c);
}

static void give_up(kl__turn *t, kl_status st, kl_err *err)
{
    kl_list_remove(&t->link);
    t->state = KL__TURN_NONE;
    t->late(t, st, err);
}

static void on_late(void *arg)
{
    kl__turn *t = arg;
    kl_err err = KL_ERR_INIT;
    t->timer = 0;
    give_up(t,
        kl_fail(&err, KL_ETIMEOUT,
            "its timeout expired before it was sent: the server is busy (429) and takes %d calls at a time",
            (int)t->c->pace.window),
        &err);
}

static void hold(kl__turn *t)
{
    kl_client *c = t->c;
    kl_time when;
    if (t->urgent || (kl_list_empty(&c->held) && kl__pace_room(&c->pace, now(), &when))) {
        start(t);
        return;
    }
    kl_err err = KL_ERR_INIT;
    t->state = KL__TURN_HELD;
    t->since = now();
    kl_list_push(&c->held, &t->link);
    t->timer = kl_http_timer(c->calls, t->deadline - t->since, on_late, t);
    if (t->timer)
        let_in(c);
    else
        give_up(t, kl_fail(&err, KL_ECANCELLED, "the client is being closed"), &err);
}

static void on_limit_over(void *arg)
{
    kl__turn *t = arg;
    t->timer = 0;
    hold(t);
}

void kl__turn_ask(kl__turn *t, const kl__request *q, kl_time *deadline, bool first)
{
    kl_time wait = t->urgent ? 0 : kl__client_limit(t->c, q);
    kl_err err = KL_ERR_INIT;
    if (first && wait > 0)
        *deadline += wait;
    t->q = q;
    t->deadline = *deadline;
    if (wait <= 0) {
        hold(t);
        return;
    }
    t->state = KL__TURN_LIMITED;
    t->timer = kl_http_timer(t->c->calls, wait, on_limit_over, t);
    if (!t->timer)
        give_up(t, kl_fail(&err, KL_ECANCELLED, "the client is being closed"), &err);
}

void kl__turn_over(kl__turn *t, kl__pace_end how, kl_time sent, kl_time wait)
{
    kl_client *c = t->c;
    if (!t->paced)
        return;
    t->paced = false;
    bool narrow = c->pace.window > 0;
    if (kl__pace_over(&c->pace, how, sent, wait, now())) {
        if (c->pace.window > 0)
            kl_info("the API server is busy: limiting concurrent calls", "host=%s at_most=%d", c->host,
                (int)c->pace.window);
        else
            kl_info("the API server is no longer busy", "host=%s", c->host);
    }
    if (narrow)
        let_in(c);
}

void kl__turn_leave(kl__turn *t)
{
    if (t->state == KL__TURN_LIMITED)
        kl__client_limit_return(t->c);
    if (t->state != KL__TURN_NONE)
        kl_http_timer_cancel(t->c->calls, t->timer);
    t->state = KL__TURN_NONE;
    t->timer = 0;
    kl_list_remove(&t->link);
    kl__turn_over(t, KL_PACE_UNKNOWN, 0, -1);
}
