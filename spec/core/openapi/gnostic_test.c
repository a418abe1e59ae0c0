/* gnostic_test.c - schemas in gnostic's protobuf, each member under its number in OpenAPIv3.proto; the media
 * types of a page, and the names of groups in it. */
#include "core/server/value_help.h"

#include "base/buf.h"
#include "openapi/document.h"
#include "openapi/gnostic.h"
#include "openapi/parts.h"

/* A schema with one member, and how its message ends: tag, perhaps a length, and what is said. */
static void members_are_the_fields_of_gnostic(void **state)
{
    (void)state;
    static const struct {
        const char *schema, *end;
        size_t n;
    } rows[] = {
#define ROW(schema, end) {schema, end, sizeof end - 1}
        ROW("{'nullable':true}", "\x08\x01"),
        ROW("{'title':'t'}", "\x4a\x01t"),
        ROW("{'multipleOf':1}", "\x51\0\0\0\0\0\0\xf0\x3f"),
        ROW("{'maximum':1}", "\x59\0\0\0\0\0\0\xf0\x3f"),
        ROW("{'exclusiveMaximum':true}", "\x60\x01"),
        ROW("{'minimum':1}", "\x69\0\0\0\0\0\0\xf0\x3f"),
        ROW("{'exclusiveMinimum':true}", "\x70\x01"),
        ROW("{'maxLength':3}", "\x78\x03"),
        ROW("{'minLength':3}", "\x80\x01\x03"),
        ROW("{'pattern':'p'}", "\x8a\x01\x01p"),
        ROW("{'maxItems':3}", "\x90\x01\x03"),
        ROW("{'minItems':3}", "\x98\x01\x03"),
        ROW("{'uniqueItems':true}", "\xa0\x01\x01"),
        ROW("{'maxProperties':3}", "\xa8\x01\x03"),
        ROW("{'minProperties':3}", "\xb0\x01\x03"),
        ROW("{'required':['a','b']}", "\xba\x01\x01\x61\xba\x01\x01\x62"),
        ROW("{'type':'object'}", "\xca\x01\x06object"),
        ROW("{'description':'d'}", "\x92\x02\x01\x64"),
        ROW("{'format':'f'}", "\x9a\x02\x01\x66"),
        /* messages in messages: a schema is field 1 of what may also be a reference */
        ROW("{'not':{'title':'t'}}", "\xea\x01\x03\x4a\x01t"),
        ROW("{'allOf':[{'title':'t'}]}", "\xd2\x01\x05\x0a\x03\x4a\x01t"),
        ROW("{'oneOf':[{'title':'t'}]}", "\xda\x01\x05\x0a\x03\x4a\x01t"),
        ROW("{'anyOf':[{'title':'t'}]}", "\xe2\x01\x05\x0a\x03\x4a\x01t"),
        ROW("{'items':{'title':'t'}}", "\xf2\x01\x07\x0a\x05\x0a\x03\x4a\x01t"),
        ROW("{'properties':{'p':{'title':'t'}}}", "\xfa\x01\x0c\x0a\x0a\x0a\x01p\x12\x05\x0a\x03\x4a\x01t"),
        ROW("{'additionalProperties':{'title':'t'}}", "\x82\x02\x07\x0a\x05\x0a\x03\x4a\x01t"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kl_value *schema = v(rows[i].schema);
        kl_buf out = KL_BUF_INIT;
        kl__gnostic_v3_definition(&out, "a", schema);
        if (out.len < rows[i].n || memcmp(out.data + out.len - rows[i].n, rows[i].end, rows[i].n) != 0)
            fail_msg("%s ends in another way", rows[i].schema);
        kl_buf_fini(&out);
        kl_value_unref(schema);
    }
}

/* The first definitions, by name, are those of admission; the last are of the kinds that describe APIs. */
static void both_forms_of_a_page_have_the_same_definitions(void **state)
{
    (void)state;
    static const char *const pages[] = {
        "apis/admissionregistration.k8s.io/v1", "api/v1", "apis/apiregistration.k8s.io/v1"};
    kl__types *types = kl__types_builtin();
    kl__kinds *kinds = kl__kinds_new(types);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        kl_buf text = KL_BUF_INIT, bytes = KL_BUF_INIT;
        const kl_value *page = NULL;
        kl_err err = KL_ERR_INIT;
        kl_openapi_v3(kinds, pages[i], false, &text);
        kl_openapi_v3(kinds, pages[i], true, &bytes);
        assert_ok(kl_value_decode(kl_buf_str(&text), text.len, &page, &err), &err);
        const kl_value *schemas = kl_value_at(page, "components", "schemas", NULL);
        assert_true(kl_value_len(schemas) > 5);
        for (size_t k = 0; k < kl_value_len(schemas); k++) {
            const char *name;
            size_t n;
            kl_value_member(schemas, k, &name, &n);
            kl_buf named = KL_BUF_INIT; /* field 1 of a named schema */
            kl__gnostic_bytes(&named, 1, name, n);
            if (!memmem(bytes.data, bytes.len, named.data, named.len))
                fail_msg("%s: protobuf lacks %s", pages[i], name);
            kl_buf_fini(&named);
        }
        kl_value_unref(page);
        kl_buf_fini(&text);
        kl_buf_fini(&bytes);
    }
    kl__kinds_free(kinds);
    kl__types_free(types);
}

static void groups_have_words_and_tags(void **state)
{
    (void)state;
    static const struct {
        const char *group, *version, *word, *tag;
    } rows[] = {
        {"", "v1", "CoreV1", "core_v1"},
        {"", NULL, "Core", "core"},
        {"apps", "v1", "AppsV1", "apps_v1"},
        {"flowcontrol.apiserver.k8s.io", "v1beta3", "FlowcontrolApiserverV1beta3",
            "flowcontrolApiserver_v1beta3"},
        {"my-own.example.com", "v1", "MyOwnExampleComV1", "myOwnExampleCom_v1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *word = kl__openapi_word(rows[i].group, rows[i].version),
             *tag = kl__openapi_tag(rows[i].group, rows[i].version);
        assert_string_equal(word, rows[i].word);
        assert_string_equal(tag, rows[i].tag);
        kl_free(word);
        kl_free(tag);
    }
}

KL_TESTS(cmocka_unit_test(members_are_the_fields_of_gnostic),
    cmocka_unit_test(both_forms_of_a_page_have_the_same_definitions),
    cmocka_unit_test(groups_have_words_and_tags))
