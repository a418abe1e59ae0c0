/* web.h - requests of scripts to servers other than the API server: ctx.http.
 *
 * A request is a kl_op with KL_HTTP, so it passes the write door, witnesses, recordings and process borders
 * like every call of a run. It uses timeout, mandate and traceparent of the op, and:
 *
 *   name         the URL
 *   subresource  the method
 *   http         the rules of the caller (http/reach.h), or kl_web_anywhere
 *   body         an object; each member may be absent
 *     headers              {name: text or [text]}
 *     json, text, base64   the body, one of them
 *     tls                  {ca, cert, key, server_name}, PEM
 *     proxy                a URL, or "" for none
 *     redirects            how many to follow (0)
 *     max                  bytes of an answer (4 MiB)
 *     expect               [statuses that are answers, not errors]
 *     raw                  true: JSON stays text
 *     stream               true: the answer is read piece by piece, see below
 *
 * The answer is {status, url (after redirects), headers: {name in lower case: text or [text]}} and the body
 * as one of json, body and base64.
 *
 * A request with `stream` is answered when the head has arrived; the answer has `stream`, a text, instead of
 * a body. Further ops with the same name, subresource and http read the rest; their body has one of:
 *
 *     read  that text     {body or base64}, the data since the last read, or {ended: true}
 *     close that text     {}, and ends the stream
 *
 * Between reads, about 256 KiB are buffered here and the rest in the network. `max` limits the bytes of the
 * whole stream (absent: unlimited), `timeout` its whole time. Cancelling the first op's id ends it, too.
 *
 * No request goes to a server that the rules do not allow, redirects included, and none is retried here. */
#ifndef KL_CLIENT_WEB_H
#define KL_CLIENT_WEB_H

#include "client/client.h"

#define KL_WEB_ANSWER_DEFAULT ((int64_t)4 << 20)
#define KL_WEB_ANSWER_MAX ((int64_t)32 << 20)
#define KL_WEB_REDIRECTS_MAX 10

/* op.http without rules, for standalone programs; recognised by its address. URLs, redirects and addresses
 * are not restricted then. */
extern char *const kl_web_anywhere[];

typedef struct kl_web kl_web;
typedef struct kl_web_call kl_web_call; /* a request for a stand-in to answer */

/* The answer of a stand-in: with status KL_OK an HTTP answer, else the failure in err. */
typedef struct kl_web_reply {
    kl_status status;
    int code;                /* HTTP */
    const kl_value *headers; /* as in an answer; NULL: none */
    const char *body;        /* len bytes */
    size_t len;
    kl_err *err; /* moved from */
} kl_web_reply;

/* Ends the call, once, on any thread, as if a server had sent this answer: expect, redirects and max
 * apply. */
void kl_web_answer(kl_web_call *x, const kl_web_reply *r);

typedef struct kl_web_options {
    const char *user_agent; /* NULL: none */
    bool http1;
    kl_clock *clock; /* of mandates; NULL: real */
    /* After each request; code 0: no answer. On the web's thread; may be NULL. */
    void (*on_request)(void *arg, const char *method, const char *host, int code, kl_time took);
    void *arg;
    /* A stand-in: it gets each request that the rules allow, and none is sent. It must answer each through
     * kl_web_answer before the web is freed. `op` is borrowed until then. Any thread. */
    void (*ask)(void *arg, kl_web_call *x, const kl_op *op);
    void *ask_arg;
} kl_web_options;

/* Its thread starts with the first request. */
kl_web *kl_web_new(const kl_web_options *o);
void kl_web_free(kl_web *w); /* cancels, joins */

/* Whether the op's rules allow it to be sent: KL_EFORBIDDEN or KL_EINVAL says why not. Pure; any thread. */
KL_NODISCARD kl_status kl_web_check(const kl_op *op, kl_err *err);
/* Whether the request is read-only, so that a dry run may send it. */
bool kl_web_reads(const kl_op *op);
/* Whether the request opens a stream: the caller has to close it, or cancel the op's id. */
bool kl_web_streams(const kl_op *op);
/* Whether the request reads or closes a stream that another op has opened. */
bool kl_web_of_stream(const kl_op *op);
/* As kl_client_do and kl_client_cancel. Any thread; done is called on the web's thread, or at once when
 * nothing was sent. */
uint64_t kl_web_do(kl_web *w, const kl_op *op, kl_reply_fn *done, void *arg);
void kl_web_cancel(kl_web *w, uint64_t id);
/* The URL of a request for logs: without query, and without anything that looks like a key. Caller frees. */
char *kl_web_shown(const kl_op *op);
/* The answer to a request that a dry run does not send: {status: 204, headers: {}, body: "", dry_run:
 * true}. */
const kl_value *kl_web_unsent(void);

#endif
