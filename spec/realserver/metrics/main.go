// Command metrics prints what the metrics of controller-runtime and client-go look like, one family a line:
//
//	NAME<tab>TYPE<tab>LABELS<tab>BUCKETS<tab>HELP
//
// It uses everything once that records one, and asks the registry. `make generate` keeps the answer in
// spec/fixtures/metrics/controller_runtime.txt.
package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clientmetrics "k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/metrics/legacyregistry"
	_ "k8s.io/component-base/metrics/prometheus/clientgo/leaderelection"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	dto "github.com/prometheus/client_model/go"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func reconcileOnce() {
	ctx, cancel := context.WithCancel(context.Background())
	ran, ended := make(chan struct{}, 1), make(chan error)
	run := func(context.Context, reconcile.Request) (reconcile.Result, error) {
		ran <- struct{}{}
		return reconcile.Result{}, nil
	}
	c, err := controller.NewUnmanaged("one", controller.Options{Reconciler: reconcile.Func(run)})
	must(err)
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	must(c.Watch(source.Func(func(_ context.Context, q queue) error {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}})
		return nil
	})))
	go func() { ended <- c.Start(ctx) }()
	<-ran
	cancel()
	must(<-ended)
}

func makeRequests() {
	metrics.RegisterRESTClientMetrics(
		metrics.MetricRequestLatency, metrics.MetricDNSResolutionLatency, metrics.MetricRequestSize,
		metrics.MetricResponseSize, metrics.MetricRateLimiterLatency, metrics.MetricRequestRetry)
	ctx, u := context.Background(), url.URL{Host: "server"}
	clientmetrics.RequestResult.Increment(ctx, "200", "GET", u.Host)
	clientmetrics.RequestRetry.IncrementRetry(ctx, "429", "GET", u.Host)
	clientmetrics.RequestLatency.Observe(ctx, "GET", u, time.Second)
	clientmetrics.RateLimiterLatency.Observe(ctx, "GET", u, time.Second)
	clientmetrics.ResolverLatency.Observe(ctx, u.Host, time.Second)
	clientmetrics.RequestSize.Observe(ctx, "GET", u.Host, 1)
	clientmetrics.ResponseSize.Observe(ctx, "GET", u.Host, 1)
}

func admit() {
	s := webhook.NewServer(webhook.Options{})
	allow := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	s.Register("/one", http.HandlerFunc(allow))
	s.WebhookMux().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/one", nil))
}

func readCertificate() {
	dir, err := os.MkdirTemp("", "metrics")
	must(err)
	defer os.RemoveAll(dir)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	t := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	must(err)
	der, err := x509.MarshalECPrivateKey(key)
	must(err)
	crt, pkey := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	must(os.WriteFile(crt, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	must(os.WriteFile(pkey, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	_, err = certwatcher.New(crt, pkey)
	must(err)
}

// elect takes a lease and renews it; the first renewal meets a conflict, so that it is not client-go's fast
// path.
func elect() {
	ctx, cancel := context.WithCancel(context.Background())
	client, updates := fake.NewClientset(), 0
	client.PrependReactor("update", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
		if updates++; updates == 1 {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "one", nil)
		}
		cancel()
		return false, nil, nil
	})
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "one"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: "me"},
	}
	e, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          lock,
		Name:          "one",
		LeaseDuration: 15 * time.Second,
		RenewDeadline: 10 * time.Second,
		RetryPeriod:   10 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	})
	must(err)
	e.Run(ctx)
}

func buckets(m *dto.Metric) string {
	var all []string
	for _, b := range m.GetHistogram().GetBucket() {
		all = append(all, strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
	}
	return strings.Join(all, ",")
}

func show(out *bytes.Buffer, families []*dto.MetricFamily, wanted func(name string) bool) {
	for _, f := range families {
		if !wanted(f.GetName()) {
			continue
		}
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		slices.Sort(labels)
		columns := []string{
			f.GetName(),
			strings.ToLower(f.GetType().String()),
			strings.Join(labels, ","),
			buckets(f.GetMetric()[0]),
			strings.TrimPrefix(f.GetHelp(), "[ALPHA] "),
		}
		fmt.Fprintln(out, strings.Join(columns, "\t"))
	}
}

const head = `# Metrics of sigs.k8s.io/controller-runtime and k8s.io/client-go, ` +
	`Copyright The Kubernetes Authors, Apache License 2.0; process_*:
# github.com/prometheus/client_golang, Copyright The Prometheus Authors, Apache License 2.0. ` +
	`Written by spec/realserver/metrics.
`

func main() {
	reconcileOnce()
	makeRequests()
	admit()
	readCertificate()
	elect()
	fmt.Print(head)
	var out bytes.Buffer
	families, err := metrics.Registry.Gather()
	must(err)
	show(&out, families, func(name string) bool { return !strings.HasPrefix(name, "go_") })
	families, err = legacyregistry.DefaultGatherer.Gather()
	must(err)
	show(&out, families, func(name string) bool { return strings.HasPrefix(name, "leader_election_") })
	lines := strings.SplitAfter(out.String(), "\n")
	slices.Sort(lines)
	fmt.Print(strings.Join(lines, ""))
}
