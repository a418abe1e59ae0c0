/* stage.h - the environment of script tests: an API server, a clock that stands still, and a manager that
 * runs keys one by one.
 *
 * Server and client live as long as the stage; a manager from start to stop. Owner thread, but for reports of
 * the manager's threads. */
#ifndef LKL_STAGE_H
#define LKL_STAGE_H

#include <lua.h>
#include <stdatomic.h>

#include "base/sync.h"
#include "client/call_webhook.h"
#include "manager/turns.h"
#include "run/worker.h"
#include "server/server.h"

/* A log of events in order: texts by name, numbers as text. */
typedef struct lkl_entry {
    const char *name[12];
    char *text[12];
    size_t n;
} lkl_entry;
typedef struct lkl_journal {
    kl_mutex mu;
    lkl_entry *v;
    size_t n;
} lkl_journal;
/* Takes the texts, which end with a NULL name: "key", text, ... Any thread. */
void lkl__journal_add(lkl_journal *j, const char *name, char *text, ...);

void lkl__journal_fini(lkl_journal *j);
/* Pushes the journal as a list of tables, and empties it. */
int lkl__push_journal(lua_State *L, lkl_journal *j);
/* From now on log records of the runtime are kept for core.stage_logs. */
void lkl__stage_listen(void);
/* Keeps debug records about a key ("*": every key), too; NULL: no key, if this stage set it last. One thread
 * at a time. */
void lkl__stage_about(const void *who, const char *key);
/* Pushes their holder: the programs of { { path = [, text =] } ... } (`simulated = true`: path is the name of
 * a stand-in, which has no params) at an absolute index of the stack, with `params` (NULL: none) over their
 * own. Raises. */
kl_program **lkl__programs(lua_State *L, int list, const kl_value *params, size_t *count);

/* Requests of ctx.http that wait for a function of the test (stage_web.c). */
typedef struct lkl_ask lkl_ask;
typedef struct lkl_asks {
    kl_mutex mu;
    bool open; /* under mu, as `first`: there is a function */
    lkl_ask *first;
    lua_State *L; /* the state whose function may be called now; NULL: the stage does not settle. Owner
                   * thread, as the members below */
    int box;      /* the stack index of the stage's userdata; user values: the function, its error */
    bool raised;
} lkl_asks;

typedef struct lkl_stage {
    kl_clock *clock;
    kl_webhook_caller *caller; /* the server's */
    kl_server *server;
    kl_client *client;
    kl_manager *manager; /* NULL while nothing runs */
    /* server, clock and client have another owner, and runs are not recorded, because the process lives for
     * days */
    bool beside;
    atomic_bool leaving; /* set by any thread: ends an advance at its present time */
    lkl_journal runs, calls;
    char *loop KL_GUARDED_BY(runs.mu); /* a key that never rests, to be reported by the next settle; or NULL
                                        */
    lkl_asks web;
} lkl_stage;

KL_NODISCARD kl_status lkl__stage_new(kl_time wall, lkl_stage **out, kl_err *err);
/* A stage for an existing server with a foreign (fake) clock; takes the client. */
lkl_stage *lkl__stage_beside(kl_server *server, kl_clock *clock, kl_client *client);
void lkl__stage_free(lkl_stage *s); /* NULL is fine */
void lkl__stage_stop(lkl_stage *s); /* the manager, if there is one */
/* The client's web_ask: any thread. */
void lkl__stage_ask(void *stage, struct kl_web_call *call, const kl_op *op);
/* Answers waiting requests. Called repeatedly while the stage settles. */
void lkl__stage_web_serve(lkl_stage *s);
/* Refuses all requests from now on, including waiting ones. */
void lkl__stage_web_close(lkl_stage *s);
/* With the stage at 1 and a function, or nil, at 2: the function answers requests from now on. */
void lkl__stage_web_function(lua_State *L, lkl_stage *s);
/* Called before and after settling, with the stage at 1; leave raises an error of the function. */
void lkl__stage_web_enter(lua_State *L, lkl_stage *s);
void lkl__stage_web_leave(lua_State *L, lkl_stage *s);

/* Takes a reference of each program. */
KL_NODISCARD kl_status lkl__stage_start(
    lkl_stage *s, kl_program *const *programs, size_t n, const char *ns, kl_err *err);
/* Runs the keys one after the other until no key is ready and all events are processed. Time stands still. */
KL_NODISCARD kl_status lkl__stage_settle(lkl_stage *s, kl_outlook *last, kl_err *err);
/* Settles, and moves the clock by d, from one timer to the next. */
KL_NODISCARD kl_status lkl__stage_advance(lkl_stage *s, kl_time d, kl_err *err);
/* Advances until no key fails and no run sleeps, by at most `most` of virtual time. */
KL_NODISCARD kl_status lkl__stage_rest(lkl_stage *s, kl_time most, kl_err *err);

#endif
