// json encoding/json|codec|unstructured FILE: the Go decoders alone, on a whole list.
// Prints the best of three passes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
)

var peers = map[string]string{
	"encoding/json": "Go encoding/json PodList",
	"codec":         "client-go codec PodList",
	"unstructured":  "client-go unstructured",
}

func vm(k string) float64 {
	b, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(l, k+":") {
			var v float64
			fmt.Sscan(strings.Fields(l)[1], &v)
			return v / 1024
		}
	}
	return 0
}

func cpu() float64 {
	var r syscall.Rusage
	syscall.Getrusage(0, &r)
	return float64(r.Utime.Nano()+r.Stime.Nano()) / 1e9
}

func decode(how string, b []byte) (any, error) {
	switch how {
	case "encoding/json":
		l := new(corev1.PodList)
		return l, json.Unmarshal(b, l)
	case "codec": // what the typed clients use: sigs.k8s.io/json, case-sensitive
		l := new(corev1.PodList)
		_, _, e := scheme.Codecs.UniversalDeserializer().Decode(b, nil, l)
		return l, e
	}
	l := new(unstructured.UnstructuredList)
	return l, l.UnmarshalJSON(b)
}

func main() {
	b, e := os.ReadFile(os.Args[2])
	if e != nil {
		panic(e)
	}
	best, first := 1e9, 0.0
	var keep any
	for i := range 3 {
		keep = nil
		runtime.GC()
		t := cpu()
		if keep, e = decode(os.Args[1], b); e != nil {
			panic(e)
		}
		s := cpu() - t
		if i == 0 {
			first = s
		}
		best = min(best, s)
	}
	mb := float64(len(b)) / 1e6
	b = nil
	runtime.GC()
	debug.FreeOSMemory()
	rss := vm("VmRSS")
	runtime.KeepAlive(keep)
	json.NewEncoder(os.Stdout).Encode(map[string]any{
		"peer":          peers[os.Args[1]],
		"mb":            mb,
		"s":             best,
		"first_s":       first,
		"mb_s":          mb / best,
		"rss_mb_parsed": rss,
		"hwm_mb":        vm("VmHWM"),
	})
}
