// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/cluster-api/util/conditions"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// allSources are the flags of an instance that has each kind of cluster.
func allSources(files string) []string {
	return []string{"--cluster-sources=clusters,secrets,profiles,files,self", "--kubeconfig-files=" + files, "--kubeconfig-contexts=kind-*"}
}

// kindsOfClusters are all kinds that an AddonStack can name.
var kindsOfClusters = []string{addonsv1.KindCluster, addonsv1.KindSecret, addonsv1.KindClusterProfile, addonsv1.KindKubeconfigContext, addonsv1.KindManagementCluster}

// TestClusterKinds delivers to clusters of each kind, through an upgrade, a restart and the end of each.
func TestClusterKinds(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	tn.administersHub()
	files := t.TempDir()
	chart := tn.writeChart("settings", "1.0.0", configMapChart)
	stack := tn.newStack("everywhere", nil, tn.addon("settings", chart, withTemplate(`text: {{ .Member.kind }} {{ .Member.namespace }}/{{ .Member.name }} {{ index .Member.labels "stage" | default "none" }}`)))
	stack.Spec.ClusterKinds = kindsOfClusters
	tn.create(stack)
	tn.makeStack("clusters", nil, tn.addon("for-clusters", chart))

	secret := tn.memberSecret("one", tn.userOn(workloadServer(t, 0), "one").Kubeconfig)
	profile := tn.memberProfile("two", workloadServer(t, 1))
	tn.writeContext(files, "kind-three", workloadServer(t, 2))
	tn.writeContext(files, "production", workloadServer(t, 0))
	tn.startManager(allSources(files)...)

	ns := tn.namespace
	members := map[string]struct {
		server *server
		text   string
	}{
		"one.secret":                   {workloadServer(t, 0), "Secret " + ns + "/one prod"},
		"two.clusterprofile":           {workloadServer(t, 1), "ClusterProfile " + ns + "/two prod"},
		"kind-three.kubeconfigcontext": {workloadServer(t, 2), "KubeconfigContext " + ns + "/kind-three none"},
		"local.managementcluster":      {world.hub, "ManagementCluster " + ns + "/local none"},
	}
	uids := map[string]string{}
	for name, m := range members {
		ca := tn.awaitCluster(name, "its add-on is delivered", ready("settings"))
		uids[name] = string(ca.UID)
		tn.awaitText(m.server, "settings", m.text)
		tn.Expect(ca.Spec.Stacks).To(HaveLen(1), "a stack for Clusters selects nothing else")
	}
	tn.Expect(tn.clusterAddonExists("production.kubeconfigcontext")).To(BeFalse(), "a context that nothing matches")
	tn.Expect(tn.awaitCluster("one.secret", "")).To(HaveField("OwnerReferences", ContainElement(And(HaveField("Kind", "Secret"), HaveField("UID", secret.UID)))))
	tn.Expect(tn.awaitCluster("two.clusterprofile", "")).To(HaveField("OwnerReferences", ContainElement(And(HaveField("Kind", "ClusterProfile"), HaveField("UID", profile.UID)))))
	since := conditions.Get(tn.awaitReady("everywhere", "it is ready on all of them"), addonsv1.ReadyCondition).LastTransitionTime

	// A restart: everything is as it was, at each moment.
	tn.stopManager()
	notReady := tn.watchReady()
	m := tn.startManager(allSources(files)...)
	poll(t, patience, "all are connected again", func() error {
		connected, err := m.Sum("chandler_fleet_clusters", `phase="Connected"`)
		if err == nil && int(connected) < len(members) {
			err = fmt.Errorf("%.0f are", connected)
		}
		return err
	})
	tn.settle()
	tn.Expect(notReady()).To(BeEmpty(), "a restart takes Ready from no cluster")
	tn.Expect(conditions.Get(tn.awaitReady("everywhere", ""), addonsv1.ReadyCondition).LastTransitionTime).To(Equal(since), "nor from the stack")
	tn.changeStack("everywhere", func(s *addonsv1.AddonStackSpec) { s.Addons[0].ValuesTemplate = "text: second {{ .Member.name }}" })
	for name, m := range members {
		ca := tn.awaitCluster(name, "the upgrade is delivered", ready("settings"), installedAs("settings", 2, ""))
		tn.Expect(string(ca.UID)).To(Equal(uids[name]), "%s is the same ClusterAddon as before the restart", name)
		tn.awaitText(m.server, "settings", "second "+map[string]string{
			"one.secret": "one", "two.clusterprofile": "two", "kind-three.kubeconfigcontext": "kind-three", "local.managementcluster": "local",
		}[name])
	}

	// Labels select, also when they change.
	tn.changeStack("everywhere", func(s *addonsv1.AddonStackSpec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "stage", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"retired"}}}}
	})
	change(tn, secret, func(s *corev1.Secret) { s.Labels["stage"] = "retired" })
	tn.expectRemoved(t, workloadServer(t, 0), "settings")

	// What goes is disconnected, and keeps its add-ons.
	must.Succeed(t, os.Remove(filepath.Join(files, "kind-three")))
	poll(t, patience, "its ClusterAddon goes with the context", func() error {
		if tn.clusterAddonExists("kind-three.kubeconfigcontext") {
			return errors.New("it is still there")
		}
		return nil
	})
	must.Succeed(t, world.hub.Delete(t.Context(), profile))
	tn.awaitCluster("two.clusterprofile", "its profile is gone", condition(addonsv1.ControlPlaneInitializedCondition, metav1.ConditionFalse, addonsv1.ClusterNotFoundReason, "ClusterProfile two"))
	change(tn, secret, func(s *corev1.Secret) { delete(s.Labels, "sigs.k8s.io/multicluster-runtime-kubeconfig") })
	tn.awaitCluster("one.secret", "it is no cluster any more", condition(addonsv1.ControlPlaneInitializedCondition, metav1.ConditionFalse, addonsv1.ClusterNotFoundReason, "Secret one"))
	tn.settle()
	for _, name := range []string{"one.secret", "two.clusterprofile"} {
		tn.Expect(tn.clusterAddonExists(name)).To(BeTrue(), "the owner alone takes %s along", name)
	}
	for _, number := range []int{1, 2} {
		if r := workloadServer(t, number).release(t, tn.namespace, "settings"); r.status != "deployed" {
			t.Errorf("server %d: the release is %s", number, r.status)
		}
	}
}

// TestClusterKindsThatFail says of each what is wrong with it, and leaves the others alone.
func TestClusterKindsThatFail(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	chart := tn.writeChart("settings", "1.0.0", configMapChart)
	s := workloadServer(t, 0)
	stack := tn.newStack("everywhere", nil, tn.addon("settings", chart, withTemplate(`text: {{ if eq .Member.name "cluster" }}{{ .Cluster.metadata.name }}{{ end }}`)))
	stack.Spec.ClusterKinds = []string{addonsv1.KindCluster, addonsv1.KindSecret}
	tn.create(stack)
	tn.makeCluster("cluster", workloadServer(t, 1), nil)
	tn.memberSecret("one", tn.userOn(s, "one").Kubeconfig)
	tn.memberSecret("again", tn.userOn(workloadServer(t, 1), "again").Kubeconfig)
	tn.startManager("--cluster-sources=clusters,secrets")

	tn.awaitCluster("cluster", "a Cluster has .Cluster", ready("settings"))
	tn.awaitCluster("one.secret", "a Secret has none", phase("settings", addonsv1.AddonFailed, "ValuesInvalid", ".Member"))
	tn.awaitCluster("again.secret", "the Cluster comes first", condition(addonsv1.ClusterReachableCondition, metav1.ConditionFalse, fleet.ReasonDuplicateCluster, "cluster-kubeconfig"))

	// The name of a Cluster's ClusterAddon is the Cluster's.
	tn.makeCluster("two.secret", workloadServer(t, 2), nil)
	tn.awaitCluster("two.secret", "it is the Cluster's", ready("settings"))
	tn.memberSecret("two", tn.userOn(s, "two").Kubeconfig)
	ca := tn.awaitCluster("two.secret", "it stays the Cluster's", ready("settings"))
	if ca.Spec.ClusterRef != nil {
		t.Errorf("it is of %v now", ca.Spec.ClusterRef)
	}
}

// administersHub lets the tenant's managers do everything on the management cluster.
func (tn *tenant) administersHub() {
	tn.t.Helper()
	world.hub.bind(tn.t, "", "admin-"+tn.namespace, user(tn.user), "ClusterRole", "cluster-admin")
}

// memberSecret makes a Secret that is a cluster.
func (tn *tenant) memberSecret(name string, kubeconfig []byte) *corev1.Secret {
	tn.t.Helper()
	s := &corev1.Secret{ObjectMeta: tn.named(name), Data: map[string][]byte{"kubeconfig": kubeconfig}}
	s.Labels = map[string]string{"sigs.k8s.io/multicluster-runtime-kubeconfig": "true", "stage": "prod"}
	tn.create(s)
	return s
}

// memberProfile makes a ClusterProfile whose access provider reads a kubeconfig.
func (tn *tenant) memberProfile(name string, s *server) *inventoryv1alpha1.ClusterProfile {
	tn.t.Helper()
	credentials := &corev1.Secret{ObjectMeta: tn.named(name + "-credentials"), Data: map[string][]byte{"config": tn.userOn(s, name).Kubeconfig}}
	tn.create(credentials)
	p := &inventoryv1alpha1.ClusterProfile{Spec: inventoryv1alpha1.ClusterProfileSpec{ClusterManager: inventoryv1alpha1.ClusterManager{Name: "e2e"}}}
	p.Namespace, p.Name, p.Labels = tn.namespace, name, map[string]string{"stage": "prod"}
	tn.create(p)
	p.Status.Conditions = []metav1.Condition{}
	p.Status.AccessProviders = []inventoryv1alpha1.AccessProvider{{Name: "kubeconfig-secretreader", Cluster: clientcmdv1.Cluster{
		Server: s.Config().Host, CertificateAuthorityData: s.Config().CAData,
		Extensions: []clientcmdv1.NamedExtension{{Name: "client.authentication.k8s.io/exec", Extension: runtime.RawExtension{Raw: []byte(fmt.Sprintf(`{"name":%q,"key":"config"}`, credentials.Name))}}},
	}}}
	must.Succeed(tn.t, world.hub.Status().Update(tn.t.Context(), p))
	return p
}

// writeContext writes a kubeconfig file with one context.
func (tn *tenant) writeContext(dir, context string, s *server) {
	tn.t.Helper()
	config, err := clientcmd.Load(tn.userOn(s, context).Kubeconfig)
	must.Succeed(tn.t, err)
	current := config.Contexts[config.CurrentContext]
	config.Contexts, config.CurrentContext = map[string]*clientcmdapi.Context{context: current}, context
	data, err := clientcmd.Write(*config)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, context), data, 0o600)
	}
	must.Succeed(tn.t, err)
}

// clusterAddonExists reports whether there is a ClusterAddon.
func (tn *tenant) clusterAddonExists(name string) bool {
	tn.t.Helper()
	err := world.hub.Get(tn.t.Context(), tn.key(name), &addonsv1.ClusterAddon{})
	if client.IgnoreNotFound(err) != nil {
		tn.t.Fatal(err)
	}
	return err == nil
}

// awaitText waits for the text of an add-on with configMapChart.
func (tn *tenant) awaitText(s *server, addon, text string) {
	tn.t.Helper()
	await(tn.t, s, tn.configMapOf(addon), patience, "the text of "+addon, func(c *corev1.ConfigMap) error {
		if c.Data["text"] != text {
			return fmt.Errorf("it is %q, not %q", c.Data["text"], text)
		}
		return nil
	})
}
