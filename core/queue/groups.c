/* groups.c - keys that exclude each other: the running one, the parked ones, the candidate. */
#include "queue/groups.h"

#include <string.h>
#include "base/mem.h"

void kl_groups_init(kl_groups *g, kl_ready *ready) { *g = (kl_groups){.ready = ready}; }

static void group_free(void *arg)
{
    kl_group *x = arg;
    if (x->has_parked)
        kl_ready_fini(&x->parked);
    kl_free(x);
}

void kl_groups_fini(kl_groups *g) { kl_map_free(g->by_name, group_free); }

static kl_group *group_at(kl_groups *g, const char *name)
{
    if (!g->by_name)
        g->by_name = kl_map_new();
    kl_group *x = kl_map_get(g->by_name, name);
    if (x)
        return x;
    size_t n = strlen(name) + 1;
    x = kl_zalloc(sizeof *x + n);
    memcpy(x->name, name, n);
    kl_map_set(g->by_name, name, x);
    return x;
}

static void group_settle(kl_groups *g, kl_group *x)
{
    if (x->runs || x->candidate || (x->has_parked && x->parked.len))
        return;
    kl_map_take(g->by_name, x->name);
    group_free(x);
}

/* Makes a parked key the candidate, if the group needs one. True: a key is ready now. */
static bool call_next(kl_groups *g, kl_group *x)
{
    kl_item *it = x->runs || x->candidate || !x->has_parked ? NULL : kl_ready_take(&x->parked);
    if (it) {
        g->n_parked--;
        it->parked = false;
        x->candidate = it;
        kl_ready_put_back(g->ready, it);
    }
    group_settle(g, x);
    return it;
}

bool kl_groups_leave(kl_groups *g, kl_item *it)
{
    kl_group *x = it->group;
    if (!x)
        return false;
    it->group = NULL;
    if (x->runs == it)
        x->runs = NULL;
    if (x->candidate == it)
        x->candidate = NULL;
    return call_next(g, x);
}

bool kl_groups_enter(kl_groups *g, const char *name, kl_item *it, bool *news)
{
    if (it->group && strcmp(it->group->name, name))
        *news |= kl_groups_leave(g, it);
    kl_group *x = it->group = group_at(g, name);
    if (x->candidate == it)
        x->candidate = NULL;
    if (x->runs && x->runs != it)
        return false;
    x->runs = it;
    return true;
}

void kl_groups_park(kl_groups *g, kl_item *it)
{
    kl_group *x = it->group;
    if (!x->has_parked) {
        kl_ready_init(&x->parked, g->ready->items);
        x->parked.turns = g->ready->turns;
        x->parked.by_name = g->ready->by_name;
        x->parked.ageing = g->ready->ageing;
        x->has_parked = true;
    }
    it->parked = true;
    g->n_parked++;
    if (it->called)
        kl_ready_put_back(&x->parked, it);
    else
        kl_ready_put(&x->parked, it);
    it->called = true;
}

void kl_groups_unpark(kl_groups *g, kl_item *it)
{
    kl_group *x = it->group;
    kl_ready_remove(&x->parked, it);
    it->parked = false;
    it->group = NULL;
    g->n_parked--;
    kl_ready_put_back(g->ready, it);
    group_settle(g, x);
}
