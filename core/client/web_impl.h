/* web_impl.h - a web and its calls, for web.c, web_words.c and web_stream.c alone. */
#ifndef KL_CLIENT_WEB_IMPL_H
#define KL_CLIENT_WEB_IMPL_H

#include "client/web.h"

#include "base/sync.h"
#include "http/slots.h"

struct kl_web {
    kl_web_options o;
    char *user_agent;
    kl_mutex mu;
    kl_http *http KL_GUARDED_BY(mu);    /* NULL until the first request */
    kl_http *streams KL_GUARDED_BY(mu); /* likewise, for streams: HTTP/1.1, which can be paused */
    kl_slots calls KL_GUARDED_BY(mu);   /* streams are in it until they are over */
};

struct kl_web_call {
    kl_web *w;
    kl_http *http;
    uint64_t id, http_id;
    kl_reply_fn *done;
    void *arg;
    char *method, *url;
    char *host; /* as in the rule, for metrics */
    char *const *rules;
    const kl_value *order; /* op.body */
    char *traceparent;
    kl_mandate mandate;
    kl_buf sent; /* body */
    const char *type;
    bool strayed; /* a redirect led to another server: the first one's credentials are not sent */
    int64_t redirects, max;
    kl_time deadline, began;
    bool reads; /* the rule says that it only reads */
    bool cancelled, moved;
    /* the answer, as it arrives */
    int code;
    const kl_value *headers;
    char *location;
    kl_time retry_after;
    kl_buf body;
    kl_op asked; /* the request that a stand-in got */
    /* of a stream (web_stream.c) */
    bool streams; /* it is answered when its head has arrived, and read piece by piece */
    bool opened;  /* it was answered: `done` is the present reader's, or NULL */
    bool paused;
    char *first;   /* the URL of the first request, which reads must name even after redirects */
    int64_t total; /* bytes so far */
    bool ended;    /* no more bytes come; how it ended: */
    kl_status end;
    kl_err story;
};

/* Removes the call from the web and frees it. */
void kl__web_call_over(kl_web_call *x);
/* Cancels the call, once: aborts its transfer, or removes the call when the transfer has ended already. */
void kl__web_call_cancel(kl_web_call *x);

/* --- web_words.c: pure; any thread -------------------------------------------------------- */
#define KL__WEB_HEADERS 64 /* lines of a request's head, including the runtime's own four */
/* *rule (may be NULL) is the rule that allows the URL. */
KL_NODISCARD kl_status kl__web_check_url(char *const *rules, const char *url, const char **rule, kl_err *err);
/* Whether this status is a success: in the order's `expect`, or without one 2xx or 304. */
bool kl__web_expects(const kl_value *order, int code);
/* Builds an answer from its parts, or returns KL_EREJECTED and the like for an error status. */
KL_NODISCARD kl_status kl__web_answer(const kl_op *op, int status, const kl_value *headers, const char *body,
    size_t len, const kl_value **out, kl_err *err);
/* Adds `body`, or `base64` where it is not UTF-8. */
void kl__web_build_body(kl_builder *b, const char *body, size_t n);

/* --- web_stream.c: of a call that streams; its thread ------------------------------------- */
/* Answers the caller with the head and the id by which to read the stream. Replaces call_end. */
void kl__web_stream_open(kl_web_call *x);
/* Bytes have arrived: passes them on or buffers them, and pauses the server when too many wait. */
KL_NODISCARD kl_status kl__web_stream_data(kl_web_call *x, const char *data, size_t n, kl_err *err);
void kl__web_stream_lull(void *call);
/* The transfer has ended; err is moved from. x may be gone after this. */
void kl__web_stream_end(kl_web_call *x, kl_status st, kl_err *err);
/* A read or a close of a stream: as kl_web_do. */
uint64_t kl__web_stream_do(kl_web *w, const kl_op *op, kl_reply_fn *done, void *arg);

#endif
