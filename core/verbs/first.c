/* first.c - the objects that kube-apiserver makes for itself. */
#include "verbs/first.h"

#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "builtin/service.h"
#include "model/object.h"
#include "model/resource.h"
#include "model/time.h"
#include "serving/serving.h"
#include "verbs/lifecycle.h"
#include "verbs/verbs_impl.h"

#define NETWORKING "networking.k8s.io"
#define REGISTRATION "apiregistration.k8s.io"
#define MANAGED "kube-aggregator.kubernetes.io/automanaged"
/* the first address of KL_SERVICE_RANGE */
#define OWN_ADDRESS "10.96.0.1"

/* ------------------------------------------------------------------ objects */

/* Creates an object. One with managers is in the form in which it is stored; the server owns all others.
 * Takes `o`. */
static kl_status create(kl__world *w, kl__kind *k, const kl_value *o, kl_err *err)
{
    kl__call c = {.w = w,
        .kind = k,
        .ns = k->namespaced ? kl_object_namespace(o) : NULL,
        .manager = "kube-apiserver",
        .any_status = true};
    const kl_value *out = NULL;
    bool stored = kl_value_at(o, "metadata", "managedFields", NULL) != NULL;
    kl_status st = stored ? kl__verb_create_decoded(&c, kl_value_ref(o), true, &out, err)
                          : kl__verb_create(&c, o, &out, err);
    kl_value_unref(out);
    kl_value_unref(o);
    return st;
}

kl_status kl__first_missing(kl__world *w, const kl_value *o, kl_err *err)
{
    char *group, *version, *key = kl_object_key(o);
    kl_api_version_split(kl_object_api_version(o), &group, &version);
    kl__kind *k = kl__kinds_by_kind(w->kinds, group, version, kl_object_kind(o));
    kl_status st = kl__bucket_get(k->bucket, key) ? KL_OK : create(w, k, kl_value_ref(o), err);
    kl_value_unref(o);
    kl_free(group);
    kl_free(version);
    kl_free(key);
    return st;
}

/* The text with the present time instead of each "NOW". */
static void with_times(const kl__world *w, const char *text, kl_buf *out)
{
    static const char mark[] = "\"NOW\"";
    char now[KL_TIME_MAX];
    kl_time_format_wall(kl__world_wall(w), now);
    for (const char *at; (at = strstr(text, mark)); text = at + sizeof mark - 1) {
        kl_buf_add(out, text, (size_t)(at - text));
        kl_buf_printf(out, "\"%s\"", now);
    }
    kl_buf_puts(out, text);
}

kl_status kl__first_list(kl__world *w, const char *text, kl_err *err)
{
    const kl_value *all = NULL;
    kl_buf dated = KL_BUF_INIT;
    with_times(w, text, &dated);
    kl_status st = kl_value_decode(dated.data, dated.len, &all, err);
    for (size_t i = 0; !st && i < kl_value_len(all); i++)
        st = kl__first_missing(w, kl_value_ref(kl_value_item(all, i)), err);
    kl_value_unref(all);
    kl_buf_fini(&dated);
    return st;
}

/* ------------------------------------------------------------------ the start */

static const char namespaces[] =
    "[{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"default\"}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"kube-system\"}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"kube-public\"}},"
    "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"metadata\":{\"name\":\"kube-node-lease\"}}]";

static kl__bucket *definitions(const kl__world *w)
{
    return kl__store_bucket(w->store, "apiextensions.k8s.io", "customresourcedefinitions");
}

kl_status kl__first_make(kl__world *w, kl_err *err)
{
    kl_status st = kl__first_list(w, namespaces, err);
    if (!st && w->complete)
        st = kl__first_list(w, kl_serving_defaults, err);
    for (size_t i = 0; !st && i < definitions(w)->len; i++) /* of an archive that had none for them */
        kl__first_versions(w, kl_value_str_at(definitions(w)->v[i]->object, "spec", "group", NULL));
    return st;
}

kl_status kl__first_serve(kl__world *w, const char *ip, int port, kl_err *err)
{
    if (!w->complete)
        return KL_OK;
    char *text = kl_sprintf(
        "[{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"namespace\":\"default\",\"name\":"
        "\"kubernetes\",\"labels\":{\"component\":\"apiserver\",\"provider\":\"kubernetes\"}},\"spec\":{"
        "\"clusterIP\":\"" OWN_ADDRESS "\",\"ipFamilyPolicy\":\"SingleStack\",\"ports\":[{\"name\":\"https\","
        "\"port\":443,\"targetPort\":%d}]}}]",
        port);
    kl_status st = kl__first_list(w, text, err);
    kl_free(text);
    if (st || !ip)
        return st;
    text = kl_sprintf(
        "[{\"apiVersion\":\"v1\",\"kind\":\"Endpoints\",\"metadata\":{\"namespace\":\"default\",\"name\":"
        "\"kubernetes\",\"labels\":{\"endpointslice.kubernetes.io/skip-mirror\":\"true\"}},\"subsets\":[{"
        "\"addresses\":[{\"ip\":\"%s\"}],\"ports\":[{\"name\":\"https\",\"port\":%d,\"protocol\":\"TCP\"}]}]}"
        ","
        "{\"apiVersion\":\"discovery.k8s.io/v1\",\"kind\":\"EndpointSlice\",\"metadata\":{\"namespace\":"
        "\"default\",\"name\":\"kubernetes\",\"labels\":{\"kubernetes.io/service-name\":\"kubernetes\"}},"
        "\"addressType\":\"IPv4\",\"endpoints\":[{\"addresses\":[\"%s\"],\"conditions\":{\"ready\":true}}],"
        "\"ports\":[{\"name\":\"https\",\"port\":%d,\"protocol\":\"TCP\"}]}]",
        ip, port, ip, port);
    st = kl__first_list(w, text, err);
    kl_free(text);
    return st;
}

/* ------------------------------------------------------------------ addresses of Services */

static const kl_value *addresses_of(const kl_value *service)
{
    const kl_value *spec = kl_value_get(service, "spec");
    return spec && !kl__service_headless(spec) ? kl_value_get(spec, "clusterIPs") : NULL;
}

static const kl_value *address_for(const kl_value *service, const char *ip)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "name", ip);
    kl_build_key(b, "labels");
    kl_build_object(b);
    kl_build_kstr(b, "ipaddress.kubernetes.io/ip-family", strchr(ip, ':') ? "IPv6" : "IPv4");
    kl_build_kstr(b, "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");
    kl_build_end(b);
    kl_build_end(b);
    kl_build_key(b, "spec");
    kl_build_object(b);
    kl_build_key(b, "parentRef");
    kl_build_object(b);
    kl_build_kstr(b, "resource", "services");
    kl_build_kstr(b, "namespace", kl_object_namespace(service));
    kl_build_kstr(b, "name", kl_object_name(service));
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

static void lose(kl__world *w, kl__kind *k, const char *key)
{
    const kl_value *gone = kl__store_remove(w->store, k->bucket, key, NULL);
    if (gone)
        kl__after_remove(w, k, gone);
    kl_value_unref(gone);
}

void kl__first_addresses(kl__world *w, const kl__kind *k, const kl_value *old, const kl_value *now)
{
    if (!w->complete || !kl__kind_among(k, "/services"))
        return;
    kl__kind *addresses = kl__kinds_get(w->kinds, NETWORKING, "v1", "ipaddresses");
    const kl_value *had = addresses_of(old), *has = addresses_of(now);
    for (size_t i = 0; i < kl_value_len(had); i++) {
        const char *ip = kl_value_str(kl_value_item(had, i));
        if (ip && !kl_value_has_str(has, ip))
            lose(w, addresses, ip);
    }
    for (size_t i = 0; i < kl_value_len(has); i++) {
        const char *ip = kl_value_str(kl_value_item(has, i));
        if (ip && !kl__bucket_get(addresses->bucket, ip))
            (void)!create(w, addresses, address_for(now, ip), NULL);
    }
}

/* ------------------------------------------------------------------ versions of definitions */

static const kl_value *service_for(const char *name, const char *group, const char *version)
{
    char *text = kl_sprintf("{\"metadata\":{\"name\":\"%s\",\"labels\":{\"" MANAGED
                            "\":\"true\"}},\"spec\":{\"group\":\"%s\","
                            "\"version\":\"%s\",\"groupPriorityMinimum\":1000,\"versionPriority\":100}}",
        name, group, version);
    const kl_value *o = NULL;
    if (kl_value_decode(text, strlen(text), &o, NULL))
        o = NULL;
    kl_free(text);
    return o;
}

/* The names of the versions of a group that its definitions serve, as keys. */
static kl_map *served_versions(const kl__world *w, const char *group)
{
    const kl__bucket *b = definitions(w);
    kl_map *names = kl_map_new();
    for (size_t i = 0; i < b->len; i++) {
        const kl_value *crd = b->v[i]->object, *versions = kl_value_at(crd, "spec", "versions", NULL);
        const char *its = kl_value_str_at(crd, "spec", "group", NULL);
        for (size_t v = 0; its && !strcmp(its, group) && v < kl_value_len(versions); v++) {
            const kl_value *one = kl_value_item(versions, v);
            const char *name = kl_value_str(kl_value_get(one, "name"));
            if (name && kl_value_bool(kl_value_get(one, "served"), false))
                kl_map_set(names, name, names);
        }
    }
    return names;
}

static void create_service(kl__world *w, kl__kind *services, const char *group, const char *version)
{
    char *name = kl_sprintf("%s.%s", version, group);
    const kl_value *o = kl__bucket_get(services->bucket, name) ? NULL : service_for(name, group, version);
    if (o)
        (void)!create(w, services, o, NULL);
    kl_free(name);
}

/* Whether the server made this APIService, and no longer serves its version of the group. */
static bool outlived(const kl_value *service, const char *group, const kl_map *served)
{
    const char *its = kl_value_str_at(service, "spec", "group", NULL),
               *version = kl_value_str_at(service, "spec", "version", NULL),
               *managed = kl_value_str_at(service, "metadata", "labels", MANAGED, NULL);
    return its && version && managed && !strcmp(its, group) && !strcmp(managed, "true")
        && !kl_map_has(served, version);
}

void kl__first_versions(kl__world *w, const char *group)
{
    kl__kind *services = kl__kinds_get(w->kinds, REGISTRATION, "v1", "apiservices");
    if (!w->complete || !group)
        return;
    kl_map *served = served_versions(w, group);
    char **versions = kl_map_sorted_keys(served);
    for (size_t i = 0; versions[i]; i++)
        create_service(w, services, group, versions[i]);
    for (size_t i = services->bucket->len; i-- > 0;) {
        const kl__entry *s = services->bucket->v[i];
        char *key = outlived(s->object, group, served) ? kl_strdup(s->key) : NULL;
        if (key)
            lose(w, services, key);
        kl_free(key);
    }
    kl_free(versions);
    kl_map_free(served, NULL);
}
