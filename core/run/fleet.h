/* fleet.h - several clusters in one process: a manager for each, and the way from a run in one to the API
 * server of another.
 *
 * Made before the managers, freed after the last of them. One thread adds the clusters before anything runs;
 * any thread may read. A write to another cluster passes that cluster's door, under the mandate of the run:
 * the right to work on a key here includes its writes there. All managers of a fleet stop before the first is
 * freed. */
#ifndef KL_RUN_FLEET_H
#define KL_RUN_FLEET_H

#include "client/client.h"
#include "election/door.h"

typedef struct kl_fleet kl_fleet;

#define KL_FLEET_NONE ((size_t)-1)

kl_fleet *kl_fleet_new(void);
void kl_fleet_free(kl_fleet *f);
/* Adds a cluster; *number is its index. The client is borrowed; names are unique (KL_EEXISTS). */
KL_NODISCARD kl_status kl_fleet_add(
    kl_fleet *f, const char *name, kl_client *client, size_t *number, kl_err *err);
struct kl_manager;
/* called by each manager before anything runs */
void kl_fleet_join(kl_fleet *f, size_t number, struct kl_manager *m, kl_door *door);

/* NULL reads as an empty fleet. */
size_t kl_fleet_size(const kl_fleet *f);
const char *kl_fleet_name(const kl_fleet *f, size_t number);
kl_client *kl_fleet_client(const kl_fleet *f, size_t number);
kl_door *kl_fleet_door(const kl_fleet *f, size_t number);
struct kl_manager *kl_fleet_manager(const kl_fleet *f, size_t number);

/* The metrics of its managers as one text: the samples of a family are grouped, each with the label
 * `cluster`; families of the process ("process_...") come only from the first manager. texts in the order of
 * the clusters. Caller frees. */
char *kl_fleet_metrics(const kl_fleet *f, const char *const *texts);

#endif
