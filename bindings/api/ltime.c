/* ltime.c - durations and points in time, read and written as apimachinery does.
 *
 * A duration is a number of seconds, or Go's text for one ("1h5m0.5s"). A time is a userdata, exact to the
 * nanosecond: t - t gives seconds, t + seconds and t - seconds give a time, times compare with each other
 * and with Unix seconds. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/cron.h"
#include "state/border.h"
#include "model/time.h"

static const char time_tag, time_mt;

typedef struct lkl_time {
    const void *tag;
    int64_t sec;
    int32_t nsec;
} lkl_time;

#define NANO 1000000000

static lkl_time *get_time(lua_State *L, int idx) { return lkl__tagged(L, idx, &time_tag, sizeof(lkl_time)); }

static lkl_time *self(lua_State *L)
{
    lkl_time *t = get_time(L, 1);
    if (!t)
        luaL_typeerror(L, 1, "kubelua.time");
    return t;
}

/* A number of seconds as nanoseconds, rounded; raises outside the range of a duration (292 years). */
static kl_time nanoseconds(lua_State *L, int idx, const char *what)
{
    if (lua_isinteger(L, idx)) {
        lua_Integer sec = lua_tointeger(L, idx);
        if (sec > INT64_MAX / NANO || sec < INT64_MIN / NANO)
            lkl__error(L, "%s: too many seconds for a duration", what);
        return sec * NANO;
    }
    double ns = lua_tonumber(L, idx) * 1e9;
    if (!(ns > -9.2e18 && ns < 9.2e18))
        lkl__error(L, "%s: too many seconds for a duration", what);
    return (kl_time)llround(ns);
}

kl_time lkl__seconds(lua_Number s)
{
    double ns = s * 1e9;
    if (ns != ns)
        return 0;
    return ns >= 9.2e18 ? INT64_MAX : ns <= -9.2e18 ? INT64_MIN : (kl_time)ns;
}

kl_time lkl_check_duration(lua_State *L, int idx, const char *what)
{
    kl_time d = 0;
    if (lua_type(L, idx) == LUA_TNUMBER)
        return nanoseconds(L, idx, what);
    if (lua_type(L, idx) != LUA_TSTRING)
        lkl__error(
            L, "%s: expected seconds or a duration such as \"1m30s\", got %s", what, luaL_typename(L, idx));
    kl_err err = KL_ERR_INIT;
    if (kl_duration_parse(lkl__text(L, idx), &d, &err)) {
        (void)kl_err_prefix(&err, "%s", what);
        lkl__fail(L, &err);
    }
    return d;
}

static void push_seconds(lua_State *L, int64_t sec, int32_t nsec)
{
    if (nsec)
        lua_pushnumber(L, (double)sec + nsec / 1e9);
    else
        lua_pushinteger(L, sec);
}

/* kube.duration(x): seconds; an integer when they are whole */
static int duration(lua_State *L)
{
    kl_time d = lkl_check_duration(L, 1, "kube.duration");
    if (d % NANO)
        lua_pushnumber(L, (double)d / 1e9);
    else
        lua_pushinteger(L, d / NANO);
    return 1;
}

/* kube.format_duration(x): Go's text, "1h5m0s" */
static int format_duration(lua_State *L)
{
    char text[KL_DURATION_MAX];
    lua_pushstring(L, kl_duration_format(lkl_check_duration(L, 1, "kube.format_duration"), text));
    return 1;
}

/* --- points in time ----------------------------------------------------------------------- */

static void split(kl_time ns, int64_t *sec, int32_t *nsec)
{
    *sec = ns / NANO;
    *nsec = (int32_t)(ns % NANO);
    if (*nsec < 0) {
        *nsec += NANO;
        (*sec)--;
    }
}

/* The largest time: far beyond the years that can be written, and far from the end of 64 bits, so that
 * differences and sums fit. */
#define SECONDS_MAX 9000000000000000

static bool is_point(int64_t sec) { return sec > -SECONDS_MAX && sec < SECONDS_MAX; }

/* The time at idx: a time, RFC 3339 text, or Unix seconds. */
static lkl_time to_time(lua_State *L, int idx)
{
    lkl_time out = {&time_tag, 0, 0}, *t = get_time(L, idx);
    if (t)
        return *t;
    if (lua_isinteger(L, idx)) {
        out.sec = lua_tointeger(L, idx);
        luaL_argcheck(L, is_point(out.sec), idx, "too many seconds: the year cannot be written");
    } else if (lua_type(L, idx) == LUA_TNUMBER) {
        double sec = lua_tonumber(L, idx), whole = floor(sec);
        if (!(fabs(sec) < (double)SECONDS_MAX))
            luaL_argerror(L, idx, "too many seconds: the year cannot be written");
        out.sec = (int64_t)whole;
        out.nsec = (int32_t)((sec - whole) * 1e9);
    } else if (lua_type(L, idx) == LUA_TSTRING) {
        kl_err err = KL_ERR_INIT;
        if (kl_time_parse(lkl__text(L, idx), &out.sec, &out.nsec, &err))
            lkl__argerror(L, idx, &err);
    } else {
        luaL_typeerror(L, idx, "time, RFC 3339 text or seconds");
    }
    return out;
}

static const luaL_Reg time_meta[], time_methods[];

void lkl_push_time(lua_State *L, int64_t sec, int32_t nsec)
{
    lkl_time *t = lua_newuserdatauv(L, sizeof *t, 0);
    *t = (lkl_time){&time_tag, sec, nsec};
    if (lkl__metatable(L, &time_mt, "kubelua.time")) {
        luaL_setfuncs(L, time_meta, 0);
        lua_newtable(L);
        luaL_setfuncs(L, time_methods, 0);
        lua_setfield(L, -2, "__index");
        lkl__keep_metatable(L, &time_mt);
    }
    lua_setmetatable(L, -2);
}

static int add_nanoseconds(lua_State *L, const lkl_time *t, int by_idx, int direction)
{
    kl_time by = lkl_check_duration(L, by_idx, "added to a time");
    int64_t sec;
    int32_t nsec;
    split(by, &sec, &nsec);
    if (direction < 0) {
        sec = -sec;
        nsec = -nsec;
    }
    nsec += t->nsec;
    if (nsec < 0) {
        nsec += NANO;
        sec--;
    } else if (nsec >= NANO) {
        nsec -= NANO;
        sec++;
    }
    sec += t->sec;
    if (!is_point(sec))
        return luaL_error(L, "too many seconds: the year cannot be written");
    lkl_push_time(L, sec, nsec);
    return 1;
}

static int time_add(lua_State *L)
{
    int at = get_time(L, 1) ? 1 : 2;
    if (get_time(L, 3 - at))
        return luaL_argerror(L, 2, "two times cannot be added; add seconds or a duration");
    return add_nanoseconds(L, get_time(L, at), 3 - at, 1);
}

/* Whether the text at idx is RFC 3339; no text of a duration is. */
static bool is_time_text(lua_State *L, int idx)
{
    int64_t sec;
    int32_t nsec;
    return lua_type(L, idx) == LUA_TSTRING && !kl_time_parse(lkl__text(L, idx), &sec, &nsec, NULL);
}

/* time - time (or its text, or Unix seconds - time): seconds. time - number or duration text: a time. */
static int time_sub(lua_State *L)
{
    if (get_time(L, 1) && !get_time(L, 2) && !is_time_text(L, 2))
        return add_nanoseconds(L, get_time(L, 1), 2, -1);
    lkl_time a = to_time(L, 1), b = to_time(L, 2);
    int64_t sec = a.sec - b.sec;
    int32_t nsec = a.nsec - b.nsec;
    if (nsec < 0) {
        nsec += NANO;
        sec--;
    }
    push_seconds(L, sec, nsec);
    return 1;
}

static int compare(lua_State *L)
{
    lkl_time a = to_time(L, 1), b = to_time(L, 2);
    if (a.sec != b.sec)
        return a.sec < b.sec ? -1 : 1;
    return a.nsec < b.nsec ? -1 : a.nsec > b.nsec;
}

static int time_eq(lua_State *L)
{
    lua_pushboolean(L, get_time(L, 1) && get_time(L, 2) && compare(L) == 0);
    return 1;
}

static int time_lt(lua_State *L)
{
    lua_pushboolean(L, compare(L) < 0);
    return 1;
}

static int time_le(lua_State *L)
{
    lua_pushboolean(L, compare(L) <= 0);
    return 1;
}

static bool writable(int64_t sec)
{
    return sec >= -62167219200 && sec <= 253402300799; /* years 0000 to 9999 */
}

bool lkl__time_text(lua_State *L, int idx)
{
    char text[KL_TIME_MAX];
    lkl_time *t = get_time(L, idx);
    if (!t)
        return false;
    if (!writable(t->sec))
        luaL_error(L, "a time outside of the years 0 to 9999 cannot be written");
    lua_pushstring(L, kl_time_format(t->sec, text));
    return true;
}

static int time_tostring(lua_State *L)
{
    self(L);
    lkl__time_text(L, 1);
    return 1;
}

/* t:unix(): whole seconds since 1970, rounded down */
static int time_unix(lua_State *L)
{
    lua_pushinteger(L, self(L)->sec);
    return 1;
}

/* t:seconds(): the same with the fraction */
static int time_seconds(lua_State *L)
{
    lkl_time *t = self(L);
    push_seconds(L, t->sec, t->nsec);
    return 1;
}

/* t:micro(): as metav1.MicroTime, for Leases and Events */
static int time_micro(lua_State *L)
{
    char text[KL_TIME_MAX];
    lkl_time *t = self(L);
    if (!writable(t->sec))
        return luaL_error(L, "a time outside of the years 0 to 9999 cannot be written");
    lua_pushstring(L, kl_time_format_micro(t->sec, t->nsec, text));
    return 1;
}

static const luaL_Reg time_meta[] = {
    {"__add", time_add},
    {"__sub", time_sub},
    {"__eq", time_eq},
    {"__lt", time_lt},
    {"__le", time_le},
    {"__tostring", time_tostring},
    {NULL, NULL},
};
static const luaL_Reg time_methods[] = {
    {"unix", time_unix},
    {"seconds", time_seconds},
    {"micro", time_micro},
    {NULL, NULL},
};

/* kube.time(x) */
static int time_of(lua_State *L)
{
    lkl_time t = to_time(L, 1);
    lkl_push_time(L, t.sec, t.nsec);
    return 1;
}

/* kube.format_time(x): "2026-01-02T15:04:05Z" */
static int format_time(lua_State *L)
{
    lkl_time t = to_time(L, 1);
    lkl_push_time(L, t.sec, t.nsec);
    lkl__time_text(L, -1);
    return 1;
}

/* core.cron_problem(text): what is wrong with a cron text, or nil */
static int cron_problem(lua_State *L)
{
    kl_cron c;
    kl_err err = KL_ERR_INIT;
    if (!kl_cron_parse(lkl__text(L, 1), &c, &err))
        return 0;
    lkl__push_message(L, &err);
    return 1;
}

/* core.cron_time(text, seconds, next): the first time of a cron text after then, or the last one before */
static int cron_time(lua_State *L)
{
    kl_cron c;
    int64_t then = luaL_checkinteger(L, 2);
    if (!writable(then) || kl_cron_parse(lkl__text(L, 1), &c, NULL))
        return lkl__error(L, "kube.cron: the time must be between the years 0 and 9999");
    lua_pushinteger(L, lua_toboolean(L, 3) ? kl_cron_next(&c, then) : kl_cron_previous(&c, then));
    return 1;
}

void lkl__open_time(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"duration", duration},
        {"format_duration", format_duration},
        {"time", time_of},
        {"format_time", format_time},
        {"cron_problem", cron_problem},
        {"cron_time", cron_time},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
