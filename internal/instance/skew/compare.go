// SPDX-License-Identifier: Apache-2.0

package skew

import (
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Schema is as much of an OpenAPI v3 schema as tells which fields are kept.
type Schema struct {
	Kinds                []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind,omitempty"`
	Properties           map[string]*Schema        `json:"properties,omitempty"`
	Items                *Schema                   `json:"items,omitempty"`
	AdditionalProperties *orBool                   `json:"additionalProperties,omitempty"`
	PreserveUnknown      bool                      `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
}

// orBool is a schema, or whether anything is allowed.
type orBool struct {
	Schema
	anything bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *orBool) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &o.anything) == nil {
		return nil
	}
	return json.Unmarshal(data, &o.Schema)
}

var (
	marshaler  = reflect.TypeFor[json.Marshaler]()
	typeMeta   = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
	listMeta   = reflect.TypeFor[metav1.ListMeta]()
)

// Missing returns the paths of the fields of a Go type that a schema doesn't
// have, in the order of the type, as in "AddonStack.spec.addons[].chart". What is
// below a missing field isn't named.
func Missing(served *Schema, known reflect.Type, path string) []string {
	for known.Kind() == reflect.Pointer {
		known = known.Elem()
	}
	if served.PreserveUnknown || isLeaf(known) {
		return nil
	}
	switch known.Kind() {
	case reflect.Struct:
		return missingFields(served, known, path)
	case reflect.Slice, reflect.Array:
		if served.Items == nil {
			return unlessLeaf(known.Elem(), path+"[]")
		}
		return Missing(served.Items, known.Elem(), path+"[]")
	case reflect.Map:
		switch values := served.AdditionalProperties; {
		case values == nil:
			return []string{path + ".*"}
		case values.anything:
			return nil
		default:
			return Missing(&values.Schema, known.Elem(), path+".*")
		}
	default:
		return nil
	}
}

func missingFields(served *Schema, known reflect.Type, path string) []string {
	var missing []string
	for i := range known.NumField() {
		field := known.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-" || !field.IsExported() && !field.Anonymous:
		case field.Anonymous && (name == "" || strings.Contains(options, "inline")):
			missing = append(missing, Missing(served, field.Type, path)...)
		default:
			if property := served.Properties[name]; property != nil {
				missing = append(missing, Missing(property, field.Type, path+"."+name)...)
			} else {
				missing = append(missing, path+"."+name)
			}
		}
	}
	return missing
}

// unlessLeaf names what a list's elements hold, of which the schema says nothing.
func unlessLeaf(element reflect.Type, path string) []string {
	for element.Kind() == reflect.Pointer {
		element = element.Elem()
	}
	if element.Kind() == reflect.Struct && !isLeaf(element) {
		return []string{path}
	}
	return nil
}

// isLeaf says whether a type has no fields of its own in JSON, or such as every
// API server has.
func isLeaf(t reflect.Type) bool {
	return t == typeMeta || t == objectMeta || t == listMeta || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
