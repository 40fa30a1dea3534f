// SPDX-License-Identifier: Apache-2.0

package wanted

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// SpecDigest identifies what a user wrote for an add-on.
func (a *Addon) SpecDigest() string {
	written := a.Addon
	written.Drift, written.Lifecycle = nil, nil // nothing is installed otherwise for them
	return Hash(written)
}

// PostconditionsDigest identifies an add-on's postconditions, "" if it has none.
func (a *Addon) PostconditionsDigest() string {
	if len(a.Postconditions) == 0 {
		return ""
	}
	return Hash(a.Postconditions)
}

// Hash returns the SHA-256 of v in JSON, in which maps are sorted by key.
func Hash(v any) string {
	data, err := json.Marshal(v)
	if err != nil { // as of infinity, which only YAML has
		data = fmt.Appendf(nil, "%v", v)
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// PinnedSources returns the sources of values that the stack's revision pins, in order.
func (a *Addon) PinnedSources() []addonsv1.ValuesReference {
	return slices.DeleteFunc(slices.Clone(a.ValuesFrom), func(ref addonsv1.ValuesReference) bool {
		_, isPinned := a.Pinned[stack.ValuesName(ref)]
		return !isPinned || !stack.IsStaged(ref)
	})
}

// InputsDigest identifies the pinned values of an add-on by 16 hex digits, "" if it has none.
func (a *Addon) InputsDigest() string {
	var digests []string
	for _, ref := range a.PinnedSources() {
		digests = append(digests, stack.ValuesName(ref), a.Pinned[stack.ValuesName(ref)])
	}
	if len(digests) == 0 {
		return ""
	}
	return strings.TrimPrefix(Hash(digests), "sha256:")[:16]
}

// IsInstalledAs reports whether the record is of an add-on that is installed as its spec wants it.
func (a *Addon) IsInstalledAs(record deliver.Summary) bool {
	return record.Status == deliver.StatusDeployed && record.Spec == a.SpecDigest() && record.HasInputs(a.InputsDigest()) && !record.Transferred()
}

// maxInputs is how many pinned values a record names that make the same revision of an add-on, as a comment changed alone.
const maxInputs = 8

// WithInputs returns what a record says of inputs, with those of one more revision of the stack.
func WithInputs(known, pinned string) string {
	all := strings.Split(known, ",")
	switch {
	case known == "":
		return pinned
	case slices.Contains(all, pinned):
		return known
	}
	all = append([]string{pinned}, all...)
	return strings.Join(all[:min(len(all), maxInputs)], ",")
}
