/* admission.c - any AdmissionReview: it is read or rejected with a message, and every decision makes a
 * readable answer. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "webhook/admission.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const kl_value *request = NULL, *review = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_admission_parse((const char *)data, size, &request, &err);
    CLAIM(!st == (request != NULL));
    CLAIM(!st || *kl_err_message(&err));
    if (!st) {
        CLAIM(kl_value_len(kl_value_get(request, "uid")) > 0);
        kl_buf out = KL_BUF_INIT;
        /* the strangest of decisions */
        kl_admission_reply(request, kl_value_get(request, "object"), &out);
        CLAIM(!kl_value_decode(kl_buf_str(&out), out.len, &review, NULL));
        CLAIM(kl_value_equal(kl_value_at(review, "response", "uid", NULL), kl_value_get(request, "uid")));
        kl_buf_fini(&out);
    }
    char *text = kl_strndup((const char *)data, size);
    kl_time t = kl_admission_time(text, KL_SECONDS(10));
    CLAIM(t > 0 && t <= KL_SECONDS(30));
    kl_free(text);
    kl_value_unref(review);
    kl_value_unref(request);
    kl_err_fini(&err);
    return 0;
}
