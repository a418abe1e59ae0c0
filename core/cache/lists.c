/* lists.c - a list is the complete state: it replaces the store in one step.
 *
 * The page is put in key order, which is the fastest way to fill the ordered sets. Each listed object is put
 * like a watch's object, and marked by a bit; objects without the bit are removed afterwards. Readers see all
 * of it at once. */
#include "cache/indexer_impl.h"

#include <stdlib.h>
#include <string.h>
#include "base/mem.h"

/* --- what changed ------------------------------------------------------------------------- */

static void changes_add(kl_changes *c, const kl_value *old, const kl_value *now)
{
    if (c->len == c->cap)
        c->v = kl_realloc(c->v, (c->cap = c->cap ? 2 * c->cap : 16) * sizeof *c->v);
    c->v[c->len++] = (kl_change){kl_value_ref(old), now};
}

void kl_changes_fini(kl_changes *c)
{
    for (size_t i = 0; i < c->len; i++)
        kl_value_unref(c->v[i].old);
    kl_free(c->v);
    *c = (kl_changes){0};
}

/* --- what was listed ---------------------------------------------------------------------- */

typedef struct listing {
    kl_changes *out;
    uint64_t *seen;
    uint32_t end;
    uint32_t *lost;
    size_t n_lost;
} listing;

static bool is_seen(const listing *l, uint32_t number)
{
    return number < l->end && l->seen[number / 64] >> (number % 64) & 1;
}

static void mark_seen(listing *l, uint32_t number)
{
    if (number >= l->end) {
        uint32_t end = (number + 4096) / 64 * 64;
        l->seen = kl_realloc(l->seen, end / 8);
        memset(l->seen + l->end / 64, 0, (end - l->end) / 8);
        l->end = end;
    }
    l->seen[number / 64] |= (uint64_t)1 << (number % 64);
}

static bool note_lost(void *arg, uint32_t number)
{
    listing *l = arg;
    if (!is_seen(l, number))
        l->lost[l->n_lost++] = number;
    return true;
}

/* Removes the objects that were not listed: in all namespaces (ns NULL), or in the keys "ns/...". */
static void remove_lost_locked(kl_indexer *ix, const char *ns, listing *l) KL_REQUIRES(ix->mu)
{
    char text[KL_KEY_MAX];
    kl__key key;
    uint32_t from = 0, to = ix->all.len;
    if (ns) {
        kl__order order = kl__order_of(ix);
        char *end = kl_sprintf("%s%c", ns, '/' + 1);
        from = kl__set_rank(&ix->all, &order, (kl__key){ns, ""});
        to = kl__set_rank(&ix->all, &order, (kl__key){"", end});
        kl_free(end);
    }
    l->lost = kl_new_array(uint32_t, to - from + 1u);
    kl__set_walk(&ix->all, from, to, note_lost, l);
    for (size_t i = 0; i < l->n_lost; i++)
        if (kl__key_of(ix, kl__cells_get(&ix->objects.cells, l->lost[i]), text, &key))
            changes_add(l->out, kl__remove_locked(ix, text, l->lost[i]), NULL);
    kl_free(l->lost);
}

/* --- the page in order -------------------------------------------------------------------- */

typedef struct keyed {
    kl__key key;
    const kl_value *object;
    size_t at;
} keyed;

static int by_key(const void *pa, const void *pb)
{
    const keyed *a = pa, *b = pb;
    int c = kl__key_compare(a->key, b->key);
    return c ? c : (a->at > b->at) - (a->at < b->at);
}

/* Servers list in key order, each key once; other lists are sorted, and of duplicate keys the later object
 * stays. *n: the number left. The result is the page itself, or the caller's to free. */
static const kl_value **in_order(kl_indexer *ix, const kl_value **page, size_t *n)
{
    char text[KL_KEY_MAX];
    bool sorted = true;
    kl__key last = {"", ""}, key = last;
    for (size_t k = 0; sorted && k < *n; k++, last = key)
        sorted = kl__key_of(ix, page[k], text, &key) && kl__key_compare(last, key) < 0;
    if (sorted)
        return page;
    keyed *all = kl_new_array(keyed, *n + 1);
    const kl_value **out = kl_new_array(const kl_value *, *n + 1);
    size_t m = 0, left = 0;
    for (size_t k = 0; k < *n; k++)
        if (kl__key_of(ix, page[k], text, &key)) {
            all[m] = (keyed){key, page[k], m};
            m++;
        }
    qsort(all, m, sizeof *all, by_key);
    for (size_t k = 0; k < m; k++)
        if (k + 1 == m || kl__key_compare(all[k].key, all[k + 1].key))
            out[left++] = all[k].object;
    kl_free(all);
    *n = left;
    return out;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Gets the function indexes' values of each changed object; those of page[k] are said.v[upto[k - 1] ..
 * upto[k]]. */
static size_t *ask_fns_of_page(kl_indexer *ix, const kl_value **page, size_t n)
{
    char text[KL_KEY_MAX];
    kl__key key;
    kl__fns_forget(ix);
    if (!ix->n_fns)
        return NULL;
    size_t *upto = kl_new_array(size_t, n + 1);
    for (size_t k = 0; k < n; k++) {
        if (kl__key_of(ix, page[k], text, &key) && !kl__fns_know(ix, text, key, page[k]))
            kl__fns_ask(ix, page[k]);
        upto[k] = ix->said.len;
    }
    return upto;
}

static size_t *ask_page_and_lock(kl_indexer *ix, const kl_value **page, size_t n) KL_ACQUIRE(ix->mu)
{
    for (;;) {
        kl__fns_refresh(ix);
        size_t *upto = ask_fns_of_page(ix, page, n);
        kl_lock(&ix->mu);
        if (kl__fns_fresh(ix))
            return upto;
        kl_unlock(&ix->mu);
        kl_free(upto);
    }
}

void kl_indexer_replace(kl_indexer *ix, const kl_value **listed, size_t n, const char *rv, kl_changes *out)
{
    kl_indexer_replace_namespace(ix, NULL, listed, n, rv, out);
}

void kl_indexer_replace_namespace(
    kl_indexer *ix, const char *ns, const kl_value **listed, size_t n, const char *rv, kl_changes *out)
{
    char text[KL_KEY_MAX];
    kl__key key;
    const kl_value **page = in_order(ix, listed, &n);
    listing l = {.out = out};
    *out = (kl_changes){0};
    size_t *upto = ask_page_and_lock(ix, page, n);
    for (size_t k = 0; k < n; k++)
        if (kl__key_of(ix, page[k], text, &key)) {
            uint32_t number;
            const kl_value *old;
            if (kl__put_locked(
                    ix, text, key, page[k], upto && k ? upto[k - 1] : 0, upto ? upto[k] : 0, &number, &old))
                changes_add(out, old, page[k]);
            mark_seen(&l, number);
        }
    remove_lost_locked(ix, ns, &l);
    kl__set_rv_locked(ix, rv);
    kl__show_locked(ix);
    kl_unlock(&ix->mu);
    if (page != listed)
        kl_free(page);
    kl_free(upto);
    kl_free(l.seen);
    kl__sayings_fini(&ix->said);
}
