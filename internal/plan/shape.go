// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"crypto/sha256"
	"fmt"
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
// fields. The key is that of clusters that are alike: in all but messages, and values of fields.
func shapeOf(addons []Addon) (is addonsv1.PlanGroup, digests []uint64, key [sha256.Size]byte) {
	size, shape := 0, sha256.New()
	for _, a := range addons {
		message.ShortenAll(map[*string]int{&a.Namespace: 63, &a.Name: 53, &a.Reason: 64, &a.Message: 512})
		if a.State != Same && len(is.Addons) < maxAddons {
			is.Addons = append(is.Addons, a.PlanAddon)
			a.Message = ""
			fmt.Fprintf(shape, "%#v", a.PlanAddon)
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
				fmt.Fprintf(shape, "%q %q %t %t", f.Path, f.Cause, f.Old != "", f.New != "") // a field that comes isn't one that changes
			}
			is.Changes = append(is.Changes, c.PlanChange)
			c.Fields, c.Message = nil, ""
			fmt.Fprintf(shape, "%#v", c.PlanChange)
		}
	}
	fmt.Fprint(shape, is.Truncated)
	return is, digests, [sha256.Size]byte(shape.Sum(nil))
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
