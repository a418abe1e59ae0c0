/* serving.c - the table of kinds, and APIServices (pkg/apis/apiregistration of kube-aggregator). */
#include "serving/serving.h"

#include <string.h>

#include "base/mem.h"
#include "builtin/fill.h"
#include "check/forms.h"
#include "model/names.h"
#include "model/object.h"
#include "model/time.h"
#include "schema/edit.h"
#include "serving/parts.h"

#define SPEC KL_IN(NULL, "spec")
#define SERVICES "apiregistration.k8s.io/apiservices"
#define GROUP_PRIORITY_MAX 20000
#define VERSION_PRIORITY_MAX 1000

/* ------------------------------------------------------------------ APIService */

static void service_port(const kl_value **service) { kl__put_int(service, "port", 443); }
static void api_service_fill(const kl_value **spec) { kl__inside(spec, "service", service_port); }

/* Checks that the name is VERSION.GROUP. */
static void check_service_name(const kl__write *w, const kl_value *spec)
{
    const char *name = kl_object_name(w->o);
    char *want = kl_sprintf("%s.%s", kl__text(spec, "version"), kl__text(spec, "group"));
    if (name && *name && !kl_name_path_segment(name) && strcmp(name, want))
        kl__say_invalid_text(w->causes, KL_IN(KL_IN(NULL, "metadata"), "name"), name,
            "must be `spec.version+\".\"+spec.group`: \"%s\"", want);
    kl_free(want);
}

static void check_priority(kl__causes *c, const kl_value *spec, const char *member, int64_t most)
{
    int64_t n = kl_value_int_at(spec, 0, member, NULL);
    if (n <= 0 || n > most)
        kl__say_invalid_int(
            c, KL_IN(SPEC, member), n, "must be positive and less than %lld", (long long)most);
}

static void check_local(kl__causes *c, const kl_value *spec)
{
    size_t bytes = kl_value_len(kl_value_get(spec, "caBundle"));
    const char *text = kl__text(spec, "caBundle");
    if (bytes) {
        size_t padding = text[bytes - 1] != '=' ? 0 : bytes > 1 && text[bytes - 2] == '=' ? 2 : 1;
        char *shown = kl_sprintf("%zu bytes", bytes / 4 * 3 - padding);
        kl__say_invalid_text(c, KL_IN(SPEC, "caBundle"), shown, "local APIServices may not have a caBundle");
        kl_free(shown);
    }
    if (kl__true(spec, "insecureSkipTLSVerify"))
        kl__say_invalid(c, KL_IN(SPEC, "insecureSkipTLSVerify"), kl_value_get(spec, "insecureSkipTLSVerify"),
            "local APIServices may not have insecureSkipTLSVerify");
}

static void check_remote(kl__causes *c, const kl_value *spec, const kl_value *service)
{
    const kl__place *at = KL_IN(SPEC, "service");
    int64_t port = kl_value_int_at(service, 0, "port", NULL);
    kl__check_present(c, service, at, "namespace");
    kl__check_present(c, service, at, "name");
    if (port < 1 || port > 65535)
        kl__say_invalid_int(
            c, KL_IN(at, "port"), port, "port is not valid: must be between 1 and 65535, inclusive");
    if (kl__true(spec, "insecureSkipTLSVerify") && *kl__text(spec, "caBundle"))
        kl__say_invalid(c, KL_IN(SPEC, "insecureSkipTLSVerify"), kl_value_get(spec, "insecureSkipTLSVerify"),
            "may not be true if caBundle is present");
}

static void check_service_status(const kl__write *w)
{
    const kl_value *list = kl_value_at(w->o, "status", "conditions", NULL);
    const kl__place *in = KL_IN(KL_IN(NULL, "status"), "conditions");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        if (!kl__one_of(kl__text(one, "status"), "True False Unknown"))
            kl__say_unsupported(w->causes, KL_IN(KL_ITEM(in, i), "status"), kl_value_get(one, "status"),
                "True False Unknown");
    }
}

void kl__check_api_service(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *service = kl_value_get(spec, "service");
    const char *group = kl__text(spec, "group"), *version = kl__text(spec, "version");
    if (w->sub) {
        check_service_status(w);
        return;
    }
    check_service_name(w, spec);
    if (!*group && strcmp(version, "v1"))
        kl__say_required(
            c, KL_IN(SPEC, "group"), "only v1 may have an empty group and it better be legacy kube");
    kl__check_member(c, spec, SPEC, "group", KL_DNS_SUBDOMAIN);
    kl__check_form(c, KL_IN(SPEC, "version"), version, KL_DNS_1035);
    check_priority(c, spec, "groupPriorityMinimum", GROUP_PRIORITY_MAX);
    check_priority(c, spec, "versionPriority", VERSION_PRIORITY_MAX);
    if (service)
        check_remote(c, spec, service);
    else
        check_local(c, spec);
}

static const kl_value *available(kl_time wall)
{
    char now[KL_TIME_MAX];
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    kl_build_object(b);
    kl_build_kstr(b, "type", "Available");
    kl_build_kstr(b, "status", "True");
    kl_build_kstr(b, "lastTransitionTime", kl_time_format_wall(wall, now));
    kl_build_kstr(b, "reason", "Local");
    kl_build_kstr(b, "message", "Local APIServices are always available");
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

void kl__serving_begin(const kl__kind *k, kl_time wall, const kl_value **o)
{
    if (kl__kind_among(k, SERVICES) && !kl_value_at(*o, "spec", "service", NULL)
        && !kl_value_at(*o, "status", "conditions", NULL))
        KL_EDIT(o, available(wall), "status", "conditions");
}

/* ------------------------------------------------------------------ the table */

static const struct {
    const char *kind;
    void (*check)(const kl__write *w);
    kl__edit_fn *spec;
} kinds[] = {
    {SERVICES, kl__check_api_service, api_service_fill},
    {"flowcontrol.apiserver.k8s.io/flowschemas", kl__check_flow_schema, kl__flow_schema_fill},
    {"flowcontrol.apiserver.k8s.io/prioritylevelconfigurations", kl__check_priority_level,
        kl__priority_level_fill},
    {"networking.k8s.io/ipaddresses", kl__check_ip_address, NULL},
    {"networking.k8s.io/servicecidrs", kl__check_service_cidr, NULL},
};

void kl__serving_fill(const kl__kind *k, const kl_value **o)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].spec && kl__kind_among(k, kinds[i].kind))
            kl__inside(o, "spec", kinds[i].spec);
}

bool kl__serving_validate(const kl__write *w)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kl__kind_among(w->kind, kinds[i].kind)) {
            kinds[i].check(w);
            return true;
        }
    return false;
}
