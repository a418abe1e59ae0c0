/* body.c - reads the bodies of requests: an object as JSON, YAML or protobuf, or a patch. */
#include "server/body.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "schema/limits.h"
#include "schema/normalize.h"
#include "schema/status.h"
#include "server/syntax.h"
#include "value/yaml.h"
#include "wire/proto.h"

#define BODY_SHOWN 30

/* The body as kube-apiserver shows it in a failure: as text if it looks like JSON, else in hexadecimal. */
static char *shown(const char *text, size_t n)
{
    kl_buf out = KL_BUF_INIT;
    if (!n)
        kl_buf_puts(&out, "<empty>");
    else if (*text == '{')
        kl_buf_add(&out, text, n > BODY_SHOWN ? BODY_SHOWN : n);
    else
        for (size_t i = 0; i < n && i < BODY_SHOWN; i++)
            kl_buf_printf(&out, "%02x", (unsigned char)text[i]);
    if (n > BODY_SHOWN)
        kl_buf_puts(&out, " ...");
    return kl_buf_take(&out);
}

/* `shows`: the message ends with the body. */
static kl_status parse_body(
    const char *text, size_t n, bool yaml, const char *what, bool shows, const kl_value **out, kl_err *err)
{
    kl_status st = kl__limits_body(n, err);
    if (st)
        return st;
    st = yaml ? kl_yaml_decode("the request body", text, n, out, err) : kl_value_decode(text, n, out, err);
    if (st) {
        char *why = yaml ? kl_yaml_mistake(text, n) : kl__json_mistake(text, n),
             *start = shows ? shown(text, n) : NULL;
        if (!why)
            why = kl_strdup(kl_err_message(err));
        st = kl__fail_bad_request(
            err, "%s%s%s%s%s", what, why, start ? " (" : "", start ? start : "", start ? ")" : "");
        kl_free(why);
        kl_free(start);
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

/* Fails with 400, and drops *body, if the body does not tell its kind. text: shown in the failure; NULL: not.
 */
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
    char *start = text ? shown(text, n) : NULL;
    kl_status st = kl__fail_bad_request(err, "%sjson: cannot unmarshal %s into %s%s%s%s", what,
        kl__json_type(wrong), into, start ? " (" : "", start ? start : "", start ? ")" : "");
    kl_free(start);
    kl_free(field);
    kl_value_unref(*body);
    *body = NULL;
    return st;
}

/* `what` begins the message about what is no object. `typed`: it has to tell its kind, and is shown if it
 * cannot. */
static kl_status read_body(kl_httpd_request *http, const char *what, bool protobuf, bool typed, bool shows,
    const kl_value **out, kl_err *err)
{
    size_t n;
    const char *text = kl_httpd_body(http, &n), *type = kl_httpd_header(http, "Content-Type");
    bool json = !type || !*type || media_is(type, "application/json")
        || media_is(type, "application/x-www-form-urlencoded"),
         yaml = media_is(type, "application/yaml");
    if (media_is(type, KL_PROTO_TYPE) && protobuf)
        return protobuf_body(text, n, out, err);
    if (!json && !yaml)
        return kl__api_fail(err, 415, "UnsupportedMediaType", NULL,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, " KL_PROTO_TYPE);
    kl_status st = parse_body(text, n, yaml, what, shows, out, err);
    return st || !json || !typed ? st : check_head(what, shows ? text : NULL, n, out, err);
}

kl_status kl__read_object(const kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    bool yaml = media_is(kl_httpd_header(http, "Content-Type"), "application/yaml");
    char *what = kl_sprintf("the object provided is unrecognized (must be of type %s): %s", c->kind->kind,
        yaml ? "" : "couldn't get version/kind; json parse error: ");
    kl_status st = read_body(http, what, !c->kind->custom, !c->kind->custom, true, out, err);
    kl_free(what);
    return st;
}

kl_status kl__read_options_body(kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    return read_body(http, "couldn't get version/kind; json parse error: ", true, true, false, out, err);
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
    return kl__api_fail(
        err, 415, "UnsupportedMediaType", kl_value_empty(KL_OBJECT), "415: Unsupported Media Type");
}

/* What begins the message about a text that is no patch. */
static const char *about_patch(const kl__call *c, kl__patch type)
{
    return type == KL_PATCH_APPLY ? "error decoding YAML: error converting YAML to JSON: "
        : type == KL_PATCH_STRATEGIC || (type == KL_PATCH_JSON && c->validation == KL_FIELDS_IGNORE)
        ? ""
        : "error decoding patch: ";
}

kl_status kl__read_patch(
    const kl__call *c, kl_httpd_request *http, kl__patch *type, const kl_value **out, kl_err *err)
{
    size_t n;
    const char *text = kl_httpd_body(http, &n);
    *type = KL_PATCH_APPLY;
    kl_status st = patch_type(c, kl_httpd_header(http, "Content-Type"), type, err);
    if (st)
        return st;
    st = parse_body(text, n, *type == KL_PATCH_APPLY, about_patch(c, *type), false, out, err);
    if (st && kl__status_code(err) == 400 && *type == KL_PATCH_MERGE && c->validation == KL_FIELDS_IGNORE)
        st = kl__fail_bad_request(err, "Invalid JSON Patch");
    return st;
}
