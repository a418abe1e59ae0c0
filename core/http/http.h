/* http.h - the only door to libcurl: one thread with one curl multi handle and a poller; requests, streams,
 * timers and posted calls.
 *
 * Every callback runs on that thread and must not wait. A process has two instances, "calls" and "watches",
 * so that a list of 100,000 objects never delays a lease renewal. libcurl 7.88: the write callback always
 * consumes (an HTTP/2 stream is never paused), PIPEWAIT is on, streams per connection stay below the server's
 * limit. TCP keepalive and TCP_USER_TIMEOUT find dead peers. */
#ifndef KL_HTTP_HTTP_H
#define KL_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/clock.h"
#include "base/err.h"

typedef struct kl_http kl_http;
typedef struct kl_pipe kl_pipe;

typedef struct kl_tls { /* borrowed for the call of kl_http_submit; strings may be NULL */
    const char *ca_file, *ca_pem;
    const char *cert_file, *cert_pem, *key_file, *key_pem;
    const char *server_name;
    bool insecure;
    /* the number of this configuration: requests with the same number share connections */
    uint64_t generation;
} kl_tls;

typedef struct kl_http_head { /* borrowed inside on_head */
    int code;
    const char *(*header)(const struct kl_http_head *h, const char *name); /* first value or NULL */
    /* the i-th line of that name, from 0, or NULL */
    const char *(*header_at)(const struct kl_http_head *h, const char *name, int i);
    /* the header line after this one, "Name: value" (NULL: the first), or NULL */
    const char *(*next)(const struct kl_http_head *h, const char *line);
    void *impl;
} kl_http_head;

typedef struct kl_http_request { /* everything is copied by kl_http_submit */
    const char *method, *url;
    const char *const *headers; /* "Name: value", NULL-terminated, or NULL */
    const void *body;
    size_t body_len;
    /* a URL (http, https, socks5h), which ignores NO_PROXY; "" none; NULL: libcurl reads the environment */
    const char *proxy;
    /* the path of the server's socket in the file system; the URL's host is then only a name. NULL: TCP to
     * the URL's host */
    const char *unix_socket;
    kl_tls tls;
    /* Connections go only to addresses that this name may have (http/reach.h); its resolved addresses are
     * checked, too. NULL: to any. */
    const char *reach;
    /* An answer above 64 MiB that inflates to 200 times its size ends with KL_ECLOSED; then this kl_http does
     * without gzip. */
    bool accept_gzip;
    size_t gulp;             /* bytes read from the socket in one step; 0: 16 KB */
    kl_time connect_timeout; /* 0: 30 s */
    kl_time total_timeout;   /* 0: none (streams) */
    /* Called before the request is sent on an established connection, and again before its body. Any status
     * but KL_OK ends the transfer with that status and err. May be NULL. */
    kl_status (*permit)(void *arg, kl_err *err);
    /* The head of the final response has arrived. Called once. */
    void (*on_head)(void *arg, const kl_http_head *head);
    /* Non-zero ends the transfer with that status. */
    kl_status (*on_data)(void *arg, const char *data, size_t n, kl_err *err);
    /* Called after one or more on_data, when no more bytes are ready, so that a reader can process its batch;
     * every millisecond while bytes keep coming. Not called after a cancel. */
    void (*on_lull)(void *arg);
    /* Called exactly once, last, even after a cancel (KL_ECANCELLED). KL_OK means a complete HTTP answer,
     * whatever its code. `sent` false means that the request certainly never reached the server. */
    void (*on_done)(void *arg, kl_status st, int code, bool sent, kl_err *err);
    /* If set, the transfer only makes an HTTP/1.1 connection, with the proxy and TLS above, and sends
     * nothing; method, headers and body are not used. on_pipe is called when it is established, then on_ready
     * whenever an event of kl_pipe_want occurs. The pipe lives until on_done, which follows a failure to
     * connect or kl_http_cancel. */
    void (*on_pipe)(void *arg, kl_pipe *p);
    void (*on_ready)(void *arg);
    void *arg;
} kl_http_request;

typedef struct kl_http_options {
    const char *name; /* name of the thread, also in logs */
    int max_streams;  /* per connection; 0: 80 (kube-apiserver allows 100) */
    bool http1;       /* --http1 */
    const char *user_agent;
    /* Called on the thread when a name was looked up for a new connection: the proxy's name if there is a
     * proxy, else the server's. Not called for addresses. May be NULL. */
    void (*on_lookup)(void *arg, const char *name, kl_time took);
    void *on_lookup_arg;
} kl_http_options;

KL_NODISCARD kl_status kl_http_new(const kl_http_options *o, kl_http **out, kl_err *err);
/* Cancels all requests, runs the functions posted before, drops timers, joins the thread and frees h. Not
 * from that thread. */
void kl_http_free(kl_http *h);
/* any thread; 0 after kl_http_free has begun: no callback follows */
uint64_t kl_http_submit(kl_http *h, const kl_http_request *r);
/* any thread; unknown ids are fine */
void kl_http_cancel(kl_http *h, uint64_t id);
/* any thread: runs fn soon on the http thread, in order */
void kl_http_post(kl_http *h, void (*fn)(void *arg), void *arg);
/* The same for one member of arg, by its number: fn checks whether it still exists. After the thread's end fn
 * is never called, and nothing leaks. */
void kl_http_post_with(kl_http *h, void (*fn)(void *arg, uint64_t id), void *arg, uint64_t id);
uint64_t kl_http_timer(kl_http *h, kl_time after, void (*fn)(void *arg), void *arg); /* any thread */
/* from the http thread: fn is not called after this */
void kl_http_timer_cancel(kl_http *h, uint64_t id);
bool kl_http_on_thread(const kl_http *h);

/* --- the http thread only ----------------------------------------------------------------- */
/* HTTP/1.1 only: pauses (`on`) or resumes an answer whose reader is behind; one more on_data may follow a
 * pause. */
void kl_http_pause(kl_http *h, uint64_t id, bool on);
/* Bytes over a pipe. KL_EAGAIN: none now, wait for on_ready. *n 0 with KL_OK: the peer has closed its
 * side. */
KL_NODISCARD kl_status kl_pipe_read(kl_pipe *p, char *to, size_t cap, size_t *n, kl_err *err);
/* Accepts as many bytes as fit; *taken may be 0. Accepted bytes are sent without further calls. */
KL_NODISCARD kl_status kl_pipe_write(kl_pipe *p, const char *data, size_t n, size_t *taken, kl_err *err);
/* the events that on_ready is called for; none at first */
void kl_pipe_want(kl_pipe *p, bool read, bool write);
/* Polls a foreign socket on this thread: fn(arg, KL_POLL_* bits) when it is ready for `what`; 0 removes it;
 * do that before closing fd. */
void kl_http_watch_fd(kl_http *h, int fd, int what, void (*fn)(void *arg, int what), void *arg);

#endif
