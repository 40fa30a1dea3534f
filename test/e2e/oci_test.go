// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
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

	t.Run("a restart asks for nothing", func(t *testing.T) {
		tn := tn.in(t)
		server.Requests(t)
		tn.stopManager()
		start()
		tn.poke("first", "restarted")
		tn.awaitReconcile("clusteraddon", 0)
		tn.settle()
		tn.awaitCluster("first", "nothing changed", ready("settings"), installedAs("settings", 1, "1.0.0"))
		NewWithT(t).Expect(server.Requests(t)).To(BeEmpty())
	})

	t.Run("a registry that is down", func(t *testing.T) {
		tn := tn.in(t)
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
		log, err := os.ReadFile(m.log)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(string(log)).NotTo(ContainSubstring("sentinel"), "credentials stay out of the log")
	}
}
