/* fds.h - how many descriptors this process has open. */
#ifndef KL_SPEC_FDS_H
#define KL_SPEC_FDS_H

#include <dirent.h>
#include "support/test.h"

static inline size_t fds_open(void)
{
    size_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

#endif
