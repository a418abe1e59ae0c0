/* scripts.c - the scripts of a process: the files and params that each was made of, and what happens when
 * these change. */
#include "cli/scripts.h"

#include "cli/definitions.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "script/program.h"
#include "base/clock.h"
#include "base/fswatch.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/texts.h"
#include "cli/loader.h"
#include "cli/mapscript.h"
#include "lab/record.h"
#include "controller/spec_diff.h"
#include "run/params.h"

typedef struct script {
    const char *path;   /* as the process was given it */
    cli_mapscript *map; /* NULL: a file */
    int slot, generation;
    uint64_t version;    /* of its sources and params */
    char **files;        /* the files that it was made of, NULL-terminated */
    char *refused;       /* message of the last refusal, so that it is told once */
    kl_program *program; /* the generation that was taken last; NULL until there is one */
    kl_program *before;  /* the generation before it, in case that has to come back; or NULL */
    uint64_t taken_back; /* the version that was taken back: it is not loaded again by itself; 0: none */
    /* under the scripts' mu: a generation that is much worse than the one before; 0: none */
    int broken;
    char *why; /* likewise: in words */
} script;

struct cli_scripts {
    script *v;
    size_t n;
    cli_params *params;        /* borrowed */
    char *unknown;             /* the last complaint about a param that no script has; or NULL */
    bool by_params;            /* the last script loaded is unchanged, but its params do not fit it */
    kl_err params_wrong;       /* why they could not be read; scripts are refused for it */
    kl_manager **managers;     /* borrowed */
    kl_client *const *defined; /* where definitions go, n_defined; borrowed */
    size_t n_defined;
    size_t n_managers;
    kl_record *recording; /* records which scripts run; NULL: none */
    kl_fswatch *watch;
    kl_time loaded;          /* wall time of the first load, less the granularity of file dates */
    kl_informers *informers; /* of ConfigMaps; NULL: none is needed */
    cli_loader *loader;
    kl_mutex mu;
    bool over KL_GUARDED_BY(mu);                   /* nothing is loaded any more */
    kl_control_request **asking KL_GUARDED_BY(mu); /* requests that wait for the result of a reload */
    size_t n_asking KL_GUARDED_BY(mu);
};

/* --- the files of a script ---------------------------------------------------------------- */

/* Stores the files of the script; true when they differ from the earlier ones. */
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
    kl_texts_free(sc->files);
    sc->files = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        sc->files[i] = kl_strdup(fresh[i]);
    return true;
}

/* The version of one file: it changes when the file is written or replaced. */
static uint64_t file_version(const char *path)
{
    struct stat st;
    if (stat(path, &st))
        return 0;
    int64_t parts[] = {(int64_t)st.st_ino, (int64_t)st.st_size, (int64_t)st.st_mtim.tv_sec,
        (int64_t)st.st_mtim.tv_nsec, (int64_t)st.st_ctim.tv_sec, (int64_t)st.st_ctim.tv_nsec};
    return kl_hash(parts, sizeof parts);
}

/* The version of the Lua files beside the script, each of which may be a module. */
static uint64_t folder_version(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? kl_sprintf("%.*s/", (int)(slash - path), path) : kl_strdup("./");
    uint64_t version = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (n < 4 || strcmp(e->d_name + n - 4, ".lua"))
            continue;
        char *file = kl_sprintf("%s%s", folder, e->d_name);
        version += file_version(file);
        kl_free(file);
    }
    if (d)
        closedir(d);
    kl_free(folder);
    return version;
}

/* The version of everything that the script is made of, as far as it is known before the load. */
static uint64_t script_version(const script *sc)
{
    uint64_t version = file_version(sc->path) + folder_version(sc->path);
    for (char **f = sc->files; f && *f; f++)
        version = version * 31 + file_version(*f);
    return version;
}

static uint64_t version_of(const kl_program *p)
{
    return lkl_program_digest(p) * 31 + kl_program_params_version(p);
}

static void take_first(script *sc)
{
    sc->version = version_of(sc->program);
    files_take(sc, sc->program);
}

/* `local`: params that come from the cluster are not there yet. */
static void read_params(cli_scripts *s, bool local)
{
    kl_err_fini(&s->params_wrong);
    s->params_wrong.status = cli_params_read(s->params, local, &s->params_wrong);
}

static kl_status load(cli_scripts *s, script *sc, bool local, kl_program **out, kl_err *err)
{
    kl_program *p = NULL;
    kl_status st = sc->map ? cli_mapscript_load(sc->map, s->loader, &p, err)
                           : cli_loader_file(s->loader, sc->path, script_version(sc), &p, err);
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

kl_status cli_scripts_load(const cli_list *words, cli_params *params, cli_scripts **out, kl_err *err)
{
    bool local = cli_params_in_cluster(params);
    cli_scripts *s = kl_new(cli_scripts);
    s->v = kl_new_array(script, words->n);
    kl_mutex_init(&s->mu);
    s->loader = cli_loader_new();
    s->params = params;
    read_params(s, local);
    s->loaded = kl_clock_wall(kl_clock_real()) - KL_MILLISECONDS(10);
    *out = s;
    for (size_t i = 0; i < words->n; i++) {
        script *sc = &s->v[s->n++];
        sc->path = words->v[i];
        sc->generation = 1;
        bool map = cli_mapscript_meant(sc->path);
        kl_status st = map ? cli_mapscript_new(sc->path, &sc->map, err)
                           : load(s, sc, local, &sc->program, err);
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
    read_params(s, false);
    for (size_t i = 0; i < s->n; i++) {
        script *sc = &s->v[i];
        kl_err err = KL_ERR_INIT;
        if (sc->program)
            continue;
        if (load(s, sc, false, &sc->program, &err)) {
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

/* Fails when a param was given that no script has. */
static kl_status params_known(const cli_scripts *s, kl_err *err)
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
    return st ? st : params_known(s, err);
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

/* --- reload ------------------------------------------------------------------------------- */

/* The object that Events about a script refer to: the script's ConfigMap, or the Pod that runs it, from the
 * downward API. A new reference, or NULL. */
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
    kl_manager_reloaded(s->managers[0],
        &(kl_reload){.script = sc->path, .result = result, .generation = sc->generation, .message = message},
        object);
    kl_value_unref(object);
}

/* Adds the script's result for the requester: an object for each script. */
static void answer(kl_builder *b, const script *sc, const char *result, const char *message)
{
    kl_build_object(b);
    kl_build_kstr(b, "script", sc->path);
    kl_build_kstr(b, "result", result);
    kl_build_kint(b, "generation", sc->generation);
    kl_build_kstr(b, "message", message);
    kl_build_key(b, "controllers");
    kl_build_array(b);
    for (size_t i = 0; i < sc->program->n_specs; i++)
        kl_build_str(b, sc->program->specs[i].name);
    kl_build_end(b);
    kl_build_end(b);
}

static void refuse(cli_scripts *s, script *sc, kl_err *err, bool asked, kl_builder *said)
{
    answer(said, sc, "refused", kl_err_message(err));
    bool news = !sc->refused || strcmp(sc->refused, kl_err_message(err));
    if ((asked || news) && s->by_params)
        kl_error("the new params were refused; the old ones stay", "script=%s error=%s", sc->path,
            kl_log_quoted(kl_err_message(err)));
    else if (asked || news)
        kl_error("the new script was refused; the old one keeps running", "script=%s error=%s", sc->path,
            kl_log_quoted(kl_err_message(err)));
    if (news)
        tell(s, sc, KL_RELOAD_REFUSED, kl_err_message(err));
    kl_free(sc->refused);
    sc->refused = kl_strdup(kl_err_message(err));
    kl_err_fini(err);
}

/* Logs a given param that no script declares, once. It is not refused: scripts and params change one after
 * the other. */
static void tell_unknown(cli_scripts *s)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = params_known(s, &err);
    if (st && (!s->unknown || strcmp(s->unknown, kl_err_message(&err))))
        kl_warn("a given param is declared by no script", "why=%s", kl_log_quoted(kl_err_message(&err)));
    kl_free(s->unknown);
    s->unknown = st ? kl_strdup(kl_err_message(&err)) : NULL;
    kl_err_fini(&err);
}

static void files_changed(void *arg)
{
    (void)arg;
    cli_poke();
}

static void watch_files(cli_scripts *s)
{
    size_t room = cli_params_files(s->params, NULL);
    for (size_t i = 0; i < s->n; i++)
        for (char **f = s->v[i].files; f && *f; f++)
            room++;
    const char **files = kl_new_array(const char *, room);
    size_t n = cli_params_files(s->params, files);
    for (size_t i = 0; i < s->n; i++)
        for (char **f = s->v[i].files; f && *f; f++)
            files[n++] = *f;
    kl_fswatch_stop(s->watch);
    s->watch = NULL;
    kl_err err = KL_ERR_INIT;
    if (n && kl_fswatch_start_around(files, n, files_changed, s, &s->watch, &err)) {
        kl_warn(
            "scripts are not watched; SIGHUP reloads them", "error=%s", kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
    }
    kl_free(files);
}

/* If one manager refuses the program, all do: names are the same everywhere. */
static kl_status replace(cli_scripts *s, int slot, kl_program *p, kl_err *err)
{
    kl_status st = cli_definitions_apply(s->defined, s->n_defined, p, err);
    for (size_t i = 0; i < s->n_managers && !st; i++)
        st = kl_manager_replace(s->managers[i], slot, p, err);
    return st;
}

/* --- going back --------------------------------------------------------------------------- */

void cli_scripts_broken(void *arg, int slot, int generation, const char *controller, const char *why)
{
    cli_scripts *s = arg;
    kl_lock(&s->mu);
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].slot == slot && s->v[i].broken != generation) {
            s->v[i].broken = generation;
            kl_free(s->v[i].why);
            s->v[i].why = kl_sprintf("%s: %s", controller, why);
        }
    kl_unlock(&s->mu);
    cli_poke();
}

static char *take_why(cli_scripts *s, script *sc, int running)
{
    kl_lock(&s->mu);
    char *why = sc->broken == running ? sc->why : NULL;
    if (why)
        sc->why = NULL;
    kl_unlock(&s->mu);
    return why;
}

/* The promoted candidate that runs in place of the script. A new reference; NULL: the script's own program
 * runs. */
static kl_program *foreign(cli_scripts *s, script *sc)
{
    kl_program *p = kl_manager_program(s->managers[0], sc->slot);
    if (p != sc->program)
        return p;
    kl_program_unref(p);
    return NULL;
}

static void tell_recording(const cli_scripts *s)
{
    if (!s->recording)
        return;
    const kl_value *scripts = cli_scripts_say(s);
    kl_record_scripts(s->recording, scripts);
    kl_value_unref(scripts);
}

/* The earlier program becomes a new generation. The version that is taken back is not loaded again until it
 * changes or somebody asks for it. */
static void go_back(cli_scripts *s, script *sc)
{
    kl_err err = KL_ERR_INIT;
    kl_program *candidate = foreign(s, sc), *back = candidate ? sc->program : sc->before;
    bool promoted = candidate;
    int worse = promoted ? candidate->generation : sc->generation;
    kl_program_unref(candidate);
    char *why = take_why(s, sc, worse);
    if (!why || !back) {
        kl_free(why);
        return;
    }
    if (replace(s, sc->slot, back, &err)) {
        kl_error("the previous logic cannot be restored", "script=%s error=%s", sc->path,
            kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
        kl_free(why);
        return;
    }
    if (!promoted) {
        kl_program_unref(sc->program);
        sc->program = sc->before;
        sc->before = NULL;
        sc->taken_back = sc->version;
        sc->version = version_of(sc->program);
        tell_recording(s);
    }
    kl_error("the new logic does much worse than the previous one, which runs again; change it, or run "
             "`kubelua reload` to try it unchanged",
        "script=%s generation=%d "
        "taken_back=%d why=%s",
        sc->path, sc->program->generation, worse, kl_log_quoted(why));
    sc->generation = sc->program->generation;
    tell(s, sc, KL_RELOAD_ROLLED_BACK, why);
    kl_free(sc->refused);
    sc->refused = why;
}

/* --- going on ----------------------------------------------------------------------------- */

/* Makes the program the present generation. */
static void take(cli_scripts *s, script *sc, kl_program *p, kl_builder *said)
{
    kl_buf changes = KL_BUF_INIT;
    kl_spec_diff(sc->program, p, &changes);
    sc->version = version_of(p);
    sc->generation = p->generation;
    kl_program_unref(sc->before);
    sc->before = sc->program;
    sc->program = kl_program_ref(p);
    sc->taken_back = 0;
    tell_recording(s);
    tell(s, sc, KL_RELOAD_TAKEN, changes.len ? kl_buf_str(&changes) : NULL);
    answer(said, sc, "taken", changes.len ? kl_buf_str(&changes) : NULL);
    kl_info("loaded the next generation", "script=%s generation=%d%s%s", sc->path, p->generation,
        changes.len ? " changes=" : "", changes.len ? kl_log_quoted(kl_buf_str(&changes)) : "");
    kl_buf_fini(&changes);
}

static void leave_as_it_is(cli_scripts *s, script *sc, bool asked, kl_builder *said)
{
    answer(said, sc, "unchanged", NULL);
    if (asked)
        kl_info("the script has not changed", "script=%s", sc->path);
    if (sc->refused)
        tell(s, sc, KL_RELOAD_WITHDRAWN, NULL);
    if (sc->refused && !asked)
        kl_info("the script is as before; the refused change was undone", "script=%s", sc->path);
}

/* True when the script is now made of other files. */
static bool reload_one(cli_scripts *s, script *sc, bool asked, kl_builder *said)
{
    kl_program *p = NULL;
    kl_err err = KL_ERR_INIT;
    bool others = false;
    kl_status st = load(s, sc, false, &p, &err);
    if (st == KL_ECANCELLED) {
        answer(said, sc, "refused", kl_err_message(&err));
        kl_err_fini(&err);
        return false;
    }
    if (st) {
        refuse(s, sc, &err, asked, said);
        return false;
    }
    if (version_of(p) == sc->taken_back && !asked) {
        kl_program_unref(p);
        return false;
    }
    kl_program *candidate = foreign(s, sc);
    /* the candidate stays, with its params, until the file changes or somebody asks for a reload */
    bool promoted = candidate;
    bool same = promoted ? lkl_program_digest(p) == lkl_program_digest(sc->program)
                         : version_of(p) == sc->version;
    kl_program_unref(candidate);
    if (same && !(promoted && asked)) {
        sc->taken_back = 0;
        leave_as_it_is(s, sc, asked, said);
    } else if (replace(s, sc->slot, p, &err)) {
        s->by_params = false;
        refuse(s, sc, &err, asked, said);
        kl_program_unref(p);
        return false;
    } else {
        others = files_take(sc, p);
        take(s, sc, p, said);
    }
    kl_free(sc->refused);
    sc->refused = NULL;
    kl_program_unref(p);
    return others;
}

void cli_scripts_reload(cli_scripts *s, bool asked)
{
    bool others = false;
    kl_lock(&s->mu);
    kl_control_request **asking = s->asking;
    size_t n = s->n_asking;
    s->asking = NULL;
    s->n_asking = 0;
    kl_unlock(&s->mu);
    kl_builder *said = kl_builder_new();
    kl_build_object(said);
    kl_build_key(said, "scripts");
    kl_build_array(said);
    read_params(s, false);
    for (size_t i = 0; i < s->n; i++)
        go_back(s, &s->v[i]);
    for (size_t i = 0; i < s->n; i++)
        others |= reload_one(s, &s->v[i], asked || n, said);
    tell_unknown(s);
    kl_build_end(said);
    kl_build_end(said);
    const kl_value *all = kl_builder_done(said);
    for (size_t i = 0; i < n; i++)
        kl_control_reply(asking[i], 200, kl_value_ref(all));
    kl_value_unref(all);
    kl_free(asking);
    if (others) {
        watch_files(s);
        cli_poke(); /* a file may have been saved between two watches */
    }
}

/* --- who asks for it by the control socket ------------------------------------------------ */

static void on_reload(void *arg, kl_control_request *q)
{
    cli_scripts *s = arg;
    kl_lock(&s->mu);
    bool over = s->over;
    if (!over) {
        s->asking = kl_realloc(s->asking, (s->n_asking + 1) * sizeof *s->asking);
        s->asking[s->n_asking++] = q;
    }
    kl_unlock(&s->mu);
    if (over)
        kl_control_refuse(q, 503, "the process is shutting down");
    else
        cli_poke();
}

void cli_scripts_route(cli_scripts *s, kl_control *c)
{
    kl_control_route(
        c, "POST", "/v1/reload", "reload the scripts; reports the outcome of each", on_reload, s);
}

static void end_asking(cli_scripts *s)
{
    kl_lock(&s->mu);
    s->over = true;
    kl_control_request **asking = s->asking;
    size_t n = s->n_asking;
    s->asking = NULL;
    s->n_asking = 0;
    kl_unlock(&s->mu);
    for (size_t i = 0; i < n; i++)
        kl_control_refuse(asking[i], 503, "the process is shutting down");
    kl_free(asking);
}

/* Whether a file of the scripts was written or replaced since the first load. */
static bool saved_since(const cli_scripts *s)
{
    bool saved = false;
    struct stat st;
    for (size_t i = 0; i < s->n; i++)
        for (char **f = s->v[i].files; f && *f; f++)
            saved |= !stat(*f, &st) && KL_SECONDS(st.st_ctim.tv_sec) + st.st_ctim.tv_nsec >= s->loaded;
    return saved;
}

void cli_scripts_watch(cli_scripts *s, kl_manager **managers, size_t n, kl_record *recording)
{
    s->recording = recording;
    s->managers = managers;
    s->n_managers = n;
    watch_files(s);
    if (saved_since(s) || cli_params_files(s->params, NULL))
        cli_poke();
}

void cli_scripts_unwatch(cli_scripts *s)
{
    if (!s)
        return;
    end_asking(s);
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
