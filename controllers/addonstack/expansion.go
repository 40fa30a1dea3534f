// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"encoding/json"
	"errors"
	"fmt"
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

// into puts the expansion into the stack as the API server serves it. Fields that this
// version of the program doesn't know stay.
func (e *expansion) into(served map[string]any) error {
	if e == nil {
		return nil
	}
	spec, _ := served["spec"].(map[string]any)
	from, ok := spec["source"].(map[string]any)
	if !ok {
		return errors.New("spec.source isn't in the spec as it is served")
	}
	from["digest"] = e.digest
	if own, _ := spec["addons"].([]any); len(own) > 0 {
		return e.intoOwn(own)
	}
	data, err := json.Marshal(e.addons)
	if err != nil {
		return fmt.Errorf("add-ons of the bundle: %w", err)
	}
	var addons []any
	if err := json.Unmarshal(data, &addons); err != nil {
		return fmt.Errorf("add-ons of the bundle: %w", err)
	}
	spec["addons"] = addons
	return nil
}

// intoOwn puts the digests of charts into the stack's own add-ons.
func (e *expansion) intoOwn(own []any) error {
	if len(own) != len(e.addons) {
		return errors.New("spec.addons isn't as it was validated")
	}
	for i := range e.addons {
		if e.addons[i].Chart.Path == "" {
			continue
		}
		addon, _ := own[i].(map[string]any)
		chart, ok := addon["chart"].(map[string]any)
		if !ok {
			return errors.New("spec.addons isn't as it was validated")
		}
		chart["digest"] = e.addons[i].Chart.Digest
	}
	return nil
}
