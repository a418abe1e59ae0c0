/* store.c - what the store costs by itself: store [N ...]; one line of JSON per figure, its values under
 * the Ns (README.md).
 *
 * N ConfigMaps of some 400 bytes, decoded beforehand: only the store is measured, in CPU nanoseconds of
 * the thread per operation, the least of some rounds. Memory is the heap with the store less the heap
 * without, values apart. Gets by some threads beside a writer at work are in CPU of the readers: flat when
 * nobody waits for anybody. A label that is asked for again and again gets an index: "the first time" is
 * before, "later" with it. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sync.h"
#include "cache/indexer.h"
#include "figures.h"
#include "model/object.h"

#define ROUNDS 3
#define OPS 200000 /* of one kind in a round, at most N of some */
#define LISTED 16  /* objects per list in the figures of lists: of one label, node or namespace */

static size_t N;
static const kl_value **first, **second; /* two states of all objects */
static char (*keys)[52];                 /* theirs, in the order in which they are asked for */

static void die(const char *what)
{
    fprintf(stderr, "store: %s\n", what);
    exit(1);
}

static kl_time cpu(void) { return kl_clock_thread_cpu(); }

#define FIGURES 32
#define SIZES 8

static struct {
    const char *name;
    double value[SIZES];
} figures[FIGURES];
static size_t sizes[SIZES], n_sizes;

static void say(const char *figure, double value)
{
    size_t i = 0;
    while (i < FIGURES - 1 && figures[i].name && strcmp(figures[i].name, figure))
        i++;
    figures[i].name = figure;
    figures[i].value[n_sizes] = value;
}

static void print_figures(void)
{
    for (size_t i = 0; i < FIGURES && figures[i].name; i++) {
        printf("{\"figure\":\"%s\"", figures[i].name);
        for (size_t k = 0; k < n_sizes; k++)
            printf(",\"%zu objects\":%.1f", sizes[k], figures[i].value[k]);
        printf("}\n");
    }
}

static const kl_value *object(size_t i, int version)
{
    char text[700];
    const kl_value *o;
    int n = snprintf(text, sizeof text,
        "{\"metadata\":{\"name\":\"card-%07zu\",\"namespace\":\"team-%05zu\",\"uid\":\"%08zx-7be1-4000-a000-"
        "0123456789ab\","
        "\"resourceVersion\":\"%zu\",\"creationTimestamp\":\"2026-01-01T00:00:00Z\",\"labels\":{\"app\":"
        "\"app-%zu\",\"tier\":\"%s\"}},"
        "\"spec\":{\"node\":\"node-%zu\"},\"data\":{\"value\":\"%020zu\"}}",
        i, i / LISTED, i, 1000000 + i * 2 + (size_t)version, i % (N / LISTED + 1), i % 2 ? "front" : "back",
        i % (N / LISTED + 1), i * 7919 + (size_t)version);
    if (kl_value_decode(text, (size_t)n, &o, NULL))
        die("an object that cannot be decoded");
    return o;
}

static void put(kl_indexer *ix, const kl_value *o)
{
    const kl_value *old;
    if (!kl_indexer_put(ix, o, kl_object_rv(o), &old))
        die("a put that changes nothing");
    kl_value_unref(old);
}

static void fill(kl_indexer *ix, const kl_value **page)
{
    kl_changes c;
    kl_indexer_replace(ix, page, N, "1", &c);
    if (c.len != N)
        die("a list of which not all is news");
    kl_changes_fini(&c);
}

static size_t heap(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static size_t min(size_t a, size_t b) { return a < b ? a : b; }

/* --- the figures -------------------------------------------------------------------------- */

static double list_first_ns(void)
{
    kl_indexer *ix = kl_indexer_new();
    kl_time began = cpu();
    fill(ix, first);
    kl_time took = cpu() - began;
    kl_indexer_free(ix);
    return (double)took / (double)N;
}

static double relist_ns(kl_indexer *ix)
{
    kl_changes c;
    kl_time began = cpu();
    kl_indexer_replace(ix, first, N, "2", &c);
    kl_time took = cpu() - began;
    if (c.len)
        die("a relist of the same that is news");
    kl_changes_fini(&c);
    return (double)took / (double)N;
}

/* Objects that are put have just been decoded, and those that are removed just been looked at: BATCH of
 * them are read before the clock runs. */
#define BATCH 32

static volatile size_t touched;

static void touch(const kl_value **page, size_t from)
{
    for (size_t i = 0; i < BATCH; i++)
        touched += kl_value_bytes(page[(from + i) * 7919 % N]);
}

/* A watch's MODIFIED: one put, one version, for objects in a scattered order; there and back. */
static double put_ns(kl_indexer *ix)
{
    kl_time took = 0;
    size_t n = min(N, OPS) / BATCH * BATCH;
    for (int back = 0; back < 2; back++) {
        const kl_value **page = back ? first : second;
        for (size_t i = 0; i < n; i += BATCH) {
            touch(page, i);
            kl_time began = cpu();
            for (size_t k = i; k < i + BATCH; k++)
                put(ix, page[k * 7919 % N]);
            took += cpu() - began;
        }
    }
    return (double)took / (double)(2 * n);
}

static double remove_add_ns(kl_indexer *ix)
{
    kl_time took = 0;
    size_t n = min(N, OPS) / BATCH * BATCH;
    for (size_t i = 0; i < n; i += BATCH) {
        touch(first, i);
        kl_time began = cpu();
        for (size_t k = i; k < i + BATCH; k++) {
            const kl_value *o = first[k * 7919 % N];
            kl_value_unref(kl_indexer_remove(ix, o, NULL));
            put(ix, o);
        }
        took += cpu() - began;
    }
    return (double)took / (double)(2 * n);
}

static double get_ns(kl_indexer *ix)
{
    kl_time began = cpu();
    for (size_t i = 0; i < OPS; i++)
        kl_value_unref(kl_indexer_lookup(ix, keys[i % N]));
    return (double)(cpu() - began) / OPS;
}

static double list_ns(kl_indexer *ix, const kl_query *q, size_t want, size_t times)
{
    kl_time began = cpu();
    for (size_t i = 0; i < times; i++) {
        kl_objects found;
        if (kl_indexer_list(ix, q, &found, NULL) || found.len != want)
            die("a list of another length than it should have");
        kl_objects_fini(&found);
    }
    return (double)(cpu() - began) / (double)times;
}

static kl_selector *selector(const char *text)
{
    kl_selector *s;
    if (kl_selector_parse(text, &s, NULL))
        die(text);
    return s;
}

/* --- readers beside a writer -------------------------------------------------------------- */

typedef struct crowd {
    kl_indexer *ix;
    atomic_bool done;
    _Atomic int64_t cpu;
} crowd;

static void read_on(void *arg)
{
    crowd *c = arg;
    size_t from = kl_thread_self() * 104729; /* each its own way */
    kl_time began = cpu();
    for (size_t i = 0; i < OPS; i++)
        kl_value_unref(kl_indexer_lookup(c->ix, keys[(from + i) % N]));
    atomic_fetch_add(&c->cpu, cpu() - began);
}

static void write_on(void *arg)
{
    crowd *c = arg;
    const kl_value *old;
    for (size_t i = 0; !atomic_load(&c->done); i++) {
        kl_indexer_put(c->ix, (i / N % 2 ? first : second)[i % N], NULL, &old);
        kl_value_unref(old);
    }
}

static double parallel_ns(kl_indexer *ix, int readers)
{
    crowd c = {.ix = ix};
    kl_thread *t[16], *w = kl_thread_start("writer", write_on, &c);
    for (int i = 0; i < readers; i++)
        t[i] = kl_thread_start("reader", read_on, &c);
    for (int i = 0; i < readers; i++)
        kl_thread_join(t[i]);
    atomic_store(&c.done, true);
    kl_thread_join(w);
    return (double)atomic_load(&c.cpu) / readers / OPS;
}

#define LEAST(call)                                                                                          \
    ({                                                                                                       \
        double least_ = 0;                                                                                   \
        for (int r_ = 0; r_ < ROUNDS; r_++) {                                                                \
            double x_ = (call);                                                                              \
            if (!r_ || x_ < least_)                                                                          \
                least_ = x_;                                                                                 \
        }                                                                                                    \
        least_;                                                                                              \
    })

static void measure(size_t n)
{
    char text[32];
    N = n;
    first = kl_new_array(const kl_value *, n);
    second = kl_new_array(const kl_value *, n);
    for (size_t i = 0; i < n; i++) {
        first[i] = object(i, 0);
        second[i] = object(i, 1);
    }
    keys = kl_alloc(n * sizeof *keys);
    for (size_t i = 0; i < n; i++)
        snprintf(keys[i], sizeof keys[i], "team-%05zu/card-%07zu", i * 7919 % n / LISTED, i * 7919 % n);
    say("first list, ns per object", LEAST(list_first_ns()));
    size_t before = heap();
    kl_indexer *ix = kl_indexer_new();
    fill(ix, first);
    say("memory of the store beside the values, bytes per object", (double)(heap() - before) / (double)n);
    say("list that brings nothing new, ns per object", LEAST(relist_ns(ix)));
    say("object changed, ns", LEAST(put_ns(ix)));
    say("object removed or added, ns", LEAST(remove_add_ns(ix)));
    say("get by key, ns", LEAST(get_ns(ix)));
    say("list of all, ns per object", LEAST(list_ns(ix, NULL, n, 1)) / (double)n);
    snprintf(text, sizeof text, "team-%05zu", n / LISTED / 2);
    say("list of a namespace of 16, ns", LEAST(list_ns(ix, &(kl_query){.ns = text}, LISTED, 1000)));
    before = heap();
    if (kl_indexer_add_path(ix, "node", "spec.node", NULL))
        die("an index that cannot be added");
    say("memory of an index, values of 16 objects, bytes per object", (double)(heap() - before) / (double)n);
    kl_objects some;
    if (kl_indexer_list(ix, &(kl_query){.index = "node", .value = "node-7"}, &some, NULL))
        die("an index that does not answer");
    size_t seven = some.len;
    kl_objects_fini(&some);
    say("list of 16 by an index, ns",
        LEAST(list_ns(ix, &(kl_query){.index = "node", .value = "node-7"}, seven, 1000)));
    kl_selector *both = selector("app=app-7,tier in (front,back)"), *half = selector("tier=front");
    say("selector for 16, the first time, ns per object there is",
        list_ns(ix, &(kl_query){.labels = both}, seven, 1) / (double)n);
    list_ns(ix, &(kl_query){.labels = both}, seven, 4); /* often enough for an index */
    say("selector for 16, later, ns", LEAST(list_ns(ix, &(kl_query){.labels = both}, seven, 1000)));
    say("selector for half of all, ns per object listed",
        LEAST(list_ns(ix, &(kl_query){.labels = half}, n / 2, 1)) / ((double)n / 2));
    say("object changed, beside three indexes, ns", LEAST(put_ns(ix)));
    say("get by key by one thread beside a writer, ns", LEAST(parallel_ns(ix, 1)));
    say("the same by two threads", LEAST(parallel_ns(ix, 2)));
    say("the same by four threads", LEAST(parallel_ns(ix, 4)));
    kl_selector_free(both);
    kl_selector_free(half);
    kl_indexer_free(ix);
    for (size_t i = 0; i < n; i++) {
        kl_value_unref(first[i]);
        kl_value_unref(second[i]);
    }
    kl_free(first);
    kl_free(second);
    kl_free(keys);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"1000", "10000", "100000", "1000000"};
    size_t n = argc > 1 ? (size_t)argc - 1 : sizeof usual / sizeof *usual;
    if (n > SIZES)
        die("at most 8 sizes");
    for (size_t i = 0; i < n; i++) {
        sizes[i] = strtoull(argc > 1 ? argv[i + 1] : usual[i], NULL, 10);
        if (sizes[i] < 2 * BATCH)
            die("a size of fewer than 64 objects");
        n_sizes = i;
        measure(sizes[i]);
    }
    n_sizes = n;
    print_figures();
    return 0;
}
