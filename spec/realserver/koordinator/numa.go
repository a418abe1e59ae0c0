package main

import (
	"context"
	"encoding/json"

	nrtv1alpha1 "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology/v1alpha1"
	nrtclientset "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/generated/clientset/versioned"
	nrtinformers "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/generated/informers/externalversions"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/koordinator-sh/koordinator/apis/extension"
	"github.com/koordinator-sh/koordinator/pkg/client/clientset/versioned"
	koordinformers "github.com/koordinator-sh/koordinator/pkg/client/informers/externalversions"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	configv1 "github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config/v1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext/topologymanager"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/nodenumaresource"
)

// ---- one node, as the plugin NodeNUMAResource sees it

type numaInput struct {
	Node     *corev1.Node                      `json:"node"`
	Topology *nrtv1alpha1.NodeResourceTopology `json:"topology"`
	Pods     []corev1.Pod                      `json:"pods"`
	Pod      *corev1.Pod                       `json:"pod"`
}

type topologyInformers struct {
	nrtinformers.SharedInformerFactory
}

func (topologyInformers) Start(<-chan struct{}) {}

// numaHandle is the scheduler of one plugin and one node. What both embedded types have is said here, and
// what a plugin may ask a whole scheduler for.
type numaHandle struct {
	frameworkext.FrameworkExtender
	handle
	topologies topologyInformers
	plugin     *nodenumaresource.Plugin
	providers  []topologymanager.NUMATopologyHintProvider
}

func (h *numaHandle) SharedInformerFactory() informers.SharedInformerFactory { return h.pods }
func (h *numaHandle) KoordinatorSharedInformerFactory() koordinformers.SharedInformerFactory {
	return h.metrics
}
func (h *numaHandle) SnapshotSharedLister() fwktype.SharedLister             { return h.nodes }
func (h *numaHandle) RegisterForgetPodHandler(frameworkext.ForgetPodHandler) {}
func (h *numaHandle) GetReservationCache() frameworkext.ReservationCache     { return nil }
func (h *numaHandle) GetReservationNominator() frameworkext.ReservationNominator {
	return noNominator{}
}
func (h *numaHandle) NodeResourceTopologyInformerFactory() nrtinformers.SharedInformerFactory {
	return h.topologies
}

func (h *numaHandle) GetNUMATopologyHintProvider() []topologymanager.NUMATopologyHintProvider {
	return h.providers
}

func (h *numaHandle) RunNUMATopologyManagerAdmit(ctx context.Context, state fwktype.CycleState,
	pod *corev1.Pod, node *corev1.Node, numaNodes []int, policy extension.NUMATopologyPolicy,
	exclusive extension.NumaTopologyExclusive, all []extension.NumaNodeStatus) *fwktype.Status {
	return topologymanager.New(h).Admit(ctx, state, pod, node, numaNodes, policy, exclusive, all)
}

// noNominator knows no Reservation.
type noNominator struct {
	frameworkext.ReservationNominator
}

func (noNominator) GetNominatedReservation(*corev1.Pod, string) *frameworkext.ReservationInfo {
	return nil
}

func (in *numaInput) start() (*numaHandle, error) {
	info := framework.NewNodeInfo()
	for i := range in.Pods {
		pod, err := framework.NewPodInfo(&in.Pods[i])
		if err != nil {
			return nil, err
		}
		info.AddPodInfo(pod)
	}
	info.SetNode(in.Node)
	h := &numaHandle{
		handle: handle{
			pods:    podInformers{informers.NewSharedInformerFactory(&kubernetes.Clientset{}, 0)},
			metrics: metricInformers{koordinformers.NewSharedInformerFactory(&versioned.Clientset{}, 0)},
			nodes:   snapshot{info: info},
		},
		topologies: topologyInformers{nrtinformers.NewSharedInformerFactory(&nrtclientset.Clientset{}, 0)},
	}
	for i := range in.Pods {
		if err := h.pods.Core().V1().Pods().Informer().GetStore().Add(&in.Pods[i]); err != nil {
			return nil, err
		}
	}
	if in.Topology != nil {
		store := h.topologies.Topology().V1alpha1().NodeResourceTopologies().Informer().GetStore()
		if err := store.Add(in.Topology); err != nil {
			return nil, err
		}
	}
	given, args := &configv1.NodeNUMAResourceArgs{}, &config.NodeNUMAResourceArgs{}
	configv1.SetDefaults_NodeNUMAResourceArgs(given)
	convert := configv1.Convert_v1_NodeNUMAResourceArgs_To_config_NodeNUMAResourceArgs
	if err := convert(given, args, nil); err != nil {
		return nil, err
	}
	made, err := nodenumaresource.New(context.Background(), args, h)
	if err != nil {
		return nil, err
	}
	h.plugin = made.(*nodenumaresource.Plugin)
	h.providers = []topologymanager.NUMATopologyHintProvider{h.plugin}
	return h, nil
}

func numa(text json.RawMessage) answer {
	var in numaInput
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	h, err := in.start()
	if err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	ctx, state, name := context.Background(), framework.NewCycleState(), in.Node.Name
	refused := func(status *fwktype.Status) answer { return answer{Refused: status.Reasons()} }
	if _, status := h.plugin.PreFilter(ctx, state, in.Pod, nil); status.IsSkip() {
		return answer{Status: &extension.ResourceStatus{}}
	} else if !status.IsSuccess() {
		return refused(status)
	}
	if status := h.plugin.Filter(ctx, state, in.Pod, h.nodes.info); !status.IsSuccess() {
		return refused(status)
	}
	refused = func(status *fwktype.Status) answer { return answer{Refused: status.Reasons(), Late: true} }
	score, status := h.plugin.Score(ctx, state, in.Pod, h.nodes.info)
	if !status.IsSuccess() {
		return refused(status)
	}
	if status := h.plugin.Reserve(ctx, state, in.Pod, name); !status.IsSuccess() {
		return refused(status)
	}
	if status := h.plugin.PreBind(ctx, state, in.Pod, name); !status.IsSuccess() {
		return refused(status)
	}
	got, err := extension.GetResourceStatus(in.Pod.Annotations)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Score: &score, Status: got, Spec: in.Pod.Annotations[extension.AnnotationResourceSpec]}
}
