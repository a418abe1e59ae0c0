// recon: the reconciler of lua/recon.lua with controller-runtime: one write per object.
package main

import (
	"context"
	"flag"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	kubeconfig := flag.String("bench-kubeconfig", "", "")
	inFlight := flag.Int("in-flight", 1, "")
	flag.Parse()
	log.SetLogger(zap.New())
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS = -1
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme.Scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{"bench": {}}},
	})
	must(err)
	c := m.GetClient()
	write := func(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
		var o corev1.ConfigMap
		if err := c.Get(ctx, r.NamespacedName, &o); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if o.Labels["bench"] != "reconcile" || o.Data["done"] != "" {
			return ctrl.Result{}, nil
		}
		patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"done":"1"}}`))
		return ctrl.Result{}, c.Patch(ctx, &o, patch, client.FieldOwner("bench"))
	}
	must(ctrl.NewControllerManagedBy(m).
		For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: *inFlight}).
		Complete(reconcile.Func(write)))
	must(m.Start(ctrl.SetupSignalHandler()))
}
