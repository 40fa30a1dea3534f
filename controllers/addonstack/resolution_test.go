// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
	"github.com/cluster-chandler/chandler/internal/source/reference"
	"github.com/cluster-chandler/chandler/internal/stack"
)

func followingStack() *addonsv1.AddonStack {
	s := &addonsv1.AddonStack{}
	s.Namespace, s.Name, s.UID, s.Generation = "team", "platform", "1", 1
	s.Spec.Addons = []addonsv1.Addon{{
		Name: "web", Chart: addonsv1.ChartSource{Version: "~1.4", OCI: &addonsv1.OCISource{URL: "oci://example.org/web"}},
	}}
	return s
}

func TestResolve(t *testing.T) {
	refused := &failure.Error{Reason: failure.DigestMismatch, Err: errors.New("it is damaged")}
	pin := func(version string) stack.Pin { return stack.Pin{Version: version, Digest: "sha256:" + version} }
	for name, tc := range map[string]struct {
		current   string
		found     pollResult
		suspend   bool
		want      string
		available string
		status    metav1.ConditionStatus
		reason    string
	}{
		"nothing is known":                 {status: metav1.ConditionUnknown, reason: addonsv1.SourcesPendingReason},
		"the first version":                {found: pollResult{newest: "1.4.2", pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
		"a newer version":                  {current: "1.4.2", found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, want: "1.4.3", status: metav1.ConditionTrue},
		"nothing new":                      {current: "1.4.2", found: pollResult{newest: "1.4.2"}, want: "1.4.2", status: metav1.ConditionTrue},
		"the newest one was withdrawn":     {current: "1.4.3", found: pollResult{newest: "1.4.2", withdrawn: "1.4.3"}, want: "1.4.3", status: metav1.ConditionFalse, reason: failure.ArtifactNotFound},
		"the one before was withdrawn":     {current: "1.4.3", found: pollResult{newest: "1.4.3", withdrawn: "1.4.2"}, want: "1.4.3", status: metav1.ConditionTrue},
		"withdrawn while suspended":        {current: "1.4.2", found: pollResult{newest: "1.4.3", withdrawn: "1.4.2"}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionFalse, reason: failure.ArtifactNotFound},
		"another instance has seen more":   {current: "1.4.9", found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, want: "1.4.9", status: metav1.ConditionTrue},
		"suspended":                        {current: "1.4.2", found: pollResult{newest: "1.4.3"}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended after it was found":     {current: "1.4.2", found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, suspend: true, want: "1.4.2", available: "1.4.3", status: metav1.ConditionTrue},
		"suspended, and nothing runs yet":  {found: pollResult{newest: "1.4.3", pin: pin("1.4.3")}, suspend: true, want: "1.4.3", status: metav1.ConditionTrue},
		"a newer version can't be used":    {current: "1.4.2", found: pollResult{newest: "1.4.3", err: refused}, want: "1.4.2", available: "1.4.3", status: metav1.ConditionFalse, reason: failure.DigestMismatch},
		"the first version can't be used":  {found: pollResult{newest: "1.4.3", err: refused}, status: metav1.ConditionUnknown, reason: addonsv1.SourcesPendingReason},
		"the source is down":               {current: "1.4.2", found: pollResult{err: refused}, want: "1.4.2", status: metav1.ConditionFalse, reason: failure.DigestMismatch},
		"a digest is found for what there": {current: "1.4.2", found: pollResult{newest: "1.4.2", pin: pin("1.4.2")}, want: "1.4.2", status: metav1.ConditionTrue},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(tc.suspend)}
			var current stack.Pins
			if tc.current != "" {
				current = stack.Pins{"web": {Version: tc.current}}
			}
			o := &versionPoll{results: map[string]pollResult{"web": tc.found}}
			f := resolve(s, stack.Followers(&s.Spec), current, o)
			if f.pins["web"].Version != tc.want || f.available["web"] != tc.available || (len(f.waiting) > 0) != (tc.want == "") {
				t.Errorf("pins %v, available %v, %d waiting; want %q, available %q", f.pins, f.available, len(f.waiting), tc.want, tc.available)
			}
			c := sourcesReady(f, nil)
			if tc.reason == "" {
				tc.reason = addonsv1.SourcesReadyReason
			}
			if c.Status != tc.status || c.Reason != tc.reason {
				t.Errorf("condition %v", c)
			}
		})
	}
}

// A version that the spec named exactly, and that was never found good, isn't what is
// followed; one that was found is, also if updates are suspended.
func TestWhatWasOnlyNamed(t *testing.T) {
	refused := &failure.Error{Reason: failure.SignatureMissing, Field: "chart.oci", Err: errors.New("it has no signature")}
	const digest = "sha256:6"
	for name, tc := range map[string]struct {
		found   pollResult
		suspend bool
		want    []string
		says    string
	}{
		"it can't be used, as the newest": {
			found: pollResult{newest: "1.4.8", err: refused},
			says: "addons[web].chart.oci: it has no signature. So 1.4.8 isn't taken, " +
				"and 1.4.6, which the spec named before, hasn't been found good either; clusters keep what they run",
		},
		"it can be used": {
			found: pollResult{newest: "1.4.8", err: refused, pin: stack.Pin{Version: "1.4.6", Digest: digest}}, want: []string{"1.4.6"},
			says: "addons[web].chart.oci: it has no signature. So 1.4.8 isn't taken, it stays at 1.4.6",
		},
		"suspended":                       {found: pollResult{newest: "1.4.8", pin: stack.Pin{Version: "1.4.6", Digest: digest}}, suspend: true, want: []string{"1.4.6"}},
		"suspended, and it can't be used": {found: pollResult{newest: "1.4.8"}, suspend: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := followingStack()
			s.Spec.Updates = &addonsv1.Updates{Suspend: ptr.To(tc.suspend)}
			named := stack.Pins{"web": {Version: "1.4.6"}}
			f := resolve(s, stack.Followers(&s.Spec), named, &versionPoll{results: map[string]pollResult{"web": tc.found}})
			data, err := json.Marshal(f.pins.Into(&s.Spec))
			if err != nil {
				t.Fatal(err)
			}
			r := &Reconciler{Clock: clock.RealClock{}}
			if err := r.reportFollowing(s, stack.Snapshot(s, data, 1), true, f); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, followed := range s.Status.Following {
				got = append(got, followed.Version)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("following %q, want %q", got, tc.want)
			}
			if c := sourcesReady(f, nil); c.Message != tc.says {
				t.Errorf("got  %q\nwant %q", c.Message, tc.says)
			}
		})
	}
}

// Two instances that look after one stack agree on what is followed, whoever
// writes first, and without answering each other for ever.
func TestMergeFollowing(t *testing.T) {
	list := func(version, available string) []addonsv1.FollowedVersion {
		return []addonsv1.FollowedVersion{{Addon: "web", Version: version, Available: available}}
	}
	for name, tc := range map[string]struct {
		seen               int64
		there, own, wanted []addonsv1.FollowedVersion
	}{
		"the first to write":            {1, nil, list("1.4.2", ""), list("1.4.2", "")},
		"one whose cache is behind":     {1, list("1.4.3", ""), list("1.4.2", "1.4.3"), list("1.4.3", "")},
		"one that looked later":         {1, list("1.4.2", ""), list("1.4.3", ""), list("1.4.3", "")},
		"one that has seen less":        {1, list("1.4.2", "1.4.9"), list("1.4.2", "1.4.3"), list("1.4.2", "1.4.9")},
		"another spec, back to before":  {0, list("1.4.3", ""), list("1.4.2", ""), list("1.4.2", "")},
		"an add-on that isn't followed": {1, list("1.4.3", ""), nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, view := followingStack(), followingStack()
			s.Status.ObservedGeneration, s.Status.Following, view.Status.Following = tc.seen, tc.there, tc.own
			got := mergeFollowing(s, view)
			if len(got) != len(tc.wanted) || len(got) > 0 && got[0] != tc.wanted[0] {
				t.Errorf("got %v, want %v", got, tc.wanted)
			}
			s.Status.ObservedGeneration, s.Status.Following = 1, got
			if again := mergeFollowing(s, view); len(again) > 0 && again[0] != got[0] {
				t.Errorf("it is written again: %v", again)
			}
		})
	}
}

// A release that was found good, and can't be used when it is to be taken, leaves the
// former one in force.
func TestRevertBundle(t *testing.T) {
	was, is := stack.Pin{Version: "v1", Digest: "sha256:1"}, stack.Pin{Version: "v2", Digest: "sha256:2"}
	const name = addonsv1.FollowedSource
	begin := func(current stack.Pins) *resolution {
		return &resolution{current: current, pins: stack.Pins{name: is}, available: map[string]string{}, again: time.Hour}
	}
	broken := &failure.Error{Reason: failure.ArtifactInvalid, Err: errors.New("broken")}
	slow := &failure.Error{Reason: failure.ArtifactPending, Err: errors.New("slow")}

	f := begin(stack.Pins{name: was})
	if !f.revertBundle(broken) || f.pins[name] != was || f.available[name] != "v2" || len(f.failures) != 1 || f.again != followingRetry {
		t.Errorf("got %+v", f)
	}
	if f.revertBundle(broken) {
		t.Error("there is nothing to step back to from the former version")
	}
	if f = begin(stack.Pins{name: was}); !f.revertBundle(slow) || f.pins[name] != was || len(f.failures) > 0 || f.again > time.Second {
		t.Errorf("a slow source is no failure: %+v", f)
	}
	if f = begin(nil); f.revertBundle(broken) || f.pins[name] != is {
		t.Errorf("got %+v: there is no former version", f)
	}
}

// An add-on beside those of the bundle takes newer versions while the bundle is the same.
func TestFollowingBesideABundle(t *testing.T) {
	s := followingStack()
	s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "bundle"}}
	s.Spec.Addons = append(s.Spec.Addons, addonsv1.Addon{Name: "cni", Chart: addonsv1.ChartSource{Path: "cni"}})
	opened := append([]addonsv1.Addon{}, s.Spec.Addons...)
	opened[1].Chart.Digest = "sha256:cni"
	e := &expansion{digest: "sha256:bundle", addons: opened}
	pins := stack.Pins{"web": {Version: "1.4.1", Digest: "sha256:1"}}
	kept := pins.Into(&e.of(s).Spec)
	data, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	revision := stack.Snapshot(s, data, 1)

	addons, complete := keptAddons(s.Spec.Addons, kept.Addons)
	again := &expansion{digest: "sha256:bundle", addons: addons}
	if !complete || !stack.IsOf(revision, again.of(s), pins) {
		t.Errorf("%+v aren't those of the revision", addons)
	}
	if stack.IsOf(revision, again.of(s), stack.Pins{"web": {Version: "1.4.2", Digest: "sha256:2"}}) {
		t.Error("a newer version makes no difference")
	}
	if s.Spec.Addons[1].Chart.Digest != "" {
		t.Error("the spec itself was changed")
	}
	if _, complete := keptAddons(s.Spec.Addons, kept.Addons[:1]); complete {
		t.Error("the digest of a chart that the revision doesn't have")
	}
}

func TestWhatIsSaidOfABundle(t *testing.T) {
	s := &addonsv1.AddonStack{}
	s.Spec.Source = &addonsv1.BundleSource{
		ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks"}}, ClusterStack: "docker-scs-1-31",
	}
	followers := stack.Followers(&s.Spec)
	o := &versionPoll{results: map[string]pollResult{}}
	if got := sourcesReady(resolve(s, followers, nil, o), nil).Message; got != "Looking for the newest version of spec.source in channel stable of docker-scs-1-31" {
		t.Errorf("got %q", got)
	}
	o.results[addonsv1.FollowedSource] = pollResult{newest: "docker-scs-1-31-v10", err: &failure.Error{
		Reason: failure.SignatureMissing, Field: "spec.source.oci", Subject: "oci://example.org/stacks", Err: errors.New("it has no signature"),
	}}
	f := resolve(s, followers, stack.Pins{addonsv1.FollowedSource: {Version: "docker-scs-1-31-v9"}}, o)
	const want = "spec.source.oci: oci://example.org/stacks: it has no signature. So docker-scs-1-31-v10 isn't taken, it stays at docker-scs-1-31-v9"
	if c := sourcesReady(f, nil); c.Message != want || c.Reason != failure.SignatureMissing || c.Status != metav1.ConditionFalse {
		t.Errorf("got %s %q, want %q", c.Reason, c.Message, want)
	}
}

func TestWhoseObjectsWakeAStack(t *testing.T) {
	verify := &addonsv1.Verification{Cosign: &addonsv1.CosignVerification{PublicKeys: []addonsv1.TrustReference{{Kind: "ConfigMap", Name: "keys"}}}}
	oci := func(secret string) *addonsv1.OCISource {
		return &addonsv1.OCISource{URL: "oci://example.org/web", SecretRef: &addonsv1.CredentialsReference{Name: secret}}
	}
	spec := &addonsv1.AddonStackSpec{
		Source: &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Verify: verify, Version: "docker-scs-1-31-v1", OCI: oci("of-bundle")}},
		Addons: []addonsv1.Addon{
			{Name: "a", Chart: addonsv1.ChartSource{Version: "1.x", OCI: oci("of-range"), Verify: &addonsv1.Verification{
				Provenance: &addonsv1.ProvenanceVerification{Keyring: addonsv1.TrustReference{Kind: "Secret", Name: "keyring"}},
			}}},
			{Name: "b", Chart: addonsv1.ChartSource{Version: "1.0.0", OCI: oci("of-version")}},
			{Name: "c", Kustomization: &addonsv1.KustomizationSource{ArtifactSource: addonsv1.ArtifactSource{Version: "1.x", OCI: oci("of-files")}}},
		},
	}
	for object, want := range map[[2]string]bool{
		{"Secret", "of-bundle"}: true, {"ConfigMap", "keys"}: true, {"Secret", "of-range"}: true, {"Secret", "keyring"}: true, {"Secret", "of-files"}: true,
		{"Secret", "of-version"}: false, {"Secret", "keys"}: false, {"ConfigMap", "of-bundle"}: false, {"ConfigMap", "other"}: false,
	} {
		uses := slices.ContainsFunc(references("team", spec), func(ref reference.Reference) bool { return ref.Uses(object[0], object[1]) })
		if uses != want {
			t.Errorf("%s: %v, want %v", object, uses, want)
		}
	}
}
