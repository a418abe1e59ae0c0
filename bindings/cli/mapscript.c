/* mapscript.c - one ConfigMap, watched, as the sources of a script. */
#include "cli/mapscript.h"

#include <string.h>

#include "script/program.h"
#include "base/mem.h"

struct cli_mapscript {
    char *word;            /* "configmap/ns/name", without the key */
    char *ns, *name, *key; /* key NULL: as in a directory */
    char *slot;            /* "ns/name" */
    kl_informers *from;
    kl_informer *informer; /* borrowed */
    kl_subscription *sub;
};

#define PREFIX "configmap/"

bool cli_mapscript_meant(const char *word) { return !strncmp(word, PREFIX, sizeof PREFIX - 1); }

kl_status cli_mapscript_new(const char *word, cli_mapscript **out, kl_err *err)
{
    const char *part[3] = {NULL}, *at = word + sizeof PREFIX - 1;
    size_t len[3] = {0}, n = 0;
    for (bool more = true; more && n < 4; n++) {
        size_t k = strcspn(at, "/");
        if (n == 3 || !k)
            return kl_fail(err, KL_EINVAL,
                "\"%s\" names no script: write configmap/NAMESPACE/NAME, or configmap/NAMESPACE/NAME/KEY",
                word);
        part[n] = at;
        len[n] = k;
        more = at[k] == '/';
        at += k + 1;
    }
    if (n < 2)
        return kl_fail(err, KL_EINVAL,
            "\"%s\" names no script: write configmap/NAMESPACE/NAME, or configmap/NAMESPACE/NAME/KEY", word);
    cli_mapscript *m = kl_new(cli_mapscript);
    m->ns = kl_strndup(part[0], len[0]);
    m->name = kl_strndup(part[1], len[1]);
    m->key = n > 2 ? kl_strndup(part[2], len[2]) : NULL;
    m->slot = kl_sprintf("%s/%s", m->ns, m->name);
    m->word = kl_sprintf(PREFIX "%s", m->slot);
    *out = m;
    return KL_OK;
}

void cli_mapscript_free(cli_mapscript *m)
{
    if (!m)
        return;
    cli_mapscript_unwatch(m);
    kl_free(m->word);
    kl_free(m->ns);
    kl_free(m->name);
    kl_free(m->key);
    kl_free(m->slot);
    kl_free(m);
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

kl_status cli_mapscript_watch(cli_mapscript *m, kl_informers *f, kl_err *err)
{
    char *fields = kl_sprintf("metadata.name=%s", m->name);
    kl_status st = kl_informers_acquire(
        f, &(kl_informer_want){.kind = "v1/ConfigMap", .ns = m->ns, .fields = fields}, &m->informer, err);
    kl_free(fields);
    if (st)
        return st;
    m->from = f;
    m->sub = kl_informer_subscribe(m->informer, &(kl_handler){.on_event = on_event, .on_synced = on_synced});
    return KL_OK;
}

void cli_mapscript_unwatch(cli_mapscript *m)
{
    if (m->sub)
        kl_informer_unsubscribe(m->sub);
    if (m->informer)
        kl_informers_release(m->from, m->informer);
    m->sub = NULL;
    m->informer = NULL;
}

const kl_value *cli_mapscript_object(cli_mapscript *m)
{
    return m->informer ? kl_informer_lookup(m->informer, m->slot) : NULL;
}

/* Why there is no ConfigMap. */
static kl_status absent(cli_mapscript *m, kl_err *err)
{
    kl_informer_stats s;
    kl_informer_stats_get(m->informer, &s);
    kl_status st;
    if (s.synced && !s.parked)
        st = kl_fail(err, KL_ENOTFOUND,
            "there is no ConfigMap %s in namespace %s (kubectl create configmap %s -n %s "
            "--from-file=main.lua)",
            m->name, m->ns, m->name, m->ns);
    else if (s.message)
        st = kl_fail(err, KL_EAGAIN,
            "%s cannot be read: %s; get, list and watch of configmaps in namespace %s are needed", m->word,
            s.message, m->ns);
    else
        st = kl_fail(err, KL_EAGAIN, "%s is being read", m->word);
    kl_informer_stats_fini(&s);
    return st;
}

kl_status cli_mapscript_load(cli_mapscript *m, cli_loader *l, kl_program **out, kl_err *err)
{
    const kl_value *o = cli_mapscript_object(m);
    if (!o)
        return absent(m, err);
    kl_status st = cli_loader_texts(l, m->word, kl_value_get(o, "data"), m->key, out, err);
    if (st == KL_ENOTFOUND && kl_value_len(kl_value_get(o, "binaryData"))) {
        kl_err_fini(err);
        st = kl_fail(err, KL_ESCRIPT,
            "%s has binaryData, where scripts are not looked for: they are texts in data", m->word);
    } else if (st == KL_ENOTFOUND) {
        st = err->status = KL_ESCRIPT; /* the ConfigMap is there: this is a mistake in it */
    }
    kl_value_unref(o);
    return st;
}
