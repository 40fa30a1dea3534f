// SPDX-License-Identifier: Apache-2.0

package stack

import addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"

// Pin is the exact version that is taken by what follows versions.
type Pin struct {
	Version string
	// Digest that the source names it by; "" if it was pinned by hand, without one.
	Digest string
}

// Pins are the versions of a stack, by the names of its followers. A revision has them in the place
// of ranges and channels, so that it means the same at any time.
type Pins map[string]Pin

// PinsOf returns the versions of a kept spec that the spec follows at the same address.
func PinsOf(spec, kept *addonsv1.AddonStackSpec) Pins {
	previous := map[string]Follower{}
	for _, source := range sourcesOf(kept) {
		previous[source.Name] = source
	}
	pins := Pins{}
	for _, follower := range Followers(spec) {
		was, found := previous[follower.Name]
		if found && was.kind == follower.kind && was.source.Of == follower.source.Of && follower.Line.Allows(*was.version) {
			pins[follower.Name] = Pin{Version: *was.version, Digest: *was.source.Digest}
		}
	}
	return pins
}

// NewestOf returns the newer pin of each follower. A stack's versions never go back by themselves, so
// several instances come to the same. Of two commits of a branch, it is the one of b.
func NewestOf(followers []Follower, a, b Pins) Pins {
	newest := Pins{}
	for _, follower := range followers {
		one, found := a[follower.Name]
		if other, also := b[follower.Name]; also && (!found || follower.prefers(other, one)) {
			one, found = other, true
		}
		if found {
			newest[follower.Name] = one
		}
	}
	return newest
}

// prefers reports whether one pin is to be taken rather than another. Between equally new pins, it
// is the pin that a range takes, and then a pin with a digest.
func (f Follower) prefers(one, other Pin) bool {
	switch {
	case f.Line.Newer(one.Version, other.Version):
		return true
	case f.Line.Newer(other.Version, one.Version):
		return false
	case one.Version != other.Version:
		return one.Version < other.Version
	}
	return one.Digest != "" && (other.Digest == "" || one.Digest < other.Digest)
}

// IsNewer reports whether a version is one to take: newer than the pin's, or its own without a digest.
func (f Follower) IsNewer(version string, than Pin) bool {
	return f.Line.Newer(version, than.Version) || version == than.Version && than.Digest == ""
}

// HasFound reports whether the pin was found at the source, and verified. An exact version
// that the spec had before may never have been had; a bundle was read to make the revision.
func (f Follower) HasFound(pin Pin) bool {
	return pin.Version != "" && (pin.Digest != "" || f.Bundle != nil)
}

// Into returns the spec with the pins in the place of what it follows.
func (p Pins) Into(spec *addonsv1.AddonStackSpec) *addonsv1.AddonStackSpec {
	pinned := spec.DeepCopy()
	pinned.Updates, pinned.Rollout = nil, nil
	dropPolicies(pinned)
	for _, follower := range Followers(pinned) {
		if pin, ok := p[follower.Name]; ok {
			follower.pin(pin)
		}
	}
	return pinned
}

// IntoAddon writes the version in the place of what the add-on says of it.
func (p Pin) IntoAddon(addon *addonsv1.Addon) { sourceOf(addon).pin(p) }
