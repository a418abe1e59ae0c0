/* lkl.h - Lua meets libkubelua: how values cross the border, and what one binding file offers to the
 * others.
 *
 * At the border: check, box, call, push. A raised Lua error must find nothing to leak: whatever C owns
 * while Lua may raise stands in a box (userdata with __gc and __close). Every function here is for the
 * thread that owns L. */
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

/* --- boxes: userdata that own one C thing ------------------------------------------------- */
typedef struct lkl_class {
    const char *name; /* "kubelua.client": what type errors call it */
    void (*free)(void *ptr);
    const luaL_Reg *methods; /* may be NULL */
    const luaL_Reg *meta;    /* metamethods beside __gc and __close; may be NULL */
} lkl_class;
typedef struct lkl_box {
    void *ptr;      /* NULL: empty or closed */
    size_t charged; /* bytes of ptr that count as the state's (ceiling.h) */
    void (*free)(void *ptr);
    struct lkl_box *next, **at; /* among those of a script's state; at: NULL elsewhere */
} lkl_box;
/* Pushes an empty box with `slots` user values. Set ptr afterwards: from then on the box frees it. */
lkl_box *lkl_box_new(lua_State *L, const lkl_class *c, int slots);
/* The thing takes so many bytes now: they count towards what the state may hold until the box frees it.
 * The box is on the stack. May raise, and then the box has the thing, too. */
void lkl_box_charge(lua_State *L, lkl_box *box, size_t bytes);
/* NULL when idx is no such box, or a closed one */
void *lkl_box_get(lua_State *L, int idx, const lkl_class *c);
void *lkl_box_check(lua_State *L, int idx, const lkl_class *c); /* raises instead */
/* The box itself, of what lkl_box_check has let pass. */
lkl_box *lkl_box_at(lua_State *L, int idx);
void lkl_box_close(lua_State *L, int idx); /* frees now; once is enough */
/* Pushes an empty box for one reference, for where C holds a value while Lua may raise: set ptr when there
 * is one. */
lkl_box *lkl_value_box(lua_State *L);
/* What its value takes counts as the state's, as lkl_box_charge says it. */
void lkl_value_charge(lua_State *L, lkl_box *box);

/* --- values ------------------------------------------------------------------------------- */
/* Pushes a scalar as Lua scalar, null and NULL as nil, containers as a view. Takes its own references.
 * What it takes counts as the state's. */
void lkl_push_value(lua_State *L, const kl_value *v);
/* The same for what is shared with others who hold it anyway, such as objects of the cache: it counts
 * nowhere. */
void lkl_push_object(lua_State *L, const kl_value *v);
/* The value under a view, borrowed from the view; NULL when idx is no view. */
const kl_value *lkl_view_value(lua_State *L, int idx);
/* Any Lua value as a new reference: nil -> NULL only at the top (inside tables nil cannot occur),
 * kube.null -> null, tables (sequences are arrays, an empty table is an object unless kube.array), views,
 * drafts, quantities (as strings), kube.uint64. Raises an argument error that names the path of the
 * offending part ("spec.x: a function cannot be sent"). */
const kl_value *lkl_to_value(lua_State *L, int idx, const char *what);

/* A point in time (kube.time): compares, t - t gives seconds, t + seconds gives a time, :unix(), tostring
 * is RFC 3339. */
void lkl_push_time(lua_State *L, int64_t sec, int32_t nsec);
/* Seconds of a number, a duration text ("1h5m") or raises an argument error that calls it `what`. */
kl_time lkl_check_duration(lua_State *L, int idx, const char *what);
/* Seconds as nanoseconds; what no kl_time holds is its end, and NaN is 0. */
kl_time lkl__seconds(lua_Number s);
/* States that we own: indexing nil names the last absent field and its object; assigning below an absent
 * field of a draft creates the maps between. Without it a draft's field must exist before something is
 * written below. */
void lkl_install_nil_index(lua_State *L);
/* A state made on one thread and used on another from here on (debug builds assert the owner). */
void lkl_adopt(lua_State *L);

/* --- errors ------------------------------------------------------------------------------- */
/* Pushes the structured error table (code, kind, reason, message, details, retry_after, verb, resource,
 * key; tostring is a sentence). Fields may be NULL. */
void lkl_push_error(lua_State *L, const kl_err *err, const char *verb, const char *resource, const char *key);
/* The same and lua_error; finishes err first so that nothing leaks. */
int lkl_raise(lua_State *L, kl_err *err, const char *verb, const char *resource, const char *key);
bool lkl_is_error(lua_State *L, int idx); /* such a table */

/* --- requests ----------------------------------------------------------------------------- */
/* Fills op from a table with the names of kl_op's fields (verb = "get", kind = "v1/Pod", ns, name, body =
 * a view, ...), as lua/kubelua/request.lua makes them. All strings and the body stay the table's: keep it
 * on the stack while op is in use. Raises an argument error for an unknown field. */
void lkl_op_from_table(lua_State *L, int idx, kl_op *op);

#endif
