/* cel.h - the Common Expression Language of Kubernetes 1.34: parses, checks types, and evaluates under a
 * budget.
 *
 * An environment declares variables and their types; a program is one expression, checked against it. Both
 * are immutable once made, and any thread may use them. An evaluation owns the values it makes and frees them
 * at its end; it does no I/O and never waits. Texts, depth, memory and steps are bounded. */
#ifndef KL_CEL_CEL_H
#define KL_CEL_CEL_H

#include "base/clock.h"
#include "value/value.h"

/* The limits of the cost of one evaluation, of all rules for one object or policy, and of match
 * conditions. */
#define KL_CEL_CALL_COST 1000000
#define KL_CEL_OBJECT_COST 10000000
#define KL_CEL_MATCH_COST 2500000
/* The limits of the worst-case cost of one rule of a schema, and of all its rules. */
#define KL_CEL_RULE_ESTIMATE 10000000
#define KL_CEL_SCHEMA_ESTIMATE 100000000
/* Nesting of an expression with the `variables` that it uses; the number of variables of a policy. */
#define KL_CEL_LEVELS_MAX 1000
#define KL_CEL_VARIABLES_MAX 1000
#define KL_CEL_MESSAGE_MAX (5 * 1024)

typedef struct kl_cel_env kl_cel_env;
typedef struct kl_cel kl_cel;
typedef struct kl__ctype kl_cel_type;

/* A text without white space around; the caller frees. */
char *kl_cel_trimmed(const char *s);

/* An environment without variables; it owns the types it is asked for. Owner thread until it is complete. */
kl_cel_env *kl_cel_env_new(void);
void kl_cel_env_free(kl_cel_env *env); /* after its programs */

/* kl_cel_type_of_schema: the type that a structural schema describes, or NULL if CEL cannot use it. A `root`
 * has apiVersion, kind and metadata's names even if the schema does not list them. */
const kl_cel_type *kl_cel_type_dyn(void);
const kl_cel_type *kl_cel_type_string(void);
const kl_cel_type *kl_cel_type_bool(void);
const kl_cel_type *kl_cel_type_of_schema(kl_cel_env *env, const kl_value *schema, bool root);
/* optional(t) */
const kl_cel_type *kl_cel_type_optional(kl_cel_env *env, const kl_cel_type *t);
/* How many values of this type one request can hold at most. */
uint64_t kl_cel_type_cardinality(const kl_cel_type *t);

/* Declares a variable; returns its index in kl_cel_run.vars, from 0. `name` is copied. */
size_t kl_cel_env_var(kl_cel_env *env, const char *name, const kl_cel_type *type);
/* Expressions of the environment may use cel.bind(name, value, expression). */
void kl_cel_env_bind(kl_cel_env *env);
/* `variables.NAME` is the value of a program of this environment, or of one with the same variables, which
 * must live as long; it is evaluated at its first use. NULL: it did not compile, so using it fails. False:
 * together with the variables that it uses, it nests too deeply (KL_CEL_LEVELS_MAX), so using it fails. */
bool kl_cel_env_define(kl_cel_env *env, const char *name, const kl_cel *program);

/* Compiles one expression. KL_EINVAL: "compilation failed: " and the messages of cel-go, places marked line
 * by line. KL_EREJECTED: "program instantiation failed: " and why a constant in it cannot be evaluated. */
KL_NODISCARD kl_status kl_cel_compile(const kl_cel_env *env, const char *text, kl_cel **out, kl_err *err);
void kl_cel_free(kl_cel *p);
const kl_cel_type *kl_cel_type_of(const kl_cel *p);
bool kl_cel_uses(const kl_cel *p, const char *variable);
/* The highest cost of one evaluation whose variables have the type `root`. */
uint64_t kl_cel_estimate(const kl_cel *p, const kl_cel_type *root);

/* The value of a variable. */
typedef struct kl_cel_var {
    enum {
        KL_CEL_ABSENT, /* no such variable: using it fails */
        KL_CEL_VALUE,
        KL_CEL_NONE, /* optional.none() */
        KL_CEL_SOME  /* optional.of(json) */
    } is;
    const kl_value *json; /* borrowed */
} kl_cel_var;

/* Answers `authorizer...check(...)`: whether the request's user may do this. `attributes` is an object with
 * verb, and either path or group, resource, subresource, namespace and name; with user if the expression
 * names a service account. *reason may be set (static). */
typedef bool kl_cel_authorize(void *arg, const kl_value *attributes, const char **reason);

/* Shared by several evaluations: each of `variables` is evaluated once for all of them. Their environments
 * define the same variables. */
typedef struct kl_cel_shared kl_cel_shared;
kl_cel_shared *kl_cel_shared_new(void);
void kl_cel_shared_free(kl_cel_shared *s);

typedef struct kl_cel_run {
    const kl_cel_var *vars; /* as many as the environment has */
    uint64_t limit;         /* of the cost */
    kl_time now;            /* unused by expressions: CEL has no clock */
    kl_cel_authorize *authorize;
    void *authorize_arg;
    kl_cel_shared *shared;   /* or NULL */
    uint64_t cost;           /* out: its cost, even after a failure */
    uint64_t variables_cost; /* out: the cost of `variables`, which `cost` does not include; each has its own
                                limit */
} kl_cel_run;

/* The value as JSON, a new reference: numbers, strings, lists and maps stay as they are, bytes are base64,
 * times and durations strings. KL_EINVAL: the expression failed ("no such key: x"). KL_ETOOBIG: it would have
 * cost more than the limit. */
KL_NODISCARD kl_status kl_cel_eval(const kl_cel *p, kl_cel_run *run, const kl_value **out, kl_err *err);

#endif
