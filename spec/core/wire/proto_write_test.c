/* proto_write_test.c - protobuf made from JSON equals that of Go's serializers for the same object, byte for
 * byte. */
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

static const kl_value *of_json(const char *text)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_value_decode(text, strlen(text), &v, &err))
        fail_msg("%s", err.message);
    return v;
}

static const char *version_of(const kl_value *v) { return kl_value_str_at(v, "apiVersion", NULL); }
static const char *kind_of(const kl_value *v) { return kl_value_str_at(v, "kind", NULL); }

/* A time that is there and zero: JSON says null of it, which is "not there" to whoever reads it, Go too. */
static bool says_null_of_a_time(const char *json)
{
    return strstr(json, "\"deletionTimestamp\":null") || strstr(json, "\"lastScaleTime\":null")
        || strstr(json, "\"beginRefreshAt\":null");
}

static void every_kind_is_written_as_go_writes_it(void **state)
{
    (void)state;
    size_t lost = 0;
    for (size_t i = 0; i < all.n; i++) {
        const kl_value *v = of_json(all.v[i].json);
        kl_buf out = KL_BUF_INIT;
        kl_err err = KL_ERR_INIT;
        if (kl_proto_write(version_of(v), kind_of(v), v, &out, &err))
            fail_msg("%.200s: %s", all.v[i].json, err.message);
        if (says_null_of_a_time(all.v[i].json))
            lost++;
        else if (out.len != all.v[i].n || memcmp(out.data, all.v[i].proto, out.len))
            fail_msg("%zu bytes, not %zu: %.200s", out.len, all.v[i].n, all.v[i].json);
        kl_buf_fini(&out);
        kl_value_unref(v);
    }
    assert_true(lost < 5);
}

static void lists_and_frames_are_written_as_go_writes_them(void **state)
{
    (void)state;
    kl_buf items = KL_BUF_INIT, raw = KL_BUF_INIT, meta = KL_BUF_INIT, want = KL_BUF_INIT, got = KL_BUF_INIT;
    const kl_value *metadata = of_json("{\"resourceVersion\":\"77\"}"),
                   *map = of_json("{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"v\"}}");
    put_text(&meta, 1, "");
    put_text(&meta, 2, "77");
    put_text(&meta, 3, "");
    put_bytes(&raw, 1, meta.data, meta.len);
    for (int i = 0; i < 3; i++) {
        kl_buf one = KL_BUF_INIT;
        kl__unknown u;
        assert_int_equal(kl_proto_write_item("v1", "ConfigMap", map, &items, NULL), KL_OK);
        assert_int_equal(kl_proto_write("v1", "ConfigMap", map, &one, NULL), KL_OK);
        assert_int_equal(kl__unknown_read(one.data, one.len, &u, NULL), KL_OK);
        put_bytes(&raw, 2, u.raw, u.raw_n);
        kl_buf_fini(&one);
    }
    put_unknown(&want, "v1", "ConfigMapList", raw.data, raw.len);
    assert_int_equal(kl_proto_write_list("v1", "ConfigMapList", metadata, &items, &got, NULL), KL_OK);
    assert_int_equal(got.len, want.len);
    assert_memory_equal(got.data, want.data, want.len);
    for (size_t i = 0; i < all.n; i++) {
        kl_buf object = KL_BUF_INIT;
        kl_buf_clear(&want);
        kl_buf_clear(&got);
        kl_buf_add(&object, all.v[i].proto, all.v[i].n);
        put_frame(&want, "MODIFIED", all.v[i].proto, all.v[i].n);
        assert_int_equal(kl_proto_write_event("MODIFIED", &object, &got), KL_OK);
        assert_int_equal(got.len, want.len);
        assert_memory_equal(got.data, want.data, want.len);
        kl_buf_fini(&object);
    }
    kl_value_unref(metadata);
    kl_value_unref(map);
    kl_buf_fini(&items);
    kl_buf_fini(&raw);
    kl_buf_fini(&meta);
    kl_buf_fini(&want);
    kl_buf_fini(&got);
}

static void assert_refused(const char *kind, const char *json, const char *message)
{
    const kl_value *v = of_json(json);
    kl_buf out = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(kl_proto_write("v1", kind, v, &out, &err), KL_EINVAL);
    assert_string_equal(kl_err_message(&err), message);
    kl_err_fini(&err);
    kl_buf_fini(&out);
    kl_value_unref(v);
}

static void a_wrong_type_is_named(void **state)
{
    (void)state;
    assert_refused("ConfigMap", "{\"data\":{\"k\":1}}", "data.k is integer, but its protobuf needs a string");
    assert_refused(
        "Secret", "{\"data\":{\"k\":\"?\"}}", "data.k is string, but its protobuf needs bytes in base64");
    assert_refused("Pod", "{\"spec\":{\"containers\":[{\"ports\":{}}]}}",
        "spec.containers.ports is object, but its protobuf needs a list");
    assert_refused("Pod", "{\"metadata\":{\"creationTimestamp\":\"now\"}}",
        "metadata.creationTimestamp is string, but its protobuf needs a time");
    assert_refused("Pod", "{\"spec\":{\"hostNetwork\":\"yes\"}}",
        "spec.hostNetwork is string, but its protobuf needs a boolean");
    assert_refused("Widget", "{}", "v1 Widget has no protobuf here");
}

static void a_full_buffer_is_reported(void **state)
{
    (void)state;
    const kl_value *v = of_json("{\"data\":{\"key\":\"a value of some length, longer than the buffer\"}}");
    for (size_t max = 1; max < 40; max++) {
        kl_buf out;
        kl_err err = KL_ERR_INIT;
        kl_buf_init(&out, max);
        assert_int_equal(kl_proto_write("v1", "ConfigMap", v, &out, &err), KL_ETOOBIG);
        kl_err_fini(&err);
        kl_buf_fini(&out);
    }
    kl_value_unref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_written_as_go_writes_it),
        cmocka_unit_test(lists_and_frames_are_written_as_go_writes_them),
        cmocka_unit_test(a_wrong_type_is_named),
        cmocka_unit_test(a_full_buffer_is_reported),
    };
    return cmocka_run_group_tests(tests, read_objects, free_objects);
}

/* not in tsan: it starts no thread */
