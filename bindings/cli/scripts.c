/* scripts.c - the scripts of a process: what each was made of, and what happens when that changes. */
#include "scripts.h"

#include <string.h>

#include "../program.h"
#include "base/fswatch.h"
#include "base/log.h"
#include "base/mem.h"

typedef struct script {
    const char *path;
    int slot;
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

kl_status cli_scripts_load(const cli_list *paths, cli_scripts **out, kl_err *err)
{
    cli_scripts *s = kl_new(cli_scripts);
    s->v = kl_new_array(script, paths->n);
    *out = s;
    for (; s->n < paths->n; s->n++) {
        script *sc = &s->v[s->n];
        kl_status st = lkl_program_load(paths->v[s->n], &sc->first, err);
        if (st)
            return st;
        sc->path = paths->v[s->n];
        sc->digest = lkl_program_digest(sc->first);
        files_take(sc, sc->first);
    }
    return KL_OK;
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

static void refuse(script *sc, kl_err *err, bool asked)
{
    if (asked || !sc->refused || strcmp(sc->refused, kl_err_message(err)))
        kl_error("the new script was refused; the old one keeps running", "script=%s error=%s", sc->path, kl_log_quoted(kl_err_message(err)));
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
        for (char **f = s->v[i].files; *f; f++)
            room += 2;
    char **paths = kl_new_array(char *, room);
    for (size_t i = 0; i < s->n; i++)
        for (char **f = s->v[i].files; *f; f++) {
            paths[n++] = kl_strdup(*f);
            paths[n++] = directory_of(*f);
        }
    kl_fswatch_stop(s->watch);
    s->watch = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_fswatch_start((const char *const *)paths, n, files_changed, s, &s->watch, &err)) {
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
        if (lkl_program_load(sc->path, &p, &err)) {
            refuse(sc, &err, asked);
            continue;
        }
        if (lkl_program_digest(p) == sc->digest) {
            if (asked)
                kl_info("the script has not changed", "script=%s", sc->path);
            else if (sc->refused)
                kl_info("the script is as it was; the refused change is gone", "script=%s", sc->path);
        } else if (replace(s, sc->slot, p, &err)) {
            refuse(sc, &err, asked);
            kl_program_unref(p);
            continue;
        } else {
            sc->digest = lkl_program_digest(p);
            others |= files_take(sc, p);
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
    if (s)
        kl_fswatch_stop(s->watch);
    if (s)
        s->watch = NULL;
}

void cli_scripts_free(cli_scripts *s)
{
    if (!s)
        return;
    cli_scripts_unwatch(s);
    for (size_t i = 0; i < s->n; i++) {
        files_free(s->v[i].files);
        kl_free(s->v[i].refused);
        kl_program_unref(s->v[i].first);
    }
    kl_free(s->v);
    kl_free(s);
}
