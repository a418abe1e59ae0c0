/* gpus.c - nodes with GPUs, fragments, and scores that are kept until a node changes.
 *
 * Fragments are asked for at each possible placement, so kinds with the same number and part of GPUs are one
 * group, sorted by cpu, with the sum of their shares up to each: a node's fragments take one search a group
 * and not one test a kind. */
#include "sim/gpus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

typedef struct group { /* kinds that differ in cpu and memory alone */
    uint64_t models;
    size_t n;
    int milli;
    size_t len;
    int64_t *cpu;   /* rising */
    double *shares; /* of the kinds up to this one */
} group;

struct kl_gpus {
    kl_gpu_choice choice;
    kl_gpu_node *nodes;
    kl_gpu_kind *kinds;
    size_t n_nodes, n_kinds;
    group *groups;
    size_t n_groups;
    double all;      /* the sum of all shares */
    double *scores;  /* scores[kind * n_nodes + node]; NAN: the kind does not fit */
    size_t *changes; /* nodes that got a pod, in order, behind each node once */
    size_t n_changes, cap_changes;
    size_t *last;     /* of each node: the place of its last change */
    size_t *seen;     /* of each kind: how many of the changes its scores know */
    size_t *group_of; /* of each kind; n_groups: it asks for no GPU */
    uint32_t *alike;  /* alike[node * n_groups + group]: pods of the group on the node */
};

kl_gpus *kl_gpus_new(kl_gpu_choice choice)
{
    kl_gpus *g = kl_new(kl_gpus);
    g->choice = choice;
    return g;
}

void kl_gpus_free(kl_gpus *g)
{
    if (!g)
        return;
    for (size_t i = 0; i < g->n_groups; i++) {
        kl_free(g->groups[i].cpu);
        kl_free(g->groups[i].shares);
    }
    kl_free(g->groups);
    kl_free(g->nodes);
    kl_free(g->kinds);
    kl_free(g->scores);
    kl_free(g->changes);
    kl_free(g->last);
    kl_free(g->seen);
    kl_free(g->group_of);
    kl_free(g->alike);
    kl_free(g);
}

size_t kl_gpus_nodes(const kl_gpus *g) { return g->n_nodes; }
size_t kl_gpus_kinds(const kl_gpus *g) { return g->n_kinds; }
const kl_gpu_node *kl_gpus_node(const kl_gpus *g, size_t i) { return &g->nodes[i]; }
const kl_gpu_kind *kl_gpus_kind(const kl_gpus *g, size_t kind) { return &g->kinds[kind]; }

void kl_gpus_add_node(kl_gpus *g, int64_t cpu, int64_t memory, size_t gpus, uint64_t model)
{
    kl_gpu_node n = {cpu, memory, cpu, memory, model, gpus < KL_GPUS_MAX ? gpus : KL_GPUS_MAX, {0}};
    for (size_t i = 0; i < n.n; i++)
        n.left[i] = KL_GPU;
    g->nodes = kl_realloc(g->nodes, (g->n_nodes + 1) * sizeof n);
    g->nodes[g->n_nodes++] = n;
}

void kl_gpus_add_kind(kl_gpus *g, const kl_gpu_kind *kind)
{
    g->kinds = kl_realloc(g->kinds, (g->n_kinds + 1) * sizeof *kind);
    g->kinds[g->n_kinds++] = *kind;
}

/* --- the measure -------------------------------------------------------------------------- */

static int by_cpu(const void *a, const void *b)
{
    const kl_gpu_kind *x = *(const kl_gpu_kind *const *)a, *y = *(const kl_gpu_kind *const *)b;
    return x->cpu < y->cpu ? -1 : x->cpu > y->cpu ? 1 : x < y ? -1 : x > y;
}

static group *group_of(kl_gpus *g, const kl_gpu_kind *k)
{
    for (size_t i = 0; i < g->n_groups; i++)
        if (g->groups[i].models == k->models && g->groups[i].n == k->n && g->groups[i].milli == k->milli)
            return &g->groups[i];
    g->groups = kl_realloc(g->groups, (g->n_groups + 1) * sizeof *g->groups);
    g->groups[g->n_groups] = (group){.models = k->models, .n = k->n, .milli = k->milli};
    return &g->groups[g->n_groups++];
}

static void make_groups(kl_gpus *g)
{
    g->group_of = kl_new_array(size_t, g->n_kinds);
    const kl_gpu_kind **sorted = kl_new_array(const kl_gpu_kind *, g->n_kinds);
    for (size_t i = 0; i < g->n_kinds; i++)
        sorted[i] = &g->kinds[i];
    if (g->n_kinds)
        qsort(sorted, g->n_kinds, sizeof *sorted, by_cpu);
    for (size_t i = 0; i < g->n_kinds; i++) {
        g->all += sorted[i]->share;
        if (!sorted[i]->n)
            continue;
        group *of = group_of(g, sorted[i]);
        of->cpu = kl_realloc(of->cpu, (of->len + 1) * sizeof *of->cpu);
        of->shares = kl_realloc(of->shares, (of->len + 1) * sizeof *of->shares);
        of->cpu[of->len] = sorted[i]->cpu;
        of->shares[of->len] = sorted[i]->share + (of->len ? of->shares[of->len - 1] : 0);
        of->len++;
        g->group_of[sorted[i] - g->kinds] = (size_t)(of - g->groups);
    }
    for (size_t i = 0; i < g->n_kinds; i++)
        if (!g->kinds[i].n)
            g->group_of[i] = g->n_groups;
    g->alike = kl_zalloc_array(g->n_groups * sizeof *g->alike, g->n_nodes);
    kl_free(sorted);
}

static void changed(kl_gpus *g, size_t node)
{
    if (g->n_changes == g->cap_changes) {
        g->cap_changes *= 2;
        g->changes = kl_realloc(g->changes, g->cap_changes * sizeof *g->changes);
    }
    g->last[node] = g->n_changes;
    g->changes[g->n_changes++] = node;
}

void kl_gpus_ready(kl_gpus *g)
{
    make_groups(g);
    g->scores = kl_zalloc_array(g->n_kinds * sizeof *g->scores, g->n_nodes);
    g->seen = kl_new_array(size_t, g->n_kinds);
    g->cap_changes = 2 * g->n_nodes + 1;
    g->changes = kl_new_array(size_t, g->cap_changes);
    g->last = kl_new_array(size_t, g->n_nodes);
    for (size_t i = 0; i < g->n_nodes; i++)
        changed(g, i); /* at the beginning every node is new */
}

static bool has_model(uint64_t models, const kl_gpu_node *n) { return !models || (models & n->model); }

/* The shares of the group's kinds that ask for at most this cpu. */
static double share_within(const group *of, int64_t cpu)
{
    size_t low = 0, high = of->len;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (of->cpu[mid] <= cpu)
            low = mid + 1;
        else
            high = mid;
    }
    return low ? of->shares[low - 1] : 0;
}

static double fragments(const kl_gpus *g, const kl_gpu_node *n)
{
    int64_t left = 0;
    for (size_t i = 0; i < n->n; i++)
        left += n->left[i];
    if (!left)
        return 0;
    double sum = 0, fit = 0;
    for (const group *of = g->groups; of < g->groups + g->n_groups; of++) {
        size_t enough = 0;
        int64_t low = 0;
        for (size_t i = 0; i < n->n; i++) {
            bool is = n->left[i] >= of->milli;
            enough += is;
            low += is ? 0 : n->left[i];
        }
        if (enough < of->n || !has_model(of->models, n))
            continue;
        double share = share_within(of, n->cpu_left);
        fit += share;
        sum += share * (double)low;
    }
    return sum + (g->all - fit) * (double)left;
}

double kl_gpus_fragments(const kl_gpus *g, size_t i) { return fragments(g, &g->nodes[i]); }

/* --- placement ---------------------------------------------------------------------------- */

/* Takes what the kind asks for; `gpu`: the first GPU that may be used. */
static void take(kl_gpu_node *n, const kl_gpu_kind *k, size_t gpu)
{
    n->cpu_left -= k->cpu;
    n->memory_left -= k->memory;
    for (size_t i = gpu, wanted = k->n; i < n->n && wanted; i++)
        if (n->left[i] >= k->milli) {
            n->left[i] = (int16_t)(n->left[i] - k->milli);
            wanted--;
        }
}

/* Chooses the GPU for a part, and the fragments that it leaves. */
static void choose(const kl_gpus *g, const kl_gpu_node *n, const kl_gpu_kind *k, kl_gpu_fit *out)
{
    bool found = false;
    for (size_t i = 0; i < n->n; i++) {
        bool again = false; /* GPUs with the same rest are the same */
        for (size_t j = 0; j < i && !again; j++)
            again = n->left[j] == n->left[i];
        if (again || n->left[i] < k->milli)
            continue;
        if (g->choice == KL_GPU_LEAST && found && n->left[i] >= n->left[out->gpu])
            continue;
        kl_gpu_node with = *n;
        take(&with, k, i);
        double after = fragments(g, &with);
        if (!found || g->choice == KL_GPU_LEAST || after < out->after) {
            out->gpu = i;
            out->after = after;
        }
        found = true;
    }
}

bool kl_gpus_fit(const kl_gpus *g, size_t i, size_t kind, kl_gpu_fit *out)
{
    const kl_gpu_node *n = &g->nodes[i];
    const kl_gpu_kind *k = &g->kinds[kind];
    size_t enough = 0;
    *out = (kl_gpu_fit){0};
    for (size_t j = 0; j < n->n; j++) {
        enough += n->left[j] >= k->milli;
        out->gpu_left += n->left[j];
    }
    if (n->cpu_left < k->cpu || n->memory_left < k->memory
        || (k->n && (enough < k->n || !has_model(k->models, n))))
        return false;
    out->alike = k->n ? g->alike[i * g->n_groups + g->group_of[kind]] : 0;
    out->fragments = fragments(g, n);
    if (k->n == 1 && k->milli < KL_GPU) {
        choose(g, n, k, out);
        return true;
    }
    kl_gpu_node with = *n;
    take(&with, k, 0);
    out->after = fragments(g, &with);
    return true;
}

/* --- scores ------------------------------------------------------------------------------- */

bool kl_gpus_stale(kl_gpus *g, size_t kind, size_t *node)
{
    while (g->seen[kind] < g->n_changes) {
        size_t place = g->seen[kind]++;
        *node = g->changes[place];
        if (g->last[*node] == place) /* otherwise it changed again, and comes later */
            return true;
    }
    return false;
}

void kl_gpus_score(kl_gpus *g, size_t kind, size_t node, double score)
{
    g->scores[kind * g->n_nodes + node] = score;
}

bool kl_gpus_best(const kl_gpus *g, size_t kind, size_t *node)
{
    const double *scores = g->scores + kind * g->n_nodes;
    bool found = false;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!isnan(scores[i]) && (!found || scores[i] < scores[*node])) {
            *node = i;
            found = true;
        }
    return found;
}

bool kl_gpus_any(const kl_gpus *g, size_t kind, double share, size_t *node)
{
    const double *scores = g->scores + kind * g->n_nodes;
    size_t n = 0;
    for (size_t i = 0; i < g->n_nodes; i++)
        n += !isnan(scores[i]);
    if (!n)
        return false;
    size_t wanted = (size_t)(share * (double)n);
    wanted = wanted < n ? wanted : n - 1;
    for (size_t i = 0; i < g->n_nodes; i++)
        if (!isnan(scores[i]) && !wanted--) {
            *node = i;
            break;
        }
    return true;
}

void kl_gpus_place(kl_gpus *g, size_t i, size_t kind)
{
    kl_gpu_fit fit;
    if (!kl_gpus_fit(g, i, kind, &fit))
        return;
    take(&g->nodes[i], &g->kinds[kind], fit.gpu);
    if (g->kinds[kind].n)
        g->alike[i * g->n_groups + g->group_of[kind]]++;
    changed(g, i);
}
