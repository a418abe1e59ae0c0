/* escape.c - computes the length, then copies plain bytes and writes escapes between them. */
#include "base/escape.h"

#include <string.h>

#include "base/utf8.h"

/* The letter of the short escape, 'u' for a long escape, or 0 for none. */
static char spelt(unsigned char c)
{
    static const char names[32] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (c < ' ')
        return names[c] ? names[c] : 'u';
    return c == '"' || c == '\\' ? (char)c : '\0';
}

static char *spell(char *to, unsigned char c, char how)
{
    static const char hex[] = "0123456789abcdef";
    *to++ = '\\';
    *to++ = how;
    if (how != 'u')
        return to;
    memcpy(to, (char[]){'0', '0', hex[c >> 4], hex[c & 15]}, 4);
    return to + 4;
}

void kl_json_escape(kl_buf *out, const char *s, size_t n)
{
    size_t more = 0;
    for (size_t i = 0; i < n; i++) {
        char how = spelt((unsigned char)s[i]);
        more += how == 'u' ? 5 : how != '\0';
    }
    char *to = kl_buf_reserve(out, n + more);
    if (!to)
        return;
    out->len += n + more;
    out->data[out->len] = '\0';
    if (!more) {
        memcpy(to, s, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        char how = spelt(c);
        if (how)
            to = spell(to, c, how);
        else
            *to++ = (char)c;
    }
}

void kl_json_escape_any(kl_buf *out, const char *s, size_t n)
{
    size_t run = 0, i = 0;
    while (i < n) {
        size_t m = kl_utf8_char(s + i, n - i);
        if (!m) {
            kl_json_escape(out, s + run, i - run);
            kl_buf_puts(out, "\xef\xbf\xbd");
            run = i + 1;
        }
        i += m ? m : 1;
    }
    kl_json_escape(out, s + run, n - run);
}
