/* isolate_serve.c - serves an isolated process's asks and tells with the kl_run and kl_reader of its turn.
 * Each message is checked first. */
#include <string.h>

#include "base/mem.h"
#include "model/resource.h"
#include "isolate/isolate_impl.h"
#include "run/shared.h"
#include "run/witness.h"

/* A serve function fills this in, or reports an invalid message. */
typedef struct answer {
    kl_status status;
    kl_err err;
    const kl_value *v;      /* a new reference, or NULL */
    const kl_value *second; /* likewise */
    kl_objects list;        /* instead of v and second, where `is_list` */
    bool is_list;
} answer;

typedef bool serve_fn(kl_isolate *i, const kl_message *m, answer *a);

#define ANSWER_VALUES 4
/* A script names each index at most once, and has few. */
#define TERMS_MAX 1000

/* --- caches ------------------------------------------------------------------------------- */

static bool get(kl_isolate *i, const kl_message *m, answer *a)
{
    const char *kind = kl_message_text(m, 0), *ns = kl_message_text(m, 1), *name = kl_message_text(m, 2);
    if (!i->reader || !kind || !name)
        return false;
    a->status = kl_reader_get(i->reader, kind, ns, name, &a->v, &a->err);
    if (!a->status && i->run && kl_run_watched(i->run))
        kl_run_saw(
            i->run, &(kl_saw){.kind = kind, .ns = ns, .name = name, .found = &a->v, .n = a->v != NULL});
    return true;
}

/* Reads the terms of a list; their texts are borrowed. False: they are invalid. The caller frees *terms, and
 * *values. */
static bool read_terms(const kl_value *list, kl_index_term **terms, const char ***values)
{
    size_t n = kl_value_len(list), room = 0, used = 0;
    if (n > TERMS_MAX)
        return false;
    for (size_t k = 0; k < n; k++)
        room += kl_value_len(kl_value_item(list, k)) + 1;
    *terms = kl_new_array(kl_index_term, n + 1);
    *values = kl_new_array(const char *, room + 1);
    for (size_t k = 0; k < n; k++) {
        const kl_value *t = kl_value_item(list, k);
        const char *index = kl_value_str(kl_value_item(t, 0));
        size_t len = kl_value_type(t) == KL_ARRAY ? kl_value_len(t) : 0;
        int64_t op = -1;
        (void)kl_value_int(kl_value_item(t, 1), &op);
        bool one = op == KL_SEL_EQ || op == KL_SEL_NE || op == KL_SEL_DOUBLE_EQ;
        bool none = op == KL_SEL_EXISTS || op == KL_SEL_NOT_EXISTS;
        if (!index || len < 2 || op < 0 || op > KL_SEL_NOT_EXISTS || (one && len != 3))
            return false;
        (*terms)[k] = (kl_index_term){index, (kl_selector_op)op, none ? NULL : *values + used};
        for (size_t x = 2; x < len; x++)
            if (!((*values)[used++] = kl_value_str(kl_value_item(t, x))))
                return false;
        used++; /* the NULL that ends the values */
    }
    return true;
}

static bool list(kl_isolate *i, const kl_message *m, answer *a)
{
    const char *kind = kl_message_text(m, 0);
    const kl_value *v = kl_message_value(m, 1), *said = kl_value_get(v, "terms");
    kl_index_term *terms = NULL;
    const char **values = NULL;
    int64_t limit = kl_value_int_at(v, 0, "limit", NULL);
    bool sound = i->reader && kind && kl_value_type(v) == KL_OBJECT && kl_value_type(said) == KL_ARRAY
        && limit >= 0 && read_terms(said, &terms, &values);
    if (sound) {
        kl_read_query q = {.ns = kl_value_str(kl_value_get(v, "ns")),
            .labels = kl_value_str(kl_value_get(v, "labels")),
            .fields = kl_value_str(kl_value_get(v, "fields")),
            .index = kl_value_str(kl_value_get(v, "index")),
            .value = kl_value_str(kl_value_get(v, "value")),
            .terms = terms,
            .n_terms = kl_value_len(said),
            .limit = (size_t)limit};
        a->is_list = true;
        a->status = kl_reader_list(i->reader, kind, &q, &a->list, &a->err);
        if (!a->status && i->run && kl_run_watched(i->run))
            kl_run_saw(i->run,
                &(kl_saw){.kind = kind, .ns = q.ns, .query = &q, .found = a->list.v, .n = a->list.len});
    }
    kl_free(terms);
    kl_free(values);
    return sound;
}

static const kl_value *resource_value(const kl_resource *r)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "group", r->group);
    kl_build_kstr(b, "version", r->version);
    kl_build_kstr(b, "kind", r->kind);
    kl_build_kstr(b, "plural", r->plural);
    kl_build_key(b, "namespaced");
    kl_build_bool(b, r->namespaced);
    kl_build_key(b, "subresources");
    kl_build_array(b);
    for (char **s = r->subresources; s && *s; s++)
        kl_build_str(b, *s);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Reads *cluster from a value that may be absent. False: there is no such cluster. */
static bool read_cluster(const kl_isolate *i, const kl_value *v, size_t *cluster)
{
    int64_t n = 0;
    *cluster = KL_FLEET_NONE;
    if (!v)
        return true;
    if (!i->run || !kl_value_int(v, &n) || n < 0 || (size_t)n >= kl_fleet_size(kl_run_fleet(i->run)))
        return false;
    *cluster = (size_t)n;
    return true;
}

static bool resource(kl_isolate *i, const kl_message *m, answer *a)
{
    const char *kind = kl_message_text(m, 0);
    size_t cluster;
    if (!kind || !read_cluster(i, kl_message_value(m, 1), &cluster))
        return false;
    const kl_resource *r = cluster != KL_FLEET_NONE ? kl_run_resource_at(i->run, cluster, kind)
        : i->reader                                 ? kl_reader_resource(i->reader, kind)
                                                    : NULL;
    if (!r && i->run && cluster == KL_FLEET_NONE)
        r = kl_run_resource(i->run, kind);
    a->v = r ? resource_value(r) : NULL;
    return true;
}

/* --- the rest of the run ------------------------------------------------------------------ */

static bool wall(kl_isolate *i, const kl_message *m, answer *a)
{
    (void)m;
    if (i->run)
        a->v = kl_value_of_int(kl_run_wall(i->run));
    return i->run;
}

static bool believed(kl_isolate *i, const kl_message *m, answer *a)
{
    if (!i->run || !kl_message_text(m, 0) || !kl_message_text(m, 2))
        return false;
    a->v = kl_run_believed(i->run, kl_message_text(m, 0), kl_message_text(m, 1), kl_message_text(m, 2));
    return true;
}

static bool shared_get(kl_isolate *i, const kl_message *m, answer *a)
{
    if (!i->run || !kl_message_text(m, 0))
        return false;
    a->v = kl_shared_get(kl_run_shared(i->run), kl_message_text(m, 0));
    return true;
}

static bool shared_set(kl_isolate *i, const kl_message *m, answer *a)
{
    if (!i->run || !kl_message_text(m, 0))
        return false;
    a->status = kl_shared_set(kl_run_shared(i->run), kl_message_text(m, 0), kl_message_value(m, 1), &a->err);
    return true;
}

static bool shared_add(kl_isolate *i, const kl_message *m, answer *a)
{
    const kl_value *by = kl_message_value(m, 1);
    kl_type t = kl_value_type(by);
    if (!i->run || !kl_message_text(m, 0) || (t != KL_INT && t != KL_UINT && t != KL_DOUBLE))
        return false;
    a->status = kl_shared_add(kl_run_shared(i->run), kl_message_text(m, 0), by, &a->v, &a->err);
    return true;
}

static bool shared_swap(kl_isolate *i, const kl_message *m, answer *a)
{
    bool done = false;
    if (!i->run || !kl_message_text(m, 0))
        return false;
    a->status = kl_shared_swap(kl_run_shared(i->run), kl_message_text(m, 0), kl_message_value(m, 1),
        kl_message_value(m, 2), &done, &a->second, &a->err);
    a->v = kl_value_of_bool(done);
    return true;
}

static bool shared_names(kl_isolate *i, const kl_message *m, answer *a)
{
    if (!i->run || !kl_message_text(m, 0))
        return false;
    char **names = kl_shared_names(kl_run_shared(i->run), kl_message_text(m, 0));
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (char **n = names; *n; n++) {
        kl_build_str(b, *n);
        kl_free(*n);
    }
    kl_build_end(b);
    kl_free(names);
    a->v = kl_builder_done(b);
    return true;
}

static bool memo(kl_isolate *i, const kl_message *m, answer *a)
{
    (void)m;
    if (i->run)
        a->v = kl_run_memo(i->run);
    return i->run;
}

static bool memo_set(kl_isolate *i, const kl_message *m, answer *a)
{
    if (!i->run || !kl_message_text(m, 0))
        return false;
    a->status = kl_run_memo_set(i->run, kl_message_text(m, 0), kl_message_value(m, 1), &a->err);
    return true;
}

/* --- tells -------------------------------------------------------------------------------- */

static bool event(kl_isolate *i, const kl_message *m, answer *a)
{
    (void)a;
    const kl_value *n = kl_message_value(m, 0);
    kl_news news = {.type = kl_value_str_at(n, "type", NULL),
        .reason = kl_value_str_at(n, "reason", NULL),
        .note = kl_value_str_at(n, "note", NULL),
        .action = kl_value_str_at(n, "action", NULL),
        .about = kl_message_value(m, 1),
        .related = kl_message_value(m, 2)};
    if (!i->run || !news.type || !news.reason || !news.note)
        return false;
    kl_run_record(i->run, &news);
    return true;
}

static bool read_level(const kl_message *m, kl_log_level *level)
{
    int64_t n = -1;
    (void)kl_value_int(kl_message_value(m, 0), &n);
    *level = n >= KL_LOG_DEBUG && n <= KL_LOG_ERROR ? (kl_log_level)n : KL_LOG_OFF;
    return *level != KL_LOG_OFF && kl_message_text(m, 1);
}

static bool log_line(kl_isolate *i, const kl_message *m, answer *a)
{
    (void)a;
    kl_log_level level;
    if (!i->run || !read_level(m, &level) || !kl_message_text(m, 2) || !kl_message_text(m, 3))
        return false;
    kl_run_log_with(i->run, level, kl_message_text(m, 1), kl_message_text(m, 2), kl_message_text(m, 3));
    return true;
}

/* Logs a line of the process. Its `controller` is always the one that the process serves. */
static bool line(kl_isolate *i, const kl_message *m, answer *a)
{
    (void)a;
    kl_log_level level;
    if (!read_level(m, &level))
        return false;
    const char *fields = kl_message_text(m, 2);
    char *own = kl_sprintf("controller=%s", i->spec->name);
    bool known = fields && !strncmp(fields, own, strlen(own))
        && (fields[strlen(own)] == ' ' || !fields[strlen(own)]);
    char *all = known || !fields || !*fields ? kl_strdup(known ? fields : own)
                                             : kl_sprintf("%s %s", own, fields);
    kl_log_text(level, kl_message_text(m, 1), "", all);
    kl_free(own);
    kl_free(all);
    return true;
}

static bool decided(kl_isolate *i, const kl_message *m, answer *a)
{
    (void)a;
    if (!i->run || kl_value_type(kl_message_value(m, 0)) != KL_OBJECT)
        return false;
    kl_run_answer(i->run, kl_message_value(m, 0));
    return true;
}

static bool elided(kl_isolate *i, const kl_message *m, answer *a)
{
    (void)m, (void)a;
    if (i->run)
        kl_run_elided(i->run);
    return i->run;
}

static bool spent(kl_isolate *i, const kl_message *m, answer *a)
{
    int64_t what = -1;
    (void)a;
    if (!i->run || !kl_value_int(kl_message_value(m, 0), &what) || what < 0 || what >= KL_SPENT)
        return false;
    kl_run_spent(i->run, (kl_spent)what);
    return true;
}

static bool count(kl_isolate *i, const kl_message *m, answer *a)
{
    int64_t act = -1;
    kl_figure f = {.name = kl_message_text(m, 1),
        .labels = kl_message_value(m, 2),
        .by = kl_value_double(kl_message_value(m, 3), 0)};
    (void)a;
    if (!i->run || !f.name || !kl_value_int(kl_message_value(m, 0), &act) || act < 0 || act >= KL_FIGURE_ACTS)
        return false;
    f.act = (kl_figure_act)act;
    kl_run_count(i->run, &f);
    return true;
}

/* --- which is which ----------------------------------------------------------------------- */

static serve_fn *const serves[256] = {
    [KL_WORD_GET] = get,
    [KL_WORD_LIST] = list,
    [KL_WORD_RESOURCE] = resource,
    [KL_WORD_WALL] = wall,
    [KL_WORD_BELIEVED] = believed,
    [KL_WORD_SHARED_GET] = shared_get,
    [KL_WORD_SHARED_SET] = shared_set,
    [KL_WORD_SHARED_ADD] = shared_add,
    [KL_WORD_SHARED_SWAP] = shared_swap,
    [KL_WORD_SHARED_NAMES] = shared_names,
    [KL_WORD_MEMO] = memo,
    [KL_WORD_MEMO_SET] = memo_set,
    [KL_WORD_EVENT] = event,
    [KL_WORD_LOG] = log_line,
    [KL_WORD_LINE] = line,
    [KL_WORD_DECIDED] = decided,
    [KL_WORD_ELIDED] = elided,
    [KL_WORD_SPENT] = spent,
    [KL_WORD_COUNT] = count,
};

const kl_value *kl__isolate_deposed(kl_run *run) { return kl_value_of_bool(run && kl_run_deposed(run)); }

static kl_status send_answer(kl_isolate *i, const answer *a, kl_err *err)
{
    size_t n = a->is_list ? a->list.len : 2;
    const kl_value **v = kl_new_array(const kl_value *, n + ANSWER_VALUES);
    v[0] = kl_far_error(a->status, &a->err);
    v[1] = kl__isolate_deposed(i->run);
    if (a->is_list && n)
        memcpy(v + 2, a->list.v, n * sizeof *v);
    else if (!a->is_list) {
        v[2] = a->v;
        v[3] = a->second;
    }
    kl_status st = kl_wire_send(&i->wire, i->most, KL_WORD_ANSWER, v, a->status ? 2 : n + 2, err);
    kl_value_unref(v[0]);
    kl_value_unref(v[1]);
    kl_free(v);
    return st;
}

/* Sends an answer. One that is too large becomes an error of the request. */
static kl_status reply(kl_isolate *i, answer *a, kl_err *err)
{
    kl_status st = send_answer(i, a, err);
    if (st != KL_ETOOBIG)
        return st;
    kl_err_fini(err);
    answer refused = {0};
    refused.status = kl_fail(&refused.err, KL_ETOOBIG,
        "the response is larger than %zu MiB, the most that an isolated process receives at once: ask for "
        "less, or raise `memory`",
        i->most >> 20);
    st = send_answer(i, &refused, err);
    kl_err_fini(&refused.err);
    return st;
}

kl_status kl__isolate_serve(kl_isolate *i, const kl_message *m, kl_err *err)
{
    answer a = {0};
    serve_fn *serve = serves[m->what & 255];
    kl_status st = KL_OK;
    if (!serve || !serve(i, m, &a))
        st = kl_fail(err, KL_ESYNTAX, "invalid message %d", m->what);
    else if (m->what < KL_WORD_EVENT)
        st = reply(i, &a, err);
    kl_value_unref(a.v);
    kl_value_unref(a.second);
    if (a.is_list)
        kl_objects_fini(&a.list);
    kl_err_fini(&a.err);
    return st;
}
