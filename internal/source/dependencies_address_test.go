// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/test/chartfiles"
)

func TestAddressesOfDependencies(t *testing.T) {
	root := inRegistry("oci://registry.example.org/charts/umbrella", "1.0.0")
	for name, test := range map[string]struct {
		want    dependency.Want
		plain   bool
		address string
		refused string
	}{
		"a registry":           {want: dependency.Want{Name: "redis", Version: "1.0.0+b", Repository: "oci://other.example.org/charts/"}, address: "oci://other.example.org/charts/redis:1.0.0_b over https"},
		"a repository":         {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "https://charts.example.org/a/"}, address: "https://charts.example.org/a/redis 1.0.0 over https"},
		"the chart's registry": {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "oci://registry.example.org/x"}, plain: true, address: "oci://registry.example.org/x/redis:1.0.0 over http"},
		"another, with TLS":    {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "oci://other.example.org/x"}, plain: true, address: "oci://other.example.org/x/redis:1.0.0 over https"},
		"plain HTTP, allowed":  {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "http://charts.example.org"}, plain: true, address: "http://charts.example.org/redis 1.0.0 over http"},
		"plain HTTP":           {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "http://charts.example.org"}, refused: "has no TLS"},
		"a name":               {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "@stable"}, refused: "set it to the repository's URL"},
		"an alias":             {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "alias:stable"}, refused: "set it to the repository's URL"},
		"a word":               {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "stable"}, refused: "no URL with https:// or oci://"},
		"another protocol":     {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "s3://charts"}, refused: "no URL with https:// or oci://"},
		"a path":               {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "file://../redis"}, refused: "only a chart in a directory has others beside it"},
		"a user":               {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "https://u:sentinel@charts.example.org"}, refused: "without user, query and fragment"},
		"a query":              {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "https://charts.example.org/?token=sentinel"}, refused: "without user, query and fragment"},
		"no host":              {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "https:///a"}, refused: "without user, query and fragment"},
		"a long one":           {want: dependency.Want{Name: "redis", Version: "1.0.0", Repository: "https://charts.example.org/" + strings.Repeat("a", 1024)}, refused: "longer than 1024 bytes"},
		"capitals":             {want: dependency.Want{Name: "Redis", Version: "1.0.0", Repository: "oci://other.example.org"}, refused: "no address in a registry"},
		"a path for a name":    {want: dependency.Want{Name: "../redis", Version: "1.0.0", Repository: "https://charts.example.org"}, refused: "its name can't be that of a chart"},
		"an archive's name":    {want: dependency.Want{Name: "redis.tgz", Version: "1.0.0", Repository: "https://charts.example.org"}, refused: "its name can't be that of a chart"},
		"a path for a version": {want: dependency.Want{Name: "redis", Version: "1.0.0/..", Repository: "https://charts.example.org"}, refused: "can't be that of a chart"},
	} {
		t.Run(name, func(t *testing.T) {
			root := root
			root.Chart = *root.Chart.DeepCopy()
			root.Chart.OCI.PlainHTTP = &test.plain
			ref, err := root.Dependency(test.want)
			switch {
			case test.refused == "" && (err != nil || ref.String() != test.address):
				t.Errorf("got %s (%v), want %s", ref, err, test.address)
			case test.refused != "":
				refused := test.want.Refused(err).Error()
				if err == nil || !strings.Contains(refused, test.refused) {
					t.Errorf("got %v, want %s", err, test.refused)
				}
				expectNoSecrets(t, refused)
			}
		})
	}
}

// Whatever Chart.yaml and its lock say: what is to be fetched has a version, belongs
// in a directory of its own below charts/, and is at an address that the API would take.
func FuzzDependencies(f *testing.F) {
	declared := chartfiles.Deps(chartfiles.Dep("redis", "1.x", "https://charts.example.org"), chartfiles.Dep("common", "2.0.0", "oci://registry.example.org/charts"))
	files := chartfiles.Of(f, "umbrella", "1.0.0", declared)
	f.Add(files[artifact.ChartFile], chartfiles.Lock(f, declared, "1.2.0", "2.0.0"), "", "")
	f.Add("apiVersion: v1\nname: a\nversion: 1.0.0\n", "", "dependencies:\n- {name: b, version: 1.0.0, repository: &u 'https://x'}\n- {name: c, version: 1.0.0, repository: *u}\n", "digest: x\n")
	f.Add("apiVersion: v2\nname: a\nversion: 1.0.0\ndependencies: [{name: ../b, version: 1.0.0, repository: 'file://..'}]\n", "dependencies: [null]\n", "", "")
	f.Fuzz(func(t *testing.T, chartYAML, lock, requirements, legacyLock string) {
		all := map[string]string{artifact.ChartFile: chartYAML, "charts/x/Chart.yaml": chartYAML}
		for name, data := range map[string]string{"Chart.lock": lock, "requirements.yaml": requirements, "requirements.lock": legacyLock} {
			if data != "" {
				all[name] = data
			}
		}
		wants, err := dependency.Missing(chartfiles.Render(all))
		if err != nil {
			_ = asError(t, err) // that it is one is all there is to say of it
		}
		seen := map[string]bool{}
		for _, w := range wants {
			ref, err := atPath("umbrella").Dependency(w)
			if err != nil {
				_ = asError(t, w.Refused(err))
				continue
			}
			directory := w.Within + w.DirectoryOf(w.Version)
			if seen[directory] || artifact.CheckName(directory+artifact.ChartFile, artifact.Limits{}.WithDefaults()) != nil {
				t.Errorf("directory %q", directory)
			}
			seen[directory] = true
			if base := ref.Base(); base.Scheme != "https" || base.Host == "" || base.User != nil || ref.SecretRef() != nil || ref.Chart.Version == "" {
				t.Errorf("address %s", ref)
			}
		}
		if chart := chartfiles.Render(all); len(dependency.BesideOf("a/b", chart)) > 0 {
			for _, path := range dependency.BesideOf("a/b", chart) {
				if path == ".." || strings.HasPrefix(path, "../") || strings.HasPrefix(path, "/") {
					t.Errorf("path %q", path)
				}
			}
		}
	})
}
