/* request.c - what a request says, and who sent it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include "base/mem.h"
#include "httpd/httpd_impl.h"
#include "httpd/listen.h"
#include "httpd/unixsock.h"

char *kl__peer_of(struct MHD_Connection *conn)
{
    char text[INET6_ADDRSTRLEN] = "";
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = info ? info->client_addr : NULL;
    if (a && a->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)a)->sin_addr, text, sizeof text);
    else if (a && a->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr, text, sizeof text);
    return kl_strdup(text);
}

const char *kl_httpd_method(const kl_httpd_request *r) { return r->method; }

const char *kl_httpd_path(const kl_httpd_request *r) { return r->path; }

const char *kl_httpd_uri(const kl_httpd_request *r) { return r->uri; }

char *kl_httpd_source(const kl_httpd_request *r) { return r->conn ? kl__peer_of(r->conn) : NULL; }

static const char *lookup(const kl_httpd_request *r, enum MHD_ValueKind kind, const char *name)
{
    const char *value = NULL;
    size_t n;
    if (!r->conn || MHD_lookup_connection_value_n(r->conn, kind, name, strlen(name), &value, &n) != MHD_YES)
        return NULL;
    return value ? value : "";
}

typedef struct first {
    const char *name, *value;
} first;

static enum MHD_Result on_argument(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    first *f = arg;
    if (strcmp(key, f->name) != 0)
        return MHD_YES;
    f->value = value ? value : "";
    return MHD_NO;
}

/* libmicrohttpd's own search takes "Limit" for "limit". */
const char *kl_httpd_query(const kl_httpd_request *r, const char *name)
{
    first f = {.name = name};
    if (r->conn)
        MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, on_argument, &f);
    return f.value;
}

typedef struct each_value {
    const char *name;
    void (*fn)(void *arg, const char *value);
    void *arg;
} each_value;

static enum MHD_Result on_value(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    const each_value *e = arg;
    if (!strcmp(key, e->name))
        e->fn(e->arg, value ? value : "");
    return MHD_YES;
}

void kl_httpd_query_each(
    const kl_httpd_request *r, const char *name, void (*fn)(void *arg, const char *value), void *arg)
{
    if (r->conn)
        MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, on_value, &(each_value){name, fn, arg});
}

static enum MHD_Result add_value(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    kl_buf *b = arg;
    kl_buf_printf(b, "%s%s%s%s", b->len ? "&" : "", key, value ? "=" : "", value ? value : "");
    return MHD_YES;
}

char *kl_httpd_query_text(const kl_httpd_request *r)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_puts(&b, "");
    if (r->conn)
        MHD_get_connection_values(r->conn, MHD_GET_ARGUMENT_KIND, add_value, &b);
    return kl_buf_take(&b);
}

bool kl_httpd_peer(const kl_httpd_request *r, pid_t *pid, uid_t *uid)
{
    const union MHD_ConnectionInfo *info = r->conn
        ? MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CONNECTION_FD)
        : NULL;
    return info && kl_unixsock_peer(info->connect_fd, pid, uid);
}

bool kl_httpd_from_loopback(const kl_httpd_request *r)
{
    const union MHD_ConnectionInfo *info = r->conn
        ? MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_CLIENT_ADDRESS)
        : NULL;
    const struct sockaddr *a = info ? info->client_addr : NULL;
    if (a && a->sa_family == AF_UNIX)
        return true;
    if (a && a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    if (!a || a->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(six) || (IN6_IS_ADDR_V4MAPPED(six) && six->s6_addr[12] == 127);
}

kl_peer kl_httpd_client(const kl_httpd_request *r, char **cn, char **organizations)
{
    const union MHD_ConnectionInfo *info = r->conn && r->h->tls
        ? MHD_get_connection_info(r->conn, MHD_CONNECTION_INFO_GNUTLS_SESSION)
        : NULL;
    return info ? kl_keyring_peer(info->tls_session, cn, organizations) : KL_PEER_NONE;
}

const char *kl_httpd_header(const kl_httpd_request *r, const char *name)
{
    return lookup(r, MHD_HEADER_KIND, name);
}

const char *kl_httpd_foreign(const kl_httpd_request *r)
{
    const char *host = kl_httpd_header(r, MHD_HTTP_HEADER_HOST), *origin = kl_httpd_header(r, "Origin"),
               *sep = origin ? strstr(origin, "://") : NULL;
    if (kl_httpd_peer(r, NULL, NULL)) /* web pages cannot reach a Unix socket */
        return NULL;
    if (host && !kl_listen_loopback_name(host))
        return MHD_HTTP_HEADER_HOST;
    /* with the port: another program of this machine has pages of its own */
    return origin && !(sep && host && !strcasecmp(sep + 3, host)) ? "Origin" : NULL;
}

typedef struct each_header {
    void (*fn)(void *arg, const char *name, const char *value);
    void *arg;
} each_header;

static enum MHD_Result on_header(void *arg, enum MHD_ValueKind kind, const char *key, const char *value)
{
    (void)kind;
    const each_header *e = arg;
    e->fn(e->arg, key, value ? value : "");
    return MHD_YES;
}

void kl_httpd_header_each(
    const kl_httpd_request *r, void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
    if (r->conn)
        MHD_get_connection_values(r->conn, MHD_HEADER_KIND, on_header, &(each_header){fn, arg});
}

const char *kl_httpd_body(const kl_httpd_request *r, size_t *len)
{
    if (len)
        *len = r->body.len;
    return kl_buf_str(&r->body);
}

const char *kl_httpd_mark(const kl_httpd_request *r) { return r->mark; }

void kl_httpd_set_user(kl_httpd_request *r, void *user) { r->user = user; }

void *kl_httpd_user(const kl_httpd_request *r) { return r->user; }
