/* locks.h - the one order of all locks of the process.
 *
 * A thread that holds a lock takes only locks that stand below it here. Nearly all are leaves, made by
 * kl_mutex_init: below a leaf are only the locks of counters, posts, the queue, the log and values. A lock
 * under which others are taken has a rank of its own, and kl_mutex_init_as names it.
 *
 * Debug builds (asan, tsan) keep the locks of each thread. They abort, naming both, when this order is
 * broken, and when a thread waits or runs a script while it holds a lock. */
#ifndef KL_BASE_LOCKS_H
#define KL_BASE_LOCKS_H

enum kl_lock_rank {
    /* what is served: the embedded server, the dashboard */
    KL_LOCK_HUB = 1,   /* watch events that arrive from another server: server/watch.c */
    KL_LOCK_SERVER,    /* its objects; streams get events under it: server/state.h */
    KL_LOCK_FAULTS,    /* rules, and requests that they delay: faults/faults.c */
    KL_LOCK_DASHBOARD, /* pages that are open; their streams get snapshots under it: control/dashboard.c */
    KL_LOCK_HTTPD,     /* requests that wait and streams that are open: httpd/httpd_impl.h */
    KL_LOCK_STREAM,    /* the bytes that one stream has to send */
    /* the runtime */
    KL_LOCK_WEBHOOKS,   /* requests that wait; they are queued under it: webhook/webhooks.c */
    KL_LOCK_MANAGER,    /* controllers; their state is read under it: manager/manager_impl.h */
    KL_LOCK_CONTROLLER, /* workers, likewise: controller/controller_impl.h */
    KL_LOCK_INFORMERS,  /* shared informers; they are started under it: informers/registry.h */
    KL_LOCK_CLIENT,     /* hooks for counters, and the start of the streams' thread: client/client_impl.h */
    KL_LOCK_WEB,        /* the threads of ctx.http and of webhooks, started under it: client/web.c */
    KL_LOCK_MARKS,      /* writes not yet seen by informers, which are read under it: run/own_impl.h */
    KL_LOCK_SHADOW,     /* one attempt; its runs are read under it: lab/shadow.c */
    KL_LOCK_RECORD,     /* a recording; shared values are written under it: lab/record_impl.h */
    KL_LOCK_LEAF,       /* all others */
    /* what may be taken under any of them */
    KL_LOCK_METRICS, /* counters: metrics/metrics.c */
    KL_LOCK_POST,    /* posted functions, and threads to wake: base/loop.c, http, api/bell.c */
    KL_LOCK_QUEUE,   /* keys; spins: queue/workqueue.c */
    KL_LOCK_LOG,     /* base/log.c */
    KL_LOCK_SINK,    /* a terminal or a stage that shows the log: cli/progress.c, script/lstage.c */
    KL_LOCK_VALUES,  /* the table of interned texts and objects; spins: value/intern.c */
    KL_LOCK_DEAD,    /* large values that are freed piece by piece */
    KL_LOCK_MEMORY,  /* the memory of all values: value/arena.c */
    KL_LOCK_LAST     /* spin locks that are zero: memory for values of one size */
};

#endif
