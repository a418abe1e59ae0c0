/* watched.c - an informer of one object. */
#include "cli/watched.h"

#include <string.h>

#include "base/mem.h"

static const struct {
    const char *word, *kind;
} kinds[] = {{"configmap", "v1/ConfigMap"}, {"secret", "v1/Secret"}};

/* The text up to the next slash; NULL when it is empty. */
static char *take_part(const char **at)
{
    size_t n = strcspn(*at, "/");
    char *part = n ? kl_strndup(*at, n) : NULL;
    *at += n + ((*at)[n] == '/');
    return part;
}

/* The text after "configmap/" or "secret/"; *kind is its index in `kinds`. NULL: another text. */
static const char *behind(const char *text, size_t *kind)
{
    for (*kind = 0; *kind < sizeof kinds / sizeof *kinds; ++*kind) {
        size_t n = strlen(kinds[*kind].word);
        if (!strncmp(text, kinds[*kind].word, n) && text[n] == '/')
            return text + n + 1;
    }
    return NULL;
}

bool cli_watched_meant(const char *text)
{
    size_t kind;
    return behind(text, &kind);
}

bool cli_watched_read(const char *text, cli_watched *out, char **rest)
{
    size_t kind;
    const char *at = behind(text, &kind);
    if (!at)
        return false;
    *out = (cli_watched){.kind = kinds[kind].kind, .word = kinds[kind].word};
    out->ns = take_part(&at);
    out->name = take_part(&at);
    *rest = *at ? take_part(&at) : NULL;
    if (out->ns && out->name && !*at && at[-1] != '/') {
        out->slot = kl_sprintf("%s/%s", out->ns, out->name);
        return true;
    }
    kl_free(*rest);
    *rest = NULL;
    cli_watched_fini(out);
    return false;
}

void cli_watched_fini(cli_watched *w)
{
    cli_watched_end(w);
    kl_free(w->ns);
    kl_free(w->name);
    kl_free(w->slot);
    *w = (cli_watched){0};
}

static void on_event(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    (void)arg, (void)type, (void)old, (void)now, (void)flags;
    cli_poke();
}

static void on_synced(void *arg)
{
    (void)arg;
    cli_poke();
}

kl_status cli_watched_begin(cli_watched *w, kl_informers *f, kl_err *err)
{
    char *fields = kl_sprintf("metadata.name=%s", w->name);
    kl_status st = kl_informers_acquire(
        f, &(kl_informer_want){.kind = w->kind, .ns = w->ns, .fields = fields}, &w->informer, err);
    kl_free(fields);
    if (st)
        return st;
    w->from = f;
    w->sub = kl_informer_subscribe(w->informer, &(kl_handler){.on_event = on_event, .on_synced = on_synced});
    return KL_OK;
}

void cli_watched_end(cli_watched *w)
{
    if (w->sub)
        kl_informer_unsubscribe(w->sub);
    if (w->informer)
        kl_informers_release(w->from, w->informer);
    w->sub = NULL;
    w->informer = NULL;
}

/* Why the object is absent. */
static kl_status absent(const cli_watched *w, kl_err *err)
{
    kl_informer_stats s;
    kl_informer_stats_get(w->informer, &s);
    kl_status st;
    if (s.synced && !s.parked)
        st = kl_fail(
            err, KL_ENOTFOUND, "there is no %s %s in namespace %s", strchr(w->kind, '/') + 1, w->name, w->ns);
    else if (s.message)
        st = kl_fail(err, KL_EAGAIN,
            "%s/%s cannot be read: %s; get, list and watch of %ss in namespace %s are needed", w->word,
            w->slot, s.message, w->word, w->ns);
    else
        st = kl_fail(err, KL_EAGAIN, "%s/%s is being read", w->word, w->slot);
    kl_informer_stats_fini(&s);
    return st;
}

kl_status cli_watched_get(const cli_watched *w, const kl_value **out, kl_err *err)
{
    *out = w->informer ? kl_informer_lookup(w->informer, w->slot) : NULL;
    if (*out)
        return KL_OK;
    return w->informer ? absent(w, err) : kl_fail(err, KL_EAGAIN, "%s/%s is not read yet", w->word, w->slot);
}
