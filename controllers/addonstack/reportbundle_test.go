// SPDX-License-Identifier: Apache-2.0

package addonstack

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/cluster-api/util/conditions"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
)

// What a spec waits for is told when it becomes something else, and the bundle isn't
// said to be away because of something in it.
func TestWaitingForABundleIsToldOnce(t *testing.T) {
	pending := &failure.Error{Reason: failure.ArtifactPending, Field: "spec.source.oci", Err: errors.New("it is slow"), Wait: true}
	noTag := &failure.Error{Reason: failure.ArtifactNotFound, Field: "spec.source.oci", Subject: "oci://example.org/stacks:v9", Err: errors.New("there is no tag v9")}
	noKey := &failure.Error{Reason: failure.SignatureMissing, Field: "spec.source.oci", Err: errors.New("it has no signature")}
	noPath := fmt.Errorf("addons[cni].%w", &failure.Error{Reason: failure.ArtifactNotFound, Field: "chart.path", Subject: `"cin" of the bundle`, Err: errors.New("correct the path")})
	const (
		sayTag  = "Warning ArtifactNotFound The spec waits for its bundle. spec.source.oci: oci://example.org/stacks:v9: there is no tag v9"
		sayKey  = "Warning SignatureMissing The spec waits for its bundle. spec.source.oci: it has no signature"
		sayPath = `Warning ArtifactNotFound The bundle is there, but can't be used as the spec says. addons[cni].chart.path: "cin" of the bundle: correct the path`
	)
	for name, tc := range map[string]struct {
		errs    []error
		restart int
		want    []string
	}{
		"it is slow":         {errs: []error{pending, pending}},
		"the same":           {errs: []error{noTag, noTag, pending, noTag}, want: []string{sayTag}},
		"another one":        {errs: []error{noTag, noKey}, want: []string{sayTag, sayKey}},
		"a part of it":       {errs: []error{noPath, noPath}, want: []string{sayPath}},
		"a restart":          {errs: []error{noTag, noTag}, restart: 1, want: []string{sayTag}},
		"a restart and more": {errs: []error{noTag, pending, noTag}, restart: 1, want: []string{sayTag}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(100)
			r := &Reconciler{Recorder: recorder}
			s := followingStack()
			for i, err := range tc.errs {
				if tc.restart == i {
					r = &Reconciler{Recorder: recorder}
				}
				if err := r.reportNoBundle(s, &resolution{}, err); err != nil {
					t.Fatal(err)
				}
			}
			if got := notesOf(recorder); !slices.Equal(got, tc.want) {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}

// Each message names the field just as it is in the spec.
func TestFieldsOfBundles(t *testing.T) {
	for want, err := range map[string]error{
		"spec.source.oci: it is a Helm chart": &failure.Error{Reason: failure.ArtifactInvalid, Field: "spec.source.oci", Err: errors.New("it is a Helm chart")},
		"spec.source.digest: it is another":   failure.New(addonsv1.InvalidSourceReason, "spec.source.digest: it is another"),
		"spec.source: metadata.yaml: no map":  failure.New(addonsv1.InvalidSourceReason, "metadata.yaml: no map"),
		"addons[cni].chart.path: it is a link": fmt.Errorf("addons[cni].%w", &failure.Error{Reason: failure.ArtifactRefused, Field: "chart.path",
			Err: errors.New("it is a link")}),
	} {
		s := followingStack()
		r := &Reconciler{Recorder: events.NewFakeRecorder(10)}
		if err := r.reportNoBundle(s, &resolution{}, err); err != nil {
			t.Fatal(err)
		}
		if got := conditions.GetMessage(s, addonsv1.ValidCondition); got != want+". Clusters stay as they are" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// A bundle that can't be used stays so while its source is asked again, and is told of
// when it becomes something else.
func TestInvalidBundleIsToldOnce(t *testing.T) {
	pending := &failure.Error{Reason: failure.ArtifactPending, Field: "spec.source.oci", Err: errors.New("it is slow"), Wait: true}
	down := &failure.Error{Reason: failure.SourceUnavailable, Field: "spec.source.oci", Err: errors.New("it refuses connections")}
	again := &failure.Error{Reason: failure.SourceUnauthorized, Field: "spec.source.oci", Err: errors.New("it wants credentials"), Again: true}
	noTag := &failure.Error{Reason: failure.ArtifactNotFound, Field: "spec.source.oci", Err: errors.New("there is no tag v9")}
	noRelease := failure.New(addonsv1.InvalidSourceReason, "metadata.yaml: no map")
	noArchive := &failure.Error{Reason: failure.ArtifactInvalid, Field: "spec.source.oci", Err: errors.New("it is a Helm chart")}
	const (
		release, archive = "InvalidSource", "ArtifactInvalid"
		outage, tag      = "SourceUnavailable", "ArtifactNotFound"
		valid, invalid   = metav1.ConditionTrue, metav1.ConditionFalse
	)
	type step struct {
		err     error // nil: the bundle is good
		valid   metav1.ConditionStatus
		restart bool // before it
		edited  bool // the spec, before it
	}
	for name, tc := range map[string]struct {
		steps []step
		want  []string
	}{
		"the same":          {[]step{{err: noRelease, valid: invalid}, {err: noRelease, valid: invalid}}, []string{release}},
		"another one":       {[]step{{err: noRelease, valid: invalid}, {err: noArchive, valid: invalid}}, []string{release, archive}},
		"a new stack":       {[]step{{err: pending, valid: valid}, {err: noRelease, valid: invalid}}, []string{release}},
		"a look that waits": {[]step{{err: noArchive, valid: invalid}, {err: pending, valid: invalid}, {err: noArchive, valid: invalid}}, []string{archive}},
		"a restart, and a look that waits": {[]step{{err: noRelease, valid: invalid}, {err: pending, valid: invalid, restart: true}, {err: noRelease, valid: invalid},
			{err: pending, valid: invalid, restart: true}, {err: noRelease, valid: invalid}}, []string{release}},
		"an outage":        {[]step{{err: noArchive, valid: invalid}, {err: down, valid: invalid, restart: true}, {err: noArchive, valid: invalid}}, []string{archive, outage}},
		"a failed look":    {[]step{{err: noArchive, valid: invalid}, {err: again, valid: invalid}, {err: noArchive, valid: invalid}}, []string{archive, "SourceUnauthorized"}},
		"an edit":          {[]step{{err: noArchive, valid: invalid}, {err: pending, valid: valid, edited: true}, {err: noArchive, valid: invalid}}, []string{archive, archive}},
		"a restarted edit": {[]step{{err: noArchive, valid: invalid}, {err: pending, valid: valid, edited: true, restart: true}, {err: noArchive, valid: invalid}}, []string{archive, archive}},
		"no such tag":      {[]step{{err: noArchive, valid: invalid}, {err: noTag, valid: valid}, {err: noArchive, valid: invalid}}, []string{archive, tag, archive}},
		"it was fixed":     {[]step{{err: noArchive, valid: invalid}, {valid: valid}, {err: noArchive, valid: invalid}}, []string{archive, archive}},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(100)
			r := &Reconciler{Recorder: recorder}
			s := followingStack()
			s.Spec.Source = &addonsv1.BundleSource{ArtifactSource: addonsv1.ArtifactSource{Path: "release"}}
			for i, step := range tc.steps {
				if step.restart {
					r = &Reconciler{Recorder: recorder}
				}
				if step.edited {
					s.Generation++
				}
				if step.err == nil {
					reportValid(s, &expansion{})
				} else if err := r.reportNoBundle(s, &resolution{}, step.err); err != nil {
					t.Fatal(err)
				}
				if got := conditions.Get(s, addonsv1.ValidCondition).Status; got != step.valid {
					t.Errorf("step %d: Valid is %s, want %s", i, got, step.valid)
				}
			}
			var got []string
			for _, note := range notesOf(recorder) {
				got = append(got, strings.Fields(note)[1])
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
