/* query.c - how a list is answered.
 *
 * Everything is decided in one version of the store. Candidates are all objects, those of a namespace
 * (neighbours in key order), the buckets of one term, or those of one indexed label: the smallest set is
 * scanned, in order, and the rest of the query is checked for each. A label that repeatedly causes long scans
 * with few results gets an index. */
#include "cache/indexer_impl.h"

#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"

/* Searching a bucket for one object costs about as much as marking so many of its objects. */
#define SEARCH_COST 16
/* The relative cost per object of sorting, which a scan of several buckets needs. */
#define SORT_COST 4
/* A scan of this many objects with less than a quarter of results counts for an index; the fourth such scan
 * creates it. */
#define WISH_SEARCH 512
#define WISH_COUNT 4
/* The number of label sets whose result is cached: neighbours often have one owner, and equal labels. */
#define KNOWN 64

/* One term, or one requirement on a label that has an index. */
typedef struct cond {
    const kl__bucket **of; /* the existing buckets; NULL: a namespace term, which is checked in the object */
    size_t n;              /* of them, or of `values` */
    uint64_t size;         /* members of all buckets */
    bool negated;
    const char **values; /* of a namespace term, sorted */
    uint64_t *marks;     /* bit by number, once made */
} cond;

typedef struct search {
    kl__sight sight;
    const kl__version *v; /* the sight's */
    const kl_query *q;
    kl__order order;
    cond *conds; /* the query's terms, then labels */
    size_t n_terms, n_conds;
    cond *by; /* whose buckets are scanned; NULL: the keys in order, from..to */
    uint32_t from, to;
    const char *ns[2]; /* the query's namespaces: each result is in all of them */
    size_t n_ns;
    bool labels; /* the selector must be asked of each object */
    /* cached results of the selector, by the labels' number */
    struct {
        const kl_value *labels;
        bool match;
    } known[KNOWN];
    bool keyed;      /* something that needs the object's key must be checked, too */
    bool first_only; /* the limit may end the search */
    size_t seen;
    kl_objects *out;
    size_t cap;
} search;

/* --- terms -------------------------------------------------------------------------------- */

static kl_status no_index(const kl__index_list *l, const char *name, kl_err *err)
{
    if (kl__index_find(l, name))
        return kl_fail(err, KL_EAGAIN, "index \"%s\" is still being built", name);
    kl_buf have = KL_BUF_INIT;
    for (size_t i = 0; i < l->len; i++)
        if (l->v[i].ready && l->v[i].index->name)
            kl_buf_printf(&have, "%s%s", have.len ? ", " : "", l->v[i].index->name);
    kl_status st = kl_fail(
        err, KL_ENOTFOUND, "there is no index \"%s\"; there are: %s", name, kl_buf_str(&have));
    kl_buf_fini(&have);
    return st;
}

static void cond_add(cond *c, const search *s, const kl__index *x, const char *value, bool any)
{
    const kl__bucket *b = kl__bucket_find(s->v->bucket_names, &s->v->buckets, x, value, any);
    if (b)
        c->of[c->n++] = b;
}

static int by_address(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const kl__bucket *const *)a, y = (uintptr_t) * (const kl__bucket *const *)b;
    return (x > y) - (x < y);
}

/* A script may name a value again, and any number of them. */
static void cond_count(cond *c)
{
    size_t n = 0;
    qsort(c->of, c->n, sizeof *c->of, by_address);
    for (size_t i = 0; i < c->n; i++)
        if (!i || c->of[i] != c->of[i - 1])
            c->of[n++] = c->of[i];
    c->n = n;
    for (size_t i = 0; i < n; i++)
        c->size += c->of[i]->set.len;
}

static bool is_any(kl_selector_op op) { return op == KL_SEL_EXISTS || op == KL_SEL_NOT_EXISTS; }

static size_t count_values(const char *const *values)
{
    size_t n = 0;
    while (values && values[n])
        n++;
    return n;
}

static kl_status term_check(const kl_index_term *t, kl_err *err)
{
    size_t n = count_values(t->values);
    bool fits = is_any(t->op) ? !n : t->op == KL_SEL_IN || t->op == KL_SEL_NOTIN ? n > 0 : n == 1;
    if (t->op == KL_SEL_GT || t->op == KL_SEL_LT || !fits)
        return kl_fail(err, KL_EINVAL,
            "index \"%s\": \"%s\" with %zu values; an index supports =, != (one value), in, notin (some) and "
            "exists, ! (none)",
            t->index, kl_selector_op_text(t->op), n);
    return KL_OK;
}

static bool is_negated(kl_selector_op op)
{
    return op == KL_SEL_NE || op == KL_SEL_NOTIN || op == KL_SEL_NOT_EXISTS;
}

static void cond_fill(
    cond *c, const search *s, const kl__index *x, kl_selector_op op, const char *const *values)
{
    size_t n = count_values(values);
    c->negated = is_negated(op);
    c->of = kl_new_array(const kl__bucket *, n + 1);
    if (is_any(op))
        cond_add(c, s, x, "", true);
    for (size_t i = 0; i < n; i++)
        cond_add(c, s, x, values[i], false);
    cond_count(c);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A term of namespaces: sorted, to be found among many. */
static void cond_name(cond *c, const char *const *values)
{
    c->n = count_values(values);
    c->values = kl_new_array(const char *, c->n + 1);
    for (size_t i = 0; i < c->n; i++)
        c->values[i] = values[i];
    qsort(c->values, c->n, sizeof *c->values, by_text);
}

static kl_status cond_of_term(search *s, const kl_index_term *t, kl_err *err)
{
    const struct kl__listed *l = kl__index_find(s->v->indexes, t->index);
    kl_status st = l && l->ready ? term_check(t, err) : no_index(s->v->indexes, t->index, err);
    if (st)
        return st;
    cond *c = &s->conds[s->n_conds++];
    *c = (cond){.negated = is_negated(t->op)};
    if (l->index->path || l->index->fn)
        cond_fill(c, s, l->index, t->op, t->values);
    else
        cond_name(c, t->values);
    return KL_OK;
}

static kl_status conds_of_terms(search *s, kl_err *err)
{
    const kl_query *q = s->q;
    const char *value[] = {q->value ? q->value : "", NULL};
    kl_index_term one = {q->index, KL_SEL_EQ, value};
    kl_status st = q->index && strcmp(q->index, KL_INDEX_NAMESPACE) ? cond_of_term(s, &one, err) : KL_OK;
    for (size_t i = 0; !st && i < q->n_terms; i++)
        st = cond_of_term(s, &q->terms[i], err);
    s->n_terms = s->n_conds;
    return st;
}

static void conds_of_labels(search *s)
{
    for (size_t i = 0; s->q->labels && i < kl_selector_len(s->q->labels); i++) {
        kl_selector_op op;
        const char *const *values;
        const char *label = kl_selector_requirement(s->q->labels, i, &op, &values);
        const struct kl__listed *l = kl__index_find_label(s->v->indexes, label);
        if (!l || !l->ready || is_negated(op) || op == KL_SEL_GT || op == KL_SEL_LT)
            continue;
        cond *c = &s->conds[s->n_conds++];
        *c = (cond){0};
        cond_fill(c, s, l->index, op, values);
    }
}

/* --- the way ------------------------------------------------------------------------------ */

/* Limits the scan to the keys "ns/...". */
static void take_namespace(search *s, const char *ns)
{
    char end[KL_KEY_MAX];
    size_t n = strlen(ns);
    if (!n || n + 2 > KL_KEY_MAX) {
        s->from = s->to = 0;
        return;
    }
    memcpy(end, ns, n);
    memcpy(end + n, "0", 2); /* '0' follows '/' */
    uint32_t from = kl__set_rank(&s->v->all, &s->order, (kl__key){ns, ""}),
             to = kl__set_rank(&s->v->all, &s->order, (kl__key){"", end});
    if (from > s->from)
        s->from = from;
    if (to < s->to)
        s->to = to;
    if (s->to < s->from)
        s->to = s->from;
}

static void choose(search *s)
{
    s->from = 0;
    s->to = s->v->all.len;
    if (s->q->ns)
        s->ns[s->n_ns++] = s->q->ns;
    if (s->q->index && !strcmp(s->q->index, KL_INDEX_NAMESPACE))
        s->ns[s->n_ns++] = s->q->value ? s->q->value : "";
    for (size_t i = 0; i < s->n_ns; i++)
        take_namespace(s, s->ns[i]);
    uint64_t cost = s->to - s->from;
    for (size_t i = 0; i < s->n_conds; i++) {
        cond *c = &s->conds[i];
        if (!c->of && !c->negated && c->n == 1)
            take_namespace(s, c->values[0]);
        uint64_t this = c->of ? c->size * (c->n > 1 ? SORT_COST : 1) : s->to - s->from;
        if (c->of && !c->negated && this <= cost) {
            s->by = c;
            cost = this;
        } else if (!c->of && this < cost) {
            s->by = NULL;
            cost = this;
        }
    }
    bool all_said = s->by && s->by >= s->conds + s->n_terms && kl_selector_len(s->q->labels) == 1;
    s->labels = s->q->labels && !kl_selector_empty(s->q->labels) && !all_said;
    s->first_only = s->q->limit && !s->q->where;
}

/* --- asking one object -------------------------------------------------------------------- */

static bool mark(void *arg, uint32_t number)
{
    ((uint64_t *)arg)[number / 64] |= (uint64_t)1 << (number % 64);
    return true;
}

static uint64_t *marks_of(const search *s, const cond *c)
{
    uint64_t *marks = kl_new_array(uint64_t, s->v->end / 64 + 1);
    for (size_t i = 0; i < c->n; i++)
        kl__set_walk(&c->of[i]->set, 0, c->of[i]->set.len, mark, marks);
    return marks;
}

static bool has_text(const cond *c, const char *text)
{
    return bsearch(&text, c->values, c->n, sizeof *c->values, by_text);
}

static bool cond_holds(const search *s, const cond *c, uint32_t number, kl__key key)
{
    bool in = false;
    if (!c->of)
        in = *key.ns && (!c->n || has_text(c, key.ns));
    else if (c->marks)
        in = c->marks[number / 64] >> (number % 64) & 1;
    else
        for (size_t i = 0; i < c->n && !in; i++)
            in = kl__set_has(&c->of[i]->set, &s->order, key);
    return in != c->negated;
}

static bool in_namespace(const search *s, kl__key key)
{
    for (size_t i = 0; i < s->n_ns; i++)
        if (strcmp(key.ns, s->ns[i]))
            return false;
    return true;
}

static bool selected(search *s, const kl_value *o)
{
    const kl_value *labels = kl_value_find(
        kl_value_find(o, &s->sight.fields->metadata), &s->sight.fields->labels);
    uint32_t at = kl_value_id(labels) * 0x9e3779b1u >> 26;
    if (!labels)
        return kl_selector_matches(s->q->labels, NULL);
    if (s->known[at].labels != labels) {
        s->known[at].labels = labels;
        s->known[at].match = kl_selector_matches(s->q->labels, labels);
    }
    return s->known[at].match;
}

static bool wanted(search *s, uint32_t number, const kl_value *o)
{
    kl__key key = {"", ""};
    if (s->keyed) {
        key = s->order.key(s->order.of, number);
        if (!in_namespace(s, key))
            return false;
    }
    for (size_t i = 0; i < s->n_terms; i++)
        if (&s->conds[i] != s->by && !cond_holds(s, &s->conds[i], number, key))
            return false;
    return !s->labels || selected(s, o);
}

static bool consider(void *arg, uint32_t number)
{
    search *s = arg;
    const kl_value *o = kl__cells_get(&s->v->objects, number);
    s->seen++;
    if (!wanted(s, number, o))
        return true;
    if (s->out->len == s->cap)
        s->out->v = kl_realloc(s->out->v, (s->cap = 2 * s->cap + 1) * sizeof *s->out->v);
    s->out->v[s->out->len++] = kl_value_ref(o);
    return !s->first_only || s->out->len < s->q->limit;
}

/* --- going it ----------------------------------------------------------------------------- */

typedef struct member {
    kl__key key;
    uint32_t number;
} member;
typedef struct members {
    const search *s;
    member *v;
    size_t len;
} members;

static bool gather(void *arg, uint32_t number)
{
    members *m = arg;
    m->v[m->len++] = (member){m->s->order.key(m->s->order.of, number), number};
    return true;
}

static int by_key(const void *a, const void *b)
{
    return kl__key_compare(((const member *)a)->key, ((const member *)b)->key);
}

static void go_through_buckets(search *s, const cond *c)
{
    if (c->n == 1) {
        kl__set_walk(&c->of[0]->set, 0, c->of[0]->set.len, consider, s);
        return;
    }
    members m = {s, kl_new_array(member, c->size + 1), 0};
    for (size_t i = 0; i < c->n; i++)
        kl__set_walk(&c->of[i]->set, 0, c->of[i]->set.len, gather, &m);
    qsort(m.v, m.len, sizeof *m.v, by_key);
    for (size_t i = 0; i < m.len; i++) /* an object with two of the values appears twice */
        if ((!i || m.v[i].number != m.v[i - 1].number) && !consider(s, m.v[i].number))
            break;
    kl_free(m.v);
}

static void go(search *s)
{
    uint64_t size = s->by ? s->by->size : s->to - s->from;
    for (size_t i = 0; i < s->n_terms; i++) {
        cond *c = &s->conds[i];
        if (c != s->by && c->of && size * SEARCH_COST * c->n > c->size)
            c->marks = marks_of(s, c);
        s->keyed |= c != s->by && !c->marks;
    }
    s->keyed |= s->by && s->n_ns;
    bool asks = s->labels || s->n_terms > (s->by && s->by < s->conds + s->n_terms ? 1u : 0u);
    s->cap = asks || (s->first_only && s->q->limit < size) ? 16 : size;
    s->out->v = kl_new_array(const kl_value *, s->cap + 1);
    if (s->by)
        go_through_buckets(s, s->by);
    else
        kl__set_walk(&s->v->all, s->from, s->to, consider, s);
}

/* `where` is the caller's code: it runs without the pin, on counted references. */
static void ask_where(const kl_query *q, kl_objects *found)
{
    size_t n = found->len;
    found->len = 0;
    for (size_t i = 0; i < n; i++) {
        const kl_value *o = found->v[i];
        bool full = q->limit && found->len == q->limit;
        if (!full && q->where(q->where_arg, o))
            found->v[found->len++] = o;
        else
            kl_value_unref(o);
    }
}

/* --- labels that deserve an index --------------------------------------------------------- */

static bool is_wish(const search *s)
{
    bool by_label = s->by && s->by >= s->conds + s->n_terms;
    return s->labels && !by_label && s->seen >= WISH_SEARCH && s->out->len * 4 < s->seen;
}

/* The label of the first requirement that an index would answer; NULL when there is none. */
static const char *wish_of(const search *s)
{
    for (size_t i = 0; i < kl_selector_len(s->q->labels); i++) {
        kl_selector_op op;
        const char *label = kl_selector_requirement(s->q->labels, i, &op, NULL);
        if ((op == KL_SEL_EQ || op == KL_SEL_DOUBLE_EQ || op == KL_SEL_IN)
            && !kl__index_find_label(s->v->indexes, label))
            return label;
    }
    return NULL;
}

/* True for exactly one caller per label, and for at most KL__WISHES labels. */
static bool grant(kl_indexer *ix, const char *label)
{
    uint32_t tag = kl__tag(kl_hash(label, strlen(label)));
    for (size_t i = 0; i < KL__WISHES; i++) {
        uint32_t free = 0;
        atomic_compare_exchange_strong(&ix->wish[i].tag, &free, tag);
        if (atomic_load(&ix->wish[i].tag) == tag)
            return atomic_fetch_add(&ix->wish[i].count, 1) + 1 == WISH_COUNT;
    }
    return false;
}

/* --- the whole ---------------------------------------------------------------------------- */

kl_status kl_indexer_list(kl_indexer *ix, const kl_query *q, kl_objects *out, kl_err *err)
{
    static const kl_query all;
    kl_objects found = {0};
    search s = {.q = q ? q : &all, .out = &found};
    const char *wish = NULL;
    s.conds = kl_new_array(cond, s.q->n_terms + 1 + (s.q->labels ? kl_selector_len(s.q->labels) : 0));
    s.sight = kl__look(ix);
    s.v = s.sight.v;
    s.order = kl__order_in(&s.sight);
    kl_status st = conds_of_terms(&s, err);
    if (!st) {
        conds_of_labels(&s);
        choose(&s);
        go(&s);
        wish = is_wish(&s) ? wish_of(&s) : NULL;
    }
    kl__look_away(&s.sight);
    for (size_t i = 0; i < s.n_conds; i++) {
        kl_free(s.conds[i].of);
        kl_free(s.conds[i].values);
        kl_free(s.conds[i].marks);
    }
    kl_free(s.conds);
    if (st)
        return st;
    if (wish && grant(ix, wish))
        kl__index_label(ix, wish);
    if (s.q->where)
        ask_where(s.q, &found);
    *out = found;
    return KL_OK;
}

void kl_objects_fini(kl_objects *o)
{
    for (size_t i = 0; i < o->len; i++)
        kl_value_unref(o->v[i]);
    kl_free(o->v);
    *o = (kl_objects){0};
}
