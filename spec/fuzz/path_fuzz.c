/* path_fuzz.c - the first line is a path, the rest a document: parse and look up, never crash. */
#include <stdint.h>
#include <string.h>
#include "base/mem.h"
#include "model/path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    size_t n = line ? (size_t)(line - text) : size;
    char *path = kl_alloc(n + 1);
    if (n)
        memcpy(path, text, n);
    path[n] = '\0';
    kl_path *p = NULL;
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    if (!kl_path_parse(path, &p, &err) && line && !kl_value_decode(line + 1, size - n - 1, &v, NULL))
        kl_path_get(p, v);
    kl_value_unref(v);
    kl_path_free(p);
    kl_err_fini(&err);
    kl_free(path);
    return 0;
}
