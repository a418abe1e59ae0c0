/* load.c - requests to an API server, ours or kube-apiserver: how many a second, and how long each takes.
 *
 *   load --server URL [--token T] --mode create|get --clients N --requests M [--first I] [--objects K]
 *   load --server URL [--token T] --mode list --limit L --requests M
 *   load --server URL [--token T] --mode watch --watchers W --rv R --clients N --requests M
 *
 * It does as little as it can, so that the server is measured: one thread, HTTP/1.1, a connection and one
 * request in flight for each client; answers are counted and not decoded. It prints one line of JSON, in
 * which `busy` is the share of a processor that it needed itself: near 1 it measures itself.
 *
 * Objects are ConfigMaps c-I of namespace bench, 1 KB of JSON each and no two alike. `create` makes M of them
 * from c-I on; `get` reads those below c-K. In `watch` the clients patch the first hundred, M times in all,
 * and each of W watchers must see every change; a change carries the time at which it was sent. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "figures.h"

#define COLLECTION "/api/v1/namespaces/bench/configmaps"
#define KEYS 10
#define VALUE 84           /* KEYS of them make an object of 1 KB */
#define CHANGED 100        /* objects that change while watchers look */
#define PATIENCE_MS 60000  /* a server that says nothing for so long has failed */
#define PIECE (256 * 1024) /* bytes of one read */

typedef enum mode { CREATE, GET, LIST, WATCH } mode;

/* Where an answer is: lines of its head, a body of known length, or chunks: their size, bytes and line end.
 */
typedef enum place { HEAD, LENGTH, SIZE, CHUNK, CHUNK_END, TRAILER } place;

typedef struct conn {
    int fd;
    gnutls_session_t tls; /* NULL: plain TCP */
    bool watches;
    kl_time sent; /* when the request that is in flight left */
    place at;
    size_t left; /* bytes of the body, or of the chunk */
    char line[256];
    size_t line_len;
    int code;
    kl_buf event; /* a watcher's: the line that has not ended */
} conn;

typedef struct load {
    mode mode;
    struct sockaddr_in to;
    bool https;
    gnutls_certificate_credentials_t credentials;
    char authorization[256];
    const char *pids; /* "1,2", or NULL */
    long clients, watchers, requests, first, objects, limit, rv;
    long begun, ended, ready; /* requests; watchers whose head has come */
    long seen;                /* events, of all watchers */
    long long bytes;          /* of bodies */
    uint32_t *took;           /* us of requests, or of events */
    size_t ntook;
    kl_time began;
} load;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "load: %s: %s\n", what, why);
    exit(1);
}

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

/* ------------------------------------------------------------------ bytes */

static void wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    if (poll(&p, 1, PATIENCE_MS) <= 0)
        die("the server", "it does not answer");
}

static void open_conn(const load *l, conn *c)
{
    int one = 1;
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (const struct sockaddr *)&l->to, sizeof l->to))
        die("connect", strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (l->https) {
        gnutls_init(&c->tls, GNUTLS_CLIENT);
        gnutls_set_default_priority(c->tls);
        gnutls_credentials_set(c->tls, GNUTLS_CRD_CERTIFICATE, l->credentials);
        gnutls_transport_set_int(c->tls, c->fd);
        int st;
        do
            st = gnutls_handshake(c->tls);
        while (st < 0 && !gnutls_error_is_fatal(st));
        if (st < 0)
            die("TLS", gnutls_strerror(st));
    }
    fcntl(c->fd, F_SETFL, O_NONBLOCK);
    kl_buf_init(&c->event, 1 << 20);
}

static void close_conn(conn *c)
{
    if (c->tls)
        gnutls_deinit(c->tls);
    close(c->fd);
    kl_buf_fini(&c->event);
}

/* Requests are short, so that a wait here is rare. */
static void give(conn *c, const char *data, size_t n)
{
    while (n) {
        ssize_t took = c->tls ? gnutls_record_send(c->tls, data, n) : send(c->fd, data, n, MSG_NOSIGNAL);
        if (took > 0) {
            data += took;
            n -= (size_t)took;
        } else if (c->tls ? !gnutls_error_is_fatal((int)took) : errno == EAGAIN)
            wait_for(c->fd, POLLOUT);
        else
            die("send", c->tls ? gnutls_strerror((int)took) : strerror(errno));
    }
}

/* Bytes that are there; 0: none now. */
static size_t take(conn *c, char *data, size_t n)
{
    ssize_t got = c->tls ? gnutls_record_recv(c->tls, data, n) : recv(c->fd, data, n, 0);
    if (got > 0)
        return (size_t)got;
    if (got < 0 && (c->tls ? !gnutls_error_is_fatal((int)got) : errno == EAGAIN))
        return 0;
    die(c->watches ? "a watch" : "recv", got ? "the connection broke" : "the server closed the connection");
    return 0;
}

/* ------------------------------------------------------------------ requests */

/* Text that no other object has: servers may keep equal values once. */
static void value(kl_buf *out, uint64_t seed)
{
    for (int i = 0; i < VALUE; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        kl_buf_putc(out, "abcdefghijklmnopqrstuvwxyz012345"[seed >> 59]);
    }
}

static void body_of(const load *l, long i, kl_buf *out)
{
    if (l->mode == WATCH) {
        kl_buf_printf(out, "{\"data\":{\"sent\":\"%020lld\"}}", (long long)now());
        return;
    }
    kl_buf_printf(
        out, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"c-%ld\"},\"data\":{", i);
    for (int k = 0; k < KEYS; k++) {
        kl_buf_printf(out, "%s\"key-%d\":\"", k ? "," : "", k);
        value(out, (uint64_t)i * KEYS + (uint64_t)k + 1);
        kl_buf_putc(out, '"');
    }
    kl_buf_puts(out, "}}");
}

static void head_of(const load *l, const conn *c, long i, size_t body, kl_buf *out)
{
    if (c->watches)
        kl_buf_printf(out, "GET " COLLECTION "?watch=1&resourceVersion=%ld", l->rv);
    else if (l->mode == CREATE)
        kl_buf_puts(out, "POST " COLLECTION);
    else if (l->mode == GET)
        kl_buf_printf(out, "GET " COLLECTION "/c-%ld", i * 7919 % l->objects);
    else if (l->mode == LIST)
        kl_buf_printf(out, "GET " COLLECTION "?limit=%ld", l->limit);
    else
        kl_buf_printf(out, "PATCH " COLLECTION "/c-%ld", i % CHANGED);
    kl_buf_printf(out, " HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json\r\n%s", l->authorization);
    if (body)
        kl_buf_printf(out, "Content-Type: application/%sjson\r\nContent-Length: %zu\r\n",
            l->mode == WATCH ? "merge-patch+" : "", body);
    kl_buf_puts(out, "\r\n");
}

static void ask(load *l, conn *c)
{
    kl_buf head = KL_BUF_INIT, body = KL_BUF_INIT;
    long i = c->watches ? 0 : l->first + l->begun++;
    if (!c->watches && (l->mode == CREATE || l->mode == WATCH))
        body_of(l, i, &body);
    head_of(l, c, i, body.len, &head);
    kl_buf_add(&head, body.data, body.len);
    c->sent = now();
    give(c, head.data, head.len);
    kl_buf_fini(&head);
    kl_buf_fini(&body);
}

/* ------------------------------------------------------------------ answers */

static void took(load *l, kl_time since) { l->took[l->ntook++] = (uint32_t)((now() - since) / 1000); }

static void answered(load *l, conn *c)
{
    if (c->code != 200 && c->code != 201) {
        char code[16];
        snprintf(code, sizeof code, "%d", c->code);
        die("the server answered", code);
    }
    l->ended++;
    if (l->mode != WATCH)
        took(l, c->sent);
    if (l->begun < l->requests)
        ask(l, c);
}

static void one_event(load *l, const char *line, size_t n)
{
    static const char key[] = "\"sent\":\"";
    const char *at = memmem(line, n, key, sizeof key - 1);
    if (!at || l->seen == l->watchers * l->requests)
        die("a watch", "an event that nobody asked for");
    took(l, strtoll(at + sizeof key - 1, NULL, 10));
    l->seen++;
}

static void some_body(load *l, conn *c, const char *data, size_t n)
{
    l->bytes += (long long)n;
    if (!c->watches)
        return;
    for (const char *end; (end = memchr(data, '\n', n));) {
        size_t line = (size_t)(end - data);
        if (c->event.len) {
            kl_buf_add(&c->event, data, line);
            one_event(l, c->event.data, c->event.len);
            kl_buf_clear(&c->event);
        } else
            one_event(l, data, line);
        n -= line + 1;
        data = end + 1;
    }
    kl_buf_add(&c->event, data, n);
}

/* What follows a line of the answer; `done`: the answer is over. */
static place after_line(load *l, conn *c, bool *done)
{
    if (c->at == SIZE) {
        c->left = strtoul(c->line, NULL, 16);
        return c->left ? CHUNK : TRAILER;
    }
    if (c->at == CHUNK_END)
        return SIZE;
    if (c->at == TRAILER) {
        *done = true;
        return HEAD;
    }
    if (!strncmp(c->line, "HTTP/1.1 ", 9)) {
        c->code = atoi(c->line + 9);
        c->left = 0;
    } else if (!strncasecmp(c->line, "Content-Length:", 15))
        c->left = strtoul(c->line + 15, NULL, 10);
    else if (!strncasecmp(c->line, "Transfer-Encoding:", 18))
        c->left = SIZE_MAX;
    if (*c->line)
        return HEAD;
    l->ready += c->watches && c->code == 200;
    *done = !c->left;
    return c->left == SIZE_MAX ? SIZE : c->left ? LENGTH : HEAD;
}

static void feed(load *l, conn *c, const char *data, size_t n)
{
    while (n) {
        size_t part;
        bool done = false;
        if (c->at == LENGTH || c->at == CHUNK) {
            part = n < c->left ? n : c->left;
            some_body(l, c, data, part);
            c->left -= part;
            if (!c->left) {
                done = c->at == LENGTH;
                c->at = done ? HEAD : CHUNK_END;
            }
        } else {
            const char *end = memchr(data, '\n', n);
            part = end ? (size_t)(end - data) + 1 : n;
            size_t fits = sizeof c->line - 1 - c->line_len;
            memcpy(c->line + c->line_len, data, part < fits ? part : fits);
            c->line_len += part < fits ? part : fits;
            if (end) {
                c->line[c->line_len] = '\0';
                c->line[strcspn(c->line, "\r\n")] = '\0';
                c->at = after_line(l, c, &done);
                c->line_len = 0;
            }
        }
        data += part;
        n -= part;
        if (done)
            answered(l, c);
    }
}

/* ------------------------------------------------------------------ a run */

static bool over(const load *l) { return l->ended == l->requests && l->seen == l->watchers * l->requests; }

/* Serves connections until `until` says so. */
static void run(load *l, int poller, bool until(const load *))
{
    static char data[PIECE];
    struct epoll_event events[128];
    while (!until(l)) {
        int n = epoll_wait(poller, events, 128, PATIENCE_MS);
        if (n == 0)
            die("the server", "it says nothing more");
        for (int i = 0; i < n; i++)
            for (size_t got; (got = take(events[i].data.ptr, data, sizeof data));)
                feed(l, events[i].data.ptr, data, got);
    }
}

static bool all_watch(const load *l) { return l->ready == l->watchers; }

/* Nanoseconds of processor of all threads of a process; those that have ended do not count. */
static double cpu_of(const char *pid, size_t n)
{
    char path[400];
    double sum = 0, ns;
    snprintf(path, sizeof path, "/proc/%.*s/task", (int)n, pid);
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof path, "/proc/%.*s/task/%s/schedstat", (int)n, pid, e->d_name);
        FILE *f = *e->d_name == '.' ? NULL : fopen(path, "r");
        if (f && fscanf(f, "%lf", &ns) == 1)
            sum += ns;
        if (f)
            fclose(f);
    }
    if (d)
        closedir(d);
    return sum;
}

static double server_cpu(const load *l)
{
    double sum = 0;
    for (const char *p = l->pids; p && *p; p += strcspn(p, ","), p += *p == ',')
        sum += cpu_of(p, strcspn(p, ","));
    return sum;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void report(load *l, double cpu, double theirs)
{
    double wall = (double)(now() - l->began) / 1e9;
    qsort(l->took, l->ntook, sizeof *l->took, by_size);
    printf("{\"per_s\":%.1f,\"p50_us\":%u,\"p99_us\":%u,\"wall_s\":%.3f,\"bytes\":%lld,\"events_per_s\":%.1f,"
           "\"busy\":%.3f,\"cpu_us\":%.2f}\n",
        (double)l->requests / wall, l->took[l->ntook / 2], l->took[l->ntook * 99 / 100], wall, l->bytes,
        (double)l->seen / wall, cpu / wall, theirs / 1e3 / (double)l->requests);
}

static void work(load *l)
{
    long all = l->clients + l->watchers;
    int poller = epoll_create1(EPOLL_CLOEXEC);
    conn *conns = kl_new_array(conn, (size_t)all);
    l->took = kl_new_array(uint32_t, (size_t)(l->requests * (l->mode == WATCH ? l->watchers : 1)));
    for (long i = 0; i < all; i++) {
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
        conns[i].watches = i < l->watchers;
        open_conn(l, &conns[i]);
        epoll_ctl(poller, EPOLL_CTL_ADD, conns[i].fd, &e);
        if (conns[i].watches)
            ask(l, &conns[i]);
    }
    run(l, poller, all_watch);
    double cpu = cpu_seconds(), theirs = server_cpu(l);
    l->began = now();
    for (long i = l->watchers; i < all && l->begun < l->requests; i++)
        ask(l, &conns[i]);
    run(l, poller, over);
    report(l, cpu_seconds() - cpu, server_cpu(l) - theirs);
    for (long i = 0; i < all; i++)
        close_conn(&conns[i]);
    close(poller);
    kl_free(conns);
    kl_free(l->took);
}

static void set_server(load *l, const char *url)
{
    l->https = !strncmp(url, "https://", 8);
    const char *host = strstr(url, "://"), *port = host ? strchr(host + 3, ':') : NULL;
    if (!port)
        die(url, "no URL with a port");
    char address[64];
    snprintf(address, sizeof address, "%.*s", (int)(port - host - 3), host + 3);
    l->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port + 1))};
    if (inet_pton(AF_INET, address, &l->to.sin_addr) != 1)
        die(url, "no address of IPv4");
}

static long *number_of(load *l, const char *option)
{
    return !strcmp(option, "--clients") ? &l->clients
        : !strcmp(option, "--watchers") ? &l->watchers
        : !strcmp(option, "--requests") ? &l->requests
        : !strcmp(option, "--first")    ? &l->first
        : !strcmp(option, "--objects")  ? &l->objects
        : !strcmp(option, "--limit")    ? &l->limit
        : !strcmp(option, "--rv")       ? &l->rv
                                        : NULL;
}

static mode mode_of(const char *name)
{
    static const char *const names[] = {"create", "get", "list", "watch"};
    for (mode m = CREATE; m <= WATCH; m++)
        if (!strcmp(name, names[m]))
            return m;
    die(name, "no such mode");
    return CREATE;
}

int main(int argc, char **argv)
{
    load l = {.clients = 1, .requests = 1000, .objects = 1};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *o = argv[i], *v = argv[i + 1];
        long *n = number_of(&l, o);
        if (n)
            *n = atol(v);
        else if (!strcmp(o, "--server"))
            set_server(&l, v);
        else if (!strcmp(o, "--token"))
            snprintf(l.authorization, sizeof l.authorization, "Authorization: Bearer %s\r\n", v);
        else if (!strcmp(o, "--pids"))
            l.pids = v;
        else if (!strcmp(o, "--mode"))
            l.mode = mode_of(v);
        else
            die(o, "no such option");
    }
    gnutls_certificate_allocate_credentials(&l.credentials);
    work(&l);
    gnutls_certificate_free_credentials(l.credentials);
    return 0;
}
