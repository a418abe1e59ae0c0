/* schema_test.c - OpenAPI documents become schemas, which correct values and find misspelt fields. */
#include "support/test.h"

#include "base/mem.h"
#include "model/schema.h"

/* In single quotes for the reader's sake. */
static const char document[] =
    "{'openapi':'3.0.0','components':{'schemas':{"
    "'Meta':{'type':'object','properties':{'name':{'type':'string'},'labels':{'type':'object','"
    "additionalProperties':{'type':'string','default':''}},"
    "'finalizers':{'type':'array','items':{'type':'string'}},'managedFields':{'type':'array','items':{'allOf'"
    ":[{'$ref':'#/components/schemas/Managed'}],'default':{}}}}},"
    "'Managed':{'type':'object','properties':{'manager':{'type':'string'},'fieldsV1':{'$ref':'#/components/"
    "schemas/Fields'}}},"
    "'Fields':{'description':'what it likes','type':'object'},"
    "'Quantity':{'oneOf':[{'type':'string'},{'type':'number'}]},"
    "'Tree':{'type':'object','properties':{'value':{'type':'number'},'children':{'type':'array','items':{'$"
    "ref':'#/components/schemas/Tree'}}}},"
    "'Thing':{'type':'object','properties':{'apiVersion':{'type':'string'},'kind':{'type':'string'},'"
    "metadata':{'allOf':[{'$ref':'#/components/schemas/Meta'}],'default':{}},"
    "'spec':{'type':'object','properties':{'replicas':{'type':'integer','format':'int32'},'weight':{'type':'"
    "number'},'port':{'type':'string','format':'int-or-string'},"
    "'size':{'$ref':'#/components/schemas/"
    "Quantity'},'on':{'type':'boolean'},'args':{'type':'array','items':{'type':'string'}},'opts':{'type':'"
    "object','additionalProperties':{'type':'array','items':{'type':'integer'}}},"
    "'anything':{'x-kubernetes-preserve-unknown-fields':true},'free':{'type':'object','x-kubernetes-preserve-"
    "unknown-fields':true,'properties':{'known':{'type':'integer'}}},"
    "'template':{'type':'object','x-kubernetes-embedded-resource':true,'properties':{'spec':{'type':'object',"
    "'properties':{'n':{'type':'integer'}}}}},"
    "'containers':{'type':'array','items':{'type':'object','properties':{'image':{'type':'string'},'name':{'"
    "type':'string'}}}},"
    "'tree':{'$ref':'#/components/schemas/Tree'},'lost':{'$ref':'#/components/schemas/"
    "Nowhere'},'bare':{},'odd':{'anyOf':[{'type':'integer'},{'minimum':3}]}}}},"
    "'x-kubernetes-group-version-kind':[{'group':'example.com','version':'v1','kind':'Thing'}]},"
    "'Pod':{'type':'object','properties':{'metadata':{'$ref':'#/components/schemas/"
    "Meta'}},'x-kubernetes-group-version-kind':[{'group':'','version':'v1','kind':'Pod'},{'version':'v1','"
    "kind':'Also'}]}"
    "}}}";

static const kl_value *parse(const char *quoted)
{
    char *text = kl_strdup(quoted);
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    assert_ok(kl_value_decode(text, strlen(text), &v, &err), &err);
    kl_free(text);
    return v;
}

static kl_schema *schema(void)
{
    const kl_value *v = parse(document);
    kl_schema *s = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_schema_read(v, &s, &err), &err);
    kl_value_unref(v);
    return s;
}

static kl_status check(
    const kl_schema *s, kl_schema_use use, bool strict, const kl_value *v, const kl_value **out, kl_err *err)
{
    kl_schema_question q = {
        .group = "example.com", .version = "v1", .kind = "Thing", .use = use, .strict = strict};
    return kl_schema_check(s, &q, v, out, err);
}

/* NULL: it must pass as it is. */
static void becomes(const kl_schema *s, kl_schema_use use, const char *in, const char *want)
{
    const kl_value *v = parse(in), *out = NULL, *wanted = parse(want ? want : in);
    kl_err err = KL_ERR_INIT;
    assert_ok(check(s, use, true, v, &out, &err), &err);
    char *a = kl_value_to_json(out), *b = kl_value_to_json(wanted);
    assert_string_equal(a, b);
    if (!want)
        assert_ptr_equal(out, v);
    kl_free(a);
    kl_free(b);
    kl_value_unref(out);
    kl_value_unref(wanted);
    kl_value_unref(v);
}

static void refused(const kl_schema *s, kl_schema_use use, const char *in, const char *story)
{
    const kl_value *v = parse(in), *out = NULL;
    kl_err err = KL_ERR_INIT;
    kl_status st = check(s, use, true, v, &out, &err);
    if (st != KL_EINVAL || strcmp(kl_err_message(&err), story))
        fail_msg("%s: %s, wanted %s", in, kl_err_message(&err), story);
    kl_err_fini(&err);
    /* somebody else's business then */
    assert_int_equal(check(s, use, false, v, &out, NULL), KL_OK);
    kl_value_unref(out);
    kl_value_unref(v);
}

static void valid_objects_pass_unchanged(void **state)
{
    (void)state;
    kl_schema *s = schema();
    static const char *const good[] = {
        "{}",
        "{'apiVersion':'example.com/v1','kind':'Thing','metadata':{'name':'a','labels':{'x.y/"
        "z':'1'}},'spec':{}}",
        "{'spec':{'replicas':3,'weight':3,'on':false}}",
        "{'spec':{'weight':2.5,'size':'1Gi','port':80}}",
        "{'spec':{'size':1.5,'port':'http'}}",
        "{'spec':{'args':[],'opts':{},'containers':[{'image':'a'}]}}",
        "{'spec':{'anything':{'a':[1,{'b':2.0}]},'free':{'unknown':{},'known':1}}}",
        "{'spec':{'template':{'apiVersion':'v1','kind':'X','metadata':{'what':'ever'},'spec':{'n':1}}}}",
        "{'spec':{'tree':{'value':1,'children':[{'value':2,'children':[]}]}}}",
        "{'spec':{'lost':{'a':1},'bare':[{}],'odd':'x'}}",
        "{'spec':null,'metadata':{'name':null}}",
        "{'metadata':{'managedFields':[{'manager':'m','fieldsV1':{'f:spec':{'.':{}}}}]}}",
        "{'spec':{'replicas':9223372036854775808}}",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        becomes(s, KL_SCHEMA_OBJECT, good[i], NULL);
    kl_schema_unref(s);
}

static void ambiguous_values_of_scripts_are_corrected(void **state)
{
    (void)state;
    kl_schema *s = schema();
    becomes(
        s, KL_SCHEMA_OBJECT, "{'spec':{'args':{},'opts':{'a':{}}}}", "{'spec':{'args':[],'opts':{'a':[]}}}");
    becomes(s, KL_SCHEMA_OBJECT, "{'metadata':{'finalizers':{},'labels':{}}}",
        "{'metadata':{'finalizers':[],'labels':{}}}");
    becomes(s, KL_SCHEMA_OBJECT, "{'spec':{'tree':{'children':[{'children':{}},{'value':1.5}]}}}",
        "{'spec':{'tree':{'children':[{'children':[]},{'value':1.5}]}}}");
    becomes(s, KL_SCHEMA_PATCH, "{'spec':{'args':{},'containers':null}}",
        "{'spec':{'args':[],'containers':null}}");
    const kl_value *three = kl_value_of_double(3.0),
                   *in = kl_value_with_at(NULL, three, "spec", "replicas", NULL), *out = NULL;
    assert_int_equal(check(s, KL_SCHEMA_OBJECT, true, in, &out, NULL), KL_OK);
    assert_int_equal(kl_value_type(kl_value_at(out, "spec", "replicas", NULL)), KL_INT);
    kl_value_unref(out);
    kl_value_unref(in);
    in = kl_value_with_at(NULL, three, "spec", "weight", NULL);
    assert_int_equal(check(s, KL_SCHEMA_OBJECT, true, in, &out, NULL), KL_OK);
    assert_ptr_equal(out, in);
    kl_value_unref(out);
    kl_value_unref(in);
    kl_value_unref(three);
    kl_schema_unref(s);
}

static void invalid_values_are_reported_with_their_path(void **state)
{
    (void)state;
    kl_schema *s = schema();
    refused(s, KL_SCHEMA_OBJECT, "{'spek':{}}", "there is no field \"spek\"; did you mean \"spec\"?");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'containers':[{'image':'a'},{'imge':'b'}]}}",
        "there is no field \"spec.containers[2].imge\"; did you mean \"image\"?");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'qqqqqqqq':1}}", "there is no field \"spec.qqqqqqqq\"");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'replicas':'3'}}",
        "\"spec.replicas\" must be an integer, not a string");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'replicas':3.5}}",
        "\"spec.replicas\" must be an integer, not a number with a fraction");
    refused(s, KL_SCHEMA_OBJECT, "{'metadata':{'labels':{'a.b/c':1}}}",
        "\"metadata.labels[a.b/c]\" must be a string, not an integer");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'args':{'a':1}}}", "\"spec.args\" must be a list, not an object");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'opts':[]}}", "\"spec.opts\" must be an object, not a list");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'port':true}}",
        "\"spec.port\" must be a string or an integer, not a boolean");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'free':{'known':'x'}}}",
        "\"spec.free.known\" must be an integer, not a string");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'tree':{'children':[{'vlaue':1}]}}}",
        "there is no field \"spec.tree.children[1].vlaue\"; did you mean \"value\"?");
    refused(s, KL_SCHEMA_OBJECT, "{'a':1,'spec':{'on':1}}",
        "there is no field \"a\"; \"spec.on\" must be a boolean, not an integer");
    refused(s, KL_SCHEMA_OBJECT, "{'spec':{'$patch':'delete'}}", "there is no field \"spec.$patch\"");
    becomes(s, KL_SCHEMA_PATCH, "{'spec':{'$patch':'delete','containers':[{'$patch':'replace'}]}}", NULL);
    char many[512] = "{'spec':{'z0':0";
    for (int i = 1; i < 12; i++)
        snprintf(many + strlen(many), 16, ",'z%d':0", i);
    strcat(many, "}}");
    const kl_value *v = parse(many), *out = NULL;
    kl_err err = KL_ERR_INIT;
    assert_fails(check(s, KL_SCHEMA_OBJECT, true, v, &out, &err), KL_EINVAL, &err, "; and 4 more");
    kl_value_unref(v);
    kl_schema_unref(s);
}

static void kinds_are_found_by_all_their_names(void **state)
{
    (void)state;
    kl_schema *s = schema();
    assert_int_equal(kl_schema_kinds(s), 3);
    assert_true(kl_schema_has(s, "", "v1", "Pod") && kl_schema_has(s, "", "v1", "Also")
        && kl_schema_has(s, "example.com", "v1", "Thing"));
    assert_false(kl_schema_has(s, "", "v1", "Thing"));
    const kl_value *v = parse("{}"), *out = NULL;
    kl_err err = KL_ERR_INIT;
    kl_schema_question later = {.group = "example.com", .version = "v2", .kind = "Thing", .strict = true};
    assert_fails(kl_schema_check(s, &later, v, &out, &err), KL_ENOTFOUND, &err, "has no kind \"Thing\"");
    kl_value_unref(v);
    kl_schema_unref(s);
}

static void no_document_is_no_schema(void **state)
{
    (void)state;
    static const char *const bad[] = {"{}", "[]", "{'openapi':'3.0.0'}",
        "{'openapi':'3.0.0','components':{'schemas':[]}}", "{'swagger':'2.0','definitions':{}}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const kl_value *v = parse(bad[i]);
        kl_schema *s = NULL;
        kl_err err = KL_ERR_INIT;
        assert_fails(kl_schema_read(v, &s, &err), KL_ESYNTAX, &err, "not an OpenAPI v3 document");
        assert_null(s);
        kl_value_unref(v);
    }
}

static void too_many_fields_are_refused(void **state)
{
    (void)state;
    enum { KINDS = 1001, FIELDS = 1000 };
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (int i = 0; i < FIELDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        kl_build_key(b, name);
        kl_build_object(b);
        kl_build_end(b);
    }
    kl_build_end(b);
    const kl_value *fields = kl_builder_done(b);
    b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "openapi", "3.0.0");
    kl_build_key(b, "components");
    kl_build_object(b);
    kl_build_key(b, "schemas");
    kl_build_object(b);
    for (int i = 0; i < KINDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "K%d", i);
        kl_build_key(b, name);
        kl_build_object(b);
        kl_build_kvalue(b, "properties", fields);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    const kl_value *v = kl_builder_done(b);
    kl_schema *s = NULL;
    kl_err err = KL_ERR_INIT;
    assert_fails(kl_schema_read(v, &s, &err), KL_ETOOBIG, &err, "more than 1000000 fields");
    kl_value_unref(v);
    kl_value_unref(fields);
}

/* The bytes are the schema: loaded again they judge the same. Each byte changed, and each length, is
 * refused or judges without harm. */
static void its_bytes_come_back_whole_or_not_at_all(void **state)
{
    (void)state;
    kl_schema *s = schema(), *again = NULL;
    size_t n;
    const void *bytes = kl_schema_bytes(s, &n);
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_schema_load(bytes, n, &again, &err), &err);
    refused(again, KL_SCHEMA_OBJECT, "{'spec':{'containers':[{'imge':'b'}]}}",
        "there is no field \"spec.containers[1].imge\"; did you mean \"image\"?");
    kl_schema_unref(again);
    const kl_value *v = parse("{'metadata':{'labels':{'a':'b'}},'spec':{'tree':{'children':[{'children':[{}]}"
                              "]},'args':['x'],'containers':[{}]}}"),
                   *out;
    for (size_t i = 0; i < n; i++) {
        char *spoilt = kl_alloc(n);
        memcpy(spoilt, bytes, n);
        spoilt[i] ^= 0x55;
        again = NULL;
        if (!kl_schema_load(spoilt, n, &again, NULL) && !check(again, KL_SCHEMA_OBJECT, false, v, &out, NULL))
            kl_value_unref(out);
        kl_schema_unref(again);
        kl_free(spoilt);
        assert_fails(kl_schema_load(bytes, i, &again, &err), KL_ESYNTAX, &err, "invalid bytes of a schema");
    }
    kl_value_unref(v);
    kl_schema_unref(s);
}

KL_TESTS(cmocka_unit_test(valid_objects_pass_unchanged),
    cmocka_unit_test(ambiguous_values_of_scripts_are_corrected),
    cmocka_unit_test(invalid_values_are_reported_with_their_path),
    cmocka_unit_test(kinds_are_found_by_all_their_names), cmocka_unit_test(no_document_is_no_schema),
    cmocka_unit_test(too_many_fields_are_refused), cmocka_unit_test(its_bytes_come_back_whole_or_not_at_all))

/* not in tsan: it starts no thread */
