// celspec DIR prints the conformance tests of CEL (tests/simple/testdata of the module cel.dev/expr, whose
// directory is DIR) as lines of JSON, with what Kubernetes' own CEL makes of each: the value and its type,
// the error, or the messages of the compiler.
//
//	cd spec/realserver && go run ./celspec "$(go list -m -f '{{.Dir}}' cel.dev/expr)"
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	exprpb "cel.dev/expr"
	_ "cel.dev/expr/conformance/proto2"
	_ "cel.dev/expr/conformance/proto3"
	testpb "cel.dev/expr/conformance/test"
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"google.golang.org/protobuf/encoding/prototext"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type variable struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Value any    `json:"value"`
}

type line struct {
	Name    string     `json:"name"`
	Expr    string     `json:"expr"`
	Vars    []variable `json:"vars,omitempty"`
	Left    string     `json:"left,omitempty"`    // why Kubernetes cannot be asked
	Refused string     `json:"refused,omitempty"` // what the compiler says
	Fails   string     `json:"fails,omitempty"`   // what the evaluation says
	Value   any        `json:"value"`
	Type    string     `json:"type,omitempty"`    // of the value
	Checked string     `json:"checked,omitempty"` // the type that the checker deduces
	Cost    uint64     `json:"cost"`
	Most    uint64     `json:"most"`   // the order of a map is random, and with it where a macro ends
	Agrees  bool       `json:"agrees"` // Kubernetes and the test want the same
}

var base = environment.MustBaseEnvSet(version.MajorMinor(1, 34), true)

// A type that CEL and JSON share; its name, or an error.
func typeOf(t *exprpb.Type) (*cel.Type, error) {
	switch k := t.GetTypeKind().(type) {
	case *exprpb.Type_Dyn:
		return cel.DynType, nil
	case *exprpb.Type_Primitive:
		switch k.Primitive {
		case exprpb.Type_BOOL:
			return cel.BoolType, nil
		case exprpb.Type_INT64:
			return cel.IntType, nil
		case exprpb.Type_DOUBLE:
			return cel.DoubleType, nil
		case exprpb.Type_STRING:
			return cel.StringType, nil
		}
	case *exprpb.Type_ListType_:
		item, err := typeOf(k.ListType.GetElemType())
		return cel.ListType(item), err
	case *exprpb.Type_MapType_:
		if k.MapType.GetKeyType().GetPrimitive() == exprpb.Type_STRING {
			value, err := typeOf(k.MapType.GetValueType())
			return cel.MapType(cel.StringType, value), err
		}
	}
	return cel.DynType, errors.New("a variable that JSON cannot have")
}

// A value of a binding, if JSON has it.
func bound(v *exprpb.Value) (any, error) {
	switch k := v.GetKind().(type) {
	case *exprpb.Value_NullValue:
		return nil, nil
	case *exprpb.Value_BoolValue:
		return k.BoolValue, nil
	case *exprpb.Value_Int64Value:
		return k.Int64Value, nil
	case *exprpb.Value_DoubleValue:
		if k.DoubleValue != math.Trunc(k.DoubleValue) {
			return k.DoubleValue, nil
		}
	case *exprpb.Value_StringValue:
		return k.StringValue, nil
	case *exprpb.Value_ListValue:
		list := []any{}
		for _, item := range k.ListValue.GetValues() {
			one, err := bound(item)
			if err != nil {
				return nil, err
			}
			list = append(list, one)
		}
		return list, nil
	case *exprpb.Value_MapValue:
		object := map[string]any{}
		for _, e := range k.MapValue.GetEntries() {
			key, is := e.GetKey().GetKind().(*exprpb.Value_StringValue)
			value, err := bound(e.GetValue())
			if !is || err != nil {
				return nil, errors.New("a variable that JSON cannot have")
			}
			object[key.StringValue] = value
		}
		return object, nil
	}
	return nil, errors.New("a variable that JSON cannot have")
}

// What kl_cel_eval gives for a value.
func shown(v ref.Val) any {
	switch x := v.(type) {
	case types.Null:
		return nil
	case types.Bool:
		return bool(x)
	case types.Int:
		return int64(x)
	case types.Uint:
		return uint64(x)
	case types.Double:
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil
		}
		return json.RawMessage(strconv.FormatFloat(float64(x), 'e', -1, 64))
	case types.String:
		return string(x)
	case types.Bytes:
		return base64.StdEncoding.EncodeToString(x)
	case *types.Optional:
		if !x.HasValue() {
			return nil
		}
		return shown(x.GetValue())
	case *types.Type:
		return x.TypeName()
	case traits.Mapper:
		object := map[string]any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			text := fmt.Sprint(shown(key))
			if s, ok := key.ConvertToType(types.StringType).(types.String); ok {
				text = string(s)
			}
			object[text] = shown(x.Get(key))
		}
		return object
	case traits.Lister:
		list := []any{}
		for it := x.Iterator(); it.HasNext() == types.True; {
			list = append(list, shown(it.Next()))
		}
		return list
	}
	if s, ok := v.ConvertToType(types.StringType).(types.String); ok {
		return string(s)
	}
	return fmt.Sprint(v.Value())
}

// Whether the test wants this outcome; val is nil where there is none.
func wanted(t *testpb.SimpleTest, val ref.Val) bool {
	want := t.GetValue()
	switch t.GetResultMatcher().(type) {
	case *testpb.SimpleTest_EvalError, *testpb.SimpleTest_AnyEvalErrors:
		return val == nil
	case *testpb.SimpleTest_TypedResult:
		want = t.GetTypedResult().GetResult()
		if t.GetCheckOnly() {
			return val != nil
		}
	case nil:
		return val == types.True
	}
	if val == nil {
		return false
	}
	native, err := cel.ProtoAsValue(types.DefaultTypeAdapter, want)
	if err != nil {
		return false
	}
	if a, ok := native.(types.Double); ok && math.IsNaN(float64(a)) {
		b, ok := val.(types.Double)
		return ok && math.IsNaN(float64(b))
	}
	return native.Type() == val.Type() && native.Equal(val) == types.True
}

// The order of a map is random in Go, and with it where a macro ends.
const evaluations = 64

func ask(t *testpb.SimpleTest, l *line) (val ref.Val, err error) {
	defer func() {
		if x := recover(); x != nil {
			val, err = nil, fmt.Errorf("a panic of cel-go")
		}
	}()
	switch {
	case strings.ContainsRune(t.GetExpr(), 0):
		return nil, errors.New("a NUL in its text")
	case t.GetContainer() != "":
		return nil, errors.New("a container of names")
	case t.GetDisableMacros():
		return nil, errors.New("macros are off")
	case t.GetUnknown() != nil || t.GetAnyUnknowns() != nil:
		return nil, errors.New("unknown values")
	}
	var options []cel.EnvOption
	declared, input := map[string]*cel.Type{}, map[string]any{}
	for _, d := range t.GetTypeEnv() {
		if d.GetFunction() != nil {
			return nil, errors.New("functions of its own")
		}
		is, err := typeOf(d.GetIdent().GetType())
		if err != nil {
			return nil, err
		}
		declared[d.GetName()] = is
	}
	for name, b := range t.GetBindings() {
		value, err := bound(b.GetValue())
		if err != nil {
			return nil, err
		}
		input[name] = value
		if declared[name] == nil {
			declared[name] = cel.DynType
		}
	}
	names := []string{}
	for name := range declared {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		if strings.Contains(name, ".") {
			return nil, errors.New("a variable with a dot in its name")
		}
		v := variable{Name: name, Type: cel.FormatCELType(declared[name])}
		if _, is := input[name]; !is {
			v.Type += " absent"
		}
		v.Value = input[name]
		l.Vars = append(l.Vars, v)
		options = append(options, cel.Variable(name, declared[name]))
	}
	set, err := base.Extend(environment.VersionedOptions{
		IntroducedVersion: version.MajorMinor(1, 0),
		EnvOptions:        options,
	})
	if err != nil {
		return nil, fmt.Errorf("an environment that Kubernetes refuses")
	}
	env := set.NewExpressionsEnv()
	ast, issues := env.Compile(t.GetExpr())
	if issues != nil {
		l.Refused = issues.String()
		return nil, nil
	}
	l.Checked = cel.FormatCELType(ast.OutputType())
	if t.GetCheckOnly() {
		return types.True, nil
	}
	program, err := env.Program(ast,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost), cel.CostTracking(&library.CostEstimator{}))
	if err != nil {
		l.Refused = err.Error()
		return nil, nil
	}
	var result ref.Val
	for i := 0; i < evaluations; i++ {
		var details *cel.EvalDetails
		result, details, err = program.Eval(input)
		if details == nil || details.ActualCost() == nil {
			continue
		}
		cost := *details.ActualCost()
		if i == 0 || cost < l.Cost {
			l.Cost = cost
		}
		l.Most = max(l.Most, cost)
	}
	if err != nil {
		l.Fails = err.Error()
		return nil, nil
	}
	l.Value, l.Type = shown(result), result.Type().TypeName()
	return result, nil
}

func main() {
	files, _ := filepath.Glob(os.Args[1] + "/tests/simple/testdata/*.textproto")
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		tests := &testpb.SimpleTestFile{}
		if err := prototext.Unmarshal(text, tests); err != nil {
			panic(err)
		}
		for _, s := range tests.GetSection() {
			for _, t := range s.GetTest() {
				l := line{Name: tests.GetName() + "/" + s.GetName() + "/" + t.GetName(), Expr: t.GetExpr()}
				val, err := ask(t, &l)
				if err != nil {
					l = line{Name: l.Name, Expr: l.Expr, Left: err.Error()}
				}
				l.Agrees = err == nil && wanted(t, val)
				b, err := json.Marshal(l)
				if err != nil {
					panic(err)
				}
				fmt.Fprintln(out, string(b))
			}
		}
	}
}
