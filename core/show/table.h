/* table.h - the Table form of objects: what `kubectl get` prints. Pure. */
#ifndef KL_SHOW_TABLE_H
#define KL_SHOW_TABLE_H

#include "base/clock.h"
#include "show/accept.h"

/* Writes `"columnDefinitions":[...]`. */
void kl_show_columns(const kl__kind *k, kl_buf *out);
/* Writes one row {"cells":[...],"object":...}. `now` is wall time. */
void kl_show_row(
    const kl__kind *k, const kl_show_form *form, const kl_value *object, kl_time now, kl_buf *out);

#endif
