/* credential.c - any output of a credential plugin, and any id token: a usable credential, or a short
 * message that shows nothing of it. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "auth/auth.h"
#include "auth/exec_plugin.h"
#include "auth/oidc.h"

#define V1 "client.authentication.k8s.io/v1"

static void check_plugin(const char *text, size_t n)
{
    kl__exec_credential c = {0};
    kl_err err = KL_ERR_INIT;
    if (kl__exec_plugin_parse(text, n, V1, &c, &err)) {
        CLAIM(*kl_err_message(&err) && strlen(kl_err_message(&err)) < 200);
        CLAIM(!c.token && !c.cert && !c.key);
        kl_err_fini(&err);
        return;
    }
    CLAIM(c.token || c.cert);
    CLAIM(!c.cert == !c.key);
    CLAIM(!c.token || (*c.token && kl__auth_is_token(c.token)));
    kl__exec_credential_fini(&c);
}

static void check_token(const char *text, size_t n)
{
    char *token = kl_strndup(text, n);
    kl_err err = KL_ERR_INIT;
    kl_time end = -1;
    if (kl__jwt_expiry(token, &end, &err))
        CLAIM(*kl_err_message(&err) && strlen(kl_err_message(&err)) < 200);
    else
        CLAIM(end >= 0);
    kl_err_fini(&err);
    kl_free(token);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_plugin((const char *)data, size);
    check_token((const char *)data, size);
    return 0;
}
