/* conversion.c - see k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1 and, for what the other side
 * checks, pkg/apiserver/conversion/webhook_converter.go. */
#include "webhook/conversion.h"

#include <string.h>

#include "base/mem.h"
#include "webhook/review.h"
#include "webhook/webhook_config.h"

#define VERSION "apiextensions.k8s.io/v1"

static kl_status check(const kl_value *r, kl_err *err)
{
    const kl_value *objects = kl_value_get(r, "objects");
    const char *want = kl_value_str_at(r, "desiredAPIVersion", NULL);
    if (!want || !*want)
        return kl_fail(err, KL_EINVAL, "the request of the ConversionReview has no desiredAPIVersion");
    if (kl_value_type(objects) != KL_ARRAY)
        return kl_fail(err, KL_EINVAL, "the request of the ConversionReview has no objects");
    for (size_t i = 0; i < kl_value_len(objects); i++)
        if (!kl_value_str_at(kl_value_item(objects, i), "apiVersion", NULL))
            return kl_fail(err, KL_EINVAL, "object %zu of the ConversionReview has no apiVersion", i);
    return KL_OK;
}

kl_status kl_conversion_parse(const char *text, size_t n, const kl_value **request, kl_err *err)
{
    static const kl__review expected = {
        "apiextensions.k8s.io", "v1", "ConversionReview", "a", "conversionReviewVersions", check};
    return kl__review_request(&expected, text, n, request, err);
}

void kl_conversion_reply(const kl_value *request, const kl_value *decision, kl_buf *out)
{
    const kl_value *converted = kl_value_get(decision, "converted");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "ConversionReview");
    kl_build_kstr(b, "apiVersion", VERSION);
    kl_build_key(b, "response");
    kl_build_object(b);
    kl_build_kvalue(b, "uid", kl_value_get(request, "uid"));
    if (converted)
        kl_build_kvalue(b, "convertedObjects", converted);
    kl_build_key(b, "result");
    kl_build_object(b);
    kl_build_kstr(b, "status", converted ? "Success" : "Failure");
    if (!converted)
        kl__review_build_message(b, decision);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_value_encode(v, out);
    kl_value_unref(v);
}

const kl_value *kl_conversion_config(const char *name, const kl_value *where, const char *ca)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", VERSION);
    kl_build_kstr(b, "kind", "CustomResourceDefinition");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_end(b);
    kl_build_key(b, "spec");
    kl_build_object(b);
    kl_build_key(b, "conversion");
    kl_build_object(b);
    kl_build_kstr(b, "strategy", where ? "Webhook" : "None");
    if (where) {
        kl_build_key(b, "webhook");
        kl_build_object(b);
        kl_build_key(b, "conversionReviewVersions");
        kl_build_array(b);
        kl_build_str(b, "v1");
        kl_build_end(b);
        kl_webhook_client(b, where, ca);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}
