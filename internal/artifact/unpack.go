// SPDX-License-Identifier: Apache-2.0

// Package artifact unpacks what is installed: charts, kustomizations, manifests, and bundles
// of them. All content is hostile until it has passed, so it is unpacked in worker
// processes only (package opener), which write nothing to disk.
package artifact

import (
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// Unpack checks the content and returns its files, sorted by name: those in the
// archive, or the one that plain manifests are. It gives up at the first thing that an
// honest artifact doesn't have. Errors are [failure.Error]s without a reference.
func (c Content) Unpack(limits Limits) ([]File, error) {
	u := &unpacking{kind: c.Kind, limits: limits, total: limits.TotalBytes, entries: limits.Entries}
	if c.Files != nil {
		if err := CheckSizes(c.Files, limits); err != nil {
			return nil, err
		}
		u.total -= c.Bytes()
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

// CheckSizes refuses more files, or larger ones, than one artifact may have.
func CheckSizes(files []File, limits Limits) error {
	if len(files) > limits.Entries {
		return failure.New(failure.ArtifactTooLarge, "it has more than %d entries; take out what isn't needed", limits.Entries)
	}
	total := limits.TotalBytes
	for _, file := range files {
		if total -= int64(len(file.Data)); total < 0 {
			return failure.TooLarge("its content", limits.TotalBytes)
		}
	}
	return nil
}

// nested checks the archives among the files, which Helm's loader will unpack.
func (u *unpacking) nested(files []File, depth int) error {
	if u.kind.Verbatim() {
		return nil // they are files like all others
	}
	for _, file := range files {
		if !isNested(file.Name) {
			continue
		}
		if depth == u.limits.Nesting {
			return failure.New(failure.ArtifactRefused, "%s: archives are nested more than %d deep; unpack the inner ones", failure.Quote(file.Name), u.limits.Nesting)
		}
		if _, err := u.archive(file.Data, depth+1); err != nil {
			return failure.Within(failure.Quote(file.Name), err)
		}
	}
	return nil
}

// isNested tells whether Helm would unpack the file: an archive directly in a
// charts directory, the chart's own or that of an unpacked dependency. Whatever else has
// that name, as files/charts/x.tgz, is a file like all others.
func isNested(name string) bool {
	if !strings.HasSuffix(name, ".tgz") {
		return false
	}
	parts := strings.Split(name, "/")
	if len(parts)%2 != 0 {
		return false
	}
	for i := 0; i < len(parts); i += 2 {
		if parts[i] != "charts" || strings.HasPrefix(parts[i+1], ".") || strings.HasPrefix(parts[i+1], "_") {
			return false
		}
	}
	return true
}

// SortFiles sorts files by their names, as [Find] wants them.
func SortFiles(files []File) {
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
}

// Find returns the file of that name; nil if there is none. Files are sorted by name.
func Find(files []File, name string) *File {
	i, found := slices.BinarySearchFunc(files, name, func(file File, name string) int { return strings.Compare(file.Name, name) })
	if !found {
		return nil
	}
	return &files[i]
}

// Names returns the names of files.
func Names(files []File) []string {
	names := make([]string, 0, len(files))
	for _, file := range files {
		names = append(names, file.Name)
	}
	return names
}
