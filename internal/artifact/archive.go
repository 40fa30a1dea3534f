// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"regexp"
	"strings"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// ChartFile is what makes a directory a chart.
const ChartFile = "Chart.yaml"

// unpacking reads an archive, and those inside it, and counts what they cost together.
type unpacking struct {
	kind    Kind
	limits  Limits
	total   int64 // bytes left to expand
	entries int   // left to read
}

// Unpack checks the content and returns its files, sorted by name: those in the
// archive, or the one that plain manifests are. It gives up at the first thing that an
// honest artifact doesn't have. Errors are [failure.Error]s without a reference.
func (c Content) Unpack(limits Limits) ([]File, error) {
	u := &unpacking{kind: c.Kind, limits: limits, total: limits.TotalBytes, entries: limits.Entries}
	if c.Files != nil {
		u.entries -= len(c.Files)
		u.total -= c.Bytes()
		if u.entries < 0 || u.total < 0 {
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d files or %d bytes; take out what isn't needed", limits.Entries, limits.TotalBytes)
		}
		return c.Files, u.nested(c.Files, 0)
	}
	if int64(len(c.Archive)) > limits.ArchiveBytes {
		return nil, failure.TooLarge("the archive", limits.ArchiveBytes)
	}
	if c.Kind == KindManifests && !IsCompressed(c.Archive) {
		return plain(c.Archive, limits)
	}
	return u.archive(c.Archive, 0)
}

// archive reads one archive, which is nested in depth others.
func (u *unpacking) archive(data []byte, depth int) ([]File, error) {
	decompressed, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, failure.New(failure.ArtifactInvalid, "it isn't a gzip-compressed tar archive: %w; make one, as with `helm package` or `tar -czf`", err)
	}
	limited := &io.LimitedReader{R: decompressed, N: u.total + 1} // one more, to tell the end from the limit
	files, err := u.files(tar.NewReader(limited))
	if u.total = limited.N - 1; u.total < 0 { // whatever the parser made of it
		return nil, failure.TooLarge("its expanded content", u.limits.TotalBytes)
	}
	if err != nil {
		return nil, err
	}
	SortFiles(files)
	if !u.kind.Verbatim() && Find(files, ChartFile) == nil {
		return nil, failure.New(failure.ArtifactInvalid, "there is no Chart.yaml in its top-level directory; make the archive with `helm package`")
	}
	return files, u.nested(files, depth)
}

// files reads the entries of an archive. No two may have one name.
func (u *unpacking) files(archive *tar.Reader) ([]File, error) {
	files, known, top := []File{}, map[string]bool{}, ""
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		// The name is ours to check, whatever GODEBUG=tarinsecurepath says.
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) {
			return nil, broken(err)
		}
		if u.entries--; u.entries < 0 {
			return nil, failure.New(failure.ArtifactTooLarge, "it has more than %d entries; take out what isn't needed", u.limits.Entries)
		}
		directory := header.Typeflag == tar.TypeDir
		switch {
		case header.Typeflag == tar.TypeXGlobalHeader: // as git archive writes it
			continue
		case header.Typeflag != tar.TypeReg && !directory:
			return nil, failure.New(failure.ArtifactRefused, "entry %s is a link, a device, or else neither a file nor a directory; put the file itself there, or take it out", failure.Quote(header.Name))
		}
		name, err := u.name(header.Name, directory, &top)
		if err != nil {
			return nil, err
		}
		if known[name] && name != "" {
			return nil, failure.New(failure.ArtifactRefused, "entry %s is there twice; take one of both out", failure.Quote(header.Name))
		}
		known[name] = true
		if directory {
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

// name returns an entry's name in the artifact. In a chart, it is the name below the top-level
// directory, which all entries share. The name of the artifact's own directory is "".
func (u *unpacking) name(full string, directory bool, top *string) (string, error) {
	if directory {
		full = strings.TrimSuffix(full, "/")
	}
	if u.kind.Verbatim() { // `tar -C directory .` puts "./" before all names
		if full = strings.TrimPrefix(full, "./"); directory && (full == "." || full == "") {
			return "", nil
		}
	}
	if err := CheckName(full); err != nil || u.kind.Verbatim() {
		return full, err
	}
	first, name, below := strings.Cut(full, "/")
	if *top == "" {
		*top = first
	}
	if !below && !directory || first != *top {
		return "", failure.New(failure.ArtifactRefused, "entry %s is outside of the top-level directory; make the archive with `helm package`", failure.Quote(full))
	}
	return name, nil
}

// broken returns the error of what isn't in the gzip or tar format.
func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return failure.New(failure.ArtifactInvalid, "the archive is broken: %w; make it again", err)
}

// nested checks the archives among the files, which Helm's loader will unpack.
func (u *unpacking) nested(files []File, depth int) error {
	if u.kind.Verbatim() {
		return nil // they are files like all others
	}
	for _, file := range files {
		if !nestedName.MatchString(file.Name) {
			continue
		}
		if depth == Nesting {
			return failure.New(failure.ArtifactRefused, "%s: archives are nested more than %d deep; unpack the inner ones", failure.Quote(file.Name), Nesting)
		}
		if _, err := u.archive(file.Data, depth+1); err != nil {
			return failure.Within(failure.Quote(file.Name), err)
		}
	}
	return nil
}

// nestedName is that of a file that Helm would unpack: an archive directly in a
// charts directory, the chart's own or that of an unpacked dependency. Whatever else has
// that name, as files/charts/x.tgz, is a file like all others.
var nestedName = regexp.MustCompile(`^(charts/[^._/][^/]*/)*charts/[^._/][^/]*[.]tgz$`)
