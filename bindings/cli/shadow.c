/* shadow.c - the candidate's file, and the commands about it. The main thread watches the file and
 * promotes; commands come on HTTP threads. */
#include "cli/shadow.h"

#include <stdlib.h>
#include <string.h>

#include "script/program.h"
#include "base/fswatch.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "base/texts.h"
#include "lab/shadow.h"
#include "run/params.h"

struct cli_shadow {
    kl_manager *m;
    cli_params *params;
    kl_fswatch *watch; /* main thread */
    kl_mutex mu;
    char *path KL_GUARDED_BY(mu);   /* NULL: there is no candidate */
    char **files KL_GUARDED_BY(mu); /* the files that it was made of; NULL-terminated */
    size_t promote_after KL_GUARDED_BY(mu);
    uint64_t digest KL_GUARDED_BY(mu); /* of its sources and params */
    uint64_t params_changes;           /* main thread: cli_params_changes when last read */
    char *refused KL_GUARDED_BY(mu);   /* why its file was refused, as last logged */
    bool rewatch KL_GUARDED_BY(mu), changed KL_GUARDED_BY(mu);
};

/* --- beginning and ending ----------------------------------------------------------------- */

static char **files_of(const kl_program *p)
{
    const char *const *files = lkl_program_files(p);
    size_t n = 0;
    while (files[n])
        n++;
    char **copy = kl_new_array(char *, n + 1);
    for (size_t i = 0; i < n; i++)
        copy[i] = kl_strdup(files[i]);
    return copy;
}

static uint64_t digest_of(const kl_program *p)
{
    return lkl_program_digest(p) * 31 + kl_program_params_version(p);
}

static void on_clean(void *arg)
{
    (void)arg;
    cli_poke();
}

static kl_status start(cli_shadow *s, kl_program *p, const char *path, size_t promote_after, kl_err *err)
{
    return kl_manager_shadow(s->m, p,
        &(kl_shadow_options){.path = path, .promote_after = promote_after, .clean = on_clean, .arg = s}, err);
}

static void take(cli_shadow *s, const char *path, const kl_program *p, size_t promote_after)
{
    kl_lock(&s->mu);
    char *old_path = s->path;
    char **old_files = s->files;
    s->path = kl_strdup(path);
    s->files = files_of(p);
    s->promote_after = promote_after;
    s->digest = digest_of(p);
    kl_free(s->refused);
    s->refused = NULL;
    s->rewatch = true;
    kl_unlock(&s->mu);
    kl_free(old_path);
    kl_texts_free(old_files);
    cli_poke();
}

static kl_status load(cli_shadow *s, const char *path, kl_program **out, kl_err *err)
{
    kl_program *p = NULL;
    kl_status st = lkl_program_load(path, &p, err);
    if (!st)
        st = cli_params_set(s->params, p, true, err);
    if (st)
        kl_program_unref(p);
    else
        *out = p;
    return st;
}

kl_status cli_shadow_begin(cli_shadow *s, const char *path, size_t promote_after, kl_err *err)
{
    kl_program *p = NULL;
    kl_status st = load(s, path, &p, err);
    if (st)
        return st;
    st = start(s, p, path, promote_after, err);
    if (!st)
        take(s, path, p, promote_after);
    kl_program_unref(p);
    return st;
}

static void forget(cli_shadow *s)
{
    kl_lock(&s->mu);
    kl_free(s->path);
    s->path = NULL;
    kl_texts_free(s->files);
    s->files = NULL;
    s->rewatch = true;
    kl_unlock(&s->mu);
    cli_poke();
}

static kl_status promote(cli_shadow *s, kl_err *err)
{
    kl_status st = kl_manager_promote(s->m, err);
    if (!st)
        forget(s);
    return st;
}

/* --- its file: main thread ---------------------------------------------------------------- */

static void on_file(void *arg)
{
    cli_shadow *s = arg;
    kl_lock(&s->mu);
    s->changed = true;
    kl_unlock(&s->mu);
    cli_poke();
}

/* Copies of the watched paths, which the caller frees. */
static char **watched(cli_shadow *s, size_t *n)
{
    *n = 0;
    kl_lock(&s->mu);
    while (s->files && s->files[*n])
        ++*n;
    char **paths = kl_new_array(char *, *n + 1);
    for (size_t i = 0; i < *n; i++)
        paths[i] = kl_strdup(s->files[i]);
    s->rewatch = false;
    kl_unlock(&s->mu);
    return paths;
}

static void watch_files(cli_shadow *s)
{
    size_t n;
    char **paths = watched(s, &n);
    kl_err err = KL_ERR_INIT;
    kl_fswatch_stop(s->watch);
    s->watch = NULL;
    if (n && kl_fswatch_start((const char *const *)paths, n, ".lua", on_file, s, &s->watch, &err)) {
        kl_warn("the candidate's file is not watched; start its shadow again after a change", "error=%s",
            kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
    }
    kl_texts_free(paths);
    if (s->watch)
        on_file(s); /* the file may have been saved between two watches */
}

static void refuse(cli_shadow *s, const char *path, kl_err *err)
{
    kl_lock(&s->mu);
    bool news = !s->refused || strcmp(s->refused, kl_err_message(err));
    kl_free(s->refused);
    s->refused = kl_strdup(kl_err_message(err));
    kl_unlock(&s->mu);
    if (news)
        kl_warn("the changed candidate cannot run; the previous one stays in the shadow",
            "candidate=%s error=%s", path, kl_log_quoted(kl_err_message(err)));
    kl_err_fini(err);
}

static void load_again(cli_shadow *s)
{
    kl_program *p = NULL;
    kl_err err = KL_ERR_INIT;
    kl_lock(&s->mu);
    char *path = kl_strdup(s->path);
    uint64_t digest = s->digest;
    size_t promote_after = s->promote_after;
    kl_unlock(&s->mu);
    if (path && load(s, path, &p, &err))
        refuse(s, path, &err);
    else if (path && digest_of(p) != digest && start(s, p, path, promote_after, &err))
        refuse(s, path, &err);
    else if (path && digest_of(p) != digest)
        take(s, path, p, promote_after);
    kl_program_unref(p);
    kl_free(path);
}

void cli_shadow_news(cli_shadow *s)
{
    if (!s)
        return;
    kl_err err = KL_ERR_INIT;
    kl_lock(&s->mu);
    bool changed = s->changed;
    s->changed = false;
    kl_unlock(&s->mu);
    uint64_t params = cli_params_changes(s->params);
    if (changed || params != s->params_changes)
        load_again(s);
    s->params_changes = params;
    if (kl_shadow_clean(kl_manager_shadow_of(s->m)) && promote(s, &err)) {
        kl_error("the candidate was not promoted", "error=%s", kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
    }
    kl_lock(&s->mu);
    bool rewatch = s->rewatch;
    kl_unlock(&s->mu);
    if (rewatch)
        watch_files(s);
}

/* --- commands ----------------------------------------------------------------------------- */

static void reply(cli_shadow *s, kl_control_request *q)
{
    const kl_value *report = kl_shadow_report(kl_manager_shadow_of(s->m));
    if (report)
        kl_control_reply(q, 200, report);
    else
        kl_control_refuse(
            q, 404, "no candidate runs in the shadow: start one with kubelua shadow CANDIDATE.lua");
}

static void on_get(void *arg, kl_control_request *q) { reply(arg, q); }

static void on_post(void *arg, kl_control_request *q)
{
    cli_shadow *s = arg;
    kl_err err = KL_ERR_INIT;
    const char *path = kl_value_str_at(kl_control_body(q), "path", NULL);
    int64_t after = kl_value_int_at(kl_control_body(q), 0, "promote_after", NULL);
    if (!path || *path != '/') {
        kl_control_refuse(
            q, 400, "the body must be {\"path\": \"/where/the/candidate/is.lua\"}, with an absolute path");
    } else if (after < 0) {
        kl_control_refuse(
            q, 400, "promote_after must be a number of matching keys, got %lld", (long long)after);
    } else if (cli_shadow_begin(s, path, (size_t)after, &err)) {
        kl_control_fail(q, &err);
        kl_err_fini(&err);
    } else {
        reply(s, q);
    }
}

static void on_delete(void *arg, kl_control_request *q)
{
    cli_shadow *s = arg;
    const kl_value *report = kl_shadow_report(kl_manager_shadow_of(s->m));
    kl_manager_shadow_end(s->m);
    forget(s);
    if (report)
        kl_control_reply(q, 200, report);
    else
        reply(s, q);
}

static void on_promote(void *arg, kl_control_request *q)
{
    cli_shadow *s = arg;
    kl_err err = KL_ERR_INIT;
    const kl_value *report = kl_shadow_report(kl_manager_shadow_of(s->m));
    if (promote(s, &err)) {
        kl_control_fail(q, &err);
        kl_err_fini(&err);
        kl_value_unref(report);
    } else {
        kl_control_reply(q, 200, report);
    }
}

cli_shadow *cli_shadow_new(kl_manager *m, cli_params *params, kl_control *c)
{
    cli_shadow *s = kl_new(cli_shadow);
    s->m = m;
    s->params = params;
    kl_mutex_init(&s->mu);
    kl_control_route(c, "GET", "/v1/shadow",
        "the candidate in the shadow: how many keys match, and how others differ", on_get, s);
    kl_control_route(
        c, "POST", "/v1/shadow", "{path, promote_after}: run a candidate in the shadow", on_post, s);
    kl_control_route(c, "DELETE", "/v1/shadow", "end it", on_delete, s);
    kl_control_route(c, "POST", "/v1/shadow/promote", "make it the next generation", on_promote, s);
    return s;
}

void cli_shadow_free(cli_shadow *s)
{
    if (!s)
        return;
    kl_fswatch_stop(s->watch);
    kl_free(s->path);
    kl_texts_free(s->files);
    kl_free(s->refused);
    kl_mutex_fini(&s->mu);
    kl_free(s);
}
