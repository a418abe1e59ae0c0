/* faults_test.c - rules for injected faults, applied to requests and watches of a server whose clock the
 * test controls (except latencies, which are in real time). */
#include "support/test.h"

#include "core/server/http_help.h"
#include "faults/faults.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define MAP(name) "{'metadata':{'name':'" name "'}}"

static kl_clock *ticks;

static kl_server *start_on(kl_clock *clock)
{
    kl_server *s;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_server_start(&(kl_server_options){.listen = "127.0.0.1:0", .clock = clock}, &s, &err), &err);
    return s;
}

static kl_server *start(void)
{
    ticks = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1767225600));
    return start_on(ticks);
}

static void stop(kl_server *s)
{
    kl_server_stop(s);
    if (ticks)
        kl_clock_fake_free(ticks);
    ticks = NULL;
}

static void rules(kl_server *s, const char *text)
{
    const kl_value *all = v(text);
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_faults_add(kl_server_faults(s), all, &err), &err);
    kl_value_unref(all);
}

/* hits of the i-th rule */
static int64_t hits(kl_server *s, size_t i)
{
    const kl_value *all = kl_faults_list(kl_server_faults(s));
    int64_t n = kl_value_int_at(kl_value_item(kl_value_get(all, "rules"), i), -1, "hits", NULL);
    kl_value_unref(all);
    return n;
}

static void advance(kl_server *s, kl_time by)
{
    kl_clock_advance(ticks, by);
    (void)kl_server_faults_tick(s);
}

/* The whole answer, framing and all. */
static char *raw(kl_server *s, const char *method, const char *path, const char *body)
{
    kl_buf in = KL_BUF_INIT;
    int fd = http_send(s, method, path, body ? "application/json" : NULL, body);
    while (http_more(fd, &in)) {}
    close(fd);
    return kl_buf_take(&in);
}

static int times_in(const char *text, const char *word)
{
    int n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

/* ------------------------------------------------------------------ rules */

static void a_wrong_rule_is_refused_by_its_field(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *why;
    } wrong[] = {
        {"[]", "must be an object, not array"},
        {"{}",
            "a rule needs a fault: latency, error, half, stale, cut, stall, lag, bookmarks, twice or "
            "old"},
        {"{'verb':'list'}", "a rule needs a fault"},
        {"{'eror':'conflict'}", "unknown field \"eror\"; did you mean \"error\"?"},
        {"{'error':'conflikt'}", "error: there is no \"conflikt\"; did you mean \"conflict\"?"},
        {"{'error':'zzzzzzz'}", "error: there is no \"zzzzzzz\"; give code and reason"},
        {"{'error':7}", "error: must be a string, not integer"},
        {"{'code':200}", "code: must be an integer from 400 to 599"},
        {"{'half':true,'retryAfter':3}", "retryAfter: belongs to a failure: give error or code"},
        {"{'half':true,'reason':'x'}", "reason: belongs to a failure: give error or code"},
        {"{'half':1}", "half: must be true or false"},
        {"{'half':true,'verb':'ges'}", "verb: there is no \"ges\"; did you mean \"get\"?"},
        {"{'half':true,'verb':['get',3]}", "verb: must be a verb, or a list of them"},
        {"{'half':true,'probability':0}", "probability: must be a number above 0, and 1 at most"},
        {"{'half':true,'probability':1.5}", "probability: must be a number above 0, and 1 at most"},
        {"{'half':true,'times':0}", "times: must be an integer from 1 to 2147483647"},
        {"{'half':true,'lasts':'soon'}", "lasts: "},
        {"{'half':true,'lasts':5}", "lasts: must be a duration such as \"1.5s\", not integer"},
        {"{'cut':'now'}", "cut: must be \"end\", \"reset\", \"half\" or \"expired\", not \"now\""},
        {"{'cut':'end','verb':'list'}",
            "verb: cut, stall, lag, bookmarks, twice and old apply only to watches"},
        {"{'stale':1,'verb':['get','watch']}", "verb: stale applies only to lists"},
        {"{'lag':'1s','events':3}", "events: sets when a watch is cut or stalls: give cut or stall"},
        {"{'lag':'1s','after':'3s'}", "after: sets when a watch is cut or stalls: give cut or stall"},
        {"{'lag':'-1s'}", "lag: must be from 0 to 31536000 s, not -1s"},
        {"{'latency':{'from':'2s','to':'1s'}}", "latency: its second duration must not be below the first"},
        {"{'latency':{'p50':'0s','p99':'1s'}}", "latency.p50: must be above 0"},
        {"{'latency':{'p50':'1s'}}", "latency: must be a duration, {from, to}, {mean} or {p50, p99}"},
        {"{'latency':'2h'}", "latency: must be from 0 to 3600 s, not 2h"},
        {"{'latency':'1s'}", "latency: time stands still on this server"},
        {"{'rules':[{'half':true},{'cut':1}]}", "rule 2: cut: must be a string, not integer"},
        {"{'rules':7}", "rules: must be a list"},
        {"{'rules':[],'seeds':7}", "unknown field \"seeds\": the body is"},
        {"{'seed':'x','rules':[]}", "seed: must be an integer"},
    };
    kl_server *s = start();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const kl_value *rule = v(wrong[i].rule);
        kl_err err = KL_ERR_INIT;
        assert_int_not_equal(kl_faults_add(kl_server_faults(s), rule, &err), KL_OK);
        if (strncmp(kl_err_message(&err), wrong[i].why, strlen(wrong[i].why)) != 0)
            fail_msg("%s: %s", wrong[i].rule, kl_err_message(&err));
        kl_err_fini(&err);
        kl_value_unref(rule);
    }
    const kl_value *none = kl_faults_list(kl_server_faults(s));
    assert_value(none, "{'seed':1,'rules':[]}");
    kl_value_unref(none);
    stop(s);
}

static void rules_that_are_used_up_make_room(void **state)
{
    (void)state;
    kl_server *s = start();
    for (int i = 0; i < 1000; i++)
        rules(s, "{'verb':'get','error':'server','times':1}");
    kl_err err = KL_ERR_INIT;
    const kl_value *one = v("{'half':true}");
    assert_int_equal(kl_faults_add(kl_server_faults(s), one, &err), KL_ETOOBIG);
    assert_string_equal(kl_err_message(&err), "there are 1001 rules, and 1000 at most: DELETE clears them");
    kl_err_fini(&err);
    assert_int_equal(http_code(s, "GET", MAPS "/a", NULL), 500);
    assert_int_equal(kl_faults_add(kl_server_faults(s), one, NULL), KL_OK);
    assert_int_equal(kl_faults_left(kl_server_faults(s)), 999);
    kl_value_unref(one);
    stop(s);
}

static void failures_answer_a_number_of_matching_requests(void **state)
{
    (void)state;
    kl_server *s = start();
    kl_faults *f = kl_server_faults(s);
    rules(s,
        "{'rules':[{'verb':'create','resource':'configmaps','group':'','error':'unavailable','retryAfter':7,"
        "'times':2},{'verb':'get','name':'a','code':409,'times':1},"
        "{'verb':'delete','code':500,'except':'spec','times':1}]}");
    assert_int_equal(kl_faults_left(f), 4);
    assert_int_equal(http_code(s, "POST", "/api/v1/namespaces/default/secrets", MAP("a")), 201);
    for (int i = 0; i < 2; i++) {
        char *text = raw(s, "POST", MAPS, "{\"metadata\":{\"name\":\"a\"}}");
        assert_non_null(strstr(text, " 503 "));
        assert_non_null(strstr(text, "Retry-After: 7"));
        assert_non_null(strstr(text, "ServiceUnavailable"));
        assert_non_null(strstr(text, "a fault rule caused this failure, see /kubelua/v1/faults"));
        kl_free(text);
    }
    assert_int_equal(http_code(s, "POST", MAPS, MAP("a")), 201);
    assert_int_equal(http_code(s, "GET", MAPS, NULL), 200); /* a list is no get */
    int code;
    const kl_value *why = http(s, "GET", MAPS "/a", NULL, &code);
    assert_int_equal(code, 409);
    assert_string_equal(kl_value_str_at(why, "message", NULL),
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your "
        "changes to the latest version and try again");
    kl_value_unref(why);
    assert_int_equal(http_code(s, "GET", MAPS "/a", NULL), 200);
    assert_int_equal(http_code(s, "DELETE", MAPS "/a", NULL), 200); /* our agent is spared */
    assert_int_equal(kl_faults_left(f), 1);
    assert_int_equal(hits(s, 0), 2);
    kl_server_keep(s);
    assert_true(kl_server_reset(s));
    assert_int_equal(kl_faults_left(f), 0);
    stop(s);
}

static void rules_match_by_their_fields(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *method, *path;
        bool hit;
    } cases[] = {
        {"'kind':'v1/ConfigMap'", "GET", MAPS, true},
        {"'kind':'ConfigMap'", "GET", MAPS, true},
        {"'kind':'apps/v1/ConfigMap'", "GET", MAPS, false},
        {"'kind':'v1/Secret'", "GET", MAPS, false},
        {"'kind':'apps/v1/Deployment'", "GET", "/apis/apps/v1/deployments", true},
        {"'kind':'v1/Deployment'", "GET", "/apis/apps/v1/deployments", false},
        {"'group':'apps'", "GET", "/apis/apps/v1/replicasets", true},
        {"'group':'apps'", "GET", "/apis/apps/v1", false}, /* is of no resource */
        {"'namespace':'default'", "GET", MAPS, true},
        {"'namespace':'default'", "GET", "/api/v1/configmaps", false},
        {"'name':'x'", "GET", MAPS "/x", true},
        {"'name':'y'", "GET", MAPS "/x", false},
        {"'verb':['list','watch']", "GET", MAPS, true},
        {"'verb':['list','watch']", "GET", MAPS "/x", false},
        {"'verb':'create','subresource':'eviction'", "POST", "/api/v1/namespaces/default/pods/x/eviction",
            true},
        {"'verb':'create','subresource':'binding'", "POST", "/api/v1/namespaces/default/pods/x/eviction",
            false},
        {"'path':'/openapi/*'", "GET", "/openapi/v3", true},
        {"'path':'/api/v1/namespaces/*/configmaps'", "GET", MAPS, true},
        {"'path':'/version'", "GET", "/version", true},
        {"'path':'/version'", "GET", "/healthz", false},
        {"'agent':'spec'", "GET", "/version", true},
        {"'agent':'kubectl'", "GET", "/version", false},
        {"'except':'spec/'", "GET", "/version", false},
    };
    kl_server *s = start();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *rule = kl_sprintf("{%s,'code':418}", cases[i].rule);
        rules(s, rule);
        char *text = raw(s, cases[i].method, cases[i].path,
            strcmp(cases[i].method, "POST") ? NULL : "{\"metadata\":{\"name\":\"x\"}}");
        if (cases[i].hit != (strncmp(text, "HTTP/1.1 418", 12) == 0))
            fail_msg("%s %s: %s", rule, cases[i].path, text);
        kl_free(text);
        kl_free(rule);
        kl_faults_clear(kl_server_faults(s));
    }
    stop(s);
}

static uint64_t drawn(kl_server *s, const char *more)
{
    uint64_t pattern = 0;
    kl_faults_clear(kl_server_faults(s));
    char *text = kl_sprintf(
        "{'seed':42,'rules':[{'verb':'get','error':'throttled','probability':0.5},%s]}", more);
    rules(s, text);
    kl_free(text);
    for (int i = 0; i < 40; i++) {
        pattern = pattern << 1 | (http_code(s, "GET", MAPS "/none", NULL) == 429);
        (void)http_code(s, "GET", MAPS, NULL);
    }
    return pattern;
}

static void chance_follows_the_seed_of_each_rule(void **state)
{
    (void)state;
    kl_server *a = start_on(kl_clock_real()), *b = start_on(kl_clock_real());
    uint64_t one = drawn(a, "{'verb':'list','error':'server','probability':0.5}"),
             other = drawn(b, "{'verb':'watch','error':'server'}");
    assert_true(one == other); /* whatever other rules draw */
    int n = __builtin_popcountll(one);
    assert_in_range(n, 8, 32);
    assert_int_equal(hits(b, 0), n);
    uint64_t again = drawn(a, "{'verb':'watch','error':'server'}");
    assert_true(again != one); /* the number of the rule counts, too */
    kl_server_stop(a);
    kl_server_stop(b);
}

static void a_rule_lasts_as_long_as_it_says(void **state)
{
    (void)state;
    kl_server *s = start();
    rules(s, "{'path':'/version','error':'unavailable','lasts':'10s'}");
    advance(s, KL_SECONDS(9));
    assert_int_equal(http_code(s, "GET", "/version", NULL), 503);
    advance(s, KL_SECONDS(1));
    assert_int_equal(http_code(s, "GET", "/version", NULL), 200);
    stop(s);
}

/* ------------------------------------------------------------------ answers */

static void half_of_an_answer_comes_and_the_write_was_made(void **state)
{
    (void)state;
    kl_server *s = start();
    rules(s, "{'verb':'create','half':true,'times':1}");
    char *text = raw(s, "POST", MAPS, "{\"metadata\":{\"name\":\"a\"}}");
    assert_non_null(strstr(text, " 201 "));
    size_t said = (size_t)atoi(strcasestr(text, "Content-Length: ") + 16);
    assert_int_equal(strlen(strstr(text, "\r\n\r\n") + 4), said / 2);
    kl_free(text);
    assert_int_equal(http_code(s, "GET", MAPS "/a", NULL), 200);
    stop(s);
}

static void a_list_is_as_it_was(void **state)
{
    (void)state;
    kl_server *s = start();
    assert_int_equal(http_code(s, "POST", MAPS, MAP("a")), 201);
    uint64_t old = kl_server_rv(s);
    assert_int_equal(http_code(s, "POST", MAPS, MAP("b")), 201);
    assert_int_equal(http_code(s, "DELETE", MAPS "/a", NULL), 200);
    rules(s, "{'verb':'list','stale':2}");
    int code;
    const kl_value *list = http(s, "GET", MAPS, NULL, &code), *items = kl_value_get(list, "items");
    assert_int_equal(kl_value_len(items), 1);
    assert_string_equal(kl_value_str_at(kl_value_item(items, 0), "metadata", "name", NULL), "a");
    assert_true(strtoull(kl_value_str_at(list, "metadata", "resourceVersion", NULL), NULL, 10) == old);
    kl_value_unref(list);
    char *path = kl_sprintf(MAPS "?resourceVersion=%llu", (unsigned long long)kl_server_rv(s));
    list = http(s, "GET", path, NULL, &code); /* not older than what is asked for */
    assert_string_equal(
        kl_value_str_at(kl_value_item(kl_value_get(list, "items"), 0), "metadata", "name", NULL), "b");
    kl_value_unref(list);
    kl_free(path);
    kl_faults_clear(kl_server_faults(s));
    rules(s, "{'verb':'list','stale':1000}");
    list = http(s, "GET", MAPS, NULL, &code);
    assert_int_equal(code, 200);
    assert_int_equal(kl_value_len(kl_value_get(list, "items")), 0);
    kl_value_unref(list);
    stop(s);
}

static void latency_is_waited_for_without_holding_up_others(void **state)
{
    (void)state;
    kl_server *s = start_on(kl_clock_real());
    kl_clock *real = kl_clock_real();
    rules(s, "{'rules':[{'verb':'get','latency':'200ms'},{'verb':'get','error':'conflict','times':1}]}");
    kl_time begin = kl_clock_now(real);
    int fd = http_send(s, "GET", MAPS "/a", NULL, NULL);
    assert_int_equal(http_code(s, "GET", "/api/v1/namespaces", NULL), 200); /* a list: at once */
    char *body;
    assert_int_equal(http_finish(fd, &body), 409); /* as it was judged when it came */
    kl_free(body);
    assert_true(kl_clock_now(real) - begin >= KL_MILLISECONDS(200));
    kl_faults_clear(kl_server_faults(s));
    static const char *const spreads[] = {
        "{'from':'1ms','to':'3ms'}", "{'mean':'2ms'}", "{'p50':'1ms','p99':'4ms'}"};
    for (size_t i = 0; i < 3; i++) {
        char *rule = kl_sprintf("{'path':'/version','latency':%s}", spreads[i]);
        rules(s, rule);
        kl_free(rule);
        for (int k = 0; k < 10; k++)
            assert_int_equal(http_code(s, "GET", "/version", NULL), 200);
        assert_int_equal(hits(s, 0), 10);
        kl_faults_clear(kl_server_faults(s));
    }
    /* whoever waits when the server stops is let go */
    rules(s, "{'verb':'list','latency':'1h'}");
    fd = http_send(s, "GET", MAPS, NULL, NULL);
    while (hits(s, 0) == 0)
        assert_int_equal(http_code(s, "GET", "/version", NULL), 200);
    stop(s);
    kl_buf in = KL_BUF_INIT;
    while (http_more(fd, &in)) {}
    assert_int_equal(in.len, 0);
    close(fd);
    kl_buf_fini(&in);
}

/* ------------------------------------------------------------------ watches */

typedef struct watcher {
    kl_server *s;
    int fd;
    kl_buf in;
} watcher;

static watcher watch_map(kl_server *s, const char *query)
{
    watcher w = {.s = s};
    char *path = kl_sprintf(
        MAPS "?watch=true&resourceVersion=%llu%s", (unsigned long long)kl_server_rv(s), query);
    w.fd = http_send(s, "GET", path, NULL, NULL);
    kl_free(path);
    http_wait_for(w.fd, &w.in, "\r\n\r\n", 1);
    return w;
}

static void make(kl_server *s, const char *name)
{
    char *body = kl_sprintf(MAP("%s"), name);
    assert_int_equal(http_code(s, "POST", MAPS, body), 201);
    kl_free(body);
}

/* Everything until its end; the caller frees. */
static char *until_end(watcher *w)
{
    while (http_more(w->fd, &w->in)) {}
    close(w->fd);
    return kl_buf_take(&w->in);
}

/* What has come so far: what is sent after `name` was made, which has to come. */
static void hears(watcher *w, const char *name)
{
    char *word = kl_sprintf("\"name\":\"%s\"", name);
    http_wait_for(w->fd, &w->in, word, 1);
    kl_free(word);
}

static void drop(watcher *w)
{
    close(w->fd);
    kl_buf_fini(&w->in);
}

static bool heard(const watcher *w, const char *name)
{
    char *word = kl_sprintf("\"name\":\"%s\"", name);
    bool is = strstr(w->in.data, word) != NULL;
    kl_free(word);
    return is;
}

static void a_watch_is_cut_in_each_way(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        bool third, whole, error;
    } ways[] = {{"end", false, true, false}, {"half", true, true, false}, {"expired", false, true, true}};
    kl_server *s = start();
    for (size_t i = 0; i < 3; i++) {
        char *rule = kl_sprintf("{'verb':'watch','cut':'%s','events':2,'times':1}", ways[i].how), *name;
        rules(s, rule);
        kl_free(rule);
        watcher w = watch_map(s, "");
        for (int k = 0; k < 3; k++) {
            name = kl_sprintf("m%zu-%d", i, k);
            make(s, name);
            kl_free(name);
        }
        char *text = until_end(&w);
        assert_int_equal(times_in(text, "{\"type\":\"ADDED\""), ways[i].third ? 3 : 2);
        assert_int_equal(times_in(text, "\"code\":410"), ways[i].error);
        assert_int_equal(times_in(text, "\r\n0\r\n\r\n"), ways[i].whole);
        kl_free(text);
        kl_faults_clear(kl_server_faults(s));
    }
    rules(s, "{'verb':'watch','cut':'reset'}");
    watcher w = {.s = s, .fd = http_send(s, "GET", MAPS "?watch=true", NULL, NULL)};
    char *text = until_end(&w);
    assert_int_equal(times_in(text ? text : "", "\r\n0\r\n\r\n"), 0); /* no end of its own */
    kl_free(text);
    stop(s);
}

static void a_watch_of_the_past_is_refused_as_kube_apiserver_does(void **state)
{
    (void)state;
    kl_server *s = start();
    rules(s, "{'verb':'watch','error':'gone','times':1}");
    watcher w = {.s = s, .fd = http_send(s, "GET", MAPS "?watch=true&resourceVersion=1", NULL, NULL)};
    char *text = until_end(&w);
    assert_non_null(strstr(text, " 200 OK"));
    assert_non_null(strstr(text, "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\""));
    assert_non_null(strstr(text, "\"reason\":\"Expired\",\"code\":410"));
    kl_free(text);
    stop(s);
}

static void a_watch_stalls_and_continues(void **state)
{
    (void)state;
    kl_server *s = start();
    rules(s, "{'kind':'v1/ConfigMap','stall':'30s','events':1}");
    watcher w = watch_map(s, "&allowWatchBookmarks=true");
    make(s, "one");
    make(s, "two");
    make(s, "three");
    advance(s, KL_SECONDS(29));
    kl_server_mark(s); /* is told all the same */
    http_wait_for(w.fd, &w.in, "BOOKMARK", 1);
    assert_true(heard(&w, "one"));
    assert_false(heard(&w, "two"));
    advance(s, KL_SECONDS(1));
    hears(&w, "three");
    make(s, "four"); /* it stalls once */
    hears(&w, "four");
    assert_true(strstr(w.in.data, "\"two\"") < strstr(w.in.data, "\"three\""));
    drop(&w);
    stop(s);
}

static void frames_lag_in_their_order(void **state)
{
    (void)state;
    kl_server *s = start();
    rules(s, "{'verb':'watch','lag':'10s'}");
    watcher w = watch_map(s, "&allowWatchBookmarks=true");
    make(s, "one");
    advance(s, KL_SECONDS(5));
    make(s, "two");
    advance(s, KL_SECONDS(5));
    hears(&w, "one");
    kl_server_mark(s);
    http_wait_for(w.fd, &w.in, "BOOKMARK", 1);
    assert_false(heard(&w, "two"));
    assert_int_equal(kl_server_faults_tick(s), kl_clock_now(ticks) + KL_SECONDS(5));
    make(s, "three");
    kl_faults_clear(kl_server_faults(s)); /* lets go of all */
    hears(&w, "three");
    assert_true(heard(&w, "two"));
    assert_true(kl_server_faults_tick(s) == KL_NEVER);
    drop(&w);
    stop(s);
}

static void bookmarks_are_late_or_missing(void **state)
{
    (void)state;
    kl_server *s = start();
    rules(s, "{'verb':'watch','bookmarks':'none','times':1}");
    rules(s, "{'verb':'watch','bookmarks':'90s'}");
    watcher none = watch_map(s, "&allowWatchBookmarks=true"),
            late = watch_map(s, "&allowWatchBookmarks=true");
    assert_int_equal(http_code(s, "POST", "/api/v1/namespaces/default/secrets", MAP("x")), 201);
    kl_clock_advance(ticks, KL_SECONDS(60));
    kl_server_tick(s); /* the bookmark is made */
    make(s, "one");
    hears(&none, "one");
    hears(&late, "one");
    assert_null(strstr(late.in.data, "BOOKMARK"));
    kl_clock_advance(ticks, KL_SECONDS(90));
    (void)kl_server_faults_tick(s);
    http_wait_for(late.fd, &late.in, "BOOKMARK", 1);
    make(s, "two");
    hears(&none, "two");
    assert_null(strstr(none.in.data, "BOOKMARK"));
    drop(&none);
    drop(&late);
    stop(s);
}

static void frames_come_again_and_old_ones_follow(void **state)
{
    (void)state;
    kl_server *s = start();
    rules(s, "{'rules':[{'verb':'watch','twice':1},{'verb':'watch','old':1}]}");
    watcher w = watch_map(s, "");
    make(s, "one"); /* one one */
    make(s, "two"); /* two two one */
    http_wait_for(w.fd, &w.in, "\"name\":\"two\"", 2);
    http_wait_for(w.fd, &w.in, "\"name\":\"one\"", 3);
    assert_int_equal(times_in(w.in.data, "\"name\":\"two\""), 2);
    drop(&w);
    stop(s);
}

static void a_rule_meets_watches_that_run(void **state)
{
    (void)state;
    kl_server *s = start();
    watcher w = watch_map(s, ""), other = watch_map(s, "");
    make(s, "one");
    hears(&w, "one");
    rules(s, "{'kind':'v1/Secret','cut':'end'}");
    assert_int_equal(hits(s, 0), 0);
    rules(s, "{'kind':'v1/ConfigMap','verb':'watch','cut':'end','after':'5s','times':2}");
    assert_int_equal(hits(s, 1), 2);
    advance(s, KL_SECONDS(4));
    make(s, "two");
    hears(&w, "two");
    assert_int_equal(kl_server_faults_tick(s), kl_clock_now(ticks) + KL_SECONDS(1));
    advance(s, KL_SECONDS(1));
    kl_free(until_end(&w));
    kl_free(until_end(&other));
    w = watch_map(s, ""); /* the rule is used up */
    make(s, "three");
    hears(&w, "three");
    drop(&w);
    stop(s);
}

KL_TESTS(cmocka_unit_test(a_wrong_rule_is_refused_by_its_field),
    cmocka_unit_test(rules_that_are_used_up_make_room),
    cmocka_unit_test(failures_answer_a_number_of_matching_requests),
    cmocka_unit_test(rules_match_by_their_fields), cmocka_unit_test(chance_follows_the_seed_of_each_rule),
    cmocka_unit_test(a_rule_lasts_as_long_as_it_says),
    cmocka_unit_test(half_of_an_answer_comes_and_the_write_was_made), cmocka_unit_test(a_list_is_as_it_was),
    cmocka_unit_test(latency_is_waited_for_without_holding_up_others),
    cmocka_unit_test(a_watch_is_cut_in_each_way),
    cmocka_unit_test(a_watch_of_the_past_is_refused_as_kube_apiserver_does),
    cmocka_unit_test(a_watch_stalls_and_continues), cmocka_unit_test(frames_lag_in_their_order),
    cmocka_unit_test(bookmarks_are_late_or_missing), cmocka_unit_test(frames_come_again_and_old_ones_follow),
    cmocka_unit_test(a_rule_meets_watches_that_run))
