/* simulate_test.c - the effect of a write, computed without a server. */
#include "support/json.h"

#include "model/object.h"
#include "run/simulate.h"

static char *subresources[] = {"status", "scale", NULL};
static const kl_resource deployments = {.group = "apps",
    .version = "v1",
    .kind = "Deployment",
    .plural = "deployments",
    .subresources = subresources,
    .namespaced = true};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .subresources = subresources,
    .namespaced = true};
static const kl_resource maps = {
    .group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps", .namespaced = true};

typedef struct act {
    kl_verb verb;
    const char *base, *body, *subresource, *propagation, *uid;
    kl_patch_type type;
    bool force;
    const kl_resource *resource;
} act;

static kl_status do_it(const act *a, kl_simulated *out, kl_err *err)
{
    const kl_value *base = a->base ? json(a->base) : NULL, *body = a->body ? json(a->body) : NULL;
    kl_op op;
    kl_op_init(&op, a->verb, NULL);
    op.name = body && a->verb == KL_CREATE && !a->subresource ? NULL : "a";
    op.body = body;
    op.subresource = a->subresource;
    op.propagation = a->propagation;
    op.uid = a->uid;
    op.patch_type = a->type;
    op.force = a->force;
    op.field_manager = "me";
    kl_status st = kl_simulate(&(kl_simulation){.op = &op,
                                   .resource = a->resource ? a->resource : &deployments,
                                   .ns = "ns",
                                   .base = base,
                                   .wall = KL_SECONDS(1700000000),
                                   .number = 7},
        out, err);
    kl_value_unref(base);
    kl_value_unref(body);
    return st;
}

#define BASE                                                                                                 \
    "{'apiVersion':'apps/"                                                                                   \
    "v1','kind':'Deployment','metadata':{'name':'a','namespace':'ns','uid':'u1','resourceVersion':'5','"     \
    "generation':2},"                                                                                        \
    "'spec':{'replicas':1},'status':{'replicas':1}}"

/* Does it, and compares the object afterwards; NULL: it is gone. */
static void becomes(act a, int code, bool changed, const char *want)
{
    kl_simulated s;
    kl_err err = KL_ERR_INIT;
    assert_ok(do_it(&a, &s, &err), &err);
    assert_int_equal(s.code, code);
    assert_int_equal(s.changed, changed);
    if (want)
        assert_json(s.object, want);
    else
        assert_null(s.object);
    kl_simulated_fini(&s);
}

static void fails(act a, kl_status st, const char *reason, const char *part)
{
    kl_simulated s;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(do_it(&a, &s, &err), st);
    if (reason)
        assert_string_equal(err.reason, reason);
    assert_non_null(strstr(kl_err_message(&err), part));
    kl_err_fini(&err);
}

static void a_created_object_has_the_fields_that_the_server_sets(void **state)
{
    (void)state;
    becomes((act){.verb = KL_CREATE, .resource = &maps, .body = "{'metadata':{'name':'a'},'data':{'x':'1'}}"},
        201, true,
        "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','namespace':'ns','uid':'00000000-0000-"
        "4000-8000-000000000007','resourceVersion':'1','generation':1,"
        "'creationTimestamp':'2023-11-14T22:13:20Z'},'data':{'x':'1'}}");
    becomes((act){.verb = KL_CREATE, .body = "{'metadata':{'name':'a'},'status':{'replicas':3}}"}, 201, true,
        "{'apiVersion':'apps/"
        "v1','kind':'Deployment','metadata':{'name':'a','namespace':'ns','uid':'00000000-0000-4000-8000-"
        "000000000007','resourceVersion':'1','generation':1,"
        "'creationTimestamp':'2023-11-14T22:13:20Z'}}");
    fails((act){.verb = KL_CREATE, .base = BASE, .body = "{'metadata':{'name':'a'}}"}, KL_EEXISTS,
        "AlreadyExists", "deployments.apps \"a\" already exists");
    fails(
        (act){.verb = KL_CREATE, .body = "{}"}, KL_EREJECTED, "Invalid", "name or generateName is required");
    fails((act){.verb = KL_CREATE, .body = "{'metadata':{'name':'a','resourceVersion':'3'}}"}, KL_EREJECTED,
        "BadRequest", "resourceVersion");
}

static void a_generated_name_begins_as_wished(void **state)
{
    (void)state;
    kl_simulated s;
    kl_err err = KL_ERR_INIT;
    assert_ok(
        do_it(&(act){.verb = KL_CREATE, .body = "{'metadata':{'generateName':'job-'}}"}, &s, &err), &err);
    assert_int_equal(strncmp(kl_object_name(s.object), "job-", 4), 0);
    assert_int_equal(strlen(kl_object_name(s.object)), 9);
    kl_simulated_fini(&s);
}

static void an_update_keeps_fields_that_it_cannot_set(void **state)
{
    (void)state;
    becomes((act){.verb = KL_UPDATE,
                .base = BASE,
                .body = "{'metadata':{'name':'a','resourceVersion':'5','labels':{'l':'1'}},'spec':{'replicas'"
                        ":2},'status':{'replicas':9}}"},
        200, true,
        "{'apiVersion':'apps/"
        "v1','kind':'Deployment','metadata':{'name':'a','namespace':'ns','uid':'u1','resourceVersion':'6','"
        "generation':3,'labels':{'l':'1'}},"
        "'spec':{'replicas':2},'status':{'replicas':1}}");
    becomes(
        (act){.verb = KL_UPDATE,
            .subresource = "status",
            .base = BASE,
            .body =
                "{'metadata':{'name':'a','labels':{'l':'1'}},'spec':{'replicas':2},'status':{'replicas':9}}"},
        200, true,
        "{'apiVersion':'apps/"
        "v1','kind':'Deployment','metadata':{'name':'a','namespace':'ns','uid':'u1','resourceVersion':'6','"
        "generation':2},"
        "'spec':{'replicas':1},'status':{'replicas':9}}");
    becomes((act){.verb = KL_UPDATE, .base = BASE, .body = "{'metadata':{'name':'a'},'spec':{'replicas':1}}"},
        200, false, BASE);
    fails((act){.verb = KL_UPDATE, .base = BASE, .body = "{'metadata':{'name':'a','resourceVersion':'4'}}"},
        KL_ECONFLICT, "Conflict", "the object has been modified");
    fails((act){.verb = KL_UPDATE, .base = BASE, .body = "{'metadata':{'name':'a','uid':'u0'}}"},
        KL_ECONFLICT, "Conflict", "UID in precondition: u0");
    fails((act){.verb = KL_UPDATE, .body = "{'metadata':{'name':'a'}}"}, KL_ENOTFOUND, "NotFound",
        "deployments.apps \"a\" not found");
}

static void patches_change_their_fields(void **state)
{
    (void)state;
#define WITH(rv, generation, rest)                                                                           \
    "{'apiVersion':'apps/"                                                                                   \
    "v1','kind':'Deployment','metadata':{'name':'a','namespace':'ns','uid':'u1','resourceVersion':'" rv      \
    "','generation':" generation "}," rest "}"
    becomes((act){.verb = KL_PATCH, .base = BASE, .body = "{'spec':{'replicas':null,'paused':true}}"}, 200,
        true, WITH("6", "3", "'spec':{'paused':true},'status':{'replicas':1}"));
    becomes((act){.verb = KL_PATCH,
                .base = BASE,
                .type = KL_PATCH_JSON,
                .body = "[{'op':'replace','path':'/spec/replicas','value':4}]"},
        200, true, WITH("6", "3", "'spec':{'replicas':4},'status':{'replicas':1}"));
    becomes((act){.verb = KL_PATCH,
                .base = BASE,
                .subresource = "status",
                .body = "{'spec':{'replicas':7},'status':{'replicas':3}}"},
        200, true, WITH("6", "2", "'spec':{'replicas':1},'status':{'replicas':3}"));
    becomes((act){.verb = KL_PATCH, .base = BASE, .body = "{'spec':{'replicas':1}}"}, 200, false, BASE);
    fails((act){.verb = KL_PATCH, .base = BASE, .body = "{'metadata':{'resourceVersion':'1'}}"}, KL_ECONFLICT,
        "Conflict", "modified");
    fails((act){.verb = KL_PATCH,
              .base = BASE,
              .type = KL_PATCH_JSON,
              .body = "[{'op':'test','path':'/spec/replicas','value':4}]"},
        KL_EREJECTED, NULL, "test");
    fails((act){.verb = KL_PATCH, .body = "{}"}, KL_ENOTFOUND, "NotFound", "not found");
}

#define PODS                                                                                                 \
    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'ns','uid':'u1','resourceVersion':'" \
    "5'},'spec':{"

static void a_strategic_patch_knows_elements_by_name(void **state)
{
    (void)state;
    becomes((act){.verb = KL_PATCH,
                .resource = &pods,
                .type = KL_PATCH_STRATEGIC,
                .base = PODS "'containers':[{'name':'x','image':'1'},{'name':'y','image':'1'}]}}",
                .body = "{'spec':{'containers':[{'name':'y','$patch':'delete'},{'name':'x','image':'2'},{'"
                        "name':'z'}]}}"},
        200, true,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'ns','uid':'u1','resourceVersion'"
        ":'6'},'spec':{'containers':[{'name':'x','image':'2'},{'name':'z'}]}}");
}

static void a_scale_is_a_view_of_the_object(void **state)
{
    (void)state;
    kl_simulated s;
    kl_err err = KL_ERR_INIT;
    assert_ok(
        do_it(
            &(act){.verb = KL_PATCH, .subresource = "scale", .base = BASE, .body = "{'spec':{'replicas':5}}"},
            &s, &err),
        &err);
    assert_json(s.object, WITH("6", "3", "'spec':{'replicas':5},'status':{'replicas':1}"));
    assert_string_equal(kl_object_kind(s.answer), "Scale");
    assert_int_equal(kl_value_int_at(s.answer, 0, "spec", "replicas", NULL), 5);
    kl_simulated_fini(&s);
    fails((act){.verb = KL_PATCH, .resource = &maps, .subresource = "scale", .base = BASE, .body = "{}"},
        KL_ENOTFOUND, "NotFound", "could not find");
}

static void a_deletion_waits_for_finalizers(void **state)
{
    (void)state;
    becomes((act){.verb = KL_DELETE, .base = BASE}, 200, true, NULL);
    becomes(
        (act){.verb = KL_DELETE,
            .resource = &maps,
            .base = "{'kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'5','finalizers':['f']}}"},
        200, true,
        "{'kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'6','finalizers':['f'],'"
        "deletionTimestamp':'2023-11-14T22:13:20Z','deletionGracePeriodSeconds':0}}");
    becomes((act){.verb = KL_DELETE,
                .resource = &maps,
                .propagation = "Foreground",
                .base = "{'kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'5'}}"},
        200, true,
        "{'kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'6','finalizers':['foregroundDeletion']"
        ",'deletionTimestamp':'2023-11-14T22:13:20Z','deletionGracePeriodSeconds':0}}");
    becomes((act){.verb = KL_PATCH,
                .resource = &maps,
                .body = "{'metadata':{'finalizers':[]}}",
                .base = "{'kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'6','finalizers':['f'],"
                        "'deletionTimestamp':'2023-11-14T22:13:20Z','deletionGracePeriodSeconds':0}}"},
        200, true, NULL);
    fails((act){.verb = KL_DELETE}, KL_ENOTFOUND, "NotFound", "not found");
    fails((act){.verb = KL_DELETE, .base = BASE, .uid = "other"}, KL_ECONFLICT, "Conflict",
        "Precondition failed");
}

static void an_evicted_pod_ends_on_its_node_first(void **state)
{
    (void)state;
    becomes((act){.verb = KL_CREATE,
                .resource = &pods,
                .subresource = "eviction",
                .base = PODS "}}",
                .body = "{'metadata':{'name':'a'}}"},
        201, true, NULL);
    becomes((act){.verb = KL_CREATE,
                .resource = &pods,
                .subresource = "eviction",
                .base = PODS "'nodeName':'n'}}",
                .body = "{'metadata':{'name':'a'}}"},
        201, true,
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','namespace':'ns','uid':'u1','resourceVersion'"
        ":'6','deletionTimestamp':'2023-11-14T22:13:50Z',"
        "'deletionGracePeriodSeconds':30},'spec':{'nodeName':'n'}}");
    fails((act){.verb = KL_CREATE, .resource = &pods, .subresource = "eviction", .body = "{}"}, KL_ENOTFOUND,
        "NotFound", "pods \"a\" not found");
    fails(
        (act){.verb = KL_CREATE, .resource = &pods, .subresource = "token", .base = PODS "}}", .body = "{}"},
        KL_EINVAL, NULL, "--dry-run=server");
}

/* --- server-side apply -------------------------------------------------------------------- */

#define OWNED(manager, how, fields)                                                                          \
    "{'manager':'" manager "','operation':'" how                                                             \
    "','apiVersion':'v1','time':'2023-01-01T00:00:00Z','fieldsType':'FieldsV1','fieldsV1':" fields "}"
#define MAP(data, managed)                                                                                   \
    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','namespace':'ns','uid':'u1','"             \
    "resourceVersion':'5','managedFields':[" managed "]},'data':" data "}"

static void applied(const char *base, const char *body, bool force, const char *data)
{
    kl_simulated s;
    kl_err err = KL_ERR_INIT;
    assert_ok(do_it(&(act){.verb = KL_APPLY, .resource = &maps, .base = base, .body = body, .force = force},
                  &s, &err),
        &err);
    assert_json(kl_value_get(s.object, "data"), data);
    kl_simulated_fini(&s);
}

static void applied_fields_are_merged(void **state)
{
    (void)state;
    applied(MAP("{'x':'1','y':'1'}", OWNED("other", "Update", "{'f:data':{'f:y':{}}}")),
        "{'data':{'x':'2','z':'3'}}", false, "{'x':'2','y':'1','z':'3'}");
    applied(NULL, "{'data':{'x':'2'}}", false, "{'x':'2'}");
}

static void fields_no_longer_applied_are_removed(void **state)
{
    (void)state;
    applied(MAP("{'x':'1','y':'1','z':'1'}",
                OWNED("me", "Apply", "{'f:data':{'.':{},'f:x':{},'f:z':{}}}") "," OWNED(
                    "other", "Update", "{'f:data':{'f:y':{}}}")),
        "{'data':{'x':'1'}}", false, "{'x':'1','y':'1'}");
    applied(MAP("{'x':'1','y':'1'}",
                OWNED("me", "Apply", "{'f:data':{'f:x':{},'f:y':{}}}") "," OWNED(
                    "other", "Update", "{'f:data':{'f:y':{}}}")),
        "{'metadata':{'labels':{'l':'1'}}}", false, "{'y':'1'}");
}

static void fields_of_others_need_force(void **state)
{
    (void)state;
    const char *base = MAP("{'x':'1'}", OWNED("other", "Update", "{'f:data':{'f:x':{}}}"));
    fails((act){.verb = KL_APPLY, .resource = &maps, .base = base, .body = "{'data':{'x':'2'}}"},
        KL_ECONFLICT, "Conflict", "Apply failed with 1 conflict: conflict with \"other\" using v1: .data.x");
    applied(base, "{'data':{'x':'2'}}", true, "{'x':'2'}");
    applied(base, "{'data':{'x':'1'}}", false, "{'x':'1'}");
}

static void applying_the_same_again_changes_nothing(void **state)
{
    (void)state;
    kl_simulated one, two;
    kl_err err = KL_ERR_INIT;
    assert_ok(do_it(&(act){.verb = KL_APPLY,
                        .resource = &pods,
                        .body = "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'x','ports':[{'"
                                "containerPort':80}]}]}}"},
                  &one, &err),
        &err);
    char *text = kl_value_to_json(one.object);
    assert_ok(do_it(&(act){.verb = KL_APPLY,
                        .resource = &pods,
                        .base = text,
                        .body = "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'x','ports':[{'"
                                "containerPort':80}]}]}}"},
                  &two, &err),
        &err);
    assert_false(two.changed);
    kl_simulated_fini(&two);
    assert_ok(do_it(&(act){.verb = KL_APPLY,
                        .resource = &pods,
                        .base = text,
                        .body = "{'metadata':{'name':'a'},'spec':{'containers':[{'name':'y'}]}}"},
                  &two, &err),
        &err);
    assert_json(kl_value_get(two.object, "spec"), "{'containers':[{'name':'y'}]}");
    kl_free(text);
    kl_simulated_fini(&one);
    kl_simulated_fini(&two);
}

KL_TESTS(cmocka_unit_test(a_created_object_has_the_fields_that_the_server_sets),
    cmocka_unit_test(a_generated_name_begins_as_wished),
    cmocka_unit_test(an_update_keeps_fields_that_it_cannot_set),
    cmocka_unit_test(patches_change_their_fields), cmocka_unit_test(a_strategic_patch_knows_elements_by_name),
    cmocka_unit_test(a_scale_is_a_view_of_the_object), cmocka_unit_test(a_deletion_waits_for_finalizers),
    cmocka_unit_test(an_evicted_pod_ends_on_its_node_first), cmocka_unit_test(applied_fields_are_merged),
    cmocka_unit_test(fields_no_longer_applied_are_removed), cmocka_unit_test(fields_of_others_need_force),
    cmocka_unit_test(applying_the_same_again_changes_nothing))

/* not in tsan: it starts no thread */
