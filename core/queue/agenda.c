/* agenda.c - items by a number, lowest first: a binary heap of (number, seq, item). */
#include "queue/agenda.h"

#include "base/mem.h"

/* An array of at least this length is freed when it is empty. */
#define LENGTH_KEPT 4096u

void kl_agenda_init(kl_agenda *a) { *a = (kl_agenda){0}; }

void kl_agenda_fini(kl_agenda *a)
{
    kl_free(a->v);
    kl_agenda_init(a);
}

static bool before(const kl_agenda_entry *a, const kl_agenda_entry *b)
{
    return a->number < b->number || (a->number == b->number && a->seq < b->seq);
}

static void put(kl_agenda *a, kl_items *t, size_t i, kl_agenda_entry e)
{
    a->v[i] = e;
    kl_items_at(t, e.item)->place = (uint32_t)i + 1;
}

static void settle(kl_agenda *a, kl_items *t, size_t i, kl_agenda_entry e)
{
    for (; i && before(&e, &a->v[(i - 1) / 2]); i = (i - 1) / 2)
        put(a, t, i, a->v[(i - 1) / 2]);
    for (size_t child; (child = 2 * i + 1) < a->len; i = child) {
        if (child + 1 < a->len && before(&a->v[child + 1], &a->v[child]))
            child++;
        if (!before(&a->v[child], &e))
            break;
        put(a, t, i, a->v[child]);
    }
    put(a, t, i, e);
}

void kl_agenda_put(kl_agenda *a, kl_items *t, kl_item *it, int64_t number)
{
    kl_agenda_entry e = {number, a->next_seq++, it->self};
    if (!it->place && a->len == a->cap)
        a->v = kl_realloc(a->v, (a->cap = a->cap ? a->cap * 2 : 16) * sizeof *a->v);
    settle(a, t, it->place ? it->place - 1 : a->len++, e);
}

void kl_agenda_remove(kl_agenda *a, kl_items *t, kl_item *it)
{
    size_t i = it->place - 1;
    kl_agenda_entry last = a->v[--a->len];
    it->place = 0;
    if (i < a->len)
        settle(a, t, i, last);
    else if (!a->len && a->cap > LENGTH_KEPT)
        kl_agenda_fini(a);
}
