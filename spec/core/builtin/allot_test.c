/* allot_test.c - the addresses and node ports of Services: the next free one, and after the last the first
 * again. */
#include "core/server/value_help.h"

#include <string.h>

#include "builtin/service.h"

typedef struct world {
    const char *address; /* that is taken */
    int64_t ports[4];
    uint64_t next;
} world;

static bool has_address(void *arg, const char *ip)
{
    const char *taken = ((world *)arg)->address;
    return taken && !strcmp(taken, ip);
}

static void mark_ports(void *arg, bool taken[KL_NODE_PORTS])
{
    const world *w = arg;
    for (size_t i = 0; i < sizeof w->ports / sizeof *w->ports; i++)
        kl__mark_port(taken, w->ports[i]);
}

/* The spec of the Service that becomes of the text; NULL: it was refused. */
static const kl_value *allotted(world *w, const char *text)
{
    kl__taken t = {.arg = w, .address = has_address, .ports = mark_ports, .next = &w->next};
    kl__causes causes = {0};
    const kl_value *o = v(text);
    kl__service_allot(&t, NULL, &o, &causes);
    const kl_value *spec = causes.len ? NULL : kl_value_ref(kl_value_get(o, "spec"));
    kl__causes_fini(&causes);
    kl_value_unref(o);
    return spec;
}

#define PORT "{'port':80,'protocol':'TCP'}"
#define NODE_PORT(n) "{'port':81,'protocol':'TCP','nodePort':" #n "}"
#define SERVICE(ports)                                                                                       \
    "{'metadata':{'name':'a'},'spec':{'type':'NodePort','clusterIP':'10.96.9.9','ports':[" ports "]}}"

static void assert_ports(world *w, const char *text, int64_t first, int64_t second)
{
    const kl_value *spec = allotted(w, text), *ports = kl_value_get(spec, "ports");
    assert_non_null(spec);
    assert_int_equal(kl_value_int_at(kl_value_item(ports, 0), 0, "nodePort", NULL), first);
    if (second)
        assert_int_equal(kl_value_int_at(kl_value_item(ports, 1), 0, "nodePort", NULL), second);
    kl_value_unref(spec);
}

static void a_port_is_the_next_free_one_of_the_range(void **state)
{
    (void)state;
    const uint64_t all = KL_NODE_PORT_MAX - KL_NODE_PORT_MIN + 1;
    world w = {.ports = {30002, 30003, 32767}};
    assert_ports(&w, SERVICE(PORT), 30001, 0);
    assert_ports(&w, SERVICE(PORT), 30004, 0);
    w.next = all - 3; /* the last is taken, and behind it comes the first */
    assert_ports(&w, SERVICE(PORT), 32766, 0);
    assert_ports(&w, SERVICE(PORT), 30000, 0);
    w.next = all - 2;
    w.ports[2] = 0;
    assert_ports(&w, SERVICE(PORT), 32767, 0);
    assert_ports(&w, SERVICE(PORT), 30000, 0);
}

static void ports_of_one_service_differ(void **state)
{
    (void)state;
    world w = {0};
    assert_ports(&w, SERVICE(PORT "," NODE_PORT(30001)), 30002, 30001);
}

static void a_port_that_is_asked_for_lies_in_the_range_and_is_free(void **state)
{
    (void)state;
    world w = {.ports = {30001}};
    assert_null(allotted(&w, SERVICE(NODE_PORT(29999))));
    assert_ports(&w, SERVICE(NODE_PORT(30000)), 30000, 0);
    assert_null(allotted(&w, SERVICE(NODE_PORT(30001))));
    assert_ports(&w, SERVICE(NODE_PORT(32767)), 32767, 0);
    assert_null(allotted(&w, SERVICE(NODE_PORT(32768))));
}

static void an_address_is_the_next_free_one_of_the_range(void **state)
{
    (void)state;
    static const struct {
        uint64_t next;
        const char *taken, *address;
    } rows[] = {
        {0, NULL, "10.96.0.2"},
        {0, "10.96.0.2", "10.96.0.3"},
        {248, NULL, "10.96.0.250"},
        {249, NULL, "10.96.1.1"},
        {256 * 250 - 1, NULL, "10.96.0.1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        world w = {.address = rows[i].taken, .next = rows[i].next};
        const kl_value *spec = allotted(&w, "{'metadata':{'name':'a'},'spec':{'ports':[" PORT "]}}");
        assert_non_null(spec);
        assert_string_equal(kl_value_str_at(spec, "clusterIP", NULL), rows[i].address);
        kl_value_unref(spec);
    }
}

KL_TESTS(cmocka_unit_test(a_port_is_the_next_free_one_of_the_range),
    cmocka_unit_test(ports_of_one_service_differ),
    cmocka_unit_test(a_port_that_is_asked_for_lies_in_the_range_and_is_free),
    cmocka_unit_test(an_address_is_the_next_free_one_of_the_range))
/* not in tsan: it starts no thread */
