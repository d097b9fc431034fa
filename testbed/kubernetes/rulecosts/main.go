// What kube-apiserver thinks that the rules of a CRD cost, and what it says to the CRD. Reads a JSON
// list of schemas, and prints an answer for each: tests/localkube/apiserver/cel/record_costs.py.
package main

import (
	"context"
	"encoding/json"
	"os"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type answer struct {
	Costs  []uint64 `json:"costs"` // of the rules at the root
	Errors []string `json:"errors"`
}

func main() {
	var schemas []v1.JSONSchemaProps
	if err := json.NewDecoder(os.Stdin).Decode(&schemas); err != nil {
		panic(err)
	}
	answers := []answer{}
	for _, schema := range schemas {
		answers = append(answers, judged(schema))
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		panic(err)
	}
}

func judged(schema v1.JSONSchemaProps) answer {
	found := answer{Costs: []uint64{}, Errors: []string{}}
	var inner apiextensions.JSONSchemaProps
	if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&schema, &inner, nil); err != nil {
		panic(err)
	}
	typed, err := structural.NewStructural(&inner)
	if err != nil {
		panic(err)
	}
	env := environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
	root := model.SchemaDeclType(typed, true)
	results, err := cel.Compile(typed, root, celconfig.PerCallLimit, env, cel.NewExpressionsEnvLoader())
	if err != nil {
		panic(err)
	}
	for _, result := range results {
		found.Costs = append(found.Costs, result.MaxCost)
	}
	for _, each := range validation.ValidateCustomResourceDefinition(context.Background(), crd(&inner)) {
		found.Errors = append(found.Errors, each.Error())
	}
	return found
}

func crd(schema *apiextensions.JSONSchemaProps) *apiextensions.CustomResourceDefinition {
	made := &apiextensions.CustomResourceDefinition{}
	made.Name = "foos.example.com"
	no := false
	made.Spec = apiextensions.CustomResourceDefinitionSpec{
		Group: "example.com",
		Scope: apiextensions.NamespaceScoped,
		Names: apiextensions.CustomResourceDefinitionNames{
			Plural: "foos", Singular: "foo", Kind: "Foo", ListKind: "FooList",
		},
		Versions:              []apiextensions.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}},
		Validation:            &apiextensions.CustomResourceValidation{OpenAPIV3Schema: schema},
		PreserveUnknownFields: &no,
	}
	made.Status.StoredVersions = []string{"v1"}
	return made
}
