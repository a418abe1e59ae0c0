/* http_help.h - a small HTTP client for tests of the server: one connection per request, blocking, bounded
 * by a deadline. */
#ifndef KL_SPEC_HTTP_HELP_H
#define KL_SPEC_HTTP_HELP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "server/server.h"
#include "value_help.h"

/* A bound for hangs, generous for sanitizers. */
#define PATIENCE_MS 20000

static inline int http_send(
    kl_server *s, const char *method, const char *path, const char *type, const char *body)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(kl_server_url(s), ':') + 1));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    char *text = kl_sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: spec/1\r\nConnection: "
                            "close\r\n%s%s%sContent-Length: %zu\r\n\r\n%s",
        method, path, type ? "Content-Type: " : "", type ? type : "", type ? "\r\n" : "",
        body ? strlen(body) : 0, body ? body : "");
    size_t len = strlen(text), done = 0;
    while (done < len) {
        ssize_t n = send(fd, text + done, len - done, MSG_NOSIGNAL);
        assert_true(n > 0);
        done += (size_t)n;
    }
    kl_free(text);
    return fd;
}

/* More bytes; false at the end of the connection. */
static inline bool http_more(int fd, kl_buf *in)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, PATIENCE_MS) != 1)
        fail_msg("the server said nothing for %d s; so far: %s", PATIENCE_MS / 1000, kl_buf_str(in));
    char *room = kl_buf_reserve(in, 65536);
    ssize_t n = read(fd, room, 65536);
    if (n <= 0)
        return false;
    in->len += (size_t)n;
    in->data[in->len] = 0;
    return true;
}

/* Takes chunk framing out of a body, in place. */
static inline char *unchunk(char *body)
{
    char *in = body, *out = body;
    for (;;) {
        char *end;
        unsigned long n = strtoul(in, &end, 16);
        if (end == in || !n || strncmp(end, "\r\n", 2))
            break;
        memmove(out, end + 2, n);
        out += n;
        in = end + 2 + n + 2;
    }
    *out = 0;
    return body;
}

/* The answer's code; *body gets its text (the caller kl_free()s). */
static inline int http_finish(int fd, char **body)
{
    kl_buf in = KL_BUF_INIT;
    while (http_more(fd, &in)) {}
    close(fd);
    int code = atoi(kl_buf_str(&in) + 9);
    char *at = strstr(in.data, "\r\n\r\n");
    assert_non_null(at);
    bool chunked = strcasestr(in.data, "\r\nTransfer-Encoding: chunked")
        && strcasestr(in.data, "\r\nTransfer-Encoding: chunked") < at;
    *body = kl_strdup(at + 4);
    if (chunked)
        unchunk(*body);
    kl_buf_fini(&in);
    return code;
}

/* One request; `body` uses ' for ". The answer as a value (a new reference), its code in *code. */
static inline const kl_value *http(
    kl_server *s, const char *method, const char *path, const char *body, int *code)
{
    char *json = body ? kl_strdup(body) : NULL, *text;
    for (char *p = json; p && *p; p++)
        if (*p == '\'')
            *p = '"';
    const char *type = !body      ? NULL
        : strcmp(method, "PATCH") ? "application/json"
        : *json == '['            ? "application/json-patch+json"
                                  : "application/merge-patch+json";
    *code = http_finish(http_send(s, method, path, type, json), &text);
    const kl_value *out = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_value_decode(text, strlen(text), &out, &err))
        fail_msg("%s %s: %s: %s", method, path, kl_err_message(&err), text);
    kl_free(text);
    kl_free(json);
    return out;
}

/* The code of a request whose answer is of no interest. */
static inline int http_code(kl_server *s, const char *method, const char *path, const char *body)
{
    int code;
    kl_value_unref(http(s, method, path, body, &code));
    return code;
}

/* Waits until the stream has said `word` `times`; `in` collects what came. */
static inline void http_wait_for(int fd, kl_buf *in, const char *word, int times)
{
    for (;;) {
        int seen = 0;
        for (const char *p = kl_buf_str(in); (p = strstr(p, word)); p += strlen(word))
            seen++;
        if (seen >= times)
            return;
        if (!http_more(fd, in))
            fail_msg("the stream ended before it said %s %d times: %s", word, times, kl_buf_str(in));
    }
}

#endif
