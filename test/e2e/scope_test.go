// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/wait"
)

// TestNamespaceScope has a manager with --namespace, whose user has no rights
// anywhere else, and a foreign namespace that wants add-ons, too.
func TestNamespaceScope(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	foreign := *tn
	foreign.namespace += "-foreign"
	world.hub.createNamespace(t, foreign.namespace)
	second := *tn
	second.namespace += "-second"
	world.hub.createNamespace(t, second.namespace)
	tn.allowIn(second.namespace)
	start := world.hub.mark(t)
	for _, owner := range []*tenant{tn, &foreign, &second} {
		owner.makeCluster("prod", s, nil)
		owner.makeStack("platform", nil, owner.small("settings"))
	}
	tn.launch("--namespace=" + tn.namespace + "," + second.namespace)
	tn.awaitReady("platform", "the namespace of the flag is managed")
	second.awaitReady("platform", "and so is the second one of the flag")
	tn.settle()

	err := world.hub.Get(t.Context(), foreign.key("prod"), foreign.clusterAddon("prod"))
	tn.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "no ClusterAddon is made in a namespace that the flag doesn't name: %v", err)
	stack := foreign.newStack("platform", nil)
	tn.Expect(world.hub.Get(t.Context(), foreign.key("platform"), stack)).To(Succeed())
	tn.Expect(stack.Status.Conditions).To(BeEmpty(), "a stack outside of the scope gets no status")
	tn.Expect(s.release(t, foreign.namespace, "settings")).To(BeZero(), "nothing is installed for it")
	outside := described(start.requests(t, tn.user), func(e auditEvent) bool {
		return !registers(e) && e.ObjectRef != nil && e.ObjectRef.Namespace != tn.namespace && e.ObjectRef.Namespace != second.namespace && e.ObjectRef.Resource != ""
	})
	tn.Expect(outside).To(BeEmpty(), "not one request goes to another namespace, or to all: RBAC of an instance is a Role in its namespaces")
}

// TestWatchFilter has a manager with --watch-filter for all namespaces, and
// objects with and without the label.
func TestWatchFilter(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	tn.allowEverywhere()
	s := workloadServer(t, 1)
	filter := "blue-" + utilrand.String(5)
	ours := labels("env=prod", clusterv1.WatchLabel+"="+filter)
	theirs := labels("env=prod", clusterv1.WatchLabel+"=green")
	start := world.hub.mark(t)
	tn.makeCluster("ours", s, ours)
	tn.makeCluster("theirs", s, theirs)
	tn.makeCluster("nobodys", s, labels("env=prod"))
	stack := tn.newStack("platform", labels("env=prod"), tn.small("settings"))
	stack.Labels = ours
	tn.create(stack)
	other := tn.newStack("other", labels("env=prod"), tn.small("other"))
	other.Labels = theirs
	tn.create(other)
	tn.launch("--watch-filter=" + filter)
	tn.awaitReady("platform", "what has the label is managed")
	tn.settle()

	ca := tn.awaitCluster("ours", "the add-on is there", ready("settings"))
	tn.Expect(ca.Labels).To(HaveKeyWithValue(clusterv1.WatchLabel, filter), "the ClusterAddon carries the label, or its own instance wouldn't see it")
	revisions := &appsv1.ControllerRevisionList{}
	tn.Expect(world.hub.List(t.Context(), revisions, client.InNamespace(tn.namespace))).To(Succeed())
	tn.Expect(revisions.Items).To(HaveEach(HaveField("Labels", HaveKeyWithValue(clusterv1.WatchLabel, filter))), "so do the revisions")
	for _, name := range []string{"theirs", "nobodys"} {
		err := world.hub.Get(t.Context(), tn.key(name), tn.clusterAddon(name))
		tn.Expect(apierrors.IsNotFound(err)).To(BeTrue(), "Cluster %s is none of this instance's: %v", name, err)
	}
	tn.Expect(world.hub.Get(t.Context(), tn.key("other"), other)).To(Succeed())
	tn.Expect(other.Status.Conditions).To(BeEmpty(), "a stack with another label gets no status")
	tn.Expect(s.release(t, tn.namespace, "other")).To(BeZero(), "nor is it installed")
	inAllNamespaces := func(e auditEvent) bool {
		return isListOrWatchOf("clusters", "addonstacks", "clusteraddons", "controllerrevisions")(e) && e.ObjectRef.Namespace == ""
	}
	for _, request := range described(start.requests(t, tn.user), inAllNamespaces) {
		tn.Expect(request).To(ContainSubstring("labelSelector="), "the API server does the filtering: what is out of scope never reaches the process")
		tn.Expect(request).To(ContainSubstring(filter))
	}

	tn.run("an object that leaves the scope is let go", func(t *testing.T, tn *tenant) {
		before := s.release(t, tn.namespace, "settings")
		mark := s.mark(t)
		tn.relabel("ours", "env=prod", clusterv1.WatchLabel+"=green")
		change(tn, tn.clusterAddon("ours"), func(ca *addonsv1.ClusterAddon) { ca.Labels[clusterv1.WatchLabel] = "green" })
		tn.settle()
		tn.Expect(s.release(t, tn.namespace, "settings")).To(Equal(before), "a cluster that another instance takes over keeps its add-ons")
		tn.Expect(writes(mark.requests(t, tn.clusterUser("ours")))).To(BeEmpty(), "nothing is written to it by the old instance")
	})
}

func isListOrWatchOf(resources ...string) func(auditEvent) bool {
	return func(e auditEvent) bool {
		return (e.Verb == "list" || e.Verb == "watch") && e.ObjectRef != nil && strings.Contains(strings.Join(resources, " ")+" ", e.ObjectRef.Resource+" ")
	}
}

// A Cluster can name any object as its infrastructure. One of a kind that isn't namespaced,
// as an identity of a cloud, may be another team's: it isn't read, whatever the manager may.
func TestObjectsOutsideOfNamespacesAreNotRead(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	const kind = "TestIdentity"
	tn.create(definitionOf(infraGroup, "v1", kind, apiextensionsv1.ClusterScoped))
	identity := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"externalID": "sentinel-of-another-team"}}}
	identity.SetAPIVersion(infraGroup + "/v1")
	identity.SetKind(kind)
	identity.SetName("another-teams-" + tn.namespace)
	wait.Until(t, patience, "the API server is to serve the CRD", func() error { return world.hub.Create(t.Context(), identity.DeepCopy()) })

	tn.allowEverywhere()
	tn.startManager()
	tn.makeCluster("prod", workloadServer(t, 0), nil, func(c *clusterv1.Cluster) {
		c.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: infraGroup, Kind: kind, Name: identity.GetName()}
	})
	tn.makeStack("settings", nil, tn.small("settings", withTemplate(`text: "{{ .InfraCluster.spec.externalID }}"`)))
	tn.awaitCluster("prod", "the object is refused", phase("settings", addonsv1.AddonFailed, "ProviderObjectRefused", kind))
}
