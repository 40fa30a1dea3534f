// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
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
	for _, tc := range []struct{ tag, signed, unsigned string }{
		{"docker-scs-1-31-v1", "", ""},
		{"docker-scs-1-31-v0-sha-1", "", ""},
		{"v1", "", ""},
		{"docker-scs-1-31-v2", failure.SignatureInvalid, failure.ArtifactInvalid},
		{"docker-scs-1-31-v3", failure.SignatureInvalid, failure.ArtifactInvalid},
		{"v2", failure.SignatureInvalid, ""},
		{"latest", failure.SignatureInvalid, ""},
		{"docker-scs-1-31-v4", failure.SignatureInvalid, ""},
	} {
		for verify, reason := range map[*addonsv1.Verification]string{byKeys(""): tc.signed, nil: tc.unsigned} {
			t.Run(fmt.Sprint(tc.tag, " verified ", verify != nil), func(t *testing.T) {
				expectRefused(t, get(t, w.sources(t), reference.BundleOf("team-a", w.bundle("stacks", tc.tag, verify))), reason)
			})
		}
	}
	t.Run("as the newest", func(t *testing.T) {
		_, err := w.sources(t).Pin(t.Context(), reference.BundleOf("team-a", w.bundle("stacks", "", byKeys(""))), "docker-scs-1-31-v2", time.Time{})
		expectRefused(t, err, failure.SignatureInvalid)
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
			expectRefused(t, err, failure.ArtifactInvalid)
		}
	})
}

// TestReplayedFiles has kustomizations, manifests and bundles that say in their
// manifest which version they are, or don't.
func TestReplayedFiles(t *testing.T) {
	w := startSigned(t)
	manifests := map[string]string{}
	for tag, says := range map[string]string{"1.0.0": "1.0.0", "v1.1.0": "1.1.0", "1.2.0_build.7": "1.2.0+build.7", "2.0.0": "1.0.0", "3.0.0": "", "latest": "1.0.0"} {
		manifest := w.server.PushArchiveAs(t, targz.Files(t, map[string]string{"kustomization.yaml": "# " + tag}), "files", tag, says)
		signing.Attach(t, w.repository(t, "files"), manifest, w.key.Sign(t, manifest))
		manifests[tag] = manifest
	}
	for _, kind := range []artifact.Kind{artifact.KindKustomization, artifact.KindManifests, artifact.KindBundle} {
		at := func(version, digest string) reference.Reference {
			ref := w.ref("files", byKeys(""))
			ref.Kind, ref.Chart.Version, ref.Chart.OCI.Digest = kind, version, digest
			return ref
		}
		sources := w.sources(t) // what it remembers of one version is nothing for another
		for _, tc := range []struct{ version, digest, reason string }{
			{"1.0.0", "", ""},
			{"v1.1.0", "", ""},
			{"1.2.0+build.7", "", ""},
			{"2.0.0", "", failure.SignatureInvalid},
			{"2.0.0", manifests["2.0.0"], failure.SignatureInvalid},
			{"2.0.0", manifests["3.0.0"], ""},
			{"3.0.0", "", failure.SignatureInvalid},
			{"3.0.0", manifests["3.0.0"], ""},
			{"", manifests["3.0.0"], ""},
			{"", manifests["2.0.0"], ""},
			{"latest", "", failure.SignatureInvalid},
		} {
			t.Run(fmt.Sprintf("%s %s@%s", kind, tc.version, tc.digest), func(t *testing.T) {
				expectRefused(t, get(t, sources, at(tc.version, tc.digest)), tc.reason)
			})
		}
		for version, reason := range map[string]string{"1.0.0": "", "2.0.0": failure.SignatureInvalid, "3.0.0": failure.SignatureInvalid} {
			digest, err := sources.Pin(t.Context(), at("", ""), version, time.Time{})
			expectRefused(t, err, reason)
			if reason == "" && digest != manifests[version] {
				t.Errorf("%s %s is pinned to %s", kind, version, digest)
			}
		}
		unverified := at("2.0.0", "")
		unverified.Chart.Verify = nil
		expectRefused(t, get(t, sources, unverified), "")
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
		expectRefused(t, get(t, w.sources(t), ref), failure.SignatureInvalid)
	}
	expectRefused(t, get(t, w.sources(t), w.ref("charts/cilium", nil)), "")
}

// interrupted has jobs fail that read what a release says of itself, as where no worker has time for them.
type interrupted struct {
	opener.Opener
	fails atomic.Bool
}

func (i *interrupted) Open(ctx context.Context, job *opener.Job) (*opener.Opened, error) {
	if job.Unpack != nil && job.Unpack.Document != "" && i.fails.Load() {
		return nil, context.DeadlineExceeded
	}
	return i.Opener.Open(ctx, job)
}

// A worker that fails says nothing of the release, which is read again.
func TestInterruptedRelease(t *testing.T) {
	w := startSigned(t)
	for tag, version := range map[string]string{"docker-scs-1-31-v1": "v1", "docker-scs-1-31-v2": "v1"} {
		manifest := w.server.PushRelease(t, releaseAs("docker-scs-1-31", version), "stacks", tag)
		signing.Attach(t, w.repository(t, "stacks"), manifest, w.key.Sign(t, manifest))
	}
	for tag, reason := range map[string]string{"docker-scs-1-31-v1": "", "docker-scs-1-31-v2": failure.SignatureInvalid} {
		o := &interrupted{Opener: workers}
		o.fails.Store(true)
		sources, clock := remoteSources(t, source.Options{Client: w.cluster, Metadata: w.metadata(), Opener: o})
		ref := reference.BundleOf("team-a", w.bundle("stacks", tag, byKeys("")))
		expectRefused(t, get(t, sources, ref), failure.SourceUnavailable)
		o.fails.Store(false)
		clock.Step(10 * time.Minute)
		expectRefused(t, get(t, sources, ref), reason)
	}
}
