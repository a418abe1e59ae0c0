/* cells_kinds.c - cells of jobs, storage, policies and the like, worded as kube-apiserver's printers do. */
#include "show/cells.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/quantity.h"
#include "model/time.h"

static const char *str_or(const char *text, const char *otherwise)
{
    return text && *text ? text : otherwise;
}

static const char *annotation(const kl_value *o, const char *key)
{
    return kl_value_str_at(o, "metadata", "annotations", key, NULL);
}

static void finish(kl_buf *text, const char *empty, kl_buf *out)
{
    kl_cell_text(text->len ? kl_buf_str(text) : empty, out);
    kl_buf_fini(text);
}

static bool is_true(const kl_value *o, const char *condition)
{
    const char *status = kl_value_str_at(kl_cell_condition(o, condition), "status", NULL);
    return status && !strcmp(status, "True");
}

/* ------------------------------------------------------------------ jobs */

void kl_cell_job_status(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    static const char *const before[] = {"Complete", "Failed"},
                             *const after[] = {"Suspended", "FailureTarget", "SuccessCriteriaMet"};
    const char *status = NULL;
    for (size_t i = 0; i < 2 && !status; i++)
        status = is_true(o, before[i]) ? before[i] : NULL;
    if (!status && kl_value_at(o, "metadata", "deletionTimestamp", NULL))
        status = "Terminating";
    for (size_t i = 0; i < 3 && !status; i++)
        status = is_true(o, after[i]) ? after[i] : NULL;
    kl_cell_text(status ? status : "Running", out);
}

void kl_cell_job_completions(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    int64_t done = kl_value_int_at(o, 0, "status", "succeeded", NULL),
            side_by_side = kl_value_int_at(o, 0, "spec", "parallelism", NULL);
    const kl_value *wanted = kl_value_at(o, "spec", "completions", NULL);
    kl_buf_printf(out, "\"%" PRId64 "/", done);
    if (wanted)
        kl_buf_printf(out, "%" PRId64 "\"", kl_value_int_at(wanted, 0, NULL));
    else if (side_by_side > 1)
        kl_buf_printf(out, "1 of %" PRId64 "\"", side_by_side);
    else
        kl_buf_puts(out, "1\"");
}

void kl_cell_job_duration(const kl_value *o, kl_time now, kl_buf *out)
{
    const char *from = kl_value_str_at(o, "status", "startTime", NULL),
               *to = kl_value_str_at(o, "status", "completionTime", NULL);
    char text[40];
    int64_t sec;
    int32_t nsec;
    kl_err err = KL_ERR_INIT;
    if (to && !kl_time_parse(to, &sec, &nsec, &err))
        now = KL_SECONDS(1) * sec;
    kl_err_fini(&err);
    kl_cell_text(kl_cell_since(from, now, text, sizeof text) ? text : "", out);
}

void kl_cell_cron_suspend(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_cell_text(kl_value_bool(kl_value_at(o, "spec", "suspend", NULL), false) ? "True" : "False", out);
}

void kl_cell_cron_active(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_buf_printf(out, "%zu", kl_value_len(kl_value_at(o, "status", "active", NULL)));
}

void kl_cell_cron_last(const kl_value *o, kl_time now, kl_buf *out)
{
    char text[40];
    bool ran = kl_cell_since(kl_value_str_at(o, "status", "lastScheduleTime", NULL), now, text, sizeof text);
    kl_cell_text(ran ? text : "<none>", out);
}

void kl_cell_cron_zone(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_cell_text(str_or(kl_value_str_at(o, "spec", "timeZone", NULL), "<none>"), out);
}

/* ------------------------------------------------------------------ rights */

void kl_cell_role_ref(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_buf text = KL_BUF_INIT;
    kl_buf_printf(&text, "%s/%s", str_or(kl_value_str_at(o, "roleRef", "kind", NULL), ""),
        str_or(kl_value_str_at(o, "roleRef", "name", NULL), ""));
    finish(&text, "", out);
}

static void subjects(const kl_value *o, const char *kind, kl_buf *out)
{
    const kl_value *list = kl_value_get(o, "subjects");
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *s = kl_value_item(list, i);
        const char *ns = kl_value_str_at(s, "namespace", NULL);
        if (strcmp(str_or(kl_value_str_at(s, "kind", NULL), ""), kind))
            continue;
        kl_buf_puts(&text, text.len ? ", " : "");
        if (!strcmp(kind, "ServiceAccount"))
            kl_buf_printf(&text, "%s/", str_or(ns, ""));
        kl_buf_puts(&text, str_or(kl_value_str_at(s, "name", NULL), ""));
    }
    finish(&text, "", out);
}
void kl_cell_users(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    subjects(o, "User", out);
}
void kl_cell_groups(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    subjects(o, "Group", out);
}
void kl_cell_accounts(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    subjects(o, "ServiceAccount", out);
}

void kl_cell_csr_duration(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    int64_t wanted = kl_value_int_at(o, 0, "spec", "expirationSeconds", NULL);
    char text[40];
    if (wanted)
        kl_cell_duration(wanted, text, sizeof text);
    kl_cell_text(wanted ? text : "<none>", out);
}

void kl_cell_csr_condition(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    static const char *const types[] = {"Approved", "Denied", "Failed"};
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < 3; i++)
        if (kl_cell_condition(o, types[i]) && (i != 0 || !kl_cell_condition(o, "Denied")))
            kl_buf_printf(&text, "%s%s", text.len ? "," : "", types[i]);
    if (!text.len)
        kl_buf_puts(&text, "Pending");
    if (kl_value_str_at(o, "status", "certificate", NULL))
        kl_buf_puts(&text, ",Issued");
    finish(&text, "", out);
}

/* ------------------------------------------------------------------ scaling and disruption */

/* A number or a percentage; absent is `absent`. */
static void number_or_text(const kl_value *v, const char *absent, kl_buf *out)
{
    if (kl_value_type(v) == KL_INT)
        kl_buf_printf(out, "\"%" PRId64 "\"", kl_value_int_at(v, 0, NULL));
    else
        kl_cell_text(str_or(kl_value_str(v), absent), out);
}
void kl_cell_min_available(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    number_or_text(kl_value_at(o, "spec", "minAvailable", NULL), "N/A", out);
}
void kl_cell_max_unavailable(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    number_or_text(kl_value_at(o, "spec", "maxUnavailable", NULL), "N/A", out);
}

void kl_cell_hpa_reference(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_buf text = KL_BUF_INIT;
    kl_buf_printf(&text, "%s/%s", str_or(kl_value_str_at(o, "spec", "scaleTargetRef", "kind", NULL), ""),
        str_or(kl_value_str_at(o, "spec", "scaleTargetRef", "name", NULL), ""));
    finish(&text, "", out);
}
void kl_cell_hpa_min(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    number_or_text(kl_value_at(o, "spec", "minReplicas", NULL), "<unset>", out);
}

/* The part of a metric that its type names: resource, pods, object, external, containerResource. */
static const kl_value *of_type(const kl_value *metric)
{
    char key[40];
    const char *type = str_or(kl_value_str_at(metric, "type", NULL), "");
    size_t n = strlen(type) < sizeof key ? strlen(type) : sizeof key - 1;
    memcpy(key, type, n);
    key[n] = 0;
    if (*key >= 'A' && *key <= 'Z')
        key[0] = (char)(*key - 'A' + 'a');
    return kl_value_get(metric, key);
}

/* One part of a metric as text: a share with "%", or an amount; `absent` where it is not there. */
static void amount(const kl_value *m, const char *part, const char *absent, kl_buf *text)
{
    const kl_value *v = kl_value_get(m, part);
    if (kl_value_str(v))
        kl_buf_puts(text, kl_value_str(v));
    else if (v)
        kl_buf_printf(text, "%" PRId64 "%%", kl_value_int_at(v, 0, NULL));
    else
        kl_buf_puts(text, absent);
}

/* Writes the current state and the target. The target's type selects the part of the state; a state of
 * another type is unknown, and an absent part is printed as Go prints a nil quantity. */
static void hpa_target(const kl_value *spec, const kl_value *status, kl_buf *text)
{
    bool same_type = !strcmp(
        str_or(kl_value_str_at(spec, "type", NULL), ""), str_or(kl_value_str_at(status, "type", NULL), ""));
    const kl_value *wanted = of_type(spec), *target = kl_value_get(wanted, "target"),
                   *have = kl_value_get(same_type ? of_type(status) : NULL, "current");
    const char *type = str_or(kl_value_str_at(spec, "type", NULL), ""),
               *name = kl_value_str_at(wanted, "name", NULL);
    bool outside = !strcmp(type, "Object") || !strcmp(type, "External"), pods = !strcmp(type, "Pods");
    bool average = kl_value_get(target, "averageValue") || pods;
    const char *part = average ? "averageValue" : outside ? "value" : "averageUtilization";
    bool quantity = have && !(average && outside) && strcmp(part, "averageUtilization");
    if (name)
        kl_buf_printf(text, "%s: ", name);
    amount(have, part, quantity ? "<nil>" : "<unknown>", text);
    kl_buf_putc(text, '/');
    amount(target, part, outside || pods ? "<nil>" : "<auto>", text);
    kl_buf_puts(text, outside && average ? " (avg)" : "");
}

void kl_cell_hpa_targets(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *specs = kl_value_at(o, "spec", "metrics", NULL),
                   *have = kl_value_at(o, "status", "currentMetrics", NULL);
    size_t n = kl_value_len(specs), shown = n > 2 ? 2 : n;
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < shown; i++) {
        kl_buf_puts(&text, i ? ", " : "");
        hpa_target(kl_value_item(specs, i), i < kl_value_len(have) ? kl_value_item(have, i) : NULL, &text);
    }
    if (n > shown)
        kl_buf_printf(&text, " + %zu more...", n - shown);
    finish(&text, "<none>", out);
}

/* "pods: 1/5" of each resource with a limit: those of limits, or all the others. */
static void quota(const kl_value *o, bool limits, kl_buf *out)
{
    static const char prefix[] = "limits.";
    const kl_value *hard = kl_value_at(o, "status", "hard", NULL);
    const char **names = kl_new_array(const char *, kl_value_len(hard) + 1);
    for (size_t i = 0; i < kl_value_len(hard); i++)
        kl_value_member(hard, i, &names[i], &(size_t){0});
    qsort(names, kl_value_len(hard), sizeof *names, kl__cell_by_text);
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(hard); i++)
        if (!strncmp(names[i], prefix, sizeof prefix - 1) == limits)
            kl_buf_printf(&text, "%s%s: %s/%s", text.len ? ", " : "", names[i],
                str_or(kl_value_str_at(o, "status", "used", names[i], NULL), "0"),
                str_or(kl_value_str_at(hard, names[i], NULL), "0"));
    finish(&text, "", out);
    kl_free(names);
}
void kl_cell_quota_requests(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    quota(o, false, out);
}
void kl_cell_quota_limits(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    quota(o, true, out);
}

/* ------------------------------------------------------------------ the network */

void kl_cell_ingress_class(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_cell_text(str_or(kl_value_str_at(o, "spec", "ingressClassName", NULL), "<none>"), out);
}

void kl_cell_ingress_hosts(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *rules = kl_value_at(o, "spec", "rules", NULL);
    kl_buf text = KL_BUF_INIT;
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < kl_value_len(rules); i++) {
        const char *host = kl_value_str_at(kl_value_item(rules, i), "host", NULL);
        if (shown == 3)
            more++;
        else if (host && *host)
            kl_buf_printf(&text, "%s%s", shown++ ? "," : "", host);
    }
    if (more)
        kl_buf_printf(&text, " + %zu more...", more);
    finish(&text, "*", out);
}

void kl_cell_ingress_address(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *list = kl_value_at(o, "status", "loadBalancer", "ingress", NULL);
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *at = kl_value_item(list, i);
        const char *name = kl_value_str_at(at, "hostname", NULL);
        kl_buf_printf(&text, "%s%s", i ? "," : "", str_or(kl_value_str_at(at, "ip", NULL), str_or(name, "")));
    }
    finish(&text, "", out);
}

void kl_cell_ingress_ports(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_cell_text(kl_value_len(kl_value_at(o, "spec", "tls", NULL)) ? "80, 443" : "80", out);
}

void kl_cell_service_address(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_cell_text(str_or(kl_value_str_at(o, "spec", "clusterIP", NULL), "<none>"), out);
}

/* ------------------------------------------------------------------ storage */

/* The modes in the printer's order, each once. */
static void access_modes(const kl_value *list, kl_buf *out)
{
    static const char *const modes[][2] = {{"ReadWriteOnce", "RWO"}, {"ReadOnlyMany", "ROX"},
        {"ReadWriteMany", "RWX"}, {"ReadWriteOncePod", "RWOP"}};
    kl_buf text = KL_BUF_INIT;
    for (size_t m = 0; m < 4; m++)
        for (size_t i = 0; i < kl_value_len(list); i++)
            if (!strcmp(str_or(kl_value_str(kl_value_item(list, i)), ""), modes[m][0])) {
                kl_buf_printf(&text, "%s%s", text.len ? "," : "", modes[m][1]);
                break;
            }
    finish(&text, "", out);
}

static void status_of(const kl_value *o, kl_buf *out)
{
    bool going = kl_value_at(o, "metadata", "deletionTimestamp", NULL) != NULL;
    kl_cell_text(going ? "Terminating" : kl_value_str_at(o, "status", "phase", NULL), out);
}
void kl_cell_storage_status(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    status_of(o, out);
}
void kl_cell_storage_class(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *old = annotation(o, "volume.beta.kubernetes.io/storage-class");
    kl_cell_text(str_or(old, kl_value_str_at(o, "spec", "storageClassName", NULL)), out);
}
void kl_cell_storage_attributes(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    kl_cell_text(str_or(kl_value_str_at(o, "spec", "volumeAttributesClassName", NULL), "<unset>"), out);
}
void kl_cell_volume_modes(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    access_modes(kl_value_at(o, "spec", "accessModes", NULL), out);
}
void kl_cell_volume_claim(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *ref = kl_value_at(o, "spec", "claimRef", NULL);
    kl_buf text = KL_BUF_INIT;
    if (ref)
        kl_buf_printf(&text, "%s/%s", str_or(kl_value_str_at(ref, "namespace", NULL), ""),
            str_or(kl_value_str_at(ref, "name", NULL), ""));
    finish(&text, "", out);
}

/* Whether a claim has a volume, and thereby a size and modes. */
static const kl_value *bound(const kl_value *o)
{
    const char *volume = kl_value_str_at(o, "spec", "volumeName", NULL);
    return volume && *volume ? kl_value_get(o, "status") : NULL;
}
void kl_cell_claim_capacity(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *status = bound(o);
    kl_cell_text(str_or(kl_value_str_at(status, "capacity", "storage", NULL), status ? "0" : ""), out);
}
void kl_cell_claim_modes(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    access_modes(kl_value_get(bound(o), "accessModes"), out);
}

void kl_cell_class_name(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    static const char *const keys[] = {
        "storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"};
    bool dflt = false;
    for (size_t i = 0; i < 2; i++)
        dflt = dflt || !strcmp(str_or(annotation(o, keys[i]), ""), "true");
    kl_buf text = KL_BUF_INIT;
    kl_buf_printf(&text, "%s%s", kl_object_name(o), dflt ? " (default)" : "");
    finish(&text, "", out);
}

/* ------------------------------------------------------------------ the server's own kinds */

void kl_cell_api_service(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *service = kl_value_at(o, "spec", "service", NULL);
    char *text = kl_sprintf("%s/%s", str_or(kl_value_str_at(service, "namespace", NULL), ""),
        str_or(kl_value_str_at(service, "name", NULL), ""));
    kl_cell_text(service ? text : "Local", out);
    kl_free(text);
}

void kl_cell_api_available(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *available = kl_cell_condition(o, "Available");
    const char *status = str_or(kl_value_str_at(available, "status", NULL), ""),
               *reason = str_or(kl_value_str_at(available, "reason", NULL), "");
    char *both = kl_sprintf("%s (%s)", status, reason);
    kl_cell_text(!available ? "Unknown" : !strcmp(status, "True") || !*reason ? status : both, out);
    kl_free(both);
}

void kl_cell_flow_distinguisher(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *method = kl_value_at(o, "spec", "distinguisherMethod", NULL);
    kl_cell_text(method ? kl_value_str_at(method, "type", NULL) : "<none>", out);
}

void kl_cell_flow_dangling(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *dangling = kl_cell_condition(o, "Dangling");
    kl_cell_text(dangling ? kl_value_str_at(dangling, "status", NULL) : "?", out);
}

static void limit(const kl_value *o, const char *member, kl_buf *out)
{
    const kl_value *limited = kl_value_at(o, "spec", "limited", NULL),
                   *queuing = kl_value_at(limited, "limitResponse", "queuing", NULL),
                   *of = strcmp(member, "nominalConcurrencyShares") ? queuing : limited;
    if (of)
        kl_buf_printf(out, "%" PRId64, kl_value_int_at(of, 0, member, NULL));
    else
        kl_cell_text("<none>", out);
}

void kl_cell_level_shares(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    limit(o, "nominalConcurrencyShares", out);
}

void kl_cell_level_queues(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    limit(o, "queues", out);
}

void kl_cell_level_hand(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    limit(o, "handSize", out);
}

void kl_cell_level_length(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    limit(o, "queueLengthLimit", out);
}

void kl_cell_service_ranges(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *list = kl_value_at(o, "spec", "cidrs", NULL);
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(list); i++)
        kl_buf_printf(&text, "%s%s", i ? "," : "", str_or(kl_value_str(kl_value_item(list, i)), ""));
    finish(&text, "", out);
}

void kl_cell_address_parent(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *parent = kl_value_at(o, "spec", "parentRef", NULL);
    const char *group = str_or(kl_value_str_at(parent, "group", NULL), ""),
               *ns = str_or(kl_value_str_at(parent, "namespace", NULL), ""),
               *resource = str_or(kl_value_str_at(parent, "resource", NULL), "");
    kl_buf text = KL_BUF_INIT;
    if (!parent) {
        kl_cell_text("<none>", out);
        return;
    }
    kl_buf_printf(&text, "%s%s%s", resource, *group ? "." : "", group);
    for (char *p = text.data; p && *p; p++)
        *p = (char)tolower((unsigned char)*p);
    kl_buf_printf(&text, "%s%s/%s", *ns ? "/" : "", ns, str_or(kl_value_str_at(parent, "name", NULL), ""));
    finish(&text, "", out);
}

void kl_cell_claim_state(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    bool goes = kl_value_at(o, "metadata", "deletionTimestamp", NULL) != NULL,
         allocated = kl_value_at(o, "status", "allocation", NULL) != NULL;
    kl_buf text = KL_BUF_INIT;
    if (goes)
        kl_buf_puts(&text, "deleted");
    if (allocated || !goes)
        kl_buf_printf(&text, "%s%s", goes ? "," : "", allocated ? "allocated" : "pending");
    if (allocated && kl_value_len(kl_value_at(o, "status", "reservedFor", NULL)))
        kl_buf_puts(&text, ",reserved");
    finish(&text, "", out);
}
