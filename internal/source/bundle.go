// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"path"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/retry"
	"github.com/cluster-chandler/chandler/internal/source/answers"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Bundle is a bundle's files. A path in it may lead into archives, as in
// "addons.tgz/cni". It is for the one who opened it, and as long as he waits: it isn't safe
// for concurrent use.
type Bundle struct {
	// Digest of the bundle; see [Artifact].
	Digest string

	sources *Sources
	ctx     context.Context //nolint:containedctx // of who opened it
	scope   string          // see [Sources.scope]
	files   []artifact.File
	opened  map[string]*Bundle // archives, by path
	left    *artifact.Limits   // of what all archives together may have
}

// OpenBundle reads a bundle. Its files, and those of the archives in it, count until the context's holder releases them; see
// [budget.Holding].
func (s *Sources) OpenBundle(ctx context.Context, namespace string, from *addonsv1.BundleSource) (*Bundle, error) {
	ref := reference.BundleOf(namespace, from)
	digest, err := s.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	fetched, err := s.Fetch(ctx, ref, digest)
	if err != nil {
		return nil, err
	}
	most := fetched.bytes() + s.Limits.TotalBytes
	claim := s.Memory.Claim(budget.Tenant{Namespace: namespace}, most)
	if !claim.Try(most) {
		busy := failure.New(failure.ArtifactPending, "other bundles of namespace %s are open, and take all memory that it may have", namespace)
		busy.Wait, busy.RetryAfter = true, retry.Room
		return nil, ref.Locate(busy)
	}
	claim.Release(ctx)
	scope, _ := s.scope(ctx, ref)
	return s.bundleOf(ctx, scope, digest, fetched.Files), nil
}

// bundleOf returns files as a bundle.
func (s *Sources) bundleOf(ctx context.Context, scope, digest string, files []artifact.File) *Bundle {
	left := s.Limits
	return &Bundle{Digest: digest, sources: s, ctx: ctx, scope: scope, files: files, opened: map[string]*Bundle{}, left: &left}
}

// resolveInBundle returns the digest of an artifact with a path in a bundle.
func (s *Sources) resolveInBundle(ctx context.Context, ref reference.Reference) (string, error) {
	bundle, err := s.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return "", err
	}
	q := answers.Question{Key: bundle.Digest + " " + ref.Chart.Path + ref.Kind.Suffix() + " from " + bundle.scope}
	return s.digests.Ask(ctx, q, func(ctx context.Context) (string, error) {
		got, err := fetching{s}.readInBundle(ctx, ref)
		return got.Digest(), err
	})
}

// fetching gets contents that are nowhere in memory.
type fetching struct{ *Sources }

// readInBundle returns what is at a path in a bundle.
func (s fetching) readInBundle(ctx context.Context, ref reference.Reference) (artifact.Content, error) {
	bundle, err := s.OpenBundle(ctx, ref.Namespace, ref.Bundle)
	if err != nil {
		return artifact.Content{}, err
	}
	return bundle.content(ref.Chart.Path, ref.Kind)
}

// Names returns the names of the files outside of archives, sorted.
func (b *Bundle) Names() []string { return artifact.Names(b.files) }

// Read returns a file; false if there is none.
func (b *Bundle) Read(name string) ([]byte, bool, error) {
	within, rest, err := b.walk(name)
	if err != nil {
		return nil, false, err
	}
	file := artifact.Find(within.files, rest)
	if file == nil {
		return nil, false, nil
	}
	return file.Data, true, nil
}

// ReadYAML returns a YAML file as JSON; false if there is none.
func (b *Bundle) ReadYAML(name string) ([]byte, bool, error) {
	data, found, err := b.Read(name)
	if err != nil || !found {
		return nil, found, err
	}
	opened, err := b.sources.Opener.Open(b.ctx, &opener.Job{YAML: &opener.YAML{Data: data}})
	if err != nil {
		return nil, true, failure.Within(failure.Quote(name), err)
	}
	return opened.JSON, true, nil
}

// ChartDigest returns the digest of the chart at the path: an archive, or a directory.
func (b *Bundle) ChartDigest(name string) (string, error) {
	got, err := b.content(name, artifact.KindChart)
	if err != nil {
		return "", reference.Reference{Chart: addonsv1.ChartSource{Path: name}, Bundle: &addonsv1.BundleSource{}}.Locate(err)
	}
	return got.Digest(), nil
}

// content returns the artifact at the path.
func (b *Bundle) content(name string, kind artifact.Kind) (artifact.Content, error) {
	within, rest, err := b.walk(path.Clean(name))
	if err != nil {
		return artifact.Content{}, err
	}
	if file := artifact.Find(within.files, rest); file != nil {
		return artifact.Content{Archive: file.Data}, kind.CheckFile(rest)
	}
	files, err := within.directory(rest)
	if err != nil || kind.Verbatim() {
		return artifact.Content{Files: files}, err
	}
	opened, err := b.sources.Opener.Open(b.ctx, &opener.Job{Package: &opener.Package{Files: files}})
	if err != nil {
		return artifact.Content{}, err
	}
	return artifact.Content{Files: opened.Files}, nil
}

// directory returns the files of a directory, with names relative to it.
func (b *Bundle) directory(name string) ([]artifact.File, error) {
	if name == "." {
		return b.files, nil
	}
	var found []artifact.File
	for _, file := range b.files {
		if below, ok := strings.CutPrefix(file.Name, name+"/"); ok {
			found = append(found, artifact.File{Name: below, Data: file.Data})
		}
	}
	if len(found) == 0 {
		return nil, failure.New(failure.ArtifactNotFound, "the bundle has nothing of this name; correct the path, or the bundle")
	}
	return found, nil
}

// walk follows the path into archives, but not into the last part. It returns what
// has the rest of the path.
func (b *Bundle) walk(name string) (within *Bundle, rest string, err error) {
	for depth := 0; ; depth++ {
		archive, below := b.archiveIn(name)
		switch {
		case archive == nil:
			return b, name, nil
		case depth == artifact.Nesting:
			return nil, "", failure.New(failure.ArtifactRefused, "archives are nested more than %d deep; unpack the inner ones", artifact.Nesting)
		}
		if b, err = b.open(archive); err != nil {
			return nil, "", err
		}
		name = below
	}
}

// archiveIn finds the archive that the path leads into; nil if there is none.
func (b *Bundle) archiveIn(name string) (archive *artifact.File, below string) {
	for i, c := range name {
		if c == '/' && artifact.IsArchive(name[:i]) {
			if archive = artifact.Find(b.files, name[:i]); archive != nil {
				return archive, name[i+1:]
			}
		}
	}
	return nil, ""
}

// open unpacks an archive of the bundle, once for all who may have the bundle.
func (b *Bundle) open(archive *artifact.File) (*Bundle, error) {
	if opened, known := b.opened[archive.Name]; known {
		return opened, nil
	}
	content := artifact.Content{Archive: archive.Data}
	q := answers.Question{Key: "archive " + content.Digest() + " from " + b.scope}
	got, err := b.sources.contents.Ask(b.ctx, q, func(ctx context.Context) (*Artifact, error) {
		return fetching{b.sources}.unpack(ctx, content, artifact.KindBundle)
	})
	if err != nil {
		return nil, failure.Within(failure.Quote(archive.Name), err)
	}
	b.left.Entries -= len(got.Files)
	b.left.TotalBytes -= artifact.Content{Files: got.Files}.Bytes()
	if b.left.TotalBytes < 0 || b.left.Entries < 0 {
		return nil, failure.New(failure.ArtifactTooLarge, "%s, with the other archives of the bundle that paths lead into, has more than %d bytes or %d files, the most that are accepted; take out what isn't needed",
			failure.Quote(archive.Name), b.sources.Limits.TotalBytes, b.sources.Limits.Entries)
	}
	opened := &Bundle{sources: b.sources, ctx: b.ctx, scope: b.scope, files: got.Files, opened: map[string]*Bundle{}, left: b.left}
	b.opened[archive.Name] = opened
	return opened, nil
}
