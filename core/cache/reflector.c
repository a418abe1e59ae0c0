/* reflector.c - the list/watch state machine: inputs go in, the next action comes out.
 *
 *   idle --start--> listing --page--> listing --last page--> watching --ended--> watching (from the last resourceVersion)
 *        `--start--> streaming --the initial events' end--> watching      streaming --refused, silent--> listing
 *   watching --gone--> listing or streaming      any --failed--> waiting --timer--> where it was      any --stop--> stopped
 *
 * Three rules keep the store true. A list counts only when its last page has arrived (a stream: the end of
 * its initial events), so a failed page deletes nothing. The resourceVersion moves only with received events,
 * so a resumed watch misses nothing. And only after the server has dropped its history (410) there is a new
 * list. */
#include "cache/reflector.h"

#include <string.h>
#include "base/mem.h"
#include "base/random.h"

#define PAGE_SIZE 500

/* client-go's reflector: 800 ms doubling to 30 s, each drawn from [d, 2d). */
#define BACKOFF_BASE KL_MILLISECONDS(800)
#define BACKOFF_MAX KL_SECONDS(30)
/* A refused or broken connection is cheap to retry, and the first success ends the outage for all
 * reflectors. */
#define UNREACHED_MAX KL_SECONDS(4)
/* The minimum time between two such early ends of a wait, for a flapping server. */
#define ANSWERED_APART KL_SECONDS(10)

/* Watches end by themselves after 5 to 10 minutes, so that they spread over the servers and not all at
 * once. */
#define WATCH_SECONDS_MIN 300
#define WATCH_SECONDS_MAX 600
/* How much later than requested a watch may end before we end it. */
#define WATCH_OVERTIME KL_SECONDS(30)

/* A watch that ends sooner counts as short; one that lived longer shows that the server is healthy. */
#define WATCH_SHORT KL_SECONDS(1)
#define WATCH_SUSTAINED KL_MINUTES(1)
/* The number of short watches in a row with events that are resumed at once. */
#define SHORT_FREE 3

/* The number of watches in a row that ended at the same version with an error of the next event - one that
 * the server cannot encode, or that cannot be decoded - before a list gets past it. */
#define STUCK_TRIES 5

/* Servers fill their pages: after this many pages in a row without a new item the list will not end. */
#define BARREN_PAGES 5
/* At 500 objects per page, this is more than an etcd can hold. */
#define PAGES_MAX 100000

/* API servers send a bookmark about every 60 s. A watch that has shown one and then is silent for this
 * long is stalled. Where no bookmark was seen, silence may be normal: such a watch is resumed after this
 * long, then twice, four times... */
#define SILENCE KL_SECONDS(75)

/* A server that has begun to send initial events continues; one that is silent for this long does not know
 * the request. */
#define STREAM_SILENCE KL_SECONDS(30)
/* The number of streams in a row that broke or stayed silent before their end, before a list takes over. */
#define STREAM_TRIES 3

typedef enum state { IDLE, LISTING, STREAMING, WATCHING, WAITING, STOPPED } state;
/* The action after a wait. */
typedef enum next { SYNC, NEXT_PAGE, WATCH } next;

struct kl_reflector {
    state state;
    next next; /* WAITING */
    kl_random random;
    /* WAITING: end of the wait. WATCHING: when silence becomes a stall. KL_NEVER otherwise */
    kl_time until;

    char *rv; /* the last seen, never NULL */
    size_t rv_cap;
    bool rv_unavailable; /* the server cannot serve lists at rv: ask for the newest */
    /* frames of this watch move rv (not so for the synthetic adds of a watch from nowhere) */
    bool rv_ordered;

    bool stream;        /* ask for initial events; false for good once the server said that it cannot */
    int streams_failed; /* in a row */

    int64_t page_size;
    bool paged; /* a list at "0" came in pages: this server pages all lists */
    /* this list goes without pages: the history was gone in the middle of the last one */
    bool whole;
    char *list_rv;        /* the version of the running list; "" the newest */
    char *list_got;       /* the resourceVersion of its first page, or NULL */
    char *continue_token; /* of the next page, or NULL */
    int barren;           /* pages without an item that is new, in a row */
    int pages;            /* pages received of this list */

    kl_time since;      /* when this watch was asked for */
    kl_time last_frame; /* or since */
    kl_time watch_timeout;
    bool opened, bookmarked; /* this watch: answered; has shown a bookmark */
    uint64_t watch_frames;

    int failures;         /* steps of the backoff, until sustained success or the end of an outage */
    bool asked;           /* WAITING: the server said for how long */
    kl_time answered;     /* when an outage was last known to be over; -1: never */
    int relists;          /* lists for lost history since the last sustained success */
    int shorts;           /* short watches in a row */
    int silent;           /* silent watches in a row */
    int stuck;            /* watches in a row that failed at the next event */
    bool parked, too_big; /* too_big: parked until something gets past the object */
    char *message;
    kl_status failure; /* the kind of failure that `message` describes */
    kl_reflector_counts counts;
};

kl_reflector *kl_reflector_new(uint64_t seed, int64_t page_size, bool stream)
{
    kl_reflector *r = kl_new(kl_reflector);
    r->random.state = seed;
    r->page_size = page_size > 0 ? page_size : PAGE_SIZE;
    r->stream = stream;
    r->rv_cap = 32;
    r->rv = kl_zalloc(r->rv_cap);
    r->list_rv = kl_strdup("");
    r->until = KL_NEVER;
    r->answered = -1;
    return r;
}

void kl_reflector_free(kl_reflector *r)
{
    if (!r)
        return;
    kl_free(r->rv);
    kl_free(r->list_rv);
    kl_free(r->list_got);
    kl_free(r->continue_token);
    kl_free(r->message);
    kl_free(r);
}

static void replace(char **at, const char *s)
{
    char *fresh = kl_strdup(s);
    kl_free(*at);
    *at = fresh;
}

static void rv_set(kl_reflector *r, const char *rv)
{
    size_t n = strlen(rv) + 1;
    if (n > r->rv_cap)
        r->rv = kl_realloc(r->rv, r->rv_cap = n);
    memcpy(r->rv, rv, n);
}

/* "" and "0" name no point in history. */
static bool rv_is_point(const char *rv) { return *rv && strcmp(rv, "0"); }

/* --- what to do next ---------------------------------------------------------------------- */

static kl_reflector_action go_on(const kl_reflector *r)
{
    return (kl_reflector_action){.what = KL_REFLECTOR_GO_ON, .until = r->until};
}

static kl_reflector_action stop(kl_reflector *r)
{
    r->state = STOPPED;
    r->until = KL_NEVER;
    return (kl_reflector_action){.what = KL_REFLECTOR_STOPPED, .until = KL_NEVER};
}

/* The next request of the running list. Only lists at "" or "0" are paged, so that others come from the
 * server's watch cache; a server that paged a list at "0" serves from its store anyway. */
static kl_reflector_action list_request(kl_reflector *r)
{
    bool pages = !r->whole && (r->paged || !rv_is_point(r->list_rv));
    r->state = LISTING;
    r->until = KL_NEVER;
    r->counts.pages++;
    return (kl_reflector_action){
        .what = KL_REFLECTOR_LIST,
        .until = KL_NEVER,
        .list =
            {
                .rv = r->continue_token ? NULL : r->list_rv, /* a continue token carries its own */
                .limit = pages ? r->page_size : 0,
                .continue_token = r->continue_token,
            },
    };
}

static kl_reflector_action list_fresh(kl_reflector *r, const char *rv, bool whole)
{
    replace(&r->list_rv, rv);
    replace(&r->list_got, NULL);
    replace(&r->continue_token, NULL);
    r->whole = whole;
    r->barren = r->pages = 0;
    r->counts.lists++;
    return list_request(r);
}

static kl_reflector_action list(kl_reflector *r)
{
    return list_fresh(r, r->rv_unavailable ? "" : *r->rv ? r->rv : "0", false);
}

static kl_time silence_end(const kl_reflector *r)
{
    if (r->state == STREAMING)
        return r->last_frame + STREAM_SILENCE;
    kl_time longest = r->watch_timeout + WATCH_OVERTIME;
    kl_time patience = SILENCE;
    for (int i = 0; !r->bookmarked && i < r->silent && patience < longest; i++)
        patience *= 2;
    kl_time end = r->last_frame + patience;
    return end < r->since + longest ? end : r->since + longest;
}

static kl_reflector_action watch_request(kl_reflector *r, state s, const char *rv, kl_time now)
{
    int64_t seconds = kl_random_between(&r->random, WATCH_SECONDS_MIN, WATCH_SECONDS_MAX);
    r->state = s;
    r->watch_timeout = KL_SECONDS(seconds);
    /* before the request: a proxy may hold the answer's head until the first frame */
    r->since = r->last_frame = now;
    r->opened = r->bookmarked = false;
    r->watch_frames = 0;
    r->rv_ordered = rv_is_point(r->rv);
    r->until = silence_end(r);
    r->counts.watches++;
    return (kl_reflector_action){
        .what = KL_REFLECTOR_WATCH,
        .until = r->until,
        .watch = {.rv = rv, .timeout_seconds = seconds, .bookmarks = true, .initial = s == STREAMING},
    };
}

static kl_reflector_action watch(kl_reflector *r, kl_time now)
{
    return watch_request(r, WATCHING, r->rv, now);
}

/* Without a resourceVersion the server sends the newest state; with one, nothing older than that. */
static kl_reflector_action stream(kl_reflector *r, kl_time now)
{
    replace(&r->continue_token, NULL);
    r->counts.streams++;
    return watch_request(r, STREAMING, r->rv_unavailable ? "" : r->rv, now);
}

/* The complete state, from the beginning. */
static kl_reflector_action sync(kl_reflector *r, kl_time now) { return r->stream ? stream(r, now) : list(r); }

/* A watch without a point in history cannot tell what was deleted meanwhile. */
static kl_reflector_action watch_again(kl_reflector *r, kl_time now)
{
    return rv_is_point(r->rv) ? watch(r, now) : sync(r, now);
}

static kl_reflector_action resume(kl_reflector *r, kl_time now)
{
    return r->next == SYNC ? sync(r, now) : r->next == NEXT_PAGE ? list_request(r) : watch_again(r, now);
}

/* Whether no server answered. */
static bool unreached(const kl_err *err)
{
    kl_status st = err ? err->status : KL_OK;
    return st == KL_ECONNECT || st == KL_ECLOSED || st == KL_EIO;
}

static kl_reflector_action wait_until(kl_reflector *r, kl_time until)
{
    r->until = until;
    return (kl_reflector_action){.what = KL_REFLECTOR_WAIT, .until = until, .keep = r->next == NEXT_PAGE};
}

static kl_reflector_action back_off(kl_reflector *r, next next, const kl_err *err, kl_time now)
{
    kl_time d = BACKOFF_BASE, max = unreached(err) ? UNREACHED_MAX : BACKOFF_MAX;
    for (int i = 0; i < r->failures && d < max; i++)
        d *= 2;
    if (d < max)
        r->failures++;
    else
        d = max;
    d = kl_random_between(&r->random, d, 2 * d);
    r->asked = err && err->retry_after_ns > d;
    if (r->asked)
        d = err->retry_after_ns;
    r->state = WAITING;
    r->next = next;
    return wait_until(r, now + d);
}

/* The wait was at least partly due to an outage, which is over: the backoff is reset. Waiting reflectors do
 * not all start at the same moment. */
static kl_reflector_action answered(kl_reflector *r, kl_time now)
{
    bool soon = r->answered >= 0 && now - r->answered < ANSWERED_APART;
    if (!soon) {
        r->answered = now;
        r->failures = 0;
    }
    if (soon || r->state != WAITING || r->asked)
        return go_on(r);
    kl_time until = now + kl_random_between(&r->random, 0, BACKOFF_BASE);
    return wait_until(r, until < r->until ? until : r->until);
}

/* The server has dropped the history. The first new list is requested at once; repeated ones are delayed. */
static kl_reflector_action relist(kl_reflector *r, const kl_err *err, kl_time now)
{
    r->counts.relists++;
    return r->relists++ ? back_off(r, SYNC, err, now) : sync(r, now);
}

/* --- what an input means ------------------------------------------------------------------ */

static void failed(kl_reflector *r, const kl_err *err)
{
    kl_status st = err ? err->status : KL_OK;
    r->counts.errors++;
    r->failure = st;
    bool missed = r->parked && !r->too_big;
    r->too_big = st == KL_ETOOBIG;
    r->parked = r->too_big || st == KL_EAUTH || st == KL_EFORBIDDEN || st == KL_ENOTFOUND
        || st == KL_EREJECTED;
    replace(&r->message, err && err->message ? err->message : kl_status_name(st));
    /* A kind that was missing or forbidden is available: new failures are unrelated. */
    if (missed && !r->parked)
        r->failures = 0;
}

static void recovered(kl_reflector *r)
{
    r->parked = r->too_big = false;
    r->failure = KL_OK;
    replace(&r->message, NULL);
}

static void sustained(kl_reflector *r) { r->failures = r->relists = r->shorts = 0; }

/* Whether the failure is transient, or of the network, and the same request may succeed later. */
static bool passes(const kl_err *err)
{
    switch (err ? err->status : KL_OK) {
    case KL_ECLOSED:
    case KL_ETIMEOUT:
    case KL_ECONNECT:
    case KL_EIO:
    case KL_ETHROTTLED:
    case KL_ESERVER: return true;
    default: return false;
    }
}

/* The server is behind the resourceVersion that we asked for: restored from a backup, or another replica. */
static bool too_large(const kl_err *err)
{
    return err
        && ((err->details && strstr(err->details, "ResourceVersionTooLarge"))
            || (err->message && strstr(err->message, "Too large resource version")));
}

/* A list without progress would be requested without end, as fast as the server answers. */
static kl_reflector_action pages_lead_nowhere(kl_reflector *r, const char *why, kl_time now)
{
    kl_err err = KL_ERR_INIT;
    kl_fail(&err, KL_ESERVER,
        "the list does not end: %s; does a proxy before the API server answer from a cache?", why);
    failed(r, &err);
    replace(&r->continue_token, NULL);
    kl_reflector_action a = back_off(r, SYNC, &err, now);
    kl_err_fini(&err);
    return a;
}

static kl_reflector_action page(kl_reflector *r, const kl_reflector_input *in, kl_time now)
{
    if (!r->list_got)
        replace(&r->list_got, in->rv ? in->rv : "");
    if (in->continue_token && *in->continue_token) {
        r->barren = in->barren ? r->barren + 1 : 0;
        if (r->continue_token && !strcmp(r->continue_token, in->continue_token))
            return pages_lead_nowhere(r, "a page returned the continue token of its own request", now);
        if (r->barren >= BARREN_PAGES)
            return pages_lead_nowhere(r, "pages bring new continue tokens but no new items", now);
        if (++r->pages >= PAGES_MAX)
            return pages_lead_nowhere(r, "there are more than 100,000 pages", now);
        if (!strcmp(r->list_rv, "0"))
            r->paged = true;
        replace(&r->continue_token, in->continue_token);
        return list_request(r);
    }
    rv_set(r, r->list_got);
    r->stuck = 0;
    replace(&r->continue_token, NULL);
    r->rv_unavailable = false;
    recovered(r);
    kl_reflector_action a = watch(r, now);
    a.complete = true;
    return a;
}

static kl_reflector_action list_failed(kl_reflector *r, const kl_err *err, kl_time now)
{
    bool gone = (err && err->status == KL_EGONE) || too_large(err);
    failed(r, err);
    if (gone && r->continue_token)
        return list_fresh(r, r->list_rv, true);
    if (gone && *r->list_rv) {
        r->rv_unavailable = true;
        return list(r);
    }
    return back_off(r, r->continue_token && passes(err) ? NEXT_PAGE : SYNC, err, now);
}

/* A stream of initial events failed. A failure that would also hit a list is retried, after a while;
 * otherwise a list takes over at once. */
static kl_reflector_action stream_failed(kl_reflector *r, const kl_err *err, kl_time now)
{
    kl_status st = err ? err->status : KL_OK;
    if (st)
        failed(r, err);
    if ((st == KL_EGONE || too_large(err)) && *r->rv && !r->rv_unavailable) {
        r->rv_unavailable = true;
        return stream(r, now);
    }
    /* the server does not know sendInitialEvents, or the feature is off */
    if (st == KL_EREJECTED)
        r->stream = false;
    else if (st == KL_ETHROTTLED || st == KL_ECONNECT)
        return back_off(r, SYNC, err, now);
    else if ((!st || passes(err)) && st != KL_ESERVER && ++r->streams_failed < STREAM_TRIES)
        return back_off(r, SYNC, err, now);
    r->streams_failed = 0;
    r->counts.fallbacks++;
    return list(r);
}

static kl_reflector_action stuck(kl_reflector *r, const kl_err *err, kl_time now)
{
    if (++r->stuck < STUCK_TRIES)
        return back_off(r, WATCH, err, now);
    r->stuck = 0;
    return back_off(r, SYNC, err, now);
}

/* A clean close and a broken connection are treated alike: resume. */
static kl_reflector_action closed(kl_reflector *r, const kl_err *err, kl_time now)
{
    kl_time lived = now - r->since;
    if (lived < WATCH_SHORT)
        r->counts.short_watches++;
    else
        r->shorts = 0;
    if (lived >= WATCH_SUSTAINED || (r->watch_frames && lived >= WATCH_SHORT)) {
        sustained(r);
        return watch_again(r, now);
    }
    if (r->opened && (lived >= WATCH_SHORT || (r->watch_frames && r->shorts++ < SHORT_FREE)))
        return watch_again(r, now);
    return back_off(r, WATCH, err, now);
}

static kl_reflector_action ended(kl_reflector *r, const kl_err *err, kl_time now)
{
    kl_status st = err ? err->status : KL_OK;
    if (r->state == STREAMING)
        return stream_failed(r, err, now);
    if (st == KL_OK)
        return closed(r, err, now);
    failed(r, err);
    if (st == KL_EGONE || too_large(err))
        return relist(r, err, now);
    switch (st) {
    case KL_ECLOSED:
    case KL_ETIMEOUT:
    case KL_ECONNECT:
    case KL_EIO: return closed(r, err, now);
    /* the kind was removed, or the server refuses our request: start over */
    case KL_ENOTFOUND:
    case KL_EREJECTED: return back_off(r, SYNC, err, now);
    case KL_ESYNTAX: return stuck(r, err, now);
    default: return back_off(r, WATCH, err, now);
    }
}

/* HTTP was 200, but the stream has an error. 429 and 5xx are transient; after any other this watch cannot
 * continue. */
static kl_reflector_action stream_error(kl_reflector *r, const kl_err *err, kl_time now)
{
    if (r->state == STREAMING)
        return stream_failed(r, err, now);
    failed(r, err);
    kl_status st = err ? err->status : KL_ESERVER;
    if (st == KL_EGONE || too_large(err))
        return relist(r, err, now);
    if (st == KL_ESERVER)
        return stuck(r, err, now);
    bool resumes = st == KL_ETHROTTLED || st == KL_ETIMEOUT || st == KL_EAUTH || st == KL_EFORBIDDEN;
    return back_off(r, resumes ? WATCH : SYNC, err, now);
}

/* Only the end of the initial events has a version: they come in key order. */
static kl_reflector_action initial_frame(kl_reflector *r, const kl_reflector_input *in)
{
    bool end = in->type == KL_BOOKMARK && in->initial_end && in->rv && *in->rv;
    kl_reflector_action a = {0};
    if (end) {
        rv_set(r, in->rv);
        r->state = WATCHING;
        r->rv_ordered = true;
        r->rv_unavailable = false;
        r->streams_failed = 0;
        recovered(r);
    }
    r->until = silence_end(r);
    a = go_on(r);
    a.complete = end;
    return a;
}

static kl_reflector_action frame(kl_reflector *r, const kl_reflector_input *in, kl_time now)
{
    r->counts.frames++;
    r->watch_frames++;
    r->opened = true;
    r->last_frame = now;
    if (r->state == STREAMING)
        return initial_frame(r, in);
    if (in->type != KL_ADDED)
        r->rv_ordered = true;
    if (in->type == KL_BOOKMARK) {
        r->bookmarked = true;
        r->silent = 0;
    }
    if (in->rv && *in->rv && r->rv_ordered) {
        r->stuck = strcmp(in->rv, r->rv) ? 0 : r->stuck;
        rv_set(r, in->rv);
    }
    if (r->message)
        recovered(r);
    if (now - r->since >= WATCH_SHORT)
        sustained(r);
    r->until = silence_end(r);
    return go_on(r);
}

static kl_reflector_action timer(kl_reflector *r, kl_time now)
{
    if (now < r->until)
        return go_on(r);
    if (r->state == WAITING)
        return resume(r, now);
    if (r->state == STREAMING) {
        r->counts.stalls++;
        return stream_failed(r, NULL, now);
    }
    if (r->state != WATCHING)
        return go_on(r);
    r->counts.stalls++;
    r->silent++;
    return watch_again(r, now);
}

static bool open_watch(const kl_reflector *r) { return r->state == WATCHING || r->state == STREAMING; }

kl_reflector_action kl_reflector_step(kl_reflector *r, const kl_reflector_input *in, kl_time now)
{
    if (r->state == STOPPED || in->kind == KL_REFLECTOR_STOP)
        return stop(r);
    /* A late input of a finished request does not concern the open one. */
    switch (in->kind) {
    case KL_REFLECTOR_START: return r->state == IDLE ? sync(r, now) : go_on(r);
    case KL_REFLECTOR_PAGE: return r->state == LISTING ? page(r, in, now) : go_on(r);
    case KL_REFLECTOR_LIST_FAILED: return r->state == LISTING ? list_failed(r, in->err, now) : go_on(r);
    case KL_REFLECTOR_FRAME: return open_watch(r) ? frame(r, in, now) : go_on(r);
    case KL_REFLECTOR_STREAM_ERROR: return open_watch(r) ? stream_error(r, in->err, now) : go_on(r);
    case KL_REFLECTOR_ENDED: return open_watch(r) ? ended(r, in->err, now) : go_on(r);
    case KL_REFLECTOR_TIMER: return timer(r, now);
    case KL_REFLECTOR_KICK: return r->state == WAITING ? resume(r, now) : go_on(r);
    case KL_REFLECTOR_ANSWERED: return answered(r, now);
    case KL_REFLECTOR_OPENED:
        if (open_watch(r)) {
            r->opened = true;
            if (r->message && !r->too_big)
                recovered(r);
        }
        return go_on(r);
    case KL_REFLECTOR_STOP: break;
    }
    return stop(r);
}

/* --- looking at it ------------------------------------------------------------------------ */

const char *kl_reflector_state(const kl_reflector *r)
{
    static const char *const names[] = {"idle", "listing", "streaming", "watching", "waiting", "stopped"};
    return r->parked && r->state == WAITING ? "parked" : names[r->state];
}

const char *kl_reflector_rv(const kl_reflector *r) { return r->rv; }
const char *kl_reflector_message(const kl_reflector *r) { return r->message; }
kl_status kl_reflector_failure(const kl_reflector *r) { return r->failure; }
bool kl_reflector_parked(const kl_reflector *r) { return r->parked; }
const kl_reflector_counts *kl_reflector_counters(const kl_reflector *r) { return &r->counts; }
