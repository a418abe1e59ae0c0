/* escape.c - copies plain bytes and writes escapes between them; for JSON the length is computed first. */
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

/* The code of a character that is none for people, 0 for all others: DEL, C1, the ends of lines that are not
 * ASCII, and what embeds, overrides or isolates a direction of writing. s has the character's m bytes. */
static unsigned hidden(const char *text, size_t m)
{
    const unsigned char *s = (const unsigned char *)text;
    unsigned code = m == 2 ? (s[0] & 0x1fU) << 6 | (s[1] & 0x3fU)
        : m == 3           ? (s[0] & 0x0fU) << 12 | (s[1] & 0x3fU) << 6 | (s[2] & 0x3fU)
                           : s[0];
    if (m == 1)
        return code == 0x7f ? code : 0;
    bool is = (m == 2 && code < 0xa0) || (m == 3 && code >= 0x2028 && code <= 0x202e)
        || (m == 3 && code >= 0x2066 && code <= 0x206f);
    return is ? code : 0;
}

void kl_json_escape_any(kl_buf *out, const char *s, size_t n)
{
    size_t run = 0, i = 0;
    while (i < n) {
        size_t m = kl_utf8_char(s + i, n - i);
        unsigned code = m ? hidden(s + i, m) : 0;
        if (m && !code) {
            i += m;
            continue;
        }
        kl_json_escape(out, s + run, i - run);
        if (m)
            kl_buf_printf(out, "\\u%04x", code);
        else
            kl_buf_puts(out, "\xef\xbf\xbd");
        i += m ? m : 1;
        run = i;
    }
    kl_json_escape(out, s + run, n - run);
}

/* --- for people --------------------------------------------------------------------------- */

/* A character of m bytes, 0 for a byte that is none. */
static void show(kl_buf *out, const char *s, size_t m)
{
    unsigned code = m ? hidden(s, m) : 0;
    if (*s == '\n')
        kl_buf_puts(out, "\\n");
    else if (*s == '\r')
        kl_buf_puts(out, "\\r");
    else if (*s == '\033')
        kl_buf_puts(out, "^[");
    else if (code)
        kl_buf_printf(out, "\\u%04x", code);
    else
        kl_buf_printf(out, "\\x%02x", (unsigned char)*s);
}

static bool is_visible(const char *s, size_t m, bool one_line)
{
    if (m == 1 && (unsigned char)*s < ' ')
        return *s == '\t' || (*s == '\n' && !one_line);
    return m && !hidden(s, m);
}

void kl_visible_escape(kl_buf *out, const char *s, size_t n, bool one_line)
{
    size_t run = 0;
    for (size_t i = 0, m; i < n; i += m ? m : 1) {
        m = kl_utf8_char(s + i, n - i);
        if (is_visible(s + i, m, one_line))
            continue;
        kl_buf_add(out, s + run, i - run);
        show(out, s + i, m);
        run = i + (m ? m : 1);
    }
    kl_buf_add(out, s + run, n - run);
}
