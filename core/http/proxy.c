/* proxy.c - proxies as Go's httpproxy chooses them.
 *
 * libcurl reads other variables (ALL_PROXY, never HTTP_PROXY in capitals) and matches NO_PROXY by its own
 * rules, so it always gets the result. localhost and loopback addresses need no proxy. NO_PROXY is a list of
 * "*", domains ("x.io" with what is below it, ".x.io" and "*.x.io" only what is below), addresses and CIDRs,
 * all but CIDRs with a port if need be. */
#include "http/proxy.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/mem.h"

/* v4 in v6 is v4; family 0: a name */
typedef struct address {
    int family;
    unsigned char b[16];
} address;
typedef struct target {
    char *host, *port;
    address ip;
} target;

static const char *first_set(const char *a, const char *b)
{
    const char *s = getenv(a);
    return s && *s ? s : getenv(b);
}

kl__proxy_env kl__proxy_environment(void)
{
    const char *method = getenv("REQUEST_METHOD");
    return (kl__proxy_env){first_set("http_proxy", "HTTP_PROXY"), first_set("https_proxy", "HTTPS_PROXY"),
        first_set("no_proxy", "NO_PROXY"), method && *method};
}

/* --- addresses ---------------------------------------------------------------------------- */

static address parse_address(const char *s)
{
    static const unsigned char mapped[12] = {[10] = 255, [11] = 255};
    address a = {0};
    if (inet_pton(AF_INET, s, a.b) == 1)
        a.family = AF_INET;
    else if (inet_pton(AF_INET6, s, a.b) == 1) {
        a.family = AF_INET6;
        if (!memcmp(a.b, mapped, 12)) {
            a.family = AF_INET;
            memmove(a.b, a.b + 12, 4);
            memset(a.b + 4, 0, 12);
        }
    }
    return a;
}

static bool is_loopback(const address *a)
{
    static const unsigned char one[16] = {[15] = 1};
    return a->family == AF_INET ? a->b[0] == 127 : a->family == AF_INET6 && !memcmp(a->b, one, 16);
}

/* True when s is a CIDR; then *inside tells whether ip is in it. */
static bool match_cidr(const char *s, const address *ip, bool *inside)
{
    const char *slash = strchr(s, '/');
    if (!slash || slash == s || !isdigit((unsigned char)slash[1]) || strlen(slash) > 4)
        return false;
    char *host = kl_strndup(s, (size_t)(slash - s)), *end;
    address net = parse_address(host);
    long bits = strtol(slash + 1, &end, 10);
    bool v6_text = strchr(host, ':') != NULL;
    kl_free(host);
    if (!net.family || *end || bits > (v6_text ? 128 : 32))
        return false;
    if (v6_text && net.family == AF_INET)
        bits = bits > 96 ? bits - 96 : 0;
    *inside = ip->family == net.family;
    for (long i = 0; *inside && i < bits; i++)
        *inside = !((ip->b[i / 8] ^ net.b[i / 8]) >> (7 - i % 8) & 1);
    return true;
}

/* --- hosts and ports ---------------------------------------------------------------------- */

static char *lower(char *s)
{
    for (char *p = s; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return s;
}

/* "h:1", "[::1]:1" and "h" into two; both owned by the caller, port NULL when there is none. A bare IPv6
 * address is a host. */
static void split(const char *s, size_t n, char **host, char **port)
{
    const char *end = s + n, *close = *s == '[' ? memchr(s, ']', n) : NULL, *colon = NULL;
    for (const char *p = close ? close : s; p < end; p++)
        if (*p == ':')
            colon = colon && !close ? end : p; /* two colons without brackets: no port */
    *port = colon && colon < end ? kl_strndup(colon + 1, (size_t)(end - colon - 1)) : NULL;
    if (close)
        *host = kl_strndup(s + 1, (size_t)(close - s - 1));
    else
        *host = kl_strndup(s, colon && colon < end ? (size_t)(colon - s) : n);
    lower(*host);
}

static bool match_entry(char *entry, const target *t)
{
    bool inside = false, hit = false;
    if (match_cidr(entry, &t->ip, &inside))
        return inside;
    char *host, *port;
    split(entry, strlen(entry), &host, &port);
    address ip = parse_address(host);
    bool port_fits = !port || !*port || !strcmp(port, t->port);
    if (ip.family)
        hit = ip.family == t->ip.family && !memcmp(ip.b, t->ip.b, 16) && port_fits;
    else if (*host && !t->ip.family) {
        const char *domain = !strncmp(host, "*.", 2) ? host + 1 : host;
        bool below_only = *domain == '.';
        size_t n = strlen(domain), m = strlen(t->host);
        hit = m > n && !strcmp(t->host + m - n, domain) && (below_only || t->host[m - n - 1] == '.');
        hit = (hit || (!below_only && !strcmp(t->host, domain))) && port_fits;
    }
    kl_free(host);
    kl_free(port);
    return hit;
}

static bool is_exempt(const char *list, const target *t)
{
    if (!strcmp(t->host, "localhost") || is_loopback(&t->ip))
        return true;
    char *copy = kl_strdup(list ? list : ""), *rest = copy;
    bool hit = false;
    for (char *entry; !hit && (entry = strsep(&rest, ","));) {
        while (isspace((unsigned char)*entry))
            entry++;
        size_t n = strlen(entry);
        while (n && isspace((unsigned char)entry[n - 1]))
            entry[--n] = '\0';
        hit = n && (!strcmp(entry, "*") || match_entry(lower(entry), t));
    }
    kl_free(copy);
    return hit;
}

/* --- the choice --------------------------------------------------------------------------- */

static char *for_curl(const char *proxy)
{
    if (!strncasecmp(proxy, "socks5://", 9))
        return kl_sprintf("socks5h://%s", proxy + 9);
    return strstr(proxy, "://") ? kl_strdup(proxy) : kl_sprintf("http://%s", proxy);
}

char *kl__proxy_choose(const char *configured, const kl__proxy_env *env, const char *url)
{
    if (configured)
        return *configured ? for_curl(configured) : kl_strdup("");
    bool https = !strncasecmp(url, "https://", 8), http = !strncasecmp(url, "http://", 7);
    const char *proxy = https ? env->https : http && !env->cgi ? env->http : NULL;
    if (!proxy || !*proxy)
        return kl_strdup("");
    const char *host = url + (https ? 8 : 7);
    target t;
    split(host, strcspn(host, "/?#"), &t.host, &t.port);
    if (!t.port)
        t.port = kl_strdup(https ? "443" : "80");
    t.ip = parse_address(t.host);
    bool exempt = is_exempt(env->no, &t);
    kl_free(t.host);
    kl_free(t.port);
    return exempt ? kl_strdup("") : for_curl(proxy);
}

char *kl__proxy_for(const char *configured, const char *url)
{
    kl__proxy_env env = kl__proxy_environment();
    return kl__proxy_choose(configured, &env, url);
}

char *kl__proxy_words(const char *proxy)
{
    if (!proxy || !*proxy)
        return NULL;
    const char *scheme = strstr(proxy, "://"), *rest = scheme ? scheme + 3 : proxy, *at = strrchr(rest, '@');
    /* everything before the last "@": a password may contain any character */
    rest = at ? at + 1 : rest;
    size_t n = strcspn(rest, "/?#");
    return kl_sprintf("%.*s%.*s", scheme ? (int)(scheme + 3 - proxy) : 0, proxy, (int)n, rest);
}
