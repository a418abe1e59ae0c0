/* replay_compare.c - compares a run's writes with the recorded ones. */
#include <string.h>

#include "base/mem.h"
#include "model/diff.h"
#include "model/object.h"
#include "model/redact.h"
#include "lab/differences.h"
#include "lab/replay_impl.h"

/* --- calls -------------------------------------------------------------------------------- */

/* `now`, with the texts of `then` that only the recording redacted: they cannot be compared and count as
 * equal. A new reference. */
static const kl_value *adopt(const kl_value *then, const kl_value *now)
{
    if (kl_value_type(then) == KL_STRING && kl_value_type(now) == KL_STRING)
        return kl_value_ref(kl_redacted(kl_value_str(then)) && !kl_redacted(kl_value_str(now)) ? then : now);
    if (kl_value_type(then) == KL_ARRAY && kl_value_type(now) == KL_ARRAY) {
        kl_builder *b = kl_builder_new();
        kl_build_array(b);
        for (size_t i = 0; i < kl_value_len(now); i++) {
            const kl_value *x = adopt(kl_value_item(then, i), kl_value_item(now, i));
            kl_build_value(b, x);
            kl_value_unref(x);
        }
        kl_build_end(b);
        return kl_builder_done(b);
    }
    if (kl_value_type(then) != KL_OBJECT || kl_value_type(now) != KL_OBJECT)
        return kl_value_ref(now);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (size_t i = 0; i < kl_value_len(now); i++) {
        const char *key;
        size_t n;
        const kl_value *y = kl_value_member(now, i, &key, &n), *x = adopt(kl_value_getn(then, key, n), y);
        kl_build_keyn(b, key, n);
        kl_build_value(b, x);
        kl_value_unref(x);
    }
    kl_build_end(b);
    return kl_builder_done(b);
}

const kl_value *kl__told_op(const kl_value *op)
{
    static const char *const kept[] = {"json", "text", "base64", NULL};
    const char *verb = kl_value_str_at(op, "verb", NULL);
    if (!verb || strcmp(verb, "http") != 0)
        return kl_value_ref(op);
    kl_builder *b = kl_builder_new();
    kl_build_object(b);
    for (const char *const *k = kept; *k; k++)
        kl_build_kvalue(b, *k, kl_value_at(op, "body", *k, NULL));
    kl_build_end(b);
    const kl_value *body = kl_builder_done(b), *out = kl_value_with(op, "body", body);
    kl_value_unref(body);
    return out;
}

const kl_value *kl__shown_op(const kl_value *then, const kl_value *now)
{
    const kl_value *op = kl__told_op(now);
    kl_redaction r;
    if (then) {
        const kl_value *out = adopt(then, op);
        kl_value_unref(op);
        return out;
    }
    kl_redaction_init(&r);
    const kl_value *body = kl_redact(&r, KL_HTTP_KIND, kl_value_get(op, "body")),
                   *out = kl_value_with(op, "body", body);
    kl_value_unref(body);
    kl_value_unref(op);
    return out;
}

bool kl__same_op(const kl_value *then, const kl_value *now)
{
    if (kl_value_equal(then, now))
        return true;
    const kl_value *x = adopt(then, now);
    bool same = kl_value_equal(then, x);
    kl_value_unref(x);
    return same;
}

/* --- a run -------------------------------------------------------------------------------- */

typedef struct changes {
    kl_replay_change *v;
    size_t n;
} changes;

/* "patch v1/ConfigMap/status", "POST https://example.com". The caller frees it. */
static char *call_of(const kl_value *op)
{
    const char *verb = kl_value_str_at(op, "verb", NULL), *sub = kl_value_str_at(op, "sub", NULL),
               *kind = kl_value_str_at(op, "kind", NULL), *name = kl_value_str_at(op, "name", NULL);
    if (strcmp(verb ? verb : "", "http"))
        return kl_sprintf("%s %s%s%s", verb ? verb : "", kind ? kind : "", sub ? "/" : "", sub ? sub : "");
    char *all = kl_sprintf("%s %s", sub ? sub : "", name ? name : ""), *word = kl_kind_word(all);
    kl_free(all);
    return word;
}

/* Records a change, with its two states. */
static void change(changes *c, const char *key, kl_replay_change x, const kl_value *was, const kl_value *is)
{
    static const char *const words[] = {"", "only now: ", "not any more: "};
    kl_buf text = KL_BUF_INIT, kind = KL_BUF_INIT;
    const kl_value *op = x.now ? x.now : x.then;
    char *call = call_of(op), *what = kl_sprintf("%s%s", words[x.how], call);
    kl_diff_text(was, is, &text);
    kl_kind_add(&kind, key, what, was, is);
    kl_free(what);
    kl_free(call);
    x.text = kl_buf_take(&text);
    x.kind = kl_buf_take(&kind);
    c->v = kl_realloc(c->v, (c->n + 1) * sizeof *c->v);
    c->v[c->n++] = x;
}

/* Records a change of bodies. A value that the recording redacted does not count as a difference. */
static void change_of_bodies(changes *c, const char *key, kl_replay_change x)
{
    const kl_value *was = x.then ? kl__told_op(x.then) : NULL, *is = x.now ? kl__told_op(x.now) : NULL,
                   *a = kl_value_get(was, "body"), *b = adopt(a, kl_value_get(is, "body"));
    change(c, key, x, a, b);
    kl_value_unref(b);
    kl_value_unref(was);
    kl_value_unref(is);
}

static void note(void *arg, const char *path, const kl_value *was, const kl_value *is)
{
    (void)path, (void)was, (void)is;
    *(bool *)arg = true;
}

static bool differ(const kl_value *was, const kl_value *is)
{
    bool some = false;
    kl_diff_objects(was, is, note, &some);
    return some;
}

/* Records a write that differs from the recorded one, unless both have the same known result. */
static void tell_write(const kl__live *l, const kl__wrote *x, changes *c)
{
    const kl_past_asked *q = x->match == KL__NO_MATCH ? NULL : &l->past->asked[x->match];
    kl_replay_change it = {
        .how = q ? KL_REPLAY_OTHER : KL_REPLAY_NEW, .then = q ? q->op : NULL, .now = x->op};
    if (!x->known)
        change_of_bodies(c, l->past->key, it);
    else if (!q || (x->then != NULL) != (x->now != NULL) || differ(x->then, x->now))
        change(c, l->past->key, it, x->then, x->now);
}

static bool is_write(const kl_past_asked *q)
{
    const char *verb = kl_value_str_at(q->op, "verb", NULL);
    for (int v = KL_GET; verb && v <= KL_DELETE_COLLECTION; v++)
        if (!strcmp(verb, kl_verb_name((kl_verb)v)))
            return kl_verb_is_write((kl_verb)v);
    return kl_value_bool(kl_value_get(q->op, "writes"), false);
}

/* Whether the write was not sent because it would have changed nothing. */
static bool was_elided(const kl_past_asked *q) { return q->answered && !q->status && !q->code; }

static void gather(const kl__live *l, changes *c)
{
    for (size_t i = 0; i < l->n_wrote; i++)
        if (!l->wrote[i].same)
            tell_write(l, &l->wrote[i], c);
    for (size_t i = 0; i < l->past->n_asked; i++) {
        const kl_past_asked *q = &l->past->asked[i];
        if (!l->used[i] && is_write(q) && !was_elided(q))
            change_of_bodies(c, l->past->key, (kl_replay_change){.how = KL_REPLAY_MISSING, .then = q->op});
    }
}

static bool failed(const char *result) { return !strcmp(result, "error") || !strcmp(result, "fail"); }

void kl__compare(kl__live *l)
{
    kl__engine *e = l->e;
    const kl_past_run *p = l->past;
    changes c = {0};
    kl_replayed x = {.run = p,
        .result = kl_result_name(l->result),
        .message = l->message,
        .after = l->after,
        .writes = l->n_wrote};
    if (p->ended && !p->cut)
        gather(l, &c);
    x.changes = c.v;
    x.n_changes = c.n;
    x.result_differs = p->ended && !p->cut && (strcmp(x.result, p->result) || x.after != p->after);
    x.verdict = !p->ended || p->cut              ? KL_REPLAY_CUT
        : failed(x.result) && !failed(p->result) ? KL_REPLAY_FAILS
        : c.n || x.result_differs                ? KL_REPLAY_DIFFERS
                                                 : KL_REPLAY_SAME;
    kl_replay_sum *s = e->sum;
    if (!l->late && (!e->o->key || !strcmp(e->o->key, p->key))) {
        s->runs++;
        s->same += x.verdict == KL_REPLAY_SAME;
        s->differ += x.verdict == KL_REPLAY_DIFFERS;
        s->fail += x.verdict == KL_REPLAY_FAILS;
        s->cut += x.verdict == KL_REPLAY_CUT;
        if (e->o->told)
            e->o->told(e->o->arg, &x);
    }
    for (size_t i = 0; i < c.n; i++) {
        kl_free((char *)c.v[i].text);
        kl_free((char *)c.v[i].kind);
    }
    kl_free(c.v);
}

void kl__live_free(void *live)
{
    kl__live *l = live;
    for (size_t i = 0; i < l->n_wrote; i++) {
        kl_value_unref(l->wrote[i].op);
        kl_value_unref(l->wrote[i].then);
        kl_value_unref(l->wrote[i].now);
    }
    kl_free(l->wrote);
    kl_overlay_unref(l->overlay);
    kl_value_unref(l->op);
    kl_free(l->used);
    kl_free(l->message);
    kl_free(l);
}
