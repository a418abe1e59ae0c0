/* listwatch.c - feeds of caches, answered from memory when the owner pumps. */
#include "lab/listwatch.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/selector.h"

typedef struct job {
    void (*fn)(void *arg);
    void *arg;
    struct job *next;
} job;

typedef struct feed {
    kl_listwatch_feed is;
    kl_listwatch *l;
    char *label, *ns;
    kl_selector *labels;       /* NULL: all */
    kl_field_selector *fields; /* NULL: all */
    kl_source_sink sink;
    uint64_t id; /* of the open list or watch; 0: none */
    bool listing;
    struct feed *next;
} feed;

struct kl_listwatch {
    kl_listwatch_options o;
    kl_loop *loop, *mapper;
    kl_caches *caches;
    feed *feeds;
    job *first, **last;
    uint64_t ids;
};

kl_caches *kl_listwatch_caches(kl_listwatch *l) { return l->caches; }
kl_loop *kl_listwatch_loop(kl_listwatch *l) { return l->loop; }
kl_loop *kl_listwatch_mapper(kl_listwatch *l) { return l->mapper; }
uint64_t kl_listwatch_id(kl_listwatch *l) { return ++l->ids; }

/* --- posts -------------------------------------------------------------------------------- */

static void post(kl_listwatch *l, void (*fn)(void *), void *arg)
{
    job *j = kl_new(job);
    *j = (job){.fn = fn, .arg = arg};
    *l->last = j;
    l->last = &j->next;
}

static bool run_posted(kl_listwatch *l)
{
    job *j = l->first;
    if (!j)
        return false;
    l->first = j->next;
    if (!l->first)
        l->last = &l->first;
    j->fn(j->arg);
    kl_free(j);
    return true;
}

static bool step(kl_listwatch *l, kl_loop *loop)
{
    kl_time next = kl_loop_next(loop);
    if (l->o.timers ? next > kl_clock_now(l->o.clock) : next != INT64_MIN)
        return false;
    kl_loop_step(loop);
    return true;
}

void kl_listwatch_pump(kl_listwatch *l)
{
    for (bool more = true; more;) {
        more = false;
        while (run_posted(l))
            more = true;
        more = step(l, l->loop) || more;
        more = step(l, l->mapper) || more;
    }
}

/* --- a source ----------------------------------------------------------------------------- */

static bool is_elsewhere(const feed *f, const kl_value *v)
{
    const char *ns = kl_object_namespace(v);
    return f->ns && ns && strcmp(f->ns, ns);
}

static bool selects(const feed *f, const kl_value *v)
{
    return (!f->labels || kl_selector_matches(f->labels, kl_value_at(v, "metadata", "labels", NULL)))
        && (!f->fields || kl_field_selector_selects(f->fields, v));
}

typedef struct list_job {
    feed *f;
    uint64_t id;
} list_job;

static const kl_value *envelope(const kl_resource *r)
{
    kl_builder *b = kl_builder_new();
    char *list = kl_sprintf("%sList", r->kind), *api = kl_api_version(r->group, r->version);
    kl_build_object(b);
    kl_build_kstr(b, "kind", list);
    kl_build_kstr(b, "apiVersion", api);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "resourceVersion", "1");
    kl_build_end(b);
    kl_build_end(b);
    kl_free(list);
    kl_free(api);
    return kl_builder_done(b);
}

static bool list_one(void *arg, const kl_value *v)
{
    list_job *j = arg;
    bool has = j->f->id == j->id && !is_elsewhere(j->f, v) && selects(j->f, v);
    if (has)
        (void)j->f->sink.item(j->f->sink.arg, kl_value_ref(v), NULL);
    return has;
}

static void do_list(void *arg)
{
    list_job *j = arg;
    feed *f = j->f;
    f->l->o.each(f->l->o.arg, &f->is, list_one, j);
    if (f->id == j->id) {
        const kl_value *e = envelope(f->is.resource);
        f->id = 0;
        f->sink.done(f->sink.arg, KL_OK, 200, e, NULL);
        kl_value_unref(e);
    }
    kl_free(j);
}

static uint64_t source_list(void *self, const kl_list_request *r, const kl_source_sink *sink)
{
    (void)r;
    feed *f = self;
    list_job *j = kl_new(list_job);
    f->sink = *sink;
    f->listing = true;
    f->id = kl_listwatch_id(f->l);
    *j = (list_job){f, f->id};
    post(f->l, do_list, j);
    return f->id;
}

static uint64_t source_watch(void *self, const kl_watch_request *r, const kl_source_sink *sink)
{
    (void)r;
    feed *f = self;
    f->sink = *sink;
    f->listing = false;
    return f->id = kl_listwatch_id(f->l);
}

static void source_cancel(void *self, uint64_t id)
{
    feed *f = self;
    if (f->id == id)
        f->id = 0;
}

/* Never calls: nothing fails here, so nothing is retried. */
static uint64_t source_timer(void *self, kl_time after, void (*fn)(void *), void *arg)
{
    (void)after, (void)fn, (void)arg;
    return kl_listwatch_id(((feed *)self)->l);
}

static void source_timer_cancel(void *self, uint64_t id) { (void)self, (void)id; }
static void source_post(void *self, void (*fn)(void *), void *arg) { post(((feed *)self)->l, fn, arg); }

static void source_free(void *self)
{
    feed *f = self, **at = &f->l->feeds;
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    if (f->l->o.closed)
        f->l->o.closed(f->l->o.arg, &f->is);
    kl_selector_free(f->labels);
    kl_field_selector_free(f->fields);
    kl_free(f->label);
    kl_free(f->ns);
    kl_free(f);
}

static void origin_source(void *arg, const kl_resource *r, const kl_cache_source *want, kl_source *out)
{
    kl_listwatch *l = arg;
    feed *f = kl_new(feed);
    *f = (feed){.l = l, .label = kl_strdup(want->label), .ns = kl_strdup(want->ns), .next = l->feeds};
    f->is = (kl_listwatch_feed){
        .resource = r, .label = f->label, .ns = f->ns, .labels = want->labels, .fields = want->fields};
    if (l->o.opened)
        l->o.opened(l->o.arg, &f->is);
    if (f->is.labels && kl_selector_parse(f->is.labels, &f->labels, NULL))
        f->labels = NULL;
    if (f->is.fields && kl_field_selector_parse(f->is.fields, &f->fields, NULL))
        f->fields = NULL;
    f->is.labels = f->is.fields = NULL; /* borrowed from the cache */
    l->feeds = f;
    *out = (kl_source){.list = source_list,
        .watch = source_watch,
        .cancel = source_cancel,
        .timer = source_timer,
        .timer_cancel = source_timer_cancel,
        .post = source_post,
        .free = source_free,
        .self = f};
}

static void origin_resolve(void *arg, const char *kind, kl_resolve_fn *done, void *done_arg)
{
    kl_listwatch *l = arg;
    const kl_resource *r = l->o.resolve(l->o.arg, kind);
    kl_err err = KL_ERR_INIT;
    done(done_arg, r ? KL_OK : kl_fail(&err, KL_ENOTFOUND, "%s has no kind %s", l->o.where, kind), r, &err);
    kl_err_fini(&err);
}

static void origin_forget(void *arg) { (void)arg; }

void kl_listwatch_tell(kl_listwatch *l, bool (*for_it)(void *ctx, const kl_listwatch_feed *f), void *ctx,
    const char *type, const kl_value *object)
{
    for (feed *f = l->feeds, *next; f; f = next) {
        next = f->next;
        if (!f->id || f->listing || !for_it(ctx, &f->is) || is_elsewhere(f, object))
            continue;
        const char *what = selects(f, object) ? type : "DELETED";
        (void)f->sink.event(f->sink.arg, what, kl_value_ref(object), NULL);
    }
}

/* --- life --------------------------------------------------------------------------------- */

kl_listwatch *kl_listwatch_new(const kl_listwatch_options *o)
{
    kl_listwatch *l = kl_new(kl_listwatch);
    l->o = *o;
    l->last = &l->first;
    l->loop = kl_loop_new(o->name, o->clock);
    l->mapper = kl_loop_new(o->name, o->clock);
    l->caches = kl_caches_new(
        &(kl_caches_options){.origin = &(kl_caches_origin){origin_resolve, origin_forget, origin_source, l},
            .clock = o->clock,
            .loop = l->loop,
            .mapper = l->mapper,
            .drop_managed_fields = o->drop_managed_fields});
    return l;
}

void kl_listwatch_free(kl_listwatch *l)
{
    kl_listwatch_pump(l);
    kl_caches_free(l->caches);
    kl_loop_free(l->loop);
    kl_loop_free(l->mapper);
    while (run_posted(l))
        continue;
    kl_free(l);
}
