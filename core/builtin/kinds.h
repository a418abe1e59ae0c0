/* kinds.h - the checks by kind; builtin.c has the table. Each looks at a write that is no write of a status.
 * Pure; any thread. */
#ifndef KL_BUILTIN_KINDS_H
#define KL_BUILTIN_KINDS_H

#include "builtin/builtin.h"
#include "builtin/check.h"

/* The spec is that of `old`, which was good: nothing to see. */
bool kl__write_same_spec(const kl__write *w);

void kl__check_data(const kl__write *w);
void kl__check_deployment(const kl__write *w);
void kl__check_replica_set(const kl__write *w);
void kl__check_controller(const kl__write *w); /* a ReplicationController */
void kl__check_stateful_set(const kl__write *w);
void kl__check_daemon_set(const kl__write *w);
void kl__check_job(const kl__write *w);
void kl__check_cron_job(const kl__write *w);
void kl__check_claim(const kl__write *w);
void kl__check_service(const kl__write *w);
void kl__check_role(const kl__write *w);
void kl__check_binding(const kl__write *w);
void kl__check_budget(const kl__write *w);
void kl__check_network_policy(const kl__write *w);
void kl__check_autoscaler(const kl__write *w);
/* Those made by events.k8s.io/v1 are strict, and never change but for their series. Fields are named as
 * core/v1 has them, which is how Events are stored. */
void kl__check_event(const kl__write *w);

/* of a write of a status, of any kind */
void kl__check_status(const kl__write *w);

/* A CronJob's schedule as robfig/cron reads it: NULL when it reads, else why not; caller frees. */
char *kl__schedule_fault(const char *schedule);

#endif
