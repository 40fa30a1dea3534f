// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// ChartFile is what makes a directory a chart.
const ChartFile = "Chart.yaml"

// UTF8BOM starts some files that were written on Windows.
var UTF8BOM = []byte{0xEF, 0xBB, 0xBF}

// inspection reads an archive, and those inside it, and counts what they cost together.
type inspection struct {
	kind    Kind
	limits  Limits
	total   int64 // Bytes left to expand
	headers int64 // Bytes left of headers
	entries int   // left to read
	// decompressors are reused, one for each level: a new one for each of
	// thousands of tiny archives would cost far more than these hold.
	decompressors []*gzip.Reader
}

// archive reads one archive, which is nested in depth others, to its very end.
func (i *inspection) archive(data []byte, depth int) ([]File, error) {
	in := bytes.NewReader(data) // an io.ByteReader, so that nothing is read ahead of the gzip stream's end
	expanded, err := i.decompress(in, depth)
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "it isn't a gzip-compressed tar archive: %w; make one, as with `helm package` or `tar -czf`", err)
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
		return nil, failure.New(failure.ArtifactRefused, "there is more content after the end of its gzip stream; make the archive anew")
	}
	if err := names.finish(); err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
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
func (i *inspection) files(in *meter, names *layout) ([]File, error) {
	files := []File{}
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
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d entries; take out what isn't needed", i.limits.Entries)
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
		files = append(files, File{Name: name, Data: data})
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
	return TrimBOM(data), nil
}

// checkType lets files, directories and comments pass.
func checkType(header *tar.Header) error {
	for key := range header.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			return failure.New(failure.ArtifactRefused, "entry %s is a sparse file; make the archive without --sparse", failure.Quote(header.Name))
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
				return failure.New(failure.ArtifactRefused, "a global PAX header changes all entries; make the archive anew")
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
	return failure.New(failure.ArtifactRefused, "entry %s is %s; put the file itself there, or take it out", failure.Quote(header.Name), kind)
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
	return failure.New(failure.ArtifactInvalid, "the archive is broken: %w; make it anew", err)
}

// TrimBOM takes the byte order mark off the start of a file, as Helm does.
func TrimBOM(data []byte) []byte { return bytes.TrimPrefix(data, UTF8BOM) }
