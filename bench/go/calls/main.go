// calls: what bench/calls.c measures, with client-go's typed client and no limiter of its own.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const objects = 100

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

// TCP sockets of this process that are connected now.
func connections() int {
	mine := map[string]bool{}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		to, err := os.Readlink("/proc/self/fd/" + e.Name())
		if inode, ok := strings.CutPrefix(to, "socket:["); err == nil && ok {
			mine[strings.TrimSuffix(inode, "]")] = true
		}
	}
	n := 0
	text, _ := os.ReadFile("/proc/self/net/tcp")
	for _, line := range strings.Split(string(text), "\n") {
		if f := strings.Fields(line); len(f) > 9 && f[3] == "01" && mine[f[9]] {
			n++
		}
	}
	return n
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "")
	mode := flag.String("mode", "get", "get|patch|rotate")
	inFlight := flag.Int("in-flight", 1, "")
	requests := flag.Int64("requests", 1000, "")
	seconds := flag.Float64("seconds", 60, "")
	protobuf := flag.Bool("protobuf", false, "")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		panic(err)
	}
	config.QPS = -1
	peer := "client-go"
	if *protobuf {
		peer = "client-go-protobuf"
		config.ContentType = "application/vnd.kubernetes.protobuf"
		config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	}
	maps := kubernetes.NewForConfigOrDie(config).CoreV1().ConfigMaps("bench")
	ctx := context.Background()
	out := map[string]any{"peer": peer, "mode": *mode}
	if *mode == "rotate" {
		failures, began := 0, time.Now()
		good, gap := began, time.Duration(0)
		for time.Since(began).Seconds() < *seconds {
			if _, err := maps.Get(ctx, "c-0", metav1.GetOptions{}); err != nil {
				failures++
			} else {
				gap = max(gap, time.Since(good))
				good = time.Now()
			}
			time.Sleep(20 * time.Millisecond)
		}
		gap = max(gap, time.Since(good))
		out["failures"] = failures
		out["longest_gap_ms"] = float64(gap.Microseconds()) / 1000
		json.NewEncoder(os.Stdout).Encode(out)
		return
	}
	// After this the connection is there, as in ours after discovery.
	if _, err := maps.Get(ctx, "c-0", metav1.GetOptions{}); err != nil {
		panic(err)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	began, used := time.Now(), cpu()
	for range *inFlight {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < *requests; i = next.Add(1) - 1 {
				name := fmt.Sprintf("c-%d", i%objects)
				var err error
				if *mode == "patch" {
					patch := fmt.Appendf(nil, `{"data":{"count":"%d"}}`, i)
					options := metav1.PatchOptions{FieldManager: "bench"}
					_, err = maps.Patch(ctx, name, types.MergePatchType, patch, options)
				} else {
					_, err = maps.Get(ctx, name, metav1.GetOptions{})
				}
				if err != nil {
					panic(err)
				}
			}
		})
	}
	wg.Wait()
	used = cpu() - used
	out["in_flight"] = *inFlight
	out["requests_per_s"] = float64(*requests) / time.Since(began).Seconds()
	out["cpu_us"] = used / float64(*requests) * 1e6
	out["connections"] = connections()
	json.NewEncoder(os.Stdout).Encode(out)
}
