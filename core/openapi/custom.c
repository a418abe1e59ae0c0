/* custom.c - definitions of CRDs' kinds as apiextensions publishes them, without parts that v2 cannot
 * express. */
#include <string.h>

#include "base/mem.h"
#include "openapi/parts.h"

#define CONVENTIONS "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
#define META "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1."

static const char API_VERSION[] =
    "APIVersion defines the versioned schema of this representation of an object. Servers should convert "
    "recognized schemas to the latest internal value, and may reject unrecognized values. More "
    "info: " CONVENTIONS "#resources";
static const char KIND[] =
    "Kind is a string value representing the REST resource this object represents. Servers may infer this "
    "from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More "
    "info: " CONVENTIONS "#types-kinds";
static const char EMBEDDED_API_VERSION[] =
    "apiVersion defines the versioned schema of this representation of an object. More info: " CONVENTIONS
    "#resources";
static const char EMBEDDED_KIND[] =
    "kind is a string value representing the type of this object. In CamelCase. More info: " CONVENTIONS
    "#types-kinds";
static const char OBJECT_META[] = "Standard object's metadata. More info: " CONVENTIONS "#metadata";
static const char LIST_META[] = "Standard list metadata. More info: " CONVENTIONS "#types-kinds";

/* ------------------------------------------------------------------ v3 */

static void text_field(kl_builder *b, const char *name, const char *description)
{
    kl_build_key(b, name);
    kl_build_object(b);
    kl_build_kstr(b, "description", description);
    kl_build_kstr(b, "type", "string");
    kl_build_end(b);
}

static void metadata(kl_builder *b, const char *description, const char *ref)
{
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "description", description);
    kl_build_key(b, "allOf");
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "$ref", ref);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
}

static bool is_set(const kl_value *v, const char *key) { return kl_value_bool(kl_value_get(v, key), false); }

static bool has_word(const kl_value *list, const char *word)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl_value_str(kl_value_item(list, i));
        if (s && !strcmp(s, word))
            return true;
    }
    return false;
}

static void node(kl_builder *b, const kl_value *v);

/* Adds the schemas of an object; those that the caller adds later replace those of the same name. */
static void nodes(kl_builder *b, const kl_value *v)
{
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        kl_build_keyn(b, key, n);
        node(b, x);
    }
}

static void required(kl_builder *b, const kl_value *list)
{
    static const char *const always[] = {"kind", "apiVersion"};
    kl_build_key(b, "required");
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl_build_value(b, kl_value_item(list, i));
    for (int i = 0; i < 2; i++)
        if (!has_word(list, always[i]))
            kl_build_str(b, always[i]);
    kl_build_end(b);
}

/* Adds everything but "properties" and, if `embedded`, "required". Schemas below are nodes of their own. */
static void others(kl_builder *b, const kl_value *v, bool embedded)
{
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        bool below = !strcmp(key, "items") || !strcmp(key, "additionalProperties");
        if (!strcmp(key, "properties") || (embedded && !strcmp(key, "required")))
            continue;
        kl_build_keyn(b, key, n);
        if (below && kl_value_type(x) == KL_OBJECT)
            node(b, x);
        else
            kl_build_value(b, x);
    }
}

/* Readers that do not know x-kubernetes-int-or-string get its types so. */
static void either_type(kl_builder *b)
{
    static const char *const types[] = {"integer", "string"};
    kl_build_key(b, "anyOf");
    kl_build_array(b);
    for (size_t i = 0; i < 2; i++) {
        kl_build_object(b);
        kl_build_kstr(b, "type", types[i]);
        kl_build_end(b);
    }
    kl_build_end(b);
}

static void node(kl_builder *b, const kl_value *v)
{
    bool embedded = is_set(v, "x-kubernetes-embedded-resource");
    const kl_value *properties = kl_value_get(v, "properties");
    if (kl_value_type(v) != KL_OBJECT) {
        kl_build_value(b, v);
        return;
    }
    kl_build_object(b);
    others(b, v, embedded);
    if (is_set(v, "x-kubernetes-int-or-string") && !kl_value_get(v, "anyOf"))
        either_type(b);
    if (embedded)
        required(b, kl_value_get(v, "required"));
    if (embedded || properties) {
        kl_build_key(b, "properties");
        kl_build_object(b);
        nodes(b, properties);
        if (embedded) {
            text_field(b, "apiVersion", EMBEDDED_API_VERSION);
            text_field(b, "kind", EMBEDDED_KIND);
            metadata(b, OBJECT_META, META "ObjectMeta");
        }
        kl_build_end(b);
    }
    kl_build_end(b);
}

static void gvk(kl_builder *b, const kl__kind *k, const char *kind)
{
    kl_build_key(b, "x-kubernetes-group-version-kind");
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "group", k->group);
    kl_build_kstr(b, "kind", kind);
    kl_build_kstr(b, "version", k->version);
    kl_build_end(b);
    kl_build_end(b);
}

const kl_value *kl__openapi_custom(const kl__kind *k)
{
    const kl_value *json = k->schema ? k->schema->json : NULL;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    if (json) {
        others(b, json, false);
        kl_build_key(b, "properties");
        kl_build_object(b);
        nodes(b, kl_value_get(json, "properties"));
        text_field(b, "apiVersion", API_VERSION);
        text_field(b, "kind", KIND);
        metadata(b, OBJECT_META, META "ObjectMeta");
        kl_build_end(b);
    } else
        kl_build_kstr(b, "type", "object");
    gvk(b, k, k->kind);
    if (k->selectable)
        kl_build_kvalue(b, "x-kubernetes-selectable-fields", k->selectable);
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl__openapi_custom_list(const kl__kind *k)
{
    kl_builder *b = kl_builder_new();
    char *name = kl__openapi_name(NULL, k, false), *ref = kl_sprintf("#/components/schemas/%s", name),
         *what = kl_sprintf("%s is a list of %s", k->list_kind, k->kind),
         *items = kl_sprintf("List of %s. More info: " CONVENTIONS, k->plural);
    kl_build_object(b);
    kl_build_kstr(b, "description", what);
    kl_build_kstr(b, "type", "object");
    kl_build_key(b, "required");
    kl_build_array(b);
    kl_build_str(b, "items");
    kl_build_end(b);
    kl_build_key(b, "properties");
    kl_build_object(b);
    text_field(b, "apiVersion", API_VERSION);
    kl_build_key(b, "items");
    kl_build_object(b);
    kl_build_kstr(b, "description", items);
    kl_build_kstr(b, "type", "array");
    kl_build_key(b, "items");
    kl_build_object(b);
    kl_build_kstr(b, "$ref", ref);
    kl_build_end(b);
    kl_build_end(b);
    text_field(b, "kind", KIND);
    metadata(b, LIST_META, META "ListMeta");
    kl_build_end(b);
    gvk(b, k, k->list_kind);
    if (k->selectable)
        kl_build_kvalue(b, "x-kubernetes-selectable-fields", k->selectable);
    kl_build_end(b);
    kl_free(name);
    kl_free(ref);
    kl_free(what);
    kl_free(items);
    return kl_builder_done(b);
}

/* ------------------------------------------------------------------ v2 */

/* What v2 omits of a schema, since its readers (kubectl among them) do not support it. */
typedef struct loss {
    bool nullable, free, type, below;
} loss;

static loss lost(const kl_value *v)
{
    const char *type = kl_value_str(kl_value_get(v, "type"));
    loss l = {
        .nullable = is_set(v, "nullable"),
        .free = is_set(v, "x-kubernetes-preserve-unknown-fields"),
    };
    l.below = l.nullable || l.free;
    bool bare_list = type && !strcmp(type, "array") && (l.below || !kl_value_get(v, "items"));
    l.type = l.nullable || bare_list || (l.free && type && !strcmp(type, "object"));
    return l;
}

static bool dropped(const char *key, const loss *l)
{
    static const char *const never[] = {"allOf", "oneOf", "anyOf", "not", "nullable", "default", NULL};
    for (const char *const *p = never; *p; p++)
        if (!strcmp(*p, key))
            return true;
    if (l->below && (!strcmp(key, "items") || !strcmp(key, "properties")))
        return true;
    return l->type && !strcmp(key, "type");
}

static void v2_ref(kl_builder *b, const char *ref)
{
    const char *name = strrchr(ref, '/');
    char *to = kl_sprintf("#/definitions/%s", name ? name + 1 : ref);
    kl_build_kstr(b, "$ref", to);
    kl_free(to);
}

/* Adds "required" without nullable fields: in v2 these may be absent. */
static void v2_required(kl_builder *b, const kl_value *list, const kl_value *properties)
{
    size_t kept = 0;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *name = kl_value_str(kl_value_item(list, i));
        if (!name || is_set(kl_value_get(properties, name), "nullable"))
            continue;
        if (!kept++) {
            kl_build_key(b, "required");
            kl_build_array(b);
        }
        kl_build_str(b, name);
    }
    if (kept)
        kl_build_end(b);
}

static void v2_node(kl_builder *b, const kl_value *v);

static void v2_member(kl_builder *b, const kl_value *v, const char *key, const kl_value *x)
{
    bool below = !strcmp(key, "items") || !strcmp(key, "additionalProperties");
    if (!strcmp(key, "required")) {
        if (!is_set(kl_value_get(v, "additionalProperties"), "nullable"))
            v2_required(b, x, kl_value_get(v, "properties"));
    } else if (!strcmp(key, "$ref")) {
        v2_ref(b, kl_value_str(x));
    } else if (!strcmp(key, "properties")) {
        kl_build_key(b, key);
        kl_build_object(b);
        for (size_t i = 0; i < kl_value_len(x); i++) {
            const char *name;
            size_t n;
            const kl_value *p = kl_value_member(x, i, &name, &n);
            kl_build_keyn(b, name, n);
            v2_node(b, p);
        }
        kl_build_end(b);
    } else {
        kl_build_key(b, key);
        if (below && kl_value_type(x) == KL_OBJECT)
            v2_node(b, x);
        else
            kl_build_value(b, x);
    }
}

static void v2_node(kl_builder *b, const kl_value *v)
{
    loss l = lost(v);
    const kl_value *all = kl_value_get(v, "allOf");
    const char *ref = kl_value_str(kl_value_get(kl_value_item(all, 0), "$ref"));
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        const kl_value *x = kl_value_member(v, i, &key, &n);
        if (!dropped(key, &l))
            v2_member(b, v, key, x);
    }
    if (ref)
        v2_ref(b, ref);
    kl_build_end(b);
}

/* A free-form object has no schema in v2; Quantity and IntOrString are strings in v2. */
const kl_value *kl__openapi_to_v2(const kl_value *v3)
{
    kl_builder *b = kl_builder_new();
    bool whole = is_set(v3, "x-kubernetes-preserve-unknown-fields");
    if (whole) {
        kl_build_object(b);
        kl_build_kstr(b, "type", "object");
        kl_build_kvalue(
            b, "x-kubernetes-group-version-kind", kl_value_get(v3, "x-kubernetes-group-version-kind"));
        kl_build_end(b);
    } else
        v2_node(b, v3);
    const kl_value *v2 = kl_builder_done(b);
    if (!whole && kl_value_get(v3, "oneOf") && !kl_value_get(v3, "type")) {
        const kl_value *type = kl_value_of_str("string"), *with = kl_value_with(v2, "type", type);
        kl_value_unref(type);
        kl_value_unref(v2);
        v2 = with;
    }
    return v2;
}
