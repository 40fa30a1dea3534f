// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestRefusedThoughItWasInUse has a stack and a cluster refuse what they used so far: a
// path that its bundle doesn't have, and a chart that nobody signed. Nothing is done over
// and over, and what is published again is used by those who refused it, and no others.
func TestRefusedThoughItWasInUse(t *testing.T) {
	long.Test(t)
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	at := func(repository string) *addonsv1.OCISource {
		return &addonsv1.OCISource{URL: server.URL(repository), PlainHTTP: ptr.To(true)}
	}
	named := func(name string) string { return "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" }
	server.PushArchive(t, tarball(map[string]string{"net/Chart.yaml": named("net")}), "bundles/net", "v1")
	server.Push(t, configMapChart.archive("settings", "1.0.0"), "charts/settings", "1.0.0")
	key := signing.NewKey(t)
	tn.trust(key)

	fromRegistry := func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{OCI: at("charts/settings"), Version: "1.0.0"}
	}
	tn.makeCluster("prod", s, labels("env=prod"))
	tn.startManager()
	tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "", fromRegistry), tn.addon("steady", "", fromRegistry))
	bundled := func(name string) {
		t.Helper()
		made := tn.newStack(name, labels("env=none"), tn.addon("net", "net"))
		made.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{OCI: at("bundles/net"), Version: "v1"}}
		tn.create(made)
		tn.awaitStack(name, "the bundle has the path", addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
	}
	bundled("network")
	bundled("steady")
	tn.awaitCluster("prod", "both are installed", installedAs("settings", 1, "1.0.0"), installedAs("steady", 1, "1.0.0"))
	taken := tn.keptOf("steady").Source.Digest
	tn.settle()

	installed := s.mark(t)
	tn.changeAddon("network", "net", func(a *addonsv1.Addon) { a.Chart.Path = "other" })
	tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) {
		a.Chart.Verify = signedByKey()
		a.Values = &apiextensionsv1.JSON{Raw: []byte(`{"text": "another"}`)}
	})
	tn.awaitStack("network", "the bundle has no such path", addonsv1.ReadyCondition, metav1.ConditionUnknown, "ArtifactNotFound", `"other" of the bundle`)
	tn.awaitCluster("prod", "nobody signed it", phase("settings", addonsv1.AddonPending, "SignatureMissing", ""), stillAt("settings", 1, "1.0.0"), installedAs("steady", 1, "1.0.0"))

	time.Sleep(5 * time.Second) // the first tries come soon
	server.Requests(t)
	hub := world.hub.mark(t)
	before := tn.reconciled("addonstack")
	time.Sleep(10 * time.Second)
	after := tn.reconciled("addonstack")
	asked, written := server.Requests(t), writes(hub.requests(t, tn.user))
	t.Logf("in 10 s: %.0f reconciles of stacks, %d writes, and these requests: %q", after-before, len(written), asked)
	tn.Expect(after-before).To(BeNumerically("<=", 5), "nothing is new of the bundle")
	tn.Expect(len(asked)).To(BeNumerically("<=", 12), "the registry is asked after times that grow: %q", asked)
	tn.Expect(written).To(BeEmpty(), "nothing is new")
	tn.Expect(writes(installed.requests(t, tn.clusterUser("prod")))).To(BeEmpty(), "what is installed is left alone")

	server.PushArchive(t, tarball(map[string]string{"net/Chart.yaml": named("net"), "other/Chart.yaml": named("other")}), "bundles/net", "v1")
	again := maps.Clone(configMapChart)
	again["README.md"] = "published again"
	manifest := server.Push(t, again.archive("settings", "1.0.0"), "charts/settings", "1.0.0")
	signing.Attach(t, signing.Repository(t, server, "charts/settings"), manifest, key.Sign(t, manifest))
	tn.lookNow("network")
	tn.lookNow("platform")
	tn.awaitStack("network", "the path is there now", addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
	// Pauses have grown meanwhile, and one of them may have just begun.
	poll(t, 4*time.Minute, "it is signed now", func() error {
		ca := tn.clusterAddon("prod")
		if err := world.hub.Get(t.Context(), client.ObjectKeyFromObject(ca), ca); err != nil {
			return err
		}
		return errors.Join(installedAs("settings", 2, "1.0.0")(ca), installedAs("steady", 1, "1.0.0")(ca))
	})
	tn.settle()
	tn.Expect(tn.keptOf("steady").Source.Digest).To(Equal(taken), "another stack's path moves nobody else's version")
	tn.awaitCluster("prod", "others don't want a signature", installedAs("steady", 1, "1.0.0"))
}
