/* certificate.c - any answer of a signer: a certificate's facts are read or rejected, and so is its match
 * with a key. */
#include "base/mem.h"
#include "base/x509.h"
#include "base/x509_request.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = kl_alloc(size + 1);
    if (size)
        memcpy(text, data, size);
    text[size] = '\0';
    kl_x509_facts f;
    kl_err err = KL_ERR_INIT;
    kl_time end;
    if (!kl_x509_facts_read(text, &f, &err)) {
        CLAIM(f.cn && !kl_x509_not_after(text, &end, &err) && end == f.not_after);
        kl_x509_facts_fini(&f);
    } else {
        CLAIM(*kl_err_message(&err));
    }
    kl_err_fini(&err);
    if (kl_x509_check_pair(text, text, &err))
        CLAIM(*kl_err_message(&err));
    kl_err_fini(&err);
    kl_free(text);
    return 0;
}
