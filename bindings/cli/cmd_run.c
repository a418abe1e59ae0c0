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
#include "observe/effects.h"
#include "run/fleet.h"
#include "control/command.h"
#include "control/inspect.h"
#include "controller/probation.h"
#include "control/why.h"
#include "lab/record.h"
#include "cli/embedded.h"
#include "cli/run_options.h"
#include "cli/play.h"
#include "cli/progress.h"
#include "cli/scripts.h"
#include "cli/simulate.h"
#include "script/isolate.h"
#include "cli/shadow.h"

/* When a controller's state has not changed for this long, its start, or its relist, is over. */
#define SETTLED_AFTER KL_SECONDS(1)

typedef struct session {
    cli_run_options o;
    cli_params *params;
    cli_scripts *loaded;
    kl_server *server;
    cli_simulation *simulation;
    kl_fleet *fleet; /* NULL: one cluster */
    size_t n;        /* clusters */
    kl_client **clients;
    kl_record *recording; /* NULL: none */
    kl_effects *effect_log;
    kl_manager **managers; /* the first has the endpoints, and speaks for all */
    cli_shadow *candidate;
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
    kl_client_options o = {.http1 = s->o.requests.http1,
        .no_protobuf = s->o.requests.no_protobuf,
        .qps = (double)s->o.requests.qps,
        .burst = (int)s->o.requests.burst,
        .allow_http = s->o.runs.allow_http};
    if (s->o.dev) {
        int code = cli_server_start(s->o.command,
            &(kl_server_options){.listen = s->o.server.listen,
                .data = s->o.server.data,
                .insecure_anywhere = s->o.server.insecure_anywhere,
                .collect = true,
                .complete = true},
            &s->o.server.crds, &s->server);
        if (code)
            return code;
        /* objects of --load may be of kinds that the scripts define */
        if (cli_scripts_define_here(s->loaded, s->server, &err))
            return cli_fail_err(1, s->o.command, &err);
        code = cli_server_load(s->o.command, s->server, &s->o.server.load);
        if (code)
            return code;
        if (s->o.server.write_kubeconfig
            && !cli_server_write_kubeconfig(s->o.command, s->server, s->o.server.write_kubeconfig))
            return 1;
        fprintf(stderr, "embedded API server: %s (kubectl --server %s get nodes)\n", kl_server_url(s->server),
            kl_server_url(s->server));
        kl_config_for_server(kl_server_url(s->server), &o.config);
        code = cli_simulate_start(s->o.command, &s->o.simulate, s->server, &s->simulation);
        if (code)
            return code;
    } else {
        kl_config_sources sources;
        cli_cluster_sources(&s->o.cluster, &sources);
        sources.o.ns = s->o.runs.ns;
        if (s->o.contexts.n)
            sources.o.context = s->o.contexts.v[number];
        if (kl_config_load(&sources, &o.config, &err))
            return cli_fail_err(1, s->o.command, &err);
    }
    /* an embedded server has nothing worth caching */
    char *cache = s->o.dev ? NULL : cli_cluster_cache(&s->o.cluster);
    o.cache_dir = cache;
    kl_status st = kl_client_new(&o, &s->clients[number], &err);
    kl_free(cache);
    if (!st && s->fleet)
        st = kl_fleet_add(s->fleet, s->o.contexts.v[number], s->clients[number], &number, &err);
    return st ? cli_fail_err(1, s->o.command, &err) : 0;
}

static int begin_record(session *s)
{
    if (!s->o.trial.record.path)
        return 0;
    kl_err err = KL_ERR_INIT;
    s->o.trial.record.scripts = cli_scripts_say(s->loaded);
    kl_status st = kl_record_new(&s->o.trial.record, &s->recording, &err);
    kl_value_unref(s->o.trial.record.scripts);
    return st ? cli_fail_err(1, s->o.command, &err) : 0;
}

static kl_dry dry_run_of(const session *s)
{
    return !s->o.trial.dry_run                  ? KL_DRY_NOT
        : !strcmp(s->o.trial.dry_run, "server") ? KL_DRY_SERVER
                                                : KL_DRY_HERE;
}

static int begin_effects(session *s)
{
    kl_err err = KL_ERR_INIT;
    if ((s->o.trial.effects || s->o.dev)
        && kl_effects_new(s->o.trial.effects, s->o.trial.effects_max, s->o.dev && !s->o.trial.dry_run,
            &s->effect_log, &err))
        return cli_fail_err(1, s->o.command, &err);
    return 0;
}

static int make_manager(session *s, size_t number)
{
    kl_err err = KL_ERR_INIT;
    const kl_config *c = kl_client_config(s->clients[number]);
    kl_manager_options o = {.client = s->clients[number],
        .fleet = s->fleet,
        .cluster = number,
        .ns = s->o.runs.ns,
        .workers = (int)s->o.runs.workers,
        .workers_forced = s->o.runs.workers > 0,
        .grace = s->o.runs.grace,
        .reload_keys = s->o.runs.reload_keys,
        .reload_deadline = s->o.runs.reload_deadline,
        .never_slow_down = s->o.runs.never_slow_down,
        .rollback_window = s->o.runs.rollback_window ? s->o.runs.rollback_window : -1,
        .broken = cli_scripts_broken,
        .broken_arg = s->loaded,
        .max_object = s->o.requests.max_object,
        .flight_bytes = s->o.telling.flight_bytes,
        .trace_requests = s->o.telling.trace_requests,
        .metrics_cert_dir = number ? NULL : s->o.telling.metrics_cert_dir,
        .metrics_auth = s->o.telling.metrics_auth && !number,
        .drop_managed_fields = !s->o.requests.keep_managed_fields && !s->o.trial.dry_run,
        .dry_run = dry_run_of(s),
        .watch_list = s->o.requests.watch_list,
        .metrics_address = number ? NULL : s->o.telling.metrics,
        .health_address = number ? NULL : s->o.telling.health,
        .record = s->recording,
        .changed = moved,
        .stuck = cli_leave_stuck,
        .webhooks = s->o.webhooks};
    if (s->o.dev && !s->o.webhooks.listen)
        o.webhooks.listen = "127.0.0.1:0";
    if (s->o.dev && !s->o.webhooks.url && !s->o.webhooks.service)
        o.webhooks.url = "auto";
    kl_witness effects = kl_effects_witness(s->effect_log);
    o.witnesses = &effects;
    o.n_witnesses = s->effect_log != NULL;
    o.election = (kl_election_options){.shards = s->o.replicas.shards,
        .max_shards = s->o.replicas.max_shards,
        .enabled = s->o.replicas.elect || s->o.replicas.elect_each,
        .per_controller = s->o.replicas.elect_each,
        .name = s->o.replicas.lease_name
            ? s->o.replicas.lease_name
            : kl_controller_spec_manager(kl_program_spec(cli_scripts_first(s->loaded), 0)),
        .ns = s->o.replicas.lease_ns ? s->o.replicas.lease_ns : c->context_namespace,
        .identity = s->o.replicas.identity,
        .lease = s->o.replicas.lease,
        .renew = s->o.replicas.renew,
        .retry = s->o.replicas.retry};
    if (kl_manager_new(&o, &s->managers[number], &err))
        return cli_fail_err(1, s->o.command, &err);
    return cli_scripts_add(s->loaded, s->managers[number], &err) ? cli_fail_err(1, s->o.command, &err) : 0;
}

/* Threads that serve one of several clusters carry its name, so log lines show which cluster they are
 * about. */
static void work_for(const session *s, size_t number)
{
    if (s->fleet)
        kl_thread_set_badge(number < s->n ? s->o.contexts.v[number] : NULL);
}

/* A signal ended the process before its scripts had loaded. */
#define TOLD_TO_END (-1)

/* Begins before anything runs, so the shadow follows from the first key on. */
static int begin_shadow(session *s)
{
    kl_err err = KL_ERR_INIT;
    s->candidate = cli_shadow_new(s->managers[0], s->params, s->control);
    if (s->o.trial.shadow
        && cli_shadow_begin(s->candidate, s->o.trial.shadow, (size_t)s->o.trial.promote_after, &err))
        return cli_fail_err(1, s->o.command, &err);
    return 0;
}

/* Prepares everything before anything runs: a run in one cluster may call another. */
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
        code = err.status ? cli_fail_err(1, s->o.command, &err) : TOLD_TO_END;
    if (!code && (s->o.dev || s->o.runs.install_crds)
        && cli_scripts_define(s->loaded, s->clients, s->n, &err))
        code = cli_fail_err(1, s->o.command, &err);
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
            code = cli_fail_err(1, s->o.command, &err);
    }
    work_for(s, s->n);
    return code;
}

static void stop_manager(void *arg) { kl_manager_stop(arg); }

/* Stops all managers at the same time: each takes as long as its runs need. None is freed before the last has
 * stopped. */
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
    kl_control_close(s->control);     /* until here it answers what the shutdown waits for */
    for (size_t i = 0; i < s->n; i++) /* caches wait for the lookups of their kinds */
        if (s->clients[i])
            kl_client_quit(s->clients[i]);
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

/* Handles one piece of news; false at the end, with the exit status. */
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
    cli_progress *p = cli_progress_new(s->managers, s->n, s->fleet ? s->o.contexts.v : NULL);
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

/* Opens the sockets by which others look at the process. */
static int listen_all(session *s)
{
    kl_inspect_add(s->control, s->managers[0]);
    kl_why_add(s->control, s->managers[0]);
    kl_command_add(s->control, s->managers[0]);
    int code = cli_control_listen(s->control, s->o.command, s->o.telling.control_path);
    return code ? code
                : cli_dashboard_start(s->o.command, s->o.telling.dashboard, s->o.telling.dashboard_token,
                    s->control, s->managers[0], &s->page);
}

/* How long the process may take to end beyond the grace period. The manager gives a run 5 s to notice that it
 * was aborted; what else takes time (webhooks, the mapper's functions, what scripts hold) has the rest. */
#define LATE_MAX KL_SECONDS(10)

/* Runs until the process ends. */
static int work(session *s)
{
    if (s->o.trial.dry_run)
        kl_info(
            "a dry run: nothing is written", "by=%s", *s->o.trial.dry_run ? s->o.trial.dry_run : "client");
    cli_scripts_watch(s->loaded, s->managers, s->n, s->recording);
    cli_scripts_route(s->loaded, s->control);
    if (s->o.server.play)
        s->player = cli_play_start(s->o.server.play, s->managers[0], kl_server_url(s->server), &s->o.scripts);
    int code = stay(s);
    kl_time grace = s->o.runs.grace ? s->o.runs.grace : KL_SECONDS(30);
    cli_second_signal_exits();
    cli_leave_after(grace + LATE_MAX);
    kl_info("stopping", "grace_seconds=%lld", (long long)(grace / KL_SECONDS(1)));
    return code;
}

static int run_session(session *s)
{
    int code = cli_run_options_check(&s->o);
    if (code)
        return code;
    kl_err err = KL_ERR_INIT;
    if (s->o.runs.isolate)
        lkl_isolate_all();
    if (cli_params_new(&s->o.param_words, &s->params, &err))
        code = cli_fail_err(2, s->o.command, &err);
    else if (cli_scripts_load(&s->o.scripts, s->params, &s->loaded, &err))
        code = cli_fail_err(1, s->o.command, &err);
    s->n = s->o.contexts.n > 1 ? s->o.contexts.n : 1;
    s->fleet = s->n > 1 ? kl_fleet_new() : NULL;
    s->clients = kl_new_array(kl_client *, s->n);
    s->managers = kl_new_array(kl_manager *, s->n);
    s->control = cli_control_new(s->o.command, &s->o.scripts);
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

static int session_main(session *s, int argc, char **argv)
{
    cli_run_options_parse(&s->o, argc, argv);
    int code = 2;
    if (cli_log(s->o.command, s->o.telling.level, s->o.telling.log_format)) {
        cli_signals_block();
        code = run_session(s);
    }
    cli_run_options_free(&s->o);
    return code;
}

int cli_run(int argc, char **argv)
{
    session s = {.o = {.command = "run",
                     .telling.level = "info",
                     .runs.rollback_window = KL_PROBATION_DEFAULT,
                     .simulate = {.nodes = CLI_SIMULATE_NODES}}};
    return session_main(&s, argc, argv);
}

int cli_dev(int argc, char **argv)
{
    session s = {.o = {.command = "dev",
                     .dev = true,
                     .telling.level = "info",
                     .runs.rollback_window = KL_PROBATION_DEFAULT,
                     .simulate = {.nodes = CLI_SIMULATE_NODES},
                     .server.listen = "127.0.0.1:0"}};
    return session_main(&s, argc, argv);
}
