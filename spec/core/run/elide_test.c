/* elide_test.c - writes that are skipped: the cache proves that they change nothing, unless the controller
 * knows a later state. */
#include "support/test.h"

#include "base/mem.h"
#include "value/value.h"
#include "run/elide.h"

static const kl_value *value(const char *json)
{
    const kl_value *v = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(json, strlen(json), &v, &err), &err);
    return v;
}

/* The ConfigMap ns/a with this version and data.x. */
static const kl_value *map(int version, const char *x)
{
    char *text = kl_sprintf("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"namespace\":"
                            "\"ns\",\"name\":\"a\",\"resourceVersion\":\"%d\"},\"data\":{\"x\":\"%s\"}}",
        version, x);
    const kl_value *v = value(text);
    kl_free(text);
    return v;
}

static kl_op op_of(kl_verb verb, const kl_value *body)
{
    kl_op op;
    kl_op_init(&op, verb, "v1/ConfigMap");
    op.name = verb == KL_CREATE ? NULL : "a";
    op.body = body;
    op.field_manager = "ctl";
    return op;
}

static bool proves(kl_elide *e, const kl_op *op, int version, const char *x)
{
    const kl_value *o = map(version, x);
    bool yes = kl_elide_proves(e, op, "ns", o);
    kl_value_unref(o);
    return yes;
}

/* The op is sent and answered with ns/a at this version; 0: without a body. */
static void sent(kl_elide *e, const kl_op *op, kl_status st, int version)
{
    const kl_value *answer = version ? map(version, "answer") : NULL;
    kl_elide_end(kl_elide_begin(e, op, "ns"), st, answer);
    kl_value_unref(answer);
}

static void a_patch_that_changes_nothing_is_proved_by_the_cache(void **state)
{
    (void)state;
    kl_elide *e = kl_elide_new(0);
    const kl_value *patch = value("{\"data\":{\"x\":\"1\",\"gone\":null}}");
    kl_op op = op_of(KL_PATCH, patch);
    assert_true(proves(e, &op, 5, "1"));
    assert_false(proves(e, &op, 5, "2"));
    assert_false(kl_elide_proves(e, &op, "ns", NULL));
    kl_op other = op;
    other.dry_run = true;
    assert_false(proves(e, &other, 5, "1"));
    other = op;
    other.always = true;
    assert_false(proves(e, &other, 5, "1"));
    other = op;
    other.patch_type = KL_PATCH_STRATEGIC;
    assert_false(proves(e, &other, 5, "1"));
    other = op;
    other.subresource = "status";
    assert_true(proves(e, &other, 5, "1"));
    other.subresource = "scale";
    assert_false(proves(e, &other, 5, "1"));
    other = op;
    other.name = NULL;
    assert_false(proves(e, &other, 5, "1"));
    other = op;
    other.kind = "configmaps"; /* no kind: nobody knows what it is called elsewhere */
    assert_false(proves(e, &other, 5, "1"));
    kl_value_unref(patch);
    /* The version that a patch names is compared, too, and managedFields may have been dropped from the
     * cache. */
    patch = value("{\"metadata\":{\"resourceVersion\":\"5\"},\"data\":{\"x\":\"1\"}}");
    op.body = patch;
    assert_true(proves(e, &op, 5, "1"));
    assert_false(proves(e, &op, 6, "1"));
    kl_value_unref(patch);
    patch = value("{\"metadata\":{\"managedFields\":null}}");
    op.body = patch;
    assert_false(proves(e, &op, 5, "1"));
    kl_value_unref(patch);
    kl_elide_free(e);
}

static void an_update_is_proved_when_it_is_the_object(void **state)
{
    (void)state;
    kl_elide *e = kl_elide_new(0);
    const kl_value *o = map(5, "1");
    kl_op op = op_of(KL_UPDATE, o);
    assert_true(proves(e, &op, 5, "1"));
    assert_false(proves(e, &op, 6, "1"));
    assert_false(proves(e, &op, 5, "2"));
    op.verb = KL_CREATE;
    assert_false(proves(e, &op, 5, "1"));
    op.verb = KL_DELETE;
    assert_false(proves(e, &op, 5, "1"));
    kl_value_unref(o);
    kl_elide_free(e);
}

static void a_cache_behind_our_own_write_proves_nothing(void **state)
{
    (void)state;
    kl_elide *e = kl_elide_new(0);
    const kl_value *patch = value("{\"data\":{\"x\":\"1\"}}");
    kl_op op = op_of(KL_PATCH, patch), create = op_of(KL_CREATE, patch), delete = op_of(KL_DELETE, NULL);
    kl_elide_write *w = kl_elide_begin(e, &op, "ns");
    assert_false(proves(e, &op, 5, "1")); /* under way */
    const kl_value *answer = map(7, "1");
    kl_elide_end(w, KL_OK, answer);
    kl_value_unref(answer);
    assert_false(proves(e, &op, 6, "1"));
    assert_true(proves(e, &op, 7, "1"));
    assert_true(proves(e, &op, 8, "1"));
    /* Whether it was done or not nobody said: the cache may be of before. */
    sent(e, &op, KL_ETIMEOUT, 0);
    assert_false(proves(e, &op, 100, "1"));
    sent(e, &op, KL_EREJECTED, 0);
    assert_false(proves(e, &op, 100, "1"));
    sent(e, &op, KL_OK, 9);
    assert_false(proves(e, &op, 8, "1"));
    assert_true(proves(e, &op, 9, "1"));
    /* What was refused changed nothing. */
    sent(e, &op, KL_EFORBIDDEN, 0);
    assert_true(proves(e, &op, 9, "1"));
    /* A conflict with the version that was sent: there is a later one. */
    const kl_value *locked = value("{\"metadata\":{\"resourceVersion\":\"9\"},\"data\":{\"x\":\"2\"}}");
    kl_op lock = op_of(KL_PATCH, locked);
    sent(e, &lock, KL_ECONFLICT, 0);
    assert_false(proves(e, &op, 9, "1"));
    assert_true(proves(e, &op, 10, "1"));
    kl_value_unref(locked);
    /* Deleted, and made again. */
    sent(e, &delete, KL_OK, 11);
    assert_false(proves(e, &op, 12, "1"));
    sent(e, &create, KL_OK, 13);
    assert_false(proves(e, &op, 12, "1"));
    assert_true(proves(e, &op, 13, "1"));
    /* Another namespace's object of that name is another. */
    const kl_value *o = map(1, "1");
    assert_true(kl_elide_proves(e, &op, "elsewhere", o));
    kl_value_unref(o);
    kl_value_unref(patch);
    kl_elide_free(e);
}

static void a_cache_behind_a_read_from_the_server_proves_nothing(void **state)
{
    (void)state;
    kl_elide *e = kl_elide_new(0);
    const kl_value *patch = value("{\"data\":{\"x\":\"1\"}}"), *seen = map(20, "2"),
                   *list = value(
                       "{\"kind\":\"ConfigMapList\",\"metadata\":{\"resourceVersion\":\"30\"},\"items\":[]}");
    kl_op op = op_of(KL_PATCH, patch), get = op_of(KL_GET, NULL), all = op_of(KL_LIST, NULL);
    all.name = NULL;
    kl_elide_saw(e, &get, "ns", seen);
    assert_false(proves(e, &op, 19, "1"));
    assert_true(proves(e, &op, 20, "1"));
    kl_elide_saw(e, &all, NULL, list);
    assert_false(proves(e, &op, 29, "1"));
    assert_true(proves(e, &op, 30, "1"));
    const kl_value *o = map(29, "1");
    assert_false(kl_elide_fresh(e, "v1/ConfigMap", "ns", "a", o));
    kl_value_unref(o);
    o = map(30, "1");
    assert_true(kl_elide_fresh(e, "v1/ConfigMap", "ns", "a", o));
    kl_value_unref(o);
    kl_op collection = op_of(KL_DELETE_COLLECTION, NULL);
    collection.name = NULL;
    kl_elide_end(kl_elide_begin(e, &collection, "ns"), KL_OK, NULL);
    assert_false(proves(e, &op, 1000, "1"));
    kl_value_unref(patch);
    kl_value_unref(seen);
    kl_value_unref(list);
    kl_elide_free(e);
}

static void an_apply_is_proved_by_the_version_that_the_same_apply_was_answered_with(void **state)
{
    (void)state;
    kl_elide *e = kl_elide_new(0);
    const kl_value *one = value("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"x\":\"1\"}}"),
                   *two = value("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"x\":\"2\"}}");
    kl_op a = op_of(KL_APPLY, one), b = op_of(KL_APPLY, two);
    assert_false(proves(e, &a, 5, "1")); /* equal is not enough: who owns the field? */
    sent(e, &a, KL_OK, 5);
    assert_true(proves(e, &a, 5, "answer"));
    assert_false(proves(e, &a, 6, "1")); /* somebody changed something */
    assert_false(proves(e, &a, 4, "1"));
    assert_false(proves(e, &b, 5, "2"));
    kl_op other = a;
    other.field_manager = "another";
    assert_false(proves(e, &other, 5, "1"));
    other = a;
    other.force = true;
    assert_false(proves(e, &other, 5, "1"));
    other = a;
    other.subresource = "status";
    assert_false(proves(e, &other, 5, "1"));
    /* The status is applied after it; once both were answered with one version, both are known. */
    sent(e, &other, KL_OK, 6);
    assert_false(proves(e, &a, 6, "1"));
    sent(e, &a, KL_OK, 6);
    assert_true(proves(e, &a, 6, "1"));
    assert_true(proves(e, &other, 6, "1"));
    /* A write of ours between makes them unknown again. */
    kl_op patch = op_of(KL_PATCH, two);
    sent(e, &patch, KL_OK, 7);
    assert_false(proves(e, &a, 6, "1"));
    assert_false(proves(e, &a, 7, "1"));
    sent(e, &a, KL_OK, 8);
    sent(e, &patch, KL_ETIMEOUT, 0);
    assert_false(proves(e, &a, 8, "1"));
    /* A dry run leaves no trace. */
    sent(e, &a, KL_OK, 9);
    other = b;
    other.dry_run = true;
    sent(e, &other, KL_OK, 9);
    assert_false(proves(e, &b, 9, "2"));
    assert_true(proves(e, &a, 9, "1"));
    kl_value_unref(one);
    kl_value_unref(two);
    kl_elide_free(e);
}

static void the_subresources_of_others_make_it_doubtful(void **state)
{
    (void)state;
    kl_elide *e = kl_elide_new(0);
    const kl_value *patch = value("{\"data\":{\"x\":\"1\"}}");
    kl_op op = op_of(KL_PATCH, patch), scale = op;
    scale.subresource = "scale";
    sent(e, &op, KL_OK, 5);
    sent(e, &scale, KL_OK, 6);
    assert_false(proves(e, &op, 6, "1"));
    sent(e, &op, KL_OK, 7);
    assert_true(proves(e, &op, 7, "1"));
    /* Something was written under a name of which we do not know the kind: it might be any. */
    kl_op vague = op;
    vague.kind = "cm";
    sent(e, &vague, KL_OK, 8);
    assert_false(proves(e, &op, 100, "1"));
    kl_value_unref(patch);
    kl_elide_free(e);
}

static void forgotten_writes_prove_nothing(void **state)
{
    (void)state;
    kl_elide *e = kl_elide_new(8);
    const kl_value *patch = value("{\"data\":{\"x\":\"1\"}}"),
                   *applied = value("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"x\":\"1\"}}");
    kl_op op = op_of(KL_PATCH, patch), apply = op_of(KL_APPLY, applied);
    sent(e, &op, KL_OK, 50);
    kl_elide_write *waits = NULL;
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "o%d", i);
        kl_op other = op;
        other.name = name;
        kl_elide_write *w = kl_elide_begin(e, &other, "ns");
        if (i)
            kl_elide_end(w, KL_OK, NULL);
        else
            waits = w; /* an answer that takes long finds its entry */
    }
    kl_elide_end(waits, KL_OK, NULL);
    /* Its own write is forgotten, so that the cache is not believed, whatever it shows; an apply after
     * that is as good as ever. */
    assert_false(proves(e, &op, 49, "1"));
    assert_false(proves(e, &op, 60, "1"));
    sent(e, &op, KL_EFORBIDDEN, 0);
    assert_false(proves(e, &op, 60, "1"));
    sent(e, &apply, KL_OK, 70);
    assert_true(proves(e, &apply, 70, "1"));
    assert_true(proves(e, &op, 70, "1"));
    kl_value_unref(patch);
    kl_value_unref(applied);
    kl_elide_free(e);
}

/* --- a server, others who write, a cache that lags: what is left out could have been made where the cache is --- */

#define MOMENTS 4000

/* of the object: data.x, and whether our apply owns it */
typedef struct moment {
    int x, version;
    bool ours;
} moment;

typedef struct world {
    kl_elide *e;
    moment at[MOMENTS];
    size_t now, cached;  /* moments: the server's present, and the cache's */
    int versions, known; /* the latest version that was told to us */
    bool doubt;          /* a write of ours may have been done or not */
    unsigned seed;
    size_t left_out, sent;
} world;

static unsigned draw(world *w, unsigned n)
{
    w->seed = w->seed * 1664525u + 1013904223u;
    return (w->seed >> 8) % n;
}

/* What becomes of a moment by our apply or patch. */
static moment after(const moment *m, bool apply, int x)
{
    moment next = *m;
    next.x = x;
    if (apply || x != m->x)
        next.ours = apply;
    return next;
}

static bool same_moment(const moment *a, const moment *b) { return a->x == b->x && a->ours == b->ours; }

static void become(world *w, moment next)
{
    if (same_moment(&next, &w->at[w->now]) || w->now + 1 == MOMENTS)
        return;
    next.version = ++w->versions;
    w->at[++w->now] = next;
}

static const kl_value *object_at(const moment *m)
{
    char x[16];
    snprintf(x, sizeof x, "%d", m->x);
    return map(m->version, x);
}

static kl_status outcome(world *w, bool *done)
{
    unsigned luck = draw(w, 10);
    *done = luck != 8 && luck != 9;
    return luck < 7 ? KL_OK : luck == 9 ? KL_EFORBIDDEN : KL_ETIMEOUT;
}

static void we_write(world *w, bool apply, int x)
{
    char text[96];
    snprintf(text, sizeof text, "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"x\":\"%d\"}}", x);
    const kl_value *body = value(text), *cached = object_at(&w->at[w->cached]);
    kl_op op = op_of(apply ? KL_APPLY : KL_PATCH, body);
    if (kl_elide_proves(w->e, &op, "ns", cached)) {
        moment then = after(&w->at[w->cached], apply, x);
        assert_true(same_moment(&then, &w->at[w->cached]));
        assert_true(w->at[w->cached].version >= w->known);
        assert_false(w->doubt);
        w->left_out++;
    } else {
        bool done;
        kl_status st = outcome(w, &done);
        kl_elide_write *under_way = kl_elide_begin(w->e, &op, "ns");
        if (done)
            become(w, after(&w->at[w->now], apply, x));
        const kl_value *answer = st ? NULL : object_at(&w->at[w->now]);
        if (!st)
            w->known = w->at[w->now].version;
        w->doubt = st == KL_ETIMEOUT || (w->doubt && st);
        kl_elide_end(under_way, st, answer);
        kl_value_unref(answer);
        w->sent++;
    }
    kl_value_unref(cached);
    kl_value_unref(body);
}

static void we_read(world *w)
{
    kl_op get = op_of(KL_GET, NULL);
    const kl_value *answer = object_at(&w->at[w->now]);
    kl_elide_saw(w->e, &get, "ns", answer);
    if (w->at[w->now].version > w->known)
        w->known = w->at[w->now].version;
    kl_value_unref(answer);
}

static void skipped_writes_match_a_past_state_of_the_cache(void **state)
{
    (void)state;
    size_t left_out = 0, sent = 0;
    for (unsigned seed = 1; seed <= 40; seed++) {
        world w = {.e = kl_elide_new(0), .seed = seed, .versions = 10};
        w.at[0] = (moment){.version = 10};
        for (int step = 0; step < 2000; step++)
            switch (draw(&w, 8)) {
            case 0: become(&w, (moment){.x = (int)draw(&w, 3)}); break;
            case 1:
                w.versions += (int)draw(&w, 3); /* other objects have versions, too */
                break;
            case 2:
            case 3: w.cached += draw(&w, (unsigned)(w.now - w.cached) + 1); break;
            case 4:
                if (!draw(&w, 4))
                    we_read(&w);
                break;
            default: we_write(&w, draw(&w, 2), (int)draw(&w, 2));
            }
        left_out += w.left_out;
        sent += w.sent;
        kl_elide_free(w.e);
    }
    /* It is worth something. */
    assert_true(left_out > 1000 && sent > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_patch_that_changes_nothing_is_proved_by_the_cache),
        cmocka_unit_test(an_update_is_proved_when_it_is_the_object),
        cmocka_unit_test(a_cache_behind_our_own_write_proves_nothing),
        cmocka_unit_test(a_cache_behind_a_read_from_the_server_proves_nothing),
        cmocka_unit_test(an_apply_is_proved_by_the_version_that_the_same_apply_was_answered_with),
        cmocka_unit_test(the_subresources_of_others_make_it_doubtful),
        cmocka_unit_test(forgotten_writes_prove_nothing),
        cmocka_unit_test(skipped_writes_match_a_past_state_of_the_cache),
    };
    return cmocka_run_group_tests_name("elide", tests, NULL, NULL);
}

/* not in tsan: it starts no thread */
