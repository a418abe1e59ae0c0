/* table_time.c - of backoff_time_names: durations and times. */
#include <stdio.h>
#include "base/mem.h"
#include "model/time.h"
#include "oracle.h"

static void build_quoted(kl_builder *b, const char *key, const char *text)
{
    char *json = kl_sprintf("\"%s\"", text);

    kl_build_kstr(b, key, json);
    kl_free(json);
}

static kl_status duration_parse(const oracle_case *c, kl_builder *b, kl_err *err)
{
    char text[KL_DURATION_MAX];
    const char *s;
    kl_time d;
    kl_status st = oracle_str(c->in, "s", &s, err);

    if (!st)
        st = kl_duration_parse(s, &d, err);
    if (st)
        return st;
    oracle_build_int(b, "ns", d);
    kl_build_kstr(b, "string", kl_duration_format(d, text));
    build_quoted(b, "json", text);
    return KL_OK;
}

static kl_status duration_unmarshal(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *v;
    const char *s;
    kl_time d;
    kl_status st = oracle_str(c->in, "json", &s, err);

    if (!st)
        st = kl_value_decode(s, kl_value_len(kl_value_get(c->in, "json")), &v, err);
    if (st)
        return st;
    st = kl_value_str(v) ? kl_duration_parse(kl_value_str(v), &d, err)
                         : kl_fail(err, KL_EINVAL, "a duration is a string");
    kl_value_unref(v);
    if (!st)
        oracle_build_int(b, "ns", d);
    return st;
}

static kl_status duration_format(const oracle_case *c, kl_builder *b, kl_err *err)
{
    char text[KL_DURATION_MAX];
    int64_t d;
    kl_status st = oracle_int(c->in, "ns", &d, err);

    if (!st)
        kl_build_kstr(b, "string", kl_duration_format(d, text));
    return st;
}

static void build_time(kl_builder *b, const char *key, int64_t sec, int32_t nsec, bool micro)
{
    char text[KL_TIME_MAX];

    if (sec == KL_TIME_ZERO_SEC && nsec == 0)
        kl_build_kstr(b, key, "null");
    else
        build_quoted(b, key, micro ? kl_time_format_micro(sec, nsec, text) : kl_time_format(sec, text));
}

static kl_status parsed(const oracle_case *c, bool micro, kl_builder *b, kl_err *err)
{
    const char *s;
    int64_t sec;
    int32_t nsec;
    char text[40];
    kl_status st = oracle_str(c->in, "s", &s, err);

    if (!st)
        st = micro ? kl_time_parse_micro(s, &sec, &nsec, err) : kl_time_parse(s, &sec, &nsec, err);
    if (st)
        return st;
    build_time(b, "json", sec, nsec, micro);
    snprintf(text, sizeof text, "%lld.%09d", (long long)sec, (int)nsec);
    kl_build_kstr(b, "unixNano", text);
    return KL_OK;
}

static kl_status plain_time(const oracle_case *c, kl_builder *b, kl_err *err)
{
    return parsed(c, false, b, err);
}

static kl_status micro_time(const oracle_case *c, kl_builder *b, kl_err *err)
{
    return parsed(c, true, b, err);
}

static kl_status time_format(const oracle_case *c, kl_builder *b, kl_err *err)
{
    int64_t sec, nsec;
    kl_status st = oracle_int(c->in, "unix", &sec, err);

    if (!st)
        st = oracle_int(c->in, "nsec", &nsec, err);
    if (st)
        return st;
    build_time(b, "time", sec, (int32_t)nsec, false);
    build_time(b, "microTime", sec, (int32_t)nsec, true);
    return KL_OK;
}

static const oracle_op ops[] = {
    {"duration_parse", duration_parse, NULL},
    {"duration_unmarshal", duration_unmarshal, NULL},
    {"duration_format", duration_format, NULL},
    {"time", plain_time, NULL},
    {"micro_time", micro_time, NULL},
    {"time_format", time_format, NULL},
    {0},
};
ORACLE_TABLE("backoff_time_names", ops)
