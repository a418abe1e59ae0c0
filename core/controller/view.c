/* view.c - reads the cache, then applies the overlay to the answer. Function indexes cannot run here on an
 * overlaid object: such an object stays in a list that had it, and is not added to others. */
#include "controller/view.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "value/path.h"
#include "model/selector.h"
#include "controller/wiring_impl.h"

kl_reader *kl_view_new(kl_reader *of, kl_overlay *o)
{
    kl_reader *v = kl_new(kl_reader);
    *v = (kl_reader){.w = of->w, .over = kl_overlay_ref(o)};
    return v;
}

void kl_view_free(kl_reader *view)
{
    if (view)
        kl_overlay_unref(view->over);
    kl_free(view);
}

void kl_view_set_recall(kl_reader *view, kl_view_recall *recall, void *arg)
{
    view->recall = recall;
    view->recall_arg = arg;
}

/* --- what belongs into a list ------------------------------------------------------------- */

typedef struct question {
    kl_reader *rd;
    const kl_need *need;
    const char *ns; /* NULL: all */
    kl_selector *labels;
    kl_field_selector *fields;
    const kl_read_query *q; /* NULL: no more than that */
    const kl_value *object; /* whose fields are selected */
} question;

static const char *text_at(const char *path, const kl_value *o)
{
    kl_path *p = NULL;
    if (kl_path_parse(path, &p, NULL))
        return "";
    const char *s = kl_value_str(kl_path_get(p, o));
    kl_path_free(p);
    return s ? s : "";
}

static const char *field_of(void *arg, const char *name)
{
    return text_at(name, ((const question *)arg)->object);
}

static bool says(const kl_value *v, const char *const *values)
{
    for (size_t i = 0; kl_value_type(v) == KL_ARRAY && i < kl_value_len(v); i++)
        if (says(kl_value_item(v, i), values))
            return true;
    for (const char *const *x = values; kl_value_str(v) && x && *x; x++)
        if (!strcmp(*x, kl_value_str(v)))
            return true;
    return false;
}

static bool term_holds(const kl_value *v, const kl_index_term *t)
{
    bool any = kl_value_type(v) == KL_STRING || kl_value_len(v);
    switch (t->op) {
    case KL_SEL_EQ:
    case KL_SEL_DOUBLE_EQ:
    case KL_SEL_IN: return says(v, t->values);
    case KL_SEL_NE:
    case KL_SEL_NOTIN: return !says(v, t->values);
    case KL_SEL_EXISTS: return any;
    case KL_SEL_NOT_EXISTS: return !any;
    default: return true;
    }
}

static bool index_says(const question *q, const kl_value *o, const kl_index_term *t, bool listed)
{
    kl_wiring *w = q->rd->w;
    for (size_t i = 0; i < w->n_indexes; i++) {
        const kl_index_spec *s = w->indexes[i].spec;
        if (w->indexes[i].need != q->need || strcmp(s->name, t->index))
            continue;
        kl_path *p = NULL;
        if (!s->path || kl_path_parse(s->path, &p, NULL))
            return listed;
        bool holds = term_holds(kl_path_get(p, o), t);
        kl_path_free(p);
        return holds;
    }
    return listed;
}

static bool belongs(void *arg, const kl_value *o, bool listed)
{
    question *q = arg;
    const char *ns = kl_object_namespace(o);
    if (q->ns && *q->ns && (!ns || strcmp(ns, q->ns)))
        return false;
    if (q->labels && !kl_selector_matches(q->labels, kl_value_at(o, "metadata", "labels", NULL)))
        return false;
    q->object = o;
    if (q->fields && !kl_field_selector_matches(q->fields, field_of, q))
        return false;
    if (!q->q)
        return true;
    const char *values[] = {q->q->value, NULL};
    if (q->q->index && !index_says(q, o, &(kl_index_term){q->q->index, KL_SEL_EQ, values}, listed))
        return false;
    for (size_t i = 0; i < q->q->n_terms; i++)
        if (!index_says(q, o, &q->q->terms[i], listed))
            return false;
    return true;
}

static void question_fini(question *q)
{
    kl_selector_free(q->labels);
    kl_field_selector_free(q->fields);
}

/* --- lists -------------------------------------------------------------------------------- */

static void cut(kl_objects *o, size_t limit)
{
    while (limit && o->len > limit)
        kl_value_unref(o->v[--o->len]);
}

kl_status kl__view_list(kl_reader *rd, const char *kind, const kl_read_query *q, kl_objects *out, kl_err *err)
{
    kl_need *need = kl__wiring_need(rd->w, kind);
    bool over = need && need->resource && kl_overlay_has(rd->over, need->resource);
    kl_read_query whole = *q;
    if (over)
        whole.limit = 0; /* objects beyond the limit may replace removed ones */
    kl_status st = KL_OK;
    if (!rd->recall || !rd->recall(rd->recall_arg, kind, q, out))
        st = kl_reader_list(&rd->w->reader, kind, &whole, out, err);
    if (st || !over)
        return st;
    question x = {.rd = rd, .need = need, .ns = need->resource->namespaced ? q->ns : NULL, .q = q};
    if (q->labels && *q->labels)
        st = kl_selector_parse(q->labels, &x.labels, err);
    if (!st && q->fields && *q->fields)
        st = kl_field_selector_parse(q->fields, &x.fields, err);
    if (!st) {
        kl_overlay_list(rd->over, need->resource, belongs, &x, out);
        cut(out, q->limit);
    } else {
        kl_objects_fini(out);
    }
    question_fini(&x);
    return st;
}

const kl_value *kl_view_answer(
    kl_overlay *o, const kl_resource *r, const char *ns, const char *labels, const kl_value *answer)
{
    const kl_value *items = kl_value_get(answer, "items");
    question x = {.ns = r->namespaced ? ns : NULL};
    if (!kl_overlay_has(o, r) || kl_value_type(items) != KL_ARRAY
        || (labels && *labels && kl_selector_parse(labels, &x.labels, NULL)))
        return kl_value_ref(answer);
    kl_objects list = {kl_value_len(items), kl_zalloc_array(sizeof *list.v, kl_value_len(items) + 1)};
    for (size_t i = 0; i < list.len; i++)
        list.v[i] = kl_value_ref(kl_value_item(items, i));
    kl_overlay_list(o, r, belongs, &x, &list);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < list.len; i++)
        kl_build_value(b, list.v[i]);
    kl_build_end(b);
    const kl_value *fresh = kl_builder_done(b), *whole = kl_value_with(answer, "items", fresh);
    kl_value_unref(fresh);
    kl_objects_fini(&list);
    question_fini(&x);
    return whole;
}
