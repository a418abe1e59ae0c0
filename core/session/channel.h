/* channel.h - the channels of a session (k8s.io/apimachinery remotecommand): each message begins with a byte
 * that names its channel. Pure. Any thread. */
#ifndef KL_SESSION_CHANNEL_H
#define KL_SESSION_CHANNEL_H

#include "client/request.h"

#define KL__CHANNEL_V5 "v5.channel.k8s.io" /* v4, and 255 closes a channel */
#define KL__CHANNEL_V4 "v4.channel.k8s.io"

enum { KL__CHANNEL_ERROR = 3, KL__CHANNEL_RESIZE = 4, KL__CHANNEL_CLOSE = 255 };
enum { KL__PORT_DATA = 0, KL__PORT_ERROR = 1 }; /* of port-forward's only port */

/* Parses the error channel's report on a command: KL_OK with the exit status, or an error. */
KL_NODISCARD kl_status kl__channel_exit(
    const kl__request *q, const char *text, size_t n, int *code, kl_err *err);

#endif
