/* upgrade.c - request and answer of a WebSocket handshake. A refusal is read like any HTTP answer: by length,
 * in chunks or to the end, as far as an error message needs it. */
#include "http/upgrade.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "base/base64.h"
#include "base/mem.h"
#include "base/sha1.h"
#include "http/url.h"

#define HEAD_MAX ((size_t)64 << 10)
#define BODY_MAX ((size_t)64 << 10) /* of a refusal; the rest is not waited for */
#define CHUNK_MAX (1LL << 40)
#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11" /* RFC 6455 1.3 */

enum { CHUNK_SIZE, CHUNK_EXTENSION, CHUNK_DATA, CHUNK_AFTER, CHUNK_LAST };

void kl__upgrade_init(kl__upgrade *u, const unsigned char random[16], const char *const *protocols)
{
    *u = (kl__upgrade){.protocols = protocols, .left = -1};
    char *key = kl_base64_encode(random, 16);
    memcpy(u->key, key, sizeof u->key);
    kl_free(key);
    kl_buf_init(&u->in, HEAD_MAX);
    kl_buf_init(&u->body, BODY_MAX);
}

void kl__upgrade_fini(kl__upgrade *u)
{
    kl_buf_fini(&u->in);
    kl_buf_fini(&u->body);
    kl_free(u->retry_after);
    u->retry_after = NULL;
}

kl_status kl__upgrade_request(
    const kl__upgrade *u, const char *url, const char *const *headers, kl_buf *out, kl_err *err)
{
    const char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    kl_buf_printf(out,
        "GET %s HTTP/1.1\r\nHost: %.*s\r\nUpgrade: websocket\r\nConnection: "
        "Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n",
        kl_url_target(url), (int)strcspn(host, "/?"), host, u->key);
    kl_buf_puts(out, "Sec-WebSocket-Protocol: ");
    for (const char *const *p = u->protocols; *p; p++)
        kl_buf_printf(out, "%s%s", p == u->protocols ? "" : ", ", *p);
    kl_buf_puts(out, "\r\n");
    for (const char *const *l = headers; l && *l; l++) {
        if (strpbrk(*l, "\r\n"))
            return kl_fail(err, KL_EINVAL, "the header %.*s holds a line break", (int)strcspn(*l, ":"), *l);
        kl_buf_printf(out, "%s\r\n", *l);
    }
    return kl_buf_puts(out, "\r\n");
}

/* --- the head ----------------------------------------------------------------------------- */

/* The length of the head with its empty line; 0 while it is incomplete. */
static size_t head_length(const kl_buf *b)
{
    for (const char *p = b->data, *end = p + b->len; (p = memchr(p, '\n', (size_t)(end - p)));) {
        p++;
        if (p < end && *p == '\n')
            return (size_t)(p + 1 - b->data);
        if (p + 1 < end && p[0] == '\r' && p[1] == '\n')
            return (size_t)(p + 2 - b->data);
    }
    return 0;
}

/* A header's value, trimmed, in the caller's hands; NULL when there is none. */
static char *header(const char *head, const char *name)
{
    size_t n = strlen(name);
    for (const char *l = strchr(head, '\n'); l; l = strchr(l, '\n')) {
        l++;
        if (strncasecmp(l, name, n) || l[n] != ':')
            continue;
        const char *v = l + n + 1 + strspn(l + n + 1, " \t");
        size_t len = strcspn(v, "\r\n");
        while (len && isspace((unsigned char)v[len - 1]))
            len--;
        return kl_strndup(v, len);
    }
    return NULL;
}

/* Whether a comma-separated list has the word. */
static bool has_word(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; p && *p;) {
        p += strspn(p, ", \t");
        size_t len = strcspn(p, ", \t;");
        if (len == n && !strncasecmp(p, word, n))
            return true;
        p += strcspn(p, ",");
    }
    return false;
}

static bool proven(const kl__upgrade *u, const char *accept)
{
    unsigned char digest[20];
    char *text = kl_sprintf("%s%s", u->key, GUID);
    kl_sha1(text, strlen(text), digest);
    char *expected = kl_base64_encode(digest, sizeof digest);
    bool same = accept && !strcmp(accept, expected);
    kl_free(expected);
    kl_free(text);
    return same;
}

static kl_status judge(kl__upgrade *u, const char *head, kl_err *err)
{
    char *upgrade = header(head, "Upgrade"), *connection = header(head, "Connection"),
         *accept = header(head, "Sec-WebSocket-Accept"), *protocol = header(head, "Sec-WebSocket-Protocol"),
         *extensions = header(head, "Sec-WebSocket-Extensions");
    kl_status st = KL_OK;
    for (const char *const *p = u->protocols; protocol && *p; p++)
        if (!strcmp(*p, protocol))
            u->protocol = *p;
    if (!has_word(upgrade, "websocket") || !has_word(connection, "upgrade"))
        st = kl_fail(err, KL_ESERVER,
            "the server switched to a protocol other than WebSocket: is there a proxy in between?");
    else if (!proven(u, accept))
        st = kl_fail(err, KL_ESERVER,
            "the server's Sec-WebSocket-Accept does not match our key: it does not speak WebSocket, or a "
            "proxy answered");
    else if (extensions && *extensions)
        st = kl_fail(err, KL_ESERVER, "the server uses a WebSocket extension (%.60s) that was not asked for",
            extensions);
    else if (!protocol || !*protocol)
        st = kl_fail(err, KL_ESERVER,
            "the server chose no subprotocol: it supports none that we offered (%s first)", u->protocols[0]);
    else if (!u->protocol)
        st = kl_fail(
            err, KL_ESERVER, "the server chose the subprotocol \"%.60s\", which was not offered", protocol);
    kl_free(upgrade);
    kl_free(connection);
    kl_free(accept);
    kl_free(protocol);
    kl_free(extensions);
    return st;
}

static kl_status begin_body(kl__upgrade *u, const char *head)
{
    char *length = header(head, "Content-Length"), *encoding = header(head, "Transfer-Encoding");
    u->refused = true;
    u->retry_after = header(head, "Retry-After");
    u->chunked = has_word(encoding, "chunked");
    u->left = u->chunked || !length || !isdigit((unsigned char)*length) ? -1 : strtoll(length, NULL, 10);
    if (u->code == 204 || u->code == 304)
        u->left = 0;
    kl_free(length);
    kl_free(encoding);
    return u->left ? KL_EAGAIN : KL_EREJECTED;
}

static kl_status take_head(kl__upgrade *u, size_t len, kl_err *err)
{
    int minor = 0;
    u->in.data[len - 1] = '\0';
    if (strlen(u->in.data) != len - 1 || sscanf(u->in.data, "HTTP/1.%d %3d", &minor, &u->code) != 2
        || u->code < 100)
        return kl_fail(err, KL_ESERVER,
            "the server does not answer in HTTP/1.1: is it an API server, and is the port right?");
    if (u->code == 101)
        return judge(u, u->in.data, err);
    if (u->code < 200) { /* an interim answer: the real one follows */
        kl_buf_consume(&u->in, len);
        return KL_OK;
    }
    return begin_body(u, u->in.data);
}

/* --- a refusal's body --------------------------------------------------------------------- */

static kl_status keep(kl__upgrade *u, const char *data, size_t n)
{
    if (kl_buf_add(&u->body, data, n < BODY_MAX - u->body.len ? n : BODY_MAX - u->body.len))
        return KL_EREJECTED;
    return u->body.len == BODY_MAX ? KL_EREJECTED : KL_EAGAIN;
}

static kl_status feed_chunks(kl__upgrade *u, const char *data, size_t n)
{
    for (size_t i = 0; i < n;) {
        char c = data[i];
        switch (u->chunk_state) {
        case CHUNK_SIZE:
            if (u->left < 0)
                u->left = 0;
            if (isxdigit((unsigned char)c) && u->left < CHUNK_MAX)
                u->left = u->left * 16
                    + (isdigit((unsigned char)c) ? c - '0' : tolower((unsigned char)c) - 'a' + 10);
            else
                u->chunk_state = CHUNK_EXTENSION;
            if (u->chunk_state == CHUNK_SIZE)
                i++;
            break;
        case CHUNK_EXTENSION:
            if (c == '\n' && !u->left)
                return KL_EREJECTED;
            if (c == '\n')
                u->chunk_state = CHUNK_DATA;
            i++;
            break;
        case CHUNK_DATA: {
            size_t some = n - i < (unsigned long long)u->left ? n - i : (size_t)u->left;
            kl_status st = keep(u, data + i, some);
            if (st != KL_EAGAIN)
                return st;
            i += some;
            u->left -= (long long)some;
            if (!u->left)
                u->chunk_state = CHUNK_AFTER;
            break;
        }
        default:
            if (c == '\n') {
                u->chunk_state = CHUNK_SIZE;
                u->left = -1;
            }
            i++;
        }
    }
    return KL_EAGAIN;
}

static kl_status feed_body(kl__upgrade *u, const char *data, size_t n)
{
    if (u->chunked)
        return feed_chunks(u, data, n);
    if (u->left >= 0 && n > (unsigned long long)u->left)
        n = (size_t)u->left;
    kl_status st = keep(u, data, n);
    if (u->left >= 0)
        u->left -= (long long)n;
    return st == KL_EAGAIN && !u->left ? KL_EREJECTED : st;
}

/* --- the whole ---------------------------------------------------------------------------- */

kl_status kl__upgrade_feed(kl__upgrade *u, const char *data, size_t n, size_t *used, kl_err *err)
{
    *used = n;
    if (u->refused)
        return feed_body(u, data, n);
    if (kl_buf_add(&u->in, data, n))
        return kl_fail(err, KL_ETOOBIG,
            "the server sent more than %zu bytes of headers: is it an API server?", HEAD_MAX);
    for (size_t len; (len = head_length(&u->in));) {
        size_t over = u->in.len - len;
        kl_status st = take_head(u, len, err);
        if (!st && u->code != 101)
            continue; /* after an interim answer */
        if (st == KL_EAGAIN && over) {
            char *rest = kl_alloc(over);
            memcpy(rest, u->in.data + len, over);
            st = feed_body(u, rest, over);
            kl_free(rest);
        }
        *used = n - (st ? 0 : over);
        return st;
    }
    if (u->in.len >= 5 && memcmp(u->in.data, "HTTP/", 5))
        return kl_fail(err, KL_ESERVER,
            "the server does not answer in HTTP: is it an API server, and is the port right?");
    return KL_EAGAIN;
}

kl_status kl__upgrade_end(kl__upgrade *u, kl_err *err)
{
    if (u->refused)
        return KL_EREJECTED; /* what there is of it says enough */
    return kl_fail(err, KL_ECLOSED, "the server closed the connection before it answered");
}
