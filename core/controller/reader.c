/* reader.c - reads of the declared caches, with the script's index names translated. Any thread that holds
 * the wiring. */
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "client/catalog.h"
#include "model/object.h"
#include "value/path.h"
#include "model/selector.h"
#include "run/remote.h"
#include "run/overlay.h"
#include "controller/wiring_impl.h"

const char *kl__wired_index_name(kl_wiring *w, const kl_need *n, const char *name)
{
    for (size_t i = 0; i < w->n_indexes; i++)
        if (w->indexes[i].need == n && !strcmp(w->indexes[i].spec->name, name))
            return w->indexes[i].name;
    return NULL;
}

/* The cached kind that a word probably means: "v1/Configmap", "apps/v1/Deploymnt". NULL: none. */
static const char *meant(const kl_wiring *w, const char *word)
{
    const char *last = strrchr(word, '/'), *own = last ? last + 1 : word, *near = NULL;
    for (size_t i = 0; i < w->n_needs; i++) {
        const char *kind = kl_cache_kind(w->needs[i].cache), *slash = strrchr(kind, '/');
        const char *bare = slash ? slash + 1 : kind;
        if (!strcasecmp(own, bare))
            return kind;
        if (!near && kl_suggest(own, &bare, 1))
            near = kind;
    }
    return near;
}

static kl_status ambiguous(const kl_wiring *w, const char *word, kl_err *err)
{
    kl_buf kinds = KL_BUF_INIT;
    for (size_t i = 0; i < w->n_needs; i++)
        if (w->needs[i].resource && kl__resource_has_name(w->needs[i].resource, word))
            kl_buf_printf(&kinds, "%s\"%s\"", kinds.len ? " or " : "", kl_cache_kind(w->needs[i].cache));
    kl_status st = kl_fail(err, KL_EINVAL,
        "controller %s keeps several kinds named %s in its cache: name one of %s", w->logic.spec->name, word,
        kl_buf_str(&kinds));
    kl_buf_fini(&kinds);
    return st;
}

/* Finds a kind by its full or short name; NULL: it is not declared, or several have that name. */
static kl_need *need_of(kl_reader *rd, const char *kind, size_t *named)
{
    kl_need *n = kl__wiring_need(rd->w, kind);
    *named = n ? 1 : kl__wiring_named(rd->w, kind, &n);
    return *named == 1 ? n : NULL;
}

static kl_status find(kl_reader *rd, const char *kind, kl_need **out, kl_err *err)
{
    size_t named;
    kl_need *n = need_of(rd, kind, &named);
    if (named > 1)
        return ambiguous(rd->w, kind, err);
    const char *near = n ? NULL : meant(rd->w, kind);
    if (near)
        return kl_fail(err, KL_EINVAL, "controller %s does not keep %s in its cache; did you mean \"%s\"?",
            rd->w->logic.spec->name, kind, near);
    if (!n)
        return kl_fail(err, KL_EINVAL,
            "controller %s does not keep %s in its cache: add it to reads = { \"%s\" }, or ask the server "
            "with ctx.live",
            rd->w->logic.spec->name, kind, kind);
    if (!n->informer)
        return kl_fail(err, KL_EAGAIN, "the cache of %s is not synced yet", kind);
    *out = n;
    return KL_OK;
}

/* Namespaces of other replicas are unknown, so an answer for all namespaces would be incomplete. */
static kl_status check_held(kl_reader *rd, const kl_need *n, const char *kind, const char *ns, kl_err *err)
{
    const char *who = rd->w->logic.spec->name;
    if (!n->resource->namespaced)
        return KL_OK;
    if (!ns || !*ns)
        return kl_fail(err, KL_EINVAL,
            "controller %s caches %s of its replica's namespaces only (caches = \"own\"): name a namespace, "
            "or ask the server with ctx.live",
            who, kind);
    if (!kl_informer_covers(n->informer, ns))
        return kl_fail(err, KL_EINVAL,
            "controller %s caches %s of its replica's namespaces only (caches = \"own\"), and %s is not "
            "among them: ask the server with ctx.live, or keep all of them with caches = \"all\"",
            who, kind, ns);
    return KL_OK;
}

/* Objects outside of the controller's namespaces are not absent, but unknown. */
static kl_status check_namespace(
    kl_reader *rd, const kl_need *n, const char *kind, const char *ns, kl_err *err)
{
    char **names = kl_controller_spec_namespaces(rd->w->logic.spec, kl_cache_kind(n->cache));
    kl_buf list = KL_BUF_INIT;
    if (rd->w->o.divided)
        return check_held(rd, n, kind, ns, err);
    if (!names || !n->resource->namespaced || !ns || !*ns)
        return KL_OK;
    for (char **k = names; *k; k++) {
        if (!strcmp(*k, ns))
            return kl_buf_fini(&list), KL_OK;
        kl_buf_printf(&list, "%s%s", k == names ? "" : ", ", *k);
    }
    kl_status st = kl_fail(err, KL_EINVAL,
        "controller %s caches %s of namespaces = { %s } only, without %s: add it there, or ask the server "
        "with ctx.live",
        rd->w->logic.spec->name, kind, kl_buf_str(&list), ns);
    kl_buf_fini(&list);
    return st;
}

kl_reader *kl_reader_new_remote(const kl_remote *remote)
{
    kl_reader *rd = kl_new(kl_reader);
    rd->remote = remote;
    return rd;
}

kl_status kl_reader_get(
    kl_reader *rd, const char *kind, const char *ns, const char *name, const kl_value **out, kl_err *err)
{
    if (rd->remote)
        return rd->remote->get(rd->remote, kind, ns, name, out, err);
    kl_need *n;
    kl_status st = find(rd, kind, &n, err);
    if (st)
        return st;
    if (n->resource->namespaced && (!ns || !*ns))
        return kl_fail(err, KL_EINVAL,
            "%s %s: %s is namespaced, so a namespace is needed: write (kind, namespace, name)", kind, name,
            n->resource->plural);
    if ((st = check_namespace(rd, n, kind, ns, err)))
        return st;
    if (rd->over && kl_overlay_get(rd->over, n->resource, n->resource->namespaced ? ns : NULL, name, out))
        return KL_OK;
    const kl_reader_front *front = &rd->w->o.front;
    if (front->get && front->get(front->arg, kind, ns, name, out))
        return KL_OK;
    char *key = kl_key_join(n->resource->namespaced ? ns : NULL, name);
    *out = kl_informer_lookup(n->informer, key);
    kl_free(key);
    return KL_OK;
}

const kl_resource *kl_reader_resource(kl_reader *rd, const char *kind)
{
    if (rd->remote)
        return rd->remote->resource(rd->remote, KL_FLEET_NONE, kind);
    size_t named;
    kl_need *n = need_of(rd, kind, &named);
    return n ? n->resource : NULL;
}

/* --- fields: paths are parsed once per list, and read from every object ------------------- */

/* path NULL: no path at all, absent everywhere */
typedef struct field {
    const char *name;
    kl_path *path;
} field;
typedef struct fields {
    kl_field_selector *selector;
    field *v;
    size_t n;
    const kl_value *object;
} fields;

static kl_status fields_init(fields *f, const char *text, kl_err *err)
{
    *f = (fields){0};
    if (!text || !*text)
        return KL_OK;
    kl_status st = kl_field_selector_parse(text, &f->selector, err);
    if (st)
        return st;
    f->n = kl_field_selector_len(f->selector);
    f->v = kl_new_array(field, f->n + 1);
    for (size_t i = 0; i < f->n; i++) {
        bool negated;
        const char *value;
        f->v[i].name = kl_field_selector_term(f->selector, i, &negated, &value);
        if (kl_path_parse(f->v[i].name, &f->v[i].path, NULL))
            f->v[i].path = NULL;
    }
    return KL_OK;
}

static void fields_fini(fields *f)
{
    for (size_t i = 0; i < f->n; i++)
        kl_path_free(f->v[i].path);
    kl_free(f->v);
    kl_field_selector_free(f->selector);
}

static const char *field_of(void *arg, const char *name)
{
    const fields *f = arg;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].name == name || !strcmp(f->v[i].name, name)) {
            const char *s = f->v[i].path ? kl_value_str(kl_path_get(f->v[i].path, f->object)) : NULL;
            return s ? s : "";
        }
    return "";
}

static bool fields_match(void *arg, const kl_value *o)
{
    fields *f = arg;
    f->object = o;
    return kl_field_selector_matches(f->selector, field_of, f);
}

/* The script's index on exactly this path, if there is one: then only its candidates are checked. */
static const char *index_of_field(kl_wiring *w, const kl_need *n, const field *f)
{
    for (size_t i = 0; f->path && i < w->n_indexes; i++) {
        kl_wired_index *ix = &w->indexes[i];
        if (ix->need == n && ix->spec->path && !strcmp(ix->spec->path, f->name) && atomic_load(&ix->ready))
            return ix->name;
    }
    return NULL;
}

/* Adds index terms for "field=value" to `terms`, which has room; `values` holds a pair for each. Returns
 * their number. */
static size_t terms_of_fields(
    kl_wiring *w, const kl_need *n, const fields *f, kl_index_term *terms, const char *(*values)[2])
{
    size_t added = 0;
    for (size_t i = 0; i < f->n; i++) {
        bool negated;
        const char *value, *index = index_of_field(w, n, &f->v[i]);
        kl_field_selector_term(f->selector, i, &negated, &value);
        if (!index || negated || !*value) /* an absent field reads as "" and is in no index */
            continue;
        values[added][0] = value;
        values[added][1] = NULL;
        terms[added] = (kl_index_term){index, KL_SEL_EQ, values[added]};
        added++;
    }
    return added;
}

/* --- indexes ------------------------------------------------------------------------------ */

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
    kl_status st = kl_fail(err, KL_EINVAL, "%s has no index %s in controller %s (it has: %s): %s%s%s", kind,
        name, rd->w->logic.spec->name, have.len ? kl_buf_str(&have) : "none",
        near ? "did you mean '" : "add it to indexes", near ? near : "", near ? "'?" : "");
    kl_buf_fini(&have);
    kl_free(known);
    return st;
}

/* The terms with the informer's names. */
static kl_status wire_terms(kl_reader *rd, const kl_need *n, const char *kind, const kl_read_query *q,
    kl_index_term *out, kl_err *err)
{
    for (size_t i = 0; i < q->n_terms; i++) {
        out[i] = q->terms[i];
        out[i].index = kl__wired_index_name(rd->w, n, q->terms[i].index);
        if (!out[i].index)
            return no_index(rd, n, kind, q->terms[i].index, err);
    }
    return KL_OK;
}

static kl_status list_by(kl_reader *rd, const kl_need *n, kl_query *query, const fields *f,
    kl_index_term *terms, kl_objects *out, kl_err *err)
{
    const char *(*values)[2] = kl_zalloc_array(sizeof *values, f->n + 1);
    size_t more = terms_of_fields(rd->w, n, f, terms + query->n_terms, values);
    query->terms = terms;
    query->n_terms += more;
    kl_status st = kl_informer_list(n->informer, query, out, more ? NULL : err);
    if (st && more) { /* such an index may be dropped soon, with this wiring */
        query->n_terms -= more;
        st = kl_informer_list(n->informer, query, out, err);
    }
    kl_free(values);
    return st;
}

kl_status kl_reader_list(
    kl_reader *rd, const char *kind, const kl_read_query *q, kl_objects *out, kl_err *err)
{
    if (rd->remote)
        return rd->remote->list(rd->remote, kind, q, out, err);
    kl_need *n;
    kl_selector *labels = NULL;
    fields f;
    if (rd->over)
        return kl__view_list(rd, kind, q, out, err);
    kl_status st = find(rd, kind, &n, err);
    if (!st)
        st = check_namespace(rd, n, kind, q->ns, err);
    if (st)
        return st;
    const kl_reader_front *front = &rd->w->o.front;
    if (front->list && front->list(front->arg, kind, q, out))
        return KL_OK;
    kl_query query = {.ns = n->resource->namespaced ? q->ns : NULL,
        .value = q->value,
        .n_terms = q->n_terms,
        .limit = q->limit};
    if (q->index && !(query.index = kl__wired_index_name(rd->w, n, q->index)))
        return no_index(rd, n, kind, q->index, err);
    st = fields_init(&f, q->fields, err);
    kl_index_term *terms = kl_new_array(kl_index_term, q->n_terms + f.n + 1);
    if (!st)
        st = wire_terms(rd, n, kind, q, terms, err);
    if (!st && q->labels && *q->labels)
        st = kl_selector_parse(q->labels, &labels, err);
    if (!st) {
        query.labels = labels;
        query.where = f.n ? fields_match : NULL;
        query.where_arg = &f;
        st = list_by(rd, n, &query, &f, terms, out, err);
    }
    kl_free(terms);
    kl_selector_free(labels);
    fields_fini(&f);
    return st;
}
