/* buf.c - growing bytes with a ceiling.
 *
 * Capacity doubles, so appends are cheap on average. The byte after the text is always NUL once memory
 * exists, so kl_buf_str costs nothing. A failed buffer stays failed until it is cleared: writers check
 * once, at the end. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/mem.h"

#define FIRST_CAP ((size_t)64)

static size_t ceiling(const kl_buf *b) { return b->max ? b->max : KL_BUF_MAX; }

void kl_buf_init(kl_buf *b, size_t max)
{
    *b = KL_BUF_INIT;
    b->max = max;
}

void kl_buf_fini(kl_buf *b)
{
    size_t max = b->max;
    kl_free(b->data);
    kl_buf_init(b, max);
}

void kl_buf_clear(kl_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

char *kl_buf_reserve(kl_buf *b, size_t n)
{
    size_t max = ceiling(b);
    if (b->failed || b->len > max || n > max - b->len) {
        b->failed = true;
        return NULL;
    }
    size_t need = b->len + n + 1;
    if (need > b->cap) {
        size_t cap = b->cap ? b->cap : FIRST_CAP;
        while (cap < need)
            cap *= 2;
        if (cap > max + 1)
            cap = max + 1;
        b->data = kl_realloc(b->data, cap);
        b->cap = cap;
    }
    b->data[b->len] = '\0';
    return b->data + b->len;
}

kl_status kl_buf_add(kl_buf *b, const void *data, size_t n)
{
    char *at = kl_buf_reserve(b, n);
    if (!at)
        return KL_ETOOBIG;
    if (n)
        memcpy(at, data, n);
    b->len += n;
    b->data[b->len] = '\0';
    return KL_OK;
}

kl_status kl_buf_puts(kl_buf *b, const char *s) { return kl_buf_add(b, s, strlen(s)); }

kl_status kl_buf_putc(kl_buf *b, char c)
{
    if (!b->failed && b->len + 1 < b->cap && b->len < ceiling(b)) {
        b->data[b->len++] = c;
        b->data[b->len] = '\0';
        return KL_OK;
    }
    return kl_buf_add(b, &c, 1);
}

kl_status kl_buf_printf(kl_buf *b, const char *fmt, ...)
{
    char small[256];
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    kl_status st;
    if (n < 0) {
        b->failed = true;
        st = KL_ETOOBIG;
    } else if ((size_t)n < sizeof small) {
        st = kl_buf_add(b, small, (size_t)n);
    } else {
        char *at = kl_buf_reserve(b, (size_t)n);
        if (at) {
            vsnprintf(at, (size_t)n + 1, fmt, again);
            b->len += (size_t)n;
        }
        st = at ? KL_OK : KL_ETOOBIG;
    }
    va_end(again);
    return st;
}

void kl_buf_consume(kl_buf *b, size_t n)
{
    if (n > b->len)
        n = b->len;
    if (!n)
        return;
    b->len -= n;
    memmove(b->data, b->data + n, b->len);
    b->data[b->len] = '\0';
}

char *kl_buf_take(kl_buf *b)
{
    char *p = b->data ? b->data : kl_strdup("");
    kl_buf_init(b, b->max);
    return p;
}

const char *kl_buf_str(const kl_buf *b) { return b->data ? b->data : ""; }

kl_status kl_buf_status(const kl_buf *b) { return b->failed ? KL_ETOOBIG : KL_OK; }
