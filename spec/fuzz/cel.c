/* cel.c - any text as an expression: it is refused with a story, or its value comes within bounds, twice the
 * same, and also where `variables` are kept between two evaluations. Lines of the form "a:EXPRESSION" before
 * it are variables. */
#include <string.h>

#include "base/mem.h"
#include "cel/cel.h"
#include "fuzz/fuzz.h"

static const char sample[] =
    "{\"metadata\":{\"name\":\"n\",\"labels\":{\"a\":\"b\"}},\"spec\":{\"n\":3,\"d\":1.5,\"t\":true,\"z\":"
    "null,"
    "\"l\":[1,2,\"x\"],\"when\":\"2024-01-01T00:00:00Z\",\"q\":\"1.5Gi\",\"ip\":\"10.0.0.1\"}}";

static const kl_value *object;

static void evaluate(const kl_cel *p)
{
    const kl_value *out[2] = {NULL, NULL};
    kl_status st[2];
    kl_cel_var vars[3] = {{.is = KL_CEL_VALUE, .json = object}, {.is = KL_CEL_SOME, .json = object}};
    kl_cel_shared *shared = kl_cel_shared_new();
    for (int i = 0; i < 2; i++) {
        kl_cel_run run = {.vars = vars, .limit = 20000, .shared = shared};
        kl_err err = KL_ERR_INIT;
        st[i] = kl_cel_eval(p, &run, &out[i], &err);
        CLAIM(st[i] ? *kl_err_message(&err) && !out[i] : out[i] != NULL);
        CLAIM(st[i] == KL_OK || st[i] == KL_EINVAL || st[i] == KL_ETOOBIG);
        kl_err_fini(&err);
    }
    CLAIM(st[0] == st[1] && kl_value_equal(out[0], out[1]));
    kl_value_unref(out[0]);
    kl_value_unref(out[1]);
    kl_cel_shared_free(shared);
}

#define VARIABLES_MAX 30

typedef struct variables {
    kl_cel *v[VARIABLES_MAX];
    size_t n;
} variables;

/* Takes the lines that are variables; the rest is returned. */
static char *define(kl_cel_env *env, char *text, variables *vs)
{
    while (text[0] >= 'a' && text[0] <= 'z' && text[1] == ':' && vs->n < VARIABLES_MAX) {
        char name[2] = {text[0], '\0'}, *end = text + strcspn(text, "\n"), *next = *end ? end + 1 : end;
        *end = '\0';
        kl_cel *p = NULL;
        if (kl_cel_compile(env, text + 2, &p, NULL))
            p = NULL;
        (void)kl_cel_env_define(env, name, p);
        vs->v[vs->n++] = p;
        text = next;
    }
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (kl_value_decode(sample, sizeof sample - 1, &object, NULL))
        abort();
    char *text = kl_strndup((const char *)data, size);
    kl_cel_env *env = kl_cel_env_new();
    kl_cel_env_var(env, "self", kl_cel_type_dyn());
    kl_cel_env_var(env, "oldSelf", kl_cel_type_optional(env, kl_cel_type_dyn()));
    variables vs = {.n = 0};
    kl_cel *p = NULL;
    kl_err err = KL_ERR_INIT;
    if (kl_cel_compile(env, define(env, text, &vs), &p, &err))
        CLAIM(*kl_err_message(&err) && !p);
    else
        evaluate(p);
    kl_err_fini(&err);
    kl_cel_free(p);
    for (size_t i = 0; i < vs.n; i++)
        kl_cel_free(vs.v[i]);
    kl_cel_env_free(env);
    kl_free(text);
    kl_value_unref(object);
    return 0;
}
