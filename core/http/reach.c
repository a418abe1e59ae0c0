/* reach.c - URLs in their parts, rules, and addresses. */
#include "http/reach.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/buf.h"
#include "base/mem.h"

/* The length from which a path segment with letters and digits may be a key. */
#define KEY_LENGTH 20

/* --- URLs --------------------------------------------------------------------------------- */

static kl_status no_url(const char *why, kl_err *err)
{
    return kl_fail(err, KL_EINVAL, "%s; a URL is like \"https://dns.example.com/v1/records\"", why);
}

static const char *strange(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c <= ' ' || c >= 0x7f || strchr("\\\"<>^`{}|", c))
            return "a URL has letters, digits and punctuation; anything else is written as %XX";
        if (c == '#')
            return "a URL for a server has no fragment (#...)";
    }
    return NULL;
}

/* "." and "..", also as %2e: servers might resolve them differently. */
static bool is_step(const char *s, size_t n)
{
    size_t dots = 0;
    for (size_t i = 0; i < n; dots++) {
        if (s[i] == '.')
            i++;
        else if (n - i >= 3 && !strncasecmp(s + i, "%2e", 3))
            i += 3;
        else
            return false;
    }
    return dots == 1 || dots == 2;
}

static size_t path_length(const char *target) { return strcspn(target, "?"); }

static const char *bad_target(const char *t)
{
    const char *why = strange(t, strlen(t));
    size_t end = path_length(t);
    for (size_t i = 0; !why && i < end;) {
        size_t n = strcspn(t + i, "/?");
        if (n && is_step(t + i, n))
            why = "a path has no \".\" and \"..\" in it";
        i += n + 1;
    }
    for (size_t i = 0; !why && i + 2 < end; i++)
        if (!strncasecmp(t + i, "%2f", 3) || !strncasecmp(t + i, "%5c", 3))
            why = "a path has no %2F and %5C in it";
    return why;
}

/* The last label of a name is not a number: "0x7f.1" and "2130706433" are addresses to some programs. */
static bool is_name(const char *host)
{
    size_t n = strlen(host);
    if (!n || *host == '.' || *host == '-' || strstr(host, ".."))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)host[i]) && !isdigit((unsigned char)host[i]) && !strchr("-._", host[i]))
            return false;
    const char *dot = strrchr(host, '.');
    if (dot && !dot[1]) /* the final dot of the root: example.com. */
        return false;
    return !isdigit((unsigned char)*(dot ? dot + 1 : host));
}

static const char *take_host(const char *s, size_t n, kl_reach *out)
{
    unsigned char a[sizeof(struct in6_addr)];
    bool v6 = n > 2 && *s == '[' && s[n - 1] == ']';
    if (v6) {
        s++;
        n -= 2;
    }
    if (!n || n >= sizeof out->host)
        return "a URL has the name of a server";
    for (size_t i = 0; i < n; i++)
        out->host[i] = (char)tolower((unsigned char)s[i]);
    out->host[n] = '\0';
    out->is_address = inet_pton(v6 ? AF_INET6 : AF_INET, out->host, a) == 1;
    if (!out->is_address && (v6 || !is_name(out->host)))
        return "the server is neither a name nor an address";
    return NULL;
}

static const char *take_port(const char *s, size_t n, kl_reach *out)
{
    out->port = out->tls ? 443 : 80;
    if (!n)
        return NULL;
    char text[8] = "";
    if (n > 6 || n < 2 || strspn(s + 1, "0123456789") < n - 1)
        return "a port is a number";
    memcpy(text, s + 1, n - 1);
    out->port = (unsigned)strtoul(text, NULL, 10);
    return out->port >= 1 && out->port <= 65535 ? NULL : "a port is a number from 1 to 65535";
}

/* `wild`: a rule's "*." may stand before the name; what it leaves is in out->host. */
static const char *parse(const char *url, bool wild, kl_reach *out)
{
    *out = (kl_reach){.tls = !strncasecmp(url, "https://", 8)};
    if (!out->tls && strncasecmp(url, "http://", 7))
        return "it does not begin with http:// or https://";
    const char *s = url + (out->tls ? 8 : 7);
    size_t n = strcspn(s, "/?");
    out->target = s + n;
    const char *why = strange(s, n);
    if (why)
        return why;
    if (memchr(s, '@', n))
        return "a URL must not contain user and password; put them into headers";
    if (wild && n > 2 && !strncmp(s, "*.", 2)) {
        s += 2;
        n -= 2;
    } else {
        wild = false;
    }
    size_t host = *s == '[' ? strcspn(s, "]") + 1 : strcspn(s, ":");
    if (host > n)
        host = n;
    if (host < n && s[host] != ':')
        return "a port or a path must follow the server";
    why = take_host(s, host, out);
    if (!why && wild && out->is_address)
        why = "*. stands before a name";
    if (!why)
        why = take_port(s + host, n - host, out);
    return why ? why : bad_target(out->target);
}

bool kl_reach_is_server(const char *text)
{
    kl_reach r;
    return !take_host(text, strlen(text), &r);
}

kl_status kl_reach_parse(const char *url, kl_reach *out, kl_err *err)
{
    const char *why = parse(url, false, out);
    return why ? no_url(why, err) : KL_OK;
}

/* --- rules -------------------------------------------------------------------------------- */

static char *rule_url(const char *rule) { return kl_strndup(rule, strcspn(rule, " ")); }

kl_status kl_reach_rule_check(const char *rule, kl_err *err)
{
    kl_reach r;
    char *url = rule_url(rule);
    const char *why = parse(url, true, &r);
    if (!why && strchr(r.target, '?'))
        why = "a rule has no query";
    kl_status st = why ? no_url(why, err) : KL_OK;
    kl_free(url);
    return st;
}

static bool lets_path_in(const char *rule, const char *target)
{
    size_t n = strlen(rule), have = path_length(target);
    while (n && rule[n - 1] == '/')
        n--;
    return have >= n && !strncmp(rule, target, n) && (have == n || target[n] == '/' || !n);
}

static bool lets_host_in(bool wild, const char *rule, const char *host)
{
    size_t n = strlen(rule), have = strlen(host);
    if (!wild)
        return !strcmp(rule, host);
    return have > n + 1 && host[have - n - 1] == '.' && !strcmp(host + have - n, rule);
}

static bool lets_in(const char *rule, const kl_reach *url)
{
    kl_reach r;
    char *text = rule_url(rule);
    bool wild = strstr(text, "://*.") != NULL;
    bool yes = !parse(text, true, &r) && r.tls == url->tls && r.port == url->port
        && !(wild && url->is_address) && lets_host_in(wild, r.host, url->host)
        && lets_path_in(r.target, url->target);
    kl_free(text);
    return yes;
}

const char *kl_reach_rule(char *const *rules, const kl_reach *url)
{
    for (; rules && *rules; rules++)
        if (lets_in(*rules, url))
            return *rules;
    return NULL;
}

bool kl_reach_reads(const char *rule, const char *method)
{
    size_t n = strlen(method);
    if (!strcmp(method, "GET") || !strcmp(method, "HEAD"))
        return true;
    const char *word = rule ? strchr(rule, ' ') : NULL;
    for (; word; word = strchr(word + 1, ' '))
        if (!strncmp(word + 1, method, n) && (word[1 + n] == ' ' || !word[1 + n]))
            return true;
    return false;
}

/* --- addresses ---------------------------------------------------------------------------- */

static bool in4(uint32_t a, uint32_t net, unsigned bits) { return !((a ^ net) >> (32 - bits)); }

#define V4(a, b, c, d) ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

static bool is_loopback4(uint32_t a) { return in4(a, V4(127, 0, 0, 0), 8); }

static bool is_special4(uint32_t a)
{
    return is_loopback4(a) || in4(a, V4(0, 0, 0, 0), 8) || in4(a, V4(169, 254, 0, 0), 16)
        || in4(a, V4(224, 0, 0, 0), 3) /* groups, and what is reserved */
        || a == V4(100, 100, 100, 200) /* Alibaba's metadata */
        || a == V4(168, 63, 129, 16)   /* Azure's */
        || a == V4(192, 0, 0, 192);    /* Oracle's */
}

/* An IPv4 address in an IPv6 form. */
static bool embedded(const unsigned char *a, uint32_t *v4)
{
    static const unsigned char mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff}, compatible[12] = {0},
                               nat64[12] = {0, 0x64, 0xff, 0x9b};
    size_t at = 12;
    if (a[0] == 0x20 && a[1] == 0x02) /* 6to4 */
        at = 2;
    else if (memcmp(a, mapped, 12) && memcmp(a, compatible, 12) && memcmp(a, nat64, 12))
        return false;
    *v4 = V4(a[at], a[at + 1], a[at + 2], a[at + 3]);
    return true;
}

static bool is_special6(const unsigned char *a)
{
    static const unsigned char amazon[16] = {0xfd, 0, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54};
    uint32_t v4;
    if (embedded(a, &v4)) /* ::1 and :: among them */
        return is_special4(v4);
    return (a[0] == 0xfe && (a[1] & 0xc0) == 0x80) || a[0] == 0xff || !memcmp(a, amazon, 16);
}

static bool is_loopback(const struct sockaddr *a)
{
    static const unsigned char one[16] = {[15] = 1};
    if (a->sa_family == AF_INET)
        return is_loopback4(ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr));
    return !memcmp(((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr, one, 16);
}

/* localhost and the names below it. */
static bool is_localhost(const char *host)
{
    size_t n = strlen(host), word = strlen(".localhost");
    return !strcmp(host, "localhost") || (n > word && !strcmp(host + n - word, ".localhost"));
}

static bool is_same_address(const struct sockaddr *a, const char *host)
{
    unsigned char named[sizeof(struct in6_addr)];
    if (a->sa_family == AF_INET)
        return inet_pton(AF_INET, host, named) == 1
            && !memcmp(named, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
    return inet_pton(AF_INET6, host, named) == 1
        && !memcmp(named, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, 16);
}

bool kl_reach_address(const struct sockaddr *a, const char *host)
{
    if (a->sa_family != AF_INET && a->sa_family != AF_INET6)
        return false;
    bool special = a->sa_family == AF_INET
        ? is_special4(ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr))
        : is_special6(((const struct sockaddr_in6 *)(const void *)a)->sin6_addr.s6_addr);
    return !special || is_same_address(a, host) || (is_loopback(a) && is_localhost(host));
}

/* --- for people --------------------------------------------------------------------------- */

static bool looks_like_key(const char *s, size_t n)
{
    bool digit = false, letter = false;
    for (size_t i = 0; i < n; i++) {
        digit |= isdigit((unsigned char)s[i]) != 0;
        letter |= isalpha((unsigned char)s[i]) != 0;
    }
    return n >= KEY_LENGTH && digit && letter;
}

char *kl_reach_shown(const char *url)
{
    kl_buf b = KL_BUF_INIT;
    const char *server = strstr(url, "://");
    size_t at = server ? (size_t)(server - url) + 3 : 0, end = strcspn(url, "?#");
    size_t host = at + strcspn(url + at, "/?#");
    const char *user = memchr(url + at, '@', host - at);
    kl_buf_add(&b, url, at);
    if (user)
        at = (size_t)(user - url) + 1;
    kl_buf_add(&b, url + at, host - at);
    for (size_t i = host; i < end;) {
        size_t n = strcspn(url + i + 1, "/?#");
        kl_buf_putc(&b, '/');
        if (looks_like_key(url + i + 1, n))
            kl_buf_puts(&b, "***");
        else
            kl_buf_add(&b, url + i + 1, n);
        i += n + 1;
    }
    if (url[end] == '?')
        kl_buf_puts(&b, "?...");
    return kl_buf_take(&b);
}

/* "file:", "http:": what follows is not a path. */
static bool has_scheme(const char *s)
{
    size_t n = strcspn(s, ":/?#");
    return s[n] == ':';
}

char *kl_reach_resolve(const char *url, const char *location)
{
    const char *server = strstr(url, "://");
    size_t scheme = server ? (size_t)(server - url) + 1 : 0,
           root = server ? scheme + 2 + strcspn(server + 3, "/?#") : 0, path = strcspn(url, "?#"), dir = path;
    size_t n = strcspn(location, "#"); /* a fragment is not sent */
    if (has_scheme(location))
        return kl_strndup(location, n);
    while (dir > root && url[dir - 1] != '/')
        dir--;
    size_t keep = !strncmp(location, "//", 2) ? scheme
        : *location == '/'                    ? root
        : *location == '?' || !n              ? path
                                              : dir;
    const char *join = keep == root && *location != '/' && *location != '?' && n ? "/" : "";
    return kl_sprintf("%.*s%s%.*s", (int)keep, url, join, (int)n, location);
}
