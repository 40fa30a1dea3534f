// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// wholePage is the page all of whose commands package quickstart runs, and compares.
const wholePage = "docs/quick-start.md"

// TestSamplesAreCompared finds samples of output that no test compares with a run: no test has their name.
func TestSamplesAreCompared(t *testing.T) {
	sources := testSources(t)
	samples := Samples(t, root)
	for _, sample := range samples {
		if !strings.HasPrefix(sample.Name(), wholePage+":") && !isNamed(sources, sample.Name()) {
			t.Errorf("%s: no test compares the output with a run: add one to test/samples/testdata, or see docs.Sample. Its name is\n%s", sample.Where, sample.Name())
		}
	}
	if len(samples) < 20 {
		t.Errorf("found %d samples only", len(samples))
	}
	if isNamed(sources, "docs/health.md: kubectl get clusteraddon"+" ") {
		t.Error("the begin of a name is taken for a name")
	}
}

// testSources returns all that tests compare samples by: their code, and the data of package samples.
func testSources(t *testing.T) string {
	t.Helper()
	all := &strings.Builder{}
	must.Succeed(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") && !strings.HasPrefix(path, filepath.Join(root, "test/samples/testdata")) {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	}))
	return all.String()
}

// isNamed says whether a source has the whole name: in quotes, or at the end of a line.
func isNamed(sources, name string) bool {
	for _, end := range []string{"\"", "`", "\n"} {
		if strings.Contains(sources, name+end) {
			return true
		}
	}
	return false
}

func TestPlainText(t *testing.T) {
	if got, want := plain("NAME    AGE   \nprod  1d2h  http://127.0.0.1:4123/\nE1130 10:00:00.1 1 x.go] y\n"), "NAME AGE\nprod AGE http://127.0.0.1:PORT/"; got != want {
		t.Errorf("%q, and not %q", got, want)
	}
	if plain("1 of 2") == plain("2 of 2") {
		t.Error("counts are compared")
	}
}
