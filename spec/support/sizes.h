/* sizes.h - the size of a C test's work, like support/sizes.lua for busted specs. */
#ifndef KL_SPEC_SIZES_H
#define KL_SPEC_SIZES_H

#include <stdint.h>
#include <stdlib.h>

/* `short_form` in the suite; `long_form` in `make soak`, which runs the files that call this. Under a
 * sanitizer a test says a number of its own. */
static inline int64_t test_size(int64_t short_form, int64_t long_form)
{
    const char *is_long = getenv("KL_LONG");
    return is_long && *is_long == '1' ? long_form : short_form;
}

#endif
