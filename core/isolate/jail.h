/* jail.h - permanently drops all rights of a process that only computes and communicates over its standard
 * input.
 *
 * No file, no socket, no other process: a seccomp filter ends the process with SIGSYS when it makes system
 * calls other than for memory, time, its own threads' locks and signals, and that one pipe. Its address space
 * is limited, it writes no core file, and it ends with its parent.
 *
 * Sanitizers need more than that: under AddressSanitizer the address space has no limit and a few more calls
 * are allowed; under ThreadSanitizer, whose runtime maps memory and opens files at any time, there is no
 * filter. */
#ifndef KL_ISOLATE_JAIL_H
#define KL_ISOLATE_JAIL_H

#include <stddef.h>
#include <sys/types.h>
#include "base/err.h"

/* Makes the process end when `parent` ends. KL_EIO: the parent has ended already. Call it first. */
KL_NODISCARD kl_status kl_jail_tie(pid_t parent, kl_err *err);
/* All threads of the process must exist already. `memory`: bytes that it may use beyond its present size.
 * KL_EIO: the kernel refuses, so no untrusted code may run. Call it once. */
KL_NODISCARD kl_status kl_jail_enter(size_t memory, kl_err *err);

#endif
