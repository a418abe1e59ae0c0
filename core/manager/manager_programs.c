/* manager_programs.c - which program each slot runs. A change makes a new generation: it keeps the
 * controllers of the same name and kind, makes the new ones, and retires the rest. */
#include "manager/manager_impl.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"

/* Whether the slot's newest program has a controller, or a webhook, of that name. */
static bool has(const kl__slot *s, const char *name)
{
    for (size_t i = 0; i < s->program->n_specs; i++)
        if (!strcmp(s->program->specs[i].name, name))
            return true;
    for (size_t i = 0; i < s->program->n_hooks; i++)
        if (!strcmp(s->program->hooks[i].as.name, name))
            return true;
    return false;
}

void kl__manager_broken(void *arg, const char *controller, int generation, const char *why)
{
    kl_manager *m = arg;
    for (size_t i = 0; i < m->n_slots && !m->stopping; i++)
        if (m->slots[i]->generation == generation && has(m->slots[i], controller)) {
            m->o.broken(m->o.broken_arg, (int)i, generation, controller, why);
            return;
        }
}

/* --- controllers that retire --------------------------------------------------------------- */

static void retired_free(kl_controller *c)
{
    kl_controller_join(c);
    kl_controller_free(c);
}

static void retiree_drain(kl__retiree *r)
{
    kl_info("the new generation lacks this controller; it stops", "controller=%s resource=%s",
        kl_controller_name(r->c), kl_controller_resource(r->c));
    r->successor = NULL;
    kl_controller_drain(r->c);
}

void kl__manager_advance_retired(kl_manager *m)
{
    for (size_t i = 0; i < m->n_retired;) {
        kl__retiree *r = &m->retired[i];
        if (r->successor && kl_controller_published(r->successor))
            retiree_drain(r);
        if (r->successor || !kl_controller_ended(r->c)) {
            i++;
            continue;
        }
        kl_controller *c = r->c;
        kl_lock(&m->mu);
        *r = m->retired[--m->n_retired];
        kl_unlock(&m->mu);
        retired_free(c);
    }
}

void kl__manager_free_slots(kl_manager *m)
{
    for (size_t i = 0; i < m->n_slots; i++) {
        for (size_t k = 0; k < m->slots[i]->n; k++)
            retired_free(m->slots[i]->controllers[k]);
        kl_program_unref(m->slots[i]->program);
        kl_free(m->slots[i]->controllers);
        kl_free(m->slots[i]);
    }
    for (size_t i = 0; i < m->n_retired; i++)
        retired_free(m->retired[i].c);
    m->n_slots = m->n_retired = 0;
}

/* --- a change ----------------------------------------------------------------------------- */

/* A controller of that name in another slot; or NULL. */
static kl_controller *find(kl_manager *m, const char *name, const kl__slot *except)
{
    for (size_t i = 0; i < m->n_slots; i++)
        for (size_t k = 0; m->slots[i] != except && k < m->slots[i]->n; k++)
            if (!strcmp(kl_controller_name(m->slots[i]->controllers[k]), name))
                return m->slots[i]->controllers[k];
    return NULL;
}

/* The slot's controller of that name and kind, which leaves its old place; NULL: it has none. */
static kl_controller *take_old(kl_manager *m, kl__slot *s, const kl_controller_spec *spec)
{
    /* the script returns to the old resource before the new one was ready */
    for (size_t i = 0; i < m->n_retired; i++) {
        kl_controller *c = m->retired[i].c;
        if (m->retired[i].slot == s && m->retired[i].successor && !strcmp(kl_controller_name(c), spec->name)
            && !strcmp(kl_controller_resource(c), spec->resource)) {
            kl_lock(&m->mu);
            m->retired[i] = m->retired[--m->n_retired];
            kl_unlock(&m->mu);
            return c;
        }
    }
    for (size_t k = 0; k < s->n; k++) {
        kl_controller *c = s->controllers[k];
        if (c && !strcmp(kl_controller_name(c), spec->name)
            && !strcmp(kl_controller_resource(c), spec->resource)) {
            s->controllers[k] = NULL;
            return c;
        }
    }
    return NULL;
}

/* Retires the controllers that the new generation lacks. Under m->mu. */
static void retire_rest(kl_manager *m, kl__slot *s, kl_controller **fresh, size_t n)
{
    for (size_t k = 0; k < s->n; k++) {
        kl_controller *c = s->controllers[k], *successor = NULL;
        if (!c)
            continue;
        for (size_t i = 0; i < n; i++)
            if (!strcmp(kl_controller_name(fresh[i]), kl_controller_name(c)))
                successor = fresh[i];
        for (size_t i = 0; i < m->n_retired; i++) /* retirees that waited for c now wait for its successor */
            if (m->retired[i].successor == c && successor)
                m->retired[i].successor = successor;
            else if (m->retired[i].successor == c)
                retiree_drain(&m->retired[i]);
        m->retired = kl_realloc(m->retired, (m->n_retired + 1) * sizeof *m->retired);
        kl__retiree *r = &m->retired[m->n_retired++];
        *r = (kl__retiree){.c = c, .successor = successor, .slot = s};
        if (!successor || !kl_controller_published(c))
            retiree_drain(r);
    }
}

static const char *other_than(char **namespaces, const char *ns)
{
    while (namespaces && *namespaces && !strcmp(*namespaces, ns))
        namespaces++;
    return namespaces ? *namespaces : NULL;
}

/* Rejects namespaces that differ from --namespace: the process has no caches of them. */
kl_status kl__manager_check_namespaces(
    const kl_manager *m, const kl_program *p, const kl_controller_spec *s, kl_err *err)
{
    const char *other = m->o.ns ? other_than(s->namespaces, m->o.ns) : NULL;
    for (size_t i = 0; m->o.ns && !other && i < s->n_selects; i++)
        other = other_than(s->selects[i].namespaces, m->o.ns);
    if (!other)
        return KL_OK;
    return kl_fail(err, KL_EINVAL,
        "%s: controller %s needs namespace %s, but this process watches only %s (--namespace): run it "
        "without --namespace, or take %s out of its namespaces",
        p->name, s->name, other, m->o.ns, other);
}

/* Whether the controllers of the program may run here. */
static kl_status check(const kl__change *ch)
{
    kl_manager *m = ch->m;
    const kl_program *p = ch->program;
    if (m->stopping)
        return kl_fail(ch->err, KL_ECANCELLED, "the manager is stopping");
    for (size_t i = 0; i < p->n_specs; i++)
        if (find(m, p->specs[i].name, ch->slot))
            return kl_fail(ch->err, KL_EEXISTS,
                "%s: another script has a controller named %s: names are unique, they are field managers and "
                "metric labels",
                p->name, p->specs[i].name);
    kl_status st = KL_OK;
    for (size_t i = 0; i < p->n_specs && !st; i++)
        st = kl__manager_check_namespaces(m, p, &p->specs[i], ch->err);
    return st;
}

/* Makes the program the newest generation of the slot. */
static void take(kl__change *ch, kl__slot *s)
{
    kl_manager *m = ch->m;
    kl_program *p = ch->program;
    kl_controller **fresh = kl_new_array(kl_controller *, p->n_specs + 1);
    p->generation = s->generation + 1;
    for (size_t i = 0; i < p->n_specs; i++) {
        fresh[i] = take_old(m, s, &p->specs[i]);
        if (!fresh[i])
            fresh[i] = kl_controller_new(&m->env, &p->specs[i]);
        kl_controller_stage(fresh[i], p, i, p->generation);
    }
    kl_lock(&m->mu);
    retire_rest(m, s, fresh, p->n_specs);
    kl_program_unref(s->program);
    kl_free(s->controllers);
    s->program = kl_program_ref(p);
    s->generation = p->generation;
    s->controllers = fresh;
    s->n = p->n_specs;
    if (!ch->slot) {
        m->slots = kl_realloc(m->slots, (m->n_slots + 1) * sizeof *m->slots);
        m->slots[ch->number = (int)m->n_slots++] = s;
    }
    kl_unlock(&m->mu);
    kl_webhooks_take(m->webhooks, s, p, p->generation);
}

void kl__manager_apply(void *arg)
{
    kl__change *ch = arg;
    kl_manager *m = ch->m;
    kl_program *p = ch->program;
    if ((ch->status = check(ch)))
        return;
    kl__slot *s = ch->slot ? ch->slot : kl_new(kl__slot);
    if ((ch->status = kl_webhooks_check(m->webhooks, s, p, ch->err))
        || (ch->status = kl_custom_metrics_declare(
                kl_commons_metrics(m->commons), p->name, p->metrics, ch->err))) {
        if (!ch->slot)
            kl_free(s);
        return;
    }
    take(ch, s);
    kl_err err = KL_ERR_INIT;
    if (m->started && kl_webhooks_listen(m->webhooks, &err))
        kl_error(
            "webhooks are not served", "script=%s error=%s", p->name, kl_log_quoted(kl_err_message(&err)));
    kl_err_fini(&err);
    kl__manager_advance(m);
}

kl_status kl_manager_add(kl_manager *m, kl_program *p, int *slot_number, kl_err *err)
{
    kl__change ch = {.m = m, .program = p, .err = err};
    kl_loop_call(m->loop, kl__manager_apply, &ch);
    if (!ch.status && slot_number)
        *slot_number = ch.number;
    return ch.status;
}

kl_status kl_manager_replace(kl_manager *m, int slot_number, kl_program *p, kl_err *err)
{
    if (slot_number < 0 || (size_t)slot_number >= m->n_slots)
        return kl_fail(err, KL_EINVAL, "there is no slot %d", slot_number);
    kl__change ch = {.m = m, .slot = m->slots[slot_number], .program = p, .err = err};
    kl_loop_call(m->loop, kl__manager_apply, &ch);
    return ch.status;
}

kl_program *kl_manager_program(kl_manager *m, int slot_number)
{
    kl_lock(&m->mu);
    kl_program *p = kl_program_ref(m->slots[slot_number]->program);
    kl_unlock(&m->mu);
    return p;
}
