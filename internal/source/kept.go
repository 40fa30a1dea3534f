// SPDX-License-Identifier: Apache-2.0

package source

import "github.com/cluster-chandler/chandler/internal/render"

// keep puts what was downloaded into the store: an archive, or each of a bundle's
// files under its own digest, and then the manifest that lists them.
//
// A list of digests gives no right to what they are digests of: whoever writes one
// could name what is others'. So each file remembers the manifests that it was
// delivered with.
func (r *remote) keep(digest string, got content) {
	if got.manifest == nil {
		r.store.Put(digest, got.archive)
		return
	}
	for _, file := range got.files {
		p := partOf(file.Name, file.Data)
		r.store.Put(p.digest, file.Data)
		if !r.store.Granted(p.digest, partTitle(digest)) {
			r.store.Grant(p.digest, partTitle(digest))
		}
	}
	r.store.Put(digest, got.manifest)
}

// kept is what the store has under the digest, in whole: if a part is missing, or was
// damaged, all of it is downloaded again. The caller sees to it that the reference
// may have it.
func (r *remote) kept(ref Reference, digest string) (content, bool) {
	data, found := r.store.Get(digest)
	if !found || ref.Kind != KindBundle || isCompressed(data) {
		return content{archive: data}, found
	}
	parts, listed, err := partsOf(data, r.access.limits)
	if !listed || err != nil {
		return content{archive: data}, true // no archive either: that is found out when it is unpacked
	}
	got := content{manifest: data, files: make([]render.File, 0, len(parts))}
	for _, p := range parts {
		file, found := r.store.Get(p.digest)
		if !found || int64(len(file)) != p.size || !r.store.Granted(p.digest, partTitle(digest)) {
			return content{}, false
		}
		got.files = append(got.files, render.File{Name: p.name, Data: file})
	}
	return got, true
}

func partTitle(manifest string) string { return "part of " + manifest }
