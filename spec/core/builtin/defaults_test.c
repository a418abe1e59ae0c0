/* defaults_test.c - the defaults of kinds: whole objects, before and after. The e2e specs of kinds compare
 * them with a real API server. */
#include "core/server/value_help.h"

#include <string.h>

#include "builtin/defaults.h"

typedef struct row {
    const char *group, *plural, *o, *filled;
} row;

#define POD_REST                                                                                             \
    "'restartPolicy':'Always','terminationGracePeriodSeconds':30,'dnsPolicy':'ClusterFirst',"                \
    "'securityContext':{},'schedulerName':'default-scheduler'"
#define POD_OWN "'enableServiceLinks':true"
#define CONTAINER_REST "'terminationMessagePath':'/dev/termination-log','terminationMessagePolicy':'File'"
#define PROBE_REST "'timeoutSeconds':1,'periodSeconds':10,'successThreshold':1,'failureThreshold':3"

static const row rows[] = {
    {"", "pods",
        "{'spec':{'containers':[{'image':'i','ports':[{'containerPort':1}],'env':[{'valueFrom':{'fieldRef':{"
        "'fieldPath':'a'}}}],'readinessProbe':{'httpGet':{'port':1}},'resources':{'limits':{'cpu':'1'}}}]}}",
        "{'spec':{'containers':[{'image':'i','ports':[{'containerPort':1,'protocol':'TCP'}],'env':[{"
        "'valueFrom':{'fieldRef':{'apiVersion':'v1','fieldPath':'a'}}}],'readinessProbe':{'httpGet':{'port':"
        "1,'path':'/','scheme':'HTTP'}," PROBE_REST "},'resources':{'limits':{'cpu':'1'},'requests':{'cpu':"
        "'1'}},'imagePullPolicy':'Always'," CONTAINER_REST "}]," POD_REST "," POD_OWN "}}"},
    {"", "pods", "{'spec':{'hostNetwork':true,'containers':[{'image':'i:1','ports':[{'containerPort':1}]}]}}",
        "{'spec':{'hostNetwork':true,'containers':[{'image':'i:1','ports':[{'containerPort':1,'hostPort':1,"
        "'protocol':'TCP'}],'imagePullPolicy':'IfNotPresent'," CONTAINER_REST "}]," POD_REST "," POD_OWN
        "}}"},
    {"", "pods",
        "{'spec':{'tolerations':[{'operator':'Exists'}],'volumes':[{'name':'a'},{'name':'b','secret':{}},"
        "{'name':'c','hostPath':{'path':'/'}},{'name':'d','projected':{'sources':[{'serviceAccountToken':{}},"
        "{'downwardAPI':{'items':[{'fieldRef':{}}]}}]}}]}}",
        "{'spec':{'tolerations':[{'operator':'Exists'}],'volumes':[{'name':'a','emptyDir':{}},{'name':'b',"
        "'secret':{'defaultMode':420}},{'name':'c','hostPath':{'path':'/','type':''}},{'name':'d',"
        "'projected':{'defaultMode':420,'sources':[{'serviceAccountToken':{'expirationSeconds':3600}},"
        "{'downwardAPI':{'items':[{'fieldRef':{'apiVersion':'v1'}}]}}]}}],'enableServiceLinks':true," POD_REST
        "}}"},
    {"apps", "deployments", "{'spec':{'template':{'spec':{}}}}",
        "{'spec':{'replicas':1,'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':'25%',"
        "'maxSurge':'25%'}},'revisionHistoryLimit':10,'progressDeadlineSeconds':600,'template':{'spec':"
        "{" POD_REST "}}}}"},
    {"apps", "deployments", "{'spec':{'strategy':{'type':'Recreate'}}}",
        "{'spec':{'replicas':1,'strategy':{'type':'Recreate'},'revisionHistoryLimit':10,"
        "'progressDeadlineSeconds':600}}"},
    {"apps", "replicasets", "{'spec':{}}", "{'spec':{'replicas':1}}"},
    {"apps", "statefulsets", "{'spec':{'volumeClaimTemplates':[{'spec':{}}]}}",
        "{'spec':{'replicas':1,'podManagementPolicy':'OrderedReady','updateStrategy':{'type':"
        "'RollingUpdate','rollingUpdate':{'partition':0}},'revisionHistoryLimit':10,"
        "'persistentVolumeClaimRetentionPolicy':{'whenDeleted':'Retain','whenScaled':'Retain'},"
        "'volumeClaimTemplates':[{'apiVersion':'v1','kind':'PersistentVolumeClaim','spec':{'volumeMode':"
        "'Filesystem'},'status':{'phase':'Pending'}}]}}"},
    {"apps", "daemonsets", "{'spec':{}}",
        "{'spec':{'updateStrategy':{'type':'RollingUpdate','rollingUpdate':{'maxUnavailable':1,'maxSurge':0}}"
        ",'revisionHistoryLimit':10}}"},
    {"batch", "jobs", "{'spec':{}}",
        "{'spec':{'completions':1,'parallelism':1,'backoffLimit':6,'completionMode':'NonIndexed','suspend':"
        "false,'podReplacementPolicy':'TerminatingOrFailed','manualSelector':false}}"},
    {"batch", "jobs", "{'spec':{'parallelism':2,'backoffLimitPerIndex':1,'podFailurePolicy':{}}}",
        "{'spec':{'parallelism':2,'backoffLimitPerIndex':1,'podFailurePolicy':{},'backoffLimit':2147483647,"
        "'completionMode':'NonIndexed','suspend':false,'podReplacementPolicy':'Failed','manualSelector':"
        "false}}"},
    {"batch", "cronjobs", "{'spec':{}}",
        "{'spec':{'concurrencyPolicy':'Allow','suspend':false,'successfulJobsHistoryLimit':3,"
        "'failedJobsHistoryLimit':1}}"},
    {"", "services", "{'spec':{'ports':[{'port':1}]}}",
        "{'spec':{'ports':[{'port':1,'protocol':'TCP','targetPort':1}],'sessionAffinity':'None','type':"
        "'ClusterIP','internalTrafficPolicy':'Cluster'}}"},
    {"", "services", "{'spec':{'type':'LoadBalancer','sessionAffinity':'ClientIP'}}",
        "{'spec':{'type':'LoadBalancer','sessionAffinity':'ClientIP','sessionAffinityConfig':{'clientIP':{"
        "'timeoutSeconds':10800}},'externalTrafficPolicy':'Cluster','internalTrafficPolicy':'Cluster',"
        "'allocateLoadBalancerNodePorts':true}}"},
    {"", "namespaces", "{'metadata':{'name':'a'}}",
        "{'metadata':{'name':'a','labels':{'kubernetes.io/metadata.name':'a'}}}"},
    {"", "nodes", "{'status':{'capacity':{'cpu':'1'}}}",
        "{'status':{'capacity':{'cpu':'1'},'allocatable':{'cpu':'1'}}}"},
    {"", "nodes", "{'status':{'capacity':{'cpu':'2'},'allocatable':{'cpu':'1'}}}",
        "{'status':{'capacity':{'cpu':'2'},'allocatable':{'cpu':'1'}}}"},
    {"scheduling.k8s.io", "priorityclasses", "{}", "{'preemptionPolicy':'PreemptLowerPriority'}"},
    {"storage.k8s.io", "storageclasses", "{}", "{'reclaimPolicy':'Delete','volumeBindingMode':'Immediate'}"},
};

static void absent_fields_get_defaults(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const kl_value *o = v(rows[i].o);
        kl__defaults(rows[i].group, rows[i].plural, &o);
        assert_value(o, rows[i].filled);
        kl_value_unref(o);
    }
}

KL_TESTS(cmocka_unit_test(absent_fields_get_defaults))
