/* catalog.h - a server's discovery documents as one table: its resources, its groups, and the groups whose
 * discovery failed. Made once, then only read.
 *
 * Resources belong to a pool and live as long as it, so pointers stay valid; a later catalog in which a kind
 * has not changed has the same pointer. */
#ifndef KL_CLIENT_CATALOG_H
#define KL_CLIENT_CATALOG_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/map.h"
#include "model/resource.h"
#include "value/value.h"

/* All resources ever handed out. Owner thread. */
typedef struct kl__pool {
    kl_resource **all;
    size_t n, cap;
} kl__pool;
void kl__pool_fini(kl__pool *p);

typedef struct kl__catalog {
    kl__pool *pool;
    const struct kl__catalog *old; /* while it is made: the previous catalog, or NULL */
    kl_time made;                  /* when it was begun, monotonic */
    /* read from another process's disk cache: missing kinds are dropped at once */
    bool remembered;
    /* "group|version|Kind" -> kl_time *: when the kind was first missing; it is kept for a second */
    kl_map *missed;
    kl_map *found;  /* "group|version|Kind" -> const kl_resource * (borrowed) */
    kl_map *groups; /* group -> NULL */
    kl_map *failed; /* "group|version" -> message (char *) */
    /* word -> const kl_resource *: answers of kl__catalog_word, filled as they are given */
    kl_map *asked;
    /* core first, preferred versions first, failed groups last (borrowed) */
    kl_resource **order;
    size_t n, cap;
    size_t left_out; /* resources that no script could name, or beyond the limit of a catalog */
} kl__catalog;

/* --- making ------------------------------------------------------------------------------- */
kl__catalog *kl__catalog_new(kl__pool *pool, const kl__catalog *old, kl_time now);
void kl__catalog_free(kl__catalog *c);
bool kl__is_aggregated(const kl_value *document);
/* An APIGroupDiscoveryList. Versions that it reports as stale count as failed. */
void kl__catalog_aggregated(kl__catalog *c, const kl_value *document);
/* An APIResourceList of one group and version. */
void kl__catalog_list(kl__catalog *c, const char *group, const char *version, const kl_value *list);
/* Whether a server's name of a group or a version is valid: short, and harmless in a path. */
bool kl__catalog_names(const char *name);
void kl__catalog_group(kl__catalog *c, const char *group);
/* Discovery of a group failed; kl__catalog_done logs it once. When all groups fail, nothing is logged and the
 * error tells. */
void kl__catalog_fail(kl__catalog *c, const char *group, const char *version, const char *why);
/* Whether the catalog has kinds of the core group. c may be NULL. */
bool kl__catalog_knows_core(const kl__catalog *c);
/* Copies the core group, or all others, from the old catalog: the document did not change. */
void kl__catalog_carry(kl__catalog *c, bool core);
/* The last step; afterwards names can be looked up. A group that failed keeps its entries of the old catalog;
 * so does one that is missing for the first time, or for less than a second. `old` may be freed then. */
void kl__catalog_done(kl__catalog *c);

/* --- reading ------------------------------------------------------------------------------ */
/* Finds "apps/v1/Deployment", "apps/Deployment" and "Deployment", and kubectl's words: "deployments",
 * "deployment", "deploy", "deployments.apps", "deployments.v1.apps", "apps/v1/deployments". c may be NULL:
 * nothing is known. KL_ENOTFOUND names similar kinds, KL_EINVAL names the groups of an ambiguous word,
 * KL_ESERVER when discovery of its group failed. */
KL_NODISCARD kl_status kl__catalog_find(
    const kl__catalog *c, const char *word, const kl_resource **out, kl_err *err);
/* The same without a message. It remembers words, so call it under the owner's lock. NULL: unknown or
 * ambiguous. */
const kl_resource *kl__catalog_word(kl__catalog *c, const char *word);
/* Appends "; did you mean ...?" with the kinds that an unknown word is near to, or nothing. */
void kl__catalog_near(const kl__catalog *c, const char *word, kl_buf *out);
/* Whether a word, of the forms above, is a name of r. */
bool kl__resource_has_name(const kl_resource *r, const char *word);
/* Whether a bare name of r (its plural, say) resolves to r: its group prefers that version. */
bool kl__catalog_preferred(const kl__catalog *c, const kl_resource *r);
/* KL_EINVAL for text that cannot name a kind; the message shows the valid forms. */
KL_NODISCARD kl_status kl__word_check(const char *word, kl_err *err);

#endif
