/* validate.c - custom resources against their schemas.
 *
 * The texts are those of kube-openapi's validator: `Invalid value: "x": spec.n in body must be of type
 * integer: "string"`; and its order: the type, anyOf and the like, the value itself, what is in it, how much.
 * Embedded resources and list types are checked afterwards, in separate walks. */
#include "schema/validate.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "value/finder.h"

struct walk {
    kl__causes *causes;
    kl_buf path;
    size_t checks; /* checks passed so far: to find the closest of several failing schemas */
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

static void walk(struct walk *w, const kl__schema *s, const kl_value *v);

static void path_cut(struct walk *w, size_t mark)
{
    w->path.len = mark;
    if (w->path.data)
        w->path.data[mark] = 0;
}

static void path_key(struct walk *w, const char *key, size_t n)
{
    kl_buf_printf(&w->path, "%s%.*s", w->path.len ? "." : "", (int)n, key);
}

/* ------------------------------------------------------------------ several schemas for one value */

static size_t fails(
    struct walk *w, const kl__schema *s, const kl_value *v, kl__causes *causes, size_t *checks)
{
    struct walk alone = {.causes = causes};
    kl_buf_puts(&alone.path, kl_buf_str(&w->path));
    walk(&alone, s, v);
    kl_buf_fini(&alone.path);
    *checks = alone.checks;
    w->checks += alone.checks;
    return causes->len;
}

/* Complains about anyOf and the like. The path is quoted, and the cause has no field, as in kube-openapi. */
static void composite(struct walk *w, const char *what)
{
    kl__cause_add(w->causes, "FieldValueInvalid", "<nil>", "Invalid value: \"\": \"%s\" must %s",
        kl_buf_str(&w->path), what);
}

/* The number of schemas that fit; *closest: if none does, the causes of the one that passed most checks. */
static size_t count_fits(
    struct walk *w, const kl__schema *const *list, const kl_value *v, bool first, kl__causes *closest)
{
    size_t fit = 0, most = 0;
    for (; *list && !(first && fit); list++) {
        kl__causes causes = {0};
        size_t checks;
        bool good = !fails(w, *list, v, &causes, &checks);
        fit += good;
        if (good || (!fit && (!closest->len || checks > most))) {
            kl__causes_fini(closest);
            *closest = good ? (kl__causes){0} : causes;
            most = checks;
        } else {
            kl__causes_fini(&causes);
        }
    }
    return fit;
}

static void check_any(struct walk *w, const kl__schema *s, const kl_value *v)
{
    kl__causes closest = {0};
    if (!count_fits(w, s->any_of, v, true, &closest)) {
        composite(w, "validate at least one schema (anyOf)");
        kl__causes_join(w->causes, &closest);
    }
}

static void check_one(struct walk *w, const kl__schema *s, const kl_value *v)
{
    kl__causes closest = {0};
    char what[96];
    size_t fit = count_fits(w, s->one_of, v, false, &closest);
    if (fit == 1)
        return;
    if (fit)
        snprintf(
            what, sizeof what, "validate one and only one schema (oneOf). Found %zu valid alternatives", fit);
    composite(w, fit ? what : "validate one and only one schema (oneOf). Found none valid");
    kl__causes_join(w->causes, &closest);
}

static void check_all(struct walk *w, const kl__schema *s, const kl_value *v)
{
    size_t fit = 0, n = 0, before = w->causes->len;
    for (; s->all_of[n]; n++) {
        kl__causes causes = {0};
        size_t checks;
        fit += !fails(w, s->all_of[n], v, &causes, &checks);
        kl__causes_join(w->causes, &causes);
    }
    if (w->causes->len > before)
        composite(
            w, fit ? "validate all the schemas (allOf)" : "validate all the schemas (allOf). None validated");
}

static void check_not(struct walk *w, const kl__schema *s, const kl_value *v)
{
    kl__causes causes = {0};
    size_t checks;
    if (!fails(w, s->not_, v, &causes, &checks))
        composite(w, "not validate the schema (not)");
    kl__causes_fini(&causes);
}

static void check_alternatives(struct walk *w, const kl__schema *s, const kl_value *v)
{
    if (s->any_of)
        check_any(w, s, v);
    if (s->one_of)
        check_one(w, s, v);
    if (s->all_of)
        check_all(w, s, v);
    if (s->not_)
        check_not(w, s, v);
}

/* ------------------------------------------------------------------ one value */

static size_t runes(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)s[i] & 0xc0) != 0x80;
    return count;
}

static bool limit_of(const kl__schema *s, const char *key, int64_t *limit)
{
    return kl_value_int(kl_value_get(s->json, key), limit);
}

/* Only the first mistake is reported. */
static void check_text(struct walk *w, const kl__schema *s, const kl_value *v)
{
    const char *path = kl_buf_str(&w->path);
    size_t n;
    const char *text = kl_value_strn(v, &n);
    int64_t limit;
    if (limit_of(s, "maxLength", &limit) && (int64_t)runes(text, n) > limit) {
        kl__cause_add(w->causes, "FieldValueTooLong", path,
            "Too long: may not be more than %" PRId64 " byte%s", limit, limit == 1 ? "" : "s");
    } else if (limit_of(s, "minLength", &limit) && (int64_t)runes(text, n) < limit) {
        kl__cause_invalid(
            w->causes, path, v, "%s in body should be at least %" PRId64 " chars long", path, limit);
    } else {
        const kl_regex *re = kl__schema_pattern(s);
        if (re && !kl_regex_matches(re, text, n))
            kl__cause_invalid(w->causes, path, v, "%s in body should match '%s'", path,
                kl_value_str(kl_value_get(s->json, "pattern")));
    }
    if (s->format && !kl__format_fits(s->format, text, n)) {
        char *json = kl_value_to_json(v);
        kl__cause_add(w->causes, "FieldValueTypeInvalid", path,
            "Invalid value: %s: %s in body must be of type %s: %s", json, path,
            kl_value_str(kl_value_get(s->json, "format")), json);
        kl_free(json);
    }
}

/* A bound of an integer is an integer, too: its fraction is ignored. */
typedef struct bound {
    double at;
    bool there, exclusive;
} bound;

static bound bound_of(const kl__schema *s, const kl_value *v, const char *key, const char *exclusive)
{
    const kl_value *json = kl_value_get(s->json, key);
    double at = kl_value_double(json, 0);
    return (bound){.at = kl_value_type(v) == KL_DOUBLE ? at : trunc(at),
        .there = json != NULL,
        .exclusive = exclusive && kl_value_bool(kl_value_get(s->json, exclusive), false)};
}

static void check_number(struct walk *w, const kl__schema *s, const kl_value *v)
{
    const char *path = kl_buf_str(&w->path);
    double x = kl_value_double(v, 0);
    bound step = bound_of(s, v, "multipleOf", NULL), max = bound_of(s, v, "maximum", "exclusiveMaximum"),
          min = bound_of(s, v, "minimum", "exclusiveMinimum");
    if (step.there && step.at > 0 && x / step.at != trunc(x / step.at))
        kl__cause_invalid(w->causes, path, v, "%s in body should be a multiple of %.17g", path, step.at);
    if (max.there && (x > max.at || (max.exclusive && x == max.at)))
        kl__cause_invalid(w->causes, path, v, "%s in body should be less than %s%.17g", path,
            max.exclusive ? "" : "or equal to ", max.at);
    if (min.there && (x < min.at || (min.exclusive && x == min.at)))
        kl__cause_invalid(w->causes, path, v, "%s in body should be greater than %s%.17g", path,
            min.exclusive ? "" : "or equal to ", min.at);
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

/* ------------------------------------------------------------------ what is in it */

static void check_len(struct walk *w, const kl__schema *s, const kl_value *v, const char *min,
    const char *max, const char *unit)
{
    const char *path = kl_buf_str(&w->path);
    int64_t limit, len = (int64_t)kl_value_len(v);
    if (limit_of(s, min, &limit) && len < limit)
        kl__cause_add(w->causes, "FieldValueInvalid", path,
            "Invalid value: %" PRId64 ": %s in body should have at least %" PRId64 " %s", len, path, limit,
            unit);
    if (limit_of(s, max, &limit) && len > limit)
        kl__cause_add(w->causes, "FieldValueTooMany", path,
            "Too many: %" PRId64 ": must have at most %" PRId64 " item%s", len, limit, limit == 1 ? "" : "s");
}

static void walk_list(struct walk *w, const kl__schema *s, const kl_value *v)
{
    size_t mark = w->path.len;
    for (size_t i = 0; i < kl_value_len(v); i++) {
        kl_buf_printf(&w->path, "[%zu]", i);
        walk(w, s->items, kl_value_item(v, i));
        path_cut(w, mark);
    }
    check_len(w, s, v, "minItems", "maxItems", "items");
}

/* The schema of a member. A schema in anyOf and the like may have fields that the object's own lacks. */
static const kl__schema *member_schema(const kl__schema *s, const char *key, size_t n)
{
    const kl__field *f = kl__schema_field(s, key, n);
    return f ? f->schema : s->type == KL_S_LIST ? NULL : s->items;
}

static void check_required(struct walk *w, const kl__schema *s, const kl_value *v)
{
    const kl_value *required = kl_value_get(s->json, "required");
    size_t mark = w->path.len;
    for (size_t i = 0; i < kl_value_len(required); i++) {
        size_t n;
        const char *name = kl_value_strn(kl_value_item(required, i), &n);
        if (!name || kl_value_get(v, name))
            continue;
        path_key(w, name, n);
        kl__cause_required(w->causes, kl_buf_str(&w->path), "");
        path_cut(w, mark);
    }
}

static void walk_object(struct walk *w, const kl__schema *s, const kl_value *v)
{
    size_t mark = w->path.len;
    check_len(w, s, v, "minProperties", "maxProperties", "properties");
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        path_key(w, key, n);
        walk(w, member_schema(s, key, n), x);
        path_cut(w, mark);
    }
    check_required(w, s, v);
}

static void walk(struct walk *w, const kl__schema *s, const kl_value *v)
{
    if (!s || !s->custom)
        return;
    w->checks++;
    if (kl_value_type(v) == KL_NULL && s->nullable) {
        check_enum(w, s, v);
        return;
    }
    if (!s->loose && !right_type(s, v)) {
        const char *path = kl_buf_str(&w->path), *word = type_word(v);
        kl__cause_add(w->causes, "FieldValueTypeInvalid", path,
            "Invalid value: \"%s\": %s in body must be of type %s: \"%s\"", word, path, want_word(s), word);
    }
    check_alternatives(w, s, v);
    switch (kl_value_type(v)) {
    case KL_STRING: check_text(w, s, v); break;
    case KL_INT:
    case KL_UINT:
    case KL_DOUBLE: check_number(w, s, v); break;
    case KL_ARRAY:
        if (s->type == KL_S_LIST)
            walk_list(w, s, v);
        break;
    default: break;
    }
    check_enum(w, s, v);
    if (kl_value_type(v) == KL_OBJECT && s->type != KL_S_LIST)
        walk_object(w, s, v);
}

/* ------------------------------------------------------------------ embedded resources */

static void walk_below(struct walk *w, const kl__schema *s, const kl_value *v,
    void (*visit)(struct walk *w, const kl__schema *s, const kl_value *v))
{
    size_t mark = w->path.len;
    for (size_t i = 0; kl_value_type(v) == KL_ARRAY && s->type == KL_S_LIST && i < kl_value_len(v); i++) {
        kl_buf_printf(&w->path, "[%zu]", i);
        visit(w, s->items, kl_value_item(v, i));
        path_cut(w, mark);
    }
    for (size_t i = 0; kl_value_type(v) == KL_OBJECT && s->type != KL_S_LIST && i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        path_key(w, key, n);
        visit(w, kl__schema_child(s, key, n), x);
        path_cut(w, mark);
    }
}

static void embedded_text(
    struct walk *w, const kl_value *v, const char *key, bool (*fits)(const char *text), const char *why)
{
    const kl_value *x = kl_value_get(v, key);
    const char *text = kl_value_str(x);
    size_t mark = w->path.len;
    path_key(w, key, strlen(key));
    if (!text || !*text)
        kl__cause_required(w->causes, kl_buf_str(&w->path), "");
    else if (!fits(text))
        kl__cause_invalid(w->causes, kl_buf_str(&w->path), x, why, text);
    path_cut(w, mark);
}

static bool is_group_version(const char *text)
{
    const char *slash = strchr(text, '/');
    return !slash || !strchr(slash + 1, '/');
}

/* Whether a text is a kind: a DNS-1035 label in any case. */
static bool is_kind(const char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++) {
        char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        bool letter = c >= 'a' && c <= 'z', digit = c >= '0' && c <= '9';
        if (!letter && !(i && digit) && !(i && i + 1 < n && c == '-'))
            return false;
    }
    return n <= 63;
}

static void walk_embedded(struct walk *w, const kl__schema *s, const kl_value *v)
{
    if (!s || !s->custom)
        return;
    if (s->embedded && kl_value_type(v) == KL_OBJECT) {
        embedded_text(w, v, "apiVersion", is_group_version, "unexpected GroupVersion string: %s");
        embedded_text(w, v, "kind", is_kind,
            "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case "
            "alphanumeric characters or '-', start with an alphabetic character, and end with an "
            "alphanumeric "
            "character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
            "'[a-z]([-a-z0-9]*[a-z0-9])?')");
        kl__validate_metadata_at(kl_buf_str(&w->path), v, w->causes);
    }
    walk_below(w, s, v, walk_embedded);
}

/* ------------------------------------------------------------------ sets and keyed lists */

/* An item as text. Items of keyed lists show only their keys, in the order of the schema. */
static char *item_text(const kl__schema *s, const kl_value *item)
{
    if (s->list == KL_S_SET)
        return kl_value_to_json(item);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (char **key = s->keys; *key; key++)
        if (kl_value_get(item, *key))
            kl_build_kvalue(b, *key, kl_value_get(item, *key));
    kl_build_end(b);
    const kl_value *keys = kl_builder_done(b);
    char *text = kl_value_to_json(keys);
    kl_value_unref(keys);
    return text;
}

/* For each item, how many earlier ones are the same, counted up to two. The caller frees. */
static unsigned char *count_alike(const kl__schema *s, const kl_value *v)
{
    size_t n = kl_value_len(v);
    unsigned char *alike = kl_zalloc(n), *met = kl_zalloc(n); /* met: how often each first one was met */
    bool keyed = s->list != KL_S_SET && *s->keys;
    kl_finder f = {.key = keyed ? s->keys[0] : NULL, .more = keyed ? (const char *const *)s->keys + 1 : NULL};
    for (size_t i = 0; i < n; i++) {
        const kl_value *item = kl_value_item(v, i);
        long first = kl_finder_find(&f, item);
        kl_finder_add(&f, item);
        if (first < 0)
            first = (long)i;
        alike[i] = met[first];
        met[first] += met[first] < 2;
    }
    kl_finder_fini(&f);
    kl_free(met);
    return alike;
}

static void walk_lists(struct walk *w, const kl__schema *s, const kl_value *v)
{
    if (!s || !s->custom)
        return;
    bool list = s->list != KL_S_ATOMIC && kl_value_type(v) == KL_ARRAY && kl_value_len(v) > 1;
    unsigned char *alike = list ? count_alike(s, v) : NULL;
    for (size_t i = 1; list && i < kl_value_len(v); i++) {
        if (alike[i] != 1) /* only the second one is reported */
            continue;
        char *field = kl_sprintf("%s[%zu]", kl_buf_str(&w->path), i),
             *text = item_text(s, kl_value_item(v, i));
        kl__cause_add(w->causes, "FieldValueDuplicate", field, "Duplicate value: %s", text);
        kl_free(field);
        kl_free(text);
    }
    kl_free(alike);
    walk_below(w, s, v, walk_lists);
}

void kl__validate_custom(const kl__schema *s, const kl_value *o, bool only_status, kl__causes *causes)
{
    static void (*const walks[])(struct walk * w, const kl__schema *s, const kl_value *v) = {
        walk, walk_embedded, walk_lists};
    struct walk w = {.causes = causes};
    const kl_value *status = kl_value_get(o, "status");
    if (only_status) {
        s = kl__schema_child(s, "status", 6);
        path_key(&w, "status", 6);
        o = status;
    }
    for (size_t i = 0; o && i < sizeof walks / sizeof *walks; i++)
        walks[i](&w, s, o);
    kl_buf_fini(&w.path);
}
