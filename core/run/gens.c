/* gens.c - a worker's states: one for each generation of the script that has runs or may get some. The newest
 * is opened for the first key after its publication; an older one is closed when its last run has ended, and
 * overlong runs are aborted some time later. */
#include "base/mem.h"
#include "model/time.h"
#include "run/run_impl.h"

/* A state that cannot be opened (memory, a broken script that passed its load) is tried again this much
 * later. */
#define OPEN_RETRY KL_SECONDS(1)
/* The default; as long as the default grace period at the end of the process. */
#define RELOAD_DEADLINE KL_SECONDS(30)

void kl__gen_close(kl_worker *w, kl_gen_state *g)
{
    kl_list_remove(&g->link);
    g->logic->program->ops->close(g->state);
    w->o.logic_unref(w->o.arg, g->logic);
    kl_free(g);
}

kl_gen_state *kl__gen_newest(kl_worker *w)
{
    return kl_list_empty(&w->gens) ? NULL : KL_CONTAINER(w->gens.next, kl_gen_state, link);
}

void kl__gens_sweep(kl_worker *w)
{
    for (kl_list *n = w->gens.next, *next; n != &w->gens; n = next) {
        next = n->next;
        kl_gen_state *g = KL_CONTAINER(n, kl_gen_state, link);
        if (!g->runs && g != kl__gen_newest(w))
            kl__gen_close(w, g);
    }
}

/* Whether a state is of the present generation, and usable for another key. */
static bool is_fresh(kl_worker *w, const kl_gen_state *g)
{
    bool (*worn)(void *) = g->logic->program->ops->worn;
    return w->o.is_current(w->o.arg, g->logic) && !(worn && worn(g->state));
}

kl_gen_state *kl__gen_current(kl_worker *w, kl_time now)
{
    kl_gen_state *g = kl__gen_newest(w);
    if (g && is_fresh(w, g))
        return g;
    kl_logic *l = w->o.logic(w->o.arg);
    bool same = g && g->logic == l;
    if (same && is_fresh(w, g)) {
        w->o.logic_unref(w->o.arg, l);
        return g;
    }
    if (now < w->retry_open) {
        w->o.logic_unref(w->o.arg, l);
        return NULL;
    }
    kl_err err = KL_ERR_INIT;
    void *state = l->program->ops->open(l->program, l->index, &w->aborting, &err);
    if (!state) {
        kl_error("cannot open the script on this worker, trying again",
            "controller=%s generation=%d worker=%d error=%s", w->o.name, l->generation, w->number,
            kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
        w->retry_open = now + OPEN_RETRY;
        w->o.logic_unref(w->o.arg, l);
        return NULL;
    }
    if (same)
        kl_info("a worker's state was replaced by a fresh one: it used more than half of its memory limit, "
                "or an error may have corrupted it",
            "controller=%s generation=%d worker=%d", w->o.name, l->generation, w->number);
    g = kl_new(kl_gen_state);
    g->logic = l;
    g->state = state;
    kl_list_push_front(&w->gens, &g->link);
    kl__gens_sweep(w);
    return g;
}

kl_gen_state *kl__gen_wanted(kl_worker *w, kl_time now, kl_time *next)
{
    kl_gen_state *g = kl__gen_newest(w);
    if (g && is_fresh(w, g))
        return g;
    kl_time due = kl_workqueue_more(w->o.queue);
    if (due <= now)
        return kl__gen_current(w, now);
    *next = due;
    w->room = true;
    if (g && !g->runs)
        kl__gen_close(w, g);
    return NULL;
}

static kl_time patience(const kl_worker *w, const kl_gen_state *g)
{
    kl_time timeout = g->logic->spec->timeout;
    return w->o.reload_deadline     ? w->o.reload_deadline
        : timeout > RELOAD_DEADLINE ? timeout
                                    : RELOAD_DEADLINE;
}

static void end_runs_of(kl_worker *w, kl_gen_state *g, kl_time now)
{
    for (kl_list *n = w->runs.next, *next; n != &w->runs; n = next) {
        next = n->next;
        kl_run *r = KL_CONTAINER(n, kl_run, link);
        char t[KL_DURATION_MAX];
        if (r->gen != g)
            continue;
        kl_warn("a run on the old logic was ended; its key runs again on the new logic",
            "controller=%s key=%s reconcileID=%s generation=%d waited_for=%s after=%s%s", w->o.name, r->key,
            kl_run_id(r), g->logic->generation,
            kl_log_quoted(r->wait.for_what ? r->wait.for_what : "nothing"),
            kl_duration_format(now - g->old_since, t), kl__run_detail(r));
        if (w->o.metrics)
            kl_metrics_outlived(w->o.metrics);
        kl__run_abandon(r, now);
    }
}

kl_time kl__outlived_at(kl_worker *w, kl_gen_state *g, kl_time now)
{
    if (w->o.reload_deadline < 0 || w->o.is_current(w->o.arg, g->logic))
        return KL_NEVER;
    if (!g->old_since)
        g->old_since = now;
    return kl__after(g->old_since, patience(w, g));
}

kl_time kl__gens_end_old_runs(kl_worker *w, kl_time now)
{
    kl_time next = KL_NEVER;
    for (kl_list *n = w->gens.next; n != &w->gens; n = n->next) {
        kl_gen_state *g = KL_CONTAINER(n, kl_gen_state, link);
        kl_time end = g->runs ? kl__outlived_at(w, g, now) : KL_NEVER;
        if (end <= now)
            end_runs_of(w, g, now);
        else if (end < next)
            next = end;
    }
    return next;
}
