/* poller_test.c - sleep, readiness and wakes, over pipes and sockets. */
#include "support/test.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "base/poller.h"
#include "base/sync.h"

#define BOUND KL_SECONDS(20) /* of every wait in these tests */

static kl_time now(void) { return kl_clock_now(kl_clock_real()); }

static void readiness_is_level_triggered_and_follows_the_interest(void **state)
{
    (void)state;
    kl_poller *p = kl_poller_new();
    kl_ready r[4];
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    kl_poller_watch(p, fd[0], KL_POLL_IN);
    assert_int_equal(kl_poller_wait(p, 0, r, 4), 0); /* nothing yet, and it did not sleep */
    assert_int_equal(write(fd[1], "x", 1), 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kl_poller_wait(p, now() + BOUND, r, 4), 1);
        assert_int_equal(r[0].fd, fd[0]);
        assert_int_equal(r[0].what, KL_POLL_IN);
    }
    kl_poller_watch(p, fd[0], KL_POLL_IN | KL_POLL_OUT);
    assert_int_equal(kl_poller_wait(p, now() + BOUND, r, 4), 1);
    assert_int_equal(r[0].what, KL_POLL_IN | KL_POLL_OUT);
    kl_poller_watch(p, fd[0], 0);
    assert_int_equal(kl_poller_wait(p, 0, r, 4), 0);
    kl_poller_watch(p, fd[0], KL_POLL_IN);
    close(fd[1]);
    assert_int_equal(kl_poller_wait(p, now() + BOUND, r, 4), 1);
    /* a line that hung up is there to be read up */
    assert_int_equal(r[0].what, KL_POLL_IN | KL_POLL_ERR);
    kl_poller_watch(p, fd[0], 0);
    close(fd[0]);
    kl_poller_free(p);
    kl_poller_free(NULL);
}

static void a_removed_socket_is_forgotten_when_it_closes(void **state)
{
    (void)state;
    kl_poller *p = kl_poller_new();
    kl_ready ready[2];
    int fd[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    /* keeps the socket: closing alone would take it out of epoll */
    int copy = dup(fd[0]);
    kl_poller_watch(p, fd[0], KL_POLL_IN);
    kl_poller_watch(p, fd[0], 0);
    kl_poller_closing(p, fd[0]);
    close(fd[0]);
    assert_int_equal(write(fd[1], "x", 1), 1);
    assert_int_equal(kl_poller_wait(p, 0, ready, 2), 0);
    close(copy);
    close(fd[1]);
    kl_poller_free(p);
}

static void a_wait_ends_at_its_moment_and_not_before(void **state)
{
    (void)state;
    kl_poller *p = kl_poller_new();
    kl_ready r[1];
    kl_time until = now() + KL_MICROSECONDS(3500);
    assert_int_equal(kl_poller_wait(p, until, r, 1), 0);
    assert_true(now() >= until);
    kl_poller_free(p);
}

static void more_than_fits_comes_with_the_next_look(void **state)
{
    (void)state;
    kl_poller *p = kl_poller_new();
    kl_ready r[2];
    int fd[3][2];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pipe(fd[i]), 0);
        assert_int_equal(write(fd[i][1], "x", 1), 1);
        kl_poller_watch(p, fd[i][0], KL_POLL_IN);
    }
    int seen = 0;
    for (int look = 0; look < 4 && seen < 3; look++) {
        size_t n = kl_poller_wait(p, now() + BOUND, r, 2);
        assert_in_range(n, 1, 2);
        for (size_t i = 0; i < n; i++, seen++) {
            char c;
            assert_int_equal(read(r[i].fd, &c, 1), 1);
        }
    }
    assert_int_equal(seen, 3);
    for (int i = 0; i < 3; i++) {
        kl_poller_watch(p, fd[i][0], 0);
        close(fd[i][0]);
        close(fd[i][1]);
    }
    kl_poller_free(p);
}

static void wakes_do_not_pile_up(void **state)
{
    (void)state;
    kl_poller *p = kl_poller_new();
    kl_ready r[1];
    for (int i = 0; i < 3; i++)
        kl_poller_wake(p);
    kl_time began = now();
    /* three wakes are one, and it is not lost */
    assert_int_equal(kl_poller_wait(p, KL_NEVER, r, 1), 0);
    kl_time until = now() + KL_MILLISECONDS(2);
    assert_int_equal(kl_poller_wait(p, until, r, 1), 0);
    assert_true(now() >= until && began <= until);
    kl_poller_free(p);
}

/* Two threads hand a number to and fro; each sleeps forever unless it is woken. A lost wake would hang,
 * and the alarm says so. */
typedef struct court {
    kl_poller *p[2];
    _Atomic int ball;
} court;
#define RALLY 20000

static void play(court *c, int side)
{
    kl_ready r[1];
    for (int ball; (ball = atomic_load(&c->ball)) < RALLY;) {
        if (ball % 2 != side) {
            kl_poller_wait(c->p[side], KL_NEVER, r, 1);
            continue;
        }
        atomic_store(&c->ball, ball + 1);
        kl_poller_wake(c->p[!side]);
    }
    kl_poller_wake(c->p[!side]);
}

static void play_second(void *arg) { play(arg, 1); }

static void no_wake_is_lost(void **state)
{
    (void)state;
    court c = {.p = {kl_poller_new(), kl_poller_new()}};
    alarm(60);
    kl_thread *t = kl_thread_start("second", play_second, &c);
    play(&c, 0);
    kl_thread_join(t);
    alarm(0);
    assert_int_equal(atomic_load(&c.ball), RALLY);
    kl_poller_free(c.p[0]);
    kl_poller_free(c.p[1]);
}

/* --- the bell, which is the same without sockets ------------------------------------------ */

typedef struct ring_court {
    kl_bell b[2];
    _Atomic int ball;
} ring_court;

static void ring_play(ring_court *c, int side)
{
    for (;;) {
        unsigned look = kl_bell_look(&c->b[side]);
        int ball = atomic_load(&c->ball);
        if (ball >= RALLY)
            break;
        if (ball % 2 != side) {
            kl_bell_wait(&c->b[side], look, KL_NEVER);
            continue;
        }
        atomic_store(&c->ball, ball + 1);
        kl_bell_ring(&c->b[!side]);
    }
    kl_bell_ring(&c->b[!side]);
}

static void ring_second(void *arg) { ring_play(arg, 1); }

static void no_ring_is_lost(void **state)
{
    (void)state;
    ring_court c = {.ball = 0};
    kl_bell_init(&c.b[0]);
    kl_bell_init(&c.b[1]);
    alarm(60);
    kl_thread *t = kl_thread_start("second", ring_second, &c);
    ring_play(&c, 0);
    kl_thread_join(t);
    alarm(0);
    assert_int_equal(atomic_load(&c.ball), RALLY);
}

static void a_bell_waits_until_its_deadline(void **state)
{
    (void)state;
    kl_bell b;
    kl_bell_init(&b);
    unsigned look = kl_bell_look(&b);
    kl_time until = now() + KL_MILLISECONDS(3);
    while (now() < until)
        kl_bell_wait(&b, look, until);
    kl_bell_wait(&b, look, -5); /* long past: no sleep */
    kl_bell_ring(&b);
    kl_bell_wait(&b, look, KL_NEVER); /* rung since the look: no sleep */
    assert_int_equal(kl_bell_look(&b), look + 1);
}

KL_TESTS(cmocka_unit_test(readiness_is_level_triggered_and_follows_the_interest),
    cmocka_unit_test(a_removed_socket_is_forgotten_when_it_closes),
    cmocka_unit_test(a_wait_ends_at_its_moment_and_not_before),
    cmocka_unit_test(more_than_fits_comes_with_the_next_look), cmocka_unit_test(wakes_do_not_pile_up),
    cmocka_unit_test(no_wake_is_lost), cmocka_unit_test(no_ring_is_lost),
    cmocka_unit_test(a_bell_waits_until_its_deadline))
