/* own_run.c - the key of a run, and its group, wait for its writes. */
#include "base/mem.h"
#include "run/run_impl.h"

struct kl_write {
    kl_verb verb;
    char *kind; /* the client knows the kind when the answer comes */
    char *ns, *name, *subresource;
};

/* How long a key waits for its own writes; 0 and less: not at all. */
static kl_time patience(const kl_worker *w, const kl_gen_state *g)
{
    kl_time said = g->logic->spec->own_writes;
    return !w->o.own_writes ? 0 : said ? said : KL_OWN_WRITES_DEFAULT;
}

kl_write *kl__write_of(kl_run *r, const kl_op *op)
{
    if (!kl_verb_is_write(op->verb) || op->dry_run || patience(r->w, r->gen) <= 0)
        return NULL;
    kl_write *x = kl_new(kl_write);
    x->verb = op->verb;
    x->kind = op->resource ? kl_gvk_text(op->resource->group, op->resource->version, op->resource->kind)
                           : kl_strdup(op->kind);
    x->ns = kl_strdup(op->ns ? op->ns : op->default_ns);
    x->name = kl_strdup(op->name);
    x->subresource = kl_strdup(op->subresource);
    return x;
}

void kl__write_free(kl_write *x)
{
    if (!x)
        return;
    kl_free(x->kind);
    kl_free(x->ns);
    kl_free(x->name);
    kl_free(x->subresource);
    kl_free(x);
}

void kl__write_answered(kl_run *r, const kl_write *x, const kl_value *body)
{
    const kl_resource *res = x && x->kind ? r->w->o.resource(r->w->o.arg, x->kind) : NULL;
    if (!res)
        return;
    kl_time until = kl_clock_now(r->w->o.clock) + patience(r->w, r->gen);
    kl_written what = {.verb = x->verb,
        .resource = res,
        .ns = x->ns,
        .name = x->name,
        .subresource = x->subresource,
        .answer = body};
    kl_own_writes_note(r->w->o.own_writes, r->key, &what, until);
    if (r->group)
        kl_own_writes_note(r->w->o.own_writes, r->group, &what, until);
}

bool kl__write_owed(
    kl_worker *w, const kl_gen_state *g, const char *name, const char *key, kl_time now, kl_time *until)
{
    return patience(w, g) > 0 && kl_own_writes_owed(w->o.own_writes, name, key, now, until);
}
