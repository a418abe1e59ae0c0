/* params.h - the settings of a deployment for a controller: the params that its script declares, with their
 * types and bounds.
 *
 * A script declares a param by its default, which fixes the type, or by a rule: {type, min, max, enum, doc,
 * required}. The types are string, integer, number, boolean, duration, list, object and secret; a secret is a
 * text without a default that is never shown. Functions that change a spec or program are for its owner,
 * before it runs; any thread may call the others. */
#ifndef KL_RUN_PARAMS_H
#define KL_RUN_PARAMS_H

#include "run/reconciler.h"
#include "run/spec.h"

/* The effective params: the deployment's values, otherwise the script's defaults. Borrowed; an object or
 * NULL. */
const kl_value *kl_params_of(const kl_controller_spec *s);
/* "integer"; NULL: there is no such param. */
const char *kl_param_type(const kl_controller_spec *s, const char *name);
bool kl_param_is_secret(const kl_controller_spec *s, const char *name);
/* Checks v as its value. KL_EINVAL names the param and the allowed values. */
KL_NODISCARD kl_status kl_param_check(
    const kl_controller_spec *s, const char *name, const kl_value *v, kl_err *err);
/* Merges `wish` into `have` (both objects; NULL: nothing): objects by RFC 7386, all other values are
 * replaced. KL_EINVAL also for unknown names, with a suggestion, and for secrets. */
KL_NODISCARD kl_status kl_params_over(const kl_controller_spec *s, const kl_value *have, const kl_value *wish,
    const kl_value **out, kl_err *err);

/* `all` for people and files: "***" replaces each secret, and each value from a Secret. A new reference;
 * NULL: there is none. */
const kl_value *kl_params_shown(const kl_controller_spec *s, const kl_value *all);
/* The params of `all` that are not secrets. A new reference; NULL: there is none. */
const kl_value *kl_params_plain(const kl_controller_spec *s, const kl_value *all);
/* As kl_params_shown, only those that differ from the script's defaults; or NULL. */
const kl_value *kl_params_given(const kl_controller_spec *s, const kl_value *all);

/* Where values come from. A text is parsed by the param's type, as YAML for a list or an object. Hidden
 * texts must not be shown in any message, log or report, whatever the type. */
typedef enum kl_params_form { KL_PARAMS_VALUES, KL_PARAMS_TEXTS, KL_PARAMS_HIDDEN } kl_params_form;
/* Sets the params of programs: by NAME for every controller that has one of that name, or by CONTROLLER.NAME.
 * Names that the program does not declare are skipped. */
KL_NODISCARD kl_status kl_program_set_params(
    kl_program *p, const kl_value *given, kl_params_form form, kl_err *err);
/* `all`, with the values of a deployment replacing the present ones. A new reference, or NULL. */
const kl_value *kl_params_as_given(const kl_controller_spec *s, const kl_value *all);
/* The first name in `given` that is a param of none of the n programs; NULL: there is none. *near is then a
 * suggestion, " (did you mean region?)", or ""; the caller frees it. */
const char *kl_programs_unknown_param(kl_program *const *p, size_t n, const kl_value *given, char **near);
/* KL_EINVAL names the first param that has no value and needs one. */
KL_NODISCARD kl_status kl_program_params_there(const kl_program *p, kl_err *err);
/* A number that changes when any value changes, secrets included. */
uint64_t kl_program_params_version(const kl_program *p);

#endif
