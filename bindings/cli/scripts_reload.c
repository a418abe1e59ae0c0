/* scripts_reload.c - what happens when the files or params of scripts change: each becomes the next
 * generation or is refused, and one that does much worse than its predecessor is taken back. */
#include "cli/scripts_impl.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "cli/definitions.h"
#include "controller/spec_diff.h"

/* --- who hears of it ---------------------------------------------------------------------- */

/* The object that Events about a script refer to: the script's ConfigMap, or the Pod that runs it, from the
 * downward API. A new reference, or NULL. */
static const kl_value *about(cli__script *sc)
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

static void tell(cli_scripts *s, cli__script *sc, kl_reload_result result, const char *message)
{
    const kl_value *object = about(sc);
    kl_manager_reloaded(s->managers[0],
        &(kl_reload){.script = sc->path, .result = result, .generation = sc->generation, .message = message},
        object);
    kl_value_unref(object);
}

/* Adds the script's result for the requester: an object for each script. */
static void answer(kl_builder *b, const cli__script *sc, const char *result, const char *message)
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

static void refuse(cli_scripts *s, cli__script *sc, kl_err *err, bool asked, kl_builder *said)
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
    kl_status st = cli__scripts_params_known(s, &err);
    if (st && (!s->unknown || strcmp(s->unknown, kl_err_message(&err))))
        kl_warn("no script declares a given param", "why=%s", kl_log_quoted(kl_err_message(&err)));
    kl_free(s->unknown);
    s->unknown = st ? kl_strdup(kl_err_message(&err)) : NULL;
    kl_err_fini(&err);
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

static char *take_why(cli_scripts *s, cli__script *sc, int running)
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
static kl_program *foreign(cli_scripts *s, cli__script *sc)
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
static void go_back(cli_scripts *s, cli__script *sc)
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
        sc->version = cli__program_version(sc->program);
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
static void take(cli_scripts *s, cli__script *sc, kl_program *p, kl_builder *said)
{
    kl_buf changes = KL_BUF_INIT;
    kl_spec_diff(sc->program, p, &changes);
    sc->version = cli__program_version(p);
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

static void leave_as_it_is(cli_scripts *s, cli__script *sc, bool asked, kl_builder *said)
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
static bool reload_one(cli_scripts *s, cli__script *sc, bool asked, kl_builder *said)
{
    kl_program *p = NULL;
    kl_err err = KL_ERR_INIT;
    bool others = false;
    kl_status st = cli__script_load(s, sc, false, &p, &err);
    if (st == KL_ECANCELLED) {
        answer(said, sc, "refused", kl_err_message(&err));
        kl_err_fini(&err);
        return false;
    }
    if (st) {
        refuse(s, sc, &err, asked, said);
        return false;
    }
    if (cli__program_version(p) == sc->taken_back && !asked) {
        kl_program_unref(p);
        return false;
    }
    kl_program *candidate = foreign(s, sc);
    /* the candidate stays, with its params, until the file changes or somebody asks for a reload */
    bool promoted = candidate;
    bool same = promoted ? lkl_program_digest(p) == lkl_program_digest(sc->program)
                         : cli__program_version(p) == sc->version;
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
        others = cli__script_files_take(sc, p);
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
    cli__scripts_read_params(s, false);
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
        cli__scripts_watch_files(s);
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

void cli__scripts_end_asking(cli_scripts *s)
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
