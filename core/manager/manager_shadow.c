/* manager_shadow.c - a candidate beside the controllers of a script, until it replaces them or is dropped. */
#include "manager/manager_impl.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "lab/shadow.h"

typedef struct shadow_call {
    kl_manager *m;
    kl_program *program;
    const kl_shadow_options *o;
    kl_status status;
    kl_err *err;
    int slot;
} shadow_call;

/* The slot with the first of the candidate's controllers that runs here; NULL: none runs. */
static kl__slot *slot_like(kl_manager *m, const kl_program *p)
{
    for (size_t k = 0; k < p->n_specs; k++)
        for (size_t i = 0; i < m->n_slots; i++)
            for (size_t n = 0; n < m->slots[i]->n; n++)
                if (!strcmp(kl_controller_name(m->slots[i]->controllers[n]), p->specs[k].name))
                    return m->slots[i];
    return NULL;
}

static kl_status no_slot(kl_manager *m, const kl_program *p, kl_err *err)
{
    kl_buf have = KL_BUF_INIT;
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t n = 0; n < m->slots[i]->n; n++)
            kl_buf_printf(
                &have, "%s%s", have.len ? ", " : "", kl_controller_name(m->slots[i]->controllers[n]));
    kl_status st = kl_fail(err, KL_EINVAL,
        "%s has none of the controllers that run here: its first is %s, and %s run here; a candidate shadows "
        "controllers of the same names",
        p->name, p->n_specs ? p->specs[0].name : "none", have.len ? kl_buf_str(&have) : "none");
    kl_buf_fini(&have);
    return st;
}

static void begin_shadow(void *arg)
{
    shadow_call *c = arg;
    kl_manager *m = c->m;
    kl__slot *s = slot_like(m, c->program);
    if (m->stopping)
        c->status = kl_fail(c->err, KL_ECANCELLED, "the manager is stopping");
    else if (!s)
        c->status = no_slot(m, c->program, c->err);
    for (size_t i = 0; !c->status && i < c->program->n_specs; i++)
        c->status = kl__manager_check_namespaces(m, c->program, &c->program->specs[i], c->err);
    if (c->status)
        return;
    const char **live = kl_new_array(const char *, s->n + 1);
    for (size_t i = 0; i < s->n; i++)
        live[i] = kl_controller_name(s->controllers[i]);
    kl_shadow_options o = *c->o;
    o.live = live;
    o.script = s->program->name;
    c->program->generation = s->generation + 1;
    m->shadowed = s;
    kl_shadow_begin(m->shadow, c->program, &o);
    kl_free(live);
    kl__manager_advance(m);
}

kl_status kl_manager_shadow(kl_manager *m, kl_program *p, const kl_shadow_options *o, kl_err *err)
{
    shadow_call c = {.m = m, .program = p, .o = o, .err = err};
    kl_loop_call(m->loop, begin_shadow, &c);
    return c.status;
}

static void end_shadow(void *arg)
{
    kl_manager *m = arg;
    kl_shadow_end(m->shadow);
}

void kl_manager_shadow_end(kl_manager *m) { kl_loop_call(m->loop, end_shadow, m); }
kl_shadow *kl_manager_shadow_of(kl_manager *m) { return m->shadow; }

static void promote(void *arg)
{
    shadow_call *c = arg;
    kl_manager *m = c->m;
    kl_program *p = kl_shadow_program(m->shadow);
    if (!p) {
        c->status = kl_fail(c->err, KL_ENOTFOUND,
            "no candidate runs in the shadow: start one with kubelua shadow CANDIDATE.lua");
        return;
    }
    kl__change ch = {.m = m, .slot = m->shadowed, .program = p, .err = c->err};
    kl_shadow_end(m->shadow);
    kl__manager_apply(&ch);
    c->status = ch.status;
    if (!ch.status)
        kl_info("the candidate was promoted", "script=%s generation=%d", p->name, p->generation);
    kl_program_unref(p);
}

kl_status kl_manager_promote(kl_manager *m, kl_err *err)
{
    shadow_call c = {.m = m, .err = err};
    kl_loop_call(m->loop, promote, &c);
    return c.status;
}
