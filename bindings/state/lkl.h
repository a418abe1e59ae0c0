/* lkl.h - the border between Lua and libkubelua: how values cross it, and functions that binding files share.
 *
 * At the border: check, box, call, push. A raised Lua error must not leak: everything that C owns while Lua
 * may raise is in a box (userdata with __gc and __close). Every function here is for the thread that owns
 * L. */
#ifndef LKL_H
#define LKL_H

#include <lauxlib.h>
#include <lua.h>
#include "value/value.h"
#include "client/client.h"
#include "run/reconciler.h"

/* Gives any lua_State the API: pushes the module table of kubelua.core (what `require "kubelua.core"`
 * returns). */
int lkl_open(lua_State *L);
int luaopen_kubelua_core(lua_State *L);

/* The library's Lua sources, generated at build time from lua/kubelua; ends with name NULL. `compiled` is set
 * by the first state that loads the source (core.c). */
typedef struct lkl_embedded_source {
    const char *name;
    const char *text;
    size_t len;
    _Atomic(struct lkl_compiled *) compiled;
} lkl_embedded_source;
extern lkl_embedded_source lkl_embedded[];
/* Likewise from controllers/simulate: "pods", "lib.placement". */
extern lkl_embedded_source lkl_simulated[];
/* Makes require "kubelua" and "kubelua.*" find the embedded sources (our own states). */
void lkl_preload_embedded(lua_State *L);

/* --- boxes: userdata that own one C object ------------------------------------------------- */
typedef struct lkl_class {
    const char *name; /* "kubelua.client": its name in type errors */
    void (*free)(void *ptr);
    const luaL_Reg *methods; /* may be NULL */
    const luaL_Reg *meta;    /* metamethods beside __gc and __close; may be NULL */
} lkl_class;
typedef struct lkl_box {
    void *ptr;      /* NULL: empty or closed */
    size_t charged; /* bytes of ptr that are charged to the state (ceiling.h) */
    void (*free)(void *ptr);
    struct lkl_box *next, **at; /* links in the list of a script's state; at is NULL in other states */
} lkl_box;
/* Pushes an empty box with `slots` user values. Set ptr afterwards: from then on the box frees it. */
lkl_box *lkl_box_new(lua_State *L, const lkl_class *c, int slots);
/* Charges the present size of the object to the state until the box frees it. The box is on the stack. May
 * raise; the box then still owns the object. */
void lkl_box_charge(lua_State *L, lkl_box *box, size_t bytes);
/* NULL when idx is not such a box, or a closed one */
void *lkl_box_get(lua_State *L, int idx, const lkl_class *c);
void *lkl_box_check(lua_State *L, int idx, const lkl_class *c); /* raises instead */
/* The box itself, after lkl_box_check has accepted it. */
lkl_box *lkl_box_at(lua_State *L, int idx);
void lkl_box_close(lua_State *L, int idx); /* frees ptr now; further calls do nothing */
/* Pushes an empty box for code that holds a value while Lua may raise: set ptr to the reference. */
lkl_box *lkl_value_box(lua_State *L);
/* Charges its value to the state, see lkl_box_charge. */
void lkl_value_charge(lua_State *L, lkl_box *box);

/* --- values ------------------------------------------------------------------------------- */
/* Pushes a scalar as Lua scalar, null and NULL as nil, containers as a view. Takes its own references.
 * Charges the value to the state. */
void lkl_push_value(lua_State *L, const kl_value *v);
/* The same for a value that is shared anyway, such as an object of the cache, without a charge. */
void lkl_push_object(lua_State *L, const kl_value *v);
/* The value under a view, borrowed from the view; NULL when idx is not a view. */
const kl_value *lkl_view_value(lua_State *L, int idx);
/* Any Lua value as a new reference: nil -> NULL only at the top (inside tables nil cannot occur),
 * kube.null -> null, tables (sequences are arrays, an empty table is an object unless kube.array), views,
 * drafts, quantities (as strings), kube.uint64. Raises an argument error that names the path of the
 * offending part ("spec.x: a function cannot be sent"). */
const kl_value *lkl_to_value(lua_State *L, int idx, const char *what);

/* A point in time (kube.time): compares, t - t gives seconds, t + seconds gives a time, :unix(), tostring
 * is RFC 3339. */
void lkl_push_time(lua_State *L, int64_t sec, int32_t nsec);
/* A number of seconds or a duration text ("1h5m"); otherwise raises an argument error that calls it
 * `what`. */
kl_time lkl_check_duration(lua_State *L, int idx, const char *what);
/* Seconds as nanoseconds; clamped to the range of kl_time, NaN is 0. */
kl_time lkl__seconds(lua_Number s);
/* States that we own: indexing nil names the last absent field and its object; assigning below an absent
 * field of a draft creates the maps between. Without it, a field of a draft must exist before a script can
 * assign below it. */
void lkl_install_nil_index(lua_State *L);
/* Moves a state to the calling thread (debug builds assert the owner). */
void lkl_adopt(lua_State *L);

/* --- errors ------------------------------------------------------------------------------- */
/* Pushes the structured error table (code, kind, reason, message, details, retry_after, verb, resource,
 * key; tostring is a sentence). Fields may be NULL. */
void lkl_push_error(lua_State *L, const kl_err *err, const char *verb, const char *resource, const char *key);
/* The same, then raises it; finishes err first, so that it does not leak. */
int lkl_raise(lua_State *L, kl_err *err, const char *verb, const char *resource, const char *key);
bool lkl_is_error(lua_State *L, int idx); /* whether idx is such a table */

/* --- requests ----------------------------------------------------------------------------- */
/* Fills op from a table with the names of kl_op's fields (verb = "get", kind = "v1/Pod", ns, name, body = a
 * view, ...), as lua/kubelua/request.lua makes them. The table keeps all strings and the body: leave it on
 * the stack while op is in use. Raises an argument error for an unknown field. */
void lkl_op_from_table(lua_State *L, int idx, kl_op *op);

#endif
