/* witness.c - calls each witness in the order of registration. */
#include "run/witness.h"

#include <assert.h>

#include "base/mem.h"
#include "run/run_impl.h"

void kl_witnesses_add(kl_witnesses *w, const kl_witness *x)
{
    assert(w->n < KL_WITNESSES_MAX);
    w->v[w->n++] = *x;
}

void *kl_run_strip(const kl_run *r) { return r->observed.strip; }
void kl_run_set_strip(kl_run *r, void *strip) { r->observed.strip = strip; }

bool kl_run_watched(const kl_run *r) { return r->w->o.witnesses && r->w->o.witnesses->n; }

#define TELL(run, what, ...)                                                                                 \
    do {                                                                                                     \
        const kl_witnesses *all_ = (run)->w->o.witnesses;                                                    \
        for (size_t i_ = 0; all_ && i_ < all_->n; i_++)                                                      \
            if (all_->v[i_].what)                                                                            \
                all_->v[i_].what(all_->v[i_].arg, __VA_ARGS__);                                              \
    } while (0)

void kl__tell_began(kl_run *r) { TELL(r, began, r); }
void kl_run_saw(kl_run *r, const kl_saw *x) { TELL(r, saw, r, x); }
void kl__tell_believed(kl_run *r, const kl_saw *x) { TELL(r, believed, r, x); }
void kl__tell_timed(kl_run *r, kl_time wall) { TELL(r, timed, r, wall); }
void kl__tell_ended(kl_run *r, const kl_ran *x) { TELL(r, ended, r, x); }

void kl__tell_gone(const kl_worker *w, const char *key)
{
    for (size_t i = 0; w->o.witnesses && i < w->o.witnesses->n; i++)
        if (w->o.witnesses->v[i].gone)
            w->o.witnesses->v[i].gone(w->o.witnesses->v[i].arg, w->o.name, key);
}

/* A timeout never comes where time stands, in a test, a simulation or a replay. There a run may write each
 * object of a large cluster at one moment; with more requests than that it loops. */
#define ASKED_AT_ONCE 10000u

static void expect_an_end(kl_run *r)
{
    kl_time now = kl_clock_now(r->w->o.clock);
    r->asked.then = now == r->asked.moment ? r->asked.then + 1 : 1;
    r->asked.moment = now;
    if (r->asked.then == ASKED_AT_ONCE)
        kl__run_expire(r,
            kl_sprintf("stopped after %u requests and sleeps at one moment: a loop of %s does not end, and "
                       "in virtual time no `timeout` ends it",
                ASKED_AT_ONCE, r->w->o.name));
}

void kl__tell_asked(kl_run *r, kl_asked *x)
{
    x->number = ++r->asked.n;
    if (r->w->o.clock != kl_clock_real())
        expect_an_end(r);
    r->asked.write = x->op && kl_verb_is_write(x->op->verb) && !x->op->dry_run;
    if (!kl_run_watched(r))
        return;
    r->asked.at = kl_clock_now(r->w->o.clock);
    TELL(r, asked, r, x);
}

static bool is_servers_fault(kl_status st)
{
    return st == KL_ETHROTTLED || st == KL_ESERVER || st == KL_ETIMEOUT || st == KL_ECONNECT
        || st == KL_ECLOSED;
}

void kl__tell_answered(kl_run *r, kl_answered *x)
{
    bool wrote = r->asked.write && !x->status && x->code;
    r->wrote |= wrote;
    if (wrote && x->body)
        kl__fight_wrote(r, x->body);
    r->excused |= is_servers_fault(x->status);
    if (!kl_run_watched(r))
        return;
    x->number = r->asked.n; /* a run waits for one answer at a time */
    x->took = kl_clock_now(r->w->o.clock) - r->asked.at;
    TELL(r, answered, r, x);
}
