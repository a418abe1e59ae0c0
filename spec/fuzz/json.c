/* json.c - any bytes: our decoder, a second opinion and cJSON read the same or refuse alike; what was
 * decoded says itself again. The suite runs the same laws over random documents in
 * spec/core/value/decode_laws_test.c. */
#include "fuzz/fuzz.h"
#include "support/json_laws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t nodes, bytes;
    KEEP(laws_of_decoding((const char *)data, size));
    kl_value_memory(&nodes, &bytes);
    CLAIM(!nodes);
    return 0;
}
