/* gnostic.c - OpenAPI v2 in the protobuf of gnostic's OpenAPIv2.proto: tables say which member of a JSON
 * object is which field of a message. Extensions (x-...) and defaults go as YAML text, which JSON is. */
#include <string.h>

#include "base/mem.h"
#include "openapi/parts.h"

typedef enum how { TEXT, TEXTS, NUMBER, INTEGER, YES, AS_YAML, EACH_AS_YAML, ONE, EACH, NAMED } how;

/* key NULL: the field wraps the value itself. `in`: only of a parameter that is there. */
typedef struct member {
    const char *key;
    unsigned number;
    how how;
    const struct message *of;
    const char *in;
} member;

typedef struct message {
    const member *members;
    size_t len;
    unsigned extensions; /* number of the field for x-...; 0: none */
} message;

#define MESSAGE(name, extensions)                                                                            \
    static const message name = {name##_members, sizeof name##_members / sizeof *name##_members, extensions}

static const message schema;
static const member type_members[] = {{NULL, 1, TEXT}};
MESSAGE(type, 0);
static const member items_members[] = {{NULL, 1, ONE, &schema}};
MESSAGE(items, 0);
static const member more_members[] = {{NULL, 1, ONE, &schema}, {NULL, 2, YES}};
MESSAGE(more, 0);
static const member properties_members[] = {{NULL, 1, NAMED, &schema}};
MESSAGE(properties, 0);
static const member schema_members[] = {
    {"$ref", 1, TEXT},
    {"format", 2, TEXT},
    {"title", 3, TEXT},
    {"description", 4, TEXT},
    {"default", 5, AS_YAML},
    {"multipleOf", 6, NUMBER},
    {"maximum", 7, NUMBER},
    {"exclusiveMaximum", 8, YES},
    {"minimum", 9, NUMBER},
    {"exclusiveMinimum", 10, YES},
    {"maxLength", 11, INTEGER},
    {"minLength", 12, INTEGER},
    {"pattern", 13, TEXT},
    {"maxItems", 14, INTEGER},
    {"minItems", 15, INTEGER},
    {"uniqueItems", 16, YES},
    {"maxProperties", 17, INTEGER},
    {"minProperties", 18, INTEGER},
    {"required", 19, TEXTS},
    {"enum", 20, EACH_AS_YAML},
    {"additionalProperties", 21, ONE, &more},
    {"type", 22, ONE, &type},
    {"items", 23, ONE, &items},
    {"properties", 25, ONE, &properties},
    {"example", 30, AS_YAML},
};
MESSAGE(schema, 31);

static const member body_members[] = {
    {"description", 1, TEXT},
    {"name", 2, TEXT},
    {"in", 3, TEXT},
    {"required", 4, YES},
    {"schema", 5, ONE, &schema},
};
MESSAGE(body, 6);
static const member query_members[] = {
    {"required", 1, YES},
    {"in", 2, TEXT},
    {"description", 3, TEXT},
    {"name", 4, TEXT},
    {"type", 6, TEXT},
    {"uniqueItems", 20, YES},
};
MESSAGE(query, 23);
static const member path_members[] = {
    {"required", 1, YES},
    {"in", 2, TEXT},
    {"description", 3, TEXT},
    {"name", 4, TEXT},
    {"type", 5, TEXT},
    {"uniqueItems", 19, YES},
};
MESSAGE(path, 22);
static const member other_members[] = {{NULL, 3, ONE, &query, "query"}, {NULL, 4, ONE, &path, "path"}};
MESSAGE(other, 0);
static const member parameter_members[] = {
    {NULL, 1, ONE, &body, "body"},
    {NULL, 2, ONE, &other, "query"},
    {NULL, 2, ONE, &other, "path"},
};
MESSAGE(parameter, 0);
static const member parameters_members[] = {{NULL, 1, ONE, &parameter}};
MESSAGE(parameters, 0);

static const member schema_item_members[] = {{NULL, 1, ONE, &schema}};
MESSAGE(schema_item, 0);
static const member response_members[] = {{"description", 1, TEXT}, {"schema", 2, ONE, &schema_item}};
MESSAGE(response, 5);
static const member response_value_members[] = {{NULL, 1, ONE, &response}};
MESSAGE(response_value, 0);
static const member responses_members[] = {{NULL, 1, NAMED, &response_value}};
MESSAGE(responses, 0);
static const member operation_members[] = {
    {"tags", 1, TEXTS},
    {"description", 3, TEXT},
    {"operationId", 5, TEXT},
    {"produces", 6, TEXTS},
    {"consumes", 7, TEXTS},
    {"parameters", 8, EACH, &parameters},
    {"responses", 9, ONE, &responses},
    {"schemes", 10, TEXTS},
};
MESSAGE(operation, 13);
static const member path_item_members[] = {
    {"get", 2, ONE, &operation},
    {"put", 3, ONE, &operation},
    {"post", 4, ONE, &operation},
    {"delete", 5, ONE, &operation},
    {"patch", 8, ONE, &operation},
    {"parameters", 9, EACH, &parameters},
};
MESSAGE(path_item, 10);
static const member paths_members[] = {{NULL, 2, NAMED, &path_item}};
MESSAGE(paths, 0);
static const member info_members[] = {{"title", 1, TEXT}, {"version", 2, TEXT}};
MESSAGE(info, 0);
static const member document_members[] = {
    {"swagger", 1, TEXT},
    {"info", 2, ONE, &info},
    {"paths", 8, ONE, &paths},
};
MESSAGE(document, 0);

/* ------------------------------------------------------------------ writing */

static void varint(kl_buf *out, uint64_t v)
{
    for (; v > 0x7f; v >>= 7)
        kl_buf_putc(out, (char)(v | 0x80));
    kl_buf_putc(out, (char)v);
}

static void bytes(kl_buf *out, unsigned number, const void *data, size_t n)
{
    varint(out, number << 3 | 2);
    varint(out, n);
    kl_buf_add(out, data, n);
}

static void text(kl_buf *out, unsigned number, const kl_value *v)
{
    size_t n;
    const char *s = kl_value_strn(v, &n);
    if (s)
        bytes(out, number, s, n);
}

static void yaml(kl_buf *out, unsigned number, const kl_value *v)
{
    kl_buf any = KL_BUF_INIT;
    char *json = kl_value_to_json(v);
    bytes(&any, 2, json, strlen(json));
    bytes(out, number, any.data, any.len);
    kl_free(json);
    kl_buf_fini(&any);
}

static void number(kl_buf *out, unsigned number, const kl_value *v)
{
    double x = kl_value_double(v, 0);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    varint(out, number << 3 | 1);
    for (int i = 0; i < 8; i++)
        kl_buf_putc(out, (char)(bits >> 8 * i));
}

static void whole(kl_buf *out, unsigned number, int64_t x)
{
    varint(out, number << 3 | 0);
    varint(out, (uint64_t)x);
}

static void fill(kl_buf *out, const message *of, const kl_value *v);

static void one(kl_buf *out, unsigned number, const message *of, const kl_value *v)
{
    kl_buf inner = KL_BUF_INIT;
    fill(&inner, of, v);
    bytes(out, number, inner.data, inner.len);
    kl_buf_fini(&inner);
}

static void named(kl_buf *out, unsigned number, const char *name, const message *of, const kl_value *v)
{
    kl_buf inner = KL_BUF_INIT;
    bytes(&inner, 1, name, strlen(name));
    if (of)
        one(&inner, 2, of, v);
    else
        yaml(&inner, 2, v);
    bytes(out, number, inner.data, inner.len);
    kl_buf_fini(&inner);
}

static void field(kl_buf *out, const member *m, const kl_value *v)
{
    kl_type type = kl_value_type(v);
    int64_t x;
    switch (m->how) {
    case TEXT: text(out, m->number, v); break;
    case TEXTS:
        for (size_t i = 0; i < kl_value_len(v); i++)
            text(out, m->number, kl_value_item(v, i));
        break;
    case NUMBER: number(out, m->number, v); break;
    case INTEGER:
        if (kl_value_int(v, &x))
            whole(out, m->number, x);
        break;
    case YES:
        if (type == KL_BOOL)
            whole(out, m->number, kl_value_bool(v, false));
        break;
    case AS_YAML: yaml(out, m->number, v); break;
    case EACH_AS_YAML:
        for (size_t i = 0; i < kl_value_len(v); i++)
            yaml(out, m->number, kl_value_item(v, i));
        break;
    case ONE:
        /* a wrapper of a wrapper recurses; the wrapped value is an object except for `type` and booleans */
        if (m->key || type == KL_OBJECT)
            one(out, m->number, m->of, v);
        break;
    case EACH:
        for (size_t i = 0; i < kl_value_len(v); i++)
            one(out, m->number, m->of, kl_value_item(v, i));
        break;
    case NAMED:
        for (size_t i = 0; i < kl_value_len(v); i++) {
            const char *key;
            size_t n;
            const kl_value *x = kl_value_member(v, i, &key, &n);
            named(out, m->number, key, m->of, x);
        }
        break;
    }
}

static void fill(kl_buf *out, const message *of, const kl_value *v)
{
    for (size_t i = 0; i < of->len; i++) {
        const member *m = &of->members[i];
        const char *in = m->in ? kl_value_str(kl_value_get(v, "in")) : NULL;
        const kl_value *x = m->key ? kl_value_get(v, m->key) : v;
        if (x && (!m->in || (in && !strcmp(in, m->in))))
            field(out, m, x);
    }
    for (size_t i = 0; of->extensions && i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        if (!strncmp(key, "x-", 2))
            named(out, of->extensions, key, NULL, x);
    }
}

void kl__gnostic_definition(kl_buf *out, const char *name, const kl_value *v)
{
    named(out, 1, name, &schema, v);
}

void kl__gnostic_document(kl_buf *out, const kl_value *rest, const kl_buf *definitions)
{
    fill(out, &document, rest);
    bytes(out, 9, definitions->data, definitions->len);
}
