/* http_impl.h - the internals of the curl door, for the files that implement it only.
 *
 *   http_curl.h      libcurl's functions, and how they are loaded
 *   http.c           the thread: commands, timers, sockets, admission
 *   http_handle.c    easy handles, kept for requests of their kind
 *   http_transfer.c  one request on an easy handle, and libcurl's callbacks
 *   http_turn.c      interrupts a call of libcurl that does not return
 *   http_pipe.c      a connection that carries raw bytes, and foreign sockets on the thread
 *   http_error.c     messages about failures */
#ifndef KL_HTTP_HTTP_IMPL_H
#define KL_HTTP_HTTP_IMPL_H

#include <stdatomic.h>
#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/poller.h"
#include "base/sync.h"
#include "base/watchdog.h"
#include "http/gate.h"
#include "http/http.h"
#include "http/http_curl.h"
#include "http/slots.h"

/* An easy handle, reused by requests with equal options; in h->spare between two of them. */
typedef struct kl__handle {
    kl_list link; /* in h->spare, the last used first */
    CURL *easy;
    kl_buf kind;
    uint64_t hash;   /* of kind */
    char *origin;    /* the server to put in place of the URL's; or NULL */
    char *host_line; /* the Host header that goes with it; or NULL */
    struct curl_slist *connect_to;
    char *peer, *ca, *server_name, *proxy, *looked_up; /* as in kl__transfer */
    bool shares;
} kl__handle;

typedef struct kl__transfer {
    kl_list link;          /* in h->active from its start to its end */
    kl_list lull;          /* in h->lulls when data came in this round */
    kl__pass pass;         /* of its server's gate; unused with HTTP/1.1, where connections are not shared */
    kl_heap_node patience; /* in h->patience while it waits and has a total timeout */
    kl_http *h;
    bool running; /* the multi has it */
    bool shares;  /* may use HTTP/2 */
    uint64_t id;
    CURL *easy;
    struct curl_slist *headers;
    kl__handle *handle;      /* the easy handle and the strings that belong to it: */
    const char *peer;        /* "host:port" for messages */
    const char *ca;          /* the CA that verifies the server, for messages */
    const char *server_name; /* the name its certificate must carry */
    const char *proxy;       /* without user and password, for messages; or NULL */
    const char *looked_up;   /* the name that a new connection looks up; NULL: an address */
    char *reach;             /* as kl_http_request's; or NULL */
    bool lookup_told;
    bool well;         /* it ended cleanly: the handle may be reused */
    uint64_t identity; /* kl_tls's generation */
    char *body;
    size_t body_len, body_sent;
    kl_time total_timeout, connect_timeout;
    kl_buf head;       /* header lines of the answer that is arriving */
    size_t head_bytes; /* of all header lines: informational answers and trailers too */
    uint64_t received; /* bytes of the body, after gzip */
    bool head_done;    /* on_head has run: further header lines are trailers */
    bool cancelled;    /* no more callbacks but on_done */
    kl_status stopped; /* refused by permit or on_data */
    kl_err err;        /* its message */
    kl_status (*permit)(void *arg, kl_err *err);
    void (*on_head)(void *arg, const kl_http_head *head);
    kl_status (*on_data)(void *arg, const char *data, size_t n, kl_err *err);
    void (*on_lull)(void *arg);
    void (*on_done)(void *arg, kl_status st, int code, bool sent, kl_err *err);
    void (*on_pipe)(void *arg, kl_pipe *p);
    void (*on_ready)(void *arg);
    kl_pipe *pipe; /* once it is connected */
    void *arg;
    char story[CURL_ERROR_SIZE]; /* libcurl's message */
} kl__transfer;

struct kl_http {
    char *user_agent;
    bool http1;
    atomic_bool plain; /* a server abused gzip: requests no longer ask for it */
    CURLM *multi;
    kl_poller *poller;
    kl_thread *thread;
    _Atomic uint64_t thread_id;
    int max_streams;
    void (*on_lookup)(void *arg, const char *name, kl_time took);
    void *on_lookup_arg;
    /* thread only */
    kl_list active;
    kl_map *servers; /* "host:port name" -> server */
    bool gates_changed;
    kl_heap patience;
    kl_list lulls;    /* transfers that got data in this round */
    kl_time lull_due; /* when the next on_lull of them is due */
    kl_time due;      /* libcurl's timer */
    kl_list watched;  /* sockets that libcurl must not read */
    kl_guard turn;    /* guards calls of libcurl on the thread */
    kl_mutex sockets_mu;
    int *sockets KL_GUARDED_BY(sockets_mu); /* libcurl's open ones */
    size_t nsockets KL_GUARDED_BY(sockets_mu);
    kl_mutex mu; /* guards all that follows: */
    kl_list commands;
    kl_slots transfers;
    kl_slots timers;
    kl_heap timers_due;
    kl_list spare; /* handles */
    int nspare;
    bool stopping; /* kl_http_free has begun: no new requests */
    bool closed;   /* the thread takes no more commands */
};

/* --- http_transfer.c ---------------------------------------------------------------------- */
/* any thread: the caller owns it until it is in the command queue */
kl__transfer *kl__transfer_new(kl_http *h, const kl_http_request *r);
void kl__transfer_free(kl__transfer *t);
void kl__transfer_set_timeout(kl__transfer *t, kl_time left);
/* reports the transfer's name lookup, once; rc as far as known */
void kl__transfer_lookup(kl__transfer *t, CURLcode rc);
/* calls on_lull if data came since the last call */
void kl__transfer_lull(kl__transfer *t);
void kl__http_lulls(kl_http *h); /* all of them */

/* --- http_handle.c ------------------------------------------------------------------------ */
kl__handle *kl__handle_take(kl_http *h, const kl_http_request *r); /* any thread, as the next two */
/* sets the URL of the request that the handle was taken for */
void kl__handle_set_url(kl__handle *x, const char *url);
/* after it has left the multi; `well`: it can be used again */
void kl__handle_give(kl_http *h, kl__handle *x, bool well);
/* the spare ones, when no other thread knows h */
void kl__handles_free(kl_http *h);

/* --- http_turn.c -------------------------------------------------------------------------- */
void kl__turns_init(kl_http *h);
void kl__turns_fini(kl_http *h); /* after libcurl closed its sockets */
/* around each call of libcurl that may read; our callbacks run outside the turn: they end it and begin
 * another */
void kl__turn_begin(kl_http *h);
bool kl__turn_end(kl_http *h); /* false: no turn was open, as when the end of a pause delivers waiting data */
void kl__socket_opened(kl_http *h, int fd);
void kl__socket_closing(kl_http *h, int fd); /* before its number can be reused */

/* --- http_pipe.c -------------------------------------------------------------------------- */
/* t's connection is established: calls on_pipe; false: the connection is gone already */
bool kl__pipe_open(kl__transfer *t);
/* before libcurl closes the connection */
void kl__pipe_close(kl__transfer *t);
bool kl__http_ready(kl_http *h, const kl_ready *r); /* false: the socket is libcurl's */
void kl__http_forget_fds(kl_http *h);

/* --- http_error.c ------------------------------------------------------------------------- */
/* Translates libcurl's rc (or our own reason to stop) into a status and a message in *err. */
kl_status kl__transfer_explain(kl__transfer *t, CURLcode rc, bool sent, kl_err *err);
/* t's timeout expired before it was admitted */
kl_status kl__transfer_too_late(kl__transfer *t, kl_err *err);

#endif
