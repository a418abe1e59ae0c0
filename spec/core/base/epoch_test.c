/* epoch_test.c - a reader delays the release of what was removed, and nothing else does. */
#include "support/test.h"

#include <stdatomic.h>
#include "base/epoch.h"
#include "base/mem.h"
#include "base/sync.h"

static void pins_delay_the_freeing_of_removed_objects(void **state)
{
    (void)state;
    assert_true(kl_epoch_oldest() == UINT64_MAX);
    unsigned early = kl_epoch_pin();
    uint64_t first = kl_epoch_end();
    unsigned late = kl_epoch_pin();
    assert_true(early != late);
    assert_true(kl_epoch_oldest() <= first);
    kl_epoch_unpin(early);
    assert_true(kl_epoch_oldest() > first);
    uint64_t second = kl_epoch_end();
    assert_true(kl_epoch_oldest() <= second);
    kl_epoch_unpin(late);
    assert_true(kl_epoch_oldest() == UINT64_MAX);
}

static void as_many_may_read_at_once_as_there_are_places(void **state)
{
    (void)state;
    unsigned places[KL_EPOCH_PLACES];
    for (unsigned i = 0; i < KL_EPOCH_PLACES; i++)
        places[i] = kl_epoch_pin();
    for (unsigned i = 0; i < KL_EPOCH_PLACES; i++)
        for (unsigned k = 0; k < i; k++)
            assert_true(places[i] != places[k]);
    for (unsigned i = 0; i < KL_EPOCH_PLACES; i++)
        kl_epoch_unpin(places[i]);
    assert_true(kl_epoch_oldest() == UINT64_MAX);
}

/* --- a box that is replaced again and again while many look into it ----------------------- */

#define READERS 12
#define BOXES 3000

typedef struct box {
    int a, b;
} box;
typedef struct exchange {
    _Atomic(box *) shown;
    atomic_bool done;
} exchange;

static box *box_new(int n)
{
    box *b = kl_new(box);
    *b = (box){n, -n};
    return b;
}

static void look_into_it(void *arg)
{
    exchange *x = arg;
    for (int last = 0; !atomic_load(&x->done);) {
        unsigned outer = kl_epoch_pin(), inner = kl_epoch_pin(); /* pins may nest */
        const box *b = atomic_load(&x->shown);
        kl_epoch_unpin(inner);
        assert_int_equal(b->a, -b->b);
        assert_true(b->a >= last);
        last = b->a;
        kl_epoch_unpin(outer);
    }
}

static void unreachable_objects_may_be_freed(void **state)
{
    (void)state;
    exchange x = {0};
    kl_thread *t[READERS];
    struct {
        box *b;
        uint64_t epoch;
    } waits[BOXES];
    int freed = 0;
    atomic_store(&x.shown, box_new(0));
    for (int i = 0; i < READERS; i++)
        t[i] = kl_thread_start("reader", look_into_it, &x);
    for (int i = 0; i < BOXES; i++) {
        waits[i].b = atomic_exchange(&x.shown, box_new(i + 1));
        waits[i].epoch = kl_epoch_end();
        for (uint64_t oldest = kl_epoch_oldest(); freed <= i && waits[freed].epoch < oldest; freed++)
            kl_free(waits[freed].b);
    }
    atomic_store(&x.done, true);
    for (int i = 0; i < READERS; i++)
        kl_thread_join(t[i]);
    for (uint64_t oldest = kl_epoch_oldest(); freed < BOXES; freed++) {
        assert_true(waits[freed].epoch < oldest); /* nobody reads: all of it is due */
        kl_free(waits[freed].b);
    }
    kl_free(atomic_load(&x.shown));
}

KL_TESTS(cmocka_unit_test(pins_delay_the_freeing_of_removed_objects),
    cmocka_unit_test(as_many_may_read_at_once_as_there_are_places),
    cmocka_unit_test(unreachable_objects_may_be_freed))
