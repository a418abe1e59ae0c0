/* proto_test.c - protobuf from Go's serializers decodes to the same as their JSON, with any guide of the
 * decoder. */
#include "support/test.h"

#include "wire/proto_impl.h"
#include "support/proto.h"

static go_objects all;

static int read_objects(void **state)
{
    (void)state;
    all = go_objects_read("spec/fixtures/proto/objects.txt");
    return all.n > 150 ? 0 : -1;
}

static int free_objects(void **state)
{
    (void)state;
    go_objects_free(&all);
    return 0;
}

/* As text: key order counts. */
static void assert_same(const kl_value *got, const kl_value *want)
{
    char *a = kl_value_to_json(got), *b = kl_value_to_json(want);
    assert_string_equal(a, b);
    kl_free(a);
    kl_free(b);
}

static const kl_value *of_json(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_value_decode(text, strlen(text), &v, &err))
        fail_msg("%s", err.message);
    return v;
}

static void every_kind_decodes_as_its_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < all.n; i++) {
        const kl_value *got = NULL, *want = of_json(all.v[i].json);
        kl_err err = KL_ERR_INIT;
        bool outdated = true;
        if (kl_proto_decode(all.v[i].proto, all.v[i].n, &got, &outdated, &err))
            fail_msg("%.200s: %s", all.v[i].json, err.message);
        assert_false(outdated);
        assert_same(got, want);
        assert_true(
            kl_proto_has(kl_value_str_at(got, "apiVersion", NULL), kl_value_str_at(got, "kind", NULL)));
        kl_value_unref(got);
        kl_value_unref(want);
    }
}

static void a_guide_that_is_the_same_is_taken_over(void **state)
{
    (void)state;
    kl__proto d = {.alone = true};
    for (size_t i = 0; i < all.n; i++) {
        const kl_value *got, *guide = of_json(all.v[i].json);
        kl__unknown u;
        assert_int_equal(kl__unknown_read(all.v[i].proto, all.v[i].n, &u, NULL), KL_OK);
        assert_int_equal(kl__unknown_decode(&d, &u, guide, &got, NULL), KL_OK);
        assert_ptr_equal(got, guide);
        kl_value_unref(got);
        kl_value_unref(guide);
    }
    kl__proto_fini(&d);
}

static void any_other_guide_changes_nothing(void **state)
{
    (void)state;
    kl__proto d = {.alone = true};
    for (size_t i = 0; i < all.n; i++) {
        const kl_value *want = of_json(all.v[i].json);
        for (size_t k = i % 3; k < all.n; k += 17) {
            const kl_value *got, *guide = of_json(all.v[k].json);
            kl__unknown u;
            assert_int_equal(kl__unknown_read(all.v[i].proto, all.v[i].n, &u, NULL), KL_OK);
            assert_int_equal(kl__unknown_decode(&d, &u, guide, &got, NULL), KL_OK);
            assert_same(got, want);
            kl_value_unref(got);
            kl_value_unref(guide);
        }
        kl_value_unref(want);
    }
    kl__proto_fini(&d);
}

/* Any bytes are an object or an error, and the error says where. */
static void each_truncation_is_an_error_or_an_object(void **state)
{
    (void)state;
    kl__proto d = {.alone = true};
    for (size_t i = 0; i < all.n; i += 7) {
        kl__unknown u;
        assert_int_equal(kl__unknown_read(all.v[i].proto, all.v[i].n, &u, NULL), KL_OK);
        const kl__proto_msg *m = kl__proto_find(u.api_version, u.api_version_n, u.kind, u.kind_n);
        for (size_t n = 0; n < u.raw_n; n += 1 + u.raw_n / 300) {
            const kl_value *v = NULL;
            kl_err err = KL_ERR_INIT;
            char *piece = kl_alloc(n ? n : 1);
            memcpy(piece, u.raw, n);
            if (kl__proto_message(&d, m, piece, n, NULL, NULL, &v, &err)) {
                assert_non_null(strstr(err.message, "the protobuf has "));
                assert_non_null(strstr(err.message, " at byte "));
            }
            kl_value_unref(v);
            kl_err_fini(&err);
            kl_free(piece);
        }
    }
    kl__proto_fini(&d);
}

static kl_status decode_raw(const char *api_version, const char *kind, const kl_buf *raw, kl_err *err)
{
    kl_buf b = KL_BUF_INIT;
    const kl_value *v = NULL;
    put_unknown(&b, api_version, kind, kl_buf_str(raw), raw->len);
    kl_status st = kl_proto_decode(b.data, b.len, &v, NULL, err);
    kl_value_unref(v);
    kl_buf_fini(&b);
    return st;
}

/* A field that holds `raw`, which is freed. */
static kl_buf in(unsigned number, kl_buf raw)
{
    kl_buf b = KL_BUF_INIT;
    put_bytes(&b, number, raw.data ? raw.data : "", raw.len);
    kl_buf_fini(&raw);
    return b;
}

static kl_buf bytes(const char *s, size_t n)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_add(&b, s, n);
    return b;
}

static void mistakes_name_their_field(void **state)
{
    (void)state;
    const struct {
        kl_buf raw;
        const char *why;
    } mistakes[] = {
        {in(1, in(1, bytes("\xff", 1))), "a string that is not UTF-8 at byte 4, in metadata.name"},
        {in(2, in(2, in(1, bytes("\xc0\x80", 2)))),
            "a string that is not UTF-8 at byte 6, in spec.containers[0].name"},
        {in(1, bytes("\x08\x01", 2)),
            "a field of another wire type than its own at byte 2, in metadata.name"},
        {in(1, bytes("\x0a\x7f", 2)),
            "a malformed field, or one that ends beyond its message at byte 2, in metadata"},
        {in(1, bytes("\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 11)),
            "a malformed field, or one that ends beyond its message at byte 2, in metadata"},
        {in(1, bytes("\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 13)), "a malformed field"},
        /* a group: nobody has written any for years */
        {in(1, bytes("\x0b", 1)), "a malformed field"},
        {in(1, bytes("\x00\x00", 2)), "a malformed field"},
        {in(1, in(8, bytes("\x08\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10))),
            "a time out of range at byte 4, in metadata.creationTimestamp"},
        {in(1, in(11, bytes("\x08\x01", 2))), "a malformed entry of a map at byte 4, in metadata.labels"},
        {in(1, in(11, in(1, bytes("\xff", 1)))), "a key that is not UTF-8"},
        {in(1, in(17, in(7, in(1, bytes("{\"a\"", 4))))),
            "invalid JSON at byte 9, in metadata.managedFields[0].fieldsV1: "},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        kl_buf raw = mistakes[i].raw;
        kl_err err = KL_ERR_INIT;
        assert_fails(decode_raw("v1", "Pod", &raw, &err), KL_ESYNTAX, &err, mistakes[i].why);
        kl_buf_fini(&raw);
    }
}

static void invalid_envelopes_are_rejected(void **state)
{
    (void)state;
    const kl_value *v;
    bool outdated;
    kl_err err = KL_ERR_INIT;
    assert_fails(kl_proto_decode("{}", 2, &v, NULL, &err), KL_ESYNTAX, &err, "does not begin with \"k8s\"");
    assert_fails(kl_proto_decode("k8s\0\x0a\x7f", 6, &v, NULL, &err), KL_ESYNTAX, &err,
        "the protobuf's envelope is malformed or truncated at byte 4");
    assert_fails(kl_proto_decode("k8s\0\x1a\x04gzip", 10, &v, NULL, &err), KL_ESYNTAX, &err,
        "the protobuf's content is encoded as \"gzip\", which was not requested");
    kl_buf b = KL_BUF_INIT;
    put_unknown(&b, "example.com/v1", "Widget", "", 0);
    assert_fails(kl_proto_decode(b.data, b.len, &v, &outdated, &err), KL_ESYNTAX, &err,
        "the protobuf is of a kind without a table here: example.com/v1 Widget");
    assert_true(outdated);
    kl_buf_fini(&b);
    assert_false(kl_proto_has("example.com/v1", "Widget"));
    assert_false(kl_proto_has("v1", "PodList"));
    assert_true(kl_proto_has("meta.k8s.io/v1", "PartialObjectMetadata"));
}

/* A newer server's fields: said when they hold something. */
static void fields_without_a_table_are_reported(void **state)
{
    (void)state;
    for (int set = 0; set < 2; set++) {
        kl_buf pod = KL_BUF_INIT, b = KL_BUF_INIT;
        const kl_value *v;
        bool outdated;
        put_text(&pod, 150, set ? "new" : "");
        put_number(&pod, 151, 0);
        put_unknown(&b, "v1", "Pod", pod.data, pod.len);
        assert_int_equal(kl_proto_decode(b.data, b.len, &v, &outdated, NULL), KL_OK);
        assert_int_equal(outdated, set);
        char *text = kl_value_to_json(v);
        assert_string_equal(text,
            "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{},\"spec\":{\"containers\":null},"
            "\"status\":{}}");
        kl_free(text);
        kl_value_unref(v);
        kl_buf_fini(&pod);
        kl_buf_fini(&b);
    }
}

/* Other writers than Go's may put maps and lists in any order and pieces. */
static void scattered_lists_and_unsorted_maps_come_together(void **state)
{
    (void)state;
    kl_buf meta = KL_BUF_INIT, pod = KL_BUF_INIT, b = KL_BUF_INIT;
    const char *labels[][2] = {{"m", "1"}, {"a", "2"}, {"z", "3"}, {"a", "4"}};
    const kl_value *v;
    for (size_t i = 0; i < 4; i++) {
        kl_buf entry = KL_BUF_INIT;
        put_text(&entry, 1, labels[i][0]);
        put_text(&entry, 2, labels[i][1]);
        put_bytes(&meta, 11, entry.data, entry.len);
        kl_buf_fini(&entry);
        put_text(&meta, 14, i % 2 ? "finalizer.example.com/one" : "finalizer.example.com/two");
        put_text(&meta, 1, labels[i][1]);
    }
    put_bytes(&pod, 1, meta.data, meta.len);
    put_unknown(&b, "v1", "ConfigMap", pod.data, pod.len);
    assert_int_equal(kl_proto_decode(b.data, b.len, &v, NULL, NULL), KL_OK);
    char *text = kl_value_to_json(v);
    assert_string_equal(text,
        "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"4\",\"labels\":{\"a\":\"4\","
        "\"m\":\"1\",\"z\":\"3\"},"
        "\"finalizers\":[\"finalizer.example.com/two\",\"finalizer.example.com/one\",\"finalizer.example.com/"
        "two\",\"finalizer.example.com/one\"]}}");
    kl_free(text);
    kl_value_unref(v);
    kl_buf_fini(&meta);
    kl_buf_fini(&pod);
    kl_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_decodes_as_its_json),
        cmocka_unit_test(a_guide_that_is_the_same_is_taken_over),
        cmocka_unit_test(any_other_guide_changes_nothing),
        cmocka_unit_test(each_truncation_is_an_error_or_an_object),
        cmocka_unit_test(mistakes_name_their_field),
        cmocka_unit_test(invalid_envelopes_are_rejected),
        cmocka_unit_test(fields_without_a_table_are_reported),
        cmocka_unit_test(scattered_lists_and_unsorted_maps_come_together),
    };
    return cmocka_run_group_tests(tests, read_objects, free_objects);
}

/* not in tsan: it starts no thread */
