/* hooks.c - see pkg/apis/admissionregistration/validation and ValidateWebhook{URL,Service} of
 * apiserver's util/webhook, whose order and words these are. */
#include "policy/hooks.h"

#include <string.h>

#include "base/mem.h"
#include "check/forms.h"
#include "policy/rule.h"
#include "rules/admission.h"

/* ------------------------------------------------------------------ where a webhook is */

#define SCHEME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."
#define URL_FORM "; desired format: https://host[/path]"

/* Why Go does not parse the part of a URL behind its "//", up to its path; NULL: it does. The caller frees.
 */
static char *host_fault(const char *host, size_t len)
{
    const char *user = memchr(host, '@', len), *end = host + len, *port = NULL;
    host = user ? user + 1 : host;
    if (host < end && *host == '[') {
        const char *close = memchr(host, ']', (size_t)(end - host));
        if (!close)
            return kl_strdup("missing ']' in host");
        port = close + 1 < end ? close + 1 : NULL;
    } else
        for (const char *c = host; c < end; c++)
            port = *c == ':' ? c : port;
    if (port && (*port != ':' || strspn(port + 1, "0123456789") < (size_t)(end - port) - 1))
        return kl_sprintf("invalid port \"%.*s\" after host", (int)(end - port), port);
    for (const char *c = host; c < end; c++)
        if (strchr(" \"\\^`{|}", *c))
            return kl_sprintf("invalid character \"%s%c\" in host name", strchr("\"\\", *c) ? "\\" : "", *c);
    return NULL;
}

/* Why Go does not parse a URL, NULL: it does. The caller frees. */
static char *url_fault(const char *url)
{
    const char *colon = strchr(url, ':'), *slash = strchr(url, '/'), *host = strstr(url, "//");
    for (const char *c = url; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return kl_strdup("net/url: invalid control character in URL");
    if (colon == url)
        return kl_strdup("missing protocol scheme");
    if (colon && (!slash || colon < slash) && strspn(url, SCHEME_CHARS) < (size_t)(colon - url))
        return kl_strdup("first path segment in URL cannot contain colon");
    char *why = host && (host == url || (colon && host == colon + 1))
        ? host_fault(host + 2, strcspn(host + 2, "/?#"))
        : NULL;
    for (const char *c = url; !why && *c && *c != '?'; c++)
        if (*c == '%' && strspn(c + 1, "0123456789abcdefABCDEF") < 2)
            why = kl_sprintf("invalid URL escape \"%.3s\"", c);
    return why;
}

static void check_url(kl__causes *c, const char *url, const kl__place *at)
{
    const char *colon = strchr(url, ':'), *slash = strchr(url, '/'), *rest = colon ? colon + 1 : url;
    char *fault = url_fault(url);
    if (fault) {
        kl_buf shown = KL_BUF_INIT;
        for (const char *p = url; *p; p++)
            if ((unsigned char)*p < ' ' || *p == 0x7f)
                kl_buf_printf(&shown, "\\x%02x", *p);
            else
                kl_buf_putc(&shown, *p);
        char *why = kl_sprintf(
            "url must be a valid URL: parse \"%s\": %s" URL_FORM, kl_buf_str(&shown), fault);
        kl__say_required(c, at, why);
        kl_free(why);
        kl_free(fault);
        kl_buf_fini(&shown);
        return;
    }
    size_t scheme = colon && (!slash || colon < slash) ? (size_t)(colon - url) : 0;
    rest = scheme ? url + scheme + 1 : url;
    const char *host = !strncmp(rest, "//", 2) ? rest + 2 : "";
    size_t len = strcspn(host, "/?#");
    const char *user = memchr(host, '@', len), *fragment = strchr(rest, '#'), *query = strchr(rest, '?');
    if (query && fragment && query > fragment)
        query = NULL;
    if (scheme != 5 || strncmp(url, "https", 5)) {
        char *shown = kl_strndup(url, scheme);
        kl__say_invalid_text(c, at, shown, "'https' is the only allowed URL scheme" URL_FORM);
        kl_free(shown);
    }
    if (len == (user ? (size_t)(user - host) + 1 : 0))
        kl__say_invalid_text(c, at, "", "host must be specified" URL_FORM);
    if (user) {
        char *shown = kl_strndup(host, (size_t)(user - host));
        kl__say_invalid_text(c, at, shown, "user information is not permitted in the URL");
        kl_free(shown);
    }
    if (fragment && fragment[1])
        kl__say_invalid_text(c, at, fragment + 1, "fragments are not permitted in the URL");
    if (query && query[1] && query[1] != '#') {
        char *shown = kl_strndup(query + 1, strcspn(query + 1, "#"));
        kl__say_invalid_text(c, at, shown, "query parameters are not permitted in the URL");
        kl_free(shown);
    }
}

/* Checks the path of a service: segments between slashes, each like a name. */
static void check_path(kl__causes *c, const char *path, const kl__place *at)
{
    const char *p = path;
    size_t i = 0;
    if (!*path || !strcmp(path, "/"))
        return;
    if (*path != '/')
        kl__say_invalid_text(c, at, path, "must start with a '/'");
    for (p++; i == 0 || p[-1] == '/'; i++) {
        size_t n = strcspn(p, "/");
        char *segment = kl_strndup(p, n);
        const char *why[KL_FAULTS_MAX];
        size_t faults = kl__faults(segment, KL_DNS_SUBDOMAIN, why);
        if (!n && (p[n] || i == 0))
            kl__say_invalid_text(c, at, path, "segment[%zu] may not be empty", i);
        for (size_t k = 0; n && k < faults; k++)
            kl__say_invalid_text(c, at, path, "segment[%zu]: %s", i, why[k]);
        kl_free(segment);
        if (!p[n])
            break;
        p += n + 1;
    }
}

static void check_service(kl__causes *c, const kl_value *service, const kl__place *at)
{
    int64_t port = kl_value_int_at(service, 443, "port", NULL);
    /* The real one takes each for the other. */
    if (!*kl__text(service, "namespace"))
        kl__say_required(c, KL_IN(at, "name"), "");
    if (!*kl__text(service, "name"))
        kl__say_required(c, KL_IN(at, "namespace"), "");
    if (port < 1 || port > 65535)
        kl__say_invalid_int(
            c, KL_IN(at, "port"), port, "port is not valid: must be between 1 and 65535, inclusive");
    if (kl_value_get(service, "path"))
        check_path(c, kl__text(service, "path"), KL_IN(at, "path"));
}

static void check_client(kl__causes *c, const kl_value *client, const kl__place *at)
{
    const kl_value *url = kl_value_get(client, "url"), *service = kl_value_get(client, "service");
    if (!url == !service)
        kl__say_required(c, at, "exactly one of url or service is required");
    else if (url)
        check_url(c, kl__text(client, "url"), KL_IN(at, "url"));
    else
        check_service(c, service, KL_IN(at, "service"));
}

void kl_policy_validate_client(const kl_value *client, const char *field, kl__causes *causes)
{
    check_client(causes, client, KL_IN(NULL, field));
}

/* ------------------------------------------------------------------ rules */

/* The resource in `before` that includes this one: "pods/ *" or "* /status" for "pods/status"; NULL: none. */
static const char *wider(const kl_finder *before, const char *own)
{
    const char *slash = strchr(own, '/');
    if (!slash)
        return NULL;
    char *all_subs = kl_sprintf("%.*s/*", (int)(slash - own), own), *of_all = kl_sprintf("*%s", slash);
    long at = kl_finder_find_text(before, all_subs), other = kl_finder_find_text(before, of_all);
    kl_free(all_subs);
    kl_free(of_all);
    if (at < 0 || (other >= 0 && other < at))
        at = other;
    return at < 0 ? NULL : kl_value_str(before->v[at]);
}

static void check_resources(kl__causes *c, const kl_value *list, const kl__place *at)
{
    bool plain_others = false;
    kl_finder before = {0};
    if (!kl_value_len(list))
        kl__say_required(c, at, "");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *one = kl__item_text(list, i), *over = wider(&before, one);
        kl_finder_add(&before, kl_value_item(list, i));
        if (!*one)
            kl__say_required(c, KL_ITEM(at, i), "");
        if (over)
            kl__say_invalid_text(
                c, KL_ITEM(at, i), one, "if '%s' is present, must not specify %s", over, one);
        plain_others = plain_others || (*one && strcmp(one, "*") && !strchr(one, '/'));
    }
    kl_finder_fini(&before);
    if (kl_value_len(list) > 1 && kl_value_has_str(list, "*/*"))
        kl__say_invalid(c, at, list, "if '*/*' is present, must not specify other resources");
    if (plain_others && kl_value_has_str(list, "*"))
        kl__say_invalid(
            c, at, list, "if '*' is present, must not specify other resources without subresources");
}

static void check_rule(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    kl__check_rule_head(c, rule, at);
    check_resources(c, kl_value_get(rule, "resources"), KL_IN(at, "resources"));
    kl__check_word(c, rule, at, "scope", false, "* Cluster Namespaced");
}

/* ------------------------------------------------------------------ a webhook */

static void check_versions(kl__causes *c, const kl_value *list, const kl__place *at)
{
    if (!kl_value_len(list)) {
        kl__say_required(c, at, "must specify one of v1, v1beta1");
        return;
    }
    size_t before = c->len;
    kl_finder versions = {.empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        if (kl_finder_repeats(&versions, kl_value_item(list, i)))
            kl__say_invalid_text(c, KL_ITEM(at, i), kl__item_text(list, i), "duplicate version");
        kl__check_form(c, KL_ITEM(at, i), kl__item_text(list, i), KL_DNS_1035);
    }
    kl_finder_fini(&versions);
    if (c->len > before || kl_value_has_str(list, "v1"))
        return;
    if (kl_value_has_str(list, "v1beta1"))
        kl__say_invalid(c, at, list, "must include v1: the embedded API server does not speak v1beta1");
    else
        kl__say_invalid(c, at, list, "must include at least one of v1, v1beta1");
}

void kl_policy_validate_reviews(const kl_value *versions, const char *field, kl__causes *causes)
{
    const kl__place *at = KL_IN(NULL, field);
    if (!kl_value_len(versions))
        kl__say_required(causes, at, "");
    kl_finder before = {.empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(versions); i++) {
        const char *one = kl__item_text(versions, i);
        if (kl_finder_repeats(&before, kl_value_item(versions, i)))
            kl__say_invalid_text(causes, KL_ITEM(at, i), one, "duplicate version");
        else
            kl__check_form(causes, KL_ITEM(at, i), one, KL_DNS_1035);
    }
    kl_finder_fini(&before);
    if (kl_value_len(versions) && !kl_value_has_str(versions, "v1") && !kl_value_has_str(versions, "v1beta1"))
        kl__say_invalid(causes, at, versions, "must include at least one of v1, v1beta1");
}

static void complain(void *causes, bool warns, const char *reason, const char *field, const char *message)
{
    if (!warns)
        kl__cause_add(causes, reason, field, "%s", message);
}

static void check_conditions(kl__causes *c, const kl_value *hook, size_t i)
{
    char *path = kl_sprintf("webhooks[%zu].matchConditions", i);
    kl_cel_env *env = kl_cel_request_env(false, true);
    kl_cel_conditions_validate(env, kl_value_get(hook, "matchConditions"), path, complain, c);
    kl_cel_env_free(env);
    kl_free(path);
}

static void check_name(kl__causes *c, const kl_value *hook, const kl__place *at)
{
    const char *name = kl__text(hook, "name"), *dot = strchr(name, '.');
    size_t before = c->len;
    if (!*name) {
        kl__say_required(c, KL_IN(at, "name"), "");
        return;
    }
    kl__check_form(c, KL_IN(at, "name"), name, KL_DNS_SUBDOMAIN);
    if (c->len == before && (!dot || !strchr(dot + 1, '.')))
        kl__say_invalid_text(
            c, KL_IN(at, "name"), name, "should be a domain with at least three segments separated by dots");
}

static void check_hook(kl__causes *c, const kl_value *hook, bool mutating, size_t i, const kl__place *at)
{
    const kl_value *rules = kl_value_get(hook, "rules"), *effects = kl_value_get(hook, "sideEffects");
    int64_t timeout = kl_value_int_at(hook, KL_WEBHOOK_TIMEOUT, "timeoutSeconds", NULL);
    check_name(c, hook, at);
    for (size_t k = 0; k < kl_value_len(rules); k++)
        check_rule(c, kl_value_item(rules, k), KL_ITEM(KL_IN(at, "rules"), k));
    kl__check_word(c, hook, at, "failurePolicy", false, "Fail Ignore");
    kl__check_word(c, hook, at, "matchPolicy", false, "Equivalent Exact");
    if (kl_value_type(effects) == KL_NULL)
        kl__say_required(c, KL_IN(at, "sideEffects"), "must specify one of None, NoneOnDryRun");
    else if (!kl__one_of(kl__text(hook, "sideEffects"), "None NoneOnDryRun"))
        kl__say_unsupported(c, KL_IN(at, "sideEffects"), effects, "None NoneOnDryRun");
    if (timeout < 1 || timeout > 30)
        kl__say_invalid_int(
            c, KL_IN(at, "timeoutSeconds"), timeout, "the timeout value must be between 1 and 30 seconds");
    kl__check_selector(c, kl_value_get(hook, "namespaceSelector"), KL_IN(at, "namespaceSelector"));
    kl__check_selector(c, kl_value_get(hook, "objectSelector"), KL_IN(at, "objectSelector"));
    check_client(c, kl_value_get(hook, "clientConfig"), KL_IN(at, "clientConfig"));
    check_conditions(c, hook, i);
    if (mutating)
        kl__check_word(c, hook, at, "reinvocationPolicy", false, "IfNeeded Never");
}

void kl_policy_validate_hooks(const kl_value *o, bool mutating, kl__causes *c)
{
    const kl_value *hooks = kl_value_get(o, "webhooks");
    const kl__place *in = KL_IN(NULL, "webhooks");
    kl_finder names = {.key = "name"};
    for (size_t i = 0; i < kl_value_len(hooks); i++) {
        const kl_value *hook = kl_value_item(hooks, i);
        const kl__place *at = KL_ITEM(in, i);
        check_versions(
            c, kl_value_get(hook, "admissionReviewVersions"), KL_IN(at, "admissionReviewVersions"));
        check_hook(c, hook, mutating, i, at);
        if (*kl__text(hook, "name") && kl_finder_repeats(&names, hook))
            kl__say_duplicate(c, KL_IN(at, "name"), kl_value_get(hook, "name"));
    }
    kl_finder_fini(&names);
}
