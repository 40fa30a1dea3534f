// SPDX-License-Identifier: Apache-2.0

// Package yamlbombs has YAML that is small, and takes much memory once it is decoded, and tests
// that it is refused.
package yamlbombs

import (
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/cluster-chandler/chandler/test/cost"
)

// The most that it may cost to refuse one of them.
const (
	refusalTime   = time.Second
	refusalMemory = 64 << 20 // of heap at a time, garbage included
)

// All are maps in YAML, by what is wrong with them. They have at most 1 MiB.
func All() map[string]string {
	x := strings.Repeat("x", 50<<10)
	levels := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for _, name := range strings.Split("bcdefgh", "") {
		below := string(name[0] - 1)
		levels += name + ": &" + name + " [" + strings.Repeat("*"+below+", ", 9) + "*" + below + "]\n"
	}
	return map[string]string{
		"62 KiB that become 200 MB":          "x: &x " + x + "\nl: [" + strings.Repeat("*x,", 4000) + "]\n",
		"950 KiB that become 15 GB":          "x: &x " + x + "\nl: [" + strings.Repeat("*x,", 300_000) + "]\n",
		"aliases as the values of a map":     "x: &x " + x + "\nl:\n  ? a\n  : *x\n  b: *x\n" + manyKeys("  ", ": *x\n"),
		"aliases in keys":                    "x: &x " + x + "\nl: [" + strings.Repeat("{*x : 1},", 4000) + "]\n",
		"a map that is merged":               "x: &x {a: " + x + "}\nl: [" + strings.Repeat("{<<: *x},", 4000) + "]\n",
		"aliases of aliases":                 levels,
		"lists that many aliases name":       "x: &x [" + strings.Repeat("{},", 1000) + "]\nl: [" + strings.Repeat("*x,", 1000) + "]\n",
		"an anchor in itself":                "x: &x {a: *x}\n",
		"a text that JSON takes six times":   "x: &x \"" + strings.Repeat(`\0`, 20<<10) + "\"\nl: [" + strings.Repeat("*x,", 1000) + "]\n",
		"a scalar that is a document's":      "x: &x |\n  " + x + "\nl:\n" + strings.Repeat("- *x\n", 4000),
		"aliases that a quote seems to hide": "\"it's\": &x " + x + "\nl: ['*', " + strings.Repeat("*x, ", 4000) + "'&']\n",
	}
}

func manyKeys(before, after string) string {
	var b strings.Builder
	for i := range 4000 {
		b.WriteString(before + "k" + strings.Repeat("k", i%26) + string(rune('a'+i/26%26)) + string(rune('a'+i/676)) + after)
	}
	return b.String()
}

// AreRefused looks that parse has an error for each, and takes little memory to say so.
func AreRefused(t *testing.T, parse func(text string) error) {
	t.Helper()
	for name, text := range All() {
		t.Run(name, func(t *testing.T) {
			var err error
			took := cost.Of(func() { err = parse(text) })
			if err == nil {
				t.Fatal("it is accepted")
			}
			if len(err.Error()) > 400 {
				t.Errorf("the error isn't fit for a condition: %.1000q", err)
			}
			took.Expect(t, refusalTime, refusalMemory)
			t.Logf("%d bytes, %s, %d MiB: %v", len(text), took.Work, took.Held>>20, err)
		})
	}
}

// Allocated is how much memory f took in all, garbage included. To ask that is cheap enough for
// fuzzing.
func Allocated(f func()) uint64 {
	before := allocated()
	f()
	return allocated() - before
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
