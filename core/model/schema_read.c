/* schema_read.c - an OpenAPI v3 document becomes a schema.
 *
 * Every definition gets its node first, because they refer to each other; then each is filled in. Small
 * schemas without fields (a string, a list of strings) are one node however often they are written. Documents
 * come from servers of all versions: unknown constructs allow everything. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/schema_impl.h"

#define FIELDS_MAX 1000000
#define REF "#/components/schemas/"

/* Growing arrays, and the nodes made so far. */
typedef struct reader {
    kl__snode *nodes;
    kl__sfield *fields;
    kl__skind *kinds;
    uint32_t n_nodes, cap_nodes, n_fields, cap_fields, n_kinds, cap_kinds;
    kl_buf names;
    kl_map *offsets;     /* name -> its offset + 1 */
    kl_map *leaves;      /* "types/flags/items" -> its node + 1 */
    kl_map *definitions; /* name -> its node + 1 */
    bool too_big;
} reader;

#define GROW(r, what)                                                                                        \
    do {                                                                                                     \
        if ((r)->n_##what == (r)->cap_##what) {                                                              \
            (r)->cap_##what = (r)->cap_##what ? 2 * (r)->cap_##what : 256;                                   \
            (r)->what = kl_realloc((r)->what, (r)->cap_##what * sizeof *(r)->what);                          \
        }                                                                                                    \
    } while (0)

static uint32_t name_of(reader *r, const char *text, size_t n)
{
    char *key = kl_strndup(text, n);
    uintptr_t at = (uintptr_t)kl_map_get(r->offsets, key);
    if (!at) {
        at = r->names.len + 1;
        kl_buf_add(&r->names, key, strlen(key) + 1);
        kl_map_set(r->offsets, key, (void *)at);
    }
    kl_free(key);
    return (uint32_t)(at - 1);
}

static uint32_t node_new(reader *r, kl__snode x)
{
    GROW(r, nodes);
    r->nodes[r->n_nodes] = x;
    return r->n_nodes++;
}

static uint32_t leaf(reader *r, kl__snode x)
{
    char key[64];
    snprintf(key, sizeof key, "%u/%u/%u", x.types, x.flags, x.items);
    uintptr_t at = (uintptr_t)kl_map_get(r->leaves, key);
    if (!at) {
        at = (uintptr_t)node_new(r, x) + 1;
        kl_map_set(r->leaves, key, (void *)at);
    }
    return (uint32_t)(at - 1);
}

/* --- one schema --------------------------------------------------------------------------- */

static bool truth(const kl_value *v, const char *key) { return kl_value_bool(kl_value_get(v, key), false); }

static unsigned type_named(const char *name)
{
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {
        {"string", KL__STRING},
        {"integer", KL__INTEGER},
        {"number", KL__NUMBER},
        {"boolean", KL__BOOLEAN},
        {"array", KL__ARRAY},
        {"object", KL__OBJECT},
    };
    for (size_t i = 0; name && i < sizeof types / sizeof *types; i++)
        if (!strcmp(name, types[i].name))
            return types[i].type;
    return 0;
}

/* anyOf and oneOf: all their types, or any when one of them has none. */
static unsigned types_of_any(const kl_value *list)
{
    unsigned all = 0;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        unsigned one = type_named(kl_value_str_at(kl_value_item(list, i), "type", NULL));
        if (!one)
            return 0;
        all |= one;
    }
    return all;
}

static unsigned types_of(const kl_value *v)
{
    const char *format = kl_value_str_at(v, "format", NULL);
    if (truth(v, "x-kubernetes-int-or-string") || (format && !strcmp(format, "int-or-string")))
        return KL__INTEGER | KL__STRING;
    unsigned types = type_named(kl_value_str_at(v, "type", NULL));
    if (!types)
        types = types_of_any(kl_value_get(v, "oneOf"));
    return types ? types : types_of_any(kl_value_get(v, "anyOf"));
}

/* The definition that a schema refers to, directly or with a description beside it; NO_NODE: none. */
static uint32_t referred(const reader *r, const kl_value *v)
{
    const char *ref = kl_value_str_at(v, "$ref", NULL);
    const kl_value *all = kl_value_get(v, "allOf");
    for (size_t i = 0; !ref && i < kl_value_len(all); i++)
        ref = kl_value_str_at(kl_value_item(all, i), "$ref", NULL);
    if (!ref)
        return KL__NO_NODE;
    uintptr_t at = strncmp(ref, REF, sizeof REF - 1)
        ? 0
        : (uintptr_t)kl_map_get(r->definitions, ref + sizeof REF - 1);
    return at ? (uint32_t)(at - 1) : 0;
}

static uint32_t read_schema(reader *r, const kl_value *v);

static int by_name(const void *a, const void *b, void *names)
{
    return strcmp((const char *)names + ((const kl__sfield *)a)->name,
        (const char *)names + ((const kl__sfield *)b)->name);
}

/* The fields of a node lie side by side, so those of its children come first. */
static void read_fields(reader *r, const kl_value *properties, kl__snode *x)
{
    uint32_t n = (uint32_t)kl_value_len(properties);
    kl__sfield *own = kl_new_array(kl__sfield, n ? n : 1);
    for (uint32_t i = 0; i < n; i++) {
        const char *key;
        size_t len;
        const kl_value *child = kl_value_member(properties, i, &key, &len);
        own[i].node = read_schema(r, child);
        own[i].name = name_of(r, key, len);
    }
    qsort_r(own, n, sizeof *own, by_name, r->names.data);
    x->first = r->n_fields;
    x->n = n;
    r->too_big = r->too_big || r->n_fields > FIELDS_MAX - (n < FIELDS_MAX ? n : FIELDS_MAX);
    for (uint32_t i = 0; i < n && !r->too_big; i++) {
        GROW(r, fields);
        r->fields[r->n_fields++] = own[i];
    }
    kl_free(own);
}

/* Reads one schema. The recursion is as deep as the document: KL_VALUE_DEPTH_MAX at most. */
static kl__snode read_node(reader *r, const kl_value *v)
{
    kl__snode x = {.types = (uint16_t)types_of(v), .items = KL__NO_NODE};
    const kl_value *properties = kl_value_get(v, "properties"),
                   *more = kl_value_get(v, "additionalProperties"), *items = kl_value_get(v, "items");
    if (truth(v, "x-kubernetes-preserve-unknown-fields") || !(x.types & KL__OBJECT))
        x.flags |= KL__OPEN;
    if (truth(v, "x-kubernetes-embedded-resource"))
        x.flags |= KL__EMBEDDED;
    if (kl_value_type(more) == KL_OBJECT)
        x.items = read_schema(r, more);
    else if (kl_value_bool(more, false))
        x.items = 0;
    else if ((x.types & KL__ARRAY) && kl_value_type(items) == KL_OBJECT)
        x.items = read_schema(r, items);
    else if (x.types & KL__ARRAY)
        x.items = 0;
    if (kl_value_type(properties) == KL_OBJECT && kl_value_len(properties))
        read_fields(r, properties, &x);
    else if (x.items == KL__NO_NODE)
        x.flags |= KL__OPEN; /* an object without known fields */
    return x;
}

static uint32_t read_schema(reader *r, const kl_value *v)
{
    uint32_t other = referred(r, v);
    if (other != KL__NO_NODE)
        return other;
    kl__snode x = read_node(r, v);
    return x.n ? node_new(r, x) : leaf(r, x);
}

/* --- the document ------------------------------------------------------------------------- */

static void read_kinds(reader *r, const kl_value *definition, uint32_t node)
{
    const kl_value *list = kl_value_get(definition, "x-kubernetes-group-version-kind");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *g = kl_value_item(list, i);
        const char *group = kl_value_str_at(g, "group", NULL), *version = kl_value_str_at(g, "version", NULL),
                   *kind = kl_value_str_at(g, "kind", NULL);
        if (!version || !kind)
            continue;
        char *text = kl_sprintf("%s/%s/%s", group ? group : "", version, kind);
        GROW(r, kinds);
        r->kinds[r->n_kinds++] = (kl__skind){name_of(r, text, strlen(text)), node};
        kl_free(text);
    }
}

static int by_text(const void *a, const void *b, void *names)
{
    return strcmp((const char *)names + ((const kl__skind *)a)->text,
        (const char *)names + ((const kl__skind *)b)->text);
}

static void read_definitions(reader *r, const kl_value *schemas)
{
    const char *key;
    size_t n;
    node_new(r, (kl__snode){.flags = KL__OPEN, .items = 0}); /* anything */
    for (size_t i = 0; i < kl_value_len(schemas); i++) {
        kl_value_member(schemas, i, &key, &n);
        kl_map_set(r->definitions, key,
            (void *)((uintptr_t)node_new(r, (kl__snode){.flags = KL__OPEN, .items = 0}) + 1));
    }
    for (size_t i = 0; i < kl_value_len(schemas) && !r->too_big; i++) {
        const kl_value *v = kl_value_member(schemas, i, &key, &n);
        uint32_t at = (uint32_t)((uintptr_t)kl_map_get(r->definitions, key) - 1), other = referred(r, v);
        kl__snode x = other == KL__NO_NODE ? read_node(r, v) : r->nodes[other];
        r->nodes[at] = x;
        read_kinds(r, v, at);
    }
    if (r->n_kinds)
        qsort_r(r->kinds, r->n_kinds, sizeof *r->kinds, by_text, r->names.data);
}

static void *put(void *to, const void *from, size_t n)
{
    if (n)
        memcpy(to, from, n);
    return (char *)to + n;
}

static kl_status pack(const reader *r, kl_schema **out, kl_err *err)
{
    size_t n = sizeof(kl__shead) + r->n_nodes * sizeof *r->nodes + r->n_fields * sizeof *r->fields
        + r->n_kinds * sizeof *r->kinds + r->names.len;
    if (r->too_big || kl_buf_status(&r->names) || n > UINT32_MAX)
        return kl_fail(err, KL_ETOOBIG, "the OpenAPI document has more than %d fields", FIELDS_MAX);
    kl__shead *piece = kl_alloc(n);
    *piece = (kl__shead){
        KL__SCHEMA_MAGIC, (uint32_t)n, r->n_nodes, r->n_fields, r->n_kinds, (uint32_t)r->names.len};
    void *to = piece + 1;
    to = put(to, r->nodes, r->n_nodes * sizeof *r->nodes);
    to = put(to, r->fields, r->n_fields * sizeof *r->fields);
    to = put(to, r->kinds, r->n_kinds * sizeof *r->kinds);
    put(to, r->names.data, r->names.len);
    return kl__schema_adopt(piece, n, out, err);
}

kl_status kl_schema_read(const kl_value *document, kl_schema **out, kl_err *err)
{
    const kl_value *schemas = kl_value_at(document, "components", "schemas", NULL);
    if (!kl_value_str_at(document, "openapi", NULL) || kl_value_type(schemas) != KL_OBJECT)
        return kl_fail(
            err, KL_ESYNTAX, "it is not an OpenAPI v3 document: it has no openapi or no components.schemas");
    reader r = {.offsets = kl_map_new(), .leaves = kl_map_new(), .definitions = kl_map_new()};
    name_of(&r, "", 0);
    read_definitions(&r, schemas);
    kl_status st = pack(&r, out, err);
    kl_map_free(r.offsets, NULL);
    kl_map_free(r.leaves, NULL);
    kl_map_free(r.definitions, NULL);
    kl_buf_fini(&r.names);
    kl_free(r.nodes);
    kl_free(r.fields);
    kl_free(r.kinds);
    return st;
}
