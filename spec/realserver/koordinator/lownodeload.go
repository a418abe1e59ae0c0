package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	slov1alpha1 "github.com/koordinator-sh/koordinator/apis/slo/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/client/clientset/versioned"
	slo "github.com/koordinator-sh/koordinator/pkg/client/clientset/versioned/typed/slo/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/descheduler/apis/config"
	"github.com/koordinator-sh/koordinator/pkg/descheduler/apis/config/v1alpha2"
	"github.com/koordinator-sh/koordinator/pkg/descheduler/evictions"
	"github.com/koordinator-sh/koordinator/pkg/descheduler/framework"
	"github.com/koordinator-sh/koordinator/pkg/descheduler/framework/plugins/loadaware"
)

// ---- passes of LowNodeLoad

type balanceInput struct {
	Now          time.Time                `json:"now"`
	Args         v1alpha2.LowNodeLoadArgs `json:"args"`
	MaxEvictions *int                     `json:"maxEvictions"`
	Passes       int                      `json:"passes"`
	Looks        int                      `json:"looks"`
	Nodes        []*corev1.Node           `json:"nodes"`
	Pods         []*corev1.Pod            `json:"pods"`
	NodeMetrics  []slov1alpha1.NodeMetric `json:"nodeMetrics"`
}

// metrics answers the one list and the one watch of the plugin's informer.
type metrics struct {
	versioned.Interface
	slo.SloV1alpha1Interface
	slo.NodeMetricInterface
	list []slov1alpha1.NodeMetric
}

func (m metrics) SloV1alpha1() slo.SloV1alpha1Interface { return m }
func (m metrics) NodeMetrics() slo.NodeMetricInterface  { return m }
func (m metrics) IsWatchListSemanticsUnSupported() bool { return true }
func (m metrics) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewFake(), nil
}

func (m metrics) List(context.Context, metav1.ListOptions) (*slov1alpha1.NodeMetricList, error) {
	return &slov1alpha1.NodeMetricList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: m.list}, nil
}

// koordinatorClient is what the plugin looks for in its handle.
type koordinatorClient = versioned.Interface

type descheduler struct {
	framework.Handle
	koordinatorClient
	pods    map[string][]*corev1.Pod
	filter  *evictions.EvictorFilter
	most    *int
	evicted []string
}

func (d *descheduler) IsWatchListSemanticsUnSupported() bool { return true }
func (d *descheduler) Evictor() framework.Evictor            { return d }
func (d *descheduler) Filter(pod *corev1.Pod) bool           { return d.filter.Filter(pod) }
func (d *descheduler) PreEvictionFilter(*corev1.Pod) bool    { return true }

func (d *descheduler) Evict(_ context.Context, pod *corev1.Pod, _ framework.EvictOptions) bool {
	if d.most != nil && len(d.evicted) >= *d.most {
		return false
	}
	d.evicted = append(d.evicted, pod.Namespace+"/"+pod.Name)
	return true
}

func (d *descheduler) GetPodsAssignedToNodeFunc() framework.GetPodsAssignedToNodeFunc {
	return func(node string, filter framework.FilterFunc) ([]*corev1.Pod, error) {
		var out []*corev1.Pod
		for _, pod := range d.pods[node] {
			if filter == nil || filter(pod) {
				out = append(out, pod)
			}
		}
		return out, nil
	}
}

func (in *balanceInput) args() (*config.LowNodeLoadArgs, error) {
	given := in.Args.DeepCopy()
	v1alpha2.SetDefaults_LowNodeLoadArgs(given)
	args := &config.LowNodeLoadArgs{}
	return args, v1alpha2.Convert_v1alpha2_LowNodeLoadArgs_To_config_LowNodeLoadArgs(given, args, nil)
}

func (in *balanceInput) shift() {
	by := time.Since(in.Now)
	for i := range in.NodeMetrics {
		if at := in.NodeMetrics[i].Status.UpdateTime; at != nil {
			in.NodeMetrics[i].Status.UpdateTime = &metav1.Time{Time: at.Add(by)}
		}
	}
}

// run makes all the passes once; who goes in which of them.
func (in *balanceInput) run() (string, error) {
	filter, err := evictions.NewEvictorFilter(nil, nil, false, false, false, false, false)
	if err != nil {
		return "", err
	}
	args, err := in.args()
	if err != nil {
		return "", err
	}
	handle := &descheduler{koordinatorClient: metrics{list: in.NodeMetrics}, pods: map[string][]*corev1.Pod{},
		filter: filter, most: in.MaxEvictions}
	for _, pod := range in.Pods {
		handle.pods[pod.Spec.NodeName] = append(handle.pods[pod.Spec.NodeName], pod)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	made, err := loadaware.NewLowNodeLoad(ctx, args, handle)
	if err != nil {
		return "", err
	}
	plugin := made.(framework.BalancePlugin)
	passes := make([]string, max(in.Passes, 1))
	for i := range passes {
		handle.evicted = nil
		plugin.Balance(ctx, in.Nodes)
		passes[i] = strings.Join(handle.evicted, " ")
	}
	return strings.Join(passes, "\n"), nil
}

// The plugin looks at nodes in the random order of a map, so that one input may have several outcomes.
func balance(text json.RawMessage) answer {
	var in balanceInput
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	in.shift()
	seen := map[string]bool{}
	out := answer{}
	for i := 0; i < max(in.Looks, 1); i++ {
		outcome, err := in.run()
		if err != nil {
			return answer{Error: err.Error()}
		}
		if !seen[outcome] {
			seen[outcome] = true
			out.Outcomes = append(out.Outcomes, outcome)
		}
	}
	return out
}
