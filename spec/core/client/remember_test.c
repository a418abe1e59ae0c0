/* remember_test.c - the caches of discovery: in memory by ETag, on disk between clients, and invalid ones
 * that are ignored. */
#include "support/test.h"
#include "core/http/peer.h"

#include "client/client.h"

#define DOC(items)                                                                                           \
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\",\"items\":[" items "]}"
#define KIND(group, plural, kind)                                                                            \
    "{\"metadata\":{\"name\":\"" group                                                                       \
    "\"},\"versions\":[{\"version\":\"v1\",\"freshness\":\"Current\",\"resources\":["                        \
    "{\"resource\":\"" plural "\",\"responseKind\":{\"kind\":\"" kind                                        \
    "\"},\"scope\":\"Namespaced\",\"verbs\":[\"get\"]}]}]}"

/* `generation` is what /apis has: 1 widgets, 2 gears too. Its ETag follows. */
typedef struct site {
    _Atomic int generation, whole, unchanged, hold;
} site;

static bool serve(peer *p, int fd, const request *r)
{
    site *s = p->arg;
    bool core = !strcmp(r->path, "/api");
    int generation = core ? 1 : atomic_load(&s->generation);
    const char *known = peer_header(r, "if-none-match");
    char etag[32], headers[64];
    snprintf(etag, sizeof etag, "\"%s-%d\"", core ? "core" : "groups", generation);
    if (known && !strcmp(known, etag)) {
        atomic_fetch_add(&s->unchanged, 1);
        return peer_send(fd, "HTTP/1.1 304 Not Modified\r\nETag: %s\r\n\r\n", etag);
    }
    atomic_fetch_add(&s->whole, 1);
    snprintf(headers, sizeof headers, "ETag: %s\r\n", etag);
    return peer_reply(fd, 200, headers,
        core                  ? DOC(KIND("", "pods", "Pod"))
            : generation == 1 ? DOC(KIND("w.io", "widgets", "Widget"))
                              : DOC(KIND("w.io", "widgets", "Widget") "," KIND("g.io", "gears", "Gear")));
}

typedef struct world {
    peer p;
    site s;
    kl_client *c;
    kl_clock *clock;
    kl_err err;
    char dir[64];
    kl_time ttl;
} world;

static void connect_client(world *w)
{
    kl_client_options o = {.clock = w->clock, .cache_dir = w->dir, .cache_ttl = w->ttl};
    kl_config_for_server(w->p.url, &o.config);
    o.config.proxy_url = kl_strdup("");
    assert_ok(kl_client_new(&o, &w->c, &w->err), &w->err);
}

static void reconnect(world *w)
{
    kl_client_free(w->c);
    atomic_store(&w->s.whole, 0);
    atomic_store(&w->s.unchanged, 0);
    connect_client(w);
}

static void world_start(world *w, kl_time ttl)
{
    memset(w, 0, sizeof *w);
    atomic_store(&w->s.generation, 1);
    snprintf(w->dir, sizeof w->dir, "/tmp/kl-remember-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    peer_start(&w->p, serve, &w->s);
    w->clock = kl_clock_fake_new(KL_SECONDS(10), KL_SECONDS(1700000000));
    w->ttl = ttl;
    connect_client(w);
}

static void world_stop(world *w)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    kl_client_free(w->c);
    peer_stop(&w->p);
    kl_clock_fake_free(w->clock);
    kl_err_fini(&w->err);
    assert_int_equal(system(command), 0);
}

static kl_status look(world *w, const char *kind)
{
    const kl_resource *r = NULL;
    kl_err_fini(&w->err);
    return kl_client_resolve_wait(w->c, kind, &r, &w->err);
}

#define assert_asked(w, n_whole, n_unchanged)                                                                \
    do {                                                                                                     \
        assert_int_equal(atomic_load(&(w)->s.whole), n_whole);                                               \
        assert_int_equal(atomic_load(&(w)->s.unchanged), n_unchanged);                                       \
    } while (0)

static void an_unchanged_document_is_not_sent_again(void **state)
{
    (void)state;
    world w;
    world_start(&w, 0);
    assert_int_equal(look(&w, "pods"), KL_OK);
    assert_asked(&w, 2, 0);
    kl_client_discovery_forget(w.c);
    assert_int_equal(look(&w, "Widget"), KL_OK);
    assert_asked(&w, 2, 2);
    atomic_store(&w.s.generation, 2);
    kl_client_discovery_forget(w.c);
    assert_int_equal(look(&w, "gears"), KL_OK);
    assert_int_equal(look(&w, "Pod"), KL_OK);
    assert_asked(&w, 3, 3);
    world_stop(&w);
}

static void the_next_client_only_asks_whether_it_is_still_good(void **state)
{
    (void)state;
    world w;
    world_start(&w, 0);
    assert_int_equal(look(&w, "pods"), KL_OK);
    reconnect(&w);
    assert_int_equal(look(&w, "widgets"), KL_OK);
    assert_asked(&w, 0, 2);
    atomic_store(&w.s.generation, 2);
    reconnect(&w);
    assert_int_equal(look(&w, "gears"), KL_OK);
    assert_asked(&w, 1, 1);
    atomic_store(&w.s.generation, 1); /* a kind that is gone is gone, whatever the disk says */
    reconnect(&w);
    assert_int_equal(look(&w, "gears"), KL_ENOTFOUND);
    assert_asked(&w, 1, 1);
    world_stop(&w);
}

static void a_young_document_is_trusted_until_a_kind_is_missing(void **state)
{
    (void)state;
    world w;
    world_start(&w, KL_MINUTES(10));
    assert_int_equal(look(&w, "pods"), KL_OK);
    reconnect(&w);
    assert_int_equal(look(&w, "widgets"), KL_OK);
    assert_int_equal(look(&w, "Pod"), KL_OK);
    assert_asked(&w, 0, 0);
    assert_int_equal(look(&w, "gears"), KL_ENOTFOUND);
    assert_asked(&w, 0, 2);
    kl_clock_advance(w.clock, KL_MINUTES(9));
    reconnect(&w);
    assert_int_equal(look(&w, "widgets"), KL_OK); /* the 304 made it young again */
    assert_asked(&w, 0, 0);
    kl_clock_advance(w.clock, KL_MINUTES(2));
    reconnect(&w);
    assert_int_equal(look(&w, "widgets"), KL_OK);
    assert_asked(&w, 0, 2);
    world_stop(&w);
}

static void a_spoilt_file_is_fetched_and_written_again(void **state)
{
    (void)state;
    world w;
    world_start(&w, KL_MINUTES(10));
    assert_int_equal(look(&w, "pods"), KL_OK);
    char command[256];
    snprintf(command, sizeof command,
        "f=$(find %s -name apis) && [ -f \"$f\" ] && sed -i s/widgets/fidgets/ $f", w.dir);
    assert_int_equal(system(command), 0);
    reconnect(&w);
    assert_int_equal(look(&w, "widgets"), KL_OK);
    assert_asked(&w, 2, 0);
    reconnect(&w);
    assert_int_equal(look(&w, "widgets"), KL_OK);
    assert_asked(&w, 0, 0);
    world_stop(&w);
}

static void nothing_is_written_where_nothing_can_be(void **state)
{
    (void)state;
    world w;
    world_start(&w, 0);
    snprintf(w.dir + strlen(w.dir), 8, "/x"); /* a file stands where the directory would */
    fclose(fopen(w.dir, "w"));
    reconnect(&w);
    assert_int_equal(look(&w, "pods"), KL_OK);
    reconnect(&w);
    assert_int_equal(look(&w, "pods"), KL_OK);
    assert_asked(&w, 2, 0);
    *strrchr(w.dir, '/') = 0;
    world_stop(&w);
}

/* --- news while a fetch is under way ------------------------------------------------------ */

/* The first /apis waits until it is let go, and says what was true before. */
static bool serve_slowly(peer *p, int fd, const request *r)
{
    site *s = p->arg;
    if (!strcmp(r->path, "/api"))
        return peer_reply(fd, 200, "", DOC(KIND("", "pods", "Pod")));
    if (atomic_fetch_add(&s->whole, 1))
        return peer_reply(fd, 200, "", DOC(KIND("g.io", "gears", "Gear")));
    return peer_wait(p, &s->hold, 1) && peer_reply(fd, 200, "", DOC(KIND("w.io", "widgets", "Widget")));
}

typedef struct told {
    kl_mutex mu;
    kl_cond changed;
    int n;
    kl_status st[2];
} told;

static void on_told(told *t, int which, kl_status st)
{
    kl_lock(&t->mu);
    t->st[which] = st;
    t->n++;
    kl_cond_broadcast(&t->changed);
    kl_unlock(&t->mu);
}

static void on_first(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    (void)r;
    (void)err;
    on_told(arg, 0, st);
}
static void on_second(void *arg, kl_status st, const kl_resource *r, kl_err *err)
{
    (void)r;
    (void)err;
    on_told(arg, 1, st);
}

static void a_forced_refresh_is_not_answered_from_disk(void **state)
{
    (void)state;
    world w = {0};
    told t = {0};
    kl_mutex_init(&t.mu);
    kl_cond_init(&t.changed);
    peer_start(&w.p, serve_slowly, &w.s);
    w.clock = kl_clock_fake_new(KL_SECONDS(10), KL_SECONDS(10));
    kl_client_options o = {.clock = w.clock};
    kl_config_for_server(w.p.url, &o.config);
    o.config.proxy_url = kl_strdup("");
    assert_ok(kl_client_new(&o, &w.c, &w.err), &w.err);
    kl_client_resolve(w.c, "Gear", on_first, &t);
    assert_true(peer_wait(&w.p, &w.p.requests, 2)); /* /api and /apis */
    kl_client_discovery_forget(w.c);
    kl_client_resolve(w.c, "Gear", on_second, &t);
    const kl_value *v = NULL;
    /* posted after it: it asked by now */
    assert_ok(kl_client_raw(w.c, "GET", "/api", NULL, NULL, 0, &v, &w.err), &w.err);
    kl_value_unref(v);
    atomic_store(&w.s.hold, 1);
    kl_lock(&w.p.mu);
    kl_cond_broadcast(&w.p.changed);
    kl_unlock(&w.p.mu);
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&t.mu);
    for (bool in_time = true; t.n < 2 && in_time;)
        in_time = kl_cond_wait_until(&t.changed, &t.mu, deadline);
    kl_unlock(&t.mu);
    assert_int_equal(t.st[0], KL_ENOTFOUND);
    assert_int_equal(t.st[1], KL_OK);
    kl_client_free(w.c);
    peer_stop(&w.p);
    kl_clock_fake_free(w.clock);
    kl_cond_fini(&t.changed);
    kl_mutex_fini(&t.mu);
}

KL_TESTS(cmocka_unit_test(an_unchanged_document_is_not_sent_again),
    cmocka_unit_test(the_next_client_only_asks_whether_it_is_still_good),
    cmocka_unit_test(a_young_document_is_trusted_until_a_kind_is_missing),
    cmocka_unit_test(a_spoilt_file_is_fetched_and_written_again),
    cmocka_unit_test(nothing_is_written_where_nothing_can_be),
    cmocka_unit_test(a_forced_refresh_is_not_answered_from_disk))
