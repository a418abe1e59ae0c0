/* storage.h - checks of claims, including those that StatefulSets create from templates, and of volumes.
 * Pure; any thread. */
#ifndef KL_BUILTIN_STORAGE_H
#define KL_BUILTIN_STORAGE_H

#include "check/check.h"

void kl__check_access_modes(kl__causes *c, const kl_value *spec, const kl__place *at);
/* A present quantity must be positive; `at` is its place. */
void kl__check_size(kl__causes *c, const kl_value *size, const kl__place *at);
/* Below 0, 0 or above 0, as strcmp. NULL counts as size 0; a text that is not a quantity equals every
 * size. */
int kl__compare_sizes(const kl_value *a, const kl_value *b);
/* Sources of volumes, in pods and in PersistentVolumes (volumes.c). */
void kl__check_host_path(kl__causes *c, const kl_value *v, const kl__place *at);
void kl__check_nfs(kl__causes *c, const kl_value *v, const kl__place *at);
/* The name of a driver, of CSI or of devices: it may have capital letters (persistent.c). */
void kl__check_driver(kl__causes *c, const char *name, const kl__place *at);
/* A PersistentVolumeClaimSpec. */
void kl__check_claim_spec(kl__causes *c, const kl_value *spec, const kl__place *at);

#endif
