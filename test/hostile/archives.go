// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/targz"
)

// Archives are what no honest tool makes of a chart. To unpack them as one is refused, or does
// no harm: what comes after the end of an archive isn't read, as Helm doesn't.
func Archives() map[string]Archive {
	named := func(name, says string) Archive {
		return Archive{failure.ArtifactRefused, says, chartWith(targz.Entry{Name: name, Data: "x"})}
	}
	typed := func(kind byte, says string) Archive {
		return Archive{failure.ArtifactRefused, says, chartWith(targz.Entry{Name: "demo/x", Kind: kind, Link: "/etc/passwd"})}
	}
	return map[string]Archive{
		// Names.
		"a name that leaves the archive":        named("../etc/passwd", "leaves the artifact"),
		"a name that leaves the chart":          named("demo/../../etc/passwd", "leaves the artifact"),
		"a name that leaves and comes back":     named("demo/../demo/x", "leaves the artifact"),
		"a name that ends in two dots":          named("demo/x/..", "leaves the artifact"),
		"an absolute name":                      named("/etc/passwd", "leaves the artifact"),
		"an absolute name below the directory":  named("demo//etc/passwd", "leaves the artifact"),
		"a name with a dot part":                named("demo/./x", "leaves the artifact"),
		"a name that starts with a dot part":    named("./demo/x", "leaves the artifact"),
		"backslashes":                           named(`demo\..\..\x`, "leaves the artifact"),
		"backslashes below the directory":       named(`demo/..\x`, "leaves the artifact"),
		"a drive letter":                        named("c:/windows/x", "leaves the artifact"),
		"a drive letter below the directory":    named("demo/C:/windows/x", "leaves the artifact"),
		"a drive letter with no separator":      named("demo/c:x", "leaves the artifact"),
		"a name with a line break":              named("demo/a\nb", "leaves the artifact"),
		"a name with an escape sequence":        named("demo/\x1b[2Jx", "leaves the artifact"),
		"a name that is turned around":          named("demo/\u202egpj.x", "leaves the artifact"),
		"a name that isn't UTF-8":               named("demo/\xff\xfe", "leaves the artifact"),
		"a name that is too long":               named("demo/"+strings.Repeat("n", 2000), "more than 512 bytes"),
		"a path that is too deep":               named("demo/"+strings.Repeat("d/", 32)+"x", "32 parts"),
		"a file twice":                          {failure.ArtifactRefused, "there twice", chartWith(targz.Entry{Name: "demo/x"}, targz.Entry{Name: "demo/x"})},
		"a second Chart.yaml":                   named("demo/Chart.yaml", "there twice"),
		"a directory twice":                     {failure.ArtifactRefused, "there twice", chartWith(targz.Entry{Name: "demo/d/", Kind: tar.TypeDir}, targz.Entry{Name: "demo/d/", Kind: tar.TypeDir})},
		"a file and a directory of one name":    {failure.ArtifactRefused, "there twice", chartWith(targz.Entry{Name: "demo/d"}, targz.Entry{Name: "demo/d/", Kind: tar.TypeDir})},
		"a file below a file":                   {"", "", chartWith(targz.Entry{Name: "demo/d/x"}, targz.Entry{Name: "demo/d"})},
		"a second top-level directory":          named("other/x", "outside of the top-level directory"),
		"a file beside the top-level directory": named("x", "outside of the top-level directory"),
		"no top-level directory":                {failure.ArtifactRefused, "outside of the top-level directory", only(targz.Entry{Name: "Chart.yaml", Data: targz.ChartYAML})},
		"a NUL in a PAX path":                   {failure.ArtifactInvalid, "broken", raw(rawEntry("pax", 'x', "20 path=demo/a\x00bbb\n"), rawEntry("demo/x", '0', "x"))},
		"a PAX path that leaves the chart":      {failure.ArtifactRefused, "leaves the artifact", raw(rawEntry("pax", 'x', paxRecords("path", "demo/../../x")), rawEntry("demo/x", '0', "x"))},
		"a GNU long name that leaves the chart": {failure.ArtifactRefused, "leaves the artifact", raw(rawEntry("././@LongLink", 'L', "demo/../../x\x00"), rawEntry("demo/x", '0', "x"))},
		"an empty name":                         {failure.ArtifactRefused, "leaves the artifact", raw(rawEntry("", '0', "x"))},

		// Kinds of entries.
		"a symbolic link":           typed(tar.TypeSymlink, "is a link, a device"),
		"a hard link":               typed(tar.TypeLink, "is a link, a device"),
		"a character device":        typed(tar.TypeChar, "is a link, a device"),
		"a block device":            typed(tar.TypeBlock, "is a link, a device"),
		"a named pipe":              typed(tar.TypeFifo, "is a link, a device"),
		"a contiguous file":         {failure.ArtifactRefused, "is a link, a device", raw(rawEntry("demo/x", '7', "x"))},
		"an unknown kind of entry":  {failure.ArtifactRefused, "is a link, a device", raw(rawEntry("demo/x", 'Z', "x"))},
		"a top-level symbolic link": {failure.ArtifactRefused, "is a link, a device", only(targz.Entry{Name: "demo", Kind: tar.TypeSymlink, Link: "/"})},
		"an old GNU sparse file":    {failure.ArtifactRefused, "is a link, a device", raw(rawHeader("demo/x", 'S', "00000000000\x00", gnuSparse))},
		"a PAX sparse file of 1 TiB": {failure.ArtifactTooLarge, "5242880 bytes", raw(rawEntry("pax", 'x', paxRecords(
			"GNU.sparse.major", "0", "GNU.sparse.minor", "1", "GNU.sparse.name", "demo/x", "GNU.sparse.size", "1099511627776",
			"GNU.sparse.numblocks", "1", "GNU.sparse.map", "0,1")), rawEntry("demo/x", '0', "x"))},
		"a global header that renames": {"", "", chartWith(
			targz.Entry{Kind: tar.TypeXGlobalHeader, PAX: map[string]string{"path": "demo/templates/evil.yaml"}}, targz.Entry{Name: "demo/x", Data: "x"})},

		// Sizes.
		"a file that is too large": {failure.ArtifactTooLarge, "5242880 bytes", chartWith(targz.Entry{Name: "demo/x", Data: strings.Repeat("\x00", 5*mebibyte+1)})},
		"many files that are too large together": {failure.ArtifactTooLarge, "33554432 bytes", many(20, func(i int) targz.Entry {
			return targz.Entry{Name: fmt.Sprintf("demo/x%d", i), Data: strings.Repeat("\x00", 4*mebibyte)}
		})},
		"an archive that is too large":           {failure.ArtifactTooLarge, "10485760 bytes", func(testing.TB) []byte { return make([]byte, 10*mebibyte+1) }},
		"a declared size of 8 GiB":               {failure.ArtifactTooLarge, "5242880 bytes", raw(rawHeader("demo/x", '0', "77777777777\x00"))},
		"a declared size of 8 EiB":               {failure.ArtifactTooLarge, "5242880 bytes", raw(rawHeader("demo/x", '0', "\x80\x00\x00\x00\x7f\xff\xff\xff\xff\xff\xff\xff"))},
		"a negative size":                        {failure.ArtifactInvalid, "broken", raw(rawHeader("demo/x", '0', "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"))},
		"a size that isn't a number":             {failure.ArtifactInvalid, "broken", raw(rawHeader("demo/x", '0', "xyz"))},
		"a size that the content falls short of": {failure.ArtifactInvalid, "unexpected EOF", raw(rawHeader("demo/x", '0', "00020000000\x00"))},
		"a PAX size of 1 TiB":                    {failure.ArtifactTooLarge, "5242880 bytes", raw(rawEntry("pax", 'x', paxRecords("size", "1099511627776")), rawEntry("demo/x", '0', "x"))},
		"a directory with a size":                {failure.ArtifactInvalid, "broken", raw(rawHeader("demo/d/", '5', "00000001000\x00"), bytes.Repeat([]byte("x"), 512))},
		"too many entries":                       {failure.ArtifactTooLarge, "10000 entries", many(10_001, func(i int) targz.Entry { return targz.Entry{Name: fmt.Sprintf("demo/x%d", i)} })},
		"too many directories":                   {failure.ArtifactTooLarge, "10000 entries", many(10_001, func(i int) targz.Entry { return targz.Entry{Name: fmt.Sprintf("demo/x%d/", i), Kind: tar.TypeDir} })},
		"a million entries": {failure.ArtifactTooLarge, "10000 entries", func(t testing.TB) []byte {
			var unique bytes.Buffer // as many as it takes to reach the limit
			for i := range 11_000 {
				unique.Write(rawHeader(fmt.Sprintf("demo/%d", i), '0', "00000000000\x00"))
			}
			parts := []io.Reader{bytes.NewReader(rawEntry("demo/Chart.yaml", '0', targz.ChartYAML))}
			for range 1_000_000 / 11_000 {
				parts = append(parts, bytes.NewReader(unique.Bytes()))
			}
			return targz.Gzip(t, parts...)
		}},
		"10,000 long and deep names": {failure.ArtifactTooLarge, "10000 entries", many(10_001, func(i int) targz.Entry {
			return targz.Entry{Name: "demo/" + strings.Repeat("dddddddddddddddd/", 29) + fmt.Sprint(i)}
		})},
		"a PAX header that is too large": {"", "", chartWith(
			targz.Entry{Name: "demo/x", PAX: map[string]string{"CHANDLER.x": strings.Repeat("p", 64<<10)}})},
		"many PAX headers before one entry": {"", "", raw(
			bytes.Repeat(rawEntry("pax", 'x', paxRecords("CHANDLER.x", strings.Repeat("p", 4000))), 1000), rawEntry("demo/x", '0', "x"))},
		"endless GNU long names": {failure.ArtifactTooLarge, "33554432 bytes", raw(
			bytes.Repeat(rawHeader("././@LongLink", 'L', "00000000000\x00"), 100_000))},
		"a global header that is too large": {"", "", chartWith(
			targz.Entry{Kind: tar.TypeXGlobalHeader, PAX: map[string]string{"comment": strings.Repeat("p", 64<<10)}})},
		"large PAX headers before each entry": {failure.ArtifactTooLarge, "33554432 bytes", many(3000, func(i int) targz.Entry {
			return targz.Entry{Name: fmt.Sprintf("demo/x%d", i), PAX: map[string]string{"CHANDLER.x": strings.Repeat("p", 14<<10)}}
		})},

		// Streams.
		"nothing":                   {failure.ArtifactInvalid, "isn't a gzip", func(testing.TB) []byte { return nil }},
		"no gzip":                   {failure.ArtifactInvalid, "isn't a gzip", func(testing.TB) []byte { return []byte(targz.ChartYAML) }},
		"tar that isn't compressed": {failure.ArtifactInvalid, "isn't a gzip", func(t testing.TB) []byte { return targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml"}) }},
		"gzip of something else":    {failure.ArtifactInvalid, "broken", func(t testing.TB) []byte { return targz.Gzip(t, strings.NewReader(strings.Repeat("values: 1\n", 200))) }},
		"gzip of nothing":           {failure.ArtifactInvalid, "no Chart.yaml", func(t testing.TB) []byte { return targz.Gzip(t) }},
		"a broken checksum":         {"", "", func(t testing.TB) []byte { a := targz.Chart(t); a[len(a)-6] ^= 1; return a }},
		"a broken tar checksum": {failure.ArtifactInvalid, "broken", func(t testing.TB) []byte {
			a := targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml"})
			a[0] ^= 1
			return targz.Gzip(t, bytes.NewReader(a))
		}},
		"a truncated archive":        {failure.ArtifactInvalid, "unexpected EOF", func(t testing.TB) []byte { a := targz.Chart(t); return a[:len(a)/2] }},
		"no end of the gzip stream":  {"", "", func(t testing.TB) []byte { a := targz.Chart(t); return a[:len(a)-8] }},
		"garbage after the archive":  {"", "", func(t testing.TB) []byte { return append(targz.Chart(t), "garbage"...) }},
		"a second gzip stream":       {"", "", func(t testing.TB) []byte { return append(targz.Chart(t), targz.Chart(t)...) }},
		"endless empty gzip streams": {"", "", func(t testing.TB) []byte { return append(targz.Chart(t), bytes.Repeat(targz.Gzip(t), 300_000)...) }},
		"a second tar archive": {"", "", func(t testing.TB) []byte {
			one := targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml"})
			return targz.Gzip(t, bytes.NewReader(one), bytes.NewReader(one))
		}},
		"a bomb after the archive": {"", "", func(t testing.TB) []byte {
			return targz.Gzip(t, bytes.NewReader(targz.Tar(t, targz.Entry{Name: "demo/Chart.yaml"})), zeros(64*mebibyte))
		}},
		"gzip in gzip":                     {failure.ArtifactInvalid, "broken", func(t testing.TB) []byte { return targz.Gzip(t, bytes.NewReader(targz.Chart(t))) }},
		"no Chart.yaml":                    {failure.ArtifactInvalid, "no Chart.yaml", only(targz.Entry{Name: "demo/values.yaml"})},
		"a Chart.yaml that is a directory": {failure.ArtifactInvalid, "no Chart.yaml", only(targz.Entry{Name: "demo/Chart.yaml/", Kind: tar.TypeDir})},
		"a Chart.yaml too deep":            {failure.ArtifactInvalid, "no Chart.yaml", only(targz.Entry{Name: "demo/demo/Chart.yaml", Data: targz.ChartYAML})},

		// Archives in archives.
		"a nested archive with a link": {failure.ArtifactRefused, `"charts/inner.tgz": entry "demo/x" is a link`, func(t testing.TB) []byte {
			return Nest(t, targz.Chart(t, targz.Entry{Name: "demo/x", Kind: tar.TypeSymlink, Link: "/"}), 1)
		}},
		"a nested archive that leaves the chart, deep down": {failure.ArtifactRefused, "leaves the artifact", func(t testing.TB) []byte {
			return Nest(t, targz.Chart(t, targz.Entry{Name: "demo/../x"}), 3)
		}},
		"a nested archive of an unpacked dependency": {failure.ArtifactRefused, "is a link, a device", func(t testing.TB) []byte {
			return targz.Chart(t, targz.Entry{Name: "demo/charts/a/charts/inner.tgz", Data: string(targz.Chart(t, targz.Entry{Name: "demo/x", Kind: tar.TypeSymlink}))})
		}},
		"a nested file that is no archive": {failure.ArtifactInvalid, "charts/inner.tgz", chartWith(targz.Entry{Name: "demo/charts/inner.tgz", Data: "x"})},
		"archives nested too deep":         {failure.ArtifactRefused, "nested more than 4 deep", func(t testing.TB) []byte { return Nest(t, targz.Chart(t), 5) }},
		"nested bombs that are too large together": {failure.ArtifactTooLarge, "33554432 bytes", func(t testing.TB) []byte {
			bomb := string(targz.Chart(t, targz.Entry{Name: "demo/x", Data: strings.Repeat("\x00", 4*mebibyte)}))
			return many(1000, func(i int) targz.Entry { return targz.Entry{Name: fmt.Sprintf("demo/charts/%d.tgz", i), Data: bomb} })(t)
		}},
		"nested archives with too many entries together": {failure.ArtifactTooLarge, "10000 entries", func(t testing.TB) []byte {
			tiny := string(targz.Chart(t, targz.Entry{Name: "demo/x"}))
			return many(5000, func(i int) targz.Entry { return targz.Entry{Name: fmt.Sprintf("demo/charts/%d.tgz", i), Data: tiny} })(t)
		}},
	}
}
