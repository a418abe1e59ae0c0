/* session.h - sessions with a pod: its logs, a command in it (exec), its first process (attach), a port.
 *
 *   kl_session_start --> (connecting) --> open --> ended: kl_session_read says how
 *
 * Sessions run on their own thread of the client ("kl-streams"), apart from calls and watches: copying a
 * gigabyte does not delay a lease. A session owns an HTTP/1.1 connection, never a stream of a shared HTTP/2
 * one, because only then can a slow reader pause the sender (libcurl 7.88 must not pause HTTP/2): at most 256
 * KB are buffered in either direction, and the rest waits at its source. Logs are one GET; the others are
 * WebSockets: v5.channel.k8s.io or v4 for commands, and v4.channel.k8s.io for ports, where each forwarded
 * connection has a WebSocket of its own.
 *
 * Any thread may call these functions; one reads and one writes at a time. The client must outlive every call
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

/* channels; data of logs and ports arrives on KL_STDOUT, data for ports goes to KL_STDIN */
enum { KL_STDIN = 0, KL_STDOUT = 1, KL_STDERR = 2 };

typedef struct kl_session_request { /* borrowed for the call */
    kl_session_kind kind;
    const char *ns, *pod;
    const char *container; /* NULL: the pod's only one, or its default */
    /* exec, attach */
    const char *const *command; /* exec: words, NULL-terminated */
    bool input;                 /* its standard input comes from kl_session_write */
    /* a terminal: all its output arrives on KL_STDOUT */
    bool tty;
    /* NULL: v5.channel.k8s.io, else v4; or one of the two */
    const char *protocol;
    /* port */
    int port;
    /* logs */
    bool follow, previous, timestamps;
    int64_t since_seconds, tail, limit_bytes; /* -1: unset */
    const char *since_time;                   /* RFC 3339, or NULL */
    /* Called when there may be bytes to read, room to write, or the end; on the streams thread, without
     * locks. A caller that sets it must free the session on that thread, or after its end. May be NULL. */
    void (*on_change)(void *arg);
    void *arg;
} kl_session_request;
/* zeroes; sets the numbers for logs to -1 */
void kl_session_request_init(kl_session_request *r, kl_session_kind kind);

/* KL_EINVAL: a mistake in the request; nothing was contacted. Other failures are returned by
 * kl_session_read. */
KL_NODISCARD kl_status kl_session_start(
    kl_client *c, const kl_session_request *r, kl_session **out, kl_err *err);
/* Ends the session in any state, and frees it. Never waits. */
void kl_session_free(kl_session *s);

/* The next bytes and their channel; waits until `until` (0: not at all). KL_EAGAIN: none yet. KL_OK with *n
 * 0: the session ended without a failure, see kl_session_exit. Data that arrived before a failure is read
 * first. */
KL_NODISCARD kl_status kl_session_read(
    kl_session *s, kl_time until, int *channel, char *to, size_t cap, size_t *n, kl_err *err);
/* Accepts as many bytes as fit, and waits for room until `until` (0: not at all). *taken 0: none. After the
 * end all bytes are accepted and dropped: the reader gets the reason. */
void kl_session_write(kl_session *s, kl_time until, const char *data, size_t n, size_t *taken);
/* Sends the end of standard input after the written bytes. v4 cannot signal it, so there the session ends
 * with an error. */
void kl_session_close_input(kl_session *s);
void kl_session_resize(kl_session *s, int columns, int rows); /* the terminal's size; the last one counts */
/* Waits until it is open or has ended: true when it is (or was) open. */
bool kl_session_opened(kl_session *s, kl_time until);
/* After the end: the command's exit status. */
int kl_session_exit(kl_session *s);
/* the negotiated protocol; NULL before, and for logs. Static */
const char *kl_session_protocol(kl_session *s);

#endif
