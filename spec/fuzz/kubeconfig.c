/* kubeconfig.c - any bytes as a kubeconfig: read or refused with a message that names the file; what was
 * read resolves or is refused with a message. Entries that name files are not resolved: the fuzzer would
 * open them. */
#include "fuzz/fuzz.h"
#include "auth/kubeconfig.h"

static bool names_files(const kl__kubeconfig *k)
{
    size_t it = 0;
    void *entry;
    while (kl_map_next(k->clusters, &it, NULL, &entry))
        if (((kl__kube_cluster *)entry)->ca_file)
            return true;
    for (it = 0; kl_map_next(k->users, &it, NULL, &entry);) {
        const kl__kube_user *u = entry;
        if (u->token_file || u->cert_file || u->key_file)
            return true;
    }
    return false;
}

static void resolve(const kl__kubeconfig *k, const char *context)
{
    kl_err err = KL_ERR_INIT;
    kl_config c;
    kl_config_overrides o = {.context = context, .insecure = -1};
    if (kl__config_resolve(k, &o, &c, NULL, &err)) {
        CLAIM(*kl_err_message(&err));
        kl_err_fini(&err);
        return;
    }
    CLAIM(c.server && c.context_namespace);
    kl_config copy;
    kl_config_copy(&copy, &c);
    kl_config_fini(&c);
    kl_config_fini(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kl_err err = KL_ERR_INIT;
    kl__kubeconfig k;
    if (kl__kubeconfig_parse("FILE", "/dir", (const char *)data, size, &k, &err)) {
        CLAIM(strstr(kl_err_message(&err), "FILE"));
        kl_err_fini(&err);
        return 0;
    }
    if (!names_files(&k)) {
        size_t it = 0;
        const char *name;
        resolve(&k, NULL);
        while (kl_map_next(k.contexts, &it, &name, NULL))
            resolve(&k, name);
    }
    kl__kubeconfig_fini(&k);
    return 0;
}
