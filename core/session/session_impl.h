/* session_impl.h - the internals of a session: session.c has the public functions, session_wire.c the
 * connection, session_talk.c the protocol. */
#ifndef KL_SESSION_SESSION_IMPL_H
#define KL_SESSION_SESSION_IMPL_H

#include "session/channel.h"
#include "client/client_impl.h"
#include "session/session.h"
#include "http/upgrade.h"
#include "http/websocket.h"

/* Buffered bytes in one direction before the other end is paused, and when it may continue. */
#define KL__SESSION_HIGH ((size_t)256 << 10)
#define KL__SESSION_LOW ((size_t)64 << 10)

/* Timeout from the connection to the answer of the handshake. */
#define KL__SESSION_ANSWER_MAX KL_SECONDS(60)

/* A queue of (channel, bytes). Under the session's lock. */
typedef struct kl__pieces {
    kl_buf b;
    size_t at;
} kl__pieces;

typedef enum kl__wire { KL__CONNECTING, KL__SHAKING, KL__TALKING, KL__WAITING, KL__ENDED } kl__wire;

/* One request after the other, until one is answered for good. */
typedef struct kl__attempt {
    kl__credential *credential; /* the credential of the running request */
    uint64_t ticket;            /* of the credential that is being fetched */
    bool refused; /* the server answered 401; the message is kept until another credential arrives */
    bool replayed;
    int retries;
    kl_time again; /* when the request is sent again; 0: never */
    kl_time started, retry_after;
} kl__attempt;

/* The connection that the server has switched to WebSockets. */
typedef struct kl__talk {
    kl_pipe *pipe;
    kl__upgrade upgrade;
    kl_buf raw; /* the handshake that is still to be written */
    kl_websocket *ws;
    bool input_closed; /* the end of standard input was sent */
    int greeted;       /* port: bit n: the port number of channel n has arrived */
    bool deaf;         /* the peer accepts no more; its data is still read */
} kl__talk;

struct kl_session {
    kl_client *c;
    kl_http *http; /* the client's, for sessions */
    kl__request q;
    kl_session_kind kind;
    bool input, tty;
    int port;
    const char *protocols[3]; /* what is offered */
    void (*on_change)(void *arg);
    void *arg;

    /* streams thread */
    kl_list link; /* in the client's sessions until it ended */
    kl__wire wire;
    uint64_t http_id, timer_id;
    kl__attempt attempt;
    int code;    /* of the HTTP answer */
    kl_buf body; /* of an answer that is an error; of the error channel */
    kl__talk talk;
    bool held; /* the peer is paused: the reader is behind */
    /* the result, once known (`judged`); then the connection only has to close */
    kl_status verdict;
    bool judged;
    kl_err story;

    kl_mutex mu;
    kl_cond changed;
    int refs KL_GUARDED_BY(mu);
    bool posted KL_GUARDED_BY(mu); /* a wake-up is on its way to the thread */
    bool let_go KL_GUARDED_BY(mu); /* kl_session_free was called */
    kl__pieces in KL_GUARDED_BY(mu), out KL_GUARDED_BY(mu);
    bool hungry KL_GUARDED_BY(mu); /* the reader has caught up since the peer was paused */
    bool close_input KL_GUARDED_BY(mu);
    int columns KL_GUARDED_BY(mu), rows KL_GUARDED_BY(mu); /* the size that was not sent yet; 0: none */
    bool open KL_GUARDED_BY(mu), ended KL_GUARDED_BY(mu);
    const char *protocol KL_GUARDED_BY(mu);
    int exit KL_GUARDED_BY(mu);
    kl_status st KL_GUARDED_BY(mu);
    kl_err err KL_GUARDED_BY(mu);
};

void kl__pieces_add(kl__pieces *p, int channel, const char *data, size_t n);
size_t kl__pieces_len(const kl__pieces *p);
/* Up to cap bytes of the first piece; 0: there is none. */
size_t kl__pieces_take(kl__pieces *p, int *channel, char *to, size_t cap);

/* Any thread that has a reference; the last unref frees. */
void kl__session_ref(kl_session *s);
void kl__session_unref(kl_session *s);
/* On the streams thread: begins the session; handles requests of its users. Both are posted, and unref the
 * session at their end. */
void kl__session_begin(void *session);
void kl__session_nudged(void *session);

/* --- session_wire.c: the streams thread --------------------------------------------------- */
/* sets the result; later calls are ignored. err is moved from */
void kl__session_finish(kl_session *s, kl_status st, kl_err *err);
/* the same, with the session's name before the message */
void kl__session_fail(kl_session *s, kl_status st, kl_err *err);
/* Whether a refusal is retried; starts the retry. retry_after is -1 where the server sent none. */
bool kl__session_retry(kl_session *s, const kl__answer *a);
void kl__session_schedule(kl_session *s, kl_time when); /* its one timer */
void kl__session_opened(kl_session *s, const char *protocol);
/* calls on_change if it is still set */
void kl__session_tell(kl_session *s);
/* queues bytes for the reader; true: the sender has to wait */
bool kl__session_give(kl_session *s, int channel, const char *data, size_t n);

/* --- session_talk.c: the streams thread --------------------------------------------------- */
void kl__session_on_pipe(void *session, kl_pipe *p);
void kl__session_on_ready(void *session);
void kl__session_pump(kl_session *s); /* reads and writes what is ready */

#endif
