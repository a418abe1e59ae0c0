/* control.c - finds the route of a request, and logs it.
 *
 * A request is a value of its own that holds the HTTP request until the answer, so that handlers may
 * answer when they can. */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "base/sync.h"
#include "base/version.h"

#define BODY_MAX ((size_t)4 << 20)
/* Maximum bytes of a body's outline in the log. */
#define TOLD_MAX 400

typedef struct route {
    char *method, *path, *help;
    kl_control_handler *fn;
    void *arg;
    bool guarded;
} route;

struct kl_control {
    const kl_value *about;
    kl_httpd *httpd;
    char *path;
    /* of the socket's file: a later file at the path may belong to another process */
    dev_t device;
    ino_t number;
    kl_mutex mu;
    route *routes KL_GUARDED_BY(mu); /* in order of their paths */
    size_t n KL_GUARDED_BY(mu);
};

struct kl_control_request {
    kl_httpd_request *http;
    const kl_value *body;
    char *who;
};

/* --- answers ------------------------------------------------------------------------------ */

void kl_control_reply(kl_control_request *q, int code, const kl_value *body)
{
    kl_buf out = KL_BUF_INIT;
    if (body)
        kl_value_encode(body, &out);
    else
        kl_buf_puts(&out, "{}");
    kl_buf_putc(&out, '\n');
    kl_value_unref(body);
    kl_httpd_reply_take(q->http, code, "application/json",
        "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n", &out);
    kl_value_unref(q->body);
    kl_free(q->who);
    kl_free(q);
}

static void refuse(kl_control_request *q, int code, const char *message)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "error", message);
    kl_build_end(b);
    kl_control_reply(q, code, kl_builder_done(b));
}

void kl_control_refuse(kl_control_request *q, int code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *message = kl_vsprintf(fmt, ap);
    va_end(ap);
    refuse(q, code, message);
    kl_free(message);
}

static int code_of(const kl_err *err)
{
    switch (err->status) {
    case KL_EINVAL:
    case KL_ESYNTAX:
    case KL_ETOOBIG: return 400;
    case KL_EFORBIDDEN: return 403;
    case KL_ENOTFOUND:
    case KL_EGONE: return 404;
    case KL_EEXISTS:
    case KL_ECONFLICT: return 409;
    case KL_EREJECTED:
    case KL_ESCRIPT: return 422;
    case KL_EAGAIN:
    case KL_ECANCELLED:
    case KL_ENOTLEADER: return 503;
    case KL_ETIMEOUT: return 504;
    default: return 500;
    }
}

void kl_control_fail(kl_control_request *q, const kl_err *err)
{
    refuse(q, code_of(err), kl_err_message(err));
}

const char *kl_control_query(const kl_control_request *q, const char *name)
{
    return kl_httpd_query(q->http, name);
}
const kl_value *kl_control_body(const kl_control_request *q) { return q->body; }
const char *kl_control_who(const kl_control_request *q) { return q->who; }

/* --- routes ------------------------------------------------------------------------------- */

static int compare(const route *r, const char *method, const char *path)
{
    int by_path = strcmp(r->path, path);
    return by_path ? by_path : strcmp(r->method, method);
}

void kl_control_route(
    kl_control *c, const char *method, const char *path, const char *help, kl_control_handler *fn, void *arg)
{
    kl_lock(&c->mu);
    size_t i = 0;
    while (i < c->n && compare(&c->routes[i], method, path) < 0)
        i++;
    if (i == c->n || compare(&c->routes[i], method, path)) {
        c->routes = kl_realloc(c->routes, (c->n + 1) * sizeof *c->routes);
        memmove(&c->routes[i + 1], &c->routes[i], (c->n++ - i) * sizeof *c->routes);
        c->routes[i] = (route){.method = kl_strdup(method), .path = kl_strdup(path), .help = kl_strdup(help)};
    }
    c->routes[i].fn = fn;
    c->routes[i].arg = arg;
    kl_unlock(&c->mu);
}

void kl_control_guard(kl_control *c, const char *path)
{
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n; i++)
        c->routes[i].guarded |= !strcmp(c->routes[i].path, path);
    kl_unlock(&c->mu);
}

bool kl_control_guarded(kl_control *c, const char *path)
{
    bool yes = false;
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n; i++)
        yes |= c->routes[i].guarded && !strcmp(c->routes[i].path, path);
    kl_unlock(&c->mu);
    return yes;
}

static void answer_index(void *arg, kl_control_request *q)
{
    kl_control *c = arg;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "pid", getpid());
    kl_build_kstr(b, "version", KL_VERSION);
    for (size_t i = 0; i < kl_value_len(c->about); i++) {
        const char *key;
        const kl_value *v = kl_value_member(c->about, i, &key, NULL);
        kl_build_kvalue(b, key, v);
    }
    kl_build_key(b, "routes");
    kl_build_array(b);
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n; i++) {
        kl_build_object(b);
        kl_build_kstr(b, "method", c->routes[i].method);
        kl_build_kstr(b, "path", c->routes[i].path);
        kl_build_kstr(b, "help", c->routes[i].help);
        kl_build_end(b);
    }
    kl_unlock(&c->mu);
    kl_build_end(b);
    kl_build_end(b);
    kl_control_reply(q, 200, kl_builder_done(b));
}

/* No route has this path, or not for this method. */
static void answer_unknown(kl_control *c, kl_control_request *q, const char *method, const char *path)
{
    kl_buf methods = KL_BUF_INIT;
    const char *near;
    kl_lock(&c->mu);
    const char **paths = kl_new_array(const char *, c->n + 1);
    for (size_t i = 0; i < c->n; i++) {
        paths[i] = c->routes[i].path;
        if (!strcmp(c->routes[i].path, path))
            kl_buf_printf(&methods, "%s%s", methods.len ? " or " : "", c->routes[i].method);
    }
    near = kl_suggest(path, paths, c->n);
    char *meant = kl_strdup(near);
    kl_unlock(&c->mu);
    kl_free(paths);
    if (methods.len)
        kl_control_refuse(q, 405, "%s is for %s, not for %s", path, kl_buf_str(&methods), method);
    else if (meant)
        kl_control_refuse(q, 404, "there is no %s; did you mean %s?", path, meant);
    else
        kl_control_refuse(q, 404, "there is no %s; GET /v1/ lists the paths", path);
    kl_free(meant);
    kl_buf_fini(&methods);
}

/* "controller=a params={image,token}": strings are shown, other members only by name: values may be
 * secrets. */
static void outline(const kl_value *body, kl_buf *out)
{
    for (size_t i = 0; i < kl_value_len(body); i++) {
        const char *key, *inner;
        const kl_value *v = kl_value_member(body, i, &key, NULL);
        const char *text = kl_value_str(v);
        kl_buf_printf(out, "%s%s%s%s", i ? " " : "", key, text ? "=" : "", text ? text : "");
        for (size_t k = 0; kl_value_type(v) == KL_OBJECT && k < kl_value_len(v); k++) {
            (void)kl_value_member(v, k, &inner, NULL);
            kl_buf_printf(out, "%s%s", k ? "," : "={", inner);
        }
        if (kl_value_type(v) == KL_OBJECT && kl_value_len(v))
            kl_buf_puts(out, "}");
    }
}

/* Requests that change something are logged at INFO. Others are logged at DEBUG, since `why` may ask each
 * second. */
static void tell(kl_httpd_request *r, const char *who)
{
    bool looks = !strcmp(kl_httpd_method(r), "GET");
    kl_log_level level = looks ? KL_LOG_DEBUG : KL_LOG_INFO;
    if (!kl_log_enabled(level))
        return;
    size_t n;
    const char *text = kl_httpd_body(r, &n);
    const kl_value *body = NULL;
    kl_err err = KL_ERR_INIT;
    kl_buf shown = {0};
    kl_buf_init(&shown, TOLD_MAX);
    if (n && !kl_value_decode(text, n, &body, &err) && kl_value_type(body) == KL_OBJECT)
        outline(body, &shown);
    char *query = kl_httpd_query_text(r);
    kl_log(level, "control command", "%s method=%s path=%s%s%s%s%s", who, kl_httpd_method(r),
        kl_log_quoted(kl_httpd_path(r)), *query ? " query=" : "", *query ? kl_log_quoted(query) : "",
        shown.len ? " body=" : "", shown.len ? kl_log_quoted(kl_buf_str(&shown)) : "");
    kl_value_unref(body);
    kl_err_fini(&err);
    kl_buf_fini(&shown);
    kl_free(query);
}

/* Names in the body are read as C strings, which a NUL would cut. */
static kl_status read_body(kl_control_request *q, kl_err *err)
{
    size_t n, length;
    const char *text = kl_httpd_body(q->http, &n), *key;
    kl_status st = n ? kl_value_decode(text, n, &q->body, err) : KL_OK;
    if (st)
        return kl_err_prefix(err, "the body is not JSON");
    for (size_t i = 0; i < kl_value_len(q->body) && kl_value_type(q->body) == KL_OBJECT; i++) {
        const char *name = kl_value_strn(kl_value_member(q->body, i, &key, NULL), &length);
        if (name && strlen(name) < length)
            return kl_fail(err, KL_EINVAL, "%s contains a NUL character", key);
    }
    return KL_OK;
}

void kl_control_serve(kl_control *c, kl_httpd_request *r, const char *who, bool change)
{
    const char *method = kl_httpd_method(r), *path = kl_httpd_path(r);
    kl_control_request *q = kl_new(kl_control_request);
    q->http = r;
    q->who = kl_strdup(who);
    kl_err err = KL_ERR_INIT;
    if (!change && strcmp(method, "GET")) {
        kl_control_refuse(q, 403, "%s %s makes a change, and this endpoint is read-only", method, path);
        return;
    }
    if (!change && kl_control_guarded(c, path)) {
        kl_control_refuse(q, 403,
            "%s shows the contents of objects, Secrets included: not available on this endpoint", path);
        return;
    }
    route found = {0};
    kl_lock(&c->mu);
    for (size_t i = 0; i < c->n && !found.fn; i++)
        if (!compare(&c->routes[i], method, path))
            found = c->routes[i];
    kl_unlock(&c->mu);
    if (!found.fn)
        answer_unknown(c, q, method, path);
    else if (read_body(q, &err))
        kl_control_fail(q, &err);
    else
        found.fn(found.arg, q);
    kl_err_fini(&err);
}

/* --- the socket --------------------------------------------------------------------------- */

static void handle(void *arg, kl_httpd_request *r)
{
    pid_t pid = 0;
    uid_t uid = 0;
    char who[64];
    bool known = kl_httpd_peer(r, &pid, &uid);
    snprintf(who, sizeof who, "uid=%lu pid=%ld", (unsigned long)uid, (long)pid);
    if (known && (uid == geteuid() || uid == 0)) {
        tell(r, who);
        kl_control_serve(arg, r, who, true);
        return;
    }
    static const char REFUSED[] =
        "{\"error\":\"this socket is for the user who runs the process, and for root\"}\n";
    kl_warn("control command refused: another user", "%s path=%s", known ? who : "uid=?",
        kl_log_quoted(kl_httpd_path(r)));
    kl_httpd_reply(r, 403, "application/json", NULL, REFUSED, sizeof REFUSED - 1);
}

char *kl_control_dir(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    return runtime && *runtime == '/' ? kl_sprintf("%s/kubelua", runtime)
                                      : kl_sprintf("/tmp/kubelua-%lu", (unsigned long)geteuid());
}

kl_control *kl_control_new(const kl_value *about)
{
    kl_control *c = kl_new(kl_control);
    c->about = kl_value_ref(about);
    kl_mutex_init(&c->mu);
    kl_control_route(c, "GET", "/v1/", "this process, and the commands it answers", answer_index, c);
    return c;
}

kl_status kl_control_listen(kl_control *c, const char *path, kl_err *err)
{
    char *dir = kl_control_dir(),
         *place = path ? kl_strdup(path) : kl_sprintf("%s/%ld.sock", dir, (long)getpid()),
         *address = kl_sprintf("unix:%s", place);
    struct stat st;
    kl_status status = kl_httpd_start(
        &(kl_httpd_options){.listen = address, .max_body = BODY_MAX, .handler = handle, .arg = c}, &c->httpd,
        err);
    if (!status && !lstat(place, &st)) {
        c->device = st.st_dev;
        c->number = st.st_ino;
    }
    kl_free(dir);
    kl_free(address);
    if (status)
        kl_free(place);
    else
        c->path = place;
    return status;
}

const char *kl_control_path(const kl_control *c) { return c->path; }

void kl_control_close(kl_control *c)
{
    struct stat st;
    if (c->path && !lstat(c->path, &st) && st.st_dev == c->device && st.st_ino == c->number)
        unlink(c->path);
    kl_httpd_stop(c->httpd);
    c->httpd = NULL;
    kl_free(c->path);
    c->path = NULL;
}

void kl_control_free(kl_control *c)
{
    if (!c)
        return;
    kl_control_close(c);
    for (size_t i = 0; i < c->n; i++) {
        kl_free(c->routes[i].method);
        kl_free(c->routes[i].path);
        kl_free(c->routes[i].help);
    }
    kl_free(c->routes);
    kl_value_unref(c->about);
    kl_mutex_fini(&c->mu);
    kl_free(c);
}
