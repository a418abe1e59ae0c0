/* hooks.c - see pkg/apis/admissionregistration/validation. */
#include "policy/hooks.h"

#include <string.h>

#include "base/mem.h"
#include "cel/admission.h"

static bool has_word(const kl_value *list, const char *word)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *s = kl_value_str(kl_value_item(list, i));
        if (s && (!strcmp(s, "*") || !strcmp(s, word)))
            return true;
    }
    return false;
}

static void KL_PRINTF(4, 5) blame(kl__causes *causes, size_t i, const char *field, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *why = kl_vsprintf(fmt, ap), *path = kl_sprintf("webhooks[%zu].%s", i, field);
    va_end(ap);
    kl__cause_add(causes, "FieldValueInvalid", path, "%s", why);
    kl_free(path);
    kl_free(why);
}

static void complain(void *causes, bool warns, const char *reason, const char *field, const char *message)
{
    if (!warns)
        kl__cause_add(causes, reason, field, "%s", message);
}

static void validate_hook(const kl_value *hook, size_t i, kl__causes *causes)
{
    const char *name = kl_value_str_at(hook, "name", NULL),
               *effects = kl_value_str_at(hook, "sideEffects", NULL);
    size_t dots = 0;
    for (const char *p = name; p && *p; p++)
        dots += *p == '.';
    if (!name || dots < 2)
        blame(causes, i, "name",
            "Invalid value: \"%s\": should be a domain with at least three segments separated by dots",
            name ? name : "");
    const kl_value *where = kl_value_get(hook, "clientConfig"), *url = kl_value_get(where, "url");
    if (!url == !kl_value_get(where, "service"))
        blame(causes, i, "clientConfig", "Required value: exactly one of url or service is required");
    else if (url && strncmp(kl_value_str(url) ? kl_value_str(url) : "", "https://", 8))
        blame(causes, i, "clientConfig.url",
            "Invalid value: \"%s\": 'https' is the only allowed URL scheme; desired format: "
            "https://host[/path]",
            kl_value_str(url) ? kl_value_str(url) : "");
    if (!effects || (strcmp(effects, "None") && strcmp(effects, "NoneOnDryRun")))
        blame(causes, i, "sideEffects",
            "Unsupported value: \"%s\": supported values: \"None\", \"NoneOnDryRun\"",
            effects ? effects : "");
    if (!has_word(kl_value_get(hook, "admissionReviewVersions"), "v1"))
        blame(causes, i, "admissionReviewVersions",
            "Invalid value: must include at least one of v1 (the embedded API server does not speak "
            "v1beta1)");
    int64_t timeout = kl_value_int_at(hook, KL_WEBHOOK_TIMEOUT, "timeoutSeconds", NULL);
    if (timeout < 1 || timeout > 30)
        blame(causes, i, "timeoutSeconds",
            "Invalid value: %lld: the timeout value must be between 1 and 30 seconds", (long long)timeout);
    char *path = kl_sprintf("webhooks[%zu].matchConditions", i);
    kl_cel_env *env = kl_cel_request_env(false, true);
    kl_cel_conditions_validate(env, kl_value_get(hook, "matchConditions"), path, complain, causes);
    kl_cel_env_free(env);
    kl_free(path);
}

void kl_policy_validate_hooks(const kl_value *o, kl__causes *causes)
{
    const kl_value *hooks = kl_value_get(o, "webhooks");
    for (size_t i = 0; i < kl_value_len(hooks); i++)
        validate_hook(kl_value_item(hooks, i), i, causes);
}
