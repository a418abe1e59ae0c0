/* table_label_selector.c - label selectors: the text form, metav1.LabelSelector, sets of labels. */
#include <string.h>
#include "base/mem.h"
#include "model/selector.h"
#include "oracle.h"

static kl_status read_text(const oracle_case *c, kl_selector **out, kl_err *err)
{
    const char *s;
    kl_status st = oracle_str(c->in, "selector", &s, err);

    return st ? st : kl_selector_parsen(s, kl_value_len(kl_value_get(c->in, "selector")), out, err);
}

static kl_status read_struct(const oracle_case *c, kl_selector **out, kl_err *err)
{
    return kl_selector_from_struct(kl_value_get(c->in, "labelSelector"), out, err);
}

static void build_parsed(const kl_selector *s, kl_builder *b)
{
    size_t i;

    kl_build_key(b, "parsed");
    kl_build_object(b);
    oracle_build_bool(b, "selectable", kl_selector_selectable(s));
    kl_build_key(b, "requirements");
    kl_build_array(b);
    for (i = 0; i < kl_selector_len(s); i++) {
        const char *const *values;
        kl_selector_op op;

        kl_build_object(b);
        kl_build_kstr(b, "key", kl_selector_requirement(s, i, &op, &values));
        kl_build_kstr(b, "op", kl_selector_op_text(op));
        kl_build_key(b, "values");
        kl_build_array(b);
        for (; *values; values++)
            kl_build_str(b, *values);
        kl_build_end(b);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_build_end(b);
}

static void describe(const kl_selector *s, kl_builder *b)
{
    char *text = kl_selector_text(s);

    kl_build_kstr(b, "string", text);
    oracle_build_bool(b, "empty", kl_selector_empty(s));
    kl_free(text);
}

static kl_status parse(const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl_selector *s;
    kl_status st = read_text(c, &s, err);

    if (st)
        return st;
    describe(s, b);
    build_parsed(s, b);
    kl_selector_free(s);
    return KL_OK;
}

static kl_status of_struct(const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl_selector *s;
    char *text;
    kl_status st = read_struct(c, &s, err);

    if (st)
        return st;
    describe(s, b);
    build_parsed(s, b);
    text = kl_selector_text(s);
    kl_build_kstr(b, "format", *text ? text : "<none>");
    kl_free(text);
    kl_selector_free(s);
    return KL_OK;
}

static kl_status match(const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl_selector *s;
    kl_status st = !strcmp(c->op, "match") ? read_text(c, &s, err) : read_struct(c, &s, err);

    if (st)
        return st;
    oracle_build_bool(b, "match", kl_selector_matches(s, kl_value_get(c->in, "labels")));
    kl_selector_free(s);
    return KL_OK;
}

static kl_status from_set(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *labels = kl_value_get(c->in, "labels");
    kl_selector *s;
    char *text;
    kl_status st = kl_selector_from_map(labels, &s, err);

    if (st)
        return st;
    describe(s, b);
    text = kl_labels_text(labels);
    kl_build_kstr(b, "setString", text);
    kl_free(text);
    kl_selector_free(s);
    return KL_OK;
}

static kl_status parse_to_struct(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *v;
    kl_selector *s;
    kl_status st = read_text(c, &s, err);

    if (st)
        return st;
    st = kl_selector_to_struct(s, &v, err);
    if (!st) {
        kl_build_kvalue(b, "labelSelector", v);
        kl_value_unref(v);
    }
    kl_selector_free(s);
    return st;
}

static kl_status convert_to_map(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const kl_value *labels;
    const char *s;
    kl_status st = oracle_str(c->in, "selector", &s, err);

    if (!st)
        st = kl_selector_text_to_map(s, &labels, err);
    if (st)
        return st;
    kl_build_kvalue(b, "labels", labels);
    kl_value_unref(labels);
    return KL_OK;
}

static const oracle_op ops[] = {
    {"parse", parse, NULL},
    {"match", match, NULL},
    {"struct", of_struct, NULL},
    {"struct_match", match, NULL},
    {"from_set", from_set, NULL},
    {"parse_to_struct", parse_to_struct, NULL},
    {"convert_to_map", convert_to_map, NULL},
    {0},
};
ORACLE_TABLE("label_selector", ops)
