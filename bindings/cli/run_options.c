/* run_options.c - the options of `kubelua run` and `kubelua dev`, in groups as help shows them, and which of
 * them go together. */
#include "cli/run_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/quantity.h"
#include "observe/effects.h"
#include "observe/flight.h"

/* Each replica watches all the others. */
#define SHARDS_MOST 1000

/* Reads "auto" or a number. */
static bool shards_known(cli_run_options *o)
{
    char *end = NULL;
    unsigned long n = 0;
    if (!o->replicas.shards || !strcmp(o->replicas.shards, "auto"))
        return true;
    if (*o->replicas.shards >= '1' && *o->replicas.shards <= '9')
        n = strtoul(o->replicas.shards, &end, 10);
    o->replicas.max_shards = n;
    return n && !*end && n <= SHARDS_MOST;
}

/* Of the words that the option takes. */
static void read_reload_keys(cli_run_options *o)
{
    static const char *const words[] = {"all", "failing", "none"};
    for (int i = 0; o->runs.reload_keys_word && i < 3; i++)
        if (!strcmp(o->runs.reload_keys_word, words[i]))
            o->runs.reload_keys = (kl_reload_keys)(KL_RELOAD_KEYS_ALL + i);
}

/* Reads "off", or a size as Kubernetes writes it. */
static bool flight_known(cli_run_options *o)
{
    kl_quantity *q = NULL;
    int64_t n = 0;
    if (!o->telling.flight)
        return true;
    if (!strcmp(o->telling.flight, "off")) {
        o->telling.flight_bytes = KL_FLIGHT_OFF;
        return true;
    }
    bool good = !kl_quantity_parse(o->telling.flight, &q, NULL) && kl_quantity_value(q, &n)
        && n >= (int64_t)KL_FLIGHT_BYTES_MIN;
    kl_quantity_free(q);
    o->telling.flight_bytes = (size_t)n;
    return good;
}

int cli_run_options_check(cli_run_options *o)
{
    if (!o->scripts.n)
        return cli_fail(2, o->command, "name at least one script: kubelua %s SCRIPT.lua", o->command);
    if (o->requests.burst && !o->requests.qps)
        return cli_fail(2, o->command, "--burst applies only together with --qps");
    if (!cli_simulate_known(o->command, &o->simulate))
        return 2;
    read_reload_keys(o);
    if (o->trial.dry_run && *o->trial.dry_run && strcmp(o->trial.dry_run, "server")
        && strcmp(o->trial.dry_run, "client"))
        return cli_fail(2, o->command,
            "--dry-run=%s is unknown: --dry-run computes the writes here, --dry-run=server lets the server "
            "compute them",
            o->trial.dry_run);
    if (o->trial.effects_max && !o->trial.effects)
        return cli_fail(2, o->command, "--effects-max needs --effects FILE");
    if (o->trial.effects_max && o->trial.effects_max < KL_EFFECTS_MAX_LEAST)
        return cli_fail(2, o->command,
            "--effects-max must be at least 1Mi: it limits the size of all files of the log together");
    if (o->trial.promote_after && !o->trial.shadow)
        return cli_fail(2, o->command, "--promote-after needs --shadow CANDIDATE.lua");
    if (o->trial.shadow && o->contexts.n > 1)
        return cli_fail(2, o->command,
            "--shadow follows the controllers of one cluster: run a process for each --context");
    if (!shards_known(o))
        return cli_fail(2, o->command,
            "--shards says how many replicas share the keys: auto for all of them, or a number from 1 to %d, "
            "not \"%s\"",
            SHARDS_MOST, o->replicas.shards);
    if (o->trial.record.path && o->contexts.n > 1)
        return cli_fail(2, o->command,
            "--record records one cluster: run one process per --context, each with its own file");
    if (!o->trial.record.path && (o->trial.record.max || o->trial.record.secrets))
        return cli_fail(2, o->command, "%s needs --record FILE",
            o->trial.record.max ? "--record-max" : "--record-secrets");
    if (o->trial.record.max && o->trial.record.max < KL_RECORD_MAX_LEAST)
        return cli_fail(2, o->command,
            "--record-max must be at least 1Mi: it limits the size of all files of a recording together");
    if (!flight_known(o))
        return cli_fail(2, o->command,
            "--flight-recorder must be a number of bytes, 64Ki or more, or off, not \"%s\"",
            o->telling.flight);
    return 0;
}

/* --- groups ------------------------------------------------------------------------------- */

#define ROWS_MOST (CLI_CLUSTER_MAX + CLI_PARAMS_OPTIONS + 96)
typedef struct option_rows {
    cli_option rows[ROWS_MOST + 1]; /* the last one says that it is over */
    size_t n;
} option_rows;

static void add_rows(option_rows *to, const cli_option *rows, size_t n)
{
    if (n > ROWS_MOST - to->n)
        abort(); /* ROWS_MOST is too small */
    memcpy(to->rows + to->n, rows, n * sizeof *rows);
    to->n += n;
}

static void embedded_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("The embedded server"),
        {"--listen", "ADDR:PORT", "where the embedded server listens (127.0.0.1:0)", CLI_STRING,
            &o->server.listen},
        {"--crds", "DIR", "custom resource definitions to install (may be repeated)", CLI_LIST,
            &o->server.crds},
        {"--load", "FILE", "objects to load at the start: file or directory (may be repeated)", CLI_LIST,
            &o->server.load},
        {"--data", "DIR", "keep the embedded server's objects in this directory, over restarts", CLI_STRING,
            &o->server.data},
        CLI_SIMULATE_ROWS(&o->simulate),
        {"--insecure-anywhere", NULL,
            "let the embedded server listen beyond this machine without authentication", CLI_FLAG,
            &o->server.insecure_anywhere},
        {"--write-kubeconfig", "FILE", "write a kubeconfig for the embedded server", CLI_STRING,
            &o->server.write_kubeconfig},
        {"--play", "FILE.lua", "run this program beside the controllers; end with it", CLI_STRING,
            &o->server.play},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void context_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING(CLI_CLUSTER_HEADING),
        {"--context", "NAME", "the kubeconfig's context to use; several: a manager for each cluster",
            CLI_LIST, &o->contexts},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void script_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Scripts"),
        {"--namespace", "NAME", "look at this namespace only (all)", CLI_STRING, &o->runs.ns, "-n"},
        {"--workers", "N", "worker threads per controller; overrides the script (1)", CLI_INT,
            &o->runs.workers},
        {"--isolate", NULL,
            "run the functions of every script in child processes without files and network, as isolate = "
            "true does; the top level is still loaded here",
            CLI_FLAG, &o->runs.isolate},
        {"--install-crds", NULL, "apply the definitions that scripts bring with kube.crd (dev always does)",
            CLI_FLAG, &o->runs.install_crds},
        {"--allow-http", NULL,
            "let ctx.http reach the servers listed in a controller's `http` (default: none)", CLI_FLAG,
            &o->runs.allow_http},
        {"--reload-keys", "WORD",
            "which keys run again on new logic: all, failing or none (all; scripts say otherwise with "
            "on_reload)",
            CLI_STRING, &o->runs.reload_keys_word, NULL, "all failing none"},
        {"--rollback-window", "DURATION",
            "how long new logic is watched after a reload; the old logic returns if the new one does "
            "much worse (1m; 0s: never)",
            CLI_DURATION, &o->runs.rollback_window},
        {"--reload-deadline", "DURATION",
            "how long runs on the old logic may go on after a reload (30s, or their timeout)", CLI_DURATION,
            &o->runs.reload_deadline},
        {"--never-slow-down", NULL, "do not throttle keys that re-trigger themselves or fight over a field",
            CLI_FLAG, &o->runs.never_slow_down},
        {"--grace-period", "DURATION", "how long running reconciles may take to finish at shutdown (30s)",
            CLI_DURATION, &o->runs.grace},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void trial_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Trying before doing"),
        {"--dry-run", "server",
            "write nothing, and log what would be written (=client is the same); =server: include the "
            "server's defaults and admission",
            CLI_MAYBE, &o->trial.dry_run, NULL, "client server"},
        {"--shadow", "CANDIDATE.lua",
            "run this candidate beside the scripts, on the same keys and without writing, and compare "
            "(kubelua shadow)",
            CLI_STRING, &o->trial.shadow},
        {"--promote-after", "N",
            "the shadow takes over when N keys match and none differs (default: on command)", CLI_INT,
            &o->trial.promote_after},
        {"--record", "FILE",
            "record what runs see and do, for kubelua replay; FILE.1 and so on are the older files",
            CLI_STRING, &o->trial.record.path},
        {"--record-max", "BYTES", "maximum size of these files together; the oldest is removed (256Mi)",
            CLI_SIZE, &o->trial.record.max},
        {"--record-secrets", NULL, "include the contents of Secrets (default: redacted)", CLI_FLAG,
            &o->trial.record.secrets},
        {"--effects", "FILE",
            "log each write as a line of JSON: writer, request, response and change; FILE.1 and so on "
            "are the older files",
            CLI_STRING, &o->trial.effects},
        {"--effects-max", "BYTES", "maximum size of these files together; the oldest is removed (64Mi)",
            CLI_SIZE, &o->trial.effects_max},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void telling_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("What it tells"),
        {"--log-level", "LEVEL", "debug, info, warn, error or off (info)", CLI_STRING, &o->telling.level,
            NULL, CLI_LEVELS},
        {"--log-format", "FORMAT", "text, or json: one object a line, with all fields of a run (text)",
            CLI_STRING, &o->telling.log_format, NULL, "text json"},
        {"--trace-requests", NULL,
            "send the reconcile's trace along with requests (a W3C traceparent header)", CLI_FLAG,
            &o->telling.trace_requests},
        {"--metrics-bind-address", "ADDR:PORT", "serve /metrics there", CLI_STRING, &o->telling.metrics},
        {"--metrics-cert-dir", "DIR",
            "serve metrics over HTTPS with tls.crt and tls.key from this directory; read again when they "
            "change",
            CLI_STRING, &o->telling.metrics_cert_dir},
        {"--metrics-auth", NULL,
            "only for bearer tokens that the API server lets get /metrics (TokenReview, SubjectAccessReview)",
            CLI_FLAG, &o->telling.metrics_auth},
        {"--health-probe-bind-address", "ADDR:PORT", "serve /healthz and /readyz there", CLI_STRING,
            &o->telling.health},
        {"--dashboard", "ADDR:PORT", "serve the dashboard, a page that shows live what happens", CLI_STRING,
            &o->telling.dashboard},
        {"--dashboard-token-file", "FILE",
            "file with the token that allows changes from the dashboard (default: read-only)", CLI_STRING,
            &o->telling.dashboard_token},
        {"--control", "PATH|off",
            "the socket by which kubelua why, attach and others reach this process ($XDG_RUNTIME_DIR/kubelua "
            "or /tmp/kubelua-UID, PID.sock)",
            CLI_STRING, &o->telling.control_path},
        {"--flight-recorder", "BYTES|off", "memory for the history of runs, for kubelua why (8Mi)",
            CLI_STRING, &o->telling.flight},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void webhook_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Webhooks"),
        {"--webhook-listen", "ADDR:PORT",
            "serve the scripts' webhooks there, over TLS (:9443; of dev 127.0.0.1:0)", CLI_STRING,
            &o->webhooks.listen},
        {"--webhook-service", "NS/NAME[:PORT]",
            "the Service through which the API server reaches them; kubelua maintains configurations and "
            "certificates",
            CLI_STRING, &o->webhooks.service},
        {"--webhook-url", "https://HOST:PORT", "the same without a Service", CLI_STRING, &o->webhooks.url},
        {"--webhook-cert-dir", "DIR",
            "tls.crt, tls.key and perhaps ca.crt for them; read again when they change", CLI_STRING,
            &o->webhooks.cert_dir},
        {"--webhook-secret", "NS/NAME",
            "Secret in which replicas share their certificate (NAME-webhook-tls beside the Service)",
            CLI_STRING, &o->webhooks.secret},
        {"--webhook-cert-life", "DURATION", "validity of certificates that kubelua issues (90 days)",
            CLI_DURATION, &o->webhooks.life},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void replica_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Several replicas"),
        {"--leader-elect", NULL, "only the holder of a Lease reconciles", CLI_FLAG, &o->replicas.elect},
        {"--leader-elect-per-controller", NULL, "the same, with one Lease per controller (NAME-CONTROLLER)",
            CLI_FLAG, &o->replicas.elect_each},
        {"--shards", "auto|N",
            "replicas share the keys: all of them, or the first N (scripts say otherwise with shard = false)",
            CLI_STRING, &o->replicas.shards},
        {"--leader-elect-lease-duration", "DURATION", "how long others wait for a silent leader (15s)",
            CLI_PERIOD, &o->replicas.lease},
        {"--leader-elect-renew-deadline", "DURATION", "how long the leader tries to renew (10s)", CLI_PERIOD,
            &o->replicas.renew},
        {"--leader-elect-retry-period", "DURATION", "how long between tries (2s)", CLI_PERIOD,
            &o->replicas.retry},
        {"--leader-elect-resource-name", "NAME", "name of the Lease (the first controller's name)",
            CLI_STRING, &o->replicas.lease_name},
        {"--leader-elect-resource-namespace", "NAME", "namespace of the Lease (the context's)", CLI_STRING,
            &o->replicas.lease_ns},
        {"--leader-elect-identity", "TEXT", "our identity (host, process and a random part)", CLI_STRING,
            &o->replicas.identity},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void request_rows(cli_run_options *o, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Caches and requests"),
        {"--max-object-bytes", "BYTES", "size of the largest object that is accepted (16Mi)", CLI_SIZE,
            &o->requests.max_object},
        {"--watch-list", NULL,
            "start with the initial events of a watch instead of a list, if the server supports it", CLI_FLAG,
            &o->requests.watch_list},
        {"--keep-managed-fields", NULL, "keep metadata.managedFields in the caches", CLI_FLAG,
            &o->requests.keep_managed_fields},
        {"--qps", "N",
            "maximum requests per second, not counting watches and leases (default: only the server's limit)",
            CLI_INT, &o->requests.qps},
        {"--burst", "N", "requests allowed in a burst above --qps (twice --qps)", CLI_INT,
            &o->requests.burst},
        {"--http1", NULL, "never speak HTTP/2", CLI_FLAG, &o->requests.http1},
        {"--no-protobuf", NULL, "read built-in kinds in JSON, too", CLI_FLAG, &o->requests.no_protobuf},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

/* The options of the cluster, except those that mean something else here. */
static void cluster_rows(cli_run_options *o, option_rows *to)
{
    cli_option all[CLI_CLUSTER_MAX];
    size_t own = to->n, of = cli_cluster_options(&o->cluster, all);
    for (size_t i = 0; i < of; i++) {
        bool known = false;
        for (size_t k = 0; k < own; k++)
            known = known || !strcmp(to->rows[k].name, all[i].name);
        if (!known)
            add_rows(to, &all[i], 1);
    }
}

static void add_all(cli_run_options *o, option_rows *to)
{
    cli_option params[CLI_PARAMS_OPTIONS + 1] = {CLI_HEADING("Params")};
    cli_params_options(&o->param_words, params + 1);
    add_rows(to, params, CLI_PARAMS_OPTIONS + 1);
    if (o->dev)
        embedded_rows(o, to);
    script_rows(o, to);
    trial_rows(o, to);
    telling_rows(o, to);
    webhook_rows(o, to);
    replica_rows(o, to);
    request_rows(o, to);
    if (!o->dev) {
        context_rows(o, to);
        cluster_rows(o, to);
    }
}

void cli_run_options_parse(cli_run_options *o, int argc, char **argv)
{
    option_rows options = {0};
    add_all(o, &options);
    cli_parse(cli_command_named(o->command), options.rows, argc, argv, &o->scripts);
}

void cli_run_options_free(cli_run_options *o)
{
    cli_cluster_free(&o->cluster);
    kl_free(o->scripts.v);
    cli_params_words_free(&o->param_words);
    kl_free(o->server.crds.v);
    kl_free(o->server.load.v);
    kl_free(o->contexts.v);
}
