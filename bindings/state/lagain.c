/* lagain.c - time and chance as a script sees them, so that a replayed run gets the same values: os.time,
 * date and clock use the runtime's clock, in UTC on every machine; math.random and kube.generate_name use
 * numbers that follow from the run's reconcileID. Outside of runs (mapping functions, the top level) nothing
 * is replayed, so these use the real ones. */
#include <time.h>

#include "base/random.h"
#include "model/names.h"
#include "state/state.h"

static kl_run *run_of(lua_State *L) { return lkl_state_of(L)->run; }

/* --- time --------------------------------------------------------------------------------- */

static kl_time wall(lua_State *L)
{
    kl_run *r = run_of(L);
    return r ? kl_run_wall(r) : kl_clock_wall(kl_clock_real());
}

/* A field of the table at 1 for os.time. */
static int field(lua_State *L, const char *key, int dflt, int delta)
{
    int is;
    lua_Integer n = 0;
    int type = lua_getfield(L, 1, key);
    if (type == LUA_TNIL && dflt >= 0) {
        lua_pop(L, 1);
        return dflt;
    }
    if (type == LUA_TNIL)
        return luaL_error(L, "field '%s' missing in date table", key);
    n = lua_tointegerx(L, -1, &is);
    if (!is)
        return luaL_error(L, "field '%s' is not an integer", key);
    if (n < -((lua_Integer)1 << 30) || n > (lua_Integer)1 << 30)
        return luaL_error(L, "field '%s' is out-of-bound", key);
    lua_pop(L, 1);
    return (int)n - delta;
}

static void set(lua_State *L, const char *key, int value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, 1, key);
}

/* os.time([table]): the table is a time in UTC, and is normalised. */
static int os_time(lua_State *L)
{
    if (lua_isnoneornil(L, 1)) {
        lua_pushinteger(L, wall(L) / KL_SECONDS(1));
        return 1;
    }
    luaL_checktype(L, 1, LUA_TTABLE);
    struct tm t = {.tm_year = field(L, "year", -1, 1900),
        .tm_mon = field(L, "month", -1, 1),
        .tm_mday = field(L, "day", -1, 0),
        .tm_hour = field(L, "hour", 12, 0),
        .tm_min = field(L, "min", 0, 0),
        .tm_sec = field(L, "sec", 0, 0)};
    time_t at = timegm(&t);
    set(L, "year", t.tm_year + 1900);
    set(L, "month", t.tm_mon + 1);
    set(L, "day", t.tm_mday);
    set(L, "hour", t.tm_hour);
    set(L, "min", t.tm_min);
    set(L, "sec", t.tm_sec);
    set(L, "yday", t.tm_yday + 1);
    set(L, "wday", t.tm_wday + 1);
    lua_pushboolean(L, false);
    lua_setfield(L, 1, "isdst");
    lua_pushinteger(L, (lua_Integer)at);
    return 1;
}

/* os.date([format [, time]]) is the stock one (our upvalue), with "!" before its format and our time. */
static int os_date(lua_State *L)
{
    const char *format = lkl__opt_text(L, 1, "%c");
    lua_settop(L, 2);
    lua_pushvalue(L, lua_upvalueindex(1));
    if (*format == '!')
        lua_pushstring(L, format);
    else
        lua_pushfstring(L, "!%s", format);
    if (lua_isnil(L, 2))
        lua_pushinteger(L, wall(L) / KL_SECONDS(1));
    else
        lua_pushvalue(L, 2);
    lua_call(L, 2, 1);
    return 1;
}

/* os.clock() inside a run: seconds, for differences. */
static int os_clock(lua_State *L)
{
    kl_run *r = run_of(L);
    lua_pushnumber(L, (double)(r ? kl_run_wall(r) : kl_clock_thread_cpu()) / 1e9);
    return 1;
}

/* --- chance ------------------------------------------------------------------------------- */

/* A random number from 0 to most, each equally likely: larger ones are drawn again. */
static uint64_t up_to(kl_run *r, uint64_t most)
{
    uint64_t mask = most;
    for (int i = 1; i < 64; i *= 2)
        mask |= mask >> i;
    uint64_t n;
    do
        n = kl_run_random(r) & mask;
    while (n > most);
    return n;
}

/* math.random([m [, n]]), as stock Lua has it; the stock one is our upvalue. */
static int math_random(lua_State *L)
{
    kl_run *r = run_of(L);
    int n = lua_gettop(L);
    if (!r) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        lua_call(L, n, 1);
        return 1;
    }
    if (!n) {
        lua_pushnumber(L, (double)(kl_run_random(r) >> 11) * 0x1p-53);
        return 1;
    }
    if (n > 2)
        return luaL_error(L, "wrong number of arguments");
    lua_Integer low = n == 1 ? 1 : luaL_checkinteger(L, 1), up = luaL_checkinteger(L, n);
    if (n == 1 && !up) {
        lua_pushinteger(L, (lua_Integer)kl_run_random(r));
        return 1;
    }
    luaL_argcheck(L, low <= up, n, "interval is empty");
    lua_pushinteger(L, (lua_Integer)((uint64_t)low + up_to(r, (uint64_t)up - (uint64_t)low)));
    return 1;
}

/* math.randomseed(...): of this run alone. */
static int math_randomseed(lua_State *L)
{
    kl_run *r = run_of(L);
    int n = lua_gettop(L);
    if (!r) {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_insert(L, 1);
        lua_call(L, n, LUA_MULTRET);
        return lua_gettop(L);
    }
    if (!n)
        return 0; /* stock Lua seeds at random here; the run's numbers are random already */
    int is;
    lua_Integer seed = lua_tointegerx(L, 1, &is);
    if (!is) {
        lua_Number x = luaL_checknumber(L, 1);
        union {
            lua_Number x;
            lua_Integer n;
        } as = {x};
        seed = as.n;
    }
    kl_run_seed(r, (uint64_t)seed ^ (uint64_t)luaL_optinteger(L, 2, 0) << 32);
    return 0;
}

static unsigned roll(void *arg, unsigned below) { return (unsigned)(kl_random_next(arg) % below); }

static int generate_name(lua_State *L)
{
    char name[KL_NAME_GENERATED_MAX];
    kl_run *r = run_of(L);
    kl_random seed = {
        r ? kl_run_random(r) : (uint64_t)kl_clock_now(kl_clock_real()) ^ (uint64_t)(uintptr_t)L};
    lua_pushstring(L, kl_name_generate(lkl__text(L, 1), roll, &seed, name));
    return 1;
}

/* --- putting it there --------------------------------------------------------------------- */

/* Replaces the function `name` of the library on top by fn, which gets the old one as its upvalue. */
static void instead(lua_State *L, const char *name, lua_CFunction fn)
{
    lua_getfield(L, -1, name);
    lua_pushcclosure(L, fn, 1);
    lua_setfield(L, -2, name);
}

void lkl__open_again(lua_State *L)
{
    lua_pushcfunction(L, generate_name);
    lua_setfield(L, -2, "generate_name");
    lua_getglobal(L, "math");
    instead(L, "random", math_random);
    instead(L, "randomseed", math_randomseed);
    lua_pop(L, 1);
    lua_getglobal(L, "os");
    instead(L, "time", os_time);
    instead(L, "date", os_date);
    instead(L, "clock", os_clock);
    lua_pop(L, 1);
}
