package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
)

// A filler sets each member of each type once, wherever it comes first, so that all of them are seen and the
// text stays short; after that it sets some, or with chance 0 none. Messages that are the same in several
// versions count as one.
type filler struct {
	w      *writer
	r      *rand.Rand
	full   map[int]bool
	chance float64
}

var words = []string{
	"a", "web", "ünï-cødé ✓", "<b>&\"quoted\"\\", "line\nbreak\ttab", "\u2028",
	"a longer text that is not the same as others", "true",
}
var quantities = []string{"0", "1500m", "100Ki", "2Gi", "1e3", "0.5", "-3", "12345678901234567890"}

func (f *filler) fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeOf(metav1.Time{}):
		if f.r.Intn(5) > 0 {
			v.Set(reflect.ValueOf(metav1.Unix(f.r.Int63n(4e9), 0)))
		}
		return
	case reflect.TypeOf(metav1.MicroTime{}):
		if f.r.Intn(5) > 0 {
			v.Set(reflect.ValueOf(metav1.NewMicroTime(time.Unix(f.r.Int63n(4e9), f.r.Int63n(1e6)*1000))))
		}
		return
	case reflect.TypeOf(metav1.Duration{}):
		v.Set(reflect.ValueOf(metav1.Duration{Duration: time.Duration(f.r.Int63n(1e15))}))
		return
	case reflect.TypeOf(resource.Quantity{}):
		v.Set(reflect.ValueOf(resource.MustParse(quantities[f.r.Intn(len(quantities))])))
		return
	case reflect.TypeOf(intstr.IntOrString{}):
		if f.r.Intn(2) == 0 {
			v.Set(reflect.ValueOf(intstr.FromInt32(f.r.Int31n(3))))
		} else {
			v.Set(reflect.ValueOf(intstr.FromString(words[f.r.Intn(len(words))])))
		}
		return
	case reflect.TypeOf(metav1.FieldsV1{}):
		fields := []byte(`{"f:metadata":{"f:labels":{".":{},"f:app":{}}}}`)
		v.Set(reflect.ValueOf(metav1.FieldsV1{Raw: fields}))
		return
	case reflect.TypeOf(runtime.RawExtension{}):
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"kind":"Any","n":[1,2.5,"x",null,true]}`)}))
		return
	case typeMeta:
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(words[f.r.Intn(len(words))])
	case reflect.Bool:
		v.SetBool(f.r.Intn(3) > 0)
	case reflect.Int32:
		v.SetInt(int64([]int32{0, 1, -1, 80, 1<<31 - 1, -1 << 31}[f.r.Intn(6)]))
	case reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 300, 1<<63 - 1, -1 << 63, 1 << 53}[f.r.Intn(7)])
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + f.r.Intn(3) {
			key, item := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			f.fill(key)
			f.fill(item)
			v.SetMapIndex(key, item)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte(words[f.r.Intn(len(words))]))
			return
		}
		n := 1 + f.r.Intn(2)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			f.fill(v.Index(i))
		}
	case reflect.Struct:
		f.fillStruct(v)
	default:
		panic(v.Type().String())
	}
}

func (f *filler) fillStruct(v reflect.Value) {
	n := f.w.message(v.Type(), false)
	all := !f.full[n] && f.chance > 0
	f.full[n] = true
	for i := range v.NumField() {
		if all || f.r.Float64() < f.chance {
			f.fill(v.Field(i))
		}
	}
}

// What a server says of the claims in a StatefulSet: it sets what protobuf does not carry.
func setClaims(v reflect.Value, root bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			setClaims(v.Elem(), root)
		}
	case reflect.Slice:
		for i := range v.Len() {
			setClaims(v.Index(i), false)
		}
	case reflect.Struct:
		if claim, ok := v.Addr().Interface().(*corev1.PersistentVolumeClaim); ok && !root {
			claim.Kind, claim.APIVersion = "PersistentVolumeClaim", "v1"
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				setClaims(v.Field(i), false)
			}
		}
	}
}

const objectsHead = `# Objects of the built-in kinds as Go's serializers of k8s.io/apimachinery v0.34.3 ` +
	`write them: protobuf in base64, a space, and JSON.
# Written by spec/realserver/proto out of the types of k8s.io/api, Copyright The Kubernetes Authors, ` +
	`Apache License 2.0; do not edit.
`

func objects(out io.Writer) {
	fmt.Fprint(out, objectsHead)
	w := newWriter()
	all := scheme.Scheme
	toJSON := json.NewSerializerWithOptions(json.DefaultMetaFactory, all, all, json.SerializerOptions{})
	toProto := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	f := &filler{w: w, r: rand.New(rand.NewSource(1)), full: map[int]bool{}}
	for _, f.chance = range []float64{0.08, 0} {
		told := map[int]bool{}
		for _, k := range kinds() {
			n := w.message(k.t, true)
			if told[n] {
				continue
			}
			told[n] = true
			v := reflect.New(k.t)
			f.fillStruct(v.Elem())
			raw, err := v.Interface().(message).Marshal()
			if err != nil {
				panic(err)
			}
			// What a server has that read it from its storage: nothing where there was an empty list.
			read := reflect.New(k.t)
			obj := read.Interface().(message)
			if err := obj.Unmarshal(raw); err != nil {
				panic(err)
			}
			obj.GetObjectKind().SetGroupVersionKind(k.GroupVersionKind)
			setClaims(read, true)
			var text, bin bytes.Buffer
			if err := toJSON.Encode(obj, &text); err != nil {
				panic(err)
			}
			if err := toProto.Encode(obj, &bin); err != nil {
				panic(err)
			}
			packed := base64.StdEncoding.EncodeToString(bin.Bytes())
			fmt.Fprintln(out, packed, strings.TrimSpace(text.String()))
		}
	}
}
