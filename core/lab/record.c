/* record.c - writes caches and runs to a tape.
 *
 * Objects are written once, under a number; reads refer to numbers. The number of a cached object is found by
 * its key, and is valid while it is the same value; an object that no cache holds (any more, or yet) is
 * written with the read. So the order of threads does not matter: an event may be written after a run has
 * read its object. */
#include "lab/record_impl.h"

#include <inttypes.h>
#include <string.h>

#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "model/object.h"

typedef struct kept {
    const kl_value *value;
    uint64_t id;
} kept;

/* --- a line ------------------------------------------------------------------------------- */

void kl__put_value(kl_buf *b, const char *key, const kl_value *v)
{
    kl_buf_printf(b, ",\"%s\":", key);
    kl_value_encode(v, b);
}

void kl__put_text(kl_buf *b, const char *key, const char *text)
{
    if (!text)
        return;
    const kl_value *v = kl_value_of_str(text);
    kl__put_value(b, key, v);
    kl_value_unref(v);
}

void kl__put_number(kl_buf *b, const char *key, int64_t n) { kl_buf_printf(b, ",\"%s\":%" PRId64, key, n); }

void kl__put_shown(kl_record *r, kl_buf *b, const char *key, const char *kind, const kl_value *v)
{
    const kl_value *shown = r->o.secrets ? kl_value_ref(v) : kl_redact(&r->redaction, kind, v);
    kl__put_value(b, key, shown);
    kl_value_unref(shown);
}

static void line_begin(kl_buf *b, const char *what)
{
    kl_buf_clear(b);
    kl_buf_printf(b, "{\"t\":\"%s\"", what);
}

static void line_end(kl_buf *b) { kl_buf_puts(b, "}\n"); }

void kl__line_begin_locked(kl_record *r, const char *what) { line_begin(&r->line, what); }

void kl__line_end_locked(kl_record *r)
{
    line_end(&r->line);
    kl_tape_add(r->tape, r->line.data, r->line.len);
}

/* --- objects ------------------------------------------------------------------------------ */

static void kept_free(void *p)
{
    kept *k = p;
    kl_value_unref(k->value);
    kl_free(k);
}

static uint64_t fresh_locked(kl_record *r, const char *kind, const kl_value *v) KL_REQUIRES(r->mu)
{
    kl_buf b = KL_BUF_INIT;
    line_begin(&b, "object");
    kl__put_number(&b, "o", (int64_t)++r->objects);
    kl__put_shown(r, &b, "v", kind, v);
    line_end(&b);
    kl_tape_add(r->tape, b.data, b.len);
    kl_buf_fini(&b);
    return r->objects;
}

uint64_t kl__object_locked(kl_record *r, const char *kind, const kl_value *v)
{
    char *key = kl_object_key(v);
    uint64_t id = 0;
    for (size_t i = 0; key && i < r->n_open && !id; i++) {
        kept *k = strcmp(r->open[i]->kind, kind) ? NULL : kl_map_get(r->open[i]->objects, key);
        id = k && k->value == v ? k->id : 0;
    }
    kl_free(key);
    return id ? id : fresh_locked(r, kind, v);
}

/* --- the beginning of a file -------------------------------------------------------------- */

static void header_locked(kl_record *r) KL_REQUIRES(r->mu)
{
    kl__line_begin_locked(r, "tape");
    kl__put_number(&r->line, "format", KL_RECORD_FORMAT);
    kl__put_text(&r->line, "version", KL_VERSION);
    kl__put_text(&r->line, "recording", r->name);
    kl__put_number(&r->line, "file", (int64_t)++r->file);
    kl__put_number(&r->line, "at", kl_clock_wall(r->o.clock));
    kl_buf_printf(&r->line, ",\"secrets\":\"%s\"", r->o.secrets ? "plain" : "redacted");
    if (r->scripts)
        kl__put_value(&r->line, "scripts", r->scripts);
    kl__line_end_locked(r);
}

static void cache_locked(kl_record *r, kl__taped *c) KL_REQUIRES(r->mu)
{
    kl_tape_add(r->tape, c->line.data, c->line.len);
    size_t it = 0;
    const char *key;
    void *v;
    while (kl_map_next(c->objects, &it, &key, &v)) {
        kept *k = v;
        kl__line_begin_locked(r, "put");
        kl__put_number(&r->line, "c", (int64_t)c->id);
        kl__put_number(&r->line, "o", (int64_t)k->id);
        kl__put_shown(r, &r->line, "v", c->kind, k->value);
        kl__line_end_locked(r);
    }
    if (c->synced) {
        kl__line_begin_locked(r, "synced");
        kl__put_number(&r->line, "c", (int64_t)c->id);
        kl__line_end_locked(r);
    }
}

static void file_locked(kl_record *r) KL_REQUIRES(r->mu)
{
    kl__lists_forget_locked(r);
    header_locked(r);
    char **kinds = kl_map_sorted_keys(r->kinds);
    for (char **k = kinds; *k; k++) {
        const char *line = kl_map_get(r->kinds, *k);
        kl_tape_add(r->tape, line, strlen(line));
    }
    kl_free(kinds);
    for (size_t i = 0; i < r->n_open; i++)
        cache_locked(r, r->open[i]);
    r->began = kl_tape_here(r->tape);
    if (r->began > kl_tape_room(r->tape) / 2 && !kl_tape_ended(r->tape)) {
        char *why = kl_sprintf("the contents of the caches take %.1f MiB at the start of each file, more "
                               "than half of its space: --record-max should be %zuMi or more",
            (double)r->began / (1 << 20), (r->began * 4 * KL_TAPE_FILES >> 20) + 1);
        kl_tape_end(r->tape, why);
        kl_free(why);
    }
}

void kl__record_done_locked(kl_record *r)
{
    if (kl_tape_ended(r->tape) || !kl_tape_full(r->tape))
        return;
    kl_tape_next(r->tape);
    file_locked(r);
}

/* --- caches ------------------------------------------------------------------------------- */

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    kl__taped *c = arg;
    kl_record *r = c->record;
    char *key = kl_object_key(now ? now : old);
    if (!key || flags & KL_RESYNC) {
        kl_free(key);
        return;
    }
    kl_lock(&r->mu);
    kept *k = kl_map_get(c->objects, key);
    if (type == KL_DELETED) {
        kl__line_begin_locked(r, "gone");
        kl__put_number(&r->line, "c", (int64_t)c->id);
        kl__put_text(&r->line, "key", key);
        if (k)
            kept_free(kl_map_take(c->objects, key));
    } else {
        if (!k)
            kl_map_set(c->objects, key, k = kl_new(kept));
        kl_value_ref(now);
        kl_value_unref(k->value);
        *k = (kept){now, ++r->objects};
        kl__line_begin_locked(r, "put");
        kl__put_number(&r->line, "c", (int64_t)c->id);
        kl__put_number(&r->line, "o", (int64_t)k->id);
        kl__put_shown(r, &r->line, "v", c->kind, now);
    }
    kl__line_end_locked(r);
    kl__record_done_locked(r);
    kl_unlock(&r->mu);
    kl_free(key);
}

static void on_synced(void *arg)
{
    kl__taped *c = arg;
    kl_record *r = c->record;
    kl_lock(&r->mu);
    c->synced = true;
    kl__line_begin_locked(r, "synced");
    kl__put_number(&r->line, "c", (int64_t)c->id);
    kl__line_end_locked(r);
    kl_tape_flush(r->tape);
    kl_unlock(&r->mu);
}

static char *kind_line(const char *kind, const kl_resource *res)
{
    kl_buf b = KL_BUF_INIT;
    line_begin(&b, "kind");
    kl__put_text(&b, "kind", kind);
    kl__put_text(&b, "group", res->group);
    kl__put_text(&b, "version", res->version);
    kl__put_text(&b, "is", res->kind);
    kl__put_text(&b, "plural", res->plural);
    kl__put_text(&b, "singular", res->singular);
    kl_buf_printf(&b, ",\"namespaced\":%s,\"sub\":[", res->namespaced ? "true" : "false");
    for (char **s = res->subresources; s && *s; s++) {
        const kl_value *v = kl_value_of_str(*s);
        kl_buf_puts(&b, s == res->subresources ? "" : ",");
        kl_value_encode(v, &b);
        kl_value_unref(v);
    }
    kl_buf_putc(&b, ']');
    line_end(&b);
    return kl_buf_take(&b);
}

void kl__kind_locked(kl_record *r, const char *kind, const kl_resource *res)
{
    char *line = kind_line(kind, res), *old = kl_map_get(r->kinds, kind);
    if (old && !strcmp(old, line)) {
        kl_free(line);
        return;
    }
    kl_tape_add(r->tape, line, strlen(line));
    kl_free(kl_map_set(r->kinds, kind, line));
}

void kl_record_cache_begun(
    void *record, const char *kind, const kl_resource *res, const kl_cache_source *want, kl_informer *i)
{
    kl_record *r = record;
    kl__taped *c = kl_new(kl__taped);
    *c = (kl__taped){.record = r, .kind = kl_strdup(kind), .objects = kl_map_new(), .informer = i};
    kl_lock(&r->mu);
    kl__kind_locked(r, kind, res);
    c->id = ++r->caches;
    line_begin(&c->line, "cache");
    kl__put_number(&c->line, "c", (int64_t)c->id);
    kl__put_text(&c->line, "label", want->label);
    kl__put_text(&c->line, "kind", kind);
    kl__put_text(&c->line, "labels", want->labels);
    kl__put_text(&c->line, "fields", want->fields);
    if (want->metadata)
        kl_buf_puts(&c->line, ",\"metadata\":true");
    line_end(&c->line);
    kl_tape_add(r->tape, c->line.data, c->line.len);
    r->open = kl_realloc(r->open, (r->n_open + 1) * sizeof *r->open);
    r->open[r->n_open++] = c;
    kl_unlock(&r->mu);
    c->sub = kl_informer_subscribe(i, &(kl_handler){.on_event = on_event, .on_synced = on_synced, .arg = c});
}

static void cache_free(kl__taped *c)
{
    kl_map_free(c->objects, kept_free);
    kl_buf_fini(&c->line);
    kl_free(c->kind);
    kl_free(c);
}

void kl_record_cache_ended(void *record, kl_informer *i)
{
    kl_record *r = record;
    kl__taped *c = NULL;
    kl_lock(&r->mu);
    for (size_t k = 0; k < r->n_open && !c; k++)
        if (r->open[k]->informer == i) {
            c = r->open[k];
            r->open[k] = r->open[--r->n_open];
        }
    if (c) {
        kl__line_begin_locked(r, "closed");
        kl__put_number(&r->line, "c", (int64_t)c->id);
        kl__line_end_locked(r);
    }
    kl_unlock(&r->mu);
    if (!c)
        return;
    kl_informer_unsubscribe(c->sub); /* waits for on_event, which wants the lock */
    cache_free(c);
}

/* --- life --------------------------------------------------------------------------------- */

static void name_it(kl_record *r)
{
    kl_redaction noise; /* the random key serves as a name */
    kl_redaction_init(&noise);
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < sizeof noise.key; i++) {
        r->name[2 * i] = digits[noise.key[i] >> 4];
        r->name[2 * i + 1] = digits[noise.key[i] & 15];
    }
}

kl_status kl_record_new(const kl_record_options *o, kl_record **out, kl_err *err)
{
    kl_tape *tape;
    size_t max = o->max ? o->max : KL_RECORD_MAX;
    if (max < KL_RECORD_MAX_LEAST)
        return kl_fail(
            err, KL_EINVAL, "a recording needs at least %zu bytes, not %zu", KL_RECORD_MAX_LEAST, max);
    kl_status st = kl_tape_new(o->path, max, "{\"t\":\"tape\"", &tape, err);
    if (st)
        return st;
    kl_record *r = kl_new(kl_record);
    r->o = *o;
    if (!r->o.clock)
        r->o.clock = kl_clock_real();
    kl__record_witness(r, &r->witness);
    kl_redaction_init(&r->redaction);
    name_it(r);
    kl_mutex_init_as(&r->mu, KL_LOCK_RECORD);
    kl_lock(&r->mu);
    r->tape = tape;
    r->scripts = kl_value_ref(o->scripts);
    r->kinds = kl_map_new();
    r->lists = kl_map_new();
    file_locked(r);
    kl_tape_flush(r->tape);
    kl_unlock(&r->mu);
    *out = r;
    return KL_OK;
}

const kl_witness *kl_record_witness(kl_record *r) { return &r->witness; }

void kl_record_scripts(kl_record *r, const kl_value *scripts)
{
    kl_lock(&r->mu);
    kl_value_unref(r->scripts);
    r->scripts = kl_value_ref(scripts);
    kl__line_begin_locked(r, "scripts");
    kl__put_value(&r->line, "scripts", scripts);
    kl__line_end_locked(r);
    kl_unlock(&r->mu);
}

void kl_record_free(kl_record *r)
{
    if (!r)
        return;
    kl_lock(&r->mu);
    kl_tape_free(r->tape);
    for (size_t i = 0; i < r->n_open; i++)
        cache_free(r->open[i]);
    kl_free(r->open);
    kl_map_free(r->kinds, kl_free);
    kl__lists_forget_locked(r);
    kl_map_free(r->lists, NULL);
    kl_value_unref(r->scripts);
    kl_buf_fini(&r->line);
    kl_unlock(&r->mu);
    kl_mutex_fini(&r->mu);
    kl_free(r);
}
