/* connect.c - logs, exec, attach, port-forward and proxies: what an API server answers before it calls a
 * kubelet, a pod or a service. This one calls none of them. */
#include "server/container.h"
#include "server/rest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/time.h"
#include "schema/status.h"

/* ------------------------------------------------------------------ parameters */

/* Reads a number as Go does. False: the parameter is not there. */
static bool number(kl_httpd_request *http, const char *name, int64_t *out, kl_status *st, kl_err *err)
{
    const char *text = kl_httpd_query(http, name);
    if (!text || *st)
        return false;
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    bool digit = strchr("+-0123456789", *text) && end != text;
    if (!*text || *end || !digit || errno)
        *st = kl__fail_bad_request(err, "strconv.ParseInt: parsing \"%s\": %s", text,
            errno == ERANGE && !*end ? "value out of range" : "invalid syntax");
    return !*st;
}

static void too_small(kl__causes *causes, const char *field, int64_t x, const char *why)
{
    const kl_value *v = kl_value_of_int(x);
    kl__cause_invalid(causes, field, v, "%s", why);
    kl_value_unref(v);
}

static kl_status check_log(const kl__call *c, kl_httpd_request *http, kl_err *err)
{
    int64_t tail, bytes, seconds, sec;
    int32_t nsec;
    kl__causes causes = {0};
    kl_status st = KL_OK;
    const char *since = kl_httpd_query(http, "sinceTime");
    bool has_bytes = number(http, "limitBytes", &bytes, &st, err),
         has_seconds = number(http, "sinceSeconds", &seconds, &st, err);
    if (!st && since && *since && kl_time_parse(since, &sec, &nsec, NULL)) {
        char *why = kl_time_why_not(since, false);
        st = kl__fail_bad_request(err, "%s", why);
        kl_free(why);
    }
    bool has_tail = number(http, "tailLines", &tail, &st, err);
    if (st)
        return st;
    if (has_tail && tail < 0)
        too_small(&causes, "tailLines", tail, "must be greater than or equal to 0");
    if (has_bytes && bytes < 1)
        too_small(&causes, "limitBytes", bytes, "must be greater than 0");
    if (has_seconds && since && *since)
        kl__cause_forbidden(&causes, "[]", "at most one of `sinceTime` or `sinceSeconds` may be specified");
    else if (has_seconds && seconds < 1)
        too_small(&causes, "sinceSeconds", seconds, "must be greater than 0");
    if (kl_httpd_query(http, "stream"))
        kl__cause_forbidden(&causes, "stream", "may not be specified");
    return kl__fail_causes(err, "", "PodLogOptions", c->name, &causes);
}

/* The ports of a port-forward: numbers with commas between them. */
static kl_status check_ports(kl_httpd_request *http, kl_err *err)
{
    const char *p = kl_httpd_query(http, "ports");
    while (p && *p) {
        size_t n = strcspn(p, ",");
        if (!n || strspn(p, "0123456789") < n)
            return kl__fail_bad_request(err,
                "cannot convert to []int32: strconv.ParseUint: parsing \"%.*s\": invalid syntax", (int)n, p);
        p += n + (p[n] == ',');
    }
    return KL_OK;
}

/* ------------------------------------------------------------------ proxies */

/* The parts of "NAME", "NAME:PORT" or "SCHEME:NAME:PORT", cut in place. */
typedef struct target {
    const char *name, *port;
} target;

static bool split(char *id, target *out)
{
    char *words[4] = {0};
    size_t n = 0;
    for (char *rest = id; rest && n < 4;)
        words[n++] = strsep(&rest, ":");
    const char *scheme = n == 3 ? words[0] : "";
    if (n > 3 || (*scheme && strcmp(scheme, "http") && strcmp(scheme, "https")))
        return false;
    *out = (target){words[n == 3], n > 1 ? words[n - 1] : ""};
    return *out->name;
}

static kl_status nobody(const char *what, const char *name, kl_err *err)
{
    return kl__api_fail(err, 503, "ServiceUnavailable", NULL, "%s for service \"%s\"", what, name);
}

/* Finds the endpoints of a service, whose port is named or numbered. */
static kl_status check_service(const kl__call *c, const target *t, const char *id, kl_err *err)
{
    const kl_value *service = NULL, *ports, *found = NULL;
    char *end, *key = kl_key_join(c->ns, t->name);
    long long n = strtoll(t->port, &end, 10);
    kl_status st = KL_OK;
    if (*t->port && !*end) {
        st = kl__verb_get(c, &service, err);
        ports = kl_value_at(service, "spec", "ports", NULL);
        for (size_t i = 0; i < kl_value_len(ports) && !found; i++)
            if (kl_value_int_at(kl_value_item(ports, i), 0, "port", NULL) == n)
                found = kl_value_item(ports, i);
        if (!st && !found)
            st = kl__api_fail(err, 503, "ServiceUnavailable", NULL,
                "no service port %lld found for service \"%s\"", n, t->name);
    }
    const kl__kind *k = kl__kinds_get(c->w->kinds, "", "v1", "endpoints");
    const kl__entry *e = kl__bucket_get(k->bucket, key);
    if (!st && !e)
        st = kl__fail_not_found(err, c->kind, t->name);
    if (!st && !kl_value_len(kl_value_get(e->object, "subsets")))
        st = nobody("no endpoints available", t->name, err);
    if (!st)
        st = nobody("no endpoints available", id, err); /* no address of them is a pod's that runs */
    kl_free(key);
    return st;
}

/* A pod's address must be one that other machines could reach. */
static kl_status check_address(const kl_value *pod, kl_err *err)
{
    static const char *const local[] = {"127.", "0.", "169.254.", "224.", "::1", "fe80:", "ff"};
    const char *ip = kl_value_str_at(pod, "status", "podIP", NULL);
    bool allowed = ip && *ip;
    for (size_t i = 0; allowed && i < sizeof local / sizeof *local; i++)
        allowed = strncmp(ip, local[i], strlen(local[i])) != 0;
    return allowed ? KL_OK : kl__fail_bad_request(err, "address not allowed");
}

static kl_status proxy(const kl__call *c, kl_err *err)
{
    target t;
    const kl_value *o = NULL;
    char *id = kl_strdup(c->name);
    kl__call named = *c;
    kl_status st;
    bool service = !strcmp(c->kind->plural, "services"), pod = !strcmp(c->kind->plural, "pods");
    if (!split(id, &t))
        st = kl__fail_bad_request(err, "invalid %s request \"%s\"", c->kind->singular, c->name);
    else {
        named.name = t.name;
        st = service ? check_service(&named, &t, c->name, err) : kl__verb_get(&named, &o, err);
        if (!st && pod)
            st = check_address(o, err);
    }
    if (!st)
        st = kl__api_fail(err, 501, "NotImplemented", NULL,
            "the embedded API server calls no pods and nodes: it does not serve %s/proxy", c->kind->plural);
    kl_free(id);
    return st;
}

/* ------------------------------------------------------------------ all of them */

bool kl__rest_connects(const kl__call *c)
{
    return c->sub && (kl__pod_connects(c->sub) || !strcmp(c->sub, "proxy"));
}

kl_status kl__rest_connect(const kl__call *c, kl_httpd_request *http, kl_err *err)
{
    const kl_value *pod = NULL;
    if (!strcmp(c->sub, "proxy"))
        return proxy(c, err);
    kl_status st = !strcmp(c->sub, "log") ? check_log(c, http, err)
        : !strcmp(c->sub, "portforward")  ? check_ports(http, err)
                                          : KL_OK;
    if (!st)
        st = kl__verb_get(c, &pod, err);
    return st ? st : kl__pod_connect(pod, c->sub, kl_httpd_query(http, "container"), err);
}
