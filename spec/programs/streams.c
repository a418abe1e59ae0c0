/* streams.c - many watches and many calls at once through one client; what it took, as one line of JSON.
 *
 *   streams KUBECONFIG NAMESPACE WATCHES CALLS
 *
 * Opens WATCHES watches of the ConfigMaps of NAMESPACE, then applies CALLS of them, never more than AHEAD
 * before every watch has heard of them, and ends when each watch has seen each. An API server ends watches
 * that fall behind; those go on from where they were. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/mem.h"
#include "base/sync.h"
#include "model/object.h"
#include "client/client.h"

#define AHEAD 8
#define WATCHES_MAX 1000
#define PATIENCE KL_SECONDS(120)

static kl_client *client;
static const kl_resource *maps;
static char first_rv[64];
static const char *ns;
static char rv[WATCHES_MAX][64]; /* what each watch has seen; watch thread */
static bool over;                /* watch thread */

static kl_mutex mu = KL_MUTEX_INIT;
static kl_cond changed;
static long watches, calls, opened, ended, events, good, bad;
static char last_error[512];

static void add(long *n, long by, const kl_err *err)
{
    kl_lock(&mu);
    *n += by;
    if (err && err->status && err->status != KL_ECANCELLED)
        snprintf(last_error, sizeof last_error, "%s", kl_err_message(err));
    kl_cond_broadcast(&changed);
    kl_unlock(&mu);
}

/* Waits until *n >= want. False when a call failed, or the time is over. */
static bool reach(const long *n, long want)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PATIENCE;
    kl_lock(&mu);
    while (*n < want && !bad)
        if (!kl_cond_wait_until(&changed, &mu, deadline))
            break;
    bool reached = *n >= want;
    kl_unlock(&mu);
    return reached;
}

static kl_status on_event(void *arg, const char *type, const kl_value *object, kl_err *err)
{
    const char *at = kl_object_rv(object);
    (void)err;
    if (at)
        snprintf(arg, sizeof rv[0], "%s", at);
    kl_value_unref(object);
    if (strcmp(type, "BOOKMARK"))
        add(&events, 1, NULL);
    return KL_OK;
}

static void on_opened(void *arg)
{
    (void)arg;
    add(&opened, 1, NULL);
}

static void watch_from(char *at);

static void on_end(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    (void)code;
    (void)envelope;
    add(&ended, 1, err);
    if (!over && (st == KL_OK || st == KL_ECLOSED))
        watch_from(arg);
}

static void watch_from(char *at)
{
    kl_op op;
    kl_op_init(&op, KL_WATCH, NULL);
    op.resource = maps;
    op.ns = ns;
    op.rv = at;
    op.timeout_seconds = 600;
    kl_client_stream(client, &op,
        &(kl_stream_call){
            .event = on_event, .opened = on_opened, .done = on_end, .arg = at, .max_object = 1 << 20});
}

static void on_reply(void *arg, kl_status st, int code, const kl_value *body, kl_err *err)
{
    (void)arg;
    (void)code;
    (void)body;
    add(st ? &bad : &good, 1, err);
}

static void start_watches(void *arg)
{
    (void)arg;
    for (long i = 0; i < watches; i++) {
        strcpy(rv[i], first_rv);
        watch_from(rv[i]);
    }
}

static void stop_watches(void *arg)
{
    (void)arg;
    over = true;
}

static void apply(long i)
{
    kl_op op;
    kl_builder *b = kl_builder_new();
    char name[32];
    snprintf(name, sizeof name, "streams-%ld", i);
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_kstr(b, "kind", "ConfigMap");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "namespace", ns);
    kl_build_end(b);
    kl_build_key(b, "data");
    kl_build_object(b);
    kl_build_kstr(b, "run", first_rv); /* another run changes it */
    kl_build_end(b);
    kl_build_end(b);
    kl_op_init(&op, KL_APPLY, NULL);
    op.resource = maps;
    op.body = kl_builder_done(b);
    kl_client_do(client, &op, on_reply, NULL);
    kl_value_unref(op.body);
}

static int sockets(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    for (struct dirent *e; d && (e = readdir(d));) {
        struct stat s;
        char path[300];
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        n += !stat(path, &s) && S_ISSOCK(s.st_mode);
    }
    if (d)
        closedir(d);
    return n;
}

static kl_status prepare(const char *kubeconfig, kl_err *err)
{
    kl_config_sources s = {.explicit_file = kubeconfig, .o.insecure = -1};
    kl_client_options o = {0};
    kl_op op;
    const kl_value *list = NULL;
    kl_status st = kl_config_load(&s, &o.config, err);
    if (!st)
        st = kl_client_new(&o, &client, err);
    if (!st)
        st = kl_client_resolve_wait(client, "v1/ConfigMap", &maps, err);
    kl_op_init(&op, KL_LIST, NULL);
    op.resource = maps;
    op.ns = ns;
    if (!st)
        st = kl_client_wait(client, &op, &list, err);
    const char *at = kl_value_str_at(list, "metadata", "resourceVersion", NULL);
    snprintf(first_rv, sizeof first_rv, "%s", at ? at : "");
    kl_value_unref(list);
    return st;
}

int main(int argc, char **argv)
{
    kl_err err = KL_ERR_INIT;
    if (argc != 5)
        return 2;
    ns = argv[2];
    watches = atol(argv[3]);
    calls = atol(argv[4]);
    if (watches > WATCHES_MAX)
        return 2;
    kl_cond_init(&changed);
    int rc = 0;
    if (prepare(argv[1], &err)) {
        fprintf(stderr, "%s\n", kl_err_message(&err));
        rc = 1;
    } else {
        int before = sockets();
        kl_http_post(kl_client_watch_http(client), start_watches, NULL);
        bool ok = reach(&opened, watches);
        for (long i = 0; ok && i < calls; i++) {
            apply(i);
            ok = reach(&events, watches * (i - AHEAD + 1));
        }
        ok = ok && reach(&good, calls) && reach(&events, watches * calls);
        int after = sockets();
        kl_lock(&mu);
        printf("{\"ok\":%s,\"opened\":%ld,\"ended\":%ld,\"events\":%ld,\"good\":%ld,\"bad\":%ld,"
               "\"connections\":%d}\n",
            ok ? "true" : "false", opened, ended, events, good, bad, after - before + 1);
        if (*last_error)
            fprintf(stderr, "%s\n", last_error);
        kl_unlock(&mu);
        rc = !ok;
    }
    kl_err_fini(&err);
    if (client)
        kl_http_post(kl_client_watch_http(client), stop_watches, NULL);
    kl_client_free(client);
    kl_cond_fini(&changed);
    return rc;
}
