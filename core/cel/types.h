/* types.h - the types of expressions, and their memory. Rooms above describe their variables with them. Owner
 * thread while they are made; immutable afterwards. */
#ifndef KL_CEL_TYPES_H
#define KL_CEL_TYPES_H

#include "cel/cel.h"

/* ---------------------------------------------------------------- memory: freed as a whole */

typedef struct kl__carena {
    struct kl__cchunk *chunks;
    size_t used; /* bytes given out */
} kl__carena;
void *kl__carena_alloc(kl__carena *a, size_t n); /* zeroed, never NULL */
char *kl__carena_text(kl__carena *a, const char *s, size_t n);
char *kl__carena_printf(kl__carena *a, const char *fmt, ...) KL_PRINTF(2, 3);
void kl__carena_fini(kl__carena *a);
#define KL__CNEW(a, T) ((T *)kl__carena_alloc(a, sizeof(T)))
/* For types that live as long as the environment. */
kl__carena *kl__cel_env_arena(kl_cel_env *env);

/* ---------------------------------------------------------------- types */

typedef enum kl__ckind {
    KL_C_ERROR,
    KL_C_DYN,
    KL_C_NULL,
    KL_C_BOOL,
    KL_C_INT,
    KL_C_UINT,
    KL_C_DOUBLE,
    KL_C_STRING,
    KL_C_BYTES,
    KL_C_TIME,
    KL_C_DURATION,
    KL_C_LIST,
    KL_C_MAP,
    KL_C_TYPE,
    KL_C_OBJECT,
    KL_C_OPTIONAL,
    KL_C_QUANTITY,
    KL_C_IP,
    KL_C_CIDR,
    KL_C_URL,
    KL_C_FORMAT,
    KL_C_SEMVER,
    KL_C_AUTHORIZER,
    KL_C_PATH_CHECK,
    KL_C_GROUP_CHECK,
    KL_C_RESOURCE_CHECK,
    KL_C_DECISION,
    KL_C_PARAM,
} kl__ckind;

typedef struct kl__ctype kl__ctype;
typedef struct kl__cfield {
    const char *name; /* in expressions */
    const char *key;  /* in JSON */
    const kl__ctype *type;
} kl__cfield;

struct kl__ctype {
    kl__ckind kind;
    const char *name;
    const kl__ctype *p[2]; /* LIST: items; MAP: keys, values; OPTIONAL, TYPE: what */
    const kl__cfield *fields;
    size_t nfields;
    unsigned param;          /* PARAM: its number */
    bool set;                /* LIST: x-kubernetes-list-type set */
    const char *const *keys; /* LIST: of type map: names, NULL-terminated */
    uint64_t max, min;       /* bounds of elements or bytes; the least size as JSON */
};

extern const kl__ctype kl__cbasic[]; /* by kind; LIST, MAP are of dyn */
const kl__ctype *kl__ctype_list(kl__carena *a, const kl__ctype *item);
const kl__ctype *kl__ctype_map(kl__carena *a, const kl__ctype *key, const kl__ctype *value);
const kl__ctype *kl__ctype_of(kl__carena *a, kl__ckind kind, const kl__ctype *what); /* OPTIONAL, TYPE */
const kl__ctype *kl__ctype_param(kl__carena *a, unsigned n);
const kl__cfield *kl__ctype_field(const kl__ctype *t, const char *name, size_t n);
void kl__ctype_print(const kl__ctype *t, kl_buf *out);
bool kl__ctype_same(const kl__ctype *a, const kl__ctype *b);
/* A field's name as expressions write it; false if they cannot. */
bool kl__cel_escape(const char *key, size_t n, kl_buf *out);

#endif
