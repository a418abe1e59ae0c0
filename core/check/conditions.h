/* conditions.h - the conditions of a status. */
#ifndef KL_CHECK_CONDITIONS_H
#define KL_CHECK_CONDITIONS_H

#include "check/check.h"

/* Adds complaints about a list of conditions at a place. */
void kl__check_conditions(kl__causes *c, const kl_value *list, const kl__place *at);

#endif
