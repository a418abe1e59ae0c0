/* fieldselector.c - "metadata.name=a,status.phase!=Running": terms that must all hold.
 *
 * A term is field, "=" or "==" or "!=", value; the first operator splits. In values a backslash escapes
 * itself, comma and "=". A term with neither field nor value says nothing and is dropped. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "model/selector.h"

typedef struct term {
    char *field, *value;
    bool negated;
} term;

struct kl_field_selector {
    term *v;
    size_t len;
};

static void escape(const char *s, kl_buf *out)
{
    for (; *s; s++) {
        if (strchr("\\,=", *s))
            kl_buf_putc(out, '\\');
        kl_buf_putc(out, *s);
    }
}

char *kl_field_value_escape(const char *value)
{
    kl_buf out = KL_BUF_INIT;

    kl_buf_puts(&out, "");
    escape(value, &out);
    return kl_buf_take(&out);
}

kl_status kl_field_value_unescape(const char *escaped, char **out, kl_err *err)
{
    kl_buf value = KL_BUF_INIT;
    const char *s;
    kl_status st = KL_OK;

    kl_buf_puts(&value, "");
    for (s = escaped; *s && !st; s++) {
        if (*s == '\\') {
            s++;
            if (!*s || !strchr("\\,=", *s))
                st = kl_fail(err, KL_ESYNTAX,
                    "field selector: in the value \"%.200s\" a backslash may stand only before a backslash, "
                    "',' or '='",
                    escaped);
        } else if (*s == ',' || *s == '=') {
            st = kl_fail(err, KL_ESYNTAX,
                "field selector: '%c' in the value \"%.200s\" needs a backslash before it", *s, escaped);
        }
        if (st)
            break;
        kl_buf_putc(&value, *s);
    }
    if (st)
        kl_buf_fini(&value);
    else
        *out = kl_buf_take(&value);
    return st;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The terms between unescaped commas, sorted; the caller frees each and the array. */
static char **split(const char *text, size_t *n)
{
    size_t most = 1, i;
    const char *s, *from = text;
    char **v;

    for (i = 0; text[i]; i++)
        most += text[i] == ',';
    v = kl_new_array(char *, most + 1);
    *n = 0;
    for (s = text;; s++) {
        if (*s == '\\' && s[1]) {
            s++;
        } else if (!*s || *s == ',') {
            v[(*n)++] = kl_strndup(from, (size_t)(s - from));
            from = s + 1;
            if (!*s)
                break;
        }
    }
    qsort(v, *n, sizeof *v, by_text);
    return v;
}

static kl_status read_term(const char *text, const char *part, term *out, kl_err *err)
{
    const char *at = part;
    size_t nop;
    kl_status st;

    while (*at && *at != '=' && !(*at == '!' && at[1] == '='))
        at++;
    if (!*at)
        return kl_fail(err, KL_ESYNTAX,
            "field selector \"%.200s\": \"%.200s\" is not field=value or field!=value", text, part);
    nop = *at == '!' || at[1] == '=' ? 2 : 1;
    st = kl_field_value_unescape(at + nop, &out->value, err);
    if (st)
        return st;
    out->field = kl_strndup(part, (size_t)(at - part));
    out->negated = *at == '!';
    return KL_OK;
}

static void term_fini(term *t)
{
    kl_free(t->field);
    kl_free(t->value);
}

kl_status kl_field_selector_parse_or(const char *text, kl_field_selector **out, char **wrong, kl_err *err)
{
    size_t n = strlen(text), i;
    if (n > KL_SELECTOR_BYTES_MAX) {
        *wrong = kl_strndup(text, 60);
        return kl_fail(err, KL_EINVAL, "field selector \"%.60s...\" has %zu bytes, at most %d are allowed",
            text, n, KL_SELECTOR_BYTES_MAX);
    }
    kl_field_selector *s = kl_new(kl_field_selector);
    kl_status st = KL_OK;
    char **parts = split(text, &n);

    s->v = kl_new_array(term, n);
    for (i = 0; i < n && !st; i++) {
        term t = {0};

        if (!*parts[i])
            continue;
        st = read_term(text, parts[i], &t, err);
        if (!st && (*t.field || *t.value))
            s->v[s->len++] = t;
        else
            term_fini(&t);
        if (st)
            *wrong = kl_strdup(parts[i]);
    }
    for (i = 0; i < n; i++)
        kl_free(parts[i]);
    kl_free(parts);
    if (st)
        kl_field_selector_free(s);
    else
        *out = s;
    return st;
}

kl_status kl_field_selector_parse(const char *text, kl_field_selector **out, kl_err *err)
{
    char *wrong = NULL;
    kl_status st = kl_field_selector_parse_or(text, out, &wrong, err);

    kl_free(wrong);
    return st;
}

kl_field_selector *kl_field_selector_of(const char *field, const char *value, bool negated)
{
    kl_field_selector *s = kl_new(kl_field_selector);

    s->v = kl_new(term);
    s->v[0] = (term){kl_strdup(field), kl_strdup(value), negated};
    s->len = 1;
    return s;
}

void kl_field_selector_free(kl_field_selector *s)
{
    size_t i;

    if (!s)
        return;
    for (i = 0; i < s->len; i++)
        term_fini(&s->v[i]);
    kl_free(s->v);
    kl_free(s);
}

char *kl_field_selector_text(const kl_field_selector *s)
{
    kl_buf out = KL_BUF_INIT;
    size_t i;

    kl_buf_puts(&out, "");
    for (i = 0; i < s->len; i++) {
        kl_buf_printf(&out, "%s%s%s", i ? "," : "", s->v[i].field, s->v[i].negated ? "!=" : "=");
        escape(s->v[i].value, &out);
    }
    return kl_buf_take(&out);
}

size_t kl_field_selector_len(const kl_field_selector *s) { return s->len; }

const char *kl_field_selector_term(const kl_field_selector *s, size_t i, bool *negated, const char **value)
{
    if (negated)
        *negated = s->v[i].negated;
    if (value)
        *value = s->v[i].value;
    return s->v[i].field;
}

const char *kl_field_selector_exact(const kl_field_selector *s, const char *field)
{
    size_t i;

    for (i = 0; i < s->len; i++)
        if (!s->v[i].negated && !strcmp(s->v[i].field, field))
            return s->v[i].value;
    return NULL;
}

bool kl_field_selector_matches(
    const kl_field_selector *s, const char *(*lookup)(void *arg, const char *field), void *arg)
{
    size_t i;

    for (i = 0; i < s->len; i++)
        if (!strcmp(lookup(arg, s->v[i].field), s->v[i].value) == s->v[i].negated)
            return false;
    return true;
}

/* --- objects ------------------------------------------------------------------------------ */

struct lookup {
    const kl_value *object;
    char number[24];
};

/* The field as text, the way kube-apiserver's field sets spell it. */
static const char *field_text(void *arg, const char *field)
{
    struct lookup *l = arg;
    const kl_value *v = l->object;
    if (!strcmp(field, "name"))
        field = "metadata.name";
    if (!strcmp(field, "status.podIPs"))
        return kl_value_str_at(v, "status", "podIP", NULL) ? kl_value_str_at(v, "status", "podIP", NULL) : "";
    if (!strcmp(field, "source")) {
        const char *component = kl_value_str_at(v, "source", "component", NULL);
        return component && *component ? component : field_text(arg, "reportingComponent");
    }
    if (!strcmp(field, "reportingController")) /* events are stored as v1 */
        field = "reportingComponent";
    if (!strncmp(field, "regarding.", 10)) {
        v = kl_value_get(v, "involvedObject");
        field += 10;
    }
    for (const char *p = field; v && *p;) {
        size_t n = strcspn(p, ".");
        v = kl_value_getn(v, p, n);
        p += n + (p[n] == '.');
    }
    int64_t number;
    switch (kl_value_type(v)) {
    case KL_STRING: return kl_value_str(v);
    case KL_BOOL: return kl_value_bool(v, false) ? "true" : "false";
    case KL_INT:
        kl_value_int(v, &number);
        snprintf(l->number, sizeof l->number, "%" PRId64, number);
        return l->number;
    default: break;
    }
    if (!strcmp(field, "spec.unschedulable") || !strcmp(field, "spec.hostNetwork"))
        return "false";
    if (!strcmp(field, "status.replicas") || !strcmp(field, "status.successful"))
        return "0";
    return "";
}

bool kl_field_selector_selects(const kl_field_selector *s, const kl_value *object)
{
    struct lookup l = {.object = object};
    return kl_field_selector_matches(s, field_text, &l);
}
