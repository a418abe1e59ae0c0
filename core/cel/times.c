/* times.c - the parts of a timestamp and of a duration. Zones are offsets ("+02:00") and IANA's names, which
 * come from the machine's zone files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/zone.h"
#include "cel/cel_impl.h"

#define DAY 86400

typedef struct date {
    int64_t year, yday; /* from 0 */
    int month, day;     /* from 1 */
} date;

static bool leap(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static date date_of(int64_t sec)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t z = floor_div(sec, DAY) + 719468, era = floor_div(z, 146097), doe = z - era * 146097,
            yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
            doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    date d = {.year = yoe + era * 400,
        .day = (int)(doy - (153 * mp + 2) / 5 + 1),
        .month = (int)(mp < 10 ? mp + 3 : mp - 9)};
    d.year += d.month <= 2;
    for (int m = 1; m < d.month; m++)
        d.yday += lengths[m - 1] + (m == 2 && leap(d.year));
    d.yday += d.day - 1;
    return d;
}

void kl__cel_time(kl__cval v, kl_buf *out)
{
    date d = date_of(v.t.sec);
    int64_t s = v.t.sec - floor_div(v.t.sec, DAY) * DAY;
    kl_buf_printf(out, "%04lld-%02d-%02dT%02d:%02d:%02d", (long long)d.year, d.month, d.day, (int)(s / 3600),
        (int)(s / 60 % 60), (int)(s % 60));
    if (v.t.ns) {
        char frac[16];
        snprintf(frac, sizeof frac, ".%09d", (int)v.t.ns);
        size_t n = strlen(frac);
        while (frac[n - 1] == '0')
            frac[--n] = 0;
        kl_buf_puts(out, frac);
    }
    kl_buf_putc(out, 'Z');
}

/* Reading a zone's file counts as so many steps, so that a loop over changing names ends. */
#define ZONE_WORK 2000

static const kl_zone *zone_of(kl__cev *e, const char *name)
{
    if (e->zone.name && !strcmp(e->zone.name, name))
        return e->zone.z;
    for (size_t i = 0; i < ZONE_WORK && kl__cev_works(e); i++)
        ;
    kl_zone_free(e->zone.z);
    kl_free(e->zone.name);
    e->zone.name = kl_strdup(name);
    e->zone.z = kl_zone_open(name);
    return e->zone.z;
}

/* Seconds east of UTC in a zone at a moment; "+1:30" is an offset, and reads as it does to cel-go. */
static bool offset_of(kl__cev *e, const char *s, int64_t sec, int64_t *out)
{
    int h, m, n = 0;
    const kl_zone *z = *s && strcmp(s, "UTC") && !strchr(s, ':') ? zone_of(e, s) : NULL;
    *out = z ? kl_zone_offset(z, sec) : 0;
    if (z || !*s || !strcmp(s, "UTC"))
        return true;
    if (sscanf(s, "%5d:%5d%n", &h, &m, &n) != 2 || s[n])
        return false;
    *out = h * 3600 + (*s == '-' ? -m : m) * 60;
    return true;
}

typedef enum part {
    YEAR,
    MONTH,
    DATE,
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    DAY_OF_YEAR,
    HOURS,
    MINUTES,
    SECONDS,
    MILLIS
} part;

static kl__cval part_of(kl__cev *e, const kl__cval *a, size_t n, part p)
{
    int64_t shift = 0;
    if (a[0].kind == KL_C_DURATION) {
        int64_t ns = a[0].i;
        return KL__CINT(p == HOURS ? ns / 3600000000000
                : p == MINUTES     ? ns / 60000000000
                : p == SECONDS     ? ns / 1000000000
                                   : ns / 1000000);
    }
    if (n == 2 && !offset_of(e, a[1].s.p, a[0].t.sec, &shift))
        return kl_zone_named(a[1].s.p) ? kl__cval_err(e, "unknown time zone %.*s", (int)a[1].s.n, a[1].s.p)
                                       : kl__cval_err(e, "time: invalid location name");
    int64_t sec = a[0].t.sec + shift, day = floor_div(sec, DAY), s = sec - day * DAY;
    date d = date_of(sec);
    switch (p) {
    case YEAR: return KL__CINT(d.year);
    case MONTH: return KL__CINT(d.month - 1);
    case DATE: return KL__CINT(d.day);
    case DAY_OF_MONTH: return KL__CINT(d.day - 1);
    case DAY_OF_WEEK: return KL__CINT(((day + 4) % 7 + 7) % 7);
    case DAY_OF_YEAR: return KL__CINT(d.yday);
    case HOURS: return KL__CINT(s / 3600);
    case MINUTES: return KL__CINT(s / 60 % 60);
    case SECONDS: return KL__CINT(s % 60);
    case MILLIS: return KL__CINT(a[0].t.ns / 1000000);
    }
    return KL__CNULL;
}

#define PART(name, p)                                                                                        \
    static kl__cval name(kl__cev *e, const kl__cval *a, size_t n) { return part_of(e, a, n, p); }
PART(year, YEAR)
PART(month, MONTH)
PART(day_from_1, DATE)
PART(day_from_0, DAY_OF_MONTH)
PART(week_day, DAY_OF_WEEK)
PART(year_day, DAY_OF_YEAR)
PART(hours, HOURS)
PART(minutes, MINUTES)
PART(seconds, SECONDS)
PART(millis, MILLIS)

#define OF_TIME(name, f)                                                                                     \
    {name, ".t>i", f, NULL}, { name, ".ts>i", f, NULL }

const kl__cfunc kl__cel_times[] = {
    OF_TIME("getFullYear", year),
    OF_TIME("getMonth", month),
    OF_TIME("getDate", day_from_1),
    OF_TIME("getDayOfMonth", day_from_0),
    OF_TIME("getDayOfWeek", week_day),
    OF_TIME("getDayOfYear", year_day),
    OF_TIME("getHours", hours),
    OF_TIME("getMinutes", minutes),
    OF_TIME("getSeconds", seconds),
    OF_TIME("getMilliseconds", millis),
    {"getHours", ".D>i", hours, NULL},
    {"getMinutes", ".D>i", minutes, NULL},
    {"getSeconds", ".D>i", seconds, NULL},
    {"getMilliseconds", ".D>i", millis, NULL},
    {NULL},
};
