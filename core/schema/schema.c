/* schema.c - builds schema trees: from the text of the built-in types and from the JSON schemas of CRDs.
 *
 * The text uses types before their definition, so it is read twice: first every name gets its node, then the
 * fields are filled in. */
#include "schema/schema.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "schema/builtin.h"

struct kl__types {
    kl_map *named;      /* built-in name to node */
    kl__schema **nodes; /* every node, to free them */
    size_t len, cap;
    const kl__schema *root;
};

const kl__schema kl__schema_any = {.type = KL_S_ANY, .preserve = true};

static kl__schema *node_new(kl__types *t, kl__stype type)
{
    kl__schema *s = kl_new(kl__schema);
    s->type = type;
    if (t->len == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 64;
        t->nodes = kl_realloc(t->nodes, t->cap * sizeof *t->nodes);
    }
    t->nodes[t->len++] = s;
    return s;
}

static kl__types *types_new(void)
{
    kl__types *t = kl_new(kl__types);
    t->named = kl_map_new();
    return t;
}

void kl__types_free(kl__types *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->len; i++) {
        kl__schema *s = t->nodes[i];
        for (size_t k = 0; k < s->nfields; k++) {
            kl_free(s->fields[k].name);
            kl_free(s->fields[k].go);
        }
        for (char **k = s->keys; k && *k; k++)
            kl_free(*k);
        kl_free(s->keys);
        kl_free(s->fields);
        kl_free(s->name);
        kl_free(s->patch_key);
        kl_value_unref(s->dflt);
        kl_value_unref(s->json);
        kl_free((void *)s->any_of);
        kl_free((void *)s->one_of);
        kl_free((void *)s->all_of);
        kl_regex_free(atomic_load(&s->pattern));
        kl_free(s);
    }
    kl_free(t->nodes);
    kl_map_free(t->named, NULL);
    kl_free(t);
}

const kl__schema *kl__types_get(const kl__types *t, const char *name) { return kl_map_get(t->named, name); }
const kl__schema *kl__types_root(const kl__types *t) { return t->root; }

static int by_name(const void *a, const void *b)
{
    return strcmp(((const kl__field *)a)->name, ((const kl__field *)b)->name);
}

/* The new field is borrowed until the next one comes. */
static kl__field *add_field(kl__schema *s, char *name, const kl__schema *child)
{
    s->fields = kl_realloc(s->fields, (s->nfields + 1) * sizeof *s->fields);
    s->fields[s->nfields] = (kl__field){.name = name, .schema = child};
    return &s->fields[s->nfields++];
}

static void split_keys(kl__schema *s, const char *text, size_t n)
{
    size_t count = 1;
    for (size_t i = 0; i < n; i++)
        count += text[i] == ',';
    s->keys = kl_new_array(char *, count + 1);
    const char *end = text + n;
    for (size_t k = 0; k < count; k++) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        if (!comma)
            comma = end;
        s->keys[k] = kl_strndup(text, (size_t)(comma - text));
        text = comma + 1;
    }
}

/* ------------------------------------------------------------------ built-in types from text */

/* Reads a type expression up to ';', ']', '}' or the end; returns its node. */
static kl__schema *text_type(kl__types *t, const char **at, const char *end)
{
    const char *p = *at;
    kl__schema *s;
    if (*p == '[' || *p == '{') {
        bool list = *p == '[';
        *at = p + 1;
        const kl__schema *items = text_type(t, at, end);
        (*at)++;
        s = node_new(t, list ? KL_S_LIST : KL_S_MAP);
        s->items = items;
        return s;
    }
    size_t n = strcspn(p, ";]} ");
    if (n > (size_t)(end - p))
        n = (size_t)(end - p);
    *at = p + n;
    if (n > 1) {
        char *name = kl_strndup(p, n);
        s = kl_map_get(t->named, name);
        if (!s)
            kl_mem_die("a built-in type refers to a type that does not exist");
        kl_free(name);
        return s;
    }
    static const struct {
        char letter;
        kl__stype type;
    } letters[] = {
        {'s', KL_S_STRING},
        {'i', KL_S_INT},
        {'j', KL_S_INT},
        {'n', KL_S_NUMBER},
        {'b', KL_S_BOOL},
        {'q', KL_S_QUANTITY},
        {'t', KL_S_TIME},
        {'m', KL_S_MICROTIME},
        {'B', KL_S_BYTES},
        {'x', KL_S_INT_OR_STRING},
        {'o', KL_S_ANY},
    };
    s = node_new(t, KL_S_ANY);
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].letter == *p)
            s->type = letters[i].type;
    s->narrow = *p == 'j';
    s->atomic = s->preserve = s->type == KL_S_ANY;
    return s;
}

static bool flag_is(const char *flag, size_t n, const char *word)
{
    return n == strlen(word) && !memcmp(flag, word, n);
}

static bool flag_value(const char *flag, size_t n, const char *word, const char **value, size_t *len)
{
    size_t w = strlen(word);
    if (n < w || memcmp(flag, word, w))
        return false;
    *value = flag + w;
    *len = n - w;
    return true;
}

static void text_field(kl__types *t, kl__schema *owner, const char *p, const char *end)
{
    const char *colon = memchr(p, ':', (size_t)(end - p));
    char *name = kl_strndup(p, (size_t)(colon - p));
    p = colon + 1;
    kl__schema *s = text_type(t, &p, end);
    kl__field *f = add_field(owner, name, s);
    while (p < end && *p == ';') {
        p++;
        const char *stop = memchr(p, ';', (size_t)(end - p)), *value;
        size_t n = (size_t)((stop ? stop : end) - p), len;
        if (flag_is(p, n, "r"))
            f->present = true;
        else if (flag_is(p, n, "d"))
            f->present = f->filled = true;
        else if (flag_is(p, n, "o"))
            f->omitted = true;
        else if (flag_is(p, n, "z"))
            f->zero = true;
        else if (flag_is(p, n, "n"))
            f->null = true;
        else if (flag_is(p, n, "set"))
            s->list = KL_S_SET;
        else if (flag_is(p, n, "atomic"))
            s->atomic = true;
        else if (flag_is(p, n, "retain"))
            f->retain = true;
        else if (flag_value(p, n, "key=", &value, &len)) {
            s->list = KL_S_KEYED;
            split_keys(s, value, len);
        } else if (flag_value(p, n, "patch=", &value, &len)) {
            s->patch_merge = true;
            s->patch_key = len ? kl_strndup(value, len) : NULL;
        } else if (flag_value(p, n, "go=", &value, &len)) {
            f->go = kl_strndup(value, len);
        } else if (flag_value(p, n, "default=", &value, &len)) {
            char *text = kl_strndup(value, len);
            s->dflt = s->type == KL_S_INT ? kl_value_of_int(strtoll(text, NULL, 10)) : kl_value_of_str(text);
            kl_free(text);
        }
        p += n;
    }
}

static bool has_nulls(const kl__schema *s)
{
    bool yes = s->items && s->items->nulls;
    for (size_t i = 0; i < s->nfields && !yes; i++)
        yes = s->fields[i].schema->nulls || (s->fields[i].null && s->fields[i].schema->type == KL_S_LIST);
    return yes;
}

/* Types may be recursive: it looks at them until nothing changes. */
static void mark_nulls(kl__types *t)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = t->len; i-- > 0;)
            if (!t->nodes[i]->nulls && has_nulls(t->nodes[i]))
                changed = t->nodes[i]->nulls = true;
    }
}

kl__types *kl__types_builtin(void)
{
    kl__types *t = types_new();
    for (const char *const *line = kl__builtin_types; *line; line++) {
        kl__schema *s = node_new(t, KL_S_STRUCT);
        size_t n = strcspn(*line, "; ");
        char *name = kl_strndup(*line, n);
        kl_map_set(t->named, name, s);
        s->name = kl_strndup(name, strcspn(name, "+")); /* "NAME+" has owners of its single fields */
        s->atomic = !strncmp(*line + n, ";atomic", 7);
        kl_free(name);
    }
    for (const char *const *line = kl__builtin_types; *line; line++) {
        size_t n = strcspn(*line, "; ");
        char *name = kl_strndup(*line, n);
        kl__schema *s = kl_map_get(t->named, name);
        kl_free(name);
        const char *p = *line + strcspn(*line, " ");
        while (*p == ' ') {
            p++;
            size_t len = strcspn(p, " ");
            if (len)
                text_field(t, s, p, p + len);
            p += len;
        }
        qsort(s->fields, s->nfields, sizeof *s->fields, by_name);
    }
    mark_nulls(t);
    return t;
}

/* ------------------------------------------------------------------ custom resources from JSON schemas */

static bool truth(const kl_value *json, const char *key)
{
    return kl_value_bool(kl_value_get(json, key), false);
}

static bool says(const kl_value *json, const char *key, const char *word)
{
    const char *text = kl_value_str(kl_value_get(json, key));
    return text && !strcmp(text, word);
}

static bool is_required(const kl_value *required, const char *name)
{
    for (size_t i = 0; i < kl_value_len(required); i++) {
        const char *text = kl_value_str(kl_value_item(required, i));
        if (text && !strcmp(text, name))
            return true;
    }
    return false;
}

static kl__schema *json_node(kl__types *t, const kl_value *json);

/* A node of anyOf, oneOf, allOf or not: without a type, its members determine it. */
static const kl__schema *nested_node(kl__types *t, const kl_value *json)
{
    kl__schema *s = json_node(t, json);
    const kl_value *items = kl_value_get(json, "items");
    s->loose = s->type == KL_S_ANY;
    if (s->loose && items) {
        s->type = KL_S_LIST;
        s->items = json_node(t, items);
        ((kl__schema *)s->items)->loose = s->items->type == KL_S_ANY;
    } else if (s->loose && (s->nfields || s->items)) {
        s->type = KL_S_STRUCT;
    }
    return s;
}

static const kl__schema **nested_nodes(kl__types *t, const kl_value *list)
{
    size_t n = kl_value_len(list);
    if (!n)
        return NULL;
    const kl__schema **nodes = kl_new_array(const kl__schema *, n + 1);
    for (size_t i = 0; i < n; i++)
        nodes[i] = nested_node(t, kl_value_item(list, i));
    return nodes;
}

/* Nesting is bounded by KL_VALUE_DEPTH_MAX, the depth of the CRD itself. */
static kl__schema *json_node(kl__types *t, const kl_value *json)
{
    static const struct {
        const char *word;
        kl__stype type;
    } types[] = {
        {"object", KL_S_STRUCT},
        {"array", KL_S_LIST},
        {"string", KL_S_STRING},
        {"integer", KL_S_INT},
        {"number", KL_S_NUMBER},
        {"boolean", KL_S_BOOL},
    };
    kl__schema *s = node_new(t, KL_S_ANY);
    s->custom = true;
    s->json = kl_value_ref(json);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (says(json, "type", types[i].word))
            s->type = types[i].type;
    if (truth(json, "x-kubernetes-int-or-string"))
        s->type = KL_S_INT_OR_STRING;
    s->preserve = truth(json, "x-kubernetes-preserve-unknown-fields") || s->type == KL_S_ANY;
    s->nullable = truth(json, "nullable");
    s->embedded = truth(json, "x-kubernetes-embedded-resource");
    s->dflt = kl_value_ref(kl_value_get(json, "default"));
    s->atomic = says(json, "x-kubernetes-map-type", "atomic");
    const char *format = kl_value_str(kl_value_get(json, "format"));
    s->format = format ? kl__format_get(format) : NULL;
    s->any_of = nested_nodes(t, kl_value_get(json, "anyOf"));
    s->one_of = nested_nodes(t, kl_value_get(json, "oneOf"));
    s->all_of = nested_nodes(t, kl_value_get(json, "allOf"));
    if (kl_value_get(json, "not"))
        s->not_ = nested_node(t, kl_value_get(json, "not"));
    if (s->type == KL_S_LIST) {
        const kl_value *items = kl_value_get(json, "items");
        s->items = items ? json_node(t, items) : &kl__schema_any;
        if (says(json, "x-kubernetes-list-type", "set"))
            s->list = KL_S_SET;
        if (says(json, "x-kubernetes-list-type", "map")) {
            const kl_value *keys = kl_value_get(json, "x-kubernetes-list-map-keys");
            s->list = KL_S_KEYED;
            s->keys = kl_new_array(char *, kl_value_len(keys) + 1);
            for (size_t i = 0, n = 0; i < kl_value_len(keys); i++) {
                const char *key = kl_value_str(kl_value_item(keys, i));
                if (key)
                    s->keys[n++] = kl_strdup(key);
            }
        }
        return s;
    }
    const kl_value *properties = kl_value_get(json, "properties"),
                   *additional = kl_value_get(json, "additionalProperties");
    for (size_t i = 0; i < kl_value_len(properties); i++) {
        const char *key;
        size_t n;
        const kl_value *child = kl_value_member(properties, i, &key, &n);
        kl__field *f = add_field(s, kl_strndup(key, n), json_node(t, child));
        f->required = is_required(kl_value_get(json, "required"), key);
    }
    if (s->nfields)
        qsort(s->fields, s->nfields, sizeof *s->fields, by_name);
    if (kl_value_type(additional) == KL_OBJECT)
        s->items = json_node(t, additional);
    else if (kl_value_bool(additional, false))
        s->items = &kl__schema_any;
    if (s->type == KL_S_STRUCT && s->items && !s->nfields)
        s->type = KL_S_MAP;
    return s;
}

static void set_field(kl__schema *s, const char *name, const kl__schema *child)
{
    for (size_t i = 0; i < s->nfields; i++)
        if (!strcmp(s->fields[i].name, name)) {
            s->fields[i].schema = child;
            return;
        }
    add_field(s, kl_strdup(name), child);
    qsort(s->fields, s->nfields, sizeof *s->fields, by_name);
}

kl_status kl__types_of_crd(const kl_value *json, const kl__types *builtin, kl__types **out, kl_err *err)
{
    const char *type = kl_value_str(kl_value_get(json, "type"));
    if (json && (!type || strcmp(type, "object")))
        return kl_fail(err, KL_EREJECTED,
            "openAPIV3Schema.type: Invalid value: \"%s\": must be object at the root", type ? type : "");
    kl__types *t = types_new();
    kl__schema *root;
    if (json)
        root = json_node(t, json);
    else {
        root = node_new(t, KL_S_STRUCT);
        root->preserve = root->custom = true;
    }
    root->type = KL_S_STRUCT;
    kl__schema *text = node_new(t, KL_S_STRING);
    set_field(root, "apiVersion", text);
    set_field(root, "kind", text);
    set_field(root, "metadata", kl__types_get(builtin, "meta.v1.ObjectMeta"));
    for (size_t i = 0; i < t->len; i++)
        t->nodes[i]->meta = kl__types_get(builtin, "meta.v1.ObjectMeta");
    t->root = root;
    *out = t;
    return KL_OK;
}

/* ------------------------------------------------------------------ reading */

const kl_regex *kl__schema_pattern(const kl__schema *s)
{
    size_t n = 0;
    const char *text = kl_value_strn(kl_value_get(s->json, "pattern"), &n);
    return text ? kl_regex_once((_Atomic(kl_regex *) *)&s->pattern, text, n) : NULL;
}

const kl__field *kl__schema_field(const kl__schema *s, const char *key, size_t n)
{
    size_t lo = 0, hi = s ? s->nfields : 0;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        const char *name = s->fields[mid].name;
        size_t len = strlen(name);
        int c = memcmp(name, key, len < n ? len : n); /* a key may hold NUL */
        if (!c)
            c = (len > n) - (len < n);
        if (!c)
            return &s->fields[mid];
        if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

const kl__schema *kl__schema_child(const kl__schema *s, const char *key, size_t n)
{
    if (!s || s->type == KL_S_ANY) {
        const kl__field *known = kl__schema_field(s, key, n);
        return known ? known->schema : &kl__schema_any;
    }
    const kl__field *f = kl__schema_field(s, key, n);
    if (f)
        return f->schema;
    if (s->items && s->type != KL_S_LIST)
        return s->items;
    return s->preserve ? &kl__schema_any : NULL;
}
