// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"encoding/json"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/bundle"
	"github.com/cluster-chandler/chandler/internal/stack"
)

// An add-on beside those of the bundle takes newer versions while the bundle is the same.
func TestFollowingBesideABundle(t *testing.T) {
	s := followingStack()
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle"}}
	s.Spec.Addons = append(s.Spec.Addons, addonsv1.Addon{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}})
	opened := append([]addonsv1.Addon{}, s.Spec.Addons...)
	opened[1].Chart.Digest = "sha256:cni"
	e := &expansion{bundle.Expansion{Addons: opened}, "sha256:bundle"}
	pins := stack.Pins{"web": {Version: "1.4.1", Digest: "sha256:1"}}
	kept := pins.Into(&e.of(s).Spec)
	data, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	revision := stack.Snapshot(s, data, 1)

	addons, complete := keptAddons(s.Spec.Addons, kept.Addons)
	again := &expansion{bundle.Expansion{Addons: addons}, "sha256:bundle"}
	if !complete || !stack.IsOf(revision, again.of(s), pins, nil) {
		t.Errorf("%+v aren't those of the revision", addons)
	}
	if stack.IsOf(revision, again.of(s), stack.Pins{"web": {Version: "1.4.2", Digest: "sha256:2"}}, nil) {
		t.Error("a newer version makes no difference")
	}
	if s.Spec.Addons[1].Chart.Digest != "" {
		t.Error("the spec itself was changed")
	}
	if _, complete := keptAddons(s.Spec.Addons, kept.Addons[:1]); complete {
		t.Error("the digest of a chart that the revision doesn't have")
	}
}
