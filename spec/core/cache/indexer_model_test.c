/* indexer_model_test.c - store, indexes and queries against a model that is too simple to be wrong.
 *
 * The model is an array of all keys that may exist, in the order of keys, and asks every object of every
 * query. Random puts, removals and lists, indexes that come and go, and queries of every form; after each
 * query the two answers are one. KL_MODEL_OPS=N runs N operations instead.
 * not in check: the model is slow by design */
#include "support/test.h"
#include "support/sizes.h"

#include "base/mem.h"
#include "base/random.h"
#include "cache/indexer.h"
#include "model/object.h"

#ifdef KL_DEBUG
#define OPS 60000 /* under a sanitizer */
#else
#define OPS test_size(500000, 2000000)
#endif

#define NAMESPACES 7 /* the last is cluster scope */
#define VALUES 5
#define TAGS 4

typedef struct thing {
    char ns[16], name[16], key[40];
    bool there;
    int uid, rv, app, zone, node, tags; /* app, zone (labels), node (a path): -1 absent; tags: bits */
} thing;

typedef struct world {
    kl_random r;
    kl_indexer *ix;
    thing *all; /* sorted by key */
    size_t n, there;
    int rv, uids;
    bool by_node, by_tags, by_fn; /* which indexes there are */
    int fn_freed;
    uint64_t queries, answers;
} world;

static size_t draw(world *w, size_t n) { return kl_random_next(&w->r) % n; }
static int draw_value(world *w) { return (int)draw(w, VALUES + 1) - 1; }

static int by_key(const void *a, const void *b)
{
    return strcmp(((const thing *)a)->key, ((const thing *)b)->key);
}

static void name_things(world *w, size_t n)
{
    w->all = kl_new_array(thing, w->n = n);
    for (size_t i = 0; i < n; i++) {
        thing *t = &w->all[i];
        size_t ns = i % NAMESPACES;
        if (ns < NAMESPACES - 1) /* some begin as others do, and sort around the slash */
            snprintf(t->ns, sizeof t->ns, "%s", (const char *[]){"a", "a-b", "ab", "b", "b.c", "b0"}[ns]);
        snprintf(t->name, sizeof t->name, "%c%zu", "xyz"[i % 3], i / NAMESPACES);
        snprintf(t->key, sizeof t->key, "%s%s%s", t->ns, *t->ns ? "/" : "", t->name);
    }
    qsort(w->all, n, sizeof *w->all, by_key);
}

static const kl_value *object_of(const thing *t)
{
    kl_builder *b = kl_builder_new();
    char text[16];
    kl_build_object(b);
    kl_build_key(b, "metadata");
    kl_build_object(b);
    kl_build_kstr(b, "namespace", *t->ns ? t->ns : NULL);
    kl_build_kstr(b, "name", t->name);
    snprintf(text, sizeof text, "u%d", t->uid);
    kl_build_kstr(b, "uid", text);
    snprintf(text, sizeof text, "%d", t->rv);
    kl_build_kstr(b, "resourceVersion", text);
    if (t->app >= 0 || t->zone >= 0) {
        kl_build_key(b, "labels");
        kl_build_object(b);
        snprintf(text, sizeof text, "v%d", t->app);
        kl_build_kstr(b, "app", t->app >= 0 ? text : NULL);
        snprintf(text, sizeof text, "v%d", t->zone);
        kl_build_kstr(b, "zone", t->zone >= 0 ? text : NULL);
        kl_build_end(b);
    }
    kl_build_end(b);
    kl_build_key(b, "spec");
    kl_build_object(b);
    if (t->node >= 0)
        kl_build_kint(b, "node", t->node);
    kl_build_key(b, "tags");
    kl_build_array(b);
    for (int i = 0; i < TAGS; i++)
        if (t->tags >> i & 1) {
            snprintf(text, sizeof text, "v%d", i);
            kl_build_str(b, text);
        }
    kl_build_end(b);
    kl_build_end(b);
    kl_build_end(b);
    return kl_builder_done(b);
}

/* The function index says "v<node>" and, for objects that have an app, "v<app>" as well. */
static void node_and_app(void *arg, const kl_value *o, kl_index_emit *emit, void *emit_arg)
{
    char text[32];
    int64_t node = kl_value_int_at(o, -1, "spec", "node", NULL);
    const char *app = kl_value_str(kl_object_label(o, "app"));
    (void)arg;
    snprintf(text, sizeof text, "v%lld", (long long)node);
    if (node >= 0)
        emit(emit_arg, text);
    if (app)
        emit(emit_arg, app);
}

static void count_free(void *arg) { ((world *)arg)->fn_freed++; }

/* --- changes ------------------------------------------------------------------------------ */

static void change(world *w, thing *t)
{
    if (!t->there || !draw(w, 20))
        t->uid = ++w->uids;
    t->rv = ++w->rv;
    if (!t->there || !draw(w, 4)) {
        t->app = draw_value(w);
        t->zone = draw_value(w);
        t->node = draw_value(w);
        t->tags = (int)draw(w, 1 << TAGS);
    }
    w->there += !t->there;
    t->there = true;
}

static void assert_state(const kl_value *o, int uid, int rv)
{
    assert_int_equal(atoi(kl_object_uid(o) + 1), uid);
    assert_int_equal(atoi(kl_object_rv(o)), rv);
}

static void put(world *w)
{
    thing *t = &w->all[draw(w, w->n)], was = *t;
    const kl_value *old;
    bool same = was.there && !draw(w, 5);
    if (!same)
        change(w, t);
    const kl_value *o = object_of(t);
    assert_int_equal(kl_indexer_put(w->ix, o, kl_object_rv(o), &old), !same);
    assert_int_equal(old != NULL, was.there && !same);
    if (old) {
        assert_state(old, was.uid, was.rv);
        assert_int_equal(kl_object_reborn(old, o), was.uid != t->uid);
    }
    kl_value_unref(old);
    kl_value_unref(o);
}

static void take(world *w)
{
    thing *t = &w->all[draw(w, w->n)];
    const kl_value *o = object_of(t), *old = kl_indexer_remove(w->ix, o, NULL);
    assert_int_equal(old != NULL, t->there);
    if (old)
        assert_state(old, t->uid, t->rv);
    w->there -= t->there;
    t->there = false;
    kl_value_unref(old);
    kl_value_unref(o);
}

/* A list: some changed, some vanished, some new, in order or not, now and then one twice. */
static void list_all(world *w)
{
    const kl_value **page = kl_new_array(const kl_value *, w->n + 2);
    thing *before = kl_alloc(w->n * sizeof *before);
    char rv[16];
    size_t n = 0, expected = 0, at = 0;
    kl_changes c;
    memcpy(before, w->all, w->n * sizeof *before);
    size_t lost = draw(w, 3) ? 50 : 2, fresh = draw(w, 50) + 1;
    for (size_t i = 0; i < w->n; i++) {
        thing *t = &w->all[i];
        bool stays = t->there ? draw(w, lost) : !draw(w, fresh);
        if (stays && (!t->there || !draw(w, 10)))
            change(w, t);
        w->there -= t->there && !stays;
        t->there = stays;
        expected += stays != before[i].there || (stays && t->rv != before[i].rv);
        if (stays)
            page[n++] = object_of(t);
    }
    if (n && !draw(w, 4)) {
        page[n] = kl_value_ref(page[draw(w, n)]);
        n++;
    }
    for (size_t i = n; !draw(w, 2) && i-- > 1;) {
        size_t k = draw(w, i + 1);
        const kl_value *o = page[i];
        page[i] = page[k];
        page[k] = o;
    }
    snprintf(rv, sizeof rv, "%d", ++w->rv);
    kl_indexer_replace(w->ix, page, n, rv, &c);
    assert_int_equal(c.len, expected);
    for (int listed = 1; listed >= 0; listed--) /* what is listed, by key, then what is gone, by key */
        for (size_t i = 0; i < w->n; i++) {
            thing *t = &w->all[i], *b = &before[i];
            if (t->there != listed || (t->there == b->there && (!t->there || t->rv == b->rv)))
                continue;
            assert_int_equal(c.v[at].old != NULL, b->there);
            assert_int_equal(c.v[at].now != NULL, t->there);
            if (b->there)
                assert_state(c.v[at].old, b->uid, b->rv);
            if (t->there)
                assert_state(c.v[at].now, t->uid, t->rv);
            at++;
        }
    char *have = kl_indexer_rv(w->ix);
    assert_string_equal(have, rv);
    kl_free(have);
    kl_changes_fini(&c);
    while (n)
        kl_value_unref(page[--n]);
    kl_free(page);
    kl_free(before);
}

static void change_objects(world *w)
{
    size_t n = draw(w, 8);
    if (!n)
        list_all(w);
    else if (n < 6)
        put(w);
    else
        take(w);
}

static bool enough(void *arg) { return !draw(arg, 40); }

static void change_indexes(world *w)
{
    kl_err err = KL_ERR_INIT;
    bool fresh;
    switch (draw(w, 3)) {
    case 0:
        if (w->by_node)
            assert_true(kl_indexer_drop(w->ix, "node"));
        else
            assert_ok(kl_indexer_add_path(w->ix, "node", "spec.node", &err), &err);
        w->by_node = !w->by_node;
        break;
    case 1:
        if (w->by_tags)
            assert_true(kl_indexer_drop(w->ix, "tags"));
        else
            assert_ok(kl_indexer_add_path(w->ix, "tags", "spec.tags", &err), &err);
        w->by_tags = !w->by_tags;
        break;
    default:
        if (w->by_fn) {
            assert_true(kl_indexer_drop(w->ix, "fn"));
        } else {
            assert_ok(kl_indexer_reserve_fn(w->ix, "fn", node_and_app, w, count_free, &fresh, &err), &err);
            assert_true(fresh);
            while (!kl_indexer_fill(w->ix, enough, w))
                change_objects(w);
        }
        w->by_fn = !w->by_fn;
        break;
    }
    if (draw(w, 2))
        kl_indexer_sweep(w->ix);
}

/* --- queries ------------------------------------------------------------------------------ */

/* values: 0.. */
typedef struct want {
    const char *index;
    kl_selector_op op;
    int values[3];
    size_t n;
} want;
typedef struct question {
    const char *ns;
    want terms[4];
    size_t n_terms;
    want labels[2];
    size_t n_labels;
    int where; /* uid % where == 0; 0: all */
    size_t limit;
} question;

/* As bits: what an index or a label says of a thing. */
static int said(const thing *t, const char *index)
{
    if (!strcmp(index, "tags"))
        return t->tags;
    int node = t->node < 0 ? 0 : 1 << t->node, app = t->app < 0 ? 0 : 1 << t->app,
        zone = t->zone < 0 ? 0 : 1 << t->zone;
    return !strcmp(index, "node") ? node
        : !strcmp(index, "fn")    ? node | app
        : !strcmp(index, "app")   ? app
                                  : zone;
}

static bool holds(const thing *t, const want *x)
{
    int have = said(t, x->index), asked = 0;
    for (size_t i = 0; i < x->n; i++)
        asked |= 1 << x->values[i];
    switch (x->op) {
    case KL_SEL_EXISTS: return have;
    case KL_SEL_NOT_EXISTS: return !have;
    case KL_SEL_NE:
    case KL_SEL_NOTIN: return !(have & asked);
    default: return have & asked;
    }
}

static bool answers(const thing *t, const question *q)
{
    bool yes = t->there && (!q->ns || (*q->ns && !strcmp(t->ns, q->ns)))
        && (!q->where || t->uid % q->where == 0);
    for (size_t i = 0; yes && i < q->n_terms; i++)
        yes = holds(t, &q->terms[i]);
    for (size_t i = 0; yes && i < q->n_labels; i++)
        yes = holds(t, &q->labels[i]);
    return yes;
}

static want draw_want(world *w, const char *index)
{
    static const kl_selector_op ops[] = {
        KL_SEL_EQ, KL_SEL_EQ, KL_SEL_NE, KL_SEL_IN, KL_SEL_NOTIN, KL_SEL_EXISTS, KL_SEL_NOT_EXISTS};
    want x = {index, ops[draw(w, sizeof ops / sizeof *ops)], {0}, 0};
    bool many = x.op == KL_SEL_IN || x.op == KL_SEL_NOTIN;
    x.n = x.op == KL_SEL_EXISTS || x.op == KL_SEL_NOT_EXISTS ? 0 : many ? 1 + draw(w, 3) : 1;
    for (size_t i = 0; i < x.n; i++)
        x.values[i] = (int)draw(w, VALUES + 1); /* the last is nobody's */
    return x;
}

static question draw_question(world *w)
{
    question q = {0};
    if (!draw(w, 3))
        q.ns = (const char *[]){"a", "a-b", "ab", "b", "b.c", "b0", "none", ""}[draw(w, 8)];
    if (w->by_node && !draw(w, 2))
        q.terms[q.n_terms++] = draw_want(w, "node");
    if (w->by_tags && !draw(w, 2))
        q.terms[q.n_terms++] = draw_want(w, "tags");
    if (w->by_fn && !draw(w, 2))
        q.terms[q.n_terms++] = draw_want(w, "fn");
    if (!draw(w, 2))
        q.labels[q.n_labels++] = draw_want(w, "app");
    if (!draw(w, 4))
        q.labels[q.n_labels++] = draw_want(w, "zone");
    if (!draw(w, 8))
        q.where = 1 + (int)draw(w, 4);
    if (!draw(w, 4))
        q.limit = 1 + draw(w, 30);
    return q;
}

static kl_selector *selector_of(const question *q)
{
    kl_buf b = KL_BUF_INIT;
    kl_err err = KL_ERR_INIT;
    kl_selector *s = NULL;
    for (size_t i = 0; i < q->n_labels; i++) {
        const want *x = &q->labels[i];
        bool many = x->op == KL_SEL_IN || x->op == KL_SEL_NOTIN;
        kl_buf_printf(&b, "%s%s%s%s", i ? "," : "", x->op == KL_SEL_NOT_EXISTS ? "!" : "", x->index,
            x->op == KL_SEL_NE          ? "!="
                : x->op == KL_SEL_EQ    ? "="
                : x->op == KL_SEL_IN    ? " in ("
                : x->op == KL_SEL_NOTIN ? " notin ("
                                        : "");
        for (size_t k = 0; k < x->n; k++)
            kl_buf_printf(&b, "%sv%d", k ? "," : "", x->values[k]);
        kl_buf_puts(&b, many ? ")" : "");
    }
    assert_ok(kl_selector_parse(kl_buf_str(&b), &s, &err), &err);
    kl_buf_fini(&b);
    return s;
}

static bool divides(void *arg, const kl_value *o) { return atoi(kl_object_uid(o) + 1) % *(int *)arg == 0; }

static void ask(world *w)
{
    static const char *const ints[] = {"0", "1", "2", "3", "4", "5"},
                             *const texts[] = {"v0", "v1", "v2", "v3", "v4", "v5"};
    question asked = draw_question(w);
    const char *values[4][4] = {{0}};
    kl_index_term terms[4];
    kl_query q = {.ns = asked.ns,
        .terms = terms,
        .limit = asked.limit,
        .labels = asked.n_labels ? selector_of(&asked) : NULL};
    for (size_t i = 0; i < asked.n_terms; i++) {
        const want *x = &asked.terms[i];
        for (size_t k = 0; k < x->n; k++)
            values[i][k] = (strcmp(x->index, "node") ? texts : ints)[x->values[k]];
        if (!i && x->op == KL_SEL_EQ && draw(w, 2)) { /* the short form of one */
            q.index = x->index;
            q.value = values[i][0];
        } else {
            terms[q.n_terms++] = (kl_index_term){x->index, x->op, x->n ? values[i] : NULL};
        }
    }
    if (asked.where) {
        q.where = divides;
        q.where_arg = &asked.where;
    }
    kl_objects found;
    kl_err err = KL_ERR_INIT;
    size_t at = 0;
    assert_ok(kl_indexer_list(w->ix, &q, &found, &err), &err);
    for (size_t i = 0; i < w->n && !(q.limit && at == q.limit); i++)
        if (answers(&w->all[i], &asked)) {
            assert_true(at < found.len);
            assert_string_equal(kl_object_name(found.v[at]), w->all[i].name);
            assert_state(found.v[at], w->all[i].uid, w->all[i].rv);
            at++;
        }
    assert_int_equal(found.len, at);
    w->queries++;
    w->answers += at;
    kl_objects_fini(&found);
    kl_selector_free((kl_selector *)q.labels);
}

static void look_up(world *w)
{
    const thing *t = &w->all[draw(w, w->n)];
    const kl_value *o = kl_indexer_lookup(w->ix, t->key);
    assert_int_equal(o != NULL, t->there);
    if (o)
        assert_state(o, t->uid, t->rv);
    kl_value_unref(o);
    assert_int_equal(kl_indexer_count(w->ix), w->there);
}

/* --- the whole ---------------------------------------------------------------------------- */

static void drive(uint64_t seed, size_t keys, size_t ops)
{
    size_t nodes_before, nodes, bytes;
    kl_value_memory(&nodes_before, &bytes);
    world w = {.r = {seed}, .ix = kl_indexer_new()};
    name_things(&w, keys);
    /* a query asks the model of every key */
    size_t per_query = keys / 20 + 1, per_list = 40 * keys + 200;
    for (size_t k = 0; k < ops; k++) {
        bool shrinking = k / (4 * keys) % 3 == 2;
        size_t dice = draw(&w, 8);
        if (!draw(&w, per_list))
            list_all(&w);
        else if (!draw(&w, per_list / 4))
            change_indexes(&w);
        else if (!draw(&w, per_query))
            ask(&w);
        else if (dice < (shrinking ? 2 : 5))
            put(&w);
        else if (dice < 6)
            take(&w);
        else
            look_up(&w);
    }
    assert_true(w.queries > 0 && w.answers > 0);
    kl_indexer_free(w.ix);
    kl_free(w.all);
    kl_value_memory(&nodes, &bytes);
    assert_int_equal(nodes, nodes_before);
}

static size_t ops(void)
{
    const char *s = getenv("KL_MODEL_OPS");
    return s ? strtoull(s, NULL, 10) : (uint64_t)OPS;
}

static void few_objects_answer_as_the_model_does(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++)
        drive(seed, 20 + seed * 13, ops() / 20);
}

static void thousands_of_objects_answer_as_the_model_does(void **state)
{
    (void)state;
    drive(101, 700, ops() / 4);
    drive(102, 6000, ops() / 4);
}

static void an_empty_term_is_rejected(void **state)
{
    (void)state;
    kl_indexer *ix = kl_indexer_new();
    kl_err err = KL_ERR_INIT;
    kl_objects none;
    const char *two[] = {"a", "b", NULL};
    assert_ok(kl_indexer_add_path(ix, "node", "spec.node", &err), &err);
    kl_index_term t = {"node", KL_SEL_EQ, two};
    assert_fails(kl_indexer_list(ix, &(kl_query){.terms = &t, .n_terms = 1}, &none, &err), KL_EINVAL, &err,
        "index \"node\": \"=\" with 2 values");
    t = (kl_index_term){"node", KL_SEL_GT, two + 1};
    assert_fails(
        kl_indexer_list(ix, &(kl_query){.terms = &t, .n_terms = 1}, &none, &err), KL_EINVAL, &err, "\"gt\"");
    t = (kl_index_term){"nodes", KL_SEL_EXISTS, NULL};
    assert_fails(kl_indexer_list(ix, &(kl_query){.terms = &t, .n_terms = 1}, &none, &err), KL_ENOTFOUND, &err,
        "there are: namespace, node");
    kl_indexer_free(ix);
}

KL_TESTS(cmocka_unit_test(few_objects_answer_as_the_model_does),
    cmocka_unit_test(thousands_of_objects_answer_as_the_model_does),
    cmocka_unit_test(an_empty_term_is_rejected))

/* not in tsan: it starts no thread */
