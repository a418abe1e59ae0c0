/* builtin_data.c - the built-in kinds of Kubernetes 1.34 and their types, as text.
 *
 * Written by builtin.lua; do not edit. Derived from the Kubernetes API definitions, Copyright The Kubernetes
 * Authors, Apache License 2.0: names, types and merge rules of the API, without its descriptions. kinds.c and
 * schema.c say how a line reads. */
#include "schema/builtin.h"

/* clang-format off */
const char *const kl__builtin_kinds[] = {
    "- v1 Binding bindings binding ns create - - core.v1.Binding ",
    "- v1 ComponentStatus componentstatuses componentstatus cluster get,list cs - "
        "core.v1.ComponentStatus ",
    "- v1 ConfigMap configmaps configmap ns create,delete,deletecollection,get,list,patch,update,watch "
        "cm - core.v1.ConfigMap ",
    "- v1 Endpoints endpoints endpoints ns create,delete,deletecollection,get,list,patch,update,watch "
        "ep - core.v1.Endpoints ",
    "- v1 Event events event ns create,delete,deletecollection,get,list,patch,update,watch ev - "
        "core.v1.Event ",
    "- v1 LimitRange limitranges limitrange ns "
        "create,delete,deletecollection,get,list,patch,update,watch limits - core.v1.LimitRange ",
    "- v1 Namespace namespaces namespace cluster create,delete,get,list,patch,update,watch ns - "
        "core.v1.Namespace finalize://Namespace:update|status://Namespace:get,patch,update",
    "- v1 Node nodes node cluster create,delete,deletecollection,get,list,patch,update,watch no - "
        "core.v1.Node proxy://NodeProxyOptions:create,delete,get,patch,update|status://Node:get,patch,update",
    "- v1 PersistentVolumeClaim persistentvolumeclaims persistentvolumeclaim ns "
        "create,delete,deletecollection,get,list,patch,update,watch pvc - core.v1.PersistentVolumeClaim "
        "status://PersistentVolumeClaim:get,patch,update",
    "- v1 PersistentVolume persistentvolumes persistentvolume cluster "
        "create,delete,deletecollection,get,list,patch,update,watch pv - core.v1.PersistentVolume "
        "status://PersistentVolume:get,patch,update",
    "- v1 Pod pods pod ns create,delete,deletecollection,get,list,patch,update,watch po all core.v1.Pod "
        "attach://PodAttachOptions:create,get|binding://Binding:create|ephemeralcontainers://Pod:get,patch,u"
        "pdate|eviction:policy/v1/Eviction:create|exec://PodExecOptions:create,get|log://Pod:get|portforward"
        "://PodPortForwardOptions:create,get|proxy://PodProxyOptions:create,delete,get,patch,update|resize:/"
        "/Pod:get,patch,update|status://Pod:get,patch,update",
    "- v1 PodTemplate podtemplates podtemplate ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - core.v1.PodTemplate ",
    "- v1 ReplicationController replicationcontrollers replicationcontroller ns "
        "create,delete,deletecollection,get,list,patch,update,watch rc all core.v1.ReplicationController "
        "scale:autoscaling/v1/Scale:get,patch,update|status://ReplicationController:get,patch,update",
    "- v1 ResourceQuota resourcequotas resourcequota ns "
        "create,delete,deletecollection,get,list,patch,update,watch quota - core.v1.ResourceQuota "
        "status://ResourceQuota:get,patch,update",
    "- v1 Secret secrets secret ns create,delete,deletecollection,get,list,patch,update,watch - - "
        "core.v1.Secret ",
    "- v1 ServiceAccount serviceaccounts serviceaccount ns "
        "create,delete,deletecollection,get,list,patch,update,watch sa - core.v1.ServiceAccount "
        "token:authentication.k8s.io/v1/TokenRequest:create",
    "- v1 Service services service ns create,delete,deletecollection,get,list,patch,update,watch svc "
        "all core.v1.Service "
        "proxy://ServiceProxyOptions:create,delete,get,patch,update|status://Service:get,patch,update",
    "apiregistration.k8s.io v1 APIService apiservices apiservice cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - api-extensions "
        "apiregistration.v1.APIService status://APIService:get,patch,update",
    "apps v1 ControllerRevision controllerrevisions controllerrevision ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - apps.v1.ControllerRevision ",
    "apps v1 DaemonSet daemonsets daemonset ns "
        "create,delete,deletecollection,get,list,patch,update,watch ds all apps.v1.DaemonSet "
        "status://DaemonSet:get,patch,update",
    "apps v1 Deployment deployments deployment ns "
        "create,delete,deletecollection,get,list,patch,update,watch deploy all apps.v1.Deployment "
        "scale:autoscaling/v1/Scale:get,patch,update|status://Deployment:get,patch,update",
    "apps v1 ReplicaSet replicasets replicaset ns "
        "create,delete,deletecollection,get,list,patch,update,watch rs all apps.v1.ReplicaSet "
        "scale:autoscaling/v1/Scale:get,patch,update|status://ReplicaSet:get,patch,update",
    "apps v1 StatefulSet statefulsets statefulset ns "
        "create,delete,deletecollection,get,list,patch,update,watch sts all apps.v1.StatefulSet "
        "scale:autoscaling/v1/Scale:get,patch,update|status://StatefulSet:get,patch,update",
    "events.k8s.io v1 Event events event ns create,delete,deletecollection,get,list,patch,update,watch "
        "ev - events.v1.Event ",
    "authentication.k8s.io v1 SelfSubjectReview selfsubjectreviews selfsubjectreview cluster create - - "
        "authentication.v1.SelfSubjectReview ",
    "authentication.k8s.io v1 TokenReview tokenreviews tokenreview cluster create - - "
        "authentication.v1.TokenReview ",
    "authorization.k8s.io v1 LocalSubjectAccessReview localsubjectaccessreviews "
        "localsubjectaccessreview ns create - - authorization.v1.LocalSubjectAccessReview ",
    "authorization.k8s.io v1 SelfSubjectAccessReview selfsubjectaccessreviews selfsubjectaccessreview "
        "cluster create - - authorization.v1.SelfSubjectAccessReview ",
    "authorization.k8s.io v1 SelfSubjectRulesReview selfsubjectrulesreviews selfsubjectrulesreview "
        "cluster create - - authorization.v1.SelfSubjectRulesReview ",
    "authorization.k8s.io v1 SubjectAccessReview subjectaccessreviews subjectaccessreview cluster "
        "create - - authorization.v1.SubjectAccessReview ",
    "autoscaling v2 HorizontalPodAutoscaler horizontalpodautoscalers horizontalpodautoscaler ns "
        "create,delete,deletecollection,get,list,patch,update,watch hpa all "
        "autoscaling.v2.HorizontalPodAutoscaler status://HorizontalPodAutoscaler:get,patch,update",
    "autoscaling v1 HorizontalPodAutoscaler horizontalpodautoscalers horizontalpodautoscaler ns "
        "create,delete,deletecollection,get,list,patch,update,watch hpa all "
        "autoscaling.v1.HorizontalPodAutoscaler status://HorizontalPodAutoscaler:get,patch,update",
    "batch v1 CronJob cronjobs cronjob ns create,delete,deletecollection,get,list,patch,update,watch cj "
        "all batch.v1.CronJob status://CronJob:get,patch,update",
    "batch v1 Job jobs job ns create,delete,deletecollection,get,list,patch,update,watch - all "
        "batch.v1.Job status://Job:get,patch,update",
    "certificates.k8s.io v1 CertificateSigningRequest certificatesigningrequests "
        "certificatesigningrequest cluster create,delete,deletecollection,get,list,patch,update,watch csr - "
        "certificates.v1.CertificateSigningRequest "
        "approval://CertificateSigningRequest:get,patch,update|status://CertificateSigningRequest:get,patch,"
        "update",
    "networking.k8s.io v1 IngressClass ingressclasses ingressclass cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - networking.v1.IngressClass ",
    "networking.k8s.io v1 Ingress ingresses ingress ns "
        "create,delete,deletecollection,get,list,patch,update,watch ing - networking.v1.Ingress "
        "status://Ingress:get,patch,update",
    "networking.k8s.io v1 IPAddress ipaddresses ipaddress cluster "
        "create,delete,deletecollection,get,list,patch,update,watch ip - networking.v1.IPAddress ",
    "networking.k8s.io v1 NetworkPolicy networkpolicies networkpolicy ns "
        "create,delete,deletecollection,get,list,patch,update,watch netpol - networking.v1.NetworkPolicy ",
    "networking.k8s.io v1 ServiceCIDR servicecidrs servicecidr cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - networking.v1.ServiceCIDR "
        "status://ServiceCIDR:get,patch,update",
    "policy v1 PodDisruptionBudget poddisruptionbudgets poddisruptionbudget ns "
        "create,delete,deletecollection,get,list,patch,update,watch pdb - policy.v1.PodDisruptionBudget "
        "status://PodDisruptionBudget:get,patch,update",
    "rbac.authorization.k8s.io v1 ClusterRoleBinding clusterrolebindings clusterrolebinding cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - rbac.v1.ClusterRoleBinding ",
    "rbac.authorization.k8s.io v1 ClusterRole clusterroles clusterrole cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - rbac.v1.ClusterRole ",
    "rbac.authorization.k8s.io v1 RoleBinding rolebindings rolebinding ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - rbac.v1.RoleBinding ",
    "rbac.authorization.k8s.io v1 Role roles role ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - rbac.v1.Role ",
    "storage.k8s.io v1 CSIDriver csidrivers csidriver cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - storage.v1.CSIDriver ",
    "storage.k8s.io v1 CSINode csinodes csinode cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - storage.v1.CSINode ",
    "storage.k8s.io v1 CSIStorageCapacity csistoragecapacities csistoragecapacity ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - storage.v1.CSIStorageCapacity ",
    "storage.k8s.io v1 StorageClass storageclasses storageclass cluster "
        "create,delete,deletecollection,get,list,patch,update,watch sc - storage.v1.StorageClass ",
    "storage.k8s.io v1 VolumeAttachment volumeattachments volumeattachment cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - storage.v1.VolumeAttachment "
        "status://VolumeAttachment:get,patch,update",
    "storage.k8s.io v1 VolumeAttributesClass volumeattributesclasses volumeattributesclass cluster "
        "create,delete,deletecollection,get,list,patch,update,watch vac - storage.v1.VolumeAttributesClass ",
    "admissionregistration.k8s.io v1 MutatingWebhookConfiguration mutatingwebhookconfigurations "
        "mutatingwebhookconfiguration cluster create,delete,deletecollection,get,list,patch,update,watch - "
        "api-extensions admissionregistration.v1.MutatingWebhookConfiguration ",
    "admissionregistration.k8s.io v1 ValidatingAdmissionPolicy validatingadmissionpolicies "
        "validatingadmissionpolicy cluster create,delete,deletecollection,get,list,patch,update,watch - "
        "api-extensions admissionregistration.v1.ValidatingAdmissionPolicy "
        "status://ValidatingAdmissionPolicy:get,patch,update",
    "admissionregistration.k8s.io v1 ValidatingAdmissionPolicyBinding validatingadmissionpolicybindings "
        "validatingadmissionpolicybinding cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - api-extensions "
        "admissionregistration.v1.ValidatingAdmissionPolicyBinding ",
    "admissionregistration.k8s.io v1 ValidatingWebhookConfiguration validatingwebhookconfigurations "
        "validatingwebhookconfiguration cluster create,delete,deletecollection,get,list,patch,update,watch "
        "- api-extensions admissionregistration.v1.ValidatingWebhookConfiguration ",
    "apiextensions.k8s.io v1 CustomResourceDefinition customresourcedefinitions "
        "customresourcedefinition cluster create,delete,deletecollection,get,list,patch,update,watch "
        "crd,crds api-extensions apiextensions.v1.CustomResourceDefinition "
        "status://CustomResourceDefinition:get,patch,update",
    "scheduling.k8s.io v1 PriorityClass priorityclasses priorityclass cluster "
        "create,delete,deletecollection,get,list,patch,update,watch pc - scheduling.v1.PriorityClass ",
    "coordination.k8s.io v1 Lease leases lease ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - coordination.v1.Lease ",
    "node.k8s.io v1 RuntimeClass runtimeclasses runtimeclass cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - node.v1.RuntimeClass ",
    "discovery.k8s.io v1 EndpointSlice endpointslices endpointslice ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - discovery.v1.EndpointSlice ",
    "resource.k8s.io v1 DeviceClass deviceclasses deviceclass cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - resource.v1.DeviceClass ",
    "resource.k8s.io v1 ResourceClaim resourceclaims resourceclaim ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - resource.v1.ResourceClaim "
        "status://ResourceClaim:get,patch,update",
    "resource.k8s.io v1 ResourceClaimTemplate resourceclaimtemplates resourceclaimtemplate ns "
        "create,delete,deletecollection,get,list,patch,update,watch - - resource.v1.ResourceClaimTemplate ",
    "resource.k8s.io v1 ResourceSlice resourceslices resourceslice cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - resource.v1.ResourceSlice ",
    "flowcontrol.apiserver.k8s.io v1 FlowSchema flowschemas flowschema cluster "
        "create,delete,deletecollection,get,list,patch,update,watch - - flowcontrol.v1.FlowSchema "
        "status://FlowSchema:get,patch,update",
    "flowcontrol.apiserver.k8s.io v1 PriorityLevelConfiguration prioritylevelconfigurations "
        "prioritylevelconfiguration cluster create,delete,deletecollection,get,list,patch,update,watch - - "
        "flowcontrol.v1.PriorityLevelConfiguration status://PriorityLevelConfiguration:get,patch,update",
    NULL,
};

const char *const kl__builtin_types[] = {
    "admissionregistration.v1.AuditAnnotation key:s;r;z valueExpression:s;r;z",
    "admissionregistration.v1.ExpressionWarning fieldRef:s;r;z warning:s;r;z",
    "admissionregistration.v1.MatchCondition expression:s;r;z name:s;r;z",
    "admissionregistration.v1.MatchResources;atomic "
        "excludeResourceRules:[admissionregistration.v1.NamedRuleWithOperations] "
        "matchPolicy:s;go=v1.MatchPolicyType namespaceSelector:meta.v1.LabelSelector "
        "objectSelector:meta.v1.LabelSelector "
        "resourceRules:[admissionregistration.v1.NamedRuleWithOperations]",
    "admissionregistration.v1.MutatingWebhook admissionReviewVersions:[s];r;n "
        "clientConfig:admissionregistration.v1.WebhookClientConfig;d;r "
        "failurePolicy:s;go=v1.FailurePolicyType "
        "matchConditions:[admissionregistration.v1.MatchCondition];key=name;patch=name "
        "matchPolicy:s;go=v1.MatchPolicyType name:s;r;z namespaceSelector:meta.v1.LabelSelector "
        "objectSelector:meta.v1.LabelSelector reinvocationPolicy:s;go=v1.ReinvocationPolicyType "
        "rules:[admissionregistration.v1.RuleWithOperations] sideEffects:s;r;n;go=v1.SideEffectClass "
        "timeoutSeconds:j",
    "admissionregistration.v1.MutatingWebhookConfiguration apiVersion:s kind:s "
        "metadata:meta.v1.ObjectMeta;d "
        "webhooks:[admissionregistration.v1.MutatingWebhook];key=name;patch=name",
    "admissionregistration.v1.NamedRuleWithOperations;atomic apiGroups:[s] apiVersions:[s] "
        "operations:[s];go=v1.OperationType resourceNames:[s] resources:[s] scope:s;go=v1.ScopeType",
    "admissionregistration.v1.ParamKind;atomic apiVersion:s;o kind:s;o",
    "admissionregistration.v1.ParamRef;atomic name:s;o namespace:s;o "
        "parameterNotFoundAction:s;go=v1.ParameterNotFoundActionType selector:meta.v1.LabelSelector",
    "admissionregistration.v1.RuleWithOperations apiGroups:[s] apiVersions:[s] "
        "operations:[s];go=v1.OperationType resources:[s] scope:s;go=v1.ScopeType",
    "admissionregistration.v1.ServiceReference name:s;r;z namespace:s;r;z path:s port:j",
    "admissionregistration.v1.TypeChecking "
        "expressionWarnings:[admissionregistration.v1.ExpressionWarning]",
    "admissionregistration.v1.ValidatingAdmissionPolicy apiVersion:s kind:s "
        "metadata:meta.v1.ObjectMeta;d spec:admissionregistration.v1.ValidatingAdmissionPolicySpec;d "
        "status:admissionregistration.v1.ValidatingAdmissionPolicyStatus;d",
    "admissionregistration.v1.ValidatingAdmissionPolicyBinding apiVersion:s kind:s "
        "metadata:meta.v1.ObjectMeta;d spec:admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec;d",
    "admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec "
        "matchResources:admissionregistration.v1.MatchResources paramRef:admissionregistration.v1.ParamRef "
        "policyName:s;o validationActions:[s];go=v1.ValidationAction;set",
    "admissionregistration.v1.ValidatingAdmissionPolicySpec "
        "auditAnnotations:[admissionregistration.v1.AuditAnnotation] "
        "failurePolicy:s;go=v1.FailurePolicyType "
        "matchConditions:[admissionregistration.v1.MatchCondition];key=name;patch=name "
        "matchConstraints:admissionregistration.v1.MatchResources "
        "paramKind:admissionregistration.v1.ParamKind validations:[admissionregistration.v1.Validation] "
        "variables:[admissionregistration.v1.Variable];key=name;patch=name",
    "admissionregistration.v1.ValidatingAdmissionPolicyStatus conditions:[meta.v1.Condition];key=type "
        "observedGeneration:i;o typeChecking:admissionregistration.v1.TypeChecking",
    "admissionregistration.v1.ValidatingWebhook admissionReviewVersions:[s];r;n "
        "clientConfig:admissionregistration.v1.WebhookClientConfig;d;r "
        "failurePolicy:s;go=v1.FailurePolicyType "
        "matchConditions:[admissionregistration.v1.MatchCondition];key=name;patch=name "
        "matchPolicy:s;go=v1.MatchPolicyType name:s;r;z namespaceSelector:meta.v1.LabelSelector "
        "objectSelector:meta.v1.LabelSelector rules:[admissionregistration.v1.RuleWithOperations] "
        "sideEffects:s;r;n;go=v1.SideEffectClass timeoutSeconds:j",
    "admissionregistration.v1.ValidatingWebhookConfiguration apiVersion:s kind:s "
        "metadata:meta.v1.ObjectMeta;d "
        "webhooks:[admissionregistration.v1.ValidatingWebhook];key=name;patch=name",
    "admissionregistration.v1.Validation expression:s;r;z message:s;o messageExpression:s;o "
        "reason:s;go=v1.StatusReason",
    "admissionregistration.v1.Variable;atomic expression:s;r;z name:s;r;z",
    "admissionregistration.v1.WebhookClientConfig caBundle:B "
        "service:admissionregistration.v1.ServiceReference url:s",
    "apiextensions.v1.CustomResourceColumnDefinition description:s;o format:s;o jsonPath:s;r;z "
        "name:s;r;z priority:j;o type:s;r;z",
    "apiextensions.v1.CustomResourceConversion strategy:s;r;z;go=v1.ConversionStrategyType "
        "webhook:apiextensions.v1.WebhookConversion",
    "apiextensions.v1.CustomResourceDefinition apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:apiextensions.v1.CustomResourceDefinitionSpec;d;r "
        "status:apiextensions.v1.CustomResourceDefinitionStatus;d",
    "apiextensions.v1.CustomResourceDefinitionCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.CustomResourceDefinitionConditionType",
    "apiextensions.v1.CustomResourceDefinitionNames categories:[s] kind:s;r;z listKind:s;o plural:s;r;z "
        "shortNames:[s] singular:s;o",
    "apiextensions.v1.CustomResourceDefinitionSpec conversion:apiextensions.v1.CustomResourceConversion "
        "group:s;r;z names:apiextensions.v1.CustomResourceDefinitionNames;d;r preserveUnknownFields:b;o "
        "scope:s;r;z;go=v1.ResourceScope versions:[apiextensions.v1.CustomResourceDefinitionVersion];r",
    "apiextensions.v1.CustomResourceDefinitionStatus "
        "acceptedNames:apiextensions.v1.CustomResourceDefinitionNames;d "
        "conditions:[apiextensions.v1.CustomResourceDefinitionCondition];n;key=type storedVersions:[s];n",
    "apiextensions.v1.CustomResourceDefinitionVersion "
        "additionalPrinterColumns:[apiextensions.v1.CustomResourceColumnDefinition] deprecated:b;o "
        "deprecationWarning:s name:s;r;z schema:apiextensions.v1.CustomResourceValidation "
        "selectableFields:[apiextensions.v1.SelectableField] served:b;r;z storage:b;r;z "
        "subresources:apiextensions.v1.CustomResourceSubresources",
    "apiextensions.v1.CustomResourceSubresourceScale labelSelectorPath:s specReplicasPath:s;r;z "
        "statusReplicasPath:s;r;z",
    "apiextensions.v1.CustomResourceSubresources scale:apiextensions.v1.CustomResourceSubresourceScale "
        "status:o",
    "apiextensions.v1.CustomResourceValidation openAPIV3Schema:apiextensions.v1.JSONSchemaProps",
    "apiextensions.v1.ExternalDocumentation description:s;o url:s;o",
    "apiextensions.v1.JSONSchemaProps $ref:s $schema:s;o;go=v1.JSONSchemaURL additionalItems:o "
        "additionalProperties:o allOf:[apiextensions.v1.JSONSchemaProps] "
        "anyOf:[apiextensions.v1.JSONSchemaProps] default:o definitions:{apiextensions.v1.JSONSchemaProps} "
        "dependencies:{o} description:s;o enum:[o] example:o exclusiveMaximum:b;o exclusiveMinimum:b;o "
        "externalDocs:apiextensions.v1.ExternalDocumentation format:s;o id:s;o items:o maxItems:i "
        "maxLength:i maxProperties:i maximum:n minItems:i minLength:i minProperties:i minimum:n "
        "multipleOf:n not:apiextensions.v1.JSONSchemaProps nullable:b;o "
        "oneOf:[apiextensions.v1.JSONSchemaProps] pattern:s;o "
        "patternProperties:{apiextensions.v1.JSONSchemaProps} properties:{apiextensions.v1.JSONSchemaProps} "
        "required:[s] title:s;o type:s;o uniqueItems:b;o x-kubernetes-embedded-resource:b;o "
        "x-kubernetes-int-or-string:b;o x-kubernetes-list-map-keys:[s] x-kubernetes-list-type:s "
        "x-kubernetes-map-type:s x-kubernetes-preserve-unknown-fields:b "
        "x-kubernetes-validations:[apiextensions.v1.ValidationRule];key=rule;patch=rule",
    "apiextensions.v1.SelectableField jsonPath:s;r;z",
    "apiextensions.v1.ServiceReference name:s;r;z namespace:s;r;z path:s port:j",
    "apiextensions.v1.ValidationRule fieldPath:s;o message:s;o messageExpression:s;o optionalOldSelf:b "
        "reason:s;go=v1.FieldValueErrorReason rule:s;r;z",
    "apiextensions.v1.WebhookClientConfig caBundle:B service:apiextensions.v1.ServiceReference url:s",
    "apiextensions.v1.WebhookConversion clientConfig:apiextensions.v1.WebhookClientConfig "
        "conversionReviewVersions:[s];r;n",
    "apiregistration.v1.APIService apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:apiregistration.v1.APIServiceSpec;d status:apiregistration.v1.APIServiceStatus;d",
    "apiregistration.v1.APIServiceCondition lastTransitionTime:t message:s reason:s status:s;r type:s;r",
    "apiregistration.v1.APIServiceSpec caBundle:B group:s groupPriorityMinimum:j;r "
        "insecureSkipTLSVerify:b service:apiregistration.v1.ServiceReference version:s versionPriority:j;r",
    "apiregistration.v1.APIServiceStatus "
        "conditions:[apiregistration.v1.APIServiceCondition];key=type;patch=type",
    "apiregistration.v1.ServiceReference name:s namespace:s port:j",
    "apps.v1.ControllerRevision apiVersion:s data:o;n kind:s metadata:meta.v1.ObjectMeta;d "
        "revision:i;r;z",
    "apps.v1.DaemonSet apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:apps.v1.DaemonSetSpec;d "
        "status:apps.v1.DaemonSetStatus;d",
    "apps.v1.DaemonSetCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.DaemonSetConditionType",
    "apps.v1.DaemonSetSpec minReadySeconds:j;o revisionHistoryLimit:j "
        "selector:meta.v1.LabelSelector;r;n template:core.v1.PodTemplateSpec;d;r "
        "updateStrategy:apps.v1.DaemonSetUpdateStrategy;d",
    "apps.v1.DaemonSetStatus collisionCount:j "
        "conditions:[apps.v1.DaemonSetCondition];key=type;patch=type currentNumberScheduled:j;r;z "
        "desiredNumberScheduled:j;r;z numberAvailable:j;o numberMisscheduled:j;r;z numberReady:j;r;z "
        "numberUnavailable:j;o observedGeneration:i;o updatedNumberScheduled:j;o",
    "apps.v1.DaemonSetUpdateStrategy rollingUpdate:apps.v1.RollingUpdateDaemonSet "
        "type:s;o;go=v1.DaemonSetUpdateStrategyType",
    "apps.v1.Deployment apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:apps.v1.DeploymentSpec;d "
        "status:apps.v1.DeploymentStatus;d",
    "apps.v1.DeploymentCondition lastTransitionTime:t;n lastUpdateTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.DeploymentConditionType",
    "apps.v1.DeploymentSpec minReadySeconds:j;o paused:b;o progressDeadlineSeconds:j replicas:j "
        "revisionHistoryLimit:j selector:meta.v1.LabelSelector;r;n "
        "strategy:apps.v1.DeploymentStrategy;d;retain template:core.v1.PodTemplateSpec;d;r",
    "apps.v1.DeploymentStatus availableReplicas:j;o collisionCount:j "
        "conditions:[apps.v1.DeploymentCondition];key=type;patch=type observedGeneration:i;o "
        "readyReplicas:j;o replicas:j;o terminatingReplicas:j unavailableReplicas:j;o updatedReplicas:j;o",
    "apps.v1.DeploymentStrategy rollingUpdate:apps.v1.RollingUpdateDeployment "
        "type:s;o;go=v1.DeploymentStrategyType",
    "apps.v1.ReplicaSet apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:apps.v1.ReplicaSetSpec;d "
        "status:apps.v1.ReplicaSetStatus;d",
    "apps.v1.ReplicaSetCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.ReplicaSetConditionType",
    "apps.v1.ReplicaSetSpec minReadySeconds:j;o replicas:j selector:meta.v1.LabelSelector;r;n "
        "template:core.v1.PodTemplateSpec;d",
    "apps.v1.ReplicaSetStatus availableReplicas:j;o "
        "conditions:[apps.v1.ReplicaSetCondition];key=type;patch=type fullyLabeledReplicas:j;o "
        "observedGeneration:i;o readyReplicas:j;o replicas:j;r;z terminatingReplicas:j",
    "apps.v1.RollingUpdateDaemonSet maxSurge:x maxUnavailable:x",
    "apps.v1.RollingUpdateDeployment maxSurge:x maxUnavailable:x",
    "apps.v1.RollingUpdateStatefulSetStrategy maxUnavailable:x partition:j",
    "apps.v1.StatefulSet apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:apps.v1.StatefulSetSpec;d status:apps.v1.StatefulSetStatus;d",
    "apps.v1.StatefulSetCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.StatefulSetConditionType",
    "apps.v1.StatefulSetOrdinals start:j;z",
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy "
        "whenDeleted:s;o;go=v1.PersistentVolumeClaimRetentionPolicyType "
        "whenScaled:s;o;go=v1.PersistentVolumeClaimRetentionPolicyType",
    "apps.v1.StatefulSetSpec minReadySeconds:j;o ordinals:apps.v1.StatefulSetOrdinals "
        "persistentVolumeClaimRetentionPolicy:apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy "
        "podManagementPolicy:s;o;go=v1.PodManagementPolicyType replicas:j revisionHistoryLimit:j "
        "selector:meta.v1.LabelSelector;r;n serviceName:s;z template:core.v1.PodTemplateSpec;d;r "
        "updateStrategy:apps.v1.StatefulSetUpdateStrategy;d "
        "volumeClaimTemplates:[core.v1.PersistentVolumeClaim]",
    "apps.v1.StatefulSetStatus availableReplicas:j;z collisionCount:j "
        "conditions:[apps.v1.StatefulSetCondition];key=type;patch=type currentReplicas:j;o "
        "currentRevision:s;o observedGeneration:i;o readyReplicas:j;o replicas:j;r;z updateRevision:s;o "
        "updatedReplicas:j;o",
    "apps.v1.StatefulSetUpdateStrategy rollingUpdate:apps.v1.RollingUpdateStatefulSetStrategy "
        "type:s;o;go=v1.StatefulSetUpdateStrategyType",
    "authentication.v1.SelfSubjectReview apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "status:authentication.v1.SelfSubjectReviewStatus;d",
    "authentication.v1.SelfSubjectReviewStatus userInfo:authentication.v1.UserInfo;d",
    "authentication.v1.TokenReview apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:authentication.v1.TokenReviewSpec;d;r status:authentication.v1.TokenReviewStatus;d",
    "authentication.v1.TokenReviewSpec audiences:[s] token:s;o",
    "authentication.v1.TokenReviewStatus audiences:[s] authenticated:b;o error:s;o "
        "user:authentication.v1.UserInfo;d",
    "authentication.v1.UserInfo extra:{[s]} groups:[s] uid:s;o username:s;o",
    "authorization.v1.FieldSelectorAttributes rawSelector:s;o "
        "requirements:[meta.v1.FieldSelectorRequirement]",
    "authorization.v1.LabelSelectorAttributes rawSelector:s;o "
        "requirements:[meta.v1.LabelSelectorRequirement]",
    "authorization.v1.LocalSubjectAccessReview apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:authorization.v1.SubjectAccessReviewSpec;d;r "
        "status:authorization.v1.SubjectAccessReviewStatus;d",
    "authorization.v1.NonResourceAttributes path:s;o verb:s;o",
    "authorization.v1.NonResourceRule nonResourceURLs:[s] verbs:[s];r;n",
    "authorization.v1.ResourceAttributes fieldSelector:authorization.v1.FieldSelectorAttributes "
        "group:s;o labelSelector:authorization.v1.LabelSelectorAttributes name:s;o namespace:s;o "
        "resource:s;o subresource:s;o verb:s;o version:s;o",
    "authorization.v1.ResourceRule apiGroups:[s] resourceNames:[s] resources:[s] verbs:[s];r;n",
    "authorization.v1.SelfSubjectAccessReview apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:authorization.v1.SelfSubjectAccessReviewSpec;d;r "
        "status:authorization.v1.SubjectAccessReviewStatus;d",
    "authorization.v1.SelfSubjectAccessReviewSpec "
        "nonResourceAttributes:authorization.v1.NonResourceAttributes "
        "resourceAttributes:authorization.v1.ResourceAttributes",
    "authorization.v1.SelfSubjectRulesReview apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:authorization.v1.SelfSubjectRulesReviewSpec;d;r "
        "status:authorization.v1.SubjectRulesReviewStatus;d",
    "authorization.v1.SelfSubjectRulesReviewSpec namespace:s;o",
    "authorization.v1.SubjectAccessReview apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:authorization.v1.SubjectAccessReviewSpec;d;r "
        "status:authorization.v1.SubjectAccessReviewStatus;d",
    "authorization.v1.SubjectAccessReviewSpec extra:{[s]} groups:[s] "
        "nonResourceAttributes:authorization.v1.NonResourceAttributes "
        "resourceAttributes:authorization.v1.ResourceAttributes uid:s;o user:s;o",
    "authorization.v1.SubjectAccessReviewStatus allowed:b;r;z denied:b;o evaluationError:s;o reason:s;o",
    "authorization.v1.SubjectRulesReviewStatus evaluationError:s;o incomplete:b;r;z "
        "nonResourceRules:[authorization.v1.NonResourceRule];r;n "
        "resourceRules:[authorization.v1.ResourceRule];r;n",
    "autoscaling.v1.CrossVersionObjectReference;atomic apiVersion:s;o kind:s;r;z name:s;r;z",
    "autoscaling.v1.HorizontalPodAutoscaler apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:autoscaling.v1.HorizontalPodAutoscalerSpec;d "
        "status:autoscaling.v1.HorizontalPodAutoscalerStatus;d",
    "autoscaling.v1.HorizontalPodAutoscalerSpec maxReplicas:j;r;z minReplicas:j "
        "scaleTargetRef:autoscaling.v1.CrossVersionObjectReference;d;r targetCPUUtilizationPercentage:j",
    "autoscaling.v1.HorizontalPodAutoscalerStatus currentCPUUtilizationPercentage:j "
        "currentReplicas:j;r;z desiredReplicas:j;r;z lastScaleTime:t observedGeneration:i",
    "autoscaling.v1.Scale apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:autoscaling.v1.ScaleSpec;d status:autoscaling.v1.ScaleStatus;d",
    "autoscaling.v1.ScaleSpec replicas:j;o",
    "autoscaling.v1.ScaleStatus replicas:j;r;z selector:s;o",
    "autoscaling.v2.ContainerResourceMetricSource container:s;r;z name:s;r;z;go=v1.ResourceName "
        "target:autoscaling.v2.MetricTarget;d;r",
    "autoscaling.v2.ContainerResourceMetricStatus container:s;r;z "
        "current:autoscaling.v2.MetricValueStatus;d;r name:s;r;z;go=v1.ResourceName",
    "autoscaling.v2.CrossVersionObjectReference apiVersion:s;o kind:s;r;z name:s;r;z",
    "autoscaling.v2.ExternalMetricSource metric:autoscaling.v2.MetricIdentifier;d;r "
        "target:autoscaling.v2.MetricTarget;d;r",
    "autoscaling.v2.ExternalMetricStatus current:autoscaling.v2.MetricValueStatus;d;r "
        "metric:autoscaling.v2.MetricIdentifier;d;r",
    "autoscaling.v2.HPAScalingPolicy periodSeconds:j;r;z type:s;r;z;go=v2.HPAScalingPolicyType "
        "value:j;r;z",
    "autoscaling.v2.HPAScalingRules policies:[autoscaling.v2.HPAScalingPolicy] "
        "selectPolicy:s;go=v2.ScalingPolicySelect stabilizationWindowSeconds:j tolerance:q",
    "autoscaling.v2.HorizontalPodAutoscaler apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:autoscaling.v2.HorizontalPodAutoscalerSpec;d "
        "status:autoscaling.v2.HorizontalPodAutoscalerStatus;d",
    "autoscaling.v2.HorizontalPodAutoscalerBehavior scaleDown:autoscaling.v2.HPAScalingRules "
        "scaleUp:autoscaling.v2.HPAScalingRules",
    "autoscaling.v2.HorizontalPodAutoscalerCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v2.HorizontalPodAutoscalerConditionType",
    "autoscaling.v2.HorizontalPodAutoscalerSpec behavior:autoscaling.v2.HorizontalPodAutoscalerBehavior "
        "maxReplicas:j;r;z metrics:[autoscaling.v2.MetricSpec] minReplicas:j "
        "scaleTargetRef:autoscaling.v2.CrossVersionObjectReference;d;r",
    "autoscaling.v2.HorizontalPodAutoscalerStatus "
        "conditions:[autoscaling.v2.HorizontalPodAutoscalerCondition];key=type;patch=type "
        "currentMetrics:[autoscaling.v2.MetricStatus];n currentReplicas:j;o desiredReplicas:j;r;z "
        "lastScaleTime:t observedGeneration:i",
    "autoscaling.v2.MetricIdentifier name:s;r;z selector:meta.v1.LabelSelector",
    "autoscaling.v2.MetricSpec containerResource:autoscaling.v2.ContainerResourceMetricSource "
        "external:autoscaling.v2.ExternalMetricSource object:autoscaling.v2.ObjectMetricSource "
        "pods:autoscaling.v2.PodsMetricSource resource:autoscaling.v2.ResourceMetricSource "
        "type:s;r;z;go=v2.MetricSourceType",
    "autoscaling.v2.MetricStatus containerResource:autoscaling.v2.ContainerResourceMetricStatus "
        "external:autoscaling.v2.ExternalMetricStatus object:autoscaling.v2.ObjectMetricStatus "
        "pods:autoscaling.v2.PodsMetricStatus resource:autoscaling.v2.ResourceMetricStatus "
        "type:s;r;z;go=v2.MetricSourceType",
    "autoscaling.v2.MetricTarget averageUtilization:j averageValue:q type:s;r;z;go=v2.MetricTargetType "
        "value:q",
    "autoscaling.v2.MetricValueStatus averageUtilization:j averageValue:q value:q",
    "autoscaling.v2.ObjectMetricSource describedObject:autoscaling.v2.CrossVersionObjectReference;d;r "
        "metric:autoscaling.v2.MetricIdentifier;d;r target:autoscaling.v2.MetricTarget;d;r",
    "autoscaling.v2.ObjectMetricStatus current:autoscaling.v2.MetricValueStatus;d;r "
        "describedObject:autoscaling.v2.CrossVersionObjectReference;d;r "
        "metric:autoscaling.v2.MetricIdentifier;d;r",
    "autoscaling.v2.PodsMetricSource metric:autoscaling.v2.MetricIdentifier;d;r "
        "target:autoscaling.v2.MetricTarget;d;r",
    "autoscaling.v2.PodsMetricStatus current:autoscaling.v2.MetricValueStatus;d;r "
        "metric:autoscaling.v2.MetricIdentifier;d;r",
    "autoscaling.v2.ResourceMetricSource name:s;r;z;go=v1.ResourceName "
        "target:autoscaling.v2.MetricTarget;d;r",
    "autoscaling.v2.ResourceMetricStatus current:autoscaling.v2.MetricValueStatus;d;r "
        "name:s;r;z;go=v1.ResourceName",
    "batch.v1.CronJob apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:batch.v1.CronJobSpec;d "
        "status:batch.v1.CronJobStatus;d",
    "batch.v1.CronJobSpec concurrencyPolicy:s;o;go=v1.ConcurrencyPolicy failedJobsHistoryLimit:j "
        "jobTemplate:batch.v1.JobTemplateSpec;d;r schedule:s;r;z startingDeadlineSeconds:i "
        "successfulJobsHistoryLimit:j suspend:b timeZone:s",
    "batch.v1.CronJobStatus active:[core.v1.ObjectReference] lastScheduleTime:t lastSuccessfulTime:t",
    "batch.v1.Job apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:batch.v1.JobSpec;d "
        "status:batch.v1.JobStatus;d",
    "batch.v1.JobCondition lastProbeTime:t;n lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.JobConditionType",
    "batch.v1.JobSpec activeDeadlineSeconds:i backoffLimit:j backoffLimitPerIndex:j "
        "completionMode:s;go=v1.CompletionMode completions:j managedBy:s manualSelector:b "
        "maxFailedIndexes:j parallelism:j podFailurePolicy:batch.v1.PodFailurePolicy "
        "podReplacementPolicy:s;go=v1.PodReplacementPolicy selector:meta.v1.LabelSelector "
        "successPolicy:batch.v1.SuccessPolicy suspend:b template:core.v1.PodTemplateSpec;d;r "
        "ttlSecondsAfterFinished:j",
    "batch.v1.JobStatus active:j;o completedIndexes:s;o completionTime:t "
        "conditions:[batch.v1.JobCondition];patch=type failed:j;o failedIndexes:s ready:j startTime:t "
        "succeeded:j;o terminating:j uncountedTerminatedPods:batch.v1.UncountedTerminatedPods",
    "batch.v1.JobTemplateSpec metadata:meta.v1.ObjectMeta;d spec:batch.v1.JobSpec;d",
    "batch.v1.PodFailurePolicy rules:[batch.v1.PodFailurePolicyRule];r;n",
    "batch.v1.PodFailurePolicyOnExitCodesRequirement containerName:s "
        "operator:s;r;z;go=v1.PodFailurePolicyOnExitCodesOperator values:[j];r;n;set",
    "batch.v1.PodFailurePolicyOnPodConditionsPattern status:s;r;z;go=v1.ConditionStatus "
        "type:s;r;z;go=v1.PodConditionType",
    "batch.v1.PodFailurePolicyRule action:s;r;z;go=v1.PodFailurePolicyAction "
        "onExitCodes:batch.v1.PodFailurePolicyOnExitCodesRequirement "
        "onPodConditions:[batch.v1.PodFailurePolicyOnPodConditionsPattern]",
    "batch.v1.SuccessPolicy rules:[batch.v1.SuccessPolicyRule];r;n",
    "batch.v1.SuccessPolicyRule succeededCount:j succeededIndexes:s",
    "batch.v1.UncountedTerminatedPods failed:[s];go=types.UID;set succeeded:[s];go=types.UID;set",
    "certificates.v1.CertificateSigningRequest apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:certificates.v1.CertificateSigningRequestSpec;d;r "
        "status:certificates.v1.CertificateSigningRequestStatus;d",
    "certificates.v1.CertificateSigningRequestCondition lastTransitionTime:t;n lastUpdateTime:t;n "
        "message:s;o reason:s;o status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.RequestConditionType",
    "certificates.v1.CertificateSigningRequestSpec expirationSeconds:j extra:{[s]} groups:[s] "
        "request:B;r;n signerName:s;r;z uid:s;o usages:[s];go=v1.KeyUsage username:s;o",
    "certificates.v1.CertificateSigningRequestStatus certificate:B "
        "conditions:[certificates.v1.CertificateSigningRequestCondition];key=type",
    "coordination.v1.Lease apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:coordination.v1.LeaseSpec;d",
    "coordination.v1.LeaseSpec acquireTime:m holderIdentity:s leaseDurationSeconds:j leaseTransitions:j "
        "preferredHolder:s renewTime:m strategy:s;go=v1.CoordinatedLeaseStrategy",
    "core.v1.AWSElasticBlockStoreVolumeSource fsType:s;o partition:j;o readOnly:b;o volumeID:s;r;z",
    "core.v1.Affinity nodeAffinity:core.v1.NodeAffinity podAffinity:core.v1.PodAffinity "
        "podAntiAffinity:core.v1.PodAntiAffinity",
    "core.v1.AppArmorProfile localhostProfile:s type:s;r;z;go=v1.AppArmorProfileType",
    "core.v1.AttachedVolume devicePath:s;r;z name:s;r;z;go=v1.UniqueVolumeName",
    "core.v1.AzureDiskVolumeSource cachingMode:s;go=v1.AzureDataDiskCachingMode;default=ReadWrite "
        "diskName:s;r;z diskURI:s;r;z fsType:s;default=ext4 kind:s;go=v1.AzureDataDiskKind;default=Shared "
        "readOnly:b",
    "core.v1.AzureFilePersistentVolumeSource readOnly:b;o secretName:s;r;z secretNamespace:s;n "
        "shareName:s;r;z",
    "core.v1.AzureFileVolumeSource readOnly:b;o secretName:s;r;z shareName:s;r;z",
    "core.v1.Binding apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "target:core.v1.ObjectReference;d;r",
    "core.v1.CSIPersistentVolumeSource controllerExpandSecretRef:core.v1.SecretReference "
        "controllerPublishSecretRef:core.v1.SecretReference driver:s;r;z fsType:s;o "
        "nodeExpandSecretRef:core.v1.SecretReference nodePublishSecretRef:core.v1.SecretReference "
        "nodeStageSecretRef:core.v1.SecretReference readOnly:b;o volumeAttributes:{s} volumeHandle:s;r;z",
    "core.v1.CSIVolumeSource driver:s;r;z fsType:s nodePublishSecretRef:core.v1.LocalObjectReference "
        "readOnly:b volumeAttributes:{s}",
    "core.v1.Capabilities add:[s];go=v1.Capability drop:[s];go=v1.Capability",
    "core.v1.CephFSPersistentVolumeSource monitors:[s];r;n path:s;o readOnly:b;o secretFile:s;o "
        "secretRef:core.v1.SecretReference user:s;o",
    "core.v1.CephFSVolumeSource monitors:[s];r;n path:s;o readOnly:b;o secretFile:s;o "
        "secretRef:core.v1.LocalObjectReference user:s;o",
    "core.v1.CinderPersistentVolumeSource fsType:s;o readOnly:b;o secretRef:core.v1.SecretReference "
        "volumeID:s;r;z",
    "core.v1.CinderVolumeSource fsType:s;o readOnly:b;o secretRef:core.v1.LocalObjectReference "
        "volumeID:s;r;z",
    "core.v1.ClientIPConfig timeoutSeconds:j",
    "core.v1.ClusterTrustBundleProjection labelSelector:meta.v1.LabelSelector name:s optional:b "
        "path:s;r;z signerName:s",
    "core.v1.ComponentCondition error:s;o message:s;o status:s;r;z;go=v1.ConditionStatus "
        "type:s;r;z;go=v1.ComponentConditionType",
    "core.v1.ComponentStatus apiVersion:s conditions:[core.v1.ComponentCondition];key=type;patch=type "
        "kind:s metadata:meta.v1.ObjectMeta;d",
    "core.v1.ConfigMap apiVersion:s binaryData:{B} data:{s} immutable:b kind:s "
        "metadata:meta.v1.ObjectMeta;d",
    "core.v1.ConfigMapEnvSource name:s;o optional:b",
    "core.v1.ConfigMapKeySelector;atomic key:s;r;z name:s;o optional:b",
    "core.v1.ConfigMapNodeConfigSource kubeletConfigKey:s;r;z name:s;r;z namespace:s;r;z "
        "resourceVersion:s;o uid:s;o;go=types.UID",
    "core.v1.ConfigMapProjection items:[core.v1.KeyToPath] name:s;o optional:b",
    "core.v1.ConfigMapVolumeSource defaultMode:j items:[core.v1.KeyToPath] name:s;o optional:b",
    "core.v1.Container args:[s] command:[s] env:[core.v1.EnvVar];key=name;patch=name "
        "envFrom:[core.v1.EnvFromSource] image:s;o imagePullPolicy:s;o;go=v1.PullPolicy "
        "lifecycle:core.v1.Lifecycle livenessProbe:core.v1.Probe name:s;r;z "
        "ports:[core.v1.ContainerPort];key=containerPort,protocol;patch=containerPort "
        "readinessProbe:core.v1.Probe resizePolicy:[core.v1.ContainerResizePolicy] "
        "resources:core.v1.ResourceRequirements;d restartPolicy:s;go=v1.ContainerRestartPolicy "
        "restartPolicyRules:[core.v1.ContainerRestartRule] securityContext:core.v1.SecurityContext "
        "startupProbe:core.v1.Probe stdin:b;o stdinOnce:b;o terminationMessagePath:s;o "
        "terminationMessagePolicy:s;o;go=v1.TerminationMessagePolicy tty:b;o "
        "volumeDevices:[core.v1.VolumeDevice];key=devicePath;patch=devicePath "
        "volumeMounts:[core.v1.VolumeMount];key=mountPath;patch=mountPath workingDir:s;o",
    "core.v1.ContainerExtendedResourceRequest containerName:s;r;z requestName:s;r;z resourceName:s;r;z",
    "core.v1.ContainerImage names:[s];n sizeBytes:i;o",
    "core.v1.ContainerPort containerPort:j;r;z hostIP:s;o hostPort:j;o name:s;o "
        "protocol:s;o;go=v1.Protocol;default=TCP",
    "core.v1.ContainerResizePolicy resourceName:s;r;z;go=v1.ResourceName "
        "restartPolicy:s;r;z;go=v1.ResourceResizeRestartPolicy",
    "core.v1.ContainerRestartRule action:s;r;o;go=v1.ContainerRestartRuleAction "
        "exitCodes:core.v1.ContainerRestartRuleOnExitCodes",
    "core.v1.ContainerRestartRuleOnExitCodes "
        "operator:s;r;o;go=v1.ContainerRestartRuleOnExitCodesOperator values:[j];set",
    "core.v1.ContainerState running:core.v1.ContainerStateRunning "
        "terminated:core.v1.ContainerStateTerminated waiting:core.v1.ContainerStateWaiting",
    "core.v1.ContainerStateRunning startedAt:t;n",
    "core.v1.ContainerStateTerminated containerID:s;o exitCode:j;r;z finishedAt:t;n message:s;o "
        "reason:s;o signal:j;o startedAt:t;n",
    "core.v1.ContainerStateWaiting message:s;o reason:s;o",
    "core.v1.ContainerStatus allocatedResources:{q} "
        "allocatedResourcesStatus:[core.v1.ResourceStatus];key=name;patch=name containerID:s;o image:s;r;z "
        "imageID:s;r;z lastState:core.v1.ContainerState;d name:s;r;z ready:b;r;z "
        "resources:core.v1.ResourceRequirements restartCount:j;r;z started:b state:core.v1.ContainerState;d "
        "stopSignal:s;go=v1.Signal user:core.v1.ContainerUser "
        "volumeMounts:[core.v1.VolumeMountStatus];key=mountPath;patch=mountPath",
    "core.v1.ContainerUser linux:core.v1.LinuxContainerUser",
    "core.v1.DaemonEndpoint Port:j;r;z",
    "core.v1.DownwardAPIProjection items:[core.v1.DownwardAPIVolumeFile]",
    "core.v1.DownwardAPIVolumeFile fieldRef:core.v1.ObjectFieldSelector mode:j path:s;r;z "
        "resourceFieldRef:core.v1.ResourceFieldSelector",
    "core.v1.DownwardAPIVolumeSource defaultMode:j items:[core.v1.DownwardAPIVolumeFile]",
    "core.v1.EmptyDirVolumeSource medium:s;o;go=v1.StorageMedium sizeLimit:q",
    "core.v1.EndpointAddress;atomic hostname:s;o ip:s;r;z nodeName:s targetRef:core.v1.ObjectReference",
    "core.v1.EndpointPort;atomic appProtocol:s name:s;o port:j;r;z protocol:s;o;go=v1.Protocol",
    "core.v1.EndpointSubset addresses:[core.v1.EndpointAddress] "
        "notReadyAddresses:[core.v1.EndpointAddress] ports:[core.v1.EndpointPort]",
    "core.v1.Endpoints apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "subsets:[core.v1.EndpointSubset]",
    "core.v1.EnvFromSource configMapRef:core.v1.ConfigMapEnvSource prefix:s;o "
        "secretRef:core.v1.SecretEnvSource",
    "core.v1.EnvVar name:s;r;z value:s;o valueFrom:core.v1.EnvVarSource",
    "core.v1.EnvVarSource configMapKeyRef:core.v1.ConfigMapKeySelector "
        "fieldRef:core.v1.ObjectFieldSelector fileKeyRef:core.v1.FileKeySelector "
        "resourceFieldRef:core.v1.ResourceFieldSelector secretKeyRef:core.v1.SecretKeySelector",
    "core.v1.EphemeralContainer args:[s] command:[s] env:[core.v1.EnvVar];key=name;patch=name "
        "envFrom:[core.v1.EnvFromSource] image:s;o imagePullPolicy:s;o;go=v1.PullPolicy "
        "lifecycle:core.v1.Lifecycle livenessProbe:core.v1.Probe name:s;r;z "
        "ports:[core.v1.ContainerPort];key=containerPort,protocol;patch=containerPort "
        "readinessProbe:core.v1.Probe resizePolicy:[core.v1.ContainerResizePolicy] "
        "resources:core.v1.ResourceRequirements;d restartPolicy:s;go=v1.ContainerRestartPolicy "
        "restartPolicyRules:[core.v1.ContainerRestartRule] securityContext:core.v1.SecurityContext "
        "startupProbe:core.v1.Probe stdin:b;o stdinOnce:b;o targetContainerName:s;o "
        "terminationMessagePath:s;o terminationMessagePolicy:s;o;go=v1.TerminationMessagePolicy tty:b;o "
        "volumeDevices:[core.v1.VolumeDevice];key=devicePath;patch=devicePath "
        "volumeMounts:[core.v1.VolumeMount];key=mountPath;patch=mountPath workingDir:s;o",
    "core.v1.EphemeralVolumeSource volumeClaimTemplate:core.v1.PersistentVolumeClaimTemplate",
    "core.v1.Event action:s;o apiVersion:s count:j;o eventTime:m;n firstTimestamp:t;n "
        "involvedObject:core.v1.ObjectReference;d;r kind:s lastTimestamp:t;n message:s;o "
        "metadata:meta.v1.ObjectMeta;d;r reason:s;o related:core.v1.ObjectReference reportingComponent:s;z "
        "reportingInstance:s;z series:core.v1.EventSeries source:core.v1.EventSource;d type:s;o",
    "core.v1.EventSeries count:j;o lastObservedTime:m;n",
    "core.v1.EventSource component:s;o host:s;o",
    "core.v1.ExecAction command:[s]",
    "core.v1.FCVolumeSource fsType:s;o lun:j readOnly:b;o targetWWNs:[s] wwids:[s]",
    "core.v1.FileKeySelector;atomic key:s;r;z optional:b path:s;r;z volumeName:s;r;z",
    "core.v1.FlexPersistentVolumeSource driver:s;r;z fsType:s;o options:{s} readOnly:b;o "
        "secretRef:core.v1.SecretReference",
    "core.v1.FlexVolumeSource driver:s;r;z fsType:s;o options:{s} readOnly:b;o "
        "secretRef:core.v1.LocalObjectReference",
    "core.v1.FlockerVolumeSource datasetName:s;o datasetUUID:s;o",
    "core.v1.GCEPersistentDiskVolumeSource fsType:s;o partition:j;o pdName:s;r;z readOnly:b;o",
    "core.v1.GRPCAction port:j;r;z service:s;n",
    "core.v1.GitRepoVolumeSource directory:s;o repository:s;r;z revision:s;o",
    "core.v1.GlusterfsPersistentVolumeSource endpoints:s;r;z endpointsNamespace:s path:s;r;z "
        "readOnly:b;o",
    "core.v1.GlusterfsVolumeSource endpoints:s;r;z path:s;r;z readOnly:b;o",
    "core.v1.HTTPGetAction host:s;o httpHeaders:[core.v1.HTTPHeader] path:s;o port:x;r;z "
        "scheme:s;o;go=v1.URIScheme",
    "core.v1.HTTPHeader name:s;r;z value:s;r;z",
    "core.v1.HostAlias hostnames:[s] ip:s;r;z",
    "core.v1.HostIP ip:s;r;z",
    "core.v1.HostPathVolumeSource path:s;r;z type:s;go=v1.HostPathType",
    "core.v1.ISCSIPersistentVolumeSource chapAuthDiscovery:b;o chapAuthSession:b;o fsType:s;o "
        "initiatorName:s iqn:s;r;z iscsiInterface:s;o;default=default lun:j;r;z portals:[s] readOnly:b;o "
        "secretRef:core.v1.SecretReference targetPortal:s;r;z",
    "core.v1.ISCSIVolumeSource chapAuthDiscovery:b;o chapAuthSession:b;o fsType:s;o initiatorName:s "
        "iqn:s;r;z iscsiInterface:s;o;default=default lun:j;r;z portals:[s] readOnly:b;o "
        "secretRef:core.v1.LocalObjectReference targetPortal:s;r;z",
    "core.v1.ImageVolumeSource pullPolicy:s;o;go=v1.PullPolicy reference:s;o",
    "core.v1.KeyToPath key:s;r;z mode:j path:s;r;z",
    "core.v1.Lifecycle postStart:core.v1.LifecycleHandler preStop:core.v1.LifecycleHandler "
        "stopSignal:s;go=v1.Signal",
    "core.v1.LifecycleHandler exec:core.v1.ExecAction httpGet:core.v1.HTTPGetAction "
        "sleep:core.v1.SleepAction tcpSocket:core.v1.TCPSocketAction",
    "core.v1.LimitRange apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:core.v1.LimitRangeSpec;d",
    "core.v1.LimitRangeItem default:{q} defaultRequest:{q} max:{q} maxLimitRequestRatio:{q} min:{q} "
        "type:s;r;z;go=v1.LimitType",
    "core.v1.LimitRangeSpec limits:[core.v1.LimitRangeItem];r;n",
    "core.v1.LinuxContainerUser gid:i;r;z supplementalGroups:[i] uid:i;r;z",
    "core.v1.LoadBalancerIngress hostname:s;o ip:s;o ipMode:s;go=v1.LoadBalancerIPMode "
        "ports:[core.v1.PortStatus]",
    "core.v1.LoadBalancerStatus ingress:[core.v1.LoadBalancerIngress]",
    "core.v1.LocalObjectReference;atomic name:s;o",
    "core.v1.LocalVolumeSource fsType:s path:s;r;z",
    "core.v1.ModifyVolumeStatus status:s;r;z;go=v1.PersistentVolumeClaimModifyVolumeStatus "
        "targetVolumeAttributesClassName:s;o",
    "core.v1.NFSVolumeSource path:s;r;z readOnly:b;o server:s;r;z",
    "core.v1.Namespace apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:core.v1.NamespaceSpec;d "
        "status:core.v1.NamespaceStatus;d",
    "core.v1.NamespaceCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.NamespaceConditionType",
    "core.v1.NamespaceSpec finalizers:[s];go=v1.FinalizerName",
    "core.v1.NamespaceStatus conditions:[core.v1.NamespaceCondition];key=type;patch=type "
        "phase:s;o;go=v1.NamespacePhase",
    "core.v1.Node apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:core.v1.NodeSpec;d "
        "status:core.v1.NodeStatus;d",
    "core.v1.NodeAddress address:s;r;z type:s;r;z;go=v1.NodeAddressType",
    "core.v1.NodeAffinity "
        "preferredDuringSchedulingIgnoredDuringExecution:[core.v1.PreferredSchedulingTerm] "
        "requiredDuringSchedulingIgnoredDuringExecution:core.v1.NodeSelector",
    "core.v1.NodeCondition lastHeartbeatTime:t;n lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.NodeConditionType",
    "core.v1.NodeConfigSource configMap:core.v1.ConfigMapNodeConfigSource",
    "core.v1.NodeConfigStatus active:core.v1.NodeConfigSource assigned:core.v1.NodeConfigSource "
        "error:s;o lastKnownGood:core.v1.NodeConfigSource",
    "core.v1.NodeDaemonEndpoints kubeletEndpoint:core.v1.DaemonEndpoint;d",
    "core.v1.NodeFeatures supplementalGroupsPolicy:b",
    "core.v1.NodeRuntimeHandler features:core.v1.NodeRuntimeHandlerFeatures name:s;z",
    "core.v1.NodeRuntimeHandlerFeatures recursiveReadOnlyMounts:b userNamespaces:b",
    "core.v1.NodeSelector;atomic nodeSelectorTerms:[core.v1.NodeSelectorTerm];r;n",
    "core.v1.NodeSelectorRequirement key:s;r;z operator:s;r;z;go=v1.NodeSelectorOperator values:[s]",
    "core.v1.NodeSelectorTerm;atomic matchExpressions:[core.v1.NodeSelectorRequirement] "
        "matchFields:[core.v1.NodeSelectorRequirement]",
    "core.v1.NodeSpec configSource:core.v1.NodeConfigSource externalID:s;o podCIDR:s;o "
        "podCIDRs:[s];set;patch= providerID:s;o taints:[core.v1.Taint] unschedulable:b;o",
    "core.v1.NodeStatus addresses:[core.v1.NodeAddress];key=type;patch=type allocatable:{q} "
        "capacity:{q} conditions:[core.v1.NodeCondition];key=type;patch=type "
        "config:core.v1.NodeConfigStatus daemonEndpoints:core.v1.NodeDaemonEndpoints;d "
        "features:core.v1.NodeFeatures images:[core.v1.ContainerImage] nodeInfo:core.v1.NodeSystemInfo;d "
        "phase:s;o;go=v1.NodePhase runtimeHandlers:[core.v1.NodeRuntimeHandler] "
        "volumesAttached:[core.v1.AttachedVolume] volumesInUse:[s];go=v1.UniqueVolumeName",
    "core.v1.NodeSwapStatus capacity:i",
    "core.v1.NodeSystemInfo architecture:s;r;z bootID:s;r;z containerRuntimeVersion:s;r;z "
        "kernelVersion:s;r;z kubeProxyVersion:s;r;z kubeletVersion:s;r;z machineID:s;r;z "
        "operatingSystem:s;r;z osImage:s;r;z swap:core.v1.NodeSwapStatus systemUUID:s;r;z",
    "core.v1.ObjectFieldSelector;atomic apiVersion:s;o fieldPath:s;r;z",
    "core.v1.ObjectReference;atomic apiVersion:s;o fieldPath:s;o kind:s;o name:s;o namespace:s;o "
        "resourceVersion:s;o uid:s;o;go=types.UID",
    "core.v1.ObjectReference+ apiVersion:s;o fieldPath:s;o kind:s;o name:s;o namespace:s;o "
        "resourceVersion:s;o uid:s;o;go=types.UID",
    "core.v1.PersistentVolume apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:core.v1.PersistentVolumeSpec;d status:core.v1.PersistentVolumeStatus;d",
    "core.v1.PersistentVolumeClaim apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:core.v1.PersistentVolumeClaimSpec;d status:core.v1.PersistentVolumeClaimStatus;d",
    "core.v1.PersistentVolumeClaimCondition lastProbeTime:t;n lastTransitionTime:t;n message:s;o "
        "reason:s;o status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.PersistentVolumeClaimConditionType",
    "core.v1.PersistentVolumeClaimSpec accessModes:[s];go=v1.PersistentVolumeAccessMode "
        "dataSource:core.v1.TypedLocalObjectReference dataSourceRef:core.v1.TypedObjectReference "
        "resources:core.v1.VolumeResourceRequirements;d selector:meta.v1.LabelSelector storageClassName:s "
        "volumeAttributesClassName:s volumeMode:s;go=v1.PersistentVolumeMode volumeName:s;o",
    "core.v1.PersistentVolumeClaimStatus accessModes:[s];go=v1.PersistentVolumeAccessMode "
        "allocatedResourceStatuses:{s} allocatedResources:{q} capacity:{q} "
        "conditions:[core.v1.PersistentVolumeClaimCondition];key=type;patch=type "
        "currentVolumeAttributesClassName:s modifyVolumeStatus:core.v1.ModifyVolumeStatus "
        "phase:s;o;go=v1.PersistentVolumeClaimPhase",
    "core.v1.PersistentVolumeClaimTemplate metadata:meta.v1.ObjectMeta;d "
        "spec:core.v1.PersistentVolumeClaimSpec;d;r",
    "core.v1.PersistentVolumeClaimVolumeSource claimName:s;r;z readOnly:b;o",
    "core.v1.PersistentVolumeSpec accessModes:[s];go=v1.PersistentVolumeAccessMode "
        "awsElasticBlockStore:core.v1.AWSElasticBlockStoreVolumeSource "
        "azureDisk:core.v1.AzureDiskVolumeSource azureFile:core.v1.AzureFilePersistentVolumeSource "
        "capacity:{q} cephfs:core.v1.CephFSPersistentVolumeSource "
        "cinder:core.v1.CinderPersistentVolumeSource claimRef:core.v1.ObjectReference+ "
        "csi:core.v1.CSIPersistentVolumeSource fc:core.v1.FCVolumeSource "
        "flexVolume:core.v1.FlexPersistentVolumeSource flocker:core.v1.FlockerVolumeSource "
        "gcePersistentDisk:core.v1.GCEPersistentDiskVolumeSource "
        "glusterfs:core.v1.GlusterfsPersistentVolumeSource hostPath:core.v1.HostPathVolumeSource "
        "iscsi:core.v1.ISCSIPersistentVolumeSource local:core.v1.LocalVolumeSource mountOptions:[s] "
        "nfs:core.v1.NFSVolumeSource nodeAffinity:core.v1.VolumeNodeAffinity "
        "persistentVolumeReclaimPolicy:s;o;go=v1.PersistentVolumeReclaimPolicy "
        "photonPersistentDisk:core.v1.PhotonPersistentDiskVolumeSource "
        "portworxVolume:core.v1.PortworxVolumeSource quobyte:core.v1.QuobyteVolumeSource "
        "rbd:core.v1.RBDPersistentVolumeSource scaleIO:core.v1.ScaleIOPersistentVolumeSource "
        "storageClassName:s;o storageos:core.v1.StorageOSPersistentVolumeSource volumeAttributesClassName:s "
        "volumeMode:s;go=v1.PersistentVolumeMode vsphereVolume:core.v1.VsphereVirtualDiskVolumeSource",
    "core.v1.PersistentVolumeStatus lastPhaseTransitionTime:t message:s;o "
        "phase:s;o;go=v1.PersistentVolumePhase reason:s;o",
    "core.v1.PhotonPersistentDiskVolumeSource fsType:s;o pdID:s;r;z",
    "core.v1.Pod apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:core.v1.PodSpec;d "
        "status:core.v1.PodStatus;d",
    "core.v1.PodAffinity "
        "preferredDuringSchedulingIgnoredDuringExecution:[core.v1.WeightedPodAffinityTerm] "
        "requiredDuringSchedulingIgnoredDuringExecution:[core.v1.PodAffinityTerm]",
    "core.v1.PodAffinityTerm labelSelector:meta.v1.LabelSelector matchLabelKeys:[s] "
        "mismatchLabelKeys:[s] namespaceSelector:meta.v1.LabelSelector namespaces:[s] topologyKey:s;r;z",
    "core.v1.PodAntiAffinity "
        "preferredDuringSchedulingIgnoredDuringExecution:[core.v1.WeightedPodAffinityTerm] "
        "requiredDuringSchedulingIgnoredDuringExecution:[core.v1.PodAffinityTerm]",
    "core.v1.PodCertificateProjection certificateChainPath:s;o credentialBundlePath:s;o keyPath:s;o "
        "keyType:s;r;o maxExpirationSeconds:j signerName:s;r;o",
    "core.v1.PodCondition lastProbeTime:t;n lastTransitionTime:t;n message:s;o observedGeneration:i;o "
        "reason:s;o status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.PodConditionType",
    "core.v1.PodDNSConfig nameservers:[s] options:[core.v1.PodDNSConfigOption] searches:[s]",
    "core.v1.PodDNSConfigOption name:s;o value:s",
    "core.v1.PodExtendedResourceClaimStatus "
        "requestMappings:[core.v1.ContainerExtendedResourceRequest];r;n resourceClaimName:s;r;z",
    "core.v1.PodIP ip:s;r;z",
    "core.v1.PodOS name:s;r;z;go=v1.OSName",
    "core.v1.PodReadinessGate conditionType:s;r;z;go=v1.PodConditionType",
    "core.v1.PodResourceClaim name:s;r;z resourceClaimName:s resourceClaimTemplateName:s",
    "core.v1.PodResourceClaimStatus name:s;r;z resourceClaimName:s",
    "core.v1.PodSchedulingGate name:s;r;z",
    "core.v1.PodSecurityContext appArmorProfile:core.v1.AppArmorProfile fsGroup:i "
        "fsGroupChangePolicy:s;go=v1.PodFSGroupChangePolicy runAsGroup:i runAsNonRoot:b runAsUser:i "
        "seLinuxChangePolicy:s;go=v1.PodSELinuxChangePolicy seLinuxOptions:core.v1.SELinuxOptions "
        "seccompProfile:core.v1.SeccompProfile supplementalGroups:[i] "
        "supplementalGroupsPolicy:s;go=v1.SupplementalGroupsPolicy sysctls:[core.v1.Sysctl] "
        "windowsOptions:core.v1.WindowsSecurityContextOptions",
    "core.v1.PodSpec activeDeadlineSeconds:i affinity:core.v1.Affinity automountServiceAccountToken:b "
        "containers:[core.v1.Container];r;n;key=name;patch=name dnsConfig:core.v1.PodDNSConfig "
        "dnsPolicy:s;o;go=v1.DNSPolicy enableServiceLinks:b "
        "ephemeralContainers:[core.v1.EphemeralContainer];key=name;patch=name "
        "hostAliases:[core.v1.HostAlias];key=ip;patch=ip hostIPC:b;o hostNetwork:b;o hostPID:b;o "
        "hostUsers:b hostname:s;o hostnameOverride:s "
        "imagePullSecrets:[core.v1.LocalObjectReference];key=name;patch=name "
        "initContainers:[core.v1.Container];key=name;patch=name nodeName:s;o nodeSelector:{s};atomic "
        "os:core.v1.PodOS overhead:{q} preemptionPolicy:s;go=v1.PreemptionPolicy priority:j "
        "priorityClassName:s;o readinessGates:[core.v1.PodReadinessGate] "
        "resourceClaims:[core.v1.PodResourceClaim];key=name;patch=name;retain "
        "resources:core.v1.ResourceRequirements restartPolicy:s;o;go=v1.RestartPolicy runtimeClassName:s "
        "schedulerName:s;o schedulingGates:[core.v1.PodSchedulingGate];key=name;patch=name "
        "securityContext:core.v1.PodSecurityContext serviceAccount:s;o serviceAccountName:s;o "
        "setHostnameAsFQDN:b shareProcessNamespace:b subdomain:s;o terminationGracePeriodSeconds:i "
        "tolerations:[core.v1.Toleration] "
        "topologySpreadConstraints:[core.v1.TopologySpreadConstraint];key=topologyKey,whenUnsatisfiable;patc"
        "h=topologyKey volumes:[core.v1.Volume];key=name;patch=name;retain",
    "core.v1.PodStatus conditions:[core.v1.PodCondition];key=type;patch=type "
        "containerStatuses:[core.v1.ContainerStatus] ephemeralContainerStatuses:[core.v1.ContainerStatus] "
        "extendedResourceClaimStatus:core.v1.PodExtendedResourceClaimStatus hostIP:s;o "
        "hostIPs:[core.v1.HostIP];patch=ip initContainerStatuses:[core.v1.ContainerStatus] message:s;o "
        "nominatedNodeName:s;o observedGeneration:i;o phase:s;o;go=v1.PodPhase podIP:s;o "
        "podIPs:[core.v1.PodIP];key=ip;patch=ip qosClass:s;o;go=v1.PodQOSClass reason:s;o "
        "resize:s;o;go=v1.PodResizeStatus "
        "resourceClaimStatuses:[core.v1.PodResourceClaimStatus];key=name;patch=name;retain startTime:t",
    "core.v1.PodTemplate apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "template:core.v1.PodTemplateSpec;d",
    "core.v1.PodTemplateSpec metadata:meta.v1.ObjectMeta;d spec:core.v1.PodSpec;d",
    "core.v1.PortStatus error:s port:j;r;z protocol:s;r;z;go=v1.Protocol",
    "core.v1.PortworxVolumeSource fsType:s;o readOnly:b;o volumeID:s;r;z",
    "core.v1.PreferredSchedulingTerm preference:core.v1.NodeSelectorTerm;d;r weight:j;r;z",
    "core.v1.Probe exec:core.v1.ExecAction failureThreshold:j;o grpc:core.v1.GRPCAction "
        "httpGet:core.v1.HTTPGetAction initialDelaySeconds:j;o periodSeconds:j;o successThreshold:j;o "
        "tcpSocket:core.v1.TCPSocketAction terminationGracePeriodSeconds:i timeoutSeconds:j;o",
    "core.v1.ProjectedVolumeSource defaultMode:j sources:[core.v1.VolumeProjection];n",
    "core.v1.QuobyteVolumeSource group:s;o readOnly:b;o registry:s;r;z tenant:s;o user:s;o volume:s;r;z",
    "core.v1.RBDPersistentVolumeSource fsType:s;o image:s;r;z keyring:s;o;default=/etc/ceph/keyring "
        "monitors:[s];r;n pool:s;o;default=rbd readOnly:b;o secretRef:core.v1.SecretReference "
        "user:s;o;default=admin",
    "core.v1.RBDVolumeSource fsType:s;o image:s;r;z keyring:s;o;default=/etc/ceph/keyring "
        "monitors:[s];r;n pool:s;o;default=rbd readOnly:b;o secretRef:core.v1.LocalObjectReference "
        "user:s;o;default=admin",
    "core.v1.ReplicationController apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:core.v1.ReplicationControllerSpec;d status:core.v1.ReplicationControllerStatus;d",
    "core.v1.ReplicationControllerCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z;go=v1.ReplicationControllerConditionType",
    "core.v1.ReplicationControllerSpec minReadySeconds:j;o replicas:j;default=1 selector:{s};atomic "
        "template:core.v1.PodTemplateSpec",
    "core.v1.ReplicationControllerStatus availableReplicas:j;o "
        "conditions:[core.v1.ReplicationControllerCondition];key=type;patch=type fullyLabeledReplicas:j;o "
        "observedGeneration:i;o readyReplicas:j;o replicas:j;r;z",
    "core.v1.ResourceClaim name:s;r;z request:s;o",
    "core.v1.ResourceFieldSelector;atomic containerName:s;o divisor:q;z resource:s;r;z",
    "core.v1.ResourceHealth health:s;o;go=v1.ResourceHealthStatus resourceID:s;r;z;go=v1.ResourceID",
    "core.v1.ResourceQuota apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:core.v1.ResourceQuotaSpec;d status:core.v1.ResourceQuotaStatus;d",
    "core.v1.ResourceQuotaSpec hard:{q} scopeSelector:core.v1.ScopeSelector "
        "scopes:[s];go=v1.ResourceQuotaScope",
    "core.v1.ResourceQuotaStatus hard:{q} used:{q}",
    "core.v1.ResourceRequirements claims:[core.v1.ResourceClaim];key=name limits:{q} requests:{q}",
    "core.v1.ResourceStatus name:s;r;z;go=v1.ResourceName "
        "resources:[core.v1.ResourceHealth];key=resourceID",
    "core.v1.SELinuxOptions level:s;o role:s;o type:s;o user:s;o",
    "core.v1.ScaleIOPersistentVolumeSource fsType:s;o;default=xfs gateway:s;r;z protectionDomain:s;o "
        "readOnly:b;o secretRef:core.v1.SecretReference;r;n sslEnabled:b;o "
        "storageMode:s;o;default=ThinProvisioned storagePool:s;o system:s;r;z volumeName:s;o",
    "core.v1.ScaleIOVolumeSource fsType:s;o;default=xfs gateway:s;r;z protectionDomain:s;o readOnly:b;o "
        "secretRef:core.v1.LocalObjectReference;r;n sslEnabled:b;o storageMode:s;o;default=ThinProvisioned "
        "storagePool:s;o system:s;r;z volumeName:s;o",
    "core.v1.ScopeSelector;atomic matchExpressions:[core.v1.ScopedResourceSelectorRequirement]",
    "core.v1.ScopedResourceSelectorRequirement operator:s;r;z;go=v1.ScopeSelectorOperator "
        "scopeName:s;r;z;go=v1.ResourceQuotaScope values:[s]",
    "core.v1.SeccompProfile localhostProfile:s type:s;r;z;go=v1.SeccompProfileType",
    "core.v1.Secret apiVersion:s data:{B} immutable:b kind:s metadata:meta.v1.ObjectMeta;d "
        "stringData:{s} type:s;o;go=v1.SecretType",
    "core.v1.SecretEnvSource name:s;o optional:b",
    "core.v1.SecretKeySelector;atomic key:s;r;z name:s;o optional:b",
    "core.v1.SecretProjection items:[core.v1.KeyToPath] name:s;o optional:b",
    "core.v1.SecretReference;atomic name:s;o namespace:s;o",
    "core.v1.SecretVolumeSource defaultMode:j items:[core.v1.KeyToPath] optional:b secretName:s;o",
    "core.v1.SecurityContext allowPrivilegeEscalation:b appArmorProfile:core.v1.AppArmorProfile "
        "capabilities:core.v1.Capabilities privileged:b procMount:s;go=v1.ProcMountType "
        "readOnlyRootFilesystem:b runAsGroup:i runAsNonRoot:b runAsUser:i "
        "seLinuxOptions:core.v1.SELinuxOptions seccompProfile:core.v1.SeccompProfile "
        "windowsOptions:core.v1.WindowsSecurityContextOptions",
    "core.v1.Service apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d spec:core.v1.ServiceSpec;d "
        "status:core.v1.ServiceStatus;d",
    "core.v1.ServiceAccount apiVersion:s automountServiceAccountToken:b "
        "imagePullSecrets:[core.v1.LocalObjectReference] kind:s metadata:meta.v1.ObjectMeta;d "
        "secrets:[core.v1.ObjectReference];key=name;patch=name",
    "core.v1.ServiceAccountTokenProjection audience:s;o expirationSeconds:i path:s;r;z",
    "core.v1.ServicePort appProtocol:s name:s;o nodePort:j;o port:j;r;z "
        "protocol:s;o;go=v1.Protocol;default=TCP targetPort:x;z",
    "core.v1.ServiceSpec allocateLoadBalancerNodePorts:b clusterIP:s;o clusterIPs:[s] externalIPs:[s] "
        "externalName:s;o externalTrafficPolicy:s;o;go=v1.ServiceExternalTrafficPolicy "
        "healthCheckNodePort:j;o internalTrafficPolicy:s;go=v1.ServiceInternalTrafficPolicy "
        "ipFamilies:[s];go=v1.IPFamily ipFamilyPolicy:s;go=v1.IPFamilyPolicy loadBalancerClass:s "
        "loadBalancerIP:s;o loadBalancerSourceRanges:[s] "
        "ports:[core.v1.ServicePort];key=port,protocol;patch=port publishNotReadyAddresses:b;o "
        "selector:{s};atomic sessionAffinity:s;o;go=v1.ServiceAffinity "
        "sessionAffinityConfig:core.v1.SessionAffinityConfig trafficDistribution:s "
        "type:s;o;go=v1.ServiceType",
    "core.v1.ServiceStatus conditions:[meta.v1.Condition];key=type;patch=type "
        "loadBalancer:core.v1.LoadBalancerStatus;d",
    "core.v1.SessionAffinityConfig clientIP:core.v1.ClientIPConfig",
    "core.v1.SleepAction seconds:i;r;z",
    "core.v1.StorageOSPersistentVolumeSource fsType:s;o readOnly:b;o secretRef:core.v1.ObjectReference "
        "volumeName:s;o volumeNamespace:s;o",
    "core.v1.StorageOSVolumeSource fsType:s;o readOnly:b;o secretRef:core.v1.LocalObjectReference "
        "volumeName:s;o volumeNamespace:s;o",
    "core.v1.Sysctl name:s;r;z value:s;r;z",
    "core.v1.TCPSocketAction host:s;o port:x;r;z",
    "core.v1.Taint effect:s;r;z;go=v1.TaintEffect key:s;r;z timeAdded:t value:s;o",
    "core.v1.Toleration effect:s;o;go=v1.TaintEffect key:s;o operator:s;o;go=v1.TolerationOperator "
        "tolerationSeconds:i value:s;o",
    "core.v1.TopologySelectorLabelRequirement key:s;r;z values:[s];r;n",
    "core.v1.TopologySelectorTerm;atomic "
        "matchLabelExpressions:[core.v1.TopologySelectorLabelRequirement]",
    "core.v1.TopologySpreadConstraint labelSelector:meta.v1.LabelSelector matchLabelKeys:[s] "
        "maxSkew:j;r;z minDomains:j nodeAffinityPolicy:s;go=v1.NodeInclusionPolicy "
        "nodeTaintsPolicy:s;go=v1.NodeInclusionPolicy topologyKey:s;r;z "
        "whenUnsatisfiable:s;r;z;go=v1.UnsatisfiableConstraintAction",
    "core.v1.TypedLocalObjectReference;atomic apiGroup:s;n kind:s;r;z name:s;r;z",
    "core.v1.TypedObjectReference apiGroup:s;n kind:s;r;z name:s;r;z namespace:s",
    "core.v1.Volume awsElasticBlockStore:core.v1.AWSElasticBlockStoreVolumeSource "
        "azureDisk:core.v1.AzureDiskVolumeSource azureFile:core.v1.AzureFileVolumeSource "
        "cephfs:core.v1.CephFSVolumeSource cinder:core.v1.CinderVolumeSource "
        "configMap:core.v1.ConfigMapVolumeSource csi:core.v1.CSIVolumeSource "
        "downwardAPI:core.v1.DownwardAPIVolumeSource emptyDir:core.v1.EmptyDirVolumeSource "
        "ephemeral:core.v1.EphemeralVolumeSource fc:core.v1.FCVolumeSource "
        "flexVolume:core.v1.FlexVolumeSource flocker:core.v1.FlockerVolumeSource "
        "gcePersistentDisk:core.v1.GCEPersistentDiskVolumeSource gitRepo:core.v1.GitRepoVolumeSource "
        "glusterfs:core.v1.GlusterfsVolumeSource hostPath:core.v1.HostPathVolumeSource "
        "image:core.v1.ImageVolumeSource iscsi:core.v1.ISCSIVolumeSource name:s;r;z "
        "nfs:core.v1.NFSVolumeSource persistentVolumeClaim:core.v1.PersistentVolumeClaimVolumeSource "
        "photonPersistentDisk:core.v1.PhotonPersistentDiskVolumeSource "
        "portworxVolume:core.v1.PortworxVolumeSource projected:core.v1.ProjectedVolumeSource "
        "quobyte:core.v1.QuobyteVolumeSource rbd:core.v1.RBDVolumeSource "
        "scaleIO:core.v1.ScaleIOVolumeSource secret:core.v1.SecretVolumeSource "
        "storageos:core.v1.StorageOSVolumeSource vsphereVolume:core.v1.VsphereVirtualDiskVolumeSource",
    "core.v1.VolumeDevice devicePath:s;r;z name:s;r;z",
    "core.v1.VolumeMount mountPath:s;r;z mountPropagation:s;go=v1.MountPropagationMode name:s;r;z "
        "readOnly:b;o recursiveReadOnly:s;go=v1.RecursiveReadOnlyMode subPath:s;o subPathExpr:s;o",
    "core.v1.VolumeMountStatus mountPath:s;r;z name:s;r;z readOnly:b;o "
        "recursiveReadOnly:s;go=v1.RecursiveReadOnlyMode",
    "core.v1.VolumeNodeAffinity required:core.v1.NodeSelector",
    "core.v1.VolumeProjection clusterTrustBundle:core.v1.ClusterTrustBundleProjection "
        "configMap:core.v1.ConfigMapProjection downwardAPI:core.v1.DownwardAPIProjection "
        "podCertificate:core.v1.PodCertificateProjection secret:core.v1.SecretProjection "
        "serviceAccountToken:core.v1.ServiceAccountTokenProjection",
    "core.v1.VolumeResourceRequirements limits:{q} requests:{q}",
    "core.v1.VsphereVirtualDiskVolumeSource fsType:s;o storagePolicyID:s;o storagePolicyName:s;o "
        "volumePath:s;r;z",
    "core.v1.WeightedPodAffinityTerm podAffinityTerm:core.v1.PodAffinityTerm;d;r weight:j;r;z",
    "core.v1.WindowsSecurityContextOptions gmsaCredentialSpec:s gmsaCredentialSpecName:s hostProcess:b "
        "runAsUserName:s",
    "discovery.v1.Endpoint addresses:[s];r;n;set conditions:discovery.v1.EndpointConditions;d "
        "deprecatedTopology:{s} hints:discovery.v1.EndpointHints hostname:s nodeName:s "
        "targetRef:core.v1.ObjectReference zone:s",
    "discovery.v1.EndpointConditions ready:b serving:b terminating:b",
    "discovery.v1.EndpointHints forNodes:[discovery.v1.ForNode] forZones:[discovery.v1.ForZone]",
    "discovery.v1.EndpointPort;atomic appProtocol:s name:s port:j protocol:s;go=v1.Protocol",
    "discovery.v1.EndpointSlice addressType:s;r;z;go=v1.AddressType apiVersion:s "
        "endpoints:[discovery.v1.Endpoint];r;n kind:s metadata:meta.v1.ObjectMeta;d "
        "ports:[discovery.v1.EndpointPort];n",
    "discovery.v1.ForNode name:s;r;z",
    "discovery.v1.ForZone name:s;r;z",
    "events.v1.Event action:s;o apiVersion:s deprecatedCount:j;o deprecatedFirstTimestamp:t;n "
        "deprecatedLastTimestamp:t;n deprecatedSource:core.v1.EventSource;d eventTime:m;r;n kind:s "
        "metadata:meta.v1.ObjectMeta;d note:s;o reason:s;o regarding:core.v1.ObjectReference;d "
        "related:core.v1.ObjectReference reportingController:s;o reportingInstance:s;o "
        "series:events.v1.EventSeries type:s;o",
    "events.v1.EventSeries count:j;r;z lastObservedTime:m;r;n",
    "flowcontrol.v1.ExemptPriorityLevelConfiguration lendablePercent:j nominalConcurrencyShares:j",
    "flowcontrol.v1.FlowDistinguisherMethod type:s;r;z;go=v1.FlowDistinguisherMethodType",
    "flowcontrol.v1.FlowSchema apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:flowcontrol.v1.FlowSchemaSpec;d status:flowcontrol.v1.FlowSchemaStatus;d",
    "flowcontrol.v1.FlowSchemaCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;o;go=v1.ConditionStatus type:s;o;go=v1.FlowSchemaConditionType",
    "flowcontrol.v1.FlowSchemaSpec distinguisherMethod:flowcontrol.v1.FlowDistinguisherMethod "
        "matchingPrecedence:j;z "
        "priorityLevelConfiguration:flowcontrol.v1.PriorityLevelConfigurationReference;d;r "
        "rules:[flowcontrol.v1.PolicyRulesWithSubjects]",
    "flowcontrol.v1.FlowSchemaStatus conditions:[flowcontrol.v1.FlowSchemaCondition];key=type;patch=type",
    "flowcontrol.v1.GroupSubject name:s;r;z",
    "flowcontrol.v1.LimitResponse queuing:flowcontrol.v1.QueuingConfiguration "
        "type:s;r;z;go=v1.LimitResponseType",
    "flowcontrol.v1.LimitedPriorityLevelConfiguration borrowingLimitPercent:j lendablePercent:j "
        "limitResponse:flowcontrol.v1.LimitResponse;d nominalConcurrencyShares:j;n",
    "flowcontrol.v1.NonResourcePolicyRule nonResourceURLs:[s];r;n;set verbs:[s];r;n;set",
    "flowcontrol.v1.PolicyRulesWithSubjects nonResourceRules:[flowcontrol.v1.NonResourcePolicyRule] "
        "resourceRules:[flowcontrol.v1.ResourcePolicyRule] subjects:[flowcontrol.v1.Subject];r;n",
    "flowcontrol.v1.PriorityLevelConfiguration apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:flowcontrol.v1.PriorityLevelConfigurationSpec;d "
        "status:flowcontrol.v1.PriorityLevelConfigurationStatus;d",
    "flowcontrol.v1.PriorityLevelConfigurationCondition lastTransitionTime:t;n message:s;o reason:s;o "
        "status:s;o;go=v1.ConditionStatus type:s;o;go=v1.PriorityLevelConfigurationConditionType",
    "flowcontrol.v1.PriorityLevelConfigurationReference name:s;r;z",
    "flowcontrol.v1.PriorityLevelConfigurationSpec "
        "exempt:flowcontrol.v1.ExemptPriorityLevelConfiguration "
        "limited:flowcontrol.v1.LimitedPriorityLevelConfiguration type:s;r;z;go=v1.PriorityLevelEnablement",
    "flowcontrol.v1.PriorityLevelConfigurationStatus "
        "conditions:[flowcontrol.v1.PriorityLevelConfigurationCondition];key=type;patch=type",
    "flowcontrol.v1.QueuingConfiguration handSize:j;z queueLengthLimit:j;z queues:j;z",
    "flowcontrol.v1.ResourcePolicyRule apiGroups:[s];r;n;set clusterScope:b;o namespaces:[s];n;set "
        "resources:[s];r;n;set verbs:[s];r;n;set",
    "flowcontrol.v1.ServiceAccountSubject name:s;r;z namespace:s;r;z",
    "flowcontrol.v1.Subject group:flowcontrol.v1.GroupSubject kind:s;r;z;go=v1.SubjectKind "
        "serviceAccount:flowcontrol.v1.ServiceAccountSubject user:flowcontrol.v1.UserSubject",
    "flowcontrol.v1.UserSubject name:s;r;z",
    "meta.v1.Condition lastTransitionTime:t;r;n message:s;r;z observedGeneration:i;o reason:s;r;z "
        "status:s;r;z;go=v1.ConditionStatus type:s;r;z",
    "meta.v1.DeleteOptions apiVersion:s dryRun:[s] gracePeriodSeconds:i "
        "ignoreStoreReadErrorWithClusterBreakingPotential:b kind:s orphanDependents:b "
        "preconditions:meta.v1.Preconditions propagationPolicy:s;go=v1.DeletionPropagation",
    "meta.v1.FieldSelectorRequirement key:s;r;z operator:s;r;z;go=v1.FieldSelectorOperator values:[s]",
    "meta.v1.LabelSelector;atomic matchExpressions:[meta.v1.LabelSelectorRequirement] matchLabels:{s}",
    "meta.v1.LabelSelectorRequirement key:s;r;z operator:s;r;z;go=v1.LabelSelectorOperator values:[s]",
    "meta.v1.ManagedFieldsEntry apiVersion:s;o fieldsType:s;o fieldsV1:o manager:s;o "
        "operation:s;o;go=v1.ManagedFieldsOperationType subresource:s;o time:t",
    "meta.v1.ObjectMeta annotations:{s} creationTimestamp:t deletionGracePeriodSeconds:i "
        "deletionTimestamp:t finalizers:[s];set;patch= generateName:s;o generation:i;o labels:{s} "
        "managedFields:[meta.v1.ManagedFieldsEntry] name:s;o namespace:s;o "
        "ownerReferences:[meta.v1.OwnerReference];key=uid;patch=uid resourceVersion:s;o selfLink:s;o "
        "uid:s;o;go=types.UID",
    "meta.v1.OwnerReference;atomic apiVersion:s;r;z blockOwnerDeletion:b controller:b kind:s;r;z "
        "name:s;r;z uid:s;r;z;go=types.UID",
    "meta.v1.Preconditions resourceVersion:s uid:s;go=types.UID",
    "networking.v1.HTTPIngressPath backend:networking.v1.IngressBackend;d;r path:s;o "
        "pathType:s;r;n;go=v1.PathType",
    "networking.v1.HTTPIngressRuleValue paths:[networking.v1.HTTPIngressPath];r;n",
    "networking.v1.IPAddress apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:networking.v1.IPAddressSpec;d",
    "networking.v1.IPAddressSpec parentRef:networking.v1.ParentReference;r",
    "networking.v1.IPBlock cidr:s;r;z except:[s]",
    "networking.v1.Ingress apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:networking.v1.IngressSpec;d status:networking.v1.IngressStatus;d",
    "networking.v1.IngressBackend resource:core.v1.TypedLocalObjectReference "
        "service:networking.v1.IngressServiceBackend",
    "networking.v1.IngressClass apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:networking.v1.IngressClassSpec;d",
    "networking.v1.IngressClassParametersReference apiGroup:s kind:s;r;z name:s;r;z namespace:s "
        "scope:s;n",
    "networking.v1.IngressClassSpec controller:s;o "
        "parameters:networking.v1.IngressClassParametersReference",
    "networking.v1.IngressLoadBalancerIngress hostname:s;o ip:s;o "
        "ports:[networking.v1.IngressPortStatus]",
    "networking.v1.IngressLoadBalancerStatus ingress:[networking.v1.IngressLoadBalancerIngress]",
    "networking.v1.IngressPortStatus error:s port:j;r;z protocol:s;r;z;go=v1.Protocol",
    "networking.v1.IngressRule host:s;o http:networking.v1.HTTPIngressRuleValue",
    "networking.v1.IngressServiceBackend name:s;r;z port:networking.v1.ServiceBackendPort;d",
    "networking.v1.IngressSpec defaultBackend:networking.v1.IngressBackend ingressClassName:s "
        "rules:[networking.v1.IngressRule] tls:[networking.v1.IngressTLS]",
    "networking.v1.IngressStatus loadBalancer:networking.v1.IngressLoadBalancerStatus;d",
    "networking.v1.IngressTLS hosts:[s] secretName:s;o",
    "networking.v1.NetworkPolicy apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:networking.v1.NetworkPolicySpec;d",
    "networking.v1.NetworkPolicyEgressRule ports:[networking.v1.NetworkPolicyPort] "
        "to:[networking.v1.NetworkPolicyPeer]",
    "networking.v1.NetworkPolicyIngressRule from:[networking.v1.NetworkPolicyPeer] "
        "ports:[networking.v1.NetworkPolicyPort]",
    "networking.v1.NetworkPolicyPeer ipBlock:networking.v1.IPBlock "
        "namespaceSelector:meta.v1.LabelSelector podSelector:meta.v1.LabelSelector",
    "networking.v1.NetworkPolicyPort endPort:j port:x protocol:s;go=v1.Protocol",
    "networking.v1.NetworkPolicySpec egress:[networking.v1.NetworkPolicyEgressRule] "
        "ingress:[networking.v1.NetworkPolicyIngressRule] podSelector:meta.v1.LabelSelector;d "
        "policyTypes:[s];go=v1.PolicyType",
    "networking.v1.ParentReference group:s;o name:s;r;o namespace:s;o resource:s;r;o",
    "networking.v1.ServiceBackendPort;atomic name:s;o number:j;o",
    "networking.v1.ServiceCIDR apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:networking.v1.ServiceCIDRSpec;d status:networking.v1.ServiceCIDRStatus;d",
    "networking.v1.ServiceCIDRSpec cidrs:[s]",
    "networking.v1.ServiceCIDRStatus conditions:[meta.v1.Condition];key=type;patch=type",
    "node.v1.Overhead podFixed:{q}",
    "node.v1.RuntimeClass apiVersion:s handler:s;r;z kind:s metadata:meta.v1.ObjectMeta;d "
        "overhead:node.v1.Overhead scheduling:node.v1.Scheduling",
    "node.v1.Scheduling nodeSelector:{s};atomic tolerations:[core.v1.Toleration]",
    "policy.v1.Eviction apiVersion:s deleteOptions:meta.v1.DeleteOptions kind:s "
        "metadata:meta.v1.ObjectMeta;d",
    "policy.v1.PodDisruptionBudget apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:policy.v1.PodDisruptionBudgetSpec;d status:policy.v1.PodDisruptionBudgetStatus;d",
    "policy.v1.PodDisruptionBudgetSpec maxUnavailable:x minAvailable:x selector:meta.v1.LabelSelector "
        "unhealthyPodEvictionPolicy:s;go=v1.UnhealthyPodEvictionPolicyType",
    "policy.v1.PodDisruptionBudgetStatus conditions:[meta.v1.Condition];key=type;patch=type "
        "currentHealthy:j;r;z desiredHealthy:j;r;z disruptedPods:{t} disruptionsAllowed:j;r;z "
        "expectedPods:j;r;z observedGeneration:i;o",
    "rbac.v1.AggregationRule clusterRoleSelectors:[meta.v1.LabelSelector]",
    "rbac.v1.ClusterRole aggregationRule:rbac.v1.AggregationRule apiVersion:s kind:s "
        "metadata:meta.v1.ObjectMeta;d rules:[rbac.v1.PolicyRule];n",
    "rbac.v1.ClusterRoleBinding apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "roleRef:rbac.v1.RoleRef;d;r subjects:[rbac.v1.Subject]",
    "rbac.v1.PolicyRule apiGroups:[s] nonResourceURLs:[s] resourceNames:[s] resources:[s] verbs:[s];r;n",
    "rbac.v1.Role apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d rules:[rbac.v1.PolicyRule];n",
    "rbac.v1.RoleBinding apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d roleRef:rbac.v1.RoleRef;d;r "
        "subjects:[rbac.v1.Subject]",
    "rbac.v1.RoleRef;atomic apiGroup:s;r;z kind:s;r;z name:s;r;z",
    "rbac.v1.Subject;atomic apiGroup:s;o kind:s;r;z name:s;r;z namespace:s;o",
    "resource.v1.AllocatedDeviceStatus conditions:[meta.v1.Condition];n;key=type data:o device:s;r;z "
        "driver:s;r;z networkData:resource.v1.NetworkDeviceData pool:s;r;z shareID:s",
    "resource.v1.AllocationResult allocationTimestamp:t devices:resource.v1.DeviceAllocationResult;d "
        "nodeSelector:core.v1.NodeSelector",
    "resource.v1.CELDeviceSelector expression:s;r;z",
    "resource.v1.CapacityRequestPolicy default:q;n validRange:resource.v1.CapacityRequestPolicyRange "
        "validValues:[q]",
    "resource.v1.CapacityRequestPolicyRange max:q min:q;r step:q",
    "resource.v1.CapacityRequirements requests:{q}",
    "resource.v1.Counter value:q;r;z",
    "resource.v1.CounterSet counters:{resource.v1.Counter};r name:s;r;z",
    "resource.v1.Device allNodes:b allowMultipleAllocations:b attributes:{resource.v1.DeviceAttribute} "
        "bindingConditions:[s] bindingFailureConditions:[s] bindsToNode:b "
        "capacity:{resource.v1.DeviceCapacity} consumesCounters:[resource.v1.DeviceCounterConsumption] "
        "name:s;r;z nodeName:s nodeSelector:core.v1.NodeSelector taints:[resource.v1.DeviceTaint]",
    "resource.v1.DeviceAllocationConfiguration opaque:resource.v1.OpaqueDeviceConfiguration "
        "requests:[s] source:s;r;z;go=v1.AllocationConfigSource",
    "resource.v1.DeviceAllocationResult config:[resource.v1.DeviceAllocationConfiguration] "
        "results:[resource.v1.DeviceRequestAllocationResult]",
    "resource.v1.DeviceAttribute bool:b int:i string:s version:s",
    "resource.v1.DeviceCapacity requestPolicy:resource.v1.CapacityRequestPolicy value:q;r;z",
    "resource.v1.DeviceClaim config:[resource.v1.DeviceClaimConfiguration] "
        "constraints:[resource.v1.DeviceConstraint] requests:[resource.v1.DeviceRequest];n",
    "resource.v1.DeviceClaimConfiguration opaque:resource.v1.OpaqueDeviceConfiguration requests:[s]",
    "resource.v1.DeviceClass apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:resource.v1.DeviceClassSpec;d;r",
    "resource.v1.DeviceClassConfiguration opaque:resource.v1.OpaqueDeviceConfiguration",
    "resource.v1.DeviceClassSpec config:[resource.v1.DeviceClassConfiguration] extendedResourceName:s "
        "selectors:[resource.v1.DeviceSelector]",
    "resource.v1.DeviceConstraint distinctAttribute:s;go=v1.FullyQualifiedName "
        "matchAttribute:s;go=v1.FullyQualifiedName requests:[s]",
    "resource.v1.DeviceCounterConsumption counterSet:s;r;z counters:{resource.v1.Counter};r",
    "resource.v1.DeviceRequest exactly:resource.v1.ExactDeviceRequest "
        "firstAvailable:[resource.v1.DeviceSubRequest] name:s;r;z",
    "resource.v1.DeviceRequestAllocationResult adminAccess:b bindingConditions:[s] "
        "bindingFailureConditions:[s] consumedCapacity:{q} device:s;r;z driver:s;r;z pool:s;r;z "
        "request:s;r;z shareID:s;go=types.UID tolerations:[resource.v1.DeviceToleration]",
    "resource.v1.DeviceSelector cel:resource.v1.CELDeviceSelector",
    "resource.v1.DeviceSubRequest allocationMode:s;o;go=v1.DeviceAllocationMode "
        "capacity:resource.v1.CapacityRequirements count:i;o deviceClassName:s;r;z name:s;r;z "
        "selectors:[resource.v1.DeviceSelector] tolerations:[resource.v1.DeviceToleration]",
    "resource.v1.DeviceTaint effect:s;r;z;go=v1.DeviceTaintEffect key:s;r;z timeAdded:t value:s;o",
    "resource.v1.DeviceToleration effect:s;o;go=v1.DeviceTaintEffect key:s;o "
        "operator:s;o;go=v1.DeviceTolerationOperator;default=Equal tolerationSeconds:i value:s;o",
    "resource.v1.ExactDeviceRequest adminAccess:b allocationMode:s;o;go=v1.DeviceAllocationMode "
        "capacity:resource.v1.CapacityRequirements count:i;o deviceClassName:s;r;z "
        "selectors:[resource.v1.DeviceSelector] tolerations:[resource.v1.DeviceToleration]",
    "resource.v1.NetworkDeviceData hardwareAddress:s;o interfaceName:s;o ips:[s]",
    "resource.v1.OpaqueDeviceConfiguration driver:s;r;z parameters:o;r;n",
    "resource.v1.ResourceClaim apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:resource.v1.ResourceClaimSpec;d;r status:resource.v1.ResourceClaimStatus;d",
    "resource.v1.ResourceClaimConsumerReference apiGroup:s;o name:s;r;z resource:s;r;z "
        "uid:s;r;z;go=types.UID",
    "resource.v1.ResourceClaimSpec devices:resource.v1.DeviceClaim;d",
    "resource.v1.ResourceClaimStatus allocation:resource.v1.AllocationResult "
        "devices:[resource.v1.AllocatedDeviceStatus];key=driver,device,pool,shareID "
        "reservedFor:[resource.v1.ResourceClaimConsumerReference];key=uid;patch=uid",
    "resource.v1.ResourceClaimTemplate apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:resource.v1.ResourceClaimTemplateSpec;d;r",
    "resource.v1.ResourceClaimTemplateSpec metadata:meta.v1.ObjectMeta;d "
        "spec:resource.v1.ResourceClaimSpec;d;r",
    "resource.v1.ResourcePool generation:i;r;z name:s;r;z resourceSliceCount:i;r;z",
    "resource.v1.ResourceSlice apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:resource.v1.ResourceSliceSpec;d;r",
    "resource.v1.ResourceSliceSpec allNodes:b devices:[resource.v1.Device];n driver:s;r;z nodeName:s "
        "nodeSelector:core.v1.NodeSelector perDeviceNodeSelection:b pool:resource.v1.ResourcePool;d;r "
        "sharedCounters:[resource.v1.CounterSet]",
    "scheduling.v1.PriorityClass apiVersion:s description:s;o globalDefault:b;o kind:s "
        "metadata:meta.v1.ObjectMeta;d preemptionPolicy:s;go=v1.PreemptionPolicy value:j;r;z",
    "storage.v1.CSIDriver apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:storage.v1.CSIDriverSpec;d;r",
    "storage.v1.CSIDriverSpec attachRequired:b fsGroupPolicy:s;go=v1.FSGroupPolicy "
        "nodeAllocatableUpdatePeriodSeconds:i podInfoOnMount:b requiresRepublish:b seLinuxMount:b "
        "storageCapacity:b tokenRequests:[storage.v1.TokenRequest] "
        "volumeLifecycleModes:[s];go=v1.VolumeLifecycleMode;set",
    "storage.v1.CSINode apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:storage.v1.CSINodeSpec;d;r",
    "storage.v1.CSINodeDriver allocatable:storage.v1.VolumeNodeResources name:s;r;z nodeID:s;r;z "
        "topologyKeys:[s];n",
    "storage.v1.CSINodeSpec drivers:[storage.v1.CSINodeDriver];r;n;key=name;patch=name",
    "storage.v1.CSIStorageCapacity apiVersion:s capacity:q kind:s maximumVolumeSize:q "
        "metadata:meta.v1.ObjectMeta;d nodeTopology:meta.v1.LabelSelector storageClassName:s;r;z",
    "storage.v1.StorageClass allowVolumeExpansion:b allowedTopologies:[core.v1.TopologySelectorTerm] "
        "apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d mountOptions:[s] parameters:{s} "
        "provisioner:s;r;z reclaimPolicy:s;go=v1.PersistentVolumeReclaimPolicy "
        "volumeBindingMode:s;go=v1.VolumeBindingMode",
    "storage.v1.TokenRequest audience:s;r;z expirationSeconds:i",
    "storage.v1.VolumeAttachment apiVersion:s kind:s metadata:meta.v1.ObjectMeta;d "
        "spec:storage.v1.VolumeAttachmentSpec;d;r status:storage.v1.VolumeAttachmentStatus;d",
    "storage.v1.VolumeAttachmentSource inlineVolumeSpec:core.v1.PersistentVolumeSpec "
        "persistentVolumeName:s",
    "storage.v1.VolumeAttachmentSpec attacher:s;r;z nodeName:s;r;z "
        "source:storage.v1.VolumeAttachmentSource;d;r",
    "storage.v1.VolumeAttachmentStatus attachError:storage.v1.VolumeError attached:b;r;z "
        "attachmentMetadata:{s} detachError:storage.v1.VolumeError",
    "storage.v1.VolumeAttributesClass apiVersion:s driverName:s;r;z kind:s "
        "metadata:meta.v1.ObjectMeta;d parameters:{s}",
    "storage.v1.VolumeError errorCode:j message:s;o time:t;n",
    "storage.v1.VolumeNodeResources count:j",
    NULL,
};
/* clang-format on */
