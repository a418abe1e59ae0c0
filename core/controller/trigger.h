/* trigger.h - `every` and `cron`: calls back when their times come. All calls on the loop. */
#ifndef KL_CONTROLLER_TRIGGER_H
#define KL_CONTROLLER_TRIGGER_H

#include "base/loop.h"

typedef struct kl_triggers kl_triggers;

/* `due` is called on the loop, once for all times that came together; after a suspension once for all missed
 * times. */
kl_triggers *kl_triggers_new(kl_loop *loop, kl_clock *clock, void (*due)(void *arg), void *arg);
void kl_triggers_free(kl_triggers *t);
/* Sets the interval (0: none), counted from now unless it is unchanged, and the cron texts (base/cron.h),
 * NULL-terminated or NULL; one that does not parse is skipped. */
void kl_triggers_set(kl_triggers *t, kl_time every, const char *const *cron);

#endif
