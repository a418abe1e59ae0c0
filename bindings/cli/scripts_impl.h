/* scripts_impl.h - the inside of the scripts of a process, for scripts.c (loading, life), scripts_files.c
 * (the files that they are made of) and scripts_reload.c (what happens when these change). Main thread, but
 * for what mu guards. */
#ifndef KL_CLI_SCRIPTS_IMPL_H
#define KL_CLI_SCRIPTS_IMPL_H

#include "base/fswatch.h"
#include "base/sync.h"
#include "cli/loader.h"
#include "cli/mapscript.h"
#include "cli/scripts.h"
#include "lab/record.h"
#include "run/params.h"
#include "script/program.h"

typedef struct cli__script {
    const char *path;   /* as the process was given it */
    cli_mapscript *map; /* NULL: a file */
    int slot, generation;
    uint64_t version;    /* of its sources and params */
    char **files;        /* the files that it was made of, NULL-terminated */
    char *refused;       /* message of the last rejection, so that it is logged once */
    kl_program *program; /* the generation that was taken last; NULL until there is one */
    kl_program *before;  /* the generation before it, in case that has to come back; or NULL */
    uint64_t taken_back; /* the version that was taken back: it is not loaded again by itself; 0: none */
    /* under the scripts' mu: a generation that is much worse than the one before; 0: none */
    int broken;
    char *why; /* likewise: in words */
} cli__script;

struct cli_scripts {
    cli__script *v;
    size_t n;
    cli_params *params;        /* borrowed */
    char *unknown;             /* the last complaint about a param that no script has; or NULL */
    bool by_params;            /* the last script loaded is unchanged, but its params do not fit it */
    kl_err params_wrong;       /* why they could not be read; scripts are rejected with it */
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

/* --- scripts.c ---------------------------------------------------------------------------- */
/* Reads the given params again. `local`: without those that come from the cluster. */
void cli__scripts_read_params(cli_scripts *s, bool local);
/* *out: a new reference, on success. */
KL_NODISCARD kl_status cli__script_load(
    cli_scripts *s, cli__script *sc, bool local, kl_program **out, kl_err *err);
/* Fails when a param was given that no script has. */
KL_NODISCARD kl_status cli__scripts_params_known(const cli_scripts *s, kl_err *err);

/* --- scripts_files.c ---------------------------------------------------------------------- */
/* Stores the files of the script; true when they differ from the earlier ones. */
bool cli__script_files_take(cli__script *sc, const kl_program *p);
/* The version of everything that the script is made of, as far as it is known before the load. */
uint64_t cli__script_version(const cli__script *sc);
/* The version of a loaded program and its params. */
uint64_t cli__program_version(const kl_program *p);
/* Whether a file of the scripts was written or replaced since the first load. */
bool cli__scripts_saved_since(const cli_scripts *s);
/* Watches the present files in place of earlier ones; pokes the main thread when one changes. */
void cli__scripts_watch_files(cli_scripts *s);

/* --- scripts_reload.c --------------------------------------------------------------------- */
/* Refuses the requests that wait for a reload, and all later ones. */
void cli__scripts_end_asking(cli_scripts *s);

#endif
