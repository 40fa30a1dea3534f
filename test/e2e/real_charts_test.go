// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"helm.sh/helm/v4/pkg/release/common"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/must"
)

// ciliumNamespace is where Cilium goes, as its documentation has it.
const ciliumNamespace = "kube-system"

// generatedByCilium are the Secrets that Cilium's chart makes up with each
// rendering.
var generatedByCilium = []string{"cilium-ca", "hubble-server-certs", "hubble-relay-client-certs"}

func TestRealCharts(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	cilium, upgraded := tn.realChart("cilium-1.19.5.tgz"), tn.realChart("cilium-1.19.6.tgz")
	metricsServer, ingress := tn.realChart("metrics-server-3.13.1.tgz"), tn.realChart("ingress-nginx-4.15.1.tgz")
	servers := map[string]*server{}
	for i := range workloadServers {
		name := fmt.Sprintf("prod-%d", i)
		servers[name] = workloadServer(t, i)
		tn.makeCluster(name, servers[name], labels("env=prod"))
	}
	tn.startManager()
	tn.install(
		tn.addon("cilium", cilium, inNamespace(ciliumNamespace), withTemplate("cluster: {name: '{{ .Cluster.metadata.name }}'}\nhubble: {relay: {enabled: true}}\n")),
		tn.addon("metrics-server", metricsServer, after("cilium")),
		tn.addon("ingress-nginx", ingress, after("cilium")),
	)
	for name := range servers {
		tn.awaitCluster(name, "each cluster's add-ons are to be ready",
			ready("cilium", "metrics-server", "ingress-nginx"), installedAs("cilium", 1, "1.19.5"))
	}

	t.Run("the values template is the cluster's own", func(t *testing.T) {
		g := NewWithT(t)
		for name, s := range servers {
			config, err := s.clientset.CoreV1().ConfigMaps(ciliumNamespace).Get(t.Context(), "cilium-config", metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Data).To(HaveKeyWithValue("cluster-name", name), "cluster.name comes from .Cluster.metadata.name")
		}
	})

	generated := map[string]map[string]map[string][]byte{}
	for name, s := range servers {
		generated[name] = s.secretsOf(t, generatedByCilium)
		tn.Expect(generated[name]).To(HaveKey("cilium-ca"), "Cilium's chart generates its CA")
	}
	keptCertificates := func(t *testing.T, when string) {
		t.Helper()
		for name, s := range servers {
			NewWithT(t).Expect(s.secretsOf(t, generatedByCilium)).To(Equal(generated[name]),
				"on %s, the certificates that the chart generated must stay the same after %s: a new CA cuts every agent off", name, when)
		}
	}

	tn.run("reconciling keeps generated certificates", func(t *testing.T, tn *tenant) {
		start := servers["prod-0"].mark(t)
		for i := range 20 {
			tn.reconcileAgain("prod-0", fmt.Sprint(i))
		}
		keptCertificates(t, "20 reconciles")
		NewWithT(t).Expect(writes(start.requests(t, tn.clusterUser("prod-0")))).To(BeEmpty(), "nothing is written when nothing changed")
	})

	tn.run("a restart keeps generated certificates", func(t *testing.T, tn *tenant) {
		start := servers["prod-0"].mark(t)
		tn.restart()
		tn.settle()
		keptCertificates(t, "a restart")
		NewWithT(t).Expect(writes(start.requests(t, tn.clusterUser("prod-0")))).To(BeEmpty(), "a restart writes nothing")
	})

	tn.run("a change of an unrelated value keeps generated certificates", func(t *testing.T, tn *tenant) {
		tn.changeAddon("platform", "cilium", withValues(map[string]any{"debug": map[string]any{"enabled": true}}))
		tn.awaitReady("platform", "a change of a value is to be rolled out")
		for name := range servers {
			tn.awaitCluster(name, "it is one new revision", installedAs("cilium", 2, "1.19.5"))
		}
		keptCertificates(t, "a change of debug.enabled")
	})

	tn.run("an upgrade changes only what differs", func(t *testing.T, tn *tenant) {
		s := servers["prod-0"]
		before := s.versionsOf(t, "cilium", ciliumNamespace)
		tn.changeAddon("platform", "cilium", func(a *addonsv1.Addon) { a.Chart.Path = upgraded })
		tn.awaitReady("platform", "Cilium is to be upgraded on all clusters")
		for name := range servers {
			tn.awaitCluster(name, "the version is that of the new chart", installedAs("cilium", 3, "1.19.6"))
		}
		keptCertificates(t, "an upgrade")
		history := s.history(t, ciliumNamespace, "cilium")
		s.expectOnlyChanged(t, before, "cilium", ciliumNamespace, history[len(history)-2].Manifest, history[len(history)-1].Manifest)
	})

	tn.run("what people change is set right", func(t *testing.T, tn *tenant) {
		servers["prod-0"].expectRepaired(t, "cilium", ciliumNamespace)
		servers["prod-0"].expectRepaired(t, "ingress-nginx", tn.namespace)
		keptCertificates(t, "a repair")
		tn.awaitCluster("prod-0", "nothing is installed again", ready("cilium", "metrics-server", "ingress-nginx"), installedAs("cilium", 3, "1.19.6"))
	})

	t.Run("Helm reads the records", func(t *testing.T) {
		g := NewWithT(t)
		for _, s := range servers {
			storage := s.helmStorage(ciliumNamespace)
			deployed, err := storage.ListDeployed()
			g.Expect(err).NotTo(HaveOccurred(), "as `helm list` does")
			g.Expect(deployed).To(ContainElement(HaveField("Name", "cilium")))
			_, err = storage.Deployed("cilium")
			g.Expect(err).NotTo(HaveOccurred(), "as `helm status` does")
			history := s.history(t, ciliumNamespace, "cilium")
			g.Expect(history).To(HaveLen(3), "an installation and two upgrades, as `helm history` shows")
			for i, status := range []common.Status{common.StatusSuperseded, common.StatusSuperseded, common.StatusDeployed} {
				g.Expect(history[i].Info.Status).To(Equal(status), "revision %d", i+1)
			}
			g.Expect(history[2].Chart.Metadata.Version).To(Equal("1.19.6"))
			g.Expect(history[2].Manifest).NotTo(BeEmpty(), "as `helm get manifest` shows")
		}
	})
}

// secretsOf returns the data of those Secrets that exist.
func (s *server) secretsOf(t *testing.T, names []string) map[string]map[string][]byte {
	t.Helper()
	list, err := s.clientset.CoreV1().Secrets(ciliumNamespace).List(t.Context(), metav1.ListOptions{FieldSelector: "type!=helm.sh/release.v1"})
	must.Succeed(t, err)
	found := map[string]corev1.Secret{}
	for _, secret := range list.Items {
		found[secret.Name] = secret
	}
	data := map[string]map[string][]byte{}
	for _, name := range names {
		if secret, ok := found[name]; ok {
			data[name] = secret.Data
		}
	}
	return data
}

// TestInstalledAgainAndAgain installs and removes a chart whose hooks are Jobs that Kubernetes
// may collect as soon as they are done, while other processes keep all cores busy. It is
// for long runs: once is what TestRealCharts does.
func TestInstalledAgainAndAgain(t *testing.T) {
	times := environmentNumber(t, "CHANDLER_E2E_INSTALLS", 0)
	if times == 0 {
		t.Skip("CHANDLER_E2E_INSTALLS isn't set")
	}
	for range 2 {
		busy := exec.Command("sh", "-c", "while :; do :; done")
		must.Succeed(t, busy.Start())
		defer func() {
			_ = busy.Process.Kill()
			_ = busy.Wait() // killed
		}()
	}
	tn, s := newProd(t, 0)
	path := tn.realChart("ingress-nginx-4.15.1.tgz")
	for i := range times {
		begin := time.Now()
		tn.install(tn.addon("ingress-nginx", path))
		t.Logf("%d: ready after %s", i+1, time.Since(begin).Round(time.Millisecond))
		tn.remove(tn.newStack("platform", nil))
		tn.expectRemoved(t, s, "ingress-nginx")
	}
	for _, note := range tn.warnings() {
		t.Errorf("a Warning: %s", note)
	}
}
