/* credentials.c - caches and renews credentials.
 *
 *   get --at hand--> fn                                   fixed texts; a token file younger than 50 s; a plugin's answer not expired
 *    `--renew--> waiting --the thread: plugin, provider--> posted to the caller's thread --> fn
 *
 * The first caller that must wait starts the thread; one run serves all callers that arrive meanwhile.
 * Everything but the run happens under `mu`, also reading a file: it is small and local, and one reader is
 * enough. A new file that is unreadable, or has no certificate or half a pair, leaves the old content in
 * force, which is logged once. */
#include "auth/credentials.h"

#include <string.h>
#include "base/child.h"
#include "base/fswatch.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sync.h"
#include "auth/auth.h"
#include "auth/exec_plugin.h"
#include "auth/oidc.h"
#include "http/slots.h"

#define FILE_FRESH KL_SECONDS(50) /* client-go's: a token file is due every 60 s, less a leeway of 10 s */
#define USELESS_REST                                                                                         \
    KL_SECONDS(10) /* how long a renewal is not repeated after it returned the refused credential */

typedef enum source { FIXED, TOKEN_FILE, PLUGIN, PROVIDER } source;

typedef struct waiter {
    kl_list link; /* in cs->waiting until it is posted */
    kl__credentials *cs;
    kl_http *http;
    uint64_t id;
    bool taken, withdrawn; /* taken: posted to its thread */
    kl__credential_fn *fn;
    void *arg;
    kl_status st;
    kl__credential *cred;
    kl_err err;
} waiter;

struct kl__credentials {
    const kl_config *config;
    kl_clock *clock;
    source source;
    char **impersonation;
    char *words;
    void (*moved)(void *arg);
    void *moved_arg;
    kl_child *child;
    kl__oidc *oidc;
    kl_fswatch *watch; /* NULL: files are read when they are due */
    kl_mutex mu;       /* guards all that follows */
    kl_cond wanted;
    kl_thread *thread;
    bool closing, renew;
    bool refused; /* the renewal is due to a 401 */
    kl_list waiting;
    kl_slots ids;
    kl__credential *current; /* NULL before the first */
    kl__identity *identity;  /* NULL before the first */
    bool renewed;            /* plugin or provider has answered: current is theirs */
    bool expires;
    kl_time expiration;    /* wall */
    kl_time read_at;       /* files; monotonic */
    kl_time useless_until; /* monotonic */
    bool complained;       /* the present fault of the files was logged */
};

/* --- a credential ------------------------------------------------------------------------- */

kl__credential *kl__credential_ref(kl__credential *c)
{
    atomic_fetch_add(&c->refs, 1);
    return c;
}

void kl__credential_unref(kl__credential *c)
{
    if (!c || atomic_fetch_sub(&c->refs, 1) > 1)
        return;
    if (c->authorization)
        explicit_bzero(c->authorization, strlen(c->authorization));
    kl_free(c->authorization);
    kl__identity_unref(c->identity);
    kl_free(c);
}

/* Takes over both. A credential equal to the present one is dropped. True when the TLS identity has
 * changed. */
static bool replace_locked(kl__credentials *cs, char *authorization, kl__identity *identity)
{
    kl__credential *old = cs->current;
    bool first = !cs->identity, moved = !first && !kl__identity_same(cs->identity, identity);
    if (first || moved) {
        kl__identity_unref(cs->identity);
        cs->identity = identity;
    } else
        kl__identity_unref(identity);
    bool same = old && old->identity == cs->identity
        && (authorization && old->authorization ? !strcmp(authorization, old->authorization)
                                                : authorization == old->authorization);
    if (same) {
        kl_free(authorization);
        return false;
    }
    kl__credential *c = kl_new(kl__credential);
    atomic_store(&c->refs, 1);
    c->generation = old ? old->generation + 1 : 1;
    c->authorization = authorization;
    c->identity = kl__identity_ref(cs->identity);
    cs->current = c;
    kl__credential_unref(old);
    return moved;
}

/* --- files -------------------------------------------------------------------------------- */

static bool has_files(const kl_config *c)
{
    return c->token_file || (c->ca_file && !c->ca_data) || (c->cert_file && !c->cert_data)
        || (c->key_file && !c->key_data);
}

/* The line from fixed texts and the token file. */
static kl_status own_line_locked(kl__credentials *cs, char **out, kl_err *story)
{
    const kl_config *c = cs->config;
    char *token = NULL;
    kl_status st = c->token_file ? kl__auth_token_file(c->token_file, &token, story) : KL_OK;
    if (st && cs->current && cs->current->authorization)
        *out = kl_strdup(cs->current->authorization); /* the last good one */
    else if (token || c->token)
        *out = kl__auth_bearer(token ? token : c->token);
    else
        *out = c->username || c->password ? kl__auth_basic(c->username, c->password) : NULL;
    kl_free(token);
    return st && !*out ? st : KL_OK;
}

/* Reads the files, and builds the present credential. With a plugin or provider only CA files are read. */
static kl_status look_locked(kl__credentials *cs, bool *moved, kl_err *err)
{
    bool theirs = cs->source == PLUGIN || cs->source == PROVIDER;
    kl__identity *fresh = NULL, *old = cs->identity;
    char *line = NULL;
    kl_err story = KL_ERR_INIT;
    cs->read_at = kl_clock_now(cs->clock);
    kl_status st = kl__identity_load(cs->config, cs->source == PLUGIN && old ? old->cert : NULL,
        cs->source == PLUGIN && old ? old->key : NULL, &fresh, &story);
    if (st && old) {
        fresh = kl__identity_ref(old);
        st = KL_OK;
    }
    if (!st && theirs)
        line = cs->current ? kl_strdup(cs->current->authorization) : NULL;
    else if (!st)
        st = own_line_locked(cs, &line, &story);
    if (st) {
        kl__identity_unref(fresh);
        kl_err_move(err, &story);
        return st;
    }
    if (story.status && !cs->complained)
        kl_warn("new credentials are invalid; the old ones stay in use", "error=%s",
            kl_log_quoted(kl_err_message(&story)));
    cs->complained = story.status != KL_OK;
    kl_err_fini(&story);
    *moved |= replace_locked(cs, line, fresh);
    return KL_OK;
}

static void tell_moved(kl__credentials *cs, bool moved)
{
    if (!moved)
        return;
    kl_info("certificates changed: new connections use the new ones", "for=%s", kl_log_quoted(cs->words));
    if (cs->moved)
        cs->moved(cs->moved_arg);
}

static void on_files(void *arg)
{
    kl__credentials *cs = arg;
    kl_err err = KL_ERR_INIT;
    bool moved = false;
    kl_lock(&cs->mu);
    if (cs->current)
        (void)look_locked(cs, &moved, &err); /* does not fail while a credential is in force */
    kl_unlock(&cs->mu);
    kl_err_fini(&err);
    tell_moved(cs, moved);
}

static void watch_files(kl__credentials *cs)
{
    const kl_config *c = cs->config;
    const char *paths[4];
    size_t n = 0;
    kl_err err = KL_ERR_INIT;
    if (c->token_file)
        paths[n++] = c->token_file;
    if (c->ca_file && !c->ca_data)
        paths[n++] = c->ca_file;
    if (c->cert_file && !c->cert_data)
        paths[n++] = c->cert_file;
    if (c->key_file && !c->key_data)
        paths[n++] = c->key_file;
    if (n && kl_fswatch_start(paths, n, NULL, on_files, cs, &cs->watch, &err)) {
        cs->watch = NULL;
        kl_debug("credential files cannot be watched; they are read again periodically", "error=%s",
            kl_log_quoted(kl_err_message(&err)));
    }
    kl_err_fini(&err);
}

/* --- the thread: plugins and providers ---------------------------------------------------- */

typedef struct renewal {
    char *line;
    kl__identity *identity;
    bool expires;
    kl_time expiration;
} renewal;

static kl_status run_plugin(kl__credentials *cs, renewal *out, kl_err *err)
{
    kl__exec_credential x;
    kl_err why = KL_ERR_INIT;
    kl_status st = kl__exec_plugin_run(cs->config, cs->child, 0, &x, err);
    if (st)
        return st;
    st = kl__identity_load(cs->config, x.cert, x.key, &out->identity, &why);
    if (st)
        kl_fail(err, st, "%s \"%s\": %s", x.cert ? "the credential plugin" : "beside the credential plugin",
            cs->config->exec_command, kl_err_message(&why));
    else {
        out->line = x.token ? kl__auth_bearer(x.token) : NULL;
        out->expires = x.expires;
        out->expiration = x.expiration;
    }
    kl_err_fini(&why);
    kl__exec_credential_fini(&x);
    return st;
}

static kl_status run_provider(kl__credentials *cs, bool refused, renewal *out, kl_err *err)
{
    char *token = NULL;
    kl_status st = kl__oidc_token(cs->oidc, refused, &token, &out->expiration, err);
    if (!st)
        st = kl__identity_load(cs->config, NULL, NULL, &out->identity, err);
    if (!st)
        out->line = kl__auth_bearer(token);
    out->expires = true;
    kl_free(token);
    return st;
}

static void deliver(void *arg)
{
    waiter *w = arg;
    kl__credentials *cs = w->cs;
    kl_lock(&cs->mu);
    kl_slots_remove(&cs->ids, w->id);
    bool withdrawn = w->withdrawn;
    kl_unlock(&cs->mu);
    if (!withdrawn)
        w->fn(w->arg, w->st, w->cred, &w->err);
    kl__credential_unref(w->cred);
    kl_err_fini(&w->err);
    kl_free(w);
}

/* Answers all waiters with the present credential, or the failure. */
static void answer_all(kl_list *waiting, kl_status st, kl__credential *cred, const kl_err *err)
{
    for (kl_list *l; (l = kl_list_shift(waiting));) {
        waiter *w = KL_CONTAINER(l, waiter, link);
        w->st = st;
        w->cred = st ? NULL : kl__credential_ref(cred);
        if (st)
            kl_err_copy(&w->err, err);
        kl_http_post(w->http, deliver, w);
    }
}

static void take_waiting_locked(kl__credentials *cs, kl_list *out)
{
    kl_list_init(out);
    for (kl_list *l; (l = kl_list_shift(&cs->waiting));) {
        KL_CONTAINER(l, waiter, link)->taken = true;
        kl_list_push(out, l);
    }
}

static void renew_once(kl__credentials *cs, bool refused, bool stopping)
{
    kl_list waiting;
    kl_err err = KL_ERR_INIT;
    renewal r = {0};
    bool moved = false;
    kl_status st = stopping    ? kl_fail(&err, KL_ECANCELLED, "the client is closed")
        : cs->source == PLUGIN ? run_plugin(cs, &r, &err)
                               : run_provider(cs, refused, &r, &err);
    kl_lock(&cs->mu);
    uint64_t before = cs->current ? cs->current->generation : 0;
    if (!st) {
        moved = replace_locked(cs, r.line, r.identity);
        cs->renewed = true;
        cs->expires = r.expires;
        cs->expiration = r.expiration;
        cs->useless_until = refused && cs->current->generation == before
            ? kl_clock_now(cs->clock) + USELESS_REST
            : 0;
    } else {
        kl_free(r.line);
        kl__identity_unref(r.identity);
    }
    kl__credential *now = st ? NULL : kl__credential_ref(cs->current);
    cs->renew = cs->refused = false;
    take_waiting_locked(cs, &waiting);
    kl_unlock(&cs->mu);
    if (st && st != KL_ECANCELLED)
        kl_warn("no credentials", "error=%s", kl_log_quoted(kl_err_message(&err)));
    tell_moved(cs, moved);
    answer_all(&waiting, st, now, &err);
    kl__credential_unref(now);
    kl_err_fini(&err);
}

static void thread_main(void *arg)
{
    kl__credentials *cs = arg;
    for (;;) {
        kl_lock(&cs->mu);
        while (!cs->renew && !cs->closing)
            kl_cond_wait(&cs->wanted, &cs->mu);
        bool run = cs->renew, refused = cs->refused, stopping = cs->closing;
        kl_unlock(&cs->mu);
        if (!run)
            return;
        renew_once(cs, refused, stopping);
    }
}

/* --- asking ------------------------------------------------------------------------------- */

/* Whether the present credential is usable, for sources that need no fetch. */
static kl_status prepare_locked(kl__credentials *cs, bool again, bool *moved, kl_err *err)
{
    bool due = has_files(cs->config) && (cs->config->token_file || !cs->watch)
        && kl_clock_now(cs->clock) - cs->read_at >= FILE_FRESH;
    if (cs->current && !due && !(again && has_files(cs->config)))
        return KL_OK;
    return look_locked(cs, moved, err);
}

static bool must_renew_locked(const kl__credentials *cs, bool again)
{
    if (!cs->renewed || (cs->expires && kl_clock_wall(cs->clock) > cs->expiration))
        return true;
    return again && kl_clock_now(cs->clock) >= cs->useless_until;
}

static waiter *wait_locked(kl__credentials *cs, kl_http *http, bool refused, kl__credential_fn *fn, void *arg)
{
    waiter *w = kl_new(waiter);
    *w = (waiter){.cs = cs, .http = http, .fn = fn, .arg = arg};
    w->id = kl_slots_add(&cs->ids, w);
    kl_list_push(&cs->waiting, &w->link);
    cs->refused = cs->refused || (refused && !cs->renew);
    cs->renew = true;
    kl_cond_signal(&cs->wanted);
    if (!cs->thread)
        cs->thread = kl_thread_start("kl-credentials", thread_main, cs);
    return w;
}

uint64_t kl__credentials_get(
    kl__credentials *cs, kl_http *http, const kl__credential *refused, kl__credential_fn *fn, void *arg)
{
    kl_err err = KL_ERR_INIT;
    kl_status st = KL_OK;
    kl__credential *now = NULL;
    bool moved = false, theirs = cs->source == PLUGIN || cs->source == PROVIDER;
    uint64_t id = 0;
    kl_lock(&cs->mu);
    bool again = refused && cs->current && cs->current->generation == refused->generation;
    if (cs->closing)
        st = kl_fail(&err, KL_ECANCELLED, "the client is closed");
    else if (theirs && (cs->renew || must_renew_locked(cs, again)))
        id = wait_locked(cs, http, again, fn, arg)->id;
    else
        st = prepare_locked(cs, again, &moved, &err);
    if (!id && !st)
        now = kl__credential_ref(cs->current);
    kl_unlock(&cs->mu);
    tell_moved(cs, moved);
    if (!id)
        fn(arg, st, now, &err);
    kl__credential_unref(now);
    kl_err_fini(&err);
    return id;
}

void kl__credentials_withdraw(kl__credentials *cs, uint64_t id)
{
    kl_lock(&cs->mu);
    waiter *w = kl_slots_remove(&cs->ids, id);
    bool mine = w && !w->taken;
    if (mine)
        kl_list_remove(&w->link);
    else if (w)
        w->withdrawn = true; /* deliver frees it */
    kl_unlock(&cs->mu);
    if (mine)
        kl_free(w);
}

kl__identity *kl__credentials_identity(kl__credentials *cs)
{
    kl_lock(&cs->mu);
    kl__identity *i = cs->identity ? kl__identity_ref(cs->identity) : NULL;
    kl_unlock(&cs->mu);
    return i;
}

const char **kl__credentials_headers(const kl__credentials *cs, const char *const *own, size_t n)
{
    size_t total = n;
    for (char **l = cs->impersonation; *l; l++)
        total++;
    const char **lines = kl_new_array(const char *, total + 1), **next = lines;
    for (size_t i = 0; i < n; i++)
        if (own[i])
            *next++ = own[i];
    for (char **l = cs->impersonation; *l; l++)
        *next++ = *l;
    return lines;
}

const char *kl__credentials_describe(const kl__credentials *cs) { return cs->words; }

/* --- life --------------------------------------------------------------------------------- */

/* A token or password comes before a plugin or provider, and a certificate before a plugin, as in kubectl. */
static source source_of(const kl_config *c)
{
    if (c->token_file)
        return TOKEN_FILE;
    if (c->token || c->username || c->password)
        return FIXED;
    if (c->exec && !c->cert_file && !c->cert_data)
        return PLUGIN;
    return c->auth_provider ? PROVIDER : FIXED;
}

kl__credentials *kl__credentials_new(
    const kl_config *config, kl_clock *clock, kl_http *fetch, void (*moved)(void *arg), void *arg)
{
    kl__credentials *cs = kl_new(kl__credentials);
    cs->config = config;
    cs->clock = clock;
    cs->moved = moved;
    cs->moved_arg = arg;
    cs->source = source_of(config);
    cs->impersonation = kl__auth_impersonation(config);
    cs->words = kl__auth_describe(config);
    kl_mutex_init(&cs->mu);
    kl_cond_init(&cs->wanted);
    kl_list_init(&cs->waiting);
    if (cs->source == PLUGIN)
        cs->child = kl_child_new();
    if (cs->source == PROVIDER)
        cs->oidc = kl__oidc_new(config, clock, fetch);
    if (clock == kl_clock_real() && has_files(config))
        watch_files(cs);
    return cs;
}

void kl__credentials_close(kl__credentials *cs)
{
    if (!cs)
        return;
    kl_lock(&cs->mu);
    cs->closing = true;
    kl_cond_signal(&cs->wanted);
    kl_fswatch *watch = cs->watch;
    cs->watch = NULL;
    kl_unlock(&cs->mu);
    kl_fswatch_stop(watch);
    if (cs->child)
        kl_child_stop(cs->child);
    if (cs->oidc)
        kl__oidc_stop(cs->oidc);
    kl_thread_join(cs->thread);
    cs->thread = NULL;
}

void kl__credentials_free(kl__credentials *cs)
{
    if (!cs)
        return;
    kl__credentials_close(cs);
    kl__credential_unref(cs->current);
    kl__identity_unref(cs->identity);
    kl_child_free(cs->child);
    kl__oidc_free(cs->oidc);
    kl__auth_lines_free(cs->impersonation);
    kl_slots_fini(&cs->ids);
    kl_cond_fini(&cs->wanted);
    kl_mutex_fini(&cs->mu);
    kl_free(cs->words);
    kl_free(cs);
}
