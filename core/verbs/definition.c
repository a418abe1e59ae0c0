/* definition.c - CustomResourceDefinitions, checked part by part. */
#include "verbs/definition.h"

#include <string.h>

#include "base/mem.h"
#include "rules/rules.h"
#include "model/names.h"
#include "model/object.h"
#include "policy/hooks.h"
#include "schema/names.h"
#include "schema/structural.h"
#include "value/finder.h"

static const char *text(const kl_value *v, const char *key)
{
    const char *s = kl_value_str(kl_value_get(v, key));
    return s ? s : "";
}

/* ------------------------------------------------------------------ names */

static void label(const char *field, const kl_value *v, bool any_case, kl__causes *causes)
{
    const char *s = kl_value_str(v);
    if (!s || !*s) {
        kl__cause_required(causes, field, "");
        return;
    }
    char *lower = kl_strdup(s);
    for (char *p = lower; any_case && *p; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    if (kl_name_dns1035_label(lower))
        kl__cause_invalid(causes, field, v, "%s%s",
            any_case ? "may have mixed case, but should otherwise match: " : "",
            strlen(lower) > 63 ? "must be no more than 63 characters" : KL_NO_LABEL_1035);
    kl_free(lower);
}

static void labels(const char *field, const kl_value *list, kl__causes *causes)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        char *one = kl_sprintf("spec.names.%s[%zu]", field, i);
        label(one, kl_value_item(list, i), false, causes);
        kl_free(one);
    }
}

static void check_names(const kl_value *names, kl__causes *causes)
{
    label("spec.names.plural", kl_value_get(names, "plural"), false, causes);
    label("spec.names.singular", kl_value_get(names, "singular"), false, causes);
    label("spec.names.kind", kl_value_get(names, "kind"), true, causes);
    label("spec.names.listKind", kl_value_get(names, "listKind"), true, causes);
    labels("shortNames", kl_value_get(names, "shortNames"), causes);
    labels("categories", kl_value_get(names, "categories"), causes);
    if (*text(names, "kind") && !strcmp(text(names, "kind"), text(names, "listKind")))
        kl__cause_invalid(causes, "spec.names.listKind", kl_value_get(names, "listKind"),
            "kind and listKind may not be the same");
}

static void check_group(const kl_value *crd, const kl_value *spec, kl__causes *causes)
{
    const kl_value *group = kl_value_get(spec, "group");
    const char *s = text(spec, "group");
    if (!*s)
        kl__cause_required(causes, "spec.group", "");
    else if (kl_name_dns1123_subdomain(s))
        kl__cause_invalid(causes, "spec.group", group, "%s", KL_NO_SUBDOMAIN);
    else if (!strchr(s, '.'))
        kl__cause_invalid(causes, "spec.group", group, "should be a domain with at least one dot");
    size_t n = strlen(s);
    bool ours = (n >= 7 && !strcmp(s + n - 7, ".k8s.io"))
        || (n >= 14 && !strcmp(s + n - 14, ".kubernetes.io"));
    if (ours && !kl_value_at(crd, "metadata", "annotations", "api-approved.kubernetes.io", NULL))
        kl__cause_required(causes, "metadata.annotations[api-approved.kubernetes.io]",
            "protected groups must have approval annotation \"api-approved.kubernetes.io\", see "
            "https://github.com/kubernetes/enhancements/pull/1111");
}

static void check_name(const kl_value *crd, const kl_value *spec, kl__causes *causes)
{
    const kl_value *name = kl_value_at(crd, "metadata", "name", NULL);
    char *want = kl_sprintf("%s.%s", text(kl_value_get(spec, "names"), "plural"), text(spec, "group"));
    if (kl_value_str(name) && strcmp(want, kl_value_str(name)))
        kl__cause_invalid(causes, "metadata.name", name, "must be spec.names.plural+\".\"+spec.group");
    kl_free(want);
}

static void check_scope(const kl_value *spec, kl__causes *causes)
{
    const char *scope = text(spec, "scope");
    if (!*scope)
        kl__cause_required(causes, "spec.scope", "");
    else if (strcmp(scope, "Namespaced") && strcmp(scope, "Cluster"))
        kl__cause_add(causes, "FieldValueNotSupported", "spec.scope",
            "Unsupported value: \"%s\": supported values: \"Cluster\", \"Namespaced\"", scope);
}

/* ------------------------------------------------------------------ versions */

/* The versions as in Go's internal form: common parts have moved to the definition. */
static void versions_invalid(const kl_value *versions, const char *why, kl__causes *causes)
{
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const kl_value *v = kl_value_item(versions, i);
        kl_buf_printf(&b,
            "%s{\"Name\":\"%s\",\"Served\":%s,\"Storage\":%s,\"Deprecated\":%s,\"DeprecationWarning\":null,"
            "\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":"
            "null}",
            i ? "," : "", text(v, "name"), kl_value_bool(kl_value_get(v, "served"), false) ? "true" : "false",
            kl_value_bool(kl_value_get(v, "storage"), false) ? "true" : "false",
            kl_value_bool(kl_value_get(v, "deprecated"), false) ? "true" : "false");
    }
    const char *open = versions ? "[" : "null", *close = versions ? "]" : "";
    kl__cause_add(causes, "FieldValueInvalid", "spec.versions", "Invalid value: %s%s%s: %s", open,
        kl_buf_str(&b), close, why);
    kl_buf_fini(&b);
}

/* Whether a version is stored. */
static bool check_versions(const kl_value *spec, kl__causes *causes)
{
    const kl_value *versions = kl_value_get(spec, "versions");
    size_t storage = 0;
    bool twice = false;
    kl_finder names = {.key = "name"};
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const kl_value *v = kl_value_item(versions, i), *name = kl_value_get(v, "name");
        char *field = kl_sprintf("spec.versions[%zu].name", i);
        label(field, name, false, causes);
        kl_free(field);
        storage += kl_value_bool(kl_value_get(v, "storage"), false);
        twice |= kl_finder_repeats(&names, v);
    }
    kl_finder_fini(&names);
    if (twice)
        versions_invalid(versions, "must contain unique version names", causes);
    if (storage != 1)
        versions_invalid(versions, "must have exactly one version marked as storage version", causes);
    const char *first = text(kl_value_item(versions, 0), "name");
    if (*first && kl_name_dns1035_label(first))
        label("spec.version", kl_value_get(kl_value_item(versions, 0), "name"), false, causes);
    return storage;
}

/* ------------------------------------------------------------------ parts of versions */

/* What else a check may look at: the definition that is replaced (or NULL), the types of built-in kinds. */
typedef struct around {
    const kl_value *old;
    const kl__types *builtin;
} around;

typedef void check_part(
    const char *field, const kl_value *part, const kl_value *version, kl__causes *causes, const around *a);

/* Checks a part once if all versions have the same, otherwise for each version. */
static void each_version(const kl_value *versions, const char *key, const char *common, check_part *check,
    kl__causes *causes, const around *a)
{
    const kl_value *first = kl_value_get(kl_value_item(versions, 0), key);
    bool alike = first != NULL;
    for (size_t i = 1; i < kl_value_len(versions); i++) {
        const kl_value *other = kl_value_get(kl_value_item(versions, i), key);
        alike &= other && kl_value_equal(first, other);
    }
    for (size_t i = 0; i < (alike ? 1 : kl_value_len(versions)); i++) {
        const kl_value *v = kl_value_item(versions, i);
        char *field = alike ? kl_sprintf("spec.%s", common) : kl_sprintf("spec.versions[%zu].%s", i, key);
        check(field, kl_value_get(v, key), v, causes, a);
        kl_free(field);
    }
}

static void complain(void *causes, bool warns, const char *reason, const char *field, const char *message)
{
    if (!warns)
        kl__cause_add(causes, reason, field, "%s", message);
}

/* Whether the schema of this version is unchanged. */
static bool accepted(const around *a, const kl_value *version)
{
    const kl_value *versions = kl_value_at(a->old, "spec", "versions", NULL);
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const kl_value *v = kl_value_item(versions, i);
        if (kl_value_equal(kl_value_get(v, "name"), kl_value_get(version, "name")))
            return kl_value_equal(kl_value_get(v, "schema"), kl_value_get(version, "schema"));
    }
    return false;
}

static void check_schema(
    const char *field, const kl_value *part, const kl_value *version, kl__causes *causes, const around *a)
{
    const kl_value *json = kl_value_get(part, "openAPIV3Schema");
    char *path = kl_sprintf("%s.openAPIV3Schema", field);
    if (!json)
        kl__cause_required(causes, path, "");
    else {
        size_t before = causes->len;
        kl__structural_validate(path, json, a->builtin, causes);
        /* rules are checked against types, which an invalid schema lacks */
        kl_cel_rules *r = causes->len == before
            ? kl_cel_rules_new(json, path, accepted(a, version), complain, causes)
            : NULL;
        if (r && causes->len == before)
            kl_cel_rules_check_defaults(r, path, complain, causes);
        kl_cel_rules_free(r);
    }
    kl_free(path);
}

static bool among(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = words; (p = strstr(p, word)); p += n)
        if ((p == words || p[-1] == ',') && (!p[n] || p[n] == ','))
            return true;
    return false;
}

static void check_column(const char *field, const kl_value *column, kl__causes *causes)
{
    static const char types[] = "boolean,date,integer,number,string",
                      formats[] = "byte,date,date-time,double,float,int32,int64,password";
    char *name = kl_sprintf("%s.name", field), *type = kl_sprintf("%s.type", field),
         *format = kl_sprintf("%s.format", field), *path = kl_sprintf("%s.JSONPath", field);
    if (!*text(column, "name"))
        kl__cause_required(causes, name, "");
    if (!*text(column, "type"))
        kl__cause_required(causes, type, "must be one of boolean,date,integer,number,string");
    else if (!among(types, text(column, "type")))
        kl__cause_invalid(causes, type, kl_value_get(column, "type"), "must be one of %s", types);
    if (*text(column, "format") && !among(formats, text(column, "format")))
        kl__cause_invalid(causes, format, kl_value_get(column, "format"), "must be one of %s", formats);
    if (!*text(column, "jsonPath"))
        kl__cause_required(causes, path, "");
    else if (*text(column, "jsonPath") != '.')
        kl__cause_invalid(
            causes, path, kl_value_get(column, "jsonPath"), "must be a simple json path starting with .");
    kl_free(name);
    kl_free(type);
    kl_free(format);
    kl_free(path);
}

static void check_columns(
    const char *field, const kl_value *part, const kl_value *version, kl__causes *causes, const around *a)
{
    (void)version, (void)a;
    for (size_t i = 0; i < kl_value_len(part); i++) {
        char *one = kl_sprintf("%s[%zu]", field, i);
        check_column(one, kl_value_item(part, i), causes);
        kl_free(one);
    }
}

static void scale_path(const char *field, const kl_value *scale, const char *key, const char *below,
    bool must, kl__causes *causes)
{
    char *path = kl_sprintf("%s.scale.%s", field, key);
    const char *s = text(scale, key);
    size_t n = strlen(below);
    if (!*s && must)
        kl__cause_required(causes, path, "");
    else if (*s && (strncmp(s, below, n) || s[n] != '.'))
        kl__cause_invalid(causes, path, kl_value_get(scale, key), "should be a json path under %s", below);
    kl_free(path);
}

static void check_subresources(
    const char *field, const kl_value *part, const kl_value *version, kl__causes *causes, const around *a)
{
    (void)version, (void)a;
    const kl_value *scale = kl_value_get(part, "scale");
    if (!scale)
        return;
    scale_path(field, scale, "specReplicasPath", ".spec", true, causes);
    scale_path(field, scale, "statusReplicasPath", ".status", true, causes);
    const char *selector = text(scale, "labelSelectorPath");
    if (*selector && strncmp(selector, ".spec.", 6) && strncmp(selector, ".status.", 8)) {
        char *path = kl_sprintf("%s.scale.labelSelectorPath", field);
        kl__cause_invalid(causes, path, kl_value_get(scale, "labelSelectorPath"),
            "should be a json path under either .spec or .status");
        kl_free(path);
    }
}

/* Resolves a selectable field's path in the schema. NULL: *why tells the mistake. */
static const kl_value *field_at(const kl_value *schema, const char *path, char **why)
{
    if (*path != '.') {
        *why = kl_sprintf(
            "is an invalid path: expected [ or . but got: %.*s", (int)strcspn(path, ".["), path);
        return NULL;
    }
    while (*path == '.' && schema) {
        size_t n = strcspn(++path, ".[");
        schema = kl_value_getn(kl_value_get(schema, "properties"), path, n);
        path += n;
        if (*path == '[') {
            *why = kl_strdup("is an invalid path: array notation is not allowed");
            return NULL;
        }
    }
    if (!schema)
        *why = kl_strdup("is an invalid path: does not refer to a valid field");
    return schema;
}

static void check_selectable(
    const char *field, const kl_value *part, const kl_value *version, kl__causes *causes, const around *a)
{
    (void)a;
    const kl_value *schema = kl_value_at(version, "schema", "openAPIV3Schema", NULL);
    kl_finder paths = {.key = "jsonPath"};
    for (size_t i = 0; i < kl_value_len(part); i++) {
        char *path = kl_sprintf("%s[%zu].jsonPath", field, i), *why = NULL;
        const kl_value *v = kl_value_get(kl_value_item(part, i), "jsonPath");
        const char *s = kl_value_str(v);
        bool twice = kl_finder_repeats(&paths, kl_value_item(part, i));
        const kl_value *at = s && *s ? field_at(schema, s, &why) : NULL;
        if (!s || !*s)
            kl__cause_required(causes, path, "");
        else if (why)
            kl__cause_invalid(causes, path, v, "%s", why);
        else if (!among("string,boolean,integer", text(at, "type")))
            kl__cause_invalid(causes, path, v,
                "must point to a field of type string, boolean or integer. Enum string fields and strings "
                "with "
                "formats are allowed.");
        else if (twice) {
            char *json = kl_value_to_json(v);
            kl__cause_add(causes, "FieldValueDuplicate", path, "Duplicate value: %s", json);
            kl_free(json);
        }
        kl_free(why);
        kl_free(path);
    }
    kl_finder_fini(&paths);
}

/* ------------------------------------------------------------------ conversion */

static void check_conversion(const kl_value *conversion, kl__causes *causes)
{
    static const char client_field[] = "spec.conversion.webhookClientConfig",
                      versions_field[] = "spec.conversion.conversionReviewVersions",
                      unwanted[] = "should not be set when strategy is not set to Webhook";
    const char *strategy = text(conversion, "strategy");
    const kl_value *webhook = kl_value_get(conversion, "webhook"),
                   *client = kl_value_get(webhook, "clientConfig"),
                   *versions = kl_value_get(webhook, "conversionReviewVersions");
    if (!strcmp(strategy, "Webhook")) {
        if (client)
            kl_policy_validate_client(client, client_field, causes);
        else
            kl__cause_required(causes, client_field, "required when strategy is set to Webhook");
        kl_policy_validate_reviews(versions, versions_field, causes);
        return;
    }
    if (!*strategy)
        kl__cause_required(causes, "spec.conversion.strategy", "");
    else if (strcmp(strategy, "None"))
        kl__cause_add(causes, "FieldValueNotSupported", "spec.conversion.strategy",
            "Unsupported value: \"%s\": supported values: \"None\", \"Webhook\"", strategy);
    if (client)
        kl__cause_forbidden(causes, client_field, unwanted);
    if (kl_value_len(versions))
        kl__cause_forbidden(causes, versions_field, unwanted);
}

void kl__definition_validate(
    const kl_value *old, const kl_value *crd, const kl__types *builtin, kl__causes *causes)
{
    const around a = {old, builtin};
    const kl_value *spec = kl_value_get(crd, "spec"), *versions = kl_value_get(spec, "versions"),
                   *preserve = kl_value_get(spec, "preserveUnknownFields");
    check_name(crd, spec, causes);
    check_group(crd, spec, causes);
    if (kl_value_bool(preserve, false))
        kl__cause_invalid(causes, "spec.preserveUnknownFields", preserve,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema "
            "instead");
    check_scope(spec, causes);
    bool stored = check_versions(spec, causes);
    check_names(kl_value_get(spec, "names"), causes);
    each_version(versions, "schema", "validation", check_schema, causes, &a);
    each_version(versions, "subresources", "subresources", check_subresources, causes, &a);
    each_version(versions, "additionalPrinterColumns", "additionalPrinterColumns", check_columns, causes, &a);
    each_version(versions, "selectableFields", "selectableFields", check_selectable, causes, &a);
    check_conversion(kl_value_get(spec, "conversion"), causes);
    if (!stored)
        kl__cause_add(causes, "FieldValueInvalid", "status.storedVersions",
            "Invalid value: null: must have at least one stored version");
}
