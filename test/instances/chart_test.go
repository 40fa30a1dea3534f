// SPDX-License-Identifier: Apache-2.0

package instances

import (
	"archive/tar"
	"bytes"
	"compress/gzip"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The chart of all add-ons here: one ConfigMap, named after the release.
const (
	chartFile     = "settings-1.0.0.tgz"
	chartMetadata = "apiVersion: v2\nname: settings\nversion: 1.0.0\n"
	chartValues   = "text: default\nsecret: none\n"
	chartTemplate = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n" +
		"data: {text: {{ .Values.text | quote }}, secret: {{ .Values.secret | quote }}}\n"
)

// offerCharts makes the ConfigMap that instances of a namespace mount.
func (w *world) offerCharts(namespace string) {
	w.t.Helper()
	charts := &corev1.ConfigMap{BinaryData: map[string][]byte{chartFile: chartArchive()}}
	charts.Namespace, charts.Name = namespace, "chandler-charts"
	if err := w.Create(w.t.Context(), charts); client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatal(err)
	}
}

// chartArchive packs the chart as "helm package" does.
func chartArchive() []byte {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for _, file := range [][2]string{{"Chart.yaml", chartMetadata}, {"values.yaml", chartValues}, {"templates/settings.yaml", chartTemplate}} {
		header := &tar.Header{Name: "settings/" + file[0], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(file[1]))}
		if err := archive.WriteHeader(header); err != nil {
			panic(err) // in memory
		}
		_, _ = archive.Write([]byte(file[1]))
	}
	_ = archive.Close()
	_ = zipped.Close()
	return packed.Bytes()
}
