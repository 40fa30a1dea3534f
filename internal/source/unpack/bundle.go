// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"context"
	"path"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/opener"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Bundle is a bundle's files. A path in it may lead into archives, as in
// "addons.tgz/cni". It is for the one who opened it, and as long as he waits: it isn't safe
// for concurrent use.
type Bundle struct {
	// Digest of the bundle; see [Artifact].
	Digest string

	unpacker Unpacker
	once     Once
	ctx      context.Context //nolint:containedctx // of who opened it
	files    []artifact.File
	opened   map[string]*Bundle // archives, by path
	left     *artifact.Limits   // of what all archives together may have
}

// Once unpacks an archive of a digest once for all who may have the bundle.
type Once func(ctx context.Context, digest string, unpack func(context.Context) (*Artifact, error)) (*Artifact, error)

// Bundle returns files as a bundle.
func (u Unpacker) Bundle(ctx context.Context, digest string, files []artifact.File, once Once) *Bundle {
	left := u.Limits
	return &Bundle{Digest: digest, unpacker: u, once: once, ctx: ctx, files: files, opened: map[string]*Bundle{}, left: &left}
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
	opened, err := b.unpacker.Opener.Open(b.ctx, &opener.Job{YAML: &opener.YAML{Data: data}})
	if err != nil {
		return nil, true, failure.Within(failure.Quote(name), err)
	}
	return opened.JSON, true, nil
}

// ChartDigest returns the digest of the chart at the path: an archive, or a directory.
func (b *Bundle) ChartDigest(name string) (string, error) {
	got, err := b.Content(name, artifact.KindChart)
	if err != nil {
		return "", reference.Reference{Chart: addonsv1.ChartSource{Path: name}, Bundle: &addonsv1.BundleSource{}}.Locate(err)
	}
	return got.Digest(), nil
}

// Content returns the artifact at the path.
func (b *Bundle) Content(name string, kind artifact.Kind) (artifact.Content, error) {
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
	opened, err := b.unpacker.Opener.Open(b.ctx, &opener.Job{Package: &opener.Package{Files: files}})
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
	got, err := b.once(b.ctx, content.Digest(), func(ctx context.Context) (*Artifact, error) {
		return b.unpacker.Unpack(ctx, content, artifact.KindBundle)
	})
	if err != nil {
		return nil, failure.Within(failure.Quote(archive.Name), err)
	}
	b.left.Entries -= len(got.Files)
	b.left.TotalBytes -= artifact.Content{Files: got.Files}.Bytes()
	if b.left.TotalBytes < 0 || b.left.Entries < 0 {
		return nil, failure.New(failure.ArtifactTooLarge, "%s, with the other archives of the bundle that paths lead into, has more than %d bytes or %d files, the most that are accepted; take out what isn't needed",
			failure.Quote(archive.Name), b.unpacker.Limits.TotalBytes, b.unpacker.Limits.Entries)
	}
	opened := *b
	opened.Digest, opened.files, opened.opened = "", got.Files, map[string]*Bundle{}
	b.opened[archive.Name] = &opened
	return &opened, nil
}
