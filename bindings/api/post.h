/* post.h - a call or a watch of a client: a queue that the client's threads fill and the state's thread
 * empties.
 *
 *   made --lkl__post_add*--> filling --lkl__post_done--> done        any of them --lkl__post_free--> orphan, or gone
 *
 * A post whose userdata is collected is cancelled and stays with its hub as an orphan until the client's
 * thread has finished with it: a finaliser never waits for the network. */
#ifndef LKL_POST_H
#define LKL_POST_H

#include "auth/config.h"
#include "base/sync.h"
#include "client/web.h"
#include "state/border.h"

typedef struct lkl_item {
    struct lkl_item *next;
    char type[16];
    const kl_value *v;
} lkl_item;
typedef struct lkl_post lkl_post;
typedef struct lkl_watch_start lkl_watch_start;

/* A user of a client that must end before the client. When the client closes, `leave` is called once and
 * removes the guest from the list. State's thread. */
typedef struct lkl_guest {
    struct lkl_guest *next, **at;
    void (*leave)(struct lkl_guest *);
} lkl_guest;
/* The contents of a client's box. `posts` are its calls and watches, including orphans; `sets` its informers
 * (linformer.c). The hub of kube.http has a web, and no client. State's thread. */
typedef struct lkl_hub {
    kl_client *client;
    kl_web *web;
    lkl_post *posts;
    struct lkl_set *sets;
    lkl_guest *guests;
    struct lkl_warnings *warnings;
    bool managed; /* a manager uses it, and takes its hooks */
} lkl_hub;

struct lkl_post {
    lkl_hub *hub; /* NULL once the client was closed; state's thread, as the next five */
    lkl_post *next, **at;
    bool watch, cancelled;
    bool orphan;            /* its userdata was collected */
    kl_client *client;      /* any thread; set once */
    kl_web *web;            /* likewise: the web that runs the call, or NULL */
    lkl_watch_start *start; /* a watch until it was begun on the watch thread */
    uint64_t id;            /* calls: state's thread; watches: watch thread */

    kl_mutex mu; /* guards the rest */
    kl_cond cond;
    bool done;   /* nothing will be added */
    int pending; /* functions posted to the watch thread that have not ended */
    kl_status st;
    kl_err err;
    lkl_item *head, **tail;
    size_t queued;
};

/* --- the state's thread ------------------------------------------------------------------- */
/* A new post, listed in the hub; also frees orphans that have ended. */
lkl_post *lkl__post_new(lkl_hub *h);
/* The next item, waited for at most one slice; NULL when there is none. *done: nothing will follow. The
 * caller owns it. */
lkl_item *lkl__post_take(lkl_post *p, bool *done);
/* Frees the item except for its value, which is returned; the caller owns that reference. */
const kl_value *lkl__item_value(lkl_item *taken);
kl_status lkl__post_status(lkl_post *p); /* how it ended; lkl__post_raise raises it */
/* Runs fn(p) on the watch thread; fn ends with lkl__post_was_there, its last touch. */
void lkl__post_there(lkl_post *p, void (*fn)(void *));
void lkl__post_free(void *post); /* the userdata is collected; never waits */
void lkl__guest_enter(lkl_hub *h, lkl_guest *g);
void lkl__guest_gone(lkl_guest *g); /* takes it out of the list, if it is in the list */
/* closes the client, which joins its threads; posts that live on have no hub */
void lkl__hub_free(void *hub);
void lkl__watch_start_free(lkl_watch_start *s);

/* The maximum time of one wait, and so the longest delay of ^C. */
#define LKL_SLICE KL_MILLISECONDS(200)

/* --- warnings (lwarnings.c) --------------------------------------------------------------- */
typedef struct lkl_warnings lkl_warnings;
lkl_warnings *lkl__warnings_new(bool log);
void lkl__warnings_free(lkl_warnings *w); /* after the client */
/* kl_client_options.on_warning */
void lkl__warnings_add(void *warnings, const char *text, const char *call);
int lkl__client_warnings(lua_State *L); /* client:warnings() */

/* --- the client's threads ----------------------------------------------------------------- */
/* Takes the value. Any other status than KL_OK: the reader is too far behind, and the caller ends the
 * transfer with err. */
kl_status lkl__post_add(lkl_post *p, const char *type, const kl_value *taken, kl_err *err);
void lkl__post_done(lkl_post *p, kl_status st, kl_err *err);
void lkl__post_was_there(lkl_post *p);

/* --- Lua ---------------------------------------------------------------------------------- */
extern const lkl_class lkl__client_class, lkl__call_class, lkl__watch_class, lkl__bell_class;
/* Pushes a box of the class for a post of the client at 1. The box keeps the client alive, and the table on
 * top of the stack as its op. */
lkl_box *lkl__post_box(lua_State *L, const lkl_class *c);
/* the post at 1; raises when the client was closed */
lkl_post *lkl__post_check(lua_State *L, const lkl_class *c);
/* raises the post's error, which names its op; p's userdata is at 1 */
int lkl__post_raise(lua_State *L, lkl_post *p);
/* kl_reply_fn of a call */
void lkl__post_reply(void *post, kl_status st, int code, const kl_value *body, kl_err *err);
int lkl__recorder_new(lua_State *L);     /* core.recorder(client, component) */
int lkl__client_watch(lua_State *L);     /* client:watch(op) */
int lkl__client_informers(lua_State *L); /* client:informers(options) */
/* the client is about to close: ends its informers */
void lkl__sets_stop(lkl_hub *h);
int lkl__box_close(lua_State *L); /* x:close() of any box */

/* connect.c: a field of the table at `t`: its text, which the table keeps (NULL: not a text), or whether it
 * is true. */
const char *lkl__field_text(lua_State *L, int t, const char *key);
bool lkl__field_flag(lua_State *L, int t, const char *key);
/* The options at `t` as sources, borrowed from the table and from up to 8 slots that it leaves on the
 * stack. */
void lkl__connect_sources(lua_State *L, int t, kl_config_sources *out);

#endif
