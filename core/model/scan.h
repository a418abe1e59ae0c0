/* scan.h - stepping over JSON text, 16 bytes at a time where the processor can (private to model/). */
#ifndef KL_MODEL_SCAN_H
#define KL_MODEL_SCAN_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The first byte that a plain run of string text ends with: a quote, a backslash, a control character or one above 0x7f. */
static inline const char *kl__plain_end(const char *p, const char *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(' ');
    for (; end - p >= 16; p += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)p);      /* bytes above 0x7f are below ' ', as signed ones */
        __m128i stop = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)), _mm_cmplt_epi8(x, space));
        int bits = _mm_movemask_epi8(stop);
        if (bits)
            return p + __builtin_ctz((unsigned)bits);
    }
#endif
    while (p < end && (signed char)*p >= ' ' && *p != '"' && *p != '\\')
        p++;
    return p;
}

/* From inside a string to its closing quote, or to the end. */
static inline const char *kl__string_end(const char *p, const char *end)
{
    for (;;) {
#if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\');
        for (; end - p >= 16; p += 16) {
            __m128i x = _mm_loadu_si128((const __m128i *)p);
            int bits = _mm_movemask_epi8(_mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)));
            if (bits) {
                p += __builtin_ctz((unsigned)bits);
                break;
            }
        }
#endif
        while (p < end && *p != '"' && *p != '\\')
            p++;
        if (p >= end || *p == '"')
            return p;
        p = end - p > 1 ? p + 2 : end;                        /* an escaped character */
    }
}

#endif
