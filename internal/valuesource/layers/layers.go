// SPDX-License-Identifier: Apache-2.0

// Package layers reads the values of an add-on from each place that its fields name.
package layers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/member"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/internal/valuesource"
)

// Layer is a place that an add-on has values from.
type Layer struct {
	// Field is such as "addons[web].valuesFrom[0]".
	Field string
	// Source is the object of valuesFrom, and Template the add-on of valuesTemplate; nil of other fields.
	Source   *addonsv1.ValuesReference
	Template *addonsv1.Addon
	written  []byte // JSON of the field values
}

// IsTemplated reports whether a template makes the values, or the name of their source.
func (l Layer) IsTemplated() bool {
	return l.Template != nil || l.Source != nil && isTemplate(l.Source.Name)
}

// Of returns the layers of an add-on's values, each of which is merged over those before it. The sources are those of
// valuesFrom, with the names that they have for a cluster.
func Of(a *addonsv1.Addon, sources []addonsv1.ValuesReference) (all []Layer) {
	at := fmt.Sprintf("addons[%s].", a.Name)
	for i := range sources {
		all = append(all, Layer{Field: fmt.Sprintf("%svaluesFrom[%d]", at, i), Source: &sources[i]})
	}
	if a.Values != nil {
		all = append(all, Layer{Field: at + "values", written: a.Values.Raw})
	}
	if a.ValuesTemplate != "" {
		all = append(all, Layer{Field: at + "valuesTemplate", Template: a})
	}
	return all
}

// Renderer reads values and executes templates, as [render.Renderer] does in a worker.
type Renderer interface {
	Values(context.Context, job.Values) (map[string]any, error)
	Template(context.Context, job.Template) (string, error)
	Names(context.Context, job.Names) ([]string, error)
}

// Reader reads the layers of add-ons for one cluster.
type Reader struct {
	Renderer  Renderer
	Sources   *valuesource.Reader
	Namespace string
	Cluster   *member.Member
	// Object returns an object that the Cluster refers to, which templates see as a root of this name.
	Object func(ctx context.Context, root string, ref clusterv1.ContractVersionedObjectReference) (*unstructured.Unstructured, error)
}

// Read returns the values of a layer; false if that is optional, and isn't there. A failure that a user can act on is a
// [*failure.Error] that names the field.
func (r Reader) Read(ctx context.Context, of Layer) (values map[string]any, found bool, err error) {
	switch {
	case of.Source != nil:
		values, found, err = r.source(ctx, *of.Source)
		if failed, ok := errors.AsType[*failure.Error](err); ok {
			failed.Field = of.Field
		}
		return values, found, err
	case of.Template != nil:
		values, err = r.template(ctx, of)
		return values, err == nil, err
	}
	if err := json.Unmarshal(of.written, &values); err != nil {
		return nil, false, failure.New(job.ReasonValuesInvalid, "%s is no map, correct it: %w", of.Field, err)
	}
	return values, true, nil
}

// source returns the values of an object.
func (r Reader) source(ctx context.Context, ref addonsv1.ValuesReference) (values map[string]any, found bool, err error) {
	named := valuesource.Named(r.Namespace, ref)
	is, err := r.Sources.Value(ctx, named)
	if err != nil {
		return nil, false, err
	}
	object := r.Namespace + "/" + ref.Name
	switch {
	case !is.IsThere && ptr.Deref(ref.Optional, false):
		return nil, false, nil
	case !is.HasObject:
		return nil, false, failure.New(reasons.ValuesNotFound, "%s %s doesn't exist; create it, or set optional: true", ref.Kind, object)
	case !is.IsThere:
		return nil, false, failure.New(reasons.ValuesNotFound, "%s %s has no key %q; add it, correct key, or set optional: true",
			ref.Kind, object, stack.ValuesKey(ref))
	}
	values, err = r.Renderer.Values(ctx, job.Values{Text: is.Text})
	return values, err == nil, failure.Within(fmt.Sprintf("%s %s, key %q", ref.Kind, object, named.Key), err)
}
