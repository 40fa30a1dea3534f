// SPDX-License-Identifier: Apache-2.0

package topology_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/manager"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/topology"
)

// tenant is a namespace with an instance of Chandler, which answers Cluster API's hooks.
type tenant struct {
	*testing.T
	namespace string
	artifacts string
	address   string // of the hooks
	home      string
	flags     []string
	chandler  *manager.Process
}

// newTenant makes the namespace, and the classes "real" and localClass in it.
//
// An instance that is killed holds its scope for four heartbeats, so those that a test kills have short ones. The others
// have the usual ones: with several tests at once, this machine may stand still for seconds.
func newTenant(t *testing.T, namespace string, flags ...string) *tenant {
	t.Helper()
	tn := newUnaskedTenant(t, namespace, flags...)
	tn.register(tn.address, namespace)
	return tn
}

// newUnaskedTenant makes one that Cluster API doesn't ask.
func newUnaskedTenant(t *testing.T, namespace string, flags ...string) *tenant {
	t.Helper()
	g := NewWithT(t)
	tn := &tenant{T: t, namespace: namespace, artifacts: t.TempDir(), home: t.TempDir()}
	g.Expect(world.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	g.Expect(createClass(t.Context(), topology.Class{Namespace: namespace, Name: "real", KubernetesVersions: []string{world.older, world.newer}, RealVersions: true})).To(Succeed())
	g.Expect(createClass(t.Context(), topology.Class{Namespace: namespace, Name: localClass, KubernetesVersions: []string{v34, v35, v36}})).To(Succeed())
	tn.write("demo/Chart.yaml", "apiVersion: v2\nname: demo\nversion: 1.0.0\n")
	tn.write("demo/values.yaml", "text: first\n")
	tn.write("demo/templates/text.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}'}\ndata: {text: '{{ .Values.text }}'}\n")

	var serving []string
	tn.address, serving = servingFlags(t)
	tn.flags = append([]string{"--namespace=" + namespace, "--instance-namespace=" + namespace, "--artifact-root=" + tn.artifacts}, append(serving, flags...)...)
	tn.start()
	t.Cleanup(func() {
		if t.Failed() {
			tn.describe()
		}
	})
	return tn
}

// servingFlags returns flags that have a process answer hooks at an address, if its caller is the core manager.
func servingFlags(t *testing.T) (address string, flags []string) {
	t.Helper()
	g, dir := NewWithT(t), t.TempDir()
	port := func(address string) string {
		_, port, err := net.SplitHostPort(address)
		g.Expect(err).NotTo(HaveOccurred())
		return port
	}
	g.Expect(topology.WriteServerCertificate(world.Authority, dir)).To(Succeed())
	hooks, authority := manager.FreeAddress(t), filepath.Join(dir, "ca.crt")
	g.Expect(os.WriteFile(authority, world.Authority.Certificate, 0o600)).To(Succeed())
	return "https://" + hooks, []string{
		"--webhook-port=" + port(manager.FreeAddress(t)), "--webhook-cert-dir=" + dir, "--hook-port=" + port(hooks), "--hook-client-ca-file=" + authority,
	}
}

// write writes a file below the artifacts of the tenant's instance.
func (tn *tenant) write(name, text string) {
	tn.Helper()
	path := filepath.Join(tn.artifacts, name)
	must.Succeed(tn, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)))
}

// register has Cluster API ask a server about the Clusters of namespaces.
func (tn *tenant) register(server string, namespaces ...string) {
	tn.Helper()
	t, g := tn.T, NewWithT(tn.T)
	config := &runtimev1.ExtensionConfig{}
	config.Name = tn.namespace
	config.Spec.ClientConfig = runtimev1.ClientConfig{URL: server, CABundle: world.Authority.Certificate}
	config.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces},
	}}
	g.Expect(world.Create(t.Context(), config)).To(Succeed())
	t.Cleanup(func() {
		if err := world.Delete(context.WithoutCancel(t.Context()), config); err != nil { // before its server goes, as others need Cluster API
			t.Error(err)
		}
	})
	hooks := 5
	if world.oldest {
		hooks = 4
	}
	until(t, "the hooks are to be discovered", func() error {
		if err := world.Get(t.Context(), client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		if c := conditions.Get(config, runtimev1.ExtensionConfigDiscoveredCondition); c == nil || c.Status != metav1.ConditionTrue || len(config.Status.Handlers) != hooks {
			return fmt.Errorf("they aren't: %v, %+v", c, config.Status.Handlers)
		}
		return nil
	})
}

// start starts the instance.
func (tn *tenant) start() {
	tn.Helper()
	user, err := world.AddUser(tn.namespace+"-chandler", "system:masters")
	must.Succeed(tn, err)
	tn.chandler = manager.Start(tn.T, manager.Options{
		Name: tn.namespace, Binary: world.chandler, Kubeconfig: user.Kubeconfig, Args: tn.flags, Home: tn.home, LogDir: os.Getenv("CHANDLER_E2E_LOGS"),
	})
}

// at names a Cluster of the tenant.
func (tn *tenant) at(cluster string) string { return tn.namespace + "/" + cluster }

// addon is one whose changes are delivered at a point. It is ready once [tenant.ready] says so of its text.
func (tn *tenant) addon(name string, point addonsv1.UpgradePoint, text string) addonsv1.Addon {
	return addonsv1.Addon{
		Name: name, Namespace: tn.namespace, Chart: addonsv1.ChartSource{Path: "demo"},
		Values:    &apiextensionsv1.JSON{Raw: fmt.Appendf(nil, `{"text": %q}`, text)},
		Lifecycle: &addonsv1.AddonLifecycle{Upgrade: point},
		Readiness: []addonsv1.ReadinessCheck{{
			APIVersion: "v1", Kind: "ConfigMap", Expression: "self.metadata.annotations['ready'] == self.data.text",
		}},
	}
}

// stack returns an AddonStack for all Clusters of the tenant.
func (tn *tenant) stack(addons ...addonsv1.Addon) *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name, s.Spec.Addons = tn.namespace, "platform", addons
	s.Spec.ClusterSelector = &metav1.LabelSelector{}
	return s
}

// set has the stack be so.
func (tn *tenant) set(s *addonsv1.AddonStack) {
	tn.Helper()
	current := &addonsv1.AddonStack{}
	err := world.Get(tn.Context(), client.ObjectKeyFromObject(s), current)
	if client.IgnoreNotFound(err) != nil {
		tn.Fatal(err)
	}
	if err != nil {
		err = world.Create(tn.Context(), s)
	} else {
		before := current.DeepCopy()
		current.Spec = s.Spec
		err = world.Patch(tn.Context(), current, client.MergeFrom(before))
	}
	must.Succeed(tn, err)
}

// ready returns once an add-on has a text on a Cluster, which makes it ready.
func (tn *tenant) ready(cluster, addon, text string) {
	tn.Helper()
	workload := world.Provider.Workload(key(tn.at(cluster)))
	until(tn.T, fmt.Sprintf("%s is to be %q", addon, text), func() error {
		cm := &corev1.ConfigMap{}
		if err := workload.Get(tn.Context(), client.ObjectKey{Namespace: tn.namespace, Name: addon}, cm); err != nil {
			return err
		}
		if cm.Data["text"] != text {
			return fmt.Errorf("it is %q", cm.Data["text"])
		}
		before := cm.DeepCopy()
		cm.Annotations = map[string]string{"ready": text}
		return workload.Patch(tn.Context(), cm, client.MergeFrom(before))
	})
}

// expectText fails the test unless an add-on has the text now.
func (tn *tenant) expectText(cluster, addon, text string) {
	tn.Helper()
	cm := &corev1.ConfigMap{}
	if err := world.Provider.Workload(key(tn.at(cluster))).Get(tn.Context(), client.ObjectKey{Namespace: tn.namespace, Name: addon}, cm); err != nil || cm.Data["text"] != text {
		tn.Fatalf("%s is %q (%v), expected %q", addon, cm.Data["text"], err, text)
	}
}

// awaitFirst makes the first version of the network ready on a Cluster that comes up, and waits until Cluster API has nothing
// left to do.
func (tn *tenant) awaitFirst(cluster string) {
	tn.Helper()
	awaitCondition(tn.T, tn.at(cluster), clusterv1.ClusterControlPlaneInitializedCondition, true, "")
	tn.ready(cluster, "cni", "first")
	tn.await(cluster, "it is installed", isReady)
	awaitCondition(tn.T, tn.at(cluster), clusterv1.ClusterTopologyReconciledCondition, true, "")
}

// await returns once a ClusterAddon is so.
func (tn *tenant) await(cluster, reason string, check func(*addonsv1.ClusterAddon) error) {
	tn.Helper()
	until(tn.T, reason, func() error {
		ca := &addonsv1.ClusterAddon{}
		if err := world.Get(tn.Context(), key(tn.at(cluster)), ca); err != nil {
			return err
		}
		return check(ca)
	})
}

// isReady expects all add-ons to be ready.
func isReady(ca *addonsv1.ClusterAddon) error {
	if c := conditions.Get(ca, addonsv1.ReadyCondition); c == nil || c.Status != metav1.ConditionTrue || ca.Status.ObservedGeneration != ca.Generation {
		return fmt.Errorf("ready: %v", c)
	}
	return nil
}

// held expects a gate that isn't open, with a text in its message.
func held(point addonsv1.UpgradePoint, reason, text string) func(*addonsv1.ClusterAddon) error {
	return func(ca *addonsv1.ClusterAddon) error {
		if ca.Status.Upgrade == nil {
			return fmt.Errorf("no upgrade is seen: %+v", ca.Status)
		}
		for _, gate := range ca.Status.Upgrade.Gates {
			if gate.Point == point && gate.Reason == reason && !gate.State.IsOpen() && strings.Contains(gate.Message, text) &&
				conditions.GetReason(ca, addonsv1.UpgradeAllowedCondition) == reason {
				return nil
			}
		}
		return fmt.Errorf("the upgrade is %+v, %+v", ca.Status.Upgrade, conditions.Get(ca, addonsv1.UpgradeAllowedCondition))
	}
}

// waiting expects an add-on to have a reason.
func waiting(addon, reason string) func(*addonsv1.ClusterAddon) error {
	return func(ca *addonsv1.ClusterAddon) error {
		for _, s := range ca.Status.Addons {
			if s.Name == addon && s.Reason == reason {
				return nil
			}
		}
		return fmt.Errorf("the add-ons are %+v", ca.Status.Addons)
	}
}

// isPaused expects that nothing is done.
func isPaused(ca *addonsv1.ClusterAddon) error {
	if c := conditions.Get(ca, clusterv1.PausedCondition); c == nil || c.Status != metav1.ConditionTrue {
		return fmt.Errorf("paused is %+v", c)
	}
	return nil
}

// isDone expects no upgrade.
func isDone(ca *addonsv1.ClusterAddon) error {
	if ca.Status.Upgrade != nil || conditions.Has(ca, addonsv1.UpgradeAllowedCondition) {
		return fmt.Errorf("there is an upgrade: %+v", ca.Status.Upgrade)
	}
	return isReady(ca)
}

func (tn *tenant) describe() {
	all := &addonsv1.ClusterAddonList{}
	if err := world.List(context.WithoutCancel(tn.Context()), all, client.InNamespace(tn.namespace)); err != nil {
		return
	}
	for _, ca := range all.Items {
		tn.Logf("ClusterAddon %s: upgrade %+v\nadd-ons %+v\nconditions %+v", ca.Name, ca.Status.Upgrade, ca.Status.Addons, ca.Status.Conditions)
	}
}

// expectNone returns once there is nothing of an add-on.
func (tn *tenant) expectNone(cluster, addon string) {
	tn.Helper()
	workload := world.Provider.Workload(key(tn.at(cluster)))
	until(tn.T, addon+" isn't to be there", func() error {
		err := workload.Get(tn.Context(), client.ObjectKey{Namespace: tn.namespace, Name: addon}, &corev1.ConfigMap{})
		if err == nil {
			return errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}
