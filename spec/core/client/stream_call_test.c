/* stream_call_test.c - lists and watches that arrive object by object, and all their ends. */
#include "support/test.h"
#include "core/http/peer.h"

#include "model/object.h"
#include "client/client.h"

static const char *const verbs[] = {"list", "watch", NULL};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .singular = "pod",
    .verbs = (char **)verbs,
    .namespaced = true};

/* What a stream brought; filled on the watch thread, read after the end. */
typedef struct record {
    kl_mutex mu;
    kl_cond changed;
    char log[4096]; /* "open item:a event:ADDED:a done" */
    int dones;
    kl_status st;
    int code;
    kl_err err;
    const kl_value *envelope;
    kl_client *c;
    kl_op op;
    uint64_t id;
    bool cancel_at_first, hears_lull;
    kl_status refuse;
    size_t max_object;
} record;

static void note(record *r, const char *fmt, ...) KL_PRINTF(2, 3);
static void note(record *r, const char *fmt, ...)
{
    va_list ap;
    kl_lock(&r->mu);
    size_t n = strlen(r->log);
    va_start(ap, fmt);
    vsnprintf(r->log + n, sizeof r->log - n, fmt, ap);
    va_end(ap);
    kl_cond_broadcast(&r->changed);
    kl_unlock(&r->mu);
}

static kl_status on_item(void *arg, const kl_value *o, kl_err *err)
{
    record *r = arg;
    note(r, "item:%s ", kl_object_name(o));
    kl_value_unref(o);
    if (r->cancel_at_first)
        kl_client_stream_cancel(r->c, r->id);
    return r->refuse ? kl_fail(err, r->refuse, "the handler refuses") : KL_OK;
}

static kl_status on_event(void *arg, const char *type, const kl_value *o, kl_err *err)
{
    record *r = arg;
    (void)err;
    note(r, "%s:%s ", type, kl_object_name(o) ? kl_object_name(o) : "-");
    kl_value_unref(o);
    return KL_OK;
}

static void on_lull(void *arg) { note(arg, "lull "); }

static void on_opened(void *arg) { note(arg, "open "); }

static void on_done(void *arg, kl_status st, int code, const kl_value *envelope, kl_err *err)
{
    record *r = arg;
    kl_lock(&r->mu);
    r->st = st;
    r->code = code;
    r->envelope = kl_value_ref(envelope);
    kl_err_move(&r->err, err);
    r->dones++;
    kl_cond_broadcast(&r->changed);
    kl_unlock(&r->mu);
}

static void begin(void *arg)
{
    record *r = arg;
    r->id = kl_client_stream(r->c, &r->op,
        &(kl_stream_call){.item = on_item,
            .event = on_event,
            .lull = r->hears_lull ? on_lull : NULL,
            .opened = on_opened,
            .done = on_done,
            .arg = r,
            .max_object = r->max_object ? r->max_object : 1 << 20});
    note(r, "started ");
}

static void cancel(void *arg) { kl_client_stream_cancel(((record *)arg)->c, ((record *)arg)->id); }

static bool wait_for(record *r, const char *part) /* NULL: for the end */
{
    kl_time deadline = kl_clock_now(kl_clock_real()) + PEER_WAIT;
    bool in_time = true;
    kl_lock(&r->mu);
    while (in_time && (part ? !strstr(r->log, part) : !r->dones))
        in_time = kl_cond_wait_until(&r->changed, &r->mu, deadline);
    kl_unlock(&r->mu);
    return in_time;
}

typedef struct world {
    peer p;
    record r;
    kl_err err;
} world;

static void world_start(world *w, peer_answer *answer, void *arg, kl_verb verb)
{
    memset(w, 0, sizeof *w);
    kl_mutex_init(&w->r.mu);
    kl_cond_init(&w->r.changed);
    peer_start(&w->p, answer, arg);
    kl_client_options o = {0};
    kl_config_for_server(w->p.url, &o.config);
    o.config.proxy_url = kl_strdup("");
    assert_ok(kl_client_new(&o, &w->r.c, &w->err), &w->err);
    kl_op_init(&w->r.op, verb, NULL);
    w->r.op.resource = &pods;
    w->r.op.bookmarks = verb == KL_WATCH;
    w->r.op.rv = "5";
}

static void world_go(world *w) { kl_http_post(kl_client_watch_http(w->r.c), begin, &w->r); }

static void world_stop(world *w)
{
    kl_client_free(w->r.c);
    peer_stop(&w->p);
    assert_int_equal(w->r.dones, 1);
    kl_value_unref(w->r.envelope);
    kl_err_fini(&w->r.err);
    kl_cond_fini(&w->r.changed);
    kl_mutex_fini(&w->r.mu);
}

/* --- peers -------------------------------------------------------------------------------- */

static bool say(peer *p, int fd, const request *r)
{
    (void)r;
    return peer_reply(fd, 200, "", p->arg);
}

static bool fail_with_status(peer *p, int fd, const request *r)
{
    (void)r;
    return peer_reply(fd, 410, "Retry-After: 3\r\n", p->arg);
}

#define EVENT(type, name, rv)                                                                                \
    "{\"type\":\"" type "\",\"object\":{\"kind\":\"Pod\",\"metadata\":{\"name\":\"" name                     \
    "\",\"resourceVersion\":\"" rv "\"}}}\n"

static bool watch_path_ok(const request *r)
{
    return !strcmp(r->path, "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=5&watch=true");
}

static bool chunk(int fd, const char *text) { return peer_send(fd, "%zx\r\n%s\r\n", strlen(text), text); }
static bool head(int fd) { return peer_send(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"); }

static bool two_events_then_a_clean_end(peer *p, int fd, const request *r)
{
    (void)p;
    if (!watch_path_ok(r))
        return peer_reply(fd, 400, "", "");
    head(fd);
    chunk(fd, EVENT("ADDED", "a", "6") "{\"type\":\"MODI");
    chunk(fd, "FIED\",\"object\":{\"metadata\":{\"name\":\"b\"}}}\n");
    return peer_send(fd, "0\r\n\r\n");
}

static bool an_event_then_the_line_is_cut(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    head(fd);
    chunk(fd, EVENT("ADDED", "a", "6"));
    return false;
}

static bool half_an_event_then_a_clean_end(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    head(fd);
    chunk(fd, EVENT("ADDED", "a", "6") "{\"type\":\"MODI");
    return peer_send(fd, "0\r\n\r\n");
}

static bool an_event_then_garbage(peer *p, int fd, const request *r)
{
    (void)p;
    (void)r;
    head(fd);
    chunk(fd, EVENT("ADDED", "a", "6"));
    chunk(fd, "<html>");
    return peer_send(fd, "0\r\n\r\n");
}

static bool an_event_then_silence(peer *p, int fd, const request *r)
{
    (void)r;
    head(fd);
    chunk(fd, EVENT("ADDED", "a", "6"));
    struct pollfd pf = {.fd = fd, .events = POLLIN};
    while (!atomic_load(&p->stop) && poll(&pf, 1, 50) <= 0)
        continue;
    return false;
}

static bool unauthorized_once(peer *p, int fd, const request *r)
{
    (void)p;
    const char *who = peer_header(r, "authorization");
    if (!who || strcmp(who, "Bearer new"))
        return peer_reply(fd, 401, "", "{\"kind\":\"Status\",\"reason\":\"Unauthorized\",\"code\":401}");
    return peer_reply(fd, 200, "", "{\"kind\":\"PodList\",\"items\":[]}");
}

/* --- specs -------------------------------------------------------------------------------- */

static void a_list_brings_items_then_its_envelope(void **state)
{
    (void)state;
    world w;
    world_start(&w, say,
        "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\",\"continue\":"
        "\"c\"},\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}]}",
        KL_LIST);
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_OK);
    assert_int_equal(w.r.code, 200);
    assert_string_equal(w.r.log, "started open item:a item:b ");
    assert_string_equal(kl_value_str_at(w.r.envelope, "metadata", "continue", NULL), "c");
    world_stop(&w);
}

static void a_watch_that_ends_cleanly_is_ok(void **state)
{
    (void)state;
    world w;
    world_start(&w, two_events_then_a_clean_end, NULL, KL_WATCH);
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_OK);
    assert_string_equal(w.r.log, "started open ADDED:a MODIFIED:b ");
    assert_null(w.r.envelope);
    world_stop(&w);
}

static void a_cut_line_is_reported_after_the_complete_ones(void **state)
{
    (void)state;
    peer_answer *ends[] = {an_event_then_the_line_is_cut, half_an_event_then_a_clean_end};
    for (int i = 0; i < 2; i++) {
        world w;
        world_start(&w, ends[i], NULL, KL_WATCH);
        world_go(&w);
        assert_true(wait_for(&w.r, NULL));
        assert_int_equal(w.r.st, KL_ECLOSED);
        assert_string_equal(w.r.log, "started open ADDED:a ");
        assert_non_null(strstr(kl_err_message(&w.r.err), "watch pods"));
        assert_int_equal(atomic_load(&w.p.requests), 1);
        world_stop(&w);
    }
}

static void garbage_in_a_watch_names_the_url(void **state)
{
    (void)state;
    world w;
    world_start(&w, an_event_then_garbage, NULL, KL_WATCH);
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_ESERVER);
    assert_string_equal(w.r.log, "started open ADDED:a ");
    assert_non_null(strstr(kl_err_message(&w.r.err), "watch pods: the answer to GET http://127.0.0.1:"));
    assert_non_null(strstr(kl_err_message(&w.r.err), "<html>"));
    world_stop(&w);
}

static void garbage_and_truncation_in_a_list_are_errors(void **state)
{
    (void)state;
    static char *const bodies[] = {"<html>oops</html>", "{\"items\":[{\"metadata\":{\"name\":\"a\"}},",
        "{\"items\":[{\"metadata\":{\"name\":\"a\"}},}", ""};
    for (int i = 0; i < 4; i++) {
        world w;
        world_start(&w, say, bodies[i], KL_LIST);
        world_go(&w);
        assert_true(wait_for(&w.r, NULL));
        assert_int_equal(w.r.st, KL_ESERVER);
        assert_null(w.r.envelope);
        assert_non_null(strstr(kl_err_message(&w.r.err), "list pods: the answer to GET http://127.0.0.1:"));
        world_stop(&w);
    }
}

static void an_object_above_the_ceiling_is_named(void **state)
{
    (void)state;
    world w;
    world_start(&w, say,
        "{\"items\":[{\"metadata\":{\"name\":\"huge\",\"namespace\":\"ns\"},\"data\":"
        "\"01234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567"
        "89\"}]}",
        KL_LIST);
    w.r.max_object = 64;
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_ETOOBIG);
    assert_non_null(strstr(kl_err_message(&w.r.err), "--max-object-bytes"));
    assert_non_null(strstr(kl_err_message(&w.r.err), "huge"));
    world_stop(&w);
}

static void an_unreachable_time_is_no_deadline(void **state)
{
    (void)state;
    world w;
    world_start(&w, say, EVENT("ADDED", "a", "6"), KL_WATCH);
    w.r.op.timeout_seconds = INT64_MAX;
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_ok(w.r.st, &w.r.err);
    world_stop(&w);
}

static void a_status_ends_a_stream_as_an_error(void **state)
{
    (void)state;
    world w;
    world_start(&w, fail_with_status,
        "{\"kind\":\"Status\",\"reason\":\"Expired\",\"message\":\"too old resource version: "
        "5\",\"code\":410}",
        KL_WATCH);
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_EGONE);
    assert_int_equal(w.r.code, 410);
    assert_string_equal(w.r.log, "started "); /* never established */
    assert_string_equal(kl_err_message(&w.r.err), "watch pods: too old resource version: 5");
    assert_int_equal(w.r.err.retry_after_ns, KL_SECONDS(3));
    world_stop(&w);
}

static void a_handlers_refusal_ends_the_stream(void **state)
{
    (void)state;
    world w;
    world_start(
        &w, say, "{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}]}", KL_LIST);
    w.r.refuse = KL_ECONFLICT;
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_ECONFLICT);
    assert_string_equal(w.r.log, "started open item:a ");
    world_stop(&w);
}

static void after_a_cancel_there_are_no_callbacks(void **state)
{
    (void)state;
    world w;
    world_start(
        &w, say, "{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":\"b\"}}]}", KL_LIST);
    w.r.cancel_at_first = true;
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_ECANCELLED);
    assert_string_equal(w.r.log, "started open item:a ");
    world_stop(&w);
}

static void a_silent_watch_can_be_cancelled_or_freed(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        world w;
        world_start(&w, an_event_then_silence, NULL, KL_WATCH);
        w.r.hears_lull = true;
        world_go(&w);
        assert_true(wait_for(&w.r, "ADDED:a lull "));
        if (i == 0) {
            kl_http_post(kl_client_watch_http(w.r.c), cancel, &w.r);
            assert_true(wait_for(&w.r, NULL));
        }
        record *r = &w.r;
        world_stop(&w);
        assert_int_equal(r->st, KL_ECANCELLED);
    }
}

static void mistakes_come_through_done_after_the_start(void **state)
{
    (void)state;
    world w;
    world_start(&w, say, "{}", KL_GET);
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_EINVAL);
    assert_string_equal(w.r.log, "started ");
    world_stop(&w);
    world_start(&w, say, "{}", KL_LIST);
    w.r.op.resource = NULL;
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_EINVAL);
    world_stop(&w);
}

static void a_rotated_token_is_tried_once_more(void **state)
{
    (void)state;
    char path[] = "/tmp/kubelua-token-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(write(fd, "old", 3), 3);
    world w;
    memset(&w, 0, sizeof w);
    kl_mutex_init(&w.r.mu);
    kl_cond_init(&w.r.changed);
    peer_start(&w.p, unauthorized_once, NULL);
    /* With a fake clock the file is not watched: only the 401 tells. */
    kl_client_options o = {.clock = kl_clock_fake_new(KL_SECONDS(1000), KL_SECONDS(1000))};
    kl_config_for_server(w.p.url, &o.config);
    o.config.proxy_url = kl_strdup("");
    o.config.token_file = kl_strdup(path);
    assert_ok(kl_client_new(&o, &w.r.c, &w.err), &w.err);
    /* "old" is in memory now */
    assert_int_equal(kl_client_raw(w.r.c, "GET", "/x", NULL, NULL, 0, NULL, &w.err), KL_EAUTH);
    kl_err_fini(&w.err);
    assert_int_equal(pwrite(fd, "new", 3, 0), 3);
    kl_op_init(&w.r.op, KL_LIST, NULL);
    w.r.op.resource = &pods;
    world_go(&w);
    assert_true(wait_for(&w.r, NULL));
    assert_int_equal(w.r.st, KL_OK);
    assert_int_equal(atomic_load(&w.p.requests), 3);
    world_stop(&w);
    kl_clock_fake_free(o.clock);
    close(fd);
    remove(path);
}

KL_TESTS(cmocka_unit_test(a_list_brings_items_then_its_envelope),
    cmocka_unit_test(a_watch_that_ends_cleanly_is_ok),
    cmocka_unit_test(a_cut_line_is_reported_after_the_complete_ones),
    cmocka_unit_test(garbage_in_a_watch_names_the_url),
    cmocka_unit_test(garbage_and_truncation_in_a_list_are_errors),
    cmocka_unit_test(an_object_above_the_ceiling_is_named),
    cmocka_unit_test(a_status_ends_a_stream_as_an_error),
    cmocka_unit_test(an_unreachable_time_is_no_deadline),
    cmocka_unit_test(a_handlers_refusal_ends_the_stream),
    cmocka_unit_test(after_a_cancel_there_are_no_callbacks),
    cmocka_unit_test(a_silent_watch_can_be_cancelled_or_freed),
    cmocka_unit_test(mistakes_come_through_done_after_the_start),
    cmocka_unit_test(a_rotated_token_is_tried_once_more))
