// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

func jobText(name string, suspended bool) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {helm.sh/hook: any}}
spec:
  suspend: %t
  backoffLimit: 0
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.com/app:1}]}}
`, name, suspended)
}

func hook(name string, weight int, manifest string, events []string, policies ...string) job.Hook {
	return job.Hook{Name: name, Kind: "Job", Path: "demo/templates/" + name, Manifest: manifest, Events: events, Weight: weight, DeletePolicies: policies}
}

func TestHooks(t *testing.T) {
	e, ns := beside(t)
	hooks := []job.Hook{
		hook("second", 1, jobText("second", false), []string{"pre-install", "pre-upgrade"}),
		hook("first", 0, jobText("first", false), []string{"pre-install"}, "hook-succeeded"),
		hook("after", 0, jobText("after", false), []string{"post-install", "post-upgrade"}, "before-hook-creation"),
		hook("bye", 0, jobText("bye", false), []string{"pre-delete"}),
	}
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: hooks})
	e.install(want)
	e.Expect(e.get("batch/v1", "Job", ns, "first")).To(BeNil(), "hook-succeeded")
	second := e.get("batch/v1", "Job", ns, "second")
	e.Expect(second).NotTo(BeNil())
	e.Expect(second.GetAnnotations()).To(HaveKeyWithValue(deliver.HookRunAnnotation, HavePrefix("1.pre-install.1.")))
	a := e.get("v1", "ConfigMap", ns, "a")
	after := e.get("batch/v1", "Job", ns, "after")
	e.Expect(a.GetCreationTimestamp().Time).NotTo(BeTemporally("<", second.GetCreationTimestamp().Time))

	e.install(e.want(ns, chart{version: "2", manifest: configMap("a", "y"), hooks: hooks}))
	again := e.get("batch/v1", "Job", ns, "after")
	e.Expect(again.GetUID()).NotTo(Equal(after.GetUID()), "before-hook-creation")
	e.Expect(again.GetAnnotations()).To(HaveKeyWithValue(deliver.HookRunAnnotation, HavePrefix("2.post-upgrade.1.")))

	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("batch/v1", "Job", ns, "bye")).NotTo(BeNil(), "Helm doesn't delete hooks")
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())
}

// TestHookThatMayNotBeDeleted names the object of a hook that is done, and that nobody may delete.
func TestHookThatMayNotBeDeleted(t *testing.T) {
	e, ns := beside(t)
	e.deny(ns, "DELETE", "configmaps", "oldObject.metadata.namespace != '"+ns+"' || oldObject.metadata.name == 'a'", "'it has to stay'")
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "probe"}}
	e.Expect(e.target.Client.Create(e.ctx, probe)).To(Succeed())
	e.Eventually(func() error { return e.target.Client.Delete(e.ctx, probe, client.DryRunAll) }).WithTimeout(30 * time.Second).ShouldNot(Succeed())

	done := hook("done", 0, configMap("done", "x"), []string{"pre-install"}, "hook-succeeded")
	done.Kind = "ConfigMap"
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{done}})
	o := e.settle(want)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), "%+v", o)
	e.Expect(o.Reason).To(BeElementOf(object.ReasonForbidden, object.ReasonObjectRejected))
	e.Expect(o.Message).To(And(ContainSubstring("ConfigMap "+ns+"/done"), ContainSubstring("it has to stay")))
	e.Expect(o.RetryAfter).To(BeNumerically(">", 0))

	e.Expect(e.target.Client.Delete(e.ctx, e.get("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", "", ns))).To(Succeed())
	e.drive(func() (deliver.Outcome, error) {
		e.clock.step(time.Minute)
		o, err := e.d.Ensure(e.ctx, e.target, want)
		o.RetryAfter = min(o.RetryAfter, time.Second) // policies take a moment
		return o, err
	}, func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonReady })
	e.Expect(e.get("v1", "ConfigMap", ns, "done")).To(BeNil())
}

func TestFailedHook(t *testing.T) {
	e, ns := beside(t)
	c := chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{hook("migrate", 0, jobText("migrate", true), []string{"pre-install"})}}
	want := e.want(ns, c)
	o := e.ensureAs(want, deliver.ReasonRunningHook)
	e.Expect(o.RetryAfter).To(BeNumerically("~", 2*time.Minute, 5*time.Second))
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())

	// A new controller waits for the Job that runs already.
	uid := e.get("batch/v1", "Job", ns, "migrate").GetUID()
	e.restart()
	o = e.ensureAs(want, deliver.ReasonRunningHook)
	e.Expect(e.get("batch/v1", "Job", ns, "migrate").GetUID()).To(Equal(uid))

	failJob := func() {
		j := &batchv1.Job{}
		e.Expect(e.target.Client.Get(e.ctx, client.ObjectKey{Namespace: ns, Name: "migrate"}, j)).To(Succeed())
		j.Spec.Suspend = new(bool)
		j.Spec.ActiveDeadlineSeconds = new(int64)
		*j.Spec.ActiveDeadlineSeconds = 0
		e.Expect(e.target.Client.Update(e.ctx, j)).To(Succeed())
	}
	failJob()
	o = e.settleAs(want, deliver.ReasonHookFailed)
	e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
	e.Expect(o.Message).To(And(ContainSubstring("pre-install"), ContainSubstring(ns+"/migrate"), ContainSubstring("DeadlineExceeded")))
	e.Expect(o.RetryAfter).To(Equal(10 * time.Second))
	e.Expect(e.records(ns)[want.Release].Status).To(Equal("failed"))
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).To(BeNil())

	// After the backoff it runs again.
	e.clock.step(11 * time.Second)
	e.ensureUntil(want, func(o deliver.Outcome) bool {
		e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), "%+v", o)
		there := e.get("batch/v1", "Job", ns, "migrate")
		return there != nil && there.GetUID() != uid
	})
	next := e.get("batch/v1", "Job", ns, "migrate")
	e.Expect(next.GetUID()).NotTo(Equal(uid))
	e.Expect(next.GetAnnotations()).To(HaveKeyWithValue(deliver.HookRunAnnotation, HavePrefix("1.pre-install.2.")))
	// A patch, as the job controller writes the Job at the same time.
	resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))
	e.Expect(e.target.Client.Patch(e.ctx, next, resume)).To(Succeed())
	e.ensureUntil(want, func(o deliver.Outcome) bool { return o.Phase != addonsv1.AddonFailed })
	e.install(want)
}

// TestFailedHookIsTriedAgainInTime has a hook's Job that failed, and a cluster in which nothing else happens. The previous
// Job is gone as soon as it is deleted, and nothing but the watch tells. All the while the add-on is Failed.
func TestFailedHookIsTriedAgainInTime(t *testing.T) {
	long.InCI(t)
	e, ns := beside(t)
	failing := strings.Replace(jobText("migrate", false), "backoffLimit: 0", "activeDeadlineSeconds: 0", 1)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{hook("migrate", 0, failing, []string{"pre-install"})}})
	failed := e.settleAs(want, deliver.ReasonHookFailed)
	for quiet := false; !quiet; { // the Job's last changes have been told of
		select {
		case <-e.wakeup:
		case <-time.After(8 * time.Second):
			quiet = true
		}
	}
	for attempt := 2; attempt <= 3; attempt++ {
		e.clock.step(3 * time.Minute) // longer than the previous Job may take to be gone
		for limit := time.After(30 * time.Second); e.meter.made("migrate") < attempt; {
			o := e.ensureAs(want, deliver.ReasonHookFailed)
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
			e.Expect(o.Message).To(Equal(failed.Message), "what is wrong stays to be read")
			if e.meter.made("migrate") == attempt {
				break
			}
			select {
			case <-e.wakeup:
			case <-limit:
				t.Fatalf("the hook isn't tried again: %+v", o)
			}
		}
		e.ensureUntil(want, func(o deliver.Outcome) bool { return o.RetryAfter == 10*time.Second<<(attempt-1) })
	}
}

// TestHookSparesWhatIsSomebodyElses has an object of a hook's name in the cluster, whatever the
// hook's delete policies are.
func TestHookSparesWhatIsSomebodyElses(t *testing.T) {
	for name, tc := range map[string]struct {
		theirs func(e *env, ns string)
		value  string
	}{
		"somebody's object": {func(e *env, ns string) { e.apply("kubectl", theirConfigMap(ns, "x", "theirs")) }, "theirs"},
		"a copy that has the add-on's labels": {func(e *env, ns string) {
			e.apply("kubectl", theirConfigMap(ns, "x", "copy", addonsv1.AddonLabel+": demo", addonsv1.AddonNamespaceLabel+": "+ns))
		}, "copy"},
		"another add-on's hook": {func(e *env, ns string) {
			h := settingsHook("pre-install")
			h.Manifest = strings.Replace(configMap("x", "other"), "name: x", "name: x\n  annotations: {helm.sh/hook: pre-install}", 1)
			e.install(e.wantNamed("other", ns, chart{version: "1", hooks: []job.Hook{h}}))
		}, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			tc.theirs(e, ns)
			o := e.settle(e.want(ns, chart{version: "1", manifest: configMap("a", "x"),
				hooks: []job.Hook{settingsHook("pre-install", "before-hook-creation", "hook-succeeded", "hook-failed")}}))
			e.Expect(o.Reason).To(Equal(deliver.ReasonHookFailed), o.Message)
			x := e.get("v1", "ConfigMap", ns, "x")
			e.Expect(x).NotTo(BeNil())
			e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": tc.value}))
		})
	}
}

// TestFailedHookTakesEarlierOnesAlong has a hook that fails after others that are to be
// deleted once they have succeeded. They are, as in Helm. What the hook needs of them is
// there again when it is tried again, and what ran isn't run twice.
func TestFailedHookTakesEarlierOnesAlong(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	failing := strings.Replace(jobText("fails", false), "backoffLimit: 0", "activeDeadlineSeconds: 0", 1)
	settings := job.Hook{
		Name: "settings", Kind: "ConfigMap", Path: "demo/templates/settings", Manifest: configMap("settings", "x"), Weight: -1,
		Events: []string{"pre-install"}, DeletePolicies: []string{"before-hook-creation", "hook-succeeded"},
	}
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{
		settings,
		hook("first", 0, jobText("first", false), []string{"pre-install"}, "hook-succeeded"),
		hook("fails", 1, failing, []string{"pre-install"}),
	}})
	o := e.settleAs(want, deliver.ReasonHookFailed)
	e.Expect(o.Message).To(And(ContainSubstring("Job "+ns+"/fails"), ContainSubstring("DeadlineExceeded"), ContainSubstring("values")))
	e.Eventually(func() any { return e.get("batch/v1", "Job", ns, "first") }).WithTimeout(10 * time.Second).Should(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "settings")).To(BeNil())

	e.clock.step(11 * time.Second)
	e.ensureUntil(want, func(deliver.Outcome) bool { return e.meter.made("fails") == 2 })
	e.Expect(e.meter.made("first")).To(Equal(1), "it has run")
	e.Expect(e.meter.made("fails")).To(Equal(2))
	e.Expect(strings.Count(strings.Join(e.meter.log, "\n"), "PATCH /api/v1/namespaces/"+ns+"/configmaps/settings")).To(Equal(2), "it is there for the next attempt")
}

// TestFailedHookOfARemoval tells how to go on without the hook, and that works at once.
func TestFailedHookOfARemoval(t *testing.T) {
	e, ns := beside(t)
	failing := strings.Replace(jobText("bye", false), "backoffLimit: 0", "activeDeadlineSeconds: 0", 1)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{hook("bye", 0, failing, []string{"pre-delete"})}})
	e.install(want)
	o := e.remove(want.Release)
	e.Expect(o.Reason).To(Equal(deliver.ReasonHookFailed))
	e.Expect(o.Message).To(And(ContainSubstring("addons.cluster.x-k8s.io/deletion-policy"), ContainSubstring(ns+"/sh.helm.release.v1.demo.v1"), ContainSubstring("Orphan")))

	secret := e.get("v1", "Secret", ns, "sh.helm.release.v1.demo.v1")
	annotations := secret.GetAnnotations()
	annotations["addons.cluster.x-k8s.io/deletion-policy"] = string(addonsv1.DeletionPolicyOrphan)
	secret.SetAnnotations(annotations)
	e.Expect(e.target.Client.Update(e.ctx, secret)).To(Succeed())
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "a")).NotTo(BeNil())
}

// TestRunningHookIsAwaited changes what is wanted while a hook's Job runs.
func TestRunningHookIsAwaited(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "x")}))
	hooks := []job.Hook{hook("migrate", 0, jobText("migrate", true), []string{"pre-upgrade"}, "before-hook-creation")}
	of := func(version string) deliver.Desired {
		return e.want(ns, chart{version: version, manifest: configMap("a", version), hooks: hooks})
	}
	e.ensureAs(of("2"), deliver.ReasonRunningHook)
	uid := e.get("batch/v1", "Job", ns, "migrate").GetUID()
	e.Expect(e.ensureAs(of("3"), deliver.ReasonRunningHook).Revision).To(Equal(int32(2)))
	e.restart()
	e.ensureAs(of("3"), deliver.ReasonRunningHook)
	e.Expect(e.get("batch/v1", "Job", ns, "migrate").GetUID()).To(Equal(uid))
	e.Expect(e.records(ns)[of("3").Release].Revision).To(Equal(2), "there is no other revision yet")

	again := of("3")
	again.Again = true
	for i, want := range []deliver.Desired{again, of("4")} {
		e.Eventually(func() int {
			e.ensure(want)
			return e.records(ns)[want.Release].Revision
		}).WithTimeout(20 * time.Second).Should(Equal(3 + i))
		e.clock.step(2 * time.Minute) // its Job has no pod that runs
	}
}

// TestWantedAgainWhilePreDeleteRuns has an add-on wanted again while the hook that prepares for its end runs.
func TestWantedAgainWhilePreDeleteRuns(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{hook("bye", 0, jobText("bye", true), []string{"pre-delete"})}})
	e.install(want)
	o := e.removeOnce(want.Release)
	e.Expect(o.Reason).To(Equal(deliver.ReasonRunningHook))
	o = e.ensure(want)
	e.Expect(o.Reason).To(Equal(deliver.ReasonRunningHook), "it may be half-way")
	e.clock.step(2 * time.Minute)
	e.install(want)
	e.Eventually(func() any { return e.get("batch/v1", "Job", ns, "bye") }).WithTimeout(20 * time.Second).Should(BeNil())
}

// TestHooksOfOneNameInTwoNamespaces runs both.
func TestHooksOfOneNameInTwoNamespaces(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ns, other := e.namespace(), e.namespace()
	in := func(ns string) job.Hook {
		return job.Hook{Name: "seed", Kind: "ConfigMap", Path: "demo/templates/" + ns + ".yaml", Manifest: namespaced(ns, configMap("seed", ns)), Events: []string{"pre-install"}}
	}
	e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{in(ns), in(other)}}))
	e.Expect(e.get("v1", "ConfigMap", ns, "seed")).NotTo(BeNil())
	e.Expect(e.get("v1", "ConfigMap", other, "seed")).NotTo(BeNil())
}

// TestHooksBesideEachOther has an object that can be made once another one of its weight is, and one that comes after a Job.
func TestHooksBesideEachOther(t *testing.T) {
	e, ns := beside(t)
	extra := ns + "-a"
	of := func(kind, name, manifest string) job.Hook {
		return job.Hook{Name: name, Kind: kind, Path: "demo/templates/" + name, Manifest: manifest, Events: []string{"pre-install"}, DeletePolicies: []string{"hook-succeeded"}}
	}
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x"), hooks: []job.Hook{
		of("Namespace", extra, namespace(extra)), of("ConfigMap", ns+"-b", namespaced(extra, configMap("b", "x"))), of("ConfigMap", ns+"-c", configMap("c", "x")),
		of("Job", ns+"-d", jobText("d", true)), of("ConfigMap", ns+"-e", configMap("e", "x")),
	}})
	e.ensureAs(want, deliver.ReasonRunningHook)
	for name, in := range map[string]string{"b": extra, "c": ns} {
		made := e.get("v1", "ConfigMap", in, name)
		e.Expect(made).NotTo(BeNil(), name)
		e.Expect(made.GetAnnotations()).To(HaveKeyWithValue(deliver.HookRunAnnotation, HavePrefix("1.pre-install.1.")))
	}
	e.Expect(e.get("v1", "ConfigMap", ns, "e")).To(BeNil(), "the Job hasn't ended")

	resume := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"suspend":false}}`))
	e.Expect(e.target.Client.Patch(e.ctx, e.get("batch/v1", "Job", ns, "d"), resume)).To(Succeed())
	e.install(want)
	for _, name := range []string{"c", "e"} {
		e.Expect(e.get("v1", "ConfigMap", ns, name)).To(BeNil(), "hook-succeeded")
	}
}

// dataChart returns a chart with a claim, and a namespace of its own, in its templates or as its hooks.
func dataChart(ns, version string, asHooks bool) chart {
	claim := "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteMany], storageClassName: '', volumeName: pv-" + ns + ", resources: {requests: {storage: 1Gi}}}\n"
	c := chart{version: version, manifest: configMap("a", version)}
	if !asHooks {
		c.manifest += claim + namespace(ns+"-data")
		return c
	}
	events := []string{"pre-install", "pre-upgrade"}
	c.hooks = []job.Hook{
		{Name: "data", Kind: "PersistentVolumeClaim", Path: "demo/templates/data.yaml", Manifest: claim, Events: events, DeletePolicies: []string{"before-hook-creation"}},
		{Name: ns + "-data", Kind: "Namespace", Path: "demo/templates/ns.yaml", Manifest: namespace(ns + "-data"), Events: events, DeletePolicies: []string{"hook-succeeded"}},
	}
	return c
}

// TestDataAsHook has a claim and a namespace where hooks are to make theirs. They stay, whoever had them.
func TestDataAsHook(t *testing.T) {
	of := func(e *env, ns string, c chart) deliver.Desired {
		want := e.want(ns, c)
		want.DataPolicy = addonsv1.DataPolicyKeep
		return want
	}
	for name, tc := range map[string]struct {
		before func(e *env, ns string) (next deliver.Desired)
		reason string
	}{
		"they are hooks already": {func(e *env, ns string) deliver.Desired {
			e.install(of(e, ns, dataChart(ns, "1", true)))
			return of(e, ns, dataChart(ns, "2", true))
		}, deliver.ReasonReady},
		"they were in templates": {func(e *env, ns string) deliver.Desired {
			e.install(of(e, ns, dataChart(ns, "1", false)))
			return of(e, ns, dataChart(ns, "2", true))
		}, deliver.ReasonReady},
		"they were in templates, and kept": {func(e *env, ns string) deliver.Desired {
			e.install(of(e, ns, dataChart(ns, "1", false)))
			e.install(of(e, ns, configMaps("2", "x")))
			return of(e, ns, dataChart(ns, "3", true))
		}, deliver.ReasonReady},
		"the add-on has another name now": {func(e *env, ns string) deliver.Desired {
			previous := of(e, ns, dataChart(ns, "1", true))
			e.install(previous)
			later := of(e, ns, dataChart(ns, "1", true))
			later.Name, later.Leaving = "later", []deliver.Release{previous.Release}
			return later
		}, deliver.ReasonReady},
		"Helm left them": {func(e *env, ns string) deliver.Desired {
			claim := strings.Replace(dataChart(ns, "1", true).hooks[0].Manifest, "name: data", "name: data, namespace: "+ns+", annotations: {helm.sh/hook: pre-install}", 1)
			e.apply("helm", claim+namespace(ns+"-data"))
			return of(e, ns, dataChart(ns, "1", true))
		}, deliver.ReasonHookFailed},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			e.apply("somebody", "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-"+ns+"}\n"+
				"spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: '', nfs: {server: nfs.example.com, path: /x}}\n")
			next := tc.before(e, ns)
			uids := func() []any {
				return []any{e.get("v1", "PersistentVolumeClaim", ns, "data").GetUID(), e.get("v1", "Namespace", "", ns+"-data").GetUID()}
			}
			before := uids()
			e.settleAs(next, tc.reason)
			e.expectStays("v1", "PersistentVolumeClaim", ns, "data")
			e.expectStays("v1", "Namespace", "", ns+"-data")
			e.Expect(uids()).To(Equal(before))
			if tc.reason == deliver.ReasonReady {
				e.Expect(e.get("v1", "PersistentVolumeClaim", ns, "data").GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, next.Name))
			}
		})
	}
}

// TestTemplateBecomesAHook upgrades to a chart in which an object of a template is a hook. What the hook has made stays,
// also if the instance ends before the prune, or other objects are waited for in it.
func TestTemplateBecomesAHook(t *testing.T) {
	for _, restart := range []bool{false, true} {
		t.Run(fmt.Sprintf("restart=%t", restart), func(t *testing.T) {
			e, ns := beside(t)
			e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "1") + configMap("x", "1") + namespace(ns+"-extra")}))
			want := e.want(ns, chart{version: "2", manifest: configMap("a", "2"), hooks: []job.Hook{settingsHook("pre-upgrade")}})
			want.Postcondition = func(context.Context) (string, time.Duration, error) { return "a word", 0, nil }
			e.reach(want, deliver.ReasonWaitingForPostcondition)
			if restart {
				e.restart()
			}
			want.Postcondition = nil
			e.install(want)
			e.expectStays("v1", "ConfigMap", ns, "x")
			e.Expect(e.get("v1", "ConfigMap", ns, "x").Object["data"]).To(Equal(map[string]any{"key": "hook"}))
			e.Eventually(func() any { return e.get("v1", "Namespace", "", ns+"-extra") }).WithTimeout(20 * time.Second).Should(BeNil())
		})
	}
}

// TestNamespaceAsHook has the namespace of a hook go, unless there is something of others in it.
func TestNamespaceAsHook(t *testing.T) {
	long.InCI(t)
	e, ns := beside(t)
	extra := ns + "-extra"
	of := func(version string, policies ...string) deliver.Desired {
		h := job.Hook{Name: extra, Kind: "Namespace", Path: "demo/templates/ns.yaml", Manifest: namespace(extra), Events: []string{"pre-install", "pre-upgrade"}, DeletePolicies: policies}
		return e.want(ns, chart{version: version, manifest: configMap("a", version), hooks: []job.Hook{h}})
	}
	e.install(of("1", "before-hook-creation"))
	uid := e.get("v1", "Namespace", "", extra).GetUID()
	e.apply("kubectl", theirConfigMap(extra, "theirs", "x"))
	e.install(of("2", "before-hook-creation", "hook-succeeded"))
	e.expectStays("v1", "Namespace", "", extra)
	e.Expect(e.get("v1", "Namespace", "", extra).GetUID()).To(Equal(uid))

	e.delete(e.get("v1", "ConfigMap", extra, "theirs"))
	e.install(of("3", "before-hook-creation"))
	e.Expect(e.get("v1", "Namespace", "", extra).GetUID()).NotTo(Equal(uid))
	e.install(of("4", "before-hook-creation", "hook-succeeded"))
	e.Eventually(func() any { return e.get("v1", "Namespace", "", extra) }).WithTimeout(20 * time.Second).Should(BeNil())
}

// TestRollbackIsRenewed tries again what was rolled back, when its certificates are to be renewed: once a day.
func TestRollbackIsRenewed(t *testing.T) {
	e, ns := beside(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	e.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now(), NotAfter: time.Now().Add(90 * 24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	e.Expect(err).NotTo(HaveOccurred())
	pair, err := json.Marshal(map[string]string{"Cert": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), "Key": "k"})
	e.Expect(err).NotTo(HaveOccurred())
	rendered := 0
	of := func(c chart) deliver.Desired {
		want := e.rollingBack(ns, c)
		want.Render = func(context.Context, deliver.RenderInput) (*deliver.Rendering, error) {
			rendered++
			r := c.render(t)
			r.Generated = job.Generated{"genSelfSignedCert/x": string(pair)}
			return r, nil
		}
		return want
	}
	e.install(of(chart{version: "1", manifest: configMap("a", "1")}))
	bad := of(chart{version: "2", manifest: configMap("a", "2") + refused})
	o := e.reach(bad, deliver.ReasonRolledBack)
	e.Expect(o.RetryAfter).To(BeNumerically("~", 60*24*time.Hour, time.Hour), "two thirds of its life")
	before := rendered
	e.clock.step(61 * 24 * time.Hour)
	o = e.reach(bad, deliver.ReasonRolledBack)
	e.Expect(rendered).To(Equal(before+1), "it was tried again")
	e.Expect(o.RetryAfter).To(BeNumerically("<=", 24*time.Hour))
}
