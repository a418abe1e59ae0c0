/* stage.c - a program as `kubelua test` runs it: a manager with its threads beside an embedded API server,
 * in time that stands, asked by `kubelua attach`; then beside itself, as its own candidate in the shadow,
 * which takes its place or leaves. Sockets belong to threads that were there before the fence was closed. */
#include "hunt.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/random.h"
#include "control/why.h"
#include "controller/controller.h"
#include "lab/shadow.h"
#include "model/object.h"
#include "script/program.h"
#include "script/stage.h"

/* Keys that run before something else happens: programs that wake themselves go on forever. */
#define TURNS 30
/* What is under way for so long does not end; less than what makes a child hang. */
#define LONGEST KL_SECONDS(40)
#define LONG KL_MILLISECONDS(200)
#define MARK_AGAIN KL_MILLISECONDS(5)
#define PAUSE_NS 200000

static const char WIDGETS[] =
    "{\"apiVersion\":\"apiextensions.k8s.io/"
    "v1\",\"kind\":\"CustomResourceDefinition\",\"metadata\":{\"name\":"
    "\"widgets.example.com\"},\"spec\":{\"group\":\"example.com\",\"names\":{\"kind\":\"Widget\",\"plural\":"
    "\"widgets\",\"singular\":\"widget\",\"listKind\":\"WidgetList\"},\"scope\":\"Namespaced\",\"versions\":["
    "{"
    "\"name\":\"v1\",\"served\":true,\"storage\":true,\"subresources\":{\"status\":{}},\"schema\":{"
    "\"openAPIV3Schema\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":true}}}]}}";
static const char GOOD[] =
    "local kube = require 'kubelua'\n"
    "return kube.controller { name = 'good', resource = 'v1/ConfigMap', reconcile = function(map, ctx)\n"
    "  ctx:patch(map, function(m) m.metadata.labels.seen = 'yes' end) end }\n";

struct stage {
    lkl_stage *on;
    bool spoilt; /* kinds came or went: nothing brings them back */
};

static void put(void *arg, const kl_value *v)
{
    kl_err err = KL_ERR_INIT;
    if (kl_server_load(((stage *)arg)->on->server, v, &err))
        hunt_wrong("the stage does not take %s: %s", kl_object_name(v), kl_err_message(&err));
}

static void pass(stage *s, kl_time by)
{
    kl_clock_advance(s->on->clock, by);
    kl_manager_clock_moved(s->on->manager);
}

/* Until nothing is under way, and, with *rv, every cache has come to there. What computes or sleeps for
 * nothing again and again is ended by its timeout, so that time has to pass. */
static bool quiet(stage *s, uint64_t *rv)
{
    kl_time began = kl_clock_now(kl_clock_real()), marked = began, passed = began;
    for (;;) {
        kl_outlook o = {0};
        kl_manager_outlook(s->on->manager, *rv, &o);
        if (!o.busy)
            return o.ready;
        kl_time now = kl_clock_now(kl_clock_real());
        if (now - began > LONGEST)
            hunt_wrong("%s does not end", o.what ? o.what : "something");
        kl_free(o.what);
        if (*rv && now - marked > MARK_AGAIN) {
            *rv = kl_server_mark(s->on->server);
            marked = now;
        }
        if (now - passed > LONG) {
            pass(s, KL_SECONDS(1));
            passed = now;
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

static void turns(stage *s)
{
    for (int i = 0; i < TURNS; i++) {
        uint64_t rv = 0;
        (void)quiet(s, &rv);
        rv = kl_server_mark(s->on->server);
        if (!quiet(s, &rv))
            break;
        the_page->stage_turns += kl_manager_turn(s->on->manager);
        atomic_fetch_add(&the_page->steps, 1);
    }
}

static void journal_clear(lkl_journal *j)
{
    lkl__journal_fini(j);
    *j = (lkl_journal){0};
    kl_mutex_init(&j->mu);
}

/* --- what people do to it from outside ---------------------------------------------------- */

typedef struct asking {
    const char *key;
    kl_random *dice;
    atomic_int owed; /* answers */
} asking;

static void answered(void *arg, const kl_value *report)
{
    kl_value_unref(report);
    atomic_fetch_sub(&((asking *)arg)->owed, 1);
}

/* On the loop. */
static void ask(void *arg, kl_controller *c)
{
    asking *a = arg;
    kl_controller_look l;
    kl_err err = KL_ERR_INIT;
    atomic_fetch_add(&a->owed, 1);
    if (kl_controller_rehearse(c, a->key, answered, a, &err))
        atomic_fetch_sub(&a->owed, 1);
    kl_err_fini(&err);
    kl_controller_look_at(c, &l);
    const kl_value *params = kl_random_next(a->dice) % 2 ? hunt_params(a->dice)
        : l.wiring                                       ? kl_value_ref(kl_wiring_logic(l.wiring)->params)
                                                         : NULL,
                   *now = NULL;
    if (params && kl_controller_set_params(c, params, &now, &err))
        kl_err_fini(&err);
    kl_value_unref(params);
    kl_value_unref(now);
    kl_wiring_unref(l.wiring);
}

/* Why a key is as it is, what it would do, and its params again, or others. */
static void attached(stage *s, kl_random *dice)
{
    static const char *const KEYS[] = {"default/a", "a"};
    asking a = {.key = KEYS[kl_random_next(dice) % 2], .dice = dice};
    const kl_value *why = NULL;
    kl_err err = KL_ERR_INIT;
    hunt_phase("attach");
    if (!kl_why_tell(s->on->manager, "v1/ConfigMap", a.key, &why, &err))
        kl_value_unref(why);
    kl_err_fini(&err);
    kl_manager_each(s->on->manager, ask, &a);
    the_page->attached++;
    kl_time began = kl_clock_now(kl_clock_real());
    do {
        turns(s);
        pass(s, KL_SECONDS(31));
        if (kl_clock_now(kl_clock_real()) - began > LONGEST)
            hunt_wrong("a dry run is not answered");
    } while (atomic_load(&a.owed));
}

static void in_the_shadow(stage *s, world *w, kl_program *candidate, kl_random *dice)
{
    kl_manager *m = s->on->manager;
    kl_err err = KL_ERR_INIT;
    hunt_phase("shadow");
    if (!kl_manager_shadow(m, candidate, &(kl_shadow_options){.path = "hunt.lua"}, &err)) {
        for (int i = 0; i < 2; i++) {
            world_change(w, dice, put, s);
            turns(s);
        }
        kl_value_unref(kl_shadow_report(kl_manager_shadow_of(m)));
        the_page->shadowed++;
        if (kl_random_next(dice) % 2)
            kl_manager_shadow_end(m);
        else if (!kl_manager_promote(m, &err))
            turns(s);
    }
    kl_err_fini(&err);
}

void stage_run(stage *s, world *w, kl_program *p, kl_program *candidate, kl_random *dice)
{
    kl_err err = KL_ERR_INIT;
    if (s->spoilt)
        return;
    hunt_phase("test");
    if (!lkl__stage_start(s->on, &p, 1, NULL, &err)) {
        turns(s);
        world_change(w, dice, put, s);
        turns(s);
        pass(s, KL_SECONDS(31));
        turns(s);
        attached(s, dice);
        if (candidate)
            in_the_shadow(s, w, candidate, dice);
        hunt_phase("stop");
    }
    kl_err_fini(&err);
    lkl__stage_stop(s->on);
    s->spoilt = !kl_server_reset(s->on->server);
    journal_clear(&s->on->runs);
    journal_clear(&s->on->calls);
}

stage *stage_new(world *w)
{
    stage *s = kl_new(stage);
    kl_err err = KL_ERR_INIT;
    const kl_value *widgets = NULL;
    kl_program *p = NULL;
    kl_random dice = {1};
    if (lkl__stage_new(KL_SECONDS(1800000000), &s->on, &err)
        || kl_value_decode(WIDGETS, sizeof WIDGETS - 1, &widgets, &err)
        || lkl_program_load_text("good.lua", GOOD, sizeof GOOD - 1, &p, &err))
        hunt_wrong("no stage: %s", kl_err_message(&err));
    put(s, widgets);
    kl_value_unref(widgets);
    world_each(w, put, s);
    kl_server_keep(s->on->server);
    stage_run(s, w, p, NULL, &dice); /* threads that begin with the first request have begun */
    kl_program_unref(p);
    return s;
}

void stage_free(stage *s)
{
    lkl__stage_free(s->on);
    kl_free(s);
}
