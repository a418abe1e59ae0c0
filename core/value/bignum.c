/* bignum.c - decimal big numbers in limbs of nine digits. Every operation is one pass over the limbs, so
 * that the cost of a long quantity is its length and not its square. */
#include "value/bignum.h"
#include <assert.h>
#include <string.h>
#include "base/mem.h"

#define LIMB 1000000000u
#define LIMB_DIGITS 9

static const uint32_t tens[LIMB_DIGITS] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

static void room(kl_bignum *n, size_t limbs)
{
    if (limbs <= n->cap)
        return;
    n->cap = limbs + limbs / 2 + 2;
    n->limb = kl_realloc(n->limb, n->cap * sizeof *n->limb);
}

static void trim(kl_bignum *n)
{
    while (n->len && n->limb[n->len - 1] == 0)
        n->len--;
    if (!n->len)
        n->neg = false;
}

void kl_bignum_fini(kl_bignum *n)
{
    kl_free(n->limb);
    *n = KL_BIGNUM_INIT;
}

void kl_bignum_copy(kl_bignum *to, const kl_bignum *from)
{
    if (to == from)
        return;
    room(to, from->len);
    if (from->len)
        memcpy(to->limb, from->limb, from->len * sizeof *from->limb);
    to->len = from->len;
    to->neg = from->neg;
}

static void set_magnitude(kl_bignum *n, uint64_t v)
{
    room(n, 3);
    n->len = 0;
    for (; v; v /= LIMB)
        n->limb[n->len++] = (uint32_t)(v % LIMB);
}

void kl_bignum_set(kl_bignum *n, int64_t v)
{
    n->neg = v < 0;
    set_magnitude(n, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

void kl_bignum_set_digits(kl_bignum *n, const char *digits, size_t len, bool neg)
{
    room(n, len / LIMB_DIGITS + 1);
    n->len = 0;
    n->neg = neg;
    while (len) {
        size_t take = len < LIMB_DIGITS ? len : LIMB_DIGITS, i;
        uint32_t v = 0;

        for (i = len - take; i < len; i++)
            v = v * 10 + (uint32_t)(digits[i] - '0');
        n->limb[n->len++] = v;
        len -= take;
    }
    trim(n);
}

int kl_bignum_sign(const kl_bignum *n) { return !n->len ? 0 : n->neg ? -1 : 1; }

size_t kl_bignum_digits(const kl_bignum *n)
{
    size_t top = 1;

    if (!n->len)
        return 0;
    while (top < LIMB_DIGITS && n->limb[n->len - 1] >= tens[top])
        top++;
    return (n->len - 1) * LIMB_DIGITS + top;
}

static int cmp_magnitude(const kl_bignum *a, const kl_bignum *b)
{
    size_t i;

    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    for (i = a->len; i-- > 0;)
        if (a->limb[i] != b->limb[i])
            return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

int kl_bignum_cmp(const kl_bignum *a, const kl_bignum *b)
{
    int sa = kl_bignum_sign(a), sb = kl_bignum_sign(b);

    if (sa != sb)
        return sa < sb ? -1 : 1;
    return sa < 0 ? cmp_magnitude(b, a) : cmp_magnitude(a, b);
}

bool kl_bignum_get(const kl_bignum *n, int64_t *out)
{
    uint64_t limit = n->neg ? (uint64_t)1 << 63 : INT64_MAX, v = 0;
    size_t i;

    for (i = n->len; i-- > 0;) {
        if (v > (limit - n->limb[i]) / LIMB) {
            *out = n->neg ? INT64_MIN : INT64_MAX;
            return false;
        }
        v = v * LIMB + n->limb[i];
    }
    *out = n->neg ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

void kl_bignum_print(const kl_bignum *n, kl_buf *out)
{
    size_t i;

    if (!n->len) {
        kl_buf_putc(out, '0');
        return;
    }
    if (n->neg)
        kl_buf_putc(out, '-');
    kl_buf_printf(out, "%u", n->limb[n->len - 1]);
    for (i = n->len - 1; i-- > 0;)
        kl_buf_printf(out, "%09u", n->limb[i]);
}

static void add_magnitude(kl_bignum *n, const kl_bignum *b)
{
    size_t i, len = (n->len > b->len ? n->len : b->len);
    uint32_t carry = 0;

    room(n, len + 1);
    for (i = 0; i < len || carry; i++) {
        uint32_t sum = (i < n->len ? n->limb[i] : 0) + (i < b->len ? b->limb[i] : 0) + carry;

        carry = sum >= LIMB;
        n->limb[i] = carry ? sum - LIMB : sum;
    }
    n->len = i;
}

/* n = |big - small| where |big| >= |small|; n may be either. */
static void sub_magnitude(kl_bignum *n, const kl_bignum *big, const kl_bignum *small)
{
    size_t i, len = big->len;
    uint32_t borrow = 0;

    room(n, len);
    for (i = 0; i < len; i++) {
        uint32_t take = (i < small->len ? small->limb[i] : 0) + borrow, from = big->limb[i];

        borrow = from < take;
        n->limb[i] = borrow ? from + LIMB - take : from - take;
    }
    assert(!borrow);
    n->len = len;
}

void kl_bignum_add(kl_bignum *n, const kl_bignum *b)
{
    if (!b->len)
        return;
    if (!n->len || n->neg == b->neg) {
        n->neg = b->neg;
        add_magnitude(n, b);
    } else if (cmp_magnitude(n, b) >= 0) {
        sub_magnitude(n, n, b);
    } else {
        sub_magnitude(n, b, n);
        n->neg = b->neg;
    }
    trim(n);
}

void kl_bignum_mul(kl_bignum *n, uint64_t by)
{
    unsigned __int128 carry = 0;
    size_t i;

    room(n, n->len + 3);
    for (i = 0; i < n->len; i++) {
        carry += (unsigned __int128)n->limb[i] * by;
        n->limb[i] = (uint32_t)(carry % LIMB);
        carry /= LIMB;
    }
    for (; carry; carry /= LIMB)
        n->limb[n->len++] = (uint32_t)(carry % LIMB);
    trim(n);
}

void kl_bignum_shift_up(kl_bignum *n, size_t digits)
{
    size_t limbs = digits / LIMB_DIGITS;

    if (!n->len || !digits)
        return;
    kl_bignum_mul(n, tens[digits % LIMB_DIGITS]);
    if (!limbs)
        return;
    room(n, n->len + limbs);
    memmove(n->limb + limbs, n->limb, n->len * sizeof *n->limb);
    memset(n->limb, 0, limbs * sizeof *n->limb);
    n->len += limbs;
}

bool kl_bignum_shift_down(kl_bignum *n, size_t digits)
{
    size_t limbs = digits / LIMB_DIGITS, i;
    bool lost = false;

    if (limbs >= n->len) {
        lost = n->len > 0;
        n->len = 0;
        n->neg = false;
        return lost;
    }
    for (i = 0; i < limbs; i++)
        lost |= n->limb[i] != 0;
    memmove(n->limb, n->limb + limbs, (n->len - limbs) * sizeof *n->limb);
    n->len -= limbs;
    return kl_bignum_div(n, tens[digits % LIMB_DIGITS]) != 0 || lost;
}

uint32_t kl_bignum_div(kl_bignum *n, uint32_t by)
{
    uint64_t rest = 0;
    size_t i;

    if (by == 1)
        return 0;
    for (i = n->len; i-- > 0;) {
        rest = rest * LIMB + n->limb[i];
        n->limb[i] = (uint32_t)(rest / by);
        rest %= by;
    }
    trim(n);
    return (uint32_t)rest;
}

void kl_bignum_bump(kl_bignum *n, bool neg)
{
    uint32_t one = 1;
    kl_bignum b = {.limb = &one, .len = 1, .cap = 1, .neg = neg};

    kl_bignum_add(n, &b);
}
