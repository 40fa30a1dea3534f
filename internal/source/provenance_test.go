// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"path/filepath"
	"strings"
	"testing"

	repo "helm.sh/helm/v4/pkg/repo/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/policy"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

func TestProvenanceOfCharts(t *testing.T) {
	w := startSigned(t)
	t.Run("in a Helm repository", func(t *testing.T) {
		server, _ := startRepository(t, true, false)
		index := repo.NewIndexFile()
		file := func(version string) string { return filepath.Join(server.dir, "charts", "demo-"+version+".tgz.prov") }
		good := server.publish(t, index, "1.0.0", "", true)
		write(t, file("1.0.0"), string(w.openpgp.Provenance(t, good, "demo-1.0.0.tgz")))
		unnamed := server.publish(t, index, "1.1.0", "", false)
		write(t, file("1.1.0"), string(w.openpgp.Provenance(t, unnamed, "demo-1.1.0.tgz")))
		other := server.publish(t, index, "1.2.0", "", true)
		write(t, file("1.2.0"), string(signing.NewOpenPGPKey(t, 0).Provenance(t, other, "demo-1.2.0.tgz")))
		server.publish(t, index, "1.3.0", "", true)
		write(t, file("1.3.0"), string(w.openpgp.Provenance(t, good, "demo-1.0.0.tgz")))
		server.publish(t, index, "1.4.0", "", true)
		renamed := server.publish(t, index, "1.5.0", "", true)
		write(t, file("1.5.0"), string(w.openpgp.Provenance(t, renamed, "other-1.5.0.tgz")))
		server.publish(t, index, "1.6.0", "", true)
		write(t, file("1.6.0"), strings.Repeat("x", policy.MaxProvenance+1))
		for version, want := range map[string]string{
			"1.0.0": "", "v1.0.0": "", "1.1.0": "",
			"1.2.0": failure.SignatureInvalid,
			"1.3.0": failure.SignatureInvalid,
			"1.4.0": failure.SignatureMissing,
			"1.5.0": failure.SignatureInvalid,
			"1.6.0": failure.ArtifactTooLarge,
		} {
			for _, keyring := range []string{"", "armored.asc"} {
				t.Run(version+keyring, func(t *testing.T) {
					ref := inRepository(server.URL+"/charts", version)
					ref.Chart.Helm.PlainHTTP, ref.Chart.Verify = ptr.To(true), byKeyring(keyring)
					err := get(t, w.sources(t), ref)
					expectRefused(t, err, want)
				})
			}
		}
	})
	t.Run("in a release", func(t *testing.T) {
		server := github.Start(t, github.Options{PlainHTTP: true})
		archive, other := targz.Of(t, chartEntry("a")), targz.Of(t, chartEntry("b"))
		good := w.openpgp.Provenance(t, archive, "demo-1.0.0.tgz")
		for tag, tc := range map[string]struct {
			files  []github.File
			reason string
		}{
			"1.0.0":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "demo-1.0.0.tgz.prov", Data: good}}, ""},
			"v1.0.0": {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "demo-1.0.0.tgz.prov", Data: good}}, ""},
			"none":   {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "other.prov", Data: good}}, failure.SignatureMissing},
			"other":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: other}, {Name: "demo-1.0.0.tgz.prov", Data: good}}, failure.SignatureInvalid},
			"named":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: other}, {Name: "demo-1.0.0.tgz.prov", Data: w.openpgp.Provenance(t, other, "else-1.0.0.tgz")}}, failure.SignatureInvalid},
			"1.1.0":  {[]github.File{{Name: "demo-1.1.0.tgz", Data: archive}, {Name: "demo-1.1.0.tgz.prov", Data: good}}, failure.SignatureInvalid},
			"large":  {[]github.File{{Name: "demo-1.0.0.tgz", Data: archive}, {Name: "demo-1.0.0.tgz.prov", Data: make([]byte, policy.MaxProvenance+1)}}, failure.ArtifactTooLarge},
		} {
			server.Publish("demo/charts", github.Release{Tag: tag, Files: tc.files})
			err := get(t, w.sources(t), reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{
				GitHub: &addonsv1.GitHubSource{URL: server.URL("demo/charts"), Asset: "demo-*.tgz", PlainHTTP: ptr.To(true)}, Version: tag, Verify: byKeyring(""),
			}})
			expectRefused(t, err, tc.reason)
		}
	})
	t.Run("in a registry", func(t *testing.T) {
		archive := targz.Of(t, chartEntry("provenance"))
		good := w.openpgp.Provenance(t, archive, "demo-1.0.0.tgz")
		w.server.PushWithProvenance(t, archive, good, "prov/demo", "1.0.0")
		if err := get(t, w.sources(t), w.ref("prov/demo", byKeyring(""))); err != nil {
			t.Error(err)
		}
		w.server.PushWithProvenance(t, archive, signing.NewOpenPGPKey(t, 0).Provenance(t, archive, "demo-1.0.0.tgz"), "other/demo", "1.0.0")
		expectRefused(t, get(t, w.sources(t), w.ref("other/demo", byKeyring(""))), failure.SignatureInvalid)
		w.server.PushWithProvenance(t, targz.Of(t, chartEntry("x")), good, "swapped/demo", "1.0.0")
		expectRefused(t, get(t, w.sources(t), w.ref("swapped/demo", byKeyring(""))), failure.SignatureInvalid)
	})
}

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
