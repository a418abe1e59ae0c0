/* forms.c - the words are those of apimachinery's util/validation. */
#include "check/forms.h"

#include <string.h>

#include "base/mem.h"
#include "check/addresses.h"
#include "model/names.h"

static const char bad_wildcard[] =
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must "
    "consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. "
    "'*.example.com', " KL_REGEX_USED("\\*\\." KL_SUBDOMAIN_REGEX);
static const char bad_key[] =
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', " KL_REGEX_USED("[-._a-zA-Z0-9]+");

#define ALNUM "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

static const char *above(const char *s)
{
    if (!strcmp(s, "."))
        return "must not be '.'";
    if (!strcmp(s, ".."))
        return "must not be '..'";
    return strncmp(s, "..", 2) ? NULL : "must not start with '..'";
}

static size_t port_faults(const char *s, const char *out[KL_FAULTS_MAX])
{
    size_t n = 0, len = strlen(s);
    if (len > 15)
        out[n++] = KL_NAME_TOO_LONG(15);
    if (!len || strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") < len)
        out[n++] = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";
    if (!strpbrk(s, "abcdefghijklmnopqrstuvwxyz"))
        out[n++] = "must contain at least one letter (a-z)";
    if (strstr(s, "--"))
        out[n++] = "must not contain consecutive hyphens";
    if (len && (*s == '-' || s[len - 1] == '-'))
        out[n++] = "must not begin or end with a hyphen";
    return n;
}

static size_t env_faults(const char *s, const char *out[KL_FAULTS_MAX])
{
    for (const char *p = s; *p; p++)
        if ((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7e || *p == '=') {
            out[0] = "a valid environment variable name must consist only of printable ASCII characters "
                     "other than '='";
            return 1;
        }
    return 0;
}

/* A text that is too long may have other faults, too. */
static size_t with_length(
    const char *s, size_t most, const char *too_long, const char *wrong, const char *out[KL_FAULTS_MAX])
{
    size_t n = 0;
    if (strlen(s) > most)
        out[n++] = too_long;
    if (wrong)
        out[n++] = wrong;
    return n;
}

static bool only(const char *s, const char *chars, const char *ends)
{
    size_t n = strlen(s);
    return n && strspn(s, chars) == n && strchr(ends, s[0]) && strchr(ends, s[n - 1]);
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"

static bool like_subdomain(const char *s)
{
    for (;;) {
        size_t n = strcspn(s, ".");
        if (!n || *s == '-' || s[n - 1] == '-' || strspn(s, LOWER "-") < n)
            return false;
        if (!s[n])
            return true;
        s += n + 1;
    }
}

size_t kl__faults(const char *s, kl__form f, const char *out[KL_FAULTS_MAX])
{
    const char *why = NULL;
    size_t n = 0;
    switch (f) {
    case KL_DNS_LABEL:
        if (!kl_name_dns1123_label(s))
            return 0;
        why = only(s, LOWER "-", LOWER) ? NULL : like_subdomain(s) ? "must not contain dots" : KL_NO_LABEL;
        return with_length(s, 63, KL_NAME_TOO_LONG(63), why, out);
    case KL_DNS_SUBDOMAIN:
        if (!kl_name_dns1123_subdomain(s))
            return 0;
        return with_length(s, 253, KL_NAME_TOO_LONG(253), like_subdomain(s) ? NULL : KL_NO_SUBDOMAIN, out);
    case KL_DNS_1035:
        if (!kl_name_dns1035_label(s))
            return 0;
        why = only(s, LOWER "-", LOWER) && (*s < '0' || *s > '9') ? NULL : KL_NO_LABEL_1035;
        return with_length(s, 63, KL_NAME_TOO_LONG(63), why, out);
    case KL_DNS_WILDCARD:
        why = strncmp(s, "*.", 2) || !like_subdomain(s + 2) ? bad_wildcard : NULL;
        return with_length(s, 253, KL_NAME_TOO_LONG(253), why, out);
    case KL_QUALIFIED: return kl__qualified_faults(s, out);
    case KL_LABEL_VALUE: return kl__label_value_faults(s, out);
    case KL_PORT_NAME: return kl_name_port(s) ? port_faults(s, out) : 0;
    case KL_CONFIG_KEY:
        n = with_length(
            s, 253, KL_NAME_TOO_LONG(253), !*s || strspn(s, ALNUM "-._") < strlen(s) ? bad_key : NULL, out);
        if ((why = above(s)))
            out[n++] = why;
        return n;
    case KL_ENV_NAME: return env_faults(s, out);
    case KL_PERCENT:
        why = kl_name_percent(s) ? "a valid percent string must be a numeric string followed by an ending "
                                   "'%' (e.g. '1%',  or '93%', " KL_REGEX_USED("[0-9]+%")
                                 : NULL;
        break;
    case KL_HEADER_NAME:
        if (!*s || strspn(s, ALNUM "-") < strlen(s))
            why = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                  "'X-Header-Name', " KL_REGEX_USED("[-A-Za-z0-9]+");
        break;
    case KL_PATH_SEGMENT: why = kl_name_path_segment(s); break;
    case KL_HTTP_PATH:
        if (!*s || strspn(s, ALNUM "/-._~%!$&'()*+,;=:") < strlen(s))
            why = "Invalid path (" KL_REGEX_USED("[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+");
        break;
    case KL_IP:
        if (!kl__reads_as(s, KL_ADDRESS))
            why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        break;
    case KL_CIDR:
        if (!kl__reads_as(s, KL_NETWORK))
            why = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        break;
    }
    if (why)
        out[n++] = why;
    return n;
}

void kl__check_form(kl__causes *c, const kl__place *at, const char *text, kl__form f)
{
    const char *why[KL_FAULTS_MAX];
    size_t n = kl__faults(text, f, why);
    for (size_t i = 0; i < n; i++)
        kl__say_invalid_text(c, at, text, "%s", why[i]);
}

bool kl__check_member(kl__causes *c, const kl_value *o, const kl__place *at, const char *member, kl__form f)
{
    const char *text = kl__text(o, member);
    size_t before = c->len;
    if (*text)
        kl__check_form(c, KL_IN(at, member), text, f);
    return c->len > before;
}

void kl__check_labels(kl__causes *c, const kl_value *labels, const kl__place *at)
{
    for (size_t i = 0; i < kl_value_len(labels); i++) {
        const char *key, *text;
        size_t n;
        text = kl_value_str(kl_value_member(labels, i, &key, &n));
        kl__check_form(c, at, key, KL_QUALIFIED);
        if (text)
            kl__check_form(c, at, text, KL_LABEL_VALUE);
    }
}

static void check_requirement(kl__causes *c, const kl_value *r, const kl__place *at)
{
    const kl_value *op = kl_value_get(r, "operator"), *values = kl_value_get(r, "values");
    const char *word = kl__text(r, "operator");
    if (kl__one_of(word, "In NotIn")) {
        if (!kl_value_len(values))
            kl__say_required(c, KL_IN(at, "values"), "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (kl__one_of(word, "Exists DoesNotExist")) {
        if (kl_value_len(values))
            kl__say_forbidden(
                c, KL_IN(at, "values"), "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (op)
        kl__say_invalid(c, KL_IN(at, "operator"), op, "not a valid selector operator");
    else
        kl__say_invalid_text(c, KL_IN(at, "operator"), "", "not a valid selector operator");
    kl__check_form(c, KL_IN(at, "key"), kl__text(r, "key"), KL_QUALIFIED);
    const kl__place *in = KL_IN(at, "values");
    for (size_t i = 0; i < kl_value_len(values); i++) {
        kl__check_form(c, KL_ITEM(in, i), kl__item_text(values, i), KL_LABEL_VALUE);
    }
}

bool kl__check_star_list(kl__causes *c, const kl_value *rule, const char *member, const char *missing,
    const char *others, const kl__place *at)
{
    const kl_value *list = kl_value_get(rule, member);
    bool star = kl_value_has_str(list, "*");
    if (!kl_value_len(list))
        kl__say_required(c, KL_IN(at, member), missing);
    else if (star && kl_value_len(list) > 1)
        kl__say_invalid(c, KL_IN(at, member), list, "if '*' is present, must not specify other %s", others);
    return kl_value_len(list) && !star;
}

void kl__check_selector(kl__causes *c, const kl_value *selector, const kl__place *at)
{
    const kl_value *list = kl_value_get(selector, "matchExpressions");
    const kl__place *in = KL_IN(at, "matchExpressions");
    kl__check_labels(c, kl_value_get(selector, "matchLabels"), KL_IN(at, "matchLabels"));
    for (size_t i = 0; i < kl_value_len(list); i++)
        check_requirement(c, kl_value_item(list, i), KL_ITEM(in, i));
}

void kl__check_port(kl__causes *c, const kl_value *port, const kl__place *at)
{
    int64_t n = 0;
    const char *name = kl_value_str(port);
    if (name) {
        kl__check_form(c, at, name, KL_PORT_NAME);
        return;
    }
    (void)kl_value_int(port, &n);
    if (n < 1 || n > 65535)
        kl__say_invalid_int(c, at, n, "must be between 1 and 65535, inclusive");
}

void kl__check_no_way_up(kl__causes *c, const kl__place *at, const char *path)
{
    for (const char *p = path; p; p = strchr(p, '/')) {
        p += *p == '/';
        if (!strncmp(p, "..", 2) && (!p[2] || p[2] == '/')) {
            kl__say_invalid_text(c, at, path, "must not contain '..'");
            return;
        }
    }
}

void kl__check_relative_path(kl__causes *c, const kl__place *at, const char *path)
{
    if (*path == '/')
        kl__say_invalid_text(c, at, path, "must be a relative path");
    kl__check_no_way_up(c, at, path);
}
