/* validate.c - custom resources against their schemas, and the metadata of every object.
 *
 * The texts are those of kube-openapi's validator: `Invalid value: "x": spec.n in body must be of type
 * integer: "string"`. */
#include "schema/validate.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

struct walk {
    kl__causes *causes;
    kl_buf path;
};

static const char *type_word(const kl_value *v)
{
    switch (kl_value_type(v)) {
    case KL_BOOL: return "boolean";
    case KL_INT:
    case KL_UINT: return "integer";
    case KL_DOUBLE: return "number";
    case KL_STRING: return "string";
    case KL_ARRAY: return "array";
    case KL_OBJECT: return "object";
    case KL_NULL: break;
    }
    return "null";
}

static bool right_type(const kl__schema *s, const kl_value *v)
{
    kl_type t = kl_value_type(v);
    int64_t whole;
    switch (s->type) {
    case KL_S_STRUCT:
    case KL_S_MAP: return t == KL_OBJECT;
    case KL_S_LIST: return t == KL_ARRAY;
    case KL_S_STRING: return t == KL_STRING;
    case KL_S_INT: return kl_value_int(v, &whole) || t == KL_UINT;
    case KL_S_NUMBER: return t == KL_INT || t == KL_UINT || t == KL_DOUBLE;
    case KL_S_BOOL: return t == KL_BOOL;
    case KL_S_INT_OR_STRING: return t == KL_STRING || kl_value_int(v, &whole);
    default: return true;
    }
}

static const char *want_word(const kl__schema *s)
{
    switch (s->type) {
    case KL_S_STRUCT:
    case KL_S_MAP: return "object";
    case KL_S_LIST: return "array";
    case KL_S_STRING: return "string";
    case KL_S_INT: return "integer";
    case KL_S_NUMBER: return "number";
    case KL_S_BOOL: return "boolean";
    case KL_S_INT_OR_STRING: return "integer,string";
    default: return "any";
    }
}

static void check_enum(struct walk *w, const kl__schema *s, const kl_value *v)
{
    const kl_value *allowed = kl_value_get(s->json, "enum");
    if (!kl_value_len(allowed))
        return;
    kl_buf words = KL_BUF_INIT;
    bool found = false;
    for (size_t i = 0; i < kl_value_len(allowed) && !found; i++) {
        const kl_value *one = kl_value_item(allowed, i);
        found = kl_value_equal(one, v);
        kl_buf_puts(&words, i ? ", " : "");
        kl_value_encode(one, &words);
    }
    if (!found) {
        char *text = kl_value_to_json(v);
        kl__cause_add(w->causes, "FieldValueNotSupported", kl_buf_str(&w->path),
            "Unsupported value: %s: supported values: %s", text, kl_buf_str(&words));
        kl_free(text);
    }
    kl_buf_fini(&words);
}

static size_t runes(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)s[i] & 0xc0) != 0x80;
    return count;
}

static void check_bounds(struct walk *w, const kl__schema *s, const kl_value *v)
{
    const char *path = kl_buf_str(&w->path);
    const kl_value *bound;
    kl_type t = kl_value_type(v);
    if (t == KL_INT || t == KL_UINT || t == KL_DOUBLE) {
        double x = kl_value_double(v, 0);
        if ((bound = kl_value_get(s->json, "minimum"))) {
            bool exclusive = kl_value_bool(kl_value_get(s->json, "exclusiveMinimum"), false);
            double min = kl_value_double(bound, 0);
            if (x < min || (exclusive && x == min))
                kl__cause_invalid(w->causes, path, v, "%s in body should be greater than %s%g", path,
                    exclusive ? "" : "or equal to ", min);
        }
        if ((bound = kl_value_get(s->json, "maximum"))) {
            bool exclusive = kl_value_bool(kl_value_get(s->json, "exclusiveMaximum"), false);
            double max = kl_value_double(bound, 0);
            if (x > max || (exclusive && x == max))
                kl__cause_invalid(w->causes, path, v, "%s in body should be less than %s%g", path,
                    exclusive ? "" : "or equal to ", max);
        }
    }
    static const struct {
        const char *key;
        kl_type on;
        bool max;
        const char *unit;
    } lengths[] = {
        {"maxLength", KL_STRING, true, "chars long"},
        {"minLength", KL_STRING, false, "chars long"},
        {"maxItems", KL_ARRAY, true, "items"},
        {"minItems", KL_ARRAY, false, "items"},
        {"maxProperties", KL_OBJECT, true, "properties"},
        {"minProperties", KL_OBJECT, false, "properties"},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int64_t limit;
        if (t != lengths[i].on || !kl_value_int(kl_value_get(s->json, lengths[i].key), &limit))
            continue;
        size_t n = kl_value_len(v);
        const char *text = kl_value_strn(v, &n);
        int64_t len = (int64_t)(text ? runes(text, n) : kl_value_len(v));
        if (lengths[i].max && len > limit)
            kl__cause_add(w->causes, t == KL_STRING ? "FieldValueTooLong" : "FieldValueTooMany", path,
                t == KL_STRING ? "Too long: may not be more than %" PRId64 " bytes"
                               : "Too many: must have at most %" PRId64 " items",
                limit);
        else if (!lengths[i].max && len < limit)
            kl__cause_invalid(w->causes, path, v, "%s in body should %s at least %" PRId64 " %s", path,
                t == KL_STRING ? "be" : "have", limit, lengths[i].unit);
    }
}

static void walk(struct walk *w, const kl__schema *s, const kl_value *v);

static void below(struct walk *w, const kl__schema *s, const char *key, size_t n, const kl_value *v)
{
    size_t mark = w->path.len;
    kl_buf_printf(&w->path, "%s%.*s", mark && *key != '[' ? "." : "", (int)n, key);
    walk(w, s, v);
    w->path.len = mark;
    if (w->path.data)
        w->path.data[mark] = 0;
}

/* Two items of a set or keyed list that are the same one. */
static bool same_item(const kl__schema *s, const kl_value *a, const kl_value *b)
{
    if (s->list == KL_S_SET)
        return kl_value_equal(a, b);
    for (char **key = s->keys; *key; key++) {
        const kl_value *x = kl_value_get(a, *key), *y = kl_value_get(b, *key);
        if (!kl_value_equal(x, y) || (!x != !y))
            return false;
    }
    return true;
}

static void check_duplicates(struct walk *w, const kl__schema *s, const kl_value *v)
{
    if (s->list == KL_S_ATOMIC)
        return;
    for (size_t i = 1; i < kl_value_len(v); i++)
        for (size_t k = 0; k < i; k++)
            if (same_item(s, kl_value_item(v, k), kl_value_item(v, i))) {
                char *field = kl_sprintf("%s[%zu]", kl_buf_str(&w->path), i),
                     *text = kl_value_to_json(kl_value_item(v, i));
                kl__cause_add(w->causes, "FieldValueDuplicate", field, "Duplicate value: %s", text);
                kl_free(field);
                kl_free(text);
                break;
            }
}

static void walk(struct walk *w, const kl__schema *s, const kl_value *v)
{
    if (!s || !s->custom || (kl_value_type(v) == KL_NULL && s->nullable))
        return;
    if (!right_type(s, v)) {
        const char *path = kl_buf_str(&w->path), *word = type_word(v);
        kl__cause_add(w->causes, "FieldValueTypeInvalid", path,
            "Invalid value: \"%s\": %s in body must be of type %s: \"%s\"", word, path, want_word(s), word);
        return;
    }
    check_enum(w, s, v);
    check_bounds(w, s, v);
    if (kl_value_type(v) == KL_ARRAY && s->type == KL_S_LIST) {
        check_duplicates(w, s, v);
        for (size_t i = 0; i < kl_value_len(v); i++) {
            char key[24];
            int n = snprintf(key, sizeof key, "[%zu]", i);
            below(w, s->items, key, (size_t)n, kl_value_item(v, i));
        }
    }
    if (kl_value_type(v) != KL_OBJECT || s->type == KL_S_LIST)
        return;
    for (size_t i = 0; i < s->nfields; i++)
        if (s->fields[i].required && !kl_value_get(v, s->fields[i].name)) {
            char *field = kl_sprintf(
                "%s%s%s", kl_buf_str(&w->path), w->path.len ? "." : "", s->fields[i].name);
            kl__cause_required(w->causes, field, "");
            kl_free(field);
        }
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        below(w, kl__schema_child(s, key, n), key, n, x);
    }
}

void kl__validate_custom(const kl__schema *s, const kl_value *o, bool only_status, kl__causes *causes)
{
    struct walk w = {.causes = causes};
    if (only_status) {
        const kl_value *status = kl_value_get(o, "status");
        if (status)
            below(&w, kl__schema_child(s, "status", 6), "status", 6, status);
    } else
        walk(&w, s, o);
    kl_buf_fini(&w.path);
}

/* ------------------------------------------------------------------ metadata */

static bool alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool name_part(const char *s, size_t n)
{
    if (!n || n > 63 || !alnum(s[0]) || !alnum(s[n - 1]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!alnum(s[i]) && s[i] != '-' && s[i] != '_' && s[i] != '.')
            return false;
    return true;
}

static const char qualified[] = "name part must consist of alphanumeric characters, '-', '_' or '.', and "
                                "must start and end with an alphanumeric character "
                                "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
                                "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

static bool qualified_name(const char *key, size_t n)
{
    const char *slash = memchr(key, '/', n);
    if (slash && slash == key)
        return false;
    const char *name = slash ? slash + 1 : key;
    return name_part(name, (size_t)(key + n - name)) && !memchr(name, '/', (size_t)(key + n - name));
}

static void check_map(const kl_value *o, const char *which, bool values, kl__causes *causes)
{
    const kl_value *map = kl_value_at(o, "metadata", which, NULL);
    char *field = kl_sprintf("metadata.%s", which);
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key;
        size_t n, len = 0;
        const kl_value *v = kl_value_member(map, i, &key, &n);
        const char *text = kl_value_strn(v, &len);
        if (!qualified_name(key, n)) {
            const kl_value *k = kl_value_of_strn(key, n);
            kl__cause_invalid(causes, field, k, "%s", qualified);
            kl_value_unref(k);
        }
        if (values && text && len && !name_part(text, len))
            kl__cause_invalid(causes, field, v,
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
                "'.', and must start and end with an "
                "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for "
                "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
    }
    kl_free(field);
}

void kl__validate_metadata(const kl_value *o, kl__causes *causes)
{
    check_map(o, "labels", true, causes);
    check_map(o, "annotations", false, causes);
    const kl_value *owners = kl_value_at(o, "metadata", "ownerReferences", NULL);
    int controllers = 0;
    for (size_t i = 0; i < kl_value_len(owners); i++) {
        static const char *const must[] = {"apiVersion", "kind", "name", "uid"};
        const kl_value *owner = kl_value_item(owners, i);
        for (size_t k = 0; k < 4; k++) {
            const char *text = kl_value_str(kl_value_get(owner, must[k]));
            if (!text || !*text) {
                char *field = kl_sprintf("metadata.ownerReferences[%zu].%s", i, must[k]);
                kl__cause_add(causes, "FieldValueInvalid", field, "Invalid value: \"\": must not be empty");
                kl_free(field);
            }
        }
        controllers += kl_value_bool(kl_value_get(owner, "controller"), false);
    }
    if (controllers > 1)
        kl__cause_add(causes, "FieldValueInvalid", "metadata.ownerReferences",
            "Invalid value: only one reference can have Controller set to true");
}
