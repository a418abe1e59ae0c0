/* control.h - the control socket: HTTP with JSON on a Unix socket, for the owner of the process to inspect
 * and command it.
 *
 *   curl --unix-socket $XDG_RUNTIME_DIR/kubelua/PID.sock http://kubelua/v1/controllers
 *
 * It serves only the process's own user and root, and logs each command with its sender. Other rooms add
 * routes; paths begin with the version of the API. An answer other than 2xx has {"error": "..."}. */
#ifndef KL_CONTROL_CONTROL_H
#define KL_CONTROL_CONTROL_H

#include "httpd/httpd.h"
#include "value/value.h"

typedef struct kl_control kl_control;
typedef struct kl_control_request kl_control_request;

/* Answers with one kl_control_reply or kl_control_refuse, at once or later on any thread. Called on an HTTP
 * thread; may wait for the manager's loop, but not for runs. */
typedef void kl_control_handler(void *arg, kl_control_request *q);

/* Routes can be added and called (kl_control_serve) from now on. `about`, an object or NULL, is shown by GET
 * /v1/ beside routes, pid and version. */
kl_control *kl_control_new(const kl_value *about);
/* `help` is one line for GET /v1/. Any thread, before or after it listens; an existing route is replaced.
 * Strings are copied. */
void kl_control_route(
    kl_control *c, const char *method, const char *path, const char *help, kl_control_handler *fn, void *arg);
/* Guards the present routes of a path that show contents which a read-only visitor must not see (Secrets).
 * They then serve only callers that may make changes. */
void kl_control_guard(kl_control *c, const char *path);
bool kl_control_guarded(kl_control *c, const char *path);
/* Begins to listen. path NULL: PID.sock in kl_control_dir. */
KL_NODISCARD kl_status kl_control_listen(kl_control *c, const char *path, kl_err *err);
const char *kl_control_path(const kl_control *c); /* where it listens, or NULL */
/* When it returns, no handler runs or will be called, and the socket is gone. Pending requests must still be
 * answered; the answers are discarded. */
void kl_control_close(kl_control *c);
/* closes; no answer may be pending. NULL is fine */
void kl_control_free(kl_control *c);
/* The default directory of sockets: $XDG_RUNTIME_DIR/kubelua, or /tmp/kubelua-UID. Caller frees. */
char *kl_control_dir(void);

/* Serves a request that another listener has authenticated, as if it came from the socket. `who` is for the
 * log. Without `change` only unguarded GETs are allowed. The request is answered now or later. */
void kl_control_serve(kl_control *c, kl_httpd_request *r, const char *who, bool change);

/* --- for handlers ------------------------------------------------------------------------- */
/* a parameter of the query, or NULL; borrowed until the handler returns */
const char *kl_control_query(const kl_control_request *q, const char *name);
/* NULL: no body; borrowed until the answer */
const kl_value *kl_control_body(const kl_control_request *q);
/* "uid=0 pid=123"; borrowed until the answer */
const char *kl_control_who(const kl_control_request *q);
/* Takes the reference; NULL: {}. */
void kl_control_reply(kl_control_request *q, int code, const kl_value *body);
void kl_control_refuse(kl_control_request *q, int code, const char *fmt, ...) KL_PRINTF(3, 4);
/* Answers with the failure's message and the HTTP code of its status. */
void kl_control_fail(kl_control_request *q, const kl_err *err);

#endif
