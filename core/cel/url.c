/* url.c - what Go's url.ParseRequestURI takes. */
#include <string.h>

#include "cel/net.h"

static bool letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
static bool digit(char c) { return c >= '0' && c <= '9'; }
static int hex(char c)
{
    return digit(c)            ? c - '0'
        : c >= 'a' && c <= 'f' ? c - 'a' + 10
        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                               : -1;
}

static bool escapes_good(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] == '%' && (i + 2 >= n || hex(s[i + 1]) < 0 || hex(s[i + 2]) < 0))
            return false;
    return true;
}

static char *unescaped(kl__carena *a, const char *s, size_t n, bool plus, size_t *len)
{
    char *out = kl__carena_alloc(a, n + 1);
    *len = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '%') {
            out[(*len)++] = (char)(hex(s[i + 1]) * 16 + hex(s[i + 2]));
            i += 2;
        } else
            out[(*len)++] = plus && s[i] == '+' ? ' ' : s[i];
    }
    return out;
}

/* What a path may hold as it is. */
static bool plain(char c) { return letter(c) || digit(c) || (c && strchr("-_.~$&+,/:;=@", c)); }

static const char *escaped_path(kl__carena *a, const char *s, size_t n)
{
    bool good = true;
    size_t len;
    for (size_t i = 0; i < n; i++)
        good = good && (plain(s[i]) || (s[i] && strchr("!'()*[]%", s[i])));
    if (good)
        return kl__carena_text(a, s, n);
    char *raw = unescaped(a, s, n, false, &len), *out = kl__carena_alloc(a, 3 * len + 1), *p = out;
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < len; i++) {
        if (plain(raw[i])) {
            *p++ = raw[i];
            continue;
        }
        *p++ = '%';
        *p++ = digits[(unsigned char)raw[i] >> 4];
        *p++ = digits[raw[i] & 15];
    }
    return out;
}

/* host[:port], behind the user. */
static const char *authority(kl__carena *a, const char *s, size_t n, kl__curl *u)
{
    const char *at = memrchr(s, '@', n), *colon;
    if (at) {
        for (const char *p = s; p < at; p++)
            if (!letter(*p) && !digit(*p) && !(*p && strchr("-._:~!$&'()*+,;=%@", *p)))
                return "net/url: invalid userinfo";
        n -= (size_t)(at + 1 - s);
        s = at + 1;
    }
    size_t name = n;
    if (n && s[0] == '[') {
        const char *end = memrchr(s, ']', n);
        if (!end)
            return "missing ']' in host";
        name = (size_t)(end + 1 - s);
        if (name < n && s[name] != ':')
            return "invalid port after host";
    } else if ((colon = memrchr(s, ':', n)))
        name = (size_t)(colon - s);
    for (size_t i = name + 1; i < n; i++)
        if (!digit(s[i]))
            return kl__carena_printf(a, "invalid port \"%.*s\" after host", (int)(n - name), s + name);
    for (size_t i = 0; i < name; i++) {
        if (s[i] == ':' && s[0] != '[')
            return "invalid port after host";
        if (!letter(s[i]) && !digit(s[i]) && (unsigned char)s[i] < 0x80
            && !(s[i] && strchr("-_.~!$&'()*+,;=:[]<>\"%", s[i])))
            return "invalid character in host name";
    }
    u->host = kl__carena_text(a, s, n);
    u->port = name < n ? kl__carena_text(a, s + name + 1, n - name - 1) : "";
    bool braced = name >= 2 && s[0] == '[';
    u->hostname = kl__carena_text(a, s + braced, name - 2 * braced);
    return NULL;
}

const char *kl__curl_parse(kl__carena *a, const char *s, size_t n, kl__curl *u)
{
    *u = (kl__curl){.text = kl__carena_text(a, s, n),
        .scheme = "",
        .host = "",
        .hostname = "",
        .port = "",
        .path = "",
        .query = ""};
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)s[i] < ' ' || s[i] == 127)
            return "net/url: invalid control character in URL";
    if (!n)
        return "empty url";
    size_t i = 0;
    while (i < n && (letter(s[i]) || (i && (digit(s[i]) || s[i] == '+' || s[i] == '-' || s[i] == '.'))))
        i++;
    if (i < n && s[i] == ':') {
        if (!i)
            return "missing protocol scheme";
        char *scheme = kl__carena_text(a, s, i);
        for (char *p = scheme; *p; p++)
            if (*p >= 'A' && *p <= 'Z')
                *p = (char)(*p - 'A' + 'a');
        u->scheme = scheme;
        s += i + 1;
        n -= i + 1;
    }
    const char *hash = memchr(s, '#', n); /* read again without it, as Go does */
    size_t whole = n;
    if (hash)
        n = (size_t)(hash - s);
    const char *mark = memchr(s, '?', n);
    if (mark) {
        u->query = kl__carena_text(a, mark + 1, n - (size_t)(mark + 1 - s));
        n = (size_t)(mark - s);
    }
    if (!n || s[0] != '/')
        return *u->scheme && whole ? NULL : *u->scheme ? NULL : "invalid URI for request";
    if (*u->scheme && n > 1 && s[1] == '/') {
        const char *slash = memchr(s + 2, '/', n - 2);
        size_t len = slash ? (size_t)(slash - s) - 2 : n - 2;
        if (!escapes_good(s + 2, len))
            return "invalid URL escape";
        const char *why = authority(a, s + 2, len, u);
        if (why)
            return why;
        s += 2 + len;
        n -= 2 + len;
    }
    if (!escapes_good(s, n))
        return "invalid URL escape";
    u->path = escaped_path(a, s, n);
    return NULL;
}

static kl__cval part(kl__cev *e, const char *s, size_t n, bool *good)
{
    size_t len = 0;
    *good = escapes_good(s, n);
    char *text = *good ? unescaped(e->a, s, n, true, &len) : NULL;
    return (kl__cval){.kind = KL_C_STRING, .s = {text ? text : "", len}};
}

kl__cval kl__curl_query(kl__cev *e, const kl__curl *u)
{
    kl__cmap *m = kl__cmap_new(e, 4);
    for (const char *p = u->query; *p;) {
        size_t n = strcspn(p, "&");
        const char *equals = memchr(p, '=', n);
        size_t nkey = equals ? (size_t)(equals - p) : n;
        bool good, good2 = true;
        kl__cval k = part(e, p, nkey, &good), v = {.kind = KL_C_STRING, .s = {"", 0}}, had;
        if (equals)
            v = part(e, equals + 1, n - nkey - 1, &good2);
        if (n && good && good2 && !memchr(p, ';', n)) {
            kl__clist *l;
            if (kl__cmap_get(e, m, k, &had))
                l = (kl__clist *)had.list;
            else {
                l = kl__clist_new(e, 2);
                kl__cmap_add(e, m, k, KL__CLIST(l));
            }
            kl__clist_add(e, l, v);
        }
        p += n + (p[n] == '&');
    }
    return (kl__cval){.kind = KL_C_MAP, .map = m};
}
