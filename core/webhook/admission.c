/* admission.c - see k8s.io/api/admission/v1 and apiserver/pkg/admission/plugin/webhook/request for what
 * the other side checks. */
#include "webhook/admission.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "webhook/review.h"

/* The API server's limits: a warning of 256 characters is cut, all of them together hold 4096. */
#define WARNING_MAX ((size_t)256)
#define WARNINGS_MAX ((size_t)4096)
/* The reserve for the way back and a busy machine: a tenth of the time, half a second at most. */
#define SLACK_PART 10
#define SLACK_MAX KL_MILLISECONDS(500)
#define TIMEOUT_MAX KL_SECONDS(30)

static bool is(const char *a, const char *b) { return !strcmp(a, b); }

/* Checks what every API server sends: an object for a write, and nothing but objects in both places. */
static kl_status check(const kl_value *request, kl_err *err)
{
    static const char *const operations[] = {"CREATE", "UPDATE", "DELETE", "CONNECT"};
    static const char *const places[] = {"object", "oldObject"};
    const char *operation = kl_value_str_at(request, "operation", NULL);
    bool known = false;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        known = known || (operation && is(operation, operations[i]));
    if (!known)
        return kl_fail(err, KL_EINVAL,
            "the request's operation must be CREATE, UPDATE, DELETE or CONNECT, got \"%.60s\"",
            operation ? operation : "");
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const kl_value *v = kl_value_get(request, places[i]);
        bool needed = i == 0 && (is(operation, "CREATE") || is(operation, "UPDATE"));
        bool none = !v || kl_value_type(v) == KL_NULL;
        if (none ? needed : kl_value_type(v) != KL_OBJECT)
            return kl_fail(err, KL_EINVAL, "the request's %s must be an object (the operation is %s), got %s",
                places[i], operation, kl_value_type_name(v));
    }
    return KL_OK;
}

kl_status kl_admission_parse(const char *text, size_t n, const kl_value **request, kl_err *err)
{
    static const kl__review expected = {
        "admission.k8s.io", "v1", "AdmissionReview", "an", "admissionReviewVersions", check};
    return kl__review_request(&expected, text, n, request, err);
}

static void add_warnings(kl_builder *b, const kl_value *warnings)
{
    size_t total = 0;
    if (!kl_value_len(warnings))
        return;
    kl_build_key(b, "warnings");
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(warnings); i++) {
        size_t n;
        const char *text = kl_value_strn(kl_value_item(warnings, i), &n);
        if (!text)
            continue;
        if (n > WARNING_MAX)
            for (n = WARNING_MAX; n && ((unsigned char)text[n] & 0xc0) == 0x80;)
                n--;
        if ((total += n) > WARNINGS_MAX)
            break;
        kl_build_strn(b, text, n);
    }
    kl_build_end(b);
}

static void add_status(kl_builder *b, const kl_value *decision, bool allowed)
{
    int64_t code = kl_value_int_at(decision, allowed ? 200 : 403, "code", NULL);
    if (allowed && !kl_value_str_at(decision, "message", NULL))
        return;
    kl_build_key(b, "status");
    kl_build_object(b);
    kl_build_kint(b, "code", code);
    if (!allowed && code == 403)
        kl_build_kstr(b, "reason", "Forbidden");
    kl__review_build_message(b, decision);
    kl_build_end(b);
}

void kl_admission_reply(const kl_value *request, const kl_value *decision, kl_buf *out)
{
    bool allowed = kl_value_bool(kl_value_get(decision, "allowed"), false);
    const kl_value *patch = kl_value_get(decision, "patch");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "AdmissionReview");
    kl_build_kstr(b, "apiVersion", "admission.k8s.io/v1");
    kl_build_key(b, "response");
    kl_build_object(b);
    kl_build_kvalue(b, "uid", kl_value_get(request, "uid"));
    kl_build_key(b, "allowed");
    kl_build_bool(b, allowed);
    add_status(b, decision, allowed);
    if (allowed && kl_value_len(patch)) {
        char *json = kl_value_to_json(patch), *text = kl_base64_encode(json, strlen(json));
        kl_build_kstr(b, "patchType", "JSONPatch");
        kl_build_kstr(b, "patch", text);
        kl_free(text);
        kl_free(json);
    }
    add_warnings(b, kl_value_get(decision, "warnings"));
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_value_encode(v, out);
    kl_value_unref(v);
}

const kl_value *kl_admission_decide(bool allowed, int code, const char *message, const char *warning)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "allowed");
    kl_build_bool(b, allowed);
    kl_build_kint(b, "code", code);
    kl_build_kstr(b, "message", message);
    if (warning) {
        kl_build_key(b, "warnings");
        kl_build_array(b);
        kl_build_str(b, warning);
        kl_build_end(b);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The API server writes Go's time.Duration: "10s", "1m0s" cannot come, 30 s is its limit. Whatever else is
 * there reads as `dflt`. */
static kl_time read_timeout(const char *text, kl_time dflt)
{
    kl_time n = 0;
    size_t i = 0;
    for (; text && text[i] >= '0' && text[i] <= '9' && i < 9; i++)
        n = n * 10 + (text[i] - '0');
    if (!i)
        return dflt;
    if (!strcmp(text + i, "s"))
        return KL_SECONDS(n);
    if (!strcmp(text + i, "ms"))
        return KL_MILLISECONDS(n);
    return dflt;
}

kl_time kl_admission_time(const char *timeout, kl_time dflt)
{
    kl_time t = read_timeout(timeout, dflt);
    if (t <= 0 || t > TIMEOUT_MAX)
        t = TIMEOUT_MAX;
    kl_time slack = t / SLACK_PART;
    return t - (slack < SLACK_MAX ? slack : SLACK_MAX);
}
