/* program.c - a loaded generation: its references, and the end of its specs. */
#include <string.h>
#include "base/mem.h"
#include "run/reconciler.h"

kl_program *kl_program_ref(kl_program *p)
{
    atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
    return p;
}

void kl_program_unref(kl_program *p)
{
    if (p && atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) == 1)
        p->ops->free(p);
}

static void strings_free(char **v)
{
    for (char **s = v; s && *s; s++)
        kl_free(*s);
    kl_free(v);
}

const kl_fields_spec *kl_controller_spec_fields(const kl_controller_spec *s, const char *kind)
{
    for (size_t i = 0; i < s->n_fields; i++)
        if (!strcmp(s->fields[i].kind, kind))
            return &s->fields[i];
    return NULL;
}

const char *kl_controller_spec_manager(const kl_controller_spec *s)
{
    return s->manager ? s->manager : s->name;
}

const kl_owned_spec *kl_controller_spec_owned(const kl_controller_spec *s, const char *kind)
{
    for (size_t i = 0; i < s->n_owns; i++)
        if (!strcmp(s->owns[i].kind, kind))
            return &s->owns[i];
    return NULL;
}

static void when_fini(kl_when *w)
{
    strings_free(w->words);
    kl_selector_free(w->selector);
}

bool kl_controller_spec_metadata(const kl_controller_spec *s, const char *kind)
{
    for (char **k = s->metadata_only; k && *k; k++)
        if (!strcmp(*k, kind))
            return true;
    return false;
}

void kl_controller_spec_select(
    const kl_controller_spec *s, const char *kind, const char **labels, const char **fields)
{
    bool own = s->resource && !strcmp(kind, s->resource);
    *labels = own ? s->select_labels : NULL;
    *fields = own ? s->select_fields : NULL;
    for (size_t i = 0; i < s->n_selects; i++)
        if (!strcmp(s->selects[i].kind, kind)) {
            *labels = s->selects[i].labels;
            *fields = s->selects[i].fields;
        }
}

char **kl_controller_spec_namespaces(const kl_controller_spec *s, const char *kind)
{
    for (size_t i = 0; i < s->n_selects; i++)
        if (s->selects[i].namespaces && !strcmp(s->selects[i].kind, kind))
            return s->selects[i].namespaces;
    return s->namespaces;
}

void kl_controller_spec_fini(kl_controller_spec *s)
{
    kl_free(s->name);
    kl_free(s->manager);
    kl_free(s->resource);
    strings_free(s->namespaces);
    kl_free(s->select_labels);
    kl_free(s->select_fields);
    for (size_t i = 0; i < s->n_selects; i++) {
        kl_free(s->selects[i].kind);
        kl_free(s->selects[i].labels);
        kl_free(s->selects[i].fields);
        strings_free(s->selects[i].namespaces);
    }
    kl_free(s->selects);
    when_fini(&s->when);
    for (size_t i = 0; i < s->n_watches; i++) {
        kl_free(s->watches[i].kind);
        kl_free(s->watches[i].via);
        when_fini(&s->watches[i].when);
    }
    kl_free(s->watches);
    for (size_t i = 0; i < s->n_indexes; i++) {
        kl_free(s->indexes[i].kind);
        kl_free(s->indexes[i].name);
        kl_free(s->indexes[i].path);
    }
    kl_free(s->indexes);
    for (size_t i = 0; i < s->n_owns; i++) {
        kl_free(s->owns[i].kind);
        when_fini(&s->owns[i].when);
    }
    kl_free(s->owns);
    strings_free(s->reads);
    strings_free(s->metadata_only);
    for (size_t i = 0; i < s->n_fields; i++) {
        kl_free(s->fields[i].kind);
        strings_free(s->fields[i].paths);
        kl_projection_unref(s->fields[i].keep);
    }
    kl_free(s->fields);
    strings_free(s->cron);
    kl_path_free(s->priority_of.path);
    kl_path_free(s->serial.path);
    kl_free(s->finalizer);
    strings_free(s->http);
    kl_value_unref(s->params);
    kl_value_unref(s->given);
    kl_value_unref(s->param_rules);
    kl_value_unref(s->param_origins);
    *s = (kl_controller_spec){0};
}

const kl_controller_spec *kl_program_spec(const kl_program *p, size_t index)
{
    return index < p->n_specs ? &p->specs[index] : &p->hooks[index - p->n_specs].as;
}

void kl_webhook_spec_fini(kl_webhook_spec *s)
{
    kl_controller_spec_fini(&s->as);
    strings_free(s->kinds);
    kl_value_unref(s->operations);
    kl_value_unref(s->entry);
    *s = (kl_webhook_spec){0};
}

const char *kl_result_name(kl_result_kind k)
{
    switch (k) {
    case KL_RESULT_DONE: return "done";
    case KL_RESULT_AFTER: return "after";
    case KL_RESULT_REQUEUE: return "requeue";
    case KL_RESULT_RETRY: return "retry";
    case KL_RESULT_CONFLICT: return "conflict";
    case KL_RESULT_ERROR: return "error";
    case KL_RESULT_FAIL: return "fail";
    }
    return "done";
}
