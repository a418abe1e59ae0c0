/* server.c - any requests, one after the other, to one embedded API server: each gets exactly one answer,
 * none is "internal error", failures are Status objects with the code that was answered, and after the end
 * nothing is left.
 *
 * Requests are blocks with an empty line between: "METHOD /path?query", lines of the body; "~" before a
 * method asks for a Table, PATCH takes the kind of patch from the word after the path (json, merge,
 * strategic, apply). No socket is involved: this file is the HTTP server, with a clock that stands. */
#include "httpd/httpd.h"
#include "base/mem.h"
#include "fuzz/two.h"
#include "model/resource.h"
#include "server/server.h"

struct kl_httpd {
    kl_httpd_options o;
};
struct kl_httpd_stream {
    size_t written;
};
struct kl_httpd_request {
    char *method, *path, *query, *body, *patch;
    size_t body_len;
    bool table;
    kl_buf asked; /* values of query parameters, for the request's life */
    char *values[64];
    size_t nvalues;
    unsigned answers;
    int code;
    char *type;
    kl_buf reply;
    kl_httpd_stream *stream;
};

/* --- the HTTP server ---------------------------------------------------------------------- */

kl_status kl_httpd_start(const kl_httpd_options *o, kl_httpd **out, kl_err *err)
{
    (void)err;
    *out = kl_new(kl_httpd);
    (*out)->o = *o;
    return KL_OK;
}

void kl_httpd_stop(kl_httpd *h) { kl_free(h); }
uint16_t kl_httpd_port(const kl_httpd *h) { return (void)h, 1; }
const char *kl_httpd_address(const kl_httpd *h) { return (void)h, "127.0.0.1:1"; }
const char *kl_httpd_method(const kl_httpd_request *r) { return r->method; }
const char *kl_httpd_path(const kl_httpd_request *r) { return r->path; }
/* No audit log is asked for. */
void kl_httpd_attend(kl_httpd_request *r, const kl_httpd_witness *w, void *arg)
{
    (void)r, (void)w, (void)arg;
}
void *kl_httpd_attended(const kl_httpd_request *r) { return (void)r, NULL; }
const char *kl_httpd_uri(const kl_httpd_request *r) { return kl_httpd_path(r); }
char *kl_httpd_source(const kl_httpd_request *r) { return (void)r, NULL; }
const char *kl_httpd_mark(const kl_httpd_request *r) { return (void)r, NULL; }
/* Without a caller no webhook is called, so that nothing begins again. */
void kl_httpd_set_user(kl_httpd_request *r, void *user) { (void)r, (void)user; }
void *kl_httpd_user(const kl_httpd_request *r) { return (void)r, NULL; }
/* Nothing is on disk, so that no answer waits for it. */
void kl_httpd_hold(kl_httpd_request *r) { (void)r; }
void kl_httpd_release(kl_httpd_request *r) { (void)r; }
void kl_httpd_retract(kl_httpd_request *r) { (void)r; }
bool kl_httpd_again(kl_httpd_request *r) { return (void)r, false; }
void kl_httpd_halve(kl_httpd_request *r) { (void)r; }
const char *kl_httpd_foreign(const kl_httpd_request *r) { return (void)r, NULL; }

static char *unescaped(const char *s, size_t n)
{
    kl_buf out = KL_BUF_INIT;
    if (kl_url_unescape(s, n, true, &out, NULL)) {
        kl_buf_clear(&out);
        kl_buf_add(&out, s, n);
    }
    kl_buf_putc(&out, '\0');
    return kl_buf_take(&out);
}

const char *kl_httpd_query(const kl_httpd_request *cr, const char *name)
{
    kl_httpd_request *r = (kl_httpd_request *)(uintptr_t)cr;
    for (const char *p = r->query; p && *p; p += strcspn(p, "&"), p += *p == '&') {
        size_t n = strcspn(p, "&"), eq = strcspn(p, "=&");
        char *key = unescaped(p, eq);
        bool it = !strcmp(key, name);
        kl_free(key);
        if (it && r->nvalues < 64)
            return r->values[r->nvalues++] = eq < n ? unescaped(p + eq + 1, n - eq - 1) : kl_strdup("");
    }
    return NULL;
}

void kl_httpd_query_each(
    const kl_httpd_request *r, const char *name, void (*fn)(void *arg, const char *value), void *arg)
{
    for (const char *p = r->query; p && *p; p += strcspn(p, "&"), p += *p == '&') {
        size_t n = strcspn(p, "&"), eq = strcspn(p, "=&");
        char *key = unescaped(p, eq), *value = eq < n ? unescaped(p + eq + 1, n - eq - 1) : kl_strdup("");
        if (!strcmp(key, name))
            fn(arg, value);
        kl_free(key);
        kl_free(value);
    }
}

const char *kl_httpd_header(const kl_httpd_request *r, const char *name)
{
    static const struct {
        const char *word, *type;
    } types[] = {
        {"json", "application/json-patch+json"},
        {"merge", "application/merge-patch+json"},
        {"strategic", "application/strategic-merge-patch+json"},
        {"apply", "application/apply-patch+yaml"},
        {"yaml", "application/yaml"},
        {"proto", "application/vnd.kubernetes.protobuf"},
    };
    if (!strcasecmp(name, "Accept"))
        return r->table ? "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
            : r->patch && !strcmp(r->patch, "proto") ? "application/vnd.kubernetes.protobuf,application/json"
            : r->patch && !strcmp(r->patch, "yaml")  ? "application/yaml, */*;q=0.5"
                                                     : "application/json";
    if (!strcasecmp(name, "Content-Type")) {
        for (size_t i = 0; i < sizeof types / sizeof *types; i++)
            if (r->patch && !strcmp(r->patch, types[i].word))
                return types[i].type;
        return r->patch && *r->patch ? r->patch : "application/json";
    }
    return strcasecmp(name, "User-Agent") ? NULL : "fuzz/1";
}

kl_peer kl_httpd_client(const kl_httpd_request *r, char **cn, char **organizations)
{
    (void)r, (void)cn, (void)organizations;
    return KL_PEER_NONE;
}

void kl_httpd_header_each(
    const kl_httpd_request *r, void (*fn)(void *arg, const char *name, const char *value), void *arg)
{
    (void)r, (void)fn, (void)arg;
}

const char *kl_httpd_body(const kl_httpd_request *r, size_t *len)
{
    *len = r->body_len;
    return r->body;
}

void kl_httpd_reply(kl_httpd_request *r, int code, const char *content_type, const char *headers,
    const void *body, size_t len)
{
    (void)headers;
    r->answers++;
    r->code = code;
    kl_free(r->type);
    r->type = kl_strdup(content_type);
    kl_buf_clear(&r->reply);
    kl_buf_add(&r->reply, body, len);
}

void kl_httpd_reply_take(
    kl_httpd_request *r, int code, const char *content_type, const char *headers, kl_buf *body)
{
    kl_httpd_reply(r, code, content_type, headers, kl_buf_str(body), body->len);
    kl_buf_fini(body);
}

kl_httpd_stream *kl_httpd_reply_stream(
    kl_httpd_request *r, int code, const char *content_type, const char *headers)
{
    (void)content_type, (void)headers;
    r->answers++;
    r->code = code;
    return kl_new(kl_httpd_stream);
}

bool kl_httpd_stream_write(kl_httpd_stream *s, const void *data, size_t len)
{
    CLAIM(data || !len);
    s->written += len;
    return true;
}

size_t kl_httpd_stream_queued(kl_httpd_stream *s) { return (void)s, 0; }
bool kl_httpd_stream_gone(kl_httpd_stream *s) { return (void)s, false; }
void kl_httpd_stream_cut(kl_httpd_stream *s) { (void)s; }
void kl_httpd_stream_close(kl_httpd_stream *s) { kl_free(s); }

/* --- requests ----------------------------------------------------------------------------- */

static char *word(const char **p, const char *end)
{
    while (*p < end && **p == ' ')
        ++*p;
    const char *from = *p;
    while (*p < end && **p != ' ')
        ++*p;
    return kl_strndup(from, (size_t)(*p - from));
}

/* "METHOD /path?query word" and the lines below it. */
static kl_httpd_request request_of(const char *p, size_t n)
{
    const char *end = p + n, *line = memchr(p, '\n', n), *first = line ? line : end;
    kl_httpd_request r = {0};
    r.table = n && *p == '~';
    p += r.table;
    r.method = word(&p, first);
    char *target = word(&p, first), *mark = strchr(target, '?');
    if (mark)
        r.query = kl_strdup(mark + 1);
    r.path = unescaped(target, mark ? (size_t)(mark - target) : strlen(target));
    r.patch = word(&p, first);
    kl_free(target);
    r.body_len = line ? (size_t)(end - line - 1) : 0;
    r.body = kl_strndup(line ? line + 1 : "", r.body_len);
    r.body_len = strlen(r.body);
    return r;
}

static void check_answer(const kl_httpd_request *r)
{
    const kl_value *v = NULL;
    CLAIM(r->answers == 1);
    CLAIM(r->code >= 200 && r->code < 600);
    /* what an apply cannot merge, and a body of a deletion that is no options, is 500 for kube-apiserver, too
     */
    bool typed = r->code == 500
        && (strstr(kl_buf_str(&r->reply), "failed to create typed patch object")
            || (!strcmp(r->method, "DELETE") && r->body_len));
    if (r->code == 500 && !typed)
        fprintf(stderr, "%s %s: %s\n", r->method, r->path, kl_buf_str(&r->reply));
    CLAIM(r->code != 500 || typed);
    if (!r->type || strcmp(r->type, "application/json"))
        return;
    CLAIM(!kl_value_decode(kl_buf_str(&r->reply), r->reply.len, &v, NULL));
    if (r->code >= 400) {
        CLAIM(!strcmp(kl_value_str_at(v, "kind", NULL), "Status"));
        CLAIM(kl_value_int_at(v, 0, "code", NULL) == r->code);
        CLAIM(kl_value_str_at(v, "message", NULL) && (typed || kl_value_str_at(v, "reason", NULL)));
    }
    kl_value_unref(v);
}

static void ask(const kl_httpd_options *o, const char *p, size_t n)
{
    kl_httpd_request r = request_of(p, n);
    o->handler(o->arg, &r);
    check_answer(&r);
    for (size_t i = 0; i < r.nvalues; i++)
        kl_free(r.values[i]);
    kl_free(r.method);
    kl_free(r.path);
    kl_free(r.query);
    kl_free(r.body);
    kl_free(r.patch);
    kl_free(r.type);
    kl_buf_fini(&r.reply);
}

#include "server/state.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = (const char *)data, *end = p + size;
    kl_server *s = NULL;
    kl_server_options o = {
        .clock = kl_clock_fake_new(0, KL_SECONDS(1767312000)),
        .history = 20,
        .collect = true,
        .seed = 1, /* so that requests can name the uids of objects as owners */
    };
    CLAIM(!kl_server_start(&o, &s, NULL));
    for (unsigned asked = 0; p < end && asked < 12; asked++) {
        const char *gap = memmem(p, (size_t)(end - p), "\n\n", 2);
        ask(&s->httpd->o, p, (size_t)((gap ? gap : end) - p));
        p = gap ? gap + 2 : end;
    }
    kl_server_stop(s);
    kl_clock_fake_free(o.clock);
    no_values_left();
    return 0;
}
