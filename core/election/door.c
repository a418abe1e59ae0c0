/* door.c - allows a write while its mandate holds by the local clock, and counts it. */
#include "election/door.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"

struct kl_door {
    kl_door_options o;
    atomic_uint_fast64_t writes, refused, imagined;
};

kl_door *kl_door_new(const kl_door_options *o)
{
    kl_door *d = kl_new(kl_door);
    d->o = *o;
    if (!d->o.clock)
        d->o.clock = kl_clock_real();
    return d;
}

void kl_door_free(kl_door *d) { kl_free(d); }

static void refuse_dry(const char *who, const kl_op *op, kl_reply_fn *done, void *arg)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = kl_fail(&err, KL_EFORBIDDEN, "%s of %s by %s was not sent: this is a dry run",
        kl_verb_name(op->verb),
        op->kind           ? op->kind
            : op->resource ? op->resource->kind
                           : "an object",
        who);
    done(arg, st, 0, NULL, &err);
    kl_err_fini(&err);
}

uint64_t kl_door_write(kl_door *d, const char *who, const kl_op *op, kl_reply_fn *done, void *arg)
{
    if (!kl_mandate_holds(&op->mandate, d->o.clock)) {
        atomic_fetch_add(&d->refused, 1);
        kl_err err = KL_ERR_INIT;
        kl_status st = kl_fail(&err, KL_ENOTLEADER,
            "%s of %s by controller %s was not sent: this process does not hold the lease; the leader will "
            "do it",
            kl_verb_name(op->verb),
            op->kind           ? op->kind
                : op->resource ? op->resource->kind
                               : "an object",
            who);
        done(arg, st, 0, NULL, &err);
        kl_err_fini(&err);
        return 0;
    }
    if (d->o.shut && !op->dry_run) {
        refuse_dry(who, op, done, arg);
        return 0;
    }
    atomic_fetch_add(&d->writes, 1);
    if (d->o.seen)
        d->o.seen(d->o.seen_arg, who, op);
    return d->o.send(d->o.send_arg, op, done, arg);
}

uint64_t kl_door_read(kl_door *d, const char *who, const kl_op *op, kl_reply_fn *done, void *arg)
{
    if (d->o.seen)
        d->o.seen(d->o.seen_arg, who, op);
    return d->o.send(d->o.send_arg, op, done, arg);
}

void kl_door_imagined(kl_door *d, const char *who, const kl_op *op)
{
    atomic_fetch_add(&d->imagined, 1);
    if (d->o.seen)
        d->o.seen(d->o.seen_arg, who, op);
}

void kl_door_cancel(kl_door *d, uint64_t id)
{
    if (id && d->o.cancel)
        d->o.cancel(d->o.send_arg, id);
}

uint64_t kl_door_writes(const kl_door *d) { return atomic_load(&((kl_door *)d)->writes); }
uint64_t kl_door_not_sent(const kl_door *d) { return atomic_load(&((kl_door *)d)->imagined); }
uint64_t kl_door_refused(const kl_door *d) { return atomic_load(&((kl_door *)d)->refused); }
