/* heap.c - what Lua states of the hunter are made of under AddressSanitizer.
 *
 * Half of what a program cost there was the sanitizer's malloc, which keeps a stack for each block of a
 * state, and a state has ten thousand. These blocks are watched in the same way and told of in fewer words:
 * around a block and where one was, memory is poisoned, and a block that was given back is not used again
 * soon. What is large is the sanitizer's, as is all that C holds.
 *
 *   chunk  64 KiB of malloc, so that a leak that hangs on a state is seen: blocks, one behind the other
 *   slot   a block, and poison until the next slot
 *
 * Slots of one size wait in a queue until QUARANTINE bytes wait in all of them, and the chunks of a state
 * that is closed in another one. luaL_newstate is preempted: every state of this program is made here. */
#include "hunt.h"

#ifdef __SANITIZE_ADDRESS__
#include <lauxlib.h>
#include <sanitizer/asan_interface.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sync.h"

#define CHUNK ((size_t)64 << 10)
#define STEP ((size_t)16)
#define REDZONE ((size_t)16) /* at least; as the sanitizer's least */
#define SMALL ((size_t)1024) /* the largest block that is ours */
#define CLASSES (SMALL / STEP + 2)
#define QUARANTINE ((size_t)512 << 10) /* of a state */
#define CHUNKS_WAIT 128                /* of states that are closed */

#define RAW __attribute__((no_sanitize("address", "undefined")))

typedef struct slot {
    struct slot *next;
} slot;

typedef struct chunk {
    struct chunk *next;
} chunk;

typedef struct heap {
    chunk *chunks;
    char *at, *end; /* of the first chunk: what nobody had yet */
    slot *first[CLASSES], *last[CLASSES];
    size_t waiting; /* bytes of slots */
    size_t blocks;  /* in use, large ones too */
} heap;

/* --- chunks that wait --------------------------------------------------------------------- */

static kl_mutex mu = KL_MUTEX_INIT;
static chunk *oldest, *newest;
static size_t chunks_wait;

/* The one that has waited longest; caller owns it. */
static RAW chunk *oldest_take_locked(void)
{
    chunk *c = oldest;
    oldest = c->next;
    chunks_wait--;
    return c;
}

static RAW chunk *chunk_take(void)
{
    chunk *c = NULL;
    kl_lock(&mu);
    if (chunks_wait > CHUNKS_WAIT / 2)
        c = oldest_take_locked();
    kl_unlock(&mu);
    if (!c && (c = malloc(CHUNK)))
        __asan_poison_memory_region(c, CHUNK);
    return c;
}

static void chunk_free(chunk *c)
{
    __asan_unpoison_memory_region(c, CHUNK);
    free(c);
}

static RAW void chunks_give(chunk *first)
{
    kl_lock(&mu);
    for (chunk *c = first, *next; c; c = next) {
        next = c->next;
        __asan_poison_memory_region(c, CHUNK);
        c->next = NULL;
        if (chunks_wait++)
            newest->next = c;
        else
            oldest = c;
        newest = c;
        if (chunks_wait > CHUNKS_WAIT)
            chunk_free(oldest_take_locked());
    }
    kl_unlock(&mu);
}

void heap_end(void)
{
    kl_lock(&mu);
    while (chunks_wait)
        chunk_free(oldest_take_locked());
    kl_unlock(&mu);
}

/* --- one state's blocks ------------------------------------------------------------------- */

static size_t class_of(size_t n) { return (n + STEP - 1) / STEP; }
static size_t slot_size(size_t class) { return class * STEP + REDZONE; }

static RAW void *block_new(heap *h, size_t n)
{
    size_t class = class_of(n), size = slot_size(class);
    char *p = NULL;
    if (h->waiting > QUARANTINE && h->first[class]) {
        p = (char *)h->first[class];
        h->first[class] = ((slot *)p)->next;
        h->waiting -= size;
    } else {
        if (size > (size_t)(h->end - h->at)) {
            chunk *c = chunk_take();
            if (!c)
                return NULL;
            c->next = h->chunks;
            h->chunks = c;
            h->at = (char *)c + REDZONE;
            h->end = (char *)c + CHUNK;
        }
        p = h->at;
        h->at += size;
    }
    __asan_unpoison_memory_region(p, n);
    return p;
}

static RAW void block_free(heap *h, void *p, size_t n)
{
    size_t class = class_of(n);
    slot *s = p;
    if (__asan_address_is_poisoned(p)) /* twice, or another one's */
        hunt_wrong("a block of a Lua state is given back that is none");
    __asan_poison_memory_region(p, class * STEP);
    s->next = NULL;
    if (h->first[class])
        h->last[class]->next = s;
    else
        h->first[class] = s;
    h->last[class] = s;
    h->waiting += slot_size(class);
}

static void *moved(heap *h, void *p, size_t had, size_t n)
{
    void *q = n > SMALL ? malloc(n) : block_new(h, n);
    if (!q)
        return NULL;
    if (p)
        memcpy(q, p, had < n ? had : n);
    if (p && had > SMALL)
        free(p);
    else if (p)
        block_free(h, p, had);
    return q;
}

/* The last block of a state, which is the state itself, was given back. */
static void heap_free(heap *h)
{
    chunks_give(h->chunks);
    kl_free(h);
}

/* A lua_Alloc. */
static void *alloc(void *arg, void *p, size_t had, size_t n)
{
    heap *h = arg;
    if (!p)
        had = 0; /* it was the kind of thing that is wanted */
    void *q = NULL;
    if (n && (n > SMALL || had > SMALL) && n > SMALL == had > SMALL)
        q = realloc(p, n);
    else if (n)
        q = moved(h, p, had, n);
    else if (had > SMALL)
        free(p);
    else if (p)
        block_free(h, p, had);
    if (q && !p)
        h->blocks++;
    if (p && !n && !--h->blocks)
        heap_free(h);
    return q;
}

/* A third of the sanitizer's malloc is the stack that it keeps of each block; who asked is in its first
 * frames. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "malloc_context_size=8"; }

static int die(lua_State *L)
{
    hunt_wrong("Lua gives up: %s", lua_tostring(L, -1));
    return 0;
}

lua_State *luaL_newstate(void)
{
    lua_State *L = lua_newstate(alloc, kl_new(heap));
    if (!L)
        hunt_wrong("no memory for a Lua state");
    lua_atpanic(L, die);
    return L;
}

#else
void heap_end(void) {}
#endif
