// SPDX-License-Identifier: Apache-2.0

package validity_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/addonstack/following"
	"github.com/cluster-chandler/chandler/controllers/addonstack/report"
	"github.com/cluster-chandler/chandler/controllers/addonstack/sources"
	"github.com/cluster-chandler/chandler/controllers/addonstack/validity"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/test/stacks"
)

// Each message names the field just as it is in the spec.
func TestFieldsOfBundles(t *testing.T) {
	for want, err := range map[string]error{
		"spec.source.oci: it is a Helm chart":  &failure.Error{Reason: failure.ArtifactInvalid, Field: "spec.source.oci", Err: errors.New("it is a Helm chart")},
		"spec.source.digest: it is another":    &failure.Error{Reason: addonsv1.InvalidSourceReason, Field: "spec.source.digest", Err: errors.New("it is another")},
		"spec.source: metadata.yaml: no map":   failure.New(addonsv1.InvalidSourceReason, "metadata.yaml: no map"),
		"addons[cni].chart.path: it is a link": &failure.Error{Reason: failure.ArtifactRefused, Field: "addons[cni].chart.path", Err: errors.New("it is a link")},
	} {
		s := &addonsv1.AddonStack{}
		validity.Report(s, nil, failure.Of(err), report.Events{Recorder: events.NewFakeRecorder(10)})
		if got := conditions.GetMessage(s, addonsv1.ValidCondition); got != want+". Clusters stay as they are" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A bundle that can't be used stays so while its source is asked again, and is told of when it becomes something else. So is
// what a spec waits for. The bundle isn't said to be away because of something in it.
func TestWhatIsWrongWithABundleIsToldOnce(t *testing.T) {
	pending := &failure.Error{Reason: failure.ArtifactPending, Field: "spec.source.oci", Err: errors.New("it is slow"), Wait: true}
	down := &failure.Error{Reason: failure.SourceUnavailable, Field: "spec.source.oci", Err: errors.New("it refuses connections")}
	again := &failure.Error{Reason: failure.SourceUnauthorized, Field: "spec.source.oci", Err: errors.New("it wants credentials"), Again: true}
	noTag := &failure.Error{Reason: failure.ArtifactNotFound, Field: "spec.source.oci", Subject: "oci://example.org/stacks:v9", Err: errors.New("there is no tag v9")}
	noKey := &failure.Error{Reason: failure.SignatureMissing, Field: "spec.source.oci", Err: errors.New("it has no signature")}
	noPath := &failure.Error{Reason: failure.ArtifactNotFound, Field: "addons[cni].chart.path", Subject: `"cin" of the bundle`, Err: errors.New("correct the path")}
	noRelease := failure.New(addonsv1.InvalidSourceReason, "metadata.yaml: no map")
	noArchive := &failure.Error{Reason: failure.ArtifactInvalid, Field: "spec.source.oci", Err: errors.New("it is a Helm chart")}
	const (
		release, archive = "Warning InvalidSource ", "Warning ArtifactInvalid "
		outage, refused  = "Warning SourceUnavailable ", "Warning SourceUnauthorized "
		tag              = "Warning ArtifactNotFound The spec waits for its sources. spec.source.oci: oci://example.org/stacks:v9: there is no tag v9"
		key              = "Warning SignatureMissing The spec waits for its sources. spec.source.oci: it has no signature"
		part             = `Warning ArtifactNotFound The bundle is there, but can't be used as the spec says. addons[cni].chart.path: "cin" of the bundle: correct the path`
		valid, invalid   = metav1.ConditionTrue, metav1.ConditionFalse
	)
	type step struct {
		err    *failure.Error // nil: the bundle is good
		valid  metav1.ConditionStatus
		edited bool // the spec, before it
	}
	for name, tc := range map[string]struct {
		steps []step
		want  []string
	}{
		"the same":          {[]step{{err: noRelease, valid: invalid}, {err: noRelease, valid: invalid}}, []string{release}},
		"another one":       {[]step{{err: noRelease, valid: invalid}, {err: noArchive, valid: invalid}}, []string{release, archive}},
		"a new stack":       {[]step{{err: pending, valid: valid}, {err: noRelease, valid: invalid}}, []string{release}},
		"a look that waits": {[]step{{err: noArchive, valid: invalid}, {err: pending, valid: invalid}, {err: noArchive, valid: invalid}}, []string{archive}},
		"a restart, and a look that waits": {[]step{{err: noRelease, valid: invalid}, {err: pending, valid: invalid}, {err: noRelease, valid: invalid},
			{err: pending, valid: invalid}, {err: noRelease, valid: invalid}}, []string{release}},
		"an outage":        {[]step{{err: noArchive, valid: invalid}, {err: down, valid: invalid}, {err: noArchive, valid: invalid}}, []string{archive, outage}},
		"a failed look":    {[]step{{err: noArchive, valid: invalid}, {err: again, valid: invalid}, {err: noArchive, valid: invalid}}, []string{archive, refused}},
		"an edit":          {[]step{{err: noArchive, valid: invalid}, {err: pending, valid: valid, edited: true}, {err: noArchive, valid: invalid}}, []string{archive, archive}},
		"a restarted edit": {[]step{{err: noArchive, valid: invalid}, {err: pending, valid: valid, edited: true}, {err: noArchive, valid: invalid}}, []string{archive, archive}},
		"no such tag":      {[]step{{err: noArchive, valid: invalid}, {err: noTag, valid: valid}, {err: noArchive, valid: invalid}}, []string{archive, tag, archive}},
		"it is slow":       {[]step{{err: pending, valid: valid}, {err: pending, valid: valid}}, nil},
		"another reason":   {[]step{{err: noTag, valid: valid}, {err: noKey, valid: valid}}, []string{tag, key}},
		"a part of it":     {[]step{{err: noPath, valid: valid}, {err: noPath, valid: valid}}, []string{part}},
		"a wait":           {[]step{{err: noTag, valid: valid}, {err: noTag, valid: valid}, {err: pending, valid: valid}, {err: noTag, valid: valid}}, []string{tag}},
		"a restart": {[]step{{err: noTag, valid: valid}, {err: pending, valid: valid}, {err: noTag, valid: valid},
			{err: noTag, valid: valid}}, []string{tag}},
		"it was fixed": {[]step{{err: noArchive, valid: invalid}, {valid: valid}, {err: noArchive, valid: invalid}}, []string{archive, archive}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(100)
			s := &addonsv1.AddonStack{}
			s.Generation = 1
			s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "release"}}
			for i, step := range tc.steps {
				if step.edited {
					s.Generation++
				}
				f := &following.Resolution{Bundle: step.err}
				validity.Report(s, &following.Expansion{}, step.err, report.Events{Recorder: recorder})
				if step.err != nil {
					s.Status.Sources = sources.Of(s, nil, nil, f)
					sources.Report(s, f, report.Events{Recorder: recorder})
				}
				if got := conditions.Get(s, addonsv1.ValidCondition).Status; got != step.valid {
					t.Errorf("step %d: Valid is %s, want %s", i, got, step.valid)
				}
			}
			if got := stacks.Notes(recorder); !slices.EqualFunc(got, tc.want, strings.HasPrefix) {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
