/* restarts.c - starts and stops a manager with 50 controllers again and again, and says what each round
 * left behind.
 *
 *   restarts --kubeconfig FILE NAMESPACE ROUNDS
 *
 * A round is a client, a manager with a lease in NAMESPACE, metrics and health, 50 controllers of 10 kinds
 * which are all ready and have nothing to do, and the end of all that. After each a line: "round N
 * threads=T fds=F bytes=B controllers=C", B what malloc has in use. */
#include <dirent.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/sync.h"
#include "kubelua.h"

#define CONTROLLERS 50
#define WAIT_MAX KL_SECONDS(120)

static const char *const KINDS[] = {"v1/ConfigMap", "v1/Secret", "v1/Service", "v1/Namespace", "v1/Node",
    "v1/ServiceAccount", "v1/Pod", "apps/v1/Deployment", "apps/v1/DaemonSet", "batch/v1/Job"};
#define N_KINDS (sizeof KINDS / sizeof *KINDS)

static kl_status reconcile(kl_run *run, void *arg, kl_time *after, kl_err *err)
{
    (void)run, (void)arg, (void)after, (void)err;
    return KL_OK;
}

/* Entries of a directory of /proc, "." and ".." included. */
static int entries(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static bool settled(kl_manager *m)
{
    kl_time end = kl_clock_now(kl_clock_real()) + WAIT_MAX;
    while (kl_clock_now(kl_clock_real()) < end) {
        if (kl_manager_ready(m) && kl_manager_leading(m) && kl_manager_idle(m))
            return true;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    return false;
}

static int fail(const char *what, kl_err *err)
{
    fprintf(stderr, "restarts: %s: %s\n", what, kl_err_message(err));
    kl_err_fini(err);
    return 1;
}

static kl_status add(kl_manager *m, int number, kl_err *err)
{
    char name[32], again[32];
    snprintf(name, sizeof name, "restarts-%d", number);
    snprintf(again, sizeof again, "%s.c", name);
    kl_controller_spec spec = {
        .name = kl_strdup(name), .resource = kl_strdup(KINDS[(size_t)number % N_KINDS])};
    kl_program *p = kl_program_of_function(again, &spec, reconcile, NULL);
    kl_status st = kl_manager_add(m, p, NULL, err);
    kl_program_unref(p);
    return st;
}

static int round_of(const char *kubeconfig, const char *ns, int *controllers)
{
    kl_err err = KL_ERR_INIT;
    kl_config_sources sources;
    kl_config_sources_default(&sources);
    sources.explicit_file = kubeconfig;
    kl_client_options options = {.user_agent = "restarts"};
    kl_client *client = NULL;
    if (kl_config_load(&sources, &options.config, &err) || kl_client_new(&options, &client, &err))
        return fail("no client", &err);
    kl_manager *m = NULL;
    kl_status st = kl_manager_new(&(kl_manager_options){.client = client,
                                      .metrics_address = "127.0.0.1:0",
                                      .health_address = "127.0.0.1:0",
                                      .election = {.enabled = true, .name = "restarts", .ns = ns}},
        &m, &err);
    for (int i = 0; i < CONTROLLERS && !st; i++)
        st = add(m, i, &err);
    if (!st)
        st = kl_manager_start(m, &err);
    int code = st ? fail("no manager", &err) : 0;
    if (!code && !settled(m)) {
        fprintf(stderr, "restarts: the controllers are not all ready and idle\n");
        code = 1;
    }
    if (!code) {
        kl_controller_state *v;
        *controllers = (int)kl_manager_controllers(m, &v);
        kl_controller_states_free(v, (size_t)*controllers);
        char *text = kl_manager_metrics(m);
        code = strstr(text, "restarts-49") ? 0 : 1;
        kl_free(text);
    }
    kl_manager_free(m);
    kl_client_free(client);
    return code;
}

static void nothing(void *arg) { (void)arg; }

/* A thread that was joined may be on its way out of /proc still. */
static int threads_left(int before)
{
    kl_time end = kl_clock_now(kl_clock_real()) + WAIT_MAX;
    int n;
    while ((n = entries("/proc/self/task") - 2) > before && kl_clock_now(kl_clock_real()) < end)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    return n;
}

int main(int argc, char **argv)
{
    if (argc != 5 || strcmp(argv[1], "--kubeconfig")) {
        fprintf(stderr, "usage: restarts --kubeconfig FILE NAMESPACE ROUNDS\n");
        return 2;
    }
    kl_log_set_level(KL_LOG_WARN);
    kl_log_set_sink(kl_log_file_sink, NULL);
    /* with the first one a sanitizer starts its own */
    kl_thread_join(kl_thread_start("first", nothing, NULL));
    int before = entries("/proc/self/task") - 2;
    for (int i = 1; i <= atoi(argv[4]); i++) {
        int controllers = 0;
        if (round_of(argv[2], argv[3], &controllers))
            return 1;
        kl_mem_settle();
        printf("round %d threads=%d fds=%d bytes=%zu controllers=%d\n", i, threads_left(before),
            entries("/proc/self/fd") - 3, mallinfo2().uordblks, controllers);
        fflush(stdout);
    }
    return 0;
}
