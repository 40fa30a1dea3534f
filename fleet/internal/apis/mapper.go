// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"context"
	"net/http"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cluster-chandler/chandler/fleet/budget"
)

// mapper is the RESTMapper of a connection. It knows the kinds by the APIs that clusters share. For
// a kind that isn't among them it asks the cluster, by a mapper of its own, until the APIs are
// discovered again. Only the server can tell a kind that it doesn't have from an aggregated API that
// doesn't answer.
type mapper struct {
	of   *Cluster
	make func(*budget.Claim) (meta.RESTMapper, error)
	own  atomic.Pointer[ownMapper]
}

// ownMapper is a connection's own mapper, with what it keeps.
type ownMapper struct {
	meta.RESTMapper
	kept *budget.Claim
}

// NewMapper implements cluster.Options.MapperProvider.
func (c *Cluster) NewMapper(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	c.mapper = &mapper{of: c, make: func(kept *budget.Claim) (meta.RESTMapper, error) {
		bounded := *client
		bounded.Transport = kinds{under: c.ctx, base: client.Transport, read: newDocuments(c.transport, kept), single: true}
		return apiutil.NewDynamicRESTMapper(config, &bounded)
	}}
	err := c.mapper.renew()
	if err == nil {
		context.AfterFunc(c.ctx, func() { c.mapper.own.Load().kept.End() })
	}
	return c.mapper, err
}

// renew drops the connection's own mapper for a new one, which asks for nothing yet. The APIs that
// the old one found are among the APIs that were discovered again.
func (m *mapper) renew() error {
	kept := m.of.transport.Memory.Lasting(m.of.transport.Tenant)
	made, err := m.make(kept)
	if err != nil {
		return err
	}
	if old := m.own.Swap(&ownMapper{made, kept}); old != nil {
		old.kept.End()
	}
	return nil
}

// ask asks a RESTMapper of the shared APIs, which is made for this question, and then the connection's own one for what they don't
// have. Only RESTMapping is called often.
func ask[T any](m *mapper, question func(meta.RESTMapper) (T, error)) (answer T, err error) {
	known, err := m.of.last()
	if err != nil {
		return answer, err
	}
	if answer, err = question(restmapper.NewDiscoveryRESTMapper(known.groups)); !meta.IsNoMatchError(err) {
		return answer, err
	}
	return question(m.own.Load())
}

// KindFor implements meta.RESTMapper.
func (m *mapper) KindFor(resource schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return ask(m, func(by meta.RESTMapper) (schema.GroupVersionKind, error) { return by.KindFor(resource) })
}

// KindsFor implements meta.RESTMapper.
func (m *mapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return ask(m, func(by meta.RESTMapper) ([]schema.GroupVersionKind, error) { return by.KindsFor(resource) })
}

// ResourceFor implements meta.RESTMapper.
func (m *mapper) ResourceFor(input schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return ask(m, func(by meta.RESTMapper) (schema.GroupVersionResource, error) { return by.ResourceFor(input) })
}

// ResourcesFor implements meta.RESTMapper.
func (m *mapper) ResourcesFor(input schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return ask(m, func(by meta.RESTMapper) ([]schema.GroupVersionResource, error) { return by.ResourcesFor(input) })
}

// RESTMapping implements meta.RESTMapper.
func (m *mapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	known, err := m.of.last()
	if err != nil {
		return nil, err
	}
	if mapping := known.mapping(kind, versions); mapping != nil {
		return mapping, nil
	}
	return m.own.Load().RESTMapping(kind, versions...)
}

// RESTMappings implements meta.RESTMapper.
func (m *mapper) RESTMappings(kind schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return ask(m, func(by meta.RESTMapper) ([]*meta.RESTMapping, error) { return by.RESTMappings(kind, versions...) })
}

// ResourceSingularizer implements meta.RESTMapper.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return ask(m, func(by meta.RESTMapper) (string, error) { return by.ResourceSingularizer(resource) })
}
