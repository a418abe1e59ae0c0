/* cmd_run.c - kubelua run and kubelua dev: a client, a manager, the scripts, and their reload.
 *
 *   load scripts -> connect -> start -> (news: a file changed, SIGHUP, the play ended, a signal)* -> stop
 *
 * The main thread waits for news; everything else has its own threads. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "cli/control.h"
#include "cli/dashboard.h"
#include "model/quantity.h"
#include "observe/effects.h"
#include "run/fleet.h"
#include "observe/flight.h"
#include "control/command.h"
#include "control/inspect.h"
#include "controller/probation.h"
#include "control/why.h"
#include "lab/record.h"
#include "cli/embedded.h"
#include "cli/play.h"
#include "cli/progress.h"
#include "cli/scripts.h"
#include "cli/simulate.h"
#include "script/isolate.h"
#include "cli/shadow.h"

/* So long after the last change of a controller's state its start, or its relist, is over. */
#define SETTLED_AFTER KL_SECONDS(1)

/* Each replica watches all the others. */
#define SHARDS_MOST 1000

typedef struct session {
    const char *command;
    bool dev;
    /* options */
    cli_cluster cluster;
    const char *flight, *ns, *level, *listen, *write_kubeconfig, *data, *play, *metrics, *health;
    const char *effects; /* a file, or NULL */
    size_t effects_max;
    kl_effects *effect_log;
    const char *shadow; /* a candidate, or NULL */
    long promote_after;
    cli_shadow *candidate;
    const char *dry_run; /* NULL: not; "": told here; "server" */
    const char *lease_name, *lease_ns, *identity, *shards, *log_format, *metrics_cert_dir, *control_path,
        *dashboard, *dashboard_token;
    long workers, qps, burst;
    size_t max_object, max_shards, flight_bytes;
    const char *reload_keys_word;
    kl_reload_keys reload_keys;
    kl_time reload_deadline, rollback_window;
    bool never_slow_down;
    kl_time grace, lease, renew, retry;
    bool install_crds, allow_http, insecure_anywhere, isolate, metrics_auth, trace_requests, http1,
        no_protobuf, elect, elect_each, keep_managed_fields, watch_list;
    kl_webhook_options webhooks;
    cli_list scripts, crds, load, contexts;
    cli_params_words param_words;
    cli_simulate_options simulate;
    kl_record_options record;
    /* what runs */
    cli_params *params;
    cli_scripts *loaded;
    kl_server *server;
    cli_simulation *simulation;
    kl_fleet *fleet; /* NULL: one cluster */
    size_t n;        /* clusters */
    kl_client **clients;
    kl_record *recording;  /* NULL: none */
    kl_manager **managers; /* the first has the endpoints, and speaks for all */
    kl_control *control;
    kl_dashboard *page;
    cli_play *player;
} session;

static void moved(void *arg)
{
    (void)arg;
    cli_move();
}

/* --- life --------------------------------------------------------------------------------- */

static int connect_server(session *s, size_t number)
{
    kl_err err = KL_ERR_INIT;
    kl_client_options o = {.http1 = s->http1,
        .no_protobuf = s->no_protobuf,
        .qps = (double)s->qps,
        .burst = (int)s->burst,
        .allow_http = s->allow_http};
    if (s->dev) {
        int code = cli_server_start(s->command,
            &(kl_server_options){.listen = s->listen,
                .data = s->data,
                .insecure_anywhere = s->insecure_anywhere,
                .collect = true},
            &s->crds, &s->server);
        if (code)
            return code;
        /* what is loaded may be of kinds that the scripts bring */
        if (cli_scripts_define_here(s->loaded, s->server, &err))
            return cli_fail_err(1, s->command, &err);
        code = cli_server_load(s->command, s->server, &s->load);
        if (code)
            return code;
        if (s->write_kubeconfig && !cli_server_write_kubeconfig(s->command, s->server, s->write_kubeconfig))
            return 1;
        fprintf(stderr, "embedded API server: %s (kubectl --server %s get nodes)\n", kl_server_url(s->server),
            kl_server_url(s->server));
        kl_config_for_server(kl_server_url(s->server), &o.config);
        code = cli_simulate_start(s->command, &s->simulate, s->server, &s->simulation);
        if (code)
            return code;
    } else {
        kl_config_sources sources;
        cli_cluster_sources(&s->cluster, &sources);
        sources.o.ns = s->ns;
        if (s->contexts.n)
            sources.o.context = s->contexts.v[number];
        if (kl_config_load(&sources, &o.config, &err))
            return cli_fail_err(1, s->command, &err);
    }
    /* an embedded server has nothing worth remembering */
    char *cache = s->dev ? NULL : cli_cluster_cache(&s->cluster);
    o.cache_dir = cache;
    kl_status st = kl_client_new(&o, &s->clients[number], &err);
    kl_free(cache);
    if (!st && s->fleet)
        st = kl_fleet_add(s->fleet, s->contexts.v[number], s->clients[number], &number, &err);
    return st ? cli_fail_err(1, s->command, &err) : 0;
}

static int begin_record(session *s)
{
    if (!s->record.path)
        return 0;
    kl_err err = KL_ERR_INIT;
    s->record.scripts = cli_scripts_say(s->loaded);
    kl_status st = kl_record_new(&s->record, &s->recording, &err);
    kl_value_unref(s->record.scripts);
    return st ? cli_fail_err(1, s->command, &err) : 0;
}

static kl_dry dry_run_of(const session *s)
{
    return !s->dry_run ? KL_DRY_NOT : !strcmp(s->dry_run, "server") ? KL_DRY_SERVER : KL_DRY_HERE;
}

static int begin_effects(session *s)
{
    kl_err err = KL_ERR_INIT;
    if ((s->effects || s->dev)
        && kl_effects_new(s->effects, s->effects_max, s->dev && !s->dry_run, &s->effect_log, &err))
        return cli_fail_err(1, s->command, &err);
    return 0;
}

static int make_manager(session *s, size_t number)
{
    kl_err err = KL_ERR_INIT;
    const kl_config *c = kl_client_config(s->clients[number]);
    kl_manager_options o = {.client = s->clients[number],
        .fleet = s->fleet,
        .cluster = number,
        .ns = s->ns,
        .workers = (int)s->workers,
        .workers_forced = s->workers > 0,
        .grace = s->grace,
        .reload_keys = s->reload_keys,
        .reload_deadline = s->reload_deadline,
        .never_slow_down = s->never_slow_down,
        .rollback_window = s->rollback_window ? s->rollback_window : -1,
        .broken = cli_scripts_broken,
        .broken_arg = s->loaded,
        .max_object = s->max_object,
        .flight_bytes = s->flight_bytes,
        .trace_requests = s->trace_requests,
        .metrics_cert_dir = number ? NULL : s->metrics_cert_dir,
        .metrics_auth = s->metrics_auth && !number,
        .drop_managed_fields = !s->keep_managed_fields && !s->dry_run,
        .dry_run = dry_run_of(s),
        .watch_list = s->watch_list,
        .metrics_address = number ? NULL : s->metrics,
        .health_address = number ? NULL : s->health,
        .record = s->recording,
        .changed = moved,
        .stuck = cli_leave_stuck,
        .webhooks = s->webhooks};
    if (s->dev && !s->webhooks.listen)
        o.webhooks.listen = "127.0.0.1:0";
    if (s->dev && !s->webhooks.url && !s->webhooks.service)
        o.webhooks.url = "auto";
    kl_witness effects = kl_effects_witness(s->effect_log);
    o.witnesses = &effects;
    o.n_witnesses = s->effect_log != NULL;
    o.election = (kl_election_options){.shards = s->shards,
        .max_shards = s->max_shards,
        .enabled = s->elect || s->elect_each,
        .per_controller = s->elect_each,
        .name = s->lease_name ? s->lease_name
                              : kl_controller_spec_manager(kl_program_spec(cli_scripts_first(s->loaded), 0)),
        .ns = s->lease_ns ? s->lease_ns : c->context_namespace,
        .identity = s->identity,
        .lease = s->lease,
        .renew = s->renew,
        .retry = s->retry};
    if (kl_manager_new(&o, &s->managers[number], &err))
        return cli_fail_err(1, s->command, &err);
    return cli_scripts_add(s->loaded, s->managers[number], &err) ? cli_fail_err(1, s->command, &err) : 0;
}

/* Threads that work for one of several clusters wear its name, so that log lines tell whose they are. */
static void work_for(const session *s, size_t number)
{
    if (s->fleet)
        kl_thread_set_badge(number < s->n ? s->contexts.v[number] : NULL);
}

/* The process was told to end before its scripts were there. */
#define TOLD_TO_END (-1)

/* Before anything runs: so it follows from the first key on. */
static int begin_shadow(session *s)
{
    kl_err err = KL_ERR_INIT;
    s->candidate = cli_shadow_new(s->managers[0], s->params, s->control);
    if (s->shadow && cli_shadow_begin(s->candidate, s->shadow, (size_t)s->promote_after, &err))
        return cli_fail_err(1, s->command, &err);
    return 0;
}

/* Everything is there before anything runs: a run in one cluster may go to another. */
static int start_all(session *s)
{
    int code = 0;
    kl_err err = KL_ERR_INIT;
    for (size_t i = 0; i < s->n && !code; i++) {
        work_for(s, i);
        code = connect_server(s, i);
    }
    work_for(s, s->n);
    if (!code && cli_scripts_fetch(s->loaded, s->clients[0], &err))
        code = err.status ? cli_fail_err(1, s->command, &err) : TOLD_TO_END;
    if (!code && (s->dev || s->install_crds) && cli_scripts_define(s->loaded, s->clients, s->n, &err))
        code = cli_fail_err(1, s->command, &err);
    if (!code)
        code = begin_record(s);
    if (!code)
        code = begin_effects(s);
    for (size_t i = 0; i < s->n && !code; i++) {
        work_for(s, i);
        code = make_manager(s, i);
    }
    if (!code)
        code = begin_shadow(s);
    for (size_t i = 0; i < s->n && !code; i++) {
        work_for(s, i);
        if (kl_manager_start(s->managers[i], &err))
            code = cli_fail_err(1, s->command, &err);
    }
    work_for(s, s->n);
    return code;
}

static void stop_manager(void *arg) { kl_manager_stop(arg); }

/* All at once: each takes the time that its runs need. None is freed before the last has stopped. */
static void stop_all(session *s)
{
    kl_thread **threads = kl_new_array(kl_thread *, s->n);
    for (size_t i = 0; i < s->n; i++) {
        work_for(s, i);
        if (s->managers[i])
            threads[i] = kl_thread_start("kl-stop", stop_manager, s->managers[i]);
    }
    work_for(s, s->n);
    for (size_t i = 0; i < s->n; i++)
        kl_thread_join(threads[i]);
    kl_free(threads);
    kl_dashboard_stop(s->page);
    kl_control_close(s->control); /* until here it can be asked what the end waits for */
    for (size_t i = 0; i < s->n; i++)
        kl_manager_free(s->managers[i]);
    kl_record_free(s->recording);
    kl_effects_free(s->effect_log);
    for (size_t i = 0; i < s->n; i++)
        if (s->clients[i])
            kl_client_free(s->clients[i]);
    kl_fleet_free(s->fleet);
    kl_free(s->managers);
    kl_free(s->clients);
    kl_control_free(s->control);
}

/* Takes one piece of news; false at the end, with its status. */
static bool take_news(session *s, cli_progress *p, cli_news news, kl_time *settle, int *code)
{
    bool more = true;
    switch (news) {
    case CLI_TERMINATE: return false;
    case CLI_HANGUP: cli_scripts_reload(s->loaded, true); break;
    case CLI_POKED:
        if (s->player && cli_play_over(s->player, code))
            return false;
        cli_scripts_reload(s->loaded, false);
        cli_shadow_news(s->candidate);
        break;
    case CLI_MOVED: more = cli_progress_states(p) || *settle != KL_NEVER; break;
    case CLI_TIMEOUT:
        more = false;
        if (kl_clock_now(kl_clock_real()) >= *settle) {
            kl_mem_settle();
            *settle = KL_NEVER;
        }
        break;
    }
    if (more)
        *settle = kl_clock_now(kl_clock_real()) + SETTLED_AFTER;
    return true;
}

static int stay(session *s)
{
    int code = 0;
    cli_progress *p = cli_progress_new(s->managers, s->n, s->fleet ? s->contexts.v : NULL);
    (void)cli_progress_states(p);
    kl_time now = kl_clock_now(kl_clock_real()), next, settle = now + SETTLED_AFTER;
    do {
        now = kl_clock_now(kl_clock_real());
        next = cli_progress_caches(p, now);
        next = next < settle ? next : settle;
    } while (take_news(s, p,
        cli_wait(next == KL_NEVER ? KL_NEVER
                : next > now      ? next - now
                                  : 0),
        &settle, &code));
    cli_progress_free(p);
    return code;
}

/* "auto" or how many. */
static bool shards_known(session *s)
{
    char *end = NULL;
    unsigned long n = 0;
    if (!s->shards || !strcmp(s->shards, "auto"))
        return true;
    if (*s->shards >= '1' && *s->shards <= '9')
        n = strtoul(s->shards, &end, 10);
    s->max_shards = n;
    return n && !*end && n <= SHARDS_MOST;
}

/* Of the words that the option takes. */
static void read_reload_keys(session *s)
{
    static const char *const words[] = {"all", "failing", "none"};
    for (int i = 0; s->reload_keys_word && i < 3; i++)
        if (!strcmp(s->reload_keys_word, words[i]))
            s->reload_keys = (kl_reload_keys)(KL_RELOAD_KEYS_ALL + i);
}

/* "off", or bytes as Kubernetes writes them. */
static bool flight_known(session *s)
{
    kl_quantity *q = NULL;
    int64_t n = 0;
    if (!s->flight)
        return true;
    if (!strcmp(s->flight, "off")) {
        s->flight_bytes = KL_FLIGHT_OFF;
        return true;
    }
    bool good = !kl_quantity_parse(s->flight, &q, NULL) && kl_quantity_value(q, &n)
        && n >= (int64_t)KL_FLIGHT_BYTES_MIN;
    kl_quantity_free(q);
    s->flight_bytes = (size_t)n;
    return good;
}

/* 0, or the exit status when options that do not go together were told. */
static int check_options(session *s)
{
    if (!s->scripts.n)
        return cli_fail(2, s->command, "name at least one script: kubelua %s SCRIPT.lua", s->command);
    if (s->burst && !s->qps)
        return cli_fail(2, s->command, "--burst applies only together with --qps");
    if (!cli_simulate_known(s->command, &s->simulate))
        return 2;
    read_reload_keys(s);
    if (s->dry_run && *s->dry_run && strcmp(s->dry_run, "server") && strcmp(s->dry_run, "client"))
        return cli_fail(2, s->command,
            "--dry-run tells what would be written, --dry-run=server asks the server for it; there is no "
            "--dry-run=%s",
            s->dry_run);
    if (s->effects_max && !s->effects)
        return cli_fail(2, s->command, "--effects-max needs --effects FILE");
    if (s->effects_max && s->effects_max < KL_EFFECTS_MAX_LEAST)
        return cli_fail(2, s->command,
            "--effects-max must be at least 1Mi: it limits the size of all files of the log together");
    if (s->promote_after && !s->shadow)
        return cli_fail(2, s->command, "--promote-after needs --shadow CANDIDATE.lua");
    if (s->shadow && s->contexts.n > 1)
        return cli_fail(2, s->command,
            "--shadow follows the controllers of one cluster: run a process for each --context");
    if (!shards_known(s))
        return cli_fail(2, s->command,
            "--shards says how many replicas share the keys: auto for all of them, or a number from 1 to %d, "
            "not \"%s\"",
            SHARDS_MOST, s->shards);
    if (s->record.path && s->contexts.n > 1)
        return cli_fail(2, s->command,
            "--record records one cluster: run one process per --context, each with its own file");
    if (!s->record.path && (s->record.max || s->record.secrets))
        return cli_fail(
            2, s->command, "%s needs --record FILE", s->record.max ? "--record-max" : "--record-secrets");
    if (s->record.max && s->record.max < KL_RECORD_MAX_LEAST)
        return cli_fail(2, s->command,
            "--record-max must be at least 1Mi: it limits the size of all files of a recording together");
    if (!flight_known(s))
        return cli_fail(2, s->command,
            "--flight-recorder must be a number of bytes, 64Ki or more, or off, not \"%s\"", s->flight);
    return 0;
}

/* The sockets by which others look at the process. */
static int listen_all(session *s)
{
    kl_inspect_add(s->control, s->managers[0]);
    kl_why_add(s->control, s->managers[0]);
    kl_command_add(s->control, s->managers[0]);
    int code = cli_control_listen(s->control, s->command, s->control_path);
    return code ? code
                : cli_dashboard_start(
                    s->command, s->dashboard, s->dashboard_token, s->control, s->managers[0], &s->page);
}

/* Until it is over. */
static int work(session *s)
{
    if (s->dry_run)
        kl_info("a dry run: nothing is written", "by=%s", *s->dry_run ? s->dry_run : "client");
    cli_scripts_watch(s->loaded, s->managers, s->n, s->recording);
    cli_scripts_route(s->loaded, s->control);
    if (s->play)
        s->player = cli_play_start(s->play, s->managers[0], kl_server_url(s->server), &s->scripts);
    int code = stay(s);
    kl_info("stopping", "grace_seconds=%lld",
        (long long)((s->grace ? s->grace : KL_SECONDS(30)) / KL_SECONDS(1)));
    cli_second_signal_exits();
    return code;
}

static int run_session(session *s)
{
    int code = check_options(s);
    if (code)
        return code;
    kl_err err = KL_ERR_INIT;
    if (s->isolate)
        lkl_isolate_all();
    if (cli_params_new(&s->param_words, &s->params, &err))
        code = cli_fail_err(2, s->command, &err);
    else if (cli_scripts_load(&s->scripts, s->params, &s->loaded, &err))
        code = cli_fail_err(1, s->command, &err);
    s->n = s->contexts.n > 1 ? s->contexts.n : 1;
    s->fleet = s->n > 1 ? kl_fleet_new() : NULL;
    s->clients = kl_new_array(kl_client *, s->n);
    s->managers = kl_new_array(kl_manager *, s->n);
    s->control = cli_control_new(s->command, &s->scripts);
    if (!code)
        code = start_all(s);
    if (!code)
        code = listen_all(s);
    if (!code)
        code = work(s);
    cli_scripts_unwatch(s->loaded);
    cli_play_stop(s->player);
    stop_all(s);
    cli_shadow_free(s->candidate);
    if (s->loaded && !cli_scripts_end(s->loaded))
        code = 1;
    cli_scripts_free(s->loaded);
    cli_params_free(s->params);
    cli_simulate_stop(s->simulation);
    cli_server_stop(s->server);
    return code == TOLD_TO_END ? 0 : code;
}

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

static void embedded_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("The embedded server"),
        {"--listen", "ADDR:PORT", "where the embedded server listens (127.0.0.1:0)", CLI_STRING, &s->listen},
        {"--crds", "DIR", "custom resource definitions to install (may be repeated)", CLI_LIST, &s->crds},
        {"--load", "FILE", "objects to load at the start: file or directory (may be repeated)", CLI_LIST,
            &s->load},
        {"--data", "DIR", "keep the embedded server's objects in this directory, over restarts", CLI_STRING,
            &s->data},
        CLI_SIMULATE_ROWS(&s->simulate),
        {"--insecure-anywhere", NULL,
            "let the embedded server listen beyond this machine without authentication", CLI_FLAG,
            &s->insecure_anywhere},
        {"--write-kubeconfig", "FILE", "write a kubeconfig for the embedded server", CLI_STRING,
            &s->write_kubeconfig},
        {"--play", "FILE.lua", "run this program beside the controllers; end with it", CLI_STRING, &s->play},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void context_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING(CLI_CLUSTER_HEADING),
        {"--context", "NAME", "the kubeconfig's context to use; several: a manager for each cluster",
            CLI_LIST, &s->contexts},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void script_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Scripts"),
        {"--namespace", "NAME", "look at this namespace only (all)", CLI_STRING, &s->ns, "-n"},
        {"--workers", "N", "worker threads per controller; overrides the script (1)", CLI_INT, &s->workers},
        {"--isolate", NULL,
            "run the functions of every script in child processes without files and network, as isolate = "
            "true does; the top level is still loaded here",
            CLI_FLAG, &s->isolate},
        {"--install-crds", NULL, "apply the definitions that scripts bring with kube.crd (dev always does)",
            CLI_FLAG, &s->install_crds},
        {"--allow-http", NULL,
            "let ctx.http reach the servers listed in a controller's `http` (default: none)", CLI_FLAG,
            &s->allow_http},
        {"--reload-keys", "WORD",
            "which keys run again on new logic: all, failing or none (all; scripts say otherwise with "
            "on_reload)",
            CLI_STRING, &s->reload_keys_word, NULL, "all failing none"},
        {"--rollback-window", "DURATION",
            "how long new logic is watched after a reload; the old logic returns if the new one does "
            "much worse (1m; 0s: never)",
            CLI_DURATION, &s->rollback_window},
        {"--reload-deadline", "DURATION",
            "how long runs on the old logic may go on after a reload (30s, or their timeout)", CLI_DURATION,
            &s->reload_deadline},
        {"--never-slow-down", NULL, "do not throttle keys that re-trigger themselves or fight over a field",
            CLI_FLAG, &s->never_slow_down},
        {"--grace-period", "DURATION", "how long running reconciles may take to finish at shutdown (30s)",
            CLI_DURATION, &s->grace},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void trial_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Trying before doing"),
        {"--dry-run", "server",
            "write nothing, and log what would be written (=client is the same); =server: include the "
            "server's defaults and admission",
            CLI_MAYBE, &s->dry_run, NULL, "client server"},
        {"--shadow", "CANDIDATE.lua",
            "run this candidate beside the scripts, on the same keys and without writing, and compare "
            "(kubelua shadow)",
            CLI_STRING, &s->shadow},
        {"--promote-after", "N",
            "the shadow takes over when N keys match and none differs (default: on command)", CLI_INT,
            &s->promote_after},
        {"--record", "FILE",
            "record what runs see and do, for kubelua replay; FILE.1 and so on are the older files",
            CLI_STRING, &s->record.path},
        {"--record-max", "BYTES", "maximum size of these files together; the oldest is removed (256Mi)",
            CLI_SIZE, &s->record.max},
        {"--record-secrets", NULL, "include the contents of Secrets (default: redacted)", CLI_FLAG,
            &s->record.secrets},
        {"--effects", "FILE",
            "log each write as a line of JSON: who, what, the response, and the change; FILE.1 and so on "
            "are the older files",
            CLI_STRING, &s->effects},
        {"--effects-max", "BYTES", "maximum size of these files together; the oldest is removed (64Mi)",
            CLI_SIZE, &s->effects_max},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void telling_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("What it tells"),
        {"--log-level", "LEVEL", "debug, info, warn, error or off (info)", CLI_STRING, &s->level, NULL,
            CLI_LEVELS},
        {"--log-format", "FORMAT",
            "text, or json: one object a line, with everything that is known about a run (text)", CLI_STRING,
            &s->log_format, NULL, "text json"},
        {"--trace-requests", NULL,
            "send the reconcile's trace along with requests (a W3C traceparent header)", CLI_FLAG,
            &s->trace_requests},
        {"--metrics-bind-address", "ADDR:PORT", "serve /metrics there", CLI_STRING, &s->metrics},
        {"--metrics-cert-dir", "DIR",
            "serve metrics over HTTPS with tls.crt and tls.key from this directory; read again when they "
            "change",
            CLI_STRING, &s->metrics_cert_dir},
        {"--metrics-auth", NULL,
            "only for bearer tokens that the API server lets get /metrics (TokenReview, SubjectAccessReview)",
            CLI_FLAG, &s->metrics_auth},
        {"--health-probe-bind-address", "ADDR:PORT", "serve /healthz and /readyz there", CLI_STRING,
            &s->health},
        {"--dashboard", "ADDR:PORT", "serve the dashboard, a page that shows live what happens", CLI_STRING,
            &s->dashboard},
        {"--dashboard-token-file", "FILE",
            "file with the token that allows changes from the dashboard (default: read-only)", CLI_STRING,
            &s->dashboard_token},
        {"--control", "PATH|off",
            "the socket by which kubelua why, attach and others reach this process ($XDG_RUNTIME_DIR/kubelua "
            "or /tmp/kubelua-UID, PID.sock)",
            CLI_STRING, &s->control_path},
        {"--flight-recorder", "BYTES|off", "memory for the history of runs, for kubelua why (8Mi)",
            CLI_STRING, &s->flight},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void webhook_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Webhooks"),
        {"--webhook-listen", "ADDR:PORT",
            "serve the scripts' webhooks there, over TLS (:9443; of dev 127.0.0.1:0)", CLI_STRING,
            &s->webhooks.listen},
        {"--webhook-service", "NS/NAME[:PORT]",
            "the Service through which the API server reaches them; kubelua maintains configurations and "
            "certificates",
            CLI_STRING, &s->webhooks.service},
        {"--webhook-url", "https://HOST:PORT", "the same without a Service", CLI_STRING, &s->webhooks.url},
        {"--webhook-cert-dir", "DIR",
            "tls.crt, tls.key and perhaps ca.crt for them; read again when they change", CLI_STRING,
            &s->webhooks.cert_dir},
        {"--webhook-secret", "NS/NAME",
            "Secret in which replicas share their certificate (NAME-webhook-tls beside the Service)",
            CLI_STRING, &s->webhooks.secret},
        {"--webhook-cert-life", "DURATION", "validity of certificates that kubelua issues (90 days)",
            CLI_DURATION, &s->webhooks.life},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void replica_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Several replicas"),
        {"--leader-elect", NULL, "only the holder of a Lease reconciles", CLI_FLAG, &s->elect},
        {"--leader-elect-per-controller", NULL, "the same, with one Lease per controller (NAME-CONTROLLER)",
            CLI_FLAG, &s->elect_each},
        {"--shards", "auto|N",
            "replicas share the keys: all of them, or the first N (scripts say otherwise with shard = false)",
            CLI_STRING, &s->shards},
        {"--leader-elect-lease-duration", "DURATION", "how long others wait for a silent leader (15s)",
            CLI_PERIOD, &s->lease},
        {"--leader-elect-renew-deadline", "DURATION", "how long the leader tries to renew (10s)", CLI_PERIOD,
            &s->renew},
        {"--leader-elect-retry-period", "DURATION", "how long between tries (2s)", CLI_PERIOD, &s->retry},
        {"--leader-elect-resource-name", "NAME", "name of the Lease (the first controller's name)",
            CLI_STRING, &s->lease_name},
        {"--leader-elect-resource-namespace", "NAME", "namespace of the Lease (the context's)", CLI_STRING,
            &s->lease_ns},
        {"--leader-elect-identity", "TEXT", "our identity (host, process and a random part)", CLI_STRING,
            &s->identity},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

static void request_rows(session *s, option_rows *to)
{
    const cli_option rows[] = {
        CLI_HEADING("Caches and requests"),
        {"--max-object-bytes", "BYTES", "size of the largest object that is accepted (16Mi)", CLI_SIZE,
            &s->max_object},
        {"--watch-list", NULL,
            "begin with the initial events of a watch rather than with a list, where the server can",
            CLI_FLAG, &s->watch_list},
        {"--keep-managed-fields", NULL, "keep metadata.managedFields in the caches", CLI_FLAG,
            &s->keep_managed_fields},
        {"--qps", "N",
            "maximum requests per second, not counting watches and leases (default: only the server's limit)",
            CLI_INT, &s->qps},
        {"--burst", "N", "requests allowed in a burst above --qps (twice --qps)", CLI_INT, &s->burst},
        {"--http1", NULL, "never speak HTTP/2", CLI_FLAG, &s->http1},
        {"--no-protobuf", NULL, "read built-in kinds in JSON, too", CLI_FLAG, &s->no_protobuf},
    };
    add_rows(to, rows, sizeof rows / sizeof *rows);
}

/* The options that say which cluster, but for those that have a meaning of their own here. */
static void cluster_rows(session *s, option_rows *to)
{
    cli_option all[CLI_CLUSTER_MAX];
    size_t own = to->n, of = cli_cluster_options(&s->cluster, all);
    for (size_t i = 0; i < of; i++) {
        bool known = false;
        for (size_t k = 0; k < own; k++)
            known = known || !strcmp(to->rows[k].name, all[i].name);
        if (!known)
            add_rows(to, &all[i], 1);
    }
}

static void add_options(session *s, option_rows *to)
{
    cli_option params[CLI_PARAMS_OPTIONS + 1] = {CLI_HEADING("Params")};
    cli_params_options(&s->param_words, params + 1);
    add_rows(to, params, CLI_PARAMS_OPTIONS + 1);
    if (s->dev)
        embedded_rows(s, to);
    script_rows(s, to);
    trial_rows(s, to);
    telling_rows(s, to);
    webhook_rows(s, to);
    replica_rows(s, to);
    request_rows(s, to);
    if (!s->dev) {
        context_rows(s, to);
        cluster_rows(s, to);
    }
}

static int session_main(session *s, const cli_command *self, int argc, char **argv)
{
    option_rows options = {0};
    add_options(s, &options);
    cli_parse(self, options.rows, argc, argv, &s->scripts);
    int code = 2;
    if (cli_log(s->command, s->level, s->log_format)) {
        cli_signals_block();
        code = run_session(s);
    }
    cli_cluster_free(&s->cluster);
    kl_free(s->scripts.v);
    cli_params_words_free(&s->param_words);
    kl_free(s->crds.v);
    kl_free(s->load.v);
    kl_free(s->contexts.v);
    return code;
}

int cli_run(int argc, char **argv)
{
    session s = {.command = "run",
        .level = "info",
        .rollback_window = KL_PROBATION_DEFAULT,
        .simulate = {.nodes = CLI_SIMULATE_NODES}};
    return session_main(&s, cli_command_named("run"), argc, argv);
}

int cli_dev(int argc, char **argv)
{
    session s = {.command = "dev",
        .dev = true,
        .level = "info",
        .rollback_window = KL_PROBATION_DEFAULT,
        .simulate = {.nodes = CLI_SIMULATE_NODES},
        .listen = "127.0.0.1:0"};
    return session_main(&s, cli_command_named("dev"), argc, argv);
}
