// SPDX-License-Identifier: Apache-2.0

package stack_test

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/must"
)

// followingStack has a bundle, a chart of a registry, one of a repository, one of a
// code host and a kustomization, all of which follow versions, and what is exact.
func followingStack() *addonsv1.AddonStack {
	s := newStack()
	s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(true)}
	s.Spec.Source = &addonsv1.BundleSource{
		ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks"}},
		ClusterStack:   "docker-scs-1-31", Channel: "beta",
	}
	s.Spec.Addons = append(s.Spec.Addons,
		addonsv1.Addon{Name: "cni", Chart: addonsv1.ChartSource{Version: "~1.4", OCI: &addonsv1.OCISource{URL: "oci://example.org/cni"}}},
		addonsv1.Addon{Name: "dns", Chart: addonsv1.ChartSource{Version: ">=2 <4", Helm: &addonsv1.HelmSource{URL: "https://example.org", Chart: "dns"}}},
		addonsv1.Addon{Name: "log", Chart: addonsv1.ChartSource{Version: "v3.0.0", OCI: &addonsv1.OCISource{URL: "oci://example.org/log"}}},
		addonsv1.Addon{Name: "web-app", Kustomization: &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{
			Version: "1.x", GitHub: &addonsv1.GitHubSource{URL: "https://github.com/example/web", Asset: "web.tgz"},
		}}},
		addonsv1.Addon{Name: "rules", Manifests: &addonsv1.ManifestsSource{ArtifactSource: addonsv1.ArtifactSource{
			Version: "latest", OCI: &addonsv1.OCISource{URL: "oci://example.org/rules"},
		}}},
	)
	return s
}

var allPins = stack.Pins{
	addonsv1.FollowedSource: {"docker-scs-1-31-v0-beta-7", "sha256:s"},
	"cni":                   {"1.4.2", "sha256:a"},
	"dns":                   {"v3.1.0", "sha256:b"},
	"web-app":               {"1.9.0", "sha256:w"},
}

// without are all pins but some.
func without(names ...string) stack.Pins {
	pins := maps.Clone(allPins)
	for _, name := range names {
		delete(pins, name)
	}
	return pins
}

func TestARevisionIsExact(t *testing.T) {
	s := followingStack()
	content, err := stack.Content(servedObject(t, s, func(spec map[string]any) {
		spec["addons"].([]any)[1].(map[string]any)["chart"].(map[string]any)["oci"].(map[string]any)["tomorrow"] = "yes"
	}), &s.Spec, allPins.Into(&s.Spec), nil)
	must.Succeed(t, err)
	for _, gone := range []string{"~1.4", "1.x", "updates", "clusterStack", "channel"} {
		if text := string(content); strings.Contains(text, gone) || !strings.Contains(text, "tomorrow") {
			t.Errorf("content has %q, or not what is newer: %s", gone, text)
		}
	}
	revision := stack.Snapshot(s, content, 1)
	kept, err := stack.SpecOf(revision)
	must.Succeed(t, err)
	if left := stack.Followers(kept); len(left) > 0 {
		t.Errorf("%d parts of a revision follow versions", len(left))
	}
	if kept.Source.Version != "docker-scs-1-31-v0-beta-7" || kept.Source.OCI.Digest != "sha256:s" {
		t.Errorf("the bundle is %+v", kept.Source)
	}
	if k := kept.Addons[4].Kustomization; k.Version != "1.9.0" || k.GitHub.Digest != "sha256:w" {
		t.Errorf("the kustomization is %+v", k)
	}
	if diff := cmp.Diff(allPins, stack.PinsOf(&s.Spec, kept)); diff != "" {
		t.Errorf("the pins that it was made with: -want +got:\n%s", diff)
	}
	if !stack.IsOf(revision, s, allPins, nil) {
		t.Error("it isn't of the stack that it was made from")
	}
	for name, newer := range map[string]stack.Pin{"cni": {"1.4.3", "sha256:c"}, addonsv1.FollowedSource: {"docker-scs-1-31-v0-beta-10", "sha256:t"}} {
		if stack.IsOf(revision, s, stack.NewestOf(stack.Followers(&s.Spec), allPins, stack.Pins{name: newer}), nil) {
			t.Errorf("a newer version of %s makes no difference", name)
		}
	}
	s.Spec.Updates = nil
	if !stack.IsOf(revision, s, allPins, nil) {
		t.Error("how versions are found is a part of it")
	}
	written := followingStack()
	if again, err := stack.Content(servedObject(t, written, nil), &written.Spec, allPins.Into(&written.Spec), nil); err != nil || stack.Snapshot(s, again, 1).Name == revision.Name {
		t.Errorf("a field that this program doesn't know makes no difference, or %v", err)
	}
}

func TestPinsOfAFormerSpec(t *testing.T) {
	kept := allPins.Into(&followingStack().Spec)
	for name, tc := range map[string]struct {
		edit func(*addonsv1.AddonStackSpec)
		want stack.Pins
	}{
		"unchanged": {func(*addonsv1.AddonStackSpec) {}, allPins},
		"values":    {func(s *addonsv1.AddonStackSpec) { s.Addons[1].ValuesTemplate = "b: 2" }, allPins},
		"another secret": {func(s *addonsv1.AddonStackSpec) {
			s.Addons[1].Chart.OCI.SecretRef = &addonsv1.CredentialsReference{Name: "x"}
		}, allPins},
		"a wider range":     {func(s *addonsv1.AddonStackSpec) { s.Addons[1].Chart.Version = "^1" }, allPins},
		"another range":     {func(s *addonsv1.AddonStackSpec) { s.Addons[1].Chart.Version = "~1.5" }, without("cni")},
		"an exact version":  {func(s *addonsv1.AddonStackSpec) { s.Addons[1].Chart.Version = "1.4.2" }, without("cni")},
		"another chart":     {func(s *addonsv1.AddonStackSpec) { s.Addons[1].Chart.OCI.URL = "oci://example.org/cni2" }, without("cni")},
		"another name":      {func(s *addonsv1.AddonStackSpec) { s.Addons[1].Name = "cni2" }, without("cni")},
		"another protocol":  {func(s *addonsv1.AddonStackSpec) { s.Addons[1].Chart = followingStack().Spec.Addons[2].Chart }, without("cni")},
		"no range any more": {func(s *addonsv1.AddonStackSpec) { s.Addons[1].Chart = addonsv1.ChartSource{Path: "web"} }, without("cni")},
		"a tag":             {func(s *addonsv1.AddonStackSpec) { s.Addons[4].Kustomization.Version = "1.9" }, without("web-app")},
		"another file":      {func(s *addonsv1.AddonStackSpec) { s.Addons[4].Kustomization.GitHub.Asset = "all.tgz" }, without("web-app")},
		"other tags":        {func(s *addonsv1.AddonStackSpec) { s.Addons[4].Kustomization.GitHub.TagPrefix = "web-" }, without("web-app")},
		"no kustomization": {func(s *addonsv1.AddonStackSpec) {
			s.Addons[4].Manifests = &addonsv1.ManifestsSource{ArtifactSource: s.Addons[4].Kustomization.ArtifactSource}
			s.Addons[4].Kustomization = nil
		}, without("web-app")},
		"all channels but stable": {func(s *addonsv1.AddonStackSpec) { s.Source.Channel = "custom" }, allPins},
		"the stable channel":      {func(s *addonsv1.AddonStackSpec) { s.Source.Channel = "" }, without(addonsv1.FollowedSource)},
		"another minor version":   {func(s *addonsv1.AddonStackSpec) { s.Source.ClusterStack = "docker-scs-1-32" }, without(addonsv1.FollowedSource)},
		"another registry":        {func(s *addonsv1.AddonStackSpec) { s.Source.OCI.URL = "oci://example.org/other" }, without(addonsv1.FollowedSource)},
		"at a code host": {func(s *addonsv1.AddonStackSpec) {
			s.Source.OCI, s.Source.GitHub = nil, &addonsv1.GitHubSource{URL: "https://github.com/example/stacks"}
		}, without(addonsv1.FollowedSource)},
		"no bundle": {func(s *addonsv1.AddonStackSpec) { s.Source = nil }, without(addonsv1.FollowedSource)},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			tc.edit(&s.Spec)
			if diff := cmp.Diff(tc.want, stack.PinsOf(&s.Spec, kept)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Whoever joins what they found, in whatever order, and however often they tell each
// other, comes to the same; and nothing goes back.
func TestPinsNeverGoBack(t *testing.T) {
	followers := stack.Followers(&followingStack().Spec)
	random := rand.New(rand.NewPCG(1, 2))
	some := func() stack.Pins {
		versions := map[string][]string{
			addonsv1.FollowedSource: {"docker-scs-1-31-v0-beta-9", "docker-scs-1-31-v0-beta-10", "docker-scs-1-31-v0-beta-010", "docker-scs-1-31-v1-beta-1"},
			"cni":                   {"1.4.9", "1.4.10", "v1.4.10", "1.4.10+build.2", "1.4.10+build.10"},
			"dns":                   {"2.0.0", "3.0.0"},
			"gone":                  {"1.0.0"},
		}
		pins := stack.Pins{}
		for name, all := range versions {
			if random.IntN(4) > 0 {
				pins[name] = stack.Pin{all[random.IntN(len(all))], []string{"", "sha256:a", "sha256:b"}[random.IntN(3)]}
			}
		}
		return pins
	}
	join := func(a, b stack.Pins) stack.Pins { return stack.NewestOf(followers, a, b) }
	for range 5000 {
		a, b, c := some(), some(), some()
		before := maps.Clone(a)
		joined := join(a, b)
		if diff := cmp.Diff(joined, join(b, a)); diff != "" {
			t.Fatalf("%v and %v: the order matters:\n%s", a, b, diff)
		}
		if diff := cmp.Diff(joined, join(joined, a)); diff != "" {
			t.Fatalf("%v and %v: telling it again matters:\n%s", a, b, diff)
		}
		if diff := cmp.Diff(join(joined, c), join(a, join(b, c))); diff != "" {
			t.Fatalf("%v, %v and %v: who tells whom matters:\n%s", a, b, c, diff)
		}
		for _, follower := range followers {
			is := joined[follower.Name]
			for _, was := range []stack.Pins{a, b} {
				if pin, ok := was[follower.Name]; ok && (is.Version == "" || follower.Line.Newer(pin.Version, is.Version)) {
					t.Fatalf("%v and %v: %s went back to %v", a, b, follower.Name, is)
				}
			}
		}
		if _, kept := joined["gone"]; kept {
			t.Fatal("a pin of nothing that follows versions is left")
		}
		if diff := cmp.Diff(before, a); diff != "" {
			t.Fatalf("the pins themselves were changed:\n%s", diff)
		}
	}
}

// What is found later isn't always newer: it may have been published for an older line,
// or the newest may be withdrawn.
func TestOnlyNewerVersionsAreTaken(t *testing.T) {
	followers := map[string]stack.Follower{}
	for _, follower := range stack.Followers(&followingStack().Spec) {
		followers[follower.Name] = follower
	}
	for _, tc := range []struct {
		name, found string
		pin         stack.Pin
		taken       bool
	}{
		{"cni", "1.4.10", stack.Pin{"1.4.9", "sha256:a"}, true},
		{"cni", "1.4.9", stack.Pin{"1.4.10", "sha256:a"}, false},
		{"cni", "1.4.9", stack.Pin{"1.4.10", ""}, false},
		{"cni", "1.4.10", stack.Pin{"1.4.10", "sha256:a"}, false},
		{"cni", "1.4.10", stack.Pin{"1.4.10", ""}, true}, // pinned by hand: its digest is wanted
		{"cni", "v1.4.10", stack.Pin{"1.4.10", ""}, false},
		{"dns", "2.9.9", stack.Pin{"v3.1.0", "sha256:b"}, false},
		{"web-app", "1.8.0", stack.Pin{"1.9.0", "sha256:w"}, false},
		{addonsv1.FollowedSource, "docker-scs-1-31-v0-beta-10", stack.Pin{"docker-scs-1-31-v0-beta-9", "sha256:s"}, true},
		{addonsv1.FollowedSource, "docker-scs-1-31-v0-beta-9", stack.Pin{"docker-scs-1-31-v0-beta-10", "sha256:s"}, false},
	} {
		if got := followers[tc.name].IsNewer(tc.found, tc.pin); got != tc.taken {
			t.Errorf("%s: %s in the place of %+v: taken is %v, want %v", tc.name, tc.found, tc.pin, got, tc.taken)
		}
	}
}

func TestPinnedByHand(t *testing.T) {
	s := followingStack()
	previous := s.Spec.DeepCopy()
	previous.Addons[1].Chart.Version = "1.4.0"
	previous.Source.Version, previous.Source.ClusterStack, previous.Source.Digest = "docker-scs-1-31-v0-beta-6", "", "sha256:content"
	want := stack.Pins{"cni": {"1.4.0", ""}, addonsv1.FollowedSource: {"docker-scs-1-31-v0-beta-6", ""}}
	if diff := cmp.Diff(want, stack.PinsOf(&s.Spec, previous)); diff != "" {
		t.Errorf("a version that was exact before is where to go on from: -want +got:\n%s", diff)
	}
}

// A tag is a range only if it looks like one; of charts all is that isn't a version.
func TestWhatFollowsVersions(t *testing.T) {
	github := func(version string) addonsv1.ArtifactSource {
		return addonsv1.ArtifactSource{Version: version, GitHub: &addonsv1.GitHubSource{URL: "https://github.com/example/web"}}
	}
	for version, want := range map[string]struct{ chart, files string }{
		"1.17.4":             {"", ""},
		"v1.17.4":            {"", ""},
		"1.17":               {"the range 1.17", ""},
		"1.17.x":             {"the range 1.17.x", "the range 1.17.x"},
		"v1.X":               {"the range v1.X", "the range v1.X"},
		">=1.2 <2":           {"the range >=1.2 <2", "the range >=1.2 <2"},
		"*":                  {"the range *", "the range *"},
		"latest":             {"invalid", ""},
		"main":               {"invalid", ""},
		"linux":              {"invalid", ""},
		"docker-scs-1-31-v1": {"invalid", ""},
		">=latest":           {"invalid", "invalid"},
		"1.2 and more":       {"invalid", "invalid"},
	} {
		chart := github(version)
		spec := &addonsv1.AddonStackSpec{
			ClusterSelector: &metav1.LabelSelector{},
			Source:          &addonsv1.BundleSource{ArtifactSource: github(version)},
			Addons: []addonsv1.Addon{
				{Name: "chart", Chart: addonsv1.ChartSource{GitHub: chart.GitHub, Version: version}},
				{Name: "kustomization", Kustomization: &addonsv1.KustomizationSource{ArtifactSource: github(version)}},
				{Name: "manifests", Manifests: &addonsv1.ManifestsSource{ArtifactSource: github(version)}},
			},
		}
		got := map[string]string{}
		for _, follower := range stack.Followers(spec) {
			got[follower.Name] = follower.Line.String()
		}
		for _, problem := range stack.Validate(spec) {
			for name, field := range map[string]string{
				"chart": "spec.addons[0].chart.version", "kustomization": "spec.addons[1].kustomization.version",
				"manifests": "spec.addons[2].manifests.version", addonsv1.FollowedSource: "spec.source.version",
			} {
				if problem.Error.Field == field && problem.Reason == addonsv1.InvalidVersionReason {
					got[name] = "invalid"
				}
			}
		}
		for name, want := range map[string]string{
			"chart": want.chart, "kustomization": want.files, "manifests": want.files, addonsv1.FollowedSource: want.files,
		} {
			if got[name] != want {
				t.Errorf("%q of %s: it follows %q, want %q", version, name, got[name], want)
			}
		}
	}
}
