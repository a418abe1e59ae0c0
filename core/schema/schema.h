/* schema.h - the fields of an object: types, merge rules, defaults. One form for built-in kinds (from text,
 * see builtin.h) and for custom resources (from the CRD's structural schema).
 *
 * A kl__types owns its nodes, which are immutable and may be recursive (JSONSchemaProps is). */
#ifndef KL_SCHEMA_SCHEMA_H
#define KL_SCHEMA_SCHEMA_H

#include <stdatomic.h>

#include "base/regex.h"
#include "model/formats.h"
#include "value/value.h"

typedef enum kl__stype {
    KL_S_ANY,
    KL_S_STRUCT,
    KL_S_MAP,
    KL_S_LIST,
    KL_S_STRING,
    KL_S_INT,
    KL_S_NUMBER,
    KL_S_BOOL,
    KL_S_QUANTITY,
    KL_S_TIME,
    KL_S_MICROTIME,
    KL_S_BYTES,
    KL_S_INT_OR_STRING,
} kl__stype;

/* How lists of two writers merge: not at all, as a set of scalars, or item by item under keys. */
typedef enum kl__slist { KL_S_ATOMIC, KL_S_SET, KL_S_KEYED } kl__slist;

typedef struct kl__schema kl__schema;

typedef struct kl__field {
    char *name;
    const kl__schema *schema;
    bool present;  /* always present: a Go struct, or a required list, which is null if missing */
    bool filled;   /* ... and written as {} */
    bool omitted;  /* left out at its zero value: "", 0, false */
    bool zero;     /* written as "", 0 or false if missing */
    bool null;     /* written as null if missing */
    bool retain;   /* strategic merge patch: $retainKeys */
    bool required; /* CRD: the object must have it */
    char *go;      /* the name that the type of a text has in Go, also of one in a list; NULL: it has none */
} kl__field;

struct kl__schema {
    kl__stype type;
    char *name;        /* a built-in type's name, "core.v1.Container"; NULL elsewhere */
    kl__field *fields; /* STRUCT: sorted by name */
    size_t nfields;
    const kl__schema *items; /* LIST, MAP; a STRUCT with additional properties (CRD) */
    bool narrow;             /* INT: of 32 bits */
    kl__slist list;
    char **keys;      /* KEYED: NULL-terminated */
    bool atomic;      /* STRUCT, MAP, ANY: one writer owns it whole */
    bool nulls;       /* a list in it is null when empty (kl__field's `null`) */
    bool patch_merge; /* strategic merge patch merges the list */
    char *patch_key;  /* ... by this key; NULL merges scalars */
    const kl_value *dflt;
    bool preserve; /* unknown fields stay */
    bool nullable;
    bool embedded;          /* holds apiVersion, kind and metadata of its own ... */
    const kl__schema *meta; /* ... with this schema */
    bool custom;            /* from a CRD */
    /* CRD, for validation: */
    const kl_value *json; /* this node as written */
    bool loose;           /* in anyOf and the like, without a type */
    /* further schemas to satisfy: NULL-terminated, or NULL. They do not affect types, defaults and pruning */
    const kl__schema **any_of, **one_of, **all_of, *not_;
    _Atomic(kl_regex *) pattern; /* compiled when first needed, see kl__schema_pattern */
    kl__format *format;          /* of a text; NULL: unchecked */
};

typedef struct kl__types kl__types;

kl__types *kl__types_builtin(void);                                    /* never fails: the text is built in */
const kl__schema *kl__types_get(const kl__types *t, const char *name); /* NULL when there is none */
/* The types of one version of a CRD; `json` is its openAPIV3Schema (NULL: anything goes). ObjectMeta comes
 * from `builtin`, which must outlive the result. KL_EREJECTED when the schema is not structural enough to
 * serve. */
KL_NODISCARD kl_status kl__types_of_crd(
    const kl_value *json, const kl__types *builtin, kl__types **out, kl_err *err);
const kl__schema *kl__types_root(const kl__types *t); /* CRD types: the object itself */
void kl__types_free(kl__types *t);

/* The schema below `s` at a key; NULL when the field is unknown. `s` NULL and ANY give ANY. */
const kl__schema *kl__schema_child(const kl__schema *s, const char *key, size_t n);
const kl__field *kl__schema_field(const kl__schema *s, const char *key, size_t n);
/* The `pattern` of a text; NULL: none. Any thread. */
const kl_regex *kl__schema_pattern(const kl__schema *s);
extern const kl__schema kl__schema_any; /* maps field by field, lists whole */

#endif
