/* rules.c - a rule: which requests it is for, how often it strikes, and what happens then. */
#include "faults/faults_impl.h"

#include <fnmatch.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "model/time.h"

/* A client that waits longer has given up. */
#define LATENCY_MOST KL_MINUTES(60)
/* The 99th percentile of the standard normal distribution. */
#define Z99 2.3263478740408408

/* ------------------------------------------------------------------ reading */

typedef struct reader {
    const kl_value *v;
    fault_rule *r;
    kl_err *err;
    kl_status st;
} reader;

static void wrong(reader *in, const char *field, const char *fmt, ...) KL_PRINTF(3, 4);
static void wrong(reader *in, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    in->st = kl_vfail(in->err, KL_EINVAL, fmt, ap);
    va_end(ap);
    kl_err_prefix(in->err, "%s", field);
}

static size_t index_of(const char *word, const char *const *known, size_t n)
{
    size_t i = 0;
    while (i < n && strcmp(known[i], word))
        i++;
    return i;
}

/* A word that is not among the known ones; `otherwise` is the way out where none of them is near. */
static void no_such(reader *in, const char *field, const char *word, const char *const *known, size_t n,
    const char *otherwise)
{
    const char *near = kl_suggest(word, known, n);
    if (near)
        wrong(in, field, "there is no \"%s\"; did you mean \"%s\"?", word, near);
    else
        wrong(in, field, "there is no \"%s\"%s", word, otherwise);
}

static void text(reader *in, const char *field, const char **out)
{
    const kl_value *v = kl_value_get(in->v, field);
    if (!v || in->st)
        return;
    *out = kl_value_str(v);
    if (!*out)
        wrong(in, field, "must be a string, not %s", kl_value_type_name(v));
}

static bool whole(reader *in, const char *field, int64_t least, int64_t most, int64_t *out)
{
    const kl_value *v = kl_value_get(in->v, field);
    if (!v || in->st)
        return false;
    if (!kl_value_int(v, out) || *out < least || *out > most)
        wrong(in, field, "must be an integer from %lld to %lld", (long long)least, (long long)most);
    return !in->st;
}

static bool chance(reader *in, const char *field, double *out)
{
    const kl_value *v = kl_value_get(in->v, field);
    if (!v || in->st)
        return false;
    *out = kl_value_double(v, -1);
    if (!(*out > 0 && *out <= 1))
        wrong(in, field, "must be a number above 0, and 1 at most");
    return !in->st;
}

static bool duration_of(reader *in, const kl_value *v, const char *field, kl_time most, kl_time *out)
{
    const char *given = kl_value_str(v);
    if (!v || in->st)
        return false;
    if (!given)
        wrong(in, field, "must be a duration such as \"1.5s\", not %s", kl_value_type_name(v));
    else if (kl_duration_parse(given, out, in->err))
        in->st = kl_err_prefix(in->err, "%s", field);
    else if (*out < 0 || *out > most)
        wrong(in, field, "must be from 0 to %lld s, not %s", (long long)(most / KL_SECONDS(1)), given);
    return !in->st;
}

static bool duration(reader *in, const char *field, kl_time *out)
{
    return duration_of(in, kl_value_get(in->v, field), field, KL_MINUTES(60 * 24 * 365), out);
}

static void verbs(reader *in)
{
    static const char *const known[] = {
        "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"};
    size_t most = sizeof known / sizeof *known;
    const kl_value *v = in->r->verb = kl_value_get(in->v, "verb");
    bool list = kl_value_type(v) == KL_ARRAY;
    for (size_t i = 0; v && !in->st && i < (list ? kl_value_len(v) : 1); i++) {
        const char *word = kl_value_str(list ? kl_value_item(v, i) : v);
        if (!word)
            wrong(in, "verb", "must be a verb, or a list of them");
        else if (index_of(word, known, most) == most)
            no_such(in, "verb", word, known, most, "");
    }
}

/* "100ms", {"from", "to"}, {"mean"} or {"p50", "p99"} */
static void latency(reader *in)
{
    const kl_value *v = kl_value_get(in->v, "latency");
    fault_rule *r = in->r;
    if (!v || in->st)
        return;
    r->effects.what |= FAULT_LATENCY;
    const kl_value *from = kl_value_get(v, "from"), *to = kl_value_get(v, "to"),
                   *mean = kl_value_get(v, "mean"), *p50 = kl_value_get(v, "p50"),
                   *p99 = kl_value_get(v, "p99");
    size_t n = kl_value_len(v);
    if (kl_value_type(v) != KL_OBJECT) {
        duration_of(in, v, "latency", LATENCY_MOST, &r->from);
    } else if (n == 2 && from && to) {
        r->spread = SPREAD_EVEN;
        duration_of(in, from, "latency.from", LATENCY_MOST, &r->from);
        duration_of(in, to, "latency.to", LATENCY_MOST, &r->to);
    } else if (n == 1 && mean) {
        r->spread = SPREAD_EXPONENTIAL;
        duration_of(in, mean, "latency.mean", LATENCY_MOST, &r->from);
    } else if (n == 2 && p50 && p99) {
        r->spread = SPREAD_LOGNORMAL;
        duration_of(in, p50, "latency.p50", LATENCY_MOST, &r->from);
        duration_of(in, p99, "latency.p99", LATENCY_MOST, &r->to);
    } else {
        wrong(in, "latency", "must be a duration, {from, to}, {mean} or {p50, p99}");
    }
    bool two = r->spread == SPREAD_EVEN || r->spread == SPREAD_LOGNORMAL;
    if (!in->st && two && r->to < r->from)
        wrong(in, "latency", "its second duration must not be below the first");
    if (!in->st && r->spread == SPREAD_LOGNORMAL && !r->from)
        wrong(in, "latency.p50", "must be above 0");
}

static const struct {
    const char *word;
    int code;
    const char *reason; /* NULL: of the code */
} errors[] = {
    {"conflict", 409, NULL},
    {"not_found", 404, NULL},
    {"already_exists", 409, "AlreadyExists"},
    {"forbidden", 403, "Forbidden"},
    {"unauthorized", 401, "Unauthorized"},
    {"invalid", 422, "Invalid"},
    {"throttled", 429, "TooManyRequests"},
    {"gone", 410, "Expired"},
    {"timeout", 504, "Timeout"},
    {"server", 500, "InternalError"},
    {"unavailable", 503, "ServiceUnavailable"},
};
#define NERRORS (sizeof errors / sizeof *errors)

static const char *reason_of(int64_t code)
{
    for (size_t i = 0; i < NERRORS; i++)
        if (errors[i].code == code && errors[i].reason)
            return errors[i].code == 409 ? NULL : errors[i].reason;
    return code == 404 ? NULL : "InternalError";
}

static void failure(reader *in)
{
    fault_rule *r = in->r;
    const char *word = NULL, *words[NERRORS];
    text(in, "error", &word);
    for (size_t i = 0; i < NERRORS; i++) {
        words[i] = errors[i].word;
        if (word && !strcmp(word, errors[i].word)) {
            r->code = errors[i].code;
            r->reason = errors[i].reason;
        }
    }
    if (word && !r->code && !in->st)
        no_such(in, "error", word, words, NERRORS, "; give code and reason");
    if (whole(in, "code", 400, 599, &r->code) && !word)
        r->reason = reason_of(r->code);
    text(in, "reason", &r->reason);
    text(in, "message", &r->message);
    whole(in, "retryAfter", 0, 24 * 3600, &r->retry_after);
    if (r->code)
        r->effects.what |= FAULT_ERROR;
    else if (r->reason || r->message || kl_value_get(in->v, "retryAfter"))
        wrong(in,
            r->reason        ? "reason"
                : r->message ? "message"
                             : "retryAfter",
            "belongs to a failure: give error or code");
}

static void cut(reader *in)
{
    static const char *const known[] = {"end", "reset", "half", "expired"};
    const char *word = NULL;
    kl_fault_plan *e = &in->r->effects;
    text(in, "cut", &word);
    size_t most = sizeof known / sizeof *known, i = word ? index_of(word, known, most) : most;
    if (i < most)
        e->cut = (kl_fault_cut)(KL_CUT_END + i);
    else if (word && !in->st)
        wrong(in, "cut", "must be \"end\", \"reset\", \"half\" or \"expired\", not \"%s\"", word);
    if (e->cut)
        e->what |= FAULT_CUT;
}

static void bookmarks(reader *in)
{
    const kl_value *v = kl_value_get(in->v, "bookmarks");
    const char *word = kl_value_str(v);
    kl_fault_plan *e = &in->r->effects;
    if (!v || in->st)
        return;
    e->what |= FAULT_BOOKMARKS;
    if (word && !strcmp(word, "none"))
        e->late = KL_NEVER;
    else
        duration(in, "bookmarks", &e->late);
}

static void of_watches(reader *in)
{
    kl_fault_plan *e = &in->r->effects;
    kl_fault_moment at = {0};
    cut(in);
    bookmarks(in);
    e->what |= duration(in, "stall", &e->stall) ? FAULT_STALL : 0;
    e->what |= duration(in, "lag", &e->lag) ? FAULT_LAG : 0;
    e->what |= chance(in, "twice", &e->twice) ? FAULT_TWICE : 0;
    e->what |= chance(in, "old", &e->old) ? FAULT_OLD : 0;
    bool given = whole(in, "events", 0, INT32_MAX, &at.events);
    given |= duration(in, "after", &at.after);
    if (given && !(e->what & (FAULT_CUT | FAULT_STALL)) && !in->st)
        wrong(in, kl_value_get(in->v, "events") ? "events" : "after",
            "sets when a watch is cut or stalls: give cut or stall");
    e->cut_at = e->stall_at = at;
}

static const char *const fields[] = {"verb", "kind", "group", "resource", "subresource", "namespace", "name",
    "path", "agent", "except", "probability", "times", "lasts", "latency", "error", "code", "reason",
    "message", "retryAfter", "half", "stale", "cut", "events", "after", "stall", "lag", "bookmarks", "twice",
    "old"};
#define NFIELDS (sizeof fields / sizeof *fields)

static void known_fields(reader *in)
{
    for (size_t i = 0; i < kl_value_len(in->v) && !in->st; i++) {
        size_t n;
        const char *key;
        kl_value_member(in->v, i, &key, &n);
        if (index_of(key, fields, NFIELDS) < NFIELDS)
            continue;
        const char *near = kl_suggest(key, fields, NFIELDS);
        in->st = near ? kl_fail(in->err, KL_EINVAL, "unknown field \"%s\"; did you mean \"%s\"?", key, near)
                      : kl_fail(in->err, KL_EINVAL, "unknown field \"%s\"", key);
    }
}

static bool may_be(const fault_rule *r, const char *verb)
{
    return !r->verb || kl_value_has_str(r->verb, verb)
        || (kl_value_str(r->verb) && !strcmp(kl_value_str(r->verb), verb));
}

static void fits(reader *in)
{
    const fault_rule *r = in->r;
    if (in->st)
        return;
    if (!r->effects.what)
        in->st = kl_fail(in->err, KL_EINVAL,
            "a rule needs a fault: latency, error, half, stale, cut, stall, lag, bookmarks, twice or "
            "old");
    else if ((r->effects.what & FAULT_OF_WATCHES) && !may_be(r, "watch"))
        wrong(in, "verb", "cut, stall, lag, bookmarks, twice and old apply only to watches: add \"watch\"");
    else if ((r->effects.what & FAULT_STALE) && !may_be(r, "list"))
        wrong(in, "verb", "stale applies only to lists: add \"list\"");
}

kl_status kl__fault_rule_read(const kl_value *v, kl_time now, fault_rule **out, kl_err *err)
{
    if (kl_value_type(v) != KL_OBJECT)
        return kl_fail(err, KL_EINVAL, "must be an object, not %s", kl_value_type_name(v));
    fault_rule *r = kl_new(fault_rule);
    *r = (fault_rule){.given = kl_value_ref(v), .probability = 1, .times = -1, .until = KL_NEVER};
    kl_list_init(&r->link);
    reader in = {.v = v, .r = r, .err = err};
    kl_time lasts = 0;
    const struct {
        const char *field;
        const char **to;
    } texts[] = {{"kind", &r->kind}, {"group", &r->group}, {"resource", &r->resource},
        {"subresource", &r->sub}, {"namespace", &r->ns}, {"name", &r->name}, {"path", &r->path},
        {"agent", &r->agent}, {"except", &r->except}};
    known_fields(&in);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        text(&in, texts[i].field, texts[i].to);
    verbs(&in);
    chance(&in, "probability", &r->probability);
    r->counted = whole(&in, "times", 1, INT32_MAX, &r->times);
    if (duration(&in, "lasts", &lasts))
        r->until = now + lasts;
    latency(&in);
    failure(&in);
    const kl_value *half = kl_value_get(v, "half");
    if (half && kl_value_type(half) != KL_BOOL)
        wrong(&in, "half", "must be true or false");
    r->effects.half = kl_value_bool(half, false);
    r->effects.what |= r->effects.half ? FAULT_HALF : 0;
    r->effects.what |= whole(&in, "stale", 1, INT32_MAX, &r->effects.stale) ? FAULT_STALE : 0;
    of_watches(&in);
    fits(&in);
    if (in.st)
        kl__fault_rule_free(r);
    else
        *out = r;
    return in.st;
}

void kl__fault_rule_free(fault_rule *r)
{
    kl_list_remove(&r->link);
    kl_value_unref(r->given);
    kl_free(r);
}

const kl_value *kl__fault_rule_show(const fault_rule *r)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(r->given); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(r->given, i, &key, &n);
        kl_build_kvalue(b, key, v);
    }
    kl_build_kint(b, "hits", (int64_t)r->hits);
    if (r->counted)
        kl_build_kint(b, "left", r->times);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* ------------------------------------------------------------------ matching and drawing */

static bool is(const char *wanted, const char *have) { return !wanted || (have && !strcmp(wanted, have)); }

static bool begins(const char *have, const char *with) { return have && !strncmp(have, with, strlen(with)); }

/* "apps/v1/Deployment", "v1/Pod", or the name alone for all groups and versions. */
static bool kind_is(const char *wanted, const kl__kind *k)
{
    const char *slash = strrchr(wanted, '/');
    if (strcmp(slash ? slash + 1 : wanted, k->kind) != 0)
        return false;
    char *version = kl__kind_api_version(k);
    bool same = !slash
        || (strlen(version) == (size_t)(slash - wanted)
            && !strncmp(version, wanted, (size_t)(slash - wanted)));
    kl_free(version);
    return same;
}

bool kl__fault_rule_matches(const fault_rule *r, const kl_fault_call *c)
{
    if (r->verb && (!c->verb || !may_be(r, c->verb)))
        return false;
    if ((r->except && begins(c->agent, r->except)) || (r->agent && !begins(c->agent, r->agent)))
        return false;
    if ((r->kind || r->group || r->resource) && !c->kind)
        return false;
    if (r->kind && !kind_is(r->kind, c->kind))
        return false;
    if (c->kind && !(is(r->group, c->kind->group) && is(r->resource, c->kind->plural)))
        return false;
    if (r->path && fnmatch(r->path, c->path, 0) != 0)
        return false;
    return is(r->sub, c->sub) && is(r->ns, c->ns) && is(r->name, c->name);
}

kl_time kl__fault_rule_latency(fault_rule *r)
{
    double t = (double)r->from, u = 1 - kl_random_unit(&r->chance);
    switch (r->spread) {
    case SPREAD_FIXED: break;
    case SPREAD_EVEN: return kl_random_between(&r->chance, r->from, r->to);
    case SPREAD_EXPONENTIAL: t *= -log(u); break;
    case SPREAD_LOGNORMAL: {
        double z = sqrt(-2 * log(u)) * cos(2 * acos(-1) * kl_random_unit(&r->chance));
        t *= exp(log((double)r->to / t) / Z99 * z);
        break;
    }
    }
    return t < (double)LATENCY_MOST ? (kl_time)t : LATENCY_MOST;
}

void kl__fault_plan_take(kl_fault_plan *plan, const fault_rule *r, unsigned which)
{
    const kl_fault_plan *e = &r->effects;
    plan->what |= which;
    if (which & FAULT_HALF)
        plan->half = true;
    if (which & FAULT_STALE)
        plan->stale = e->stale;
    if (which & FAULT_CUT) {
        plan->cut = e->cut;
        plan->cut_at = e->cut_at;
    }
    if (which & FAULT_STALL) {
        plan->stall = e->stall;
        plan->stall_at = e->stall_at;
    }
    if (which & FAULT_LAG)
        plan->lag = e->lag;
    if (which & FAULT_BOOKMARKS)
        plan->late = e->late;
    if (which & FAULT_TWICE)
        plan->twice = e->twice;
    if (which & FAULT_OLD)
        plan->old = e->old;
}
