/* covers.c - whether rules grant more than a user holds: each rule is split into single rights, and each
 * needs one rule that covers it. Missing rights are merged again, verb by verb, for the message. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "rbac/rbac.h"

/* The maximum rights of a role that fits in a request; further ones count as not held. */
#define RIGHTS_MAX 1000000

typedef struct right {
    const char *verb, *group, *resource, *name, *path; /* path: no resource; name NULL: all of them */
} right;

static const char *at(const kl_value *list, size_t i)
{
    const char *s = kl_value_str(kl_value_item(list, i));
    return s ? s : "";
}

static bool has(const kl_value *list, const char *word)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        if (!strcmp(at(list, i), "*") || !strcmp(at(list, i), word))
            return true;
    return false;
}

static bool resource_covered(const kl_value *list, const char *resource)
{
    const char *slash = strchr(resource, '/');
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = at(list, i);
        if (!strcmp(s, "*") || !strcmp(s, resource)
            || (slash && !strncmp(s, "*/", 2) && !strcmp(s + 1, slash)))
            return true;
    }
    return false;
}

static bool path_covered(const kl_value *list, const char *path)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = at(list, i);
        size_t n = strlen(s);
        while (n && s[n - 1] == '*')
            n--;
        if (!strcmp(s, path) || (s[n] && !strncmp(s, path, n)))
            return true;
    }
    return false;
}

static bool covered_by(const kl_value *rule, const right *r)
{
    if (!has(kl_value_get(rule, "verbs"), r->verb))
        return false;
    if (r->path)
        return path_covered(kl_value_get(rule, "nonResourceURLs"), r->path);
    const kl_value *names = kl_value_get(rule, "resourceNames");
    bool named = !kl_value_len(names);
    for (size_t i = 0; r->name && i < kl_value_len(names) && !named; i++)
        named = !strcmp(at(names, i), r->name);
    return named && has(kl_value_get(rule, "apiGroups"), r->group)
        && resource_covered(kl_value_get(rule, "resources"), r->resource);
}

typedef struct search {
    const kl_value *held;
    right *missing;
    size_t n, cap, seen;
} search;

static void look(search *s, const right *r)
{
    if (s->seen++ < RIGHTS_MAX)
        for (size_t i = 0; i < kl_value_len(s->held); i++)
            if (covered_by(kl_value_item(s->held, i), r))
                return;
    if (s->seen > RIGHTS_MAX && s->n)
        return;
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->missing = kl_realloc(s->missing, s->cap * sizeof *s->missing);
    }
    s->missing[s->n++] = *r;
}

static void look_resources(search *s, const kl_value *rule, const char *group, const char *resource)
{
    const kl_value *verbs = kl_value_get(rule, "verbs"), *names = kl_value_get(rule, "resourceNames");
    for (size_t v = 0; v < kl_value_len(verbs); v++) {
        right r = {.verb = at(verbs, v), .group = group, .resource = resource};
        if (!kl_value_len(names))
            look(s, &r);
        for (size_t i = 0; i < kl_value_len(names); i++) {
            r.name = at(names, i);
            look(s, &r);
        }
    }
}

static void look_rule(search *s, const kl_value *rule)
{
    const kl_value *groups = kl_value_get(rule, "apiGroups"), *resources = kl_value_get(rule, "resources"),
                   *paths = kl_value_get(rule, "nonResourceURLs"), *verbs = kl_value_get(rule, "verbs");
    for (size_t g = 0; g < kl_value_len(groups); g++)
        for (size_t i = 0; i < kl_value_len(resources); i++)
            look_resources(s, rule, at(groups, g), at(resources, i));
    for (size_t p = 0; p < kl_value_len(paths); p++)
        for (size_t v = 0; v < kl_value_len(verbs); v++)
            look(s, &(right){.verb = at(verbs, v), .path = at(paths, p)});
}

static bool same_thing(const right *a, const right *b)
{
    if (a->path || b->path)
        return false;
    return !strcmp(a->group, b->group) && !strcmp(a->resource, b->resource)
        && !strcmp(a->name ? a->name : "", b->name ? b->name : "");
}

/* The text of one missing rule. Later rights to the same thing join it: their verb becomes NULL. */
static char *line_of(right *v, size_t n)
{
    kl_buf b = KL_BUF_INIT;
    right *r = &v[0];
    if (r->path)
        kl_buf_printf(&b, "{NonResourceURLs:[\"%s\"], ", r->path);
    else
        kl_buf_printf(&b, "{APIGroups:[\"%s\"], Resources:[\"%s\"], ", r->group, r->resource);
    if (r->name)
        kl_buf_printf(&b, "ResourceNames:[\"%s\"], ", r->name);
    kl_buf_printf(&b, "Verbs:[\"%s\"", r->verb);
    for (size_t i = 1; i < n; i++)
        if (v[i].verb && same_thing(r, &v[i])) {
            kl_buf_printf(&b, " \"%s\"", v[i].verb);
            v[i].verb = NULL;
        }
    kl_buf_puts(&b, "]}");
    return kl_buf_take(&b);
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void say_missing(search *s, kl_buf *out)
{
    char **lines = kl_new_array(char *, s->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++)
        if (s->missing[i].verb)
            lines[n++] = line_of(&s->missing[i], s->n - i);
    if (n)
        qsort(lines, n, sizeof *lines, by_text);
    for (size_t i = 0; i < n; i++) {
        if (!i || strcmp(lines[i], lines[i - 1]))
            kl_buf_printf(out, "%s%s", i ? "\n" : "", lines[i]);
    }
    for (size_t i = 0; i < n; i++)
        kl_free(lines[i]);
    kl_free(lines);
}

bool kl_rbac_covers(const kl_value *held, const kl_value *rules, kl_buf *missing)
{
    search s = {.held = held};
    for (size_t i = 0; i < kl_value_len(rules); i++)
        look_rule(&s, kl_value_item(rules, i));
    if (s.n && missing)
        say_missing(&s, missing);
    kl_free(s.missing);
    return !s.n;
}
