/* dry_run_test.c - a dry run without the server predicts the server's answer: both get the same write, and
 * must agree. Where only a schema knows a default, the dry run may omit it. */
#include "support/test.h"

#include "http_help.h"
#include "run/simulate.h"

#define MAPS "/api/v1/namespaces/default/configmaps"
#define PODS "/api/v1/namespaces/default/pods"
#define SERVICES "/api/v1/namespaces/default/services"
#define DEPLOYMENTS "/apis/apps/v1/namespaces/default/deployments"
#define WALL KL_SECONDS(1767225600)

static char *status[] = {"status", NULL}, *scaled[] = {"status", "scale", NULL}, *none[] = {NULL};
static const kl_resource maps = {.group = "",
    .version = "v1",
    .kind = "ConfigMap",
    .plural = "configmaps",
    .subresources = none,
    .namespaced = true};
static const kl_resource pods = {.group = "",
    .version = "v1",
    .kind = "Pod",
    .plural = "pods",
    .subresources = status,
    .namespaced = true};
static const kl_resource services = {.group = "",
    .version = "v1",
    .kind = "Service",
    .plural = "services",
    .subresources = status,
    .namespaced = true};
static const kl_resource deployments = {.group = "apps",
    .version = "v1",
    .kind = "Deployment",
    .plural = "deployments",
    .subresources = scaled,
    .namespaced = true};

#define MAP                                                                                                  \
    "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','labels':{'l':'1'}},'data':{'x':'1','y':'" \
    "2'"                                                                                                     \
    "}}"
#define POD                                                                                                  \
    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a','finalizers':['example.com/f','example.com/"     \
    "h']},'spec':{"                                                                                          \
    "'containers':[{'name':'one','image':'i','env':[{'name':'A','value':'1'},{'name':'B','value':'2'}]},"    \
    "{'name':'two','image':'j'}],'tolerations':[{'key':'k','operator':'Exists'}]}}"
#define SERVICE                                                                                              \
    "{'apiVersion':'v1','kind':'Service','metadata':{'name':'a'},'spec':{'selector':{'a':'b'},'ports':["     \
    "{'name':'p','port':80,'protocol':'TCP','targetPort':80},"                                               \
    "{'name':'q','port':81,'protocol':'TCP','targetPort':81}]}}"
#define DEPLOYMENT                                                                                           \
    "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'a'},'spec':{'replicas':1,"              \
    "'selector':{'matchLabels':{'a':'b'}},'template':{'metadata':{'labels':{'a':'b'}},'spec':{"              \
    "'containers':[{'name':'one','image':'i'}]}}}}"

typedef struct kind {
    const kl_resource *resource;
    const char *path, *object;
} kind;
#define RUNNING                                                                                              \
    "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'a'},'spec':{'nodeName':'n','containers':[{'name':'" \
    "one','image':'i'}]}}"
static const kind RUNNING_KIND = {&pods, PODS, RUNNING};
static const kind MAP_KIND = {&maps, MAPS, MAP}, POD_KIND = {&pods, PODS, POD},
                  SERVICE_KIND = {&services, SERVICES, SERVICE},
                  DEPLOYMENT_KIND = {&deployments, DEPLOYMENTS, DEPLOYMENT};

typedef struct ask {
    const kind *of;
    const char *first; /* applied before by the same manager; NULL: nothing */
    kl_verb verb;
    kl_patch_type type;
    const char *subresource; /* NULL: the object itself */
    const char *body;
    bool force;
} ask;

static const char *method_of(const ask *a)
{
    return a->verb == KL_UPDATE ? "PUT" : a->verb == KL_DELETE ? "DELETE" : "PATCH";
}

static const char *type_of(const ask *a)
{
    static const char *const TYPES[] = {[KL_PATCH_MERGE] = "application/merge-patch+json",
        [KL_PATCH_JSON] = "application/json-patch+json",
        [KL_PATCH_STRATEGIC] = "application/strategic-merge-patch+json"};
    return a->verb == KL_APPLY ? "application/apply-patch+yaml"
        : a->verb == KL_PATCH  ? TYPES[a->type]
                               : "application/json";
}

static char *quoted(const char *text)
{
    char *t = text ? kl_strdup(text) : NULL;
    for (char *c = t; c && *c; c++)
        if (*c == '\'')
            *c = '"';
    return t;
}

static const kl_value *request(kl_server *s, const ask *a, int *code)
{
    char *body = quoted(a->body), *text,
         *path = kl_sprintf("%s/a%s%s?fieldManager=spec%s", a->of->path, a->subresource ? "/" : "",
             a->subresource ? a->subresource : "", a->force ? "&force=true" : "");
    *code = http_finish(http_send(s, method_of(a), path, type_of(a), body), &text);
    const kl_value *out = NULL;
    kl_err err = KL_ERR_INIT;
    assert_ok(kl_value_decode(text, strlen(text), &out, &err), &err);
    kl_free(text);
    kl_free(path);
    kl_free(body);
    return out;
}

/* Without what is made up anew each time. A new reference. */
static const kl_value *comparable(const kl_value *o)
{
    static const char *const MADE_UP[] = {"resourceVersion", "managedFields", "uid", "creationTimestamp"};
    const kl_value *rest = kl_value_ref(o);
    for (size_t i = 0; i < sizeof MADE_UP / sizeof *MADE_UP; i++) {
        const kl_value *less = kl_value_with_at(rest, NULL, "metadata", MADE_UP[i], NULL);
        kl_value_unref(rest);
        rest = less;
    }
    return rest;
}

static kl_status foretell(const ask *a, const kl_value *base, kl_simulated *out, kl_err *err)
{
    const kl_value *body = a->body ? v(a->body) : NULL;
    kl_op op;
    kl_op_init(&op, a->verb, NULL);
    op.name = "a";
    op.body = body;
    op.subresource = a->subresource;
    op.patch_type = a->type;
    op.force = a->force;
    op.field_manager = "spec";
    kl_simulation s = {
        .op = &op, .resource = a->of->resource, .ns = "default", .base = base, .wall = WALL, .number = 1};
    kl_status st = kl_simulate(&s, out, err);
    kl_value_unref(body);
    return st;
}

static bool same(const kl_value *a, const kl_value *b)
{
    const kl_value *x = comparable(a), *y = comparable(b);
    bool equal = kl_value_equal(x, y);
    kl_value_unref(x);
    kl_value_unref(y);
    return equal;
}

/* How the dry run ended is how the server did: `st` and what was told, or the failure. */
static bool agree(kl_status st, const kl_simulated *told, const kl_err *err, int code, const kl_value *answer)
{
    const char *reason = kl_value_str(kl_value_get(answer, "reason"));
    if (st)
        return code == err->http_code && reason && err->reason && !strcmp(reason, err->reason);
    return code == told->code && (!told->object || same(told->answer, answer));
}

static void show_object(const char *who, int code, const kl_value *o)
{
    const kl_value *shown = comparable(o);
    char *text = kl_value_to_json(shown);
    print_error("%s %d %s\n", who, code, text);
    kl_free(text);
    kl_value_unref(shown);
}

static void show(
    const ask *a, kl_status st, const kl_simulated *told, const kl_err *err, int code, const kl_value *answer)
{
    print_error("%s %s %s\n", method_of(a), a->of->path, a->body ? a->body : "");
    if (st)
        print_error("foretold %d %s: %s\n", err->http_code, err->reason ? err->reason : "no reason",
            kl_err_message(err));
    else
        show_object("foretold", told->code, told->answer);
    show_object("answered", code, answer);
}

static bool one(const ask *a)
{
    int code;
    kl_server *s;
    kl_simulated told = {0};
    kl_err err = KL_ERR_INIT;
    kl_clock *clock = kl_clock_fake_new(KL_SECONDS(1000), WALL);
    assert_ok(kl_server_start(&(kl_server_options){.listen = "127.0.0.1:0", .clock = clock}, &s, &err), &err);
    const kl_value *base = http(s, "POST", a->of->path, a->of->object, &code);
    assert_int_equal(code, 201);
    if (a->first) {
        kl_value_unref(base);
        base = request(s, &(ask){.of = a->of, .verb = KL_APPLY, .body = a->first, .force = true}, &code);
        assert_int_equal(code, 200);
    }
    kl_status st = foretell(a, base, &told, &err);
    const kl_value *answer = request(s, a, &code);
    bool agreed = agree(st, &told, &err, code, answer);
    if (!agreed)
        show(a, st, &told, &err, code, answer);
    kl_simulated_fini(&told);
    kl_value_unref(answer);
    kl_value_unref(base);
    kl_err_fini(&err);
    kl_server_stop(s);
    kl_clock_fake_free(clock);
    return agreed;
}

static void all(const ask *asks, size_t n)
{
    size_t agreed = 0;
    for (size_t i = 0; i < n; i++)
        agreed += one(&asks[i]);
    assert_int_equal(agreed, n);
}
#define ALL(asks) all(asks, sizeof(asks) / sizeof *(asks))

static void a_merge_patch(void **state)
{
    (void)state;
    static const ask asks[] = {
        {&MAP_KIND, .verb = KL_PATCH, .body = "{'data':{'x':null,'z':'3'},'metadata':{'labels':null}}"},
        {&MAP_KIND, .verb = KL_PATCH, .body = "{'data':{'x':'1'}}"},
        {&MAP_KIND, .verb = KL_PATCH, .body = "{'metadata':{'name':'b'}}"},
        {&MAP_KIND, .verb = KL_PATCH, .body = "{'metadata':{'resourceVersion':'1'}}"},
        {&MAP_KIND, .verb = KL_PATCH, .body = "{'metadata':{'uid':'another'}}"},
        {&POD_KIND, .verb = KL_PATCH, .body = "{'metadata':{'finalizers':null}}"},
        {&DEPLOYMENT_KIND, .verb = KL_PATCH, .body = "{'spec':{'replicas':3},'status':{'replicas':9}}"},
        {&DEPLOYMENT_KIND, .verb = KL_PATCH, .subresource = "status",
            .body = "{'spec':{'replicas':3},'status':{'replicas':9}}"},
        {&DEPLOYMENT_KIND, .verb = KL_PATCH, .subresource = "scale", .body = "{'spec':{'replicas':4}}"},
    };
    ALL(asks);
}

static void a_json_patch(void **state)
{
    (void)state;
    static const ask asks[] = {
        {&MAP_KIND, .verb = KL_PATCH, .type = KL_PATCH_JSON,
            .body =
                "[{'op':'test','path':'/data/x','value':'1'},{'op':'move','from':'/data/x','path':'/data/z'"
                "}]"},
        {&MAP_KIND, .verb = KL_PATCH, .type = KL_PATCH_JSON,
            .body = "[{'op':'test','path':'/data/x','value':'2'}]"},
        {&MAP_KIND, .verb = KL_PATCH, .type = KL_PATCH_JSON, .body = "[{'op':'remove','path':'/data/none'}]"},
        {&POD_KIND, .verb = KL_PATCH, .type = KL_PATCH_JSON,
            .body = "[{'op':'add','path':'/metadata/finalizers/-','value':'example.com/g'}]"},
    };
    ALL(asks);
}

static void a_strategic_merge_patch(void **state)
{
    (void)state;
    static const ask asks[] = {
        {&POD_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body = "{'spec':{'containers':[{'name':'two','image':'k'}]}}"},
        {&DEPLOYMENT_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body = "{'spec':{'template':{'spec':{'containers':[{'name':'one','args':['a','b']}]}}}}"},
        {&POD_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body = "{'metadata':{'finalizers':['example.com/g'],'labels':{'$patch':'replace','n':'1'}}}"},
        {&POD_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body = "{'metadata':{'$deleteFromPrimitiveList/finalizers':['example.com/f']}}"},
        {&SERVICE_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body = "{'spec':{'ports':[{'port':80,'$patch':'delete'}]}}"},
        {&SERVICE_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body = "{'spec':{'ports':[{'port':81,'targetPort':8081}],'$setElementOrder/ports':[{'port':81},"
                    "{'port':80}]}}"},
        {&DEPLOYMENT_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body =
                "{'spec':{'template':{'spec':{'containers':[{'name':'one','env':[{'name':'A','value':'1'}]}"
                "]}}}}"},
        {&DEPLOYMENT_KIND, .verb = KL_PATCH, .type = KL_PATCH_STRATEGIC,
            .body = "{'spec':{'strategy':{'$retainKeys':['type'],'type':'Recreate'}}}"},
    };
    ALL(asks);
}

#define OWN(fields) "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a'},'data':" fields "}"
#define OWN_PORTS(fields)                                                                                    \
    "{'apiVersion':'v1','kind':'Service','metadata':{'name':'a'},'spec':{'ports':[" fields "]}}"

static void an_apply(void **state)
{
    (void)state;
    static const ask asks[] = {
        {&MAP_KIND, .verb = KL_APPLY, .body = OWN("{'z':'3'}")},
        {&MAP_KIND, .verb = KL_APPLY, .body = OWN("{'x':'1'}")},
        {&MAP_KIND, .verb = KL_APPLY, .body = OWN("{'x':'9'}")},
        {&MAP_KIND, .verb = KL_APPLY, .body = OWN("{'x':'9'}"), .force = true},
        {&MAP_KIND, .first = OWN("{'p':'1','q':'2'}"), .verb = KL_APPLY, .body = OWN("{'q':'3'}")},
        {&MAP_KIND, .first = OWN("{'x':'1','q':'2'}"), .verb = KL_APPLY, .body = OWN("{'q':'2'}")},
        {&MAP_KIND, .first = OWN("{'p':'1'}"), .verb = KL_APPLY, .body = OWN("{'p':'1'}")},
        {&SERVICE_KIND, .first = OWN_PORTS("{'name':'r','port':82,'protocol':'TCP','targetPort':82}"),
            .verb = KL_APPLY, .body = OWN_PORTS("{'name':'s','port':83,'protocol':'TCP','targetPort':83}")},
    };
    ALL(asks);
}

static void an_update(void **state)
{
    (void)state;
    static const ask asks[] = {
        {&MAP_KIND, .verb = KL_UPDATE, .body = OWN("{'z':'3'}")},
        {&MAP_KIND, .verb = KL_UPDATE, .body = MAP},
        {&MAP_KIND, .verb = KL_UPDATE,
            .body = "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'a','resourceVersion':'1'}}"},
        {&MAP_KIND, .verb = KL_UPDATE,
            .body = "{'apiVersion':'v1','kind':'ConfigMap','metadata':{'name':'b'}}"},
        {&DEPLOYMENT_KIND, .verb = KL_UPDATE, .subresource = "status",
            .body =
                "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'a'},'spec':{'replicas':9},"
                "'status':{'replicas':2}}"},
    };
    ALL(asks);
}

static void a_deletion(void **state)
{
    (void)state;
    static const ask asks[] = {
        {&MAP_KIND, .verb = KL_DELETE},
        {&POD_KIND, .verb = KL_DELETE},
        {&RUNNING_KIND, .verb = KL_DELETE},
    };
    ALL(asks);
}

KL_TESTS(cmocka_unit_test(a_merge_patch), cmocka_unit_test(a_json_patch),
    cmocka_unit_test(a_strategic_merge_patch), cmocka_unit_test(an_apply), cmocka_unit_test(an_update),
    cmocka_unit_test(a_deletion))
