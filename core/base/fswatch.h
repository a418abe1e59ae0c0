/* fswatch.h - reports that one of the given files may have changed. It uses inotify on their directories, so
 * it sees editors' renames and the ConfigMap volume's ..data swap; where inotify is refused, it polls mtime,
 * size and inode, and logs that. It has its own thread and calls `changed` there, after 50 ms of quiet. */
#ifndef KL_BASE_FSWATCH_H
#define KL_BASE_FSWATCH_H

#include "base/err.h"

typedef struct kl_fswatch kl_fswatch;
/* Files may be missing, but not their directories. With `suffix` (such as ".lua"; NULL: none), other files
 * beside them whose names end so count, too: one may be a module of a script. */
KL_NODISCARD kl_status kl_fswatch_start(const char *const *files, size_t n, const char *suffix,
    void (*changed)(void *arg), void *arg, kl_fswatch **out, kl_err *err);
void kl_fswatch_stop(kl_fswatch *w); /* joins; after it `changed` is not called any more */

#endif
