// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/test/long"
)

// having is a chart with these ConfigMaps, whatever its release is called, and with
// another one that its pre-delete hook makes.
func having(names ...string) chart {
	c := chart{"templates/farewell.yaml": "apiVersion: v1\nkind: ConfigMap\n" +
		"metadata: {name: 'farewell-{{ .Release.Name }}', annotations: {helm.sh/hook: pre-delete}}\n"}
	for _, name := range names {
		c["templates/"+name+".yaml"] = configMap(name, "{{ .Chart.Name | quote }}")
	}
	return c
}

// watchDeletions starts watching which ConfigMaps of the tenant's namespace are
// deleted on a server, until the function that it returns is called.
func (tn *tenant) watchDeletions(s *server) func() []string {
	tn.t.Helper()
	list, err := s.clientset.CoreV1().ConfigMaps(tn.namespace).List(tn.t.Context(), metav1.ListOptions{})
	tn.Expect(err).NotTo(HaveOccurred())
	watcher, err := s.clientset.CoreV1().ConfigMaps(tn.namespace).Watch(tn.t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	tn.Expect(err).NotTo(HaveOccurred())
	deleted, done := []string{}, make(chan struct{})
	const last = "the-last-one"
	go func() {
		defer close(done)
		for event := range watcher.ResultChan() {
			object, ok := event.Object.(*corev1.ConfigMap)
			if !ok || object.Name == last {
				return
			}
			if event.Type == watch.Deleted {
				deleted = append(deleted, object.Name)
			}
		}
	}()
	return func() []string {
		tn.t.Helper()
		mark := &corev1.ConfigMap{ObjectMeta: tn.named(last)}
		tn.Expect(s.Create(tn.t.Context(), mark)).To(Succeed())
		<-done
		watcher.Stop()
		tn.Expect(s.Delete(tn.t.Context(), mark)).To(Succeed())
		return deleted
	}
}

// configMapsOn are those of the tenant's namespace, but for the one of each namespace.
func (tn *tenant) configMapsOn(s *server) map[string]corev1.ConfigMap {
	tn.t.Helper()
	list, err := s.clientset.CoreV1().ConfigMaps(tn.namespace).List(tn.t.Context(), metav1.ListOptions{})
	tn.Expect(err).NotTo(HaveOccurred())
	found := map[string]corev1.ConfigMap{}
	for _, item := range list.Items {
		if item.Name != "kube-root-ca.crt" {
			found[item.Name] = item
		}
	}
	return found
}

func uidsOf(objects map[string]corev1.ConfigMap) map[string]types.UID {
	uids := map[string]types.UID{}
	for name, object := range objects {
		uids[name] = object.UID
	}
	return uids
}

// TestObjectsChangeAddons switches between stacks that have the same objects in other
// add-ons: there and back, nothing that both have is deleted.
func TestObjectsChangeAddons(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		from, to map[string][]string // the ConfigMaps of each add-on
	}{
		"many to one": {
			from: map[string][]string{"a-net": {"one", "two"}, "b-metrics": {"three", "old"}},
			to:   map[string][]string{"cluster-addon": {"one", "two", "three", "new"}},
		},
		"renamed": {
			from: map[string][]string{"a-net": {"one", "two"}, "b-metrics": {"three", "old"}},
			to:   map[string][]string{"z-net": {"one", "two", "new"}, "b-metrics": {"three"}},
		},
		"others": {
			from: map[string][]string{"a-net": {"one"}, "b-metrics": {"two"}, "c-dns": {"three", "old"}},
			to:   map[string][]string{"d-net": {"two", "three"}, "e-metrics": {"one", "new"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tn := newTenant(t)
			s := workloadServer(t, 0)
			names := map[string][]string{}
			for class, addons := range map[string]map[string][]string{"from": tc.from, "to": tc.to} {
				var list []addonsv1.Addon
				names[class] = slices.Sorted(maps.Keys(addons))
				for i, addon := range names[class] {
					a := tn.addon(addon, tn.writeChart(class+"-"+addon, "1.0.0", having(addons[addon]...)))
					if i > 0 {
						a.DependsOn = names[class][i-1 : i]
					}
					list = append(list, a)
				}
				tn.create(tn.stackForClass(class, class, list...))
			}
			tn.makeCluster("prod", s, nil, ofClass("from"))
			tn.startManager()
			tn.awaitCluster("prod", "it is of the first class", ready(names["from"]...))
			for _, step := range []struct{ class, gone, came string }{{"to", "old", "new"}, {"from", "new", "old"}} {
				before := uidsOf(tn.configMapsOn(s))
				deletions := tn.watchDeletions(s)
				tn.switchClass("prod", step.class)
				tn.awaitCluster("prod", "it is of class "+step.class, assignedTo(step.class, ""), ready(names[step.class]...))
				tn.settle()
				tn.Expect(deletions()).To(Equal([]string{step.gone}), "to class %s: what both have is never deleted", step.class)
				after := tn.configMapsOn(s)
				uids := uidsOf(after)
				delete(before, step.gone)
				tn.Expect(uids).To(HaveKey(step.came))
				delete(uids, step.came)
				if name != "renamed" {
					tn.Expect(uids).To(Equal(before), "no hook of an add-on whose objects live on is run")
				}
				for addon, objects := range map[string]map[string][]string{"from": tc.from, "to": tc.to}[step.class] {
					for _, object := range objects {
						tn.Expect(after[object].Labels).To(HaveKeyWithValue(addonsv1.AddonLabel, addon))
						tn.Expect(after[object].Data).To(HaveKeyWithValue("text", step.class+"-"+addon))
						var managers []string
						for _, m := range after[object].ManagedFields {
							managers = append(managers, m.Manager)
						}
						tn.Expect(managers).To(Equal([]string{fmt.Sprintf("chandler/%s/%s", tn.namespace, addon)}), "nothing of the previous one is left")
					}
				}
			}
			before := tn.configMapsOn(s)
			tn.switchClass("prod", "none")
			tn.awaitCluster("prod", "nothing is wanted", ready())
			tn.Expect(before).NotTo(BeEmpty())
			for object := range tn.configMapsOn(s) {
				tn.Expect(object).To(HavePrefix("farewell-"), "all is gone, and the hooks of what goes were run")
			}
		})
	}
}

// TestBackHalfWay switches to a stack that can't be installed yet, and back: neither
// deletes what the other one has.
func TestBackHalfWay(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	waits := tn.addon("second", tn.writeChart("second", "1.0.0", having("two")), after("first"), valuesFromSecrets("missing"))
	for class, addons := range map[string][]addonsv1.Addon{
		"single": {tn.addon("all", tn.writeChart("all", "1.0.0", having("one", "two", "old")))},
		"multi":  {tn.addon("first", tn.writeChart("first", "1.0.0", having("one"))), waits},
	} {
		tn.create(tn.stackForClass(class, class, addons...))
	}
	tn.makeCluster("prod", s, nil, ofClass("single"))
	tn.startManager()
	tn.awaitCluster("prod", "it is of class single", ready("all"))
	before := uidsOf(tn.configMapsOn(s))
	deletions := tn.watchDeletions(s)

	tn.switchClass("prod", "multi")
	tn.awaitCluster("prod", "the second add-on can't come", phase("first", addonsv1.AddonReady, "", ""),
		phase("second", addonsv1.AddonPending, "ValuesNotFound", "missing"),
		phase("all", addonsv1.AddonRemoving, "WaitingForSuccessor", "add-on second"),
		condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "", ""))
	tn.stopManager()
	tn.startManager()
	tn.awaitReconcile("clusteraddon", 0)
	tn.settle()
	tn.Expect(uidsOf(tn.configMapsOn(s))).To(Equal(before), "what the previous add-on has stays meanwhile, also after a restart")
	tn.Expect(tn.configMapsOn(s)["one"].Labels).To(HaveKeyWithValue(addonsv1.AddonLabel, "first"))

	tn.switchClass("prod", "single")
	tn.awaitCluster("prod", "it is back", assignedTo("single", ""), ready("all"))
	tn.settle()
	tn.Expect(uidsOf(tn.configMapsOn(s))).To(Equal(before), "and takes back what is its own")
	tn.Expect(tn.configMapsOn(s)["one"].Labels).To(HaveKeyWithValue(addonsv1.AddonLabel, "all"))
	tn.Expect(tn.configMapsOn(s)["one"].Data).To(HaveKeyWithValue("text", "all"))

	tn.switchClass("prod", "multi")
	tn.awaitCluster("prod", "again", phase("all", addonsv1.AddonRemoving, "WaitingForSuccessor", "add-on second"))
	tn.create(tn.secret("missing", map[string]string{"values.yaml": "{}"}))
	tn.awaitCluster("prod", "the second add-on comes", ready("first", "second"))
	tn.settle()
	tn.Expect(deletions()).To(Equal([]string{"old"}))
	delete(before, "old")
	tn.Expect(uidsOf(tn.configMapsOn(s))).To(Equal(before))
}

// TestOthersKeepTheirs lets an add-on want what an add-on of another stack has, that stays.
func TestOthersKeepTheirs(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 1)
	tn.makeCluster("prod", s, nil)
	tn.makeStack("owner", nil, tn.addon("owner", tn.writeChart("owner", "1.0.0", having("one"))))
	tn.startManager()
	tn.awaitCluster("prod", "the owner is there", ready("owner"))
	before := uidsOf(tn.configMapsOn(s))
	deletions := tn.watchDeletions(s)
	tn.makeStack("rival", nil, tn.addon("rival", tn.writeChart("rival", "1.0.0", having("one", "two"))))
	tn.awaitCluster("prod", "the owner keeps it", phase("owner", addonsv1.AddonReady, "", ""), phase("rival", addonsv1.AddonFailed, "OwnedByOther", "/owner"))
	tn.remove(tn.newStack("owner", nil))
	tn.awaitCluster("prod", "the owner is gone", ready("rival"))
	tn.Expect(deletions()).To(BeEmpty())
	tn.Expect(tn.configMapsOn(s)["one"].UID).To(Equal(before["one"]))
	tn.Expect(s.Get(t.Context(), client.ObjectKey{Namespace: tn.namespace, Name: "farewell-owner"}, &corev1.ConfigMap{})).NotTo(Succeed(),
		"its hook isn't run: what it would prepare for isn't deleted")
}

// TestObjectsMove moves an object from one add-on of a stack to another one; both stay.
func TestObjectsMove(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 0)
	forms := [2][2]string{
		{tn.writeChart("first", "1.0.0", having("one", "two")), tn.writeChart("second", "1.0.0", having("three"))},
		{tn.writeChart("first", "2.0.0", having("one")), tn.writeChart("second", "2.0.0", having("two", "three"))},
	}
	tn.makeStack("platform", nil, tn.addon("first", forms[0][0]), tn.addon("second", forms[0][1], after("first")))
	tn.awaitCluster("prod", "it is installed", ready("first", "second"))
	before := uidsOf(tn.configMapsOn(s))
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].Chart.Path, spec.Addons[1].Chart.Path = forms[1][0], forms[1][1]
	})
	tn.awaitCluster("prod", "it is upgraded", ready("first", "second"), installedAs("first", 2, ""), installedAs("second", 2, ""))
	now := tn.configMapsOn(s)
	tn.Expect(now["two"].Labels).To(HaveKeyWithValue(addonsv1.AddonLabel, "second"))
	tn.Expect(uidsOf(now)).To(HaveKeyWithValue("one", before["one"]))
	tn.Expect(uidsOf(now)).To(HaveKeyWithValue("three", before["three"]))
}

// TestLeavingWaitsForNobodyElse has add-ons that leave while others, which have nothing
// of theirs, aren't ready; and one whose successor can't be had while it is there.
func TestLeavingWaitsForNobodyElse(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 0)
	service := func(name string) chart {
		return chart{"templates/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: " + name + "}\n" +
			"spec: {type: NodePort, ports: [{port: 80, nodePort: 31999}], selector: {app: x}}\n"}
	}
	later := tn.addon("later", tn.writeChart("later", "1.0.0", service("later")))
	tn.makeStack("team-a", nil, tn.addon("stuck", tn.writeChart("stuck", "1.0.0", having("of-a"))))
	tn.makeStack("team-b", nil, tn.addon("previous", tn.writeChart("previous", "1.0.0", service("previous"))))
	tn.makeStack("team-c", nil, tn.addon("other", tn.writeChart("other", "1.0.0", having("of-c"))))
	tn.awaitCluster("prod", "all are installed", ready("stuck", "previous", "other"))
	tn.changeStack("team-a", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].ValuesFrom = []addonsv1.ValuesReference{{Kind: "ConfigMap", Name: "missing"}}
	})
	tn.awaitCluster("prod", "it can't be upgraded", condition(addonsv1.ReadyCondition, metav1.ConditionFalse, "", ""))

	tn.remove(&addonsv1.AddonStack{ObjectMeta: tn.named("team-c")})
	tn.changeStack("team-b", func(spec *addonsv1.AddonStackSpec) { spec.Addons[0] = later })
	tn.awaitCluster("prod", "the port is free", installedAs("later", 1, "1.0.0"))
	tn.Eventually(func() map[string]corev1.ConfigMap { return tn.configMapsOn(s) }, time.Minute).ShouldNot(HaveKey("of-c"), "its stack is gone")
	tn.Expect(tn.configMapsOn(s)).To(HaveKey("of-a"))
}

// TestSuccessorWithARefusedCRD renames an add-on, and the new one brings a CRD that the API server refuses. Nobody has
// tried the objects that it is to take over, so they stay with the previous one.
func TestSuccessorWithARefusedCRD(t *testing.T) {
	t.Parallel()
	tn, s := newProd(t, 1)
	one := tn.writeChart("one", "1.0.0", having("shared"))
	bad := having("shared")
	bad["crds/bad.yaml"] = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: wrong.example.com}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {plural: things, kind: Thing}, versions: []}\n"
	tn.install(tn.addon("one", one))
	before, deletions := tn.configMapsOn(s)["shared"].UID, tn.watchDeletions(s)
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0] = tn.addon("two", tn.writeChart("two", "1.0.0", bad))
	})
	tn.awaitCluster("prod", "its CRD is refused", phase("two", addonsv1.AddonFailed, object.ReasonObjectRejected, ""),
		phase("one", addonsv1.AddonRemoving, reasons.WaitingForSuccessor, ""))
	tn.settle()
	tn.Expect(deletions()).NotTo(ContainElement("shared"))

	tn.changeAddon("platform", "two", func(a *addonsv1.Addon) { a.Chart.Path = tn.writeChart("two", "1.0.1", having("shared")) })
	tn.awaitReady("platform", "the chart is corrected")
	tn.Expect(tn.configMapsOn(s)["shared"].UID).To(Equal(before))
	tn.expectRemoved(t, s, "one")
}
