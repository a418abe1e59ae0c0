/* spec_diff.c - two specs side by side, field by field. */
#include "controller/spec_diff.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "model/time.h"
#include "run/params.h"

static void say(kl_buf *out, size_t start, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void say(kl_buf *out, size_t start, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_buf_printf(out, "%s%s", out->len > start ? ", " : "", text);
    kl_free(text);
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

/* --- single values ------------------------------------------------------------------------ */

static void diff_text(kl_buf *out, size_t start, const char *what, const char *a, const char *b)
{
    if (!same_text(a, b))
        say(out, start, "%s %s -> %s", what, a ? a : "none", b ? b : "none");
}

static void diff_count(kl_buf *out, size_t start, const char *what, long long a, long long b)
{
    char x[24] = "default", y[24] = "default";
    if (a == b)
        return;
    if (a)
        snprintf(x, sizeof x, "%lld", a);
    if (b)
        snprintf(y, sizeof y, "%lld", b);
    say(out, start, "%s %s -> %s", what, x, y);
}

static void diff_time(kl_buf *out, size_t start, const char *what, kl_time a, kl_time b)
{
    char x[KL_DURATION_MAX] = "default", y[KL_DURATION_MAX] = "default";
    if (a == b)
        return;
    if (a)
        kl_duration_format(a, x);
    if (b)
        kl_duration_format(b, y);
    say(out, start, "%s %s -> %s", what, x, y);
}

static bool same_texts(char **a, char **b)
{
    size_t i = 0;
    while (a && b && a[i] && b[i] && !strcmp(a[i], b[i]))
        i++;
    return (!a || !a[i]) && (!b || !b[i]);
}

static bool has(char **v, const char *text)
{
    for (char **s = v; s && *s; s++)
        if (!strcmp(*s, text))
            return true;
    return false;
}

static void diff_texts(kl_buf *out, size_t start, const char *what, char **a, char **b)
{
    for (char **s = b; s && *s; s++)
        if (!has(a, *s))
            say(out, start, "new %s %s", what, *s);
    for (char **s = a; s && *s; s++)
        if (!has(b, *s))
            say(out, start, "no %s %s", what, *s);
}

/* Functions are only compared by presence: their behaviour is in the source. */
static bool same_when(const kl_when *a, const kl_when *b)
{
    return same_texts(a->words, b->words) && !a->fn == !b->fn && !a->selector == !b->selector;
}

static bool same_text_of(const kl_text_of *a, const kl_text_of *b)
{
    return same_text(a->path ? kl_path_text(a->path) : NULL, b->path ? kl_path_text(b->path) : NULL)
        && !a->fn == !b->fn;
}

/* --- what it looks at --------------------------------------------------------------------- */

/* The i-th kind that the spec needs a cache of; NULL beyond the last. */
static const char *kind_at(const kl_controller_spec *s, size_t i)
{
    if (!i--)
        return s->resource;
    if (i < s->n_watches)
        return s->watches[i].kind;
    i -= s->n_watches;
    if (i < s->n_owns)
        return s->owns[i].kind;
    i -= s->n_owns;
    for (char **k = s->reads; k && *k; k++)
        if (!i--)
            return *k;
    return NULL;
}

/* Whether one of the first `n` kinds is `kind`. */
static bool needs(const kl_controller_spec *s, const char *kind, size_t n)
{
    const char *k;
    for (size_t i = 0; i < n && (k = kind_at(s, i)); i++)
        if (!strcmp(k, kind))
            return true;
    return false;
}

static void diff_kinds(kl_buf *out, size_t start, const kl_controller_spec *a, const kl_controller_spec *b)
{
    const char *k;
    for (size_t i = 0; (k = kind_at(b, i)); i++)
        if (!needs(a, k, SIZE_MAX) && !needs(b, k, i))
            say(out, start, "new informer %s", k);
    for (size_t i = 0; (k = kind_at(a, i)); i++)
        if (!needs(b, k, SIZE_MAX) && !needs(a, k, i))
            say(out, start, "no informer %s", k);
}

static const kl_watch_spec *watch_of(const kl_controller_spec *s, const char *kind)
{
    for (size_t i = 0; i < s->n_watches; i++)
        if (!strcmp(s->watches[i].kind, kind))
            return &s->watches[i];
    return NULL;
}

static void diff_watches(kl_buf *out, size_t start, const kl_controller_spec *a, const kl_controller_spec *b)
{
    for (size_t i = 0; i < b->n_watches; i++) {
        const kl_watch_spec *now = &b->watches[i], *was = watch_of(a, now->kind);
        if (!was)
            say(out, start, "watches %s", now->kind);
        else if (was->how != now->how || !same_text(was->via, now->via) || !same_when(&was->when, &now->when))
            say(out, start, "watch of %s changed", now->kind);
    }
    for (size_t i = 0; i < a->n_watches; i++)
        if (!watch_of(b, a->watches[i].kind))
            say(out, start, "watches %s no more", a->watches[i].kind);
}

static const kl_index_spec *index_of(const kl_controller_spec *s, const kl_index_spec *x)
{
    for (size_t i = 0; i < s->n_indexes; i++)
        if (!strcmp(s->indexes[i].name, x->name) && !strcmp(s->indexes[i].kind, x->kind))
            return &s->indexes[i];
    return NULL;
}

static void diff_indexes(kl_buf *out, size_t start, const kl_controller_spec *a, const kl_controller_spec *b)
{
    for (size_t i = 0; i < b->n_indexes; i++) {
        const kl_index_spec *now = &b->indexes[i], *was = index_of(a, now);
        if (!was)
            say(out, start, "new index %s of %s", now->name, now->kind);
        else if (!same_text(was->path, now->path))
            say(out, start, "index %s changed", now->name);
    }
    for (size_t i = 0; i < a->n_indexes; i++)
        if (!index_of(b, &a->indexes[i]))
            say(out, start, "no index %s", a->indexes[i].name);
}

static void diff_owns(kl_buf *out, size_t start, const kl_controller_spec *a, const kl_controller_spec *b)
{
    for (size_t i = 0; i < b->n_owns; i++) {
        const kl_owned_spec *now = &b->owns[i], *was = kl_controller_spec_owned(a, now->kind);
        if (!was)
            say(out, start, "owns %s", now->kind);
        else if (was->unforced != now->unforced)
            say(out, start, "%s is applied with%s force", now->kind, now->unforced ? "out" : "");
    }
    for (size_t i = 0; i < a->n_owns; i++)
        if (!kl_controller_spec_owned(b, a->owns[i].kind))
            say(out, start, "owns %s no more", a->owns[i].kind);
}

static bool same_fields(const kl_controller_spec *a, const kl_controller_spec *b)
{
    bool same = a->n_fields == b->n_fields;
    for (size_t i = 0; same && i < a->n_fields; i++) {
        const kl_fields_spec *f = kl_controller_spec_fields(b, a->fields[i].kind);
        same = f && same_texts(f->paths, a->fields[i].paths);
    }
    return same && a->managed_fields == b->managed_fields;
}

static bool same_selects(const kl_controller_spec *a, const kl_controller_spec *b)
{
    bool same = a->n_selects == b->n_selects;
    for (size_t i = 0; same && i < a->n_selects; i++) {
        const kl_select_spec *x = &a->selects[i];
        const char *labels, *fields;
        kl_controller_spec_select(b, x->kind, &labels, &fields);
        same = !strcmp(x->labels ? x->labels : "", labels ? labels : "")
            && !strcmp(x->fields ? x->fields : "", fields ? fields : "")
            && same_texts(
                kl_controller_spec_namespaces(a, x->kind), kl_controller_spec_namespaces(b, x->kind));
    }
    return same;
}

/* --- all of it ---------------------------------------------------------------------------- */

void kl_spec_diff_controller(const kl_controller_spec *a, const kl_controller_spec *b, kl_buf *out)
{
    size_t start = out->len;
    diff_text(out, start, "resource", a->resource, b->resource);
    diff_texts(out, start, "namespace", a->namespaces, b->namespaces);
    diff_text(out, start, "labels", a->select_labels, b->select_labels);
    diff_text(out, start, "fields", a->select_fields, b->select_fields);
    if (!same_selects(a, b))
        say(out, start, "selectors of other kinds changed");
    if (!same_when(&a->when, &b->when))
        say(out, start, "`when` changed");
    diff_kinds(out, start, a, b);
    diff_watches(out, start, a, b);
    diff_owns(out, start, a, b);
    diff_indexes(out, start, a, b);
    diff_texts(out, start, "metadata of", a->metadata_only, b->metadata_only);
    if (!same_fields(a, b))
        say(out, start, "kept fields changed");
    diff_count(out, start, "workers", a->workers, b->workers);
    diff_count(out, start, "concurrency", a->concurrency, b->concurrency);
    diff_time(out, start, "timeout", a->timeout, b->timeout);
    diff_time(out, start, "cpu", a->cpu, b->cpu);
    diff_count(out, start, "memory", (long long)a->memory, (long long)b->memory);
    diff_time(out, start, "resync", a->resync, b->resync);
    diff_time(out, start, "every", a->every, b->every);
    diff_texts(out, start, "cron", a->cron, b->cron);
    if (a->priority != b->priority || !same_text_of(&a->priority_of, &b->priority_of))
        say(out, start, "priority changed");
    if (!same_text_of(&a->serial, &b->serial))
        say(out, start, "`serial` changed");
    if (a->backoff.base != b->backoff.base || a->backoff.max != b->backoff.max
        || a->backoff.jitter != b->backoff.jitter)
        say(out, start, "backoff changed");
    diff_count(out, start, "give_up", a->give_up, b->give_up);
    diff_time(out, start, "own_writes", a->own_writes, b->own_writes);
    diff_text(out, start, "finalizer", a->finalizer, b->finalizer);
    if (a->lead != b->lead || a->lead_said != b->lead_said)
        say(out, start, "leader changed");
    if (a->shard != b->shard)
        say(out, start, "shard changed");
    if (!kl_value_equal(kl_params_of(a), kl_params_of(b)))
        say(out, start, "params changed");
}

static const kl_controller_spec *named(const kl_program *p, const char *name)
{
    for (size_t i = 0; i < p->n_specs; i++)
        if (!strcmp(p->specs[i].name, name))
            return &p->specs[i];
    return NULL;
}

static void separate(kl_buf *out, size_t start) { kl_buf_puts(out, out->len > start ? "; " : ""); }

void kl_spec_diff(const kl_program *old, const kl_program *now, kl_buf *out)
{
    size_t start = out->len;
    for (size_t i = 0; i < now->n_specs; i++) {
        const kl_controller_spec *b = &now->specs[i], *a = named(old, b->name);
        kl_buf words = KL_BUF_INIT;
        if (a)
            kl_spec_diff_controller(a, b, &words);
        if (!a || words.len)
            separate(out, start);
        if (!a)
            kl_buf_printf(out, "new controller %s", b->name);
        else if (words.len)
            kl_buf_printf(out, "%s: %s", b->name, kl_buf_str(&words));
        kl_buf_fini(&words);
    }
    for (size_t i = 0; i < old->n_specs; i++)
        if (!named(now, old->specs[i].name)) {
            separate(out, start);
            kl_buf_printf(out, "no controller %s any more", old->specs[i].name);
        }
}
