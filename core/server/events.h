/* events.h - the rules of Events: those made by events.k8s.io/v1 are strict and never change but for their
 * series. */
#ifndef KL_SERVER_EVENTS_H
#define KL_SERVER_EVENTS_H

#include "server/state.h"
#include "schema/status.h"

/* `o` about to be stored, `old` NULL on create. Fields are named as core/v1 has them, which is how Events
 * are stored. */
void kl__event_validate(const kl__call *c, const kl_value *old, const kl_value *o, kl__causes *causes);

#endif
