/* http_impl.h - the curl door from the inside: shared by the three files that make it, and by nobody else.
 *
 *   http.c           the thread: commands, timers, sockets, who may go in
 *   http_transfer.c  one request as an easy handle, and what libcurl tells of it
 *   http_error.c     how it ended, in words */
#ifndef KL_NET_HTTP_IMPL_H
#define KL_NET_HTTP_IMPL_H

#include <stdatomic.h>
#include <curl/curl.h>
#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/poller.h"
#include "base/sync.h"
#include "net/gate.h"
#include "net/http.h"
#include "net/slots.h"

typedef struct kl__transfer {
    kl_list link;                   /* in h->active from its start to its end */
    kl_list lull;                   /* in h->lulls when data came in this round */
    kl__pass pass;                  /* of its server's gate; none: HTTP/1.1, nothing to share */
    kl_heap_node patience;          /* in h->patience while it waits and has a total timeout */
    kl_http *h;
    bool running;                   /* the multi has it */
    bool shares;                    /* would take HTTP/2 */
    uint64_t id;
    CURL *easy;
    struct curl_slist *headers, *connect_to;
    char *peer;                     /* "host:port" for messages */
    char *ca;                       /* what the server is verified against, for messages */
    char *server_name;              /* the name its certificate must carry */
    char *body;
    size_t body_len, body_sent;
    kl_time total_timeout, connect_timeout;
    kl_buf head;                    /* header lines of the answer that is arriving */
    bool head_done;                 /* on_head has run: what comes now are trailers */
    bool cancelled;                 /* no more callbacks but on_done */
    kl_status stopped;              /* on_data's refusal */
    kl_err err;                     /* its story */
    void (*on_head)(void *arg, const kl_http_head *head);
    kl_status (*on_data)(void *arg, const char *data, size_t n, kl_err *err);
    void (*on_lull)(void *arg);
    void (*on_done)(void *arg, kl_status st, int code, bool sent, kl_err *err);
    void *arg;
    char story[CURL_ERROR_SIZE];    /* libcurl's */
} kl__transfer;

struct kl_http {
    char *user_agent;
    bool http1;
    CURLM *multi;
    kl_poller *poller;
    kl_thread *thread;
    _Atomic uint64_t thread_id;
    int max_streams;
    /* thread only */
    kl_list active;
    kl_map *servers;                            /* "host:port name" -> server */
    bool gates_changed;
    kl_heap patience;
    kl_list lulls;                              /* transfers that got data in this round */
    kl_time lull_due;                           /* when one of them has waited long enough */
    kl_time due;                                /* libcurl's timer */
    kl_mutex mu;                                /* of all that follows */
    kl_list commands;
    kl_slots transfers;
    kl_slots timers;
    kl_heap timers_due;
    bool stopping;            /* kl_http_free has begun: no new requests */
    bool closed;              /* the thread takes no more commands */
};

/* --- http_transfer.c ----------------------------------------------------------------------------------------------------- */
kl__transfer *kl__transfer_new(kl_http *h, const kl_http_request *r);     /* any thread: it is the caller's until it is in the fifo */
void kl__transfer_free(kl__transfer *t);
void kl__transfer_set_timeout(kl__transfer *t, kl_time left);
void kl__transfer_lull(kl__transfer *t);                                  /* tells it, if it got data since the last time */
void kl__http_lulls(kl_http *h);                                          /* all of them */

/* --- http_error.c --------------------------------------------------------------------------------------------------------- */
/* What libcurl's rc (or our own reason to stop) means: the status, and its story in *err. */
kl_status kl__transfer_explain(kl__transfer *t, CURLcode rc, bool sent, kl_err *err);
kl_status kl__transfer_too_late(kl__transfer *t, kl_err *err);            /* its time was over before it was let in */

#endif
