/* control.c - where processes listen, which processes there are, and one question to one of them. */
#include "cli/control.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "httpd/unixsock.h"
#include "http/http.h"

#define ANSWER_TIMEOUT 30
/* An answer may hold all objects of a kind. */
#define ANSWER_MAX ((size_t)1 << 30)
#define ENDING ".sock"

kl_control *cli_control_new(const char *command, const cli_list *scripts)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "command", command);
    kl_build_key(b, "scripts");
    kl_build_array(b);
    for (size_t i = 0; i < scripts->n; i++)
        kl_build_str(b, scripts->v[i]);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *about = kl_builder_done(b);
    kl_control *c = kl_control_new(about);
    kl_value_unref(about);
    return c;
}

int cli_control_listen(kl_control *c, const char *command, const char *place)
{
    kl_err err = KL_ERR_INIT;
    if (place && !strcmp(place, "off"))
        return 0;
    if (kl_control_listen(c, place, &err)) {
        if (place) {
            kl_err_prefix(&err, "--control");
            return cli_fail_err(1, command, &err);
        }
        kl_warn("no control socket: kubelua why and attach cannot reach this process; --control PATH sets "
                "another place, --control off turns it off",
            "error=%s", kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
        return 0;
    }
    kl_info("control socket", "path=%s", kl_log_quoted(kl_control_path(c)));
    return 0;
}

/* --- who is there ------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* A socket has its name a moment before its process listens. A process that has just started must not lose
 * it. */
#define YOUNG KL_SECONDS(10)

static bool is_old(const char *path)
{
    struct stat st;
    return !lstat(path, &st) && kl_clock_wall(kl_clock_real()) - KL_SECONDS(st.st_mtim.tv_sec) > YOUNG;
}

/* The directory's name is known, and everybody may write where it is. Another user's directory would have
 * that user's sockets, and a command would send them params and scripts. */
static DIR *open_ours(const char *dir)
{
    struct stat st;
    if (lstat(dir, &st))
        return NULL;
    if (S_ISDIR(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == 0))
        return opendir(dir);
    kl_warn("the directory of control sockets belongs to another user or is not a directory: it is not "
            "searched; --socket PATH names a socket",
        "path=%s uid=%u", kl_log_quoted(dir), (unsigned)st.st_uid);
    return NULL;
}

static char **living(size_t *n)
{
    char *dir = kl_control_dir(), **out = NULL;
    DIR *d = open_ours(dir);
    *n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t len = strlen(e->d_name);
        if (len <= strlen(ENDING) || strcmp(e->d_name + len - strlen(ENDING), ENDING))
            continue;
        char *path = kl_sprintf("%s/%s", dir, e->d_name);
        if (kl_unixsock_alive(path, NULL)) {
            out = kl_realloc(out, (*n + 1) * sizeof *out);
            out[(*n)++] = path;
            continue;
        }
        if (is_old(path))
            unlink(path);
        kl_free(path);
    }
    if (d)
        closedir(d);
    kl_free(dir);
    if (*n)
        qsort(out, *n, sizeof *out, by_text);
    return out;
}

static int sockets(lua_State *L)
{
    size_t n;
    char **paths = living(&n);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        pid_t pid = 0;
        (void)kl_unixsock_alive(paths[i], &pid);
        lua_createtable(L, 0, 2);
        lua_pushstring(L, paths[i]);
        lua_setfield(L, -2, "path");
        lua_pushinteger(L, pid);
        lua_setfield(L, -2, "pid");
        lua_rawseti(L, -2, (lua_Integer)i + 1);
        kl_free(paths[i]);
    }
    kl_free(paths);
    return 1;
}

/* --- one question ------------------------------------------------------------------------- */

typedef struct question {
    kl_mutex mu;
    kl_cond over;
    bool done;
    kl_status status;
    int code;
    kl_buf text;
    kl_err err;
} question;

static kl_status on_data(void *arg, const char *data, size_t n, kl_err *err)
{
    question *q = arg;
    return kl_buf_add(&q->text, data, n)
        ? kl_fail(err, KL_ETOOBIG, "the response is larger than %zu MiB", ANSWER_MAX >> 20)
        : KL_OK;
}

static void on_done(void *arg, kl_status st, int code, bool sent, kl_err *err)
{
    (void)sent;
    question *q = arg;
    kl_lock(&q->mu);
    q->status = st;
    q->code = code;
    kl_err_move(&q->err, err);
    q->done = true;
    kl_cond_signal(&q->over);
    kl_unlock(&q->mu);
}

static void ask(question *q, const char *path, const char *method, const char *target, const char *body,
    size_t n, kl_time timeout)
{
    static const char *const HEADERS[] = {"Content-Type: application/json", NULL};
    kl_http *http = NULL;
    if ((q->status = kl_http_new(&(kl_http_options){.name = "kl-control", .http1 = true}, &http, &q->err)))
        return;
    char *url = kl_sprintf("http://kubelua%s", target);
    kl_http_request r = {.method = method,
        .url = url,
        .headers = body ? HEADERS : NULL,
        .body = body,
        .body_len = n,
        .proxy = "",
        .unix_socket = path,
        .total_timeout = timeout,
        .on_data = on_data,
        .on_done = on_done,
        .arg = q};
    kl_http_submit(http, &r);
    kl_lock(&q->mu);
    while (!q->done) /* on_done is called however the request ends */
        kl_cond_wait(&q->over, &q->mu);
    kl_unlock(&q->mu);
    kl_free(url);
    kl_http_free(http);
}

static int call(lua_State *L)
{
    size_t n = 0;
    const char *path = luaL_checkstring(L, 1), *method = luaL_checkstring(L, 2),
               *target = luaL_checkstring(L, 3), *body = luaL_optlstring(L, 4, NULL, &n);
    lua_Integer seconds = luaL_optinteger(L, 5, ANSWER_TIMEOUT);
    question q = {0};
    kl_mutex_init(&q.mu);
    kl_cond_init(&q.over);
    kl_buf_init(&q.text, ANSWER_MAX);
    ask(&q, path, method, target, body, n, KL_SECONDS(seconds));
    if (q.status) {
        lua_pushnil(L);
        lua_pushstring(L, kl_err_message(&q.err));
    } else {
        lua_pushinteger(L, q.code);
        lua_pushlstring(L, kl_buf_str(&q.text), q.text.len);
    }
    kl_buf_fini(&q.text);
    kl_err_fini(&q.err);
    kl_cond_fini(&q.over);
    kl_mutex_fini(&q.mu);
    return 2;
}

void cli_control_push(lua_State *L)
{
    lua_createtable(L, 0, 2);
    lua_pushcfunction(L, sockets);
    lua_setfield(L, -2, "sockets");
    lua_pushcfunction(L, call);
    lua_setfield(L, -2, "call");
}
