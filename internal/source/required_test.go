// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"path/filepath"
	"strings"
	"testing"

	repo "helm.sh/helm/v4/pkg/repo/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

// An instance that requires signatures by its own keys takes nothing else, whatever an
// object says of its keys.
func TestSignaturesThatTheInstanceRequires(t *testing.T) {
	w := startSigned(t)
	administrators, openpgp := signing.NewKey(t), signing.NewOpenPGPKey(t, 0)
	keys := t.TempDir()
	write(t, filepath.Join(keys, "release.pub"), string(administrators.Public))
	write(t, filepath.Join(keys, "older.pub"), string(signing.NewKey(t).Public))
	write(t, filepath.Join(keys, "charts.gpg"), string(openpgp.Public))
	w.set(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "charts"}, BinaryData: map[string][]byte{"chart.tgz": chartVersion(t, "1.0.0")},
	})
	root := t.TempDir()
	write(t, filepath.Join(root, "local.tgz"), string(chartVersion(t, "1.0.0")))
	fresh := func(t *testing.T) *source.Sources {
		sources, _ := remoteSources(t, source.Options{Client: w.cluster, Metadata: w.metadata(), ArtifactRoot: root, RequireSignaturesBy: keys})
		return sources
	}
	signed := func(name string, keys ...signing.Key) {
		manifest := w.push(t, name)
		var layers []signing.Layer
		for _, key := range keys {
			layers = append(layers, key.Sign(t, manifest))
		}
		if len(layers) > 0 {
			signing.Attach(t, w.repository(t, name), manifest, layers...)
		}
	}
	signed("unsigned")
	signed("tenants", w.key)
	signed("approved", administrators)
	signed("both", w.key, administrators)
	// Signed, but another chart: who may push could put it there.
	other := w.server.Push(t, targz.Of(t, chartEntry("another")), "moved", "1.0.0")
	signing.Attach(t, w.repository(t, "moved"), other, administrators.Sign(t, other))

	for name, tc := range map[string]struct {
		ref    reference.Reference
		reason string // "" if it is taken
	}{
		"a chart that nobody signed":                         {w.ref("unsigned", nil), failure.SignatureMissing},
		"a chart that somebody else signed":                  {w.ref("tenants", nil), failure.SignatureInvalid},
		"a chart that is signed as its object wants":         {w.ref("tenants", byKeys("cosign.pub")), failure.SignatureInvalid},
		"a chart that the instance's key signed":             {w.ref("approved", nil), ""},
		"a chart that both signed":                           {w.ref("both", byKeys("cosign.pub")), ""},
		"a chart that the instance's key signed alone":       {w.ref("approved", byKeys("cosign.pub")), failure.SignatureInvalid},
		"another chart that the instance's key signed":       {w.ref("moved", nil), failure.SignatureInvalid},
		"an address, which has no signatures":                {atAddress("http://127.0.0.1:1/x.tgz", "sha256:"+strings.Repeat("a", 64)), failure.SignatureMissing},
		"a ConfigMap, which whoever writes the stack writes": {inConfigMap("team-a", "charts", ""), failure.SignatureMissing},
		"what the administrator put into the artifact root":  {atPath("local.tgz"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			expectRefused(t, get(t, fresh(t), tc.ref), tc.reason)
		})
	}

	t.Run("what is in memory for one is still refused to another", func(t *testing.T) {
		sources := fresh(t)
		expectFetched(t, sources, w.ref("approved", nil))
		digest := expectResolved(t, sources, w.ref("approved", nil))
		_, err := sources.Fetch(t.Context(), w.ref("unsigned", nil), digest)
		if err == nil {
			t.Error("an unsigned address gives what is signed elsewhere")
		}
	})
	t.Run("charts of a repository, by their provenance files", func(t *testing.T) {
		server, _ := startRepository(t, true, false)
		index := repo.NewIndexFile()
		good := server.publish(t, index, "1.0.0", "", true)
		write(t, filepath.Join(server.dir, "charts", "demo-1.0.0.tgz.prov"), string(openpgp.Provenance(t, good, "demo-1.0.0.tgz")))
		theirs := server.publish(t, index, "1.1.0", "", true)
		write(t, filepath.Join(server.dir, "charts", "demo-1.1.0.tgz.prov"), string(w.openpgp.Provenance(t, theirs, "demo-1.1.0.tgz")))
		server.publish(t, index, "1.2.0", "", true)
		for version, reason := range map[string]string{"1.0.0": "", "1.1.0": failure.SignatureInvalid, "1.2.0": failure.SignatureMissing} {
			ref := plainly(inRepository(server.URL+"/charts", version))
			ref.Chart.Verify = byKeyring("")
			if version == "1.0.0" {
				ref.Chart.Verify = nil
			}
			expectRefused(t, get(t, fresh(t), ref), reason)
		}
	})
	t.Run("a key that is none", func(t *testing.T) {
		write(t, filepath.Join(keys, "broken.pub"), "x")
		expectRefused(t, get(t, fresh(t), w.ref("approved", nil)), failure.VerificationPolicyInvalid)
	})
}
