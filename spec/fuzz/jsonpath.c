/* jsonpath.c - the first line is the path of a column, the rest an object: only a path that can be read
 * selects anything, and what it selects is there. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "show/jsonpath.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    char *path = kl_strndup(line ? text : "", line ? (size_t)(line - text) : 0);
    const kl_value *v = NULL;
    if (line && !kl_value_decode(line + 1, size - (size_t)(line + 1 - text), &v, NULL)) {
        const kl_value *first = kl_jsonpath_first(v, path);
        CLAIM(!first || kl_jsonpath_reads(path));
        if (first)
            kl_free(kl_value_to_json(first));
        kl_value_unref(first);
    }
    kl_value_unref(v);
    kl_free(path);
    return 0;
}
