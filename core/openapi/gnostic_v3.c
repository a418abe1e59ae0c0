/* gnostic_v3.c - OpenAPI v3 as gnostic's OpenAPIv3.proto has it. */
#include "openapi/gnostic.h"
#include "openapi/parts.h"

static const kl__message schema;
static const kl__member reference_members[] = {{"$ref", 1, TEXT}, {"description", 3, TEXT}};
MESSAGE(reference, 0);
static const kl__member some_schema_members[] = {
    {NULL, 1, ONE, &schema, NULL, KL_WITHOUT_REF},
    {NULL, 2, ONE, &reference, NULL, KL_WITH_REF},
};
MESSAGE(some_schema, 0);
static const kl__member items_members[] = {{NULL, 1, ONE, &some_schema}};
MESSAGE(items, 0);
static const kl__member more_members[] = {{NULL, 1, ONE, &some_schema}, {NULL, 2, YES}};
MESSAGE(more, 0);
static const kl__member schemas_members[] = {{NULL, 1, NAMED, &some_schema}};
MESSAGE(schemas, 0);
static const kl__member schema_members[] = {
    {"nullable", 1, YES},
    {"example", 7, AS_YAML},
    {"title", 9, TEXT},
    {"multipleOf", 10, NUMBER},
    {"maximum", 11, NUMBER},
    {"exclusiveMaximum", 12, YES},
    {"minimum", 13, NUMBER},
    {"exclusiveMinimum", 14, YES},
    {"maxLength", 15, INTEGER},
    {"minLength", 16, INTEGER},
    {"pattern", 17, TEXT},
    {"maxItems", 18, INTEGER},
    {"minItems", 19, INTEGER},
    {"uniqueItems", 20, YES},
    {"maxProperties", 21, INTEGER},
    {"minProperties", 22, INTEGER},
    {"required", 23, TEXTS},
    {"enum", 24, EACH_AS_YAML},
    {"type", 25, TEXT},
    {"allOf", 26, EACH, &some_schema},
    {"oneOf", 27, EACH, &some_schema},
    {"anyOf", 28, EACH, &some_schema},
    {"not", 29, ONE, &schema},
    {"items", 30, ONE, &items},
    {"properties", 31, ONE, &schemas},
    {"additionalProperties", 32, ONE, &more},
    {"default", 33, SCALAR},
    {"description", 34, TEXT},
    {"format", 35, TEXT},
};
MESSAGE(schema, 36);

static const kl__member parameter_members[] = {
    {"name", 1, TEXT},
    {"in", 2, TEXT},
    {"description", 3, TEXT},
    {"required", 4, YES},
    {"schema", 10, ONE, &some_schema},
};
MESSAGE(parameter, 14);
static const kl__member parameters_members[] = {{NULL, 1, ONE, &parameter}};
MESSAGE(parameters, 0);
static const kl__member media_members[] = {{"schema", 1, ONE, &some_schema}};
MESSAGE(media, 5);
static const kl__member content_members[] = {{NULL, 1, NAMED, &media}};
MESSAGE(content, 0);
static const kl__member body_members[] = {
    {"description", 1, TEXT},
    {"content", 2, ONE, &content},
    {"required", 3, YES},
};
MESSAGE(body, 4);
static const kl__member some_body_members[] = {{NULL, 1, ONE, &body}};
MESSAGE(some_body, 0);
static const kl__member response_members[] = {{"description", 1, TEXT}, {"content", 3, ONE, &content}};
MESSAGE(response, 5);
static const kl__member some_response_members[] = {{NULL, 1, ONE, &response}};
MESSAGE(some_response, 0);
static const kl__member responses_members[] = {{NULL, 2, NAMED, &some_response}};
MESSAGE(responses, 0);

static const kl__member operation_members[] = {
    {"tags", 1, TEXTS},
    {"description", 3, TEXT},
    {"operationId", 5, TEXT},
    {"parameters", 6, EACH, &parameters},
    {"requestBody", 7, ONE, &some_body},
    {"responses", 8, ONE, &responses},
};
MESSAGE(operation, 13);
static const kl__member path_item_members[] = {
    {"get", 4, ONE, &operation},
    {"put", 5, ONE, &operation},
    {"post", 6, ONE, &operation},
    {"delete", 7, ONE, &operation},
    {"options", 8, ONE, &operation},
    {"head", 9, ONE, &operation},
    {"patch", 10, ONE, &operation},
    {"parameters", 13, EACH, &parameters},
};
MESSAGE(path_item, 14);
static const kl__member paths_members[] = {{NULL, 1, NAMED, &path_item}};
MESSAGE(paths, 0);
static const kl__member info_members[] = {{"title", 1, TEXT}, {"version", 6, TEXT}};
MESSAGE(info, 0);
static const kl__member document_members[] = {
    {"openapi", 1, TEXT},
    {"info", 2, ONE, &info},
    {"paths", 4, ONE, &paths},
};
MESSAGE(document, 0);

static const kl__member scheme_members[] = {
    {"type", 1, TEXT},
    {"description", 2, TEXT},
    {"name", 3, TEXT},
    {"in", 4, TEXT},
};
MESSAGE(scheme, 0);
static const kl__member some_scheme_members[] = {{NULL, 1, ONE, &scheme}};
MESSAGE(some_scheme, 0);
static const kl__member schemes_members[] = {{NULL, 1, NAMED, &some_scheme}};
MESSAGE(schemes, 0);

void kl__gnostic_v3_definition(kl_buf *out, const char *name, const kl_value *v)
{
    kl__gnostic_named(out, 1, name, &some_schema, v);
}

void kl__gnostic_v3(
    kl_buf *out, const kl_value *rest, const kl_buf *definitions, const kl_value *security_schemes)
{
    kl_buf components = KL_BUF_INIT, security = KL_BUF_INIT;
    kl__gnostic_fill(out, &document, rest);
    if (definitions->len)
        kl__gnostic_bytes(&components, 1, definitions->data, definitions->len);
    if (security_schemes) {
        kl__gnostic_fill(&security, &schemes, security_schemes);
        kl__gnostic_bytes(&components, 7, security.data, security.len);
    }
    kl__gnostic_bytes(out, 5, components.data, components.len);
    kl_buf_fini(&security);
    kl_buf_fini(&components);
}
