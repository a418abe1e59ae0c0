/* container.c - finds a pod's container and node before the request to its kubelet (pkg/registry/core/pod).
 */
#include "server/container.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "schema/status.h"

bool kl__pod_connects(const char *sub)
{
    static const char *const subs[] = {"log", "exec", "attach", "portforward"};
    for (size_t i = 0; i < sizeof subs / sizeof *subs; i++)
        if (!strcmp(sub, subs[i]))
            return true;
    return false;
}

static bool has_container(const kl_value *list, const char *name)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *have = kl_value_str_at(kl_value_item(list, i), "name", NULL);
        if (have && !strcmp(have, name))
            return true;
    }
    return false;
}

/* Adds names with blanks between them. */
static void add_names(kl_buf *out, const kl_value *list)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl_buf_printf(
            out, "%s%s", out->len ? " " : "", kl_value_str_at(kl_value_item(list, i), "name", NULL));
}

static kl_status check_container(const kl_value *pod, const char *container, kl_err *err)
{
    const kl_value *containers = kl_value_at(pod, "spec", "containers", NULL),
                   *init = kl_value_at(pod, "spec", "initContainers", NULL),
                   *ephemeral = kl_value_at(pod, "spec", "ephemeralContainers", NULL);
    const char *name = kl_object_name(pod);
    if (container && *container) {
        if (has_container(containers, container) || has_container(init, container)
            || has_container(ephemeral, container))
            return KL_OK;
        return kl__fail_bad_request(err, "container %s is not valid for pod %s", container, name);
    }
    if (kl_value_len(containers) == 1)
        return KL_OK;
    kl_buf choice = KL_BUF_INIT;
    add_names(&choice, init);
    add_names(&choice, containers);
    add_names(&choice, ephemeral);
    kl_status st = kl__fail_bad_request(
        err, "a container name must be specified for pod %s, choose one of: [%s]", name, kl_buf_str(&choice));
    kl_buf_fini(&choice);
    return st;
}

kl_status kl__pod_connect(const kl_value *pod, const char *sub, const char *container, kl_err *err)
{
    kl_status st = strcmp(sub, "portforward") ? check_container(pod, container, err) : KL_OK;
    const char *node = kl_value_str_at(pod, "spec", "nodeName", NULL);
    if (st)
        return st;
    if (node && *node)
        return kl__api_fail(err, 501, "NotImplemented", NULL,
            "the embedded API server has no kubelets: it does not serve pods/%s of a pod on a node", sub);
    if (!strcmp(sub, "log"))
        return KL_OK;
    return kl__fail_bad_request(err, "pod %s does not have a host assigned", kl_object_name(pod));
}
