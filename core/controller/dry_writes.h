/* dry_writes.h - runs whose writes are not sent: computes the result of a write, step by step.
 *
 *   the present object: the run's own writes -> the cache, where it has complete objects -> the server
 *   the result:         simulated (run/simulate.h), or (ask) the server's answer with dryRun=All
 *
 * Live reads go to the server, and show the run's own writes, too. Other clusters' objects are simulated
 * likewise, but not remembered. */
#ifndef KL_CONTROLLER_DRY_WRITES_H
#define KL_CONTROLLER_DRY_WRITES_H

#include "run/imagine.h"

/* For kl_imagination.ops. */
extern const kl_imagine_ops kl_dry_writes;

#endif
