/* fswatch.h - reports that one of the given files may have changed. It uses inotify on their directories, so
 * it sees editors' renames and the ConfigMap volume's ..data swap; where inotify is refused, it polls mtime,
 * size and inode, and logs that. It has its own thread and calls `changed` there, after 50 ms of quiet. */
#ifndef KL_BASE_FSWATCH_H
#define KL_BASE_FSWATCH_H

#include "base/err.h"

typedef struct kl_fswatch kl_fswatch;
/* `paths` are files or directories (a directory means any file directly in it). */
KL_NODISCARD kl_status kl_fswatch_start(
    const char *const *paths, size_t n, void (*changed)(void *arg), void *arg, kl_fswatch **out, kl_err *err);
/* The same for files, with the directories that contain them: editors rename into those, and a missing file
 * may appear. */
KL_NODISCARD kl_status kl_fswatch_start_around(
    const char *const *files, size_t n, void (*changed)(void *arg), void *arg, kl_fswatch **out, kl_err *err);
void kl_fswatch_stop(kl_fswatch *w); /* joins; after it `changed` is not called any more */

#endif
