/* funcs.c - argument and result types of a function, from its signature.
 *
 *   [.] ARGUMENT... > RESULT        "." a member: the first argument is the target
 *   b i u d s y t D n  bool, int, uint, double, string, bytes, timestamp, duration, null
 *   * T A B            anything, a type (TA as a result: that of A), type variables
 *   Lx Mxy Ox          list(x), map(x, y), optional(x)
 *   Q P C U F V        quantity, IP, CIDR, URL, format, semantic version
 *   Z H G R E          authorizer, its checks of a path, a group, a resource, and a decision */
#include <string.h>

#include "cel/cel_impl.h"

static const struct {
    char letter;
    kl__ckind kind;
} letters[] = {
    {'b', KL_C_BOOL},
    {'i', KL_C_INT},
    {'u', KL_C_UINT},
    {'d', KL_C_DOUBLE},
    {'s', KL_C_STRING},
    {'y', KL_C_BYTES},
    {'t', KL_C_TIME},
    {'D', KL_C_DURATION},
    {'n', KL_C_NULL},
    {'*', KL_C_DYN},
    {'A', KL_C_PARAM},
    {'B', KL_C_PARAM},
    {'T', KL_C_TYPE},
    {'L', KL_C_LIST},
    {'M', KL_C_MAP},
    {'O', KL_C_OPTIONAL},
    {'Q', KL_C_QUANTITY},
    {'P', KL_C_IP},
    {'C', KL_C_CIDR},
    {'U', KL_C_URL},
    {'F', KL_C_FORMAT},
    {'V', KL_C_SEMVER},
    {'Z', KL_C_AUTHORIZER},
    {'H', KL_C_PATH_CHECK},
    {'G', KL_C_GROUP_CHECK},
    {'R', KL_C_RESOURCE_CHECK},
    {'E', KL_C_DECISION},
};

static kl__ckind kind_of(char letter)
{
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].letter == letter)
            return letters[i].kind;
    return KL_C_ERROR;
}

static const kl__cfunc *const tables[] = {kl__cel_core, kl__cel_conversions, kl__cel_times, kl__cel_strings,
    kl__cel_collections, kl__cel_net, kl__cel_k8s, kl__cel_authz};

const kl__cfunc **kl__cfunc_find(kl__carena *a, const char *name, size_t *count)
{
    const kl__cfunc **found = NULL;
    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
            for (const kl__cfunc *f = tables[i]; f->name; f++)
                if (!strcmp(f->name, name)) {
                    if (found)
                        found[n] = f;
                    n++;
                }
        *count = n;
        if (!n)
            return NULL;
        if (!found)
            found = kl__carena_alloc(a, n * sizeof *found);
    }
    return found;
}

static const kl__ctype *term(const char **s, kl__carena *a, kl__cbind *b, const kl__ctype **params)
{
    char c = *(*s)++;
    kl__ckind kind = kind_of(c);
    if (kind == KL_C_PARAM) {
        const kl__ctype **p = &params[c - 'A'];
        if (!*p)
            *p = kl__cbind_fresh(b);
        return *p;
    }
    if (kind == KL_C_LIST)
        return kl__ctype_list(a, term(s, a, b, params));
    if (kind == KL_C_OPTIONAL)
        return kl__ctype_of(a, kind, term(s, a, b, params));
    if (kind == KL_C_MAP) {
        const kl__ctype *key = term(s, a, b, params);
        return kl__ctype_map(a, key, term(s, a, b, params));
    }
    return &kl__cbasic[kind];
}

const kl__ctype *kl__cfunc_types(
    const kl__cfunc *f, kl__carena *a, kl__cbind *b, const kl__ctype **arg, size_t *n, bool *member)
{
    const kl__ctype *params[2] = {NULL, NULL};
    const char *s = f->sig;
    *member = *s == '.';
    s += *member;
    for (*n = 0; *s != '>'; (*n)++)
        arg[*n] = term(&s, a, b, params);
    s++;
    if (s[0] == 'T' && s[1]) {
        s++;
        return kl__ctype_of(a, KL_C_TYPE, term(&s, a, b, params));
    }
    return term(&s, a, b, params);
}

static const char *skip(const char *s)
{
    kl__ckind kind = kind_of(*s++);
    if (kind == KL_C_LIST || kind == KL_C_OPTIONAL)
        return skip(s);
    return kind == KL_C_MAP ? skip(skip(s)) : s;
}

/* Whether v fits the type; lists of int and lists of string differ by their first item. */
static bool value_fits(const char *s, kl__cval v)
{
    kl__ckind want = kind_of(*s);
    if (want == KL_C_DYN || want == KL_C_PARAM)
        return true;
    return want == v.kind || (want == KL_C_MAP && v.kind == KL_C_OBJECT);
}

bool kl__cfunc_fits(const kl__cfunc *f, const kl__cval *a, size_t n, bool member)
{
    const char *s = f->sig;
    if ((*s == '.') != member)
        return false;
    s += member;
    size_t i = 0;
    for (; *s != '>' && i < n; i++) {
        if (!value_fits(s, a[i]))
            return false;
        s = skip(s);
    }
    return *s == '>' && i == n;
}
