/* claims.c - ResourceClaims, their templates and DeviceClasses (pkg/apis/resource/validation). */
#include <string.h>

#include "base/mem.h"
#include "builtin/storage.h"
#include "check/forms.h"
#include "devices/devices.h"
#include "devices/parts.h"
#include "schema/validate.h"

#define SPEC KL_IN(NULL, "spec")
#define REQUESTS_MAX 32
#define CONSTRAINTS_MAX 32
#define CONFIGS_MAX 32
#define CHOICES_MAX 8
#define PARAMETERS_MAX (10 * 1024)
#define ID_MAX 32
#define POOL_MAX 253
#define ADMIN_LABEL "resource.kubernetes.io/admin-access"

/* ------------------------------------------------------------------ lists and names */

void kl__claim_look_init(kl__claim_look *look, kl__causes *c, const kl_value *devices)
{
    const kl_value *list = kl_value_get(devices, "requests");
    *look = (kl__claim_look){.c = c, .names = kl_map_new()};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *choices = kl_value_get(one, "firstAvailable");
        kl_map_set(look->names, kl__text(one, "name"), look);
        for (size_t k = 0; k < kl_value_len(choices); k++) {
            char *name = kl_sprintf(
                "%s/%s", kl__text(one, "name"), kl__text(kl_value_item(choices, k), "name"));
            kl_map_set(look->names, name, look);
            kl_free(name);
        }
    }
}

void kl__claim_look_fini(kl__claim_look *look) { kl_map_free(look->names, NULL); }

void kl__check_items(const kl__claim_look *look, const kl_value *list, unsigned most, kl__item_check *check,
    const kl__place *at)
{
    for (size_t i = 0; i < kl_value_len(list); i++)
        check(look, kl_value_item(list, i), KL_ITEM(at, i));
    if (most && kl_value_len(list) > most)
        kl__say_too_many(look->c, at, kl_value_len(list), most);
}

void kl__check_set(const kl__claim_look *look, const kl_value *list, unsigned most, const char *key,
    kl__item_check *check, const kl__place *at)
{
    kl_finder before = {.key = key, .empty_is_absent = true};
    kl__check_items(look, list, most, check, at);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const kl__place *item = KL_ITEM(at, i);
        if (kl_finder_repeats(&before, one))
            kl__say_duplicate(look->c, key ? KL_IN(item, key) : item, key ? kl_value_get(one, key) : one);
    }
    kl_finder_fini(&before);
}

static void check_ref(const kl__claim_look *look, const kl_value *name, const kl__place *at)
{
    const char *text = kl_value_str(name);
    kl__check_request_ref(look, text ? text : "", at);
}

void kl__check_request_refs(const kl__claim_look *look, const kl_value *list, const kl__place *at)
{
    kl__check_set(look, list, REQUESTS_MAX, NULL, check_ref, at);
}

void kl__check_request_ref(const kl__claim_look *look, const char *name, const kl__place *at)
{
    static const char none[] = "must be the name of a request in the claim or the name of a request and a "
                               "subrequest separated by '/'";
    const char *slash = strchr(name, '/');
    if (slash && strchr(slash + 1, '/')) {
        kl__say_invalid_text(look->c, at, name, "%s", none);
        return;
    }
    char *first = kl_strndup(name, slash ? (size_t)(slash - name) : strlen(name));
    kl__check_form(look->c, at, first, KL_DNS_LABEL);
    if (slash)
        kl__check_form(look->c, at, slash + 1, KL_DNS_LABEL);
    if (!kl_map_has(look->names, name))
        kl__say_invalid_text(look->c, at, name, "%s", none);
    kl_free(first);
}

void kl__check_pool_name(kl__causes *c, const char *name, const kl__place *at)
{
    if (!*name) {
        kl__say_required(c, at, "");
        return;
    }
    if (strlen(name) > POOL_MAX)
        kl__say_too_long(c, at, POOL_MAX);
    for (const char *p = name; p;) {
        size_t n = strcspn(p, "/");
        char *part = kl_strndup(p, n);
        kl__check_form(c, at, part, KL_DNS_SUBDOMAIN);
        kl_free(part);
        p = p[n] ? p + n + 1 : NULL;
    }
}

static void check_id(kl__causes *c, const char *id, const kl__place *at)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    if (strlen(id) > ID_MAX)
        kl__say_too_long(c, at, ID_MAX);
    if (!*id || (*id >= '0' && *id <= '9') || id[strspn(id, letters)])
        kl__say_invalid_text(c, at, id,
            "a valid C identifier must start with alphabetic character or '_', followed by a string of "
            "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', " KL_REGEX_USED(
                "[A-Za-z_][A-Za-z0-9_]*"));
}

void kl__check_qualified_id(kl__causes *c, const char *name, const kl__place *at)
{
    const char *slash = strchr(name, '/');
    if (!*name)
        kl__say_required(c, at, "name required");
    else if (!slash)
        check_id(c, name, at);
    else if (!strchr(slash + 1, '/')) { /* kube-apiserver reports no fault for more than one slash */
        char *domain = kl_strndup(name, (size_t)(slash - name));
        if (*domain)
            kl__check_driver(c, domain, at);
        else
            kl__say_required(c, at, "the domain must not be empty");
        if (slash[1])
            check_id(c, slash + 1, at);
        else
            kl__say_required(c, at, "the name must not be empty");
        kl_free(domain);
    }
}

/* ------------------------------------------------------------------ requests */

static void check_mode(kl__causes *c, const kl_value *request, const kl__place *at)
{
    int64_t count = kl_value_int_at(request, 0, "count", NULL);
    const kl__place *count_at = KL_IN(at, "count");
    if (kl__is(request, "allocationMode", "All")) {
        if (count)
            kl__say_invalid_int(c, count_at, count, "must not be specified when allocationMode is 'All'");
    } else if (!kl__is(request, "allocationMode", "ExactCount"))
        kl__say_unsupported(
            c, KL_IN(at, "allocationMode"), kl_value_get(request, "allocationMode"), "All ExactCount");
    else if (count <= 0)
        kl__say_invalid_int(c, count_at, count, "must be greater than zero");
}

static void check_toleration(const kl__claim_look *look, const kl_value *t, const kl__place *at)
{
    kl__causes *c = look->c;
    const kl_value *value = kl_value_get(t, "value");
    kl__check_member(c, t, at, "key", KL_QUALIFIED);
    kl__check_word(c, t, at, "operator", true, "Equal Exists");
    if (kl__is(t, "operator", "Exists") && *kl__text(t, "value"))
        kl__say_invalid(c, KL_IN(at, "value"), value, "must be empty for operator `Exists`");
    if (kl__is(t, "operator", "Equal"))
        kl__check_member(c, t, at, "value", KL_LABEL_VALUE);
    kl__check_word(c, t, at, "effect", false, "NoExecute NoSchedule");
}

/* Checks the common fields of an exact request and an alternative. */
static void check_wanted(const kl__claim_look *look, const kl_value *request, const kl__place *at)
{
    kl__check_present(look->c, request, at, "deviceClassName");
    kl__check_member(look->c, request, at, "deviceClassName", KL_DNS_SUBDOMAIN);
    kl__check_device_selectors(look->c, kl_value_get(request, "selectors"), KL_IN(at, "selectors"));
    check_mode(look->c, request, at);
    kl__check_items(
        look, kl_value_get(request, "tolerations"), 0, check_toleration, KL_IN(at, "tolerations"));
}

static void check_choice(const kl__claim_look *look, const kl_value *request, const kl__place *at)
{
    kl__check_form(look->c, KL_IN(at, "name"), kl__text(request, "name"), KL_DNS_LABEL);
    check_wanted(look, request, at);
}

static void check_request(const kl__claim_look *look, const kl_value *request, const kl__place *at)
{
    const kl_value *choices = kl_value_get(request, "firstAvailable"),
                   *exactly = kl_value_get(request, "exactly");
    kl__check_form(look->c, KL_IN(at, "name"), kl__text(request, "name"), KL_DNS_LABEL);
    kl__check_set(look, choices, CHOICES_MAX, "name", check_choice, KL_IN(at, "firstAvailable"));
    if (exactly)
        check_wanted(look, exactly, KL_IN(at, "exactly"));
    if (!kl_value_len(choices) && !exactly)
        kl__say_required(look->c, at, "exactly one of `exactly` or `firstAvailable` is required");
    else if (kl_value_len(choices) && exactly)
        kl__say_invalid(look->c, at, NULL,
            "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set");
}

/* ------------------------------------------------------------------ constraints and configuration */

static void check_constraint(const kl__claim_look *look, const kl_value *constraint, const kl__place *at)
{
    static const char *const members[] = {"matchAttribute", "distinctAttribute"};
    kl__check_request_refs(look, kl_value_get(constraint, "requests"), KL_IN(at, "requests"));
    for (size_t i = 0; i < 2; i++) {
        const kl_value *v = kl_value_get(constraint, members[i]);
        const char *name = kl__text(constraint, members[i]);
        const kl__place *in = KL_IN(at, members[i]);
        if (!v)
            continue;
        kl__check_qualified_id(look->c, name, in);
        if (*name && !strchr(name, '/'))
            kl__say_invalid(look->c, in, v, "must include a domain");
        return;
    }
    kl__say_required(look->c, KL_IN(at, "matchAttribute"), "");
}

void kl__check_raw(kl__causes *c, const kl_value *o, const char *member, unsigned most, const kl__place *at)
{
    const kl_value *v = kl_value_get(o, member);
    const kl__place *in = KL_IN(at, member);
    kl_buf text = KL_BUF_INIT;
    if (v)
        (void)!kl_value_encode(v, &text);
    if (!v || kl_value_type(v) == KL_NULL)
        kl__say_required(c, in, "");
    else if (text.len > most)
        kl__say_too_long(c, in, most);
    else if (kl_value_type(v) != KL_OBJECT)
        kl__say_invalid_text(c, in, "<value omitted>", "must be a valid JSON object");
    kl_buf_fini(&text);
}

void kl__check_device_config(kl__causes *c, const kl_value *config, const kl__place *at)
{
    const kl_value *opaque = kl_value_get(config, "opaque");
    const kl__place *in = KL_IN(at, "opaque");
    if (!opaque) {
        kl__say_required(c, in, "");
        return;
    }
    kl__check_driver(c, kl__text(opaque, "driver"), KL_IN(in, "driver"));
    kl__check_raw(c, opaque, "parameters", PARAMETERS_MAX, in);
}

static void check_claim_config(const kl__claim_look *look, const kl_value *config, const kl__place *at)
{
    kl__check_request_refs(look, kl_value_get(config, "requests"), KL_IN(at, "requests"));
    kl__check_device_config(look->c, config, at);
}

static void check_class_config(const kl__claim_look *look, const kl_value *config, const kl__place *at)
{
    kl__check_device_config(look->c, config, at);
}

/* ------------------------------------------------------------------ claims */

static void check_claim_spec(kl__causes *c, const kl_value *spec, const kl__place *at)
{
    const kl_value *devices = kl_value_get(spec, "devices");
    const kl__place *in = KL_IN(at, "devices");
    kl__claim_look look;
    kl__claim_look_init(&look, c, devices);
    kl__check_set(
        &look, kl_value_get(devices, "requests"), REQUESTS_MAX, "name", check_request, KL_IN(in, "requests"));
    kl__check_items(&look, kl_value_get(devices, "constraints"), CONSTRAINTS_MAX, check_constraint,
        KL_IN(in, "constraints"));
    kl__check_items(
        &look, kl_value_get(devices, "config"), CONFIGS_MAX, check_claim_config, KL_IN(in, "config"));
    kl__claim_look_fini(&look);
}

#define WANTED_AS_GO "DeviceClassName Selectors[CEL?{Expression}] AllocationMode Count# "
#define CLAIM_AS_GO                                                                                          \
    "Devices{Requests[Name Exactly?{" WANTED_AS_GO "AdminAccess? " KL_TOLERATIONS_AS_GO                      \
    " Capacity?} FirstAvailable[Name " WANTED_AS_GO KL_TOLERATIONS_AS_GO " Capacity?]] "                     \
    "Constraints[Requests? MatchAttribute? DistinctAttribute?] Config[Requests? " KL_OPAQUE_AS_GO "]}"

/* A template's spec: Go prints the members of its metadata beside its spec. */
static const kl_value *template_as_go(const kl_value *spec)
{
    const kl_value *metadata = kl_value_get(spec, "metadata"),
                   *inner = kl__as_go(spec, "Spec{" CLAIM_AS_GO "}");
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(metadata); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(metadata, i, &key, &n);
        if (kl_value_type(v) != KL_NULL)
            kl_build_kvalue(b, key, v);
    }
    kl_build_kvalue(b, "Spec", kl_value_get(inner, "Spec"));
    kl_build_end(b);
    kl_value_unref(inner);
    return kl_builder_done(b);
}

void kl__check_admin(
    kl__causes *c, const kl_value *list, const char *inner, const kl_value *ns, const kl__place *at)
{
    const char *label = kl_value_str_at(ns, "metadata", "labels", ADMIN_LABEL, NULL);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        if (!kl__true(inner ? kl_value_get(one, inner) : one, "adminAccess"))
            continue;
        if (!label || strcmp(label, "true") != 0)
            kl__say_forbidden(c, KL_IN(KL_ITEM(at, i), "adminAccess"),
                "admin access to devices requires the `" ADMIN_LABEL
                ": true` label on the containing namespace");
        return;
    }
}

/* kube-apiserver checks a changed object twice: once as a new one. */
static int times(const kl__write *w) { return w->old ? 2 : 1; }

static void check_unchanged(const kl__write *w, const kl_value *shown)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    if (w->old && !kl_value_equal(kl_value_get(w->old, "spec"), spec))
        kl__say_invalid(w->causes, SPEC, shown, "field is immutable");
}

static void check_claim(const kl__write *w, const kl_value *ns)
{
    const kl_value *spec = kl_value_get(w->o, "spec"),
                   *requests = kl_value_at(spec, "devices", "requests", NULL);
    if (w->sub) {
        kl__check_claim_status(w, ns);
        return;
    }
    if (!w->old)
        kl__check_admin(w->causes, requests, "exactly", ns, KL_IN(KL_IN(SPEC, "devices"), "requests"));
    for (int i = 0; i < times(w); i++) {
        if (i) {
            const kl_value *shown = kl__as_go(spec, CLAIM_AS_GO);
            check_unchanged(w, shown);
            kl_value_unref(shown);
        }
        check_claim_spec(w->causes, spec, SPEC);
    }
}

/* A template's metadata has labels and annotations alone. */
static void check_alone(kl__causes *causes, const kl_value *metadata)
{
    for (size_t i = 0; i < kl_value_len(metadata); i++) {
        const char *key;
        size_t n;
        const kl_value *v = kl_value_member(metadata, i, &key, &n);
        bool none = kl_value_type(v) == KL_NULL || !strcmp(key, "labels") || !strcmp(key, "annotations");
        if (!none)
            kl__say_forbidden(
                causes, KL_IN(KL_IN(SPEC, "metadata"), strcmp(key, "uid") ? key : "uID"), "cannot be set");
    }
}

static void check_template(const kl__write *w, const kl_value *ns)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *inner = kl_value_get(spec, "spec"),
                   *metadata = kl_value_get(spec, "metadata"),
                   *requests = kl_value_at(inner, "devices", "requests", NULL);
    if (!w->old)
        kl__check_admin(w->causes, requests, "exactly", ns, KL_IN(KL_IN(SPEC, "devices"), "requests"));
    for (int i = 0; i < times(w); i++) {
        if (i) {
            const kl_value *shown = template_as_go(spec);
            check_unchanged(w, shown);
            kl_value_unref(shown);
        }
        kl__validate_annotations(
            "spec.metadata.annotations", kl_value_get(metadata, "annotations"), w->causes);
        kl__validate_labels("spec.metadata.labels", kl_value_get(metadata, "labels"), w->causes);
        check_alone(w->causes, metadata);
        check_claim_spec(w->causes, inner, KL_IN(SPEC, "spec"));
    }
}

static void check_class(const kl__write *w, const kl_value *ns)
{
    (void)ns;
    const kl_value *spec = kl_value_get(w->o, "spec");
    kl__claim_look look = {.c = w->causes};
    for (int i = 0; i < times(w); i++) {
        kl__check_device_selectors(w->causes, kl_value_get(spec, "selectors"), KL_IN(SPEC, "selectors"));
        kl__check_items(
            &look, kl_value_get(spec, "config"), CONFIGS_MAX, check_class_config, KL_IN(SPEC, "config"));
    }
}

static void check_slice(const kl__write *w, const kl_value *ns)
{
    (void)ns;
    kl__check_resource_slice(w);
}

bool kl__devices_validate(const kl__write *w, const kl_value *ns)
{
    static const struct {
        const char *kind;
        void (*check)(const kl__write *w, const kl_value *ns);
    } kinds[] = {
        {"resource.k8s.io/resourceclaims", check_claim},
        {"resource.k8s.io/resourceclaimtemplates", check_template},
        {"resource.k8s.io/deviceclasses", check_class},
        {"resource.k8s.io/resourceslices", check_slice},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kl__kind_among(w->kind, kinds[i].kind)) {
            kinds[i].check(w, ns);
            return true;
        }
    return false;
}
