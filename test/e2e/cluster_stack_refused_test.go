// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/test/long"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/signing"
)

// smallRelease has one stage, with a text in its ConfigMap.
func (tn *tenant) smallRelease(version, text string) map[string][]byte {
	files := tn.stackRelease(version, text)
	files["clusteraddon.yaml"] = []byte("addonStages: {AfterControlPlaneInitialized: [{name: " + tn.namespace + "-a, action: apply}]}")
	return files
}

// TestBundlesThatAreRefused has a stack for each thing that may be wrong with a
// bundle, and what its clusters are told; and one where it gets right in the end.
func TestBundlesThatAreRefused(t *testing.T) {
	long.Test(t)
	t.Parallel()
	const repository = "stacks/test"
	tn := newTenant(t)
	s := workloadServer(t, 2)
	server := registry.Start(t, registry.Options{Users: map[string]string{"user": "password"}})
	signatures, key := signing.Repository(t, server, repository), signing.NewKey(t)
	publish := func(version, text string, signers ...signing.Key) (manifest string) {
		t.Helper()
		manifest = server.PushRelease(t, tn.smallRelease(version, text), repository, version)
		for _, by := range signers {
			signing.Attach(t, signatures, manifest, by.Sign(t, manifest))
		}
		return manifest
	}
	publish("v1", "one", key)
	unsigned := publish("v2", "two")
	publish("v3", "three", signing.NewKey(t))
	archive := tarball(tn.smallRelease("v1", "one"))
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }))
	t.Cleanup(web.Close)

	tn.giveCredentials(map[string]string{"username": "user", "password": "password", "ca.crt": string(server.CA)})
	tn.create(&corev1.Secret{ObjectMeta: tn.named("strangers"),
		StringData: map[string]string{"username": "user", "password": "sentinel-wrong", "ca.crt": string(server.CA)}})
	tn.trust(key)
	tn.create(&corev1.Secret{ObjectMeta: tn.named("release"), Data: map[string][]byte{"release.tgz": archive}})
	tn.create(&corev1.ConfigMap{ObjectMeta: tn.named("release"),
		BinaryData: map[string][]byte{"release.tgz": archive, "junk.tgz": []byte("no archive")}, Data: map[string]string{"text.tgz": "no archive"}})
	inObject := func(key string) addonsv1.ArtifactSource {
		return addonsv1.ArtifactSource{ConfigMap: &addonsv1.ArtifactReference{Name: "release", Key: key}}
	}
	atRegistry := func(version, credentials string) addonsv1.BundleSource {
		return addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
			OCI:     &addonsv1.OCISource{URL: server.URL(repository), SecretRef: &addonsv1.CredentialsReference{Name: credentials}},
			Version: version, Verify: signedByKey(),
		}}
	}
	atAddress := func(digest string) addonsv1.BundleSource {
		return addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{HTTP: &addonsv1.HTTPSource{URL: web.URL + "/release.tgz", Digest: digest, PlainHTTP: ptr.To(true)}}}
	}
	const other = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	tn.startManager()

	for name, tc := range map[string]struct {
		from         addonsv1.BundleSource
		kind         string
		status       metav1.ConditionStatus
		reason, says string
	}{
		"http":     {from: atAddress(digestOf(archive))},
		"secret":   {from: addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Secret: &addonsv1.ArtifactReference{Name: "release", Key: "release.tgz"}}}},
		"pinned":   {from: addonsv1.BundleSource{ArtifactSource: inObject("release.tgz"), Digest: digestOf(archive)}},
		"registry": {from: atRegistry("v1", "credentials")},
		"http-of-another-digest": {atAddress(other),
			addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "DigestMismatch", "spec.source.http: " + web.URL + "/release.tgz@" + other},
		"configmap-of-another-digest": {addonsv1.BundleSource{ArtifactSource: inObject("release.tgz"), Digest: other},
			addonsv1.ValidCondition, metav1.ConditionFalse, "InvalidSource", "source.digest: the bundle has digest " + digestOf(archive)},
		"no-such-key": {addonsv1.BundleSource{ArtifactSource: inObject("other.tgz")},
			addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "ArtifactNotFound", `spec.source.configMap: ConfigMap ` + tn.namespace + `/release, key "other.tgz": there is no such key`},
		"a-text": {addonsv1.BundleSource{ArtifactSource: inObject("text.tgz")},
			addonsv1.ValidCondition, metav1.ConditionFalse, "ArtifactInvalid", "the key is in data, which is text and can't hold an archive"},
		"no-archive": {addonsv1.BundleSource{ArtifactSource: inObject("junk.tgz")},
			addonsv1.ValidCondition, metav1.ConditionFalse, "ArtifactInvalid", `key "junk.tgz"`},
		"strangers": {atRegistry("v1", "strangers"),
			addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "SourceUnauthorized", "to the credentials of Secret " + tn.namespace + "/strangers"},
		"no-credentials": {atRegistry("v1", "nobody"),
			addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "SourceUnauthorized", "spec.source.oci.secretRef: Secret " + tn.namespace + "/nobody: there is no such Secret"},
		"no-such-tag": {atRegistry("v9", "credentials"),
			addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "ArtifactNotFound", "tag v9"},
		"unsigned": {atRegistry("v2", "credentials"),
			addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "SignatureMissing", "it has no signature"},
		"signed-by-another": {atRegistry("v3", "credentials"),
			addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, "SignatureInvalid", "it is made with another key"},
	} {
		tn.run(name, func(_ *testing.T, tn *tenant) {
			tn.makeBundleStack(name, tc.from)
			if tc.kind == "" {
				tn.awaitStack(name, "it can be used", addonsv1.ReadyCondition, metav1.ConditionTrue, "", "")
				return
			}
			tn.makeCluster("of-"+name, s, nil, ofClass(name))
			tn.awaitStack(name, "it can't be used", tc.kind, tc.status, tc.reason, tc.says)
			tn.awaitStack(name, "it can't be used", addonsv1.ReadyCondition, tc.status, tc.reason, tc.says)
			tn.awaitCluster("of-"+name, "there is nothing to install", condition(addonsv1.ReadyCondition, metav1.ConditionFalse, addonsv1.AddonsProgressingReason, "has no valid revision yet"))
		})
	}

	t.Run("an object can't hold more than the API takes", func(t *testing.T) {
		large := &corev1.ConfigMap{ObjectMeta: tn.named("large"), BinaryData: map[string][]byte{"release.tgz": make([]byte, corev1.MaxSecretSize+1)}}
		NewWithT(t).Expect(world.hub.Create(t.Context(), large, client.DryRunAll)).To(MatchError(ContainSubstring("may not be more than 1048576 bytes")))
	})

	tn.run("what runs stays until the next one is as it has to be", func(t *testing.T, tn *tenant) {
		addon := tn.namespace + "-a"
		tn.makeCluster("prod", s, nil, ofClass("registry"))
		tn.awaitCluster("prod", "it is signed", ready(addon), installedAs(addon, 1, "1.0.0"))
		tn.awaitReady("registry", "its cluster is ready")
		unready := tn.watchReady()
		start := s.mark(t)
		follow := func(version string) {
			t.Helper()
			tn.changeStack("registry", func(spec *addonsv1.AddonStackSpec) { spec.Source.Version = version })
		}
		for _, refused := range []struct{ version, reason, says string }{
			{"v9", "ArtifactNotFound", "tag v9"},
			{"v3", "SignatureInvalid", "it is made with another key"},
			{"v2", "SignatureMissing", "it has no signature"},
		} {
			follow(refused.version)
			tn.awaitStack("registry", "it isn't as it has to be", addonsv1.SourcesReadyCondition, metav1.ConditionUnknown, refused.reason, refused.says)
		}
		tn.settle()
		tn.awaitCluster("prod", "what runs stays", ready(addon), installedAs(addon, 1, "1.0.0"))
		tn.Expect(unready()).NotTo(ContainElement(HavePrefix("prod: ")))
		tn.Expect(writes(start.requests(t, tn.clusterUser("prod")))).To(BeEmpty())

		signing.Attach(t, signatures, unsigned, key.Sign(t, unsigned))
		tn.changeStack("registry", func(spec *addonsv1.AddonStackSpec) { spec.Source.AdoptionPolicy = addonsv1.AdoptionPolicyAdopt }) // look again at once
		tn.awaitCluster("prod", "it is signed now", ready(addon), installedAs(addon, 2, "1.0.0"))
		object, err := s.clientset.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cluster-addon-"+addon, metav1.GetOptions{})
		tn.Expect(err).NotTo(HaveOccurred())
		tn.Expect(object.Data["text"]).To(HavePrefix("two "))
	})

	for _, warning := range tn.warnings() {
		if strings.Contains(warning, "sentinel") {
			t.Error(warning)
		}
	}
}
