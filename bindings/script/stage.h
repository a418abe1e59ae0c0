/* stage.h - an API server, a clock that stands, and a manager whose keys wait for their turn: where
 * scripts are tested.
 *
 *   server and client live as long as the stage; a manager from start to stop. Owner thread, but for what
 *   the manager's threads report. */
#ifndef LKL_STAGE_H
#define LKL_STAGE_H

#include <lua.h>
#include <stdatomic.h>

#include "base/sync.h"
#include "client/call_webhook.h"
#include "manager/turns.h"
#include "run/worker.h"
#include "server/server.h"

/* What happened, in the order it did: texts by name, nothing but texts, numbers in words. */
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
/* Pushes it as a list of tables, and it is empty then. */
int lkl__push_journal(lua_State *L, lkl_journal *j);
/* From now on what the runtime logs is kept for core.stage_logs. */
void lkl__stage_listen(void);
/* What is logged for debugging about a key is kept, too; NULL: of none, if it was this one who asked last.
 * One thread at a time. */
void lkl__stage_about(const void *who, const char *key);
/* Pushes what keeps them: the programs of { { path = [, text =] } ... } (`simulated = true`: path is the
 * name of a stand-in, which has no params) at an absolute index of the stack,
 * with `params` (NULL: none) over their own. Raises. */
kl_program **lkl__programs(lua_State *L, int list, const kl_value *params, size_t *count);

/* Requests of ctx.http that wait for a function of the test (stage_web.c). */
typedef struct lkl_ask lkl_ask;
typedef struct lkl_asks {
    kl_mutex mu;
    bool open; /* under mu, as `first`: there is a function */
    lkl_ask *first;
    lua_State *L; /* owner thread, as the rest: whose function may be called now; NULL: nobody settles */
    int box;      /* the stage's place on its stack; user values: function, what one raised */
    bool raised;
} lkl_asks;

typedef struct lkl_stage {
    kl_clock *clock;
    kl_webhook_caller *caller; /* the server's */
    kl_server *server;
    kl_client *client;
    kl_manager *manager; /* NULL while nothing runs */
    /* they are of another owner, and what runs is not remembered: the process goes on for days */
    bool beside;
    atomic_bool leaving; /* set by any thread: an advance ends where it is */
    lkl_journal runs, calls;
    lkl_asks web;
} lkl_stage;

KL_NODISCARD kl_status lkl__stage_new(kl_time wall, lkl_stage **out, kl_err *err);
/* A stage for a server that is there, whose clock (a fake one) somebody else has; takes the client. */
lkl_stage *lkl__stage_beside(kl_server *server, kl_clock *clock, kl_client *client);
void lkl__stage_free(lkl_stage *s); /* NULL is fine */
void lkl__stage_stop(lkl_stage *s); /* the manager, if there is one */
/* The client's web_ask: any thread. */
void lkl__stage_ask(void *stage, struct kl_web_call *call, const kl_op *op);
/* Answers what waits. Called again and again while the stage settles. */
void lkl__stage_web_serve(lkl_stage *s);
/* From now on all is refused, what waits too. */
void lkl__stage_web_close(lkl_stage *s);
/* Stage at 1 of the stack, function or nil at 2: who answers from now on. */
void lkl__stage_web_function(lua_State *L, lkl_stage *s);
/* Around what settles, with the stage at 1: leave raises what a function raised. */
void lkl__stage_web_enter(lua_State *L, lkl_stage *s);
void lkl__stage_web_leave(lua_State *L, lkl_stage *s);

/* Takes a reference of each program. */
KL_NODISCARD kl_status lkl__stage_start(
    lkl_stage *s, kl_program *const *programs, size_t n, const char *ns, kl_err *err);
/* One key after the other runs until none is ready and everything has been heard of. Time stands. */
KL_NODISCARD kl_status lkl__stage_settle(lkl_stage *s, kl_outlook *last, kl_err *err);
/* Settles, and moves the clock by d, from one moment at which something happens to the next. */
KL_NODISCARD kl_status lkl__stage_advance(lkl_stage *s, kl_time d, kl_err *err);
/* Until no key fails and no run sleeps, which may take `most` of virtual time. */
KL_NODISCARD kl_status lkl__stage_rest(lkl_stage *s, kl_time most, kl_err *err);

#endif
