// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver/observe"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// Scope knows which kinds are namespaced: from the cluster, and from CRDs that
// aren't there yet.
type Scope struct {
	// Release is the add-on's: its namespace is that of objects that name none.
	Release record.Release
	Mapper  meta.RESTMapper
	own     map[schema.GroupKind]bool // namespaced, by CRDs of this add-on
	// Unknown says that a kind was asked for that nobody knows yet.
	Unknown bool
}

// Manager returns the field manager of the add-on's objects.
func (s *Scope) Manager() string { return FieldManager(s.Release) }

// Learn takes in the CRDs among objects.
func (s *Scope) Learn(objects []*unstructured.Unstructured) {
	if s.own == nil {
		s.own = make(map[schema.GroupKind]bool)
	}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() != CRDKind {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		where, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		s.own[schema.GroupKind{Group: group, Kind: kind}] = where == "Namespaced"
	}
}

// Defines says whether a CRD of this add-on defines the kind.
func (s *Scope) Defines(gk schema.GroupKind) bool {
	_, ok := s.own[gk]
	return ok
}

// namespaceOf returns the namespace of an object in the cluster: none if its kind isn't namespaced, and
// the release's if it names none. A kind that nobody knows yet may be namespaced.
func (s *Scope) namespaceOf(gvk schema.GroupVersionKind, named string) (string, error) {
	namespaced, own := s.own[gvk.GroupKind()]
	if !own {
		mapping, err := s.Mapping(gvk)
		switch {
		case meta.IsNoMatchError(err):
			s.Unknown, namespaced = true, true
		case err != nil:
			return "", err
		default:
			namespaced = mapping.Scope.Name() == meta.RESTScopeNameNamespace
		}
	}
	if !namespaced {
		return "", nil
	}
	return cmp.Or(named, s.Release.Namespace), nil
}

// Mapping returns the resource of a kind, in another version if the cluster no longer has that one.
func (s *Scope) Mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := s.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		// A kind can have moved to another version since it was recorded.
		if other, otherErr := s.Mapper.RESTMapping(gvk.GroupKind()); otherErr == nil {
			return other, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("looking up kind %s: %w", gvk.Kind, err)
	}
	return mapping, nil
}

// Metadata reads the metadata of an object of an inventory.
func (s *Scope) Metadata(ctx context.Context, reader client.Reader, e record.Entry) (*metav1.PartialObjectMetadata, error) {
	mapping, err := s.Mapping(e.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(mapping.GroupVersionKind)
	return m, reader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: e.Name}, m)
}

// Observed returns how an object is watched that was applied, or is to go, as it is now.
func (s *Scope) Observed(o, now *unstructured.Unstructured, evaluate observe.Evaluator) (observe.Object, error) {
	mapping, err := s.Mapping(o.GroupVersionKind())
	if err != nil {
		return observe.Object{}, err
	}
	status := evaluate(now)
	status.Version = now.GetResourceVersion()
	return observe.Object{Resource: mapping.Resource, Key: client.ObjectKeyFromObject(now), Evaluator: evaluate, Status: status}, nil
}
