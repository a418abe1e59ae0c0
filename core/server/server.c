/* server.c - start and stop of the embedded API server.
 *
 * Threads: the HTTP server's own, which runs every request under one lock and never waits, and the ticker,
 * which sends bookmarks and ends watches that are due. Under a fake clock there is no ticker: the clock's
 * owner calls kl_server_tick. */
#include "server/server.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>

#include "httpd/certificates.h"
#include "httpd/listen.h"
#include "policy/dispatch.h"
#include "audit/audit.h"
#include "base/base64.h"
#include "base/file.h"
#include "base/locks.h"
#include "base/log.h"
#include "base/mem.h"
#include "verbs/access.h"
#include "verbs/first.h"
#include "verbs/presence.h"
#include "verbs/tally.h"
#include "server/durable.h"
#include "server/rest.h"
#include "server/state.h"
#include "rbac/tokens.h"
#include "server/watch.h"
#include "owners/owners.h"

#define HISTORY 10000
#define HTTPS_PORT 443
#define BOOKMARK_EVERY KL_SECONDS(60)

void kl_server_tick(kl_server *s)
{
    while (kl__watches_ask(s))
        ;
    kl_lock(&s->mu);
    (void)kl__watches_tick(s, kl_clock_now(s->world.clock));
    (void)kl__presence_tick(&s->world);
    kl_unlock(&s->mu);
}

static void tick(void *arg)
{
    kl_server *s = arg;
    kl_lock(&s->mu);
    while (!s->stopping) {
        kl_unlock(&s->mu);
        while (kl__watches_ask(s))
            ;
        kl_lock(&s->mu);
        if (s->stopping) /* kl__watches_ask ran without the lock */
            break;
        kl_time next = kl__watches_tick(s, kl_clock_now(s->world.clock)), held = kl_faults_tick(s->faults),
                renewal = kl__presence_tick(&s->world);
        next = held < next ? held : next;
        kl_cond_wait_until(&s->wake, &s->mu, renewal < next ? renewal : next);
    }
    kl_unlock(&s->mu);
}

kl_faults *kl_server_faults(kl_server *s) { return s->faults; }

kl_time kl_server_faults_tick(kl_server *s)
{
    kl_lock(&s->mu);
    kl_time watches = kl__watches_look(s), held = kl_faults_tick(s->faults);
    kl_cond_signal(&s->wake);
    kl_unlock(&s->mu);
    return held < watches ? held : watches;
}

static void faults_changed(void *arg) { (void)kl_server_faults_tick(arg); }

static void on_change(void *arg, kl__bucket *b, const kl__change *c)
{
    kl_server *s = arg;
    kl__watch_change(s, b, c);
    kl__durable_change(s, b, c);
    if (s->world.owners)
        kl__owners_change(s->world.owners, b, c);
    if (s->world.tallies)
        kl__tallies_change(s->world.tallies, b, c);
    if (kl__presence_noticed(&s->world, b, c->key, c->old && c->now && c->type == KL_MODIFIED))
        kl_cond_signal(&s->wake);
    if (s->changed)
        s->changed(s->changed_arg,
            &(kl_server_change){.group = b->group,
                .plural = b->plural,
                .type = kl_event_name(c->type),
                .old = c->old,
                .now = c->now});
}

/* Makes what says where the server is, once it listens. */
static kl_status first_serve(kl_server *s, const char *client_ca, kl_err *err)
{
    char ip[INET_ADDRSTRLEN];
    uint16_t port;
    kl_buf pem = KL_BUF_INIT;
    bool reached = kl_listen_elsewhere(kl_httpd_address(s->httpd), ip, &port);
    kl_status st = kl__first_serve(&s->world, reached ? ip : NULL, port ? port : HTTPS_PORT, err);
    if (!st && client_ca)
        st = kl_file_read(client_ca, "the authorities of clients", &pem, err);
    if (!st)
        st = kl__presence_begin(&s->world, client_ca ? kl_buf_str(&pem) : NULL, err);
    kl_buf_fini(&pem);
    return st;
}

static void server_free(kl_server *s)
{
    kl__hub_leave(s->hub);
    kl__durable_close(s);
    kl_faults_free(s->faults);
    kl__tokens_free(s->world.tokens);
    kl__tokens_free(s->world.issued);
    kl__issuer_free(s->world.issuer);
    kl_value_unref(s->world.anybody);
    kl_free(s->own_token);
    kl_keyring_free(s->ring);
    kl_free(s->ca);
    kl_policies_free(s->world.policies);
    kl_audit_close(s->audit);
    kl__kept_free(s->kept);
    kl_free(s->probed);
    kl__kinds_free(s->world.kinds);
    kl__store_free(s->world.store);
    kl__owners_free(s->world.owners);
    kl__tallies_free(s->world.tallies);
    kl__presence_end(&s->world);
    kl__types_free(s->world.types);
    kl_cond_fini(&s->wake);
    kl_mutex_fini(&s->mu);
    kl_free(s->url);
    kl_free(s);
}

/* Makes the users and, if tokens are requested, the issuer. */
static kl_status begin_users(kl_server *s, const kl_server_options *o, kl_err *err)
{
    s->world.rbac = o->rbac;
    s->world.issued = kl_map_new();
    s->world.issuer = kl__issuer_new();
    s->world.anybody = kl__user_new("kubelua", NULL, "system:masters,system:authenticated");
    kl_status st = o->tokens ? kl__tokens_read(o->tokens, &s->world.tokens, err) : KL_OK;
    if (st || !s->world.rbac)
        return st;
    unsigned char x[24];
    kl_buf text = KL_BUF_INIT;
    if (getrandom(x, sizeof x, 0) != sizeof x)
        kl_mem_die("getrandom");
    for (size_t i = 0; i < sizeof x; i++)
        kl_buf_printf(&text, "%02x", x[i]);
    s->own_token = kl_buf_take(&text);
    if (!s->world.tokens)
        s->world.tokens = kl_map_new();
    kl_map_set(s->world.tokens, s->own_token, (void *)(uintptr_t)kl_value_ref(s->world.anybody));
    return KL_OK;
}

/* Refuses to listen beyond this machine without authentication, because every client could then do
 * everything. */
static kl_status check_reach(const kl_server *s, const kl_server_options *o, const char *listen, kl_err *err)
{
    if (s->loopback || s->world.rbac || o->insecure_anywhere || !strncmp(listen, "unix:", 5))
        return KL_OK;
    return kl_fail(err, KL_EINVAL,
        "other machines can reach \"%s\", and this server does not authenticate its clients: listen on "
        "127.0.0.1, "
        "ask for tokens (--authorization-mode RBAC), or pass --insecure-anywhere",
        listen);
}

static void begin_world(kl_server *s, const kl_server_options *o, kl_clock *clock)
{
    kl__types *types = kl__types_builtin();
    s->world = (kl__world){.clock = clock,
        .types = types,
        .kinds = kl__kinds_new(types),
        .store = kl__store_new(o->history ? o->history : HISTORY, on_change, s),
        .owners = o->collect ? kl__owners_new(o->fixtures) : NULL,
        .chance = {o->seed},
        .seeded = o->seed,
        .complete = o->complete,
        .policies = kl_policies_new(),
        .webhook = o->webhook,
        .webhook_arg = o->webhook_arg,
        .unserved = kl__watches_drop,
        .unserved_arg = s};
    s->world.tallies = o->collect ? kl__tallies_new(s->world.kinds) : NULL;
}

static void begin_kinds(kl_server *s)
{
    for (size_t i = 0; i < kl__kinds_len(s->world.kinds); i++) {
        kl__kind *k = kl__kinds_at(s->world.kinds, i);
        /* two APIs serve the same Events */
        bool events = !strcmp(k->group, "events.k8s.io");
        k->bucket = kl__store_bucket(s->world.store, events ? "" : k->group, k->plural);
    }
}

kl_status kl_server_start(const kl_server_options *o, kl_server **out, kl_err *err)
{
    kl_server *s = kl_new(kl_server);
    kl_clock *clock = o->clock ? o->clock : kl_clock_real();
    s->changed = o->changed;
    s->changed_arg = o->changed_arg;
    s->extra = o->extra;
    s->extra_arg = o->extra_arg;
    s->loading = o->loads;
    s->bookmark_every = o->bookmark_every ? o->bookmark_every : BOOKMARK_EVERY;
    kl_mutex_init_as(&s->mu, KL_LOCK_SERVER);
    kl_cond_init(&s->wake);
    kl_list_init(&s->watches);
    s->hub = kl__hub_new(s);
    s->faults = kl_faults_new(clock, faults_changed, s);
    begin_world(s, o, clock);
    s->started = kl_clock_wall(clock);
    /* from the clock: versions of two processes never overlap, because a server writes less than a million
     * times a second */
    uint64_t birth = clock == kl_clock_real() ? (uint64_t)(kl_clock_wall(clock) / KL_MICROSECONDS(1)) : 0;
    kl_status st = o->data ? kl__durable_open(s, o->data, &birth, err) : KL_OK;
    if (birth)
        kl__store_begin(s->world.store, birth);
    begin_kinds(s);
    kl_lock(&s->mu);
    if (!st)
        st = kl__durable_restore(s, err);
    if (!st)
        st = kl__first_make(&s->world, err);
    if (!st)
        st = begin_users(s, o, err);
    if (!st && o->audit_log)
        st = kl_audit_open(o->audit_log, o->audit_policy, clock, &s->audit, err);
    if (!st && s->world.rbac)
        st = kl__access_begin(&s->world, err);
    kl_unlock(&s->mu);
    if (!st && o->unheard) {
        *out = s;
        return KL_OK;
    }
    kl_httpd_options http = {.listen = o->listen ? o->listen : "127.0.0.1:0",
        .max_body = o->max_body,
        .cache_control = "no-cache, private",
        .mark = "Audit-Id",
        .handler = kl__rest_handle,
        .arg = s};
    if (!st && o->tls)
        st = kl_httpd_certify(&(kl_httpd_certificates){http.listen, o->tls_cert, o->tls_key, o->client_ca},
            &s->ring, &s->ca, err);
    http.tls = s->ring;
    s->loopback = kl_listen_loopback(http.listen);
    if (!st)
        st = check_reach(s, o, http.listen, err);
    kl_lock(&s->mu); /* the first request waits until the server knows its address */
    if (!st)
        st = kl_httpd_start(&http, &s->httpd, err);
    if (!st)
        s->url = kl_sprintf("%s://%s", s->ring ? "https" : "http", kl_httpd_address(s->httpd));
    if (!st)
        st = first_serve(s, o->client_ca, err);
    kl_unlock(&s->mu);
    if (st) {
        server_free(s);
        return st;
    }
    if (!s->loopback && !s->world.rbac)
        kl_warn("the API server listens beyond this machine and does not authenticate its clients: any "
                "client may do anything",
            "listen=%s url=%s", http.listen, s->url);
    if (clock == kl_clock_real())
        s->ticker = kl_thread_start("kl-apiserver", tick, s);
    *out = s;
    return KL_OK;
}

void kl_server_stop(kl_server *s)
{
    if (!s)
        return;
    kl_lock(&s->mu);
    s->stopping = true;
    kl_cond_broadcast(&s->wake);
    kl__watches_stop(s);
    kl_unlock(&s->mu);
    kl_thread_join(s->ticker);
    kl__issuer_stop(s->world.issuer); /* the requests that wait for it are answered */
    kl_httpd_stop(s->httpd);
    kl__durable_close(s);
    kl_lock(&s->mu); /* a watch may have started meanwhile */
    kl__watches_stop(s);
    kl_unlock(&s->mu);
    server_free(s);
}

uint64_t kl_server_mark(kl_server *s)
{
    kl_lock(&s->mu);
    uint64_t rv = kl__store_step(s->world.store);
    kl__watches_mark(s, rv);
    kl_unlock(&s->mu);
    return rv;
}

uint64_t kl_server_rv(kl_server *s)
{
    kl_lock(&s->mu);
    uint64_t rv = kl__store_rv(s->world.store);
    kl_unlock(&s->mu);
    return rv;
}

const char *kl_server_url(const kl_server *s) { return s->url; }

char *kl_server_kubeconfig(const kl_server *s)
{
    kl_buf ca = KL_BUF_INIT;
    if (s->ca) {
        kl_buf_puts(&ca, "    certificate-authority-data: ");
        char *text = kl_base64_encode(s->ca, strlen(s->ca));
        kl_buf_printf(&ca, "%s\n", text);
        kl_free(text);
    }
    char *text = kl_sprintf("apiVersion: v1\n"
                            "kind: Config\n"
                            "clusters:\n"
                            "- name: kubelua\n"
                            "  cluster:\n"
                            "    server: %s\n"
                            "%s"
                            "users:\n"
                            "- name: kubelua\n"
                            "  user: {%s%s}\n"
                            "contexts:\n"
                            "- name: kubelua\n"
                            "  context:\n"
                            "    cluster: kubelua\n"
                            "    user: kubelua\n"
                            "current-context: kubelua\n",
        s->url, ca.len ? kl_buf_str(&ca) : "", s->own_token ? "token: " : "",
        s->own_token ? s->own_token : "");
    kl_buf_fini(&ca);
    return text;
}
