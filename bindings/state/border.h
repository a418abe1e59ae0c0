/* border.h - internals shared by the binding files.
 *
 * Every userdata of ours begins with a tag, the address of a static object: so a C function recognises its
 * kind without the registry. Metatables are hidden behind __metatable, so scripts cannot call a finaliser. */
#ifndef LKL_BORDER_H
#define LKL_BORDER_H

#include "state/lkl.h"
#include "cache/informer.h"
#include "value/draft.h"
#include "value/path.h"

/* A recently used path of a view: Lua's text (by address), and the userdata of the box with the compiled
 * path. */
typedef struct lkl__recent {
    const char *text;
    const void *path;
} lkl__recent;
#define LKL__RECENT 32

/* The position of a loop over an object: its present key, Lua's text (by address), is the one before
 * `next`. */
typedef struct lkl__loop {
    const void *view;
    const char *key;
    size_t next;
} lkl__loop;
#define LKL__LOOPS 8

/* A cache of recently made things: a Lua table has the things, these words identify them. Small enough to be
 * searched at each collection; a reconcile reads the same few places again and again. */
#define LKL__SETS 32
#define LKL__WAYS 4
typedef struct lkl__slots {
    struct {
        const void *a;
        uintptr_t b;
    } word[LKL__SETS * LKL__WAYS];
    uint8_t next[LKL__SETS]; /* the way that is replaced next */
} lkl__slots;

/* The position of a field when it was last read: by its name, Lua's text (by address; a table keeps it), and
 * by the place of its object, since objects below different fields have different keys. A cached field is
 * found without comparing any key, which matters when the processor's caches are cold. */
typedef struct lkl__field {
    const char *name;
    uintptr_t below;
    kl_lookup lookup;
} lkl__field;
#define LKL__FIELDS 64

/* One per Lua state, in the registry. */
typedef struct lkl_border {
    const void *tag;
    uint64_t owner; /* the thread that may use the state; checked in debug builds */
    /* a script's state: its values have bounds, and its budget is checked */
    bool counted;
    bool nil_index; /* indexing nil is ours: absent reads are remembered */
    /* a controller that keeps only some fields of some kinds, or NULL */
    const struct kl_controller_spec *cuts;
    lkl__recent recent[LKL__RECENT];
    lkl__slots seen, texts;
    lkl__loop loops[LKL__LOOPS];
    lkl__field fields[LKL__FIELDS];
    bool closing; /* the state is closing: nothing is cached any more */
} lkl_border;
/* User values of the border. SEEN: the views of `seen`, weakly. SPARE: an empty root view, or nil. */
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

lkl_border *lkl__border(lua_State *L);             /* made on first use */
lkl_border *lkl__border_push(lua_State *L);        /* the same, and its userdata on the stack */
lkl_border *lkl__border_at(lua_State *L, int idx); /* the one at idx, which may be an upvalue */

/* The userdata at idx if it begins with `tag` and has at least `size` bytes, or NULL. */
void *lkl__tagged(lua_State *L, int idx, const void *tag, size_t size);
/* Makes the keys ("k") or the values ("v") of the table on the top of the stack weak. */
void lkl__weaken(lua_State *L, const char *mode);
/* Pushes the metatable stored under `key`; true when it is new and must be filled, then stored: an error
 * during filling must not leave an incomplete one. __name and __metatable are set. */
bool lkl__metatable(lua_State *L, const void *key, const char *name);
void lkl__keep_metatable(lua_State *L, const void *key);
bool lkl__push_scalar(lua_State *L, const kl_value *v); /* false, and nothing pushed, for containers */

/* --- views -------------------------------------------------------------------------------- */
/* For a reference from C while Lua may raise: prepare first (may raise), get the reference, then push it
 * (cannot raise). `taken` is a container, or NULL for nil. */
void lkl__view_prepare(lua_State *L);
void lkl__push_taken(lua_State *L, const kl_value *taken);
/* Afterwards, with the pushed value on top, unless it is shared anyway: charges its memory to the state. May
 * raise. */
void lkl__view_charge(lua_State *L);

/* The head of every view, and of every holder of references for views. */
typedef struct lkl__view {
    const void *tag;
    /* an owned reference: NULL while empty and after finalisation; otherwise borrowed */
    const kl_value *v;
    const struct lkl__view *root; /* the holder of the reference, itself for a root; its memory outlives every
                                     view below, whatever the collector's order */
} lkl__view;
/* Pushes a view of `object`; the keeper at keeper_idx, which begins with `head`, has it in place i. The
 * metatable of lkl__push_view_metatable is at mt_idx. Both indexes are absolute. */
void lkl__push_kept(
    lua_State *L, const kl_value *object, const lkl__view *head, int keeper_idx, size_t i, int mt_idx);
void lkl__push_view_metatable(lua_State *L);

/* --- lists of objects --------------------------------------------------------------------- */
/* Both take the references out of o, which may be boxed. Pushes a kubelua.list; or a function that gives
 * one object after the other. */
void lkl__push_list(lua_State *L, kl_objects *o);
void lkl__push_each(lua_State *L, kl_objects *o);
const kl_value *lkl__list_value(lua_State *L, int idx); /* a new reference, or NULL when idx is not a list */
/* its i-th object, from 0, borrowed; NULL when idx is not a list, was changed, or has no such object */
const kl_value *lkl__list_item(lua_State *L, int idx, size_t i);
/* for a list that a script changed, pushes its table; otherwise nothing */
bool lkl__list_own(lua_State *L, int idx);
/* {{index, operator, value ...} ...} on top of the stack: the terms lie in a userdata that is pushed; the
 * texts stay the table's. */
const kl_index_term *lkl__read_terms(lua_State *L, size_t *n_terms);

/* --- null, uint64, marked tables ---------------------------------------------------------- */
void lkl__push_null(lua_State *L);
bool lkl__is_null(lua_State *L, int idx);
/* A value that a script may pass on but not read (secret.c). Pushes one of n bytes, copied unless text is
 * NULL; returns them, to be filled. */
char *lkl__push_secret(lua_State *L, const char *text, size_t n);
/* Borrowed from the secret at idx; NULL: it is not a secret. */
const char *lkl__secret_text(lua_State *L, int idx, size_t *n);
void lkl__push_uint64(lua_State *L, uint64_t u);
bool lkl__uint64(lua_State *L, int idx, uint64_t *out);
/* LKL_FOREIGN: it has a foreign metatable. */
typedef enum lkl_mark { LKL_PLAIN, LKL_ARRAY, LKL_OBJECT, LKL_FOREIGN } lkl_mark;
void lkl__mark(lua_State *L, int idx, lkl_mark mark);
lkl_mark lkl__marked(lua_State *L, int idx);

/* The bounds of one value from a script (docs/security.md, Bounds): parts, shared ones each time they are
 * walked, and bytes of text. A hundred times the largest object that a server accepts; a C function walks
 * such a value in some ten milliseconds. */
#define LKL_NODES_MAX 1000000
#define LKL_BYTES_MAX ((size_t)64 << 20)
/* Steps of the budget (lkl_budget_spend) for one part, and the bytes of text that cost as much. */
#define LKL_NODE_STEPS 16
#define LKL_BYTES_EACH 64
kl_room lkl__room(void);
/* Raises when v, which C combined from several values, each within bounds, exceeds them; `what` is its name.
 * So no view does. */
void lkl__check_made(lua_State *L, const kl_value *v, const char *what);

/* lkl_to_value into a value box that is on the stack already, which is charged; returns the box's pointer. */
const kl_value *lkl__to_box(lua_State *L, lkl_box *box, int idx, const char *what);

/* The value at idx: borrowed from a view, or what lkl_to_value makes, kept by the box that is pushed (nil
 * for a view). */
const kl_value *lkl__value_at(lua_State *L, int idx, const char *what);

/* --- JSON --------------------------------------------------------------------------------- */
void lkl__push_json(lua_State *L, const kl_value *v, bool pretty); /* pushes the text */
/* Pushes a text that C made and frees it, also when there is no memory for the Lua string. */
void lkl__push_text(lua_State *L, char *taken);
/* Pushes the message of err, which is finished even if there is no memory for the Lua string. */
void lkl__push_message(lua_State *L, kl_err *err);
/* Raises that message, with the script's line in front. */
int lkl__fail(lua_State *L, kl_err *err);
/* A function's end: nothing, or that. */
int lkl__given(lua_State *L, kl_status st, kl_err *err);
/* Raises an argument error with the message of err, which is finished first. */
int lkl__argerror(lua_State *L, int arg, kl_err *err);

/* --- drafts ------------------------------------------------------------------------------- */
bool lkl__is_draft(lua_State *L, int idx);
bool lkl__draft_same(lua_State *L, int a, int b); /* the same place of the same draft */
bool lkl__draft_kin(lua_State *L, int a, int b);  /* any two places of the same draft */
/* a new reference, or NULL when idx is not a draft */
const kl_value *lkl__draft_value(lua_State *L, int idx);
/* Assigns the value at value_idx; the table at chain_idx is {draft, key, key...}. Creates what is missing. */
void lkl__draft_assign(lua_State *L, int chain_idx, int value_idx);
void lkl__draft_describe(lua_State *L, int idx, int key_idx); /* pushes "spec.x of Pod default/a" */
int lkl__eq(lua_State *L);                                    /* __eq of views and drafts: by value */

/* --- nil ---------------------------------------------------------------------------------- */
/* the view or draft and the key that was not there */
void lkl__absent(lua_State *L, int in_idx, int key_idx);
/* the same, absolute indexes; nil_index is known */
void lkl__absent_at(lua_State *L, int border_idx, int in_idx, int key_idx);
/* the last absent read was of something else, which no message names */
void lkl__absent_forget(lua_State *L);
void lkl__draft_absent(lua_State *L, int draft_idx, int key_idx); /* the same, and begins a chain */
void lkl__forget_chains(lua_State *L);
/* table.insert(draft.a.b, value) of an absent list, in the C function that a script called: creates the list.
 * False: its first argument is nil for another reason. */
bool lkl__absent_insert(lua_State *L, int value_idx);
void lkl__statement_over(lua_State *L); /* forgets those of the function that assigns */

/* --- objects of which only some fields are kept (lcut.c) ---------------------------------- */
/* Raises when the key may be absent only because it was cut. */
void lkl__cut_check(lua_State *L, const struct kl_controller_spec *spec, int view_idx, int key_idx);
void lkl__open_cut(lua_State *L); /* adds its part to core.run */

/* --- text --------------------------------------------------------------------------------- */
/* luaL_checkstring and luaL_optstring for texts that C reads to their first NUL: one with a NUL is refused,
 * since it would be read as another text. */
const char *lkl__text(lua_State *L, int arg);
/* luaL_tolstring without addresses: pushes the text of any value; may run a script's __tostring. */
const char *lkl__shown(lua_State *L, int idx, size_t *n);
const char *lkl__opt_text(lua_State *L, int arg, const char *dflt);
bool lkl__has_nul(lua_State *L, int idx); /* of a string */
/* Adds a step to a path text in b: ".name", "[3]" or "[a.b/c]". */
void lkl__path_step(lua_State *L, luaL_Buffer *b, int key_idx, bool first);
/* pushes "Pod default/a", or "the value" */
void lkl__describe_value(lua_State *L, const kl_value *root);
/* pushes "spec.x of Pod default/a"; key_idx 0: the view itself */
void lkl__view_describe(lua_State *L, int view_idx, int key_idx);
/* Pushes the keys from the view up to its root, whose value it returns; a path is {text}. */
const kl_value *lkl__view_keys(lua_State *L, int view_idx);
/* The same from a list of keys, the innermost first. */
void lkl__describe_keys(lua_State *L, const kl_value *root, int keys_idx, int key_idx);
/* compiled, cached per state; raises. One more on the stack: the box that keeps it */
kl_path *lkl__path(lua_State *L, int idx);

/* Pushes "file:line: " of the innermost caller that is not the library's own Lua. */
void lkl__where(lua_State *L);
void lkl__where_from(lua_State *L, int level); /* not above that level */
/* The calls that led here, without those inside the library. The caller frees. */
char *lkl__traceback(lua_State *L);
/* the same as "file:line", without touching Lua's memory; false: nowhere */
bool lkl__place(lua_State *L, int level, char *out, size_t size);
/* luaL_error at that place. */
int lkl__error(lua_State *L, const char *fmt, ...);

/* The form of quantities, times and selectors in an object: pushes a string and returns true, or pushes
 * nothing. */
bool lkl__quantity_text(lua_State *L, int idx);
/* kube.to_milli, for calls from C. */
int lkl__to_milli(lua_State *L);
bool lkl__time_text(lua_State *L, int idx);

/* --- boxes without a class --------------------------------------------------------------- */
/* An empty box that frees its ptr with `free`; `within` its userdata in a state that is not a script's and
 * has no list of boxes. Its holder releases it in a finaliser; a box whose finaliser was not called is freed
 * with the script's state. */
lkl_box *lkl__box_hold(lua_State *L, lkl_box *within, void (*free)(void *ptr));
/* The ptr of such a userdata's box; NULL: it is closed. */
void *lkl__box_of(const void *userdata);
void lkl__box_empty(lua_State *L, lkl_box *box);   /* frees its ptr now */
void lkl__box_release(lua_State *L, lkl_box *box); /* and the box, too */
/* After lua_close: those that are left. */
struct lkl_ceiling;
void lkl__boxes_free(struct lkl_ceiling *c);

/* --- kubelua.core ------------------------------------------------------------------------- */
/* the table of it that scripts' states have (core.c) */
void lkl__push_script_core(lua_State *L);
/* the compiled chunk of a module of the library; false, nothing pushed: there is none */
bool lkl__push_embedded(lua_State *L, const char *name);

/* The parts: each adds its functions to the table on top of the stack. */
void lkl__open_scalars(lua_State *L);
void lkl__open_values(lua_State *L);
void lkl__open_dig(lua_State *L);
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
/* The parts that scripts' states do not have. */
void lkl__open_client(lua_State *L);
void lkl__open_informer(lua_State *L);
void lkl__open_host(lua_State *L);
void lkl__open_ttl(lua_State *L);
void lkl__open_cert(lua_State *L);
void lkl__open_patched(lua_State *L);
void lkl__open_stage(lua_State *L);
void lkl__open_sim(lua_State *L);
void lkl__open_bounds(lua_State *L);

#endif
