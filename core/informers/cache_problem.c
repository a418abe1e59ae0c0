/* cache_problem.c - why a cache is not usable, with advice. */
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "informers/caches_impl.h"

/* The refused user, from the authorizer's message: User "nobody" cannot list resource ... NULL when another
 * component refused. */
static char *refused_user(const char *message)
{
    const char *user = message ? strstr(message, "User \"") : NULL,
               *end = user ? strchr(user + 6, '"') : NULL;
    return end && !strncmp(end, "\" cannot ", 9) ? kl_strndup(user + 6, (size_t)(end - user - 6)) : NULL;
}

/* system:serviceaccount:NAMESPACE:NAME as people know it. Takes the text over. */
static char *account_text(char *user)
{
    static const char account[] = "system:serviceaccount:";
    char *colon = strncmp(user, account, sizeof account - 1) ? NULL : strchr(user + sizeof account - 1, ':');
    if (!colon)
        return user;
    *colon = '/';
    char *text = kl_sprintf("service account %s", user + sizeof account - 1);
    kl_free(user);
    return text;
}

char *kl__refusal_text(const kl_resource *r, const char *ns, const char *message)
{
    char *who = refused_user(message);
    if (!who)
        return kl_strdup(message);
    const char *verb = strstr(message, "\" cannot watch ") ? "watch" : "list";
    who = account_text(who);
    char *rule = kl_sprintf(
             "{apiGroups: [\"%s\"], resources: [\"%s\"], verbs: [\"list\", \"watch\"]}", r->group, r->plural),
         *text;
    if (ns)
        text = kl_sprintf(
            "may not %s %s in namespace %s: add rule %s to the Role of %s", verb, r->plural, ns, rule, who);
    else if (r->namespaced)
        text = kl_sprintf("may not %s %s in all namespaces: add rule %s to the ClusterRole of %s, or list "
                          "namespaces in `namespaces`",
            verb, r->plural, rule, who);
    else
        text = kl_sprintf("may not %s %s: add rule %s to the ClusterRole of %s", verb, r->plural, rule, who);
    kl_free(rule);
    kl_free(who);
    return text;
}

static char *trouble(kl_cache *c, kl_status *failure)
{
    kl_informer_stats st;
    kl_informer_stats_get(c->informer, &st);
    bool idle = st.message && (st.parked || !st.synced);
    char *why = !idle                 ? NULL
        : st.failure == KL_EFORBIDDEN ? kl__refusal_text(c->resource, st.namespace_, st.message)
                                      : kl_strdup(st.message);
    *failure = idle ? st.failure : KL_OK;
    kl_informer_stats_fini(&st);
    return why;
}

char *kl_cache_problem(kl_cache *c)
{
    kl_status failure;
    if (c->same)
        return kl_cache_problem(c->same);
    if (c->problem)
        return kl_strdup(c->problem);
    return c->informer ? trouble(c, &failure) : NULL;
}

void kl__cache_tell(kl_cache *c)
{
    kl_status failure;
    char *why = trouble(c, &failure);
    bool news = why && failure == KL_EFORBIDDEN && (!c->told || strcmp(c->told, why));
    if (news)
        kl_warn("controllers that need it are parked until it may be read", "kind=%s why=%s", c->entry.kind,
            kl_log_quoted(why));
    kl_free(c->told);
    c->told = why;
}
