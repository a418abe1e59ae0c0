/* cron.c - what is read as a cron text comes again and again, later each time, at full minutes that its
 * fields name. */
#include "fuzz/fuzz.h"

#include <string.h>
#include <time.h>
#include "base/cron.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = kl_strndup((const char *)data, n);
    kl_cron c;
    if (!kl_cron_parse(text, &c, NULL)) {
        int64_t at = 1795305599;
        for (int i = 0; i < 3; i++) {
            int64_t next = kl_cron_next(&c, at);
            time_t t = (time_t)next;
            struct tm tm;
            CLAIM(next > at && next % 60 == 0 && gmtime_r(&t, &tm));
            CLAIM(c.minutes >> tm.tm_min & 1 && c.hours >> tm.tm_hour & 1 && c.months >> (tm.tm_mon + 1) & 1);
            CLAIM(c.days >> tm.tm_mday & 1 || c.weekdays >> tm.tm_wday & 1);
            at = next;
        }
    }
    kl_free(text);
    return 0;
}
