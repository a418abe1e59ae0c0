/* client_impl.h - what the parts of the client share. */
#ifndef KL_CLIENT_CLIENT_IMPL_H
#define KL_CLIENT_CLIENT_IMPL_H

#include <stdatomic.h>
#include "base/bucket.h"
#include "base/list.h"
#include "base/map.h"
#include "base/random.h"
#include "base/sync.h"
#include "wire/proto.h"
#include "client/answer.h"
#include "client/client.h"
#include "auth/credentials.h"
#include "client/discovery.h"
#include "client/openapi.h"
#include "client/pace.h"
#include "client/request.h"
#include "client/web.h"
#include "http/slots.h"

struct kl_client {
    kl_config config;
    /* for the ages of tokens and missing kinds and for dates in answers; waits use the real clock */
    kl_clock *clock;
    char *field_manager;
    bool no_protobuf;
    char *host;  /* "127.0.0.1:6443", for metrics */
    char *proxy; /* for every request: a URL, or "" */
    kl__credentials *credentials;
    kl_http *calls, *watches;
    kl_shelf *shelf;        /* calls thread, once they run */
    kl_http *sessions_http; /* made by the first session, under mu */
    char *user_agent;
    kl__discovery *discovery;
    kl__openapi *openapi; /* NULL: nothing is checked */
    void (*on_warning)(void *arg, const char *text, const char *call);
    void *on_warning_arg;
    kl_web *web; /* NULL: nothing but the API server is reached */
    _Atomic bool closing;
    _Atomic bool lost; /* a request found no connection or lost it, and no answer has arrived since */

    /* calls thread */
    kl_proto_reader *reader; /* decodes protobuf; NULL until the first answer in it */
    const kl_value *like;    /* the last small answer, which the next one probably resembles */
    kl_list active;          /* calls from their start to their end */
    kl_random jitter;
    kl__pace pace;
    kl_list held; /* calls that wait for a place in the pace, in order (turn.c) */
    bool letting_in;
    uint64_t rest_timer; /* 0 none */

    /* watch thread */
    kl_list heeds; /* callbacks for the first answer after an outage */
    uint64_t heed_ids;
    kl_list streams;
    kl_slots stream_ids;

    kl_list sessions, forwards; /* streams thread */

    kl_mutex mu; /* guards the members below: */
    kl_client_hooks hooks;
    kl_bucket limiter; /* of calls and lists; rate 0: none */
    kl_slots call_ids;
    kl_time looked_again; /* when discovery was last asked for a verb that was missing; 0 never */
    kl_map *json_only;    /* resources that the server does not send in protobuf; see content.h */
    kl_map *warned;       /* texts of Warning headers that were logged */
};

/* Sends q with all headers and `credential` (from kl__credentials_get(c->credentials, ...)). `http` is calls
 * or watches. 0 when closing. */
typedef struct kl__send {
    const kl__request *q;
    const kl__credential *credential;
    const char *condition; /* "If-None-Match: ..." or NULL */
    bool gzip;
    size_t gulp;
    kl_time total_timeout;
    kl_status (*permit)(void *arg, kl_err *err); /* see kl_http_request */
    void (*on_head)(void *arg, const kl_http_head *head);
    kl_status (*on_data)(void *arg, const char *data, size_t n, kl_err *err);
    void (*on_lull)(void *arg);
    void (*on_done)(void *arg, kl_status st, int code, bool sent, kl_err *err);
    void (*on_pipe)(void *arg, kl_pipe *p); /* see kl_http_request */
    void (*on_ready)(void *arg);
    void *arg;
} kl__send;
uint64_t kl__client_send(kl_client *c, kl_http *http, const kl__send *s);
/* as kl_http_new, with name lookups reported to the metrics hooks */
KL_NODISCARD kl_status kl__client_http(kl_client *c, kl_http_options *o, kl_http **out, kl_err *err);
/* calls the metrics hooks */
void kl__client_count(kl_client *c, const kl__request *q, int code, int retries, kl_time started);
/* a request ended without an answer; any http thread */
void kl__client_failed(kl_client *c, kl_status st);
void kl__client_answered(kl_client *c, int code); /* the head of an answer has come; any http thread */
void kl__client_sizes(kl_client *c, const kl__request *q, size_t received);
/* calls the metrics hook for the wait before a request */
void kl__client_delayed(kl_client *c, const kl__request *q, kl_time waited);
/* takes a token of the limiter; returns how long to wait for it */
kl_time kl__client_limit(kl_client *c, const kl__request *q);
/* returns the token of a call that stopped waiting */
void kl__client_limit_return(kl_client *c);
/* reports each Warning: 299 header once */
void kl__client_warnings(kl_client *c, const kl__request *q, const kl_http_head *head);

/* A GET of a path with the given Accept header, as kl_client_do. Any thread. */
uint64_t kl__client_get(
    kl_client *c, const char *path, const char *accept, kl_time timeout, kl_reply_fn *done, void *arg);
/* The same for a caller that may have a copy with the ETag `known` (or NULL). If the copy is still valid, the
 * answer has the code 304, KL_OK and no body. `etag` is the answer's, or NULL. */
typedef void kl__tagged_fn(
    void *arg, kl_status st, int code, const kl_value *body, const char *etag, kl_err *err);
uint64_t kl__client_get_tagged(kl_client *c, const char *path, const char *accept, kl_time timeout,
    const char *known, kl__tagged_fn *done, void *arg);
/* Any method and path, as kl_client_raw; done follows. */
void kl__client_raw(kl_client *c, const char *method, const char *path, const char *content_type,
    const void *body, size_t len, kl_reply_fn *done, void *arg);
/* Ends every call; calls thread, posted by kl_client_free. */
void kl__calls_cancel_all(void *client);
/* Ends watches whose connection has old certificates, cleanly, so that their owners open them again; watch
 * thread. */
void kl__streams_move(void *client);
/* The thread of sessions (session.h), started on first use. kl__sessions_cancel_all, posted to it, ends all
 * sessions. */
KL_NODISCARD kl_status kl__client_streams(kl_client *c, kl_http **out, kl_err *err);
void kl__sessions_cancel_all(void *client);
void kl__forwards_stop_all(kl_client *c);
/* Ends every stream; watch thread, posted by kl_client_free. */
void kl__streams_cancel_all(void *client);

#endif
