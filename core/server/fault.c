/* fault.c - faults in the order in which they were ordered: the first that matches a request answers it. */
#include "server/fault.h"

#include <string.h>

#include "base/heap.h"
#include "base/mem.h"
#include "schema/status.h"

typedef struct fault {
    kl_list link;
    char *verb, *resource, *group, *sub, *ns, *name, *except_agent, *reason, *message;
    int code, retry_after, times;
} fault;

static void fault_free(fault *f)
{
    char *all[] = {
        f->verb, f->resource, f->group, f->sub, f->ns, f->name, f->except_agent, f->reason, f->message};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        kl_free(all[i]);
    kl_list_remove(&f->link);
    kl_free(f);
}

void kl_server_fail_next(kl_server *s, const kl_server_fault *o)
{
    fault *f = kl_new(fault);
    *f = (fault){.verb = kl_strdup(o->verb),
        .resource = kl_strdup(o->resource),
        .group = kl_strdup(o->group),
        .sub = kl_strdup(o->sub),
        .ns = kl_strdup(o->ns),
        .name = kl_strdup(o->name),
        .except_agent = kl_strdup(o->except_agent),
        .reason = kl_strdup(o->reason),
        .message = kl_strdup(o->message),
        .code = o->code,
        .retry_after = o->retry_after,
        .times = o->times > 0 ? o->times : 1};
    kl_lock(&s->mu);
    kl_list_push(&s->faults, &f->link);
    kl_unlock(&s->mu);
}

size_t kl_server_faults(kl_server *s)
{
    size_t n = 0;
    kl_lock(&s->mu);
    for (kl_list *l = s->faults.next; l != &s->faults; l = l->next)
        n += (size_t)KL_CONTAINER(l, fault, link)->times;
    kl_unlock(&s->mu);
    return n;
}

void kl__faults_clear(kl_server *s)
{
    while (!kl_list_empty(&s->faults))
        fault_free(KL_CONTAINER(s->faults.next, fault, link));
}

static bool is(const char *wanted, const char *have) { return !wanted || (have && !strcmp(wanted, have)); }

static bool matches(const fault *f, const kl__call *c, const char *verb, const char *agent)
{
    if (f->except_agent && agent && !strncmp(agent, f->except_agent, strlen(f->except_agent)))
        return false;
    return is(f->verb, verb) && is(f->resource, c->kind->plural) && is(f->group, c->kind->group)
        && is(f->sub, c->sub) && is(f->ns, c->ns) && is(f->name, c->name);
}

kl_status kl__fault_check(
    const kl__call *c, const char *verb, const char *agent, int *retry_after, kl_err *err)
{
    for (kl_list *l = c->s->faults.next; l != &c->s->faults; l = l->next) {
        fault *f = KL_CONTAINER(l, fault, link);
        if (!matches(f, c, verb, agent))
            continue;
        kl_status st;
        *retry_after = f->retry_after;
        if (f->code == 409 && !f->reason)
            st = kl__fail_modified(err, c->kind, c->name ? c->name : "");
        else if (f->code == 404 && !f->reason)
            st = kl__fail_not_found(err, c->kind, c->name ? c->name : "");
        else
            st = kl__api_fail(err, f->code, f->reason ? f->reason : "InternalError", NULL, "%s",
                f->message ? f->message : "a failure that a test has ordered");
        if (!--f->times)
            fault_free(f);
        return st;
    }
    return KL_OK;
}
