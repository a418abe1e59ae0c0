// koordinator answers calculations with Koordinator's own functions: each line of stdin is {calc, input},
// each line of stdout what came out. The inputs are those of spec/fixtures/koordinator;
// spec/controllers/koordinator_differential_spec.lua holds our policies against it.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/koordinator-sh/koordinator/apis/configuration"
	"github.com/koordinator-sh/koordinator/apis/extension"
	slov1alpha1 "github.com/koordinator-sh/koordinator/apis/slo/v1alpha1"
	"github.com/koordinator-sh/koordinator/apis/thirdparty/scheduler-plugins/pkg/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/elasticquota/core"
	"github.com/koordinator-sh/koordinator/pkg/slo-controller/noderesource/framework"
	"github.com/koordinator-sh/koordinator/pkg/slo-controller/noderesource/plugins/batchresource"
	"github.com/koordinator-sh/koordinator/pkg/slo-controller/noderesource/plugins/midresource"
)

type answer struct {
	Error     string                                  `json:"error,omitempty"`
	Resources map[string]string                       `json:"resources,omitempty"`
	Messages  map[string]string                       `json:"messages,omitempty"`
	Reset     []string                                `json:"reset,omitempty"`
	Quotas    map[string]map[string]map[string]string `json:"quotas,omitempty"`
	Estimate  map[string]int64                        `json:"estimate,omitempty"`
	Refused   []string                                `json:"refused,omitempty"`
	Late      bool                                    `json:"late,omitempty"` // refused after the filter
	Score     *int64                                  `json:"score,omitempty"`
	Outcomes  []string                                `json:"outcomes,omitempty"`
	Pod       json.RawMessage                         `json:"pod,omitempty"`
	Status    *extension.ResourceStatus               `json:"status,omitempty"`
	Spec      string                                  `json:"spec,omitempty"`
	Devices   extension.DeviceAllocations             `json:"devices,omitempty"`
}

// ---- batch and mid of a node

type nodeInput struct {
	Now        time.Time                         `json:"now"`
	Strategy   *configuration.ColocationStrategy `json:"strategy"`
	Node       *corev1.Node                      `json:"node"`
	Pods       []corev1.Pod                      `json:"pods"`
	NodeMetric *slov1alpha1.NodeMetric           `json:"nodeMetric"`
}

// noTopology is a cluster in which no node has a NodeResourceTopology.
type noTopology struct{ client.Client }

func (noTopology) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

type plugin interface {
	Calculate(*configuration.ColocationStrategy, *corev1.Node, *corev1.PodList,
		*framework.ResourceMetrics) ([]framework.ResourceItem, error)
}

func setup() error {
	s := runtime.NewScheme()
	return (&batchresource.Plugin{}).Setup(&framework.Option{
		Client:  noTopology{},
		Scheme:  s,
		Builder: ctrl.NewControllerManagedBy(nil),
	})
}

func calculate(p plugin, text json.RawMessage) answer {
	var in nodeInput
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	// The plugins read the real clock: the metric is as old now as it was then.
	if in.NodeMetric != nil && in.NodeMetric.Status.UpdateTime != nil {
		age := in.Now.Sub(in.NodeMetric.Status.UpdateTime.Time)
		in.NodeMetric.Status.UpdateTime = &metav1.Time{Time: time.Now().Add(-age)}
	}
	items, err := p.Calculate(in.Strategy, in.Node, &corev1.PodList{Items: in.Pods},
		&framework.ResourceMetrics{NodeMetric: in.NodeMetric})
	if err != nil {
		return answer{Error: err.Error()}
	}
	out := answer{Resources: map[string]string{}, Messages: map[string]string{}}
	for _, item := range items {
		name := string(item.Name)
		if item.Reset {
			out.Reset = append(out.Reset, name)
		} else {
			out.Resources[name] = item.Quantity.String()
		}
		out.Messages[name] = item.Message
	}
	return out
}

// ---- the quota tree

type quotaInput struct {
	TotalResource        corev1.ResourceList            `json:"totalResource"`
	Quotas               []v1alpha1.ElasticQuota        `json:"quotas"`
	PodRequests          map[string]corev1.ResourceList `json:"podRequests"`
	PodUsed              map[string]corev1.ResourceList `json:"podUsed"`
	ScaleMinQuotaEnabled bool                           `json:"scaleMinQuotaEnabled"`
}

func pod(name, node string, list corev1.ResourceList) *corev1.Pod {
	asks := corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: list}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{asks}},
	}
}

func texts(list corev1.ResourceList) map[string]string {
	out := map[string]string{}
	for name, q := range list {
		out[string(name)] = q.String()
	}
	return out
}

// beside is what a quota's pods ask for without those that run.
func beside(request, used corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range request {
		left := q.DeepCopy()
		if u, ok := used[name]; ok {
			left.Sub(u)
		}
		out[name] = left
	}
	return out
}

func settle(tree *core.GroupQuotaManager, list []v1alpha1.ElasticQuota) {
	for was, is := "", "."; was != is; {
		was, is = is, ""
		for i := range list {
			is += fmt.Sprintln(texts(tree.RefreshRuntime(list[i].Name)))
		}
	}
}

func quotas(text json.RawMessage) answer {
	var in quotaInput
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	most := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1M"),
		corev1.ResourceMemory: resource.MustParse("1P"),
	}
	tree := core.NewGroupQuotaManager("", in.ScaleMinQuotaEnabled, most, most)
	tree.UpdateClusterTotalResource(in.TotalResource)
	for i := range in.Quotas {
		if err := tree.UpdateQuota(&in.Quotas[i]); err != nil {
			return answer{Error: err.Error()}
		}
	}
	for i := range in.Quotas {
		name := in.Quotas[i].Name
		if used, ok := in.PodUsed[name]; ok {
			tree.OnPodAdd(name, pod(name+"-runs", "n", used))
		}
		if asked, ok := in.PodRequests[name]; ok {
			tree.OnPodAdd(name, pod(name+"-waits", "", beside(asked, in.PodUsed[name])))
		}
	}
	// A pass may leave siblings behind what it changed, which the next one finds: until nothing changes.
	settle(tree, in.Quotas)
	out := answer{Quotas: map[string]map[string]map[string]string{}}
	for i := range in.Quotas {
		name := in.Quotas[i].Name
		s, _ := tree.GetQuotaSummary(name, false)
		out.Quotas[name] = map[string]map[string]string{
			"runtime":      texts(s.Runtime),
			"request":      texts(s.Request),
			"childRequest": texts(s.ChildRequest),
			"used":         texts(s.Used),
			"autoScaleMin": texts(s.AutoScaleMin),
		}
	}
	return out
}

// ----

func answered(line []byte) answer {
	var question struct {
		Calc  string          `json:"calc"`
		Input json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(line, &question); err != nil {
		return answer{Error: err.Error()}
	}
	switch question.Calc {
	case "batchresource":
		return calculate(&batchresource.Plugin{}, question.Input)
	case "midresource":
		return calculate(&midresource.Plugin{}, question.Input)
	case "elastic_quota":
		return quotas(question.Input)
	case "loadaware":
		return load(question.Input)
	case "low_node_load_passes":
		return balance(question.Input)
	case "devices":
		return devices(question.Input)
	case "numa":
		return numa(question.Input)
	case "pod_webhook":
		return profile(question.Input)
	}
	return answer{Error: "no such calculation: " + question.Calc}
}

// So many questions are worked on side by side: some of them wait for an informer most of the time.
const side = 256

func main() {
	flags := flag.NewFlagSet("klog", flag.ExitOnError)
	klog.InitFlags(flags)
	_ = flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL", "-v=0"})
	klog.SetOutput(nothing{})
	if err := setup(); err != nil {
		fmt.Fprintln(os.Stderr, "koordinator:", err)
		os.Exit(1)
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	answers := make(chan chan answer, side)
	go func() {
		defer close(answers)
		for in.Scan() {
			line, one := bytes.Clone(in.Bytes()), make(chan answer, 1)
			answers <- one
			go func() { one <- answered(line) }()
		}
	}()
	encoder := json.NewEncoder(out)
	for one := range answers {
		if err := encoder.Encode(<-one); err != nil {
			fmt.Fprintln(os.Stderr, "koordinator:", err)
			os.Exit(1)
		}
	}
	if err := in.Err(); err != nil {
		fmt.Fprintln(os.Stderr, "koordinator:", err)
		os.Exit(1)
	}
}

type nothing struct{}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }
