/* http_transfer.c - one request as an easy handle of libcurl: its options, set on the submitter's thread, and
 * its callbacks on ours.
 *
 * libcurl 7.88 as it is:
 * - on_data always consumes: an HTTP/2 stream is never paused.
 * - A body is passed by a read callback without a seek callback, because libcurl would otherwise resend a
 *   write, silently, when a reused connection dies after the body went out. */
#include "http/http_impl.h"

#include <ctype.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include "base/mem.h"
#include "http/reach.h"

#define CONNECT_TIMEOUT KL_SECONDS(30)  /* as client-go dials */
#define HEADERS_MAX ((size_t)256 << 10) /* of one answer, with all that came before and after it */
#define LULL_MAX KL_MILLISECONDS(1)     /* a stream without pauses gets its lull after this time anyway */
/* A dead peer is found after idle + user timeout, at most 75 s. */
#define KEEPALIVE_IDLE 30     /* s: first probe */
#define KEEPALIVE_INTERVAL 15 /* s */
#define KEEPALIVE_COUNT 3
#define USER_TIMEOUT_MS (45 * 1000) /* bytes or probes unacknowledged for so long: dead */
#define PIPE_TIMEOUT_MS (75 * 1000) /* a full window counts as that, so a pipe has its own, earlier rules */

void kl__transfer_free(kl__transfer *t)
{
    kl__handle_give(t->h, t->handle, t->well);
    kl__curl.slist_free_all(t->headers);
    kl_buf_fini(&t->head);
    kl_err_fini(&t->err);
    kl_free(t->body);
    kl_free(t->reach);
    kl_free(t);
}

#define SET(opt, value) (void)kl__curl.easy_setopt(t->easy, opt, value)

static void slist_add(struct curl_slist **list, const char *line)
{
    struct curl_slist *l = kl__curl.slist_append(*list, line);
    if (!l)
        kl_mem_die("memory");
    *list = l;
}

static int on_socket(void *arg, curl_socket_t fd, curlsocktype type)
{
    kl__transfer *t = arg;
    (void)type;
    if (t->pass.gate)
        t->pass.gate->sockets++;
    int interval = KEEPALIVE_INTERVAL, count = KEEPALIVE_COUNT, idle = KEEPALIVE_IDLE, on = 1;
    unsigned user = t->on_pipe ? PIPE_TIMEOUT_MS : USER_TIMEOUT_MS;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    kl__socket_opened(t->h, fd);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &user, sizeof user);
    return CURL_SOCKOPT_OK;
}

/* The resolved address is first known here. */
static curl_socket_t open_socket(void *arg, curlsocktype type, struct curl_sockaddr *a)
{
    kl__transfer *t = arg;
    (void)type;
    if (!t->stopped && !kl_reach_address(&a->addr, t->reach))
        t->stopped = kl_fail(&t->err, KL_EFORBIDDEN,
            "no connection to %s: \"%s\" has a link-local, metadata, loopback or multicast address, which is "
            "allowed only if the URL and `http` name the address itself",
            t->peer, t->reach);
    return t->stopped ? CURL_SOCKET_BAD : socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

static const char *head_next(const kl_http_head *head, const char *line)
{
    kl__transfer *t = head->impl;
    const char *p = line ? line : t->head.data; /* the status line comes first */
    if (p && *p)
        p += strlen(p) + 1;
    return p && *p ? p : NULL;
}

static const char *head_at(const kl_http_head *head, const char *name, int i)
{
    kl__transfer *t = head->impl;
    size_t n = strlen(name);
    for (char *p = t->head.data; p && *p; p += strlen(p) + 1)
        if (!strncasecmp(p, name, n) && p[n] == ':' && i-- == 0) {
            p += n + 1;
            return p + strspn(p, " \t");
        }
    return NULL;
}

static const char *head_find(const kl_http_head *head, const char *name) { return head_at(head, name, 0); }

/* Whether the request may still be sent. */
static bool is_permitted(kl__transfer *t)
{
    if (t->permit && !t->stopped && !t->cancelled)
        t->stopped = t->permit(t->arg, &t->err);
    return !t->stopped;
}

/* The connection of `arg` stands; libcurl is about to send the request. */
static int on_connected(void *arg, char *ip, char *local_ip, int port, int local_port)
{
    kl__transfer *t = arg;
    (void)ip;
    (void)local_ip;
    (void)port;
    (void)local_port;
    if (t->shares) {
        kl__gate_connected(&t->pass);
        t->h->gates_changed = true;
    }
    return is_permitted(t) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

/* Lines become NUL-terminated strings in a row, so that head_at hands out pieces of the buffer. */
static size_t take_header(kl__transfer *t, const char *line, size_t n)
{
    t->head_bytes += n;
    if (t->head_bytes > HEADERS_MAX && !t->cancelled) {
        t->stopped = kl_fail(&t->err, KL_ETOOBIG,
            "%s sent more than %zu KiB of headers: is it an API server?", t->peer, HEADERS_MAX >> 10);
        return 0;
    }
    if (t->head_done || t->cancelled)
        return n;
    if (n > 5 && !memcmp(line, "HTTP/", 5))
        kl_buf_clear(&t->head); /* the answer after a "100 Continue" */
    size_t len = n;
    while (len && isspace((unsigned char)line[len - 1]))
        len--;
    if (len) {
        kl_buf_add(&t->head, line, len);
        kl_buf_putc(&t->head, '\0');
        return n;
    }
    const char *code = t->head.data ? strchr(t->head.data, ' ') : NULL;
    kl_http_head head = {.code = code ? atoi(code) : 0,
        .header = head_find,
        .header_at = head_at,
        .next = head_next,
        .impl = t};
    if (head.code < 200)
        return n;
    t->head_done = true;
    kl__transfer_lookup(t, CURLE_OK); /* a watch may not end for a long time */
    if (t->on_head)
        t->on_head(t->arg, &head);
    return n;
}

/* Runs a callback outside of libcurl's turn, so that its time does not count. */
static size_t outside_turn(
    kl__transfer *t, size_t (*take)(kl__transfer *t, const char *data, size_t n), const char *data, size_t n)
{
    kl_http *h = t->h;
    bool turn = kl__turn_end(h);
    size_t taken = take(t, data, n);
    if (turn)
        kl__turn_begin(h);
    return taken;
}

static size_t on_header(char *line, size_t one, size_t n, void *arg)
{
    return outside_turn(arg, take_header, line, n * one);
}

void kl__transfer_lookup(kl__transfer *t, CURLcode rc)
{
    bool failed = rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_COULDNT_RESOLVE_PROXY;
    long connections = 0;
    curl_off_t us = 0;
    if (!t->looked_up || t->lookup_told || !t->h->on_lookup)
        return;
    kl__curl.easy_getinfo(t->easy, CURLINFO_NUM_CONNECTS, &connections);
    kl__curl.easy_getinfo(t->easy, failed ? CURLINFO_TOTAL_TIME_T : CURLINFO_NAMELOOKUP_TIME_T, &us);
    t->lookup_told = failed || (connections > 0 && us > 0);
    if (t->lookup_told)
        t->h->on_lookup(t->h->on_lookup_arg, t->looked_up, KL_MICROSECONDS(us));
}

void kl__transfer_lull(kl__transfer *t)
{
    if (kl_list_empty(&t->lull))
        return;
    kl_list_remove(&t->lull);
    if (!t->cancelled)
        t->on_lull(t->arg);
}

void kl__http_lulls(kl_http *h)
{
    while (!kl_list_empty(&h->lulls))
        kl__transfer_lull(KL_CONTAINER(h->lulls.next, kl__transfer, lull));
}

/* libcurl inflates all that it has read before anybody else has a turn: 16 KB may become 16 MB, a hundred
 * times in a row. Lists of API servers inflate to 10 to 50 times their size. */
#define INFLATED_MAX ((uint64_t)64 << 20)
#define INFLATED_RATIO 200

static kl_status inflated(kl__transfer *t, size_t n)
{
    curl_off_t sent = 0;
    t->received += n;
    if (t->received <= INFLATED_MAX)
        return KL_OK;
    kl__curl.easy_getinfo(t->easy, CURLINFO_SIZE_DOWNLOAD_T, &sent);
    if (t->received / INFLATED_RATIO <= (uint64_t)sent)
        return KL_OK;
    atomic_store(&t->h->plain, true);
    return kl_fail(&t->err, KL_ECLOSED,
        "%s sent gzip that inflates to more than %d times its size; from now on requests do not ask for gzip",
        t->peer, INFLATED_RATIO);
}

static size_t take_body(kl__transfer *t, const char *data, size_t n)
{
    if (t->cancelled || t->stopped)
        return CURL_WRITEFUNC_ERROR;
    if (!n || !t->on_data)
        return n;
    if (t->on_lull && kl_list_empty(&t->lull)) {
        if (kl_list_empty(&t->h->lulls))
            t->h->lull_due = kl_clock_now(kl_clock_real()) + LULL_MAX;
        kl_list_push(&t->h->lulls, &t->lull);
    }
    t->stopped = inflated(t, n);
    if (!t->stopped)
        t->stopped = t->on_data(t->arg, data, n, &t->err);
    if (!kl_list_empty(&t->h->lulls) && kl_clock_now(kl_clock_real()) >= t->h->lull_due)
        kl__http_lulls(t->h);
    return t->stopped || t->cancelled ? CURL_WRITEFUNC_ERROR : n;
}

static size_t on_body(char *data, size_t one, size_t n, void *arg)
{
    return outside_turn(arg, take_body, data, n * one);
}

static size_t on_read(char *to, size_t one, size_t n, void *arg)
{
    kl__transfer *t = arg;
    n *= one;
    if (!is_permitted(t))
        return CURL_READFUNC_ABORT;
    if (n > t->body_len - t->body_sent)
        n = t->body_len - t->body_sent;
    memcpy(to, t->body + t->body_sent, n);
    t->body_sent += n;
    return n;
}

static void set_method(kl__transfer *t, const kl_http_request *r)
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

static long milliseconds(kl_time t) { return (long)(t / KL_MILLISECONDS(1) + (t % KL_MILLISECONDS(1) > 0)); }

void kl__transfer_set_timeout(kl__transfer *t, kl_time left)
{
    SET(CURLOPT_TIMEOUT_MS, milliseconds(left > KL_MILLISECONDS(1) ? left : KL_MILLISECONDS(1)));
}

static void take_handle(kl__transfer *t, const kl_http_request *r)
{
    kl__handle *x = t->handle = kl__handle_take(t->h, r);
    t->easy = x->easy;
    t->peer = x->peer;
    t->ca = x->ca;
    t->server_name = x->server_name;
    t->proxy = x->proxy;
    t->looked_up = x->looked_up;
    t->shares = x->shares;
    kl__handle_set_url(x, r->url);
    if (x->host_line)
        slist_add(&t->headers, x->host_line);
}

kl__transfer *kl__transfer_new(kl_http *h, const kl_http_request *r)
{
    kl__transfer *t = kl_new(kl__transfer);
    kl_list_init(&t->link);
    kl_list_init(&t->lull);
    kl_list_init(&t->pass.link);
    kl_buf_init(&t->head, 2 * HEADERS_MAX);
    t->h = h;
    t->permit = r->permit;
    t->on_head = r->on_head;
    t->on_data = r->on_data;
    t->on_lull = r->on_lull;
    t->on_done = r->on_done;
    t->on_pipe = r->on_pipe;
    t->on_ready = r->on_ready;
    t->arg = r->arg;
    t->connect_timeout = r->connect_timeout > 0 ? r->connect_timeout : CONNECT_TIMEOUT;
    t->total_timeout = r->total_timeout;
    t->patience.when = kl_time_after(kl_clock_now(kl_clock_real()), r->total_timeout);
    t->identity = r->tls.generation;
    t->reach = kl_strdup(r->reach);
    take_handle(t, r);
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_ERRORBUFFER, t->story);
    SET(CURLOPT_SOCKOPTFUNCTION, on_socket);
    SET(CURLOPT_SOCKOPTDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_PREREQFUNCTION, t->shares || t->permit || t->reach ? on_connected : NULL);
    SET(CURLOPT_OPENSOCKETFUNCTION, t->reach ? open_socket : NULL);
    SET(CURLOPT_OPENSOCKETDATA, t);
    SET(CURLOPT_PREREQDATA, t);
    SET(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(t->connect_timeout));
    if (r->total_timeout > 0)
        SET(CURLOPT_TIMEOUT_MS, milliseconds(r->total_timeout));
    for (const char *const *l = r->headers; l && *l; l++)
        slist_add(&t->headers, *l);
    set_method(t, r);
    SET(CURLOPT_HTTPHEADER, t->headers);
    return t;
}
