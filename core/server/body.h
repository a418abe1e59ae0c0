/* body.h - bodies of requests as values. Results are new references. */
#ifndef KL_SERVER_BODY_H
#define KL_SERVER_BODY_H

#include "server/state.h"

/* The body of a create or update. An absent type reads as JSON. */
kl_status kl__read_object(const kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err);
/* The options of a deletion, as they were sent. */
kl_status kl__read_options_body(kl_httpd_request *http, const kl_value **out, kl_err *err);
/* Fails with 415 unless the media type is one of a patch that the kind takes. */
kl_status kl__check_patch_type(const kl__call *c, kl_httpd_request *http, kl_err *err);
/* A patch, and its type by its media type, which has been checked. */
kl_status kl__read_patch(
    const kl__call *c, kl_httpd_request *http, kl__patch *type, const kl_value **out, kl_err *err);

#endif
