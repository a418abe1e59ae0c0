package main

import (
	"fmt"
	"io"
	"reflect"
	"sort"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// definition is a type's name in OpenAPI, as core/schema/builtin.lua shortens it: "apps.v1.DeploymentSpec".
func definition(t reflect.Type) string {
	path := strings.TrimPrefix(t.PkgPath(), "k8s.io/api/")
	if _, below, ok := strings.Cut(path, "/pkg/apis/"); ok {
		path = below
	}
	return strings.ReplaceAll(path, "/", ".") + "." + t.Name()
}

// textType is the name of a text's type in Go, also of one that is pointed to or listed, or "" of a plain
// string.
func textType(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.String || t == reflect.TypeOf("") {
		return ""
	}
	return t.String()
}

// leftOut is whether Go's JSON leaves the field out at its zero value.
func leftOut(f reflect.StructField, options string) bool {
	options = "," + options + ","
	return strings.Contains(options, ",omitzero,") ||
		strings.Contains(options, ",omitempty,") && f.Type.Kind() != reflect.Struct
}

// written is what JSON has for the zero value of the type: "null", "zero", or "" for a struct, which is its
// fields.
func written(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return "null"
	case reflect.Struct:
		switch special[t] {
		case "TIME", "MICROTIME", "RAW":
			return "null"
		case "":
			return ""
		}
	}
	return "zero"
}

// omitted writes what OpenAPI does not say of fields: a line "DEFINITION FIELD" for each text, number and
// boolean that JSON leaves out at its zero value, a line "DEFINITION FIELD TYPE" for each text whose type has
// a name, and a line "DEFINITION FIELD =zero" or "... =null" for each field whose zero value JSON always has:
// that of its type, or null.
func omitted(out io.Writer) {
	found := map[string]bool{}
	seen := map[reflect.Type]bool{}
	var walk func(t reflect.Type)
	var fields func(t reflect.Type, of string)
	fields = func(t reflect.Type, of string) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !f.IsExported() || name == "-" || f.Type == typeMeta {
				continue
			}
			if f.Anonymous && name == "" {
				fields(f.Type, of)
				continue
			}
			if named := textType(f.Type); named != "" {
				found[of+" "+name+" "+named] = true
			}
			if zero := written(f.Type); zero != "" && !leftOut(f, rest) {
				found[of+" "+name+" ="+zero] = true
			}
			switch f.Type.Kind() {
			case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64:
				if strings.Contains(","+rest+",", ",omitempty,") {
					found[of+" "+name] = true
				}
			default:
				walk(f.Type)
			}
		}
	}
	walk = func(t reflect.Type) {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		unknown := t == reflect.TypeOf(runtime.Unknown{})
		if t.Kind() != reflect.Struct || special[t] != "" || unknown || seen[t] {
			return
		}
		seen[t] = true
		fields(t, definition(t))
	}
	for _, k := range kinds() {
		walk(k.t)
	}
	walk(reflect.TypeOf(apiextensionsv1.CustomResourceDefinition{}))
	var lines []string
	for line := range found {
		lines = append(lines, line)
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
}
