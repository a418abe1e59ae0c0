/* forward.h - a port of a pod as a port of this machine: every connection to it is forwarded to the pod.
 *
 *   listening --accept--> a connection here + a session there, bytes both ways, until either end closes
 *
 * Each connection has its own WebSocket (v4.channel.k8s.io, which kubelets and container runtimes have always
 * served). That protocol cannot close only the writing half. So when the local side closes its writing half,
 * the pod's data is still passed on until it has been silent for 10 s; then both are closed. It runs on the
 * client's streams thread and never blocks its creator. Any thread may call. */
#ifndef KL_SESSION_FORWARD_H
#define KL_SESSION_FORWARD_H

#include "client/client.h"

typedef struct kl_forward kl_forward;

/* `port` is the pod's, 1 to 65535. `listen` as for kl_listen: "127.0.0.1:0" chooses a free port (NULL: that).
 * Texts are copied. It listens when this returns; whether the pod exists shows at the first connection
 * (kl_forward_state). KL_EINVAL: no pod, no namespace or an impossible port; otherwise the errors of
 * kl_listen. It stops when its client is freed. */
KL_NODISCARD kl_status kl_forward_start(kl_client *c, const char *ns, const char *pod, int port,
    const char *listen, kl_forward **out, kl_err *err);
int kl_forward_port(const kl_forward *f); /* of this machine */
/* The message of the last connection's failure, or NULL; the caller frees. *open: connections at present;
 * *total: since the start. */
char *kl_forward_state(kl_forward *f, int *open, int *total);
/* Stops listening and closes its connections. Never waits; f must not be used afterwards. NULL is fine. */
void kl_forward_free(kl_forward *f);

#endif
