package main

import (
	"fmt"
	"io"
	"reflect"
	"sort"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What core/wire/proto_table.h says of a slot; its letters stand in the tables.
type slot struct {
	key, kind string // kind: a letter of the header's, as C names it
	msg       int    // of a message; of a constant the text's number
	flags     []string
}

type inline struct{ base, msg int }

type msg struct {
	slots   []slot
	wire    []int // by field number - 1: 0 none, 1 + slot, or 200 + inline
	inlines []inline
}

type writer struct {
	keys   map[string]int
	names  []string
	msgs   []msg
	same   map[string]int       // a message's text to its number: the versions of a kind share most
	seen   map[reflect.Type]int // -1: being made
	nested map[reflect.Type]int
}

func newWriter() *writer {
	return &writer{
		keys:   map[string]int{},
		same:   map[string]int{},
		seen:   map[reflect.Type]int{},
		nested: map[reflect.Type]int{},
	}
}

var special = map[reflect.Type]string{
	reflect.TypeOf(metav1.Time{}):          "TIME",
	reflect.TypeOf(metav1.MicroTime{}):     "MICROTIME",
	reflect.TypeOf(metav1.Duration{}):      "DURATION",
	reflect.TypeOf(resource.Quantity{}):    "QUANTITY",
	reflect.TypeOf(intstr.IntOrString{}):   "INTORSTR",
	reflect.TypeOf(metav1.FieldsV1{}):      "RAW",
	reflect.TypeOf(runtime.RawExtension{}): "RAW",
}

func (w *writer) key(name string) int {
	if n, ok := w.keys[name]; ok {
		return n
	}
	w.keys[name] = len(w.names)
	w.names = append(w.names, name)
	return len(w.names) - 1
}

func implements[T any](t reflect.Type) bool {
	_, ok := reflect.New(t).Interface().(T)
	return ok
}

type unmarshaler interface{ Unmarshal([]byte) error }

// one is a value that stands alone: an item, a map's value, or a field's.
func (w *writer) one(t reflect.Type, where string) (string, int) {
	if s, ok := special[t]; ok {
		return s, 0
	}
	if implements[interface{ MarshalJSON() ([]byte, error) }](t) {
		panic(where + ": " + t.String() + " has a JSON of its own that the decoder does not know")
	}
	switch t.Kind() {
	case reflect.String:
		return "STRING", 0
	case reflect.Bool:
		return "BOOL", 0
	case reflect.Int32, reflect.Int64:
		return "INT", 0
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "BYTES", 0
		}
		if t.Elem().Kind() == reflect.String && implements[unmarshaler](t) {
			return "STRINGS", 0 // a message that only holds the list, so that an empty one is not none
		}
	case reflect.Struct:
		return "MESSAGE", w.message(t, false)
	}
	panic(where + ": " + t.String() + " is a type that the decoder does not know")
}

func (w *writer) slot(f reflect.StructField, name string, omit bool, where string) slot {
	s := slot{key: name}
	t := f.Type
	if omit {
		s.flags = append(s.flags, "OMIT")
	}
	if t.Kind() == reflect.Pointer {
		s.flags = append(s.flags, "POINTER")
		t = t.Elem()
	}
	switch {
	case t.Kind() == reflect.Map:
		if t.Key().Kind() != reflect.String {
			panic(where + ": a map by " + t.Key().String())
		}
		s.flags = append(s.flags, "MAP")
		t = t.Elem()
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 && !implements[unmarshaler](t):
		s.flags = append(s.flags, "REPEATED")
		t = t.Elem()
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
	}
	s.kind, s.msg = w.one(t, where)
	return s
}

var typeMeta = reflect.TypeOf(metav1.TypeMeta{})

func (w *writer) message(t reflect.Type, root bool) int {
	seen := w.nested
	if root {
		seen = w.seen
	}
	if n, ok := seen[t]; ok {
		if n < 0 {
			panic(t.String() + " contains itself")
		}
		return n
	}
	seen[t] = -1
	var m msg
	put := func(number, at int) {
		for len(m.wire) < number {
			m.wire = append(m.wire, 0)
		}
		m.wire[number-1] = at
	}
	for i := range t.NumField() {
		f := t.Field(i)
		where := t.String() + "." + f.Name
		if !f.IsExported() {
			continue
		}
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		omit := false
		for _, word := range strings.Split(rest, ",") {
			switch word {
			case "omitempty":
				// encoding/json has it mean nothing for structs.
				omit = omit || f.Type.Kind() != reflect.Struct
			case "omitzero":
				if special[f.Type] != "TIME" {
					panic(where + ": omitzero of " + f.Type.String())
				}
				omit = true
			case "", "inline":
			default:
				panic(where + ": json tag " + word + " is new")
			}
		}
		if name == "-" {
			continue
		}
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		if f.Type == typeMeta {
			// Of a root it stands in the envelope. The server puts it into one kind of nested object, which
			// has it in JSON alone.
			if !root && t == reflect.TypeOf(corev1.PersistentVolumeClaim{}) {
				m.slots = append(m.slots,
					slot{key: "kind", kind: "CONST", msg: w.key("PersistentVolumeClaim")},
					slot{key: "apiVersion", kind: "CONST", msg: w.key("v1")})
			}
			continue
		}
		if len(tag) < 2 {
			panic(where + ": no protobuf tag")
		}
		number, err := strconv.Atoi(tag[1])
		if err != nil || number < 1 || number > 250 {
			panic(where + ": field number " + tag[1])
		}
		if f.Anonymous && name == "" {
			inner := w.message(f.Type, false)
			put(number, 200+len(m.inlines))
			m.inlines = append(m.inlines, inline{len(m.slots), inner})
			m.slots = append(m.slots, w.msgs[inner].slots...)
			continue
		}
		if name == "" {
			panic(where + ": no json name")
		}
		m.slots = append(m.slots, w.slot(f, name, omit, where))
		put(number, len(m.slots))
	}
	if len(m.slots) > 190 {
		panic(t.String() + " has too many members")
	}
	text := fmt.Sprint(m)
	n, ok := w.same[text]
	if !ok {
		n = len(w.msgs)
		w.msgs = append(w.msgs, m)
		w.same[text] = n
	}
	seen[t] = n
	return n
}

// lines writes items comma separated, in lines of bearable length.
func lines(out io.Writer, items []string) {
	line := "   "
	for _, s := range items {
		if len(line)+len(s) > 150 {
			fmt.Fprintln(out, line)
			line = "   "
		}
		line += " " + s + ","
	}
	if line != "   " {
		fmt.Fprintln(out, line)
	}
}

const head = `/* proto_data.c - how the messages of the built-in kinds of Kubernetes 1.34 become JSON. ` +
	`Written by spec/realserver/proto; do not edit.
 *
 * Derived from the struct tags of k8s.io/api and k8s.io/apimachinery v0.34.3, ` +
	`Copyright The Kubernetes Authors, Apache License 2.0.
 * proto_table.h says what the tables mean. */
#include "wire/proto_table.h"

#define STRING KL__PROTO_STRING
#define BOOL KL__PROTO_BOOL
#define INT KL__PROTO_INT
#define BYTES KL__PROTO_BYTES
#define STRINGS KL__PROTO_STRINGS
#define MESSAGE KL__PROTO_MESSAGE
#define TIME KL__PROTO_TIME
#define MICROTIME KL__PROTO_MICROTIME
#define DURATION KL__PROTO_DURATION
#define QUANTITY KL__PROTO_QUANTITY
#define INTORSTR KL__PROTO_INTORSTR
#define RAW KL__PROTO_RAW
#define CONST KL__PROTO_CONST
#define OMIT KL__PROTO_OMIT
#define POINTER KL__PROTO_POINTER
#define REPEATED KL__PROTO_REPEATED
#define MAP KL__PROTO_MAP

`

const counts = "const kl__proto_counts kl__proto_count = " +
	"{ .names = %d, .kinds = %d, .list_meta = %d };\n\n"

func tables(out io.Writer) {
	w := newWriter()
	listMeta := w.message(reflect.TypeOf(metav1.ListMeta{}), false)
	type row struct {
		gv, kind string
		msg      int
	}
	var rows []row
	for _, k := range kinds() {
		rows = append(rows, row{k.GroupVersion().String(), k.Kind, w.message(k.t, true)})
	}
	sort.SliceStable(rows, func(i, k int) bool { return rows[i].gv < rows[k].gv })
	var msgs, slots, wire, inlines []string
	for _, m := range w.msgs {
		msgs = append(msgs, fmt.Sprintf("{%d,%d,%d,%d,%d}",
			len(slots), len(wire), len(inlines), len(m.slots), len(m.wire)))
		for _, s := range m.slots {
			flags := "0"
			if len(s.flags) > 0 {
				flags = strings.Join(s.flags, "|")
			}
			slots = append(slots, fmt.Sprintf("{%d,%d,%s,%s}", w.key(s.key), s.msg, s.kind, flags))
		}
		for _, at := range m.wire {
			wire = append(wire, strconv.Itoa(at))
		}
		for _, in := range m.inlines {
			inlines = append(inlines, fmt.Sprintf("{%d,%d}", in.msg, in.base))
		}
	}
	var names []string
	for _, s := range w.names {
		names = append(names, strconv.Quote(s))
	}
	fmt.Fprint(out, head)
	fmt.Fprintf(out, counts, len(names), len(rows), listMeta)
	fmt.Fprintln(out, "const char *const kl__proto_names[] = {")
	lines(out, names)
	fmt.Fprintln(out, "};\n\nconst kl__proto_kind kl__proto_kinds[] = {")
	var ks []string
	for _, r := range rows {
		ks = append(ks, fmt.Sprintf("{%q,%q,%d}", r.gv, r.kind, r.msg))
	}
	lines(out, ks)
	fmt.Fprintln(out, "};\n\nconst kl__proto_msg kl__proto_msgs[] = {")
	lines(out, msgs)
	fmt.Fprintln(out, "};\n\nconst kl__proto_slot kl__proto_slots[] = {")
	lines(out, slots)
	fmt.Fprintln(out, "};\n\nconst uint8_t kl__proto_wire[] = {")
	lines(out, wire)
	fmt.Fprintln(out, "};\n\nconst kl__proto_inline kl__proto_inlines[] = {")
	lines(out, inlines)
	fmt.Fprintln(out, "};")
}
