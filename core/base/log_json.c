/* log_json.c - one record, one line of JSON: {"ts":...,"level":...,"msg":...} and the record's fields in
 * their order.
 *
 * The fields come as the text that other sinks print, so they are read back here: `key=bare`, `key="quoted"`,
 * and behind a line break a traceback. Only a value formatted as a number becomes a number; everything else
 * is a string, whatever it looks like, so that a key has one type. The line is valid JSON for any input
 * bytes. */
#include "base/log.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/escape.h"

static const char *const LEVELS[] = {"debug", "info", "warn", "error", "off"};

/* The members that we write ourselves: they come first and once. */
static bool is_taken(const char *key, size_t n)
{
    static const char *const OURS[] = {"ts", "level", "msg", "stacktrace"};
    for (size_t i = 0; i < sizeof OURS / sizeof *OURS; i++)
        if (strlen(OURS[i]) == n && !memcmp(OURS[i], key, n))
            return true;
    return false;
}

static size_t key_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.' || s[n] == '-' || s[n] == '/')
        n++;
    return n && s[n] == '=' ? n : 0;
}

/* The conversion of `key` in the record's format, 's' where it is unknown. */
static char conversion(const char *fmt, const char *key, size_t n)
{
    for (const char *p = fmt; (p = strstr(p, "=%")); p++) {
        if ((size_t)(p - fmt) < n || memcmp(p - n, key, n)
            || ((size_t)(p - fmt) > n && p[-(long)n - 1] != ' '))
            continue;
        return p[2 + strspn(p + 2, "0123456789.lzjth")];
    }
    return 's';
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
        : c >= 'a' && c <= 'f'  ? c - 'a' + 10
        : c >= 'A' && c <= 'F'  ? c - 'A' + 10
                                : -1;
}

/* The text between quotes at s, as kl_log_quote made it; how much of s it took. */
static size_t unquote(const char *s, kl_buf *out)
{
    size_t i = 1;
    for (; s[i] && s[i] != '"'; i++) {
        if (s[i] != '\\' || !s[i + 1]) {
            kl_buf_putc(out, s[i]);
            continue;
        }
        i++;
        if (s[i] == 'x' && hex(s[i + 1]) >= 0 && hex(s[i + 2]) >= 0) {
            kl_buf_putc(out, (char)(hex(s[i + 1]) << 4 | hex(s[i + 2])));
            i += 2;
        } else {
            kl_buf_putc(out, s[i] == 'n' ? '\n' : s[i]);
        }
    }
    return s[i] ? i + 1 : i;
}

/* One value at s; how much it took. A word that is not `key=` belongs to the value before it. */
static size_t read_value(const char *s, kl_buf *out)
{
    size_t i = 0;
    for (;;) {
        if (s[i] == '"')
            i += unquote(s + i, out);
        while (s[i] && s[i] != ' ' && s[i] != '\n')
            kl_buf_putc(out, s[i++]);
        if (s[i] != ' ' || !s[i + 1] || key_length(s + i + 1))
            return i;
        kl_buf_putc(out, ' ');
        i++;
    }
}

/* -?digits[.digits][e[+-]digits], no zeros in front: what JSON takes. "inf" and "nan" are none. */
static bool is_number(const char *s)
{
    s += *s == '-';
    if (!isdigit((unsigned char)*s) || (*s == '0' && isdigit((unsigned char)s[1])))
        return false;
    s += strspn(s, "0123456789");
    if (*s == '.') {
        if (!isdigit((unsigned char)*++s))
            return false;
        s += strspn(s, "0123456789");
    }
    if (*s == 'e') {
        s += 1 + (s[1] == '+' || s[1] == '-');
        if (!isdigit((unsigned char)*s))
            return false;
        s += strspn(s, "0123456789");
    }
    return !*s;
}

static void put_value(kl_buf *out, const kl_buf *value, char how)
{
    const char *text = kl_buf_str(value);
    bool boolean = how == 'B' && (!strcmp(text, "true") || !strcmp(text, "false"));
    if (boolean || (how && strchr("diufg", how) && strlen(text) == value->len && is_number(text))) {
        kl_buf_puts(out, text);
        return;
    }
    kl_buf_putc(out, '"');
    kl_json_escape_any(out, text, value->len);
    kl_buf_putc(out, '"');
}

static void put_key(kl_buf *out, const char *prefix, const char *key, size_t n)
{
    kl_buf_printf(out, ",\"%s", prefix);
    kl_json_escape_any(out, key, n);
    kl_buf_puts(out, "\":");
}

typedef struct names {
    struct {
        const char *key;
        size_t n;
    } of[64];
    size_t n;
} names;

/* JSON readers disagree about duplicate members. */
static bool is_new(names *seen, const char *key, size_t n)
{
    for (size_t i = 0; i < seen->n; i++)
        if (seen->of[i].n == n && !memcmp(seen->of[i].key, key, n))
            return false;
    if (seen->n == sizeof seen->of / sizeof *seen->of)
        return false;
    seen->of[seen->n].key = key;
    seen->of[seen->n++].n = n;
    return true;
}

static void put_fields(kl_buf *out, const char *fmt, const char *fields)
{
    const char *s = fields;
    names seen = {.n = 0}, again = {.n = 0};
    while (*s && *s != '\n') {
        kl_buf value = KL_BUF_INIT;
        size_t n = key_length(s);
        const char *key = n ? s : "text"; /* words before the first key */
        s += n ? n + 1 + read_value(s + n + 1, &value) : read_value(s, &value);
        size_t len = n ? n : strlen(key);
        /* A script's field with one of our names becomes "field.name". */
        bool first = !is_taken(key, len) && !(len > 6 && !memcmp(key, "field.", 6))
            && is_new(&seen, key, len);
        if (first || is_new(&again, key, len)) {
            put_key(out, first ? "" : "field.", key, len);
            put_value(out, &value, n ? conversion(fmt, key, n) : 's');
        }
        kl_buf_fini(&value);
        while (*s == ' ')
            s++;
    }
    if (*s == '\n' && s[1]) {
        kl_buf_puts(out, ",\"stacktrace\":\"");
        kl_json_escape_any(out, s + 1, strlen(s + 1));
        kl_buf_putc(out, '"');
    }
}

void kl_log_json_sink(void *arg, kl_log_level level, const char *message, const char *fields)
{
    kl_time wall = kl_clock_wall(kl_clock_real());
    time_t sec = wall / KL_SECONDS(1);
    struct tm tm;
    gmtime_r(&sec, &tm);
    kl_buf out = KL_BUF_INIT;
    kl_buf_printf(&out, "{\"ts\":\"%04d-%02d-%02dT%02d:%02d:%02d.%03dZ\",\"level\":\"%s\",\"msg\":\"",
        tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
        (int)(wall % KL_SECONDS(1) / KL_MILLISECONDS(1)), LEVELS[level]);
    kl_json_escape_any(&out, message, strlen(message));
    kl_buf_putc(&out, '"');
    put_fields(&out, kl_log_record_format(), fields);
    kl_buf_puts(&out, "}\n");
    FILE *f = arg ? arg : stderr;
    fwrite(out.data, 1, out.len, f);
    fflush(f);
    kl_buf_fini(&out);
}
