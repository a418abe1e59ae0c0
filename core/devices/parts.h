/* parts.h - what the files of this room share. Private to core/devices. Pure; any thread. */
#ifndef KL_DEVICES_PARTS_H
#define KL_DEVICES_PARTS_H

#include "base/map.h"
#include "builtin/builtin.h"
#include "check/check.h"

/* The complaints, and the names of a claim's requests: "a", and "a/b" for an alternative b of a. */
typedef struct kl__claim_look {
    kl__causes *c;
    kl_map *names;
} kl__claim_look;
void kl__claim_look_init(kl__claim_look *look, kl__causes *c, const kl_value *devices);
void kl__claim_look_fini(kl__claim_look *look);

typedef void kl__item_check(const kl__claim_look *look, const kl_value *item, const kl__place *at);
/* Checks each item, and that there are at most `most` items; 0: any number. */
void kl__check_items(const kl__claim_look *look, const kl_value *list, unsigned most, kl__item_check *check,
    const kl__place *at);
/* The same, and that no two items are equal in the member `key` (NULL: as a whole). */
void kl__check_set(const kl__claim_look *look, const kl_value *list, unsigned most, const char *key,
    kl__item_check *check, const kl__place *at);

/* A list of names of requests. */
void kl__check_request_refs(const kl__claim_look *look, const kl_value *list, const kl__place *at);
void kl__check_request_ref(const kl__claim_look *look, const char *name, const kl__place *at);
void kl__check_pool_name(kl__causes *c, const char *name, const kl__place *at);
/* "id", or "domain/id" */
void kl__check_qualified_id(kl__causes *c, const char *name, const kl__place *at);
void kl__check_device_config(kl__causes *c, const kl_value *config, const kl__place *at);
/* A member that holds JSON for a driver, of at most `most` bytes. */
void kl__check_raw(kl__causes *c, const kl_value *o, const char *member, unsigned most, const kl__place *at);
/* A DeviceSelector; see selector.c. */
void kl__check_device_selectors(kl__causes *c, const kl_value *list, const kl__place *at);

/* An empty finder of devices by driver, pool and name. */
kl_finder kl__device_ids(void);
void kl__check_claim_status(const kl__write *w, const kl_value *ns);
void kl__check_resource_slice(const kl__write *w);
/* adminAccess, which gives a device to a claim beside its users, needs a label of the Namespace `ns`. `list`
 * holds requests or results, each with the flag in its member `inner` (NULL: in the item itself). */
void kl__check_admin(
    kl__causes *c, const kl_value *list, const char *inner, const kl_value *ns, const kl__place *at);

#define KL_TOLERATIONS_AS_GO "Tolerations[Key Operator Value Effect TolerationSeconds?]"
#define KL_OPAQUE_AS_GO "Opaque?{Driver Parameters?}"

#endif
