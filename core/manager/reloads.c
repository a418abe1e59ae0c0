/* reloads.c - a ring of the last reloads, and counts for each script. */
#include "manager/reloads.h"

#include <string.h>

#include "base/mem.h"
#include "base/sync.h"
#include "model/time.h"
#include "metrics/metrics.h"

typedef struct kept {
    char *script, *message;
    kl_reload_result result;
    int generation;
    kl_time wall;
} kept;

#define RESULTS (KL_RELOAD_WITHDRAWN + 1)
typedef struct count {
    char *script;
    uint64_t of[RESULTS];
    bool refused;
} count;

struct kl_reloads {
    kl_mutex mu;
    kept ring[KL_RELOADS_KEPT] KL_GUARDED_BY(mu);
    size_t n KL_GUARDED_BY(mu); /* all noted reloads, also those no longer kept */
    count *counts KL_GUARDED_BY(mu);
    size_t n_counts KL_GUARDED_BY(mu);
};

const char *kl_reload_word(kl_reload_result r)
{
    static const char *const words[] = {"taken", "refused", "rolled_back", "withdrawn"};
    return words[r];
}

kl_reloads *kl_reloads_new(void)
{
    kl_reloads *r = kl_new(kl_reloads);
    kl_mutex_init(&r->mu);
    return r;
}

void kl_reloads_free(kl_reloads *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < KL_RELOADS_KEPT; i++) {
        kl_free(r->ring[i].script);
        kl_free(r->ring[i].message);
    }
    for (size_t i = 0; i < r->n_counts; i++)
        kl_free(r->counts[i].script);
    kl_free(r->counts);
    kl_mutex_fini(&r->mu);
    kl_free(r);
}

static count *count_of(kl_reloads *r, const char *script) KL_REQUIRES(r->mu)
{
    for (size_t i = 0; i < r->n_counts; i++)
        if (!strcmp(r->counts[i].script, script))
            return &r->counts[i];
    r->counts = kl_realloc(r->counts, (r->n_counts + 1) * sizeof *r->counts);
    r->counts[r->n_counts] = (count){.script = kl_strdup(script)};
    return &r->counts[r->n_counts++];
}

void kl_reloads_note(kl_reloads *r, const kl_reload *x, kl_time wall)
{
    kl_lock(&r->mu);
    kept *k = &r->ring[r->n++ % KL_RELOADS_KEPT];
    kl_free(k->script);
    kl_free(k->message);
    *k = (kept){kl_strdup(x->script), kl_strdup(x->message), x->result, x->generation, wall};
    count *c = count_of(r, x->script);
    c->of[x->result]++;
    c->refused = x->result == KL_RELOAD_REFUSED || x->result == KL_RELOAD_ROLLED_BACK;
    kl_unlock(&r->mu);
}

void kl_reloads_write(kl_reloads *r, kl_buf *out)
{
    kl_lock(&r->mu);
    if (r->n_counts)
        kl_metrics_head(out, "kubelua_reloads_total", "counter", "Changes of running scripts, by outcome");
    for (size_t i = 0; i < r->n_counts; i++)
        for (int k = 0; k < RESULTS; k++)
            kl_metrics_sample(out, "kubelua_reloads_total", (double)r->counts[i].of[k], "script",
                r->counts[i].script, "result", kl_reload_word((kl_reload_result)k), NULL);
    if (r->n_counts)
        kl_metrics_head(
            out, "kubelua_reload_refused", "gauge", "1 while the script on disk is not the one that runs");
    for (size_t i = 0; i < r->n_counts; i++)
        kl_metrics_sample(
            out, "kubelua_reload_refused", r->counts[i].refused, "script", r->counts[i].script, NULL);
    kl_unlock(&r->mu);
}

static void build(kl_builder *b, const kept *k)
{
    char when[KL_TIME_MAX];
    kl_build_object(b);
    kl_build_kstr(b, "time", kl_time_format_wall(k->wall, when));
    kl_build_kstr(b, "script", k->script);
    kl_build_kstr(b, "result", kl_reload_word(k->result));
    kl_build_kint(b, "generation", k->generation);
    kl_build_kstr(b, "message", k->message);
    kl_build_end(b);
}

const kl_value *kl_reloads_value(kl_reloads *r)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_lock(&r->mu);
    for (size_t i = r->n; i > 0 && r->n - i < KL_RELOADS_KEPT; i--)
        build(b, &r->ring[(i - 1) % KL_RELOADS_KEPT]);
    kl_unlock(&r->mu);
    kl_build_end(b);
    return kl_builder_done(b);
}
