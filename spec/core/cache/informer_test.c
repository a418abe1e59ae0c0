/* informer_test.c - list, watch, store and handlers together, with a source that the test controls. */
#include "support/fake_source.h"

#include "base/buf.h"
#include "cache/informer.h"
#include "model/object.h"

/* What a handler heard, as text: "+ns/a@1i" added at resourceVersion 1, initial; "~ns/a@1>2" modified;
 * "-ns/a@2" deleted; "." synced. Flags: i initial, r relist, s resync. */
typedef struct ears {
    kl_buf said;
    kl_subscription *sub;
    bool leave;
} ears;

static void hear(void *arg, kl_event_type type, const kl_value *old, const kl_value *now, unsigned flags)
{
    ears *e = arg;
    char *key = kl_object_key(now ? now : old);
    assert_int_equal(type == KL_ADDED, !old);
    assert_int_equal(type == KL_DELETED, !now);
    if (e->said.len)
        kl_buf_putc(&e->said, ' ');
    if (type == KL_MODIFIED)
        kl_buf_printf(&e->said, "~%s@%s>%s", key, kl_object_rv(old), kl_object_rv(now));
    else
        kl_buf_printf(&e->said, "%c%s@%s", now ? '+' : '-', key, kl_object_rv(now ? now : old));
    kl_buf_printf(&e->said, "%s%s%s", flags & KL_INITIAL ? "i" : "", flags & KL_RELIST ? "r" : "",
        flags & KL_RESYNC ? "s" : "");
    kl_free(key);
    if (e->leave) {
        kl_informer_unsubscribe(e->sub);
        e->sub = NULL;
    }
}

static void hear_synced(void *arg)
{
    ears *e = arg;
    kl_buf_puts(&e->said, e->said.len ? " ." : ".");
}

#define assert_heard(e, text)                                                                                \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(e)->said), text);                                                   \
        kl_buf_clear(&(e)->said);                                                                            \
    } while (0)

typedef struct world {
    fake_source f;
    kl_informer *i;
    ears e;
} world;

static void setup_with(world *w, bool stream)
{
    *w = (world){0};
    fake_init(&w->f);
    kl_informer_options o = {.source = fake_source_of(&w->f),
        .clock = w->f.clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .seed = 7,
        .stream = stream};
    w->i = kl_informer_new(&o);
    w->e.sub = kl_informer_subscribe(w->i, &(kl_handler){hear, hear_synced, &w->e});
    kl_informer_start(w->i);
    fake_pump(&w->f);
}

static void setup(world *w) { setup_with(w, false); }

static void noted(void *arg) { ++*(int *)arg; }

static void teardown(world *w)
{
    int stopped = 0;
    kl_informer_stop(w->i, noted, &stopped);
    fake_pump(&w->f);
    assert_int_equal(stopped, 1);
    assert_int_equal(w->f.open, FAKE_NOTHING);
    assert_int_equal(w->f.timer_id, 0);
    kl_informer_unsubscribe(w->e.sub);
    kl_informer_unref(w->i);
    fake_pump(&w->f);
    kl_buf_fini(&w->e.said);
    fake_fini(&w->f);
}

static const char *pod(const char *name, const char *uid, int rv)
{
    static char text[4][256];
    static int turn;
    char *out = text[turn++ % 4];
    snprintf(out, 256,
        "{\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%d\","
        "\"labels\":{\"app\":\"%s\"}},\"spec\":{\"nodeName\":\"n%d\"}}",
        name, uid, rv, name, rv % 2);
    return out;
}

/* An informer whose store holds a@1 and b@2, watching from 10. */
static void setup_synced(world *w)
{
    setup(w);
    fake_item(&w->f, pod("a", "ua", 1));
    fake_item(&w->f, pod("b", "ub", 2));
    fake_listed(&w->f, "10", NULL);
    assert_heard(&w->e, "+ns/a@1i +ns/b@2i .");
    fake_opens(&w->f);
}

static char *keys(kl_informer *i, const kl_query *q)
{
    kl_objects all;
    kl_err err = KL_ERR_INIT;
    kl_buf b = KL_BUF_INIT;
    assert_ok(kl_informer_list(i, q, &all, &err), &err);
    for (size_t k = 0; k < all.len; k++) {
        char *key = kl_object_key(all.v[k]);
        kl_buf_printf(&b, "%s%s", k ? " " : "", key);
        kl_free(key);
    }
    kl_objects_fini(&all);
    if (!b.data)
        kl_buf_puts(&b, "");
    return kl_buf_take(&b);
}

static void assert_keys(kl_informer *i, const kl_query *q, const char *want)
{
    char *have = keys(i, q);
    assert_string_equal(have ? have : "", want);
    kl_free(have);
}

static void a_list_counts_as_heard(void **state)
{
    (void)state;
    world w;
    kl_informer_stats s;
    setup(&w);
    kl_informer_stats_get(w.i, &s);
    assert_int_equal(s.last_event, 0);
    kl_informer_stats_fini(&s);
    fake_listed(&w.f, "10", NULL); /* and no watch has opened */
    kl_informer_stats_get(w.i, &s);
    assert_true(s.last_event > 0 && s.last_event == kl_clock_now(w.f.clock));
    kl_informer_stats_fini(&s);
    teardown(&w);
}

static void lists_then_watches_and_delivers_events(void **state)
{
    (void)state;
    world w;
    setup(&w);
    assert_int_equal(w.f.open, FAKE_LIST);
    assert_string_equal(w.f.rv, "0");
    assert_int_equal(w.f.limit, 500);
    assert_false(kl_informer_synced(w.i));
    fake_item(&w.f, pod("a", "ua", 1));
    assert_int_equal(kl_informer_count(w.i), 0); /* nothing is visible before the list is whole */
    fake_listed(&w.f, "10", NULL);
    assert_true(kl_informer_synced(w.i));
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_string_equal(w.f.rv, "10");
    assert_true(w.f.bookmarks);
    fake_opens(&w.f);
    fake_event(&w.f, "ADDED", pod("b", "ub", 11));
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 12));
    fake_event(&w.f, "DELETED", pod("b", "ub", 13));
    fake_event(&w.f, "DELETED", pod("never-seen", "x", 14));
    assert_heard(&w.e, "+ns/a@1i . +ns/b@11 ~ns/a@1>12 -ns/b@13");
    const kl_value *a = kl_informer_lookup(w.i, "ns/a");
    assert_string_equal(kl_object_rv(a), "12");
    /* list items and events come out with their type */
    assert_string_equal(kl_object_kind(a), "Pod");
    assert_string_equal(kl_object_api_version(a), "v1");
    kl_value_unref(a);
    assert_null(kl_informer_lookup(w.i, "ns/b"));
    teardown(&w);
}

static void an_empty_list_is_synced_at_once(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_listed(&w.f, "10", NULL);
    assert_true(kl_informer_synced(w.i));
    assert_heard(&w.e, ".");
    teardown(&w);
}

static void a_watch_that_ends_resumes_at_the_last_event_without_a_list(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 12));
    fake_bookmark(&w.f, "20");
    fake_advance(&w.f, KL_SECONDS(5));
    fake_fails(&w.f, KL_OK, 200);
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_string_equal(w.f.rv, "20");
    fake_opens(&w.f);
    fake_advance(&w.f, KL_SECONDS(5));
    fake_fails(&w.f, KL_ECLOSED, 0);
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_string_equal(w.f.rv, "20");
    assert_int_equal(w.f.lists, 1);
    teardown(&w);
}

static void bookmarks_are_not_delivered(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_bookmark(&w.f, "20");
    assert_heard(&w.e, "");
    kl_informer_stats s;
    kl_informer_stats_get(w.i, &s);
    assert_string_equal(s.rv, "20");
    assert_string_equal(s.state, "watching");
    assert_int_equal(s.objects, 2);
    assert_true(s.bytes > 100 && s.synced && !s.parked && !s.message);
    kl_informer_stats_fini(&s);
    teardown(&w);
}

static void a_relist_delivers_the_difference_deletions_first(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_error_event(&w.f, 410, "Expired");
    assert_int_equal(w.f.open, FAKE_LIST);
    assert_string_equal(w.f.rv, "10");
    assert_int_equal(w.f.limit, 0);
    fake_item(&w.f, pod("a", "ua", 1)); /* as it was: wakes nobody */
    fake_item(&w.f, pod("c", "uc", 30));
    fake_listed(&w.f, "31", NULL);
    assert_heard(&w.e, "-ns/b@2r +ns/c@30r");
    assert_keys(w.i, NULL, "ns/a ns/c");
    assert_string_equal(w.f.rv, "31");
    teardown(&w);
}

static void gone_as_an_http_status_is_no_different(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_fails(&w.f, KL_EGONE, 410);
    assert_int_equal(w.f.open, FAKE_LIST);
    assert_string_equal(w.f.rv, "10");
    fake_fails(&w.f, KL_EGONE, 410);
    assert_int_equal(w.f.open, FAKE_LIST);
    assert_true(w.f.has_rv);
    assert_string_equal(w.f.rv, "");
    fake_item(&w.f, pod("b", "ub", 40));
    fake_listed(&w.f, "41", NULL);
    assert_heard(&w.e, "-ns/a@1r ~ns/b@2>40r");
    teardown(&w);
}

static void nothing_is_deleted_for_a_page_that_failed(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_fails(&w.f, KL_EGONE, 410);
    fake_fails(&w.f, KL_EGONE, 410); /* now at "", so in pages */
    fake_item(&w.f, pod("c", "uc", 30));
    fake_listed(&w.f, "31", "more");
    assert_string_equal(w.f.continue_token, "more");
    fake_item(&w.f, pod("b", "ub", 2));
    fake_fails(&w.f, KL_ECLOSED, 0); /* in the middle of a page */
    assert_int_equal(w.f.open, FAKE_NOTHING);
    assert_heard(&w.e, "");
    assert_keys(w.i, NULL, "ns/a ns/b");
    fake_advance(&w.f, KL_SECONDS(2));
    assert_string_equal(w.f.continue_token, "more"); /* only that page again */
    fake_item(&w.f, pod("b", "ub", 2));
    fake_item(&w.f, pod("d", "ud", 30));
    fake_fails(&w.f, KL_EFORBIDDEN, 403);
    assert_heard(&w.e, "");
    fake_advance(&w.f, KL_SECONDS(10));
    assert_string_equal(w.f.continue_token, ""); /* refused: all over again */
    fake_item(&w.f, pod("b", "ub", 2));
    fake_listed(&w.f, "32", NULL);
    assert_heard(&w.e, "-ns/a@1r"); /* and nothing of the broken list is left */
    teardown(&w);
}

/* Something between us and the server answers from a cache, and numbers its continue tokens. */
static void pages_that_bring_the_same_items_again_are_given_up(void **state)
{
    (void)state;
    world w;
    char token[16];
    setup(&w);
    fake_item(&w.f, pod("a", "ua", 1));
    fake_item(&w.f, pod("b", "ub", 2));
    fake_listed(&w.f, "10", "t");
    fake_item(&w.f, pod("d", "ud", 4));
    fake_listed(&w.f, "10", "u");
    fake_item(&w.f, pod("c", "uc", 3)); /* out of order, but new */
    fake_listed(&w.f, "10", "v");
    int i = 0;
    for (; i < 50 && w.f.open == FAKE_LIST; i++) {
        fake_item(&w.f, pod(i % 2 ? "a" : "d", i % 2 ? "ua" : "ud", 1));
        fake_item(&w.f, pod(i % 2 ? "b" : "c", i % 2 ? "ub" : "uc", 2));
        snprintf(token, sizeof token, "t%d", i);
        fake_listed(&w.f, "10", token);
    }
    assert_int_equal(i, 5);
    assert_int_equal(w.f.open, FAKE_NOTHING);
    assert_heard(&w.e, "");
    fake_advance(&w.f, KL_SECONDS(10));
    assert_string_equal(w.f.continue_token, ""); /* all over again */
    fake_item(&w.f, pod("a", "ua", 1));
    fake_listed(&w.f, "11", NULL);
    assert_keys(w.i, NULL, "ns/a");
    teardown(&w);
}

static void a_lost_page_is_fetched_again_and_counts_once(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_item(&w.f, pod("a", "ua", 1));
    fake_listed(&w.f, "10", "p2");
    fake_item(&w.f, pod("b", "ub", 2));
    fake_fails(&w.f, KL_ECLOSED, 0);
    fake_advance(&w.f, KL_SECONDS(2));
    assert_string_equal(w.f.continue_token, "p2");
    fake_item(&w.f, pod("b", "ub", 2));
    fake_item(&w.f, pod("c", "uc", 3));
    fake_listed(&w.f, "10", NULL);
    assert_heard(&w.e, "+ns/a@1i +ns/b@2i +ns/c@3i .");
    teardown(&w);
}

static void initial_events_are_the_list_and_later_ones_the_watch(void **state)
{
    (void)state;
    world w;
    setup_with(&w, true);
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_true(w.f.initial);
    assert_true(w.f.bookmarks);
    assert_string_equal(w.f.rv, "");
    fake_opens(&w.f);
    fake_event(&w.f, "ADDED", pod("a", "ua", 1));
    fake_event(&w.f, "ADDED", pod("b", "ub", 2));
    fake_event(&w.f, "ADDED", pod("c", "uc", 3));
    fake_event(&w.f, "MODIFIED", pod("b", "ub", 11)); /* news on the way */
    fake_event(&w.f, "DELETED", pod("a", "ua", 12));
    fake_event(&w.f, "ADDED", pod("d", "ud", 13));
    fake_event(&w.f, "DELETED", pod("never", "un", 14));
    fake_event(&w.f, "ADDED", pod("a", "ua2", 15));
    fake_event(&w.f, "DELETED", pod("d", "ud", 16));
    fake_initial_end(&w.f, "14", "yes"); /* only "true" is the end */
    fake_bookmark(&w.f, "14");
    assert_heard(&w.e, "");
    assert_false(kl_informer_synced(w.i));
    fake_initial_end(&w.f, "16", "true");
    assert_heard(&w.e, "+ns/a@15i +ns/b@11i +ns/c@3i .");
    assert_int_equal(w.f.watches, 1);
    fake_event(&w.f, "MODIFIED", pod("c", "uc", 17));
    assert_heard(&w.e, "~ns/c@3>17");
    fake_fails(&w.f, KL_OK, 200);
    assert_string_equal(w.f.rv, "17");
    assert_false(w.f.initial);
    fake_error_event(&w.f, 410, "Expired");
    assert_true(w.f.initial);
    assert_string_equal(w.f.rv, "17");
    fake_event(&w.f, "ADDED", pod("c", "uc", 17));
    fake_event(&w.f, "ADDED", pod("e", "ue", 20));
    fake_initial_end(&w.f, "20", "true");
    assert_heard(&w.e, "-ns/a@15r -ns/b@11r +ns/e@20r"); /* what is equal wakes nobody */
    assert_int_equal(w.f.lists, 0);
    teardown(&w);
}

static void a_broken_stream_leaves_nothing_behind(void **state)
{
    (void)state;
    world w;
    setup_with(&w, true);
    fake_opens(&w.f);
    fake_event(&w.f, "ADDED", pod("a", "ua", 1));
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 2));
    fake_fails(&w.f, KL_ECLOSED, 0);
    assert_int_equal(w.f.open, FAKE_NOTHING);
    fake_advance(&w.f, KL_SECONDS(2));
    assert_true(w.f.open == FAKE_WATCH && w.f.initial);
    fake_event(&w.f, "ADDED", pod("b", "ub", 3));
    fake_initial_end(&w.f, "5", "true");
    assert_heard(&w.e, "+ns/b@3i .");
    teardown(&w);
}

static void a_server_without_initial_events_is_listed(void **state)
{
    (void)state;
    world w;
    setup_with(&w, true);
    fake_fails(&w.f, KL_EREJECTED, 422);
    assert_int_equal(w.f.open, FAKE_LIST);
    fake_item(&w.f, pod("a", "ua", 1));
    fake_listed(&w.f, "10", NULL);
    assert_heard(&w.e, "+ns/a@1i .");
    kl_informer_stats st;
    kl_informer_stats_get(w.i, &st);
    assert_int_equal(st.streams, 1);
    assert_int_equal(st.fallbacks, 1);
    assert_int_equal(st.lists, 1);
    assert_null(st.message);
    kl_informer_stats_fini(&st);
    /* One that does not know the question answers it as any watch: after a while it is known for what it
     * is. */
    teardown(&w);
    setup_with(&w, true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(w.f.open, FAKE_WATCH);
        fake_opens(&w.f);
        fake_event(&w.f, "ADDED", pod("a", "ua", 1));
        fake_advance(&w.f, KL_SECONDS(30));
        fake_advance(&w.f, KL_SECONDS(7));
    }
    assert_int_equal(w.f.open, FAKE_LIST);
    teardown(&w);
}

static void a_list_in_pages_is_one_list(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_item(&w.f, pod("a", "ua", 1));
    fake_listed(&w.f, "10", "p2");
    assert_false(w.f.has_rv);
    assert_int_equal(w.f.limit, 500);
    fake_item(&w.f, pod("b", "ub", 2));
    fake_listed(&w.f, "10", "p3");
    assert_heard(&w.e, "");
    fake_item(&w.f, pod("c", "uc", 3));
    fake_listed(&w.f, "10", NULL);
    assert_heard(&w.e, "+ns/a@1i +ns/b@2i +ns/c@3i .");
    teardown(&w);
}

static void history_lost_on_page_two_means_one_unlimited_list(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_item(&w.f, pod("gone", "x", 1));
    fake_listed(&w.f, "10", "p2");
    fake_fails(&w.f, KL_EGONE, 410);
    assert_int_equal(w.f.open, FAKE_LIST);
    assert_int_equal(w.f.limit, 0);
    assert_string_equal(w.f.continue_token, "");
    fake_item(&w.f, pod("a", "ua", 11));
    fake_listed(&w.f, "20", NULL);
    assert_heard(&w.e, "+ns/a@11i .");
    teardown(&w);
}

static void a_new_uid_under_an_old_name_is_a_delete_and_an_add(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_event(&w.f, "MODIFIED", pod("a", "other", 12));
    assert_heard(&w.e, "-ns/a@1 +ns/a@12");
    fake_fails(&w.f, KL_EGONE, 410);
    fake_item(&w.f, pod("a", "third", 20));
    fake_item(&w.f, pod("b", "ub", 21));
    fake_listed(&w.f, "22", NULL);
    assert_heard(&w.e, "-ns/a@12r +ns/a@20r ~ns/b@2>21r");
    teardown(&w);
}

/* An etcd that was restored counts again from where it was. */
static void a_new_uid_counts_also_at_the_same_version(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_event(&w.f, "MODIFIED", pod("a", "other", 1));
    assert_heard(&w.e, "-ns/a@1 +ns/a@1");
    teardown(&w);
}

static void equal_objects_are_not_delivered(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 1));
    fake_event(&w.f, "ADDED", pod("b", "ub", 2));
    assert_heard(&w.e, "");
    teardown(&w);
}

static void throttled_watches_back_off_without_a_list(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_error_event(&w.f, 429, "TooManyRequests");
    assert_int_equal(w.f.open, FAKE_NOTHING);
    fake_advance(&w.f, KL_MILLISECONDS(799));
    assert_int_equal(w.f.open, FAKE_NOTHING);
    fake_advance(&w.f, KL_MILLISECONDS(802));
    assert_int_equal(w.f.open, FAKE_WATCH);
    fake_fails(&w.f, KL_ETHROTTLED, 429);
    fake_advance(&w.f, KL_MILLISECONDS(1599));
    assert_int_equal(w.f.open, FAKE_NOTHING);
    fake_advance(&w.f, KL_MILLISECONDS(1602));
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_int_equal(w.f.lists, 1);
    teardown(&w);
}

/* A server that asks for a pause of centuries is asked again after a day. */
static void a_pause_that_a_server_asks_for_lasts_a_day_at_most(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_event(&w.f, "ERROR",
        "{\"kind\":\"Status\",\"code\":429,\"reason\":\"TooManyRequests\",\"details\":{"
        "\"retryAfterSeconds\":9223372036854775807}}");
    assert_int_equal(w.f.open, FAKE_NOTHING);
    fake_advance(&w.f, KL_SECONDS(24 * 3600) - 1);
    assert_int_equal(w.f.open, FAKE_NOTHING);
    fake_advance(&w.f, KL_SECONDS(60));
    assert_int_equal(w.f.open, FAKE_WATCH);
    teardown(&w);
}

static void foreign_and_unknown_frames_are_skipped(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_event(&w.f, "ADDED",
        "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"99\"}}");
    fake_event(&w.f, "ADDED", "{\"kind\":\"Pod\",\"metadata\":{}}");
    fake_event(&w.f, "ADDED", "7");
    fake_event(&w.f, "WHATEVER", pod("z", "uz", 98));
    assert_heard(&w.e, "");
    fake_event(&w.f, "ADDED", pod("c", "uc", 12));
    assert_heard(&w.e, "+ns/c@12");
    fake_advance(&w.f, KL_SECONDS(2));
    fake_fails(&w.f, KL_OK, 200);
    assert_string_equal(w.f.rv, "12");
    teardown(&w);
}

static void an_answer_that_is_not_a_list_changes_nothing(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_done(&w.f, KL_OK, 200, "{\"kind\":\"Status\",\"apiVersion\":\"v1\"}", NULL);
    assert_int_equal(w.f.open, FAKE_NOTHING);
    assert_false(kl_informer_synced(w.i));
    kl_informer_stats s;
    kl_informer_stats_get(w.i, &s);
    assert_non_null(strstr(s.message, "listing pods returned a Status where a list was expected"));
    kl_informer_stats_fini(&s);
    teardown(&w);
}

static void a_rejection_parks_and_recovers(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_done(&w.f, KL_EFORBIDDEN, 403, NULL, "pods is forbidden: grant list on pods");
    kl_informer_stats s;
    kl_informer_stats_get(w.i, &s);
    assert_true(s.parked);
    assert_string_equal(s.state, "parked");
    assert_string_equal(s.message, "pods is forbidden: grant list on pods");
    kl_informer_stats_fini(&s);
    kl_informer_kick(w.i);
    fake_pump(&w.f);
    assert_int_equal(w.f.open, FAKE_LIST);
    fake_listed(&w.f, "10", NULL);
    kl_informer_stats_get(w.i, &s);
    assert_false(s.parked);
    assert_null(s.message);
    kl_informer_stats_fini(&s);
    teardown(&w);
}

static void an_object_too_big_parks_and_keeps_the_rest(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_done(&w.f, KL_ETOOBIG, 200, NULL, "configmap ns/huge is above --max-object-bytes");
    kl_informer_stats s;
    kl_informer_stats_get(w.i, &s);
    assert_true(s.parked);
    assert_non_null(strstr(s.message, "--max-object-bytes"));
    assert_int_equal(s.objects, 2);
    kl_informer_stats_fini(&s);
    fake_advance(&w.f, KL_SECONDS(2));
    assert_int_equal(w.f.open, FAKE_WATCH);
    teardown(&w);
}

static kl_status leave_out(world *w, const char *type, const char *name)
{
    kl_err err = KL_ERR_INIT;
    kl_source_skipped x = {.type = type,
        .ns = "ns",
        .nslen = 2,
        .name = name,
        .namelen = strlen(name),
        .message = "it is larger than 9 bytes"};
    kl_status st = w->f.sink.skipped(w->f.sink.arg, &x, &err);
    if (st) {
        w->f.open = FAKE_NOTHING;
        w->f.sink.done(w->f.sink.arg, st, 200, NULL, &err);
    }
    kl_err_fini(&err);
    return st;
}

static void an_object_too_big_leaves_the_last_state_that_fit(void **state)
{
    (void)state;
    world w;
    kl_informer_stats s;
    setup_synced(&w);
    assert_int_equal(leave_out(&w, "MODIFIED", "a"), KL_OK);
    assert_int_equal(leave_out(&w, "ADDED", "new"), KL_OK);
    fake_event(&w.f, "MODIFIED", pod("b", "ub", 11));
    assert_heard(&w.e, "~ns/b@2>11");
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 12)); /* it has shrunk */
    assert_heard(&w.e, "~ns/a@1>12");
    fake_fails(&w.f, KL_EGONE, 410); /* in a list it is the same */
    assert_int_equal(w.f.open, FAKE_LIST);
    fake_item(&w.f, pod("b", "ub", 11));
    assert_int_equal(leave_out(&w, "", "a"), KL_OK);
    assert_int_equal(leave_out(&w, "", "new"), KL_OK);
    fake_listed(&w.f, "20", NULL);
    assert_heard(&w.e, "");
    kl_informer_stats_get(w.i, &s);
    assert_int_equal(s.objects, 2);
    assert_int_equal(s.skipped, 4);
    assert_false(s.parked);
    kl_informer_stats_fini(&s);
    teardown(&w);
}

static void an_object_too_big_that_is_deleted_goes_with_a_list(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    assert_int_equal(leave_out(&w, "DELETED", "new"), KL_OK); /* nobody has it */
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_int_equal(leave_out(&w, "DELETED", "a"), KL_EGONE);
    assert_int_equal(w.f.open, FAKE_LIST);
    fake_item(&w.f, pod("b", "ub", 2));
    fake_listed(&w.f, "20", NULL);
    assert_heard(&w.e, "-ns/a@1r");
    teardown(&w);
}

static void an_object_too_big_among_initial_events_is_no_gap(void **state)
{
    (void)state;
    world w;
    setup_with(&w, true);
    assert_int_equal(w.f.open, FAKE_WATCH);
    fake_event(&w.f, "ADDED", pod("a", "ua", 1));
    assert_int_equal(leave_out(&w, "ADDED", "b"), KL_OK);
    fake_event(&w.f, "ADDED", pod("c", "uc", 3));
    fake_initial_end(&w.f, "10", "true");
    assert_heard(&w.e, "+ns/a@1i +ns/c@3i .");
    fake_fails(&w.f, KL_EGONE, 410);
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_int_equal(leave_out(&w, "ADDED", "a"), KL_OK); /* the last state that fit stays */
    assert_int_equal(leave_out(&w, "ADDED", "c"), KL_OK);
    assert_int_equal(leave_out(&w, "DELETED", "c"), KL_OK);
    fake_initial_end(&w.f, "20", "true");
    assert_heard(&w.e, "-ns/c@3r");
    teardown(&w);
}

static void a_late_handler_gets_existing_objects_and_then_the_events(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    ears late = {0};
    late.sub = kl_informer_subscribe(w.i, &(kl_handler){hear, hear_synced, &late});
    fake_event(&w.f, "ADDED", pod("c", "uc", 11)); /* before its turn has come: part of what exists */
    fake_pump(&w.f);
    assert_heard(&late, "+ns/a@1i +ns/b@2i +ns/c@11i .");
    fake_event(&w.f, "DELETED", pod("b", "ub", 12));
    assert_heard(&late, "-ns/b@12");
    assert_heard(&w.e, "+ns/c@11 -ns/b@12");
    kl_informer_unsubscribe(late.sub);
    fake_event(&w.f, "DELETED", pod("a", "ua", 13));
    assert_heard(&late, "");
    kl_buf_fini(&late.said);
    teardown(&w);
}

static void a_handler_added_and_removed_early_is_not_called(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    ears late = {0};
    late.sub = kl_informer_subscribe(w.i, &(kl_handler){hear, hear_synced, &late});
    kl_informer_unsubscribe(late.sub);
    fake_pump(&w.f);
    assert_heard(&late, "");
    teardown(&w);
}

static void a_handler_may_leave_from_its_own_callback(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    ears late = {.leave = true};
    late.sub = kl_informer_subscribe(w.i, &(kl_handler){hear, hear_synced, &late});
    fake_pump(&w.f);
    assert_heard(&late, "+ns/a@1i");
    fake_event(&w.f, "ADDED", pod("c", "uc", 11));
    assert_heard(&late, "");
    assert_heard(&w.e, "+ns/c@11");
    kl_buf_fini(&late.said);
    teardown(&w);
}

static void a_resync_repeats_existing_objects_for_its_handler(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    ears other = {0};
    other.sub = kl_informer_subscribe(w.i, &(kl_handler){hear, NULL, &other});
    fake_pump(&w.f);
    kl_buf_clear(&other.said);
    kl_informer_resync(w.i, other.sub);
    fake_pump(&w.f);
    assert_heard(&other, "~ns/a@1>1s ~ns/b@2>2s");
    assert_heard(&w.e, "");
    kl_informer_unsubscribe(other.sub);
    kl_buf_fini(&other.said);
    teardown(&w);
}

static void a_stalled_watch_is_replaced_without_a_list(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_advance(&w.f, KL_SECONDS(60));
    fake_bookmark(&w.f, "20");
    fake_advance(&w.f, KL_SECONDS(74));
    assert_int_equal(w.f.watches, 1);
    fake_advance(&w.f, KL_SECONDS(2));
    assert_int_equal(w.f.watches, 2);
    assert_int_equal(w.f.cancels, 1);
    assert_string_equal(w.f.rv, "20");
    assert_int_equal(w.f.lists, 1);
    teardown(&w);
}

static void a_request_that_fails_on_the_spot_is_tried_again(void **state)
{
    (void)state;
    world w = {0};
    fake_init(&w.f);
    w.f.broken = 2;
    kl_informer_options o = {.source = fake_source_of(&w.f), .clock = w.f.clock, .resource = "pods"};
    w.i = kl_informer_new(&o);
    w.e.sub = kl_informer_subscribe(w.i, &(kl_handler){hear, hear_synced, &w.e});
    kl_informer_start(w.i);
    fake_pump(&w.f);
    assert_int_equal(w.f.lists, 1);
    assert_true(w.f.timer_id != 0);
    fake_advance(&w.f, KL_SECONDS(2));
    assert_int_equal(w.f.lists, 2);
    fake_advance(&w.f, KL_SECONDS(4));
    assert_int_equal(w.f.open, FAKE_LIST);
    w.f.broken = 1;
    fake_listed(&w.f, "10", NULL);
    assert_int_equal(w.f.open, FAKE_NOTHING);
    fake_advance(&w.f, KL_SECONDS(8));
    assert_int_equal(w.f.open, FAKE_WATCH);
    assert_heard(&w.e, ".");
    teardown(&w);
}

static void stop_before_start_and_twice_is_fine(void **state)
{
    (void)state;
    fake_source f;
    int stopped = 0;
    fake_init(&f);
    kl_informer_options o = {.source = fake_source_of(&f), .clock = f.clock, .resource = "pods"};
    kl_informer *i = kl_informer_new(&o);
    kl_informer_stop(i, noted, &stopped);
    kl_informer_start(i);
    kl_informer_stop(i, noted, &stopped);
    kl_informer_unref(i);
    assert_int_equal(f.freed, false); /* posted work holds it */
    fake_pump(&f);
    assert_int_equal(stopped, 2);
    assert_int_equal(f.lists, 0);
    fake_fini(&f);
}

static void stop_in_the_middle_of_a_list_says_nothing_more(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_item(&w.f, pod("a", "ua", 1));
    teardown(&w);
}

/* --- indexes ------------------------------------------------------------------------------ */

static void objects_are_found_by_namespace_label_path_and_key_order(void **state)
{
    (void)state;
    world w;
    kl_err err = KL_ERR_INIT;
    setup_synced(&w);
    fake_event(&w.f, "ADDED",
        "{\"metadata\":{\"namespace\":\"ns-2\",\"name\":\"x\",\"resourceVersion\":\"11\",\"labels\":{\"app\":"
        "\"a\"}},\"spec\":{\"nodeName\":\"n1\"}}");
    assert_keys(w.i, NULL, "ns-2/x ns/a ns/b"); /* as keys sort, '-' before '/' */
    assert_keys(w.i, &(kl_query){.ns = "ns"}, "ns/a ns/b");
    assert_keys(w.i, &(kl_query){.ns = "none"}, "");
    kl_selector *s;
    assert_ok(kl_selector_parse("app=a", &s, &err), &err);
    assert_keys(w.i, &(kl_query){.labels = s}, "ns-2/x ns/a");
    kl_selector_free(s);
    assert_keys(w.i, &(kl_query){.limit = 1}, "ns-2/x");

    kl_objects none;
    assert_fails(kl_informer_list(w.i, &(kl_query){.index = "node", .value = "n1"}, &none, &err),
        KL_ENOTFOUND, &err, "there is no index \"node\"; there are: namespace");
    assert_ok(kl_informer_add_index_path(w.i, "node", "spec.nodeName", &err), &err);
    assert_keys(w.i, &(kl_query){.index = "node", .value = "n1"}, "ns-2/x ns/a");
    assert_keys(w.i, &(kl_query){.index = "node", .value = "n1", .ns = "ns"}, "ns/a");
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 12)); /* moves to n0 */
    assert_keys(w.i, &(kl_query){.index = "node", .value = "n1"}, "ns-2/x");
    assert_keys(w.i, &(kl_query){.index = "node", .value = "n0"}, "ns/a ns/b");
    fake_event(&w.f, "DELETED", pod("b", "ub", 13));
    assert_keys(w.i, &(kl_query){.index = "node", .value = "n0"}, "ns/a");

    assert_ok(kl_informer_add_index_path(w.i, "node", "spec.nodeName", &err), &err);
    assert_fails(
        kl_informer_add_index_path(w.i, "node", "spec.other", &err), KL_EEXISTS, &err, "another definition");
    assert_fails(kl_informer_add_index_path(w.i, "namespace", "metadata.namespace", &err), KL_EEXISTS, &err,
        "namespace");
    kl_informer_drop_index(w.i, "node");
    assert_keys(w.i, &(kl_query){.index = "node", .value = "n0"}, "ns/a");
    kl_informer_drop_index(w.i, "node");
    fake_pump(&w.f);
    assert_fails(kl_informer_list(w.i, &(kl_query){.index = "node", .value = "n0"}, &none, &err),
        KL_ENOTFOUND, &err, "no index");
    assert_keys(w.i, &(kl_query){.ns = "ns"}, "ns/a");
    teardown(&w);
}

typedef struct fn_index {
    int calls, freed;
} fn_index;

static void by_name_letters(void *arg, const kl_value *o, kl_index_emit *emit, void *emit_arg)
{
    ((fn_index *)arg)->calls++;
    for (const char *p = kl_object_name(o); *p; p++)
        emit(emit_arg, (char[]){*p, 0});
}

static void free_fn_index(void *arg) { ((fn_index *)arg)->freed++; }

static void a_function_may_give_any_number_of_values(void **state)
{
    (void)state;
    world w;
    fn_index x = {0};
    int ready = 0;
    kl_err err = KL_ERR_INIT;
    kl_objects none;
    setup_synced(&w);
    fake_event(&w.f, "ADDED", pod("aab", "uc", 11));
    assert_ok(
        kl_informer_add_index_fn(w.i, "letters", by_name_letters, &x, free_fn_index, noted, &ready, &err),
        &err);
    assert_fails(kl_informer_list(w.i, &(kl_query){.index = "letters", .value = "a"}, &none, &err), KL_EAGAIN,
        &err, "still being built");
    fake_pump(&w.f);
    assert_int_equal(ready, 1);
    assert_keys(w.i, &(kl_query){.index = "letters", .value = "a"}, "ns/a ns/aab");
    assert_keys(w.i, &(kl_query){.index = "letters", .value = "b"}, "ns/aab ns/b");
    fake_event(&w.f, "DELETED", pod("aab", "uc", 12));
    assert_keys(w.i, &(kl_query){.index = "letters", .value = "b"}, "ns/b");
    assert_ok(
        kl_informer_add_index_fn(w.i, "letters", by_name_letters, &x, free_fn_index, noted, &ready, &err),
        &err);
    fn_index other = {0};
    assert_fails(
        kl_informer_add_index_fn(w.i, "letters", by_name_letters, &other, free_fn_index, NULL, NULL, &err),
        KL_EEXISTS, &err, "letters");
    fake_pump(&w.f);
    assert_int_equal(ready, 2);
    kl_informer_drop_index(w.i, "letters");
    fake_pump(&w.f);
    assert_int_equal(x.freed, 0);
    kl_informer_drop_index(w.i, "letters");
    fake_pump(&w.f);
    assert_int_equal(x.freed, 1);
    assert_keys(w.i, NULL, "ns/a ns/b");
    teardown(&w);
}

/* --- with an executor: events are applied where and when it says -------------------------- */

typedef struct later {
    fake_post *first, **last;
} later;

static void execute_later(void *arg, void (*fn)(void *), void *fnarg)
{
    later *l = arg;
    fake_post *p = kl_new(fake_post);
    p->fn = fn;
    p->arg = fnarg;
    *l->last = p;
    l->last = &p->next;
}

static void run_later(later *l)
{
    for (fake_post *p; (p = l->first);) {
        l->first = p->next;
        if (!l->first)
            l->last = &l->first;
        p->fn(p->arg);
        kl_free(p);
    }
}

static void with_an_executor_everything_keeps_its_order(void **state)
{
    (void)state;
    later l = {NULL, &l.first};
    world w = {0};
    fake_init(&w.f);
    kl_informer_options o = {
        .source = fake_source_of(&w.f),
        .clock = w.f.clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .execute = execute_later,
        .execute_arg = &l,
    };
    w.i = kl_informer_new(&o);
    w.e.sub = kl_informer_subscribe(w.i, &(kl_handler){hear, hear_synced, &w.e});
    kl_informer_start(w.i);
    fake_pump(&w.f);
    fake_item(&w.f, pod("a", "ua", 1));
    fake_listed(&w.f, "10", NULL);
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 11));
    fake_event(&w.f, "DELETED", pod("a", "ua", 12));
    assert_heard(&w.e, "");
    assert_false(kl_informer_synced(w.i));
    run_later(&l);
    assert_heard(&w.e, "+ns/a@1i . ~ns/a@1>11 -ns/a@12");
    int stopped = 0;
    fake_event(&w.f, "ADDED", pod("b", "ub", 13));
    kl_informer_stop(w.i, noted, &stopped);
    fake_pump(&w.f);
    assert_int_equal(stopped, 0);
    run_later(&l);
    assert_heard(&w.e, "+ns/b@13");
    fake_pump(&w.f);
    assert_int_equal(stopped, 1);
    kl_informer_unsubscribe(w.e.sub);
    kl_informer_unref(w.i);
    fake_pump(&w.f);
    run_later(&l);
    kl_buf_fini(&w.e.said);
    fake_fini(&w.f);
}

typedef struct slow_index {
    world w;
    kl_buf called; /* names; a '+' after those that were there before the index */
} slow_index;

static void by_name_slowly(void *arg, const kl_value *o, kl_index_emit *emit, void *emit_arg)
{
    slow_index *x = arg;
    kl_buf_printf(&x->called, "%s%s ", kl_object_name(o), kl_informer_filling(x->w.i) ? "+" : "");
    kl_clock_advance(x->w.f.clock, KL_SECONDS(1));
    emit(emit_arg, kl_object_name(o));
}

static void keep(void *arg) { (void)arg; }

static void changes_do_not_wait_until_an_index_is_filled(void **state)
{
    (void)state;
    later l = {NULL, &l.first};
    slow_index x = {0};
    int ready = 0, stopped = 0;
    kl_err err = KL_ERR_INIT;
    fake_init(&x.w.f);
    x.w.i = kl_informer_new(&(kl_informer_options){.source = fake_source_of(&x.w.f),
        .clock = x.w.f.clock,
        .resource = "pods",
        .api_version = "v1",
        .kind = "Pod",
        .execute = execute_later,
        .execute_arg = &l});
    kl_informer_start(x.w.i);
    fake_pump(&x.w.f);
    for (const char *name = "a\0b\0c\0"; *name; name += 2)
        fake_item(&x.w.f, pod(name, name, 1));
    fake_listed(&x.w.f, "10", NULL);
    run_later(&l);
    assert_ok(kl_informer_add_index_fn(x.w.i, "slow", by_name_slowly, &x, keep, noted, &ready, &err), &err);
    fake_pump(&x.w.f);
    run_later(&l); /* one call takes longer than a piece */
    fake_event(&x.w.f, "ADDED", pod("d", "d", 11));
    fake_event(&x.w.f, "DELETED", pod("b", "b", 12));
    run_later(&l);
    assert_string_equal(kl_buf_str(&x.called), "a+ d ");
    while (!ready) {
        fake_pump(&x.w.f);
        run_later(&l);
    }
    assert_keys(x.w.i, &(kl_query){.index = "slow", .value = "a"}, "ns/a");
    assert_keys(x.w.i, &(kl_query){.index = "slow", .value = "b"}, "");
    assert_keys(x.w.i, &(kl_query){.index = "slow", .value = "c"}, "ns/c");
    assert_keys(x.w.i, &(kl_query){.index = "slow", .value = "d"}, "ns/d");
    kl_informer_stop(x.w.i, noted, &stopped);
    fake_pump(&x.w.f);
    run_later(&l);
    fake_pump(&x.w.f);
    assert_int_equal(stopped, 1);
    kl_informer_unref(x.w.i);
    fake_pump(&x.w.f);
    run_later(&l);
    kl_buf_fini(&x.called);
    fake_fini(&x.w.f);
}

/* What answers 200 and is not a list of this kind: a proxy's JSON, another server behind the same address.
 * Nothing is taken from it. */
static void a_list_of_something_else_replaces_nothing(void **state)
{
    (void)state;
    static const char *const strange[] = {
        "{}",
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\"}",
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"99\"}}",
        "{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"99\"}}",
        "{\"kind\":\"PodList\",\"apiVersion\":\"v2\",\"metadata\":{\"resourceVersion\":\"99\"}}",
        "{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"99\"}}",
    };
    world w;
    setup_synced(&w);
    for (size_t k = 0; k < sizeof strange / sizeof *strange; k++) {
        if (w.f.open == FAKE_WATCH)
            fake_fails(&w.f, KL_EGONE, 410);
        while (w.f.open != FAKE_LIST)
            fake_advance(&w.f, KL_SECONDS(1));
        fake_done(&w.f, KL_OK, 200, strange[k], NULL);
        assert_int_equal(kl_informer_count(w.i), 2);
        assert_heard(&w.e, "");
    }
    while (w.f.open != FAKE_LIST)
        fake_advance(&w.f, KL_SECONDS(1));
    assert_int_equal(kl_informer_count(w.i), 2);
    fake_item(&w.f, pod("a", "ua", 1));
    fake_listed(&w.f, "20", NULL);
    assert_heard(&w.e, "-ns/b@2r");
    teardown(&w);
}

static void items_of_another_kind_are_skipped(void **state)
{
    (void)state;
    world w;
    setup(&w);
    kl_err err = KL_ERR_INIT;
    assert_fails(
        w.f.sink.item(w.f.sink.arg,
            fake_json("{\"kind\":\"Secret\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\"}}"), &err),
        KL_ESERVER, &err, "contains a Secret");
    fake_fails(&w.f, KL_ESERVER, 200);
    assert_false(kl_informer_synced(w.i));
    teardown(&w);
}

/* A CRD may name its lists (spec.names.listKind). */
static void a_list_kind_of_its_own_is_taken_and_stays(void **state)
{
    (void)state;
    world w;
    setup(&w);
    fake_item(&w.f,
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\","
        "\"resourceVersion\":\"1\"}}");
    fake_done(&w.f, KL_OK, 200,
        "{\"kind\":\"HerdOfPodsList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"9\"}}", NULL);
    assert_heard(&w.e, "+ns/a@1i .");
    fake_fails(&w.f, KL_EGONE, 410);
    while (w.f.open != FAKE_LIST)
        fake_advance(&w.f, KL_SECONDS(1));
    fake_done(&w.f, KL_OK, 200,
        "{\"kind\":\"OtherList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\"}}", NULL);
    assert_heard(&w.e, "");
    while (w.f.open != FAKE_LIST)
        fake_advance(&w.f, KL_SECONDS(1));
    fake_done(&w.f, KL_OK, 200,
        "{\"kind\":\"HerdOfPodsList\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"10\"}}",
        NULL);
    assert_heard(&w.e, "-ns/a@1r");
    teardown(&w);
}

static void an_event_of_the_past_rolls_nothing_back(void **state)
{
    (void)state;
    world w;
    setup_synced(&w);
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 15));
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 12)); /* out of order */
    fake_event(&w.f, "MODIFIED", pod("a", "ua", 15)); /* twice */
    fake_event(&w.f, "DELETED", pod("a", "ua", 9));
    assert_heard(&w.e, "~ns/a@1>15");
    /* another life: versions of two objects say nothing */
    fake_event(&w.f, "ADDED", pod("a", "other", 11));
    assert_heard(&w.e, "-ns/a@15 +ns/a@11");
    teardown(&w);
}

KL_TESTS(cmocka_unit_test(an_event_of_the_past_rolls_nothing_back),
    cmocka_unit_test(a_pause_that_a_server_asks_for_lasts_a_day_at_most),
    cmocka_unit_test(a_list_of_something_else_replaces_nothing),
    cmocka_unit_test(items_of_another_kind_are_skipped),
    cmocka_unit_test(a_list_kind_of_its_own_is_taken_and_stays), cmocka_unit_test(a_list_counts_as_heard),
    cmocka_unit_test(lists_then_watches_and_delivers_events),
    cmocka_unit_test(an_empty_list_is_synced_at_once),
    cmocka_unit_test(a_watch_that_ends_resumes_at_the_last_event_without_a_list),
    cmocka_unit_test(bookmarks_are_not_delivered),
    cmocka_unit_test(a_relist_delivers_the_difference_deletions_first),
    cmocka_unit_test(gone_as_an_http_status_is_no_different),
    cmocka_unit_test(nothing_is_deleted_for_a_page_that_failed),
    cmocka_unit_test(pages_that_bring_the_same_items_again_are_given_up),
    cmocka_unit_test(a_lost_page_is_fetched_again_and_counts_once),
    cmocka_unit_test(initial_events_are_the_list_and_later_ones_the_watch),
    cmocka_unit_test(a_broken_stream_leaves_nothing_behind),
    cmocka_unit_test(a_server_without_initial_events_is_listed),
    cmocka_unit_test(a_list_in_pages_is_one_list),
    cmocka_unit_test(history_lost_on_page_two_means_one_unlimited_list),
    cmocka_unit_test(a_new_uid_under_an_old_name_is_a_delete_and_an_add),
    cmocka_unit_test(equal_objects_are_not_delivered),
    cmocka_unit_test(throttled_watches_back_off_without_a_list),
    cmocka_unit_test(foreign_and_unknown_frames_are_skipped),
    cmocka_unit_test(an_answer_that_is_not_a_list_changes_nothing),
    cmocka_unit_test(a_rejection_parks_and_recovers),
    cmocka_unit_test(an_object_too_big_parks_and_keeps_the_rest),
    cmocka_unit_test(an_object_too_big_leaves_the_last_state_that_fit),
    cmocka_unit_test(an_object_too_big_that_is_deleted_goes_with_a_list),
    cmocka_unit_test(an_object_too_big_among_initial_events_is_no_gap),
    cmocka_unit_test(a_new_uid_counts_also_at_the_same_version),
    cmocka_unit_test(a_late_handler_gets_existing_objects_and_then_the_events),
    cmocka_unit_test(a_handler_added_and_removed_early_is_not_called),
    cmocka_unit_test(a_handler_may_leave_from_its_own_callback),
    cmocka_unit_test(a_resync_repeats_existing_objects_for_its_handler),
    cmocka_unit_test(a_stalled_watch_is_replaced_without_a_list),
    cmocka_unit_test(a_request_that_fails_on_the_spot_is_tried_again),
    cmocka_unit_test(stop_before_start_and_twice_is_fine),
    cmocka_unit_test(stop_in_the_middle_of_a_list_says_nothing_more),
    cmocka_unit_test(objects_are_found_by_namespace_label_path_and_key_order),
    cmocka_unit_test(a_function_may_give_any_number_of_values),
    cmocka_unit_test(changes_do_not_wait_until_an_index_is_filled),
    cmocka_unit_test(with_an_executor_everything_keeps_its_order))

/* not in tsan: it starts no thread */
