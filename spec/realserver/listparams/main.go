// listparams asks client-go for the URLs of lists and watches: spec/fixtures/oracle/list_params.json.
//
//	cd spec/realserver && go run -mod=mod ./listparams > ../fixtures/oracle/list_params.json
package main

import (
	"encoding/json"
	"fmt"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

type row struct {
	Name string         `json:"name"`
	Op   string         `json:"op"`
	In   map[string]any `json:"in"`
	Want map[string]any `json:"want"`
}

func main() {
	var rows []row
	n := 0
	base, _ := url.Parse("https://h:6443")
	gvs := []struct{ g, v, r, ns string }{
		{"", "v1", "pods", "ns"},
		{"", "v1", "nodes", ""},
		{"apps", "v1", "deployments", ""},
		{"batch", "v1", "jobs", "a"},
	}
	options := []map[string]any{
		{},
		{"labelSelector": "a in (b,c),!d"},
		{"fieldSelector": "spec.nodeName=n1"},
		{"watch": false},
		{"limit": 0},
		{"limit": 500},
		{"resourceVersion": "0"},
		{"resourceVersion": "123", "resourceVersionMatch": "Exact", "limit": 10},
		{"resourceVersion": "123", "resourceVersionMatch": "NotOlderThan"},
		{"watch": true, "allowWatchBookmarks": true, "resourceVersion": "55", "timeoutSeconds": 345},
		{
			"watch": true, "allowWatchBookmarks": true, "sendInitialEvents": true,
			"resourceVersionMatch": "NotOlderThan",
		},
		{"watch": true},
		{"labelSelector": "x/y=z w"},
		{"labelSelector": "é"},
		{"fieldSelector": "metadata.name=a,metadata.namespace!=b"},
		{"fieldSelector": "a=b\\,c\\=d"},
		{"continue": "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MX0=", "limit": 3},
		{"continue": "a+b/c=&d"},
		{"timeoutSeconds": 30},
		{"labelSelector": "a=b", "fieldSelector": "c=d", "limit": 7, "continue": "t", "timeoutSeconds": 1},
		{"labelSelector": "a=%20+&?#"},
		{"watch": true, "fieldSelector": "metadata.name=x", "resourceVersion": "18446744073709551615"},
	}
	for _, gv := range gvs {
		for _, o := range options {
			n++
			text, _ := json.Marshal(o)
			var lo metav1.ListOptions
			if err := json.Unmarshal(text, &lo); err != nil {
				panic(err)
			}
			path := "/api"
			if gv.g != "" {
				path = "/apis"
			}
			group := schema.GroupVersion{Group: gv.g, Version: gv.v}
			content := rest.ClientContentConfig{GroupVersion: group}
			c, err := rest.NewRESTClient(base, path+"/"+group.String(), content, nil, nil)
			if err != nil {
				panic(err)
			}
			r := c.Get().Resource(gv.r).VersionedParams(&lo, scheme.ParameterCodec)
			if gv.ns != "" {
				r = r.Namespace(gv.ns)
			}
			if err := r.Error(); err != nil {
				panic(err)
			}
			i := map[string]any{
				"base":        "https://h:6443",
				"group":       gv.g,
				"version":     gv.v,
				"resource":    gv.r,
				"listOptions": o,
			}
			if gv.ns != "" {
				i["namespace"] = gv.ns
			}
			rows = append(rows, row{
				Name: fmt.Sprintf("list_params-s%04d %s", n, text),
				Op:   "list_params",
				In:   i,
				Want: map[string]any{"url": r.URL().String()},
			})
		}
	}
	fmt.Println("[")
	for i, r := range rows {
		text, _ := json.Marshal(r)
		end := ","
		if i == len(rows)-1 {
			end = ""
		}
		fmt.Println(string(text) + end)
	}
	fmt.Println("]")
}
