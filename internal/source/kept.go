// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/layout"
	"github.com/cluster-chandler/chandler/internal/source/reference"
)

// keep puts what was downloaded into the store: an archive, or each of a bundle's
// files under its own digest, and then the manifest that lists them.
//
// A list of digests gives no right to what they are digests of: whoever writes one
// could name what is others'. So each file remembers the manifests that it was
// delivered with.
func (r *remote) keep(digest string, got artifact.Content) {
	if got.Manifest == nil {
		r.store.Put(digest, got.Archive)
		return
	}
	for _, file := range got.Files {
		p := layout.PartOf(file.Name, file.Data)
		r.store.Put(p.Digest, file.Data)
		if !r.store.Granted(p.Digest, partTitle(digest)) {
			r.store.Grant(p.Digest, partTitle(digest))
		}
	}
	r.store.Put(digest, got.Manifest)
}

// kept is what the store has under the digest, in whole: if a part is missing, or was
// damaged, all of it is downloaded again. The caller sees to it that the reference
// may have it.
func (r *remote) kept(ref reference.Reference, digest string) (artifact.Content, bool) {
	data, found := r.store.Get(digest)
	if !found || ref.Kind != artifact.KindBundle || artifact.IsCompressed(data) {
		return artifact.Content{Archive: data}, found
	}
	parts, listed, err := layout.Parts(data, r.limits)
	if !listed || err != nil {
		return artifact.Content{Archive: data}, true // no archive either: that is found out when it is unpacked
	}
	got := artifact.Content{Manifest: data, Files: make([]artifact.File, 0, len(parts))}
	for _, p := range parts {
		file, found := r.store.Get(p.Digest)
		if !found || int64(len(file)) != p.Size || !r.store.Granted(p.Digest, partTitle(digest)) {
			return artifact.Content{}, false
		}
		got.Files = append(got.Files, artifact.File{Name: p.Name, Data: file})
	}
	return got, true
}

func partTitle(manifest string) string { return "part of " + manifest }
