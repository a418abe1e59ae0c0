/* quotas_test.c - what quotas count: sums that follow the changes are those of a count from nothing. */
#include "support/test.h"

#include "base/random.h"
#include "server/direct.h"
#include "value_help.h"

#define NS "shop"
#define QUOTAS "resourcequotas"
#define OBJECTS 40
#define STEPS 600
#define SEED 13

static int64_t below(kl_random *by, int64_t n) { return kl_random_between(by, 0, n); }

static const kl_value *call(kl_server *s, const kl_server_call *c)
{
    const kl_value *out = NULL;
    int code;
    kl_err err = KL_ERR_INIT;
    if (kl_server_do(s, c, &out, &code, &err))
        fail_msg("%s %s %s: %s", c->verb, c->plural, c->name ? c->name : "", kl_err_message(&err));
    return out;
}

static void write_to(kl_server *s, const char *verb, const char *plural, const char *name, const char *text)
{
    const kl_value *body = text ? v(text) : NULL;
    kl_value_unref(call(s,
        &(kl_server_call){.group = "",
            .version = "v1",
            .plural = plural,
            .verb = verb,
            .ns = !strcmp(plural, "namespaces") ? NULL : NS,
            .name = name,
            .patch = "merge",
            .manager = "spec",
            .body = body}));
    kl_value_unref(body);
}

static const kl_value *used_of(kl_server *s, const char *name)
{
    const kl_value *quota = call(s,
                       &(kl_server_call){.group = "",
                           .version = "v1",
                           .plural = QUOTAS,
                           .verb = "get",
                           .ns = NS,
                           .name = name,
                           .manager = "spec"}),
                   *used = kl_value_ref(kl_value_at(quota, "status", "used", NULL));
    kl_value_unref(quota);
    return used;
}

/* A twin of the quota is counted from nothing. */
static void assert_counted(kl_server *s, const char *name, const char *spec)
{
    char *twin = kl_sprintf("{'metadata':{'name':'twin'},'spec':%s}", spec);
    write_to(s, "create", QUOTAS, NULL, twin);
    const kl_value *followed = used_of(s, name), *fresh = used_of(s, "twin");
    write_to(s, "delete", QUOTAS, "twin", NULL);
    if (!followed || !fresh || !kl_value_equal(followed, fresh)) {
        char *a = followed ? kl_value_to_json(followed) : kl_strdup("nothing"),
             *b = fresh ? kl_value_to_json(fresh) : kl_strdup("nothing");
        fail_msg("%s: the sums are %s, and a count from nothing is %s", name, a, b);
    }
    kl_value_unref(followed);
    kl_value_unref(fresh);
    kl_free(twin);
}

static void assert_used(kl_server *s, const char *text)
{
    const kl_value *used = used_of(s, "q");
    assert_value(used, text);
    kl_value_unref(used);
}

#define NSPECS 3
static const char *const SPECS[NSPECS] = {
    "{'hard':{'pods':'1k','configmaps':'1k','services':'1k','services.nodeports':'1k','count/pods':'1k'}}",
    "{'hard':{'pods':'1k','requests.cpu':'1k','limits.memory':'1Ti'},'scopes':['NotBestEffort']}",
    "{'hard':{'pods':'1k'},'scopeSelector':{'matchExpressions':[{'scopeName':'Terminating','operator':"
    "'Exists'}]}}",
};

static char *pod(const char *name, kl_random *by)
{
    int64_t n = below(by, 100);
    return kl_sprintf("{'metadata':{'name':'%s'},'spec':{%s'containers':[{'name':'c','image':'i',"
                      "'resources':%s}]}}",
        name, n % 3 ? "" : "'activeDeadlineSeconds':60,",
        n < 30 ? "{'requests':{'cpu':'250m'},'limits':{'memory':'64Mi','cpu':'1'}}" : "{}");
}

static char *body_of(const char *plural, const char *name, kl_random *by)
{
    if (!strcmp(plural, "pods"))
        return pod(name, by);
    return !strcmp(plural, "services")
        ? kl_sprintf("{'metadata':{'name':'%s'},'spec':{'type':'%s','ports':[{'port':80}]}}", name,
            below(by, 2) ? "NodePort" : "ClusterIP")
        : kl_sprintf("{'metadata':{'name':'%s'},'data':{'k':'1'}}", name);
}

static void patch_status(kl_server *s, const char *plural, const char *name, const char *text)
{
    const kl_value *status = v(text);
    kl_value_unref(call(s,
        &(kl_server_call){.group = "",
            .version = "v1",
            .plural = plural,
            .verb = "patch",
            .ns = NS,
            .name = name,
            .sub = "status",
            .patch = "merge",
            .manager = "spec",
            .body = status}));
    kl_value_unref(status);
}

enum { ABSENT, THERE, ENDED };

/* Creates, ends or deletes one of forty objects. */
static void step(kl_server *s, int *states, kl_random *by)
{
    static const char *const KINDS[] = {"pods", "pods", "configmaps", "services"};
    size_t i = (size_t)below(by, OBJECTS);
    const char *plural = KINDS[i % 4];
    char *name = kl_sprintf("o%zu", i), *body = body_of(plural, name, by);
    if (states[i] == ABSENT) {
        write_to(s, "create", plural, NULL, body);
        states[i] = THERE;
    } else if (states[i] == THERE && i % 4 < 2 && below(by, 2)) {
        patch_status(s, "pods", name, "{'status':{'phase':'Succeeded'}}");
        states[i] = ENDED;
    } else {
        write_to(s, "delete", plural, name, NULL);
        states[i] = ABSENT;
    }
    kl_free(name);
    kl_free(body);
}

static kl_server *start(void)
{
    kl_server *s;
    kl_err err = KL_ERR_INIT;
    assert_ok(
        kl_server_start(&(kl_server_options){.unheard = true, .collect = true, .seed = 1}, &s, &err), &err);
    write_to(s, "create", "namespaces", NULL, "{'metadata':{'name':'" NS "'}}");
    return s;
}

static void sums_follow_the_changes_of_objects(void **state)
{
    (void)state;
    kl_server *s = start();
    kl_random by = {SEED};
    int states[OBJECTS] = {ABSENT};
    for (size_t q = 0; q < NSPECS; q++) {
        char *quota = kl_sprintf("{'metadata':{'name':'q%zu'},'spec':%s}", q, SPECS[q]);
        write_to(s, "create", QUOTAS, NULL, quota);
        kl_free(quota);
    }
    for (int i = 0; i < STEPS; i++) {
        step(s, states, &by);
        if (i % 20)
            continue;
        assert_counted(s, "q0", SPECS[0]);
        assert_counted(s, "q1", SPECS[1]);
        assert_counted(s, "q2", SPECS[2]);
    }
    kl_server_stop(s);
}

/* Resources of quotas, a foreign status, definitions: what was counted is not what has to be told. */
static void sums_are_counted_again_when_their_quota_changes(void **state)
{
    (void)state;
    kl_server *s = start();
    write_to(s, "create", "configmaps", NULL, "{'metadata':{'name':'a'}}");
    write_to(s, "create", QUOTAS, NULL, "{'metadata':{'name':'q'},'spec':{'hard':{'configmaps':'9'}}}");
    assert_used(s, "{'configmaps':'1'}");
    write_to(s, "patch", QUOTAS, "q", "{'spec':{'hard':{'secrets':'9','configmaps':'8'}}}");
    assert_used(s, "{'configmaps':'1','secrets':'0'}");
    write_to(s, "delete", QUOTAS, "q", NULL);
    write_to(s, "create", "configmaps", NULL, "{'metadata':{'name':'b'}}");
    write_to(s, "create", QUOTAS, NULL, "{'metadata':{'name':'q'},'spec':{'hard':{'configmaps':'9'}}}");
    assert_used(s, "{'configmaps':'2'}");
    kl_server_stop(s);
}

static void a_status_written_by_another_client_is_overwritten(void **state)
{
    (void)state;
    kl_server *s = start();
    write_to(s, "create", QUOTAS, NULL, "{'metadata':{'name':'q'},'spec':{'hard':{'configmaps':'9'}}}");
    patch_status(s, QUOTAS, "q", "{'status':{'used':{'configmaps':'7'}}}");
    assert_used(s, "{'configmaps':'0'}");
    kl_server_stop(s);
}

/* Objects of a definition that is served, and served no more. */
static void custom_resources_count(void **state)
{
    (void)state;
    kl_server *s = start();
    write_to(s, "create", QUOTAS, NULL,
        "{'metadata':{'name':'q'},'spec':{'hard':{'count/widgets.example.com':'9'}}}");
    const kl_value
        *definition = v(
            "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition','metadata':{'name':"
            "'widgets.example.com'},'spec':{'group':'example.com','scope':'Namespaced','names':{'plural':'"
            "widgets',"
            "'singular':'widget','kind':'Widget','listKind':'WidgetList'},'versions':[{'name':'v1','served':"
            "true,"
            "'storage':true,'schema':{'openAPIV3Schema':{'type':'object'}}},{'name':'v2','served':true,"
            "'storage':false,'schema':{'openAPIV3Schema':{'type':'object'}}}]}}"),
        *widget = v("{'apiVersion':'example.com/v1','kind':'Widget','metadata':{'name':'w'}}");
    kl_server_call c = {.group = "apiextensions.k8s.io",
        .version = "v1",
        .plural = "customresourcedefinitions",
        .verb = "create",
        .manager = "spec",
        .body = definition};
    kl_value_unref(call(s, &c));
    kl_value_unref(call(s,
        &(kl_server_call){.group = "example.com",
            .version = "v1",
            .plural = "widgets",
            .verb = "create",
            .ns = NS,
            .manager = "spec",
            .body = widget}));
    assert_used(s, "{'count/widgets.example.com':'1'}");
    c.verb = "delete";
    c.name = "widgets.example.com";
    c.body = NULL;
    kl_value_unref(call(s, &c));
    assert_used(s, "{'count/widgets.example.com':'0'}");
    kl_value_unref(definition);
    kl_value_unref(widget);
    kl_server_stop(s);
}

KL_TESTS(cmocka_unit_test(sums_follow_the_changes_of_objects),
    cmocka_unit_test(sums_are_counted_again_when_their_quota_changes),
    cmocka_unit_test(a_status_written_by_another_client_is_overwritten),
    cmocka_unit_test(custom_resources_count))
