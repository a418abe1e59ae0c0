/* projection_kept_test.c - the distinction of projected and whole objects, and patches that would erase
 * fields that were left out. */
#include "support/test.h"

#include "base/mem.h"
#include "value/projection.h"
#include "wire/stream.h"

static const kl_value *json(const char *text)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    return v;
}

static kl_projection *keeping(const char *const *paths, size_t n)
{
    kl_err err = KL_ERR_INIT;
    kl_projection *p = NULL;
    assert_ok(kl_projection_new(paths, n, &p, &err), &err);
    return p;
}

static const char *const PATHS[] = {"spec.nodeName", "spec.containers.image", "status"};
#define WHOLE                                                                                                \
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}},"        \
    "\"spec\":{\"nodeName\":\"n\","                                                                          \
    "\"containers\":[{\"image\":\"i\"},{\"name\":\"c\",\"image\":\"j\"}]},\"status\":{\"phase\":"            \
    "\"Running\"}}"

static kl_status take(void *arg, const kl_value *object, kl_err *err)
{
    (void)err;
    *(const kl_value **)arg = object;
    return KL_OK;
}

static void an_object_that_was_cut_is_covered_and_a_whole_one_is_not(void **state)
{
    (void)state;
    kl_projection *p = keeping(PATHS, 3);
    const kl_value *whole = json(WHOLE), *cut = NULL;
    kl_err err = KL_ERR_INIT;
    kl_stream *s = kl_stream_list_new(
        &(kl_stream_handler){.item = take, .arg = &cut, .max_object = 10000, .keep = p});
    assert_ok(kl_stream_feed(s, "{\"kind\":\"PodList\",\"items\":[" WHOLE "]}",
                  strlen("{\"kind\":\"PodList\",\"items\":[" WHOLE "]}"), &err),
        &err);
    assert_ok(kl_stream_finish(s, NULL, &err), &err);
    kl_stream_free(s);
    assert_false(kl_projection_covers(p, whole)); /* it has spec.containers.name */
    assert_true(kl_projection_covers(p, cut));
    assert_true(kl_projection_covers(NULL, whole));
    kl_projection *without = kl_projection_without_managed_fields();
    assert_true(kl_projection_covers(without, whole));
    const kl_value *managed = json("{\"metadata\":{\"name\":\"a\",\"managedFields\":[]}}");
    assert_false(kl_projection_covers(without, managed));
    kl_projection_unref(without);
    kl_value_unref(managed);
    kl_value_unref(whole);
    kl_value_unref(cut);
    kl_projection_unref(p);
}

static void a_patch_of_a_list_whose_items_were_cut_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *patch, *want;
    } cases[] = {
        {"{\"spec\":{\"containers\":[{\"image\":\"k\"}]}}", "spec.containers"},
        {"{\"spec\":{\"nodeName\":\"m\"}}", NULL},
        /* nothing of it was read: it is meant as it stands */
        {"{\"spec\":{\"tolerations\":[]}}", NULL},
        {"{\"status\":{\"conditions\":[{}]}}", NULL}, /* kept whole */
        {"{\"metadata\":{\"finalizers\":[]}}", NULL},
        {"{\"spec\":{\"containers\":null}}", NULL},
    };
    kl_projection *p = keeping(PATHS, 3);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *patch = json(cases[i].patch);
        char *at = kl_projection_cut_list(p, patch);
        if (cases[i].want)
            assert_string_equal(at, cases[i].want);
        else
            assert_null(at);
        kl_free(at);
        assert_null(kl_projection_cut_list(NULL, patch));
        kl_value_unref(patch);
    }
    kl_projection_unref(p);
}

KL_TESTS(cmocka_unit_test(an_object_that_was_cut_is_covered_and_a_whole_one_is_not),
    cmocka_unit_test(a_patch_of_a_list_whose_items_were_cut_is_found))

/* not in tsan: it starts no thread */
