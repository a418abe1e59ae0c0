/* samples.h - what predictors of peaks share: the usage of a machine's pods, rings of the last samples,
 * histograms of shares, and histograms that fade.
 *
 * Each belongs to its caller; no function fails or waits. One thread at a time. */
#ifndef KL_SIM_SAMPLES_H
#define KL_SIM_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A number from a roughly normal distribution (mean 0, deviation 1, within -3 and 3) that depends on three
 * integers only. */
double kl_dice_normal(uint64_t seed, uint64_t a, uint64_t b);

/* The cpu that each pod of a machine uses at each step, in milli-cores. */
typedef struct kl_usage {
    size_t pods, steps;
    double *x;      /* x[t * pods + p] */
    double *limits; /* of each pod */
} kl_usage;

kl_usage *kl_usage_new(size_t pods, size_t steps); /* all zero */
void kl_usage_free(kl_usage *u);
/* Pod p uses, at each step, its limit times (the step's level times factor, plus noise), and at least a
 * hundredth of its limit. */
void kl_usage_demand(kl_usage *u, size_t p, const double *levels, double factor, double noise, uint64_t seed);
/* Reduces each use to the pod's limit. */
void kl_usage_cap(kl_usage *u);
double kl_usage_total(const kl_usage *u, size_t t);

/* The last n samples of each of k series, with their sums. */
typedef struct kl_window {
    size_t k, n, at, count;               /* at: the place of the next sample; count: at most n */
    double *ring, *sums, *squares, *most; /* ring[at * k + i]; most: of all samples, also those that left */
} kl_window;

kl_window *kl_window_new(size_t k, size_t n);
void kl_window_free(kl_window *w);
void kl_window_add(kl_window *w, const double *x); /* k numbers */
/* The sum over all series of mean + `deviations` sample deviations; `count` must be 2 or more. */
double kl_window_sigma(const kl_window *w, double deviations);
double kl_window_most(const kl_window *w);    /* the sum of the maxima since the start */
double kl_window_highest(const kl_window *w); /* the sum of the maxima of the window */

/* Sums of the last samples of many series, which come and go: a moment is a slot, and a sample replaces the
 * one that the series had in that slot. */
typedef struct kl_sums {
    double *sums;
    size_t n; /* of sums */
    struct kl_moment {
        double *x;
        size_t n;
    } * moments;
    size_t slots;
} kl_sums;

kl_sums *kl_sums_new(void);
void kl_sums_free(kl_sums *s);
/* Returns the new sum. Series and slots are numbered from 0; there are as many as the highest number. */
double kl_sums_add(kl_sums *s, size_t slot, size_t series, double x);
double kl_sums_get(const kl_sums *s, size_t series);

/* Histograms, in hundredths, of the shares of their limits that k series used in the last n samples. */
typedef struct kl_shares {
    size_t k, n, at, count;
    double *limits;
    uint8_t *ring;    /* ring[at * k + i]: a bucket */
    uint32_t *counts; /* counts[i * 101 + bucket] */
} kl_shares;

kl_shares *kl_shares_new(const double *limits, size_t k, size_t n);
void kl_shares_free(kl_shares *s);
void kl_shares_add(kl_shares *s, const double *x);
/* The sum over all series of the share at percentile q (0 to 1), times the limit. */
double kl_shares_percentile(const kl_shares *s, double q);

/* A histogram over buckets that grow by a twentieth, in which a sample loses half of its weight in each
 * half-life. */
typedef struct kl_fading {
    double half_life; /* in samples */
    double now, total;
    size_t last; /* the highest bucket that has a weight */
    double weights[1024];
} kl_fading;

kl_fading *kl_fading_new(double half_life);
void kl_fading_free(kl_fading *f);
void kl_fading_add(kl_fading *f, double x);
/* The upper bound of the bucket at percentile q; 0 without samples. */
double kl_fading_percentile(const kl_fading *f, double q);

#endif
