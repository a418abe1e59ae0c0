/* client.c - kubelua as a peer of the measurements: an informer on all pods, a queue, workers; one line of
 * JSON (README.md).
 *
 *   starting --informer synced--> synced --each object reconciled once--> quiet --POST /control/burst--> burst
 *   burst --all events seen and QUIET_LOOKS looks without a reconcile--> done
 *
 * The reconciler is C (this file), or with --lua FILE a script that runs after the same counting. The
 * clock starts at main's first line; CPU is user + system of the whole process. */
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "figures.h"
#include "manager/manager.h"
#ifdef BENCH_LUA
#include "script/program.h"
#endif

#define LOOK KL_MILLISECONDS(20) /* between two looks at the counters, as in every peer's client */
#define QUIET_LOOKS 15           /* 300 ms without a reconcile end a burst */
#define BURST_LIMIT KL_SECONDS(300)

typedef struct options {
    const char *server, *control, *ca, *mode, *lua;
    int workers;
    long events;
    double rate;
    /* profile: end without what is not part of the work: the check of what was kept, and taking down */
    bool strip, json, watch_list, profile;
} options;

typedef struct bench {
    options o;
    kl_time began;
    kl_informer *informer; /* borrowed from main */
    atomic_long expected;  /* objects of the initial list, -1 until synced */
    atomic_long reconciles, seen, check, latencies;
    atomic_bool synced, burst;
    /* of the last first reconcile (monotonic); of the last reconcile in the burst (wall) */
    _Atomic(kl_time) all_wall, last;
    _Atomic double all_cpu;
    double sync_wall, sync_cpu; /* written before `synced` */
    kl_time *latency;           /* o.events slots */
    long latency_cap;
} bench;

static bench B;
static kl_clock *clk;

static double since_start(void) { return (double)(kl_clock_now(clk) - B.began) / 1e9; }

static void die(const char *what, const char *why)
{
    fprintf(stderr, "client: %s: %s\n", what, why);
    exit(1);
}

static void nap(kl_time d)
{
    struct timespec ts = {d / KL_SECONDS(1), d % KL_SECONDS(1)};
    nanosleep(&ts, NULL);
}

/* ---------------------------------------------------------------- the reconciler */

static void finish_first_round(long reconciles)
{
    long expected = atomic_load(&B.expected);
    if (expected >= 0 && reconciles >= expected && !atomic_load(&B.all_wall)) {
        atomic_store(&B.all_cpu, cpu_seconds());
        atomic_store(&B.all_wall, kl_clock_now(clk));
    }
}

/* What every peer's reconcile does: read the object, touch two strings, count. */
static void count(kl_run *run)
{
    const kl_value *pod = kl_run_object(run);
    const char *node = kl_value_str_at(pod, "spec", "nodeName", NULL);
    const char *app = kl_value_str_at(pod, "metadata", "labels", "app", NULL);
    atomic_fetch_add(&B.check, (long)((node ? strlen(node) : 0) + (app ? strlen(app) : 0)));
    long n = atomic_fetch_add(&B.reconciles, 1) + 1;
    if (!atomic_load(&B.burst)) {
        finish_first_round(n);
        return;
    }
    kl_time now = kl_clock_wall(clk);
    const char *sent = kl_value_str_at(pod, "metadata", "annotations", "bench.example.com/sent", NULL);
    kl_time at = sent ? strtoll(sent, NULL, 10) : 0;
    if (at > 0) {
        long i = atomic_fetch_add(&B.latencies, 1);
        if (i < B.latency_cap)
            B.latency[i] = now - at;
    }
    atomic_store(&B.last, now);
}

typedef struct program {
    kl_program base;
    kl_program *script;
} program;

static kl_program *script_of(kl_program *p) { return ((program *)p)->script; }

/* A state is the script's, behind the program that made it; without a script there is nothing to hold. */
typedef struct state {
    kl_program *script;
    void *inner;
} state;

static void *open_state(kl_program *p, size_t controller, const atomic_bool *stop, kl_err *err)
{
    state *s = kl_new(state);
    s->script = script_of(p);
    if (s->script && !(s->inner = s->script->ops->open(s->script, controller, stop, err))) {
        kl_free(s);
        return NULL;
    }
    return s;
}

static void close_state(void *arg)
{
    state *s = arg;
    if (s->script)
        s->script->ops->close(s->inner);
    kl_free(s);
}

static kl_run_state start(void *arg, kl_run *run)
{
    state *s = arg;
    count(run);
    if (s->script)
        return s->script->ops->start(s->inner, run);
    kl_run_finish(run, KL_RESULT_DONE, 0, NULL, NULL);
    return KL_RUN_DONE;
}

static kl_run_state resume(void *arg, kl_run *run)
{
    state *s = arg;
    return s->script->ops->resume(s->inner, run);
}

static void abandon(void *arg, kl_run *run)
{
    state *s = arg;
    if (s->script)
        s->script->ops->abandon(s->inner, run);
}

static bool rest(void *arg, bool idle)
{
    state *s = arg;
    return s->script && s->script->ops->rest && s->script->ops->rest(s->inner, idle);
}

static void free_program(kl_program *p)
{
    if (script_of(p)) {
        kl_program_unref(script_of(p)); /* the specs are its own */
    } else {
        kl_controller_spec_fini(p->specs);
        kl_free(p->specs);
    }
    kl_free(p);
}

static const kl_program_ops OPS = {.open = open_state,
    .close = close_state,
    .start = start,
    .resume = resume,
    .rest = rest,
    .abandon = abandon,
    .free = free_program};

static kl_program *make_program(void)
{
    program *p = kl_new(program);
    p->base = (kl_program){.ops = &OPS, .name = "bench", .n_specs = 1};
    atomic_init(&p->base.refs, 1);
    if (B.o.lua) {
#ifdef BENCH_LUA
        kl_err err = KL_ERR_INIT;
        if (lkl_program_load(B.o.lua, &p->script, &err))
            die(B.o.lua, kl_err_message(&err));
        p->base.specs = p->script->specs;
        p->base.n_specs = p->script->n_specs;
#else
        die("--lua", "this client was built without Lua");
#endif
    } else {
        p->base.specs = kl_new(kl_controller_spec);
        p->base.specs->name = kl_strdup("bench");
        p->base.specs->resource = kl_strdup("v1/Pod");
    }
    return &p->base;
}

/* ---------------------------------------------------------------- watching the informer */

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)arg, (void)old, (void)now;
    if (type == KL_MODIFIED && !(flags & (KL_INITIAL | KL_RESYNC)))
        atomic_fetch_add(&B.seen, 1);
}

static void on_synced(void *arg)
{
    (void)arg;
    B.sync_wall = since_start();
    B.sync_cpu = cpu_seconds();
    atomic_store(&B.expected, (long)kl_informer_count(B.informer));
    atomic_store(&B.synced, true);
    finish_first_round(atomic_load(&B.reconciles));
}

static kl_informer *await_informer(kl_manager *m)
{
    kl_informer *inf;
    while (!(inf = kl_manager_informer(m, "v1/Pod")))
        nap(KL_MILLISECONDS(1));
    return inf;
}

/* ---------------------------------------------------------------- the burst */

/* POST to the control server: its own connection, so that the client under test is left alone. */
static void post(const char *base, const char *path)
{
    char host[256], port[16] = "80", buf[1024];
    if (sscanf(base, "http://%255[^:/]:%15[0-9]", host, port) < 1)
        die(base, "the control URL must be http://HOST:PORT");
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *ai;
    if (getaddrinfo(host, port, &hints, &ai))
        die(base, "no such host");
    int fd = socket(ai->ai_family, ai->ai_socktype, 0);
    if (fd < 0 || connect(fd, ai->ai_addr, ai->ai_addrlen))
        die(base, strerror(errno));
    freeaddrinfo(ai);
    int n = snprintf(
        buf, sizeof buf, "POST %s HTTP/1.0\r\nHost: %s\r\nContent-Length: 0\r\n\r\n", path, host);
    if (write(fd, buf, (size_t)n) != n)
        die(base, strerror(errno));
    while (read(fd, buf, sizeof buf) > 0)
        ;
    close(fd);
}

static int by_value(const void *a, const void *b)
{
    kl_time x = *(const kl_time *)a, y = *(const kl_time *)b;
    return x < y ? -1 : x > y;
}

static double quantile_us(double q, long n)
{
    if (n == 0)
        return -1;
    long i = (long)(q * (double)n);
    return (double)B.latency[i < n ? i : n - 1] / 1e3;
}

/* What the cache holds, as text: after all measuring, so that nobody needs to take our word that nothing
 * of an object is lost. */
static size_t kept_bytes(kl_informer *inf)
{
    kl_err err = KL_ERR_INIT;
    kl_objects all;
    size_t n = 0;
    if (kl_informer_list(inf, &(kl_query){0}, &all, &err))
        die("list", kl_err_message(&err));
    kl_buf text;
    kl_buf_init(&text, (size_t)64 << 20);
    for (size_t i = 0; i < all.len; i++) {
        kl_buf_clear(&text);
        if (kl_value_encode(all.v[i], &text))
            die("encode", "an object of more than 64 MB");
        n += text.len;
    }
    kl_buf_fini(&text);
    kl_objects_fini(&all);
    return n;
}

static void run_burst(void)
{
    long seen0 = atomic_load(&B.seen), rec0 = atomic_load(&B.reconciles);
    double cpu0 = cpu_seconds();
    kl_time began = kl_clock_wall(clk);
    char path[128];
    atomic_store(&B.burst, true);
    snprintf(path, sizeof path, "/control/burst?events=%ld&rate=%g", B.o.events, B.o.rate);
    post(B.o.control, path);

    long last = -1;
    int quiet = 0;
    for (kl_time end = kl_clock_now(clk) + BURST_LIMIT; kl_clock_now(clk) < end && quiet <= QUIET_LOOKS;
         nap(LOOK)) {
        long r = atomic_load(&B.reconciles);
        quiet = atomic_load(&B.seen) - seen0 >= B.o.events && r == last ? quiet + 1 : 0;
        last = r;
    }
    double cpu = cpu_seconds() - cpu0, wall = (double)(atomic_load(&B.last) - began) / 1e9;
    long events = atomic_load(&B.seen) - seen0, n = atomic_load(&B.latencies);
    if (n > B.latency_cap)
        n = B.latency_cap;
    qsort(B.latency, (size_t)n, sizeof *B.latency, by_value);
    printf(",\"rate\":%g,\"events\":%ld,\"reconciles\":%ld,\"burst_wall_s\":%.4f,\"events_per_s\":%.0f,\"cpu_"
           "s_per_1k_events\":%.6f,"
           "\"lat_p50_us\":%.0f,\"lat_p99_us\":%.0f,\"hwm_burst_mb\":%.1f,\"rss_burst_mb\":%.1f",
        B.o.rate, events, atomic_load(&B.reconciles) - rec0, wall, (double)events / wall,
        events ? cpu / (double)events * 1e3 : 0, quantile_us(.5, n), quantile_us(.99, n), memory_mb("VmHWM"),
        memory_mb("VmRSS"));
}

/* ---------------------------------------------------------------- main */

static options read_options(int argc, char **argv)
{
    options o = {.server = "http://127.0.0.1:18080", .mode = "sync", .workers = 1, .events = 20000};
    for (int i = 1; i < argc; i++) {
        const char *k = argv[i], *v = i + 1 < argc ? argv[i + 1] : NULL;
        const struct {
            const char *name;
            bool *to;
        } flags[] = {{"--strip", &o.strip}, {"--json", &o.json}, {"--watch-list", &o.watch_list},
            {"--profile", &o.profile}};
        bool *flag = NULL;
        for (size_t f = 0; f < sizeof flags / sizeof *flags; f++)
            flag = strcmp(k, flags[f].name) ? flag : flags[f].to;
        if (flag) {
            *flag = true;
            continue;
        }
        if (!v)
            die(k, "an option without its value, or an unknown one");
        i++;
        if (!strcmp(k, "--server"))
            o.server = v;
        else if (!strcmp(k, "--control"))
            o.control = v;
        else if (!strcmp(k, "--ca"))
            o.ca = v;
        else if (!strcmp(k, "--mode"))
            o.mode = v;
        else if (!strcmp(k, "--lua"))
            o.lua = v;
        else if (!strcmp(k, "--workers"))
            o.workers = atoi(v);
        else if (!strcmp(k, "--events"))
            o.events = atol(v);
        else if (!strcmp(k, "--rate"))
            o.rate = atof(v);
        else
            die(k, "unknown option; see bench/README.md");
    }
    if (!o.control)
        o.control = o.server;
    return o;
}

int main(int argc, char **argv)
{
    clk = kl_clock_real();
    B.began = kl_clock_now(clk);
    B.o = read_options(argc, argv);
    atomic_store(&B.expected, -1);
    B.latency_cap = B.o.events;
    B.latency = kl_new_array(kl_time, (size_t)B.latency_cap + 1);
    kl_log_set_sink(kl_log_file_sink, NULL);
    kl_log_set_level(KL_LOG_WARN);

    kl_err err = KL_ERR_INIT;
    kl_client_options co = {0};
    kl_config_for_server(B.o.server, &co.config);
    co.config.ca_file = kl_strdup(B.o.ca);
    co.no_protobuf = B.o.json;
    kl_client *client;
    if (kl_client_new(&co, &client, &err))
        die(B.o.server, kl_err_message(&err));
    kl_manager *m;
    kl_manager_options mo = {.client = client,
        .workers = B.o.workers,
        .workers_forced = true,
        .drop_managed_fields = B.o.strip,
        .watch_list = B.o.watch_list};
    if (kl_manager_new(&mo, &m, &err))
        die("manager", kl_err_message(&err));
    kl_program *p = make_program();
    int slot;
    if (kl_manager_add(m, p, &slot, &err) || kl_manager_start(m, &err))
        die("manager", kl_err_message(&err));
    kl_program_unref(p);

    kl_informer *inf = B.informer = await_informer(m);
    kl_handler h = {.on_event = on_event, .on_synced = on_synced};
    kl_subscription *sub = kl_informer_subscribe(inf, &h);
    while (!atomic_load(&B.synced) || !atomic_load(&B.all_wall))
        nap(LOOK);
    size_t n = kl_informer_count(inf);
    long check = atomic_load(&B.check);
    nap(KL_MILLISECONDS(50)); /* as every peer: what the last reconcile left is done with */

    double raw = memory_mb("VmRSS"), hwm = memory_mb("VmHWM");
    kl_mem_settle(); /* as `kubelua run` does when its start is over */
    double rss = memory_mb("VmRSS");
    printf("{\"peer\":\"%s\",\"n\":%zu,\"workers\":%d,\"mode\":\"%s\",\"strip\":%s,\"sync_wall_s\":%.4f,"
           "\"sync_cpu_s\":%.4f,"
           "\"all_reconciled_wall_s\":%.4f,\"all_reconciled_cpu_s\":%.4f,\"check\":%ld,\"rss_nogc_mb\":%.1f,"
           "\"rss_mb_after_sync\":%.1f,\"hwm_mb\":%.1f",
        B.o.lua ? "kubelua" : "kubelua-c", n, B.o.workers, B.o.mode, B.o.strip ? "true" : "false",
        B.sync_wall, B.sync_cpu, (double)(atomic_load(&B.all_wall) - B.began) / 1e9, atomic_load(&B.all_cpu),
        check, raw, rss, hwm);
    if (!strcmp(B.o.mode, "burst"))
        run_burst();
    if (B.o.profile) {
        printf("}\n");
        fflush(stdout);
        _exit(0);
    }
    printf(",\"kept_bytes\":%zu}\n", kept_bytes(inf));
    fflush(stdout);

    kl_informer_unsubscribe(sub);
    kl_informer_unref(inf);
    kl_manager_stop(m);
    kl_manager_free(m);
    kl_client_free(client);
    kl_free(B.latency);
    return 0;
}
