/* simulate.c - a client with all permissions, and a manager with the stand-ins. */
#include "cli/simulate.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "run/params.h"
#include "yaml/yaml.h"

/* Runs end with the process: nobody waits for a simulation. */
#define GRACE KL_SECONDS(2)

struct cli_simulation {
    kl_client *client;
    kl_manager *manager;
};

bool cli_simulate_known(const char *command, const cli_simulate_options *o)
{
    const char *names[LKL_SIMULATE_MOST];
    size_t n;
    kl_err err = KL_ERR_INIT;
    if (o->nodes != CLI_SIMULATE_NODES && !o->words)
        return !cli_fail(2, command, "--simulate-nodes needs --simulate");
    if (!o->words || !lkl_simulate_chosen(o->words, names, &n, &err))
        return true;
    cli_fail(2, command, "--simulate: %s", kl_err_message(&err));
    kl_err_fini(&err);
    return false;
}

/* Connects as the server's own kubeconfig does: with its certificate, as an administrator. */
kl_status cli_simulate_client(kl_server *s, kl_client **out, kl_err *err)
{
    char *text = kl_server_kubeconfig(s);
    const kl_value *v = NULL;
    kl_status st = kl_yaml_decode("kubeconfig", text, strlen(text), &v, err);
    kl_free(text);
    if (st)
        return st;
    const kl_value *cluster = kl_value_get(kl_value_item(kl_value_get(v, "clusters"), 0), "cluster"),
                   *user = kl_value_get(kl_value_item(kl_value_get(v, "users"), 0), "user");
    const char *ca = kl_value_str_at(cluster, "certificate-authority-data", NULL),
               *token = kl_value_str_at(user, "token", NULL);
    kl_client_options o = {0};
    kl_config_for_server(kl_server_url(s), &o.config);
    o.config.token = kl_strdup(token);
    kl_buf pem = KL_BUF_INIT;
    if (ca)
        st = kl_base64_decode(ca, strlen(ca), &pem, err);
    if (!st && ca)
        o.config.ca_data = kl_strdup(kl_buf_str(&pem));
    kl_buf_fini(&pem);
    kl_value_unref(v);
    if (!st)
        return kl_client_new(&o, out, err);
    kl_config_fini(&o.config);
    return st;
}

/* Sets the number of nodes, for the script that makes them. */
static kl_status set_nodes(kl_program *p, long nodes, kl_err *err)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "simulate-cluster.nodes", nodes);
    kl_build_end(b);
    const kl_value *params = kl_builder_done(b);
    kl_status st = kl_program_set_params(p, params, KL_PARAMS_VALUES, err);
    kl_value_unref(params);
    return st;
}

kl_status cli_simulate_load(
    const cli_simulate_options *o, kl_program *programs[LKL_SIMULATE_MOST], size_t *n, kl_err *err)
{
    const char *names[LKL_SIMULATE_MOST];
    size_t of = 0;
    *n = 0;
    kl_status st = o->words ? lkl_simulate_chosen(o->words, names, &of, err) : KL_OK;
    for (size_t i = 0; i < of && !st; i++) {
        st = lkl_simulate_load(names[i], &programs[*n], err);
        if (!st)
            st = set_nodes(programs[(*n)++], o->nodes, err);
    }
    return st;
}

/* Logs one line for all stand-ins. */
static void tell(const cli_simulate_options *o)
{
    const char *names[LKL_SIMULATE_MOST];
    size_t n = 0;
    kl_err err = KL_ERR_INIT;
    kl_buf text = KL_BUF_INIT;
    if (lkl_simulate_chosen(o->words, names, &n, &err))
        kl_err_fini(&err);
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&text, "%s%s", i ? ", " : "", names[i]);
    kl_info("stand-ins simulate a cluster", "parts=%s nodes=%ld", kl_log_quoted(kl_buf_str(&text)), o->nodes);
    kl_buf_fini(&text);
}

int cli_simulate_start(
    const char *command, const cli_simulate_options *o, kl_server *server, cli_simulation **out)
{
    *out = NULL;
    if (!o->words)
        return 0;
    kl_program *programs[LKL_SIMULATE_MOST];
    size_t n = 0;
    kl_err err = KL_ERR_INIT;
    cli_simulation *s = kl_new(cli_simulation);
    kl_status st = cli_simulate_load(o, programs, &n, &err);
    if (!st)
        st = cli_simulate_client(server, &s->client, &err);
    if (!st)
        st = kl_manager_new(&(kl_manager_options){.client = s->client,
                                .grace = GRACE,
                                .flight_bytes = KL_FLIGHT_OFF,
                                .never_slow_down = true,
                                .quiet = true,
                                .drop_managed_fields = true},
            &s->manager, &err);
    for (size_t i = 0; i < n; i++) {
        if (!st)
            st = kl_manager_add(s->manager, programs[i], NULL, &err);
        kl_program_unref(programs[i]);
    }
    if (!st)
        st = kl_manager_start(s->manager, &err);
    if (st) {
        cli_simulate_stop(s);
        return cli_fail_err(1, command, &err);
    }
    tell(o);
    *out = s;
    return 0;
}

void cli_simulate_stop(cli_simulation *s)
{
    if (!s)
        return;
    kl_manager_free(s->manager);
    if (s->client)
        kl_client_free(s->client);
    kl_free(s);
}
