// SPDX-License-Identifier: Apache-2.0

// Package artifact unpacks what is installed: charts, kustomizations, manifests, and bundles
// of them. All content is hostile until it has passed, so it is unpacked in worker
// processes only (package opener), which write nothing to disk.
package artifact

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/cluster-chandler/chandler/internal/failure"
)

// File is one file of a chart, or of another artifact.
type File struct {
	// Name is slash-separated and relative to the artifact's root, such as "Chart.yaml",
	// "templates/a.yaml" or "charts/dep-1.0.0.tgz".
	Name string
	Data []byte
}

// directoryDomain starts the stream that a directory's digest is taken of. No
// gzip archive starts like it, so an archive and a directory never share a digest;
// nor do a directory with files and plain manifests, which have no NUL.
const directoryDomain = "chandler directory v1\n"

// Content is the delivery of an origin: an archive that nobody has looked into yet, or plain
// manifests in its place, or the files of a directory. Either Archive or Files is set.
type Content struct {
	Kind    Kind // that it is unpacked as
	Archive []byte
	Files   []File
	// Manifest lists the files, each with its digest, if they were fetched one by one
	// from another host.
	Manifest []byte
}

// Digest identifies the content, as sha256:<hex>.
//
// The digest of an archive is the SHA-256 of its bytes as they are stored. sha256sum prints it, and
// an OCI registry calls it the layer's digest. The same archive has the same digest in every kind
// of source. Packaging a chart again changes the digest. The digest of a single file of manifests
// is made in the same way.
//
// The digest of a directory is the SHA-256 of the line "chandler directory v1" and of each of Files
// in order. Each file counts with the length of its name, the name, the length of its content, and
// the content. Lengths are 8 bytes, big-endian. File modes and times, empty directories and files
// that .helmignore excludes don't count.
//
// The digest of a bundle whose files are fetched one by one is the SHA-256 of the list of its
// files. In a registry, the list is the manifest. For a release at GitHub, the list is the line
// "chandler release v1", and a line for each file, sorted by name. The line of a file has the
// file's own digest, a space, its size in bytes, a space, and its name.
func (c Content) Digest() string {
	switch {
	case c.Manifest != nil:
		return DigestOf(c.Manifest)
	case c.Files == nil:
		return DigestOf(c.Archive)
	}
	hash := sha256.New()
	WriteFiles(hash, c.Files)
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// WriteFiles writes the stream that the digest of a directory is taken of, to what never fails.
func WriteFiles(to io.Writer, files []File) {
	_, _ = io.WriteString(to, directoryDomain)
	for _, file := range files {
		for _, part := range [][]byte{[]byte(file.Name), file.Data} {
			_, _ = to.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			_, _ = to.Write(part)
		}
	}
}

// ReadFiles reads what [WriteFiles] wrote; false of anything else. Nothing of it is checked.
func ReadFiles(data []byte) (files []File, ok bool) {
	left, ok := bytes.CutPrefix(data, []byte(directoryDomain))
	next := func() (part []byte) {
		if ok = ok && len(left) >= 8 && binary.BigEndian.Uint64(left) <= uint64(len(left)-8); ok {
			end := 8 + binary.BigEndian.Uint64(left)
			part, left = left[8:end], left[end:]
		}
		return part
	}
	for files = []File{}; ok && len(left) > 0; {
		files = append(files, File{Name: string(next()), Data: next()})
	}
	return files, ok
}

// Bytes returns the size of the content, as it was fetched.
func (c Content) Bytes() int64 {
	size := int64(len(c.Archive) + len(c.Manifest))
	for _, file := range c.Files {
		size += int64(len(file.Data))
	}
	return size
}

// DigestOf returns the SHA-256 of data, as digests are written.
func DigestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

var sha256Digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// IsDigest reports whether it is a SHA-256 digest as [DigestOf] writes them.
func IsDigest(written string) bool { return sha256Digest.MatchString(written) }

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

// OnlyDirectory returns the one that has all files, with a slash; "" if there is none.
func OnlyDirectory(names []string) string {
	root := ""
	for i, name := range names {
		top, _, below := strings.Cut(name, "/")
		switch {
		case !below, i > 0 && top+"/" != root:
			return ""
		}
		root = top + "/"
	}
	return root
}

// Offer is content that a host has under a name, of which it may say the digest.
type Offer struct {
	// The name of the content in messages, as "the archive".
	What string
	// Digest as the host says it; "" if it doesn't: then the content has to be read.
	Digest string
	// Field of the reference with the digest that is wanted, and whether the object names one.
	Field string
	Named bool
	// Get reads the content.
	Get func(ctx context.Context) (Content, error)
}

// Resolve returns the digest, and the content if that had to be read.
func (o Offer) Resolve(ctx context.Context) (string, Content, error) {
	if o.Digest != "" {
		return o.Digest, Content{}, nil
	}
	got, err := o.Get(ctx)
	return got.Digest(), got, err
}

// Fetch reads the content, which has to have the digest.
func (o Offer) Fetch(ctx context.Context, digest string) (Content, error) {
	is := o.Digest
	if is == "" || is == digest {
		got, err := o.Get(ctx)
		if is = got.Digest(); err != nil || is == digest {
			return got, err
		}
		if o.Digest != "" {
			return Content{}, failure.New(failure.DigestMismatch, "%s isn't the one that the source names by its digest: it is damaged, or was tampered with; have it put there again", o.What)
		}
	}
	if o.Named {
		return Content{}, failure.New(failure.DigestMismatch, "%s of this version is %s, not %s; correct one of %s and version. "+failure.IfFollowed, o.What, is, o.Field, o.Field)
	}
	return Content{}, failure.Gone(digest, "set "+o.Field+" to that of the content that is to be installed, or publish it under another version")
}
