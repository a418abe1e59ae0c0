/* stream_fuzz.c - any bytes as a list and as a watch, whole and cut into pieces: the same objects, the same verdict. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct outcome { kl_buf text; kl_status status; size_t objects; } outcome;

static kl_status on_item(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    outcome *o = arg;
    o->objects++;
    kl_value_encode(v, &o->text);
    kl_value_unref(v);
    return KL_OK;
}

static kl_status on_event(void *arg, const char *type, const kl_value *v, kl_err *err)
{
    outcome *o = arg;
    kl_buf_puts(&o->text, type);
    return on_item(arg, v, err);
}

/* Pieces of `step` bytes; each from its own allocation, so that a read beyond it is caught. */
static outcome run(const uint8_t *data, size_t size, size_t step, int list, int drop)
{
    outcome o = {0};
    kl_err err = KL_ERR_INIT;
    const kl_value *envelope = NULL;
    kl_stream_handler h = { .item = on_item, .event = on_event, .arg = &o, .max_object = 300, .drop_managed_fields = drop };
    kl_stream *s = list ? kl_stream_list_new(&h) : kl_stream_watch_new(&h);
    for (size_t at = 0; at < size && !o.status; at += step) {
        size_t n = size - at < step ? size - at : step;
        char *piece = kl_alloc(n);
        memcpy(piece, data + at, n);
        o.status = kl_stream_feed(s, piece, n, &err);
        kl_free(piece);
    }
    if (!o.status)
        o.status = kl_stream_finish(s, &envelope, &err);
    if (envelope)
        kl_value_encode(envelope, &o.text);
    if (o.status && !err.message)
        abort();
    kl_value_unref(envelope);
    kl_err_fini(&err);
    kl_stream_free(s);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = { 1, 3, 17 };
    if (!size)
        return 0;
    for (int mode = 0; mode < 4; mode++) {
        outcome whole = run(data, size, size, mode & 1, mode & 2);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            outcome cut = run(data, size, steps[i], mode & 1, mode & 2);
            if (whole.status != cut.status || whole.objects != cut.objects || strcmp(kl_buf_str(&whole.text), kl_buf_str(&cut.text)))
                abort();
            kl_buf_fini(&cut.text);
        }
        kl_buf_fini(&whole.text);
    }
    return 0;
}
