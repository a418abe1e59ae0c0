/* container.h - logs, exec, attach and port-forward: the answers that need no kubelet. Pure; any thread. */
#ifndef KL_SERVER_CONTAINER_H
#define KL_SERVER_CONTAINER_H

#include "value/value.h"

/* Whether the subresource of a pod is one of these. */
bool kl__pod_connects(const char *sub);
/* KL_OK: the pod has no node yet, so its log is empty. Else 400 for an unknown container or a pod without a
 * node, or 501, because this server has no kubelets. `container` may be NULL. */
KL_NODISCARD kl_status kl__pod_connect(
    const kl_value *pod, const char *sub, const char *container, kl_err *err);

#endif
