/* record.c - tells a tape what caches and runs do.
 *
 * Objects are written once, under a number; what a read found is numbers then. The number of an object that a cache holds is found by its key, and
 * counts while it is the very same value; what a read found that no cache holds (any more, or yet) is written with the read. So the order of
 * threads does not matter: an event may be told after a run has read what it brought. */
#include "run/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/tape.h"
#include "base/version.h"
#include "model/object.h"
#include "run/run_impl.h"

/* So many answers of lists are remembered, to tell only what is new in the next. */
#define LISTS_MAX 512
/* While some run is always under way, what is written lies in memory for about so long. */
#define FLUSH_EVERY KL_SECONDS(1)

typedef struct kept { const kl_value *value; uint64_t id; } kept;

typedef struct cache {
    kl_record *record;
    uint64_t id;
    char *kind;
    kl_buf line;                       /* that tells of it */
    kl_map *objects;                   /* key -> kept */
    kl_informer *informer;
    kl_subscription *sub;
    bool synced;
} cache;

typedef struct listed { const kl_value **v; size_t n; uint64_t set; } listed;

struct kl_record {
    kl_record_options o;
    kl_witness witness;
    kl_redaction redaction;
    char name[33];                     /* of the recording */
    kl_mutex mu;
    kl_tape *tape KL_GUARDED_BY(mu);
    kl_buf line KL_GUARDED_BY(mu);
    const kl_value *scripts KL_GUARDED_BY(mu);
    uint64_t file KL_GUARDED_BY(mu), objects KL_GUARDED_BY(mu), sets KL_GUARDED_BY(mu), caches KL_GUARDED_BY(mu);
    size_t began KL_GUARDED_BY(mu);    /* bytes that a file begins with */
    size_t running KL_GUARDED_BY(mu);
    kl_time flushed KL_GUARDED_BY(mu);
    cache **open KL_GUARDED_BY(mu);
    size_t n_open KL_GUARDED_BY(mu);
    kl_map *kinds KL_GUARDED_BY(mu);   /* name -> its line, as text */
    kl_map *lists KL_GUARDED_BY(mu);   /* kind and query -> listed */
};

/* --- a line ------------------------------------------------------------------------------------------------------------ */

static void put_value(kl_buf *b, const char *key, const kl_value *v)
{
    kl_buf_printf(b, ",\"%s\":", key);
    kl_value_encode(v, b);
}

static void put_text(kl_buf *b, const char *key, const char *text)
{
    if (!text)
        return;
    const kl_value *v = kl_value_of_str(text);
    put_value(b, key, v);
    kl_value_unref(v);
}

static void put_number(kl_buf *b, const char *key, int64_t n)
{
    kl_buf_printf(b, ",\"%s\":%" PRId64, key, n);
}

static void put_shown(kl_record *r, kl_buf *b, const char *key, const char *kind, const kl_value *v)
{
    const kl_value *shown = r->o.secrets ? kl_value_ref(v) : kl_redact(&r->redaction, kind, v);
    put_value(b, key, shown);
    kl_value_unref(shown);
}

static void line_begin(kl_buf *b, const char *what)
{
    kl_buf_clear(b);
    kl_buf_printf(b, "{\"t\":\"%s\"", what);
}

static void line_end(kl_buf *b)
{
    kl_buf_puts(b, "}\n");
}

static void begin_locked(kl_record *r, const char *what) KL_REQUIRES(r->mu)
{
    line_begin(&r->line, what);
}

static void end_locked(kl_record *r) KL_REQUIRES(r->mu)
{
    line_end(&r->line);
    kl_tape_add(r->tape, r->line.data, r->line.len);
}

/* --- objects ------------------------------------------------------------------------------------------------------------- */

static void kept_free(void *p)
{
    kept *k = p;
    kl_value_unref(k->value);
    kl_free(k);
}

static uint64_t object_locked(kl_record *r, const char *kind, const kl_value *v) KL_REQUIRES(r->mu)
{
    kl_buf b = KL_BUF_INIT;
    line_begin(&b, "object");
    put_number(&b, "o", (int64_t)++r->objects);
    put_shown(r, &b, "v", kind, v);
    line_end(&b);
    kl_tape_add(r->tape, b.data, b.len);
    kl_buf_fini(&b);
    return r->objects;
}

/* The number of an object that somebody found; the tape has it then. Not while a line is being made. */
static uint64_t number_locked(kl_record *r, const char *kind, const kl_value *v) KL_REQUIRES(r->mu)
{
    char *key = kl_object_key(v);
    uint64_t id = 0;
    for (size_t i = 0; key && i < r->n_open && !id; i++) {
        kept *k = strcmp(r->open[i]->kind, kind) ? NULL : kl_map_get(r->open[i]->objects, key);
        id = k && k->value == v ? k->id : 0;
    }
    kl_free(key);
    return id ? id : object_locked(r, kind, v);
}

/* --- the beginning of a file ---------------------------------------------------------------------------------------------- */

static void header_locked(kl_record *r) KL_REQUIRES(r->mu)
{
    begin_locked(r, "tape");
    put_number(&r->line, "format", KL_RECORD_FORMAT);
    put_text(&r->line, "version", KL_VERSION);
    put_text(&r->line, "recording", r->name);
    put_number(&r->line, "file", (int64_t)++r->file);
    put_number(&r->line, "at", kl_clock_wall(r->o.clock));
    kl_buf_printf(&r->line, ",\"secrets\":\"%s\"", r->o.secrets ? "plain" : "redacted");
    if (r->scripts)
        put_value(&r->line, "scripts", r->scripts);
    end_locked(r);
}

static void cache_locked(kl_record *r, cache *c) KL_REQUIRES(r->mu)
{
    kl_tape_add(r->tape, c->line.data, c->line.len);
    size_t it = 0;
    const char *key;
    void *v;
    while (kl_map_next(c->objects, &it, &key, &v)) {
        kept *k = v;
        begin_locked(r, "put");
        put_number(&r->line, "c", (int64_t)c->id);
        put_number(&r->line, "o", (int64_t)k->id);
        put_shown(r, &r->line, "v", c->kind, k->value);
        end_locked(r);
    }
    if (c->synced) {
        begin_locked(r, "synced");
        put_number(&r->line, "c", (int64_t)c->id);
        end_locked(r);
    }
}

static void listed_free(void *p)
{
    listed *l = p;
    for (size_t i = 0; i < l->n; i++)
        kl_value_unref(l->v[i]);
    kl_free(l->v);
    kl_free(l);
}

static void lists_forget_locked(kl_record *r) KL_REQUIRES(r->mu)
{
    kl_map_free(r->lists, listed_free);
    r->lists = kl_map_new();
}

static void file_locked(kl_record *r) KL_REQUIRES(r->mu)
{
    lists_forget_locked(r);
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
        char *why = kl_sprintf("what the caches hold takes %.1f MiB at the beginning of each file, more than half of its room: --record-max should be %zuMi or more",
            (double)r->began / (1 << 20), (r->began * 4 * KL_TAPE_FILES >> 20) + 1);
        kl_tape_end(r->tape, why);
        kl_free(why);
    }
}

/* After each record: is the file full? */
static void done_locked(kl_record *r) KL_REQUIRES(r->mu)
{
    if (kl_tape_ended(r->tape) || !kl_tape_full(r->tape))
        return;
    kl_tape_next(r->tape);
    file_locked(r);
}

/* --- caches ---------------------------------------------------------------------------------------------------------------- */

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    cache *c = arg;
    kl_record *r = c->record;
    char *key = kl_object_key(now ? now : old);
    if (!key || flags & KL_RESYNC) {
        kl_free(key);
        return;
    }
    kl_lock(&r->mu);
    kept *k = kl_map_get(c->objects, key);
    if (type == KL_DELETED) {
        begin_locked(r, "gone");
        put_number(&r->line, "c", (int64_t)c->id);
        put_text(&r->line, "key", key);
        if (k)
            kept_free(kl_map_take(c->objects, key));
    } else {
        if (!k)
            kl_map_set(c->objects, key, k = kl_new(kept));
        kl_value_ref(now);
        kl_value_unref(k->value);
        *k = (kept){now, ++r->objects};
        begin_locked(r, "put");
        put_number(&r->line, "c", (int64_t)c->id);
        put_number(&r->line, "o", (int64_t)k->id);
        put_shown(r, &r->line, "v", c->kind, now);
    }
    end_locked(r);
    done_locked(r);
    kl_unlock(&r->mu);
    kl_free(key);
}

static void on_synced(void *arg)
{
    cache *c = arg;
    kl_record *r = c->record;
    kl_lock(&r->mu);
    c->synced = true;
    begin_locked(r, "synced");
    put_number(&r->line, "c", (int64_t)c->id);
    end_locked(r);
    kl_tape_flush(r->tape);
    kl_unlock(&r->mu);
}

static char *kind_line(const char *kind, const kl_resource *res)
{
    kl_buf b = KL_BUF_INIT;
    line_begin(&b, "kind");
    put_text(&b, "kind", kind);
    put_text(&b, "group", res->group);
    put_text(&b, "version", res->version);
    put_text(&b, "is", res->kind);
    put_text(&b, "plural", res->plural);
    put_text(&b, "singular", res->singular);
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

static void kind_locked(kl_record *r, const char *kind, const kl_resource *res) KL_REQUIRES(r->mu)
{
    char *line = kind_line(kind, res), *old = kl_map_get(r->kinds, kind);
    if (old && !strcmp(old, line)) {
        kl_free(line);
        return;
    }
    kl_tape_add(r->tape, line, strlen(line));
    kl_free(kl_map_set(r->kinds, kind, line));
}

void kl_record_cache_begun(void *record, const char *kind, const kl_resource *res, const kl_cache_source *want, kl_informer *i)
{
    kl_record *r = record;
    cache *c = kl_new(cache);
    *c = (cache){.record = r, .kind = kl_strdup(kind), .objects = kl_map_new(), .informer = i};
    kl_lock(&r->mu);
    kind_locked(r, kind, res);
    c->id = ++r->caches;
    line_begin(&c->line, "cache");
    put_number(&c->line, "c", (int64_t)c->id);
    put_text(&c->line, "label", want->label);
    put_text(&c->line, "kind", kind);
    put_text(&c->line, "labels", want->labels);
    put_text(&c->line, "fields", want->fields);
    if (want->metadata)
        kl_buf_puts(&c->line, ",\"metadata\":true");
    line_end(&c->line);
    kl_tape_add(r->tape, c->line.data, c->line.len);
    r->open = kl_realloc(r->open, (r->n_open + 1) * sizeof *r->open);
    r->open[r->n_open++] = c;
    kl_unlock(&r->mu);
    c->sub = kl_informer_subscribe(i, &(kl_handler){.on_event = on_event, .on_synced = on_synced, .arg = c});
}

static void cache_free(cache *c)
{
    kl_map_free(c->objects, kept_free);
    kl_buf_fini(&c->line);
    kl_free(c->kind);
    kl_free(c);
}

void kl_record_cache_ended(void *record, kl_informer *i)
{
    kl_record *r = record;
    cache *c = NULL;
    kl_lock(&r->mu);
    for (size_t k = 0; k < r->n_open && !c; k++)
        if (r->open[k]->informer == i) {
            c = r->open[k];
            r->open[k] = r->open[--r->n_open];
        }
    if (c) {
        begin_locked(r, "closed");
        put_number(&r->line, "c", (int64_t)c->id);
        end_locked(r);
    }
    kl_unlock(&r->mu);
    if (!c)
        return;
    kl_informer_unsubscribe(c->sub);           /* waits for on_event, which wants the lock */
    cache_free(c);
}

/* --- runs -------------------------------------------------------------------------------------------------------------------- */

/* A webhook's requests are no keys, and not recorded. */
static bool counts(const kl_run *run)
{
    return kl_run_spec(run)->resource != NULL;
}

static void run_begin_locked(kl_record *r, const char *what, kl_run *run) KL_REQUIRES(r->mu)
{
    begin_locked(r, what);
    put_text(&r->line, "r", kl_run_id(run));
}

/* What woke the key: of an object, what ctx.trigger tells. */
static void put_cause(kl_buf *b, const kl_run *run)
{
    const kl_value *o;
    unsigned events;
    put_text(b, "why", kl_why_name(kl_run_cause(run, &o, &events)));
    put_number(b, "events", events);
    if (!o)
        return;
    kl_buf_puts(b, ",\"by\":{\"metadata\":{\"name\":");
    const kl_value *name = kl_value_get(kl_value_get(o, "metadata"), "name");
    kl_value_encode(name, b);
    put_text(b, "namespace", kl_object_namespace(o));
    put_text(b, "resourceVersion", kl_object_rv(o));
    kl_buf_putc(b, '}');
    put_text(b, "apiVersion", kl_object_api_version(o));
    put_text(b, "kind", kl_object_kind(o));
    kl_buf_putc(b, '}');
}

static void on_began(void *arg, kl_run *run)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    uint64_t o = number_locked(r, kl_run_spec(run)->resource, kl_run_object(run));
    r->running++;
    run_begin_locked(r, "began", run);
    put_number(&r->line, "at", kl_clock_wall(run->w->o.clock));
    put_text(&r->line, "controller", run->w->o.name);
    put_number(&r->line, "worker", run->w->number);
    put_text(&r->line, "key", kl_run_key(run));
    put_number(&r->line, "attempt", kl_run_attempt(run));
    put_number(&r->line, "generation", kl_run_generation(run));
    put_number(&r->line, "epoch", kl_run_epoch(run));
    put_number(&r->line, "o", (int64_t)o);
    put_cause(&r->line, run);
    if (kl_run_params(run) != kl_run_spec(run)->params)        /* somebody has set others than the script's */
        put_value(&r->line, "params", kl_run_params(run));
    end_locked(r);
    kl_unlock(&r->mu);
}

static void one_locked(kl_record *r, const char *what, kl_run *run, const kl_saw *x) KL_REQUIRES(r->mu)
{
    uint64_t o = x->n ? number_locked(r, x->kind, x->found[0]) : 0;
    run_begin_locked(r, what, run);
    put_text(&r->line, "kind", x->kind);
    put_text(&r->line, "ns", x->ns);
    put_text(&r->line, "name", x->name);
    if (o)
        put_number(&r->line, "o", (int64_t)o);
    end_locked(r);
}

/* The numbers of found[from..to), which may write objects first, as a list in `out`. */
static void numbers_locked(kl_record *r, const kl_saw *x, size_t from, size_t to, kl_buf *out) KL_REQUIRES(r->mu)
{
    kl_buf_putc(out, '[');
    for (size_t i = from; i < to; i++)
        kl_buf_printf(out, "%s%" PRIu64, i == from ? "" : ",", number_locked(r, x->kind, x->found[i]));
    kl_buf_putc(out, ']');
}

static void remember(listed *l, const kl_saw *x)
{
    for (size_t i = 0; i < l->n; i++)
        kl_value_unref(l->v[i]);
    l->v = kl_realloc(l->v, (x->n + 1) * sizeof *l->v);
    l->n = x->n;
    for (size_t i = 0; i < x->n; i++)
        l->v[i] = kl_value_ref(x->found[i]);
}

static uint64_t set_locked(kl_record *r, const char *name, const kl_saw *x) KL_REQUIRES(r->mu)
{
    listed *l = kl_map_get(r->lists, name);
    if (l && l->n == x->n && !memcmp(l->v, x->found, x->n * sizeof *l->v))
        return l->set;
    if (!l && kl_map_len(r->lists) >= LISTS_MAX)
        lists_forget_locked(r);
    size_t head = 0, tail = 0, least = l && l->n < x->n ? l->n : x->n;
    while (l && head < least && l->v[head] == x->found[head])
        head++;
    while (l && tail < least - head && l->v[l->n - 1 - tail] == x->found[x->n - 1 - tail])
        tail++;
    kl_buf ids = KL_BUF_INIT;
    numbers_locked(r, x, head, x->n - tail, &ids);
    begin_locked(r, "set");
    put_number(&r->line, "s", (int64_t)++r->sets);
    if (head || tail) {
        put_number(&r->line, "of", (int64_t)l->set);
        put_number(&r->line, "head", (int64_t)head);
        put_number(&r->line, "tail", (int64_t)tail);
    }
    kl_buf_printf(&r->line, ",\"ids\":%s", kl_buf_str(&ids));
    end_locked(r);
    kl_buf_fini(&ids);
    if (!l)
        kl_map_set(r->lists, name, l = kl_new(listed));
    remember(l, x);
    l->set = r->sets;
    return l->set;
}

static void list_locked(kl_record *r, kl_run *run, const kl_saw *x) KL_REQUIRES(r->mu)
{
    kl_buf query = KL_BUF_INIT;
    kl_record_query(x->query, &query);
    char *name = kl_sprintf("%s %s", x->kind, kl_buf_str(&query));
    uint64_t set = set_locked(r, name, x);
    run_begin_locked(r, "list", run);
    put_text(&r->line, "kind", x->kind);
    put_text(&r->line, "query", kl_buf_str(&query));
    put_number(&r->line, "s", (int64_t)set);
    end_locked(r);
    kl_free(name);
    kl_buf_fini(&query);
}

static void on_saw(void *arg, kl_run *run, const kl_saw *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    if (x->name)
        one_locked(r, "get", run, x);
    else
        list_locked(r, run, x);
    kl_unlock(&r->mu);
}

static void on_believed(void *arg, kl_run *run, const kl_saw *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    one_locked(r, "believed", run, x);
    kl_unlock(&r->mu);
}

static void on_timed(void *arg, kl_run *run, kl_time wall)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    run_begin_locked(r, "clock", run);
    put_number(&r->line, "at", wall);
    end_locked(r);
    kl_unlock(&r->mu);
}

static void on_asked(void *arg, kl_run *run, const kl_asked *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    const kl_value *op = x->op ? kl_record_op(x->op) : NULL;
    const kl_value *body = kl_value_get(op, "body");
    if (body && !r->o.secrets) {
        const kl_value *shown = kl_redact(&r->redaction, kl_value_str_at(op, "kind", NULL), body), *with = kl_value_with(op, "body", shown);
        kl_value_unref(shown);
        kl_value_unref(op);
        op = with;
    }
    const char *kind = x->op ? x->op->kind : x->kind;
    const kl_resource *res = kind && !x->elsewhere ? kl_run_resource(run, kind) : NULL;
    kl_lock(&r->mu);
    if (res)
        kind_locked(r, kind, res);
    run_begin_locked(r, "asked", run);
    put_number(&r->line, "n", x->number);
    put_text(&r->line, "what", x->op ? "call" : x->what);
    if (op)
        put_value(&r->line, "op", op);
    put_text(&r->line, "kind", x->kind);
    if (!x->op && !x->kind)
        put_number(&r->line, "wait", x->wait);
    if (x->elsewhere)
        kl_buf_puts(&r->line, ",\"elsewhere\":true");
    end_locked(r);
    kl_unlock(&r->mu);
    kl_value_unref(op);
}

static void put_error(kl_buf *b, const kl_answered *x)
{
    kl_buf_puts(b, ",\"error\":{\"is\":");
    const kl_value *v = kl_value_of_str(kl_status_name(x->status));
    kl_value_encode(v, b);
    kl_value_unref(v);
    if (x->err) {
        put_number(b, "code", x->err->http_code);
        put_text(b, "reason", x->err->reason);
        put_text(b, "message", x->err->message);
        put_text(b, "details", x->err->details);
        if (x->err->retry_after_ns)
            put_number(b, "retry", x->err->retry_after_ns);
    }
    kl_buf_putc(b, '}');
}

static void on_answered(void *arg, kl_run *run, const kl_answered *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    run_begin_locked(r, "answered", run);
    put_number(&r->line, "n", x->number);
    put_number(&r->line, "at", kl_clock_wall(run->w->o.clock));
    if (x->code)
        put_number(&r->line, "code", x->code);
    if (x->body)
        put_shown(r, &r->line, "v", NULL, x->body);
    if (x->status)
        put_error(&r->line, x);
    end_locked(r);
    kl_unlock(&r->mu);
}

static void on_ended(void *arg, kl_run *run, const kl_ran *x)
{
    kl_record *r = arg;
    if (!counts(run))
        return;
    kl_lock(&r->mu);
    run_begin_locked(r, "ended", run);
    put_number(&r->line, "at", kl_clock_wall(run->w->o.clock));
    if (x->put_back)
        kl_buf_puts(&r->line, ",\"cut\":true");
    else
        put_text(&r->line, "result", kl_record_result(x->result));
    if (!x->put_back && (x->result == KL_RESULT_AFTER || x->result == KL_RESULT_RETRY))
        put_number(&r->line, "after", run->after);
    put_text(&r->line, "message", x->message);
    end_locked(r);
    done_locked(r);
    r->running--;
    kl_time now = kl_clock_now(r->o.clock);
    if (!r->running || now - r->flushed > FLUSH_EVERY) {       /* who is busy fills the buffer; who is not, loses nothing */
        kl_tape_flush(r->tape);
        r->flushed = now;
    }
    kl_unlock(&r->mu);
}

/* --- life -------------------------------------------------------------------------------------------------------------------- */

static void name_it(kl_record *r)
{
    kl_redaction noise;                        /* what is drawn for a key serves for a name */
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
        return kl_fail(err, KL_EINVAL, "a recording needs room for at least %zu bytes, not %zu", KL_RECORD_MAX_LEAST, max);
    kl_status st = kl_tape_new(o->path, max, &tape, err);
    if (st)
        return st;
    kl_record *r = kl_new(kl_record);
    r->o = *o;
    if (!r->o.clock)
        r->o.clock = kl_clock_real();
    r->witness = (kl_witness){.began = on_began, .saw = on_saw, .believed = on_believed, .timed = on_timed, .asked = on_asked, .answered = on_answered, .ended = on_ended, .arg = r};
    kl_redaction_init(&r->redaction);
    name_it(r);
    kl_mutex_init(&r->mu);
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
    begin_locked(r, "scripts");
    put_value(&r->line, "scripts", scripts);
    end_locked(r);
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
    kl_map_free(r->lists, listed_free);
    kl_value_unref(r->scripts);
    kl_buf_fini(&r->line);
    kl_unlock(&r->mu);
    kl_mutex_fini(&r->mu);
    kl_free(r);
}
