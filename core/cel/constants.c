/* constants.c - what is known of an expression before it is evaluated: literal formats that do not fit their
 * arguments, and conversions and patterns of constants that fail. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/regex.h"
#include "cel/cel_impl.h"

/* ---------------------------------------------------------------- formats */

static bool is_kind(const kl__ctype *t, const char *letters)
{
    static const char of[] = {[KL_C_NULL] = '0',
        [KL_C_BOOL] = 'b',
        [KL_C_INT] = 'i',
        [KL_C_UINT] = 'u',
        [KL_C_DOUBLE] = 'd',
        [KL_C_STRING] = 's',
        [KL_C_BYTES] = 'y',
        [KL_C_TIME] = 't',
        [KL_C_DURATION] = 'D',
        [KL_C_LIST] = 'L',
        [KL_C_MAP] = 'M',
        [KL_C_TYPE] = 'T'};
    return t->kind == KL_C_DYN
        || ((size_t)t->kind < sizeof of && of[t->kind] && strchr(letters, of[t->kind]));
}

/* The first part that cannot be shown as a text, or NULL. */
static const kl__cexpr *unshown(const kl__cexpr *x)
{
    const kl__cexpr *bad = is_kind(x->type, "0biudsytDLMT") ? NULL : x;
    for (size_t i = 0; !bad && (x->node == KL_E_LIST || x->node == KL_E_MAP) && i < x->n; i++)
        bad = unshown(x->arg[i]);
    return bad;
}

static const kl__cexpr *misfit(char clause, const kl__cexpr *x)
{
    switch (clause) {
    case 's': return unshown(x);
    case 'f':
    case 'e': return is_kind(x->type, "ds") ? NULL : x;
    case 'b': return is_kind(x->type, "iub") ? NULL : x;
    case 'x':
    case 'X': return is_kind(x->type, "iusy") ? NULL : x;
    default: return is_kind(x->type, "iu") ? NULL : x; /* d, o */
    }
}

/* Checks 'literal'.format([...]). */
static void check_format(kl__csource *s, const kl__cexpr *call)
{
    const char *text = call->arg[0]->value.s.p;
    size_t n = call->arg[0]->value.s.n, used = 0;
    const kl__cexpr *list = call->arg[1];
    for (size_t i = 0; i < n; i++) {
        if (text[i] != '%')
            continue;
        if (++i < n && text[i] == '%')
            continue;
        char why[KL__CLAUSE_WHY], clause = 0;
        if (i == n) {
            kl__cel_blame(s, call->at, "unexpected end of string");
            return;
        }
        if (used == list->n) {
            kl__cel_blame(s, call->at, "index %zu out of range", used);
            return;
        }
        i += kl__cel_clause(text + i, n - i, &clause, &(int){0}, why) - 1;
        if (!clause) {
            kl__cel_blame(s, call->at, "could not parse formatting clause: %s", why);
            return;
        }
        const kl__cexpr *bad = misfit(clause, list->arg[used++]);
        if (bad) {
            kl__cel_blame(s, bad->at, "error during formatting: %s, was given %s",
                kl__cel_clause_takes(clause), bad->type->name);
            return;
        }
    }
    if (used < list->n)
        kl__cel_blame(s, call->at, "too many arguments supplied to string.format (expected %zu, got %zu)",
            used, list->n);
}

void kl__cel_check_formats(kl__csource *s, const kl__cexpr *x)
{
    if (x->node == KL_E_CALL && x->member && !strcmp(x->name, "format") && x->n == 2
        && x->arg[0]->node == KL_E_CONST && x->arg[1]->node == KL_E_LIST)
        check_format(s, x);
    for (size_t i = 0; i < x->n; i++)
        if (x->arg[i])
            kl__cel_check_formats(s, x->arg[i]);
}

/* ---------------------------------------------------------------- constants */

bool kl__cel_converts(const kl__cexpr *x)
{
    static const char names[] = " int uint double string bytes bool duration timestamp type dyn ";
    char name[32];
    snprintf(name, sizeof name, " %s ", x->name);
    return !x->member && x->n == 1 && strstr(names, name);
}

/* Why a pattern that is a constant is none; the caller frees. */
static char *bad_pattern(kl__cev *e, const kl__cexpr *x)
{
    kl__cval v = kl__cel_run(e, x);
    kl_regex *re = NULL;
    kl_err err = KL_ERR_INIT;
    char *why = NULL;
    if (v.kind == KL_C_STRING && kl_regex_new(v.s.p, v.s.n, &re, &err))
        why = kl_strdup(kl_err_message(&err));
    kl_regex_free(re);
    kl_err_fini(&err);
    return why;
}

/* Why a constant can be no key in x[key]; the caller frees. */
static char *bad_key(kl__cev *e, const kl__cexpr *x)
{
    static const char *const names[] = {[KL_C_NULL] = "Null",
        [KL_C_BYTES] = "Bytes",
        [KL_C_TIME] = "Timestamp",
        [KL_C_DURATION] = "Duration"};
    kl__cval v = kl__cel_run(e, x);
    bool bad = (size_t)v.kind < sizeof names / sizeof *names && names[v.kind];
    return bad ? kl_sprintf("invalid qualifier type: types.%s", names[v.kind]) : NULL;
}

/* Evaluates the constants in an expression, as cel-go's planner does it, until one fails: *why, which the
 * caller frees. True: it is a constant itself. */
static bool fold(kl__cev *e, const kl__cexpr *x, char **why)
{
    bool constant = true, second = false;
    for (size_t i = 0; i < x->n && !*why; i++) {
        bool it = x->arg[i] && fold(e, x->arg[i], why);
        second = second || (it && i == 1);
        constant = constant && it && !(x->optional && x->optional[i]);
    }
    if (*why || x->node == KL_E_CONST || x->node == KL_E_LIST || x->node == KL_E_MAP)
        return constant && !*why;
    if (x->node != KL_E_CALL)
        return false;
    if (second && !strcmp(x->name, "_[_]"))
        *why = bad_key(e, x->arg[1]);
    else if (second
        && (!strcmp(x->name, "matches") || !strcmp(x->name, "find") || !strcmp(x->name, "findAll")))
        *why = bad_pattern(e, x->arg[1]);
    if (!constant || !kl__cel_converts(x))
        return false;
    kl__cval v = kl__cel_run(e, x);
    if (v.kind == KL_C_ERROR)
        *why = kl_sprintf("%.*s", (int)v.s.n, v.s.p);
    return !*why;
}

char *kl__cel_fold(const kl_cel_env *env, const kl__cexpr *x)
{
    kl__carena arena = {0};
    kl_cel_run run = {.limit = KL_CEL_CALL_COST};
    kl__cev e = {.a = &arena, .env = env, .run = &run};
    char *why = NULL;
    (void)fold(&e, x, &why);
    kl__cev_release(&e);
    kl__carena_fini(&arena);
    return why;
}
