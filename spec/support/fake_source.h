/* fake_source.h - a list/watch source that the test controls: no socket, no thread, no sleep.
 *
 * The spec sees what was asked for, answers it, and moves the clock. One request is open at a time, as an
 * informer keeps it. Posted functions run in fake_pump. */
#ifndef KL_SPEC_FAKE_SOURCE_H
#define KL_SPEC_FAKE_SOURCE_H

#include "support/test.h"
#include "base/mem.h"
#include "base/sync.h"
#include "cache/source.h"

typedef enum fake_open { FAKE_NOTHING, FAKE_LIST, FAKE_WATCH } fake_open;

typedef struct fake_post {
    struct fake_post *next;
    void (*fn)(void *);
    void *arg;
} fake_post;

typedef struct fake_source {
    kl_clock *clock;
    fake_open open;
    uint64_t id; /* of the open request */
    kl_source_sink sink;
    char rv[64], continue_token[64]; /* what was asked for */
    char api_version[64], kind[64];  /* of the items; "" nobody said */
    bool has_rv, bookmarks, initial;
    int64_t limit, timeout_seconds;
    int lists, watches, cancels;
    int broken; /* so many requests more fail on the spot */
    uint64_t next_id;
    uint64_t timer_id;
    kl_time timer_at;
    void (*timer_fn)(void *);
    void *timer_arg;
    kl_mutex mu; /* of the queue: post is for any thread */
    fake_post *first, **last;
    bool freed;
} fake_source;

static inline uint64_t fake__asked(fake_source *f)
{
    uint64_t id = f->id = ++f->next_id;
    if (f->broken > 0) {
        kl_err err = KL_ERR_INIT;
        f->broken--;
        f->open = FAKE_NOTHING;
        f->sink.done(f->sink.arg, kl_fail(&err, KL_ECONNECT, "no token file"), 0, NULL, &err);
        kl_err_fini(&err);
    }
    return id;
}

static inline uint64_t fake__list(void *self, const kl_list_request *r, const kl_source_sink *sink)
{
    fake_source *f = self;
    assert_int_equal(f->open, FAKE_NOTHING);
    f->open = FAKE_LIST;
    f->has_rv = r->rv != NULL;
    snprintf(f->rv, sizeof f->rv, "%s", r->rv ? r->rv : "");
    snprintf(f->continue_token, sizeof f->continue_token, "%s", r->continue_token ? r->continue_token : "");
    snprintf(f->api_version, sizeof f->api_version, "%s", r->api_version ? r->api_version : "");
    snprintf(f->kind, sizeof f->kind, "%s", r->kind ? r->kind : "");
    f->limit = r->limit;
    f->sink = *sink;
    f->lists++;
    return fake__asked(f);
}

static inline uint64_t fake__watch(void *self, const kl_watch_request *r, const kl_source_sink *sink)
{
    fake_source *f = self;
    assert_int_equal(f->open, FAKE_NOTHING);
    f->open = FAKE_WATCH;
    f->has_rv = r->rv != NULL;
    snprintf(f->rv, sizeof f->rv, "%s", r->rv ? r->rv : "");
    f->timeout_seconds = r->timeout_seconds;
    f->bookmarks = r->bookmarks;
    f->initial = r->initial;
    f->sink = *sink;
    f->watches++;
    return fake__asked(f);
}

static inline void fake__cancel(void *self, uint64_t id)
{
    fake_source *f = self;
    assert_true(f->open != FAKE_NOTHING && id == f->id);
    f->open = FAKE_NOTHING;
    f->cancels++;
}

static inline uint64_t fake__timer(void *self, kl_time after, void (*fn)(void *), void *arg)
{
    fake_source *f = self;
    assert_int_equal(f->timer_id, 0);
    f->timer_at = kl_clock_now(f->clock) + after;
    f->timer_fn = fn;
    f->timer_arg = arg;
    return f->timer_id = ++f->next_id;
}

static inline void fake__timer_cancel(void *self, uint64_t id)
{
    fake_source *f = self;
    assert_int_equal(f->timer_id, id);
    f->timer_id = 0;
}

static inline void fake__post(void *self, void (*fn)(void *), void *arg)
{
    fake_source *f = self;
    fake_post *p = kl_new(fake_post);
    p->fn = fn;
    p->arg = arg;
    kl_lock(&f->mu);
    *f->last = p;
    f->last = &p->next;
    kl_unlock(&f->mu);
}

static inline void fake__free(void *self) { ((fake_source *)self)->freed = true; }

static inline void fake_init(fake_source *f)
{
    *f = (fake_source){0};
    f->clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1700000000));
    kl_mutex_init(&f->mu);
    f->last = &f->first;
}

static inline void fake_fini(fake_source *f)
{
    assert_true(f->freed);
    assert_null(f->first);
    kl_clock_fake_free(f->clock);
    kl_mutex_fini(&f->mu);
}

static inline kl_source fake_source_of(fake_source *f)
{
    return (kl_source){fake__list, fake__watch, fake__cancel, fake__timer, fake__timer_cancel, fake__post,
        fake__free, f, NULL, NULL, false};
}

/* Runs what was posted, also what that posts. */
static inline void fake_pump(fake_source *f)
{
    for (;;) {
        kl_lock(&f->mu);
        fake_post *p = f->first;
        if (p) {
            f->first = p->next;
            if (!f->first)
                f->last = &f->first;
        }
        kl_unlock(&f->mu);
        if (!p)
            return;
        p->fn(p->arg);
        kl_free(p);
    }
}

/* Time passes; timers fire in order at their times. */
static inline void fake_advance(fake_source *f, kl_time by)
{
    kl_time end = kl_clock_now(f->clock) + by;
    while (f->timer_id && f->timer_at <= end) {
        kl_time now = kl_clock_now(f->clock);
        if (f->timer_at > now)
            kl_clock_advance(f->clock, f->timer_at - now);
        f->timer_id = 0;
        f->timer_fn(f->timer_arg);
    }
    kl_clock_advance(f->clock, end - kl_clock_now(f->clock));
}

/* --- answering ---------------------------------------------------------------------------- */

static inline const kl_value *fake_json(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static inline void fake_done(
    fake_source *f, kl_status st, int code, const char *envelope, const char *message)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *e = envelope ? fake_json(envelope) : NULL;
    assert_true(f->open != FAKE_NOTHING);
    if (st) {
        kl_fail(&err, st, "%s", message ? message : "as the script says");
        err.http_code = code;
    }
    f->open = FAKE_NOTHING;
    f->sink.done(f->sink.arg, st, code, e, &err);
    kl_value_unref(e);
    kl_err_fini(&err);
}

static inline void fake_item(fake_source *f, const char *json)
{
    kl_err err = KL_ERR_INIT;
    assert_int_equal(f->open, FAKE_LIST);
    assert_ok(f->sink.item(f->sink.arg, fake_json(json), &err), &err);
}

/* The end of a page. */
static inline void fake_listed(fake_source *f, const char *rv, const char *continue_token)
{
    char text[512];
    assert_int_equal(f->open, FAKE_LIST);
    snprintf(text, sizeof text,
        "{\"kind\":\"%sList\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%s\",\"continue\":\"%"
        "s\"}}",
        *f->kind ? f->kind : "Pod", *f->api_version ? f->api_version : "v1", rv,
        continue_token ? continue_token : "");
    fake_done(f, KL_OK, 200, text, NULL);
}

static inline void fake_fails(fake_source *f, kl_status st, int code) { fake_done(f, st, code, NULL, NULL); }

static inline void fake_opens(fake_source *f)
{
    assert_int_equal(f->open, FAKE_WATCH);
    f->sink.opened(f->sink.arg);
}

static inline void fake_event(fake_source *f, const char *type, const char *json)
{
    kl_err err = KL_ERR_INIT;
    assert_int_equal(f->open, FAKE_WATCH);
    kl_status st = f->sink.event(f->sink.arg, type, fake_json(json), &err);
    if (st) { /* as source.h promises: the request ends with that status */
        f->open = FAKE_NOTHING;
        f->sink.done(f->sink.arg, st, 200, NULL, &err);
    }
    kl_err_fini(&err);
}

static inline void fake_bookmark(fake_source *f, const char *rv)
{
    char text[160];
    snprintf(text, sizeof text,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%s\"}}", rv);
    fake_event(f, "BOOKMARK", text);
}

/* The end of the initial events, or what looks like it: `word` is the annotation's value. */
static inline void fake_initial_end(fake_source *f, const char *rv, const char *word)
{
    char text[256];
    snprintf(text, sizeof text,
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%s\","
        "\"annotations\":{\"k8s.io/initial-events-end\":\"%s\"}}}",
        rv, word);
    fake_event(f, "BOOKMARK", text);
}

static inline void fake_error_event(fake_source *f, int code, const char *reason)
{
    char text[256];
    snprintf(text, sizeof text,
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":%d,\"reason\":\"%s\","
        "\"message\":\"scripted\"}",
        code, reason);
    fake_event(f, "ERROR", text);
}

#endif
