package clients

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: cards.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: cards, singular: card, kind: Card}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {who: {type: string, default: world}}}
`

// controller-runtime's envtest starts and stops what $KUBEBUILDER_ASSETS has.
func TestEnvtest(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cards.yaml"), []byte(definition), 0o600); err != nil {
		t.Fatal(err)
	}
	env := &envtest.Environment{CRDDirectoryPaths: []string{dir}, ErrorIfCRDPathMissing: true}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	}()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	card := &unstructured.Unstructured{}
	card.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Card"})
	card.SetNamespace("default")
	card.SetName("a")
	card.Object["spec"] = map[string]any{}
	if err := c.Create(context.Background(), card); err != nil {
		t.Fatal(err)
	}
	if who, _, _ := unstructured.NestedString(card.Object, "spec", "who"); who != "world" {
		t.Fatalf("the default was not filled in: %q", who)
	}

	// a user without rights has none
	user, err := env.AddUser(envtest.User{Name: "ann", Groups: []string{"people"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	hers, err := client.New(user.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	if err := hers.Create(context.Background(), m); err == nil {
		t.Fatal("ann may write")
	}
}
