/* proto_memo.c - parts of objects that came before, by their bytes.
 *
 * Pods of one Deployment share ports, probes, resources and the fields that their controller manages, byte
 * for byte, while names between them differ. A hash and a comparison are less than a walk along the guide.
 * One place for each hash; the last one wins. */
#include "wire/proto_impl.h"

#include "base/hash.h"
#include "base/mem.h"

#define LEAST 12      /* bytes: decoding less is as fast */
#define MOST 256      /* of a message: a bigger one has a name in it, and its parts are looked up anyway */
#define MOST_RAW 4096 /* of JSON, whose parts are not looked up */

kl__memo *kl__memo_find(kl__proto *d, uint32_t what, const char *s, size_t n, kl__h *value)
{
    *value = 0;
    if (!d->many || n < LEAST || n > (what == KL__MEMO_RAW ? MOST_RAW : MOST))
        return NULL;
    if (!d->memos)
        d->memos = kl_new_array(kl__memo, KL__MEMOS);
    uint64_t hash = kl_quick_hash(s, n) + what * 0x9e3779b97f4a7c15u;
    kl__memo *m = &d->memos[hash >> 32 & (KL__MEMOS - 1)];
    if (m->hash == hash && m->value && m->len == n && !memcmp(m->bytes, s, n)) {
        *value = m->value;
        kl_value_ref(KL__VALUE(m->value));
    } else if (m->hash != hash) {
        kl_value_unref(KL__VALUE(m->value));
        m->value = 0;
        m->hash = hash;
        return NULL;
    }
    return m;
}

void kl__memo_keep(kl__memo *m, const char *s, size_t n, kl__h value)
{
    if (m->cap < n) {
        m->bytes = kl_realloc(m->bytes, n);
        m->cap = (uint32_t)n;
    }
    kl_value_unref(KL__VALUE(m->value));
    memcpy(m->bytes, s, n);
    m->len = (uint32_t)n;
    m->value = value;
    kl_value_ref(KL__VALUE(value));
}
