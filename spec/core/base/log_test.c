/* log_test.c - the log in JSON: its fields, and that every line is valid JSON; traces. */
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/trace.h"
#include "support/strict_json.h"

/* What the sink writes for one record, without the time. The caller frees. */
static char *written(kl_log_level level, const char *message, const char *format, const char *fields)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    kl_log_set_level(KL_LOG_DEBUG);
    kl_log_set_sink(kl_log_json_sink, f);
    kl_log_text(level, message, format, fields);
    kl_log_set_sink(NULL, NULL);
    kl_log_set_level(KL_LOG_INFO);
    fclose(f);
    assert_int_equal(strncmp(text, "{\"ts\":\"20", 9), 0);
    assert_true(n > 33 && text[n - 1] == '\n');
    text[n - 1] = '\0';
    memmove(text, text + 32, n - 32);
    return text;
}

#define assert_line(expected, ...)                                                                           \
    do {                                                                                                     \
        char *line = written(__VA_ARGS__);                                                                   \
        assert_string_equal(line, expected);                                                                 \
        free(line);                                                                                          \
    } while (0)

static void a_record_is_an_object_with_its_fields_in_order(void **state)
{
    (void)state;
    assert_line(",\"level\":\"info\",\"msg\":\"started\",\"port\":80,\"name\":\"x\"}", KL_LOG_INFO, "started",
        "port=%d name=%s", "port=80 name=x");
    assert_line(",\"level\":\"error\",\"msg\":\"a \\\"b\\\"\"}", KL_LOG_ERROR, "a \"b\"", "", "");
    assert_line(
        ",\"level\":\"debug\",\"msg\":\"m\",\"error\":\"it said \\\"no\\\"\\nand left\",\"next\":\"1s\"}",
        KL_LOG_DEBUG, "m", "error=%s next=%s", "error=\"it said \\\"no\\\"\\nand left\" next=1s");
}

static void a_key_has_one_type(void **state)
{
    (void)state;
    assert_line(",\"level\":\"warn\",\"msg\":\"m\",\"name\":\"80\",\"n\":80,\"f\":0.5,\"big\":1e+06,\"on\":"
                "true,\"off\":\"maybe\"}",
        KL_LOG_WARN, "m", "name=%s n=%zu f=%g big=%g on=%B off=%B",
        "name=80 n=80 f=0.5 big=1e+06 on=true off=maybe");
    assert_line(
        ",\"level\":\"warn\",\"msg\":\"m\",\"a\":\"inf\",\"b\":\"-nan\",\"c\":-3,\"d\":\"007\",\"e\":\"\"}",
        KL_LOG_WARN, "m", "a=%g b=%g c=%d d=%d e=%d", "a=inf b=-nan c=-3 d=007 e=\"\"");
    assert_line(",\"level\":\"warn\",\"msg\":\"m\",\"attempts\":\"1\"}", KL_LOG_WARN, "m", "max_attempts=%d",
        "attempts=1");
}

static void a_traceback_is_a_field(void **state)
{
    (void)state;
    assert_line(",\"level\":\"error\",\"msg\":\"m\",\"error\":\"oh\",\"stacktrace\":\"stack "
                "traceback:\\n\\tx.lua:1: in f\"}",
        KL_LOG_ERROR, "m", "error=%s%s%s", "error=oh\nstack traceback:\n\tx.lua:1: in f");
}

static void names_are_there_once(void **state)
{
    (void)state;
    assert_line(",\"level\":\"info\",\"msg\":\"m\",\"key\":\"a\",\"field.key\":\"b\",\"field.msg\":\"c\","
                "\"field.ts\":\"d\"}",
        KL_LOG_INFO, "m", "", "key=a key=b msg=c ts=d key=e");
    assert_line(
        ",\"level\":\"info\",\"msg\":\"m\",\"key\":\"a\",\"field.key\":\"b\",\"field.field.key\":\"c\"}",
        KL_LOG_INFO, "m", "", "key=a key=b field.key=c");
    assert_line(",\"level\":\"info\",\"msg\":\"m\",\"text\":\"some words\",\"k\":\"v and more\"}",
        KL_LOG_INFO, "m", "", "some words k=v and more");
}

static void odd_bytes_are_replaced(void **state)
{
    (void)state;
    assert_line(",\"level\":\"info\",\"msg\":\"\\u0001\\u007f\xef\xbf\xbd\xc3\xa4\",\"k\":"
                "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}",
        KL_LOG_INFO, "\x01\x7f\xff\xc3\xa4", "", "k=\xed\xa0\x80");
    assert_line(",\"level\":\"info\",\"msg\":\"m\",\"k\":\"\\t\\u0000x\"}", KL_LOG_INFO, "m", "",
        "k=\"\\x09\\x00x\"");
}

/* Random bytes, many of them those that mean something here. */
static void noise(kl_random *random, char *out, size_t max)
{
    static const char SPECIAL[] = "\"\\= \n\tk=v{}[]:,%x0\xc3\xa4\xf0\x9f\x98\x80\xed\xa0";
    size_t n = (size_t)kl_random_between(random, 0, (kl_time)max);
    for (size_t i = 0; i < n; i++) {
        out[i] = kl_random_between(random, 0, 3) ? SPECIAL[kl_random_between(random, 0, sizeof SPECIAL - 1)]
                                                 : (char)kl_random_between(random, 1, 256);
        if (!out[i])
            out[i] = '=';
    }
    out[n] = '\0';
}

static void any_input_gives_a_json_line(void **state)
{
    (void)state;
    kl_random random = {42};
    for (int round = 0; round < 20000; round++) {
        char message[24], fields[80], format[24];
        noise(&random, message, sizeof message);
        noise(&random, fields, sizeof fields);
        noise(&random, format, sizeof format);
        char *line = written(KL_LOG_INFO, message, format, fields), *whole = kl_sprintf("{%s", line + 1);
        assert_null(strchr(whole, '\n'));
        if (!strict_accepts(whole, strlen(whole), 16, false))
            fail_msg("not JSON: %s", whole);
        kl_free(whole);
        free(line);
    }
}

static void a_quoted_text_comes_back_as_it_was(void **state)
{
    (void)state;
    kl_random random = {7};
    for (int round = 0; round < 5000; round++) {
        char raw[40], quoted[200], fields[240];
        noise(&random, raw, sizeof raw);
        kl_log_quote(raw, quoted, sizeof quoted);
        snprintf(fields, sizeof fields, "before=1 k=%s after=2", quoted);
        char *line = written(KL_LOG_INFO, "m", "", fields);
        char *end = strstr(line, ",\"after\":\"2\"}");
        assert_non_null(end);
        assert_int_equal(end[strlen(",\"after\":\"2\"}")], '\0');
        assert_non_null(strstr(line, ",\"before\":\"1\",\"k\":\""));
        free(line);
    }
}

static void a_traceparent_is_read_and_written(void **state)
{
    (void)state;
    kl_trace t;
    char header[KL_TRACEPARENT_MAX];
    const char *good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_true(kl_trace_parse(good, &t));
    assert_string_equal(t.trace, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(t.span, "b7ad6b7169203331");
    assert_string_equal(kl_trace_header(&t, header), good);
    assert_true(
        kl_trace_parse("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later", &t));
    static const char *const BAD[] = {NULL, "", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
        "00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x"};
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        assert_false(kl_trace_parse(BAD[i], &t));
    kl_trace_span("one", &t);
    assert_int_equal(strlen(t.span), 16);
}

static char *written_as_text(const char *message, const char *fields)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    kl_log_set_sink(kl_log_file_sink, f);
    kl_log_text(KL_LOG_INFO, message, "", fields);
    kl_log_set_sink(NULL, NULL);
    fclose(f);
    assert_true(n > 31 && text[n - 1] == '\n');
    memmove(text, text + 25, n - 24);
    return text;
}

static void a_record_is_one_line_of_text(void **state)
{
    (void)state;
    char *line = written_as_text("a\nb\r\033[2Jc\td \302\233m \303\244", "k=v\033");
    assert_string_equal(line, "INFO  a\\nb\\r^[[2Jc\td \\u009bm \303\244 k=v^[\n");
    free(line);
    line = written_as_text("failed", "error=x\nstack traceback:\n\ta.lua:1: in f\n2026-01-01 INFO forged");
    assert_string_equal(
        line, "INFO  failed error=x\nstack traceback:\n\ta.lua:1: in f\n\t2026-01-01 INFO forged\n");
    free(line);
}

static ssize_t counted_write(void *writes, const char *text, size_t n)
{
    (void)text;
    ++*(int *)writes;
    return (ssize_t)n;
}

static void a_record_is_one_write(void **state)
{
    (void)state;
    int writes = 0;
    FILE *f = fopencookie(&writes, "w", (cookie_io_functions_t){.write = counted_write});
    setvbuf(f, NULL, _IONBF, 0); /* as stderr is */
    kl_log_set_sink(kl_log_file_sink, f);
    kl_log_text(KL_LOG_INFO, "failed", "", "k=v error=x\nstack traceback:\n\ta.lua:1: in f\n\tb.lua:2: in g");
    kl_log_set_sink(kl_log_json_sink, f);
    kl_log_text(KL_LOG_INFO, "failed", "k=%s error=%s", "k=v error=x\nstack traceback:\n\ta.lua:1: in f");
    kl_log_set_sink(NULL, NULL);
    fclose(f);
    assert_int_equal(writes, 2);
}

static void a_long_message_is_cut_between_characters(void **state)
{
    (void)state;
    char *cut, text[KL_LOG_MESSAGE_MAX + 3];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memcpy(text + KL_LOG_MESSAGE_MAX - 1, "\303\244", 2);
    cut = kl_log_cut(text);
    assert_string_equal(cut + KL_LOG_MESSAGE_MAX - 1, "... (8194 bytes)");
    kl_free(cut);
    text[KL_LOG_MESSAGE_MAX] = '\0';
    assert_null(kl_log_cut(text));
    char *line = written_as_text("short", "");
    assert_string_equal(line, "INFO  short\n");
    free(line);
}

KL_TESTS(cmocka_unit_test(a_record_is_one_line_of_text), cmocka_unit_test(a_record_is_one_write),
    cmocka_unit_test(a_long_message_is_cut_between_characters),
    cmocka_unit_test(a_record_is_an_object_with_its_fields_in_order), cmocka_unit_test(a_key_has_one_type),
    cmocka_unit_test(a_traceback_is_a_field), cmocka_unit_test(names_are_there_once),
    cmocka_unit_test(odd_bytes_are_replaced), cmocka_unit_test(any_input_gives_a_json_line),
    cmocka_unit_test(a_quoted_text_comes_back_as_it_was), cmocka_unit_test(a_traceparent_is_read_and_written))

/* not in tsan: it starts no thread */
