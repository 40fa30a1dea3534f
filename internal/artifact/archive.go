// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// ChartFile is what makes a directory a chart.
const ChartFile = "Chart.yaml"

// utf8BOM starts some files that were written on Windows.
var utf8BOM = []byte{0xEF, 0xBB, 0xBF}

// unpacking reads an archive, and those inside it, and counts what they cost together.
type unpacking struct {
	kind    Kind
	limits  Limits
	total   int64 // bytes left to expand
	entries int   // left to read
}

// archive reads one archive, which is nested in depth others.
func (u *unpacking) archive(data []byte, depth int) ([]File, error) {
	decompressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "it isn't a gzip-compressed tar archive: %w; make one, as with `helm package` or `tar -czf`", err)
	}
	names := &layout{kind: u.kind, limits: u.limits, names: map[string]bool{}}
	limited := &io.LimitedReader{R: decompressed, N: u.total + 1} // one more, to tell the end from the limit
	files, err := u.files(limited, names)
	if u.total = limited.N - 1; u.total < 0 { // whatever the parser made of it
		return nil, failure.TooLarge("its expanded content", u.limits.TotalBytes)
	}
	if err != nil {
		return nil, err
	}
	if err := names.finish(); err != nil {
		return nil, err
	}
	SortFiles(files)
	return files, u.nested(files, depth)
}

// files reads the entries of a tar stream.
func (u *unpacking) files(in io.Reader, names *layout) ([]File, error) {
	files := []File{}
	archive := tar.NewReader(in)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		// The name is ours to judge, whatever GODEBUG=tarinsecurepath says.
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, broken(err)
		}
		if u.entries--; u.entries < 0 {
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d entries; take out what isn't needed", u.limits.Entries)
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
		if header.Size > u.limits.FileBytes {
			return nil, failure.TooLarge("entry "+failure.Quote(header.Name), u.limits.FileBytes)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, broken(err)
		}
		files = append(files, File{Name: name, Data: TrimBOM(data)})
	}
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

// broken is the error of what isn't in the gzip or tar format.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return failure.New(failure.ArtifactInvalid, "the archive is broken: %w; make it anew", err)
}

// TrimBOM takes the byte order mark off the start of a file, as Helm does.
func TrimBOM(data []byte) []byte { return bytes.TrimPrefix(data, utf8BOM) }
