/* lrecorder.c - Events for programs that are no controllers: a recorder with a door and a loop of its own,
 * as a guest of a client.
 *
 * A client that is closed first lets the recorder send what it has, then ends it; calls on the userdata
 * then say that it is closed. */
#include "api/post.h"
#include "base/mem.h"
#include "events/recorder.h"

/* The longest flush at the end of a program or of a client. */
#define FLUSH_MAX KL_SECONDS(2)

typedef struct recorder {
    lkl_guest guest;
    char *component;
    kl_door *door;
    kl_loop *loop;
    kl_recorder *r; /* NULL once the client was closed */
} recorder;

static uint64_t send_op(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    return kl_client_do(arg, op, done, done_arg);
}

static void leave(lkl_guest *g)
{
    recorder *w = (recorder *)g; /* its first field */
    lkl__guest_gone(g);
    if (!w->r)
        return;
    (void)kl_recorder_flush(w->r, kl_clock_now(kl_clock_real()) + FLUSH_MAX);
    kl_recorder_free(w->r);
    kl_loop_free(w->loop);
    kl_door_free(w->door);
    w->r = NULL;
}

static void recorder_free(void *p)
{
    recorder *w = p;
    leave(&w->guest);
    kl_free(w->component);
    kl_free(w);
}

static const lkl_class recorder_class;

static recorder *self(lua_State *L)
{
    recorder *w = lkl_box_check(L, 1, &recorder_class);
    if (!w->r)
        luaL_argerror(L, 1, "the recorder's client was closed");
    return w;
}

int lkl__recorder_new(lua_State *L)
{
    lkl_hub *h = lkl_box_check(L, 1, &lkl__client_class);
    const char *component = lkl__text(L, 2);
    lkl_box *box = lkl_box_new(L, &recorder_class, 1);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    recorder *w = kl_new(recorder);
    w->guest.leave = leave;
    w->component = kl_strdup(component);
    w->door = kl_door_new(&(kl_door_options){.send = send_op, .send_arg = h->client});
    w->loop = kl_loop_new("kl-events", NULL);
    kl_loop_start(w->loop);
    w->r = kl_recorder_new(w->door, kl_clock_real(), w->loop);
    lkl__guest_enter(h, &w->guest);
    box->ptr = w;
    return 1;
}

/* recorder:event(type, reason, message, about [, action [, related]]) */
static int event(lua_State *L)
{
    recorder *w = self(L);
    const kl_value *about = lkl_view_value(L, 5);
    if (!about)
        return luaL_typeerror(L, 5, "kubelua.view");
    kl_recorder_event(w->r,
        &(kl_news){.component = w->component,
            .type = lkl__text(L, 2),
            .reason = lkl__text(L, 3),
            .note = lkl__text(L, 4),
            .about = about,
            .action = lkl__opt_text(L, 6, NULL),
            .related = lkl_view_value(L, 7)});
    return 0;
}

/* recorder:flush(timeout): whether the server knows everything */
static int flush(lua_State *L)
{
    recorder *w = self(L);
    kl_time timeout = lkl_check_duration(L, 2, "flush");
    lua_pushboolean(L, kl_recorder_flush(w->r, kl_time_after(kl_clock_now(kl_clock_real()), timeout)));
    return 1;
}

static int stats(lua_State *L)
{
    kl_recorder_stats s;
    kl_recorder_stats_get(self(L)->r, &s);
    const struct {
        const char *name;
        uint64_t n;
    } fields[] = {{"recorded", s.recorded}, {"waiting", s.waiting}, {"full", s.full}, {"spam", s.spam},
        {"refused", s.refused}, {"given_up", s.given_up}, {"terminating", s.terminating}};
    lua_createtable(L, 0, sizeof fields / sizeof *fields);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        lua_pushinteger(L, (lua_Integer)fields[i].n);
        lua_setfield(L, -2, fields[i].name);
    }
    return 1;
}

static const luaL_Reg methods[] = {
    {"event", event}, {"flush", flush}, {"stats", stats}, {"close", lkl__box_close}, {NULL, NULL}};
static const lkl_class recorder_class = {"kubelua.recorder", recorder_free, methods, NULL};
