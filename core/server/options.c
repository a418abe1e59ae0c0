/* options.c - the options of a write (apimachinery's meta/v1/validation). */
#include "server/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "model/time.h"
#include "schema/normalize.h"
#include "schema/status.h"
#include "server/body.h"
#include "verbs/options.h"

#define MANAGER_MAX 128
#define APPLY "application/apply-patch"

static void add_text(void *arg, const char *value) { kl_build_str(arg, value); }

/* All values of a parameter, a list. */
static const kl_value *query_list(kl_httpd_request *http, const char *name)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_httpd_query_each(http, name, add_text, b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* ------------------------------------------------------------------ creates, updates, patches */

static bool prints(char c) { return (unsigned char)c >= ' ' && c != 127; }

/* The text as Go quotes it; the caller frees. */
static char *quoted(const char *text)
{
    static const char named[] = "\a\b\t\n\v\f\r", letters[] = "abtnvfr";
    kl_buf out = KL_BUF_INIT;
    for (const char *p = text; *p; p++) {
        const char *it = strchr(named, *p);
        if (it || *p == '"' || *p == '\\')
            kl_buf_printf(&out, "\\%c", it ? letters[it - named] : *p);
        else
            kl_buf_printf(&out, prints(*p) ? "%c" : "\\x%02x", (unsigned char)*p);
    }
    return kl_buf_take(&out);
}

static void check_manager(const char *manager, kl__causes *causes)
{
    if (strlen(manager) > MANAGER_MAX)
        kl__cause_add(causes, "FieldValueTooLong", "fieldManager", "Too long: may not be more than %d bytes",
            MANAGER_MAX);
    for (const char *p = manager; *p; p++)
        if (!prints(*p)) {
            char *all = quoted(manager);
            kl__cause_add(causes, "FieldValueInvalid", "fieldManager",
                "Invalid value: \"%s\": invalid character U+%04X (at position %zu)", all, (unsigned char)*p,
                (size_t)(p - manager));
            kl_free(all);
        }
}

static void check_validation(kl__call *c, const char *word, kl__causes *causes)
{
    if (!strcmp(word, "Strict"))
        c->validation = KL_FIELDS_STRICT;
    else if (!strcmp(word, "Ignore"))
        c->validation = KL_FIELDS_IGNORE;
    else if (*word && strcmp(word, "Warn") != 0)
        kl__cause_add(causes, "FieldValueNotSupported", "fieldValidation",
            "Unsupported value: \"%s\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"", word);
}

static void check_patch(const kl__call *c, kl_httpd_request *http, kl__causes *causes)
{
    const char *type = kl_httpd_header(http, "Content-Type");
    bool apply = type && !strncasecmp(type, APPLY, sizeof APPLY - 1);
    if (apply && !c->manager_given)
        kl__cause_required(causes, "fieldManager", "is required for apply patch");
    else if (!apply && kl_httpd_query(http, "force"))
        kl__cause_forbidden(causes, "force", "may not be specified for non-apply patch");
}

static kl_status check_timeout(kl_httpd_request *http, kl_err *err)
{
    const char *text = kl_httpd_query(http, "timeout");
    kl_time t;
    if (!text || !*text || !kl_duration_parse(text, &t, NULL))
        return KL_OK;
    bool number = strspn(text, "0123456789.") == strlen(text);
    return kl__fail_bad_request(err,
        "invalid timeout specified in the request URL - time: %s duration \"%s\"",
        number ? "missing unit in" : "invalid", text);
}

static const char *options_of(const char *verb)
{
    return !strcmp(verb, "create") ? "CreateOptions"
        : !strcmp(verb, "update")  ? "UpdateOptions"
        : !strcmp(verb, "patch")   ? "PatchOptions"
                                   : NULL;
}

kl_status kl__read_options(kl__call *c, kl_httpd_request *http, const char *verb, char **manager, kl_err *err)
{
    const char *given = kl_httpd_query(http, "fieldManager"), *agent = kl_httpd_header(http, "User-Agent"),
               *validation = kl_httpd_query(http, "fieldValidation"), *kind = options_of(verb);
    kl__causes causes = {0};
    c->manager_given = given && *given;
    if (!c->manager_given)
        given = agent && *agent ? agent : "unknown";
    *manager = c->manager_given ? kl_strdup(given) : kl_strndup(given, strcspn(given, "/"));
    c->manager = *manager;
    kl_status st = check_timeout(http, err);
    if (st || !kind)
        return st;
    const kl_value *dry = query_list(http, "dryRun");
    c->dry_run = kl_value_len(dry) > 0;
    if (!strcmp(verb, "patch"))
        check_patch(c, http, &causes);
    if (c->manager_given)
        check_manager(given, &causes);
    kl__dry_run_check(dry, &causes);
    check_validation(c, validation ? validation : "", &causes);
    kl_value_unref(dry);
    return kl__fail_causes(err, "meta.k8s.io", kind, "", &causes);
}

/* ------------------------------------------------------------------ deletions */

/* The kind of a body may be left out; its version is not looked at. */
static kl_status check_kind(const kl_value *body, kl_err *err)
{
    const char *kind = kl_value_str(kl_value_get(body, "kind")),
               *version = kl_value_str(kl_value_get(body, "apiVersion"));
    if (!kind || !*kind || !strcmp(kind, "DeleteOptions"))
        return KL_OK;
    return kl_fail(err, KL_EINVAL,
        "no kind \"%s\" is registered for version \"%s\" in scheme \"pkg/runtime/scheme.go:110\"", kind,
        version && *version ? version : "meta.k8s.io/v1");
}

/* The body. What is wrong with it is answered with 500, as by kube-apiserver. */
static kl_status from_body(const kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    const kl_value *body = NULL;
    kl_status st = kl__read_options_body(http, &body, err);
    if (!st)
        st = check_kind(body, err);
    if (!st)
        st = kl__normalize(kl__types_get(c->w->types, "meta.v1.DeleteOptions"), body, true, NULL, out, err);
    kl_value_unref(body);
    if (st && kl__status_code(err) != 415) {
        char *why = kl_strdup(kl_err_message(err));
        st = kl__api_fail(err, 500, "", NULL, "%s", why);
        kl_free(why);
    }
    return st;
}

static kl_status put_grace(kl_builder *b, const char *text, kl_err *err)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end || strspn(text, " \t\n"))
        return kl__fail_bad_request(err, "strconv.ParseInt: parsing \"%s\": invalid syntax", text);
    if (errno == ERANGE)
        return kl__fail_bad_request(err, "strconv.ParseInt: parsing \"%s\": value out of range", text);
    kl_build_kint(b, "gracePeriodSeconds", n);
    return KL_OK;
}

static kl_status from_query(kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    const char *policy = kl_httpd_query(http, "propagationPolicy"),
               *grace = kl_httpd_query(http, "gracePeriodSeconds"),
               *orphan = kl_httpd_query(http, "orphanDependents"), *uid = kl_httpd_query(http, "uid");
    const kl_value *dry = query_list(http, "dryRun");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "propagationPolicy", policy);
    kl_status st = grace ? put_grace(b, grace, err) : KL_OK;
    if (orphan) {
        kl_build_key(b, "orphanDependents");
        kl_build_bool(b, strcasecmp(orphan, "false") != 0 && strcmp(orphan, "0") != 0);
    }
    if (uid) {
        kl_build_key(b, "preconditions");
        kl_build_object(b);
        kl_build_kstr(b, "uid", uid);
        kl_build_end(b);
    }
    kl_build_kvalue(b, "dryRun", kl_value_len(dry) ? dry : NULL);
    kl_build_end(b);
    const kl_value *options = kl_builder_done(b);
    kl_value_unref(dry);
    if (st)
        kl_value_unref(options);
    else
        *out = options;
    return st;
}

kl_status kl__read_delete_options(kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err)
{
    size_t n;
    kl_httpd_body(http, &n);
    kl_status st = n ? from_body(c, http, out, err) : from_query(http, out, err);
    if (!st)
        st = kl__delete_check(*out, err);
    if (!st)
        c->dry_run = kl_value_len(kl_value_get(*out, "dryRun")) > 0;
    return st;
}
