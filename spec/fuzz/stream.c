/* stream.c - any bytes as a list and as a watch, whole and cut at many places: the same objects, the same
 * story, and what the whole document would have given. The suite runs the same laws in
 * spec/core/wire/stream_laws_test.c. */
#include "fuzz/fuzz.h"
#include "support/stream_laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t nodes, bytes;
    KEEP(laws_of_a_stream((const char *)data, size, true, size));
    KEEP(laws_of_a_stream((const char *)data, size, false, size));
    kl_value_memory(&nodes, &bytes);
    CLAIM(!nodes);
    return 0;
}
