/* proto_text.c - the types whose JSON is not what their messages hold: times, quantities, durations,
 * bytes, JSON inside.
 *
 * Each is a message of one to three fields, read here by hand; their texts are strings like any other,
 * compared with the guide's first. A Quantity is on the wire as the canonical text that JSON has, too. */
#include "wire/proto_impl.h"

#include "base/mem.h"

bool kl__proto_fail(kl__proto *d, const char *at, const char *what)
{
    if (!d->what) {
        d->what = what;
        d->at = at;
    }
    return false;
}

bool kl__proto_string(kl__proto *d, const char *s, size_t n, kl__h like, kl__h *out)
{
    d->made_new = false;
    if (kl__is(like, KL_STRING) && kl__is_bytes_of(like, s, n)) {
        *out = like;
        return true;
    }
    if (!kl_utf8_valid(s, n))
        return kl__proto_fail(d, s, "a string that is not UTF-8");
    *out = kl__made(kl__recent_string(&d->recent, s, n, &d->made_new), like);
    return true;
}

bool kl__proto_ascii(kl__proto *d, const char *s, kl__h like, kl__h *out)
{
    return kl__proto_string(d, s, strlen(s), like, out);
}

/* The fields 1, 2 and 3 of a small message, varints and bytes. */
typedef struct small {
    uint64_t num[4];
    const char *s[4];
    size_t n[4];
} small;

static bool read_small(kl__proto *d, const char *p, size_t n, small *m)
{
    const char *end = p + n, *at = p;
    kl__field f;
    *m = (small){0};
    while (p < end) {
        p = kl__field_next(p, end, &f);
        if (!p)
            return kl__proto_fail(d, at, "a malformed field");
        at = p;
        if (f.number > 3)
            d->outdated = true;
        else if (f.wire == KL__WIRE_VARINT)
            m->num[f.number] = f.num;
        else if (f.wire == KL__WIRE_BYTES) {
            m->s[f.number] = f.s;
            m->n[f.number] = f.n;
        }
    }
    return true;
}

/* Years 1 to 9999, as JSON can say them. */
#define SECOND_MAX 253402300799
static bool time_value(
    kl__proto *d, kl__proto_what what, const char *s, const small *m, kl__h like, kl__h *out)
{
    int64_t second = (int64_t)m->num[1];
    char text[KL_TIME_MAX];
    if (second < KL_TIME_ZERO_SEC || second > SECOND_MAX || m->num[2] > 999999999)
        return kl__proto_fail(d, s, "a time out of range");
    if (what == KL__PROTO_MICROTIME)
        return kl__proto_ascii(d, kl_time_format_micro(second, (int32_t)m->num[2], text), like, out);
    if (second != d->second || !*d->second_text) {
        kl_time_format(second, d->second_text);
        d->second = second;
    }
    return kl__proto_ascii(d, d->second_text, like, out);
}

static bool base64(kl__proto *d, const char *s, size_t n, kl__h like, kl__h *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    kl_buf_clear(&d->scratch);
    for (size_t i = 0; i < n; i += 3) {
        uint32_t three = (uint32_t)(unsigned char)s[i] << 16;
        three |= i + 1 < n ? (uint32_t)(unsigned char)s[i + 1] << 8 : 0;
        three |= i + 2 < n ? (unsigned char)s[i + 2] : 0;
        char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
            i + 1 < n ? digits[three >> 6 & 63] : '=', i + 2 < n ? digits[three & 63] : '='};
        if (kl_buf_add(&d->scratch, four, 4))
            return kl__proto_fail(d, s, "bytes that are too many");
    }
    return kl__proto_string(d, kl_buf_str(&d->scratch), d->scratch.len, like, out);
}

static bool json(kl__proto *d, const char *s, size_t n, kl__h like, const kl__cut *cut, kl__h *out)
{
    const kl_value *v;
    kl_err err = KL_ERR_INIT;
    if (!n) {
        *out = KL__H_NULL;
        return true;
    }
    d->json.guide = KL__VALUE(like);
    d->json.cut = cut;
    d->json.alone = d->alone;
    d->json.made_new = false;
    kl_status st = kl__decode(&d->json, s, n, NULL, &v, &err);
    d->json.guide = NULL;
    if (st) {
        kl__proto_fail(d, s, "invalid JSON");
        kl_free(d->story);
        d->story = kl_strdup(kl_err_message(&err));
    } else {
        d->made_new = d->json.made_new;
        *out = kl__made(kl__handle(v), like);
    }
    kl_err_fini(&err);
    return !st;
}

static bool strings(kl__proto *d, const char *s, size_t n, kl__h like, kl__h *out)
{
    const char *p = s, *end = s + n;
    size_t base = d->values.len, i = 0;
    bool any_new = false;
    kl__field f;
    for (; p < end; i++) {
        const char *at = p;
        kl__h h, item = kl__is(like, KL_ARRAY) && i < kl__at(like)->len ? kl__at(like)->v[i] : 0;
        p = kl__field_next(p, end, &f);
        if (!p || f.number != 1 || f.wire != KL__WIRE_BYTES)
            return kl__proto_fail(d, at, "a malformed list");
        if (!kl__proto_string(d, f.s, f.n, item, &h))
            return false;
        any_new |= d->made_new;
        kl__entries_push(&d->values, kl__entry_of(h, item, d->made_new));
    }
    d->made_new = any_new && d->alone;
    const kl__entry *e = d->values.v ? d->values.v + base : NULL;
    *out = d->made_new ? kl__make_alone(KL_ARRAY, i, e, i) : kl__made(kl__intern_list(KL_ARRAY, e, i), like);
    d->values.len = base;
    return true;
}

bool kl__proto_text(
    kl__proto *d, kl__proto_what what, const char *s, size_t n, kl__h like, const kl__cut *cut, kl__h *out)
{
    char text[KL_DURATION_MAX];
    small m;
    if (what == KL__PROTO_BYTES)
        return base64(d, s, n, like, out);
    if (what == KL__PROTO_STRINGS)
        return strings(d, s, n, like, out);
    if (!read_small(d, s, n, &m))
        return false;
    switch (what) {
    case KL__PROTO_TIME:
    case KL__PROTO_MICROTIME:
        if (n)
            return time_value(d, what, s, &m, like, out);
        *out = KL__H_NULL;
        return true;
    case KL__PROTO_DURATION:
        return kl__proto_ascii(d, kl_duration_format((kl_time)m.num[1], text), like, out);
    case KL__PROTO_QUANTITY:
        return m.n[1] ? kl__proto_string(d, m.s[1], m.n[1], like, out) : kl__proto_ascii(d, "0", like, out);
    case KL__PROTO_RAW: return json(d, m.s[1], m.n[1], like, cut, out);
    default: /* KL__PROTO_INTORSTR */
        if (m.num[1])
            return kl__proto_string(d, m.s[3], m.n[3], like, out);
        *out = kl__made(kl__intern_int((int64_t)m.num[2]), like);
        return true;
    }
}
