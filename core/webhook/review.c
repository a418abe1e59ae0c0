/* review.c - reads the head of a review, and writes what all answers have. */
#include "webhook/review.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"

static const char *text_at(const kl_value *v, const char *key)
{
    const char *text = kl_value_str_at(v, key, NULL);
    return text ? text : "";
}

static kl_status check(const kl__review *x, const kl_value *review, kl_err *err)
{
    const char *is = text_at(review, "apiVersion"), *kind = text_at(review, "kind");
    size_t group = strlen(x->group);
    if (strcmp(kind, x->kind) || strncmp(is, x->group, group) || is[group] != '/')
        return kl_fail(err, KL_EINVAL, "expected %s %s of %s/%s, got kind \"%.60s\" of \"%.60s\"", x->article,
            x->kind, x->group, x->version, kind, is);
    if (strcmp(is + group + 1, x->version))
        return kl_fail(err, KL_EINVAL, "%s of %.60s is not supported: set %s to [\"%s\"]", x->kind, is,
            x->field, x->version);
    const kl_value *r = kl_value_get(review, "request");
    if (kl_value_type(r) != KL_OBJECT)
        return kl_fail(err, KL_EINVAL, "the %s has no request", x->kind);
    if (!*text_at(r, "uid"))
        return kl_fail(err, KL_EINVAL, "the request of the %s has no uid", x->kind);
    return KL_OK;
}

kl_status kl__review_request(
    const kl__review *expected, const char *text, size_t n, const kl_value **request, kl_err *err)
{
    const kl_value *review = NULL;
    kl_status st = kl_value_decode(text, n, &review, err);
    if (st) {
        kl_err_prefix(err, "the body is not JSON");
        return st;
    }
    const kl_value *found = kl_value_get(review, "request");
    st = check(expected, review, err);
    if (!st)
        st = expected->check(found, err);
    if (!st)
        *request = kl_value_ref(found);
    kl_value_unref(review);
    return st;
}

void kl__review_build_message(kl_builder *b, const kl_value *decision)
{
    const char *message = kl_value_str_at(decision, "message", NULL);
    char *cut = message ? kl_log_cut(message) : NULL;
    kl_build_kstr(b, "message", cut ? cut : message);
    kl_free(cut);
}
