// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// volume lays out charts as the kubelet lays out the volume of a ConfigMap.
func volume(t testing.TB, root, version string, files map[string]string) {
	t.Helper()
	for name, data := range files {
		write(t, filepath.Join(root, "..v"+version, name), data)
	}
	link(t, "..v"+version, filepath.Join(root, "..data_tmp"))
	rename(t, filepath.Join(root, "..data_tmp"), filepath.Join(root, "..data"))
	for name := range files {
		top, _, _ := strings.Cut(name, "/")
		if _, err := os.Lstat(filepath.Join(root, top)); err != nil {
			link(t, "..data/"+top, filepath.Join(root, top))
		}
	}
}

func TestVolumeOfAConfigMap(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{"demo.tgz": string(targz.Chart(t)), "Chart.yaml": targz.ChartYAML, "templates/x.yaml": "x"}
	volume(t, root, "1", files)
	sources := newSources(t, source.Options{ArtifactRoot: root})
	first := expectFetched(t, sources, atPath("demo.tgz"))
	whole := expectFetched(t, sources, atPath(".")) // a volume that is one chart's directory
	must.Equal(t, []string{"Chart.yaml", "demo.tgz", "templates/x.yaml"}, namesOf(whole))

	files["demo.tgz"] = string(targz.Chart(t, targz.Entry{Name: "demo/x"}))
	volume(t, root, "2", files)
	must.Succeed(t, os.RemoveAll(filepath.Join(root, "..v1")))
	if second := expectFetched(t, sources, atPath("demo.tgz")); second.Digest == first.Digest || len(second.Files) != 2 {
		t.Error("the swap of ..data wasn't noticed")
	}
	if expectResolved(t, sources, atPath(".")) == whole.Digest {
		t.Error("the swap of ..data wasn't noticed in the directory")
	}
}

func TestArtifactRootThatIsALink(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a/demo.tgz"), string(targz.Chart(t)))
	write(t, filepath.Join(dir, "b/demo.tgz"), string(targz.Chart(t, targz.Entry{Name: "demo/x"})))
	link(t, "a", filepath.Join(dir, "current"))
	sources := newSources(t, source.Options{ArtifactRoot: filepath.Join(dir, "current")})
	before := expectResolved(t, sources, atPath("demo.tgz"))
	link(t, "b", filepath.Join(dir, "next"))
	rename(t, filepath.Join(dir, "next"), filepath.Join(dir, "current"))
	if expectResolved(t, sources, atPath("demo.tgz")) == before {
		t.Error("the swap of the root wasn't noticed")
	}
	must.Succeed(t, os.Remove(filepath.Join(dir, "current")))
	_, err := sources.Resolve(t.Context(), atPath("demo.tgz"))
	expectRefused(t, err, failure.SourceUnavailable)
}
