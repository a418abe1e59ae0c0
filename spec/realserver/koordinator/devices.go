package main

import (
	"context"
	"encoding/json"

	fwktype "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/koordinator-sh/koordinator/apis/extension"
	schedulingv1alpha1 "github.com/koordinator-sh/koordinator/apis/scheduling/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config"
	configv1 "github.com/koordinator-sh/koordinator/pkg/scheduler/apis/config/v1"
	"github.com/koordinator-sh/koordinator/pkg/scheduler/plugins/deviceshare"
)

// ---- one node, as the plugins NodeNUMAResource and DeviceShare together see it

type deviceInput struct {
	numaInput
	Device *schedulingv1alpha1.Device `json:"device"`
	Most   bool                       `json:"most"` // whether the strategy is MostAllocated
}

func (in *deviceInput) plugins() (*numaHandle, *deviceshare.Plugin, error) {
	h, err := in.start()
	if err != nil {
		return nil, nil, err
	}
	// The plugin forgets the devices of nodes that its informer does not have.
	if err := h.pods.Core().V1().Nodes().Informer().GetStore().Add(in.Node); err != nil {
		return nil, nil, err
	}
	if in.Device != nil {
		store := h.metrics.Scheduling().V1alpha1().Devices().Informer().GetStore()
		if err := store.Add(in.Device); err != nil {
			return nil, nil, err
		}
	}
	given, args := &configv1.DeviceShareArgs{}, &config.DeviceShareArgs{}
	configv1.SetDefaults_DeviceShareArgs(given)
	if in.Most {
		given.ScoringStrategy.Type = configv1.MostAllocated
	}
	if err := configv1.Convert_v1_DeviceShareArgs_To_config_DeviceShareArgs(given, args, nil); err != nil {
		return nil, nil, err
	}
	made, err := deviceshare.New(context.Background(), args, h)
	if err != nil {
		return nil, nil, err
	}
	plugin := made.(*deviceshare.Plugin)
	h.providers = append(h.providers, plugin)
	return h, plugin, nil
}

func devices(text json.RawMessage) answer {
	var in deviceInput
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	h, plugin, err := in.plugins()
	if err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	ctx, state, name := context.Background(), framework.NewCycleState(), in.Node.Name
	refused := func(status *fwktype.Status) answer { return answer{Refused: status.Reasons()} }
	if _, status := h.plugin.PreFilter(ctx, state, in.Pod, nil); !status.IsSuccess() && !status.IsSkip() {
		return refused(status)
	}
	if _, status := plugin.PreFilter(ctx, state, in.Pod, nil); !status.IsSuccess() && !status.IsSkip() {
		return refused(status)
	}
	if status := h.plugin.Filter(ctx, state, in.Pod, h.nodes.info); !status.IsSuccess() {
		return refused(status)
	}
	if status := plugin.Filter(ctx, state, in.Pod, h.nodes.info); !status.IsSuccess() {
		return refused(status)
	}
	refused = func(status *fwktype.Status) answer { return answer{Refused: status.Reasons(), Late: true} }
	score, status := plugin.Score(ctx, state, in.Pod, h.nodes.info)
	if !status.IsSuccess() {
		return refused(status)
	}
	if status := h.plugin.Reserve(ctx, state, in.Pod, name); !status.IsSuccess() {
		return refused(status)
	}
	if status := plugin.Reserve(ctx, state, in.Pod, name); !status.IsSuccess() {
		return refused(status)
	}
	if status := plugin.PreBind(ctx, state, in.Pod, name); !status.IsSuccess() {
		return refused(status)
	}
	got, err := extension.GetDeviceAllocations(in.Pod.Annotations)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return answer{Score: &score, Devices: got}
}
