/* answer.h - whole answers as bytes: one object, a list, an event of a watch, in the form and the media type
 * that a request accepts. Appends to `out`. Pure. */
#ifndef KL_SHOW_ANSWER_H
#define KL_SHOW_ANSWER_H

#include "base/clock.h"
#include "show/accept.h"

/* A stored object; `now` is wall time. */
KL_NODISCARD kl_status kl_show_object(const kl__kind *k, const kl_show_form *form, const kl_value *stored,
    kl_time now, kl_buf *out, kl_err *err);
/* A value that has kind and apiVersion, such as a Status. Returns the media type used: JSON when its kind has
 * no protobuf. */
kl_show_media kl_show_value(const kl_value *v, kl_show_media media, kl_buf *out);

/* A list, item by item. The caller sets k, form and now, the rest is zero. */
typedef struct kl_show_list {
    const kl__kind *k;
    const kl_show_form *form; /* borrowed */
    kl_time now;
    kl_buf items;
    size_t n;
} kl_show_list;
/* Puts the objects of a list in the order in which its form shows them: FlowSchemas of a table as they match.
 */
void kl_show_sort(const kl__kind *k, const kl_show_form *form, const kl_value **objects, size_t n);
KL_NODISCARD kl_status kl_show_list_add(kl_show_list *l, const kl_value *stored, kl_err *err);
/* `token` continues after the last item; NULL: the list is complete. `left` is written unless negative. */
KL_NODISCARD kl_status kl_show_list_end(
    kl_show_list *l, uint64_t rv, const char *token, int64_t left, kl_buf *out, kl_err *err);
void kl_show_list_fini(kl_show_list *l);

typedef struct kl_show_change {
    const char *type;       /* ADDED, MODIFIED, DELETED */
    const kl_value *stored; /* the object, in storage form */
    bool columns;           /* adds the column definitions, for the first event of a table */
    kl_time now;
} kl_show_change;
KL_NODISCARD kl_status kl_show_event(
    const kl__kind *k, const kl_show_form *form, const kl_show_change *c, kl_buf *out, kl_err *err);
KL_NODISCARD kl_status kl_show_bookmark(
    const kl__kind *k, const kl_show_form *form, uint64_t rv, bool initial_end, kl_buf *out, kl_err *err);
/* The event that ends a watch. */
void kl_show_error_event(const kl_value *status, const kl_show_form *form, kl_buf *out);

#endif
