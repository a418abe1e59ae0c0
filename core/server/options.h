/* options.h - the options of a write: in the query, and of a deletion also in the body. */
#ifndef KL_SERVER_OPTIONS_H
#define KL_SERVER_OPTIONS_H

#include "server/state.h"

/* Reads the query of a call: its manager, and of a write whether it is a dry run and what unknown fields
 * mean. 422 names all that is wrong. *manager is the caller's to free, and lives as long as the call. */
kl_status kl__read_options(
    kl__call *c, kl_httpd_request *http, const char *verb, char **manager, kl_err *err);
/* The options of a deletion, a new reference: from the body, or without one from the query. They say whether
 * the call is a dry run. */
kl_status kl__read_delete_options(kl__call *c, kl_httpd_request *http, const kl_value **out, kl_err *err);

#endif
