/* recorder_test.c - Events: created once, then counted, retried, and created again after their deletion. The
 * server is scripted, and the test controls the clock. */
#include "support/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "events/event_body.h"
#include "events/recorder.h"

#define SENT_MAX 1200

typedef struct world {
    kl_clock *clock;
    kl_door *door;
    kl_recorder *r;
    kl_tenure tenure;
    const kl_value *pod, *node;
    size_t n, answered;
    struct {
        kl_reply_fn *done;
        void *arg;
        kl_verb verb;
        const kl_value *body;
        char kind[32], name[80], ns[40], manager[20];
    } sent[SENT_MAX];
} world;

static uint64_t send_op(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    world *w = arg;
    assert_true(w->n < SENT_MAX);
    w->sent[w->n].done = done;
    w->sent[w->n].arg = done_arg;
    w->sent[w->n].verb = op->verb;
    w->sent[w->n].body = kl_value_ref(op->body);
    snprintf(w->sent[w->n].kind, 32, "%s", op->kind);
    snprintf(w->sent[w->n].name, 80, "%s", op->name ? op->name : "");
    snprintf(w->sent[w->n].ns, 40, "%s", op->ns);
    snprintf(w->sent[w->n].manager, 20, "%s", op->field_manager);
    return ++w->n;
}

static const kl_value *json(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static world *setup(void)
{
    world *w = kl_new(world);
    w->clock = kl_clock_fake_new(KL_SECONDS(100), KL_SECONDS(1767225600)); /* 2026-01-01T00:00:00Z */
    kl_tenure_begin(&w->tenure, 0, KL_NEVER);
    w->door = kl_door_new(&(kl_door_options){.send = send_op, .send_arg = w, .clock = w->clock});
    w->r = kl_recorder_new(w->door, w->clock, NULL);
    w->pod = json("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\","
                  "\"uid\":\"u1\",\"resourceVersion\":\"7\"}}");
    w->node = json("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u2\"}}");
    return w;
}

/* The oldest request without an answer gets this one. */
static void answer_with(world *w, kl_status st, int code, const char *message, const char *details)
{
    kl_err err = KL_ERR_INIT;
    size_t i = w->answered++;
    assert_true(i < w->n);
    if (st) {
        st = kl_fail(&err, st, "%s", message);
        err.http_code = code;
        err.details = kl_strdup(details);
    }
    w->sent[i].done(w->sent[i].arg, st, code, NULL, &err);
    kl_err_fini(&err);
}

static int code_of(kl_status st)
{
    switch (st) {
    case KL_OK: return 200;
    case KL_ENOTFOUND: return 404;
    case KL_EFORBIDDEN: return 403;
    case KL_EEXISTS: return 409;
    case KL_EREJECTED: return 422;
    case KL_ETHROTTLED: return 429;
    case KL_ESERVER: return 500;
    default: return 0;
    }
}

static void answer(world *w, kl_status st) { answer_with(w, st, code_of(st), "as the spec says", NULL); }

static void teardown(world *w)
{
    while (w->answered < w->n)
        answer(w, KL_OK);
    kl_recorder_free(w->r);
    for (size_t i = 0; i < w->n; i++)
        kl_value_unref(w->sent[i].body);
    kl_value_unref(w->pod);
    kl_value_unref(w->node);
    kl_door_free(w->door);
    kl_clock_fake_free(w->clock);
    kl_free(w);
}

static void pass(world *w, kl_time t)
{
    kl_clock_advance(w->clock, t);
    (void)kl_recorder_tick(w->r);
}

static void say(world *w, const char *note)
{
    kl_recorder_event(w->r,
        &(kl_news){.component = "ctl",
            .mandate = {&w->tenure, 0},
            .about = w->pod,
            .type = "Normal",
            .reason = "Seen",
            .note = note});
}

static void say_reason(world *w, const char *reason)
{
    kl_recorder_event(w->r,
        &(kl_news){.component = "ctl",
            .mandate = {&w->tenure, 0},
            .about = w->pod,
            .type = "Normal",
            .reason = reason,
            .note = "it"});
}

static kl_recorder_stats stats(world *w)
{
    kl_recorder_stats s;
    kl_recorder_stats_get(w->r, &s);
    return s;
}

static const char *text(world *w, size_t n, const char *a, const char *b)
{
    return kl_value_str_at(w->sent[n - 1].body, a, b, NULL);
}

/* The count that the n-th request tells; 0 when it has no series. */
static int64_t series(world *w, size_t n)
{
    int64_t i = 0;
    (void)kl_value_int(kl_value_at(w->sent[n - 1].body, "series", "count", NULL), &i);
    return i;
}

static int64_t count(world *w, size_t n)
{
    int64_t i = 0;
    assert_true(kl_value_int(kl_value_get(w->sent[n - 1].body, "count"), &i));
    return i;
}

/* --- what is said ------------------------------------------------------------------------- */

static void an_event_has_source_reason_and_object(void **state)
{
    (void)state;
    world *w = setup();
    kl_recorder_event(w->r,
        &(kl_news){.component = "ctl",
            .mandate = {&w->tenure, 0},
            .about = w->pod,
            .related = w->node,
            .type = "Warning",
            .reason = "SourceMissing",
            .action = "Copy",
            .note = "secret x not found"});
    assert_int_equal(w->n, 1);
    assert_int_equal(w->sent[0].verb, KL_CREATE);
    assert_string_equal(w->sent[0].kind, "events.k8s.io/v1/Event");
    assert_string_equal(w->sent[0].ns, "ns");
    assert_string_equal(w->sent[0].manager, "ctl");
    assert_string_equal(text(w, 1, "type", NULL), "Warning");
    assert_string_equal(text(w, 1, "reason", NULL), "SourceMissing");
    assert_string_equal(text(w, 1, "action", NULL), "Copy");
    assert_string_equal(text(w, 1, "note", NULL), "secret x not found");
    assert_string_equal(text(w, 1, "eventTime", NULL), "2026-01-01T00:00:00.000000Z");
    assert_string_equal(text(w, 1, "reportingController", NULL), "ctl");
    assert_true(!strncmp(text(w, 1, "reportingInstance", NULL), "ctl-", 4));
    assert_string_equal(text(w, 1, "regarding", "kind"), "Pod");
    assert_string_equal(text(w, 1, "regarding", "apiVersion"), "v1");
    assert_string_equal(text(w, 1, "regarding", "namespace"), "ns");
    assert_string_equal(text(w, 1, "regarding", "uid"), "u1");
    assert_string_equal(text(w, 1, "regarding", "resourceVersion"), "7");
    assert_string_equal(text(w, 1, "related", "kind"), "Node");
    assert_true(!strncmp(text(w, 1, "metadata", "name"), "a.", 2));
    assert_null(kl_value_get(w->sent[0].body, "series"));
    assert_null(kl_value_get(w->sent[0].body, "count"));
    kl_recorder_event(w->r,
        &(kl_news){.component = "ctl",
            .mandate = {&w->tenure, 0},
            .about = w->node,
            .type = "Normal",
            .reason = "Seen",
            .note = "it"});
    assert_string_equal(w->sent[1].ns, "default"); /* about what has no namespace */
    assert_string_equal(text(w, 2, "action", NULL), "Reconcile");
    teardown(w);
}

static void long_texts_are_cut_at_a_character(void **state)
{
    (void)state;
    world *w = setup();
    char note[1200], reason[200];
    memset(note, 'x', sizeof note);
    note[1020] = '\xc3', note[1021] = '\xa9'; /* an e with an accent across the cut */
    note[1199] = '\0';
    memset(reason, 'R', sizeof reason);
    reason[199] = '\0';
    kl_recorder_event(w->r,
        &(kl_news){.component = "ctl",
            .mandate = {&w->tenure, 0},
            .about = w->pod,
            .type = "Normal",
            .reason = reason,
            .note = note});
    const char *sent = text(w, 1, "note", NULL);
    assert_int_equal(strlen(sent), 1023);
    assert_string_equal(sent + 1018, "xx...");
    assert_int_equal(strlen(text(w, 1, "reason", NULL)), KL_EVENT_WORD_MAX);
    note[1024] = '\0';
    say(w, note);
    assert_int_equal(strlen(text(w, 2, "note", NULL)), 1024); /* just fits */
    teardown(w);
}

/* --- series ------------------------------------------------------------------------------- */

static void the_second_time_makes_a_series_and_later_ones_only_count(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer(w, KL_OK);
    pass(w, KL_SECONDS(60));
    say(w, "it");
    assert_int_equal(w->n, 2);
    assert_int_equal(w->sent[1].verb, KL_PATCH);
    assert_string_equal(w->sent[1].name, text(w, 1, "metadata", "name"));
    assert_int_equal(series(w, 2), 2);
    assert_string_equal(text(w, 2, "series", "lastObservedTime"), "2026-01-01T00:01:00.000000Z");
    assert_null(text(w, 2, "reason", NULL));
    answer(w, KL_OK);
    for (int i = 0; i < 10; i++)
        say(w, "it");
    assert_int_equal(w->n, 2);
    assert_int_equal(stats(w).recorded, 12);
    assert_int_equal(stats(w).waiting, 0);
    teardown(w);
}

static void a_running_series_is_written_every_half_hour_and_its_end_after_six_minutes(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer(w, KL_OK);
    say(w, "it");
    answer(w, KL_OK);
    for (int i = 0; i < 5; i++) {
        pass(w, KL_MINUTES(5));
        say(w, "it");
        assert_int_equal(w->n, 2);
    }
    pass(w, KL_MINUTES(5)); /* half an hour after the last time it was told */
    assert_int_equal(w->n, 3);
    assert_int_equal(series(w, 3), 7);
    answer(w, KL_OK);
    say(w, "it");
    assert_int_equal(w->n, 3);
    pass(w, KL_MINUTES(6) - 1);
    assert_int_equal(w->n, 3);
    pass(w, 1);
    assert_int_equal(w->n, 4);
    assert_int_equal(series(w, 4), 8);
    answer(w, KL_OK);
    assert_int_equal(kl_recorder_tick(w->r), KL_NEVER);
    say(w, "it"); /* a new one */
    assert_int_equal(w->sent[4].verb, KL_CREATE);
    assert_int_equal(series(w, 5), 0);
    assert_string_not_equal(text(w, 5, "metadata", "name"), text(w, 1, "metadata", "name"));
    teardown(w);
}

static void an_event_that_does_not_repeat_is_forgotten_after_six_minutes(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer(w, KL_OK);
    assert_int_equal(kl_recorder_tick(w->r), KL_SECONDS(100) + KL_MINUTES(6));
    pass(w, KL_MINUTES(6));
    assert_int_equal(w->n, 1);
    assert_int_equal(kl_recorder_tick(w->r), KL_NEVER);
    say(w, "it");
    assert_int_equal(w->sent[1].verb, KL_CREATE);
    teardown(w);
}

static void repeats_while_a_request_is_open_become_one(void **state)
{
    (void)state;
    world *w = setup();
    for (int i = 0; i < 5; i++)
        say(w, "it");
    assert_int_equal(w->n, 1);
    assert_false(kl_recorder_flush(w->r, 0));
    answer(w, KL_OK);
    assert_int_equal(w->n, 2);
    assert_int_equal(series(w, 2), 5);
    answer(w, KL_OK);
    assert_int_equal(w->n, 2);
    assert_true(kl_recorder_flush(w->r, 0));
    teardown(w);
}

static void flush_writes_the_counts_of_running_series(void **state)
{
    (void)state;
    world *w = setup();
    for (int i = 0; i < 5; i++) {
        say(w, "it");
        if (i < 2)
            answer(w, KL_OK);
    }
    assert_int_equal(w->n, 2);
    assert_false(kl_recorder_flush(w->r, 0)); /* asked now, not answered in no time */
    assert_int_equal(w->n, 3);
    assert_int_equal(series(w, 3), 5);
    answer(w, KL_OK);
    assert_true(kl_recorder_flush(w->r, 0));
    assert_int_equal(w->n, 3);
    teardown(w);
}

static void an_expired_event_is_recreated_with_its_count(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer(w, KL_OK);
    say(w, "it");
    answer(w, KL_ENOTFOUND);
    assert_int_equal(w->n, 3);
    assert_int_equal(w->sent[2].verb, KL_CREATE);
    assert_int_equal(series(w, 3), 2);
    assert_string_equal(text(w, 3, "reason", NULL), "Seen");
    answer(w, KL_OK);
    assert_int_equal(w->n, 3);
    teardown(w);
}

static void an_event_that_is_there_already_is_ours(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    say(w, "it");
    answer(w, KL_EEXISTS); /* the first try arrived, its answer did not */
    assert_int_equal(w->sent[1].verb, KL_PATCH);
    assert_int_equal(series(w, 2), 2);
    teardown(w);
}

static void the_tenth_different_note_is_one_combined_event_with_those_after_it(void **state)
{
    (void)state;
    world *w = setup();
    char note[16];
    for (int i = 1; i <= 12; i++) {
        snprintf(note, sizeof note, "note %d", i);
        say(w, note);
        if (w->answered < w->n)
            answer(w, KL_OK);
    }
    assert_int_equal(w->n, 11); /* nine, the combined one, and its series */
    assert_string_equal(text(w, 9, "note", NULL), "note 9");
    assert_string_equal(text(w, 10, "note", NULL), "(combined from similar events): note 10");
    assert_int_equal(w->sent[10].verb, KL_PATCH);
    assert_string_equal(w->sent[10].name, text(w, 10, "metadata", "name"));
    assert_int_equal(series(w, 11), 2);
    assert_int_equal(stats(w).recorded, 12);
    teardown(w);
}

/* --- failures ----------------------------------------------------------------------------- */

static void a_rejected_event_is_not_retried(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer(w, KL_EFORBIDDEN);
    pass(w, KL_MINUTES(5));
    assert_int_equal(w->n, 1);
    assert_int_equal(stats(w).refused, 1);
    assert_int_equal(stats(w).recorded, 0);
    say(w, "it");
    assert_int_equal(w->sent[1].verb, KL_CREATE);
    teardown(w);
}

static void events_of_a_deleted_namespace_are_dropped(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer_with(w, KL_EFORBIDDEN, 403,
        "events \"a.1\" is forbidden: unable to create new content in namespace ns because it is being "
        "terminated",
        "{\"causes\":[{\"reason\":\"NamespaceTerminating\"}]}");
    assert_int_equal(stats(w).terminating, 1);
    assert_int_equal(stats(w).refused, 0);
    assert_true(kl_recorder_flush(w->r, 0));
    teardown(w);
}

static void a_transient_failure_is_retried_twelve_times_about_ten_seconds_apart(void **state)
{
    (void)state;
    world *w = setup();
    static const kl_status passing[] = {KL_ECONNECT, KL_ETIMEOUT, KL_ECLOSED, KL_ESERVER, KL_ETHROTTLED};
    say(w, "it");
    for (int i = 1; i <= 12; i++) {
        assert_int_equal(w->n, i);
        answer(w, passing[i % 5]);
        if (i == 12)
            break;
        kl_time next = kl_recorder_tick(w->r) - kl_clock_now(w->clock);
        assert_true(next >= KL_SECONDS(10) && next <= KL_MILLISECONDS(12500));
        assert_int_equal(stats(w).waiting, 1);
        pass(w, next - 1);
        assert_int_equal(w->n, i);
        pass(w, 1);
    }
    pass(w, KL_MINUTES(1));
    assert_int_equal(w->n, 12);
    assert_int_equal(stats(w).given_up, 1);
    assert_int_equal(stats(w).waiting, 0);
    teardown(w);
}

static void a_successful_retry_includes_later_repeats(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer(w, KL_ECONNECT);
    for (int i = 0; i < 3; i++)
        say(w, "it");
    assert_int_equal(w->n, 1);
    pass(w, KL_SECONDS(13));
    assert_int_equal(w->sent[1].verb, KL_CREATE);
    assert_int_equal(series(w, 2), 4);
    teardown(w);
}

static void a_request_that_hangs_holds_up_its_own_event_alone(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "hangs");
    say(w, "other");
    kl_recorder_event(w->r,
        &(kl_news){.component = "ctl",
            .mandate = {&w->tenure, 0},
            .about = w->node,
            .type = "Normal",
            .reason = "Seen",
            .note = "it"});
    assert_int_equal(w->n, 3);
    w->answered = 1;
    answer(w, KL_OK);
    say(w, "other");
    assert_int_equal(w->n, 4);
    answer(w, KL_OK);
    answer(w, KL_OK);
    assert_int_equal(w->answered, w->n);
    kl_err err = KL_ERR_INIT;
    w->sent[0].done(w->sent[0].arg, KL_OK, 200, NULL, &err); /* at last */
    teardown(w);
}

static void a_standby_records_nothing(void **state)
{
    (void)state;
    world *w = setup();
    kl_tenure_end(&w->tenure);
    for (int i = 0; i < 20; i++) {
        char reason[16];
        snprintf(reason, sizeof reason, "Seen%d", i);
        say_reason(w, reason);
    }
    assert_int_equal(w->n, 0);
    assert_int_equal(stats(w).not_leading, 20);
    assert_true(kl_recorder_flush(w->r, 0));
    kl_tenure_extend(&w->tenure, KL_NEVER);
    say(w, "it");
    assert_int_equal(w->n, 1);
    teardown(w);
}

static void too_many_that_wait_are_dropped_and_counted(void **state)
{
    (void)state;
    world *w = setup();
    for (int i = 0; i < 1003; i++) {
        char object[128];
        snprintf(object, sizeof object,
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"p%d\","
            "\"uid\":\"u%d\"}}",
            i, i);
        const kl_value *o = json(object);
        kl_recorder_event(w->r,
            &(kl_news){.component = "ctl",
                .mandate = {&w->tenure, 0},
                .about = o,
                .type = "Normal",
                .reason = "Seen",
                .note = "it"});
        if (i == 0 || i == 1002) /* known: counted; unknown: dropped again */
            kl_recorder_event(w->r,
                &(kl_news){.component = "ctl",
                    .mandate = {&w->tenure, 0},
                    .about = o,
                    .type = "Normal",
                    .reason = "Seen",
                    .note = "it"});
        kl_value_unref(o);
    }
    assert_int_equal(w->n, 32); /* under way at a time */
    assert_int_equal(stats(w).waiting, 1000);
    assert_int_equal(stats(w).full, 4);
    assert_int_equal(stats(w).recorded, 1001);
    assert_int_equal(kl_recorder_dropped(w->r), 4);
    while (w->answered < w->n)
        answer(w, KL_OK);
    assert_int_equal(w->n, 1001); /* one of them a series */
    assert_int_equal(stats(w).waiting, 0);
    teardown(w);
}

static void too_many_about_one_object_are_dropped_and_counted(void **state)
{
    (void)state;
    world *w = setup();
    for (int i = 0; i < 30; i++) {
        char reason[16];
        snprintf(reason, sizeof reason, "Seen%d", i);
        say_reason(w, reason);
        say_reason(w, reason); /* repeats cost nothing, of those that passed */
    }
    assert_int_equal(stats(w).recorded, 50);
    assert_int_equal(stats(w).spam, 10);
    pass(w, KL_SECONDS(301));
    say_reason(w, "Late");
    assert_int_equal(stats(w).recorded, 51);
    teardown(w);
}

/* --- servers with core/v1 alone ----------------------------------------------------------- */

static void without_the_new_group_events_are_recorded_as_core_v1(void **state)
{
    (void)state;
    world *w = setup();
    say(w, "it");
    answer_with(w, KL_ENOTFOUND, 0, "the server has no kind events.k8s.io/v1/Event", NULL);
    assert_int_equal(w->n, 2);
    assert_string_equal(w->sent[1].kind, "v1/Event");
    assert_int_equal(w->sent[1].verb, KL_CREATE);
    assert_string_equal(text(w, 2, "apiVersion", NULL), "v1");
    assert_string_equal(text(w, 2, "involvedObject", "kind"), "Pod");
    assert_string_equal(text(w, 2, "message", NULL), "it");
    assert_string_equal(text(w, 2, "source", "component"), "ctl");
    assert_string_equal(text(w, 2, "reportingComponent", NULL), "ctl");
    assert_string_equal(text(w, 2, "firstTimestamp", NULL), "2026-01-01T00:00:00Z");
    assert_null(text(w, 2, "eventTime", NULL));
    assert_int_equal(count(w, 2), 1);
    w->answered = 1;
    answer(w, KL_OK);
    pass(w, KL_SECONDS(60));
    say(w, "it"); /* there each repeat is told */
    assert_int_equal(w->sent[2].verb, KL_PATCH);
    assert_int_equal(count(w, 3), 2);
    assert_string_equal(text(w, 3, "lastTimestamp", NULL), "2026-01-01T00:01:00Z");
    answer(w, KL_OK);
    say(w, "it");
    assert_int_equal(count(w, 4), 3);
    answer(w, KL_OK);
    say(w, "other");
    assert_string_equal(w->sent[4].kind, "v1/Event");
    teardown(w);
}

KL_TESTS(cmocka_unit_test(an_event_has_source_reason_and_object),
    cmocka_unit_test(long_texts_are_cut_at_a_character),
    cmocka_unit_test(the_second_time_makes_a_series_and_later_ones_only_count),
    cmocka_unit_test(a_running_series_is_written_every_half_hour_and_its_end_after_six_minutes),
    cmocka_unit_test(an_event_that_does_not_repeat_is_forgotten_after_six_minutes),
    cmocka_unit_test(repeats_while_a_request_is_open_become_one),
    cmocka_unit_test(flush_writes_the_counts_of_running_series),
    cmocka_unit_test(an_expired_event_is_recreated_with_its_count),
    cmocka_unit_test(an_event_that_is_there_already_is_ours),
    cmocka_unit_test(the_tenth_different_note_is_one_combined_event_with_those_after_it),
    cmocka_unit_test(a_rejected_event_is_not_retried),
    cmocka_unit_test(events_of_a_deleted_namespace_are_dropped),
    cmocka_unit_test(a_transient_failure_is_retried_twelve_times_about_ten_seconds_apart),
    cmocka_unit_test(a_successful_retry_includes_later_repeats),
    cmocka_unit_test(a_request_that_hangs_holds_up_its_own_event_alone),
    cmocka_unit_test(a_standby_records_nothing), cmocka_unit_test(too_many_that_wait_are_dropped_and_counted),
    cmocka_unit_test(too_many_about_one_object_are_dropped_and_counted),
    cmocka_unit_test(without_the_new_group_events_are_recorded_as_core_v1))

/* not in tsan: it starts no thread */
