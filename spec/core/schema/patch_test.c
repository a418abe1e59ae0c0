/* patch_test.c - strategic merge patch and the normal form of what clients send. */
#include "core/server/value_help.h"

#include "builtin/defaults.h"
#include "schema/normalize.h"
#include "schema/smp.h"

static kl__types *types;

static int setup(void **state)
{
    (void)state;
    types = kl__types_builtin();
    return 0;
}
static int teardown(void **state)
{
    (void)state;
    kl__types_free(types);
    return 0;
}

static void patched(const char *type, const char *old, const char *patch, const char *want)
{
    const kl_value *a = v(old), *b = v(patch), *out = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__smp_apply(kl__types_get(types, type), a, b, &out, &err), &err);
    assert_value(out, want);
    kl_value_unref(a);
    kl_value_unref(b);
    kl_value_unref(out);
}

static void lists_with_a_merge_key_merge_by_it(void **state)
{
    (void)state;
    patched("core.v1.PodSpec", "{'containers':[{'name':'a','image':'1'},{'name':'b'}]}",
        "{'containers':[{'name':'a','image':'2'},{'name':'c'}]}",
        "{'containers':[{'name':'a','image':'2'},{'name':'c'},{'name':'b'}]}");
    patched("core.v1.PodSpec", "{'tolerations':[{'key':'a'}]}", "{'tolerations':[{'key':'b'}]}",
        "{'tolerations':[{'key':'b'}]}");
    patched("core.v1.PodSpec", "{'volumes':[{'name':'v','emptyDir':{}}]}",
        "{'volumes':[{'name':'v','$retainKeys':['name','secret'],'secret':{'secretName':'s'}}]}",
        "{'volumes':[{'name':'v','secret':{'secretName':'s'}}]}");
}

static void directives_delete_replace_and_order(void **state)
{
    (void)state;
    patched("core.v1.PodSpec", "{'containers':[{'name':'a'},{'name':'b'}]}",
        "{'containers':[{'name':'a','$patch':'delete'}]}", "{'containers':[{'name':'b'}]}");
    patched("core.v1.PodSpec", "{'containers':[{'name':'a'},{'name':'b'}]}",
        "{'containers':[{'$patch':'replace'},{'name':'c'}]}", "{'containers':[{'name':'c'}]}");
    patched("core.v1.PodSpec", "{'containers':[{'name':'a'},{'name':'b'}]}",
        "{'$setElementOrder/"
        "containers':[{'name':'c'},{'name':'b'},{'name':'a'}],'containers':[{'name':'c'}]}",
        "{'containers':[{'name':'c'},{'name':'b'},{'name':'a'}]}");
    patched("core.v1.PodSpec", "{'nodeSelector':{'a':'1'},'hostname':'h'}",
        "{'nodeSelector':{'$patch':'replace','b':'2'},'hostname':null}", "{'nodeSelector':{'b':'2'}}");
    patched("meta.v1.ObjectMeta", "{'finalizers':['a','b']}",
        "{'finalizers':['c','a'],'$deleteFromPrimitiveList/finalizers':['b']}", "{'finalizers':['c','a']}");
}

static void a_patch_without_a_base_leaves_no_directives(void **state)
{
    (void)state;
    patched("core.v1.PodSpec", "{}",
        "{'containers':[{'name':'a','$setElementOrder/"
        "env':[{'name':'x'}],'env':[{'name':'x','value':null}]}],'$setElementOrder/"
        "containers':[{'name':'a'}]}",
        "{'containers':[{'name':'a','env':[{'name':'x'}]}]}");
}

static void invalid_patches_are_rejected(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{'containers':[{'image':'i'}]}", "does not contain declared merge key: name"},
        {"{'$patch':'melt'}", "Unknown patch type found: \"melt\""},
        {"{'containers':[{'name':'a','$patch':'merge'}]}", "merging lists cannot yet be specified"},
        {"{'containers':[{'name':'a','$patch':'melt'}]}", "Unknown patch type found"},
        {"{'containers':['a']}", "list element types are not identical"},
        {"{'containers':[['a']]}", "lists of lists"},
        {"{'$retainKeys':['hostname'],'nodeName':'n'}", "invalid patch format of retainKeys"},
        {"{'$retainKeys':'hostname'}", "invalid patch format of retainKeys"},
        {"{'$setElementOrder/containers':[{'name':'b'}],'containers':[{'name':'c'}]}", "doesn't match"},
        {"{'$setElementOrder/containers':7}", "must be lists"},
        {"{'$setElementOrder/containers':[{}]}", "does not contain declared merge key"},
        {"{'containers\\u0000':7}", "NUL"},
    };
    const kl_value *old = v("{'containers':[{'name':'a'}]}"), *out = NULL;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_value *patch = v(cases[i][0]);
        kl_err err = KL_ERR_INIT;
        assert_fails(kl__smp_apply(kl__types_get(types, "core.v1.PodSpec"), old, patch, &out, &err),
            KL_EINVAL, &err, cases[i][1]);
        kl_value_unref(patch);
    }
    kl_value_unref(old);
}

static void normal(const char *type, const char *in, const char *want)
{
    const kl_value *a = v(in), *out = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__normalize(kl__types_get(types, type), a, true, NULL, &out, &err), &err);
    assert_value(out, want);
    kl_value_unref(a);
    kl_value_unref(out);
}

static void built_in_objects_take_their_canonical_form(void **state)
{
    (void)state;
    normal("core.v1.ResourceRequirements",
        "{'requests':{'cpu':'0.5','memory':'1024Mi','x/y':3},'limits':null}",
        "{'requests':{'cpu':'500m','memory':'1Gi','x/y':'3'}}");
    normal("coordination.v1.LeaseSpec", "{'renewTime':'2026-01-02T03:04:05.000006Z','leaseTransitions':1}",
        "{'renewTime':'2026-01-02T03:04:05.000006Z','leaseTransitions':1}");
    normal("meta.v1.ObjectMeta",
        "{'name':'n','generateName':'','labels':{},'creationTimestamp':'2026-01-02T03:04:05+01:00'}",
        "{'name':'n','creationTimestamp':'2026-01-02T02:04:05Z'}");
    normal("core.v1.Service", "{'spec':{'ports':[{'port':1,'targetPort':'web'}]}}",
        "{'metadata':{},'spec':{'ports':[{'port':1,'targetPort':'web','protocol':'TCP'}]},'status':{'"
        "loadBalancer':{}}}");
}

static void wrong_types_are_named_with_their_place(void **state)
{
    (void)state;
    const kl_value *a = v("{'containers':[{'name':'c','ports':[{'containerPort':'eighty'}]}]}"), *out = NULL;
    kl_err err = KL_ERR_INIT;
    assert_fails(kl__normalize(kl__types_get(types, "core.v1.PodSpec"), a, true, NULL, &out, &err), KL_EINVAL,
        &err,
        "json: cannot unmarshal string into Go struct field ContainerPort.containers.ports.containerPort of "
        "type "
        "int32");
    kl_value_unref(a);
}

static void unknown_fields_are_listed_and_dropped(void **state)
{
    (void)state;
    const kl_value *a = v("{'containers':[{'name':'c','imagee':'x'}],'colour':'red'}"), *out = NULL;
    kl__unknown unknown = {0};
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__normalize(kl__types_get(types, "core.v1.PodSpec"), a, false, &unknown, &out, &err), &err);
    char *names = kl__unknown_text(&unknown);
    assert_string_equal(names, "unknown field \"containers[0].imagee\", unknown field \"colour\"");
    kl_free(names);
    assert_int_equal(unknown.count, 2);
    assert_value(out, "{'containers':[{'name':'c'}]}");
    kl__unknown_fini(&unknown);
    kl_value_unref(a);
    kl_value_unref(out);
}

static void custom_objects_are_pruned_and_defaulted(void **state)
{
    (void)state;
    const kl_value *json = v("{'type':'object','properties':{'spec':{'type':'object','default':{},'"
                             "properties':{'n':{'type':'integer','default':3},"
                             "'free':{'type':'object','x-kubernetes-preserve-unknown-fields':true,'"
                             "properties':{'k':{'type':'string','default':'d'}}},"
                             "'pod':{'type':'object','x-kubernetes-embedded-resource':true,'properties':{'x':"
                             "{'type':'string'}}}}}}}");
    kl__types *custom;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__types_of_crd(json, types, &custom, &err), &err);
    const kl_value *a = v("{'kind':'K','spec':{'n':null,'gone':1,'free':{'any':1},'pod':{'kind':'Pod','x':'1'"
                          ",'y':2}},'gone':1}");
    const kl_value *b = v("{'kind':'K'}");
    const kl_value *x = kl__normalize_custom(kl__types_root(custom), a),
                   *y = kl__normalize_custom(kl__types_root(custom), b);
    assert_value(x, "{'kind':'K','spec':{'n':3,'free':{'any':1,'k':'d'},'pod':{'kind':'Pod','x':'1'}}}");
    assert_value(y, "{'kind':'K','spec':{'n':3}}");
    kl_value_unref(a);
    kl_value_unref(b);
    kl_value_unref(x);
    kl_value_unref(y);
    kl_value_unref(json);
    kl__types_free(custom);
}

/* An item may have the keys of the items before it, and other values. */
static void items_of_lists_are_pruned_and_defaulted(void **state)
{
    static const char *const cases[][2] = {
        {"[{'a':'1','of':{'x':'2'}},{'a':'3','of':{'x':'4'}}]",
            "[{'a':'1','of':{'x':'2'}},{'a':'3','of':{'x':'4'}}]"},
        {"[{'a':'1','of':{'x':'2'}},{'a':'3','of':{'x':'4','gone':1}},{'a':'5','of':{'x':'6'}}]",
            "[{'a':'1','of':{'x':'2'}},{'a':'3','of':{'x':'4'}},{'a':'5','of':{'x':'6'}}]"},
        {"[{'a':'1','of':{'x':'2'}},{'of':{'x':'4'}},{'a':'5','of':{'x':'6'}}]",
            "[{'a':'1','of':{'x':'2'}},{'of':{'x':'4'},'a':'d'},{'a':'5','of':{'x':'6'}}]"},
        {"[{'a':'1','of':{'x':'2'}},{'a':null,'of':{'x':null}}]",
            "[{'a':'1','of':{'x':'2'}},{'of':{},'a':'d'}]"},
        {"[{'a':'1','of':{'x':'2'}},{'a':'1','of':{'x':{'gone':1}}},{'a':'1','of':{'x':'2'},'gone':1}]",
            "[{'a':'1','of':{'x':'2'}},{'a':'1','of':{'x':{}}},{'a':'1','of':{'x':'2'}}]"},
        {"[{'a':'1','list':[{'b':1},{'b':2}]},{'a':'1','list':[{'b':1},{'b':2,'c':3}]}]",
            "[{'a':'1','list':[{'b':1},{'b':2}]},{'a':'1','list':[{'b':1},{'b':2}]}]"},
        {"[{'a':'1','free':{'any':[1,null,{'z':1}]}},{'a':'2','free':{'any':{}}}]",
            "[{'a':'1','free':{'any':[1,null,{'z':1}]}},{'a':'2','free':{'any':{}}}]"},
        {"[{},{'a':'1'},7,null]", "[{'a':'d'},{'a':'1'},7,null]"},
    };
    (void)state;
    const kl_value *json = v("{'type':'object','properties':{'list':{'type':'array','items':{'type':'object',"
                             "'properties':{'a':{'type':'string','default':'d'},"
                             "'of':{'type':'object','properties':{'x':{'type':'string'}}},"
                             "'list':{'type':'array','items':{'type':'object','properties':{'b':{'type':"
                             "'integer'}}}},'free':{'type':'object','additionalProperties':{"
                             "'x-kubernetes-preserve-unknown-fields':true}}}}}}}");
    kl__types *custom;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__types_of_crd(json, types, &custom, &err), &err);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *given = kl_sprintf("{'list':%s}", cases[i][0]),
             *wanted = kl_sprintf("{'list':%s}", cases[i][1]);
        const kl_value *in = v(given), *out = kl__normalize_custom(kl__types_root(custom), in);
        assert_value(out, wanted);
        kl_value_unref(in);
        kl_value_unref(out);
        kl_free(given);
        kl_free(wanted);
    }
    kl_value_unref(json);
    kl__types_free(custom);
}

/* A default that is a list of objects with defaults of their own makes the product of both. */
static void defaults_fill_no_more_than_an_object_may_be(void **state)
{
    (void)state;
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, "{\"type\":\"object\",\"properties\":{\"list\":{\"type\":\"array\",\"default\":[");
    for (int i = 0; i < 2000; i++)
        kl_buf_puts(&text, i ? ",{}" : "{}");
    kl_buf_puts(&text, "],\"items\":{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 600; i++)
        kl_buf_printf(&text, "%s\"p%d\":{\"type\":\"integer\",\"default\":1}", i ? "," : "", i);
    kl_buf_puts(&text, "}}}}}");
    const kl_value *json, *empty = v("{}"), *some = v("{'list':[{}]}"), *out = NULL;
    kl__types *custom;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text.data, text.len, &json, &err), &err);
    assert_ok(kl__types_of_crd(json, types, &custom, &err), &err);
    assert_ok(kl__normalize(kl__types_root(custom), some, true, NULL, &out, &err), &err);
    kl_value_unref(out);
    assert_int_equal(kl__normalize(kl__types_root(custom), empty, true, NULL, &out, &err), KL_ETOOBIG);
    assert_int_equal(err.http_code, 413);
    assert_string_equal(kl_err_message(&err),
        "Request entity too large: list[1666]: the schema's defaults fill more than 1000000 fields of it");
    kl_err_fini(&err);
    kl_value_unref(json);
    kl_value_unref(empty);
    kl_value_unref(some);
    kl_buf_fini(&text);
    kl__types_free(custom);
}

static void pods_have_a_quality_of_service(void **state)
{
    (void)state;
    static const struct {
        const char *pod, *qos;
    } rows[] = {
        {"{'spec':{'containers':[{}]}}", "BestEffort"},
        {"{'spec':{'containers':[{'resources':{'requests':{'cpu':'1'}}}]}}", "Burstable"},
        {"{'spec':{'containers':[{'resources':{'requests':{'cpu':'1','memory':'1Gi'},'limits':{'cpu':'1','"
         "memory':'1Gi'}}}]}}",
            "Guaranteed"},
        {"{'spec':{'containers':[{'resources':{'limits':{'cpu':'1','memory':'1Gi'}}},{}]}}", "Burstable"},
        {"{'spec':{'containers':[{'resources':{'requests':{'nvidia.com/gpu':'1'}}}]}}", "BestEffort"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kl_value *pod = v(rows[i].pod);
        assert_string_equal(kl__pod_qos(pod), rows[i].qos);
        kl_value_unref(pod);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lists_with_a_merge_key_merge_by_it),
        cmocka_unit_test(directives_delete_replace_and_order),
        cmocka_unit_test(a_patch_without_a_base_leaves_no_directives),
        cmocka_unit_test(invalid_patches_are_rejected),
        cmocka_unit_test(built_in_objects_take_their_canonical_form),
        cmocka_unit_test(wrong_types_are_named_with_their_place),
        cmocka_unit_test(unknown_fields_are_listed_and_dropped),
        cmocka_unit_test(custom_objects_are_pruned_and_defaulted),
        cmocka_unit_test(items_of_lists_are_pruned_and_defaulted),
        cmocka_unit_test(defaults_fill_no_more_than_an_object_may_be),
        cmocka_unit_test(pods_have_a_quality_of_service)};
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* not in tsan: it starts no thread */
