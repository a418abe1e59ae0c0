/* samples.c - usage, rings and histograms that predictors share. The order of every sum is fixed, so the same
 * samples give the same bits. */
#include "sim/samples.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* --- usage -------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double kl_dice_normal(uint64_t seed, uint64_t a, uint64_t b)
{
    const uint64_t step = 0x9e3779b97f4a7c15u;
    uint64_t z = mix(mix(seed * step + a) * step + b);
    /* the sum of four uniform 16-bit numbers has the standard deviation sqrt(4 / 12) */
    uint64_t sum = (z & 0xffff) + (z >> 16 & 0xffff) + (z >> 32 & 0xffff) + (z >> 48 & 0xffff);
    return ((double)sum * 0x1p-16 - 2) * 1.7320508;
}

kl_usage *kl_usage_new(size_t pods, size_t steps)
{
    kl_usage *u = kl_new(kl_usage);
    u->pods = pods;
    u->steps = steps;
    u->limits = kl_new_array(double, pods);
    u->x = kl_zalloc_array(pods * sizeof *u->x, steps);
    return u;
}

void kl_usage_free(kl_usage *u)
{
    if (!u)
        return;
    kl_free(u->limits);
    kl_free(u->x);
    kl_free(u);
}

/* Of dice.lua: the number of the question "how much does this pod differ at this step". */
enum { QUESTION_NOISE = 3 };

void kl_usage_demand(kl_usage *u, size_t p, const double *levels, double factor, double noise, uint64_t seed)
{
    for (size_t t = 0; t < u->steps; t++) {
        double share = levels[t] * factor + noise * kl_dice_normal(seed, t, QUESTION_NOISE);
        u->x[t * u->pods + p] = u->limits[p] * (share > 0.01 ? share : 0.01);
    }
}

void kl_usage_cap(kl_usage *u)
{
    for (size_t t = 0; t < u->steps; t++)
        for (size_t p = 0; p < u->pods; p++) {
            double *x = &u->x[t * u->pods + p];
            *x = *x < u->limits[p] ? *x : u->limits[p];
        }
}

double kl_usage_total(const kl_usage *u, size_t t)
{
    double total = 0;
    for (size_t p = 0; p < u->pods; p++)
        total += u->x[t * u->pods + p];
    return total;
}

/* --- windows ------------------------------------------------------------------------------ */

kl_window *kl_window_new(size_t k, size_t n)
{
    kl_window *w = kl_new(kl_window);
    w->k = k;
    w->n = n;
    w->ring = kl_zalloc_array(k * sizeof *w->ring, n);
    w->sums = kl_new_array(double, k);
    w->squares = kl_new_array(double, k);
    w->most = kl_new_array(double, k);
    return w;
}

void kl_window_free(kl_window *w)
{
    if (!w)
        return;
    kl_free(w->ring);
    kl_free(w->sums);
    kl_free(w->squares);
    kl_free(w->most);
    kl_free(w);
}

void kl_window_add(kl_window *w, const double *x)
{
    double *out = w->ring + w->at * w->k; /* 0 in a ring that is not full yet */
    for (size_t i = 0; i < w->k; i++) {
        w->sums[i] = w->sums[i] - out[i] + x[i];
        w->squares[i] = w->squares[i] - out[i] * out[i] + x[i] * x[i];
        w->most[i] = x[i] > w->most[i] ? x[i] : w->most[i];
        out[i] = x[i];
    }
    w->at = (w->at + 1) % w->n;
    w->count += w->count < w->n;
}

double kl_window_sigma(const kl_window *w, double deviations)
{
    double sum = 0, n = (double)w->count;
    for (size_t i = 0; i < w->k; i++) {
        double mean = w->sums[i] / n, square = (w->squares[i] - w->sums[i] * mean) / (n - 1);
        sum += mean + deviations * sqrt(square > 0 ? square : 0);
    }
    return sum;
}

double kl_window_most(const kl_window *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->k; i++)
        sum += w->most[i];
    return sum;
}

double kl_window_highest(const kl_window *w)
{
    double sum = 0;
    for (size_t i = 0; i < w->k; i++) {
        double most = 0;
        for (size_t t = 0; t < w->count; t++)
            most = w->ring[t * w->k + i] > most ? w->ring[t * w->k + i] : most;
        sum += most;
    }
    return sum;
}

/* --- sums of moments ---------------------------------------------------------------------- */

kl_sums *kl_sums_new(void) { return kl_new(kl_sums); }

void kl_sums_free(kl_sums *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->slots; i++)
        kl_free(s->moments[i].x);
    kl_free(s->moments);
    kl_free(s->sums);
    kl_free(s);
}

/* Makes room for number i; new ones are 0. */
static void reach(double **x, size_t *n, size_t i)
{
    if (i < *n)
        return;
    size_t now = i < 8 ? 16 : 2 * i;
    *x = kl_realloc(*x, now * sizeof **x);
    memset(*x + *n, 0, (now - *n) * sizeof **x);
    *n = now;
}

double kl_sums_add(kl_sums *s, size_t slot, size_t series, double x)
{
    if (slot >= s->slots) {
        s->moments = kl_realloc(s->moments, (slot + 1) * sizeof *s->moments);
        memset(s->moments + s->slots, 0, (slot + 1 - s->slots) * sizeof *s->moments);
        s->slots = slot + 1;
    }
    reach(&s->moments[slot].x, &s->moments[slot].n, series);
    reach(&s->sums, &s->n, series);
    double *old = &s->moments[slot].x[series];
    s->sums[series] = s->sums[series] + x - *old;
    *old = x;
    return s->sums[series];
}

double kl_sums_get(const kl_sums *s, size_t series) { return series < s->n ? s->sums[series] : 0; }

/* --- histograms of shares ----------------------------------------------------------------- */

enum { SHARES = 100, BUCKETS = SHARES + 1 };

kl_shares *kl_shares_new(const double *limits, size_t k, size_t n)
{
    kl_shares *s = kl_new(kl_shares);
    s->k = k;
    s->n = n;
    s->limits = kl_new_array(double, k);
    memcpy(s->limits, limits, k * sizeof *limits);
    s->ring = kl_zalloc_array(k, n);
    s->counts = kl_zalloc_array(BUCKETS * sizeof *s->counts, k);
    return s;
}

void kl_shares_free(kl_shares *s)
{
    if (!s)
        return;
    kl_free(s->limits);
    kl_free(s->ring);
    kl_free(s->counts);
    kl_free(s);
}

void kl_shares_add(kl_shares *s, const double *x)
{
    uint8_t *out = s->ring + s->at * s->k;
    for (size_t i = 0; i < s->k; i++) {
        uint32_t *counts = s->counts + i * BUCKETS;
        double hundredth = ceil(x[i] / s->limits[i] * SHARES);
        uint8_t bucket = !(hundredth > 0) ? 0 : hundredth < SHARES ? (uint8_t)hundredth : SHARES;
        if (s->count == s->n)
            counts[out[i]]--;
        counts[bucket]++;
        out[i] = bucket;
    }
    s->at = (s->at + 1) % s->n;
    s->count += s->count < s->n;
}

double kl_shares_percentile(const kl_shares *s, double q)
{
    double sum = 0, wanted = q * (double)s->count;
    for (size_t i = 0; i < s->k; i++) {
        const uint32_t *counts = s->counts + i * BUCKETS;
        size_t bucket = SHARES, below = s->count - counts[SHARES]; /* below: samples in lower buckets */
        while (bucket > 0 && (double)below >= wanted)
            below -= counts[--bucket];
        sum += (double)bucket / SHARES * s->limits[i];
    }
    return sum;
}

/* --- histograms that fade ----------------------------------------------------------------- */

static const double FIRST = 25, RATIO = 1.05; /* the first bucket in milli-cores; the growth of the others */

kl_fading *kl_fading_new(double half_life)
{
    kl_fading *f = kl_new(kl_fading);
    f->half_life = half_life;
    return f;
}

void kl_fading_free(kl_fading *f) { kl_free(f); }

/* Older samples keep their weights, and newer ones weigh more: only the proportion counts. */
void kl_fading_add(kl_fading *f, double x)
{
    const size_t last = sizeof f->weights / sizeof *f->weights - 1;
    f->now += 1;
    double weight = pow(2, f->now / f->half_life);
    double at = x < FIRST ? 0 : floor(log(x * (RATIO - 1) / FIRST + 1) / log(RATIO));
    size_t bucket = at < (double)last ? (size_t)at : last;
    f->weights[bucket] += weight;
    f->total += weight;
    f->last = bucket > f->last ? bucket : f->last;
}

double kl_fading_percentile(const kl_fading *f, double q)
{
    double seen = 0, wanted = q * f->total;
    size_t k = 0;
    if (f->total == 0)
        return 0;
    for (seen = f->weights[0]; k < f->last && seen < wanted; seen += f->weights[k])
        k++;
    return FIRST * (pow(RATIO, (double)k + 1) - 1) / (RATIO - 1);
}
