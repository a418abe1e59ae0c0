/* envtest.h - makes the embedded API server stand in for kube-apiserver and etcd, for controller-runtime's
 * envtest and other programs that start these two. */
#ifndef KL_CLI_ENVTEST_H
#define KL_CLI_ENVTEST_H

#include <stdbool.h>

/* Puts kube-apiserver and etcd into the directory, links to this program; false after a message. */
bool cli_envtest_links(const char *dir);
/* True when this program was started under one of those names: it has then done that program's work, and
 * *code is its exit status. */
bool cli_envtest(int argc, char **argv, int *code);

#endif
