/* time.c - RFC 3339 times as Go's time package reads and Kubernetes writes them.
 *
 * Written times are always UTC, in whole seconds (Time) or with six digits (MicroTime). Read ones may
 * carry an offset; we take what Go takes, which is a little more than the standard: an hour of one digit,
 * a comma before the fraction, offsets up to 24:60. */
#include "model/time.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct fields {
    int year, month, day, hour, min, sec;
    int32_t nsec;
    int offset;
} fields;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Days since 1970-01-01 of a day of the proleptic Gregorian calendar. Years start in March here, so that
 * the leap day comes last. */
static int64_t days_from_date(int64_t y, int m, int d)
{
    int64_t era, yoe, doy;

    y -= m <= 2;
    era = (y >= 0 ? y : y - 399) / 400;
    yoe = y - era * 400;
    doy = (153 * (m + (m > 2 ? -3 : 9)) + 2) / 5 + d - 1;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

static void date_from_days(int64_t days, int64_t *y, int *m, int *d)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097, doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365,
            doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;

    *d = (int)(doy - (153 * mp + 2) / 5 + 1);
    *m = (int)(mp < 10 ? mp + 3 : mp - 9);
    *y = yoe + era * 400 + (*m <= 2);
}

static int days_in(int month, int year)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (month == 2 && year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
        return 29;
    return days[month - 1];
}

static bool take_digits(const char **s, int n, int *out)
{
    int v = 0;

    for (; n > 0; n--, ++*s) {
        if (!is_digit(**s))
            return false;
        v = v * 10 + (**s - '0');
    }
    *out = v;
    return true;
}

static bool take_char(const char **s, char c)
{
    if (**s != c)
        return false;
    ++*s;
    return true;
}

/* "" or ".123": up to nine digits count, the others are only skipped. False when it must be six digits and
 * is not. */
static bool take_fraction(const char **s, bool micro, int32_t *nsec)
{
    int n;

    *nsec = 0;
    if ((**s != '.' && **s != ',') || !is_digit((*s)[1]))
        return !micro;
    ++*s;
    for (n = 0; is_digit(**s) && !(micro && n == 6); n++, ++*s)
        if (n < 9)
            *nsec = *nsec * 10 + (**s - '0');
    if (micro && n != 6)
        return false;
    for (; n < 9; n++)
        *nsec *= 10;
    return true;
}

/* "Z", "+08:00": seconds east of UTC. */
static bool take_offset(const char **s, int *out)
{
    int hour, min, sign = **s == '-' ? -1 : 1;

    if (take_char(s, 'Z')) {
        *out = 0;
        return true;
    }
    if (!take_char(s, '+') && !take_char(s, '-'))
        return false;
    if (!take_digits(s, 2, &hour) || !take_char(s, ':') || !take_digits(s, 2, &min) || hour > 24 || min > 60)
        return false;
    *out = sign * (hour * 60 + min) * 60;
    return true;
}

static bool take_all(const char *s, bool micro, fields *f)
{
    if (!take_digits(&s, 4, &f->year) || !take_char(&s, '-') || !take_digits(&s, 2, &f->month)
        || !take_char(&s, '-') || !take_digits(&s, 2, &f->day))
        return false;
    if (!take_char(&s, 'T') || !take_digits(&s, is_digit(*s) && !is_digit(s[1]) ? 1 : 2, &f->hour)
        || !take_char(&s, ':'))
        return false;
    if (!take_digits(&s, 2, &f->min) || !take_char(&s, ':') || !take_digits(&s, 2, &f->sec))
        return false;
    return take_fraction(&s, micro, &f->nsec) && take_offset(&s, &f->offset) && !*s;
}

static bool in_range(const fields *f)
{
    return f->month >= 1 && f->month <= 12 && f->day >= 1 && f->day <= days_in(f->month, f->year)
        && f->hour < 24 && f->min < 60 && f->sec < 60;
}

static kl_status parse(const char *text, bool micro, int64_t *sec, int32_t *nsec, kl_err *err)
{
    fields f;

    if (!take_all(text, micro, &f))
        return kl_fail(err, KL_ESYNTAX, "time \"%.60s\" is not RFC 3339; write it as %s", text,
            micro ? "2024-01-02T03:04:05.000000Z" : "2024-01-02T03:04:05Z");
    if (!in_range(&f))
        return kl_fail(err, KL_ESYNTAX, "time \"%.60s\" names a moment that does not exist", text);
    *sec = days_from_date(f.year, f.month, f.day) * 86400 + f.hour * 3600 + f.min * 60 + f.sec - f.offset;
    *nsec = f.nsec;
    return KL_OK;
}

kl_status kl_time_parse(const char *text, int64_t *sec, int32_t *nsec, kl_err *err)
{
    return parse(text, false, sec, nsec, err);
}

kl_status kl_time_parse_micro(const char *text, int64_t *sec, int32_t *nsec, kl_err *err)
{
    return parse(text, true, sec, nsec, err);
}

static bool digits_at(const char *p, size_t n) { return strspn(p, "0123456789") >= n; }

/* Reads one element of a layout of Go's time.Parse at `p`: what is behind it, or NULL. */
static const char *time_element(const char *p, const char *element)
{
    static const char zone[] = "+00:00";
    size_t n = strlen(element);
    if (*element == 'Z') {
        if (*p == 'Z')
            return p + 1;
        bool good = (*p == '+' || *p == '-') && digits_at(p + 1, 2) && p[3] == ':' && digits_at(p + 4, 2);
        return good ? p + sizeof zone - 1 : NULL;
    }
    if (*element == '.')
        return *p == '.' && digits_at(p + 1, n - 1) ? p + n : NULL;
    if (strchr("0123456789", *element)) {
        /* an hour may have one digit */
        bool good = digits_at(p, n);
        return good ? p + n : !strcmp(element, "15") && digits_at(p, 1) ? p + 1 : NULL;
    }
    return *p == *element ? p + n : NULL;
}

char *kl_time_why_not(const char *text, bool micro)
{
    static const char *const elements[] = {
        "2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05", ".000000", "Z07:00"};
    const char *p = text, *layout = micro ? "2006-01-02T15:04:05.000000Z07:00" : "2006-01-02T15:04:05Z07:00";
    for (size_t i = 0; i < sizeof elements / sizeof *elements; i++) {
        const char *element = elements[i];
        if (*element == '.' && !micro) {
            /* a fraction may follow, though the layout has none */
            p += *p == '.' && digits_at(p + 1, 1) ? 1 + strspn(p + 1, "0123456789") : 0;
            continue;
        }
        const char *next = time_element(p, element);
        if (!next)
            return kl_sprintf(
                "parsing time \"%s\" as \"%s\": cannot parse \"%s\" as \"%s\"", text, layout, p, element);
        const char *range = !strcmp(element, "01") && (atoi(p) < 1 || atoi(p) > 12) ? "month"
            : !strcmp(element, "15") && atoi(p) > 23                                ? "hour"
            : !strcmp(element, "04") && atoi(p) > 59                                ? "minute"
            : !strcmp(element, "05") && atoi(p) > 59                                ? "second"
                                                                                    : NULL;
        if (range)
            return kl_sprintf("parsing time \"%s\": %s out of range", text, range);
        p = next;
    }
    return *p ? kl_sprintf("parsing time \"%s\": extra text: \"%s\"", text, p)
              : kl_sprintf("parsing time \"%s\": day out of range", text);
}

/* Writes the date and time without zone; returns the length. */
/* Writes n digits of x at `out`; returns what is behind them. */
static char *put_digits(char *out, int n, int64_t x)
{
    for (int i = n; i--; x /= 10)
        out[i] = (char)('0' + x % 10);
    return out + n;
}

/* What snprintf would do, at a fraction of its cost: each write of an object has some times. */
static size_t put(int64_t sec, char out[KL_TIME_MAX])
{
    int64_t days = sec / 86400, left = sec % 86400, year;
    int month, day;

    if (left < 0) {
        left += 86400;
        days--;
    }
    date_from_days(days, &year, &month, &day);
    const int64_t parts[] = {month, day, left / 3600, left / 60 % 60, left % 60};
    char *p = year >= 0 && year <= 9999
        ? put_digits(out, 4, year)
        : out + snprintf(out, KL_TIME_MAX - sizeof "-01-02T03:04:05", "%04lld", (long long)year);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *p++ = "--T::"[i];
        p = put_digits(p, 2, parts[i]);
    }
    *p = 0;
    return (size_t)(p - out);
}

char *kl_time_format(int64_t sec, char out[KL_TIME_MAX])
{
    size_t n = put(sec, out);

    memcpy(out + n, "Z", sizeof "Z");
    return out;
}

char *kl_time_format_micro(int64_t sec, int32_t nsec, char out[KL_TIME_MAX])
{
    size_t n = put(sec, out);

    snprintf(out + n, KL_TIME_MAX - n, ".%06dZ", (int)(nsec / 1000));
    return out;
}

char *kl_time_format_wall(kl_time wall, char out[KL_TIME_MAX])
{
    return kl_time_format(wall >= 0 ? wall / 1000000000 : -((999999999 - wall) / 1000000000), out);
}
