/* run_options.h - the options of `kubelua run` and `kubelua dev`. Main thread. */
#ifndef CLI_RUN_OPTIONS_H
#define CLI_RUN_OPTIONS_H

#include "cli/cli.h"
#include "cli/params.h"
#include "cli/simulate.h"
#include "lab/record.h"
#include "manager/manager.h"

/* Texts are of the command line; NULL: not given. */
typedef struct cli_run_options {
    const char *command;
    bool dev;
    cli_cluster cluster;
    cli_list scripts, crds, load, contexts;
    cli_params_words param_words;
    cli_simulate_options simulate;
    const char *ns, *listen, *write_kubeconfig, *data, *play;
    const char *level, *log_format, *metrics, *metrics_cert_dir, *health, *control_path, *dashboard,
        *dashboard_token;
    const char *effects; /* a file */
    size_t effects_max;
    const char *shadow; /* a candidate */
    long promote_after;
    const char *dry_run; /* "": told here; "server" */
    kl_record_options record;
    const char *lease_name, *lease_ns, *identity, *shards, *flight, *reload_keys_word;
    size_t max_shards, flight_bytes; /* what `shards` and `flight` say */
    kl_reload_keys reload_keys;      /* what `reload_keys_word` says */
    kl_time reload_deadline, rollback_window, grace, lease, renew, retry;
    kl_webhook_options webhooks;
    long workers, qps, burst;
    size_t max_object;
    bool install_crds, allow_http, insecure_anywhere, isolate, metrics_auth, trace_requests, http1,
        no_protobuf, elect, elect_each, keep_managed_fields, watch_list, never_slow_down;
} cli_run_options;

/* Fills o, whose `command`, `dev` and defaults are set. Ends the process for --help and for a word that is
 * wrong. */
void cli_run_options_parse(cli_run_options *o, int argc, char **argv);
/* 0, or the exit status after a message: options that do not go together. Reads what words say. */
int cli_run_options_check(cli_run_options *o);
void cli_run_options_free(cli_run_options *o);

#endif
