/* cells_core.c - the computed cells of Nodes, Services and Events. */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "show/cells.h"

/* ------------------------------------------------------------------ nodes */

void kl_cell_node_status(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *ready = kl_cell_condition(o, "Ready");
    const char *status = kl_value_str_at(ready, "status", NULL);
    char *text = kl_sprintf("%s%s",
        !ready                                  ? "Unknown"
            : status && !strcmp(status, "True") ? "Ready"
                                                : "NotReady",
        kl_value_bool(kl_value_at(o, "spec", "unschedulable", NULL), false) ? ",SchedulingDisabled" : "");
    kl_cell_text(text, out);
    kl_free(text);
}

int kl__cell_by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

void kl_cell_node_roles(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    static const char prefix[] = "node-role.kubernetes.io/";
    const kl_value *labels = kl_value_at(o, "metadata", "labels", NULL);
    const char **roles = kl_new_array(const char *, kl_value_len(labels) + 1);
    size_t n = 0;
    for (size_t i = 0; i < kl_value_len(labels); i++) {
        const char *key;
        kl_value_member(labels, i, &key, &(size_t){0});
        if (!strncmp(key, prefix, sizeof prefix - 1) && key[sizeof prefix - 1])
            roles[n++] = key + sizeof prefix - 1;
    }
    qsort(roles, n, sizeof *roles, kl__cell_by_text);
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < n; i++)
        kl_buf_printf(&text, "%s%s", i ? "," : "", roles[i]);
    kl_cell_text(n ? kl_buf_str(&text) : "<none>", out);
    kl_buf_fini(&text);
    kl_free(roles);
}

static void node_address(const kl_value *o, const char *type, kl_buf *out)
{
    const kl_value *list = kl_value_at(o, "status", "addresses", NULL);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const char *have = kl_value_str_at(kl_value_item(list, i), "type", NULL);
        if (have && !strcmp(have, type)) {
            kl_cell_text(kl_value_str_at(kl_value_item(list, i), "address", NULL), out);
            return;
        }
    }
    kl_cell_text("<none>", out);
}
void kl_cell_node_internal(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    node_address(o, "InternalIP", out);
}
void kl_cell_node_external(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    node_address(o, "ExternalIP", out);
}
static void put_or_unknown(const kl_value *o, const char *field, kl_buf *out)
{
    const char *text = kl_value_str_at(o, "status", "nodeInfo", field, NULL);
    kl_cell_text(text && *text ? text : "<unknown>", out);
}
void kl_cell_node_os(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_or_unknown(o, "osImage", out);
}
void kl_cell_node_kernel(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_or_unknown(o, "kernelVersion", out);
}
void kl_cell_node_runtime(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_or_unknown(o, "containerRuntimeVersion", out);
}

/* ------------------------------------------------------------------ services */

/* Adds the addresses to a list with commas. */
static void add_balancers(const kl_value *o, kl_buf *text)
{
    const kl_value *list = kl_value_at(o, "status", "loadBalancer", "ingress", NULL);
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *at = kl_value_item(list, i);
        const char *ip = kl_value_str_at(at, "ip", NULL), *name = kl_value_str_at(at, "hostname", NULL);
        if (ip || name)
            kl_buf_printf(text, "%s%s", text->len ? "," : "", ip ? ip : name);
    }
}

void kl_cell_service_external(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *type = kl_value_str_at(o, "spec", "type", NULL);
    const kl_value *own = kl_value_at(o, "spec", "externalIPs", NULL);
    bool balanced = type && !strcmp(type, "LoadBalancer");
    if (type && !strcmp(type, "ExternalName")) {
        kl_cell_text(kl_value_str_at(o, "spec", "externalName", NULL), out);
        return;
    }
    kl_buf text = KL_BUF_INIT;
    if (balanced)
        add_balancers(o, &text);
    for (size_t i = 0; i < kl_value_len(own); i++)
        kl_buf_printf(&text, "%s%s", text.len ? "," : "", kl_value_str(kl_value_item(own, i)));
    kl_cell_text(text.len ? kl_buf_str(&text) : balanced ? "<pending>" : "<none>", out);
    kl_buf_fini(&text);
}

void kl_cell_service_ports(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *list = kl_value_at(o, "spec", "ports", NULL);
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *p = kl_value_item(list, i);
        int64_t node = kl_value_int_at(p, 0, "nodePort", NULL);
        const char *protocol = kl_value_str_at(p, "protocol", NULL);
        kl_buf_printf(&text, "%s%" PRId64, i ? "," : "", kl_value_int_at(p, 0, "port", NULL));
        if (node)
            kl_buf_printf(&text, ":%" PRId64, node);
        kl_buf_printf(&text, "/%s", protocol ? protocol : "TCP");
    }
    kl_cell_text(text.len ? kl_buf_str(&text) : "<none>", out);
    kl_buf_fini(&text);
}

/* ------------------------------------------------------------------ events */

static const char *first_of(const kl_value *o, const char *a, const char *b)
{
    const char *text = kl_value_str_at(o, a, NULL);
    return text && *text ? text : kl_value_str_at(o, b, NULL);
}

static void put_since(const char *at, kl_time now, kl_buf *out)
{
    char age[40];
    kl_cell_text(kl_cell_since(at, now, age, sizeof age) ? age : "<unknown>", out);
}

void kl_cell_event_first(const kl_value *o, kl_time now, kl_buf *out)
{
    put_since(first_of(o, "firstTimestamp", "eventTime"), now, out);
}
void kl_cell_event_seen(const kl_value *o, kl_time now, kl_buf *out)
{
    const char *last = kl_value_str_at(o, "series", "lastObservedTime", NULL);
    last = last ? last : kl_value_str_at(o, "lastTimestamp", NULL);
    put_since(last ? last : first_of(o, "firstTimestamp", "eventTime"), now, out);
}
void kl_cell_event_count(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    int64_t n = kl_value_int_at(o, 0, "count", NULL);
    bool series = kl_value_get(o, "series") != NULL;
    kl_buf_printf(out, "%" PRId64, series ? kl_value_int_at(o, 0, "series", "count", NULL) : n ? n : 1);
}
void kl_cell_event_object(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *kind = kl_value_str_at(o, "involvedObject", "kind", NULL),
               *name = kl_value_str_at(o, "involvedObject", "name", NULL);
    char *text = kl_sprintf("%s%s%s", kind ? kind : "", name ? "/" : "", name ? name : "");
    for (char *p = text; *p && *p != '/'; p++)
        if (*p >= 'A' && *p <= 'Z')
            *p = (char)(*p - 'A' + 'a');
    kl_cell_text(text, out);
    kl_free(text);
}
void kl_cell_event_message(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const char *text = kl_value_str_at(o, "message", NULL);
    text = text ? text : "";
    while (isspace((unsigned char)*text))
        text++;
    size_t n = strlen(text);
    while (n && isspace((unsigned char)text[n - 1]))
        n--;
    char *trimmed = kl_strndup(text, n);
    kl_cell_text(trimmed, out);
    kl_free(trimmed);
}
void kl_cell_event_source(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *source = kl_value_get(o, "source");
    const char *who = kl_value_str_at(source, "component", NULL),
               *where = kl_value_str_at(source, "host", NULL);
    who = who && *who ? who : kl_value_str_at(o, "reportingComponent", NULL);
    where = where && *where ? where : kl_value_str_at(o, "reportingInstance", NULL);
    char *text = kl_sprintf("%s%s%s", who ? who : "", where && *where ? ", " : "", where ? where : "");
    kl_cell_text(text, out);
    kl_free(text);
}
