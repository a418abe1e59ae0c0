/* lgpus.c - core/sim/gpus.h for Lua: nodes with GPUs, and policies that score them. */
#include <math.h>

#include "base/mem.h"
#include "sim/gpus.h"
#include "state/border.h"

typedef struct lkl_gpus {
    kl_gpus *gpus;
    bool ready;
} lkl_gpus;

static void gpus_free(void *p)
{
    lkl_gpus *g = p;
    kl_gpus_free(g->gpus);
    kl_free(g);
}

extern const lkl_class lkl__gpus_class;
static lkl_gpus *self(lua_State *L) { return lkl_box_check(L, 1, &lkl__gpus_class); }

/* core.gpus(choice): "fewest" or "least", how a GPU is chosen for a part (sim/gpus.h) */
static int new_gpus(lua_State *L)
{
    static const char *const names[] = {"fewest", "least", NULL};
    static const kl_gpu_choice choices[] = {KL_GPU_FEWEST, KL_GPU_LEAST};
    kl_gpu_choice choice = choices[luaL_checkoption(L, 1, NULL, names)];
    lkl_box *box = lkl_box_new(L, &lkl__gpus_class, 0);
    lkl_gpus *g = box->ptr = kl_new(lkl_gpus);
    g->gpus = kl_gpus_new(choice);
    return 1;
}

/* The object before its first pod; raises afterwards. */
static kl_gpus *open_self(lua_State *L)
{
    lkl_gpus *g = self(L);
    luaL_argcheck(L, !g->ready, 1, "it has pods already");
    return g->gpus;
}

static size_t gpus_at(lua_State *L, int idx)
{
    lua_Integer n = luaL_checkinteger(L, idx);
    luaL_argcheck(L, n >= 0 && n <= KL_GPUS_MAX, idx, "a node has at most 16 GPUs");
    return (size_t)n;
}

/* g:node(cpu, memory, gpus, model): model is one bit */
static int node(lua_State *L)
{
    kl_gpus *g = open_self(L);
    kl_gpus_add_node(g, luaL_checkinteger(L, 2), luaL_checkinteger(L, 3), gpus_at(L, 4),
        (uint64_t)luaL_checkinteger(L, 5));
    return 0;
}

/* g:kind(cpu, memory, gpus, thousandths of each, models, share of all pods): its number */
static int kind(lua_State *L)
{
    kl_gpus *g = open_self(L);
    kl_gpu_kind k = {.cpu = luaL_checkinteger(L, 2),
        .memory = luaL_checkinteger(L, 3),
        .n = gpus_at(L, 4),
        .models = (uint64_t)luaL_checkinteger(L, 6),
        .share = luaL_checknumber(L, 7)};
    lua_Integer milli = luaL_checkinteger(L, 5);
    luaL_argcheck(L, milli >= 0 && milli <= KL_GPU, 5, "a GPU has 1000 thousandths");
    luaL_argcheck(L, milli == KL_GPU || k.n < 2, 5, "a part is of one GPU");
    k.milli = (int)milli;
    kl_gpus_add_kind(g, &k);
    lua_pushinteger(L, (lua_Integer)kl_gpus_kinds(g));
    return 1;
}

static kl_gpus *ready_self(lua_State *L)
{
    lkl_gpus *g = self(L);
    if (!g->ready) {
        kl_gpus_ready(g->gpus);
        g->ready = true;
    }
    return g->gpus;
}

static size_t kind_at(lua_State *L, const kl_gpus *g, int idx)
{
    lua_Integer k = luaL_checkinteger(L, idx);
    luaL_argcheck(
        L, k >= 1 && (size_t)k <= kl_gpus_kinds(g), idx, "the trace has no GPU kind of this number");
    return (size_t)k - 1;
}

/* Calls the policy at idx about a fit; the lower the score, the better. */
static double scored(lua_State *L, int idx, const kl_gpus *g, size_t i, size_t k, const kl_gpu_fit *fit)
{
    const kl_gpu_node *n = kl_gpus_node(g, i);
    const kl_gpu_kind *of = kl_gpus_kind(g, k);
    lua_pushvalue(L, idx);
    lua_pushnumber(L, fit->fragments);
    lua_pushnumber(L, fit->after);
    lua_pushnumber(L, (double)n->cpu_left / (double)(n->cpu > 0 ? n->cpu : 1));
    lua_pushnumber(L, n->n ? (double)fit->gpu_left / KL_GPU / (double)n->n : 0);
    lua_pushnumber(L, (double)of->cpu / (double)(n->cpu > 0 ? n->cpu : 1));
    lua_pushnumber(L, n->n ? (double)of->n * of->milli / KL_GPU / (double)n->n : 0);
    lua_pushnumber(L, (double)fit->gpu_left / KL_GPU);
    lua_pushinteger(L, fit->alike);
    lua_call(L, 8, 1);
    int is_number;
    double score = lua_tonumberx(L, -1, &is_number);
    if (!is_number)
        return luaL_error(L, "a placement policy must return a number, got %s", luaL_typename(L, -1));
    lua_pop(L, 1);
    return score;
}

/* g:put(kind, policy, share or nil): puts a pod on the node with the lowest score, or, with a share (0 to 1),
 * on any that fits; whether it found one. The policy is a function(fragments, fragments after, free share of
 * cpu, of GPUs, the pod's share of the node's cpu, of its GPUs, free GPUs, pods that ask for the same GPUs).
 */
static int put(lua_State *L)
{
    kl_gpus *g = ready_self(L);
    size_t k = kind_at(L, g, 2), i;
    luaL_checktype(L, 3, LUA_TFUNCTION);
    while (kl_gpus_stale(g, k, &i)) {
        kl_gpu_fit fit;
        kl_gpus_score(g, k, i, kl_gpus_fit(g, i, k, &fit) ? scored(L, 3, g, i, k, &fit) : (double)NAN);
    }
    bool found = lua_isnoneornil(L, 4) ? kl_gpus_best(g, k, &i)
                                       : kl_gpus_any(g, k, luaL_checknumber(L, 4), &i);
    if (found)
        kl_gpus_place(g, i, k);
    lua_pushboolean(L, found);
    return 1;
}

/* g:sums(): GPUs in all, free GPUs, and free ones that are fragments */
static int sums(lua_State *L)
{
    const kl_gpus *g = ready_self(L);
    double all = 0, left = 0, fragments = 0;
    for (size_t i = 0; i < kl_gpus_nodes(g); i++) {
        const kl_gpu_node *n = kl_gpus_node(g, i);
        all += (double)n->n;
        for (size_t j = 0; j < n->n; j++)
            left += n->left[j];
        fragments += kl_gpus_fragments(g, i);
    }
    lua_pushnumber(L, all);
    lua_pushnumber(L, left / KL_GPU);
    lua_pushnumber(L, fragments / KL_GPU);
    return 3;
}

static const luaL_Reg methods[] = {
    {"node", node}, {"kind", kind}, {"put", put}, {"sums", sums}, {NULL, NULL}};
const lkl_class lkl__gpus_class = {"kubelua.gpus", gpus_free, methods, NULL};

void lkl__open_gpus(lua_State *L)
{
    static const luaL_Reg functions[] = {{"gpus", new_gpus}, {NULL, NULL}};
    luaL_setfuncs(L, functions, 0);
}
