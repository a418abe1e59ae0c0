/* httpd.h - the only door to libmicrohttpd: one listening socket, requests answered at once or by a stream.
 *
 * The handler runs on the server's own thread (one internal epoll thread) and blocks all other connections
 * meanwhile, so it must return within a second (probes and scrapes wait up to 500 ms for a control loop). A
 * reply is either a whole body, or a stream (kl_httpd_stream): any thread may write to it, and it needs no
 * thread, because its connection is suspended while there is nothing to send. */
#ifndef KL_HTTPD_HTTPD_H
#define KL_HTTPD_HTTPD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/keyring.h"

typedef struct kl_httpd kl_httpd;
typedef struct kl_httpd_request kl_httpd_request;
typedef struct kl_httpd_stream kl_httpd_stream;

typedef void kl_httpd_handler(void *arg, kl_httpd_request *req);

typedef struct kl_httpd_options {
    /* "127.0.0.1:8080", ":8080", "[::1]:0"; port 0 picks one. "unix:PATH": see httpd/unixsock.h; the socket's
     * file stays after the stop */
    const char *listen;
    size_t max_body; /* a larger request is answered 413; 0 means 16 MiB */
    /* HTTPS with the pair in it; borrowed, outlives the server. NULL: plain HTTP */
    kl_keyring *tls;
    size_t max_queued;         /* bytes that may wait in one stream; 0 means 256 MiB */
    bool no_bodies;            /* a request with a body is answered 413 */
    const char *cache_control; /* of answers that have no such header; borrowed. NULL: none */
    /* a header of each answer with the request's own value of it, or with a new UUID; borrowed. NULL: none */
    const char *mark;
    /* a timeout in seconds, after which the connection is closed: for a request's head, and for pauses in a
     * body or in the client's reading of a whole answer. A whole body may take twice as long. 0 means 32 */
    unsigned read_seconds;
    /* bytes a second: the client must read a whole answer within twice read_seconds plus its length at this
     * rate, or the connection is closed. 0 means 32 KiB */
    size_t send_rate;
    /* maximum bytes of all request bodies in memory, and half of that from one address; beyond that, requests
     * are answered 503. 0 means 256 MiB */
    size_t max_bodies;
    /* called once per request, when its body has arrived; must call kl_httpd_reply* before or after
     * returning */
    kl_httpd_handler *handler;
    void *arg;
} kl_httpd_options;

KL_NODISCARD kl_status kl_httpd_start(const kl_httpd_options *o, kl_httpd **out, kl_err *err);
/* Waits until all complete answers are sent, at most until `deadline` (real clock). NULL is fine. Not from a
 * handler. */
void kl_httpd_drain(kl_httpd *h, kl_time deadline);
/* ends streams, closes connections, joins, frees; NULL is fine */
void kl_httpd_stop(kl_httpd *h);
uint16_t kl_httpd_port(const kl_httpd *h);
/* The seconds within which a client must read a whole answer of `len` bytes. */
unsigned kl_httpd_send_seconds(const kl_httpd *h, size_t len);
const char *kl_httpd_address(const kl_httpd *h); /* "127.0.0.1:PORT" as bound; lives as long as h */

/* About the request: borrowed until the handler returns, or until the reply if that comes earlier. A handler
 * that answers later copies what it needs. */
const char *kl_httpd_method(const kl_httpd_request *r);
/* without the query, percent-decoded */
const char *kl_httpd_path(const kl_httpd_request *r);
/* path and query as they were sent */
const char *kl_httpd_uri(const kl_httpd_request *r);
/* the client's address, without a port; NULL: unknown. Caller frees */
char *kl_httpd_source(const kl_httpd_request *r);
const char *kl_httpd_query(const kl_httpd_request *r, const char *name); /* decoded first value, or NULL */
void kl_httpd_query_each(
    const kl_httpd_request *r, const char *name, void (*fn)(void *arg, const char *value), void *arg);
/* whether the client is on this machine (or came through it) */
bool kl_httpd_from_loopback(const kl_httpd_request *r);
/* the client process; false except for Unix sockets */
bool kl_httpd_peer(const kl_httpd_request *r, pid_t *pid, uid_t *uid);
/* the whole query, decoded, for people: "a=b&c"; caller frees */
char *kl_httpd_query_text(const kl_httpd_request *r);
/* the subject of the client's certificate, see kl_keyring_peer; KL_PEER_NONE without TLS */
kl_peer kl_httpd_client(const kl_httpd_request *r, char **cn, char **organizations);
const char *kl_httpd_header(const kl_httpd_request *r, const char *name); /* or NULL */
/* For a server that answers only this machine: the header ("Host" or "Origin") that reveals a request that a
 * browser sends for a foreign page (by DNS rebinding, or from another host or port); NULL: neither does. */
const char *kl_httpd_foreign(const kl_httpd_request *r);
/* each header of the request, in unspecified order */
void kl_httpd_header_each(
    const kl_httpd_request *r, void (*fn)(void *arg, const char *name, const char *value), void *arg);
const char *kl_httpd_body(const kl_httpd_request *r, size_t *len);

/* A handler's own data for a request, kept between two calls; the handler frees it. NULL at first. */
void kl_httpd_set_user(kl_httpd_request *r, void *user);
void *kl_httpd_user(const kl_httpd_request *r);
/* For a request whose handler returned without a reply: calls the handler again, on the server's thread, with
 * the complete request. False when the peer has gone or the server stops; the caller then still replies, and
 * the reply is discarded. Any thread. */
bool kl_httpd_again(kl_httpd_request *r);

/* The value of the header `mark` in the answer, or NULL. */
const char *kl_httpd_mark(const kl_httpd_request *r);

/* The observer of a request: at most one each. */
typedef struct kl_httpd_witness {
    /* An answer was given or, with `goes_on` and no body, a stream began. Called inside kl_httpd_reply*;
     * called again for the answer that replaces a retracted one. */
    void (*answered)(
        void *arg, int code, const char *content_type, const void *body, size_t len, bool goes_on);
    /* The request has ended, answered or not. */
    void (*ended)(void *arg);
} kl_httpd_witness;
/* Sets the observer; the handler calls it. `w` is static. */
void kl_httpd_attend(kl_httpd_request *r, const kl_httpd_witness *w, void *arg);
void *kl_httpd_attended(const kl_httpd_request *r); /* that arg, or NULL */

/* One whole answer; headers are "Name: value\r\n" lines or NULL; one without a value leaves out a default.
 * Copies body. Exactly one kl_httpd_reply* per request, inside the handler or later on any thread; the
 * request is gone afterwards. */
void kl_httpd_reply(kl_httpd_request *r, int code, const char *content_type, const char *headers,
    const void *body, size_t len);
/* The same with a body that is moved out of `body` (large lists). */
void kl_httpd_reply_take(
    kl_httpd_request *r, int code, const char *content_type, const char *headers, kl_buf *body);
/* For tests of clients: sends only half of the next whole answer, then closes the connection. The handler
 * calls it. */
void kl_httpd_halve(kl_httpd_request *r);
/* With kl_httpd_hold a running handler takes back the complete answer that it has just given, and owns the
 * request again. Later, on any thread, kl_httpd_release sends that answer, or kl_httpd_retract drops it, and
 * the caller gives another. */
void kl_httpd_hold(kl_httpd_request *r);
void kl_httpd_release(kl_httpd_request *r);
void kl_httpd_retract(kl_httpd_request *r);
/* Starts a chunked answer; headers as above. The caller owns one reference to the stream and must
 * kl_httpd_stream_close it in the end, which may be after kl_httpd_stop. */
kl_httpd_stream *kl_httpd_reply_stream(
    kl_httpd_request *r, int code, const char *content_type, const char *headers);
/* Queues bytes. False when the peer is gone or more than `max_queued` bytes wait; the stream is dead then, as
 * after kl_httpd_stream_cut. Any thread. */
bool kl_httpd_stream_write(kl_httpd_stream *s, const void *data, size_t len);
size_t kl_httpd_stream_queued(kl_httpd_stream *s);
bool kl_httpd_stream_gone(kl_httpd_stream *s); /* the peer hung up */
/* drops the queued bytes and the connection, for a peer that does not read. Any thread */
void kl_httpd_stream_cut(kl_httpd_stream *s);
/* sends the queued bytes, then ends the answer; drops the caller's reference */
void kl_httpd_stream_close(kl_httpd_stream *s);

#endif
