// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"fmt"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/versions"
)

// Pin is the exact version that is taken of a chart whose version is a range.
type Pin struct {
	Version string
	// Digest that the source names it by; "" if it was pinned by hand, without one.
	Digest string
}

// Pins are those of a stack, by the names of its add-ons. With them in the place of
// the ranges, the spec means the same today and tomorrow: that is what a revision keeps.
type Pins map[string]Pin

// Followed returns the add-ons whose version is a range. All ranges are valid.
func Followed(spec *addonsv1.AddonStackSpec) []*addonsv1.Addon {
	var followed []*addonsv1.Addon
	for i := range spec.Addons {
		if follows(&spec.Addons[i].Chart) {
			followed = append(followed, &spec.Addons[i])
		}
	}
	return followed
}

func follows(chart *addonsv1.ChartSource) bool {
	return (chart.OCI != nil || chart.Helm != nil) && chart.Version != "" && !versions.IsExact(chart.Version)
}

// PinsOf returns what a kept spec has of the spec's ranges: of the same chart, a
// version that its range allows.
func PinsOf(spec, kept *addonsv1.AddonStackSpec) Pins {
	former := map[string]*addonsv1.ChartSource{}
	for i := range kept.Addons {
		former[kept.Addons[i].Name] = &kept.Addons[i].Chart
	}
	pins := Pins{}
	for _, addon := range Followed(spec) {
		was := former[addon.Name]
		if was == nil || addressOf(was) != addressOf(&addon.Chart) {
			continue
		}
		allowed, err := versions.ParseRange(addon.Chart.Version)
		if err == nil && allowed.Allows(was.Version) {
			pins[addon.Name] = Pin{Version: was.Version, Digest: digestOf(was)}
		}
	}
	return pins
}

// addressOf a chart, whatever its version is.
func addressOf(chart *addonsv1.ChartSource) string {
	switch {
	case chart.OCI != nil:
		return chart.OCI.URL
	case chart.Helm != nil:
		return chart.Helm.URL + " " + chart.Helm.Chart
	}
	return ""
}

func digestOf(chart *addonsv1.ChartSource) string {
	switch {
	case chart.OCI != nil:
		return chart.OCI.Digest
	case chart.Helm != nil:
		return chart.Helm.Digest
	}
	return ""
}

// Newest returns of each add-on the newer pin of both. A stack's versions never go
// back by themselves, whoever looks: so several instances come to the same.
func (p Pins) Newest(others Pins) Pins {
	newest := Pins{}
	for name, pin := range p {
		newest[name] = pin
	}
	for name, other := range others {
		if pin, ok := newest[name]; !ok || versions.Newer(other.Version, pin.Version) || other.Version == pin.Version && pin.Digest == "" {
			newest[name] = other
		}
	}
	return newest
}

// Into returns the spec with the pins in the place of its ranges, and without what
// says how they are found.
func (p Pins) Into(spec *addonsv1.AddonStackSpec) *addonsv1.AddonStackSpec {
	pinned := spec.DeepCopy()
	pinned.Updates = nil
	for _, addon := range Followed(pinned) {
		pin, ok := p[addon.Name]
		if !ok {
			continue
		}
		addon.Chart.Version = pin.Version
		if addon.Chart.OCI != nil {
			addon.Chart.OCI.Digest = pin.Digest
		} else {
			addon.Chart.Helm.Digest = pin.Digest
		}
	}
	return pinned
}

// intoServed does what Into does, with a spec as the API server serves it.
func (p Pins) intoServed(spec map[string]any) error {
	delete(spec, "updates")
	addons, _ := spec["addons"].([]any)
	done := 0
	for _, element := range addons {
		addon, _ := element.(map[string]any)
		name, _ := addon["name"].(string)
		pin, ok := p[name]
		if !ok {
			continue
		}
		chart, _ := addon["chart"].(map[string]any)
		for _, kind := range []string{"oci", "helm"} {
			source, ok := chart[kind].(map[string]any)
			if !ok {
				continue
			}
			chart["version"] = pin.Version
			if pin.Digest != "" {
				source["digest"] = pin.Digest
			}
			done++
		}
	}
	if done != len(p) {
		return fmt.Errorf("%d of %d add-ons that follow a range were found in the spec as it is served", done, len(p))
	}
	return nil
}
