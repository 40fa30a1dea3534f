// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// packedFiles is an archive with these files.
func packedFiles(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name]))}
		if err := errors.Join(archive.WriteHeader(header), put(archive, files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(archive.Close(), zipped.Close()); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func put(to interface{ Write([]byte) (int, error) }, text string) error {
	_, err := to.Write([]byte(text))
	return err
}

const bundledChart = "apiVersion: v2\nname: cni\nversion: 1.0.0\n"

// inner are the files of an archive in a bundle.
func inner() map[string]string {
	return map[string]string{"cni/Chart.yaml": bundledChart, "cni/.helmignore": "*.bak\nold/\n", "cni/values.yaml": "a: 1\n", "cni/values.bak": "a: 0\n", "cni/old/b.yaml": "b"}
}

// bundleRoot is an artifact root with a bundle, as a directory and as an archive.
func bundleRoot(t *testing.T) (*Sources, string) {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"metadata.yaml": "a: 1", "addons.tgz": string(packedFiles(t, inner())), "charts/one.tgz": string(packedFiles(t, map[string]string{"one/Chart.yaml": bundledChart})),
		"plain/Chart.yaml": bundledChart, "none/README": "",
	}
	for name, text := range files {
		path := filepath.Join(root, "bundle", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "bundle.tgz"), packedFiles(t, files), 0o600); err != nil {
		t.Fatal(err)
	}
	sources, err := New(Options{ArtifactRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	return sources, root
}

func inBundle(bundle, path string) reference.Reference {
	return reference.ChartOf("fleet", addonsv1.ChartSource{Path: path}).In(&addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: bundle}})
}

func TestChartsInBundles(t *testing.T) {
	sources, root := bundleRoot(t)
	want := map[string][]string{
		"addons.tgz/cni": {".helmignore", "Chart.yaml", "values.yaml"},
		"charts/one.tgz": {"Chart.yaml"},
		"plain":          {"Chart.yaml"},
	}
	digests := map[string]string{}
	for _, bundle := range []string{"bundle", "bundle.tgz"} {
		for path, names := range want {
			digest, err := sources.Resolve(t.Context(), inBundle(bundle, path))
			if err != nil {
				t.Fatal(err)
			}
			if before := digests[path]; before != "" && before != digest {
				t.Errorf("%s has digest %s in one kind of bundle, and %s in the other", path, before, digest)
			}
			digests[path] = digest
			artifact, err := sources.Fetch(t.Context(), inBundle(bundle, path), digest)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, file := range artifact.Files {
				got = append(got, file.Name)
			}
			if !slices.Equal(got, names) {
				t.Errorf("%s in %s has %q, want %q", path, bundle, got, names)
			}
		}
	}

	// The same chart as a directory of the artifact root has the same digest.
	for name, text := range inner() {
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o750), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if digest, err := sources.Resolve(t.Context(), reference.ChartOf("fleet", addonsv1.ChartSource{Path: "cni"})); err != nil || digest != digests["addons.tgz/cni"] {
		t.Errorf("as a directory: %s, %v; want %s", digest, err, digests["addons.tgz/cni"])
	}
}

func TestPathsThatABundleDoesNotHave(t *testing.T) {
	sources, _ := bundleRoot(t)
	for path, want := range map[string]struct{ reason, says string }{
		"missing":             {failure.ArtifactNotFound, "the bundle has nothing of this name"},
		"addons.tgz/missing":  {failure.ArtifactNotFound, "the bundle has nothing of this name"},
		"../plain":            {failure.ArtifactNotFound, "the bundle has nothing of this name"},
		"none":                {failure.ArtifactInvalid, "no Chart.yaml"},
		"none/README":         {failure.ArtifactInvalid, "doesn't end in .tgz"},
		"charts/one.tgz/one/": {"", ""},
	} {
		_, err := sources.Resolve(t.Context(), inBundle("bundle", path))
		var located *failure.Error
		if want.reason == "" {
			if err != nil {
				t.Errorf("%s: %v", path, err)
			}
			continue
		}
		if !errors.As(err, &located) || located.Reason != want.reason || !strings.Contains(err.Error(), want.says) || located.Field != "chart.path" {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What a revision says isn't looked up again, and never taken for something else.
func TestPinnedBundle(t *testing.T) {
	sources, root := bundleRoot(t)
	pinned := inBundle("bundle.tgz", "addons.tgz/cni")
	bundle, err := sources.Resolve(t.Context(), reference.BundleOf("fleet", pinned.Bundle))
	if err != nil {
		t.Fatal(err)
	}
	pinned.Bundle.Digest = bundle
	digest, err := sources.Resolve(t.Context(), pinned)
	if err != nil {
		t.Fatal(err)
	}
	pinned.Chart.Digest = digest
	if version := sources.Version(t.Context(), pinned); version != bundle+" addons.tgz/cni" {
		t.Errorf("its version is %q", version)
	}
	if err := os.WriteFile(filepath.Join(root, "bundle.tgz"), packedFiles(t, map[string]string{"metadata.yaml": "another"}), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sources.Fetch(t.Context(), pinned, digest); err != nil {
		t.Errorf("what is in the cache: %v", err)
	}

	restarted, err := New(Options{ArtifactRoot: root})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := restarted.Resolve(t.Context(), pinned); err != nil || got != digest {
		t.Errorf("after a restart: %s, %v", got, err)
	}
	var located *failure.Error
	if _, err := restarted.Fetch(t.Context(), pinned, digest); !errors.As(err, &located) || located.Reason != failure.DigestMismatch || located.Field != "spec.source.path" || !located.Wait {
		t.Errorf("a bundle with other content: %v", err)
	}
}

func TestChartWithTheWrongDigest(t *testing.T) {
	sources, _ := bundleRoot(t)
	var located *failure.Error
	_, err := sources.Resolve(t.Context(), reference.ChartOf("fleet", addonsv1.ChartSource{Path: "bundle/plain", Digest: "sha256:" + strings.Repeat("0", 64)}))
	if !errors.As(err, &located) || located.Reason != failure.DigestMismatch || !strings.Contains(err.Error(), "correct chart.digest") {
		t.Errorf("%v", err)
	}
}
