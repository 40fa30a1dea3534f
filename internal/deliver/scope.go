// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scope knows which kinds are namespaced: from the cluster, and from CRDs that
// aren't there yet.
type scope struct {
	mapper meta.RESTMapper
	own    map[schema.GroupKind]bool // namespaced, by CRDs of this add-on
	// unknown says that a kind was asked for that nobody knows yet.
	unknown bool
}

// learn takes in the CRDs among objects.
func (s *scope) learn(objects []*unstructured.Unstructured) {
	if s.own == nil {
		s.own = make(map[schema.GroupKind]bool)
	}
	for _, o := range objects {
		if o.GroupVersionKind().GroupKind() != crdKind {
			continue
		}
		group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
		where, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
		s.own[schema.GroupKind{Group: group, Kind: kind}] = where == "Namespaced"
	}
}

// defines says whether a CRD of this add-on defines the kind.
func (s *scope) defines(gk schema.GroupKind) bool {
	_, ok := s.own[gk]
	return ok
}

// namespaced says whether a kind is; known is false if the cluster has no such kind.
func (s *scope) namespaced(gvk schema.GroupVersionKind) (namespaced, known bool, err error) {
	if n, ok := s.own[gvk.GroupKind()]; ok {
		return n, true, nil
	}
	mapping, err := s.mapping(gvk)
	switch {
	case isNoMatch(err):
		s.unknown = true
		return false, false, nil
	case err != nil:
		return false, false, err
	}
	return mapping.Scope.Name() == meta.RESTScopeNameNamespace, true, nil
}

func (s *scope) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := s.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if isNoMatch(err) {
		// A kind can have moved to another version since it was recorded.
		if other, otherErr := s.mapper.RESTMapping(gvk.GroupKind()); otherErr == nil {
			return other, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("looking up kind %s: %w", gvk.Kind, err)
	}
	return mapping, nil
}

// isNoMatch says that the cluster doesn't know a kind.
func isNoMatch(err error) bool {
	kind, resource := (*meta.NoKindMatchError)(nil), (*meta.NoResourceMatchError)(nil)
	return errors.As(err, &kind) || errors.As(err, &resource)
}
