/* rest.c - a request becomes a call: path to resource, body to value, verb to function, failure to Status.
 *
 *   /api/v1/... and /apis/GROUP/VERSION/...:  [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]]
 *
 * The lock is held from routing to reply: nothing in between waits. */
#include "server/rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/gzip.h"
#include "base/mem.h"
#include "builtin/connect.h"
#include "model/object.h"
#include "value/yaml.h"
#include "server/admit.h"
#include "verbs/collect.h"
#include "verbs/convert.h"
#include "verbs/admission.h"
#include "server/durable.h"
#include "schema/limits.h"
#include "schema/normalize.h"
#include "server/review.h"
#include "verbs/scale.h"
#include "schema/status.h"
#include "verbs/subresource.h"
#include "show/answer.h"
#include "wire/proto.h"

/* ------------------------------------------------------------------ replies */

/* Larger answers are packed for clients that take that, as kube-apiserver does. */
#define GZIP_ABOVE (128 * 1024)

static bool takes_gzip(kl_httpd_request *http)
{
    const char *p = kl_httpd_header(http, "Accept-Encoding");
    while (p && *p) {
        p += strspn(p, " ,");
        size_t n = strcspn(p, " ,");
        /* "gzip;q=1" is not gzip for kube-apiserver */
        if (n == 4 && !memcmp(p, "gzip", n))
            return true;
        p += n;
    }
    return false;
}

void kl__reply_take(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body)
{
    kl_buf packed = KL_BUF_INIT;
    if (body->len > GZIP_ABOVE && takes_gzip(http) && !kl_gzip(body->data, body->len, &packed)) {
        char *more = kl_sprintf(
            "%sContent-Encoding: gzip\r\nVary: Accept-Encoding\r\n", headers ? headers : "");
        kl_httpd_reply_take(http, code, type, more, &packed);
        kl_free(more);
    } else
        kl_httpd_reply_take(http, code, type, headers, body);
    kl_buf_fini(&packed);
}

void kl__finish_json(kl_httpd_request *http, kl_buf *body)
{
    if (!kl_show_indents(kl_httpd_header(http, "Accept"), kl_httpd_query(http, "pretty"),
            kl_httpd_header(http, "User-Agent"))) {
        kl_buf_putc(body, '\n');
        return;
    }
    kl_buf lines = KL_BUF_INIT;
    kl_json_indent(kl_buf_str(body), body->len, &lines);
    kl_buf_fini(body);
    *body = lines;
}

void kl__reply_buf(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body)
{
    if (!kl_buf_status(body) && !strncmp(type, "application/json", 16))
        kl__finish_json(http, body);
    if (kl_buf_status(body)) {
        kl_err err = KL_ERR_INIT;
        kl__api_fail(&err, 500, "InternalError", NULL, "the answer is too large: ask for pages with limit=");
        kl__reply_error(http, NULL, &err);
        kl_err_fini(&err);
        kl_buf_fini(body);
        return;
    }
    kl__reply_take(http, code, type, headers, body);
    kl_buf_fini(body);
}

void kl__reply_value(kl_httpd_request *http, int code, const char *headers, const kl_value *v)
{
    kl_buf body = KL_BUF_INIT;
    kl_show_media media = kl_show_value(v, kl_show_error_media(kl_httpd_header(http, "Accept")), &body);
    kl__reply_buf(http, code, kl_show_media_type(media, false), headers, &body);
}

void kl__reply_error(kl_httpd_request *http, const char *headers, const kl_err *err)
{
    const kl_value *status = kl__status_of(err);
    kl__reply_value(http, kl__status_code(err), headers, status);
    kl_value_unref(status);
}

static void reply_object(
    kl__call *c, const kl_show_form *form, int code, const kl_value *stored, kl_httpd_request *http)
{
    const char *headers = c->warnings->len ? kl_buf_str(c->warnings) : NULL, *kind = kl_object_kind(stored);
    if (kind && !strcmp(kind, "Status")) {
        kl__reply_value(http, code, headers, stored);
        return;
    }
    kl_err err = KL_ERR_INIT;
    kl_buf out = KL_BUF_INIT;
    if (kl_show_object(c->kind, form, stored, kl__world_wall(c->w), &out, &err) == KL_OK
        || kl_buf_status(&out))
        kl__reply_buf(http, code, kl_show_media_type(form->media, false), headers, &out);
    else
        kl__reply_error(http, headers, &err);
    kl_buf_fini(&out);
    kl_err_fini(&err);
}

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

/* Fills in kind, namespace, name and subresource; false for a path that leads nowhere. */
static bool find(kl_server *s, char **w, size_t n, kl__call *c)
{
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
    if (c->kind->namespaced ? c->name && !c->ns : c->ns != NULL)
        return false;
    if ((c->name && !*c->name) || (c->sub && !*c->sub))
        return false;
    if (c->sub && !kl__kind_sub(c->kind, c->sub))
        return c->kind->custom; /* check_verb refuses it */
    return n <= i + 3;
}

/* ------------------------------------------------------------------ bodies */

static kl_status parse_body(
    const char *text, size_t n, bool yaml, const char *what, const kl_value **out, kl_err *err)
{
    kl_status st = kl__limits_body(n, err);
    if (st)
        return st;
    st = yaml ? kl_yaml_decode("the request body", text, n, out, err) : kl_value_decode(text, n, out, err);
    if (st) {
        char *why = kl_strdup(kl_err_message(err));
        st = kl__fail_bad_request(err, "%s: %s", what, why);
        kl_free(why);
    }
    return st;
}

static bool media_is(const char *type, const char *want)
{
    size_t n = type ? strcspn(type, "; ") : 0;
    return n == strlen(want) && !strncasecmp(type, want, n);
}

/* Reads protobuf. Fails on a field that the tables lack, which would otherwise be lost. */
static kl_status protobuf_body(const char *text, size_t n, const kl_value **out, kl_err *err)
{
    bool outdated = false;
    kl_status st = kl__limits_body(n, err);
    if (st)
        return st;
    st = kl_proto_decode(text, n, out, &outdated, err);
    if (!st && !outdated)
        return KL_OK;
    char *why = kl_strdup(st ? kl_err_message(err) : "it has fields unknown to this server");
    if (!st)
        kl_value_unref(*out);
    *out = NULL;
    st = kl__fail_bad_request(err, "the object provided is unrecognized: %s", why);
    kl_free(why);
    return st;
}

#define BODY_SHOWN 30

/* The body as kube-apiserver shows it in a failure: text where it looks like JSON, else hexadecimal. */
static char *shown(const char *text, size_t n)
{
    kl_buf out = KL_BUF_INIT;
    if (!n)
        kl_buf_puts(&out, "<empty>");
    else if (*text == '{')
        kl_buf_add(&out, text, n > BODY_SHOWN ? BODY_SHOWN : n);
    else
        for (size_t i = 0; i < n && i < BODY_SHOWN / 2; i++)
            kl_buf_printf(&out, "%02x", (unsigned char)text[i]);
    if (n > (n && *text == '{' ? BODY_SHOWN : BODY_SHOWN / 2))
        kl_buf_puts(&out, " ...");
    char *copy = kl_strdup(kl_buf_str(&out));
    kl_buf_fini(&out);
    return copy;
}

/* Fails with 400, and drops *body, if the body does not tell its kind. */
static kl_status check_head(const char *what, const char *text, size_t n, const kl_value **body, kl_err *err)
{
    static const char object[] = "Go value of type struct { APIVersion string "
                                 "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string "
                                 "\"json:\\\"kind,omitempty\\\"\" }";
    static const char *const words[] = {"apiVersion", "kind"};
    const kl_value *wrong = NULL;
    const char *into = object;
    char *field = NULL;
    if (kl_value_type(*body) != KL_OBJECT && kl_value_type(*body) != KL_NULL)
        wrong = *body;
    for (size_t i = 0; !wrong && i < sizeof words / sizeof *words; i++) {
        const kl_value *word = kl_value_get(*body, words[i]);
        if (!word || kl_value_type(word) == KL_STRING || kl_value_type(word) == KL_NULL)
            continue;
        wrong = word;
        into = field = kl_sprintf("Go struct field .%s of type string", words[i]);
    }
    if (!wrong)
        return KL_OK;
    char *start = shown(text, n);
    kl_status st = kl__fail_bad_request(
        err, "%s: json: cannot unmarshal %s into %s (%s)", what, kl__json_type(wrong), into, start);
    kl_free(start);
    kl_free(field);
    kl_value_unref(*body);
    *body = NULL;
    return st;
}

/* The body of a create or update, or delete options. An absent type reads as JSON. */
static kl_status object_body(kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    size_t n;
    const char *text = kl_httpd_body(http, &n), *type = kl_httpd_header(http, "Content-Type");
    bool json = !type || !*type || media_is(type, "application/json")
        || media_is(type, "application/x-www-form-urlencoded"),
         yaml = media_is(type, "application/yaml");
    if (media_is(type, KL_PROTO_TYPE) && !c->kind->custom)
        return protobuf_body(text, n, out, err);
    if (!json && !yaml)
        return kl__api_fail(err, 415, "UnsupportedMediaType", NULL,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, " KL_PROTO_TYPE);
    char *what = kl_sprintf("the object provided is unrecognized (must be of type %s): couldn't get "
                            "version/kind; json parse error",
        c->kind->kind);
    kl_status st = parse_body(text, n, yaml, what, out, err);
    if (!st && json && !c->kind->custom)
        st = check_head(what, text, n, out, err);
    kl_free(what);
    return st;
}

static kl_status patch_type(const kl__call *c, const char *type, kl__patch *out, kl_err *err)
{
    static const struct {
        const char *media;
        kl__patch type;
    } types[] = {
        {"application/json-patch+json", KL_PATCH_JSON},
        {"application/merge-patch+json", KL_PATCH_MERGE},
        {"application/strategic-merge-patch+json", KL_PATCH_STRATEGIC},
        {"application/apply-patch+yaml", KL_PATCH_APPLY},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (media_is(type, types[i].media) && !(types[i].type == KL_PATCH_STRATEGIC && c->kind->custom)) {
            *out = types[i].type;
            return KL_OK;
        }
    if (c->kind->custom)
        return kl__api_fail(err, 415, "UnsupportedMediaType", NULL,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_end(b);
    return kl__api_fail(err, 415, "UnsupportedMediaType", kl_builder_done(b), "415: Unsupported Media Type");
}

/* ------------------------------------------------------------------ verbs */

static const char *verb_of(const char *method, bool named)
{
    if (!strcmp(method, "GET") || !strcmp(method, "HEAD"))
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

/* Fails with 405 unless the resource, or its subresource, has the verb. */
static kl_status check_verb(const kl__call *c, const char *method, const char **verb, kl_err *err)
{
    *verb = c->sub && !strcmp(method, "POST") ? "create" : verb_of(method, c->name != NULL);
    if (c->sub && !kl__kind_sub(c->kind, c->sub))
        return kl__fail_not_found(err, c->kind, c->name);
    bool known = *verb != NULL;
    if (known && c->sub)
        known = kl__words_have(kl__kind_sub(c->kind, c->sub)->verbs, *verb);
    else if (known)
        known = kl__kind_has_verb(c->kind, *verb);
    if (known && c->kind->namespaced && !c->ns && strcmp(*verb, "list"))
        known = false;
    if (!known)
        return kl__api_fail(err, 405, "MethodNotAllowed", NULL,
            "the server does not allow this method on the requested resource");
    if (c->sub && !kl__sub_served(c->sub))
        return kl__api_fail(err, 501, "NotImplemented", NULL,
            "the embedded API server does not serve %s/%s yet", c->kind->plural, c->sub);
    return KL_OK;
}

static kl_status read_call(kl__call *c, kl_httpd_request *http, char **manager, kl_err *err)
{
    const char *given = kl_httpd_query(http, "fieldManager"), *agent = kl_httpd_header(http, "User-Agent"),
               *validation = kl_httpd_query(http, "fieldValidation"), *dry = kl_httpd_query(http, "dryRun");
    c->manager_given = given && *given;
    if (!c->manager_given)
        given = agent && *agent ? agent : "unknown";
    *manager = c->manager_given ? kl_strdup(given) : kl_strndup(given, strcspn(given, "/"));
    c->manager = *manager;
    c->dry_run = dry && *dry;
    if (dry && *dry && strcmp(dry, "All"))
        return kl__fail_bad_request(err, "dryRun: Unsupported value: \"%s\": supported values: \"All\"", dry);
    if (validation && !strcmp(validation, "Strict"))
        c->validation = KL_FIELDS_STRICT;
    else if (validation && !strcmp(validation, "Ignore"))
        c->validation = KL_FIELDS_IGNORE;
    else if (validation && *validation && strcmp(validation, "Warn"))
        return kl__fail_bad_request(err,
            "fieldValidation: Unsupported value: \"%s\": supported values: \"Ignore\", \"Strict\", \"Warn\"",
            validation);
    return KL_OK;
}

/* DELETE options may come as a body or as parameters. */
static kl_status delete_options(kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    size_t n;
    kl_httpd_body(http, &n);
    if (n)
        return object_body(c, http, out, err);
    const char *policy = kl_httpd_query(http, "propagationPolicy"),
               *grace = kl_httpd_query(http, "gracePeriodSeconds"),
               *orphan = kl_httpd_query(http, "orphanDependents");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "propagationPolicy", policy);
    if (grace)
        kl_build_kint(b, "gracePeriodSeconds", atoll(grace));
    if (orphan) {
        kl_build_key(b, "orphanDependents");
        kl_build_bool(b, !strcmp(orphan, "true") || !strcmp(orphan, "1"));
    }
    kl_build_end(b);
    *out = kl_builder_done(b);
    return KL_OK;
}

static bool dry_option(const kl_value *options) { return kl_value_len(kl_value_get(options, "dryRun")) > 0; }

static kl_status patch(kl__call *c, kl_httpd_request *http, const kl_value **out, int *code, kl_err *err)
{
    size_t n;
    kl__patch type = KL_PATCH_APPLY;
    const kl_value *body = NULL;
    const char *text = kl_httpd_body(http, &n), *force = kl_httpd_query(http, "force");
    kl_status st = patch_type(c, kl_httpd_header(http, "Content-Type"), &type, err);
    if (!st)
        st = parse_body(text, n, type == KL_PATCH_APPLY,
            type == KL_PATCH_APPLY ? "error decoding YAML" : "error decoding patch", &body, err);
    if (!st)
        st = kl__verb_patch(c, type, force && !strcmp(force, "true"), body, out, code, err);
    kl_value_unref(body);
    return st;
}

/* A call of NAME/scale, which speaks Scale whatever the kind. */
static kl_status run_scale(
    kl__call *c, const char *verb, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    const kl_value *body = NULL;
    kl_status st;
    if (!strcmp(verb, "get"))
        st = kl__scale_get(c, out, err);
    else if (!strcmp(verb, "update")) {
        st = object_body(c, http, &body, err);
        if (!st)
            st = kl__scale_update(c, body, out, err);
    } else {
        size_t n;
        kl__patch type;
        const char *text = kl_httpd_body(http, &n);
        st = patch_type(c, kl_httpd_header(http, "Content-Type"), &type, err);
        if (!st)
            st = parse_body(text, n, false, "error decoding patch", &body, err);
        if (!st)
            st = kl__scale_patch(c, type, body, out, err);
    }
    kl_value_unref(body);
    return st;
}

/* A POST below an object, which speaks a kind of its own. */
static kl_status run_create_below(kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    const kl_value *body = NULL;
    kl_status st = object_body(c, http, &body, err);
    if (!st)
        st = kl__sub_create(c, body, out, err);
    if (st && err->retry_after_ns)
        kl_buf_printf(c->warnings, "Retry-After: %lld\r\n", (long long)(err->retry_after_ns / KL_SECONDS(1)));
    kl_value_unref(body);
    return st;
}

/* Runs a call of a subresource that has a kind of its own. False: it is no such one. *code: the HTTP status
 * of a success. */
static bool run_below(kl__call *c, const char *verb, kl_httpd_request *http, const kl_value **out, int *code,
    kl_status *st, kl_err *err)
{
    bool scale = c->sub && !strcmp(c->sub, "scale");
    if (c->sub && kl__pod_connects(c->sub)) {
        const kl_value *pod = NULL;
        *st = kl__verb_get(c, &pod, err);
        if (!*st)
            *st = kl__pod_connect(pod, c->sub, kl_httpd_query(http, "container"), err);
        return true;
    }
    if (!scale && (!c->sub || strcmp(verb, "create")))
        return false;
    *code = scale ? 200 : 201;
    *st = scale ? run_scale(c, verb, http, out, err) : run_create_below(c, http, out, err);
    return true;
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
        *st = kl__verb_see(c, out, err);
    } else if (!strcmp(verb, "list")) {
        kl__rest_list(r, form);
        replied = true;
    } else if (!strcmp(verb, "create")) {
        *st = object_body(c, http, &body, err);
        replied = !*st && kl__review(c, body, http);
        if (!*st && !replied)
            *st = kl__verb_create(c, body, out, err);
        *code = 201;
    } else if (!strcmp(verb, "update")) {
        *st = object_body(c, http, &body, err);
        if (!*st)
            *st = kl__verb_update(c, body, out, code, err);
    } else if (!strcmp(verb, "patch")) {
        *st = patch(c, http, out, code, err);
    } else {
        *st = delete_options(c, http, &body, err);
        if (!*st && dry_option(body))
            c->dry_run = true;
        if (!*st && !strcmp(verb, "delete"))
            *st = kl__verb_delete(c, body, out, code, err);
        else if (!*st) {
            kl__rest_delete_collection(r, form, body);
            replied = true;
        }
    }
    kl_value_unref(body);
    return replied;
}

static bool watching(const char *verb, kl_httpd_request *http)
{
    const char *watch = kl_httpd_query(http, "watch");
    return !strcmp(verb, "list") && watch && strcmp(watch, "false") && strcmp(watch, "0");
}

static kl_show_what what_of(const char *verb, kl_httpd_request *http)
{
    return watching(verb, http) ? KL_SHOW_WATCH : !strcmp(verb, "list") ? KL_SHOW_LIST : KL_SHOW_ONE;
}

static bool writes(const char *verb) { return strcmp(verb, "get") && strcmp(verb, "list"); }

/* The answers of webhooks to a call. They stay with the request while it begins again. */
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

/* Serves a request for objects. True: it has replied. False: a webhook must be called first (admission.h). */
static bool serve_objects(kl__request *r)
{
    kl__call *c = &r->call;
    kl_httpd_request *http = r->http;
    kl_err err = KL_ERR_INIT;
    kl_buf warnings = KL_BUF_INIT;
    kl_show_form form;
    const kl_value *out = NULL;
    const char *verb;
    char *manager = NULL;
    int code = 200;
    bool replied = false, below = false;
    c->warnings = &warnings;
    if (c->kind->deprecation)
        kl__call_warn(c, "%s", c->kind->deprecation);
    kl_status st = check_verb(c, kl_httpd_method(http), &verb, &err);
    if (!st)
        st = kl_show_negotiate(c->kind, what_of(verb, http), kl_httpd_header(http, "Accept"),
            kl_httpd_query(http, "includeObject"), &form, &err);
    if (!st)
        st = read_call(c, http, &manager, &err);
    if (!st) {
        c->admission = admission_of(r, verb);
        below = run_below(c, verb, http, &out, &code, &st, &err);
        replied = !below && run(r, verb, &form, &out, &code, &st, &err);
    }
    bool waits = kl__admission_waits(c->admission);
    if (waits)
        ;
    else if (st)
        kl__reply_error(http, warnings.len ? kl_buf_str(&warnings) : NULL, &err);
    else if (below && !out) /* an empty log */
        kl_httpd_reply(http, 204, "text/plain", NULL, "", 0);
    else if (below)
        kl__reply_value(http, code, warnings.len ? kl_buf_str(&warnings) : NULL, out);
    else if (!replied)
        reply_object(c, &form, code, out, http);
    kl_value_unref(out);
    kl_free(manager);
    kl_buf_fini(&warnings);
    kl_err_fini(&err);
    return !waits;
}

/* ------------------------------------------------------------------ everything else */

/* Whether a path that leads nowhere is below an API of built-in kinds. */
static bool in_builtin_api(const kl_server *s, const char *path)
{
    if (!strncmp(path, "/api/", 5))
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

static void reply_nowhere(const kl_server *s, const char *path, kl_httpd_request *http)
{
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

/* Applies the switchboard to the request. KL_EAGAIN: the request is held. */
static kl_status meet_faults(kl__request *r, bool found, kl_err *err)
{
    const kl__call *c = &r->call;
    const char *method = kl_httpd_method(r->http), *verb = verb_of(method, !found || c->name);
    if (found && c->sub && !strcmp(method, "POST"))
        verb = "create";
    else if (verb && watching(verb, r->http))
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
    bool found = find(s, words, split(copy, words), &r.call), replied = true;
    kl_status st = meet_faults(&r, found, &err);
    if (!st && !kl__health(s, path, http) && !kl__discovery(s, path, http) && !kl__openapi(s, path, http)) {
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
