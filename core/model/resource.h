/* resource.h - kinds, resources and URLs.
 *
 * People and scripts write kinds as "group/version/Kind", "v1/Pod" or, where discovery decides the version,
 * "group/Kind" or "Kind" alone. The server uses resources (plural, lower case). */
#ifndef KL_MODEL_RESOURCE_H
#define KL_MODEL_RESOURCE_H

#include <stdbool.h>
#include "base/buf.h"
#include "base/err.h"

/* group "" is core; version "" means preferred */
typedef struct kl_gvk {
    char *group;
    char *version;
    char *kind;
} kl_gvk;

/* "apps/v1/Deployment", "v1/Pod". Errors name the text and the expected form. */
KL_NODISCARD kl_status kl_gvk_parse(const char *text, kl_gvk *out, kl_err *err);
void kl_gvk_copy(kl_gvk *to, const kl_gvk *from);
void kl_gvk_fini(kl_gvk *g);
/* "v1/Pod" or "g/v/Kind"; caller frees */
char *kl_gvk_text(const char *group, const char *version, const char *kind);
/* "apps/v1" -> group "apps", version "v1"; "v1" -> "", "v1". Caller frees both. */
void kl_api_version_split(const char *api_version, char **group, char **version);
char *kl_api_version(const char *group, const char *version); /* caller frees */

/* The discovery entry of one resource. Immutable once published; strings owned. */
typedef struct kl_resource {
    char *group, *version, *kind, *plural, *singular;
    char **short_names, **categories, **verbs; /* NULL-terminated */
    char **subresources;                       /* "status", "scale", ... */
    bool namespaced;
} kl_resource;

void kl_resource_fini(kl_resource *r);
void kl_resource_copy(kl_resource *to, const kl_resource *from);
bool kl_resource_has_verb(const kl_resource *r, const char *verb);
bool kl_resource_has_subresource(const kl_resource *r, const char *sub);
/* "pods" or "deployments.apps", as the server's messages and people name a resource. Caller frees. */
char *kl_resource_display(const kl_resource *r);

/* The URL path of a request: "/api/v1/namespaces/ns/pods/name/status", percent-encoded. ns, name, sub may be
 * NULL; an empty namespace means none; an empty name is refused, because a get without a name would be a
 * list. A name or namespace that is ".", ".." or holds "/" or "%" is KL_EINVAL, before any I/O. */
KL_NODISCARD kl_status kl_resource_path(
    const kl_resource *r, const char *ns, const char *name, const char *sub, kl_buf *out, kl_err *err);
/* for a query: a space is "+", all but A-Z a-z 0-9 - _ . ~ is %XX */
void kl_url_escape(const char *s, kl_buf *out);
/* for a path: slashes and $ & + , : ; = @ stay as well, a space is %20 */
void kl_url_escape_path(const char *s, kl_buf *out);
/* Undoes %XX (and "+" as a space, in a query) in s[0..n). KL_ESYNTAX for a broken escape. */
KL_NODISCARD kl_status kl_url_unescape(const char *s, size_t n, bool query, kl_buf *out, kl_err *err);

#endif
