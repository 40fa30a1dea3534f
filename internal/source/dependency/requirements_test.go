// SPDX-License-Identifier: Apache-2.0

package dependency

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/downloader"
	"helm.sh/helm/v4/pkg/getter"
	repo "helm.sh/helm/v4/pkg/repo/v1"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/test/chartfiles"
)

// Locks that Helm itself makes are read as Helm reads them.
func TestLocksOfHelm(t *testing.T) {
	index := repo.NewIndexFile()
	archives := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = w.Write([]byte(chartfiles.YAML(t, index)))
			return
		}
		_, _ = w.Write(archives[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	for _, version := range []string{"1.0.0", "1.4.2", "2.0.0"} {
		archives["/redis-"+version+".tgz"] = chartfiles.Simple(t, "redis", version, "")
		if err := index.MustAdd(&chart.Metadata{APIVersion: "v2", Name: "redis", Version: version}, "redis-"+version+".tgz", server.URL, ""); err != nil {
			t.Fatal(err)
		}
	}
	const declared = `dependencies:
- {name: redis, version: 1.x.x, repository: URL, alias: cache, condition: cache.enabled, tags: [a, "b\tc"], import-values: [data, {child: x, parent: y}]}
- {name: redis, version: "2.0.0", repository: URL/, alias: queue}
- {name: beside, version: ">=0.1.0", repository: "file://../beside"}
`
	for name, files := range map[string]map[string]string{
		"Chart.lock":        {artifact.ChartFile: "apiVersion: v2\nname: umbrella\nversion: 1.0.0\n" + declared},
		"requirements.lock": {artifact.ChartFile: "apiVersion: v1\nname: umbrella\nversion: 1.0.0\n", RequirementsFile: declared},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			chartfiles.Write(t, filepath.Join(dir, "beside"), map[string]string{artifact.ChartFile: "apiVersion: v2\nname: beside\nversion: 0.3.0\n"})
			umbrella := map[string]string{}
			for file, data := range files {
				umbrella[file] = strings.ReplaceAll(data, "URL", server.URL)
			}
			chartfiles.Write(t, filepath.Join(dir, "umbrella"), umbrella)
			settings := cli.New()
			manager := downloader.Manager{
				Out: io.Discard, ChartPath: filepath.Join(dir, "umbrella"), Getters: getter.All(settings), SkipUpdate: false,
				RepositoryConfig: filepath.Join(dir, "repositories.yaml"), RepositoryCache: filepath.Join(dir, "cache"), ContentCache: filepath.Join(dir, "content"),
			}
			if err := manager.Update(); err != nil {
				t.Fatal(err)
			}
			found := map[string]string{}
			for _, file := range []string{artifact.ChartFile, lockFile, RequirementsFile, requirementsLock} {
				if data, err := os.ReadFile(filepath.Join(dir, "umbrella", file)); err == nil {
					found[file] = string(data)
				}
			}
			needs := readRequirements(chartfiles.Render(found), "", newEffort())
			if !needs.inSync() || needs.lockFile != name {
				t.Fatalf("%s isn't in sync with %s:\n%s", needs.lockFile, needs.file, found[name])
			}
			for i, want := range []string{"1.4.2", "2.0.0", "0.3.0"} {
				if got, err := needs.lockedVersion(needs.declared[i]); err != nil || got != want {
					t.Errorf("dependency %d: version %s, want %s (%v)", i, got, want, err)
				}
			}
			t.Run("all are vendored by Helm, so nothing is missing", func(t *testing.T) {
				loaded, err := loader.LoadDir(filepath.Join(dir, "umbrella"))
				if err != nil {
					t.Fatal(err)
				}
				all := map[string]string{}
				for _, file := range loaded.Raw {
					all[file.Name] = string(file.Data)
				}
				if wants, err := Missing(chartfiles.Render(all)); err != nil || len(wants) > 0 {
					t.Errorf("%v is missing (%v)", wants, err)
				}
			})
			for file := range files {
				found[file] = strings.Replace(found[file], "1.x.x", "1.4.x", 1)
			}
			if readRequirements(chartfiles.Render(found), "", newEffort()).inSync() {
				t.Error("a lock for other dependencies is in sync")
			}
		})
	}
}

// Helm 2 took the sum of requirements.yaml alone.
func TestLockOfHelm2(t *testing.T) {
	files := map[string]string{
		artifact.ChartFile: "apiVersion: v1\nname: issue-7233\nversion: 0.1.0\n",
		RequirementsFile:   "dependencies:\n- name: alpine\n  version: 0.1.0\n  repository: file://../alpine\n",
		requirementsLock:   "dependencies:\n- name: alpine\n  version: 0.1.0\n  repository: file://../alpine\ndigest: sha256:7b380b1a826e7be1eecb089f66209d6d3df54be4bf879d4a8e6f8a9e871710e5\n",
	}
	if !readRequirements(chartfiles.Render(files), "", newEffort()).inSync() {
		t.Error("it isn't in sync")
	}
	files[artifact.ChartFile] = strings.Replace(files[artifact.ChartFile], "v1", "v2", 1)
	if readRequirements(chartfiles.Render(files), "", newEffort()).inSync() {
		t.Error("charts of apiVersion v2 have no locks of Helm 2")
	}
}

func TestWhatIsMissing(t *testing.T) {
	const url, other = "https://charts.example.org", "https://other.example.org"
	archive := func(name, version string) string { return string(chartfiles.Simple(t, name, version, "")) }
	aliased := func(d *chart.Dependency, alias string) *chart.Dependency {
		d.Alias = alias
		return d
	}
	const wayOut = "run `helm dependency update`, and package the chart with the new Chart.lock, or with its dependencies (`helm package --dependency-update`)"
	tests := map[string]struct {
		declared []*chart.Dependency
		lock     []string // versions; none: no lock
		more     []string // files
		want     string   // names and versions
		refused  string
	}{
		"nothing declared":     {},
		"vendored as archive":  {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), more: []string{"charts/redis-1.2.0.tgz", archive("redis", "1.2.0")}},
		"under another name":   {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), more: []string{"charts/x.tgz", archive("redis", "1.2.0")}},
		"as a directory":       {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), more: []string{"charts/x/Chart.yaml", chartfiles.ChartYAML(t, "redis", "1.2.0")}},
		"in another version":   {declared: chartfiles.Deps(chartfiles.Dep("redis", "2.x", url)), more: []string{"charts/x/Chart.yaml", chartfiles.ChartYAML(t, "redis", "1.2.0")}},
		"as what Helm ignores": {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.2.0", url)), more: []string{"charts/_x/Chart.yaml", chartfiles.ChartYAML(t, "redis", "1.2.0")}, want: "redis 1.2.0"},
		"one of two versions": {
			declared: chartfiles.Deps(aliased(chartfiles.Dep("redis", "1.2.0", url), "a"), aliased(chartfiles.Dep("redis", "2.0.0", url), "b")), more: []string{"charts/x/Chart.yaml", chartfiles.ChartYAML(t, "redis", "1.2.0")},
			want: "redis 2.0.0",
		},
		"vendored, with a lock that is old": {
			declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), more: []string{"charts/redis-1.2.0.tgz", archive("redis", "1.2.0"), lockFile, "digest: sha256:00\ndependencies: []\n"},
		},
		"vendored, and that misses some itself": {
			declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), more: []string{"charts/x/Chart.yaml", chartfiles.ChartYAML(t, "redis", "1.2.0", chartfiles.Dep("common", "1.0.0", url))},
		},
		"locked":                 {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url), chartfiles.Dep("mysql", "~2", other)), lock: []string{"1.2.0", "v2.7.1"}, want: "redis 1.2.0, mysql v2.7.1"},
		"exact without a lock":   {declared: chartfiles.Deps(chartfiles.Dep("redis", "v1.2.0", url)), want: "redis v1.2.0"},
		"one chart twice":        {declared: chartfiles.Deps(aliased(chartfiles.Dep("redis", "1.2.0", url), "a"), aliased(chartfiles.Dep("redis", "1.2.0", url+"/"), "b")), want: "redis 1.2.0"},
		"a range without a lock": {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), refused: "it isn't in charts/, its version is a range, and there is no Chart.lock to say which one it is; " + wayOut},
		"half a version":         {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.2", url)), refused: "it isn't in charts/, its version is a range, and there is no Chart.lock to say which one it is; " + wayOut},
		"an old lock": {
			declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), more: []string{lockFile, chartfiles.Lock(t, chartfiles.Deps(chartfiles.Dep("redis", "2.x", url)), "1.2.0")},
			refused: "Chart.lock isn't up to date with Chart.yaml: it was made for other dependencies; " + wayOut,
		},
		"a lock that leads astray": {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), lock: []string{"2.0.0"}, refused: "Chart.lock has no version for it that Chart.yaml allows; " + wayOut},
		"a lock with a range":      {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.x", url)), lock: []string{"1.x"}, refused: "Chart.lock has no version for it that Chart.yaml allows; " + wayOut},
		"no repository":            {declared: chartfiles.Deps(chartfiles.Dep("redis", "1.2.0", "")), refused: "it isn't in charts/, and has no repository; package the chart with it, or say where it is"},
		"the same of two places": {
			declared: chartfiles.Deps(aliased(chartfiles.Dep("redis", "1.2.0", url), "a"), aliased(chartfiles.Dep("redis", "1.2.0", other), "b")),
			refused:  "the chart wants the same version from another repository, too; take it from one of both",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := chartfiles.Of(t, "umbrella", "1.0.0", test.declared, test.more...)
			if test.lock != nil {
				files[lockFile] = chartfiles.Lock(t, test.declared, test.lock...)
			}
			wants, err := Missing(chartfiles.Render(files))
			if test.refused != "" {
				index := len(test.declared) - 1
				d := test.declared[index]
				text := fieldOf(artifact.ChartFile, index) + ` of chart "umbrella 1.0.0", "` + d.Name + " " + d.Version + `"`
				if d.Repository != "" {
					text += ` at "` + d.Repository + `"`
				}
				if known, ok := errors.AsType[*failure.Error](err); !ok || known.Reason != failure.ArtifactInvalid || err.Error() != text+": "+test.refused {
					t.Errorf("got  %v\nwant %s: %s", err, text, test.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range wants {
				got = append(got, w.Name+" "+w.Version)
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("missing are %q, want %q", got, test.want)
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		var declared []*chart.Dependency
		for i := range Max + 1 {
			declared = append(declared, chartfiles.Dep("c"+strings.Repeat("x", i), "1.0.0", url))
		}
		_, err := Missing(chartfiles.Render(chartfiles.Of(t, "umbrella", "1.0.0", declared)))
		if known, ok := errors.AsType[*failure.Error](err); !ok || known.Reason != failure.ArtifactTooLarge {
			t.Errorf("got %v", err)
		}
	})
}

// YAML that grows, or has itself in it, isn't decoded.
func TestRequirementsThatGrow(t *testing.T) {
	bomb := "a: &a [" + strings.Repeat("xxxxxxxxxx, ", 100) + "]\nb: &b [" + strings.Repeat("*a, ", 100) + "]\nc: [" + strings.Repeat("*b, ", 100) + "]\n"
	for name, text := range map[string]string{"grows": bomb, "has itself in it": "a: &a [*a]\n", "too long": "a: " + strings.Repeat("x", MaxChartFile)} {
		files := map[string]string{artifact.ChartFile: chartfiles.ChartYAML(t, "a", "1.0.0", chartfiles.Dep("redis", "1.x", "https://charts.example.org")) + text}
		if needs := readRequirements(chartfiles.Render(files), "", newEffort()); len(needs.declared) > 0 {
			t.Errorf("%s: it was read", name)
		}
	}
}
