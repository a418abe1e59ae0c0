/* last_applied.c - see lastappliedmanager.go and lastappliedupdater.go of apimachinery's managedfields. */
#include "schema/last_applied.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "schema/edit.h"
#include "schema/typed.h"

#define ANNOTATION "kubectl.kubernetes.io/last-applied-configuration"

static const kl_value *annotation(const kl_value *o)
{
    return kl_value_at(o, "metadata", "annotations", ANNOTATION, NULL);
}

kl__fieldset *kl__last_applied_fields(const kl__schema *s, const kl_value *live)
{
    size_t n;
    const char *text = kl_value_strn(annotation(live), &n);
    const kl_value *last = NULL;
    if (!text || kl_value_decode(text, n, &last, NULL))
        return NULL;
    kl__fieldset *fields = kl__fieldset_new();
    kl__changes since;
    kl__typed_fields(s, last, fields);
    kl__typed_compare(s, last, live, &since);
    kl__fieldset_subtract(fields, since.modified);
    kl__fieldset_subtract(fields, since.added);
    kl__fieldset_subtract(fields, since.removed);
    kl__changes_fini(&since);
    kl_value_unref(last);
    return fields;
}

static int by_key(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Keys sorted, as Go writes them. */
static void put_sorted(kl_builder *b, const kl_value *v)
{
    size_t len = kl_value_len(v), n;
    if (kl_value_type(v) == KL_ARRAY) {
        kl_build_array(b);
        for (size_t i = 0; i < len; i++)
            put_sorted(b, kl_value_item(v, i));
        kl_build_end(b);
    } else if (kl_value_type(v) == KL_OBJECT) {
        const char **keys = kl_new_array(const char *, len + 1);
        for (size_t i = 0; i < len; i++)
            kl_value_member(v, i, &keys[i], &n);
        qsort(keys, len, sizeof *keys, by_key);
        kl_build_object(b);
        for (size_t i = 0; i < len; i++) {
            kl_build_key(b, keys[i]);
            put_sorted(b, kl_value_get(v, keys[i]));
        }
        kl_build_end(b);
        kl_free(keys);
    } else {
        kl_build_value(b, v);
    }
}

void kl__last_applied_update(const char *manager, const kl_value *config, const kl_value **object)
{
    if (!annotation(*object) || strcmp(manager, "kubectl"))
        return;
    const kl_value *bare = kl_value_with_at(config, NULL, "metadata", "annotations", ANNOTATION, NULL);
    kl_builder *b = kl_builder_new();
    put_sorted(b, bare);
    const kl_value *sorted = kl_builder_done(b);
    char *json = kl_value_to_json(sorted), *line = kl_sprintf("%s\n", json);
    KL_EDIT(object, kl_value_of_str(line), "metadata", "annotations", ANNOTATION);
    kl_free(json);
    kl_free(line);
    kl_value_unref(sorted);
    kl_value_unref(bare);
}
