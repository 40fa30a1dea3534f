// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

func TestRealCharts(t *testing.T) {
	root := realdata.Path(t, "charts")
	archives, err := filepath.Glob(filepath.Join(root, "*.tgz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in %s: %v", root, err)
	}
	sources := newSources(t, source.Options{ArtifactRoot: root})
	for _, file := range archives {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			fetched := expectFetched(t, sources, atPath(name))
			data, err := os.ReadFile(file)
			must.Succeed(t, err)
			sum := sha256.Sum256(data)
			must.Equal(t, "sha256:"+hex.EncodeToString(sum[:]), fetched.Digest, "its digest is")
			if again := expectFetched(t, newSources(t, source.Options{ArtifactRoot: root}), atPath(name)); again.Digest != fetched.Digest {
				t.Errorf("its digest is %s for another instance", again.Digest)
			}
			for _, want := range []string{"Chart.yaml", "values.yaml"} {
				if !slices.Contains(namesOf(fetched), want) {
					t.Errorf("it has no %s", want)
				}
			}

			// Unpacked, it is the same chart, but for what its .helmignore leaves out.
			dir := t.TempDir()
			for _, file := range fetched.Files {
				write(t, filepath.Join(dir, "chart", file.Name), string(file.Data))
			}
			directory := expectFetched(t, newSources(t, source.Options{ArtifactRoot: dir}), atPath("chart"))
			for _, file := range directory.Files {
				if !slices.Contains(namesOf(fetched), file.Name) {
					t.Errorf("the directory has %s in addition", file.Name)
				}
			}
		})
	}
}
