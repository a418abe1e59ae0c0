/* shadow_judge.c - object by object, then the results. */
#include "lab/shadow_judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "model/diff.h"
#include "model/object.h"
#include "model/redact.h"
#include "model/time.h"
#include "lab/differences.h"
#include "lab/record.h"

/* A diff for people; what is longer is cut. */
#define DIFF_MAX 4096

const char *kl_verdict_name(kl_verdict v)
{
    return v == KL_SAME ? "same" : v == KL_DIFFERS ? "differs" : "fails";
}

typedef struct judge {
    const kl_shadow_run *s;
    const kl_resource *own;
    kl_overlay *world; /* the original state; built unless the two are trivially equal */
    kl_redaction redaction;
    kl_buf diff, kind;
} judge;

/* The successful writes of one side to one object, in order. */
typedef struct deeds {
    const kl_shadow_call **v;
    size_t n;
} deeds;

static bool counts(const kl_shadow_call *c)
{
    return c->answered && !c->status && c->writes && !c->copy->op.dry_run;
}

static deeds deeds_of(const kl_shadow_calls *l, const char *object)
{
    deeds d = {kl_new_array(const kl_shadow_call *, l->n + 1), 0};
    for (size_t i = 0; i < l->n; i++) {
        char *name = kl_shadow_object(l->v[i]);
        if (counts(l->v[i]) && !strcmp(name, object))
            d.v[d.n++] = l->v[i];
        kl_free(name);
    }
    return d;
}

static void say(judge *j, const char *object, const char *what)
{
    if (j->diff.len < DIFF_MAX)
        kl_buf_printf(&j->diff, "%s%s: %s", j->diff.len ? "; " : "", object, what);
}

static void say_plainly(judge *j, const char *object, const char *what)
{
    char *word = kl_kind_word(object);
    say(j, object, what);
    kl_kind_text(&j->kind, j->s->key, word, what);
    kl_free(word);
}

/* Reports what differs between two states of an object. */
static void say_states(judge *j, const char *object, const char *what, const kl_value *a, const kl_value *b)
{
    char *word = kl_kind_word(object);
    say(j, object, what);
    kl_kind_add(&j->kind, j->s->key, word, a, b);
    kl_free(word);
}

/* --- outcomes ----------------------------------------------------------------------------- */

static kl_overlay *world(judge *j)
{
    if (j->world)
        return j->world;
    j->world = kl_overlay_new();
    kl_shadow_run_show(j->s, j->own, j->world);
    for (size_t i = 0; i < j->s->own.n; i++) { /* and objects that only the candidate has read */
        const kl_shadow_call *c = j->s->own.v[i];
        if (counts(c) && c->resource && c->name)
            (void)kl_overlay_show(j->world, c->resource, c->ns, c->name, c->body);
    }
    return j->world;
}

typedef struct outcome {
    const kl_value *object;  /* NULL: there is none */
    const kl_value *applied; /* what was applied last, or NULL; borrowed */
    const char *problem;     /* the result is unknown; static */
} outcome;

static outcome outcome_of(judge *j, const deeds *d, const kl_shadow_call *any)
{
    outcome o = {0};
    if (!any->resource || !any->name
        || !kl_overlay_get(world(j), any->resource, any->ns, any->name, &o.object))
        o.problem = d->n ? "was not known before" : NULL;
    for (size_t i = 0; i < d->n; i++) {
        kl_simulated out = {0};
        kl_err err = KL_ERR_INIT;
        const kl_op *op = &d->v[i]->copy->op;
        if (op->verb == KL_APPLY)
            o.applied = op->body;
        if (kl_simulate(&(kl_simulation){.op = op,
                            .resource = any->resource,
                            .ns = any->ns,
                            .base = o.object,
                            .wall = j->s->wall,
                            .number = i + 1},
                &out, &err)) {
            kl_err_fini(&err);
            o.problem = "unknown without the server";
            continue;
        }
        kl_value_unref(o.object);
        o.object = kl_value_ref(out.object);
        kl_simulated_fini(&out);
    }
    return o;
}

/* The object without fields that differ by server or time. */
static const kl_value *bare(const kl_value *o)
{
    static const char *const keys[] = {
        "resourceVersion", "generation", "managedFields", "uid", "creationTimestamp", NULL};
    const kl_value *m = kl_value_ref(kl_value_get(o, "metadata"));
    for (const char *const *k = keys; m && *k; k++) {
        const kl_value *less = kl_value_with(m, *k, NULL);
        kl_value_unref(m);
        m = less;
    }
    const kl_value *out = o ? kl_value_with(o, "metadata", m) : NULL;
    kl_value_unref(m);
    return out;
}

static void compare(judge *j, const char *object, const kl_value *live, const kl_value *own)
{
    kl_buf text = KL_BUF_INIT;
    const kl_value *a = bare(live), *b = bare(own);
    if (!kl_shadow_alike(j->s, a, b)) {
        if (!a || !b)
            kl_buf_puts(&text, a ? "there -> gone " : "gone -> there ");
        kl_diff_text(a, b, &text);
        say_states(j, object, kl_buf_str(&text), a, b);
    }
    kl_value_unref(a);
    kl_value_unref(b);
    kl_buf_fini(&text);
}

static void compare_outcomes(judge *j, const char *object, const deeds *live, const deeds *own)
{
    const kl_shadow_call *any = live->n ? live->v[0] : own->v[0];
    outcome a = outcome_of(j, live, any), b = outcome_of(j, own, any);
    size_t before = j->diff.len;
    if (a.problem || b.problem)
        say_plainly(j, object,
            !own->n        ? "written -> not written"
                : !live->n ? "not written -> written"
                           : "written -> written differently; the outcome is unknown without the server");
    else
        compare(j, object, a.object, b.object);
    if (j->diff.len == before && a.applied && b.applied)
        compare(j, object, a.applied, b.applied);
    kl_value_unref(a.object);
    kl_value_unref(b.object);
}

/* Generated names differ: objects with such names are compared in order. */
static void compare_created(judge *j, const char *object, const deeds *live, const deeds *own)
{
    for (size_t i = 0; i < live->n || i < own->n; i++)
        compare(j, object, i < live->n ? live->v[i]->copy->op.body : NULL,
            i < own->n ? own->v[i]->copy->op.body : NULL);
}

/* Compares the requests to other servers, sent or simulated. */
static void compare_sent(judge *j, const char *object, const deeds *live, const deeds *own)
{
    for (size_t i = 0; i < live->n || i < own->n; i++) {
        if (i >= live->n || i >= own->n) {
            say_plainly(j, object, i < live->n ? "sent -> not sent" : "not sent -> sent");
            continue;
        }
        const kl_op *a = &live->v[i]->copy->op, *b = &own->v[i]->copy->op;
        if (kl_shadow_same_op(j->s, live->v[i], own->v[i]))
            continue;
        /* the secrets of both are redacted before they are shown */
        const kl_value *x = kl_redact(&j->redaction, KL_HTTP_KIND, a->body),
                       *y = kl_redact(&j->redaction, KL_HTTP_KIND, b->body);
        kl_buf text = KL_BUF_INIT;
        kl_diff_text(kl_value_get(x, "json"), kl_value_get(y, "json"), &text);
        if (text.len)
            say_states(j, object, kl_buf_str(&text), kl_value_get(x, "json"), kl_value_get(y, "json"));
        else
            say_plainly(j, object,
                strcmp(a->name, b->name) ? "sent -> sent with another query"
                                         : "sent -> sent with another body");
        kl_value_unref(x);
        kl_value_unref(y);
        kl_buf_fini(&text);
    }
}

static bool plainly_same(const judge *j, const deeds *a, const deeds *b)
{
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = kl_shadow_same_op(j->s, a->v[i], b->v[i]);
    return same;
}

static void judge_object(judge *j, const char *object)
{
    deeds live = deeds_of(&j->s->live, object), own = deeds_of(&j->s->own, object);
    const kl_shadow_call *any = live.n ? live.v[0] : own.v[0];
    if (!plainly_same(j, &live, &own)) {
        if (any->copy->op.verb == KL_HTTP)
            compare_sent(j, object, &live, &own);
        else if (object[strlen(object) - 1] == '*')
            compare_created(j, object, &live, &own);
        else
            compare_outcomes(j, object, &live, &own);
    }
    kl_free(live.v);
    kl_free(own.v);
}

static void objects_of(const kl_shadow_calls *l, kl_map *objects)
{
    for (size_t i = 0; i < l->n; i++)
        if (counts(l->v[i])) {
            char *name = kl_shadow_object(l->v[i]);
            kl_map_set(objects, name, l->v[i]);
            kl_free(name);
        }
}

/* --- results ------------------------------------------------------------------------------ */

static bool is_failure(kl_result_kind k) { return k == KL_RESULT_ERROR || k == KL_RESULT_FAIL; }

static void result_text(const kl_ending *e, kl_buf *out)
{
    char t[KL_DURATION_MAX];
    kl_buf_puts(out, kl_result_name(e->result));
    if (e->result == KL_RESULT_AFTER || e->result == KL_RESULT_RETRY)
        kl_buf_printf(out, " %s", kl_duration_format(e->after, t));
    if (is_failure(e->result) && e->message)
        kl_buf_printf(out, " (%s)", e->message);
}

/* A delay may count from the end of a run, whose duration must make no difference. */
static bool same_time(kl_time a, kl_time b)
{
    kl_time apart = a > b ? a - b : b - a;
    return apart <= KL_SECONDS(1) || apart <= (a > b ? a : b) / 10;
}

static bool same_end(const kl_ending *a, const kl_ending *b)
{
    if (a->result != b->result)
        return false;
    return (a->result != KL_RESULT_AFTER && a->result != KL_RESULT_RETRY) || same_time(a->after, b->after);
}

static void judge_end(judge *j, const kl_ending *live, const kl_ending *own)
{
    if (same_end(live, own))
        return;
    kl_buf text = KL_BUF_INIT;
    result_text(live, &text);
    kl_buf_puts(&text, " -> ");
    result_text(own, &text);
    say_plainly(j, "result", kl_buf_str(&text));
    kl_buf_fini(&text);
}

kl_judgement kl_shadow_judge(const kl_shadow_run *s, const kl_resource *own, const kl_ending *end)
{
    judge j = {.s = s, .own = own};
    kl_map *objects = kl_map_new();
    kl_redaction_init(&j.redaction);
    objects_of(&s->live, objects);
    objects_of(&s->own, objects);
    char **names = kl_map_sorted_keys(objects);
    bool fails = is_failure(end->result) && !is_failure(s->live_end.result);
    if (fails)
        judge_end(&j, &s->live_end, end);
    for (char **n = names; *n; n++)
        judge_object(&j, *n);
    if (!fails)
        judge_end(&j, &s->live_end, end);
    kl_free(names);
    kl_map_free(objects, NULL);
    kl_overlay_unref(j.world);
    kl_judgement out = {.verdict = fails ? KL_FAILS : j.diff.len ? KL_DIFFERS : KL_SAME};
    out.diff = j.diff.len ? kl_buf_take(&j.diff) : NULL;
    out.kind = j.kind.len ? kl_buf_take(&j.kind) : NULL;
    kl_buf_fini(&j.diff);
    kl_buf_fini(&j.kind);
    return out;
}
