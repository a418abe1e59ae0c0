/* changed.c - takes from the answer the fields that a request names.
 *
 *   merge, strategic, apply   the fields of the body; an apply also removes fields that it no longer names
 *   JSON patch                the fields at its paths
 *   delete                    the mark that the object is being deleted
 *   update                    all, if it was made from the version that we knew or from none; else unknown
 *
 * A list in a body counts as one field. */
#include "observe/changed.h"

#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "value/patch.h"

static bool both_objects(const kl_value *a, const kl_value *b)
{
    return kl_value_type(a) == KL_OBJECT && kl_value_type(b) == KL_OBJECT;
}

/* The state of one field after the write; `named`: its value in the request. A new reference; NULL: it is
 * gone. */
static const kl_value *field(const kl_value *was, const kl_value *is, const kl_value *named, bool removes);

/* v with the field's state after the write under `key`. Takes v. */
static const kl_value *with_field(
    const kl_value *v, const char *key, const kl_value *is, const kl_value *named, bool removes)
{
    const kl_value *next = field(kl_value_get(v, key), is, named, removes),
                   *out = kl_value_with(v, key, next);
    kl_value_unref(next);
    kl_value_unref(v);
    return out;
}

static const kl_value *fields(const kl_value *was, const kl_value *is, const kl_value *named, bool removes)
{
    const kl_value *out = kl_value_ref(was);
    const char *key;
    for (size_t i = 0; i < kl_value_len(named); i++) {
        const kl_value *inner = kl_value_member(named, i, &key, NULL);
        out = with_field(out, key, kl_value_get(is, key), inner, removes);
    }
    for (size_t i = 0; removes && i < kl_value_len(was); i++) {
        (void)kl_value_member(was, i, &key, NULL);
        if (!kl_value_get(named, key))
            out = with_field(out, key, kl_value_get(is, key), NULL, true);
    }
    return out;
}

static const kl_value *field(const kl_value *was, const kl_value *is, const kl_value *named, bool removes)
{
    if (both_objects(was, is) && (!named || kl_value_type(named) == KL_OBJECT))
        return fields(was, is, named, removes);
    return kl_value_ref(named || !is ? is : was);
}

/* --- the paths of a JSON patch ------------------------------------------------------------ */

/* `named` with the place that the steps lead to. Takes `named`. */
static const kl_value *with_place(const kl_value *named, char *const *steps, size_t n)
{
    if (!n || (named && kl_value_type(named) != KL_OBJECT)) {
        kl_value_unref(named);
        return kl_value_of_bool(true);
    }
    const kl_value *inner = with_place(kl_value_ref(kl_value_get(named, *steps)), steps + 1, n - 1),
                   *out = kl_value_with(named, *steps, inner);
    kl_value_unref(inner);
    kl_value_unref(named);
    return out;
}

static const kl_value *with_path(const kl_value *named, const char *path)
{
    kl_json_pointer p;
    if (!kl_json_pointer_parse(path, &p)) /* servers refuse such a patch */
        return named;
    named = with_place(named, p.steps, p.len);
    kl_json_pointer_fini(&p);
    return named;
}

static const kl_value *places(const kl_value *patch)
{
    const kl_value *named = NULL;
    for (size_t i = 0; i < kl_value_len(patch); i++) {
        const kl_value *step = kl_value_item(patch, i);
        const char *verb = kl_value_str_at(step, "op", NULL);
        if (!verb || !strcmp(verb, "test"))
            continue;
        named = with_path(named, kl_value_str_at(step, "path", NULL));
        if (!strcmp(verb, "move"))
            named = with_path(named, kl_value_str_at(step, "from", NULL));
    }
    return named;
}

/* --- requests ----------------------------------------------------------------------------- */

static const kl_value *deleted(const kl_value *before, const kl_value *answer)
{
    static const char *const marks[] = {"deletionTimestamp", "deletionGracePeriodSeconds", NULL};
    const kl_value *out = kl_value_ref(before);
    for (size_t i = 0; marks[i]; i++) {
        const kl_value *mark = kl_value_at(answer, "metadata", marks[i], NULL),
                       *next = kl_value_with_at(out, mark, "metadata", marks[i], NULL);
        kl_value_unref(out);
        out = next;
    }
    return out;
}

const kl_value *kl_changed(const kl_op *op, const kl_value *before, const kl_value *answer)
{
    const kl_value *named = NULL, *out;
    const char *from = kl_object_rv(op->body), *known = kl_object_rv(before);
    if (!before || !op->body || op->verb == KL_CREATE)
        return op->verb == KL_DELETE && before ? deleted(before, answer) : kl_value_ref(answer);
    if (op->verb == KL_DELETE)
        return deleted(before, answer);
    if (from && known && !strcmp(from, known))
        return kl_value_ref(answer); /* the server compared the versions: nobody wrote in between */
    if (op->verb == KL_UPDATE)
        return from ? NULL : kl_value_ref(answer);
    bool json = op->verb == KL_PATCH && op->patch_type == KL_PATCH_JSON;
    named = json ? places(op->body) : kl_value_ref(op->body);
    out = kl_value_type(named) == KL_OBJECT ? fields(before, answer, named, op->verb == KL_APPLY)
                                            : kl_value_ref(before);
    kl_value_unref(named);
    return out;
}
