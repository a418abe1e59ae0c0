/* rest.c - turns a request into a call: path to resource, body (body.c) to value, verb to function; and its
 * result into a reply (reply.c).
 *
 *   /api/v1/... and /apis/GROUP/VERSION/...:  [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]
 *
 * The lock is held from routing to reply; nothing in between waits. */
#include "server/rest.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "rbac/attributes.h"
#include "rbac/tokens.h"
#include "schema/status.h"
#include "server/admit.h"
#include "server/body.h"
#include "server/options.h"
#include "server/durable.h"
#include "server/reply.h"
#include "server/review.h"
#include "verbs/admission.h"
#include "verbs/collect.h"
#include "verbs/convert.h"
#include "verbs/scale.h"
#include "verbs/subresource.h"

/* ------------------------------------------------------------------ paths */

#define SEGMENTS_MAX 10

/* The words of a path, at most SEGMENTS_MAX + 1 of them; some may be empty. `path` is cut in place. */
static size_t split(char *path, char *words[SEGMENTS_MAX + 1])
{
    size_t n = 0, len = strlen(path);
    while (len && path[len - 1] == '/')
        path[--len] = '\0';
    for (char *rest = *path ? path + 1 : NULL; rest && n <= SEGMENTS_MAX;)
        words[n++] = strsep(&rest, "/");
    return n;
}

/* Fills in kind, namespace, name and subresource; false for an unknown path. */
static bool find(kl__request *r, char **w, size_t n)
{
    kl_server *s = r->s;
    kl__call *c = &r->call;
    const char *group = "", *version;
    size_t i;
    if (n >= 2 && !strcmp(w[0], "api")) {
        version = w[1];
        i = 2;
    } else if (n >= 3 && !strcmp(w[0], "apis")) {
        group = w[1];
        version = w[2];
        i = 3;
    } else
        return false;
    if (!kl__kinds_has_group(s->world.kinds, group, version))
        return false;
    r->watches = n > i && !strcmp(w[i], "watch");
    i += r->watches;
    bool scoped = n > i + 2 && !strcmp(w[i], "namespaces");
    if (scoped && !*group && n == i + 3
        && kl__kind_sub(kl__kinds_get(s->world.kinds, "", "v1", "namespaces"), w[i + 2]))
        /* namespaces/NS/status is a subresource, not a resource */
        scoped = false;
    if (scoped) { /* an empty namespace means all */
        c->ns = *w[i + 1] ? w[i + 1] : NULL;
        i += 2;
    }
    c->kind = n > i ? kl__kinds_get(s->world.kinds, group, version, w[i]) : NULL;
    if (!c->kind)
        return false;
    c->name = n > i + 1 ? w[i + 1] : NULL;
    c->sub = n > i + 2 ? w[i + 2] : NULL;
    r->nowhere = c->kind->namespaced && c->name && scoped && !c->ns;
    if (!r->nowhere && (c->kind->namespaced ? c->name && !c->ns : c->ns != NULL))
        return false;
    if (c->sub && !*c->sub)
        return false;
    if (r->watches) {
        r->watched = c->name;
        c->name = NULL;
        return !c->sub;
    }
    if (c->sub && !kl__kind_sub(c->kind, c->sub))
        return c->kind->custom; /* check_verb refuses it */
    return n <= i + 3 || !strcmp(c->sub, "proxy");
}

/* ------------------------------------------------------------------ verbs */

static const char *verb_of(const char *method, bool named)
{
    if (!strcmp(method, "GET"))
        return named ? "get" : "list";
    if (!strcmp(method, "POST"))
        return named ? NULL : "create";
    if (!strcmp(method, "PUT"))
        return named ? "update" : NULL;
    if (!strcmp(method, "PATCH"))
        return named ? "patch" : NULL;
    if (!strcmp(method, "DELETE"))
        return named ? "delete" : "deletecollection";
    return NULL;
}

kl_status kl__fail_method(kl_err *err)
{
    return kl__api_fail(err, 405, "MethodNotAllowed", kl_value_empty(KL_OBJECT),
        "the server does not allow this method on the requested resource");
}

/* A name in a path may not lead elsewhere. */
static kl_status check_segment(const char *name, kl_err *err)
{
    if (!name || (strcmp(name, ".") && strcmp(name, "..") && !strchr(name, '%')))
        return KL_OK;
    return kl__fail_bad_request(err, "Name parameter invalid: \"%s\": may not %s '%s'", name,
        strchr(name, '%') ? "contain" : "be", strchr(name, '%') ? "%" : name);
}

/* Whether any method is served at a path of this form: of one object, of one namespace, of all. */
static bool is_routed(const kl__call *c)
{
    static const char *const one[] = {"get", "update", "patch", "delete", NULL},
                             *const some[] = {"list", "create", "deletecollection", NULL},
                             *const all[] = {"list", NULL};
    const char *const *verb = c->name ? one : c->kind->namespaced && !c->ns ? all : some;
    while (*verb && !kl__kind_has_verb(c->kind, *verb))
        verb++;
    return c->sub || *verb;
}

/* Fails with 404 or 405 unless the resource, or its subresource, has the verb. */
static kl_status check_verb(const kl__call *c, const char *method, const char **verb, kl_err *err)
{
    *verb = c->sub && !strcmp(method, "POST") ? "create" : verb_of(method, c->name != NULL);
    if (c->sub && !kl__kind_sub(c->kind, c->sub))
        return kl__fail_not_found(err, c->kind, c->name);
    bool proxy = c->sub && !strcmp(c->sub, "proxy"); /* takes any method */
    if (proxy)
        *verb = "get";
    bool known = *verb != NULL;
    if (known && c->sub && !proxy)
        known = kl__words_have(kl__kind_sub(c->kind, c->sub)->verbs, *verb);
    else if (known && !proxy)
        known = kl__kind_has_verb(c->kind, *verb);
    if (known && c->kind->namespaced && !c->ns && !c->name && strcmp(*verb, "list"))
        known = false;
    if (!is_routed(c))
        return kl__api_fail(err, 404, "NotFound", kl_value_empty(KL_OBJECT),
            "the server could not find the requested resource");
    if (!known)
        return kl__fail_method(err);
    if (c->sub && !kl__rest_connects(c) && !kl__sub_served(c->sub))
        return kl__api_fail(err, 501, "NotImplemented", NULL,
            "the embedded API server does not serve %s/%s yet", c->kind->plural, c->sub);
    return check_segment(c->name, err);
}

static bool is_forced(kl_httpd_request *http)
{
    const char *force = kl_httpd_query(http, "force");
    return force && !strcmp(force, "true");
}

static kl_status patch(kl__call *c, kl_httpd_request *http, const kl_value **out, int *code, kl_err *err)
{
    kl__patch type;
    const kl_value *body = NULL;
    kl_status st = kl__read_patch(c, http, &type, &body, err);
    if (st && kl__status_code(err) == 400 && type != KL_PATCH_APPLY && kl__verb_get(c, out, NULL))
        st = kl__fail_not_found(err, c->kind, c->name);
    *out = NULL;
    if (!st)
        st = kl__verb_patch(c, type, is_forced(http), body, out, code, err);
    kl_value_unref(body);
    return st;
}

/* A call of NAME/scale, whose objects are Scales for every kind. */
static kl_status run_scale(
    kl__call *c, const char *verb, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    const kl_value *body = NULL;
    kl__kind kind = kl__scale_kind(c);
    kl__call as = *c;
    as.kind = &kind;
    kl_status st;
    if (!strcmp(verb, "get"))
        st = kl__scale_get(c, out, err);
    else if (!strcmp(verb, "update")) {
        st = kl__read_object(&as, http, &body, err);
        if (!st)
            st = kl__scale_update(c, body, out, err);
    } else {
        kl__patch type;
        st = kl__read_patch(c, http, &type, &body, err);
        if (!st)
            st = kl__scale_patch(c, type, is_forced(http), body, out, err);
    }
    kl_value_unref(body);
    return st;
}

/* A POST below an object, whose body has its own kind. */
static kl_status run_create_below(kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    const kl_value *body = NULL;
    kl_status st = kl__read_object(c, http, &body, err);
    if (!st)
        st = kl__sub_create(c, body, out, err);
    if (st && err->retry_after_ns)
        kl_buf_printf(c->warnings, "Retry-After: %lld\r\n", (long long)(err->retry_after_ns / KL_SECONDS(1)));
    kl_value_unref(body);
    return st;
}

/* Runs a call of a subresource that has its own kind. False: any other call. *code: the HTTP status of a
 * success. */
static bool run_below(kl__call *c, const char *verb, kl_httpd_request *http, const kl_value **out, int *code,
    kl_status *st, kl_err *err)
{
    bool scale = c->sub && !strcmp(c->sub, "scale");
    if (kl__rest_connects(c)) {
        *st = kl__rest_connect(c, http, err);
        return true;
    }
    if (!scale && (!kl__sub_creates(c) || strcmp(verb, "create")))
        return false;
    *code = scale ? 200 : 201;
    *st = scale ? run_scale(c, verb, http, out, err) : run_create_below(c, http, out, err);
    return true;
}

/* A get may ask for a state that is not older than a version. */
static kl_status check_version(const kl__call *c, kl_httpd_request *http, kl_err *err)
{
    const char *text = c->sub ? NULL : kl_httpd_query(http, "resourceVersion");
    uint64_t rv;
    kl_status st = text && *text ? kl__read_version(text, &rv, err) : KL_OK;
    if (!st && text && *text && rv > kl__store_rv(c->w->store))
        st = kl__fail_too_new(c, rv, err);
    return st;
}

/* Runs one call; true when it has replied itself. */
static bool run(kl__request *r, const char *verb, const kl_show_form *form, const kl_value **out, int *code,
    kl_status *st, kl_err *err)
{
    kl__call *c = &r->call;
    kl_httpd_request *http = r->http;
    const kl_value *body = NULL;
    bool replied = false;
    *code = 200;
    if (!strcmp(verb, "get")) {
        *st = check_version(c, http, err);
        if (!*st)
            *st = kl__verb_see(c, out, err);
    } else if (!strcmp(verb, "list")) {
        kl__rest_list(r, form);
        replied = true;
    } else if (!strcmp(verb, "create")) {
        *st = kl__read_object(c, http, &body, err);
        replied = !*st && kl__review(c, body, http);
        if (!*st && !replied)
            *st = kl__verb_create(c, body, out, err);
        *code = 201;
    } else if (!strcmp(verb, "update")) {
        *st = kl__read_object(c, http, &body, err);
        if (!*st)
            *st = kl__verb_update(c, body, out, code, err);
    } else if (!strcmp(verb, "patch")) {
        *st = patch(c, http, out, code, err);
    } else {
        *st = kl__read_delete_options(c, http, &body, err);
        if (!*st && !strcmp(verb, "delete"))
            *st = kl__verb_delete(c, body, out, err);
        else if (!*st) {
            kl__rest_delete_collection(r, form, body);
            replied = true;
        }
    }
    kl_value_unref(body);
    return replied;
}

static bool watching(const kl__request *r, const char *verb)
{
    return !strcmp(verb, "list") && (r->watches || kl__query_truth(r->http, "watch"));
}

static kl_show_what what_of(const kl__request *r, const char *verb)
{
    return watching(r, verb) ? KL_SHOW_WATCH : !strcmp(verb, "list") ? KL_SHOW_LIST : KL_SHOW_ONE;
}

static bool writes(const char *verb) { return strcmp(verb, "get") && strcmp(verb, "list"); }

/* The answers of webhooks to a call. The request keeps them when it begins again. */
static kl__admission *admission_of(kl__request *r, const char *verb)
{
    kl__call *c = &r->call;
    kl__admission *a = kl_httpd_user(r->http);
    if (a)
        kl__admission_rewind(a);
    else if (writes(verb) || c->kind->conversion)
        kl_httpd_set_user(r->http, a = kl__admission_new(kl__world_wall(c->w), r->plan.stale));
    if (a)
        r->plan.stale = kl__admission_stale(a);
    c->conversions = kl__admission_conversions(c->w, a);
    return a;
}

static void reply_failed(kl_httpd_request *http, kl_buf *warnings, const kl_err *err)
{
    if (err->http_code == 504)
        kl_buf_puts(warnings, "Retry-After: 1\r\n");
    kl__reply_error(http, warnings->len ? kl_buf_str(warnings) : NULL, err);
}

/* Serves a request for objects. True: it has replied. False: a webhook must be called first (admission.h). */
static bool serve_objects(kl__request *r)
{
    kl__call *c = &r->call;
    kl_httpd_request *http = r->http;
    kl_err err = KL_ERR_INIT;
    kl_buf warnings = KL_BUF_INIT, repeated = KL_BUF_INIT;
    kl_show_form form;
    const kl_value *out = NULL;
    const char *verb;
    char *manager = NULL;
    int code = 200;
    bool replied = false, below = false;
    c->warnings = &warnings;
    c->repeated = &repeated;
    kl_status st = check_verb(c, kl_httpd_method(http), &verb, &err);
    if (!st && c->name && !*c->name)
        st = kl__fail_bad_request(&err, "name must be provided");
    else if (!st && r->nowhere)
        st = kl__fail_bad_request(&err, "Namespace parameter required.");
    if (!st && c->kind->deprecation)
        kl__call_warn(c, "%s", c->kind->deprecation);
    if (!st && r->watches && strcmp(verb, "list") != 0)
        st = kl__fail_method(&err);
    if (!st && !strcmp(verb, "patch"))
        st = kl__check_patch_type(c, http, &err);
    /* connections have no media type */
    if (!st && (!kl__rest_connects(c) || !strcmp(c->sub, "log")))
        st = kl_show_negotiate(c->kind, what_of(r, verb), kl_httpd_header(http, "Accept"),
            kl_httpd_query(http, "includeObject"), &form, &err);
    if (!st)
        st = kl__read_options(c, http, verb, &manager, &err);
    if (!st) {
        c->admission = admission_of(r, verb);
        below = run_below(c, verb, http, &out, &code, &st, &err);
        replied = !below && run(r, verb, &form, &out, &code, &st, &err);
    }
    bool waits = kl__admission_waits(c->admission);
    if (!st)
        kl__call_warned(c);
    if (waits)
        ;
    else if (st)
        reply_failed(http, &warnings, &err);
    else if (below && !out) /* an empty log */
        kl_httpd_reply(http, 204, NULL, NULL, "", 0);
    else if (below)
        kl__reply_value(http, code, warnings.len ? kl_buf_str(&warnings) : NULL, out);
    else if (!replied)
        kl__reply_object(c, &form, code, out, http);
    kl_value_unref(out);
    kl_free(manager);
    kl_buf_fini(&warnings);
    kl_buf_fini(&repeated);
    kl_err_fini(&err);
    return !waits;
}

/* ------------------------------------------------------------------ everything else */

/* Whether an unknown path is below an API of built-in kinds. */
static bool in_builtin_api(const kl_server *s, const char *path)
{
    if (!strncmp(path, "/api/", 5) || !strncmp(path, "/version/", 9))
        return true;
    const char *group = strncmp(path, "/apis/", 6) ? "" : path + 6;
    size_t n = strcspn(group, "/");
    for (size_t i = 0; n && i < kl__kinds_len(s->world.kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->world.kinds, i);
        if (!k->custom && strlen(k->group) == n && !memcmp(k->group, group, n))
            return true;
    }
    return false;
}

/* Whether a path ends where the kind of a watch would stand. */
static bool ends_in_watch(const char *path)
{
    char *copy = kl_strdup(path), *words[SEGMENTS_MAX + 1];
    size_t n = split(copy, words), at = n && !strcmp(words[0], "api") ? 2 : 3;
    bool ends = n == at + 1 && (!strcmp(words[0], "api") || !strcmp(words[0], "apis"))
        && !strcmp(words[at], "watch");
    kl_free(copy);
    return ends;
}

static void reply_nowhere(const kl_server *s, const char *path, kl_httpd_request *http)
{
    if (ends_in_watch(path)) {
        char *text = kl_sprintf("Internal Server Error: \"%s\": failed to create RequestInfo: unable to "
                                "determine kind and namespace from url, %s\n",
            kl_httpd_uri(http), path);
        kl_httpd_reply(http, 500, "text/plain; charset=utf-8",
            "Cache-Control:\r\nX-Content-Type-Options: nosniff\r\n", text, strlen(text));
        kl_free(text);
        return;
    }
    if (!in_builtin_api(s, path)) {
        kl_httpd_reply(http, 404, "text/plain; charset=utf-8", "X-Content-Type-Options: nosniff\r\n",
            "404 page not found\n", strlen("404 page not found\n"));
        return;
    }
    kl_err err = KL_ERR_INIT;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_end(b);
    kl__api_fail(
        &err, 404, "NotFound", kl_builder_done(b), "the server could not find the requested resource");
    kl__reply_error(http, NULL, &err);
    kl_err_fini(&err);
}

/* Whether a "%" in the path of a URI begins no escape. */
static bool has_bad_escape(const char *uri)
{
    for (const char *p = uri; *p && *p != '?'; p++)
        if (*p == '%' && !(isxdigit((unsigned char)p[1]) && isxdigit((unsigned char)p[2])))
            return true;
    return false;
}

static void refuse_foreign(kl_httpd_request *http, const char *header)
{
    kl_err err = KL_ERR_INIT;
    kl__api_fail(&err, 403, "Forbidden", NULL,
        "this server listens on the loopback address and answers only to its names (localhost, 127.0.0.1, "
        "[::1]), and to pages of its own address and port; %s is \"%.253s\"",
        header, kl_httpd_header(http, header));
    kl__reply_error(http, NULL, &err);
    kl_err_fini(&err);
}

/* Applies the fault rules to the request. KL_EAGAIN: the request is held. */
static kl_status meet_faults(kl__request *r, bool found, kl_err *err)
{
    const kl__call *c = &r->call;
    const char *method = kl_httpd_method(r->http), *verb = verb_of(method, !found || c->name);
    if (found && c->sub && !strcmp(method, "POST"))
        verb = "create";
    else if (verb && watching(r, verb))
        verb = "watch";
    r->facts = (kl_fault_call){.kind = found ? c->kind : NULL,
        .ns = c->ns,
        .name = c->name,
        .sub = c->sub,
        .verb = verb,
        .path = kl_httpd_path(r->http),
        .agent = kl_httpd_header(r->http, "User-Agent")};
    return kl_httpd_user(r->http) ? KL_OK : kl_faults_meet(r->s->faults, &r->facts, r->http, &r->plan, err);
}

/* Handles a request again, unless its client has gone. */
static void begin_again(void *arg)
{
    kl_httpd_request *http = arg;
    kl__admission *record = kl_httpd_user(http);
    if (!kl_httpd_again(http)) {
        kl__admission_free(record);
        kl_httpd_reply(http, 503, NULL, NULL, NULL, 0);
    }
}

/* Whether a request needs the key that signs tokens. */
static bool needs_key(const char *method, const char *path)
{
    static const char keys[] = "/openid/v1/jwks", token[] = "/token";
    size_t n = strlen(path), end = sizeof token - 1;
    if (!strcmp(method, "GET"))
        return !strncmp(path, keys, sizeof keys - 1);
    return !strcmp(method, "POST") && n > end && !strcmp(path + n - end, token)
        && strstr(path, "/serviceaccounts/");
}

static void reply_failure(kl_httpd_request *http, const kl_err *err)
{
    char *headers = err->retry_after_ns
        ? kl_sprintf("Retry-After: %lld\r\n", (long long)(err->retry_after_ns / KL_SECONDS(1)))
        : NULL;
    kl__reply_error(http, headers, err);
    kl_free(headers);
}

void kl__rest_handle(void *arg, kl_httpd_request *http)
{
    kl_server *s = arg;
    const char *path = kl_httpd_path(http);
    const char *foreign = s->loopback ? kl_httpd_foreign(http) : NULL;
    if (foreign) {
        refuse_foreign(http, foreign);
        return;
    }
    if (has_bad_escape(kl_httpd_uri(http))) {
        static const char text[] = "400 Bad Request";
        kl_httpd_reply(http, 400, "text/plain; charset=utf-8", "Cache-Control:\r\n", text, sizeof text - 1);
        return;
    }
    /* making the key takes long, and all requests need the lock */
    if (needs_key(kl_httpd_method(http), path) && !kl__issuer_await(s->world.issuer, begin_again, http))
        return;
    kl__admission *record = kl_httpd_user(http);
    kl_lock(&s->mu);
    const kl_value *user = kl__access_admit(s, http);
    bool faults = user && !strcmp(path, KL_FAULTS_PATH);
    bool extra = user && !faults && s->extra && !strncmp(path, KL_SERVER_EXTRA, sizeof KL_SERVER_EXTRA - 1);
    if (!user || faults || extra) {
        kl_unlock(&s->mu);
        kl_value_unref(user);
        kl__admission_free(record);
        if (faults)
            kl_faults_serve(s->faults, http);
        else if (extra)
            s->extra(s->extra_arg, http);
        return;
    }
    char *copy = kl_strdup(path), *words[SEGMENTS_MAX + 1];
    kl_err err = KL_ERR_INIT;
    kl__request r = {
        .s = s, .http = http, .call = {.w = &s->world, .audit = kl_httpd_attended(http), .user = user}};
    kl__kinds_bury(s->world.kinds);
    bool found = find(&r, words, split(copy, words)), replied = true;
    kl_status st = meet_faults(&r, found, &err);
    if (!st && !kl__health(s, path, http) && !kl__index(s, path, http) && !kl__discovery(s, path, http)
        && !kl__openapi(s, path, http)) {
        if (found)
            replied = serve_objects(&r);
        else
            reply_nowhere(s, path, http);
    }
    if (st == KL_EAGAIN)
        kl_cond_signal(&s->wake); /* the ticker releases the held request */
    else if (st)
        reply_failure(http, &err);
    if (replied && st != KL_EAGAIN && strcmp(kl_httpd_method(http), "GET")) {
        kl__collect(&s->world);
        kl__durable_hold(s, http);
    }
    kl_unlock(&s->mu);
    if (!replied)
        kl__admission_call(&s->world, r.call.admission, begin_again, http);
    else
        kl__admission_free(record ? record : r.call.admission);
    kl_value_unref(user);
    kl_err_fini(&err);
    kl_free(copy);
}
