// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
)

// followingStack has a chart of a registry, one of a repository, both with ranges,
// and one that is exact.
func followingStack() *addonsv1.AddonStack {
	s := newStack()
	s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(true)}
	s.Spec.Addons = append(s.Spec.Addons,
		addonsv1.Addon{Name: "cni", Chart: addonsv1.ChartSource{Version: "~1.4", OCI: &addonsv1.OCISource{URL: "oci://example.org/cni"}}},
		addonsv1.Addon{Name: "dns", Chart: addonsv1.ChartSource{Version: ">=2 <4", Helm: &addonsv1.HelmSource{URL: "https://example.org", Chart: "dns"}}},
		addonsv1.Addon{Name: "log", Chart: addonsv1.ChartSource{Version: "v3.0.0", OCI: &addonsv1.OCISource{URL: "oci://example.org/log"}}},
	)
	return s
}

var allPins = Pins{"cni": {"1.4.2", "sha256:a"}, "dns": {"v3.1.0", "sha256:b"}}

func TestARevisionIsExact(t *testing.T) {
	s := followingStack()
	content, err := Content(servedObject(t, s, func(spec map[string]any) {
		spec["addons"].([]any)[1].(map[string]any)["chart"].(map[string]any)["oci"].(map[string]any)["tomorrow"] = "yes"
	}), allPins)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(content); strings.Contains(text, "~1.4") || strings.Contains(text, "updates") || !strings.Contains(text, "tomorrow") {
		t.Errorf("content %s", text)
	}
	revision := Snapshot(s, content, 1)
	kept, err := SpecOf(revision)
	if err != nil {
		t.Fatal(err)
	}
	if left := Followed(kept); len(left) > 0 {
		t.Errorf("%d add-ons of a revision follow a range", len(left))
	}
	if diff := cmp.Diff(allPins, PinsOf(&s.Spec, kept)); diff != "" {
		t.Errorf("the pins that it was made with: -want +got:\n%s", diff)
	}
	if !IsOf(revision, s, allPins) {
		t.Error("it isn't of the stack that it was made from")
	}
	if IsOf(revision, s, allPins.Newest(Pins{"cni": {"1.4.3", "sha256:c"}})) {
		t.Error("a newer version makes no difference")
	}
	s.Spec.Updates = nil
	if !IsOf(revision, s, allPins) {
		t.Error("how versions are found is a part of it")
	}
	if again, err := Content(servedObject(t, followingStack(), nil), allPins); err != nil || Snapshot(s, again, 1).Name == revision.Name {
		t.Errorf("a field that this program doesn't know makes no difference, or %v", err)
	}
	if _, err := Content(servedObject(t, s, nil), Pins{"gone": {"1.0.0", ""}}); err == nil {
		t.Error("a pin that found no add-on was accepted")
	}
}

func TestPinsOfAFormerSpec(t *testing.T) {
	kept := allPins.Into(&followingStack().Spec)
	for name, tc := range map[string]struct {
		edit func(*addonsv1.Addon)
		want Pins
	}{
		"unchanged":         {func(*addonsv1.Addon) {}, allPins},
		"values":            {func(a *addonsv1.Addon) { a.ValuesTemplate = "b: 2" }, allPins},
		"another secret":    {func(a *addonsv1.Addon) { a.Chart.OCI.SecretRef = &addonsv1.CredentialsReference{Name: "x"} }, allPins},
		"a wider range":     {func(a *addonsv1.Addon) { a.Chart.Version = "^1" }, allPins},
		"another range":     {func(a *addonsv1.Addon) { a.Chart.Version = "~1.5" }, Pins{"dns": allPins["dns"]}},
		"an exact version":  {func(a *addonsv1.Addon) { a.Chart.Version = "1.4.2" }, Pins{"dns": allPins["dns"]}},
		"another chart":     {func(a *addonsv1.Addon) { a.Chart.OCI.URL = "oci://example.org/cni2" }, Pins{"dns": allPins["dns"]}},
		"another name":      {func(a *addonsv1.Addon) { a.Name = "cni2" }, Pins{"dns": allPins["dns"]}},
		"another protocol":  {func(a *addonsv1.Addon) { a.Chart = followingStack().Spec.Addons[2].Chart }, Pins{"dns": allPins["dns"]}},
		"no range any more": {func(a *addonsv1.Addon) { a.Chart = addonsv1.ChartSource{Path: "web"} }, Pins{"dns": allPins["dns"]}},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			tc.edit(&s.Spec.Addons[1])
			if diff := cmp.Diff(tc.want, PinsOf(&s.Spec, kept)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whoever joins what they found, in whatever order, comes to the same.
func TestPinsNeverGoBack(t *testing.T) {
	a := Pins{"x": {"1.4.9", "sha256:a"}, "y": {"1.0.0", "sha256:y"}, "z": {"2.0.0", ""}}
	b := Pins{"x": {"1.4.10", "sha256:b"}, "z": {"2.0.0", "sha256:z"}}
	want := Pins{"x": {"1.4.10", "sha256:b"}, "y": {"1.0.0", "sha256:y"}, "z": {"2.0.0", "sha256:z"}}
	for _, got := range []Pins{a.Newest(b), b.Newest(a), a.Newest(b).Newest(a), Pins(nil).Newest(a).Newest(b)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if a["x"].Version != "1.4.9" {
		t.Error("the pins themselves were changed")
	}
}

func TestPinnedByHand(t *testing.T) {
	s := followingStack()
	former := s.Spec.DeepCopy()
	former.Addons[1].Chart.Version = "1.4.0"
	if diff := cmp.Diff(Pins{"cni": {"1.4.0", ""}}, PinsOf(&s.Spec, former)); diff != "" {
		t.Errorf("a version that was exact before is where to go on from: -want +got:\n%s", diff)
	}
}
