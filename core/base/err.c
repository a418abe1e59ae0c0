/* err.c - how things fail: a status to branch on and a story to tell. */
#include "base/err.h"

#include <string.h>
#include "base/mem.h"

static const char *const names[] = {
    [KL_OK] = "ok",
    [KL_EINVAL] = "invalid",
    [KL_ESYNTAX] = "syntax",
    [KL_ETOOBIG] = "too_big",
    [KL_ENOTFOUND] = "not_found",
    [KL_EEXISTS] = "already_exists",
    [KL_ECONFLICT] = "conflict",
    [KL_EGONE] = "gone",
    [KL_EAUTH] = "unauthorized",
    [KL_EFORBIDDEN] = "forbidden",
    [KL_EREJECTED] = "rejected",
    [KL_ETHROTTLED] = "throttled",
    [KL_ESERVER] = "server",
    [KL_ETIMEOUT] = "timeout",
    [KL_ECONNECT] = "unreachable",
    [KL_ECLOSED] = "closed",
    [KL_ECANCELLED] = "cancelled",
    [KL_ENOTLEADER] = "not_leader",
    [KL_EIO] = "io",
    [KL_ESCRIPT] = "script",
    [KL_EAGAIN] = "again",
    [KL_EINTERNAL] = "internal",
};

const char *kl_status_name(kl_status s)
{
    return (size_t)s < sizeof names / sizeof *names ? names[s] : "internal";
}

kl_status kl_vfail(kl_err *err, kl_status status, const char *fmt, va_list ap)
{
    if (!err)
        return status;
    char *message = kl_vsprintf(fmt, ap); /* first: an argument may be the old message */
    kl_err_fini(err);
    err->status = status;
    err->message = message;
    return status;
}

kl_status kl_fail(kl_err *err, kl_status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    kl_vfail(err, status, fmt, ap);
    va_end(ap);
    return status;
}

kl_status kl_err_prefix(kl_err *err, const char *fmt, ...)
{
    if (!err)
        return KL_EINTERNAL; /* the caller has no message; it has the status */
    va_list ap;
    va_start(ap, fmt);
    char *prefix = kl_vsprintf(fmt, ap);
    va_end(ap);
    char *whole = kl_sprintf("%s: %s", prefix, kl_err_message(err));
    kl_free(prefix);
    kl_free(err->message);
    err->message = whole;
    return err->status;
}

const char *kl_err_message(const kl_err *err) { return err && err->message ? err->message : ""; }

void kl_err_fini(kl_err *err)
{
    if (!err)
        return;
    kl_free(err->reason);
    kl_free(err->message);
    kl_free(err->details);
    *err = KL_ERR_INIT;
}

void kl_err_move(kl_err *to, kl_err *from)
{
    if (!from || to == from)
        return;
    if (!to) {
        kl_err_fini(from);
        return;
    }
    kl_err_fini(to);
    *to = *from;
    *from = KL_ERR_INIT;
}

void kl_err_copy(kl_err *to, const kl_err *from)
{
    if (!to || !from || to == from)
        return;
    kl_err_fini(to);
    *to = *from;
    to->reason = kl_strdup(from->reason);
    to->message = kl_strdup(from->message);
    to->details = kl_strdup(from->details);
}
