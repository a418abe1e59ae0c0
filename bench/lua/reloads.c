/* reloads.c - what new logic costs those who wait: the time from an event to its reconcile while scripts
 * come and go, and while none does; and what a generation holds.
 *
 *   reloads OBJECTS SECONDS
 *
 * One process with the embedded server, a manager with two workers and a script. RATE events a second go
 * to the server; each carries its send time, and a run of its key that begins tells how late it is. For
 * SECONDS nothing else happens, then for SECONDS a reload every EVERY, with `on_reload = "none"`, then
 * with "all". A line of JSON for each. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sync.h"
#include "kubelua.h"
#include "script/program.h"
#include "run/witness.h"

#define RATE 1000
#define EVERY KL_MILLISECONDS(200)
#define SAMPLES_MAX 1000000

static const char SCRIPT[] =
    "local kube = require 'kubelua'\n"
    "return kube.controller { name = 'echo', resource = 'v1/ConfigMap', workers = 2, on_reload = '%s',\n"
    "  reconcile = function(map, ctx) local n = 0 for k, v in pairs(map.data) do n = n + #k + #v end return "
    "n > 1e9 and 'many' or nil end }\n"
    "-- %d\n";

static kl_mutex mu = KL_MUTEX_INIT;
static double *samples;
static size_t n_samples;

/* The first run after an event knows when it was sent; later ones of the same state are not news. */
static void began(void *arg, kl_run *r)
{
    (void)arg;
    const char *sent = kl_value_str_at(kl_run_object(r), "data", "sent", NULL);
    const kl_value *woke = NULL;
    kl_why why = kl_run_cause(r, &woke, NULL);
    kl_time now = kl_clock_now(kl_clock_real());
    kl_lock(&mu);
    if (why == KL_WHY_CHANGED && sent && n_samples < SAMPLES_MAX)
        samples[n_samples++] = (double)(now - strtoll(sent, NULL, 10)) / 1e6;
    kl_unlock(&mu);
}

static void put(kl_server *s, int number)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    char *text = kl_sprintf("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":"
                            "\"default\",\"name\":\"map-%d\"},\"data\":{\"sent\":\"%lld\",\"a\":\"b\"}}",
        number, (long long)kl_clock_now(kl_clock_real()));
    if (kl_value_decode(text, strlen(text), &v, &err) || kl_server_load(s, v, &err)) {
        fprintf(stderr, "reloads: %s\n", kl_err_message(&err));
        exit(1);
    }
    kl_value_unref(v);
    kl_free(text);
}

static kl_program *load(const char *keys, int number)
{
    kl_err err = KL_ERR_INIT;
    kl_program *p = NULL;
    char *text = kl_sprintf(SCRIPT, keys, number);
    if (lkl_program_load_text("echo.lua", text, strlen(text), &p, &err)) {
        fprintf(stderr, "reloads: %s\n", kl_err_message(&err));
        exit(1);
    }
    kl_free(text);
    return p;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void nap(kl_time d)
{
    nanosleep(&(struct timespec){.tv_sec = d / KL_SECONDS(1), .tv_nsec = d % KL_SECONDS(1)}, NULL);
}

/* Events for so long, and reloads when keys is not NULL. */
static void phase(
    const char *name, const char *keys, kl_server *s, kl_manager *m, int slot, int objects, int seconds)
{
    kl_err err = KL_ERR_INIT;
    int reloads = 0, next = 0;
    kl_time start = kl_clock_now(kl_clock_real()), end = start + seconds * KL_SECONDS(1), due = start + EVERY;
    kl_lock(&mu);
    n_samples = 0;
    kl_unlock(&mu);
    for (long sent = 0; kl_clock_now(kl_clock_real()) < end; sent++) {
        kl_time ahead = start + sent * (KL_SECONDS(1) / RATE) - kl_clock_now(kl_clock_real());
        if (ahead > 0)
            nap(ahead);
        put(s, next++ % objects);
        if (!keys || kl_clock_now(kl_clock_real()) < due)
            continue;
        due += EVERY;
        kl_program *p = load(keys, ++reloads);
        if (kl_manager_replace(m, slot, p, &err))
            exit(1);
        kl_program_unref(p);
    }
    nap(KL_MILLISECONDS(200));
    kl_lock(&mu);
    qsort(samples, n_samples, sizeof *samples, by_size);
    if (n_samples)
        printf("{\"peer\": \"%s\", \"events\": %zu, \"reloads\": %d, \"p50_ms\": %.3f, \"p99_ms\": %.3f, "
               "\"max_ms\": %.3f}\n",
            name, n_samples, reloads, samples[n_samples / 2], samples[n_samples * 99 / 100],
            samples[n_samples - 1]);
    kl_unlock(&mu);
    fflush(stdout);
}

/* What a program and one worker's state of it take. */
static void memory(void)
{
    kl_err err = KL_ERR_INIT;
    kl_program_unref(load("none", -1)); /* what is made once for all of them */
    size_t before = mallinfo2().uordblks;
    kl_program *p = load("none", -2);
    size_t program = mallinfo2().uordblks - before;
    static const atomic_bool never;
    void *first = p->ops->open(p, 0, &never, &err); /* uses up what the program prepared for it */
    size_t with_one = mallinfo2().uordblks;
    void *second = p->ops->open(p, 0, &never, &err);
    size_t opened = mallinfo2().uordblks - with_one;
    p->ops->close(second);
    p->ops->close(first);
    kl_program_unref(p);
    printf("{\"peer\": \"memory\", \"program_kb\": %.1f, \"state_kb\": %.1f}\n", (double)program / 1024,
        (double)opened / 1024);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: reloads OBJECTS SECONDS\n");
        return 2;
    }
    kl_err err = KL_ERR_INIT;
    int objects = atoi(argv[1]), slot;
    samples = kl_new_array(double, SAMPLES_MAX);
    memory();
    kl_server *s = NULL;
    kl_client *client = NULL;
    kl_manager *m = NULL;
    kl_client_options o = {0};
    if (kl_server_start(&(kl_server_options){.listen = "127.0.0.1:0"}, &s, &err))
        return 1;
    for (int i = 0; i < objects; i++)
        put(s, i);
    kl_config_for_server(kl_server_url(s), &o.config);
    kl_program *p = load("none", 0);
    const kl_witness witness = {.began = began};
    if (kl_client_new(&o, &client, &err)
        || kl_manager_new(
            &(kl_manager_options){.client = client, .witnesses = &witness, .n_witnesses = 1}, &m, &err)
        || kl_manager_add(m, p, &slot, &err) || kl_manager_start(m, &err)) {
        fprintf(stderr, "reloads: %s\n", kl_err_message(&err));
        return 1;
    }
    kl_program_unref(p);
    while (!kl_manager_ready(m) || !kl_manager_idle(m))
        nap(KL_MILLISECONDS(10));
    phase("no reload", NULL, s, m, slot, objects, atoi(argv[2]));
    phase("a reload every 200 ms, no key again", "none", s, m, slot, objects, atoi(argv[2]));
    phase("a reload every 200 ms, every key again", "all", s, m, slot, objects, atoi(argv[2]));
    kl_manager_free(m);
    kl_client_free(client);
    kl_server_stop(s);
    return 0;
}
