// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// refused is an object that no API server takes.
const refused = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: Wrong_Name}\n"

// rollingBack is an add-on that is rolled back when its upgrade fails.
func (e *env) rollingBack(ns string, c chart) deliver.Desired {
	want := e.want(ns, c)
	want.OnFailure = addonsv1.FailurePolicyRollBack
	return want
}

// TestRollBack upgrades to what is refused in part: what was there before comes back.
func TestRollBack(t *testing.T) {
	e, ns := beside(t)
	hooks := []job.Hook{
		{Name: "before", Kind: "ConfigMap", Path: "hook.yaml", Events: []string{"pre-rollback", "pre-upgrade"}, Manifest: configMap("hook", "ran")},
	}
	first := chart{version: "1", manifest: configMap("kept", "1") + configMap("old", "1"), hooks: hooks}
	e.install(e.rollingBack(ns, first))
	uid := e.get("v1", "ConfigMap", ns, "kept").GetUID()

	second := chart{version: "2", manifest: configMap("kept", "2") + configMap("new", "2") + refused}
	want := e.rollingBack(ns, second)
	o := e.reach(want, deliver.ReasonRolledBack)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
	e.Expect(o.Version).To(Equal("1"))
	e.Expect(o.Revision).To(BeEquivalentTo(3))
	e.Expect(o.Ready).To(Equal(o.Total))
	kept := e.get("v1", "ConfigMap", ns, "kept")
	e.Expect(kept.Object["data"]).To(HaveKeyWithValue("key", "1"))
	e.Expect(kept.GetUID()).To(Equal(uid))
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "new")).To(BeNil(), "what only the failed revision had is gone")
	e.Expect(e.get("v1", "ConfigMap", ns, "hook").GetAnnotations()).To(HaveKeyWithValue(deliver.HookRunAnnotation, HavePrefix("3.pre-rollback.1.")))
	e.Expect(e.releaseStatuses(ns)).To(Equal("1 superseded, 2 failed, 3 deployed"))

	e.meter.reset()
	for range 3 {
		e.ensureAs(want, deliver.ReasonRolledBack)
	}
	e.restart()
	o = e.ensureAs(want, deliver.ReasonRolledBack)
	e.expectWrites(0, "it isn't tried again by itself")

	again := want
	again.Again = true
	e.ensure(again)
	o = e.reach(want, deliver.ReasonRolledBack)
	e.Expect(o.Revision).To(BeEquivalentTo(5), "asked for, it is tried once more")

	o = e.install(e.rollingBack(ns, chart{version: "3", manifest: configMap("kept", "3")}))
	e.Expect(o.Revision).To(BeEquivalentTo(6))
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil())
}

// TestRollBackOfAHookAndItsCRDs fails with a hook. CRDs of crds/ stay, and stay the add-on's.
func TestRollBackOfAHookAndItsCRDs(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	crds := crd(ns + ".example.com")
	e.install(e.rollingBack(ns, chart{version: "1", crds: crds, manifest: configMap("a", "1")}))
	failing := hook("fails", 0, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Wrong_Name}\n", []string{"post-upgrade"})
	want := e.rollingBack(ns, chart{version: "2", crds: crds, manifest: configMap("a", "2"), hooks: []job.Hook{failing}})
	want.Readiness = []addonsv1.ReadinessCheck{{APIVersion: "v1", Kind: "ConfigMap", Expression: "self.data.key != '1'"}}
	o := e.reach(want, deliver.ReasonRolledBack)
	e.Expect(o.Message).To(ContainSubstring(deliver.ReasonHookFailed))
	e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(HaveKeyWithValue("key", "1"))
	live := e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+ns+".example.com")
	e.Expect(live.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
}

// TestRollBackToAChartThatAsksOtherQuestions compares what is wanted with what failed, though
// each asked about other facts of the cluster.
func TestRollBackToAChartThatAsksOtherQuestions(t *testing.T) {
	e, ns := beside(t)
	asking := func(facts string, c chart) deliver.Desired {
		want := e.rollingBack(ns, c)
		want.Digest = func(_ context.Context, used string) (string, error) { return c.digest() + used, nil }
		want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
			rendering := c.render(t)
			rendering.Digest, rendering.FactsUsed = c.digest()+facts, facts
			return rendering, nil
		}
		return want
	}
	e.install(asking(`{"one":1}`, chart{version: "1", manifest: configMap("a", "1")}))
	want := asking(`{"two":2}`, chart{version: "2", manifest: configMap("a", "2") + refused})
	for range 3 {
		o := e.reach(want, deliver.ReasonRolledBack)
		e.Expect(o.Revision).To(BeEquivalentTo(3))
	}
}

// TestRollBackOfNothing fails an installation: there is nothing to go back to.
func TestRollBackOfNothing(t *testing.T) {
	e, ns := alone(t)
	o := e.settleAs(e.rollingBack(ns, chart{version: "1", manifest: configMap("a", "1") + refused}), object.ReasonObjectRejected)
	e.Expect(o.Revision).To(BeEquivalentTo(1))
}

// TestNoRollBackToWhatWasTakenOver fails the upgrade of an add-on that another one has taken an object from meanwhile. The
// deployed revision has that object, so nobody goes back to it.
func TestNoRollBackToWhatWasTakenOver(t *testing.T) {
	e, ns := beside(t)
	e.install(e.rollingBack(ns, chart{version: "1", manifest: configMap("own", "1") + configMap("shared", "1")}))
	later := e.wantNamed("later", ns, chart{version: "1", manifest: configMap("shared", "later")})
	later.Leaving = []deliver.Release{{Namespace: ns, Name: "demo"}}
	e.install(later)

	want := e.rollingBack(ns, chart{version: "2", manifest: configMap("own", "2") + refused})
	for range 3 {
		o := e.settleAs(want, object.ReasonObjectRejected)
		e.Expect(o.Revision).To(BeEquivalentTo(2))
	}
	e.Expect(e.get("v1", "ConfigMap", ns, "shared").Object["data"]).To(HaveKeyWithValue("key", "later"))
}

// TestRollBackByDeadline waits for an object that never becomes ready.
func TestRollBackByDeadline(t *testing.T) {
	long.InCI(t)
	e, ns := beside(t)
	e.install(e.rollingBack(ns, chart{version: "1", manifest: configMap("a", "1")}))
	unready := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: never}\nspec: {replicas: 1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {nodeSelector: {no: node}, containers: [{name: c, image: i}]}}}\n"
	want := e.rollingBack(ns, chart{version: "2", manifest: configMap("a", "2") + unready})
	want.ProgressDeadline = 5 * time.Second
	o := e.reach(want, deliver.ReasonRolledBack)
	e.Expect(o.Message).To(ContainSubstring(deliver.ReasonReadinessTimeout))
	e.Expect(e.get("apps/v1", "Deployment", ns, "never")).To(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(HaveKeyWithValue("key", "1"))
}

// TestCrashWhileRollingBack cuts the connection after each write of a rollback.
func TestCrashWhileRollingBack(t *testing.T) {
	long.Test(t)
	t.Parallel()
	e := newEnv(t)
	run := func(cut int) []string {
		ns := e.namespace()
		e.install(e.rollingBack(ns, chart{version: "1", manifest: configMap("kept", "1") + configMap("old", "1")}))
		want := e.rollingBack(ns, chart{version: "2", manifest: configMap("kept", "2") + configMap("new", "2") + refused})
		e.meter.reset()
		e.meter.cut(cut, true)
		ensure := func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, e.target, want) }
		isDone := func(o deliver.Outcome) bool { return o.Reason == deliver.ReasonRolledBack }
		if e.drive(ensure, isDone); cut > 0 {
			e.restart()
			e.drive(ensure, isDone)
		}
		return e.snapshot(ns)
	}
	whole := run(0)
	_, writes := e.meter.total()
	for cut := 1; cut <= writes; cut++ {
		e.Expect(run(cut)).To(Equal(whole), "after write %d of %d", cut, writes)
	}
}

// releaseStatuses are those of all revisions, the first one first.
func (e *env) releaseStatuses(ns string) string {
	e.t.Helper()
	var all []string
	for _, line := range e.snapshot(ns) {
		if fields := strings.Fields(line); fields[0] == "record" {
			status, _, _ := strings.Cut(fields[2], "/")
			all = append(all, fields[1]+" "+status)
		}
	}
	return strings.Join(all, ", ")
}

// volume makes a PersistentVolume for claims of a class.
func (e *env) volume(class string) {
	e.t.Helper()
	e.apply("storage", "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: "+class+"}\nspec: {storageClassName: "+class+
		", accessModes: [ReadWriteOnce], capacity: {storage: 1Mi}, hostPath: {path: /tmp/none}}\n")
}

// TestRecreate changes fields that can't be changed.
func TestRecreate(t *testing.T) {
	t.Parallel()
	deployment := func(app string) string {
		return "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\nspec: {replicas: 1, selector: {matchLabels: {app: " + app + "}}, template: {metadata: {labels: {app: " + app + "}}, spec: {containers: [{name: c, image: i}]}}}\n" +
			"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: second}\nspec: {replicas: 1, selector: {matchLabels: {second: " + app + "}}, template: {metadata: {labels: {second: " + app + "}}, spec: {containers: [{name: c, image: i}]}}}\n"
	}
	claim := func(e *env, class string) string {
		e.volume(class)
		return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: " + class + ", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n"
	}
	t.Run("by policy", func(t *testing.T) {
		e, ns := alone(t)
		e.install(e.want(ns, chart{version: "1", manifest: deployment("one")}))
		first, second := e.get("apps/v1", "Deployment", ns, "app"), e.get("apps/v1", "Deployment", ns, "second")
		want := e.want(ns, chart{version: "2", manifest: deployment("two")})
		o := e.settleAs(want, object.ReasonImmutableField) // by default
		e.Expect(o.Message).To(And(ContainSubstring("spec.selector"), ContainSubstring("immutableFieldPolicy")))
		e.Expect(e.get("apps/v1", "Deployment", ns, "app").GetUID()).To(Equal(first.GetUID()))
		want.Recreate = true
		e.install(want)
		e.Expect(e.get("apps/v1", "Deployment", ns, "app").GetUID()).NotTo(Equal(first.GetUID()))
		e.Expect(e.get("apps/v1", "Deployment", ns, "second").GetUID()).NotTo(Equal(second.GetUID()))
	})
	t.Run("never what is kept", func(t *testing.T) {
		e, ns := alone(t)
		kept := func(app string) string {
			return strings.Replace(deployment(app), "{name: app}", "{name: app, annotations: {helm.sh/resource-policy: keep}}", 1)
		}
		e.install(e.want(ns, chart{version: "1", manifest: kept("one")}))
		uid := e.get("apps/v1", "Deployment", ns, "app").GetUID()
		want := e.want(ns, chart{version: "2", manifest: kept("two")})
		want.Recreate = true
		e.settleAs(want, object.ReasonImmutableField)
		e.Expect(e.get("apps/v1", "Deployment", ns, "app").GetUID()).To(Equal(uid))
	})
	t.Run("never what holds data", func(t *testing.T) {
		e, ns := alone(t)
		e.install(e.want(ns, chart{version: "1", manifest: claim(e, ns+"-one")}))
		uid := e.get("v1", "PersistentVolumeClaim", ns, "data").GetUID()
		want := e.want(ns, chart{version: "2", manifest: claim(e, ns+"-two")})
		want.Recreate = true
		o := e.settle(want)
		e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
		live := e.get("v1", "PersistentVolumeClaim", ns, "data")
		e.Expect(live.GetUID()).To(Equal(uid))
		e.Expect(live.GetDeletionTimestamp()).To(BeNil())
	})
}

// TestDataPolicy prunes and removes what holds data only where the policy says so.
func TestDataPolicy(t *testing.T) {
	long.InCI(t)
	t.Parallel()
	claim := func(class string) string {
		return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: " + class + ", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}\n"
	}
	for _, how := range []string{"pruned", "removed"} {
		for policy, stays := range map[addonsv1.DataPolicy]bool{"": true, addonsv1.DataPolicyKeep: true, addonsv1.DataPolicyDelete: false} {
			t.Run(how+" "+string(policy), func(t *testing.T) {
				e, ns := alone(t)
				own := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + ns + "-own}\n"
				want := e.want(ns, chart{version: "1", manifest: configMap("a", "1") + claim(ns) + own})
				want.DataPolicy = policy
				e.volume(ns)
				e.install(want)
				if how == "pruned" {
					next := e.want(ns, chart{version: "2", manifest: configMap("a", "2")})
					next.DataPolicy = policy
					e.install(next)
				} else {
					e.Expect(e.remove(want.Release).Gone).To(BeTrue())
				}
				isThere := func(kind, namespace, name string) bool {
					live := e.get("v1", kind, namespace, name)
					return live != nil && live.GetDeletionTimestamp() == nil
				}
				e.Expect(isThere("PersistentVolumeClaim", ns, "data")).To(Equal(stays))
				e.Expect(isThere("Namespace", "", ns+"-own")).To(Equal(stays))
			})
		}
	}
}

// TestHistoryLimit keeps as many revisions as the add-on says.
func TestHistoryLimit(t *testing.T) {
	for limit, kept := range map[int]string{2: "6 superseded, 7 deployed", 0: "3 superseded, 4 superseded, 5 superseded, 6 superseded, 7 deployed"} {
		e, ns := alone(t)
		for i := range 7 {
			want := e.want(ns, chart{version: fmt.Sprint(i), manifest: configMap("a", fmt.Sprint(i))})
			want.HistoryLimit = limit
			e.install(want)
		}
		e.Expect(e.releaseStatuses(ns)).To(Equal(kept))
	}
}

// TestCRDPolicy installs a chart with a CRD in crds/ over one that is there.
func TestCRDPolicy(t *testing.T) {
	for policy, tc := range map[addonsv1.CRDPolicy]struct{ makes, changes bool }{
		"": {true, true}, addonsv1.CRDPolicyCreateReplace: {true, true}, addonsv1.CRDPolicyCreate: {true, false}, addonsv1.CRDPolicySkip: {false, false},
	} {
		t.Run("policy "+string(policy), func(t *testing.T) {
			e, ns := alone(t)
			group := ns + ".example.com"
			crd := func(description string) string {
				return "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things." + group + ", annotations: {note: " + description + "}}\nspec: {group: " + group +
					", scope: Namespaced, names: {plural: things, singular: thing, kind: Thing}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}\n"
			}
			want := e.want(ns, chart{version: "1", crds: crd("one"), manifest: configMap("a", "1")})
			want.CRDPolicy = policy
			e.install(want)
			live := e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+group)
			e.Expect(live != nil).To(Equal(tc.makes))
			want = e.want(ns, chart{version: "2", crds: crd("two"), manifest: configMap("a", "2")})
			want.CRDPolicy = policy
			e.install(want)
			if live = e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+group); tc.makes {
				e.Expect(live.GetAnnotations()["note"] == "two").To(Equal(tc.changes))
			}
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "things."+group) != nil).To(Equal(tc.makes), "it is never deleted")
		})
	}
}

// TestRollBackThatFailsIsTriedAgainInTime upgrades to what can't be changed back, and is refused in part.
func TestRollBackThatFailsIsTriedAgainInTime(t *testing.T) {
	e, ns := beside(t)
	e.install(e.rollingBack(ns, chart{version: "1", manifest: configMap("a", "1")}))
	want := e.rollingBack(ns, chart{version: "2", manifest: configMap("a", "2") + "immutable: true\n" + refused})
	failed := e.settleAs(want, object.ReasonImmutableField)
	e.Expect(e.releaseStatuses(ns)).To(Equal("1 deployed, 2 failed, 3 failed"))
	e.meter.reset()
	waiting := e.ensureAs(want, object.ReasonImmutableField)
	e.expectWrites(0, "it isn't time yet")
	e.Expect(waiting.RetryAfter).To(BeNumerically("<=", failed.RetryAfter))
	e.clock.step(failed.RetryAfter)
	again := e.ensureAs(want, object.ReasonImmutableField)
	e.expectWrites(1, "the object is applied again")
	e.Expect(again.RetryAfter).To(BeNumerically(">", failed.RetryAfter))
}

// TestNoRollBackOfWhatWorks upgrades to what works, but for an old object that nobody may delete.
func TestNoRollBackOfWhatWorks(t *testing.T) {
	e, ns := beside(t)
	e.install(e.rollingBack(ns, chart{version: "1", manifest: configMap("kept", "1") + configMap("old", "1")}))
	e.deny(ns, "DELETE", "configmaps", "oldObject.metadata.namespace != '"+ns+"'", "'it stays'")
	e.Eventually(func() error {
		return e.target.Client.Delete(e.ctx, e.get("v1", "ConfigMap", ns, "kept"), client.DryRunAll)
	}).WithTimeout(time.Minute).ShouldNot(Succeed())
	want := e.rollingBack(ns, chart{version: "2", manifest: configMap("kept", "2")})
	e.settleAs(want, deliver.ReasonPruneFailed)
	for range 3 {
		e.clock.step(10 * time.Minute)
		e.ensureAs(want, deliver.ReasonPruneFailed)
	}
	e.Expect(e.get("v1", "ConfigMap", ns, "kept").Object["data"]).To(HaveKeyWithValue("key", "2"))
}

// withInputs is an add-on of a chart that was rendered with pinned values.
func (e *env) withInputs(ns, inputs string, c chart) deliver.Desired {
	want := e.want(ns, c)
	want.Inputs = inputs
	return want
}

// recorded is an add-on that is to be as it was with pinned values: they are gone, so nothing can be rendered.
func (e *env) recorded(ns, inputs string) deliver.Desired {
	want := e.withInputs(ns, inputs, chart{})
	want.Recorded = true
	want.Digest = func(context.Context, string) (string, error) { return "", errors.New("the inputs are gone") }
	want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
		return nil, errors.New("the inputs are gone")
	}
	return want
}

// TestRestore goes back over two revisions to one of which the records alone know what it was made of. An interruption
// at the first write changes nothing, and neither does a lost proof of that write.
func TestRestore(t *testing.T) {
	e, ns := beside(t)
	e.install(e.withInputs(ns, "one", chart{version: "1", manifest: configMap("kept", "1") + configMap("old", "1")}))
	e.install(e.withInputs(ns, "two", chart{version: "2", manifest: configMap("kept", "2") + configMap("new", "2")}))
	failed := e.withInputs(ns, "three", chart{version: "3", manifest: configMap("kept", "3") + refused})
	o := e.ensureUntil(failed, func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonFailed })
	e.Expect(o.Revision).To(BeEquivalentTo(3))

	e.restart()
	e.meter.cut(e.meter.writes+1, true) // its record is made, and nobody hears of it
	_, err := e.d.Ensure(e.ctx, e.target, e.recorded(ns, "one"))
	e.Expect(err).To(HaveOccurred())
	e.restart()
	o = e.install(e.recorded(ns, "one"))
	e.Expect(o.Version).To(Equal("1"))
	e.Expect(o.Revision).To(BeEquivalentTo(4))
	e.Expect(e.get("v1", "ConfigMap", ns, "kept").Object["data"]).To(HaveKeyWithValue("key", "1"))
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "new")).To(BeNil())
	e.Expect(e.releaseStatuses(ns)).To(Equal("1 superseded, 2 superseded, 3 failed, 4 deployed"))

	e.meter.reset()
	e.install(e.recorded(ns, "one"))
	e.expectWrites(0, "it is as it was")
	e.install(e.withInputs(ns, "one", chart{version: "1", manifest: configMap("kept", "1") + configMap("old", "1")}))
	e.expectWrites(0, "the same inputs are there again")

	o = e.ensureAs(e.recorded(ns, "four"), deliver.ReasonInputReplaced)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonPending))
	e.Expect(o.RetryAfter).To(BeZero(), "an event tells when it is otherwise")
	e.expectWrites(0, "what no record has can't be made")
}
