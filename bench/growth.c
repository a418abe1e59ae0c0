/* growth.c - what an object costs as a cluster grows: growth small|realistic|stripped N [FILE]; one line
 * of JSON (README.md).
 *
 * N objects come through the real path - stream decoder, reflector, store - as pages of a list, then
 * EVENTS changes as a watch. Only the network is missing: the text is made here, in pieces of 64 KB, and
 * making it is not counted. So a million objects need no server that holds them.
 *
 *   small       ConfigMaps of some 400 bytes, each with a name, uid, version and value of its own
 *   realistic   the pods of FILE (gen.py's); once they are used up they come again, in turn after turn, as
 * the pods of other Deployments on other nodes: names, uids, hashes, times, addresses, ids of containers and
 *               images are new
 *   stripped    the same without managedFields
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cache/informer.h"
#include "figures.h"
#include "model/object.h"
#include "wire/stream.h"
#include "podlist.h"

#define PIECE ((size_t)64 << 10)
#define EVENTS 20000
#define STRIDE 7919 /* between the objects of two events: a prime, so all of them have their turn */
#define MAX_OBJECT ((size_t)8 << 20)

static void die(const char *what, const char *why)
{
    fprintf(stderr, "growth: %s: %s\n", what, why);
    exit(1);
}

static kl_time cpu(void) { return kl_clock_thread_cpu(); }

/* ---------------------------------------------------------------- texts: realistic */

/* A piece of a template that is the pod's, its Deployment's or its node's own: on each turn its letters
 * move on, by steps that depend on the turn and the place within the piece; so one piece stays one piece
 * in all places and pods of a turn. */
typedef enum alphabet { HEX, DIGITS, SUFFIX, WORD } alphabet;
typedef struct mark {
    uint16_t at;
    uint8_t n;
    uint8_t alphabet;
} mark;
typedef struct template
{
    const char *text;
    size_t n;
    mark *marks;
    size_t n_marks;
}
template;

static podlist pods;
static template *templates;

static const char *const LETTERS[] = {
    "0123456789abcdef", "0123456789", "bcdfghjklmnpqrstvwxz2456789", "abcdefghijklmnopqrstuvwxyz"};

/* Marks every place of `token` in the template, unless it is marked already. */
static void mark_token(template *t, const char *token, size_t n, alphabet a)
{
    const char *end = t->text + t->n;
    for (size_t i = 0; i < t->n_marks; i++)
        if (t->marks[i].n == n && !memcmp(t->text + t->marks[i].at, token, n))
            return;
    for (const char *p = t->text; (p = memmem(p, (size_t)(end - p), token, n)); p += n) {
        t->marks = kl_realloc(t->marks, (t->n_marks + 1) * sizeof *t->marks);
        t->marks[t->n_marks++] = (mark){(uint16_t)(p - t->text), (uint8_t)n, a};
    }
}

/* The text behind each `before`, up to one of `until`: at most 64 bytes, as long as an id is. */
static void mark_after(template *t, const char *before, const char *until, alphabet a)
{
    const char *end = t->text + t->n;
    size_t skip = strlen(before);
    for (const char *p = t->text; (p = memmem(p, (size_t)(end - p), before, skip));) {
        p += skip;
        mark_token(t, p, strcspn(p, until), a);
    }
}

static void mark_template(template *t)
{
    if (t->n > UINT16_MAX)
        die("template", "a pod of more than 64 KB is not a template");
    mark_after(t, "\"pod-template-hash\":\"", "\"", SUFFIX);
    if (!t->n_marks)
        die("template", "this list was not written by gen.py: a pod without pod-template-hash");
    const char *hash = t->text + t->marks[0].at;
    size_t n = t->marks[0].n;
    for (const char *p = t->text; (p = memmem(p, (size_t)(t->text + t->n - p), hash, n)); p += n)
        if (p[n] == '-' && p[n + 6] == '"') { /* the pod's name: -xxxxx */
            mark_token(t, p + n + 1, 5, SUFFIX);
            break;
        }
    /* the Deployment, and what is called after it */
    mark_after(t, "\"app\":\"", "\"", WORD);
    mark_after(t, "kube-api-access-", "\"\\", SUFFIX);
    mark_after(t, "\"uid\":\"", "\"", HEX);
    mark_after(t, "containerd://", "\"", HEX);
    mark_after(t, "@sha256:", "\"", HEX);
    mark_after(t, "\"checksum/config\":\"", "\"", HEX);
    mark_after(t, "\"resourceVersion\":\"", "\"", DIGITS);
    mark_after(t, "\"creationTimestamp\":\"", "\"", DIGITS);
    mark_after(t, "\"kubectl.kubernetes.io/restartedAt\":\"", "\"", DIGITS);
    mark_after(t, "\"podIP\":\"", "\"", DIGITS);
    mark_after(t, "\"hostIP\":\"", "\"", DIGITS);
    mark_after(t, "\"nodeName\":\"ip-", ".", DIGITS);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void move_on(char *p, const mark *m, uint64_t turn)
{
    const char *letters = LETTERS[m->alphabet];
    size_t size = strlen(letters);
    uint64_t steps = 0;
    for (size_t k = 0; k < m->n; k++, steps >>= 8) {
        if (k % 8 == 0)
            steps = mix(turn * 64 + k / 8 + 1);
        const char *at = memchr(letters, p[k], size);
        if (at) /* '-', '.' and the like stay */
            p[k] = letters[((size_t)(at - letters) + (steps & 255)) % size];
    }
}

static size_t write_pod(char *out, size_t i)
{
    const template *t = &templates[i % pods.len];
    uint64_t turn = i / pods.len;
    memcpy(out, t->text, t->n);
    for (size_t k = 0; turn && k < t->n_marks; k++)
        move_on(out + t->marks[k].at, &t->marks[k], turn);
    return t->n;
}

/* ---------------------------------------------------------------- texts: small */

static size_t write_card(char *out, size_t i)
{
    uint64_t a = mix(2 * i + 1), b = mix(2 * i + 2);
    return (size_t)sprintf(out,
        "{\"metadata\":{\"name\":\"card-%07zu-%05x\",\"namespace\":\"team-%02zu\",\"uid\":\"%08x-%04x-4%03x-"
        "a%03x-%012llx\","
        "\"resourceVersion\":\"%09zu\",\"creationTimestamp\":\"2026-%02u-%02uT%02u:%02u:%02uZ\",\"labels\":{"
        "\"app\":\"app-%03u\",\"tier\":\"%s\"}},"
        "\"data\":{\"color\":\"%s\",\"note\":\"written for object %zu, checked by "
        "%08x\",\"bench.example.com/sent\":\"0000000000000000000\",\"limits\":\"cpu=%u00m,memory=%uMi\"}}",
        i, (unsigned)(a & 0xfffff), i % 50, (unsigned)(a >> 32), (unsigned)(a >> 16 & 0xffff),
        (unsigned)(b & 0xfff), (unsigned)(b >> 12 & 0xfff), (unsigned long long)(b >> 16), 100000000 + i,
        (unsigned)(a % 11 + 1), (unsigned)(b % 27 + 1), (unsigned)(a % 24), (unsigned)(b % 60),
        (unsigned)(a % 60), (unsigned)(i % 500), i % 3 ? "web" : "batch", i % 2 ? "green" : "yellow", i,
        (unsigned)(b >> 32), (unsigned)(a % 40 + 1), (unsigned)(b % 4096 + 64));
}

/* ---------------------------------------------------------------- the kinds of objects */

static const struct kind {
    const char *name, *kind, *list;
    size_t (*write)(char *out, size_t i);
    bool from_file, drop_managed_fields;
} KINDS[] = {
    {"small", "ConfigMap", "ConfigMapList", write_card, false, false},
    {"realistic", "Pod", "PodList", write_pod, true, false},
    {"stripped", "Pod", "PodList", write_pod, true, true},
};
static const struct kind *K;
static size_t N;

/* ---------------------------------------------------------------- the source: the network's place */

typedef struct job {
    void (*fn)(void *);
    void *arg;
} job;

/* One request is open at a time; posted functions run in order, between requests. Timers never come due:
 * nothing is late. */
static struct source {
    job jobs[64];
    size_t head, tail;
    bool list, watch;
    uint64_t ids;
    size_t at, limit; /* of the list: the next object, objects of a page */
    kl_source_sink sink;
    kl_stream *stream; /* that the pieces go to */
    char *buf;
    size_t n_buf;
    kl_time made; /* CPU spent on making texts */
    uint64_t bytes;
} S;

static void source_post(void *self, void (*fn)(void *), void *arg)
{
    (void)self;
    if (S.tail - S.head == sizeof S.jobs / sizeof *S.jobs)
        die("source", "too many jobs are waiting");
    S.jobs[S.tail++ % (sizeof S.jobs / sizeof *S.jobs)] = (job){fn, arg};
}

static uint64_t source_list(void *self, const kl_list_request *r, const kl_source_sink *sink)
{
    (void)self;
    S.list = true;
    S.sink = *sink;
    S.at = r->continue_token ? (size_t)atol(r->continue_token) : 0;
    S.limit = r->limit ? (size_t)r->limit : N;
    return ++S.ids;
}

static uint64_t source_watch(void *self, const kl_watch_request *r, const kl_source_sink *sink)
{
    (void)self, (void)r;
    S.watch = true;
    S.sink = *sink;
    return ++S.ids;
}

static void source_cancel(void *self, uint64_t id)
{
    (void)self, (void)id;
    S.list = S.watch = false;
}

static uint64_t source_timer(void *self, kl_time after, void (*fn)(void *), void *arg)
{
    (void)self, (void)after, (void)fn, (void)arg;
    return ++S.ids;
}

static void source_timer_cancel(void *self, uint64_t id) { (void)self, (void)id; }
static void source_free(void *self) { (void)self; }

static void run_jobs(void)
{
    while (S.head != S.tail) {
        job j = S.jobs[S.head++ % (sizeof S.jobs / sizeof *S.jobs)];
        j.fn(j.arg);
    }
}

static void feed(const char *p, size_t n)
{
    kl_err err = KL_ERR_INIT;
    S.bytes += n;
    if (kl_stream_feed(S.stream, p, n, &err))
        die("feed", kl_err_message(&err));
}

/* Hands whole pieces over and keeps the rest, or hands over all. */
static void flush(bool all)
{
    size_t at = 0;
    for (; S.n_buf - at >= PIECE; at += PIECE)
        feed(S.buf + at, PIECE);
    if (all) {
        feed(S.buf + at, S.n_buf - at);
        at = S.n_buf;
    }
    memmove(S.buf, S.buf + at, S.n_buf -= at);
}

static void say(const char *text)
{
    size_t n = strlen(text);
    memcpy(S.buf + S.n_buf, text, n);
    S.n_buf += n;
}

static kl_status pass_item(void *arg, const kl_value *o, kl_err *err)
{
    (void)arg;
    return S.sink.item(S.sink.arg, o, err);
}
static kl_status pass_event(void *arg, const char *type, const kl_value *o, kl_err *err)
{
    (void)arg;
    return S.sink.event(S.sink.arg, type, o, err);
}

static const kl_value *pass_known(void *arg, const char *ns, size_t nslen, const char *name, size_t namelen)
{
    (void)arg;
    return S.sink.known(S.sink.arg, ns, nslen, name, namelen);
}

/* As the client opens it (core/informers/source.c). */
static void open_stream(bool watch)
{
    kl_stream_handler h = {.item = pass_item,
        .event = pass_event,
        .known = S.sink.known ? pass_known : NULL,
        .api_version = watch ? NULL : "v1",
        .kind = watch ? NULL : K->kind,
        .max_object = MAX_OBJECT,
        .drop_managed_fields = K->drop_managed_fields};
    S.stream = watch ? kl_stream_watch_new(&h) : kl_stream_list_new(&h);
}

static void serve_page(void)
{
    char head[160];
    size_t end = S.at + S.limit < N ? S.at + S.limit : N;
    open_stream(false);
    snprintf(head, sizeof head,
        "{\"kind\":\"%s\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"200000000\"", K->list);
    say(head);
    if (end < N) {
        snprintf(head, sizeof head, ",\"continue\":\"%zu\",\"remainingItemCount\":%zu", end, N - end);
        say(head);
    }
    say("},\"items\":[");
    while (S.at < end) {
        kl_time began = cpu();
        for (bool first = true; S.at < end && S.n_buf < 2 * PIECE; S.at++, first = false) {
            if (!first || S.at % S.limit)
                say(",");
            S.n_buf += K->write(S.buf + S.n_buf, S.at);
        }
        S.made += cpu() - began;
        flush(false);
    }
    say("]}\n");
    flush(true);
    const kl_value *envelope;
    kl_err err = KL_ERR_INIT;
    if (kl_stream_finish(S.stream, &envelope, &err))
        die("list", kl_err_message(&err));
    kl_stream_free(S.stream);
    S.list = false;
    S.sink.done(S.sink.arg, KL_OK, 200, envelope, NULL);
    kl_value_unref(envelope);
}

/* The text of object i again, with the fields that every change of gen.py's pods touches. */
static void write_change(size_t i, size_t version)
{
    static const char RV[] = "\"resourceVersion\":\"", SENT[] = "\"bench.example.com/sent\":\"";
    char digits[32];
    char *o = S.buf + S.n_buf;
    size_t n = K->write(o, i);
    char *rv = memmem(o, n, RV, sizeof RV - 1), *sent = memmem(o, n, SENT, sizeof SENT - 1);
    snprintf(digits, sizeof digits, "%09zu", 200000001 + version);
    memcpy(rv + sizeof RV - 1, digits, 9);
    snprintf(digits, sizeof digits, "%019zu", 1000000007 * (version + 1));
    memcpy(sent + sizeof SENT - 1, digits, 19);
    char head[96];
    int k = snprintf(head, sizeof head,
        "{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"v1\",", K->kind);
    memmove(o + k, o + 1, n - 1); /* the brace is in the head */
    memcpy(o, head, (size_t)k);
    S.n_buf += (size_t)k + n - 1;
    say("}\n");
}

/* As a server sends them: each event a piece of its own. */
static void serve_events(void)
{
    open_stream(true);
    S.sink.opened(S.sink.arg);
    for (size_t e = 0; e < EVENTS; e++) {
        kl_time began = cpu();
        write_change(e * STRIDE % N, e);
        S.made += cpu() - began;
        flush(true);
        S.sink.lull(S.sink.arg);
        run_jobs();
    }
}

/* ---------------------------------------------------------------- main */

static void stopped(void *arg) { *(bool *)arg = true; }

int main(int argc, char **argv)
{
    if (argc < 3)
        die("usage", "growth small|realistic|stripped N [FILE]");
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(argv[1], KINDS[i].name))
            K = &KINDS[i];
    N = (size_t)atol(argv[2]);
    if (!K || !N || (K->from_file && argc < 4))
        die("usage", "growth small|realistic|stripped N [FILE]");
    if (K->from_file) {
        pods = podlist_open(argv[3], N);
        templates = kl_new_array(template, pods.len);
        for (size_t i = 0; i < pods.len; i++) {
            templates[i] = (template){.text = pods.text + pods.item[i].at, .n = pods.item[i].n};
            mark_template(&templates[i]);
        }
    }
    S.buf = kl_alloc(4 * PIECE + UINT16_MAX);
    memset(S.buf, 0, 4 * PIECE + UINT16_MAX);
    kl_source source = {.list = source_list,
        .watch = source_watch,
        .cancel = source_cancel,
        .timer = source_timer,
        .timer_cancel = source_timer_cancel,
        .post = source_post,
        .free = source_free,
        .lulls = true};
    double base = memory_mb("RssAnon");
    kl_time began = cpu();

    kl_informer_options o = {.source = source,
        .clock = kl_clock_real(),
        .resource = "objects",
        .api_version = "v1",
        .kind = K->kind,
        .seed = 1};
    kl_informer *inf = kl_informer_new(&o);
    kl_informer_start(inf);
    for (run_jobs(); !S.watch; run_jobs())
        if (S.list)
            serve_page();
        else
            die("informer", "it neither lists nor watches");
    if (kl_informer_count(inf) != N)
        die("informer", "it holds another number of objects than it was sent");
    double sync_ns = (double)(cpu() - began - S.made), bytes = (double)S.bytes;
    double after = memory_mb("RssAnon");

    began = cpu();
    kl_time made = S.made;
    serve_events();
    double event_ns = (double)(cpu() - began - (S.made - made));

    printf("{\"peer\":\"kubelua\",\"objects\":\"%s\",\"n\":%zu,\"mb\":%.1f,\"cpu_s\":%.3f,\"us_per_object\":%"
           ".3f,\"mb_s\":%.1f,\"rss_mb\":%.1f,"
           "\"bytes_per_object\":%.0f,\"us_per_event\":%.3f,\"events_rss_mb\":%.1f}\n",
        K->name, N, bytes / 1e6, sync_ns / 1e9, sync_ns / 1e3 / (double)N, bytes / (sync_ns / 1e3),
        after - base, (after - base) * 1048576 / (double)N, event_ns / 1e3 / EVENTS,
        memory_mb("RssAnon") - base);
    fflush(stdout);

    bool over = false;
    kl_informer_stop(inf, stopped, &over);
    while (!over)
        run_jobs();
    kl_informer_unref(inf);
    run_jobs();
    kl_stream_free(S.stream);
    for (size_t i = 0; i < pods.len; i++)
        kl_free(templates[i].marks);
    kl_free(templates);
    kl_free(S.buf);
    if (K->from_file)
        podlist_close(&pods);
    return 0;
}
