/* validate.c - in the order and the words of pkg/apis/admissionregistration/validation. */
#include "policy/validate.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "check/forms.h"
#include "policy/rule.h"
#include "rules/admission.h"

#define SPEC KL_IN(NULL, "spec")
#define ANNOTATIONS_MAX 20
#define ANNOTATION_EXPRESSION_MAX (5 * 1024)

static bool blank(const char *s) { return !s[strspn(s, " \t\n\v\f\r")]; }

/* ------------------------------------------------------------------ rules */

/* Checks a resource of a rule against those before it. */
static void check_resource(
    kl__causes *c, const kl_value *list, size_t i, const kl_finder *before, const kl__place *in)
{
    const char *s = kl__item_text(list, i), *slash = strchr(s, '/');
    if (!*s)
        kl__say_required(c, KL_ITEM(in, i), "");
    if (!slash)
        return;
    char *all = kl_sprintf("%.*s/*", (int)(slash - s), s), *any = kl_sprintf("*%s", slash);
    if (kl_finder_find_text(before, all) >= 0)
        kl__say_invalid(
            c, KL_ITEM(in, i), kl_value_item(list, i), "if '%s' is present, must not specify %s", all, s);
    if (kl_finder_find_text(before, any) >= 0)
        kl__say_invalid(
            c, KL_ITEM(in, i), kl_value_item(list, i), "if '%s' is present, must not specify %s", any, s);
    kl_free(all);
    kl_free(any);
}

static void check_resources(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    const kl_value *list = kl_value_get(rule, "resources");
    const kl__place *in = KL_IN(at, "resources");
    bool plain = false; /* the last one without a subresource is not "*" */
    kl_finder before = {0};
    if (!kl_value_len(list))
        kl__say_required(c, in, "");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl__item_text(list, i);
        check_resource(c, list, i, &before, in);
        kl_finder_add(&before, kl_value_item(list, i));
        if (*s && !strchr(s, '/'))
            plain = strcmp(s, "*") != 0;
    }
    kl_finder_fini(&before);
    if (kl_value_len(list) > 1 && kl_value_has_str(list, "*/*"))
        kl__say_invalid(c, in, list, "if '*/*' is present, must not specify other resources");
    if (kl_value_has_str(list, "*") && plain)
        kl__say_invalid(
            c, in, list, "if '*' is present, must not specify other resources without subresources");
}

static void check_rule(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    const kl_value *names = kl_value_get(rule, "resourceNames"), *scope = kl_value_get(rule, "scope");
    const kl__place *in = KL_IN(at, "resourceNames");
    kl_finder before = {0};
    for (size_t i = 0; i < kl_value_len(names); i++) {
        kl__check_form(c, KL_ITEM(in, i), kl__item_text(names, i), KL_PATH_SEGMENT);
        if (kl_finder_repeats(&before, kl_value_item(names, i)))
            kl__say_duplicate(c, KL_ITEM(in, i), kl_value_item(names, i));
    }
    kl_finder_fini(&before);
    kl__check_rule_head(c, rule, at);
    check_resources(c, rule, at);
    if (scope && !kl__one_of(kl__text(rule, "scope"), "* Cluster Namespaced"))
        kl__say_unsupported(c, KL_IN(at, "scope"), scope, "* Cluster Namespaced");
}

static void check_match(kl__causes *c, const kl_value *match, const kl__place *at)
{
    static const char *const lists[] = {"resourceRules", "excludeResourceRules"};
    if (!match)
        return;
    kl__check_word(c, match, at, "matchPolicy", true, "Equivalent Exact");
    kl__check_selector(c, kl_value_get(match, "namespaceSelector"), KL_IN(at, "namespaceSelector"));
    kl__check_selector(c, kl_value_get(match, "objectSelector"), KL_IN(at, "objectSelector"));
    for (size_t k = 0; k < 2; k++) {
        const kl_value *rules = kl_value_get(match, lists[k]);
        for (size_t i = 0; i < kl_value_len(rules); i++)
            check_rule(c, kl_value_item(rules, i), KL_ITEM(KL_IN(at, lists[k]), i));
    }
}

/* ------------------------------------------------------------------ expressions */

/* Compiles a member, and complains if it does not compile. The caller owns the program, or gets NULL. */
static kl_cel *check_expression(kl__causes *c, const kl_cel_env *env, const char *text, const char *shown,
    kl_cel_returns returns, const kl__place *at)
{
    kl_err why = KL_ERR_INIT;
    kl_cel *p = kl_cel_request_compile(env, text, returns, &why);
    if (!p && why.status == KL_EREJECTED)
        kl__say_internal(c, at, kl_err_message(&why));
    else if (!p)
        kl__say_invalid_text(c, at, shown, "%s", kl_err_message(&why));
    kl_err_fini(&why);
    return p;
}

static bool identifier(const char *s)
{
    static const char reserved[] = "true false null in as break const continue else for function if import "
                                   "let loop package namespace return var void while";
    for (const char *p = s; *p; p++)
        if (!isalpha((unsigned char)*p) && *p != '_' && (p == s || !isdigit((unsigned char)*p)))
            return false;
    return *s && !kl__one_of(s, reserved);
}

/* The environments of a policy, and what was defined in them. */
typedef struct bench {
    kl__causes *c;
    kl_cel_env *env, *message_env;
    kl_cel **defined;
} bench;

static void check_variables(bench *b, const kl_value *list)
{
    const kl__place *in = KL_IN(SPEC, "variables");
    b->defined = kl_zalloc((kl_value_len(list) + 1) * sizeof *b->defined);
    if (kl_value_len(list) > KL_CEL_VARIABLES_MAX)
        kl__say_too_many(b->c, in, kl_value_len(list), KL_CEL_VARIABLES_MAX);
    for (size_t i = 0; i < kl_value_len(list) && i < KL_CEL_VARIABLES_MAX; i++) {
        const kl_value *v = kl_value_item(list, i);
        const char *name = kl__text(v, "name"), *expression = kl__text(v, "expression");
        const kl__place *at = KL_ITEM(in, i);
        if (blank(name))
            kl__say_required(b->c, KL_IN(at, "name"), "name is not specified");
        else if (!identifier(name))
            kl__say_invalid_text(b->c, KL_IN(at, "name"), name, "must be a valid CEL identifier");
        if (blank(expression)) {
            kl__say_required(b->c, KL_IN(at, "expression"), "expression is not specified");
            continue;
        }
        b->defined[i] = check_expression(
            b->c, b->env, expression, expression, KL_CEL_RETURNS_ANY, KL_IN(at, "expression"));
        if (!kl_cel_env_define(b->env, name, b->defined[i]))
            kl__say_invalid_text(b->c, KL_IN(at, "expression"), expression,
                "together with the variables that it uses it has more than %d levels", KL_CEL_LEVELS_MAX);
        (void)kl_cel_env_define(b->message_env, name, b->defined[i]);
    }
}

static void check_validation(bench *b, const kl_value *v, const kl__place *at)
{
    const char *expression = kl__text(v, "expression"), *message = kl__text(v, "message"),
               *made = kl__text(v, "messageExpression");
    char *trimmed = kl_cel_trimmed(message);
    if (blank(expression))
        kl__say_required(b->c, KL_IN(at, "expression"), "expression is not specified");
    else
        kl_cel_free(check_expression(
            b->c, b->env, expression, expression, KL_CEL_RETURNS_BOOL, KL_IN(at, "expression")));
    if (*made && blank(made))
        kl__say_invalid_text(b->c, KL_IN(at, "messageExpression"), made, "must be non-empty if specified");
    else if (*made)
        kl_cel_free(check_expression(
            b->c, b->message_env, made, made, KL_CEL_RETURNS_STRING, KL_IN(at, "messageExpression")));
    if (*message && !*trimmed)
        kl__say_invalid_text(b->c, KL_IN(at, "message"), message, "must be non-empty if specified");
    else if (strpbrk(trimmed, "\n\r"))
        kl__say_invalid_text(b->c, KL_IN(at, "message"), message, "must not contain line breaks");
    kl_free(trimmed);
    if (kl_value_get(v, "reason"))
        kl__check_word(b->c, v, at, "reason", true, "Forbidden Invalid RequestEntityTooLarge");
}

static void check_annotation(bench *b, const char *name, const kl_value *v, const kl__place *at)
{
    const char *key = kl__text(v, "key"), *expression = kl__text(v, "valueExpression");
    char *whole = kl_sprintf("%s/%s", name, key), *trimmed = kl_cel_trimmed(expression);
    if (*name)
        kl__check_form(b->c, KL_IN(at, "key"), whole, KL_QUALIFIED);
    else
        kl__say_invalid_text(b->c, KL_IN(at, "key"), key, "requires metadata.name be non-empty");
    if (!*trimmed)
        kl__say_required(b->c, KL_IN(at, "valueExpression"), "valueExpression is not specified");
    else if (strlen(trimmed) > ANNOTATION_EXPRESSION_MAX)
        kl__say_required(b->c, KL_IN(at, "valueExpression"), "must not exceed 5120 bytes in length");
    else
        kl_cel_free(check_expression(
            b->c, b->env, trimmed, expression, KL_CEL_RETURNS_STRING_OR_NULL, KL_IN(at, "valueExpression")));
    kl_free(trimmed);
    kl_free(whole);
}

static void check_annotations(bench *b, const kl_value *o, const kl_value *list)
{
    const kl__place *in = KL_IN(SPEC, "auditAnnotations");
    if (kl_value_len(list) > ANNOTATIONS_MAX)
        kl__say_invalid(b->c, in, list, "must not have more than %d auditAnnotations", ANNOTATIONS_MAX);
    kl_finder keys = {.key = "key", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *v = kl_value_item(list, i);
        check_annotation(b, kl__text(kl_value_get(o, "metadata"), "name"), v, KL_ITEM(in, i));
        if (kl_finder_repeats(&keys, v))
            kl__say_duplicate(b->c, KL_IN(KL_ITEM(in, i), "key"), kl_value_get(v, "key"));
    }
    kl_finder_fini(&keys);
}

/* ------------------------------------------------------------------ the policy */

static void check_param_kind(kl__causes *c, const kl_value *kind, const kl__place *at)
{
    const char *version = kl__text(kind, "apiVersion"), *name = kl__text(kind, "kind"),
               *slash = strchr(version, '/');
    const kl__place *in = KL_IN(at, "apiVersion");
    if (!*version)
        kl__say_required(c, in, "");
    else if (slash && strchr(slash + 1, '/'))
        kl__say_invalid_text(c, in, version, "unexpected GroupVersion string: %s", version);
    else {
        char *group = kl_sprintf("%.*s", slash ? (int)(slash - version) : 0, version);
        const char *v = slash ? slash + 1 : version;
        if (*group)
            kl__check_form(c, in, group, KL_DNS_SUBDOMAIN);
        if (!*v)
            kl__say_invalid_text(c, in, version, "version must be specified");
        else
            kl__check_form(c, in, v, KL_DNS_1035);
        kl_free(group);
    }
    if (!*name) {
        kl__say_required(c, KL_IN(at, "kind"), "");
        return;
    }
    char *lower = kl_strdup(name);
    const char *faults[KL_FAULTS_MAX];
    for (char *p = lower; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    if (kl__faults(lower, KL_DNS_1035, faults))
        kl__say_invalid_text(
            c, KL_IN(at, "kind"), name, "may have mixed case, but should otherwise match: %s", faults[0]);
    kl_free(lower);
}

static void complain(void *causes, bool warns, const char *reason, const char *field, const char *message)
{
    if (!warns)
        kl__cause_add(causes, reason, field, "%s", message);
}

/* Unchanged conditions stay valid. */
static bool same_conditions(const kl__write *w)
{
    const kl_value *was = kl_value_get(w->old, "spec"), *is = kl_value_get(w->o, "spec");
    return w->old && kl_value_equal(kl_value_get(was, "paramKind"), kl_value_get(is, "paramKind"))
        && kl_value_equal(kl_value_get(was, "matchConditions"), kl_value_get(is, "matchConditions"));
}

static void check_conditions(const kl__write *w, bool params)
{
    const kl_value *list = kl_value_at(w->o, "spec", "matchConditions", NULL);
    if (!kl_value_len(list) || same_conditions(w))
        return;
    kl_cel_env *env = kl_cel_request_env(params, true);
    kl_cel_conditions_validate(env, list, "spec.matchConditions", complain, w->causes);
    kl_cel_env_free(env);
}

static void check_expressions(const kl__write *w, const kl_value *spec, bool params)
{
    const kl_value *variables = kl_value_get(spec, "variables"),
                   *validations = kl_value_get(spec, "validations"),
                   *annotations = kl_value_get(spec, "auditAnnotations");
    const kl__place *in = KL_IN(SPEC, "validations");
    static const char none[] = "validations or auditAnnotations must contain at least one item";
    bench b = {w->causes, kl_cel_request_env(params, true), kl_cel_request_env(params, false), NULL};
    check_variables(&b, variables);
    if (!kl_value_len(validations) && !kl_value_len(annotations)) {
        kl__say_required(w->causes, in, none);
        kl__say_required(w->causes, KL_IN(SPEC, "auditAnnotations"), none);
    }
    for (size_t i = 0; i < kl_value_len(validations); i++)
        check_validation(&b, kl_value_item(validations, i), KL_ITEM(in, i));
    check_annotations(&b, w->o, annotations);
    for (size_t i = 0; i < kl_value_len(variables); i++)
        kl_cel_free(b.defined[i]);
    kl_free(b.defined);
    kl_cel_env_free(b.env);
    kl_cel_env_free(b.message_env);
}

void kl_policy_validate(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec"), *kind = kl_value_get(spec, "paramKind"),
                   *match = kl_value_get(spec, "matchConstraints");
    const kl__place *in = KL_IN(SPEC, "matchConstraints");
    kl__check_word(w->causes, spec, SPEC, "failurePolicy", true, "Fail Ignore");
    if (kind)
        check_param_kind(w->causes, kind, KL_IN(SPEC, "paramKind"));
    if (!match)
        kl__say_required(w->causes, in, "");
    else {
        check_match(w->causes, match, in);
        if (!kl_value_len(kl_value_get(match, "resourceRules")))
            kl__say_required(w->causes, KL_IN(in, "resourceRules"), "");
    }
    check_conditions(w, kind != NULL);
    check_expressions(w, spec, kind != NULL);
}

/* ------------------------------------------------------------------ the binding */

static void check_actions(kl__causes *c, const kl_value *list, const kl__place *at)
{
    kl_finder before = {0};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        if (!kl__one_of(kl__item_text(list, i), "Audit Deny Warn"))
            kl__say_unsupported(c, KL_ITEM(at, i), kl_value_item(list, i), "Audit Deny Warn");
        if (kl_finder_repeats(&before, kl_value_item(list, i)))
            kl__say_duplicate(c, KL_ITEM(at, i), kl_value_item(list, i));
    }
    kl_finder_fini(&before);
    if (kl_value_has_str(list, "Deny") && kl_value_has_str(list, "Warn"))
        kl__say_invalid(c, at, list,
            "must not contain both Deny and Warn (repeating the same validation failure information in the "
            "API response and headers serves no purpose)");
    if (!kl_value_len(list))
        kl__say_required(c, at, "at least one validation action is required");
}

static void check_param(kl__causes *c, const kl_value *ref, const kl__place *at)
{
    static const char exclusive[] = "name and selector are mutually exclusive";
    const char *name = kl__text(ref, "name");
    const kl_value *selector = kl_value_get(ref, "selector");
    if (!ref)
        return;
    if (*name) {
        kl__check_form(c, KL_IN(at, "name"), name, KL_PATH_SEGMENT);
        if (selector)
            kl__say_forbidden(c, KL_IN(at, "name"), "%s", exclusive);
    }
    kl__check_selector(c, selector, KL_IN(at, "selector"));
    if (selector && *name)
        kl__say_forbidden(c, KL_IN(at, "selector"), "%s", exclusive);
    if (!selector && !*name)
        kl__say_required(c, at, "one of name or selector must be specified");
    kl__check_word(c, ref, at, "parameterNotFoundAction", true, "Deny Allow");
}

void kl_policy_validate_binding(const kl__write *w)
{
    const kl_value *spec = kl_value_get(w->o, "spec");
    kl__check_present(w->causes, spec, SPEC, "policyName");
    kl__check_member(w->causes, spec, SPEC, "policyName", KL_DNS_SUBDOMAIN);
    check_param(w->causes, kl_value_get(spec, "paramRef"), KL_IN(SPEC, "paramRef"));
    check_match(w->causes, kl_value_get(spec, "matchResources"), KL_IN(SPEC, "matchResources"));
    check_actions(w->causes, kl_value_get(spec, "validationActions"), KL_IN(SPEC, "validationActions"));
}
