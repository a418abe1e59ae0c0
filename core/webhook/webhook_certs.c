/* webhook_certs.c - the CA lives as long as forty certificates; it is replaced while it can still sign two
 * of them, and its successor's bundle keeps it, so that whoever trusts the bundle trusts what is shown
 * before and after. */
#include "webhook/webhook_certs.h"

#include <arpa/inet.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/x509.h"
#include "base/x509_sign.h"

#define CA_LIVES 40
#define CA_SPARE 2
/* Clocks differ, so a new certificate is valid from an hour ago. */
#define SKEW KL_MINUTES(60)
#define DEFAULT_LIFE (KL_MINUTES(60 * 24) * 90)

void kl_webhook_certs_fini(kl_webhook_certs *c)
{
    kl_free(c->ca);
    kl_x509_wipe(c->ca_key);
    kl_free(c->cert);
    kl_x509_wipe(c->key);
    *c = (kl_webhook_certs){0};
}

void kl_webhook_names_fini(kl_webhook_names *n)
{
    for (size_t i = 0; n->dns[i]; i++)
        kl_free(n->dns[i]);
    for (size_t i = 0; n->ips[i]; i++)
        kl_free(n->ips[i]);
    *n = (kl_webhook_names){0};
}

void kl_webhook_names_of(const kl_webhook_options *o, const char *url, kl_webhook_names *out)
{
    *out = (kl_webhook_names){0};
    kl_webhook_service s = {0};
    if (o->service && !kl_webhook_service_parse(o->service, &s, NULL)) {
        out->dns[0] = kl_sprintf("%s.%s.svc", s.name, s.ns); /* the name that the API server verifies */
        out->dns[1] = kl_sprintf("%s.%s.svc.cluster.local", s.name, s.ns);
        out->dns[2] = kl_sprintf("%s.%s", s.name, s.ns);
        out->dns[3] = kl_strdup(s.name);
    } else if (url) {
        const char *host = url + strlen("https://");
        bool six = *host == '[';
        size_t n = six ? strcspn(++host, "]") : strcspn(host, ":/");
        char *name = kl_strndup(host, n);
        unsigned char ip[16];
        if (inet_pton(six ? AF_INET6 : AF_INET, name, ip) == 1)
            out->ips[0] = name;
        else
            out->dns[0] = name;
    }
    kl_webhook_service_fini(&s);
}

static kl_time life_of(kl_time life) { return life > 0 ? life : DEFAULT_LIFE; }

static bool has(char *const *list, const char *name)
{
    for (; list && *list; list++)
        if (!strcmp(*list, name))
            return true;
    return false;
}

static bool lasts(const char *pem, kl_time until)
{
    kl_time end;
    return pem && !kl_x509_not_after(pem, &end, NULL) && end >= until;
}

bool kl_webhook_certs_good(const kl_webhook_certs *c, const kl_webhook_names *n, kl_time life, kl_time now)
{
    kl_x509_facts f;
    life = life_of(life);
    if (!c->ca || !c->ca_key || !c->cert || !c->key || !lasts(c->cert, now + life / 3)
        || !lasts(c->ca, now + CA_SPARE * life) || kl_x509_check_pair(c->cert, c->key, NULL)
        || kl_x509_check_pair(c->ca, c->ca_key, NULL) || kl_x509_facts_read(c->cert, &f, NULL))
        return false;
    bool good = true;
    for (size_t i = 0; n->dns[i]; i++)
        good &= has(f.dns, n->dns[i]);
    for (size_t i = 0; n->ips[i]; i++)
        good &= has(f.ips, n->ips[i]);
    kl_x509_facts_fini(&f);
    return good;
}

/* The first certificate of a bundle. */
static size_t first_length(const char *pem)
{
    static const char end[] = "-----END CERTIFICATE-----";
    const char *p = strstr(pem, end);
    return p ? (size_t)(p - pem) + sizeof end - 1 : strlen(pem);
}

kl_status kl_webhook_certs_renew(
    kl_webhook_certs *c, const kl_webhook_names *n, kl_time life, kl_time now, kl_err *err)
{
    life = life_of(life);
    kl_webhook_certs fresh = {0};
    kl_status st = KL_OK;
    bool keep = c->ca && c->ca_key && lasts(c->ca, now + CA_SPARE * life)
        && !kl_x509_check_pair(c->ca, c->ca_key, NULL);
    if (keep) {
        fresh.ca = kl_strdup(c->ca);
        fresh.ca_key = kl_strdup(c->ca_key);
    } else {
        st = kl_x509_make_ca(
            "kubelua webhooks", now - SKEW, now + CA_LIVES * life, &fresh.ca, &fresh.ca_key, err);
        if (!st && lasts(c->ca, now)) {
            char *both = kl_sprintf("%s%.*s\n", fresh.ca, (int)first_length(c->ca), c->ca);
            kl_free(fresh.ca);
            fresh.ca = both;
        }
    }
    const char *cn = n->dns[0] ? n->dns[0] : n->ips[0] ? n->ips[0] : "webhook";
    if (!st)
        st = kl_x509_make_server(&(kl_x509_wish){.cn = strlen(cn) <= 64 ? cn : "kubelua webhooks",
                                     .dns = (const char *const *)n->dns,
                                     .ips = (const char *const *)n->ips},
            &(kl_x509_issue){fresh.ca, fresh.ca_key, now - SKEW, now + life}, &fresh.cert, &fresh.key, err);
    if (st) {
        kl_webhook_certs_fini(&fresh);
        return st;
    }
    kl_webhook_certs_fini(c);
    *c = fresh;
    return KL_OK;
}

/* --- as a Secret -------------------------------------------------------------------------- */

static const struct {
    const char *key;
    size_t at;
} DATA[] = {
    {"ca.crt", offsetof(kl_webhook_certs, ca)},
    {"ca.key", offsetof(kl_webhook_certs, ca_key)},
    {"tls.crt", offsetof(kl_webhook_certs, cert)},
    {"tls.key", offsetof(kl_webhook_certs, key)},
};

void kl_webhook_certs_read(const kl_value *secret, kl_webhook_certs *out)
{
    *out = (kl_webhook_certs){0};
    for (size_t i = 0; i < sizeof DATA / sizeof *DATA; i++) {
        size_t n;
        const char *text = kl_value_strn(kl_value_at(secret, "data", DATA[i].key, NULL), &n);
        kl_buf b = KL_BUF_INIT;
        if (text && !kl_base64_decode(text, n, &b, NULL) && b.len)
            *(char **)((char *)out + DATA[i].at) = kl_buf_take(&b);
        kl_buf_fini(&b);
    }
}

const kl_value *kl_webhook_certs_secret(
    const kl_webhook_certs *c, const char *ns, const char *name, const char *rv)
{
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    kl_build_kstr(b, "apiVersion", "v1");
    kl_build_kstr(b, "kind", "Secret");
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "namespace", ns);
    kl_build_kstr(b, "name", name);
    kl_build_kstr(b, "resourceVersion", rv);
    kl_build_key(b, "labels");
    kl_build_object(b);
    kl_build_kstr(b, "app.kubernetes.io/managed-by", "kubelua");
    kl_build_end(b);
    kl_build_end(b);
    kl_build_kstr(b, "type", "kubernetes.io/tls");
    kl_build_key(b, "data");
    kl_build_object(b);
    for (size_t i = 0; i < sizeof DATA / sizeof *DATA; i++) {
        const char *pem = *(char *const *)((const char *)c + DATA[i].at);
        char *text = kl_base64_encode(pem, strlen(pem));
        kl_build_kstr(b, DATA[i].key, text);
        kl_x509_wipe(text);
    }
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}
