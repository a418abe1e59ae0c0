/* gate_test.c - who may pass the gate, decided by counts alone. */
#include "support/test.h"

#include "http/gate.h"

#define STREAMS 3

static kl__pass passes[16];

/* Queues up n passes from `first` on. */
static void enter(kl__gate *g, int first, int n)
{
    for (int i = first; i < first + n; i++)
        kl__gate_enter(g, &passes[i]);
}

static int next(kl__gate *g)
{
    kl__pass *p = kl__gate_next(g, STREAMS);
    return p ? (int)(p - passes) : -1;
}

static void one_opens_first_and_the_rest_follow(void **state)
{
    (void)state;
    kl__gate g;
    kl__gate_init(&g);
    enter(&g, 0, 5);
    assert_int_equal(next(&g), 0);
    /* it may be about to open the connection that all can share */
    assert_int_equal(next(&g), -1);
    g.sockets = 1;
    assert_int_equal(next(&g), -1); /* a socket is not a connection yet */
    kl__gate_connected(&passes[0]);
    assert_int_equal(next(&g), 1);
    assert_int_equal(next(&g), 2);
    assert_int_equal(next(&g), 3); /* full: this one opens the second connection */
    assert_int_equal(next(&g), -1);
    kl__gate_connected(&passes[3]);
    g.sockets = 2;
    assert_int_equal(next(&g), 4);
}

static void closed_connections_make_room_in_order(void **state)
{
    (void)state;
    kl__gate g;
    kl__gate_init(&g);
    enter(&g, 0, 6);
    assert_int_equal(next(&g), 0);
    g.sockets = 1;
    kl__gate_connected(&passes[0]);
    for (int i = 1; i <= 3; i++)
        assert_int_equal(next(&g), i);
    assert_int_equal(next(&g), -1);                 /* 3 is on its way to a second connection */
    assert_false(kl__gate_leave(&passes[4], true)); /* from the queue: nobody waited for it */
    /* not the opener, which is in as well: there are three */
    assert_false(kl__gate_leave(&passes[1], true));
    assert_int_equal(next(&g), -1);
    assert_false(kl__gate_leave(&passes[2], true));
    assert_int_equal(next(&g), 5); /* the first connection has room again */
    assert_int_equal(next(&g), -1);
}

static void a_failing_opener_fails_its_waiters_only_without_an_open_connection(void **state)
{
    (void)state;
    kl__gate g;
    kl__gate_init(&g);
    enter(&g, 0, 3);
    assert_int_equal(next(&g), 0);
    assert_true(kl__gate_leave(&passes[0], true));
    enter(&g, 0, 1);
    assert_int_equal(next(&g), 1);
    assert_false(kl__gate_leave(&passes[1], false)); /* cancelled: another one tries */
    assert_int_equal(next(&g), 2);
    g.sockets = 1;
    kl__gate_connected(&passes[2]);
    enter(&g, 3, 3);
    assert_int_equal(next(&g), 0);
    assert_int_equal(next(&g), 3);
    assert_int_equal(next(&g), 4); /* opens the second */
    /* three are in on the first connection: 5 waits for them */
    assert_false(kl__gate_leave(&passes[4], true));
    assert_int_equal(next(&g), 5);
}

KL_TESTS(cmocka_unit_test(one_opens_first_and_the_rest_follow),
    cmocka_unit_test(closed_connections_make_room_in_order),
    cmocka_unit_test(a_failing_opener_fails_its_waiters_only_without_an_open_connection))

/* not in tsan: it starts no thread */
