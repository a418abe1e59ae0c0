/* mem_test.c - memory of the start is returned to the system. */
#include "support/test.h"

#include <math.h>
#include "base/mem.h"

static long resident_file_kb(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "RssFile: %ld", &kb);
    if (f)
        fclose(f);
    return kb;
}

static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

static void a_settled_process_is_smaller_and_works_as_before(void **state)
{
    (void)state;
    char *block = kl_alloc(1 << 20);
    memset(block, 'x', 1 << 20);
    kl_free(block);
    long before = resident_file_kb();
    for (int i = 0; i < 3; i++) {
        kl_mem_settle();
        long after = resident_file_kb();
        int v[] = {5, 3, 9, 1};
        /* code of ours and of libraries, and their constants, come back */
        qsort(v, 4, sizeof *v, by_value);
        char text[64];
        snprintf(text, sizeof text, "%d %.3f %s", v[0], sqrt(2), "constant");
        assert_string_equal(text, "1 1.414 constant");
        assert_true(before < 0 || after < before);
    }
}

KL_TESTS(cmocka_unit_test(a_settled_process_is_smaller_and_works_as_before))

/* not in tsan: it starts no thread */
