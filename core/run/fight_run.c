/* fight_run.c - feeds runs to the detector of write loops, and reports them. */
#include "base/mem.h"
#include "model/time.h"
#include "run/run_impl.h"

void kl__fight_began(kl_run *r)
{
    const kl_value *woke = NULL;
    if (!r->w->o.fights)
        return;
    (void)kl_run_cause(r, &woke, NULL);
    kl_fights_began(r->w->o.fights, r->key, woke, r->started);
}

void kl__fight_wrote(kl_run *r, const kl_value *answer)
{
    if (r->w->o.fights)
        kl_fights_wrote(r->w->o.fights, r->key, answer, kl_clock_now(r->w->o.clock));
}

static char *fight_text(const kl_fight *f, const char *in)
{
    return kl_sprintf("%s of %s is written alternately by this controller and %s: %u times in %s. One of "
                      "them should stop writing it%s; the key runs less often until then",
        f->path, f->object, f->other ? f->other : "another manager", f->rounds, in,
        f->other ? "" : " (managed_fields = true in the spec shows which manager it is)");
}

/* `in`: a duration; NULL where time stands still. */
static char *loop_text(const kl_fight *f, const char *in)
{
    return kl_sprintf("its own writes triggered it %u times in a row%s%s, and each time it wrote again: "
                      "%s%s%s. Write only what differs: times and counters always do, and a list takes only "
                      "what it lacks. Or exclude the field from `when`%s",
        f->rounds, in ? ", in " : "", in ? in : "", f->object, f->path ? ", " : "", f->path ? f->path : "",
        in ? "; the key runs less often until then" : "");
}

static void tell(kl_run *r, const kl_fight *f)
{
    char in[KL_DURATION_MAX], delay[KL_DURATION_MAX];
    bool fight = f->kind == KL_FIGHT_FIELD;
    kl_duration_format(f->lasted / KL_MILLISECONDS(1) * KL_MILLISECONDS(1), in);
    kl_duration_format(f->delay, delay);
    char *note = fight ? fight_text(f, in) : loop_text(f, in);
    kl_warn(fight ? "two managers fight over a field; its key is slowed down"
                  : "a key triggers itself by its own writes; it is slowed down",
        "controller=%s key=%s reconcileID=%s generation=%d object=%s path=%s other=%s rounds=%u next_in=%s%s "
        "why=%s",
        r->w->o.name, r->key, kl_run_id(r), r->gen->logic->generation, kl_log_quoted(f->object),
        kl_log_quoted(f->path ? f->path : ""), kl_log_quoted(f->other ? f->other : ""), f->rounds, delay,
        kl__run_detail(r), kl_log_quoted(note));
    r->w->o.event(r->w->o.arg,
        &(kl_news){.about = r->object,
            .type = "Warning",
            .reason = fight ? "FieldFight" : "WriteLoop",
            .note = note});
    if (r->w->o.metrics)
        kl_metrics_circle(r->w->o.metrics, fight);
    kl_free(note);
}

char *kl__fight_ended(kl_run *r, kl_time now)
{
    kl_fight f;
    char *loop = NULL;
    if (!r->w->o.fights || !kl_fights_ended(r->w->o.fights, r->key, now, &f))
        return NULL;
    if (r->w->o.turn)
        loop = loop_text(&f, NULL);
    else if (f.over)
        kl_info("a key that was slowed down has settled",
            "controller=%s key=%s reconcileID=%s generation=%d%s", r->w->o.name, r->key, kl_run_id(r),
            r->gen->logic->generation, kl__run_detail(r));
    else
        tell(r, &f);
    kl_fight_fini(&f);
    return loop;
}
