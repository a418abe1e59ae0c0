/* dryrun.c - logs each simulated write, unless it was logged for the same state of the object. */
#include "lab/dryrun.h"

#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "controller/dry_writes.h"
#include "model/diff.h"
#include "model/object.h"

/* The maximum number of remembered writes. Then all are forgotten, and a write may be logged twice. */
#define TOLD_MAX 65536

struct kl_dryrun {
    kl_imagination how;
    kl_mutex mu;
    kl_map *told KL_GUARDED_BY(mu); /* what was written -> a hash of how */
};

/* True unless the write was remembered with the same `how`. Takes the text. */
static bool is_news(kl_dryrun *d, char *what, uint64_t how)
{
    kl_lock(&d->mu);
    if (kl_map_len(d->told) >= TOLD_MAX) {
        kl_map_free(d->told, NULL);
        d->told = kl_map_new();
    }
    void *number = (void *)(uintptr_t)(how | 1);
    bool news = kl_map_set(d->told, what, number) != number;
    kl_unlock(&d->mu);
    kl_free(what);
    return news;
}

static char *quoted(const char *s)
{
    size_t room = 4 * strlen(s) + 3; /* each byte as \xNN, quotes, the end */
    char *out = kl_alloc(room);
    kl_log_quote(s, out, room);
    return out;
}

static char *object_name(const kl_imagined *x)
{
    const char *prefix = kl_value_str_at(x->op->body, "metadata", "generateName", NULL);
    return x->name && !kl_op_name(x->op) && prefix
        ? kl_sprintf("%s%s%s*", x->ns ? x->ns : "", x->ns ? "/" : "", prefix)
        : kl_key_join(x->ns, x->name ? x->name : "");
}

static void tell(const kl_imagined *x, const char *object, const char *changes)
{
    char *kind = kl_gvk_text(x->resource->group, x->resource->version, x->resource->kind),
         *text = quoted(changes);
    const char *sub = x->op->subresource;
    if (x->status)
        kl_warn("dry run: this write would fail",
            "controller=%s key=%s verb=%s kind=%s object=%s%s%s error=%s", x->controller, x->key,
            kl_verb_name(x->op->verb), kind, object, sub ? " subresource=" : "", sub ? sub : "", text);
    else
        kl_info("dry run: not sent", "controller=%s key=%s verb=%s kind=%s object=%s%s%s changes=%s",
            x->controller, x->key, kl_verb_name(x->op->verb), kind, object, sub ? " subresource=" : "",
            sub ? sub : "", text);
    kl_free(kind);
    kl_free(text);
}

static void wrote(void *arg, const kl_imagined *x)
{
    kl_dryrun *d = arg;
    kl_buf changes = KL_BUF_INIT;
    if (x->status)
        kl_buf_puts(&changes, kl_err_message(x->err));
    else if (!x->is)
        kl_buf_puts(&changes, "gone");
    else
        kl_diff_text(x->was, x->is, &changes);
    const char *rv = kl_object_rv(x->was), *text = kl_buf_str(&changes);
    char *object = object_name(x);
    uint64_t how = kl_hash(text, strlen(text)) ^ (rv ? kl_hash(rv, strlen(rv)) : 0);
    if (changes.len
        && is_news(d,
            kl_sprintf("%s %s %s %s %s %s %s", x->controller, x->key, kl_verb_name(x->op->verb),
                x->resource->group, x->resource->plural, object,
                x->op->subresource ? x->op->subresource : ""),
            how))
        tell(x, object, text);
    kl_free(object);
    kl_buf_fini(&changes);
}

kl_dryrun *kl_dryrun_new(bool ask)
{
    kl_dryrun *d = kl_new(kl_dryrun);
    d->how = (kl_imagination){.ops = &kl_dry_writes, .ask = ask, .wrote = wrote, .arg = d};
    kl_mutex_init(&d->mu);
    d->told = kl_map_new();
    return d;
}

void kl_dryrun_free(kl_dryrun *d)
{
    if (!d)
        return;
    kl_map_free(d->told, NULL);
    kl_mutex_fini(&d->mu);
    kl_free(d);
}

const kl_imagination *kl_dryrun_imagination(kl_dryrun *d) { return d ? &d->how : NULL; }

void kl_dryrun_event(kl_dryrun *d, const kl_news *n)
{
    char *object = kl_object_key(n->about);
    const char *kind = kl_object_kind(n->about), *note = n->note ? n->note : "";
    uint64_t how = kl_hash(note, strlen(note));
    if (is_news(d,
            kl_sprintf("event %s %s %s %s", n->component ? n->component : "", kind ? kind : "",
                object ? object : "", n->reason),
            how)) {
        char *text = quoted(note);
        kl_info("dry run: an Event was not sent", "controller=%s kind=%s object=%s type=%s reason=%s note=%s",
            n->component ? n->component : "", kind ? kind : "", object ? object : "", n->type, n->reason,
            text);
        kl_free(text);
    }
    kl_free(object);
}
