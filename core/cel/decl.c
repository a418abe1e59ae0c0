/* decl.c - the type that a structural schema describes, with bounds of its size, as apiserver's
 * SchemaDeclType has it. */
#include <string.h>

#include "base/mem.h"
#include "cel/cel_impl.h"

#define REQUEST ((uint64_t)3 << 20) /* bytes of a request at most */

static const kl__ctype *decl(kl__carena *a, const kl_value *s, bool root, const char *name);

bool kl__cel_escape(const char *key, size_t n, kl_buf *out)
{
    static const char *const words[] = {"true", "false", "null", "in", "as", "break", "const", "continue",
        "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return", "var",
        "void", "while"};
    if (!n || (key[0] >= '0' && key[0] <= '9'))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == n && !memcmp(words[i], key, n)) {
            kl_buf_printf(out, "__%s__", words[i]);
            return true;
        }
    for (size_t i = 0; i < n; i++) {
        char c = key[i];
        if (c == '_' && i + 1 < n && key[i + 1] == '_') {
            kl_buf_puts(out, "__underscores__");
            i++;
        } else if (c == '.' || c == '-' || c == '/')
            kl_buf_puts(out, c == '.' ? "__dot__" : c == '-' ? "__dash__" : "__slash__");
        else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')
            kl_buf_putc(out, c);
        else
            return false;
    }
    return true;
}

static kl__ctype *sized(kl__carena *a, kl__ckind kind, uint64_t max, uint64_t min)
{
    kl__ctype *t = KL__CNEW(a, kl__ctype);
    *t = kl__cbasic[kind];
    t->max = max;
    t->min = min;
    return t;
}

static bool limit(const kl_value *s, const char *key, uint64_t *out)
{
    int64_t n;
    if (!kl_value_int(kl_value_get(s, key), &n))
        return false;
    *out = n < 0 ? 0 : (uint64_t)n;
    return true;
}

static bool flag(const kl_value *s, const char *key) { return kl_value_bool(kl_value_get(s, key), false); }

static const kl__ctype *text(kl__carena *a, const kl_value *s)
{
    const char *format = kl_value_str_at(s, "format", NULL);
    uint64_t max = REQUEST - 2, longest = 0;
    bool bounded = limit(s, "maxLength", &max);
    format = format ? format : "";
    if (!strcmp(format, "byte"))
        return sized(a, KL_C_BYTES, max, 2);
    if (!strcmp(format, "duration"))
        return sized(a, KL_C_DURATION, 32, 3);
    if (!strcmp(format, "date"))
        return sized(a, KL_C_TIME, 12, 12);
    if (!strcmp(format, "date-time"))
        return sized(a, KL_C_TIME, 32, 21);
    const kl_value *allowed = kl_value_get(s, "enum");
    for (size_t i = 0; i < kl_value_len(allowed); i++)
        if (kl_value_len(kl_value_item(allowed, i)) > longest)
            longest = kl_value_len(kl_value_item(allowed, i));
    if (bounded)
        max *= 4; /* bytes of a character */
    else if (kl_value_len(allowed))
        max = longest;
    return sized(a, KL_C_STRING, max, 2);
}

static const kl__ctype *array(kl__carena *a, const kl_value *s, const char *name)
{
    const kl_value *items = kl_value_get(s, "items"), *keys = kl_value_get(s, "x-kubernetes-list-map-keys");
    const char *kind = kl_value_str_at(s, "x-kubernetes-list-type", NULL);
    char *below = kl__carena_printf(a, "%s.@idx", name);
    const kl__ctype *item = items ? decl(a, items, flag(items, "x-kubernetes-embedded-resource"), below)
                                  : NULL;
    if (!item)
        return NULL;
    kl__ctype *t = sized(a, KL_C_LIST, 0, 2);
    t->p[0] = item;
    t->set = kind && !strcmp(kind, "set");
    if (!limit(s, "maxItems", &t->max))
        t->max = (REQUEST - 2) / (item->min + 1);
    if (kind && !strcmp(kind, "map") && kl_value_len(keys)) {
        const char **names = kl__carena_alloc(a, (kl_value_len(keys) + 1) * sizeof *names);
        for (size_t i = 0; i < kl_value_len(keys); i++) {
            const char *key = kl_value_str(kl_value_item(keys, i));
            kl_buf b = KL_BUF_INIT;
            kl__cel_escape(key ? key : "", key ? strlen(key) : 0, &b);
            names[i] = kl__carena_text(a, kl_buf_str(&b), b.len);
            kl_buf_fini(&b);
        }
        t->keys = names;
    }
    return t;
}

static const kl__ctype *map(kl__carena *a, const kl_value *s, const kl_value *values, const char *name)
{
    char *below = kl__carena_printf(a, "%s.@prop", name);
    const kl__ctype *item = decl(a, values, flag(values, "x-kubernetes-embedded-resource"), below);
    if (!item)
        return NULL;
    kl__ctype *t = sized(a, KL_C_MAP, 0, 2);
    t->p[0] = sized(a, KL_C_STRING, 0, 2); /* apiserver does not bound the size of keys */
    t->p[1] = item;
    if (!limit(s, "maxProperties", &t->max))
        t->max = (REQUEST - 2) / (item->min + 6);
    return t;
}

typedef struct members {
    kl__carena *a;
    kl__cfield *v;
    size_t n;
} members;

static void add(members *m, const char *key, size_t n, const kl__ctype *type)
{
    kl_buf b = KL_BUF_INIT;
    if (type && kl__cel_escape(key, n, &b))
        m->v[m->n++] = (kl__cfield){.name = kl__carena_text(m->a, kl_buf_str(&b), b.len),
            .key = kl__carena_text(m->a, key, n),
            .type = type};
    kl_buf_fini(&b);
}

/* The fields of metadata that rules may use. */
static const kl__ctype *metadata(kl__carena *a, const char *name)
{
    kl__ctype *t = sized(a, KL_C_OBJECT, 0, 2);
    members m = {.a = a, .v = kl__carena_alloc(a, 2 * sizeof(kl__cfield))};
    add(&m, "name", 4, sized(a, KL_C_STRING, REQUEST - 2, 2));
    add(&m, "generateName", 12, sized(a, KL_C_STRING, REQUEST - 2, 2));
    t->name = kl__carena_printf(a, "%s.metadata", name);
    t->fields = m.v;
    t->nfields = m.n;
    return t;
}

static bool is(const kl_value *s, const char *type)
{
    const char *t = kl_value_str_at(s, "type", NULL);
    return t && !strcmp(t, type);
}

/* Whether the schema defines the whole value. */
static bool typed(const kl_value *p)
{
    const kl_value *m = kl_value_at(p, "metadata", "properties", NULL);
    return is(kl_value_get(p, "kind"), "string") && is(kl_value_get(p, "apiVersion"), "string")
        && is(kl_value_get(m, "name"), "string") && is(kl_value_get(m, "generateName"), "string");
}

static bool required(const kl_value *s, const char *key, size_t n)
{
    const kl_value *list = kl_value_get(s, "required");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        size_t len = 0;
        const char *name = kl_value_strn(kl_value_item(list, i), &len);
        if (name && len == n && !memcmp(name, key, n))
            return true;
    }
    return false;
}

static const kl__ctype *object(kl__carena *a, const kl_value *s, bool root, const char *name)
{
    const kl_value *properties = kl_value_get(s, "properties");
    kl__ctype *t = sized(a, KL_C_OBJECT, 0, 2);
    members m = {.a = a, .v = kl__carena_alloc(a, (kl_value_len(properties) + 4) * sizeof(kl__cfield))};
    bool own = root && !typed(properties);
    for (size_t i = 0; i < kl_value_len(properties); i++) {
        const char *key;
        size_t n;
        const kl_value *p = kl_value_member(properties, i, &key, &n);
        if (own && (!strcmp(key, "kind") || !strcmp(key, "apiVersion") || !strcmp(key, "metadata")))
            continue;
        char *below = kl__carena_printf(a, "%s.%s", name, key);
        const kl__ctype *type = decl(a, p, flag(p, "x-kubernetes-embedded-resource"), below);
        add(&m, key, n, type);
        if (type && required(s, key, n) && !kl_value_get(p, "default"))
            t->min += n + type->min + 4;
    }
    if (own) {
        add(&m, "kind", 4, sized(a, KL_C_STRING, REQUEST - 2, 2));
        add(&m, "apiVersion", 10, sized(a, KL_C_STRING, REQUEST - 2, 2));
        add(&m, "metadata", 8, metadata(a, name));
    }
    t->name = name;
    t->fields = m.v;
    t->nfields = m.n;
    return t;
}

static const kl__ctype *decl(kl__carena *a, const kl_value *s, bool root, const char *name)
{
    uint64_t max = REQUEST - 2;
    if (flag(s, "x-kubernetes-int-or-string")) {
        if (limit(s, "maxLength", &max))
            max *= 4;
        return sized(a, KL_C_DYN, max, 1);
    }
    if (is(s, "array"))
        return array(a, s, name);
    const kl_value *values = kl_value_get(s, "additionalProperties");
    if (is(s, "object"))
        return kl_value_type(values) == KL_OBJECT ? map(a, s, values, name) : object(a, s, root, name);
    return is(s, "string") ? text(a, s)
        : is(s, "boolean") ? sized(a, KL_C_BOOL, 0, 4)
        : is(s, "number")  ? sized(a, KL_C_DOUBLE, 0, 1)
        : is(s, "integer") ? sized(a, KL_C_INT, 0, 1)
                           : NULL;
}

const kl_cel_type *kl_cel_type_of_schema(kl_cel_env *env, const kl_value *schema, bool root)
{
    return decl(&env->a, schema, root, "selfType");
}

uint64_t kl_cel_type_cardinality(const kl_cel_type *t) { return REQUEST / (t->min + 1); }
