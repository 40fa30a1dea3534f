// SPDX-License-Identifier: Apache-2.0

package deliver_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/deliver/record"
)

// TestAdoptionIsCalledOff takes an add-on out that was to take over a release of Helm's, and never had it whole.
func TestAdoptionIsCalledOff(t *testing.T) {
	t.Parallel()
	for name, previous := range map[string]string{"of its own name": "demo", "of another name": "previous"} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			e.helmInstalls(deliver.Release{Namespace: ns, Name: previous}, ns, theirChart("1", configMap("kept", "theirs")+configMap("alone", "theirs")))
			want := e.want(ns, chart{version: "2", manifest: configMap("kept", "ours") + configMap("new", "ours") + refused})
			want.Adoption = addonsv1.AdoptionPolicyAdopt
			if previous != "demo" {
				want.AdoptRelease = deliver.Release{Namespace: ns, Name: previous}
			}
			e.settleAs(want, object.ReasonObjectRejected)
			e.Expect(e.remove(want.Release).Gone).To(BeTrue())
			e.Expect(e.get("v1", "ConfigMap", ns, "kept").GetLabels()).NotTo(HaveKey(addonsv1.AddonLabel), "Helm's release has it still")
			e.Expect(e.get("v1", "ConfigMap", ns, "alone")).NotTo(BeNil())
			e.Expect(e.get("v1", "ConfigMap", ns, "new")).To(BeNil(), "the add-on made it")
			e.Expect(e.get("v1", "Secret", ns, "sh.helm.release.v1."+previous+".v1")).NotTo(BeNil())
			e.Expect(e.records(ns)[want.Release].Owned).To(BeFalse(), "no record of the add-on is left")
		})
	}
}

// TestAdoptionPrunesInWaves has Helm's release hold a custom resource and another object that the chart lacks.
func TestAdoptionPrunesInWaves(t *testing.T) {
	e, ns := beside(t)
	group := ns + ".example.com"
	e.apply("kubectl", crd(group))
	e.Eventually(func() error {
		return e.target.Client.Create(e.ctx, parsed(t, widget(group, "probe"), ns), client.DryRunAll)
	}).WithTimeout(10 * time.Second).Should(Succeed())
	e.helmInstalls(deliver.Release{Namespace: ns, Name: "demo"}, ns, theirChart("1", configMap("kept", "theirs")+configMap("old", "theirs")+widget(group, "w")))
	want := e.want(ns, chart{version: "2", manifest: configMap("kept", "ours")})
	want.Adoption = addonsv1.AdoptionPolicyAdopt
	e.install(want)
	e.Expect(e.get(group+"/v1", "Widget", ns, "w")).To(BeNil())
	e.Expect(e.get("v1", "ConfigMap", ns, "old")).To(BeNil())
}

// TestRecreateOnlyWhatCanBeMade changes a field of a Deployment that can't be changed, and makes another one wrong.
func TestRecreateOnlyWhatCanBeMade(t *testing.T) {
	e, ns := beside(t)
	e.install(e.want(ns, chart{version: "1", manifest: deployment("app")}))
	want := e.want(ns, chart{version: "2", manifest: "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: app}\n" +
		"spec: {replicas: 1, selector: {matchLabels: {app: other}}, template: {metadata: {labels: {app: third}}, spec: {containers: [{name: c, image: i}]}}}\n"})
	want.Recreate = true
	e.settleAs(want, object.ReasonObjectRejected)
	e.Expect(e.get("apps/v1", "Deployment", ns, "app")).NotTo(BeNil(), "it runs still")
}

// TestPortThatIsEdited has the port of a Service changed. The API server refuses the add-on's port beside it, so both are
// left, and the add-on says so until the change is undone.
func TestPortThatIsEdited(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: "---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {ports: [{name: http, port: 80}]}\n"})
	e.install(want)
	setPort := func(number int) {
		patch := fmt.Appendf(nil, `[{"op":"replace","path":"/spec/ports/0/port","value":%d}]`, number)
		s := e.get("v1", "Service", ns, "s")
		e.Expect(e.target.Client.Patch(e.ctx, s, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner("kubectl-edit"))).To(Succeed())
	}
	setPort(81)
	edited := e.get("v1", "Service", ns, "s").GetResourceVersion()
	o, found, err := e.d.Repair(e.ctx, e.target, deliver.Repair{Release: want.Release})
	e.Expect(err).NotTo(HaveOccurred())
	e.Expect(o.Phase).To(Equal(addonsv1.AddonFailed))
	e.Expect(o.Reason).To(Equal(object.ReasonObjectRejected))
	e.Expect(o.Message).To(And(ContainSubstring("Service "+ns+"/s"), ContainSubstring("isn't repaired")))
	e.Expect(found).NotTo(ContainElement(HaveField("Repaired", true)))
	e.Expect(e.get("v1", "Service", ns, "s").GetResourceVersion()).To(Equal(edited))
	setPort(80)
	e.look(deliver.Repair{Release: want.Release})
}

// TestStrippedManagersLeaveNothing takes managedFields off an object. What the chart drops later goes all the same.
func TestStrippedManagersLeaveNothing(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {keep: a, dropped: b}\n"})
	e.install(want)
	a := e.get("v1", "ConfigMap", ns, "a")
	e.Expect(e.target.Client.Patch(e.ctx, a, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/metadata/managedFields","value":[{}]}]`)))).To(Succeed())
	e.look(deliver.Repair{Release: want.Release})
	e.install(e.want(ns, chart{version: "2", manifest: "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {keep: a}\n"}))
	e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(Equal(map[string]any{"keep": "a"}))
}

// TestLabelsMakeNoOwner has an object of somebody's carry the add-on's labels, as a copy does. It stays as it is when the
// add-on goes, or goes back, or doesn't want an object of that name any more.
func TestLabelsMakeNoOwner(t *testing.T) {
	for name, end := range map[string]func(e *env, ns string, refused deliver.Desired){
		"removed": func(e *env, _ string, refused deliver.Desired) {
			e.settleAs(refused, object.ReasonObjectExists)
			e.removed(refused.Release)
		},
		"rolled back": func(e *env, _ string, refused deliver.Desired) {
			refused.OnFailure = addonsv1.FailurePolicyRollBack
			e.reach(refused, deliver.ReasonRolledBack)
		},
		"dropped": func(e *env, ns string, refused deliver.Desired) {
			e.settleAs(refused, object.ReasonObjectExists)
			e.install(e.want(ns, chart{version: "3", manifest: configMap("b", "ours")}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, ns := beside(t)
			e.install(e.want(ns, chart{version: "1", manifest: configMap("b", "ours")}))
			e.apply("kubectl", theirConfigMap(ns, "a", "theirs", addonsv1.AddonLabel+": demo", addonsv1.AddonNamespaceLabel+": "+ns))
			end(e, ns, e.want(ns, chart{version: "2", manifest: configMap("a", "ours") + configMap("b", "ours")}))
			e.expectStays("v1", "ConfigMap", ns, "a")
			e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(Equal(map[string]any{"key": "theirs"}))
		})
	}
}

// TestExportedManifests installs manifests as `kubectl get -o yaml` writes them, and what has nulls.
func TestExportedManifests(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: "---\napiVersion: v1\nkind: ConfigMap\n" +
		"metadata: {name: a, annotations: null, uid: 5bb43a10-64c8-4b06-8b5a-b7726d667264, resourceVersion: '4711', generation: 3, selfLink: /x}\ndata: {key: x, none: null}\n" +
		"---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: null, ports: [{port: 80, name: null}]}\n"})
	e.install(want)
	e.Expect(e.get("v1", "ConfigMap", ns, "a").Object["data"]).To(Equal(map[string]any{"key": "x"}))
}

// TestAggregatedClusterRole leaves the rules of a ClusterRole to the controller-manager, which fills them.
func TestAggregatedClusterRole(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: fmt.Sprintf("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all-%[1]s}\n"+
		"aggregationRule: {clusterRoleSelectors: [{matchLabels: {part-of: %[1]s}}]}\nrules: []\n"+
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: part-%[1]s, labels: {part-of: %[1]s}}\nrules: [{apiGroups: [\"\"], resources: [pods], verbs: [get]}]\n", ns)})
	e.install(want)
	e.Eventually(func() any {
		return e.get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "all-"+ns).Object["rules"]
	}).WithTimeout(20 * time.Second).Should(HaveLen(1))
	e.Expect(changesOf(e.look(deliver.Repair{Release: want.Release}))).To(BeEmpty())
	e.Expect(e.get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "all-"+ns).Object["rules"]).To(HaveLen(1))
}

// TestStaticVolumeAndClaim removes an add-on with a claim, which is kept, and the volume that it is bound to.
func TestStaticVolumeAndClaim(t *testing.T) {
	e, ns := beside(t)
	want := e.want(ns, chart{version: "1", manifest: fmt.Sprintf("---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: pv-%[1]s}\n"+
		"spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteMany], storageClassName: '', persistentVolumeReclaimPolicy: Retain, nfs: {server: nfs.example.com, path: /x}}\n"+
		"---\napiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec: {accessModes: [ReadWriteMany], storageClassName: '', volumeName: pv-%[1]s, resources: {requests: {storage: 1Gi}}}\n", ns)})
	want.DataPolicy = addonsv1.DataPolicyKeep
	e.install(want)
	e.Eventually(func() any {
		return e.get("v1", "PersistentVolumeClaim", ns, "data").Object["status"].(map[string]any)["phase"]
	}).WithTimeout(30 * time.Second).Should(Equal("Bound"))
	o := e.removed(want.Release)
	e.Expect(e.get("v1", "PersistentVolume", "", "pv-"+ns).GetDeletionTimestamp()).To(BeNil())
	e.Expect(o.Message).To(ContainSubstring("pv-" + ns))
}

// TestCRDWithConversionInUse removes an add-on with a CRD whose conversion webhook goes with it.
// No namespace can be deleted meanwhile, so it runs alone.
func TestCRDWithConversionInUse(t *testing.T) {
	e := newEnv(t)
	ns, other := e.namespace(), e.namespace()
	group := ns + ".example.com"
	of := func(conversion string) string {
		return strings.Replace(crd(group), "  versions:\n", "  "+conversion+"\n  versions:\n", 1) +
			"  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}\n"
	}
	e.install(e.want(ns, chart{version: "1", manifest: configMap("a", "x") + of("")}))
	theirs := strings.Replace(widget(group, "theirs"), "{name: theirs}", "{name: theirs, namespace: "+other+"}", 1)
	e.Eventually(func() error { return e.target.Client.Create(e.ctx, parsed(t, theirs, other)) }).WithTimeout(10 * time.Second).Should(Succeed())
	e.install(e.want(ns, chart{version: "2", manifest: configMap("a", "x") + of(
		fmt.Sprintf("conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {namespace: %s, name: gone, port: 443}}}}", ns))}))
	e.restart()
	o := e.removed(deliver.Release{Namespace: ns, Name: "demo"})
	e.Expect(o.Message).To(ContainSubstring("widgets." + group))
	kept := e.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets."+group)
	e.Expect(kept).NotTo(BeNil())
	e.edit("test", kept, `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	e.Expect(e.target.Client.Delete(e.ctx, kept)).To(Succeed())
}

// TestStrategyFollowsTheChart has a Deployment recreated once, and rolled again later.
func TestStrategyFollowsTheChart(t *testing.T) {
	e, ns := beside(t)
	strategy := func() any {
		s := e.get("apps/v1", "Deployment", ns, "app").Object["spec"].(map[string]any)["strategy"]
		return s.(map[string]any)["type"]
	}
	recreated := strings.Replace(deployment("app"), "  replicas: 1\n", "  replicas: 1\n  strategy: {type: Recreate}\n", 1)
	e.install(e.want(ns, chart{version: "1", manifest: deployment("app")}))
	e.install(e.want(ns, chart{version: "2", manifest: recreated}))
	e.Expect(strategy()).To(Equal("Recreate"))
	e.install(e.want(ns, chart{version: "3", manifest: deployment("app")}))
	e.Expect(strategy()).To(Equal("RollingUpdate"))

	wrong := strings.Replace(recreated, "example.com/app:1", "''", 1)
	e.Expect(e.settle(e.want(ns, chart{version: "4", manifest: wrong})).Phase).To(Equal(addonsv1.AddonFailed))
	e.Expect(strategy()).To(Equal("RollingUpdate"), "nothing of what is refused is applied")
}

// TestPortOfANode renames a DaemonSet that has a port of each node.
func TestPortOfANode(t *testing.T) {
	t.Parallel()
	set := func(name string, port int) string {
		return fmt.Sprintf("---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: %[1]s}\nspec: {selector: {matchLabels: {app: %[1]s}}, template: {metadata: {labels: {app: %[1]s}}, "+
			"spec: {tolerations: [{operator: Exists}], containers: [{name: c, image: example.com/app:1, ports: [{containerPort: 80, hostPort: %[2]d}]}]}}}\n", name, port)
	}
	t.Run("after all is ready", func(t *testing.T) {
		e, ns := beside(t)
		e.install(e.want(ns, chart{version: "1", manifest: set("previous", 28080)}))
		want := e.want(ns, chart{version: "2", manifest: set("next", 28080)})
		want.ProgressDeadline = time.Second
		o := e.settleAs(want, deliver.ReasonReadinessTimeout)
		e.Expect(o.Message).To(And(ContainSubstring("next"), ContainSubstring("previous"), ContainSubstring(string(addonsv1.PrunePolicyBeforeReady))))
		want.PruneEarly, want.ProgressDeadline = true, 2*time.Minute
		e.ensureUntil(want, func(o deliver.Outcome) bool { return o.Phase == addonsv1.AddonReady })
		e.Expect(e.get("apps/v1", "DaemonSet", ns, "previous")).To(BeNil())
	})
	t.Run("before", func(t *testing.T) {
		e, ns := beside(t)
		e.install(e.want(ns, chart{version: "1", manifest: set("previous", 28081)}))
		want := e.want(ns, chart{version: "2", manifest: set("next", 28081)})
		want.PruneEarly = true
		e.install(want)
	})
}

// parsed returns the object of a manifest in a namespace.
func parsed(t *testing.T, manifest, ns string) *unstructured.Unstructured {
	t.Helper()
	objects, err := record.ParseManifest(manifest)
	if err != nil || len(objects) != 1 {
		t.Fatal(err, len(objects))
	}
	objects[0].SetNamespace(ns)
	return objects[0]
}
