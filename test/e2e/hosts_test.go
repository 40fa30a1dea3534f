// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
)

// TestOCI installs a chart from a registry that wants credentials, which the
// instance gets while it runs; and then takes the registry away.
func TestOCI(t *testing.T) {
	t.Parallel()
	const user, password = "sentinel-user", "sentinel-password"
	tn := newTenant(t)
	s := workloadServer(t, 0)
	options := registry.Options{Users: map[string]string{user: password}}
	server := registry.Start(t, options)
	archive := configMapChart.archive("settings", "1.0.0")
	server.Push(t, archive, "charts/settings", "1.0.0")
	dir := filepath.Join(t.TempDir(), "credentials")
	NewWithT(t).Expect(os.Mkdir(dir, 0o750)).To(Succeed())
	put := func(name string, data []byte) {
		t.Helper()
		NewWithT(t).Expect(os.WriteFile(filepath.Join(dir, name), data, 0o600)).To(Succeed())
	}
	trust := func() { put("ca.crt", server.CA) }
	trust()

	start := func() { tn.startManager("--credentials-dir="+dir, "--v=10") }
	start()
	tn.makeCluster("first", s, labels("env=prod"))
	tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "", fromOCI(server.URL("charts/settings"), "1.0.0")))

	tn.awaitCluster("first", "nobody gave the instance credentials",
		phase("settings", addonsv1.AddonPending, "SourceUnauthorized", "provider instance's own Secret chandler-credentials"))
	config, err := json.Marshal(map[string]any{"auths": map[string]any{server.Host: map[string]string{"username": user, "password": password}}})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	put("config.json", config)
	tn.awaitCluster("first", "the credentials are there", ready("settings"), installedAs("settings", 1, "1.0.0"))

	tn.run("a restart asks for nothing", func(t *testing.T, tn *tenant) {
		server.Requests(t)
		tn.stopManager()
		start()
		tn.poke("first", "restarted")
		tn.awaitReconcile("clusteraddon", 0)
		tn.settle()
		tn.awaitCluster("first", "nothing changed", ready("settings"), installedAs("settings", 1, "1.0.0"))
		NewWithT(t).Expect(server.Requests(t)).To(BeEmpty())
	})

	tn.run("a registry that is down", func(t *testing.T, tn *tenant) {
		server.Stop()
		tn.poke("first", "down")
		tn.makeCluster("second", workloadServer(t, 1), labels("env=prod"))
		tn.awaitCluster("second", "there is no chart", phase("settings", addonsv1.AddonPending, "SourceUnavailable", "refuses connections"))
		tn.awaitCluster("first", "what is installed stays", ready("settings"), installedAs("settings", 1, "1.0.0"))

		options.Address = server.Host
		server = registry.Start(t, options)
		server.Push(t, archive, "charts/settings", "1.0.0")
		trust()
		back := time.Now()
		tn.awaitCluster("second", "the registry is back", phase("settings", addonsv1.AddonReady, "", ""))
		t.Logf("ready %s after the registry was back", time.Since(back).Round(time.Millisecond))
	})

	for _, m := range tn.managers {
		log, err := os.ReadFile(m.LogFile)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(string(log)).NotTo(ContainSubstring("sentinel"), "credentials stay out of the log")
	}
}

// TestGitHub installs a chart and an install.yaml from a release of a private repository,
// and upgrades them. The token is wrong at first. The server is gone while the provider
// restarts.
func TestGitHub(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const repository, token = "demo/charts", "sentinel-token"
	tn := newTenant(t)
	s := workloadServer(t, 0)
	server := github.Start(t, github.Options{Token: token})
	for _, version := range []string{"1.0.0", "1.1.0"} {
		server.Publish(repository, github.Release{Tag: "settings-" + version, Name: "what people see", Files: []github.File{
			{Name: "settings-" + version + ".tgz", Data: configMapChart.archive("settings", version)},
			{Name: "settings-" + version + ".tgz.prov", Data: []byte("not looked at")},
			{Name: "install.yaml", Data: []byte(configMap("installed", quoted(version)))},
		}})
	}
	tn.create(tn.secret("github", map[string]string{"token": "sentinel-wrong", "ca.crt": string(server.CA)}))
	cache := t.TempDir()
	start := func() { tn.startManager("--cache-dir="+cache, "--v=10") }
	start()
	tn.makeCluster("first", s, labels("env=prod"))
	at := addonsv1.GitHubSource{URL: server.URL(repository), TagPrefix: "settings-", SecretRef: &addonsv1.CredentialsReference{Name: "github"}}
	file := at
	file.Asset = "install.yaml"
	tn.makeStack("platform", labels("env=prod"),
		tn.addon("settings", "", func(a *addonsv1.Addon) { a.Chart = addonsv1.ChartSource{Version: "1.0.0", GitHub: &at} }),
		tn.addon("plain", "", func(a *addonsv1.Addon) {
			a.Manifests = &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.0.0", GitHub: &file}}
		}))

	tn.awaitCluster("first", "the token is another one",
		phase("settings", addonsv1.AddonPending, "SourceUnauthorized", server.Host+" answers 401 Unauthorized to the credentials of Secret "+tn.namespace+"/github"))
	change(tn, tn.secret("github", nil), func(secret *corev1.Secret) { secret.Data["token"] = []byte(token) })
	tn.awaitCluster("first", "the token is right", ready("settings", "plain"), installedAs("settings", 1, "1.0.0"), installedAs("plain", 1, "1.0.0"))
	tn.expectInstalled(s, "1.0.0")

	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = "1.2.0" })
	tn.awaitCluster("first", "there is no such release", phase("settings", addonsv1.AddonPending, "ArtifactNotFound", `no release with tag "settings-1.2.0" in repository demo/charts`))
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = "1.1.0" })
	tn.changeAddon("platform", "plain", func(a *addonsv1.Addon) { a.Manifests.Version = "1.1.0" })
	tn.awaitCluster("first", "there is that one", ready("settings", "plain"), installedAs("settings", 2, "1.1.0"), installedAs("plain", 2, "1.1.0"))
	tn.expectInstalled(s, "1.1.0")

	server.LimitRate(0, time.Now().Add(time.Hour))
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = "1.3.0" })
	tn.awaitCluster("first", "the rate limit is used up", phase("settings", addonsv1.AddonPending, "SourceUnavailable", "asks to be left alone for a while"))
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = "1.1.0" })
	tn.awaitCluster("first", "nobody has to ask", ready("settings", "plain"), installedAs("settings", 2, "1.1.0"))

	tn.stopManager()
	server.Stop()
	start()
	other := workloadServer(t, 1)
	tn.makeCluster("second", other, labels("env=prod"))
	tn.awaitCluster("second", "the server is gone", phase("settings", addonsv1.AddonPending, "SourceUnavailable", "refuses connections"))
	tn.awaitCluster("first", "it is installed", ready("settings", "plain"), installedAs("settings", 2, "1.1.0"))
	server.LimitRate(10, time.Now().Add(time.Hour))
	server.Resume(t)
	tn.awaitCluster("second", "the server is back", ready("settings", "plain"), installedAs("settings", 1, "1.1.0"))
	tn.expectInstalled(other, "1.1.0")

	tn.Expect(server.Leaked()).To(BeEmpty(), "the host that has the files gets no credentials")
	for _, m := range tn.managers {
		log, err := os.ReadFile(m.LogFile)
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(string(log)).NotTo(ContainSubstring("sentinel"), "credentials stay out of the log")
	}
}

// expectInstalled expects the ConfigMap of an install.yaml, as of a version.
func (tn *tenant) expectInstalled(s *server, version string) {
	tn.t.Helper()
	found := s.contents(tn.t, tn.namespace)["ConfigMap. "+tn.namespace+"/installed"]
	tn.Expect(found.Object).To(HaveKeyWithValue("data", HaveKeyWithValue("text", version)))
}
