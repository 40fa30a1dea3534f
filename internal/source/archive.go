// SPDX-License-Identifier: Apache-2.0

package source

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/render"
	"github.com/cluster-chandler/chandler/internal/source/failure"
)

// chartFile is what makes a directory a chart.
const chartFile = "Chart.yaml"

// utf8BOM starts some files that were written on Windows.
var utf8BOM = []byte{0xEF, 0xBB, 0xBF}

// unpack checks the content and returns its files, sorted by name: those in the
// archive, or the one that plain manifests are. It holds at
// most Limits.TotalBytes of them, writes nothing, and gives up at the first thing
// that an honest chart doesn't have. Errors are [failure.Error]s without a reference.
func (c content) unpack(limits Limits) ([]render.File, error) {
	check := &inspection{kind: c.kind, limits: limits, total: limits.TotalBytes, headers: limits.allHeaders(), entries: limits.Entries}
	if c.files != nil {
		for _, file := range c.files {
			check.total -= int64(len(file.Data))
		}
		return c.files, check.nested(c.files, 0)
	}
	if int64(len(c.archive)) > limits.ArchiveBytes {
		return nil, failure.TooLarge("the archive", limits.ArchiveBytes)
	}
	if c.kind == KindManifests && !isCompressed(c.archive) {
		return plain(c.archive, limits)
	}
	return check.archive(c.archive, 0)
}

// inspection reads an archive, and those inside it, and counts what they cost together.
type inspection struct {
	kind    Kind
	limits  Limits
	total   int64 // bytes left to expand
	headers int64 // bytes left of headers
	entries int   // left to read
	// decompressors are reused, one for each level: a new one for each of
	// thousands of tiny archives would cost far more than these hold.
	decompressors []*gzip.Reader
}

// archive reads one archive, which is nested in depth others, to its very end.
func (i *inspection) archive(data []byte, depth int) ([]render.File, error) {
	in := bytes.NewReader(data) // an io.ByteReader, so that nothing is read ahead of the gzip stream's end
	expanded, err := i.decompress(in, depth)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "it isn't a gzip-compressed tar archive: %w", err)
	}
	meter := &meter{in: expanded, check: i}
	names := &layout{kind: i.kind, limits: i.limits, names: map[string]bool{}}
	files, err := i.files(meter, names)
	if err != nil {
		return nil, err
	}
	if err := meter.drain(); err != nil {
		return nil, err
	}
	if in.Len() > 0 {
		return nil, failure.New(failure.ArtifactRefused, "there is more content after the end of its gzip stream")
	}
	if err := names.finish(); err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b render.File) int { return strings.Compare(a.Name, b.Name) })
	return files, i.nested(files, depth)
}

func (i *inspection) decompress(in *bytes.Reader, depth int) (*gzip.Reader, error) {
	for depth >= len(i.decompressors) { // archives in a directory start at depth 1
		i.decompressors = append(i.decompressors, new(gzip.Reader))
	}
	expanded := i.decompressors[depth]
	if err := expanded.Reset(in); err != nil {
		return nil, err
	}
	expanded.Multistream(false)
	return expanded, nil
}

// files reads the entries of a tar stream.
func (i *inspection) files(in *meter, names *layout) ([]render.File, error) {
	files := []render.File{}
	archive := tar.NewReader(in)
	for {
		in.startHeader()
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		// The name is ours to judge, whatever GODEBUG=tarinsecurepath says.
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, broken(err)
		}
		in.endHeader()
		if i.entries--; i.entries < 0 {
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d entries", i.limits.Entries)
		}
		if err := checkType(header); err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeXGlobalHeader {
			continue
		}
		name, err := names.add(header)
		if err != nil {
			return nil, err
		}
		if header.Typeflag == tar.TypeDir {
			continue
		}
		data, err := i.file(archive, header)
		if err != nil {
			return nil, err
		}
		files = append(files, render.File{Name: name, Data: data})
	}
}

// file reads an entry's content. Its declared size is checked before anything is allocated.
func (i *inspection) file(in io.Reader, header *tar.Header) ([]byte, error) {
	if header.Size > i.limits.FileBytes {
		return nil, failure.TooLarge("entry "+failure.Quote(header.Name), i.limits.FileBytes)
	}
	if header.Size > i.total {
		return nil, failure.TooLarge("its expanded content", i.limits.TotalBytes)
	}
	data := make([]byte, header.Size)
	if _, err := io.ReadFull(in, data); err != nil {
		return nil, broken(err)
	}
	return trimBOM(data), nil
}

// nested checks the archives among the files, which Helm's loader will unpack.
func (i *inspection) nested(files []render.File, depth int) error {
	if i.kind.files() {
		return nil // they are files like all others
	}
	for _, file := range files {
		if !isNested(file.Name) {
			continue
		}
		if depth == i.limits.Nesting {
			return failure.New(failure.ArtifactRefused, "%s: archives are nested more than %d deep", failure.Quote(file.Name), i.limits.Nesting)
		}
		if _, err := i.archive(file.Data, depth+1); err != nil {
			var inner *failure.Error
			errors.As(err, &inner)
			return failure.New(inner.Reason, "%s: %w", failure.Quote(file.Name), inner.Err)
		}
	}
	return nil
}

// isNested tells whether Helm would unpack the file: an archive directly in a
// charts directory, the chart's own or that of an unpacked dependency.
func isNested(name string) bool {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	return last > 0 && parts[last-1] == "charts" && strings.HasSuffix(parts[last], ".tgz") &&
		!strings.HasPrefix(parts[last], ".") && !strings.HasPrefix(parts[last], "_")
}

// checkType lets files, directories and comments pass.
func checkType(header *tar.Header) error {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return failure.New(failure.ArtifactRefused, "entry %s is a sparse file", failure.Quote(header.Name))
		}
	}
	switch header.Typeflag {
	case tar.TypeReg, tar.TypeDir:
		return nil
	case tar.TypeXGlobalHeader:
		// git archive writes a comment. Anything else would rename or resize
		// the entries for other tools, but not for this one.
		for key := range header.PAXRecords {
			if key != "comment" {
				return failure.New(failure.ArtifactRefused, "a global PAX header changes all entries")
			}
		}
		return nil
	}
	kind, known := map[byte]string{
		tar.TypeLink: "a hard link", tar.TypeSymlink: "a symbolic link", tar.TypeChar: "a device",
		tar.TypeBlock: "a device", tar.TypeFifo: "a named pipe", tar.TypeGNUSparse: "a sparse file",
	}[header.Typeflag]
	if !known {
		kind = "neither a file nor a directory"
	}
	return failure.New(failure.ArtifactRefused, "entry %s is %s", failure.Quote(header.Name), kind)
}

// broken words an error of the gzip or tar format; a refusal of the meter stays as it is.
func broken(err error) error {
	var refusal *failure.Error
	if errors.As(err, &refusal) {
		return refusal
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return failure.New(failure.ArtifactInvalid, "the archive is broken: %w", err)
}

// trimBOM takes the byte order mark off the start of a file, as Helm does.
func trimBOM(data []byte) []byte { return bytes.TrimPrefix(data, utf8BOM) }
