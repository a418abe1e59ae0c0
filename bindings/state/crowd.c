/* crowd.c - where Lua 5.4 puts a number key in a hash part of n places: at the key modulo n - 1.
 * lkl_crowd_known checks this at run time. */
#include "state/crowd.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

/* The most steps through chains that a growing table may take: some 100 ms. */
#define STEPS_MAX ((size_t)1 << 24)

/* A place of a hash part: a value with its kind, the key's kind, the next place of the chain, the key. */
typedef struct place {
    uint64_t value;
    uint8_t kind, key_kind;
    int next;
    union {
        int64_t integer;
        double number;
    } key;
} place;
_Static_assert(sizeof(place) == 24, "a place is what LKL_CROWD_BYTES counts");

#define KIND_OF_NIL(kind) (((kind)&0x0f) == 0)
#define KEY_INTEGER 3
#define KEY_FLOAT 19

struct lkl_part {
    const place *at;
    size_t places;
};

static atomic_int known; /* 0: not looked at; 1: yes; -1: no */

/* --- what is known ------------------------------------------------------------------------ */

/* The number of places in a hash part of that many bytes, a power of two; 0: no hash part has that size. */
static size_t places_of(size_t bytes)
{
    size_t n = bytes / sizeof(place);
    return bytes % sizeof(place) || n & (n - 1) ? 0 : n;
}

void lkl_crowd_note(lkl_crowd *c, void *block, size_t bytes)
{
    size_t n = places_of(bytes);
    if (!n)
        return;
    if (c->n == c->cap)
        c->parts = kl_realloc(c->parts, (c->cap = c->cap ? 2 * c->cap : 4) * sizeof *c->parts);
    c->parts[c->n++] = (struct lkl_part){block, n};
}

void lkl_crowd_forget(lkl_crowd *c, const void *block)
{
    for (size_t i = c->n; i--;)
        if (c->parts[i].at == block) {
            c->parts[i] = c->parts[--c->n];
            return;
        }
}

void lkl_crowd_fini(lkl_crowd *c)
{
    kl_free(c->parts);
    *c = (lkl_crowd){0};
}

/* --- how keys fall ------------------------------------------------------------------------ */

static bool is_number(const place *p)
{
    return !KIND_OF_NIL(p->kind) && (p->key_kind == KEY_INTEGER || p->key_kind == KEY_FLOAT);
}

/* 31 bits of the fraction and the exponent. */
static unsigned hash_of_float(double d)
{
    int exponent;
    double fraction = frexp(d, &exponent) * -(double)INT_MIN;
    if (!(fraction >= -0x1p63 && fraction < 0x1p63))
        return 0;
    unsigned u = (unsigned)exponent + (unsigned)(int64_t)fraction;
    return u <= INT_MAX ? u : ~u;
}

static size_t falls(const place *p, size_t places)
{
    uint64_t hash = p->key_kind == KEY_INTEGER ? (uint64_t)p->key.integer : hash_of_float(p->key.number);
    return hash % ((places - 1) | 1);
}

static size_t numbers_in(const struct lkl_part *part)
{
    size_t n = 0;
    for (size_t i = 0; i < part->places; i++)
        n += is_number(&part->at[i]);
    return n;
}

static bool crowds(const struct lkl_part *part, uint32_t *fallen, size_t places)
{
    size_t steps = 0;
    memset(fallen, 0, places * sizeof *fallen);
    for (size_t i = 0; i < part->places && steps <= STEPS_MAX; i++)
        if (is_number(&part->at[i]))
            steps += fallen[falls(&part->at[i], places)]++;
    return steps > STEPS_MAX;
}

bool lkl_crowd_forms(const lkl_crowd *c, size_t bytes)
{
    size_t places = places_of(bytes);
    uint32_t *fallen = NULL;
    bool found = false;
    if (!places || atomic_load_explicit(&known, memory_order_relaxed) <= 0)
        return false;
    for (size_t i = 0; i < c->n && !found; i++) {
        size_t n = numbers_in(&c->parts[i]);
        if (n > places || n * n / 2 <= STEPS_MAX)
            continue;
        fallen = fallen ? fallen : kl_new_array(uint32_t, places);
        found = crowds(&c->parts[i], fallen, places);
    }
    kl_free(fallen);
    return found;
}

/* --- seeing for itself -------------------------------------------------------------------- */

/* Three keys, each alone in its place. */
static int measure(lua_State *L)
{
    const lkl_crowd *c = lua_touserdata(L, 1);
    const place keys[] = {{.key_kind = KEY_INTEGER, .key.integer = 77},
        {.key_kind = KEY_INTEGER, .key.integer = INT64_C(-987654321987)},
        {.key_kind = KEY_FLOAT, .key.number = 37500.0625}};
    size_t had = c->n;
    lua_createtable(L, 0, 4096);
    bool is = c->n == had + 1 && c->parts[had].places == 4096;
    for (int i = 0; i < 3; i++) {
        if (keys[i].key_kind == KEY_INTEGER)
            lua_pushinteger(L, keys[i].key.integer);
        else
            lua_pushnumber(L, keys[i].key.number);
        lua_pushboolean(L, 1);
        lua_rawset(L, -3);
    }
    for (int i = 0; i < 3 && is; i++) {
        const place *p = &c->parts[had].at[falls(&keys[i], 4096)];
        is = is_number(p) && p->key_kind == keys[i].key_kind && p->key.integer == keys[i].key.integer;
    }
    lua_pushboolean(L, is);
    return 1;
}

bool lkl_crowd_known(lua_State *L, const lkl_crowd *c)
{
    if (!atomic_load(&known)) {
        lua_pushcfunction(L, measure);
        lua_pushlightuserdata(L, (void *)(uintptr_t)c);
        bool is = lua_pcall(L, 1, 1, 0) == LUA_OK && lua_toboolean(L, -1);
        lua_pop(L, 1);
        atomic_store(&known, is ? 1 : -1);
    }
    return atomic_load(&known) > 0;
}
