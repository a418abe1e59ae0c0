/* proto.c - any bytes as an object, a list and a watch in protobuf: a value or a story, whatever guides
 * the decoder and wherever the network cuts. Input is bytes, or after a first 'b' their base64, so that
 * seeds are text. */
#include "fuzz/fuzz.h"
#include "wire/proto_impl.h"
#include "support/proto.h"

typedef struct heard {
    kl_buf text;
    kl_status st;
    kl_err err;
    bool outdated;
    size_t n;
} heard;

static kl_status on_item(void *arg, const kl_value *v, kl_err *err)
{
    heard *h = arg;
    (void)err;
    (void)!kl_value_encode(v, &h->text);
    kl_buf_putc(&h->text, '\n');
    kl_value_unref(v);
    h->n++;
    return KL_OK;
}

static kl_status on_event(void *arg, const char *type, const kl_value *v, kl_err *err)
{
    kl_buf_printf(&((heard *)arg)->text, "%s ", type);
    return on_item(arg, v, err);
}

/* Pieces of `step` bytes, each in an allocation of its own. */
static heard hear(const char *p, size_t n, bool list, size_t step, kl_projection *keep)
{
    heard h = {0};
    const kl_value *envelope = NULL;
    kl_stream_handler sh = {
        .item = on_item, .event = on_event, .arg = &h, .protobuf = true, .max_object = 1 << 20, .keep = keep};
    kl_stream *s = list ? kl_stream_list_new(&sh) : kl_stream_watch_new(&sh);
    for (size_t at = 0; at < n && !h.st; at += step) {
        size_t len = n - at < step ? n - at : step;
        char *piece = kl_alloc(len);
        memcpy(piece, p + at, len);
        h.st = kl_stream_feed(s, piece, len, &h.err);
        kl_free(piece);
    }
    if (!h.st)
        h.st = kl_stream_finish(s, &envelope, &h.err);
    if (!h.st && list)
        (void)!kl_value_encode(envelope, &h.text);
    CLAIM(!h.st || *kl_err_message(&h.err));
    kl_value_unref(envelope);
    h.outdated = kl_stream_outdated(s);
    kl_stream_free(s);
    return h;
}

static void heard_fini(heard *h)
{
    kl_buf_fini(&h->text);
    kl_err_fini(&h->err);
}

static void as_stream(const char *p, size_t n, bool list)
{
    static const char *const path = "spec.containers.image";
    kl_projection *keep;
    heard whole = hear(p, n, list, n + 1, NULL), bytes = hear(p, n, list, 1, NULL),
          some = hear(p, n, list, 13, NULL);
    CLAIM(whole.st == bytes.st && whole.st == some.st);
    CLAIM(!strcmp(kl_buf_str(&whole.text), kl_buf_str(&bytes.text))
        && !strcmp(kl_buf_str(&whole.text), kl_buf_str(&some.text)));
    CLAIM(!strcmp(kl_err_message(&whole.err), kl_err_message(&bytes.err)));
    if (kl_projection_new(&path, 1, &keep, NULL))
        abort();
    heard cut = hear(p, n, list, n + 1, keep);
    /* what is left out may hide mistakes and never adds any */
    CLAIM(whole.st || (!cut.st && cut.n == whole.n));
    kl_projection_unref(keep);
    heard_fini(&whole);
    heard_fini(&bytes);
    heard_fini(&some);
    heard_fini(&cut);
}

/* What was read can be written, unless its bounds are narrower than bytes'; and then it reads. */
static void written_again(const kl_value *v)
{
    const char *version = kl_value_str_at(v, "apiVersion", NULL), *kind = kl_value_str_at(v, "kind", NULL);
    const kl_value *again = NULL;
    kl_buf out = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    if (!version || !kind || kl_proto_write(version, kind, v, &out, &err))
        CLAIM(!version || !kind || *kl_err_message(&err));
    else
        CLAIM(!kl_proto_decode(kl_buf_str(&out), out.len, &again, NULL, NULL));
    kl_value_unref(again);
    kl_err_fini(&err);
    kl_buf_fini(&out);
}

static void as_object(const char *p, size_t n)
{
    const kl_value *v = NULL, *again = NULL;
    kl_err err = KL_ERR_INIT;
    bool outdated;
    if (kl_proto_decode(p, n, &v, &outdated, &err)) {
        CLAIM(*kl_err_message(&err));
    } else {
        char *text = kl_value_to_json(v);
        kl__proto d = {.alone = true};
        kl__unknown u;
        CLAIM(kl_utf8_valid(text, strlen(text)));
        /* no key twice, nothing that JSON cannot say */
        CLAIM(!kl_value_decode(text, strlen(text), &again, NULL));
        CLAIM(kl_value_equal(v, again));
        kl_value_unref(again);
        CLAIM(!kl__unknown_read(p, n, &u, NULL) && !kl__unknown_decode(&d, &u, v, &again, NULL));
        CLAIM(again == v || kl_value_equal(v, again));
        kl_value_unref(again);
        written_again(v);
        kl__proto_fini(&d);
        kl_free(text);
    }
    kl_value_unref(v);
    kl_err_fini(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t n = size, nodes, bytes;
    char *p;
    if (size && data[0] == 'b') {
        p = base64_bytes((const char *)data + 1, size - 1, &n);
    } else {
        p = kl_alloc(size + 1);
        memcpy(p, size ? (const char *)data : "", size);
    }
    char *exact = kl_alloc(n ? n : 1);
    memcpy(exact, p, n);
    as_object(exact, n);
    as_stream(exact, n, true);
    as_stream(exact, n, false);
    kl_free(exact);
    kl_free(p);
    kl_value_memory(&nodes, &bytes);
    CLAIM(!nodes);
    return 0;
}
