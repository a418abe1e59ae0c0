/* conformance_test.c - the published conformance tests of CEL, compared with Kubernetes' own CEL: the same
 * expressions are rejected with the same messages, and the others have the same value, type, error and cost.
 *
 * build/assets/celspec/cases.jsonl has the cases (spec/realserver/celspec makes them out of the module
 * cel.dev/expr; `make versions`). Without it nothing is run; in CI that is a failure. */
/* not in tsan: one thread */
#include "support/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "cel/types.h"

static const char path[] = "build/assets/celspec/cases.jsonl";

/* Cases, by the beginning of their names, that end otherwise here, and why. */
static const struct {
    const char *name, *why;
} explained[] = {
    {"optionals/optionals/has_map_optindex", "cel-go charges nothing for has() of an absent literal's field"},
    {"optionals/optionals/optional_chaining_9", "as above"},
    {"parse/nest/list_index", "cel-go charges nothing for an index that is a name or a field itself"},
    {"macros2/transformMap/empty", "cel-go takes the first overload for the items of {}; both values are {}"},
};

static struct {
    size_t cases, left, refused, failed, values, messages;
    size_t seen[sizeof explained / sizeof *explained];
} count;

/* "list(map(string, int))" */
static const kl__ctype *type_of(kl__carena *a, const char **text)
{
    static const struct {
        const char *name;
        kl__ckind kind;
    } basic[] = {{"bool", KL_C_BOOL}, {"int", KL_C_INT}, {"double", KL_C_DOUBLE}, {"string", KL_C_STRING}};
    const char *t = *text;
    if (!strncmp(t, "list(", 5)) {
        *text += 5;
        const kl__ctype *item = type_of(a, text);
        *text += 1;
        return kl__ctype_list(a, item);
    }
    if (!strncmp(t, "map(string, ", 12)) {
        *text += 12;
        const kl__ctype *value = type_of(a, text);
        *text += 1;
        return kl__ctype_map(a, &kl__cbasic[KL_C_STRING], value);
    }
    for (size_t i = 0; i < sizeof basic / sizeof *basic; i++)
        if (!strncmp(t, basic[i].name, strlen(basic[i].name))) {
            *text += strlen(basic[i].name);
            return &kl__cbasic[basic[i].kind];
        }
    *text += strlen("dyn");
    return &kl__cbasic[KL_C_DYN];
}

typedef struct outcome {
    char *refused, *fails, *type, *checked; /* owned */
    const kl_value *value;
    uint64_t cost, most; /* most: where the order of a map is Go's, it may cost so much */
} outcome;

static void outcome_fini(outcome *o)
{
    kl_free(o->refused);
    kl_free(o->fails);
    kl_free(o->type);
    kl_free(o->checked);
    kl_value_unref(o->value);
}

static outcome run(kl_cel_env *env, const char *expr, const kl_cel_var *vars)
{
    outcome o = {0};
    kl_cel *p = NULL, *type = NULL;
    kl_err err = KL_ERR_INIT;
    const kl_value *of = NULL;
    kl_cel_run how = {.vars = vars, .limit = UINT64_MAX};
    char *whose = kl_sprintf("type(%s)", expr);
    if (kl_cel_compile(env, expr, &p, &err))
        o.refused = kl_strdup(strchr(kl_err_message(&err), ':') + 2); /* behind "compilation failed" */
    else {
        kl_buf checked = KL_BUF_INIT;
        kl__ctype_print(kl_cel_type_of(p), &checked);
        o.checked = kl_buf_take(&checked);
        if (kl_cel_eval(p, &how, &o.value, &err))
            o.fails = kl_strdup(kl_err_message(&err));
        o.cost = how.cost;
        if (!o.fails && !kl_cel_compile(env, whose, &type, NULL) && !kl_cel_eval(type, &how, &of, NULL))
            o.type = kl_strdup(kl_value_str(of));
    }
    kl_free(whose);
    kl_value_unref(of);
    kl_err_fini(&err);
    kl_cel_free(p);
    kl_cel_free(type);
    return o;
}

static char *copied(const kl_value *c, const char *member)
{
    const char *text = kl_value_str(kl_value_get(c, member));
    return text ? kl_strdup(text) : NULL;
}

static char *told(const outcome *o)
{
    if (o->refused || o->fails)
        return kl_sprintf("%s: %s", o->refused ? "refused" : "fails", o->refused ? o->refused : o->fails);
    char *json = o->value ? kl_value_to_json(o->value) : kl_strdup(""),
         *text = kl_sprintf("%s (%s, checked as %s), cost %llu", json, o->type ? o->type : "?", o->checked,
             (unsigned long long)o->cost);
    kl_free(json);
    return text;
}

static bool alike(const char *a, const char *b) { return !a || !b ? a == b : !strcmp(a, b); }

/* Whether they end the same; the cost counts only where both have a value. */
static bool same(const outcome *want, const outcome *got)
{
    if (want->refused || got->refused)
        return alike(want->refused, got->refused);
    if (!alike(want->checked, got->checked))
        return false;
    if (!want->type && !want->fails) /* only checked */
        return true;
    if (!alike(want->fails, got->fails))
        return false;
    return want->fails
        || (kl_value_equal(want->value, got->value) && alike(want->type, got->type) && want->cost <= got->cost
            && got->cost <= want->most);
}

/* Whether the difference is explained. */
static bool known(const char *name)
{
    for (size_t i = 0; i < sizeof explained / sizeof *explained; i++)
        if (!strncmp(name, explained[i].name, strlen(explained[i].name))) {
            count.seen[i]++;
            return true;
        }
    return false;
}

static bool holds(const kl_value *c)
{
    const char *name = kl_value_str_at(c, "name", NULL), *expr = kl_value_str_at(c, "expr", NULL);
    const kl_value *vars = kl_value_get(c, "vars");
    kl_cel_env *env = kl_cel_env_new();
    kl_cel_var given[8] = {0};
    assert_true(kl_value_len(vars) <= 8);
    for (size_t i = 0; i < kl_value_len(vars); i++) {
        const kl_value *v = kl_value_item(vars, i);
        const char *type = kl_value_str_at(v, "type", NULL);
        bool absent = strstr(type, " absent");
        kl_cel_env_var(env, kl_value_str_at(v, "name", NULL), type_of(kl__cel_env_arena(env), &type));
        given[i] = (kl_cel_var){
            .is = absent ? KL_CEL_ABSENT : KL_CEL_VALUE, .json = kl_value_get(v, "value")};
    }
    outcome want = {copied(c, "refused"), copied(c, "fails"), copied(c, "type"), copied(c, "checked"),
                kl_value_ref(kl_value_get(c, "value")), (uint64_t)kl_value_int_at(c, 0, "cost", NULL),
                (uint64_t)kl_value_int_at(c, 0, "most", NULL)},
            got = run(env, expr, given);
    count.refused += want.refused != NULL;
    count.failed += want.fails != NULL;
    count.values += !want.refused && !want.fails;
    bool holds = same(&want, &got);
    const char *message = strstr(expr, "google.protobuf.");
    if (!holds && message && got.refused
        && strstr(got.refused, "undeclared reference to 'google.protobuf.")) {
        count.messages++; /* refused by name: there are no messages of protocol buffers */
        holds = true;
    }
    if (!holds && !(holds = alike(want.refused, got.refused) && known(name))) {
        char *w = told(&want), *g = told(&got);
        fprintf(stderr, "== %s: %s\n  Kubernetes: %s\n  kubelua:    %s\n", name, expr, w, g);
        kl_free(w);
        kl_free(g);
    }
    outcome_fini(&want);
    outcome_fini(&got);
    kl_cel_env_free(env);
    return holds;
}

static void every_case_ends_as_in_kubernetes(void **state)
{
    (void)state;
    FILE *f = fopen(path, "r");
    const char *ci = getenv("CI");
    if (!f && ci && *ci && strcmp(ci, "false"))
        fail_msg("%s is not there; `make versions` makes it", path);
    if (!f)
        skip();
    char *line = NULL;
    size_t cap = 0, wrong = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, f)) > 0) {
        const kl_value *c = NULL;
        kl_err err = KL_ERR_INIT;
        assert_ok(kl_value_decode(line, (size_t)n, &c, &err), &err);
        count.cases++;
        if (kl_value_get(c, "left"))
            count.left++;
        else
            wrong += !holds(c);
        kl_value_unref(c);
    }
    free(line);
    fclose(f);
    size_t otherwise = 0;
    for (size_t i = 0; i < sizeof explained / sizeof *explained; i++) {
        otherwise += count.seen[i];
        print_message("%zu of %s: %s\n", count.seen[i], explained[i].name, explained[i].why);
        if (!count.seen[i])
            fail_msg("%s ends as in Kubernetes now: take it from the list", explained[i].name);
    }
    print_message(
        "%zu cases: %zu have values, %zu fail, %zu are refused (%zu for messages), %zu cannot be asked; "
        "%zu end otherwise for a known reason\n",
        count.cases, count.values, count.failed, count.refused, count.messages, count.left, otherwise);
    assert_true(count.values > 1000 && count.failed > 50 && count.refused > 300);
    assert_int_equal(wrong, 0);
}

KL_TESTS(cmocka_unit_test(every_case_ends_as_in_kubernetes))
