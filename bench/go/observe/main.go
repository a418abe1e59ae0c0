// observe: makes ConfigMaps, watches them, and says when somebody wrote into each: the same eyes for every
// peer of the section "reconcile".
//
// --first objects are there before it says "ready"; then a controller is started, and its writes are counted.
// --then objects more come at --rate a second, each with its time. One line of JSON at the end: writes_per_s,
// and p50_ms and p99_ms from the sending of a create to the news of its write.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	labels  = "bench=reconcile"
	makers  = 16
	patient = 3 * time.Minute
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "observe:", err)
		os.Exit(1)
	}
}

func create(maps typed.ConfigMapInterface, name string) {
	_, err := maps.Create(context.Background(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"bench": "reconcile"},
		},
		Data: map[string]string{"name": name},
	}, metav1.CreateOptions{})
	must(err)
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "")
	first := flag.Int("first", 2000, "")
	then := flag.Int("then", 500, "")
	rate := flag.Float64("rate", 100, "")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	must(err)
	config.QPS = -1
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("bench")
	ctx := context.Background()
	must(maps.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: labels}))
	var making sync.WaitGroup
	for m := range makers {
		making.Go(func() {
			for i := m; i < *first; i += makers {
				create(maps, fmt.Sprintf("first-%d", i))
			}
		})
	}
	making.Wait()
	list, err := maps.List(ctx, metav1.ListOptions{LabelSelector: labels})
	must(err)
	watch, err := maps.Watch(ctx, metav1.ListOptions{
		LabelSelector:   labels,
		ResourceVersion: list.ResourceVersion,
	})
	must(err)

	var mu sync.Mutex
	written := map[string]time.Time{}
	news := make(chan int, *first+*then)
	go func() {
		for e := range watch.ResultChan() {
			o, ok := e.Object.(*corev1.ConfigMap)
			if !ok || o.Data["done"] == "" {
				continue
			}
			mu.Lock()
			if _, old := written[o.Name]; !old {
				written[o.Name] = time.Now()
				news <- len(written)
			}
			mu.Unlock()
		}
	}()
	await := func(n int) {
		limit := time.After(patient)
		for {
			select {
			case have := <-news:
				if have >= n {
					return
				}
			case <-limit:
				must(fmt.Errorf("%d of %d objects were written within %s", len(written), n, patient))
			}
		}
	}
	fmt.Println("ready")
	await(*first)
	var least, most time.Time
	for _, t := range written {
		if least.IsZero() || t.Before(least) {
			least = t
		}
		if t.After(most) {
			most = t
		}
	}
	fmt.Println("first")
	bufio.NewReader(os.Stdin).ReadString('\n') // who runs us has read the controller's counters

	sent := map[string]time.Time{}
	begin := time.Now()
	var creating sync.WaitGroup
	for i := range *then {
		name := fmt.Sprintf("then-%d", i)
		time.Sleep(time.Until(begin.Add(time.Duration(float64(i) / *rate * float64(time.Second)))))
		sent[name] = time.Now()
		creating.Go(func() { create(maps, name) })
	}
	creating.Wait()
	await(*first + *then)
	var took []float64
	for name, t := range sent {
		took = append(took, float64(written[name].Sub(t).Microseconds())/1000)
	}
	slices.Sort(took)
	at := func(p float64) float64 { return took[min(len(took)-1, int(p*float64(len(took))))] }
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"writes_per_s": float64(*first-1) / most.Sub(least).Seconds(),
		"p50_ms":       at(0.5),
		"p99_ms":       at(0.99),
	}))
}
