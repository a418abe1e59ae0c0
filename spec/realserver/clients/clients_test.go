// Programs of client-go as people write them, against the server of $KUBECONFIG. Each test has a namespace of
// its own. What they find is said by the spec (spec/e2e/clients_spec.lua), which runs them against the
// embedded server and against kube-apiserver.
package clients

import (
	"context"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	coreapply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/retry"
)

const writers = 8 // of TestOrder, which makes $WRITES writes

func config(t *testing.T, media string) *rest.Config {
	c, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	must(t, err)
	c.QPS, c.Burst = 10000, 10000
	c.ContentType = media
	if media != "application/json" {
		c.AcceptContentTypes = media + ",application/json"
	}
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, what string, ok bool, err error) {
	t.Helper()
	if !ok {
		t.Fatalf("%s: %v", what, err)
	}
}

// A namespace of the test's own, until it ends.
func begin(t *testing.T, c *rest.Config) (context.Context, kubernetes.Interface, string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	k, err := kubernetes.NewForConfig(c)
	must(t, err)
	ns, err := k.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "go-"}}, metav1.CreateOptions{})
	must(t, err)
	t.Cleanup(func() {
		_ = k.CoreV1().Namespaces().Delete(context.Background(), ns.Name, metav1.DeleteOptions{})
		cancel()
	})
	return ctx, k, ns.Name
}

func each(t *testing.T, run func(t *testing.T, c *rest.Config)) {
	for name, media := range map[string]string{
		"json":     "application/json",
		"protobuf": "application/vnd.kubernetes.protobuf",
	} {
		t.Run(name, func(t *testing.T) { run(t, config(t, media)) })
	}
}

func card(name, text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"of": "go"}},
		Data:       map[string]string{"text": text},
	}
}

func TestTyped(t *testing.T) {
	each(t, func(t *testing.T, c *rest.Config) {
		ctx, k, ns := begin(t, c)
		maps := k.CoreV1().ConfigMaps(ns)
		first, err := maps.Create(ctx, card("a", "1"), metav1.CreateOptions{})
		must(t, err)
		_, err = maps.Create(ctx, card("a", "1"), metav1.CreateOptions{})
		want(t, "a second create", errors.IsAlreadyExists(err), err)
		_, err = maps.Create(ctx, card("No name", "1"), metav1.CreateOptions{})
		want(t, "a wrong name", errors.IsInvalid(err), err)
		_, err = maps.Get(ctx, "none", metav1.GetOptions{})
		want(t, "a get of nothing", errors.IsNotFound(err), err)

		second := first.DeepCopy()
		second.Data["text"] = "2"
		_, err = maps.Update(ctx, second, metav1.UpdateOptions{})
		must(t, err)
		_, err = maps.Update(ctx, first, metav1.UpdateOptions{})
		want(t, "an update of an old version", err == nil || errors.IsConflict(err), err)
		second.Data["text"] = "3"
		_, err = maps.Update(ctx, second, metav1.UpdateOptions{})
		want(t, "an update of an old version", errors.IsConflict(err), err)
		must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
			now, err := maps.Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Data["retried"] = "yes"
			_, err = maps.Update(ctx, now, metav1.UpdateOptions{})
			return err
		}))
		for kind, patch := range map[types.PatchType]string{
			types.MergePatchType:          `{"data":{"merge":"yes"}}`,
			types.StrategicMergePatchType: `{"data":{"strategic":"yes"}}`,
			types.JSONPatchType:           `[{"op":"add","path":"/data/json","value":"yes"}]`,
		} {
			_, err = maps.Patch(ctx, "a", kind, []byte(patch), metav1.PatchOptions{})
			must(t, err)
		}
		ours := coreapply.ConfigMap("a", ns).WithData(map[string]string{"apply": "yes"})
		applied, err := maps.Apply(ctx, ours, metav1.ApplyOptions{FieldManager: "go"})
		must(t, err)
		if n := len(applied.Data); n != 6 {
			t.Fatalf("6 keys were wanted, there are %d: %v", n, applied.Data)
		}
		others := coreapply.ConfigMap("a", ns).WithData(map[string]string{"apply": "no"})
		_, err = maps.Apply(ctx, others, metav1.ApplyOptions{FieldManager: "other"})
		want(t, "an apply of another's field", errors.IsConflict(err), err)

		for i := range 7 {
			_, err = maps.Create(ctx, card(fmt.Sprintf("page-%d", i), "x"), metav1.CreateOptions{})
			must(t, err)
		}
		names, token := []string{}, ""
		for {
			l, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "of=go", Limit: 3, Continue: token})
			must(t, err)
			for _, m := range l.Items {
				names = append(names, m.Name)
			}
			if token = l.Continue; token == "" {
				break
			}
		}
		if len(names) != 8 || !sort.StringsAreSorted(names) {
			t.Fatalf("8 names in order were wanted: %v", names)
		}
		old := types.UID("none")
		err = maps.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &old}})
		want(t, "a deletion of another uid", errors.IsConflict(err), err)
		must(t, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
		ofGo := metav1.ListOptions{LabelSelector: "of=go"}
		must(t, maps.DeleteCollection(ctx, metav1.DeleteOptions{}, ofGo))
		left, err := maps.List(ctx, ofGo)
		must(t, err)
		if len(left.Items) != 0 {
			t.Fatalf("%d are left", len(left.Items))
		}
	})
}

func TestSubresources(t *testing.T) {
	each(t, func(t *testing.T, c *rest.Config) {
		ctx, k, ns := begin(t, c)
		labels := map[string]string{"app": "a"}
		one := int32(1)
		d, err := k.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "a"},
			Spec: appsv1.DeploymentSpec{
				Replicas: &one,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
				},
			},
		}, metav1.CreateOptions{})
		must(t, err)
		scale, err := k.AppsV1().Deployments(ns).GetScale(ctx, "a", metav1.GetOptions{})
		must(t, err)
		scale.Spec.Replicas = 5
		_, err = k.AppsV1().Deployments(ns).UpdateScale(ctx, "a", scale, metav1.UpdateOptions{})
		must(t, err)
		d, err = k.AppsV1().Deployments(ns).Get(ctx, "a", metav1.GetOptions{})
		must(t, err)
		if *d.Spec.Replicas != 5 || d.Generation != 2 {
			t.Fatalf("replicas %d of generation %d", *d.Spec.Replicas, d.Generation)
		}
		d.Status.Replicas, d.Status.ObservedGeneration, *d.Spec.Replicas = 3, 2, 9
		d, err = k.AppsV1().Deployments(ns).UpdateStatus(ctx, d, metav1.UpdateOptions{})
		must(t, err)
		if *d.Spec.Replicas != 5 || d.Status.Replicas != 3 || d.Generation != 2 {
			t.Fatalf("a write of the status: replicas %d, %d, generation %d", *d.Spec.Replicas,
				d.Status.Replicas, d.Generation)
		}
	})
}

func TestDynamic(t *testing.T) {
	c := config(t, "application/json")
	ctx, _, ns := begin(t, c)
	d, err := dynamic.NewForConfig(c)
	must(t, err)
	secrets := d.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"}).Namespace(ns)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1",
		"kind":       "Secret",
		"metadata":   map[string]any{"name": "a"},
		"data":       map[string]any{"k": "dg=="},
	}}
	made, err := secrets.Apply(ctx, "a", o, metav1.ApplyOptions{FieldManager: "go"})
	must(t, err)
	if kind, _, _ := unstructured.NestedString(made.Object, "type"); kind != "Opaque" {
		t.Fatalf("type %q", kind)
	}
	w, err := secrets.Watch(ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	must(t, err)
	defer w.Stop()
	patch := []byte(`{"data":{"k":"dw=="}}`)
	_, err = secrets.Patch(ctx, "a", types.MergePatchType, patch, metav1.PatchOptions{})
	must(t, err)
	must(t, secrets.Delete(ctx, "a", metav1.DeleteOptions{}))
	for _, kind := range []watch.EventType{watch.Modified, watch.Deleted} {
		if e := <-w.ResultChan(); e.Type != kind {
			t.Fatalf("%s was wanted, not %s", kind, e.Type)
		}
	}
}

func TestMetadata(t *testing.T) {
	each(t, func(t *testing.T, c *rest.Config) {
		ctx, k, ns := begin(t, c)
		_, err := k.CoreV1().ConfigMaps(ns).Create(ctx, card("a", "1"), metav1.CreateOptions{})
		must(t, err)
		m, err := metadata.NewForConfig(c)
		must(t, err)
		gvr := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
		one, err := m.Resource(gvr).Namespace(ns).Get(ctx, "a", metav1.GetOptions{})
		must(t, err)
		if one.Namespace != ns || one.Labels["of"] != "go" {
			t.Fatalf("%v", one)
		}
		_, err = m.Resource(gvr).Namespace(ns).Patch(ctx, "a", types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"more":"yes"}}}`), metav1.PatchOptions{})
		must(t, err)
		f := metadatainformer.NewFilteredSharedInformerFactory(m, 0, ns, nil)
		lister := f.ForResource(gvr).Lister()
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		seen, err := lister.ByNamespace(ns).Get("a")
		must(t, err)
		if seen.(*metav1.PartialObjectMetadata).Labels["more"] != "yes" {
			t.Fatalf("%v", seen)
		}
	})
}

func TestInformers(t *testing.T) {
	each(t, func(t *testing.T, c *rest.Config) {
		ctx, k, ns := begin(t, c)
		maps := k.CoreV1().ConfigMaps(ns)
		_, err := maps.Create(ctx, card("before", "1"), metav1.CreateOptions{})
		must(t, err)
		f := informers.NewSharedInformerFactoryWithOptions(k, 0, informers.WithNamespace(ns),
			informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "of=go" }))
		told := make(chan string, 100)
		tell := func(what string, o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				o = gone.Obj
			}
			told <- what + " " + o.(*corev1.ConfigMap).Name
		}
		_, err = f.Core().V1().ConfigMaps().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(o any) { tell("add", o) },
			UpdateFunc: func(_, o any) { tell("update", o) },
			DeleteFunc: func(o any) { tell("delete", o) },
		})
		must(t, err)
		f.Start(ctx.Done())
		f.WaitForCacheSync(ctx.Done())
		hear := func(what string) {
			t.Helper()
			select {
			case got := <-told:
				if got != what {
					t.Fatalf("%q was wanted, not %q", what, got)
				}
			case <-ctx.Done():
				t.Fatalf("%q never came", what)
			}
		}
		hear("add before")
		o, err := maps.Create(ctx, card("after", "1"), metav1.CreateOptions{})
		must(t, err)
		hear("add after")
		// who leaves the selection is deleted, who comes back is new
		o.Labels["of"] = "others"
		o, err = maps.Update(ctx, o, metav1.UpdateOptions{})
		must(t, err)
		hear("delete after")
		o.Labels["of"] = "go"
		o, err = maps.Update(ctx, o, metav1.UpdateOptions{})
		must(t, err)
		hear("add after")
		o.Data["text"] = "2"
		_, err = maps.Update(ctx, o, metav1.UpdateOptions{})
		must(t, err)
		hear("update after")
		must(t, maps.Delete(ctx, "before", metav1.DeleteOptions{}))
		hear("delete before")
	})
}

func TestElection(t *testing.T) {
	c := config(t, "application/vnd.kubernetes.protobuf")
	ctx, k, ns := begin(t, c)
	leads := make(chan string, 10)
	run := func(who string) context.CancelFunc {
		own, stop := context.WithCancel(ctx)
		go leaderelection.RunOrDie(own, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta:  metav1.ObjectMeta{Name: "office", Namespace: ns},
				Client:     k.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: who},
			},
			LeaseDuration:   15 * time.Second,
			RenewDeadline:   10 * time.Second,
			RetryPeriod:     50 * time.Millisecond,
			ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leads <- who },
				OnStoppedLeading: func() {},
			},
		})
		return stop
	}
	stop := run("first")
	if who := <-leads; who != "first" {
		t.Fatal(who)
	}
	defer run("second")()
	stop()
	select {
	case who := <-leads:
		if who != "second" {
			t.Fatal(who)
		}
	case <-ctx.Done():
		t.Fatal("nobody took over")
	}
	lease, err := k.CoordinationV1().Leases(ns).Get(ctx, "office", metav1.GetOptions{})
	must(t, err)
	if *lease.Spec.LeaseTransitions != 1 || *lease.Spec.HolderIdentity != "second" {
		t.Fatalf("%v", lease.Spec)
	}
}

func TestDiscovery(t *testing.T) {
	_, k, _ := begin(t, config(t, "application/json"))
	lists, err := k.Discovery().ServerPreferredResources()
	must(t, err)
	kinds := map[string]bool{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			kinds[l.GroupVersion+" "+r.Kind] = true
		}
	}
	for _, kind := range []string{
		"v1 Pod", "apps/v1 Deployment", "batch/v1 CronJob", "apps/v1 ControllerRevision",
	} {
		if !kinds[kind] {
			t.Fatalf("no %s", kind)
		}
	}
	v2, err := k.Discovery().OpenAPISchema()
	must(t, err)
	if len(v2.GetDefinitions().GetAdditionalProperties()) < 500 {
		t.Fatal("definitions are missing in OpenAPI v2")
	}
	paths, err := k.Discovery().OpenAPIV3().Paths()
	must(t, err)
	for _, path := range []string{"api/v1", "apis/apps/v1"} {
		if paths[path] == nil {
			t.Fatalf("no %s in OpenAPI v3", path)
		}
	}
	if v, err := k.Discovery().ServerVersion(); err != nil || v.Minor != "34" {
		t.Fatal(v, err)
	}
}

// Many writers, one watch: its order is the order of versions, and nothing is missing.
func TestOrder(t *testing.T) {
	each(t, func(t *testing.T, c *rest.Config) {
		ctx, k, ns := begin(t, c)
		writes, err := strconv.Atoi(os.Getenv("WRITES"))
		must(t, err)
		maps := k.CoreV1().ConfigMaps(ns)
		l, err := maps.List(ctx, metav1.ListOptions{})
		must(t, err)
		w, err := maps.Watch(ctx, metav1.ListOptions{ResourceVersion: l.ResourceVersion})
		must(t, err)
		defer w.Stop()

		var mu sync.Mutex
		var written []uint64
		deleted := 0
		version := func(o *corev1.ConfigMap) uint64 {
			n, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
			if err != nil {
				t.Error(err)
			}
			return n
		}
		var all sync.WaitGroup
		for id := range writers {
			all.Add(1)
			go func() {
				defer all.Done()
				random := rand.New(rand.NewSource(int64(id)))
				for i := range writes / writers {
					var o *corev1.ConfigMap
					var err error
					name, text := fmt.Sprintf("m-%d", random.Intn(20)), fmt.Sprintf("%d-%d", id, i)
					switch random.Intn(4) {
					case 0:
						o, err = maps.Create(ctx, card(name, text), metav1.CreateOptions{})
					case 1:
						if o, err = maps.Get(ctx, name, metav1.GetOptions{}); err == nil {
							o.Data["text"] = text
							o, err = maps.Update(ctx, o, metav1.UpdateOptions{})
						}
					case 2:
						o, err = maps.Patch(ctx, name, types.MergePatchType,
							[]byte(`{"data":{"text":"`+text+`"}}`), metav1.PatchOptions{})
					default:
						if err = maps.Delete(ctx, name, metav1.DeleteOptions{}); err == nil {
							mu.Lock()
							deleted++
							mu.Unlock()
							continue
						}
					}
					switch {
					case err == nil:
						mu.Lock()
						written = append(written, version(o))
						mu.Unlock()
					case errors.IsNotFound(err), errors.IsConflict(err), errors.IsAlreadyExists(err):
					default:
						t.Error(err)
						return
					}
				}
			}()
		}
		all.Wait()
		sort.Slice(written, func(i, j int) bool { return written[i] < written[j] })
		var seen []uint64
		last, gone := uint64(0), 0
		for len(seen) < len(written) || gone < deleted {
			select {
			case e, open := <-w.ResultChan():
				if !open {
					t.Fatal("the watch ended")
				}
				o, ok := e.Object.(*corev1.ConfigMap)
				if !ok {
					t.Fatalf("%v", e)
				}
				now := version(o)
				if now <= last {
					t.Fatalf("version %d after %d", now, last)
				}
				last = now
				if e.Type == watch.Deleted {
					gone++
				} else {
					seen = append(seen, now)
				}
			case <-ctx.Done():
				t.Fatalf("%d of %d writes and %d of %d deletions were seen",
					len(seen), len(written), gone, deleted)
			}
		}
		for i := range seen {
			if seen[i] != written[i] {
				t.Fatalf("write %d has version %d, the watch says %d", i, written[i], seen[i])
			}
		}
		if len(seen) < writes/4 {
			t.Fatalf("%d writes alone", len(seen))
		}
	})
}
