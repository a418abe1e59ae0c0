/* net.c - ip(), cidr(), url(): addresses as Go's net/netip and net/url read them. */
#include <arpa/inet.h>
#include <string.h>

#include "base/mem.h"
#include "cel/net.h"
#include "model/address.h"

/* ---------------------------------------------------------------- addresses */

typedef struct address {
    uint8_t family; /* 4 or 6; the first byte: sizes are read from it */
    uint8_t bits;   /* of a CIDR */
    uint8_t b[16];
} address;

static const char *parse_v4(const char *s, size_t n, uint8_t *b)
{
    int part = 0;
    size_t i = 0;
    while (part < 4) {
        size_t begin = i;
        unsigned v = 0;
        for (; i < n && s[i] >= '0' && s[i] <= '9' && i - begin < 3; i++)
            v = v * 10 + (unsigned)(s[i] - '0');
        if (i > begin && v > 255)
            return "IPv4 field has value >255";
        if (i == begin || (s[begin] == '0' && i - begin > 1))
            return i == begin ? "unable to parse IP" : "IPv4 field has octet with leading zero";
        b[part++] = (uint8_t)v;
        if (part < 4 && i == n)
            return "IPv4 address too short";
        if (part < 4 && s[i++] != '.')
            return "unable to parse IP";
    }
    return i == n ? NULL : "unable to parse IP";
}

/* NULL, or what is wrong. */
static const char *parse(const char *s, size_t n, address *a)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    char text[64];
    *a = (address){.family = 4, .bits = 32};
    if (!memchr(s, ':', n))
        return parse_v4(s, n, a->b);
    if (n >= sizeof text || memchr(s, 0, n))
        return "unable to parse IP";
    memcpy(text, s, n);
    text[n] = 0;
    *a = (address){.family = 6, .bits = 128};
    if (strchr(text, '%'))
        return "zone is not allowed";
    if (inet_pton(AF_INET6, text, a->b) != 1)
        return "unable to parse IP";
    return memcmp(a->b, mapped, 12) ? NULL : "mapped";
}

static kl__cval address_error(kl__cev *e, kl__cval s, const char *why)
{
    int n = (int)s.s.n;
    if (!strcmp(why, "mapped"))
        return kl__cval_err(e, "IPv4-mapped IPv6 address \"%.*s\" is not allowed", n, s.s.p);
    if (!strcmp(why, "zone is not allowed"))
        return kl__cval_err(e, "IP address \"%.*s\" with zone value is not allowed", n, s.s.p);
    return kl__cval_err(e,
        "IP Address \"%.*s\" parse error during conversion from string: ParseAddr(\"%.*s\"): %s", n, s.s.p, n,
        s.s.p, why);
}

static kl__cval keep(kl__cev *e, kl__ckind kind, const address *a)
{
    address *kept = KL__CNEW(e->a, address);
    *kept = *a;
    return (kl__cval){.kind = kind, .o = kept};
}

static kl__cval to_ip(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    address x;
    const char *why = parse(a[0].s.p, a[0].s.n, &x);
    return why ? address_error(e, a[0], why) : keep(e, KL_C_IP, &x);
}

static kl__cval is_ip(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    address x;
    return KL__CBOOL(!parse(a[0].s.p, a[0].s.n, &x));
}

static void print(const address *a, kl_buf *out) { kl_address_print(a->b, a->family == 4 ? 4 : 16, out); }

static kl__cval is_canonical(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    address x;
    const char *why = parse(a[0].s.p, a[0].s.n, &x);
    if (why)
        return address_error(e, a[0], why);
    kl_buf b = KL_BUF_INIT;
    print(&x, &b);
    bool same = b.len == a[0].s.n && !memcmp(b.data, a[0].s.p, b.len);
    kl_buf_fini(&b);
    return KL__CBOOL(same);
}

static kl__cval family(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CINT(((const address *)a[0].o)->family);
}

static bool all(const address *a, uint8_t byte, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (a->b[i] != byte)
            return false;
    return true;
}

static bool unspecified(const address *a) { return all(a, 0, 0, a->family == 4 ? 4 : 16); }

static bool loopback(const address *a)
{
    return a->family == 4 ? a->b[0] == 127 : all(a, 0, 0, 15) && a->b[15] == 1;
}

static bool multicast(const address *a) { return a->family == 4 ? a->b[0] >> 4 == 14 : a->b[0] == 0xff; }

static bool local_multicast(const address *a)
{
    return a->family == 4 ? a->b[0] == 224 && !a->b[1] && !a->b[2] : a->b[0] == 0xff && (a->b[1] & 0x0f) == 2;
}

static bool local_unicast(const address *a)
{
    return a->family == 4 ? a->b[0] == 169 && a->b[1] == 254 : a->b[0] == 0xfe && (a->b[1] & 0xc0) == 0x80;
}

static bool global_unicast(const address *a)
{
    return !(a->family == 4 && all(a, 255, 0, 4)) && !unspecified(a) && !loopback(a) && !multicast(a)
        && !local_unicast(a);
}

#define QUESTION(name, f)                                                                                    \
    static kl__cval name(kl__cev *e, const kl__cval *a, size_t n)                                            \
    {                                                                                                        \
        (void)e;                                                                                             \
        (void)n;                                                                                             \
        return KL__CBOOL(f(a[0].o));                                                                         \
    }
QUESTION(is_unspecified, unspecified)
QUESTION(is_loopback, loopback)
QUESTION(is_local_multicast, local_multicast)
QUESTION(is_local_unicast, local_unicast)
QUESTION(is_global_unicast, global_unicast)

/* ---------------------------------------------------------------- networks */

static const char *parse_cidr(const char *s, size_t n, address *a)
{
    const char *slash = memrchr(s, '/', n);
    if (!slash)
        return "no '/'";
    const char *why = parse(s, (size_t)(slash - s), a);
    if (why)
        return why;
    size_t len = n - (size_t)(slash + 1 - s);
    unsigned bits = 0;
    if (!len || len > 3 || (slash[1] == '0' && len > 1))
        return "bad bits after slash";
    for (size_t i = 0; i < len; i++) {
        if (slash[1 + i] < '0' || slash[1 + i] > '9')
            return "bad bits after slash";
        bits = bits * 10 + (unsigned)(slash[1 + i] - '0');
    }
    if (bits > (a->family == 4 ? 32u : 128u))
        return "prefix length out of range";
    a->bits = (uint8_t)bits;
    return NULL;
}

static kl__cval to_cidr(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    address x;
    const char *why = parse_cidr(a[0].s.p, a[0].s.n, &x);
    int len = (int)a[0].s.n;
    if (!why)
        return keep(e, KL_C_CIDR, &x);
    static const char twice[] = "network address parse error during conversion from string: ";
    if (!strcmp(why, "mapped"))
        return kl__cval_err(e, "%sIPv4-mapped IPv6 address \"%.*s\" is not allowed", twice, len, a[0].s.p);
    return kl__cval_err(e, "%s%snetip.ParsePrefix(\"%.*s\"): %s", twice, twice, len, a[0].s.p, why);
}

static kl__cval is_cidr(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    address x;
    return KL__CBOOL(!parse_cidr(a[0].s.p, a[0].s.n, &x));
}

static void mask(address *a, unsigned bits)
{
    for (unsigned i = 0; i < 16; i++)
        a->b[i] = (uint8_t)(i * 8 >= bits ? 0
                : bits - i * 8 >= 8       ? a->b[i]
                                          : a->b[i] & 0xff00 >> (bits - i * 8));
}

static bool holds(const address *net, const address *x)
{
    address m = *net, y = *x;
    mask(&m, net->bits);
    mask(&y, net->bits);
    return net->family == x->family && !memcmp(m.b, y.b, 16);
}

static kl__cval contains_ip(kl__cev *e, const kl__cval *a, size_t n)
{
    kl__cval ip = a[1].kind == KL_C_STRING ? to_ip(e, a + 1, n) : a[1];
    return ip.kind == KL_C_ERROR ? ip : KL__CBOOL(holds(a[0].o, ip.o));
}

static kl__cval contains_cidr(kl__cev *e, const kl__cval *a, size_t n)
{
    kl__cval net = a[1].kind == KL_C_STRING ? to_cidr(e, a + 1, n) : a[1];
    if (net.kind == KL_C_ERROR)
        return net;
    const address *x = a[0].o, *y = net.o;
    return KL__CBOOL(x->bits <= y->bits && holds(x, y));
}

static kl__cval cidr_ip(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    address x = *(const address *)a[0].o;
    x.bits = x.family == 4 ? 32 : 128;
    return keep(e, KL_C_IP, &x);
}

static kl__cval masked(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    address x = *(const address *)a[0].o;
    mask(&x, x.bits);
    return keep(e, KL_C_CIDR, &x);
}

static kl__cval prefix_length(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CINT(((const address *)a[0].o)->bits);
}

void kl__cel_address(const void *o, bool cidr, kl_buf *out)
{
    const address *a = o;
    print(a, out);
    if (cidr)
        kl_buf_printf(out, "/%d", a->bits);
}

bool kl__cel_address_equal(const void *a, const void *b) { return !memcmp(a, b, sizeof(address)); }

static kl__cval address_text(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl_buf b = KL_BUF_INIT;
    kl__cel_address(a[0].o, a[0].kind == KL_C_CIDR, &b);
    return kl__cval_take(e, &b);
}

static uint64_t tenth(uint64_t n) { return (n + 9) / 10; }

static uint64_t cost_text(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(kl__cval_size(a[0]));
}

static uint64_t cost_twice(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(2 * kl__cval_size(a[0]));
}

static uint64_t cost_contains(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return tenth(2 * kl__cval_size(a[0])) + (a[1].kind == KL_C_STRING ? tenth(kl__cval_size(a[1])) : 0);
}

static uint64_t cost_contains_cidr(const kl__cval *a, size_t n, kl__cval result)
{
    return cost_contains(a, n, result) + tenth(kl__cval_size(a[0])) + 1;
}

/* ---------------------------------------------------------------- addresses of the web */

#define URL_PART(name, member)                                                                               \
    static kl__cval name(kl__cev *e, const kl__cval *a, size_t n)                                            \
    {                                                                                                        \
        (void)n;                                                                                             \
        const char *s = ((const kl__curl *)a[0].o)->member;                                                  \
        return kl__cval_str(e, s, strlen(s));                                                                \
    }
URL_PART(scheme, scheme)
URL_PART(host, host)
URL_PART(hostname, hostname)
URL_PART(port, port)
URL_PART(path, path)

static kl__cval to_url(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__curl *u = KL__CNEW(e->a, kl__curl);
    const char *why = kl__curl_parse(e->a, a[0].s.p, a[0].s.n, u);
    if (!why)
        return (kl__cval){.kind = KL_C_URL, .o = u};
    return kl__cval_err(
        e, "URL parse error during conversion from string: parse \"%.*s\": %s", (int)a[0].s.n, a[0].s.p, why);
}

static kl__cval is_url(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__curl u;
    return KL__CBOOL(!kl__curl_parse(e->a, a[0].s.p, a[0].s.n, &u));
}

static kl__cval query(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return kl__curl_query(e, a[0].o);
}

const kl__cfunc kl__cel_net[] = {
    {"ip", "s>P", to_ip, cost_text},
    {"ip", ".C>P", cidr_ip, NULL},
    {"isIP", "s>b", is_ip, cost_text},
    {"ip.isCanonical", "s>b", is_canonical, cost_twice},
    {"family", ".P>i", family, NULL},
    {"isUnspecified", ".P>b", is_unspecified, NULL},
    {"isLoopback", ".P>b", is_loopback, NULL},
    {"isLinkLocalMulticast", ".P>b", is_local_multicast, NULL},
    {"isLinkLocalUnicast", ".P>b", is_local_unicast, NULL},
    {"isGlobalUnicast", ".P>b", is_global_unicast, NULL},
    {"string", "P>s", address_text, NULL},
    {"string", "C>s", address_text, NULL},
    {"cidr", "s>C", to_cidr, cost_text},
    {"isCIDR", "s>b", is_cidr, cost_text},
    {"containsIP", ".Cs>b", contains_ip, cost_contains},
    {"containsIP", ".CP>b", contains_ip, cost_contains},
    {"containsCIDR", ".Cs>b", contains_cidr, cost_contains_cidr},
    {"containsCIDR", ".CC>b", contains_cidr, cost_contains_cidr},
    {"masked", ".C>C", masked, NULL},
    {"prefixLength", ".C>i", prefix_length, NULL},
    {"url", "s>U", to_url, cost_text},
    {"isURL", "s>b", is_url, NULL},
    {"getScheme", ".U>s", scheme, NULL},
    {"getHost", ".U>s", host, NULL},
    {"getHostname", ".U>s", hostname, NULL},
    {"getPort", ".U>s", port, NULL},
    {"getEscapedPath", ".U>s", path, NULL},
    {"getQuery", ".U>MsLs", query, NULL},
    {NULL},
};
