// Prints how Go's JSON encoder treats each field of Kubernetes' types: which empty values it leaves
// out, which fields it always writes, and where quantities are. tools/schemas/shapes.py runs it.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

// shape is one Go struct. Names are JSON names.
type shape struct {
	Dropped    []string          `json:"dropped,omitempty"`    // left out when zero or empty
	Always     map[string]any    `json:"always,omitempty"`     // written even when absent
	Fields     map[string]string `json:"fields,omitempty"`     // shapes further down
	Maps       map[string]string `json:"maps,omitempty"`       // shapes of a map's values
	Quantities []string          `json:"quantities,omitempty"` // quantities, and maps of them
	Nulls      []string          `json:"nulls,omitempty"`      // times: written as null when absent
}

type document struct {
	Kinds  map[string]string `json:"kinds"` // "apps/v1/Deployment": name of its shape
	Shapes map[string]*shape `json:"shapes"`
}

var (
	opaque = map[reflect.Type]bool{
		reflect.TypeFor[metav1.Time]():                   true,
		reflect.TypeFor[metav1.MicroTime]():              true,
		reflect.TypeFor[metav1.Duration]():               true,
		reflect.TypeFor[metav1.FieldsV1]():               true,
		reflect.TypeFor[metav1.ManagedFieldsEntry]():     true,
		reflect.TypeFor[runtime.RawExtension]():          true,
		reflect.TypeFor[runtime.Unknown]():               true,
		reflect.TypeFor[apiextensions.JSON]():            true,
		reflect.TypeFor[apiextensions.JSONSchemaProps](): true,
		reflect.TypeFor[intstr.IntOrString]():            true,
	}
	times = map[reflect.Type]bool{
		reflect.TypeFor[metav1.Time]():      true,
		reflect.TypeFor[metav1.MicroTime](): true,
	}
	served   = regexp.MustCompile(`^v[0-9]+$`) // the release serves no alpha or beta version
	quantity = reflect.TypeFor[resource.Quantity]()
	result   = document{Kinds: map[string]string{}, Shapes: map[string]*shape{}}
)

func main() {
	for _, add := range []func(*runtime.Scheme) error{
		apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		if err := add(scheme.Scheme); err != nil {
			panic(err)
		}
	}
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		// Options, lists and internal versions are never stored.
		_, hasMeta := goType.FieldByName("ObjectMeta")
		if !hasMeta || !served.MatchString(gvk.Version) {
			continue
		}
		key := strings.TrimPrefix(gvk.GroupVersion().String()+"/"+gvk.Kind, "/")
		result.Kinds[key] = visit(goType)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		panic(err)
	}
}

func name(goType reflect.Type) string {
	path := strings.Split(goType.PkgPath(), "/")
	return strings.Join(path[max(len(path)-2, 0):], ".") + "." + goType.Name()
}

func visit(goType reflect.Type) string {
	key := name(goType)
	if result.Shapes[key] == nil {
		found := &shape{Always: map[string]any{}, Fields: map[string]string{}, Maps: map[string]string{}}
		result.Shapes[key] = found
		fields(goType, found)
	}
	return key
}

func fields(goType reflect.Type, found *shape) {
	for i := range goType.NumField() {
		field := goType.Field(i)
		tag, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous && tag == "" {
			inlined := field.Type
			if inlined.Kind() == reflect.Pointer {
				inlined = inlined.Elem()
			}
			if inlined != reflect.TypeFor[metav1.TypeMeta]() {
				fields(inlined, found)
			}
			continue
		}
		if tag != "" && tag != "-" {
			one(tag, strings.Contains(options, "omitempty"), field.Type, found)
			if times[field.Type] && !strings.Contains(options, "omitzero") {
				found.Nulls = append(found.Nulls, tag)
			}
		}
	}
}

func one(tag string, omitempty bool, goType reflect.Type, found *shape) {
	switch goType.Kind() {
	case reflect.Pointer:
		inner(tag, goType.Elem(), found)
	case reflect.Slice:
		// No policies is an error, but nothing said is not: both must stay apart.
		dropWhen(goType.Elem() != reflect.TypeFor[autoscalingv2.HPAScalingPolicy](), tag, found)
		inner(tag, goType.Elem(), found)
	case reflect.Map:
		dropWhen(true, tag, found)
		if goType.Elem() == quantity {
			found.Quantities = append(found.Quantities, tag)
		} else if goType.Elem().Kind() == reflect.Struct && !opaque[goType.Elem()] {
			found.Maps[tag] = visit(goType.Elem())
		}
	case reflect.Struct:
		structure(tag, goType, found)
	default:
		dropWhen(omitempty, tag, found)
		if !omitempty {
			found.Always[tag] = reflect.Zero(goType).Interface()
		}
	}
}

func dropWhen(yes bool, tag string, found *shape) {
	if yes {
		found.Dropped = append(found.Dropped, tag)
	}
}

func inner(tag string, goType reflect.Type, found *shape) {
	if goType == quantity {
		found.Quantities = append(found.Quantities, tag)
	} else if goType.Kind() == reflect.Struct && !opaque[goType] {
		found.Fields[tag] = visit(goType)
	}
}

func structure(tag string, goType reflect.Type, found *shape) {
	switch {
	case goType == quantity:
		found.Quantities = append(found.Quantities, tag)
		found.Always[tag] = "0"
	case goType == reflect.TypeFor[intstr.IntOrString]():
		found.Always[tag] = 0
	case !opaque[goType]:
		found.Fields[tag] = visit(goType)
		found.Always[tag] = map[string]any{}
	}
}
