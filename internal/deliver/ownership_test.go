// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

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
	o := e.remove(want.Release)
	e.Expect(o.Gone).To(BeTrue())
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
		e.Expect(o.Recorded).To(BeFalse())
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
