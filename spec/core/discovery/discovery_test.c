/* discovery_test.c - the pages of a server's discovery, legacy and aggregated. */
#include "support/json.h"

#include "discovery/discovery.h"

static kl__types *types;
static kl__kinds *kinds;
static kl__store *store;

static void changed(void *arg, kl__bucket *b, const kl__change *c)
{
    (void)arg;
    (void)b;
    (void)c;
}

static int setup(void **state)
{
    (void)state;
    types = kl__types_builtin();
    kinds = kl__kinds_new(types);
    store = kl__store_new(10, changed, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kl__store_free(store);
    kl__kinds_free(kinds);
    kl__types_free(types);
    return 0;
}

/* The page at a path, NULL where there is none. A new reference. */
static const kl_value *page(const char *path, const char *aggregated, const kl__bucket *services)
{
    kl_discovery d = {kinds, services};
    kl_discovery_answer a = {0};
    return kl_discovery_page(&d, path, aggregated, &a) ? a.page : NULL;
}

/* The item of a list whose member is that text, borrowed; NULL: there is none. */
static const kl_value *with(const kl_value *list, const char *member, const char *text)
{
    for (size_t i = 0; i < kl_value_len(list); i++) {
        const kl_value *item = kl_value_item(list, i);
        const char *s = kl_value_str_at(item, member, NULL);
        if (s && !strcmp(s, text))
            return item;
    }
    return NULL;
}

static void a_group_version_lists_its_resources_and_their_parts(void **state)
{
    (void)state;
    const kl_value *list = page("/apis/apps/v1", NULL, NULL), *all = kl_value_get(list, "resources"),
                   *one = with(all, "name", "deployments"), *scale = with(all, "name", "deployments/scale");
    assert_string_equal(kl_value_str_at(list, "kind", NULL), "APIResourceList");
    assert_string_equal(kl_value_str_at(list, "groupVersion", NULL), "apps/v1");
    assert_string_equal(kl_value_str_at(one, "kind", NULL), "Deployment");
    assert_string_equal(kl_value_str_at(one, "storageVersionHash", NULL), "8aSe+NMegvE=");
    assert_true(kl_value_bool(kl_value_get(one, "namespaced"), false));
    assert_string_equal(kl_value_str(kl_value_item(kl_value_get(one, "shortNames"), 0)), "deploy");
    assert_string_equal(kl_value_str_at(scale, "kind", NULL), "Scale");
    assert_string_equal(kl_value_str_at(scale, "group", NULL), "autoscaling");
    kl_value_unref(list);
    list = page("/api/v1/", NULL, NULL);
    assert_non_null(with(kl_value_get(list, "resources"), "name", "pods"));
    assert_null(
        kl_value_get(with(kl_value_get(list, "resources"), "name", "bindings"), "storageVersionHash"));
    assert_null(with(kl_value_get(list, "resources"), "name", "deployments"));
    kl_value_unref(list);
}

static void groups_have_their_versions_best_first(void **state)
{
    (void)state;
    const kl_value *list = page("/apis", NULL, NULL), *groups = kl_value_get(list, "groups"),
                   *one = with(groups, "name", "autoscaling"), *versions = kl_value_get(one, "versions");
    assert_string_equal(kl_value_str_at(list, "kind", NULL), "APIGroupList");
    assert_null(with(groups, "name", ""));
    assert_string_equal(kl_value_str_at(kl_value_item(versions, 0), "version", NULL), "v2");
    assert_string_equal(kl_value_str_at(one, "preferredVersion", "groupVersion", NULL), "autoscaling/v2");
    kl_value_unref(list);
    list = page("/api", NULL, NULL);
    assert_string_equal(kl_value_str_at(list, "kind", NULL), "APIVersions");
    kl_value_unref(list);
}

static void a_client_that_asks_gets_all_in_one_page(void **state)
{
    (void)state;
    const kl_value *list = page("/apis", "v2", NULL), *items = kl_value_get(list, "items");
    assert_string_equal(kl_value_str_at(list, "kind", NULL), "APIGroupDiscoveryList");
    assert_string_equal(kl_value_str_at(list, "apiVersion", NULL), "apidiscovery.k8s.io/v2");
    assert_true(kl_value_len(items) > 10);
    kl_value_unref(list);
    list = page("/api", "v2", NULL);
    assert_int_equal(kl_value_len(kl_value_get(list, "items")), 1);
    kl_value_unref(list);
}

static void a_group_of_another_server_is_listed_without_resources(void **state)
{
    (void)state;
    kl__bucket *services = kl__store_bucket(store, "apiregistration.k8s.io", "apiservices");
    kl__store_put(store, services, "v1.far.example.com",
        json("{'metadata':{'name':'v1.far.example.com'},'spec':{'group':'far.example.com','version':'v1',"
             "'service':{'name':'s','namespace':'n'}}}"));
    const kl_value *list = page("/apis", NULL, services);
    assert_non_null(with(kl_value_get(list, "groups"), "name", "far.example.com"));
    kl_value_unref(list);
    list = page("/apis", NULL, NULL);
    assert_null(with(kl_value_get(list, "groups"), "name", "far.example.com"));
    kl_value_unref(list);
}

static void other_paths_are_no_pages(void **state)
{
    (void)state;
    assert_null(page("/apis/none", NULL, NULL));
    assert_null(page("/apis/apps/v9", NULL, NULL));
    assert_null(page("/apis/apps/v1/deployments", NULL, NULL));
    assert_null(page("/healthz", NULL, NULL));
    assert_null(page("/version", NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_version_lists_its_resources_and_their_parts),
        cmocka_unit_test(groups_have_their_versions_best_first),
        cmocka_unit_test(a_client_that_asks_gets_all_in_one_page),
        cmocka_unit_test(a_group_of_another_server_is_listed_without_resources),
        cmocka_unit_test(other_paths_are_no_pages),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}

/* not in tsan: it starts no thread */
