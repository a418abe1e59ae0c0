package main

import (
	"context"
	"encoding/json"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	configv1alpha1 "github.com/koordinator-sh/koordinator/apis/config/v1alpha1"
	"github.com/koordinator-sh/koordinator/pkg/webhook/pod/mutating"
)

// ---- a new pod, as the mutating webhook answers for it

type profileInput struct {
	Pod             *corev1.Pod                               `json:"pod"`
	Profiles        []configv1alpha1.ClusterColocationProfile `json:"profiles"`
	Namespaces      []corev1.Namespace                        `json:"namespaces"`
	PriorityClasses []schedulingv1.PriorityClass              `json:"priorityClasses"`
}

// cluster has what the webhook reads.
type cluster struct {
	client.Client
	in profileInput
}

func (c cluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if profiles, ok := list.(*configv1alpha1.ClusterColocationProfileList); ok {
		profiles.Items = c.in.Profiles
	}
	return nil
}

func (c cluster) Get(
	_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption,
) error {
	switch object := into.(type) {
	case *corev1.Namespace:
		for i := range c.in.Namespaces {
			if c.in.Namespaces[i].Name == key.Name {
				*object = c.in.Namespaces[i]
				return nil
			}
		}
	case *schedulingv1.PriorityClass:
		for i := range c.in.PriorityClasses {
			if c.in.PriorityClasses[i].Name == key.Name {
				*object = c.in.PriorityClasses[i]
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func profile(text json.RawMessage) answer {
	var in profileInput
	if err := json.Unmarshal(text, &in); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	raw, err := json.Marshal(in.Pod)
	if err != nil {
		return answer{Error: "input: " + err.Error()}
	}
	webhook := &mutating.PodMutatingHandler{Client: cluster{in: in}, Decoder: admission.NewDecoder(scheme)}
	request := admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Namespace: in.Pod.Namespace,
		Resource:  metav1.GroupVersionResource{Version: "v1", Resource: "pods"},
		Object:    runtime.RawExtension{Raw: raw},
	}
	said := webhook.Handle(context.Background(), admission.Request{AdmissionRequest: request})
	if !said.Allowed {
		return answer{Error: said.Result.Message}
	}
	if len(said.Patches) > 0 {
		patches, err := json.Marshal(said.Patches)
		if err != nil {
			return answer{Error: "input: " + err.Error()}
		}
		patch, err := jsonpatch.DecodePatch(patches)
		if err != nil {
			return answer{Error: "input: " + err.Error()}
		}
		if raw, err = patch.Apply(raw); err != nil {
			return answer{Error: "input: " + err.Error()}
		}
	}
	return answer{Pod: raw}
}
