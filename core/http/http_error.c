/* http_error.c - messages about failed transfers: the server, the fact, and the way out. */
#include "http/http_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* X509_V_ERR_* of OpenSSL that have a name here; libcurl reports them as plain numbers. */
enum {
    X509_NOT_YET_VALID = 9,
    X509_EXPIRED = 10,
    X509_SELF_SIGNED = 18,
    X509_SELF_SIGNED_IN_CHAIN = 19,
    X509_NO_ISSUER = 20,
    X509_UNVERIFIABLE_LEAF = 21
};

static const char *seconds(kl_time t, char out[32])
{
    snprintf(out, 32, "%.3gs", (double)t / 1e9);
    return out;
}

static kl_status fail_certificate(kl__transfer *t, kl_err *err)
{
    long code = 0;
    kl__curl.easy_getinfo(t->easy, CURLINFO_SSL_VERIFYRESULT, &code);
    switch (code) {
    case X509_EXPIRED:
        return kl_fail(err, KL_ECONNECT,
            "the certificate of %s has expired: renew it on the server (or check this machine's clock)",
            t->peer);
    case X509_NOT_YET_VALID:
        return kl_fail(err, KL_ECONNECT,
            "the certificate of %s is not valid yet: check the clocks of both machines", t->peer);
    case X509_SELF_SIGNED:
    case X509_SELF_SIGNED_IN_CHAIN:
    case X509_NO_ISSUER:
    case X509_UNVERIFIABLE_LEAF:
        return kl_fail(err, KL_ECONNECT,
            "the certificate of %s is signed by an unknown authority, not by %s; give %s", t->peer, t->ca,
            t->reach ? "its CA (tls.ca)" : "the cluster's CA (certificate-authority)");
    default: break;
    }
    if (strstr(t->story, "does not match") || strstr(t->story, "no alternative certificate subject name"))
        return kl_fail(err, KL_ECONNECT,
            "the certificate of %s is not for \"%s\": set %s to a name in the certificate", t->peer,
            t->server_name, t->reach ? "tls.server_name" : "tls-server-name");
    return kl_fail(
        err, KL_ECONNECT, "the certificate of %s does not verify against %s: %s", t->peer, t->ca, t->story);
}

static kl_status fail_proxy(kl__transfer *t, const char *why, kl_err *err)
{
    return kl_fail(err, KL_ECONNECT,
        "no connection to %s through the proxy %s: %s; check proxy-url, or HTTPS_PROXY and NO_PROXY", t->peer,
        t->proxy, why);
}

/* libcurl does not report that the process is out of file descriptors, so we try to open one. */
static bool no_descriptors(kl__transfer *t, kl_err *err)
{
    struct rlimit limit = {0};
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC), why = errno;
    if (fd >= 0) {
        close(fd);
        return false;
    }
    if (why != EMFILE && why != ENFILE)
        return false;
    getrlimit(RLIMIT_NOFILE, &limit);
    if (why == EMFILE)
        kl_fail(err, KL_ECONNECT,
            "no connection to %s: this process has no file descriptors left, its limit is %llu; raise it "
            "(ulimit -n, LimitNOFILE=)",
            t->peer, (unsigned long long)limit.rlim_cur);
    else
        kl_fail(err, KL_ECONNECT,
            "no connection to %s: this machine has no file descriptors left (fs.file-max)", t->peer);
    return true;
}

static kl_status fail_connect(kl__transfer *t, kl_err *err)
{
    if (no_descriptors(t, err))
        return KL_ECONNECT;
    long e = 0;
    kl__curl.easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &e);
    if (t->proxy)
        return fail_proxy(t,
            e == ECONNREFUSED ? "it refuses connections"
                : *t->story   ? t->story
                              : "it cannot be reached",
            err);
    if (e == ECONNREFUSED)
        return kl_fail(err, KL_ECONNECT, "connection refused by %s: is the %s up?", t->peer,
            t->reach ? "server" : "API server");
    char text[128];
    const char *why = e ? strerror_r((int)e, text, sizeof text) : t->story;
    return kl_fail(err, KL_ECONNECT, "no connection to %s: %s", t->peer, why);
}

static kl_status fail_timeout(kl__transfer *t, bool sent, kl_err *err)
{
    char text[32];
    curl_off_t us = 0;
    kl__curl.easy_getinfo(t->easy, CURLINFO_TOTAL_TIME_T, &us);
    if (!sent && !(t->total_timeout > 0 && KL_MICROSECONDS(us) >= t->total_timeout - KL_MILLISECONDS(1)))
        return kl_fail(err, KL_ECONNECT, "no connection to %s within %s: is the address right and reachable?",
            t->peer, seconds(t->connect_timeout, text));
    return kl_fail(err, KL_ETIMEOUT, "no whole answer from %s within %s%s", t->peer,
        seconds(t->total_timeout, text), sent ? "" : " (the request was not sent)");
}

/* A proxy refused the tunnel: nothing has reached the server. */
static bool proxy_refused(kl__transfer *t, char why[64])
{
    long code = 0;
    kl__curl.easy_getinfo(t->easy, CURLINFO_HTTP_CONNECTCODE, &code);
    if (!t->proxy || code < 300)
        return false;
    snprintf(why, 64,
        code == 407 || code == 401 ? "it requires other credentials (%ld)" : "it answered CONNECT with %ld",
        code);
    return true;
}

kl_status kl__transfer_explain(kl__transfer *t, CURLcode rc, bool sent, kl_err *err)
{
    const char *story = *t->story ? t->story : kl__curl.easy_strerror(rc);
    char why[64];
    if (t->cancelled)
        return kl_fail(err, KL_ECANCELLED, "the request to %s was cancelled", t->peer);
    if (t->stopped) {
        kl_err_move(err, &t->err);
        return t->stopped;
    }
    if (rc == CURLE_OK)
        return KL_OK;
    if (proxy_refused(t, why))
        return fail_proxy(t, why, err);
    switch (rc) {
    case CURLE_PROXY: return fail_proxy(t, story, err);
    case CURLE_COULDNT_RESOLVE_HOST:
        if (no_descriptors(t, err))
            return KL_ECONNECT;
        return kl_fail(
            err, KL_ECONNECT, "the name of %s does not resolve: check the server's address and DNS", t->peer);
    case CURLE_COULDNT_RESOLVE_PROXY:
        return kl_fail(err, KL_ECONNECT,
            "the name of the proxy %s does not resolve: check proxy-url and HTTPS_PROXY",
            t->proxy ? t->proxy : "");
    case CURLE_COULDNT_CONNECT: return fail_connect(t, err);
    case CURLE_OPERATION_TIMEDOUT: return fail_timeout(t, sent, err);
    case CURLE_PEER_FAILED_VERIFICATION: return fail_certificate(t, err);
    case CURLE_SSL_CONNECT_ERROR:
        return kl_fail(err, KL_ECONNECT,
            "TLS with %s failed: %s; does it serve https, and does it accept our client certificate?",
            t->peer, story);
    case CURLE_SSL_CERTPROBLEM:
        return kl_fail(err, KL_EAUTH, "the client certificate or key is unusable: %s", story);
    case CURLE_SSL_CACERT_BADFILE:
        return kl_fail(err, KL_ECONNECT, "%s cannot be used to verify %s: %s", t->ca, t->peer, story);
    case CURLE_UNSUPPORTED_PROTOCOL:
        if (sent) /* libcurl's code for an answer without a status line */
            return kl_fail(err, KL_ESERVER,
                "%s does not answer in HTTP: is it an API server, and is the port right?", t->peer);
        /* fall through */
    case CURLE_URL_MALFORMAT:
        return kl_fail(err, KL_EINVAL, "\"%s\" is not a usable http or https URL: %s", t->peer, story);
    case CURLE_HTTP2: /* GOAWAY in the middle of an answer has this code, too */
        return kl_fail(err, KL_ECLOSED, "the HTTP/2 connection to %s broke: %s", t->peer, story);
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        return kl_fail(err, KL_ESERVER, "the answer of %s is not valid HTTP: %s", t->peer, story);
    case CURLE_OUT_OF_MEMORY:
        /* libcurl's code for a header line above its own limit, too */
        if (sent)
            return kl_fail(
                err, KL_ETOOBIG, "%s sent a header line that is too long: is it an API server?", t->peer);
        /* fall through */
    case CURLE_FAILED_INIT:
    case CURLE_BAD_FUNCTION_ARGUMENT:
        return kl_fail(err, KL_EINTERNAL, "the request to %s failed: %s", t->peer, story);
    default:
        if (strstr(story, "certificate required") || strstr(story, "bad certificate")
            || strstr(story, "unknown ca"))
            return kl_fail(err, KL_EAUTH, "%s did not accept our client certificate: %s", t->peer, story);
        if (strstr(story, "chunk") && !strstr(story, "closed with"))
            return kl_fail(err, KL_ESERVER, "the answer of %s is not valid HTTP: %s", t->peer, story);
        return kl_fail(err, KL_ECLOSED, "the connection to %s ended early: %s", t->peer, story);
    }
}

kl_status kl__transfer_too_late(kl__transfer *t, kl_err *err)
{
    char text[32];
    return kl_fail(err, KL_ETIMEOUT, "no connection to %s within %s (the request was not sent)", t->peer,
        seconds(t->total_timeout, text));
}
