/* envtest.h - the embedded API server as kube-apiserver and etcd, for controller-runtime's envtest and other
 * programs that start these two. */
#ifndef KL_CLI_ENVTEST_H
#define KL_CLI_ENVTEST_H

#include <stdbool.h>

/* Puts kube-apiserver and etcd into the directory, links to this program; false after a message. */
bool cli_envtest_links(const char *dir);
/* True when this program was started by one of those names: then it has run as such, and *code is its exit
 * status. */
bool cli_envtest(int argc, char **argv, int *code);

#endif
