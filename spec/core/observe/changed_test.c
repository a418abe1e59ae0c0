/* changed_test.c - the part of a difference between a known state and an answer that our write caused. */
#include "support/json.h"

#include "model/diff.h"
#include "observe/changed.h"

#define KNOWN                                                                                                \
    "{'kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'5','labels':{'l':'1','gone':'x'}},"       \
    "'data':{'ours':'1','theirs':'1'},'list':[1]}"
/* meanwhile somebody else changed theirs and l, and added more */
#define ANSWER                                                                                               \
    "{'kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'9','labels':{'l':'2'}},"                  \
    "'data':{'ours':'2','theirs':'2','more':'x'},'list':[1,2]}"

static void changes(kl_op op, const char *body, const char *before, const char *want)
{
    const kl_value *was = before ? json(before) : NULL, *is = json(ANSWER), *sent = body ? json(body) : NULL;
    op.body = sent;
    const kl_value *ours = kl_changed(&op, was, is);
    kl_buf out = KL_BUF_INIT;
    assert_int_equal(!ours, !want);
    kl_diff_text(was, ours, &out);
    if (want)
        assert_string_equal(kl_buf_str(&out), want);
    kl_buf_fini(&out);
    kl_value_unref(ours);
    kl_value_unref(was);
    kl_value_unref(is);
    kl_value_unref(sent);
}

static kl_op op_of(kl_verb verb, kl_patch_type type)
{
    kl_op op;
    kl_op_init(&op, verb, "v1/ConfigMap");
    op.patch_type = type;
    return op;
}

static void a_patch_changed_the_fields_in_its_body(void **state)
{
    (void)state;
    kl_op merge = op_of(KL_PATCH, KL_PATCH_MERGE);
    changes(merge, "{'data':{'ours':'2'}}", KNOWN, "data.ours: \"1\" -> \"2\"");
    changes(merge, "{'metadata':{'labels':{'gone':null}}}", KNOWN, "metadata.labels.gone: \"x\" -> none");
    changes(merge, "{'list':[1,2]}", KNOWN, "list[2]: none -> 2");
    changes(merge, "{'data':{'absent':null}}", KNOWN, "");
    changes(merge, "[1]", KNOWN, ""); /* no patch, which a server may have taken all the same */
    changes(op_of(KL_PATCH, KL_PATCH_STRATEGIC), "{'data':{'$patch':'merge','ours':'2'}}", KNOWN,
        "data.ours: \"1\" -> \"2\"");
}

static void a_json_patch_changed_the_values_at_its_paths(void **state)
{
    (void)state;
    kl_op op = op_of(KL_PATCH, KL_PATCH_JSON);
    changes(op,
        "[{'op':'test','path':'/data/theirs','value':'1'},{'op':'replace','path':'/data/ours','value':'2'}]",
        KNOWN, "data.ours: \"1\" -> \"2\"");
    changes(op,
        "[{'op':'move','from':'/metadata/labels/gone','path':'/data/more'},{'op':'add','path':'/list/"
        "-','value':2}]",
        KNOWN, "data.more: none -> \"x\", list[2]: none -> 2, metadata.labels.gone: \"x\" -> none");
    changes(op, "[{'op':'add','path':'/data/a~1b~0c','value':'1'}]", KNOWN, "");
    changes(op, "[{'op':'test','path':'/data/theirs','value':'1'}]", KNOWN, "");
    /* a path that no object has, as deep as a stack */
    enum { LEVELS = 1000000 };
    kl_buf patch = KL_BUF_INIT;
    kl_buf_puts(&patch, "[{'op':'add','value':1,'path':'");
    for (int n = 0; n < LEVELS; n++)
        kl_buf_puts(&patch, "/a");
    kl_buf_puts(&patch, "'}]");
    changes(op, kl_buf_str(&patch), KNOWN, "");
    kl_buf_fini(&patch);
}

static void an_apply_also_removed_fields_no_longer_named(void **state)
{
    (void)state;
    changes(op_of(KL_APPLY, KL_PATCH_MERGE), "{'kind':'ConfigMap','data':{'ours':'2'}}", KNOWN,
        "data.ours: \"1\" -> \"2\", metadata.labels.gone: \"x\" -> none");
}

static void an_update_is_known_by_its_version(void **state)
{
    (void)state;
    kl_op op = op_of(KL_UPDATE, KL_PATCH_MERGE);
    const char *all =
        "data.more: none -> \"x\", data.ours: \"1\" -> \"2\", data.theirs: \"1\" -> \"2\", list[2]: none "
        "-> 2, metadata.labels.gone: \"x\" -> none, metadata.labels.l: \"1\" -> \"2\"";
    changes(op, "{'metadata':{'resourceVersion':'5'}}", KNOWN, all);
    changes(op, "{'metadata':{}}", KNOWN, all);
    changes(op, "{'metadata':{'resourceVersion':'7'}}", KNOWN, NULL);
    changes(op_of(KL_PATCH, KL_PATCH_MERGE), "{'metadata':{'resourceVersion':'5'}}", KNOWN, all);
}

static void a_new_object_is_ours_and_a_deletion_leaves_a_mark(void **state)
{
    (void)state;
    changes(op_of(KL_CREATE, KL_PATCH_MERGE), ANSWER, NULL,
        "data: none -> {\"ours\":\"2\",\"theirs\":\"2\",\"more\":\"x\"}, list: none -> [1,2], "
        "metadata.labels: "
        "none -> {\"l\":\"2\"}");
    changes(op_of(KL_DELETE, KL_PATCH_MERGE), NULL, KNOWN, "");
}

KL_TESTS(cmocka_unit_test(a_patch_changed_the_fields_in_its_body),
    cmocka_unit_test(a_json_patch_changed_the_values_at_its_paths),
    cmocka_unit_test(an_apply_also_removed_fields_no_longer_named),
    cmocka_unit_test(an_update_is_known_by_its_version),
    cmocka_unit_test(a_new_object_is_ours_and_a_deletion_leaves_a_mark))

/* not in tsan: it starts no thread */
