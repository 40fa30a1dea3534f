// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	renderchart "github.com/cluster-chandler/chandler/internal/render/chart"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// moving has two add-ons of which the second is to take the place of the first.
type moving struct {
	*env
	ns              string
	previous, later deliver.Desired
}

func newMoving(t *testing.T) *moving {
	t.Helper()
	m := &moving{env: newEnv(t)}
	m.ns = m.namespace()
	group := m.ns + ".example.com"
	hooks := []job.Hook{hook("bye", 0, jobText("bye", false), []string{"pre-delete", "post-delete"})}
	common := deployment("app") + widget(group, "one")
	m.previous = m.want(m.ns, chart{version: "1", crds: crd(group), hooks: hooks, manifest: configMap("settings", "previous") + configMap("old", "x") + common})
	m.later = m.want(m.ns, chart{version: "2", crds: crd(group), manifest: configMap("settings", "later") + configMap("new", "x") + common})
	m.later.Name = "later"
	m.later.Leaving = []deliver.Release{m.previous.Release}
	return m
}

// uids of what both have.
func (m *moving) uids() map[string]types.UID {
	m.t.Helper()
	uids := map[string]types.UID{}
	for name, at := range map[string][2]string{
		"settings": {"v1", "ConfigMap"}, "app": {"apps/v1", "Deployment"}, "one": {m.ns + ".example.com/v1", "Widget"},
	} {
		object := m.get(at[0], at[1], m.ns, name)
		m.Expect(object).NotTo(BeNil(), name)
		uids[name] = object.GetUID()
	}
	group := m.ns + ".example.com"
	definition := m.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	m.Expect(definition).NotTo(BeNil())
	uids["crd"] = definition.GetUID()
	return uids
}

func (m *moving) expectOwner(release deliver.Release, text string) {
	m.t.Helper()
	for name, at := range map[string][2]string{"settings": {"v1", "ConfigMap"}, "app": {"apps/v1", "Deployment"}} {
		object := m.get(at[0], at[1], m.ns, name)
		m.Expect(object.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, release.Name))
		for _, e := range object.GetManagedFields() {
			if e.Subresource == "" {
				m.Expect(e.Manager).To(Equal(fmt.Sprintf("chandler/%s/%s", m.ns, release.Name)), name)
			}
		}
	}
	m.Expect(m.get("v1", "ConfigMap", m.ns, "settings").Object["data"]).To(Equal(map[string]any{"key": text}))
}

// TestTakeOver cuts the connection at each write with which an add-on takes the place of
// another one, and continues: what both have is never deleted.
func TestTakeOver(t *testing.T) {
	for _, done := range []bool{false, true} {
		t.Run(fmt.Sprintf("done=%t", done), func(t *testing.T) {
			t.Parallel()
			writes := takeOverWith(t, 0, false)
			for k := 1; k <= writes; k++ {
				t.Run(fmt.Sprintf("write=%d", k), func(t *testing.T) {
					t.Parallel()
					takeOverWith(t, k, done)
				})
			}
		})
	}
}

func takeOverWith(t *testing.T, k int, done bool) int {
	t.Helper()
	m := newMoving(t)
	m.install(m.previous)
	before := m.uids()
	m.meter.reset()
	m.meter.failFrom, m.meter.done = k, done
	m.settle(m.later)
	m.remove(m.previous.Release)
	_, writes := m.meter.total()
	if k > 0 {
		m.restart()
		m.install(m.later)
		m.Expect(m.remove(m.previous.Release).Gone).To(BeTrue())
	}
	m.Expect(m.uids()).To(Equal(before))
	m.expectOwner(m.later.Release, "later")
	m.Expect(m.get("v1", "ConfigMap", m.ns, "old")).To(BeNil(), "what only the previous one had is gone")
	m.Expect(m.get("batch/v1", "Job", m.ns, "bye")).To(BeNil(), "its hooks aren't run")
	m.Expect(m.records(m.ns)).To(HaveLen(1))
	return writes
}

// TestTakeBack turns round at each write: what was taken over is taken back.
func TestTakeBack(t *testing.T) {
	t.Parallel()
	for k := 0; k < 12; k++ {
		t.Run(fmt.Sprintf("write=%d", k), func(t *testing.T) {
			t.Parallel()
			m := newMoving(t)
			m.install(m.previous)
			before := m.uids()
			m.proofs.outlives = true // else the later one would be left as it is
			m.meter.reset()
			m.meter.failFrom = k
			m.settle(m.later)
			m.restart()
			m.previous.Leaving = []deliver.Release{m.later.Release}
			m.install(m.previous)
			m.Expect(m.remove(m.later.Release).Gone).To(BeTrue())
			m.Expect(m.uids()).To(Equal(before))
			m.expectOwner(m.previous.Release, "previous")
			m.Expect(m.get("v1", "ConfigMap", m.ns, "old")).NotTo(BeNil())
			m.Expect(m.get("v1", "ConfigMap", m.ns, "new")).To(BeNil())
			m.Expect(m.get("batch/v1", "Job", m.ns, "bye")).To(BeNil())
		})
	}
}

// TestHooksOfWhatGoesWithItsSuccessor removes both: nothing lives on, so the hooks are run.
func TestHooksOfWhatGoesWithItsSuccessor(t *testing.T) {
	long.Test(t)
	t.Parallel()
	m := newMoving(t)
	m.install(m.previous)
	m.install(m.later)
	m.Expect(m.remove(m.previous.Release, m.later.Release).Gone).To(BeTrue())
	m.Expect(m.get("batch/v1", "Job", m.ns, "bye")).NotTo(BeNil(), "it was run")
	m.Expect(m.get("v1", "ConfigMap", m.ns, "settings")).NotTo(BeNil(), "that is the other one's to delete")
	m.Expect(m.remove(m.later.Release, m.previous.Release).Gone).To(BeTrue())
	m.Expect(m.get("v1", "ConfigMap", m.ns, "settings")).To(BeNil())
}

// TestHookInPlaceOfAnObject has an object in what goes, and a hook of the same name in
// what comes.
func TestHookInPlaceOfAnObject(t *testing.T) {
	t.Parallel()
	m := newMoving(t)
	m.install(m.previous)
	m.later.Render = m.want(m.ns, chart{version: "2", manifest: configMap("new", "x"), hooks: []job.Hook{
		{Name: "old", Kind: "ConfigMap", Path: "demo/templates/old", Manifest: configMap("old", "hook"), Events: []string{"pre-install"}},
	}}).Render
	m.install(m.later)
	m.Expect(m.get("v1", "ConfigMap", m.ns, "old").Object["data"]).To(Equal(map[string]any{"key": "hook"}))
	m.Expect(m.remove(m.previous.Release).Gone).To(BeTrue())
}

// TestTakeOverOfWhatIsGoing waits for an object that was deleted already.
func TestTakeOverOfWhatIsGoing(t *testing.T) {
	e, ns := alone(t)
	held := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/held]}\n"
	previous := e.want(ns, chart{version: "1", manifest: held})
	e.install(previous)
	o := e.removeOnce(previous.Release)
	e.Expect(o.Reason).To(Equal(object.ReasonWaitingForDeletion), o.Message)

	later := e.want(ns, chart{version: "1", manifest: configMap("held", "x")})
	later.Name, later.Leaving = "later", []deliver.Release{previous.Release}
	o = e.ensureAs(later, object.ReasonWaitingForDeletion)
	e.Expect(o.Applied).To(BeFalse())
	e.Expect(o.Message).To(ContainSubstring("ConfigMap %s/held: it was deleted with add-on %s/demo", ns, ns))
	e.release("v1", "ConfigMap", ns, "held")
	e.install(later)
	o = e.remove(previous.Release)
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(ContainSubstring(later.String()), "it says who has the object now")
	e.Expect(e.get("v1", "ConfigMap", ns, "held")).NotTo(BeNil())
}

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
	e.settleAs(e.wantGenerated(ns, "second"), object.ReasonOwnedByOther)
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
	e.settleAs(want, object.ReasonOwnedByOther)
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
