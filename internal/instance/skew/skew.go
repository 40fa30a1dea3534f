// SPDX-License-Identifier: Apache-2.0

// Package skew finds out whether an API server serves all that this program reads and writes of an
// API. Fields that a CRD doesn't have are dropped without an error, and would be written again and
// again. The published schema tells: everybody may read it, unlike CRDs.
package skew

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/cluster-chandler/chandler/internal/message"
)

// onlyWritten are fields that people read, and this program doesn't: it works without them. Dropped, they aren't written more often,
// as the heartbeat writes them each time.
var onlyWritten = []string{
	"ProviderInstance.status.scope", "ProviderInstance.status.clusters", "ProviderInstance.status.clusters.total",
	"ProviderInstance.status.clusters.ready", "ProviderInstance.status.unmanagedClusters", "ProviderInstance.status.sandbox",
}

// maxNamed is how many fields a message names.
const maxNamed = 3

// Gap is what an API server doesn't serve of a version of the API.
type Gap struct {
	Version schema.GroupVersion
	// Kinds that aren't served in this version at all.
	Kinds []string
	// Fields that the CRDs don't have, as in "AddonStack.spec.addons[].chart". Those that a program only writes aren't among them.
	Fields []string
	// Unknown are fields of the CRDs that the Go types don't have: the CRDs are newer.
	Unknown []string
}

// Newer returns which fields of the CRDs this program doesn't know, and what to do; "" if there is none.
func (g Gap) Newer() string {
	if len(g.Unknown) == 0 {
		return ""
	}
	return fmt.Sprintf("The CRDs of %s are newer than this instance: it doesn't know %s. It leaves alone what AddonStacks with such fields "+
		"in their spec install. Upgrade the instance", g.Version, message.List(g.Unknown, ", ", maxNamed))
}

// Empty reports whether nothing is missing.
func (g Gap) Empty() bool { return len(g.Kinds) == 0 && len(g.Fields) == 0 }

// String returns what is missing and what to do.
func (g Gap) String() string {
	const wayOut = "Upgrade config/shared first, which holds the CRDs"
	switch {
	case len(g.Kinds) == 0 && len(g.Fields) > 0 && len(g.Unknown) > 0:
		return fmt.Sprintf("The CRDs of %s are newer than this instance: they don't have %s any more, and it doesn't know %s. Upgrade the instance",
			g.Version, message.List(g.Fields, ", ", maxNamed), message.List(g.Unknown, ", ", maxNamed))
	case len(g.Kinds) > 0:
		return fmt.Sprintf("The API server doesn't serve %s of %s. %s", strings.Join(g.Kinds, ", "), g.Version, wayOut)
	case len(g.Fields) > 0:
		return fmt.Sprintf("The CRDs of %s don't have %s. %s", g.Version, message.List(g.Fields, ", ", maxNamed), wayOut)
	}
	return ""
}

// Schema is the part of an OpenAPI v3 schema that tells which fields are kept.
type Schema struct {
	Kinds           []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind,omitempty"`
	Properties      map[string]*Schema        `json:"properties,omitempty"`
	Items           *Schema                   `json:"items,omitempty"`
	PreserveUnknown bool                      `json:"x-kubernetes-preserve-unknown-fields,omitempty"`
}

// Check compares what an API server serves of one version with Go types. A type has the name
// of its kind.
func Check(ctx context.Context, server rest.Interface, version schema.GroupVersion, kinds ...any) (Gap, error) {
	var document struct {
		Components struct {
			Schemas map[string]*Schema `json:"schemas"`
		} `json:"components"`
	}
	data, err := server.Get().AbsPath("/openapi/v3/apis", version.Group, version.Version).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(data, &document)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return Gap{}, fmt.Errorf("reading the schema of %s: %w", version, err)
	}
	served := map[schema.GroupVersionKind]*Schema{}
	for _, s := range document.Components.Schemas {
		for _, kind := range s.Kinds {
			served[kind] = s
		}
	}
	gap := Gap{Version: version}
	for _, kind := range kinds {
		known := reflect.Indirect(reflect.ValueOf(kind)).Type()
		if s := served[version.WithKind(known.Name())]; s != nil {
			gap.Compare(s, known, known.Name())
		} else {
			gap.Kinds = append(gap.Kinds, known.Name())
		}
	}
	return gap, nil
}

// Serves reports whether an API server serves a kind.
func Serves(ctx context.Context, server rest.Interface, kind schema.GroupVersionKind) (bool, error) {
	resources := &metav1.APIResourceList{}
	err := server.Get().AbsPath("/apis", kind.Group, kind.Version).Do(ctx).Into(resources)
	if err != nil && !apierrors.IsNotFound(err) {
		return false, fmt.Errorf("asking for the kinds of %s: %w", kind.GroupVersion(), err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == kind.Kind }), nil
}

var (
	marshaler  = reflect.TypeFor[json.Marshaler]()
	typeMeta   = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta = reflect.TypeFor[metav1.ObjectMeta]()
)

// Compare adds the fields of a Go type that a schema doesn't have, in the order of the type, and those of the schema that
// the type doesn't have. Paths are as in "AddonStack.spec.addons[].chart". Fields below such a field are left out.
func (g *Gap) Compare(served *Schema, known reflect.Type, path string) {
	for known.Kind() == reflect.Pointer {
		known = known.Elem()
	}
	switch {
	case hasNoFields(known):
		return
	case known.Kind() == reflect.Slice && served.Items != nil:
		g.Compare(served.Items, known.Elem(), path+"[]")
		return
	case known.Kind() != reflect.Struct:
		return
	}
	fields := fieldsOf(known)
	for _, field := range fields {
		switch property := served.Properties[field.name]; {
		case property != nil:
			g.Compare(property, field.of, path+"."+field.name)
		case !served.PreserveUnknown && !slices.Contains(onlyWritten, path+"."+field.name):
			g.Fields = append(g.Fields, path+"."+field.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(served.Properties)) {
		if !slices.ContainsFunc(fields, func(f field) bool { return f.name == name }) {
			g.Unknown = append(g.Unknown, path+"."+name)
		}
	}
}

// field is one of a struct, by its name in JSON.
type field struct {
	name string
	of   reflect.Type
}

// fieldsOf returns the fields that a struct has in JSON.
func fieldsOf(of reflect.Type) []field {
	var fields []field
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && (name == "" || strings.Contains(options, "inline")):
			fields = append(fields, fieldsOf(f.Type)...)
		case f.IsExported() && name != "-":
			fields = append(fields, field{name, f.Type})
		}
	}
	return fields
}

// hasNoFields reports whether a type has no fields of its own in JSON, or those of all objects.
func hasNoFields(t reflect.Type) bool {
	return t == typeMeta || t == objectMeta || t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler)
}
