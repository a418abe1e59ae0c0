/* value.c - the values of expressions. JSON is wrapped, not copied: a list or an object of the request is
 * converted only when it is read. */
#include <math.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "cel/cel_impl.h"
#include "model/quantity.h"
#include "model/time.h"
#include "value/number.h"

#define INDEXED_FROM 16

/* ---------------------------------------------------------------- small things */

kl__cval kl__cval_err(kl__cev *e, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    kl__cval v = kl__cval_str(e, text, strlen(text));
    v.kind = KL_C_ERROR;
    kl_free(text);
    return v;
}

kl__cval kl__cval_str(kl__cev *e, const char *s, size_t n)
{
    if (e->a->used + n > KL__CEL_MEMORY_MAX)
        e->over = true;
    if (e->over)
        n = 0;
    return (kl__cval){.kind = KL_C_STRING, .s = {kl__carena_text(e->a, s, n), n}};
}

kl__cval kl__cval_take(kl__cev *e, kl_buf *b)
{
    kl__cval v = kl__cval_str(e, kl_buf_str(b), b->len);
    kl_buf_fini(b);
    return v;
}

size_t kl__cel_runes(const char *s, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += ((unsigned char)s[i] & 0xc0) != 0x80;
    return count;
}

/* ---------------------------------------------------------------- out of JSON */

static kl__cval of_text(kl__cev *e, const kl_value *v, const kl__ctype *t)
{
    size_t n = 0;
    const char *s = kl_value_strn(v, &n);
    kl__ckind kind = t ? t->kind : KL_C_STRING;
    if (kind == KL_C_BYTES) {
        kl_buf b = KL_BUF_INIT;
        if (kl_base64_decode(s, n, &b, NULL)) {
            kl_buf_fini(&b);
            return kl__cval_err(e, "invalid base64 data: %s", s);
        }
        kl__cval bytes = kl__cval_take(e, &b);
        bytes.kind = KL_C_BYTES;
        return bytes;
    }
    if (kind == KL_C_TIME) {
        kl__cval time = {.kind = KL_C_TIME};
        char *whole = n == 10 ? kl_sprintf("%sT00:00:00Z", s) : NULL;
        kl_status st = kl_time_parse(whole ? whole : s, &time.t.sec, &time.t.ns, NULL);
        kl_free(whole);
        return st ? kl__cval_err(e, "invalid date-time: %s", s) : time;
    }
    if (kind == KL_C_DURATION) {
        kl__cval d = {.kind = KL_C_DURATION};
        return kl_duration_parse(s, &d.i, NULL) ? kl__cval_err(e, "invalid duration: %s", s) : d;
    }
    return (kl__cval){.kind = KL_C_STRING, .s = {s, n}};
}

kl__cval kl__cval_of_json(kl__cev *e, const kl_value *v, const kl__ctype *t)
{
    if (t && t->kind == KL_C_DYN)
        t = NULL;
    int64_t i;
    switch (kl_value_type(v)) {
    case KL_NULL: return KL__CNULL;
    case KL_BOOL: return KL__CBOOL(kl_value_bool(v, false));
    case KL_UINT: return KL__CDOUBLE(kl_value_double(v, 0));
    case KL_INT:
    case KL_DOUBLE:
        if ((t ? t->kind == KL_C_INT : kl_value_type(v) == KL_INT) && kl_value_int(v, &i))
            return KL__CINT(i);
        return KL__CDOUBLE(kl_value_double(v, 0));
    case KL_STRING: return of_text(e, v, t);
    case KL_ARRAY: {
        kl__clist *l = KL__CNEW(e->a, kl__clist);
        l->json = v;
        l->type = t && t->kind == KL_C_LIST ? t : NULL;
        return KL__CLIST(l);
    }
    case KL_OBJECT: break;
    }
    kl__cmap *m = KL__CNEW(e->a, kl__cmap);
    m->json = v;
    m->type = t && (t->kind == KL_C_MAP || t->kind == KL_C_OBJECT) ? t : NULL;
    return (kl__cval){.kind = m->type ? m->type->kind : KL_C_MAP, .map = m};
}

/* ---------------------------------------------------------------- lists */

size_t kl__clist_len(const kl__clist *l) { return l->json ? kl_value_len(l->json) : l->n; }

kl__cval kl__clist_at(kl__cev *e, const kl__clist *l, size_t i)
{
    return l->json ? kl__cval_of_json(e, kl_value_item(l->json, i), l->type ? l->type->p[0] : NULL) : l->v[i];
}

kl__clist *kl__clist_new(kl__cev *e, size_t cap)
{
    kl__clist *l = KL__CNEW(e->a, kl__clist);
    if (e->a->used + cap * sizeof(kl__cval) > KL__CEL_MEMORY_MAX) {
        e->over = true;
        cap = 0;
    }
    l->cap = cap;
    l->v = cap ? kl__carena_alloc(e->a, cap * sizeof(kl__cval)) : NULL;
    return l;
}

void kl__clist_add(kl__cev *e, kl__clist *l, kl__cval v)
{
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 8;
        if (e->over || e->a->used + cap * sizeof v > KL__CEL_MEMORY_MAX) {
            e->over = true;
            return;
        }
        kl__cval *more = kl__carena_alloc(e->a, cap * sizeof v);
        if (l->n)
            memcpy(more, l->v, l->n * sizeof v);
        l->v = more;
        l->cap = cap;
    }
    ((kl__cval *)l->v)[l->n++] = v;
}

/* ---------------------------------------------------------------- maps */

size_t kl__cmap_len(const kl__cmap *m) { return m->json ? kl_value_len(m->json) : m->n; }

static const kl__ctype *member_type(const kl__cmap *m, const char *key, size_t n)
{
    if (!m->type)
        return NULL;
    if (m->type->kind == KL_C_MAP)
        return m->type->p[1];
    for (size_t i = 0; i < m->type->nfields; i++)
        if (!strncmp(m->type->fields[i].key, key, n) && !m->type->fields[i].key[n])
            return m->type->fields[i].type;
    return NULL;
}

void kl__cmap_at(kl__cev *e, const kl__cmap *m, size_t i, kl__cval *key, kl__cval *value)
{
    if (!m->json) {
        *key = m->kv[2 * i];
        *value = m->kv[2 * i + 1];
        return;
    }
    const char *k;
    size_t n;
    const kl_value *v = kl_value_member(m->json, i, &k, &n);
    *key = (kl__cval){.kind = KL_C_STRING, .s = {k, n}};
    *value = kl__cval_of_json(e, v, member_type(m, k, n));
}

static bool whole(double d) { return d == floor(d) && fabs(d) < 9.2e18; }

/* Equal numbers have equal hashes. */
static uint32_t hash(kl__cval v)
{
    uint64_t h = 1469598103934665603u;
    if (v.kind == KL_C_STRING || v.kind == KL_C_BYTES)
        for (size_t i = 0; i < v.s.n; i++)
            h = (h ^ (unsigned char)v.s.p[i]) * 1099511628211u;
    else if (v.kind == KL_C_DOUBLE)
        h = (h ^ (whole(v.d) ? (uint64_t)(int64_t)v.d : 0)) * 1099511628211u;
    else
        h = (h ^ (v.kind == KL_C_BOOL ? v.b : v.u)) * 1099511628211u;
    return (uint32_t)(h ^ h >> 32);
}

static bool find(kl__cev *e, const kl__cmap *m, kl__cval key, size_t *at)
{
    if (!m->nindex) {
        for (*at = 0; *at < m->n; ++*at)
            if (kl__cval_equal(e, m->kv[2 * *at], key))
                return true;
        return false;
    }
    for (size_t i = hash(key) % m->nindex; m->index[i]; i = (i + 1) % m->nindex) {
        *at = m->index[i] - 1;
        if (kl__cval_equal(e, m->kv[2 * *at], key))
            return true;
    }
    return false;
}

static void put_index(kl__cmap *m, size_t pair)
{
    size_t i = hash(m->kv[2 * pair]) % m->nindex;
    while (m->index[i])
        i = (i + 1) % m->nindex;
    m->index[i] = (uint32_t)pair + 1;
}

bool kl__cmap_get(kl__cev *e, const kl__cmap *m, kl__cval key, kl__cval *out)
{
    size_t at;
    if (!m->json) {
        bool there = find(e, m, key, &at);
        if (there)
            *out = m->kv[2 * at + 1];
        return there;
    }
    if (key.kind != KL_C_STRING)
        return false;
    const char *k = key.s.p;
    size_t n = key.s.n;
    const kl__ctype *t = m->type && m->type->kind == KL_C_MAP ? m->type->p[1] : NULL;
    if (m->type && m->type->kind == KL_C_OBJECT) {
        const kl__cfield *f = kl__ctype_field(m->type, k, n);
        if (!f)
            return false;
        k = f->key;
        n = strlen(k);
        t = f->type;
    }
    const kl_value *v = kl_value_getn(m->json, k, n);
    if (v)
        *out = kl__cval_of_json(e, v, t);
    return v != NULL;
}

kl__cmap *kl__cmap_new(kl__cev *e, size_t cap)
{
    kl__cmap *m = KL__CNEW(e->a, kl__cmap);
    m->cap = cap < 1 << 20 ? cap : 1 << 20;
    m->kv = m->cap ? kl__carena_alloc(e->a, 2 * m->cap * sizeof *m->kv) : NULL;
    return m;
}

void kl__cmap_set(kl__cev *e, kl__cmap *m, kl__cval key, kl__cval value)
{
    size_t at;
    if (find(e, m, key, &at))
        m->kv[2 * at + 1] = value;
}

bool kl__cmap_add(kl__cev *e, kl__cmap *m, kl__cval key, kl__cval value)
{
    size_t at;
    if (find(e, m, key, &at))
        return false;
    if (m->n == m->cap) {
        size_t cap = m->cap ? 2 * m->cap : 8;
        if (e->over || e->a->used + 2 * cap * sizeof key > KL__CEL_MEMORY_MAX) {
            e->over = true;
            return true;
        }
        kl__cval *more = kl__carena_alloc(e->a, 2 * cap * sizeof *more);
        if (m->n)
            memcpy(more, m->kv, 2 * m->n * sizeof *more);
        m->kv = more;
        m->cap = cap;
    }
    m->kv[2 * m->n] = key;
    m->kv[2 * m->n + 1] = value;
    m->n++;
    if (m->n < INDEXED_FROM)
        return true;
    if (2 * m->n > m->nindex) {
        m->nindex = 4 * m->n;
        m->index = kl__carena_alloc(e->a, m->nindex * sizeof *m->index);
        for (size_t i = 0; i < m->n; i++)
            put_index(m, i);
    } else
        put_index(m, m->n - 1);
    return true;
}

/* ---------------------------------------------------------------- equal, less */

static int order(bool less, bool more) { return less ? -1 : more; }

/* Compares numbers of different kinds by value. */
static int numbers(kl__cval a, kl__cval b)
{
    if (a.kind == b.kind)
        return a.kind == KL_C_INT      ? order(a.i<b.i, a.i> b.i)
            : a.kind == KL_C_UINT      ? order(a.u<b.u, a.u> b.u)
            : isnan(a.d) || isnan(b.d) ? 3
                                       : order(a.d<b.d, a.d> b.d);
    if (b.kind == KL_C_DOUBLE || (a.kind == KL_C_UINT && b.kind == KL_C_INT)) {
        int c = numbers(b, a);
        return c == 3 ? 3 : -c;
    }
    if (a.kind == KL_C_INT) /* and a uint */
        return a.i < 0 ? -1 : order((uint64_t)a.i<b.u, (uint64_t)a.i> b.u);
    if (isnan(a.d))
        return 3;
    if (b.kind == KL_C_INT) {
        if (a.d > 9223372036854775808.0 || a.d < -9223372036854775808.0)
            return a.d < 0 ? -1 : 1;
        double x = (double)b.i;
        return order(a.d<x, a.d> x);
    }
    if (a.d < 0 || a.d > 18446744073709551616.0)
        return a.d < 0 ? -1 : 1;
    double x = (double)b.u;
    return order(a.d<x, a.d> x);
}

static bool numeric(kl__ckind k) { return k == KL_C_INT || k == KL_C_UINT || k == KL_C_DOUBLE; }

int kl__cval_compare(kl__cval a, kl__cval b)
{
    if (numeric(a.kind) && numeric(b.kind))
        return numbers(a, b);
    if (a.kind != b.kind)
        return 2;
    switch (a.kind) {
    case KL_C_BOOL: return order(!a.b && b.b, a.b && !b.b);
    case KL_C_DURATION: return order(a.i<b.i, a.i> b.i);
    case KL_C_TIME:
        return a.t.sec != b.t.sec ? order(a.t.sec < b.t.sec, true) : order(a.t.ns<b.t.ns, a.t.ns> b.t.ns);
    case KL_C_STRING:
    case KL_C_BYTES: {
        size_t n = a.s.n < b.s.n ? a.s.n : b.s.n;
        int c = n ? memcmp(a.s.p, b.s.p, n) : 0;
        return c ? order(c < 0, true) : order(a.s.n<b.s.n, a.s.n> b.s.n);
    }
    default: return 2;
    }
}

static bool has_item(kl__cev *e, const kl__clist *l, kl__cval v)
{
    for (size_t i = 0; i < kl__clist_len(l) && kl__cev_works(e); i++)
        if (kl__cval_equal(e, kl__clist_at(e, l, i), v))
            return true;
    return false;
}

static bool lists_equal(kl__cev *e, const kl__clist *a, const kl__clist *b)
{
    size_t n = kl__clist_len(a);
    if (n != kl__clist_len(b))
        return false;
    const kl__ctype *t = a->type ? a->type : b->type;
    bool any_order = t && (t->set || t->keys); /* sets and keyed lists compare in any order */
    for (size_t i = 0; i < n; i++) {
        if (!kl__cev_works(e))
            return false;
        kl__cval x = kl__clist_at(e, a, i);
        if (any_order ? !has_item(e, b, x) : !kl__cval_equal(e, x, kl__clist_at(e, b, i)))
            return false;
    }
    return true;
}

static bool maps_equal(kl__cev *e, const kl__cmap *a, const kl__cmap *b)
{
    size_t n = kl__cmap_len(a);
    if (n != kl__cmap_len(b))
        return false;
    for (size_t i = 0; i < n && kl__cev_works(e); i++) {
        kl__cval k, x, y;
        kl__cmap_at(e, a, i, &k, &x);
        if (a->type && a->type->kind == KL_C_OBJECT) { /* its keys are JSON's */
            const kl_value *v = b->json ? kl_value_getn(b->json, k.s.p, k.s.n) : NULL;
            if (!v)
                return false;
            y = kl__cval_of_json(e, v, member_type(b, k.s.p, k.s.n));
        } else if (!kl__cmap_get(e, b, k, &y))
            return false;
        if (!kl__cval_equal(e, x, y))
            return false;
    }
    return true;
}

bool kl__cval_equal(kl__cev *e, kl__cval a, kl__cval b)
{
    if (numeric(a.kind) && numeric(b.kind))
        return numbers(a, b) == 0;
    if ((a.kind == KL_C_MAP || a.kind == KL_C_OBJECT) && (b.kind == KL_C_MAP || b.kind == KL_C_OBJECT))
        return maps_equal(e, a.map, b.map);
    if (a.kind != b.kind)
        return false;
    switch (a.kind) {
    case KL_C_NULL: return true;
    case KL_C_LIST: return lists_equal(e, a.list, b.list);
    case KL_C_TYPE: return a.type->kind == b.type->kind;
    case KL_C_OPTIONAL: return !a.opt || !b.opt ? a.opt == b.opt : kl__cval_equal(e, *a.opt, *b.opt);
    case KL_C_QUANTITY: return kl_quantity_cmp(a.o, b.o) == 0;
    case KL_C_IP:
    case KL_C_CIDR:
    case KL_C_URL:
    case KL_C_FORMAT:
    case KL_C_SEMVER: return kl__cel_opaque_equal(a, b);
    default: return kl__cval_compare(a, b) == 0;
    }
}

uint64_t kl__cval_size(kl__cval v)
{
    switch (v.kind) {
    case KL_C_STRING: return kl__cel_runes(v.s.p, v.s.n);
    case KL_C_BYTES: return v.s.n;
    case KL_C_LIST: return kl__clist_len(v.list);
    case KL_C_MAP:
    case KL_C_OBJECT: return kl__cmap_len(v.map);
    case KL_C_IP: return 4 + 12 * (((const uint8_t *)v.o)[0] == 6);
    case KL_C_CIDR: return 4 + 12 * (((const uint8_t *)v.o)[0] == 6);
    case KL_C_OPTIONAL: return v.opt ? kl__cval_size(*v.opt) : 1;
    default: return 1;
    }
}

const kl__ctype *kl__cval_type(kl__cval v)
{
    return v.kind == KL_C_OBJECT ? v.map->type : &kl__cbasic[v.kind];
}

/* ---------------------------------------------------------------- what others see */

const kl_value *kl__cval_to_json(kl__cev *e, kl__cval v)
{
    char text[64];
    if (!kl__cev_works(e))
        return kl_value_null();
    switch (v.kind) {
    case KL_C_BOOL: return kl_value_of_bool(v.b);
    case KL_C_INT: return kl_value_of_int(v.i);
    case KL_C_UINT: return kl_value_of_uint(v.u);
    case KL_C_DOUBLE: return isfinite(v.d) ? kl_value_of_double(v.d) : kl_value_null();
    case KL_C_STRING: return kl_value_of_strn(v.s.p, v.s.n);
    case KL_C_BYTES: {
        char *b = kl_base64_encode(v.s.p, v.s.n);
        const kl_value *s = kl_value_of_str(b);
        kl_free(b);
        return s;
    }
    case KL_C_DURATION: return kl_value_of_str(kl_duration_format(v.i, text));
    case KL_C_LIST: {
        if (v.list->json)
            return kl_value_ref(v.list->json);
        kl_builder *b = kl_builder_new();
        kl_build_array(b);
        for (size_t i = 0; i < v.list->n; i++) {
            const kl_value *x = kl__cval_to_json(e, v.list->v[i]);
            kl_build_value(b, x);
            kl_value_unref(x);
        }
        kl_build_end(b);
        return kl_builder_done(b);
    }
    case KL_C_MAP:
    case KL_C_OBJECT: {
        if (v.map->json)
            return kl_value_ref(v.map->json);
        kl_builder *b = kl_builder_new();
        kl_build_object(b);
        for (size_t i = 0; i < v.map->n; i++) {
            kl_buf key = KL_BUF_INIT;
            if (v.map->kv[2 * i].kind == KL_C_STRING)
                kl_buf_add(&key, v.map->kv[2 * i].s.p, v.map->kv[2 * i].s.n);
            else
                kl__cval_show(e, v.map->kv[2 * i], &key);
            const kl_value *x = kl__cval_to_json(e, v.map->kv[2 * i + 1]);
            kl_build_keyn(b, kl_buf_str(&key), key.len);
            kl_build_value(b, x);
            kl_value_unref(x);
            kl_buf_fini(&key);
        }
        kl_build_end(b);
        return kl_builder_done(b);
    }
    case KL_C_OPTIONAL: return v.opt ? kl__cval_to_json(e, *v.opt) : kl_value_null();
    case KL_C_NULL: return kl_value_null();
    default: {
        kl_buf b = KL_BUF_INIT;
        kl__cval_show(e, v, &b);
        const kl_value *s = kl_value_of_strn(kl_buf_str(&b), b.len);
        kl_buf_fini(&b);
        return s;
    }
    }
}

void kl__cval_show(kl__cev *e, kl__cval v, kl_buf *out)
{
    char text[64];
    switch (v.kind) {
    case KL_C_NULL: kl_buf_puts(out, "null"); break;
    case KL_C_BOOL: kl_buf_puts(out, v.b ? "true" : "false"); break;
    case KL_C_INT: kl_buf_printf(out, "%lld", (long long)v.i); break;
    case KL_C_UINT: kl_buf_printf(out, "%llu", (unsigned long long)v.u); break;
    case KL_C_DOUBLE: kl__cel_double(v.d, out); break;
    case KL_C_STRING:
    case KL_C_BYTES: kl_buf_add(out, v.s.p, v.s.n); break;
    case KL_C_DURATION: kl_buf_puts(out, kl_duration_format(v.i, text)); break;
    case KL_C_TIME: kl__cel_time(v, out); break;
    case KL_C_TYPE: kl_buf_puts(out, v.type->name); break;
    case KL_C_LIST:
    case KL_C_MAP:
    case KL_C_OBJECT:
    case KL_C_OPTIONAL: {
        const kl_value *json = kl__cval_to_json(e, v);
        kl_value_encode(json, out);
        kl_value_unref(json);
        break;
    }
    default: kl__cel_opaque(v, out); break;
    }
}
