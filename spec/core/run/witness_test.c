/* witness_test.c - the callbacks of an observer while keys run. */
#include "worker_rig.h"

#include "run/witness.h"

typedef struct listener {
    kl_buf heard;
} listener;

static void put(listener *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(listener *l, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    kl_buf_printf(&l->heard, "%s%s", l->heard.len ? " " : "", text);
}

static void began(void *arg, kl_run *r) { put(arg, "began:%s", kl_run_key(r)); }

static void asked(void *arg, kl_run *r, const kl_asked *x)
{
    (void)r;
    put(arg, "%u:%s", x->number, x->what);
    if (x->op)
        put(arg, "by=%s in=%s", x->op->field_manager, x->op->default_ns);
    if (x->kind)
        put(arg, "%s", x->kind);
}

static void answered(void *arg, kl_run *r, const kl_answered *x)
{
    (void)r;
    put(arg, "%u=%s/%d after %llds", x->number, x->status ? kl_err_message(x->err) : "ok", x->code,
        (long long)(x->took / KL_SECONDS(1)));
}

static void ended(void *arg, kl_run *r, const kl_ran *x)
{
    assert_string_equal(kl_run_key(r), x->key);
    put(arg, "ended:%s%s%s", x->key, x->put_back ? " put back" : "", x->message ? x->message : "");
}

static void gone(void *arg, const char *controller, const char *key)
{
    put(arg, "gone:%s %s", controller, key);
}

static void listen_to(rig *r, listener *l)
{
    *l = (listener){KL_BUF_INIT};
    kl_witnesses_add(&r->witnesses,
        &(kl_witness){
            .began = began, .asked = asked, .answered = answered, .ended = ended, .gone = gone, .arg = l});
}

#define assert_heard(l, text)                                                                                \
    do {                                                                                                     \
        assert_string_equal(kl_buf_str(&(l)->heard), text);                                                  \
        kl_buf_clear(&(l)->heard);                                                                           \
    } while (0)

static void a_run_is_reported_from_start_to_end(void **state)
{
    (void)state;
    rig r;
    listener l;
    rig_init(&r, 0, 0);
    listen_to(&r, &l);
    rig_add(&r, "ns/a", "cgkzE");
    rig_round(&r);
    assert_heard(&l, "began:ns/a 1:create by=ctl in=ns");
    rig_advance(&r, KL_SECONDS(2));
    rig_answer(&r, 1, KL_OK, "{}");
    rig_round(&r);
    assert_heard(&l, "1=ok/200 after 2s 2:get by=ctl in=ns");
    rig_answer(&r, 2, KL_ENOTFOUND, NULL);
    rig_round(&r);
    assert_heard(&l, "2=as the spec says/500 after 0s 3:discovery example.com/v1/Thing");
    r.resolving(r.resolving_arg, KL_OK, &r.resource, NULL);
    rig_round(&r);
    assert_heard(&l, "3=ok/0 after 0s 4:sleep");
    rig_advance(&r, KL_SECONDS(5));
    rig_round(&r);
    assert_heard(&l, "4=ok/0 after 5s ended:ns/aboom");
    kl_buf_fini(&l.heard);
    rig_fini(&r);
}

static void a_run_that_is_ended_is_put_back(void **state)
{
    (void)state;
    rig r;
    listener l;
    rig_init(&r, 0, 0);
    listen_to(&r, &l);
    rig_add(&r, "ns/a", "zD");
    rig_round(&r);
    kl_worker_drain(r.w);
    kl_worker_abort(r.w);
    rig_round(&r);
    assert_heard(&l, "began:ns/a 1:sleep ended:ns/a put back");
    kl_buf_fini(&l.heard);
    rig_fini(&r);
}

static void a_deposed_run_is_put_back_too(void **state)
{
    (void)state;
    rig r;
    listener l;
    rig_init(&r, 0, 0);
    listen_to(&r, &l);
    rig_add(&r, "ns/a", "zcD");
    rig_round(&r);
    kl_tenure_end(&r.tenure);
    rig_advance(&r, KL_SECONDS(5));
    rig_round(&r);
    rig_round(&r);
    assert_non_null(strstr(kl_buf_str(&l.heard), "ended:ns/a put back"));
    kl_buf_fini(&l.heard);
    rig_fini(&r);
}

static void a_key_without_an_object_is_gone(void **state)
{
    (void)state;
    rig r;
    listener l;
    rig_init(&r, 0, 0);
    listen_to(&r, &l);
    kl_workqueue_add(r.queue, "ns/nobody", kl_clock_now(r.clock));
    rig_round(&r);
    assert_heard(&l, "gone:ctl ns/nobody");
    kl_buf_fini(&l.heard);
    rig_fini(&r);
}

KL_TESTS(cmocka_unit_test(a_run_is_reported_from_start_to_end),
    cmocka_unit_test(a_run_that_is_ended_is_put_back), cmocka_unit_test(a_deposed_run_is_put_back_too),
    cmocka_unit_test(a_key_without_an_object_is_gone))

/* not in tsan: it starts no thread */
