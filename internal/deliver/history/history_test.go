// SPDX-License-Identifier: Apache-2.0

package history_test

import (
	"context"
	"testing"
	"time"

	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/test/must"
)

// The objects of a manifest count as long as the call has them, and those that they were made of don't.
func TestObjectsOfAManifestCount(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	of := budget.New(budget.Limits{})
	call := memory.New(t.Context(), of, clocktesting.NewFakeClock(time.Now()))
	h := &history.History{Scope: &object.Scope{Release: record.Release{Namespace: "web", Name: "web"}, Mapper: mapper}, Memory: call}
	rec := &record.Record{Helm: &helmrelease.Release{Manifest: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: b}\n"}}
	objects, weight, err := h.Manifest(t.Context(), rec)
	must.Succeed(t, err)
	must.Len(t, 1, objects, "objects")
	if claimed := of.Usage().Claimed; weight == 0 || claimed != weight {
		t.Errorf("%d bytes are claimed for objects of %d", claimed, weight)
	}
	call.End()
	must.Equal(t, 0, of.Usage().Claimed, "claimed")
}

// A record that is read counts, with what it takes to parse its manifest.
func TestRecordsCount(t *testing.T) {
	of := budget.New(budget.Limits{})
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
		o.SetUID("1")
		return c.Create(ctx, o, options...)
	}}).Build()
	call := memory.New(t.Context(), of, clocktesting.NewFakeClock(time.Now()))
	scope := &object.Scope{Release: record.Release{Namespace: "web", Name: "web"}}
	h := &history.History{Scope: scope, Memory: call, Hidden: hidden.New(scope, nil), Store: &record.Store{
		Client: c, Writer: c, Release: scope.Release, Clock: clocktesting.NewFakePassiveClock(time.Now()), Hold: call.Hold,
	}}
	must.Succeed(t, h.Store.Create(t.Context(), &record.Record{
		Summary: record.Summary{Release: scope.Release, Revision: 1, Status: "deployed", Digest: "sha256:1", Owner: "fleet/a"},
		Helm:    &helmrelease.Release{Name: "web", Namespace: "web", Version: 1, Info: &helmrelease.Info{Status: "deployed"}, Manifest: "a: b\n"},
		State:   &record.State{Format: 1},
	}))
	must.Succeed(t, h.List(t.Context()))
	rec, err := h.Load(t.Context(), h.Records[0])
	must.Succeed(t, err)
	must.Equal(t, h.Store.Size()+rec.ParsingCost(), of.Usage().Claimed, "claimed")
}
