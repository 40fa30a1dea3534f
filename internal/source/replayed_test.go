// SPDX-License-Identifier: Apache-2.0

package source

import (
	"testing"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/signing"
	"github.com/cluster-chandler/chandler/test/targz"
)

// Whoever may write to a registry, and has no key, can show what was signed as something
// else: at another tag, or in another repository.

// releaseAs are the files of a Cluster Stack's release.
func releaseAs(stack, version string) map[string][]byte {
	return map[string][]byte{
		"metadata.yaml":                     []byte("versions: {clusterStack: " + version + ", kubernetes: v1.31.6, components: {clusterAddon: v1}}\n"),
		stack + "-cluster-addon-v1.tgz":     []byte("not looked into"),
		stack + "-cluster-class-" + version: []byte("not looked into"),
	}
}

func (w *signedWorld) bundle(repository, version string, verify *addonsv1.Verification) *addonsv1.BundleSource {
	return &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
		OCI: &addonsv1.OCISource{URL: w.server.URL(repository), PlainHTTP: ptr.To(true)}, Version: version, Verify: verify,
	}}
}

func TestReplayedReleases(t *testing.T) {
	w := startSigned(t)
	for tag, files := range map[string]map[string][]byte{
		"docker-scs-1-31-v1":       releaseAs("docker-scs-1-31", "v1"),
		"docker-scs-1-31-v2":       releaseAs("docker-scs-1-31", "v1"),
		"docker-scs-1-31-v3":       releaseAs("openstack-scs-1-31", "v3"),
		"docker-scs-1-31-v0-sha-1": releaseAs("docker-scs-1-31", "v0-sha.1"),
		"v1":                       releaseAs("docker-scs-1-31", "v1"),
		"v2":                       releaseAs("docker-scs-1-31", "v1"),
		"latest":                   releaseAs("docker-scs-1-31", "v1"),
		"docker-scs-1-31-v4":       {"README.md": []byte("# no release")},
	} {
		manifest := w.server.PushRelease(t, files, "stacks", tag)
		signing.Attach(t, w.repository(t, "stacks"), manifest, w.key.Sign(t, manifest))
	}
	const other = "what is published as docker-scs-1-31-v2 is version v1 of its Cluster Stack (versions.clusterStack of metadata.yaml); publish each release under its own tag"
	for _, tc := range []struct {
		tag, signed, unsigned, says string
	}{
		{tag: "docker-scs-1-31-v1"},
		{tag: "docker-scs-1-31-v0-sha-1"},
		{tag: "v1"},
		{"docker-scs-1-31-v2", failure.SignatureInvalid, failure.ArtifactInvalid, other},
		{"docker-scs-1-31-v3", failure.SignatureInvalid, failure.ArtifactInvalid, `has "openstack-scs-1-31-cluster-addon-v1.tgz", not docker-scs-1-31-cluster-addon-v1.tgz`},
		{"v2", failure.SignatureInvalid, "", "what is published as v2 is version v1"},
		{"latest", failure.SignatureInvalid, "", "doesn't say of which version it is; push and sign one with the annotation org.opencontainers.image.version=latest, or name this one in oci.digest"},
		{"docker-scs-1-31-v4", failure.SignatureInvalid, "", "doesn't say of which version it is"},
	} {
		for verify, reason := range map[*addonsv1.Verification]string{byKeys(""): tc.signed, nil: tc.unsigned} {
			err := get(t, w.sources(t), reference.BundleOf("team-a", w.bundle("stacks", tc.tag, verify)))
			if reason != "" {
				expectRefused(t, err, reason, tc.says)
			} else if err != nil {
				t.Errorf("%s, verified %t: %v", tc.tag, verify != nil, err)
			}
		}
	}
	t.Run("as the newest", func(t *testing.T) {
		_, err := w.sources(t).Pin(t.Context(), reference.BundleOf("team-a", w.bundle("stacks", "", byKeys(""))), "docker-scs-1-31-v2", time.Time{})
		expectRefused(t, err, failure.SignatureInvalid, other)
	})
	t.Run("at GitHub", func(t *testing.T) {
		server := github.Start(t, github.Options{PlainHTTP: true})
		var files []github.File
		for name, data := range releaseAs("docker-scs-1-31", "v1") {
			files = append(files, github.File{Name: name, Data: data})
		}
		for prefix, version := range map[string]string{"": "docker-scs-1-31-v2", "docker-scs-1-31-": "v2"} {
			server.Publish("demo/stacks", github.Release{Tag: prefix + version, Files: files})
			err := get(t, w.sources(t), reference.BundleOf("team-a", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{
				GitHub: &addonsv1.GitHubSource{URL: server.URL("demo/stacks"), TagPrefix: prefix, PlainHTTP: ptr.To(true)}, Version: version,
			}}))
			expectRefused(t, err, failure.ArtifactInvalid, other)
		}
	})
}

// TestReplayedFiles has kustomizations, manifests and bundles that say in their
// manifest which version they are, or don't.
func TestReplayedFiles(t *testing.T) {
	w := startSigned(t)
	manifests := map[string]string{}
	for tag, says := range map[string]string{"1.0.0": "1.0.0", "v1.1.0": "1.1.0", "1.2.0_build.7": "1.2.0+build.7", "2.0.0": "1.0.0", "3.0.0": "", "latest": "1.0.0"} {
		manifest := w.server.PushArchiveAs(t, packedFiles(t, map[string]string{"kustomization.yaml": "# " + tag}), "files", tag, says)
		signing.Attach(t, w.repository(t, "files"), manifest, w.key.Sign(t, manifest))
		manifests[tag] = manifest
	}
	const unsaid = "its manifest is signed, but doesn't say of which version it is; push and sign one with the annotation org.opencontainers.image.version=3.0.0, or name this one in oci.digest"
	const other = `what is signed is version "1.0.0" (annotation org.opencontainers.image.version of the manifest), not `
	for _, kind := range []artifact.Kind{artifact.KindKustomization, artifact.KindManifests, artifact.KindBundle} {
		at := func(version, digest string) reference.Reference {
			ref := w.ref("files", byKeys(""))
			ref.Kind, ref.Chart.Version, ref.Chart.OCI.Digest = kind, version, digest
			return ref
		}
		sources := w.sources(t) // what it remembers of one version is nothing for another
		for _, tc := range []struct{ version, digest, says string }{
			{"1.0.0", "", ""},
			{"v1.1.0", "", ""},
			{"1.2.0+build.7", "", ""},
			{"2.0.0", "", other + `"2.0.0"; `},
			{"2.0.0", manifests["2.0.0"], other + `"2.0.0"; publish it under its own version, or correct version`},
			{"2.0.0", manifests["3.0.0"], ""},
			{"3.0.0", "", unsaid},
			{"3.0.0", manifests["3.0.0"], ""},
			{"", manifests["3.0.0"], ""},
			{"", manifests["2.0.0"], ""},
			{"latest", "", other + `"latest"; `},
		} {
			err := get(t, sources, at(tc.version, tc.digest))
			if tc.says != "" {
				expectRefused(t, err, failure.SignatureInvalid, tc.says)
			} else if err != nil {
				t.Errorf("%s %s@%s: %v", kind, tc.version, tc.digest, err)
			}
		}
		for version, says := range map[string]string{"1.0.0": "", "2.0.0": other, "3.0.0": unsaid} {
			digest, err := sources.Pin(t.Context(), at("", ""), version, time.Time{})
			if says != "" {
				expectRefused(t, err, failure.SignatureInvalid, says)
			} else if err != nil || digest != manifests[version] {
				t.Errorf("%s %s is pinned to %s: %v", kind, version, digest, err)
			}
		}
		unverified := at("2.0.0", "")
		unverified.Chart.Verify = nil
		if err := get(t, sources, unverified); err != nil {
			t.Errorf("%s without verify: %v", kind, err)
		}
	}
}

func TestSwappedCharts(t *testing.T) {
	w := startSigned(t)
	archive := targz.Of(t, chartEntry("evil"))
	digest := w.server.Push(t, archive, "charts/cilium", "1.0.0")
	signing.Attach(t, w.repository(t, "charts/cilium"), digest, w.key.Sign(t, digest))
	named := w.ref("charts/cilium", byKeys(""))
	named.Chart.OCI.Digest = digest
	for _, ref := range []reference.Reference{w.ref("charts/cilium", byKeys("")), named} {
		expectRefused(t, get(t, w.sources(t), ref), failure.SignatureInvalid,
			`what is signed is chart "evil", not "cilium", as the last part of oci.url says; publish the signed chart in a repository of its own name, or correct oci.url`)
	}
	if err := get(t, w.sources(t), w.ref("charts/cilium", nil)); err != nil {
		t.Error(err)
	}
}
