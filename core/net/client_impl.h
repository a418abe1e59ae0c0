/* client_impl.h - what the parts of the client share. Inside net. */
#ifndef KL_NET_CLIENT_IMPL_H
#define KL_NET_CLIENT_IMPL_H

#include <stdatomic.h>
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/sync.h"
#include "net/answer.h"
#include "net/auth.h"
#include "net/client.h"
#include "net/discovery.h"
#include "net/request.h"
#include "net/slots.h"

struct kl_client {
    kl_config config;
    kl_clock *clock;                /* ages of tokens and misses, dates in answers; waiting is by the real clock */
    char *field_manager;
    char *host;                     /* "127.0.0.1:6443", for metrics */
    char *credentials;              /* in words, for a 401 */
    kl__auth *auth;
    kl_http *calls, *watches;
    kl__discovery *discovery;
    void (*on_request)(void *arg, const char *method, const char *host, int code, kl_time took);
    void *on_request_arg;
    _Atomic bool closing;

    /* calls thread */
    kl_list active;                 /* calls from their start to their end */
    kl_random jitter;

    /* watch thread */
    kl_list streams;
    kl_slots stream_ids;

    kl_mutex mu;                    /* of what follows */
    kl_slots call_ids;
    kl_map *warned;                 /* texts of Warning headers that were logged */
};

/* Sends q with all headers; `authorization` is a header line or NULL. `http` is calls or watches. 0 when closing. */
typedef struct kl__send {
    const kl__request *q;
    const char *authorization;
    bool gzip;
    size_t gulp;
    kl_time total_timeout;
    void (*on_head)(void *arg, const kl_http_head *head);
    kl_status (*on_data)(void *arg, const char *data, size_t n, kl_err *err);
    void (*on_lull)(void *arg);
    void (*on_done)(void *arg, kl_status st, int code, bool sent, kl_err *err);
    void *arg;
} kl__send;
uint64_t kl__client_send(kl_client *c, kl_http *http, const kl__send *s);
void kl__client_count(kl_client *c, const kl__request *q, int code, kl_time started);      /* the metrics hook */
void kl__client_warnings(kl_client *c, const kl__request *q, const kl_http_head *head);    /* Warning: 299 into the log, each once */

/* A GET of a path with an Accept of its own, as kl_client_do. Any thread. */
uint64_t kl__client_get(kl_client *c, const char *path, const char *accept, kl_time timeout, kl_reply_fn *done, void *arg);
/* Ends every stream; watch thread, posted by kl_client_free. */
void kl__streams_cancel_all(void *client);

#endif
