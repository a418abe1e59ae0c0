/* escape.c - copies runs of plain bytes, and spells out what lies between them. */
#include "base/escape.h"

#include <stdio.h>
#include "base/utf8.h"

void kl_json_escape(kl_buf *out, const char *s, size_t n)
{
    static const char names[32] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    const char *run = s, *end = s + n;
    for (const char *p = s; p < end; p++) {
        unsigned char c = (unsigned char)*p;
        if (c >= ' ' && c != '"' && c != '\\')
            continue;
        kl_buf_add(out, run, (size_t)(p - run));
        run = p + 1;
        char esc[8] = {'\\', *p};
        size_t m = 2;
        if (c < ' ' && names[c])
            esc[1] = names[c];
        else if (c < ' ')
            m = (size_t)snprintf(esc, sizeof esc, "\\u%04x", c);
        kl_buf_add(out, esc, m);
    }
    kl_buf_add(out, run, (size_t)(end - run));
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
