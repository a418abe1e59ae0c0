/* scripts.c - the scripts of a process: loaded from files or the cluster, given to the managers, watched. */
#include "cli/scripts_impl.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/texts.h"
#include "cli/definitions.h"

/* --- loading ------------------------------------------------------------------------------ */

void cli__scripts_read_params(cli_scripts *s, bool local)
{
    kl_err_fini(&s->params_wrong);
    s->params_wrong.status = cli_params_read(s->params, local, &s->params_wrong);
}

kl_status cli__script_load(cli_scripts *s, cli__script *sc, bool local, kl_program **out, kl_err *err)
{
    kl_program *p = NULL;
    kl_status st = sc->map ? cli_mapscript_load(sc->map, s->loader, &p, err)
                           : cli_loader_file(s->loader, sc->path, cli__script_version(sc), &p, err);
    if (!st && s->params_wrong.status) {
        kl_err_copy(err, &s->params_wrong);
        st = err->status;
    }
    if (!st)
        st = cli_params_set(s->params, p, !local, err);
    s->by_params = st && p && sc->program && lkl_program_digest(p) == lkl_program_digest(sc->program);
    if (st)
        kl_program_unref(p);
    else
        *out = p;
    return st;
}

static void take_first(cli__script *sc)
{
    sc->version = cli__program_version(sc->program);
    cli__script_files_take(sc, sc->program);
}

kl_status cli_scripts_load(const cli_list *words, cli_params *params, cli_scripts **out, kl_err *err)
{
    bool local = cli_params_in_cluster(params);
    cli_scripts *s = kl_new(cli_scripts);
    s->v = kl_new_array(cli__script, words->n);
    kl_mutex_init(&s->mu);
    s->loader = cli_loader_new();
    s->params = params;
    cli__scripts_read_params(s, local);
    s->loaded = kl_clock_wall(kl_clock_real()) - KL_MILLISECONDS(10);
    *out = s;
    for (size_t i = 0; i < words->n; i++) {
        cli__script *sc = &s->v[s->n++];
        sc->path = words->v[i];
        sc->generation = 1;
        bool map = cli_mapscript_meant(sc->path);
        kl_status st = map ? cli_mapscript_new(sc->path, &sc->map, err)
                           : cli__script_load(s, sc, local, &sc->program, err);
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
        snprintf(digest, sizeof digest, "%016llx", (unsigned long long)lkl_program_digest(s->v[i].program));
        kl_build_object(b);
        kl_build_kstr(b, "path", s->v[i].path);
        kl_build_kstr(b, "digest", digest);
        kl_build_end(b);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

/* --- those that live in the cluster ------------------------------------------------------- */

static void trouble(void *arg, kl_informer *i)
{
    (void)arg, (void)i;
    cli_poke();
}

static kl_status watch_maps(cli_scripts *s, kl_client *c, kl_err *err)
{
    kl_status st = KL_OK;
    bool any = cli_params_in_cluster(s->params);
    for (size_t i = 0; i < s->n; i++)
        any = any || s->v[i].map;
    if (any)
        s->informers = kl_informers_new(&(kl_informers_options){.client = c, .on_trouble = trouble});
    for (size_t i = 0; i < s->n && !st; i++)
        if (s->v[i].map)
            st = cli_mapscript_watch(s->v[i].map, s->informers, err);
    if (!st && any)
        st = cli_params_watch(s->params, s->informers, err);
    if (!st && s->informers)
        kl_informers_start(s->informers);
    return st;
}

/* Logs once what blocks the script; a ConfigMap that is still being read is not reported. */
static void tell_waiting(cli__script *sc, kl_err *err)
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
    cli__scripts_read_params(s, false);
    for (size_t i = 0; i < s->n; i++) {
        cli__script *sc = &s->v[i];
        kl_err err = KL_ERR_INIT;
        if (sc->program)
            continue;
        if (cli__script_load(s, sc, false, &sc->program, &err)) {
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

kl_status cli__scripts_params_known(const cli_scripts *s, kl_err *err)
{
    kl_program **programs = kl_new_array(kl_program *, s->n);
    for (size_t i = 0; i < s->n; i++)
        programs[i] = s->v[i].program;
    kl_status st = cli_params_known(s->params, programs, s->n, err);
    kl_free(programs);
    return st;
}

kl_status cli_scripts_fetch(cli_scripts *s, kl_client *c, kl_err *err)
{
    kl_status st = watch_maps(s, c, err);
    for (size_t i = 0; i < s->n && cli_params_in_cluster(s->params); i++) {
        kl_program_unref(s->v[i].program); /* loaded only to find its mistakes: with params it is another
                                              program */
        s->v[i].program = NULL;
    }
    while (!st && !all_there(s))
        if (cli_wait(KL_NEVER) == CLI_TERMINATE)
            return KL_ECANCELLED;
    return st ? st : cli__scripts_params_known(s, err);
}

kl_status cli_scripts_define_here(const cli_scripts *s, kl_server *server, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < s->n && !st; i++)
        if (s->v[i].program) /* a script from a ConfigMap is not here yet */
            st = cli_definitions_load(server, s->v[i].program, err);
    return st;
}

kl_status cli_scripts_define(cli_scripts *s, kl_client *const *clients, size_t n, kl_err *err)
{
    kl_status st = KL_OK;
    s->defined = clients;
    s->n_defined = n;
    for (size_t i = 0; i < s->n && !st; i++)
        st = cli_definitions_apply(clients, n, s->v[i].program, err);
    return st;
}

const kl_program *cli_scripts_first(const cli_scripts *s) { return s->v[0].program; }

kl_status cli_scripts_add(cli_scripts *s, kl_manager *m, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < s->n && !st; i++)
        st = kl_manager_add(m, s->v[i].program, &s->v[i].slot, err);
    return st;
}

/* --- life --------------------------------------------------------------------------------- */

void cli_scripts_watch(cli_scripts *s, kl_manager **managers, size_t n, kl_record *recording)
{
    s->recording = recording;
    s->managers = managers;
    s->n_managers = n;
    cli__scripts_watch_files(s);
    if (cli__scripts_saved_since(s) || cli_params_files(s->params, NULL))
        cli_poke();
}

void cli_scripts_unwatch(cli_scripts *s)
{
    if (!s)
        return;
    cli__scripts_end_asking(s);
    kl_fswatch_stop(s->watch);
    s->watch = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].map)
            cli_mapscript_unwatch(s->v[i].map);
    cli_params_unwatch(s->params);
    if (s->informers)
        kl_informers_free(s->informers);
    s->informers = NULL;
}

bool cli_scripts_end(cli_scripts *s) { return cli_loader_end(s->loader); }

void cli_scripts_free(cli_scripts *s)
{
    if (!s)
        return;
    cli_scripts_unwatch(s);
    for (size_t i = 0; i < s->n; i++) {
        kl_texts_free(s->v[i].files);
        kl_free(s->v[i].refused);
        cli_mapscript_free(s->v[i].map);
        kl_program_unref(s->v[i].program);
        kl_program_unref(s->v[i].before);
        kl_free(s->v[i].why);
    }
    cli_loader_free(s->loader);
    kl_err_fini(&s->params_wrong);
    kl_free(s->unknown);
    kl_free(s->v);
    kl_mutex_fini(&s->mu);
    kl_free(s);
}
