/* cron.h - "30 3 * * mon-fri": times of a repeating schedule, in UTC. Pure; immutable after
 * parsing; any thread.
 *
 * Five fields: minute, hour, day of the month, month, day of the week. Each is a star, or a list of
 * numbers and ranges a-b, either with a step after a slash; months and days of the week have names (jan,
 * mon), 7 is Sunday, ? is a star. Where both days are given, either one is enough, as crontab(5) and
 * CronJob have it. @hourly, @daily (@midnight), @weekly, @monthly and @yearly (@annually) are words for
 * the usual ones. */
#ifndef KL_BASE_CRON_H
#define KL_BASE_CRON_H

#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"

typedef struct kl_cron {
    uint64_t minutes;
    uint32_t hours, days, months, weekdays; /* a bit per value; weekdays 0..6 from Sunday */
    bool any_day, any_weekday;              /* the field contains a plain star */
} kl_cron;

/* KL_ESYNTAX names the field. A date that never comes (30 February) is an error, too. */
KL_NODISCARD kl_status kl_cron_parse(const char *text, kl_cron *out, kl_err *err);
/* The first scheduled time after `after`; both in seconds since 1970. */
int64_t kl_cron_next(const kl_cron *c, int64_t after);
/* The last one before `before`. */
int64_t kl_cron_previous(const kl_cron *c, int64_t before);

#endif
