/* tsan_longjmp.c - linked into ThreadSanitizer's builds alone, so that Lua's errors and yields unwind its
 * shadow stack.
 *
 * Debian builds liblua with _FORTIFY_SOURCE, so it leaves a C function through __longjmp_chk, which gcc
 * 12's runtime does not intercept. Every yield then left its frames on the shadow stack, and each
 * allocation stored a new, deeper trace: a process grew by gigabytes. Through longjmp, which is
 * intercepted, the frames go away. */
#undef _FORTIFY_SOURCE
#include <setjmp.h>

void __longjmp_chk(jmp_buf env, int value) __attribute__((noreturn, visibility("default")));

void __longjmp_chk(jmp_buf env, int value) { longjmp(env, value); }
