/* body.c - reads the bodies of requests: an object as JSON, YAML or protobuf, or a patch. */
#include "server/body.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "schema/edit.h"
#include "schema/limits.h"
#include "schema/normalize.h"
#include "schema/status.h"
#include "server/syntax.h"
#include "yaml/yaml.h"
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

/* What a strict decoder says of a body. */
typedef struct strict {
    const kl__call *c;
    const char *what; /* begins each sentence */
} strict;

/* A strict answer that has reached this length gets no more mistakes. */
#define SAID_MAX ((size_t)64 << 10)

static void say(const strict *s, const char *word, const char *field)
{
    kl_buf *all = s->c->repeated;
    if (s->c->validation == KL_FIELDS_WARN)
        kl__call_warn_later(s->c, "%s%s field \"%s\"", s->what, word, field);
    else if (s->c->validation == KL_FIELDS_STRICT && all->len <= SAID_MAX)
        kl_buf_printf(all, "%s%s%s field \"%s\"", all->len ? ", " : "", s->what, word, field);
}

static void say_repeated(void *arg, const char *field) { say(arg, "duplicate", field); }

/* Reads JSON as Go does: if an object repeats a key, the last value counts, and the answer says so. */
static kl_status parse_json(
    const strict *s, const char *text, size_t n, char **why, const kl_value **out, kl_err *err)
{
    kl_status st = kl_value_decode(text, n, out, err);
    if (st && !(*why = kl__json_mistake(text, n)) && !kl_value_decode_last(text, n, out, NULL)) {
        kl_err_fini(err);
        st = KL_OK;
        if (s->c)
            kl__json_repeated(text, n, say_repeated, (void *)s);
    }
    return st;
}

/* Tells the call which keys of YAML are repeated: `lines` in Go's words, each behind a line feed. */
static void say_lines(const kl__call *c, char *lines)
{
    if (c->validation == KL_FIELDS_STRICT)
        kl_buf_printf(c->repeated, "yaml: unmarshal errors:%s", lines);
    char *save;
    for (char *line = strtok_r(lines, "\n", &save); line && c->validation == KL_FIELDS_WARN;
         line = strtok_r(NULL, "\n", &save))
        kl__call_warn_later(c, "%s", line + strspn(line, " "));
}

/* Reads YAML as Go does. */
static kl_status parse_yaml(
    const kl__call *c, const char *text, size_t n, char **why, const kl_value **out, kl_err *err)
{
    kl_buf repeated = KL_BUF_INIT;
    kl_status st = kl_yaml_decode_first(text, n, &repeated, out, err);
    if (st)
        *why = kl_yaml_mistake(text, n);
    bool any = repeated.len;
    char *lines = kl_buf_take(&repeated);
    if (!st && c && any)
        say_lines(c, lines);
    kl_free(lines);
    return st;
}

/* `how`: "yaml", or the beginning of each sentence about a repeated key of JSON. c NULL: these are not
 * reported. `shows`: the error message ends with the body. */
static kl_status parse_body(const kl__call *c, const char *text, size_t n, const char *how, const char *what,
    bool shows, const kl_value **out, kl_err *err)
{
    kl_status st = kl__limits_body(n, err);
    if (st)
        return st;
    bool yaml = !strcmp(how, "yaml");
    char *why = NULL;
    st = yaml ? parse_yaml(c, text, n, &why, out, err)
              : parse_json(&(strict){c, how}, text, n, &why, out, err);
    if (st) {
        char *start = shows ? shown(text, n) : NULL;
        if (!why)
            why = kl_strdup(kl_err_message(err));
        st = kl__fail_bad_request(
            err, "%s%s%s%s%s", what, why, start ? " (" : "", start ? start : "", start ? ")" : "");
        kl_free(start);
    }
    kl_free(why);
    return st;
}

static bool media_is(const char *type, const char *want)
{
    size_t n = type ? strcspn(type, "; ") : 0;
    return n == strlen(want) && !strncasecmp(type, want, n);
}

/* Whether each parameter of a media type has a value. */
static bool has_good_parameters(const char *type)
{
    const char *p = type ? strchr(type, ';') : NULL;
    for (; p; p = strchr(p, ';')) {
        p += 1 + strspn(p + 1, " \t");
        size_t n = strcspn(p, ";");
        if (n ? !memchr(p, '=', n) : *p == ';')
            return false;
    }
    return true;
}

/* Reads protobuf. Fails on a field that the tables lack, which would otherwise be lost. */
static kl_status protobuf_body(
    const char *what, const char *text, size_t n, const kl_value **out, kl_err *err)
{
    bool outdated = false;
    kl_status st = kl__limits_body(n, err);
    if (st)
        return st;
    if (what && (n < 4 || memcmp(text, "k8s", 4) != 0)) {
        char *start = shown(text, n);
        st = kl__fail_bad_request(err,
            "%sprovided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (%s)",
            what, start);
        kl_free(start);
        return st;
    }
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
static kl_status read_body(const kl__call *c, kl_httpd_request *http, const char *what, bool protobuf,
    bool typed, bool shows, const kl_value **out, kl_err *err)
{
    size_t n;
    const char *text = kl_httpd_body(http, &n), *type = kl_httpd_header(http, "Content-Type");
    bool good = has_good_parameters(type),
         json = good && (!type || !*type || media_is(type, "application/json")),
         yaml = good && media_is(type, "application/yaml");
    if (good && media_is(type, KL_PROTO_TYPE) && protobuf)
        return protobuf_body(shows ? what : NULL, text, n, out, err);
    if (!json && !yaml)
        return kl__api_fail(err, 415, "UnsupportedMediaType", NULL,
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml, " KL_PROTO_TYPE);
    static const char parse[] = "couldn't get version/kind; json parse error: ";
    char *unread = kl_sprintf("%s%s", what, yaml ? "" : parse);
    kl_status st = parse_body(c, text, n, yaml ? "yaml" : "", unread, shows, out, err);
    kl_free(unread);
    unread = kl_sprintf("%s%s", what, parse);
    if (!st && typed)
        st = check_head(unread, shows ? text : NULL, n, out, err);
    kl_free(unread);
    return st;
}

kl_status kl__read_object(const kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    const kl__sub *sub = c->sub ? kl__kind_sub(c->kind, c->sub) : NULL;
    char *what = kl_sprintf(
        "the object provided is unrecognized (must be of type %s): ", sub ? sub->kind : c->kind->kind);
    kl_status st = read_body(c, http, what, !c->kind->custom, !c->kind->custom, true, out, err);
    kl_free(what);
    if (!st && !c->kind->custom && kl_value_type(*out) == KL_NULL) /* Go reads null as an empty struct */
        kl__replace(out, kl_value_empty(KL_OBJECT));
    return st;
}

kl_status kl__read_options_body(kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    return read_body(NULL, http, "", true, true, false, out, err);
}

static const struct {
    const char *media;
    kl__patch type;
} patches[] = {
    {"application/json-patch+json", KL_PATCH_JSON},
    {"application/merge-patch+json", KL_PATCH_MERGE},
    {"application/strategic-merge-patch+json", KL_PATCH_STRATEGIC},
    {"application/apply-patch+yaml", KL_PATCH_APPLY},
};

/* The patch of a media type of `n` bytes; NULL: the kind takes none of it. */
static const kl__patch *patch_of(const kl__call *c, const char *media, size_t n)
{
    for (size_t i = 0; i < sizeof patches / sizeof *patches; i++)
        if (strlen(patches[i].media) == n && !memcmp(media, patches[i].media, n)
            && !(patches[i].type == KL_PATCH_STRATEGIC && c->kind->custom))
            return &patches[i].type;
    return NULL;
}

/* Whether one of the types in a header is that of a patch: those of built-in kinds have a route, which reads
 * the header as a list. */
static bool has_route(const kl__call *c, const char *header)
{
    bool found = c->kind->custom;
    for (const char *p = header; *p && !found;) {
        p += strspn(p, " ,");
        size_t all = strcspn(p, ","), n = strcspn(p, ",; ");
        found = patch_of(c, p, n) != NULL;
        p += all;
    }
    return found;
}

kl_status kl__check_patch_type(const kl__call *c, kl_httpd_request *http, kl_err *err)
{
    const char *type = kl_httpd_header(http, "Content-Type");
    if (!type)
        type = "";
    if (!has_route(c, type))
        return kl__api_fail(
            err, 415, "UnsupportedMediaType", kl_value_empty(KL_OBJECT), "415: Unsupported Media Type");
    if (patch_of(c, type, strcspn(type, ";")))
        return KL_OK;
    return kl__api_fail(err, 415, "UnsupportedMediaType", NULL,
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json-patch+json, application/merge-patch+json, %sapplication/apply-patch+yaml",
        c->kind->custom ? "" : "application/strategic-merge-patch+json, ");
}

/* The beginning of the error message about a body that is not a patch. */
static const char *about_patch(const kl__call *c, kl__patch type)
{
    return type == KL_PATCH_APPLY ? "error decoding YAML: error converting YAML to JSON: "
        : type == KL_PATCH_STRATEGIC || (type == KL_PATCH_JSON && c->validation == KL_FIELDS_IGNORE)
        ? ""
        : "error decoding patch: ";
}

#define JSON_PATCH "json patch "

static bool is_operation(const char *key)
{
    return !strcmp(key, "op") || !strcmp(key, "path") || !strcmp(key, "from") || !strcmp(key, "value");
}

/* Tells the call of members that no operation of a JSON patch has. */
static void check_operations(const strict *s, const kl_value *list)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        for (size_t k = 0; kl_value_type(one) == KL_OBJECT && k < kl_value_len(one); k++) {
            const char *key;
            kl_value_member(one, k, &key, NULL);
            char *place = is_operation(key) ? NULL : kl_sprintf("[%zu].%s", i, key);
            if (place)
                say(s, "unknown", place);
            kl_free(place);
        }
    }
}

kl_status kl__read_patch(
    const kl__call *c, kl_httpd_request *http, kl__patch *type, const kl_value **out, kl_err *err)
{
    size_t n;
    const char *text = kl_httpd_body(http, &n);
    const char *header = kl_httpd_header(http, "Content-Type");
    *type = *patch_of(c, header, strcspn(header, ";"));
    const char *how = *type == KL_PATCH_APPLY ? "yaml" : *type == KL_PATCH_JSON ? JSON_PATCH : "";
    kl_status st = parse_body(c, text, n, how, about_patch(c, *type), false, out, err);
    if (!st && *type == KL_PATCH_JSON)
        check_operations(&(strict){c, JSON_PATCH}, *out);
    if (!st && *type == KL_PATCH_MERGE && kl_value_type(*out) == KL_NULL) {
        kl__replace(out, NULL);
        return kl__fail_bad_request(err, "Invalid JSON Patch");
    }
    if (st && kl__status_code(err) == 400 && *type == KL_PATCH_MERGE && c->validation == KL_FIELDS_IGNORE)
        st = kl__fail_bad_request(err, "Invalid JSON Patch");
    return st;
}
