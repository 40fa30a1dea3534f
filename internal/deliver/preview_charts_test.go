// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/preview"
	"github.com/cluster-chandler/chandler/internal/drift"
	"github.com/cluster-chandler/chandler/internal/plan"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/rendering"
)

// TestPlansOfRealCharts plans installations, an upgrade and removals of published charts, and compares each plan with what is written.
func TestPlansOfRealCharts(t *testing.T) {
	long.Test(t)
	for name, tc := range map[string]struct {
		namespace, first, then string
		changes                int // of the upgrade
	}{
		"cilium":             {namespace: "kube-system", first: "cilium-1.19.5.tgz", then: "cilium-1.19.6.tgz", changes: 4},
		"kube-state-metrics": {first: "kube-state-metrics-8.4.0.tgz"},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			if tc.namespace != "" {
				ns = tc.namespace
			}
			release := deliver.Release{Namespace: ns, Name: name}
			first := e.real(release, tc.first)
			e.planAndDeliver(first, "the installation")
			if tc.then != "" {
				then := e.real(release, tc.then)
				then.Seen = e.watched(release)
				begun := time.Now()
				a := e.preview(then)
				requests, _ := e.meter.total()
				t.Logf("%d objects change: %d requests in %s", len(a.Changes), requests, time.Since(begun).Round(time.Millisecond))
				e.Expect(a.Changes).To(HaveLen(tc.changes), "%+v", a.Changes)
				e.Expect(requests).To(BeNumerically("<=", 2*tc.changes+3), "%v", e.meter.counts)
				e.planAndDeliver(then, "the upgrade")
			}
			removal, err := e.d.PreviewRemoval(e.ctx, e.target, release, e.proofs.of(release), preview.NewComing(nil))
			must.Succeed(t, err)
			e.meter.reset()
			e.removed(release)
			e.expectPlanned(removal, "the removal")
		})
	}
}

// planAndDeliver plans a delivery, delivers, and compares.
func (e *env) planAndDeliver(want deliver.Desired, what string) {
	e.t.Helper()
	a := e.preview(want)
	e.Expect(a.State).To(Or(Equal(plan.Changed), Equal(plan.NotChecked)), "%+v", a) // a namespace may come with it
	e.meter.reset()
	e.settle(want)
	e.expectPlanned(a, what)
}

// real returns a published chart as it is wanted.
func (e *env) real(release deliver.Release, file string) deliver.Desired {
	e.t.Helper()
	files := rendering.RealChart(e.t, file)
	want := e.want(release.Namespace, chart{})
	want.Release = release
	want.Digest = func(context.Context, string) (string, error) { return file, nil }
	want.Render = func(_ context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		of := rendering.ChartJob(files)
		of.Release = job.Release{Name: release.Name, Namespace: release.Namespace, Revision: in.Revision, Upgrade: in.Upgrade}
		of.Generated, of.Lookup, of.Live = in.Generated, in.Lookup, in.Live
		result, err := rendering.Render(e.t, of)
		if err != nil {
			return nil, err
		}
		return &deliver.Rendering{Result: *result, Digest: file}, nil
	}
	return want
}

// watched returns what watches show of a release's objects now.
func (e *env) watched(release deliver.Release) func(deliver.ObjectKey) (drift.Fields, bool) {
	e.t.Helper()
	keys, _, err := e.d.Holds(e.ctx, e.target, release)
	must.Succeed(e.t, err)
	known := map[deliver.ObjectKey]drift.Fields{}
	for _, key := range keys {
		mapping, err := e.target.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: key.Group, Kind: key.Kind})
		must.Succeed(e.t, err)
		o := &unstructured.Unstructured{}
		o.SetGroupVersionKind(mapping.GroupVersionKind)
		if e.target.Client.Get(e.ctx, client.ObjectKey{Namespace: key.Namespace, Name: key.Name}, o) == nil {
			known[key] = drift.FieldsOf(o.GetManagedFields(), object.FieldManager(release))
		}
	}
	return func(key deliver.ObjectKey) (drift.Fields, bool) { return known[key], known[key] != 0 }
}
