// wq: the workqueue alone. -n distinct keys (1M), half of them added twice.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
)

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func main() {
	n := flag.Int("n", 1000000, "")
	kind := flag.String("q", "plain", "plain|ratelimiting|priority")
	workers := flag.Int("workers", 1, "")
	conc := flag.Bool("concurrent", false, "add while the workers run")
	flag.Parse()
	keys := make([]string, *n)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%02d/deployment-name-%06x-%05d", i%50, i*7919%(1<<24), i)
	}
	var q workqueue.TypedRateLimitingInterface[string]
	var plain workqueue.TypedInterface[string]
	switch *kind {
	case "plain":
		plain = workqueue.NewTyped[string]()
	case "ratelimiting":
		q = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
		plain = q
	case "priority":
		q = priorityqueue.New[string]("x")
		plain = q
	}
	var got atomic.Int64
	var wg sync.WaitGroup
	work := func() {
		for range *workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for {
					k, stop := plain.Get()
					if stop {
						return
					}
					if q != nil {
						q.Forget(k)
					}
					plain.Done(k)
					got.Add(1)
				}
			}()
		}
	}
	adds := 0
	t0, c0 := time.Now(), cpu()
	if *conc {
		work()
	}
	for i, k := range keys {
		plain.Add(k)
		adds++
		if i%2 == 1 { // every other key a second time, after others were added
			plain.Add(keys[i/2])
			adds++
		}
	}
	t1 := time.Now()
	if !*conc {
		for *kind == "priority" && plain.Len() < *n {
			time.Sleep(time.Millisecond)
		}
		t1 = time.Now()
		work()
	}
	for (got.Load() < int64(*n) || plain.Len() > 0) && time.Since(t0) < 120*time.Second {
		time.Sleep(time.Millisecond)
	}
	t2, c2 := time.Now(), cpu()
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"peer":           "client-go-" + *kind,
		"workers":        *workers,
		"concurrent":     *conc,
		"adds":           adds,
		"gets":           got.Load(),
		"adds_per_s":     math.Round(float64(adds) / t1.Sub(t0).Seconds()),
		"getdones_per_s": math.Round(float64(got.Load()) / t2.Sub(t1).Seconds()),
		"total_wall_s":   t2.Sub(t0).Seconds(),
		"cpu_s":          c2 - c0,
		"ns_cpu_per_key": math.Round((c2 - c0) / float64(*n) * 1e9),
	})
	os.Exit(0)
}
