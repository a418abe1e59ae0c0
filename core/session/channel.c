/* channel.c - a command's end as a metav1.Status: Success, Failure with an exit code among its causes, or
 * another failure. */
#include "session/channel.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "client/answer.h"

static bool exit_code(const kl_value *status, int *code)
{
    const kl_value *causes = kl_value_get(kl_value_get(status, "details"), "causes");
    for (size_t i = 0; i < kl_value_len(causes); i++) {
        const char *reason = kl_value_str_at(kl_value_item(causes, i), "reason", NULL),
                   *message = kl_value_str_at(kl_value_item(causes, i), "message", NULL);
        if (!reason || strcmp(reason, "ExitCode") || !message)
            continue;
        char *end;
        long n = strtol(message, &end, 10);
        if (!isdigit((unsigned char)*message) && *message != '-')
            return false;
        *code = (int)n;
        return !*end && n >= -256 && n <= 4096;
    }
    return false;
}

kl_status kl__channel_exit(const kl__request *q, const char *text, size_t n, int *code, kl_err *err)
{
    const kl_value *v = NULL;
    kl_err story = KL_ERR_INIT;
    kl_status st = KL_OK;
    if (kl_value_decode(text, n, &v, &story)) {
        st = kl_fail(err, KL_ESERVER, "%s: the server's report on the command's end is not a Status: %s",
            q->what, kl_err_message(&story));
        kl_err_fini(&story);
        return st;
    }
    const char *word = kl_value_str_at(v, "status", NULL), *reason = kl_value_str_at(v, "reason", NULL);
    *code = 0;
    if (!word || (strcmp(word, "Success") && strcmp(word, "Failure")))
        st = kl_fail(err, KL_ESERVER, "%s: the server's Status says neither Success nor Failure", q->what);
    else if (*word == 'F' && !(reason && !strcmp(reason, "NonZeroExitCode") && exit_code(v, code)))
        st = kl__answer_fail_status(q, 0, v, err);
    kl_value_unref(v);
    return st;
}
