/* names.c - what definitions, operations and tags are called, and which definitions a kind needs. */
#include <ctype.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "openapi/parts.h"

#define META "io.k8s.apimachinery.pkg.apis.meta.v1."

/* "com.example." of "example.com". */
static void reversed(kl_buf *out, const char *group)
{
    for (const char *end = group + strlen(group), *p = end; p >= group; p--) {
        if (p > group && p[-1] != '.')
            continue;
        kl_buf_add(out, p, (size_t)(end - p));
        kl_buf_putc(out, '.');
        end = p - 1;
    }
}

char *kl__openapi_name(const kl__definitions *d, const kl__kind *k, bool list)
{
    kl_buf name = KL_BUF_INIT;
    const kl__definition *of = k->custom || !k->schema || !k->schema->name
        ? NULL
        : kl__definitions_ending(d, k->schema->name);
    if (of)
        kl_buf_add(&name, of->name, strlen(of->name) - strlen(k->kind));
    else {
        reversed(&name, k->group);
        kl_buf_printf(&name, "%s.", k->version);
    }
    kl_buf_puts(&name, list ? k->list_kind : k->kind);
    char *out = kl_strdup(kl_buf_str(&name));
    kl_buf_fini(&name);
    return out;
}

/* The definition of a subresource's kind, by the end of its name: "autoscaling.v1.Scale" begins with the
 * first word of the group. */
kl__definition *kl__openapi_of_sub(const kl__definitions *d, const kl__kind *k, const kl__sub *sub)
{
    bool elsewhere = *sub->version;
    const char *group = elsewhere ? sub->group : k->group, *version = elsewhere ? sub->version : k->version;
    if (!elsewhere && (k->custom || !strcmp(sub->kind, k->kind)))
        return NULL;
    group = *group ? group : "core";
    char *end = kl_sprintf("%.*s.%s.%s", (int)strcspn(group, "."), group, version, sub->kind);
    kl__definition *of = kl__definitions_ending(d, end);
    kl_free(end);
    return of;
}

void kl__openapi_want_kind(kl__definitions *d, const kl__kind *k)
{
    if (k->custom) {
        kl__definitions_want_one(d, kl__definitions_get(d, META "ListMeta"));
        kl__definitions_want_one(d, kl__definitions_get(d, META "ObjectMeta"));
    }
    for (int list = 0; list < 2; list++) {
        char *name = kl__openapi_name(d, k, list);
        kl__definitions_want_one(d, kl__definitions_get(d, name));
        kl_free(name);
    }
}

/* ------------------------------------------------------------------ words */

/* "FlowcontrolApiserver" of "flowcontrol.apiserver.k8s.io", "Core" of "". */
static void group_word(kl_buf *out, const char *group)
{
    static const char usual[] = ".k8s.io";
    size_t n = strlen(group), more = sizeof usual - 1;
    bool first = true;
    if (n > more && !strcmp(group + n - more, usual))
        n -= more;
    if (!n)
        kl_buf_puts(out, "Core");
    for (size_t i = 0; i < n; i++) {
        bool letter = group[i] != '.' && group[i] != '-';
        if (letter)
            kl_buf_putc(out, (char)(first ? toupper((unsigned char)group[i]) : group[i]));
        first = !letter;
    }
}

char *kl__openapi_word(const char *group, const char *version)
{
    kl_buf word = KL_BUF_INIT;
    group_word(&word, group);
    if (version)
        kl_buf_printf(&word, "%c%s", toupper((unsigned char)*version), version + 1);
    return kl_buf_take(&word);
}

char *kl__openapi_tag(const char *group, const char *version)
{
    char *word = kl__openapi_word(group, NULL);
    *word = (char)tolower((unsigned char)*word);
    char *tag = version ? kl_sprintf("%s_%s", word, version) : kl_strdup(word);
    kl_free(word);
    return tag;
}

bool kl__openapi_begins(const kl__kinds *kinds, size_t i, bool group_alone)
{
    const kl__kind *k = kl__kinds_at(kinds, i);
    for (size_t j = 0; j < i; j++) {
        const kl__kind *before = kl__kinds_at(kinds, j);
        if (!strcmp(before->group, k->group) && (group_alone || !strcmp(before->version, k->version)))
            return false;
    }
    return true;
}
