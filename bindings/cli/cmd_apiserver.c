/* cmd_apiserver.c - kubelua apiserver, and the embedded server's start for `dev`. */
#include <errno.h>
#include <fcntl.h>
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
#include "value/yaml.h"

/* Of the one server that a process has. */
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
    if (kl_webhook_caller_new(&caller, &err))
        return cli_fail_err(1, command, &err);
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
    char *text = kl_server_kubeconfig(s);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = f && fputs(text, f) >= 0;
    if (f && fclose(f))
        good = false;
    if (!good)
        cli_fail(1, command, "cannot write the kubeconfig %s: %s", path, strerror(errno));
    kl_free(text);
    return good;
}

/* The rules of --faults. */
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

int cli_apiserver(int argc, char **argv)
{
    const cli_command *self = cli_command_named("apiserver");
    const char *kubeconfig = NULL, *level = "info", *log_format = NULL, *mode = "AlwaysAllow", *links = NULL,
               *faults = NULL;
    kl_server_options o = {.listen = "127.0.0.1:8080"};
    cli_simulate_options simulate = {.nodes = CLI_SIMULATE_NODES};
    cli_simulation *simulation = NULL;
    cli_virtual *time = NULL;
    const char *clock = "real";
    bool bare = false;
    cli_list crds = {0}, load = {0}, words = {0};
    const cli_option options[] = {
        {"--listen", "ADDR:PORT", "where to listen; port 0 picks a free one (127.0.0.1:8080)", CLI_STRING,
            &o.listen},
        {"--crds", "DIR", "custom resource definitions to install (file or directory; may be repeated)",
            CLI_LIST, &crds},
        {"--load", "FILE", "objects to load at the start (file or directory; may be repeated)", CLI_LIST,
            &load},
        {"--data", "DIR",
            "keep objects in this directory: every write is on disk before it is answered, and is there "
            "after a restart",
            CLI_STRING, &o.data},
        {"--write-kubeconfig", "FILE", "write a kubeconfig for this server", CLI_STRING, &kubeconfig},
        {"--token-auth-file", "FILE",
            "users, lines of token,user,uid,\"group,group\"; without --authorization-mode RBAC requests need "
            "none (any other token is an administrator's)",
            CLI_STRING, &o.tokens},
        {"--authorization-mode", "MODE",
            "RBAC: requests need a token, and Roles decide what its user may (AlwaysAllow)", CLI_STRING,
            &mode, NULL, "AlwaysAllow RBAC"},
        {"--audit-log", "FILE", "append audit.k8s.io/v1 Events to this file, a line of JSON each", CLI_STRING,
            &o.audit_log},
        {"--audit-policy", "FILE",
            "an audit.k8s.io/v1 Policy: which requests are logged, and how much of them (all, Metadata)",
            CLI_STRING, &o.audit_policy},
        {"--tls", NULL, "serve HTTPS, with a self-signed certificate; RBAC implies it", CLI_FLAG, &o.tls},
        {"--tls-cert-file", "FILE", "serve HTTPS with this certificate (PEM)", CLI_STRING, &o.tls_cert},
        {"--tls-private-key-file", "FILE", "its key (PEM)", CLI_STRING, &o.tls_key},
        {"--client-ca-file", "FILE", "clients with certificates of these authorities are users: CN and O",
            CLI_STRING, &o.client_ca},
        {"--no-garbage-collection", NULL,
            "do not delete the dependents of deleted owners (as kube-apiserver without "
            "kube-controller-manager)",
            CLI_FLAG, &bare},
        CLI_SIMULATE_ROWS(&simulate),
        {"--clock", "real|virtual",
            "virtual: the server's time stands until it is moved: POST /kubelua/v1/clock (real)", CLI_STRING,
            &clock, NULL, "real virtual"},
        {"--faults", "FILE",
            "rules (YAML or JSON) by which the server fails, stalls and lies; more at /kubelua/v1/faults",
            CLI_STRING, &faults},
        {"--insecure-anywhere", NULL,
            "allow to listen beyond this machine without authentication: any client may do anything",
            CLI_FLAG, &o.insecure_anywhere},
        {"--envtest", "DIR",
            "put links to this program into DIR, kube-apiserver and etcd, for controller-runtime's envtest "
            "(KUBEBUILDER_ASSETS=DIR), and end",
            CLI_STRING, &links},
        {"--log-level", "LEVEL", "debug, info, warn, error or off (info)", CLI_STRING, &level, NULL,
            CLI_LEVELS},
        {"--log-format", "FORMAT", "text or json (text)", CLI_STRING, &log_format, NULL, "text json"},
        {NULL, NULL, NULL, 0, NULL},
    };
    cli_parse(self, options, argc, argv, &words);
    if (words.n)
        return cli_fail(
            2, "apiserver", "takes no arguments, got %s (objects are loaded with --load)", words.v[0]);
    if (links)
        return !cli_envtest_links(links);
    if (!cli_log("apiserver", level, log_format))
        return 2;
    if (strcmp(mode, "RBAC") && strcmp(mode, "AlwaysAllow"))
        return cli_fail(2, "apiserver", "--authorization-mode is AlwaysAllow or RBAC, not \"%s\"", mode);
    if (!cli_simulate_known("apiserver", &simulate))
        return 2;
    bool moved = !strcmp(clock, "virtual");
    if (moved && o.data)
        return cli_fail(2, "apiserver",
            "--data keeps objects over restarts, and a virtual clock begins anew with each: leave one out");
    o.collect = !bare;
    o.rbac = !strcmp(mode, "RBAC");
    if (!o.tls_cert != !o.tls_key)
        return cli_fail(2, "apiserver", "--tls-cert-file and --tls-private-key-file go together");
    if (o.audit_policy && !o.audit_log)
        return cli_fail(2, "apiserver", "--audit-policy says what goes into --audit-log FILE: name one");
    /* kubectl sends no token over plain HTTP */
    o.tls |= o.rbac || o.tls_cert || o.client_ca;
    cli_signals_block();
    if (moved)
        time = cli_virtual_new(&o);
    kl_server *s = NULL;
    int code = cli_server_start("apiserver", &o, &crds, &s);
    if (!code)
        code = cli_server_load("apiserver", s, &load);
    if (!code && kubeconfig && !cli_server_write_kubeconfig("apiserver", s, kubeconfig))
        code = 1;
    if (!code)
        code = time ? cli_virtual_start("apiserver", time, &simulate, s)
                    : cli_simulate_start("apiserver", &simulate, s, &simulation);
    kl_err err = KL_ERR_INIT;
    if (!code && faults && add_faults(s, faults, &err))
        code = cli_fail_err(1, "apiserver", &err);
    if (!code) {
        printf("serving %s\n", kl_server_url(s));
        fflush(stdout);
        while (cli_wait(KL_MINUTES(60)) != CLI_TERMINATE)
            ;
    }
    cli_simulate_stop(simulation);
    cli_virtual_stop(time);
    cli_server_stop(s);
    cli_virtual_free(time);
    kl_free(crds.v);
    kl_free(load.v);
    kl_free(words.v);
    return code;
}
