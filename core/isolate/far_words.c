/* far_words.c - errors and requests as values, and back. */
#include <stddef.h>
#include <string.h>

#include "base/mem.h"
#include "isolate/far.h"

/* --- errors ------------------------------------------------------------------------------- */

const kl_value *kl_far_error(kl_status st, const kl_err *err)
{
    if (!st)
        return NULL;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "status", st);
    if (err) {
        kl_build_kint(b, "code", err->http_code);
        kl_build_kint(b, "retry", err->retry_after_ns);
        kl_build_kstr(b, "reason", err->reason);
        kl_build_kstr(b, "message", err->message);
        kl_build_kstr(b, "details", err->details);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

kl_status kl_far_error_read(const kl_value *v, kl_err *err)
{
    if (!v)
        return KL_OK;
    int64_t st = kl_value_int_at(v, KL_EINTERNAL, "status", NULL), code = kl_value_int_at(v, 0, "code", NULL),
            retry = kl_value_int_at(v, 0, "retry", NULL);
    if (st <= KL_OK || st > KL_EINTERNAL)
        st = KL_EINTERNAL;
    const char *message = kl_value_str_at(v, "message", NULL);
    (void)!kl_fail(err, (kl_status)st, "%s", message ? message : "");
    if (err) {
        err->http_code = code > 0 && code < 1000 ? (int)code : 0;
        err->retry_after_ns = retry > 0 ? retry : 0;
        err->reason = kl_strdup(kl_value_str_at(v, "reason", NULL));
        err->details = kl_strdup(kl_value_str_at(v, "details", NULL));
    }
    return (kl_status)st;
}

/* --- requests ----------------------------------------------------------------------------- */

typedef struct field {
    const char *name;
    size_t at;
} field;

#define FIELD(f)                                                                                             \
    {                                                                                                        \
#f, offsetof(kl_op, f)                                                                               \
    }
static const field texts[] = {FIELD(kind), FIELD(ns), FIELD(default_ns), FIELD(name), FIELD(subresource),
    FIELD(field_manager), FIELD(field_validation), FIELD(propagation), FIELD(uid), FIELD(precondition_rv),
    FIELD(labels), FIELD(fields), FIELD(continue_token), FIELD(rv), FIELD(rv_match), FIELD(include)};
static const field numbers[] = {FIELD(limit), FIELD(grace_seconds), FIELD(timeout_seconds), FIELD(timeout)};
static const field flags[] = {FIELD(force), FIELD(dry_run), FIELD(always), FIELD(unread), FIELD(check),
    FIELD(bookmarks), FIELD(initial_events)};
#define EACH(i, list) for (size_t i = 0; i < sizeof list / sizeof *list; i++)

const kl_value *kl_far_op(const kl_op *op)
{
    const char *p = (const char *)op;
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kint(b, "verb", op->verb);
    kl_build_kint(b, "patch", op->patch_type);
    kl_build_kint(b, "form", op->form);
    EACH(i, texts)
    kl_build_kstr(b, texts[i].name, *(const char *const *)(const void *)(p + texts[i].at));
    EACH(i, numbers)
    {
        int64_t n = *(const int64_t *)(const void *)(p + numbers[i].at);
        if (n)
            kl_build_kint(b, numbers[i].name, n);
    }
    EACH(i, flags)
    if (*(const bool *)(p + flags[i].at))
        kl_build_kint(b, flags[i].name, 1);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* Reads a number of an enumeration. False: it is negative or beyond `last`. */
static bool read_enum(const kl_value *v, const char *name, int64_t last, int64_t *out)
{
    *out = kl_value_int_at(v, -1, name, NULL);
    return *out >= 0 && *out <= last;
}

bool kl_far_op_read(const kl_value *v, kl_op *op)
{
    char *p = (char *)op;
    int64_t verb, patch, form;
    kl_op_init(op, KL_GET, NULL);
    if (!read_enum(v, "verb", KL_HTTP, &verb) || verb == KL_WATCH
        || !read_enum(v, "patch", KL_PATCH_STRATEGIC, &patch) || !read_enum(v, "form", KL_AS_TABLE, &form))
        return false;
    op->verb = (kl_verb)verb;
    op->patch_type = (kl_patch_type)patch;
    op->form = (kl_form)form;
    EACH(i, texts)
    *(const char **)(void *)(p + texts[i].at) = kl_value_str_at(v, texts[i].name, NULL);
    EACH(i, numbers)
    *(int64_t *)(void *)(p + numbers[i].at) = kl_value_int_at(v, 0, numbers[i].name, NULL);
    EACH(i, flags)
    *(bool *)(p + flags[i].at) = kl_value_int_at(v, 0, flags[i].name, NULL) != 0;
    return op->kind && op->timeout >= 0;
}
