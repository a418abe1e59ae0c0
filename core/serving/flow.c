/* flow.c - FlowSchemas and PriorityLevelConfigurations (pkg/apis/flowcontrol). This server has no flow
 * control; it only keeps them as kube-apiserver does. */
#include "serving/parts.h"

#include <math.h>
#include <string.h>

#include "builtin/fill.h"
#include "check/forms.h"
#include "model/object.h"
#include "schema/edit.h"

#define SPEC KL_IN(NULL, "spec")
#define PRECEDENCE_MAX 10000
#define QUEUES_MAX 10000000
#define HASH_BITS 60
#define VERBS "create delete deletecollection get list patch proxy update watch"
#define PRESERVED "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"

/* In Go's structs an absent number is 0. */
static void put_unless_set(const kl_value **o, const char *member, int64_t n)
{
    if (!kl_value_int_at(*o, 0, member, NULL))
        KL_EDIT(o, kl_value_of_int(n), member);
}

void kl__flow_schema_fill(const kl_value **spec) { put_unless_set(spec, "matchingPrecedence", 1000); }

static void queuing_fill(const kl_value **q)
{
    put_unless_set(q, "queues", 64);
    put_unless_set(q, "handSize", 8);
    put_unless_set(q, "queueLengthLimit", 50);
}

static void response_fill(const kl_value **r) { kl__inside(r, "queuing", queuing_fill); }

static void limited_fill(const kl_value **l)
{
    kl__put_int(l, "nominalConcurrencyShares", 30);
    kl__put_int(l, "lendablePercent", 0);
    kl__inside(l, "limitResponse", response_fill);
}

static void exempt_fill(const kl_value **e)
{
    kl__put_int(e, "nominalConcurrencyShares", 0);
    kl__put_int(e, "lendablePercent", 0);
}

void kl__priority_level_fill(const kl_value **spec)
{
    kl__inside(spec, "limited", limited_fill);
    kl__inside(spec, "exempt", exempt_fill);
}

/* ------------------------------------------------------------------ conditions */

static void check_conditions(const kl__write *w)
{
    const kl_value *list = kl_value_at(w->o, "status", "conditions", NULL);
    const kl__place *in = KL_IN(KL_IN(NULL, "status"), "conditions");
    kl_finder types = {.key = "type", .empty_is_absent = true};
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        if (kl_finder_repeats(&types, one))
            kl__say_duplicate(w->causes, KL_IN(KL_ITEM(in, i), "type"), kl_value_get(one, "type"));
        kl__check_present(w->causes, one, KL_ITEM(in, i), "type");
    }
    kl_finder_fini(&types);
}

/* ------------------------------------------------------------------ rules of a FlowSchema */

/* The members of a subject, by its kind, and the complaint when another kind has one. */
static const struct {
    const char *kind, *member, *missing, *forbidden;
} subjects[] = {
    {"ServiceAccount", "serviceAccount", "serviceAccount is required when subject kind is 'ServiceAccount'",
        "serviceAccount is forbidden when subject kind is not 'ServiceAccount'"},
    {"User", "user", "user is required when subject kind is 'User'",
        "user is forbidden when subject kind is not 'User'"},
    {"Group", "group", "group is required when subject kind is 'Group'",
        "group is forbidden when subject kind is not 'Group'"},
};
#define NSUBJECTS (sizeof subjects / sizeof *subjects)

static void check_named(kl__causes *c, const kl_value *who, bool account, const kl__place *at)
{
    const char *name = kl__text(who, "name");
    kl__check_present(c, who, at, "name");
    if (!account)
        return;
    if (*name && strcmp(name, "*"))
        kl__check_form(c, KL_IN(at, "name"), name, KL_DNS_SUBDOMAIN);
    if (*kl__text(who, "namespace"))
        kl__check_member(c, who, at, "namespace", KL_DNS_LABEL);
    else
        kl__say_required(c, KL_IN(at, "namespace"), "must specify namespace for service account");
}

static void check_subject(kl__causes *c, const kl_value *subject, const kl__place *at)
{
    size_t own = 0;
    while (own < NSUBJECTS && !kl__is(subject, "kind", subjects[own].kind))
        own++;
    if (own == NSUBJECTS) {
        kl__say_unsupported(c, KL_IN(at, "kind"), kl_value_get(subject, "kind"), "Group ServiceAccount User");
        return;
    }
    const kl_value *who = kl_value_get(subject, subjects[own].member);
    const kl__place *in = KL_IN(at, subjects[own].member);
    if (who)
        check_named(c, who, own == 0, in);
    else
        kl__say_required(c, in, subjects[own].missing);
    for (size_t i = 0; i < NSUBJECTS; i++)
        if (i != own && kl_value_get(subject, subjects[i].member))
            kl__say_forbidden(c, KL_IN(at, subjects[i].member), "%s", subjects[i].forbidden);
}

static void check_verbs(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    const kl_value *list = kl_value_get(rule, "verbs");
    bool known = true;
    if (!kl__check_star_list(c, rule, "verbs", "verbs must contain at least one value", "verbs", at))
        return;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        known = known && kl__one_of(kl__item_text(list, i), VERBS);
    }
    if (!known)
        kl__say_unsupported(c, KL_IN(at, "verbs"), list, VERBS);
}

static void check_resource_rule(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    static const char local[] =
        "resource rules that are not cluster scoped must supply at least one namespace";
    const kl_value *names = kl_value_get(rule, "namespaces");
    const kl__place *in = KL_IN(at, "namespaces");
    check_verbs(c, rule, at);
    kl__check_star_list(
        c, rule, "apiGroups", "resource rules must supply at least one api group", "api groups", at);
    kl__check_star_list(
        c, rule, "resources", "resource rules must supply at least one resource", "resources", at);
    if (!kl_value_len(names) && kl__true(rule, "clusterScope"))
        return;
    if (!kl__check_star_list(c, rule, "namespaces", local, "namespaces", at))
        return;
    for (size_t i = 0; i < kl_value_len(names); i++) {
        const char *name = kl__item_text(names, i), *faults[KL_FAULTS_MAX];
        size_t n = kl__faults(name, KL_DNS_LABEL, faults);
        for (size_t k = 0; k < n; k++)
            kl__say_invalid(c, KL_ITEM(in, i), kl_value_item(names, i),
                "each member of this list must be '*' or a DNS-1123 label; %s", faults[k]);
    }
}

/* NULL, or the fault of a URL's path. Static. */
static const char *url_fault(const char *path)
{
    const char *star = strchr(path, '*');
    size_t n = strlen(path);
    if (!n)
        return "must not be empty";
    if (*path != '/')
        return "must start with slash";
    if (strchr(path, ' '))
        return "must not contain white-space";
    if (strstr(path, "//"))
        return "must not contain double slash";
    if (star && (strchr(star + 1, '*') || strcmp(path + n - 2, "/*")))
        return "wildcard can only do suffix matching";
    return NULL;
}

static void check_url_rule(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    const kl_value *urls = kl_value_get(rule, "nonResourceURLs");
    const kl__place *in = KL_IN(at, "nonResourceURLs");
    check_verbs(c, rule, at);
    if (!kl__check_star_list(c, rule, "nonResourceURLs", "nonResourceURLs must contain at least one value",
            "non-resource URLs", at))
        return;
    for (size_t i = 0; i < kl_value_len(urls); i++) {
        const char *why = url_fault(kl__item_text(urls, i));
        if (why)
            kl__say_invalid(c, KL_ITEM(in, i), kl_value_item(urls, i), "%s", why);
    }
}

static void check_rule(kl__causes *c, const kl_value *rule, const kl__place *at)
{
    static const struct {
        const char *member;
        void (*check)(kl__causes *c, const kl_value *item, const kl__place *at);
    } lists[] = {{"subjects", check_subject}, {"resourceRules", check_resource_rule},
        {"nonResourceRules", check_url_rule}};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        const kl_value *list = kl_value_get(rule, lists[l].member);
        const kl__place *in = KL_IN(at, lists[l].member);
        if (l == 0 && !kl_value_len(list))
            kl__say_required(c, in, "subjects must contain at least one value");
        if (l == 1 && !kl_value_len(list) && !kl_value_len(kl_value_get(rule, "nonResourceRules")))
            kl__say_required(c, at, "at least one of resourceRules and nonResourceRules has to be non-empty");
        for (size_t i = 0; i < kl_value_len(list); i++)
            lists[l].check(c, kl_value_item(list, i), KL_ITEM(in, i));
    }
}

/* ------------------------------------------------------------------ fields that may not change */

#define SCHEMA_AS_GO                                                                                         \
    "PriorityLevelConfiguration{Name} MatchingPrecedence# DistinguisherMethod?{Type} Rules[Subjects[Kind "   \
    "User?{Name} Group?{Name} ServiceAccount?{Namespace Name}] ResourceRules[Verbs? APIGroups? Resources? "  \
    "ClusterScope! Namespaces?] NonResourceRules[Verbs? NonResourceURLs?]]"
#define LEVEL_AS_GO                                                                                          \
    "Type Limited?{NominalConcurrencyShares# LimitResponse{Type Queuing?{Queues# HandSize# "                 \
    "QueueLengthLimit#}} LendablePercent? BorrowingLimitPercent?} Exempt?{NominalConcurrencyShares? "        \
    "LendablePercent?}"

#define EVERYTHING                                                                                           \
    "\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"],\"clusterScope\":"    \
    "true,\"namespaces\":[\"*\"]}],\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]"
#define A_GROUP(name) "{\"kind\":\"Group\",\"group\":{\"name\":\"system:" name "\"}}"

/* The specs of the objects without which flow control cannot work. */
static const struct {
    const char *name, *schema, *level;
} fixed[] = {
    {"exempt",
        "{\"matchingPrecedence\":1,\"priorityLevelConfiguration\":{\"name\":\"exempt\"},\"rules\":[{"
        "\"subjects\":[" A_GROUP("masters") "]," EVERYTHING "}]}",
        "{\"type\":\"Exempt\"}"},
    {"catch-all",
        "{\"matchingPrecedence\":10000,\"priorityLevelConfiguration\":{\"name\":\"catch-all\"},"
        "\"distinguisherMethod\":{\"type\":\"ByUser\"},\"rules\":[{"
        "\"subjects\":[" A_GROUP("unauthenticated") "," A_GROUP("authenticated") "]," EVERYTHING "}]}",
        "{\"type\":\"Limited\",\"limited\":{\"nominalConcurrencyShares\":5,\"lendablePercent\":0,"
        "\"limitResponse\":{\"type\":\"Reject\"}}}"},
};

static void check_fixed(const kl__write *w, bool schema)
{
    const char *name = kl_object_name(w->o);
    const kl_value *spec = kl_value_get(w->o, "spec"), *have = kl_value_ref(spec), *want = NULL;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        const char *text = schema ? fixed[i].schema : fixed[i].level;
        bool partly = !schema && i == 0;
        if (!name || strcmp(name, fixed[i].name) || kl_value_decode(text, strlen(text), &want, NULL))
            continue;
        if (partly)
            KL_CUT(&have, "exempt");
        if (!kl_value_equal(have, want)) {
            const kl_value *shown = kl__as_go(spec, schema ? SCHEMA_AS_GO : LEVEL_AS_GO);
            kl__say_invalid(w->causes, SPEC, shown, "spec of '%s' %smust equal the fixed value", name,
                partly ? "except the 'spec.exempt' field " : "");
            kl_value_unref(shown);
        }
        kl_value_unref(want);
    }
    kl_value_unref(have);
}

/* ------------------------------------------------------------------ FlowSchema */

void kl__check_flow_schema(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *by = kl_value_get(spec, "distinguisherMethod"),
                   *level = kl_value_get(spec, "priorityLevelConfiguration"),
                   *rules = kl_value_get(spec, "rules");
    const kl__place *at = KL_IN(SPEC, "matchingPrecedence"), *in = KL_IN(SPEC, "rules"),
                    *level_at = KL_IN(SPEC, "priorityLevelConfiguration");
    const char *name = kl_object_name(w->o);
    if (w->sub) {
        check_conditions(w);
        return;
    }
    int64_t n = kl_value_int_at(spec, 0, "matchingPrecedence", NULL);
    if (n <= 0)
        kl__say_invalid_int(c, at, n, "must be a positive value");
    if (n > PRECEDENCE_MAX)
        kl__say_invalid_int(c, at, n, "must not be greater than %d", PRECEDENCE_MAX);
    if (n == 1 && (!name || strcmp(name, "exempt")))
        kl__say_invalid_int(c, at, n, "only the schema named 'exempt' may have matchingPrecedence 1");
    if (by && !kl__one_of(kl__text(by, "type"), "ByNamespace ByUser")) {
        const kl_value *shown = kl__as_go(by, "Type");
        kl__say_unsupported(
            c, KL_IN(KL_IN(SPEC, "distinguisherMethod"), "type"), shown, "ByNamespace ByUser");
        kl_value_unref(shown);
    }
    if (!*kl__text(level, "name"))
        kl__say_required(c, KL_IN(level_at, "name"), "must reference a priority level");
    kl__check_member(c, level, level_at, "name", KL_DNS_SUBDOMAIN);
    for (size_t i = 0; i < kl_value_len(rules); i++)
        check_rule(c, kl_value_item(rules, i), KL_ITEM(in, i));
    check_fixed(w, true);
    check_conditions(w);
}

/* ------------------------------------------------------------------ PriorityLevelConfiguration */

static void check_queuing(kl__causes *c, const kl_value *q, const kl__place *at)
{
    int64_t length = kl_value_int_at(q, 0, "queueLengthLimit", NULL),
            queues = kl_value_int_at(q, 0, "queues", NULL), hand = kl_value_int_at(q, 0, "handSize", NULL);
    const kl__place *queues_at = KL_IN(at, "queues"), *hand_at = KL_IN(at, "handSize");
    if (length <= 0)
        kl__say_invalid_int(c, KL_IN(at, "queueLengthLimit"), length, "must be positive");
    if (queues <= 0)
        kl__say_invalid_int(c, queues_at, queues, "must be positive");
    else if (queues > QUEUES_MAX)
        kl__say_invalid_int(c, queues_at, queues, "must not be greater than %d", QUEUES_MAX);
    if (hand <= 0)
        kl__say_invalid_int(c, hand_at, hand, "must be positive");
    else if (hand > queues)
        kl__say_invalid_int(c, hand_at, hand, "should not be greater than queues (%lld)", (long long)queues);
    else if (ceil(log2((double)queues) * (double)hand) > HASH_BITS)
        kl__say_invalid_int(c, hand_at, hand,
            "required entropy bits of deckSize %lld and handSize %lld should not be greater than %d",
            (long long)queues, (long long)hand, HASH_BITS);
}

static void check_response(kl__causes *c, const kl_value *r, const kl__place *at)
{
    const kl_value *queuing = kl_value_get(r, "queuing");
    if (!kl__one_of(kl__text(r, "type"), "Queue Reject"))
        kl__say_unsupported(c, KL_IN(at, "type"), kl_value_get(r, "type"), "Queue Reject");
    else if (kl__is(r, "type", "Reject")) {
        if (queuing)
            kl__say_forbidden(
                c, KL_IN(at, "queuing"), "must be nil if limited.limitResponse.type is not Limited");
    } else if (queuing)
        check_queuing(c, queuing, KL_IN(at, "queuing"));
    else
        kl__say_required(
            c, KL_IN(at, "queuing"), "must not be empty if limited.limitResponse.type is Limited");
}

static void check_shares(kl__causes *c, const kl_value *l, const kl__place *at)
{
    int64_t shares = kl_value_int_at(l, 0, "nominalConcurrencyShares", NULL);
    if (shares < 0)
        kl__say_invalid_int(
            c, KL_IN(at, "nominalConcurrencyShares"), shares, "must be a non-negative integer");
}

static void check_limited(kl__causes *c, const kl_value *l, const kl__place *at)
{
    int64_t most = kl_value_int_at(l, 0, "borrowingLimitPercent", NULL);
    check_shares(c, l, at);
    check_response(c, kl_value_get(l, "limitResponse"), KL_IN(at, "limitResponse"));
    kl__check_range(c, l, at, "lendablePercent", 0, 100);
    if (most < 0)
        kl__say_invalid_int(
            c, KL_IN(at, "borrowingLimitPercent"), most, "if specified, must be a non-negative integer");
}

void kl__check_priority_level(const kl__write *w)
{
    kl__causes *c = w->causes;
    const kl_value *spec = kl_value_get(w->o, "spec"), *limited = kl_value_get(spec, "limited"),
                   *exempt = kl_value_get(spec, "exempt");
    const kl__place *limited_at = KL_IN(SPEC, "limited"), *exempt_at = KL_IN(SPEC, "exempt");
    const char *name = kl_object_name(w->o), *type = kl__text(spec, "type");
    bool is_exempt = !strcmp(type, "Exempt");
    if (w->sub) {
        check_conditions(w);
        return;
    }
    if (kl_value_at(w->o, "metadata", "annotations", PRESERVED, NULL))
        kl__say_forbidden(
            c, KL_IN(KL_IN(NULL, "metadata"), "annotations"), "annotation '%s' is forbidden", PRESERVED);
    if ((name && !strcmp(name, "exempt")) != is_exempt)
        kl__say_invalid_text(
            c, KL_IN(SPEC, "type"), type, "must be 'Exempt' if and only if `name` is 'exempt'");
    if (is_exempt) {
        if (limited)
            kl__say_forbidden(c, limited_at, "must be nil if the type is not Limited");
        check_shares(c, exempt, exempt_at);
        kl__check_range(c, exempt, exempt_at, "lendablePercent", 0, 100);
    } else if (!strcmp(type, "Limited")) {
        if (exempt)
            kl__say_forbidden(c, exempt_at, "must be nil if the type is Limited");
        if (limited)
            check_limited(c, limited, limited_at);
        else
            kl__say_required(c, limited_at, "must not be empty when type is Limited");
    } else
        kl__say_unsupported(c, KL_IN(SPEC, "type"), kl_value_get(spec, "type"), "Exempt Limited");
    check_fixed(w, false);
    check_conditions(w);
}
