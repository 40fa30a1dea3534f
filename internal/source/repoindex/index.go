// SPDX-License-Identifier: Apache-2.0

package repoindex

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact"
)

// Limits of an index. A field that is zero takes its default.
type Limits struct {
	// Bytes of the index, uncompressed. Defaults to 64 MiB.
	Bytes int64
	// Kept is how many bytes the versions' fields may have together. Defaults to 16 MiB.
	Kept int64
	// Versions of all charts together. Defaults to 100,000.
	Versions int
	// VersionBytes is how many bytes the fields of one version may have. Defaults to 16 KiB.
	VersionBytes int
	// Reserve is called once, before an index is read on that takes more than a little
	// memory: up to as much as may be kept. Nil: nobody minds.
	Reserve func() error
}

// little is the memory that is taken without Reserve.
const little = 256 << 10 // bytes

// Defaults of [Limits].
const (
	DefaultBytes        = artifact.DefaultIndexBytes
	DefaultKept         = 16 << 20 // bytes
	DefaultVersions     = 100_000
	DefaultVersionBytes = 16 << 10 // bytes
)

var (
	// ErrTooLarge says that the index is beyond one of the limits.
	ErrTooLarge = errors.New("it is larger than what is accepted")
	// ErrNoIndex says that this isn't an index, or not in the usual layout.
	ErrNoIndex = errors.New("it isn't an index as `helm repo index` writes it")
)

// Version is one version of a chart.
type Version struct {
	Version string
	// URL of the archive, as it is written: absolute, or relative to the index.
	URL string
	// Digest of the archive, SHA-256 in hex; may be empty.
	Digest string
}

// Index says where the charts of a repository are.
type Index struct {
	charts map[string][]Version
	size   int64
}

// Size is about the memory that the index takes, in bytes.
func (i *Index) Size() int64 { return i.size }

// Versions of a chart, in the order of the index.
func (i *Index) Versions(chart string) []Version { return i.charts[chart] }

// Find returns a version of a chart. A leading "v" doesn't matter if there is
// none that is written just so.
func (i *Index) Find(chart, version string) (Version, bool) {
	bare := strings.TrimPrefix(version, "v")
	for _, same := range []func(Version) bool{
		func(v Version) bool { return v.Version == version },
		func(v Version) bool { return strings.TrimPrefix(v.Version, "v") == bare },
	} {
		for _, v := range i.charts[chart] {
			if same(v) {
				return v, true
			}
		}
	}
	return Version{}, false
}

// Read reads an index. Errors are ErrTooLarge, ErrNoIndex, or those of the reader.
func Read(in io.Reader, limits Limits) (*Index, error) {
	limits = limits.withDefaults()
	limited := &limitedReader{in: in, left: limits.Bytes}
	lines := bufio.NewReaderSize(limited, lineBytes)
	index := &builder{limits: limits, Index: Index{charts: map[string][]Version{}}}
	start, err := lines.Peek(len(utf8BOM))
	if err == nil && bytes.Equal(start, utf8BOM) {
		_, err = lines.Discard(len(utf8BOM))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	read := index.readYAML
	if start, _ := lines.Peek(1); len(start) == 1 && start[0] == '{' {
		read = index.readJSON
	}
	if err := read(lines); err != nil {
		if limited.err != nil { // whatever the parser made of it
			return nil, limited.err
		}
		return nil, err
	}
	return &index.Index, nil
}

var utf8BOM = []byte{0xEF, 0xBB, 0xBF}

// builder adds versions to an index, within limits.
type builder struct {
	Index
	limits   Limits
	versions int
	reserved bool
}

// fields are those of a version that matter.
type fields struct {
	Version string   `yaml:"version"`
	URLs    []string `yaml:"urls"`
	Digest  string   `yaml:"digest"`
}

// add keeps a version. One without a version or an address is of no use.
func (b *builder) add(chart string, f fields) error {
	if b.versions++; b.versions > b.limits.Versions {
		return fmt.Errorf("%w: more than %d versions", ErrTooLarge, b.limits.Versions)
	}
	if f.Version == "" || len(f.URLs) == 0 || f.URLs[0] == "" {
		return nil
	}
	const overhead = 64 // of the strings' headers
	kept := Version{Version: f.Version, URL: f.URLs[0], Digest: f.Digest}
	b.size += int64(len(kept.Version)+len(kept.URL)+len(kept.Digest)) + overhead
	if len(b.charts[chart]) == 0 {
		b.size += int64(len(chart)) + overhead
	}
	if b.size > little {
		if err := b.reserve(); err != nil {
			return err
		}
	}
	if b.size > b.limits.Kept {
		return fmt.Errorf("%w: more than %d bytes of versions", ErrTooLarge, b.limits.Kept)
	}
	b.charts[chart] = append(b.charts[chart], kept)
	return nil
}

// errNoRoom says that there is no memory for an index as large as this one.
var errNoRoom = errors.New("it can't be kept")

// reserve makes sure that there is memory for what is kept.
func (b *builder) reserve() error {
	if b.reserved || b.limits.Reserve == nil {
		return nil
	}
	b.reserved = true
	if err := b.limits.Reserve(); err != nil {
		return fmt.Errorf("%w: %w", errNoRoom, err)
	}
	return nil
}

func (l Limits) withDefaults() Limits {
	if l.Bytes <= 0 {
		l.Bytes = DefaultBytes
	}
	if l.Kept <= 0 {
		l.Kept = DefaultKept
	}
	if l.Versions <= 0 {
		l.Versions = DefaultVersions
	}
	if l.VersionBytes <= 0 {
		l.VersionBytes = DefaultVersionBytes
	}
	return l
}

// limitedReader fails, other than io.LimitReader, when there is more.
type limitedReader struct {
	in   io.Reader
	left int64
	err  error // but for io.EOF
}

// Read implements io.Reader.
func (l *limitedReader) Read(p []byte) (int, error) {
	if l.err != nil {
		return 0, l.err
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.in.Read(p)
	if l.left -= int64(n); l.left < 0 {
		n, err = 0, ErrTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.err = err
	}
	return n, err
}
