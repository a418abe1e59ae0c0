/* builtin_test.c - rejected writes, kind by kind, with their causes. spec/e2e/kinds_*_spec.lua compare many
 * more with a real API server. */
#include "core/server/value_help.h"

#include <stdio.h>
#include <string.h>

#include "builtin/builtin.h"
#include "builtin/defaults.h"
#include "builtin/habits.h"

static kl__types *types;
static kl__kinds *kinds;

static int setup(void **state)
{
    (void)state;
    types = kl__types_builtin();
    kinds = kl__kinds_new(types);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    kl__kinds_free(kinds);
    kl__types_free(types);
    return 0;
}

typedef struct row {
    const char *kind;  /* "group/version/plural", without a group for the core one */
    const char *old;   /* NULL: it is created */
    const char *o;     /* before defaults */
    const char *cause; /* "field: message", the first of them; NULL: it is fine */
} row;

#define POD(spec) "{'metadata':{'name':'a','namespace':'n'},'spec':{" spec "}}"
#define C "'containers':[{'name':'c','image':'i'}]"
#define ENV(from) "'containers':[{'name':'c','image':'i','env':[{'name':'A','valueFrom':{" from "}}]}]"
#define FROM(refs) "'containers':[{'name':'c','image':'i','envFrom':[{" refs "}]}]"
#define NEAR(weight)                                                                                         \
    "'affinity':{'podAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[{'weight':" weight        \
    ",'podAffinityTerm':{'topologyKey':'z'}}]}}"
#define BORNE(seconds)                                                                                       \
    "'tolerations':[{'key':'a','operator':'Exists','effect':'NoExecute','tolerationSeconds':" seconds "}]"
#define SCALER(metric)                                                                                       \
    "{'metadata':{'name':'a'},'spec':{'maxReplicas':2,'scaleTargetRef':{'apiVersion':'apps/"                 \
    "v1','kind':'Deployment','name':'d'},"                                                                   \
    "'metrics':[" metric "]}}"
#define OF_OBJECT(described)                                                                                 \
    "{'type':'Object','object':{'describedObject':{" described "},'metric':{'name':'m'},'target':{'type':"   \
    "'Value','value':'1'}}}"
#define PROBED(probe, more)                                                                                  \
    "'containers':[{'name':'c','image':'i','" probe "':{'tcpSocket':{'port':80}," more "}}]"
#define JOB(spec)                                                                                            \
    "{'metadata':{'name':'a','namespace':'n'},'spec':{'manualSelector':true,'selector':{'matchLabels':{'a':" \
    "'b'}}," spec "'template':{'metadata':{'labels':{'a':'b'}},'spec':{'restartPolicy':'Never'," C "}}}}"

/* Two ports with one node port. */
#define PORTS(one, other)                                                                                    \
    "{'metadata':{'name':'a'},'spec':{'type':'NodePort','clusterIP':'10.0.0.9','clusterIPs':['10.0.0.9']"    \
    ",'ports':[{'name':'a','port':1,'nodePort':30123,'protocol':'" one                                       \
    "'},{'name':'b','port':2,'nodePort':30123,'protocol':'" other "'}]}}"

static const row rows[] = {
    {"v1/pods", NULL, POD(C), NULL},
    {"v1/pods", NULL, POD("'containers':[]"), "spec.containers: Required value"},
    {"v1/pods", NULL, POD("'containers':[{'name':'C','image':'i'}]"),
        "spec.containers[0].name: Invalid value"},
    {"v1/pods", NULL, POD("'containers':[{'name':'c'}]"), "spec.containers[0].image: Required value"},
    {"v1/pods", NULL, POD(C ",'restartPolicy':'Sometimes'"), "spec.restartPolicy: Unsupported value"},
    {"v1/pods", POD(C), POD("'containers':[{'name':'c','image':'other'}]"), NULL},
    {"v1/pods", POD(C), POD(C ",'hostNetwork':true"), "spec: Forbidden"},
    {"v1/pods", POD(C "," BORNE("5")), POD(C "," BORNE("6")), NULL},
    {"v1/pods", POD(C "," BORNE("5")), POD(C), "spec.tolerations: Forbidden"},
    {"v1/pods", NULL, POD(ENV("'fieldRef':{'fieldPath':'metadata.name'}")), NULL},
    {"v1/pods", NULL, POD(ENV("'fieldRef':{}")),
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Required value"},
    {"v1/pods", NULL, POD(ENV("'fieldRef':{'fieldPath':'metadata.labels'}")),
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Unsupported value"},
    {"v1/pods", NULL, POD(ENV("'fieldRef':{'fieldPath':'x'}")),
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value"},
    {"v1/pods", NULL, POD(ENV("'resourceFieldRef':{'resource':'limits.cpu'}")), NULL},
    {"v1/pods", NULL, POD(ENV("'resourceFieldRef':{'resource':'requests.hugepages-2Mi'}")), NULL},
    {"v1/pods", NULL, POD(ENV("'resourceFieldRef':{}")),
        "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Required value"},
    {"v1/pods", NULL, POD(ENV("'resourceFieldRef':{'resource':'cpu'}")),
        "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource: Unsupported value"},
    {"v1/pods", NULL, POD(ENV("'secretKeyRef':{'name':'s','key':'k'}")), NULL},
    {"v1/pods", NULL, POD(ENV("'secretKeyRef':{'name':'s'}")),
        "spec.containers[0].env[0].valueFrom.secretKeyRef.key: Required value"},
    {"v1/pods", NULL, POD(FROM("'prefix':'A_','configMapRef':{'name':'m'}")), NULL},
    {"v1/pods", NULL, POD(FROM("'prefix':'A=','secretRef':{'name':'s'}")),
        "spec.containers[0].envFrom[0].prefix: Invalid value"},
    {"v1/pods", NULL, POD(FROM("'configMapRef':{}")),
        "spec.containers[0].envFrom[0].configMapRef.name: Required value"},
    {"v1/pods", NULL, POD(FROM("'secretRef':{'name':'S'}")),
        "spec.containers[0].envFrom[0].secretRef.name: Invalid value"},
    {"v1/pods", NULL, POD(FROM("'prefix':'A'")), "spec.containers[0].envFrom: Invalid value"},
    {"v1/pods", NULL, POD(FROM("'secretRef':{'name':'s'},'configMapRef':{'name':'m'}")),
        "spec.containers[0].envFrom: Invalid value"},
    {"v1/pods", NULL, POD(C "," NEAR("1")), NULL},
    {"v1/pods", NULL, POD(C "," NEAR("100")), NULL},
    {"v1/pods", NULL, POD(C "," NEAR("0")),
        "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value"},
    {"v1/pods", NULL, POD(C "," NEAR("101")),
        "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value"},
    {"v1/pods", NULL, POD(PROBED("readinessProbe", "'terminationGracePeriodSeconds':3")),
        "spec.containers[0].readinessProbe.terminationGracePeriodSeconds: Invalid value"},
    {"v1/pods", NULL, POD(PROBED("readinessProbe", "'successThreshold':2")), NULL},
    {"v1/pods", NULL, POD(PROBED("livenessProbe", "'terminationGracePeriodSeconds':3")), NULL},
    {"v1/pods", NULL, POD(PROBED("livenessProbe", "'terminationGracePeriodSeconds':0")),
        "spec.containers[0].livenessProbe.terminationGracePeriodSeconds: Invalid value"},
    {"v1/pods", NULL, POD(PROBED("startupProbe", "'successThreshold':2")),
        "spec.containers[0].startupProbe.successThreshold: Invalid value"},
    {"v1/services", NULL, "{'metadata':{'name':'a'},'spec':{'ports':[{'port':80}]}}", NULL},
    {"v1/services", NULL, "{'metadata':{'name':'a'},'spec':{'ports':[{'port':0}]}}",
        "spec.ports[0].port: Invalid value"},
    {"v1/services", NULL, PORTS("TCP", "UDP"), NULL},
    {"v1/services", NULL, PORTS("TCP", "TCP"), "spec.ports[1].nodePort: Duplicate value"},
    {"v1/secrets", NULL, "{'metadata':{'name':'a'},'type':'kubernetes.io/tls'}",
        "data[tls.crt]: Required value"},
    {"v1/configmaps", NULL, "{'metadata':{'name':'a'},'data':{'a b':'c'}}", "data[a b]: Invalid value"},
    {"v1/configmaps", "{'metadata':{'name':'a'},'immutable':true,'data':{'a':'b'}}",
        "{'metadata':{'name':'a'},'immutable':true,'data':{'a':'c'}}", "data: Forbidden"},
    {"autoscaling/v2/horizontalpodautoscalers", NULL, SCALER(OF_OBJECT("'kind':'Service','name':'s'")), NULL},
    {"autoscaling/v2/horizontalpodautoscalers", NULL, SCALER(OF_OBJECT("'name':'s'")),
        "spec.metrics[0].object.describedObject.kind: Required value"},
    {"autoscaling/v2/horizontalpodautoscalers", NULL, SCALER(OF_OBJECT("'kind':'Service'")),
        "spec.metrics[0].object.describedObject.name: Required value"},
    {"autoscaling/v2/horizontalpodautoscalers", NULL, SCALER(OF_OBJECT("'kind':'Service','name':'a/b'")),
        "spec.metrics[0].object.describedObject.name: Invalid value"},
    {"batch/v1/jobs", NULL, JOB(""), NULL},
    {"batch/v1/jobs", NULL, JOB("'parallelism':-1,"), "spec.parallelism: Invalid value"},
    {"batch/v1/cronjobs", NULL,
        "{'metadata':{'name':'a'},'spec':{'schedule':'now','jobTemplate':{'spec':{'template':{'spec':{"
        "'restartPolicy':'Never'," C "}}}}}}",
        "spec.schedule: Invalid value"},
    {"rbac.authorization.k8s.io/v1/roles", NULL,
        "{'metadata':{'name':'a'},'rules':[{'verbs':[],'apiGroups':[''],'resources':['pods']}]}",
        "rules[0].verbs: Required value"},
    {"policy/v1/poddisruptionbudgets", NULL,
        "{'metadata':{'name':'a'},'spec':{'minAvailable':1,'maxUnavailable':1}}", "spec: Invalid value"},
    {"networking.k8s.io/v1/networkpolicies", NULL,
        "{'metadata':{'name':'a'},'spec':{'podSelector':{},'policyTypes':['Sideways']}}",
        "spec.policyTypes[0]: Unsupported value"},
    {"coordination.k8s.io/v1/leases", NULL, "{'metadata':{'name':'a'},'spec':{'leaseDurationSeconds':0}}",
        "spec.leaseDurationSeconds: Invalid value"},
    {"scheduling.k8s.io/v1/priorityclasses", NULL, "{'metadata':{'name':'a'},'value':2000000000}",
        "value: Forbidden"},
};

static const kl__kind *kind_of(const char *text)
{
    char group[64] = "", version[16], plural[64];
    if (sscanf(text, "%63[^/]/%15[^/]/%63s", group, version, plural) != 3) {
        *group = '\0';
        assert_int_equal(2, sscanf(text, "%15[^/]/%63s", version, plural));
    }
    return kl__kinds_get(kinds, group, version, plural);
}

static void every_kind_has_its_rules(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *r = &rows[i];
        const kl__kind *k = kind_of(r->kind);
        const kl_value *o = v(r->o), *old = r->old ? v(r->old) : NULL;
        kl__causes causes = {0};
        assert_non_null(k);
        kl__defaults(k->group, k->plural, &o);
        if (old)
            kl__defaults(k->group, k->plural, &old);
        kl__builtin_validate(&(kl__write){.kind = k, .old = old, .o = o, .causes = &causes});
        char *first = causes.len ? kl_sprintf("%s: %s", causes.v[0].field, causes.v[0].message) : NULL;
        if (!r->cause != !first || (first && strncmp(first, r->cause, strlen(r->cause)) != 0))
            fail_msg(
                "%s %s: %s, not %s", r->kind, r->o, first ? first : "fine", r->cause ? r->cause : "fine");
        kl_free(first);
        kl__causes_fini(&causes);
        kl_value_unref(o);
        kl_value_unref(old);
    }
}

/* Kind, subresource, old, new: whether metadata.generation moves. */
static void generation_follows_the_fields_a_controller_acts_on(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *old, *o;
        bool moves;
    } moves[] = {
        {"apps/v1/deployments", "{'spec':{'replicas':1}}", "{'spec':{'replicas':2}}", true},
        {"apps/v1/deployments", "{'metadata':{'annotations':{'a':'b'}}}", "{'metadata':{}}", true},
        {"apps/v1/deployments", "{'metadata':{'labels':{'a':'b'}}}", "{'metadata':{}}", false},
        {"apps/v1/replicasets", "{'metadata':{'annotations':{'a':'b'}}}", "{'metadata':{}}", false},
        {"apps/v1/replicasets", "{'status':{'replicas':1}}", "{'status':{'replicas':2}}", false},
        {"discovery.k8s.io/v1/endpointslices", "{'endpoints':[]}",
            "{'endpoints':[{'addresses':['1.1.1.1']}]}", true},
        {"v1/configmaps", "{'data':{'a':'b'}}", "{'data':{'a':'c'}}", false},
    };
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        const kl_value *old = v(moves[i].old), *o = v(moves[i].o);
        if (kl__generation_moves(kind_of(moves[i].kind), NULL, old, o) != moves[i].moves)
            fail_msg("%s: %s -> %s", moves[i].kind, moves[i].old, moves[i].o);
        kl_value_unref(old);
        kl_value_unref(o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_its_rules),
        cmocka_unit_test(generation_follows_the_fields_a_controller_acts_on),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
