/* url.c - any path that a user types: the request goes to the configured server, and to no other. */
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "model/resource.h"
#include "http/url.h"

#define BASE "https://h:6443"

static void path_of_a_user(const char *text)
{
    kl_buf url = KL_BUF_INIT, again = KL_BUF_INIT;

    if (!kl_url_request_uri(BASE "/p", text, &url, NULL)) {
        CLAIM(!strncmp(kl_buf_str(&url), BASE, strlen(BASE)));
        CLAIM(strchr("/?", kl_buf_str(&url)[strlen(BASE)]));
        CLAIM(!strpbrk(kl_buf_str(&url), " \"<>\\^`{|}#\n\r"));
        CLAIM(!kl_url_request_uri(BASE, kl_url_target(kl_buf_str(&url)), &again, NULL));
    }
    kl_buf_fini(&url);
    kl_buf_fini(&again);
}

static void name_of_an_object(const char *text)
{
    kl_url_request r = {
        .base = BASE, .group = "", .version = "v1", .resource = "pods", .ns = "ns", .name = text};
    static const char prefix[] = BASE "/api/v1/namespaces/ns/pods/";
    kl_buf url = KL_BUF_INIT;

    if (!kl_url_build(&r, &url, NULL)) {
        CLAIM(!strncmp(kl_buf_str(&url), prefix, strlen(prefix)));
        CLAIM(!strpbrk(kl_buf_str(&url) + strlen(prefix), "/?#"));
    }
    kl_buf_fini(&url);
}

static void kind(const char *text)
{
    kl_gvk g;

    if (kl_gvk_parse(text, &g, NULL))
        return;
    char *back = kl_gvk_text(g.group, g.version, g.kind);
    CLAIM(!strcmp(back, text));
    kl_free(back);
    kl_gvk_fini(&g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = kl_strndup((const char *)data, size);

    path_of_a_user(text);
    name_of_an_object(text);
    kind(text);
    kl_free(text);
    return 0;
}
