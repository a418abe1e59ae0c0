/* names.c - any text as a name of each kind: our checks and the regular expressions of apimachinery say
 * the same. */
#include <regex.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "model/names.h"
#include "model/object.h"

#define LABEL "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define WORD "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])"

typedef struct rule {
    const char *(*check)(const char *);
    const char *pattern, *unless; /* POSIX extended; `unless` may be NULL */
    size_t max;
} rule;

static const rule rules[] = {
    {kl_name_dns1123_label, "^" LABEL "$", NULL, 63},
    {kl_name_dns1123_subdomain, "^" LABEL "(\\." LABEL ")*$", NULL, 253},
    {kl_name_dns1035_label, "^[a-z]([-a-z0-9]*[a-z0-9])?$", NULL, 63},
    {kl_name_label_value, "^" WORD "?$", NULL, 63},
    {kl_name_port, "^[a-z0-9-]*[a-z][a-z0-9-]*$", "^-|-$|--", 15},
    {kl_name_config_map_key, "^[-._a-zA-Z0-9]+$", "^\\.$|^\\.\\.", 253},
    {kl_name_env_var, "^[-._a-zA-Z][-._a-zA-Z0-9]*$", "^\\.$|^\\.\\.", SIZE_MAX},
    {kl_name_percent, "^[0-9]+%$", NULL, SIZE_MAX},
    {kl_name_path_segment, "^", "^\\.$|^\\.\\.$|[/%]", SIZE_MAX},
};
#define NRULES (sizeof rules / sizeof *rules)

static bool is(const char *pattern, const char *text)
{
    enum { KEPT = 32 };
    static struct {
        const char *pattern;
        regex_t compiled;
    } kept[KEPT];
    size_t i = 0;
    while (i < KEPT && kept[i].pattern && kept[i].pattern != pattern)
        i++;
    CLAIM(i < KEPT);
    if (!kept[i].pattern) {
        CLAIM(!regcomp(&kept[i].compiled, pattern, REG_EXTENDED | REG_NOSUB));
        kept[i].pattern = pattern;
    }
    return !regexec(&kept[i].compiled, text, 0, NULL, 0);
}

/* The name part, after a DNS subdomain and a slash if there is one. */
static bool qualified(const char *text)
{
    const char *slash = strchr(text, '/'), *name = slash ? slash + 1 : text;
    bool good = true;
    if (slash) {
        char *prefix = kl_strndup(text, (size_t)(slash - text));
        good = strlen(prefix) <= 253 && is(rules[1].pattern, prefix);
        kl_free(prefix);
    }
    static const char word[] = "^" WORD "$";
    return good && strlen(name) <= 63 && is(word, name);
}

static unsigned always_last(void *arg, unsigned below)
{
    (void)arg;
    return below - 1;
}

/* What is generated from a good base is good. (kl_name_prefix passes "--" and ".-", too, as Go does.) */
static void generated(const char *text)
{
    char out[KL_NAME_GENERATED_MAX];
    kl_name_generate(text, always_last, NULL, out);
    CLAIM(strlen(out) <= KL_NAME_LABEL_MAX);
    size_t n = strlen(text);
    while (n && text[n - 1] == '-')
        n--;
    char *base = kl_strndup(text, n);
    if (!kl_name_dns1123_label(base))
        CLAIM(!kl_name_dns1123_label(out));
    kl_free(base);
}

/* A key is put together and taken apart. */
static void key(const char *text)
{
    size_t nslen;
    const char *name;
    kl_key_split(text, &nslen, &name);
    char *ns = kl_strndup(text, nslen), *again = kl_key_join(ns, name);
    CLAIM(!nslen || !strcmp(again, text));
    kl_free(ns);
    kl_free(again);
}

static void versions(const char *text)
{
    bool ok, digits = *text && strspn(text, "0123456789") == strlen(text);
    char *more = kl_sprintf("%s0", text);
    int cmp = kl_rv_compare(text, text, &ok);
    CLAIM(ok == digits && cmp == 0);
    cmp = kl_rv_compare(text, more, &ok);
    CLAIM(ok == digits && (!ok || (strspn(text, "0") == strlen(text) ? cmp == 0 : cmp < 0)));
    kl_free(more);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = kl_strndup((const char *)data, size);
    size_t n = strlen(text);
    for (size_t i = 0; i < NRULES; i++) {
        const char *why = rules[i].check(text);
        bool good = n <= rules[i].max && is(rules[i].pattern, text)
            && (!rules[i].unless || !is(rules[i].unless, text));
        if (good != !why) {
            fprintf(stderr, "rule %zu says %s of %s\n", i, why ? why : "that it is fine", text);
            abort();
        }
        CLAIM(!why || *why);
    }
    CLAIM(qualified(text) == !kl_name_qualified(text));
    generated(text);
    key(text);
    versions(text);
    kl_free(text);
    return 0;
}
