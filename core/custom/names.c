/* names.c - see apiextensions-apiserver/pkg/controller/status/naming_controller.go. A name is taken by the
 * definition that has it in its accepted names; resources and kinds are two sets of names. */
#include "custom/names.h"

#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/x509.h"
#include "schema/edit.h"

static const char *text(const kl_value *names, const char *key)
{
    const char *s = kl_value_str(kl_value_get(names, key));
    return s ? s : "";
}

void kl_names_default(const kl_value **crd)
{
    const char *kind = kl_value_str_at(*crd, "spec", "names", "kind", NULL);
    if (kind && *kind && !kl_value_str_at(*crd, "spec", "names", "listKind", NULL)) {
        char *list = kl_sprintf("%sList", kind);
        KL_EDIT(crd, kl_value_of_str(list), "spec", "names", "listKind");
        kl_free(list);
    }
    kind = kl_value_str_at(*crd, "spec", "names", "kind", NULL);
    if (kind && *kind && !kl_value_str_at(*crd, "spec", "names", "singular", NULL)) {
        char *lower = kl_strdup(kind);
        for (char *p = lower; *p; p++)
            if (*p >= 'A' && *p <= 'Z')
                *p = (char)(*p - 'A' + 'a');
        KL_EDIT(crd, kl_value_of_str(lower), "spec", "names", "singular");
        kl_free(lower);
    }
}

/* Whether a definition of the group has accepted the name: as the name of a kind or of a resource. */
static bool taken(const kl__bucket *crds, const char *group, bool kind, const char *name)
{
    for (size_t i = 0; i < crds->len; i++) {
        const kl_value *o = crds->v[i]->object, *names = kl_value_at(o, "status", "acceptedNames", NULL);
        const char *in = kl_value_str_at(o, "spec", "group", NULL);
        if (!in || strcmp(in, group))
            continue;
        if (kind ? !strcmp(text(names, "kind"), name) || !strcmp(text(names, "listKind"), name)
                 : !strcmp(text(names, "plural"), name) || !strcmp(text(names, "singular"), name)
                    || kl_value_has_str(kl_value_get(names, "shortNames"), name))
            return true;
    }
    return false;
}

typedef struct naming {
    const kl__bucket *crds;
    const char *group;
    const kl_value *wanted, *accepted; /* names */
    const kl_value *names;             /* to be accepted */
    const char *reason;                /* of the last conflict; NULL: there is none */
    char *message;
} naming;

static void conflict(naming *n, const char *reason, char *message)
{
    kl_free(n->message);
    n->reason = reason;
    n->message = message;
}

static void one_name(naming *n, const char *key, bool kind, const char *reason)
{
    const char *name = text(n->wanted, key);
    if (strcmp(name, text(n->accepted, key)) && taken(n->crds, n->group, kind, name))
        conflict(n, reason, kl_sprintf("\"%s\" is already in use", name));
    else
        KL_EDIT(&n->names, kl_value_ref(kl_value_get(n->wanted, key)), key);
}

/* All of them or none. */
static void short_names(naming *n)
{
    const kl_value *wanted = kl_value_get(n->wanted, "shortNames"),
                   *accepted = kl_value_get(n->accepted, "shortNames");
    kl_buf b = KL_BUF_INIT;
    size_t many = 0;
    for (size_t i = 0; i < kl_value_len(wanted); i++) {
        const char *name = kl_value_str(kl_value_item(wanted, i));
        if (!name || kl_value_has_str(accepted, name) || !taken(n->crds, n->group, false, name))
            continue;
        kl_buf_printf(&b, "%s\"%s\" is already in use", many++ ? ", " : "", name);
    }
    if (many)
        conflict(n, "ShortNamesConflict",
            many > 1 ? kl_sprintf("[%s]", kl_buf_str(&b)) : kl_strdup(kl_buf_str(&b)));
    else
        KL_EDIT(&n->names, kl_value_ref(wanted), "shortNames");
    kl_buf_fini(&b);
}

static const kl_value *find(const kl_value *conditions, const char *type)
{
    for (size_t i = 0; i < kl_value_len(conditions); i++) {
        const char *is = kl_value_str_at(kl_value_item(conditions, i), "type", NULL);
        if (is && !strcmp(is, type))
            return kl_value_item(conditions, i);
    }
    return NULL;
}

static bool is_true(const kl_value *crd, const char *type)
{
    const char *status = kl_value_str_at(
        find(kl_value_at(crd, "status", "conditions", NULL), type), "status", NULL);
    return status && !strcmp(status, "True");
}

bool kl_names_served(const kl_value *crd)
{
    return is_true(crd, "NamesAccepted") || is_true(crd, "Established");
}

/* A condition; its time stays while the status is unchanged. */
static const kl_value *condition(
    const kl_value *was, const char *type, bool yes, const char *reason, const char *message, const char *now)
{
    const char *status = yes ? "True" : "False", *had = kl_value_str_at(was, "status", NULL),
               *since = kl_value_str_at(was, "lastTransitionTime", NULL);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "type", type);
    kl_build_kstr(b, "status", status);
    kl_build_kstr(b, "lastTransitionTime", had && since && !strcmp(had, status) ? since : now);
    kl_build_kstr(b, "reason", reason);
    kl_build_kstr(b, "message", message);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The two conditions in their old place, or after the others. Takes them. */
static void set_conditions(const kl_value **crd, const kl_value *names, const kl_value *established)
{
    const kl_value *had = kl_value_at(*crd, "status", "conditions", NULL);
    bool has_names = find(had, "NamesAccepted"), has_established = find(had, "Established");
    kl_builder *b = kl_builder_new();
    kl_build_array(b);
    for (size_t i = 0; i < kl_value_len(had); i++) {
        const kl_value *one = kl_value_item(had, i);
        const char *type = kl_value_str_at(one, "type", NULL);
        kl_build_value(b,
            type && !strcmp(type, "NamesAccepted")     ? names
                : type && !strcmp(type, "Established") ? established
                                                       : one);
    }
    if (!has_names)
        kl_build_value(b, names);
    if (!has_established)
        kl_build_value(b, established);
    kl_build_end(b);
    KL_EDIT(crd, kl_builder_done(b), "status", "conditions");
    kl_value_unref(names);
    kl_value_unref(established);
}

/* The CA bundle of the conversion webhook, in base64, or NULL. */
static const char *bundle_of(const kl_value *crd)
{
    return kl_value_str_at(crd, "spec", "conversion", "webhook", "clientConfig", "caBundle", NULL);
}

static bool has_bad_bundle(const kl_value *crd)
{
    const char *text = bundle_of(crd);
    kl_buf pem = KL_BUF_INIT;
    bool bad = text && *text
        && (kl_base64_decode(text, strlen(text), &pem, NULL) || kl_x509_check(kl_buf_str(&pem), NULL));
    kl_buf_fini(&pem);
    return bad;
}

void kl_names_check_bundle(const kl_value *old, const kl_value *crd, kl__causes *causes)
{
    if (old && !has_bad_bundle(old) && has_bad_bundle(crd))
        kl__cause_add(causes, "FieldValueInvalid", "spec.conversion.webhookClientConfig.caBundle",
            "Invalid value: \"%s\": unable to load root certificates: unable to parse bytes as PEM block",
            bundle_of(crd));
}

/* Sets the status of a new definition, whose names are not yet checked. */
static void begin(const kl_value **crd)
{
    KL_EDIT(crd, kl_value_null(), "status", "conditions");
    KL_EDIT(crd, kl_value_of_str(""), "status", "acceptedNames", "plural");
    KL_EDIT(crd, kl_value_of_str(""), "status", "acceptedNames", "kind");
}

void kl_names_settle(const kl__bucket *crds, const kl_value **crd, const char *now)
{
    if (!crds) {
        if (!kl_value_at(*crd, "status", "acceptedNames", NULL))
            begin(crd);
        return;
    }
    const char *group = kl_value_str_at(*crd, "spec", "group", NULL);
    const kl_value *accepted = kl_value_at(*crd, "status", "acceptedNames", NULL),
                   *conditions = kl_value_at(*crd, "status", "conditions", NULL);
    naming n = {.crds = crds,
        .group = group ? group : "",
        .wanted = kl_value_at(*crd, "spec", "names", NULL),
        .accepted = accepted,
        .names = kl_value_ref(accepted)};
    one_name(&n, "plural", false, "PluralConflict");
    one_name(&n, "singular", false, "SingularConflict");
    short_names(&n);
    one_name(&n, "kind", true, "KindConflict");
    one_name(&n, "listKind", true, "ListKindConflict");
    KL_EDIT(&n.names, kl_value_ref(kl_value_get(n.wanted, "categories")), "categories");
    bool good = !n.reason, was = is_true(*crd, "Established"), known = !has_bad_bundle(*crd);
    const kl_value *had = find(conditions, "Established");
    const kl_value *names = condition(find(conditions, "NamesAccepted"), "NamesAccepted", good,
                       good ? "NoConflicts" : n.reason, good ? "no conflicts found" : n.message, now),
                   *established = was || (had && !good) ? kl_value_ref(had)
        : !good ? condition(had, "Established", false, "NotAccepted", "not all names are accepted", now)
        : known ? condition(
              had, "Established", true, "InitialNamesAccepted", "the initial names have been accepted", now)
                : condition(had, "Established", false, "InvalidCABundle",
                    "The conversion webhook CABundle is invalid", now);
    static const char *const needed[] = {"kind", "plural"}; /* written though they are empty */
    for (size_t i = 0; i < 2; i++)
        if (!kl_value_get(n.names, needed[i]))
            KL_EDIT(&n.names, kl_value_of_str(""), needed[i]);
    set_conditions(crd, names, established);
    KL_EDIT(crd, n.names, "status", "acceptedNames");
    kl_free(n.message);
}
