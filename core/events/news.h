/* news.h - an event note: an Event about an object before it is recorded. */
#ifndef KL_EVENTS_NEWS_H
#define KL_EVENTS_NEWS_H

#include "base/tenure.h"
#include "value/value.h"

/* Borrowed for a call. */
typedef struct kl_news {
    const char *component;   /* the reporter: a controller's name, a qualified name */
    const kl_value *about;   /* the object */
    const kl_value *related; /* another object that it is about, or NULL */
    const char *type;        /* "Normal" or "Warning" */
    const char *reason;      /* one word, UpperCamelCase, 128 bytes at most: "SourceMissing" */
    const char *action;      /* what was done or tried, the same way; NULL: "Reconcile" */
    const char *note;        /* for people; at most 1024 bytes, longer ones are cut */
    kl_mandate mandate;      /* the permission to send it; its tenure outlives the recorder */
} kl_news;

#endif
