/* table_field_selector.c - field selectors. */
#include "base/mem.h"
#include "model/selector.h"
#include "oracle.h"

static kl_status read_selector(const oracle_case *c, kl_field_selector **out, kl_err *err)
{
    const char *s;
    kl_status st = oracle_str(c->in, "selector", &s, err);

    return st ? st : kl_field_selector_parse(s, out, err);
}

static kl_status parse(const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl_field_selector *s;
    kl_status st = read_selector(c, &s, err);
    char *text;
    size_t i;

    if (st)
        return st;
    text = kl_field_selector_text(s);
    kl_build_kstr(b, "string", text);
    kl_free(text);
    oracle_build_bool(b, "empty", kl_field_selector_len(s) == 0);
    kl_build_key(b, "requirements");
    kl_build_array(b);
    for (i = 0; i < kl_field_selector_len(s); i++) {
        const char *value;
        bool negated;

        kl_build_object(b);
        kl_build_kstr(b, "field", kl_field_selector_term(s, i, &negated, &value));
        kl_build_kstr(b, "op", negated ? "!=" : "=");
        kl_build_kstr(b, "value", value);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_field_selector_free(s);
    return KL_OK;
}

static const char *lookup(void *fields, const char *field)
{
    const char *s = kl_value_str(kl_value_get(fields, field));

    return s ? s : "";
}

static kl_status match(const oracle_case *c, kl_builder *b, kl_err *err)
{
    kl_field_selector *s;
    kl_status st = read_selector(c, &s, err);

    if (st)
        return st;
    oracle_build_bool(
        b, "match", kl_field_selector_matches(s, lookup, (void *)kl_value_get(c->in, "fields")));
    kl_field_selector_free(s);
    return KL_OK;
}

static kl_status requires_exact_match(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *field, *value;
    kl_field_selector *s;
    kl_status st = oracle_str(c->in, "field", &field, err);

    if (!st)
        st = read_selector(c, &s, err);
    if (st)
        return st;
    value = kl_field_selector_exact(s, field);
    oracle_build_bool(b, "found", value != NULL);
    kl_build_kstr(b, "value", value ? value : "");
    kl_field_selector_free(s);
    return KL_OK;
}

static kl_status escape(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *s;
    char *escaped;
    kl_status st = oracle_str(c->in, "value", &s, err);

    if (st)
        return st;
    escaped = kl_field_value_escape(s);
    kl_build_kstr(b, "escaped", escaped);
    kl_free(escaped);
    return KL_OK;
}

static kl_status unescape(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *s;
    char *value;
    kl_status st = oracle_str(c->in, "escaped", &s, err);

    if (!st)
        st = kl_field_value_unescape(s, &value, err);
    if (st)
        return st;
    kl_build_kstr(b, "value", value);
    kl_free(value);
    return KL_OK;
}

static void build_term(kl_builder *b, const char *key, const char *field, const char *value, bool negated)
{
    kl_field_selector *s = kl_field_selector_of(field, value, negated);
    char *text = kl_field_selector_text(s);

    kl_build_kstr(b, key, text);
    kl_free(text);
    kl_field_selector_free(s);
}

static kl_status one_term(const oracle_case *c, kl_builder *b, kl_err *err)
{
    const char *field, *value;
    kl_status st = oracle_str(c->in, "field", &field, err);

    if (!st)
        st = oracle_str(c->in, "value", &value, err);
    if (st)
        return st;
    build_term(b, "eq", field, value, false);
    build_term(b, "ne", field, value, true);
    return KL_OK;
}

static const oracle_op ops[] = {
    {"parse", parse, NULL},
    {"match", match, NULL},
    {"requires_exact_match", requires_exact_match, NULL},
    {"escape", escape, NULL},
    {"unescape", unescape, NULL},
    {"one_term", one_term, NULL},
    {0},
};
ORACLE_TABLE("field_selector", ops)
