/* locks.h - the one order of all locks of the process.
 *
 * A thread that holds a lock takes only locks that stand below it here. Nearly all are leaves, made by
 * kl_mutex_init: below a leaf are only the log, the queue's lock and what values need for themselves. A lock
 * under which others are taken has a rank of its own, and kl_mutex_init_as names it.
 *
 * Debug builds (asan, tsan) keep the locks of each thread. They abort, naming both, when this order is
 * broken, and when a thread waits or runs a script with a lock in its hands. */
#ifndef KL_BASE_LOCKS_H
#define KL_BASE_LOCKS_H

enum kl_lock_rank {
    /* what is served: the embedded server, the dashboard */
    KL_LOCK_HUB = 1,   /* another server's watches, as they are taken in: server/watch.c */
    KL_LOCK_SERVER,    /* its objects; streams get events under it: server/state.h */
    KL_LOCK_FAULTS,    /* rules, and requests that they hold up: faults/faults.c */
    KL_LOCK_DASHBOARD, /* pages that are open; their streams get snapshots under it: control/dashboard.c */
    KL_LOCK_HTTPD,     /* requests that wait and streams that are open: httpd/httpd_impl.h */
    KL_LOCK_STREAM,    /* what one stream has to send */
    /* the runtime */
    KL_LOCK_WEBHOOKS,   /* requests that wait; they are queued under it: webhook/webhooks.c */
    KL_LOCK_MANAGER,    /* controllers; they are looked at under it: manager/manager_impl.h */
    KL_LOCK_CONTROLLER, /* workers, likewise: controller/controller_impl.h */
    KL_LOCK_INFORMERS,  /* who shares which; they are started under it: informers/registry.h */
    KL_LOCK_CLIENT,     /* hooks that count, and a thread for streams that is begun: client/client_impl.h */
    KL_LOCK_WEB,    /* the threads of ctx.http and of webhooks, which are started under it: client/web.c */
    KL_LOCK_MARKS,  /* writes that have not come back; informers are looked at: run/own_impl.h */
    KL_LOCK_SHADOW, /* one attempt; its runs are looked at under it: lab/shadow.c */
    KL_LOCK_RECORD, /* a recording; what is shared goes into it under it: lab/record_impl.h */
    KL_LOCK_LEAF,   /* all others */
    /* what may be taken under any of them */
    KL_LOCK_METRICS, /* counters: metrics/metrics.c */
    KL_LOCK_POST,    /* what was posted, and who is to be woken: base/loop.c, http, api/bell.c */
    KL_LOCK_QUEUE,   /* keys; spins: queue/workqueue.c */
    KL_LOCK_LOG,     /* base/log.c */
    KL_LOCK_SINK,    /* a terminal or a stage that shows the log: cli/progress.c, script/lstage.c */
    KL_LOCK_VALUES,  /* the texts and objects that there are; spins: value/intern.c */
    KL_LOCK_DEAD,    /* values that are freed a part at a time */
    KL_LOCK_MEMORY,  /* of all values: value/arena.c */
    KL_LOCK_LAST     /* spin locks that are zero: memory for values of one size */
};

#endif
