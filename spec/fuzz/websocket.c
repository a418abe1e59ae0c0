/* websocket.c - any answer of a server to a WebSocket handshake, and any frames after it, cut anywhere. The
 * first byte chooses: a handshake, or frames with messages whose error channel becomes a verdict. Nothing
 * may crash, use unbounded memory or report success without proof. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "session/channel.h"
#include "http/upgrade.h"
#include "http/websocket.h"

#define IN_MAX ((size_t)4 << 20)

static void fuzz_upgrade(size_t step, const char *data, size_t size)
{
    static const char *const protocols[] = {KL__CHANNEL_V5, KL__CHANNEL_V4, NULL};
    kl__upgrade u;
    kl_err err = KL_ERR_INIT;
    kl_status st = KL_EAGAIN;
    kl__upgrade_init(&u, (const unsigned char *)"the sample nonce", protocols);
    for (size_t at = 0, used; at < size && st == KL_EAGAIN; at += step) {
        size_t some = size - at < step ? size - at : step;
        st = kl__upgrade_feed(&u, data + at, some, &used, &err);
        CLAIM(used <= some);
    }
    if (st == KL_EAGAIN)
        st = kl__upgrade_end(&u, &err);
    CLAIM(st != KL_EAGAIN);
    CLAIM(st || u.protocol == protocols[0] || u.protocol == protocols[1]);
    CLAIM(!st || st == KL_EREJECTED || kl_err_message(&err)[0]);
    CLAIM(u.body.len <= (size_t)64 << 10);
    kl_err_fini(&err);
    kl__upgrade_fini(&u);
}

static kl_status on_message(void *arg, const char *data, size_t n, kl_err *err)
{
    kl_buf *all = arg;
    CLAIM(n <= KL_WEBSOCKET_MESSAGE_MAX);
    if (n && (unsigned char)*data == KL__CHANNEL_ERROR)
        return kl_buf_add(all, data + 1, n - 1) ? kl_fail(err, KL_ETOOBIG, "too much") : KL_OK;
    return KL_OK;
}

static void fuzz_frames(size_t step, const char *data, size_t size)
{
    kl_buf all;
    kl_err err = KL_ERR_INIT;
    kl_status st = KL_OK;
    kl_time now = 0, next;
    kl_buf_init(&all, IN_MAX);
    kl_websocket *w = kl_websocket_new(on_message, &all, now);
    for (size_t at = 0; at < size && !st; at += step) {
        now += KL_SECONDS(1);
        st = kl_websocket_feed(w, data + at, size - at < step ? size - at : step, now, &err);
        if (!st)
            st = kl_websocket_tick(w, now, &next, &err);
        CLAIM(kl_websocket_out(w)->len <= (size_t)4 << 20);
        kl_websocket_wrote(w, kl_websocket_out(w)->len / 2, now);
    }
    CLAIM(st != KL_EAGAIN);
    CLAIM(st != KL_ECLOSED || kl_websocket_code(w));
    kl_err_fini(&err);
    kl__request q = {.method = "GET", .what = (char *)"exec a/b"};
    int code = 0;
    st = kl__channel_exit(&q, kl_buf_str(&all), all.len, &code, &err);
    CLAIM(st || (code >= -256 && code <= 4096));
    CLAIM(!st || kl_err_message(&err)[0]);
    kl_err_fini(&err);
    kl_websocket_free(w);
    kl_buf_fini(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t step = (size_t)(data[0] >> 1) + 1;
    char *text = kl_alloc(size - 1); /* its own, so that a step too far is seen */
    memcpy(text, data + 1, size - 1);
    if (data[0] & 1)
        fuzz_upgrade(step, text, size - 1);
    else
        fuzz_frames(step, text, size - 1);
    kl_free(text);
    return 0;
}
