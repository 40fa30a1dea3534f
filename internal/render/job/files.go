// SPDX-License-Identifier: Apache-2.0

package job

import "github.com/cluster-chandler/chandler/internal/artifact"

// Files is the making of objects of files that are no chart.
type Files struct {
	// Files of the artifact. Their names are relative to its root.
	Files []artifact.File
	// Kustomization says that Directory has one. Otherwise all YAML and JSON files in it, and below, are manifests.
	Kustomization bool
	// Single names the artifact in messages if it is one file, whose name here nobody gave it.
	Single string
	// Directory of the objects; empty for the root.
	Directory string
	// Release has the add-on's name and namespace.
	Release Release
	// Version becomes Result.Version.
	Version string
	Edits
}
