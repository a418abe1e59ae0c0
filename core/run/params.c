/* params.c - see params.h. A plain default stands for the rule {type: what it is}. */
#include "run/params.h"

#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/suggest.h"
#include "model/time.h"
#include "value/patch.h"
#include "yaml/yaml.h"

/* --- types -------------------------------------------------------------------------------- */

static const char *family(const kl_value *v)
{
    switch (kl_value_type(v)) {
    case KL_INT:
    case KL_UINT:
    case KL_DOUBLE: return "number";
    case KL_ARRAY: return "list";
    default: return kl_value_type_name(v);
    }
}

const kl_value *kl_params_of(const kl_controller_spec *s) { return s->given ? s->given : s->params; }

static const kl_value *rule_of(const kl_controller_spec *s, const char *name)
{
    return kl_value_get(s->param_rules, name);
}

const char *kl_param_type(const kl_controller_spec *s, const char *name)
{
    const kl_value *rule = rule_of(s, name), *plain = rule ? NULL : kl_value_get(s->params, name);
    /* Lua's {} may become a list or an object */
    bool table = (kl_value_type(plain) == KL_OBJECT || kl_value_type(plain) == KL_ARRAY)
        && !kl_value_len(plain);
    return rule ? kl_value_str_at(rule, "type", NULL) : table ? "table" : plain ? family(plain) : NULL;
}

static bool is_type(const char *type, const kl_value *v)
{
    int64_t whole, ns;
    if (!strcmp(type, "integer"))
        return kl_value_type(v) != KL_UINT && kl_value_int(v, &whole);
    if (!strcmp(type, "duration"))
        return kl_value_type(v) == KL_STRING && !kl_duration_parse(kl_value_str(v), &ns, NULL);
    if (!strcmp(type, "table"))
        return kl_value_type(v) == KL_ARRAY || kl_value_type(v) == KL_OBJECT;
    if (!strcmp(type, "secret"))
        type = "string";
    return !strcmp(type, family(v));
}

static const char *example_of(const char *type)
{
    return !strcmp(type, "integer") ? "a whole number"
        : !strcmp(type, "boolean")  ? "true or false"
        : !strcmp(type, "duration") ? "a duration such as \"30s\""
        : !strcmp(type, "list")     ? "a list"
        : !strcmp(type, "object")   ? "a table of names"
        : !strcmp(type, "table")    ? "a list or a table of names"
        : !strcmp(type, "number")   ? "a number"
                                    : "a string";
}

/* Whether a param is a secret, or its value came from a Secret. */
static bool is_hidden(const kl_controller_spec *s, const char *name)
{
    return kl_param_is_secret(s, name) || !kl_value_bool(kl_value_get(s->param_origins, name), true);
}

static kl_status fail_value(
    kl_err *err, const kl_controller_spec *s, const char *name, const kl_value *v, const char *must)
{
    char *got = is_hidden(s, name) ? kl_sprintf("a %s", family(v)) : kl_value_to_json(v);
    char *cut = kl_log_cut(got);
    (void)kl_fail(err, KL_EINVAL, "param %s of %s must be %s, got %s", name, s->name, must, cut ? cut : got);
    kl_free(cut);
    kl_free(got);
    return KL_EINVAL;
}

static kl_status check_bounds(
    const kl_controller_spec *s, const char *name, const kl_value *rule, const kl_value *v, kl_err *err)
{
    const kl_value *min = kl_value_get(rule, "min"), *max = kl_value_get(rule, "max");
    double x = kl_value_double(v, 0);
    bool low = min && x < kl_value_double(min, 0), high = max && x > kl_value_double(max, 0);
    if (!low && !high && !isnan(x))
        return KL_OK;
    char *bound = kl_value_to_json(low ? min : max),
         *must = kl_sprintf("at %s %s", low ? "least" : "most", bound);
    kl_status st = fail_value(err, s, name, v, must);
    kl_free(bound);
    kl_free(must);
    return st;
}

static kl_status check_enum(
    const kl_controller_spec *s, const char *name, const kl_value *rule, const kl_value *v, kl_err *err)
{
    const kl_value *of = kl_value_get(rule, "enum");
    size_t n = kl_value_len(of);
    kl_buf words = KL_BUF_INIT;
    bool among = !of;
    for (size_t i = 0; i < n; i++) {
        char *word = kl_value_to_json(kl_value_item(of, i));
        among = among || kl_value_equal(kl_value_item(of, i), v);
        kl_buf_printf(&words, "%s%s", !i ? "" : i + 1 < n ? ", " : " or ", word);
        kl_free(word);
    }
    kl_status st = among ? KL_OK : fail_value(err, s, name, v, kl_buf_str(&words));
    kl_buf_fini(&words);
    return st;
}

kl_status kl_param_check(const kl_controller_spec *s, const char *name, const kl_value *v, kl_err *err)
{
    const char *type = kl_param_type(s, name);
    const kl_value *rule = rule_of(s, name);
    if (!type)
        return kl_fail(err, KL_EINVAL, "param %s of %s has no type", name, s->name);
    if (!is_type(type, v))
        return fail_value(err, s, name, v, example_of(type));
    kl_status st = check_bounds(s, name, rule, v, err);
    return st ? st : check_enum(s, name, rule, v, err);
}

/* A text converted to the type, a new reference; an invalid one stays a text. */
static kl_status read_text(
    const char *type, const char *name, const char *text, const kl_value **out, kl_err *err)
{
    const kl_value *v = NULL;
    size_t n = strlen(text);
    if (!strcmp(type, "list") || !strcmp(type, "object") || !strcmp(type, "table"))
        return kl_yaml_decode(name, text, n, out, err);
    bool scalar = !strcmp(type, "integer") || !strcmp(type, "number") || !strcmp(type, "boolean");
    if (scalar && !kl_value_decode(text, n, &v, NULL) && !is_type(type, v)) {
        kl_value_unref(v);
        v = NULL;
    }
    *out = v ? v : kl_value_of_strn(text, n);
    return KL_OK;
}

/* --- many --------------------------------------------------------------------------------- */

typedef struct names {
    const char **v;
    size_t n;
} names;

static void add_keys(names *to, const kl_value *of)
{
    to->v = kl_realloc(to->v, (to->n + kl_value_len(of)) * sizeof *to->v);
    for (size_t i = 0; i < kl_value_len(of); i++)
        (void)kl_value_member(of, i, &to->v[to->n++], NULL);
}

static void add_params(names *to, const kl_controller_spec *s)
{
    add_keys(to, s->params);
    add_keys(to, s->param_rules);
}

static char *take_near(names *all, const char *name)
{
    const char *near = kl_suggest(name, all->v, all->n);
    kl_free(all->v);
    return near ? kl_sprintf(" (did you mean %s?)", near) : kl_strdup("");
}

static kl_status fail_unknown(const kl_controller_spec *s, const char *name, kl_err *err)
{
    names all = {0};
    add_params(&all, s);
    char *near = take_near(&all, name);
    (void)kl_fail(err, KL_EINVAL, "%s has no param %.200s%s", s->name, name, near);
    kl_free(near);
    return KL_EINVAL;
}

/* An empty table of Lua may be either: what the type asks for. A new reference. */
static const kl_value *as_type(const char *type, const kl_value *v)
{
    bool list = !strcmp(type, "list"), object = !strcmp(type, "object");
    bool other = (list && kl_value_type(v) == KL_OBJECT) || (object && kl_value_type(v) == KL_ARRAY);
    return !other || kl_value_len(v) ? kl_value_ref(v) : kl_value_empty(list ? KL_ARRAY : KL_OBJECT);
}

/* `all` with one more; takes `all`, gives a new one. */
static kl_status put(
    const kl_controller_spec *s, const char *name, const kl_value *v, const kl_value **all, kl_err *err)
{
    const kl_value *old = kl_value_get(*all, name);
    bool merge = kl_value_type(v) == KL_OBJECT && kl_value_type(old) == KL_OBJECT;
    const kl_value *fresh = merge ? kl_merge_patch_apply(old, v) : as_type(kl_param_type(s, name), v);
    kl_status st = kl_param_check(s, name, fresh, err);
    if (!st) {
        const kl_value *next = kl_value_with(*all, name, fresh);
        kl_value_unref(*all);
        *all = next;
    }
    kl_value_unref(fresh);
    return st;
}

bool kl_param_is_secret(const kl_controller_spec *s, const char *name)
{
    const char *type = kl_param_type(s, name);
    return type && !strcmp(type, "secret");
}

kl_status kl_params_over(const kl_controller_spec *s, const kl_value *have, const kl_value *wish,
    const kl_value **out, kl_err *err)
{
    kl_status st = KL_OK;
    const kl_value *all = kl_value_ref(have);
    for (size_t i = 0; i < kl_value_len(wish) && !st; i++) {
        const char *name;
        size_t length;
        const kl_value *v = kl_value_member(wish, i, &name, &length);
        if (strlen(name) < length)
            st = kl_fail(err, KL_EINVAL, "the name of a param of %s contains a NUL character", s->name);
        else if (!kl_param_type(s, name))
            st = fail_unknown(s, name, err);
        else if (kl_param_is_secret(s, name))
            st = kl_fail(
                err, KL_EINVAL, "param %s of %s is a secret; it is set at deployment", name, s->name);
        else
            st = put(s, name, v, &all, err);
    }
    if (st)
        kl_value_unref(all);
    else
        *out = all;
    return st;
}

static bool has_secrets(const kl_controller_spec *s)
{
    if (s->param_origins)
        return true;
    for (size_t i = 0; i < kl_value_len(s->param_rules); i++) {
        const char *name;
        (void)kl_value_member(s->param_rules, i, &name, NULL);
        if (kl_param_is_secret(s, name))
            return true;
    }
    return false;
}

/* The params for people. Those that are equal in `but` (may be NULL) are left out. `secret` stands for each
 * secret; NULL: secrets are left out, too. */
static const kl_value *shown_of(
    const kl_controller_spec *s, const kl_value *all, const kl_value *but, const char *secret)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(all); i++) {
        const char *name;
        const kl_value *v = kl_value_member(all, i, &name, NULL), *old = kl_value_get(but, name);
        if (secret ? is_hidden(s, name) : kl_param_is_secret(s, name))
            kl_build_kstr(b, name, secret);
        else if (!old || !kl_value_equal(v, old))
            kl_build_kvalue(b, name, v);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl_params_shown(const kl_controller_spec *s, const kl_value *all)
{
    return has_secrets(s) ? shown_of(s, all, NULL, "***") : kl_value_ref(all);
}

const kl_value *kl_params_plain(const kl_controller_spec *s, const kl_value *all)
{
    return has_secrets(s) ? shown_of(s, all, NULL, NULL) : kl_value_ref(all);
}

const kl_value *kl_params_given(const kl_controller_spec *s, const kl_value *all)
{
    return all == s->params ? NULL : shown_of(s, all, s->params, "***");
}

/* --- programs ----------------------------------------------------------------------------- */

static kl_controller_spec *spec_at(const kl_program *p, size_t i)
{
    return i < p->n_specs ? &p->specs[i] : &p->hooks[i - p->n_specs].as;
}

static size_t count_specs(const kl_program *p) { return p->n_specs + p->n_hooks; }

/* The param of s that `given` means: behind the controller's name and a dot, or as it is; NULL: none. */
static const char *meant(const kl_controller_spec *s, const char *given)
{
    size_t n = strlen(s->name);
    if (kl_param_type(s, given))
        return given;
    return !strncmp(given, s->name, n) && given[n] == '.' && kl_param_type(s, given + n + 1) ? given + n + 1
                                                                                             : NULL;
}

static void set_origin(kl_controller_spec *s, const char *name, bool shown)
{
    const kl_value *v = kl_value_of_bool(shown), *next = kl_value_with(s->param_origins, name, v);
    kl_value_unref(v);
    kl_value_unref(s->param_origins);
    s->param_origins = next;
}

static kl_status set_one(
    kl_controller_spec *s, const char *name, const kl_value *v, kl_params_form form, kl_err *err)
{
    const kl_value *read = NULL;
    kl_status st = KL_OK;
    if (!s->given)
        s->given = kl_value_ref(s->params);
    set_origin(s, name, form != KL_PARAMS_HIDDEN);
    if (form != KL_PARAMS_VALUES)
        st = read_text(kl_param_type(s, name), name, kl_value_str(v), &read, err);
    else
        read = kl_value_ref(v);
    if (!st)
        st = put(s, name, read, &s->given, err);
    kl_value_unref(read);
    return st;
}

kl_status kl_program_set_params(kl_program *p, const kl_value *given, kl_params_form form, kl_err *err)
{
    kl_status st = KL_OK;
    for (size_t i = 0; i < count_specs(p); i++)
        for (size_t k = 0; k < kl_value_len(given) && !st; k++) {
            kl_controller_spec *s = spec_at(p, i);
            const char *name;
            const kl_value *v = kl_value_member(given, k, &name, NULL);
            name = meant(s, name);
            if (name)
                st = set_one(s, name, v, form, err);
        }
    return st;
}

const kl_value *kl_params_as_given(const kl_controller_spec *s, const kl_value *all)
{
    const kl_value *out = kl_value_ref(all);
    for (size_t i = 0; i < kl_value_len(s->param_origins); i++) {
        const char *name;
        (void)kl_value_member(s->param_origins, i, &name, NULL);
        const kl_value *next = kl_value_with(out, name, kl_value_get(s->given, name));
        kl_value_unref(out);
        out = next;
    }
    return out;
}

static bool has_param(const kl_program *p, const char *name)
{
    for (size_t i = 0; i < count_specs(p); i++)
        if (meant(spec_at(p, i), name))
            return true;
    return false;
}

static bool known(kl_program *const *p, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (has_param(p[i], name))
            return true;
    return false;
}

const char *kl_programs_unknown_param(kl_program *const *p, size_t n, const kl_value *given, char **near)
{
    const char *name = NULL;
    size_t at = 0, len = kl_value_len(given);
    for (; at < len; at++) {
        (void)kl_value_member(given, at, &name, NULL);
        if (!known(p, n, name))
            break;
    }
    if (at == len)
        return NULL;
    names all = {0};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < count_specs(p[i]); k++)
            add_params(&all, spec_at(p[i], k));
    *near = take_near(&all, name);
    return name;
}

kl_status kl_program_params_there(const kl_program *p, kl_err *err)
{
    for (size_t i = 0; i < count_specs(p); i++) {
        const kl_controller_spec *s = spec_at(p, i);
        for (size_t k = 0; k < kl_value_len(s->param_rules); k++) {
            const char *name;
            const kl_value *rule = kl_value_member(s->param_rules, k, &name, NULL);
            if (kl_value_bool(kl_value_get(rule, "required"), false) && !kl_value_get(kl_params_of(s), name))
                return kl_fail(err, KL_EINVAL,
                    "%s needs the param %s (%s%s%s): give --param-env %s=VARIABLE or --params FILE", s->name,
                    name, kl_param_type(s, name), kl_value_get(rule, "doc") ? ": " : "",
                    kl_value_get(rule, "doc") ? kl_value_str_at(rule, "doc", NULL) : "", name);
        }
    }
    return KL_OK;
}

uint64_t kl_program_params_version(const kl_program *p)
{
    kl_buf all = KL_BUF_INIT;
    for (size_t i = 0; i < count_specs(p); i++) {
        (void)kl_value_encode(kl_params_of(spec_at(p, i)), &all);
        kl_buf_putc(&all, '\n');
    }
    uint64_t version = kl_quick_hash(kl_buf_str(&all), all.len);
    kl_buf_fini(&all);
    return version;
}
