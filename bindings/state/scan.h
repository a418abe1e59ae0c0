/* scan.h - reads a script's text before Lua compiles it. Any thread. */
#ifndef LKL_SCAN_H
#define LKL_SCAN_H

#include <stddef.h>

/* The longest chain of fields, a.b.c; in a longer one an error would overflow Lua's C stack (flaws.c). */
#define LKL_CHAIN_MAX 250
/* A mistake in the text, a static message, and its line: a chain that is too long, or a verdict (kube.fail,
 * kube.retry) as a statement, whose value would be lost. NULL when there is none. */
const char *lkl_scan(const char *text, size_t n, size_t *line);

#endif
