// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/cluster-chandler/chandler/test/chartfiles"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/targz"
)

// chartYAML is that of a chart with dependencies, each as YAML in flow style.
func chartYAML(name, version string, dependencies ...string) string {
	text := fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)
	if len(dependencies) > 0 {
		text += "dependencies:\n- " + strings.Join(dependencies, "\n- ") + "\n"
	}
	return text
}

// times makes that many of something.
func times[T any](count int, next func(i int) T) []T {
	all := make([]T, count)
	for i := range all {
		all[i] = next(i)
	}
	return all
}

// alternatives is a range of about that many bytes.
func alternatives(bytes int) string { return strings.Repeat("1.0.0||", bytes/7) + "3" }

// umbrella is a chart with a Chart.yaml like that, and these files.
func umbrella(metadata string, files ...targz.Entry) func(testing.TB) []byte {
	return func(t testing.TB) []byte {
		return targz.Of(t, append([]targz.Entry{{Name: "demo/Chart.yaml", Data: metadata}}, files...)...)
	}
}

// file of the chart.
func file(name, data string) targz.Entry { return targz.Entry{Name: "demo/" + name, Data: data} }

// vendored are that many charts in charts/, with some text in Chart.yaml.
func vendored(count int, name, text string) []targz.Entry {
	return times(count, func(i int) targz.Entry {
		return file(fmt.Sprintf("charts/d%d/Chart.yaml", i), chartYAML(name, fmt.Sprintf("2.0.%d", i))+text)
	})
}

// Charts can be unpacked: what harms is in the files that say what they depend on, which the
// workers read.
func Charts() map[string]Archive {
	manyOf := func(allowed string) []string {
		return times(64, func(i int) string { return fmt.Sprintf("{name: a, alias: a%d, version: %q}", i, allowed) })
	}
	dense := "x: [" + strings.Repeat("a,", 15_000) + "a]\n"
	// Each has the next one 64 times, under other aliases.
	var chain []targz.Entry
	within := ""
	for i, name := range []string{"a", "b", "c", "d", "e"} {
		within += fmt.Sprintf("charts/%s-1.0.0/", name)
		next := string(rune('b' + i))
		chain = append(chain, file(within+"Chart.yaml", chartYAML(name, "1.0.0", aliases(next)...)))
	}
	return map[string]Archive{
		"many vendored charts for dependencies with long ranges": {"", "",
			umbrella(chartYAML("demo", "1.0.0", manyOf(alternatives(250))...), vendored(9000, "a", "")...)},
		"as many as may be": {"", "",
			umbrella(chartYAML("demo", "1.0.0", manyOf(alternatives(240))...), vendored(256, "a", "")...)},
		"a range that is too long": {"", "",
			umbrella(chartYAML("demo", "1.0.0", manyOf(alternatives(900))...), vendored(256, "a", "")...)},
		"vendored charts with a lot to parse": {"", "",
			umbrella(chartYAML("demo", "1.0.0", "{name: a, version: 1.0.0}"), vendored(480, "a", dense)...)},
		"a little to parse, and a lot else": {"", "",
			umbrella(chartYAML("demo", "1.0.0", "{name: a, version: '>1'}"), append(vendored(2, "a", dense), times(7, func(i int) targz.Entry {
				return file(fmt.Sprintf("x%d", i), strings.Repeat("\x00", 4*mebibyte))
			})...)...)},
		"a dependency with 64 dependencies, with 64 dependencies, and so on": {"", "",
			umbrella(chartYAML("demo", "1.0.0", aliases("a")...), chain...)},
		"too many dependencies in dependencies": {"", "",
			umbrella(chartYAML("demo", "1.0.0", times(64, besideNamed)...), slices.Concat(times(64, func(i int) targz.Entry {
				return file(fmt.Sprintf("charts/a%d-1.0.0/Chart.yaml", i), chartYAML(fmt.Sprintf("a%d", i), "1.0.0", times(5, func(j int) string {
					return fmt.Sprintf("{name: b%d, version: 1.0.0, repository: 'https://charts.example.org'}", j)
				})...))
			}))...)},
		"a lock with many versions": {"", "", lockOfMany},
	}
}

// aliases are 64 dependencies on one chart beside.
func aliases(name string) []string {
	return times(64, func(i int) string {
		return fmt.Sprintf("{name: %s, alias: %s%d, version: 1.0.0, repository: 'file://../%s'}", name, name, i, name)
	})
}

func besideNamed(i int) string {
	return fmt.Sprintf("{name: a%d, version: 1.0.0, repository: 'file://../a%d'}", i, i)
}

// lockOfMany is a chart whose lock is up to date, and has each of 64 dependencies many times.
func lockOfMany(t testing.TB) []byte {
	const repository = "https://charts.example.org"
	declared := times(64, func(i int) *chart.Dependency {
		return &chart.Dependency{Name: "a", Alias: fmt.Sprintf("a%d", i), Version: alternatives(240), Repository: repository}
	})
	locked := times(900, func(int) *chart.Dependency {
		return &chart.Dependency{Name: "a", Version: "0.0.1", Repository: repository}
	})
	sum, err := json.Marshal([2][]*chart.Dependency{declared, locked})
	must.Succeed(t, err)
	metadata, lock := &chart.Metadata{APIVersion: "v2", Name: "demo", Version: "1.0.0", Dependencies: declared},
		&chart.Lock{Digest: fmt.Sprintf("sha256:%x", sha256.Sum256(sum)), Dependencies: locked}
	return targz.Of(t, file("Chart.yaml", chartfiles.YAML(t, metadata)), file("Chart.lock", chartfiles.YAML(t, lock)))
}
