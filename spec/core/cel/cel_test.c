/* cel_test.c - CEL: the values and costs of expressions, and the messages for invalid ones. */
#include "core/server/value_help.h"

#include "cel/cel.h"

static kl_cel_env *env;
static const kl_value *object;

static int setup(void **state)
{
    (void)state;
    env = kl_cel_env_new();
    kl_cel_env_var(env, "o", kl_cel_type_dyn());
    object = v("{'a':1,'s':'text','l':[1,2,3],'m':{'x':'y','z':null},'f':1.5,'t':true}");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kl_cel_env_free(env);
    kl_value_unref(object);
    return 0;
}

/* What an expression is worth as JSON, "! why" when it fails, "? why" when it does not compile. */
static char *worth(const char *text, uint64_t limit, uint64_t *cost)
{
    kl_cel *p = NULL;
    kl_err err = KL_ERR_INIT;
    const kl_value *value = NULL;
    char *said = NULL;
    kl_cel_var var = {.is = KL_CEL_VALUE, .json = object};
    kl_cel_run run = {.vars = &var, .limit = limit};
    kl_status st = kl_cel_compile(env, text, &p, &err);
    if (st) /* without "compilation failed: " and its like */
        said = kl_sprintf("%s %s", st == KL_EREJECTED ? "!" : "?", strchr(kl_err_message(&err), ':') + 2);
    else if (kl_cel_eval(p, &run, &value, &err))
        said = kl_sprintf("! %s", kl_err_message(&err));
    else
        said = kl_value_to_json(value);
    if (cost)
        *cost = run.cost;
    kl_value_unref(value);
    kl_err_fini(&err);
    kl_cel_free(p);
    return said;
}

static void is(const char *text, const char *want)
{
    char *said = worth(text, KL_CEL_CALL_COST, NULL);
    if (strcmp(said, want))
        fail_msg("%s: got %s, wanted %s", text, said, want);
    kl_free(said);
}

static void numbers_are_added_and_overflow(void **state)
{
    (void)state;
    is("1 + 2 * 3 - 4 / 2", "5");
    is("9223372036854775807 + 1", "! integer overflow");
    is("-9223372036854775808", "-9223372036854775808");
    is("1 / 0", "! division by zero");
    is("1 % 0", "! modulus by zero");
    is("5u - 6u", "! unsigned integer overflow");
    is("1.5 * 2.0", "3");
    is("0x10 + 1", "17");
    is("--1", "1");
    is("1 < 2u && 1 < 1.5 && 2u > 1.5", "true");
    is("0.0 / 0.0 == 0.0 / 0.0", "false");
    is("int('42') + int(1.9) + int(true ? 1 : 2)", "44");
    is("int(1e20)", "! integer overflow");
    is("int('x')", "! type conversion error from 'string' to 'int'");
    is("uint(-1)", "! unsigned integer overflow");
    is("string(1.0) + string(1.5) + string(1e21)", "\"11.51e+21\"");
}

static void fields_are_found_or_not(void **state)
{
    (void)state;
    is("[o.?m[?'x'].value(), o.?l[?1].value(), o.?m.?x.value()]", "[\"y\",2,\"y\"]");
    is("[o.?x[?0].hasValue(), o.?l[?7].hasValue()]", "[false,false]");
    is("o.?a[?0]", "! no such overload");
    is("o.a == 1.0 && o.l[1] == 2", "true");
    is("o.m.q", "! no such key: q");
    is("o.l[5]", "! index out of bounds: 5");
    is("has(o.m.q) || !has(o.m.x)", "false");
    is("o.m.z == null", "true");
    is("o.?m.?q.orValue('none') + o.?m.?x.value()", "\"noney\"");
    is("o.l[?1].orValue(0) + o.l[?9].orValue(10)", "12");
    is("optional.none().value()", "! optional.none() dereference");
    is("[1, ?optional.none(), ?optional.of(2)]", "[1,2]");
    is("{?'a': optional.none(), 'b': 1}", "{\"b\":1}");
    is("optional.of(1).optMap(x, x + 1).value()", "2");
    is("optional.of(1).optFlatMap(x, optional.none()).hasValue()", "false");
}

static void a_deciding_operand_hides_a_failing_one(void **state)
{
    (void)state;
    is("true || 1 / 0 > 1", "true");
    is("1 / 0 > 1 || true", "true");
    is("1 / 0 > 1 && false", "false");
    is("false || 1 / 0 > 1", "! division by zero");
    is("[0, 2].exists(x, 1 / x > 5 || x == 2)", "true");
    is("[0, 1].all(x, 1 / x > 5)", "false");
}

static void macros_loop(void **state)
{
    (void)state;
    is("o.l.all(x, x > 0) && o.l.exists(x, x > 2) && o.l.exists_one(x, x > 2)", "true");
    is("o.l.map(x, x * 2)", "[2,4,6]");
    is("o.l.map(x, x > 1, x * 2)", "[4,6]");
    is("o.l.filter(x, x > 1)", "[2,3]");
    is("o.m.all(k, k != '')", "true");
    is("o.l.transformList(i, v, i * v)", "[0,2,6]");
    is("{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v + 1)", "{\"b\":3}");
    is("{'a': 'x'}.transformMapEntry(k, v, {v: k})", "{\"x\":\"a\"}");
    is("{'a': 'x', 'b': 'x'}.transformMapEntry(k, v, {v: k})", "! insert failed: key x already exists");
    is("[1, 2].exists(i, v, i == 1 && v == 2)", "true");
    is("o.l.map(x, o.l.map(y, x * y))", "[[1,2,3],[2,4,6],[3,6,9]]");
}

static void texts_are_read_as_go_reads_numbers(void **state)
{
    (void)state;
    is("[double('1'), double('-1.5'), double('+.5'), double('2.'), double('1e3'), double('25E-1')]",
        "[1,-1.5,0.5,2,1000,2.5]");
    static const char *const none[] = {"", "-", ".", "e5", "1e", "1e+", "1e5x", "1.5.", " 1", "0x10", "1_0"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        char *text = kl_sprintf("double('%s')", none[i]);
        is(text, "! type conversion error from 'string' to 'double'");
        kl_free(text);
    }
}

static void maps_have_keys_of_four_types(void **state)
{
    (void)state;
    is("{'c': 'a'}['c'] + {2: 'b'}[2] + {1u: 'c'}[1u] + {true: 'd'}[true]", "\"abcd\"");
    is("{o.a: 'x'}[1] + {o.t: 'y'}[true] + {uint(o.a): 'z'}[1u]", "\"xyz\"");
    is("{o.f: 'x'}", "! unsupported key type: double");
    is("{o.l: 'x'}", "! unsupported key type: list");
}

static void texts(void **state)
{
    (void)state;
    is("size('\xc3\xa4\xc3\xb6') + 'abc'.size()", "5");
    is("'abc'.contains('b') && 'abc'.startsWith('ab') && 'abc'.endsWith('bc')", "true");
    is("'abc'.matches('^a.c$')", "true");
    is("['a', 'ab', 'b'].filter(x, x.matches('^a') || x.matches('(' + x + ')$'))", "[\"a\",\"ab\",\"b\"]");
    is("'abc'.charAt(0) + 'abc'.charAt(1) + 'abc'.charAt(3)", "\"ab\"");
    is("'abc'.charAt(4)", "! index out of range: 4");
    is("'abc'.charAt(-1)", "! index out of range: -1");
    is("'hello mellow'.indexOf('ello', 2)", "7");
    is("'hello mellow'.lastIndexOf('ello', 6)", "1");
    is("'TacoCat'.lowerAscii() + 'TacoCat'.upperAscii()", "\"tacocatTACOCAT\"");
    is("'hello hello'.replace('he', 'we', 1)", "\"wello hello\"");
    is("'hi'.replace('', '_')", "\"_h_i_\"");
    is("'a b c'.split(' ', 2)", "[\"a\",\"b c\"]");
    is("'ab'.split('')", "[\"a\",\"b\"]");
    is("'tacocat'.substring(4) + 'tacocat'.substring(0, 4)", "\"cattaco\"");
    is("'abc'.substring(0, 0) + 'abc'.substring(3) + 'abc'.substring(2, 3)", "\"c\"");
    is("'abc'.substring(4)", "! index out of range: 4");
    is("'abc'.substring(0, 4)", "! index out of range: 4");
    is("'abc'.substring(-1)", "! index out of range: -1");
    is("'abc'.substring(3, 2)", "! invalid substring range. start: 3, end: 2");
    is("' x '.trim() + ['a', 'b'].join('-')", "\"xa-b\"");
    is("[1, 'a']", "? ERROR: <input>:1:5: expected type 'int' but found 'string'\n | [1, 'a']\n | ....^");
    is("'%s is %d, %x'.format(['a', 42, 255])", "\"a is 42, ff\"");
    is("'%s %s'.format([[1, 'a', 2.5], {'k': true}])", "\"[1, \\\"a\\\", 2.500000] {\\\"k\\\":true}\"");
    is("'%e %.1f'.format([1052.032, 2.25])", "\"1.052032\xc3\x97\x31\x30\xe2\x81\xb0\xc2\xb3 2.2\"");
    is("strings.quote('a\"b\\n')", "\"\\\"a\\\\\\\"b\\\\n\\\"\"");
    is("'abc 123'.find('[0-9]+')", "\"123\"");
    is("'123 abc 456'.findAll('[0-9]+')", "[\"123\",\"456\"]");
    is("\"a\\tb\\u00e9\\101\"", "\"a\\tb\xc3\xa9\x41\"");
    is("bytes('abc') == b'abc'", "true");
}

static void lists_and_sets(void **state)
{
    (void)state;
    is("[1, 2, 3].isSorted() && ![3, 1].isSorted()", "true");
    is("[1.5, 2.0].sum()", "3.5");
    is("[3, 1, 2].min() + [3, 1, 2].max()", "4");
    is("[].max()", "! max called on empty list");
    is("[1, 2, 2].indexOf(2) + [1, 2, 2].lastIndexOf(2) + [1].indexOf(3)", "2");
    is("1 in [1, 2] && 'a' in {'a': 1} && [1, 2] == [1, 2] && [1, 2] != [2, 1]", "true");
    is("sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.intersects([1], [2])",
        "true");
    is("{'a': 1, 'a': 2}", "{\"a\":2}"); /* constants: the last one wins */
    is("{'a': o.a, 'a': o.f}", "! Failed with repeated key a");
}

static void times(void **state)
{
    (void)state;
    is("duration('1h') + duration('30m') == duration('90m')", "true");
    is("string(duration('1h30m'))", "\"5400s\"");
    is("timestamp('2023-05-06T07:08:09Z').getDayOfWeek()", "6");
    is("timestamp('2023-05-06T07:08:09Z').getDayOfYear()", "125");
    is("timestamp('2023-05-06T07:08:09Z').getHours('-08:00')", "23");
    is("timestamp('2023-05-06T07:08:09Z').getHours('Nowhere/Land')", "! unknown time zone Nowhere/Land");
    is("string(timestamp('2023-05-06T07:08:09Z') - duration('9s'))", "\"2023-05-06T07:08:00Z\"");
    is("timestamp('9999-12-31T23:59:59Z') + duration('1s')", "! timestamp overflow");
}

static void libraries_of_kubernetes(void **state)
{
    (void)state;
    is("quantity('1.5Gi').isGreaterThan(quantity('1G')) && quantity('1k') == quantity('1000')", "true");
    is("quantity('50k').add(20).sub(quantity('100k')).sub(-50000) == quantity('20')", "true");
    is("quantity('50k').asInteger()", "50000");
    is("isQuantity('1,3G')", "false");
    is("semver('1.2.3-alpha.2').isLessThan(semver('1.2.3-alpha.10')) && semver('v1.0', true).major() == 1",
        "true");
    is("['224.0.0.5', '224.0.1.5', '224.1.0.5', 'ff02::1', 'ff05::1'].map(x, "
       "ip(x).isLinkLocalMulticast())",
        "[true,false,false,true,false]");
    is("['169.254.1.1', '169.253.1.1', 'fe80::1', 'fec0::1'].map(x, ip(x).isLinkLocalUnicast())",
        "[true,false,true,false]");
    is("['0.0.0.0', '0.0.0.1', '::', '::1'].map(x, ip(x).isUnspecified())", "[true,false,true,false]");
    is("['1.2.3.4', '127.0.0.1', '224.0.0.5', '255.255.255.255', 'fd00::1'].map(x, ip(x).isGlobalUnicast())",
        "[true,false,false,false,true]");
    is("ip('127.0.0.1').family() == 4 && ip('::1').isLoopback() && !isIP('::ffff:1.2.3.4')", "true");
    is("string(ip('2001:DB8:0:0::1'))", "\"2001:db8::1\"");
    is("string(ip('::')) + string(ip('1:0:0:2::'))", "\"::1:0:0:2::\"");
    is("cidr('192.168.0.0/24').containsIP('192.168.0.1') && cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16')",
        "true");
    is("string(cidr('192.168.0.1/24').masked())", "\"192.168.0.0/24\"");
    is("url('https://u:p@example.com:80/a b?k=v&k=w#x').getHost()", "\"example.com:80\"");
    is("url('https://[::1]:80/').getHostname() + url('https://e.com/a b/').getEscapedPath()",
        "\"::1/a%20b/\"");
    is("url('https://e.com/p?k1=a&k2=b&k2=c').getQuery()", "{\"k1\":[\"a\"],\"k2\":[\"b\",\"c\"]}");
    is("isURL('../relative') || isURL('https://a:b:c/')", "false");
    is("format.dns1123Label().validate('abc').hasValue()", "false");
    is("format.uuid().validate('x').value()", "[\"does not match the UUID format\"]");
    is("format.date().validate('2024-01-02').hasValue()", "false");
    is("format.date().validate('2024-01-021').hasValue()", "true");
    is("format.named('nope').hasValue()", "false");
}

static void types_are_checked(void **state)
{
    (void)state;
    is("1 + 'a'",
        "? ERROR: <input>:1:3: found no matching overload for '_+_' applied to '(int, string)'\n"
        " | 1 + 'a'\n | ..^");
    is("x.y", "? ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x.y\n | ^");
    is("'a'.nosuch()",
        "? ERROR: <input>:1:11: undeclared reference to 'nosuch' (in container '')\n"
        " | 'a'.nosuch()\n | ..........^");
    is("has(o)", "? ERROR: <input>:1:5: invalid argument to has() macro\n | has(o)\n | ....^");
    is("type(1) == int && type('a') == string && type(o.l) == list", "true");
    is("dyn('a') < 1", "! no such overload");
    is("(1", "? ERROR: <input>:1:3: Syntax error: missing ')' at '<EOF>'\n | (1\n | ..^");
    is("if", "? ERROR: <input>:1:1: reserved identifier: if\n | if\n | ^");
}

static void a_budget_ends_expensive_expressions(void **state)
{
    (void)state;
    uint64_t cost;
    char *said = worth("o.l.all(x, o.l.all(y, o.l.all(z, x + y + z > 0)))", 100, &cost);
    assert_string_equal(said, "! operation cancelled: actual cost limit exceeded");
    kl_free(said);
    said = worth("o.l.all(x, x > 0)", 100, &cost);
    assert_string_equal(said, "true");
    assert_int_equal(cost, 18);
    kl_free(said);
}

/* What is folded before it runs is free: conversions of literals, and membership in a list of them. */
static void each_step_has_its_cost(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t cost;
    } rows[] = {
        {"true", 0},
        {"1 + 2", 1},
        {"o.a", 2},
        {"o.a + 1", 3},
        {"has(o.a)", 1},
        {"has(o.x)", 1},
        {"o.?x", 1},
        {"o.?a", 2},
        {"1 in [1, 2]", 0},
        {"o.a in [1, 2]", 2},
        {"1 in o.l", 5},
        {"1 in [o.a]", 13},
        {"duration('1s')", 0},
        {"int('1')", 0},
        {"string(o.a)", 3},
        {"dyn(o.a)", 2},
        {"[1, 2]", 0},
        {"[o.a]", 12},
        {"{'a': 1}", 0},
        {"o.l[0]", 3},
        {"o.l.size()", 3},
        {"o.s.size()", 3},
        {"o.s.contains('a')", 3},
        {"o.s.matches('a')", 3},
        {"o.s + 'abcdefghijklmnopqrstuvwxyz'", 5},
        {"o.s == 'x'", 3},
        {"true ? 1 : 2", 0},
        {"true || o.a == 1", 0},
        {"o.l.map(x, x)", 42},
        {"o.l.filter(x, x > 1)", 35},
        {"o.l.exists(x, x == 1)", 12},
        {"format.labelValue().validate('a')", 11},
        {"format.labelValue().validate('abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz')", 61},
        {"o.l.sum()", 5},
        {"o.l.isSorted()", 5},
        {"o.l.indexOf(2)", 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t cost;
        char *said = worth(rows[i].text, KL_CEL_CALL_COST, &cost);
        if (*said == '!' || *said == '?' || cost != rows[i].cost)
            fail_msg("%s: %s for %d, not for %d", rows[i].text, said, (int)cost, (int)rows[i].cost);
        kl_free(said);
    }
}

/* `prefix` n times, `middle`, `suffix` n times. */
static char *nested(const char *prefix, size_t n, const char *middle, const char *suffix)
{
    kl_buf b = KL_BUF_INIT;
    for (size_t i = 0; i < n; i++)
        kl_buf_puts(&b, prefix);
    kl_buf_puts(&b, middle);
    for (size_t i = 0; i < n; i++)
        kl_buf_puts(&b, suffix);
    return kl_buf_take(&b);
}

static void refused_as(char *text, const char *part)
{
    char *said = worth(text, KL_CEL_CALL_COST, NULL);
    if (said[0] == '"' || !strstr(said, part))
        fail_msg("%.40s...: got %.200s, wanted %s", text, said, part);
    kl_free(said);
    kl_free(text);
}

static void depth_size_and_memory_have_an_end(void **state)
{
    (void)state;
    refused_as(nested("(", 100000, "1", ")"), "expression");
    refused_as(nested("[", 1000, "", "]"), "expression recursion limit exceeded");
    refused_as(nested("1+", 10000, "1", ""), "ERROR: <input>:-1:0: max recursion depth exceeded");
    refused_as(nested("o.", 1000, "a", ""), "max recursion depth exceeded");
    refused_as(nested("-(", 1000, "a", ")"), "expression recursion limit exceeded");
    refused_as(nested("x", 200000, "", ""), "expression code point size exceeds limit");
    refused_as(nested("[1,2,3,4,5,6,7,8,9].map(x,", 30, "x", ")"), "cost limit exceeded");
}

/* Schemas are as deep as documents may be. */
static void the_type_of_a_schema_is_as_deep_as_the_schema(void **state)
{
    (void)state;
    enum { LEVELS = 200 };
    kl_buf schema = KL_BUF_INIT, rule = KL_BUF_INIT;
    for (int i = 0; i < LEVELS; i++)
        kl_buf_puts(&schema, "{'type':'object','properties':{'a':");
    kl_buf_puts(&schema, "{'type':'string'}");
    for (int i = 0; i < LEVELS; i++)
        kl_buf_puts(&schema, "}}");
    kl_buf_puts(&rule, "self");
    for (int i = 0; i < LEVELS; i++)
        kl_buf_puts(&rule, ".a");
    const kl_value *s = v(kl_buf_str(&schema));
    kl_cel_env *own = kl_cel_env_new();
    kl_cel *p = NULL;
    kl_err err = KL_ERR_INIT;
    kl_cel_env_var(own, "self", kl_cel_type_of_schema(own, s, false));
    assert_ok(kl_cel_compile(own, kl_buf_str(&rule), &p, &err), &err);
    kl_cel_free(p);
    kl_buf_puts(&rule, ".a");
    assert_fails(kl_cel_compile(own, kl_buf_str(&rule), &p, &err), KL_EINVAL, &err,
        "type 'string' does not support field selection");
    kl_cel_env_free(own);
    kl_value_unref(s);
    kl_buf_fini(&schema);
    kl_buf_fini(&rule);
}

/* The last test: it changes the environment. */
static void names_are_bound_where_an_environment_allows_it(void **state)
{
    (void)state;
    char *said = worth("cel.bind(a, 1, true)", KL_CEL_CALL_COST, NULL);
    assert_non_null(strstr(said, "undeclared reference to 'cel'"));
    kl_free(said);
    kl_cel_env_bind(env);
    is("cel.bind(a, 1 + 1, a * a)", "4");
    is("cel.bind(a, [1, 2], a.map(x, cel.bind(b, x + 1, b * b)))", "[4,9]");
    is("cel.bind(a, o.m, a.x) + 'z'", "\"yz\"");
    is("cel.bind(a, o.none, a)", "! no such key: none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_added_and_overflow),
        cmocka_unit_test(fields_are_found_or_not),
        cmocka_unit_test(a_deciding_operand_hides_a_failing_one),
        cmocka_unit_test(macros_loop),
        cmocka_unit_test(texts_are_read_as_go_reads_numbers),
        cmocka_unit_test(maps_have_keys_of_four_types),
        cmocka_unit_test(texts),
        cmocka_unit_test(lists_and_sets),
        cmocka_unit_test(times),
        cmocka_unit_test(libraries_of_kubernetes),
        cmocka_unit_test(types_are_checked),
        cmocka_unit_test(a_budget_ends_expensive_expressions),
        cmocka_unit_test(each_step_has_its_cost),
        cmocka_unit_test(depth_size_and_memory_have_an_end),
        cmocka_unit_test(the_type_of_a_schema_is_as_deep_as_the_schema),
        cmocka_unit_test(names_are_bound_where_an_environment_allows_it),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
