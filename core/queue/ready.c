/* ready.c - which ready key is next: levels of priority, in them flows that take turns.
 *
 * Empty levels and flows are kept while there are few, because the next key will need them again. */
#include "queue/ready.h"

#include <string.h>
#include "base/mem.h"

/* With more levels or flows than these in use, an empty one is freed at once. */
#define LEVELS_KEPT 64u
#define FLOWS_KEPT 1024u
#define BUCKETS_MIN 64u

/* In rank order, delayed keys are after all others: no count of adds grows that far. */
#define RANK_DELAYED ((int64_t)1 << 62)

void kl_ready_init(kl_ready *r, kl_items *items)
{
    memset(r, 0, sizeof *r);
    r->items = items;
    r->turns = true;
    kl_heap_init(&r->urgent);
    kl_heap_init(&r->high);
    r->level_buckets = r->flow_buckets = BUCKETS_MIN;
    r->level_of = kl_new_array(uint32_t, r->level_buckets);
    r->flow_of = kl_new_array(uint32_t, r->flow_buckets);
    r->n_levels = r->n_flows = r->cap_flows = 1;
    r->levels = kl_new_array(kl_level *, 1);
    r->flows = kl_new_array(kl_flow, 1);
}

void kl_ready_fini(kl_ready *r)
{
    kl_heap_fini(&r->urgent);
    kl_heap_fini(&r->high);
    for (uint32_t i = 1; i < r->n_levels; i++) {
        kl_agenda_fini(&r->levels[i]->ranked);
        kl_free(r->levels[i]);
    }
    kl_free(r->levels);
    kl_free(r->flows);
    kl_free(r->level_of);
    kl_free(r->flow_of);
}

static uint32_t mix(uint32_t x)
{
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

/* --- levels ------------------------------------------------------------------------------- */

static uint32_t *level_bucket(const kl_ready *r, int32_t priority)
{
    return &r->level_of[mix((uint32_t)priority) & (r->level_buckets - 1)];
}

static void levels_rehash(kl_ready *r)
{
    kl_free(r->level_of);
    r->level_buckets *= 2;
    r->level_of = kl_new_array(uint32_t, r->level_buckets);
    for (uint32_t i = 1; i < r->n_levels; i++) {
        if (!r->levels[i]->used)
            continue;
        uint32_t *at = level_bucket(r, r->levels[i]->priority);
        r->levels[i]->next_of_hash = *at;
        *at = i;
    }
}

static kl_level *level_at(kl_ready *r, int32_t priority)
{
    for (uint32_t i = *level_bucket(r, priority); i; i = r->levels[i]->next_of_hash)
        if (r->levels[i]->priority == priority)
            return r->levels[i];
    uint32_t n = r->unused_level;
    if (n) {
        r->unused_level = r->levels[n]->next_of_hash;
    } else {
        n = r->n_levels++;
        r->levels = kl_realloc(r->levels, r->n_levels * sizeof *r->levels);
        r->levels[n] = kl_new(kl_level);
    }
    kl_level *l = r->levels[n];
    *l = (kl_level){.priority = priority, .self = n, .used = true};
    kl_agenda_init(&l->ranked);
    if (++r->levels_in_use > r->level_buckets) {
        levels_rehash(r); /* puts it in its bucket, too */
    } else {
        uint32_t *at = level_bucket(r, priority);
        l->next_of_hash = *at;
        *at = n;
    }
    return l;
}

static void level_drop(kl_ready *r, kl_level *l)
{
    uint32_t *at = level_bucket(r, l->priority);
    while (*at != l->self)
        at = &r->levels[*at]->next_of_hash;
    *at = l->next_of_hash;
    kl_agenda_fini(&l->ranked);
    l->used = false;
    l->next_of_hash = r->unused_level;
    r->unused_level = l->self;
    r->levels_in_use--;
}

/* The level's key that has waited longest. The level is not empty. */
static kl_item *level_oldest(const kl_ready *r, const kl_level *l)
{
    const kl_agenda_entry *e = r->by_rank ? NULL : kl_agenda_peek(&l->ranked);
    kl_item *back = e ? kl_items_at(r->items, e->item) : NULL,
            *it = l->oldest ? kl_items_at(r->items, l->oldest) : NULL;
    return !back || (it && it->at < back->at) ? it : back;
}

/* The urgency of a level; the lowest number comes first. */
static kl_time urgency(const kl_ready *r, const kl_level *l)
{
    return r->ageing ? level_oldest(r, l)->at - l->priority * r->ageing : -(kl_time)l->priority;
}

/* Called after the level's oldest key has changed. */
static void level_settle(kl_ready *r, kl_level *l)
{
    if (!l->len) {
        kl_heap_remove(&r->urgent, &l->urgency);
        kl_heap_remove(&r->high, &l->height);
        if (r->levels_in_use > LEVELS_KEPT)
            level_drop(r, l);
        return;
    }
    kl_time when = urgency(r, l);
    if (!l->urgency.pos) {
        kl_heap_push(&r->urgent, &l->urgency, when);
        kl_heap_push(&r->high, &l->height, -(kl_time)l->priority);
    } else if (when != l->urgency.when && r->urgent.len > 1) {
        kl_heap_move(&r->urgent, &l->urgency, when);
    } else {
        l->urgency.when = when; /* the only level, or no change */
    }
}

/* --- flows -------------------------------------------------------------------------------- */

static uint32_t *flow_bucket(const kl_ready *r, uint32_t level, uint32_t ns)
{
    return &r->flow_of[(ns ^ mix(level)) & (r->flow_buckets - 1)];
}

static void flows_rehash(kl_ready *r)
{
    kl_free(r->flow_of);
    r->flow_buckets *= 2;
    r->flow_of = kl_new_array(uint32_t, r->flow_buckets);
    for (uint32_t i = 1; i < r->n_flows; i++) {
        if (!r->flows[i].level)
            continue;
        uint32_t *at = flow_bucket(r, r->flows[i].level, r->flows[i].ns);
        r->flows[i].next_of_hash = *at;
        *at = i;
    }
}

static uint32_t flow_at(kl_ready *r, uint32_t level, uint32_t ns)
{
    for (uint32_t i = *flow_bucket(r, level, ns); i; i = r->flows[i].next_of_hash)
        if (r->flows[i].level == level && r->flows[i].ns == ns)
            return i;
    uint32_t n = r->unused_flow;
    if (n) {
        r->unused_flow = r->flows[n].next;
    } else {
        n = r->n_flows++;
        if (n == r->cap_flows)
            r->flows = kl_realloc(r->flows, (r->cap_flows *= 2) * sizeof *r->flows);
    }
    r->flows[n] = (kl_flow){.level = level, .ns = ns};
    if (++r->flows_in_use > r->flow_buckets) {
        flows_rehash(r);
    } else {
        uint32_t *at = flow_bucket(r, level, ns);
        r->flows[n].next_of_hash = *at;
        *at = n;
    }
    return n;
}

static void flow_drop(kl_ready *r, uint32_t n)
{
    kl_flow *f = &r->flows[n];
    uint32_t *at = flow_bucket(r, f->level, f->ns);
    while (*at != n)
        at = &r->flows[*at].next_of_hash;
    *at = f->next_of_hash;
    f->level = 0;
    f->next = r->unused_flow;
    r->unused_flow = n;
    r->flows_in_use--;
}

/* Adds a flow to the ring of its level, after all the others. */
static void ring_join(kl_ready *r, kl_level *l, uint32_t n)
{
    kl_flow *f = &r->flows[n];
    if (!l->turn) {
        l->turn = f->next = f->prev = n;
        return;
    }
    kl_flow *now = &r->flows[l->turn];
    f->next = l->turn;
    f->prev = now->prev;
    r->flows[now->prev].next = n;
    now->prev = n;
}

static void ring_leave(kl_ready *r, kl_level *l, uint32_t n)
{
    kl_flow *f = &r->flows[n];
    if (f->next == n) {
        l->turn = 0;
    } else {
        r->flows[f->prev].next = f->next;
        r->flows[f->next].prev = f->prev;
        if (l->turn == n)
            l->turn = f->next;
    }
    if (r->flows_in_use > FLOWS_KEPT)
        flow_drop(r, n);
}

/* The namespace of "ns/name"; a key without one is in the flow of the cluster. */
static uint32_t ns_of(const kl_ready *r, const kl_item *it)
{
    const char *slash = r->turns ? memchr(it->key, '/', it->key_len) : NULL;
    return slash ? kl_items_hash(it->key, (size_t)(slash - it->key)) : 0;
}

/* --- putting and taking ------------------------------------------------------------------- */

/* Inserts an item behind `before`, or first if that is KL_NO_ITEM. */
static void flow_insert(kl_ready *r, uint32_t n, kl_handle before, kl_item *it)
{
    kl_flow *f = &r->flows[n];
    it->flow = n;
    it->flow_prev = before;
    it->flow_next = before ? kl_items_at(r->items, before)->flow_next : f->first;
    if (before)
        kl_items_at(r->items, before)->flow_next = it->self;
    else
        f->first = it->self;
    if (it->flow_next)
        kl_items_at(r->items, it->flow_next)->flow_prev = it->self;
    else
        f->last = it->self;
}

static void flow_push(kl_ready *r, kl_level *l, kl_item *it, bool back)
{
    uint32_t n = flow_at(r, l->self, ns_of(r, it));
    kl_flow *f = &r->flows[n];
    kl_handle before = back ? KL_NO_ITEM : f->last;
    if (!f->first)
        ring_join(r, l, n);
    if (back) /* only items that were put back, too, stand in front of it: few */
        for (kl_handle h = f->first;
             h && kl_items_at(r->items, h)->back && kl_items_at(r->items, h)->at <= it->at;
             h = kl_items_at(r->items, h)->flow_next)
            before = h;
    flow_insert(r, n, before, it);
}

static void flow_remove(kl_ready *r, kl_level *l, kl_item *it)
{
    kl_flow *f = &r->flows[it->flow];
    if (it->flow_prev)
        kl_items_at(r->items, it->flow_prev)->flow_next = it->flow_next;
    else
        f->first = it->flow_next;
    if (it->flow_next)
        kl_items_at(r->items, it->flow_next)->flow_prev = it->flow_prev;
    else
        f->last = it->flow_prev;
    if (!f->first)
        ring_leave(r, l, it->flow);
}

static void list_push(kl_ready *r, kl_level *l, kl_item *it)
{
    it->next = KL_NO_ITEM;
    it->prev = l->newest;
    if (l->newest)
        kl_items_at(r->items, l->newest)->next = it->self;
    else
        l->oldest = it->self;
    l->newest = it->self;
}

static void list_remove(kl_ready *r, kl_level *l, kl_item *it)
{
    if (it->prev)
        kl_items_at(r->items, it->prev)->next = it->next;
    else
        l->oldest = it->next;
    if (it->next)
        kl_items_at(r->items, it->next)->prev = it->prev;
    else
        l->newest = it->prev;
}

void kl_ready_put(kl_ready *r, kl_item *it)
{
    kl_level *l = level_at(r, it->priority);
    list_push(r, l, it);
    l->len++;
    r->len++;
    if (r->by_rank)
        kl_agenda_put(&l->ranked, r->items, it, it->delayed ? RANK_DELAYED + it->at : (int64_t)it->first_add);
    else
        flow_push(r, l, it, false);
    if (l->oldest == it->self)
        level_settle(r, l);
}

void kl_ready_put_back(kl_ready *r, kl_item *it)
{
    if (r->by_rank || r->by_name) { /* its rank or name is its place */
        kl_ready_put(r, it);
        return;
    }
    kl_level *l = level_at(r, it->priority);
    flow_push(r, l, it, true);
    it->back = true;
    kl_agenda_put(&l->ranked, r->items, it, it->at);
    l->len++;
    r->len++;
    if (level_oldest(r, l) == it)
        level_settle(r, l);
}

void kl_ready_remove(kl_ready *r, kl_item *it)
{
    kl_level *l = r->by_rank ? level_at(r, it->priority) : r->levels[r->flows[it->flow].level];
    /* the list need not be in the order of age */
    bool was_first = l->oldest == it->self || level_oldest(r, l) == it;
    if (!it->back)
        list_remove(r, l, it);
    l->len--;
    r->len--;
    if (r->by_rank || it->back)
        kl_agenda_remove(&l->ranked, r->items, it);
    it->back = false;
    if (!r->by_rank)
        flow_remove(r, l, it);
    if (was_first)
        level_settle(r, l);
}

static kl_item *first_by_name(const kl_ready *r, const kl_level *l)
{
    kl_item *first = kl_items_at(r->items, l->oldest);
    for (kl_handle h = first->next; h; h = kl_items_at(r->items, h)->next)
        if (strcmp(kl_items_at(r->items, h)->key, first->key) < 0)
            first = kl_items_at(r->items, h);
    return first;
}

kl_item *kl_ready_take(kl_ready *r)
{
    kl_heap_node *first = kl_heap_peek(&r->urgent);
    if (!first)
        return NULL;
    kl_level *l = KL_CONTAINER(first, kl_level, urgency);
    kl_item *it;
    if (r->by_rank) {
        it = kl_items_at(r->items, kl_agenda_peek(&l->ranked)->item);
    } else if (r->by_name) {
        it = first_by_name(r, l);
    } else if (kl_heap_peek(&r->high) != &l->height) {
        it = level_oldest(r, l); /* by its age, the key comes before those of a higher level */
    } else {
        uint32_t turn = l->turn;
        it = kl_items_at(r->items, r->flows[turn].first);
        l->turn = r->flows[turn].next;
    }
    kl_ready_remove(r, it);
    return it;
}
