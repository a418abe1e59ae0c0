/* scripts.c - the scripts of a process: what each was made of, and what happens when that changes. */
#include "scripts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../program.h"
#include "base/fswatch.h"
#include "base/log.h"
#include "base/mem.h"
#include "mapscript.h"

typedef struct script {
    const char *path;          /* as the process was given it */
    cli_mapscript *map;        /* NULL: a file */
    int slot, generation;
    uint64_t digest;
    char **files;              /* what it was made of, NULL-terminated */
    char *refused;             /* message of the last refusal, so that it is told once */
    kl_program *first;         /* as it was loaded at the start; NULL once everything runs */
} script;

struct cli_scripts {
    script *v;
    size_t n;
    kl_manager **managers;     /* borrowed */
    size_t n_managers;
    kl_fswatch *watch;
    kl_informers *informers;   /* of ConfigMaps; NULL: none is needed */
};

/* --- the files of a script ----------------------------------------------------------------------------------------------- */

static void files_free(char **files)
{
    for (char **f = files; f && *f; f++)
        kl_free(*f);
    kl_free(files);
}

/* Remembers them; true when they are others than before. */
static bool files_take(script *sc, const kl_program *p)
{
    if (sc->map)
        return false;
    const char *const *fresh = lkl_program_files(p);
    size_t n = 0;
    bool same = sc->files;
    for (; fresh[n]; n++)
        same = same && sc->files[n] && !strcmp(sc->files[n], fresh[n]);
    if (same && !sc->files[n])
        return false;
    files_free(sc->files);
    sc->files = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        sc->files[i] = kl_strdup(fresh[i]);
    return true;
}

static void take_first(script *sc)
{
    sc->digest = lkl_program_digest(sc->first);
    files_take(sc, sc->first);
}

static kl_status load(script *sc, kl_program **out, kl_err *err)
{
    return sc->map ? cli_mapscript_load(sc->map, out, err) : lkl_program_load(sc->path, out, err);
}

kl_status cli_scripts_load(const cli_list *words, cli_scripts **out, kl_err *err)
{
    cli_scripts *s = kl_new(cli_scripts);
    s->v = kl_new_array(script, words->n);
    *out = s;
    for (size_t i = 0; i < words->n; i++) {
        script *sc = &s->v[s->n++];
        sc->path = words->v[i];
        sc->generation = 1;
        bool map = cli_mapscript_meant(sc->path);
        kl_status st = map ? cli_mapscript_new(sc->path, &sc->map, err) : load(sc, &sc->first, err);
        if (st)
            return st;
        if (!map)
            take_first(sc);
    }
    return KL_OK;
}

const kl_value *cli_scripts_say(const cli_scripts *s)
{
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < s->n; i++) {
        char digest[24];
        snprintf(digest, sizeof digest, "%016llx", (unsigned long long)s->v[i].digest);
        kl_build_object(b);
        kl_build_kstr(b, "path", s->v[i].path);
        kl_build_kstr(b, "digest", digest);
        kl_build_end(b);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* --- those that live in the cluster ------------------------------------------------------------------------------------------ */

static void trouble(void *arg, kl_informer *i)
{
    (void)arg, (void)i;
    cli_poke();
}

static kl_status watch_maps(cli_scripts *s, kl_client *c, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < s->n && !st; i++) {
        if (!s->v[i].map)
            continue;
        if (!s->informers)
            s->informers = kl_informers_new(&(kl_informers_options){.client = c, .on_trouble = trouble});
        st = cli_mapscript_watch(s->v[i].map, s->informers, err);
    }
    if (!st && s->informers)
        kl_informers_start(s->informers);
    return st;
}

/* What is in the way, once; what is only being read is no news. */
static void tell_waiting(script *sc, kl_err *err)
{
    if (!sc->refused || strcmp(sc->refused, kl_err_message(err)))
        kl_warn("waiting for a script", "script=%s why=%s", sc->path, kl_log_quoted(kl_err_message(err)));
    kl_free(sc->refused);
    sc->refused = kl_strdup(kl_err_message(err));
    kl_err_fini(err);
}

static bool all_there(cli_scripts *s)
{
    bool all = true;
    for (size_t i = 0; i < s->n; i++) {
        script *sc = &s->v[i];
        kl_err err = KL_ERR_INIT;
        if (sc->first)
            continue;
        if (load(sc, &sc->first, &err)) {
            tell_waiting(sc, &err);
            all = false;
            continue;
        }
        take_first(sc);
        kl_free(sc->refused);
        sc->refused = NULL;
    }
    return all;
}

kl_status cli_scripts_fetch(cli_scripts *s, kl_client *c, kl_err *err)
{
    kl_status st = watch_maps(s, c, err);
    while (!st && !all_there(s))
        if (cli_wait(KL_NEVER) == CLI_TERMINATE)
            return KL_ECANCELLED;
    return st;
}

const kl_program *cli_scripts_first(const cli_scripts *s) { return s->v[0].first; }

kl_status cli_scripts_add(cli_scripts *s, kl_manager *m, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < s->n && !st; i++)
        st = kl_manager_add(m, s->v[i].first, &s->v[i].slot, err);
    return st;
}

/* --- reload ------------------------------------------------------------------------------------------------------------ */

/* What Events about a script are about: where it lives, or who runs it, as the downward API tells. A new reference, or NULL. */
static const kl_value *about(script *sc)
{
    const char *name = getenv("POD_NAME"), *ns = getenv("POD_NAMESPACE");
    if (sc->map)
        return cli_mapscript_object(sc->map);
    if (!name || !ns)
        return NULL;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_kstr(b, "kind", "Pod");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "namespace", ns);
    kl_build_kstr(b, "uid", getenv("POD_UID"));
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void tell(cli_scripts *s, script *sc, kl_reload_result result, const char *message)
{
    const kl_value *object = about(sc);
    kl_manager_reloaded(s->managers[0], &(kl_reload){.script = sc->path, .result = result, .generation = sc->generation, .message = message}, object);
    kl_value_unref(object);
}

static void refuse(cli_scripts *s, script *sc, kl_err *err, bool asked)
{
    bool news = !sc->refused || strcmp(sc->refused, kl_err_message(err));
    if (asked || news)
        kl_error("the new script was refused; the old one keeps running", "script=%s error=%s", sc->path, kl_log_quoted(kl_err_message(err)));
    if (news)
        tell(s, sc, KL_RELOAD_REFUSED, kl_err_message(err));
    kl_free(sc->refused);
    sc->refused = kl_strdup(kl_err_message(err));
    kl_err_fini(err);
}

static void files_changed(void *arg)
{
    (void)arg;
    cli_poke();
}

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? kl_strndup(path, slash == path ? 1 : (size_t)(slash - path)) : kl_strdup(".");
}

/* Every file, and its directory: editors rename into it, and modules may come to be there. */
static void watch_files(cli_scripts *s)
{
    size_t n = 0, room = 0;
    for (size_t i = 0; i < s->n; i++)
        for (char **f = s->v[i].files; f && *f; f++)
            room += 2;
    char **paths = kl_new_array(char *, room);
    for (size_t i = 0; i < s->n; i++)
        for (char **f = s->v[i].files; f && *f; f++) {
            paths[n++] = kl_strdup(*f);
            paths[n++] = directory_of(*f);
        }
    kl_fswatch_stop(s->watch);
    s->watch = NULL;
    kl_err err = KL_ERR_INIT;
    if (n && kl_fswatch_start((const char *const *)paths, n, files_changed, s, &s->watch, &err)) {
        kl_warn("scripts are not watched; SIGHUP reloads them", "error=%s", kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
    }
    for (size_t i = 0; i < n; i++)
        kl_free(paths[i]);
    kl_free(paths);
}

/* What one manager refuses all refuse: names are the same everywhere. */
static kl_status replace(cli_scripts *s, int slot, kl_program *p, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < s->n_managers && !st; i++)
        st = kl_manager_replace(s->managers[i], slot, p, err);
    return st;
}

void cli_scripts_reload(cli_scripts *s, bool asked)
{
    bool others = false;
    for (size_t i = 0; i < s->n; i++) {
        script *sc = &s->v[i];
        kl_program *p = NULL;
        kl_err err = KL_ERR_INIT;
        if (load(sc, &p, &err)) {
            refuse(s, sc, &err, asked);
            continue;
        }
        if (lkl_program_digest(p) == sc->digest) {
            if (asked)
                kl_info("the script has not changed", "script=%s", sc->path);
            if (sc->refused)
                tell(s, sc, KL_RELOAD_WITHDRAWN, NULL);
            if (sc->refused && !asked)
                kl_info("the script is as it was; the refused change is gone", "script=%s", sc->path);
        } else if (replace(s, sc->slot, p, &err)) {
            refuse(s, sc, &err, asked);
            kl_program_unref(p);
            continue;
        } else {
            sc->digest = lkl_program_digest(p);
            others |= files_take(sc, p);
            sc->generation = p->generation;
            tell(s, sc, KL_RELOAD_TAKEN, NULL);
            kl_info("loaded the next generation", "script=%s generation=%d", sc->path, p->generation);
        }
        kl_free(sc->refused);
        sc->refused = NULL;
        kl_program_unref(p);
    }
    if (others) {
        watch_files(s);
        cli_poke();            /* what was saved between two watches */
    }
}

void cli_scripts_watch(cli_scripts *s, kl_manager **managers, size_t n)
{
    s->managers = managers;
    s->n_managers = n;
    for (size_t i = 0; i < s->n; i++) {
        kl_program_unref(s->v[i].first);
        s->v[i].first = NULL;
    }
    watch_files(s);
}

void cli_scripts_unwatch(cli_scripts *s)
{
    if (!s)
        return;
    kl_fswatch_stop(s->watch);
    s->watch = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].map)
            cli_mapscript_unwatch(s->v[i].map);
    if (s->informers)
        kl_informers_free(s->informers);
    s->informers = NULL;
}

void cli_scripts_free(cli_scripts *s)
{
    if (!s)
        return;
    cli_scripts_unwatch(s);
    for (size_t i = 0; i < s->n; i++) {
        files_free(s->v[i].files);
        kl_free(s->v[i].refused);
        cli_mapscript_free(s->v[i].map);
        kl_program_unref(s->v[i].first);
    }
    kl_free(s->v);
    kl_free(s);
}
