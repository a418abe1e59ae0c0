/* http.c - the only door to libcurl: one thread that owns one multi handle.
 *
 *   any thread --command--> fifo --thread--> multi --callbacks on the thread--> on_head, on_data..., on_lull, on_done
 *
 * The thread sleeps in a poller and tells libcurl which sockets are ready (curl_multi_socket_action), so that a watch event
 * costs two system calls, however many transfers there are. Commands (start, cancel, run this) come through a fifo under the
 * lock and are carried out in order. A transfer belongs to its submitter until it is in the fifo, then to the thread; its id
 * names a slot, so cancelling what has ended is harmless.
 *
 * libcurl 7.88 as it is:
 * - on_data always consumes: an HTTP/2 stream is never paused.
 * - A body is handed over by a read callback without a seek callback, because libcurl would otherwise send a write again,
 *   silently, when a reused connection dies after the body went out.
 * - When all HTTP/2 connections are full, every further transfer opens one of its own at once. So each server has a gate.
 * - Data for a neighbour stream stops the whole HTTP/2 connection until that stream is run by its timer.
 *   curl_multi_perform may drop that timer (it clears what falls due within the same millisecond after the run);
 *   curl_multi_socket_action clears before the run, so it is the one to use. */
#include "net/http.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>
#include <curl/curl.h>
#include "base/buf.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/poller.h"
#include "base/sync.h"
#include "net/gate.h"
#include "net/slots.h"

#define MAX_STREAMS_DEFAULT 80              /* kube-apiserver allows 100 per connection */
#define CONNECT_TIMEOUT KL_SECONDS(30)      /* as client-go dials */
#define HEADERS_MAX ((size_t)256 << 10)     /* of one answer */
#define LULL_MAX KL_MILLISECONDS(1)         /* a stream that never pauses gets its lull after so much time all the same */
#define READY_MAX 32                        /* sockets served before commands and timers get their turn */
/* A peer that is gone is found after idle + user timeout, at most 75 s. */
#define KEEPALIVE_IDLE 30                   /* s: first probe */
#define KEEPALIVE_INTERVAL 15               /* s */
#define KEEPALIVE_COUNT 3
#define USER_TIMEOUT_MS (45 * 1000)         /* bytes or probes unacknowledged for so long: dead */
/* X509_V_ERR_* of OpenSSL that have a name here; libcurl reports them as plain numbers. */
enum { X509_NOT_YET_VALID = 9, X509_EXPIRED = 10, X509_SELF_SIGNED = 18, X509_SELF_SIGNED_IN_CHAIN = 19, X509_NO_ISSUER = 20, X509_UNVERIFIABLE_LEAF = 21 };

/* What goes to one server over HTTP/2. Thread only. */
typedef struct server { kl__gate gate; kl_http *h; } server;

typedef struct transfer {
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
} transfer;

typedef struct timer {
    kl_heap_node node;
    uint64_t id;
    void (*fn)(void *arg);
    void *arg;
} timer;

typedef enum command_type { START, CANCEL, RUN } command_type;

typedef struct command {
    kl_list link;
    command_type type;
    transfer *t;                    /* START */
    uint64_t id;                    /* CANCEL */
    void (*fn)(void *arg);          /* RUN */
    void *arg;
} command;

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

/* --- making a request: on the submitter's thread -------------------------------------------------------------------- */

static void transfer_free(transfer *t)
{
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    curl_slist_free_all(t->connect_to);
    kl_buf_fini(&t->head);
    kl_err_fini(&t->err);
    kl_free(t->peer);
    kl_free(t->ca);
    kl_free(t->server_name);
    kl_free(t->body);
    kl_free(t);
}

#define SET(opt, value) (void)curl_easy_setopt(t->easy, opt, value)

static void slist_add(struct curl_slist **list, const char *line)
{
    struct curl_slist *l = curl_slist_append(*list, line);
    if (!l)
        kl_mem_die("memory");
    *list = l;
}

static int on_socket(void *arg, curl_socket_t fd, curlsocktype type)
{
    transfer *t = arg;
    (void)type;
    if (t->pass.gate)
        t->pass.gate->sockets++;
    int interval = KEEPALIVE_INTERVAL, count = KEEPALIVE_COUNT, idle = KEEPALIVE_IDLE, on = 1;
    unsigned user = USER_TIMEOUT_MS;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user, sizeof user);
    return CURL_SOCKOPT_OK;
}

static const char *head_at(const kl_http_head *head, const char *name, int i)
{
    transfer *t = head->impl;
    size_t n = strlen(name);
    for (char *p = t->head.data; p && *p; p += strlen(p) + 1)
        if (!strncasecmp(p, name, n) && p[n] == ':' && i-- == 0) {
            p += n + 1;
            return p + strspn(p, " \t");
        }
    return NULL;
}

static const char *head_find(const kl_http_head *head, const char *name)
{
    return head_at(head, name, 0);
}

/* Called for the sockets of a server, also long after the transfer that opened them. */
static int on_socket_close(void *arg, curl_socket_t fd)
{
    server *s = arg;
    s->gate.sockets--;
    s->h->gates_changed = true;
    return close(fd);
}

/* The connection of `arg` is there; libcurl is about to send the request. */
static int on_connected(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    transfer *t = arg;
    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    kl__gate_connected(&t->pass);
    t->h->gates_changed = true;
    return CURL_PREREQFUNC_OK;
}

/* Lines become NUL-terminated strings in a row, so that head_at hands out pieces of the buffer. */
static size_t on_header(char *line, size_t one, size_t n, void *arg)
{
    transfer *t = arg;
    n *= one;
    if (t->head_done || t->cancelled)
        return n;
    if (n > 5 && !memcmp(line, "HTTP/", 5))
        kl_buf_clear(&t->head);                 /* the answer after a "100 Continue" */
    size_t len = n;
    while (len && isspace((unsigned char)line[len - 1]))
        len--;
    if (len) {
        kl_buf_add(&t->head, line, len);
        if (kl_buf_putc(&t->head, '\0')) {
            t->stopped = kl_fail(&t->err, KL_ETOOBIG, "%s sent more than %zu bytes of headers: is it an API server?", t->peer, HEADERS_MAX);
            return 0;
        }
        return n;
    }
    const char *code = t->head.data ? strchr(t->head.data, ' ') : NULL;
    kl_http_head head = { .code = code ? atoi(code) : 0, .header = head_find, .header_at = head_at, .impl = t };
    if (head.code < 200)
        return n;
    t->head_done = true;
    if (t->on_head)
        t->on_head(t->arg, &head);
    return n;
}

static void lull_come(transfer *t)
{
    if (kl_list_empty(&t->lull))
        return;
    kl_list_remove(&t->lull);
    if (!t->cancelled)
        t->on_lull(t->arg);
}

static void run_lulls(kl_http *h)
{
    while (!kl_list_empty(&h->lulls))
        lull_come(KL_CONTAINER(h->lulls.next, transfer, lull));
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
    transfer *t = arg;
    n *= one;
    if (t->cancelled || t->stopped)
        return CURL_WRITEFUNC_ERROR;
    if (!n || !t->on_data)
        return n;
    if (t->on_lull && kl_list_empty(&t->lull)) {
        if (kl_list_empty(&t->h->lulls))
            t->h->lull_due = kl_clock_now(kl_clock_real()) + LULL_MAX;
        kl_list_push(&t->h->lulls, &t->lull);
    }
    t->stopped = t->on_data(t->arg, data, n, &t->err);
    if (!kl_list_empty(&t->h->lulls) && kl_clock_now(kl_clock_real()) >= t->h->lull_due)
        run_lulls(t->h);
    return t->stopped || t->cancelled ? CURL_WRITEFUNC_ERROR : n;
}

static size_t on_read(char *to, size_t one, size_t n, void *arg)
{
    transfer *t = arg;
    n *= one;
    if (n > t->body_len - t->body_sent)
        n = t->body_len - t->body_sent;
    memcpy(to, t->body + t->body_sent, n);
    t->body_sent += n;
    return n;
}

static char *take_part(CURLU *u, CURLUPart part)
{
    char *s = NULL;
    if (curl_url_get(u, part, &s, CURLU_DEFAULT_PORT) || !s)
        return NULL;
    char *mine = kl_strdup(s);
    curl_free(s);
    return mine;
}

/* A certificate is checked for the host in the URL. To check it for another name, the URL gets that name, the
 * connection goes where the URL went, and the Host header stays. */
static void set_url(transfer *t, const kl_http_request *r)
{
    const char *name = r->tls.server_name;
    CURLU *u = curl_url();
    char *host = NULL, *port = NULL, *url = NULL;
    bool parsed = u && !curl_url_set(u, CURLUPART_URL, r->url, CURLU_NON_SUPPORT_SCHEME);
    if (parsed) {
        host = take_part(u, CURLUPART_HOST);
        port = take_part(u, CURLUPART_PORT);
    }
    t->peer = host && port ? kl_sprintf("%s:%s", host, port) : kl_strdup(r->url);
    t->server_name = kl_strdup(name && *name ? name : host ? host : r->url);
    if (parsed && host && port && name && *name && strcmp(name, host) && !curl_url_set(u, CURLUPART_HOST, name, 0)) {
        char *line = kl_sprintf("%s:%s:%s:%s", name, port, host, port);
        slist_add(&t->connect_to, line);
        kl_free(line);
        SET(CURLOPT_CONNECT_TO, t->connect_to);
        line = kl_sprintf("Host: %s", t->peer);
        slist_add(&t->headers, line);
        kl_free(line);
        curl_url_get(u, CURLUPART_URL, &url, 0);
    }
    SET(CURLOPT_URL, url ? url : r->url);
    curl_free(url);
    curl_url_cleanup(u);
    kl_free(host);
    kl_free(port);
}

static void set_blob(transfer *t, CURLoption opt, const char *pem)
{
    struct curl_blob blob = { .data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY };
    (void)curl_easy_setopt(t->easy, opt, &blob);
}

static void set_tls(transfer *t, const kl_tls *tls)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls->ca_pem || tls->ca_file) {
        SET(CURLOPT_CAPATH, NULL);              /* the system's directory would be trusted too */
        if (tls->ca_pem)
            set_blob(t, CURLOPT_CAINFO_BLOB, tls->ca_pem);
        else
            SET(CURLOPT_CAINFO, tls->ca_file);
    }
    t->ca = kl_strdup(tls->ca_pem ? "the CA in the kubeconfig (certificate-authority-data)" : tls->ca_file ? tls->ca_file : "the system's CAs");
    if (tls->cert_pem)
        set_blob(t, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
    else if (tls->cert_file)
        SET(CURLOPT_SSLCERT, tls->cert_file);
    if (tls->key_pem)
        set_blob(t, CURLOPT_SSLKEY_BLOB, tls->key_pem);
    else if (tls->key_file)
        SET(CURLOPT_SSLKEY, tls->key_file);
    if (tls->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

static void set_method(transfer *t, const kl_http_request *r)
{
    const char *method = r->method ? r->method : "GET";
    bool body = r->body && r->body_len;
    if (!strcmp(method, "HEAD"))
        SET(CURLOPT_NOBODY, 1L);
    else if (body || !strcmp(method, "POST") || !strcmp(method, "PUT") || !strcmp(method, "PATCH")) {
        t->body = kl_alloc(r->body_len + 1);
        if (body)
            memcpy(t->body, r->body, r->body_len);
        t->body_len = body ? r->body_len : 0;
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)t->body_len);
        SET(CURLOPT_READFUNCTION, on_read);
        SET(CURLOPT_READDATA, t);
        SET(CURLOPT_CUSTOMREQUEST, method);
        slist_add(&t->headers, "Expect:");
    } else if (strcmp(method, "GET"))
        SET(CURLOPT_CUSTOMREQUEST, method);
}

static long milliseconds(kl_time t)
{
    return (long)((t + KL_MILLISECONDS(1) - 1) / KL_MILLISECONDS(1));
}

static transfer *transfer_new(kl_http *h, const kl_http_request *r)
{
    transfer *t = kl_new(transfer);
    kl_list_init(&t->link);
    kl_list_init(&t->lull);
    kl_list_init(&t->pass.link);
    kl_buf_init(&t->head, HEADERS_MAX);
    t->h = h;
    t->on_head = r->on_head;
    t->on_data = r->on_data;
    t->on_lull = r->on_lull;
    t->on_done = r->on_done;
    t->arg = r->arg;
    t->connect_timeout = r->connect_timeout > 0 ? r->connect_timeout : CONNECT_TIMEOUT;
    t->total_timeout = r->total_timeout;
    t->patience.when = kl_clock_now(kl_clock_real()) + r->total_timeout;
    t->easy = curl_easy_init();
    if (!t->easy)
        kl_mem_die("curl handle");
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->story);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
    SET(CURLOPT_SOCKOPTDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (r->gulp)
        SET(CURLOPT_BUFFERSIZE, (long)r->gulp);
    SET(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(t->connect_timeout));
    if (r->total_timeout > 0)
        SET(CURLOPT_TIMEOUT_MS, milliseconds(r->total_timeout));
    if (h->user_agent)
        SET(CURLOPT_USERAGENT, h->user_agent);
    if (r->proxy)
        SET(CURLOPT_PROXY, r->proxy);
    if (r->accept_gzip)
        SET(CURLOPT_ACCEPT_ENCODING, "gzip");
    bool https = !strncasecmp(r->url, "https:", 6);
    if (https && !h->http1) {
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        SET(CURLOPT_PIPEWAIT, 1L);              /* share the connection that is being made instead of making another */
        SET(CURLOPT_PREREQFUNCTION, on_connected);
        SET(CURLOPT_PREREQDATA, t);
        t->shares = true;
    } else
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    for (const char *const *l = r->headers; l && *l; l++)
        slist_add(&t->headers, *l);
    set_url(t, r);
    set_tls(t, &r->tls);
    set_method(t, r);
    SET(CURLOPT_HTTPHEADER, t->headers);
    return t;
}

/* --- the end of a transfer: what happened, in words ------------------------------------------------------------------- */

static const char *seconds(kl_time t, char out[32])
{
    snprintf(out, 32, "%.3gs", (double)t / 1e9);
    return out;
}

static kl_status fail_certificate(transfer *t, kl_err *err)
{
    long code = 0;
    curl_easy_getinfo(t->easy, CURLINFO_SSL_VERIFYRESULT, &code);
    switch (code) {
    case X509_EXPIRED:
        return kl_fail(err, KL_ECONNECT, "the certificate of %s has expired: renew it on the server (or check this machine's clock)", t->peer);
    case X509_NOT_YET_VALID:
        return kl_fail(err, KL_ECONNECT, "the certificate of %s is not valid yet: check the clocks of both machines", t->peer);
    case X509_SELF_SIGNED:
    case X509_SELF_SIGNED_IN_CHAIN:
    case X509_NO_ISSUER:
    case X509_UNVERIFIABLE_LEAF:
        return kl_fail(err, KL_ECONNECT, "the certificate of %s is signed by an unknown authority: %s does not vouch for it; give the cluster's CA (certificate-authority)", t->peer, t->ca);
    default:
        break;
    }
    if (strstr(t->story, "does not match") || strstr(t->story, "no alternative certificate subject name"))
        return kl_fail(err, KL_ECONNECT, "the certificate of %s is not for \"%s\": set tls-server-name to a name that it carries", t->peer, t->server_name);
    return kl_fail(err, KL_ECONNECT, "the certificate of %s does not verify against %s: %s", t->peer, t->ca, t->story);
}

static kl_status fail_connect(transfer *t, kl_err *err)
{
    long e = 0;
    curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &e);
    if (e == ECONNREFUSED)
        return kl_fail(err, KL_ECONNECT, "connection refused by %s: is the API server up?", t->peer);
    char text[128];
    const char *why = e ? strerror_r((int)e, text, sizeof text) : t->story;
    return kl_fail(err, KL_ECONNECT, "no connection to %s: %s", t->peer, why);
}

static kl_status fail_timeout(transfer *t, bool sent, kl_err *err)
{
    char text[32];
    curl_off_t us = 0;
    curl_easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &us);
    if (!sent && !(t->total_timeout > 0 && KL_MICROSECONDS(us) >= t->total_timeout - KL_MILLISECONDS(1)))
        return kl_fail(err, KL_ECONNECT, "no connection to %s within %s: is the address right and reachable?", t->peer, seconds(t->connect_timeout, text));
    return kl_fail(err, KL_ETIMEOUT, "no whole answer from %s within %s%s", t->peer, seconds(t->total_timeout, text), sent ? "" : " (the request was not sent)");
}

static kl_status explain(transfer *t, CURLcode rc, bool sent, kl_err *err)
{
    const char *story = *t->story ? t->story : curl_easy_strerror(rc);
    if (t->cancelled)
        return kl_fail(err, KL_ECANCELLED, "the request to %s was cancelled", t->peer);
    if (t->stopped) {
        kl_err_move(err, &t->err);
        return t->stopped;
    }
    switch (rc) {
    case CURLE_OK:
        return KL_OK;
    case CURLE_COULDNT_RESOLVE_HOST:
        return kl_fail(err, KL_ECONNECT, "the name of %s does not resolve: check the server's address and DNS", t->peer);
    case CURLE_COULDNT_RESOLVE_PROXY:
        return kl_fail(err, KL_ECONNECT, "the name of the proxy for %s does not resolve: check proxy-url and HTTPS_PROXY", t->peer);
    case CURLE_COULDNT_CONNECT:
        return fail_connect(t, err);
    case CURLE_OPERATION_TIMEDOUT:
        return fail_timeout(t, sent, err);
    case CURLE_PEER_FAILED_VERIFICATION:
        return fail_certificate(t, err);
    case CURLE_SSL_CONNECT_ERROR:
        return kl_fail(err, KL_ECONNECT, "no TLS with %s: %s; does it speak https, and does it accept our client certificate?", t->peer, story);
    case CURLE_SSL_CERTPROBLEM:
        return kl_fail(err, KL_EAUTH, "the client certificate or key is unusable: %s", story);
    case CURLE_SSL_CACERT_BADFILE:
        return kl_fail(err, KL_ECONNECT, "%s cannot be used to verify %s: %s", t->ca, t->peer, story);
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (sent)                               /* libcurl's word for an answer without a status line */
            return kl_fail(err, KL_ESERVER, "%s does not answer in HTTP: is it an API server, and is the port right?", t->peer);
        /* fall through */
    case CURLE_URL_MALFORMAT:
        return kl_fail(err, KL_EINVAL, "\"%s\" is not a usable http or https URL: %s", t->peer, story);
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
    case CURLE_BAD_CONTENT_ENCODING:
        return kl_fail(err, KL_ESERVER, "the answer of %s is not HTTP as we know it: %s", t->peer, story);
    case CURLE_FAILED_INIT:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_BAD_FUNCTION_ARGUMENT:
        return kl_fail(err, KL_EINTERNAL, "the request to %s could not be made: %s", t->peer, story);
    default:
        if (strstr(story, "certificate required") || strstr(story, "bad certificate") || strstr(story, "unknown ca"))
            return kl_fail(err, KL_EAUTH, "%s did not accept our client certificate: %s", t->peer, story);
        return kl_fail(err, KL_ECLOSED, "the connection to %s ended early: %s", t->peer, story);
    }
}

/* --- the thread --------------------------------------------------------------------------------------------------------- */

static void leave_gate(transfer *t, kl_status st, const kl_err *err);

static void transfer_finish(transfer *t, CURLcode rc)
{
    kl_http *h = t->h;
    long code = 0, size = 0;
    kl_err err = KL_ERR_INIT;
    curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &code);
    curl_easy_getinfo(t->easy, CURLINFO_REQUEST_SIZE, &size);
    bool sent = size > 0 || code > 0;
    kl_status st = explain(t, rc, sent, &err);
    if (t->running)
        curl_multi_remove_handle(h->multi, t->easy);
    if (t->pass.gate)
        leave_gate(t, st, &err);
    kl_list_remove(&t->link);
    lull_come(t);
    kl_lock(&h->mu);
    kl_slots_remove(&h->transfers, t->id);
    kl_unlock(&h->mu);
    t->on_done(t->arg, st, (int)code, sent, &err);
    kl_err_fini(&err);
    transfer_free(t);
}

static void transfer_cancel(transfer *t)
{
    t->cancelled = true;
    transfer_finish(t, CURLE_ABORTED_BY_CALLBACK);
}

static void transfer_run(transfer *t)
{
    CURLMcode rc = curl_multi_add_handle(t->h->multi, t->easy);
    t->running = !rc;
    if (!rc)
        return;
    t->stopped = kl_fail(&t->err, KL_EINTERNAL, "the request to %s could not start: %s", t->peer, curl_multi_strerror(rc));
    transfer_finish(t, CURLE_FAILED_INIT);
}

/* --- gates -------------------------------------------------------------------------------------------------------------- */

static server *server_get(kl_http *h, const transfer *t)
{
    char *key = kl_sprintf("%s %s", t->peer, t->server_name);
    server *s = kl_map_get(h->servers, key);
    if (!s) {
        s = kl_new(server);
        s->h = h;
        kl__gate_init(&s->gate);
        kl_map_set(h->servers, key, s);
    }
    kl_free(key);
    return s;
}

static void admit(transfer *t)
{
    kl_heap_remove(&t->h->patience, &t->patience);
    if (t->total_timeout > 0) {
        kl_time left = t->patience.when - kl_clock_now(kl_clock_real());
        SET(CURLOPT_TIMEOUT_MS, milliseconds(left > KL_MILLISECONDS(1) ? left : KL_MILLISECONDS(1)));
    }
    SET(CURLOPT_CLOSESOCKETFUNCTION, on_socket_close);
    SET(CURLOPT_CLOSESOCKETDATA, KL_CONTAINER(t->pass.gate, server, gate));
    transfer_run(t);
}

static transfer *waiting_transfer(kl_list *l)
{
    return KL_CONTAINER(KL__PASS_OF(l), transfer, pass);
}

static void leave_gate(transfer *t, kl_status st, const kl_err *err)
{
    kl__gate *g = t->pass.gate;
    kl_heap_remove(&t->h->patience, &t->patience);
    t->h->gates_changed = true;
    if (!kl__gate_leave(&t->pass, st == KL_ECONNECT))
        return;
    for (kl_list *l = g->waiting.next; l != &g->waiting; l = l->next) {
        transfer *other = waiting_transfer(l);
        if (other->stopped || other->cancelled)
            continue;
        other->stopped = st;
        kl_err_copy(&other->err, err);
    }
}

/* Ends those whose opener failed, then lets in whom there is room for. */
static void run_gates(kl_http *h)
{
    while (h->gates_changed) {
        h->gates_changed = false;
        size_t it = 0;
        void *value;
        while (kl_map_next(h->servers, &it, NULL, &value)) {
            kl__gate *g = &((server *)value)->gate;
            for (kl_list *l = g->waiting.next; l != &g->waiting;) {
                transfer *t = waiting_transfer(l);
                l = l->next;
                if (t->stopped)
                    transfer_finish(t, CURLE_COULDNT_CONNECT);
            }
            for (kl__pass *p; (p = kl__gate_next(g, h->max_streams));)
                admit(KL_CONTAINER(p, transfer, pass));
        }
    }
}

/* Those whose time was over before they were let in. */
static void run_patience(kl_http *h)
{
    kl_time now = kl_clock_now(kl_clock_real());
    for (kl_heap_node *n; (n = kl_heap_pop_due(&h->patience, now));) {
        transfer *t = KL_CONTAINER(n, transfer, patience);
        char text[32];
        t->stopped = kl_fail(&t->err, KL_ETIMEOUT, "no connection to %s within %s (the request was not sent)", t->peer, seconds(t->total_timeout, text));
        transfer_finish(t, CURLE_OPERATION_TIMEDOUT);
    }
}

static void transfer_start(transfer *t)
{
    kl_http *h = t->h;
    kl_list_push(&h->active, &t->link);
    if (!t->shares) {
        transfer_run(t);
        return;
    }
    kl__gate_enter(&server_get(h, t)->gate, &t->pass);
    if (t->total_timeout > 0)
        kl_heap_push(&h->patience, &t->patience, t->patience.when);
    h->gates_changed = true;
}

static void run_commands(kl_http *h, bool stopping)
{
    for (;;) {
        kl_lock(&h->mu);
        kl_list *l = kl_list_shift(&h->commands);
        transfer *t = NULL;
        command *c = l ? KL_CONTAINER(l, command, link) : NULL;
        if (c && c->type == CANCEL)
            t = kl_slots_get(&h->transfers, c->id);
        if (!c)
            h->closed = stopping;
        kl_unlock(&h->mu);
        if (!c)
            return;
        if (c->type == START && stopping)
            transfer_cancel(c->t);
        else if (c->type == START)
            transfer_start(c->t);
        else if (t)
            transfer_cancel(t);
        else if (c->type == RUN)
            c->fn(c->arg);
        kl_free(c);
    }
}

static void run_timers(kl_http *h)
{
    for (;;) {
        kl_time now = kl_clock_now(kl_clock_real());
        kl_lock(&h->mu);
        kl_heap_node *n = kl_heap_pop_due(&h->timers_due, now);
        timer *tm = n ? KL_CONTAINER(n, timer, node) : NULL;
        if (tm)
            kl_slots_remove(&h->timers, tm->id);
        kl_unlock(&h->mu);
        if (!tm)
            return;
        tm->fn(tm->arg);
        kl_free(tm);
    }
}

/* libcurl names the sockets it waits for... */
static int on_interest(CURL *easy, curl_socket_t fd, int what, void *arg, void *mine)
{
    kl_http *h = arg;
    (void)easy;
    (void)mine;
    kl_poller_watch(h->poller, fd, what == CURL_POLL_IN ? KL_POLL_IN : what == CURL_POLL_OUT ? KL_POLL_OUT
        : what == CURL_POLL_INOUT ? KL_POLL_IN | KL_POLL_OUT : 0);
    return 0;
}

/* ...and the moment at which it wants to be called in any case; -1: none. */
static int on_timer(CURLM *multi, long timeout_ms, void *arg)
{
    kl_http *h = arg;
    (void)multi;
    h->due = timeout_ms < 0 ? KL_NEVER : timeout_ms ? kl_clock_now(kl_clock_real()) + KL_MILLISECONDS(timeout_ms) : 0;
    return 0;
}

static void finish_what_ended(kl_http *h)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(h->multi, &left));) {
        if (m->msg != CURLMSG_DONE)
            continue;
        char *p = NULL;
        CURLcode rc = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &p);
        transfer_finish((transfer *)p, rc);
    }
}

/* Takes from the sockets what is there, then tells those who got some that it was all for now. */
static void run_multi(kl_http *h, const kl_ready *ready, size_t n)
{
    int running;
    for (size_t i = 0; i < n; i++) {
        int what = (ready[i].what & KL_POLL_IN ? CURL_CSELECT_IN : 0) | (ready[i].what & KL_POLL_OUT ? CURL_CSELECT_OUT : 0)
            | (ready[i].what & KL_POLL_ERR ? CURL_CSELECT_ERR : 0);
        curl_multi_socket_action(h->multi, ready[i].fd, what, &running);
    }
    if (h->due != KL_NEVER && (!h->due || h->due <= kl_clock_now(kl_clock_real()))) {
        h->due = KL_NEVER;
        curl_multi_socket_action(h->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    run_lulls(h);
    finish_what_ended(h);
}

/* Sleeps until the network, a timer or a command wants something. */
static size_t wait_for_work(kl_http *h, kl_ready ready[READY_MAX])
{
    kl_lock(&h->mu);
    bool busy = !kl_list_empty(&h->commands) || h->stopping;
    kl_heap_node *first = kl_heap_peek(&h->timers_due);
    kl_time next = first ? first->when : KL_NEVER;
    kl_unlock(&h->mu);
    first = kl_heap_peek(&h->patience);
    if (first && first->when < next)
        next = first->when;
    if (h->due < next)
        next = h->due;
    return kl_poller_wait(h->poller, busy || h->gates_changed ? 0 : next, ready, READY_MAX);
}

static void thread_main(void *arg)
{
    kl_http *h = arg;
    atomic_store(&h->thread_id, kl_thread_self());
    kl_ready ready[READY_MAX];
    for (bool stopping = false; !stopping;) {
        run_commands(h, false);
        run_timers(h);
        run_patience(h);
        run_gates(h);
        run_multi(h, ready, wait_for_work(h, ready));
        kl_lock(&h->mu);
        stopping = h->stopping;
        kl_unlock(&h->mu);
    }
    while (!kl_list_empty(&h->active))
        transfer_cancel(KL_CONTAINER(h->active.next, transfer, link));
    run_commands(h, true);
}

/* --- the door ------------------------------------------------------------------------------------------------------------ */

static kl_status curl_ready(kl_err *err)
{
    static kl_mutex mu = KL_MUTEX_INIT;
    static bool ready;
    kl_lock(&mu);
    CURLcode rc = ready ? CURLE_OK : curl_global_init(CURL_GLOBAL_DEFAULT);
    ready = ready || !rc;
    kl_unlock(&mu);
    return rc ? kl_fail(err, KL_EINTERNAL, "libcurl does not start: %s", curl_easy_strerror(rc)) : KL_OK;
}

kl_status kl_http_new(const kl_http_options *o, kl_http **out, kl_err *err)
{
    kl_status st = curl_ready(err);
    if (st)
        return st;
    CURLM *multi = curl_multi_init();
    kl_poller *poller = kl_poller_new();
    if (!multi || !poller) {
        curl_multi_cleanup(multi);
        kl_poller_free(poller);
        return kl_fail(err, KL_EINTERNAL, "no connections can be made: out of memory or file descriptors?");
    }
    curl_multi_setopt(multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
    kl_http *h = kl_new(kl_http);
    h->max_streams = o->max_streams > 0 ? o->max_streams : MAX_STREAMS_DEFAULT;
    curl_multi_setopt(multi, CURLMOPT_MAX_CONCURRENT_STREAMS, (long)h->max_streams);
    h->multi = multi;
    h->poller = poller;
    h->due = KL_NEVER;
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_interest);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, h);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, h);
    h->http1 = o->http1;
    h->user_agent = kl_strdup(o->user_agent);
    kl_list_init(&h->active);
    h->servers = kl_map_new();
    kl_heap_init(&h->patience);
    kl_list_init(&h->lulls);
    kl_mutex_init(&h->mu);
    kl_list_init(&h->commands);
    kl_heap_init(&h->timers_due);
    h->thread = kl_thread_start(o->name ? o->name : "http", thread_main, h);
    *out = h;
    return KL_OK;
}

void kl_http_free(kl_http *h)
{
    if (!h)
        return;
    kl_lock(&h->mu);
    h->stopping = true;
    kl_unlock(&h->mu);
    kl_poller_wake(h->poller);
    kl_thread_join(h->thread);
    for (kl_heap_node *n; (n = kl_heap_pop_due(&h->timers_due, KL_NEVER));)
        kl_free(KL_CONTAINER(n, timer, node));
    curl_multi_cleanup(h->multi);               /* closes sockets, which gates count */
    kl_poller_free(h->poller);
    kl_map_free(h->servers, kl_free);
    kl_heap_fini(&h->patience);
    kl_heap_fini(&h->timers_due);
    kl_slots_fini(&h->transfers);
    kl_slots_fini(&h->timers);
    kl_mutex_fini(&h->mu);
    kl_free(h->user_agent);
    kl_free(h);
}

bool kl_http_on_thread(const kl_http *h)
{
    return atomic_load(&((kl_http *)h)->thread_id) == kl_thread_self();
}

/* True when the thread must be woken after the lock is released. */
static bool push_locked(kl_http *h, command *c) KL_REQUIRES(h->mu);
static bool push_locked(kl_http *h, command *c)
{
    kl_list_push(&h->commands, &c->link);
    return !kl_http_on_thread(h);
}

uint64_t kl_http_submit(kl_http *h, const kl_http_request *r)
{
    transfer *t = transfer_new(h, r);
    command *c = kl_new(command);
    c->type = START;
    c->t = t;
    kl_lock(&h->mu);
    bool refused = h->stopping, wake = false;
    uint64_t id = 0;
    if (!refused) {
        id = t->id = kl_slots_add(&h->transfers, t);
        wake = push_locked(h, c);
    }
    kl_unlock(&h->mu);
    if (refused) {
        transfer_free(t);
        kl_free(c);
    }
    if (wake)
        kl_poller_wake(h->poller);
    return id;
}

/* A command other than START; dropped when the thread takes no more. */
static void command_send(kl_http *h, command_type type, uint64_t id, void (*fn)(void *), void *arg)
{
    command *c = kl_new(command);
    *c = (command){ .type = type, .id = id, .fn = fn, .arg = arg };
    kl_lock(&h->mu);
    bool closed = h->closed, wake = !closed && push_locked(h, c);
    kl_unlock(&h->mu);
    if (closed)
        kl_free(c);
    if (wake)
        kl_poller_wake(h->poller);
}

void kl_http_cancel(kl_http *h, uint64_t id)
{
    if (kl_http_on_thread(h)) {                 /* from its own callbacks: no further data, on_done comes after this returns */
        kl_lock(&h->mu);
        transfer *t = kl_slots_get(&h->transfers, id);
        kl_unlock(&h->mu);
        if (!t)
            return;
        t->cancelled = true;
    }
    command_send(h, CANCEL, id, NULL, NULL);
}

void kl_http_post(kl_http *h, void (*fn)(void *arg), void *arg)
{
    command_send(h, RUN, 0, fn, arg);
}

uint64_t kl_http_timer(kl_http *h, kl_time after, void (*fn)(void *arg), void *arg)
{
    timer *tm = kl_new(timer);
    tm->fn = fn;
    tm->arg = arg;
    kl_time now = kl_clock_now(kl_clock_real());
    kl_time when = after > 0 ? (after > KL_NEVER - now ? KL_NEVER : now + after) : now;
    kl_lock(&h->mu);
    bool wake = false;
    uint64_t id = 0;
    if (!h->closed) {
        id = tm->id = kl_slots_add(&h->timers, tm);
        kl_heap_push(&h->timers_due, &tm->node, when);
        wake = kl_heap_peek(&h->timers_due) == &tm->node && !kl_http_on_thread(h);
    }
    kl_unlock(&h->mu);
    if (!id)
        kl_free(tm);
    if (wake)
        kl_poller_wake(h->poller);
    return id;
}

void kl_http_timer_cancel(kl_http *h, uint64_t id)
{
    kl_lock(&h->mu);
    timer *tm = kl_slots_remove(&h->timers, id);
    if (tm)
        kl_heap_remove(&h->timers_due, &tm->node);
    kl_unlock(&h->mu);
    kl_free(tm);
}
