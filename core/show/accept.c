/* accept.c - Accept headers. kube-apiserver reads them twice: its routes of built-in kinds want one of their
 * media types by name, or the range of everything; then the ranges are tried by quality. */
#include "show/accept.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "schema/status.h"
#include "wire/proto.h"

#define KINDS_OF_MEDIA 3
static const char *const media_names[KINDS_OF_MEDIA] = {
    "application/json", "application/yaml", KL_PROTO_TYPE};
static const char types_text[] = "application/json, application/yaml, " KL_PROTO_TYPE;
static const char streams_text[] = "application/json;stream=watch, " KL_PROTO_TYPE ";stream=watch";

#define RANGES_MAX 32 /* further ones are not read */
#define PARAMS_MAX 16

typedef struct range {
    char *type;                                         /* compared as the client wrote it */
    const char *as, *group, *version, *stream, *pretty; /* parameters, or NULL */
    double quality;
} range;

const char *kl_show_media_type(kl_show_media media, bool stream)
{
    if (media == KL_MEDIA_PROTOBUF && stream)
        return KL_PROTO_TYPE ";stream=watch";
    return media_names[media];
}

/* --- reading ------------------------------------------------------------------------------ */

static char *trim(char *s)
{
    s += strspn(s, " \t");
    size_t n = strlen(s);
    while (n && (s[n - 1] == ' ' || s[n - 1] == '\t'))
        s[--n] = '\0';
    return s;
}

static range read_range(char *text)
{
    char *save, *word = strtok_r(text, ";", &save);
    range r = {.type = word ? trim(word) : text, .quality = 1};
    for (size_t i = 0; i < PARAMS_MAX && (word = strtok_r(NULL, ";", &save)); i++) {
        char *value = strchr(word, '=');
        if (!value)
            continue;
        *value++ = '\0';
        const char *name = trim(word);
        value = trim(value);
        if (!strcmp(name, "q"))
            r.quality = strtod(value, NULL);
        else if (!strcmp(name, "as"))
            r.as = value;
        else if (!strcmp(name, "g"))
            r.group = value;
        else if (!strcmp(name, "v"))
            r.version = value;
        else if (!strcmp(name, "stream"))
            r.stream = value;
        else if (!strcmp(name, "pretty"))
            r.pretty = value;
    }
    return r;
}

/* Whether range a is tried before b: by quality, then by precision. */
static bool before(const range *a, const range *b)
{
    if (a->quality != b->quality)
        return a->quality > b->quality;
    return (strchr(b->type, '*') && !strchr(a->type, '*'))
        || (!strcmp(b->type, "*/*") && strcmp(a->type, "*/*"));
}

/* The ranges in the order in which they are tried; texts are in `copy`, which is cut. */
static size_t read_ranges(char *copy, range out[RANGES_MAX])
{
    size_t n = 0;
    char *save;
    for (char *w = strtok_r(copy, ",", &save); w && n < RANGES_MAX; w = strtok_r(NULL, ",", &save)) {
        range r = read_range(w);
        size_t at = n++;
        for (; at && before(&r, &out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = r;
    }
    return n;
}

/* --- matching ----------------------------------------------------------------------------- */

static bool type_is(const char *type, kl_show_media media)
{
    return !strcmp(type, "*/*") || !strcmp(type, "application/*") || !strcasecmp(type, media_names[media]);
}

static bool read_form(const range *r, kl_show_form *out)
{
    out->kind = KL_FORM_WHOLE;
    out->of_list = false;
    if (!r->as)
        return !r->group && !r->version;
    if (!r->group || strcmp(r->group, "meta.k8s.io") || !r->version
        || (strcmp(r->version, "v1") && strcmp(r->version, "v1beta1")))
        return false;
    out->kind = !strcmp(r->as, "Table") ? KL_FORM_TABLE : KL_FORM_METADATA;
    out->of_list = !strcmp(r->as, "PartialObjectMetadataList");
    return out->kind == KL_FORM_TABLE || out->of_list || !strcmp(r->as, "PartialObjectMetadata");
}

/* The first range, and of it the first media type, that can be given. */
static bool choose(const range *v, size_t n, bool stream, bool protobuf, kl_show_form *out)
{
    for (size_t i = 0; i < n; i++)
        for (kl_show_media m = 0; m < KINDS_OF_MEDIA; m++) {
            bool streams = m != KL_MEDIA_YAML;
            if (!type_is(v[i].type, m) || !read_form(&v[i], out) || (stream && !streams))
                continue;
            if (v[i].stream && *v[i].stream && (!streams || strcmp(v[i].stream, "watch")))
                continue;
            if (m == KL_MEDIA_PROTOBUF
                && (out->kind == KL_FORM_TABLE || (out->kind == KL_FORM_WHOLE && !protobuf)))
                continue;
            out->media = m;
            return true;
        }
    return false;
}

static bool has_protobuf(const kl__kind *k)
{
    char *version = kl__kind_api_version(k);
    bool has = !k->custom && kl_proto_has(version, k->kind);
    kl_free(version);
    return has;
}

/* Whether a route that has the first `types` of the media types lets the request in. */
static bool named(const range *v, size_t n, size_t types)
{
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(v[i].type, "*/*"))
            return true;
        for (size_t m = 0; m < types; m++)
            if (!strcmp(v[i].type, media_names[m]))
                return true;
    }
    return false;
}

static kl_status not_produced(const char *types, const char *more, kl_err *err)
{
    return kl__api_fail(err, 406, "NotAcceptable", kl_value_empty(KL_OBJECT),
        "406: Not Acceptable\n\nAvailable representations: %s%s%s", types, *more ? ", " : "", more);
}

static kl_status not_accepted(const char *types, kl_err *err)
{
    return kl__api_fail(
        err, 406, "NotAcceptable", NULL, "only the following media types are accepted: %s", types);
}

kl_status kl_show_negotiate(const kl__kind *k, kl_show_what what, const char *accept, const char *include,
    kl_show_form *out, kl_err *err)
{
    range v[RANGES_MAX];
    *out = (kl_show_form){0};
    if (include && *include) {
        out->include = !strcmp(include, "Object") ? KL_INCLUDE_OBJECT
            : !strcmp(include, "None")            ? KL_INCLUDE_NONE
                                                  : KL_INCLUDE_METADATA;
        if (out->include == KL_INCLUDE_METADATA && strcmp(include, "Metadata") != 0)
            out->bad_include = include;
    }
    if (!accept || !*accept)
        return KL_OK;
    char *copy = kl_strdup(accept);
    size_t n = read_ranges(copy, v);
    bool protobuf = has_protobuf(k);
    kl_status st = KL_OK;
    if (!k->custom && !named(v, n, KINDS_OF_MEDIA))
        st = not_produced(types_text, what == KL_SHOW_ONE ? "" : streams_text, err);
    else if (!choose(v, n, false, protobuf, out))
        st = not_accepted(types_text, err);
    else if (what == KL_SHOW_WATCH && !choose(v, n, true, protobuf, out))
        st = not_accepted(streams_text, err);
    kl_free(copy);
    return st;
}

/* Whether the media type is one of this range, which may speak of a watch. */
static bool type_fits(const range *r, kl_show_media media)
{
    return type_is(r->type, media)
        && (!r->stream || !*r->stream || (media != KL_MEDIA_YAML && !strcmp(r->stream, "watch")));
}

/* The first range without a form, and of it the first of `types` media types. */
static bool choose_plain(const range *v, size_t n, kl_show_media types, kl_show_media *out)
{
    for (size_t i = 0; i < n; i++)
        for (kl_show_media m = 0; m < types && !v[i].as && !v[i].group && !v[i].version; m++)
            if (type_fits(&v[i], m)) {
                *out = m;
                return true;
            }
    return false;
}

kl_status kl_show_negotiate_page(kl_show_route route, const char *accept, kl_show_media *out, kl_err *err)
{
    range v[RANGES_MAX];
    *out = KL_MEDIA_JSON;
    if (!accept || !*accept)
        return KL_OK;
    char *copy = kl_strdup(accept);
    size_t n = read_ranges(copy, v);
    bool json = route == KL_ROUTE_JSON;
    kl_status st = KL_OK;
    if (route && !named(v, n, json ? 1 : KINDS_OF_MEDIA))
        st = not_produced(json ? media_names[KL_MEDIA_JSON] : types_text, "", err);
    else if (!json && !choose_plain(v, n, KL_MEDIA_PROTOBUF, out))
        st = not_accepted(types_text, err);
    kl_free(copy);
    return st;
}

const char *kl_show_aggregated(const char *accept, kl_show_media *out)
{
    range v[RANGES_MAX];
    bool found = false;
    if (!accept || !strstr(accept, "APIGroupDiscoveryList"))
        return NULL;
    char *copy = kl_strdup(accept);
    size_t n = read_ranges(copy, v);
    for (size_t i = 0; i < n && !found; i++) {
        if (!v[i].as || strcmp(v[i].as, "APIGroupDiscoveryList") || !v[i].version
            || strcmp(v[i].version, "v2") || !v[i].group || strcmp(v[i].group, "apidiscovery.k8s.io"))
            continue;
        for (kl_show_media m = 0; m < KL_MEDIA_PROTOBUF && !found; m++)
            if (type_fits(&v[i], m)) {
                found = true;
                *out = m;
            }
    }
    kl_free(copy);
    return found ? "v2" : NULL;
}

int kl_show_prefers(const char *accept, const char *const *types)
{
    range v[RANGES_MAX];
    int found = -1;
    if (!accept || !*accept)
        return 0;
    char *copy = kl_strdup(accept);
    size_t n = read_ranges(copy, v);
    for (size_t i = 0; i < n && found < 0; i++)
        for (int k = 0; types[k] && found < 0; k++)
            if (!strcmp(v[i].type, "*/*") || !strcmp(v[i].type, "application/*")
                || !strcmp(v[i].type, types[k]))
                found = k;
    kl_free(copy);
    return found;
}

bool kl_show_error_media(const char *accept, kl_show_media *media)
{
    range v[RANGES_MAX];
    *media = KL_MEDIA_JSON;
    if (!accept || !*accept)
        return true;
    char *copy = kl_strdup(accept);
    size_t n = read_ranges(copy, v);
    bool found = choose_plain(v, n, KINDS_OF_MEDIA, media);
    kl_free(copy);
    return found;
}

/* Whether the range that JSON is sent for asks for lines. */
static bool accept_indents(const char *accept)
{
    range v[RANGES_MAX];
    bool indents = false;
    char *copy = kl_strdup(accept);
    size_t n = read_ranges(copy, v), i = 0;
    while (i < n && !type_is(v[i].type, KL_MEDIA_JSON))
        i++;
    if (i < n)
        indents = v[i].pretty && !strcmp(v[i].pretty, "1");
    kl_free(copy);
    return indents;
}

bool kl_show_indents(const char *accept, const char *pretty, const char *agent)
{
    static const char *const yes[] = {"1", "t", "T", "true", "TRUE", "True"};
    static const char *const agents[] = {"curl", "Wget", "Mozilla/5.0"};
    if (accept && accept_indents(accept))
        return true;
    if (pretty && *pretty) {
        for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
            if (!strcmp(pretty, yes[i]))
                return true;
        return false;
    }
    for (size_t i = 0; agent && i < sizeof agents / sizeof *agents; i++)
        if (!strncmp(agent, agents[i], strlen(agents[i])))
            return true;
    return false;
}

kl_status kl_show_fits(const kl__kind *k, const kl_show_form *form, bool list, kl_err *err)
{
    if (form->kind == KL_FORM_TABLE && form->bad_include)
        return kl__api_fail(err, 400, "BadRequest", NULL,
            "Unable to convert to Table as requested: includeObject: Invalid value: \"%s\": must be "
            "'Metadata', 'Object', 'None', or empty",
            form->bad_include);
    if (form->kind != KL_FORM_METADATA || form->of_list == list)
        return KL_OK;
    /* the package of Go in which kube-apiserver has the kind */
    const char *group = k->custom            ? "unstructured"
        : !*k->group                         ? "core"
        : !strcmp(k->group, "events.k8s.io") ? "core"
                                             : k->group;
    const char *kind = !k->custom ? list ? k->list_kind : k->kind
        : list                    ? "UnstructuredList"
                                  : "Unstructured";
    return kl__api_fail(err, 406, "NotAcceptable", NULL,
        "you requested %s, but the requested object is %sa list (*%.*s.%s)",
        list ? "PartialObjectMetadata" : "PartialObjectMetadataList", list ? "" : "not ",
        (int)strcspn(group, "."), group, kind);
}
