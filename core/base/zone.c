/* zone.c - a zone file has a list of moments, each with the offset that begins there, and a rule for the time
 * after the last ("CET-1CEST,M3.5.0,M10.5.0/3"). We use the block with 64 bits, and refuse files without one.
 *
 *   header | block of 32 bits | header | moments, types of moments, types, names, leaps | \n rule \n */
#include "base/zone.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"

#define DIRECTORY "/usr/share/zoneinfo/"
#define FILE_MAX (256 * 1024)
#define HEADER 44
#define TYPE_SIZE 6
#define DAY 86400

/* When a day of each year begins or ends summer: day `day` (0: Sunday) of week `week` (5: the last). */
typedef struct moment {
    char form; /* M: month, week and day; J: day from 1, never 29 February; 0: day from 0 */
    int month, week, day;
    int64_t time; /* seconds after midnight of local time */
} moment;

struct kl_zone {
    kl_buf file;
    const unsigned char *moments, *kinds, *types; /* in `file` */
    size_t nmoments, ntypes;
    bool rule, summers;
    int64_t winter, summer; /* offsets by the rule */
    moment begins, ends;
};

static int64_t number(const unsigned char *p, size_t n)
{
    uint64_t v = *p & 0x80 ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | p[i];
    return (int64_t)v;
}

/* --- the rule ------------------------------------------------------------------------------ */

static bool read_int(const char **s, int64_t *out)
{
    char *end;
    if (**s < '0' || **s > '9')
        return false;
    *out = strtol(*s, &end, 10);
    *s = end;
    return *out <= 366;
}

/* "3", "-3:30" or "3:30:15" as seconds. */
static bool read_time(const char **s, int64_t *out)
{
    bool minus = **s == '-';
    int64_t part;
    *s += **s == '-' || **s == '+';
    if (!read_int(s, &part))
        return false;
    *out = part * 3600;
    for (int64_t unit = 60; unit && **s == ':'; unit /= 60) {
        ++*s;
        if (!read_int(s, &part))
            return false;
        *out += part * unit;
    }
    *out = minus ? -*out : *out;
    return true;
}

/* A name of letters, or of anything between "<" and ">". */
static bool skip_name(const char **s)
{
    const char *from = *s, *end = *from == '<' ? strchr(from, '>') : NULL;
    *s = end ? end + 1 : from + strcspn(from, "0123456789+-,<>");
    return *s > from;
}

static bool read_moment(const char **s, moment *m)
{
    int64_t a, b, c;
    if (*(*s)++ != ',')
        return false;
    *m = (moment){.form = **s == 'M' || **s == 'J' ? **s : 0, .time = 2 * 3600};
    *s += m->form != 0;
    if (!read_int(s, &a))
        return false;
    m->day = (int)a;
    if (m->form == 'M') {
        if (*(*s)++ != '.' || !read_int(s, &b) || *(*s)++ != '.' || !read_int(s, &c))
            return false;
        m->month = (int)a;
        m->week = (int)b;
        m->day = (int)c;
        if (a < 1 || a > 12 || b < 1 || b > 5 || c > 6)
            return false;
    }
    if (**s != '/')
        return true;
    ++*s;
    return read_time(s, &m->time);
}

static bool read_rule(kl_zone *z, const char *s)
{
    if (!skip_name(&s) || !read_time(&s, &z->winter))
        return false;
    z->winter = -z->winter; /* the rule counts offsets westward */
    if (!*s)
        return true;
    z->summer = z->winter + 3600;
    if (!skip_name(&s))
        return false;
    if (*s && *s != ',') {
        if (!read_time(&s, &z->summer))
            return false;
        z->summer = -z->summer;
    }
    z->summers = true;
    return read_moment(&s, &z->begins) && read_moment(&s, &z->ends) && !*s;
}

static bool leap(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

/* Days from 1970 to 1 January of a year. */
static int64_t days_to(int64_t y)
{
    y--;
    return 365 * (y - 1969) + (y / 4 - y / 100 + y / 400) - 477;
}

/* The moment in that year, in seconds of local time. */
static int64_t in_year(const moment *m, int64_t year)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = days_to(year);
    if (m->form == 'J')
        day += m->day - 1 + (leap(year) && m->day >= 60);
    else if (!m->form)
        day += m->day;
    else {
        for (int i = 1; i < m->month; i++)
            day += lengths[i - 1] + (i == 2 && leap(year));
        int length = lengths[m->month - 1] + (m->month == 2 && leap(year));
        int week_day = (int)(((day + 4) % 7 + 7) % 7), at = (m->day - week_day + 7) % 7 + 7 * (m->week - 1);
        day += at >= length ? at - 7 : at; /* 1 January 1970 was a Thursday, day 4 */
    }
    return day * DAY + m->time;
}

static int64_t by_rule(const kl_zone *z, int64_t sec)
{
    if (!z->summers)
        return z->winter;
    int64_t year = 1970 + (sec + z->winter) / 31556952;
    while (days_to(year) * DAY > sec + z->winter)
        year--;
    while (days_to(year + 1) * DAY <= sec + z->winter)
        year++;
    int64_t begins = in_year(&z->begins, year) - z->winter, ends = in_year(&z->ends, year) - z->summer;
    bool summer = begins < ends ? sec >= begins && sec < ends : sec >= begins || sec < ends;
    return summer ? z->summer : z->winter;
}

/* --- the file ------------------------------------------------------------------------------ */

typedef struct counts {
    size_t isut, isstd, leaps, moments, types, chars;
} counts;

static bool read_header(const unsigned char *p, size_t n, counts *c)
{
    if (n < HEADER || memcmp(p, "TZif", 4) || p[4] < '2')
        return false;
    size_t v[6];
    for (size_t i = 0; i < 6; i++) {
        v[i] = (size_t)number(p + 20 + 4 * i, 4);
        if (v[i] > FILE_MAX)
            return false;
    }
    *c = (counts){v[0], v[1], v[2], v[3], v[4], v[5]};
    return c->types > 0;
}

static size_t block_size(const counts *c, size_t moment)
{
    return c->moments * (moment + 1) + c->types * TYPE_SIZE + c->chars + c->leaps * (moment + 4) + c->isstd
        + c->isut;
}

static bool read_file(kl_zone *z)
{
    const unsigned char *p = (const unsigned char *)kl_buf_str(&z->file), *end = p + z->file.len;
    counts c;
    if (!read_header(p, z->file.len, &c) || block_size(&c, 4) + HEADER > z->file.len)
        return false;
    p += HEADER + block_size(&c, 4);
    if (!read_header(p, (size_t)(end - p), &c) || block_size(&c, 8) + HEADER > (size_t)(end - p))
        return false;
    z->nmoments = c.moments;
    z->ntypes = c.types;
    z->moments = p + HEADER;
    z->kinds = z->moments + 8 * c.moments;
    z->types = z->kinds + c.moments;
    for (size_t i = 0; i < c.moments; i++)
        if (z->kinds[i] >= c.types)
            return false;
    const char *rule = (const char *)p + HEADER + block_size(&c, 8);
    size_t n = rule < (const char *)end && *rule == '\n' ? strcspn(rule + 1, "\n") : 0;
    char *text = kl_strndup(rule + (n > 0), n);
    z->rule = n && read_rule(z, text);
    kl_free(text);
    return true;
}

bool kl_zone_named(const char *name)
{
    return *name && *name != '/' && !strstr(name, "..") && !strchr(name, '\\');
}

const char *kl_zone_fault(const char *name)
{
    struct stat st;
    char *path = kl_sprintf(DIRECTORY "%s", name);
    bool there = kl_zone_named(name) && !stat(path, &st);
    kl_free(path);
    return !there ? NULL : S_ISDIR(st.st_mode) ? "is a directory" : "malformed time zone information";
}

kl_zone *kl_zone_open(const char *name)
{
    if (!kl_zone_named(name))
        return NULL;
    kl_zone *z = kl_new(kl_zone);
    char *path = kl_sprintf(DIRECTORY "%s", name);
    kl_buf_init(&z->file, FILE_MAX);
    bool ok = !kl_file_read(path, "a time zone", &z->file, NULL) && read_file(z);
    kl_free(path);
    if (ok)
        return z;
    kl_zone_free(z);
    return NULL;
}

void kl_zone_free(kl_zone *z)
{
    if (!z)
        return;
    kl_buf_fini(&z->file);
    kl_free(z);
}

static int64_t offset_of_type(const kl_zone *z, size_t type)
{
    return number(z->types + TYPE_SIZE * type, 4);
}

int64_t kl_zone_offset(const kl_zone *z, int64_t sec)
{
    size_t low = 0, high = z->nmoments; /* moments below `low` are at or before sec */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (number(z->moments + 8 * mid, 8) <= sec)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == z->nmoments && z->rule)
        return by_rule(z, sec);
    return offset_of_type(z, low ? z->kinds[low - 1] : 0);
}
