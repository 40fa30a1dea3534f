// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"slices"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// expansion is what a revision keeps of a stack with spec.source: the digest of the
// bundle, and all add-ons, those in it with their digests.
type expansion struct {
	digest string
	addons []addonsv1.Addon
	// notes say what the bundle is, and what of it isn't used. Nil: it wasn't read now.
	notes []string
}

// keptAddons returns the add-ons of the bundle, as the newest revision has them. Of the
// stack's own add-ons only the digests in the bundle are taken from it.
func keptAddons(own, kept []addonsv1.Addon) (addons []addonsv1.Addon, complete bool) {
	if len(own) == 0 {
		return kept, true
	}
	digests := map[string]string{}
	for i := range kept {
		digests[kept[i].Name] = kept[i].Chart.Digest
	}
	addons = slices.Clone(own)
	for i := range addons {
		chart := &addons[i].Chart
		if chart.Path == "" {
			continue
		}
		if chart.Digest = digests[addons[i].Name]; chart.Digest == "" {
			return nil, false
		}
	}
	return addons, true
}

// of returns the stack with the expansion in its spec. Without one it is the stack itself.
func (e *expansion) of(s *addonsv1.AddonStack) *addonsv1.AddonStack {
	if e == nil {
		return s
	}
	expanded := *s
	expanded.Spec.Source = s.Spec.Source.DeepCopy()
	expanded.Spec.Source.Digest, expanded.Spec.Addons = e.digest, e.addons
	return &expanded
}
