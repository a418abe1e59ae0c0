/* wiring_test.c - from events of any kind to keys of the controller, and reads of declared kinds. */
#include "core/controller/wiring_rig.h"

#define OWNED_BY(kind, name, controller)                                                                     \
    "\"ownerReferences\":[{\"apiVersion\":\"example.com/v1\",\"kind\":\"" kind "\",\"name\":\"" name         \
    "\",\"uid\":\"x\",\"controller\":" controller "}]"

static void it_feeds_nothing_before_it_is_active_and_everything_then(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.w = wire(&r, 1);
    fake_item(&r.kinds[APP].f, thing("a", 1, "", ""));
    fake_item(&r.kinds[APP].f, thing("b", 2, "", ""));
    bool parked;
    char *why = kl_wiring_why(r.w, &parked);
    assert_string_equal(why, "waiting for example.com/v1/App");
    assert_false(parked);
    kl_free(why);
    sync_all(&r);
    assert_true(kl_wiring_advance(r.w));
    assert_null(kl_wiring_why(r.w, &parked));
    fake_event(&r.kinds[APP].f, "ADDED", thing("c", 101, "", ""));
    assert_taken(&r, "");
    kl_wiring_activate(r.w);
    assert_taken(&r, "ns/a ns/b ns/c");
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("b", 102, "", ""));
    fake_event(&r.kinds[APP].f, "DELETED", thing("a", 103, "", ""));
    assert_taken(&r, "ns/b ns/a");
    rig_fini(&r);
}

static void changes_go_before_listed_and_resynced_objects(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.watches = (kl_watch_spec[]){{.kind = "v1/Secret", .how = KL_MAP_FN, .fn = 1}};
    r.spec.n_watches = 1;
    r.w = wire(&r, 1);
    fake_item(&r.kinds[APP].f, thing("a", 1, "", ""));
    fake_item(&r.kinds[APP].f, thing("b", 2, "", ""));
    fake_item(&r.kinds[APP].f, thing("c", 3, "", ""));
    sync_all(&r);
    assert_true(kl_wiring_advance(r.w));
    kl_wiring_activate(r.w);
    assert_int_equal(kl_workqueue_priority(r.queue, "ns/a"), KL_PRIORITY_LOW);
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("c", 102, "", ""));
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("s", 103, "", "\"app\":\"ns/b\""));
    assert_taken(&r, "ns/c ns/b ns/a");
    kl_wiring_enqueue_all(r.w, KL_WHY_RESYNC); /* a resync */
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("b", 104, "", ""));
    assert_taken(&r, "ns/b ns/a ns/c");
    rig_fini(&r);
}

static void kept_fields_reach_the_source_and_larger_caches_are_shared(void **state)
{
    (void)state;
    static const char *const path[] = {"spec.from"};
    static const char *const managed[] = {"metadata", "managedFields"}, *const from[] = {"spec", "from"},
                             *const to[] = {"spec", "to"};
    rig r;
    rig_init(&r);
    kl_projection *keep = NULL;
    assert_int_equal(kl_projection_new(path, 1, &keep, NULL), KL_OK);
    r.spec.reads = (char *[]){"v1/Secret", NULL};
    r.spec.fields = &(kl_fields_spec){"example.com/v1/App", (char *[]){"spec.from", NULL}, keep};
    r.spec.n_fields = 1;
    r.spec.managed_fields = KL_MANAGED_DROPPED;
    r.w = wire(&r, 1);
    sync_all(&r);
    assert_true(kl_projection_keeps(r.kinds[APP].keep, from, 2));
    assert_false(kl_projection_keeps(r.kinds[APP].keep, to, 2));
    assert_true(kl_projection_keeps(r.kinds[SECRET].keep, to, 2));
    assert_false(kl_projection_keeps(r.kinds[SECRET].keep, managed, 2));
    /* Whoever wants the same or less shares it. */
    kl_cache *same = kl_caches_acquire(
        r.caches, "example.com/v1/App", &(kl_want){.cut = true, .keep = keep, .what = "spec.from"});
    kl_cache *less = kl_caches_acquire(
        r.caches, "v1/Secret", &(kl_want){.cut = true, .keep = keep, .what = "spec.from"});
    pump(&r);
    assert_int_equal(r.kinds[APP].sources, 1);
    assert_int_equal(r.kinds[SECRET].sources, 1);
    kl_cache_release(less);
    kl_cache_release(same);
    kl_projection_unref(keep);
    rig_fini(&r);
}

static void a_kind_that_is_missing_parks_it_until_it_appears(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.reads = (char *[]){"v1/Secret", NULL};
    r.kinds[SECRET].missing = true;
    r.w = wire(&r, 1);
    sync_all(&r);
    assert_false(kl_wiring_advance(r.w));
    bool parked;
    char *why = kl_wiring_why(r.w, &parked);
    assert_true(parked);
    assert_string_equal(why, "v1/Secret: the server has no kind v1/Secret");
    kl_free(why);
    r.kinds[SECRET].missing = false;
    kl_clock_advance(r.clock, KL_SECONDS(1));
    pump(&r);
    assert_false(kl_wiring_advance(r.w));
    pump(&r);
    sync_all(&r);
    assert_true(kl_wiring_advance(r.w));
    assert_null(kl_wiring_why(r.w, &parked));
    assert_non_null(strstr(kl_buf_str(&r.log), "a kind is missing"));
    rig_fini(&r);
}

static void a_refused_list_parks_it_with_the_reason(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.reads = (char *[]){"v1/Secret", NULL};
    r.w = wire(&r, 1);
    fake_done(&r.kinds[SECRET].f, KL_EFORBIDDEN, 403, NULL, "secrets is forbidden: grant list on secrets");
    sync_all(&r);
    bool parked;
    char *why = kl_wiring_why(r.w, &parked);
    assert_true(parked);
    assert_string_equal(why, "v1/Secret: secrets is forbidden: grant list on secrets");
    kl_free(why);
    rig_fini(&r);
}

/* --- predicates --------------------------------------------------------------------------- */

static void words_of_when_look_at_their_part_only(void **state)
{
    (void)state;
    static const struct {
        char *when[3];
        const char *before, *after, *rest_before, *rest_after, *keys;
    } cases[] = {
        {{"generation"}, "\"generation\":1", "\"generation\":1,\"labels\":{\"a\":\"b\"}", "", "", ""},
        {{"generation"}, "\"generation\":1", "\"generation\":2", "", "", "ns/a"},
        /* without generations every change counts */
        {{"generation"}, "", "", "", "\"data\":{\"a\":\"b\"}", "ns/a"},
        {{"labels"}, "\"labels\":{\"a\":\"b\"}", "\"labels\":{\"a\":\"b\"}", "", "\"spec\":{\"x\":1}", ""},
        {{"labels"}, "\"labels\":{\"a\":\"b\"}", "\"labels\":{\"a\":\"c\"}", "", "", "ns/a"},
        {{"labels"}, "\"labels\":{\"a\":\"b\"}", "", "", "", "ns/a"},
        {{"annotations"}, "", "\"annotations\":{\"a\":\"b\"}", "", "", "ns/a"},
        {{"annotations"}, "", "\"labels\":{\"a\":\"b\"}", "", "", ""},
        {{"resourceVersion"}, "", "", "", "", "ns/a"},
        {{"spec.x"}, "", "", "\"spec\":{\"x\":1,\"y\":1}", "\"spec\":{\"x\":1,\"y\":2}", ""},
        {{"spec.x"}, "", "", "\"spec\":{\"x\":1}", "\"spec\":{\"x\":2}", "ns/a"},
        {{"spec.x"}, "", "", "\"spec\":{\"x\":1}", "", "ns/a"},
        {{"labels", "spec.x"}, "", "", "\"spec\":{\"x\":1}", "\"spec\":{\"x\":2}", "ns/a"},
        {{"labels", "spec.x"}, "", "\"finalizers\":[\"f\"]", "\"spec\":{\"x\":1}", "\"spec\":{\"x\":1}", ""},
        /* a deletion begins */
        {{"labels"}, "\"finalizers\":[\"f\"]",
            "\"finalizers\":[\"f\"],\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"", "", "", "ns/a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rig r;
        rig_init(&r);
        r.spec.when.words = (char **)(uintptr_t)cases[i].when;
        rig_start(&r);
        fake_event(&r.kinds[APP].f, "ADDED", thing("a", 101, cases[i].before, cases[i].rest_before));
        assert_taken(&r, "ns/a");
        fake_event(&r.kinds[APP].f, "MODIFIED", thing("a", 102, cases[i].after, cases[i].rest_after));
        if (strcmp(taken(&r), cases[i].keys))
            fail_msg("case %zu, when = %s: wanted \"%s\"", i, cases[i].when[0], cases[i].keys);
        fake_event(&r.kinds[APP].f, "DELETED", thing("a", 103, cases[i].after, cases[i].rest_after));
        assert_taken(&r, "ns/a"); /* deletes pass whatever `when` says */
        rig_fini(&r);
    }
}

static void when_filters_the_resource_and_not_watched_kinds(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.when.words = (char *[]){"labels", NULL};
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_SAME_NAME};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("a", 101, "", ""));
    fake_event(&r.kinds[SECRET].f, "MODIFIED", thing("a", 102, "", ""));
    assert_taken(&r, "ns/a");
    rig_fini(&r);
}

static void a_predicate_function_judges_changes_on_the_mapper(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.when.fn = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[APP].f;
    fake_event(f, "ADDED", thing("a", 101, "", "\"spec\":{\"from\":\"x\"}"));
    assert_taken(&r, "ns/a");
    fake_event(f, "MODIFIED", thing("a", 102, "", "\"spec\":{\"from\":\"x\",\"n\":1}"));
    assert_taken(&r, "");
    assert_int_equal(r.asked, 1);
    fake_event(f, "MODIFIED", thing("a", 103, "", "\"spec\":{\"from\":\"y\"}"));
    assert_taken(&r, "ns/a");
    fake_event(f, "DELETED", thing("a", 104, "", ""));
    assert_taken(&r, "ns/a");
    assert_int_equal(r.asked, 2);
    rig_fini(&r);
}

static void events_that_wait_for_the_mapper_join_and_no_change_gets_lost(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.when.fn = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[APP].f;
    fake_event(f, "ADDED", thing("a", 101, "", "\"spec\":{\"from\":\"x\"}"));
    taken(&r);
    fake_event(f, "MODIFIED", thing("a", 102, "", "\"spec\":{\"from\":\"y\"}"));
    fake_event(f, "MODIFIED", thing("a", 103, "", "\"spec\":{\"from\":\"y\",\"n\":1}"));
    fake_event(f, "MODIFIED", thing("a", 104, "", "\"spec\":{\"from\":\"y\",\"n\":2}"));
    assert_taken(&r, "ns/a"); /* x to y, whatever came between */
    assert_int_equal(r.asked, 1);
    rig_fini(&r);
}

static void an_event_passes_a_failing_predicate(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.when.fn = 1;
    rig_start(&r);
    r.fn_fails = true;
    fake_event(&r.kinds[APP].f, "ADDED", thing("a", 101, "", ""));
    taken(&r);
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("a", 102, "", ""));
    assert_taken(&r, "ns/a");
    assert_non_null(strstr(kl_buf_str(&r.log), "x.lua:5: no field 'spec'"));
    rig_fini(&r);
}

static void changes_pass_while_the_script_cannot_be_opened_to_judge_them(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.when.fn = 1;
    rig_start(&r);
    r.open_fails = true;
    fake_source *f = &r.kinds[APP].f;
    fake_event(f, "ADDED", thing("a", 101, "", "\"spec\":{\"from\":\"x\"}"));
    taken(&r);
    fake_event(f, "MODIFIED", thing("a", 102, "", "\"spec\":{\"from\":\"x\",\"n\":1}"));
    assert_taken(&r, "ns/a");
    assert_non_null(strstr(kl_buf_str(&r.log), "not enough memory"));
    r.open_fails = false;
    fake_event(f, "MODIFIED", thing("a", 103, "", "\"spec\":{\"from\":\"x\",\"n\":2}"));
    assert_taken(&r, "");
    assert_int_equal(r.asked, 1);
    rig_fini(&r);
}

/* --- mappings ----------------------------------------------------------------------------- */

static void an_owned_object_wakes_its_controller_only(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.owns = &(kl_owned_spec){.kind = "v1/Secret"};
    r.spec.n_owns = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[SECRET].f;
    fake_event(f, "ADDED", thing("s", 101, OWNED_BY("App", "a", "true"), ""));
    assert_taken(&r, "ns/a");
    fake_event(f, "ADDED", thing("t", 102, OWNED_BY("App", "a", "false"), ""));
    fake_event(f, "ADDED", thing("u", 103, OWNED_BY("Other", "a", "true"), ""));
    fake_event(f, "ADDED", thing("v", 104, "", ""));
    assert_taken(&r, "");
    fake_event(f, "DELETED", thing("s", 105, OWNED_BY("App", "a", "true"), ""));
    assert_taken(&r, "ns/a");
    rig_fini(&r);
}

static void a_new_owner_reference_wakes_the_old_and_the_new_owner(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.owns = &(kl_owned_spec){.kind = "v1/Secret"};
    r.spec.n_owns = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[SECRET].f;
    fake_event(f, "ADDED", thing("s", 101, OWNED_BY("App", "a", "true"), ""));
    taken(&r);
    fake_event(f, "MODIFIED", thing("s", 102, OWNED_BY("App", "b", "true"), ""));
    assert_taken(&r, "ns/a ns/b");
    fake_event(f, "MODIFIED", thing("s", 103, "", ""));
    assert_taken(&r, "ns/b");
    rig_fini(&r);
}

static void a_watch_by_owner_counts_every_owner_reference_of_any_version(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_OWNER};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_event(&r.kinds[SECRET].f, "ADDED",
        thing("s", 101,
            "\"ownerReferences\":[{\"apiVersion\":\"example.com/"
            "v1beta1\",\"kind\":\"App\",\"name\":\"a\",\"uid\":\"x\"},"
            "{\"apiVersion\":\"example.com/"
            "v1\",\"kind\":\"App\",\"name\":\"b\",\"uid\":\"y\"},{\"apiVersion\":\"other.io/"
            "v1\",\"kind\":\"App\",\"name\":\"c\",\"uid\":\"z\"}]",
            ""));
    assert_taken(&r, "ns/a ns/b");
    rig_fini(&r);
}

static void the_same_name_means_the_key_of_ours_with_it(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.resource = "v1/Node";
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_SAME_NAME};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("n1", 101, "", ""));
    assert_taken(&r, "n1"); /* a node has no namespace */
    fake_event(&r.kinds[SECRET].f, "DELETED", thing("n1", 102, "", ""));
    assert_taken(&r, "n1");
    rig_fini(&r);
}

static void via_looks_the_key_up_in_an_index_of_ours(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.indexes = &(kl_index_spec){.kind = "example.com/v1/App", .name = "src", .path = "spec.secret"};
    r.spec.n_indexes = 1;
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_VIA, .via = "src"};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_event(&r.kinds[APP].f, "ADDED", thing("a", 101, "", "\"spec\":{\"secret\":\"ns/s\"}"));
    fake_event(&r.kinds[APP].f, "ADDED", thing("b", 102, "", "\"spec\":{\"secret\":\"ns/s\"}"));
    fake_event(&r.kinds[APP].f, "ADDED", thing("c", 103, "", "\"spec\":{\"secret\":\"ns/t\"}"));
    taken(&r);
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("s", 104, "", ""));
    assert_taken(&r, "ns/a ns/b");
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("a", 105, "", "\"spec\":{\"secret\":\"ns/t\"}"));
    taken(&r);
    fake_event(&r.kinds[SECRET].f, "DELETED", thing("s", 106, "", ""));
    assert_taken(&r, "ns/b");
    rig_fini(&r);
}

static void via_works_over_a_function_index_too(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.indexes = &(kl_index_spec){.kind = "example.com/v1/App", .name = "src", .fn = 1};
    r.spec.n_indexes = 1;
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_VIA, .via = "src"};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_event(&r.kinds[APP].f, "ADDED", thing("a", 101, "", "\"spec\":{\"from\":\"s\"}"));
    taken(&r);
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("s", 102, "", ""));
    assert_taken(&r, "ns/a");
    assert_int_equal(r.opened, 1); /* one state for all functions of a generation */
    rig_fini(&r);
}

static void a_mapping_function_runs_on_the_mapper_with_old_and_new(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_FN, .fn = 1};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_source *f = &r.kinds[SECRET].f;
    fake_event(f, "ADDED", thing("s", 101, "", "\"app\":\"ns/a\""));
    assert_int_equal(r.mapped, 0); /* not on the watch thread */
    assert_taken(&r, "ns/a");
    fake_event(f, "MODIFIED", thing("s", 102, "", "\"app\":\"ns/b\""));
    assert_taken(&r, "ns/a ns/b");
    fake_event(f, "DELETED", thing("s", 103, "", "\"app\":\"ns/b\""));
    assert_taken(&r, "ns/b");
    r.fn_fails = true;
    fake_event(f, "ADDED", thing("s", 104, "", "\"app\":\"ns/b\""));
    assert_taken(&r, "");
    assert_non_null(strstr(kl_buf_str(&r.log), "a mapping function failed"));
    assert_non_null(strstr(kl_buf_str(&r.log), "key=ns/s"));
    rig_fini(&r);
}

/* --- reading ------------------------------------------------------------------------------ */

static size_t listed(rig *r, const char *kind, const kl_read_query *q, char *names, size_t room)
{
    kl_objects o = {0};
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_reader_list(kl_wiring_logic(r->w)->reader, kind, q, &o, &err), &err);
    names[0] = 0;
    for (size_t i = 0; i < o.len; i++) {
        size_t n = strlen(names);
        snprintf(names + n, room - n, "%s%s", i ? " " : "", kl_object_name(o.v[i]));
    }
    size_t len = o.len;
    kl_objects_fini(&o);
    return len;
}

#define assert_listed(r, kind, text, ...)                                                                    \
    do {                                                                                                     \
        char names_[128];                                                                                    \
        listed(r, kind, &(kl_read_query){__VA_ARGS__}, names_, sizeof names_);                               \
        assert_string_equal(names_, text);                                                                   \
    } while (0)

static void it_reads_declared_kinds_by_key_index_and_selectors(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    kl_index_spec indexes[] = {{.kind = "v1/Secret", .name = "zone", .path = "data.zone"},
        {.kind = "example.com/v1/App", .name = "from", .fn = 1}};
    r.spec.reads = (char *[]){"v1/Secret", "v1/Node", NULL};
    r.spec.indexes = indexes;
    r.spec.n_indexes = 2;
    rig_start(&r);
    fake_source *f = &r.kinds[SECRET].f;
    fake_event(f, "ADDED", thing("s", 101, "\"labels\":{\"app\":\"x\"}", "\"data\":{\"zone\":\"eu\"}"));
    fake_event(f, "ADDED", thing("t", 102, "\"labels\":{\"app\":\"y\"}", "\"data\":{\"zone\":\"eu\"}"));
    fake_event(f, "ADDED", thing("u", 103, "", "\"data\":{\"zone\":\"us\"}"));
    fake_event(&r.kinds[NODE].f, "ADDED",
        "{\"metadata\":{\"name\":\"n1\",\"uid\":\"u\",\"resourceVersion\":\"1\"}}");
    fake_event(&r.kinds[APP].f, "ADDED", thing("a", 104, "", "\"spec\":{\"from\":\"s\"}"));
    pump(&r);
    assert_listed(&r, "v1/Secret", "s t u", NULL);
    assert_listed(&r, "v1/Secret", "s t", .index = "zone", .value = "eu");
    assert_listed(&r, "v1/Secret", "t", .index = "zone", .value = "eu", .labels = "app in (y, z)");
    const char *us[] = {"us", NULL};
    kl_index_term terms[] = {{"zone", KL_SEL_EXISTS, NULL}, {"zone", KL_SEL_NE, us}};
    assert_listed(&r, "v1/Secret", "s t", .terms = terms, .n_terms = 2);
    assert_listed(&r, "v1/Secret", "s t u", .terms = terms, .n_terms = 1);
    assert_listed(&r, "v1/Secret", "", .index = "zone", .value = "us", .terms = terms, .n_terms = 2);
    assert_listed(&r, "v1/Secret", "u", .fields = "metadata.name=u");
    assert_listed(&r, "v1/Secret", "s t", .fields = "data.zone=eu");
    assert_listed(&r, "v1/Secret", "u", .fields = "data.zone!=eu");
    /* by the index of that path, and the rest */
    assert_listed(&r, "v1/Secret", "s", .fields = "data.zone=eu,metadata.name!=t");
    assert_listed(&r, "v1/Secret", "", .fields = "data.zone=");
    assert_listed(&r, "v1/Secret", "s t u", .fields = "data.region=");
    assert_listed(&r, "v1/Secret", "", .fields = "data[=x");
    assert_listed(&r, "v1/Secret", "", .ns = "other");
    assert_listed(&r, "v1/Secret", "s", .limit = 1);
    assert_listed(&r, "v1/Node", "n1", .ns = "ignored for what has no namespace");
    assert_listed(&r, "example.com/v1/App", "a", .index = "from", .value = "ns/s");
    kl_reader *rd = kl_wiring_logic(r.w)->reader;
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    assert_ok(kl_reader_get(rd, "v1/Secret", "ns", "s", &v, &err), &err);
    assert_string_equal(kl_object_name(v), "s");
    kl_value_unref(v);
    assert_ok(kl_reader_get(rd, "v1/Node", "whatever", "n1", &v, &err), &err);
    assert_string_equal(kl_object_name(v), "n1");
    kl_value_unref(v);
    assert_ok(kl_reader_get(rd, "v1/Secret", "ns", "absent", &v, &err), &err);
    assert_null(v);
    assert_int_equal(kl_reader_resource(rd, "v1/Node")->namespaced, false);
    assert_null(kl_reader_resource(rd, "v1/Pod"));
    rig_fini(&r);
}

static void an_undeclared_read_explains_how_to_declare_it(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    kl_index_spec index = {.kind = "v1/Secret", .name = "zone", .path = "data.zone"};
    r.spec.reads = (char *[]){"v1/Secret", NULL};
    r.spec.indexes = &index;
    r.spec.n_indexes = 1;
    r.w = wire(&r, 1);
    kl_reader *rd = kl_wiring_logic(r.w)->reader;
    kl_err err = KL_ERR_INIT;
    const kl_value *v = NULL;
    kl_objects o = {0};
    sync_all(&r);
    kl_wiring_advance(r.w);
    assert_fails(kl_reader_get(rd, "v1/Pod", "ns", "p", &v, &err), KL_EINVAL, &err,
        "add it to reads = { \"v1/Pod\" }");
    assert_fails(
        kl_reader_list(rd, "v1/Pod", &(kl_read_query){0}, &o, &err), KL_EINVAL, &err, "add it to reads");
    assert_fails(
        kl_reader_get(rd, "v1/Secret", NULL, "s", &v, &err), KL_EINVAL, &err, "a namespace is needed");
    assert_fails(kl_reader_list(rd, "v1/Secret", &(kl_read_query){.index = "zones", .value = "eu"}, &o, &err),
        KL_EINVAL, &err, "it has: zone): did you mean 'zone'?");
    assert_fails(kl_reader_list(rd, "v1/Secret",
                     &(kl_read_query){.terms = &(kl_index_term){"zones", KL_SEL_EXISTS, NULL}, .n_terms = 1},
                     &o, &err),
        KL_EINVAL, &err, "it has: zone");
    assert_fails(
        kl_reader_list(rd, "v1/Secret", &(kl_read_query){.index = "colour", .value = "eu"}, &o, &err),
        KL_EINVAL, &err, "it has: zone): add it to indexes");
    assert_fails(
        kl_reader_list(rd, "example.com/v1/App", &(kl_read_query){.index = "zone", .value = "eu"}, &o, &err),
        KL_EINVAL, &err, "it has: none");
    assert_fails(kl_reader_list(rd, "v1/Secret", &(kl_read_query){.labels = "a in"}, &o, &err), KL_ESYNTAX,
        &err, "a in");
    assert_fails(
        kl_reader_list(rd, "v1/Secret", &(kl_read_query){.fields = "a"}, &o, &err), KL_ESYNTAX, &err, "a");
    rig_fini(&r);
}

/* --- generations -------------------------------------------------------------------------- */

static void the_next_generation_shares_the_caches_and_takes_the_events_over(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.indexes = &(kl_index_spec){.kind = "example.com/v1/App", .name = "src", .fn = 1};
    r.spec.n_indexes = 1;
    rig_start(&r);
    fake_event(&r.kinds[APP].f, "ADDED", thing("a", 101, "", "\"spec\":{\"from\":\"s\"}"));
    assert_taken(&r, "ns/a");
    kl_wiring *next = wire(&r, 2);
    assert_true(kl_wiring_advance(next));
    assert_int_equal(r.kinds[APP].sources, 1); /* no second list or watch */
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("a", 102, "", "\"spec\":{\"from\":\"t\"}"));
    assert_taken(&r, "ns/a"); /* the old one's, once */
    kl_wiring_ref(r.w);       /* a run of the old generation is under way */
    kl_wiring *old = r.w;
    r.w = next;
    kl_wiring_hand_over(old);
    kl_wiring_activate(next);
    assert_taken(&r, "ns/a");
    fake_event(&r.kinds[APP].f, "MODIFIED", thing("a", 103, "", "\"spec\":{\"from\":\"u\"}"));
    assert_taken(&r, "ns/a");
    kl_objects o = {0};
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_reader_list(kl_wiring_logic(old)->reader, "example.com/v1/App",
                  &(kl_read_query){.index = "src", .value = "ns/u"}, &o, &err),
        &err);
    assert_int_equal(o.len, 1); /* and still reads what it declared */
    kl_objects_fini(&o);
    assert_int_equal(r.opened, 2);
    kl_wiring_unref(old);
    pump(&r);
    assert_int_equal(r.opened, 1);
    rig_fini(&r);
}

static void the_last_user_of_a_kind_stops_its_informer(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.reads = (char *[]){"v1/Secret", NULL};
    rig_start(&r);
    assert_int_equal(r.kinds[SECRET].f.open, FAKE_WATCH);
    r.spec.reads = NULL;
    kl_wiring *next = wire(&r, 2), *old = r.w;
    r.w = next;
    kl_wiring_retire(old);
    pump(&r);
    assert_int_equal(r.kinds[SECRET].f.open, FAKE_NOTHING);
    assert_int_equal(r.kinds[APP].f.open, FAKE_WATCH);
    assert_int_equal(r.kinds[APP].f.lists, 1);
    rig_fini(&r);
}

static void events_pending_at_retirement_wake_nothing(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_FN, .fn = 1};
    r.spec.n_watches = 1;
    rig_start(&r);
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("s", 101, "", "\"app\":\"ns/a\""));
    kl_wiring_retire(r.w);
    r.w = NULL;
    kl_loop_step(r.loop);
    assert_false(r.gone); /* the event that waits still knows the queue */
    assert_taken(&r, "");
    assert_int_equal(r.mapped, 0);
    assert_true(r.gone);
    rig_fini(&r);
}

static void between_two_generations_no_event_is_lost(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.spec.watches = &(kl_watch_spec){.kind = "v1/Secret", .how = KL_MAP_FN, .fn = 1};
    r.spec.n_watches = 1;
    rig_start(&r);
    kl_wiring *next = wire(&r, 2), *old = r.w;
    assert_true(kl_wiring_advance(next));
    /* waits for the mapper */
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("s", 101, "", "\"app\":\"ns/a\""));
    kl_wiring_listen(next);
    r.w = next;
    kl_wiring_hand_over(old);
    pump(&r);
    /* by the old one's function, though nothing was enqueued by the new one */
    assert_taken(&r, "ns/a");
    fake_event(&r.kinds[SECRET].f, "ADDED", thing("t", 102, "", "\"app\":\"ns/b\""));
    pump(&r);
    assert_taken(&r, "ns/b");
    assert_int_equal(r.opened, 1); /* and is gone then */
    rig_fini(&r);
}

static void an_open_batch_ends_when_its_feed_is_dropped(void **state)
{
    (void)state;
    rig r;
    rig_init(&r);
    r.lulls = true;
    rig_start(&r);
    r.held = r.released = 0;
    fake_event(&r.kinds[APP].f, "ADDED", thing("a", 101, "", ""));
    assert_int_equal(r.held, 1);
    assert_int_equal(r.released, 0);
    kl_wiring_retire(r.w);
    r.w = NULL;
    assert_int_equal(r.released, 1);
    assert_taken(&r, "ns/a");
    rig_fini(&r);
}

KL_TESTS(cmocka_unit_test(an_open_batch_ends_when_its_feed_is_dropped),
    cmocka_unit_test(it_feeds_nothing_before_it_is_active_and_everything_then),
    cmocka_unit_test(changes_go_before_listed_and_resynced_objects),
    cmocka_unit_test(kept_fields_reach_the_source_and_larger_caches_are_shared),
    cmocka_unit_test(a_kind_that_is_missing_parks_it_until_it_appears),
    cmocka_unit_test(a_refused_list_parks_it_with_the_reason),
    cmocka_unit_test(words_of_when_look_at_their_part_only),
    cmocka_unit_test(when_filters_the_resource_and_not_watched_kinds),
    cmocka_unit_test(a_predicate_function_judges_changes_on_the_mapper),
    cmocka_unit_test(events_that_wait_for_the_mapper_join_and_no_change_gets_lost),
    cmocka_unit_test(an_event_passes_a_failing_predicate),
    cmocka_unit_test(changes_pass_while_the_script_cannot_be_opened_to_judge_them),
    cmocka_unit_test(an_owned_object_wakes_its_controller_only),
    cmocka_unit_test(a_new_owner_reference_wakes_the_old_and_the_new_owner),
    cmocka_unit_test(a_watch_by_owner_counts_every_owner_reference_of_any_version),
    cmocka_unit_test(the_same_name_means_the_key_of_ours_with_it),
    cmocka_unit_test(via_looks_the_key_up_in_an_index_of_ours),
    cmocka_unit_test(via_works_over_a_function_index_too),
    cmocka_unit_test(a_mapping_function_runs_on_the_mapper_with_old_and_new),
    cmocka_unit_test(it_reads_declared_kinds_by_key_index_and_selectors),
    cmocka_unit_test(an_undeclared_read_explains_how_to_declare_it),
    cmocka_unit_test(the_next_generation_shares_the_caches_and_takes_the_events_over),
    cmocka_unit_test(the_last_user_of_a_kind_stops_its_informer),
    cmocka_unit_test(events_pending_at_retirement_wake_nothing),
    cmocka_unit_test(between_two_generations_no_event_is_lost))

/* not in tsan: it starts no thread */
