/* review.c - see apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go. */
#include "custom/review.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/uuid.h"
#include "http/url.h"
#include "model/object.h"
#include "schema/edit.h"
#include "schema/limits.h"
#include "schema/normalize.h"
#include "schema/typed_check.h"
#include "schema/validate.h"

/* ------------------------------------------------------------------ the door */

/* The path without what client-go cleans away: a server in Go redirects from "//path". */
static char *clean_url(const char *origin, size_t n, const char *path, int64_t seconds)
{
    path += strspn(path, "/");
    size_t length = strcspn(path, "?");
    const char *query = path[length] ? path + length + 1 : "";
    while (length && path[length - 1] == '/')
        length--;
    char *base = kl_strndup(origin, n),
         *uri = kl_sprintf(
             "/%.*s?%s%stimeout=%llds", (int)length, path, query, *query ? "&" : "", (long long)seconds);
    kl_buf url = KL_BUF_INIT;
    char *whole = kl_url_request_uri(base, uri, &url, NULL) ? kl_sprintf("%s%s", base, uri)
                                                            : kl_buf_take(&url);
    kl_buf_fini(&url);
    kl_free(base);
    kl_free(uri);
    return whole;
}

char *kl_webhook_url(const kl_value *client, int64_t seconds)
{
    const char *url = kl_value_str_at(client, "url", NULL),
               *path = kl_value_str_at(client, "service", "path", NULL),
               *name = kl_value_str_at(client, "service", "name", NULL),
               *ns = kl_value_str_at(client, "service", "namespace", NULL);
    if (url) {
        const char *host = strstr(url, "://");
        size_t n = host ? (size_t)(host + 3 - url) : 0;
        n += strcspn(url + n, "/?");
        return clean_url(url, n, url + n, seconds);
    }
    char *origin = kl_sprintf("https://%s.%s.svc:%lld", name ? name : "", ns ? ns : "",
             (long long)kl_value_int_at(client, 443, "service", "port", NULL)),
         *whole = clean_url(origin, strlen(origin), path ? path : "", seconds);
    kl_free(origin);
    return whole;
}

char *kl_webhook_ca(const kl_value *client)
{
    size_t n;
    const char *ca = kl_value_strn(kl_value_get(client, "caBundle"), &n);
    kl_buf pem = KL_BUF_INIT;
    char *text = NULL;
    if (ca && !kl_base64_decode(ca, n, &pem, NULL) && pem.len)
        text = kl_buf_take(&pem);
    kl_buf_fini(&pem);
    return text;
}

char *kl_webhook_uid(void)
{
    char text[KL_UUID_MAX];
    return kl_strdup(kl_uuid_new(text));
}

/* ------------------------------------------------------------------ the question */

/* "v1" or "v1beta1": the first known one of the list. A definition without any is refused. */
static const char *spoken(const kl_value *versions)
{
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const char *v = kl_value_str(kl_value_item(versions, i));
        if (v && !strcmp(v, "v1beta1"))
            return "v1beta1";
        if (v && !strcmp(v, "v1"))
            break;
    }
    return "v1";
}

void kl_review_write(const kl_review *r, kl_buf *out)
{
    char *version = kl_sprintf("apiextensions.k8s.io/%s", spoken(r->versions));
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "ConversionReview");
    kl_build_kstr(b, "apiVersion", version);
    kl_build_key(b, "request");
    kl_build_object(b);
    kl_build_kstr(b, "uid", r->uid);
    kl_build_kstr(b, "desiredAPIVersion", r->api_version);
    kl_build_key(b, "objects");
    kl_build_array(b);
    for (size_t i = 0; i < r->n; i++)
        kl_build_value(b, r->objects[i]);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *review = kl_builder_done(b);
    kl_value_encode(review, out);
    kl_value_unref(review);
    kl_free(version);
}

/* ------------------------------------------------------------------ the answer */

/* client-go's error for an HTTP answer that is not a success. */
static char *http_failure(int code, const char *text, size_t len)
{
    static const struct {
        int code;
        const char *words;
    } known[] = {
        {400, "the server rejected our request for an unknown reason"},
        {401, "the server has asked for the client to provide credentials"},
        {403, "unknown"},
        {404, "the server could not find the requested resource"},
        {405, "the server does not allow this method on the requested resource"},
        {429, "the server has received too many requests and has asked us to try again later"},
        {503, "the server is currently unable to handle the request"},
        {504,
            "the server was unable to return a response in the time allotted, but may still be processing "
            "the request"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return kl_strdup(known[i].words);
    /* client-go shows a body only if it is text */
    if (code >= 500 && (!len || strchr("{[\"", *text)))
        return kl_strdup("an error on the server (\"unknown\") has prevented the request from succeeding");
    if (code >= 500)
        return kl_sprintf("an error on the server (\"%.*s\") has prevented the request from succeeding",
            (int)(len < 200 ? len : 200), text);
    return kl_sprintf(
        "the server responded with the status code %d but did not return more information", code);
}

static const char *or_empty(const char *s) { return s ? s : ""; }

/* Whether a member is exactly this text: one with a NUL character has more. */
static bool is(const kl_value *o, const char *member, const char *text)
{
    size_t n;
    const char *s = kl_value_strn(kl_value_get(o, member), &n);
    return s && n == strlen(text) && !memcmp(s, text, n);
}

/* The illegal changes of a converted object. */
static char *differs(const kl_value *was, const kl_value *now)
{
    const char *const pairs[][3] = {{"name", kl_object_name(was), kl_object_name(now)},
        {"namespace", kl_object_namespace(was), kl_object_namespace(now)},
        {"UID", kl_object_uid(was), kl_object_uid(now)}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (strcmp(or_empty(pairs[i][1]), or_empty(pairs[i][2])))
            return kl_sprintf(
                "must have the same %s: %s != %s", pairs[i][0], or_empty(pairs[i][1]), or_empty(pairs[i][2]));
    return NULL;
}

/* Validates labels or annotations of an answer. */
static char *bad_words(const char *member, const kl_value *words)
{
    bool labels = !strcmp(member, "labels");
    if (kl_value_type(words) != KL_OBJECT)
        return kl_sprintf("invalid metadata.%s of type %s in converted object", member, kl__go_type(words));
    for (size_t i = 0; i < kl_value_len(words); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(words, i, &key, &n);
        if (kl_value_type(v) != KL_STRING)
            return kl_sprintf("metadata.%s[%s] must be a string, but is %s in converted object", member, key,
                kl__go_type(v));
    }
    kl__causes causes = {0};
    if (labels)
        kl__validate_labels("metadata.labels", words, &causes);
    else {
        kl__validate_annotations("metadata.annotation", words, &causes);
        kl__limits_annotations("metadata.annotation", words, &causes);
    }
    char *why = causes.len ? kl__causes_text(&causes) : NULL;
    kl__causes_fini(&causes);
    return why;
}

/* *o gets the metadata of its original, but for labels and annotations; or what is wrong with those. */
static char *restore_metadata(const kl_value *was, const kl_value **o)
{
    static const char *const theirs[] = {"labels", "annotations"};
    const kl_value *meta = kl_value_get(*o, "metadata"),
                   *restored = kl_value_ref(kl_value_get(was, "metadata"));
    char *why = NULL;
    if (!meta)
        why = kl_strdup("missing metadata in converted object");
    else if (kl_value_type(meta) != KL_OBJECT)
        why = kl_sprintf("invalid metadata of type %s in converted object", kl__go_type(meta));
    for (size_t i = 0; !why && i < 2; i++) {
        const kl_value *words = kl_value_get(meta, theirs[i]);
        if (!words || kl_value_type(words) == KL_NULL)
            KL_CUT(&restored, theirs[i]);
        else if (!(why = bad_words(theirs[i], words)))
            KL_EDIT(&restored, kl_value_ref(words), theirs[i]);
    }
    if (!why)
        KL_EDIT(o, kl_value_ref(restored), "metadata");
    kl_value_unref(restored);
    return why;
}

/* One object of an answer, checked; *out is a new reference. `of`: its position, where there are several. */
static char *one_object(
    const kl_review *r, size_t i, const kl_value *converted, const char *who, const kl_value **out)
{
    const kl_value *was = r->objects[i];
    char *of = r->n > 1 ? kl_sprintf("invalid converted object at index %zu", i)
                        : kl_strdup("invalid object"),
         *at = r->n > 1 ? kl_strdup(of) : kl_strdup("invalid object at index 0"), *why = NULL, *said = NULL;
    const char *kind = or_empty(kl_object_kind(converted)), *want = or_empty(kl_object_kind(was)),
               *version = or_empty(kl_object_api_version(converted));
    const kl_value *o = kl_value_ref(converted);
    if (kl_value_type(converted) != KL_OBJECT || !*kind)
        said = kl_sprintf("%s returned %s: Object 'Kind' is missing", who, at);
    else if (!is(o, "apiVersion", r->api_version))
        said = kl_sprintf("%s returned %s: invalid groupVersion (expected %s, received %s)", who, at,
            r->api_version, version);
    else if (!is(o, "kind", want))
        said = kl_sprintf("%s returned %s: invalid kind (expected %s, received %s)", who, at, want, kind);
    else if ((why = differs(was, o)))
        said = kl_sprintf("%s returned %s: %s", who, of, why);
    else if ((why = restore_metadata(was, &o)))
        said = r->n > 1 ? kl_sprintf("%s returned invalid metadata in object at index %zu: %s", who, i, why)
                        : kl_sprintf("%s returned invalid metadata: %s", who, why);
    if (said)
        kl_value_unref(o);
    else
        *out = o;
    kl_free(of);
    kl_free(at);
    kl_free(why);
    return said;
}

/* Why an answer is unusable as a whole. */
static char *bad_review(const kl_review *r, const kl_value *review)
{
    const char *version = kl_object_api_version(review), *kind = kl_object_kind(review);
    const kl_value *response = kl_value_get(review, "response");
    const char *uid = kl_value_str_at(response, "uid", NULL),
               *status = kl_value_str_at(response, "result", "status", NULL),
               *message = kl_value_str_at(response, "result", "message", NULL);
    bool v1 = !strcmp(spoken(r->versions), "v1");
    if (v1
        && (strcmp(or_empty(version), "apiextensions.k8s.io/v1")
            || strcmp(or_empty(kind), "ConversionReview")))
        return kl_sprintf(
            "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got %s, "
            "Kind=%s",
            or_empty(version), or_empty(kind));
    if (kl_value_type(response) != KL_OBJECT)
        return kl_strdup("no response provided");
    if (v1 && strcmp(or_empty(uid), r->uid))
        return kl_sprintf("expected response.uid=\"%s\", got \"%s\"", r->uid, or_empty(uid));
    if (strcmp(or_empty(status), "Success"))
        return message && *message
            ? kl_strdup(message)
            : kl_sprintf("response.result.status was '%s', not 'Success'", or_empty(status));
    return NULL;
}

static char *all_objects(const kl_review *r, const kl_value *list, const char *who, const kl_value **out)
{
    char *said = NULL;
    if (list && kl_value_type(list) != KL_ARRAY && kl_value_type(list) != KL_NULL)
        return kl_sprintf("%s failed: json: cannot unmarshal %s into Go struct field "
                          "ConversionResponse.response.convertedObjects of type []runtime.RawExtension",
            who, kl__json_type(list));
    if (kl_value_len(list) != r->n)
        return kl_sprintf("%s returned %zu objects, expected %zu", who, kl_value_len(list), r->n);
    for (size_t i = 0; i < r->n && !said; i++) {
        said = one_object(r, i, kl_value_item(list, i), who, &out[i]);
        while (said && i-- > 0)
            kl_value_unref(out[i]);
        if (said)
            break;
    }
    return said;
}

char *kl_review_read(const kl_review *r, int code, const char *text, size_t len, const char *failure,
    const char *url, const kl_value **out)
{
    const char *from = or_empty(kl_object_api_version(r->objects[0]));
    char *who = kl_sprintf(
             "conversion webhook for %s, Kind=%s", from, or_empty(kl_object_kind(r->objects[0]))),
         *why = NULL, *said = NULL;
    const kl_value *review = NULL;
    kl_err err = KL_ERR_INIT;
    if (failure)
        why = kl_sprintf("Post \"%s\": %s", url, failure);
    else if (code < 200 || code > 206)
        why = http_failure(code, text, len);
    else if (kl_value_decode(text, len, &review, &err))
        why = kl_sprintf("couldn't get version/kind; json parse error: %s", kl_err_message(&err));
    else
        why = bad_review(r, review);
    if (why)
        said = kl_sprintf("%s failed: %s", who, why);
    else
        said = all_objects(r, kl_value_at(review, "response", "convertedObjects", NULL), who, out);
    kl_value_unref(review);
    kl_err_fini(&err);
    kl_free(who);
    kl_free(why);
    return said;
}
