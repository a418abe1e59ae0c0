/* durable.c - keeps memory and disk in step.
 *
 * A write changes memory under the lock; its answer waits for the disk without the lock. A watch may
 * therefore see a change one fsync before it is safe. If the process ends in between, the change is lost: its
 * version is in the gap between the last version on disk and the first one of the next process, and a watch
 * from there gets 410. A watch from a version on disk continues if the resource has no changes in the gap. */
#include "server/durable.h"

#include <string.h>

#include "archive/archive.h"
#include "base/log.h"
#include "base/mem.h"
#include "schema/status.h"
#include "verbs/collect.h"
#include "verbs/lifecycle.h"
#include "server/reply.h"
#include "owners/owners.h"

/* More versions than a process assigns before one reaches the disk; needed only if the clock was set back. */
#define LEAP 1000000

static bool is_definition(const char *group, const char *plural)
{
    return !strcmp(group, "apiextensions.k8s.io") && !strcmp(plural, "customresourcedefinitions");
}

static void undo(kl_server *s, const kl_archive_item *c)
{
    kl__bucket *b = kl__store_bucket(s->world.store, c->group, c->plural);
    if (c->old)
        kl__store_put(s->world.store, b, c->key, kl_value_ref(c->old));
    else
        kl_value_unref(kl__store_remove(s->world.store, b, c->key, NULL));
    if (!is_definition(c->group, c->plural))
        return;
    if (c->old)
        kl__crd_serve(&s->world, c->old);
    else
        kl__crd_unserve(&s->world, c->now);
}

/* Called on the archive's thread. */
static void failed(void *arg)
{
    kl_server *s = arg;
    kl_archive_lost lost;
    kl_lock(&s->mu);
    kl_archive_take_lost(s->archive, &lost);
    s->undoing = true;
    for (size_t i = lost.n; i-- > 0;)
        undo(s, &lost.v[i]);
    s->undoing = false;
    kl__collect_forget(&s->world);
    kl_unlock(&s->mu);
    kl_archive_free_lost(s->archive, &lost);
}

kl_status kl__durable_open(kl_server *s, const char *dir, uint64_t *birth, kl_err *err)
{
    kl_status st = kl_archive_open(
        &(kl_archive_options){.dir = dir, .failed = failed, .arg = s}, &s->archive, err);
    if (st)
        return st;
    uint64_t known = kl_archive_rv(s->archive);
    if (known && *birth < known + LEAP)
        *birth = known + LEAP;
    return KL_OK;
}

static kl_status restore_object(void *arg, const kl_archive_item *item, kl_err *err)
{
    (void)err;
    kl_server *s = arg;
    kl__bucket *b = kl__store_bucket(s->world.store, item->group, item->plural);
    kl__store_restore(b, item->key, kl_value_ref(item->now), item->rv);
    if (s->world.owners)
        kl__owners_change(
            s->world.owners, b, &(kl__change){.type = KL_ADDED, .key = (char *)item->key, .now = item->now});
    if (is_definition(item->group, item->plural))
        kl__crd_serve(&s->world, item->now);
    return KL_OK;
}

static void remember(void *arg, const kl_archive_item *item)
{
    kl_server *s = arg;
    kl__bucket *b = kl__store_bucket(s->world.store, item->group, item->plural);
    kl__store_remember(s->world.store, b, item->rv, kl_archive_rv(s->archive));
}

kl_status kl__durable_restore(kl_server *s, kl_err *err)
{
    if (!s->archive)
        return KL_OK;
    kl_status st = kl_archive_each(s->archive, restore_object, s, err);
    if (!st)
        st = kl_archive_resources(s->archive, remember, s, err);
    kl__collect_forget(&s->world);
    return st;
}

void kl__durable_close(kl_server *s)
{
    kl_archive_close(s->archive);
    s->archive = NULL;
}

void kl__durable_change(kl_server *s, const kl__bucket *b, const kl__change *c)
{
    if (!s->archive || s->undoing)
        return;
    kl_archive_add(s->archive,
        &(kl_archive_item){.group = b->group,
            .plural = b->plural,
            .key = c->key,
            .rv = c->rv,
            .old = c->old,
            .now = c->type == KL_DELETED ? NULL : c->now});
}

static void on_disk(void *arg, const char *failure)
{
    kl_httpd_request *http = arg;
    if (!failure) {
        kl_httpd_release(http);
        return;
    }
    kl_err err = KL_ERR_INIT;
    kl__api_fail(&err, 500, "InternalError", NULL,
        "Internal error occurred: nothing was changed, since the change could not be saved: %s", failure);
    kl_httpd_retract(http);
    kl__reply_error(http, NULL, &err);
    kl_err_fini(&err);
}

void kl__durable_hold(kl_server *s, kl_httpd_request *http)
{
    if (!s->archive)
        return;
    kl_httpd_hold(http);
    if (kl_archive_when(s->archive, on_disk, http))
        kl_httpd_release(http);
}

kl_status kl__durable_settle(kl_server *s, kl_err *err)
{
    return s->archive ? kl_archive_settle(s->archive, err) : KL_OK;
}
