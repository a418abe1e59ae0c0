/* list.c - collections: lists, their pages, watches, and deletion of all that match.
 *
 * A continue token has the resource version of the first page and the last key sent, so that all pages show
 * one snapshot (see kl__bucket_picture). */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "verbs/admission.h"
#include "verbs/convert.h"
#include "schema/edit.h"
#include "rbac/attributes.h"
#include "store/filter.h"
#include "server/reply.h"
#include "server/rest.h"
#include "schema/status.h"
#include "show/answer.h"
#include "server/watch.h"

struct options {
    bool has_rv, watch, bookmarks, initial, initial_given;
    const char *rv_text, *match, *token;
    uint64_t rv;
    int64_t limit;
    kl_time timeout;
};

static kl_status number(const char *text, int64_t *out, kl_err *err)
{
    char *end;
    if (!text)
        return KL_OK;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (*end || end == text || strspn(text, " \t\n"))
        return kl__fail_bad_request(err, "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
    if (errno)
        return kl__fail_bad_request(err, "strconv.ParseInt: parsing \"%s\": value out of range", text);
    *out = n;
    return KL_OK;
}

static void forbid(kl__causes *causes, bool that, const char *why)
{
    if (that)
        kl__cause_forbidden(causes, "resourceVersionMatch", why);
}

static void check_match(const char *match, bool fits, const char *fitting, kl__causes *causes)
{
    if (!fits)
        kl__cause_add(causes, "FieldValueNotSupported", "resourceVersionMatch",
            "Unsupported value: \"%s\": supported values: %s", match, fitting);
}

/* apimachinery's ValidateListOptions */
static kl_status check_options(const struct options *o, kl_err *err)
{
    kl__causes causes = {0};
    const char *match = o->match;
    bool exact = match && !strcmp(match, "Exact"), newer = match && !strcmp(match, "NotOlderThan");
    if (o->watch) {
        forbid(&causes, o->initial_given && !newer,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
        forbid(&causes, match && !o->initial_given,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
        check_match(match, !match || newer, "\"NotOlderThan\"", &causes);
    } else {
        forbid(&causes, match && !o->has_rv,
            "resourceVersionMatch is forbidden unless resourceVersion is provided");
    }
    forbid(&causes, match && o->token, "resourceVersionMatch is forbidden when continue is provided");
    if (!o->watch) {
        check_match(match, !match || exact || newer, "\"Exact\", \"NotOlderThan\", \"\"", &causes);
        forbid(&causes, exact && o->has_rv && !strcmp(o->rv_text, "0"),
            "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
        if (o->initial_given)
            kl__cause_forbidden(&causes, "sendInitialEvents", "sendInitialEvents is forbidden for list");
    }
    return kl__fail_causes(err, "meta.k8s.io", "ListOptions", "", &causes);
}

kl_status kl__read_version(const char *text, uint64_t *out, kl_err *err)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (!errno && !*end && end != text && strspn(text, "0123456789"))
        return KL_OK;
    return kl__api_fail(err, 500, "", NULL,
        "resourceVersion: Invalid value: \"%s\": strconv.ParseUint: parsing \"%s\": %s", text, text,
        errno ? "value out of range" : "invalid syntax");
}

static kl_status read_options(const kl__request *r, struct options *o, kl_err *err)
{
    kl_httpd_request *http = r->http;
    const char *initial = kl_httpd_query(http, "sendInitialEvents");
    *o = (struct options){.rv_text = kl_httpd_query(http, "resourceVersion"),
        .match = kl_httpd_query(http, "resourceVersionMatch"),
        .token = kl_httpd_query(http, "continue"),
        .watch = r->watches || kl__query_truth(http, "watch"),
        .bookmarks = kl__query_truth(http, "allowWatchBookmarks"),
        .initial_given = initial != NULL,
        .initial = kl__query_truth(http, "sendInitialEvents")};
    int64_t seconds = 0;
    kl_status st = number(kl_httpd_query(http, "limit"), &o->limit, err);
    if (!st)
        st = number(kl_httpd_query(http, "timeoutSeconds"), &seconds, err);
    o->timeout = seconds > 0 && seconds < INT32_MAX ? KL_SECONDS(seconds) : 0;
    if (o->match && !*o->match)
        o->match = NULL;
    if (o->token && !*o->token)
        o->token = NULL;
    o->has_rv = o->rv_text && *o->rv_text;
    /* such a watch begins with the present objects, and tells when they are complete */
    if (o->watch && !initial && !o->match && (!o->has_rv || !strcmp(o->rv_text, "0"))) {
        o->initial = o->initial_given = true;
        o->match = "NotOlderThan";
    }
    if (!st)
        st = check_options(o, err);
    if (!st && o->has_rv && (st = kl__read_version(o->rv_text, &o->rv, err)) && !o->watch) {
        char *why = kl_strdup(kl_err_message(err));
        st = kl__fail_bad_request(err, "invalid resource version: %s", why);
        kl_free(why);
    }
    if (!st && !o->watch && o->token && o->has_rv && o->rv)
        st = kl__fail_bad_request(err, "specifying resource version is not allowed when using continue");
    return st;
}

kl_status kl__fail_too_new(const kl__call *c, uint64_t rv, kl_err *err)
{
    static const char details[] = "{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too "
                                  "large resource version\"}],\"retryAfterSeconds\":1}";
    const kl_value *d = NULL;
    kl_status st = kl_value_decode(details, sizeof details - 1, &d, err);
    return st ? st
              : kl__api_fail(err, 504, "Timeout", d,
                  "Timeout: Too large resource version: %" PRIu64 ", current: %" PRIu64, rv,
                  kl__store_rv(c->w->store));
}

/* ------------------------------------------------------------------ continue tokens */

/* Stands for a version in a token: the list continues from the key with the present objects. */
#define INCONSISTENT 0

static const char hex[] = "0123456789abcdef";

/* "RV:KEY" in hexadecimal: opaque, and safe in a URL. */
static char *token_make(uint64_t rv, const char *key)
{
    char *plain = kl_sprintf("%" PRIu64 ":%s", rv, key), *out = kl_zalloc(strlen(plain) * 2 + 1), *p = out;
    for (const char *c = plain; *c; c++) {
        *p++ = hex[(unsigned char)*c >> 4];
        *p++ = hex[(unsigned char)*c & 15];
    }
    kl_free(plain);
    return out;
}

static kl_status token_read(const char *token, uint64_t *rv, char **key, kl_err *err)
{
    size_t n = strlen(token);
    char *plain = kl_zalloc(n / 2 + 1), *end = plain;
    bool good = n % 2 == 0;
    for (size_t i = 0; good && i < n; i += 2) {
        const char *hi = strchr(hex, token[i]), *lo = strchr(hex, token[i + 1]);
        good = hi && lo;
        if (good)
            plain[i / 2] = (char)((hi - hex) << 4 | (lo - hex));
    }
    if (good)
        *rv = strtoull(plain, &end, 10);
    good = good && end != plain && *end == ':';
    if (good)
        *key = kl_strdup(end + 1);
    kl_free(plain);
    return good ? KL_OK
                : kl__fail_bad_request(err,
                    "invalid continue token: continue key is not valid: it was not given by this server");
}

/* ------------------------------------------------------------------ list */

static const char *headers_of(const kl__call *c)
{
    return c->warnings && c->warnings->len ? kl_buf_str(c->warnings) : NULL;
}

static void list_reply(const kl__call *c, const kl_show_form *form, const kl__filter *f, kl__picture *p,
    int64_t limit, uint64_t rv, kl_httpd_request *http)
{
    kl_show_list l = {.k = c->kind, .form = form, .now = kl__world_wall(c->w)};
    kl_err err = KL_ERR_INIT;
    kl_buf out = KL_BUF_INIT;
    int64_t left = (int64_t)p->rest;
    const char *last = NULL;
    const kl_value **shown = kl_new_array(const kl_value *, p->len + 1);
    kl_status st = kl_show_fits(c->kind, form, true, &err);
    size_t n = 0;
    for (size_t i = 0; i < p->len && !st; i++) {
        if (!kl__filter_matches(f, p->objects[i]))
            continue;
        if (limit > 0 && (int64_t)n == limit) {
            left++;
            continue;
        }
        shown[n++] = p->objects[i];
        last = p->keys[i];
    }
    kl_show_sort(c->kind, form, shown, n);
    for (size_t i = 0; i < n && !st; i++)
        st = kl_show_list_add(&l, shown[i], &err);
    kl_free(shown);
    char *token = left ? token_make(rv, last) : NULL;
    if (!st)
        st = kl_show_list_end(&l, rv, token, left && !kl__filter_selects(f) ? left : -1, &out, &err);
    if (st)
        kl__reply_error(http, NULL, &err);
    else
        kl__reply_buf(http, 200, kl_show_media_type(form->media, false), headers_of(c), &out);
    kl_free(token);
    kl_show_list_fini(&l);
    kl_buf_fini(&out);
    kl_err_fini(&err);
}

/* The version before the last `n` changes, as far as they are known, but not before `least`. */
static uint64_t stale_rv(const kl__bucket *b, int64_t n, uint64_t least, uint64_t now)
{
    size_t back = (size_t)n < b->count ? (size_t)n : b->count;
    uint64_t rv = back ? kl__bucket_change(b, b->count - back)->rv - 1 : now;
    return rv < least ? least : rv;
}

static kl_status list(
    kl__request *r, const kl_show_form *form, const struct options *o, const kl__filter *f, kl_err *err)
{
    const kl__call *c = &r->call;
    uint64_t now = kl__store_rv(c->w->store), at = 0, rv = now;
    char *from = NULL, *prefix = kl__filter_prefix(f);
    kl_status st = KL_OK;
    if (o->token) {
        char *key = NULL;
        st = token_read(o->token, &at, &key, err);
        if (at == INCONSISTENT)
            at = now;
        rv = at;
        if (!st)
            from = kl_sprintf("%s\x01", key); /* the smallest key after it */
        kl_free(key);
    } else if (o->has_rv && o->rv > now)
        st = kl__fail_too_new(c, o->rv, err);
    else if (o->match && !strcmp(o->match, "Exact"))
        at = rv = o->rv;
    else if (r->plan.stale)
        at = rv = stale_rv(c->kind->bucket, r->plan.stale, o->rv, now);
    if (!st) {
        kl__picture p = {0};
        size_t most = o->limit > 0 && !kl__filter_selects(f) ? (size_t)o->limit : SIZE_MAX;
        st = kl__bucket_picture(c->kind->bucket, prefix, from ? from : prefix, at == now ? 0 : at, most, &p);
        if (st && o->token)
            st = kl__fail_expired(err,
                "The provided continue parameter is too old to display a consistent list result. You can "
                "start a new list without the continue parameter, "
                "or use the continue token in this response to retrieve the remainder of the results. "
                "Continuing with the provided token results in an inconsistent list - "
                "objects that were created, modified, or deleted between the time the first chunk was "
                "returned and now may show up in the list.");
        else if (st)
            st = kl__fail_expired(err, "The resourceVersion for the provided list is too old.");
        if (!st)
            st = kl__see_all(c, &p, err);
        if (!st)
            list_reply(c, form, f, &p, o->limit, rv, r->http);
        kl__picture_fini(&p);
    }
    kl_free(from);
    kl_free(prefix);
    return st;
}

static void watch(kl__request *r, const kl_show_form *form, const struct options *o, kl__filter *f)
{
    const kl__call *c = &r->call;
    kl__watch_options w = {.form = *form,
        .bookmarks = o->bookmarks,
        .timeout = o->timeout,
        .rv = o->rv,
        .initial = o->initial,
        .initial_end = o->initial,
        .facts = &r->facts,
        .plan = &r->plan};
    kl__bucket *b = c->kind->bucket;
    kl_err err = KL_ERR_INIT;
    kl_httpd_stream *stream = kl_httpd_reply_stream(
        r->http, 200, kl_show_media_type(form->media, true), headers_of(c));
    if (!w.initial && o->rv == 0)
        w.rv = kl__store_rv(c->w->store);
    if (!w.initial && !kl__bucket_knows(b, w.rv)) {
        kl__fail_expired(&err, "too old resource version: %" PRIu64 " (%" PRIu64 ")", o->rv, b->forgotten);
        kl__watch_refuse(stream, form, &err);
        kl_err_fini(&err);
        return;
    }
    /* A client that has a later version than ours got it before a restart that reset the versions. It would
     * never get an event. */
    if (w.rv > kl__store_rv(c->w->store)) {
        kl__fail_expired(&err, "resource version %" PRIu64 " is not of this server, which is at %" PRIu64,
            o->rv, kl__store_rv(c->w->store));
        kl__watch_refuse(stream, form, &err);
        kl_err_fini(&err);
        return;
    }
    kl__watch_start(r->s, c->kind, f, &w, stream);
}

/* The answer when a list's snapshot is no longer known, with a token to continue without it. */
static void reply_expired(const char *token, const kl_err *err, kl_httpd_request *http)
{
    const kl_value *status = kl__status_of(err);
    uint64_t rv;
    char *key = NULL;
    if (!token_read(token, &rv, &key, NULL)) {
        char *next = token_make(INCONSISTENT, key);
        KL_EDIT(&status, kl_value_of_str(next), "metadata", "continue");
        kl_free(next);
    }
    kl__reply_value(http, kl__status_code(err), NULL, status);
    kl_value_unref(status);
    kl_free(key);
}

/* The selectors of a request. A watch of one object may also have a field selector, which must name it. */
static kl_status read_filter(const kl__request *r, kl__filter *f, kl_err *err)
{
    static const char field[] = "metadata.name";
    kl_status st = kl__filter_init(f, r->call.kind, r->call.ns, kl_httpd_query(r->http, "labelSelector"),
        kl_httpd_query(r->http, "fieldSelector"), err);
    if (st || !r->watched)
        return st;
    const char *name = f->fields ? kl_field_selector_exact(f->fields, field) : r->watched;
    if (!f->fields)
        f->fields = kl_field_selector_of(field, r->watched, false);
    return name && !strcmp(name, r->watched)
        ? KL_OK
        : kl__fail_bad_request(err, "fieldSelector metadata.name doesn't match requested name");
}

void kl__rest_list(kl__request *r, const kl_show_form *form)
{
    const kl__call *c = &r->call;
    kl_httpd_request *http = r->http;
    kl_err err = KL_ERR_INIT;
    kl__filter f = {0};
    struct options o;
    kl_status st = read_options(r, &o, &err);
    if (!st)
        st = read_filter(r, &f, &err);
    if (!st && o.watch) {
        if (!kl__kind_has_verb(c->kind, "watch"))
            st = kl__api_fail(&err, 405, "MethodNotAllowed", NULL,
                "the server does not allow this method on the requested resource");
        else
            watch(r, form, &o, &f);
    } else if (!st)
        st = list(r, form, &o, &f, &err);
    if (kl__admission_waits(c->admission))
        ; /* begins again when a webhook has answered */
    else if (st == KL_EGONE && o.token)
        reply_expired(o.token, &err, http);
    else if (st)
        kl__reply_error(http, err.http_code == 504 ? "Retry-After: 1\r\n" : NULL, &err);
    kl__filter_fini(&f);
    kl_err_fini(&err);
}

/* ------------------------------------------------------------------ delete collection */

void kl__rest_delete_collection(kl__request *r, const kl_show_form *form, const kl_value *options)
{
    const kl__call *c = &r->call;
    kl_httpd_request *http = r->http;
    kl_err err = KL_ERR_INIT;
    kl__filter f = {0};
    kl__picture p = {0};
    char *prefix = NULL;
    struct options o;
    kl_status st = read_options(r, &o, &err);
    if (!st)
        st = read_filter(r, &f, &err);
    if (!st) {
        prefix = kl__filter_prefix(&f);
        st = kl__bucket_picture(c->kind->bucket, prefix, prefix, 0, SIZE_MAX, &p);
    }
    if (!st)
        st = kl__see_all(c, &p, &err);
    for (size_t i = 0; !st && i < p.len; i++) {
        if (!kl__filter_matches(&f, p.objects[i]))
            continue;
        kl__call one = *c;
        const kl_value *out = NULL;
        one.ns = kl_object_namespace(p.objects[i]);
        one.name = kl_object_name(p.objects[i]);
        st = kl__verb_delete(&one, options, &out, &err);
        kl_value_unref(out);
        if (st == KL_ENOTFOUND) {
            kl_err_fini(&err);
            st = KL_OK;
        }
    }
    if (kl__admission_waits(c->admission))
        ; /* begins again when a webhook has answered */
    else if (st)
        kl__reply_error(http, NULL, &err);
    else
        list_reply(c, form, &f, &p, 0, kl__store_rv(c->w->store), http);
    kl__picture_fini(&p);
    kl_free(prefix);
    kl__filter_fini(&f);
    kl_err_fini(&err);
}
