/* rules_check.c - checks an object against the rules of its schema, place by place, within one budget. */
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "rules/rules_impl.h"

/* The old value of a place: `known` when its counterpart is known; otherwise that of the nearest parent with
 * one. */
typedef struct past {
    bool known, above;
    const kl_value *now, *old, *above_now, *above_old;
} past;

typedef struct checker {
    kl_cel_complain *complain;
    void *arg;
    kl_buf path;
    int64_t budget; /* negative: spent */
    size_t said;
} checker;

static void walk(checker *c, const kl__cplace *p, const kl_value *o, const kl_value *old, past was);

static bool unchanged(const past *was)
{
    if (was->known)
        return kl_value_equal(was->now, was->old);
    return was->above && kl_value_equal(was->above_now, was->above_old);
}

static past under(const past *was, const kl_value *now, const kl_value *old)
{
    if (!was->known)
        return *was;
    return (past){.known = old != NULL,
        .now = now,
        .old = old,
        .above = true,
        .above_now = was->now,
        .above_old = was->old};
}

/* ---------------------------------------------------------------- complaints */

static void KL_PRINTF(5, 6)
    say(checker *c, const kl__crule *r, bool warns, const char *reason, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap);
    va_end(ap);
    const char *path = c->path.len ? kl_buf_str(&c->path) : "<nil>";
    char *field = r && r->field
        ? kl_sprintf("%s%s%s", c->path.len ? path : "", c->path.len ? "." : "", r->field)
        : kl_strdup(path);
    c->complain(c->arg, warns, reason, field, text);
    c->said++;
    kl_free(field);
    kl_free(text);
}

static const char *type_word(const kl__cplace *p)
{
    const char *type = kl_value_str_at(p->schema, "type", NULL);
    return type ? type : "";
}

static void invalid(checker *c, const kl__cplace *p, const char *message)
{
    say(c, NULL, false, "FieldValueInvalid", "Invalid value: \"%s\": %s", type_word(p), message);
}

static void broken(checker *c, const kl__cplace *p, const kl__crule *r, bool warns, const char *message)
{
    const char *reason = kl__crule_text(r, "reason");
    if (!strcmp(reason, "FieldValueForbidden"))
        say(c, r, warns, reason, "Forbidden: %s", message);
    else if (!strcmp(reason, "FieldValueRequired"))
        say(c, r, warns, reason, "Required value: %s", message);
    else if (!strcmp(reason, "FieldValueDuplicate"))
        say(c, r, warns, reason, "Duplicate value: \"%s\"", type_word(p));
    else
        say(c, r, warns, "FieldValueInvalid", "Invalid value: \"%s\": %s", type_word(p), message);
}

static char *name_of(const kl__crule *r)
{
    const char *message = kl__crule_text(r, "message");
    return kl_cel_trimmed(*message ? message : kl__crule_text(r, "rule"));
}

/* ---------------------------------------------------------------- one rule */

/* The result of messageExpression. NULL: there is none, and the fixed message is used. */
static char *message_of(checker *c, const kl__cplace *p, const kl__crule *r, kl_cel_run *run, bool warns)
{
    const kl_value *v = NULL;
    char *text = NULL;
    kl_status st = r->message ? kl_cel_eval(r->message, run, &v, NULL) : KL_EINVAL;
    const char *source = kl__crule_text(r, "messageExpression");
    if (r->message && (int64_t)run->cost > c->budget) {
        say(c, r, warns, "FieldValueInvalid",
            "Invalid value: \"%s\": messageExpression evaluation failed due to running out of cost budget, "
            "no "
            "further validation rules will be run",
            type_word(p));
        c->budget = -1;
    } else if (r->message && st == KL_ETOOBIG) {
        say(c, r, warns, "FieldValueInvalid",
            "Invalid value: \"%s\": no further validation rules will be run due to call cost exceeds limit "
            "for "
            "messageExpression: \"%s\"",
            type_word(p), source);
        c->budget = -1;
    } else if (r->message)
        c->budget -= (int64_t)run->cost;
    if (!st && kl_value_str(v)) {
        text = kl_cel_trimmed(kl_value_str(v));
        if (!*text || strlen(text) > KL_CEL_MESSAGE_MAX || strchr(text, '\n')) {
            kl_free(text);
            text = NULL;
        }
    }
    kl_value_unref(v);
    return text;
}

static void breaks(checker *c, const kl__cplace *p, const kl__crule *r, kl_cel_run *run, const past *was)
{
    bool warns = !r->old && unchanged(was);
    char *text = message_of(c, p, r, run, warns), *name = name_of(r);
    if (c->budget >= 0 && !text)
        text = *kl__crule_text(r, "message") ? kl_strdup(name) : kl_sprintf("failed rule: %s", name);
    if (c->budget >= 0)
        broken(c, p, r, warns, text);
    kl_free(name);
    kl_free(text);
}

/* Complains about a rule that could not be evaluated. */
static void fails(checker *c, const kl__cplace *p, const kl__crule *r, kl_status st, const char *why)
{
    char *name = name_of(r), *text;
    if (st == KL_ETOOBIG) {
        text = kl_sprintf(
            "'%s': no further validation rules will be run due to call cost exceeds limit for rule: %s", why,
            name);
        c->budget = -1;
    } else if (!strncmp(why, "no such overload", 16))
        text = kl_sprintf("'%s': call arguments did not match a supported operator, function or macro "
                          "signature for rule: %s",
            why, name);
    else
        text = kl_sprintf("%s evaluating rule: %s", why, name);
    invalid(c, p, text);
    kl_free(text);
    kl_free(name);
}

static void check_rule(checker *c, const kl__cplace *p, const kl__crule *r, const kl_value *o,
    const kl_value *old, const past *was)
{
    if (r->failure) {
        char *text = kl_sprintf("rule compile error: %s", r->failure);
        invalid(c, p, text);
        kl_free(text);
        return;
    }
    if (!r->rule || (r->old && !old && !r->optional))
        return;
    kl_cel_var vars[2] = {{.is = KL_CEL_VALUE, .json = o},
        {.is = r->optional ? (old ? KL_CEL_SOME : KL_CEL_NONE)
                : old      ? KL_CEL_VALUE
                           : KL_CEL_ABSENT,
            .json = old}};
    kl_cel_run run = {.vars = vars, .limit = KL_CEL_CALL_COST};
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    kl_status st = kl_cel_eval(r->rule, &run, &v, &err);
    if ((int64_t)run.cost > c->budget) {
        invalid(c, p,
            "validation failed due to running out of cost budget, no further validation rules will be run");
        c->budget = -1;
    } else {
        c->budget -= (int64_t)run.cost;
        if (st)
            fails(c, p, r, st, kl_err_message(&err));
        else if (!kl_value_bool(v, false))
            breaks(c, p, r, &run, was);
    }
    kl_value_unref(v);
    kl_err_fini(&err);
}

/* ---------------------------------------------------------------- all of them */

/* The old item with the same keys as `item`; NULL: there is none, or the list has no keys. */
static const kl_value *counterpart(const kl__cplace *p, const kl_value *old, const kl_value *item)
{
    const kl_value *keys = kl_value_get(p->schema, "x-kubernetes-list-map-keys");
    const char *kind = kl_value_str_at(p->schema, "x-kubernetes-list-type", NULL);
    if (!kind || strcmp(kind, "map") || kl_value_type(old) != KL_ARRAY || kl_value_type(item) != KL_OBJECT)
        return NULL;
    for (size_t i = 0; i < kl_value_len(old); i++) {
        const kl_value *x = kl_value_item(old, i);
        bool same = kl_value_type(x) == KL_OBJECT;
        for (size_t k = 0; k < kl_value_len(keys) && same; k++) {
            const char *key = kl_value_str(kl_value_item(keys, k));
            same = key && kl_value_equal(kl_value_get(x, key), kl_value_get(item, key));
        }
        if (same)
            return x;
    }
    return NULL;
}

static void cut(checker *c, size_t mark)
{
    c->path.len = mark;
    if (c->path.data)
        c->path.data[mark] = 0;
}

static const kl__cplace *member_place(const kl__cplace *p, const char *key)
{
    for (size_t i = 0; i < p->nmembers; i++)
        if (!strcmp(p->members[i].key, key))
            return p->members[i].place;
    return NULL;
}

static void walk_object(
    checker *c, const kl__cplace *p, const kl_value *o, const kl_value *old, const past *was)
{
    for (size_t i = 0; i < kl_value_len(o) && c->budget >= 0; i++) {
        const char *key;
        size_t n, mark = c->path.len;
        const kl_value *x = kl_value_member(o, i, &key, &n),
                       *before = kl_value_type(old) == KL_OBJECT ? kl_value_getn(old, key, n) : NULL;
        const kl__cplace *sub = p->values ? p->values : member_place(p, key);
        if (!sub)
            continue;
        if (p->values)
            kl_buf_printf(&c->path, "[%s]", key);
        else
            kl_buf_printf(&c->path, "%s%s", mark ? "." : "", key);
        const kl_value *paired = kl_value_type(was->old) == KL_OBJECT ? kl_value_getn(was->old, key, n)
                                                                      : NULL;
        walk(c, sub, x, before, under(was, x, paired));
        cut(c, mark);
    }
}

static void walk_list(
    checker *c, const kl__cplace *p, const kl_value *o, const kl_value *old, const past *was)
{
    for (size_t i = 0; i < kl_value_len(o) && c->budget >= 0; i++) {
        size_t mark = c->path.len;
        const kl_value *x = kl_value_item(o, i);
        kl_buf_printf(&c->path, "[%zu]", i);
        walk(c, p->items, x, counterpart(p, old, x), under(was, x, counterpart(p, was->old, x)));
        cut(c, mark);
    }
}

static void walk(checker *c, const kl__cplace *p, const kl_value *o, const kl_value *old, past was)
{
    if (kl_value_type(o) == KL_NULL)
        return;
    if (kl_value_type(old) == KL_NULL)
        old = NULL;
    for (size_t i = 0; i < p->nrules && c->budget >= 0; i++) {
        if (!c->budget) {
            invalid(c, p,
                "validation failed due to running out of cost budget, no further validation rules will be "
                "run");
            c->budget = -1;
            return;
        }
        check_rule(c, p, &p->rules[i], o, old, &was);
    }
    if (kl_value_type(o) == KL_OBJECT && (p->values || p->nmembers))
        walk_object(c, p, o, old, &was);
    else if (kl_value_type(o) == KL_ARRAY && p->items)
        walk_list(c, p, o, old, &was);
}

void kl_cel_rules_check(
    const kl_cel_rules *r, const kl_value *object, const kl_value *old, kl_cel_complain *complain, void *arg)
{
    checker c = {.complain = complain, .arg = arg, .budget = KL_CEL_OBJECT_COST};
    past was = {.known = old != NULL, .now = object, .old = old};
    walk(&c, r->root, object, old, was);
    kl_buf_fini(&c.path);
}

/* Checks the default of a place as an update to itself and, for the sake of optional old values, as a new
 * one; then the defaults below. */
static void walk_defaults(checker *c, const kl__cplace *p)
{
    const kl_value *it = kl_value_get(p->schema, "default");
    size_t mark = c->path.len, said = c->said;
    if (it) {
        kl_buf_puts(&c->path, ".default");
        walk(c, p, it, it, (past){0});
        if (c->said == said)
            walk(c, p, it, NULL, (past){0});
        cut(c, mark);
    }
    if (p->items) {
        kl_buf_puts(&c->path, ".items");
        walk_defaults(c, p->items);
        cut(c, mark);
    }
    for (size_t i = 0; i < p->nmembers; i++) {
        kl_buf_printf(&c->path, ".properties[%s]", p->members[i].key);
        walk_defaults(c, p->members[i].place);
        cut(c, mark);
    }
}

void kl_cel_rules_check_defaults(
    const kl_cel_rules *r, const char *path, kl_cel_complain *complain, void *arg)
{
    checker c = {.complain = complain, .arg = arg, .budget = KL_CEL_OBJECT_COST};
    kl_buf_puts(&c.path, path);
    walk_defaults(&c, r->root);
    kl_buf_fini(&c.path);
}
