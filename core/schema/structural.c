/* structural.c - three checks of a schema, one after the other: forbidden keywords (and requirements of
 * lists), whether it is structural, and whether its defaults satisfy it. The third only runs when the second
 * found nothing. */
#include "schema/structural.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/normalize.h"
#include "schema/validate.h"
#include "value/finder.h"

typedef struct look {
    kl__causes *causes;
    kl_buf path;
    bool foreign; /* it uses keywords that structural schemas lack, so the second check is skipped */
} look;

static size_t enter(look *l, const char *fmt, ...) KL_PRINTF(2, 3);
static size_t enter(look *l, const char *fmt, ...)
{
    size_t mark = l->path.len;
    va_list ap;
    va_start(ap, fmt);
    char *more = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_buf_puts(&l->path, more);
    kl_free(more);
    return mark;
}

static const char *leave(look *l, size_t mark)
{
    l->path.len = mark;
    if (l->path.data)
        l->path.data[mark] = 0;
    return kl_buf_str(&l->path);
}

static void required(look *l, const char *field, const char *why)
{
    size_t mark = enter(l, ".%s", field);
    kl__cause_required(l->causes, kl_buf_str(&l->path), why);
    leave(l, mark);
}

static void forbidden(look *l, const char *field, const char *why)
{
    size_t mark = enter(l, ".%s", field);
    char *text = kl_sprintf(": %s", why);
    kl__cause_add(l->causes, "FieldValueForbidden", kl_buf_str(&l->path), "Forbidden%s", text);
    kl_free(text);
    leave(l, mark);
}

static void invalid(look *l, const char *field, const kl_value *v, const char *why)
{
    size_t mark = enter(l, ".%s", field);
    kl__cause_invalid(l->causes, kl_buf_str(&l->path), v, "%s", why);
    leave(l, mark);
}

static void unsupported(look *l, const char *field, const char *word, const char *words)
{
    size_t mark = enter(l, ".%s", field);
    kl__cause_add(l->causes, "FieldValueNotSupported", kl_buf_str(&l->path),
        "Unsupported value: \"%s\": supported values: %s", word, words);
    leave(l, mark);
}

static const char *text_of(const kl_value *json, const char *key)
{
    const char *s = kl_value_str(kl_value_get(json, key));
    return s ? s : "";
}

static bool truth(const kl_value *json, const char *key)
{
    return kl_value_bool(kl_value_get(json, key), false);
}

static bool is(const char *s, const char *word) { return !strcmp(s, word); }

/* Called with each schema directly below one; l->path is its path. */
typedef void visit(look *l, const kl_value *json);

static void each_property(look *l, const kl_value *json, visit *fn)
{
    const kl_value *properties = kl_value_get(json, "properties");
    for (size_t i = 0; i < kl_value_len(properties); i++) {
        const char *key;
        size_t n;
        const kl_value *p = kl_value_member(properties, i, &key, &n);
        size_t mark = enter(l, ".properties[%.*s]", (int)n, key);
        fn(l, p);
        leave(l, mark);
    }
}

static void each_nested(look *l, const kl_value *json, visit *fn)
{
    static const char *const lists[] = {"allOf", "oneOf", "anyOf"};
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        const kl_value *list = kl_value_get(json, lists[k]);
        for (size_t i = 0; i < kl_value_len(list); i++) {
            size_t mark = enter(l, ".%s[%zu]", lists[k], i);
            fn(l, kl_value_item(list, i));
            leave(l, mark);
        }
    }
    if (kl_value_get(json, "not")) {
        size_t mark = enter(l, ".not");
        fn(l, kl_value_get(json, "not"));
        leave(l, mark);
    }
}

static void below(look *l, const kl_value *json, const char *key, visit *fn)
{
    if (kl_value_type(kl_value_get(json, key)) != KL_OBJECT)
        return;
    size_t mark = enter(l, ".%s", key);
    fn(l, kl_value_get(json, key));
    leave(l, mark);
}

/* ------------------------------------------------------------------ what no schema may say */

static void not_supported(look *l, const kl_value *json)
{
    static const char *const words[] = {
        "id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (kl_value_get(json, words[i])) {
            char *why = kl_sprintf("%s is not supported", words[i]);
            forbidden(l, words[i], why);
            kl_free(why);
            l->foreign = true;
        }
}

static void check_type(look *l, const kl_value *json)
{
    const char *type = text_of(json, "type");
    static const char *const types[] = {"array", "boolean", "integer", "number", "object", "string"};
    bool known = !*type;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        known |= is(type, types[i]);
    if (!known)
        unsupported(
            l, "type", type, "\"array\", \"boolean\", \"integer\", \"number\", \"object\", \"string\"");
    if (is(type, "null"))
        forbidden(l, "type", "type cannot be set to null, use nullable as an alternative");
    if (kl_value_type(kl_value_get(json, "items")) == KL_ARRAY)
        forbidden(l, "items", "items must be a schema object and not an array");
}

static void check_pattern(look *l, const kl_value *json)
{
    const kl_value *pattern = kl_value_get(json, "pattern");
    size_t n;
    const char *text = kl_value_strn(pattern, &n);
    kl_regex *re = NULL;
    kl_err err = KL_ERR_INIT;
    if (text && kl_regex_new(text, n, &re, &err)) {
        char *why = kl_sprintf("must be a valid regular expression, but isn't: %s", kl_err_message(&err));
        invalid(l, "pattern", pattern, why);
        kl_free(why);
    }
    kl_regex_free(re);
    kl_err_fini(&err);
}

/* Complains unless the schema has the type that a keyword for maps or lists needs. */
static void must_be(look *l, const kl_value *json, const char *type, const char *why)
{
    if (!kl_value_get(json, "type"))
        required(l, "type", why);
    else if (!is(text_of(json, "type"), type))
        invalid(l, "type", kl_value_get(json, "type"), why);
}

static void check_keys(look *l, const kl_value *json)
{
    const kl_value *keys = kl_value_get(json, "x-kubernetes-list-map-keys"),
                   *items = kl_value_get(json, "items"), *properties = kl_value_get(items, "properties");
    if (!kl_value_len(keys))
        required(l, "x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map");
    if (!items) {
        required(l, "items", "must have a schema if x-kubernetes-list-type is map");
        return;
    }
    if (!is(text_of(items, "type"), "object")) {
        const kl_value *type = kl_value_of_str(text_of(items, "type"));
        invalid(l, "items.type", type, "must be object if parent array's x-kubernetes-list-type is map");
        kl_value_unref(type);
        return;
    }
    kl_finder before = {0};
    for (size_t i = 0; i < kl_value_len(keys); i++) {
        const char *key = kl_value_str(kl_value_item(keys, i));
        const kl_value *p = key ? kl_value_get(properties, key) : NULL;
        bool twice = kl_finder_repeats(&before, kl_value_item(keys, i));
        if (!p) {
            invalid(l, "x-kubernetes-list-map-keys", keys, "entries must all be names of item properties");
        } else if (is(text_of(p, "type"), "array") || is(text_of(p, "type"), "object")) {
            char *field = kl_sprintf("items.properties[%s].type", key);
            invalid(l, field, kl_value_get(items, "type"),
                "must be a scalar type if parent array's x-kubernetes-list-type is map");
            kl_free(field);
        }
        if (twice)
            invalid(l, "x-kubernetes-list-map-keys", keys, "must not contain duplicate entries");
    }
    kl_finder_fini(&before);
}

/* Checks the items of sets and keyed lists. */
static void check_items(look *l, const kl_value *json, bool map)
{
    const kl_value *items = kl_value_get(json, "items"),
                   *keys = kl_value_get(json, "x-kubernetes-list-map-keys");
    if (!items)
        return;
    if (truth(items, "nullable"))
        forbidden(l, "items.nullable",
            map ? "cannot be nullable when x-kubernetes-list-type is map"
                : "cannot be nullable when x-kubernetes-list-type is set");
    for (size_t i = 0; map && i < kl_value_len(keys); i++) {
        const char *key = kl_value_str(kl_value_item(keys, i));
        const kl_value *p = key ? kl_value_at(items, "properties", key, NULL) : NULL;
        if (p && !kl_value_get(p, "default") && !kl_value_has_str(kl_value_get(items, "required"), key)) {
            char *field = kl_sprintf("items.properties[%s].default", key);
            required(l, field,
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required "
                "property");
            kl_free(field);
        }
    }
    const char *type = text_of(items, "type"),
               *kind = is(type, "object") ? "x-kubernetes-map-type" : "x-kubernetes-list-type";
    bool granular = is(type, "object")
        ? !is(text_of(items, kind), "atomic")
        : is(type, "array") && kl_value_get(items, kind) && !is(text_of(items, kind), "atomic");
    if (!map && granular) {
        char *field = kl_sprintf("items.%s", kind);
        invalid(l, field, kl_value_get(items, kind),
            "must be atomic as item of a list with x-kubernetes-list-type=set");
        kl_free(field);
    }
}

static void check_kubernetes(look *l, const kl_value *json)
{
    const char *map = text_of(json, "x-kubernetes-map-type"), *list = text_of(json, "x-kubernetes-list-type");
    const kl_value *preserve = kl_value_get(json, "x-kubernetes-preserve-unknown-fields");
    if (preserve && !kl_value_bool(preserve, true))
        invalid(l, "x-kubernetes-preserve-unknown-fields", preserve, "must be true or undefined");
    if (*map)
        must_be(l, json, "object", "must be object if x-kubernetes-map-type is specified");
    if (*map && !is(map, "atomic") && !is(map, "granular"))
        unsupported(l, "x-kubernetes-map-type", map, "\"atomic\", \"granular\"");
    bool array = is(text_of(json, "type"), "array"), keyed = is(list, "map");
    if (*list && !array)
        must_be(l, json, "array", "must be array if x-kubernetes-list-type is specified");
    else if (*list && !is(list, "atomic") && !is(list, "set") && !keyed)
        unsupported(l, "x-kubernetes-list-type", list, "\"atomic\", \"set\", \"map\"");
    if (kl_value_len(kl_value_get(json, "x-kubernetes-list-map-keys")) && !*list)
        required(l, "x-kubernetes-list-type", "must be map if x-kubernetes-list-map-keys is non-empty");
    else if (kl_value_len(kl_value_get(json, "x-kubernetes-list-map-keys")) && !keyed)
        invalid(l, "x-kubernetes-list-type", kl_value_get(json, "x-kubernetes-list-type"),
            "must be map if x-kubernetes-list-map-keys is non-empty");
    if (keyed)
        check_keys(l, json);
    if (keyed || is(list, "set"))
        check_items(l, json, keyed);
}

static void check_words(look *l, const kl_value *json)
{
    const kl_value *additional = kl_value_get(json, "additionalProperties");
    check_type(l, json);
    check_pattern(l, json);
    not_supported(l, json);
    if (truth(json, "uniqueItems"))
        forbidden(l, "uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic");
    if (additional && kl_value_len(kl_value_get(json, "properties"))
        && (kl_value_type(additional) == KL_OBJECT || !kl_value_bool(additional, true)))
        forbidden(l, "additionalProperties", "additionalProperties and properties are mutual exclusive");
    below(l, json, "additionalProperties", check_words);
    each_property(l, json, check_words);
    each_nested(l, json, check_words);
    below(l, json, "items", check_words);
    check_kubernetes(l, json);
}

/* ------------------------------------------------------------------ structural? */

static void nested(look *l, const kl_value *json)
{
    static const struct {
        const char *key, *why;
    } words[] = {
        {"type", "must be empty to be structural"},
        {"title", "must be empty to be structural"},
        {"description", "must be empty to be structural"},
        {"default", "must be undefined to be structural"},
        {"additionalProperties", "must be undefined to be structural"},
        {"nullable", "must be false to be structural"},
        {"x-kubernetes-preserve-unknown-fields", "must be false to be structural"},
        {"x-kubernetes-embedded-resource", "must be false to be structural"},
        {"x-kubernetes-int-or-string", "must be false to be structural"},
        {"x-kubernetes-list-map-keys", "must be empty to be structural"},
        {"x-kubernetes-list-type", "must be undefined to be structural"},
        {"x-kubernetes-map-type", "must be undefined to be structural"},
        {"x-kubernetes-validations", "must be empty to be structural"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const kl_value *v = kl_value_get(json, words[i].key);
        if (v && !(kl_value_type(v) == KL_BOOL && !kl_value_bool(v, true)))
            forbidden(l, words[i].key, words[i].why);
    }
    if (kl_value_at(json, "properties", "metadata", NULL))
        forbidden(l, "properties[metadata]", "must not be specified in a nested context");
    each_property(l, json, nested);
    below(l, json, "items", nested);
    each_nested(l, json, nested);
}

/* Whether an anyOf is integer or string: int-or-string allows it, although its members have types. */
static bool says_int_or_string(const kl_value *list)
{
    return kl_value_len(list) == 2 && is(text_of(kl_value_item(list, 0), "type"), "integer")
        && is(text_of(kl_value_item(list, 1), "type"), "string") && kl_value_len(kl_value_item(list, 0)) == 1
        && kl_value_len(kl_value_item(list, 1)) == 1;
}

static void check_nested(look *l, const kl_value *json)
{
    const kl_value *all = kl_value_get(json, "allOf"), *bare = kl_value_ref(json);
    bool either = truth(json, "x-kubernetes-int-or-string");
    if (either && says_int_or_string(kl_value_get(json, "anyOf"))) {
        const kl_value *without = kl_value_with(bare, "anyOf", NULL);
        kl_value_unref(bare);
        bare = without;
    } else if (either && says_int_or_string(kl_value_get(kl_value_item(all, 0), "anyOf"))) {
        size_t mark = enter(l, ".allOf");
        for (size_t i = 1; i < kl_value_len(all); i++) {
            size_t one = enter(l, "[%zu]", i);
            nested(l, kl_value_item(all, i));
            leave(l, one);
        }
        leave(l, mark);
        const kl_value *without = kl_value_with(bare, "allOf", NULL);
        kl_value_unref(bare);
        bare = without;
    }
    each_nested(l, bare, nested);
    kl_value_unref(bare);
}

static void check_embedded(look *l, const kl_value *json)
{
    static const char why[] = "must be object if x-kubernetes-embedded-resource is true";
    const char *type = text_of(json, "type");
    if (!*type)
        required(l, "type", why);
    else if (!is(type, "object"))
        invalid(l, "type", kl_value_get(json, "type"), why);
    if (kl_value_get(json, "additionalProperties"))
        forbidden(l, "additionalProperties", "must not be used if x-kubernetes-embedded-resource is set");
    if (!truth(json, "x-kubernetes-preserve-unknown-fields")
        && !kl_value_len(kl_value_get(json, "properties")))
        required(l, "properties",
            "must not be empty if x-kubernetes-embedded-resource is true without "
            "x-kubernetes-preserve-unknown-fields");
}

/* Checks the fields that every resource has in the schema of a resource. */
static void check_type_meta(look *l, const kl_value *json)
{
    static const char *const texts[] = {"kind", "apiVersion"};
    for (size_t i = 0; i < 2; i++) {
        const kl_value *p = kl_value_at(json, "properties", texts[i], NULL);
        if (p && !is(text_of(p, "type"), "string")) {
            char *field = kl_sprintf("properties[%s].type", texts[i]);
            invalid(l, field, kl_value_get(p, "type"), "must be string");
            kl_free(field);
        }
    }
    const kl_value *meta = kl_value_at(json, "properties", "metadata", NULL),
                   *properties = kl_value_get(meta, "properties");
    if (meta && !is(text_of(meta, "type"), "object"))
        invalid(l, "properties[metadata].type", kl_value_get(meta, "type"), "must be object");
    for (size_t i = 0; i < kl_value_len(properties); i++) {
        const char *key;
        size_t n;
        kl_value_member(properties, i, &key, &n);
        if (!is(key, "name") && !is(key, "generateName")) {
            forbidden(l, "properties[metadata]",
                "must not specify anything other than name and generateName, but metadata is implicitly "
                "specified");
            return;
        }
    }
}

typedef enum level { ROOT, FIELD, ITEM } level;

static void check_structure(look *l, const kl_value *json, level at);
static void check_field(look *l, const kl_value *json) { check_structure(l, json, FIELD); }
static void check_item(look *l, const kl_value *json) { check_structure(l, json, ITEM); }

static void check_structure(look *l, const kl_value *json, level at)
{
    static const char *const empty[] = {"must not be empty at the root",
        "must not be empty for specified object fields", "must not be empty for specified array items"};
    bool embedded = truth(json, "x-kubernetes-embedded-resource"),
         either = truth(json, "x-kubernetes-int-or-string"),
         preserve = truth(json, "x-kubernetes-preserve-unknown-fields");
    below(l, json, "items", check_item);
    each_property(l, json, check_field);
    if (at == ROOT && kl_value_get(json, "additionalProperties"))
        forbidden(l, "additionalProperties", "must not be used at the root");
    below(l, json, "additionalProperties", check_field);
    if (either && preserve)
        invalid(l, "x-kubernetes-preserve-unknown-fields",
            kl_value_get(json, "x-kubernetes-preserve-unknown-fields"),
            "must be false if x-kubernetes-int-or-string is true");
    if (either && embedded)
        invalid(l, "x-kubernetes-embedded-resource", kl_value_get(json, "x-kubernetes-embedded-resource"),
            "must be false if x-kubernetes-int-or-string is true");
    check_nested(l, json);
    if (embedded)
        check_embedded(l, json);
    else if (!*text_of(json, "type") && !either && !preserve)
        required(l, "type", empty[at]);
    if (is(text_of(json, "type"), "array") && !kl_value_get(json, "items"))
        required(l, "items", "must be specified");
    if (at == ROOT && *text_of(json, "type") && !is(text_of(json, "type"), "object"))
        invalid(l, "type", kl_value_get(json, "type"), "must be object at the root");
    if (at == ROOT || embedded)
        check_type_meta(l, json);
}

static int by_text(const void *a, const void *b)
{
    const struct kl__cause *x = a, *y = b;
    int c = strcmp(x->field, y->field);
    return c ? c : strcmp(x->message, y->message);
}

/* ------------------------------------------------------------------ defaults */

static void check_default(look *l, const kl_value *v, const kl__schema *s)
{
    kl__unknown unknown = {0};
    kl__causes causes = {0};
    const kl_value *pruned = NULL;
    size_t mark = enter(l, ".default");
    if (!kl__normalize(s, v, false, &unknown, &pruned, NULL) && unknown.count)
        kl__cause_invalid(l->causes, kl_buf_str(&l->path), v, "must not have unknown fields");
    kl_value_unref(pruned);
    kl__unknown_fini(&unknown);
    if (kl_value_type(v) != KL_NULL)
        kl__validate_custom(s, v, false, &causes);
    for (size_t i = 0; i < causes.kept; i++) {
        char *field = causes.v[i].field;
        if (is(field, "<nil>"))
            continue;
        causes.v[i].field = kl_sprintf("%s%s%s", kl_buf_str(&l->path), *field ? "." : "", field);
        kl_free(field);
    }
    kl__causes_join(l->causes, &causes);
    leave(l, mark);
}

static void check_defaults(look *l, const kl_value *json, const kl__schema *s, bool in_metadata)
{
    const kl_value *dflt = kl_value_get(json, "default"), *properties = kl_value_get(json, "properties"),
                   *additional = kl_value_get(json, "additionalProperties");
    if (!s || !s->custom)
        s = NULL;
    if (dflt && in_metadata)
        forbidden(l, "default", "must not be set in top-level metadata");
    else if (dflt && s)
        check_default(l, dflt, s);
    for (size_t i = 0; i < kl_value_len(properties); i++) {
        const char *key;
        size_t n;
        const kl_value *p = kl_value_member(properties, i, &key, &n);
        const kl__field *f = kl__schema_field(s, key, n);
        size_t mark = enter(l, ".properties[%.*s]", (int)n, key);
        check_defaults(l, p, f ? f->schema : NULL, in_metadata || (s && f && !f->schema->custom));
        leave(l, mark);
    }
    const kl_value *item = kl_value_get(json, "items");
    const char *word = item ? "items" : "additionalProperties";
    item = item ? item : additional;
    if (kl_value_type(item) == KL_OBJECT) {
        size_t mark = enter(l, ".%s", word);
        check_defaults(l, item, s ? s->items : NULL, in_metadata);
        leave(l, mark);
    }
}

/* ------------------------------------------------------------------ the three */

/* Checks the structure. The causes are sorted, as by the real server. */
static void shape(look *l, const kl_value *json)
{
    kl__causes *causes = l->causes, structure = {0};
    l->causes = &structure;
    check_structure(l, json, ROOT);
    l->causes = causes;
    if (structure.kept)
        qsort(structure.v, structure.kept, sizeof *structure.v, by_text);
    kl__causes_join(causes, &structure);
}

bool kl__structural_shape(const char *path, const kl_value *json, kl__causes *causes)
{
    kl__causes words = {0};
    look l = {.causes = &words};
    kl_buf_puts(&l.path, path);
    check_words(&l, json);
    kl__causes_fini(&words);
    l.causes = causes;
    if (!l.foreign)
        shape(&l, json);
    kl_buf_fini(&l.path);
    return !l.foreign;
}

void kl__structural_validate(
    const char *path, const kl_value *json, const kl__types *builtin, kl__causes *causes)
{
    look l = {.causes = causes};
    kl__types *types = NULL;
    kl_buf_puts(&l.path, path);
    check_words(&l, json);
    size_t before = causes->len;
    if (!l.foreign)
        shape(&l, json);
    if (!l.foreign && causes->len == before && !kl__types_of_crd(json, builtin, &types, NULL))
        check_defaults(&l, json, kl__types_root(types), false);
    kl__types_free(types);
    kl_buf_fini(&l.path);
}

typedef struct formats {
    look l;
    void (*warn)(void *arg, const char *format);
    void *arg;
} formats;

static void each_format(look *l, const kl_value *json)
{
    formats *f = (formats *)l;
    const char *format = text_of(json, "format");
    if (*format && is(text_of(json, "type"), "string") && !kl__format_get(format))
        f->warn(f->arg, format);
    each_property(l, json, each_format);
    below(l, json, "items", each_format);
    below(l, json, "additionalProperties", each_format);
}

void kl__structural_formats(const kl_value *json, void (*warn)(void *arg, const char *format), void *arg)
{
    formats f = {.warn = warn, .arg = arg};
    each_format(&f.l, json);
    kl_buf_fini(&f.l.path);
}
