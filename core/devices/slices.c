/* slices.c - ResourceSlices: the devices that a driver offers on a node, or on several. */
#include <string.h>

#include "base/mem.h"
#include "builtin/pod.h"
#include "builtin/storage.h"
#include "check/forms.h"
#include "devices/parts.h"

#define SPEC KL_IN(NULL, "spec")
#define DEVICES_MAX 128
#define FACTS_MAX 32
#define TEXT_MAX 64
#define KEY_MAX 96 /* of a domain and an id */

/* ------------------------------------------------------------------ versions */

#define DIGITS "0123456789"
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-"

/* A number without leading zeros; returns its end, or NULL. */
static const char *number(const char *s)
{
    size_t n = strspn(s, DIGITS);
    return !n || (n > 1 && *s == '0') ? NULL : s + n;
}

/* Identifiers separated by dots. `numbers`: one that has only digits has no leading zeros. */
static const char *identifiers(const char *s, bool numbers)
{
    for (;;) {
        size_t n = strspn(s, DIGITS LETTERS), digits = strspn(s, DIGITS);
        if (!n || (numbers && digits == n && n > 1 && *s == '0'))
            return NULL;
        s += n;
        if (*s != '.')
            return s;
        s++;
    }
}

static bool semantic(const char *s)
{
    for (int i = 0; i < 3; i++) {
        if (i && *s++ != '.')
            return false;
        s = number(s);
        if (!s)
            return false;
    }
    if (*s == '-')
        s = identifiers(s + 1, true);
    if (s && *s == '+')
        s = identifiers(s + 1, false);
    return s && !*s;
}

/* ------------------------------------------------------------------ devices */

/* A key for a complaint, in the caller's buffer: a long one is cut in its middle. */
static const char *cut_key(const char *key, size_t *n, char out[KEY_MAX + 1])
{
    if (*n <= KEY_MAX)
        return key;
    size_t rest = KEY_MAX - 3, head = (rest + 1) / 2, tail = rest / 2;
    memcpy(out, key, head);
    memcpy(out + head, "...", 3);
    memcpy(out + head + 3, key + *n - tail, tail);
    out[KEY_MAX] = '\0';
    *n = KEY_MAX;
    return out;
}

static void check_attribute(kl__causes *c, const kl_value *a, const kl__place *at)
{
    static const char *const members[] = {"bool", "int", "string", "version"};
    const kl_value *version = kl_value_get(a, "version");
    size_t n = 0;
    for (size_t i = 0; i < 4; i++)
        n += kl_value_get(a, members[i]) != NULL;
    if (strlen(kl__text(a, "string")) > TEXT_MAX)
        kl__say_too_long(c, KL_IN(at, "string"), TEXT_MAX);
    if (version && !semantic(kl__text(a, "version")))
        kl__say_invalid(
            c, KL_IN(at, "version"), version, "must be a string compatible with semver.org spec 2.0.0");
    if (strlen(kl__text(a, "version")) > TEXT_MAX)
        kl__say_too_long(c, KL_IN(at, "version"), TEXT_MAX);
    if (!n)
        kl__say_required(c, at, "exactly one value must be specified");
    else if (n > 1) {
        const kl_value *shown = kl__as_go(
            a, "IntValue=int? BoolValue=bool? StringValue=string? VersionValue=version?");
        kl__say_invalid(c, at, shown, "exactly one value must be specified");
        kl_value_unref(shown);
    }
}

static void check_device(const kl__claim_look *look, const kl_value *device, const kl__place *at)
{
    static const char *const maps[] = {"attributes", "capacity"};
    size_t facts = kl_value_len(kl_value_get(device, "attributes"))
        + kl_value_len(kl_value_get(device, "capacity"));
    kl__check_form(look->c, KL_IN(at, "name"), kl__text(device, "name"), KL_DNS_LABEL);
    if (facts > FACTS_MAX)
        kl__say_invalid_int(look->c, at, (int64_t)facts,
            "the total number of attributes and capacities must not exceed %d", FACTS_MAX);
    for (size_t m = 0; m < 2; m++) {
        kl__sorted facts_of = kl__members(kl_value_get(device, maps[m]));
        const kl__place *in = KL_IN(at, maps[m]);
        for (size_t i = 0; i < facts_of.len; i++) {
            char cut[KEY_MAX + 1];
            size_t n = strlen(facts_of.v[i].key);
            const char *shown = cut_key(facts_of.v[i].key, &n, cut);
            const kl__place *fact = KL_KEYED(in, shown, n);
            kl__check_qualified_id(look->c, facts_of.v[i].key, fact);
            if (m == 0)
                check_attribute(look->c, facts_of.v[i].v, fact);
        }
        kl_free(facts_of.v);
    }
}

/* ------------------------------------------------------------------ the slice */

static void check_pool(kl__causes *c, const kl_value *pool, const kl__place *at)
{
    int64_t count = kl_value_int_at(pool, 0, "resourceSliceCount", NULL),
            generation = kl_value_int_at(pool, 0, "generation", NULL);
    kl__check_pool_name(c, kl__text(pool, "name"), KL_IN(at, "name"));
    if (count <= 0)
        kl__say_invalid_int(c, KL_IN(at, "resourceSliceCount"), count, "must be greater than zero");
    if (generation < 0)
        kl__say_invalid_int(c, KL_IN(at, "generation"), generation, "must be greater than or equal to zero");
}

static void check_node_terms(kl__causes *c, const kl_value *selector, const kl__place *at)
{
    const kl_value *terms = kl_value_get(selector, "nodeSelectorTerms");
    kl__check_node_selector(c, selector, at);
    if (kl_value_len(terms) == 1)
        return;
    const kl_value *shown = kl__as_go(selector,
        "NodeSelectorTerms[MatchExpressions[Key Operator Values?] MatchFields[Key Operator Values?]]");
    kl__say_invalid(c, KL_IN(at, "nodeSelectorTerms"), kl_value_get(shown, "NodeSelectorTerms"),
        "must have exactly one node selector term");
    kl_value_unref(shown);
}

/* Exactly one of the fields must name the nodes of the devices. */
static void check_nodes(kl__causes *c, const kl_value *spec)
{
    const kl_value *name = kl_value_get(spec, "nodeName"), *selector = kl_value_get(spec, "nodeSelector"),
                   *all = kl_value_get(spec, "allNodes");
    kl_buf set = KL_BUF_INIT;
    size_t n = 0;
    if (kl_value_len(name)) {
        kl_buf_puts(&set, "`nodeName`");
        n++;
        kl__check_member(c, spec, SPEC, "nodeName", KL_DNS_SUBDOMAIN);
    } else if (name)
        kl__say_invalid(
            c, KL_IN(SPEC, "nodeName"), name, "must be either unset or set to a non-empty string");
    if (selector) {
        kl_buf_puts(&set, n++ ? ", `nodeSelector`" : "`nodeSelector`");
        check_node_terms(c, selector, KL_IN(SPEC, "nodeSelector"));
    }
    if (kl_value_bool(all, false))
        kl_buf_puts(&set, n++ ? ", `allNodes`" : "`allNodes`");
    else if (all)
        kl__say_invalid(c, KL_IN(SPEC, "allNodes"), all, "must be either unset or set to true");
    if (!n)
        kl__say_required(c, SPEC,
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required");
    else if (n > 1) {
        kl_buf shown = KL_BUF_INIT;
        kl_buf_printf(&shown, "{%s}", kl_buf_str(&set));
        kl__say_invalid_text(c, SPEC, kl_buf_str(&shown),
            "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required, "
            "but "
            "multiple fields are set");
        kl_buf_fini(&shown);
    }
    kl_buf_fini(&set);
}

void kl__check_resource_slice(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *old = kl_value_get(w->old, "spec");
    kl__claim_look look = {.c = c};
    kl__check_driver(c, kl__text(spec, "driver"), KL_IN(SPEC, "driver"));
    check_pool(c, kl_value_get(spec, "pool"), KL_IN(SPEC, "pool"));
    if (old) {
        kl__check_same(c, kl_value_get(old, "pool"), kl_value_get(spec, "pool"), KL_IN(SPEC, "pool"), "name");
        kl__check_same(c, old, spec, SPEC, "driver");
        kl__check_same(c, old, spec, SPEC, "nodeName");
    }
    check_nodes(c, spec);
    kl__check_set(
        &look, kl_value_get(spec, "devices"), DEVICES_MAX, "name", check_device, KL_IN(SPEC, "devices"));
}
