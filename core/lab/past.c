/* past.c - lines become events and runs. A line is decoded once and kept: its events and runs borrow its
 * texts. */
#include "lab/past.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/tape.h"

/* No line is longer: an object is at most a few MiB, a list of them some more. */
#define LINE_MAX ((size_t)256 << 20)
/* Limits against hostile files: even a short line can make a set out of another, a worker or a cache. */
#define ITEMS_MAX ((size_t)1 << 27) /* of all sets, 1 GiB */
#define WORKERS_MAX 1000
#define KINDS_MAX 1000 /* also the maximum of caches */

typedef struct book {
    kl_past p;              /* first: the result */
    const kl_value **lines; /* each a reference */
    size_t n_lines;
    /* keys are numbers or ids, as texts; the maps own their values, except `objects` */
    kl_map *objects, *sets, *runs, *caches;
    kl_map *headless;
    size_t items;     /* of all sets */
    const char *name; /* the file being read, for messages */
    size_t line;
} book;

static kl_status wrong(const book *b, kl_err *err, const char *fmt, ...) KL_PRINTF(3, 4);
static kl_status wrong(const book *b, kl_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    kl_status st = kl_vfail(err, KL_ESYNTAX, fmt, ap);
    va_end(ap);
    if (err)
        kl_err_prefix(err, "%s:%zu", b->name, b->line);
    return st;
}

/* Makes room for one more at the end of v, whose size doubles at powers of two. */
static void *grown(void *v, size_t n, size_t size)
{
    return n & (n - 1) ? v : kl_realloc(v, (n ? 2 * n : 1) * size);
}
#define ADD(v, n) ((v) = grown((v), (n), sizeof *(v)), &(v)[(n)++])

/* --- what a line has ---------------------------------------------------------------------- */

static const char *text(const kl_value *l, const char *key) { return kl_value_str(kl_value_get(l, key)); }

static int64_t number(const kl_value *l, const char *key, int64_t dflt)
{
    int64_t n = dflt;
    return kl_value_int(kl_value_get(l, key), &n) ? n : dflt;
}

static kl_status need_text(const book *b, const kl_value *l, const char *key, const char **out, kl_err *err)
{
    *out = text(l, key);
    return *out ? KL_OK : wrong(b, err, "the record \"%s\" has no \"%s\"", text(l, "t"), key);
}

static void name_of(int64_t n, char out[24]) { snprintf(out, 24, "%" PRId64, n); }

/* --- objects and sets --------------------------------------------------------------------- */

/* The object of a line by its number; a new one is registered. */
static kl_status object_of(book *b, const kl_value *l, const kl_value **out, kl_err *err)
{
    char name[24];
    int64_t o = number(l, "o", 0);
    const kl_value *v = kl_value_get(l, "v");
    *out = NULL;
    if (!o)
        return KL_OK;
    name_of(o, name);
    if (v && kl_value_type(v) == KL_OBJECT)
        kl_map_set(b->objects, name, (void *)v);
    else if (!(v = kl_map_get(b->objects, name)))
        return wrong(b, err, "object %s is not in the recording: lines are missing", name);
    *out = v;
    return KL_OK;
}

static kl_status set_begin(
    book *b, const kl_value *l, const kl_past_set **of, size_t *head, size_t *tail, kl_err *err)
{
    char name[24];
    *of = NULL;
    *head = *tail = 0;
    if (!kl_value_get(l, "of"))
        return KL_OK;
    name_of(number(l, "of", 0), name);
    *of = kl_map_get(b->sets, name);
    if (!*of)
        return wrong(b, err, "set %s is not in the recording: lines are missing", name);
    int64_t h = number(l, "head", 0), t = number(l, "tail", 0);
    if (h < 0 || t < 0 || (uint64_t)h > (*of)->n || (uint64_t)t > (*of)->n - (uint64_t)h)
        return wrong(b, err, "a set takes more items of set %s than it has", name);
    *head = (size_t)h;
    *tail = (size_t)t;
    return KL_OK;
}

static void set_free(void *p)
{
    kl_past_set *s = p;
    kl_free(s->v);
    kl_free(s);
}

static kl_status read_set(book *b, const kl_value *l, kl_err *err)
{
    const kl_past_set *of;
    size_t head, tail, n = 0;
    const kl_value *ids = kl_value_get(l, "ids");
    kl_status st = set_begin(b, l, &of, &head, &tail, err);
    b->items += head + tail + kl_value_len(ids);
    if (!st && b->items > ITEMS_MAX)
        st = wrong(b, err,
            "lists of more than %zu objects in all: replay a shorter recording (run --record-max)",
            ITEMS_MAX);
    if (st)
        return st;
    kl_past_set *s = kl_new(kl_past_set);
    s->v = kl_new_array(const kl_value *, head + tail + kl_value_len(ids) + 1);
    for (size_t i = 0; i < head; i++)
        s->v[n++] = of->v[i];
    for (size_t i = 0; i < kl_value_len(ids) && !st; i++) {
        char name[24];
        int64_t id = 0;
        (void)kl_value_int(kl_value_item(ids, i), &id);
        name_of(id, name);
        s->v[n] = kl_map_get(b->objects, name);
        if (!s->v[n++])
            st = wrong(b, err, "object %s is not in the recording: lines are missing", name);
    }
    for (size_t i = 0; i < tail; i++)
        s->v[n++] = of->v[of->n - tail + i];
    s->n = n;
    char name[24];
    name_of(number(l, "s", 0), name);
    if (!st && kl_map_has(b->sets, name))
        st = wrong(b, err, "set %s is recorded twice", name);
    if (st)
        set_free(s);
    else
        kl_map_set(b->sets, name, s);
    return st;
}

/* --- kinds and caches --------------------------------------------------------------------- */

static kl_status read_kind(book *b, const kl_value *l, kl_err *err)
{
    const char *name, *group, *version, *is, *plural;
    kl_status st = need_text(b, l, "kind", &name, err);
    if (st || (st = need_text(b, l, "group", &group, err)) || (st = need_text(b, l, "version", &version, err))
        || (st = need_text(b, l, "is", &is, err)) || (st = need_text(b, l, "plural", &plural, err)))
        return st;
    kl_past_kind *k = NULL;
    for (size_t i = 0; i < b->p.n_kinds; i++)
        if (!strcmp(b->p.kinds[i].name, name))
            k = &b->p.kinds[i];
    if (k)
        kl_resource_fini(&k->resource);
    else if (b->p.n_kinds == KINDS_MAX)
        return wrong(b, err, "more than %d kinds", KINDS_MAX);
    else
        k = ADD(b->p.kinds, b->p.n_kinds);
    const kl_value *subs = kl_value_get(l, "sub");
    size_t n = 0;
    *k = (kl_past_kind){.name = name,
        .resource = {.group = kl_strdup(group),
            .version = kl_strdup(version),
            .kind = kl_strdup(is),
            .plural = kl_strdup(plural),
            .singular = kl_strdup(text(l, "singular")),
            .namespaced = kl_value_bool(kl_value_get(l, "namespaced"), false),
            .subresources = kl_new_array(char *, kl_value_len(subs) + 1)}};
    for (size_t i = 0; i < kl_value_len(subs); i++)
        if (kl_value_str(kl_value_item(subs, i)))
            k->resource.subresources[n++] = kl_strdup(kl_value_str(kl_value_item(subs, i)));
    return KL_OK;
}

static kl_past_event *event(book *b, kl_past_what what)
{
    kl_past_event *e = ADD(b->p.events, b->p.n_events);
    *e = (kl_past_event){.what = what};
    return e;
}

static kl_status read_cache(book *b, const kl_value *l, kl_err *err)
{
    const char *label, *kind;
    char name[24];
    kl_status st = need_text(b, l, "label", &label, err);
    if (st || (st = need_text(b, l, "kind", &kind, err)))
        return st;
    name_of(number(l, "c", 0), name);
    if (kl_map_has(b->caches, name)) /* each file begins with all caches */
        return KL_OK;
    if (b->p.n_caches == KINDS_MAX)
        return wrong(b, err, "more than %d caches", KINDS_MAX);
    kl_past_cache *c = ADD(b->p.caches, b->p.n_caches);
    *c = (kl_past_cache){.label = label,
        .kind = kind,
        .labels = text(l, "labels"),
        .fields = text(l, "fields"),
        .metadata = kl_value_bool(kl_value_get(l, "metadata"), false)};
    kl_map_set(b->caches, name, (void *)(uintptr_t)b->p.n_caches);
    event(b, KL_PAST_CACHE)->cache = b->p.n_caches - 1;
    return KL_OK;
}

static kl_status cache_event(book *b, const kl_value *l, kl_past_what what, kl_past_event **out, kl_err *err)
{
    char name[24];
    name_of(number(l, "c", 0), name);
    size_t at = (size_t)(uintptr_t)kl_map_get(b->caches, name);
    if (!at)
        return wrong(b, err, "cache %s is not in the recording: lines are missing", name);
    *out = event(b, what);
    (*out)->cache = at - 1;
    return KL_OK;
}

static kl_status read_put(book *b, const kl_value *l, kl_err *err)
{
    const kl_value *v;
    kl_past_event *e;
    kl_status st = object_of(b, l, &v, err);
    if (!st && !v)
        st = wrong(b, err, "the record \"put\" has no \"o\"");
    if (!st && !(st = cache_event(b, l, KL_PAST_PUT, &e, err)))
        e->object = v;
    return st;
}

static kl_status read_gone(book *b, const kl_value *l, kl_err *err)
{
    const char *key;
    kl_past_event *e;
    kl_status st = need_text(b, l, "key", &key, err);
    if (!st && !(st = cache_event(b, l, KL_PAST_GONE, &e, err)))
        e->key = key;
    return st;
}

static kl_status read_closed(book *b, const kl_value *l, kl_err *err)
{
    kl_past_event *e;
    return cache_event(b, l, KL_PAST_CLOSED, &e, err);
}

/* --- runs --------------------------------------------------------------------------------- */

static kl_status read_began(book *b, const kl_value *l, kl_err *err)
{
    kl_past_run r = {.after = -1};
    kl_status st = need_text(b, l, "r", &r.id, err);
    if (st || (st = need_text(b, l, "controller", &r.controller, err))
        || (st = need_text(b, l, "key", &r.key, err)) || (st = object_of(b, l, &r.object, err)))
        return st;
    if (!r.object)
        return wrong(b, err, "the record \"began\" has no \"o\"");
    if (kl_map_has(b->runs, r.id))
        return wrong(b, err, "run %s begins twice", r.id);
    int64_t worker = number(l, "worker", 1);
    if (worker < 1 || worker > WORKERS_MAX)
        return wrong(b, err, "the worker of run %s must be from 1 to %d", r.id, WORKERS_MAX);
    r.worker = (int)worker;
    r.attempt = (int)number(l, "attempt", 1);
    r.generation = (int)number(l, "generation", 1);
    r.epoch = number(l, "epoch", 0);
    r.at = number(l, "at", 0);
    r.params = kl_value_get(l, "params");
    r.memo = kl_value_get(l, "memo");
    r.why = text(l, "why");
    r.by = kl_value_get(l, "by");
    r.events = (unsigned)number(l, "events", 0);
    kl_past_run *mine = kl_new(kl_past_run);
    *mine = r;
    *ADD(b->p.runs, b->p.n_runs) = mine;
    kl_map_set(b->runs, r.id, mine);
    kl_past_event *e = event(b, KL_PAST_BEGAN);
    e->run = mine;
    e->at = r.at;
    return KL_OK;
}

/* The run of a line. NULL: it began before the recording, or is over. */
static kl_status run_of(book *b, const kl_value *l, kl_past_run **out, kl_err *err)
{
    const char *id;
    kl_status st = need_text(b, l, "r", &id, err);
    if (st)
        return st;
    *out = kl_map_get(b->runs, id);
    if (*out && (*out)->ended)
        return wrong(b, err, "run %s continues after its end", id);
    if (!*out && !kl_map_has(b->headless, id)) {
        kl_map_set(b->headless, id, b);
        b->p.headless++;
    }
    return KL_OK;
}

static kl_status read_saw(book *b, const kl_value *l, size_t list, kl_err *err)
{
    kl_past_run *r;
    kl_past_saw s = {.ns = text(l, "ns"), .name = text(l, "name"), .query = text(l, "query")};
    kl_status st = run_of(b, l, &r, err);
    if (st || !r || (st = need_text(b, l, "kind", &s.kind, err)))
        return st;
    if (list == 1) {
        char name[24];
        name_of(number(l, "s", 0), name);
        s.set = kl_map_get(b->sets, name);
        if (!s.set)
            return wrong(b, err, "set %s is not in the recording: lines are missing", name);
        if (!s.query)
            s.query = "";
    } else if (!s.name) {
        return wrong(b, err, "the record \"%s\" has no \"name\"", text(l, "t"));
    } else if ((st = object_of(b, l, &s.found, err))) {
        return st;
    }
    kl_past_saws *to = list == 1 ? &r->lists : list ? &r->believed : &r->gets;
    *ADD(to->v, to->n) = s;
    return KL_OK;
}

static kl_status read_get(book *b, const kl_value *l, kl_err *err) { return read_saw(b, l, 0, err); }
static kl_status read_list(book *b, const kl_value *l, kl_err *err) { return read_saw(b, l, 1, err); }
static kl_status read_believed(book *b, const kl_value *l, kl_err *err) { return read_saw(b, l, 2, err); }

static kl_status read_clock(book *b, const kl_value *l, kl_err *err)
{
    kl_past_run *r;
    kl_status st = run_of(b, l, &r, err);
    if (!st && r)
        *ADD(r->clocks, r->n_clocks) = number(l, "at", 0);
    return st;
}

static kl_status read_asked(book *b, const kl_value *l, kl_err *err)
{
    kl_past_run *r;
    kl_past_asked q = {.op = kl_value_get(l, "op"),
        .kind = text(l, "kind"),
        .elsewhere = kl_value_bool(kl_value_get(l, "elsewhere"), false)};
    kl_status st = run_of(b, l, &r, err);
    if (st || !r || (st = need_text(b, l, "what", &q.what, err)))
        return st;
    if (number(l, "n", 0) != (int64_t)r->n_asked + 1)
        return wrong(b, err, "question %zu of run %s is missing", r->n_asked + 1, r->id);
    if (!strcmp(q.what, "call") && kl_value_type(q.op) != KL_OBJECT)
        return wrong(b, err, "the record \"asked\" of a call has no \"op\"");
    *ADD(r->asked, r->n_asked) = q;
    return KL_OK;
}

static kl_status status_of(const char *name)
{
    for (int s = KL_OK + 1; s <= KL_EINTERNAL; s++)
        if (name && !strcmp(kl_status_name((kl_status)s), name))
            return (kl_status)s;
    return KL_EINTERNAL;
}

static kl_status read_answered(book *b, const kl_value *l, kl_err *err)
{
    kl_past_run *r;
    kl_status st = run_of(b, l, &r, err);
    if (st || !r)
        return st;
    int64_t n = number(l, "n", 0);
    if (n < 1 || (uint64_t)n > r->n_asked)
        return wrong(b, err,
            "an answer to question %" PRId64 " of run %s, which was not asked: lines are missing", n, r->id);
    kl_past_asked *q = &r->asked[n - 1];
    if (q->answered)
        return wrong(b, err, "question %" PRId64 " of run %s is answered twice", n, r->id);
    q->answered = true;
    q->at = number(l, "at", 0);
    q->code = (int)number(l, "code", 0);
    q->body = kl_value_get(l, "v");
    q->error = kl_value_get(l, "error");
    q->status = q->error ? status_of(text(q->error, "is")) : KL_OK;
    kl_past_event *e = event(b, KL_PAST_ANSWERED);
    e->run = r;
    e->n = (size_t)n - 1;
    e->at = q->at;
    return KL_OK;
}

static kl_status read_ended(book *b, const kl_value *l, kl_err *err)
{
    kl_past_run *r;
    kl_status st = run_of(b, l, &r, err);
    if (st || !r)
        return st;
    r->cut = kl_value_bool(kl_value_get(l, "cut"), false);
    if (!r->cut && (st = need_text(b, l, "result", &r->result, err)))
        return st;
    r->ended = true;
    r->after = number(l, "after", -1);
    r->message = text(l, "message");
    kl_past_event *e = event(b, KL_PAST_ENDED);
    e->run = r;
    e->at = number(l, "at", 0);
    return KL_OK;
}

/* --- lines -------------------------------------------------------------------------------- */

static kl_status read_object(book *b, const kl_value *l, kl_err *err)
{
    const kl_value *v;
    kl_status st = object_of(b, l, &v, err);
    return st || v ? st : wrong(b, err, "the record \"object\" has no \"o\"");
}

static kl_status read_nothing(book *b, const kl_value *l, kl_err *err)
{
    (void)b, (void)l, (void)err;
    return KL_OK;
}

static const struct {
    const char *t;
    kl_status (*read)(book *b, const kl_value *l, kl_err *err);
} readers[] = {{"put", read_put}, {"get", read_get}, {"list", read_list}, {"set", read_set},
    {"object", read_object}, {"clock", read_clock}, {"believed", read_believed}, {"began", read_began},
    {"asked", read_asked}, {"answered", read_answered}, {"ended", read_ended}, {"gone", read_gone},
    {"kind", read_kind}, {"cache", read_cache}, {"closed", read_closed}, {"synced", read_nothing},
    {"scripts", read_nothing}};

static void date(book *b)
{
    const kl_past_event *e = b->p.n_events ? &b->p.events[b->p.n_events - 1] : NULL;
    if (!e || e->at <= 0)
        return;
    if (!b->p.began)
        b->p.began = e->at;
    b->p.ended = e->at;
}

static kl_status read_record(book *b, const kl_value *l, kl_err *err)
{
    const char *t = text(l, "t");
    if (!t)
        return wrong(b, err, "not a record: it has no \"t\"");
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (!strcmp(t, readers[i].t)) {
            kl_status st = readers[i].read(b, l, err);
            if (!st)
                date(b);
            return st;
        }
    return wrong(b, err, "a record \"%s\", unknown to this version of kubelua", t);
}

static kl_status read_header(book *b, const kl_value *l, bool first, kl_err *err)
{
    const char *t = text(l, "t"), *recording = text(l, "recording");
    if (!t || strcmp(t, "tape") || !recording)
        return kl_fail(err, KL_ESYNTAX,
            "%s is not a recording of kubelua run --record: its first line should begin with {\"t\":\"tape\"",
            b->name);
    int64_t format = number(l, "format", 0);
    if (format != KL_RECORD_FORMAT)
        return wrong(b, err,
            "is of format %" PRId64
            ", written by kubelua %s; this one reads format %d: replay it with that version",
            format, text(l, "version") ? text(l, "version") : "of another version", KL_RECORD_FORMAT);
    if (!first)
        return KL_OK;
    b->p.version = text(l, "version");
    b->p.recording = recording;
    b->p.secrets = text(l, "secrets");
    b->p.scripts = kl_value_get(l, "scripts");
    b->p.first_file = (uint64_t)number(l, "file", 1);
    return KL_OK;
}

static kl_status read_line(book *b, const char *line, size_t n, kl_err *err)
{
    const kl_value *l;
    kl_status st = kl_value_decode_like(line, n, b->n_lines ? b->lines[b->n_lines - 1] : NULL, &l, err);
    if (st && b->line == 1)
        return kl_fail(err, KL_ESYNTAX,
            "%s is not a recording of kubelua run --record: its first line is not JSON", b->name);
    if (st) {
        kl_err_prefix(err, "%s:%zu: no record", b->name, b->line);
        return st;
    }
    *ADD(b->lines, b->n_lines) = l;
    return b->line == 1 ? read_header(b, l, !b->p.n_files++, err) : read_record(b, l, err);
}

/* `last`: this is the last file, whose last line may be torn. */
static kl_status read_text(book *b, const char *name, const char *all, size_t n, bool last, kl_err *err)
{
    kl_status st = KL_OK;
    b->name = name;
    b->line = 0;
    for (size_t at = 0; at < n && !st;) {
        const char *end = memchr(all + at, '\n', n - at);
        b->line++;
        if (!end && last && b->line > 1) {
            b->p.torn = true;
            return KL_OK;
        }
        size_t len = end ? (size_t)(end - all) - at : n - at;
        st = len > LINE_MAX ? wrong(b, err, "a line of %zu MiB", len >> 20)
                            : read_line(b, all + at, len, err);
        at += len + 1;
    }
    if (!st && !b->line)
        return kl_fail(err, KL_ESYNTAX, "%s is empty, not a recording", name);
    return st;
}

/* --- files -------------------------------------------------------------------------------- */

static book *book_new(void)
{
    book *b = kl_new(book);
    b->objects = kl_map_new();
    b->sets = kl_map_new();
    b->runs = kl_map_new();
    b->caches = kl_map_new();
    b->headless = kl_map_new();
    return b;
}

static void run_free(kl_past_run *r)
{
    kl_free(r->gets.v);
    kl_free(r->lists.v);
    kl_free(r->believed.v);
    kl_free(r->clocks);
    kl_free(r->asked);
    kl_free(r);
}

void kl_past_free(kl_past *p)
{
    book *b = (book *)p;
    if (!b)
        return;
    for (size_t i = 0; i < p->n_runs; i++)
        run_free(p->runs[i]);
    for (size_t i = 0; i < p->n_kinds; i++)
        kl_resource_fini(&p->kinds[i].resource);
    kl_map_free(b->objects, NULL);
    kl_map_free(b->sets, set_free);
    kl_map_free(b->runs, NULL);
    kl_map_free(b->caches, NULL);
    kl_map_free(b->headless, NULL);
    for (size_t i = 0; i < b->n_lines; i++)
        kl_value_unref(b->lines[i]);
    kl_free(b->lines);
    kl_free(p->runs);
    kl_free(p->kinds);
    kl_free(p->caches);
    kl_free(p->events);
    kl_free(b);
}

static kl_status given(book *b, kl_status st, kl_past **out)
{
    if (st)
        kl_past_free(&b->p);
    else
        *out = &b->p;
    return st;
}

kl_status kl_past_read_text(const char *name, const char *all, size_t n, kl_past **out, kl_err *err)
{
    book *b = book_new();
    return given(b, read_text(b, name, all, n, true, err), out);
}

static kl_status read_file(const char *path, kl_buf *out, kl_err *err)
{
    kl_err why = KL_ERR_INIT;
    kl_buf_clear(out);
    kl_status st = kl_file_read_given(path, "a recording", out, &why);
    if (st)
        (void)!kl_fail(err, st, "cannot read %s", kl_err_message(&why));
    kl_err_fini(&why);
    return st;
}

/* Whether the first line says that the file is the one before `number_` of this recording. */
static bool comes_before(const char *path, const char *recording, int64_t number_)
{
    kl_buf b = KL_BUF_INIT;
    bool is = false;
    if (!kl_file_read(path, "a recording", &b, NULL) && b.len) {
        const char *end = memchr(b.data, '\n', b.len);
        const kl_value *l = NULL;
        if (end && !kl_value_decode(b.data, (size_t)(end - b.data), &l, NULL))
            is = text(l, "recording") && !strcmp(text(l, "recording"), recording)
                && number(l, "file", 0) == number_ - 1;
        kl_value_unref(l);
    }
    kl_buf_fini(&b);
    return is;
}

/* How many older files of the recording (PATH.1, PATH.2, ...) precede PATH. */
static int files_before(const char *path, const char *all, size_t n)
{
    int files = 0;
    const char *end = n ? memchr(all, '\n', n) : NULL;
    const kl_value *l = NULL;
    if (!end || kl_value_decode(all, (size_t)(end - all), &l, NULL) || !text(l, "recording"))
        return kl_value_unref(l), 0;
    for (bool more = true; more && files < KL_TAPE_FILES; files += more) {
        char *name = kl_sprintf("%s.%d", path, files + 1);
        more = comes_before(name, text(l, "recording"), number(l, "file", 0) - files);
        kl_free(name);
    }
    kl_value_unref(l);
    return files;
}

kl_status kl_past_read(const char *path, kl_past **out, kl_err *err)
{
    kl_buf all = KL_BUF_INIT;
    kl_status st = read_file(path, &all, err);
    if (st) {
        kl_buf_fini(&all);
        return st;
    }
    book *b = book_new();
    int before = files_before(path, kl_buf_str(&all), all.len);
    for (int i = before; i >= 0 && !st; i--) {
        char *name = i ? kl_sprintf("%s.%d", path, i) : kl_strdup(path);
        if (before)
            st = read_file(name, &all, err);
        if (!st)
            st = read_text(b, name, kl_buf_str(&all), all.len, !i, err);
        b->name = NULL;
        kl_free(name);
    }
    kl_buf_fini(&all);
    return given(b, st, out);
}
