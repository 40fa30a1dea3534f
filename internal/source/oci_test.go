// SPDX-License-Identifier: Apache-2.0

package source

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/place"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/realdata"
	"github.com/cluster-chandler/chandler/test/registry"
	"github.com/cluster-chandler/chandler/test/targz"
)

// Credentials whose parts must not appear anywhere.
const (
	sentinelUser     = "sentinel-user-7c1e"
	sentinelPassword = "sentinel-password-93ab"
	sentinelToken    = "sentinel-token-51fd"
)

// expectNoSecrets fails if a text holds a part of the credentials.
func expectNoSecrets(t testing.TB, text string) {
	t.Helper()
	if strings.Contains(text, "sentinel") {
		t.Errorf("a secret is in %q", text)
	}
}

// inRegistry refers to a chart in a registry.
func inRegistry(url, version string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{OCI: &addonsv1.OCISource{URL: url}, Version: version}}
}

func chartVersion(t testing.TB, version string) []byte {
	t.Helper()
	return targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: " + version + "\n"})
}

// ownCredentialsFor writes the directory of an instance's own credentials.
func ownCredentialsFor(t testing.TB, dir string, r *registry.Registry, user, password string) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"auths": map[string]any{r.Host: map[string]string{"username": user, "password": password}}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "config.json"), string(config))
	write(t, filepath.Join(dir, "ca.crt"), string(r.CA))
}

// remoteSources reads from servers on this host, at a time that stands still.
func remoteSources(t testing.TB, options Options) (*Sources, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	options.AllowLoopback, options.Clock = true, clock
	return newSources(t, options), clock
}

func TestChartFromARegistry(t *testing.T) {
	users := map[string]string{sentinelUser: sentinelPassword}
	server := registry.Start(t, registry.Options{Users: users})
	archive := chartVersion(t, "1.0.0+build.7")
	manifest := server.Push(t, archive, "charts/demo", "1.0.0_build.7")
	dir := t.TempDir()
	ownCredentialsFor(t, dir, server, sentinelUser, sentinelPassword)
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	server.Requests(t)

	ref := inRegistry(server.URL("charts/demo"), "1.0.0+build.7")
	fetched := expectFetched(t, sources, ref)
	if want := (artifact.Content{Archive: archive}).Digest(); fetched.Digest != want {
		t.Errorf("digest %s, want that of the archive, %s", fetched.Digest, want)
	}
	got := server.Requests(t)
	want := []string{ // the first is refused, and says how to authenticate
		"GET /v2/charts/demo/manifests/1.0.0_build.7 401",
		"GET /v2/charts/demo/manifests/1.0.0_build.7 200",
		"GET /v2/charts/demo/blobs/" + fetched.Digest + " 200",
	}
	if !slices.Equal(got, want) {
		t.Errorf("requests\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	t.Run("again, it costs no request", func(t *testing.T) {
		expectFetched(t, sources, ref)
		if got := server.Requests(t); len(got) != 0 {
			t.Errorf("requests %q", got)
		}
	})
	t.Run("after a restart, known by its digest, it costs one", func(t *testing.T) {
		restarted, _ := remoteSources(t, Options{CredentialsDir: dir})
		if _, err := restarted.Fetch(t.Context(), ref, fetched.Digest); err != nil {
			t.Fatal(err)
		}
		if got := server.Requests(t); len(got) != 2 || !strings.HasSuffix(got[1], fetched.Digest+" 200") {
			t.Errorf("requests %q", got)
		}
		if sources.Version(t.Context(), ref) != restarted.Version(t.Context(), ref) {
			t.Error("the version differs after a restart")
		}
	})
	t.Run("by the manifest's digest", func(t *testing.T) {
		pinned := inRegistry(server.URL("charts/demo"), "")
		pinned.Chart.OCI.Digest = manifest
		if got := expectFetched(t, sources, pinned); got.Digest != fetched.Digest {
			t.Errorf("digest %s", got.Digest)
		}
		pinned.Chart.Version = "v1.0.0+build.7"
		expectFetched(t, sources, pinned)
		pinned.Chart.Version = "1.0.1"
		_, err := sources.Fetch(t.Context(), pinned, fetched.Digest)
		expectError(t, err, failure.DigestMismatch,
			"chart.oci: "+server.URL("charts/demo")+"@"+manifest+`: oci.digest is version "1.0.0+build.7" of the chart, not "1.0.1"; correct one of both`)
	})
	t.Run("what isn't there is called what was looked for", func(t *testing.T) {
		const tag, digest = "; publish it, or correct oci.url or version. A tag is the version written just so, with \"v\" or without", "; publish it, or correct oci.url or oci.digest. " + place.IfFollowed
		other := "sha256:" + strings.Repeat("a", 64)
		for kind, noun := range map[artifact.Kind]string{
			artifact.KindChart: "this chart", artifact.KindKustomization: "this kustomization", artifact.KindManifests: "these manifests", artifact.KindBundle: "this bundle",
		} {
			missing := inRegistry(server.URL("charts/demo"), "9.9.9")
			missing.Kind = kind
			_, err := sources.Resolve(t.Context(), missing)
			expectError(t, err, failure.ArtifactNotFound, kind.Field()+".oci: "+server.URL("charts/demo")+":9.9.9: the registry has no tag 9.9.9 of "+noun+", or doesn't show it to these credentials"+tag)
			missing.Chart.OCI.Digest = other
			_, err = sources.Resolve(t.Context(), missing)
			expectError(t, err, failure.ArtifactNotFound, kind.Field()+".oci: "+server.URL("charts/demo")+"@"+other+": the registry has no manifest "+other+" of "+noun+", or doesn't show it to these credentials"+digest)
		}
	})
	t.Run("a version that isn't there", func(t *testing.T) {
		_, err := sources.Resolve(t.Context(), inRegistry(server.URL("charts/demo"), "9.9.9"))
		missing := asError(t, err)
		if missing.Reason != failure.ArtifactNotFound || !missing.Wait || missing.RetryAfter <= 0 || !strings.Contains(err.Error(), "no tag 9.9.9") {
			t.Errorf("got %+v", missing)
		}
	})
}

func TestHundredClustersAskOnce(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	server.Requests(t)
	sources, _ := remoteSources(t, Options{})
	artifacts := make(chan *Artifact, 100)
	var done sync.WaitGroup
	for i := range cap(artifacts) {
		done.Go(func() {
			ref := inRegistry(server.URL("demo"), "1.0.0")
			ref.Chart.OCI.PlainHTTP = ptr.To(true)
			ref.Namespace = fmt.Sprintf("team-%d", i%5)
			digest, err := sources.Resolve(t.Context(), ref)
			if err != nil {
				t.Error(err)
				return
			}
			fetched, err := sources.Fetch(t.Context(), ref, digest)
			if err != nil {
				t.Error(err)
				return
			}
			artifacts <- fetched
		})
	}
	done.Wait()
	close(artifacts)
	expectOne(t, artifacts)
	if got := server.Requests(t); len(got) != 2 {
		t.Errorf("requests %q, want one for the manifest and one for the archive", got)
	}
}

func TestInstancesOwnCredentialsRotate(t *testing.T) {
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	server.Push(t, chartVersion(t, "2.0.0"), "demo", "2.0.0")
	dir := filepath.Join(t.TempDir(), "credentials")
	sources, clock := remoteSources(t, Options{CredentialsDir: dir})
	ref := inRegistry(server.URL("demo"), "1.0.0")

	// Nothing is there: not even trust in its certificate.
	_, err := sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnavailable, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+
		" fails the TLS handshake: its certificate is not signed by a known authority; ca.crt of the credentials may name one")
	write(t, filepath.Join(dir, "ca.crt"), string(server.CA))
	_, err = sources.Resolve(t.Context(), ref)
	key := strings.ReplaceAll(server.Host, ":", "_")
	expectError(t, err, failure.SourceUnauthorized, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+
		" wants to know who asks; name a Secret with credentials in its secretRef, or have them added to the provider instance's own Secret "+
		"chandler-credentials (config.json, or "+key+".username and "+key+".password)")
	if known := asError(t, err); !known.Wait || known.RetryAfter <= 0 || known.RetryAfter > ownCredentials {
		t.Errorf("wait %v, retry after %s", known.Wait, known.RetryAfter)
	}

	// They come, and are wrong at first.
	ownCredentialsFor(t, dir, server, sentinelUser, "sentinel-old")
	_, err = sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnauthorized, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+
		" answers Unauthorized to the provider instance's own credentials; have them corrected in its Secret chandler-credentials, or name another Secret in its secretRef")
	server.Requests(t)
	if _, err = sources.Resolve(t.Context(), ref); err == nil || len(server.Requests(t)) != 0 {
		t.Errorf("%v: it was asked again with the same credentials at once", err)
	}
	ownCredentialsFor(t, dir, server, sentinelUser, sentinelPassword)
	expectFetched(t, sources, ref)

	// The registry's users change, and the instance's credentials after them.
	server.SetUsers(t, map[string]string{sentinelUser: "sentinel-new"})
	if err := os.Chtimes(filepath.Join(dir, "config.json"), time.Now(), time.Now()); err != nil {
		t.Fatal(err)
	}
	clock.Step(time.Minute)
	next := inRegistry(server.URL("demo"), "2.0.0")
	_, err = sources.Resolve(t.Context(), next)
	if known := asError(t, err); known.Reason != failure.SourceUnauthorized {
		t.Errorf("got %v", err)
	}
	expectFetched(t, sources, ref) // what was resolved stays
	ownCredentialsFor(t, dir, server, sentinelUser, "sentinel-new")
	expectFetched(t, sources, next)
}

func TestCredentialsFromSecrets(t *testing.T) {
	c := startCluster(t)
	users := map[string]string{sentinelUser: sentinelPassword}
	server := registry.Start(t, registry.Options{Users: users})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	metadata := &counted{Reader: c.metadata}
	sources, clock := remoteSources(t, Options{Client: c.counted, Metadata: metadata})
	ref := inRegistry(server.URL("demo"), "1.0.0")
	ref.Chart.OCI.SecretRef = &addonsv1.CredentialsReference{Name: "registry"}

	_, err := sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnauthorized, "chart.oci.secretRef: Secret team-a/registry: there is no such Secret; create it in this namespace")

	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "registry"}, Data: map[string][]byte{"ca.crt": server.CA}}
	change := func(how func() error) {
		t.Helper()
		if err := how(); err != nil {
			t.Fatal(err)
		}
		// An event would start the next reconcile: so the metadata cache has it.
		for c.metadataVersion(t, secret) != secret.ResourceVersion {
			time.Sleep(5 * time.Millisecond)
		}
	}
	update := func(data map[string][]byte) {
		t.Helper()
		change(func() error {
			secret.Data = map[string][]byte{"ca.crt": server.CA}
			maps.Copy(secret.Data, data)
			return c.Update(t.Context(), secret)
		})
	}
	change(func() error { return c.Create(t.Context(), secret) })
	_, err = sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnauthorized, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+
		" wants to know who asks; Secret team-a/registry has no credentials for "+server.Host+": add username and password, token, or .dockerconfigjson")

	update(map[string][]byte{"username": []byte(sentinelUser), "password": []byte("sentinel-wrong")})
	_, err = sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnauthorized, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+
		" answers Unauthorized to the credentials of Secret team-a/registry; correct them, or what they are allowed")

	update(map[string][]byte{".dockerconfigjson": []byte(`{"auths": {"` + server.Host + `": {"auth": "sentinel"}}}`)})
	_, err = sources.Resolve(t.Context(), ref)
	expectError(t, err, failure.SourceUnauthorized,
		"chart.oci.secretRef: Secret team-a/registry: key .dockerconfigjson: auths[\""+server.Host+"\"] has an auth that isn't base64 of username:password; correct it")

	update(map[string][]byte{"username": []byte(sentinelUser + "\n"), "password": []byte(sentinelPassword + "\n")})
	expectFetched(t, sources, ref)

	t.Run("another namespace has no part in it", func(t *testing.T) {
		theirs := ref
		theirs.Namespace = "team-b"
		_, err := sources.Resolve(t.Context(), theirs)
		expectError(t, err, failure.SourceUnauthorized, "chart.oci.secretRef: Secret team-b/registry: there is no such Secret; create it in this namespace")
	})
	t.Run("nobody looks at credentials for what is known", func(t *testing.T) {
		before := metadata.requests.Load()
		expectResolved(t, sources, ref)
		if got := metadata.requests.Load() - before; got != 0 {
			t.Errorf("%d looks", got)
		}
	})
	t.Run("nobody asks for a Secret while nothing is new", func(t *testing.T) {
		before := c.counted.requests.Load()
		clock.Step(time.Hour)
		expectFetched(t, sources, ref)
		if got := c.counted.requests.Load() - before; got != 0 {
			t.Errorf("%d requests", got)
		}
	})
}

func TestVersionThatMoved(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	sources, clock := remoteSources(t, Options{})
	ref := inRegistry(server.URL("demo"), "1.0.0")
	ref.Chart.OCI.PlainHTTP = ptr.To(true)
	first := expectResolved(t, sources, ref)

	// The tag is moved, and what was there is gone.
	server.Stop()
	_, err := sources.Fetch(t.Context(), ref, first)
	expectError(t, err, failure.SourceUnavailable, "chart.oci: "+server.URL("demo")+":1.0.0: "+server.Host+" refuses connections; have its server started, or correct the address")
	again := registry.Start(t, registry.Options{PlainHTTP: true, Address: server.Host})
	again.Push(t, targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: targz.ChartYAML + "description: another one\n"}), "demo", "1.0.0")
	clock.Step(failure.MaxUnavailable * 2)

	_, err = sources.Fetch(t.Context(), ref, first)
	expectError(t, err, failure.ArtifactChanged, "chart.oci: "+server.URL("demo")+":1.0.0: the source no longer has the content that this version was resolved to ("+
		first+"); set oci.digest to the manifest that is to be installed, or publish this chart under another version")
	if now := expectFetched(t, sources, ref); now.Digest == first {
		t.Error("those who ask anew get what is gone")
	}
}

// It reports what the fetch of a real chart takes, and checks that it isn't absurd.
func TestRealChartFromARegistry(t *testing.T) {
	archive := realdata.Read(t, "charts", "cilium-1.20.0.tgz")
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	server.Push(t, archive, "charts/cilium", "1.20.0")
	dir := t.TempDir()
	ownCredentialsFor(t, dir, server, sentinelUser, sentinelPassword)
	sources, _ := remoteSources(t, Options{CredentialsDir: dir})
	server.Requests(t)
	ref := inRegistry(server.URL("charts/cilium"), "1.20.0")
	start := time.Now()
	fetched := expectFetched(t, sources, ref)
	t.Logf("%d files of %d KiB in %s, with %d requests", len(fetched.Files), len(archive)>>10, time.Since(start).Round(time.Millisecond), len(server.Requests(t)))
}

// expectOne checks that all callers were given the same artifact.
func expectOne(t *testing.T, artifacts <-chan *Artifact) {
	t.Helper()
	first := <-artifacts
	for fetched := range artifacts {
		if fetched != first {
			t.Fatal("it was unpacked more than once")
		}
	}
}
