/* parts.c - where an informer looks: everywhere, at some namespaces, or at namespaces that come and go.
 *
 *                   added                                            dropped
 *   any thread      in `parts`, read from as soon as it was listed   out of `parts` at once
 *   watch thread    its reflector starts                             its reflector stops
 *   apply context   its lists and events become the store            its objects go, it is freed
 *
 * Both ways pass the threads in the same order, so a namespace that is dropped and added again is swept
 * before it is listed again. */
#include "cache/informer_impl.h"

#include <string.h>
#include "base/mem.h"

kl__follower *kl__follower_new(kl_informer *i, const kl_informer_part *part, uint64_t seed)
{
    kl__follower *f = kl_new(kl__follower);
    f->i = i;
    f->source = part->source;
    f->ns = kl_strdup(part->namespace_);
    f->reflector = kl_reflector_new(seed, i->page_size, i->stream);
    f->state = kl_reflector_state(f->reflector);
    return f;
}

void kl__follower_free(kl__follower *f)
{
    if (f->source.free)
        f->source.free(f->source.self);
    kl__follow_drop_page(f);
    kl_err_fini(&f->stream_error);
    kl_reflector_free(f->reflector);
    kl_free(f->reached);
    kl_free(f->list_kind);
    kl_free(f->message);
    kl_free(f->ns);
    kl_free(f);
}

kl__follower **kl__parts_copy(kl_informer *i, size_t *n)
{
    kl_lock(&i->mu);
    kl__follower **copy = kl_new_array(kl__follower *, i->n_parts + 1);
    if (i->n_parts)
        memcpy(copy, i->parts, i->n_parts * sizeof *copy);
    *n = i->n_parts;
    kl_unlock(&i->mu);
    return copy;
}

/* --- who looks at a namespace ------------------------------------------------------------- */

size_t kl_informer_parts(const kl_informer *i) { return i->changing ? 0 : i->n_parts; }
bool kl_informer_changing(const kl_informer *i) { return i->changing; }
uint64_t kl_informer_seen(const kl_informer *i, int part) { return atomic_load(&i->parts[part]->seen); }

static int find(const kl_informer *i, const char *ns)
{
    for (size_t k = 0; k < i->n_parts; k++)
        if (!i->parts[k]->ns || !ns || !strcmp(i->parts[k]->ns, ns))
            return (int)k;
    return -1;
}

int kl_informer_part_of(const kl_informer *i, const char *ns) { return i->changing ? -1 : find(i, ns); }

/* The part of a namespace, or NULL. Under mu. */
static kl__follower *part_of(const kl_informer *i, const char *ns)
{
    if (i->changing)
        return ns ? kl_map_get(i->by_ns, ns) : NULL;
    int part = find(i, ns);
    return part < 0 ? NULL : i->parts[part];
}

bool kl_informer_covers(kl_informer *i, const char *ns)
{
    kl_lock(&i->mu);
    kl__follower *f = part_of(i, ns);
    bool listed = f && atomic_load(&f->listed);
    kl_unlock(&i->mu);
    return listed;
}

uint64_t kl_informer_seen_in(kl_informer *i, const char *ns)
{
    kl_lock(&i->mu);
    kl__follower *f = part_of(i, ns);
    uint64_t seen = f ? atomic_load(&f->seen) : 0;
    kl_unlock(&i->mu);
    return seen;
}

/* --- coming ------------------------------------------------------------------------------- */

static void apply_synced(kl_informer *i, kl__job *j)
{
    (void)j;
    if (i->stopped)
        return;
    atomic_store(&i->synced, true);
    kl__handlers_refresh(i);
    kl__handlers_tell_synced(i);
}

void kl__parts_started(kl_informer *i) { kl__job_apply(i, kl__job_new(i, apply_synced)); }

static void job_add(kl_informer *i, kl__job *j)
{
    if (i->running && !strcmp(kl_reflector_state(j->from->reflector), "idle"))
        kl__follow_step(j->from, &(kl_reflector_input){.kind = KL_REFLECTOR_START});
}

void kl_informer_add_part(kl_informer *i, const kl_informer_part *p)
{
    kl__follower *f = kl__follower_new(i, p, i->seed + kl_hash(p->namespace_, strlen(p->namespace_)));
    kl_lock(&i->mu);
    i->parts = kl_realloc(i->parts, (i->n_parts + 1) * sizeof *i->parts);
    f->at = i->n_parts;
    i->parts[i->n_parts++] = f;
    kl_map_set(i->by_ns, f->ns, f);
    kl_unlock(&i->mu);
    kl__job_post_watch(i, kl__job_of(f, job_add));
}

/* --- going -------------------------------------------------------------------------------- */

static void job_drop(kl_informer *i, kl__job *j)
{
    kl__follower *f = j->from;
    bool troubled = f->message;
    kl__follow_stop(f);
    kl__job_apply(i, kl__job_of(f, kl__apply_forget));
    if (troubled && i->on_trouble) /* its trouble is over */
        i->on_trouble(i->trouble_arg);
}

void kl_informer_drop_part(kl_informer *i, const char *ns)
{
    kl_lock(&i->mu);
    kl__follower *f = kl_map_take(i->by_ns, ns);
    if (f) {
        kl__sums_add(&i->gone, &f->counts);
        i->parts[f->at] = i->parts[--i->n_parts];
        i->parts[f->at]->at = f->at;
    }
    kl_unlock(&i->mu);
    if (f)
        kl__job_post_watch(i, kl__job_of(f, job_drop));
}
