/* scan.h - skips JSON text (private to core/value). With SSE2: strings by 16 bytes, values by 64. */
#ifndef KL_VALUE_SCAN_H
#define KL_VALUE_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* The first byte that ends a plain run of string text: a quote, a backslash, a control character or one above
 * 0x7f. */
static inline const char *kl__plain_end(const char *p, const char *end)
{
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"'), backslash = _mm_set1_epi8('\\'), space = _mm_set1_epi8(' ');
    for (; end - p >= 16; p += 16) {
        /* bytes above 0x7f are below ' ', as signed ones */
        __m128i x = _mm_loadu_si128((const __m128i *)p);
        __m128i stop = _mm_or_si128(
            _mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)), _mm_cmplt_epi8(x, space));
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
            int bits = _mm_movemask_epi8(
                _mm_or_si128(_mm_cmpeq_epi8(x, quote), _mm_cmpeq_epi8(x, backslash)));
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
        p = end - p > 1 ? p + 2 : end; /* an escaped character */
    }
}

/* The state of a walk over JSON text that knows only brackets, quotes and escapes. */
typedef struct kl__brackets {
    size_t depth;            /* brackets open */
    bool in_string, escaped; /* escaped: a backslash precedes the next character */
} kl__brackets;

#if defined(__SSE2__)
/* a bit for each of 64 characters */
typedef struct kl__block {
    uint64_t quote, backslash, open, close;
} kl__block;

static inline kl__block kl__block_of(const char *p)
{
    kl__block b = {0};
    for (int i = 0; i < 4; i++) {
        __m128i x = _mm_loadu_si128((const __m128i *)(p + 16 * i));
        /* '[' and '{', ']' and '}' differ by this bit */
        __m128i folded = _mm_or_si128(x, _mm_set1_epi8(0x20));
        b.quote |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8('"'))) << 16 * i;
        b.backslash |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(x, _mm_set1_epi8('\\')))
            << 16 * i;
        b.open |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{'))) << 16 * i;
        b.close |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(folded, _mm_set1_epi8('}')))
            << 16 * i;
    }
    return b;
}

/* Each bit becomes the parity of itself and the lower bits: ones from an opening quote to just before its
 * closing one. */
static inline uint64_t kl__between(uint64_t quotes)
{
    for (int i = 1; i < 64; i *= 2)
        quotes ^= quotes << i;
    return quotes;
}

/* The characters that a backslash before them escapes. Most blocks have none, and the others few. */
static inline uint64_t kl__escaped_in(uint64_t backslashes, bool *carry)
{
    uint64_t out = *carry;
    *carry = false;
    for (uint64_t left = backslashes & ~out; left;) {
        unsigned at = (unsigned)__builtin_ctzll(left);
        if (at == 63) {
            *carry = true;
            break;
        }
        out |= (uint64_t)2 << at;
        left &= ~((uint64_t)3 << at);
    }
    return out;
}
#endif

/* Counts the bits that are set, without the popcnt instruction, which not every processor has. */
static inline size_t kl__ones(uint64_t x)
{
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (size_t)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}

/* One block in one step: false when the end may be in it. */
static inline bool kl__brackets_block(kl__brackets *s, const char *p)
{
#if defined(__SSE2__)
    kl__block b = kl__block_of(p);
    bool escaped = s->escaped;
    if (b.backslash || escaped)
        b.quote &= ~kl__escaped_in(b.backslash, &escaped);
    uint64_t inside = kl__between(b.quote) ^ (s->in_string ? ~(uint64_t)0 : 0);
    size_t closed = kl__ones(b.close & ~inside);
    /* a backslash outside a string escapes nothing: invalid, handled slowly */
    if (closed >= s->depth || b.backslash & ~inside)
        return false;
    s->depth += kl__ones(b.open & ~inside) - closed;
    s->in_string = inside >> 63;
    s->escaped = escaped;
    return true;
#else
    (void)s, (void)p;
    return false;
#endif
}

/* Continues from p past the bracket that closes the outermost one (*whole), or to the end of the piece. */
static inline const char *kl__brackets_close(kl__brackets *s, const char *p, const char *end, bool *whole)
{
    *whole = false;
    while (p < end && !*whole) {
        if (end - p >= 64 && kl__brackets_block(s, p)) {
            p += 64;
            continue;
        }
        const char *stop = end - p > 64 ? p + 64 : end;
        for (; p < stop && !*whole; p++) {
            bool escaped = s->escaped;
            s->escaped = *p == '\\' && s->in_string && !escaped;
            if (*p == '"')
                s->in_string ^= !escaped;
            else if (!s->in_string && (*p == '{' || *p == '['))
                s->depth++;
            else if (!s->in_string && (*p == '}' || *p == ']'))
                *whole = !--s->depth;
        }
    }
    return p;
}

#endif
