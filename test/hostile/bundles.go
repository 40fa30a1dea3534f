// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/test/targz"
)

// Bundles can be unpacked: what harms is how many charts there are in one, and what it
// takes to look at them.
func Bundles() map[string]Bundle {
	bundle := func(entries ...targz.Entry) func(testing.TB) []byte {
		return func(t testing.TB) []byte { return targz.Of(t, entries...) }
	}
	const many = 40
	bomb := func(t testing.TB) targz.Entry {
		zeros := strings.Repeat("\x00", 5*mebibyte)
		return targz.Entry{Data: string(targz.Of(t, append(times(6, func(i int) targz.Entry {
			return targz.Entry{Name: fmt.Sprintf("c/%d", i), Data: zeros}
		}), targz.Entry{Name: "c/Chart.yaml", Data: targz.ChartYAML})...))}
	}
	return map[string]Bundle{
		"many archives that are large together": {
			Archive{failure.ArtifactTooLarge, "33554432 bytes", func(t testing.TB) []byte {
				archive := bomb(t)
				return targz.Of(t, times(many, func(i int) targz.Entry { return targz.Entry{Name: fmt.Sprintf("a%d.tgz", i), Data: archive.Data} })...)
			}},
			times(many, func(i int) string { return fmt.Sprintf("a%d.tgz/c", i) }),
		},
		"large archives in each other": {
			Archive{failure.ArtifactTooLarge, "33554432 bytes", func(t testing.TB) []byte {
				zeros, inner := strings.Repeat("\x00", 5*mebibyte), targz.Entry{Name: "c/Chart.yaml", Data: targz.ChartYAML}
				for range 4 {
					packed := targz.Of(t, append(times(5, func(i int) targz.Entry { return targz.Entry{Name: fmt.Sprint(i), Data: zeros} }), inner)...)
					inner = targz.Entry{Name: "a.tgz", Data: string(packed)}
				}
				return targz.Of(t, inner)
			}},
			[]string{"a.tgz/a.tgz/a.tgz/a.tgz/c"},
		},
		"a .helmignore that is too large": {
			Archive{failure.ArtifactTooLarge, ".helmignore is larger than 65536 bytes", bundle(ignoring(500, "x", 500_000)...)},
			[]string{"c"},
		},
		"a .helmignore that takes long to compare": {
			Archive{failure.ArtifactTooLarge, "takes too long to compare", bundle(ignoring(9000, strings.Repeat("*a", 30)+"b", 60_000)...)},
			[]string{"c"},
		},
		"a .helmignore for many directories": {
			Archive{failure.ArtifactTooLarge, "takes too long to compare", bundle(append(ignoring(0, "x", 60_000), times(9000, func(i int) targz.Entry {
				return targz.Entry{Name: fmt.Sprintf("c/%d/", i) + strings.Repeat("d/", 28) + "x"}
			})...)...)},
			[]string{"c"},
		},
		"dependencies beside that fan out":                     {besides(8, 4), []string{"c"}},
		"dependencies beside that fan out further":             {besides(16, 4), []string{"c"}},
		"dependencies beside that have much to parse":          besideWith("x: ["+strings.Repeat("a,", 15_000)+"a]\n", 0, ""),
		"dependencies beside that are large together":          besideWith("", 4*mebibyte, "33554432 bytes"),
		"a dependency beside with many names to be put before": {besideMany(), []string{"c"}},
	}
}

// ignoring is a chart with that many files, and that much of such patterns in .helmignore.
func ignoring(files int, pattern string, bytes int) []targz.Entry {
	patterns := strings.Repeat(pattern+"\n", bytes/(len(pattern)+1))
	return append(times(files, func(i int) targz.Entry {
		return targz.Entry{Name: fmt.Sprintf("c/d/%s%d", strings.Repeat("a", 200), i)}
	}), targz.Entry{Name: "c/Chart.yaml", Data: targz.ChartYAML}, targz.Entry{Name: "c/.helmignore", Data: patterns})
}

// besides is a bundle with a chart that has so many beside it, each of which has so many, and so on.
func besides(fan, levels int) Archive {
	name := func(level, i int) string { return fmt.Sprintf("l%dx%d", level, i) }
	next := func(level int) []string {
		if level == levels {
			return nil
		}
		return times(fan, func(i int) string {
			return fmt.Sprintf("{name: %[1]s, version: 1.0.0, repository: 'file://../%[1]s'}", name(level, i))
		})
	}
	entries := []targz.Entry{{Name: "c/Chart.yaml", Data: chartYAML("c", "1.0.0", next(0)...)}}
	for level := range levels {
		for i := range fan {
			entries = append(entries, targz.Entry{Name: name(level, i) + "/Chart.yaml", Data: chartYAML(name(level, i), "1.0.0", next(level+1)...)})
		}
	}
	return Archive{failure.ArtifactTooLarge, "more than 64 dependencies", only(entries...)}
}

// besideWith is a bundle with a chart that has 60 beside it, each with this in Chart.yaml, and
// a file that they all are too large for. Nothing is said if it does no harm.
func besideWith(metadata string, size int, says string) Bundle {
	entries := []targz.Entry{{Name: "c/Chart.yaml", Data: chartYAML("c", "1.0.0", times(60, besideNamed)...)}}
	for i := range 60 {
		name := fmt.Sprintf("a%d", i)
		entries = append(entries, targz.Entry{Name: name + "/Chart.yaml", Data: chartYAML(name, "1.0.0") + metadata})
		if size > 0 && i < 7 {
			// an archive of zeros is small, and large when it is looked into
			entries = append(entries, targz.Entry{Name: name + "/charts/x.tgz", Kind: 0, Data: ""})
		}
	}
	reason := failure.ArtifactTooLarge
	if says == "" {
		reason = ""
	}
	return Bundle{Archive{reason, says, func(t testing.TB) []byte {
		if size > 0 {
			bomb := string(targz.Chart(t, targz.Entry{Name: "demo/x", Data: strings.Repeat("\x00", size)}, targz.Entry{Name: "demo/y", Data: strings.Repeat("\x00", size)}))
			for i := range entries {
				if strings.HasSuffix(entries[i].Name, ".tgz") {
					entries[i].Data = bomb
				}
			}
		}
		return targz.Of(t, entries...)
	}}, []string{"c"}}
}

// besideMany is a bundle with a chart of thousands of files that another has under 60 names.
func besideMany() Archive {
	dependencies := times(60, func(i int) string {
		return fmt.Sprintf("{name: a, alias: a%[1]d, version: 1.0.0, repository: 'file://../a%[1]d'}", i)
	})
	entries := []targz.Entry{{Name: "c/Chart.yaml", Data: chartYAML("c", "1.0.0", dependencies...)}}
	for i := range 60 {
		entries = append(entries, targz.Entry{Name: fmt.Sprintf("a%d/Chart.yaml", i), Data: chartYAML("a", "1.0.0")})
		entries = append(entries, times(150, func(j int) targz.Entry { return targz.Entry{Name: fmt.Sprintf("a%d/%d", i, j)} })...)
	}
	return Archive{failure.ArtifactRefused, "already", only(entries...)}
}
