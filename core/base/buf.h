/* buf.h - a growable byte buffer with a ceiling.
 *
 * Owner thread. After a failure (ceiling) the buffer keeps its contents and stays failed: appends do nothing
 * and kl_buf_status says KL_ETOOBIG, so that a writer may check once at the end. data is always
 * NUL-terminated when anything was appended. */
#ifndef KL_BASE_BUF_H
#define KL_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include "base/err.h"

typedef struct kl_buf {
    char *data; /* NULL until the first append */
    size_t len;
    size_t cap;
    size_t max; /* ceiling of len; 0 means KL_BUF_MAX */
    bool failed;
} kl_buf;

#define KL_BUF_MAX ((size_t)1 << 31)
#define KL_BUF_INIT ((kl_buf){0})

void kl_buf_init(kl_buf *b, size_t max);
void kl_buf_fini(kl_buf *b);
void kl_buf_clear(kl_buf *b); /* keeps memory, forgets content and failure */
kl_status kl_buf_add(kl_buf *b, const void *data, size_t n);
kl_status kl_buf_puts(kl_buf *b, const char *s);
kl_status kl_buf_putc(kl_buf *b, char c);
kl_status kl_buf_printf(kl_buf *b, const char *fmt, ...) KL_PRINTF(2, 3);
/* room for n more bytes, or NULL at the ceiling; add to len yourself */
char *kl_buf_reserve(kl_buf *b, size_t n);
void kl_buf_consume(kl_buf *b, size_t n); /* drop n bytes at the front */
/* the NUL-terminated text, caller frees; buffer ends empty */
char *kl_buf_take(kl_buf *b);
/* never NULL; borrowed until the next change */
const char *kl_buf_str(const kl_buf *b);
kl_status kl_buf_status(const kl_buf *b);

#endif
