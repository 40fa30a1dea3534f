// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// acceptsRelease checks that the release of a Cluster Stack is the one that its tag
// names. Of bundles with other tags, and others that are no release, nothing is known.
func acceptsRelease(r reference.Reference, files []artifact.File) error {
	published := r.Chart.Version
	if at := r.Chart.GitHub; at != nil {
		published = at.TagPrefix + published
	}
	if _, err := clusterstack.ParseTag(published); err != nil {
		return nil //nolint:nilerr // it is published as something else
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, file.Name)
	}
	root := layout.OnlyDirectory(names)
	at := artifact.Find(files, root+clusterstack.MetadataFile)
	if at == nil {
		return nil
	}
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], root)
	}
	if known, err := layout.IsRelease(published, at.Data, names); known && err != nil {
		reason := failure.ArtifactInvalid
		if r.Chart.Verify != nil {
			reason = failure.SignatureInvalid
		}
		return failure.New(reason, "%w", err)
	}
	return nil
}
