/* tree.c - an ordered set of numbers, in versions: a B+ tree whose nodes are copied on their way to a
 * change.
 *
 * A leaf holds numbers, an inner node its children with the first number and the size of each. Numbers are
 * compared by the keys of what they stand for. A set of one has no node at all, small leaves are small.
 * Appending fills leaves completely (lists come in key order); elsewhere a full node is halved, and a node
 * that fits into half a node together with its neighbour is merged with it. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/mem.h"

#define LEAF_MAX 120u /* about 500 bytes, as an inner node */
#define LEAF_MIN 4u
#define FAN 30u

/* cap: of a leaf. height 0: a leaf */
struct kl__tnode {
    uint64_t made;
    uint16_t n, cap;
    uint32_t height;
};

typedef struct leaf {
    kl__tnode h;
    uint32_t number[];
} leaf;
typedef struct inner {
    kl__tnode h;
    kl__tnode *child[FAN];
    uint32_t first[FAN], size[FAN];
} inner;

static leaf *leaf_of(const kl__tnode *t) { return (leaf *)t; }
static inner *inner_of(const kl__tnode *t) { return (inner *)t; }

/* --- keys --------------------------------------------------------------------------------- */

/* the text of a key, which does not exist in one piece */
typedef struct cursor {
    const char *at, *then;
} cursor;

static cursor cursor_of(kl__key k) { return *k.ns ? (cursor){k.ns, k.name} : (cursor){k.name, NULL}; }

static unsigned char look(cursor *c)
{
    if (*c->at || !c->then)
        return (unsigned char)*c->at;
    return '/';
}

static void step(cursor *c)
{
    if (*c->at) {
        c->at++;
    } else {
        c->at = c->then;
        c->then = NULL;
    }
}

int kl__key_compare(kl__key a, kl__key b)
{
    if (a.ns == b.ns)
        return strcmp(a.name, b.name);
    cursor x = cursor_of(a), y = cursor_of(b);
    for (;; step(&x), step(&y)) {
        unsigned char p = look(&x), q = look(&y);
        if (p != q)
            return p < q ? -1 : 1;
        if (!p)
            return 0;
    }
}

static int compare(const kl__order *o, uint32_t number, kl__key key)
{
    return kl__key_compare(o->key(o->of, number), key);
}

/* --- nodes -------------------------------------------------------------------------------- */

static uint32_t first_of(const kl__tnode *t)
{
    return t->height ? inner_of(t)->first[0] : leaf_of(t)->number[0];
}

static uint32_t size_of(const kl__tnode *t)
{
    uint32_t n = t->n;
    if (t->height)
        for (uint32_t i = n = 0; i < t->n; i++)
            n += inner_of(t)->size[i];
    return n;
}

static leaf *leaf_new(kl__edit *e, uint32_t n)
{
    uint32_t cap = LEAF_MIN;
    while (cap < n)
        cap *= 2;
    if (cap > LEAF_MAX)
        cap = LEAF_MAX;
    leaf *l = kl_alloc(sizeof *l + cap * sizeof *l->number);
    l->h = (kl__tnode){.made = e->now, .cap = (uint16_t)cap};
    return l;
}

static inner *inner_new(kl__edit *e, uint32_t height)
{
    inner *t = kl_alloc(sizeof *t);
    t->h = (kl__tnode){.made = e->now, .height = height};
    return t;
}

static void drop(kl__edit *e, kl__tnode *t) { kl__edit_drop(e, t, t->made); }

/* This leaf, or a copy of it, made by this edit and with room for n. */
static leaf *own_leaf(kl__edit *e, leaf *l, uint32_t n)
{
    if (l->h.made == e->now && n <= l->h.cap)
        return l;
    leaf *mine = leaf_new(e, n > l->h.n ? n : l->h.n);
    mine->h.n = l->h.n;
    memcpy(mine->number, l->number, l->h.n * sizeof *l->number);
    drop(e, &l->h);
    return mine;
}

static inner *own_inner(kl__edit *e, inner *t)
{
    if (t->h.made == e->now)
        return t;
    inner *mine = kl_alloc(sizeof *mine);
    memcpy(mine, t, sizeof *mine);
    mine->h.made = e->now;
    drop(e, &t->h);
    return mine;
}

static void set_child(inner *t, uint32_t i, kl__tnode *c)
{
    t->child[i] = c;
    t->first[i] = first_of(c);
    t->size[i] = size_of(c);
}

static void move_children(inner *to, uint32_t at, const inner *from, uint32_t first, uint32_t n)
{
    memmove(to->child + at, from->child + first, n * sizeof *to->child);
    memmove(to->first + at, from->first + first, n * sizeof *to->first);
    memmove(to->size + at, from->size + first, n * sizeof *to->size);
}

/* The place of key in the leaf, or where it would be inserted. */
static uint32_t leaf_place(const leaf *l, const kl__order *o, kl__key key, bool *there)
{
    uint32_t from = 0, to = l->h.n;
    *there = false;
    if (compare(o, l->number[to - 1], key) < 0) /* lists come in order */
        return to;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        int c = compare(o, l->number[mid], key);
        if (!c) {
            *there = true;
            return mid;
        }
        if (c < 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

/* The child that contains key, or would contain it. */
static uint32_t child_place(const inner *t, const kl__order *o, kl__key key)
{
    uint32_t from = 1, to = t->h.n;
    if (to > 1 && compare(o, t->first[to - 1], key) <= 0)
        return to - 1;
    while (from < to) {
        uint32_t mid = from + (to - from) / 2;
        if (compare(o, t->first[mid], key) <= 0)
            from = mid + 1;
        else
            to = mid;
    }
    return from - 1;
}

/* --- adding ------------------------------------------------------------------------------- */

/* last: the key would be the last of the tree */
typedef struct adding {
    kl__edit *e;
    const kl__order *o;
    kl__key key;
    uint32_t number;
    bool last, done;
} adding;

static kl__tnode *leaf_add(adding *a, leaf *l, kl__tnode **right)
{
    bool there;
    uint32_t at = leaf_place(l, a->o, a->key, &there), n = l->h.n;
    if (there)
        return &l->h;
    a->done = true;
    leaf *into = l;
    if (n == LEAF_MAX) {
        uint32_t keep = a->last && at == n ? n : n / 2;
        leaf *r = leaf_new(a->e, n - keep + 1);
        r->h.n = (uint16_t)(n - keep);
        memcpy(r->number, l->number + keep, (n - keep) * sizeof *r->number);
        *right = &r->h;
        if (keep < n) {
            l = own_leaf(a->e, l, 0);
            l->h.n = (uint16_t)keep;
        }
        into = at > keep || keep == n ? r : l;
        at -= into == r ? keep : 0;
        n = into->h.n;
    }
    bool same = into == l;
    into = own_leaf(a->e, into, n + 1);
    memmove(into->number + at + 1, into->number + at, (n - at) * sizeof *into->number);
    into->number[at] = a->number;
    into->h.n++;
    if (same)
        l = into;
    else
        *right = &into->h;
    return &l->h;
}

static kl__tnode *add_below(adding *a, kl__tnode *t, kl__tnode **right);

static kl__tnode *inner_add(adding *a, inner *t, kl__tnode **right)
{
    kl__tnode *split = NULL;
    uint32_t i = child_place(t, a->o, a->key), n = t->h.n;
    a->last &= i == n - 1;
    kl__tnode *c = add_below(a, t->child[i], &split);
    if (!a->done)
        return &t->h;
    if (c != t->child[i] || first_of(c) != t->first[i] || size_of(c) != t->size[i]) {
        t = own_inner(a->e, t);
        set_child(t, i, c);
    }
    if (!split)
        return &t->h;
    inner *into = t;
    uint32_t at = i + 1;
    if (n == FAN) {
        uint32_t keep = a->last && at == n ? n : n / 2;
        inner *r = inner_new(a->e, t->h.height);
        move_children(r, 0, t, keep, n - keep);
        r->h.n = (uint16_t)(n - keep);
        *right = &r->h;
        if (keep < n) {
            into = t = own_inner(a->e, t);
            t->h.n = (uint16_t)keep;
        }
        if (at > keep || keep == n) {
            into = r;
            at -= keep;
        }
        n = into->h.n;
    } else {
        into = t = own_inner(a->e, t);
    }
    move_children(into, at + 1, into, at, n - at);
    set_child(into, at, split);
    into->h.n++;
    return &t->h;
}

static kl__tnode *add_below(adding *a, kl__tnode *t, kl__tnode **right)
{
    return t->height ? inner_add(a, inner_of(t), right) : leaf_add(a, leaf_of(t), right);
}

bool kl__set_add(kl__edit *e, kl__set *s, const kl__order *o, uint32_t number)
{
    adding a = {e, o, o->key(o->of, number), number, true, false};
    if (!s->len) {
        *s = (kl__set){.len = 1, .only = number};
        return true;
    }
    if (!s->root) {
        if (s->only == number)
            return false;
        leaf *l = leaf_new(e, 2);
        l->h.n = 1;
        l->number[0] = s->only;
        s->root = &l->h;
    }
    kl__tnode *right = NULL;
    s->root = add_below(&a, s->root, &right);
    if (right) {
        inner *top = inner_new(e, s->root->height + 1);
        top->h.n = 2;
        set_child(top, 0, s->root);
        set_child(top, 1, right);
        s->root = &top->h;
    }
    s->len += a.done;
    return a.done;
}

/* --- removing ----------------------------------------------------------------------------- */

typedef struct removing {
    kl__edit *e;
    const kl__order *o;
    kl__key key;
    bool done;
} removing;

/* The two merged, or NULL when that is more than half a node. */
static kl__tnode *merged(kl__edit *e, kl__tnode *a, kl__tnode *b)
{
    uint32_t n = (uint32_t)a->n + b->n;
    if (n > (a->height ? FAN : LEAF_MAX) / 2)
        return NULL;
    if (a->height) {
        inner *t = own_inner(e, inner_of(a));
        move_children(t, t->h.n, inner_of(b), 0, b->n);
        t->h.n = (uint16_t)n;
        drop(e, b);
        return &t->h;
    }
    leaf *l = own_leaf(e, leaf_of(a), n);
    memcpy(l->number + l->h.n, leaf_of(b)->number, b->n * sizeof *l->number);
    l->h.n = (uint16_t)n;
    drop(e, b);
    return &l->h;
}

/* Child i of t has become smaller: merges it with a neighbour if possible. This edit has made t. */
static void merge_around(kl__edit *e, inner *t, uint32_t i)
{
    for (uint32_t at = i ? i - 1 : 0; at <= i && at + 1u < t->h.n; at++) {
        kl__tnode *one = merged(e, t->child[at], t->child[at + 1]);
        if (one) {
            set_child(t, at, one);
            move_children(t, at + 1, t, at + 2, t->h.n - at - 2u);
            t->h.n--;
            return;
        }
    }
}

static kl__tnode *remove_below(removing *r, kl__tnode *t);

static kl__tnode *leaf_remove(removing *r, leaf *l)
{
    bool there;
    uint32_t at = leaf_place(l, r->o, r->key, &there);
    if (!there)
        return &l->h;
    r->done = true;
    if (l->h.n == 1) {
        drop(r->e, &l->h);
        return NULL;
    }
    l = own_leaf(r->e, l, 0);
    l->h.n--;
    memmove(l->number + at, l->number + at + 1, (l->h.n - at) * sizeof *l->number);
    return &l->h;
}

static kl__tnode *inner_remove(removing *r, inner *t)
{
    uint32_t i = child_place(t, r->o, r->key);
    kl__tnode *c = remove_below(r, t->child[i]);
    if (!r->done)
        return &t->h;
    if (!c && t->h.n == 1) {
        drop(r->e, &t->h);
        return NULL;
    }
    t = own_inner(r->e, t);
    if (c) {
        set_child(t, i, c);
        merge_around(r->e, t, i);
    } else {
        move_children(t, i, t, i + 1, t->h.n - i - 1u);
        t->h.n--;
    }
    return &t->h;
}

static kl__tnode *remove_below(removing *r, kl__tnode *t)
{
    return t->height ? inner_remove(r, inner_of(t)) : leaf_remove(r, leaf_of(t));
}

bool kl__set_remove(kl__edit *e, kl__set *s, const kl__order *o, uint32_t number)
{
    if (!s->root) {
        if (!s->len || s->only != number)
            return false;
        *s = (kl__set){0};
        return true;
    }
    removing r = {e, o, o->key(o->of, number), false};
    s->root = remove_below(&r, s->root);
    s->len -= r.done;
    while (s->root && s->root->height && s->root->n == 1) {
        kl__tnode *top = s->root;
        s->root = inner_of(top)->child[0];
        drop(e, top);
    }
    if (s->len == 1) {
        s->only = first_of(s->root);
        drop(e, s->root);
        s->root = NULL;
    }
    return r.done;
}

/* --- looking ------------------------------------------------------------------------------ */

static uint32_t rank_of(const kl__set *s, const kl__order *o, kl__key key, bool *there)
{
    uint32_t rank = 0;
    *there = false;
    if (!s->root) {
        int c = s->len ? compare(o, s->only, key) : 1;
        *there = !c;
        return c < 0;
    }
    const kl__tnode *t = s->root;
    while (t->height) {
        uint32_t i = child_place(inner_of(t), o, key);
        for (uint32_t k = 0; k < i; k++)
            rank += inner_of(t)->size[k];
        t = inner_of(t)->child[i];
    }
    return rank + leaf_place(leaf_of(t), o, key, there);
}

uint32_t kl__set_rank(const kl__set *s, const kl__order *o, kl__key key)
{
    bool there;
    return rank_of(s, o, key, &there);
}

bool kl__set_has(const kl__set *s, const kl__order *o, kl__key key)
{
    bool there;
    rank_of(s, o, key, &there);
    return there;
}

static bool walk(const kl__tnode *t, uint32_t from, uint32_t to, kl__see *see, void *arg)
{
    if (!t->height) {
        for (; from < to && from < t->n; from++)
            if (!see(arg, leaf_of(t)->number[from]))
                return false;
        return true;
    }
    const inner *in = inner_of(t);
    for (uint32_t i = 0; i < t->n && to; i++) {
        uint32_t size = in->size[i];
        if (from < size && !walk(in->child[i], from, to, see, arg))
            return false;
        from -= from < size ? from : size;
        to -= to < size ? to : size;
    }
    return true;
}

bool kl__set_walk(const kl__set *s, uint32_t from, uint32_t to, kl__see *see, void *arg)
{
    if (!s->root)
        return !s->len || from || !to || see(arg, s->only);
    return walk(s->root, from, to, see, arg);
}

static void drop_below(kl__edit *e, kl__tnode *t)
{
    if (t->height)
        for (uint32_t i = 0; i < t->n; i++)
            drop_below(e, inner_of(t)->child[i]);
    if (e)
        drop(e, t);
    else
        kl_free(t);
}

void kl__set_drop(kl__edit *e, kl__set *s)
{
    if (s->root)
        drop_below(e, s->root);
    *s = (kl__set){0};
}
