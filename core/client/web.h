/* web.h - requests of scripts to servers that are no API server: ctx.http.
 *
 * A request is a kl_op with KL_HTTP, so that it goes the way of every call of a run: door, witnesses,
 * recordings, other processes. Of the op count name         the URL subresource  the method
 *   body         {headers: {name: text or [text]}, json | text | base64: the body, tls: {ca, cert, key, server_name}
 *                (PEM), proxy: a URL or "", redirects: how many to follow (0), max: bytes of an answer (4
 * MiB), expect: [codes that are no error], raw: JSON stays text} http         the rules of who asks
 * (http/reach.h) timeout, mandate, traceparent
 * and the answer is {status, url (after redirects), headers: {name in lower case: text or [text]}, json | body | base64}.
 *
 * Nothing is sent to where no rule lets it, redirects included, and nothing is retried here. */
#ifndef KL_CLIENT_WEB_H
#define KL_CLIENT_WEB_H

#include "client/client.h"

#define KL_WEB_ANSWER_DEFAULT ((int64_t)4 << 20)
#define KL_WEB_ANSWER_MAX ((int64_t)32 << 20)
#define KL_WEB_REDIRECTS_MAX 10

typedef struct kl_web kl_web;

typedef struct kl_web_options {
    const char *user_agent; /* NULL: none */
    bool http1;
    kl_clock *clock; /* of mandates; NULL: real */
    /* After each request; code 0: no answer. On the web's thread; may be NULL. */
    void (*on_request)(void *arg, const char *method, const char *host, int code, kl_time took);
    void *arg;
} kl_web_options;

/* Its thread starts with the first request. */
kl_web *kl_web_new(const kl_web_options *o);
void kl_web_free(kl_web *w); /* cancels, joins */

/* Whether the op may be sent by the rules in it: KL_EFORBIDDEN or KL_EINVAL says why not. Pure; any thread.
 */
KL_NODISCARD kl_status kl_web_check(const kl_op *op, kl_err *err);
/* Whether it changes nothing where it goes, so that a dry run may send it. */
bool kl_web_reads(const kl_op *op);
/* As kl_client_do and kl_client_cancel. Any thread; done comes on the web's thread, or at once when nothing
 * was sent. */
uint64_t kl_web_do(kl_web *w, const kl_op *op, kl_reply_fn *done, void *arg);
void kl_web_cancel(kl_web *w, uint64_t id);
/* The URL of a request as people may read it: no query, and nothing that looks like a key. Caller frees. */
char *kl_web_shown(const kl_op *op);
/* What a request is answered that a dry run does not send: {status: 204, headers: {}, body: "", dry_run:
 * true}. */
const kl_value *kl_web_unsent(void);
/* An answer out of its parts: `json`, or `text`. What a test has instead of a server. KL_EREJECTED and the
 * like for a status that is an error, as if it had come from there. */
KL_NODISCARD kl_status kl_web_answer(const kl_op *op, int status, const kl_value *headers, const char *body,
    size_t len, const kl_value **out, kl_err *err);

#endif
