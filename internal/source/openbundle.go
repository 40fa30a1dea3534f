// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/dependency"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// Bundle is a bundle's files. A path in it may lead into archives, as in
// "addons.tgz/cni". It is for the one who opened it, and as long as he waits: it isn't safe
// for concurrent use.
type Bundle struct {
	// Digest of the bundle; see [Artifact].
	Digest string

	sources  *Sources
	ctx      context.Context // of who opened it
	files    []artifact.File
	archives map[string]*Bundle // that were opened, by path
	// allowed is what all paths together may cost: a bundle may have many archives, and
	// a stack name many of them.
	allowed *artifact.Allowance
}

// OpenBundle reads a bundle.
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
	return &Bundle{
		Digest: digest, sources: s, ctx: ctx, files: fetched.Files,
		archives: map[string]*Bundle{}, allowed: artifact.NewAllowance(s.limits),
	}, nil
}

// Names of the files outside of archives, sorted.
func (b *Bundle) Names() []string {
	names := make([]string, 0, len(b.files))
	for _, file := range b.files {
		names = append(names, file.Name)
	}
	return names
}

// Read returns a file; false if there is none.
func (b *Bundle) Read(name string) ([]byte, bool, error) {
	within, rest, err := b.walk(name)
	if err != nil {
		return nil, false, err
	}
	file := within.find(rest)
	if file == nil {
		return nil, false, nil
	}
	return file.Data, true, nil
}

// ChartDigest is the digest of the chart at the path: an archive, or a directory.
func (b *Bundle) ChartDigest(name string) (string, error) {
	got, err := b.content(name, artifact.KindChart)
	if err != nil {
		return "", reference.Reference{Chart: addonsv1.ChartSource{Path: name}, Bundle: &addonsv1.BundleSource{}}.Locate(err)
	}
	return got.Digest(), nil
}

// content of the artifact at the path.
func (b *Bundle) content(name string, kind artifact.Kind) (artifact.Content, error) {
	within, rest, err := b.walk(path.Clean(name))
	if err != nil {
		return artifact.Content{}, err
	}
	if file := within.find(rest); file != nil {
		return artifact.Content{Archive: file.Data}, kind.CheckFile(rest)
	}
	files := below(within.files, rest)
	if len(files) == 0 {
		return artifact.Content{}, failure.New(failure.ArtifactNotFound, "the bundle has nothing of this name; correct the path, or the bundle")
	}
	if kind.Verbatim() {
		return artifact.Content{Files: files}, nil
	}
	if files, err = within.chartIn(files); err != nil {
		return artifact.Content{}, err
	}
	leave, err := b.sources.place(b.ctx) // it looks into archives
	if err != nil {
		return artifact.Content{}, err
	}
	defer leave()
	files, err = dependency.WithBeside(files, rest, b.sources.limits, within.chartBeside)
	return artifact.Content{Files: files}, err
}

// chartBeside returns the files of a chart's directory that another one depends on.
func (b *Bundle) chartBeside(name string) ([]artifact.File, error) {
	files := below(b.files, name)
	switch {
	case len(files) > 0:
		return b.chartIn(files)
	case b.find(name) != nil:
		return nil, dependency.NoDirectory(name)
	}
	return nil, failure.New(failure.ArtifactNotFound, "there is no %s in the bundle; correct the path, or the bundle", failure.Quote(name))
}

// chartIn returns the files of a chart's directory, as Helm would package them.
func (b *Bundle) chartIn(files []artifact.File) ([]artifact.File, error) {
	files, err := b.allowed.Packaged(files)
	if err != nil {
		return nil, err
	}
	if artifact.Find(files, artifact.ChartFile) == nil {
		return nil, failure.New(failure.ArtifactInvalid, "the directory has no Chart.yaml; name a chart's directory, or a chart archive")
	}
	return files, nil
}

// walk follows the path into archives, but not into the last part. It returns what
// has the rest of the path.
func (b *Bundle) walk(name string) (within *Bundle, rest string, err error) {
	within, rest = b, name
	for depth := 0; ; depth++ {
		archive, below, found := within.archiveIn(rest)
		if !found {
			return within, rest, nil
		}
		if depth == b.sources.limits.Nesting {
			return nil, "", failure.New(failure.ArtifactRefused, "archives are nested more than %d deep; unpack the inner ones", b.sources.limits.Nesting)
		}
		if within, err = within.open(archive); err != nil {
			return nil, "", err
		}
		rest = below
	}
}

// archiveIn finds the archive that the path leads into.
func (b *Bundle) archiveIn(name string) (archive, below string, found bool) {
	for i, c := range name {
		if c == '/' && artifact.IsArchive(name[:i]) && b.find(name[:i]) != nil {
			return name[:i], name[i+1:], true
		}
	}
	return "", "", false
}

// open unpacks an archive of the bundle, once.
func (b *Bundle) open(name string) (*Bundle, error) {
	if opened, known := b.archives[name]; known {
		return opened, nil
	}
	leave, err := b.sources.place(b.ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	files, err := b.allowed.Unpack(b.find(name).Data)
	if err != nil {
		return nil, inArchive(name, err)
	}
	opened := &Bundle{sources: b.sources, ctx: b.ctx, files: files, archives: map[string]*Bundle{}, allowed: b.allowed}
	b.archives[name] = opened
	return opened, nil
}

// inArchive says which of a bundle's archives the error is about.
func inArchive(name string, err error) error {
	var known *failure.Error
	if !errors.As(err, &known) {
		return err
	}
	if known.Reason == failure.ArtifactTooLarge {
		return failure.New(known.Reason, "%s, with the other archives of the bundle that paths lead into: %w", failure.Quote(name), known.Err)
	}
	return failure.New(known.Reason, "%s: %w", failure.Quote(name), known.Err)
}

func (b *Bundle) find(name string) *artifact.File {
	i, found := slices.BinarySearchFunc(b.files, name, func(file artifact.File, name string) int { return strings.Compare(file.Name, name) })
	if !found {
		return nil
	}
	return &b.files[i]
}

// below returns the files of a directory, with names relative to it.
func below(files []artifact.File, directory string) []artifact.File {
	if directory == "." {
		return files
	}
	var found []artifact.File
	for _, file := range files {
		if name, ok := strings.CutPrefix(file.Name, directory+"/"); ok {
			found = append(found, artifact.File{Name: name, Data: file.Data})
		}
	}
	return found
}
