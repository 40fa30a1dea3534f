// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"unicode/utf8"

	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// Names of the file that plain manifests are, wherever they came from: so the same
// content comes to the same files.
const (
	plainYAML = "manifests.yaml"
	plainJSON = "manifests.json"
)

// isCompressed tells an archive from all else. What a host, or a name, says of
// content doesn't matter.
func isCompressed(data []byte) bool { return bytes.HasPrefix(data, gzipStart) }

// unfit says what keeps content from being the kind's artifact, as far as its first
// look tells; "" if nothing does. All kinds are archives; manifests may be one file of
// text, too, as many projects publish them (install.yaml).
func (k Kind) unfit(data []byte) string {
	switch {
	case isCompressed(data):
		return ""
	case k != KindManifests:
		return "it isn't compressed with gzip"
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "it is neither a gzip-compressed tar archive nor text in UTF-8"
	}
	text := bytes.TrimSpace(trimBOM(data))
	switch {
	case len(text) == 0:
		return "it is empty"
	case startsAsPage(text):
		return "it is a web page, or other markup, not YAML or JSON"
	}
	return ""
}

// packing is what holds the kind's files, for messages.
func (k Kind) packing() string {
	if k == KindManifests {
		return "archive or file of manifests"
	}
	return "archive"
}

// plain is the one file that manifests are if they aren't an archive.
func plain(data []byte, limits Limits) ([]render.File, error) {
	if int64(len(data)) > limits.FileBytes {
		return nil, failure.TooLarge("the file", limits.FileBytes)
	}
	if why := KindManifests.unfit(data); why != "" {
		return nil, failure.New(failure.ArtifactInvalid, "%s; name a file with manifests, or an archive of such files", why)
	}
	data = trimBOM(data)
	name := plainYAML
	if json.Valid(data) {
		name = plainJSON
	}
	return []render.File{{Name: name, Data: data}}, nil
}

// checkFile tells whether a file of this name, which isn't in an archive, may be the
// kind's artifact.
func (k Kind) checkFile(name string) error {
	switch {
	case isArchive(name):
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
