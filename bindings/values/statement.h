/* statement.h - finds in the compiled function the reads that produced the table of an assignment. Owner
 * thread of the state; never raises.
 *
 * Drafts need this. An absent field must read as nil, so that `n.status.x or 0` works; nil cannot record
 * which field was read. The order of reads and assignments alone is ambiguous in the two most common ways to
 * write a status:
 *
 *   n.status.a.b = { x = f(),             n.status.a.b = n.status.c or 1
 *                    y = g() }
 *
 * The first reads and assigns on different lines; the second reads another absent field in between. Without
 * the compiled function both would be errors, and they are if its format is not that of Lua 5.4. */
#ifndef LKL_STATEMENT_H
#define LKL_STATEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LKL__READS_MAX 16

typedef enum lkl__key_kind {
    LKL__KEY_ANY, /* computed when it runs */
    LKL__KEY_NAME,
    LKL__KEY_INDEX,
} lkl__key_kind;

typedef struct lkl__key {
    lkl__key_kind kind;
    const char *name; /* NAME: points into the dump */
    size_t len;
    int64_t index; /* INDEX */
} lkl__key;

typedef enum lkl__root_kind { LKL__ROOT_OTHER, LKL__ROOT_LOCAL, LKL__ROOT_UPVALUE } lkl__root_kind;

/* `root.a.b.key = value`: the reads are b, then a. If there is no room for all, `reads` has the last ones. */
typedef struct lkl__target {
    lkl__root_kind root;
    int root_number; /* as lua_getlocal and lua_getupvalue count */
    lkl__key key;
    struct lkl__read {
        lkl__key key;
        int line;
    } reads[LKL__READS_MAX];
    size_t n;
} lkl__target;

/* How the table that was read is used. Only an assignment has a known key; for the others it is ANY. */
typedef enum lkl__use { LKL__ASSIGNED, LKL__MEASURED, LKL__PASSED } lkl__use;

/* Finds the uses on this line of a value that was read just before: assignments to its fields, its length
 * (`#root.a.b`), or calls with it as the first argument. Writes up to `max` of them to `out`, and returns
 * their number. `dump` is the output of lua_dump for the function, with debug information; returns 0 if it
 * cannot be read. */
size_t lkl__targets(const char *dump, size_t n, int line, lkl__use use, lkl__target *out, size_t max);

#endif
