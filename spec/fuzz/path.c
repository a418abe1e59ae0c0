/* path.c - the first line is a path, the rest a document: what the path finds is what its steps lead to,
 * one by one. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "value/path.h"

static const kl_value *walk(const kl_path *p, const kl_value *v)
{
    for (size_t i = 0; i < kl_path_len(p); i++) {
        size_t n, index;
        const char *key = kl_path_step(p, i, &n, &index);
        v = key ? kl_value_getn(v, key, n) : index ? kl_value_item(v, index - 1) : NULL;
    }
    return v;
}

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
    if (kl_path_parse(path, &p, &err))
        CLAIM(err.status == KL_EINVAL && *kl_err_message(&err));
    else if (line && !kl_value_decode(line + 1, size - n - 1, &v, NULL))
        CLAIM(kl_path_get(p, v) == walk(p, v));
    kl_value_unref(v);
    kl_path_free(p);
    kl_err_fini(&err);
    kl_free(path);
    return 0;
}
