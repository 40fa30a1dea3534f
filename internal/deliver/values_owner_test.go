// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	renderchart "github.com/cluster-chandler/chandler/internal/render/chart"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// wantGenerated is an add-on of a name whose chart generates a password.
func (e *env) wantGenerated(ns, name string, leaving ...deliver.Release) deliver.Desired {
	c := chart{version: "1"}
	want := e.wantNamed(name, ns, c)
	want.Leaving = leaving
	want.Render = func(_ context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		result, _, err := renderchart.Render(&job.Chart{
			Files: []artifact.File{
				{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: demo\nversion: 1.0.0\n")},
				{Name: "templates/db.yaml", Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData: {password: {{ randAlphaNum 20 }}}\n")},
			},
			Release: job.Release{Name: name, Namespace: ns, Revision: in.Revision}, Generated: in.Generated,
			Facts: job.Facts{KubeVersion: "v1.34.0"},
		}, job.Limits{OutputBytes: 1 << 20, MaxObjects: 10, GeneratedBytes: 1 << 16}, func(job.Stage) {})
		if err != nil {
			return nil, err
		}
		return &deliver.Rendering{Result: *result, Digest: c.digest()}, nil
	}
	return want
}

// passwordIn returns the password that the chart of wantGenerated has generated, as it is in the cluster.
func (e *env) passwordIn(ns string) string {
	e.t.Helper()
	data, _, err := unstructured.NestedString(e.get("v1", "Secret", ns, "db").Object, "data", "password")
	e.Expect(err).NotTo(HaveOccurred())
	return data
}

// TestPasswordOfWhoGoesLater has an add-on refused first that is to have the objects of another one, and only then told
// that this one leaves: as while its removal is held. The revision that was refused has a password of its own.
func TestPasswordOfWhoGoesLater(t *testing.T) {
	e, ns := beside(t)
	first := deliver.Release{Namespace: ns, Name: "first"}
	e.install(e.wantGenerated(ns, "first"))
	live := e.passwordIn(ns)
	e.Expect(e.settle(e.wantGenerated(ns, "second")).Reason).To(Equal(object.ReasonOwnedByOther))
	e.restart()
	e.install(e.wantGenerated(ns, "second", first))
	e.Expect(e.passwordIn(ns)).To(Equal(live))
	e.Expect(e.remove(first).Gone).To(BeTrue())
}

// TestPasswordOfWhatStays deletes a Secret while the add-on that has it waits to be removed, and another one waits for that.
func TestPasswordOfWhatStays(t *testing.T) {
	e, ns := beside(t)
	e.install(e.wantGenerated(ns, "first"))
	live := e.passwordIn(ns)
	want := e.wantGenerated(ns, "second")
	want.Kept = []deliver.Release{{Namespace: ns, Name: "first"}}
	e.Expect(e.settle(want).Reason).To(Equal(object.ReasonOwnedByOther))
	e.Expect(e.target.Client.Delete(e.ctx, e.get("v1", "Secret", ns, "db"))).To(Succeed())
	want.Again = true
	e.install(want)
	e.Expect(e.passwordIn(ns)).To(Equal(live))
}

// TestLivePasswordStays has releases whose records disagree about a password that goes over from one to another. An
// earlier owner of the Secret keeps its record while nothing says that it may go.
func TestLivePasswordStays(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]struct {
		name       string
		leaving    []string
		isUnproven bool
	}{
		"to a new add-on":                   {"third", []string{"first", "second"}, false},
		"to a new add-on, in another order": {"third", []string{"second", "first"}, false},
		"back":                              {"first", []string{"second"}, false},
		"back, to one whose proof is lost":  {"first", []string{"second"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			password := func() string { return e.passwordIn(ns) }
			release := func(name string) deliver.Release { return deliver.Release{Namespace: ns, Name: name} }
			e.install(e.wantGenerated(ns, "first"))
			e.install(e.wantGenerated(ns, "second", release("first")))
			before := password()
			e.Expect(e.target.Client.DeleteAllOf(e.ctx, &corev1.Secret{}, client.InNamespace(ns), client.MatchingLabels{"owner": "helm", "name": "second"})).To(Succeed())
			e.restart()
			e.install(e.wantGenerated(ns, "second"))
			live := password()
			e.Expect(live).NotTo(Equal(before), "nobody knows it any more")

			var leaving []deliver.Release
			for _, name := range next.leaving {
				leaving = append(leaving, release(name))
			}
			if next.isUnproven {
				e.proofs.keep(release(next.name), "", nil)
			}
			e.install(e.wantGenerated(ns, next.name, leaving...))
			e.Expect(e.records(ns)).To(HaveKey(release(next.name)))
			e.Expect(password()).To(Equal(live))
		})
	}
}
