// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
			Verify: &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{
				PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "release-keys"}},
			}},
		}
	}))
	tn.awaitCluster("c", "nobody said which key", phase("settings", addonsv1.AddonPending, "VerificationPolicyInvalid",
		`chart.verify.cosign.publicKeys[0]: ConfigMap `+tn.namespace+`/release-keys, key "cosign.pub": there is no such ConfigMap`))

	keys := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "release-keys", Namespace: tn.namespace}, Data: map[string]string{"cosign.pub": string(key.Public)}}
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

// TestVerificationRules asks the API server itself.
func TestVerificationRules(t *testing.T) {
	t.Parallel()
	tn := newTenant(t)
	key := addonsv1.TrustReference{Kind: "ConfigMap", Name: "keys"}
	byKey := &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{key}}}
	byKeyring := &addonsv1.Verification{Provenance: &addonsv1.ProvenanceVerification{Keyring: key}}
	identity := func(who addonsv1.CertificateIdentity) *addonsv1.Verification {
		return &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{Keyless: &addonsv1.KeylessVerification{
			Identities: []addonsv1.CertificateIdentity{who}, TrustRoot: key,
		}}}
	}
	oci := func(verify *addonsv1.Verification) addonsv1.ChartSource {
		return addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: "oci://registry.example.org/web"}, Version: "1.0.0", Verify: verify}
	}
	helm := func(verify *addonsv1.Verification) addonsv1.ChartSource {
		return addonsv1.ChartSource{Helm: &addonsv1.HelmSource{URL: "https://charts.example.org", Chart: "web"}, Version: "1.0.0", Verify: verify}
	}
	for name, c := range map[string]struct {
		chart addonsv1.ChartSource
		says  string
	}{
		"keys":                  {chart: oci(byKey)},
		"keyring of a registry": {chart: oci(byKeyring)},
		"keyring":               {chart: helm(byKeyring)},
		"an identity":           {chart: oci(identity(addonsv1.CertificateIdentity{Issuer: "i", SubjectRegExp: "s"}))},
		"nothing":               {oci(&addonsv1.Verification{}), "set exactly one of cosign and provenance"},
		"both":                  {oci(&addonsv1.Verification{Cosign: byKey.Cosign, Provenance: byKeyring.Provenance}), "set exactly one of cosign and provenance"},
		"nobody":                {oci(&addonsv1.Verification{Cosign: &addonsv1.CosignVerification{}}), "set publicKeys, keyless, or both"},
		"no subject":            {oci(identity(addonsv1.CertificateIdentity{Issuer: "i"})), "set exactly one of subject and subjectRegExp"},
		"two subjects":          {oci(identity(addonsv1.CertificateIdentity{Issuer: "i", Subject: "s", SubjectRegExp: "s"})), "set exactly one of subject and subjectRegExp"},
		"cosign of helm":        {helm(byKey), "verify.cosign is for oci, verify.provenance for oci, helm and github"},
		"a path":                {addonsv1.ChartSource{Path: "web", Verify: byKey}, "verify.cosign is for oci, verify.provenance for oci, helm and github"},
		"another kind of object": {oci(&addonsv1.Verification{Provenance: &addonsv1.ProvenanceVerification{Keyring: addonsv1.TrustReference{Kind: "Node", Name: "keys"}}}),
			"supported values"},
	} {
		t.Run(name, func(t *testing.T) {
			tn := tn.in(t)
			s := tn.newStack("platform", labels("a=b"), tn.addon("web", "", func(a *addonsv1.Addon) { a.Chart = c.chart }))
			err := world.hub.Create(t.Context(), s, client.DryRunAll)
			if c.says == "" {
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			} else {
				NewWithT(t).Expect(err).To(MatchError(ContainSubstring(c.says)))
			}
		})
	}
	t.Run("manifests have no provenance", func(t *testing.T) {
		tn := tn.in(t)
		s := tn.newStack("platform", labels("a=b"), tn.addon("web", "", func(a *addonsv1.Addon) {
			a.Manifests = &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{OCI: oci(nil).OCI, Version: "1.0.0", Verify: byKeyring}}
		}))
		NewWithT(t).Expect(world.hub.Create(t.Context(), s, client.DryRunAll)).To(MatchError(ContainSubstring("verify is for oci, and only with cosign")))
	})
}
