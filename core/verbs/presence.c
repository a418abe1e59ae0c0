/* presence.c - the Lease and the ConfigMaps that kube-apiserver keeps of itself. */
#include "verbs/presence.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/object.h"
#include "model/time.h"
#include "schema/edit.h"
#include "verbs/first.h"

#define NS "kube-system"
#define RENEW_EVERY KL_SECONDS(10)
#define LEASE_SECONDS 3600
#define HOST_MAX 64
#define LEASE_NAME_MAX 40

static const char *host(char out[HOST_MAX])
{
    memset(out, 0, HOST_MAX);
    if (gethostname(out, HOST_MAX - 1) || !*out)
        strcpy(out, "localhost");
    return out;
}

/* "apiserver-" and 26 letters of the host's name: one name for all servers of a machine, one after the
 * other. */
static const char *lease_name(char out[LEASE_NAME_MAX])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
    char text[HOST_MAX];
    kl_random r = {0};
    for (const char *p = host(text); *p; p++)
        r.state = (r.state ^ (unsigned char)*p) * 0x100000001b3u;
    char *p = out + sprintf(out, "apiserver-");
    for (int i = 0; i < 26; i++)
        *p++ = letters[kl_random_next(&r) & 31];
    *p = '\0';
    return out;
}

static const kl_value *renew_time(const kl__world *w)
{
    char now[KL_TIME_MAX];
    kl_time wall = kl__world_wall(w);
    return kl_value_of_str(kl_time_format_micro(wall / KL_SECONDS(1), (int32_t)(wall % KL_SECONDS(1)), now));
}

static const kl_value *new_lease(kl__world *w, const char *name)
{
    char text[HOST_MAX];
    const kl_value *o = kl_value_empty(KL_OBJECT), *uid = kl__world_uid(w);
    char *holder = kl_sprintf("%s_%s", name, kl_value_str(uid));
    KL_EDIT(&o, kl_value_of_str("coordination.k8s.io/v1"), "apiVersion");
    KL_EDIT(&o, kl_value_of_str("Lease"), "kind");
    KL_EDIT(&o, kl_value_of_str(NS), "metadata", "namespace");
    KL_EDIT(&o, kl_value_of_str(name), "metadata", "name");
    KL_EDIT(&o, kl_value_of_str("kube-apiserver"), "metadata", "labels", "apiserver.kubernetes.io/identity");
    KL_EDIT(&o, kl_value_of_str(host(text)), "metadata", "labels", "kubernetes.io/hostname");
    KL_EDIT(&o, kl_value_of_str(holder), "spec", "holderIdentity");
    KL_EDIT(&o, kl_value_of_int(LEASE_SECONDS), "spec", "leaseDurationSeconds");
    KL_EDIT(&o, renew_time(w), "spec", "renewTime");
    kl_free(holder);
    kl_value_unref(uid);
    return o;
}

static kl_status renew(kl__world *w, kl_err *err)
{
    char name[LEASE_NAME_MAX];
    kl__call c = {.w = w,
        .kind = kl__kinds_get(w->kinds, "coordination.k8s.io", "v1", "leases"),
        .ns = NS,
        .name = lease_name(name),
        .manager = "kube-apiserver"};
    const kl_value *now = NULL, *out = NULL;
    int code;
    if (kl__verb_get(&c, &now, NULL))
        return kl__first_missing(w, new_lease(w, name), err);
    now = kl_value_ref(now);
    KL_EDIT(&now, renew_time(w), "spec", "renewTime");
    kl_status st = kl__verb_update(&c, now, &out, &code, err);
    kl_value_unref(now);
    kl_value_unref(out);
    return st;
}

kl_time kl__presence_tick(kl__world *w)
{
    kl_time now = kl_clock_now(w->clock);
    if (!w->complete)
        return KL_NEVER;
    if (now >= w->renewal) {
        w->renewal = now + RENEW_EVERY;
        (void)!renew(w, NULL); /* a namespace or a quota may refuse it: again next time */
    }
    return w->renewal;
}

static const kl_value *config_map(const char *name, const char *key, const char *text)
{
    const kl_value *o = kl_value_empty(KL_OBJECT);
    KL_EDIT(&o, kl_value_of_str("v1"), "apiVersion");
    KL_EDIT(&o, kl_value_of_str("ConfigMap"), "kind");
    KL_EDIT(&o, kl_value_of_str(NS), "metadata", "namespace");
    KL_EDIT(&o, kl_value_of_str(name), "metadata", "name");
    KL_EDIT(&o, kl_value_of_str(text), "data", key);
    return o;
}

/* The certificates of a PEM text, without what stands around them; the caller frees it. */
static char *certificates(const char *pem)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
    kl_buf out = KL_BUF_INIT;
    const char *stop;
    for (const char *p = pem; (p = strstr(p, begin)) && (stop = strstr(p, end)); p = stop) {
        stop += sizeof end - 1;
        kl_buf_add(&out, p, (size_t)(stop - p));
        kl_buf_putc(&out, '\n');
    }
    return kl_buf_take(&out);
}

kl_status kl__presence_begin(kl__world *w, const char *authorities, kl_err *err)
{
    char day[KL_TIME_MAX];
    if (!w->complete)
        return KL_OK;
    kl_time_format_wall(kl__world_wall(w), day)[10] = '\0';
    kl_status st = kl__first_missing(
        w, config_map("kube-apiserver-legacy-service-account-token-tracking", "since", day), err);
    if (!st && authorities) {
        char *pem = certificates(authorities);
        st = kl__first_missing(
            w, config_map("extension-apiserver-authentication", "client-ca-file", pem), err);
        kl_free(pem);
    }
    w->renewal = kl_clock_now(w->clock) + RENEW_EVERY;
    return st ? st : renew(w, err);
}
