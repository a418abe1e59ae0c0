/* decode_last_test.c - a repeated key: rejected in objects from the network, replaced in texts of users. */
#include "support/test.h"
#include "base/mem.h"
#include "value/value.h"

static void check(const char *text, const char *want)
{
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_value_decode_last(text, strlen(text), &v, &err), &err);
    char *json = kl_value_to_json(v);
    assert_string_equal(json, want);
    kl_free(json);
    kl_value_unref(v);
    kl_err_fini(&err);
}

static void the_last_value_stands_in_the_first_place(void **state)
{
    (void)state;
    check("{\"a\":1,\"b\":0,\"a\":2,\"a\":3}", "{\"a\":3,\"b\":0}");
    check("{\"a\":{\"x\":1},\"a\":[]}", "{\"a\":[]}");
    check("{\"a\":0,\"a\":{\"q\":1,\"q\":{\"q\":2}},\"c\":3}", "{\"a\":{\"q\":{\"q\":2}},\"c\":3}");
}

/* Above some number of members keys are found through a table and no longer by looking at each. */
static void however_many_members_there_are(void **state)
{
    (void)state;
    char text[4096] = "{", want[4096] = "{", member[32];
    for (int i = 0; i < 100; i++) {
        snprintf(member, sizeof member, "\"k%d\":%d,", i, i);
        strcat(text, member);
        snprintf(member, sizeof member, "%s\"k%d\":%d", i ? "," : "", i, i == 7 || i == 99 ? -i : i);
        strcat(want, member);
    }
    strcat(text, "\"k7\":0,\"k99\":-99,\"k7\":-7}");
    strcat(want, "}");
    check(text, want);
}

static void is_still_strict_about_everything_else(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"a\":1,\"a\":}", "{\"a\":{},\"a\":[}", "{\"a\":1,\"a\":2,}", "{\"a\":1,\"a\"", ""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        kl_err err = KL_ERR_INIT;
        const kl_value *v = NULL;
        assert_fails(
            kl_value_decode_last(bad[i], strlen(bad[i]), &v, &err), KL_ESYNTAX, &err, "JSON is malformed");
        assert_null(v);
    }
}

static void the_ordinary_decoder_refuses_a_repeated_key(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    const char *text = "{\"a\":1,\"a\":2}";
    assert_fails(kl_value_decode(text, strlen(text), &v, &err), KL_ESYNTAX, &err, "duplicate key \"a\"");
}

KL_TESTS(cmocka_unit_test(the_last_value_stands_in_the_first_place),
    cmocka_unit_test(however_many_members_there_are), cmocka_unit_test(is_still_strict_about_everything_else),
    cmocka_unit_test(the_ordinary_decoder_refuses_a_repeated_key))

/* not in tsan: it starts no thread */
