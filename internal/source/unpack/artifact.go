// SPDX-License-Identifier: Apache-2.0

// Package unpack has worker processes open content, and finds in it what a reference means. It asks no source.
package unpack

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
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

// Bytes estimates the memory that it holds.
func (a *Artifact) Bytes() int64 {
	const overhead = 256 // of a file, with its name
	if a == nil {
		return overhead
	}
	return artifact.Content{Files: a.Files}.Bytes() + int64(len(a.Files)+1)*overhead
}

// Unpacker unpacks content within limits.
type Unpacker struct {
	Opener opener.Opener
	Limits artifact.Limits
}

// Unpack has a worker open the content. Of a bundle, it returns what the release of a Cluster Stack says it is, too.
func (u Unpacker) Unpack(ctx context.Context, content artifact.Content, kind artifact.Kind) (*Artifact, error) {
	unpackings.Inc()
	content.Kind = kind
	job := &opener.Unpack{Content: content, Limits: u.Limits}
	if kind == artifact.KindBundle {
		job.Document = clusterstack.MetadataFile
	}
	opened, err := u.Opener.Open(ctx, &opener.Job{Unpack: job})
	if err != nil {
		return nil, err
	}
	return &Artifact{Digest: content.Digest(), Files: opened.Files, name: opened.Name, version: opened.Version, metadata: opened.JSON}, nil
}
