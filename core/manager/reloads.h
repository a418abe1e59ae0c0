/* reloads.h - outcomes of script changes: the latest for people, counts for metrics. Any thread. */
#ifndef KL_MANAGER_RELOADS_H
#define KL_MANAGER_RELOADS_H

#include "base/buf.h"
#include "base/clock.h"
#include "value/value.h"

typedef struct kl_reloads kl_reloads;

typedef enum kl_reload_result {
    KL_RELOAD_TAKEN,       /* a new generation was accepted */
    KL_RELOAD_REFUSED,     /* the old generation stays */
    KL_RELOAD_ROLLED_BACK, /* the new generation had taken over, and was rolled back */
    /* the refused or rolled back script was replaced by the running one */
    KL_RELOAD_WITHDRAWN,
} kl_reload_result;
/* "taken", "refused", "rolled_back", "withdrawn"; static */
const char *kl_reload_word(kl_reload_result r);

typedef struct kl_reload { /* borrowed for a call */
    const char *script;    /* its name as given to the process: the metric label */
    kl_reload_result result;
    int generation;      /* the running generation, as far as known */
    const char *message; /* why it was refused or rolled back, or what changes; NULL: none */
} kl_reload;

/* The number of outcomes kept. */
#define KL_RELOADS_KEPT 20

kl_reloads *kl_reloads_new(void);
void kl_reloads_free(kl_reloads *r);
void kl_reloads_note(kl_reloads *r, const kl_reload *x, kl_time wall);
/* kubelua_reloads_total{script,result}, and kubelua_reload_refused{script}: 1 while the script on disk
 * is not the one that runs. */
void kl_reloads_write(kl_reloads *r, kl_buf *out);
/* A list of {time, script, result, generation, message}, the newest first; a new reference. */
const kl_value *kl_reloads_value(kl_reloads *r);

#endif
