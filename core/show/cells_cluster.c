/* cells_cluster.c - cells of endpoints, drivers of storage, admission and other kinds of the cluster, worded
 * as kube-apiserver's printers do. */
#include "show/cells.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

#define SHOWN_MAX 3 /* further members of a list are counted */

/* Members of a list as text: the first ones, and how many follow. */
typedef struct listed {
    kl_buf text;
    size_t n;
} listed;

static void list_add(listed *l, const char *text)
{
    if (l->n++ < SHOWN_MAX)
        kl_buf_printf(&l->text, "%s%s", l->n > 1 ? "," : "", text);
}

static void list_end(listed *l, const char *empty, kl_buf *out)
{
    if (l->n > SHOWN_MAX)
        kl_buf_printf(&l->text, " + %zu more...", l->n - SHOWN_MAX);
    kl_cell_text(l->text.len ? kl_buf_str(&l->text) : empty, out);
    kl_buf_fini(&l->text);
}

static void put_count(const kl_value *list, kl_buf *out) { kl_buf_printf(out, "%zu", kl_value_len(list)); }

static const char *text_at(const kl_value *o, const char *member)
{
    const char *text = kl_value_str(kl_value_get(o, member));
    return text ? text : "";
}

/* ------------------------------------------------------------------ endpoints */

/* A subset without ports shows addresses; one with ports shows each address with each of them. */
static void subset(listed *l, const kl_value *s)
{
    const kl_value *ports = kl_value_get(s, "ports"), *addresses = kl_value_get(s, "addresses");
    size_t nports = kl_value_len(ports), shown = 0;
    for (size_t p = 0; p < nports || (p == 0 && !nports); p++)
        for (size_t i = 0; i < kl_value_len(addresses) && l->n < SHOWN_MAX; i++, shown++) {
            const char *ip = text_at(kl_value_item(addresses, i), "ip");
            bool six = nports && strchr(ip, ':');
            char *text = nports ? kl_sprintf("%s%s%s:%" PRId64, six ? "[" : "", ip, six ? "]" : "",
                             kl_value_int_at(kl_value_item(ports, p), 0, "port", NULL))
                                : kl_strdup(ip);
            list_add(l, text);
            kl_free(text);
        }
    l->n += kl_value_len(addresses) * (nports ? nports : 1) - shown;
}

void kl_cell_endpoints(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    listed l = {0};
    const kl_value *subsets = kl_value_get(o, "subsets");
    for (size_t i = 0; i < kl_value_len(subsets); i++)
        subset(&l, kl_value_item(subsets, i));
    list_end(&l, kl_value_len(subsets) ? "" : "<none>", out);
}

void kl_cell_slice_ports(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    listed l = {0};
    const kl_value *ports = kl_value_get(o, "ports");
    for (size_t i = 0; i < kl_value_len(ports); i++) {
        const kl_value *p = kl_value_item(ports, i), *number = kl_value_get(p, "port");
        char *text = number ? kl_value_to_json(number)
                            : kl_strdup(kl_value_get(p, "name") ? text_at(p, "name") : "*");
        list_add(&l, text);
        kl_free(text);
    }
    list_end(&l, "<unset>", out);
}

void kl_cell_slice_endpoints(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    listed l = {0};
    const kl_value *endpoints = kl_value_get(o, "endpoints");
    for (size_t i = 0; i < kl_value_len(endpoints); i++) {
        const kl_value *addresses = kl_value_get(kl_value_item(endpoints, i), "addresses");
        for (size_t k = 0; k < kl_value_len(addresses); k++)
            list_add(&l, kl_value_str(kl_value_item(addresses, k)));
    }
    list_end(&l, "<unset>", out);
}

/* ------------------------------------------------------------------ accounts, revisions, classes */

void kl_cell_account_secrets(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_count(kl_value_get(o, "secrets"), out);
}

/* The controlling owner as "kind.group/name". */
void kl_cell_controller(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *owners = kl_value_at(o, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < kl_value_len(owners); i++) {
        const kl_value *one = kl_value_item(owners, i);
        const char *version = text_at(one, "apiVersion"), *slash = strchr(version, '/');
        if (!kl_value_bool(kl_value_get(one, "controller"), false))
            continue;
        char *kind = kl_sprintf(
            "%s%s%.*s", text_at(one, "kind"), slash ? "." : "", (int)(slash ? slash - version : 0), version);
        for (char *p = kind; *p; p++)
            *p = (char)tolower((unsigned char)*p);
        char *text = kl_sprintf("%s/%s", kind, text_at(one, "name"));
        kl_cell_text(text, out);
        kl_free(text);
        kl_free(kind);
        return;
    }
    kl_cell_text("<none>", out);
}

void kl_cell_parameters(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *p = kl_value_at(o, "spec", "parameters", NULL);
    bool group = kl_value_get(p, "apiGroup");
    char *text = p ? kl_sprintf("%s%s%s/%s", text_at(p, "kind"), group ? "." : "",
                     group ? text_at(p, "apiGroup") : "", text_at(p, "name"))
                   : NULL;
    kl_cell_text(text ? text : "<none>", out);
    kl_free(text);
}

/* ------------------------------------------------------------------ storage */

void kl_cell_driver_attaches(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    bool yes = kl_value_bool(kl_value_at(o, "spec", "attachRequired", NULL), true);
    kl_buf_puts(out, yes ? "true" : "false");
}

/* Texts of a list with commas between them. */
static void put_joined(const kl_value *list, const char *member, const char *empty, kl_buf *out)
{
    kl_buf text = KL_BUF_INIT;
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i);
        const char *word = member ? text_at(one, member) : kl_value_str(one);
        kl_buf_printf(&text, "%s%s", i ? "," : "", word ? word : "");
    }
    kl_cell_text(text.len ? kl_buf_str(&text) : empty, out);
    kl_buf_fini(&text);
}

void kl_cell_driver_tokens(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *list = kl_value_at(o, "spec", "tokenRequests", NULL);
    put_joined(list, "audience", list ? "" : "<unset>", out);
}

void kl_cell_driver_modes(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_joined(kl_value_at(o, "spec", "volumeLifecycleModes", NULL), NULL, "<none>", out);
}

void kl_cell_node_drivers(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_count(kl_value_at(o, "spec", "drivers", NULL), out);
}

/* ------------------------------------------------------------------ admission */

void kl_cell_webhooks(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_count(kl_value_get(o, "webhooks"), out);
}

void kl_cell_validations(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    put_count(kl_value_at(o, "spec", "validations", NULL), out);
}

void kl_cell_param_kind(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *kind = kl_value_at(o, "spec", "paramKind", NULL);
    char *text = kl_sprintf("%s/%s", text_at(kind, "apiVersion"), text_at(kind, "kind"));
    kl_cell_text(kind ? text : "<unset>", out);
    kl_free(text);
}

/* A selector as Go prints its struct. */
static void put_selector(const kl_value *s, kl_buf *out)
{
    kl_buf text = KL_BUF_INIT, sorted = KL_BUF_INIT;
    const kl_value *labels = NULL, *list = kl_value_get(s, "matchExpressions");
    if (!kl_value_encode_sorted(kl_value_get(s, "matchLabels"), &sorted))
        (void)!kl_value_decode(kl_buf_str(&sorted), sorted.len, &labels, NULL);
    kl_buf_puts(&text, "&LabelSelector{MatchLabels:map[string]string{");
    for (size_t i = 0; i < kl_value_len(labels); i++) {
        const char *key;
        const kl_value *v = kl_value_member(labels, i, &key, NULL);
        kl_buf_printf(&text, "%s: %s,", key, kl_value_str(v));
    }
    kl_buf_puts(&text, "},MatchExpressions:[]LabelSelectorRequirement{");
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *one = kl_value_item(list, i), *values = kl_value_get(one, "values");
        kl_buf_printf(&text, "LabelSelectorRequirement{Key:%s,Operator:%s,Values:[", text_at(one, "key"),
            text_at(one, "operator"));
        for (size_t k = 0; k < kl_value_len(values); k++)
            kl_buf_printf(&text, "%s%s", k ? " " : "", kl_value_str(kl_value_item(values, k)));
        kl_buf_puts(&text, "],},");
    }
    kl_buf_puts(&text, "},}");
    kl_cell_text(kl_buf_str(&text), out);
    kl_buf_fini(&text);
    kl_buf_fini(&sorted);
    kl_value_unref(labels);
}

void kl_cell_param_ref(const kl_value *o, kl_time now, kl_buf *out)
{
    (void)now;
    const kl_value *ref = kl_value_at(o, "spec", "paramRef", NULL), *selector = kl_value_get(ref, "selector");
    const char *name = text_at(ref, "name"), *ns = text_at(ref, "namespace");
    if (!*name && selector) {
        put_selector(selector, out);
        return;
    }
    char *text = kl_sprintf("%s/%s", *ns ? ns : "*", name);
    kl_cell_text(*name ? text : "<unset>", out);
    kl_free(text);
}
