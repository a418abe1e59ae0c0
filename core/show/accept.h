/* accept.h - the form and media type that a request accepts, from its Accept header, as kube-apiserver reads
 * it: by quality, then from left to right. Pure. */
#ifndef KL_SHOW_ACCEPT_H
#define KL_SHOW_ACCEPT_H

#include "schema/kinds.h"

typedef enum kl_show_media { KL_MEDIA_JSON, KL_MEDIA_YAML, KL_MEDIA_PROTOBUF } kl_show_media;
typedef enum kl_show_kind { KL_FORM_WHOLE, KL_FORM_TABLE, KL_FORM_METADATA } kl_show_kind;
typedef enum kl_show_include { KL_INCLUDE_METADATA, KL_INCLUDE_OBJECT, KL_INCLUDE_NONE } kl_show_include;
typedef struct kl_show_form {
    kl_show_kind kind;
    kl_show_include include;
    kl_show_media media;
    bool of_list;            /* KL_FORM_METADATA: a PartialObjectMetadataList was requested, not one object */
    const char *bad_include; /* an invalid ?includeObject=, borrowed from the request; NULL: it is valid */
} kl_show_form;

typedef enum kl_show_what { KL_SHOW_ONE, KL_SHOW_LIST, KL_SHOW_WATCH } kl_show_what;

/* The form of the answer to a request about `k`, or 406 in kube-apiserver's words. `accept` may be NULL,
 * `include` is ?includeObject= or NULL. Custom resources, and kinds without a protobuf table, are complete
 * only in JSON and YAML. */
KL_NODISCARD kl_status kl_show_negotiate(const kl__kind *k, kl_show_what what, const char *accept,
    const char *include, kl_show_form *out, kl_err *err);
/* Which media types a route of kube-apiserver lets in before the handler reads the header. */
typedef enum kl_show_route { KL_ROUTE_NONE, KL_ROUTE_ALL, KL_ROUTE_JSON } kl_show_route;
/* The media type of a page of discovery, or 406. */
KL_NODISCARD kl_status kl_show_negotiate_page(
    kl_show_route route, const char *accept, kl_show_media *out, kl_err *err);
/* The version of aggregated discovery that the header asks for, and its media type; NULL: it does not. */
const char *kl_show_aggregated(const char *accept, kl_show_media *out);
/* Which of `types` (NULL-terminated) the client prefers: its place, or -1. */
int kl_show_prefers(const char *accept, const char *const *types);
/* The media type of a failure. False: none is acceptable, so it is JSON, indented. */
bool kl_show_error_media(const char *accept, kl_show_media *media);
/* KL_OK; 406 for a single object requested as a list, or the reverse; 400 for a table with an invalid
 * ?includeObject=. */
KL_NODISCARD kl_status kl_show_fits(const kl__kind *k, const kl_show_form *form, bool list, kl_err *err);
/* Whether JSON is indented: for curl, Wget and browsers, by ?pretty=, or by "pretty=1" in the Accept header.
 * Any of the three may be NULL. */
bool kl_show_indents(const char *accept, const char *pretty, const char *agent);
/* For Content-Type. */
const char *kl_show_media_type(kl_show_media media, bool stream);

#endif
