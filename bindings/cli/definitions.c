/* definitions.c - see definitions.h. Definitions are applied by force: their source is the script. */
#include "cli/definitions.h"

#include "base/log.h"

#define KIND "apiextensions.k8s.io/v1/CustomResourceDefinition"
#define TIMEOUT KL_SECONDS(30)

static kl_status apply(kl_client *c, const kl_value *definition, kl_err *err)
{
    kl_op op;
    kl_op_init(&op, KL_APPLY, KIND);
    op.name = kl_value_str_at(definition, "metadata", "name", NULL);
    op.body = definition;
    op.force = true;
    op.unread = true;
    op.timeout = TIMEOUT;
    kl_status st = kl_client_wait(c, &op, NULL, err);
    if (st)
        kl_err_prefix(err, "the definition %s", op.name);
    else
        kl_info("applied the definition", "name=%s", op.name);
    return st;
}

kl_status cli_definitions_apply(kl_client *const *clients, size_t n, const kl_program *p, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < kl_value_len(p->crds) && !st; k++)
            st = apply(clients[i], kl_value_item(p->crds, k), err);
    return st;
}

kl_status cli_definitions_load(kl_server *s, const kl_program *p, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t k = 0; k < kl_value_len(p->crds) && !st; k++)
        st = kl_server_load(s, kl_value_item(p->crds, k), err);
    return st;
}
