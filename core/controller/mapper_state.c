/* mapper_state.c - a script's state on the mapper thread: its functions' failures, and the time that they
 * take. */
#include "base/log.h"
#include "base/mem.h"
#include "model/object.h"
#include "controller/wiring_impl.h"

kl_mapper_state *kl__mapper_state_ref(kl_mapper_state *m)
{
    atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
    return m;
}

static void mapper_state_close(void *arg)
{
    kl_mapper_state *m = arg;
    if (m->state)
        m->program->ops->close(m->state);
    kl_program_unref(m->program);
    kl_free(atomic_load(&m->spent));
    kl_loop_line_free(m->line);
    kl_free(m->controller);
    kl_free(m);
}

void kl__mapper_state_unref(kl_mapper_state *m)
{
    if (m && atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) == 1)
        kl_loop_post(m->mapper, mapper_state_close, m);
}

void *kl__mapper_state_open(kl_mapper_state *m)
{
    if (atomic_load(&m->spent) || atomic_load(&m->stopped) || kl_caches_ending(m->caches))
        return NULL;
    if (m->state)
        return m->state;
    kl_err err = KL_ERR_INIT;
    m->state = m->program->ops->open(m->program, m->index, &m->stopped, &err);
    if (!m->state && !m->failed)
        kl_error("cannot open the script for its mapping functions, trying again at every event",
            "script=%s error=%s", m->program->name, kl_log_quoted(kl_err_message(&err)));
    m->failed = !m->state;
    kl_err_fini(&err);
    return m->state;
}

bool kl__mapper_state_spent(
    kl_mapper_state *m, kl_status st, const char *function, const kl_value *o, const kl_err *err)
{
    if (st == KL_ECANCELLED)
        return true;
    if (st != KL_ETIMEOUT && st != KL_ETOOBIG)
        return false;
    if (atomic_load(&m->spent))
        return true;
    void (*changed)(void *), *changed_arg;
    char *key = kl_object_key(o);
    kl_error("a function exceeded its budget: the controller is parked until its script changes",
        "controller=%s function=%s kind=%s key=%s error=%s", m->controller, kl_log_quoted(function),
        kl_object_kind(o), key, kl_log_quoted(kl_err_message(err)));
    if (m->metrics)
        kl_metrics_spent(m->metrics, st == KL_ETOOBIG ? KL_SPENT_MEMORY : KL_SPENT_CPU);
    atomic_store(&m->spent,
        kl_sprintf("the %s failed for %s %s: %s", function, kl_object_kind(o), key, kl_err_message(err)));
    kl_free(key);
    kl_caches_notify(m->caches, &changed, &changed_arg);
    if (changed)
        kl_loop_post(m->loop, changed, changed_arg);
    return true;
}

/* The period over which the time of functions is counted; a share above half is logged. */
#define COUNT_FOR KL_SECONDS(5)

void kl__mapper_state_took(kl_mapper_state *m, kl_time took)
{
    kl_time now = kl_clock_now(m->clock);
    m->taken += took;
    if (m->metrics)
        kl_metrics_mapped(m->metrics, took);
    if (now - m->since < COUNT_FOR)
        return;
    int share = (int)(100 * m->taken / (now - m->since));
    atomic_store(&m->share, share < 100 ? share : 100);
    m->since = now;
    m->taken = 0;
    if (share > KL__SHARE_FAIR && !m->told)
        kl_warn("mapping, index and `when` functions take most of a thread that all controllers share: "
                "events of this controller now wait for those of others",
            "controller=%s share=%d%% waiting=%zu", m->controller, share,
            kl_loop_line_waiting(m->mapper, m->line));
    m->told = share > KL__SHARE_FAIR;
}

/* The time of a thread that index functions may use without a pause. It is the thread's own time: on a
 * machine that is too busy, functions take long through no fault of theirs. */
#define HOLD_UP KL_MILLISECONDS(2500)

static void indexing_begin(kl_indexing *all, kl_time since, kl_time used)
{
    *all = (kl_indexing){.since = since, .cpu = kl_clock_thread_cpu() - used};
}

kl_status kl__mapper_state_held_up(kl_mapper_state *m, kl_time took, kl_err *err)
{
    kl_program *p = m->program;
    kl_indexing *all = kl_caches_indexing(m->caches);
    kl_time now = kl_clock_now(m->clock), elapsed = now - all->since;
    if (elapsed >= COUNT_FOR && all->taken <= elapsed / 2)
        indexing_begin(all, now - took, took);
    if (p->indexing.since != all->since && !p->indexing.over) {
        p->indexing.since = all->since;
        p->indexing.taken = 0;
        p->indexing.calls = 0;
    }
    all->taken += took;
    p->indexing.taken += took;
    p->indexing.calls++;
    if (all->most < p->indexing.taken)
        all->most = p->indexing.taken;
    elapsed = now - all->since;
    bool over = all->taken > HOLD_UP && all->taken > elapsed / 2 && p->indexing.taken == all->most
        && kl_clock_thread_cpu() - all->cpu > HOLD_UP;
    if (!over && !p->indexing.over)
        return KL_OK;
    p->indexing.over = true; /* its other controllers are parked at their next call */
    if (over)
        indexing_begin(all, now, 0);
    return kl_fail(err, KL_ETIMEOUT,
        "changes wait for the index functions of %s, also those for other controllers: lately %u calls took "
        "%.1f s; index a path, or do less for each object",
        p->name, p->indexing.calls, (double)p->indexing.taken / 1e9);
}
