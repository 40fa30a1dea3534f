// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// TestPruneComesLast keeps what the new revision doesn't have until its post hooks and its
// postcondition are through.
func TestPruneComesLast(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("old", "x")}))
	next := e.want(ns, chart{version: "2", manifest: configMap("new", "x"),
		hooks: []job.Hook{hook("after", 0, jobText("after", true), []string{"post-upgrade"})}})
	holds := false
	next.Postcondition = func(context.Context) (string, time.Duration, error) {
		if holds {
			return "", 0, nil
		}
		return "the test", time.Minute, nil
	}
	o := e.ensureAs(next, deliver.ReasonRunningHook)
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())

	resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))
	e.Expect(e.target.Client.Patch(e.ctx, e.get("batch/v1", "Job", ns, "after"), resume)).To(Succeed())
	o = e.reach(next, deliver.ReasonWaitingForPostcondition)
	e.Expect(o.Applied).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())

	holds = true
	e.install(next)
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil())
}

// release takes the finalizers off an object.
func (e *env) release(apiVersion, kind, ns, name string) {
	e.t.Helper()
	live := e.get(apiVersion, kind, ns, name)
	live.SetFinalizers(nil)
	e.Expect(e.target.Client.Update(e.ctx, live)).To(Succeed())
}

// TestDeletionThatTakesTooLong has objects that can't go: one that the new version doesn't
// have, one that a hook made before, and one of an add-on that is removed. Each is told
// when the deadline is over, also by a process that was started since, and waited for.
func TestDeletionThatTakesTooLong(t *testing.T) {
	held := func(name string) string {
		return strings.Replace(configMap(name, "x"), "name: "+name, "name: "+name+"\n  finalizers: [example.com/held]", 1)
	}
	heldHook := []job.Hook{{
		Name: "held", Kind: "ConfigMap", Path: "demo/templates/held", Manifest: held("held"),
		Events: []string{"pre-install", "pre-upgrade"}, DeletePolicies: []string{"before-hook-creation"},
	}}
	plain := configMap("a", "x")
	for name, c := range map[string]struct {
		before, after chart
		removed       bool
		reason        string
	}{
		"pruned":   {before: chart{version: "1", manifest: plain + held("held") + crdLater}, after: chart{version: "2", manifest: plain}, reason: deliver.ReasonPruneFailed},
		"a hook's": {before: chart{version: "1", manifest: plain, hooks: heldHook}, after: chart{version: "2", manifest: plain, hooks: heldHook}, reason: deliver.ReasonHookFailed},
		"removed":  {before: chart{version: "1", manifest: held("held")}, removed: true, reason: deliver.ReasonPruneFailed},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			c.before.manifest = strings.ReplaceAll(c.before.manifest, "NS", ns)
			e.install(e.want(ns, c.before))
			want := e.want(ns, c.after)
			act := func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, e.target, want) }
			if c.removed {
				act = func() (deliver.Outcome, error) { return e.d.Remove(e.ctx, e.target, want.Release) }
			}
			o, err := act()
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(o.Reason).To(Equal(object.ReasonWaitingForDeletion))
			e.Expect(o.RetryAfter).To(BeNumerically(">", 0))
			for _, happens := range []func(){func() { e.clock.step(time.Hour) }, e.restart} {
				happens()
				o, err = act()
				e.Expect(err).NotTo(HaveOccurred())
				e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
				e.Expect(o.Reason).To(Equal(c.reason))
				e.Expect(o.Message).To(And(ContainSubstring("ConfigMap "+ns+"/held"), ContainSubstring("finalizers")))
				e.Expect(o.RetryAfter).To(BeNumerically(">", 0))
			}
			e.release("v1", "ConfigMap", ns, "held")
			e.drive(act, func(o deliver.Outcome) bool { return o.Gone || o.Phase == addonsv1.AddonReady })
		})
	}
}

// crdLater is deleted after all objects that are no CRDs.
var crdLater = crd("NS.example.com")

// TestRefusedAddonCountsWhatIsInstalled has an upgrade that can't begin, and one whose first
// hook fails. What is installed of the version before is ready still.
func TestRefusedAddonCountsWhatIsInstalled(t *testing.T) {
	e, ns := beside(t)
	objects := configMap("a", "x") + configMap("b", "x")
	e.install(e.want(ns, chart{version: "1", manifest: objects}))
	o := e.settleAs(e.want(ns, chart{version: "2"}), deliver.ReasonEmptyRendering)
	e.Expect([]int32{o.Ready, o.Total}).To(Equal([]int32{2, 2}))

	failing := strings.Replace(jobText("fails", false), "backoffLimit: 0", "activeDeadlineSeconds: 0", 1)
	o = e.settleAs(e.want(ns, chart{version: "3", manifest: objects + configMap("c", "x"), hooks: []job.Hook{hook("fails", 0, failing, []string{"pre-upgrade"})}}), deliver.ReasonHookFailed)
	e.Expect([]int32{o.Ready, o.Total}).To(Equal([]int32{2, 3}))
}
