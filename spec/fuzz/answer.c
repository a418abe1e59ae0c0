/* answer.c - any answer of a server or a proxy: an error's body, a Retry-After, a Warning. Each becomes an
 * error with a message, or nothing; never a crash, and never a long quote of the body. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "client/answer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    static const int codes[] = {301, 400, 401, 403, 404, 409, 410, 422, 429, 500, 503, 504};
    kl__request q = {.method = "GET",
        .url = (char *)"https://h/api/v1/pods",
        .what = (char *)"list pods",
        .grant = (char *)"a rule"};
    kl_err err = KL_ERR_INIT;
    char *text = kl_strndup((const char *)data + 1, size - 1);
    kl_status st = kl__answer_fail(
        &q, &(kl__answer){codes[data[0] % 12], (const char *)data + 1, size - 1, 0, "a token"}, &err);
    CLAIM(st != KL_OK && st == err.status);
    CLAIM(!strncmp(kl_err_message(&err), "list pods: ", 11));
    kl_err_fini(&err);
    kl_time after = kl__retry_after(text, KL_SECONDS(1000000000));
    CLAIM(after >= -1 && after <= KL_SECONDS(24 * 3600));
    kl_free(kl__warning_text(text));
    kl_free(text);
    return 0;
}
