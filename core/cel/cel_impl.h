/* cel_impl.h - what the parts of this room share: expressions, values, functions. */
#ifndef KL_CEL_CEL_IMPL_H
#define KL_CEL_CEL_IMPL_H

#include "cel/types.h"

#define KL__CEL_TEXT_MAX 100000 /* code points of an expression, as in cel-go */
#define KL__CEL_DEPTH_MAX 250
#define KL__CEL_ERRORS_MAX 100
#define KL__CEL_MEMORY_MAX ((size_t)64 << 20) /* of one evaluation */

/* Type variables and the types that they are bound to. */
typedef struct kl__cbind {
    kl__carena *a;
    const kl__ctype **bound; /* by number; NULL: free */
    size_t n, cap;
    struct kl__cundo { /* bindings that a failed assignment undoes */
        unsigned param;
        const kl__ctype *was;
    } * undo;
    size_t nundo, cundo;
} kl__cbind;
const kl__ctype *kl__cbind_fresh(kl__cbind *b);
const kl__ctype *kl__cbind_resolve(kl__cbind *b, const kl__ctype *t, bool dyn);
/* Whether from[i] is assignable to to[i], for all n; only then are type variables bound. */
bool kl__cbind_assign(kl__cbind *b, const kl__ctype *const *to, const kl__ctype *const *from, size_t n);
bool kl__cbind_general(const kl__ctype *a, const kl__ctype *b); /* a is equal or less specific */

/* ---------------------------------------------------------------- values */

typedef struct kl__cval kl__cval;
typedef struct kl__clist kl__clist;
typedef struct kl__cmap kl__cmap;

struct kl__cval {
    kl__ckind kind; /* ERROR: s is the message */
    union {
        bool b;
        int64_t i; /* INT; DURATION: nanoseconds */
        uint64_t u;
        double d;
        struct {
            const char *p;
            size_t n;
        } s; /* STRING, BYTES */
        struct {
            int64_t sec;
            int32_t ns;
        } t;
        const kl__clist *list;
        const kl__cmap *map; /* MAP, OBJECT */
        const kl__ctype *type;
        const kl__cval *opt; /* NULL: none */
        const void *o;       /* of a library */
    };
};

struct kl__clist {
    const kl_value *json; /* or: */
    const kl__cval *v;
    size_t n, cap;
    const kl__ctype *type; /* the type of json; NULL: derived from the value */
};

struct kl__cmap {
    const kl_value *json; /* or: */
    kl__cval *kv;         /* pairs */
    size_t n, cap;
    uint32_t *index; /* a hash index of the pairs, where there are many */
    size_t nindex;
    const kl__ctype *type; /* of json */
    bool lazy;             /* `variables` */
};

typedef struct kl__cev kl__cev;

kl__cval kl__cval_of_json(kl__cev *e, const kl_value *v, const kl__ctype *t);
const kl_value *kl__cval_to_json(kl__cev *e, kl__cval v); /* new reference */
kl__cval kl__cval_err(kl__cev *e, const char *fmt, ...) KL_PRINTF(2, 3);
kl__cval kl__cval_str(kl__cev *e, const char *s, size_t n); /* copied */
kl__cval kl__cval_take(kl__cev *e, kl_buf *b);              /* a string; b is freed */
size_t kl__clist_len(const kl__clist *l);
kl__cval kl__clist_at(kl__cev *e, const kl__clist *l, size_t i);
kl__clist *kl__clist_new(kl__cev *e, size_t cap);
void kl__clist_add(kl__cev *e, kl__clist *l, kl__cval v);
size_t kl__cmap_len(const kl__cmap *m);
void kl__cmap_at(kl__cev *e, const kl__cmap *m, size_t i, kl__cval *key, kl__cval *value);
bool kl__cmap_get(kl__cev *e, const kl__cmap *m, kl__cval key, kl__cval *out);
kl__cmap *kl__cmap_new(kl__cev *e, size_t cap);
bool kl__cmap_add(kl__cev *e, kl__cmap *m, kl__cval key, kl__cval value); /* false: it is there */
void kl__cmap_set(kl__cev *e, kl__cmap *m, kl__cval key, kl__cval value); /* of an existing key */
bool kl__cval_equal(kl__cev *e, kl__cval a, kl__cval b);
/* -1, 0, 1; 2: not comparable; 3: NaN. Numbers of two kinds are compared as cel-go does it, as doubles. */
int kl__cval_compare(kl__cval a, kl__cval b);
uint64_t kl__cval_size(kl__cval v); /* as costs count it */
const kl__ctype *kl__cval_type(kl__cval v);
void kl__cval_show(kl__cev *e, kl__cval v, kl_buf *out); /* in messages */
size_t kl__cel_runes(const char *s, size_t n);
/* Values that CEL does not look into: IP, CIDR, URL, FORMAT, SEMVER, QUANTITY and others */
bool kl__cel_opaque_equal(kl__cval a, kl__cval b);
void kl__cel_opaque(kl__cval v, kl_buf *out);
void kl__cel_double(double d, kl_buf *out);    /* as string(double) */
void kl__cel_time(kl__cval v, kl_buf *out);    /* RFC 3339 */
void kl__cel_seconds(int64_t ns, kl_buf *out); /* "1.5s", as string(duration) */
kl__cval kl__cel_format(kl__cev *e, const kl__cval *a, size_t n);
/* Reads a clause of a format after its "%": its letter, and the precision or -1. Returns its length. *clause
 * 0: it is invalid, and `why` has the reason. */
#define KL__CLAUSE_WHY 256
size_t kl__cel_clause(const char *s, size_t n, char *clause, int *precision, char why[KL__CLAUSE_WHY]);
/* What a clause accepts, as messages say it. */
const char *kl__cel_clause_takes(char clause);

/* The range of times: 0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z. */
#define KL__CEL_SECONDS_MIN (-62135596800)
#define KL__CEL_SECONDS_MAX 253402300799

#define KL__CBOOL(x) ((kl__cval){.kind = KL_C_BOOL, .b = (x)})
#define KL__CINT(x) ((kl__cval){.kind = KL_C_INT, .i = (x)})
#define KL__CDOUBLE(x) ((kl__cval){.kind = KL_C_DOUBLE, .d = (x)})
#define KL__CLIST(x) ((kl__cval){.kind = KL_C_LIST, .list = (x)})
#define KL__CNULL ((kl__cval){.kind = KL_C_NULL})

/* ---------------------------------------------------------------- expressions */

typedef enum kl__cnode {
    KL_E_CONST,
    KL_E_IDENT,
    KL_E_SELECT,
    KL_E_CALL,
    KL_E_LIST,
    KL_E_MAP,
    KL_E_OBJECT,
    KL_E_FOLD,
    KL_E_AND,
    KL_E_OR,
    KL_E_IF,
} kl__cnode;

typedef enum kl__cfold {
    KL_F_ALL,
    KL_F_EXISTS,
    KL_F_EXISTS_ONE,
    KL_F_LIST,  /* map, filter, transformList */
    KL_F_MAP,   /* transformMap */
    KL_F_ENTRY, /* transformMapEntry */
    KL_F_OPT,   /* optMap */
    KL_F_OPT_FLAT,
    KL_F_BIND, /* cel.bind */
} kl__cfold;

typedef struct kl__cexpr kl__cexpr;
struct kl__cexpr {
    kl__cnode node;
    uint32_t at; /* byte of the source */
    unsigned depth;
    kl__cval value;   /* CONST */
    const char *name; /* IDENT, SELECT: field, CALL: function, OBJECT: type */
    bool test;        /* SELECT: has() */
    bool opt;         /* SELECT: ?. */
    bool member;      /* CALL: arg 0 is the target */
    bool constant;    /* LIST, MAP, CONST: nothing to evaluate */
    bool global;      /* IDENT, CALL: ".x" */
    kl__cexpr **arg;  /* SELECT: operand; CALL, LIST; MAP: pairs; FOLD: range, filter, transform; IF: 3 */
    size_t n;
    bool *optional; /* LIST, MAP: entries with ? */
    kl__cfold fold;
    const char *var[2]; /* FOLD: var[1] NULL: one variable */
    int slot;           /* IDENT: >= 0 a local, < 0: variable ~slot of the environment */
    const kl__ctype *type;
    const struct kl__cfunc *const *fn; /* CALL: the candidate overloads */
    size_t nfn;
};

typedef struct kl__csource {
    kl__carena *a;
    const char *text;
    size_t n;
    struct kl__cissue {
        uint32_t at;
        char *message;
    } * issue;
    size_t nissues, cap;
    bool binds; /* cel.bind is known */
} kl__csource;
#define KL__CEL_NOWHERE UINT32_MAX /* the place of an issue with the whole text */
void kl__cel_blame(kl__csource *s, uint32_t at, const char *fmt, ...) KL_PRINTF(3, 4);
/* All issues, as cel-go shows them. */
void kl__cel_issues(kl__csource *s, kl_buf *out);

/* NULL when there are issues. */
kl__cexpr *kl__cel_parse(kl__csource *s);
/* Appends `a.b.c` to `out`; false when the expression is not a name of that form. */
bool kl__cel_dotted(const kl__cexpr *e, kl_buf *out);
bool kl__cel_expand(kl__csource *s, kl__cexpr *call); /* expands a macro in place; false: it is not one */

/* Assigns types and slots in the whole tree; adds an issue for each type that does not fit. */
void kl__cel_check(kl__csource *s, const kl_cel_env *env, kl__cexpr *e, bool *used, size_t *locals);

/* constants.c: adds an issue for each literal format that does not fit its arguments. */
void kl__cel_check_formats(kl__csource *s, const kl__cexpr *e);
/* Why a constant in the expression cannot be evaluated; the caller frees. NULL: all can. */
char *kl__cel_fold(const kl_cel_env *env, const kl__cexpr *e);
/* Whether a call is a conversion such as int(x). */
bool kl__cel_converts(const kl__cexpr *e);

/* ---------------------------------------------------------------- functions */

typedef kl__cval kl__cimpl(kl__cev *e, const kl__cval *a, size_t n);
typedef uint64_t kl__ccost(const kl__cval *a, size_t n, kl__cval result);
typedef struct kl__cfunc {
    const char *name;
    /* ".ss>b": a member function of two strings, one of them the target, that returns a bool. See funcs.c. */
    const char *sig;
    kl__cimpl *call;
    kl__ccost *cost; /* NULL: 1 */
} kl__cfunc;

/* The overloads of a name, in memory of `a`; NULL when there is none. */
const kl__cfunc **kl__cfunc_find(kl__carena *a, const char *name, size_t *count);
/* The types of a signature: sets arg (at most 4) and returns the result's type; type variables are fresh. */
const kl__ctype *kl__cfunc_types(
    const kl__cfunc *f, kl__carena *a, kl__cbind *b, const kl__ctype **arg, size_t *n, bool *member);
bool kl__cfunc_fits(const kl__cfunc *f, const kl__cval *a, size_t n, bool member);

/* One list per file of functions, ended by a NULL name. */
extern const kl__cfunc kl__cel_core[], kl__cel_conversions[], kl__cel_times[], kl__cel_strings[],
    kl__cel_collections[], kl__cel_net[], kl__cel_k8s[], kl__cel_authz[];

/* ---------------------------------------------------------------- programs and their evaluation */

struct kl_cel_env {
    kl__carena a;
    struct kl__cvar {
        const char *name;
        const kl__ctype *type;
    } * var;
    size_t nvars;
    struct kl__cdef {
        const char *name;
        const kl_cel *program;
        size_t levels; /* its nesting, with the variables that it uses */
    } * def;
    kl__cfield *field; /* their types */
    size_t ndefs, cdefs;
    int defs;   /* the place of `variables`, or -1 */
    bool binds; /* kl_cel_env_bind */
};

struct kl_cel {
    kl__carena a;
    const kl_cel_env *env;
    kl__cexpr *e;
    bool *used; /* by variable */
    size_t nvars, locals;
};

struct kl__cev {
    kl__carena *a;
    const kl_cel_env *env;
    kl_cel_run *run;
    uint64_t cost;
    bool over;         /* the budget or the memory is used up: everything fails from now on */
    size_t work;       /* steps without a CEL cost; they are limited, too */
    struct kl__cheld { /* objects to free at the end */
        struct kl_quantity *quantity;
        struct kl__cheld *next;
    } * held;
    struct { /* the last compiled regex, because loops reuse it */
        struct kl_regex *re;
        char *pattern;
        size_t n;
    } regex;
    struct { /* the last zone used */
        struct kl_zone *z;
        char *name;
    } zone;
    kl__cval *local;
    kl__cval *defined; /* values of `variables` */
    char *is;          /* for each: 0 not evaluated, 1 under way, 2 evaluated */
};
kl__cval kl__cel_run(kl__cev *e, const kl__cexpr *x);
void kl__cev_charge(kl__cev *e, uint64_t cost);
void kl__cev_release(kl__cev *e);
bool kl__cev_works(kl__cev *e); /* counts a step of `work`; false: the limit is reached */

#endif
