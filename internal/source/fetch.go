// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"context"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/clusterstack"
	"github.com/cluster-chandler/chandler/internal/source/auth"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/outcome"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Artifact is content that was unpacked and checked. It is shared: don't change it.
type Artifact struct {
	// Digest identifies the content; see [artifact.Content.Digest].
	Digest string
	// Files sorted by name, without a byte order mark. Those of a chart have names that are
	// relative to its directory.
	Files []artifact.File

	name, version string // of a chart, as its Chart.yaml says
	metadata      []byte // metadata.yaml of a bundle, as JSON; nil if there is none
}

// Fetch returns the content with the digest, which has to be what Resolve said of the same
// reference. All who may have it share one download, and one unpacking. Errors are of type
// [*failure.Error], but for that of ctx.
//
// To know a digest gives no right to the content: it is shared by those alone who ask at the
// same address with the same credentials.
func (s *Sources) Fetch(ctx context.Context, ref reference.Reference, digest string) (*Artifact, error) {
	got, err := s.fetch(ctx, ref, digest)
	if err != nil {
		return nil, s.rejected(ctx, ref, digest, conclude(ctx, ref, err))
	}
	if ref.Kind != artifact.KindBundle { // of which paths may be wrong
		s.accept(ctx, ref, digest)
	}
	return got, nil
}

func (s *Sources) fetch(ctx context.Context, ref reference.Reference, digest string) (*Artifact, error) {
	if err := s.check(ref); err != nil {
		return nil, err
	}
	if err := s.verify(ctx, ref, digest); err != nil {
		return nil, err
	}
	got, err := s.contents.Ask(ctx, s.contentQuestion(ctx, ref, digest), func(ctx context.Context) (*Artifact, error) {
		content, err := s.content(ctx, ref, digest)
		if err != nil {
			return nil, err
		}
		if content.Digest() != digest {
			return nil, ref.Changed()
		}
		return s.unpack(ctx, content, ref.Kind)
	})
	if err != nil {
		return nil, err
	}
	return got, s.accepts(ref, got)
}

func (s *Sources) contentQuestion(ctx context.Context, ref reference.Reference, digest string) outcome.Question {
	return s.question(ctx, digest+ref.Kind.Suffix()+" from "+s.scope(ctx, ref), ref)
}

// scope names who may have the same content as the reference.
func (s *Sources) scope(ctx context.Context, ref reference.Reference) string {
	switch {
	case ref.Bundle != nil:
		return ref.String() + ", " + s.scope(ctx, reference.BundleOf(ref.Namespace, ref.Bundle))
	case ref.Remote():
		return cmp.Or(s.access.Scope(ctx, ref), ref.String()) // of a Secret that isn't known, those who name it
	case s.objects != nil && ref.Chart.Path == "":
		return ref.String() + " at " + s.objects.Version(ctx, ref.Object())
	}
	return ref.String()
}

// content returns what the reference means now. On another host, or on disk, that is the
// content with the digest.
func (s *Sources) content(ctx context.Context, ref reference.Reference, digest string) (artifact.Content, error) {
	switch {
	case ref.Bundle != nil:
		bundle, err := s.OpenBundle(ctx, ref.Namespace, ref.Bundle)
		if err != nil {
			return artifact.Content{}, err
		}
		return bundle.content(ref.Chart.Path, ref.Kind)
	case ref.Remote():
		return s.download(ctx, ref, digest)
	}
	got, err := counted(s, ref, func() (artifact.Content, error) {
		if ref.Chart.Path != "" {
			return s.local.Fetch(ctx, ref.Chart.Path, ref.Kind)
		}
		return s.readObject(ctx, ref)
	})
	if err == nil {
		s.countBytes(ref, got)
	}
	return got, err
}

// download returns what is on disk, or asks the source for it.
func (s *Sources) download(ctx context.Context, ref reference.Reference, digest string) (artifact.Content, error) {
	if got, found := s.stored(ctx, ref, digest); found {
		return got, nil
	}
	var got artifact.Content
	err := s.visit(ctx, ref, func(ctx context.Context, c *auth.Client, b backend) (err error) {
		got, err = b.Fetch(ctx, c, digest)
		return err
	})
	if err == nil {
		s.downloaded(ctx, ref, got)
	}
	return got, err
}

// unpack has a worker open the content.
func (s *Sources) unpack(ctx context.Context, content artifact.Content, kind artifact.Kind) (*Artifact, error) {
	unpackings.Inc()
	content.Kind = kind
	opened, err := s.Opener.Open(ctx, &opener.Job{Unpack: &opener.Unpack{Content: content, Limits: s.Limits}})
	if err != nil {
		return nil, err
	}
	got := &Artifact{Digest: content.Digest(), Files: opened.Files, name: opened.Name, version: opened.Version}
	if kind == artifact.KindBundle {
		got.metadata = s.metadataOf(ctx, got.Files)
	}
	return got, nil
}

// metadataOf returns what the release of a Cluster Stack says it is, as JSON; nil if it says
// nothing, or what can't be read: package bundle tells of that.
func (s *Sources) metadataOf(ctx context.Context, files []artifact.File) []byte {
	file := artifact.Find(files, layout.OnlyDirectory(namesOf(files))+clusterstack.MetadataFile)
	if file == nil {
		return nil
	}
	opened, err := s.Opener.Open(ctx, &opener.Job{YAML: &opener.YAML{Data: file.Data}})
	if err != nil {
		return nil
	}
	return opened.JSON
}

func namesOf(files []artifact.File) []string {
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, file.Name)
	}
	return names
}

// bytes estimates the memory that it holds.
func (a *Artifact) bytes() int64 {
	const overhead = 128 // of a file
	if a == nil {
		return overhead
	}
	size := int64(overhead)
	for _, file := range a.Files {
		size += int64(len(file.Name)+len(file.Data)) + overhead
	}
	return size
}
