/* authz.c - authorizer.group("apps").resource("deployments").check("create").allowed(): the question is
 * gathered in a map, and the owner of the evaluation answers it. */
#include <string.h>

#include "cel/cel_impl.h"

static kl__cval text(const char *s) { return (kl__cval){.kind = KL_C_STRING, .s = {s, strlen(s)}}; }

/* A copy of the gathered map with one more entry. */
static kl__cval with(kl__cev *e, kl__cval from, kl__ckind kind, const char *name, kl__cval v)
{
    kl__cmap *m = kl__cmap_new(e, 4);
    const kl__cmap *was = from.o;
    for (size_t i = 0; was && i < kl__cmap_len(was); i++) {
        kl__cval k, x;
        kl__cmap_at(e, was, i, &k, &x);
        if (k.s.n != strlen(name) || memcmp(k.s.p, name, k.s.n))
            kl__cmap_add(e, m, k, x);
    }
    kl__cmap_add(e, m, text(name), v);
    return (kl__cval){.kind = kind, .o = m};
}

#define STEP(f, kind, name)                                                                                  \
    static kl__cval f(kl__cev *e, const kl__cval *a, size_t n)                                               \
    {                                                                                                        \
        (void)n;                                                                                             \
        return with(e, a[0], kind, name, a[1]);                                                              \
    }
STEP(group, KL_C_GROUP_CHECK, "group")
STEP(subresource, KL_C_RESOURCE_CHECK, "subresource")
STEP(ns, KL_C_RESOURCE_CHECK, "namespace")
STEP(name, KL_C_RESOURCE_CHECK, "name")
STEP(field_selector, KL_C_RESOURCE_CHECK, "fieldSelector")
STEP(label_selector, KL_C_RESOURCE_CHECK, "labelSelector")

static kl__cval path(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return a[1].s.n ? with(e, a[0], KL_C_PATH_CHECK, "path", a[1])
                    : kl__cval_err(e, "path must not be empty");
}

static kl__cval resource(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    return a[1].s.n ? with(e, a[0], KL_C_RESOURCE_CHECK, "resource", a[1])
                    : kl__cval_err(e, "resource must not be empty");
}

static kl__cval service_account(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    char *user = kl__carena_printf(e->a, "system:serviceaccount:%s:%s", a[1].s.p, a[2].s.p);
    return with(e, a[0], KL_C_AUTHORIZER, "user", text(user));
}

static kl__cval check(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval asked = with(e, a[0], KL_C_MAP, "verb", a[1]);
    asked.map = asked.o;
    const kl_value *json = kl__cval_to_json(e, asked);
    const char *reason = "";
    bool allowed = e->run->authorize && e->run->authorize(e->run->authorize_arg, json, &reason);
    kl_value_unref(json);
    return with(e, (kl__cval){.o = NULL}, KL_C_DECISION, allowed ? "allowed" : "denied", text(reason));
}

static kl__cval decided(kl__cev *e, const kl__cval *a, const char *what, kl__cval *v)
{
    return KL__CBOOL(kl__cmap_get(e, a[0].o, text(what), v));
}

static kl__cval allowed(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval v;
    return decided(e, a, "allowed", &v);
}

static kl__cval reason(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)n;
    kl__cval v = text("");
    if (!decided(e, a, "allowed", &v).b)
        (void)decided(e, a, "denied", &v);
    return v;
}

static kl__cval no_error(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)a;
    (void)n;
    return text("");
}

static kl__cval not_errored(kl__cev *e, const kl__cval *a, size_t n)
{
    (void)e;
    (void)a;
    (void)n;
    return KL__CBOOL(false);
}

static uint64_t cost_check(const kl__cval *a, size_t n, kl__cval result)
{
    (void)a;
    (void)n;
    (void)result;
    return 350000;
}

const kl__cfunc kl__cel_authz[] = {
    {"path", ".Zs>H", path, NULL},
    {"group", ".Zs>G", group, NULL},
    {"serviceAccount", ".Zss>Z", service_account, NULL},
    {"resource", ".Gs>R", resource, NULL},
    {"subresource", ".Rs>R", subresource, NULL},
    {"namespace", ".Rs>R", ns, NULL},
    {"name", ".Rs>R", name, NULL},
    {"fieldSelector", ".Rs>R", field_selector, NULL},
    {"labelSelector", ".Rs>R", label_selector, NULL},
    {"check", ".Hs>E", check, cost_check},
    {"check", ".Rs>E", check, cost_check},
    {"allowed", ".E>b", allowed, NULL},
    {"reason", ".E>s", reason, NULL},
    {"error", ".E>s", no_error, NULL},
    {"errored", ".E>b", not_errored, NULL},
    {NULL},
};
