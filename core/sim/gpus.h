/* gpus.h - nodes with GPUs that are given out whole or in thousandths, and how much of the free part is a
 * fragment (the measure of "Beware of Fragmentation", USENIX ATC 2023).
 *
 *   new -> node, kind (each pod is of a kind) -> ready -> (refresh -> best -> place)*
 *
 * Scores are the caller's: for each kind and node one, which is asked for again when the node has changed.
 * Owned by the caller; no function fails or waits. One thread at a time. */
#ifndef KL_SIM_GPUS_H
#define KL_SIM_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_GPU = 1000, KL_GPUS_MAX = 16 }; /* thousandths of a GPU; GPUs of a node */

typedef struct kl_gpu_node {
    int64_t cpu, memory; /* in all: milli-cores, MiB */
    int64_t cpu_left, memory_left;
    uint64_t model; /* one bit, or 0 without GPUs */
    size_t n;
    int16_t left[KL_GPUS_MAX]; /* of each GPU */
} kl_gpu_node;

typedef struct kl_gpu_kind {
    int64_t cpu, memory;
    uint64_t models; /* those that will do; 0: all */
    size_t n;        /* GPUs; 0: none */
    int milli;       /* of each: KL_GPU, or less of a single one */
    double share;    /* of all pods: its weight in the measure */
} kl_gpu_kind;

/* How a node serves a kind. */
typedef struct kl_gpu_fit {
    double fragments, after; /* of the node, in thousandths: now, and with the pod */
    int64_t gpu_left;        /* of all GPUs of the node, in thousandths */
    uint32_t alike;          /* pods on the node that ask for the same GPUs */
    size_t gpu;              /* the GPU that a part is taken from */
} kl_gpu_fit;

/* How a GPU is chosen for a part: the one that leaves the fewest fragments, or the one with the least left.
 */
typedef enum kl_gpu_choice { KL_GPU_FEWEST, KL_GPU_LEAST } kl_gpu_choice;

typedef struct kl_gpus kl_gpus;

kl_gpus *kl_gpus_new(kl_gpu_choice choice);
void kl_gpus_free(kl_gpus *g);
void kl_gpus_add_node(kl_gpus *g, int64_t cpu, int64_t memory, size_t gpus, uint64_t model);
void kl_gpus_add_kind(kl_gpus *g, const kl_gpu_kind *kind);
void kl_gpus_ready(kl_gpus *g); /* all nodes and kinds were added */
size_t kl_gpus_nodes(const kl_gpus *g);
size_t kl_gpus_kinds(const kl_gpus *g);
const kl_gpu_node *kl_gpus_node(const kl_gpus *g, size_t i);
const kl_gpu_kind *kl_gpus_kind(const kl_gpus *g, size_t kind);

/* The thousandths of GPUs of node i that pods of the kinds could not use, as a mean over the kinds: all that
 * is left for kinds that do not fit or ask for no GPU; otherwise what is left of GPUs with less than the kind
 * asks for. Memory does not count. */
double kl_gpus_fragments(const kl_gpus *g, size_t i);
/* False: the kind does not fit on node i. */
bool kl_gpus_fit(const kl_gpus *g, size_t i, size_t kind, kl_gpu_fit *out);

/* The next node whose score for the kind is unknown; false: none is. Answer with kl_gpus_score before the
 * next call. */
bool kl_gpus_stale(kl_gpus *g, size_t kind, size_t *node);
void kl_gpus_score(kl_gpus *g, size_t kind, size_t node, double score); /* NAN: it does not fit */
/* The node with the lowest score for the kind, the first of equals; false: it fits nowhere. */
bool kl_gpus_best(const kl_gpus *g, size_t kind, size_t *node);
/* Of the nodes that fit, the one at this share (0 to 1) of their number. */
bool kl_gpus_any(const kl_gpus *g, size_t kind, double share, size_t *node);
/* Puts a pod on node i, on which its kind fits. */
void kl_gpus_place(kl_gpus *g, size_t i, size_t kind);

#endif
