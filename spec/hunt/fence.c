/* fence.c - a filter of system calls around the thread that runs hostile programs: files, sockets and
 * processes trap. */
#include "hunt.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/sha1.h"

static const struct {
    int nr;
    const char *name;
} FORBIDDEN[] = {
#ifdef SYS_open
    {SYS_open, "open"},
    {SYS_creat, "creat"},
    {SYS_unlink, "unlink"},
    {SYS_rename, "rename"},
    {SYS_link, "link"},
    {SYS_symlink, "symlink"},
    {SYS_mkdir, "mkdir"},
    {SYS_rmdir, "rmdir"},
    {SYS_chmod, "chmod"},
    {SYS_chown, "chown"},
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
    {SYS_pipe, "pipe"},
#endif
    {SYS_openat, "openat"},
    {SYS_openat2, "openat2"},
    {SYS_unlinkat, "unlinkat"},
    {SYS_renameat2, "renameat2"},
    {SYS_mkdirat, "mkdirat"},
    {SYS_linkat, "linkat"},
    {SYS_symlinkat, "symlinkat"},
    {SYS_mknodat, "mknodat"},
    {SYS_truncate, "truncate"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_socket, "socket"},
    {SYS_socketpair, "socketpair"},
    {SYS_connect, "connect"},
    {SYS_bind, "bind"},
    {SYS_listen, "listen"},
    {SYS_accept, "accept"},
    {SYS_accept4, "accept4"},
    {SYS_sendto, "sendto"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_recvfrom, "recvfrom"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_kill, "kill"},
    {SYS_ptrace, "ptrace"},
    {SYS_setuid, "setuid"},
    {SYS_chdir, "chdir"},
    {SYS_chroot, "chroot"},
    {SYS_mount, "mount"},
    {SYS_inotify_add_watch, "inotify_add_watch"},
    {SYS_memfd_create, "memfd_create"},
    {SYS_pipe2, "pipe2"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
};
#define N_FORBIDDEN (sizeof FORBIDDEN / sizeof *FORBIDDEN)

static _Atomic bool dying;

/* A sanitizer's report opens what it likes: it does not get it, goes on, and says what was found. */
void __asan_on_error(void);
void __asan_on_error(void) { atomic_store(&dying, true); }

/* UBSan reads files when it has its first finding, before it tells anybody. */
static bool is_sanitizers(const void *code)
{
    Dl_info at;
    return dladdr(code, &at) && at.dli_fname && strstr(at.dli_fname, "san.so");
}

static void touched(int signo, siginfo_t *info, void *context)
{
    ucontext_t *u = context;
    (void)signo;
    if (is_sanitizers(info->si_call_addr))
        atomic_store(&dying, true);
    if (atomic_load(&dying)) {
#ifdef __x86_64__
        u->uc_mcontext.gregs[REG_RAX] = -EPERM;
#else
        (void)u;
#endif
        return;
    }
    atomic_store(&dying, true);
    for (size_t i = 0; i < N_FORBIDDEN; i++)
        if (FORBIDDEN[i].nr == info->si_syscall)
            hunt_wrong("the program got as far as the system call %s", FORBIDDEN[i].name);
    hunt_wrong("the program got as far as system call %d", info->si_syscall);
}

void fence_close(void)
{
    static struct sock_filter code[2 * N_FORBIDDEN + 8];
    unsigned char digest[20];
    size_t n = 0;
    /* OpenSSL reads its configuration when it is first asked for anything */
    kl_sha1("", 0, digest);
    sigaction(SIGSYS,
        &(struct sigaction){.sa_sigaction = touched, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK}, NULL);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < N_FORBIDDEN; i++) {
        code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)FORBIDDEN[i].nr, 0, 1);
        code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    }
    /* glibc asks for clone3 first, whose flags no filter sees, and then for clone: a thread is allowed. */
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 3);
    code[n++] = (struct sock_filter)BPF_STMT(
        BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = (unsigned short)n, .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
        hunt_wrong("no filter of system calls: %m");
}
