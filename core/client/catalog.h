/* catalog.h - what a server's discovery documents say, as one picture: its resources, the groups it has,
 * and those whose discovery failed. Made once, then only read. Inside net.
 *
 * Resources belong to a pool and live as long as it does, so a pointer once handed out stays good; a later
 * catalog that says the same of a kind has the same pointer. */
#ifndef KL_CLIENT_CATALOG_H
#define KL_CLIENT_CATALOG_H

#include "base/clock.h"
#include "base/map.h"
#include "model/resource.h"
#include "value/value.h"

/* Everything that was ever handed out. Owner thread. */
typedef struct kl__pool {
    kl_resource **all;
    size_t n, cap;
} kl__pool;
void kl__pool_fini(kl__pool *p);

typedef struct kl__catalog {
    kl__pool *pool;
    const struct kl__catalog *old; /* while it is made: the one before, or NULL */
    kl_time made;                  /* when it was begun, monotonic */
    /* of another process: what is not there any more is gone at once */
    bool remembered;
    /* "group|version|Kind" -> kl_time *: the server does not have it, first seen then; kept for now */
    kl_map *missed;
    kl_map *found;  /* "group|version|Kind" -> const kl_resource * (borrowed) */
    kl_map *groups; /* group -> NULL */
    kl_map *failed; /* "group|version" -> message (char *) */
    /* word -> const kl_resource *: answers of kl__catalog_word, filled as they are given */
    kl_map *asked;
    /* core first, preferred versions first, what failed last (borrowed) */
    kl_resource **order;
    size_t n, cap;
} kl__catalog;

/* --- making ------------------------------------------------------------------------------- */
kl__catalog *kl__catalog_new(kl__pool *pool, const kl__catalog *old, kl_time now);
void kl__catalog_free(kl__catalog *c);
bool kl__is_aggregated(const kl_value *document);
/* An APIGroupDiscoveryList. Versions it calls stale are noted as failed. */
void kl__catalog_aggregated(kl__catalog *c, const kl_value *document);
/* An APIResourceList of one group and version. */
void kl__catalog_list(kl__catalog *c, const char *group, const char *version, const kl_value *list);
void kl__catalog_group(kl__catalog *c, const char *group);
/* kl__catalog_done says it in the log, once as long as it stays so: when all of discovery fails, the
 * caller's error says it. */
void kl__catalog_fail(kl__catalog *c, const char *group, const char *version, const char *why);
/* Whether it has kinds of the core group. c may be NULL. */
bool kl__catalog_knows_core(const kl__catalog *c);
/* What the old catalog says of the core group, or of all others: its document did not change. */
void kl__catalog_carry(kl__catalog *c, bool core);
/* Last: names are looked up from here on. What failed keeps what the old catalog knew of it, and so does
 * what is missing for the first time, or since less than a second; `old` is not needed any more. */
void kl__catalog_done(kl__catalog *c);

/* --- reading ------------------------------------------------------------------------------ */
/* "apps/v1/Deployment", "apps/Deployment", "Deployment"; and in words of kubectl: "deployments",
 * "deployment", "deploy", "deployments.apps", "deployments.v1.apps", "apps/v1/deployments". c may be NULL:
 * nothing is known. KL_ENOTFOUND names what is near, KL_EINVAL for a word that several groups have names
 * them, KL_ESERVER when discovery of its group failed. */
KL_NODISCARD kl_status kl__catalog_find(
    const kl__catalog *c, const char *word, const kl_resource **out, kl_err *err);
/* The same without the story; remembers words, so under the lock of its owner. NULL: not there, or not
 * clear. */
const kl_resource *kl__catalog_word(kl__catalog *c, const char *word);
/* Whether a bare name of r (its plural, say) means r: the version that its group prefers. */
bool kl__catalog_preferred(const kl__catalog *c, const kl_resource *r);
/* KL_EINVAL for text that could not name a kind; the message says what could. */
KL_NODISCARD kl_status kl__word_check(const char *word, kl_err *err);

#endif
