/* number.h - doubles as text, in the C locale whatever setlocale said (private to core/value). Any thread. */
#ifndef KL_VALUE_NUMBER_H
#define KL_VALUE_NUMBER_H

#include <stdbool.h>
#include <stddef.h>

/* Text that already has the grammar of a JSON number. False when it is beyond the range of a double. */
bool kl__double_parse(const char *text, size_t n, double *out);

/* The shortest text that reads back as x, laid out as Go's encoding/json: below 1e-6 with an exponent.
 * Integral doubles are plain digits up to 2^53 and have an exponent above, so that no reader takes them for
 * exact integers. x is finite. Returns out. */
#define KL__DOUBLE_MAX 40
char *kl__double_format(double x, char out[KL__DOUBLE_MAX]);

#endif
