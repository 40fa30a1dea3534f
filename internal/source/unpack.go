// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/layout"
)

// Artifact is content that was unpacked and checked. It is shared: don't change it.
type Artifact struct {
	// Digest identifies the content; see [artifact.Content.Digest].
	Digest string
	// Files sorted by name, without a byte order mark. The files of a chart have names that are
	// relative to its directory.
	Files []artifact.File

	name, version string // of a chart, as its Chart.yaml says
	metadata      []byte // metadata.yaml of a bundle, as JSON; nil if there is none
}

// bytes estimates the memory that it holds.
func (a *Artifact) bytes() int64 {
	const overhead = 256 // of a file, with its name
	if a == nil {
		return overhead
	}
	return artifact.Content{Files: a.Files}.Bytes() + int64(len(a.Files)+1)*overhead
}

// unpack has a worker open the content.
func (s fetching) unpack(ctx context.Context, content artifact.Content, kind artifact.Kind) (*Artifact, error) {
	unpackings.Inc()
	content.Kind = kind
	opened, err := s.Opener.Open(ctx, &opener.Job{Unpack: &opener.Unpack{Content: content, Limits: s.Limits}})
	if err != nil {
		return nil, err
	}
	got := &Artifact{Digest: content.Digest(), Files: opened.Files, name: opened.Name, version: opened.Version}
	if kind == artifact.KindBundle {
		got.metadata, err = s.metadataOf(ctx, got.Files)
	}
	return got, err
}

// metadataOf returns what the release of a Cluster Stack says it is, as JSON. It is nil for a release that says nothing, or
// in no YAML: package bundle tells of that. An error of a worker says nothing of the release.
func (s fetching) metadataOf(ctx context.Context, files []artifact.File) ([]byte, error) {
	file := artifact.Find(files, layout.OnlyDirectory(artifact.Names(files))+clusterstack.MetadataFile)
	if file == nil {
		return nil, nil
	}
	opened, err := s.Opener.Open(ctx, &opener.Job{YAML: &opener.YAML{Data: file.Data}})
	if failed, ok := errors.AsType[*failure.Error](err); ok && failed.Reason == failure.ArtifactInvalid {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return opened.JSON, nil
}
