/* border.h - internals that the files of the bindings share.
 *
 * Every userdata of kubelua begins with a tag, the address of a static object. The tag tells a C function the
 * kind of the userdata, without the registry. __metatable hides all metatables: no script can call a
 * finaliser. */
#ifndef LKL_BORDER_H
#define LKL_BORDER_H

#include "state/lkl.h"
#include "cache/informer.h"
#include "value/draft.h"
#include "value/path.h"

/* A recently used path of a view: the address of Lua's text, and the userdata that holds the compiled
 * path. */
typedef struct lkl__recent {
    const char *text;
    const void *path;
} lkl__recent;
#define LKL__RECENT 128

/* The position of a loop over an object. `key` is the address of Lua's text of the current key; `next` is the
 * position of the following one. */
typedef struct lkl__loop {
    const void *view;
    const char *key;
    size_t next;
} lkl__loop;
#define LKL__LOOPS 8

/* The keys of a cache of recently made values, which are in a Lua table. The cache is small, because each
 * collection visits the whole table; a small one suffices, because a reconcile reads the same few places
 * repeatedly. */
#define LKL__SETS 32
#define LKL__WAYS 4
typedef struct lkl__slots {
    struct {
        const void *a;
        uintptr_t b;
    } word[LKL__SETS * LKL__WAYS];
    uint8_t next[LKL__SETS]; /* modulo LKL__WAYS: the way that is replaced next */
} lkl__slots;

/* The position at which a field was last found. The entry is for a name (the address of Lua's text, which a
 * table keeps alive) below one field, because objects below different fields have different keys. A read
 * through it compares no other keys, which saves misses of the processor's caches. */
typedef struct lkl__field {
    const char *name;
    uintptr_t below;
    kl_lookup lookup;
} lkl__field;
#define LKL__FIELD_BITS 7
#define LKL__FIELDS (1 << LKL__FIELD_BITS)

/* The border of a Lua state: there is one, in the registry. */
typedef struct lkl_border {
    const void *tag;
    uint64_t owner; /* the thread that may use the state; checked in debug builds */
    /* the state is a script's: its values have bounds, and its work costs budget */
    bool counted;
    bool nil_index; /* nil has our metatable (nil.c): absent reads are recorded */
    /* the state's controller, if it keeps only some fields of some kinds; or NULL */
    const struct kl_controller_spec *cuts;
    lkl__recent recent[LKL__RECENT];
    lkl__slots seen, texts;
    lkl__loop loops[LKL__LOOPS];
    lkl__field fields[LKL__FIELDS];
    bool closing; /* the state is closing: nothing is cached any more */
} lkl_border;
/* User values of the border. SEEN: the views of `seen`, in a weak table. SPARE: an empty root view, or
 * nil. */
enum {
    BORDER_ABSENT_IN = 1,
    BORDER_ABSENT_KEY,
    BORDER_CHAINS,
    BORDER_NULL,
    BORDER_PATHS,
    BORDER_SEEN,
    BORDER_SPARE,
    BORDER_SLOTS = BORDER_SPARE
};

lkl_border *lkl__border(lua_State *L);             /* the first call makes it */
lkl_border *lkl__border_push(lua_State *L);        /* the same, and pushes its userdata */
lkl_border *lkl__border_at(lua_State *L, int idx); /* the border at idx, often an upvalue */

/* The userdata at idx if it begins with `tag` and has at least `size` bytes, or NULL. */
void *lkl__tagged(lua_State *L, int idx, const void *tag, size_t size);
/* Makes the keys ("k") or the values ("v") of the table on the top of the stack weak. */
void lkl__weaken(lua_State *L, const char *mode);
/* Pushes the metatable that the registry has under `key`. True: it is new, with only __name and __metatable;
 * fill it, then store it with lkl__keep_metatable. An error in between leaves no incomplete metatable. */
bool lkl__metatable(lua_State *L, const void *key, const char *name);
void lkl__keep_metatable(lua_State *L, const void *key);
bool lkl__push_scalar(lua_State *L, const kl_value *v); /* false, and nothing pushed, for containers */

/* --- views -------------------------------------------------------------------------------- */
/* Pushes a reference of C without a leak when Lua raises: prepare (may raise), get the reference, then push
 * it (cannot raise). `taken` is a container, or NULL for nil. */
void lkl__view_prepare(lua_State *L);
void lkl__push_taken(lua_State *L, const kl_value *taken);
/* Charges the memory of the value on top, which was pushed as above, to the state. Not for values that a
 * cache shares. May raise. */
void lkl__view_charge(lua_State *L);

/* The head of every view, and of every userdata that holds references for views. */
typedef struct lkl__view {
    const void *tag;
    /* in a root, the value whose reference it owns: NULL while empty and after finalisation; below, borrowed
     */
    const kl_value *v;
    const struct lkl__view *root; /* the owner of the reference; a root points to itself. Its memory outlives
                                     every view below it, in whatever order Lua collects them */
} lkl__view;
/* Pushes a view of `object`, which the keeper at keeper_idx has at place i; the keeper begins with `head`.
 * The metatable of lkl__push_view_metatable is at mt_idx. Both indexes are absolute. */
void lkl__push_kept(
    lua_State *L, const kl_value *object, const lkl__view *head, int keeper_idx, size_t i, int mt_idx);
void lkl__push_view_metatable(lua_State *L);

/* --- lists of objects --------------------------------------------------------------------- */
/* Push a kubelua.list, or a function that returns one object after the other. Both take the references out of
 * o, which may be in a box. */
void lkl__push_list(lua_State *L, kl_objects *o);
void lkl__push_each(lua_State *L, kl_objects *o);
/* A new reference to the list at idx as a value. NULL: no list is there, or a script changed it. */
const kl_value *lkl__list_value(lua_State *L, int idx);
/* Borrows the object at place i, from 0, of the list at idx. NULL: no list is there, a script changed it, or
 * it has fewer objects. */
const kl_value *lkl__list_item(lua_State *L, int idx, size_t i);
/* Pushes the table of a list that a script changed. False, and nothing pushed, for any other value. */
bool lkl__list_own(lua_State *L, int idx);
/* Reads {{index, operator, value ...} ...} from the top of the stack. Pushes a userdata with the terms, whose
 * texts belong to the table. */
const kl_index_term *lkl__read_terms(lua_State *L, size_t *n_terms);

/* --- null, uint64, marked tables ---------------------------------------------------------- */
void lkl__push_null(lua_State *L);
bool lkl__is_null(lua_State *L, int idx);
/* A secret is a value that a script may pass on but not read (secret.c). Pushes one of n bytes and returns
 * them: a copy of `text`, or, when that is NULL, bytes for the caller to fill. */
char *lkl__push_secret(lua_State *L, const char *text, size_t n);
/* Borrows the bytes of the secret at idx. NULL: no secret is there. */
const char *lkl__secret_text(lua_State *L, int idx, size_t *n);
void lkl__push_uint64(lua_State *L, uint64_t u);
bool lkl__uint64(lua_State *L, int idx, uint64_t *out);
/* What the metatable of a table marks it as. LKL_FOREIGN: the metatable is not ours. */
typedef enum lkl_mark { LKL_PLAIN, LKL_ARRAY, LKL_OBJECT, LKL_FOREIGN } lkl_mark;
void lkl__mark(lua_State *L, int idx, lkl_mark mark);
lkl_mark lkl__marked(lua_State *L, int idx);

/* The bounds of one value from a script (docs/security.md, Bounds): its parts, counting a shared part each
 * time that it occurs, and its bytes of text. A hundred times the largest object that a server accepts; a C
 * function walks such a value in about ten milliseconds. */
#define LKL_NODES_MAX 1000000
#define LKL_BYTES_MAX ((size_t)64 << 20)
/* Steps of the budget (lkl_budget_spend) for one part, and the bytes of text that cost as much. */
#define LKL_NODE_STEPS 16
#define LKL_BYTES_EACH 64
kl_room lkl__room(void);
/* Raises when v exceeds the bounds, so that no view does. C may have combined v from values within the
 * bounds. `what` names v in the message. */
void lkl__check_made(lua_State *L, const kl_value *v, const char *what);

/* Puts the result of lkl_to_value into `box`, a value box on the stack, and charges the box; returns the
 * value. */
const kl_value *lkl__to_box(lua_State *L, lkl_box *box, int idx, const char *what);

/* The value at idx: borrowed from a view (and pushes nil), or the result of lkl_to_value, owned by the box
 * that is pushed. */
const kl_value *lkl__value_at(lua_State *L, int idx, const char *what);

/* --- JSON --------------------------------------------------------------------------------- */
void lkl__push_json(lua_State *L, const kl_value *v, bool pretty); /* pushes the text */
/* Pushes `taken` as a Lua string and frees it, even if Lua has no memory for the string. */
void lkl__push_text(lua_State *L, char *taken);
/* Pushes the message of err and finishes err, even if Lua has no memory for the string. */
void lkl__push_message(lua_State *L, kl_err *err);
/* Raises that message, with the script's line in front. */
int lkl__fail(lua_State *L, kl_err *err);
/* The end of a C function without results: returns 0, or raises like lkl__fail when st is a failure. */
int lkl__given(lua_State *L, kl_status st, kl_err *err);
/* Raises an argument error with the message of err, after finishing err. */
int lkl__argerror(lua_State *L, int arg, kl_err *err);

/* --- drafts ------------------------------------------------------------------------------- */
bool lkl__is_draft(lua_State *L, int idx);
bool lkl__draft_same(lua_State *L, int a, int b); /* the same place of the same draft */
bool lkl__draft_kin(lua_State *L, int a, int b);  /* any two places of the same draft */
/* A new reference to the value of the draft at idx. NULL: no draft is there. */
const kl_value *lkl__draft_value(lua_State *L, int idx);
/* Assigns the value at value_idx to the place at chain_idx, {draft, key, key...}; creates missing objects. */
void lkl__draft_assign(lua_State *L, int chain_idx, int value_idx);
void lkl__draft_describe(lua_State *L, int idx, int key_idx); /* pushes "spec.x of Pod default/a" */
int lkl__eq(lua_State *L);                                    /* __eq of views and drafts: by value */

/* --- nil ---------------------------------------------------------------------------------- */
/* Records that the view or draft at in_idx has no such key. */
void lkl__absent(lua_State *L, int in_idx, int key_idx);
/* The same, for callers that have the border on the stack and checked nil_index. Absolute indexes. */
void lkl__absent_at(lua_State *L, int border_idx, int in_idx, int key_idx);
/* Forgets the last absent read, so that no message names it. */
void lkl__absent_forget(lua_State *L);
void lkl__draft_absent(lua_State *L, int draft_idx, int key_idx); /* begins a chain, too (nil.c) */
void lkl__forget_chains(lua_State *L);
/* For table.insert(draft.a.b, value) with an absent list: creates the list. False: the first argument is nil
 * for another reason. */
bool lkl__absent_insert(lua_State *L, int value_idx);
void lkl__statement_over(lua_State *L); /* forgets the chains of the assigning function */

/* --- objects of which only some fields are kept (lcut.c) ---------------------------------- */
/* Raises when the key may be absent only because the cache does not keep it. */
void lkl__cut_check(lua_State *L, const struct kl_controller_spec *spec, int view_idx, int key_idx);
void lkl__open_cut(lua_State *L); /* adds its functions to core.run */

/* --- text --------------------------------------------------------------------------------- */
/* luaL_checkstring and luaL_optstring for C functions that read up to the first NUL: both raise for a text
 * with a NUL, which C would read as another text. */
const char *lkl__text(lua_State *L, int arg);
/* luaL_tolstring without addresses: pushes the text of any value; may run a script's __tostring. */
const char *lkl__shown(lua_State *L, int idx, size_t *n);
const char *lkl__opt_text(lua_State *L, int arg, const char *dflt); /* see lkl__text */
bool lkl__has_nul(lua_State *L, int idx);                           /* of a string */
/* Appends a step to the text of a path in b: ".name" ("name" when it is the first), "[3]" or "[a.b/c]". */
void lkl__path_step(lua_State *L, luaL_Buffer *b, int key_idx, bool first);
/* Pushes "Pod default/a", or "the value". */
void lkl__describe_value(lua_State *L, const kl_value *root);
/* Pushes "spec.x of Pod default/a", the place of the key in the view; key_idx 0: of the view itself. */
void lkl__view_describe(lua_State *L, int view_idx, int key_idx);
/* Pushes a table of the keys from the view up to its root, the innermost first, a path as {text}. Returns the
 * value of the root. */
const kl_value *lkl__view_keys(lua_State *L, int view_idx);
/* The same text as lkl__view_describe, from the table of lkl__view_keys. */
void lkl__describe_keys(lua_State *L, const kl_value *root, int keys_idx, int key_idx);
/* The compiled path at idx, from the state's cache. Raises when it is malformed. Pushes the box that keeps
 * it. */
kl_path *lkl__path(lua_State *L, int idx);

/* Pushes "file:line: " of the innermost caller outside the library's own Lua, or "". */
void lkl__where(lua_State *L);
void lkl__where_from(lua_State *L, int level); /* the search begins at that level */
/* The traceback, without the calls inside the library. The caller frees. */
char *lkl__traceback(lua_State *L);
/* Writes the caller of lkl__where as "file:line" to `out`, without Lua's memory. False: there is none. */
bool lkl__place(lua_State *L, int level, char *out, size_t size);
/* luaL_error, with the place of lkl__where in front. */
int lkl__error(lua_State *L, const char *fmt, ...);

/* For a quantity or a time at idx: pushes its text in an object and returns true. False, and nothing pushed,
 * for any other value. */
bool lkl__quantity_text(lua_State *L, int idx);
bool lkl__time_text(lua_State *L, int idx);
/* kube.to_milli, for calls from C. */
int lkl__to_milli(lua_State *L);

/* --- boxes without a class --------------------------------------------------------------- */
/* An empty box that frees its ptr with `free`. In a script's state the box is on a list, and in other states
 * it is *within, a part of its userdata. The userdata releases it in a finaliser; a box whose finaliser never
 * ran is freed with the script's state. */
lkl_box *lkl__box_hold(lua_State *L, lkl_box *within, void (*free)(void *ptr));
/* The ptr of the box of a userdata that lkl_box_new made; NULL: it is closed. */
void *lkl__box_of(const void *userdata);
void lkl__box_empty(lua_State *L, lkl_box *box);   /* frees its ptr now */
void lkl__box_release(lua_State *L, lkl_box *box); /* the same, and ends the box */
/* Frees the boxes that are left after lua_close. */
struct lkl_ceiling;
void lkl__boxes_free(struct lkl_ceiling *c);

/* --- kubelua.core ------------------------------------------------------------------------- */
/* Pushes the kubelua.core of a script's state (core.c). */
void lkl__push_script_core(lua_State *L);
/* Pushes the compiled chunk of a module of the library. False, and nothing pushed: there is none. */
bool lkl__push_embedded(lua_State *L, const char *name);

/* Each adds a part of kubelua.core to the table on top of the stack. */
void lkl__open_scalars(lua_State *L);
void lkl__open_values(lua_State *L);
void lkl__open_dig(lua_State *L);
void lkl__open_tally(lua_State *L);
void lkl__open_codec(lua_State *L);
void lkl__open_visible(lua_State *L);
void lkl__open_base64(lua_State *L);
void lkl__open_convert(lua_State *L);
void lkl__open_draft(lua_State *L);
void lkl__open_nil(lua_State *L);
void lkl__open_error(lua_State *L);
void lkl__open_quantity(lua_State *L);
void lkl__open_time(lua_State *L);
void lkl__open_clock(lua_State *L);
void lkl__open_selector(lua_State *L);
void lkl__open_patch(lua_State *L);
void lkl__open_op(lua_State *L);
void lkl__open_suggest(lua_State *L);
void lkl__open_kinds(lua_State *L);
void lkl__open_http(lua_State *L);
void lkl__open_web(lua_State *L);
void lkl__open_bell(lua_State *L);
void lkl__open_manager(lua_State *L);
void lkl__open_secret(lua_State *L);
/* Pushes the discovery entry of a resource, as a table. */
void lkl__push_resource(lua_State *L, const kl_resource *r);
/* The parts that the states of scripts lack. */
void lkl__open_client(lua_State *L);
void lkl__open_informer(lua_State *L);
void lkl__open_host(lua_State *L);
void lkl__open_ttl(lua_State *L);
void lkl__open_cert(lua_State *L);
void lkl__open_patched(lua_State *L);
void lkl__open_stage(lua_State *L);
void lkl__open_sim(lua_State *L);
void lkl__open_samples(lua_State *L);
void lkl__open_nodes(lua_State *L);
void lkl__open_gpus(lua_State *L);
void lkl__open_bounds(lua_State *L);

#endif
