/* dashboard.h - a page that shows the process live; with the token it can do everything that the control
 * socket can.
 *
 *   GET /, /app.js, /style.css     the page, as the binary carries it
 *   GET /v1/events                 server-sent events "snapshot", one a second while a page is open
 *   GET /v1/token                  200 with the token, 401 or 403 otherwise
 *   other paths below /v1/         the control API (control/control.h): reads for everybody; changes, and
 *                                  what objects hold (guarded routes), with "Authorization: Bearer TOKEN"
 *
 * On a loopback address only requests to a loopback name are served, so that a foreign page cannot reach it
 * through a DNS name that points here. */
#ifndef KL_CONTROL_DASHBOARD_H
#define KL_CONTROL_DASHBOARD_H

#include "control/control.h"
#include "manager/manager.h"

typedef struct kl_dashboard kl_dashboard;

typedef struct kl_dashboard_file {
    const char *path, *type, *text; /* "/app.js", "text/javascript; charset=utf-8" */
    size_t len;
} kl_dashboard_file;

typedef struct kl_dashboard_options {
    const char *listen;             /* "127.0.0.1:8082"; ":8082" is taken as loopback */
    const char *token;              /* copied; NULL: no changes are allowed */
    const kl_dashboard_file *files; /* borrowed; ends with path NULL */
    kl_control *control;            /* these outlive the dashboard */
    kl_manager *manager;            /* the first of several */
} kl_dashboard_options;

KL_NODISCARD kl_status kl_dashboard_start(const kl_dashboard_options *o, kl_dashboard **out, kl_err *err);
const char *kl_dashboard_address(const kl_dashboard *d); /* as bound */
/* joins, frees; NULL is fine. Pending answers of the control must have been given */
void kl_dashboard_stop(kl_dashboard *d);

#endif
