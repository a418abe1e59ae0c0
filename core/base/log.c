/* log.c - a constant message and checked key=value pairs, into a sink.
 *
 * The level test is one relaxed load, so that a disabled record costs nothing. The sink runs under one
 * lock: lines never mix, and kl_log_set_sink returns only when the old sink is no longer running. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/clock.h"
#include "base/escape.h"
#include "base/locks.h"
#include "base/mem.h"
#include "base/sync.h"

#define FIELDS_INLINE 1024 /* most records fit, and then logging allocates nothing */

static kl_mutex mu = KL_MUTEX_INIT_AS(KL_LOCK_LOG);
static kl_log_sink *sink_fn KL_GUARDED_BY(mu);
static void *sink_arg KL_GUARDED_BY(mu);
static _Atomic int threshold = KL_LOG_OFF; /* what the sink wants; OFF without a sink */
static _Atomic int level_wanted = KL_LOG_INFO;
static const char *record_format KL_GUARDED_BY(mu) = "";
static atomic_bool detailed;

static const char *const level_names[] = {"DEBUG", "INFO", "WARN", "ERROR", "OFF"};

void kl_log_set_sink(kl_log_sink *sink, void *arg)
{
    kl_lock(&mu);
    sink_fn = sink;
    sink_arg = arg;
    atomic_store_explicit(&threshold,
        sink ? atomic_load_explicit(&level_wanted, memory_order_relaxed) : KL_LOG_OFF, memory_order_relaxed);
    kl_unlock(&mu);
}

void kl_log_set_level(kl_log_level level)
{
    kl_lock(&mu);
    atomic_store_explicit(&level_wanted, level, memory_order_relaxed);
    if (sink_fn)
        atomic_store_explicit(&threshold, level, memory_order_relaxed);
    kl_unlock(&mu);
}

bool kl_log_enabled(kl_log_level level)
{
    return level != KL_LOG_OFF && (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

kl_status kl_log_level_parse(const char *name, kl_log_level *out, kl_err *err)
{
    static const char *const words[] = {"debug", "info", "warn", "error", "off"};
    for (int i = 0; i < 5; i++)
        if (name && !strcmp(name, words[i])) {
            *out = (kl_log_level)i;
            return KL_OK;
        }
    return kl_fail(
        err, KL_EINVAL, "unknown log level \"%s\": use debug, info, warn, error or off", name ? name : "");
}

static void hand_over(kl_log_level level, const char *message, const char *format, const char *fields)
{
    kl_lock(&mu);
    record_format = format;
    if (sink_fn)
        sink_fn(sink_arg, level, message, fields);
    record_format = "";
    kl_unlock(&mu);
}

char *kl_log_cut(const char *text)
{
    if (strnlen(text, KL_LOG_MESSAGE_MAX + 1) <= KL_LOG_MESSAGE_MAX)
        return NULL;
    int n = KL_LOG_MESSAGE_MAX;
    while (n > KL_LOG_MESSAGE_MAX - 4 && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--;
    return kl_sprintf("%.*s... (%zu bytes)", n, text, strlen(text));
}

void kl_log_text(kl_log_level level, const char *message, const char *format, const char *fields)
{
    if (!kl_log_enabled(level))
        return;
    const char *cluster = kl_thread_badge();
    char *cut = kl_log_cut(message);
    if (cut)
        message = cut;
    if (!cluster) {
        hand_over(level, message, format, fields);
        kl_free(cut);
        return;
    }
    /* The cluster comes first, since a traceback may follow the fields. */
    char *with = kl_sprintf("cluster=%s%s%s", kl_log_quoted(cluster), *fields ? " " : "", fields),
         *types = kl_sprintf("cluster=%%s %s", format);
    hand_over(level, message, types, with);
    kl_free(with);
    kl_free(types);
    kl_free(cut);
}

void kl_log(kl_log_level level, const char *message, const char *fmt, ...)
{
    if (!kl_log_enabled(level))
        return;
    char small[FIELDS_INLINE], *fields = small, *big = NULL;
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n >= (int)sizeof small)
        fields = big = kl_vsprintf(fmt, again);
    va_end(again);
    kl_log_text(level, message, fmt, fields);
    kl_free(big);
}

const char *kl_log_record_format(void) { return record_format; }
void kl_log_set_detailed(bool yes) { atomic_store_explicit(&detailed, yes, memory_order_relaxed); }
bool kl_log_detailed(void) { return atomic_load_explicit(&detailed, memory_order_relaxed); }

static void put(FILE *f, const char *s, size_t n)
{
    kl_buf text = KL_BUF_INIT;
    kl_visible_escape(&text, s, n, true);
    fwrite(kl_buf_str(&text), 1, text.len, f);
    kl_buf_fini(&text);
}

/* The fields, and below them a traceback, indented so that none of its lines looks like a record. */
static void put_fields(FILE *f, const char *s)
{
    static const char HEAD[] = "stack traceback:";
    for (const char *newline; (newline = strchr(s, '\n')); s = newline + 1) {
        put(f, s, (size_t)(newline - s));
        fputs(
            newline[1] == '\t' || !newline[1] || !strncmp(newline + 1, HEAD, sizeof HEAD - 1) ? "\n" : "\n\t",
            f);
    }
    put(f, s, strlen(s));
}

/* One write(2), also for unbuffered stderr: a reader never sees half a record. */
void kl_log_file_sink(void *arg, kl_log_level level, const char *message, const char *fields)
{
    char *record = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&record, &len);
    if (!f)
        return; /* no memory for a line */
    kl_time wall = kl_clock_wall(kl_clock_real());
    time_t sec = wall / KL_SECONDS(1);
    struct tm tm;
    gmtime_r(&sec, &tm);
    fprintf(f, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ %-5s ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
        tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(wall % KL_SECONDS(1) / KL_MILLISECONDS(1)),
        level_names[level]);
    put(f, message, strlen(message));
    if (*fields)
        fputc(' ', f);
    put_fields(f, fields);
    fputc('\n', f);
    fclose(f);
    f = arg ? arg : stderr;
    fwrite(record, 1, len, f);
    fflush(f);
    free(record);
}

const char *kl_log_quote(const char *s, char *out, size_t size)
{
    bool plain = s && *s;
    for (const char *p = s; plain && *p; p++)
        plain = (unsigned char)*p > ' ' && *p != '"' && *p != '=' && *p != '\\' && *p != 0x7f;
    if (plain) {
        snprintf(out, size, "%s", s);
        return out;
    }
    if (size < 3) {
        if (size)
            out[0] = '\0';
        return out;
    }
    size_t n = 0;
    out[n++] = '"';
    for (const char *p = s ? s : ""; *p; p++) {
        char esc[5];
        int m;
        if (*p == '"' || *p == '\\')
            m = snprintf(esc, sizeof esc, "\\%c", *p);
        else if (*p == '\n')
            m = snprintf(esc, sizeof esc, "\\n");
        else if ((unsigned char)*p < ' ' || *p == 0x7f)
            m = snprintf(esc, sizeof esc, "\\x%02x", (unsigned char)*p);
        else
            m = snprintf(esc, sizeof esc, "%c", *p);
        if (n + (size_t)m + 2 > size)
            break;
        memcpy(out + n, esc, (size_t)m);
        n += (size_t)m;
    }
    out[n++] = '"';
    out[n] = '\0';
    return out;
}
