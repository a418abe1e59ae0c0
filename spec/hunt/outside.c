/* outside.c - a thread without the fence, for isolated programs: their functions run in processes of their
 * own, behind a filter that is ours to try, and whoever starts and feeds these needs sockets and fork. The
 * thread that runs programs waits meanwhile. */
#include "hunt.h"

#include <errno.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "base/sync.h"

struct outside {
    kl_thread *thread;
    kl_mutex mu;
    kl_cond changed;
    void (*fn)(void *arg);
    void *arg;
    bool leave;
};

/* What a program started ends with it. */
static void look_for_processes(void)
{
    pid_t pid = waitpid(-1, NULL, WNOHANG);
    if (pid >= 0)
        hunt_wrong("an isolated process %s", pid ? "has ended, and nobody waited for it" : "was abandoned");
    if (errno != ECHILD)
        hunt_wrong("no look at the processes that are left: %m");
}

static void outside_main(void *arg)
{
    outside *o = arg;
    (void)setpriority(PRIO_PROCESS, 0, 19);
    kl_lock(&o->mu);
    while (!o->leave) {
        if (o->fn) {
            kl_unlock(&o->mu); /* whoever asked waits until it is NULL */
            o->fn(o->arg);
            look_for_processes();
            kl_lock(&o->mu);
            o->fn = NULL;
            kl_cond_broadcast(&o->changed);
        }
        while (!o->leave && !o->fn)
            kl_cond_wait(&o->changed, &o->mu);
    }
    kl_unlock(&o->mu);
}

outside *outside_new(void)
{
    outside *o = kl_new(outside);
    kl_mutex_init(&o->mu);
    kl_cond_init(&o->changed);
    o->thread = kl_thread_start("hunt-outside", outside_main, o);
    return o;
}

void outside_do(outside *o, void (*fn)(void *arg), void *arg)
{
    kl_lock(&o->mu);
    o->fn = fn;
    o->arg = arg;
    kl_cond_broadcast(&o->changed);
    while (o->fn)
        kl_cond_wait(&o->changed, &o->mu);
    kl_unlock(&o->mu);
}

void outside_free(outside *o)
{
    kl_lock(&o->mu);
    o->leave = true;
    kl_cond_broadcast(&o->changed);
    kl_unlock(&o->mu);
    kl_thread_join(o->thread);
    kl_mutex_fini(&o->mu);
    kl_cond_fini(&o->changed);
    kl_free(o);
}
