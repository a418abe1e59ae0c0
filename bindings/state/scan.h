/* scan.h - reads a script's text before Lua compiles it. Any thread. */
#ifndef LKL_SCAN_H
#define LKL_SCAN_H

#include <stddef.h>

/* Fields in a row, a.b.c: in longer chains an error would overflow Lua's C stack (flaws.c). */
#define LKL_CHAIN_MAX 250
/* A mistake in the text, and its line: a chain that is too long, or a verdict (kube.fail, kube.retry) as a
 * statement, so that its value is lost. NULL when there is none. Static text. */
const char *lkl_scan(const char *text, size_t n, size_t *line);

#endif
