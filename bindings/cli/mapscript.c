/* mapscript.c - one ConfigMap, watched, as the sources of a script. */
#include "cli/mapscript.h"

#include <string.h>

#include "script/program.h"
#include "base/mem.h"
#include "cli/watched.h"

struct cli_mapscript {
    cli_watched from;
    char *word; /* "configmap/ns/name", without the key */
    char *key;  /* NULL: as in a directory */
};

#define PREFIX "configmap/"

bool cli_mapscript_meant(const char *word) { return !strncmp(word, PREFIX, sizeof PREFIX - 1); }

kl_status cli_mapscript_new(const char *word, cli_mapscript **out, kl_err *err)
{
    cli_watched from;
    char *key = NULL;
    if (!cli_watched_read(word, &from, &key))
        return kl_fail(err, KL_EINVAL,
            "\"%s\" names no script: write configmap/NAMESPACE/NAME, or configmap/NAMESPACE/NAME/KEY", word);
    cli_mapscript *m = kl_new(cli_mapscript);
    m->from = from;
    m->key = key;
    m->word = kl_sprintf(PREFIX "%s", from.slot);
    *out = m;
    return KL_OK;
}

void cli_mapscript_free(cli_mapscript *m)
{
    if (!m)
        return;
    cli_watched_fini(&m->from);
    kl_free(m->word);
    kl_free(m->key);
    kl_free(m);
}

kl_status cli_mapscript_watch(cli_mapscript *m, kl_informers *f, kl_err *err)
{
    return cli_watched_begin(&m->from, f, err);
}

void cli_mapscript_unwatch(cli_mapscript *m) { cli_watched_end(&m->from); }

const kl_value *cli_mapscript_object(cli_mapscript *m)
{
    const kl_value *o = NULL;
    kl_err err = KL_ERR_INIT;
    if (cli_watched_get(&m->from, &o, &err))
        kl_err_fini(&err);
    return o;
}

kl_status cli_mapscript_load(cli_mapscript *m, cli_loader *l, kl_program **out, kl_err *err)
{
    const kl_value *o = NULL;
    kl_status st = cli_watched_get(&m->from, &o, err);
    if (st == KL_ENOTFOUND) {
        char *message = kl_sprintf("%s (kubectl create configmap %s -n %s --from-file=main.lua)",
            kl_err_message(err), m->from.name, m->from.ns);
        kl_err_fini(err);
        st = kl_fail(err, KL_ENOTFOUND, "%s", message);
        kl_free(message);
    }
    if (st)
        return st;
    st = cli_loader_texts(l, m->word, kl_value_get(o, "data"), m->key, out, err);
    if (st == KL_ENOTFOUND && kl_value_len(kl_value_get(o, "binaryData"))) {
        kl_err_fini(err);
        st = kl_fail(err, KL_ESCRIPT,
            "%s has binaryData, which is not searched for scripts: put them into data", m->word);
    } else if (st == KL_ENOTFOUND) {
        st = err->status = KL_ESCRIPT; /* the ConfigMap exists: this is a mistake in it */
    }
    kl_value_unref(o);
    return st;
}
