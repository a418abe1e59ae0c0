/* mapper.c - resolves a user's word to a resource. A name has three parts, of which the first two may be
 * missing:
 *
 *   apps/v1/Deployment  apps/Deployment  Deployment          kinds: capital letters count
 *   deployments.v1.apps deployments.apps deployments         names: plural, singular, short
 *
 * The core group wins over others; a group's preferred version over its others. A name in several groups is
 * ambiguous. */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "client/catalog.h"

#define SUGGESTIONS_MAX 3
#define LETTERS_MAX 2      /* wrong characters that still count as a typo; at most a third */
#define WORDS_MAX 1024     /* cached answers; a limit, since scripts may generate names */
#define WORD_BYTES_MAX 512 /* a group has at most 253, version and kind 63 each */

/* group "" with `core` is the core group, otherwise any; version "" is any. */
typedef struct name {
    char *group, *version, *word;
    bool core;
} name;

static void name_fini(name *n)
{
    kl_free(n->group);
    kl_free(n->version);
    kl_free(n->word);
}

static bool is_capital(const char *s) { return *s >= 'A' && *s <= 'Z'; }

static bool is_version(const char *s, size_t n)
{
    size_t digits = n > 1 && s[0] == 'v' ? strspn(s + 1, "0123456789") : 0;
    const char *rest = s + 1 + digits;
    size_t left = digits ? n - 1 - digits : 0;
    return digits
        && (!left || (left > 4 && !strncmp(rest, "beta", 4)) || (left > 5 && !strncmp(rest, "alpha", 5)));
}

kl_status kl__word_check(const char *word, kl_err *err)
{
    int slashes = 0;
    if (strnlen(word, WORD_BYTES_MAX + 1) > WORD_BYTES_MAX) /* a longer word is not compared with all kinds */
        return kl_fail(err, KL_EINVAL, "\"%.60s...\" names no kind: none has a name of more than %d bytes",
            word, WORD_BYTES_MAX);
    size_t n = strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-./");
    for (const char *p = word; *p; p++)
        slashes += *p == '/';
    const char *last = strrchr(word, '/'), *own = last ? last + 1 : word;
    bool hole = *word == '/' || *word == '.' || strstr(word, "//") || (last && !last[1]);
    if (!*word || word[n] || slashes > 2 || hole || is_version(own, strlen(own)))
        return kl_fail(err, KL_EINVAL,
            "\"%.200s\" names no kind; write \"v1/Pod\", \"apps/v1/Deployment\" or \"apps/Deployment\" (a "
            "kind begins with a capital), "
            "or a resource: \"pods\", \"deploy\", \"deployments.apps\"",
            word);
    return KL_OK;
}

/* Parses a name with slashes, as in kinds. */
static void parse_slashes(const char *text, const char *last, name *out)
{
    const char *slash = memchr(text, '/', (size_t)(last - text));
    out->word = kl_strdup(last + 1);
    if (slash) {
        out->group = kl_strndup(text, (size_t)(slash - text));
        out->version = kl_strndup(slash + 1, (size_t)(last - slash - 1));
    } else if (is_version(text, (size_t)(last - text))) {
        out->core = true;
        out->group = kl_strdup("");
        out->version = kl_strndup(text, (size_t)(last - text));
    } else {
        out->group = kl_strndup(text, (size_t)(last - text));
        out->version = kl_strdup("");
    }
}

/* Parses a name with dots, as in kubectl: "word.version.group" or "word.group". */
static void parse_dots(const char *text, name *out)
{
    const char *dot = strchr(text, '.'), *rest = dot ? dot + 1 : "";
    out->word = kl_strndup(text, dot ? (size_t)(dot - text) : strlen(text));
    size_t n = strcspn(rest, ".");
    if (is_version(rest, n)) {
        out->version = kl_strndup(rest, n);
        out->group = kl_strdup(rest[n] ? rest + n + 1 : "");
        out->core = !*out->group;
    } else {
        out->version = kl_strdup("");
        out->group = kl_strdup(rest);
    }
}

static void parse(const char *text, name *out)
{
    const char *last = strrchr(text, '/');
    *out = (name){0};
    if (last)
        parse_slashes(text, last, out);
    else
        parse_dots(text, out);
}

/* A resource that no discovery told of may have no plural. */
static bool is_word(const char *own, const char *word) { return own && !strcmp(own, word); }

static bool has_word(const kl_resource *r, const char *word)
{
    if (is_capital(word))
        return !strcmp(r->kind, word);
    if (is_word(r->plural, word) || is_word(r->singular, word))
        return true;
    for (char **s = r->short_names; s && *s; s++)
        if (!strcmp(*s, word))
            return true;
    return false;
}

static bool in_group(const kl_resource *r, const name *n)
{
    return (n->core ? !*r->group : !*n->group || !strcmp(r->group, n->group))
        && (!*n->version || !strcmp(r->version, n->version));
}

bool kl__resource_has_name(const kl_resource *r, const char *word)
{
    name n;
    if (kl__word_check(word, NULL))
        return false;
    parse(word, &n);
    bool has = in_group(r, &n) && has_word(r, n.word);
    name_fini(&n);
    return has;
}

/* A full name beats a short one: a CRD with the short name "pods" must not hide pods. */
static int rank(const kl_resource *r, const char *word)
{
    return !strcmp(r->plural, word) || !strcmp(r->singular, word) || !strcmp(r->kind, word) ? 0 : 1;
}

/* The best of each group, at most `max` of them. */
static size_t candidates(const kl__catalog *c, const name *n, const kl_resource **out, size_t max)
{
    size_t len = 0;
    for (int pass = 0; pass < 2 && !len; pass++)
        for (size_t i = 0; i < c->n && len < max; i++) {
            const kl_resource *r = c->order[i];
            bool seen = !in_group(r, n) || !has_word(r, n->word) || rank(r, n->word) != pass;
            for (size_t k = 0; k < len && !seen; k++)
                seen = !strcmp(out[k]->group, r->group);
            if (!seen)
                out[len++] = r;
        }
    return len;
}

bool kl__catalog_preferred(const kl__catalog *c, const kl_resource *r)
{
    for (size_t i = 0; i < c->n; i++)
        if (!strcmp(c->order[i]->group, r->group) && !strcmp(c->order[i]->kind, r->kind))
            return c->order[i] == r;
    return false;
}

/* --- what to say about a kind that is not there ------------------------------------------- */

/* The distance of a name, 0 for the nearest; -1: no match. */
static int nearness(const name *n, const kl_resource *r)
{
    bool kind = is_capital(n->word),
         other_name = !strcasecmp(n->word, r->plural) || !strcasecmp(n->word, r->singular)
        || !strcasecmp(n->word, r->kind);
    const char *mine = kind ? r->kind : r->plural;
    size_t most = strlen(n->word) / 3, letters = kl_edit_distance(n->word, mine);
    bool group = !strcmp(n->group, r->group);
    if (!kind && letters > kl_edit_distance(n->word, r->singular))
        letters = kl_edit_distance(n->word, r->singular);
    for (char **s = r->short_names; s && *s; s++)
        other_name = other_name || !strcasecmp(n->word, *s);
    if (letters > (most < LETTERS_MAX ? most : LETTERS_MAX) && !other_name)
        return -1;
    return (other_name ? 0 : (int)letters) * 2 + !group;
}

/* Appends suggestions; returns their number. */
static int suggest(const kl__catalog *c, const name *n, kl_buf *out)
{
    int told = 0;
    for (int rank = 0; rank <= 2 * LETTERS_MAX + 1 && told < SUGGESTIONS_MAX; rank++)
        for (size_t i = 0; i < c->n && told < SUGGESTIONS_MAX; i++) {
            const kl_resource *r = c->order[i];
            if (nearness(n, r) != rank)
                continue;
            char *text = kl_gvk_text(r->group, r->version, r->kind);
            kl_buf_printf(out, "%s\"%s\"", told++ ? " or " : "; did you mean ", text);
            kl_free(text);
        }
    if (told)
        kl_buf_putc(out, '?');
    return told;
}

void kl__catalog_near(const kl__catalog *c, const char *word, kl_buf *out)
{
    name n;
    parse(word, &n);
    (void)suggest(c, &n, out);
    name_fini(&n);
}

static const char *failure_in_group(const kl__catalog *c, const name *n)
{
    size_t it = 0, len = strlen(n->group);
    const char *key;
    void *why;
    while (kl_map_next(c->failed, &it, &key, &why))
        if (!strncmp(key, n->group, len) && key[len] == '|'
            && (!*n->version || !strcmp(key + len + 1, n->version)))
            return why;
    return NULL;
}

static kl_status ambiguous(const char *word, const kl_resource **r, size_t n, kl_err *err)
{
    kl_buf names = KL_BUF_INIT;
    for (size_t i = 0; i < n; i++) {
        char *text = kl_gvk_text(r[i]->group, r[i]->version, r[i]->kind);
        kl_buf_printf(&names, "%s\"%s\"", i ? " or " : "", text);
        kl_free(text);
    }
    kl_status st = kl_fail(
        err, KL_EINVAL, "\"%s\" is in several API groups: name one of %s", word, kl_buf_str(&names));
    kl_buf_fini(&names);
    return st;
}

/* --- answers ------------------------------------------------------------------------------ */

#define CANDIDATES_MAX 8

kl_status kl__catalog_find(const kl__catalog *c, const char *word, const kl_resource **out, kl_err *err)
{
    kl_status st = kl__word_check(word, err);
    if (st)
        return st;
    const kl_resource *r[CANDIDATES_MAX];
    name n;
    parse(word, &n);
    size_t len = c ? candidates(c, &n, r, CANDIDATES_MAX) : 0;
    const char *why = c && !len ? failure_in_group(c, &n) : NULL;
    if (len == 1 || (len && !*r[0]->group)) /* core comes first */
        *out = r[0];
    else if (len)
        st = ambiguous(word, r, len, err);
    else if (why)
        st = kl_fail(err, KL_ESERVER, "looking up \"%s\": discovery of its API group failed: %s", word, why);
    else {
        kl_buf more = KL_BUF_INIT;
        if (c && !suggest(c, &n, &more) && *n.group && !kl_map_has(c->groups, n.group))
            kl_buf_printf(&more, "; it has no API group \"%s\": is the CRD installed?", n.group);
        st = kl_fail(err, KL_ENOTFOUND, "the server has no \"%s\"%s", word, kl_buf_str(&more));
        kl_buf_fini(&more);
    }
    name_fini(&n);
    return st;
}

const kl_resource *kl__catalog_word(kl__catalog *c, const char *word)
{
    const kl_resource *r = c ? kl_map_get(c->asked, word) : NULL;
    if (r || !c || kl__catalog_find(c, word, &r, NULL))
        return r;
    if (kl_map_len(c->asked) < WORDS_MAX)
        kl_map_set(c->asked, word, (void *)r);
    return r;
}
