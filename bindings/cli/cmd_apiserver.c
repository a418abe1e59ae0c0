/* cmd_apiserver.c - kubelua apiserver, and the embedded server's start for `dev`. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/embedded.h"
#include "cli/envtest.h"
#include "cli/simulate.h"
#include "cli/virtual.h"
#include "client/call_webhook.h"
#include "base/file.h"
#include "faults/faults.h"
#include "yaml/yaml.h"

/* The webhook caller of the one server in this process. */
static kl_webhook_caller *caller;

static void call_webhook(
    void *arg, const kl_server_webhook *call, kl_server_webhook_done *done, void *done_arg)
{
    kl_webhook_call(arg, call->url, call->ca, call->body, call->len, call->timeout, done, done_arg);
}

void cli_server_stop(kl_server *s)
{
    if (!s)
        return;
    kl_server_stop(s);
    kl_webhook_caller_free(caller);
    caller = NULL;
}

int cli_server_load(const char *command, kl_server *s, const cli_list *paths)
{
    kl_err err = KL_ERR_INIT;
    for (size_t i = 0; i < paths->n; i++) {
        size_t n = 0;
        if (kl_server_load_path(s, paths->v[i], &n, &err))
            return cli_fail_err(1, command, &err);
        kl_info("loaded", "path=%s objects=%zu", paths->v[i], n);
    }
    return 0;
}

int cli_server_start(const char *command, const kl_server_options *o, const cli_list *crds, kl_server **out)
{
    kl_server_options options = *o;
    kl_err err = KL_ERR_INIT;
    kl_server *s = NULL;
    caller = kl_webhook_caller_new();
    options.webhook = call_webhook;
    options.webhook_arg = caller;
    if (kl_server_start(&options, &s, &err)) {
        kl_webhook_caller_free(caller);
        caller = NULL;
        return cli_fail_err(1, command, &err);
    }
    int code = cli_server_load(command, s, crds);
    if (code)
        cli_server_stop(s);
    else
        *out = s;
    return code;
}

bool cli_server_write_kubeconfig(const char *command, kl_server *s, const char *path)
{
    int fd;
    kl_err err = KL_ERR_INIT;
    if (kl_file_open_private(path, &fd, &err)) { /* it may have a token */
        kl_err_prefix(&err, "cannot write the kubeconfig");
        cli_fail_err(1, command, &err);
        return false;
    }
    char *text = kl_server_kubeconfig(s);
    FILE *f = fdopen(fd, "w");
    bool good = f && fputs(text, f) >= 0;
    if (f && fclose(f))
        good = false;
    if (!good)
        cli_fail(1, command, "cannot write the kubeconfig %s: %s", path, strerror(errno));
    kl_free(text);
    return good;
}

/* Adds the rules of --faults. */
static kl_status add_faults(kl_server *s, const char *path, kl_err *err)
{
    kl_buf text = KL_BUF_INIT;
    const kl_value *rules = NULL;
    kl_status st = kl_file_read_given(path, "--faults", &text, err);
    if (!st)
        st = kl_yaml_decode(path, text.data, text.len, &rules, err);
    if (!st && kl_faults_add(kl_server_faults(s), rules, err))
        st = kl_err_prefix(err, "--faults %s", path);
    kl_value_unref(rules);
    kl_buf_fini(&text);
    return st;
}

typedef struct apiserver {
    kl_server_options o;
    cli_simulate_options simulate;
    const char *kubeconfig, *level, *log_format, *mode, *links, *faults, *clock;
    bool bare;
    cli_list crds, load, words;
    /* what runs */
    kl_server *server;
    cli_simulation *simulation;
    cli_virtual *time; /* NULL: the machine's clock */
} apiserver;

static void parse(apiserver *a, int argc, char **argv)
{
    const cli_option options[] = {
        {"--listen", "ADDR:PORT", "where to listen; port 0 picks a free one (127.0.0.1:8080)", CLI_STRING,
            &a->o.listen},
        {"--crds", "DIR", "custom resource definitions to install (file or directory; may be repeated)",
            CLI_LIST, &a->crds},
        {"--load", "FILE", "objects to load at the start (file or directory; may be repeated)", CLI_LIST,
            &a->load},
        {"--data", "DIR",
            "keep objects in this directory: every write is on disk before it is answered, and is there "
            "after a restart",
            CLI_STRING, &a->o.data},
        {"--write-kubeconfig", "FILE", "write a kubeconfig for this server", CLI_STRING, &a->kubeconfig},
        {"--token-auth-file", "FILE",
            "users, lines of token,user,uid,\"group,group\"; without --authorization-mode RBAC requests need "
            "none (any other token is an administrator's)",
            CLI_STRING, &a->o.tokens},
        {"--authorization-mode", "MODE",
            "RBAC: requests need a token, and Roles decide what its user may (AlwaysAllow)", CLI_STRING,
            &a->mode, NULL, "AlwaysAllow RBAC"},
        {"--audit-log", "FILE", "append audit.k8s.io/v1 Events to this file, a line of JSON each", CLI_STRING,
            &a->o.audit_log},
        {"--audit-policy", "FILE",
            "an audit.k8s.io/v1 Policy: which requests are logged, and how much of them (all, Metadata)",
            CLI_STRING, &a->o.audit_policy},
        {"--tls", NULL, "serve HTTPS, with a self-signed certificate; RBAC implies it", CLI_FLAG, &a->o.tls},
        {"--tls-cert-file", "FILE", "serve HTTPS with this certificate (PEM)", CLI_STRING, &a->o.tls_cert},
        {"--tls-private-key-file", "FILE", "its key (PEM)", CLI_STRING, &a->o.tls_key},
        {"--client-ca-file", "FILE", "clients with certificates of these authorities are users: CN and O",
            CLI_STRING, &a->o.client_ca},
        {"--no-garbage-collection", NULL,
            "do not delete the dependents of deleted owners (as kube-apiserver without "
            "kube-controller-manager)",
            CLI_FLAG, &a->bare},
        CLI_SIMULATE_ROWS(&a->simulate),
        {"--clock", "real|virtual",
            "virtual: the server's time stands still until a request moves it: POST /kubelua/v1/clock (real)",
            CLI_STRING, &a->clock, NULL, "real virtual"},
        {"--faults", "FILE",
            "rules (YAML or JSON) by which the server fails, stalls and lies; more at /kubelua/v1/faults",
            CLI_STRING, &a->faults},
        {"--insecure-anywhere", NULL,
            "allow to listen beyond this machine without authentication: any client may do anything",
            CLI_FLAG, &a->o.insecure_anywhere},
        {"--envtest", "DIR",
            "put links to this program into DIR, kube-apiserver and etcd, for controller-runtime's envtest "
            "(KUBEBUILDER_ASSETS=DIR), and end",
            CLI_STRING, &a->links},
        {"--log-level", "LEVEL", "debug, info, warn, error or off (info)", CLI_STRING, &a->level, NULL,
            CLI_LEVELS},
        {"--log-format", "FORMAT", "text or json (text)", CLI_STRING, &a->log_format, NULL, "text json"},
        {NULL, NULL, NULL, 0, NULL},
    };
    cli_parse(cli_command_named("apiserver"), options, argc, argv, &a->words);
}

/* Returns 0, or the exit status for options that exclude each other. */
static int check_options(apiserver *a)
{
    kl_server_options *o = &a->o;
    bool rbac = !strcmp(a->mode, "RBAC");
    if (a->words.n)
        return cli_fail(
            2, "apiserver", "takes no arguments, got %s (objects are loaded with --load)", a->words.v[0]);
    if (!rbac && strcmp(a->mode, "AlwaysAllow"))
        return cli_fail(2, "apiserver", "--authorization-mode is AlwaysAllow or RBAC, not \"%s\"", a->mode);
    if (!cli_simulate_known("apiserver", &a->simulate))
        return 2;
    if (!strcmp(a->clock, "virtual") && o->data)
        return cli_fail(2, "apiserver",
            "--data keeps objects across restarts, but a virtual clock starts again with each: use only one "
            "of them");
    if (!o->tls_cert != !o->tls_key)
        return cli_fail(2, "apiserver", "--tls-cert-file and --tls-private-key-file go together");
    if (o->audit_policy && !o->audit_log)
        return cli_fail(2, "apiserver", "--audit-policy needs --audit-log FILE");
    o->collect = !a->bare;
    o->complete = true;
    o->rbac = rbac;
    /* kubectl sends no token over plain HTTP */
    o->tls |= o->rbac || o->tls_cert || o->client_ca;
    return 0;
}

static int start(apiserver *a)
{
    kl_err err = KL_ERR_INIT;
    if (!strcmp(a->clock, "virtual"))
        a->time = cli_virtual_new(&a->o);
    a->o.loads = true;
    int code = cli_server_start("apiserver", &a->o, &a->crds, &a->server);
    if (!code)
        code = cli_server_load("apiserver", a->server, &a->load);
    if (!code && a->kubeconfig && !cli_server_write_kubeconfig("apiserver", a->server, a->kubeconfig))
        code = 1;
    if (!code)
        code = a->time ? cli_virtual_start("apiserver", a->time, &a->simulate, a->server)
                       : cli_simulate_start("apiserver", &a->simulate, a->server, &a->simulation);
    if (!code && a->faults && add_faults(a->server, a->faults, &err))
        code = cli_fail_err(1, "apiserver", &err);
    return code;
}

static int serve(apiserver *a)
{
    int code = check_options(a);
    if (code)
        return code;
    cli_signals_block();
    code = start(a);
    if (!code) {
        kl_server_loaded(a->server);
        printf("serving %s\n", kl_server_url(a->server));
        fflush(stdout);
        kl_mem_settle();
        while (cli_wait(KL_MINUTES(60)) != CLI_TERMINATE)
            ;
    }
    cli_simulate_stop(a->simulation);
    cli_virtual_stop(a->time);
    cli_server_stop(a->server);
    cli_virtual_free(a->time);
    return code;
}

int cli_apiserver(int argc, char **argv)
{
    apiserver a = {.o = {.listen = "127.0.0.1:8080"},
        .simulate = {.nodes = CLI_SIMULATE_NODES},
        .level = "info",
        .mode = "AlwaysAllow",
        .clock = "real"};
    parse(&a, argc, argv);
    int code = 2;
    if (a.links && !a.words.n)
        code = !cli_envtest_links(a.links);
    else if (cli_log("apiserver", a.level, a.log_format))
        code = serve(&a);
    kl_free(a.crds.v);
    kl_free(a.load.v);
    kl_free(a.words.v);
    return code;
}
