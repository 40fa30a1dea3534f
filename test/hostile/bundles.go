// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
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
	}
}

// ignoring is a chart with that many files, and that much of such patterns in .helmignore.
func ignoring(files int, pattern string, bytes int) []targz.Entry {
	patterns := strings.Repeat(pattern+"\n", bytes/(len(pattern)+1))
	return append(times(files, func(i int) targz.Entry {
		return targz.Entry{Name: fmt.Sprintf("c/d/%s%d", strings.Repeat("a", 200), i)}
	}), targz.Entry{Name: "c/Chart.yaml", Data: targz.ChartYAML}, targz.Entry{Name: "c/.helmignore", Data: patterns})
}
