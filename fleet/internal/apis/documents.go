// SPDX-License-Identifier: Apache-2.0

package apis

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/cluster-chandler/chandler/fleet/budget"
	"github.com/cluster-chandler/chandler/fleet/internal/answer"
	"github.com/cluster-chandler/chandler/fleet/internal/transport"
	"github.com/cluster-chandler/chandler/fleet/limits"
)

// maxGroupVersions is how many API versions a cluster may have, of all groups. Each
// may cost a request, where the server doesn't aggregate its discovery.
const maxGroupVersions = 1000

// documents are the sizes of what was read of a cluster's kinds.
//
// Key: the path of a document.
// Bound: Limits.Documents, and what was asked for.
// Lost with it: the documents of the next client count from zero.
type documents struct {
	of   *transport.Transport
	kept *budget.Claim // of what is made of them; nil if that is counted elsewhere

	mu    sync.Mutex
	sizes map[string]size
}

// size is how much a document has.
type size struct{ bytes, kinds int64 }

func newDocuments(of *transport.Transport, kept *budget.Claim) *documents {
	return &documents{of: of, kept: kept, sizes: map[string]size{}}
}

// add takes in a document. It returns an error if it isn't JSON, or if all have more than they may.
func (d *documents) add(ctx context.Context, path string, document []byte) error {
	if !bytes.HasPrefix(bytes.TrimSpace(document), []byte("{")) {
		return fmt.Errorf("%s is no JSON", path)
	}
	versions, kinds := count(document)
	if versions > maxGroupVersions {
		return tooManyKinds("%s lists %d API versions; at most %d are read", path, versions, maxGroupVersions)
	}
	d.mu.Lock()
	d.sizes[path] = size{int64(answer.SizeOf(document)), kinds}
	var all size
	for _, one := range d.sizes {
		all.bytes, all.kinds = all.bytes+one.bytes, all.kinds+one.kinds
	}
	d.mu.Unlock()
	switch most := d.of.Limits; {
	case most.Kinds > 0 && all.kinds > most.Kinds:
		return tooManyKinds("%s makes %d kinds with those before; at most %d are read", path, all.kinds, most.Kinds)
	case most.Documents > 0 && all.bytes > most.Documents:
		return tooManyKinds("%s makes %d KiB about kinds with those before; at most %d are read", path, all.bytes>>10, most.Documents>>10)
	}
	return answer.Hold(ctx, d.kept, all.kinds*lazyKind+all.bytes*lazyByte, d.of.Timeout/5*4, "The connection's own RESTMapper", true)
}

// Bytes that a RESTMapper of apiutil keeps for each kind, and for each byte of the documents (TestKindsOfLaterCount compares that with what it takes).
const lazyKind, lazyByte = 2600, 3

func tooManyKinds(format string, args ...any) error {
	return &limits.Error{Reason: limits.TooManyKinds, Message: fmt.Sprintf(format, args...), Discovery: true}
}

// count returns how many API versions and kinds a document has, aggregated or not. A group without any version counts, too.
func count(document []byte) (versions int, kinds int64) {
	type resource struct {
		Name string `json:"name"`
	}
	type group struct {
		Versions []struct {
			Resources []resource `json:"resources"`
		} `json:"versions"`
	}
	var list struct {
		Groups, Items []group
		Versions      []string // of /api
		Resources     []resource
	}
	_ = json.Unmarshal(document, &list) // what is of another type is left out, and the rest counted
	versions = len(list.Versions)
	for _, g := range append(list.Groups, list.Items...) {
		versions += max(len(g.Versions), 1)
		for _, v := range g.Versions {
			kinds += int64(len(v.Resources))
		}
	}
	for _, r := range list.Resources {
		if !strings.Contains(r.Name, "/") {
			kinds++ // and no part of one
		}
	}
	return versions, kinds
}
