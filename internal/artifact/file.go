// SPDX-License-Identifier: Apache-2.0

package artifact

// File is one file of a chart, or of another artifact.
type File struct {
	// Name is slash-separated and relative to the artifact's root, such as "Chart.yaml",
	// "templates/a.yaml" or "charts/dep-1.0.0.tgz".
	Name string
	Data []byte
}
