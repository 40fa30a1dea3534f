// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/go-logr/logr"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/store"
	"github.com/cluster-chandler/chandler/internal/source/unpack"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// Credentials whose parts must not appear anywhere.
const (
	sentinelUser     = "sentinel-user-7c1e"
	sentinelPassword = "sentinel-password-93ab"
	sentinelToken    = "sentinel-token-51fd"
)

func newSources(t testing.TB, options source.Options) *source.Sources {
	t.Helper()
	if options.Opener == nil {
		options.Opener = workers
	}
	if options.ArtifactRoot != "" && options.Clock == nil {
		options.Clock = clocktesting.NewFakeClock(time.Now()) // so that reading takes no time, and is done each time
	}
	sources, err := source.New(options)
	must.Succeed(t, err)
	return sources
}

// remoteSources reads from servers on this host, at a time that stands still.
func remoteSources(t testing.TB, options source.Options) (*source.Sources, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	options.AllowLoopback, options.Clock = true, clock
	return newSources(t, options), clock
}

// storeAt opens the store of a directory, as a process does when it starts.
func storeAt(dir string) *store.Store {
	return store.New(store.Options{Directory: dir, Log: logr.Discard()})
}

// expectResolved returns the digest that the reference is resolved to.
func expectResolved(t testing.TB, sources *source.Sources, ref reference.Reference) string {
	t.Helper()
	digest, err := sources.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatalf("resolving %s: %v", ref, err)
	}
	return digest
}

func expectFetched(t testing.TB, sources *source.Sources, ref reference.Reference) *unpack.Artifact {
	t.Helper()
	fetched, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
	if err != nil {
		t.Fatalf("fetching %s: %v", ref, err)
	}
	return fetched
}

// get resolves and fetches.
func get(t testing.TB, sources *source.Sources, ref reference.Reference) error {
	t.Helper()
	digest, err := sources.Resolve(t.Context(), ref)
	if err == nil {
		_, err = sources.Fetch(t.Context(), ref, digest)
	}
	return err
}

// asError expects an error that says where it is, and is fit for a condition.
func asError(t testing.TB, err error) *failure.Error {
	t.Helper()
	known, ok := errors.AsType[*failure.Error](err)
	if !ok {
		t.Fatalf("got %v, want a *failure.Error", err)
	}
	if known.Field == "" || len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), unicode.IsControl) {
		t.Errorf("the error isn't fit for a condition: %q at %q", err, known.Field)
	}
	expectNoSecrets(t, err.Error())
	return known
}

// expectRefused expects an error with that reason. Without a reason it expects none.
func expectRefused(t testing.TB, err error, reason string) {
	t.Helper()
	if reason == "" {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	if err == nil {
		t.Errorf("it is accepted, want %s", reason)
		return
	}
	if known := asError(t, err); known.Reason != reason {
		t.Errorf("got %s: %v, want %s", known.Reason, err, reason)
	}
}

// expectNoSecrets fails if a text holds a part of the credentials.
func expectNoSecrets(t testing.TB, text string) {
	t.Helper()
	if strings.Contains(text, "sentinel") {
		t.Errorf("a secret is in %q", text)
	}
}

// expectOne checks that all callers were given the same artifact.
func expectOne(t testing.TB, artifacts <-chan *unpack.Artifact) {
	t.Helper()
	first := <-artifacts
	for fetched := range artifacts {
		if fetched != first {
			t.Fatal("it was unpacked more than once")
		}
	}
}

// chartVersion is the archive of chart demo.
func chartVersion(t testing.TB, version string) []byte {
	t.Helper()
	return targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: " + version + "\n"})
}

// hostileVersion is an archive of it that is refused.
func hostileVersion(t testing.TB) []byte {
	t.Helper()
	return targz.Of(t, targz.Entry{Name: "demo/Chart.yaml", Data: "apiVersion: v2\nname: demo\nversion: 1.0.0\n"},
		targz.Entry{Name: "demo/templates/x.yaml", Link: "../../../etc/passwd", Kind: '2'})
}

// digestOf is what sha256sum prints.
func digestOf[T string | []byte](data T) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(data)))
}

func namesOf(fetched *unpack.Artifact) []string {
	names := []string{}
	for _, file := range fetched.Files {
		names = append(names, file.Name)
	}
	return names
}

// write makes a file with its directories.
func write(t testing.TB, path, data string) {
	t.Helper()
	must.Succeed(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Succeed(t, os.WriteFile(path, []byte(data), 0o644))
}

func link(t testing.TB, target, path string) {
	t.Helper()
	must.Succeed(t, os.Symlink(target, path))
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	must.Succeed(t, os.Rename(from, to))
}
