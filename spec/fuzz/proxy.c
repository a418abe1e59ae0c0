/* proxy.c - any NO_PROXY against any URL: the proxy or none, and always the same. Input: the list, a line
 * break, the URL's host. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "http/proxy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data, *line = size ? memchr(text, '\n', size) : NULL;
    if (!line)
        return 0;
    char *list = kl_strndup(text, (size_t)(line - text)),
         *host = kl_strndup(line + 1, size - (size_t)(line - text) - 1);
    char *url = kl_sprintf("https://%s", host), *starred = kl_sprintf("%s,*", list);
    kl__proxy_env env = {NULL, "http://p:1", list, false};
    char *first = kl__proxy_choose(NULL, &env, url), *again = kl__proxy_choose(NULL, &env, url);
    CLAIM(!*first || !strcmp(first, "http://p:1"));
    CLAIM(!strcmp(first, again));
    env.no = starred;
    char *none = kl__proxy_choose(NULL, &env, url);
    CLAIM(!*none);
    char *words = kl__proxy_words(list);
    CLAIM(!words || strlen(words) <= strlen(list));
    kl_free(words);
    kl_free(none);
    kl_free(first);
    kl_free(again);
    kl_free(url);
    kl_free(starred);
    kl_free(host);
    kl_free(list);
    return 0;
}
