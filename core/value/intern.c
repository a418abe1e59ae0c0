/* intern.c - the table in which equal nodes are one node.
 *
 * 64 shards, each an open-addressing array under its own lock, chosen by the top bits of the hash. A cell
 * is a handle with its node's hash above it, so that probing and growing touch no other node. The home of
 * a hash is hash * homes / 2^32, so the array may have any length, and grows by a quarter to stay well
 * filled. Cells are in the order of their hashes: a search ends at the first that is greater, which keeps
 * misses as short as hits, and growing is one walk along both arrays. A node is entered with count 1 and
 * leaves when its count falls to zero under the lock; the common count-down (from above one) takes no
 * lock. Dead containers wait on a stack of their own, so deep values need no deep C stack; of a giant only
 * a part goes at once, and later deaths take the rest along, so that no thread stops for it. Hashes are
 * seeded per process: contents of a cluster cannot be chosen to collide. */
#include "value/intern.h"

#include <assert.h>
#include <stdio.h>
#include "base/hash.h"
#include "base/locks.h"
#include "base/mem.h"
#include "base/sync.h"

#define SHARD_BITS 6
#define SHARDS (1u << SHARD_BITS)
#define FIRST_CELLS 64u
#define PUSHED_MAX 192u /* cells beyond the last home; at this fill no more are needed but once in 10^12 */

typedef uint64_t cell; /* hash << 32 | handle; 0 is free */

typedef struct shard {
    kl_spin mu;
    uint32_t cap KL_GUARDED_BY(mu); /* homes */
    /* cells: homes, and room for what is pushed beyond the last; then a free one */
    uint32_t end KL_GUARDED_BY(mu);
    uint32_t len KL_GUARDED_BY(mu);
    cell *cells KL_GUARDED_BY(mu);
} __attribute__((aligned(64))) shard;

static shard shards[SHARDS] = {[0 ... SHARDS - 1] = {.mu = KL_SPIN_INIT_AS(KL_LOCK_VALUES)}};

static inline uint32_t hash_of(kl_type type, const void *data, size_t n)
{
    return (uint32_t)(kl_quick_hash(data, n) >> 17) ^ (uint32_t)type * 0x9e3779b1u;
}

/* --- nodes -------------------------------------------------------------------------------- */

static size_t exact_size(kl_type type, size_t count)
{
    switch (type) {
    case KL_STRING: return KL__HEAD + count + 1;
    case KL_ARRAY:
    case KL_OBJECT: return KL__HEAD + count * sizeof(kl__h);
    case KL__SHAPE: return KL__HEAD + (count + kl__index_cap(count)) * sizeof(kl__h);
    default: return KL__HEAD + 8;
    }
}

/* The size in whole words. The bytes behind a string's NUL are zero, and readers may compare words. */
static size_t size_of(kl_type type, size_t count) { return (exact_size(type, count) + 7) & ~(size_t)7; }

static size_t count_of(const kl__node *n, kl_type type)
{
    return type == KL_OBJECT ? kl__shape_of(n)->len : n->len;
}

size_t kl__node_size(const kl__node *n)
{
    kl_type type = kl__node_type(n);
    return size_of(type, count_of(n, type));
}

/* The hashed and compared part: a string's bytes, a number's, or a container's words from `len` on. */
static const void *payload(const kl__node *n, kl_type type, size_t *size)
{
    if (type == KL_STRING) {
        *size = n->len;
        return n->bytes;
    }
    if (type == KL_ARRAY || type == KL_OBJECT || type == KL__SHAPE) {
        *size = (1 + count_of(n, type)) * sizeof(kl__h);
        return &n->len;
    }
    *size = 8;
    return n->bytes;
}

static uint32_t rehash(const kl__node *n, kl_type type)
{
    size_t size;
    const void *data = payload(n, type, &size);
    return hash_of(type, data, size);
}

/* --- counting ----------------------------------------------------------------------------- */

static inline void count_up(kl__node *n)
{
    if (__builtin_expect(atomic_load_explicit(&n->rc, memory_order_relaxed) < KL__FOREVER, 1))
        atomic_fetch_add_explicit(&n->rc, KL__ONE, memory_order_relaxed);
}

/* --- the table ---------------------------------------------------------------------------- */

static shard *shard_of(uint32_t hash) { return &shards[hash >> (32 - SHARD_BITS)]; }

static uint32_t home(uint32_t hash, uint32_t cap)
{
    return (uint32_t)((uint64_t)(hash << SHARD_BITS) * cap >> 32);
}

static cell cell_of(uint32_t hash, kl__h h) { return (cell)hash << 32 | h; }

static size_t table_size(uint32_t end) { return ((size_t)end + 1) * sizeof(cell); }

static void resize_locked(shard *s, uint32_t cap) KL_REQUIRES(s->mu)
{
    cell *old = s->cells;
    uint32_t n = s->end, at = 0;
    for (cell *cells = NULL; !cells;) {
        uint32_t end = cap + (cap / 4 < PUSHED_MAX ? cap / 4 : PUSHED_MAX);
        cells = kl__table_alloc(table_size(end));
        at = 0;
        for (uint32_t i = 0; i < n && at < end; i++) {
            if (!old[i])
                continue;
            uint32_t from = home((uint32_t)(old[i] >> 32), cap);
            at = at > from ? at : from;
            cells[at++] = old[i];
        }
        if (at >= end) { /* too many cells belong to the last homes */
            kl__table_free(cells, table_size(end));
            cells = NULL;
            cap += cap / 4;
            continue;
        }
        s->cap = cap;
        s->end = end;
        s->cells = cells;
    }
    kl__table_free(old, table_size(n));
}

/* Removes a node's cell. Cells that were pushed beyond their homes move back. */
static void remove_locked(shard *s, uint32_t hash, kl__h h) KL_REQUIRES(s->mu)
{
    cell *cells = s->cells;
    uint32_t at = home(hash, s->cap);
    while (cells[at] != cell_of(hash, h))
        at++;
    for (; cells[at + 1] && home((uint32_t)(cells[at + 1] >> 32), s->cap) <= at; at++)
        cells[at] = cells[at + 1];
    cells[at] = 0;
    s->len--;
    if (!s->len) {
        kl__table_free(s->cells, table_size(s->end));
        s->cells = NULL;
        s->cap = s->end = 0;
    } else if (s->cap > FIRST_CELLS && s->len < s->cap / 4) {
        resize_locked(s, s->cap / 2);
    }
}

/* The node that a search looks for. */
typedef struct wanted {
    kl_type type;
    uint32_t hash;
    const void *data; /* as payload() gives it */
    size_t size;
} wanted;

static bool is_wanted(const kl__node *n, const wanted *w)
{
    if (kl__node_type(n) != w->type)
        return false;
    switch (w->type) {
    case KL_STRING: return n->len == w->size && !memcmp(n->bytes, w->data, w->size);
    case KL_ARRAY:
    case KL_OBJECT:
    case KL__SHAPE: /* the same first word means the same length */
        return n->len == *(const uint32_t *)w->data && !memcmp(&n->len, w->data, w->size);
    default: return !memcmp(n->bytes, w->data, w->size);
    }
}

/* The node, with its count raised; or 0 with the shard still locked, and *at where its cell belongs. */
KL_UNCHECKED static kl__h find_or_lock(shard *s, const wanted *w, uint32_t *at) KL_ACQUIRE_IF(0, s->mu);
KL_UNCHECKED static kl__h find_or_lock(shard *s, const wanted *w, uint32_t *at)
{
    kl_spin_lock(&s->mu);
    if (s->len >= s->cap - s->cap / 14)
        resize_locked(s, s->cap ? s->cap + s->cap / 4 : FIRST_CELLS);
    const cell *cells = s->cells;
    uint32_t i = home(w->hash, s->cap);
    while (cells[i] && cells[i] >> 32 < w->hash)
        i++;
    for (; cells[i] >> 32 == w->hash && cells[i]; i++) {
        kl__h h = (kl__h)cells[i];
        if (is_wanted(kl__at(h), w)) {
            count_up(kl__at(h));
            kl_spin_unlock(&s->mu);
            return h;
        }
    }
    *at = i;
    return 0;
}

/* Inserts a cell where find_or_lock said; the cells behind it move by one. */
static void insert_locked(shard *s, uint32_t at, cell c) KL_REQUIRES(s->mu)
{
    uint32_t free = at;
    while (s->cells[free])
        free++;
    if (free == s->end) {
        resize_locked(s, s->cap + s->cap / 4);
        for (at = home((uint32_t)(c >> 32), s->cap); s->cells[at] && s->cells[at] >> 32 <= c >> 32;)
            at++;
        insert_locked(s, at, c);
        return;
    }
    memmove(s->cells + at + 1, s->cells + at, (free - at) * sizeof c);
    s->cells[at] = c;
}

/* Enters a new node without its contents at the cell that find_or_lock left. */
static kl__node *enter_locked(shard *s, uint32_t at, const wanted *w, uint32_t flags, uint32_t len,
    size_t size, kl__h *h) KL_REQUIRES(s->mu)
{
    *h = kl__arena_alloc(size);
    kl__node *n = kl__at(*h);
    atomic_init(&n->rc, KL__ONE | flags | (uint32_t)w->type);
    n->len = len;
    insert_locked(s, at, cell_of(w->hash, *h));
    s->len++;
    return n;
}

/* Lowers a count. True: h has left the table, and the caller reclaims it. */
static bool drop(kl__h h)
{
    kl__node *n = kl__at(h);
    uint32_t rc = atomic_load_explicit(&n->rc, memory_order_relaxed);
    while (rc >= 2 * KL__ONE) {
        if (rc >= KL__FOREVER)
            return false;
        if (atomic_compare_exchange_weak_explicit(
                &n->rc, &rc, rc - KL__ONE, memory_order_acq_rel, memory_order_relaxed))
            return false;
    }
    kl_type type = (kl_type)(rc & KL__TYPE);
    if (type != KL_STRING && rc & KL__ALONE) /* no search can find it */
        return atomic_fetch_sub_explicit(&n->rc, KL__ONE, memory_order_acq_rel) < 2 * KL__ONE;
    uint32_t hash = rehash(n, type);
    shard *s = shard_of(hash);
    kl_spin_lock(&s->mu);
    bool dead = atomic_fetch_sub_explicit(&n->rc, KL__ONE, memory_order_acq_rel) < 2 * KL__ONE;
    if (dead)
        remove_locked(s, hash, h);
    kl_spin_unlock(&s->mu);
    return dead;
}

const kl_value *kl_value_ref(const kl_value *v)
{
    if (kl__is_node(kl__handle(v)))
        count_up(kl__at(kl__handle(v)));
    return v;
}

/* Dead containers whose children still count: a handle, and above it how many children are done. */
typedef struct dead {
    uint64_t *v, small[64];
    size_t len, cap;
    size_t budget; /* children that may be released now */
} dead;

#define AT_ONCE                                                                                              \
    8192 /* children that one unref releases: well below a millisecond; the rest of a giant waits */
#define ON_THE_WAY 64 /* waiting children that a later unref releases with its own */

static kl_mutex waiting_mu = KL_MUTEX_INIT_AS(KL_LOCK_DEAD);
static uint64_t *waiting KL_GUARDED_BY(waiting_mu);
static size_t waiting_cap KL_GUARDED_BY(waiting_mu);
static _Atomic size_t waiting_len; /* changed under waiting_mu */

static void dead_init(dead *d, size_t budget)
{
    d->v = d->small;
    d->len = 0;
    d->cap = sizeof d->small / sizeof *d->small;
    d->budget = budget;
}

static void bury(dead *d, uint64_t entry)
{
    if (d->len == d->cap) {
        uint64_t *bigger = kl_alloc(2 * d->cap * sizeof *bigger);
        memcpy(bigger, d->v, d->len * sizeof *bigger);
        if (d->v != d->small)
            kl_free(d->v);
        d->v = bigger;
        d->cap *= 2;
    }
    d->v[d->len++] = entry;
}

static inline void release(dead *d, kl__h h)
{
    if (!kl__is_node(h) || !drop(h))
        return;
    kl_type type = kl__node_type(kl__at(h));
    if (type == KL_ARRAY || type == KL_OBJECT || type == KL__SHAPE)
        bury(d, h);
    else
        kl__arena_free(h, size_of(type, kl__at(h)->len));
}

static void wait_for_later(const dead *d)
{
    kl_lock(&waiting_mu);
    size_t len = atomic_load_explicit(&waiting_len, memory_order_relaxed);
    if (len + d->len > waiting_cap) {
        waiting_cap = 2 * (len + d->len);
        waiting = kl_realloc(waiting, waiting_cap * sizeof *waiting);
    }
    memcpy(waiting + len, d->v, d->len * sizeof *waiting);
    atomic_store_explicit(&waiting_len, len + d->len, memory_order_relaxed);
    kl_unlock(&waiting_mu);
}

/* Moves up to `most` waiting ones to d. */
static void take_along(dead *d, size_t most)
{
    kl_lock(&waiting_mu);
    size_t len = atomic_load_explicit(&waiting_len, memory_order_relaxed);
    for (; len && most; most--)
        bury(d, waiting[--len]);
    atomic_store_explicit(&waiting_len, len, memory_order_relaxed);
    if (!len) {
        kl_free(waiting);
        waiting = NULL;
        waiting_cap = 0;
    }
    kl_unlock(&waiting_mu);
}

static void reclaim(dead *d)
{
    while (d->len && d->budget) {
        uint64_t entry = d->v[--d->len];
        kl__h h = (kl__h)entry;
        kl__node *n = kl__at(h);
        kl_type type = kl__node_type(n);
        size_t count = count_of(n, type), size = size_of(type, count), i = (size_t)(entry >> 32);
        for (; i < count && d->budget; i++, d->budget--)
            release(d, n->v[i]);
        if (i < count) {
            bury(d, (uint64_t)i << 32 | h);
            break;
        }
        if (type == KL_OBJECT)
            release(d, n->len);
        kl__arena_free(h, size);
    }
    if (d->len)
        wait_for_later(d);
    if (d->v != d->small)
        kl_free(d->v);
}

void kl_value_unref(const kl_value *v)
{
    if (!kl__is_node(kl__handle(v)))
        return;
    dead d;
    dead_init(&d, AT_ONCE);
    release(&d, kl__handle(v));
    if (d.len && __builtin_expect(atomic_load_explicit(&waiting_len, memory_order_relaxed) > 0, 0))
        take_along(&d, ON_THE_WAY);
    reclaim(&d);
}

/* Reclaims everything that waits. */
static void reclaim_all(void)
{
    while (atomic_load_explicit(&waiting_len, memory_order_relaxed)) {
        dead d;
        dead_init(&d, SIZE_MAX);
        take_along(&d, SIZE_MAX);
        reclaim(&d);
    }
}

/* --- scalars ------------------------------------------------------------------------------ */

static uint32_t length(size_t n)
{
    if (n > UINT32_MAX / 4)
        kl_mem_die("memory (a value above 1 GiB)");
    return (uint32_t)n;
}

/* Whether JSON would write any byte of s other than as it is. */
static bool is_plain(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == '"' || s[i] == '\\')
            return false;
    return true;
}

kl__h kl__intern_str_new(const char *s, size_t n, bool *is_new)
{
    *is_new = false;
    if (!n)
        return KL__H_EMPTY_STRING;
    wanted w = {KL_STRING, hash_of(KL_STRING, s, n), s, n};
    shard *sh = shard_of(w.hash);
    uint32_t at;
    kl__h h = find_or_lock(sh, &w, &at);
    if (h)
        return h;
    size_t size = size_of(KL_STRING, n);
    kl__node *node = enter_locked(sh, at, &w, is_plain(s, n) ? KL__PLAIN : 0, length(n), size, &h);
    memset((char *)node + size - 8, 0, 8);
    memcpy(node->bytes, s, n);
    kl_spin_unlock(&sh->mu);
    *is_new = true;
    return h;
}

kl__h kl__intern_str(const char *s, size_t n)
{
    bool is_new;
    return kl__intern_str_new(s, n, &is_new);
}

kl__h kl__intern_wide(kl_type type, uint64_t bits)
{
    wanted w = {type, hash_of(type, &bits, sizeof bits), &bits, sizeof bits};
    shard *sh = shard_of(w.hash);
    uint32_t at;
    kl__h h = find_or_lock(sh, &w, &at);
    if (h)
        return h;
    kl__node *node = enter_locked(sh, at, &w, 0, 0, KL__HEAD + 8, &h);
    memcpy(node->bytes, &bits, sizeof bits);
    kl_spin_unlock(&sh->mu);
    return h;
}

kl__h kl__intern_int(int64_t i)
{
    if (i >= -(1 << 30) && i < 1 << 30)
        return KL__INT_BIT | ((uint32_t)i & (KL__INT_BIT - 1));
    return kl__intern_wide(KL_INT, (uint64_t)i);
}

/* --- containers --------------------------------------------------------------------------- */

#define SMALL_WORDS 64

/* Lays out head and the entries' handles one after the other, as a node has them from `len` on. */
static uint32_t *lay_out(uint32_t head, const kl__entry *e, size_t n, uint32_t small[SMALL_WORDS])
{
    uint32_t *words = n < SMALL_WORDS ? small : kl_alloc((n + 1) * sizeof *words);
    words[0] = head;
    for (size_t i = 0; i < n; i++)
        words[1 + i] = (kl__h)e[i];
    return words;
}

/* Releases our references: the node that was found has its own, so ours are never the last. */
static void give_back(const kl__entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (e[i] & KL__OWNED)
            kl__spare((kl__h)e[i]);
}

static void take_borrowed(const kl__entry *e, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!(e[i] & KL__OWNED) && kl__is_node((kl__h)e[i]))
            count_up(kl__at((kl__h)e[i]));
}

static kl__h intern_container(kl_type type, kl__entry head, const kl__entry *e, size_t n, bool only_find)
{
    uint32_t small[SMALL_WORDS], *words = lay_out((uint32_t)head, e, n, small);
    size_t bytes = (n + 1) * sizeof *words;
    wanted w = {type, hash_of(type, words, bytes), words, bytes};
    shard *s = shard_of(w.hash);
    uint32_t at;
    kl__h h = find_or_lock(s, &w, &at);
    if (h) {
        give_back(e, n);
        if (type == KL_OBJECT)
            give_back(&head, 1);
    } else if (!only_find) {
        kl__node *node = enter_locked(s, at, &w, 0, words[0], size_of(type, n), &h);
        memcpy(node->v, words + 1, bytes - sizeof *words);
        take_borrowed(e, n);
        if (type == KL_OBJECT)
            take_borrowed(&head, 1);
        if (type == KL__SHAPE && n > KL__INDEXED_ABOVE)
            kl__index_fill(node);
        kl_spin_unlock(&s->mu);
    } else {
        kl_spin_unlock(&s->mu);
    }
    if (words != small)
        kl_free(words);
    return h;
}

kl__h kl__intern_list(kl_type type, const kl__entry *e, size_t n)
{
    return n ? intern_container(type, length(n), e, n, false) : (kl__h)KL__H_EMPTY_ARRAY;
}

kl__h kl__find_shape(const kl__entry *e, size_t n)
{
    return intern_container(KL__SHAPE, length(n), e, n, true);
}

kl__h kl__intern_object(kl__entry shape, const kl__entry *e, size_t n)
{
    return intern_container(KL_OBJECT, shape, e, n, false);
}

kl__h kl__make_alone(kl_type type, kl__entry head, const kl__entry *e, size_t n)
{
    kl__h h = kl__arena_alloc(size_of(type, n));
    kl__node *node = kl__at(h);
    atomic_init(&node->rc, KL__ONE | KL__ALONE | (uint32_t)type);
    node->len = (kl__h)head;
    for (size_t i = 0; i < n; i++)
        node->v[i] = (kl__h)e[i];
    take_borrowed(e, n);
    if (type == KL_OBJECT)
        take_borrowed(&head, 1);
    return h;
}

const kl_value *kl__intern_container(kl_type type, const kl_value *const *slots, size_t n)
{
    kl__entry small[SMALL_WORDS], *e = small;
    kl__h h;
    if (!n)
        return type == KL_ARRAY ? KL__EMPTY_ARRAY : KL__EMPTY_OBJECT;
    size_t count = type == KL_OBJECT ? 2 * n : n;
    if (count > SMALL_WORDS)
        e = kl_alloc(count * sizeof *e);
    if (type == KL_OBJECT) {
        for (size_t i = 0; i < n; i++) {
            e[i] = kl__owned(kl__handle(slots[2 * i]));
            e[n + i] = kl__owned(kl__handle(slots[2 * i + 1]));
        }
        h = kl__intern_object(kl__owned(kl__intern_list(KL__SHAPE, e, n)), e + n, n);
    } else {
        for (size_t i = 0; i < n; i++)
            e[i] = kl__owned(kl__handle(slots[i]));
        h = kl__intern_list(KL_ARRAY, e, n);
    }
    if (e != small)
        kl_free(e);
    return KL__VALUE(h);
}

/* --- all of it ---------------------------------------------------------------------------- */

void kl_value_memory(size_t *nodes, size_t *bytes)
{
    reclaim_all();
    kl__arena_usage(nodes, bytes);
    for (size_t i = 0; i < SHARDS; i++) {
        kl_spin_lock(&shards[i].mu);
        *bytes += shards[i].end * sizeof *shards[i].cells;
        kl_spin_unlock(&shards[i].mu);
    }
}

#ifdef KL_DEBUG
/* The arena is not malloc, so LeakSanitizer does not see into it. This reports leaks at the end of the
 * process. */
/* Runs after the destructors without a priority, which may release values. */
__attribute__((destructor(102))) static void tell_leaks(void)
{
    size_t nodes, bytes, told = 0;
    kl_value_memory(&nodes, &bytes);
    if (!nodes)
        return;
    fprintf(stderr, "kubelua: leak: %zu values (%zu bytes) are still referenced at exit\n", nodes, bytes);
    for (size_t i = 0; i < SHARDS; i++)
        for (size_t at = 0; at < shards[i].end && told < 8; at++) {
            kl__h h = (kl__h)shards[i].cells[at];
            if (!h || kl__node_type(kl__at(h)) == KL__SHAPE)
                continue;
            char *text = kl_value_to_json(KL__VALUE(h));
            fprintf(stderr, "kubelua: leak: %u references to %.200s\n",
                (unsigned)(atomic_load(&kl__at(h)->rc) / KL__ONE), text);
            kl_free(text);
            told++;
        }
}
#endif
