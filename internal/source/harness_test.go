// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/credentials"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

func newSources(t testing.TB, options Options) *Sources {
	t.Helper()
	sources, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	return sources
}

// atPath refers to a path of the artifact root.
func atPath(path string) reference.Reference {
	return reference.Reference{Namespace: "team-a", Chart: addonsv1.ChartSource{Path: path}}
}

func inConfigMap(namespace, name, key string) reference.Reference {
	return reference.Reference{Namespace: namespace, Chart: addonsv1.ChartSource{ConfigMap: &addonsv1.ArtifactReference{Name: name, Key: key}}}
}

func inSecret(namespace, name, key string) reference.Reference {
	return reference.Reference{Namespace: namespace, Chart: addonsv1.ChartSource{Secret: &addonsv1.ArtifactReference{Name: name, Key: key}}}
}

// write makes a file with its directories.
func write(t testing.TB, path, data string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

// allowPlain lets credentials in a directory go to a host without TLS.
func allowPlain(t testing.TB, dir, host string) {
	t.Helper()
	write(t, filepath.Join(dir, credentials.KeyOf(host)+"."+credentials.KeyPlainHTTP), "true\n")
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func rename(t testing.TB, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

func expectResolved(t testing.TB, sources *Sources, ref reference.Reference) string {
	t.Helper()
	digest, err := sources.Resolve(t.Context(), ref)
	if err != nil {
		t.Fatalf("resolving %s: %v", ref, err)
	}
	return digest
}

func expectFetched(t testing.TB, sources *Sources, ref reference.Reference) *Artifact {
	t.Helper()
	artifact, err := sources.Fetch(t.Context(), ref, expectResolved(t, sources, ref))
	if err != nil {
		t.Fatalf("fetching %s: %v", ref, err)
	}
	return artifact
}

// asError expects an *Error.
func asError(t testing.TB, err error) *failure.Error {
	t.Helper()
	var known *failure.Error
	if !errors.As(err, &known) {
		t.Fatalf("got %v, want an *Error", err)
	}
	return known
}

// expectError expects an *Error with that reason and exactly that text.
func expectError(t testing.TB, err error, reason, text string) {
	t.Helper()
	if known := asError(t, err); known.Reason != reason || err.Error() != text {
		t.Errorf("got  %s: %s\nwant %s: %s", known.Reason, err, reason, text)
	}
}
