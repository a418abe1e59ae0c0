/* addresses.c - a text is read as Go read it once, with leading zeros and IPv4 within IPv6, so that the
 * complaint can name what is wrong with it today. */
#include "check/addresses.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "model/address.h"

typedef struct reading {
    unsigned char bytes[16];
    size_t n;    /* 4 or 16 */
    size_t bits; /* the prefix */
    bool zeros;  /* superfluous ones */
    bool mapped; /* IPv4 within IPv6 */
} reading;

/* Copies an address without superfluous zeros. False: it is too long. */
static bool without_zeros(const char *s, size_t n, char out[INET6_ADDRSTRLEN], bool *zeros)
{
    size_t len = 0;
    for (size_t i = 0; i < n;) {
        size_t digits = 0, skip = 0;
        while (i + digits < n && isxdigit((unsigned char)s[i + digits]))
            digits++;
        bool decimal = (i + digits < n && s[i + digits] == '.') || (i && s[i - 1] == '.');
        while (skip + 1 < digits && s[i + skip] == '0')
            skip++;
        *zeros = *zeros || (decimal ? skip > 0 : digits > 4);
        if (len + digits - skip + (i + digits < n) >= INET6_ADDRSTRLEN)
            return false;
        memcpy(out + len, s + i + skip, digits - skip);
        len += digits - skip;
        i += digits;
        if (i < n)
            out[len++] = s[i++];
    }
    out[len] = '\0';
    return true;
}

static bool read_address(const char *s, size_t n, reading *r)
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};
    char plain[INET6_ADDRSTRLEN];
    if (!without_zeros(s, n, plain, &r->zeros))
        return false;
    r->n = inet_pton(AF_INET, plain, r->bytes) == 1 ? 4 : inet_pton(AF_INET6, plain, r->bytes) == 1 ? 16 : 0;
    r->mapped = r->n == 16 && !memcmp(r->bytes, mapped, sizeof mapped);
    return r->n != 0;
}

static bool read_range(const char *s, reading *r)
{
    const char *slash = strchr(s, '/'), *digits = slash ? slash + 1 : "";
    size_t n = strspn(digits, "0123456789");
    if (!n || digits[n] || !read_address(s, (size_t)(slash - s), r))
        return false;
    r->zeros = r->zeros || (n > 1 && *digits == '0');
    for (size_t i = 0; i < n && r->bits <= 128; i++)
        r->bits = r->bits * 10 + (size_t)(digits[i] - '0');
    return r->bits <= r->n * 8;
}

static bool has_bits_beyond(const reading *r)
{
    for (size_t i = r->bits; i < r->n * 8; i++)
        if (r->bytes[i / 8] >> (7 - i % 8) & 1)
            return true;
    return false;
}

/* NULL, or why a text that reads is refused in any form. Static. */
static const char *fault(const reading *r, kl__address_form form)
{
    if (form == KL_INTERFACE)
        return NULL;
    if (r->zeros)
        return form == KL_ADDRESS ? "must not have leading 0s"
                                  : "must not have leading 0s in IP or prefix length";
    if (r->mapped)
        return form == KL_ADDRESS ? "must not be an IPv4-mapped IPv6 address"
                                  : "must not have an IPv4-mapped IPv6 address";
    return form == KL_NETWORK && has_bits_beyond(r) ? "must not have bits set beyond the prefix length"
                                                    : NULL;
}

/* The canonical form; the caller frees it. */
static char *canonical(const reading *r, kl__address_form form)
{
    kl_buf b = KL_BUF_INIT;
    size_t skip = r->mapped ? 12 : 0;
    kl_address_print(r->bytes + skip, r->n - skip, &b);
    if (form != KL_ADDRESS)
        kl_buf_printf(&b, "/%d", r->mapped && r->bits > 32 ? (int)r->bits - 96 : (int)r->bits);
    char *text = kl_strdup(kl_buf_str(&b));
    kl_buf_fini(&b);
    return text;
}

void kl__check_address(kl__causes *c, const kl__place *at, const char *text, kl__address_form form)
{
    static const char *const wrong[] = {
        [KL_ADDRESS] = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        [KL_NETWORK] = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        [KL_INTERFACE] = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",
    };
    reading r = {0};
    bool reads = form == KL_ADDRESS ? read_address(text, strlen(text), &r) : read_range(text, &r);
    const char *why = reads ? fault(&r, form) : wrong[form];
    if (why) {
        kl__say_invalid_text(c, at, text, "%s", why);
        return;
    }
    char *good = canonical(&r, form);
    if (strcmp(good, text) != 0)
        kl__say_invalid_text(c, at, text, "must be in canonical form (\"%s\")", good);
    kl_free(good);
}

bool kl__reads_as(const char *text, kl__address_form form)
{
    reading r = {0};
    return form == KL_ADDRESS ? read_address(text, strlen(text), &r) : read_range(text, &r);
}

size_t kl__address_bytes(const char *text, unsigned char out[16])
{
    reading r = {0};
    if (!read_address(text, strlen(text), &r))
        return 0;
    size_t skip = r.mapped ? 12 : 0;
    memcpy(out, r.bytes + skip, r.n - skip);
    return r.n - skip;
}

static void clear_bits_beyond(reading *r)
{
    for (size_t i = r->bits; i < r->n * 8; i++)
        r->bytes[i / 8] &= (unsigned char)~(1U << (7 - i % 8));
}

/* Warns of a network with bits beyond its prefix; true: it has some. */
static bool warn_ambiguous(kl__causes *c, const kl__place *at, const char *text, const reading *r)
{
    reading network = *r;
    if (!has_bits_beyond(r))
        return false;
    clear_bits_beyond(&network);
    char *wide = canonical(&network, KL_NETWORK), *one = canonical(r, KL_ADDRESS);
    kl__say_odd(c, at, "CIDR value \"%s\" is ambiguous in this context (should be \"%s\" or \"%s/%zu\"?)",
        text, wide, one, r->n * 8);
    kl_free(wide);
    kl_free(one);
    return true;
}

void kl__warn_address(kl__causes *c, const kl__place *at, const char *text, kl__address_form form)
{
    reading r = {0};
    bool network = form != KL_ADDRESS;
    if (network ? !read_range(text, &r) : !read_address(text, strlen(text), &r))
        return;
    bool ambiguous = network && warn_ambiguous(c, at, text, &r);
    if (network)
        clear_bits_beyond(&r);
    char *good = canonical(&r, form);
    const char *what = network ? "CIDR value" : "address";
    if (r.zeros || r.mapped)
        kl__say_odd(c, at,
            "non-standard %s \"%s\" will be considered invalid in a future Kubernetes release: use \"%s\"",
            network ? what : "IP address", text, good);
    else if (!ambiguous && r.n == 16 && strcmp(good, text))
        kl__say_odd(
            c, at, "IPv6 %s \"%s\" should be in RFC 5952 canonical format (\"%s\")", what, text, good);
    kl_free(good);
}

int kl__network_family(const char *text)
{
    reading r = {0};
    return !read_range(text, &r) ? 0 : r.n == 4 || r.mapped ? 4 : 6;
}
