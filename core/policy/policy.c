/* policy.c - see apiserver/pkg/admission/plugin/policy/validating: validator.go.
 *
 *   match conditions --some say no--> nothing
 *        | all hold
 *   validations, then the messages of those that do not hold, out of one budget
 *        |
 *   audit annotations, out of another
 *
 * `variables` are evaluated once for each of these four lists, as needed. */
#include "policy/policy.h"

#include <string.h>

#include "base/mem.h"
#include "rules/admission.h"

#define ANNOTATION_MAX ((size_t)10 * 1024) /* bytes of an audit annotation */

typedef struct expression {
    const char *text;
    kl_cel *program; /* NULL: there is no expression, or it does not compile */
    kl_err why;      /* why it does not compile */
} expression;

typedef struct expressions {
    expression *v;
    size_t n;
} expressions;

struct kl_policy {
    const kl_value *object;
    kl_cel_env *env, *message_env; /* messages know no authorizer */
    expressions variables, validations, messages, annotations;
    kl_cel_conditions *conditions; /* or NULL */
};

static expressions compile(
    const kl_cel_env *env, const kl_value *list, const char *member, kl_cel_returns returns)
{
    expressions e = {.n = kl_value_len(list)};
    e.v = kl_zalloc((e.n + 1) * sizeof *e.v);
    for (size_t i = 0; i < e.n; i++) {
        const char *text = kl_value_str_at(kl_value_item(list, i), member, NULL);
        e.v[i].text = text ? text : "";
        if (text && *text)
            e.v[i].program = kl_cel_request_compile(env, text, returns, &e.v[i].why);
    }
    return e;
}

static void expressions_free(expressions *e)
{
    for (size_t i = 0; i < e->n; i++) {
        kl_cel_free(e->v[i].program);
        kl_err_fini(&e->v[i].why);
    }
    kl_free(e->v);
}

/* Defines the variables; each knows those before it. */
static void define(kl_policy *p, const kl_value *list)
{
    expressions *e = &p->variables;
    e->n = kl_value_len(list);
    if (e->n > KL_CEL_VARIABLES_MAX) /* a policy from a file was never validated */
        e->n = KL_CEL_VARIABLES_MAX;
    e->v = kl_zalloc((e->n + 1) * sizeof *e->v);
    for (size_t i = 0; i < e->n; i++) {
        const char *name = kl_value_str_at(kl_value_item(list, i), "name", NULL),
                   *text = kl_value_str_at(kl_value_item(list, i), "expression", NULL);
        e->v[i].text = text ? text : "";
        e->v[i].program = kl_cel_request_compile(p->env, e->v[i].text, KL_CEL_RETURNS_ANY, &e->v[i].why);
        (void)kl_cel_env_define(p->env, name ? name : "", e->v[i].program);
        (void)kl_cel_env_define(p->message_env, name ? name : "", e->v[i].program);
    }
}

kl_policy *kl_policy_new(const kl_value *object)
{
    kl_policy *p = kl_new(kl_policy);
    const kl_value *spec = kl_value_get(object, "spec"), *validations = kl_value_get(spec, "validations"),
                   *conditions = kl_value_get(spec, "matchConditions");
    bool params = kl_value_get(spec, "paramKind") != NULL;
    p->object = kl_value_ref(object);
    p->env = kl_cel_request_env(params, true);
    p->message_env = kl_cel_request_env(params, false);
    define(p, kl_value_get(spec, "variables"));
    p->validations = compile(p->env, validations, "expression", KL_CEL_RETURNS_BOOL);
    p->messages = compile(p->message_env, validations, "messageExpression", KL_CEL_RETURNS_STRING);
    p->annotations = compile(
        p->env, kl_value_get(spec, "auditAnnotations"), "valueExpression", KL_CEL_RETURNS_STRING_OR_NULL);
    if (kl_value_len(conditions))
        p->conditions = kl_cel_conditions_new(p->env, conditions);
    return p;
}

void kl_policy_free(kl_policy *p)
{
    if (!p)
        return;
    kl_cel_conditions_free(p->conditions);
    expressions_free(&p->annotations);
    expressions_free(&p->messages);
    expressions_free(&p->validations);
    expressions_free(&p->variables);
    kl_cel_env_free(p->env);
    kl_cel_env_free(p->message_env);
    kl_value_unref(p->object);
    kl_free(p);
}

const kl_value *kl_policy_object(const kl_policy *p) { return p->object; }

bool kl_policy_ignores(const kl_policy *p)
{
    const char *policy = kl_value_str_at(p->object, "spec", "failurePolicy", NULL);
    return policy && !strcmp(policy, "Ignore");
}

/* ---------------------------------------------------------------- one list of expressions */

/* The result of an expression. */
typedef struct outcome {
    const kl_value *value;
    char *failure; /* or NULL */
} outcome;

static void outcomes_free(outcome *o, size_t n)
{
    for (size_t i = 0; o && i < n; i++) {
        kl_value_unref(o[i].value);
        kl_free(o[i].failure);
    }
    kl_free(o);
}

static outcome evaluate(const expression *x, kl_cel_run *run, uint64_t *budget, bool *spent)
{
    outcome o = {0};
    kl_err err = KL_ERR_INIT;
    if (x->why.status)
        o.failure = kl_sprintf("compilation error: %s", kl_err_message(&x->why));
    if (!x->program)
        return o;
    kl_status st = kl_cel_eval(x->program, run, &o.value, &err);
    uint64_t cost = run->cost + run->variables_cost;
    *spent = cost > *budget;
    *budget -= *spent ? *budget : cost;
    if (st)
        o.failure = kl_sprintf("expression '%s' resulted in error: %s", x->text, kl_err_message(&err));
    kl_err_fini(&err);
    return o;
}

/* Evaluates all expressions. NULL: they cost more than the budget. The caller frees. */
static outcome *evaluate_all(const expressions *e, kl_cel_run *run, uint64_t *budget)
{
    outcome *o = kl_zalloc((e->n + 1) * sizeof *o);
    bool spent = false;
    run->shared = kl_cel_shared_new();
    for (size_t i = 0; i < e->n && !spent; i++)
        o[i] = evaluate(&e->v[i], run, budget, &spent);
    kl_cel_shared_free(run->shared);
    run->shared = NULL;
    if (!spent)
        return o;
    outcomes_free(o, e->n);
    return NULL;
}

/* ---------------------------------------------------------------- judging */

typedef struct hearing {
    const kl_policy *p;
    kl_cel_run run;
    kl_cel_var vars[KL_CEL_REQUEST_VARS];
    kl_policy_refuse *refuse;
    kl_policy_note *note;
    void *arg;
    size_t index; /* of the validation that is judged */
} hearing;

/* The failure policy decides about an expression that cannot be evaluated. */
static void fail(const hearing *h, bool always, const char *message)
{
    if (!kl_policy_ignores(h->p))
        h->refuse(h->arg, always, h->index, "Invalid", message);
}

/* The message of a validation that does not hold; the caller frees. */
static char *message_of(const kl_value *validation, const outcome *said)
{
    const char *text = said && !said->failure ? kl_value_str(said->value) : NULL,
               *message = kl_value_str_at(validation, "message", NULL),
               *expression = kl_value_str_at(validation, "expression", NULL);
    char *made = text ? kl_cel_trimmed(text) : NULL;
    if (made && *made && strlen(made) <= KL_CEL_MESSAGE_MAX && !strchr(made, '\n'))
        return made;
    kl_free(made);
    made = kl_cel_trimmed(message ? message : "");
    if (*made)
        return made;
    kl_free(made);
    char *what = kl_cel_trimmed(expression ? expression : "");
    made = kl_sprintf("failed expression: %s", what);
    kl_free(what);
    return made;
}

static void judge_validations(hearing *h)
{
    const expressions *e = &h->p->validations;
    const kl_value *list = kl_value_at(h->p->object, "spec", "validations", NULL);
    uint64_t budget = KL_CEL_OBJECT_COST;
    outcome *answers = evaluate_all(e, &h->run, &budget), *messages = NULL;
    if (!answers) {
        fail(h, false, KL_CEL_SPENT);
        return;
    }
    kl_cel_var authorizer = h->vars[KL_CEL_AUTHORIZER], resource = h->vars[KL_CEL_REQUEST_RESOURCE];
    h->vars[KL_CEL_AUTHORIZER].is = h->vars[KL_CEL_REQUEST_RESOURCE].is = KL_CEL_ABSENT;
    messages = evaluate_all(&h->p->messages, &h->run, &budget);
    h->vars[KL_CEL_AUTHORIZER] = authorizer;
    h->vars[KL_CEL_REQUEST_RESOURCE] = resource;
    for (size_t i = 0; i < e->n; i++) {
        h->index = i;
        const kl_value *validation = kl_value_item(list, i);
        const char *reason = kl_value_str_at(validation, "reason", NULL);
        if (answers[i].failure)
            fail(h, false, answers[i].failure);
        else if (!messages)
            fail(h, false, "failed messageExpression: " KL_CEL_SPENT);
        else if (!kl_value_bool(answers[i].value, false)) {
            char *message = message_of(validation, &messages[i]);
            h->refuse(h->arg, false, i, reason ? reason : "Invalid", message);
            kl_free(message);
        }
    }
    outcomes_free(answers, e->n);
    outcomes_free(messages, e->n);
}

/* Adds an annotation, unless it is empty. */
static void annotate(const hearing *h, const kl_value *annotation, const kl_value *value)
{
    const char *text = kl_value_str(value), *key = kl_value_str_at(annotation, "key", NULL);
    char *made = kl_cel_trimmed(text ? text : "");
    if (strlen(made) > ANNOTATION_MAX)
        made[ANNOTATION_MAX] = 0;
    if (*made && key)
        h->note(h->arg, key, made);
    kl_free(made);
}

/* A failure refuses the request. */
static void judge_annotations(hearing *h)
{
    const expressions *e = &h->p->annotations;
    const kl_value *list = kl_value_at(h->p->object, "spec", "auditAnnotations", NULL);
    uint64_t budget = KL_CEL_OBJECT_COST;
    outcome *answers = evaluate_all(e, &h->run, &budget);
    if (!answers)
        fail(h, false, KL_CEL_SPENT);
    for (size_t i = 0; answers && i < e->n; i++)
        if (answers[i].failure)
            fail(h, true, answers[i].failure);
        else
            annotate(h, kl_value_item(list, i), answers[i].value);
    outcomes_free(answers, e->n);
}

/* Whether the policy applies to this request. */
static bool wanted(hearing *h)
{
    kl_err err = KL_ERR_INIT;
    bool yes = true;
    if (!h->p->conditions)
        return true;
    kl_cel_var ns = h->vars[KL_CEL_NAMESPACE];
    h->vars[KL_CEL_NAMESPACE].json = NULL;
    h->run.shared = kl_cel_shared_new();
    if (kl_cel_conditions_match(h->p->conditions, &h->run, &yes, &err)) {
        fail(h, false, kl_err_message(&err));
        yes = false;
    }
    kl_cel_shared_free(h->run.shared);
    h->run.shared = NULL;
    h->vars[KL_CEL_NAMESPACE] = ns;
    kl_err_fini(&err);
    return yes;
}

void kl_policy_judge(
    const kl_policy *p, const kl_policy_input *in, kl_policy_refuse *refuse, kl_policy_note *note, void *arg)
{
    const kl_value *resource = kl_cel_request_resource(in->request);
    hearing h = {.p = p, .refuse = refuse, .note = note, .arg = arg};
    kl_cel_request_vars(in->request, resource, in->ns, in->params, h.vars);
    h.run = (kl_cel_run){.vars = h.vars,
        .limit = KL_CEL_CALL_COST,
        .authorize = in->authorize,
        .authorize_arg = in->authorize_arg};
    if (wanted(&h)) {
        judge_validations(&h);
        judge_annotations(&h);
    }
    kl_value_unref(resource);
}
