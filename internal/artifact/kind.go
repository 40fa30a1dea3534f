// SPDX-License-Identifier: Apache-2.0

package artifact

import "strings"

// Kind is what a reference expects to find.
type Kind string

const (
	// KindChart is a Helm chart: one top-level directory with a Chart.yaml, less
	// what .helmignore names.
	KindChart Kind = ""
	// KindKustomization is files with a kustomization among them.
	KindKustomization Kind = "kustomization"
	// KindManifests is files that are manifests: in an archive, or a single plain one.
	KindManifests Kind = "manifests"
	// KindBundle is files with charts among them, as directories or archives.
	KindBundle Kind = "source"
)

// Verbatim tells whether the artifact's files are taken as they are, with the names
// they have in it: no top-level directory is expected, nor taken off.
func (k Kind) Verbatim() bool { return k != KindChart }

// Field has the kind's source: it is one of an add-on, or the stack's.
func (k Kind) Field() string {
	switch k {
	case KindChart:
		return "chart"
	case KindBundle:
		return "spec.source"
	}
	return string(k)
}

// Noun is what a message calls the artifact.
func (k Kind) Noun() string {
	switch k {
	case KindChart:
		return "this chart"
	case KindManifests:
		return "these manifests"
	case KindBundle:
		return "this bundle"
	}
	return "this " + string(k)
}

// Suffix tells the kinds apart where all of them are remembered.
func (k Kind) Suffix() string {
	switch k {
	case KindChart:
		return ""
	case KindBundle:
		return " as a bundle"
	case KindManifests:
		return " as manifests" // which may be one file, and no archive
	}
	return " as files"
}

// plainName takes off the "./" that `tar -C directory .` puts before all names,
// and the name of the directory itself.
func plainName(name string) string {
	name = strings.TrimPrefix(name, "./")
	if name == "." {
		return ""
	}
	return name
}
