/* retry.c - the table of retry.h. */
#include "client/retry.h"

#include <string.h>

#define RETRIES_MAX 10            /* as client-go */
#define BROKEN_WAIT KL_SECONDS(1) /* before the retry after a broken connection, as in client-go */

kl_time kl__retry_wait(const kl__attempt *a)
{
    if (a->retries >= RETRIES_MAX)
        return -1;
    if (!a->st)
        return a->code == 429 || a->code >= 500 ? a->retry_after : -1;
    if (a->st == KL_ECLOSED)
        return !strcmp(a->method, "GET") || !a->sent ? BROKEN_WAIT : -1;
    return a->st == KL_ETIMEOUT && a->watch ? BROKEN_WAIT : -1;
}
