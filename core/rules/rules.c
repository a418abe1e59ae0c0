/* rules.c - finds and compiles the rules of a schema, in apiextensions' order and with its messages. */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "rules/rules_impl.h"

#define KEY "x-kubernetes-validations"
#define DEAREST_MAX 4 /* rules that are named when all together cost too much */

typedef struct maker {
    kl_cel_rules *r;
    kl_cel_complain *complain;
    void *arg;
    kl_buf path;
    const char *forbidden;  /* the place below which oldSelf has no counterpart, or NULL */
    size_t said, malformed; /* complaints, and those about form: nothing around these is compiled */
    bool accepted;
    struct times { /* the maximum number of values of a place */
        bool bounded;
        uint64_t n;
    } times;
    uint64_t total; /* of all estimates */
    struct dear {
        char *field;
        uint64_t cost;
    } dearest[DEAREST_MAX];
    size_t ndearest;
} maker;

char *kl_cel_trimmed(const char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    size_t n = strlen(s);
    while (n && isspace((unsigned char)s[n - 1]))
        n--;
    return kl_strndup(s, n);
}

/* ---------------------------------------------------------------- complaints */

static void KL_PRINTF(5, 6)
    blame(maker *m, const char *reason, size_t i, const char *part, const char *fmt, ...)
{
    m->said++;
    if (!m->complain)
        return;
    va_list ap;
    va_start(ap, fmt);
    char *text = kl_vsprintf(fmt, ap),
         *field = kl_sprintf("%s." KEY "[%zu].%s", kl_buf_str(&m->path), i, part);
    va_end(ap);
    m->complain(m->arg, false, reason, field, text);
    kl_free(field);
    kl_free(text);
}

/* The text, quoted as in Go. */
static char *quoted(const char *s)
{
    kl_buf b = KL_BUF_INIT;
    kl_buf_putc(&b, '"');
    for (; *s; s++) {
        static const char from[] = "\a\b\f\n\r\t\v\\\"", to[] = "abfnrtv\\\"";
        const char *at = strchr(from, *s);
        if (at)
            kl_buf_printf(&b, "\\%c", to[at - from]);
        else if ((unsigned char)*s < ' ' || *s == 127)
            kl_buf_printf(&b, "\\x%02x", (unsigned char)*s);
        else
            kl_buf_putc(&b, *s);
    }
    kl_buf_putc(&b, '"');
    return kl_buf_take(&b);
}

/* The rule as the real server shows it: as Go's JSON, which escapes HTML. */
static char *shown(const kl__crule *r)
{
    static const char *const keys[] = {
        "rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"};
    kl_builder *b = kl_builder_new();
    kl_buf json = KL_BUF_INIT, out = KL_BUF_INIT;
    kl_build_object(b);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const kl_value *v = kl_value_get(r->json, keys[i]);
        char *name = kl_strdup(keys[i]);
        name[0] = (char)(name[0] - 'a' + 'A');
        kl_build_key(b, name);
        if (v)
            kl_build_value(b, v);
        else if (i == 3 || i == 5)
            kl_build_null(b);
        else
            kl_build_str(b, "");
        kl_free(name);
    }
    kl_build_end(b);
    const kl_value *whole = kl_builder_done(b);
    kl_value_encode(whole, &json);
    kl_value_unref(whole);
    for (const char *p = kl_buf_str(&json); *p; p++)
        if (*p == '<' || *p == '>' || *p == '&')
            kl_buf_printf(&out, "\\u00%02x", (unsigned char)*p);
        else
            kl_buf_putc(&out, *p);
    kl_buf_fini(&json);
    return kl_buf_take(&out);
}

/* ---------------------------------------------------------------- what rules may cost */

static uint64_t product(uint64_t a, uint64_t b)
{
    uint64_t c;
    return __builtin_mul_overflow(a, b, &c) ? UINT64_MAX : c;
}

/* The maximum number of values of each part of a value of this schema. */
static struct times times_below(struct times around, const kl_value *schema)
{
    const char *type = kl_value_str_at(schema, "type", NULL);
    bool list = type && !strcmp(type, "array"),
         map = type && !strcmp(type, "object") && kl_value_get(schema, "additionalProperties");
    int64_t n;
    if (!around.bounded || (!list && !map))
        return around;
    if (!kl_value_int(kl_value_get(schema, list ? "maxItems" : "maxProperties"), &n))
        return (struct times){.bounded = false};
    return (struct times){true, product(around.n, n < 0 ? 0 : (uint64_t)n)};
}

static char *too_dear(const char *what, uint64_t cost, uint64_t limit)
{
    double factor = (double)cost / (double)limit;
    char *by = factor > 100 ? kl_strdup("more than 100x")
        : factor < 1.5      ? kl_sprintf("%fx", factor)
                            : kl_sprintf("%.1fx", factor);
    char *text = kl_sprintf(
        "Forbidden: %s exceeds budget by factor of %s (try simplifying the rule, or adding "
        "maxItems, maxProperties, and maxLength where arrays, maps, and strings are "
        "declared)",
        what, by);
    kl_free(by);
    return text;
}

/* Counts the cost of a rule or messageExpression (`part`), and complains if it exceeds the limit. */
static void count(maker *m, size_t i, const char *part, const char *what, uint64_t cost)
{
    if (cost > KL_CEL_RULE_ESTIMATE && !m->accepted) {
        char *text = too_dear(what, cost, KL_CEL_RULE_ESTIMATE);
        blame(m, "FieldValueForbidden", i, part, "%s", text);
        kl_free(text);
    }
    m->total = m->total + cost < m->total ? UINT64_MAX : m->total + cost;
    if (cost < KL_CEL_SCHEMA_ESTIMATE / 100)
        return;
    size_t at = m->ndearest;
    while (at && m->dearest[at - 1].cost < cost)
        at--;
    if (at == DEAREST_MAX)
        return;
    if (m->ndearest == DEAREST_MAX)
        kl_free(m->dearest[--m->ndearest].field);
    memmove(&m->dearest[at + 1], &m->dearest[at], (m->ndearest++ - at) * sizeof *m->dearest);
    m->dearest[at] = (struct dear){kl_sprintf("%s." KEY "[%zu].%s", kl_buf_str(&m->path), i, part), cost};
}

static void estimate_rule(maker *m, const kl__cplace *p, const kl_cel *rule, size_t i)
{
    if (m->complain)
        count(m, i, "rule", "estimated rule cost",
            product(kl_cel_estimate(rule, p->type),
                m->times.bounded ? m->times.n : kl_cel_type_cardinality(p->type)));
}

static void estimate_message(maker *m, const kl__cplace *p, const kl_cel *message, size_t i)
{
    if (m->complain)
        count(
            m, i, "messageExpression", "estimated messageExpression cost", kl_cel_estimate(message, p->type));
}

static void judge_total(maker *m)
{
    bool dear = m->total > KL_CEL_SCHEMA_ESTIMATE;
    for (size_t i = 0; i < m->ndearest; i++) {
        if (dear)
            m->complain(m->arg, false, "FieldValueForbidden", m->dearest[i].field,
                "Forbidden: contributed to estimated rule cost total exceeding cost limit for entire "
                "OpenAPIv3 "
                "schema");
        kl_free(m->dearest[i].field);
    }
    if (!dear)
        return;
    char *text = too_dear("x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema",
        m->total, KL_CEL_SCHEMA_ESTIMATE);
    m->complain(m->arg, false, "FieldValueForbidden", kl_buf_str(&m->path), text);
    kl_free(text);
}

/* ---------------------------------------------------------------- what a rule must look like */

static bool newline(const char *s) { return strpbrk(s, "\n\r") != NULL; }

static const kl_value *child(const kl_value *s, const char *name, size_t n)
{
    const kl_value *p = kl_value_get(s, "properties"), *v = p ? kl_value_getn(p, name, n) : NULL;
    const kl_value *values = kl_value_get(s, "additionalProperties");
    return p ? v : kl_value_type(values) == KL_OBJECT ? values : NULL;
}

/* Follows one step of a fieldPath; NULL: it leads nowhere. *end is behind the step. */
static const kl_value *step(const kl_value *s, const char *p, const char **end, kl_buf *out)
{
    kl_buf name = KL_BUF_INIT;
    bool bracket = *p == '[', named = kl_value_get(s, "properties") != NULL;
    const kl_value *next = NULL;
    if (bracket && p[1] == '\'') {
        for (p += 2; *p && *p != '\''; p++) {
            if (*p == '\\' && p[1])
                p++;
            kl_buf_putc(&name, *p);
        }
        if (p[0] == '\'' && p[1] == ']') {
            *end = p + 2;
            next = child(s, kl_buf_str(&name), name.len);
        }
    } else if (*p == '.') {
        size_t n = strcspn(p + 1, ".[]");
        kl_buf_add(&name, p + 1, n);
        *end = p + 1 + n;
        next = n ? child(s, kl_buf_str(&name), name.len) : NULL;
    }
    if (next && named)
        kl_buf_printf(out, "%s%s", out->len ? "." : "", kl_buf_str(&name));
    else if (next)
        kl_buf_printf(out, "[%s]", kl_buf_str(&name));
    kl_buf_fini(&name);
    return next;
}

static char *field_path(const kl_value *schema, const char *path)
{
    kl_buf b = KL_BUF_INIT;
    while (*path && schema)
        schema = step(schema, path, &path, &b);
    if (schema && b.len)
        return kl_buf_take(&b);
    kl_buf_fini(&b);
    return NULL;
}

static void check_form(maker *m, kl__cplace *p, kl__crule *r, size_t i)
{
    static const char *const reasons[] = {
        "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"};
    char *rule = kl_cel_trimmed(kl__crule_text(r, "rule")),
         *message = kl_cel_trimmed(kl__crule_text(r, "message")),
         *expression = kl_cel_trimmed(kl__crule_text(r, "messageExpression")), *s;
    const char *field = kl__crule_text(r, "fieldPath"), *reason = kl__crule_text(r, "reason");
    size_t said = m->said;
    if (!*rule)
        blame(m, "FieldValueRequired", i, "rule", "Required value: rule is not specified");
    else if (*kl__crule_text(r, "message") && (!*message || newline(message))) {
        s = quoted(kl__crule_text(r, "message"));
        blame(m, "FieldValueInvalid", i, "message", "Invalid value: %s: %s", s,
            *message ? "must not contain line breaks" : "must be non-empty if specified");
        kl_free(s);
    } else if (newline(rule) && !*message)
        blame(m, "FieldValueRequired", i, "message",
            "Required value: message must be specified if rule contains line breaks");
    if (*kl__crule_text(r, "messageExpression") && !*expression)
        blame(m, "FieldValueRequired", i, "messageExpression",
            "Required value: messageExpression must be non-empty if specified");
    bool known = !kl_value_get(r->json, "reason");
    for (size_t k = 0; k < 4 && !known; k++)
        known = !strcmp(reason, reasons[k]);
    if (!known)
        blame(m, "FieldValueNotSupported", i, "reason",
            "Unsupported value: \"%s\": supported values: \"FieldValueDuplicate\", \"FieldValueForbidden\", "
            "\"FieldValueInvalid\", \"FieldValueRequired\"",
            reason);
    s = quoted(field);
    if (*field && newline(field))
        blame(m, "FieldValueInvalid", i, "fieldPath", "Invalid value: %s: must not contain line breaks", s);
    if (*field && !(r->field = field_path(p->schema, field)))
        blame(m, "FieldValueInvalid", i, "fieldPath", "Invalid value: %s: must be a valid path", s);
    m->malformed += m->said - said;
    kl_free(s);
    kl_free(rule);
    kl_free(message);
    kl_free(expression);
}

/* ---------------------------------------------------------------- compiling */

static kl_cel_env *env_of(kl__cplace *p, bool optional)
{
    kl_cel_env **env = &p->env[optional];
    if (*env)
        return *env;
    *env = kl_cel_env_new();
    kl_cel_env_var(*env, "self", p->type);
    kl_cel_env_var(*env, "oldSelf", optional ? kl_cel_type_optional(*env, p->type) : p->type);
    return *env;
}

/* Compiles a text. Returns NULL, or why that failed, which the caller frees. */
static char *compile(kl_cel_env *env, const char *text, kl__ckind wanted, const char *what, kl_cel **out)
{
    kl_err err = KL_ERR_INIT;
    char *why = NULL;
    if (kl_cel_compile(env, text, out, &err))
        why = kl_sprintf("%s%s", *what ? "messageExpression " : "", kl_err_message(&err));
    else if (kl_cel_type_of(*out)->kind != wanted)
        why = kl_strdup(
            *what ? "messageExpression must evaluate to a string" : "cel expression must evaluate to a bool");
    kl_err_fini(&err);
    return why;
}

static void compile_rule(maker *m, kl__cplace *p, kl__crule *r, size_t i)
{
    kl_cel_env *env = env_of(p, r->optional);
    char *text = shown(r);
    const char *message = kl__crule_text(r, "messageExpression");
    r->failure = compile(env, kl__crule_text(r, "rule"), KL_C_BOOL, "", &r->rule);
    if (r->failure)
        blame(m, "FieldValueInvalid", i, "rule", "Invalid value: %s: %s", text, r->failure);
    else {
        r->old = kl_cel_uses(r->rule, "oldSelf");
        estimate_rule(m, p, r->rule, i);
        char *why = *message ? compile(env, message, KL_C_STRING, "message", &r->message) : NULL;
        if (why) {
            blame(m, "FieldValueInvalid", i, "messageExpression", "Invalid value: %s: %s", text, why);
            kl_cel_free(r->message);
            r->message = NULL;
        } else if (r->message)
            estimate_message(m, p, r->message, i);
        kl_free(why);
    }
    kl_free(text);
    if (r->old && m->forbidden) {
        char *rule = quoted(kl__crule_text(r, "rule"));
        blame(m, "FieldValueInvalid", i, "rule",
            "Invalid value: %s: oldSelf cannot be used on the uncorrelatable portion of the schema within %s",
            rule, m->forbidden);
        kl_free(rule);
    } else if (!r->old && kl_value_get(r->json, "optionalOldSelf"))
        blame(m, "FieldValueInvalid", i, "optionalOldSelf",
            "Invalid value: %s: may not be set if oldSelf is not used in rule",
            r->optional ? "true" : "false");
}

/* Makes the rules of a place. `malformed`: the number before the places below were made; rules compile only
 * if it stays. */
static void make_rules(maker *m, kl__cplace *p, const kl_value *list, size_t malformed)
{
    p->nrules = kl_value_len(list);
    p->rules = kl_new_array(kl__crule, p->nrules);
    for (size_t i = 0; i < p->nrules; i++) {
        p->rules[i].json = kl_value_item(list, i);
        p->rules[i].optional = kl_value_bool(kl_value_get(p->rules[i].json, "optionalOldSelf"), false);
        check_form(m, p, &p->rules[i], i);
    }
    for (size_t i = 0; i < p->nrules && m->malformed == malformed && p->type; i++)
        compile_rule(m, p, &p->rules[i], i);
}

/* ---------------------------------------------------------------- the tree */

static void place_free(kl__cplace *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->nrules; i++) {
        kl_cel_free(p->rules[i].rule);
        kl_cel_free(p->rules[i].message);
        kl_free(p->rules[i].failure);
        kl_free(p->rules[i].field);
    }
    kl_free(p->rules);
    kl_cel_env_free(p->env[0]);
    kl_cel_env_free(p->env[1]);
    place_free(p->items);
    place_free(p->values);
    for (size_t i = 0; i < p->nmembers; i++)
        place_free(p->members[i].place);
    kl_free(p->members);
    kl_free(p);
}

static kl__cplace *place(maker *m, const kl_value *schema, const kl__ctype *type);

static kl__cplace *below(
    maker *m, const kl_value *schema, const kl__ctype *type, const char *fmt, const char *key)
{
    size_t mark = m->path.len;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    kl_buf_printf(&m->path, fmt, key);
#pragma GCC diagnostic pop
    kl__cplace *p = place(m, schema, type);
    m->path.len = mark;
    if (m->path.data)
        m->path.data[mark] = 0;
    return p;
}

static void make_members(maker *m, kl__cplace *p)
{
    const kl_value *properties = kl_value_get(p->schema, "properties");
    p->members = kl_new_array(struct kl__cmember, kl_value_len(properties) + 1);
    for (size_t i = 0; i < kl_value_len(properties); i++) {
        const char *key;
        size_t n;
        const kl_value *schema = kl_value_member(properties, i, &key, &n);
        const kl__ctype *type = NULL;
        for (size_t k = 0; p->type && k < p->type->nfields; k++)
            if (!strcmp(p->type->fields[k].key, key))
                type = p->type->fields[k].type;
        if (!type)
            type = kl_cel_type_of_schema(m->r->types, schema,
                kl_value_bool(kl_value_get(schema, "x-kubernetes-embedded-resource"), false));
        kl__cplace *x = below(m, schema, type, ".properties[%s]", key);
        if (x)
            p->members[p->nmembers++] = (struct kl__cmember){key, x};
    }
}

static void make_items(maker *m, kl__cplace *p)
{
    const kl_value *items = kl_value_get(p->schema, "items");
    const char *kind = kl_value_str_at(p->schema, "x-kubernetes-list-type", NULL), *was = m->forbidden;
    char *here = NULL;
    if (!items)
        return;
    if (!m->forbidden && (!kind || strcmp(kind, "map")))
        m->forbidden = here = kl_strdup(kl_buf_str(&m->path));
    p->items = below(m, items, p->type && p->type->kind == KL_C_LIST ? p->type->p[0] : NULL, "%s", ".items");
    m->forbidden = was;
    kl_free(here);
}

static void make_values(maker *m, kl__cplace *p)
{
    const kl_value *values = kl_value_get(p->schema, "additionalProperties");
    if (kl_value_type(values) == KL_OBJECT)
        p->values = below(m, values, p->type && p->type->kind == KL_C_MAP ? p->type->p[1] : NULL, "%s",
            ".additionalProperties");
}

static kl__cplace *place(maker *m, const kl_value *schema, const kl__ctype *type)
{
    kl__cplace *p = kl_new(kl__cplace);
    size_t malformed = m->malformed;
    struct times around = m->times;
    m->times = times_below(around, schema);
    p->schema = schema;
    p->type = type;
    make_values(m, p);
    make_members(m, p);
    make_items(m, p);
    m->times = around;
    make_rules(m, p, kl_value_get(schema, KEY), malformed);
    if (p->nrules || p->items || p->values || p->nmembers)
        return p;
    place_free(p);
    return NULL;
}

kl_cel_rules *kl_cel_rules_new(
    const kl_value *schema, const char *path, bool accepted, kl_cel_complain *complain, void *arg)
{
    kl_cel_rules *r = kl_new(kl_cel_rules);
    maker m = {.r = r, .complain = complain, .arg = arg, .accepted = accepted, .times = {true, 1}};
    kl_buf_puts(&m.path, path);
    r->schema = kl_value_ref(schema);
    r->types = kl_cel_env_new();
    r->root = place(&m, schema, kl_cel_type_of_schema(r->types, schema, true));
    judge_total(&m);
    kl_buf_fini(&m.path);
    if (r->root)
        return r;
    kl_cel_rules_free(r);
    return NULL;
}

void kl_cel_rules_free(kl_cel_rules *r)
{
    if (!r)
        return;
    place_free(r->root);
    kl_cel_env_free(r->types);
    kl_value_unref(r->schema);
    kl_free(r);
}
