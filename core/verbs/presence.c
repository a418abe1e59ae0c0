/* presence.c - the Lease and the ConfigMaps that kube-apiserver keeps of itself. */
#include "verbs/presence.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/x509.h"
#include "model/object.h"
#include "model/time.h"
#include "schema/edit.h"
#include "verbs/first.h"

#define NS "kube-system"
#define TRACKING "kube-apiserver-legacy-service-account-token-tracking"
#define AUTHORITIES "extension-apiserver-authentication"
#define RENEW_EVERY KL_SECONDS(10)
#define LOOK_EVERY KL_SECONDS(60)
#define MAKE_EVERY KL_MINUTES(30)
#define PEM_WIDTH 64
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

/* ------------------------------------------------------------------ ConfigMaps */

static const kl_value *config_map(const char *name)
{
    const kl_value *o = kl_value_empty(KL_OBJECT);
    KL_EDIT(&o, kl_value_of_str("v1"), "apiVersion");
    KL_EDIT(&o, kl_value_of_str("ConfigMap"), "kind");
    KL_EDIT(&o, kl_value_of_str(NS), "metadata", "namespace");
    KL_EDIT(&o, kl_value_of_str(name), "metadata", "name");
    return o;
}

/* Writes data (taken) as that of a ConfigMap, which is `now` (NULL: there is none). */
static kl_status write_map(
    kl__world *w, const char *name, const kl_value *now, const kl_value *data, kl_err *err)
{
    kl__call c = {.w = w,
        .kind = kl__kinds_get(w->kinds, "", "v1", "configmaps"),
        .ns = NS,
        .name = name,
        .manager = "kube-apiserver"};
    const kl_value *o = now ? kl_value_ref(now) : config_map(name), *out = NULL;
    int code;
    KL_EDIT(&o, data, "data");
    kl_status st = now ? kl__verb_update(&c, o, &out, &code, err) : kl__verb_create(&c, o, &out, err);
    kl_value_unref(o);
    kl_value_unref(out);
    return st;
}

/* A ConfigMap, or NULL; borrowed. */
static const kl_value *map_of(const kl__world *w, const char *name)
{
    char *key = kl_sprintf(NS "/%s", name);
    const kl__entry *e = kl__bucket_get(kl__store_bucket(w->store, "", "configmaps"), key);
    kl_free(key);
    return e ? e->object : NULL;
}

static bool is_date(const char *text)
{
    int64_t sec;
    int32_t nsec;
    char *whole = kl_sprintf("%sT00:00:00Z", text ? text : "");
    bool yes = !kl_time_parse(whole, &sec, &nsec, NULL);
    kl_free(whole);
    return yes;
}

/* Since when the use of old tokens is noted. Servers of one cluster may disagree about the ConfigMap, so that
 * one makes it every half hour at most. */
static kl_status keep_tracking(kl__world *w, kl_err *err)
{
    char day[KL_TIME_MAX];
    const kl_value *now = map_of(w, TRACKING), *data = now ? kl_value_ref(kl_value_get(now, "data")) : NULL;
    bool good = now && is_date(kl_value_str_at(data, "since", NULL));
    if (good || (!now && kl_clock_now(w->clock) < w->tracking)) {
        kl_value_unref(data);
        return KL_OK;
    }
    if (!now)
        w->tracking = kl_clock_now(w->clock) + MAKE_EVERY;
    kl_time_format_wall(kl__world_wall(w), day)[10] = '\0';
    data = data ? data : kl_value_empty(KL_OBJECT);
    KL_EDIT(&data, kl_value_of_str(day), "since");
    return write_map(w, TRACKING, now, data, err);
}

/* Adds the certificates of a PEM text that are valid and not there yet. False: one cannot be read. */
static bool add_certificates(const kl__world *w, const char *pem, kl_map *seen, kl_buf *out)
{
    static const char begin[] = "-----BEGIN CERTIFICATE-----", end[] = "-----END CERTIFICATE-----";
    const char *stop;
    bool good = true;
    for (const char *p = pem; good && p && (p = strstr(p, begin)) && (stop = strstr(p, end)); p = stop) {
        kl_buf one = KL_BUF_INIT;
        kl_time until = 0;
        size_t letters = 0;
        kl_buf_printf(&one, "%s\n", begin);
        for (p += sizeof begin - 1; p < stop; p++) {
            if (strchr(" \t\r\n", *p))
                continue;
            kl_buf_putc(&one, *p);
            if (++letters % PEM_WIDTH == 0)
                kl_buf_putc(&one, '\n');
        }
        kl_buf_printf(&one, "%s%s\n", letters % PEM_WIDTH ? "\n" : "", end);
        stop += sizeof end - 1;
        good = !kl_x509_not_after(kl_buf_str(&one), &until, NULL);
        if (good && until > kl__world_wall(w) - KL_MINUTES(5) && !kl_map_set(seen, kl_buf_str(&one), seen))
            kl_buf_add(out, one.data, one.len);
        kl_buf_fini(&one);
    }
    return good;
}

/* The authorities of clients: those that are there, and those of this server. */
static kl_status keep_authorities(kl__world *w, kl_err *err)
{
    static const char *const proxy[] = {"requestheader-username-headers", "requestheader-uid-headers",
        "requestheader-group-headers", "requestheader-extra-headers-prefix", "requestheader-client-ca-file",
        "requestheader-allowed-names"};
    const kl_value *now = map_of(w, AUTHORITIES), *had = kl_value_get(now, "data");
    kl_buf all = KL_BUF_INIT;
    kl_map *seen = kl_map_new();
    bool good = add_certificates(w, kl_value_str(kl_value_get(had, "client-ca-file")), seen, &all)
        && add_certificates(w, w->authorities, seen, &all);
    kl_map_free(seen, NULL);
    if (!good) {
        kl_buf_fini(&all);
        return KL_OK; /* of a text that cannot be read nothing is known */
    }
    const kl_value *data = kl_value_empty(KL_OBJECT);
    if (all.len)
        KL_EDIT(&data, kl_value_of_str(kl_buf_str(&all)), "client-ca-file");
    for (size_t i = 0; i < sizeof proxy / sizeof *proxy && kl_value_get(had, proxy[4]); i++)
        if (kl_value_get(had, proxy[i]))
            KL_EDIT(&data, kl_value_ref(kl_value_get(had, proxy[i])), proxy[i]);
    kl_status st = KL_OK;
    if (kl_value_len(data) != kl_value_len(had) || (had && !kl_value_equal(data, had)))
        st = write_map(w, AUTHORITIES, now, kl_value_ref(data), err);
    kl_value_unref(data);
    kl_buf_fini(&all);
    return st;
}

bool kl__presence_noticed(kl__world *w, const kl__bucket *b, const char *key, bool updated)
{
    if (!w->complete || *b->group || strcmp(b->plural, "configmaps")
        || !(!strcmp(key, NS "/" TRACKING) || (!updated && !strcmp(key, NS "/" AUTHORITIES))))
        return false;
    w->look = 0;
    return true;
}

void kl__presence_end(kl__world *w)
{
    kl_free(w->authorities);
    w->authorities = NULL;
}

/* ------------------------------------------------------------------ both */

kl_time kl__presence_tick(kl__world *w)
{
    kl_time now = kl_clock_now(w->clock);
    if (!w->complete)
        return KL_NEVER;
    /* A namespace or a quota may refuse a write: it is tried again next time. */
    if (now >= w->renewal) {
        w->renewal = now + RENEW_EVERY;
        (void)!renew(w, NULL);
    }
    if (now >= w->look) {
        w->look = now + LOOK_EVERY; /* a write of these brings the next look forward */
        (void)!keep_tracking(w, NULL);
        (void)!keep_authorities(w, NULL);
    }
    return w->renewal < w->look ? w->renewal : w->look;
}

kl_status kl__presence_begin(kl__world *w, const char *authorities, kl_err *err)
{
    if (!w->complete)
        return KL_OK;
    w->authorities = kl_strdup(authorities);
    w->renewal = kl_clock_now(w->clock) + RENEW_EVERY;
    kl_status st = keep_tracking(w, err);
    if (!st)
        st = keep_authorities(w, err);
    w->look = kl_clock_now(w->clock) + LOOK_EVERY;
    return st ? st : renew(w, err);
}
