/* queue.c - changes that wait, in their order, until they are known in the version of a watch. */
#include "custom/queue.h"

#include "base/heap.h"
#include "base/list.h"
#include "base/mem.h"

/* The number of following changes whose objects may join one call. */
#define AHEAD 250

typedef struct item {
    kl_list link;
    kl_convert_entry entry;
} item;

#define ITEM(l) KL_CONTAINER(l, item, link)

struct kl_convert_queue {
    kl_list items;
    size_t len;
    const kl__kind *kind;
    bool olds, calls;
    kl_conversions *conversions;
    item *told; /* what was handed out last */
    kl_convert_entry out;
};

kl_convert_queue *kl_convert_queue_new(const kl__kind *k, bool olds, bool calls)
{
    kl_convert_queue *q = kl_new(kl_convert_queue);
    kl_list_init(&q->items);
    q->kind = k;
    q->calls = calls;
    q->olds = olds;
    q->conversions = kl_conversions_new();
    return q;
}

static void change_fini(kl__change *c)
{
    kl_value_unref(c->old);
    kl_value_unref(c->now);
    c->old = c->now = NULL;
}

static void item_free(item *i)
{
    if (!i)
        return;
    change_fini(&i->entry.change);
    kl_free(i);
}

static void told_fini(kl_convert_queue *q)
{
    change_fini(&q->out.change);
    item_free(q->told);
    q->told = NULL;
}

void kl_convert_queue_free(kl_convert_queue *q)
{
    if (!q)
        return;
    told_fini(q);
    for (kl_list *l; (l = kl_list_shift(&q->items));)
        item_free(ITEM(l));
    kl_conversions_free(q->conversions);
    kl_free(q);
}

static void push(kl_convert_queue *q, const kl_convert_entry *entry)
{
    item *i = kl_new(item);
    i->entry = *entry;
    i->entry.change.key = NULL;
    i->entry.change.old = kl_value_ref(entry->change.old);
    i->entry.change.now = kl_value_ref(entry->change.now);
    kl_list_push(&q->items, &i->link);
    q->len++;
}

void kl_convert_queue_push(kl_convert_queue *q, const kl__change *c)
{
    push(q, &(kl_convert_entry){.change = *c});
}

void kl_convert_queue_mark(kl_convert_queue *q, uint64_t rv, bool initial_end)
{
    push(q, &(kl_convert_entry){.change = {.rv = rv}, .mark = true, .initial_end = initial_end});
}

size_t kl_convert_queue_len(const kl_convert_queue *q) { return q->len; }

/* One object of a change, or the stored one where conversion does not matter. */
static kl_status one(kl_convert_queue *q, bool matters, const kl_value *o, const kl_value **out, kl_err *err)
{
    *out = matters ? NULL : kl_value_ref(o);
    return matters && o ? kl_conversions_get(q->calls ? q->conversions : NULL, q->kind, o, out, err) : KL_OK;
}

static kl_status convert(kl_convert_queue *q, const kl__change *c, kl__change *out, kl_err *err)
{
    kl_err later = KL_ERR_INIT;
    *out = *c;
    kl_status st = one(q, q->olds, c->old, &out->old, err),
              now = one(q, true, c->now, &out->now, st ? &later : err);
    kl_err_fini(&later);
    if (!st && !now)
        return KL_OK;
    change_fini(out);
    return st ? st : now;
}

kl_status kl_convert_queue_next(kl_convert_queue *q, const kl_convert_entry **out, kl_err *err)
{
    told_fini(q);
    if (kl_list_empty(&q->items)) {
        kl_conversions_forget(q->conversions);
        return KL_ENOTFOUND;
    }
    item *first = ITEM(q->items.next);
    q->out = first->entry;
    kl_status st = convert(q, &first->entry.change, &q->out.change, err);
    if (st == KL_EAGAIN) { /* the known conversions belong to earlier changes */
        kl_conversions_forget(q->conversions);
        st = convert(q, &first->entry.change, &q->out.change, NULL);
    }
    size_t ahead = 0;
    for (kl_list *l = first->link.next; st == KL_EAGAIN && l != &q->items && ahead++ < AHEAD; l = l->next) {
        kl__change unused;
        if (!convert(q, &ITEM(l)->entry.change, &unused, NULL))
            change_fini(&unused);
    }
    if (st) {
        q->out.change.old = q->out.change.now = NULL;
        return st;
    }
    kl_list_remove(&first->link);
    q->len--;
    q->told = first;
    *out = &q->out;
    return KL_OK;
}

kl_conversions *kl_convert_queue_conversions(kl_convert_queue *q) { return q->conversions; }
