/* gnostic_v2.c - OpenAPI v2 as gnostic's OpenAPIv2.proto has it. */
#include "openapi/gnostic.h"
#include "openapi/parts.h"

static const kl__message schema;
static const kl__member type_members[] = {{NULL, 1, TEXT}};
MESSAGE(type, 0);
static const kl__member items_members[] = {{NULL, 1, ONE, &schema}};
MESSAGE(items, 0);
static const kl__member more_members[] = {{NULL, 1, ONE, &schema}, {NULL, 2, YES}};
MESSAGE(more, 0);
static const kl__member properties_members[] = {{NULL, 1, NAMED, &schema}};
MESSAGE(properties, 0);
static const kl__member schema_members[] = {
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

static const kl__member body_members[] = {
    {"description", 1, TEXT},
    {"name", 2, TEXT},
    {"in", 3, TEXT},
    {"required", 4, YES},
    {"schema", 5, ONE, &schema},
};
MESSAGE(body, 6);
static const kl__member query_members[] = {
    {"required", 1, YES},
    {"in", 2, TEXT},
    {"description", 3, TEXT},
    {"name", 4, TEXT},
    {"type", 6, TEXT},
    {"uniqueItems", 20, YES},
};
MESSAGE(query, 23);
static const kl__member path_members[] = {
    {"required", 1, YES},
    {"in", 2, TEXT},
    {"description", 3, TEXT},
    {"name", 4, TEXT},
    {"type", 5, TEXT},
    {"uniqueItems", 19, YES},
};
MESSAGE(path, 22);
static const kl__member other_members[] = {{NULL, 3, ONE, &query, "query"}, {NULL, 4, ONE, &path, "path"}};
MESSAGE(other, 0);
static const kl__member parameter_members[] = {
    {NULL, 1, ONE, &body, "body"},
    {NULL, 2, ONE, &other, "query"},
    {NULL, 2, ONE, &other, "path"},
};
MESSAGE(parameter, 0);
static const kl__member parameters_members[] = {{NULL, 1, ONE, &parameter}};
MESSAGE(parameters, 0);

static const kl__member schema_item_members[] = {{NULL, 1, ONE, &schema}};
MESSAGE(schema_item, 0);
static const kl__member response_members[] = {{"description", 1, TEXT}, {"schema", 2, ONE, &schema_item}};
MESSAGE(response, 5);
static const kl__member response_value_members[] = {{NULL, 1, ONE, &response}};
MESSAGE(response_value, 0);
static const kl__member responses_members[] = {{NULL, 1, NAMED, &response_value}};
MESSAGE(responses, 0);
static const kl__member operation_members[] = {
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
static const kl__member path_item_members[] = {
    {"get", 2, ONE, &operation},
    {"put", 3, ONE, &operation},
    {"post", 4, ONE, &operation},
    {"delete", 5, ONE, &operation},
    {"options", 6, ONE, &operation},
    {"head", 7, ONE, &operation},
    {"patch", 8, ONE, &operation},
    {"parameters", 9, EACH, &parameters},
};
MESSAGE(path_item, 10);
static const kl__member paths_members[] = {{NULL, 2, NAMED, &path_item}};
MESSAGE(paths, 0);
static const kl__member info_members[] = {{"title", 1, TEXT}, {"version", 2, TEXT}};
MESSAGE(info, 0);
static const kl__member document_members[] = {
    {"swagger", 1, TEXT},
    {"info", 2, ONE, &info},
    {"paths", 8, ONE, &paths},
};
MESSAGE(document, 0);

void kl__gnostic_v2_definition(kl_buf *out, const char *name, const kl_value *v)
{
    kl__gnostic_named(out, 1, name, &schema, v);
}

void kl__gnostic_v2(kl_buf *out, const kl_value *rest, const kl_buf *definitions)
{
    kl__gnostic_fill(out, &document, rest);
    kl__gnostic_bytes(out, 9, definitions->data, definitions->len);
}
