/* audit.c - a record gathers data; at each stage that the policy does not omit, it becomes an event. */
#include "audit/audit.h"

#include <stdatomic.h>
#include <string.h>

#include "audit/log.h"
#include "audit/policy.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "model/time.h"
#include "rbac/attributes.h"
#include "wire/proto.h"

#define DECISION "authorization.k8s.io/decision"
#define REASON "authorization.k8s.io/reason"

struct kl_audit {
    _Atomic int refs; /* the owner's, and each record's: a request may end after its server */
    kl_clock *clock;
    kl_audit_log *log;
    const kl_value *policy; /* NULL: Metadata of everything */
};

typedef struct note {
    char *key, *value;
} note;

#define ID_MAX 64 /* further bytes of a client's Audit-Id are cut off, as in kube-apiserver */

struct kl_audit_record {
    kl_audit *a;
    kl_audit_verdict verdict;
    char *id;
    kl_time received; /* wall */
    bool nobody;      /* the user is unknown */
    char *uri, *agent, *verb, *source;
    char *resource, *ns, *name, *group, *version, *sub; /* resource NULL: none */
    char *object_uid, *object_version;                  /* what the sent object says */
    const kl_value *user, *worn;
    const kl_value *sent;   /* requestObject, or NULL */
    const kl_value *answer; /* responseObject, or NULL */
    const kl_value *status; /* a Status that was answered, or NULL */
    int code;
    note *notes;
    size_t nnotes;
};

/* ------------------------------------------------------------------ opening */

kl_status kl_audit_open(const char *log, const char *policy, kl_clock *clock, kl_audit **out, kl_err *err)
{
    const kl_value *rules = NULL;
    kl_audit_log *file = NULL;
    kl_status st = policy ? kl_audit_policy_read(policy, &rules, err) : KL_OK;
    if (!st)
        st = kl_audit_log_open(log, &file, err);
    if (st) {
        kl_value_unref(rules);
        return st;
    }
    kl_audit *a = kl_new(kl_audit);
    *a = (kl_audit){.clock = clock, .log = file, .policy = rules};
    atomic_init(&a->refs, 1);
    *out = a;
    return KL_OK;
}

void kl_audit_close(kl_audit *a)
{
    if (!a || atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
        return;
    kl_audit_log_close(a->log);
    kl_value_unref(a->policy);
    kl_free(a);
}

/* ------------------------------------------------------------------ an event */

static void put_text(kl_builder *b, const char *key, const char *text)
{
    if (text && *text)
        kl_build_kstr(b, key, text);
}

static void put_time(kl_builder *b, const char *key, kl_time wall)
{
    char text[KL_TIME_MAX];
    int64_t sec = wall / KL_SECONDS(1);
    kl_build_kstr(b, key, kl_time_format_micro(sec, (int32_t)(wall - sec * KL_SECONDS(1)), text));
}

static void put_object_ref(kl_builder *b, const kl_audit_record *r)
{
    if (!r->resource)
        return;
    kl_build_key(b, "objectRef");
    kl_build_object(b);
    put_text(b, "resource", r->resource);
    put_text(b, "namespace", r->ns);
    put_text(b, "name", r->name);
    put_text(b, "uid", r->object_uid);
    put_text(b, "apiGroup", r->group);
    put_text(b, "apiVersion", r->version);
    put_text(b, "resourceVersion", r->object_version);
    put_text(b, "subresource", r->sub);
    kl_build_end(b);
}

static void put_status(kl_builder *b, const kl_audit_record *r)
{
    static const char *const members[] = {"status", "message", "reason", "details"};
    kl_build_key(b, "responseStatus");
    kl_build_object(b);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_end(b);
    for (size_t i = 0; i < 4; i++) {
        const kl_value *v = kl_value_get(r->status, members[i]);
        if (v)
            kl_build_kvalue(b, members[i], v);
    }
    kl_build_kint(b, "code", r->code);
    kl_build_end(b);
}

static void put_notes(kl_builder *b, const kl_audit_record *r)
{
    if (!r->nnotes)
        return;
    kl_build_key(b, "annotations");
    kl_build_object(b);
    for (size_t i = 0; i < r->nnotes; i++)
        kl_build_kstr(b, r->notes[i].key, r->notes[i].value);
    kl_build_end(b);
}

/* Logs the event of that stage, unless the policy omits it. */
static void say(const kl_audit_record *r, kl_audit_stage stage)
{
    if (r->verdict.level == KL_AUDIT_NONE || r->verdict.omit[stage])
        return;
    bool whole = r->verdict.level == KL_AUDIT_REQUEST_RESPONSE && stage == KL_AUDIT_COMPLETE;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Event");
    kl_build_kstr(b, "apiVersion", "audit.k8s.io/v1");
    kl_build_kstr(b, "level", kl_audit_levels[r->verdict.level]);
    kl_build_kstr(b, "auditID", r->id);
    kl_build_kstr(b, "stage", kl_audit_stages[stage]);
    kl_build_kstr(b, "requestURI", r->uri);
    kl_build_kstr(b, "verb", r->verb);
    kl_build_key(b, "user");
    if (r->user)
        kl_build_value(b, r->user);
    else {
        kl_build_object(b);
        kl_build_end(b);
    }
    if (r->worn)
        kl_build_kvalue(b, "impersonatedUser", r->worn);
    if (r->source && *r->source) {
        kl_build_key(b, "sourceIPs");
        kl_build_array(b);
        kl_build_str(b, r->source);
        kl_build_end(b);
    }
    put_text(b, "userAgent", r->agent);
    put_object_ref(b, r);
    if (stage != KL_AUDIT_RECEIVED)
        put_status(b, r);
    if (stage != KL_AUDIT_RECEIVED && r->verdict.level >= KL_AUDIT_REQUEST && r->sent)
        kl_build_kvalue(b, "requestObject", r->sent);
    if (whole && r->answer)
        kl_build_kvalue(b, "responseObject", r->answer);
    put_time(b, "requestReceivedTimestamp", r->received);
    put_time(b, "stageTimestamp", stage == KL_AUDIT_RECEIVED ? r->received : kl_clock_wall(r->a->clock));
    put_notes(b, r);
    kl_build_end(b);
    const kl_value *event = kl_builder_done(b);
    char *line = kl_value_to_json(event);
    kl_audit_log_add(r->a->log, line, strlen(line));
    kl_free(line);
    kl_value_unref(event);
}

/* ------------------------------------------------------------------ the end of a request */

static const kl_value *without_managed_fields(const kl_value *o)
{
    const kl_value *items = kl_value_get(o, "items"), *meta = kl_value_get(o, "metadata");
    bool has = kl_value_get(meta, "managedFields") != NULL;
    if (!has && kl_value_type(items) != KL_ARRAY)
        return kl_value_ref(o);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(o); i++) {
        const char *key, *name;
        size_t n, len;
        const kl_value *v = kl_value_member(o, i, &key, &n);
        kl_build_key(b, key);
        if (v == meta && has) {
            kl_build_object(b);
            for (size_t k = 0; k < kl_value_len(meta); k++) {
                const kl_value *x = kl_value_member(meta, k, &name, &len);
                if (strcmp(name, "managedFields"))
                    kl_build_kvalue(b, name, x);
            }
            kl_build_end(b);
        } else if (v == items) {
            kl_build_array(b);
            for (size_t k = 0; k < kl_value_len(items); k++) {
                const kl_value *x = without_managed_fields(kl_value_item(items, k));
                kl_build_value(b, x);
                kl_value_unref(x);
            }
            kl_build_end(b);
        } else
            kl_build_value(b, v);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The part of an object that the policy keeps; a new reference. */
static const kl_value *shown(const kl_audit_record *r, const kl_value *o)
{
    return r->verdict.omit_managed_fields ? without_managed_fields(o) : kl_value_ref(o);
}

/* JSON, or protobuf of a built-in kind. */
static bool decoded(const char *body, size_t n, const kl_value **v)
{
    return !(
        kl_proto_is(body, n) ? kl_proto_decode(body, n, v, NULL, NULL) : kl_value_decode(body, n, v, NULL));
}

static void answered(void *arg, int code, const char *type, const void *body, size_t len, bool goes_on)
{
    kl_audit_record *r = arg;
    const kl_value *v = NULL;
    r->code = code;
    kl_value_unref(r->answer);
    kl_value_unref(r->status);
    r->answer = r->status = NULL;
    bool whole = r->resource && r->verdict.level == KL_AUDIT_REQUEST_RESPONSE;
    bool wanted = whole || code >= 400 || (r->resource && !strncmp(r->verb, "delete", 6));
    if (body && wanted && type && !strncmp(type, "application/", 12) && decoded(body, len, &v)) {
        const char *kind = kl_value_str_at(v, "kind", NULL);
        if (!r->resource || (kind && !strcmp(kind, "Status")))
            r->status = kl_value_ref(v);
        if (whole)
            r->answer = shown(r, v);
        kl_value_unref(v);
    }
    if (goes_on || r->nobody)
        say(r, KL_AUDIT_STARTED);
}

static void ended(void *arg)
{
    kl_audit_record *r = arg;
    if (r->code && !r->nobody)
        say(r, KL_AUDIT_COMPLETE);
    char *texts[] = {r->uri, r->agent, r->verb, r->source, r->resource, r->ns, r->name, r->group, r->version,
        r->sub, r->object_uid, r->object_version};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        kl_free(texts[i]);
    for (size_t i = 0; i < r->nnotes; i++) {
        kl_free(r->notes[i].key);
        kl_free(r->notes[i].value);
    }
    kl_free(r->notes);
    kl_free(r->id);
    kl_value_unref(r->user);
    kl_value_unref(r->worn);
    kl_value_unref(r->sent);
    kl_value_unref(r->answer);
    kl_value_unref(r->status);
    kl_audit_close(r->a);
    kl_free(r);
}

static const kl_httpd_witness witness = {answered, ended};

/* ------------------------------------------------------------------ the way there */

/* Reads the body of a patch or a deletion: a patch or options, not an object of the resource. */
static void read_sent(kl_audit_record *r, kl_httpd_request *http)
{
    size_t n;
    const char *body = kl_httpd_body(http, &n);
    bool patch = !strcmp(r->verb, "patch"), removal = !strncmp(r->verb, "delete", 6);
    const kl_value *v = NULL;
    if (!n || r->verdict.level < KL_AUDIT_REQUEST || !(patch || removal) || !decoded(body, n, &v))
        return;
    if (patch) {
        r->sent = v;
        return;
    }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "DeleteOptions");
    kl_build_kstr(b, "apiVersion", "meta.k8s.io/__internal"); /* as in kube-apiserver */
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t len;
        const kl_value *x = kl_value_member(v, i, &key, &len);
        if (strcmp(key, "kind") && strcmp(key, "apiVersion"))
            kl_build_kvalue(b, key, x);
    }
    kl_build_end(b);
    r->sent = kl_builder_done(b);
    kl_value_unref(v);
}

static void read_request(kl_audit_record *r, kl_httpd_request *http, const kl_rbac_request *q)
{
    r->uri = kl_strdup(kl_httpd_uri(http));
    r->agent = kl_strdup(kl_httpd_header(http, "User-Agent"));
    r->source = kl_httpd_source(http);
    r->verb = kl_strdup(q->verb);
    if (!q->path) {
        r->resource = kl_strdup(q->resource);
        r->ns = kl_strdup(q->ns);
        r->name = kl_strdup(q->name);
        r->group = kl_strdup(q->group);
        r->version = kl_strdup(q->version);
        r->sub = kl_strdup(q->sub);
    }
    read_sent(r, http);
}

kl_audit_record *kl_audit_attend(kl_audit *a, kl_httpd_request *http, const kl_value *user)
{
    kl_audit_record *r = a ? kl_httpd_attended(http) : NULL;
    if (!a || r)
        return r;
    kl__asked asked;
    kl__access_read(http, &asked);
    kl_audit_verdict verdict = kl_audit_policy_judge(a->policy, user, &asked.request);
    if (verdict.level != KL_AUDIT_NONE) {
        r = kl_new(kl_audit_record);
        r->a = a;
        atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
        r->verdict = verdict;
        r->nobody = !user;
        r->user = kl_value_ref(user);
        r->received = kl_clock_wall(a->clock);
        char made[KL_UUID_MAX];
        const char *mark = kl_httpd_mark(http);
        r->id = kl_strndup(mark ? mark : kl_uuid_new(made), mark ? ID_MAX : sizeof made);
        read_request(r, http, &asked.request);
        kl_httpd_attend(http, &witness, r);
        if (user)
            say(r, KL_AUDIT_RECEIVED);
    }
    kl__access_read_fini(&asked);
    return r;
}

void kl_audit_impersonated(kl_audit_record *r, const kl_value *user)
{
    if (r && !r->worn && user != r->user)
        r->worn = kl_value_ref(user);
}

void kl_audit_decided(kl_audit_record *r, bool allowed, const char *why)
{
    kl_audit_annotate(r, DECISION, allowed ? "allow" : "forbid");
    kl_audit_annotate(r, REASON, why);
}

void kl_audit_requested(kl_audit_record *r, const kl_value *o)
{
    if (!r || r->sent || !strcmp(r->verb, "patch"))
        return;
    const kl_value *meta = kl_value_get(o, "metadata");
    const char *name = kl_value_str_at(meta, "name", NULL), *uid = kl_value_str_at(meta, "uid", NULL),
               *version = kl_value_str_at(meta, "resourceVersion", NULL);
    if (!r->name && name && *name)
        r->name = kl_strdup(name);
    if (!r->object_uid)
        r->object_uid = kl_strdup(uid);
    if (!r->object_version)
        r->object_version = kl_strdup(version);
    if (r->verdict.level >= KL_AUDIT_REQUEST)
        r->sent = shown(r, o);
}

static note *find_note(kl_audit_record *r, const char *key)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (!strcmp(r->notes[i].key, key))
            return &r->notes[i];
    return NULL;
}

void kl_audit_annotate(kl_audit_record *r, const char *key, const char *value)
{
    if (!r || find_note(r, key))
        return;
    r->notes = kl_realloc(r->notes, (r->nnotes + 1) * sizeof *r->notes);
    r->notes[r->nnotes++] = (note){kl_strdup(key), kl_strdup(value ? value : "")};
}

/* Whether `word` is in the list, whose words are separated by ", ". */
static bool among(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p; p = strstr(p, ", ") ? strstr(p, ", ") + 2 : NULL)
        if (!strncmp(p, word, n) && (!p[n] || !strncmp(p + n, ", ", 2)))
            return true;
    return false;
}

void kl_audit_annotate_also(kl_audit_record *r, const char *key, const char *value)
{
    note *n = r ? find_note(r, key) : NULL;
    if (!n) {
        kl_audit_annotate(r, key, value);
        return;
    }
    if (among(n->value, value))
        return;
    char *both = kl_sprintf("%s, %s", n->value, value);
    kl_free(n->value);
    n->value = both;
}
