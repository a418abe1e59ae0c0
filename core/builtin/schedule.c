/* schedule.c - cron's five fields, or a word like "@daily". Only their mistakes matter here. */
#include "builtin/kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

static const struct {
    unsigned min, max;
    const char *names; /* in the order of their numbers, from `first` on */
    unsigned first;
} bounds[] = {
    {0, 59, "", 0},
    {0, 23, "", 0},
    {1, 31, "", 0},
    {1, 12, "jan feb mar apr may jun jul aug sep oct nov dec", 1},
    {0, 6, "sun mon tue wed thu fri sat", 0},
};

/* Reads a number into *out. Returns NULL, or a message that the caller frees. */
static char *read_number(const char *s, unsigned *out)
{
    char *end;
    long n = strtol(s, &end, 10);
    if (!*s || *end || strspn(s, "+-0123456789") < strlen(s))
        return kl_sprintf("failed to parse int from %s: strconv.Atoi: parsing \"%s\": invalid syntax", s, s);
    if (strlen(s) > 18)
        return kl_sprintf(
            "failed to parse int from %s: strconv.Atoi: parsing \"%s\": value out of range", s, s);
    if (n < 0)
        return kl_sprintf("negative number (%ld) not allowed: %s", n, s);
    *out = n > INT32_MAX ? INT32_MAX : (unsigned)n;
    return NULL;
}

static char *read_point(const char *s, size_t field, unsigned *out)
{
    unsigned i = bounds[field].first;
    for (const char *p = bounds[field].names; *p; p += 3 + (p[3] == ' '), i++)
        if (strlen(s) == 3 && !strncasecmp(s, p, 3)) {
            *out = i;
            return NULL;
        }
    return read_number(s, out);
}

/* The pieces of `s` between `by`, in place: at most three. */
static size_t split(char *s, char by, char *out[3])
{
    size_t n = 0;
    for (;;) {
        char *next = strchr(s, by);
        if (next)
            *next = 0;
        if (n < 3)
            out[n] = s;
        n++;
        if (!next)
            return n;
        s = next + 1;
    }
}

static char *check_bounds(const char *expr, size_t field, unsigned from, unsigned to, unsigned step)
{
    unsigned min = bounds[field].min, max = bounds[field].max;
    if (from < min)
        return kl_sprintf("beginning of range (%u) below minimum (%u): %s", from, min, expr);
    if (to > max)
        return kl_sprintf("end of range (%u) above maximum (%u): %s", to, max, expr);
    if (from > to)
        return kl_sprintf("beginning of range (%u) beyond end of range (%u): %s", from, to, expr);
    return step ? NULL : kl_sprintf("step of range should be a positive number: %s", expr);
}

static char *check_range(const char *expr, size_t field)
{
    char *copy = kl_strdup(expr), *halves[3], *ends[3], *why = NULL;
    size_t nhalves = split(copy, '/', halves), nends = split(halves[0], '-', ends);
    unsigned from = bounds[field].min, to = bounds[field].max, step = 1;
    if (strcmp(ends[0], "*") && strcmp(ends[0], "?")) {
        why = read_point(ends[0], field, &from);
        if (!why && nends > 2)
            why = kl_sprintf("too many hyphens: %s", expr);
        to = from;
        if (!why && nends == 2)
            why = read_point(ends[1], field, &to);
    }
    if (!why && nhalves > 2)
        why = kl_sprintf("too many slashes: %s", expr);
    if (!why && nhalves == 2) {
        why = read_number(halves[1], &step);
        if (nends == 1)
            to = bounds[field].max;
    }
    if (!why)
        why = check_bounds(expr, field, from, to, step);
    kl_free(copy);
    return why;
}

static char *check_field(char *text, size_t field)
{
    char *save = NULL, *why = NULL;
    for (char *p = strtok_r(text, ",", &save); p && !why; p = strtok_r(NULL, ",", &save))
        why = check_range(p, field);
    return why;
}

static char *check_word(const char *s)
{
    if (kl__one_of(s, "@yearly @annually @monthly @weekly @daily @midnight @hourly"))
        return NULL;
    if (strncmp(s, "@every ", 7))
        return kl_sprintf("unrecognized descriptor: %s", s);
    const char *span = s + 7;
    size_t digits = strspn(span, "+-.0123456789");
    if (!*span || !digits)
        return kl_sprintf("failed to parse duration %s: time: invalid duration \"%s\"", s, span);
    return span[digits] || !strcmp(span, "0")
        ? NULL
        : kl_sprintf("failed to parse duration %s: time: missing unit in duration \"%s\"", s, span);
}

#define SPACE " \t\n\v\f\r"

char *kl__schedule_fault(const char *s)
{
    const char *zone = !strncmp(s, "TZ=", 3) || !strncmp(s, "CRON_TZ=", 8) ? strchr(s, ' ') : NULL;
    if (zone)
        s = zone + strspn(zone, SPACE);
    if (*s == '@')
        return check_word(s);
    char *copy = kl_strdup(s), *fields[5] = {NULL}, *save = NULL, *why = NULL;
    size_t n = 0;
    kl_buf all = KL_BUF_INIT;
    for (char *p = strtok_r(copy, SPACE, &save); p; p = strtok_r(NULL, SPACE, &save), n++) {
        kl_buf_printf(&all, "%s%s", n ? " " : "", p);
        if (n < 5)
            fields[n] = p;
    }
    if (n != 5)
        why = kl_sprintf("expected exactly 5 fields, found %zu: [%s]", n, all.len ? kl_buf_str(&all) : "");
    for (size_t i = 0; i < 5 && !why; i++)
        why = check_field(fields[i], i);
    kl_buf_fini(&all);
    kl_free(copy);
    return why;
}
