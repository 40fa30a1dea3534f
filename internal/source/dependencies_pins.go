// SPDX-License-Identifier: Apache-2.0

package source

import (
	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/store"
)

// pins are what dependencies were when charts were put together of them: the digest of
// each, by the digest of the chart that wants it and where it is. So a chart stays what
// it is, also after a restart, and while its dependencies' sources are down.
//
// They are kept as long as what they refer to is of use. A pin gives no right to the
// content: for that there are grants.
type pins struct {
	memory *lru.Cache[string, string]
	store  *store.Store
}

func newPins(store *store.Store) *pins {
	return &pins{memory: lru.New[string](remembered, lru.One[string]), store: store}
}

func pinName(by string, ref reference.Reference) string {
	return "dependency of " + by + ": " + ref.String()
}

func (p *pins) get(by string, ref reference.Reference) (digest string, kept bool) {
	name := pinName(by, ref)
	if digest, kept = p.memory.Get(name); kept {
		return digest, true
	}
	if digest, kept = p.store.Pinned(name); kept {
		p.memory.Put(name, digest)
	}
	return digest, kept
}

func (p *pins) put(by string, ref reference.Reference, digest string) {
	name := pinName(by, ref)
	p.memory.Put(name, digest)
	p.store.Pin(name, digest)
}
