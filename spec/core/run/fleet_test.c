/* fleet_test.c - clusters by name, and the metrics of several managers in one text that Prometheus accepts.
 */
#include "support/test.h"

#include "base/mem.h"
#include "run/fleet.h"

static void clusters_have_numbers_and_names_of_their_own(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    size_t number;
    kl_fleet *f = kl_fleet_new();
    assert_ok(kl_fleet_add(f, "a", NULL, &number, &err), &err);
    assert_int_equal(number, 0);
    assert_ok(kl_fleet_add(f, "b", NULL, &number, &err), &err);
    assert_int_equal(number, 1);
    assert_fails(kl_fleet_add(f, "a", NULL, &number, &err), KL_EEXISTS, &err, "the context a is named twice");
    assert_int_equal(kl_fleet_size(f), 2);
    assert_int_equal(kl_fleet_size(NULL), 0);
    kl_fleet_free(f);
}

static void samples_of_one_family_stand_together_with_their_cluster(void **state)
{
    (void)state;
    kl_err err = KL_ERR_INIT;
    size_t number;
    kl_fleet *f = kl_fleet_new();
    assert_ok(kl_fleet_add(f, "a", NULL, &number, &err), &err);
    assert_ok(kl_fleet_add(f, "b\"\\", NULL, &number, &err), &err);
    const char *texts[] = {"# HELP x Some {text} of it\n# TYPE x counter\nx{k=\"v w\"} 1\nx 2\n# HELP "
                           "process_y P\n# TYPE process_y gauge\nprocess_y 5\n",
        "# HELP process_y P\n# TYPE process_y gauge\nprocess_y 6\n# HELP x Some {text} of it\n# TYPE x "
        "counter\nx{k=\"u\"} 3\n# HELP z Z\n# TYPE z gauge\nz{} 4\n"};
    char *all = kl_fleet_metrics(f, texts);
    assert_string_equal(all,
        "# HELP x Some {text} of it\n# TYPE x counter\nx{cluster=\"a\",k=\"v w\"} 1\nx{cluster=\"a\"} "
        "2\nx{cluster=\"b\\\"\\\\\",k=\"u\"} 3\n"
        "# HELP process_y P\n# TYPE process_y gauge\nprocess_y 5\n"
        "# HELP z Z\n# TYPE z gauge\nz{cluster=\"b\\\"\\\\\"} 4\n");
    kl_free(all);
    kl_fleet_free(f);
}

KL_TESTS(cmocka_unit_test(clusters_have_numbers_and_names_of_their_own),
    cmocka_unit_test(samples_of_one_family_stand_together_with_their_cluster))

/* not in tsan: it starts no thread */
