/* custom.c - families by name, series by the text of their labels, under one lock, which is a leaf. */
#include "metrics/custom.h"

#include <math.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "metrics/metrics.h"

/* The approximate length of a sample without its labels; names have at most 200 characters
 * (lua/kubelua/metrics.lua). */
#define SAMPLE_TEXT 100

typedef struct series {
    double value;  /* a histogram's sum */
    uint64_t n;    /* of a histogram: the number of observations */
    uint64_t in[]; /* one for each bucket, not cumulative; larger values count only in n */
} series;

typedef struct family {
    const kl_value *form; /* {type, labels, buckets}: another form is another family */
    char *help;
    kl_map *owners; /* names of scripts; the values are not used */
    kl_map *series; /* by the text of their labels: `a="1",b="2"` */
    double *le;
    size_t n_le, most;
    size_t text; /* the approximate length of its series in /metrics */
    uint64_t dropped;
} family;

struct kl_custom_metrics {
    kl_mutex mu;
    kl_map *families KL_GUARDED_BY(mu);
};

kl_custom_metrics *kl_custom_metrics_new(void)
{
    kl_custom_metrics *m = kl_new(kl_custom_metrics);
    kl_mutex_init(&m->mu);
    m->families = kl_map_new();
    return m;
}

static void family_free(void *p)
{
    family *f = p;
    if (!f)
        return;
    kl_value_unref(f->form);
    kl_free(f->help);
    kl_map_free(f->owners, NULL);
    kl_map_free(f->series, kl_free);
    kl_free(f->le);
    kl_free(f);
}

void kl_custom_metrics_free(kl_custom_metrics *m)
{
    if (!m)
        return;
    kl_map_free(m->families, family_free);
    kl_mutex_fini(&m->mu);
    kl_free(m);
}

/* --- declaring ---------------------------------------------------------------------------- */

static const char *type_of(const family *f) { return kl_value_str_at(f->form, "type", NULL); }
static const kl_value *labels_of(const family *f) { return kl_value_get(f->form, "labels"); }
static bool is(const family *f, const char *type) { return !strcmp(type_of(f), type); }

static const kl_value *form_of(const kl_value *declared)
{
    const kl_value *form = NULL;
    static const char *const parts[] = {"type", "labels", "buckets"};
    for (size_t i = 0; i < 3; i++) {
        const kl_value *was = form;
        form = kl_value_with(was, parts[i], kl_value_get(declared, parts[i]));
        kl_value_unref(was);
    }
    return form;
}

/* The approximate length of a series in /metrics: its labels stand in each of its lines. */
static size_t text_of(const family *f, const char *labels)
{
    size_t lines = is(f, "histogram") ? f->n_le + 3 : 1;
    return lines * (strlen(labels) + SAMPLE_TEXT);
}

static series *series_new(family *f, const char *labels)
{
    f->text += text_of(f, labels);
    series *s = kl_alloc(sizeof *s + f->n_le * sizeof *s->in);
    memset(s, 0, sizeof *s + f->n_le * sizeof *s->in);
    kl_map_set(f->series, labels, s);
    return s;
}

/* Takes the form. A family without labels gets its series at once, at zero. */
static family *family_new(const kl_value *form)
{
    family *f = kl_new(family);
    const kl_value *buckets = kl_value_get(form, "buckets");
    f->form = form;
    f->owners = kl_map_new();
    f->series = kl_map_new();
    f->n_le = kl_value_len(buckets);
    f->le = kl_new_array(double, f->n_le + 1);
    for (size_t i = 0; i < f->n_le; i++)
        f->le[i] = kl_value_double(kl_value_item(buckets, i), 0);
    if (!kl_value_len(labels_of(f)))
        (void)series_new(f, "");
    return f;
}

static const char *other_owner(const family *f, const char *script)
{
    const char *owner;
    void *value;
    for (size_t it = 0; kl_map_next(f->owners, &it, &owner, &value);)
        if (strcmp(owner, script) != 0)
            return owner;
    return NULL;
}

/* Whether a histogram writes samples of this name. */
static bool has_sample(const char *histogram, const char *name)
{
    size_t n = strlen(histogram);
    if (strncmp(name, histogram, n) != 0)
        return false;
    return !strcmp(name + n, "_bucket") || !strcmp(name + n, "_sum") || !strcmp(name + n, "_count");
}

/* Fails if samples of the metric and of one that another script declares would have the same name. */
static kl_status check_samples_locked(kl_custom_metrics *m, const char *script, const char *name,
    const kl_value *declared, kl_err *err) KL_REQUIRES(m->mu)
{
    bool histogram = !strcmp(kl_value_str_at(declared, "type", NULL), "histogram");
    const char *rival, *other;
    void *value;
    for (size_t it = 0; kl_map_next(m->families, &it, &rival, &value);) {
        const family *f = value;
        bool clash = (histogram && has_sample(name, rival))
            || (is(f, "histogram") && has_sample(rival, name));
        if (clash && (other = other_owner(f, script)))
            return kl_fail(err, KL_EEXISTS,
                "%s: the metric %s and the %s %s of %s would have samples of the same name: rename this one",
                script, name, type_of(f), rival, other);
    }
    return KL_OK;
}

static kl_status check_locked(kl_custom_metrics *m, const char *script, const kl_value *declared, kl_err *err)
    KL_REQUIRES(m->mu)
{
    for (size_t i = 0; i < kl_value_len(declared); i++) {
        const char *name, *other;
        const kl_value *d = kl_value_member(declared, i, &name, NULL);
        const family *f = kl_map_get(m->families, name);
        kl_status st = check_samples_locked(m, script, name, d, err);
        if (st)
            return st;
        if (!f || !(other = other_owner(f, script)))
            continue;
        const kl_value *form = form_of(d);
        bool same = kl_value_equal(form, f->form);
        kl_value_unref(form);
        if (!same)
            return kl_fail(err, KL_EEXISTS,
                "%s: %s declares the metric %s as a %s in another form: rename this one", script, other, name,
                type_of(f));
    }
    return KL_OK;
}

static void take_locked(kl_custom_metrics *m, const char *script, const char *name, const kl_value *d)
    KL_REQUIRES(m->mu)
{
    const kl_value *form = form_of(d);
    family *f = kl_map_get(m->families, name);
    if (f && kl_value_equal(form, f->form))
        kl_value_unref(form);
    else
        family_free(kl_map_set(m->families, name, f = family_new(form)));
    kl_map_set(f->owners, script, f);
    kl_free(f->help);
    f->help = kl_strdup(kl_value_str_at(d, "help", NULL));
    f->most = (size_t)kl_value_int_at(d, KL_SERIES_MAX, "series", NULL);
}

static void leave_locked(kl_custom_metrics *m, const char *script, const kl_value *declared)
    KL_REQUIRES(m->mu)
{
    char **names = kl_map_sorted_keys(m->families);
    for (char **name = names; *name; name++) {
        family *f = kl_map_get(m->families, *name);
        if (kl_value_get(declared, *name) || !kl_map_take(f->owners, script) || kl_map_len(f->owners))
            continue;
        family_free(kl_map_take(m->families, *name));
    }
    kl_free(names);
}

kl_status kl_custom_metrics_declare(
    kl_custom_metrics *m, const char *script, const kl_value *declared, kl_err *err)
{
    kl_lock(&m->mu);
    kl_status st = check_locked(m, script, declared, err);
    if (!st) {
        leave_locked(m, script, declared);
        for (size_t i = 0; i < kl_value_len(declared); i++) {
            const char *name;
            const kl_value *d = kl_value_member(declared, i, &name, NULL);
            take_locked(m, script, name, d);
        }
    }
    kl_unlock(&m->mu);
    return st;
}

/* --- counting ----------------------------------------------------------------------------- */

typedef enum fit { FIT, FIT_NOT, FIT_LONG } fit;

/* Writes the text of the labels. FIT_NOT: they are not the family's. FIT_LONG: stops early, since the caller
 * holds the lock. */
static fit label_text(const family *f, const kl_value *values, kl_buf *out)
{
    const kl_value *names = labels_of(f);
    size_t n = kl_value_len(names), len;
    if (kl_value_len(values) != n)
        return FIT_NOT;
    for (size_t i = 0; i < n; i++) {
        const char *name = kl_value_str(kl_value_item(names, i)),
                   *value = kl_value_strn(kl_value_get(values, name), &len);
        if (!value)
            return FIT_NOT;
        if (len > KL_LABELS_BYTES_MAX)
            return FIT_LONG;
        kl_metrics_label(out, i == 0, name, value);
        if (out->len > KL_LABELS_BYTES_MAX)
            return FIT_LONG;
    }
    return FIT;
}

static bool fits(const family *f, kl_figure_act act)
{
    switch (act) {
    case KL_FIGURE_ADD: return !is(f, "histogram");
    case KL_FIGURE_SET:
    case KL_FIGURE_FORGET: return is(f, "gauge");
    default: return is(f, "histogram");
    }
}

static void observe(const family *f, series *s, double x)
{
    size_t i = 0;
    while (i < f->n_le && x > f->le[i])
        i++;
    if (i < f->n_le)
        s->in[i]++;
    s->value += x;
    s->n++;
}

/* Whether there is no room for one more series: in the family, or in the metrics of a script that declared
 * it. */
static bool full_locked(kl_custom_metrics *m, const family *f, const char *labels) KL_REQUIRES(m->mu)
{
    const char *script, *name;
    void *value;
    for (size_t at = 0; kl_map_next(f->owners, &at, &script, &value);) {
        size_t text = text_of(f, labels);
        for (size_t it = 0; kl_map_next(m->families, &it, &name, &value);)
            if (kl_map_has(((family *)value)->owners, script))
                text += ((family *)value)->text;
        if (text > KL_SERIES_TEXT_MAX)
            return true;
    }
    return kl_map_len(f->series) >= f->most;
}

/* Records a figure. True: this is the first series that the family drops. */
static bool record_locked(kl_custom_metrics *m, family *f, const kl_figure *figure, const char *labels)
    KL_REQUIRES(m->mu)
{
    series *s = kl_map_get(f->series, labels);
    if (figure->act == KL_FIGURE_FORGET) {
        if (s)
            f->text -= text_of(f, labels);
        kl_free(kl_map_take(f->series, labels));
        return false;
    }
    if (!s && full_locked(m, f, labels))
        return !f->dropped++;
    if (!s)
        s = series_new(f, labels);
    if (figure->act == KL_FIGURE_OBSERVE)
        observe(f, s, figure->by);
    else if (figure->act == KL_FIGURE_SET)
        s->value = figure->by;
    else if (figure->by > 0 || is(f, "gauge"))
        s->value += figure->by;
    return false;
}

void kl_custom_metrics_record(kl_custom_metrics *m, const kl_figure *figure)
{
    kl_buf labels = KL_BUF_INIT;
    bool full = false;
    if (!isfinite(figure->by))
        return;
    kl_lock(&m->mu);
    family *f = kl_map_get(m->families, figure->name);
    if (f && fits(f, figure->act)) {
        fit labelled = label_text(f, figure->labels, &labels);
        if (labelled == FIT)
            full = record_locked(m, f, figure, kl_buf_str(&labels));
        else if (labelled == FIT_LONG)
            full = !f->dropped++;
    }
    size_t most = f ? f->most : 0;
    kl_unlock(&m->mu);
    kl_buf_fini(&labels);
    if (full)
        kl_warn("a metric has reached its limit of series, its labels are too long, or its script's metrics "
                "fill 32 MiB: further series are dropped",
            "metric=%s series=%zu", figure->name, most);
}

bool kl_custom_metrics_get(kl_custom_metrics *m, const kl_figure *figure, double *value, uint64_t *n)
{
    kl_buf labels = KL_BUF_INIT;
    kl_lock(&m->mu);
    family *f = kl_map_get(m->families, figure->name);
    const series *s = f && label_text(f, figure->labels, &labels) == FIT
        ? kl_map_get(f->series, kl_buf_str(&labels))
        : NULL;
    if (s)
        *value = s->value;
    if (s && n)
        *n = s->n;
    kl_unlock(&m->mu);
    kl_buf_fini(&labels);
    return s;
}

/* --- telling ------------------------------------------------------------------------------ */

static void sample(kl_buf *out, const char *name, const char *suffix, const char *labels, double v)
{
    kl_buf_printf(out, "%s%s%s%s ", name, suffix, labels, *labels ? "}" : "");
    kl_metrics_number(out, v);
    kl_buf_putc(out, '\n');
}

static void write_histogram(
    kl_buf *out, const char *name, const family *f, const char *labels, const series *s)
{
    uint64_t total = 0;
    char le[32];
    for (size_t i = 0; i <= f->n_le; i++) {
        total = i < f->n_le ? total + s->in[i] : s->n;
        kl_metrics_bound(i < f->n_le ? f->le[i] : INFINITY, le);
        kl_buf_printf(out, "%s_bucket%s%cle=\"%s\"} ", name, labels, *labels ? ',' : '{', le);
        kl_metrics_number(out, (double)total);
        kl_buf_putc(out, '\n');
    }
    sample(out, name, "_sum", labels, s->value);
    sample(out, name, "_count", labels, (double)s->n);
}

static void write_family(kl_buf *out, const char *name, const family *f)
{
    kl_metrics_head(out, name, type_of(f), f->help);
    char **labels = kl_map_sorted_keys(f->series);
    for (char **l = labels; *l; l++) {
        const series *s = kl_map_get(f->series, *l);
        if (is(f, "histogram"))
            write_histogram(out, name, f, *l, s);
        else
            sample(out, name, "", *l, s->value);
    }
    kl_free(labels);
}

void kl_custom_metrics_write(kl_custom_metrics *m, kl_buf *out)
{
    kl_lock(&m->mu);
    char **names = kl_map_sorted_keys(m->families);
    for (char **name = names; *name; name++)
        write_family(out, *name, kl_map_get(m->families, *name));
    if (*names)
        kl_metrics_head(out, "kubelua_custom_metric_dropped_total", "counter",
            "Total number of samples of scripts that were dropped because their metric has as many series as "
            "it may");
    for (char **name = names; *name; name++)
        kl_metrics_sample(out, "kubelua_custom_metric_dropped_total",
            (double)((family *)kl_map_get(m->families, *name))->dropped, "metric", *name, NULL);
    kl_free(names);
    kl_unlock(&m->mu);
}

static void show_family(kl_builder *b, const char *name, const family *f, size_t most)
{
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "type", type_of(f));
    kl_build_kstr(b, "help", f->help);
    kl_build_kint(b, "total", (int64_t)kl_map_len(f->series));
    kl_build_kint(b, "dropped", (int64_t)f->dropped);
    kl_build_key(b, "series");
    kl_build_array(b);
    char **labels = kl_map_sorted_keys(f->series);
    for (char **l = labels; *l && most; l++, most--) {
        const series *s = kl_map_get(f->series, *l);
        kl_build_object(b);
        kl_build_kstr(b, "labels", **l ? *l + 1 : "");
        kl_build_key(b, "value");
        kl_build_double(b, s->value);
        if (is(f, "histogram"))
            kl_build_kint(b, "count", (int64_t)s->n);
        kl_build_end(b);
    }
    kl_free(labels);
    kl_build_end(b);
}

void kl_custom_metrics_show(kl_custom_metrics *m, const char *cluster, size_t most, kl_builder *b)
{
    kl_lock(&m->mu);
    char **names = kl_map_sorted_keys(m->families);
    for (char **name = names; *name; name++) {
        kl_build_object(b);
        kl_build_kstr(b, "cluster", cluster);
        show_family(b, *name, kl_map_get(m->families, *name), most);
        kl_build_end(b);
    }
    kl_free(names);
    kl_unlock(&m->mu);
}
