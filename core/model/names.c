/* names.c - the grammar of names: characters in the middle, stricter ones at the ends, and a length.
 *
 * Nearly all rules have one form: characters of `ends` at both ends, of `middle` between. */
#include "model/names.h"
#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef enum charset {
    DIGIT = 1,
    LOWER = 2,
    UPPER = 4,
    DASH = 8,
    UNDERSCORE = 16,
    DOT = 32,
    LOWER_ALNUM = DIGIT | LOWER,
    ALNUM = DIGIT | LOWER | UPPER,
    NAME = ALNUM | DASH | UNDERSCORE | DOT,
} charset;

static unsigned class_of(char c)
{
    if (c >= '0' && c <= '9')
        return DIGIT;
    if (c >= 'a' && c <= 'z')
        return LOWER;
    if (c >= 'A' && c <= 'Z')
        return UPPER;
    return c == '-' ? DASH : c == '_' ? UNDERSCORE : c == '.' ? DOT : 0;
}

static bool all(const char *s, size_t n, unsigned set)
{
    size_t i;

    for (i = 0; i < n; i++)
        if (!(class_of(s[i]) & set))
            return false;
    return true;
}

static bool shaped(const char *s, size_t n, unsigned first, unsigned middle, unsigned last)
{
    return n > 0 && class_of(s[0]) & first && class_of(s[n - 1]) & last && all(s, n, middle);
}

static bool is_label(const char *s, size_t n)
{
    return shaped(s, n, LOWER_ALNUM, LOWER_ALNUM | DASH, LOWER_ALNUM);
}

/* Labels with dots between. Each label's length does not count, only the whole's. */
static bool is_subdomain(const char *s, size_t n)
{
    const char *dot;

    while ((dot = memchr(s, '.', n))) {
        if (!is_label(s, (size_t)(dot - s)))
            return false;
        n -= (size_t)(dot - s) + 1;
        s = dot + 1;
    }
    return is_label(s, n);
}

const char *kl_name_dns1123_label(const char *s)
{
    size_t n = strlen(s);

    if (n > KL_NAME_LABEL_MAX)
        return "must be no more than 63 characters";
    if (is_label(s, n))
        return NULL;
    return is_subdomain(s, n)
        ? "must not contain dots"
        : "must consist of lower case letters, digits and '-', and start and end with a letter or digit";
}

static const char *subdomain(const char *s, size_t n)
{
    if (n > KL_NAME_SUBDOMAIN_MAX)
        return "must be no more than 253 characters";
    return is_subdomain(s, n)
        ? NULL
        : "must consist of lower case letters, digits, '-' and '.', and start and end with a letter or digit";
}

const char *kl_name_dns1123_subdomain(const char *s) { return subdomain(s, strlen(s)); }

const char *kl_name_dns1035_label(const char *s)
{
    size_t n = strlen(s);

    if (n > KL_NAME_LABEL_MAX)
        return "must be no more than 63 characters";
    return shaped(s, n, LOWER, LOWER_ALNUM | DASH, LOWER_ALNUM)
        ? NULL
        : "must consist of lower case letters, digits and '-', start with a letter and end with a letter or "
          "digit";
}

const char *kl_name_qualified(const char *s)
{
    const char *slash = strchr(s, '/'), *name = slash ? slash + 1 : s;
    size_t n = strlen(name);

    if (strchr(name, '/'))
        return "must have one '/' at most, between a DNS subdomain and a name";
    if (slash && slash == s)
        return "has an empty prefix before '/'";
    if (slash && subdomain(s, (size_t)(slash - s)))
        return "must have a DNS subdomain of at most 253 characters before '/'";
    if (!n)
        return "has an empty name part";
    if (n > KL_NAME_LABEL_MAX)
        return "must have a name part of no more than 63 characters";
    return shaped(name, n, ALNUM, NAME, ALNUM) ? NULL
                                               : "must have a name part of letters, digits, '-', '_' and '.' "
                                                 "that starts and ends with a letter or digit";
}

const char *kl_name_label_value(const char *s)
{
    size_t n = strlen(s);

    if (n > KL_NAME_LABEL_MAX)
        return "must be no more than 63 characters";
    return !n || shaped(s, n, ALNUM, NAME, ALNUM) ? NULL
                                                  : "must be empty or consist of letters, digits, '-', '_' "
                                                    "and '.', and start and end with a letter or digit";
}

const char *kl_name_port(const char *s)
{
    size_t n = strlen(s), letters = 0, i;

    if (n > 15)
        return "must be no more than 15 characters";
    for (i = 0; i < n; i++)
        letters += class_of(s[i]) == LOWER;
    if (!shaped(s, n, LOWER_ALNUM, LOWER_ALNUM | DASH, LOWER_ALNUM) || strstr(s, "--"))
        return "must consist of lower case letters, digits and single '-' between them";
    return letters ? NULL : "must have at least one letter";
}

static const char *no_way_up(const char *s)
{
    return !strcmp(s, ".") ? "must not be '.'" : !strncmp(s, "..", 2) ? "must not start with '..'" : NULL;
}

const char *kl_name_config_map_key(const char *s)
{
    size_t n = strlen(s);

    if (n > KL_NAME_SUBDOMAIN_MAX)
        return "must be no more than 253 characters";
    if (!n || !all(s, n, NAME))
        return "must consist of letters, digits, '-', '_' and '.'";
    return no_way_up(s);
}

const char *kl_name_env_var(const char *s)
{
    size_t n = strlen(s);

    if (!n || !all(s, n, NAME) || class_of(*s) == DIGIT)
        return "must consist of letters, digits, '-', '_' and '.', and not start with a digit";
    return no_way_up(s);
}

const char *kl_name_percent(const char *s)
{
    size_t n = strlen(s);

    return n > 1 && s[n - 1] == '%' && all(s, n - 1, DIGIT) ? NULL : "must be a number and '%'";
}

const char *kl_name_annotation_key(const char *s)
{
    char low[KL_NAME_SUBDOMAIN_MAX + KL_NAME_LABEL_MAX + 2];
    size_t n = strlen(s), i;

    if (n >= sizeof low)
        return "must be no more than 317 characters";
    for (i = 0; i <= n; i++)
        low[i] = (char)(class_of(s[i]) == UPPER ? s[i] + ('a' - 'A') : s[i]);
    return kl_name_qualified(low);
}

/* The bytes of an address and their number; 0: it is not an address. inet_pton refuses leading zeros and
 * zones. */
static size_t address(const char *s, unsigned char out[16])
{
    if (inet_pton(AF_INET, s, out) == 1)
        return 4;
    return inet_pton(AF_INET6, s, out) == 1 ? 16 : 0;
}

static bool hides_ipv4(const unsigned char a[16])
{
    static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff};

    return !memcmp(a, mapped, sizeof mapped);
}

const char *kl_name_ip(const char *s)
{
    unsigned char a[16];
    size_t n = address(s, a);

    if (!n)
        return "must be an IP address such as 10.9.8.7 or 2001:db8::ffff, without leading zeros";
    return n == 16 && hides_ipv4(a) ? "must not be an IPv4-mapped IPv6 address" : NULL;
}

const char *kl_name_cidr(const char *s)
{
    static const char shape[] = "must be an address and a prefix length such as 10.9.8.0/24 or 2001:db8::/64";
    const char *slash = strchr(s, '/');
    char host[INET6_ADDRSTRLEN];
    unsigned char a[16];
    size_t n, bits = 0, i, digits;

    if (!slash || (size_t)(slash - s) >= sizeof host)
        return shape;
    memcpy(host, s, (size_t)(slash - s));
    host[slash - s] = '\0';
    n = address(host, a);
    digits = strlen(slash + 1);
    if (!n || !digits || digits > 3 || !all(slash + 1, digits, DIGIT) || (digits > 1 && slash[1] == '0'))
        return shape;
    for (i = 0; i < digits; i++)
        bits = bits * 10 + (size_t)(slash[1 + i] - '0');
    if (bits > n * 8)
        return shape;
    if (n == 16 && hides_ipv4(a))
        return "must not be an IPv4-mapped IPv6 address";
    for (i = bits; i < n * 8; i++)
        if (a[i / 8] >> (7 - i % 8) & 1)
            return "must not have bits beyond its prefix length";
    return NULL;
}

static const char *const rule_names[] = {
    "dns1123_label",
    "dns1123_subdomain",
    "dns1035_label",
    "qualified",
    "label_value",
    "port",
    "config_map_key",
    "env_var",
    "percent",
    "annotation_key",
    "ip",
    "cidr",
    NULL,
};
static kl_name_check *const rule_checks[] = {
    kl_name_dns1123_label,
    kl_name_dns1123_subdomain,
    kl_name_dns1035_label,
    kl_name_qualified,
    kl_name_label_value,
    kl_name_port,
    kl_name_config_map_key,
    kl_name_env_var,
    kl_name_percent,
    kl_name_annotation_key,
    kl_name_ip,
    kl_name_cidr,
};

kl_name_check *kl_name_rule(const char *rule)
{
    size_t i;

    for (i = 0; rule_names[i]; i++)
        if (!strcmp(rule_names[i], rule))
            return rule_checks[i];
    return NULL;
}

const char *kl_name_path_segment(const char *s)
{
    if (!strcmp(s, "."))
        return "may not be '.'";
    if (!strcmp(s, ".."))
        return "may not be '..'";
    return strchr(s, '/') ? "may not contain '/'" : strchr(s, '%') ? "may not contain '%'" : NULL;
}

const char *const *kl_name_rules(void) { return rule_names; }

char *kl_name_generate(const char *base, unsigned (*random)(void *arg, unsigned below), void *arg,
    char out[KL_NAME_GENERATED_MAX])
{
    /* No vowels and nothing that looks like another letter: no words, no misreading. */
    static const char alphabet[] = "bcdfghjklmnpqrstvwxz2456789";
    size_t n = strlen(base), i;

    if (n > KL_NAME_LABEL_MAX - KL_NAME_SUFFIX_LEN)
        n = KL_NAME_LABEL_MAX - KL_NAME_SUFFIX_LEN;
    memcpy(out, base, n);
    for (i = 0; i < KL_NAME_SUFFIX_LEN; i++)
        out[n + i] = alphabet[random(arg, sizeof alphabet - 1)];
    out[n + i] = '\0';
    return out;
}

const char *kl_name_prefix(const char *base, const char *(*check)(const char *))
{
    char name[KL_NAME_SUBDOMAIN_MAX + 2];
    size_t n = strlen(base);

    if (n < 2 || n >= sizeof name || base[n - 1] != '-')
        return check(base);
    /* The dash and the character before it are not checked: a letter replaces both. */
    memcpy(name, base, n - 2);
    strcpy(name + n - 2, "a");
    return check(name);
}
