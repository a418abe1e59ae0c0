/* json_laws.h - what must hold for any bytes that are given to the decoder, for the fuzzer and for the
 * suite alike. Each function returns NULL, or the law that was broken. */
#ifndef KL_SPEC_JSON_LAWS_H
#define KL_SPEC_JSON_LAWS_H

#include "base/mem.h"
#include "value/json.h"
#include "support/strict_json.h"

#define LAW(holds)                                                                                           \
    do {                                                                                                     \
        if (!(holds))                                                                                        \
            return #holds;                                                                                   \
    } while (0)

/* Text in an allocation of its own, so that a sanitizer sees a read beyond it. */
static inline char *exact_copy(const char *text, size_t n)
{
    char *copy = kl_alloc(n);
    if (n)
        memcpy(copy, text, n);
    return copy;
}

/* A decoder refuses with a status, a story and nothing in *out. */
static inline const char *law_of_refusal(kl_status st, const kl_value *v, kl_err *err)
{
    bool told = err->status == st && *kl_err_message(err);
    kl_err_fini(err);
    LAW(st == KL_ESYNTAX);
    LAW(told);
    LAW(!v);
    return NULL;
}

/* Whether a double of -0 stands in encoded text: it is the one number that reads back as another, the
 * integer 0. */
static inline bool has_minus_zero(const kl_buf *text)
{
    const char *end = text->data + text->len;
    for (const char *at = text->data; (at = memmem(at, (size_t)(end - at), "-0", 2)); at += 2)
        if (at + 2 == end || strchr(",]}", at[2]))
            return true;
    return false;
}

/* v, which `text` gave, is written and read again until nothing changes any more. */
static inline const char *laws_of_encoding(const char *text, size_t n, const kl_value *v)
{
    kl_buf once = KL_BUF_INIT, twice = KL_BUF_INIT, pretty = KL_BUF_INIT;
    const kl_value *second = NULL, *third = NULL, *people = NULL;
    bool floats = memchr(text, '.', n) || memchr(text, 'e', n) || memchr(text, 'E', n);
    LAW(!kl_value_encode(v, &once));
    LAW(strict_accepts(once.data, once.len, KL_VALUE_DEPTH_MAX, false));
    LAW(!kl_value_decode(once.data, once.len, &second, NULL));
    LAW(strict_reads_as(once.data, once.len, false, second));
    LAW(kl_value_equal(v, second) && kl_value_equal(second, v));
    /* equal values are one; 1.0 is written 1 and is another */
    LAW(floats || second == v);
    LAW(!kl_value_encode(second, &twice));
    LAW(has_minus_zero(&once) || (once.len == twice.len && !memcmp(once.data, twice.data, once.len)));
    LAW(!kl_value_encode_pretty(v, &pretty));
    LAW(!kl_value_decode(pretty.data, pretty.len, &people, NULL));
    LAW(people == second);
    LAW(!kl_value_decode(twice.data, twice.len, &third, NULL));
    LAW(has_minus_zero(&once) || third == second);
    kl_buf_fini(&once);
    kl_buf_fini(&twice);
    kl_buf_fini(&pretty);
    kl_value_unref(second);
    kl_value_unref(third);
    kl_value_unref(people);
    return NULL;
}

/* The decoder reads `text` as the second opinion and cJSON do, or both sides refuse it. */
static inline const char *laws_of_decoding(const char *text, size_t n)
{
    const kl_value *v = NULL, *again = NULL, *last = NULL;
    kl_err err = KL_ERR_INIT;
    size_t nodes, left, bytes;
    kl_value_memory(&nodes, &bytes);

    char *copy = exact_copy(text, n);
    kl_status st = kl_value_decode(copy, n, &v, &err);
    kl_free(copy); /* nothing of a value points into the text */
    LAW(!st == strict_accepts(text, n, KL_VALUE_DEPTH_MAX, false));
    const char *broken = st ? law_of_refusal(st, v, &err) : NULL;
    if (!st) {
        LAW(strict_reads_as(text, n, false, v));
        LAW(kl_json_compare(text, n) != KL_JSON_DIFFERENT);
        LAW(!kl_value_decode(text, n, &again, NULL));
        LAW(again == v);
        broken = laws_of_encoding(text, n, v);
    }
    if (broken)
        return broken;

    kl_status st_last = kl_value_decode_last(text, n, &last, &err);
    LAW(!st_last == strict_accepts(text, n, KL_VALUE_DEPTH_MAX, true));
    LAW(st || last == v);
    if (st_last)
        broken = law_of_refusal(st_last, last, &err);
    else
        LAW(strict_reads_as(text, n, true, last));
    kl_value_unref(v);
    kl_value_unref(again);
    kl_value_unref(last);
    kl_value_memory(&left, &bytes);
    LAW(left == nodes);
    return broken;
}

#endif
