// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/lru"
)

// archiveCache has room for archives between resolve and fetch.
const archiveCache = 2 * artifact.DefaultArchiveBytes

// Aside are archives that were read to know their digest, and weren't asked for yet.
type Aside struct {
	archives *lru.Cache[string, artifact.Content] // by visit and digest
}

// NewAside has room for some of them.
func NewAside() *Aside {
	return &Aside{archives: lru.New[string](archiveCache, artifact.Content.Bytes)}
}

// SetAside keeps what was read to know its digest, until it is asked for.
func (a *Aside) SetAside(whose string, got artifact.Content) (digest string) {
	digest = got.Digest()
	a.archives.Put(whose+" is "+digest, got)
	return digest
}

// TakeUp returns what was set aside, once: it is unpacked then, and remembered as such.
func (a *Aside) TakeUp(whose, digest string) (artifact.Content, bool) {
	got, found := a.archives.Get(whose + " is " + digest)
	if found {
		a.archives.Remove(whose + " is " + digest)
	}
	return got, found
}
