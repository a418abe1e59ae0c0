/* embed.c - a C program that embeds kubelua: a controller in C that counts the keys of every labelled
 * ConfigMap. Objects come and go as cJSON.
 *
 *   embed [--kubeconfig FILE]      finds the cluster as kubectl does; ends on SIGTERM or SIGINT
 *
 * A ConfigMap with the label embed=count gets the annotation embed.example.com/keys with the number of
 * keys in data. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "kubelua.h"

#define ANNOTATION "embed.example.com/keys"

/* {"metadata":{"annotations":{ANNOTATION: count}}} as a merge patch. */
static kl_status patch(kl_run *run, const char *count, kl_err *err)
{
    cJSON *body = cJSON_CreateObject();
    cJSON *metadata = cJSON_AddObjectToObject(body, "metadata");
    cJSON_AddStringToObject(cJSON_AddObjectToObject(metadata, "annotations"), ANNOTATION, count);
    kl_op op;
    kl_op_init(&op, KL_PATCH, "v1/ConfigMap");
    op.ns = kl_run_namespace(run);
    op.name = kl_run_name(run);
    kl_status st = kl_value_from_cjson(body, &op.body, err);
    if (!st)
        st = kl_run_call_wait(run, &op, NULL, err);
    kl_value_unref(op.body);
    cJSON_Delete(body);
    return st;
}

static const cJSON *member(const cJSON *of, const char *name)
{
    return of ? cJSON_GetObjectItemCaseSensitive(of, name) : NULL;
}

static kl_status reconcile(kl_run *run, void *arg, kl_time *after, kl_err *err)
{
    (void)arg, (void)after;
    cJSON *card = NULL;
    kl_status st = kl_value_to_cjson(kl_run_object(run), &card, err);
    if (st)
        return st;
    const cJSON *metadata = member(card, "metadata");
    const char *wanted = cJSON_GetStringValue(member(member(metadata, "labels"), "embed"));
    const char *have = cJSON_GetStringValue(member(member(metadata, "annotations"), ANNOTATION));
    char count[32];
    snprintf(count, sizeof count, "%d", cJSON_GetArraySize(member(card, "data")));
    if (wanted && !strcmp(wanted, "count") && (!have || strcmp(have, count)))
        st = patch(run, count, err);
    cJSON_Delete(card);
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
    /* Signals are the program's affair: block them before the library starts threads, and wait for them
     * here. */
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

    kl_controller_spec spec = {
        .name = kl_strdup("embed"), .resource = kl_strdup("v1/ConfigMap"), .workers = 2};
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
