package main

import (
	"reflect"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

type kind struct {
	schema.GroupVersionKind
	t reflect.Type
}

// kinds are the kinds that a server answers with, and the options that a client sends with a delete, in the
// order of apiVersion and kind. Options are the same in every group, so "v1" stands for all. Lists need no
// tables: all have metadata as field 1 and items as field 2, which is checked here.
func kinds() []kind {
	all := scheme.Scheme.AllKnownTypes()
	var out []kind
	for gvk, t := range all {
		if gvk.Version == "__internal" || strings.HasSuffix(gvk.Kind, "List") {
			continue
		}
		if strings.HasSuffix(gvk.Kind, "Options") && gvk.Kind != "DeleteOptions" {
			continue
		}
		if gvk.Kind == "DeleteOptions" && gvk.GroupVersion().String() == "v1" {
			out = append(out, kind{gvk, t})
			continue
		}
		if strings.HasPrefix(t.PkgPath(), "k8s.io/apimachinery") && gvk.GroupKind().String() != "Status" {
			continue
		}
		if _, ok := reflect.New(t).Interface().(message); !ok {
			panic(gvk.String() + " has no protobuf")
		}
		if list, ok := all[gvk.GroupVersion().WithKind(gvk.Kind+"List")]; ok {
			checkList(list)
		}
		out = append(out, kind{gvk, t})
	}
	meta := schema.GroupVersion{Group: "meta.k8s.io", Version: "v1"}
	partial := reflect.TypeOf(metav1.PartialObjectMetadata{})
	out = append(out, kind{meta.WithKind("PartialObjectMetadata"), partial})
	checkList(reflect.TypeOf(metav1.PartialObjectMetadataList{}))
	sort.Slice(out, func(i, k int) bool {
		a, b := out[i].GroupVersion().String(), out[k].GroupVersion().String()
		return a < b || a == b && out[i].Kind < out[k].Kind
	})
	return out
}

func checkList(t reflect.Type) {
	for field, start := range map[string]string{"ListMeta": "bytes,1,", "Items": "bytes,2,rep,"} {
		f, _ := t.FieldByName(field)
		if !strings.HasPrefix(f.Tag.Get("protobuf"), start) {
			panic(t.String() + " is a list of another build")
		}
	}
}
