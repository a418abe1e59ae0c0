/* jail.c - limits, then the filter: a list of calls, each allowed, or allowed for one first argument.
 *
 *   load arch -> ours? -> load number -> (number == n -> allow | argument == a -> allow)* -> kill */
#include "isolate/jail.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined __x86_64__
#define ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCH AUDIT_ARCH_AARCH64
#endif

kl_status kl_jail_tie(pid_t parent, kl_err *err)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent ? KL_OK : kl_fail(err, KL_EIO, "the parent process has ended");
}

/* --- the filter --------------------------------------------------------------------------- */

#define ANY (-1)

typedef struct call {
    int number;
    long first; /* its first argument; ANY: every value */
} call;

static size_t put_call(struct sock_filter *f, const call *c)
{
    size_t n = 0;
    f[n++] = (struct sock_filter)BPF_JUMP(
        BPF_JMP | BPF_JEQ | BPF_K, (unsigned)c->number, 0, c->first == ANY ? 1 : 4);
    if (c->first != ANY) {
        f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args));
        f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)c->first, 0, 1);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    } else {
        f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    return n;
}

static kl_status filter(kl_err *err)
{
#if defined __SANITIZE_THREAD__
    (void)put_call, (void)err;
    return KL_OK;
#elif !defined ARCH
    (void)put_call;
    return kl_fail(err, KL_EIO, "isolation needs a seccomp filter, which exists for x86-64 and arm64 only");
#else
    long self = getpid();
    const call calls[] = {
        {SYS_recvfrom, STDIN_FILENO},
        {SYS_sendto, STDIN_FILENO},
        {SYS_ppoll, ANY},
#ifdef SYS_poll
        {SYS_poll, ANY},
#endif
        {SYS_futex, ANY},
        {SYS_clock_gettime, ANY},
        {SYS_gettimeofday, ANY},
        {SYS_clock_nanosleep, ANY},
        {SYS_sched_yield, ANY},
        {SYS_restart_syscall, ANY},
        {SYS_getrandom, ANY},
        {SYS_getpid, ANY},
        {SYS_gettid, ANY},
        {SYS_mmap, ANY},
        {SYS_munmap, ANY},
        {SYS_mremap, ANY},
        {SYS_mprotect, ANY},
        {SYS_madvise, ANY},
        {SYS_brk, ANY},
        {SYS_rt_sigprocmask, ANY},
        {SYS_rt_sigreturn, ANY},
        {SYS_tgkill, self},
        {SYS_prctl, PR_SET_NAME},
        {SYS_rseq, ANY},
        {SYS_set_robust_list, ANY},
        {SYS_exit, ANY},
        {SYS_exit_group, ANY},
#ifdef __SANITIZE_ADDRESS__
        {SYS_sigaltstack, ANY},
        {SYS_write, STDERR_FILENO},
        {SYS_rt_sigaction, ANY},
        {SYS_sched_getaffinity, ANY},
#endif
    };
    struct sock_filter f[5 + 5 * sizeof calls / sizeof *calls];
    size_t n = 0;
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    f[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        n += put_call(f + n, &calls[i]);
    f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = f};
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program))
        return kl_fail(
            err, KL_EIO, "isolation needs seccomp, which the kernel refuses here: %s", strerror(errno));
    return KL_OK;
#endif
}

/* --- limits ------------------------------------------------------------------------------- */

#if !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
/* The bytes of address space in use, and how many of them are writable. */
static bool taken(size_t *space, size_t *data)
{
    unsigned long all = 0, writable = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    bool read = f && fscanf(f, "%lu %*u %*u %*u %*u %lu", &all, &writable) == 2;
    if (f)
        fclose(f);
    *space = all * (size_t)sysconf(_SC_PAGESIZE);
    *data = writable * (size_t)sysconf(_SC_PAGESIZE);
    return read;
}
#endif

static bool limit(int what, size_t n)
{
    return !setrlimit((__rlimit_resource_t)what, &(struct rlimit){n, n});
}

static bool limits(size_t memory)
{
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    (void)memory;
    bool done = true;
#else
    size_t space, data; /* values have their own large range, of which little is writable */
    bool done = taken(&space, &data) && limit(RLIMIT_AS, space + memory) && limit(RLIMIT_DATA, data + memory);
#endif
    return done && limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, STDIN_FILENO + 1) && limit(RLIMIT_FSIZE, 0)
        && limit(RLIMIT_NPROC, 0);
}

static int by_byte(const void *a, const void *b) { return *(const char *)a - *(const char *)b; }

/* Makes libraries read their files now, before the filter forbids it. */
static void remember(void)
{
    char large[4096] = {0};
    qsort(large, sizeof large, 1, by_byte); /* reads the size of the machine's memory */
    setenv("TZ", "UTC0", 1);
    tzset();
    mallopt(M_ARENA_MAX, 1); /* malloc would count the processors in /sys */
}

kl_status kl_jail_enter(size_t memory, kl_err *err)
{
    remember();
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_DUMPABLE, 0) || !limits(memory))
        return kl_fail(
            err, KL_EIO, "isolation needs limits, which the kernel refuses here: %s", strerror(errno));
    return filter(err);
}
