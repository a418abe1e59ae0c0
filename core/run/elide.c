/* elide.c - an entry for each object that was written, or read from the server: the least resourceVersion
 * that a cache must have reached to be trusted, and the applies that left the object at exactly that one.
 *
 *   unknown --write--> under way --answer with a version--> known, from that version on
 *                                --failure, or no version in the answer--> doubtful, until a success
 *                                --refused--> as before;  409: known, from the version after the sent one
 *
 * Unused entries are dropped, half of them at a time: from then on only objects with an entry are trusted,
 * and a new entry begins doubtful. Kinds are compared by name, without group and version: two kinds of one
 * name make this more careful, never less. */
#include "run/elide.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sha1.h"
#include "base/sync.h"
#include "model/object.h"
#include "value/patch.h"

#define OBJECTS_MAX 65536
/* The remembered applies of one object: of the object and its status, by two field managers. */
#define APPLIES 4

typedef struct digest {
    unsigned char bytes[20];
} digest;

typedef struct entry {
    uint64_t version; /* 0: none is known */
    unsigned under_way;
    bool doubtful;
    unsigned n_applies;
    digest applies[APPLIES]; /* each was answered with `version` */
} entry;

struct kl_elide {
    kl_mutex mu;
    size_t max;
    /* "Kind\nnamespace\nname" -> entry, in one of the two */
    kl_map *young KL_GUARDED_BY(mu), *old KL_GUARDED_BY(mu);
    /* "Kind" -> uint64_t *: the least version, from lists that were read and writes without a name */
    kl_map *floors KL_GUARDED_BY(mu);
    bool forgot KL_GUARDED_BY(mu); /* entries were dropped */
    bool blind KL_GUARDED_BY(mu);  /* an unknown object was written */
};

struct kl_elide_write {
    kl_elide *e;
    char *kind, *key; /* key NULL: the name comes with the answer, or there is none */
    digest what;
    bool counted;                        /* counted in under_way of its entry */
    bool is_apply, is_delete, is_object; /* is_object: the answer is the object itself */
    uint64_t sent;                       /* the resourceVersion that the write named, or 0 */
};

static void entry_free(void *p) { kl_free(p); }

kl_elide *kl_elide_new(size_t max)
{
    kl_elide *e = kl_new(kl_elide);
    kl_mutex_init(&e->mu);
    e->max = max ? max : OBJECTS_MAX;
    e->young = kl_map_new();
    e->old = kl_map_new();
    e->floors = kl_map_new();
    return e;
}

void kl_elide_free(kl_elide *e)
{
    if (!e)
        return;
    kl_map_free(e->young, entry_free);
    kl_map_free(e->old, entry_free);
    kl_map_free(e->floors, entry_free);
    kl_mutex_fini(&e->mu);
    kl_free(e);
}

/* --- names and versions ------------------------------------------------------------------- */

/* The name of the kind alone. NULL: a resource as in kubectl, "pods" or "deploy", whose kind is unknown. */
static const char *kind_word(const char *kind)
{
    const char *slash = kind ? strrchr(kind, '/') : NULL;
    const char *word = slash ? slash + 1 : kind;
    return word && *word >= 'A' && *word <= 'Z' ? word : NULL;
}

static char *object_key(const char *kind, const char *ns, const char *name)
{
    return kl_sprintf("%s\n%s\n%s", kind, ns ? ns : "", name);
}

static digest digest_of(const kl_op *op)
{
    digest d = {{0}};
    kl_buf text = KL_BUF_INIT;
    kl_buf_printf(&text, "%s\n%s\n%s\n%d\n", op->kind, op->subresource ? op->subresource : "",
        op->field_manager ? op->field_manager : "", op->force);
    kl_value_encode(op->body, &text);
    kl_sha1(text.data, text.len, d.bytes);
    kl_buf_fini(&text);
    return d;
}

/* --- the record --------------------------------------------------------------------------- */

/* Drops the old entries, except those that an answer still needs. Young ones become old. */
static void forget_locked(kl_elide *e) KL_REQUIRES(e->mu)
{
    kl_map *dead = e->old;
    e->old = e->young;
    e->young = kl_map_new();
    size_t it = 0;
    const char *key;
    void *x;
    while (kl_map_next(dead, &it, &key, &x)) {
        if (((entry *)x)->under_way) {
            kl_map_set(e->young, key, x);
        } else {
            kl_free(x);
            e->forgot = true;
        }
    }
    kl_map_free(dead, NULL);
}

/* The entry under key, which becomes young; NULL: there is none. */
static entry *find_locked(kl_elide *e, const char *key) KL_REQUIRES(e->mu)
{
    entry *x = kl_map_get(e->young, key);
    if (x || !(x = kl_map_take(e->old, key)))
        return x;
    if (kl_map_len(e->young) >= e->max / 2)
        forget_locked(e);
    kl_map_set(e->young, key, x);
    return x;
}

static entry *entry_locked(kl_elide *e, const char *key) KL_REQUIRES(e->mu)
{
    entry *x = find_locked(e, key);
    if (x)
        return x;
    if (kl_map_len(e->young) >= e->max / 2)
        forget_locked(e);
    x = kl_new(entry);
    x->doubtful = e->forgot;
    kl_map_set(e->young, key, x);
    return x;
}

static void raise_floor_locked(kl_elide *e, const char *kind, uint64_t version) KL_REQUIRES(e->mu)
{
    uint64_t *floor = kl_map_get(e->floors, kind);
    if (!floor) {
        floor = kl_new(uint64_t);
        kl_map_set(e->floors, kind, floor);
    }
    if (version > *floor)
        *floor = version;
}

/* The cache must have reached `version` to be trusted. */
static void reached_locked(entry *x, uint64_t version)
{
    if (version > x->version) {
        x->version = version;
        x->n_applies = 0;
    }
}

static void add_apply_locked(entry *x, const digest *d)
{
    for (unsigned i = 0; i < x->n_applies; i++)
        if (!memcmp(&x->applies[i], d, sizeof *d))
            return;
    if (x->n_applies == APPLIES) {
        memmove(x->applies, x->applies + 1, sizeof *d * (APPLIES - 1));
        x->n_applies--;
    }
    x->applies[x->n_applies++] = *d;
}

/* --- asking ------------------------------------------------------------------------------- */

/* Whether a cache with the object at `version` may be trusted: it is not known to be behind. *out: the entry,
 * or NULL. */
static bool fresh_locked(kl_elide *e, const char *kind, const char *key, uint64_t version, const entry **out)
    KL_REQUIRES(e->mu)
{
    const uint64_t *floor = kl_map_get(e->floors, kind);
    const entry *x = find_locked(e, key);
    *out = x;
    if (!version || e->blind || (floor && version < *floor))
        return false;
    return x ? !x->under_way && !x->doubtful && version >= x->version : !e->forgot;
}

bool kl_elide_fresh(kl_elide *e, const char *kind, const char *ns, const char *name, const kl_value *cached)
{
    const char *word = kind_word(kind);
    uint64_t version = kl_rv_number(kl_object_rv(cached));
    if (!word || !version || !name)
        return false;
    const entry *x;
    char *key = object_key(word, ns, name);
    kl_lock(&e->mu);
    bool fresh = fresh_locked(e, word, key, version, &x);
    kl_unlock(&e->mu);
    kl_free(key);
    return fresh;
}

static bool same_after(const kl_op *op, const kl_value *cached)
{
    if (op->verb == KL_UPDATE)
        return kl_value_equal(op->body, cached);
    /* The cache may have dropped managedFields: it cannot judge a patch of them. */
    if (kl_value_at(op->body, "metadata", "managedFields", NULL))
        return false;
    const kl_value *after = kl_merge_patch_apply(cached, op->body);
    bool same = kl_value_equal(after, cached);
    kl_value_unref(after);
    return same;
}

static bool has_apply(const entry *x, const digest *d)
{
    for (unsigned i = 0; i < x->n_applies; i++)
        if (!memcmp(&x->applies[i], d, sizeof *d))
            return true;
    return false;
}

bool kl_elide_proves(kl_elide *e, const kl_op *op, const char *ns, const kl_value *cached)
{
    const char *word = kind_word(op->kind);
    uint64_t version = kl_rv_number(kl_object_rv(cached));
    bool apply = op->verb == KL_APPLY;
    if (!word || !version || !op->name || !op->body || op->dry_run || op->always
        || (op->subresource && strcmp(op->subresource, "status")))
        return false;
    if (!apply && op->verb != KL_UPDATE && (op->verb != KL_PATCH || op->patch_type != KL_PATCH_MERGE))
        return false;
    digest d = {{0}};
    if (apply)
        d = digest_of(op);
    else if (!same_after(op, cached))
        return false;
    const entry *x;
    char *key = object_key(word, ns, op->name);
    kl_lock(&e->mu);
    bool proved = fresh_locked(e, word, key, version, &x);
    if (apply)
        proved = proved && x && x->version == version && has_apply(x, &d);
    kl_unlock(&e->mu);
    kl_free(key);
    return proved;
}

/* --- hearing ------------------------------------------------------------------------------ */

kl_elide_write *kl_elide_begin(kl_elide *e, const kl_op *op, const char *ns)
{
    const char *word = kind_word(op->kind);
    kl_elide_write *w = kl_new(kl_elide_write);
    w->e = e;
    w->kind = kl_strdup(word);
    w->key = word && op->name ? object_key(word, ns, op->name) : NULL;
    w->is_apply = op->verb == KL_APPLY && op->body && !op->dry_run;
    w->is_delete = op->verb == KL_DELETE || op->verb == KL_DELETE_COLLECTION;
    w->is_object = !w->is_delete && (!op->subresource || !strcmp(op->subresource, "status"));
    w->sent = kl_rv_number(op->precondition_rv ? op->precondition_rv : kl_object_rv(op->body));
    if (w->is_apply)
        w->what = digest_of(op);
    if (op->dry_run) { /* no entry: a dry run changes nothing */
        kl_free(w->kind);
        kl_free(w->key);
        w->e = NULL;
        w->kind = w->key = NULL;
        return w;
    }
    kl_lock(&e->mu);
    entry *x = w->key ? entry_locked(e, w->key) : NULL;
    if (x) {
        x->under_way++;
        w->counted = true;
    } else if (!word)
        e->blind = true;
    else if (op->verb == KL_DELETE_COLLECTION)
        raise_floor_locked(e, word, UINT64_MAX);
    kl_unlock(&e->mu);
    return w;
}

/* Whether the write was refused, so that it changed nothing. */
static bool was_refused(kl_status st)
{
    return st == KL_EINVAL || st == KL_EEXISTS || st == KL_EAUTH || st == KL_EFORBIDDEN || st == KL_EREJECTED
        || st == KL_ETHROTTLED || st == KL_ENOTLEADER;
}

static void answered_locked(kl_elide_write *w, entry *x, kl_status st, const kl_value *body)
{
    uint64_t version = kl_rv_number(kl_object_rv(body));
    if (was_refused(st))
        return;
    if (st == KL_ECONFLICT && w->sent) {
        reached_locked(x, w->sent + 1);
    } else if (st || !w->is_object || !version) {
        x->doubtful = true;
    } else {
        reached_locked(x, version);
        x->doubtful = false;
        if (w->is_apply && version == x->version)
            add_apply_locked(x, &w->what);
    }
}

void kl_elide_end(kl_elide_write *w, kl_status st, const kl_value *body)
{
    kl_elide *e = w->e;
    if (e && w->kind) {
        const char *name = kl_object_name(body);
        if (!w->key && !st && name && w->is_object)
            w->key = object_key(w->kind, kl_object_namespace(body), name);
        kl_lock(&e->mu);
        if (w->key) {
            entry *x = entry_locked(e, w->key);
            x->under_way -= w->counted;
            answered_locked(w, x, st, body);
        }
        kl_unlock(&e->mu);
    }
    kl_free(w->kind);
    kl_free(w->key);
    kl_free(w);
}

void kl_elide_saw(kl_elide *e, const kl_op *op, const char *ns, const kl_value *body)
{
    const char *word = kind_word(op->kind);
    uint64_t version = kl_rv_number(kl_object_rv(body));
    kl_lock(&e->mu);
    if (!word) {
        e->blind = true;
    } else if (op->name) {
        char *key = object_key(word, ns, op->name);
        entry *x = entry_locked(e, key);
        if (version)
            reached_locked(x, version);
        else
            x->doubtful = true;
        kl_free(key);
    } else {
        raise_floor_locked(e, word, version ? version : UINT64_MAX);
    }
    kl_unlock(&e->mu);
}
