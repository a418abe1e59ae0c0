/* err.h - how functions fail: a status to branch on and a message for people.
 *
 * A function that can fail returns kl_status (0 is good) and describes the failure in an optional kl_err. The
 * caller owns the kl_err and initialises it with KL_ERR_INIT (or zeroes). A second error replaces the
 * first. */
#ifndef KL_BASE_ERR_H
#define KL_BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#define KL_NODISCARD __attribute__((warn_unused_result))
#define KL_PRINTF(f, a) __attribute__((format(printf, f, a)))

typedef enum kl_status {
    KL_OK = 0,
    KL_EINVAL,     /* the caller's argument or the user's input is wrong */
    KL_ESYNTAX,    /* text that does not parse */
    KL_ETOOBIG,    /* above a stated ceiling */
    KL_ENOTFOUND,  /* 404, or not found here */
    KL_EEXISTS,    /* 409 AlreadyExists */
    KL_ECONFLICT,  /* 409 Conflict */
    KL_EGONE,      /* 410 */
    KL_EAUTH,      /* 401, or credentials that cannot be read */
    KL_EFORBIDDEN, /* 403 */
    KL_EREJECTED,  /* 422 and other 4xx: the server understood the request and refused it */
    KL_ETHROTTLED, /* 429 */
    KL_ESERVER,    /* 5xx, or an invalid reply */
    KL_ETIMEOUT,   /* a deadline passed */
    KL_ECONNECT,   /* no connection: refused, unresolved, TLS */
    KL_ECLOSED,    /* the connection ended early */
    KL_ECANCELLED, /* stopped by its owner */
    KL_ENOTLEADER, /* a write was stopped: this process does not lead */
    KL_EIO,        /* files */
    KL_ESCRIPT,    /* a Lua error */
    KL_EAGAIN,     /* the call would have to wait */
    KL_EINTERNAL,  /* a bug in kubelua */
} kl_status;

/* The description of a failure. Strings belong to the error. */
typedef struct kl_err {
    kl_status status;
    int http_code;          /* 0 when no HTTP answer was involved */
    int64_t retry_after_ns; /* the delay the server asked for; 0: none */
    char *reason;           /* Kubernetes reason ("NotFound"), or NULL */
    char *message;          /* one sentence: object, fact, advice */
    char *details;          /* JSON text of Status.details, or NULL */
} kl_err;

#define KL_ERR_INIT ((kl_err){0})

/* Sets status and message (printf). Returns `status`, so `return kl_fail(err, KL_EINVAL, "...")`. err may be
 * NULL. */
kl_status kl_fail(kl_err *err, kl_status status, const char *fmt, ...) KL_PRINTF(3, 4);
kl_status kl_vfail(kl_err *err, kl_status status, const char *fmt, va_list ap);
/* Puts "prefix: " before the present message. Returns err->status. */
kl_status kl_err_prefix(kl_err *err, const char *fmt, ...) KL_PRINTF(2, 3);
/* The status as scripts see it in `e.kind`: "invalid", "syntax", "too_big", "not_found", "already_exists",
 * "conflict", "gone", "unauthorized", "forbidden", "rejected", "throttled", "server", "timeout",
 * "unreachable", "closed", "cancelled", "not_leader", "io", "script", "again", "internal". Static. */
const char *kl_status_name(kl_status s);
/* The message or "" ; borrowed until the next change of err. */
const char *kl_err_message(const kl_err *err);
void kl_err_fini(kl_err *err);              /* frees, leaves it initialised */
void kl_err_move(kl_err *to, kl_err *from); /* from ends empty */
void kl_err_copy(kl_err *to, const kl_err *from);

#endif
