/* http_curl.c - loads libcurl by the name of its ABI, which has been the same since 2006. */
#include "http/http_curl.h"

#include <dlfcn.h>
#include <stdbool.h>

#include "base/sync.h"

#define LIBRARY "libcurl.so.4"

kl__curl_functions kl__curl;

static const struct {
    const char *name;
    void **to;
} functions[] = {
#define ENTRY(name) {"curl_" #name, (void **)&kl__curl.name},
    KL__CURL_FUNCTIONS(ENTRY)
#undef ENTRY
};

static kl_status find(kl_err *err)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return kl_fail(err, KL_EINTERNAL, "%s cannot be loaded: install libcurl (%s)", LIBRARY, dlerror());
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (!(*functions[i].to = dlsym(library, functions[i].name)))
            return kl_fail(err, KL_EINTERNAL, "%s is too old: it has no %s", LIBRARY, functions[i].name);
    CURLcode rc = kl__curl.global_init(CURL_GLOBAL_DEFAULT);
    return rc ? kl_fail(err, KL_EINTERNAL, "libcurl does not start: %s", kl__curl.easy_strerror(rc)) : KL_OK;
}

kl_status kl__curl_load(kl_err *err)
{
    static kl_mutex mu = KL_MUTEX_INIT;
    static bool ready;
    kl_lock(&mu);
    kl_status st = ready ? KL_OK : find(err);
    ready = ready || !st;
    kl_unlock(&mu);
    return st;
}
