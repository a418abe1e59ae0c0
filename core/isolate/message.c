/* message.c - a message is built in a buffer and sent at once; incoming bytes are gathered in another one
 * until a message is complete. */
#include "isolate/message.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/mem.h"

#define HEAD 9 /* length (4), what (1), number of values (4) */
#define CHUNK ((size_t)64 << 10)
#define KEPT_MAX ((size_t)1 << 20) /* the buffer is freed after a larger message */

void kl_wire_init(kl_wire *w, int fd, size_t max)
{
    *w = (kl_wire){.fd = fd, .max = max};
    kl_buf_init(&w->in, max + HEAD + CHUNK);
}

void kl_wire_fini(kl_wire *w) { kl_buf_fini(&w->in); }

static void put_number(char *at, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        at[i] = (char)(n >> 8 * i & 0xff);
}

static uint32_t number_at(const char *at)
{
    uint32_t n = 0;
    for (int i = 0; i < 4; i++)
        n |= (uint32_t)(unsigned char)at[i] << 8 * i;
    return n;
}

/* --- out ---------------------------------------------------------------------------------- */

static kl_status receive(kl_wire *w, kl_err *err);

static kl_status closed(kl_err *err) { return kl_fail(err, KL_ECLOSED, "the other process is gone"); }

/* The other side may not take our message because it is sending itself: also receives while waiting. */
static kl_status make_room(kl_wire *w, kl_err *err)
{
    bool full = w->in.len >= w->max;
    kl_status st = w->wait(w->arg, full ? POLLOUT : POLLIN | POLLOUT, err);
    struct pollfd p = {.fd = w->fd, .events = POLLIN};
    if (!st && !full && poll(&p, 1, 0) == 1 && p.revents & POLLIN)
        st = receive(w, err);
    return st;
}

static kl_status send_all(kl_wire *w, const char *data, size_t n, kl_err *err)
{
    kl_status st = KL_OK;
    while (n && !st) {
        ssize_t sent = send(w->fd, data, n, MSG_NOSIGNAL);
        if (sent > 0) {
            data += sent;
            n -= (size_t)sent;
        } else if (sent < 0 && errno == EAGAIN && w->wait) {
            st = make_room(w, err);
        } else if (sent < 0 && errno != EINTR) {
            st = closed(err);
        }
    }
    return st;
}

static void put_value(kl_buf *b, const kl_value *v)
{
    size_t at = b->len;
    char length[4] = {0};
    kl_buf_add(b, length, sizeof length);
    if (v)
        (void)!kl_value_encode_exact(v, b);
    if (!b->failed)
        put_number(b->data + at, (uint32_t)(b->len - at - sizeof length));
}

kl_status kl_wire_send(kl_wire *w, size_t most, int what, const kl_value *const *v, size_t n, kl_err *err)
{
    kl_buf b;
    char head[HEAD] = {0};
    kl_buf_init(&b, most);
    head[4] = (char)what;
    put_number(head + 5, (uint32_t)n);
    kl_buf_add(&b, head, sizeof head);
    for (size_t i = 0; i < n && !b.failed; i++)
        put_value(&b, v[i]);
    kl_status st = kl_buf_status(&b);
    if (st) {
        (void)!kl_fail(err, st, "as text it has more than %zu KiB", most >> 10);
    } else {
        put_number(b.data, (uint32_t)(b.len - 4));
        st = send_all(w, b.data, b.len, err);
    }
    kl_buf_fini(&b);
    return st;
}

/* --- in ----------------------------------------------------------------------------------- */

/* Appends what has arrived; waits while there is nothing. */
static kl_status receive(kl_wire *w, kl_err *err)
{
    for (;;) {
        char *room = kl_buf_reserve(&w->in, CHUNK);
        if (!room)
            return kl_fail(err, KL_ETOOBIG, "a message has more than %zu KiB", w->max >> 10);
        ssize_t n = recv(w->fd, room, CHUNK, 0);
        if (n > 0) {
            w->in.len += (size_t)n;
            return KL_OK;
        }
        if (!n || (errno != EINTR && (errno != EAGAIN || !w->wait)))
            return closed(err);
        kl_status st = errno == EAGAIN ? w->wait(w->arg, POLLIN, err) : KL_OK;
        if (st)
            return st;
    }
}

static kl_status gather(kl_wire *w, size_t n, kl_err *err)
{
    kl_status st = KL_OK;
    while (!st && w->in.len < n)
        st = receive(w, err);
    return st;
}

static kl_status broken(kl_err *err)
{
    return kl_fail(err, KL_ESYNTAX, "a message whose lengths do not add up");
}

/* Whether a JSON text has at most `max` values in it; of another text it may say anything. */
static bool has_few_parts(const char *text, size_t n, size_t max)
{
    bool quoted = false;
    size_t parts = 1;
    if (n / 2 < max)
        return true;
    for (size_t i = 0; i < n && parts <= max; i++) {
        bool opens = (text[i] == '[' || text[i] == '{') && i + 1 < n && text[i + 1] != ']'
            && text[i + 1] != '}';
        parts += !quoted && (text[i] == ',' || opens);
        quoted ^= text[i] == '"';
        i += quoted && text[i] == '\\';
    }
    return parts <= max;
}

/* Reads the values of a complete message; `at` is behind its head. */
static kl_status read_values(const kl_wire *w, kl_message *m, const char *at, size_t left, kl_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        size_t n = left < 4 ? left : number_at(at);
        if (left < 4 || n > left - 4)
            return broken(err);
        if (w->max_parts && !has_few_parts(at + 4, n, w->max_parts))
            return kl_fail(err, KL_ETOOBIG, "a value has more than %zu parts", w->max_parts);
        kl_status st = n ? kl_value_decode(at + 4, n, &m->v[i], err) : KL_OK;
        if (st)
            return st;
        at += 4 + n;
        left -= 4 + n;
    }
    return left ? broken(err) : KL_OK;
}

kl_status kl_wire_take(kl_wire *w, kl_message *out, kl_err *err)
{
    *out = (kl_message){0};
    kl_status st = gather(w, 4, err);
    size_t n = st ? 0 : number_at(w->in.data);
    if (!st && n < HEAD - 4)
        st = broken(err);
    if (!st && n > w->max)
        st = kl_fail(err, KL_ETOOBIG, "a message has more than %zu KiB", w->max >> 10);
    if (!st)
        st = gather(w, n + 4, err);
    if (!st && number_at(w->in.data + 5) > (n - (HEAD - 4)) / 4) /* each value has a length of 4 bytes */
        st = broken(err);
    if (!st && w->max_values && number_at(w->in.data + 5) > w->max_values)
        st = kl_fail(err, KL_ETOOBIG, "a message has more than %zu values", w->max_values);
    if (!st) {
        out->what = (unsigned char)w->in.data[4];
        out->n = number_at(w->in.data + 5);
        out->v = kl_new_array(const kl_value *, out->n + 1);
        st = read_values(w, out, w->in.data + HEAD, n - (HEAD - 4), err);
        kl_buf_consume(&w->in, n + 4);
        if (!w->in.len && n > KEPT_MAX)
            kl_buf_fini(&w->in);
    }
    if (st)
        kl_message_fini(out);
    return st;
}

bool kl_wire_pending(const kl_wire *w) { return w->in.len; }

void kl_message_fini(kl_message *m)
{
    for (size_t i = 0; i < m->n && m->v; i++)
        kl_value_unref(m->v[i]);
    kl_free(m->v);
    *m = (kl_message){0};
}

const kl_value *kl_message_value(const kl_message *m, size_t i) { return i < m->n ? m->v[i] : NULL; }

const char *kl_message_text(const kl_message *m, size_t i) { return kl_value_str(kl_message_value(m, i)); }
