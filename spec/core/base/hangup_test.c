/* hangup_test.c - which callers are told about a disconnected peer, how often, and that nothing is left. */
#include "support/test.h"

#include <sys/socket.h>
#include <unistd.h>
#include "base/hangup.h"
#include "base/sync.h"
#include "support/fds.h"

#define IDS_MAX 16

typedef struct heard {
    kl_mutex mu;
    kl_cond news;
    uint64_t ids[IDS_MAX];
    size_t n;
    uint64_t last; /* of let_the_last_go */
    kl_hangup *h;
} heard;

static void gone(void *arg, uint64_t id)
{
    heard *w = arg;
    kl_lock(&w->mu);
    if (w->n < IDS_MAX)
        w->ids[w->n++] = id;
    kl_cond_broadcast(&w->news);
    kl_unlock(&w->mu);
}

static void start(heard *w)
{
    kl_err err = KL_ERR_INIT;
    *w = (heard){.last = 100};
    kl_mutex_init(&w->mu);
    kl_cond_init(&w->news);
    assert_ok(kl_hangup_start(gone, w, &w->h, &err), &err);
}

static void stop(heard *w)
{
    kl_hangup_stop(w->h);
    kl_cond_fini(&w->news);
    kl_mutex_fini(&w->mu);
}

static void wait_for(heard *w, uint64_t id)
{
    kl_lock(&w->mu);
    while (!w->n || w->ids[w->n - 1] != id)
        kl_cond_wait(&w->news, &w->mu);
    kl_unlock(&w->mu);
}

static size_t count(heard *w)
{
    kl_lock(&w->mu);
    size_t n = w->n;
    kl_unlock(&w->mu);
    return n;
}

static void pair(int fd[2]) { assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0); }

/* One more peer goes: what came before it has been told when this returns. */
static void let_the_last_go(heard *w)
{
    int fd[2];
    pair(fd);
    kl_hangup_add(w->h, fd[0], ++w->last);
    close(fd[1]);
    wait_for(w, w->last);
    close(fd[0]);
}

static void a_hang_up_is_reported_once_and_again_only_on_request(void **state)
{
    (void)state;
    heard w;
    int a[2];
    start(&w);
    pair(a);
    kl_hangup_add(w.h, a[0], 7);
    assert_int_equal(write(a[1], "x", 1), 1); /* nobody reads it, and that is no hang-up */
    let_the_last_go(&w);
    assert_int_equal(count(&w), 1);
    close(a[1]);
    wait_for(&w, 7);
    let_the_last_go(&w);
    let_the_last_go(&w);
    assert_int_equal(count(&w), 4);
    kl_hangup_add(w.h, a[0], 8);
    wait_for(&w, 8);
    let_the_last_go(&w);
    assert_int_equal(count(&w), 6);
    close(a[0]);
    stop(&w);
}

static void a_removed_socket_is_not_reported(void **state)
{
    (void)state;
    heard w;
    int a[2];
    start(&w);
    pair(a);
    kl_hangup_add(w.h, a[0], 7);
    kl_hangup_remove(w.h, a[0]);
    close(a[1]);
    let_the_last_go(&w);
    assert_int_equal(count(&w), 1);
    close(a[0]);
    stop(&w);
}

static void the_time_comes_once_and_a_new_one_replaces_it(void **state)
{
    (void)state;
    heard w;
    start(&w);
    kl_time now = kl_clock_now(kl_clock_real());
    kl_hangup_at(w.h, now + KL_MINUTES(60));
    let_the_last_go(&w);
    assert_int_equal(count(&w), 1);
    kl_hangup_at(w.h, now + KL_MILLISECONDS(1));
    wait_for(&w, KL_HANGUP_TIME);
    let_the_last_go(&w);
    let_the_last_go(&w);
    assert_int_equal(count(&w), 4);
    stop(&w);
}

static void nothing_stays_open(void **state)
{
    (void)state;
    size_t before = fds_open();
    heard w;
    start(&w);
    stop(&w);
    assert_int_equal(fds_open(), before);
    kl_hangup_stop(NULL);
}

KL_TESTS(cmocka_unit_test(a_hang_up_is_reported_once_and_again_only_on_request),
    cmocka_unit_test(a_removed_socket_is_not_reported),
    cmocka_unit_test(the_time_comes_once_and_a_new_one_replaces_it), cmocka_unit_test(nothing_stays_open))
