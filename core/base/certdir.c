/* certdir.c - two files, read when the watch of their directory reports a change. */
#include "base/certdir.h"

#include <string.h>

#include "base/buf.h"
#include "base/fswatch.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"

/* Chains are a few kilobytes. */
#define FILE_MAX ((size_t)1 << 20)

struct kl_certdir {
    char *cert, *key, *what;
    kl_keyring *ring;
    kl_fswatch *watch;
    /* the text of the pair in the keyring; after the start only the watch's thread uses it */
    char *shown;
    void (*read)(void *arg, bool good);
    void *arg;
};

static kl_status read_file(const char *path, kl_buf *out, kl_err *err)
{
    kl_buf_init(out, FILE_MAX);
    return kl_file_read(path, "a certificate or key", out, err);
}

static kl_status load(kl_certdir *c, kl_err *err)
{
    kl_buf cert = KL_BUF_INIT, key = KL_BUF_INIT;
    kl_status st = read_file(c->cert, &cert, err);
    if (!st)
        st = read_file(c->key, &key, err);
    char *both = st ? NULL : kl_sprintf("%s%s", kl_buf_str(&cert), kl_buf_str(&key));
    bool same = both && c->shown && !strcmp(both, c->shown);
    if (!st && !same && (st = kl_keyring_set(c->ring, kl_buf_str(&cert), kl_buf_str(&key), err)))
        kl_err_prefix(err, "%s and %s", c->cert, c->key);
    if (!same)
        c->read(c->arg, !st);
    if (!st && !same) {
        if (c->shown)
            kl_info("a new certificate is in use", "for=%s cert=%s", c->what, kl_log_quoted(c->cert));
        kl_free(c->shown);
        c->shown = both;
        both = NULL;
    }
    kl_free(both);
    kl_buf_fini(&cert);
    kl_buf_fini(&key);
    return st;
}

static void changed(void *arg)
{
    kl_certdir *c = arg;
    kl_err err = KL_ERR_INIT;
    if (load(c, &err)) {
        kl_warn("the new certificate is invalid; the old one stays in use", "for=%s error=%s", c->what,
            kl_log_quoted(kl_err_message(&err)));
        kl_err_fini(&err);
    }
}

kl_status kl_certdir_start(const char *dir, const char *what, kl_keyring *ring,
    void (*read)(void *arg, bool good), void *arg, kl_certdir **out, kl_err *err)
{
    kl_certdir *c = kl_new(kl_certdir);
    c->cert = kl_sprintf("%s/tls.crt", dir);
    c->key = kl_sprintf("%s/tls.key", dir);
    c->what = kl_strdup(what);
    c->ring = ring;
    c->read = read;
    c->arg = arg;
    const char *const paths[] = {c->cert, c->key};
    kl_status st = load(c, err);
    if (!st)
        st = kl_fswatch_start(paths, 2, NULL, changed, c, &c->watch, err);
    if (st) {
        kl_certdir_stop(c);
        return st;
    }
    *out = c;
    return KL_OK;
}

void kl_certdir_stop(kl_certdir *c)
{
    if (!c)
        return;
    kl_fswatch_stop(c->watch);
    kl_free(c->shown);
    kl_free(c->cert);
    kl_free(c->key);
    kl_free(c->what);
    kl_free(c);
}
