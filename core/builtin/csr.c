/* csr.c - CertificateSigningRequests: the spec never changes; approval adds conditions, status the rest.
 *
 * The request itself is not parsed: it must only be PEM of the right type. */
#include "builtin/csr.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/time.h"
#include "schema/edit.h"

/* What "-----BEGIN CERTIFICATE REQUEST" begins with in base64. */
#define PEM_BEGIN "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNU"

void kl__csr_create(const kl_value *user, const kl_value **o)
{
    static const char *const theirs[] = {"username", "uid", "groups", "extra"};
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++) {
        const kl_value *v = kl_value_get(user, theirs[i]);
        if (v)
            KL_EDIT(o, kl_value_ref(v), "spec", theirs[i]);
        else
            KL_CUT(o, "spec", theirs[i]);
    }
}

static const kl_value *conditions(const kl_value *o) { return kl_value_at(o, "status", "conditions", NULL); }
static const char *type_of(const kl_value *condition)
{
    const char *t = kl_value_str_at(condition, "type", NULL);
    return t ? t : "";
}
static bool decides(const char *type) { return !strcmp(type, "Approved") || !strcmp(type, "Denied"); }

static const kl_value *find(const kl_value *all, const char *type)
{
    for (size_t i = 0; i < kl_value_len(all); i++)
        if (!strcmp(type_of(kl_value_item(all, i)), type))
            return kl_value_item(all, i);
    return NULL;
}

/* The new conditions, with missing times filled in; writes to /status do not change decisions. */
static const kl_value *dated(kl_time wall, const kl_value *old, const kl_value *o, bool keep_decisions)
{
    char now[KL_TIME_MAX];
    kl_time_format_wall(wall, now);
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(conditions(o)); i++) {
        const kl_value *x = kl_value_ref(kl_value_item(conditions(o), i)),
                       *was = find(conditions(old), type_of(x));
        if (was && keep_decisions && decides(type_of(x))) {
            kl_value_unref(x);
            x = kl_value_ref(was);
        }
        const kl_value *since = kl_value_get(was, "lastTransitionTime");
        bool same = was && kl_value_equal(kl_value_get(was, "status"), kl_value_get(x, "status"));
        if (!kl_value_str_at(x, "lastUpdateTime", NULL))
            KL_EDIT(&x, kl_value_of_str(now), "lastUpdateTime");
        if (!kl_value_str_at(x, "lastTransitionTime", NULL))
            KL_EDIT(&x, same && kl_value_str(since) ? kl_value_ref(since) : kl_value_of_str(now),
                "lastTransitionTime");
        kl_build_value(b, x);
        kl_value_unref(x);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

void kl__csr_update(const char *sub, kl_time wall, const kl_value *old, const kl_value **o)
{
    bool approval = sub && !strcmp(sub, "approval"), status = sub && !strcmp(sub, "status");
    const kl_value *set = approval || status ? dated(wall, old, *o, status) : NULL;
    KL_EDIT(o, kl_value_ref(kl_value_get(old, "spec")), "spec");
    if (!status)
        KL_EDIT(o, kl_value_ref(kl_value_get(old, "status")), "status");
    if (kl_value_len(set) || kl_value_at(*o, "status", "conditions", NULL))
        KL_EDIT(o, kl_value_ref(set ? set : conditions(old)), "status", "conditions");
    kl_value_unref(set);
}

static void validate_conditions(const char *sub, const kl_value *old, const kl_value *o, kl__causes *causes)
{
    static const char *const lasting[] = {"Approved", "Denied", "Failed"};
    const kl_value *all = conditions(o);
    for (size_t i = 0; i < kl_value_len(all); i++) {
        const char *type = type_of(kl_value_item(all, i)),
                   *status = kl_value_str_at(kl_value_item(all, i), "status", NULL);
        char *at = kl_sprintf("status.conditions[%zu]", i);
        char *field = kl_sprintf("%s.%s", at, *type ? "status" : "type");
        bool only_true = decides(type) || !strcmp(type, "Failed");
        if (!*type || !status || !*status)
            kl__cause_required(causes, field, "");
        else if (strcmp(status, "True")
            && (only_true || (strcmp(status, "False") && strcmp(status, "Unknown"))))
            kl__cause_add(causes, "FieldValueNotSupported", field,
                "Unsupported value: \"%s\": supported values: %s", status,
                only_true ? "\"True\"" : "\"False\", \"True\", \"Unknown\"");
        kl_free(field);
        kl_free(at);
    }
    if (find(all, "Approved") && find(all, "Denied")) {
        const kl_value *last = kl_value_get(kl_value_item(all, kl_value_len(all) - 1), "type");
        kl__cause_invalid(
            causes, "status.conditions", last, "Approved and Denied conditions are mutually exclusive");
    }
    bool approval = sub && !strcmp(sub, "approval");
    for (size_t i = 0; old && i < 3; i++) {
        const kl_value *was = find(conditions(old), lasting[i]), *is = find(all, lasting[i]);
        char *why = NULL;
        if (was && !is)
            why = kl_sprintf("updates may not remove a condition of type \"%s\"", lasting[i]);
        else if (!was && is && i < 2 && !approval)
            why = kl_sprintf("updates may not add a condition of type \"%s\"", lasting[i]);
        if (why)
            kl__cause_forbidden(causes, "status.conditions", why);
        kl_free(why);
    }
}

void kl__csr_validate(const char *sub, const kl_value *old, const kl_value *o, kl__causes *causes)
{
    const kl_value *request = kl_value_at(o, "spec", "request", NULL),
                   *signer = kl_value_at(o, "spec", "signerName", NULL);
    const char *text = kl_value_str(request), *name = kl_value_str(signer);
    if (!old) {
        if (!text || strncmp(text, PEM_BEGIN, sizeof PEM_BEGIN - 1))
            kl__cause_invalid(causes, "spec.request", request, "PEM block type must be CERTIFICATE REQUEST");
        if (!kl_value_len(kl_value_at(o, "spec", "usages", NULL)))
            kl__cause_required(causes, "spec.usages", "");
        if (!name || !*name)
            kl__cause_required(causes, "spec.signerName", "");
        else if (!strchr(name, '/'))
            kl__cause_invalid(causes, "spec.signerName", signer,
                "must be a fully qualified domain and path of the form 'example.com/signer-name'");
    }
    validate_conditions(sub, old, o, causes);
    const kl_value *was = kl_value_at(old, "status", "certificate", NULL),
                   *is = kl_value_at(o, "status", "certificate", NULL);
    if (old && was && kl_value_len(was) && !kl_value_equal(was, is))
        kl__cause_forbidden(
            causes, "status.certificate", "updates may not modify existing certificate content");
}
