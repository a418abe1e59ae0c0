package main

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	slov1alpha1 "github.com/koordinator-sh/koordinator/apis/slo/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/client/clientset/versioned"
	koordinformers "github.com/koordinator-sh/koordinator/pkg/client/informers/externalversions"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	configv1 "github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config/v1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/frameworkext"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/loadaware"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/loadaware/estimator"
)

// ---- one node, as the plugin LoadAwareScheduling sees it

type loadInput struct {
	Now        time.Time                         `json:"now"`
	Args       *configv1.LoadAwareSchedulingArgs `json:"args"`
	Node       *corev1.Node                      `json:"node"`
	Pods       []corev1.Pod                      `json:"pods"`
	NodeMetric *slov1alpha1.NodeMetric           `json:"nodeMetric"`
	Pod        *corev1.Pod                       `json:"pod"`
}

// The plugin reads its informers when it is made. These have what the input has, and never start.
type podInformers struct {
	informers.SharedInformerFactory
}

func (podInformers) Start(<-chan struct{}) {}

type metricInformers struct {
	koordinformers.SharedInformerFactory
}

func (metricInformers) Start(<-chan struct{}) {}

type handle struct {
	frameworkext.ExtendedHandle
	pods    podInformers
	metrics metricInformers
	nodes   snapshot
}

func (h handle) SharedInformerFactory() informers.SharedInformerFactory { return h.pods }
func (h handle) KoordinatorSharedInformerFactory() koordinformers.SharedInformerFactory {
	return h.metrics
}
func (h handle) SnapshotSharedLister() fwktype.SharedLister             { return h.nodes }
func (h handle) RegisterForgetPodHandler(frameworkext.ForgetPodHandler) {}

type snapshot struct {
	fwktype.SharedLister
	fwktype.NodeInfoLister
	info fwktype.NodeInfo
}

func (s snapshot) NodeInfos() fwktype.NodeInfoLister    { return s }
func (s snapshot) Get(string) (fwktype.NodeInfo, error) { return s.info, nil }
func (s snapshot) List() ([]fwktype.NodeInfo, error)    { return []fwktype.NodeInfo{s.info}, nil }

// shift moves the times of the input to the present, since the plugin reads the real clock.
func (in *loadInput) shift() {
	by := time.Since(in.Now)
	if m := in.NodeMetric; m != nil && m.Status.UpdateTime != nil {
		m.Status.UpdateTime = &metav1.Time{Time: m.Status.UpdateTime.Add(by)}
	}
	for i := range in.Pods {
		for k := range in.Pods[i].Status.Conditions {
			at := &in.Pods[i].Status.Conditions[k].LastTransitionTime
			if !at.IsZero() {
				*at = metav1.Time{Time: at.Add(by)}
			}
		}
	}
}

func (in *loadInput) args() (*config.LoadAwareSchedulingArgs, error) {
	given := in.Args
	if given == nil {
		given = &configv1.LoadAwareSchedulingArgs{}
	}
	configv1.SetDefaults_LoadAwareSchedulingArgs(given)
	args := &config.LoadAwareSchedulingArgs{}
	convert := configv1.Convert_v1_LoadAwareSchedulingArgs_To_config_LoadAwareSchedulingArgs
	return args, convert(given, args, nil)
}

func (in *loadInput) handle(info fwktype.NodeInfo) (handle, error) {
	h := handle{
		pods:    podInformers{informers.NewSharedInformerFactory(&kubernetes.Clientset{}, 0)},
		metrics: metricInformers{koordinformers.NewSharedInformerFactory(&versioned.Clientset{}, 0)},
		nodes:   snapshot{info: info},
	}
	pods := h.pods.Core().V1().Pods().Informer().GetStore()
	for i := range in.Pods {
		if err := pods.Add(&in.Pods[i]); err != nil {
			return h, err
		}
	}
	metrics := h.metrics.Slo().V1alpha1().NodeMetrics().Informer().GetStore()
	if in.NodeMetric != nil {
		return h, metrics.Add(in.NodeMetric)
	}
	return h, nil
}

func load(text json.RawMessage) answer {
	var in loadInput
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	in.shift()
	args, err := in.args()
	if err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	info := framework.NewNodeInfo()
	info.SetNode(in.Node)
	h, err := in.handle(info)
	if err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	made, err := loadaware.New(context.Background(), args, h)
	if err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	estimates, err := estimator.NewDefaultEstimator(args, h)
	if err != nil {
		return answer{Error: err.Error()}
	}
	estimate, err := estimates.EstimatePod(in.Pod)
	if err != nil {
		return answer{Error: err.Error()}
	}
	plugin, cycle := made.(*loadaware.Plugin), framework.NewCycleState()
	out := answer{Estimate: map[string]int64{}, Refused: []string{}}
	for name, n := range estimate {
		out.Estimate[string(name)] = n
	}
	if status := plugin.Filter(context.Background(), cycle, in.Pod, info); !status.IsSuccess() {
		out.Refused = status.Reasons()
	}
	score, status := plugin.Score(context.Background(), cycle, in.Pod, info)
	if !status.IsSuccess() {
		return answer{Error: status.Message()}
	}
	out.Score = &score
	return out
}
