/* status.c - Status errors with the texts and details that clients parse.
 *
 * details.kind is the resource for what is about a resource (404, 409) and the Kind for what is about
 * content (422). */
#include "schema/status.h"

#include <string.h>

#include "base/mem.h"
#include "schema/edit.h"

static kl_status status_of_code(int code, const char *reason)
{
    switch (code) {
    case 400:
    case 406:
    case 415: return KL_EINVAL;
    case 401: return KL_EAUTH;
    case 403: return KL_EFORBIDDEN;
    case 404: return KL_ENOTFOUND;
    case 409: return !strcmp(reason, "AlreadyExists") ? KL_EEXISTS : KL_ECONFLICT;
    case 410: return KL_EGONE;
    case 413: return KL_ETOOBIG;
    case 429: return KL_ETHROTTLED;
    case 504: return KL_ETIMEOUT;
    }
    return code >= 500 ? KL_ESERVER : KL_EREJECTED;
}

static kl_status api_vfail(
    kl_err *err, int code, const char *reason, const kl_value *details, const char *fmt, va_list ap)
{
    kl_status st = status_of_code(code, reason);
    if (err) {
        kl_vfail(err, st, fmt, ap);
        err->http_code = code;
        kl_free(err->reason);
        err->reason = kl_strdup(reason);
        kl_free(err->details);
        err->details = details ? kl_value_to_json(details) : NULL;
    }
    kl_value_unref(details);
    return st;
}

kl_status kl__api_fail(
    kl_err *err, int code, const char *reason, const kl_value *details, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    kl_status st = api_vfail(err, code, reason, details, fmt, ap);
    va_end(ap);
    return st;
}

kl_status kl__fail_bad_request(kl_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    kl_status st = api_vfail(err, 400, "BadRequest", NULL, fmt, ap);
    va_end(ap);
    return st;
}

static const kl_value *details_of(const char *name, const char *group, const char *kind)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "group", *group ? group : NULL);
    kl_build_kstr(b, "kind", kind);
    kl_build_end(b);
    return kl_builder_done(b);
}

kl_status kl__fail_not_found(kl_err *err, const kl__kind *k, const char *name)
{
    char *what = kl__kind_display(k);
    kl_status st = kl__api_fail(
        err, 404, "NotFound", details_of(name, k->group, k->plural), "%s \"%s\" not found", what, name);
    kl_free(what);
    return st;
}

kl_status kl__fail_exists(kl_err *err, const kl__kind *k, const char *name, bool goes, bool generated)
{
    char *what = kl__kind_display(k);
    const kl_value *details = details_of(name, k->group, k->plural);
    if (generated)
        KL_EDIT(&details, kl_value_of_int(1), "retryAfterSeconds");
    kl_status st = kl__api_fail(err, 409, "AlreadyExists", details, "%s%s \"%s\" already exists%s",
        goes ? "object is being deleted: " : "", what, name,
        generated ? ", the server was not able to generate a unique name for the object" : "");
    kl_free(what);
    return st;
}

kl_status kl__fail_conflict(kl_err *err, const kl__kind *k, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *what = kl__kind_display(k), *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_status st = kl__api_fail(err, 409, "Conflict", details_of(name, k->group, k->plural),
        "Operation cannot be fulfilled on %s \"%s\": %s", what, name, why);
    kl_free(what);
    kl_free(why);
    return st;
}

kl_status kl__fail_modified(kl_err *err, const kl__kind *k, const char *name)
{
    return kl__fail_conflict(err, k, name,
        "the object has been modified; please apply your changes to the latest version and try again");
}

kl_status kl__fail_forbidden(kl_err *err, const kl__kind *k, const char *name, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *what = kl__kind_display(k), *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_status st = kl__api_fail(err, 403, "Forbidden", details_of(name, k->group, k->plural),
        "%s \"%s\" is forbidden: %s", what, name, why);
    kl_free(what);
    kl_free(why);
    return st;
}

kl_status kl__fail_expired(kl_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    kl_status st = api_vfail(err, 410, "Expired", NULL, fmt, ap);
    va_end(ap);
    return st;
}

/* ------------------------------------------------------------------ causes */

/* The limits of kept causes: each is compared with those before it, and appears twice in the answer. */
#define CAUSES_MAX 1000
#define CAUSES_BYTES_MAX ((size_t)4 << 20)

static void cause_fini(struct kl__cause *cause)
{
    kl_free(cause->reason);
    kl_free(cause->message);
    kl_free(cause->field);
}

void kl__causes_fini(kl__causes *c)
{
    for (size_t i = 0; i < c->kept; i++)
        cause_fini(&c->v[i]);
    kl_free(c->v);
    *c = (kl__causes){0};
}

static bool is_full(const kl__causes *c) { return c->kept == CAUSES_MAX || c->bytes > CAUSES_BYTES_MAX; }

bool kl__causes_full(kl__causes *c)
{
    c->len += is_full(c);
    return is_full(c);
}

/* Keeps a cause, or frees it when there are too many. Takes what it holds. */
static void keep(kl__causes *c, struct kl__cause *cause)
{
    if (is_full(c)) {
        cause_fini(cause);
        return;
    }
    c->v = kl_realloc(c->v, (c->kept + 1) * sizeof *c->v);
    c->v[c->kept++] = *cause;
    c->bytes += strlen(cause->message) + strlen(cause->field);
}

void kl__causes_join(kl__causes *c, kl__causes *more)
{
    for (size_t i = 0; i < more->kept; i++)
        keep(c, &more->v[i]);
    c->len += more->len;
    kl_free(more->v);
    *more = (kl__causes){0};
}

/* Takes message. */
static void cause_push(kl__causes *c, const char *reason, const char *field, char *message)
{
    keep(c, &(struct kl__cause){.reason = kl_strdup(reason), .message = message, .field = kl_strdup(field)});
    c->len++;
}

void kl__cause_add(kl__causes *c, const char *reason, const char *field, const char *fmt, ...)
{
    if (kl__causes_full(c))
        return;
    va_list ap;
    va_start(ap, fmt);
    cause_push(c, reason, field, kl_vsprintf(fmt, ap));
    va_end(ap);
}

void kl__cause_invalid(kl__causes *c, const char *field, const kl_value *bad, const char *fmt, ...)
{
    if (kl__causes_full(c))
        return;
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    char *text = bad ? kl_value_to_json(bad) : kl_strdup("null");
    kl__cause_add(c, "FieldValueInvalid", field, "Invalid value: %s: %s", text, why);
    kl_free(text);
    kl_free(why);
}

void kl__cause_required(kl__causes *c, const char *field, const char *why)
{
    kl__cause_add(c, "FieldValueRequired", field, "Required value%s%s", *why ? ": " : "", why);
}

void kl__cause_forbidden(kl__causes *c, const char *field, const char *why)
{
    kl__cause_add(c, "FieldValueForbidden", field, "Forbidden%s%s", *why ? ": " : "", why);
}

static bool said_before(const kl__causes *c, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(c->v[k].field, c->v[i].field) && !strcmp(c->v[k].message, c->v[i].message))
            return true;
    return false;
}

/* The causes as one text; a repeated message appears once. */
char *kl__causes_text(const kl__causes *c)
{
    kl_buf text = KL_BUF_INIT;
    size_t told = 0;
    for (size_t i = 0; i < c->kept; i++)
        if (!said_before(c, i))
            kl_buf_printf(&text, "%s%s: %s", told++ ? ", " : "", c->v[i].field, c->v[i].message);
    if (c->len > c->kept)
        kl_buf_printf(&text, ", and %zu more", c->len - c->kept);
    const char *said = text.len ? kl_buf_str(&text) : "";
    char *all = told > 1 || c->len > c->kept ? kl_sprintf("[%s]", said) : kl_strdup(said);
    kl_buf_fini(&text);
    return all;
}

kl_status kl__fail_causes(kl_err *err, const char *group, const char *kind, const char *name, kl__causes *c)
{
    if (!c->len)
        return KL_OK;
    for (size_t i = 0; i < c->kept; i++)
        if (!strcmp(c->v[i].reason, KL__CAUSE_FAILED)) {
            kl_status failed = kl__fail_internal(err, "%s", c->v[i].message);
            kl__causes_fini(c);
            return failed;
        }
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "name", name && *name ? name : NULL);
    kl_build_kstr(b, "group", *group ? group : NULL);
    kl_build_kstr(b, "kind", *kind ? kind : NULL);
    kl_build_key(b, "causes");
    kl_build_array(b);
    for (size_t i = 0; i < c->kept; i++) {
        kl_build_object(b);
        kl_build_kstr(b, "reason", c->v[i].reason);
        kl_build_kstr(b, "message", c->v[i].message);
        kl_build_kstr(b, "field", c->v[i].field);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_build_end(b);
    char *text = kl__causes_text(c);
    kl_status st = kl__api_fail(err, 422, "Invalid", kl_builder_done(b), "%s%s%s \"%s\" is invalid: %s", kind,
        *group ? "." : "", group, name ? name : "", text);
    kl_free(text);
    kl__causes_fini(c);
    return st;
}

kl_status kl__fail_internal(kl_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "causes");
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "message", why);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    kl_status st = kl__api_fail(
        err, 500, "InternalError", kl_builder_done(b), "Internal error occurred: %s", why);
    kl_free(why);
    return st;
}

/* ------------------------------------------------------------------ Status objects */

int kl__status_code(const kl_err *err)
{
    if (err->http_code)
        return err->http_code;
    switch (err->status) {
    case KL_EINVAL:
    case KL_ESYNTAX: return 400;
    case KL_ENOTFOUND: return 404;
    case KL_EEXISTS:
    case KL_ECONFLICT: return 409;
    case KL_EGONE: return 410;
    case KL_ETOOBIG: return 413;
    case KL_EREJECTED: return 422;
    default: return 500;
    }
}

static const char *reason_of_code(int code)
{
    switch (code) {
    case 400: return "BadRequest";
    case 404: return "NotFound";
    case 409: return "Conflict";
    case 410: return "Expired";
    case 413: return "RequestEntityTooLarge";
    case 422: return "Invalid";
    }
    return "InternalError";
}

static void begin_status(kl_builder *b, const char *status)
{
    kl_build_object(b);
    kl_build_kstr(b, "kind", "Status");
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_end(b);
    kl_build_kstr(b, "status", status);
}

const kl_value *kl__status_of(const kl_err *err)
{
    int code = kl__status_code(err);
    kl_builder *b = kl_builder_new();
    begin_status(b, "Failure");
    kl_build_kstr(b, "message", kl_err_message(err));
    const char *reason = err->reason ? err->reason : reason_of_code(code);
    kl_build_kstr(b, "reason", *reason ? reason : NULL);
    const kl_value *details = NULL;
    if (err->details && !kl_value_decode(err->details, strlen(err->details), &details, NULL))
        kl_build_kvalue(b, "details", details);
    kl_value_unref(details);
    kl_build_kint(b, "code", code);
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl__status_success(const kl__kind *k, const char *name, const char *uid)
{
    kl_builder *b = kl_builder_new();
    begin_status(b, "Success");
    kl_build_key(b, "details");
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "group", *k->group ? k->group : NULL);
    kl_build_kstr(b, "kind", k->plural);
    kl_build_kstr(b, "uid", uid);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}
