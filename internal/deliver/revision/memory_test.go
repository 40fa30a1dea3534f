// SPDX-License-Identifier: Apache-2.0

package revision_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/deliver/apply"
	"github.com/cluster-chandler/chandler/internal/deliver/hidden"
	"github.com/cluster-chandler/chandler/internal/deliver/history"
	"github.com/cluster-chandler/chandler/internal/deliver/memory"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/deliver/revision"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/must"
)

// TestRevisionsCount sees that a revision counts once it is made: its objects as they are applied, its CRDs as they are recorded, too, its
// manifest, and what it takes to parse that. With an upgrade, the record before counts, and so does what its chart looks up. What the
// previous revision's objects take is given back.
func TestRevisionsCount(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"), meta.RESTScopeRoot)
	release := record.Release{Namespace: "web", Name: "web"}
	of, scope, clock := budget.New(budget.Limits{}), &object.Scope{Release: release, Mapper: mapper}, clocktesting.NewFakeClock(time.Now())
	c := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web"}}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			o.SetUID("1")
			return c.Create(ctx, o, options...)
		},
	}).Build()
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {a: " + strings.Repeat("b", 1000) + "}\n"
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"group": "a"}}}
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	crd.SetName("one")
	var takes int64
	render := func(ctx context.Context, in revision.RenderInput) (*revision.Rendering, error) {
		objects, err := record.ParseManifest(manifest)
		takes = object.Weight(objects...) + 2*object.Weight(crd) + int64(len(manifest))
		if in.Upgrade {
			found, failed := in.Lookup(ctx, []job.Lookup{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "web", Name: "one"}})
			must.Succeed(t, failed)
			takes += object.Weight(&unstructured.Unstructured{Object: found[0].Object})
		}
		return &revision.Rendering{Digest: "sha256:1", Result: job.Result{Chart: []byte("{}"), Manifest: manifest, Objects: objects, CRDs: []*unstructured.Unstructured{crd}}}, err
	}
	m := &revision.Maker{
		Want: &revision.Desired{Release: release, Owner: "fleet/a", Render: render, DigestBy: func(string) string { return "" }},
		Past: &history.History{Scope: scope, Hidden: hidden.New(scope, nil)}, Applier: apply.Applier{Client: c, Scope: scope}, Own: c, Clock: clock,
	}
	begin := func() (made *revision.Made, claimed int64) {
		m.Past.Memory = memory.New(t.Context(), of, clock)
		defer m.Past.Memory.End()
		m.Past.Store = &record.Store{Client: c, Writer: c, Release: release, Clock: clock, Hold: m.Past.Memory.Hold}
		must.Succeed(t, m.Past.List(t.Context()))
		made, err := m.Begin(t.Context())
		must.Succeed(t, err)
		return made, of.Usage().Claimed
	}
	made, claimed := begin()
	must.Equal(t, takes+made.Record.ParsingCost(), claimed, "claimed for the first revision")
	must.Succeed(t, m.Record(t.Context(), made))
	must.Succeed(t, c.Create(t.Context(), made.Objects[0]))
	made.Record.State.Inventory[0].UID, made.Record.State.Inventory[1].UID = "1", "1"
	must.Succeed(t, revision.Finish(t.Context(), m.Past, made.Record, "Install", ""))
	m.Past.Proof = made.Record.Proof()
	made, claimed = begin()
	must.Equal(t, takes+made.Record.ParsingCost()+m.Past.Store.Size(), claimed, "claimed for an upgrade")
}
