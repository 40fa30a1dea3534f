// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
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
	o, err := e.d.Remove(e.ctx, e.target, previous.Release)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Reason).To(Equal(object.ReasonWaitingForDeletion), o.Message)

	later := e.want(ns, chart{version: "1", manifest: configMap("held", "x")})
	later.Name, later.Leaving = "later", []deliver.Release{previous.Release}
	o = e.ensure(later)
	e.Expect(o.Reason).To(Equal(object.ReasonWaitingForDeletion), o.Message)
	e.Expect(o.Applied).To(BeFalse())
	e.Expect(o.Message).To(ContainSubstring("ConfigMap %s/held: it was deleted with add-on %s/demo", ns, ns))
	live := e.get("v1", "ConfigMap", ns, "held")
	live.SetFinalizers(nil)
	e.Expect(e.target.Client.Update(e.ctx, live)).To(Succeed())
	e.install(later)
	o = e.remove(previous.Release)
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(ContainSubstring(later.String()), "it says who has the object now")
	e.Expect(e.get("v1", "ConfigMap", ns, "held")).NotTo(BeNil())
}
