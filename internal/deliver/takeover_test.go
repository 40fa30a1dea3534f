// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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
	o = e.removed(previous.Release)
	e.Expect(o.Message).To(ContainSubstring(later.String()), "it says who has the object now")
	e.Expect(e.get("v1", "ConfigMap", ns, "held")).NotTo(BeNil())
}

// wantGenerated is an add-on of a name whose chart generates a password.
func (e *env) wantGenerated(ns, name string, leaving ...deliver.Release) deliver.Desired {
	return e.wantGeneratedIn(ns, name, "1", "db", leaving...)
}

// wantGeneratedIn is an add-on as that of wantGenerated, with a version, and a name of the Secret.
func (e *env) wantGeneratedIn(ns, name, version, secret string, leaving ...deliver.Release) deliver.Desired {
	c := chart{version: version}
	want := e.wantNamed(name, ns, c)
	want.Leaving = leaving
	want.Render = func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
		request := &job.Chart{
			Files: []artifact.File{
				{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: demo\nversion: 1.0.0\n")},
				{Name: "templates/db.yaml", Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: " + secret + "}\nstringData: {password: {{ randAlphaNum 20 }}}\n")},
			},
			Release: job.Release{Name: name, Namespace: ns, Revision: in.Revision}, Generated: in.Generated,
			Facts: job.Facts{KubeVersion: "v1.34.0"},
		}
		limits, ignore := job.Limits{OutputBytes: 1 << 20, MaxObjects: 10, GeneratedBytes: 1 << 16}, func(job.Stage) {}
		result, _, err := renderchart.Render(request, limits, ignore)
		if err == nil && result.Made && in.Live != nil {
			if request.LiveObjects, err = in.Live(ctx); err == nil {
				result, _, err = renderchart.Render(request, limits, ignore)
			}
		}
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

// TestPasswordOfThePreviousLife has an add-on that was removed and is installed again, so that it has another password. The record of
// another one has the first password still, from the time when that one could have taken the Secret over. That one also has an object
// for itself about which a third one disagrees.
func TestPasswordOfThePreviousLife(t *testing.T) {
	e, ns := beside(t)
	release := func(name string) deliver.Release { return deliver.Release{Namespace: ns, Name: name} }
	e.install(e.wantGenerated(ns, "first"))
	e.install(e.wantGeneratedIn(ns, "third", "1", "other"))
	e.install(e.wantGeneratedIn(ns, "second", "1", "other", release("first"), release("third")))
	e.Expect(e.remove(release("first")).Gone).To(BeTrue())
	e.Expect(e.target.Client.DeleteAllOf(e.ctx, &corev1.Secret{}, client.InNamespace(ns), client.MatchingLabels{"owner": "helm", "name": "third"})).To(Succeed())
	e.restart()
	e.settleAs(e.wantGeneratedIn(ns, "third", "1", "other"), object.ReasonOwnedByOther)
	e.install(e.wantGenerated(ns, "first"))
	live := e.passwordIn(ns)
	want := e.wantGeneratedIn(ns, "first", "2", "db")
	want.Kept = []deliver.Release{release("second"), release("third")}
	e.install(want)
	e.Expect(e.passwordIn(ns)).To(Equal(live))
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

// TestAdoptedPasswordStays adopts a release that Chandler left behind. Other releases have generated values, too, which don't
// keep those of the release from being read from its objects.
func TestAdoptedPasswordStays(t *testing.T) {
	e, ns := beside(t)
	e.install(e.wantNamed("other", ns, chart{version: "1", manifest: configMap("other", "x")}))
	want := e.wantGenerated(ns, "first")
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	live := e.passwordIn(ns)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	want.Adoption, want.Kept = addonsv1.AdoptionPolicyAdopt, []deliver.Release{{Namespace: ns, Name: "other"}}
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

// theirConfigMap is YAML of a ConfigMap of somebody else.
func theirConfigMap(ns, name, value string, labels ...string) string {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s, labels: {a: b", name, ns)
	for _, l := range labels {
		text += ", " + l
	}
	return text + fmt.Sprintf("}}\ndata: {key: %s}\n", value)
}

func (e *env) delete(o *unstructured.Unstructured) {
	e.t.Helper()
	e.Expect(o).NotTo(BeNil())
	e.Expect(e.target.Client.Delete(e.ctx, o)).To(Succeed())
}

// TestObjectMadeAnewByAnotherAddonStaysItsOwn deletes an object of one add-on by hand.
// Another add-on makes one of that name, and keeps it through upgrade and removal of the first.
func TestObjectMadeAnewByAnotherAddonStaysItsOwn(t *testing.T) {
	e, ns := alone(t)
	first := e.wantNamed("first", ns, chart{version: "1", manifest: configMap("x", "a") + configMap("mine", "1")})
	e.install(first)
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	second := e.wantNamed("second", ns, chart{version: "1", manifest: configMap("x", "b")})
	e.install(second)

	o := e.settleAs(e.wantNamed("first", ns, chart{version: "2", manifest: configMap("x", "c") + configMap("mine", "2")}), object.ReasonOwnedByOther)
	e.Expect(o.Message).To(ContainSubstring(ns + "/second"))
	e.Expect(e.remove(first.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine")).To(BeNil())
	x := e.get("v1", "ConfigMap", ns, "x")
	e.Expect(x).NotTo(BeNil())
	e.Expect(x.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "second"))
	e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "b"}))
}

// TestObjectThatMovedToAnotherAPIGroupStays: it has another key in the new revision, and is the
// same object.
func TestObjectThatMovedToAnotherAPIGroupStays(t *testing.T) {
	e, ns := alone(t)
	event := func(apiVersion, about, by string) string {
		return fmt.Sprintf("---\napiVersion: %s\nkind: Event\nmetadata: {name: moved}\n%s: {kind: ConfigMap, name: x, namespace: %s}\n%s: example.com/c\n"+
			"reportingInstance: i\naction: A\nreason: R\ntype: Normal\neventTime: \"2026-01-01T00:00:00.000000Z\"\n", apiVersion, about, ns, by)
	}
	e.install(e.want(ns, chart{version: "1", manifest: event("v1", "involvedObject", "reportingComponent")}))
	uid := e.get("v1", "Event", ns, "moved").GetUID()
	e.install(e.want(ns, chart{version: "2", manifest: event("events.k8s.io/v1", "regarding", "reportingController")}))
	moved := e.get("events.k8s.io/v1", "Event", ns, "moved")
	e.Expect(moved).NotTo(BeNil())
	e.Expect(moved.GetUID()).To(Equal(uid))
}

// TestRemovalLeavesWhatSomebodyMadeAnew although the copy has the add-on's labels, as one
// of a backup does.
func TestRemovalLeavesWhatSomebodyMadeAnew(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a") + configMap("mine", "a")})
	e.install(want)
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.apply("kubectl", theirConfigMap(ns, "x", "theirs", addonsv1.AddonLabel+": demo", addonsv1.AddonNamespaceLabel+": "+ns))
	o := e.removed(want.Release)
	e.Expect(o.Message).To(ContainSubstring("ConfigMap " + ns + "/x"))
	e.Expect(e.get("v1", "ConfigMap", ns, "x")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine")).To(BeNil())
}

// overtaken is a client of which somebody is faster than each of its deletions.
type overtaken struct {
	client.Client
	before func(client.Object)
}

func (c overtaken) Delete(ctx context.Context, o client.Object, options ...client.DeleteOption) error {
	c.before(o)
	return c.Client.Delete(ctx, o, options...)
}

// TestDeletionSparesWhatSomebodyMakesAnewMeanwhile: between the look at an object and its
// deletion it becomes another one.
func TestDeletionSparesWhatSomebodyMakesAnewMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then chart
	}{
		"pruned": {chart{version: "1", manifest: configMap("x", "a") + configMap("stays", "a")}, chart{version: "2", manifest: configMap("stays", "a")}},
		"hook, once it has run": {chart{version: "1", manifest: configMap("stays", "a")},
			chart{version: "2", manifest: configMap("stays", "a"), hooks: []job.Hook{settingsHook("post-upgrade", "hook-succeeded")}}},
		"hook, before it runs again": {chart{version: "1", manifest: configMap("stays", "a"), hooks: []job.Hook{settingsHook("post-install", "before-hook-creation")}},
			chart{version: "2", manifest: configMap("stays", "a"), hooks: []job.Hook{settingsHook("post-upgrade", "before-hook-creation")}}},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			e.install(e.want(ns, tc.first))
			cluster := e.target.Client
			e.target.Client = overtaken{cluster, func(o client.Object) {
				live := e.get("v1", "ConfigMap", ns, o.GetName())
				if o.GetName() == "x" && live.GetLabels()["a"] != "b" {
					e.Expect(cluster.Delete(e.ctx, live)).To(Succeed())
					e.apply("kubectl", theirConfigMap(ns, "x", "theirs"))
				}
			}}
			e.settle(e.want(ns, tc.then))
			x := e.get("v1", "ConfigMap", ns, "x")
			e.Expect(x).NotTo(BeNil())
			e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "theirs"}))
		})
	}
}

// settingsHook is a ConfigMap that is a hook.
func settingsHook(event string, policies ...string) job.Hook {
	return job.Hook{Name: "x", Kind: "ConfigMap", Path: "demo/templates/x", Manifest: configMap("x", "hook"), Events: []string{event}, DeletePolicies: policies}
}

// TestAnotherManagementClusterTakesOver once: the first one stops, says so, and takes the
// release back with a new ClusterAddon.
func TestAnotherManagementClusterTakesOver(t *testing.T) {
	e, ns := alone(t)
	of := func(uid, version string) deliver.Desired {
		want := e.want(ns, chart{version: version, manifest: configMap("x", version)})
		want.OwnerUID = types.UID(uid)
		return want
	}
	e.install(of("first", "1"))
	e.install(of("first", "2"))
	e.install(of("second", "3"))
	for range 2 {
		e.restart()
		o := e.settleAs(of("first", "2"), deliver.ReasonReleaseTakenOver)
		e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
		e.Expect(o.Message).To(And(ContainSubstring(ns+"/demo"), ContainSubstring("fleet/cluster-a")))
		e.Expect(o.Recorded).To(BeNil())
	}
	e.Expect(e.install(of("second", "4")).Revision).To(BeEquivalentTo(4))
	e.Expect(e.install(of("first again", "2")).Revision).To(BeEquivalentTo(5))
	e.settleAs(of("second", "4"), deliver.ReasonReleaseTakenOver)
}

// allowed lets the ServiceAccount tenant of a namespace do all with some resources there.
func (e *env) allowed(ns, resources string) {
	e.t.Helper()
	e.apply("kubectl", strings.NewReplacer("NS", ns, "RESOURCES", resources).Replace(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: NS}
rules: [{apiGroups: [""], resources: [RESOURCES], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: NS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{kind: ServiceAccount, name: tenant, namespace: NS}]
`))
}

// TestAccountThatMayNotKeepRecords delivers as a ServiceAccount. The manager writes its record only where the account may
// create Secrets, too.
func TestAccountThatMayNotKeepRecords(t *testing.T) {
	e, ns := beside(t)
	cfg := rest.CopyConfig(config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: fmt.Sprintf("system:serviceaccount:%s:tenant", ns)}
	actor, err := client.New(cfg, client.Options{Mapper: e.target.Client.RESTMapper()})
	e.Expect(err).NotTo(HaveOccurred())
	as := e.target
	as.Own, as.Client = as.Client, actor
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
	want.ServiceAccount = "tenant"

	e.allowed(ns, "configmaps")
	e.Eventually(func() (deliver.Outcome, error) { // roles take a moment
		e.clock.step(10 * time.Minute)
		return e.d.Ensure(e.ctx, as, want)
	}).WithTimeout(30 * time.Second).Should(And(HaveField("Phase", addonsv1.AddonFailed), HaveField("Reason", object.ReasonForbidden), HaveField("Message", ContainSubstring("create Secrets"))))
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())
	e.Expect(e.records(ns)).To(BeEmpty())

	e.allowed(ns, "configmaps, secrets")
	e.Eventually(func() (deliver.Outcome, error) {
		e.clock.step(10 * time.Minute)
		return e.d.Ensure(e.ctx, as, want)
	}).WithTimeout(30 * time.Second).Should(HaveField("Phase", addonsv1.AddonReady))
}
