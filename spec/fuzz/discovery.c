/* discovery.c - any discovery document, and any cached file of one: the first byte chooses.
 *   0: a file of the shelf. It is refused, or packed again it is the same.
 *   else: a discovery document, and behind a zero byte what somebody asks of it. Whatever is answered has a
 *   name that finds it. */
#include "base/mem.h"
#include "base/log.h"
#include "base/shelf.h"
#include "fuzz/fuzz.h"
#include "client/catalog.h"

static void shelf(const char *text, size_t n)
{
    char *tag = NULL;
    const char *bytes;
    size_t len;
    if (kl_shelf_unpack(text, n, &tag, &bytes, &len, NULL))
        return;
    kl_buf again = KL_BUF_INIT;
    char *tag2 = NULL;
    const char *bytes2;
    size_t len2;
    kl_shelf_pack(tag, bytes, len, &again);
    CLAIM(kl_shelf_unpack(again.data, again.len, &tag2, &bytes2, &len2, NULL) == KL_OK);
    CLAIM(len == len2 && !memcmp(bytes, bytes2, len) && !strcmp(tag, tag2));
    kl_buf_fini(&again);
    kl_free(tag);
    kl_free(tag2);
}

static void ask(kl__catalog *c, const char *word)
{
    const kl_resource *r = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = kl__catalog_find(c, word, &r, &err);
    CLAIM(st ? !r && *kl_err_message(&err) : r != NULL);
    CLAIM(kl__catalog_word(c, word) == r && kl__catalog_word(c, word) == r);
    if (kl__word_check(word, NULL))
        CLAIM(st == KL_EINVAL);
    kl_err_fini(&err);
}

static void document(const kl_value *v, const char *word)
{
    kl__pool pool = {0};
    kl__catalog *first = kl__catalog_new(&pool, NULL, 0);
    if (kl__is_aggregated(v))
        kl__catalog_aggregated(first, v);
    else
        kl__catalog_list(first, "example.com", "v1", v);
    kl__catalog_done(first);
    ask(first, word);
    for (size_t i = 0; i < first->n && i < 50; i++) {
        char *name = kl_gvk_text(first->order[i]->group, first->order[i]->version, first->order[i]->kind);
        ask(first, name);
        ask(first, first->order[i]->plural);
        kl_free(name);
    }
    kl__catalog *next = kl__catalog_new(&pool, first, KL_SECONDS(2));
    kl__catalog_carry(next, true);
    kl__catalog_carry(next, false);
    kl__catalog_done(next);
    CLAIM(next->n == first->n && kl_map_len(next->failed) == kl_map_len(first->failed));
    CLAIM(!kl_map_len(next->missed));
    ask(next, word);
    kl__catalog_free(next);
    kl__catalog_free(first);
    kl__pool_fini(&pool);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    kl_log_set_level(KL_LOG_OFF);
    const char *text = (const char *)data + 1, *zero = memchr(text, 0, size - 1);
    if (!data[0]) {
        shelf(text, size - 1);
        return 0;
    }
    size_t n = zero ? (size_t)(zero - text) : size - 1;
    char *word = zero ? kl_strndup(zero + 1, size - 2 - n) : kl_strdup("pods");
    const kl_value *v = NULL;
    if (!kl_value_decode(text, n, &v, NULL))
        document(v, word);
    kl_value_unref(v);
    kl_free(word);
    return 0;
}
