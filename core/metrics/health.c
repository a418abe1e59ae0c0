/* health.c - "ok", or a line per check: [+]name ok, [+]name excluded: ok, [-]name failed: reason
 * (controller-runtime healthz/healthz.go). */
#include "metrics/health.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void kl_checks_add(kl_checks *c, const char *name, const char *why)
{
    c->v = kl_realloc(c->v, (c->n + 1) * sizeof *c->v);
    c->v[c->n].name = kl_strdup(name);
    c->v[c->n++].why = kl_strdup(why);
}

void kl_checks_fini(kl_checks *c)
{
    for (size_t i = 0; i < c->n; i++) {
        kl_free(c->v[i].name);
        kl_free(c->v[i].why);
    }
    kl_free(c->v);
    *c = (kl_checks){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b); /* name is the first member */
}

static void sort(kl_checks *c)
{
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, by_name);
}

static bool has(char *const *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(v[i], name))
            return true;
    return false;
}

static int one_answer(const kl_checks *c, const char *name, kl_buf *out)
{
    for (size_t i = 0; i < c->n; i++) {
        if (strcmp(c->v[i].name, name))
            continue;
        if (!c->v[i].why) {
            kl_buf_puts(out, "ok");
            return 200;
        }
        kl_buf_printf(out, "internal server error: %s\n", c->v[i].why);
        return 500;
    }
    kl_buf_printf(out, "404: there is no check \"%s\"; ?verbose lists them\n", name);
    return 404;
}

static void unknown_excludes(const kl_checks *c, const kl_health_query *q, kl_buf *out)
{
    bool some = false;
    for (size_t i = 0; i < q->n_exclude; i++) {
        bool known = has(q->exclude, i, q->exclude[i]); /* an earlier one is equal */
        for (size_t k = 0; k < c->n && !known; k++)
            known = !strcmp(c->v[k].name, q->exclude[i]);
        if (known)
            continue;
        kl_buf_printf(out, "%s\"%s\"",
            some ? "," : "warn: some health checks cannot be excluded: no matches for ", q->exclude[i]);
        some = true;
    }
    if (some)
        kl_buf_putc(out, '\n');
}

int kl_health_answer(kl_checks *c, const kl_health_query *q, kl_buf *out)
{
    if (q->only && *q->only)
        return one_answer(c, q->only, out);
    bool good = true;
    sort(c);
    for (size_t i = 0; i < c->n; i++)
        good &= !c->v[i].why || has(q->exclude, q->n_exclude, c->v[i].name);
    if (good && !q->verbose) {
        kl_buf_puts(out, "ok");
        return 200;
    }
    for (size_t i = 0; i < c->n; i++) {
        if (has(q->exclude, q->n_exclude, c->v[i].name))
            kl_buf_printf(out, "[+]%s excluded: ok\n", c->v[i].name);
        else if (!c->v[i].why)
            kl_buf_printf(out, "[+]%s ok\n", c->v[i].name);
        else
            kl_buf_printf(
                out, "[-]%s failed: %s\n", c->v[i].name, q->reasons ? c->v[i].why : "reason withheld");
    }
    unknown_excludes(c, q, out);
    kl_buf_puts(out, good ? "healthz check passed" : "healthz check failed\n");
    return good ? 200 : 500;
}

char *kl_health_failures(kl_checks *c)
{
    kl_buf out = KL_BUF_INIT;
    sort(c);
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].why)
            kl_buf_printf(&out, "%s%s: %s", out.len ? "; " : "", c->v[i].name, c->v[i].why);
    return out.len ? kl_buf_take(&out) : NULL;
}
