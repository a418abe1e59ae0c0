/* podlist.h - a list that gen.py wrote, mapped into memory, and where its items are. */
#ifndef BENCH_PODLIST_H
#define BENCH_PODLIST_H

#include <stddef.h>

typedef struct podlist {
    const char *text; /* the whole file; not NUL-terminated */
    size_t bytes;
    size_t len; /* items */
    struct {
        size_t at, n;
    } * item; /* each the text of one object, braces included */
} podlist;

/* At most `limit` items (0: all). Ends the program with a message when the file is none of gen.py's. */
podlist podlist_open(const char *path, size_t limit);
void podlist_close(podlist *l);

#endif
