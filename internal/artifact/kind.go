// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/cluster-chandler/chandler/internal/failure"
)

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

// Verbatim reports whether the artifact's files are taken as they are, with the names
// they have in it: no top-level directory is expected, nor taken off.
func (k Kind) Verbatim() bool { return k != KindChart }

// words are, for each kind, the field of an add-on or a stack that names its source, and a
// suffix. The suffix tells kinds apart in caches and in release records.
var words = map[Kind]struct{ field, suffix string }{
	KindChart:         {"chart", ""},
	KindKustomization: {"kustomization", " as files"},
	KindManifests:     {"manifests", " as manifests"}, // which may be one file, and no archive
	KindBundle:        {"spec.source", " as a bundle"},
}

// Field returns the field that has the kind's source.
func (k Kind) Field() string { return words[k].field }

// Suffix tells the kinds apart where all of them are remembered.
func (k Kind) Suffix() string { return words[k].suffix }

// Names of the file that plain manifests are, wherever they came from: so the same
// content comes to the same files.
const (
	PlainYAML = "manifests.yaml"
	PlainJSON = "manifests.json"
)

// IsCompressed tells an archive from all else. The words of a host, or of a name, about content
// don't matter.
func IsCompressed(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// Unfit says what keeps content from being the kind's artifact, as far as its first
// look tells; "" if nothing does. All kinds are archives; manifests may be one file of
// text, too, as many projects publish them (install.yaml).
func (k Kind) Unfit(data []byte) string {
	switch {
	case IsCompressed(data):
		return ""
	case k != KindManifests:
		return "it isn't compressed with gzip"
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "it is neither a gzip-compressed tar archive nor text in UTF-8"
	}
	switch text := bytes.TrimSpace(TrimBOM(data)); {
	case len(text) == 0:
		return "it is empty"
	case text[0] == '<':
		return "it is a web page, or other markup, not YAML or JSON"
	}
	return ""
}

// Packing returns what holds the kind's files, for messages.
func (k Kind) Packing() string {
	if k == KindManifests {
		return "archive or file of manifests"
	}
	return "archive"
}

// plain returns the one file that manifests are if they aren't an archive.
func plain(data []byte, limits Limits) ([]File, error) {
	if int64(len(data)) > limits.FileBytes {
		return nil, failure.TooLarge("the file", limits.FileBytes)
	}
	if why := KindManifests.Unfit(data); why != "" {
		return nil, failure.New(failure.ArtifactInvalid, "%s; name a file with manifests, or an archive of such files", why)
	}
	data = TrimBOM(data)
	name := PlainYAML
	if json.Valid(data) {
		name = PlainJSON
	}
	return []File{{Name: name, Data: data}}, nil
}

// IsPlain reports whether files of manifests are one that nobody gave its name. An archive
// with nothing but a file of that name looks the same.
func IsPlain(files []File) bool {
	return len(files) == 1 && (files[0].Name == PlainYAML || files[0].Name == PlainJSON)
}

// CheckFile reports whether a file of this name, which isn't in an archive, may be the
// kind's artifact.
func (k Kind) CheckFile(name string) error {
	switch {
	case IsArchive(name):
		return nil
	case k != KindManifests:
		return failure.New(failure.ArtifactInvalid, "it is a file, and its name doesn't end in .tgz or .tar.gz; name an archive, or a directory")
	case slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)):
		return failure.New(failure.ArtifactInvalid, "it is a kustomization, not a manifest; name its directory in kustomization.path")
	case !slices.Contains([]string{".yaml", ".yml", ".json"}, path.Ext(name)):
		return failure.New(failure.ArtifactInvalid, "it is a file, and its name ends in none of .yaml, .yml, .json, .tgz and .tar.gz; name one with manifests, an archive, or a directory")
	}
	return nil
}

// IsArchive tells an archive by its name.
func IsArchive(name string) bool {
	return strings.HasSuffix(name, ".tgz") || strings.HasSuffix(name, ".tar.gz")
}

// TrimBOM takes the byte order mark, with which some files start that were written on
// Windows, off a file, as Helm does.
func TrimBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte{0xEF, 0xBB, 0xBF}) }
