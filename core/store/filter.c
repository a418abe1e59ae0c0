/* filter.c - selectors of lists and watches. Every kind selects by metadata.name and metadata.namespace;
 * some kinds have more fields, as kube-apiserver has them; CRDs name theirs in selectableFields. */
#include "store/filter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "model/object.h"
#include "schema/names.h"
#include "schema/status.h"

static const struct {
    const char *group, *plural, *fields;
} selectable[] = {
    {"", "pods",
        " spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork "
        "status.phase status.podIP status.podIPs status.nominatedNodeName "},
    {"", "nodes", " spec.unschedulable "},
    {"", "namespaces", " status.phase name "},
    {"", "secrets", " type "},
    {"", "services", " spec.clusterIP spec.type "},
    {"", "events",
        " involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid "
        "involvedObject.apiVersion"
        " involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type "},
    {"events.k8s.io", "events",
        " regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion"
        " regarding.resourceVersion regarding.fieldPath reason reportingController type "},
    {"", "replicationcontrollers", " status.replicas "},
    {"apps", "replicasets", " status.replicas "},
    {"batch", "jobs", " status.successful "},
    {"certificates.k8s.io", "certificatesigningrequests", " spec.signerName "},
};

static bool can_select(const kl__kind *k, const char *field)
{
    if (!strcmp(field, "metadata.name") || !strcmp(field, "metadata.namespace"))
        return true;
    for (size_t i = 0; i < kl_value_len(k->selectable); i++) {
        const char *path = kl_value_str_at(kl_value_item(k->selectable, i), "jsonPath", NULL);
        if (path && *path == '.' && !strcmp(path + 1, field))
            return true;
    }
    char *word = kl_sprintf(" %s ", field);
    bool yes = false;
    for (size_t i = 0; i < sizeof selectable / sizeof *selectable && !yes; i++)
        yes = !strcmp(selectable[i].group, k->group) && !strcmp(selectable[i].plural, k->plural)
            && strstr(selectable[i].fields, word);
    kl_free(word);
    return yes;
}

/* Fails for an unknown field. Custom kinds, and built-in kinds with fields of their own, word it differently
 * from the others. */
static kl_status not_selectable(const kl__kind *k, const char *field, kl_err *err)
{
    bool own = kl_value_len(k->selectable) > 0 || k->custom;
    for (size_t i = 0; i < sizeof selectable / sizeof *selectable && !own; i++)
        own = !strcmp(selectable[i].group, k->group) && !strcmp(selectable[i].plural, k->plural);
    return own
        ? kl__fail_bad_request(err, "field label not supported: %s", field)
        : kl__fail_bad_request(err,
            "\"%s\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"", field);
}

void kl__filter_fini(kl__filter *f)
{
    kl_free(f->ns);
    kl_selector_free(f->labels);
    kl_field_selector_free(f->fields);
    *f = (kl__filter){0};
}

/* --- refusals, in kube-apiserver's words ---------------------------------------------------- */

static void add_fault(kl_buf *out, size_t *n, const char *field, const char *value, const char *why)
{
    kl_buf_printf(out, "%s%s: Invalid value: \"", (*n)++ ? ", " : "", field);
    kl_json_escape_any(out, value, strlen(value));
    kl_buf_printf(out, "\": %s", why);
}

static char *joined(const char *const *why, size_t n)
{
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, "");
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&text, "%s%s", i ? "; " : "", why[i]);
    return kl_buf_take(&text);
}

static bool whole_number(const char *s)
{
    char *end;
    errno = 0;
    strtoll(s, &end, 10);
    return *s && !strchr(" \t\n\r\v\f", *s) && !*end && !errno;
}

/* Writes what is wrong with the key, or with each of the values. */
static void requirement_faults(const kl_selector_fault *f, kl_buf *out)
{
    const char *why[KL_FAULTS_MAX];
    kl_buf text = KL_BUF_INIT;
    size_t faults = 0, n = kl__qualified_faults(f->key, why);
    bool compares = f->op == KL_SEL_GT || f->op == KL_SEL_LT;
    char *reason = joined(why, n);
    if (n)
        add_fault(&text, &faults, "<nil>", f->key, reason);
    kl_free(reason);
    for (size_t i = 0; i < f->nvalues && !n; i++) {
        char *index = kl_sprintf("values[%zu]", i), *field = kl_sprintf("%s[%s]", index, f->key);
        if (compares && !whole_number(f->values[i]))
            add_fault(&text, &faults, index, f->values[i],
                "for 'Gt', 'Lt' operators, the value must be an integer");
        size_t m = kl__label_value_faults(f->values[i], why);
        reason = joined(why, m);
        if (m)
            add_fault(&text, &faults, field, f->values[i], reason);
        kl_free(reason);
        kl_free(field);
        kl_free(index);
    }
    kl_buf_printf(out, faults > 1 ? "[%s]" : "%s", kl_buf_str(&text));
    kl_buf_fini(&text);
}

static kl_status bad_labels(const kl_selector_fault *f, kl_err *err)
{
    static const char *const wants[] = {
        [KL_WANT_START] = ", expected: !, identifier, or 'end of string'",
        [KL_WANT_NEXT] = ", expected: identifier after ','",
        [KL_WANT_KEY] = ", expected: identifier",
        [KL_WANT_OPERATOR] = ", expected: in, notin, =, ==, !=, gt, lt",
        [KL_WANT_VALUE] = ", expected: identifier",
        [KL_WANT_OPEN] = " expected: '('",
        [KL_WANT_FIRST] = ", expected: ',', ')' or identifier",
        [KL_WANT_MORE] = ", expected: ',' or ')'",
        [KL_WANT_WORD] = ", expected: ',', or identifier",
        [KL_WANT_END] = ", expected: ',' or 'end of string'",
    };
    bool within = f->want != KL_WANT_START && f->want != KL_WANT_NEXT && f->want != KL_WANT_END;
    kl_buf text = KL_BUF_INIT;
    kl_buf_puts(&text, within ? "unable to parse requirement: " : "");
    if (f->want)
        kl_buf_printf(&text, "found '%s'%s", f->found, wants[f->want]);
    else
        requirement_faults(f, &text);
    kl_status st = kl__fail_bad_request(err, "%s", kl_buf_str(&text));
    kl_buf_fini(&text);
    return st;
}

static kl_status bad_fields(const char *text, const char *term, kl_err *err)
{
    static const char escaped[] = "\\,=";
    const char *s = strchr(term, '=');
    if (!s)
        return kl__fail_bad_request(err, "invalid selector: '%s'; can't understand '%s'", text, term);
    s += s[1] == '=' && (s == term || s[-1] != '!') ? 2 : 1;
    for (; *s; s++) {
        if (*s == ',' || *s == '=')
            return kl__fail_bad_request(err, "invalid field selector: unescaped character in value: %d", *s);
        if (*s != '\\')
            continue;
        s++;
        if (!*s || !strchr(escaped, *s))
            break;
    }
    return kl__fail_bad_request(err, "invalid field selector: invalid escape sequence: \\%.*s",
        *s ? (int)kl_utf8_char(s, strlen(s)) : 0, s);
}

static kl_status read_selectors(kl__filter *f, const char *labels, const char *fields, kl_err *err)
{
    kl_selector_fault fault = {0};
    char *term = NULL;
    kl_status st = KL_OK;
    if (labels && *labels && kl_selector_parse_or(labels, &f->labels, &fault, NULL))
        st = bad_labels(&fault, err);
    else if (fields && *fields && kl_field_selector_parse_or(fields, &f->fields, &term, NULL))
        st = bad_fields(fields, term, err);
    kl_selector_fault_fini(&fault);
    kl_free(term);
    return st;
}

kl_status kl__filter_init(
    kl__filter *f, const kl__kind *k, const char *ns, const char *labels, const char *fields, kl_err *err)
{
    *f = (kl__filter){.ns = kl_strdup(ns)};
    kl_status st = read_selectors(f, labels, fields, err);
    for (size_t i = 0; !st && f->fields && i < kl_field_selector_len(f->fields); i++) {
        bool negated;
        const char *value, *field = kl_field_selector_term(f->fields, i, &negated, &value);
        if (!can_select(k, field))
            st = not_selectable(k, field, err);
    }
    if (st)
        kl__filter_fini(f);
    return st;
}

bool kl__filter_matches(const kl__filter *f, const kl_value *object)
{
    if (f->ns) {
        const char *ns = kl_object_namespace(object);
        if (!ns || strcmp(ns, f->ns))
            return false;
    }
    if (f->labels && !kl_selector_matches(f->labels, kl_value_at(object, "metadata", "labels", NULL)))
        return false;
    return !f->fields || kl_field_selector_selects(f->fields, object);
}

bool kl__filter_selects(const kl__filter *f) { return f->labels || f->fields; }
char *kl__filter_prefix(const kl__filter *f) { return f->ns ? kl_sprintf("%s/", f->ns) : kl_strdup(""); }
