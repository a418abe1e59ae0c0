/* types.c - types of expressions, their names, and memory that is freed as a whole. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"

/* ---------------------------------------------------------------- memory */

#define CHUNK 4096

struct kl__cchunk {
    struct kl__cchunk *next;
    size_t used, cap;
    max_align_t data[];
};

void *kl__carena_alloc(kl__carena *a, size_t n)
{
    n = (n + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
    struct kl__cchunk *c = a->chunks;
    if (!c || c->cap - c->used < n) {
        size_t cap = n > CHUNK ? n : CHUNK;
        c = kl_zalloc(sizeof *c + cap);
        c->cap = cap;
        c->next = a->chunks;
        a->chunks = c;
    }
    void *p = (char *)c->data + c->used;
    c->used += n;
    a->used += n;
    return p;
}

char *kl__carena_text(kl__carena *a, const char *s, size_t n)
{
    char *p = kl__carena_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

char *kl__carena_printf(kl__carena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap), *kept = kl__carena_text(a, text, strlen(text));
    va_end(ap);
    kl_free(text);
    return kept;
}

void kl__carena_fini(kl__carena *a)
{
    for (struct kl__cchunk *c = a->chunks, *next; c; c = next) {
        next = c->next;
        kl_free(c);
    }
    *a = (kl__carena){0};
}

/* ---------------------------------------------------------------- types */

static const kl__ctype dyn = {.kind = KL_C_DYN, .name = "dyn", .max = UINT64_MAX};

#define BASIC(k, text) [k] = {.kind = k, .name = text, .max = UINT64_MAX}
const kl__ctype kl__cbasic[] = {
    BASIC(KL_C_ERROR, "!error!"),
    BASIC(KL_C_DYN, "dyn"),
    BASIC(KL_C_NULL, "null_type"),
    BASIC(KL_C_BOOL, "bool"),
    BASIC(KL_C_INT, "int"),
    BASIC(KL_C_UINT, "uint"),
    BASIC(KL_C_DOUBLE, "double"),
    BASIC(KL_C_STRING, "string"),
    BASIC(KL_C_BYTES, "bytes"),
    BASIC(KL_C_TIME, "google.protobuf.Timestamp"),
    BASIC(KL_C_DURATION, "google.protobuf.Duration"),
    [KL_C_LIST] = {.kind = KL_C_LIST, .name = "list", .p = {&dyn}, .max = UINT64_MAX},
    [KL_C_MAP] = {.kind = KL_C_MAP, .name = "map", .p = {&dyn, &dyn}, .max = UINT64_MAX},
    [KL_C_TYPE] = {.kind = KL_C_TYPE, .name = "type", .max = UINT64_MAX},
    BASIC(KL_C_OBJECT, "object"),
    [KL_C_OPTIONAL] = {.kind = KL_C_OPTIONAL, .name = "optional_type", .p = {&dyn}, .max = UINT64_MAX},
    BASIC(KL_C_QUANTITY, "kubernetes.Quantity"),
    BASIC(KL_C_IP, "net.IP"),
    BASIC(KL_C_CIDR, "net.CIDR"),
    BASIC(KL_C_URL, "kubernetes.URL"),
    BASIC(KL_C_FORMAT, "kubernetes.NamedFormat"),
    BASIC(KL_C_SEMVER, "kubernetes.Semver"),
    BASIC(KL_C_AUTHORIZER, "kubernetes.authorization.Authorizer"),
    BASIC(KL_C_PATH_CHECK, "kubernetes.authorization.PathCheck"),
    BASIC(KL_C_GROUP_CHECK, "kubernetes.authorization.GroupCheck"),
    BASIC(KL_C_RESOURCE_CHECK, "kubernetes.authorization.ResourceCheck"),
    BASIC(KL_C_DECISION, "kubernetes.authorization.Decision"),
};

static kl__ctype *make(kl__carena *a, kl__ckind kind, const kl__ctype *x, const kl__ctype *y)
{
    kl__ctype *t = KL__CNEW(a, kl__ctype);
    *t = (kl__ctype){.kind = kind, .name = kl__cbasic[kind].name, .p = {x, y}, .max = UINT64_MAX};
    return t;
}

const kl__ctype *kl__ctype_list(kl__carena *a, const kl__ctype *item)
{
    return make(a, KL_C_LIST, item, NULL);
}

const kl__ctype *kl__ctype_map(kl__carena *a, const kl__ctype *key, const kl__ctype *value)
{
    return make(a, KL_C_MAP, key, value);
}

const kl__ctype *kl__ctype_of(kl__carena *a, kl__ckind kind, const kl__ctype *what)
{
    return make(a, kind, what, NULL);
}

const kl__ctype *kl__ctype_param(kl__carena *a, unsigned n)
{
    kl__ctype *t = KL__CNEW(a, kl__ctype);
    *t = (kl__ctype){
        .kind = KL_C_PARAM, .param = n, .name = kl__carena_printf(a, "_var%u", n), .max = UINT64_MAX};
    return t;
}

const kl__cfield *kl__ctype_field(const kl__ctype *t, const char *name, size_t n)
{
    for (size_t i = 0; i < t->nfields; i++)
        if (!strncmp(t->fields[i].name, name, n) && !t->fields[i].name[n])
            return &t->fields[i];
    return NULL;
}

static void print(const kl__ctype *t, kl_buf *out, int depth)
{
    switch (t->kind) {
    case KL_C_NULL: kl_buf_puts(out, "null"); return;
    case KL_C_TIME: kl_buf_puts(out, "timestamp"); return;
    case KL_C_DURATION: kl_buf_puts(out, "duration"); return;
    default: break;
    }
    kl_buf_puts(out, t->name);
    if (!t->p[0] || depth > 20)
        return;
    kl_buf_putc(out, '(');
    print(t->p[0], out, depth + 1);
    if (t->p[1]) {
        kl_buf_puts(out, ", ");
        print(t->p[1], out, depth + 1);
    }
    kl_buf_putc(out, ')');
}

void kl__ctype_print(const kl__ctype *t, kl_buf *out) { print(t, out, 0); }

bool kl__ctype_same(const kl__ctype *a, const kl__ctype *b)
{
    if (a == b)
        return true;
    if (a->kind != b->kind || (a->kind == KL_C_PARAM && a->param != b->param))
        return false;
    if (a->kind == KL_C_OBJECT)
        return !strcmp(a->name, b->name);
    for (int i = 0; i < 2; i++)
        if (!a->p[i] != !b->p[i] || (a->p[i] && !kl__ctype_same(a->p[i], b->p[i])))
            return false;
    return true;
}

const kl_cel_type *kl_cel_type_dyn(void) { return &kl__cbasic[KL_C_DYN]; }
const kl_cel_type *kl_cel_type_string(void) { return &kl__cbasic[KL_C_STRING]; }
const kl_cel_type *kl_cel_type_bool(void) { return &kl__cbasic[KL_C_BOOL]; }

const kl_cel_type *kl_cel_type_optional(kl_cel_env *env, const kl_cel_type *t)
{
    return kl__ctype_of(&env->a, KL_C_OPTIONAL, t);
}

/* ---------------------------------------------------------------- type variables
 *
 * As in cel-go's checker: a variable stands for the most general of the types that it was matched with. */

const kl__ctype *kl__cbind_fresh(kl__cbind *b)
{
    if (b->n == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 16;
        const kl__ctype **more = kl__carena_alloc(b->a, cap * sizeof *more);
        if (b->n)
            memcpy(more, b->bound, b->n * sizeof *more);
        b->bound = more;
        b->cap = cap;
    }
    b->bound[b->n] = NULL;
    return kl__ctype_param(b->a, (unsigned)b->n++);
}

const kl__ctype *kl__cbind_resolve(kl__cbind *b, const kl__ctype *t, bool to_dyn)
{
    while (t->kind == KL_C_PARAM && b->bound[t->param])
        t = b->bound[t->param];
    if (t->kind == KL_C_PARAM)
        return to_dyn ? &kl__cbasic[KL_C_DYN] : t;
    if (!t->p[0])
        return t;
    const kl__ctype *x = kl__cbind_resolve(b, t->p[0], to_dyn),
                    *y = t->p[1] ? kl__cbind_resolve(b, t->p[1], to_dyn) : NULL;
    if (x == t->p[0] && y == t->p[1])
        return t;
    kl__ctype *copy = KL__CNEW(b->a, kl__ctype);
    *copy = *t;
    copy->p[0] = x;
    copy->p[1] = y;
    return copy;
}

bool kl__cbind_general(const kl__ctype *a, const kl__ctype *b)
{
    if (a->kind == KL_C_DYN || a->kind == KL_C_PARAM)
        return true;
    if (b->kind == KL_C_DYN || b->kind == KL_C_PARAM || a->kind != b->kind)
        return false;
    if (a->kind == KL_C_TYPE)
        return true;
    if (a->kind == KL_C_LIST || a->kind == KL_C_MAP || a->kind == KL_C_OPTIONAL)
        return kl__cbind_general(a->p[0], b->p[0]) && (!a->p[1] || kl__cbind_general(a->p[1], b->p[1]));
    return kl__ctype_same(a, b);
}

static bool occurs(kl__cbind *b, unsigned param, const kl__ctype *in)
{
    while (in->kind == KL_C_PARAM) {
        if (in->param == param)
            return true;
        if (!b->bound[in->param])
            return false;
        in = b->bound[in->param];
    }
    return (in->p[0] && occurs(b, param, in->p[0])) || (in->p[1] && occurs(b, param, in->p[1]));
}

static bool assign(kl__cbind *b, const kl__ctype *to, const kl__ctype *from);

static void bind(kl__cbind *b, unsigned param, const kl__ctype *t)
{
    if (b->nundo == b->cundo) {
        size_t cap = b->cundo ? 2 * b->cundo : 16;
        struct kl__cundo *more = kl__carena_alloc(b->a, cap * sizeof *more);
        if (b->nundo)
            memcpy(more, b->undo, b->nundo * sizeof *more);
        b->undo = more;
        b->cundo = cap;
    }
    b->undo[b->nundo++] = (struct kl__cundo){param, b->bound[param]};
    b->bound[param] = t;
}

/* Whether variable v may stand for t; *had: it already stood for a type. */
static bool stands(kl__cbind *b, const kl__ctype *t, const kl__ctype *v, bool *had)
{
    *had = true;
    if (t->kind == KL_C_PARAM && t->param == v->param)
        return true;
    const kl__ctype *is = b->bound[v->param];
    if (is) {
        if (kl__ctype_same(t, is))
            return true;
        if (!assign(b, t, is))
            return false;
        const kl__ctype *most = kl__cbind_general(t, is) ? t : is;
        if (!occurs(b, v->param, most))
            bind(b, v->param, most);
        return true;
    }
    *had = false;
    if (occurs(b, v->param, t))
        return false;
    bind(b, v->param, t);
    return true;
}

static bool nullable(const kl__ctype *t)
{
    return t->kind == KL_C_NULL || t->kind >= KL_C_OBJECT || t->kind == KL_C_DURATION || t->kind == KL_C_TIME;
}

static bool assign(kl__cbind *b, const kl__ctype *to, const kl__ctype *from)
{
    bool had;
    if (from->kind == KL_C_PARAM) {
        if (stands(b, to, from, &had))
            return true;
        if (had)
            return false;
    }
    if (to->kind == KL_C_PARAM)
        return stands(b, from, to, &had);
    if (to->kind <= KL_C_DYN || from->kind <= KL_C_DYN)
        return true;
    if (to->kind == KL_C_NULL)
        return nullable(from);
    if (from->kind == KL_C_NULL)
        return nullable(to);
    if (to->kind != from->kind)
        return false;
    switch (to->kind) {
    case KL_C_OBJECT: return !strcmp(to->name, from->name);
    case KL_C_OPTIONAL:
    case KL_C_LIST: return assign(b, to->p[0], from->p[0]);
    case KL_C_MAP: return assign(b, to->p[0], from->p[0]) && assign(b, to->p[1], from->p[1]);
    default: return true;
    }
}

bool kl__cbind_assign(kl__cbind *b, const kl__ctype *const *to, const kl__ctype *const *from, size_t n)
{
    b->nundo = 0;
    for (size_t i = 0; i < n; i++)
        if (!assign(b, to[i], from[i])) {
            while (b->nundo--)
                b->bound[b->undo[b->nundo].param] = b->undo[b->nundo].was;
            b->nundo = 0;
            return false;
        }
    return true;
}
