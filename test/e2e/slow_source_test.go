// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/faulty"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// silentHost starts a host that takes requests and doesn't answer. It also
// returns the directory of credentials that it takes to trust the host, and what
// the host has.
func silentHost(t *testing.T) (host *faulty.Server, credentials string, offered published) {
	t.Helper()
	origin, authority := registry.Start(t, registry.Options{PlainHTTP: true}), registry.NewAuthority(t)
	credentials = t.TempDir()
	write(t, credentials, "ca.crt", authority.PEM)
	offered = publish(t, origin, "offered")
	host = faulty.Start(t, authority, offered)
	host.Fail(faulty.Silent)
	return host, credentials, offered
}

// TestSilentBundles has stacks wait for bundles, and for versions, at a host that doesn't
// answer. There are many more stacks than workers. Another stack isn't held up, and those
// that wait aren't looked at over and over.
func TestSilentBundles(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	host, credentials, _ := silentHost(t)
	chart := tn.writeChart("calm", "1.0.0", configMapChart)
	tn.startManager("--credentials-dir="+credentials, "--cache-dir="+t.TempDir())
	const stacks = 60
	for i := range stacks {
		s := tn.newStack(fmt.Sprintf("slow-%d", i), labels("env=none"))
		version := "v1"
		if i%2 == 0 {
			version = "^1"
		}
		s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
			OCI: &addonsv1.OCISource{URL: fmt.Sprintf("oci://%s/stack-%d", host.Host, i)}, Version: version}}
		tn.create(s)
	}
	for i := range stacks {
		tn.awaitStatus(fmt.Sprintf("slow-%d", i), "it says what it waits for", func(s *addonsv1.AddonStack) error {
			return checkCondition(s, addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "", "")
		})
	}
	begun := time.Now()
	tn.makeStack("calm", labels("env=none"), tn.addon("calm", chart))
	tn.awaitStatus("calm", "its chart is at hand", func(s *addonsv1.AddonStack) error {
		if s.Status.LatestRevision == "" {
			return errors.New("it has no revision")
		}
		return nil
	})
	held := time.Since(begun)
	t.Logf("with %d stacks that wait, another has its revision after %s", stacks, held.Round(time.Millisecond))
	tn.Expect(held).To(BeNumerically("<", 15*time.Second))

	const lasts = 10 * time.Second
	before := tn.reconciled("addonstack")
	time.Sleep(lasts)
	after := tn.reconciled("addonstack")
	t.Logf("in %s, %d stacks were reconciled %.0f times", lasts, stacks, after-before)
	tn.Expect(after-before).To(BeNumerically("<", stacks*lasts.Seconds()/2), "they aren't looked at each second")
}

// TestSilentRegistry has clusters wait for a registry that doesn't answer, with few
// workers: another cluster isn't held up, and what is known is written once. How often
// clusters are looked at can't be measured here: what other tests install on the same
// server has them reconciled, too.
func TestSilentRegistry(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const clusters, lasts = 20, 40 * time.Second
	tn := newTenant(t)
	host, credentials, offered := silentHost(t)
	chart := tn.writeChart("calm", "1.0.0", configMapChart)
	s := workloadServer(t, 0)
	tn.startManager("--credentials-dir="+credentials, "--cache-dir="+t.TempDir(), "--clusteraddon-concurrency=5")
	tn.makeStack("calm", labels("calm=yes"), tn.addon("calm", chart))
	tn.makeCluster("calm", s, labels("calm=no"))
	for i := range clusters {
		tn.makeCluster(fmt.Sprintf("slow-%d", i), s, labels(fmt.Sprintf("cluster=slow-%d", i)))
	}
	tn.settle()
	hub := world.hub.mark(t)
	for i := range clusters {
		name := fmt.Sprintf("slow-%d", i)
		tn.makeStack(name, labels("cluster="+name), tn.addon("settings", "", inNamespace(tn.namespace+"-"+name), func(a *addonsv1.Addon) { a.Chart = offered.from("oci", host) }))
	}
	for i := range clusters {
		tn.awaitCluster(fmt.Sprintf("slow-%d", i), "it waits", phase("settings", addonsv1.AddonPending, "", ""))
	}
	begun := time.Now()
	tn.relabel("calm", "calm=yes")
	tn.awaitCluster("calm", "its chart is at hand", ready("calm"))
	held := time.Since(begun)
	t.Logf("with %d clusters that wait, another is ready after %s", clusters, held.Round(time.Millisecond))
	tn.Expect(held).To(BeNumerically("<", 15*time.Second))

	for i := range clusters {
		tn.awaitCluster(fmt.Sprintf("slow-%d", i), "it is known to be silent", phase("settings", addonsv1.AddonPending, "SourceUnavailable", "doesn't answer in time"))
	}
	time.Sleep(max(0, lasts-time.Since(begun))) // it is asked again meanwhile, in vain
	written := map[string]int{}
	for _, w := range writes(hub.requests(t, tn.user)) {
		for i := range clusters {
			if name := fmt.Sprintf("slow-%d", i); strings.HasSuffix(w, "/clusteraddons/"+name+"/status") || strings.Contains(w, "/clusteraddons/"+name+"/status?") {
				written[name]++
			}
		}
	}
	all := 0
	for _, n := range written {
		all += n
	}
	t.Logf("in %s, %d clusters were written %d times", lasts, clusters, all)
	tn.Expect(all).To(BeNumerically("<=", 4*clusters), "that it waits, that it is slow, that it is silent: %v", written)

	host.Heal()
	for i := range clusters {
		tn.awaitCluster(fmt.Sprintf("slow-%d", i), "the registry answers", ready("settings"))
	}
}

// TestPublishedAnew has a cluster refuse a version of a chart, and stacks one of a bundle,
// that are published again: nothing has to be restarted, nor be given another version.
func TestPublishedAnew(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	server := registry.Start(t, registry.Options{})
	credentials := trusting(t, server.CA)
	chartYAML := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
	server.PushArchive(t, tarball(map[string]string{"other/Chart.yaml": chartYAML("other")}), "bundles/net", "v1")
	server.Push(t, targz.Of(t, targz.Entry{Name: "settings/Chart.yaml", Data: chartYAML("settings")},
		targz.Entry{Name: "settings/templates/x.yaml", Link: "../../../etc/passwd", Kind: '2'}), "charts/settings", "1.0.0")
	tn.makeCluster("prod", workloadServer(t, 0), labels("env=prod"))
	tn.startManager("--credentials-dir=" + credentials)
	tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "", fromOCI(server.URL("charts/settings"), "1.0.0")))
	tn.awaitCluster("prod", "its chart is hostile", phase("settings", addonsv1.AddonFailed, "ArtifactRefused", ""))
	stack := func(name string) {
		s := tn.newStack(name, labels("env=none"), tn.addon("net", "net"))
		s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: server.URL("bundles/net")}, Version: "v1"}}
		tn.create(s)
	}
	for _, name := range []string{"waits", "edited"} {
		stack(name)
		tn.awaitStatus(name, "the bundle has no such path", func(s *addonsv1.AddonStack) error {
			return checkCondition(s, addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "ArtifactNotFound", "")
		})
	}
	server.PushArchive(t, tarball(map[string]string{"net/Chart.yaml": chartYAML("net"), "net/templates/one.yaml": configMap("one", "next")}), "bundles/net", "v1")
	server.Push(t, configMapChart.archive("settings", "1.0.0"), "charts/settings", "1.0.0")
	tn.lookNow("edited")
	tn.lookNow("platform")
	tn.awaitCluster("prod", "its chart was published again", ready("settings"))
	for _, name := range []string{"edited", "waits"} {
		tn.awaitStatus(name, "it was published again", func(s *addonsv1.AddonStack) error {
			if s.Status.LatestRevision == "" {
				return errors.New("it has no revision")
			}
			return nil
		})
	}
}
