/* faults.c - the switchboard: what rules make of a request, requests that wait, and the endpoint.
 *
 *   judged --latency--> held --its time is there, kl_httpd_again--> released --kl_faults_meet--> served, by the
 *   plan of its first coming */
#include "faults/faults_impl.h"

#include <string.h>

#include "base/locks.h"
#include "base/mem.h"
#include "schema/status.h"

#define SEED 1
/* Beyond this number used-up rules are dropped; more active rules are probably a mistake. */
#define RULES_MOST 1000

typedef struct held {
    kl_list link;
    kl_httpd_request *http;
    kl_time due; /* KL_NEVER: the request was released */
    kl_fault_plan plan;
    const kl_value *rule; /* whose error it ends with, a reference; NULL: none */
    int64_t code, retry_after;
    const char *reason, *message; /* of the rule */
} held;

kl_faults *kl_faults_new(kl_clock *clock, void (*changed)(void *arg), void *arg)
{
    kl_faults *f = kl_new(kl_faults);
    f->clock = clock;
    f->changed = changed;
    f->arg = arg;
    f->seed = SEED;
    f->next_id = 1;
    atomic_init(&f->edition, 0);
    atomic_init(&f->idle, true);
    kl_mutex_init_as(&f->mu, KL_LOCK_FAULTS);
    kl_list_init(&f->rules);
    kl_list_init(&f->held);
    return f;
}

static void rules_free(kl_list *rules)
{
    while (!kl_list_empty(rules))
        kl__fault_rule_free(KL_CONTAINER(rules->next, fault_rule, link));
}

static void held_free(held *h)
{
    kl_list_remove(&h->link);
    kl_value_unref(h->rule);
    kl_free(h);
}

void kl_faults_free(kl_faults *f)
{
    if (!f)
        return;
    while (!kl_list_empty(&f->held)) {
        held *h = KL_CONTAINER(f->held.next, held, link);
        kl_httpd_reply(h->http, 503, NULL, NULL, NULL, 0); /* the server is stopping: no client gets this */
        held_free(h);
    }
    rules_free(&f->rules);
    kl_mutex_fini(&f->mu);
    kl_free(f);
}

/* ------------------------------------------------------------------ rules */

static void look_idle_locked(kl_faults *f) KL_REQUIRES(f->mu)
{
    atomic_store(&f->idle, kl_list_empty(&f->rules) && kl_list_empty(&f->held));
}

static void drop_used_locked(kl_faults *f) KL_REQUIRES(f->mu)
{
    for (kl_list *l = f->rules.next, *next; l != &f->rules; l = next) {
        fault_rule *r = KL_CONTAINER(l, fault_rule, link);
        next = l->next;
        if (r->times)
            continue;
        kl__fault_rule_free(r);
        f->n--;
    }
}

/* Adds the rules to the present ones. */
static kl_status join_locked(kl_faults *f, kl_list *rules, size_t n, const int64_t *seed, kl_err *err)
    KL_REQUIRES(f->mu)
{
    if (f->n + n > RULES_MOST)
        drop_used_locked(f);
    if (f->n + n > RULES_MOST)
        return kl_fail(
            err, KL_ETOOBIG, "there are %zu rules, and %d at most: DELETE clears them", f->n + n, RULES_MOST);
    if (seed)
        f->seed = (uint64_t)*seed;
    for (kl_list *l; (l = kl_list_shift(rules));) {
        fault_rule *r = KL_CONTAINER(l, fault_rule, link);
        r->id = f->next_id++;
        kl_random mix = {f->seed + r->id};
        r->chance = (kl_random){kl_random_next(&mix)};
        kl_list_push(&f->rules, &r->link);
        f->n++;
    }
    atomic_fetch_add(&f->edition, 1);
    look_idle_locked(f);
    return KL_OK;
}

/* Rejects latency under a clock that stands still: the client that waits may be the one who moves it. */
static kl_status check_clock(const kl_faults *f, const fault_rule *r, kl_err *err)
{
    if (!(r->effects.what & FAULT_LATENCY) || f->clock == kl_clock_real())
        return KL_OK;
    return kl_fail(err, KL_EINVAL,
        "latency: time stands still on this server, so a request would wait forever; lag delays the frames "
        "of watches");
}

static kl_status read_seed(const kl_value *v, int64_t *seed, kl_err *err)
{
    for (size_t i = 0; i < kl_value_len(v); i++) {
        const char *key;
        size_t n;
        kl_value_member(v, i, &key, &n);
        if (strcmp(key, "seed") != 0 && strcmp(key, "rules") != 0)
            return kl_fail(err, KL_EINVAL,
                "unknown field \"%s\": the body is {\"seed\": 7, \"rules\": [...]}, or one rule", key);
    }
    const kl_value *given = kl_value_get(v, "seed");
    if (given && !kl_value_int(given, seed))
        return kl_fail(err, KL_EINVAL, "seed: must be an integer");
    if (kl_value_type(kl_value_get(v, "rules")) != KL_ARRAY && !given)
        return kl_fail(err, KL_EINVAL, "rules: must be a list");
    return KL_OK;
}

kl_status kl_faults_add(kl_faults *f, const kl_value *v, kl_err *err)
{
    const kl_value *many = kl_value_get(v, "rules");
    bool several = many || kl_value_get(v, "seed");
    int64_t seed = SEED;
    kl_list rules;
    kl_list_init(&rules);
    kl_status st = several ? read_seed(v, &seed, err) : KL_OK;
    size_t n = several ? kl_value_len(many) : 1;
    for (size_t i = 0; i < n && !st; i++) {
        fault_rule *r = NULL;
        st = kl__fault_rule_read(several ? kl_value_item(many, i) : v, kl_clock_now(f->clock), &r, err);
        if (!st) {
            kl_list_push(&rules, &r->link);
            st = check_clock(f, r, err);
        }
        if (st && several)
            kl_err_prefix(err, "rule %zu", i + 1);
    }
    if (!st) {
        kl_lock(&f->mu);
        st = join_locked(f, &rules, n, kl_value_get(v, "seed") ? &seed : NULL, err);
        kl_unlock(&f->mu);
    }
    rules_free(&rules);
    if (!st)
        f->changed(f->arg);
    return st;
}

const kl_value *kl_faults_list(kl_faults *f)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_lock(&f->mu);
    kl_build_kint(b, "seed", (int64_t)f->seed);
    kl_build_key(b, "rules");
    kl_build_array(b);
    for (kl_list *l = f->rules.next; l != &f->rules; l = l->next) {
        const kl_value *one = kl__fault_rule_show(KL_CONTAINER(l, fault_rule, link));
        kl_build_value(b, one);
        kl_value_unref(one);
    }
    kl_unlock(&f->mu);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

void kl_faults_clear(kl_faults *f)
{
    kl_lock(&f->mu);
    rules_free(&f->rules);
    f->n = 0;
    f->clears++;
    atomic_fetch_add(&f->edition, 1);
    look_idle_locked(f);
    kl_unlock(&f->mu);
    f->changed(f->arg);
}

size_t kl_faults_left(kl_faults *f)
{
    size_t n = 0;
    kl_lock(&f->mu);
    for (kl_list *l = f->rules.next; l != &f->rules; l = l->next) {
        const fault_rule *r = KL_CONTAINER(l, fault_rule, link);
        n += r->counted ? (size_t)r->times : 0;
    }
    kl_unlock(&f->mu);
    return n;
}

/* ------------------------------------------------------------------ requests */

void kl__faults_judge(
    kl_faults *f, const kl_fault_call *c, unsigned allowed, kl_fault_plan *plan, const fault_rule **error)
{
    kl_time now = kl_clock_now(f->clock);
    for (kl_list *l = f->rules.next; l != &f->rules; l = l->next) {
        fault_rule *r = KL_CONTAINER(l, fault_rule, link);
        unsigned which = r->effects.what & allowed & ~plan->what;
        if (r->id <= plan->known || !r->times || r->until <= now || !which || !kl__fault_rule_matches(r, c))
            continue;
        if (r->probability < 1 && kl_random_unit(&r->chance) >= r->probability)
            continue;
        r->hits++;
        r->times -= r->times > 0;
        kl__fault_plan_take(plan, r, which);
        if (which & FAULT_LATENCY)
            plan->latency = kl__fault_rule_latency(r);
        if (which & FAULT_ERROR)
            *error = r;
        if (which & FAULT_OF_WATCHES)
            plan->seed = kl_random_next(&r->chance);
    }
    plan->known = f->next_id - 1;
    plan->clears = f->clears;
}

/* The effects that a request of this verb can have. */
static unsigned effects_of(const char *verb)
{
    if (verb && !strcmp(verb, "watch"))
        return FAULT_LATENCY | FAULT_ERROR | FAULT_OF_WATCHES;
    bool list = verb && !strcmp(verb, "list");
    return FAULT_LATENCY | FAULT_ERROR | FAULT_HALF | (list ? FAULT_STALE : 0);
}

static held *held_locked(kl_faults *f, const kl_httpd_request *http) KL_REQUIRES(f->mu)
{
    for (kl_list *l = f->held.next; l != &f->held; l = l->next)
        if (KL_CONTAINER(l, held, link)->http == http)
            return KL_CONTAINER(l, held, link);
    return NULL;
}

static held *judge_locked(kl_faults *f, const kl_fault_call *c, kl_httpd_request *http) KL_REQUIRES(f->mu)
{
    const fault_rule *error = NULL;
    held *h = kl_new(held);
    kl_list_init(&h->link);
    h->http = http;
    kl__faults_judge(f, c, effects_of(c->verb), &h->plan, &error);
    bool watch = c->verb && !strcmp(c->verb, "watch");
    if (error && watch && error->code == 410) { /* kube-apiserver answers 200, and the failure is a frame */
        h->plan.what |= FAULT_CUT;
        h->plan.cut = KL_CUT_EXPIRED;
        h->plan.cut_at = (kl_fault_moment){0};
    } else if (error) {
        h->rule = kl_value_ref(error->given);
        h->code = error->code;
        h->retry_after = error->retry_after;
        h->reason = error->reason;
        h->message = error->message;
    }
    return h;
}

static kl_status fail_as(const held *h, const kl_fault_call *c, kl_err *err)
{
    const char *name = c->name ? c->name : "";
    kl_status st;
    if (h->code == 409 && !h->reason && c->kind)
        st = kl__fail_modified(err, c->kind, name);
    else if (h->code == 404 && !h->reason && c->kind)
        st = kl__fail_not_found(err, c->kind, name);
    else
        st = kl__api_fail(err, (int)h->code,
            h->reason            ? h->reason
                : h->code == 404 ? "NotFound"
                : h->code == 409 ? "Conflict"
                                 : "InternalError",
            NULL, "%s", h->message ? h->message : "a fault rule caused this failure, see " KL_FAULTS_PATH);
    err->retry_after_ns = KL_SECONDS(h->retry_after);
    return st;
}

kl_status kl_faults_meet(
    kl_faults *f, const kl_fault_call *c, kl_httpd_request *http, kl_fault_plan *plan, kl_err *err)
{
    *plan = (kl_fault_plan){0};
    if (atomic_load(&f->idle))
        return KL_OK;
    kl_lock(&f->mu);
    held *h = held_locked(f, http);
    if (!h) {
        h = judge_locked(f, c, http);
        if (h->plan.latency > 0) {
            h->due = kl_clock_now(f->clock) + h->plan.latency;
            kl_list_push(&f->held, &h->link);
            kl_unlock(&f->mu);
            return kl_fail(err, KL_EAGAIN, "it waits");
        }
    }
    *plan = h->plan;
    kl_status st = h->code ? fail_as(h, c, err) : KL_OK;
    held_free(h);
    look_idle_locked(f);
    kl_unlock(&f->mu);
    if (plan->half)
        kl_httpd_halve(http);
    return st;
}

kl_time kl_faults_tick(kl_faults *f)
{
    kl_time again = KL_NEVER;
    kl_list gone;
    kl_list_init(&gone);
    kl_lock(&f->mu);
    kl_time now = kl_clock_now(f->clock);
    for (kl_list *l = f->held.next, *next; l != &f->held; l = next) {
        held *h = KL_CONTAINER(l, held, link);
        next = l->next;
        if (h->due > now) {
            again = h->due < again ? h->due : again;
            continue;
        }
        h->due = KL_NEVER;
        if (kl_httpd_again(h->http))
            continue;
        kl_list_remove(&h->link);
        kl_list_push(&gone, &h->link);
    }
    look_idle_locked(f);
    kl_unlock(&f->mu);
    while (!kl_list_empty(&gone)) {
        held *h = KL_CONTAINER(gone.next, held, link);
        kl_httpd_reply(h->http, 503, NULL, NULL, NULL, 0); /* the server is stopping: no client gets this */
        held_free(h);
    }
    return again;
}

/* ------------------------------------------------------------------ the endpoint */

static void answer(kl_httpd_request *http, int code, const kl_value *v)
{
    kl_buf text = KL_BUF_INIT;
    kl_value_encode(v, &text);
    kl_buf_puts(&text, "\n");
    kl_value_unref(v);
    kl_httpd_reply_take(http, code, "application/json", NULL, &text);
    kl_buf_fini(&text);
}

static kl_status serve(kl_faults *f, kl_httpd_request *http, kl_err *err)
{
    const char *method = kl_httpd_method(http);
    size_t n;
    const char *body = kl_httpd_body(http, &n);
    const kl_value *v = NULL;
    if (!strcmp(method, "GET"))
        return KL_OK;
    if (!strcmp(method, "DELETE")) {
        kl_faults_clear(f);
        return KL_OK;
    }
    if (strcmp(method, "POST") != 0)
        return kl__api_fail(err, 405, "MethodNotAllowed", NULL,
            "faults are listed by GET, added by POST and cleared by DELETE");
    kl_err why = KL_ERR_INIT;
    kl_status st = kl_value_decode(body, n, &v, &why);
    if (!st)
        st = kl_faults_add(f, v, &why);
    if (st)
        st = kl__fail_bad_request(err, "%s", kl_err_message(&why));
    kl_err_fini(&why);
    kl_value_unref(v);
    return st;
}

void kl_faults_serve(kl_faults *f, kl_httpd_request *http)
{
    kl_err err = KL_ERR_INIT;
    if (serve(f, http, &err))
        answer(http, kl__status_code(&err), kl__status_of(&err));
    else
        answer(http, 200, kl_faults_list(f));
    kl_err_fini(&err);
}
