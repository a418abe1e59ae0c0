/* cron.c - fields become bits; the next time is found from the largest unit down. */
#include "base/cron.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* From any day, every date that exists comes within 8 years (29 February over 2100). */
#define YEARS_MAX 9

static const char *const months[] = {
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"};
static const char *const weekdays[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat"};

typedef struct field {
    const char *name;
    int low, high;
    const char *const *words; /* of low, low + 1, ...; NULL: none */
    size_t n_words;
} field;

static const field fields[] = {{"minute", 0, 59, NULL, 0}, {"hour", 0, 23, NULL, 0},
    {"day of the month", 1, 31, NULL, 0}, {"month", 1, 12, months, 12},
    {"day of the week", 0, 7, weekdays, 7}};

static const struct {
    const char *word, *text;
} words[] = {{"@hourly", "0 * * * *"}, {"@daily", "0 0 * * *"}, {"@midnight", "0 0 * * *"},
    {"@weekly", "0 0 * * 0"}, {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"},
    {"@annually", "0 0 1 1 *"}};

static kl_status wrong(const field *f, const char *text, size_t n, kl_err *err)
{
    return kl_fail(err, KL_ESYNTAX,
        "'%.*s' is not a valid %s: write *, %d to %d, a list a,b, a range a-b or a step */n", (int)n, text,
        f->name, f->low, f->high);
}

/* A number or a name at *p. */
static bool read_value(const field *f, const char **p, const char *end, int *out)
{
    int n = 0;
    const char *s = *p;
    for (size_t i = 0; i < f->n_words; i++)
        if (end - s >= 3 && !strncasecmp(s, f->words[i], 3)) {
            *out = f->low + (int)i;
            *p = s + 3;
            return true;
        }
    for (; s < end && *s >= '0' && *s <= '9' && n < 1000; s++)
        n = n * 10 + (*s - '0');
    *out = n;
    if (s == *p || n < f->low || n > f->high)
        return false;
    *p = s;
    return true;
}

/* One part of a list: value, range or star, with or without a step. */
static bool read_part(const field *f, const char *s, const char *end, uint64_t *bits, bool *any)
{
    int from = f->low, to = f->high, step = 1;
    bool star = s < end && (*s == '*' || *s == '?');
    if (star) {
        s++;
    } else {
        if (!read_value(f, &s, end, &from))
            return false;
        to = from;
        if (s < end && *s == '-') {
            s++;
            if (!read_value(f, &s, end, &to) || to < from)
                return false;
        } else if (s < end && *s == '/') {
            to = f->high; /* a/n means a-high/n, as in other cron programs */
        }
    }
    if (s < end && *s == '/') {
        static const field any = {"step", 1, 999, NULL, 0};
        s++;
        if (!read_value(&any, &s, end, &step))
            return false;
    }
    *any |= star && step == 1;
    for (int i = from; i <= to; i += step)
        *bits |= (uint64_t)1 << i;
    return s == end;
}

static kl_status read_field(const field *f, const char *s, size_t n, uint64_t *bits, bool *any, kl_err *err)
{
    const char *end = s + n, *part = s;
    *bits = 0;
    *any = false;
    for (const char *p = s;; p++) {
        if (p != end && *p != ',')
            continue;
        if (!read_part(f, part, p, bits, any))
            return wrong(f, s, n, err);
        if (p == end)
            return KL_OK;
        part = p + 1;
    }
}

/* A list of all minutes, hours, days and months takes less than half of it. */
#define TEXT_MAX ((size_t)1000)

kl_status kl_cron_parse(const char *text, kl_cron *out, kl_err *err)
{
    static const char blank[] = " \t";
    const char *s = text;
    uint64_t bits[5];
    bool star[5];
    if (strlen(text) > TEXT_MAX)
        return kl_fail(err, KL_ESYNTAX,
            "cron \"%.40s...\": a schedule has at most %zu characters, this one has %zu", text, TEXT_MAX,
            strlen(text));
    s += strspn(s, blank);
    if (*s == '@') {
        size_t n = strcspn(s, blank), known = sizeof words / sizeof *words, i = 0;
        while (i < known && (strlen(words[i].word) != n || strncasecmp(words[i].word, s, n)))
            i++;
        if (i == known || s[n + strspn(s + n, blank)])
            return kl_fail(err, KL_ESYNTAX,
                "cron \"%s\": known words are @hourly, @daily, @weekly, @monthly and @yearly", text);
        s = words[i].text;
    }
    for (int i = 0; i < 5; i++) {
        size_t n = strcspn(s, blank);
        if (!n)
            return kl_fail(err, KL_ESYNTAX,
                "cron \"%s\": there are %d fields; it takes five: minute, hour, day of the month, month, day "
                "of the week",
                text, i);
        kl_status st = read_field(&fields[i], s, n, &bits[i], &star[i], err);
        if (st)
            return err ? kl_err_prefix(err, "cron \"%s\"", text) : st;
        s += n + strspn(s + n, blank);
    }
    if (*s)
        return kl_fail(err, KL_ESYNTAX,
            "cron \"%s\": more than five fields: minute, hour, day of the month, month, day of the week",
            text);
    kl_cron c = {.minutes = bits[0],
        .hours = (uint32_t)bits[1],
        .days = (uint32_t)bits[2],
        .months = (uint32_t)bits[3],
        .weekdays = (uint32_t)((bits[4] | bits[4] >> 7) & 0x7f),
        .any_day = star[2],
        .any_weekday = star[4]};
    if (kl_cron_next(&c, 0) < 0)
        return kl_fail(err, KL_ESYNTAX, "cron \"%s\": there is no such day", text);
    *out = c;
    return KL_OK;
}

/* When both days are restricted, matching one is enough; a star does not restrict. */
static bool day_fits(const kl_cron *c, const struct tm *t)
{
    bool day = c->days >> t->tm_mday & 1, weekday = c->weekdays >> t->tm_wday & 1;
    return c->any_day || c->any_weekday ? day && weekday : day || weekday;
}

int64_t kl_cron_next(const kl_cron *c, int64_t after)
{
    time_t at = (time_t)(after - (after % 60 + 60) % 60 + 60);
    struct tm t;
    gmtime_r(&at, &t);
    for (int last = t.tm_year + YEARS_MAX; t.tm_year < last;) {
        if (!(c->months >> (t.tm_mon + 1) & 1)) {
            t.tm_mon++;
            t.tm_mday = 1;
            t.tm_hour = t.tm_min = 0;
        } else if (!day_fits(c, &t)) {
            t.tm_mday++;
            t.tm_hour = t.tm_min = 0;
        } else if (!(c->hours >> t.tm_hour & 1)) {
            t.tm_hour++;
            t.tm_min = 0;
        } else if (!(c->minutes >> t.tm_min & 1)) {
            t.tm_min++;
        } else {
            return (int64_t)timegm(&t);
        }
        (void)timegm(&t); /* 32 January is 1 February, and knows its weekday */
    }
    return -1;
}

int64_t kl_cron_previous(const kl_cron *c, int64_t before)
{
    int64_t low = before, high = before, step = 60;
    do { /* goes back until a run lies between */
        low -= step;
        step *= 2;
    } while (kl_cron_next(c, low) >= before);
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (kl_cron_next(c, middle) < before)
            low = middle;
        else
            high = middle;
    }
    return kl_cron_next(c, low);
}
