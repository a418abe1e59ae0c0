/* table.h - the Table form of objects: what `kubectl get` prints. Pure. */
#ifndef KL_SERVER_TABLE_H
#define KL_SERVER_TABLE_H

#include "base/clock.h"
#include "server/render.h"

/* Writes `"columnDefinitions":[...]`. */
void kl__table_columns(const kl__kind *k, kl_buf *out);
/* Writes one row {"cells":[...],"object":...}. `now` is wall time. */
void kl__table_row(const kl__kind *k, const kl__form *form, const kl_value *object, kl_time now, kl_buf *out);

#endif
