/* httpd_impl.h - what the files of the server share: its registry, connections, streams and requests.
 *
 * Locks: registry (h->mu) before stream (s->mu) before libmicrohttpd's own. */
#ifndef KL_HTTPD_HTTPD_IMPL_H
#define KL_HTTPD_HTTPD_IMPL_H

#include <microhttpd.h>
#include <stdatomic.h>
#include "base/hangup.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/sync.h"
#include "httpd/httpd.h"

#define KL__HTTPD_BLOCK ((size_t)32 << 10) /* maximum bytes of one read of a stream */

struct kl_httpd {
    /* the owner's, and one per request that awaits its reply after its connection closed */
    _Atomic int refs;
    struct MHD_Daemon *daemon;
    kl_hangup *hangup;
    kl_httpd_handler *handler;
    void *arg;
    size_t max_body, max_queued, max_bodies;
    kl_keyring *tls; /* NULL: plain HTTP */
    uint16_t port;
    char *address;
    unsigned read_seconds;
    size_t send_rate;
    bool no_bodies;
    const char *cache_control, *mark;
    kl_mutex mu; /* the registry */
    bool stopping KL_GUARDED_BY(mu);
    uint64_t next_id KL_GUARDED_BY(mu);
    kl_list streams KL_GUARDED_BY(mu); /* attached to a connection */
    kl_list parked KL_GUARDED_BY(mu);  /* requests whose handler has returned without a reply */
    size_t unsent KL_GUARDED_BY(mu);   /* complete answers that were given and not sent yet */
    kl_cond sent;                      /* signalled when `unsent` is 0 */
    kl_list coming KL_GUARDED_BY(mu);  /* requests whose body is incomplete */
    size_t bodies KL_GUARDED_BY(mu);   /* bytes of all bodies in memory */
    /* address -> its part of `bodies`, in bytes (the pointer is the number) */
    kl_map *peers KL_GUARDED_BY(mu);
    kl_list connections KL_GUARDED_BY(mu);
    kl_time look_at KL_GUARDED_BY(mu); /* when to look for late connections; KL_NEVER: none can be late */
};

/* Lives from MHD_CONNECTION_NOTIFY_STARTED to CLOSED, after which its socket is closed. */
typedef struct kl__connection {
    kl_list link; /* under h->mu */
    int fd;
    kl_time due;      /* the deadline of the present request or answer; KL_NEVER: none; under h->mu */
    kl_keypair *pair; /* the pair that its TLS session uses, or NULL */
} kl__connection;

struct kl_httpd_stream {
    _Atomic int refs; /* the caller's and the response's */
    kl_list link;     /* in h->streams, under h->mu */
    uint64_t id;
    int fd;
    size_t max_queued;
    kl_mutex mu;
    struct MHD_Connection *conn KL_GUARDED_BY(mu); /* NULL once completed */
    bool suspended KL_GUARDED_BY(mu);
    bool closed KL_GUARDED_BY(mu); /* by the caller: ends when the queue is empty */
    bool gone KL_GUARDED_BY(mu);   /* by the peer, by overflow or by stop: end now */
    kl_buf queue KL_GUARDED_BY(mu);
    size_t sent KL_GUARDED_BY(mu); /* bytes at the front of queue that were sent already */
};

struct kl_httpd_request {
    kl_httpd *h;
    kl_list link; /* in h->coming, later perhaps in h->parked */
    /* NULL when the connection ended before the reply; under h->mu once parked */
    struct MHD_Connection *conn;
    /* method and path NULL: its head is incomplete; then only uri and cut are set */
    char *uri, *method, *path;
    char *mark;                      /* the value of the header h->mark in the answer */
    bool cut;                        /* the decoded URI contains a NUL, and would be cut there */
    const kl_httpd_witness *witness; /* or NULL */
    void *witness_arg;
    kl_buf body;
    uint64_t id; /* while it is coming, for kl_hangup; 0: it has no body */
    int fd;
    char *peer; /* its address, once it has a body */
    /* no more bytes will arrive; under h->mu, unlike the HTTP thread's data around it */
    bool ended;
    size_t counted; /* of h->bodies */
    bool crowded;   /* its body exceeded max_bodies */
    bool handled;   /* the handler has been called */
    bool again;     /* the handler is to be called again; under h->mu */
    bool halved;    /* see kl_httpd_halve */
    void *user;
    bool parked;                   /* under h->mu */
    bool unsent;                   /* one of h->unsent; under h->mu */
    bool owed;                     /* no reply yet; under h->mu */
    struct MHD_Response *response; /* to be queued by the server's thread; under h->mu */
    int code;
    size_t size;               /* of its whole body */
    struct MHD_Response *held; /* taken back by kl_httpd_hold; under h->mu */
    kl_httpd_stream *stream;   /* of the response, a reference: detached on completion */
};

/* --- httpd.c --- */

/* Returns the response; ends the process if it is NULL, because memory has run out. */
struct MHD_Response *kl__response_must(struct MHD_Response *response);

/* --- stream.c --- */

/* A stream of three references (its caller's, its request's and that of *response, which reads it). */
kl_httpd_stream *kl__stream_new(size_t max_queued, struct MHD_Response **response);
/* Puts it into the registry; conn NULL: the peer has gone already. */
void kl__stream_attach(kl_httpd *h, kl_httpd_stream *s, struct MHD_Connection *conn);
/* The connection is about to close, or to serve its next request. Server thread. */
void kl__stream_detach(kl_httpd *h, kl_httpd_stream *s);
void kl__stream_wake_locked(kl_httpd_stream *s) KL_REQUIRES(s->mu);
void kl__stream_unref(kl_httpd_stream *s);

/* --- request.c --- */

char *kl__peer_of(struct MHD_Connection *conn); /* its address as text; the caller frees */

/* --- connection.c --- */

/* Begins and ends a connection; libmicrohttpd calls it on the server's thread. */
void kl__connection_notify(
    void *h, struct MHD_Connection *conn, void **state, enum MHD_ConnectionNotificationCode what);
kl__connection *kl__connection_of(struct MHD_Connection *conn);
/* Sets the deadline of the connection's next request, or of its reading of an answer; 0: no deadline. */
void kl__connection_expect(kl_httpd *h, kl__connection *c, unsigned seconds);
/* Shuts down late connections, and sets look_at. */
void kl__connections_look_locked(kl_httpd *h) KL_REQUIRES(h->mu);

#endif
