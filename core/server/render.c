/* render.c - which form a client asked for, and objects in the version it asked for. */
#include "server/render.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "server/edit.h"
#include "server/normalize.h"

const kl_value *kl__render_version(const kl__kind *k, const kl_value *stored)
{
    const kl_value *o = kl_value_ref(stored);
    if (k->storage && strcmp(k->storage, k->version)) {
        char *version = kl__kind_api_version(k);
        KL_EDIT(&o, kl_value_of_str(version), "apiVersion");
        kl_free(version);
    }
    if (k->custom && k->schema)
        kl__replace(&o, kl__normalize_custom(k->schema, o));
    return o;
}

/* One media range: "application/json;as=Table;v=v1;g=meta.k8s.io". */
static bool range_is(const char *range, size_t n, kl__form_kind *kind)
{
    char *text = kl_strndup(range, n), *save, *word = strtok_r(text, ";", &save);
    bool json = word != NULL, meta = true;
    *kind = KL_FORM_WHOLE;
    while (word && *word == ' ')
        word++;
    if (word) {
        word[strcspn(word, " ")] = 0;
        json = !strcmp(word, "application/json") || !strcmp(word, "application/*") || !strcmp(word, "*/*");
    }
    while (json && (word = strtok_r(NULL, ";", &save))) {
        while (*word == ' ')
            word++;
        if (!strncmp(word, "as=", 3)) {
            if (!strcmp(word + 3, "Table"))
                *kind = KL_FORM_TABLE;
            else if (!strcmp(word + 3, "PartialObjectMetadata") || !strcmp(word + 3, "PartialObjectMetadataList"))
                *kind = KL_FORM_METADATA;
            else
                json = false;
        }
        if (!strncmp(word, "g=", 2))
            meta = !strcmp(word + 2, "meta.k8s.io");
        if (!strcmp(word, "stream=watch"))
            continue;
    }
    kl_free(text);
    return json && meta;
}

bool kl__form_parse(const char *accept, const char *include, kl__form *out)
{
    *out = (kl__form){0};
    if (include)
        out->include = !strcmp(include, "Object") ? KL_INCLUDE_OBJECT : !strcmp(include, "None") ? KL_INCLUDE_NONE : KL_INCLUDE_METADATA;
    if (!accept || !*accept)
        return true;
    for (const char *p = accept; *p;) {
        size_t n = strcspn(p, ",");
        if (range_is(p, n, &out->kind))
            return true;
        p += n + (p[n] == ',');
    }
    return false;
}
