// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/controlplane"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// previousKubernetes is the minor version before that of all other API servers.
const previousKubernetes = "v1.35.9"

// forKubernetes sets the range that the add-on is for.
func forKubernetes(versions string) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) { a.Lifecycle = &addonsv1.AddonLifecycle{KubernetesVersions: versions} }
}

// registryOf has versions of a chart.
func registryOf(t *testing.T, o registry.Options, versions ...string) *registry.Registry {
	t.Helper()
	server := registry.Start(t, o)
	for _, version := range versions {
		server.Push(t, configMapChart.archive("settings", version), "charts/settings", version)
	}
	return server
}

// byKubernetes sets the chart, with a version for each range of Kubernetes versions.
func byKubernetes(server *registry.Registry, rows ...addonsv1.ChartVersion) func(*addonsv1.Addon) {
	return func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: server.URL("charts/settings")}, Versions: rows}
	}
}

// TestKubernetesVersions has add-ons that are for some versions of Kubernetes, and charts whose
// version follows that of Kubernetes.
func TestKubernetesVersions(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	runs, err := s.clientset.Discovery().ServerVersion()
	tn.Expect(err).NotTo(HaveOccurred())
	minor := runs.Major + "." + runs.Minor
	var before, after string
	var major, number int
	_, err = fmt.Sscanf(minor, "%d.%d", &major, &number)
	tn.Expect(err).NotTo(HaveOccurred())
	before, after = fmt.Sprintf("%d.%d", major, number-1), fmt.Sprintf("%d.%d", major, number+1)

	server := registryOf(t, registry.Options{}, "1.0.0", "1.1.0", "1.2.0")
	path := tn.writeChart("ranged", "1.0.0", chart{"Chart.yaml": "apiVersion: v2\nname: ranged\nversion: 1.0.0\nkubeVersion: '<" + after + ".5-0'\n",
		"templates/text.yaml": configMap("{{ .Release.Name }}", "'x'")})
	versions := func(rows ...addonsv1.ChartVersion) func(*addonsv1.Addon) { return byKubernetes(server, rows...) }
	tn.makeCluster("c", s, nil)
	credentials := trusting(t, server.CA)
	tn.startManager("--credentials-dir=" + credentials)
	tn.makeStack("platform", nil,
		tn.addon("follows", "", versions(
			addonsv1.ChartVersion{Kubernetes: "<=" + before, Version: "1.0.0"},
			addonsv1.ChartVersion{Kubernetes: minor + ".x", Version: "1.1.0"},
			addonsv1.ChartVersion{Kubernetes: ">=" + minor, Version: "1.2.0"})),
		tn.addon("newer", path, forKubernetes(">="+after)),
		tn.addon("ranged", path, forKubernetes(">="+before)),
	)
	tn.awaitCluster("c", "each is for some versions",
		installedAs("follows", 1, "1.1.0"), installedAs("ranged", 1, "1.0.0"),
		phase("newer", addonsv1.AddonFailed, "NoCompatibleVersion", "addons[newer].lifecycle.kubernetesVersions: >="+after))
	tn.Expect(s.release(t, tn.namespace, "newer")).To(BeZero(), "nothing is installed of it")

	tn.changeAddon("platform", "newer", forKubernetes(">="+before))
	tn.awaitCluster("c", "a corrected range is enough", ready("follows", "newer", "ranged"), func(ca *addonsv1.ClusterAddon) error {
		if k := ca.Status.KubernetesVersions; k == nil || len(k.Ranges) != 5 {
			return fmt.Errorf("for Kubernetes %+v", k)
		}
		return nil
	})

	tn.run("what is installed stays", func(t *testing.T, tn *tenant) {
		tn.changeAddon("platform", "follows", versions(addonsv1.ChartVersion{Kubernetes: after + ".x", Version: "1.2.0"}))
		tn.awaitCluster("c", "no row is for what runs", phase("follows", addonsv1.AddonFailed, "NoCompatibleVersion", "addons[follows].chart.versions"))
		settings := tn.configMapOf("follows")
		tn.Expect(s.Delete(t.Context(), settings)).To(Succeed())
		await(t, s, tn.configMapOf("follows"), patience, "it is repaired, too", exists)
		tn.changeAddon("platform", "follows", versions(addonsv1.ChartVersion{Kubernetes: minor + ".x", Version: "1.2.0"}))
		tn.awaitCluster("c", "another row", installedAs("follows", 2, "1.2.0"))
	})
	tn.run("a row names its digest", func(_ *testing.T, tn *tenant) {
		wrong := "sha256:0000000000000000000000000000000000000000000000000000000000000000"
		tn.changeAddon("platform", "follows", versions(addonsv1.ChartVersion{Kubernetes: "*", Version: "1.0.0", Digest: wrong}))
		tn.awaitCluster("c", "there is no such content", phase("follows", addonsv1.AddonPending, "ArtifactNotFound", wrong))
	})
}

// TestUpgradeOfKubernetes has an API server become one of the next minor version.
func TestUpgradeOfKubernetes(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := ownServer(t, controlplane.Options{Name: tn.namespace, Version: previousKubernetes})
	server := registryOf(t, registry.Options{}, "1.35.0", "1.36.0")
	credentials := trusting(t, server.CA)
	tn.makeCluster("c", s, nil)
	tn.startManager("--credentials-dir=" + credentials)
	tn.makeStack("platform", nil,
		tn.addon("follows", "", byKubernetes(server,
			addonsv1.ChartVersion{Kubernetes: "1.35.x", Version: "1.35.0"}, addonsv1.ChartVersion{Kubernetes: "1.36.x", Version: "1.36.0"})),
		tn.addon("stays", tn.writeChart("settings", "1.0.0", configMapChart), forKubernetes("<1.36")),
	)
	tn.awaitCluster("c", "both are for what runs", installedAs("follows", 1, "1.35.0"), installedAs("stays", 1, "1.0.0"))
	tn.awaitCluster("c", "one isn't for more", func(ca *addonsv1.ClusterAddon) error {
		if k := ca.Status.KubernetesVersions; k == nil || !slices.ContainsFunc(k.Ranges, func(r addonsv1.KubernetesRange) bool { return r.Addon == "stays" && r.Versions == "<1.36" }) {
			return fmt.Errorf("for Kubernetes %+v", k)
		}
		return nil
	})

	tn.Expect(s.ChangeVersion(t.Context(), "")).To(Succeed())
	tn.awaitCluster("c", "the chart's version follows", installedAs("follows", 2, "1.36.0"),
		phase("stays", addonsv1.AddonFailed, "NoCompatibleVersion", "addons[stays].lifecycle.kubernetesVersions: <1.36"))
	tn.Expect(s.Get(t.Context(), tn.key("stays"), tn.configMapOf("stays"))).To(Succeed(), "what is installed stays")
	tn.changeAddon("platform", "stays", forKubernetes("<1.37"))
	tn.awaitCluster("c", "nothing else was wrong", installedAs("follows", 2, "1.36.0"), installedAs("stays", 1, "1.0.0"))
}
