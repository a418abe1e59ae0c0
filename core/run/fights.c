/* fights.c - per key: the last answers to its writes, and the count of each loop and fight. */
#include "run/fights.h"

#include <stdatomic.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "model/diff.h"
#include "model/object.h"

#define OBJECTS 4 /* watched objects that one key writes */
#define FIELDS 4
#define IDLE KL_MINUTES(2) /* a key without writes for this long is dropped when there is no room */

typedef struct field {
    char *path;
    unsigned rounds;
    kl_time since;
    bool again; /* disputed again in the present run */
} field;

typedef struct entry {
    const kl_value *ours[OBJECTS]; /* as the server answered our last writes */
    size_t next;                   /* index in `ours` of the next one to replace */
    kl_time touched;
    /* the event's object, where another manager changed one of those; or NULL */
    const kl_value *theirs;
    size_t which;    /* its index in `ours` */
    bool own, wrote; /* own: its own write triggered the run; wrote: the run wrote something new */
    unsigned streak;
    kl_time since;
    char *changes; /* the first path that differs between two answers of a loop */
    size_t last;   /* index in `ours` of the latest */
    char *other;
    field fields[FIELDS];
    kl_fight_kind told;
    kl_time delay, until;
} entry;

struct kl_fights {
    kl_mutex mu;
    char *manager;
    bool still;
    kl_map *keys KL_GUARDED_BY(mu);
    kl_time swept KL_GUARDED_BY(mu);
    atomic_size_t known, held; /* readable without the lock */
};

void kl_fight_fini(kl_fight *f)
{
    kl_free(f->object);
    kl_free(f->path);
    kl_free(f->other);
    *f = (kl_fight){0};
}

static void entry_free(void *v)
{
    entry *e = v;
    for (size_t i = 0; i < OBJECTS; i++)
        kl_value_unref(e->ours[i]);
    kl_value_unref(e->theirs);
    for (size_t i = 0; i < FIELDS; i++)
        kl_free(e->fields[i].path);
    kl_free(e->changes);
    kl_free(e->other);
    kl_free(e);
}

kl_fights *kl_fights_new(const char *manager, bool still)
{
    kl_fights *f = kl_new(kl_fights);
    kl_mutex_init(&f->mu);
    f->manager = kl_strdup(manager);
    f->still = still;
    f->keys = kl_map_new();
    return f;
}

void kl_fights_free(kl_fights *f)
{
    if (!f)
        return;
    kl_map_free(f->keys, entry_free);
    kl_mutex_fini(&f->mu);
    kl_free(f->manager);
    kl_free(f);
}

void kl_fights_clear(kl_fights *f)
{
    kl_lock(&f->mu);
    kl_map *old = f->keys;
    f->keys = kl_map_new();
    atomic_store(&f->known, 0);
    atomic_store(&f->held, 0);
    kl_unlock(&f->mu);
    kl_map_free(old, entry_free);
}

size_t kl_fights_held(kl_fights *f) { return atomic_load(&f->held); }

/* --- who wrote what ----------------------------------------------------------------------- */

/* The index of the object in `ours`; OBJECTS: none. */
static size_t find(const entry *e, const kl_value *o)
{
    const char *uid = kl_object_uid(o);
    for (size_t i = 0; uid && i < OBJECTS; i++)
        if (e->ours[i] && !strcmp(kl_object_uid(e->ours[i]), uid))
            return i;
    return OBJECTS;
}

static uint64_t version(const kl_value *o) { return kl_rv_number(kl_object_rv(o)); }

/* Whether the manager's entry has the field; for a field inside a list, whether it has the list. */
static bool names(const kl_value *fields, const char *path)
{
    while (fields && *path) {
        size_t n = strcspn(path, ".[");
        char *segment = kl_sprintf("f:%.*s", (int)n, path);
        fields = kl_value_get(fields, segment);
        kl_free(segment);
        if (path[n] != '.')
            break;
        path += n + 1;
    }
    return fields;
}

/* The other manager that owns the field there, or that changed the object last; NULL: there is none, or it
 * is not known. */
static char *other_manager(const kl_fights *f, const kl_value *o, const char *path)
{
    const kl_value *list = kl_value_at(o, "metadata", "managedFields", NULL);
    const char *last = NULL, *when = "";
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *m = kl_value_item(list, i);
        const char *name = kl_value_str_at(m, "manager", NULL), *time = kl_value_str_at(m, "time", NULL);
        if (!name || !strcmp(name, f->manager))
            continue;
        if (names(kl_value_get(m, "fieldsV1"), path))
            return kl_strdup(name);
        if (time && strcmp(time, when) > 0) {
            last = name;
            when = time;
        }
    }
    return kl_strdup(last);
}

/* --- fields that go back and forth -------------------------------------------------------- */

#define PATHS 16
typedef struct paths {
    char *v[PATHS];
    size_t n;
} paths;

static void take_path(void *arg, const char *path, const kl_value *was, const kl_value *is)
{
    paths *p = arg;
    (void)was, (void)is;
    if (p->n < PATHS)
        p->v[p->n++] = kl_strdup(path);
}

static void paths_fini(paths *p)
{
    while (p->n)
        kl_free(p->v[--p->n]);
}

static field *field_of(entry *e, const char *path)
{
    field *free = NULL;
    for (size_t i = 0; i < FIELDS; i++) {
        if (e->fields[i].path && !strcmp(e->fields[i].path, path))
            return &e->fields[i];
        if (!e->fields[i].rounds)
            free = &e->fields[i];
    }
    if (free) {
        kl_free(free->path);
        *free = (field){.path = kl_strdup(path)};
    }
    return free;
}

typedef struct clash {
    kl_fights *f;
    entry *e;
    const paths *theirs;
    kl_time now;
} clash;

static void back_again(void *arg, const char *path, const kl_value *was, const kl_value *is)
{
    clash *c = arg;
    bool changed = false;
    (void)was, (void)is;
    for (size_t i = 0; i < c->theirs->n; i++)
        changed |= !strcmp(c->theirs->v[i], path);
    field *fd = changed ? field_of(c->e, path) : NULL;
    if (!fd || fd->again)
        return;
    if (!fd->rounds++)
        fd->since = c->now;
    fd->again = true;
    char *other = other_manager(c->f, c->e->theirs, path);
    if (other) {
        kl_free(c->e->other);
        c->e->other = other;
    }
}

/* We wrote a, they changed it to b, and we wrote c: fields that they changed and that we changed again. */
static void compare(
    kl_fights *f, entry *e, const kl_value *a, const kl_value *b, const kl_value *c, kl_time now)
{
    paths theirs = {0};
    kl_diff_objects(a, b, take_path, &theirs);
    kl_diff_objects(b, c, back_again, &(clash){f, e, &theirs, now});
    if (!e->other)
        e->other = theirs.n ? other_manager(f, c, theirs.v[0]) : NULL;
    paths_fini(&theirs);
}

/* --- runs --------------------------------------------------------------------------------- */

bool kl_fights_holds(kl_fights *f, const char *key, kl_time now, kl_time *until)
{
    if (!atomic_load_explicit(&f->held, memory_order_relaxed))
        return false;
    kl_lock(&f->mu);
    const entry *e = kl_map_get(f->keys, key);
    *until = e ? e->until : 0;
    kl_unlock(&f->mu);
    return *until > now;
}

/* Ends the slow-down of a key. */
static void forgive(kl_fights *f, entry *e)
{
    atomic_fetch_sub(&f->held, 1);
    e->told = KL_FIGHT_NONE;
    e->delay = e->until = 0;
    e->streak = 0;
    for (size_t i = 0; i < FIELDS; i++)
        e->fields[i].rounds = 0;
}

void kl_fights_began(kl_fights *f, const char *key, const kl_value *woke, kl_time now)
{
    if (!atomic_load_explicit(&f->known, memory_order_relaxed))
        return;
    kl_lock(&f->mu);
    entry *e = kl_map_get(f->keys, key);
    if (e) {
        if (e->until && now > e->until + IDLE)
            forgive(f, e);
        const kl_value *before = e->theirs;
        size_t i = woke ? find(e, woke) : OBJECTS;
        bool newer = i < OBJECTS && version(woke) > version(e->ours[i]);
        e->own = i < OBJECTS && !newer;
        e->theirs = newer ? kl_value_ref(woke) : NULL;
        e->which = i;
        e->wrote = false;
        e->touched = now;
        for (size_t k = 0; k < FIELDS; k++)
            e->fields[k].again = false;
        kl_value_unref(before);
    }
    kl_unlock(&f->mu);
}

/* Makes room, at most once in a second. */
static void sweep(kl_fights *f, kl_time now) KL_REQUIRES(f->mu)
{
    const char *key;
    void *v;
    size_t it = 0;
    if (now < f->swept + KL_SECONDS(1))
        return;
    f->swept = now;
    while (kl_map_next(f->keys, &it, &key, &v)) {
        entry *e = v;
        if (e->touched >= now - IDLE || e->until >= now - IDLE)
            continue;
        if (e->until)
            forgive(f, e);
        entry_free(kl_map_take(f->keys, key));
    }
}

static entry *use(kl_fights *f, const char *key, kl_time now) KL_REQUIRES(f->mu)
{
    entry *e = kl_map_get(f->keys, key);
    if (e)
        return e;
    if (kl_map_len(f->keys) >= KL_FIGHTS_KEYS)
        sweep(f, now);
    if (kl_map_len(f->keys) >= KL_FIGHTS_KEYS)
        return NULL;
    kl_map_set(f->keys, key, e = kl_new(entry));
    atomic_store(&f->known, kl_map_len(f->keys));
    return e;
}

static char *first_path(const kl_value *a, const kl_value *b)
{
    paths p = {0};
    kl_diff_objects(a, b, take_path, &p);
    char *first = p.n ? kl_strdup(p.v[0]) : NULL;
    paths_fini(&p);
    return first;
}

static char *where(const kl_value *o)
{
    char *key = kl_object_key(o),
         *text = kl_sprintf("%s/%s %s", kl_object_api_version(o), kl_object_kind(o), key);
    kl_free(key);
    return text;
}

void kl_fights_wrote(kl_fights *f, const char *key, const kl_value *answer, kl_time now)
{
    if (!kl_object_uid(answer) || !version(answer))
        return;
    kl_lock(&f->mu);
    entry *e = use(f, key, now);
    const kl_value *before = NULL;
    if (e) {
        size_t i = find(e, answer);
        if (i < OBJECTS && e->theirs && e->which == i)
            compare(f, e, e->ours[i], e->theirs, answer, now);
        if (i == OBJECTS) {
            i = e->next++ % OBJECTS;
            e->wrote = true;
        } else if (version(answer) != version(e->ours[i])) {
            e->wrote = true;
            if (e->own && e->streak && !e->changes)
                e->changes = first_path(e->ours[i], answer);
        }
        e->last = i;
        before = e->ours[i];
        e->ours[i] = kl_value_ref(answer);
        e->touched = now;
    }
    kl_unlock(&f->mu);
    kl_value_unref(before);
}

/* Updates the loop of a key: it continues, begins, or there is none. True: there is one. */
static bool in_loop(entry *e, kl_time now)
{
    if (!e->own || !e->wrote) {
        e->streak = 0;
        kl_free(e->changes);
        e->changes = NULL;
        return false;
    }
    if (!e->streak++)
        e->since = now;
    return e->told == KL_FIGHT_LOOP
        || (e->streak >= KL_FIGHTS_LOOP_RUNS && now - e->since <= (e->streak - 1) * KL_FIGHTS_LOOP_PACE);
}

/* The disputed field of this run, after enough repetitions; *peace: they changed a field, and we did not
 * change it back. */
static field *in_fight(entry *e, kl_time now, bool *peace)
{
    field *found = NULL;
    *peace = e->theirs;
    for (size_t i = 0; i < FIELDS; i++) {
        field *fd = &e->fields[i];
        if (e->theirs && !fd->again)
            fd->rounds = 0;
        *peace &= !fd->again;
        if (fd->again
            && (e->told == KL_FIGHT_FIELD
                || (fd->rounds >= KL_FIGHTS_ROUNDS
                    && now - fd->since <= (fd->rounds - 1) * KL_FIGHTS_ROUND_PACE)))
            found = fd;
    }
    return found;
}

static void slow_down(kl_fights *f, entry *e, kl_time now)
{
    atomic_fetch_add(&f->held, !e->until);
    e->delay = !e->delay                     ? KL_FIGHTS_DELAY_MIN
        : e->delay * 2 < KL_FIGHTS_DELAY_MAX ? e->delay * 2
                                             : KL_FIGHTS_DELAY_MAX;
    e->until = now + e->delay;
}

static void tell(const entry *e, kl_fight_kind kind, const field *fd, kl_time now, kl_fight *out)
{
    *out = (kl_fight){.kind = kind, .delay = e->delay, .object = where(e->ours[e->last])};
    out->rounds = fd ? fd->rounds : e->streak;
    out->lasted = now - (fd ? fd->since : e->since);
    out->path = kl_strdup(fd ? fd->path : kind == KL_FIGHT_LOOP ? e->changes : NULL);
    out->other = kind == KL_FIGHT_FIELD ? kl_strdup(e->other) : NULL;
}

/* Judges where time stands still. True: there is a loop to report. */
static bool judge_still(entry *e, kl_time now, kl_fight *out)
{
    (void)in_loop(e, now);
    if (e->streak < KL_FIGHTS_STILL_RUNS)
        return false;
    tell(e, KL_FIGHT_LOOP, NULL, now, out);
    e->streak = 0;
    return true;
}

/* Judges a run that has ended. True: there is something to report. */
static bool judge(kl_fights *f, entry *e, kl_time now, kl_fight *out)
{
    bool peace, loop = in_loop(e, now);
    field *fd = in_fight(e, now, &peace);
    kl_fight_kind kind = fd ? KL_FIGHT_FIELD : loop ? KL_FIGHT_LOOP : KL_FIGHT_NONE;
    if (kind) {
        slow_down(f, e, now);
        bool news = e->told != kind;
        e->told = kind;
        if (news)
            tell(e, kind, fd, now, out);
        return news;
    }
    if (!e->told || (e->told == KL_FIGHT_FIELD && !peace))
        return false;
    tell(e, e->told, NULL, now, out);
    out->over = true;
    forgive(f, e);
    return true;
}

bool kl_fights_ended(kl_fights *f, const char *key, kl_time now, kl_fight *out)
{
    if (!atomic_load_explicit(&f->known, memory_order_relaxed))
        return false;
    kl_lock(&f->mu);
    entry *e = kl_map_get(f->keys, key);
    bool news = e && (f->still ? judge_still(e, now, out) : judge(f, e, now, out));
    kl_unlock(&f->mu);
    return news;
}
