/* session.h - conversations with a pod: its logs, a command in it, its first process, one of its ports.
 *
 *   kl_session_start --> (connecting) --> open --> ended: kl_session_read says how
 *
 * A session is carried by a thread of the client's own ("kl-streams"), apart from calls and watches:
 * whoever copies a gigabyte delays no lease. It owns an HTTP/1.1 connection, never a stream of a shared
 * HTTP/2 one, because only so can a slow reader hold the sender back (libcurl 7.88 must not pause HTTP/2):
 * at most 256 KB wait in either direction and the rest waits where it comes from. Logs are one GET; the
 * others are WebSockets: v5.channel.k8s.io or v4 for commands, v4.channel.k8s.io with a connection per
 * forwarded connection for ports.
 *
 * Any thread may call what is here; one reads and one writes at a time. The client must outlive every call
 * but kl_session_free. */
#ifndef KL_SESSION_SESSION_H
#define KL_SESSION_SESSION_H

#include "client/client.h"

typedef struct kl_session kl_session;

typedef enum kl_session_kind {
    KL_SESSION_LOGS,
    KL_SESSION_EXEC,
    KL_SESSION_ATTACH,
    KL_SESSION_PORT
} kl_session_kind;

/* channels; logs and ports speak on KL_STDOUT, ports listen on KL_STDIN */
enum { KL_STDIN = 0, KL_STDOUT = 1, KL_STDERR = 2 };

typedef struct kl_session_request { /* borrowed for the call */
    kl_session_kind kind;
    const char *ns, *pod;
    const char *container; /* NULL: the pod's only one, or its default */
    /* exec, attach */
    const char *const *command; /* exec: words, NULL-terminated */
    bool input;                 /* its standard input is ours */
    /* a terminal: what it writes comes on KL_STDOUT alone */
    bool tty;
    /* NULL: v5.channel.k8s.io, else v4; or one of the two */
    const char *protocol;
    /* port */
    int port;
    /* logs */
    bool follow, previous, timestamps;
    int64_t since_seconds, tail, limit_bytes; /* -1: unset */
    const char *since_time;                   /* RFC 3339, or NULL */
    /* Something may have changed (bytes, room, the end): called on the streams thread, without locks. Who
     * sets it lets go of the session on that thread, or when it has ended. May be NULL. */
    void (*on_change)(void *arg);
    void *arg;
} kl_session_request;
/* zeroes, numbers of logs -1 */
void kl_session_request_init(kl_session_request *r, kl_session_kind kind);

/* KL_EINVAL: a mistake in the request; nothing was contacted. Everything else is told by kl_session_read. */
KL_NODISCARD kl_status kl_session_start(
    kl_client *c, const kl_session_request *r, kl_session **out, kl_err *err);
/* Ends it, whatever it is doing, and lets go of it. Never waits. */
void kl_session_free(kl_session *s);

/* The next bytes and their channel, waited for until `until` (0: only looks). KL_EAGAIN: none yet. KL_OK
 * with *n 0: it ended well, see kl_session_exit. What came before a failure is read first. */
KL_NODISCARD kl_status kl_session_read(
    kl_session *s, kl_time until, int *channel, char *to, size_t cap, size_t *n, kl_err *err);
/* Takes as much as there is room for, and waits for room until `until` (0: not at all). *taken 0: none.
 * Once it has ended everything is taken and goes nowhere: the reader hears why. */
void kl_session_write(kl_session *s, kl_time until, const char *data, size_t n, size_t *taken);
/* The other side reads the end of its standard input after what was written. v4 cannot say so: then the
 * session ends with an error that says that. */
void kl_session_close_input(kl_session *s);
void kl_session_resize(kl_session *s, int columns, int rows); /* the terminal's size; the last one counts */
/* Waits until it is open or has ended: true when it is (or was) open. */
bool kl_session_opened(kl_session *s, kl_time until);
/* After the end: the command's exit status. */
int kl_session_exit(kl_session *s);
/* that was agreed upon; NULL before, and for logs. Static */
const char *kl_session_protocol(kl_session *s);

#endif
