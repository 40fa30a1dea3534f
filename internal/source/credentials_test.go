// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

func TestInstancesOwnCredentialsRotate(t *testing.T) {
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	server.Push(t, chartVersion(t, "2.0.0"), "demo", "2.0.0")
	dir := filepath.Join(t.TempDir(), "credentials")
	sources, clock := remoteSources(t, source.Options{CredentialsDir: dir})
	ref := inRegistry(server.URL("demo"), "1.0.0")

	// Nothing is there: not even trust in its certificate.
	_, err := sources.Resolve(t.Context(), ref)
	expectRefused(t, err, failure.SourceUntrusted)
	write(t, filepath.Join(dir, "ca.crt"), string(server.CA))
	_, err = sources.Resolve(t.Context(), ref)
	expectRefused(t, err, failure.SourceUnauthorized)
	if known := asError(t, err); !known.Wait || known.RetryAfter <= 0 || known.RetryAfter > 10*time.Second {
		t.Errorf("wait %v, retry after %s", known.Wait, known.RetryAfter)
	}

	// They come, and are wrong at first.
	ownCredentialsFor(t, dir, server, sentinelUser, "sentinel-old")
	_, err = sources.Resolve(t.Context(), ref)
	expectRefused(t, err, failure.SourceUnauthorized)
	server.Requests(t)
	if _, err = sources.Resolve(t.Context(), ref); err == nil || len(server.Requests(t)) != 0 {
		t.Errorf("%v: it was asked again with the same credentials at once", err)
	}
	ownCredentialsFor(t, dir, server, sentinelUser, sentinelPassword)
	expectFetched(t, sources, ref)

	// The registry's users change, and the instance's credentials after them.
	server.SetUsers(t, map[string]string{sentinelUser: "sentinel-new"})
	must.Succeed(t, os.Chtimes(filepath.Join(dir, "config.json"), time.Now(), time.Now()))
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
	c := newCluster(t)
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	server.Push(t, chartVersion(t, "1.0.0"), "demo", "1.0.0")
	sources, clock := remoteSources(t, source.Options{Client: c, Metadata: c.metadata()})
	ref := with("registry", inRegistry(server.URL("demo"), "1.0.0"))

	_, err := sources.Resolve(t.Context(), ref)
	expectRefused(t, err, failure.SourceUnauthorized)
	must.Equal(t, "chart.oci.secretRef", asError(t, err).Field, "it is about")
	for name, keys := range map[string][]string{
		"nothing for this registry": nil,
		"a wrong password":          {"username", sentinelUser, "password", "sentinel-wrong"},
		"no base64":                 {".dockerconfigjson", `{"auths": {"` + server.Host + `": {"auth": "sentinel"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			c.set(secret("registry", append(keys, "ca.crt", string(server.CA))...))
			expectRefused(t, get(t, sources, ref), failure.SourceUnauthorized)
			server.Requests(t)
			expectRefused(t, get(t, sources, ref), failure.SourceUnauthorized)
			if got := server.Requests(t); len(got) > 0 {
				t.Errorf("requests %q: it was asked again with the same credentials at once", got)
			}
		})
	}
	c.set(secret("registry", "ca.crt", string(server.CA), "username", sentinelUser+"\n", "password", sentinelPassword+"\n"))
	expectFetched(t, sources, ref) // at once, though failures are remembered

	t.Run("another namespace has no part in it", func(t *testing.T) {
		theirs := ref
		theirs.Namespace = "team-b"
		expectRefused(t, get(t, sources, theirs), failure.SourceUnauthorized)
	})
	t.Run("nobody asks for a Secret while nothing is new", func(t *testing.T) {
		before := c.requests.Load()
		clock.Step(time.Hour)
		expectFetched(t, sources, ref)
		must.Equal(t, 0, c.requests.Load()-before, "requests")
	})
}

// TestSecretsThatTheCacheDoesNotKnowYet keeps content from those who know its digest, and name
// another Secret that the cache doesn't know either.
func TestSecretsThatTheCacheDoesNotKnowYet(t *testing.T) {
	c := newCluster(t)
	server := registry.Start(t, registry.Options{Users: map[string]string{sentinelUser: sentinelPassword}})
	archive := chartVersion(t, "1.0.0")
	server.Push(t, archive, "demo", "1.0.0")
	c.set(secret("registry", "ca.crt", string(server.CA), "username", sentinelUser, "password", sentinelPassword))
	dir := t.TempDir()
	sources, _ := remoteSources(t, source.Options{Client: c, Metadata: newCluster(t).metadata(), Store: storeAt(dir)})
	expectFetched(t, sources, with("registry", inRegistry(server.URL("demo"), "1.0.0")))

	expectNothingStored(t, dir) // nobody knows whose it is
	theirs := with("registry", atAddress("http://127.0.0.1:1/x", digestOf(archive)))
	theirs.Namespace = "team-b"
	if err := get(t, sources, theirs); err == nil {
		t.Error("they got what only team-a's credentials give")
	}
}

// References that show the same credentials, none here, share a refusal. Each is told what it can do itself.
func TestSharedRefusalsNameNoSecretOfOthers(t *testing.T) {
	repository := serving(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	sources, _ := remoteSources(t, source.Options{Client: newCluster(t, secret("other-host", credentials.KeyConfig, `{"auths": {}}`))})
	theirs := plainly(inRepository(repository.URL, "1.0.0"))
	theirs.Chart.Helm.SecretRef = &addonsv1.CredentialsReference{Name: "other-host"}
	ours := plainly(inRepository(repository.URL, "1.0.0"))
	ours.Namespace = "team-b"
	for _, ref := range []reference.Reference{theirs, ours, theirs} {
		_, err := sources.Resolve(t.Context(), ref)
		expectRefused(t, err, failure.SourceUnauthorized)
		if names := strings.Contains(err.Error(), "team-a/other-host"); names != (ref.Namespace == "team-a") {
			t.Errorf("%s is told: %v", ref.Namespace, err)
		}
	}
}
