/* event_body.c - the two API forms of an Event. */
#include "events/event_body.h"

#include <string.h>

#include "model/object.h"
#include "model/time.h"

#define COMBINED "(combined from similar events): "
#define MORE "..."

/* `s`, cut before a character that would not fit into `max` bytes. */
static size_t fitting(const char *s, size_t n, size_t max)
{
    if (n <= max)
        return n;
    while (max && ((unsigned char)s[max] & 0xc0) == 0x80)
        max--;
    return max;
}

static void build_word(kl_builder *b, const char *key, const char *s)
{
    kl_build_key(b, key);
    kl_build_strn(b, s, fitting(s, strlen(s), KL_EVENT_WORD_MAX));
}

static void build_note(kl_builder *b, const char *note, bool combined)
{
    char text[KL_EVENT_NOTE_MAX + 1];
    size_t lead = combined ? sizeof COMBINED - 1 : 0, n = strlen(note), room = KL_EVENT_NOTE_MAX - lead;
    memcpy(text, COMBINED, lead);
    size_t fits = n <= room ? n : fitting(note, n, room - (sizeof MORE - 1));
    memcpy(text + lead, note, fits);
    size_t len = lead + fits;
    if (fits < n) {
        memcpy(text + len, MORE, sizeof MORE - 1);
        len += sizeof MORE - 1;
    }
    kl_build_key(b, "note");
    kl_build_strn(b, text, len);
}

static void build_reference(kl_builder *b, const char *key, const kl_value *o)
{
    kl_build_key(b, key);
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", kl_object_api_version(o));
    kl_build_kstr(b, "kind", kl_object_kind(o));
    kl_build_kstr(b, "namespace", kl_object_namespace(o));
    kl_build_kstr(b, "name", kl_object_name(o));
    kl_build_kstr(b, "uid", kl_object_uid(o));
    kl_build_kstr(b, "resourceVersion", kl_object_rv(o));
    kl_build_end(b);
}

static char *micro(kl_time wall, char out[KL_TIME_MAX])
{
    return kl_time_format_micro(wall / KL_SECONDS(1), (int32_t)(wall % KL_SECONDS(1)), out);
}

const kl_value *kl_event_body(
    const kl_news *n, const char *name, const char *ns, const char *instance, bool combined, kl_time first)
{
    char at[KL_TIME_MAX];
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "events.k8s.io/v1");
    kl_build_kstr(b, "kind", "Event");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "namespace", ns);
    kl_build_end(b);
    kl_build_kstr(b, "eventTime", micro(first, at));
    kl_build_kstr(b, "reportingController", n->component);
    build_word(b, "reportingInstance", instance);
    build_word(b, "action", n->action ? n->action : "Reconcile");
    build_word(b, "reason", n->reason);
    kl_build_kstr(b, "type", n->type);
    build_note(b, n->note ? n->note : "", combined);
    build_reference(b, "regarding", n->about);
    if (n->related)
        build_reference(b, "related", n->related);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void build_series(kl_builder *b, const kl_event_series *s)
{
    char at[KL_TIME_MAX];
    kl_build_key(b, "series");
    kl_build_object(b);
    kl_build_kint(b, "count", s->count);
    kl_build_kstr(b, "lastObservedTime", micro(s->last, at));
    kl_build_end(b);
}

static void build_count(kl_builder *b, const kl_event_series *s)
{
    char at[KL_TIME_MAX];
    kl_build_kint(b, "count", s->count);
    kl_build_kstr(b, "lastTimestamp", kl_time_format_wall(s->last, at));
}

static void keep(kl_builder *b, const kl_value *body, const char *from, const char *to)
{
    kl_build_kvalue(b, to, kl_value_get(body, from));
}

/* Without an eventTime, which would make it an Event of the new form, whose count is immutable. */
static void build_core(kl_builder *b, const kl_value *body, const kl_event_series *s)
{
    char at[KL_TIME_MAX];
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_kstr(b, "kind", "Event");
    keep(b, body, "metadata", "metadata");
    keep(b, body, "regarding", "involvedObject");
    keep(b, body, "related", "related");
    keep(b, body, "type", "type");
    keep(b, body, "reason", "reason");
    keep(b, body, "action", "action");
    keep(b, body, "note", "message");
    keep(b, body, "reportingController", "reportingComponent");
    keep(b, body, "reportingInstance", "reportingInstance");
    kl_build_key(b, "source");
    kl_build_object(b);
    keep(b, body, "reportingController", "component");
    kl_build_end(b);
    kl_build_kstr(b, "firstTimestamp", kl_time_format_wall(s->first, at));
    build_count(b, s);
}

const kl_value *kl_event_create(const kl_value *body, const kl_event_series *s, bool core)
{
    if (!core && s->count < 2)
        return kl_value_ref(body);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    if (core) {
        build_core(b, body, s);
    } else {
        static const char *const fields[] = {"apiVersion", "kind", "metadata", "eventTime",
            "reportingController", "reportingInstance", "action", "reason", "type", "note", "regarding",
            "related"};
        for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
            keep(b, body, fields[i], fields[i]);
        build_series(b, s);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl_event_patch(const kl_event_series *s, bool core)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    if (core)
        build_count(b, s);
    else
        build_series(b, s);
    kl_build_end(b);
    return kl_builder_done(b);
}
