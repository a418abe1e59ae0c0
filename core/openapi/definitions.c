/* definitions.c - inflates the text, finds its lines, and follows references between them. */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "openapi/definitions.h"

static const char prefix[] = "\"#/components/schemas/";

void kl__definitions_open(kl__definitions *d)
{
    size_t lines = 0;
    *d = (kl__definitions){.text = kl_packed_text(&kl__definitions_packed)};
    for (const char *p = d->text; (p = strchr(p, '\n')); p++)
        lines++;
    d->v = kl_new_array(kl__definition, lines);
    for (char *p = d->text, *end; (end = strchr(p, '\n')); p = end + 1) {
        char *blank = memchr(p, ' ', (size_t)(end - p));
        *end = 0;
        if (*p == '#' || !blank)
            continue;
        *blank = 0;
        d->v[d->len++] = (kl__definition){
            .name = p, .json = blank + 1, .json_len = (size_t)(end - blank - 1)};
    }
}

void kl__definitions_close(kl__definitions *d)
{
    kl_free(d->v);
    kl_free(d->text);
    *d = (kl__definitions){0};
}

/* The lines are sorted by name. */
kl__definition *kl__definitions_get(const kl__definitions *d, const char *name)
{
    size_t lo = 0, hi = d->len;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int c = strcmp(name, d->v[mid].name);
        if (!c)
            return &d->v[mid];
        if (c < 0)
            hi = mid;
        else
            lo = mid + 1;
    }
    return NULL;
}

kl__definition *kl__definitions_ending(const kl__definitions *d, const char *end)
{
    size_t n = strlen(end);
    for (size_t i = 0; i < d->len; i++) {
        size_t len = strlen(d->v[i].name);
        if (len > n && d->v[i].name[len - n - 1] == '.' && !strcmp(d->v[i].name + len - n, end))
            return &d->v[i];
    }
    return NULL;
}

void kl__definitions_want(kl__definitions *d, const char *json, size_t n)
{
    const char *end = json + n, *p = json;
    while ((p = memmem(p, (size_t)(end - p), prefix, sizeof prefix - 1))) {
        p += sizeof prefix - 1;
        const char *quote = memchr(p, '"', (size_t)(end - p));
        if (!quote)
            break;
        char *name = kl_strndup(p, (size_t)(quote - p));
        kl__definitions_want_one(d, kl__definitions_get(d, name));
        kl_free(name);
        p = quote;
    }
}

void kl__definitions_want_one(kl__definitions *d, kl__definition *of)
{
    if (!of || of->wanted)
        return;
    of->wanted = true;
    kl__definitions_want(d, of->json, of->json_len);
}
