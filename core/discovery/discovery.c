/* discovery.c - discovery documents: /api, /apis and below, in the legacy form and the aggregated one
 * (v2). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/sha256.h"
#include "discovery/discovery.h"

/* ------------------------------------------------------------------ pieces */

static void words(kl_builder *b, const char *key, char *const *list, bool always)
{
    if (!always && (!list || !*list))
        return;
    kl_build_key(b, key);
    kl_build_array(b);
    for (; list && *list; list++)
        kl_build_str(b, *list);
    kl_build_end(b);
}

static void group_version(kl_builder *b, const kl__kind *k)
{
    char *gv = kl__kind_api_version(k);
    kl_build_object(b);
    kl_build_kstr(b, "groupVersion", gv);
    kl_build_kstr(b, "version", k->version);
    kl_build_end(b);
    kl_free(gv);
}

/* The first kind of each version of `group`, best version first. Caller frees the array. */
static size_t versions_of(const kl_discovery *s, const char *group, const kl__kind ***out)
{
    size_t n = 0;
    const kl__kind **v = kl_new_array(const kl__kind *, kl__kinds_len(s->kinds) + 1);
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->kinds, i);
        bool known = strcmp(k->group, group) != 0;
        for (size_t j = 0; j < n && !known; j++)
            known = !strcmp(v[j]->version, k->version);
        if (known)
            continue;
        size_t at = n++;
        for (; at > 0 && kl__version_compare(k->version, v[at - 1]->version) < 0; at--)
            v[at] = v[at - 1];
        v[at] = k;
    }
    *out = v;
    return n;
}

/* True when kind i is the first of its group. */
static bool first_of_group(const kl_discovery *s, size_t i)
{
    const char *group = kl__kinds_at(s->kinds, i)->group;
    for (size_t j = 0; j < i; j++)
        if (!strcmp(kl__kinds_at(s->kinds, j)->group, group))
            return false;
    return *group != 0;
}

/* ------------------------------------------------------------------ groups that other servers serve */

/* There is no aggregation, so an APIService with a service of the cluster counts as down: a group version
 * without known resources. */
typedef struct remote {
    const char *group, *version;
} remote;

/* The i-th remote group version; false after the last. */
static bool remote_at(const kl_discovery *s, size_t i, remote *out)
{
    const kl__bucket *b = s->services;
    for (size_t k = 0; b && k < b->len; k++) {
        const kl_value *spec = kl_value_get(b->v[k]->object, "spec");
        *out = (remote){kl_value_str_at(spec, "group", NULL), kl_value_str_at(spec, "version", NULL)};
        if (kl_value_type(kl_value_get(spec, "service")) == KL_OBJECT && out->group && out->version
            && !kl__kinds_has_group(s->kinds, out->group, out->version) && !i--)
            return true;
    }
    return false;
}

static bool is_remote(const kl_discovery *s, const char *group, const char *version)
{
    remote r;
    for (size_t i = 0; remote_at(s, i, &r); i++)
        if (!strcmp(r.group, group) && (!*version || !strcmp(r.version, version)))
            return true;
    return false;
}

static void remote_versions(const kl_discovery *s, kl_builder *b, const char *group)
{
    remote r;
    for (size_t i = 0; remote_at(s, i, &r); i++) {
        if (strcmp(r.group, group))
            continue;
        kl_build_object(b);
        kl_build_kstr(b, "version", r.version);
        kl_build_kstr(b, "freshness", "Stale");
        kl_build_end(b);
    }
}

/* Groups of which we serve no version ourselves, each once. */
static bool only_remote(const kl_discovery *s, size_t i, remote *out)
{
    remote r;
    if (kl__kinds_has_group(s->kinds, out->group, NULL))
        return false;
    for (size_t k = 0; k < i && remote_at(s, k, &r); k++)
        if (!strcmp(r.group, out->group))
            return false;
    return true;
}

/* ------------------------------------------------------------------ legacy */

static void legacy_group(const kl_discovery *s, kl_builder *b, const char *group, bool alone)
{
    const kl__kind **v;
    size_t n = versions_of(s, group, &v);
    kl_build_object(b);
    if (alone) {
        kl_build_kstr(b, "kind", "APIGroup");
        kl_build_kstr(b, "apiVersion", "v1");
    }
    kl_build_kstr(b, "name", group);
    kl_build_key(b, "versions");
    kl_build_array(b);
    for (size_t i = 0; i < n; i++)
        group_version(b, v[i]);
    kl_build_end(b);
    kl_build_key(b, "preferredVersion");
    group_version(b, v[0]);
    kl_build_end(b);
    kl_free(v);
}

static void remote_group(kl_builder *b, const remote *r)
{
    char *gv = kl_sprintf("%s/%s", r->group, r->version);
    kl_build_object(b);
    kl_build_kstr(b, "name", r->group);
    kl_build_key(b, "versions");
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "groupVersion", gv);
    kl_build_kstr(b, "version", r->version);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_key(b, "preferredVersion");
    kl_build_object(b);
    kl_build_kstr(b, "groupVersion", gv);
    kl_build_kstr(b, "version", r->version);
    kl_build_end(b);
    kl_build_end(b);
    kl_free(gv);
}

/* The version at which objects of a kind are stored, as "group/version/kind". Caller frees. */
static char *storage_of(const kl__kind *k)
{
    /* kube-apiserver stores objects of these in another version than the newest one */
    static const char *const others[][2] = {{"events.k8s.io/events", "/v1"},
        {"autoscaling/horizontalpodautoscalers", "autoscaling/v2"},
        {"apiextensions.k8s.io/customresourcedefinitions", "apiextensions.k8s.io/v1beta1"},
        {"storage.k8s.io/volumeattributesclasses", "storage.k8s.io/v1beta1"},
        {"resource.k8s.io/resourceclaims resource.k8s.io/resourceclaimtemplates "
         "resource.k8s.io/resourceslices resource.k8s.io/deviceclasses",
            "resource.k8s.io/v1beta2"}};
    for (size_t i = 0; i < sizeof others / sizeof *others && !k->custom; i++)
        if (kl__kind_among(k, others[i][0]))
            return kl_sprintf("%s/%s", others[i][1], k->kind);
    return kl_sprintf("%s/%s/%s", k->group, k->custom ? k->storage : k->version, k->kind);
}

/* A short hash of that, by which clients see that stored objects change their version. */
static void storage_hash(kl_builder *b, const kl__kind *k)
{
    if (!kl__kind_has_verb(k, "update")) /* its objects are not stored */
        return;
    unsigned char digest[32];
    char *storage = storage_of(k);
    kl_sha256(storage, strlen(storage), digest);
    char *text = kl_base64_encode(digest, 8);
    kl_build_kstr(b, "storageVersionHash", text);
    kl_free(text);
    kl_free(storage);
}

static void legacy_resource(kl_builder *b, const kl__kind *k)
{
    kl_build_object(b);
    kl_build_kstr(b, "name", k->plural);
    kl_build_kstr(b, "singularName", k->singular);
    kl_build_key(b, "namespaced");
    kl_build_bool(b, k->namespaced);
    kl_build_kstr(b, "kind", k->kind);
    words(b, "verbs", k->verbs, true);
    words(b, "shortNames", k->short_names, false);
    words(b, "categories", k->categories, false);
    storage_hash(b, k);
    kl_build_end(b);
    for (size_t i = 0; i < k->nsubs; i++) {
        const kl__sub *sub = &k->subs[i];
        char *name = kl_sprintf("%s/%s", k->plural, sub->name);
        kl_build_object(b);
        kl_build_kstr(b, "name", name);
        kl_build_kstr(b, "singularName", "");
        kl_build_key(b, "namespaced");
        kl_build_bool(b, k->namespaced);
        kl_build_kstr(b, "group", *sub->group ? sub->group : NULL);
        kl_build_kstr(b, "version", *sub->version ? sub->version : NULL);
        kl_build_kstr(b, "kind", sub->kind);
        words(b, "verbs", sub->verbs, true);
        kl_build_end(b);
        kl_free(name);
    }
}

static const kl_value *legacy_resources(const kl_discovery *s, const char *group, const char *version)
{
    char *gv = *group ? kl_sprintf("%s/%s", group, version) : kl_strdup(version);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "APIResourceList");
    kl_build_kstr(b, "apiVersion", *group ? "v1" : NULL); /* as in kube-apiserver */
    kl_build_kstr(b, "groupVersion", gv);
    kl_build_key(b, "resources");
    kl_build_array(b);
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->kinds, i);
        if (!strcmp(k->group, group) && !strcmp(k->version, version))
            legacy_resource(b, k);
    }
    kl_build_end(b);
    kl_build_end(b);
    kl_free(gv);
    return kl_builder_done(b);
}

/* ------------------------------------------------------------------ aggregated */

static void response_kind(kl_builder *b, const char *group, const char *version, const char *kind)
{
    kl_build_key(b, "responseKind");
    kl_build_object(b);
    kl_build_kstr(b, "group", group);
    kl_build_kstr(b, "version", version);
    kl_build_kstr(b, "kind", kind);
    kl_build_end(b);
}

static void aggregated_resource(kl_builder *b, const kl__kind *k)
{
    kl_build_object(b);
    kl_build_kstr(b, "resource", k->plural);
    /* kube-apiserver names the version of its own kinds only where it is another one */
    response_kind(b, k->custom ? k->group : "", k->custom ? k->version : "", k->kind);
    kl_build_kstr(b, "scope", k->namespaced ? "Namespaced" : "Cluster");
    kl_build_kstr(b, "singularResource", k->singular);
    words(b, "verbs", k->verbs, true);
    words(b, "shortNames", k->short_names, false);
    words(b, "categories", k->categories, false);
    if (k->nsubs) {
        kl_build_key(b, "subresources");
        kl_build_array(b);
        for (size_t i = 0; i < k->nsubs; i++) {
            const kl__sub *sub = &k->subs[i];
            kl_build_object(b);
            kl_build_kstr(b, "subresource", sub->name);
            bool own = k->custom && !*sub->version;
            response_kind(b, own ? k->group : sub->group, own ? k->version : sub->version, sub->kind);
            words(b, "verbs", sub->verbs, true);
            kl_build_end(b);
        }
        kl_build_end(b);
    }
    kl_build_end(b);
}

static void aggregated_group(const kl_discovery *s, kl_builder *b, const char *group)
{
    const kl__kind **v;
    size_t n = versions_of(s, group, &v);
    kl_build_object(b);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", *group ? group : NULL);
    kl_build_end(b);
    kl_build_key(b, "versions");
    kl_build_array(b);
    for (size_t i = 0; i < n; i++) {
        kl_build_object(b);
        kl_build_kstr(b, "version", v[i]->version);
        kl_build_key(b, "resources");
        kl_build_array(b);
        for (size_t j = 0; j < kl__kinds_len(s->kinds); j++) {
            const kl__kind *k = kl__kinds_at(s->kinds, j);
            if (!strcmp(k->group, group) && !strcmp(k->version, v[i]->version))
                aggregated_resource(b, k);
        }
        kl_build_end(b);
        kl_build_kstr(b, "freshness", "Current");
        kl_build_end(b);
    }
    remote_versions(s, b, group);
    kl_build_end(b);
    kl_build_end(b);
    kl_free(v);
}

static const kl_value *aggregated(const kl_discovery *s, bool core, const char *version)
{
    kl_builder *b = kl_builder_new();
    char *api = kl_sprintf("apidiscovery.k8s.io/%s", version);
    kl_build_object(b);
    kl_build_kstr(b, "kind", "APIGroupDiscoveryList");
    kl_build_kstr(b, "apiVersion", api);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_end(b);
    kl_build_key(b, "items");
    kl_build_array(b);
    if (core)
        aggregated_group(s, b, "");
    else
        for (size_t i = 0; i < kl__kinds_len(s->kinds); i++)
            if (first_of_group(s, i))
                aggregated_group(s, b, kl__kinds_at(s->kinds, i)->group);
    remote r;
    for (size_t i = 0; !core && remote_at(s, i, &r); i++)
        if (only_remote(s, i, &r))
            aggregated_group(s, b, r.group);
    kl_build_end(b);
    kl_build_end(b);
    kl_free(api);
    return kl_builder_done(b);
}

/* ------------------------------------------------------------------ paths */

static const kl_value *api_versions(const kl_discovery *s)
{
    static char *const v1[] = {"v1", NULL};
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "APIVersions");
    words(b, "versions", v1, true);
    kl_build_key(b, "serverAddressByClientCIDRs");
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "clientCIDR", "0.0.0.0/0");
    kl_build_kstr(b, "serverAddress", s->address);
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static const kl_value *api_groups(const kl_discovery *s)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "kind", "APIGroupList");
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_key(b, "groups");
    kl_build_array(b);
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++)
        if (first_of_group(s, i))
            legacy_group(s, b, kl__kinds_at(s->kinds, i)->group, false);
    remote r;
    for (size_t i = 0; remote_at(s, i, &r); i++)
        if (only_remote(s, i, &r))
            remote_group(b, &r);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Up to the first slash, in place. */
static const char *first_word(char *path)
{
    path[strcspn(path, "/")] = 0;
    return path;
}

static bool is_builtin(const kl_discovery *s, const char *group, const char *version)
{
    for (size_t i = 0; i < kl__kinds_len(s->kinds); i++) {
        const kl__kind *k = kl__kinds_at(s->kinds, i);
        if (!strcmp(k->group, group) && !strcmp(k->version, version))
            return !k->custom;
    }
    return false;
}

static bool below_apis(const kl_discovery *s, const char *rest, kl_discovery_answer *out)
{
    size_t n = strcspn(rest, "/");
    char *group = kl_strndup(rest, n), *version = kl_strdup(rest[n] ? rest + n + 1 : "");
    size_t v = strlen(version);
    while (v && version[v - 1] == '/')
        version[--v] = 0;
    bool ours = false;
    if (*group && !*version && kl__kinds_has_group(s->kinds, group, NULL)) {
        kl_builder *b = kl_builder_new();
        legacy_group(s, b, group, true);
        out->page = kl_builder_done(b);
        ours = true;
    } else if (*group && !strchr(version, '/') && kl__kinds_has_group(s->kinds, group, version)) {
        out->page = legacy_resources(s, group, version);
        out->routed = is_builtin(s, group, version);
        ours = true;
    } else if (*group && is_remote(s, group, first_word(version))) {
        out->code = 503;
        out->text = "service unavailable\n";
        ours = true;
    }
    kl_free(group);
    kl_free(version);
    return ours;
}

const char kl_discovery_version[] = "{\n"
                                    "  \"major\": \"1\",\n"
                                    "  \"minor\": \"34\",\n"
                                    "  \"emulationMajor\": \"1\",\n"
                                    "  \"emulationMinor\": \"34\",\n"
                                    "  \"minCompatibilityMajor\": \"1\",\n"
                                    "  \"minCompatibilityMinor\": \"33\",\n"
                                    "  \"gitVersion\": \"v1.34.3-kubelua\",\n"
                                    "  \"gitCommit\": \"\",\n"
                                    "  \"gitTreeState\": \"\",\n"
                                    "  \"buildDate\": \"1970-01-01T00:00:00Z\",\n"
                                    "  \"goVersion\": \"\",\n"
                                    "  \"compiler\": \"gcc\",\n"
                                    "  \"platform\": \"linux/amd64\"\n"
                                    "}";

bool kl_discovery_is(const char *path, const char *page)
{
    size_t n = strlen(page);
    return !strncmp(path, page, n) && !path[n + strspn(path + n, "/")];
}

/* Slashes behind a page lead to it, but only one behind "/apis". */
bool kl_discovery_page(const kl_discovery *s, const char *path, const char *version, kl_discovery_answer *out)
{
    bool core = kl_discovery_is(path, "/api");
    *out = (kl_discovery_answer){.code = 200, .routed = core};
    if (core || !strcmp(path, "/apis") || !strcmp(path, "/apis/")) {
        out->page = version ? aggregated(s, core, version) : core ? api_versions(s) : api_groups(s);
        return true;
    }
    if (kl_discovery_is(path, "/api/v1")) {
        out->page = legacy_resources(s, "", "v1");
        out->routed = true;
        return true;
    }
    return !strncmp(path, "/apis/", 6) && below_apis(s, path + 6, out);
}
