/* mapper_test.c - the names of kinds that users write, and the messages for unknown and ambiguous ones. */
#include "support/test.h"

#include "base/mem.h"
#include "client/catalog.h"

#define R(plural, kind, more)                                                                                \
    "{\"resource\":\"" plural "\",\"responseKind\":{\"kind\":\"" kind                                        \
    "\"},\"scope\":\"Namespaced\",\"verbs\":[\"get\"]" more "}"
#define SHORT(s) ",\"shortNames\":[\"" s "\"]"
#define V(v, fresh, resources)                                                                               \
    "{\"version\":\"" v "\",\"freshness\":\"" fresh "\",\"resources\":[" resources "]}"
#define G(name, versions) "{\"metadata\":{\"name\":\"" name "\"},\"versions\":[" versions "]}"
#define DOC(items) "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[" items "]}"

static const char core_doc[] = DOC("{\"versions\":[" V("v1", "Current",
    R("pods", "Pod", SHORT("po") ",\"categories\":[\"all\"],\"singularResource\":\"pod\"") "," R(
        "events", "Event", SHORT("ev")) "," R("endpoints", "Endpoints", SHORT("ep"))) "]}");
static const char groups_doc[] = DOC(G("apps",
    V("v1", "Current", R("deployments", "Deployment", SHORT("deploy"))) "," V("v1beta1", "Current",
        R("deployments", "Deployment", SHORT("deploy")) "," R("olds", "Old", ""))) "," G("events.k8s.io",
    V("v1", "Current", R("events", "Event", SHORT("ev")))) "," G("metrics.k8s.io",
    V("v1beta1", "Current", R("nodes", "NodeMetrics", ""))) "," G("slo.koordinator.sh",
    V("v1alpha1", "Current", R("nodemetrics", "NodeMetric", ""))) "," G("a.example.com",
    V("v1", "Current",
        R("widgets", "Widget", SHORT("wi")) "," R("lies", "Lie", SHORT("pods")))) "," G("b.example.com",
    V("v1", "Current", R("widgets", "Widget", SHORT("wi")))) "," G("half.example.com",
    V("v2", "Stale", R("gears", "Gear", "")) "," V(
        "v1", "Current", R("gears", "Gear", ""))) "," G("down.example.com", V("v1", "Stale", "")));

typedef struct book {
    kl__pool pool;
    kl__catalog *c;
} book;

static void read_doc(kl__catalog *c, const char *text)
{
    const kl_value *v = NULL;
    assert_int_equal(kl_value_decode(text, strlen(text), &v, NULL), KL_OK);
    assert_true(kl__is_aggregated(v));
    kl__catalog_aggregated(c, v);
    kl_value_unref(v);
}

static void book_open(book *b)
{
    memset(b, 0, sizeof *b);
    b->c = kl__catalog_new(&b->pool, NULL, 0);
    read_doc(b->c, groups_doc); /* the network's order is not the server's */
    read_doc(b->c, core_doc);
    kl__catalog_done(b->c);
}

static void book_close(book *b)
{
    kl__catalog_free(b->c);
    kl__pool_fini(&b->pool);
}

static void each_form_of_a_name_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *word, *group, *version, *kind;
    } cases[] = {
        {"v1/Pod", "", "v1", "Pod"},
        {"Pod", "", "v1", "Pod"},
        {"pods", "", "v1", "Pod"},
        {"pod", "", "v1", "Pod"},
        {"po", "", "v1", "Pod"},
        {"v1/pods", "", "v1", "Pod"},
        {"pods.v1.", "", "v1", "Pod"},
        {"pods.v1", "", "v1", "Pod"},
        {"apps/v1/Deployment", "apps", "v1", "Deployment"},
        {"apps/Deployment", "apps", "v1", "Deployment"},
        {"Deployment", "apps", "v1", "Deployment"},
        {"deployments", "apps", "v1", "Deployment"},
        {"deployment", "apps", "v1", "Deployment"},
        {"deploy", "apps", "v1", "Deployment"},
        {"deployments.apps", "apps", "v1", "Deployment"},
        {"deploy.apps", "apps", "v1", "Deployment"},
        {"deployments.v1beta1.apps", "apps", "v1beta1", "Deployment"},
        {"apps/v1beta1/deployments", "apps", "v1beta1", "Deployment"},
        {"Deployment.v1.apps", "apps", "v1", "Deployment"},
        {"olds", "apps", "v1beta1", "Old"},
        {"events", "", "v1", "Event"},
        {"ev", "", "v1", "Event"},
        {"events.events.k8s.io", "events.k8s.io", "v1", "Event"},
        {"endpoints", "", "v1", "Endpoints"},
        {"ep", "", "v1", "Endpoints"},
        {"widgets.b.example.com", "b.example.com", "v1", "Widget"},
        {"wi.a.example.com", "a.example.com", "v1", "Widget"},
    };
    book b;
    book_open(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_resource *r = NULL;
        kl_err err = KL_ERR_INIT;
        assert_ok(kl__catalog_find(b.c, cases[i].word, &r, &err), &err);
        if (strcmp(r->group, cases[i].group) || strcmp(r->version, cases[i].version)
            || strcmp(r->kind, cases[i].kind))
            fail_msg("%s is %s/%s/%s", cases[i].word, r->group, r->version, r->kind);
        assert_ptr_equal(kl__catalog_word(b.c, cases[i].word), r);
        assert_ptr_equal(kl__catalog_word(b.c, cases[i].word), r); /* the second time from memory */
    }
    book_close(&b);
}

static void a_name_is_refused_before_it_is_compared_where_it_is_too_long(void **state)
{
    (void)state;
    book b;
    book_open(&b);
    const size_t n = 50 << 20; /* compared with each kind it would take a minute */
    char *word = kl_zalloc(n + 1);
    memset(word, 'k', n);
    memcpy(word, "v1/", 3);
    const kl_resource *r = NULL;
    kl_err err = KL_ERR_INIT;
    assert_int_equal(kl__catalog_find(b.c, word, &r, &err), KL_EINVAL);
    assert_non_null(strstr(kl_err_message(&err), "none has a name of more than 512 bytes"));
    assert_true(strlen(kl_err_message(&err)) < 200);
    assert_null(kl__catalog_word(b.c, word));
    kl_err_fini(&err);
    kl_free(word);
    book_close(&b);
}

static void an_unknown_or_ambiguous_name_is_reported(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        kl_status st;
        const char *said;
    } cases[] = {
        {"Widget", KL_EINVAL,
            "\"Widget\" is in several API groups: name one of \"a.example.com/v1/Widget\" or "
            "\"b.example.com/v1/Widget\""},
        {"widgets", KL_EINVAL, "\"widgets\" is in several API groups"},
        {"wi", KL_EINVAL, "\"wi\" is in several API groups"},
        {"deploymnet", KL_ENOTFOUND, "did you mean \"apps/v1/Deployment\""},
        {"Pods", KL_ENOTFOUND, "did you mean \"v1/Pod\""},
        {"DEPLOY", KL_ENOTFOUND, "did you mean \"apps/v1/Deployment\""},
        {"apps/v2/Deployment", KL_ENOTFOUND,
            "did you mean \"apps/v1/Deployment\" or \"apps/v1beta1/Deployment\"?"},
        {"things.down.example.com", KL_ESERVER,
            "discovery of its API group failed: the server reports its discovery as stale"},
        {"gizmos.nothing.io", KL_ENOTFOUND, "it has no API group \"nothing.io\": is the CRD installed?"},
        {"", KL_EINVAL, "names no kind"},
        {"a/b/c/d", KL_EINVAL, "names no kind"},
        {"apps/v1", KL_EINVAL, "names no kind"},
        {"v1", KL_EINVAL, "names no kind"},
        {"po ds", KL_EINVAL, "names no kind"},
        {"/v1/Pod", KL_EINVAL, "names no kind"},
        {"v1/", KL_EINVAL, "names no kind"},
        {"v1//Pod", KL_EINVAL, "names no kind"},
        {"pods\n", KL_EINVAL, "names no kind"},
    };
    book b;
    book_open(&b);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const kl_resource *r = NULL;
        kl_err err = KL_ERR_INIT;
        kl_status st = kl__catalog_find(b.c, cases[i].word, &r, &err);
        if (st != cases[i].st || !strstr(kl_err_message(&err), cases[i].said))
            fail_msg("\"%s\": %s: %s", cases[i].word, kl_status_name(st), kl_err_message(&err));
        assert_null(r);
        assert_null(kl__catalog_word(b.c, cases[i].word));
        kl_err_fini(&err);
    }
    book_close(&b);
}

static void a_stale_version_comes_after_one_that_works(void **state)
{
    (void)state;
    book b;
    book_open(&b);
    const kl_resource *r = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl__catalog_find(b.c, "gears", &r, &err), &err);
    assert_string_equal(r->version, "v1");
    assert_true(kl__catalog_preferred(b.c, r));
    /* it may work; the server says when not */
    assert_ok(kl__catalog_find(b.c, "half.example.com/v2/Gear", &r, &err), &err);
    assert_false(kl__catalog_preferred(b.c, r));
    assert_true(
        kl_map_has(b.c->failed, "half.example.com|v2") && kl_map_has(b.c->failed, "down.example.com|v1"));
    book_close(&b);
}

static void a_name_proper_beats_a_short_one(void **state)
{
    (void)state;
    book b;
    book_open(&b);
    assert_string_equal(kl__catalog_word(b.c, "pods")->kind, "Pod");
    assert_string_equal(kl__catalog_word(b.c, "pods.a.example.com")->kind, "Lie");
    book_close(&b);
}

static void half_a_catalog_is_carried_when_its_document_did_not_change(void **state)
{
    (void)state;
    book b;
    book_open(&b);
    const kl_resource *pod = kl__catalog_word(b.c, "Pod"), *old = kl__catalog_word(b.c, "Old");
    kl__catalog *c = kl__catalog_new(&b.pool, b.c, 0);
    read_doc(c, DOC(G("apps", V("v1", "Current", R("deployments", "Deployment", SHORT("deploy"))))));
    kl__catalog_carry(c, true);
    kl__catalog_done(c);
    assert_ptr_equal(kl__catalog_word(c, "po"), pod);
    assert_ptr_equal(kl__catalog_word(c, "deploy"), kl__catalog_word(b.c, "deploy"));
    assert_ptr_equal(kl__catalog_word(c, "Old"), old); /* for now: see below */
    assert_int_equal(kl_map_len(c->failed), 0);
    kl__catalog_free(c);
    c = kl__catalog_new(&b.pool, b.c, 0);
    kl__catalog_carry(c, false);
    read_doc(c, core_doc);
    kl__catalog_done(c);
    assert_ptr_equal(kl__catalog_word(c, "Old"), old);
    assert_ptr_equal(kl__catalog_word(c, "Pod"), pod);
    assert_int_equal(kl_map_len(c->failed), 2);
    assert_int_equal(kl_map_len(c->groups), kl_map_len(b.c->groups));
    kl__catalog_free(c);
    book_close(&b);
}

static kl__catalog *next_catalog(book *b, kl__catalog *old, kl_time at, bool carried)
{
    kl__catalog *c = kl__catalog_new(&b->pool, old, at);
    kl__catalog_carry(c, true);
    if (carried)
        kl__catalog_carry(c, false);
    else
        read_doc(c, DOC(G("apps", V("v1", "Current", R("deployments", "Deployment", SHORT("deploy"))))));
    kl__catalog_done(c);
    return c;
}

static void a_missing_kind_is_kept_until_a_second_check_a_second_later(void **state)
{
    (void)state;
    book b;
    book_open(&b);
    kl__catalog *first = next_catalog(&b, b.c, KL_SECONDS(10), false);
    /* the same document: still not there */
    kl__catalog *soon = next_catalog(&b, first, KL_SECONDS(11) - 1, true);
    kl__catalog *late = next_catalog(&b, soon, KL_SECONDS(11), true);
    kl__catalog *back = next_catalog(&b, b.c, KL_SECONDS(11), true);
    assert_non_null(kl__catalog_word(first, "Old"));
    assert_non_null(kl__catalog_word(soon, "Old"));
    assert_null(kl__catalog_word(late, "Old"));
    assert_non_null(kl__catalog_word(late, "Deployment"));
    assert_int_equal(kl_map_len(back->missed), 0);
    b.c->remembered = true; /* by another process, long ago */
    kl__catalog *other = next_catalog(&b, b.c, KL_SECONDS(11), false);
    assert_null(kl__catalog_word(other, "Old"));
    kl__catalog_free(other);
    kl__catalog_free(back);
    kl__catalog_free(late);
    kl__catalog_free(soon);
    kl__catalog_free(first);
    book_close(&b);
}

KL_TESTS(cmocka_unit_test(a_missing_kind_is_kept_until_a_second_check_a_second_later),
    cmocka_unit_test(each_form_of_a_name_is_found),
    cmocka_unit_test(a_name_is_refused_before_it_is_compared_where_it_is_too_long),
    cmocka_unit_test(an_unknown_or_ambiguous_name_is_reported),
    cmocka_unit_test(a_stale_version_comes_after_one_that_works),
    cmocka_unit_test(a_name_proper_beats_a_short_one),
    cmocka_unit_test(half_a_catalog_is_carried_when_its_document_did_not_change))

/* not in tsan: it starts no thread */
