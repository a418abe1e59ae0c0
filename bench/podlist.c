/* podlist.c - finds the items of a list by counting braces outside of strings; nothing is decoded. */
#include "podlist.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void die(const char *path, const char *why)
{
    fprintf(stderr, "bench: %s: %s\n", path, why);
    exit(1);
}

/* Behind the object that begins at `p`; NULL when it does not end. */
static const char *skip_object(const char *p, const char *end)
{
    int depth = 0;
    for (bool quoted = false; p < end; p++) {
        if (quoted) {
            if (*p == '\\')
                p++;
            else if (*p == '"')
                quoted = false;
        } else if (*p == '"') {
            quoted = true;
        } else if (*p == '{') {
            depth++;
        } else if (*p == '}' && --depth == 0) {
            return p + 1;
        }
    }
    return NULL;
}

podlist podlist_open(const char *path, size_t limit)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st))
        die(path, strerror(errno));
    podlist l = {.bytes = (size_t)st.st_size};
    l.text = mmap(NULL, l.bytes, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (l.text == MAP_FAILED)
        die(path, strerror(errno));
    close(fd);

    static const char OPENING[] = "\"items\":[";
    const char *end = l.text + l.bytes, *p = memmem(l.text, l.bytes, OPENING, sizeof OPENING - 1);
    if (!p)
        die(path, "no list that gen.py wrote: it has no \"items\"");
    size_t cap = 0;
    for (p += sizeof OPENING - 1; p < end && *p == '{' && (!limit || l.len < limit); l.len++) {
        const char *next = skip_object(p, end);
        if (!next)
            die(path, "the list ends within an object");
        if (l.len == cap && !(l.item = realloc(l.item, (cap = cap ? 2 * cap : 1024) * sizeof *l.item)))
            die(path, "no memory");
        l.item[l.len].at = (size_t)(p - l.text);
        l.item[l.len].n = (size_t)(next - p);
        p = *next == ',' ? next + 1 : next;
    }
    if (!l.len)
        die(path, "the list is empty");
    return l;
}

void podlist_close(podlist *l)
{
    munmap((void *)l->text, l->bytes);
    free(l->item);
}
