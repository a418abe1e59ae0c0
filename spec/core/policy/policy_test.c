/* policy_test.c - the decision of a ValidatingAdmissionPolicy about one request. */
#include "support/json.h"

#include "base/buf.h"
#include "policy/policy.h"

static void refuse(void *arg, bool always, size_t index, const char *reason, const char *message)
{
    kl_buf_printf(arg, "%s%zu %s: %s\n", always ? "always " : "", index, reason, message);
}

static void note(void *arg, const char *key, const char *value)
{
    kl_buf_printf(arg, "%s = %s\n", key, value);
}

/* What the policy of that spec says of a request with an object of that size, whose parameters are {'max':
 * 3}. */
static void assert_verdict(const char *spec, int size, const char *want)
{
    char *text = kl_sprintf("{'spec':{'paramKind':{'kind':'Limit','apiVersion':'v1'},%s}}", spec),
         *asked = kl_sprintf("{'operation':'CREATE','object':{'size':%d},'oldObject':null}", size);
    const kl_value *object = json(text), *request = json(asked), *params = json("{'max':3}");
    kl_policy *p = kl_policy_new(object);
    kl_buf said = KL_BUF_INIT;
    assert_ptr_equal(kl_policy_object(p), object);
    kl_policy_judge(p, &(kl_policy_input){.request = request, .params = params}, refuse, note, &said);
    assert_string_equal(said.len ? kl_buf_str(&said) : "", want);
    kl_buf_fini(&said);
    kl_policy_free(p);
    kl_value_unref(object);
    kl_value_unref(request);
    kl_value_unref(params);
    kl_free(text);
    kl_free(asked);
}

static void a_validation_that_does_not_hold_refuses_with_its_message(void **state)
{
    (void)state;
    assert_verdict("'validations':[{'expression':'object.size <= params.max'}]", 3, "");
    assert_verdict("'validations':[{'expression':'object.size <= params.max'}]", 4,
        "0 Invalid: failed expression: object.size <= params.max\n");
    assert_verdict("'validations':[{'expression':'true'},"
                   "{'expression':'object.size < 3','message':' too large ','reason':'Forbidden'}]",
        4, "1 Forbidden: too large\n");
    assert_verdict("'validations':[{'expression':'false','message':'m',"
                   "'messageExpression':'string(object.size) + \\\" is too much\\\"'}]",
        4, "0 Invalid: 4 is too much\n");
    assert_verdict("'validations':[{'expression':'false','message':'m','messageExpression':'object.none'}]",
        4, "0 Invalid: m\n");
}

static void conditions_decide_whether_it_applies(void **state)
{
    (void)state;
    const char *const spec = "'matchConditions':[{'name':'large','expression':'object.size > 5'}],"
                             "'validations':[{'expression':'false','message':'no'}]";
    assert_verdict(spec, 5, "");
    assert_verdict(spec, 6, "0 Invalid: no\n");
}

static void a_variable_knows_those_before_it(void **state)
{
    (void)state;
    assert_verdict("'variables':[{'name':'n','expression':'object.size'},"
                   "{'name':'twice','expression':'variables.n * 2'}],"
                   "'validations':[{'expression':'variables.twice < 10','message':'no'}]",
        4, "");
    assert_verdict("'variables':[{'name':'n','expression':'object.size'},"
                   "{'name':'twice','expression':'variables.n * 2'}],"
                   "'validations':[{'expression':'variables.twice < 10','message':'no'}]",
        5, "0 Invalid: no\n");
}

static void the_failure_policy_decides_about_errors(void **state)
{
    (void)state;
    const char *const fails =
        "0 Invalid: expression 'object.none > 1' resulted in error: no such key: none\n";
    assert_verdict("'validations':[{'expression':'object.none > 1'}]", 1, fails);
    assert_verdict("'failurePolicy':'Fail','validations':[{'expression':'object.none > 1'}]", 1, fails);
    assert_verdict("'failurePolicy':'Ignore','validations':[{'expression':'object.none > 1'}]", 1, "");
    assert_verdict("'failurePolicy':'Ignore','validations':[{'expression':'false','message':'no'}]", 1,
        "0 Invalid: no\n");
}

static void annotations_are_written_unless_they_are_empty(void **state)
{
    (void)state;
    assert_verdict("'auditAnnotations':[{'key':'size','valueExpression':'string(object.size)'},"
                   "{'key':'none','valueExpression':'null'},{'key':'blank','valueExpression':'\\\" \\\"'}]",
        4, "size = 4\n");
    assert_verdict("'auditAnnotations':[{'key':'size','valueExpression':'string(object.none)'}]", 4,
        "always 0 Invalid: expression 'string(object.none)' resulted in error: no such key: none\n");
}

KL_TESTS(cmocka_unit_test(a_validation_that_does_not_hold_refuses_with_its_message),
    cmocka_unit_test(conditions_decide_whether_it_applies),
    cmocka_unit_test(a_variable_knows_those_before_it),
    cmocka_unit_test(the_failure_policy_decides_about_errors),
    cmocka_unit_test(annotations_are_written_unless_they_are_empty))

/* not in tsan: it starts no thread */
