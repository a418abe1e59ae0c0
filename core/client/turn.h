/* turn.h - when a call may be sent: it needs a token of the limiter, then a place in the pace of a busy
 * server. Calls thread.
 *
 *   asked --token in the future--> limited --its time--> held or gone     limited: its owner's deadline moves by as much
 *   asked --no room--> held --room, first come first served--> gone
 *   held --deadline--> late */
#ifndef KL_CLIENT_TURN_H
#define KL_CLIENT_TURN_H

#include "base/list.h"
#include "client/pace.h"
#include "client/request.h"

typedef enum kl__turn_state { KL__TURN_NONE, KL__TURN_LIMITED, KL__TURN_HELD } kl__turn_state;

typedef struct kl__turn { /* part of a call; zeroed by kl__turn_init */
    kl_list link;         /* in the client's queue while it is held */
    kl_client *c;
    kl__turn_state state;
    bool urgent; /* the call never waits; the owner sets it */
    bool paced;  /* the pace counts it as under way */
    kl_time since, deadline;
    uint64_t timer;
    const kl__request *q;
    void (*go)(struct kl__turn *t);                              /* sends now; may free the turn's owner */
    void (*late)(struct kl__turn *t, kl_status st, kl_err *err); /* the turn ended without a call of go */
} kl__turn;

void kl__turn_init(
    kl__turn *t, kl_client *c, void (*go)(kl__turn *t), void (*late)(kl__turn *t, kl_status st, kl_err *err));
/* go or late follows, maybe before this returns. `deadline` belongs to the owner and moves with the limiter's
 * wait; `first`: no attempt was made yet. */
void kl__turn_ask(kl__turn *t, const kl__request *q, kl_time *deadline, bool first);
/* An attempt, begun at `sent`, has ended; `wait`: the Retry-After of a refusal, -1: none. Does nothing when
 * the pace does not count it. */
void kl__turn_over(kl__turn *t, kl__pace_end how, kl_time sent, kl_time wait);
/* The owner withdraws, in any state; neither go nor late is called after this. */
void kl__turn_leave(kl__turn *t);

#endif
