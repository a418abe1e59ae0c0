/* record_test.c - the lines of a recording about objects: e2e/replay_spec replays whole ones. */
#include "support/json.h"

#include "base/file.h"
#include "lab/record_impl.h"

/* The numbers of an object that no cache holds, recorded twice, and the lines of the recording. */
static kl_buf recorded(const kl_value *object, uint64_t ids[2])
{
    char path[] = "/tmp/kubelua-record-XXXXXX";
    close(mkstemp(path));
    remove(path);
    kl_err err = KL_ERR_INIT;
    kl_record *r;
    kl_buf text = KL_BUF_INIT;
    assert_ok(kl_record_new(&(kl_record_options){.path = path}, &r, &err), &err);
    kl_lock(&r->mu);
    for (int i = 0; i < 2; i++)
        ids[i] = kl__object_locked(r, "v1/Secret", object);
    kl_unlock(&r->mu);
    kl_record_free(r);
    assert_ok(kl_file_read(path, "recording", &text, &err), &err);
    remove(path);
    return text;
}

static void an_object_that_no_cache_holds_has_a_line_each_time(void **state)
{
    (void)state;
    uint64_t ids[2];
    const kl_value *secret = json("{'metadata':{'name':'s','namespace':'ns'},'data':{'key':'c2VjcmV0'}}");
    kl_buf text = recorded(secret, ids);
    char *line = strchr(kl_buf_str(&text), '\n');
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ids[i], i + 1);
        assert_non_null(line);
        char *end = strchr(++line, '\n');
        assert_non_null(end);
        *end = '\0';
        const kl_value *v = json(line);
        assert_string_equal(kl_value_str_at(v, "t", NULL), "object");
        assert_int_equal(kl_value_double(kl_value_get(v, "o"), 0), i + 1);
        assert_string_equal(kl_value_str_at(v, "v", "metadata", "name", NULL), "s");
        assert_null(strstr(line, "c2VjcmV0"));
        kl_value_unref(v);
        line = end;
    }
    assert_string_equal(line + 1, "");
    kl_buf_fini(&text);
    kl_value_unref(secret);
}

KL_TESTS(cmocka_unit_test(an_object_that_no_cache_holds_has_a_line_each_time))
