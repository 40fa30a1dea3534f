// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/store"
)

// disk keeps what was fetched from other hosts.
type disk struct {
	store  *store.Store // nil keeps nothing
	limits artifact.Limits
}

// put counts what a source gave, and keeps it on disk: an archive, or each of a
// bundle's files under its own digest, and then the manifest that lists them.
func (d disk) put(ref reference.Reference, scope string, got artifact.Content) {
	countBytes(ref, got)
	if ref.Traits().Commits && got.Files != nil {
		var stream bytes.Buffer
		artifact.WriteFiles(&stream, got.Files)
		d.store.Put(scope, got.Digest(), stream.Bytes())
		return
	}
	for _, file := range got.Files {
		d.store.Put(scope, artifact.DigestOf(file.Data), file.Data)
	}
	data := got.Archive
	if got.Manifest != nil {
		data = got.Manifest
	}
	d.store.Put(scope, got.Digest(), data)
}

// read returns what is on disk, in whole: if a file of a bundle is missing, or was
// damaged, all of it is downloaded again.
func (d disk) read(ref reference.Reference, scope, digest string) (artifact.Content, bool) {
	data, found := d.store.Get(scope, digest)
	if files, listed := artifact.ReadFiles(data); listed && ref.Traits().Commits { // of others, nobody has checked them
		return artifact.Content{Files: files}, found
	}
	if !found || ref.Kind != artifact.KindBundle || artifact.IsCompressed(data) {
		return artifact.Content{Archive: data}, found
	}
	parts, listed, err := layout.Parts(data, d.limits)
	if !listed || err != nil {
		return artifact.Content{Archive: data}, true // no archive either: that is found out when it is unpacked
	}
	got := artifact.Content{Manifest: data, Files: make([]artifact.File, 0, len(parts))}
	for _, p := range parts {
		file, found := d.store.Get(scope, p.Digest)
		if !found {
			return artifact.Content{}, false
		}
		got.Files = append(got.Files, artifact.File{Name: p.Name, Data: file})
	}
	return got, true
}
