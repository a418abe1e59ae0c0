/* last_applied.c - see lastappliedmanager.go and lastappliedupdater.go of apimachinery's managedfields. */
#include "schema/last_applied.h"

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

void kl__last_applied_update(const char *manager, const kl_value *config, const kl_value **object)
{
    if (!annotation(*object) || strcmp(manager, "kubectl"))
        return;
    const kl_value *bare = kl_value_with_at(config, NULL, "metadata", "annotations", ANNOTATION, NULL);
    kl_buf line = KL_BUF_INIT;
    kl_value_encode_sorted(bare, &line);
    kl_buf_putc(&line, '\n');
    KL_EDIT(object, kl_value_of_str(kl_buf_str(&line)), "metadata", "annotations", ANNOTATION);
    kl_buf_fini(&line);
    kl_value_unref(bare);
}
