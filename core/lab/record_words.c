/* record_words.c - calls, queries and results in the form of a recording. */
#include "lab/record.h"

#include "base/mem.h"
#include "client/web.h"

static const char *form_word(kl_form f)
{
    return f == KL_AS_METADATA ? "metadata" : f == KL_AS_TABLE ? "table" : NULL;
}

static const char *patch_word(const kl_op *op)
{
    if (op->verb != KL_PATCH)
        return NULL;
    return op->patch_type == KL_PATCH_JSON     ? "json"
        : op->patch_type == KL_PATCH_STRATEGIC ? "strategic"
                                               : "merge";
}

static void flag(kl_builder *b, const char *key, bool on)
{
    if (!on)
        return;
    kl_build_key(b, key);
    kl_build_bool(b, true);
}

const kl_value *kl_record_op(const kl_op *op)
{
    kl_builder *b = kl_builder_new();
    char *kind = op->kind || !op->resource
        ? NULL
        : kl_gvk_text(op->resource->group, op->resource->version, op->resource->kind);
    kl_build_object(b);
    kl_build_kstr(b, "verb", kl_verb_name(op->verb));
    kl_build_kstr(b, "kind", kind ? kind : op->kind);
    kl_build_kstr(b, "ns", op->ns ? op->ns : op->verb == KL_LIST ? NULL : op->default_ns);
    if (op->verb == KL_HTTP) {
        char *shown = kl_web_shown(op);
        kl_build_kstr(b, "name", shown);
        kl_build_kstr(b, "url", op->name);
        kl_free(shown);
    } else {
        kl_build_kstr(b, "name", op->name ? op->name : kl_value_str_at(op->body, "metadata", "name", NULL));
    }
    kl_build_kstr(b, "sub", op->subresource);
    kl_build_kstr(b, "patch", patch_word(op));
    kl_build_kvalue(b, "body", op->body);
    kl_build_kstr(b, "manager", kl_verb_is_write(op->verb) ? op->field_manager : NULL);
    flag(b, "writes", op->verb == KL_HTTP && !kl_web_reads(op));
    flag(b, "force", op->force);
    flag(b, "dryRun", op->dry_run);
    kl_build_kstr(b, "validation", op->field_validation);
    kl_build_kstr(b, "propagation", op->propagation);
    kl_build_kstr(b, "uid", op->uid);
    kl_build_kstr(b, "ifVersion", op->precondition_rv);
    if (op->grace_seconds >= 0)
        kl_build_kint(b, "grace", op->grace_seconds);
    kl_build_kstr(b, "labels", op->labels);
    kl_build_kstr(b, "fields", op->fields);
    if (op->limit)
        kl_build_kint(b, "limit", op->limit);
    kl_build_kstr(b, "continue", op->continue_token);
    kl_build_kstr(b, "version", op->rv);
    kl_build_kstr(b, "form", form_word(op->form));
    kl_build_end(b);
    kl_free(kind);
    return kl_builder_done(b);
}

static void part(kl_buf *out, const char *name, const char *text)
{
    if (text && *text)
        kl_buf_printf(out, "%s%s=%s", out->len ? ";" : "", name, text);
}

void kl_record_query(const kl_read_query *q, kl_buf *out)
{
    part(out, "ns", q->ns);
    part(out, "labels", q->labels);
    part(out, "fields", q->fields);
    part(out, "index", q->index);
    part(out, "value", q->value);
    for (size_t i = 0; i < q->n_terms; i++) {
        kl_buf_printf(out, ";%s %s", q->terms[i].index, kl_selector_op_text(q->terms[i].op));
        for (const char *const *v = q->terms[i].values; v && *v; v++)
            kl_buf_printf(out, " %s", *v);
    }
    if (q->limit)
        kl_buf_printf(out, ";limit=%zu", q->limit);
}
