/* recorder.h - core/v1 Events: queued, counted when they repeat, sent through the door. Any thread may record. */
#ifndef KL_RUN_RECORDER_H
#define KL_RUN_RECORDER_H

#include "run/door.h"

typedef struct kl_recorder kl_recorder;

kl_recorder *kl_recorder_new(kl_door *door, kl_clock *clock);
/* An Event of `component` about an object. Dropped (and counted) when too many wait. type "Normal" or "Warning". */
void kl_recorder_event(kl_recorder *r, const char *component, const kl_value *about, const char *type, const char *reason, const char *message);
/* Waits until all that was recorded has been answered, or until `deadline` (monotonic). False: some are still under way. */
bool kl_recorder_flush(kl_recorder *r, kl_time deadline);
uint64_t kl_recorder_dropped(kl_recorder *r);
void kl_recorder_free(kl_recorder *r);             /* after flush; waits for answers under way */

#endif
