/* embed.c - a C program that embeds kubelua: a controller in C that counts the keys of every labelled ConfigMap.
 *
 *   embed [--kubeconfig FILE]      finds the cluster as kubectl does; ends on SIGTERM or SIGINT
 *
 * A ConfigMap with the label embed=count gets the annotation embed.example.com/keys with the number of keys in data. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kubelua.h"

#define ANNOTATION "embed.example.com/keys"

static kl_status reconcile(kl_run *run, void *arg, kl_time *after, kl_err *err)
{
    (void)arg, (void)after;
    const kl_value *card = kl_run_object(run);
    const char *wanted = kl_value_str(kl_object_label(card, "embed"));
    if (!wanted || strcmp(wanted, "count"))
        return KL_OK;
    char count[32];
    snprintf(count, sizeof count, "%zu", kl_value_len(kl_value_get(card, "data")));
    const char *have = kl_value_str(kl_object_annotation(card, ANNOTATION));
    if (have && !strcmp(have, count))
        return KL_OK;

    const kl_value *text = kl_value_of_str(count);
    kl_op op;
    kl_op_init(&op, KL_PATCH, "v1/ConfigMap");
    op.ns = kl_run_namespace(run);
    op.name = kl_run_name(run);
    op.body = kl_value_with_at(NULL, text, "metadata", "annotations", ANNOTATION, NULL);
    kl_status st = kl_run_call_wait(run, &op, NULL, err);
    kl_value_unref(op.body);
    kl_value_unref(text);
    return st;
}

static int fail(const char *what, kl_err *err)
{
    fprintf(stderr, "embed: %s: %s\n", what, kl_err_message(err));
    kl_err_fini(err);
    return 1;
}

int main(int argc, char **argv)
{
    /* Signals are the program's affair: block them before the library starts threads, and wait for them here. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    kl_log_set_sink(kl_log_file_sink, NULL);

    kl_err err = KL_ERR_INIT;
    kl_config_sources sources;
    kl_config_sources_default(&sources);
    if (argc == 3 && !strcmp(argv[1], "--kubeconfig"))
        sources.explicit_file = argv[2];
    kl_client_options options = {.user_agent = "embed"};
    kl_client *client = NULL;
    if (kl_config_load(&sources, &options.config, &err))
        return fail("no cluster", &err);
    if (kl_client_new(&options, &client, &err))
        return fail("no client", &err);

    kl_controller_spec spec = {.name = kl_strdup("embed"), .resource = kl_strdup("v1/ConfigMap"), .workers = 2};
    kl_program *program = kl_program_of_function("embed.c", &spec, reconcile, NULL);
    kl_manager *manager = NULL;
    kl_status st = kl_manager_new(&(kl_manager_options){.client = client}, &manager, &err);
    if (!st)
        st = kl_manager_add(manager, program, NULL, &err);
    if (!st)
        st = kl_manager_start(manager, &err);
    kl_program_unref(program);
    int code = st ? fail("no manager", &err) : 0, signal;
    if (!st) {
        printf("running\n");
        fflush(stdout);
        sigwait(&signals, &signal);
    }
    kl_manager_free(manager);
    kl_client_free(client);
    return code;
}
