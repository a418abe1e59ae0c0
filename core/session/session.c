/* session.c - a session as its users see it: two bounded queues and a verdict, under one lock. What has to
 * happen on the connection is left in flags for the streams thread, which gets a nudge (one at a time is
 * enough). */
#include "session/session_impl.h"

#include <stdio.h>
#include <string.h>
#include "base/mem.h"
#include "http/url.h"

/* --- queues ------------------------------------------------------------------------------- */

typedef struct piece_head {
    uint32_t len;
    uint32_t channel;
} piece_head;

void kl__pieces_add(kl__pieces *p, int channel, const char *data, size_t n)
{
    piece_head h = {(uint32_t)n, (uint32_t)channel};
    if (!n)
        return;
    if (p->at && p->at >= p->b.len / 2) {
        kl_buf_consume(&p->b, p->at);
        p->at = 0;
    }
    kl_buf_add(&p->b, &h, sizeof h);
    kl_buf_add(&p->b, data, n);
}

size_t kl__pieces_len(const kl__pieces *p) { return p->b.len - p->at; }

size_t kl__pieces_take(kl__pieces *p, int *channel, char *to, size_t cap)
{
    piece_head h;
    if (p->at == p->b.len || !cap)
        return 0;
    memcpy(&h, p->b.data + p->at, sizeof h);
    *channel = (int)h.channel;
    size_t n = h.len < cap ? h.len : cap;
    memcpy(to, p->b.data + p->at + sizeof h, n);
    p->at += n;
    if (n == h.len)
        p->at += sizeof h;
    else { /* the rest gets a new head, in the place of bytes that were taken */
        h.len -= (uint32_t)n;
        memcpy(p->b.data + p->at, &h, sizeof h);
    }
    if (p->at == p->b.len) {
        kl_buf_clear(&p->b);
        p->at = 0;
    }
    return n;
}

/* --- making one --------------------------------------------------------------------------- */

#define PARAMS_MAX 256 /* words of a command included */

typedef struct params {
    kl_url_param v[PARAMS_MAX];
    size_t n;
    char numbers[4][24];
    int used;
} params;

static void add(params *p, const char *key, const char *value)
{
    if (value && p->n < PARAMS_MAX)
        p->v[p->n++] = (kl_url_param){key, value};
}

static void add_number(params *p, const char *key, int64_t value)
{
    if (value < 0)
        return;
    char *text = p->numbers[p->used++];
    snprintf(text, sizeof p->numbers[0], "%lld", (long long)value);
    add(p, key, text);
}

/* subresources */
static const char *const kinds[] = {"log", "exec", "attach", "portforward"};
/* for messages */
static const char *const words[] = {"logs", "exec", "attach", "port_forward"};

static void add_params(const kl_session_request *r, params *p)
{
    add(p, "container", r->container);
    switch (r->kind) {
    case KL_SESSION_LOGS:
        add(p, "follow", r->follow ? "true" : NULL);
        add(p, "previous", r->previous ? "true" : NULL);
        add(p, "timestamps", r->timestamps ? "true" : NULL);
        add(p, "sinceTime", r->since_time);
        add_number(p, "sinceSeconds", r->since_seconds);
        add_number(p, "tailLines", r->tail);
        add_number(p, "limitBytes", r->limit_bytes);
        break;
    case KL_SESSION_PORT: add_number(p, "ports", r->port); break;
    default:
        add(p, "stdin", r->input ? "true" : NULL);
        add(p, "stdout", "true");
        add(p, "stderr", r->tty ? NULL : "true");
        add(p, "tty", r->tty ? "true" : NULL);
        for (const char *const *w = r->command; r->kind == KL_SESSION_EXEC && *w; w++)
            add(p, "command", *w);
    }
}

static kl_status check(const kl_session_request *r, kl_err *err)
{
    const char *what = words[r->kind];
    size_t n = 0;
    while (r->kind == KL_SESSION_EXEC && r->command && r->command[n])
        n++;
    if (!r->ns || !*r->ns || !r->pod || !*r->pod)
        return kl_fail(err, KL_EINVAL, "%s: name the pod, with its namespace", what);
    if (r->kind == KL_SESSION_EXEC && !n)
        return kl_fail(err, KL_EINVAL, "exec %s/%s: name the command, such as {\"sh\", \"-c\", \"date\"}",
            r->ns, r->pod);
    if (n > PARAMS_MAX - 8)
        return kl_fail(err, KL_EINVAL,
            "exec %s/%s: a command of %zu words is too long (at most %d): pass it to a shell as one word",
            r->ns, r->pod, n, PARAMS_MAX - 8);
    if (r->kind == KL_SESSION_PORT && (r->port < 1 || r->port > 65535))
        return kl_fail(
            err, KL_EINVAL, "port_forward %s/%s: a port is 1 to 65535, got %d", r->ns, r->pod, r->port);
    if (r->protocol && strcmp(r->protocol, KL__CHANNEL_V5) && strcmp(r->protocol, KL__CHANNEL_V4))
        return kl_fail(err, KL_EINVAL,
            "%s %s/%s: the protocol is \"" KL__CHANNEL_V5 "\" or \"" KL__CHANNEL_V4 "\", got \"%s\"", what,
            r->ns, r->pod, r->protocol);
    if (r->kind == KL_SESSION_LOGS && r->since_time && r->since_seconds >= 0)
        return kl_fail(err, KL_EINVAL, "logs %s/%s: since and since_time exclude each other", r->ns, r->pod);
    return KL_OK;
}

static kl_status make_request(const char *server, const kl_session_request *r, kl__request *q, kl_err *err)
{
    const char *sub[] = {kinds[r->kind], NULL};
    params p = {0};
    kl_buf url = KL_BUF_INIT;
    add_params(r, &p);
    kl_url_request where = {.base = server,
        .group = "",
        .version = "v1",
        .resource = "pods",
        .ns = r->ns,
        .name = r->pod,
        .subresource = sub,
        .params = p.v,
        .nparams = p.n};
    *q = (kl__request){.method = "GET", .accept = "application/json, */*"};
    q->what = r->kind == KL_SESSION_PORT ? kl_sprintf("port_forward %s/%s %d", r->ns, r->pod, r->port)
                                         : kl_sprintf("%s %s/%s%s%s", words[r->kind], r->ns, r->pod,
                                             r->container ? " " : "", r->container ? r->container : "");
    q->grant = kl_sprintf("verb%s on resource \"pods/%s\" in API group \"\" in namespace \"%s\" (a Role)",
        r->kind == KL_SESSION_LOGS ? " \"get\"" : "s \"get\" and \"create\"", kinds[r->kind], r->ns);
    kl_status st = kl_url_build(&where, &url, err);
    if (st)
        kl_err_prefix(err, "%s", q->what);
    q->url = kl_buf_take(&url);
    return st;
}

void kl_session_request_init(kl_session_request *r, kl_session_kind kind)
{
    *r = (kl_session_request){.kind = kind, .since_seconds = -1, .tail = -1, .limit_bytes = -1};
}

static void offer(kl_session *s, const kl_session_request *r)
{
    if (r->kind == KL_SESSION_PORT)
        s->protocols[0] = KL__CHANNEL_V4;
    else if (r->protocol)
        s->protocols[0] = strcmp(r->protocol, KL__CHANNEL_V4) ? KL__CHANNEL_V5 : KL__CHANNEL_V4;
    else {
        s->protocols[0] = KL__CHANNEL_V5;
        s->protocols[1] = KL__CHANNEL_V4;
    }
}

kl_status kl_session_start(kl_client *c, const kl_session_request *r, kl_session **out, kl_err *err)
{
    kl__request q = {0};
    kl_http *h = NULL;
    kl_status st = check(r, err);
    if (!st)
        st = make_request(c->config.server, r, &q, err);
    if (!st)
        st = kl__client_streams(c, &h, err);
    if (st) {
        kl__request_fini(&q);
        return st;
    }
    kl_session *s = kl_new(kl_session);
    s->c = c;
    s->http = h;
    s->hungry = true;
    s->q = q;
    s->kind = r->kind;
    s->input = r->kind == KL_SESSION_PORT || r->input;
    s->tty = r->tty;
    s->port = r->port;
    s->on_change = r->on_change;
    s->arg = r->arg;
    offer(s, r);
    kl_list_init(&s->link);
    kl_buf_init(&s->body, (size_t)1 << 20);
    kl_mutex_init(&s->mu);
    kl_cond_init(&s->changed);
    s->refs = 2; /* the user's, and that of kl__session_begin */
    kl_http_post(h, kl__session_begin, s);
    *out = s;
    return KL_OK;
}

void kl__session_ref(kl_session *s)
{
    kl_lock(&s->mu);
    s->refs++;
    kl_unlock(&s->mu);
}

void kl__session_unref(kl_session *s)
{
    kl_lock(&s->mu);
    bool last = !--s->refs;
    kl_unlock(&s->mu);
    if (!last)
        return;
    kl__request_fini(&s->q);
    kl__credential_unref(s->attempt.credential);
    kl_err_fini(&s->story);
    kl_err_fini(&s->err);
    kl_buf_fini(&s->body);
    kl_buf_fini(&s->talk.raw);
    kl_buf_fini(&s->in.b);
    kl_buf_fini(&s->out.b);
    kl_cond_fini(&s->changed);
    kl_mutex_fini(&s->mu);
    kl_free(s);
}

/* --- its users ---------------------------------------------------------------------------- */

/* Whether the streams thread must be told. If so, post after the lock is released. */
static bool nudge_locked(kl_session *s) KL_REQUIRES(s->mu);
static bool nudge_locked(kl_session *s)
{
    if (s->posted || s->ended)
        return false;
    s->posted = true;
    s->refs++;
    return true;
}

static void nudge(kl_session *s, bool needed)
{
    if (needed)
        kl_http_post(s->http, kl__session_nudged, s);
}

void kl_session_free(kl_session *s)
{
    if (!s)
        return;
    kl_lock(&s->mu);
    s->let_go = true;
    bool tell = nudge_locked(s);
    kl_unlock(&s->mu);
    nudge(s, tell);
    kl__session_unref(s);
}

kl_status kl_session_read(
    kl_session *s, kl_time until, int *channel, char *to, size_t cap, size_t *n, kl_err *err)
{
    kl_status st = KL_OK;
    bool tell = false;
    kl_lock(&s->mu);
    while (!(*n = kl__pieces_take(&s->in, channel, to, cap)) && !s->ended)
        if (!until || !kl_cond_wait_until(&s->changed, &s->mu, until)) {
            st = KL_EAGAIN;
            break;
        }
    if (*n) {
        st = KL_OK;
        if (!s->hungry && kl__pieces_len(&s->in) <= KL__SESSION_LOW) {
            s->hungry = true;
            tell = nudge_locked(s);
        }
    } else if (s->ended) {
        st = s->st;
        if (st && err)
            kl_err_copy(err, &s->err);
    }
    kl_unlock(&s->mu);
    nudge(s, tell);
    return st;
}

void kl_session_write(kl_session *s, kl_time until, const char *data, size_t n, size_t *taken)
{
    bool tell = false;
    kl_lock(&s->mu);
    while (!s->ended && kl__pieces_len(&s->out) >= KL__SESSION_HIGH && until
        && kl_cond_wait_until(&s->changed, &s->mu, until))
        continue;
    size_t used = kl__pieces_len(&s->out), room = used < KL__SESSION_HIGH ? KL__SESSION_HIGH - used : 0;
    *taken = s->ended || n < room ? n : room;
    if (*taken && !s->ended && !s->close_input) {
        kl__pieces_add(&s->out, KL_STDIN, data, *taken);
        tell = nudge_locked(s);
    }
    kl_unlock(&s->mu);
    nudge(s, tell);
}

void kl_session_close_input(kl_session *s)
{
    kl_lock(&s->mu);
    s->close_input = true;
    bool tell = nudge_locked(s);
    kl_unlock(&s->mu);
    nudge(s, tell);
}

void kl_session_resize(kl_session *s, int columns, int rows)
{
    kl_lock(&s->mu);
    s->columns = columns > 0 && columns < 65536 ? columns : 1;
    s->rows = rows > 0 && rows < 65536 ? rows : 1;
    bool tell = nudge_locked(s);
    kl_unlock(&s->mu);
    nudge(s, tell);
}

bool kl_session_opened(kl_session *s, kl_time until)
{
    kl_lock(&s->mu);
    while (!s->open && !s->ended && until && kl_cond_wait_until(&s->changed, &s->mu, until))
        continue;
    bool open = s->open;
    kl_unlock(&s->mu);
    return open;
}

int kl_session_exit(kl_session *s)
{
    kl_lock(&s->mu);
    int code = s->exit;
    kl_unlock(&s->mu);
    return code;
}

const char *kl_session_protocol(kl_session *s)
{
    kl_lock(&s->mu);
    const char *protocol = s->protocol;
    kl_unlock(&s->mu);
    return protocol;
}
