// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// operatorChart has an operator, the CRD that it brings, and a custom resource that only the
// operator can let go.
var operatorChart = chart{"templates/all.yaml": `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: databases.{{ .Release.Namespace }}.example.com}
spec:
  group: {{ .Release.Namespace }}.example.com
  scope: Namespaced
  names: {plural: databases, singular: database, kind: Database, listKind: DatabaseList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: operator}
spec:
  selector: {matchLabels: {app: operator}}
  template:
    metadata: {labels: {app: operator}}
    spec: {containers: [{name: operator, image: registry.example/operator:1}]}
---
apiVersion: {{ .Release.Namespace }}.example.com/v1
kind: Database
metadata: {name: main, finalizers: [operator.example.com/backup]}
`}

// TestRemovalEnds goes through the table of docs/removals.md, as far as other tests don't.
func TestRemovalEnds(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 2)
	settings, operator := tn.writeChart("settings", "1.0.0", configMapChart), tn.writeChart("operator", "1.0.0", operatorChart)
	proxy := tn.startProxy("prod", s)
	tn.makeClusterObject("prod", labels("env=prod"))
	tn.startManager()
	install := func() {
		tn.install(tn.addon("settings", settings), tn.addon("operator", operator))
	}
	database := &unstructured.Unstructured{}
	database.SetGroupVersionKind(schema.GroupVersionKind{Group: tn.namespace + ".example.com", Version: "v1", Kind: "Database"})
	database.SetNamespace(tn.namespace)
	database.SetName("main")

	install()
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) { spec.Addons = spec.Addons[:1] })
	tn.awaitCluster("prod", "a custom resource goes before its operator and its CRD",
		phase("operator", addonsv1.AddonRemoving, "WaitingForDeletion", "Database "+tn.namespace+"/main"))
	_, err := s.clientset.AppsV1().Deployments(tn.namespace).Get(t.Context(), "operator", metav1.GetOptions{})
	tn.Expect(err).NotTo(HaveOccurred())
	tn.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(database), database)).To(Succeed(), "its CRD is there")
	free := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	tn.Expect(s.Patch(t.Context(), database, free, client.FieldOwner("operator"))).To(Succeed())
	tn.expectRemoved(t, s, "operator")
	tn.awaitCluster("prod", "the removal ends", ready("settings"))

	tn.run("a ClusterAddon is deleted", func(t *testing.T, tn *tenant) {
		before := s.mark(t)
		tn.remove(tn.clusterAddon("prod"))
		tn.awaitCluster("prod", "it is made again", ready("settings"))
		tn.settle()
		NewWithT(t).Expect(writes(before.requests(t, tn.clusterUser("prod")))).To(BeEmpty())
	})

	tn.run("a record is edited", func(t *testing.T, tn *tenant) {
		record := &corev1.Secret{ObjectMeta: tn.named("sh.helm.release.v1.settings.v1")}
		tn.Expect(s.Get(t.Context(), client.ObjectKeyFromObject(record), record)).To(Succeed())
		whole := record.Data["release"]
		changeOn(t, s, record, func(r *corev1.Secret) { r.Data["release"] = []byte("rubbish") })
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Values = valuesOf(map[string]any{"text": "new"}) })
		tn.awaitCluster("prod", "it says so", phase("settings", addonsv1.AddonFailed, "RecordUnreadable", record.Name))
		tn.Expect(s.Get(t.Context(), tn.key("settings"), tn.configMapOf("settings"))).To(Succeed(), "and touches nothing")
		changeOn(t, s, record, func(r *corev1.Secret) { r.Data["release"] = whole })
		tn.awaitCluster("prod", "it continues once the record is restored", installedAs("settings", 2, "1.0.0"))
	})

	tn.run("a stack is deleted while the cluster is down", func(t *testing.T, tn *tenant) {
		proxy.refuse()
		tn.awaitCluster("prod", "it is down", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, "ConnectionRefused", ""))
		tn.remove(tn.newStack("platform", nil))
		tn.awaitCluster("prod", "the stack is gone, and what it installed is named",
			condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "ConnectionRefused", ""), known("settings"))
		proxy.open(t)
		tn.expectRemoved(t, s, "settings")
	})

	tn.run("a Cluster is deleted", func(t *testing.T, tn *tenant) {
		tn.install(tn.addon("settings", settings))
		tn.settle()
		deletions := tn.watchDeletions(s)
		proxy.refuse() // the control plane goes first
		ca := tn.clusterAddon("prod")
		tn.Expect(world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca)).To(Succeed())
		tn.remove(&clusterv1.Cluster{ObjectMeta: tn.named("prod")})
		tn.remove(ca) // as Kubernetes' garbage collector does by its owner reference
		tn.Expect(ca.OwnerReferences).To(ContainElement(And(HaveField("Kind", "Cluster"), HaveField("Name", "prod"))))
		tn.Expect(ca.Finalizers).To(BeEmpty(), "nothing holds it")
		tn.settle()
		tn.Expect(deletions()).To(BeEmpty(), "nothing is uninstalled")
		tn.Expect(client.IgnoreNotFound(world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca))).To(Succeed())
	})
}

// known expects an add-on to be in the status.
func known(addon string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		if statusOf(ca, addon).Name == "" {
			return errors.New("add-on " + addon + " isn't known")
		}
		return nil
	}
}

// TestWorkloadClusterIsRestored brings a workload cluster back to what it was before an upgrade,
// an installation and a removal, at a previous resourceVersion.
func TestWorkloadClusterIsRestored(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 18) // the server is nobody else's
	one, two := tn.writeChart("settings", "1.0.0", configMapChart), tn.writeChart("settings", "2.0.0", configMapChart)
	tn.install(tn.addon("upgraded", one), tn.addon("removed", one))
	tn.settle()
	restore, err := s.Backup(t.Context())
	tn.Expect(err).NotTo(HaveOccurred())
	tn.awaitReady("platform", "the API server is back")

	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].Chart.Path = two
		spec.Addons[1] = tn.addon("installed", one)
	})
	tn.awaitCluster("prod", "it is changed", installedAs("upgraded", 2, "2.0.0"), ready("upgraded", "installed"))
	tn.expectRemoved(t, s, "removed")
	tn.settle()

	tn.Expect(restore(t.Context())).To(Succeed())
	for _, addon := range []string{"upgraded", "installed"} {
		await(t, s, tn.configMapOf(addon), patience, "it is to be as wanted", exists)
	}
	tn.awaitCluster("prod", "it continues from what is there", installedAs("upgraded", 2, "2.0.0"), installedAs("installed", 1, "1.0.0"),
		phase("removed", addonsv1.AddonUnassigned, "StackUnknown", ""))
	tn.Expect(s.Get(t.Context(), tn.key("removed"), tn.configMapOf("removed"))).To(Succeed(), "in doubt, it is kept")
	change := tn.configMapOf("installed")
	change.Data = map[string]string{"text": "mine"}
	tn.Expect(s.Patch(t.Context(), change, client.MergeFrom(tn.configMapOf("installed")), client.FieldOwner("kubectl"))).To(Succeed())
	await(t, s, tn.configMapOf("installed"), patience, "its watches go on, too", func(o *corev1.ConfigMap) error {
		if o.Data["text"] != "default" {
			return errors.New(o.Data["text"])
		}
		return nil
	})
}
