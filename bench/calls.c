/* calls.c - requests of kubelua to a real API server: how many a second, at what CPU, over how many
 * connections.
 *
 *   calls --kubeconfig F --mode get|patch --in-flight N --requests M     one line: requests_per_s, cpu_us,
 * connections calls --kubeconfig F --mode rotate --seconds S                       one line: failures,
 * longest_gap_ms between good answers
 *
 * Objects: ConfigMaps c-0 .. c-99 of namespace bench. CPU is that of the process while the requests run. */
#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sync.h"
#include "figures.h"
#include "client/client.h"

#define OBJECTS 100

typedef struct run {
    kl_client *client;
    const kl_resource *maps;
    kl_verb verb;
    long wanted;
    kl_mutex mu;
    kl_cond done;
    long begun, ended, failed;
    char first_failure[256];
} run;

static void next(run *r);

static void on_reply(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    run *r = arg;
    (void)code;
    kl_lock(&r->mu);
    if (st || !kl_value_str_at(body, "metadata", "name", NULL)) {
        if (!r->failed++)
            snprintf(r->first_failure, sizeof r->first_failure, "%s",
                st ? kl_err_message(err) : "an answer without a name");
    }
    bool more = r->begun < r->wanted;
    if (++r->ended == r->wanted)
        kl_cond_broadcast(&r->done);
    kl_unlock(&r->mu);
    if (more)
        next(r);
}

static void next(run *r)
{
    kl_lock(&r->mu);
    if (r->begun == r->wanted) {
        kl_unlock(&r->mu);
        return;
    }
    long i = r->begun++;
    kl_unlock(&r->mu);
    char name[32];
    snprintf(name, sizeof name, "c-%ld", i % OBJECTS);
    kl_op op;
    kl_op_init(&op, r->verb, NULL);
    op.resource = r->maps;
    op.ns = "bench";
    op.name = name;
    const kl_value *body = NULL;
    if (r->verb == KL_PATCH) {
        char count[24];
        snprintf(count, sizeof count, "%ld", i);
        kl_builder *b = kl_builder_new();
        kl_build_object(b);
        kl_build_key(b, "data");
        kl_build_object(b);
        kl_build_kstr(b, "count", count);
        kl_build_end(b);
        kl_build_end(b);
        op.body = body = kl_builder_done(b);
    }
    kl_client_do(r->client, &op, on_reply, r);
    kl_value_unref(body);
}

/* TCP sockets of this process that are connected now. */
static int connections(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned long inodes[4096];
    size_t n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[300], to[64];
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        ssize_t len = readlink(path, to, sizeof to - 1);
        if (len > 0 && n < sizeof inodes / sizeof *inodes
            && (to[len] = '\0', sscanf(to, "socket:[%lu]", &inodes[n]) == 1))
            n++;
    }
    if (d)
        closedir(d);
    int count = 0;
    FILE *f = fopen("/proc/self/net/tcp", "r");
    char line[512];
    while (f && fgets(line, sizeof line, f)) {
        unsigned state;
        unsigned long inode;
        if (sscanf(line, " %*d: %*s %*s %x %*s %*s %*s %*d %*d %lu", &state, &inode) == 2 && state == 1)
            for (size_t i = 0; i < n; i++)
                count += inodes[i] == inode;
    }
    if (f)
        fclose(f);
    return count;
}

static int work(run *r, const char *mode, int in_flight)
{
    kl_time began = kl_clock_now(kl_clock_real());
    double cpu = cpu_seconds();
    for (int i = 0; i < in_flight; i++)
        next(r);
    kl_lock(&r->mu);
    while (r->ended < r->wanted)
        kl_cond_wait(&r->done, &r->mu);
    kl_unlock(&r->mu);
    cpu = cpu_seconds() - cpu;
    double wall = (double)(kl_clock_now(kl_clock_real()) - began) / 1e9;
    if (r->failed) {
        fprintf(stderr, "calls: %ld of %ld failed: %s\n", r->failed, r->wanted, r->first_failure);
        return 1;
    }
    printf("{\"peer\":\"kubelua\",\"mode\":\"%s\",\"in_flight\":%d,\"requests_per_s\":%.0f,\"cpu_us\":%.2f,"
           "\"connections\":%d,\"rss_mb\":%.1f}\n",
        mode, in_flight, (double)r->wanted / wall, cpu / (double)r->wanted * 1e6, connections(),
        memory_mb("VmRSS"));
    return 0;
}

static int rotate(run *r, double seconds)
{
    kl_time began = kl_clock_now(kl_clock_real()), good = began, gap = 0;
    long failures = 0;
    for (kl_time now = began; now - began < (kl_time)(seconds * 1e9); now = kl_clock_now(kl_clock_real())) {
        kl_op op;
        const kl_value *v = NULL;
        kl_err err = KL_ERR_INIT;
        kl_op_init(&op, KL_GET, NULL);
        op.resource = r->maps;
        op.ns = "bench";
        op.name = "c-0";
        if (kl_client_wait(r->client, &op, &v, &err)) {
            failures++;
        } else {
            now = kl_clock_now(kl_clock_real());
            gap = now - good > gap ? now - good : gap;
            good = now;
        }
        kl_value_unref(v);
        kl_err_fini(&err);
        usleep(20000);
    }
    kl_time tail = kl_clock_now(kl_clock_real()) - good;
    printf("{\"peer\":\"kubelua\",\"mode\":\"rotate\",\"failures\":%ld,\"longest_gap_ms\":%.1f}\n", failures,
        (double)(tail > gap ? tail : gap) / 1e6);
    return 0;
}

int main(int argc, char **argv)
{
    const char *kubeconfig = NULL, *mode = "get";
    int in_flight = 1;
    double seconds = 60;
    run r = {.wanted = 1000};
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *o = argv[i], *v = argv[i + 1];
        if (!strcmp(o, "--kubeconfig"))
            kubeconfig = v;
        else if (!strcmp(o, "--mode"))
            mode = v;
        else if (!strcmp(o, "--in-flight"))
            in_flight = atoi(v);
        else if (!strcmp(o, "--requests"))
            r.wanted = atol(v);
        else if (!strcmp(o, "--seconds"))
            seconds = atof(v);
        else {
            fprintf(stderr, "calls: unknown option %s\n", o);
            return 2;
        }
    }
    kl_config_sources s;
    kl_client_options o = {0};
    kl_err err = KL_ERR_INIT;
    kl_config_sources_default(&s);
    s.explicit_file = kubeconfig;
    kl_mutex_init(&r.mu);
    kl_cond_init(&r.done);
    r.verb = !strcmp(mode, "patch") ? KL_PATCH : KL_GET;
    if (kl_config_load(&s, &o.config, &err) || kl_client_new(&o, &r.client, &err)
        || kl_client_resolve_wait(r.client, "v1/ConfigMap", &r.maps, &err)) {
        fprintf(stderr, "calls: %s\n", kl_err_message(&err));
        return 1;
    }
    int status = !strcmp(mode, "rotate") ? rotate(&r, seconds) : work(&r, mode, in_flight);
    kl_client_free(r.client);
    kl_cond_fini(&r.done);
    kl_mutex_fini(&r.mu);
    return status;
}
