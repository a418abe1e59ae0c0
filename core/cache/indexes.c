/* indexes.c - indexes that come and go while readers read, and their buckets.
 *
 *   add path: live, in sight -> filled by the caller -> ready      reserve function: in sight -> fill: live -> ready
 *   drop: out of sight at once -> sweep (apply context): freed
 *
 * A bucket is the ordered set of the objects that have one value; one more bucket per index has those with any value. A live
 * index is kept up by whoever writes, also while it is being filled: entering twice or leaving what one is not in does
 * nothing. A path tells what an object's old state stood in; a function is not asked twice, so its buckets are noted. */
#include "cache/indexer_impl.h"

#include <string.h>
#include "base/map.h"
#include "base/mem.h"
#include "model/object.h"

/* Objects, and buckets, per lock: what a put may have to wait for. */
#define FILL_STEP 256u
#define SWEEP_STEP 4096u

/* --- what indexes say ---------------------------------------------------------------------------------------------------------------- */

typedef struct speaker { kl__sayings *s; kl__index *x; } speaker;

static void add_saying(void *arg, const char *value)
{
    speaker *to = arg;
    kl__sayings *s = to->s;
    size_t at = s->text.len;
    if (kl_buf_add(&s->text, value, strlen(value) + 1))
        return;
    if (s->len == s->cap)
        s->v = kl_realloc(s->v, (s->cap = s->cap ? 2 * s->cap : 8) * sizeof *s->v);
    s->v[s->len++] = (kl__said){ to->x, at };
}

void kl__say(kl__sayings *s, kl__index *x, const kl_value *o)
{
    x->fn(x->arg, o, add_saying, &(speaker){ s, x });
}

void kl__sayings_fini(kl__sayings *s)
{
    kl_buf_fini(&s->text);
    kl_free(s->v);
    *s = (kl__sayings){0};
}

/* The part of an object that a path or label index looks at. */
static const kl_value *part_of(const kl__index *x, const kl_value *o)
{
    if (x->path)
        return kl_path_get(x->path, o);
    const kl_value *label = kl_object_label(o, x->label);
    return kl_value_type(label) == KL_STRING ? label : NULL;
}

/* --- buckets --------------------------------------------------------------------------------------------------------------------------- */

uint32_t kl__bucket_tag(const kl__index *x, const char *value, bool any)
{
    return kl__tag((kl_hash(value, strlen(value)) + any) ^ (uint64_t)x->id * 0x9e3779b97f4a7c15u);
}

static uint32_t number_of(const kl__names *names, const kl__cells *cells, const kl__index *x, const char *value, bool any, uint32_t tag)
{
    uint32_t number;
    for (kl__probe p = kl__names_probe(names, tag); kl__probe_next(&p, &number);) {
        const kl__bucket *b = kl__cells_get(cells, number);
        if (b && b->of == x && b->any == any && !strcmp(b->value, value))
            return number;
    }
    return KL__NONE;
}

const kl__bucket *kl__bucket_find(const kl__names *names, const kl__cells *cells, const kl__index *x, const char *value, bool any)
{
    uint32_t number = number_of(names, cells, x, value, any, kl__bucket_tag(x, value, any));
    return number == KL__NONE ? NULL : kl__cells_get(cells, number);
}

static uint32_t bucket_make_locked(kl_indexer *ix, const kl__index *x, const char *value, bool any, uint32_t tag) KL_REQUIRES(ix->mu)
{
    size_t n = strlen(value) + 1;
    kl__bucket *b = kl_zalloc(sizeof *b + n);
    b->made = ix->edit.now;
    b->of = x;
    b->tag = tag;
    b->any = any;
    memcpy(b->value, value, n);
    return kl__table_add(&ix->edit, &ix->buckets, tag, b);
}

static kl__bucket *bucket_own_locked(kl_indexer *ix, uint32_t number) KL_REQUIRES(ix->mu)
{
    kl__bucket *b = kl__cells_get(&ix->buckets.cells, number);
    if (b->made == ix->edit.now)
        return b;
    size_t n = sizeof *b + strlen(b->value) + 1;
    kl__bucket *mine = kl_alloc(n);
    memcpy(mine, b, n);
    mine->made = ix->edit.now;
    kl__cells_set(&ix->edit, &ix->buckets.cells, number, mine);
    kl__edit_drop(&ix->edit, b, b->made);
    return mine;
}

static void bucket_remove_locked(kl_indexer *ix, uint32_t number, kl__bucket *b) KL_REQUIRES(ix->mu)
{
    kl__table_remove(&ix->edit, &ix->buckets, b->tag, number);
    kl__set_drop(&ix->edit, &b->set);
    kl__edit_drop(&ix->edit, b, b->made);
}

static void enter_locked(kl_indexer *ix, uint32_t bucket, uint32_t number) KL_REQUIRES(ix->mu)
{
    kl__order order = kl__order_of(ix);
    kl__set_add(&ix->edit, &bucket_own_locked(ix, bucket)->set, &order, number);
}

static void leave_locked(kl_indexer *ix, uint32_t bucket, uint32_t number) KL_REQUIRES(ix->mu)
{
    kl__order order = kl__order_of(ix);
    kl__bucket *b = bucket_own_locked(ix, bucket);
    kl__set_remove(&ix->edit, &b->set, &order, number);
    if (!b->set.len)
        bucket_remove_locked(ix, bucket, b);
}

/* --- where an object stands ------------------------------------------------------------------------------------------------------------- */

static bool has_number(const kl__numbers *n, uint32_t number)
{
    for (size_t i = 0; i < n->len; i++)
        if (n->v[i] == number)
            return true;
    return false;
}

static void numbers_add(kl__numbers *n, uint32_t number)
{
    if (has_number(n, number))
        return;
    if (n->len == n->cap)
        n->v = kl_realloc(n->v, (n->cap = n->cap ? 2 * n->cap : 8) * sizeof *n->v);
    n->v[n->len++] = number;
}

static void stand_in_locked(kl_indexer *ix, const kl__index *x, const char *value, bool any, bool make, kl__numbers *out) KL_REQUIRES(ix->mu)
{
    uint32_t tag = kl__bucket_tag(x, value, any), number = number_of(&ix->buckets.names, &ix->buckets.cells, x, value, any, tag);
    if (number == KL__NONE && make)
        number = bucket_make_locked(ix, x, value, any, tag);
    if (number != KL__NONE)
        numbers_add(out, number);
}

static void stand_by_locked(kl_indexer *ix, const kl__index *x, const kl_value *v, bool make, kl__numbers *out) KL_REQUIRES(ix->mu)
{
    kl_type t = kl_value_type(v);
    if (t == KL_STRING) {
        stand_in_locked(ix, x, kl_value_str(v), false, make, out);
    } else if (v && t != KL_NULL && t != KL_ARRAY && t != KL_OBJECT) {
        char *text = kl_value_to_json(v);
        stand_in_locked(ix, x, text, false, make, out);
        kl_free(text);
    }
}

/* The buckets for this part of an object. */
static void stand_by_part_locked(kl_indexer *ix, const kl__index *x, const kl_value *part, bool make, kl__numbers *out) KL_REQUIRES(ix->mu)
{
    stand_by_locked(ix, x, part, make, out);
    if (kl_value_type(part) == KL_ARRAY)
        for (size_t i = 0; i < kl_value_len(part); i++)
            stand_by_locked(ix, x, kl_value_item(part, i), make, out);
    if (out->len)
        stand_in_locked(ix, x, "", true, make, out);
}

static void stand_by_said_locked(kl_indexer *ix, const kl__index *x, const kl__sayings *said, size_t from, size_t to, kl__numbers *out) KL_REQUIRES(ix->mu)
{
    for (; from < to; from++)
        if (said->v[from].index == x)
            stand_in_locked(ix, x, said->text.data + said->v[from].at, false, true, out);
    if (out->len)
        stand_in_locked(ix, x, "", true, true, out);
}

typedef struct noted { uint32_t len; uint32_t v[]; } noted;

static noted **noted_at(kl__index *x, uint32_t number) { return kl__chunks_at(&x->stands, sizeof(noted *), number); }

static void note_locked(kl__index *x, uint32_t number, const kl__numbers *n)
{
    noted **at = noted_at(x, number);
    if (*at && (*at)->len != n->len) {
        kl_free(*at);
        *at = NULL;
    }
    if (!*at && n->len)
        *at = kl_alloc(sizeof **at + n->len * sizeof *n->v);
    if (*at) {
        (*at)->len = (uint32_t)n->len;
        memcpy((*at)->v, n->v, n->len * sizeof *n->v);
    }
}

static void move_locked(kl_indexer *ix, uint32_t number) KL_REQUIRES(ix->mu)
{
    for (size_t i = 0; i < ix->will.len; i++)
        if (!has_number(&ix->was, ix->will.v[i]))
            enter_locked(ix, ix->will.v[i], number);
    for (size_t i = 0; i < ix->was.len; i++)
        if (!has_number(&ix->will, ix->was.v[i]))
            leave_locked(ix, ix->was.v[i], number);
}

static void update_fn_locked(kl_indexer *ix, kl__index *x, uint32_t number, const kl_value *now, const kl__sayings *said, size_t from, size_t to) KL_REQUIRES(ix->mu)
{
    const noted *old = *noted_at(x, number);
    for (uint32_t i = 0; old && i < old->len; i++)
        numbers_add(&ix->was, old->v[i]);
    if (now)
        stand_by_said_locked(ix, x, said, from, to, &ix->will);
    move_locked(ix, number);
    note_locked(x, number, &ix->will);
}

/* `indexed`: the index may know of `old`. While it is being filled it may not: then entering again is what counts. */
static void update_part_locked(kl_indexer *ix, const kl__index *x, uint32_t number, const kl_value *old, const kl_value *now, bool indexed) KL_REQUIRES(ix->mu)
{
    const kl_value *a = part_of(x, old), *b = part_of(x, now);
    if (a == b && indexed)
        return;
    stand_by_part_locked(ix, x, a, false, &ix->was);
    stand_by_part_locked(ix, x, b, true, &ix->will);
    if (!indexed)
        for (size_t i = 0; i < ix->will.len; i++)
            enter_locked(ix, ix->will.v[i], number);
    move_locked(ix, number);
}

static void update_locked(kl_indexer *ix, const struct kl__listed *l, uint32_t number, const kl_value *old, const kl_value *now, const kl__sayings *said, size_t from, size_t to) KL_REQUIRES(ix->mu)
{
    kl__index *x = l->index;
    ix->was.len = ix->will.len = 0;
    if (x->fn)
        update_fn_locked(ix, x, number, now, said, from, to);
    else if (x->path || x->label)
        update_part_locked(ix, x, number, old, now, l->ready);
}

void kl__indexes_update_locked(kl_indexer *ix, uint32_t number, const kl_value *old, const kl_value *now, const kl__sayings *said, size_t from, size_t to)
{
    for (size_t i = 0; i < ix->indexes->len; i++)
        if (ix->indexes->v[i].index->live)
            update_locked(ix, &ix->indexes->v[i], number, old, now, said, from, to);
}

/* --- the list of indexes ------------------------------------------------------------------------------------------------------------------- */

const struct kl__listed *kl__index_find(const kl__index_list *l, const char *name)
{
    for (size_t i = 0; i < l->len; i++)
        if (l->v[i].index->name && !strcmp(l->v[i].index->name, name))
            return &l->v[i];
    return NULL;
}

const struct kl__listed *kl__index_find_label(const kl__index_list *l, const char *label)
{
    for (size_t i = 0; i < l->len; i++)
        if (l->v[i].index->label && !strcmp(l->v[i].index->label, label))
            return &l->v[i];
    return NULL;
}

/* A new list, to be shown: with `more` (NULL: none) behind, and without the one at `less` (SIZE_MAX: none). */
static void relist_locked(kl_indexer *ix, kl__index *more, bool ready, size_t less) KL_REQUIRES(ix->mu)
{
    kl__index_list *old = ix->indexes;
    size_t n = old ? old->len : 0;
    kl__index_list *l = kl_zalloc(sizeof *l + (n + 1) * sizeof *l->v);
    for (size_t i = 0; i < n; i++)
        if (i != less)
            l->v[l->len++] = old->v[i];
    if (more)
        l->v[l->len++] = (struct kl__listed){ more, ready };
    ix->indexes = l;
    kl__edit_drop(&ix->edit, old, 0);
}

static kl__index *index_new_locked(kl_indexer *ix, const char *name, bool ready) KL_REQUIRES(ix->mu)
{
    kl__index *x = kl_new(kl__index);
    x->name = kl_strdup(name);
    x->users = 1;
    x->id = ++ix->index_ids;
    relist_locked(ix, x, ready, SIZE_MAX);
    return x;
}

static size_t place_of_locked(const kl_indexer *ix, const kl__index *x) KL_REQUIRES(ix->mu)
{
    size_t i = 0;
    while (i < ix->indexes->len && ix->indexes->v[i].index != x)
        i++;
    return i;
}

static void set_ready(kl_indexer *ix, kl__index *x)
{
    kl_lock(&ix->mu);
    size_t at = place_of_locked(ix, x);
    if (at < ix->indexes->len && !ix->indexes->v[at].ready) {
        relist_locked(ix, x, true, at);
        kl__show_locked(ix);
    }
    kl_unlock(&ix->mu);
}

void kl__indexes_init_locked(kl_indexer *ix)
{
    index_new_locked(ix, KL_INDEX_NAMESPACE, true);
}

/* What only writers touch. Runs a script's destructor: not under the lock. */
static void index_clear(kl__index *x)
{
    kl_path_free(x->path);
    if (x->free_arg)
        x->free_arg(x->arg);
    for (uint32_t i = 0; i < x->stands.len; i++)
        for (uint32_t k = 0; x->stands.v[i] && k < KL__CHUNK; k++)
            kl_free(((noted **)(void *)x->stands.v[i])[k]);
    kl__chunks_fini(&x->stands);
}

/* What readers may be looking at, cleared of the rest. */
static void index_free(kl__index *x, kl__edit *e)
{
    kl__edit_drop(e, x->name, 0);
    kl__edit_drop(e, x->label, 0);
    kl__edit_drop(e, x, 0);
}

void kl__indexes_fini(kl_indexer *ix)
{
    for (uint32_t i = 0; i < ix->buckets.end; i++) {
        kl__bucket *b = kl__cells_get(&ix->buckets.cells, i);
        if (b)
            kl__set_drop(NULL, &b->set);
        kl_free(b);
    }
    for (size_t i = 0; i < ix->indexes->len; i++) {
        index_clear(ix->indexes->v[i].index);
        index_free(ix->indexes->v[i].index, &ix->edit);
    }
    kl_free(ix->indexes);
    kl_free(ix->dropped);
}

/* --- adding ---------------------------------------------------------------------------------------------------------------------------------- */

/* Enters what is there, some objects at a time; who puts meanwhile enters them itself. */
static void fill_parts(kl_indexer *ix, kl__index *x)
{
    uint32_t end = 1;
    for (uint32_t from = 0; from < end; from += FILL_STEP) {
        kl_lock(&ix->mu);
        end = ix->objects.end;
        for (uint32_t i = from; i < end && i < from + FILL_STEP; i++) {
            const kl_value *o = kl__cells_get(&ix->objects.cells, i);
            ix->was.len = ix->will.len = 0;
            if (o)
                update_part_locked(ix, x, i, NULL, o, false);
        }
        kl__show_locked(ix);
        kl_unlock(&ix->mu);
    }
    set_ready(ix, x);
}

static kl_status taken(const char *name, kl_err *err)
{
    return kl_fail(err, KL_EEXISTS, "index \"%s\" exists already with another definition: give one of the two another name", name);
}

kl_status kl_indexer_add_path(kl_indexer *ix, const char *name, const char *path, kl_err *err)
{
    kl_path *p = NULL;
    kl_status st = kl_path_parse(path, &p, err);
    if (st) {
        kl_err_prefix(err, "index \"%s\"", name);
        return st;
    }
    kl_lock(&ix->mu);
    const struct kl__listed *l = kl__index_find(ix->indexes, name);
    kl__index *x = l ? l->index : NULL;
    bool fresh = !x, same = x && x->path && !strcmp(kl_path_text(x->path), kl_path_text(p)), ready = l && l->ready;
    if (fresh) {
        x = index_new_locked(ix, name, false);
        x->path = p;
        x->live = true;
        kl__show_locked(ix);
    } else if (same) {
        x->users++;
    }
    kl_unlock(&ix->mu);
    if ((fresh || same) && !ready)      /* whoever came first may not be through: two may fill */
        fill_parts(ix, x);
    if (!fresh)
        kl_path_free(p);
    return fresh || same ? KL_OK : taken(name, err);
}

void kl__index_label(kl_indexer *ix, const char *label)
{
    kl_lock(&ix->mu);
    kl__index *x = NULL;
    if (!kl__index_find_label(ix->indexes, label)) {
        x = index_new_locked(ix, NULL, false);
        x->label = kl_strdup(label);
        x->live = true;
        kl__show_locked(ix);
    }
    kl_unlock(&ix->mu);
    if (x)
        fill_parts(ix, x);
}

kl_status kl_indexer_reserve_fn(kl_indexer *ix, const char *name, kl_index_fn *fn, void *arg, void (*free_arg)(void *), bool *fresh, kl_err *err)
{
    kl_lock(&ix->mu);
    const struct kl__listed *l = kl__index_find(ix->indexes, name);
    kl__index *x = l ? l->index : NULL;
    bool is_new = !x, same = x && x->fn == fn && x->arg == arg;
    if (is_new) {
        x = index_new_locked(ix, name, false);
        x->fn = fn;
        x->arg = arg;
        x->free_arg = free_arg;
        kl__show_locked(ix);
    } else if (same) {
        x->users++;
    }
    kl_unlock(&ix->mu);
    if (!is_new && !same)
        return taken(name, err);
    *fresh = is_new;
    return KL_OK;
}

/* On the apply context, so no object changes meanwhile; the index may be dropped. */
static void fill_fn(kl_indexer *ix, kl__index *x)
{
    kl__sayings said = {0};
    size_t upto[FILL_STEP];
    const kl_value *o[FILL_STEP];
    uint32_t end = 1;
    for (uint32_t from = 0; from < end; from += FILL_STEP) {
        kl_lock(&ix->mu);
        end = ix->objects.end;
        uint32_t n = end - from < FILL_STEP ? end - from : FILL_STEP;
        for (uint32_t i = 0; i < n; i++)
            o[i] = kl__cells_get(&ix->objects.cells, from + i);
        kl_unlock(&ix->mu);
        said.len = 0;
        kl_buf_clear(&said.text);
        for (uint32_t i = 0; i < n; i++) {
            if (o[i])
                kl__say(&said, x, o[i]);
            upto[i] = said.len;
        }
        kl_lock(&ix->mu);
        for (uint32_t i = 0; i < n; i++) {
            ix->was.len = ix->will.len = 0;
            if (o[i])
                update_fn_locked(ix, x, from + i, o[i], &said, i ? upto[i - 1] : 0, upto[i]);
        }
        kl__show_locked(ix);
        kl_unlock(&ix->mu);
    }
    kl__sayings_fini(&said);
    set_ready(ix, x);
}

void kl_indexer_fill(kl_indexer *ix)
{
    for (;;) {
        kl__index *x = NULL;
        kl_lock(&ix->mu);
        for (size_t i = 0; i < ix->indexes->len && !x; i++)
            if (ix->indexes->v[i].index->fn && !ix->indexes->v[i].index->live)
                x = ix->indexes->v[i].index;
        if (x) {
            x->live = true;
            atomic_fetch_add(&ix->generation, 1);
        }
        kl_unlock(&ix->mu);
        if (!x)
            return;
        fill_fn(ix, x);
    }
}

/* --- dropping --------------------------------------------------------------------------------------------------------------------------------- */

bool kl_indexer_drop(kl_indexer *ix, const char *name)
{
    bool last = false;
    kl_lock(&ix->mu);
    const struct kl__listed *l = kl__index_find(ix->indexes, name);
    kl__index *x = l ? l->index : NULL;
    if (x && (x->path || x->fn) && --x->users == 0) {
        relist_locked(ix, NULL, false, place_of_locked(ix, x));
        atomic_fetch_add(&ix->generation, 1);
        ix->dropped = kl_realloc(ix->dropped, (ix->n_dropped + 1) * sizeof *ix->dropped);
        ix->dropped[ix->n_dropped++] = x;
        kl__show_locked(ix);
        last = true;
    }
    kl_unlock(&ix->mu);
    return last;
}

/* Their buckets, some at a time: nobody enters one any more. */
static void drop_buckets(kl_indexer *ix)
{
    uint32_t end = 1;
    for (uint32_t from = 0; from < end; from += SWEEP_STEP) {
        kl_lock(&ix->mu);
        end = ix->buckets.end;
        for (uint32_t i = from; i < end && i < from + SWEEP_STEP; i++) {
            kl__bucket *b = kl__cells_get(&ix->buckets.cells, i);
            if (b && b->of->swept)
                bucket_remove_locked(ix, i, b);
        }
        kl__show_locked(ix);
        kl_unlock(&ix->mu);
    }
}

void kl_indexer_sweep(kl_indexer *ix)
{
    kl_lock(&ix->mu);
    kl__index **x = ix->dropped;
    size_t n = ix->n_dropped;
    ix->dropped = NULL;
    ix->n_dropped = 0;
    for (size_t i = 0; i < n; i++)
        x[i]->swept = true;
    kl_unlock(&ix->mu);
    if (n)
        drop_buckets(ix);
    for (size_t i = 0; i < n; i++) {
        index_clear(x[i]);
        kl_lock(&ix->mu);
        index_free(x[i], &ix->edit);
        kl__show_locked(ix);
        kl_unlock(&ix->mu);
    }
    kl_free(x);
}
