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

// Bounds of lists and texts in the status (MaxItems and MaxLength), and how many bytes of a group fields may take: they are
// reckoned by their paths alone, so that clusters with the same changes have the same fields.
const (
	maxAddons, maxChanges, maxFields            = 100, 200, 20
	maxMessage, maxReason, maxPath, maxOfKind   = 512, 64, 512, 253
	maxAPIVersion, maxNamespace, maxOfAddonName = 320, 63, 53
	maxFieldBytes                               = 64 << 10
)

// shapeOf returns what becomes of a cluster as a group has it, in an order of its own, and the digests of the new values of its
// fields.
func shapeOf(c Cluster) (is addonsv1.PlanGroup, digests []string) {
	size := 0
	for i := range c.Addons {
		a := &c.Addons[i]
		if a.State != Same && len(is.Addons) < maxAddons {
			is.Addons = append(is.Addons, addonsv1.PlanAddon{
				Namespace: short(a.Namespace, maxNamespace), Name: short(a.Name, maxOfAddonName), State: addonsv1.PlanState(a.State), Removed: a.Removed,
				Reason: short(a.Reason, maxReason), Message: short(a.Message, maxMessage),
			})
		}
		changes := slices.Clone(a.Changes)
		slices.SortStableFunc(changes, inOrder)
		for _, change := range changes {
			if len(is.Changes) == maxChanges {
				is.Truncated++
				continue
			}
			shown := change.shown(a.Name)
			fields := slices.Clone(change.Fields)
			slices.SortStableFunc(fields, func(x, y Field) int { return cmp.Or(cmp.Compare(x.Path, y.Path), cmp.Compare(x.Cause, y.Cause)) })
			for _, f := range fields {
				if size += len(f.Path) + 2*maxValue; len(shown.Fields) == maxFields || size > maxFieldBytes {
					shown.TruncatedFields++
					continue
				}
				shown.Fields = append(shown.Fields, addonsv1.PlanField{
					Path: short(f.Path, maxPath), Cause: addonsv1.PlanCause(f.Cause), Old: short(f.Old, maxValue), New: short(f.New, maxValue),
				})
				digests = append(digests, f.Digest)
			}
			is.Changes = append(is.Changes, shown)
		}
	}
	return is, digests
}

// inOrder compares two changes. Those that people have to see come first, as there may not be room for all, and else they are in
// the order of their objects.
func inOrder(a, b Change) int {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.Object.Kind, b.Object.Kind), cmp.Compare(a.Object.Namespace, b.Object.Namespace),
		cmp.Compare(a.Object.Name, b.Object.Name), cmp.Compare(a.Object.APIVersion, b.Object.APIVersion), cmp.Compare(a.Action, b.Action))
}

// rank is less for what people have to see.
func (c *Change) rank() int {
	if c.Action == Refuse || c.Restarts {
		return 0
	}
	return 1
}

// shown returns a change without its fields.
func (c *Change) shown(addon string) addonsv1.PlanChange {
	return addonsv1.PlanChange{
		Addon: short(addon, maxOfAddonName), APIVersion: short(c.Object.APIVersion, maxAPIVersion), Kind: short(c.Object.Kind, maxOfKind),
		Namespace: short(c.Object.Namespace, maxNamespace), Name: short(c.Object.Name, maxOfKind), Action: addonsv1.PlanAction(c.Action),
		Restarts: c.Restarts, Reason: short(c.Reason, maxReason), Message: short(c.Message, maxMessage),
	}
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

// short cuts a text to a bound in bytes.
func short(text string, bound int) string { return message.Shorten(text, bound) }
