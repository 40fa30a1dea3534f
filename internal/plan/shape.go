// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/message"
)

// Bounds of lists in the status (MaxItems), and how many bytes of a group fields may take: they are reckoned by their paths alone,
// so that clusters with the same changes have the same fields.
const (
	maxAddons, maxChanges, maxFields = 100, 200, 20
	maxFieldBytes                    = 64 << 10
)

// shapeOf returns what becomes of a cluster as a group has it, in an order of its own, and the digests of the new values of its
// fields.
func shapeOf(addons []Addon) (is addonsv1.PlanGroup, digests []uint64) {
	size := 0
	for _, a := range addons {
		message.ShortenAll(map[*string]int{&a.Namespace: 63, &a.Name: 53, &a.Reason: 64, &a.Message: 512})
		if a.State != Same && len(is.Addons) < maxAddons {
			is.Addons = append(is.Addons, a.PlanAddon)
		}
		for _, c := range slices.SortedStableFunc(slices.Values(a.Changes), inOrder) {
			if len(is.Changes) == maxChanges {
				is.Truncated++
				continue
			}
			c.Addon = a.Name
			message.ShortenAll(map[*string]int{&c.APIVersion: 320, &c.Kind: 253, &c.Namespace: 63, &c.Name: 253, &c.Reason: 64, &c.Message: 512})
			for _, f := range slices.SortedStableFunc(slices.Values(c.Altered), byPath) {
				if size += len(f.Path) + 2*maxValue; len(c.Fields) == maxFields || size > maxFieldBytes {
					c.TruncatedFields++
					continue
				}
				message.ShortenAll(map[*string]int{&f.Path: 512})
				c.Fields = append(c.Fields, f.PlanField)
				digests = append(digests, f.digest)
			}
			is.Changes = append(is.Changes, c.PlanChange)
		}
	}
	return is, digests
}

func byPath(a, b Field) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Cause, b.Cause))
}

// inOrder compares two changes. Those that people have to see come first, as there may not be room for all, and else they are in
// the order of their objects.
func inOrder(a, b Change) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Action, b.Action))
}

// rank is less for what people have to see.
func (c *Change) rank() int {
	if c.Action == Refuse || c.Restarts {
		return 0
	}
	return 1
}

// keyOf returns a digest of what makes two clusters alike: all but messages, and values of fields.
func keyOf(sample addonsv1.PlanGroup) [sha256.Size]byte {
	is := *sample.DeepCopy()
	for i := range is.Addons {
		is.Addons[i].Message = ""
	}
	for i := range is.Changes {
		is.Changes[i].Message = ""
		for j := range is.Changes[i].Fields {
			f := &is.Changes[i].Fields[j]
			f.Old, f.New = presence(f.Old), presence(f.New)
		}
	}
	text, _ := json.Marshal(is) // plain values
	return sha256.Sum256(text)
}

// presence returns whether there is a value: a field that comes isn't one that changes.
func presence(value string) string {
	if value == "" {
		return ""
	}
	return "x"
}
