/* mem.h - allocation that cannot return NULL.
 *
 * Small fixed things come from here; running out of memory ends in the hook, which by default logs and
 * aborts. Data whose size the network decides goes through kl_buf, which has a ceiling. Any thread. */
#ifndef KL_BASE_MEM_H
#define KL_BASE_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

void *kl_alloc(size_t n);  /* uninitialised */
void *kl_zalloc(size_t n); /* zeroed */
void *kl_realloc(void *p, size_t n);
void kl_free(void *p);          /* NULL is fine */
char *kl_strdup(const char *s); /* NULL gives NULL */
char *kl_strndup(const char *s, size_t n);
char *kl_sprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *kl_vsprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));
bool kl_ends_with(const char *text, const char *end);
void *kl_zalloc_array(size_t size, size_t n); /* zeroed; an overflowing product dies in the hook */
#define kl_new(T) ((T *)kl_zalloc(sizeof(T)))
#define kl_new_array(T, n) ((T *)kl_zalloc_array(sizeof(T), (n)))

/* Called when memory, threads or the like run out. The hook must not return; if it does, we abort. NULL: the
 * default, which logs. */
typedef void kl_mem_hook(const char *what);
void kl_mem_set_hook(kl_mem_hook *hook);
void kl_mem_die(const char *what) __attribute__((noreturn));

/* For a program that has started: returns free heap to the system, and the pages of code and constant data
 * that only startup used. A page that is needed again comes back from the page cache, with a minor fault. Any
 * thread; takes about a millisecond. Only the program itself calls it: a library must not do this to its
 * host. */
void kl_mem_settle(void);

#endif
