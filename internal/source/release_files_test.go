// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/github"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/registry"
)

// stackFiles are those of a Cluster Stack's release; the last ones make no add-ons.
func stackFiles() []github.File {
	return []github.File{
		file("metadata.yaml", []byte("versions: {}")), file("clusteraddon.yaml", []byte("b")), file("docker-scs-1-31-cluster-addon-v1.tgz", []byte("not looked into")),
		file("docker-scs-1-31-cluster-class-v1.tgz", []byte("unused")), file("docker-scs-1-31-node-images-v1.tgz", []byte("unused")),
	}
}

// listed is the list of files as docs/sources/github.md has it made with a shell.
func listed(files ...github.File) string {
	slices.SortFunc(files, func(a, b github.File) int { return strings.Compare(a.Name, b.Name) })
	list := "chandler release v1\n"
	for _, f := range files {
		list += fmt.Sprintf("%s %d %s\n", digestOf(f.Data), len(f.Data), f.Name)
	}
	return list
}

// stored is the file that the store has something in.
func stored(t testing.TB, dir, text string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	must.Succeed(t, err)
	for _, path := range found {
		if data, err := os.ReadFile(path); err == nil && string(data) == text {
			return path
		}
	}
	t.Fatalf("%s is in none of %q", text, found)
	return ""
}

// damages of one file in a store. Each has the whole bundle fetched again.
var damages = map[string]func(path string) error{
	"gone":      os.Remove,
	"truncated": func(path string) error { return os.Truncate(path, 0) },
	"another":   func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) },
}

func TestBundlesInReleases(t *testing.T) {
	for name, options := range map[string]github.Options{"digests": {Token: sentinelToken}, "no digests": {Token: sentinelToken, WithoutDigests: true}} {
		t.Run(name, func(t *testing.T) {
			w := startGitHub(t, options)
			files := stackFiles()
			w.publish("docker-scs-1-31-v1", files...)
			dir, ref := t.TempDir(), w.bundle("docker-scs-1-31-v1")
			got := expectFetched(t, w.sources(t, dir), ref)
			must.Equal(t, digestOf([]byte(listed(files[:3]...))), got.Digest, "the digest is")
			if want := []string{"clusteraddon.yaml", "docker-scs-1-31-cluster-addon-v1.tgz", "metadata.yaml"}; !slices.Equal(namesOf(got), want) {
				t.Errorf("files %q, want %q", namesOf(got), want)
			}
			must.Len(t, 7, w.Requests(), "requests")
			restarted := func() []string {
				if again, err := w.sources(t, dir).Fetch(t.Context(), ref, got.Digest); err != nil || !slices.Equal(namesOf(again), namesOf(got)) || !bytes.Equal(again.Files[0].Data, got.Files[0].Data) {
					t.Errorf("%+v, %v", again, err)
				}
				return w.Requests()
			}
			if got := restarted(); len(got) > 0 {
				t.Errorf("after a restart: requests %q", got)
			}
			for name, damage := range damages {
				must.Succeed(t, damage(stored(t, dir, "b")))
				must.Len(t, 7, restarted(), name)
				if got := restarted(); len(got) > 0 {
					t.Errorf("%s, and replaced: requests %q", name, got)
				}
			}

			w.publish("docker-scs-1-31-v1", append(stackFiles(), file("more", nil))...)
			w.clock.Step(time.Hour)
			_, err := w.sources(t, "").Fetch(t.Context(), ref, got.Digest)
			expectRefused(t, err, failure.ArtifactChanged)
			pinned := w.bundle("docker-scs-1-31-v1")
			pinned.Chart.GitHub.Digest = got.Digest
			expectRefused(t, get(t, w.sources(t, ""), pinned), failure.DigestMismatch)
			if got := w.Leaked(); len(got) > 0 {
				t.Errorf("the storage host was shown %q", got)
			}
		})
	}
}

// What is no release of a Cluster Stack is whole, whatever its files are called.
func TestOtherReleasesAreWhole(t *testing.T) {
	w := startGitHub(t, github.Options{})
	files := stackFiles()[1:]
	w.publish("v1", files...)
	if got := expectFetched(t, w.sources(t, ""), w.bundle("v1")); len(got.Files) != len(files) {
		t.Errorf("files %q", namesOf(got))
	}
}

func TestDamagedFileOfARelease(t *testing.T) {
	w := startGitHub(t, github.Options{})
	w.publish("v1", stackFiles()...)
	w.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.Contains(r.URL.Path, "/assets/") {
			return false
		}
		_, _ = w.Write([]byte("tampered with")) // who asked may be gone
		return true
	})
	expectRefused(t, get(t, w.sources(t, ""), w.bundle("v1")), failure.DigestMismatch)
}

func TestReleasesInRegistriesSurviveARestart(t *testing.T) {
	server := registry.Start(t, registry.Options{PlainHTTP: true})
	files := map[string][]byte{}
	for _, f := range stackFiles() {
		files[f.Name] = f.Data
	}
	digest := server.PushRelease(t, files, "docker-scs-1-31", "v1")
	ref := as(artifact.KindBundle, plainly(inRegistry(server.URL("docker-scs-1-31"), "v1")))
	dir := t.TempDir()
	restarted := func() []string {
		sources, _ := remoteSources(t, source.Options{Store: storeAt(dir)})
		server.Requests(t)
		if got, err := sources.Fetch(t.Context(), ref, digest); err != nil || len(got.Files) < 3 || got.Digest != digest {
			t.Errorf("%+v, %v", got, err)
		}
		return server.Requests(t)
	}
	restarted()
	if got := restarted(); len(got) > 0 {
		t.Errorf("requests %q", got)
	}
	for name, damage := range damages {
		must.Succeed(t, damage(stored(t, dir, "b")))
		if got := restarted(); len(got) == 0 {
			t.Errorf("%s: nothing was asked", name)
		}
		if got := restarted(); len(got) > 0 {
			t.Errorf("%s, and replaced: requests %q", name, got)
		}
	}
}
