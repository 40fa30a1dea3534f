// SPDX-License-Identifier: Apache-2.0

package place

import (
	"context"
	"fmt"
	"time"

	"github.com/cluster-chandler/chandler/internal/artifact"
	"github.com/cluster-chandler/chandler/internal/source/guest"
	"github.com/cluster-chandler/chandler/internal/source/policy"
)

// Place is one chart on another host. Its errors needn't be worded: see [guest.Guest.Word].
type Place interface {
	// Resolve asks for the digest of the chart's archive.
	Resolve(ctx context.Context, as *guest.Guest) (digest string, err error)
	// Fetch asks for the archive with that digest, and verifies it.
	Fetch(ctx context.Context, as *guest.Guest, digest string) (artifact.Content, error)
	// Probe asks whether this guest may fetch it, at one of the sites where others did.
	Probe(ctx context.Context, as *guest.Guest, digest string, among func(Site) bool) (bool, error)
}

// Catalogue is a place that tells which versions of an artifact there are.
type Catalogue interface {
	// Versions asks for all versions; an answer that is no older than that will do. It says
	// as of when they are, if not as of now. Of charts they are semantic ones, of anything
	// else whatever releases are called. None is longer than versions.MaxLength.
	Versions(ctx context.Context, as *guest.Guest, notBefore time.Time) (published []string, asOf time.Time, err error)
	// Pin asks for the digest by which the object names this version from now on.
	Pin(ctx context.Context, as *guest.Guest) (digest string, err error)
}

// Signed is a place that has signatures of its content.
type Signed interface {
	// Verify checks that the content with the digest is signed as the policy wants.
	Verify(ctx context.Context, as *guest.Guest, digest string, want policy.Policy) error
}

// Site is where an archive came from, with its size: the two together tell if what
// is there is still the same, as far as a HEAD request can.
type Site struct {
	URL   string
	Bytes int64 // negative if the host doesn't tell
}

// Title says that whoever may have what is there may have it; see package store.
func (s Site) Title() string { return fmt.Sprintf("site %s of %d bytes", s.URL, s.Bytes) }

// IfFollowed is what else to do about a version that has another digest now, as those of
// a range have that were taken: nobody wrote the digest.
const IfFollowed = "If the stack follows a range, the version was published anew, or removed, since it was taken: publish a newer one, or narrow the range"
