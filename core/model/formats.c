/* formats.c - the formats of kube-openapi's strfmt, with its oddities: "P1D" is a duration, "::1.2.3.4" is an
 * ipv4, and a hostname with dots ends in two letters at least.
 *
 * Most formats are a regular expression, compiled on first use and kept for the life of the process. */
#include "model/formats.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/regex.h"

struct kl__format {
    const char *name;
    const char *pattern;                      /* NULL: none */
    bool (*fits)(const char *text, size_t n); /* called when the pattern matches; may be NULL */
    _Atomic(kl_regex *) compiled;
};

/* ------------------------------------------------------------------ numbers and addresses */

/* Leading zeros of an IPv4 address are not octal. */
static bool ipv4(const char *s)
{
    char plain[INET_ADDRSTRLEN];
    size_t n = 0;
    for (bool start = true; *s; s++) {
        if (start && *s == '0' && s[1] >= '0' && s[1] <= '9')
            continue;
        start = *s == '.';
        if (n + 1 == sizeof plain)
            return false;
        plain[n++] = *s;
    }
    plain[n] = 0;
    struct in_addr a;
    return inet_pton(AF_INET, plain, &a) == 1;
}

static bool ipv6(const char *s)
{
    struct in6_addr a;
    return inet_pton(AF_INET6, s, &a) == 1;
}

static bool has_ipv4(const char *text, size_t n)
{
    return !memchr(text, 0, n) && memchr(text, '.', n) && (ipv4(text) || ipv6(text));
}

static bool has_ipv6(const char *text, size_t n)
{
    return !memchr(text, 0, n) && memchr(text, ':', n) && ipv6(text);
}

static bool is_cidr(const char *text, size_t n)
{
    char address[INET6_ADDRSTRLEN];
    const char *slash = memchr(text, '/', n);
    size_t len = slash ? (size_t)(slash - text) : 0, digits = slash ? strspn(slash + 1, "0123456789") : 0;
    if (!digits || digits > 3 || slash + 1 + digits != text + n || len >= sizeof address
        || memchr(text, 0, n))
        return false;
    memcpy(address, text, len);
    address[len] = 0;
    int bits = atoi(slash + 1);
    return memchr(address, ':', len) ? ipv6(address) && bits <= 128 : ipv4(address) && bits <= 32;
}

static bool is_date(const char *text, size_t n)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year = atoi(text), month = n >= 7 ? atoi(text + 5) : 0, day = n >= 10 ? atoi(text + 8) : 0;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return month >= 1 && month <= 12 && day >= 1 && day <= days[month - 1] + (month == 2 && leap);
}

/* ------------------------------------------------------------------ sums of digits */

/* The characters of `text` that `keep` names, 19 at most. */
static size_t only(const char *text, size_t n, const char *keep, char out[20])
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++)
        if (text[i] && strchr(keep, text[i])) {
            if (len == 19)
                return 0;
            out[len++] = text[i];
        }
    out[len] = 0;
    return len;
}

static bool is_isbn10(const char *text, size_t n)
{
    char d[20];
    int sum = 0;
    if (only(text, n, "0123456789X", d) != 10 || memchr(d, 'X', 9))
        return false;
    for (int i = 0; i < 10; i++)
        sum += (i + 1) * (d[i] == 'X' ? 10 : d[i] - '0');
    return sum % 11 == 0;
}

static bool is_isbn13(const char *text, size_t n)
{
    char d[20];
    int sum = 0;
    if (only(text, n, "0123456789X", d) != 13 || memchr(d, 'X', 13))
        return false;
    for (int i = 0; i < 13; i++)
        sum += (i % 2 ? 3 : 1) * (d[i] - '0');
    return sum % 10 == 0;
}

static bool is_isbn(const char *text, size_t n) { return is_isbn10(text, n) || is_isbn13(text, n); }

static bool is_card(const char *text, size_t n)
{
    char d[20];
    size_t len = only(text, n, "0123456789", d);
    int sum = 0;
    for (size_t i = 0; i < len; i++) {
        int digit = (d[len - 1 - i] - '0') * (i % 2 ? 2 : 1);
        sum += digit > 9 ? digit - 9 : digit;
    }
    return len >= 13 && sum % 10 == 0;
}

/* ------------------------------------------------------------------ URIs, as url.ParseRequestURI has them */

static bool host_byte(unsigned char c)
{
    return c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
        || strchr("-_.~!$&'()*+,;=:[]<>\"%@", c);
}

static bool escapes_are_whole(const char *s, size_t n)
{
    static const char hex[] = "0123456789abcdefABCDEF";
    for (size_t i = 0; i < n; i++)
        if (s[i] == '%'
            && (i + 2 >= n || !s[i + 1] || !strchr(hex, s[i + 1]) || !s[i + 2] || !strchr(hex, s[i + 2])))
            return false;
    return true;
}

static bool is_uri(const char *text, size_t n)
{
    const char *end = text + n, *rest = text;
    for (const char *p = text; p < end; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    const char *colon = memchr(text, ':', n);
    if (*text != '/') {
        if (!colon
            || strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.")
                < (size_t)(colon - text)
            || colon == text || !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *text))
            return false;
        rest = colon + 1;
        if (rest < end && *rest != '/')
            return true; /* an opaque URI */
    }
    if (end - rest >= 2 && rest[0] == '/' && rest[1] == '/'
        && (rest != text || end - rest < 3 || rest[2] != '/')) {
        const char *host = rest + 2;
        for (rest = host; rest < end && *rest != '/' && *rest != '?'; rest++)
            if (!host_byte((unsigned char)*rest))
                return false;
        const char *port = memrchr(host, ':', (size_t)(rest - host));
        if (port && !memchr(port, ']', (size_t)(rest - port))
            && strspn(port + 1, "0123456789") < (size_t)(rest - port - 1))
            return false;
    }
    const char *query = memchr(rest, '?', (size_t)(end - rest));
    return escapes_are_whole(rest, (size_t)((query ? query : end) - rest));
}

/* ------------------------------------------------------------------ the table */

#define HEX2 "[0-9a-fA-F]{2}"
#define HEX4 "[0-9a-fA-F]{4}"
#define UUID(version, variant) "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?" version "-?" variant "-?[0-9a-f]{12}$"
#define LETTER "[a-zA-Z0-9\\p{S}\\p{L}]"
#define ATOM "[-A-Za-z0-9!#$%&'*+/=?^_`{|}~\\x{80}-\\x{10ffff}]"
#define QUOTED "\"(?:[^\"\\\\\r\n]|\\\\.)*\""
#define ADDRESS                                                                                              \
    "(?:" ATOM "+(?:\\." ATOM "+)*|" QUOTED ")@(?:" ATOM "+(?:\\." ATOM "+)*|\\[[^\\]\\[\\\\]*\\])"
#define BYTE "(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
#define UNIT "(?:ns|us|µs|ms|s|m|h|hr|d|w|wk|(?:nano|micro|milli|sec|min|hour|day|week)[a-zµ]*)"

#define DATE_TIME                                                                                            \
    "(?i)^[0-9]{4}-[0-9]{2}-[0-9]{2}t(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:.[0-9]+)?"                 \
    "(?:z|[+-][0-9]{2}:[0-9]{2})$"

static kl__format formats[] = {
    {"bsonobjectid", "^[0-9a-fA-F]{24}$", NULL},
    {"byte", "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$", NULL},
    {"cidr", NULL, is_cidr},
    {"creditcard", "^[^0-9]*(?:[0-9][^0-9]*){13,19}$", is_card},
    {"date", "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", is_date},
    {"date-time", DATE_TIME, is_date},
    {"datetime", DATE_TIME, is_date},
    {"duration", "(?i)^[-+]?0$|[0-9]+\\s*" UNIT "(?:[^a-zµ]|$)", NULL},
    {"email", "^(?:(?:(?:(?:" ATOM "|\\.)+|" QUOTED ")\\s*)*<" ADDRESS ">|\\s*" ADDRESS "\\s*)$", NULL},
    {"hexcolor", "^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$", NULL},
    {"hostname",
        "^(?:" LETTER "(?:-?" LETTER "{0,62})?|(?:" LETTER "(?:[-a-zA-Z0-9\\p{S}\\p{L}]{0,61}" LETTER
        ")?\\.)+[a-zA-Z\\p{L}]{2,63})$",
        NULL},
    {"ipv4", NULL, has_ipv4},
    {"ipv6", NULL, has_ipv6},
    {"isbn", "^[0-9X\\s-]+$", is_isbn},
    {"isbn10", "^[0-9X\\s-]+$", is_isbn10},
    {"isbn13", "^[0-9\\s-]+$", is_isbn13},
    {"mac",
        "^(?:" HEX2 "(?::" HEX2 "){5}(?:(?::" HEX2 "){2}|(?::" HEX2 "){14})?|" HEX2 "(?:-" HEX2
        "){5}(?:(?:-" HEX2 "){2}|(?:-" HEX2 "){14})?|" HEX4 "(?:\\." HEX4 "){2}(?:\\." HEX4 "|(?:\\." HEX4
        "){7})?)$",
        NULL},
    {"password", NULL, NULL},
    {"rgbcolor", "^rgb\\(\\s*" BYTE "\\s*,\\s*" BYTE "\\s*,\\s*" BYTE "\\s*\\)$", NULL},
    {"ssn", "^[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}$", NULL},
    {"uri", NULL, is_uri},
    {"uuid", UUID("[0-9a-f]{4}", "[0-9a-f]{4}"), NULL},
    {"uuid3", UUID("3[0-9a-f]{3}", "[0-9a-f]{4}"), NULL},
    {"uuid4", UUID("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), NULL},
    {"uuid5", UUID("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"), NULL},
};

kl__format *kl__format_get(const char *name)
{
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, name))
            return &formats[i];
    return NULL;
}

bool kl__format_fits(kl__format *f, const char *text, size_t n)
{
    if (f->pattern) {
        const kl_regex *re = kl_regex_once(&f->compiled, f->pattern, strlen(f->pattern));
        if (re && !kl_regex_matches(re, text, n))
            return false;
    }
    return !f->fits || f->fits(text, n);
}
