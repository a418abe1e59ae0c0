/* arena.c - slots of one size in chunks, chunks in one reserved range.
 *
 *   range: | chunk 0 | chunk 1 | ...        chunk: 32 KB of slots of one class; bigger nodes take a run of chunks
 *
 * The range is reserved without memory behind it and opened in steps as it fills, so that it counts for
 * nothing under strict overcommit. Where even the reservation is refused (ulimit -v) a smaller one is
 * taken. A class keeps the chunks that have room in a list; its first is the one that is filled. What is
 * freed is linked through the slots themselves. */
#include "value/arena.h"

#include <stdbool.h>
#include <sys/mman.h>
#include "base/locks.h"
#include "base/mem.h"
#include "base/sync.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#endif
#endif
#ifndef ASAN_POISON_MEMORY_REGION
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

#define CHUNK_BITS 15
#define CHUNK ((size_t)1 << CHUNK_BITS)
#define FINE_MAX 512u        /* up to this size a class for every 8 bytes */
#define SLOT_MAX (CHUNK / 2) /* up to this size slots; above it runs of chunks */
#define OPEN_STEP ((size_t)1 << 20)

enum { FINE = FINE_MAX / 8, COARSE = 5 * 4, RUNS = 20 * 4, CLASSES = FINE + COARSE + RUNS };

typedef struct chunk {
    uint32_t free;       /* first free slot's handle, or 0 */
    uint16_t live, bump; /* slots in use; slots ever used */
    uint32_t prev, next; /* in its class's list: chunk numbers + 1 */
} chunk;

typedef struct class
{
    kl_spin mu;
    /* first chunk with room, + 1; for runs: first free run's handle */
    uint32_t room KL_GUARDED_BY(mu);
    size_t live KL_GUARDED_BY(mu), size KL_GUARDED_BY(mu);
} __attribute__((aligned(64))) class;

static class classes[CLASSES];

static kl_mutex range_mu = KL_MUTEX_INIT_AS(KL_LOCK_MEMORY);
static size_t reserved KL_GUARDED_BY(range_mu), opened KL_GUARDED_BY(range_mu), used KL_GUARDED_BY(range_mu);
static uint32_t spare KL_GUARDED_BY(range_mu); /* chunks without slots, linked by `next` */
static chunk *chunks;                          /* one for each possible chunk; memory as it is touched */

char *kl__arena_base;

/* --- classes ------------------------------------------------------------------------------ */

/* Four steps to a doubling: *size becomes the size of its step; the result counts the steps from `from`. */
static unsigned step(size_t *size, size_t from)
{
    unsigned k = 0;
    while (*size > from * 2) {
        from *= 2;
        k += 4;
    }
    size_t part = from / 4, n = (*size - from + part - 1) / part;
    if (!n)
        n = 1;
    *size = from + n * part;
    return k + (unsigned)n - 1;
}

/* The class of *size, which becomes the size of the slot. */
static unsigned class_of(size_t *size)
{
    if (*size <= FINE_MAX) {
        *size = (*size + 7) & ~(size_t)7;
        return (unsigned)(*size / 8) - 1;
    }
    if (*size <= SLOT_MAX)
        return FINE + step(size, FINE_MAX);
    *size = (*size + CHUNK - 1) & ~(CHUNK - 1);
    if (*size == CHUNK)
        return FINE + COARSE;
    unsigned k = step(size, CHUNK);
    *size = (*size + CHUNK - 1) & ~(CHUNK - 1);
    return FINE + COARSE + 1 + k;
}

/* --- the range ---------------------------------------------------------------------------- */

static void reserve_locked(void) KL_REQUIRES(range_mu)
{
    void *p = MAP_FAILED;
    for (reserved = KL__ARENA_MAX; reserved >= OPEN_STEP; reserved /= 2) {
        p = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p != MAP_FAILED)
            break;
    }
    void *table = mmap(NULL, (reserved >> CHUNK_BITS) * sizeof *chunks, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED || table == MAP_FAILED)
        kl_mem_die("address space for values");
    chunks = table;
    used = CHUNK; /* the first chunk stays closed: small handles are no nodes */
    opened = CHUNK;
    kl__arena_base = p;
}

static uint32_t run_new(size_t size)
{
    kl_lock(&range_mu);
    if (!kl__arena_base)
        reserve_locked();
    size_t at = used;
    if (size > reserved - used)
        kl_mem_die(
            "memory for values (the range of 16 GiB, or the part of it that `ulimit -v` leaves, is full)");
    used += size;
    if (used > opened) {
        size_t to = (used + OPEN_STEP - 1) & ~(OPEN_STEP - 1);
        to = to > reserved ? reserved : to;
        if (mprotect(kl__arena_base + opened, to - opened, PROT_READ | PROT_WRITE))
            kl_mem_die("memory for values");
        ASAN_POISON_MEMORY_REGION(kl__arena_base + opened, to - opened);
        opened = to;
    }
    kl_unlock(&range_mu);
    return (uint32_t)(at >> 3);
}

static uint32_t chunk_new(void)
{
    kl_lock(&range_mu);
    uint32_t k = spare;
    if (k)
        spare = chunks[k - 1].next;
    kl_unlock(&range_mu);
    if (!k)
        k = (run_new(CHUNK) >> (CHUNK_BITS - 3)) + 1;
    chunks[k - 1] = (chunk){0};
    return k;
}

static void chunk_release(uint32_t k)
{
    madvise(kl__arena_base + ((size_t)(k - 1) << CHUNK_BITS), CHUNK, MADV_DONTNEED);
    kl_lock(&range_mu);
    chunks[k - 1].next = spare;
    spare = k;
    kl_unlock(&range_mu);
}

/* --- lists of chunks with room ------------------------------------------------------------ */

static void enlist_locked(class *c, uint32_t k) KL_REQUIRES(c->mu)
{
    chunks[k - 1].prev = 0;
    chunks[k - 1].next = c->room;
    if (c->room)
        chunks[c->room - 1].prev = k;
    c->room = k;
}

static void unlist_locked(class *c, uint32_t k) KL_REQUIRES(c->mu)
{
    chunk *x = &chunks[k - 1];
    if (x->next)
        chunks[x->next - 1].prev = x->prev;
    if (x->prev)
        chunks[x->prev - 1].next = x->next;
    else
        c->room = x->next;
}

/* --- slots -------------------------------------------------------------------------------- */

static uint32_t slot_alloc(class *c, size_t size)
{
    unsigned per_chunk = (unsigned)(CHUNK / size);
    kl_spin_lock(&c->mu);
    uint32_t k = c->room;
    if (!k) {
        kl_spin_unlock(&c->mu); /* the range has a lock that may sleep */
        k = chunk_new();
        kl_spin_lock(&c->mu);
        enlist_locked(c, k);
    }
    chunk *x = &chunks[k - 1];
    uint32_t h = x->free;
    if (h) {
        ASAN_UNPOISON_MEMORY_REGION(kl__arena_at(h), size);
        x->free = *(uint32_t *)kl__arena_at(h);
    } else {
        h = (uint32_t)((((size_t)(k - 1) << CHUNK_BITS) + x->bump++ * size) >> 3);
        ASAN_UNPOISON_MEMORY_REGION(kl__arena_at(h), size);
    }
    c->live++;
    c->size = size;
    if (++x->live == per_chunk)
        unlist_locked(c, k);
    kl_spin_unlock(&c->mu);
    return h;
}

static void slot_free(class *c, uint32_t h, size_t size)
{
    unsigned per_chunk = (unsigned)(CHUNK / size);
    uint32_t k = (h >> (CHUNK_BITS - 3)) + 1;
    chunk *x = &chunks[k - 1];
    bool empty = false;
    kl_spin_lock(&c->mu);
    *(uint32_t *)kl__arena_at(h) = x->free;
    x->free = h;
    ASAN_POISON_MEMORY_REGION(kl__arena_at(h), size);
    c->live--;
    if (x->live-- == per_chunk)
        enlist_locked(c, k);
    if (!x->live && (x->prev || x->next)) { /* the only chunk with room of a class stays */
        unlist_locked(c, k);
        empty = true;
    }
    kl_spin_unlock(&c->mu);
    if (empty)
        chunk_release(k);
}

/* --- runs --------------------------------------------------------------------------------- */

static uint32_t run_alloc(class *c, size_t size)
{
    kl_spin_lock(&c->mu);
    uint32_t h = c->room;
    c->live++;
    c->size = size;
    if (h) {
        ASAN_UNPOISON_MEMORY_REGION(kl__arena_at(h), size);
        c->room = chunks[h >> (CHUNK_BITS - 3)].next;
    }
    kl_spin_unlock(&c->mu);
    if (!h) {
        h = run_new(size);
        ASAN_UNPOISON_MEMORY_REGION(kl__arena_at(h), size);
    }
    return h;
}

static void run_free(class *c, uint32_t h, size_t size)
{
    madvise(kl__arena_at(h), size, MADV_DONTNEED);
    ASAN_POISON_MEMORY_REGION(kl__arena_at(h), size);
    kl_spin_lock(&c->mu);
    chunks[h >> (CHUNK_BITS - 3)].next = c->room;
    c->room = h;
    c->live--;
    kl_spin_unlock(&c->mu);
}

uint32_t kl__arena_alloc(size_t size)
{
    unsigned k = class_of(&size);
    return k < FINE + COARSE ? slot_alloc(&classes[k], size) : run_alloc(&classes[k], size);
}

void kl__arena_free(uint32_t handle, size_t size)
{
    unsigned k = class_of(&size);
    if (k < FINE + COARSE)
        slot_free(&classes[k], handle, size);
    else
        run_free(&classes[k], handle, size);
}

void kl__arena_usage(size_t *slots, size_t *bytes)
{
    *slots = *bytes = 0;
    for (size_t i = 0; i < CLASSES; i++) {
        kl_spin_lock(&classes[i].mu);
        *slots += classes[i].live;
        *bytes += classes[i].live * classes[i].size;
        kl_spin_unlock(&classes[i].mu);
    }
}

/* --- tables ------------------------------------------------------------------------------- */

#define TABLE_OWN ((size_t)32 << 10)

void *kl__table_alloc(size_t size)
{
    if (size < TABLE_OWN)
        return kl_zalloc(size);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        kl_mem_die("memory for the table of values");
    return p;
}

void kl__table_free(void *table, size_t size)
{
    if (size < TABLE_OWN)
        kl_free(table);
    else
        munmap(table, size);
}
