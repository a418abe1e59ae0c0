/* words.c - the small grammars of the API: quantities, durations, times, selectors, paths. The first byte
 * chooses. What parses prints itself in a form that parses to the same again. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "value/path.h"
#include "model/quantity.h"
#include "model/selector.h"
#include "model/time.h"

static void quantity(const char *text, kl_err *err)
{
    kl_quantity *q, *again;
    if (kl_quantity_parse(text, &q, err))
        return;
    char *canonical = kl_quantity_canonical(q, NULL, NULL);
    int64_t fits;
    /* beyond 1000E apimachinery runs out of suffixes and drops them, and so do we */
    if (!kl_quantity_value(q, &fits)) {
        kl_free(canonical);
        kl_quantity_free(q);
        return;
    }
    CLAIM(kl_quantity_parse(canonical, &again, err) == KL_OK);
    CLAIM(kl_quantity_cmp(q, again) == 0);
    char *twice = kl_quantity_canonical(again, NULL, NULL);
    CLAIM(!strcmp(canonical, twice));
    kl_quantity *zero = kl_quantity_sub(q, again);
    CLAIM(kl_quantity_sign(zero) == 0);
    kl_quantity_free(zero);
    kl_quantity_free(q);
    kl_quantity_free(again);
    kl_free(canonical);
    kl_free(twice);
}

static void duration(const char *text, kl_err *err)
{
    kl_time d, again;
    char out[KL_DURATION_MAX];
    if (kl_duration_parse(text, &d, err))
        return;
    CLAIM(kl_duration_parse(kl_duration_format(d, out), &again, err) == KL_OK);
    CLAIM(d == again);
}

static void timestamp(const char *text, kl_err *err)
{
    int64_t sec, sec2;
    int32_t nsec, nsec2;
    char out[KL_TIME_MAX];
    if (kl_time_parse(text, &sec, &nsec, err))
        return;
    CLAIM(nsec >= 0 && nsec < 1000000000);
    kl_err story = KL_ERR_INIT;
    /* an offset may lead out of years 0..9999 */
    if (kl_time_parse(kl_time_format(sec, out), &sec2, &nsec2, &story) == KL_OK)
        CLAIM(sec == sec2);
    kl_err_fini(&story);
}

static void label_selector(const char *text, kl_err *err)
{
    kl_selector *s, *again;
    if (kl_selector_parse(text, &s, err))
        return;
    char *once = kl_selector_text(s);
    CLAIM(kl_selector_parse(once, &again, err) == KL_OK);
    char *twice = kl_selector_text(again);
    CLAIM(!strcmp(once, twice));
    kl_selector_free(s);
    kl_selector_free(again);
    kl_free(once);
    kl_free(twice);
}

static void field_selector(const char *text, kl_err *err)
{
    kl_field_selector *s, *second, *third;
    if (kl_field_selector_parse(text, &s, err))
        return;
    /* Terms are sorted as they were typed, so "==" may move once it is written "=": stable from the second
     * text on. */
    char *once = kl_field_selector_text(s);
    CLAIM(kl_field_selector_parse(once, &second, err) == KL_OK);
    char *twice = kl_field_selector_text(second);
    CLAIM(kl_field_selector_parse(twice, &third, err) == KL_OK);
    char *thrice = kl_field_selector_text(third);
    CLAIM(!strcmp(twice, thrice));
    CLAIM(kl_field_selector_len(s) == kl_field_selector_len(third));
    kl_field_selector_free(s);
    kl_field_selector_free(second);
    kl_field_selector_free(third);
    kl_free(once);
    kl_free(twice);
    kl_free(thrice);
}

static void path(const char *text, kl_err *err)
{
    kl_path *p;
    if (kl_path_parse(text, &p, err))
        return;
    CLAIM(kl_path_get(p, NULL) == NULL);
    kl_path_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const grammars[])(const char *, kl_err *) = {
        quantity, duration, timestamp, label_selector, field_selector, path};
    if (size < 1)
        return 0;
    char *text = kl_strndup((const char *)data + 1, size - 1);
    kl_err err = KL_ERR_INIT;
    grammars[data[0] % (sizeof grammars / sizeof *grammars)](text, &err);
    kl_err_fini(&err);
    kl_free(text);
    return 0;
}
