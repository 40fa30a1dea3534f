// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

// TestVerified installs a chart that is signed, and then publishes versions that
// aren't, or not by whom the stack wants.
func TestVerified(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	s := workloadServer(t, 0)
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	repository := signing.Repository(t, server, "charts/settings")
	key := signing.NewKey(t)
	publish := func(version string) string {
		t.Helper()
		return server.Push(t, configMapChart.archive("settings", version), "charts/settings", version)
	}
	sign := func(manifest string, by signing.Key) {
		t.Helper()
		signing.Attach(t, repository, manifest, by.Sign(t, manifest))
	}
	sign(publish("1.0.0"), key)

	tn.startManager()
	tn.makeCluster("c", s, labels("env=prod"))
	tn.makeStack("platform", labels("env=prod"), tn.addon("settings", "", func(a *addonsv1.Addon) {
		a.Chart = addonsv1.ChartSource{
			OCI: &addonsv1.OCISource{URL: server.URL("charts/settings"), PlainHTTP: ptr.To(true)}, Version: "1.0.0",
			Verify: signedByKey(),
		}
	}))
	tn.awaitCluster("c", "nobody said which key", phase("settings", addonsv1.AddonPending, "VerificationPolicyInvalid",
		`chart.verify.cosign.publicKeys[0]: ConfigMap `+tn.namespace+`/release-keys, key "cosign.pub": there is no such ConfigMap`))

	keys := &corev1.ConfigMap{ObjectMeta: tn.named("release-keys"), Data: map[string]string{"cosign.pub": string(key.Public)}}
	tn.create(keys)
	tn.awaitCluster("c", "the chart is signed", ready("settings"), installedAs("settings", 1, "1.0.0"))

	follow := func(version string) {
		t.Helper()
		tn.changeAddon("platform", "settings", func(a *addonsv1.Addon) { a.Chart.Version = version })
	}
	unsigned := publish("2.0.0")
	follow("2.0.0")
	tn.awaitCluster("c", "nobody signed it", phase("settings", addonsv1.AddonPending, "SignatureMissing", "it has no signature"), stillAt("settings", 1, "1.0.0"))
	NewWithT(t).Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(1))

	sign(publish("3.0.0"), signing.NewKey(t))
	follow("3.0.0")
	tn.awaitCluster("c", "somebody else signed it", phase("settings", addonsv1.AddonFailed, "SignatureInvalid", "it is made with another key"), stillAt("settings", 1, "1.0.0"))
	NewWithT(t).Expect(s.release(t, tn.namespace, "settings").revision).To(Equal(1))

	sign(unsigned, key)
	follow("2.0.0")
	tn.awaitCluster("c", "it is signed now", ready("settings"), installedAs("settings", 2, "2.0.0"))

	t.Run("other keys change nothing that is installed", func(t *testing.T) {
		tn := tn.in(t)
		change(tn, keys, func(c *corev1.ConfigMap) { c.Data["cosign.pub"] = string(signing.NewKey(t).Public) })
		tn.poke("c", "rotated")
		tn.settle()
		tn.awaitCluster("c", "it is installed", ready("settings"), installedAs("settings", 2, "2.0.0"))
	})
}

// stillAt expects an add-on to be installed at a revision and version, in whatever phase it is.
func stillAt(addon string, revision int32, version string) clusterCheck {
	return func(ca *addonsv1.ClusterAddon) error {
		wanted := *ca.DeepCopy()
		s := statusOf(&wanted, addon)
		if s == nil {
			return installedAs(addon, revision, version)(ca)
		}
		s.Phase, s.Reason = addonsv1.AddonReady, ""
		return installedAs(addon, revision, version)(&wanted)
	}
}
