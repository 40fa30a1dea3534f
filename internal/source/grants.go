// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"

	"github.com/cluster-chandler/chandler/internal/source/lru"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/source/store"
)

// maxGrants is how many grants are remembered: for each digest, some for each team.
const maxGrants = 16_384

// grants are what gives the right to content that is at hand already.
//
// A digest is no secret, and whoever names one has shown nothing by that: not with
// oci.digest and its like, not with an index or a manifest on a host of his own, and
// not with a release record in a cluster of his own. So content that was fetched
// for one reference is given to another one only if its own source, asked with its
// own credentials, gave the content to it, too, or if the very site that it came
// from says that it would. After that it is remembered under the reference's
// title, on disk, too: a source that is down takes away nothing that it gave.
type grants struct {
	memory *lru.Cache[grant, struct{}]
	store  *store.Store
}

type grant struct{ digest, title string }

func newGrants(store *store.Store) *grants {
	return &grants{memory: lru.New[grant](maxGrants, lru.One[struct{}]), store: store}
}

// add notes a title, unless it is empty.
func (g *grants) add(digest, title string) {
	if title == "" || g.has(digest, title) {
		return
	}
	g.memory.Put(grant{digest, title}, struct{}{})
	g.store.Grant(digest, title)
}

// has tells whether the title was noted.
func (g *grants) has(digest, title string) bool {
	if title == "" {
		return false
	}
	if _, found := g.memory.Get(grant{digest, title}); found {
		return true
	}
	if !g.store.Granted(digest, title) {
		return false
	}
	g.memory.Put(grant{digest, title}, struct{}{})
	return true
}

// title says who asks where, and as whom. References with the same title have the
// same rights. It is "" if that can't be told.
//
// The instance's own credentials are no part of it: these are the instance's as
// the cache is, and what is in them has no business on a disk.
func (s *Sources) title(ctx context.Context, ref reference.Reference) string {
	switch {
	case ref.Bundle != nil:
		bundle := s.title(ctx, reference.BundleOf(ref.Namespace, ref.Bundle))
		if bundle == "" {
			return ""
		}
		return ref.String() + ", " + bundle
	case ref.Remote():
		return s.remote.title(ctx, ref)
	case s.objects != nil && (ref.Chart.ConfigMap != nil || ref.Chart.Secret != nil):
		return ref.String() + " at " + s.objects.Version(ctx, ref.Object())
	}
	return ref.String()
}

func (r *remote) title(ctx context.Context, ref reference.Reference) string {
	if ref.SecretRef() == nil {
		return ref.String()
	}
	version := r.access.SecretVersion(ctx, ref)
	if version == "" {
		return ""
	}
	return ref.String() + " at " + version
}
