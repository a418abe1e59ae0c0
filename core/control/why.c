/* why.c - gathers in three steps: on the loop the keys that an object maps to, then on the mapper those of
 * the script's functions, and on the loop again the state of all these keys. */
#include "control/why.h"

#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "model/object.h"
#include "model/time.h"
#include "controller/controller.h"
#include "observe/flight.h"
#include "controller/wiring_impl.h"

/* An object may map to any number of keys; further ones are only counted. */
#define KEYS_MOST 50

typedef struct place {    /* one way from the object to a key of a controller */
    const char *role;     /* static */
    char *kind;           /* as the controller declares it */
    char *key;            /* NULL: it leads to none */
    bool present;         /* the object is in the cache */
    const char *why_none; /* static; with key NULL */
} place;

typedef struct party { /* one controller */
    char *name;
    const char *cluster; /* or NULL */
    kl_wiring *wiring;   /* a reference or NULL */
    place *places;
    size_t n, more; /* keys that were not kept */
    bool looks;     /* at objects of the kind */
} party;

/* A function of the script maps the object. */
typedef struct inquiry {
    size_t party;
    kl_feed *feed;          /* lives as long as the party's wiring */
    const kl_value *object; /* a reference */
} inquiry;

typedef struct question {
    const char *cluster, *kind, *key;
    char *placed; /* the key with its namespace, when it was asked for without */
    party *parties;
    size_t n;
    inquiry *inquiries;
    size_t n_inquiries;
    kl_builder *b;
} question;

/* --- who is there ------------------------------------------------------------------------- */

static void parties_free(question *q)
{
    for (size_t i = 0; i < q->n; i++) {
        party *p = &q->parties[i];
        for (size_t k = 0; k < p->n; k++) {
            kl_free(p->places[k].kind);
            kl_free(p->places[k].key);
        }
        kl_free(p->places);
        kl_free(p->name);
        kl_wiring_unref(p->wiring);
    }
    kl_free(q->parties);
}

/* --- what was meant ----------------------------------------------------------------------- */

static bool is_one_of(const char *word, char *const *list)
{
    for (; list && *list; list++)
        if (!strcasecmp(word, *list))
            return true;
    return false;
}

/* "v1/Secret", "Secret", "secrets", "secret", "deploy", "deployments.apps" */
static bool is_meant(const kl_need *n, const char *asked)
{
    const char *declared = kl_cache_kind(n->cache), *slash = strrchr(declared, '/');
    const kl_resource *r = n->resource;
    if (!strcasecmp(declared, asked) || !strcasecmp(slash ? slash + 1 : declared, asked))
        return true;
    if (!r)
        return false;
    const char *dot = strchr(asked, '.');
    if (dot && !strcasecmp(dot + 1, r->group)) {
        size_t len = (size_t)(dot - asked);
        return (strlen(r->plural) == len && !strncasecmp(asked, r->plural, len))
            || (strlen(r->kind) == len && !strncasecmp(asked, r->kind, len));
    }
    return !strcasecmp(r->plural, asked) || (r->singular && !strcasecmp(r->singular, asked))
        || is_one_of(asked, r->short_names);
}

const char *kl_why_kind(struct kl_wiring *w, const char *asked, bool own)
{
    for (size_t i = 0; i < (own && w->n_needs ? 1 : w->n_needs); i++)
        if (is_meant(&w->needs[i], asked))
            return kl_cache_kind(w->needs[i].cache);
    return NULL;
}

void kl_why_kinds(struct kl_wiring *w, bool own, char ***kinds, size_t *n)
{
    for (size_t i = 0; i < (own && w->n_needs ? 1 : w->n_needs); i++) {
        const char *kind = kl_cache_kind(w->needs[i].cache);
        bool known = false;
        for (size_t x = 0; x < *n; x++)
            known |= !strcmp((*kinds)[x], kind);
        if (known)
            continue;
        *kinds = kl_realloc(*kinds, (*n + 1) * sizeof **kinds);
        (*kinds)[(*n)++] = kl_strdup(kind);
    }
}

void kl_why_kinds_free(char **kinds, size_t n)
{
    for (size_t i = 0; i < n; i++)
        kl_free(kinds[i]);
    kl_free(kinds);
}

char *kl_why_meant(const char *asked, char *const *kinds, size_t n, const char *what)
{
    const char *near = kl_suggest(asked, (const char *const *)kinds, n);
    for (size_t x = 0; x < n && !near; x++) {
        const char *slash = strrchr(kinds[x], '/');
        near = kl_suggest(asked, &(const char *){slash ? slash + 1 : kinds[x]}, 1) ? kinds[x] : NULL;
    }
    kl_buf all = KL_BUF_INIT;
    for (size_t x = 0; x < n; x++)
        kl_buf_printf(&all, "%s%s", x ? ", " : "", kinds[x]);
    char *text = kl_sprintf("%s%s%s (%s%s)", near ? ": did you mean " : "", near ? near : "", near ? "?" : "",
        n ? what : "no controller has synced its caches yet", kl_buf_str(&all));
    kl_buf_fini(&all);
    return text;
}

static bool has_resolved(const struct kl_wiring *w)
{
    for (size_t i = 0; i < w->n_needs; i++)
        if (w->needs[i].resource)
            return true;
    return false;
}

/* Short and plural names come from discovery: before that only full names are known. */
static kl_status nobody(question *q, kl_err *err)
{
    char **kinds = NULL;
    size_t n = 0;
    bool resolved = false;
    if (!q->n)
        return kl_fail(err, KL_ENOTFOUND,
            "this process has webhooks and no controller; webhooks keep no history of objects");
    for (size_t i = 0; i < q->n; i++)
        if (q->parties[i].wiring) {
            kl_why_kinds(q->parties[i].wiring, false, &kinds, &n);
            resolved |= has_resolved(q->parties[i].wiring);
        }
    char *meant = kl_why_meant(q->kind, kinds, n, "they look at ");
    kl_status st = resolved || !n
        ? kl_fail(
            err, KL_ENOTFOUND, "no controller of this process watches or reconciles \"%s\"%s", q->kind, meant)
        : kl_fail(err, KL_ENOTFOUND,
            "\"%s\" cannot be resolved yet: discovery has not finished; use a name that the scripts use%s",
            q->kind, meant);
    kl_free(meant);
    kl_why_kinds_free(kinds, n);
    return st;
}

/* --- where the object leads --------------------------------------------------------------- */

typedef struct collecting {
    party *p;
    place like;
    bool any; /* the object leads to a key, which another way may already have found */
} collecting;

static void take_key(void *arg, const char *key)
{
    collecting *c = arg;
    c->any = true;
    for (size_t i = 0; i < c->p->n; i++)
        if (c->p->places[i].key && !strcmp(c->p->places[i].key, key))
            return;
    if (c->p->n == KEYS_MOST) {
        c->p->more++;
        return;
    }
    c->p->places = kl_realloc(c->p->places, (c->p->n + 1) * sizeof *c->p->places);
    place *x = &c->p->places[c->p->n++];
    *x = c->like;
    x->kind = kl_strdup(c->like.kind);
    x->key = kl_strdup(key);
}

static void take_none(collecting *c, const char *why)
{
    c->p->places = kl_realloc(c->p->places, (c->p->n + 1) * sizeof *c->p->places);
    place *x = &c->p->places[c->p->n++];
    *x = c->like;
    x->kind = kl_strdup(c->like.kind);
    x->why_none = why;
}

static void ask_later(question *q, const party *p, kl_feed *f, const kl_value *o)
{
    q->inquiries = kl_realloc(q->inquiries, (q->n_inquiries + 1) * sizeof *q->inquiries);
    q->inquiries[q->n_inquiries++] = (inquiry){(size_t)(p - q->parties), f, kl_value_ref(o)};
}

#define NO_KEY "the script's `watches` maps it to no key"

static void lead(question *q, party *p, kl_need *need)
{
    kl_wiring *w = p->wiring;
    const char *key = q->key;
    const kl_value *o = need->informer ? kl_informer_lookup(need->informer, key) : NULL;
    collecting c = {p, {.kind = (char *)kl_cache_kind(need->cache), .present = o}};
    bool fed = false;
    for (size_t i = 0; i < w->n_feeds; i++) {
        kl_feed *f = &w->feeds[i];
        if (f->need != need)
            continue;
        fed = true;
        c.any = false;
        c.like.role = f->role == KL_ROLE_PRIMARY ? "resource" : f->role == KL_ROLE_OWNS ? "owns" : "watches";
        if (f->role == KL_ROLE_PRIMARY)
            take_key(&c, key);
        else if (!o)
            take_none(&c, "it is not in the cache");
        else if (f->role == KL_ROLE_WATCH && f->watch->how == KL_MAP_FN)
            ask_later(q, p, f, o);
        else
            kl__feed_keys(f, o, take_key, &c);
        if (o && !c.any && (f->role != KL_ROLE_WATCH || f->watch->how != KL_MAP_FN))
            take_none(&c,
                f->role == KL_ROLE_OWNS
                    ? "no owner reference of it names an object of the controller's kind (controller: true)"
                    : NO_KEY);
    }
    if (!fed) {
        c.like.role = "reads";
        take_none(&c, "it is only read: a change of it triggers no run (`watches` would)");
    }
    kl_value_unref(o);
}

/* Not on the loop: the mapper may be busy. */
static void inquire(question *q)
{
    for (size_t i = 0; i < q->n_inquiries; i++) {
        inquiry *x = &q->inquiries[i];
        party *p = &q->parties[x->party];
        collecting c = {p, {.role = "watches", .kind = (char *)x->feed->watch->kind, .present = true}};
        kl__feed_keys(x->feed, x->object, take_key, &c);
        if (!c.any)
            take_none(&c, NO_KEY);
        kl_value_unref(x->object);
    }
    kl_free(q->inquiries);
}

char *kl_why_key(const kl_resource *r, const char *key)
{
    return r && r->namespaced && !strchr(key, '/') ? kl_key_join("default", key) : kl_strdup(key);
}

static void place_key(question *q, const kl_resource *r)
{
    if (q->placed)
        return;
    q->placed = kl_why_key(r, q->key);
    q->key = q->placed;
}

/* On the loop. */
static void join(void *arg, kl_controller *c)
{
    question *q = arg;
    kl_controller_look look;
    kl_controller_look_at(c, &look);
    q->parties = kl_realloc(q->parties, (q->n + 1) * sizeof *q->parties);
    party *p = &q->parties[q->n++];
    *p = (party){.name = kl_strdup(look.name), .cluster = q->cluster, .wiring = look.wiring};
    for (size_t k = 0; p->wiring && k < p->wiring->n_needs; k++)
        if (is_meant(&p->wiring->needs[k], q->kind)) {
            p->looks = true;
            place_key(q, kl_cache_resource(p->wiring->needs[k].cache));
            lead(q, p, &p->wiring->needs[k]);
        }
}

/* --- what is the matter with a key -------------------------------------------------------- */

static char *span(kl_time t)
{
    char text[KL_DURATION_MAX];
    kl_time unit = t > KL_SECONDS(10) ? KL_SECONDS(1) : KL_MILLISECONDS(1);
    return kl_strdup(kl_duration_format((t > 0 ? t : 0) / unit * unit, text));
}

/* Explains an absent object: it does not exist, or is out of our view. */
static char *say_absent(const kl_controller_look *l, const char *key)
{
    const kl_controller_spec *s = kl_wiring_logic(l->wiring)->spec;
    size_t nslen;
    const char *name;
    kl_key_split(key, &nslen, &name);
    bool inside = !s->namespaces || !nslen;
    for (char **ns = s->namespaces; ns && *ns && !inside; ns++)
        inside = strlen(*ns) == nslen && !strncmp(*ns, key, nslen);
    if (!inside)
        return kl_sprintf(
            "%s %s is in a namespace that %s does not watch (`namespaces`)", s->resource, key, l->name);
    kl_buf cut = KL_BUF_INIT;
    if (s->select_labels)
        kl_buf_printf(&cut, " labels %s", s->select_labels);
    if (s->select_fields)
        kl_buf_printf(&cut, "%s fields %s", cut.len ? "," : "", s->select_fields);
    char *text = kl_sprintf("%s %s is not in the cache: it does not exist%s%s%s", s->resource, key,
        cut.len ? ", or is not selected (only" : "", cut.len ? kl_buf_str(&cut) : "", cut.len ? ")" : "");
    kl_buf_fini(&cut);
    return text;
}

static char *say_queued(
    const kl_controller_look *l, const char *key, const char *state, kl_time due, int failures)
{
    kl_time now = kl_clock_now(l->clock);
    char *in = span(due == KL_NEVER ? 0 : due - now), *text = NULL;
    if (!strncmp(state, "running", 7)) {
        text = kl_strdup(!strcmp(state, "running")
                ? "it runs now"
                : "it runs now, and will run again: something changed since");
    } else if (!strcmp(state, "held")) {
        char *owed = kl_own_writes_why(l->own_writes, key);
        text = kl_sprintf("it waits until the cache shows its writes: %s (for %s at most)",
            owed ? owed : "another key of its group wrote", in);
        kl_free(owed);
    } else if (!strcmp(state, "waiting for its group")) {
        text = kl_strdup("it waits for another key of its group (`serial`), which runs now");
    } else if (!strcmp(state, "given up")) {
        text = kl_strdup("it failed too often in a row (`give_up`) and runs again when the object changes");
    } else if (!strcmp(state, "waiting")) {
        text = failures ? kl_sprintf("in backoff after %d failure%s in a row: next in %s", failures,
                   failures == 1 ? "" : "s", in)
                        : kl_sprintf("it runs again in %s", in);
    } else if (!strcmp(state, "queued")) {
        text = kl_strdup("it is queued and runs when a worker is free");
    }
    kl_free(in);
    return text;
}

/* Explains a key that the gate rejects. */
static char *say_elsewhere(const kl_controller_look *l, const char *key)
{
    kl_claims *c = kl_gate_claims(l->gate);
    bool ours = kl_claims_own(c, l->name, key);
    kl_claims_unref(c);
    return kl_strdup(ours
            ? "its namespace now belongs to this replica, which is listing its objects (--shards)"
            : "the key belongs to another replica (--shards)");
}

/* Statements about an object come from the cache: takes `text`, and adds a warning when a cache of the
 * controller is stale. */
static char *say_stale(const kl_controller_look *l, char *text)
{
    for (size_t i = 0; i < l->wiring->n_needs; i++) {
        kl_cache *cache = l->wiring->needs[i].cache;
        kl_informer *informer = kl_cache_informer(cache);
        if (!informer)
            continue;
        kl_informer_stats s;
        kl_informer_stats_get(informer, &s);
        char *more = NULL;
        if (s.synced && s.message && !strcmp(s.state, "waiting")) {
            char *since = span(kl_clock_now(l->clock) - s.last_event);
            more = kl_sprintf("%s; but the server has sent nothing about %s for %s: %s", text,
                kl_cache_kind(cache), since, s.message);
            kl_free(since);
        }
        kl_informer_stats_fini(&s);
        if (more) {
            kl_free(text);
            return more;
        }
    }
    return text;
}

/* The next trigger of an idle key. */
static char *say_idle(const kl_controller_look *l)
{
    const kl_controller_spec *s = kl_wiring_logic(l->wiring)->spec;
    char *resync = span(s->resync), *every = span(s->every);
    kl_buf text = KL_BUF_INIT;
    kl_buf_printf(&text, "nothing to do: it runs again when something changes");
    if (s->resync)
        kl_buf_printf(&text, ", and every %s (`resync`)", resync);
    if (s->every)
        kl_buf_printf(&text, ", and every %s (`every`)", every);
    for (char **c = s->cron; c && *c; c++)
        kl_buf_printf(&text, ", and at %s (`cron`)", *c);
    kl_free(resync);
    kl_free(every);
    return kl_buf_take(&text);
}

/* The first obstacle of the key, or its next step. */
static char *say(const kl_controller_look *l, const kl_controller_state *s, const place *p, const char *state,
    kl_time due, int failures)
{
    if (!l->published || !strcmp(s->state, "parked"))
        return kl_sprintf("%s is %s: %s", l->name, s->state, s->message ? s->message : "it has just begun");
    if (!kl_office_open(l->office)) {
        char *holder = kl_office_holder(l->office),
             *text = kl_sprintf("this process does not lead%s%s", holder ? ": " : "", holder ? holder : "");
        kl_free(holder);
        return text;
    }
    if (!p->key)
        return kl_strdup(p->why_none);
    if (l->gate && !kl_gate_owns(l->gate, p->key))
        return say_elsewhere(l, p->key);
    const kl_value *o = kl_wiring_object(l->wiring, p->key);
    bool there = o;
    kl_value_unref(o);
    if (!there)
        return say_stale(l, say_absent(l, p->key));
    if (l->paused && strncmp(state, "running", 7))
        return kl_sprintf("%s is paused: no key runs until it is resumed", l->name);
    char *text = say_queued(l, p->key, state, due, failures);
    return text ? text : say_stale(l, say_idle(l));
}

static void tell_place(
    question *q, party *p, const place *x, const kl_controller_look *l, const kl_controller_state *s)
{
    kl_builder *b = q->b;
    kl_time due = KL_NEVER;
    const char *state = x->key ? kl_workqueue_state(l->queue, x->key, &due) : "absent";
    int failures = x->key ? kl_workqueue_requeues(l->queue, x->key) : 0;
    kl_build_object(b);
    kl_build_kstr(b, "cluster", p->cluster);
    kl_build_kstr(b, "controller", p->name);
    kl_build_kstr(b, "resource", l->resource);
    kl_build_kstr(b, "role", x->role);
    kl_build_kstr(b, "kind", x->kind);
    kl_build_kstr(b, "key", x->key);
    kl_build_key(b, "present");
    kl_build_bool(b, x->present);
    kl_build_kstr(b, "state", s->state);
    char *says = say(l, s, x, state, due, failures);
    kl_build_kstr(b, "says", says);
    kl_free(says);
    kl_build_kvalue(b, "params", s->params);
    if (x->key) {
        kl_build_key(b, "queue");
        kl_build_object(b);
        kl_build_kstr(b, "state", state);
        if (due != KL_NEVER) {
            kl_time in = due - kl_clock_now(l->clock);
            kl_build_key(b, "in");
            kl_build_double(b, in > 0 ? (double)(in / KL_MILLISECONDS(1)) / 1e3 : 0);
        }
        kl_build_kint(b, "failures", failures);
        kl_build_end(b);
        if (l->flight)
            (void)kl_flight_runs(l->flight, p->name, x->key, b);
    }
    bool own = !strcmp(x->role, "resource");
    if (l->flight && (own || x->kind))
        (void)kl_flight_drop(l->flight, p->name, own ? NULL : x->kind, q->key, b);
    kl_build_end(b);
}

/* On the loop. A controller that was removed meanwhile is skipped. */
static void tell(void *arg, kl_controller *c)
{
    question *q = arg;
    kl_controller_look l;
    kl_controller_state *s = kl_new(kl_controller_state);
    kl_controller_look_at(c, &l);
    kl_controller_state_get(c, s);
    for (size_t i = 0; i < q->n; i++)
        if (!strcmp(q->parties[i].name, l.name) && q->parties[i].cluster == q->cluster)
            for (size_t k = 0; k < q->parties[i].n; k++)
                tell_place(q, &q->parties[i], &q->parties[i].places[k], &l, s);
    kl_controller_states_free(s, 1);
    kl_wiring_unref(l.wiring);
}

/* --- the whole ---------------------------------------------------------------------------- */

static void each_manager(question *q, kl_manager *m, void (*fn)(void *arg, kl_controller *c))
{
    kl_manager *one;
    for (size_t i = 0; (one = kl_manager_at(m, i, &q->cluster)); i++)
        kl_manager_each(one, fn, q);
}

kl_status kl_why_tell(kl_manager *m, const char *kind, const char *key, const kl_value **out, kl_err *err)
{
    question q = {.kind = kind, .key = key};
    kl_status st = KL_OK;
    each_manager(&q, m, join);
    inquire(&q);
    bool any = false;
    for (size_t i = 0; i < q.n; i++)
        any |= q.parties[i].looks;
    if (!any) {
        st = nobody(&q, err);
    } else {
        q.b = kl_builder_new();
        kl_build_object(q.b);
        kl_build_kstr(q.b, "kind", kind);
        kl_build_kstr(q.b, "key", key);
        size_t more = 0;
        for (size_t i = 0; i < q.n; i++)
            more += q.parties[i].more;
        if (more)
            kl_build_kint(q.b, "moreKeys", (int64_t)more);
        kl_build_key(q.b, "controllers");
        kl_build_array(q.b);
        each_manager(&q, m, tell);
        kl_build_end(q.b);
        kl_build_end(q.b);
        *out = kl_builder_done(q.b);
    }
    parties_free(&q);
    kl_free(q.placed);
    return st;
}

static void answer(void *arg, kl_control_request *r)
{
    const char *kind = kl_control_query(r, "kind"), *ns = kl_control_query(r, "namespace"),
               *name = kl_control_query(r, "name"), *whole = kl_control_query(r, "key");
    if (!kind || !*kind || ((!name || !*name) && (!whole || !*whole))) {
        kl_control_refuse(
            r, 400, "name the object: /v1/why?kind=v1/Secret&namespace=team&name=a, or kind= and key=team/a");
        return;
    }
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    char *key = whole && *whole ? kl_strdup(whole) : kl_key_join(ns, name);
    if (kl_why_tell(arg, kind, key, &v, &err))
        kl_control_fail(r, &err);
    else
        kl_control_reply(r, 200, v);
    kl_err_fini(&err);
    kl_free(key);
}

void kl_why_add(kl_control *c, kl_manager *m)
{
    kl_control_route(
        c, "GET", "/v1/why", "why a key ran, or does not: kind=, namespace=, name= (or key=)", answer, m);
}
