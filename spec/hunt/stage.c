/* stage.c - a program as `kubelua test` runs it: a manager with its threads beside an embedded API server,
 * in time that stands; then beside itself, as its own candidate in the shadow, which takes its place or
 * leaves. Sockets belong to threads that were there before the fence was closed. */
#include "hunt.h"

#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/random.h"
#include "lab/shadow.h"
#include "model/object.h"
#include "script/program.h"
#include "script/stage.h"

/* Keys that run before something else happens: programs that wake themselves go on for ever. */
#define TURNS 30
/* What is under way for so long does not end; less than what makes a child hang. */
#define LONGEST KL_SECONDS(40)
#define MARK_AGAIN KL_MILLISECONDS(5)
#define PAUSE_NS 50000

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

/* Until nothing is under way, and, with *rv, every cache has come to there. */
static bool quiet(stage *s, uint64_t *rv)
{
    kl_time began = kl_clock_now(kl_clock_real()), marked = began;
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
        the_page->staged += kl_manager_turn(s->on->manager);
        atomic_fetch_add(&the_page->steps, 1);
    }
}

static void journal_clear(lkl_journal *j)
{
    lkl__journal_fini(j);
    *j = (lkl_journal){0};
    kl_mutex_init(&j->mu);
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
        kl_clock_advance(s->on->clock, KL_SECONDS(31));
        kl_manager_clock_moved(s->on->manager);
        turns(s);
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
