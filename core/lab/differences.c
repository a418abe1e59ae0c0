/* differences.c - a map from what makes a kind to its count and first example. */
#include "lab/differences.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/diff.h"

#define KINDS_MAX 500
#define LENGTH_MAX 1024 /* of a kind; longer texts are compared only up to here */

/* --- one kind ----------------------------------------------------------------------------- */

static void separate(kl_buf *kind)
{
    if (kind->len)
        kl_buf_puts(kind, "; ");
}

/* The name that a key ends with: "b" of "a/b". */
static const char *name_of(const char *key)
{
    const char *slash = strrchr(key, '/');
    return slash ? slash + 1 : key;
}

static bool at_word(const char *begin, const char *p) { return p == begin || !isalnum((unsigned char)p[-1]); }

/* Writes `text` with "*" for the name and for quoted texts, and "#" for numbers except after ".lua:". */
static void put_plain(kl_buf *out, const char *name, const char *text)
{
    size_t n = strlen(name);
    const char *begin = text;
    while (*text && out->len < LENGTH_MAX) {
        size_t digits = strspn(text, "0123456789");
        const char *quote = *text == '"' ? strchr(text + 1, '"') : NULL;
        if (n && at_word(begin, text) && !strncmp(text, name, n) && !isalnum((unsigned char)text[n])) {
            kl_buf_putc(out, '*');
            text += n;
        } else if (quote) {
            kl_buf_puts(out, "\"*\"");
            text = quote + 1;
        } else if (digits && !(text - begin >= 5 && !strncmp(text - 5, ".lua:", 5))) {
            kl_buf_putc(out, '#');
            text += digits;
        } else {
            size_t take = digits ? digits : 1;
            kl_buf_printf(out, "%.*s", (int)take, text);
            text += take;
        }
    }
}

typedef struct fields {
    kl_buf *out;
    const char *name;
    size_t begin;
} fields;

static void put_field(void *arg, const char *path, const kl_value *was, const kl_value *is)
{
    fields *f = arg;
    if (f->out->len > LENGTH_MAX)
        return;
    kl_buf_puts(f->out, f->out->len > f->begin ? ", " : ": ");
    put_plain(f->out, f->name, path);
    if (!was != !is)
        kl_buf_puts(f->out, was ? " gone" : " new");
}

void kl_kind_add(kl_buf *kind, const char *key, const char *what, const kl_value *was, const kl_value *is)
{
    separate(kind);
    kl_buf_puts(kind, what);
    fields f = {kind, name_of(key), kind->len};
    kl_diff_objects(was, is, put_field, &f);
}

void kl_kind_text(kl_buf *kind, const char *key, const char *what, const char *text)
{
    separate(kind);
    kl_buf_printf(kind, "%s: ", what);
    put_plain(kind, name_of(key), text);
}

char *kl_kind_word(const char *call)
{
    const char *host = strstr(call, "://");
    return kl_strndup(call, host ? (size_t)(host + 3 - call) + strcspn(host + 3, "/?#") : strcspn(call, " "));
}

/* --- all ---------------------------------------------------------------------------------- */

struct kl_differences {
    kl_map *kinds;  /* "verdict controller kind" -> kl_likes */
    kl_likes **all; /* in the order in which they came */
    size_t n;
};

kl_differences *kl_differences_new(void)
{
    kl_differences *d = kl_new(kl_differences);
    d->kinds = kl_map_new();
    return d;
}

void kl_differences_free(kl_differences *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < d->n; i++) {
        kl_free(d->all[i]->controller);
        kl_free(d->all[i]->key);
        kl_free(d->all[i]->kind);
        kl_free(d->all[i]->text);
        kl_free(d->all[i]);
    }
    kl_free(d->all);
    kl_map_free(d->kinds, NULL);
    kl_free(d);
}

kl_likes *kl_differences_add(kl_differences *d, const kl_likes *one)
{
    bool full = d->n >= KINDS_MAX;
    char *mark = kl_sprintf("%d %s %s", one->verdict, one->controller, one->kind);
    kl_likes *l = kl_map_get(d->kinds, mark);
    if (!l && full) {
        kl_free(mark);
        mark = kl_sprintf("%d", one->verdict);
        l = kl_map_get(d->kinds, mark);
    }
    if (!l) {
        l = kl_new(kl_likes);
        *l = (kl_likes){.controller = kl_strdup(one->controller),
            .key = kl_strdup(one->key),
            .kind = kl_strdup(full ? "" : one->kind),
            .text = kl_strdup(one->text),
            .verdict = one->verdict};
        kl_map_set(d->kinds, mark, l);
        d->all = kl_realloc(d->all, (d->n + 1) * sizeof *d->all);
        d->all[d->n++] = l;
    }
    kl_free(mark);
    l->n++;
    return l;
}

kl_likes **kl_differences_sorted(const kl_differences *d)
{
    kl_likes **out = kl_new_array(kl_likes *, d->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        size_t at = n;
        if (!d->all[i]->n)
            continue;
        for (; at && out[at - 1]->n < d->all[i]->n; at--)
            out[at] = out[at - 1];
        out[at] = d->all[i];
        n++;
    }
    return out;
}
