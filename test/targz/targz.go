// SPDX-License-Identifier: Apache-2.0

// Package targz makes the archives of tests.
package targz

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/cluster-chandler/chandler/test/must"
)

// Entry of an archive that a test builds.
type Entry struct {
	Name string
	Data string
	Kind byte // defaults to a regular file
	Link string
	PAX  map[string]string
}

// ChartYAML is that of the charts.
const ChartYAML = "apiVersion: v2\nname: demo\nversion: 1.0.0\n"

// Tar writes the entries as they are.
func Tar(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	var out bytes.Buffer
	archive := tar.NewWriter(&out)
	for _, e := range entries {
		header := &tar.Header{Name: e.Name, Typeflag: e.Kind, Linkname: e.Link, PAXRecords: e.PAX, Mode: 0o644, Size: int64(len(e.Data))}
		if e.Kind == 0 {
			header.Typeflag = tar.TypeReg
		}
		if e.Kind == tar.TypeXGlobalHeader {
			header = &tar.Header{Typeflag: e.Kind, PAXRecords: e.PAX}
		}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatalf("writing the header of %q: %v", e.Name, err)
		}
		if _, err := io.WriteString(archive, e.Data); err != nil {
			t.Fatalf("writing %q: %v", e.Name, err)
		}
	}
	must.Succeed(t, archive.Close())
	return out.Bytes()
}

// Gzip compresses the parts, one after the other, as one stream.
func Gzip(t testing.TB, parts ...io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	compressed, _ := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	for _, part := range parts {
		if _, err := io.Copy(compressed, part); err != nil {
			t.Fatal(err)
		}
	}
	must.Succeed(t, compressed.Close())
	return out.Bytes()
}

// Of is an archive of just these entries.
func Of(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	return Gzip(t, bytes.NewReader(Tar(t, entries...)))
}

// Chart is a chart's archive: a Chart.yaml and these entries.
func Chart(t testing.TB, entries ...Entry) []byte {
	t.Helper()
	return Of(t, append([]Entry{{Name: "demo/Chart.yaml", Data: ChartYAML}}, entries...)...)
}

// Files is an archive of files, by their names.
func Files(t testing.TB, files map[string]string) []byte {
	t.Helper()
	var entries []Entry
	for name, text := range files {
		entries = append(entries, Entry{Name: name, Data: text})
	}
	return Of(t, entries...)
}
