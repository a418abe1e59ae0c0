/* reader.c - reads of the declared caches, with the script's index names translated. Any thread that holds the wiring. */
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "model/object.h"
#include "model/path.h"
#include "model/selector.h"
#include "run/wiring_impl.h"

const char *kl__wired_index_name(kl_wiring *w, const kl_need *n, const char *name)
{
    for (size_t i = 0; i < w->n_indexes; i++)
        if (w->indexes[i].need == n && !strcmp(w->indexes[i].spec->name, name))
            return w->indexes[i].name;
    return NULL;
}

static kl_status find(kl_reader *rd, const char *kind, kl_need **out, kl_err *err)
{
    kl_need *n = kl__wiring_need(rd->w, kind);
    if (!n)
        return kl_fail(err, KL_EINVAL, "controller %s does not keep %s in its cache: add it to reads = { \"%s\" }, or ask the server with ctx.live",
            rd->w->logic.spec->name, kind, kind);
    if (!n->informer)
        return kl_fail(err, KL_EAGAIN, "the cache of %s is not there yet", kind);
    *out = n;
    return KL_OK;
}

kl_status kl_reader_get(kl_reader *rd, const char *kind, const char *ns, const char *name, const kl_value **out, kl_err *err)
{
    kl_need *n;
    kl_status st = find(rd, kind, &n, err);
    if (st)
        return st;
    if (n->resource->namespaced && (!ns || !*ns))
        return kl_fail(err, KL_EINVAL, "%s %s: a namespace is needed, %s is namespaced: write (kind, namespace, name)", kind, name, n->resource->plural);
    char *key = kl_key_join(n->resource->namespaced ? ns : NULL, name);
    *out = kl_informer_lookup(n->informer, key);
    kl_free(key);
    return KL_OK;
}

const kl_resource *kl_reader_resource(kl_reader *rd, const char *kind)
{
    kl_need *n = kl__wiring_need(rd->w, kind);
    return n ? n->resource : NULL;
}

static const char *field_of(void *arg, const char *field)
{
    kl_path *p = NULL;
    if (kl_path_parse(field, &p, NULL))
        return "";
    const char *s = kl_value_str(kl_path_get(p, arg));
    kl_path_free(p);
    return s ? s : "";
}

static bool fields_match(void *arg, const kl_value *o)
{
    return kl_field_selector_matches(arg, field_of, (void *)o);
}

static kl_status no_index(kl_reader *rd, const kl_need *n, const char *kind, const char *name, kl_err *err)
{
    kl_buf have = KL_BUF_INIT;
    const char **known = kl_new_array(const char *, rd->w->n_indexes + 1);
    size_t n_known = 0;
    for (size_t i = 0; i < rd->w->n_indexes; i++)
        if (rd->w->indexes[i].need == n) {
            known[n_known++] = rd->w->indexes[i].spec->name;
            kl_buf_printf(&have, "%s%s", have.len ? ", " : "", rd->w->indexes[i].spec->name);
        }
    const char *near = kl_suggest(name, known, n_known);
    kl_status st = kl_fail(err, KL_EINVAL, "%s has no index %s in controller %s (it has: %s): %s%s%s", kind, name, rd->w->logic.spec->name,
        have.len ? kl_buf_str(&have) : "none", near ? "did you mean '" : "add it to indexes", near ? near : "", near ? "'?" : "");
    kl_buf_fini(&have);
    kl_free(known);
    return st;
}

/* The terms with the informer's names, which the caller frees. */
static kl_status wire_terms(kl_reader *rd, const kl_need *n, const char *kind, const kl_read_query *q, kl_index_term **out, kl_err *err)
{
    kl_index_term *terms = kl_new_array(kl_index_term, q->n_terms + 1);
    kl_status st = KL_OK;
    for (size_t i = 0; !st && i < q->n_terms; i++) {
        terms[i] = q->terms[i];
        terms[i].index = kl__wired_index_name(rd->w, n, q->terms[i].index);
        if (!terms[i].index)
            st = no_index(rd, n, kind, q->terms[i].index, err);
    }
    *out = terms;
    return st;
}

kl_status kl_reader_list(kl_reader *rd, const char *kind, const kl_read_query *q, kl_objects *out, kl_err *err)
{
    kl_need *n;
    kl_selector *labels = NULL;
    kl_field_selector *fields = NULL;
    kl_status st = find(rd, kind, &n, err);
    if (st)
        return st;
    kl_query query = {.ns = n->resource->namespaced ? q->ns : NULL, .value = q->value, .n_terms = q->n_terms, .limit = q->limit};
    if (q->index && !(query.index = kl__wired_index_name(rd->w, n, q->index)))
        return no_index(rd, n, kind, q->index, err);
    kl_index_term *terms;
    st = wire_terms(rd, n, kind, q, &terms, err);
    query.terms = terms;
    if (!st && q->labels && *q->labels)
        st = kl_selector_parse(q->labels, &labels, err);
    if (!st && q->fields && *q->fields)
        st = kl_field_selector_parse(q->fields, &fields, err);
    if (!st) {
        query.labels = labels;
        query.where = fields ? fields_match : NULL;
        query.where_arg = fields;
        st = kl_informer_list(n->informer, &query, out, err);
    }
    kl_free(terms);
    kl_selector_free(labels);
    kl_field_selector_free(fields);
    return st;
}
