/* source_test.c - an informer over the real client and real sockets, against a peer that cuts, loses and
 * rejects. */
#include "support/test.h"
#include "core/http/peer.h"

#include "cache/informer.h"
#include "model/object.h"
#include "informers/source.h"

static const char *const verbs[] = {"list", "watch", NULL};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .singular = "pod",
    .verbs = (char **)verbs,
    .namespaced = true};

/* What comes next at the peer. */
typedef struct act {
    const char *asked[6]; /* words that the request's query has, "!word": has not */
    int code;             /* 0: a stream of `body`, as far as it goes */
    const char *headers, *body;
    bool hold; /* a stream stays open until the end; else the line is cut after it */
} act;

typedef struct world {
    peer p;
    const act *acts;
    int n_acts;
    kl_client *c;
    kl_informer *i;
    kl_subscription *sub;
    kl_mutex mu;
    kl_cond cond;
    kl_buf heard, wrong; /* under mu */
    bool stopped;
} world;

static void hear(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    world *w = arg;
    kl_lock(&w->mu);
    kl_buf_printf(&w->heard, "%c%s@%s%s ",
        type == KL_ADDED         ? '+'
            : type == KL_DELETED ? '-'
                                 : '~',
        kl_object_name(now ? now : old), kl_object_rv(now ? now : old),
        flags & KL_INITIAL      ? "i"
            : flags & KL_RELIST ? "r"
                                : "");
    kl_cond_broadcast(&w->cond);
    kl_unlock(&w->mu);
}

static void hear_synced(void *arg)
{
    world *w = arg;
    kl_lock(&w->mu);
    kl_buf_puts(&w->heard, ". ");
    kl_cond_broadcast(&w->cond);
    kl_unlock(&w->mu);
}

static bool has_word(const char *path, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = path; (at = strstr(at, word)); at++)
        if ((at[-1] == '?' || at[-1] == '&') && (!at[n] || at[n] == '&'))
            return true;
    return false;
}

static void judge(world *w, const request *r, const act *a)
{
    for (int i = 0; a && i < 6 && a->asked[i]; i++) {
        const char *word = a->asked[i];
        if (has_word(r->path, *word == '!' ? word + 1 : word) == (*word == '!')) {
            kl_lock(&w->mu);
            kl_buf_printf(&w->wrong, "request %d: %s, wanted %s; ", r->nth, r->path, word);
            kl_unlock(&w->mu);
        }
    }
}

static bool act_out(peer *p, int fd, const request *r)
{
    world *w = p->arg;
    const act *a = r->nth <= w->n_acts ? &w->acts[r->nth - 1] : NULL;
    judge(w, r, a);
    if (!a) {
        kl_lock(&w->mu);
        kl_buf_printf(&w->wrong, "a request too many: %s; ", r->path);
        kl_unlock(&w->mu);
        return false;
    }
    if (a->code)
        return peer_reply(fd, a->code, a->headers ? a->headers : "", a->body);
    bool ok = peer_send(fd,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: "
        "chunked\r\n\r\n%zx\r\n%s\r\n",
        strlen(a->body), a->body);
    while (ok && a->hold && !atomic_load(&p->stop))
        poll(NULL, 0, 20);
    struct linger cut = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &cut, sizeof cut);
    return false;
}

static void start(world *w, const act *acts, int n, bool stream)
{
    *w = (world){.acts = acts, .n_acts = n};
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->cond);
    peer_start(&w->p, act_out, w);
    kl_client_options o = {0};
    kl_config_for_server(w->p.url, &o.config);
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_client_new(&o, &w->c, &err), &err);
    kl_informer_options io = {.clock = kl_clock_real(),
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .seed = 1,
        .stream = stream};
    kl_client_source(
        &(kl_client_source_options){.client = w->c, .resource = &pods, .max_object = 100000}, &io.source);
    w->i = kl_informer_new(&io);
    w->sub = kl_informer_subscribe(w->i, &(kl_handler){hear, hear_synced, w});
    kl_informer_start(w->i);
}

static void assert_heard(world *w, const char *want)
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    kl_lock(&w->mu);
    while (strlen(kl_buf_str(&w->heard)) < strlen(want) && kl_cond_wait_until(&w->cond, &w->mu, deadline))
        ;
    char *heard = kl_strdup(kl_buf_str(&w->heard)), *wrong = kl_strdup(kl_buf_str(&w->wrong));
    kl_unlock(&w->mu);
    assert_string_equal(wrong, "");
    assert_string_equal(heard, want);
    kl_free(heard);
    kl_free(wrong);
}

static void note_stopped(void *arg)
{
    world *w = arg;
    kl_lock(&w->mu);
    w->stopped = true;
    kl_cond_broadcast(&w->cond);
    kl_unlock(&w->mu);
}

/* The informer's counts at the end: lists, watches. */
static void finish(world *w, uint64_t lists, uint64_t watches)
{
    kl_informer_stats st;
    assert_true(peer_wait_requests(&w->p, w->n_acts));
    kl_informer_stats_get(w->i, &st);
    assert_int_equal(st.lists, lists);
    assert_int_equal(st.watches, watches);
    kl_informer_stats_fini(&st);
    kl_informer_unsubscribe(w->sub);
    kl_informer_stop(w->i, note_stopped, w);
    kl_lock(&w->mu);
    while (!w->stopped)
        kl_cond_wait(&w->cond, &w->mu);
    assert_string_equal(kl_buf_str(&w->wrong), "");
    kl_unlock(&w->mu);
    kl_informer_unref(w->i);
    kl_client_free(w->c);
    peer_stop(&w->p);
    kl_buf_fini(&w->heard);
    kl_buf_fini(&w->wrong);
    kl_cond_fini(&w->cond);
    kl_mutex_fini(&w->mu);
}

#define META(name, rv)                                                                                       \
    "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name "\",\"uid\":\"u-" name                            \
    "\",\"resourceVersion\":\"" rv "\"}}"
#define POD(name, rv)                                                                                        \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"" name            \
    "\",\"uid\":\"u-" name "\",\"resourceVersion\":\"" rv "\"}}"
#define EVENT(type, name, rv) "{\"type\":\"" type "\",\"object\":" POD(name, rv) "}\n"
#define STATUS(code, reason)                                                                                 \
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"code\":" code                       \
    ",\"reason\":\"" reason "\",\"message\":\"as scripted\"}"
#define LIST(meta, items)                                                                                    \
    "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{" meta "},\"items\":[" items "]}"
#define END(rv)                                                                                              \
    "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{"               \
    "\"resourceVersion\":\"" rv "\","                                                                        \
    "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n"

static void pages_watches_and_relists_survive_faulty_networks_and_servers(void **state)
{
    (void)state;
    static const act acts[] = {
        {{"resourceVersion=0", "limit=500", "!watch=true"}, 200, NULL,
            LIST("\"resourceVersion\":\"10\",\"continue\":\"c2\"", META("a", "1")), false},
        {{"continue=c2", "limit=500"}, 0, NULL,
            "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":"
            "[" META("b", "2") ",{\"meta",
            false},
        {{"continue=c2", "limit=500"}, 200, NULL,
            LIST("\"resourceVersion\":\"10\"", META("b", "2") "," META("c", "3")), false},
        {{"watch=true", "resourceVersion=10", "allowWatchBookmarks=true"}, 0, NULL,
            EVENT("MODIFIED", "a", "11"), false},
        {{"watch=true", "resourceVersion=11"}, 0, NULL,
            EVENT("DELETED", "b", "12") "{\"type\":\"ADDED\",\"obj", false},
        {{"watch=true", "resourceVersion=12"}, 0, NULL,
            "{\"type\":\"ERROR\",\"object\":{\"code\":410,\"reason\":\"Expired\",\"details\":{"
            "\"retryAfterSeconds\":-9223372036854775807}}}\n",
            false},
        {{"resourceVersion=12", "limit=500", "!watch=true"}, 410, NULL, STATUS("410", "Expired"), false},
        {{"limit=500", "!resourceVersion=12", "!watch=true"}, 200, NULL,
            LIST("\"resourceVersion\":\"30\"", META("a", "11") "," META("d", "29")), false},
        {{"watch=true", "resourceVersion=30"}, 0, NULL, EVENT("MODIFIED", "d", "31"), true},
    };
    world w;
    start(&w, acts, sizeof acts / sizeof *acts, false);
    /* b went in the watch; c while nobody looked; a is as it was and wakes nobody. */
    assert_heard(&w, "+a@1i +b@2i +c@3i . ~a@11 -b@12 -c@3r +d@29r ~d@31 ");
    finish(&w, 3, 4);
}

static void initial_events_are_requested_and_the_stream_continues(void **state)
{
    (void)state;
    static const act acts[] = {
        {{"watch=true", "sendInitialEvents=true", "resourceVersionMatch=NotOlderThan",
             "allowWatchBookmarks=true", "!resourceVersion=0"},
            0, NULL, EVENT("ADDED", "a", "1") EVENT("ADDED", "b", "2") END("10") EVENT("DELETED", "a", "11"),
            false},
        {{"watch=true", "resourceVersion=11", "!sendInitialEvents=true",
             "!resourceVersionMatch=NotOlderThan"},
            410, NULL, STATUS("410", "Gone"), false},
        {{"watch=true", "resourceVersion=11", "sendInitialEvents=true"}, 0, NULL,
            EVENT("ADDED", "b", "2") EVENT("ADDED", "c", "12") END("12"), true},
    };
    world w;
    start(&w, acts, sizeof acts / sizeof *acts, true);
    assert_heard(&w, "+a@1i +b@2i . -a@11 +c@12r ");
    finish(&w, 0, 3);
}

static void a_server_that_does_not_know_them_is_listed(void **state)
{
    (void)state;
    static const act acts[] = {
        {{"watch=true", "sendInitialEvents=true"}, 422, NULL, STATUS("422", "Invalid"), false},
        {{"resourceVersion=0", "limit=500", "!watch=true"}, 200, NULL,
            LIST("\"resourceVersion\":\"10\"", META("a", "1")), false},
        {{"watch=true", "resourceVersion=10", "!sendInitialEvents=true"}, 0, NULL, EVENT("ADDED", "b", "11"),
            true},
    };
    world w;
    start(&w, acts, sizeof acts / sizeof *acts, true);
    assert_heard(&w, "+a@1i . +b@11 ");
    finish(&w, 1, 2);
}

KL_TESTS(cmocka_unit_test(pages_watches_and_relists_survive_faulty_networks_and_servers),
    cmocka_unit_test(initial_events_are_requested_and_the_stream_continues),
    cmocka_unit_test(a_server_that_does_not_know_them_is_listed))
