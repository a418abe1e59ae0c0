/* manager_turns.c - one key after the other (manager/turns.h): pending work, and the next turn. */
#include "manager/turns.h"

#include "base/mem.h"
#include "manager/manager_impl.h"

typedef struct outlook_call {
    kl_manager *m;
    uint64_t rv;
    kl_outlook o;
    bool turned;
} outlook_call;

static void busy_with(kl_outlook *o, const char *what, const char *which)
{
    o->busy = true;
    if (!o->what)
        o->what = kl_sprintf("%s%s", what, which);
}

static void collect_outlook(void *arg)
{
    outlook_call *c = arg;
    kl_manager *m = c->m;
    kl_time timer = kl_loop_next(m->loop), mapper = kl_loop_next(m->mapper);
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_outlook(m->slots[i]->controllers[k], &c->o);
    char *hook = kl_webhooks_busy(m->webhooks);
    if (hook)
        busy_with(&c->o, hook, "");
    kl_free(hook);
    if (m->n_retired)
        busy_with(&c->o, "the end of a controller", "");
    if (kl_recorder_busy(m->recorder))
        busy_with(&c->o, "an Event", "");
    if (!m->started || timer <= kl_clock_now(m->clock) || mapper == INT64_MIN)
        busy_with(&c->o, "the manager", "");
    if (timer != INT64_MIN && timer < c->o.next)
        c->o.next = timer;
}

static void collect_behind(void *arg)
{
    outlook_call *c = arg;
    char *behind = kl_caches_behind(c->m->caches, c->rv);
    if (behind)
        busy_with(&c->o, "the cache of ", behind);
    kl_free(behind);
}

static void nothing(void *arg) { (void)arg; }

/* An event passes the cache, the mapper (where it waits for a function of the script and becomes keys) and
 * the queue. Checks in this order miss none that moves between two of them. */
void kl_manager_outlook(kl_manager *m, uint64_t rv, kl_outlook *out)
{
    outlook_call c = {.m = m, .rv = rv, .o = {.next = KL_NEVER, .next_key = KL_NEVER}};
    kl_loop_call(m->loop, collect_behind, &c);
    kl_loop_call(m->mapper, nothing, NULL);
    kl_loop_call(m->loop, collect_outlook, &c);
    *out = c.o;
}

static void give_turn(void *arg)
{
    outlook_call *c = arg;
    kl_manager *m = c->m;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++) {
            kl_outlook o = {.next = KL_NEVER, .next_key = KL_NEVER};
            kl_controller_outlook(m->slots[i]->controllers[k], &o);
            kl_free(o.what);
            if (o.ready && !c->turned) {
                kl_controller_turn(m->slots[i]->controllers[k]);
                c->turned = true;
            }
        }
}

bool kl_manager_turn(kl_manager *m)
{
    outlook_call c = {.m = m};
    kl_loop_call(m->loop, give_turn, &c);
    return c.turned;
}

static void wake_all(void *arg)
{
    kl_manager *m = arg;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; k < m->slots[i]->n; k++)
            kl_controller_wake(m->slots[i]->controllers[k]);
}

void kl_manager_clock_moved(kl_manager *m)
{
    kl_loop_wake(m->mapper);
    kl_loop_wake(m->loop);
    kl_loop_call(m->loop, wake_all, m);
}
