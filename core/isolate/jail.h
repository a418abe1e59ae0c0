/* jail.h - gives up, for good, what a process does not need that only computes and talks over its standard
 * input.
 *
 *   no file, no socket, no other process: a seccomp filter ends the process with SIGSYS when it asks the
 *   kernel for anything but memory, time, its own threads' locks and signals, and bytes of that one pipe.
 *   Its address space has a limit, it leaves no core, and it ends with its parent.
 *
 * Sanitizers need more than that: under AddressSanitizer the address space has no limit and a few more calls
 * are let through; under ThreadSanitizer, whose runtime maps and opens as it likes, there is no filter. */
#ifndef KL_ISOLATE_JAIL_H
#define KL_ISOLATE_JAIL_H

#include <stddef.h>
#include <sys/types.h>
#include "base/err.h"

/* The process ends when `parent` does. KL_EIO: that has happened already. First of all. */
KL_NODISCARD kl_status kl_jail_tie(pid_t parent, kl_err *err);
/* All threads of the process are there already, and stay. `memory`: bytes that it may take beyond what it
 * has now. KL_EIO: the kernel refuses; then nothing that is not trusted may run. Once. */
KL_NODISCARD kl_status kl_jail_enter(size_t memory, kl_err *err);

#endif
