/* yaml_edit.c - any text, one string of it set: the text is left alone and a message says why, or the
 * string is there and setting it once more changes nothing. */
#include "fuzz/fuzz.h"
#include "yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const path[] = {"users", "name=u", "user", "key", NULL};
    kl_buf once = KL_BUF_INIT, twice = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    if (kl_yaml_set_string("FILE", (const char *)data, size, path, "a \"b\"\n", &once, &err))
        CLAIM(!strncmp(kl_err_message(&err), "FILE", 4));
    else {
        CLAIM(!kl_yaml_set_string("FILE", once.data, once.len, path, "a \"b\"\n", &twice, &err));
        CLAIM(once.len == twice.len && !memcmp(once.data, twice.data, once.len));
    }
    kl_err_fini(&err);
    kl_buf_fini(&once);
    kl_buf_fini(&twice);
    return 0;
}
