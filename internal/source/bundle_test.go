// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

const bundledChart = "apiVersion: v2\nname: cni\nversion: 1.0.0\n"

// inner are the files of an archive in a bundle.
func inner() map[string]string {
	return map[string]string{"cni/Chart.yaml": bundledChart, "cni/.helmignore": "*.bak\nold/\n", "cni/values.yaml": "a: 1\n", "cni/values.bak": "a: 0\n", "cni/old/b.yaml": "b"}
}

// bundleRoot is an artifact root with a bundle, as a directory and as an archive.
func bundleRoot(t *testing.T) (*source.Sources, string) {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{
		"metadata.yaml": "a: 1", "addons.tgz": string(targz.Files(t, inner())), "charts/one.tgz": string(targz.Files(t, map[string]string{"one/Chart.yaml": bundledChart})),
		"plain/Chart.yaml": bundledChart, "none/README": "",
	}
	for name, text := range files {
		write(t, filepath.Join(root, "bundle", name), text)
	}
	write(t, filepath.Join(root, "bundle.tgz"), string(targz.Files(t, files)))
	return newSources(t, source.Options{ArtifactRoot: root}), root
}

func inBundle(bundle, path string) reference.Reference {
	return reference.ChartOf("fleet", addonsv1.ChartSource{Path: path}).In(&addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: bundle}})
}

func TestChartsInBundles(t *testing.T) {
	sources, root := bundleRoot(t)
	digests := map[string]string{}
	for _, bundle := range []string{"bundle", "bundle.tgz"} {
		for path, names := range map[string][]string{
			"addons.tgz/cni": {".helmignore", "Chart.yaml", "values.yaml"},
			"charts/one.tgz": {"Chart.yaml"},
			"plain":          {"Chart.yaml"},
		} {
			fetched := expectFetched(t, sources, inBundle(bundle, path))
			if before := digests[path]; before != "" && before != fetched.Digest {
				t.Errorf("%s has digest %s in one kind of bundle, and %s in the other", path, before, fetched.Digest)
			}
			digests[path] = fetched.Digest
			must.Equal(t, names, namesOf(fetched), path, bundle)
		}
	}
	// The same chart as a directory of the artifact root has the same digest.
	for name, text := range inner() {
		write(t, filepath.Join(root, name), text)
	}
	must.Equal(t, digests["addons.tgz/cni"], expectResolved(t, sources, atPath("cni")), "as a directory")
}

func TestPathsThatABundleDoesNotHave(t *testing.T) {
	sources, _ := bundleRoot(t)
	for path, reason := range map[string]string{
		"missing": failure.ArtifactNotFound, "addons.tgz/missing": failure.ArtifactNotFound, "../plain": failure.ArtifactNotFound,
		"none": failure.ArtifactInvalid, "none/README": failure.ArtifactInvalid, "charts/one.tgz/one/": "",
	} {
		_, err := sources.Resolve(t.Context(), inBundle("bundle", path))
		expectRefused(t, err, reason)
		if reason != "" && asError(t, err).Field != "chart.path" {
			t.Errorf("%s: it is about %s", path, asError(t, err).Field)
		}
	}
}

// What OpenBundle returns reads files, also those in archives, and says what charts are.
func TestOpenBundle(t *testing.T) {
	sources, _ := bundleRoot(t)
	bundle, err := sources.OpenBundle(t.Context(), "fleet", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle.tgz"}})
	must.Succeed(t, err)
	if want := []string{"addons.tgz", "charts/one.tgz", "metadata.yaml", "none/README", "plain/Chart.yaml"}; !slices.Equal(bundle.Names(), want) {
		t.Errorf("files %q, want %q", bundle.Names(), want)
	}
	for name, want := range map[string]string{"metadata.yaml": "a: 1", "addons.tgz/cni/values.yaml": "a: 1\n", "missing": "", "addons.tgz/missing": ""} {
		if data, found, err := bundle.Read(name); err != nil || found != (want != "") || string(data) != want {
			t.Errorf("%s is %q (%v), %v", name, data, found, err)
		}
	}
	if document, found, err := bundle.ReadYAML("metadata.yaml"); err != nil || !found || string(document) != `{"a":1}` {
		t.Errorf("metadata.yaml is %s (%v), %v", document, found, err)
	}
	if digest, err := bundle.ChartDigest("addons.tgz/cni"); err != nil || digest != expectResolved(t, sources, inBundle("bundle", "addons.tgz/cni")) {
		t.Errorf("the chart is %s, %v", digest, err)
	}
	_, err = bundle.ChartDigest("none")
	expectRefused(t, err, failure.ArtifactInvalid)
	_, _, err = bundle.ReadYAML("addons.tgz")
	if known, ok := errors.AsType[*failure.Error](err); !ok || known.Reason != failure.ArtifactInvalid {
		t.Errorf("an archive as YAML: %v", err)
	}
}

// What a revision says isn't looked up again, and never taken for something else.
func TestPinnedBundle(t *testing.T) {
	sources, root := bundleRoot(t)
	pinned := inBundle("bundle.tgz", "addons.tgz/cni")
	pinned.Bundle.Digest = expectResolved(t, sources, reference.BundleOf("fleet", pinned.Bundle))
	pinned.Chart.Digest = expectResolved(t, sources, pinned)
	if version := sources.Version(t.Context(), pinned); !strings.HasPrefix(version, pinned.Bundle.Digest) {
		t.Errorf("its version is %q", version)
	}
	expectFetched(t, sources, pinned)
	write(t, filepath.Join(root, "bundle.tgz"), string(targz.Files(t, map[string]string{"metadata.yaml": "another"})))
	expectFetched(t, sources, pinned) // it is in the cache

	restarted := newSources(t, source.Options{ArtifactRoot: root})
	must.Equal(t, pinned.Chart.Digest, expectResolved(t, restarted, pinned), "after a restart it is")
	_, err := restarted.Fetch(t.Context(), pinned, pinned.Chart.Digest)
	expectRefused(t, err, failure.DigestMismatch)
	if known := asError(t, err); known.Field != "spec.source.path" || !known.Wait {
		t.Errorf("a bundle with other content: %+v", known)
	}
}

func TestChartWithTheWrongDigest(t *testing.T) {
	sources, _ := bundleRoot(t)
	_, err := sources.Resolve(t.Context(), reference.ChartOf("fleet", addonsv1.ChartSource{Path: "bundle/plain", Digest: "sha256:" + strings.Repeat("0", 64)}))
	expectRefused(t, err, failure.DigestMismatch)
}

// What paths lead into may be as large as one artifact, all together.
func TestArchivesOfABundleAreBoundedTogether(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{"cni/Chart.yaml": bundledChart, "cni/a": strings.Repeat("a", 3000), "cni/b": "", "cni/c": ""}
	one := string(targz.Files(t, files))
	write(t, filepath.Join(root, "bundle.tgz"), string(targz.Files(t, map[string]string{"a.tgz": one, "b.tgz": one + " ", "c.tgz": one + "  "})))
	for name, test := range map[string]struct {
		limits artifact.Limits
		reason string
	}{
		"they fit":   {artifact.Limits{}, ""},
		"their size": {artifact.Limits{TotalBytes: 8000}, failure.ArtifactTooLarge},
		"how many":   {artifact.Limits{Entries: 11}, failure.ArtifactTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			sources := newSources(t, source.Options{ArtifactRoot: root, Limits: test.limits})
			bundle, err := sources.OpenBundle(t.Context(), "fleet", &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle.tgz"}})
			for _, path := range []string{"a.tgz/cni", "b.tgz/cni", "a.tgz/cni", "c.tgz/cni"} {
				if err != nil {
					t.Fatalf("before %s: %v", path, err)
				}
				_, err = bundle.ChartDigest(path)
			}
			expectRefused(t, err, test.reason)
		})
	}
}
