// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	helmrelease "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage"
	"helm.sh/helm/v4/pkg/storage/driver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

func configMap(name, value string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  creationTimestamp: null\ndata:\n  key: %q\n", name, value)
}

func deployment(name string) string {
	return fmt.Sprintf(`---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  replicas: 1
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: c, image: example.com/app:1}]}
`, name)
}

// demo is a chart with a bit of everything that needs no CRD.
func demo(version, value string, extra ...string) chart {
	return chart{version: version, manifest: configMap("settings", value) + deployment("app") + strings.Join(extra, "")}
}

func TestLifeCycle(t *testing.T) {
	e, ns := alone(t)
	one := e.want(ns, demo("1.0.0", "one", configMap("old", "x")))

	o := e.install(one)
	e.Expect(o).To(HaveField("Version", "1.0.0"))
	e.Expect([]int32{o.Revision, o.Total, o.Ready}).To(Equal([]int32{1, 3, 3}))
	app := record.ObjectKey{Group: "apps", Kind: "Deployment", Namespace: ns, Name: "app"}
	e.Expect(o.Found[app]).To(And(HaveField("Available", BeEquivalentTo(1)), HaveField("Version", Not(BeEmpty()))), "as it was found ready")
	requests, writes := e.meter.total()
	t.Logf("install of 3 objects: %d requests, %d writes: %v", requests, writes, e.meter.counts)
	settings := e.get("v1", "ConfigMap", ns, "settings")
	e.Expect(settings.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
	e.Expect(settings.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonNamespaceLabel, ns))
	e.Expect(settings.GetManagedFields()[0].Manager).To(Equal("chandler/" + ns + "/demo"))

	e.meter.reset()
	o = e.install(one)
	requests, writes = e.meter.total()
	e.Expect([]int{requests, writes}).To(Equal([]int{1, 0}), "an unchanged add-on")
	e.Expect(o.Recorded).To(BeNil())
	summary := e.records(ns)[one.Release]
	e.Expect(summary.Settled(demo("1.0.0", "one", configMap("old", "x")).digest())).To(BeTrue())
	e.Expect(summary).To(HaveField("Owner", "fleet/cluster-a"))
	e.Expect(summary).To(HaveField("Kinds", "apps/v1/Deployment,v1/ConfigMap"))
	e.Expect(summary.Objects).To(BeEquivalentTo(3))

	e.meter.reset()
	two := e.want(ns, demo("2.0.0", "two"))
	o = e.install(two)
	requests, writes = e.meter.total()
	t.Logf("upgrade to 2 objects: %d requests, %d writes: %v", requests, writes, e.meter.counts)
	e.Expect(o.Revision).To(BeEquivalentTo(2))
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil())
	data := e.get("v1", "ConfigMap", ns, "settings").Object["data"]
	e.Expect(data).To(HaveKeyWithValue("key", "two"))

	o = e.install(one) // downgrade
	e.Expect(o.Revision).To(BeEquivalentTo(3))
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())

	releases := storage.Init(driver.NewSecrets(e.clientset().CoreV1().Secrets(ns)))
	history, err := releases.History("demo")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(history).To(HaveLen(3))
	deployed, err := releases.Deployed("demo")
	e.Expect(err).NotTo(HaveOccurred())
	rel := deployed.(*helmrelease.Release)
	e.Expect(rel.Version).To(Equal(3))
	e.Expect(rel.Manifest).To(ContainSubstring("kind: Deployment"))
	e.Expect(rel.Config).To(Equal(map[string]any{"a": "b"}))
	e.Expect(rel.Chart.Metadata.Version).To(Equal("1.0.0"))

	e.meter.reset()
	gone := e.remove(one.Release)
	requests, writes = e.meter.total()
	t.Logf("removal of 3 objects: %d requests, %d writes: %v", requests, writes, e.meter.counts)
	e.Expect(gone.Gone).To(BeTrue(), "%+v", gone)
	e.Expect(e.meter.log[writes-1]).To(HaveSuffix("/secrets/sh.helm.release.v1.demo.v3"), "the newest record says what is to be done, so it goes last")
	e.Expect(e.get("v1", "ConfigMap", ns, "settings")).To(BeNil())
	e.Expect(e.get("apps/v1", "Deployment", ns, "app")).To(BeNil())
	e.Expect(e.records(ns)).To(BeEmpty())
}

// TestWantedAgainWhileItIsRemoved installs an add-on whose removal had begun: what is gone by
// then is made again.
func TestWantedAgainWhileItIsRemoved(t *testing.T) {
	e, ns := alone(t)
	held := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, finalizers: [example.com/held]}\n"
	want := e.want(ns, chart{version: "1", manifest: held + configMap("x", "a")})
	e.install(want)
	o := e.removeOnce(want.Release)
	e.Expect(o.Reason).To(Equal(object.ReasonWaitingForDeletion), o.Message)
	e.Expect(e.get("v1", "ConfigMap", ns, "x")).To(BeNil())
	e.Expect(e.records(ns)[want.Release].Status).To(Equal(deliver.StatusUninstalling))

	e.release("v1", "ConfigMap", ns, "held")
	e.restart()
	e.Expect(e.install(want).Revision).To(BeEquivalentTo(2))
	for _, name := range []string{"held", "x"} {
		e.Expect(e.get("v1", "ConfigMap", ns, name)).NotTo(BeNil(), name)
	}
}

// TestGeneratedValuesAreKept: an upgrade renders with the passwords of the revision before,
// also if that never became ready.
func TestGeneratedValuesAreKept(t *testing.T) {
	e, ns := alone(t)
	var got []deliver.RenderInput
	of := func(version, manifest string) deliver.Desired {
		want := e.want(ns, chart{version: version, manifest: manifest})
		render := want.Render
		want.Render = func(ctx context.Context, in deliver.RenderInput) (*deliver.Rendering, error) {
			got = append(got, in)
			return render(ctx, in)
		}
		return want
	}
	e.install(of("1", configMap("x", "a")))
	e.ensureAs(of("2", stuckDeployment()), deliver.ReasonWaitingForObjects)
	e.restart()
	e.install(of("3", configMap("x", "b")))
	e.Expect(got).To(HaveLen(3))
	e.Expect(got[0].Generated).To(BeEmpty())
	for i, in := range got {
		e.Expect(in.Revision).To(Equal(i + 1))
		e.Expect(in.Upgrade).To(Equal(i > 0))
		if i > 0 {
			e.Expect(in.Generated).To(Equal(map[string]string{"password": "s3cret"}))
		}
	}
}

func TestNamespace(t *testing.T) {
	e := newEnv(t)
	ns := e.namespace() + "-new"
	want := e.want(ns, demo("1", "x"))
	want.CreateNamespace = false
	o := e.settleAs(want, object.ReasonNamespaceMissing)
	e.Expect(o.Message).To(ContainSubstring("createNamespace"))

	e.restart()
	want.CreateNamespace = true
	e.install(want)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "Namespace", "", ns)).NotTo(BeNil())
}

func TestOrphan(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, demo("1", "x"))
	e.install(want)
	terms := deliver.Terms{Stack: "another", DeletionPolicy: addonsv1.DeletionPolicyOrphan, DependsOn: []string{"cni"}, Spec: "sha256:1", ArtifactVersion: "elsewhere"}
	e.Expect(e.d.SetTerms(e.ctx, e.target, want.Release, terms)).To(Succeed())
	summary := e.records(ns)[want.Release]
	e.Expect(summary.Terms).To(Equal(terms))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())

	settings := e.get("v1", "ConfigMap", ns, "settings")
	e.Expect(settings.GetLabels()).To(BeEmpty())
	e.Expect(settings.GetManagedFields()).To(HaveLen(1))
	e.Expect(settings.GetManagedFields()[0]).To(HaveField("Manager", "helm"))
	e.Expect(e.get("apps/v1", "Deployment", ns, "app")).NotTo(BeNil())
	summary = e.records(ns)[want.Release]
	e.Expect(summary.Status).To(Equal("deployed"))
	e.Expect(summary.Owned).To(BeFalse())

	// It is a plain release now: refused, or taken over.
	e.settleAs(want, deliver.ReasonReleaseExists)
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.restart()
	e.Expect(e.install(want).Revision).To(BeEquivalentTo(2))
	managers := e.get("v1", "ConfigMap", ns, "settings").GetManagedFields()
	e.Expect(managers).To(HaveLen(1), "Helm's fields are ours now")
	e.Expect(managers[0].Operation).To(Equal(metav1.ManagedFieldsOperationApply))
}

// TestOwnerOutlivesHelm has Helm write a record again, which keeps labels alone: they don't
// hold the name of each owner.
func TestOwnerOutlivesHelm(t *testing.T) {
	for name, owner := range map[string]string{
		"a short name": "fleet/cluster-a",
		"a long name":  strings.Repeat("n", 40) + "/" + strings.Repeat("c", 40),
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
			want.Owner = owner
			e.install(want)
			secret := e.get("v1", "Secret", ns, "sh.helm.release.v1.demo.v1")
			secret.SetAnnotations(nil)
			data, _, _ := unstructured.NestedMap(secret.Object, "data")
			delete(data, "chandler")
			e.Expect(unstructured.SetNestedMap(secret.Object, data, "data")).To(Succeed())
			e.Expect(e.target.Client.Update(e.ctx, secret)).To(Succeed())
			summary := e.records(ns)[want.Release]
			e.Expect(summary.IsOwnedBy(owner)).To(BeTrue())
			e.Expect(summary.IsOwnedBy(owner + "-other")).To(BeFalse())

			other := want
			other.Owner += "-other"
			o := e.settleAs(other, deliver.ReasonReleaseOwnedByOther)
			e.Expect(o.Message).To(ContainSubstring(summary.Owner), "it says whose it is")
			e.restart()
			_, err := e.d.Remove(e.ctx, e.target, want.Release)
			e.Expect(err).To(MatchError(deliver.ErrUnproven))
			e.Expect(e.get("v1", "ConfigMap", ns, "x")).NotTo(BeNil(), "anybody may have written the record")
			e.install(want)
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("v1", "ConfigMap", ns, "x")).To(BeNil())
		})
	}
}

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
	e.ensureAs(next, deliver.ReasonRunningHook)
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).NotTo(BeNil())

	resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))
	e.Expect(e.target.Client.Patch(e.ctx, e.get("batch/v1", "Job", ns, "after"), resume)).To(Succeed())
	o := e.reach(next, deliver.ReasonWaitingForPostcondition)
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
