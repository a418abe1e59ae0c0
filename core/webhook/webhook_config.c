/* webhook_config.c - options and specs to objects of admissionregistration.k8s.io/v1. */
#include "webhook/webhook_config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"

#define SERVICE_PORT 443

kl_status kl_webhook_service_parse(const char *text, kl_webhook_service *out, kl_err *err)
{
    const char *slash = strchr(text, '/'), *colon = slash ? strchr(slash, ':') : NULL;
    char *end = NULL;
    long port = colon ? strtol(colon + 1, &end, 10) : SERVICE_PORT;
    size_t n = slash ? (colon ? (size_t)(colon - slash) - 1 : strlen(slash + 1)) : 0;
    if (!slash || slash == text || !n || memchr(slash + 1, '/', n)
        || (colon && (!colon[1] || *end || port < 1 || port > 65535)))
        return kl_fail(err, KL_EINVAL, "\"%s\" must be NAMESPACE/NAME or NAMESPACE/NAME:PORT", text);
    *out = (kl_webhook_service){
        kl_strndup(text, (size_t)(slash - text)), kl_strndup(slash + 1, n), (int)port};
    return KL_OK;
}

void kl_webhook_service_fini(kl_webhook_service *s)
{
    kl_free(s->ns);
    kl_free(s->name);
    *s = (kl_webhook_service){0};
}

kl_status kl_webhook_options_check(const kl_webhook_options *o, kl_err *err)
{
    kl_webhook_service s = {0};
    kl_status st = KL_OK;
    if (!o->cert_dir && !o->url && !o->service)
        st = kl_fail(err, KL_EINVAL,
            "a script has webhooks: give the address at which the API server reaches this process "
            "(--webhook-service NAMESPACE/NAME, or --webhook-url https://HOST:PORT), or your own "
            "certificates (--webhook-cert-dir DIR)");
    else if (o->url && o->service)
        st = kl_fail(err, KL_EINVAL, "--webhook-url and --webhook-service exclude each other; leave one out");
    else if (o->url && strcmp(o->url, "auto") && (strncmp(o->url, "https://", 8) || !o->url[8]))
        st = kl_fail(err, KL_EINVAL, "--webhook-url \"%s\" must begin with https://", o->url);
    else if (o->service && (st = kl_webhook_service_parse(o->service, &s, err)))
        kl_err_prefix(err, "--webhook-service");
    kl_webhook_service_fini(&s);
    if (!st && o->secret && ((st = kl_webhook_service_parse(o->secret, &s, err)) || strchr(o->secret, ':')))
        st = kl_fail(err, KL_EINVAL, "--webhook-secret \"%s\" must be NAMESPACE/NAME", o->secret);
    kl_webhook_service_fini(&s);
    return st;
}

const char *kl_webhook_config_kind(bool mutating)
{
    return mutating ? "admissionregistration.k8s.io/v1/MutatingWebhookConfiguration"
                    : "admissionregistration.k8s.io/v1/ValidatingWebhookConfiguration";
}

/* The kind is the part with the capital letter. */
size_t kl_webhook_kind_split(const char *word, const char **subresource)
{
    *subresource = NULL;
    const char *p = word;
    for (; *p; p++)
        if (isupper((unsigned char)*p) && (p == word || p[-1] == '/'))
            break;
    size_t n = (size_t)(p - word) + strcspn(p, "/");
    if (*p && word[n] == '/')
        *subresource = word + n + 1;
    return *p ? n : strlen(word);
}

static void list_of(kl_builder *b, const char *key, const char *item)
{
    kl_build_key(b, key);
    kl_build_array(b);
    kl_build_str(b, item);
    kl_build_end(b);
}

static kl_status add_rule(kl_builder *b, const kl_webhook_spec *s, const char *word,
    kl_webhook_resolve_fn *resolve, void *arg, kl_err *err)
{
    const kl_resource *r = NULL;
    const char *sub;
    if (!strcmp(word, "*")) {
        kl_build_object(b);
        list_of(b, "apiGroups", "*");
        list_of(b, "apiVersions", "*");
        list_of(b, "resources", "*");
    } else {
        char *kind = kl_strndup(word, kl_webhook_kind_split(word, &sub));
        kl_status st = resolve(arg, kind, &r, err);
        kl_free(kind);
        if (st)
            return st;
        char *resource = kl_sprintf("%s%s%s", r->plural, sub ? "/" : "", sub ? sub : "");
        kl_build_object(b);
        list_of(b, "apiGroups", r->group);
        list_of(b, "apiVersions", r->version);
        list_of(b, "resources", resource);
        kl_free(resource);
    }
    kl_build_kvalue(b, "operations", s->operations);
    kl_build_kstr(b, "scope", s->scope);
    kl_build_end(b);
    return KL_OK;
}

void kl_webhook_client(kl_builder *b, const kl_value *where, const char *ca)
{
    kl_build_key(b, "clientConfig");
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(where); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(where, i, &key, &n);
        kl_build_kvalue(b, key, v);
    }
    if (ca) {
        char *text = kl_base64_encode(ca, strlen(ca));
        kl_build_kstr(b, "caBundle", text);
        kl_free(text);
    }
    kl_build_end(b);
}

kl_status kl_webhook_config(const kl_webhook_spec *s, const kl_value *where, const char *ca,
    kl_webhook_resolve_fn *resolve, void *arg, const kl_value **out, kl_err *err)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "admissionregistration.k8s.io/v1");
    kl_build_kstr(b, "kind", s->mutating ? "MutatingWebhookConfiguration" : "ValidatingWebhookConfiguration");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", s->as.name);
    kl_build_key(b, "labels");
    kl_build_object(b);
    kl_build_kstr(b, "app.kubernetes.io/managed-by", "kubelua");
    kl_build_end(b);
    kl_build_end(b);
    kl_build_key(b, "webhooks");
    kl_build_array(b);
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(s->entry); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(s->entry, i, &key, &n);
        kl_build_kvalue(b, key, v);
    }
    kl_build_key(b, "rules");
    kl_build_array(b);
    for (char **k = s->kinds; *k; k++) {
        kl_status st = add_rule(b, s, *k, resolve, arg, err);
        if (st) {
            kl_builder_free(b);
            return st;
        }
    }
    kl_build_end(b);
    kl_webhook_client(b, where, ca);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    *out = kl_builder_done(b);
    return KL_OK;
}
