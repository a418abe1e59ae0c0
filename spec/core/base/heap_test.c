/* heap_test.c - the item that is due next, and lists. */
#include "support/test.h"

#include "base/heap.h"
#include "base/list.h"

typedef struct item {
    int id;
    kl_heap_node node;
    kl_list link;
} item;

static int pop(kl_heap *h, kl_time now)
{
    kl_heap_node *n = kl_heap_pop_due(h, now);
    return n ? KL_CONTAINER(n, item, node)->id : -1;
}

static void returns_due_nodes_in_order_of_time_then_of_arrival(void **state)
{
    (void)state;
    kl_heap h;
    item v[6] = {{.id = 0}, {.id = 1}, {.id = 2}, {.id = 3}, {.id = 4}, {.id = 5}};
    static const kl_time when[] = {50, 10, 30, 10, 20, 10};
    kl_heap_init(&h);
    assert_null(kl_heap_peek(&h));
    assert_int_equal(pop(&h, KL_NEVER), -1);
    for (int i = 0; i < 6; i++)
        kl_heap_push(&h, &v[i].node, when[i]);
    assert_int_equal(pop(&h, 9), -1);
    assert_int_equal(pop(&h, 10), 1);
    assert_int_equal(pop(&h, 10), 3);
    assert_int_equal(pop(&h, 10), 5);
    assert_int_equal(pop(&h, 10), -1);
    kl_heap_move(&h, &v[0].node, 5);
    kl_heap_remove(&h, &v[2].node);
    kl_heap_remove(&h, &v[2].node);
    assert_int_equal(v[2].node.pos, 0);
    assert_int_equal(pop(&h, 100), 0);
    assert_int_equal(pop(&h, 100), 4);
    assert_int_equal(pop(&h, 100), -1);
    kl_heap_push(&h, &v[1].node, 1);
    kl_heap_fini(&h);
    assert_int_equal(v[1].node.pos, 0);
}

static void agrees_with_a_search_through_many_changes(void **state)
{
    (void)state;
    enum { N = 200 };
    static item v[N];
    kl_heap h;
    uint32_t r = 7;
    kl_heap_init(&h);
    for (int step = 0; step < 20000; step++) {
        r = r * 1664525 + 1013904223;
        item *x = &v[(r >> 8) % N];
        kl_time when = (r >> 20) % 1000;
        if (!x->node.pos)
            kl_heap_push(&h, &x->node, when);
        else if (r & 64)
            kl_heap_move(&h, &x->node, when);
        else
            kl_heap_remove(&h, &x->node);
        const kl_heap_node *first = NULL;
        size_t n = 0;
        for (int i = 0; i < N; i++) {
            const kl_heap_node *c = &v[i].node;
            n += c->pos > 0;
            if (c->pos
                && (!first || c->when < first->when || (c->when == first->when && c->seq < first->seq)))
                first = c;
        }
        assert_int_equal(h.len, n);
        assert_ptr_equal(kl_heap_peek(&h), first);
    }
    kl_heap_fini(&h);
}

static void a_list_keeps_order(void **state)
{
    (void)state;
    kl_list l;
    item v[4] = {{.id = 0}, {.id = 1}, {.id = 2}, {.id = 3}};
    kl_list_init(&l);
    assert_true(kl_list_empty(&l));
    assert_null(kl_list_shift(&l));
    kl_list_push(&l, &v[1].link);
    kl_list_push(&l, &v[2].link);
    kl_list_push_front(&l, &v[0].link);
    kl_list_push(&l, &v[3].link);
    kl_list_remove(&v[2].link);
    kl_list_remove(&v[2].link);
    static const int want[] = {0, 1, 3};
    for (int i = 0; i < 3; i++)
        assert_int_equal(KL_CONTAINER(kl_list_shift(&l), item, link)->id, want[i]);
    assert_true(kl_list_empty(&l));
}

KL_TESTS(cmocka_unit_test(returns_due_nodes_in_order_of_time_then_of_arrival),
    cmocka_unit_test(agrees_with_a_search_through_many_changes), cmocka_unit_test(a_list_keeps_order))

/* not in tsan: it starts no thread */
