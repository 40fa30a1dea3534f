// SPDX-License-Identifier: Apache-2.0

package opener

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// vendoredIn returns the names of the charts in a chart's charts directory, as Helm loads them.
func vendoredIn(files []artifact.File) sets.Set[string] {
	names := sets.New[string]()
	for _, file := range files {
		name, ok := strings.CutPrefix(file.Name, chartsDirectory)
		if !ok || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".") {
			continue
		}
		directory, rest, nested := strings.Cut(name, "/")
		metadata := file
		switch {
		case nested && rest == artifact.ChartFile && path.Ext(directory) != ".tgz":
		case !nested && path.Ext(name) == ".tgz":
			metadata = artifact.File{Data: chartFileOf(file.Data)}
		default:
			continue
		}
		var is struct{ Name string }
		if decode(&metadata, &is) {
			names.Insert(is.Name)
		}
	}
	return names
}

// chartFileOf returns an archive's Chart.yaml; nil if there is none.
func chartFileOf(archive []byte) []byte {
	expanded, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil
	}
	entries := tar.NewReader(expanded)
	for {
		header, err := entries.Next()
		if err != nil {
			return nil
		}
		if _, name, _ := strings.Cut(header.Name, "/"); name != artifact.ChartFile {
			continue
		}
		data, err := io.ReadAll(entries)
		if err != nil {
			return nil
		}
		return artifact.TrimBOM(data)
	}
}
