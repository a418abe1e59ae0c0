/* recorder_test.c - Events: made once, counted afterwards, made anew when they are gone. The server is scripted. */
#include "support/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "run/recorder.h"

#define SENT_MAX 1100

typedef struct world {
    kl_clock *clock;
    kl_door *door;
    kl_recorder *r;
    kl_time deadline;
    const kl_value *pod, *node;
    size_t n, answered;
    struct { kl_reply_fn *done; void *arg; kl_verb verb; const kl_value *body; char name[80], ns[40], manager[20]; } sent[SENT_MAX];
} world;

static uint64_t send_op(void *arg, const kl_op *op, kl_reply_fn *done, void *done_arg)
{
    world *w = arg;
    assert_true(w->n < SENT_MAX);
    assert_string_equal(op->kind, "v1/Event");
    w->sent[w->n].done = done;
    w->sent[w->n].arg = done_arg;
    w->sent[w->n].verb = op->verb;
    w->sent[w->n].body = kl_value_ref(op->body);
    snprintf(w->sent[w->n].name, 80, "%s", op->name ? op->name : "");
    snprintf(w->sent[w->n].ns, 40, "%s", op->ns);
    snprintf(w->sent[w->n].manager, 20, "%s", op->field_manager);
    return ++w->n;
}

static kl_time deadline(void *arg) { return ((world *)arg)->deadline; }

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
    w->clock = kl_clock_fake_new(0, KL_SECONDS(1767225600));       /* 2026-01-01T00:00:00Z */
    w->deadline = KL_NEVER;
    w->door = kl_door_new(&(kl_door_options){.send = send_op, .send_arg = w, .deadline = deadline, .deadline_arg = w, .clock = w->clock});
    w->r = kl_recorder_new(w->door, w->clock);
    w->pod = json("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"a\",\"uid\":\"u1\",\"resourceVersion\":\"7\"}}");
    w->node = json("{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\",\"uid\":\"u2\"}}");
    return w;
}

/* The oldest request without an answer gets this one. */
static void answer(world *w, kl_status st)
{
    kl_err err = KL_ERR_INIT;
    size_t i = w->answered++;
    assert_true(i < w->n);
    if (st)
        st = kl_fail(&err, st, "as the spec says");
    w->sent[i].done(w->sent[i].arg, st, st ? 500 : 200, NULL, &err);
    kl_err_fini(&err);
}

static void teardown(world *w)
{
    while (w->answered < w->n)
        answer(w, KL_OK);
    assert_true(kl_recorder_flush(w->r, 0));
    kl_recorder_free(w->r);
    for (size_t i = 0; i < w->n; i++)
        kl_value_unref(w->sent[i].body);
    kl_value_unref(w->pod);
    kl_value_unref(w->node);
    kl_door_free(w->door);
    kl_clock_fake_free(w->clock);
    kl_free(w);
}

static const char *text(world *w, size_t n, const char *a, const char *b) { return kl_value_str_at(w->sent[n - 1].body, a, b, NULL); }
static int64_t count(world *w, size_t n) { int64_t i = 0; assert_true(kl_value_int(kl_value_get(w->sent[n - 1].body, "count"), &i)); return i; }

static void an_event_says_who_what_and_about_whom(void **state)
{
    (void)state;
    world *w = setup();
    kl_recorder_event(w->r, "ctl", w->pod, "Warning", "SourceMissing", "secret x not found");
    assert_int_equal(w->n, 1);
    assert_int_equal(w->sent[0].verb, KL_CREATE);
    assert_string_equal(w->sent[0].ns, "ns");
    assert_string_equal(w->sent[0].manager, "ctl");
    assert_string_equal(text(w, 1, "type", NULL), "Warning");
    assert_string_equal(text(w, 1, "reason", NULL), "SourceMissing");
    assert_string_equal(text(w, 1, "message", NULL), "secret x not found");
    assert_string_equal(text(w, 1, "involvedObject", "kind"), "Pod");
    assert_string_equal(text(w, 1, "involvedObject", "apiVersion"), "v1");
    assert_string_equal(text(w, 1, "involvedObject", "namespace"), "ns");
    assert_string_equal(text(w, 1, "involvedObject", "uid"), "u1");
    assert_string_equal(text(w, 1, "source", "component"), "ctl");
    assert_string_equal(text(w, 1, "firstTimestamp", NULL), "2026-01-01T00:00:00Z");
    assert_true(!strncmp(text(w, 1, "metadata", "name"), "a.", 2));
    assert_int_equal(count(w, 1), 1);
    kl_recorder_event(w->r, "ctl", w->node, "Normal", "Seen", "it");
    assert_string_equal(w->sent[1].ns, "default");         /* about what has no namespace */
    teardown(w);
}

static void a_repeat_is_a_patch_of_the_count(void **state)
{
    (void)state;
    world *w = setup();
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    answer(w, KL_OK);
    kl_clock_advance(w->clock, KL_SECONDS(60));
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    assert_int_equal(w->n, 2);
    assert_int_equal(w->sent[1].verb, KL_PATCH);
    assert_string_equal(w->sent[1].name, text(w, 1, "metadata", "name"));
    assert_int_equal(count(w, 2), 2);
    assert_string_equal(text(w, 2, "lastTimestamp", NULL), "2026-01-01T00:01:00Z");
    assert_null(text(w, 2, "reason", NULL));
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "something else");
    assert_int_equal(w->sent[2].verb, KL_CREATE);
    teardown(w);
}

static void repeats_while_a_request_is_open_become_one(void **state)
{
    (void)state;
    world *w = setup();
    for (int i = 0; i < 5; i++)
        kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    assert_int_equal(w->n, 1);
    assert_false(kl_recorder_flush(w->r, 0));
    answer(w, KL_OK);
    assert_int_equal(w->n, 2);
    assert_int_equal(count(w, 2), 5);
    answer(w, KL_OK);
    assert_int_equal(w->n, 2);
    assert_true(kl_recorder_flush(w->r, 0));
    teardown(w);
}

static void an_event_that_expired_is_made_anew_with_its_count(void **state)
{
    (void)state;
    world *w = setup();
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    answer(w, KL_OK);
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    answer(w, KL_ENOTFOUND);
    assert_int_equal(w->n, 3);
    assert_int_equal(w->sent[2].verb, KL_CREATE);
    assert_int_equal(count(w, 3), 2);
    assert_string_equal(text(w, 3, "reason", NULL), "Seen");
    answer(w, KL_OK);
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    assert_int_equal(w->sent[3].verb, KL_PATCH);
    assert_int_equal(count(w, 4), 3);
    teardown(w);
}

static void what_the_server_refuses_is_not_tried_again_until_it_repeats(void **state)
{
    (void)state;
    world *w = setup();
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    answer(w, KL_EFORBIDDEN);
    assert_int_equal(w->n, 1);
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    assert_int_equal(w->sent[1].verb, KL_CREATE);
    assert_int_equal(count(w, 2), 2);
    answer(w, KL_OK);
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    answer(w, KL_ESERVER);
    assert_int_equal(w->n, 3);
    teardown(w);
}

static void who_does_not_lead_records_nothing(void **state)
{
    (void)state;
    world *w = setup();
    w->deadline = 0;
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    assert_int_equal(w->n, 0);
    assert_true(kl_recorder_flush(w->r, 0));
    w->deadline = KL_NEVER;
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "it");
    assert_int_equal(w->n, 1);
    teardown(w);
}

static void too_many_at_once_are_dropped_and_counted(void **state)
{
    (void)state;
    world *w = setup();
    for (int i = 0; i < 1003; i++) {
        char message[16];
        snprintf(message, sizeof message, "no %d", i);
        kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", message);
    }
    assert_int_equal(w->n, 1000);
    assert_int_equal(kl_recorder_dropped(w->r), 3);
    kl_recorder_event(w->r, "ctl", w->pod, "Normal", "Seen", "no 0");      /* known: counted, not dropped */
    assert_int_equal(kl_recorder_dropped(w->r), 3);
    answer(w, KL_OK);
    assert_int_equal(w->n, 1001);
    teardown(w);
}

KL_TESTS(cmocka_unit_test(an_event_says_who_what_and_about_whom),
    cmocka_unit_test(a_repeat_is_a_patch_of_the_count),
    cmocka_unit_test(repeats_while_a_request_is_open_become_one),
    cmocka_unit_test(an_event_that_expired_is_made_anew_with_its_count),
    cmocka_unit_test(what_the_server_refuses_is_not_tried_again_until_it_repeats),
    cmocka_unit_test(who_does_not_lead_records_nothing),
    cmocka_unit_test(too_many_at_once_are_dropped_and_counted))
