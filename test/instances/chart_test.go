// SPDX-License-Identifier: Apache-2.0

package instances

import (
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-chandler/chandler/test/chartfiles"
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
	charts := &corev1.ConfigMap{BinaryData: map[string][]byte{chartFile: chartfiles.Packed(w.t, "settings", map[string]string{
		"Chart.yaml": chartMetadata, "values.yaml": chartValues, "templates/settings.yaml": chartTemplate,
	})}}
	charts.Namespace, charts.Name = namespace, "chandler-charts"
	if err := w.Create(w.t.Context(), charts); client.IgnoreAlreadyExists(err) != nil {
		w.t.Fatal(err)
	}
}
