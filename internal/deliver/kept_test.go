// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
	"github.com/cluster-chandler/chandler/test/long"
)

// keptConfigMap stays when its release goes.
func keptConfigMap(value string) string {
	return strings.Replace(configMap("kept", value), "name: kept", "name: kept\n  annotations: {helm.sh/resource-policy: keep}", 1)
}

// TestReleaseClaimsAgainWhatItKept by the resource policy; no other release does.
func TestReleaseClaimsAgainWhatItKept(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, chart{version: "1", manifest: keptConfigMap("one") + configMap("x", "a")})
	e.install(want)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "kept").GetAnnotations()).To(HaveKeyWithValue(object.KeptByAnnotation, ns+"/demo"))

	other := e.wantNamed("other", ns, chart{version: "1", manifest: keptConfigMap("other")})
	o := e.settleAs(other, object.ReasonObjectExists)
	e.Expect(o.Message).To(And(ContainSubstring(want.String()), Not(ContainSubstring("helm"))), "nobody used Helm")
	e.Expect(e.remove(other.Release).Gone).To(BeTrue())

	e.install(e.want(ns, chart{version: "2", manifest: keptConfigMap("two") + configMap("x", "a")}))
	kept := e.get("v1", "ConfigMap", ns, "kept")
	e.Expect(kept.Object["data"]).To(Equal(map[string]any{"key": "two"}))
	e.Expect(kept.GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
	e.Expect(kept.GetAnnotations()).NotTo(HaveKey(object.KeptByAnnotation))
	for _, entry := range kept.GetManagedFields() {
		e.Expect(entry.Manager).To(Equal("chandler/" + ns + "/demo"))
	}
}

// TestReleaseClaimsAgainACRDThatWasInUse instead of telling to delete it, with people's objects.
func TestReleaseClaimsAgainACRDThatWasInUse(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", manifest: crd(group)})
	e.install(want)
	e.apply("kubectl", strings.Replace(widget(group, "theirs"), "{name: theirs}", "{name: theirs, namespace: "+ns+"}", 1))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())

	o := e.settleAs(e.wantNamed("other", ns, chart{version: "1", manifest: crd(group)}), object.ReasonObjectExists)
	e.Expect(o.Message).To(And(ContainSubstring("adoptionPolicy"), Not(MatchRegexp("(?i)delete"))))
	e.install(want)
	e.Expect(e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group).GetLabels()).
		To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
	e.Expect(e.get(group+"/v1", "Widget", ns, "theirs")).NotTo(BeNil())
}

// TestCRDsOfTheCRDsDirectoryAreUpdatedAfterAReinstallation, as they are by an upgrade.
func TestCRDsOfTheCRDsDirectoryAreUpdatedAfterAReinstallation(t *testing.T) {
	e, ns := alone(t)
	group := ns + ".example.com"
	want := e.want(ns, chart{version: "1", crds: crd(group), manifest: configMap("x", "a")})
	e.install(want)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	newer := strings.Replace(crd(group), "singular: widget,", "singular: widget, shortNames: [wi],", 1)
	e.install(e.want(ns, chart{version: "2", crds: newer, manifest: configMap("x", "a")}))
	live := e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	short, _, err := unstructured.NestedStringSlice(live.Object, "spec", "names", "shortNames")
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(short).To(Equal([]string{"wi"}))
}

// TestNobodyIsToldToDeleteWhatHoldsData: a claim that can't be changed.
func TestNobodyIsToldToDeleteWhatHoldsData(t *testing.T) {
	e, ns := alone(t)
	claim := func(class string) string {
		return "---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {storageClassName: " + class +
			", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	}
	want := e.want(ns, chart{version: "1", manifest: claim("one")})
	e.ensure(want)
	o := e.settle(e.want(ns, chart{version: "2", manifest: claim("two")}))
	e.Expect(o.Reason).To(BeElementOf(object.ReasonImmutableField, object.ReasonObjectRejected), o.Message)
	e.Expect(o.Message).NotTo(MatchRegexp("(?i)delete the object"))

	e.settleAs(e.wantNamed("other", ns, chart{version: "1", manifest: claim("one")}), object.ReasonOwnedByOther)
}

func namespace(name string, labels ...string) string {
	return fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {%s}}\n", name, strings.Join(labels, ", "))
}

// TestNamespaceStaysWithWhatIsSomebodyElses puts one object into the namespace of an add-on.
func TestNamespaceStaysWithWhatIsSomebodyElses(t *testing.T) {
	for name, manifest := range map[string]string{
		"PodTemplate":   "apiVersion: v1\nkind: PodTemplate\nmetadata: {name: theirs, namespace: NS}\ntemplate: {spec: {containers: [{name: c, image: x}]}}\n",
		"ResourceClaim": "apiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nmetadata: {name: theirs, namespace: NS}\nspec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: x}}]}}\n",
		"Lease":         "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: theirs, namespace: NS}\n",
		// Its owner isn't in the namespace, and doesn't go with it.
		"Secret": "apiVersion: v1\nkind: Secret\nmetadata: {name: theirs, namespace: NS, ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: cluster-admin, uid: UID, controller: true}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			extra := ns + "-extra"
			want := e.want(ns, chart{version: "1", manifest: namespace(extra) + configMap("x", "a")})
			e.install(want)
			admin := e.get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "cluster-admin")
			e.apply("kubectl", strings.NewReplacer("NS", extra, "UID", string(admin.GetUID())).Replace(manifest))
			o := e.removed(want.Release)
			e.Expect(o.Message).To(And(ContainSubstring("Namespace "+extra), ContainSubstring(name+" theirs")))
			e.expectStays("v1", "Namespace", "", extra)
		})
	}
}

// TestNamespaceStaysWithWhatIsStillWanted: the chart has the namespace no more, and objects in
// it still.
func TestNamespaceStaysWithWhatIsStillWanted(t *testing.T) {
	e, ns := beside(t)
	extra := ns + "-extra"
	inside := strings.Replace(configMap("x", "a"), "name: x", "name: x\n  namespace: "+extra, 1)
	e.install(e.want(ns, chart{version: "1", manifest: namespace(extra) + inside}))
	e.install(e.want(ns, chart{version: "2", manifest: inside}))
	e.expectStays("v1", "Namespace", "", extra)
	e.Expect(e.get("v1", "ConfigMap", extra, "x").GetDeletionTimestamp()).To(BeNil())
}

// TestNamespaceGoesWithWhatItsObjectsMade: ReplicaSets and Pods hang on the add-on's
// Deployment, and go as well.
func TestNamespaceGoesWithWhatItsObjectsMade(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	extra := ns + "-extra"
	want := e.want(ns, chart{version: "1", manifest: namespace(extra) +
		strings.Replace(deployment("app"), "{name: app}", "{name: app, namespace: "+extra+"}", 1)})
	e.install(want)
	o := e.removed(want.Release)
	e.Expect(o.Message).To(BeEmpty())
	e.Expect(e.get("v1", "Namespace", "", extra)).To(BeNil())
}

// TestNamespaceStaysWhileAnAPIDoesNotAnswer: what can't be looked for may be there. An API that
// goes with the add-on is no reason to keep it, though discovery shows it a while longer.
func TestNamespaceStaysWhileAnAPIDoesNotAnswer(t *testing.T) {
	long.Test(t)
	e, ns := alone(t)
	extra, group := ns+"-extra", ns+".example.com"
	want := e.want(ns, chart{version: "1", manifest: namespace(extra)})
	e.install(want)
	api := func(group string) string {
		return fmt.Sprintf("---\napiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.%[1]s}\n"+
			"spec: {group: %[1]s, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: nobody, namespace: %[2]s}}\n", group, ns)
	}
	other := e.wantNamed("other", ns, chart{version: "1", manifest: namespace(ns+"-other") + api("other-"+group)})
	e.ensure(other)
	discovery := func() error {
		_, _, err := e.clientset().Discovery().ServerGroupsAndResources()
		return err
	}
	e.Eventually(discovery).WithTimeout(30*time.Second).Should(HaveOccurred(), "it is to tell of the group")
	o := e.removed(other.Release)
	e.Expect(o.Message).To(BeEmpty())
	e.Eventually(discovery).WithTimeout(30 * time.Second).Should(Succeed())

	e.apply("kubectl", api(group))
	service := e.get("apiregistration.k8s.io/v1", "APIService", "", "v1."+group)
	t.Cleanup(func() { _ = e.target.Client.Delete(context.Background(), service) })
	e.Eventually(discovery).WithTimeout(30*time.Second).Should(HaveOccurred(), "it is to tell of the group")

	o = e.remove(want.Release)
	e.Expect(e.target.Client.Delete(e.ctx, service)).To(Succeed())
	e.Eventually(discovery).WithTimeout(30*time.Second).Should(Succeed(), "other tests need it")
	e.Expect(o.Gone).To(BeTrue())
	e.Expect(o.Message).To(And(ContainSubstring("Namespace "+extra), ContainSubstring(group)))
	e.Expect(e.get("v1", "Namespace", "", extra)).NotTo(BeNil())
}

// TestNamespaceGoesThoughDiscoveryIsBehind removes a namespace while discovery still shows a kind
// whose CRD is gone: there can't be objects of it.
func TestNamespaceGoesThoughDiscoveryIsBehind(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	extra, group := ns+"-extra", ns+".example.com"
	brings := e.wantNamed("brings", ns, chart{version: "1", manifest: crd(group) + widget(group, "one")})
	e.install(brings)
	want := e.want(ns, chart{version: "1", manifest: namespace(extra)})
	e.install(want)
	shown := e.clientset().Discovery()
	lists, err := shown.ServerPreferredNamespacedResources()
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(lists).To(ContainElement(HaveField("GroupVersion", group+"/v1")))
	e.Expect(e.remove(brings.Release).Gone).To(BeTrue())
	e.Eventually(func() any {
		return e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	}).WithTimeout(30 * time.Second).Should(BeNil())

	e.target.Discovery = func(context.Context) (discovery.DiscoveryInterface, error) {
		return staleDiscovery{shown, lists}, nil
	}
	o := e.removed(want.Release)
	e.Expect(o.Message).To(BeEmpty())
	e.Expect(e.get("v1", "Namespace", "", extra)).To(BeNil())
}

// staleDiscovery shows what there was.
type staleDiscovery struct {
	discovery.DiscoveryInterface
	were []*metav1.APIResourceList
}

func (s staleDiscovery) ServerPreferredNamespacedResources() ([]*metav1.APIResourceList, error) {
	return s.were, nil
}

// TestNamespaceThatAPolicyRefuses tells just that, also later on: nothing was installed that could be lost.
func TestNamespaceThatAPolicyRefuses(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ns := e.namespace() + "-refused"
	e.deny(ns, "CREATE", "namespaces", "object.metadata.name != '"+ns+"'", "'every namespace needs a team'")
	e.Eventually(func() error {
		return e.target.Client.Create(e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, client.DryRunAll)
	}).WithTimeout(time.Minute).ShouldNot(Succeed())
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	for range 3 {
		o := e.ensure(want)
		e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed), "%+v", o)
		e.Expect(o.Reason).To(BeElementOf(object.ReasonForbidden, object.ReasonObjectRejected))
		e.Expect(o.Message).To(And(ContainSubstring("Namespace "+ns), ContainSubstring("every namespace needs a team")))
		e.Expect(o.Recorded).To(BeNil(), "nothing was installed")
		e.clock.step(10 * time.Minute)
	}
}

// TestNamespaceOfSomebodyIsShared: an add-on sets its fields on a namespace that was there, and
// neither takes it over nor deletes it.
func TestNamespaceOfSomebodyIsShared(t *testing.T) {
	e, ns := alone(t)
	theirs := ns + "-theirs"
	e.apply("kubectl", namespace(theirs, "team: blue"))
	manifest := namespace(theirs, "team: red", "level: privileged")
	want := e.want(ns, chart{version: "1", manifest: manifest + configMap("x", "a")})
	labels := And(HaveKeyWithValue("team", "blue"), HaveKeyWithValue("level", "privileged"), Not(HaveKey(addonsv1.AddonLabel)))
	for version, text := range map[string]string{"1": "a", "2": "b"} {
		e.install(e.want(ns, chart{version: version, manifest: manifest + configMap("x", text)}))
		e.Expect(e.get("v1", "Namespace", "", theirs).GetLabels()).To(labels)
	}
	// Another add-on shares it, too.
	other := e.wantNamed("other", ns, chart{version: "1", manifest: namespace(theirs, "other: yes-please")})
	e.install(other)
	e.Expect(e.remove(other.Release).Gone).To(BeTrue())

	e.install(e.want(ns, chart{version: "3", manifest: configMap("x", "c")}))
	e.Expect(e.get("v1", "Namespace", "", theirs)).NotTo(BeNil(), "it isn't pruned")
	e.install(want)
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.expectStays("v1", "Namespace", "", theirs)
}

// TestNamespaceOfAnotherAddonIsShared: removal of who shares it runs its hooks, as nothing
// of it lives on in the other.
func TestNamespaceOfAnotherAddonIsShared(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	both := ns + "-both"
	owner := e.wantNamed("owner", ns, chart{version: "1", manifest: namespace(both)})
	e.install(owner)
	guest := e.wantNamed("guest", ns, chart{version: "1", manifest: namespace(both, "guest: is-here") + configMap("x", "a"),
		hooks: []job.Hook{hook("bye", 0, jobText("bye", false), []string{"pre-delete"})}})
	e.install(guest)
	live := e.get("v1", "Namespace", "", both)
	e.Expect(live.GetLabels()).To(And(HaveKeyWithValue("guest", "is-here"), HaveKeyWithValue(addonsv1.AddonLabel, "owner")))
	keys, known, err := e.d.Holds(e.ctx, e.target, guest.Release)
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(known).To(BeTrue())
	e.Expect(keys).To(Equal([]deliver.ObjectKey{{Kind: "ConfigMap", Namespace: ns, Name: "x"}}))

	e.Expect(e.remove(guest.Release).Gone).To(BeTrue())
	e.Expect(e.get("batch/v1", "Job", ns, "bye")).NotTo(BeNil(), "its hook was run")
	e.Expect(e.remove(owner.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "Namespace", "", both)).To(BeNil())
}

// TestNamespaceOfKubernetesIsNeverOwned, whatever the adoption policy.
func TestNamespaceOfKubernetesIsNeverOwned(t *testing.T) {
	for _, policy := range []addonsv1.AdoptionPolicy{addonsv1.AdoptionPolicyFail, addonsv1.AdoptionPolicyAdoptIfEqual, addonsv1.AdoptionPolicyAdopt} {
		t.Run(string(policy), func(t *testing.T) {
			e, ns := alone(t)
			want := e.want(ns, chart{version: "1", manifest: namespace("kube-public", ns+": here") + namespace(ns, "mine: also")})
			want.Adoption = policy
			e.install(want)
			for _, name := range []string{"kube-public", ns} {
				e.Expect(e.get("v1", "Namespace", "", name).GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel), name)
			}
			e.Expect(e.get("v1", "Namespace", "", "kube-public").GetLabels()).To(HaveKeyWithValue(ns, "here"))
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("v1", "Namespace", "", ns)).NotTo(BeNil())
		})
	}
}

// TestNamespaceIsAdoptedIfAsked owns a namespace that was there.
func TestNamespaceIsAdoptedIfAsked(t *testing.T) {
	long.Test(t)
	e, ns := beside(t)
	theirs := ns + "-theirs"
	e.Expect(e.target.Client.Create(e.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: theirs}})).To(Succeed())
	want := e.want(ns, chart{version: "1", manifest: namespace(theirs)})
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(want)
	e.Expect(e.get("v1", "Namespace", "", theirs).GetLabels()).To(HaveKeyWithValue(addonsv1.AddonLabel, "demo"))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "Namespace", "", theirs)).To(BeNil())
}

// TestSharedNamespaceIsNeverDeleted has somebody copy the add-on's labels to a namespace that it shares: it stays all the same.
func TestSharedNamespaceIsNeverDeleted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	ns, theirs := e.namespace(), e.namespace()
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "x") + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + theirs + ", labels: {team: web}}\n"})
	e.install(want)
	e.edit("somebody", e.get("v1", "Namespace", "", theirs), fmt.Sprintf(`{"metadata":{"labels":{%q:%q,%q:"demo"}}}`, addonsv1.AddonNamespaceLabel, ns, addonsv1.AddonLabel))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.expectStays("v1", "Namespace", "", theirs)
}

// askNobody has the API server ask a webhook about an operation on ConfigMaps of a namespace, one of which is a. It doesn't
// answer, until the returned function is called.
func (e *env) askNobody(ns, operation string) (answers func()) {
	e.t.Helper()
	e.apply("kubectl", unanswered(ns, fmt.Sprintf(`apiGroups: [""], apiVersions: [v1], operations: [%q], resources: [configmaps]`, operation),
		"namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: "+ns+"}}"))
	asked := func() error {
		return e.target.Client.Delete(e.ctx, e.get("v1", "ConfigMap", ns, "a"), client.DryRunAll)
	}
	e.Eventually(asked).WithTimeout(10*time.Second).Should(HaveOccurred(), "the webhook is to be asked")
	return func() {
		e.t.Helper()
		e.delete(e.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "", ns))
		e.Eventually(asked).WithTimeout(10 * time.Second).Should(Succeed())
	}
}

// TestWebhookThatDoesNotAnswer keeps objects from being written and deleted. That is waited for until the deadline,
// and counts as failed then. An add-on that is let go of isn't left with labels that no other add-on may take over.
func TestWebhookThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	hooked := chart{version: "2", manifest: configMap("a", "x"), hooks: []job.Hook{settingsHook("pre-upgrade")}}
	done := settingsHook("pre-upgrade")
	done.DeletePolicies = []string{"hook-succeeded"}
	cleaning := chart{version: "2", manifest: configMap("a", "x"), hooks: []job.Hook{done}}
	pruning := chart{version: "2", manifest: "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s}\n"}
	for name, c := range map[string]struct {
		after   chart  // no version if the add-on is removed
		asked   string // operation; "*" if it is empty
		policy  addonsv1.DeletionPolicy
		failure addonsv1.FailurePolicy
		waits   addonsv1.AddonPhase
		reason  string
	}{
		"a hook":          {after: hooked, waits: addonsv1.AddonUpgrading, reason: deliver.ReasonHookFailed},
		"a hook, or back": {after: hooked, failure: addonsv1.FailurePolicyRollBack, waits: addonsv1.AddonUpgrading, reason: deliver.ReasonHookFailed},
		"a hook's end":    {after: cleaning, asked: "DELETE", waits: addonsv1.AddonUpgrading, reason: object.ReasonWaitingForWebhook},
		"pruned":          {after: pruning, waits: addonsv1.AddonUpgrading, reason: deliver.ReasonPruneFailed},
		"removed":         {policy: addonsv1.DeletionPolicyDelete, waits: addonsv1.AddonRemoving, reason: deliver.ReasonPruneFailed},
		"let go of":       {policy: addonsv1.DeletionPolicyOrphan, waits: addonsv1.AddonRemoving, reason: object.ReasonWaitingForWebhook},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			want := e.want(ns, chart{version: "1", manifest: configMap("a", "x")})
			want.DeletionPolicy = c.policy
			e.install(want)
			labels := e.get("v1", "ConfigMap", ns, "a").GetLabels()
			e.Expect(labels).NotTo(BeEmpty())
			answers := e.askNobody(ns, cmp.Or(c.asked, "*"))
			act := func() (deliver.Outcome, error) { return e.d.Remove(e.ctx, e.target, want.Release) }
			if c.after.version != "" {
				want = e.want(ns, c.after)
				want.OnFailure = c.failure
				act = func() (deliver.Outcome, error) { return e.d.Ensure(e.ctx, e.target, want) }
			}
			o := e.drive(act, func(o deliver.Outcome) bool { return o.Reason == object.ReasonWaitingForWebhook })
			e.Expect(o.Phase).To(Equal(c.waits))
			e.Expect(o.Message).To(ContainSubstring("check." + ns))
			e.Expect(o.RetryAfter).To(Equal(5 * time.Second))
			e.Expect(e.records(ns)[want.Release].Owned).To(BeTrue())
			e.Expect(e.get("v1", "ConfigMap", ns, "a").GetLabels()).To(Equal(labels))

			e.clock.step(time.Hour)
			o, err := act()
			e.Expect(err).NotTo(HaveOccurred())
			e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
			e.Expect(o.Reason).To(Equal(c.reason))
			e.Expect(o.Message).To(ContainSubstring("check." + ns))
			e.Expect(o.RetryAfter).To(BeNumerically(">", 0))
			answers()
			e.clock.step(time.Minute)
			e.drive(act, func(o deliver.Outcome) bool {
				if c.failure == addonsv1.FailurePolicyRollBack {
					return o.Reason == deliver.ReasonRolledBack
				}
				return o.Gone || o.Phase == addonsv1.AddonReady
			})
			if c.policy == addonsv1.DeletionPolicyOrphan {
				e.Expect(e.get("v1", "ConfigMap", ns, "a").GetLabels()).To(BeEmpty())
			}
		})
	}
}

// TestWebhookThatAnswersInBetween has each step wait for it from the time that the step is kept by it.
func TestWebhookThatAnswersInBetween(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "x")}))
	both := settingsHook("pre-upgrade")
	both.Events = append(both.Events, "post-upgrade")
	want := e.want(ns, chart{version: "2", manifest: configMap("a", "x"), hooks: []job.Hook{both}})
	want.Readiness = gated(e, ns).Readiness
	answers := e.askNobody(ns, "*")
	e.reach(want, object.ReasonWaitingForWebhook)
	answers()
	e.reach(want, deliver.ReasonWaitingForObjects)
	e.clock.step(90 * time.Second)
	open(e, ns)
	e.askNobody(ns, "*")
	e.reach(want, object.ReasonWaitingForWebhook)
	e.clock.step(time.Minute)
	e.ensureAs(want, object.ReasonWaitingForWebhook)
}

// TestOrphanLeavesWhatIsAnotherAddons: an object that another add-on made again stays its own.
func TestOrphanLeavesWhatIsAnotherAddons(t *testing.T) {
	e, ns := alone(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a") + configMap("mine", "a")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.delete(e.get("v1", "ConfigMap", ns, "x"))
	e.install(e.wantNamed("other", ns, chart{version: "1", manifest: configMap("x", "b")}))
	before := e.get("v1", "ConfigMap", ns, "x")
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	e.Expect(e.get("v1", "ConfigMap", ns, "mine").GetLabels()).To(BeEmpty())
	e.Expect(e.get("v1", "ConfigMap", ns, "x").GetResourceVersion()).To(Equal(before.GetResourceVersion()))
}

// TestOrphanThatHelmHasFieldsOf lets go of an object of which Helm set a field meanwhile: all of it is Helm's then.
func TestOrphanThatHelmHasFieldsOf(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("x", "a")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.apply("helm", theirConfigMap(ns, "x", "a"))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	x := e.get("v1", "ConfigMap", ns, "x")
	e.Expect(x.GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel))
	e.Expect(x.Object["data"]).To(Equal(map[string]any{"key": "a"}))
	e.Expect(x.GetManagedFields()).To(HaveLen(1))
	e.Expect(x.GetManagedFields()[0].Manager).To(Equal("helm"))
}

// TestOrphanLeavesHelmsFieldsToHelm has Helm set a field of the add-on's object. The add-on writes after it, and leaves the
// object. Helm keeps its field, and can drop it while it sets the add-on's.
func TestOrphanLeavesHelmsFieldsToHelm(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: configMap("a", "ours")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	theirs := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: " + ns + "}\ndata: {"
	e.apply(object.HelmManager, theirs+"more: theirs}\n")
	live := e.get("v1", "ConfigMap", ns, "a")
	fields := live.GetManagedFields()
	for i := range fields {
		if fields[i].Manager == object.HelmManager { // the add-on wrote after that
			fields[i].Time = &metav1.Time{Time: fields[i].Time.Add(-time.Hour)}
		}
	}
	live.SetManagedFields(fields)
	e.Expect(e.target.Client.Update(e.ctx, live)).To(Succeed())
	e.removed(want.Release)
	e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(Equal(map[string]any{"key": "ours", "more": "theirs"}))
	e.apply(object.HelmManager, theirs+"key: theirs}\n")
	e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(Equal(map[string]any{"key": "theirs"}))
}

// TestOrphanLeavesHelmItsFields lets go of objects of which Helm set a field that the add-on doesn't have, before or
// after the add-on's last apply. Helm removes it once its chart drops it.
func TestOrphanLeavesHelmItsFields(t *testing.T) {
	e, ns := beside(t)
	ofHelm := func(name, data string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {%s}\n", name, ns, data)
	}
	want := e.want(ns, chart{version: "1", manifest: configMap("before", "1") + configMap("after", "1")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.apply("helm", ofHelm("before", "theirs: x"))
	before := e.get("v1", "ConfigMap", ns, "before")
	managed := before.GetManagedFields()
	for i := range managed {
		managed[i].Time = &metav1.Time{Time: time.Now().Add(-time.Hour)} // else the second that both were written in decides nothing
	}
	before.SetManagedFields(managed)
	e.Expect(e.target.Client.Update(e.ctx, before)).To(Succeed())
	want = e.want(ns, chart{version: "2", manifest: configMap("before", "2") + configMap("after", "2")})
	want.DeletionPolicy = addonsv1.DeletionPolicyOrphan
	e.install(want)
	e.apply("helm", ofHelm("after", "theirs: x"))
	e.Expect(e.remove(want.Release).Gone).To(BeTrue())
	for _, name := range []string{"before", "after"} {
		e.Expect(e.get("v1", "ConfigMap", ns, name).Object["data"]).To(Equal(map[string]any{"key": "2", "theirs": "x"}), name)
		e.apply("helm", ofHelm(name, ""))
		e.Expect(e.get("v1", "ConfigMap", ns, name).Object["data"]).To(Equal(map[string]any{"key": "2"}), name)
	}
}
