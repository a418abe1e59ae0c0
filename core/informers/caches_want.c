/* caches_want.c - the selections of users: copies, comparisons, and texts. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/texts.h"
#include "informers/caches_impl.h"

/* Whether the namespaces are a selection; the only namespace of the set is none. */
static bool says_namespaces(const kl_caches *s, char *const *names)
{
    return names && *names && !(s->o.ns && !names[1] && !strcmp(names[0], s->o.ns));
}

static char *text_copy(const char *text) { return text && *text ? kl_strdup(text) : NULL; }

void kl__scope_init(kl__scope *out, const kl_caches *s, const kl_want *w)
{
    *out = (kl__scope){.keep = kl_projection_ref(w && w->cut ? w->keep : s->usual)};
    if (!w)
        return;
    out->metadata = w->metadata;
    out->divided = w->divided;
    out->namespaces = says_namespaces(s, w->namespaces) ? kl_texts_copy(w->namespaces) : NULL;
    out->labels = text_copy(w->labels);
    out->fields = text_copy(w->fields);
}

static void say(kl_buf *b, const char *what, const char *more)
{
    kl_buf_printf(b, "%s%s%s", b->len ? "; " : "", what, more ? more : "");
}

char *kl__scope_label(const kl__scope *c, const kl_caches *s, const char *kind, const char *what)
{
    kl_buf b = KL_BUF_INIT;
    if (what && !kl_projection_equal(c->keep, s->usual))
        say(&b, what, NULL);
    if (c->metadata)
        say(&b, "metadata", NULL);
    if (c->labels)
        say(&b, "labels ", c->labels);
    if (c->fields)
        say(&b, "fields ", c->fields);
    if (c->divided && !c->namespaces)
        say(&b, "this replica's namespaces", NULL);
    for (char **n = c->namespaces; n && *n; n++) {
        if (n == c->namespaces)
            say(&b, c->divided ? "this replica's of namespaces " : n[1] ? "namespaces " : "namespace ", *n);
        else
            kl_buf_printf(&b, ", %s", *n);
    }
    char *label = b.len ? kl_sprintf("%s (%s)", kind, kl_buf_str(&b)) : kl_strdup(kind);
    kl_buf_fini(&b);
    return label;
}
