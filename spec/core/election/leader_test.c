/* leader_test.c - the election's state machine: cases that the tables of client-go do not have, and our
 * differences. */
#include "support/test.h"

#include "base/mem.h"
#include "election/leader.h"

#define BOOT KL_SECONDS(500)
#define WALL KL_SECONDS(1700000000)

typedef struct bench {
    kl_leader *l;
    kl_time now;
    kl_leader_action a;
} bench;

static bench start_bench(bool release)
{
    bench b = {0};
    kl_err err = KL_ERR_INIT;
    kl_leader_config c = {
        .identity = "me", .ns = "kube-system", .name = "lock", .release = release, .seed = 5};
    assert_ok(kl_leader_new(&c, &b.l, &err), &err);
    return b;
}

static kl_leader_action put(bench *b, kl_leader_input in)
{
    return b->a = kl_leader_step(b->l, &in, (kl_leader_now){BOOT + b->now, WALL + b->now});
}

static kl_leader_action say(bench *b, kl_leader_input_kind kind)
{
    return put(b, (kl_leader_input){.kind = kind});
}

static const kl_value *json(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static kl_leader_action answer(bench *b, kl_status st, const char *lease)
{
    const kl_value *v = lease ? json(lease) : NULL;
    kl_leader_action a = put(b, (kl_leader_input){.kind = KL_LEADER_REPLY, .status = st, .lease = v});
    kl_value_unref(v);
    return a;
}

/* The server takes what we sent. */
static kl_leader_action accept(bench *b)
{
    assert_true(b->a.what == KL_LEADER_CREATE || b->a.what == KL_LEADER_UPDATE);
    const kl_value *v = kl_value_ref(b->a.body);
    put(b, (kl_leader_input){.kind = KL_LEADER_REPLY, .lease = v});
    kl_value_unref(v);
    return b->a;
}

static bench leading(bool release)
{
    bench b = start_bench(release);
    assert_int_equal(say(&b, KL_LEADER_START).what, KL_LEADER_GET);
    assert_int_equal(answer(&b, KL_ENOTFOUND, NULL).what, KL_LEADER_CREATE);
    assert_int_equal(accept(&b).what, KL_LEADER_UPDATE);
    assert_int_equal(b.a.events, KL_LEADER_STARTED | KL_LEADER_NEW);
    assert_int_equal(accept(&b).what, KL_LEADER_WAIT);
    return b;
}

#define THEIRS(holder, renew)                                                                                \
    "{\"apiVersion\":\"coordination.k8s.io/"                                                                 \
    "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"lock\",\"resourceVersion\":\"7\"},"                    \
    "\"spec\":{\"holderIdentity\":\"" holder                                                                 \
    "\",\"leaseDurationSeconds\":15,\"leaseTransitions\":3,\"renewTime\":\"" renew "\","                     \
    "\"strategy\":\"OldestEmulationVersion\",\"preferredHolder\":\"p\",\"future\":[1]}}"

static void the_configuration_must_make_sense(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    assert_fails(kl_leader_check(&(kl_leader_config){.identity = ""}, &err), KL_EINVAL, &err, "identity");
    assert_fails(kl_leader_check(&(kl_leader_config){.identity = "x", .lease = KL_SECONDS(10)}, &err),
        KL_EINVAL, &err, "lease duration (10s) must be longer than the renew deadline (10s)");
    assert_fails(kl_leader_check(&(kl_leader_config){.identity = "x", .retry = KL_SECONDS(9)}, &err),
        KL_EINVAL, &err, "1.2 times the retry period (9s)");
    assert_fails(kl_leader_check(&(kl_leader_config){.identity = "x", .retry = -1}, &err), KL_EINVAL, &err,
        "above zero");
    assert_int_equal(kl_leader_check(&(kl_leader_config){.identity = "x"}, &err), KL_OK);
}

static void a_free_lease_is_created_in_our_name(void **state)
{
    (void)state;
    bench b = start_bench(false);
    say(&b, KL_LEADER_START);
    answer(&b, KL_ENOTFOUND, NULL);
    char *body = kl_value_to_json(b.a.body);
    assert_string_equal(body,
        "{\"apiVersion\":\"coordination.k8s.io/"
        "v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"lock\",\"namespace\":\"kube-system\"},"
        "\"spec\":{\"holderIdentity\":\"me\",\"leaseDurationSeconds\":15,\"acquireTime\":\"2023-11-14T22:13:"
        "20.000000Z\",\"renewTime\":\"2023-11-14T22:13:20.000000Z\",\"leaseTransitions\":0}}");
    kl_free(body);
    assert_int_equal(kl_leader_deadline(b.l), 0);
    kl_leader_free(b.l);
}

static void a_fresh_candidate_waits_the_whole_duration_whatever_renew_time_says(void **state)
{
    (void)state;
    const char *leases[] = {
        THEIRS("other", "1999-01-01T00:00:00.000000Z"), THEIRS("other", "2099-01-01T00:00:00.000000Z")};
    for (int k = 0; k < 2; k++) {
        bench b = start_bench(false);
        say(&b, KL_LEADER_START);
        answer(&b, KL_OK, leases[k]);
        assert_int_equal(b.a.what, KL_LEADER_WAIT);
        assert_int_equal(b.a.events, KL_LEADER_NEW);
        assert_string_equal(kl_leader_holder(b.l), "other");
        for (;;) {
            assert_in_range(b.a.until - BOOT - b.now, KL_SECONDS(2), KL_MILLISECONDS(4400));
            b.now = b.a.until - BOOT;
            assert_int_equal(say(&b, KL_LEADER_TIMER).what, KL_LEADER_GET);
            answer(&b, KL_OK, leases[k]);
            if (b.a.what != KL_LEADER_WAIT)
                break;
            assert_true(b.now < KL_SECONDS(15));
        }
        assert_true(b.now >= KL_SECONDS(15));
        assert_int_equal(b.a.what, KL_LEADER_UPDATE);
        assert_int_equal(kl_value_int_at(b.a.body, 0, "spec", "leaseTransitions", NULL), 4);
        assert_string_equal(kl_value_str_at(b.a.body, "metadata", "resourceVersion", NULL), "7");
        kl_leader_free(b.l);
    }
}

static void numbers_that_no_lease_may_have_do_not_overflow(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        kl_leader_do what;
        int transitions;
    } cases[] = {
        /* multiplied by 10^9, this is a second before now */
        {"\"holderIdentity\":\"other\",\"leaseDurationSeconds\":9223372036854775807", KL_LEADER_WAIT, 0},
        {"\"holderIdentity\":\"other\",\"leaseDurationSeconds\":-9223372036854775807", KL_LEADER_UPDATE, 1},
        {"\"holderIdentity\":\"\",\"leaseTransitions\":9223372036854775807", KL_LEADER_UPDATE, INT32_MAX},
        {"\"holderIdentity\":\"\",\"leaseTransitions\":-7", KL_LEADER_UPDATE, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bench b = start_bench(false);
        say(&b, KL_LEADER_START);
        char *lease = kl_sprintf("{\"metadata\":{\"name\":\"lock\"},\"spec\":{%s}}", cases[i].spec);
        assert_int_equal(answer(&b, KL_OK, lease).what, cases[i].what);
        if (cases[i].what == KL_LEADER_UPDATE)
            assert_int_equal(
                kl_value_int_at(b.a.body, 0, "spec", "leaseTransitions", NULL), cases[i].transitions);
        kl_free(lease);
        kl_leader_free(b.l);
    }
}

static void unknown_fields_of_a_spec_are_kept(void **state)
{
    (void)state;
    bench b = start_bench(false);
    say(&b, KL_LEADER_START);
    answer(&b, KL_OK, THEIRS("", "2020-01-01T00:00:00.000000Z"));
    assert_int_equal(b.a.what, KL_LEADER_UPDATE); /* no holder: taken at once */
    assert_string_equal(kl_value_str_at(b.a.body, "spec", "strategy", NULL), "OldestEmulationVersion");
    assert_string_equal(kl_value_str_at(b.a.body, "spec", "preferredHolder", NULL), "p");
    assert_int_equal(kl_value_len(kl_value_at(b.a.body, "spec", "future", NULL)), 1);
    kl_leader_free(b.l);
}

static void the_deadline_counts_from_before_the_request(void **state)
{
    (void)state;
    bench b = leading(false);
    assert_int_equal(kl_leader_deadline(b.l), BOOT + KL_MILLISECONDS(12500));
    b.now = KL_SECONDS(2);
    assert_int_equal(say(&b, KL_LEADER_TIMER).what, KL_LEADER_UPDATE);
    b.now = KL_SECONDS(7); /* a slow answer buys no time */
    accept(&b);
    assert_int_equal(kl_leader_deadline(b.l), BOOT + KL_MILLISECONDS(14500));
    kl_leader_free(b.l);
}

static void writes_stop_before_another_may_acquire(void **state)
{
    (void)state;
    bench b = leading(false);
    kl_time renewed = b.now;
    /* Every renewal fails. The loop ends after the renew deadline; the door has its own limit. */
    while (!(b.a.events & KL_LEADER_STOPPED)) {
        if (b.a.what == KL_LEADER_WAIT) {
            b.now = b.a.until - BOOT;
            say(&b, KL_LEADER_TIMER);
        } else {
            answer(&b, KL_ECONNECT, NULL);
        }
        assert_true(b.now <= KL_SECONDS(12));
    }
    assert_int_equal(b.now, KL_SECONDS(12));
    assert_false(kl_leader_leading(b.l));
    assert_int_equal(kl_leader_deadline(b.l), 0);
    assert_true(b.now < renewed + KL_SECONDS(15));
    kl_leader_free(b.l);
}

static void a_request_that_hangs_is_given_up_at_the_renew_deadline(void **state)
{
    (void)state;
    bench b = leading(false);
    b.now = KL_SECONDS(2);
    say(&b, KL_LEADER_TIMER);
    assert_int_equal(b.a.what, KL_LEADER_UPDATE);
    assert_int_equal(b.a.until, BOOT + KL_SECONDS(12));
    assert_true(kl_leader_deadline(b.l) > BOOT + KL_SECONDS(12));
    b.now = KL_SECONDS(12);
    assert_int_equal(say(&b, KL_LEADER_TIMER).events, KL_LEADER_STOPPED);
    /* too late */
    assert_int_equal(answer(&b, KL_OK, THEIRS("me", "2020-01-01T00:00:00.000000Z")).what, KL_LEADER_GO_ON);
    assert_int_equal(kl_leader_deadline(b.l), 0);
    kl_leader_free(b.l);
}

/* We were stopped for 20 s; meanwhile somebody led, and has given the lease back already. */
static void a_leader_that_was_replaced_meanwhile_stops_even_if_the_lease_is_free(void **state)
{
    (void)state;
    bench b = leading(false);
    int64_t term = atomic_load(&kl_leader_tenure(b.l)->term);
    b.now = KL_SECONDS(20);
    say(&b, KL_LEADER_TIMER);
    assert_int_equal(b.a.what, KL_LEADER_GET);
    answer(&b, KL_OK, THEIRS("", "2020-01-01T00:00:00.000000Z"));
    assert_true(b.a.events & KL_LEADER_STOPPED);
    assert_int_equal(kl_leader_deadline(b.l), 0);
    assert_int_equal(say(&b, KL_LEADER_JOINED).what, KL_LEADER_DONE);
    say(&b, KL_LEADER_START);
    answer(&b, KL_OK, THEIRS("", "2020-01-01T00:00:00.000000Z"));
    accept(&b);
    assert_true(b.a.events & KL_LEADER_STARTED);
    assert_int_equal(atomic_load(&kl_leader_tenure(b.l)->term), term + 1);
    assert_int_equal(atomic_load(&kl_leader_tenure(b.l)->epoch), 4);
    kl_leader_free(b.l);
}

static void a_leader_that_finds_another_holder_stops_writes_at_once(void **state)
{
    (void)state;
    bench b = leading(false);
    b.now = KL_SECONDS(2);
    say(&b, KL_LEADER_TIMER);
    answer(&b, KL_ECONFLICT, NULL);
    answer(&b, KL_OK, THEIRS("other", "2020-01-01T00:00:00.000000Z"));
    assert_int_equal(kl_leader_deadline(b.l), 0);
    /* and asks until the renew deadline, as client-go does */
    assert_int_equal(b.a.what, KL_LEADER_WAIT);
    kl_leader_free(b.l);
}

static void after_a_loss_the_lease_is_released_only_when_workers_have_joined(void **state)
{
    (void)state;
    bench b = leading(true);
    b.now = KL_SECONDS(2);
    say(&b, KL_LEADER_TIMER);
    b.now = KL_SECONDS(12);
    say(&b, KL_LEADER_TIMER);
    assert_int_equal(b.a.what, KL_LEADER_WAIT);
    assert_int_equal(b.a.until, KL_NEVER);
    assert_int_equal(say(&b, KL_LEADER_TIMER).what, KL_LEADER_WAIT);
    assert_int_equal(b.a.until, KL_NEVER);
    b.now = KL_SECONDS(13);
    assert_int_equal(say(&b, KL_LEADER_JOINED).what, KL_LEADER_GET);
    assert_int_equal(answer(&b, KL_OK, THEIRS("me", "2020-01-01T00:00:00.000000Z")).what, KL_LEADER_UPDATE);
    assert_string_equal(kl_value_str_at(b.a.body, "spec", "holderIdentity", NULL), "");
    assert_int_equal(kl_value_int_at(b.a.body, 0, "spec", "leaseDurationSeconds", NULL), 1);
    assert_int_equal(accept(&b).what, KL_LEADER_DONE);
    /* And then in the same process again. */
    assert_int_equal(say(&b, KL_LEADER_START).what, KL_LEADER_GET);
    assert_int_equal(answer(&b, KL_OK, THEIRS("", "2020-01-01T00:00:00.000000Z")).what, KL_LEADER_UPDATE);
    accept(&b);
    assert_true(b.a.events & KL_LEADER_STARTED);
    kl_leader_free(b.l);
}

static void cancelling_stops_writes_before_the_release(void **state)
{
    (void)state;
    bench b = leading(true);
    assert_int_equal(say(&b, KL_LEADER_CANCEL).what, KL_LEADER_GET);
    assert_int_equal(b.a.events, KL_LEADER_STOPPED);
    assert_int_equal(kl_leader_deadline(b.l), 0);
    answer(&b, KL_OK, THEIRS("me", "2020-01-01T00:00:00.000000Z"));
    /* touched meanwhile: once more */
    assert_int_equal(answer(&b, KL_ECONFLICT, NULL).what, KL_LEADER_GET);
    answer(&b, KL_OK, THEIRS("me", "2020-01-01T00:00:00.000000Z"));
    assert_int_equal(accept(&b).what, KL_LEADER_DONE);
    kl_leader_free(b.l);
}

static void a_release_never_takes_the_lease_from_its_new_holder(void **state)
{
    (void)state;
    bench b = leading(true);
    say(&b, KL_LEADER_CANCEL);
    assert_int_equal(answer(&b, KL_OK, THEIRS("other", "2020-01-01T00:00:00.000000Z")).what, KL_LEADER_DONE);
    kl_leader_free(b.l);
}

static void without_release_cancel_just_ends(void **state)
{
    (void)state;
    bench b = leading(false);
    assert_int_equal(say(&b, KL_LEADER_CANCEL).what, KL_LEADER_DONE);
    assert_int_equal(b.a.events, KL_LEADER_STOPPED);
    kl_leader_free(b.l);
    b = start_bench(true);
    say(&b, KL_LEADER_START);
    /* never led: nothing to release */
    assert_int_equal(say(&b, KL_LEADER_CANCEL).what, KL_LEADER_DONE);
    kl_leader_free(b.l);
}

static void watch(bench *b, const char *lease)
{
    const kl_value *v = lease ? json(lease) : NULL;
    put(b, (kl_leader_input){.kind = KL_LEADER_CHANGED, .lease = v});
    kl_value_unref(v);
}

static void a_standby_that_watches_takes_over_at_once(void **state)
{
    (void)state;
    bench b = start_bench(false);
    say(&b, KL_LEADER_START);
    answer(&b, KL_OK, THEIRS("other", "2020-01-01T00:00:00.000000Z"));
    kl_time until = b.a.until;
    b.now = KL_MILLISECONDS(700);
    watch(&b, THEIRS("other", "2020-01-01T00:00:02.000000Z")); /* renewed: no request */
    assert_int_equal(b.a.what, KL_LEADER_GO_ON);
    assert_int_equal(b.a.until, until);
    b.now = KL_MILLISECONDS(900);
    watch(&b, THEIRS("", "2020-01-01T00:00:03.000000Z"));
    assert_int_equal(b.a.what, KL_LEADER_UPDATE);
    accept(&b);
    assert_true(b.a.events & KL_LEADER_STARTED);
    kl_leader_free(b.l);
}

static void a_renewal_seen_by_the_watch_restarts_the_holders_time(void **state)
{
    (void)state;
    bench b = start_bench(false);
    say(&b, KL_LEADER_START);
    answer(&b, KL_OK, THEIRS("other", "2020-01-01T00:00:00.000000Z"));
    b.now = KL_SECONDS(14);
    watch(&b, THEIRS("other", "2020-01-01T00:00:14.000000Z"));
    b.now = KL_SECONDS(16);
    say(&b, KL_LEADER_TIMER);
    assert_int_equal(b.a.what, KL_LEADER_GET);
    assert_int_equal(answer(&b, KL_OK, THEIRS("other", "2020-01-01T00:00:14.000000Z")).what, KL_LEADER_WAIT);
    kl_leader_free(b.l);
}

static void a_deleted_lease_is_tried_for_at_once_and_the_race_may_be_lost(void **state)
{
    (void)state;
    bench b = start_bench(false);
    say(&b, KL_LEADER_START);
    answer(&b, KL_OK, THEIRS("other", "2020-01-01T00:00:00.000000Z"));
    watch(&b, NULL);
    assert_int_equal(b.a.what, KL_LEADER_GET);
    watch(&b, NULL);
    assert_int_equal(b.a.what, KL_LEADER_GO_ON); /* one request at a time */
    answer(&b, KL_ENOTFOUND, NULL);
    assert_int_equal(answer(&b, KL_EEXISTS, NULL).what, KL_LEADER_WAIT);
    assert_int_equal(kl_leader_deadline(b.l), 0);
    kl_leader_free(b.l);
}

static void time_runs_by_whole_published_seconds(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    bench b = {0};
    kl_leader_config c = {.identity = "me",
        .name = "lock",
        .lease = KL_MILLISECONDS(1900),
        .renew = KL_MILLISECONDS(1500),
        .retry = KL_MILLISECONDS(300)};
    assert_ok(kl_leader_new(&c, &b.l, &err), &err);
    say(&b, KL_LEADER_START);
    answer(&b, KL_ENOTFOUND, NULL);
    accept(&b);
    assert_int_equal(kl_value_int_at(b.a.body, 0, "spec", "leaseDurationSeconds", NULL), 1);
    /* others count to one second */
    assert_true(kl_leader_deadline(b.l) <= BOOT + KL_SECONDS(1));
    kl_leader_free(b.l);
}

static void a_timer_that_fires_early_is_asked_for_again(void **state)
{
    (void)state;
    bench b = leading(false);
    kl_time until = b.a.until;
    b.now = until - BOOT - 1;
    assert_int_equal(say(&b, KL_LEADER_TIMER).what, KL_LEADER_WAIT);
    assert_int_equal(b.a.until, until);
    b.now++;
    assert_int_equal(say(&b, KL_LEADER_TIMER).what, KL_LEADER_UPDATE);
    b.now += KL_SECONDS(1);
    assert_int_equal(say(&b, KL_LEADER_TIMER).what, KL_LEADER_GO_ON);
    /* the end of the renew deadline */
    assert_int_equal(b.a.until, until + KL_SECONDS(10));
    kl_leader_free(b.l);
}

KL_TESTS(cmocka_unit_test(a_timer_that_fires_early_is_asked_for_again),
    cmocka_unit_test(the_configuration_must_make_sense),
    cmocka_unit_test(a_free_lease_is_created_in_our_name),
    cmocka_unit_test(a_fresh_candidate_waits_the_whole_duration_whatever_renew_time_says),
    cmocka_unit_test(numbers_that_no_lease_may_have_do_not_overflow),
    cmocka_unit_test(unknown_fields_of_a_spec_are_kept),
    cmocka_unit_test(the_deadline_counts_from_before_the_request),
    cmocka_unit_test(writes_stop_before_another_may_acquire),
    cmocka_unit_test(a_request_that_hangs_is_given_up_at_the_renew_deadline),
    cmocka_unit_test(a_leader_that_was_replaced_meanwhile_stops_even_if_the_lease_is_free),
    cmocka_unit_test(a_leader_that_finds_another_holder_stops_writes_at_once),
    cmocka_unit_test(after_a_loss_the_lease_is_released_only_when_workers_have_joined),
    cmocka_unit_test(cancelling_stops_writes_before_the_release),
    cmocka_unit_test(a_release_never_takes_the_lease_from_its_new_holder),
    cmocka_unit_test(without_release_cancel_just_ends),
    cmocka_unit_test(a_standby_that_watches_takes_over_at_once),
    cmocka_unit_test(a_renewal_seen_by_the_watch_restarts_the_holders_time),
    cmocka_unit_test(a_deleted_lease_is_tried_for_at_once_and_the_race_may_be_lost),
    cmocka_unit_test(time_runs_by_whole_published_seconds))

/* not in tsan: it starts no thread */
