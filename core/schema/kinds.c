/* kinds.c - the registry of kinds: an array in discovery order, small enough to be searched.
 *
 * Lookups by name run once per request over some hundred entries. */
#include "schema/kinds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rules/rules.h"
#include "schema/builtin.h"

struct kl__kinds {
    kl__kind **v;
    size_t len, cap;
    kl__kind **dead; /* removed, but the running call may still read them */
    size_t ndead;
};

/* ------------------------------------------------------------------ words */

static char **words_split(const char *text, size_t n, char sep)
{
    if (n == 1 && *text == '-')
        n = 0;
    size_t count = n ? 1 : 0;
    for (size_t i = 0; i < n; i++)
        count += text[i] == sep;
    char **words = kl_new_array(char *, count + 1);
    const char *end = text + n;
    for (size_t k = 0; k < count; k++) {
        const char *stop = memchr(text, sep, (size_t)(end - text));
        if (!stop)
            stop = end;
        words[k] = kl_strndup(text, (size_t)(stop - text));
        text = stop + 1;
    }
    return words;
}

void kl__words_free(char **words)
{
    for (char **w = words; w && *w; w++)
        kl_free(*w);
    kl_free(words);
}

char **kl__words_copy(char *const *words)
{
    size_t n = 0;
    while (words && words[n])
        n++;
    char **copy = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = kl_strdup(words[i]);
    return copy;
}

bool kl__words_have(char *const *words, const char *word)
{
    for (; words && *words; words++)
        if (!strcmp(*words, word))
            return true;
    return false;
}

/* ------------------------------------------------------------------ one kind */

static void kind_clear(kl__kind *k)
{
    kl_free(k->group);
    kl_free(k->version);
    kl_free(k->kind);
    kl_free(k->list_kind);
    kl_free(k->plural);
    kl_free(k->singular);
    kl__words_free(k->short_names);
    kl__words_free(k->categories);
    kl__words_free(k->verbs);
    for (size_t i = 0; i < k->nsubs; i++) {
        kl_free(k->subs[i].name);
        kl_free(k->subs[i].group);
        kl_free(k->subs[i].version);
        kl_free(k->subs[i].kind);
        kl__words_free(k->subs[i].verbs);
    }
    kl_free(k->subs);
    kl__types_free(k->types);
    kl_cel_rules_free(k->rules);
    kl_value_unref(k->columns);
    kl_value_unref(k->conversion);
    kl_value_unref(k->scale);
    kl_value_unref(k->selectable);
    kl_value_unref(k->plain);
    kl_free(k->storage);
    kl_free(k->deprecation);
}

void kl__kind_free(kl__kind *k)
{
    if (k)
        kind_clear(k);
    kl_free(k);
}

/* "name:group/version/Kind:verbs" */
static void parse_sub(kl__sub *sub, const char *text)
{
    size_t n = strcspn(text, ":");
    sub->name = kl_strndup(text, n);
    char **parts = words_split(text + n + 1, strcspn(text + n + 1, ":"), '/');
    sub->group = parts[0];
    sub->version = parts[1];
    sub->kind = parts[2];
    kl_free(parts);
    const char *verbs = strrchr(text, ':') + 1;
    sub->verbs = words_split(verbs, strlen(verbs), ',');
}

/* Kubernetes' own words (the APILifecycle methods of its types). */
static const char *deprecation_of(const kl__kind *k)
{
    if (kl__kind_among(k, "/endpoints"))
        return "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice";
    return kl__kind_among(k, "/componentstatuses") ? "v1 ComponentStatus is deprecated in v1.19+" : NULL;
}

static kl__kind *builtin_kind(const char *line, const kl__types *types)
{
    kl__kind *k = kl_new(kl__kind);
    char **w = words_split(line, strlen(line), ' ');
    k->group = kl_strdup(strcmp(w[0], "-") ? w[0] : "");
    k->version = kl_strdup(w[1]);
    k->kind = kl_strdup(w[2]);
    k->list_kind = kl_sprintf("%sList", w[2]);
    k->plural = kl_strdup(w[3]);
    k->singular = kl_strdup(w[4]);
    k->namespaced = !strcmp(w[5], "ns");
    k->verbs = words_split(w[6], strlen(w[6]), ',');
    k->short_names = words_split(w[7], strlen(w[7]), ',');
    k->categories = words_split(w[8], strlen(w[8]), ',');
    k->schema = strcmp(w[9], "-") ? kl__types_get(types, w[9]) : NULL;
    char **subs = words_split(w[10] ? w[10] : "", w[10] ? strlen(w[10]) : 0, '|');
    while (subs[k->nsubs])
        k->nsubs++;
    k->subs = kl_new_array(kl__sub, k->nsubs + 1);
    for (size_t i = 0; i < k->nsubs; i++)
        parse_sub(&k->subs[i], subs[i]);
    kl__words_free(subs);
    kl__words_free(w);
    k->deprecation = kl_strdup(deprecation_of(k));
    return k;
}

bool kl__kind_has_verb(const kl__kind *k, const char *verb) { return kl__words_have(k->verbs, verb); }

const kl__sub *kl__kind_sub(const kl__kind *k, const char *name)
{
    for (size_t i = 0; i < k->nsubs; i++)
        if (!strcmp(k->subs[i].name, name))
            return &k->subs[i];
    return NULL;
}

char *kl__kind_api_version(const kl__kind *k)
{
    return *k->group ? kl_sprintf("%s/%s", k->group, k->version) : kl_strdup(k->version);
}
char *kl__kind_display(const kl__kind *k)
{
    return *k->group ? kl_sprintf("%s.%s", k->plural, k->group) : kl_strdup(k->plural);
}

/* ------------------------------------------------------------------ the registry */

kl__kinds *kl__kinds_new(const kl__types *builtin)
{
    kl__kinds *k = kl_new(kl__kinds);
    for (const char *const *line = kl__builtin_kinds; *line; line++)
        kl__kinds_add(k, builtin_kind(*line, builtin));
    return k;
}

void kl__kinds_free(kl__kinds *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->len; i++)
        kl__kind_free(k->v[i]);
    kl__kinds_bury(k);
    kl_free(k->v);
    kl_free(k);
}

void kl__kinds_bury(kl__kinds *k)
{
    for (size_t i = 0; i < k->ndead; i++)
        kl__kind_free(k->dead[i]);
    kl_free(k->dead);
    k->dead = NULL;
    k->ndead = 0;
}

void kl__kinds_add(kl__kinds *k, kl__kind *kind)
{
    kl__kind *old = kl__kinds_get(k, kind->group, kind->version, kind->plural);
    if (old) { /* watches hold the pointer */
        kl__bucket *bucket = old->bucket;
        kind_clear(old);
        *old = *kind;
        old->bucket = kind->bucket ? kind->bucket : bucket;
        kl_free(kind);
        return;
    }
    if (k->len == k->cap) {
        k->cap = k->cap ? k->cap * 2 : 128;
        k->v = kl_realloc(k->v, k->cap * sizeof *k->v);
    }
    k->v[k->len++] = kind;
}

void kl__kinds_remove(kl__kinds *k, const char *group, const char *plural, const char *const *keep)
{
    size_t n = 0;
    for (size_t i = 0; i < k->len; i++) {
        kl__kind *kind = k->v[i];
        bool gone = kind->custom && !strcmp(kind->group, group) && !strcmp(kind->plural, plural);
        for (const char *const *w = keep; gone && w && *w; w++)
            gone = strcmp(*w, kind->version) != 0;
        if (gone) {
            k->dead = kl_realloc(k->dead, (k->ndead + 1) * sizeof *k->dead);
            k->dead[k->ndead++] = kind;
        } else
            k->v[n++] = kind;
    }
    k->len = n;
}

kl__kind *kl__kinds_get(const kl__kinds *k, const char *group, const char *version, const char *plural)
{
    for (size_t i = 0; i < k->len; i++)
        if (!strcmp(k->v[i]->plural, plural) && !strcmp(k->v[i]->group, group)
            && !strcmp(k->v[i]->version, version))
            return k->v[i];
    return NULL;
}

kl__kind *kl__kinds_by_kind(const kl__kinds *k, const char *group, const char *version, const char *kind)
{
    for (size_t i = 0; i < k->len; i++)
        if (!strcmp(k->v[i]->kind, kind) && !strcmp(k->v[i]->group, group)
            && !strcmp(k->v[i]->version, version))
            return k->v[i];
    return NULL;
}

kl__kind *kl__kinds_of_bucket(const kl__kinds *k, const kl__bucket *b)
{
    for (size_t i = 0; i < k->len; i++)
        if (k->v[i]->bucket == b)
            return k->v[i];
    return NULL;
}

bool kl__kinds_has_group(const kl__kinds *k, const char *group, const char *version)
{
    for (size_t i = 0; i < k->len; i++)
        if (!strcmp(k->v[i]->group, group) && (!version || !strcmp(k->v[i]->version, version)))
            return true;
    return false;
}

size_t kl__kinds_len(const kl__kinds *k) { return k->len; }
kl__kind *kl__kinds_at(const kl__kinds *k, size_t i) { return k->v[i]; }

/* ------------------------------------------------------------------ version order */

/* "v2beta3" as (stability, major, minor); false for any other word. */
static bool version_parse(const char *v, int rank[3])
{
    char *end;
    if (*v != 'v' || v[1] < '1' || v[1] > '9')
        return false;
    rank[1] = (int)strtol(v + 1, &end, 10);
    rank[0] = 3;
    rank[2] = 0;
    if (!*end)
        return true;
    size_t n = !strncmp(end, "alpha", 5) ? 5 : !strncmp(end, "beta", 4) ? 4 : 0;
    if (!n || end[n] < '1' || end[n] > '9')
        return false;
    rank[0] = n == 5 ? 1 : 2;
    rank[2] = (int)strtol(end + n, &end, 10);
    return !*end;
}

int kl__version_compare(const char *a, const char *b)
{
    int x[3], y[3];
    bool good_a = version_parse(a, x), good_b = version_parse(b, y);
    if (!good_a || !good_b)
        return good_a ? -1 : good_b ? 1 : strcmp(a, b);
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] > y[i] ? -1 : 1;
    return 0;
}

bool kl__kind_among(const kl__kind *k, const char *words)
{
    size_t group = strlen(k->group), plural = strlen(k->plural), n;
    for (const char *w = words + strspn(words, " "); *w; w += n + strspn(w + n, " ")) {
        n = strcspn(w, " ");
        if (n == group + 1 + plural && !memcmp(w, k->group, group) && w[group] == '/'
            && !memcmp(w + group + 1, k->plural, plural))
            return true;
    }
    return false;
}
