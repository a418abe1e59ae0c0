/* lsamples.c - core/sim/samples.h for Lua: usage, rings and histograms, of which predictors are made. */
#include "base/mem.h"
#include "script/nodes.h"
#include "sim/samples.h"

/* More pods on a machine, steps or samples than that are a mistake. */
enum { PODS_MAX = 100000, SAMPLES_MAX = 10000000, SERIES_MAX = 1000000000 };

static size_t count_at(lua_State *L, int idx, lua_Integer max)
{
    lua_Integer n = luaL_checkinteger(L, idx);
    luaL_argcheck(L, n >= 1 && n <= max, idx, "the number is out of range");
    return (size_t)n;
}

/* Copies n numbers of the list at idx, which has as many; raises nothing. */
static void numbers_at(lua_State *L, int idx, double *into, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, idx, (lua_Integer)i + 1);
        into[i] = lua_tonumber(L, -1);
        lua_pop(L, 1);
    }
}

static size_t list_at(lua_State *L, int idx)
{
    luaL_checktype(L, idx, LUA_TTABLE);
    size_t n = lua_rawlen(L, idx);
    luaL_argcheck(L, n <= PODS_MAX, idx, "the list is too long");
    luaL_checkstack(L, 2, "numbers");
    return n;
}

/* --- usage -------------------------------------------------------------------------------- */

extern const lkl_class lkl__usage_class;

static void usage_free(void *p) { kl_usage_free(p); }
static kl_usage *usage(lua_State *L, int idx) { return lkl_box_check(L, idx, &lkl__usage_class); }

static size_t pod_at(lua_State *L, const kl_usage *u, int idx)
{
    return count_at(L, idx, (lua_Integer)u->pods) - 1;
}

/* core.usage(limits, steps): pods with these limits, which use nothing yet */
static int new_usage(lua_State *L)
{
    size_t pods = list_at(L, 1), steps = count_at(L, 2, SAMPLES_MAX);
    lkl_box *box = lkl_box_new(L, &lkl__usage_class, 0);
    kl_usage *u = box->ptr = kl_usage_new(pods, steps);
    numbers_at(L, 1, u->limits, pods);
    return 1;
}

/* The numbers of the list at idx, one for each step; the caller frees them. */
static double *steps_at(lua_State *L, const kl_usage *u, int idx)
{
    luaL_checktype(L, idx, LUA_TTABLE);
    luaL_argcheck(L, lua_rawlen(L, idx) >= u->steps, idx, "expected a number for each step");
    luaL_checkstack(L, 2, "numbers");
    double *x = kl_new_array(double, u->steps);
    numbers_at(L, idx, x, u->steps);
    return x;
}

/* u:set(p, numbers): the use of pod p at each step */
static int set(lua_State *L)
{
    kl_usage *u = usage(L, 1);
    size_t p = pod_at(L, u, 2);
    double *x = steps_at(L, u, 3);
    for (size_t t = 0; t < u->steps; t++)
        u->x[t * u->pods + p] = x[t];
    kl_free(x);
    return 0;
}

/* u:demand(p, levels, factor, noise, seed): the use of pod p, as kl_usage_demand makes it */
static int demand(lua_State *L)
{
    kl_usage *u = usage(L, 1);
    size_t p = pod_at(L, u, 2);
    double factor = luaL_checknumber(L, 4), noise = luaL_checknumber(L, 5);
    uint64_t seed = (uint64_t)luaL_checkinteger(L, 6);
    double *levels = steps_at(L, u, 3);
    kl_usage_demand(u, p, levels, factor, noise, seed);
    kl_free(levels);
    return 0;
}

/* u:cap(): reduces each use to the pod's limit; returns the sum of all pods at each step */
static int cap(lua_State *L)
{
    kl_usage *u = usage(L, 1);
    kl_usage_cap(u);
    lua_createtable(L, (int)u->steps, 0);
    for (size_t t = 0; t < u->steps; t++) {
        lua_pushnumber(L, kl_usage_total(u, t));
        lua_rawseti(L, -2, (lua_Integer)t + 1);
    }
    return 1;
}

static const luaL_Reg usage_methods[] = {{"set", set}, {"demand", demand}, {"cap", cap}, {NULL, NULL}};
const lkl_class lkl__usage_class = {"kubelua.usage", usage_free, usage_methods, NULL};

/* The samples of a call add(number) or add(usage, step), for k series. `one` is the caller's. */
static const double *samples_at(lua_State *L, size_t k, double *one)
{
    if (lua_type(L, 2) == LUA_TNUMBER) {
        luaL_argcheck(L, k == 1, 2, "expected the usage of several pods");
        *one = lua_tonumber(L, 2);
        return one;
    }
    kl_usage *u = usage(L, 2);
    luaL_argcheck(L, u->pods == k, 2, "the usage has another number of pods");
    return u->x + (count_at(L, 3, (lua_Integer)u->steps) - 1) * k;
}

/* --- windows ------------------------------------------------------------------------------ */

extern const lkl_class lkl__window_class;

static void window_free(void *p) { kl_window_free(p); }
static kl_window *window(lua_State *L) { return lkl_box_check(L, 1, &lkl__window_class); }

/* core.window(k, n): the last n samples of k series */
static int new_window(lua_State *L)
{
    size_t k = count_at(L, 1, PODS_MAX), n = count_at(L, 2, SAMPLES_MAX);
    lkl_box_new(L, &lkl__window_class, 0)->ptr = kl_window_new(k, n);
    return 1;
}

static int window_add(lua_State *L)
{
    kl_window *w = window(L);
    double one;
    kl_window_add(w, samples_at(L, w->k, &one));
    return 0;
}

/* w:sigma(deviations): the mean and so many deviations, summed over the series; nil until the window is
 * full */
static int sigma(lua_State *L)
{
    const kl_window *w = window(L);
    double deviations = luaL_checknumber(L, 2);
    if (w->count < w->n || w->count < 2)
        return 0;
    lua_pushnumber(L, kl_window_sigma(w, deviations));
    return 1;
}

static int most(lua_State *L)
{
    lua_pushnumber(L, kl_window_most(window(L)));
    return 1;
}

static int highest(lua_State *L)
{
    lua_pushnumber(L, kl_window_highest(window(L)));
    return 1;
}

static const luaL_Reg window_methods[] = {
    {"add", window_add}, {"sigma", sigma}, {"most", most}, {"highest", highest}, {NULL, NULL}};
const lkl_class lkl__window_class = {"kubelua.window", window_free, window_methods, NULL};

/* --- histograms --------------------------------------------------------------------------- */

extern const lkl_class lkl__shares_class;

static void shares_free(void *p) { kl_shares_free(p); }
static kl_shares *shares(lua_State *L) { return lkl_box_check(L, 1, &lkl__shares_class); }

/* core.shares(limits, n): histograms of the shares of their limits that series used in the last n samples */
static int new_shares(lua_State *L)
{
    size_t k = list_at(L, 1), n = count_at(L, 2, SAMPLES_MAX);
    luaL_argcheck(L, k >= 1, 1, "expected a limit");
    lkl_box *box = lkl_box_new(L, &lkl__shares_class, 0);
    double *limits = kl_new_array(double, k);
    numbers_at(L, 1, limits, k);
    box->ptr = kl_shares_new(limits, k, n);
    kl_free(limits);
    return 1;
}

static int shares_add(lua_State *L)
{
    kl_shares *s = shares(L);
    double one;
    kl_shares_add(s, samples_at(L, s->k, &one));
    return 0;
}

/* s:percentile(q, least): percentiles times limits, summed over the series; nil until there are `least`
 * samples */
static int shares_percentile(lua_State *L)
{
    const kl_shares *s = shares(L);
    double q = luaL_checknumber(L, 2);
    if (s->count < count_at(L, 3, SAMPLES_MAX))
        return 0;
    lua_pushnumber(L, kl_shares_percentile(s, q));
    return 1;
}

static const luaL_Reg shares_methods[] = {
    {"add", shares_add}, {"percentile", shares_percentile}, {NULL, NULL}};
const lkl_class lkl__shares_class = {"kubelua.shares", shares_free, shares_methods, NULL};

extern const lkl_class lkl__fading_class;

static void fading_free(void *p) { kl_fading_free(p); }
static kl_fading *fading(lua_State *L) { return lkl_box_check(L, 1, &lkl__fading_class); }

/* core.fading(half_life): a histogram in which a sample loses half of its weight in so many samples */
static int new_fading(lua_State *L)
{
    double half_life = luaL_checknumber(L, 1);
    luaL_argcheck(L, half_life >= 1, 1, "expected 1 sample or more");
    lkl_box_new(L, &lkl__fading_class, 0)->ptr = kl_fading_new(half_life);
    return 1;
}

static int fading_add(lua_State *L)
{
    kl_fading_add(fading(L), luaL_checknumber(L, 2));
    return 0;
}

static int fading_percentile(lua_State *L)
{
    const kl_fading *f = fading(L);
    lua_pushnumber(L, kl_fading_percentile(f, luaL_checknumber(L, 2)));
    return 1;
}

static const luaL_Reg fading_methods[] = {
    {"add", fading_add}, {"percentile", fading_percentile}, {NULL, NULL}};
const lkl_class lkl__fading_class = {"kubelua.fading", fading_free, fading_methods, NULL};

/* --- sums of moments ---------------------------------------------------------------------- */

static void sums_free(void *p) { kl_sums_free(p); }
static kl_sums *sums(lua_State *L) { return lkl_box_check(L, 1, &lkl__sums_class); }

/* core.sums(): nothing yet */
static int new_sums(lua_State *L)
{
    lkl_box_new(L, &lkl__sums_class, 0)->ptr = kl_sums_new();
    return 1;
}

/* s:add(slot, series, x): the sum of the series with this sample */
static int sums_add(lua_State *L)
{
    kl_sums *s = sums(L);
    size_t slot = count_at(L, 2, SAMPLES_MAX) - 1, series = count_at(L, 3, SERIES_MAX) - 1;
    lua_pushnumber(L, kl_sums_add(s, slot, series, luaL_checknumber(L, 4)));
    return 1;
}

/* s:take(slot, list, numbers): a sample for each series of the list: its number in `numbers` */
static int sums_take(lua_State *L)
{
    kl_sums *s = sums(L);
    size_t slot = count_at(L, 2, SAMPLES_MAX) - 1;
    luaL_checktype(L, 3, LUA_TTABLE);
    luaL_checktype(L, 4, LUA_TTABLE);
    for (lua_Integer k = 1; lua_rawgeti(L, 3, k) != LUA_TNIL; k++, lua_settop(L, 4)) {
        size_t series = count_at(L, -1, SERIES_MAX);
        lua_rawgeti(L, 4, (lua_Integer)series);
        kl_sums_add(s, slot, series - 1, lua_tonumber(L, -1));
    }
    return 0;
}

/* s:get(series) */
static int sums_get(lua_State *L)
{
    lua_pushnumber(L, kl_sums_get(sums(L), count_at(L, 2, SERIES_MAX) - 1));
    return 1;
}

static const luaL_Reg sums_methods[] = {
    {"add", sums_add}, {"take", sums_take}, {"get", sums_get}, {NULL, NULL}};
const lkl_class lkl__sums_class = {"kubelua.sums", sums_free, sums_methods, NULL};

/* core.normal(seed, a, b): kl_dice_normal */
static int normal(lua_State *L)
{
    lua_pushnumber(L,
        kl_dice_normal((uint64_t)luaL_checkinteger(L, 1), (uint64_t)luaL_checkinteger(L, 2),
            (uint64_t)luaL_checkinteger(L, 3)));
    return 1;
}

void lkl__open_samples(lua_State *L)
{
    static const luaL_Reg functions[] = {{"usage", new_usage}, {"window", new_window}, {"shares", new_shares},
        {"fading", new_fading}, {"sums", new_sums}, {"normal", normal}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
