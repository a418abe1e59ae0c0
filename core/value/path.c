/* path.c - how people name a place in an object, compiled into steps.
 *
 *   spec.containers[1].name        steps: key, key, index, key
 *   labels[app.kubernetes.io/name] brackets hold a key with dots, bare or quoted ("..." or '...')
 *
 * Digits alone in brackets are an index; quoted digits are a key. */
#include "value/path.h"

#include <string.h>
#include "base/mem.h"

typedef struct step {
    char *key; /* NULL: an index */
    size_t keylen;
    size_t index;     /* from 1 */
    kl_lookup lookup; /* of the key, once kl_path_find asked for it: then it has a key */
} step;

struct kl_path {
    char *text;
    step *steps;
    size_t len;
};

static void add(kl_path *p, step s)
{
    p->steps = kl_realloc(p->steps, (p->len + 1) * sizeof *p->steps);
    p->steps[p->len++] = s;
}

static kl_status bad(const char *text, const char *at, const char *what, kl_err *err)
{
    return kl_fail(err, KL_EINVAL,
        "path \"%s\": %s at column %zu; write it like spec.containers[1].name or "
        "metadata.labels[app.kubernetes.io/name]",
        text, what, (size_t)(at - text) + 1);
}

/* at is after '['; ends after ']'. */
static kl_status bracket(kl_path *p, const char **at, kl_err *err)
{
    const char *from = *at, *end;
    bool quoted = *from == '"' || *from == '\'';
    if (quoted) {
        char q = *from++;
        end = strchr(from, q);
        if (!end || end[1] != ']')
            return bad(p->text, *at, "a quoted key without its closing quote and bracket", err);
        *at = end + 2;
    } else {
        end = strchr(from, ']');
        if (!end)
            return bad(p->text, *at, "a bracket that is not closed", err);
        *at = end + 1;
    }
    size_t n = (size_t)(end - from);
    if (!n && !quoted)
        return bad(p->text, from, "empty brackets", err);
    if (!quoted && strspn(from, "0123456789") == n) {
        size_t index = 0;
        for (size_t i = 0; i < n; i++)
            if (__builtin_mul_overflow(index, (size_t)10, &index)
                || __builtin_add_overflow(index, (size_t)(from[i] - '0'), &index))
                return bad(p->text, from, "an index that is too large", err);
        if (!index)
            return bad(p->text, from, "index 0, but lists count from 1,", err);
        add(p, (step){.index = index});
        return KL_OK;
    }
    add(p, (step){.key = kl_strndup(from, n), .keylen = n});
    return KL_OK;
}

kl_status kl_path_parse(const char *text, kl_path **out, kl_err *err)
{
    kl_path *p = kl_new(kl_path);
    p->text = kl_strdup(text);
    const char *at = p->text;
    kl_status st = KL_OK;
    if (!*at)
        st = bad(p->text, at, "nothing", err);
    while (!st && *at) {
        if (p->len >= KL_VALUE_DEPTH_MAX) {
            st = kl_fail(err, KL_EINVAL, "path \"%.40s...\": more than %d steps, and no value is as deep",
                p->text, KL_VALUE_DEPTH_MAX);
            break;
        }
        if (*at == '[') {
            at++;
            st = bracket(p, &at, err);
        } else {
            size_t n = strcspn(at, ".[]");
            if (!n || at[n] == ']') {
                st = bad(p->text, at + n, n ? "an unexpected ']'" : "a missing key", err);
                break;
            }
            add(p, (step){.key = kl_strndup(at, n), .keylen = n});
            at += n;
        }
        if (st || !*at || *at == '[')
            continue;
        if (*at != '.' || !at[1] || at[1] == '[')
            st = bad(p->text, at, "a missing key", err);
        at++;
    }
    if (st) {
        kl_path_free(p);
        return st;
    }
    *out = p;
    return KL_OK;
}

void kl_path_free(kl_path *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->len; i++) {
        if (p->steps[i].lookup.key)
            kl_lookup_fini(&p->steps[i].lookup);
        kl_free(p->steps[i].key);
    }
    kl_free(p->steps);
    kl_free(p->text);
    kl_free(p);
}

const char *kl_path_text(const kl_path *p) { return p->text; }

const kl_value *kl_path_get(const kl_path *p, const kl_value *root)
{
    for (size_t i = 0; root && i < p->len; i++) {
        const step *s = &p->steps[i];
        root = s->key ? kl_value_getn(root, s->key, s->keylen) : kl_value_item(root, s->index - 1);
    }
    return root;
}

const kl_value *kl_path_find(kl_path *p, const kl_value *root)
{
    for (size_t i = 0; root && i < p->len; i++) {
        step *s = &p->steps[i];
        if (s->key && !s->lookup.key)
            kl_lookup_init(&s->lookup, s->key, s->keylen);
        root = s->key ? kl_value_find(root, &s->lookup) : kl_value_item(root, s->index - 1);
    }
    return root;
}

size_t kl_path_len(const kl_path *p) { return p->len; }

const char *kl_path_step(const kl_path *p, size_t i, size_t *keylen, size_t *index)
{
    *keylen = p->steps[i].keylen;
    *index = p->steps[i].index;
    return p->steps[i].key;
}
