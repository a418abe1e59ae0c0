/* reach.h - which servers a script may reach: checks URLs against rules, and refuses addresses that a host
 * name must not resolve to.
 *
 * A rule is a URL, optionally followed by methods that only read there, separated by spaces:
 *
 *   https://dns.example.com           this server: scheme, name and port
 *   https://api.example.com/v1        and only paths below that one
 *   https://find.example.com POST     a POST only reads there, as GET and HEAD do everywhere
 *
 * "*." before the name means every name below it, but not the name itself. URLs are parsed strictly: anything
 * that two programs could parse differently (a user, a backslash, a fragment, "..", a number that may be an
 * address) is refused. Pure; any thread. */
#ifndef KL_HTTP_REACH_H
#define KL_HTTP_REACH_H

#include <stdbool.h>
#include <sys/socket.h>
#include "base/err.h"

#define KL_REACH_HOST_MAX 256

typedef struct kl_reach { /* a URL in its parts */
    bool tls;
    char host[KL_REACH_HOST_MAX]; /* lower case; an IPv6 address without brackets */
    bool is_address;              /* `host` is an address, not a name */
    unsigned port;
    const char *target; /* path and query, into the URL; "" for none */
} kl_reach;

/* KL_EINVAL with the reason. */
KL_NODISCARD kl_status kl_reach_parse(const char *url, kl_reach *out, kl_err *err);
/* Whether `text` is only the host of a URL: a name, an address, or an IPv6 address in brackets. */
bool kl_reach_is_server(const char *text);
/* Validates a rule: KL_EINVAL with the reason. */
KL_NODISCARD kl_status kl_reach_rule_check(const char *rule, kl_err *err);
/* The first of the rules (NULL-terminated, or NULL) that allows the URL; NULL: none does. Borrowed. */
const char *kl_reach_rule(char *const *rules, const kl_reach *url);
/* Whether the rule says that `method` is read-only; rule NULL: only GET and HEAD are. */
bool kl_reach_reads(const char *rule, const char *method);
/* Whether a connection for `host` may go to its resolved address: link-local, cloud metadata, loopback and
 * multicast addresses are allowed only when `host` is the address itself. */
bool kl_reach_address(const struct sockaddr *a, const char *host);
/* The URL for logs: without query, and without any part of the path that looks like a key. Caller frees. */
char *kl_reach_shown(const char *url);
/* Where a redirect from `url` leads. Caller frees; it is not parsed yet. */
char *kl_reach_resolve(const char *url, const char *location);

#endif
