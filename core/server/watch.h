/* watch.h - running watches: each is a stream that gets the changes of a bucket that its filter selects.
 * Under the lock. */
#ifndef KL_SERVER_WATCH_H
#define KL_SERVER_WATCH_H

#include "store/filter.h"
#include "show/accept.h"
#include "server/state.h"

typedef struct kl__watch_options {
    kl_show_form form;
    bool bookmarks;
    bool initial;     /* send existing objects before the changes */
    bool initial_end; /* ... and mark their end with an annotated bookmark (sendInitialEvents) */
    uint64_t rv;      /* changes after this one */
    kl_time timeout;  /* 0: none */
    const kl_fault_call *facts;
    const kl_fault_plan *plan;
} kl__watch_options;

/* Takes over the filter and the stream. */
void kl__watch_start(
    kl_server *s, kl__kind *k, kl__filter *filter, const kl__watch_options *o, kl_httpd_stream *stream);
/* The store's listener: one change to all watches of its bucket. */
void kl__watch_change(void *server, kl__bucket *b, const kl__change *c);
/* A bookmark at rv for every watch that accepts them. */
void kl__watches_mark(kl_server *s, uint64_t rv);
/* Sends due bookmarks, and ends watches that timed out or were disconnected; returns the time of the next
 * call. */
kl_time kl__watches_tick(kl_server *s, kl_time now);
/* The part of kl__watches_tick for delayed frames; returns the time of the next call for them. */
kl_time kl__watches_look(kl_server *s);
void kl__watches_stop(kl_server *s); /* ends all */
/* Makes one call of a conversion webhook for which a watch waits; false: no watch waits. Takes the lock, but
 * does not hold it during the call. */
bool kl__watches_ask(kl_server *s);
/* The receiver of the answers of these calls: made with the server; kl__hub_leave before the server is
 * freed. */
struct kl_hub *kl__hub_new(kl_server *s);
void kl__hub_leave(struct kl_hub *hub);
/* Writes an ERROR event and ends the stream: HTTP 200 with the failure inside, as for a watch from an expired
 * version. */
void kl__watch_refuse(kl_httpd_stream *stream, const kl_show_form *form, const kl_err *err);

#endif
