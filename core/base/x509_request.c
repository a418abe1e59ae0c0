/* x509_request.c - certificate signing requests and the facts of certificates, by OpenSSL (see x509.c). */
#include "base/x509_request.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include "base/mem.h"
#include "base/x509_pem.h"

static void *need(void *p)
{
    if (!p)
        kl_mem_die("memory (certificates)");
    return p;
}

static kl_status fail(kl_err *err, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    ERR_clear_error();
    return kl_fail(err, KL_EINVAL, "%s: %s", what, reason ? reason : "OpenSSL gives no reason");
}

static char *text_of(BIO *b)
{
    char *data;
    long n = BIO_get_mem_data(b, &data);
    return kl_strndup(data, (size_t)n);
}

void kl_x509_wipe(char *key)
{
    if (key)
        OPENSSL_cleanse(key, strlen(key));
    kl_free(key);
}

/* --- asking ------------------------------------------------------------------------------- */

static kl_status add_name(X509_NAME *name, const char *field, const char *value, kl_err *err)
{
    if (X509_NAME_add_entry_by_txt(name, field, MBSTRING_UTF8, (const unsigned char *)value, -1, -1, 0) == 1)
        return KL_OK;
    char what[160];
    snprintf(what, sizeof what, "the subject's %s \"%.100s\" is not allowed in a certificate", field, value);
    return fail(err, what);
}

static kl_status set_subject(X509_REQ *r, const kl_x509_wish *w, kl_err *err)
{
    X509_NAME *name = need(X509_NAME_new());
    kl_status st = KL_OK;
    for (const char *const *o = w->orgs; !st && o && *o; o++)
        st = add_name(name, "O", *o, err);
    if (!st && w->cn && *w->cn)
        st = add_name(name, "CN", w->cn, err);
    if (!st && X509_REQ_set_subject_name(r, name) != 1)
        st = fail(err, "the subject cannot be set");
    X509_NAME_free(name);
    return st;
}

static void add_general(GENERAL_NAMES *all, int type, ASN1_STRING *s, const void *data, size_t n)
{
    GENERAL_NAME *g = need(GENERAL_NAME_new());
    need(s);
    if (ASN1_STRING_set(s, data, (int)n) != 1)
        kl_mem_die("memory (certificates)");
    GENERAL_NAME_set0_value(g, type, s);
    if (!sk_GENERAL_NAME_push(all, g))
        kl_mem_die("memory (certificates)");
}

/* Go takes DNS names as they are, but for what IA5String cannot hold. */
static bool is_ia5(const char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s > 127 || (unsigned char)*s <= ' ')
            return false;
    return true;
}

static kl_status add_names(GENERAL_NAMES *all, const kl_x509_wish *w, kl_err *err)
{
    for (const char *const *d = w->dns; d && *d; d++) {
        if (!**d || !is_ia5(*d))
            return kl_fail(err, KL_EINVAL, "\"%.100s\" is not a DNS name", *d);
        add_general(all, GEN_DNS, ASN1_IA5STRING_new(), *d, strlen(*d));
    }
    for (const char *const *i = w->ips; i && *i; i++) {
        unsigned char ip[16];
        size_t n = inet_pton(AF_INET, *i, ip) == 1 ? 4 : inet_pton(AF_INET6, *i, ip) == 1 ? 16 : 0;
        if (!n)
            return kl_fail(err, KL_EINVAL, "\"%.100s\" is not an IP address", *i);
        add_general(all, GEN_IPADD, ASN1_OCTET_STRING_new(), ip, n);
    }
    return KL_OK;
}

static kl_status set_names(X509_REQ *r, const kl_x509_wish *w, kl_err *err)
{
    if (!(w->dns && *w->dns) && !(w->ips && *w->ips))
        return KL_OK;
    GENERAL_NAMES *all = need(sk_GENERAL_NAME_new_null());
    STACK_OF(X509_EXTENSION) *extensions = NULL;
    kl_status st = add_names(all, w, err);
    if (!st
        && (X509V3_add1_i2d(&extensions, NID_subject_alt_name, all, 0, 0) != 1
            || X509_REQ_add_extensions(r, extensions) != 1))
        st = fail(err, "the names cannot be set");
    sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
    GENERAL_NAMES_free(all);
    return st;
}

kl_status kl_x509_request(const kl_x509_wish *w, char **key, char **request, kl_err *err)
{
    EVP_PKEY *k = EVP_EC_gen("P-256");
    if (!k)
        return fail(err, "the key cannot be generated");
    X509_REQ *r = need(X509_REQ_new());
    BIO *key_text = need(BIO_new(BIO_s_secmem())), *text = need(BIO_new(BIO_s_mem()));
    kl_status st = set_subject(r, w, err);
    if (!st)
        st = set_names(r, w, err);
    if (!st
        && (X509_REQ_set_version(r, 0) != 1 || X509_REQ_set_pubkey(r, k) != 1
            || X509_REQ_sign(r, k, EVP_sha256()) <= 0 || PEM_write_bio_X509_REQ(text, r) != 1
            || PEM_write_bio_PrivateKey_traditional(key_text, k, NULL, NULL, 0, NULL, NULL) != 1))
        st = fail(err, "the request cannot be created");
    if (!st) {
        *key = text_of(key_text);
        *request = text_of(text);
    }
    BIO_free(key_text);
    BIO_free(text);
    X509_REQ_free(r);
    EVP_PKEY_free(k);
    ERR_clear_error();
    return st;
}

/* --- reading ------------------------------------------------------------------------------ */

static void add_text(char ***list, const char *s, size_t n)
{
    size_t len = 0;
    while (*list && (*list)[len])
        len++;
    *list = kl_realloc(*list, (len + 2) * sizeof **list);
    (*list)[len] = kl_strndup(s, n);
    (*list)[len + 1] = NULL;
}

static char *entry_text(X509_NAME *name, int at)
{
    unsigned char *utf8 = NULL;
    int n = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    char *s = n < 0 ? kl_strdup("") : kl_strndup((const char *)utf8, (size_t)n);
    OPENSSL_free(utf8);
    return s;
}

static void read_subject(X509_NAME *name, kl_x509_facts *out)
{
    for (int at = -1; (at = X509_NAME_get_index_by_NID(name, NID_organizationName, at)) >= 0;) {
        char *s = entry_text(name, at);
        add_text(&out->orgs, s, strlen(s));
        kl_free(s);
    }
    int cn = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
    out->cn = cn >= 0 ? entry_text(name, cn) : kl_strdup("");
}

static void read_names(X509 *x, kl_x509_facts *out)
{
    GENERAL_NAMES *all = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
        int type;
        const ASN1_STRING *s = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(all, i), &type);
        const char *data = type == GEN_DNS || type == GEN_IPADD ? (const char *)ASN1_STRING_get0_data(s)
                                                                : NULL;
        char ip[INET6_ADDRSTRLEN];
        int n = data ? ASN1_STRING_length(s) : 0;
        if (data && type == GEN_DNS)
            add_text(&out->dns, data, (size_t)n);
        else if (data && (n == 4 || n == 16) && inet_ntop(n == 4 ? AF_INET : AF_INET6, data, ip, sizeof ip))
            add_text(&out->ips, ip, strlen(ip));
    }
    GENERAL_NAMES_free(all);
}

static bool read_time(const ASN1_TIME *t, kl_time *out)
{
    struct tm tm = {0};
    if (ASN1_TIME_to_tm(t, &tm) != 1)
        return false;
    *out = KL_SECONDS(timegm(&tm));
    return true;
}

kl_status kl_x509_facts_read(const char *pem, kl_x509_facts *out, kl_err *err)
{
    X509 *x = kl__pem_certificate(pem);
    if (!x)
        return fail(err, "it does not contain a readable certificate");
    kl_x509_facts f = {0};
    bool good = read_time(X509_get0_notBefore(x), &f.not_before)
        && read_time(X509_get0_notAfter(x), &f.not_after);
    read_subject(X509_get_subject_name(x), &f);
    read_names(x, &f);
    X509_free(x);
    ERR_clear_error();
    if (!good) {
        kl_x509_facts_fini(&f);
        return kl_fail(err, KL_ESYNTAX, "the certificate's times cannot be read");
    }
    *out = f;
    return KL_OK;
}

static void free_list(char **list)
{
    for (char **s = list; s && *s; s++)
        kl_free(*s);
    kl_free(list);
}

void kl_x509_facts_fini(kl_x509_facts *f)
{
    kl_free(f->cn);
    free_list(f->orgs);
    free_list(f->dns);
    free_list(f->ips);
    *f = (kl_x509_facts){0};
}
