/* operation.c - writes a path with its operations: in v2 a body is a parameter and media types stand beside
 * it; in v3 they are where the schemas are. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "openapi/operation.h"

void kl__operation_takes(kl__operation *o, const kl__option *options)
{
    for (; options->name && o->noptions < KL_OPENAPI_OPTIONS; options++)
        o->options[o->noptions++] = options;
}

/* ------------------------------------------------------------------ parameters */

static bool has_option(const kl__operation *o, const kl__option *wanted)
{
    for (size_t i = 0; i < o->noptions; i++)
        if (o->options[i] == wanted)
            return true;
    return false;
}

static bool in_all(const kl__path *p, const kl__option *option)
{
    for (size_t i = 0; i < p->n; i++)
        if (!has_option(&p->operations[i], option))
            return false;
    return true;
}

static void flag(kl_builder *b, const char *key)
{
    kl_build_key(b, key);
    kl_build_bool(b, true);
}

static void parameter(kl_builder *b, kl__dialect dialect, const kl__option *o)
{
    kl_build_object(b);
    kl_build_kstr(b, "name", o->name);
    kl_build_kstr(b, "in", o->in_path ? "path" : "query");
    if (o->in_path)
        flag(b, "required");
    if (dialect == KL_OPENAPI_V3) {
        kl_build_key(b, "schema");
        kl_build_object(b);
    }
    kl_build_kstr(b, "type", o->type);
    flag(b, "uniqueItems");
    if (dialect == KL_OPENAPI_V3)
        kl_build_end(b);
    kl_build_end(b);
}

/* ------------------------------------------------------------------ bodies and answers */

static void schema_of(kl_builder *b, kl__dialect dialect, const char *name)
{
    char *ref = name
        ? kl_sprintf("#/%s/%s", dialect == KL_OPENAPI_V2 ? "definitions" : "components/schemas", name)
        : NULL;
    kl_build_key(b, "schema");
    kl_build_object(b);
    kl_build_kstr(b, ref ? "$ref" : "type", ref ? ref : "string");
    kl_build_end(b);
    kl_free(ref);
}

static void words(kl_builder *b, const char *key, const char *const *list)
{
    kl_build_key(b, key);
    kl_build_array(b);
    for (; *list; list++)
        kl_build_str(b, *list);
    kl_build_end(b);
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Writes media types sorted, as kube-apiserver does in all objects. */
static void content(kl_builder *b, const char *name, const char *const *types)
{
    const char *sorted[8];
    size_t n = 0;
    for (; types[n] && n < sizeof sorted / sizeof *sorted; n++)
        sorted[n] = types[n];
    qsort(sorted, n, sizeof *sorted, by_name);
    kl_build_key(b, "content");
    kl_build_object(b);
    for (size_t i = 0; i < n; i++) {
        kl_build_key(b, sorted[i]);
        kl_build_object(b);
        schema_of(b, KL_OPENAPI_V3, name);
        kl_build_end(b);
    }
    kl_build_end(b);
}

static void body(kl_builder *b, kl__dialect dialect, const kl__operation *o)
{
    if (dialect == KL_OPENAPI_V2) {
        kl_build_object(b);
        kl_build_kstr(b, "name", "body");
        kl_build_kstr(b, "in", "body");
        schema_of(b, dialect, o->sends);
    } else {
        kl_build_key(b, "requestBody");
        kl_build_object(b);
        content(b, o->sends, o->consumes);
    }
    if (!o->body_optional)
        flag(b, "required");
    kl_build_end(b);
}

static void answer(
    kl_builder *b, kl__dialect dialect, const kl__operation *o, const char *code, const char *description)
{
    kl_build_key(b, code);
    kl_build_object(b);
    kl_build_kstr(b, "description", description);
    if (o && dialect == KL_OPENAPI_V2)
        schema_of(b, dialect, o->answers);
    else if (o)
        content(b, o->answers, o->produces);
    kl_build_end(b);
}

static void answers(kl_builder *b, kl__dialect dialect, const kl__operation *o)
{
    kl_build_key(b, "responses");
    kl_build_object(b);
    answer(b, dialect, o, "200", "OK");
    if (o->creates)
        answer(b, dialect, o, "201", "Created");
    if (o->accepts)
        answer(b, dialect, o, "202", "Accepted");
    answer(b, dialect, NULL, "401", "Unauthorized");
    kl_build_end(b);
}

/* ------------------------------------------------------------------ operations */

static void works_on(kl_builder *b, const kl__operation *o)
{
    kl_build_kstr(b, "x-kubernetes-action", o->action);
    kl_build_key(b, "x-kubernetes-group-version-kind");
    kl_build_object(b);
    kl_build_kstr(b, "group", o->group);
    kl_build_kstr(b, "kind", o->kind);
    kl_build_kstr(b, "version", o->version);
    kl_build_end(b);
}

/* Writes the options of an operation: those that the whole path shares, or the others, with the body in v2.
 */
static void parameters(
    kl_builder *b, kl__dialect dialect, const kl__path *p, const kl__operation *o, bool of_path)
{
    size_t n = !of_path && o->sends && dialect == KL_OPENAPI_V2;
    for (size_t i = 0; i < o->noptions; i++)
        n += in_all(p, o->options[i]) == of_path;
    if (!n)
        return;
    kl_build_key(b, "parameters");
    kl_build_array(b);
    if (!of_path && o->sends && dialect == KL_OPENAPI_V2)
        body(b, dialect, o);
    for (size_t i = 0; i < o->noptions; i++)
        if (in_all(p, o->options[i]) == of_path)
            parameter(b, dialect, o->options[i]);
    kl_build_end(b);
}

static void operation(kl_builder *b, kl__dialect dialect, const kl__path *p, const kl__operation *o)
{
    static const char *const https[] = {"https", NULL};
    const char *const tags[] = {p->tag, NULL};
    kl_build_key(b, o->method);
    kl_build_object(b);
    words(b, "tags", tags);
    kl_build_kstr(b, "description", o->says);
    kl_build_kstr(b, "operationId", o->id);
    if (dialect == KL_OPENAPI_V2) {
        if (o->consumes)
            words(b, "consumes", o->consumes);
        words(b, "produces", o->produces);
        words(b, "schemes", https);
    }
    parameters(b, dialect, p, o, false);
    if (o->sends && dialect == KL_OPENAPI_V3)
        body(b, dialect, o);
    answers(b, dialect, o);
    if (o->kind)
        works_on(b, o);
    kl_build_end(b);
}

static void want(kl__definitions *d, const char *name)
{
    if (name)
        kl__definitions_want_one(d, kl__definitions_get(d, name));
}

void kl__openapi_path(kl_builder *b, kl__definitions *d, kl__dialect dialect, kl__path *p)
{
    if (p->n) {
        kl_build_key(b, p->text);
        kl_build_object(b);
        for (size_t i = 0; i < p->n; i++)
            operation(b, dialect, p, &p->operations[i]);
        parameters(b, dialect, p, &p->operations[0], true);
        kl_build_end(b);
    }
    for (size_t i = 0; i < p->n; i++) {
        want(d, p->operations[i].sends);
        want(d, p->operations[i].answers);
        kl_free(p->operations[i].id);
        kl_free(p->operations[i].says);
    }
    kl_free(p->text);
    kl_free(p->tag);
}
