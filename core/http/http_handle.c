/* http_handle.c - easy handles of libcurl, with the common settings of requests to one server: address,
 * trust, proxy, form.
 *
 *   taken for a request --its transfer went well--> spare --another request of its kind--> taken
 *
 * Creating a handle and setting its options costs as much as the rest of a small request, so a few are kept.
 * The common settings are a request's `kind`, a text; requests of equal kind can use one handle one after the
 * other. */
#include "http/http_impl.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/hash.h"
#include "base/mem.h"
#include "http/proxy.h"

#define SPARE_MAX 16 /* kept; about 10 KB each */

#define SET(opt, value) (void)kl__curl.easy_setopt(x->easy, opt, value)

/* Where the path of a URL begins: before it is the server. */
static size_t origin_length(const char *url)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    return (size_t)(host - url) + strcspn(host, "/?#");
}

static char *take_part(CURLU *u, CURLUPart part)
{
    char *s = NULL;
    if (kl__curl.url_get(u, part, &s, CURLU_DEFAULT_PORT) || !s)
        return NULL;
    char *mine = kl_strdup(s);
    kl__curl.free(s);
    return mine;
}

/* Makes libcurl connect to host and port, whatever the URL's name is. */
static void set_connect_to(kl__handle *x, const char *host, const char *port)
{
    char *line = kl_sprintf("::%s:%s", host, port);
    x->connect_to = kl__curl.slist_append(NULL, line);
    if (!x->connect_to)
        kl_mem_die("memory");
    kl_free(line);
    SET(CURLOPT_CONNECT_TO, x->connect_to);
}

/* A certificate is checked for the host in the URL. To check it for another name, the URL gets that name, the
 * connection goes where the URL went, and the Host header stays. */
static void set_address(kl__handle *x, const kl_http_request *r)
{
    const char *name = r->tls.server_name;
    CURLU *u = kl__curl.url();
    char *host = NULL, *port = NULL, *scheme = NULL;
    bool parsed = u && !kl__curl.url_set(u, CURLUPART_URL, r->url, CURLU_NON_SUPPORT_SCHEME);
    if (parsed) {
        host = take_part(u, CURLUPART_HOST);
        port = take_part(u, CURLUPART_PORT);
        scheme = take_part(u, CURLUPART_SCHEME);
    }
    x->peer = r->unix_socket ? kl_strdup(r->unix_socket)
        : host && port       ? kl_sprintf("%s:%s", host, port)
                             : kl_strdup(r->url);
    x->server_name = kl_strdup(name && *name ? name : host ? host : r->url);
    if (host && port && scheme && name && *name && strcmp(name, host)) {
        set_connect_to(x, host, port);
        x->host_line = kl_sprintf("Host: %s", x->peer);
        x->origin = kl_sprintf("%s://%s:%s", scheme, name, port);
    }
    kl__curl.url_cleanup(u);
    kl_free(host);
    kl_free(port);
    kl_free(scheme);
}

static bool is_address(const char *host)
{
    unsigned char at[sizeof(struct in6_addr)];
    return *host == '[' || inet_pton(AF_INET, host, at) == 1;
}

/* Sets the name that is to be resolved, the proxy's or the server's; NULL for an address. */
static void set_looked_up(kl__handle *x, const kl_http_request *r)
{
    CURLU *u = kl__curl.url();
    const char *to = r->proxy && *r->proxy ? r->proxy : r->url;
    char *host = u && !kl__curl.url_set(u, CURLUPART_URL, to, CURLU_NON_SUPPORT_SCHEME)
        ? take_part(u, CURLUPART_HOST)
        : NULL;
    x->looked_up = host && !is_address(host) ? kl_strdup(host) : NULL;
    kl__curl.url_cleanup(u);
    kl_free(host);
}

static void set_blob(kl__handle *x, CURLoption opt, const char *pem)
{
    struct curl_blob blob = {.data = (void *)pem, .len = strlen(pem), .flags = CURL_BLOB_COPY};
    (void)kl__curl.easy_setopt(x->easy, opt, &blob);
}

static void set_tls(kl__handle *x, const kl_tls *tls)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (tls->ca_pem || tls->ca_file) {
        SET(CURLOPT_CAPATH, NULL); /* the system's directory would be trusted too */
        if (tls->ca_pem)
            set_blob(x, CURLOPT_CAINFO_BLOB, tls->ca_pem);
        else
            SET(CURLOPT_CAINFO, tls->ca_file);
    }
    x->ca = kl_strdup(tls->ca_file ? tls->ca_file
            : tls->ca_pem          ? "the CA in the kubeconfig (certificate-authority-data)"
                                   : "the system's CAs");
    if (tls->cert_pem)
        set_blob(x, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
    else if (tls->cert_file)
        SET(CURLOPT_SSLCERT, tls->cert_file);
    if (tls->key_pem)
        set_blob(x, CURLOPT_SSLKEY_BLOB, tls->key_pem);
    else if (tls->key_file)
        SET(CURLOPT_SSLKEY, tls->key_file);
    if (tls->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
}

/* An https proxy is trusted by the same CAs as the server: Go has one TLS configuration for both. */
static void set_proxy(kl__handle *x, const kl_http_request *r)
{
    if (!r->proxy)
        return;
    SET(CURLOPT_PROXY, r->proxy);
    SET(CURLOPT_NOPROXY, ""); /* the variable would count otherwise */
    x->proxy = kl__proxy_words(r->proxy);
    if (strncasecmp(r->proxy, "https:", 6))
        return;
    if (r->tls.ca_pem || r->tls.ca_file) {
        SET(CURLOPT_PROXY_CAPATH, NULL);
        if (r->tls.ca_pem)
            set_blob(x, CURLOPT_PROXY_CAINFO_BLOB, r->tls.ca_pem);
        else
            SET(CURLOPT_PROXY_CAINFO, r->tls.ca_file);
    }
    if (r->tls.insecure) {
        SET(CURLOPT_PROXY_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_PROXY_SSL_VERIFYHOST, 0L);
    }
}

static bool wants_gzip(const kl_http *h, const kl_http_request *r)
{
    return r->accept_gzip && !atomic_load(&h->plain);
}

static void set_form(kl__handle *x, const kl_http *h, const kl_http_request *r)
{
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (r->gulp)
        SET(CURLOPT_BUFFERSIZE, (long)r->gulp);
    if (h->user_agent)
        SET(CURLOPT_USERAGENT, h->user_agent);
    if (wants_gzip(h, r))
        SET(CURLOPT_ACCEPT_ENCODING, "gzip");
    x->shares = !strncasecmp(r->url, "https:", 6) && !h->http1 && !r->on_pipe;
    if (r->on_pipe) {
        SET(CURLOPT_CONNECT_ONLY, 1L);
        SET(CURLOPT_HTTPPROXYTUNNEL, 1L);
    }
    if (x->shares) {
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
        /* share the connection that is being made instead of making another */
        SET(CURLOPT_PIPEWAIT, 1L);
    } else
        SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
}

/* --- kinds -------------------------------------------------------------------------------- */

static void add(kl_buf *b, const char *s)
{
    kl_buf_putc(b, s ? 's' : '-'); /* "" is not NULL */
    kl_buf_puts(b, s ? s : "");
    kl_buf_putc(b, '\0');
}

static void kind_of(const kl_http *h, const kl_http_request *r, kl_buf *b)
{
    const kl_tls *t = &r->tls;
    const char *const texts[] = {r->proxy, t->ca_file, t->ca_pem, t->cert_file, t->cert_pem, t->key_file,
        t->key_pem, t->server_name, r->unix_socket};
    kl_buf_add(b, r->url, origin_length(r->url));
    kl_buf_putc(b, '\0');
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        add(b, texts[i]);
    kl_buf_printf(b, "%d%d%d %zu", t->insecure, wants_gzip(h, r), r->on_pipe != NULL, r->gulp);
}

static void handle_free(kl__handle *x)
{
    kl__curl.easy_cleanup(x->easy);
    kl__curl.slist_free_all(x->connect_to);
    kl_buf_fini(&x->kind);
    kl_free(x->origin);
    kl_free(x->host_line);
    kl_free(x->peer);
    kl_free(x->ca);
    kl_free(x->server_name);
    kl_free(x->proxy);
    kl_free(x->looked_up);
    kl_free(x);
}

static kl__handle *take_spare(kl_http *h, const kl_buf *kind, uint64_t hash)
{
    kl__handle *found = NULL;
    kl_lock(&h->mu);
    for (kl_list *l = h->spare.next; l != &h->spare && !found; l = l->next) {
        kl__handle *x = KL_CONTAINER(l, kl__handle, link);
        if (x->hash == hash && x->kind.len == kind->len && !memcmp(x->kind.data, kind->data, kind->len))
            found = x;
    }
    if (found) {
        kl_list_remove(&found->link);
        h->nspare--;
    }
    kl_unlock(&h->mu);
    return found;
}

kl__handle *kl__handle_take(kl_http *h, const kl_http_request *r)
{
    kl_buf kind = KL_BUF_INIT;
    kind_of(h, r, &kind);
    uint64_t hash = kl_quick_hash(kind.data, kind.len);
    kl__handle *x = take_spare(h, &kind, hash);
    if (x) {
        kl_buf_fini(&kind);
        return x;
    }
    x = kl_new(kl__handle);
    kl_list_init(&x->link);
    x->kind = kind;
    x->hash = hash;
    x->easy = kl__curl.easy_init();
    if (!x->easy)
        kl_mem_die("curl handle");
    set_form(x, h, r);
    if (r->unix_socket)
        SET(CURLOPT_UNIX_SOCKET_PATH, r->unix_socket);
    set_address(x, r);
    set_tls(x, &r->tls);
    set_proxy(x, r);
    set_looked_up(x, r);
    return x;
}

void kl__handle_set_url(kl__handle *x, const char *url)
{
    if (!x->origin) {
        SET(CURLOPT_URL, url);
        return;
    }
    char *named = kl_sprintf("%s%s", x->origin, url + origin_length(url));
    SET(CURLOPT_URL, named);
    kl_free(named);
}

/* Removes all data of the request: pointers and secrets. */
static void forget_request(kl__handle *x)
{
    SET(CURLOPT_ERRORBUFFER, NULL);
    SET(CURLOPT_HTTPHEADER, NULL);
    SET(CURLOPT_PRIVATE, NULL);
    SET(CURLOPT_CUSTOMREQUEST, NULL);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)-1);
    SET(CURLOPT_HTTPGET, 1L); /* neither POST nor HEAD */
    SET(CURLOPT_TIMEOUT_MS, 0L);
}

void kl__handle_give(kl_http *h, kl__handle *x, bool well)
{
    kl__handle *old = well ? NULL : x;
    if (well) {
        forget_request(x);
        kl_lock(&h->mu);
        kl_list_push_front(&h->spare, &x->link);
        if (++h->nspare > SPARE_MAX) {
            old = KL_CONTAINER(h->spare.prev, kl__handle, link);
            kl_list_remove(&old->link);
            h->nspare--;
        }
        kl_unlock(&h->mu);
    }
    if (old)
        handle_free(old);
}

void kl__handles_free(kl_http *h)
{
    while (!kl_list_empty(&h->spare)) {
        kl__handle *x = KL_CONTAINER(h->spare.next, kl__handle, link);
        kl_list_remove(&x->link);
        handle_free(x);
    }
}
