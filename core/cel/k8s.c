/* k8s.c - quantities, semantic versions and named formats. */
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/regex.h"
#include "base/zone.h"
#include "cel/net.h"
#include "model/names.h"
#include "model/quantity.h"
#include "model/time.h"

static uint64_t cost_text(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return (kl__cval_size(a[0]) + 9) / 10;
}

/* ---------------------------------------------------------------- quantities */

/* Freed with the evaluation. */
static kl__cval quantity(kl__cev *e, kl_quantity *q)
{
    struct kl__cheld *h = KL__CNEW(e->a, struct kl__cheld);
    h->quantity = q;
    h->next = e->held;
    e->held = h;
    return (kl__cval){.kind = KL_C_QUANTITY, .o = q};
}

void kl__cev_release(kl__cev *e)
{
    for (struct kl__cheld *h = e->held; h; h = h->next)
        kl_quantity_free(h->quantity);
    e->held = NULL;
    kl_zone_free(e->zone.z);
    kl_free(e->zone.name);
    kl_regex_free(e->regex.re);
}

static kl__cval to_quantity(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl_quantity *q = NULL;
    if (kl_quantity_parsen(a[0].s.p, a[0].s.n, &q, NULL) == KL_OK)
        return quantity(e, q);
    return kl__cval_err(e,
        "quantities must match the regular expression "
        "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
}

static kl__cval is_quantity(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    kl_quantity *q = NULL;
    bool is = kl_quantity_parsen(a[0].s.p, a[0].s.n, &q, NULL) == KL_OK;
    kl_quantity_free(q);
    return KL__CBOOL(is);
}

static kl__cval sign(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CINT(kl_quantity_sign(a[0].o));
}

static kl__cval is_integer(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    int64_t i;
    return KL__CBOOL(kl_quantity_as_int64(a[0].o, &i));
}

static kl__cval as_integer(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    int64_t i;
    return kl_quantity_as_int64(a[0].o, &i) ? KL__CINT(i)
                                            : kl__cval_err(e, "cannot convert value to integer");
}

static kl__cval as_float(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CDOUBLE(kl_quantity_double(a[0].o));
}

static kl__cval summed(kl__cev *e, const kl__cval *a, bool minus)
{
    kl_quantity *whole = a[1].kind == KL_C_INT ? kl_quantity_new(a[1].i, 0, KL_DECIMAL_SI) : NULL;
    const kl_quantity *b = whole ? whole : a[1].o;
    kl_quantity *sum = minus ? kl_quantity_sub(a[0].o, b) : kl_quantity_add(a[0].o, b);
    kl_quantity_free(whole);
    return quantity(e, sum);
}

static kl__cval add(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return summed(e, a, false);
}

static kl__cval sub(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return summed(e, a, true);
}

/* ---------------------------------------------------------------- semantic versions */

typedef struct semver {
    uint64_t part[3];
    const char *text, *pre; /* pre: behind the first "-", up to the "+"; "" when there is none */
    size_t npre;
} semver;

static bool identifiers(const char *s, size_t n, bool numbers)
{
    size_t begin = 0;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && s[i] != '.') {
            char c = s[i];
            if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'))
                return false;
            continue;
        }
        if (i == begin)
            return false;
        bool digits = strspn(s + begin, "0123456789") >= i - begin;
        if (numbers && digits && s[begin] == '0' && i - begin > 1)
            return false;
        begin = i + 1;
    }
    return true;
}

static const char *parse_semver(const char *s, size_t n, semver *v)
{
    size_t i = 0;
    *v = (semver){.text = s, .pre = ""};
    size_t dots = 0;
    for (size_t k = 0; k < n; k++)
        dots += s[k] == '.';
    if (!n || dots < 2)
        return n ? "No Major.Minor.Patch elements found" : "Version string empty";
    for (int part = 0; part < 3; part++) {
        size_t begin = i;
        for (; i < n && s[i] >= '0' && s[i] <= '9'; i++)
            if (__builtin_mul_overflow(v->part[part], 10u, &v->part[part])
                || __builtin_add_overflow(v->part[part], (uint64_t)(s[i] - '0'), &v->part[part]))
                return "Invalid character(s) found in version";
        if (part < 2 && (i >= n || s[i] != '.'))
            return i < n ? "Invalid character(s) found in version" : "No Major.Minor.Patch elements found";
        if (i == begin)
            return "Invalid character(s) found in version";
        if (s[begin] == '0' && i - begin > 1)
            return "Version number must not contain leading zeroes";
        i += part < 2;
    }
    const char *plus = memchr(s + i, '+', n - i);
    size_t end = plus ? (size_t)(plus - s) : n;
    if (i < end) {
        if (s[i] != '-' || !identifiers(s + i + 1, end - i - 1, true))
            return "Invalid character(s) found in prerelease";
        v->pre = s + i + 1;
        v->npre = end - i - 1;
    }
    return plus && !identifiers(plus + 1, n - end - 1, false) ? "Build meta data is empty or invalid" : NULL;
}

/* Normalises: "v1.02" becomes "1.2.0". NULL if that is impossible. */
static char *normal(kl__carena *a, const char *s)
{
    kl_buf b = KL_BUF_INIT;
    s += *s == 'v';
    for (int part = 0; part < 3; part++) {
        size_t n = part < 2 ? strcspn(s, ".") : strlen(s), zeros = strspn(s, "0");
        if (part < 2 && !s[n] && (memchr(s, '-', n) || memchr(s, '+', n))) {
            kl_buf_fini(&b);
            return NULL;
        }
        if (n > 1 && zeros) {
            zeros = zeros > n ? n : zeros;
            bool digit = zeros < n && s[zeros] >= '0' && s[zeros] <= '9';
            kl_buf_puts(&b, digit ? "" : "0");
            kl_buf_add(&b, s + zeros, n - zeros);
        } else
            kl_buf_add(&b, s, n);
        s += n;
        if (part < 2) {
            kl_buf_putc(&b, '.');
            s = *s == '.' ? s + 1 : "0";
        }
    }
    char *text = kl__carena_text(a, kl_buf_str(&b), b.len);
    kl_buf_fini(&b);
    return text;
}

static const char *read_semver(kl__cev *e, const kl__cval *a, size_t n, semver *v)
{
    const char *s = n == 2 && a[1].b ? normal(e->a, a[0].s.p) : a[0].s.p;
    return s ? parse_semver(s, strlen(s), v) : "short version cannot contain PreRelease/Build meta data";
}

static kl__cval to_semver(kl__cev *e, const kl__cval *a, size_t n)
{
    semver *v = KL__CNEW(e->a, semver);
    const char *why = read_semver(e, a, n, v);
    return why ? kl__cval_err(e, "%s", why) : (kl__cval){.kind = KL_C_SEMVER, .o = v};
}

static kl__cval is_semver(kl__cev *e, const kl__cval *a, size_t n)
{
    semver v;
    return KL__CBOOL(!read_semver(e, a, n, &v));
}

static int order(bool less, bool more) { return less ? -1 : more; }

static int compare_identifier(const char *a, size_t na, const char *b, size_t nb)
{
    bool da = strspn(a, "0123456789") >= na, db = strspn(b, "0123456789") >= nb;
    if (da != db)
        return da ? -1 : 1;
    if (da && na != nb)
        return na < nb ? -1 : 1;
    int c = memcmp(a, b, na < nb ? na : nb);
    return c ? order(c < 0, true) : order(na<nb, na> nb);
}

static int compare_semver(const semver *a, const semver *b)
{
    for (int i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    if (!a->npre || !b->npre)
        return order(a->npre && !b->npre, !a->npre && b->npre);
    const char *x = a->pre, *y = b->pre, *xe = x + a->npre, *ye = y + b->npre;
    while (x < xe && y < ye) {
        size_t nx = strcspn(x, ".+"), ny = strcspn(y, ".+");
        int c = compare_identifier(x, nx, y, ny);
        if (c)
            return c;
        x += nx + 1;
        y += ny + 1;
    }
    return order(x >= xe && y < ye, x < xe && y >= ye);
}

#define SEMVER_PART(name, i)                                                                                 \
    static kl__cval name(kl__cev *e, const kl__cval *a, size_t n)                                            \
    {                                                                                                        \
        (void)e;                                                                                             \
        (void)n;                                                                                             \
        return KL__CINT((int64_t)((const semver *)a[0].o)->part[i]);                                         \
    }
SEMVER_PART(major_of, 0)
SEMVER_PART(minor_of, 1)
SEMVER_PART(patch_of, 2)

/* ---------------------------------------------------------------- comparisons of both */

static int compared(const kl__cval *a)
{
    return a[0].kind == KL_C_QUANTITY ? kl_quantity_cmp(a[0].o, a[1].o) : compare_semver(a[0].o, a[1].o);
}

static kl__cval compare_to(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CINT(compared(a));
}

static kl__cval greater(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CBOOL(compared(a) > 0);
}

static kl__cval less(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)n;
    return KL__CBOOL(compared(a) < 0);
}

/* ---------------------------------------------------------------- named formats */

typedef struct format {
    const char *name;
    const char *(*check)(const char *s); /* NULL, or what is wrong */
    uint64_t regex;                      /* the length of its regular expression, for the cost */
} format;

static const char *check_uri(const char *s)
{
    kl__carena a = {0};
    kl__curl u;
    const char *why = kl__curl_parse(&a, s, strlen(s), &u);
    kl__carena_fini(&a);
    return why;
}

static bool is_like(const char *s, const char *pattern)
{
    kl_regex *re = NULL;
    bool yes = kl_regex_new(pattern, strlen(pattern), &re, NULL) == KL_OK
        && kl_regex_matches(re, s, strlen(s));
    kl_regex_free(re);
    return yes;
}

static const char *check_uuid(const char *s)
{
    return is_like(s, "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        ? NULL
        : "does not match the UUID format";
}

static const char *check_byte(const char *s)
{
    kl_buf b = KL_BUF_INIT;
    bool good = *s && kl_base64_decode(s, strlen(s), &b, NULL) == KL_OK;
    kl_buf_fini(&b);
    return good ? NULL : "invalid base64";
}

static bool is_date(const char *s)
{
    char text[32];
    int64_t sec;
    int32_t ns;
    if (strlen(s) != 10)
        return false;
    memcpy(text, s, 10);
    memcpy(text + 10, "T00:00:00Z", 11);
    return kl_time_parse(text, &sec, &ns, NULL) == KL_OK;
}

static const char *check_date(const char *s) { return is_date(s) ? NULL : "invalid date"; }

static const char *check_datetime(const char *s)
{
    int64_t sec;
    int32_t ns;
    char *upper = kl_strdup(s);
    for (char *p = upper; *p; p++)
        *p = *p == 't' ? 'T' : *p == 'z' ? 'Z' : *p;
    bool good = kl_time_parse(upper, &sec, &ns, NULL) == KL_OK;
    kl_free(upper);
    return good ? NULL : "invalid datetime";
}

/* The error in kube-apiserver's words, or NULL. */
static const char *worded(
    const char *why, const char *s, size_t most, const char *long_text, const char *text)
{
    return !why ? NULL : strlen(s) > most ? long_text : text;
}

#define LABEL "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define LONG_LABEL "must be no more than 63 bytes"

static const char *check_label(const char *s)
{
    return worded(kl_name_dns1123_label(s), s, 63, LONG_LABEL,
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
        "start and "
        "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'" LABEL "')");
}

static const char *check_subdomain(const char *s)
{
    return worded(kl_name_dns1123_subdomain(s), s, 253, "must be no more than 253 bytes",
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
        "must "
        "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
        "'" LABEL "(\\." LABEL ")*')");
}

static const char *check_label1035(const char *s)
{
    return worded(kl_name_dns1035_label(s), s, 63, LONG_LABEL,
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
        "alphabetic "
        "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
        "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')");
}

static const char *check_label_value(const char *s)
{
    return worded(kl_name_label_value(s), s, 63, LONG_LABEL,
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and "
        "must "
        "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "
        "used for "
        "validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')");
}

#define PREFIX(name, check)                                                                                  \
    static const char *name(const char *s) { return kl_name_prefix(s, check); }
PREFIX(label_prefix, check_label)
PREFIX(subdomain_prefix, check_subdomain)
PREFIX(label1035_prefix, check_label1035)

static const format formats[] = {
    {"dns1123Label", check_label, 30},
    {"dns1123Subdomain", check_subdomain, 60},
    {"dns1035Label", check_label1035, 30},
    {"qualifiedName", kl_name_qualified, 60},
    {"dns1123LabelPrefix", label_prefix, 30},
    {"dns1123SubdomainPrefix", subdomain_prefix, 60},
    {"dns1035LabelPrefix", label1035_prefix, 30},
    {"labelValue", check_label_value, 40},
    {"uri", check_uri, 1103},
    {"uuid", check_uuid, 70},
    {"byte", check_byte, 84},
    {"date", check_date, 70},
    {"datetime", check_datetime, 70},
};

static kl__cval named(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(formats[i].name, a[0].s.p)) {
            kl__cval *f = KL__CNEW(e->a, kl__cval);
            *f = (kl__cval){.kind = KL_C_FORMAT, .o = &formats[i]};
            return (kl__cval){.kind = KL_C_OPTIONAL, .opt = f};
        }
    return (kl__cval){.kind = KL_C_OPTIONAL};
}

static kl__cval validate(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    const format *f = a[0].o;
    const char *why = strlen(a[1].s.p) == a[1].s.n ? f->check(a[1].s.p) : "must not contain NUL";
    if (!why)
        return (kl__cval){.kind = KL_C_OPTIONAL};
    kl__cval *list = KL__CNEW(e->a, kl__cval);
    kl__clist *l = kl__clist_new(e, 1);
    kl__clist_add(e, l, kl__cval_str(e, why, strlen(why)));
    *list = KL__CLIST(l);
    return (kl__cval){.kind = KL_C_OPTIONAL, .opt = list};
}

static uint64_t cost_validate(const kl__cval *a, size_t n, kl__cval result)
{
    (void)n;
    (void)result;
    return (1 + kl__cval_size(a[1]) + 9) / 10 * ((((const format *)a[0].o)->regex + 3) / 4);
}

#define FORMAT(i)                                                                                            \
    static kl__cval format_##i(kl__cev *e, const kl__cval *a, size_t n)                                      \
    {                                                                                                        \
        (void)e;                                                                                             \
        (void)a;                                                                                             \
        (void)n;                                                                                             \
        return (kl__cval){.kind = KL_C_FORMAT, .o = &formats[i]};                                            \
    }
FORMAT(0)
FORMAT(1)
FORMAT(2)
FORMAT(3)
FORMAT(4)
FORMAT(5)
FORMAT(6)
FORMAT(7)
FORMAT(8)
FORMAT(9)
FORMAT(10)
FORMAT(11)
FORMAT(12)

/* ---------------------------------------------------------------- values of libraries */

bool kl__cel_opaque_equal(kl__cval a, kl__cval b)
{
    switch (a.kind) {
    case KL_C_IP:
    case KL_C_CIDR: return kl__cel_address_equal(a.o, b.o);
    case KL_C_SEMVER: return compare_semver(a.o, b.o) == 0;
    case KL_C_URL: return !strcmp(((const kl__curl *)a.o)->text, ((const kl__curl *)b.o)->text);
    default: return a.o == b.o;
    }
}

void kl__cel_opaque(kl__cval v, kl_buf *out)
{
    if (v.kind == KL_C_QUANTITY) {
        char *text = kl_quantity_text(v.o);
        kl_buf_puts(out, text);
        kl_free(text);
    } else if (v.kind == KL_C_IP || v.kind == KL_C_CIDR)
        kl__cel_address(v.o, v.kind == KL_C_CIDR, out);
    else if (v.kind == KL_C_SEMVER)
        kl_buf_puts(out, ((const semver *)v.o)->text);
    else if (v.kind == KL_C_URL)
        kl_buf_puts(out, ((const kl__curl *)v.o)->text);
    else
        kl_buf_puts(out, kl__cbasic[v.kind].name);
}

const kl__cfunc kl__cel_k8s[] = {
    {"quantity", "s>Q", to_quantity, cost_text},
    {"isQuantity", "s>b", is_quantity, cost_text},
    {"sign", ".Q>i", sign, NULL},
    {"isInteger", ".Q>b", is_integer, NULL},
    {"asInteger", ".Q>i", as_integer, NULL},
    {"asApproximateFloat", ".Q>d", as_float, NULL},
    {"add", ".QQ>Q", add, NULL},
    {"add", ".Qi>Q", add, NULL},
    {"sub", ".QQ>Q", sub, NULL},
    {"sub", ".Qi>Q", sub, NULL},
    {"isGreaterThan", ".QQ>b", greater, NULL},
    {"isGreaterThan", ".VV>b", greater, NULL},
    {"isLessThan", ".QQ>b", less, NULL},
    {"isLessThan", ".VV>b", less, NULL},
    {"compareTo", ".QQ>i", compare_to, NULL},
    {"compareTo", ".VV>i", compare_to, NULL},
    {"semver", "s>V", to_semver, cost_text},
    {"semver", "sb>V", to_semver, cost_text},
    {"isSemver", "s>b", is_semver, cost_text},
    {"isSemver", "sb>b", is_semver, cost_text},
    {"major", ".V>i", major_of, NULL},
    {"minor", ".V>i", minor_of, NULL},
    {"patch", ".V>i", patch_of, NULL},
    {"format.named", "s>OF", named, NULL},
    {"validate", ".Fs>OLs", validate, cost_validate},
    {"format.dns1123Label", ">F", format_0, NULL},
    {"format.dns1123Subdomain", ">F", format_1, NULL},
    {"format.dns1035Label", ">F", format_2, NULL},
    {"format.qualifiedName", ">F", format_3, NULL},
    {"format.dns1123LabelPrefix", ">F", format_4, NULL},
    {"format.dns1123SubdomainPrefix", ">F", format_5, NULL},
    {"format.dns1035LabelPrefix", ">F", format_6, NULL},
    {"format.labelValue", ">F", format_7, NULL},
    {"format.uri", ">F", format_8, NULL},
    {"format.uuid", ">F", format_9, NULL},
    {"format.byte", ">F", format_10, NULL},
    {"format.date", ">F", format_11, NULL},
    {"format.datetime", ">F", format_12, NULL},
    {NULL},
};
