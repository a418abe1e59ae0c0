/* mem.c - allocation that cannot return NULL: the one place that decides what happens when memory ends.
 *
 * The hook may log, count or dump; it must not return. When it does, we abort: no caller handles NULL. */
#include "base/mem.h"

#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "base/log.h"

static void default_hook(const char *what) { kl_error("out of resources", "what=%s", what); }

static _Atomic(kl_mem_hook *) hook = default_hook;

void kl_mem_set_hook(kl_mem_hook *h)
{
    atomic_store_explicit(&hook, h ? h : default_hook, memory_order_release);
}

void kl_mem_die(const char *what)
{
    atomic_load_explicit(&hook, memory_order_acquire)(what);
    abort();
}

void *kl_alloc(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        kl_mem_die("memory");
    return p;
}

/* Below this, malloc and memset take a tenth of what glibc's calloc takes, which has no cache of threads. */
#define CLEARED_SMALL 1024

void *kl_zalloc(size_t n)
{
    if (n && n <= CLEARED_SMALL) {
        void *small = kl_alloc(n);
        __asm__("" : "+r"(small)); /* or the compiler makes a calloc of it */
        return memset(small, 0, n);
    }
    void *p = calloc(1, n ? n : 1);
    if (!p)
        kl_mem_die("memory");
    return p;
}

void *kl_zalloc_array(size_t size, size_t n)
{
    size_t total;
    if (__builtin_mul_overflow(size, n, &total))
        kl_mem_die("memory (array size overflows)");
    return kl_zalloc(total);
}

void *kl_realloc(void *p, size_t n)
{
    void *q = realloc(p, n ? n : 1);
    if (!q)
        kl_mem_die("memory");
    return q;
}

void kl_free(void *p) { free(p); }

char *kl_strdup(const char *s) { return s ? kl_strndup(s, strlen(s)) : NULL; }

bool kl_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

char *kl_strndup(const char *s, size_t n)
{
    if (!s)
        return NULL;
    n = strnlen(s, n);
    char *p = kl_alloc(n + 1);
    memcpy(p, s, n);
    p[n] = '\0';
    return p;
}

char *kl_sprintf(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = kl_vsprintf(fmt, ap);
    va_end(ap);
    return p;
}

char *kl_vsprintf(const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    if (n < 0)
        kl_mem_die("memory (text cannot be formatted)");
    char *p = kl_alloc((size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return p;
}

/* --- rest --------------------------------------------------------------------------------- */

/* Read-only segments equal the file, so their dropped pages are read again, from the page cache. Segments
 * with relocations are left alone, and those that a debugger may have written to. */
static int drop_clean_pages(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || p->p_flags & PF_W || !info->dlpi_name)
            continue;
        uintptr_t from = (info->dlpi_addr + p->p_vaddr + page - 1) & ~(page - 1),
                  to = (info->dlpi_addr + p->p_vaddr + p->p_memsz) & ~(page - 1);
        if (to > from)
            (void)madvise((void *)from, to - from, MADV_DONTNEED);
    }
    return 0;
}

void kl_mem_settle(void)
{
    malloc_trim(0);
    dl_iterate_phdr(drop_clean_pages, NULL);
}
