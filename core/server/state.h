/* state.h - internals shared by the parts of the API server: the server itself, and one request. */
#ifndef KL_SERVER_STATE_H
#define KL_SERVER_STATE_H

#include "faults/faults.h"
#include "httpd/httpd.h"
#include "base/list.h"
#include "base/sync.h"
#include "server/server.h"
#include "verbs/call.h"

struct kl_server {
    kl_time bookmark_every;
    kl_httpd *httpd;
    /* it listens on a loopback address only, so it refuses foreign names in Host headers */
    bool loopback;
    char *url;
    kl_mutex mu; /* guards everything below */
    kl__world world;
    kl_list watches;    /* every running watch */
    struct kl_hub *hub; /* for answers to watches, see watch.c */
    kl_cond wake;
    /* bookmarks and timeouts; NULL under a fake clock, whose owner calls kl_server_tick */
    kl_thread *ticker;
    bool stopping;
    kl_keyring *ring; /* NULL: plain HTTP */
    char *ca;         /* PEM: verifies the self-signed certificate; NULL: there is none */
    char *own_token;  /* an administrator's token, for kl_server_kubeconfig; NULL: none is needed */
    /* see kl_server_options */
    void (*changed)(void *arg, const kl_server_change *c);
    void *changed_arg;
    void (*extra)(void *arg, kl_httpd_request *request);
    void *extra_arg;
    kl_faults *faults;
    struct kl_archive *archive; /* the archive, or NULL; see durable.h */
    bool undoing;               /* the present changes undo changes that the archive lost */
    struct kl_audit *audit;     /* or NULL */
    kl_time started;            /* by the world's clock */
    atomic_bool loading;        /* /readyz fails */
    struct kl__probed *probed;  /* counts of health checks, or NULL; see health.c */
    struct kl__kept *kept;      /* the state saved by kl_server_keep, or NULL; see keep.c */
};

/* A request, and its call. */
typedef struct kl__request {
    kl_server *s;
    kl_httpd_request *http;
    kl__call call;
    kl_fault_call facts; /* the attributes that fault rules match */
    kl_fault_plan plan;  /* the faults of this request */
    bool watches;        /* the path is that of a watch (.../watch/..., deprecated) ... */
    const char *watched; /* ... of the object of this name; NULL: of all */
    bool nowhere;        /* the path names an object in the namespace "" */
} kl__request;

/* Ends the watches of a resource's versions that are not in `keep` (NULL-terminated). `server` is the
 * argument of kl__world's `unserved`. */
void kl__watches_drop(void *server, const char *group, const char *plural, const char *const *keep);
void kl__kept_free(struct kl__kept *k);

#endif
