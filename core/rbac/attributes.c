/* attributes.c - the attributes of a request, from its method, path and two parameters: see
 * apiserver/pkg/endpoints/request. Unknown paths are read as well: an unauthorized client learns nothing. */
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "rbac/attributes.h"

#define WORDS 8

static const char *verb_of(const char *method)
{
    static const char *const verbs[][2] = {{"POST", "create"}, {"GET", "get"}, {"HEAD", "get"},
        {"PUT", "update"}, {"PATCH", "patch"}, {"DELETE", "delete"}};
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (!strcmp(method, verbs[i][0]))
            return verbs[i][1];
    return "";
}

/* The name in a field selector "metadata.name=x", which makes the list one of a single object. */
static char *selected_name(kl_httpd_request *http)
{
    static const char field[] = "metadata.name=";
    const char *s = kl_httpd_query(http, "fieldSelector");
    if (!s || strncmp(s, field, sizeof field - 1))
        return NULL;
    s += sizeof field - 1;
    s += *s == '=';
    return *s && !strchr(s, ',') ? kl_strdup(s) : NULL;
}

bool kl__query_truth(kl_httpd_request *http, const char *name)
{
    const char *text = kl_httpd_query(http, name);
    return text && strcasecmp(text, "false") != 0 && strcmp(text, "0") != 0;
}

static void read_path(kl__asked *a, const char *method)
{
    kl_rbac_request *r = &a->request;
    r->path = a->path;
    for (char *p = a->name = kl_strdup(method); *p; p++)
        *p = (char)tolower((unsigned char)*p);
    r->verb = a->name;
}

static void read_resource(kl__asked *a, kl_httpd_request *http, char **w, size_t n)
{
    kl_rbac_request *r = &a->request;
    r->verb = verb_of(kl_httpd_method(http));
    r->version = *w;
    w++, n--;
    bool watch = n > 1 && !strcmp(w[0], "watch");
    if (watch)
        w++, n--;
    if (!strcmp(w[0], "namespaces") && n > 1) {
        r->ns = w[1];
        if (n > 2 && strcmp(w[2], "status") && strcmp(w[2], "finalize"))
            w += 2, n -= 2;
    }
    r->resource = w[0];
    r->name = n > 1 ? w[1] : NULL;
    r->sub = n > 2 ? w[2] : NULL;
    if (!r->name && !strcmp(r->verb, "get")) {
        r->verb = kl__query_truth(http, "watch") ? "watch" : "list";
        r->name = a->name = selected_name(http);
    } else if (!r->name && !strcmp(r->verb, "delete"))
        r->verb = "deletecollection";
    if (watch)
        r->verb = "watch";
}

void kl__access_read(kl_httpd_request *http, kl__asked *out)
{
    char *words[WORDS], *save;
    size_t n = 0;
    *out = (kl__asked){.path = kl_strdup(kl_httpd_path(http)), .hold = kl_strdup(kl_httpd_path(http))};
    for (char *w = strtok_r(out->hold, "/", &save); w && n < WORDS; w = strtok_r(NULL, "/", &save))
        words[n++] = w;
    if (n >= 3 && !strcmp(words[0], "api"))
        read_resource(out, http, words + 1, n - 1);
    else if (n >= 4 && !strcmp(words[0], "apis")) {
        out->request.group = words[1];
        read_resource(out, http, words + 2, n - 2);
    } else
        read_path(out, kl_httpd_method(http));
}

void kl__access_read_fini(kl__asked *a)
{
    kl_free(a->hold);
    kl_free(a->path);
    kl_free(a->name);
}
