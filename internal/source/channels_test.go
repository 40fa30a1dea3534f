// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/versions"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

func rangeOf(t testing.TB, text string) versions.Line {
	t.Helper()
	allowed, err := versions.ParseRange(text)
	must.Succeed(t, err)
	return allowed
}

func channelOf(t testing.TB, stack, name string) versions.Line {
	t.Helper()
	channel, err := clusterstack.ParseChannel(stack, name)
	must.Succeed(t, err)
	return channel
}

func releaseFiles(version string) map[string][]byte {
	return map[string][]byte{"metadata.yaml": []byte("versions: {clusterStack: " + version + "}\n")}
}

// A bundle's releases are whatever tags there are.
func TestFollowAChannel(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	push := func(tag, content string) string {
		return server.PushRelease(t, releaseFiles(content), "stacks", tag)
	}
	for _, tag := range []string{"docker-scs-1-31-v1", "docker-scs-1-31-v0-beta-9", "docker-scs-1-32-v7", "latest", "1.4.0", "1.4.1_build.7"} {
		push(tag, tag)
	}
	sources, clock := remoteSources(t, source.Options{CredentialsDir: trusting(t, server.CA)})
	bundle := &addonsv1.BundleSource{
		ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: server.URL("stacks")}}, ClusterStack: "docker-scs-1-31",
	}
	ref := reference.BundleOf("team-a", bundle)
	expect := func(line versions.Line, want string) {
		t.Helper()
		if got, err := sources.Newest(t.Context(), ref, line, clock.Now()); err != nil || got != want {
			t.Errorf("newest of %s is %q, %v; want %q", line, got, err, want)
		}
	}
	server.Requests(t)
	expect(channelOf(t, "docker-scs-1-31", ""), "docker-scs-1-31-v1")
	expect(channelOf(t, "docker-scs-1-31", "beta"), "docker-scs-1-31-v0-beta-9")
	expect(channelOf(t, "docker-scs-1-31", "custom"), "docker-scs-1-31-v0-beta-9")
	expect(channelOf(t, "docker-scs-1-32", ""), "docker-scs-1-32-v7")
	expect(rangeOf(t, "1.x"), "1.4.1+build.7")
	must.Len(t, 1, server.Requests(t), "requests")
	_, err := sources.Newest(t.Context(), ref, channelOf(t, "docker-scs-1-31", "alpha"), clock.Now())
	expectRefused(t, err, failure.ArtifactNotFound)

	clock.Step(time.Second)
	built := push("docker-scs-1-31-v0-beta-10", "ten")
	expect(channelOf(t, "docker-scs-1-31", "beta"), "docker-scs-1-31-v0-beta-10")
	digest, err := sources.Pin(t.Context(), ref, "docker-scs-1-31-v0-beta-10", clock.Now())
	if err != nil || digest != built {
		t.Fatalf("pinned %s, %v; want %s", digest, err, built)
	}
	pinned := bundle.DeepCopy()
	pinned.ClusterStack, pinned.Version, pinned.OCI.Digest = "", "docker-scs-1-31-v0-beta-10", digest
	push("docker-scs-1-31-v0-beta-10", "moved")
	opened, err := sources.OpenBundle(t.Context(), "team-a", pinned)
	if err != nil || opened.Digest != built {
		t.Fatalf("got %+v, %v", opened, err)
	}
	if data, _, _ := opened.Read("metadata.yaml"); !strings.Contains(string(data), "ten") {
		t.Errorf("a tag that was moved after it was pinned got in: %s", data)
	}
}

func TestFollowFiles(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	for _, version := range []string{"1.4.0", "1.4.10", "1.5.0", "latest"} {
		server.PushArchive(t, targz.Files(t, map[string]string{"kustomization.yaml": "# " + version}), "rules", version)
	}
	sources, clock := remoteSources(t, source.Options{CredentialsDir: trusting(t, server.CA)})
	for _, ref := range []reference.Reference{
		reference.KustomizationOf("team-a", &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: server.URL("rules")}, Version: "~1.4"}}),
		reference.ManifestsOf("team-a", &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: server.URL("rules")}, Version: "~1.4"}}),
	} {
		expectNewest(t, sources, ref, clock.Now(), "1.4.10")
		expectPinned(t, sources, ref, "1.4.10")
	}
}

// A release that is no good may be published again under its name.
func TestAPinIsAskedForAnew(t *testing.T) {
	server := registry.Start(t, registry.Options{})
	sources, clock := remoteSources(t, source.Options{CredentialsDir: trusting(t, server.CA)})
	server.Push(t, chartVersion(t, "0.1.0"), "charts/demo", "1.4.0")
	ref := inRegistry(server.URL("charts/demo"), "~1.4")
	look := clock.Now()
	for range 2 {
		if _, err := sources.Pin(t.Context(), ref, "1.4.0", look); asError(t, err).Reason != failure.DigestMismatch {
			t.Fatalf("got %v", err)
		}
	}
	good := server.Push(t, chartVersion(t, "1.4.0"), "charts/demo", "1.4.0")
	if _, err := sources.Pin(t.Context(), ref, "1.4.0", look); err == nil {
		t.Error("one look came to two answers")
	}
	clock.Step(time.Minute)
	if digest, err := sources.Pin(t.Context(), ref, "1.4.0", clock.Now()); err != nil || digest != good {
		t.Errorf("got %s, %v; want %s", digest, err, good)
	}
}

// Tags of signatures are no versions, nor are longer ones than a status has room for.
func TestManyTagsOfReleases(t *testing.T) {
	var tags []string
	for i := range 30_000 {
		tags = append(tags, fmt.Sprintf("sha256-%064x.sig", i))
	}
	tags = append(tags, fmt.Sprintf("sha256-%064x", 1), "docker-scs-1-31-v1", "docker-scs-1-31-v2-"+strings.Repeat("a", 200))
	sources, ref, clock := tagServer(t, func(w http.ResponseWriter, _ *http.Request) { sendTags(w, tags) })
	ref.Kind = artifact.KindBundle
	if got, err := sources.Newest(t.Context(), ref, channelOf(t, "docker-scs-1-31", ""), clock.Now()); err != nil || got != "docker-scs-1-31-v1" {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestKeysTellOfRotation(t *testing.T) {
	keys := &corev1.ConfigMap{ObjectMeta: named("team-a", "keys")}
	c := newCluster(t, secret("credentials"), secret("other"), keys)
	sources := newSources(t, source.Options{Client: c, Metadata: c.metadata()})
	ref := with("credentials", inRegistry("oci://example.org/web", "1.x"))
	ref.Chart.Verify = &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "keys"}}}}
	before := sources.Keys(t.Context(), ref)
	c.set(secret("other"))
	if sources.Keys(t.Context(), ref) != before {
		t.Error("an object that isn't named makes a difference")
	}
	for _, object := range []client.Object{secret("credentials"), keys} {
		c.set(object)
		after := sources.Keys(t.Context(), ref)
		if after == before {
			t.Errorf("%s makes no difference", object.GetName())
		}
		before = after
	}
	if c.requests.Load() > 0 {
		t.Error("it takes requests")
	}
}
