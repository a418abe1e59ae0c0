/* columns.h - the columns of the table of each built-in kind. Pure. */
#ifndef KL_SHOW_COLUMNS_H
#define KL_SHOW_COLUMNS_H

#include "base/clock.h"
#include "schema/kinds.h"

typedef void kl_cell_fn(const kl_value *o, kl_time now, kl_buf *out); /* appends one JSON value */

/* One column, whose cell is at a dotted path, or comes from a function. */
typedef struct kl_column {
    const char *name, *type; /* name "": a cell without a definition, as in kube-apiserver */
    int priority;
    const char *path;
    kl_cell_fn *fn;
} kl_column;

/* The columns of a kind that gives none itself; the last one has no name. Static. */
const kl_column *kl_columns_of(const kl__kind *k);
/* The description of column i. Static. */
const char *kl_column_text(const kl__kind *k, size_t i);

/* The descriptions, written by `make generate`: each kind as "group/plural", and its texts in their order, up
 * to NULL. The last kind is NULL. columns_data.c */
typedef struct kl_column_texts {
    const char *kind;
    const char *const *texts;
} kl_column_texts;
extern const kl_column_texts kl__column_texts[];

#endif
