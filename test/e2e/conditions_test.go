// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
)

// TestConditionsOnObjects has add-ons that wait for objects of their cluster. One that
// can't be read, as it is written, holds up its own add-on and no other.
func TestConditionsOnObjects(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 1)
	s.createNamespace(t, tn.namespace)
	gate := &corev1.ConfigMap{ObjectMeta: tn.named("gate"), Data: map[string]string{"open": "before"}}
	tn.Expect(s.Create(t.Context(), gate)).To(Succeed())
	open := func(value string) {
		t.Helper()
		changeOn(t, s, gate, func(c *corev1.ConfigMap) { c.Data = map[string]string{"open": value} })
	}
	slashed := tn.writeChart("slashed", "1.0.0", chart{"templates/a.yaml": configMap("a/b", "x")})
	on := func(apiVersion, kind, namespace, expression string) []addonsv1.ObjectsCondition {
		return []addonsv1.ObjectsCondition{{Expression: expression,
			Objects: []addonsv1.ConditionObject{{Key: "gate", APIVersion: apiVersion, Kind: kind, Name: "gate", Namespace: namespace}}}}
	}
	onGate := func(expression string) []addonsv1.ObjectsCondition {
		return on("v1", "ConfigMap", tn.namespace, expression)
	}
	setText := func(stack, addon, text string) {
		t.Helper()
		tn.changeAddon(stack, addon, func(a *addonsv1.Addon) { a.Values = valuesOf(map[string]any{"text": text}) })
	}

	tn.makeStack("previous", nil, tn.small("previous"))
	tn.awaitCluster("prod", "nothing holds it", ready("previous"))
	tn.makeStack("aaa", nil,
		tn.small("pre", func(a *addonsv1.Addon) { a.Preconditions = on("v1", "ConfigMap", "", "true") }),
		tn.small("post", func(a *addonsv1.Addon) { a.Postconditions = on("v1", "ConfigMap", "", "true") }),
		tn.small("kind", func(a *addonsv1.Addon) { a.Preconditions = on("example.org/v1", "Gate", tn.namespace, "true") }),
		tn.addon("slashed", slashed),
	)
	missing := "conditions[0]: objects[gate].namespace: a ConfigMap is in a namespace; say in which one"
	broken := []clusterCheck{
		phase("pre", addonsv1.AddonPending, "WaitingForPrecondition", "addons[pre].pre"+missing),
		phase("post", addonsv1.AddonInstalling, "WaitingForPostcondition", "addons[post].post"+missing),
		phase("kind", addonsv1.AddonPending, "WaitingForPrecondition", "addons[kind].preconditions[0]: the cluster doesn't know the kind of Gate "+tn.namespace+"/gate, example.org/v1"),
		phase("slashed", addonsv1.AddonFailed, "ObjectRejected", `ConfigMap `+tn.namespace+`/a/b: `),
	}
	tn.awaitCluster("prod", "each one is at fault by itself", broken...)

	tn.makeStack("zzz", nil, tn.small("later", func(a *addonsv1.Addon) {
		a.Preconditions = []addonsv1.ObjectsCondition{{Expression: `ns.status.phase == "Active"`,
			Objects: []addonsv1.ConditionObject{{Key: "ns", APIVersion: "v1", Kind: "Namespace", Name: tn.namespace}}}}
	}))
	tn.remove(tn.newStack("previous", nil))
	tn.awaitCluster("prod", "the other stacks go on", append(broken, installedAs("later", 1, "1.0.0"), func(ca *addonsv1.ClusterAddon) error {
		if statusOf(ca, "previous") != nil {
			return errors.New("previous is still there")
		}
		return nil
	})...)

	tn.changeStack("aaa", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons = spec.Addons[:2]
		spec.Addons[0].Preconditions, spec.Addons[1].Postconditions = onGate("true"), onGate("true")
	})
	tn.awaitCluster("prod", "the namespaces are there", ready("pre", "post", "later"))

	tn.run("other inputs before a revision is ready", func(t *testing.T, tn *tenant) {
		text := func() string {
			object, err := s.clientset.CoreV1().ConfigMaps(tn.namespace).Get(t.Context(), "held", metav1.GetOptions{})
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			return object.Data["text"]
		}
		tn.makeStack("held", nil, tn.small("held", func(a *addonsv1.Addon) {
			a.Preconditions, a.Postconditions = onGate(`gate.data.open != "no"`), onGate(`gate.data.open == "after"`)
		}))
		tn.awaitCluster("prod", "it may be installed, and isn't ready", phase("held", addonsv1.AddonInstalling, "WaitingForPostcondition", "isn't true"))
		open("no")
		setText("held", "held", "other")
		tn.awaitCluster("prod", "what it is now may not be installed", phase("held", addonsv1.AddonPending, "WaitingForPrecondition", "isn't true"))
		NewWithT(t).Expect(text()).To(Equal("default"))
		open("after")
		tn.awaitCluster("prod", "it may be", ready("pre", "post", "later", "held"), installedAs("held", 2, "1.0.0"))
		NewWithT(t).Expect(text()).To(Equal("other"))
	})
}

// TestPostconditionOfAnInstalledAddon adds a condition to an add-on that is ready. It isn't
// ready until that holds, and what depends on it waits; no revision is made of it. Once it
// has held it isn't looked at again.
func TestPostconditionOfAnInstalledAddon(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn, s := newProd(t, 0)
	tn.install(tn.small("settings"))
	tn.changeStack("platform", func(spec *addonsv1.AddonStackSpec) {
		spec.Addons[0].Postconditions = []addonsv1.ObjectsCondition{{
			Expression: "gate.data.open == 'yes'",
			Objects:    []addonsv1.ConditionObject{{Key: "gate", APIVersion: "v1", Kind: "ConfigMap", Namespace: tn.namespace, Name: "gate"}},
		}}
		spec.Addons = append(spec.Addons, tn.small("dependent", func(a *addonsv1.Addon) { a.DependsOn = []string{"settings"} }))
	})
	waits := []clusterCheck{
		phase("settings", addonsv1.AddonUpgrading, "WaitingForPostcondition", "gate"),
		phase("dependent", addonsv1.AddonPending, "WaitingForDependency", "settings"),
	}
	tn.awaitCluster("prod", "the condition doesn't hold", waits...)
	tn.restart()
	tn.settle()
	tn.awaitCluster("prod", "a restart changes nothing", waits...)

	gate := &corev1.ConfigMap{ObjectMeta: tn.named("gate"), Data: map[string]string{"open": "yes"}}
	tn.Expect(s.Create(t.Context(), gate)).To(Succeed())
	tn.awaitReady("platform", "it holds")
	tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(releaseState{1, "deployed"}), "nothing of the add-on has changed")

	tn.settle()
	start := s.mark(t)
	tn.restart()
	tn.settle()
	requests := start.requests(t, tn.clusterUser("prod"))
	tn.Expect(reads(requests, "configmaps", "", "get")).To(BeEmpty(), "it held, and isn't looked at again")
	tn.Expect(writes(requests)).To(BeEmpty())
}
