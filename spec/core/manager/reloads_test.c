/* reloads_test.c - the stored outcomes of reloads, and their counts. */
#include "support/test.h"

#include "base/mem.h"
#include "manager/reloads.h"

static void note(
    kl_reloads *r, const char *script, kl_reload_result result, int generation, const char *message)
{
    kl_reloads_note(r,
        &(kl_reload){.script = script, .result = result, .generation = generation, .message = message},
        KL_SECONDS(1700000000) + KL_SECONDS(generation));
}

static int64_t generation(const kl_value *v, size_t i)
{
    int64_t n = -1;
    assert_true(kl_value_int(kl_value_get(kl_value_item(v, i), "generation"), &n));
    return n;
}

static void the_last_come_first_and_old_ones_go(void **state)
{
    (void)state;
    kl_reloads *r = kl_reloads_new();
    const kl_value *v = kl_reloads_value(r);
    assert_int_equal(kl_value_len(v), 0);
    kl_value_unref(v);
    for (int i = 1; i <= KL_RELOADS_KEPT + 5; i++)
        note(r, "a.lua", KL_RELOAD_TAKEN, i, NULL);
    note(r, "b.lua", KL_RELOAD_REFUSED, 7, "b.lua:3: no");
    v = kl_reloads_value(r);
    assert_int_equal(kl_value_len(v), KL_RELOADS_KEPT);
    assert_string_equal(kl_value_str_at(kl_value_item(v, 0), "message", NULL), "b.lua:3: no");
    assert_string_equal(kl_value_str_at(kl_value_item(v, 0), "result", NULL), "refused");
    assert_string_equal(kl_value_str_at(kl_value_item(v, 0), "time", NULL), "2023-11-14T22:13:27Z");
    assert_null(kl_value_get(kl_value_item(v, 1), "message"));
    assert_int_equal(generation(v, 1), KL_RELOADS_KEPT + 5);
    assert_int_equal(generation(v, KL_RELOADS_KEPT - 1), 7);
    kl_value_unref(v);
    kl_reloads_free(r);
}

static void assert_written(kl_reloads *r, const char *line)
{
    kl_buf out = KL_BUF_INIT;
    kl_reloads_write(r, &out);
    if (!strstr(kl_buf_str(&out), line))
        fail_msg("no %s in\n%s", line, kl_buf_str(&out));
    kl_buf_fini(&out);
}

static void a_script_is_refused_until_it_is_taken_or_mended(void **state)
{
    (void)state;
    kl_reloads *r = kl_reloads_new();
    kl_buf out = KL_BUF_INIT;
    kl_reloads_write(r, &out);
    assert_int_equal(out.len, 0);
    kl_buf_fini(&out);
    note(r, "a.lua", KL_RELOAD_REFUSED, 1, "no");
    note(r, "a.lua", KL_RELOAD_REFUSED, 1, "no again");
    assert_written(r, "kubelua_reloads_total{script=\"a.lua\",result=\"refused\"} 2\n");
    assert_written(r, "kubelua_reloads_total{script=\"a.lua\",result=\"taken\"} 0\n");
    assert_written(r, "kubelua_reload_refused{script=\"a.lua\"} 1\n");
    note(r, "a.lua", KL_RELOAD_WITHDRAWN, 1, NULL);
    assert_written(r, "kubelua_reload_refused{script=\"a.lua\"} 0\n");
    note(r, "a.lua", KL_RELOAD_TAKEN, 2, NULL);
    note(r, "a.lua", KL_RELOAD_ROLLED_BACK, 3, "it failed much more");
    assert_written(r, "kubelua_reloads_total{script=\"a.lua\",result=\"rolled_back\"} 1\n");
    assert_written(r, "kubelua_reload_refused{script=\"a.lua\"} 1\n");
    kl_reloads_free(r);
}

KL_TESTS(cmocka_unit_test(the_last_come_first_and_old_ones_go),
    cmocka_unit_test(a_script_is_refused_until_it_is_taken_or_mended))

/* not in tsan: it starts no thread */
