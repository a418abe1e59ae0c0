/* metadata.c - labels, annotations and owner references of every object. */
#include <ctype.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "schema/edit.h"
#include "schema/names.h"
#include "schema/validate.h"

static void add_faults(
    const char *field, const char *text, size_t n, const char *const *why, kl__causes *causes)
{
    const kl_value *shown = n ? kl_value_of_str(text) : NULL;
    for (size_t i = 0; i < n; i++)
        kl__cause_invalid(causes, field, shown, "%s", why[i]);
    kl_value_unref(shown);
}

/* Keys of annotations may have capitals before the slash, too. */
static void check_map(const char *field, const kl_value *map, bool labels, kl__causes *causes)
{
    const char *why[KL_FAULTS_MAX];
    for (size_t i = 0; i < kl_value_len(map); i++) {
        const char *key;
        size_t n;
        const char *text = kl_value_str(kl_value_member(map, i, &key, &n));
        char *judged = kl_strndup(key, n);
        for (char *p = judged; !labels && *p; p++)
            *p = (char)tolower((unsigned char)*p);
        add_faults(field, key, kl__qualified_faults(judged, why), why, causes);
        kl_free(judged);
        if (labels && text)
            add_faults(field, text, kl__label_value_faults(text, why), why, causes);
    }
}

void kl__validate_labels(const char *field, const kl_value *map, kl__causes *causes)
{
    check_map(field, map, true, causes);
}

void kl__validate_annotations(const char *field, const kl_value *map, kl__causes *causes)
{
    check_map(field, map, false, causes);
}

/* Writes an owner reference as Go writes the struct. */
static void build_owner(kl_builder *b, const kl_value *owner)
{
    static const char *const texts[] = {"apiVersion", "kind", "name", "uid"},
                             *const flags[] = {"controller", "blockOwnerDeletion"};
    kl_build_object(b);
    for (size_t k = 0; k < 4; k++) {
        const char *text = kl_value_str(kl_value_get(owner, texts[k]));
        kl_build_kstr(b, texts[k], text ? text : "");
    }
    for (size_t k = 0; k < 2; k++)
        kl_build_kvalue(b, flags[k], kl_value_get(owner, flags[k]));
    kl_build_end(b);
}

static const kl_value *owners_shown(const kl_value *owners)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(owners); i++)
        build_owner(b, kl_value_item(owners, i));
    kl_build_end(b);
    return kl_builder_done(b);
}

static void check_owner(const char *at, const kl_value *owner, kl__causes *causes)
{
    static const char *const must[] = {"apiVersion", "kind", "name", "uid"};
    for (size_t k = 0; k < 4; k++) {
        const kl_value *v = kl_value_get(owner, must[k]);
        const char *text = kl_value_str(v) ? kl_value_str(v) : "", *slash = strchr(text, '/');
        /* "group/" and "a/b/c" have no version */
        bool bad = !*text || (!k && slash && (!slash[1] || strchr(slash + 1, '/')));
        char *field = bad ? kl_sprintf("%smetadata.ownerReferences.%s", at, must[k]) : NULL;
        if (bad)
            kl__cause_add(causes, "FieldValueInvalid", field, "Invalid value: \"%s\": %smust not be empty",
                text, k ? "" : "version ");
        kl_free(field);
    }
    const char *version = kl_value_str(kl_value_get(owner, "apiVersion")),
               *kind = kl_value_str(kl_value_get(owner, "kind"));
    if (version && kind && !strcmp(version, "v1") && !strcmp(kind, "Event")) {
        char *field = kl_sprintf("%smetadata.ownerReferences", at);
        kl_builder *b = kl_builder_new();
        build_owner(b, owner);
        const kl_value *shown = kl_builder_done(b);
        kl__cause_invalid(causes, field, shown, "/v1, Kind=Event is disallowed from being an owner");
        kl_value_unref(shown);
        kl_free(field);
    }
}

static void check_owners(const char *at, const kl_value *owners, kl__causes *causes)
{
    const kl_value *first = NULL, *shown = NULL;
    for (size_t i = 0; i < kl_value_len(owners); i++) {
        const kl_value *owner = kl_value_item(owners, i);
        check_owner(at, owner, causes);
        if (!kl_value_bool(kl_value_get(owner, "controller"), false))
            continue;
        if (!first) {
            first = owner;
            continue;
        }
        const char *kinds[2] = {kl_value_str(kl_value_get(first, "kind")),
            kl_value_str(kl_value_get(owner, "kind"))},
                   *names[2] = {
                       kl_value_str(kl_value_get(first, "name")), kl_value_str(kl_value_get(owner, "name"))};
        char *field = kl_sprintf("%smetadata.ownerReferences", at);
        shown = shown ? shown : owners_shown(owners);
        kl__cause_invalid(causes, field, shown,
            "Only one reference can have Controller set to true. Found \"true\" in references for %s/%s and "
            "%s/%s",
            kinds[0] ? kinds[0] : "", names[0] ? names[0] : "", kinds[1] ? kinds[1] : "",
            names[1] ? names[1] : "");
        kl_free(field);
    }
    kl_value_unref(shown);
}

/* A text that is the same for owners that are equal. */
static char *identity(const kl_value *owner)
{
    kl_builder *b = kl_builder_new();
    build_owner(b, owner);
    const kl_value *v = kl_builder_done(b);
    char *text = kl_value_to_json(v);
    kl_value_unref(v);
    return text;
}

char *kl__owners_unique(const kl_value **o)
{
    const kl_value *owners = kl_value_at(*o, "metadata", "ownerReferences", NULL);
    kl_buf twice = KL_BUF_INIT;
    kl_map *seen = kl_map_new();
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(owners); i++) {
        const kl_value *owner = kl_value_item(owners, i);
        const char *uid = kl_value_str(kl_value_get(owner, "uid"));
        char *text = identity(owner);
        bool had = kl_map_set(seen, text, seen);
        kl_free(text);
        if (had)
            kl_buf_printf(&twice, "%s%s", twice.len ? ", " : "", uid ? uid : "");
        else
            kl_build_value(b, owner);
    }
    kl_map_free(seen, NULL);
    kl_build_end(b);
    const kl_value *unique = kl_builder_done(b);
    if (twice.len)
        KL_EDIT(o, kl_value_ref(unique), "metadata", "ownerReferences");
    kl_value_unref(unique);
    return twice.len ? kl_buf_take(&twice) : NULL;
}

void kl__validate_owners(const kl_value *o, kl__causes *causes)
{
    check_owners("", kl_value_at(o, "metadata", "ownerReferences", NULL), causes);
}

void kl__validate_metadata_at(const char *path, const kl_value *o, kl__causes *causes)
{
    char *at = kl_sprintf("%s.", path), *labels = kl_sprintf("%smetadata.labels", at),
         *annotations = kl_sprintf("%smetadata.annotations", at);
    kl__validate_labels(labels, kl_value_at(o, "metadata", "labels", NULL), causes);
    kl__validate_annotations(annotations, kl_value_at(o, "metadata", "annotations", NULL), causes);
    check_owners(at, kl_value_at(o, "metadata", "ownerReferences", NULL), causes);
    kl_free(labels);
    kl_free(annotations);
    kl_free(at);
}
