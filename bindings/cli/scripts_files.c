/* scripts_files.c - the files that scripts are made of: their versions, and the watch over them. */
#include "cli/scripts_impl.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/texts.h"

bool cli__script_files_take(cli__script *sc, const kl_program *p)
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

uint64_t cli__script_version(const cli__script *sc)
{
    uint64_t version = file_version(sc->path) + folder_version(sc->path);
    for (char **f = sc->files; f && *f; f++)
        version = version * 31 + file_version(*f);
    return version;
}

uint64_t cli__program_version(const kl_program *p)
{
    return lkl_program_digest(p) * 31 + kl_program_params_version(p);
}

bool cli__scripts_saved_since(const cli_scripts *s)
{
    bool saved = false;
    struct stat st;
    for (size_t i = 0; i < s->n; i++)
        for (char **f = s->v[i].files; f && *f; f++)
            saved |= !stat(*f, &st) && KL_SECONDS(st.st_ctim.tv_sec) + st.st_ctim.tv_nsec >= s->loaded;
    return saved;
}

/* --- the watch ---------------------------------------------------------------------------- */

static void files_changed(void *arg)
{
    (void)arg;
    cli_poke();
}

void cli__scripts_watch_files(cli_scripts *s)
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
    if (n && kl_fswatch_start(files, n, ".lua", files_changed, s, &s->watch, &err)) {
        kl_warn(
            "scripts are not watched; SIGHUP reloads them", "error=%s", kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
    }
    kl_free(files);
}
