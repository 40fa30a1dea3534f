// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/test/must"
	"github.com/cluster-chandler/chandler/test/realdata"
)

// RealChart unpacks a chart of the test data.
func RealChart(t testing.TB, archive string) []artifact.File {
	t.Helper()
	return Unpack(t, realdata.Read(t, "charts", archive))
}

// Unpack returns the files of a packed chart.
func Unpack(t testing.TB, data []byte) []artifact.File {
	t.Helper()
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	must.Succeed(t, err)
	var files []artifact.File
	for archive := tar.NewReader(unzipped); ; {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must.Succeed(t, err)
		if head.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(archive)
		must.Succeed(t, err)
		_, name, _ := strings.Cut(head.Name, "/")
		files = append(files, artifact.File{Name: name, Data: content})
	}
}

// ChartOf makes a chart of templates and other files; Chart.yaml is added if it is not among them.
func ChartOf(files map[string]string) []artifact.File {
	all := []artifact.File{}
	if _, ok := files["Chart.yaml"]; !ok {
		all = append(all, artifact.File{Name: "Chart.yaml", Data: []byte("apiVersion: v2\nname: demo\nversion: 1.2.3\nappVersion: v9\n")})
	}
	for name, text := range files {
		all = append(all, artifact.File{Name: name, Data: []byte(text)})
	}
	return all
}

// ChartWith returns a chart with one template.
func ChartWith(text string) []artifact.File {
	return ChartOf(map[string]string{"templates/a.yaml": text})
}

// ConfigMap is the text of an object without data.
const ConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
