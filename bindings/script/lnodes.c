/* lnodes.c - what the pods of a simulated node use, and the report of its agent, out of the columns of
 * lua/kubelua/sim/world.lua: each minute of each node takes this way.
 *
 * Two reports of a node mostly have the same pods. So the names of the last one are taken over, and the
 * memory of pods that hold what they held. */
#include "script/nodes.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "sim/samples.h"

/* --- use ---------------------------------------------------------------------------------- */

/* Arguments of core.prod_use. */
enum {
    U_PODS = 1,
    U_CLASS,
    U_PLACED,
    U_USED,
    U_CPU,
    U_MEMORY,
    U_APP,
    U_FACTOR,
    U_TOLD,
    U_HOLDS,
    U_CURVES,
    U_TIME,
    U_SLOT,
    U_START,
    U_NOISE,
    U_SEED,
    U_SYSTEM,
    U_JOBS
};

/* The question of dice.lua: how much a pod differs at a moment. */
enum { QUESTION_NOISE = 3 };

/* The share of its request that a prod pod holds of memory, unless a trace says what it held. */
static const double HELD = 0.7;

static double number_at(lua_State *L, int idx, lua_Integer i)
{
    lua_rawgeti(L, idx, i);
    double x = lua_tonumber(L, -1);
    lua_pop(L, 1);
    return x;
}

/* False if it has none, or is nil. */
static bool some_at(lua_State *L, int idx, lua_Integer i, double *out)
{
    if (lua_type(L, idx) == LUA_TNIL)
        return false;
    bool some = lua_rawgeti(L, idx, i) == LUA_TNUMBER;
    *out = some ? lua_tonumber(L, -1) : 0;
    lua_pop(L, 1);
    return some;
}

/* Rounded down; what no int64 holds is cut, and NaN is 0. */
static int64_t whole(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)floor(x) : x > 0 ? INT64_MAX : x < 0 ? INT64_MIN : 0;
}

static bool is_prod(lua_State *L, int idx, lua_Integer p)
{
    const char *class = lua_rawgeti(L, idx, p) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    bool yes = class[0] == 'p' && !strcmp(class, "prod");
    lua_pop(L, 1);
    return yes;
}

static double held(lua_State *L, int holds, int memory, lua_Integer p)
{
    double x;
    return some_at(L, holds, p, &x) ? x : number_at(L, memory, p) * HELD;
}

/* What pod p uses by its app's curve, its own share and chance. */
static double by_curve(lua_State *L, lua_Integer p, double noise)
{
    lua_rawgeti(L, U_APP, p);
    if (lua_rawget(L, U_CURVES) == LUA_TNIL) { /* the first one of the app at this moment */
        lua_rawgeti(L, U_APP, p);
        lua_gettable(L, U_CURVES);
    }
    double curve = lua_tonumber(L, -1);
    lua_settop(L, U_JOBS);
    double share = curve * number_at(L, U_FACTOR, p)
        + noise
            * kl_dice_normal(
                (uint64_t)(lua_tointeger(L, U_SEED) + p), (uint64_t)lua_tointeger(L, U_SLOT), QUESTION_NOISE);
    return number_at(L, U_CPU, p) * (share > 0.01 ? share : 0.01);
}

/* core.prod_use(pods, class, placed, used, cpu, memory, app, factor, told, holds, curves, time, minute,
 * start time, noise, seed, memory of the system): what the prod pods of the list use, their memory with the
 * system's, and the list of its other pods or nil. `used` gets the use of each prod pod. told, holds: of
 * pods whose use and memory a trace has; each may be nil. curves: the share of their requests that pods of an
 * app use. */
static int prod_use(lua_State *L)
{
    for (int i = U_PODS; i <= U_CURVES; i++)
        if ((i != U_TOLD && i != U_HOLDS) || !lua_isnil(L, i))
            luaL_checktype(L, i, LUA_TTABLE);
    for (int i = U_TIME; i <= U_SYSTEM; i++)
        luaL_checktype(L, i, LUA_TNUMBER);
    lua_settop(L, U_SYSTEM);
    lua_pushnil(L); /* U_JOBS */
    luaL_checkstack(L, 4, "a node's pods");
    double time = lua_tonumber(L, U_TIME), start = lua_tonumber(L, U_START), noise = lua_tonumber(L, U_NOISE),
           memory = lua_tonumber(L, U_SYSTEM), used = 0;
    lua_Integer jobs = 0;
    for (lua_Integer k = 1, n = (lua_Integer)lua_rawlen(L, U_PODS); k <= n; k++) {
        lua_rawgeti(L, U_PODS, k);
        lua_Integer p = lua_tointeger(L, -1);
        lua_pop(L, 1);
        if (!is_prod(L, U_CLASS, p)) {
            if (!jobs) {
                lua_newtable(L);
                lua_replace(L, U_JOBS);
            }
            lua_pushinteger(L, p);
            lua_rawseti(L, U_JOBS, ++jobs);
            continue;
        }
        if (time < number_at(L, U_PLACED, p) + start) {
            lua_pushinteger(L, 0);
            lua_rawseti(L, U_USED, p);
            continue;
        }
        double x;
        if (!some_at(L, U_TOLD, p, &x))
            x = by_curve(L, p, noise);
        lua_pushnumber(L, x);
        lua_rawseti(L, U_USED, p);
        used += x;
        memory += held(L, U_HOLDS, U_MEMORY, p);
    }
    lua_pushnumber(L, used);
    lua_pushnumber(L, memory);
    lua_pushvalue(L, U_JOBS);
    return 3;
}

/* --- reports ------------------------------------------------------------------------------ */

#define SMALL 2000
#define NODES_MAX (1 << 18) /* there is room for those in front of each */

typedef struct known { /* of a node's last report */
    const kl_value *meta, *pods;
    lua_Integer *p; /* of each of its pods: the row, and the memory */
    int64_t *bytes;
    size_t n;
} known;

struct lkl__reports {
    const kl_value *amounts, *usage, *pod, *node, *status, *root; /* objects, for their keys */
    const kl_value *version, *kind, *spec;
    const kl_value *small[SMALL]; /* texts of so many thousandths of cpu; NULL: none yet */
    known *nodes;
    size_t n;
};

static void known_fini(known *k)
{
    kl_value_unref(k->meta);
    kl_value_unref(k->pods);
    kl_free(k->p);
    kl_free(k->bytes);
    *k = (known){0};
}

/* An object with these keys: its values do not matter. */
static const kl_value *keys(const char *const *names)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (; *names; names++)
        kl_build_kstr(b, *names, "");
    kl_build_end(b);
    return kl_builder_done(b);
}
#define KEYS(...) keys((const char *const[]){__VA_ARGS__, NULL})

lkl__reports *lkl__reports_new(void)
{
    lkl__reports *r = kl_new(lkl__reports);
    r->amounts = KEYS("cpu", "memory");
    r->usage = KEYS("resources");
    r->pod = KEYS("namespace", "name", "podUsage");
    r->node = KEYS("nodeUsage", "systemUsage");
    r->status = KEYS("updateTime", "nodeMetric", "podsMetric");
    r->root = KEYS("kind", "apiVersion", "metadata", "spec", "status");
    r->version = kl_value_of_str("slo.koordinator.sh/v1alpha1");
    r->kind = kl_value_of_str("NodeMetric");
    r->spec = kl_value_empty(KL_OBJECT);
    return r;
}

void lkl__reports_free(lkl__reports *r)
{
    if (!r)
        return;
    const kl_value *all[] = {
        r->amounts, r->usage, r->pod, r->node, r->status, r->root, r->version, r->kind, r->spec};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        kl_value_unref(all[i]);
    for (size_t i = 0; i < SMALL; i++)
        kl_value_unref(r->small[i]);
    for (size_t i = 0; i < r->n; i++)
        known_fini(&r->nodes[i]);
    kl_free(r->nodes);
    kl_free(r);
}

/* A number's digits and the unit behind them: what snprintf would do, at a fraction of its cost. */
static const kl_value *amount(int64_t n, const char *unit)
{
    char text[24], *end = text + sizeof text, *p = end - strlen(unit);
    memcpy(p, unit, strlen(unit));
    uint64_t left = n < 0 ? -(uint64_t)n : (uint64_t)n;
    do
        *--p = (char)('0' + left % 10);
    while (left /= 10);
    if (n < 0)
        *--p = '-';
    return kl_value_of_strn(p, (size_t)(end - p));
}

/* The text of an amount of cpu. Small ones recur in each report. */
static const kl_value *cpu_text(lkl__reports *r, int64_t milli)
{
    if (milli < 0 || milli >= SMALL)
        return amount(milli, "m");
    if (!r->small[milli])
        r->small[milli] = amount(milli, "m");
    return kl_value_ref(r->small[milli]);
}

/* { resources: { cpu, memory } }; takes over both. */
static const kl_value *usage(const lkl__reports *r, const kl_value *cpu, const kl_value *memory)
{
    const kl_value *amounts = kl_value_like(r->amounts, (const kl_value *const[]){cpu, memory});
    return kl_value_like(r->usage, &amounts);
}

static const kl_value *nth(const kl_value *object, size_t i)
{
    const char *key;
    size_t n;
    return kl_value_member(object, i, &key, &n);
}

static const kl_value *text_at(lua_State *L, int idx, lua_Integer i)
{
    size_t n = 0;
    const char *text = lua_rawgeti(L, idx, i) == LUA_TSTRING ? lua_tolstring(L, -1, &n) : "";
    const kl_value *v = kl_value_of_strn(text, n);
    lua_pop(L, 1);
    return v;
}

/* Arguments of s:report. */
enum {
    R_AT = 2,
    R_NODE,
    R_CREATED,
    R_UPDATED,
    R_AMOUNTS,
    R_PODS,
    R_NAMESPACES,
    R_NAMES,
    R_CLASS,
    R_MEMORY,
    R_HOLDS,
    R_SUMS,
    R_COUNT
};

static known *known_at(lkl__reports *r, size_t i, const char *node, const char *created)
{
    if (i >= r->n) {
        size_t n = 2 * i + 16;
        r->nodes = kl_realloc(r->nodes, n * sizeof *r->nodes);
        memset(r->nodes + r->n, 0, (n - r->n) * sizeof *r->nodes);
        r->n = n;
    }
    known *k = &r->nodes[i];
    if (!k->meta || strcmp(kl_value_str_at(k->meta, "name", NULL), node) != 0
        || strcmp(kl_value_str_at(k->meta, "creationTimestamp", NULL), created) != 0) {
        known_fini(k);
        char *uid = kl_sprintf("metric-%s", node);
        kl_builder *b = kl_builder_new();
        kl_build_object(b);
        kl_build_kstr(b, "name", node);
        kl_build_kstr(b, "uid", uid);
        kl_build_kstr(b, "creationTimestamp", created);
        kl_build_end(b);
        k->meta = kl_builder_done(b);
        kl_free(uid);
    }
    return k;
}

/* The place of pod p in the last report, from `at` on, where it is unless pods came; k->n: nowhere. */
static size_t place_of(const known *k, lua_Integer p, size_t at)
{
    while (at < k->n && k->p[at] != p)
        at++;
    return at;
}

/* The memory of pod p; without a trace it is always the same. */
static int64_t bytes_of(lua_State *L, lua_Integer p)
{
    return whole(is_prod(L, R_CLASS, p) ? held(L, R_HOLDS, R_MEMORY, p) : number_at(L, R_MEMORY, p));
}

/* The report's pods; what is known of the node's last report becomes that of this one. */
static const kl_value *pods_of(lua_State *L, lkl__reports *r, known *k, const kl_sums *sums)
{
    size_t n = lua_rawlen(L, R_PODS), at = 0;
    double count = lua_tonumber(L, R_COUNT);
    bool told = !lua_isnil(L, R_HOLDS);
    known now = {.p = kl_new_array(lua_Integer, n), .bytes = kl_new_array(int64_t, n), .n = n};
    kl_builder *b = kl_builder_new(); /* nothing raises while it is there: all reads are raw */
    kl_build_array(b);
    for (size_t i = 0; i < n; i++) {
        lua_Integer p = now.p[i] = whole(number_at(L, R_PODS, (lua_Integer)i + 1));
        size_t place = place_of(k, p, at);
        const kl_value *last = place < k->n ? kl_value_item(k->pods, place) : NULL, *memory = NULL;
        int64_t bytes = now.bytes[i] = last && !told ? k->bytes[place] : bytes_of(L, p);
        const kl_value *cpu = cpu_text(r, whole(kl_sums_get(sums, (size_t)p - 1) / count)), *pod;
        if (last && k->bytes[place] == bytes)
            memory = nth(nth(nth(last, 2), 0), 1);
        if (memory && nth(nth(nth(last, 2), 0), 0) == cpu) { /* a job mostly uses what it used */
            pod = kl_value_ref(last);
            kl_value_unref(cpu);
        } else {
            const kl_value *parts[] = {last ? kl_value_ref(nth(last, 0)) : text_at(L, R_NAMESPACES, p),
                last ? kl_value_ref(nth(last, 1)) : text_at(L, R_NAMES, p),
                usage(r, cpu, memory ? kl_value_ref(memory) : amount(bytes, ""))};
            pod = kl_value_like(r->pod, parts);
        }
        kl_build_value(b, pod);
        kl_value_unref(pod);
        at = last ? place + 1 : at;
    }
    kl_build_end(b);
    now.meta = kl_value_ref(k->meta);
    now.pods = kl_builder_done(b);
    known_fini(k);
    *k = now;
    return kl_value_ref(now.pods);
}

const kl_value *lkl__report(lua_State *L, lkl__reports *r)
{
    lua_Integer at = luaL_checkinteger(L, R_AT);
    luaL_argcheck(L, at >= 1 && at <= NODES_MAX, R_AT, "expected the place of a node");
    const char *node = luaL_checkstring(L, R_NODE);
    const char *created = luaL_checkstring(L, R_CREATED), *updated = luaL_checkstring(L, R_UPDATED);
    for (int i = R_AMOUNTS; i <= R_HOLDS; i++)
        if (i != R_HOLDS || !lua_isnil(L, i))
            luaL_checktype(L, i, LUA_TTABLE);
    const kl_sums *sums = lkl_box_check(L, R_SUMS, &lkl__sums_class);
    luaL_checknumber(L, R_COUNT);
    luaL_checkstack(L, 4, "a report");
    known *k = known_at(r, (size_t)at - 1, node, created);
    int64_t amounts[4];
    for (int i = 0; i < 4; i++)
        amounts[i] = whole(number_at(L, R_AMOUNTS, i + 1));
    const kl_value *of_node = kl_value_like(r->node,
        (const kl_value *const[]){usage(r, cpu_text(r, amounts[0]), amount(amounts[1], "")),
            usage(r, cpu_text(r, amounts[2]), amount(amounts[3], ""))});
    const kl_value *status = kl_value_like(
        r->status, (const kl_value *const[]){kl_value_of_str(updated), of_node, pods_of(L, r, k, sums)});
    return kl_value_like(r->root,
        (const kl_value *const[]){kl_value_ref(r->kind), kl_value_ref(r->version), kl_value_ref(k->meta),
            kl_value_ref(r->spec), status});
}

void lkl__open_nodes(lua_State *L)
{
    static const luaL_Reg functions[] = {{"prod_use", prod_use}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
