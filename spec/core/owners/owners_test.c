/* owners_test.c - the objects to check after a change of an owner or a dependent. */
#include "support/json.h"

#include "base/buf.h"
#include "owners/owners.h"

static kl__owners *owners;
static kl__store *store;
static kl__bucket *things;

static void changed(void *arg, kl__bucket *b, const kl__change *c)
{
    (void)arg;
    kl__owners_change(owners, b, c);
}

static void begin(bool fixtures)
{
    owners = kl__owners_new(fixtures);
    store = kl__store_new(10, changed, NULL);
    things = kl__store_bucket(store, "", "things");
}

static void end(void)
{
    kl__store_free(store);
    kl__owners_free(owners);
}

static void put(const char *name, const char *more)
{
    char *text = kl_sprintf("{'metadata':{'name':'%s','uid':'%s'%s}}", name, name, more);
    kl__store_put(store, things, name, json(text));
    kl_free(text);
}

static void drop(const char *name) { kl_value_unref(kl__store_remove(store, things, name, NULL)); }

/* The keys to check, in their order; then there are none. */
static void assert_checked(const char *want)
{
    kl_buf out = KL_BUF_INIT;
    kl__place_of p;
    while (kl__owners_next(owners, &p)) {
        kl_buf_printf(&out, "%s%s", out.len ? " " : "", p.key);
        kl_free(p.key);
    }
    assert_string_equal(out.len ? kl_buf_str(&out) : "", want);
    kl_buf_fini(&out);
}

#define OWNED ",'ownerReferences':[{'uid':'boss'}]"
#define DELETING ",'deletionTimestamp':'2026-01-01T00:00:00Z'"

static void a_new_dependent_is_checked_but_not_in_fixtures(void **state)
{
    (void)state;
    begin(false);
    put("boss", "");
    assert_checked("");
    put("a", OWNED);
    put("a", OWNED ",'labels':{'x':'1'}");
    assert_checked("a");
    put("a", OWNED);
    assert_checked("");
    end();
    begin(true);
    put("a", OWNED);
    assert_checked("");
    end();
}

static void dependents_are_checked_when_their_owner_is_deleted(void **state)
{
    (void)state;
    begin(true);
    put("boss", "");
    put("a", OWNED);
    put("b", OWNED);
    put("c", "");
    size_t n;
    kl__place_of *v = kl__owners_dependents(owners, "boss", &n);
    assert_int_equal(n, 2);
    assert_string_equal(v[0].key, "a");
    kl__owners_drop(v, n);
    put("b", "");
    v = kl__owners_dependents(owners, "boss", &n);
    assert_int_equal(n, 1);
    kl__owners_drop(v, n);
    drop("boss");
    assert_true(kl__owners_gone(owners, "boss"));
    assert_checked("a");
    assert_false(kl__owners_gone(owners, "boss"));
    end();
}

static void a_waiting_owner_is_checked_when_a_dependent_is_deleted(void **state)
{
    (void)state;
    begin(true);
    put("boss", "");
    put("a", OWNED);
    put("b", OWNED);
    put("boss", DELETING ",'finalizers':['foregroundDeletion']");
    assert_checked("a b boss");
    drop("a");
    assert_checked("boss");
    put("b", OWNED DELETING);
    assert_checked("boss");
    put("b", OWNED DELETING ",'labels':{'x':'1'}");
    assert_checked("");
    put("boss", DELETING);
    drop("b");
    assert_checked("");
    end();
}

static void an_owner_whose_dependents_are_kept_is_checked_once(void **state)
{
    (void)state;
    begin(true);
    put("boss", DELETING ",'finalizers':['orphan']");
    assert_checked("boss");
    put("boss", DELETING ",'finalizers':['orphan','other']");
    assert_checked("");
    put("c", DELETING ",'finalizers':['orphan']");
    kl__owners_forget(owners);
    assert_checked("");
    end();
}

KL_TESTS(cmocka_unit_test(a_new_dependent_is_checked_but_not_in_fixtures),
    cmocka_unit_test(dependents_are_checked_when_their_owner_is_deleted),
    cmocka_unit_test(a_waiting_owner_is_checked_when_a_dependent_is_deleted),
    cmocka_unit_test(an_owner_whose_dependents_are_kept_is_checked_once))

/* not in tsan: it starts no thread */
