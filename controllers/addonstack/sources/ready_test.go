// SPDX-License-Identifier: Apache-2.0

package sources_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sources"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/stack"
	"github.com/cluster-chandler/chandler/test/stacks"
)

func TestWhatIsSaidOfABundle(t *testing.T) {
	s := &addonsv1.AddonStack{}
	s.Spec.Source = &addonsv1.BundleSource{
		ArtifactSource: addonsv1.ArtifactSource{OCI: &addonsv1.OCISource{URL: "oci://example.org/stacks"}}, ClusterStack: "docker-scs-1-31",
	}
	followers := stack.Followers(&s.Spec)
	o := &following.Poll{Results: map[string]following.Found{}}
	if got := stacks.SourcesReady(following.Resolve(s, followers, nil, o)).Message; got != "The spec waits for its sources. Looking for the newest version of spec.source in channel stable of docker-scs-1-31" {
		t.Errorf("got %q", got)
	}
	o.Results[addonsv1.FollowedSource] = following.Found{Newest: "docker-scs-1-31-v10", Err: &failure.Error{
		Reason: failure.SignatureMissing, Field: "spec.source.oci", Subject: "oci://example.org/stacks", Err: errors.New("it has no signature"),
	}}
	f := following.Resolve(s, followers, stack.Pins{addonsv1.FollowedSource: {Version: "docker-scs-1-31-v9"}}, o)
	const want = "Looking for newer versions: spec.source.oci: oci://example.org/stacks: it has no signature. So docker-scs-1-31-v10 isn't taken, it stays at docker-scs-1-31-v9"
	if c := stacks.SourcesReady(f); c.Message != want || c.Reason != failure.SignatureMissing || c.Status != metav1.ConditionFalse {
		t.Errorf("got %s %q, want %q", c.Reason, c.Message, want)
	}
}

func TestSourcesReadyOfClusters(t *testing.T) {
	entry := func(addon string, status metav1.ConditionStatus, reason, message string) addonsv1.StackSource {
		return addonsv1.StackSource{Addon: addon, Conditions: []metav1.Condition{
			{Type: addonsv1.SourceAvailableCondition, Status: status, Reason: reason, Message: message},
		}}
	}
	all := []addonsv1.StackSource{
		entry("a", metav1.ConditionUnknown, addonsv1.SourceNotAskedReason, "no"),
		entry("b", metav1.ConditionFalse, failure.SourceUnavailable, "b is down"),
		entry("c", metav1.ConditionFalse, failure.ArtifactNotFound, "Looking for newer versions: c is gone"),
		entry("d", metav1.ConditionTrue, addonsv1.SourceAvailableReason, ""),
	}
	for name, tc := range map[string]struct {
		f       *following.Resolution
		sources []addonsv1.StackSource
		want    string
	}{
		"all is well":           {&following.Resolution{}, all[3:], "True SourcesReady: "},
		"nobody asked":          {&following.Resolution{}, all[:1], "Unknown NotAsked: No cluster has asked for any of them yet"},
		"one isn't asked":       {&following.Resolution{}, []addonsv1.StackSource{all[0], all[3]}, "True SourcesReady: No cluster has asked yet for a"},
		"there is none":         {&following.Resolution{}, nil, "True SourcesReady: "},
		"a cluster fails":       {&following.Resolution{}, all[:2], "False SourceUnavailable: b is down"},
		"and so does a look":    {&following.Resolution{}, all, "False SourceUnavailable: b is down; Looking for newer versions: c is gone"},
		"the spec waits anyway": {following.Resolve(stacks.Following(), stack.Followers(&stacks.Following().Spec), nil, &following.Poll{}), all, "Unknown SourcesPending: "},
	} {
		c := sources.Ready(tc.f, tc.sources)
		if got := fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message); !strings.HasPrefix(got, tc.want) || c.Status != metav1.ConditionUnknown && got != tc.want {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}

// A source that is down is told of once, whatever the clusters make of it, and again
// only after it was there.
func TestSourcesThatAreDownAreToldOfOnce(t *testing.T) {
	const down, asked, good = failure.SourceUnavailable, failure.ArtifactPending, addonsv1.SourceAvailableReason
	for name, tc := range map[string]struct {
		reasons []string // that clusters give, one after the other
		want    int
	}{
		"all is well":            {reasons: []string{good, good}},
		"nobody has asked":       {reasons: []string{addonsv1.SourceNotAskedReason, asked, good}},
		"it is down":             {reasons: []string{good, down, down, down}, want: 1},
		"it is asked again":      {reasons: []string{asked, down, asked, down, asked, down}, want: 1},
		"it was there meanwhile": {reasons: []string{down, asked, good, down}, want: 2},
		"another reason":         {reasons: []string{down, failure.SourceUnauthorized, failure.SourceUnauthorized}, want: 2},
		"a look after that":      {reasons: []string{good, down, asked, down}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(100)
			s := stacks.Following()
			for i, reason := range tc.reasons {
				c := metav1.Condition{Type: addonsv1.SourceAvailableCondition, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprint("as cluster ", i, " says")}
				switch reason {
				case good:
					c.Status = metav1.ConditionTrue
				case asked, addonsv1.SourceNotAskedReason:
					c.Status = metav1.ConditionUnknown
				}
				s.Status.Sources = []addonsv1.StackSource{{Addon: "web", Conditions: []metav1.Condition{c}}}
				sources.Report(s, &following.Resolution{}, report.Events{Recorder: recorder})
			}
			notes := stacks.Notes(recorder)
			if len(notes) != tc.want || slices.ContainsFunc(notes, func(note string) bool { return !strings.HasPrefix(note, "Warning Source") }) {
				t.Errorf("told %q, want %d events", notes, tc.want)
			}
		})
	}
}
