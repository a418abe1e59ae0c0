/* reply.c - answers in the form that the client accepts: media type, indentation, compression, ETag. */
#include "server/reply.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/gzip.h"
#include "base/hash.h"
#include "base/mem.h"
#include "model/object.h"
#include "schema/status.h"
#include "show/answer.h"

/* Larger answers are compressed for clients that accept it, as in kube-apiserver. */
#define GZIP_ABOVE (128 * 1024)

static bool takes_gzip(kl_httpd_request *http)
{
    const char *p = kl_httpd_header(http, "Accept-Encoding");
    while (p && *p) {
        p += strspn(p, " ,");
        size_t n = strcspn(p, " ,");
        /* "gzip;q=1" is not gzip for kube-apiserver */
        if (n == 4 && !memcmp(p, "gzip", n))
            return true;
        p += n;
    }
    return false;
}

void kl__reply_take(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body)
{
    kl_buf packed = KL_BUF_INIT;
    if (body->len > GZIP_ABOVE && takes_gzip(http) && !kl_gzip(body->data, body->len, &packed)) {
        static const char vary[] = "Vary: Accept-Encoding\r\n";
        char *more = kl_sprintf("%sContent-Encoding: gzip\r\n%s", headers ? headers : "",
            headers && strstr(headers, vary) ? "" : vary);
        kl_httpd_reply_take(http, code, type, more, &packed);
        kl_free(more);
    } else
        kl_httpd_reply_take(http, code, type, headers, body);
    kl_buf_fini(&packed);
}

static void indent(kl_buf *body)
{
    kl_buf lines = KL_BUF_INIT;
    kl_json_indent(kl_buf_str(body), body->len, &lines);
    kl_buf_fini(body);
    *body = lines;
}

void kl__finish_json(kl_httpd_request *http, kl_buf *body)
{
    if (kl_show_indents(kl_httpd_header(http, "Accept"), kl_httpd_query(http, "pretty"),
            kl_httpd_header(http, "User-Agent")))
        indent(body);
    else
        kl_buf_putc(body, '\n');
}

void kl__reply_buf(kl_httpd_request *http, int code, const char *type, const char *headers, kl_buf *body)
{
    if (!kl_buf_status(body) && !strncmp(type, "application/json", 16))
        kl__finish_json(http, body);
    if (kl_buf_status(body)) {
        kl_err err = KL_ERR_INIT;
        kl__api_fail(&err, 500, "InternalError", NULL, "the answer is too large: ask for pages with limit=");
        kl__reply_error(http, NULL, &err);
        kl_err_fini(&err);
        kl_buf_fini(body);
        return;
    }
    kl__reply_take(http, code, type, headers, body);
    kl_buf_fini(body);
}

void kl__reply_value(kl_httpd_request *http, int code, const char *headers, const kl_value *v)
{
    kl_buf body = KL_BUF_INIT;
    kl_show_media media;
    bool accepted = kl_show_error_media(kl_httpd_header(http, "Accept"), &media);
    media = kl_show_value(v, media, &body);
    if (!accepted) {
        indent(&body);
        kl__reply_take(http, code, kl_show_media_type(media, false), headers, &body);
        kl_buf_fini(&body);
        return;
    }
    kl__reply_buf(http, code, kl_show_media_type(media, false), headers, &body);
}

void kl__reply_error(kl_httpd_request *http, const char *headers, const kl_err *err)
{
    const kl_value *status = kl__status_of(err);
    kl__reply_value(http, kl__status_code(err), headers, status);
    kl_value_unref(status);
}

void kl__reply_object(
    const kl__call *c, const kl_show_form *form, int code, const kl_value *stored, kl_httpd_request *http)
{
    const char *headers = c->warnings->len ? kl_buf_str(c->warnings) : NULL, *kind = kl_object_kind(stored);
    if (kind && !strcmp(kind, "Status")) {
        kl__reply_value(http, code, headers, stored);
        return;
    }
    kl_err err = KL_ERR_INIT;
    kl_buf out = KL_BUF_INIT;
    if (kl_show_object(c->kind, form, stored, kl__world_wall(c->w), &out, &err) == KL_OK
        || kl_buf_status(&out))
        kl__reply_buf(http, code, kl_show_media_type(form->media, false), headers, &out);
    else
        kl__reply_error(http, headers, &err);
    kl_buf_fini(&out);
    kl_err_fini(&err);
}

void kl__reply_tagged(kl_httpd_request *http, const char *type, const char *headers, kl_buf *body)
{
    char etag[32];
    const char *known = kl_httpd_header(http, "If-None-Match");
    snprintf(etag, sizeof etag, "\"%016" PRIX64 "\"", kl_hash(body->data, body->len));
    char *header = kl_sprintf("ETag: %s\r\n%s", etag, headers ? headers : "");
    if (known && !strcmp(known, etag))
        kl_httpd_reply(http, 304, type, header, "", 0);
    else
        kl__reply_take(http, 200, type, header, body);
    kl_free(header);
}
