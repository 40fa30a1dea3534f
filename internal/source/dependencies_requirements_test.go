// SPDX-License-Identifier: Apache-2.0

package source

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/cli"
	"helm.sh/helm/v4/pkg/downloader"
	"helm.sh/helm/v4/pkg/getter"
	repo "helm.sh/helm/v4/pkg/repo/v1"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/artifact"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// renderFiles of a chart, as they come out of an archive.
func renderFiles(files map[string]string) []render.File {
	var all []render.File
	for name, data := range files {
		all = append(all, render.File{Name: name, Data: []byte(data)})
	}
	slices.SortFunc(all, func(a, b render.File) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Locks that Helm itself makes are read as Helm reads them.
func TestLocksOfHelm(t *testing.T) {
	index := repo.NewIndexFile()
	archives := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/index.yaml" {
			_, _ = w.Write([]byte(yamlOf(t, index)))
			return
		}
		_, _ = w.Write(archives[r.URL.Path])
	}))
	t.Cleanup(server.Close)
	for _, version := range []string{"1.0.0", "1.4.2", "2.0.0"} {
		archives["/redis-"+version+".tgz"] = simple(t, "redis", version, "")
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
		"requirements.lock": {artifact.ChartFile: "apiVersion: v1\nname: umbrella\nversion: 1.0.0\n", requirementsFile: declared},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "beside", artifact.ChartFile), "apiVersion: v2\nname: beside\nversion: 0.3.0\n")
			for file, data := range files {
				write(t, filepath.Join(dir, "umbrella", file), strings.ReplaceAll(data, "URL", server.URL))
			}
			settings := cli.New()
			manager := downloader.Manager{
				Out: io.Discard, ChartPath: filepath.Join(dir, "umbrella"), Getters: getter.All(settings), SkipUpdate: false,
				RepositoryConfig: filepath.Join(dir, "repositories.yaml"), RepositoryCache: filepath.Join(dir, "cache"), ContentCache: filepath.Join(dir, "content"),
			}
			if err := manager.Update(); err != nil {
				t.Fatal(err)
			}
			found := map[string]string{}
			for _, file := range []string{artifact.ChartFile, lockFile, requirementsFile, requirementsLock} {
				if data, err := os.ReadFile(filepath.Join(dir, "umbrella", file)); err == nil {
					found[file] = string(data)
				}
			}
			needs := readRequirements(renderFiles(found), "")
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
				if wants, err := missing(renderFiles(all)); err != nil || len(wants) > 0 {
					t.Errorf("%v is missing (%v)", wants, err)
				}
			})
			for file := range files {
				found[file] = strings.Replace(found[file], "1.x.x", "1.4.x", 1)
			}
			if readRequirements(renderFiles(found), "").inSync() {
				t.Error("a lock for other dependencies is in sync")
			}
		})
	}
}

// Helm 2 took the sum of requirements.yaml alone.
func TestLockOfHelm2(t *testing.T) {
	files := map[string]string{
		artifact.ChartFile: "apiVersion: v1\nname: issue-7233\nversion: 0.1.0\n",
		requirementsFile:   "dependencies:\n- name: alpine\n  version: 0.1.0\n  repository: file://../alpine\n",
		requirementsLock:   "dependencies:\n- name: alpine\n  version: 0.1.0\n  repository: file://../alpine\ndigest: sha256:7b380b1a826e7be1eecb089f66209d6d3df54be4bf879d4a8e6f8a9e871710e5\n",
	}
	if !readRequirements(renderFiles(files), "").inSync() {
		t.Error("it isn't in sync")
	}
	files[artifact.ChartFile] = strings.Replace(files[artifact.ChartFile], "v1", "v2", 1)
	if readRequirements(renderFiles(files), "").inSync() {
		t.Error("charts of apiVersion v2 have no locks of Helm 2")
	}
}

func TestWhatIsMissing(t *testing.T) {
	const url, other = "https://charts.example.org", "https://other.example.org"
	archive := func(name, version string) string { return string(simple(t, name, version, "")) }
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
		"vendored as archive":  {declared: deps(dep("redis", "1.x", url)), more: []string{"charts/redis-1.2.0.tgz", archive("redis", "1.2.0")}},
		"under another name":   {declared: deps(dep("redis", "1.x", url)), more: []string{"charts/x.tgz", archive("redis", "1.2.0")}},
		"as a directory":       {declared: deps(dep("redis", "1.x", url)), more: []string{"charts/x/Chart.yaml", chartYAMLOf(t, "redis", "1.2.0")}},
		"in another version":   {declared: deps(dep("redis", "2.x", url)), more: []string{"charts/x/Chart.yaml", chartYAMLOf(t, "redis", "1.2.0")}},
		"as what Helm ignores": {declared: deps(dep("redis", "1.2.0", url)), more: []string{"charts/_x/Chart.yaml", chartYAMLOf(t, "redis", "1.2.0")}, want: "redis 1.2.0"},
		"one of two versions": {
			declared: deps(aliased(dep("redis", "1.2.0", url), "a"), aliased(dep("redis", "2.0.0", url), "b")), more: []string{"charts/x/Chart.yaml", chartYAMLOf(t, "redis", "1.2.0")},
			want: "redis 2.0.0",
		},
		"vendored, with a lock that is old": {
			declared: deps(dep("redis", "1.x", url)), more: []string{"charts/redis-1.2.0.tgz", archive("redis", "1.2.0"), lockFile, "digest: sha256:00\ndependencies: []\n"},
		},
		"vendored, and that misses some itself": {
			declared: deps(dep("redis", "1.x", url)), more: []string{"charts/x/Chart.yaml", chartYAMLOf(t, "redis", "1.2.0", dep("common", "1.0.0", url))},
		},
		"locked":                 {declared: deps(dep("redis", "1.x", url), dep("mysql", "~2", other)), lock: []string{"1.2.0", "v2.7.1"}, want: "redis 1.2.0, mysql v2.7.1"},
		"exact without a lock":   {declared: deps(dep("redis", "v1.2.0", url)), want: "redis v1.2.0"},
		"one chart twice":        {declared: deps(aliased(dep("redis", "1.2.0", url), "a"), aliased(dep("redis", "1.2.0", url+"/"), "b")), want: "redis 1.2.0"},
		"a range without a lock": {declared: deps(dep("redis", "1.x", url)), refused: "it isn't in charts/, its version is a range, and there is no Chart.lock to say which one it is; " + wayOut},
		"half a version":         {declared: deps(dep("redis", "1.2", url)), refused: "it isn't in charts/, its version is a range, and there is no Chart.lock to say which one it is; " + wayOut},
		"an old lock": {
			declared: deps(dep("redis", "1.x", url)), more: []string{lockFile, lockOf(t, deps(dep("redis", "2.x", url)), "1.2.0")},
			refused: "Chart.lock isn't up to date with Chart.yaml: it was made for other dependencies; " + wayOut,
		},
		"a lock that leads astray": {declared: deps(dep("redis", "1.x", url)), lock: []string{"2.0.0"}, refused: "Chart.lock has no version for it that Chart.yaml allows; " + wayOut},
		"a lock with a range":      {declared: deps(dep("redis", "1.x", url)), lock: []string{"1.x"}, refused: "Chart.lock has no version for it that Chart.yaml allows; " + wayOut},
		"no repository":            {declared: deps(dep("redis", "1.2.0", "")), refused: "it isn't in charts/, and has no repository; package the chart with it, or say where it is"},
		"the same of two places": {
			declared: deps(aliased(dep("redis", "1.2.0", url), "a"), aliased(dep("redis", "1.2.0", other), "b")),
			refused:  "the chart wants the same version from another repository, too; take it from one of both",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := filesOf(t, "umbrella", "1.0.0", test.declared, test.more...)
			if test.lock != nil {
				files[lockFile] = lockOf(t, test.declared, test.lock...)
			}
			wants, err := missing(renderFiles(files))
			if test.refused != "" {
				index := len(test.declared) - 1
				d := test.declared[index]
				text := fieldOf(artifact.ChartFile, index) + ` of chart "umbrella 1.0.0", "` + d.Name + " " + d.Version + `"`
				if d.Repository != "" {
					text += ` at "` + d.Repository + `"`
				}
				expectError(t, err, failure.ArtifactInvalid, text+": "+test.refused)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range wants {
				got = append(got, w.name+" "+w.version)
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("missing are %q, want %q", got, test.want)
			}
		})
	}
	t.Run("too many", func(t *testing.T) {
		var declared []*chart.Dependency
		for i := range maxDependencies + 1 {
			declared = append(declared, dep("c"+strings.Repeat("x", i), "1.0.0", url))
		}
		if _, err := missing(renderFiles(filesOf(t, "umbrella", "1.0.0", declared))); asError(t, err).Reason != failure.ArtifactTooLarge {
			t.Errorf("got %v", err)
		}
	})
}

func TestAddressesOfDependencies(t *testing.T) {
	root := inRegistry("oci://registry.example.org/charts/umbrella", "1.0.0")
	for name, test := range map[string]struct {
		want    want
		plain   bool
		address string
		refused string
	}{
		"a registry":           {want: want{name: "redis", version: "1.0.0+b", repository: "oci://other.example.org/charts/"}, address: "oci://other.example.org/charts/redis:1.0.0_b over https"},
		"a repository":         {want: want{name: "redis", version: "1.0.0", repository: "https://charts.example.org/a/"}, address: "https://charts.example.org/a/redis 1.0.0 over https"},
		"the chart's registry": {want: want{name: "redis", version: "1.0.0", repository: "oci://registry.example.org/x"}, plain: true, address: "oci://registry.example.org/x/redis:1.0.0 over http"},
		"another, with TLS":    {want: want{name: "redis", version: "1.0.0", repository: "oci://other.example.org/x"}, plain: true, address: "oci://other.example.org/x/redis:1.0.0 over https"},
		"plain HTTP, allowed":  {want: want{name: "redis", version: "1.0.0", repository: "http://charts.example.org"}, plain: true, address: "http://charts.example.org/redis 1.0.0 over http"},
		"plain HTTP":           {want: want{name: "redis", version: "1.0.0", repository: "http://charts.example.org"}, refused: "has no TLS"},
		"a name":               {want: want{name: "redis", version: "1.0.0", repository: "@stable"}, refused: "set it to the repository's URL"},
		"an alias":             {want: want{name: "redis", version: "1.0.0", repository: "alias:stable"}, refused: "set it to the repository's URL"},
		"a word":               {want: want{name: "redis", version: "1.0.0", repository: "stable"}, refused: "no URL with https:// or oci://"},
		"another protocol":     {want: want{name: "redis", version: "1.0.0", repository: "s3://charts"}, refused: "no URL with https:// or oci://"},
		"a path":               {want: want{name: "redis", version: "1.0.0", repository: "file://../redis"}, refused: "only a chart in a directory has others beside it"},
		"a user":               {want: want{name: "redis", version: "1.0.0", repository: "https://u:sentinel@charts.example.org"}, refused: "without user, query and fragment"},
		"a query":              {want: want{name: "redis", version: "1.0.0", repository: "https://charts.example.org/?token=sentinel"}, refused: "without user, query and fragment"},
		"no host":              {want: want{name: "redis", version: "1.0.0", repository: "https:///a"}, refused: "without user, query and fragment"},
		"a long one":           {want: want{name: "redis", version: "1.0.0", repository: "https://charts.example.org/" + strings.Repeat("a", 1024)}, refused: "longer than 1024 bytes"},
		"capitals":             {want: want{name: "Redis", version: "1.0.0", repository: "oci://other.example.org"}, refused: "no address in a registry"},
		"a path for a name":    {want: want{name: "../redis", version: "1.0.0", repository: "https://charts.example.org"}, refused: "its name can't be that of a chart"},
		"an archive's name":    {want: want{name: "redis.tgz", version: "1.0.0", repository: "https://charts.example.org"}, refused: "its name can't be that of a chart"},
		"a path for a version": {want: want{name: "redis", version: "1.0.0/..", repository: "https://charts.example.org"}, refused: "can't be that of a chart"},
	} {
		t.Run(name, func(t *testing.T) {
			root := root
			root.Chart = *root.Chart.DeepCopy()
			root.Chart.OCI.PlainHTTP = &test.plain
			ref, err := test.want.reference(root)
			switch {
			case test.refused == "" && (err != nil || ref.String() != test.address):
				t.Errorf("got %s (%v), want %s", ref, err, test.address)
			case test.refused != "":
				refused := test.want.refused(err).Error()
				if err == nil || !strings.Contains(refused, test.refused) {
					t.Errorf("got %v, want %s", err, test.refused)
				}
				expectNoSecrets(t, refused)
			}
		})
	}
}

// YAML that grows, or has itself in it, isn't decoded.
func TestRequirementsThatGrow(t *testing.T) {
	bomb := "a: &a [" + strings.Repeat("xxxxxxxxxx, ", 100) + "]\nb: &b [" + strings.Repeat("*a, ", 100) + "]\nc: [" + strings.Repeat("*b, ", 100) + "]\n"
	for name, text := range map[string]string{"grows": bomb, "has itself in it": "a: &a [*a]\n", "too long": "a: " + strings.Repeat("x", maxChartFile)} {
		files := map[string]string{artifact.ChartFile: chartYAMLOf(t, "a", "1.0.0", dep("redis", "1.x", "https://charts.example.org")) + text}
		if needs := readRequirements(renderFiles(files), ""); len(needs.declared) > 0 {
			t.Errorf("%s: it was read", name)
		}
	}
}

// Whatever Chart.yaml and its lock say: what is to be fetched has a version, belongs
// in a directory of its own below charts/, and is at an address that the API would take.
func FuzzDependencies(f *testing.F) {
	declared := deps(dep("redis", "1.x", "https://charts.example.org"), dep("common", "2.0.0", "oci://registry.example.org/charts"))
	files := filesOf(f, "umbrella", "1.0.0", declared)
	f.Add(files[artifact.ChartFile], lockOf(f, declared, "1.2.0", "2.0.0"), "", "")
	f.Add("apiVersion: v1\nname: a\nversion: 1.0.0\n", "", "dependencies:\n- {name: b, version: 1.0.0, repository: &u 'https://x'}\n- {name: c, version: 1.0.0, repository: *u}\n", "digest: x\n")
	f.Add("apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: ../b, version: 1.0.0, repository: 'file://..'}]\n", "dependencies: [null]\n", "", "")
	f.Fuzz(func(t *testing.T, chartYAML, lock, requirements, legacyLock string) {
		all := map[string]string{artifact.ChartFile: chartYAML, "charts/x/Chart.yaml": chartYAML}
		for name, data := range map[string]string{lockFile: lock, requirementsFile: requirements, requirementsLock: legacyLock} {
			if data != "" {
				all[name] = data
			}
		}
		wants, err := missing(renderFiles(all))
		if err != nil {
			_ = asError(t, err) // that it is one is all there is to say of it
		}
		seen := map[string]bool{}
		for _, w := range wants {
			ref, err := w.reference(atPath("umbrella"))
			if err != nil {
				_ = asError(t, w.refused(err))
				continue
			}
			directory := w.within + w.directoryOf(w.version)
			if seen[directory] || artifact.CheckName(directory+artifact.ChartFile, artifact.Limits{}.WithDefaults()) != nil {
				t.Errorf("directory %q", directory)
			}
			seen[directory] = true
			if base := ref.base(); base.Scheme != "https" || base.Host == "" || base.User != nil || ref.secretRef() != nil || ref.Chart.Version == "" {
				t.Errorf("address %s", ref)
			}
		}
		if chart := renderFiles(all); len(besideOf("a/b", chart)) > 0 {
			for _, path := range besideOf("a/b", chart) {
				if path == ".." || strings.HasPrefix(path, "../") || strings.HasPrefix(path, "/") {
					t.Errorf("path %q", path)
				}
			}
		}
	})
}
