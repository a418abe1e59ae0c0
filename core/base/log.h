/* log.h - a constant message and checked key=value pairs, into a sink.
 *
 *   kl_warn("watch ended", "resource=%s rv=%s", r, rv);
 *
 * In a process that works for several clusters, a thread's lines begin with its badge, cluster=...
 * (kl_thread_badge). The library never prints: without a sink, records are dropped. Any thread; the sink is
 * called under one lock and must not log. */
#ifndef KL_BASE_LOG_H
#define KL_BASE_LOG_H

#include <stdbool.h>
#include "base/err.h"

typedef enum kl_log_level { KL_LOG_DEBUG, KL_LOG_INFO, KL_LOG_WARN, KL_LOG_ERROR, KL_LOG_OFF } kl_log_level;

/* `fields` is the formatted text "k=v k2=v2"; the caller has quoted values with spaces or quotes
 * (kl_log_quote). `message` and `fields` are borrowed for the call. */
typedef void kl_log_sink(void *arg, kl_log_level level, const char *message, const char *fields);

void kl_log_set_sink(kl_log_sink *sink, void *arg); /* NULL: drop */
void kl_log_set_level(kl_log_level level);
bool kl_log_enabled(kl_log_level level);
/* debug info warn error off */
KL_NODISCARD kl_status kl_log_level_parse(const char *name, kl_log_level *out, kl_err *err);
/* Longer messages, and longer texts that scripts raise, are cut and end with their full length. */
#define KL_LOG_MESSAGE_MAX 8192
/* `text` cut between two characters to KL_LOG_MESSAGE_MAX bytes and a note of its length; NULL when it is
 * short enough. The caller kl_free()s. */
char *kl_log_cut(const char *text);
void kl_log(kl_log_level level, const char *message, const char *fmt, ...) KL_PRINTF(3, 4);
/* Inside a sink: the format of the record's fields, which tells numbers from texts that look like them.
 * Static. */
const char *kl_log_record_format(void);
/* Whether the sink is for machines, so that records should be complete. False by default. */
void kl_log_set_detailed(bool yes);
bool kl_log_detailed(void);
/* As kl_log, with fields that are text already, and a format that tells their types: "a=%d b=%s c=%B" (a
 * boolean). */
void kl_log_text(kl_log_level level, const char *message, const char *format, const char *fields);
/* A sink that writes `2026-01-02T15:04:05.000Z INFO message k=v` lines to FILE* arg (stderr when NULL). A
 * record is one line, which a traceback may follow on indented lines; control characters are escaped. A
 * record is one write(2), so that a reader never sees half of it. */
kl_log_sink kl_log_file_sink;
/* The same in lines of JSON: {"ts":"2026-01-02T15:04:05.000Z","level":"info","msg":"message","k":"v"}. A
 * line is valid JSON, whatever is in it; a traceback is in "stacktrace". */
kl_log_sink kl_log_json_sink;

/* `s` for a field: unchanged, or quoted and escaped when it has spaces, quotes or control characters ("" and
 * NULL give `""`). Written into out (cut to fit) and returned. */
const char *kl_log_quote(const char *s, char *out, size_t size);
/* The same in one expression, for texts up to a kilobyte: kl_warn("x failed", "error=%s",
 * kl_log_quoted(kl_err_message(&err))). */
#define kl_log_quoted(s) kl_log_quote((s), (char[1024]){0}, 1024)

#define kl_debug(msg, ...)                                                                                   \
    do {                                                                                                     \
        if (kl_log_enabled(KL_LOG_DEBUG))                                                                    \
            kl_log(KL_LOG_DEBUG, msg, __VA_ARGS__);                                                          \
    } while (0)
#define kl_info(msg, ...)                                                                                    \
    do {                                                                                                     \
        if (kl_log_enabled(KL_LOG_INFO))                                                                     \
            kl_log(KL_LOG_INFO, msg, __VA_ARGS__);                                                           \
    } while (0)
#define kl_warn(msg, ...)                                                                                    \
    do {                                                                                                     \
        if (kl_log_enabled(KL_LOG_WARN))                                                                     \
            kl_log(KL_LOG_WARN, msg, __VA_ARGS__);                                                           \
    } while (0)
#define kl_error(msg, ...)                                                                                   \
    do {                                                                                                     \
        if (kl_log_enabled(KL_LOG_ERROR))                                                                    \
            kl_log(KL_LOG_ERROR, msg, __VA_ARGS__);                                                          \
    } while (0)

#endif
