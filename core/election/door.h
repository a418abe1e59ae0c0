/* door.h - the one function through which every write of a controller passes: it checks the write's mandate
 * (base/tenure.h) and counts the write. Dry runs and shadow runs report their unsent writes here
 * (run/imagine.h). */
#ifndef KL_ELECTION_DOOR_H
#define KL_ELECTION_DOOR_H

#include "client/client.h"

typedef struct kl_door kl_door;

typedef struct kl_door_options {
    /* Sends a request: kl_client_do in production, a script in specs. cancel may be NULL. */
    uint64_t (*send)(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg);
    void (*cancel)(void *arg, uint64_t id);
    void *send_arg;
    kl_clock *clock;
    /* only writes with dry_run are sent; others are refused */
    bool shut;
    /* Called for every allowed write before it is sent. On the caller's thread; may be NULL. */
    void (*seen)(void *arg, const char *who, const kl_op *op);
    void *seen_arg;
} kl_door_options;

kl_door *kl_door_new(const kl_door_options *o);
void kl_door_free(kl_door *d);
/* Sends a write, or calls done with KL_ENOTLEADER at once when op->mandate does not hold (any more). The
 * client checks again just before the write leaves. `who` is the controller's name. Any thread. */
uint64_t kl_door_write(kl_door *d, const char *who, const kl_op *op, kl_reply_fn *done, void *arg);
/* Reads need no permission. */
uint64_t kl_door_read(kl_door *d, const char *who, const kl_op *op, kl_reply_fn *done, void *arg);
/* Reports a write that is not sent (run/imagine.h) to the observer, and counts it apart. */
void kl_door_imagined(kl_door *d, const char *who, const kl_op *op);
uint64_t kl_door_not_sent(const kl_door *d);
void kl_door_cancel(kl_door *d, uint64_t id);
uint64_t kl_door_writes(const kl_door *d); /* writes allowed so far */
uint64_t kl_door_refused(const kl_door *d);

#endif
