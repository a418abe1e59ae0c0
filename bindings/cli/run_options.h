/* run_options.h - the options of `kubelua run` and `kubelua dev`. Main thread. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "cli/cli.h"
#include "cli/params.h"
#include "cli/simulate.h"
#include "lab/record.h"
#include "manager/manager.h"

/* Grouped as in the help. Texts are those of the command line; NULL: not given. */
typedef struct cli_run_options {
    const char *command;
    bool dev;
    cli_list scripts, contexts;
    cli_cluster cluster;
    cli_params_words param_words;
    cli_simulate_options simulate;
    struct { /* of dev: the embedded server */
        const char *listen, *write_kubeconfig, *data;
        cli_list crds, load;
        bool insecure_anywhere;
        const char *play; /* a program beside the controllers */
    } server;
    struct {
        const char *ns;
        long workers;
        bool isolate, install_crds, allow_http, never_slow_down;
        const char *reload_keys_word;
        kl_reload_keys reload_keys; /* parsed from `reload_keys_word` */
        kl_time reload_deadline, rollback_window, grace;
    } runs;
    struct {
        const char *dry_run; /* "": results are computed here; "server": by the server */
        const char *shadow;  /* a candidate */
        long promote_after;
        kl_record_options record;
        const char *effects; /* a file */
        size_t effects_max;
    } trial;
    struct { /* log, metrics and health */
        const char *level, *log_format;
        bool trace_requests;
        const char *metrics, *metrics_cert_dir, *health;
        bool metrics_auth;
        const char *control_path, *dashboard, *dashboard_token;
        const char *flight;
        size_t flight_bytes; /* parsed from `flight` */
    } telling;
    kl_webhook_options webhooks;
    struct {
        bool elect, elect_each;
        const char *lease_name, *lease_ns, *identity;
        kl_time lease, renew, retry;
        const char *shards;
        size_t max_shards; /* parsed from `shards` */
    } replicas;
    struct {
        size_t max_object;
        bool watch_list, keep_managed_fields, http1, no_protobuf;
        long qps, burst;
    } requests;
} cli_run_options;

/* Fills o, whose `command`, `dev` and defaults are set. Ends the process for --help and for an invalid
 * word. */
void cli_run_options_parse(cli_run_options *o, int argc, char **argv);
/* Checks that the options go together, and parses their words. Returns 0, or the exit status after a
 * message. */
int cli_run_options_check(cli_run_options *o);
void cli_run_options_free(cli_run_options *o);

#endif
