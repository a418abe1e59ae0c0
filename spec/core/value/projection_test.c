/* projection_test.c - what a projection keeps and leaves out, and what paths mean. That decoding with one
 * gives what cutting afterwards would give is a law of spec/support/stream_laws.h. */
#include "support/test.h"

#include "base/mem.h"
#include "wire/stream.h"
#include "support/random_value.h"

static kl_projection *projection(const char *const *paths, size_t n)
{
    kl_err err = KL_ERR_INIT;
    kl_projection *p = NULL;
    assert_ok(kl_projection_new(paths, n, &p, &err), &err);
    return p;
}
#define KEEP(...)                                                                                            \
    projection(                                                                                              \
        (const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static kl_status keep_last(void *arg, const kl_value *v, kl_err *err)
{
    (void)err;
    kl_value_unref(*(const kl_value **)arg);
    *(const kl_value **)arg = v;
    return KL_OK;
}

static kl_status keep_last_event(void *arg, const char *type, const kl_value *v, kl_err *err)
{
    (void)type;
    return keep_last(arg, v, err);
}

/* The object that a list's item, and a watch's frame, becomes. Takes the projection. */
static void assert_cut(kl_projection *p, const char *object, const char *want)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *item = NULL, *event = NULL;
    kl_stream_handler h = {.item = keep_last, .event = keep_last_event, .keep = p, .arg = &item};
    kl_stream *list = kl_stream_list_new(&h);
    h.arg = &event;
    kl_stream *watch = kl_stream_watch_new(&h);
    kl_projection_unref(p); /* the streams have their own */
    char *text = kl_sprintf("{\"kind\":\"L\",\"spec\":{\"x\":1},\"items\":[%s,%s]}", object, object),
         *frame = kl_sprintf(
             "{\"type\":\"ADDED\",\"object\":%s}\n{\"object\":%s,\"type\":\"ADDED\",\"spec\":1}", object,
             object);
    const kl_value *envelope = NULL;
    assert_ok(kl_stream_feed(list, text, strlen(text), &err), &err);
    assert_ok(kl_stream_finish(list, &envelope, &err), &err);
    assert_ok(kl_stream_feed(watch, frame, strlen(frame), &err), &err);
    assert_ok(kl_stream_finish(watch, NULL, &err), &err);
    char *got = kl_value_to_json(item), *rest = kl_value_to_json(envelope);
    assert_string_equal(got, want);
    char *told = kl_value_to_json(event);
    assert_string_equal(told, want);
    kl_free(told);
    /* the envelope is not an object of the cluster */
    assert_string_equal(rest, "{\"kind\":\"L\",\"spec\":{\"x\":1}}");
    kl_free(got);
    kl_free(rest);
    kl_free(text);
    kl_free(frame);
    kl_value_unref(envelope);
    kl_value_unref(item);
    kl_value_unref(event);
    kl_stream_free(list);
    kl_stream_free(watch);
}

#define POD                                                                                                  \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":"      \
    "\"u\",\"resourceVersion\":\"1\",\"labels\":{\"l\":\"1\"},\"annotations\":{\"x.y/"                       \
    "z\":\"1\",\"b\":\"2\"},"                                                                                \
    "\"managedFields\":[{\"manager\":\"]}\\\"\"}]},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":" \
    "\"c\",\"image\":\"i\"},{\"name\":\"d\",\"image\":\"j\",\"metadata\":{\"managedFields\":1}}]},"          \
    "\"status\":{\"phase\":\"Running\"}}"
#define ALWAYS                                                                                               \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":"      \
    "\"u\",\"resourceVersion\":\"1\",\"labels\":{\"l\":\"1\"}"

static void keeps_the_paths_and_what_makes_an_object(void **state)
{
    (void)state;
    assert_cut(projection(NULL, 0), POD, ALWAYS "}}");
    assert_cut(KEEP("status"), POD, ALWAYS "},\"status\":{\"phase\":\"Running\"}}");
    assert_cut(KEEP("spec.nodeName", "absent.path"), POD, ALWAYS "},\"spec\":{\"nodeName\":\"n1\"}}");
    assert_cut(KEEP("metadata.annotations[x.y/z]"), POD, ALWAYS ",\"annotations\":{\"x.y/z\":\"1\"}}}");
    assert_cut(KEEP("metadata"), "{\"metadata\":{\"annotations\":{},\"managedFields\":[]},\"x\":1}",
        "{\"metadata\":{\"annotations\":{},\"managedFields\":[]}}");
    /* a path through a scalar: it stands as it is */
    assert_cut(KEEP("a.b"), "{\"a\":5,\"metadata\":null}", "{\"a\":5,\"metadata\":null}");
    assert_cut(KEEP("a.b"), "{\"a\":{\"c\":1},\"x\":{\"a\":{\"b\":1}}}", "{\"a\":{}}");
}

static void a_path_through_a_list_means_all_its_items(void **state)
{
    (void)state;
    assert_cut(KEEP("spec.containers.image"), POD,
        ALWAYS "},\"spec\":{\"containers\":[{\"image\":\"i\"},{\"image\":\"j\"}]}}");
    assert_cut(KEEP("a.b"), "{\"a\":[[{\"b\":1,\"c\":2}],{\"c\":3},4,[]]}", "{\"a\":[[{\"b\":1}],{},4,[]]}");
}

static void a_shorter_path_holds_the_longer_ones(void **state)
{
    (void)state;
    assert_cut(KEEP("spec.containers.image", "spec"), "{\"spec\":{\"a\":1,\"containers\":[{\"x\":1}]}}",
        "{\"spec\":{\"a\":1,\"containers\":[{\"x\":1}]}}");
    assert_cut(KEEP("spec", "spec.containers.image"), "{\"spec\":{\"a\":1,\"containers\":[{\"x\":1}]}}",
        "{\"spec\":{\"a\":1,\"containers\":[{\"x\":1}]}}");
}

static void managed_fields_go_alone_and_from_the_object_alone(void **state)
{
    (void)state;
    assert_cut(kl_projection_without_managed_fields(), POD,
        ALWAYS ",\"annotations\":{\"x.y/"
               "z\":\"1\",\"b\":\"2\"}},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\","
               "\"image\":\"i\"},{\"name\":\"d\",\"image\":\"j\",\"metadata\":{\"managedFields\":1}}]},"
               "\"status\":{\"phase\":\"Running\"}}");
    assert_cut(kl_projection_without_managed_fields(),
        "{\"metadata\":[{\"managedFields\":1}],\"managedFields\":2}",
        "{\"metadata\":[{\"managedFields\":1}],\"managedFields\":2}");
    assert_cut(kl_projection_without_managed_fields(), "{\"metadata\":{\"managed\\u0046ields\":{}}}",
        "{\"metadata\":{}}");
}

static void says_which_path_is_wrong(void **state)
{
    (void)state;
    static const char *const bad[] = {"spec.containers[1].image", "", "a..b", "a[", ".a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kl_projection *p = NULL;
        kl_err err = KL_ERR_INIT;
        const char *const paths[] = {"spec.ok", bad[i]};
        assert_fails(kl_projection_new(paths, 2, &p, &err), KL_EINVAL, &err, bad[i]);
        assert_null(p);
    }
}

static void tells_what_it_keeps_and_whether_two_keep_the_same(void **state)
{
    (void)state;
    kl_projection *a = KEEP("spec.containers.image", "status.phase"),
                  *b = KEEP("status.phase", "spec.containers.image", "metadata.name"), *c = KEEP("status"),
                  *d = kl_projection_without_managed_fields();
    static const struct {
        const char *keys[3];
        size_t n;
        bool a, c, d;
    } rows[] = {
        {{"status", "phase"}, 2, true, true, true},
        {{"status", "message"}, 2, false, true, true},
        {{"spec", "containers", "image"}, 3, true, false, true},
        {{"spec", "containers", "name"}, 3, false, false, true},
        {{"metadata", "managedFields"}, 2, false, false, false},
        {{"metadata", "uid"}, 2, true, true, true},
        {{"metadata", "labels", "x"}, 3, true, true, true},
        {{"metadata", "annotations"}, 2, false, false, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(kl_projection_keeps(a, rows[i].keys, rows[i].n), rows[i].a);
        assert_int_equal(kl_projection_keeps(c, rows[i].keys, rows[i].n), rows[i].c);
        assert_int_equal(kl_projection_keeps(d, rows[i].keys, rows[i].n), rows[i].d);
        assert_true(kl_projection_keeps(NULL, rows[i].keys, rows[i].n));
    }
    assert_true(kl_projection_equal(a, b));
    assert_true(kl_projection_equal(NULL, NULL));
    assert_false(kl_projection_equal(a, c));
    assert_false(kl_projection_equal(a, d));
    assert_false(kl_projection_equal(a, NULL));
    assert_ptr_equal(kl_projection_ref(a), a);
    kl_projection_unref(a);
    kl_projection_unref(a);
    kl_projection_unref(b);
    kl_projection_unref(c);
    kl_projection_unref(d);
    kl_projection_unref(NULL);
    assert_null(kl_projection_ref(NULL));
}

/* What is left out is never stored. */
static void what_is_left_out_takes_no_memory(void **state)
{
    (void)state;
    size_t before, after, bytes;
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    kl_projection *p = projection(NULL, 0);
    kl_stream_handler h = {.item = keep_last, .arg = &v, .keep = p};
    kl_stream *s = kl_stream_list_new(&h);
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, "{\"items\":[{\"metadata\":{\"name\":\"a\"},\"spec\":[");
    for (int i = 0; i < 5000; i++)
        kl_buf_printf(&text, "{\"name\":\"item %d of many\"},", i);
    kl_buf_puts(&text, "0]}]}");
    kl_value_memory(&before, &bytes);
    assert_ok(kl_stream_feed(s, text.data, text.len, &err), &err);
    kl_value_memory(&after, &bytes);
    assert_true(after - before < 50);
    kl_stream_free(s);
    kl_value_unref(v);
    kl_projection_unref(p);
    kl_buf_fini(&text);
}

#define CASE(f) cmocka_unit_test_teardown(f, nothing_left)
KL_TESTS(CASE(keeps_the_paths_and_what_makes_an_object), CASE(a_path_through_a_list_means_all_its_items),
    CASE(a_shorter_path_holds_the_longer_ones), CASE(managed_fields_go_alone_and_from_the_object_alone),
    CASE(says_which_path_is_wrong), CASE(tells_what_it_keeps_and_whether_two_keep_the_same),
    CASE(what_is_left_out_takes_no_memory))

/* not in tsan: it starts no thread */
