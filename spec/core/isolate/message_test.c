/* message_test.c - messages over a socket arrive unchanged, and invalid ones are reported. */
#include "support/test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/mem.h"
#include "isolate/message.h"

static kl_wire a, b;

static int setup(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    kl_wire_init(&a, ends[0], 1 << 16);
    kl_wire_init(&b, ends[1], 1 << 16);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    close(a.fd);
    if (b.fd >= 0)
        close(b.fd);
    kl_wire_fini(&a);
    kl_wire_fini(&b);
    return 0;
}

static const kl_value *json(const char *text)
{
    const kl_value *v = NULL;
    assert_int_equal(kl_value_decode(text, strlen(text), &v, NULL), KL_OK);
    return v;
}

static void values_and_their_absence_come_out_as_they_went_in(void **state)
{
    (void)state;
    const kl_value *v[] = {json("{\"a\":[1,1.5,\"x\",null,18446744073709551615],\"b\":{},\"c\":[]}"), NULL,
        json("null"), json("1.0")};
    kl_message m;
    for (int i = 0; i < 3; i++)
        assert_int_equal(kl_wire_send(&a, 1 << 16, 7 + i, v, 4, NULL), KL_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kl_wire_take(&b, &m, NULL), KL_OK);
        assert_int_equal(m.what, 7 + i);
        assert_int_equal(m.n, 4);
        assert_true(kl_value_equal(m.v[0], v[0]));
        assert_null(m.v[1]);
        assert_non_null(m.v[2]);
        assert_int_equal(kl_value_type(m.v[2]), KL_NULL);
        assert_int_equal(kl_value_type(m.v[3]), kl_value_type(v[3]));
        assert_null(kl_message_value(&m, 4));
        kl_message_fini(&m);
    }
    for (int i = 0; i < 4; i++)
        kl_value_unref(v[i]);
}

static void a_value_after_the_last_is_none(void **state)
{
    (void)state;
    const kl_value *v[] = {json("1"), json("2")};
    kl_message m = {.n = 1, .v = v};
    assert_ptr_equal(kl_message_value(&m, 0), v[0]);
    assert_null(kl_message_value(&m, 1));
    kl_value_unref(v[0]);
    kl_value_unref(v[1]);
}

/* What `bytes` are said to be. */
static kl_status taken(const char *bytes, size_t n)
{
    kl_message m;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(write(a.fd, bytes, n), n);
    kl_status st = kl_wire_take(&b, &m, &err);
    kl_message_fini(&m);
    kl_err_fini(&err);
    b.in.len = 0;
    return st;
}

#define TAKEN(s) taken(s, sizeof s - 1)

static void an_invalid_message_is_reported(void **state)
{
    (void)state;
    assert_int_equal(TAKEN("\5\0\0\0\7\0\0\0\0"), KL_OK);
    assert_int_equal(TAKEN("\4\0\0\0\7\0\0\0\0"), KL_ESYNTAX); /* too short for a head */
    assert_int_equal(TAKEN("\0\0\0\0\7\0\0\0\0"), KL_ESYNTAX);
    assert_int_equal(TAKEN("\377\377\377\377\7\0\0\0\0"), KL_ETOOBIG);
    /* a value that is not there */
    assert_int_equal(TAKEN("\5\0\0\0\7\1\0\0\0"), KL_ESYNTAX);
    assert_int_equal(TAKEN("\5\0\0\0\7\377\377\377\377"), KL_ESYNTAX);
    /* longer than the message */
    assert_int_equal(TAKEN("\12\0\0\0\7\1\0\0\0\2\0\0\0x"), KL_ESYNTAX);
    assert_int_equal(TAKEN("\12\0\0\0\7\1\0\0\0\1\0\0\0x"), KL_ESYNTAX);    /* no JSON */
    assert_int_equal(TAKEN("\13\0\0\0\7\1\0\0\0\1\0\0\0001x"), KL_ESYNTAX); /* more than its values */
    assert_int_equal(TAKEN("\12\0\0\0\7\1\0\0\0\1\0\0\0001"), KL_OK);
}

static void one_that_is_not_trusted_has_a_number_of_values_and_of_their_parts(void **state)
{
    (void)state;
    b.max_values = 2;
    b.max_parts = 6;
    assert_int_equal(TAKEN("\15\0\0\0\7\2\0\0\0\0\0\0\0\0\0\0\0"), KL_OK);
    assert_int_equal(TAKEN("\21\0\0\0\7\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), KL_ETOOBIG);
    assert_int_equal(TAKEN("\31\0\0\0\7\1\0\0\0\20\0\0\0[[],{\"a\":1},[2]]"), KL_OK);
    assert_int_equal(TAKEN("\30\0\0\0\7\1\0\0\0\17\0\0\0[1,2,3,4,5,6,7]"), KL_ETOOBIG);
    assert_int_equal(TAKEN("\31\0\0\0\7\1\0\0\0\20\0\0\0[\",,[[\\\"{{,,,,\"]"), KL_OK);
}

static void a_message_that_is_too_big_is_not_sent(void **state)
{
    (void)state;
    const kl_value *v = json("\"0123456789012345678901234567890123456789\"");
    kl_message m;
    assert_int_equal(kl_wire_send(&a, 32, 1, &v, 1, NULL), KL_ETOOBIG);
    assert_int_equal(kl_wire_send(&a, 64, 2, &v, 1, NULL), KL_OK);
    assert_int_equal(kl_wire_take(&b, &m, NULL), KL_OK);
    assert_int_equal(m.what, 2);
    kl_message_fini(&m);
    kl_value_unref(v);
}

static void the_end_of_the_other_side_is_reported(void **state)
{
    (void)state;
    kl_message m;
    close(b.fd);
    b.fd = -1;
    assert_int_equal(kl_wire_take(&a, &m, NULL), KL_ECLOSED);
    assert_int_equal(kl_wire_send(&a, 64, 2, NULL, 0, NULL), KL_ECLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_and_their_absence_come_out_as_they_went_in, setup, teardown),
        cmocka_unit_test(a_value_after_the_last_is_none),
        cmocka_unit_test_setup_teardown(an_invalid_message_is_reported, setup, teardown),
        cmocka_unit_test_setup_teardown(
            one_that_is_not_trusted_has_a_number_of_values_and_of_their_parts, setup, teardown),
        cmocka_unit_test_setup_teardown(a_message_that_is_too_big_is_not_sent, setup, teardown),
        cmocka_unit_test_setup_teardown(the_end_of_the_other_side_is_reported, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
