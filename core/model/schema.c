/* schema.c - a schema as a piece of memory: validated before use, and looked up. */
#include "model/schema.h"

#include <string.h>
#include "base/mem.h"
#include "model/schema_impl.h"

kl_schema *kl_schema_ref(kl_schema *s)
{
    if (s)
        atomic_fetch_add(&s->refs, 1);
    return s;
}

void kl_schema_unref(kl_schema *s)
{
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
        return;
    kl_free((void *)s->head);
    kl_free(s);
}

const void *kl_schema_bytes(const kl_schema *s, size_t *n)
{
    *n = s->head->size;
    return s->head;
}

size_t kl_schema_kinds(const kl_schema *s) { return s->head->kinds; }

/* --- believing ---------------------------------------------------------------------------- */

static bool sizes_fit(const kl__shead *h, size_t n)
{
    uint64_t want = sizeof *h + (uint64_t)h->nodes * sizeof(kl__snode)
        + (uint64_t)h->fields * sizeof(kl__sfield) + (uint64_t)h->kinds * sizeof(kl__skind) + h->names;
    return h->magic == KL__SCHEMA_MAGIC && h->size == n && want == n && h->nodes && h->names;
}

static bool indexes_fit(const kl_schema *s)
{
    const kl__shead *h = s->head;
    bool good = s->names[h->names - 1] == 0;
    for (uint32_t i = 0; i < h->nodes && good; i++) {
        const kl__snode *x = &s->nodes[i];
        good = x->types <= KL__TYPES && x->first <= h->fields && x->n <= h->fields - x->first
            && (x->items == KL__NO_NODE || x->items < h->nodes);
    }
    for (uint32_t i = 0; i < h->fields && good; i++)
        good = s->fields[i].name < h->names && s->fields[i].node < h->nodes;
    for (uint32_t i = 0; i < h->kinds && good; i++)
        good = s->kinds[i].text < h->names && s->kinds[i].node < h->nodes;
    return good;
}

kl_status kl__schema_adopt(kl__shead *piece, size_t n, kl_schema **out, kl_err *err)
{
    kl_schema *s = kl_new(kl_schema);
    bool good = n >= sizeof *piece && sizes_fit(piece, n);
    if (good) {
        s->head = piece;
        s->nodes = (const kl__snode *)(piece + 1);
        s->fields = (const kl__sfield *)(s->nodes + piece->nodes);
        s->kinds = (const kl__skind *)(s->fields + piece->fields);
        s->names = (const char *)(s->kinds + piece->kinds);
        good = indexes_fit(s);
    }
    if (!good) {
        kl_free(s);
        kl_free(piece);
        return kl_fail(err, KL_ESYNTAX, "invalid bytes of a schema");
    }
    atomic_init(&s->refs, 1);
    *out = s;
    return KL_OK;
}

kl_status kl_schema_load(const void *bytes, size_t n, kl_schema **out, kl_err *err)
{
    kl__shead *piece = kl_alloc(n ? n : 1); /* aligned, whatever the bytes are */
    if (n)
        memcpy(piece, bytes, n);
    return kl__schema_adopt(piece, n, out, err);
}

/* --- looking up --------------------------------------------------------------------------- */

uint32_t kl__schema_root(const kl_schema *s, const char *group, const char *version, const char *kind)
{
    char *text = kl_sprintf("%s/%s/%s", group, version, kind);
    uint32_t lo = 0, hi = s->head->kinds, found = KL__NO_NODE;
    while (lo < hi && found == KL__NO_NODE) {
        uint32_t mid = lo + (hi - lo) / 2;
        int c = strcmp(s->names + s->kinds[mid].text, text);
        if (!c)
            found = s->kinds[mid].node;
        else if (c < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    kl_free(text);
    return found;
}

bool kl_schema_has(const kl_schema *s, const char *group, const char *version, const char *kind)
{
    return kl__schema_root(s, group, version, kind) != KL__NO_NODE;
}
