/* openapi.c - one check's way to a schema:
 *
 *   look -> is the index (/openapi/v3: a hash per group version) there? --no--> fetch it, come back
 *        -> does it have the group version? --no--> ask for it again, once and now and then; the body passes
 *        -> is the schema of that hash in memory? --no--> on the shelf? --no--> fetch it, come back
 *        -> check --fault, and the index is not from just now--> ask whether the index is still good, come back
 *
 * Later checks wait for a running fetch. Only the schema of a document is kept (model/schema.h). */
#include "client/openapi.h"

#include <string.h>
#include "base/heap.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/schema.h"
#include "client/client_impl.h"

#define FETCH_TIMEOUT KL_SECONDS(32)
#define FAULT_FRESH KL_SECONDS(2) /* an index this young counts as current */
#define INDEX_FRESH                                                                                          \
    KL_MINUTES(10) /* the age at which the index is requested again, so that conversions see changed CRDs */
/* The next try after a server without OpenAPI v3, or without access to it, comes after this time. */
#define REFUSED_FRESH KL_MINUTES(5)
/* Between two requests for a group version that the index lacks: a CRD is added with a delay. */
#define ABSENT_FIRST KL_SECONDS(1)
#define ABSENT_MAX KL_MINUTES(1)
#define INDEX_SHELVED "openapi/index"
#define UNTAGGED "-" /* on the shelf: kube-apiserver gives its index no ETag */

typedef struct group { /* one group version */
    /* the document's URL in the index; contains the hash. NULL: the index does not have it */
    char *url;
    /* without url: when the index may be asked for again because of it */
    kl_time ask_at;
    int asks;          /* failed attempts */
    char *loaded;      /* the url that `schema` came from; NULL: nothing yet */
    kl_schema *schema; /* NULL with `loaded`: the document has none */
    bool loading;      /* calls thread */
} group;

typedef struct job {
    kl_list link;
    kl__openapi *o;
    const kl_op *op;
    const kl_resource *r;
    kl__checked_fn *done;
    void *arg;
    bool asked_again;
    group *waits; /* the group whose document it waits for; NULL: it waits for the index */
} job;

struct kl__openapi {
    kl_client *c;
    /* calls thread */
    kl_shelf *shelf;
    kl_time ttl;
    kl_list jobs; /* checks that wait for a running fetch */
    bool indexing, looked;
    char *etag; /* of the index */

    kl_mutex mu;        /* of what follows */
    kl_map *groups;     /* "apis/apps/v1" -> group * */
    kl_time index_at;   /* when the server last confirmed it; -1: never, or dropped */
    kl_time refused_at; /* -1: it was not */
};

/* --- what a body is ----------------------------------------------------------------------- */

bool kl__openapi_wants(const kl_op *op)
{
    if (!op->check || !op->body)
        return false;
    if (op->verb == KL_CREATE || op->verb == KL_UPDATE || op->verb == KL_APPLY)
        return true;
    return op->verb == KL_PATCH && op->patch_type != KL_PATCH_JSON
        && (!op->subresource || !strcmp(op->subresource, "status"));
}

static bool is_strict(const kl_op *op)
{
    return !op->field_validation || !strcmp(op->field_validation, "Strict");
}

/* The kind of the body, or of its resource. */
typedef struct identity {
    char *group, *version;
    const char *kind;
} identity;

static void identify(const kl_op *op, const kl_resource *r, identity *id)
{
    const char *api = op->verb == KL_PATCH ? NULL : kl_value_str_at(op->body, "apiVersion", NULL),
               *kind = kl_value_str_at(op->body, "kind", NULL);
    if (api && kind)
        kl_api_version_split(api, &id->group, &id->version);
    else {
        id->group = kl_strdup(r->group);
        id->version = kl_strdup(r->version);
    }
    id->kind = api && kind ? kind : r->kind;
}

static kl_status check_by(
    const kl_schema *s, const kl_op *op, const kl_resource *r, const kl_value **out, kl_err *err)
{
    identity id;
    identify(op, r, &id);
    kl_schema_question q = {.group = id.group,
        .version = id.version,
        .kind = id.kind,
        .use = op->verb == KL_PATCH ? KL_SCHEMA_PATCH : KL_SCHEMA_OBJECT,
        .strict = is_strict(op)};
    kl_status st = kl_schema_check(s, &q, op->body, out, err);
    if (st == KL_ENOTFOUND) { /* a subresource's own kind, say */
        kl_err_fini(err);
        *out = kl_value_ref(op->body);
        st = KL_OK;
    } else if (st) {
        char *kind = kl_gvk_text(id.group, id.version, id.kind);
        const char *name = op->name ? op->name : kl_value_str_at(op->body, "metadata", "name", NULL);
        kl_err_prefix(err, "%s %s%s%s", kl_verb_name(op->verb), kind, name ? " " : "", name ? name : "");
        kl_free(err->reason);
        err->reason = kl_strdup(KL_REASON_SCHEMA);
        kl_free(kind);
    }
    kl_free(id.group);
    kl_free(id.version);
    return st;
}

/* --- what is in memory -------------------------------------------------------------------- */

static kl_time now(const kl__openapi *o) { return kl_clock_now(o->c->clock); }

static bool young_locked(const kl__openapi *o, kl_time since, kl_time fresh) KL_REQUIRES(o->mu)
{
    return since >= 0 && now(o) - since < fresh;
}

static group *group_locked(kl__openapi *o, const kl_resource *r) KL_REQUIRES(o->mu)
{
    char *path = *r->group ? kl_sprintf("apis/%s/%s", r->group, r->version)
                           : kl_sprintf("api/%s", r->version);
    group *g = kl_map_get(o->groups, path);
    if (!g)
        kl_map_set(o->groups, path, g = kl_new(group));
    kl_free(path);
    return g;
}

static bool is_loaded(const group *g) { return g->loaded && !strcmp(g->loaded, g->url); }

typedef enum found { PASS, SCHEMA, NO_INDEX, NO_DOCUMENT, ABSENT } found;

/* SCHEMA: *s is a new reference. NO_DOCUMENT, ABSENT: *g is the group. */
static found look(kl__openapi *o, const kl_resource *r, kl_schema **s, group **g)
{
    found f = SCHEMA;
    kl_lock(&o->mu);
    *g = group_locked(o, r);
    if (young_locked(o, o->refused_at, REFUSED_FRESH))
        f = PASS;
    else if (!young_locked(o, o->index_at, INDEX_FRESH))
        f = NO_INDEX;
    else if (!(*g)->url)
        f = now(o) >= (*g)->ask_at ? ABSENT : PASS;
    else if (!is_loaded(*g))
        f = NO_DOCUMENT;
    else if (!(*g)->schema)
        f = PASS;
    else
        *s = kl_schema_ref((*g)->schema);
    kl_unlock(&o->mu);
    return f;
}

kl_status kl__openapi_try(kl__openapi *o, const kl_op *op, const kl_resource *r, const kl_value **out)
{
    kl_schema *s = NULL;
    group *g;
    found f = look(o, r, &s, &g);
    if (f == PASS) {
        *out = kl_value_ref(op->body);
        return KL_OK;
    }
    kl_err err = KL_ERR_INIT;
    kl_status st = f == SCHEMA ? check_by(s, op, r, out, &err) : KL_EAGAIN;
    kl_schema_unref(s);
    kl_err_fini(&err);
    return st ? KL_EAGAIN : KL_OK;
}

/* --- jobs --------------------------------------------------------------------------------- */

static void job_step(job *j);

static void job_end(job *j, kl_status st, const kl_value *body, kl_err *err)
{
    j->done(j->arg, st, body, err);
    kl_err_fini(err);
    kl_free(j);
}

static void job_pass(job *j)
{
    kl_err none = KL_ERR_INIT;
    job_end(j, KL_OK, kl_value_ref(j->op->body), &none);
}

/* Continues the waiting checks; `let_pass`: without a schema. */
static void wake(kl__openapi *o, const group *g, bool let_pass)
{
    kl_list ready, rest;
    kl_list_init(&ready);
    kl_list_init(&rest);
    for (kl_list *l; (l = kl_list_shift(&o->jobs));)
        kl_list_push(KL_CONTAINER(l, job, link)->waits == g ? &ready : &rest, l);
    for (kl_list *l; (l = kl_list_shift(&rest));)
        kl_list_push(&o->jobs, l);
    for (kl_list *l; (l = kl_list_shift(&ready));) {
        job *j = KL_CONTAINER(l, job, link);
        if (let_pass)
            job_pass(j);
        else
            job_step(j);
    }
}

/* --- the index ---------------------------------------------------------------------------- */

static void group_free(void *v)
{
    group *g = v;
    kl_schema_unref(g->schema);
    kl_free(g->url);
    kl_free(g->loaded);
    kl_free(g);
}

static void read_index(kl__openapi *o, const kl_value *body)
{
    const kl_value *paths = kl_value_get(body, "paths");
    kl_lock(&o->mu);
    for (size_t i = 0; i < kl_value_len(paths); i++) {
        const char *path;
        size_t n;
        const char *url = kl_value_str_at(kl_value_member(paths, i, &path, &n), "serverRelativeURL", NULL);
        if (!url || *url != '/')
            continue;
        group *g = kl_map_get(o->groups, path);
        if (!g)
            kl_map_set(o->groups, path, g = kl_new(group));
        kl_free(g->url);
        g->url = kl_strdup(url);
        g->asks = 0;
    }
    kl_unlock(&o->mu);
}

static void set_index_at(kl__openapi *o, kl_time at)
{
    kl_lock(&o->mu);
    o->index_at = at;
    kl_unlock(&o->mu);
}

static void refused(kl__openapi *o, kl_status st, kl_err *err)
{
    kl_debug("writes are not checked against schemas: the server does not publish them", "error=%s",
        kl_log_quoted(kl_err_message(err)));
    if (st != KL_ENOTFOUND && st != KL_EFORBIDDEN && st != KL_EAUTH && st != KL_EREJECTED && st != KL_ESERVER)
        return; /* no answer: the write itself will fail */
    kl_lock(&o->mu);
    o->refused_at = now(o);
    kl_unlock(&o->mu);
}

static void on_index(void *arg, kl_status st, int code, const kl_value *body, const char *etag, kl_err *err)
{
    kl__openapi *o = arg;
    o->indexing = false;
    if (!st && code != 304 && kl_value_type(kl_value_get(body, "paths")) != KL_OBJECT)
        st = kl_fail(err, KL_ESERVER, "GET /openapi/v3: the answer has no paths");
    if (st) {
        refused(o, st, err);
        wake(o, NULL, true);
        return;
    }
    kl_time wall = kl_clock_wall(o->c->clock);
    if (code == 304)
        kl_shelf_touch(o->shelf, INDEX_SHELVED, wall);
    else {
        read_index(o, body);
        kl_free(o->etag);
        o->etag = etag ? kl_strdup(etag) : NULL;
        kl_buf text = KL_BUF_INIT;
        if (kl_shelf_dir(o->shelf) && !kl_value_encode(body, &text))
            (void)kl_shelf_put(o->shelf, INDEX_SHELVED, wall, etag ? etag : UNTAGGED, text.data, text.len);
        kl_buf_fini(&text);
    }
    set_index_at(o, now(o));
    wake(o, NULL, false);
}

/* True: the shelf's copy is young enough to be used. */
static bool look_on_shelf(kl__openapi *o)
{
    kl_buf text = KL_BUF_INIT;
    const kl_value *body = NULL;
    kl_time age = 0;
    o->looked = true;
    bool there = kl_shelf_get(o->shelf, INDEX_SHELVED, kl_clock_wall(o->c->clock), &text, &o->etag, &age)
        && !kl_value_decode(kl_buf_str(&text), text.len, &body, NULL);
    if (there)
        read_index(o, body);
    if (o->etag && !strcmp(o->etag, UNTAGGED)) {
        kl_free(o->etag);
        o->etag = NULL;
    }
    bool young = there && age < o->ttl;
    if (young) /* too old to report faults from it without asking the server */
        set_index_at(o, now(o) - FAULT_FRESH > 0 ? now(o) - FAULT_FRESH : 0);
    kl_value_unref(body);
    kl_buf_fini(&text);
    return young;
}

static void fetch_index(kl__openapi *o)
{
    if (o->indexing)
        return;
    o->indexing = true;
    kl__client_get_tagged(o->c, "/openapi/v3", "application/json", FETCH_TIMEOUT, o->etag, on_index, o);
}

/* --- documents ---------------------------------------------------------------------------- */

static char *shelf_name(const char *url)
{
    const char *at = strncmp(url, "/openapi/v3/", 12) ? url + 1 : url + 12;
    return kl_sprintf("openapi/%.*s.schema", (int)strcspn(at, "?"), at);
}

static void set_schema(kl__openapi *o, group *g, const char *url, kl_schema *taken)
{
    kl_lock(&o->mu);
    kl_schema *old = g->schema;
    kl_free(g->loaded);
    g->loaded = kl_strdup(url);
    g->schema = taken;
    kl_unlock(&o->mu);
    kl_schema_unref(old);
}

static bool load_from_shelf(kl__openapi *o, group *g)
{
    char *name = shelf_name(g->url), *tag = NULL;
    kl_buf bytes = KL_BUF_INIT;
    kl_schema *s = NULL;
    bool good = kl_shelf_get(o->shelf, name, kl_clock_wall(o->c->clock), &bytes, &tag, NULL)
        && !strcmp(tag, g->url) && !kl_schema_load(bytes.data, bytes.len, &s, NULL);
    if (good)
        set_schema(o, g, g->url, s);
    kl_buf_fini(&bytes);
    kl_free(name);
    kl_free(tag);
    return good;
}

typedef struct errand {
    kl__openapi *o;
    group *g;
    char *url;
} errand;

static void on_document(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    errand *e = arg;
    kl__openapi *o = e->o;
    kl_schema *s = NULL;
    (void)code;
    e->g->loading = false;
    if (!st)
        st = kl_schema_read(body, &s, err);
    if (st)
        kl_debug("the schema of a group version cannot be read; its objects are not checked",
            "url=%s error=%s", e->url, kl_log_quoted(kl_err_message(err)));
    else {
        size_t n;
        char *name = shelf_name(e->url);
        const void *bytes = kl_schema_bytes(s, &n);
        (void)kl_shelf_put(o->shelf, name, kl_clock_wall(o->c->clock), e->url, bytes, n);
        kl_debug("schemas are known", "url=%s kinds=%zu bytes=%zu", e->url, kl_schema_kinds(s), n);
        kl_free(name);
    }
    bool answered = !st || st == KL_ENOTFOUND || st == KL_EFORBIDDEN || st == KL_ESYNTAX || st == KL_ETOOBIG;
    if (answered)
        set_schema(o, e->g, e->url, s);
    else
        set_index_at(o, -1); /* the hash in the index may be outdated */
    group *g = e->g;
    kl_free(e->url);
    kl_free(e);
    wake(o, g, !answered);
}

static void fetch_document(kl__openapi *o, group *g)
{
    if (g->loading)
        return;
    g->loading = true;
    errand *e = kl_new(errand);
    *e = (errand){o, g, kl_strdup(g->url)};
    kl__client_get(o->c, e->url, "application/json", FETCH_TIMEOUT, on_document, e);
}

/* --- a check's steps ---------------------------------------------------------------------- */

static void job_wait(job *j, group *g)
{
    j->waits = g;
    kl_list_push(&j->o->jobs, &j->link);
}

static bool index_is_from_just_now(kl__openapi *o)
{
    kl_lock(&o->mu);
    bool young = young_locked(o, o->index_at, FAULT_FRESH);
    kl_unlock(&o->mu);
    return young;
}

static void job_check(job *j, const kl_schema *s)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *out = NULL;
    kl_status st = check_by(s, j->op, j->r, &out, &err);
    if (st && !j->asked_again && !index_is_from_just_now(j->o)) {
        kl_err_fini(&err);
        j->asked_again = true;
        job_wait(j, NULL);
        fetch_index(j->o);
    } else
        job_end(j, st, out, &err);
}

/* The group version may be newer than the index; a check that already waited for a fresh one does not fetch
 * again. */
static void job_ask_for(job *j, group *g)
{
    kl__openapi *o = j->o;
    kl_lock(&o->mu);
    kl_time wait = ABSENT_FIRST << (g->asks < 6 ? g->asks : 6);
    g->asks++;
    g->ask_at = now(o) + (wait < ABSENT_MAX ? wait : ABSENT_MAX);
    kl_unlock(&o->mu);
    if (j->asked_again) {
        job_pass(j);
        return;
    }
    j->asked_again = true;
    job_wait(j, NULL);
    fetch_index(o);
}

static void job_step(job *j)
{
    kl__openapi *o = j->o;
    kl_schema *s = NULL;
    group *g;
    if (!o->looked)
        (void)look_on_shelf(o);
    found f = look(o, j->r, &s, &g);
    if (f == NO_DOCUMENT && !g->loading && load_from_shelf(o, g))
        f = look(o, j->r, &s, &g);
    if (f == PASS)
        job_pass(j);
    else if (f == SCHEMA)
        job_check(j, s);
    else if (f == ABSENT)
        job_ask_for(j, g);
    else if (f == NO_INDEX) {
        j->asked_again = true;
        job_wait(j, NULL);
        fetch_index(o);
    } else {
        job_wait(j, g);
        fetch_document(o, g);
    }
    kl_schema_unref(s);
}

void kl__openapi_check(kl__openapi *o, const kl_op *op, const kl_resource *r, kl__checked_fn *done, void *arg)
{
    job *j = kl_new(job);
    *j = (job){.o = o, .op = op, .r = r, .done = done, .arg = arg};
    kl_list_init(&j->link);
    job_step(j);
}

/* --- life --------------------------------------------------------------------------------- */

kl__openapi *kl__openapi_new(kl_client *c, kl_shelf *shelf, kl_time ttl)
{
    kl__openapi *o = kl_new(kl__openapi);
    o->c = c;
    o->shelf = shelf;
    o->ttl = ttl;
    o->index_at = o->refused_at = -1;
    o->groups = kl_map_new();
    kl_list_init(&o->jobs);
    kl_mutex_init(&o->mu);
    return o;
}

void kl__openapi_free(kl__openapi *o)
{
    if (!o)
        return;
    kl_map_free(o->groups, group_free);
    kl_free(o->etag);
    kl_mutex_fini(&o->mu);
    kl_free(o);
}

void kl__openapi_forget(kl__openapi *o)
{
    kl_lock(&o->mu);
    o->index_at = o->refused_at = -1;
    kl_unlock(&o->mu);
}
