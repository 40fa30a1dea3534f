// SPDX-License-Identifier: Apache-2.0

package clusteraddon

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// An add-on that waits for somebody is told of, one that waits for something isn't.
func TestWhichPendingAddonsAreToldOf(t *testing.T) {
	cases := map[bool][]string{
		true: {
			failure.ArtifactNotFound, failure.ArtifactInvalid, failure.ArtifactTooLarge, failure.ArtifactRefused, failure.SourceDisabled,
			failure.DigestMismatch, failure.SourceUnauthorized, failure.SignatureMissing, failure.SignatureInvalid, failure.VerificationPolicyInvalid,
			reasons.ValuesNotFound, job.ReasonValuesInvalid, job.ReasonTemplateNotRepeatable, reasons.ProviderObjectUnavailable, reasons.ProviderObjectRefused, reasons.ReleaseTaken, reasons.StackUnknown,
			job.ReasonTemplateFailed, job.ReasonChartInvalid, object.ReasonNamespaceMissing, object.ReasonForbidden,
		},
		false: {
			"", failure.ArtifactPending, failure.ArtifactChanged, failure.SourceUnavailable,
			reasons.WaitingForDependency, reasons.WaitingForPrecondition, reasons.WaitingForDependent, reasons.WaitingForSuccessor, reasons.StackUndecided, reasons.Retrying,
			deliver.ReasonReleaseLocked, deliver.ReasonRunningHook, object.ReasonWaitingForCRDs, deliver.ReasonWaitingForObjects,
			object.ReasonWaitingForDeletion, deliver.ReasonWaitingForPostcondition, object.ReasonWaitingForWebhook,
		},
	}
	for want, reasons := range cases {
		for _, reason := range reasons {
			e := addonEvent(addonsv1.AddonStatus{}, addonIn("web", addonsv1.AddonPending, reason, "why"))
			switch {
			case (e != nil) != want:
				t.Errorf("%q: %+v, want an event: %t", reason, e, want)
			case want && (e.kind != corev1.EventTypeWarning || e.reason != reason || e.note != "Add-on web is pending: why"):
				t.Errorf("%q: %+v", reason, e)
			}
		}
	}
}

// TestPendingIsToldOnce has one event for what is wrong, until something else is. There is none with
// each reconcile, after each look at the source, each time the cluster is back, or after a restart.
func TestPendingIsToldOnce(t *testing.T) {
	const missing, unauthorized = failure.SignatureMissing, failure.SourceUnauthorized
	pending := func(reason, message string) addonsv1.AddonStatus {
		return addonIn("web", addonsv1.AddonPending, reason, message)
	}
	const invalid, rejected = failure.ArtifactInvalid, object.ReasonObjectRejected
	failed := func(reason, message string) addonsv1.AddonStatus {
		return addonIn("web", addonsv1.AddonFailed, reason, message)
	}
	ofAnother := func(s addonsv1.AddonStatus) addonsv1.AddonStatus {
		s.Stack = "another"
		return s
	}
	asked := pending(failure.ArtifactPending, "")
	cases := map[string]struct {
		statuses []addonsv1.AddonStatus // one after the other
		restart  int                    // the manager, before the status of this index
		want     []string
	}{
		"each reconcile":    {statuses: []addonsv1.AddonStatus{pending(missing, "a"), pending(missing, "a"), pending(missing, "a")}, want: []string{missing + " a"}},
		"another message":   {statuses: []addonsv1.AddonStatus{pending(missing, "a"), pending(missing, "b")}, want: []string{missing + " a", missing + " b"}},
		"another reason":    {statuses: []addonsv1.AddonStatus{pending(missing, "a"), pending(unauthorized, "a")}, want: []string{missing + " a", unauthorized + " a"}},
		"a restart":         {statuses: []addonsv1.AddonStatus{pending(missing, "a"), pending(missing, "a")}, restart: 1, want: []string{missing + " a"}},
		"a look that waits": {statuses: []addonsv1.AddonStatus{pending(missing, "a"), pending(failure.ArtifactPending, ""), pending(failure.ArtifactPending, ""), pending(missing, "a")}, want: []string{missing + " a"}},
		"an outage":         {statuses: []addonsv1.AddonStatus{pending(missing, "a"), pending(failure.SourceUnavailable, "it refuses connections"), pending(missing, "a")}, want: []string{missing + " a"}},
		"an outage alone":   {statuses: []addonsv1.AddonStatus{pending(failure.ArtifactPending, ""), pending(failure.SourceUnavailable, "it refuses connections")}},
		"it was fixed, and is there again": {
			statuses: []addonsv1.AddonStatus{pending(missing, "a"), addonIn("web", addonsv1.AddonReady, "", ""), pending(missing, "a")},
			want:     []string{missing + " a", "AddonReady", missing + " a"},
		},
		"it failed":                           {statuses: []addonsv1.AddonStatus{failed(invalid, "a"), failed(invalid, "a")}, want: []string{invalid + " a"}},
		"it failed, and a look that waits":    {statuses: []addonsv1.AddonStatus{failed(invalid, "a"), asked, asked, failed(invalid, "a")}, want: []string{invalid + " a"}},
		"it failed, a restart, and a look":    {statuses: []addonsv1.AddonStatus{failed(invalid, "a"), asked, failed(invalid, "a"), asked, failed(invalid, "a")}, restart: 1, want: []string{invalid + " a"}},
		"it failed, and another version, too": {statuses: []addonsv1.AddonStatus{failed(invalid, "a"), asked, failed(invalid, "b")}, want: []string{invalid + " a", invalid + " b"}},
		"it failed, and a cluster that comes and goes": {
			statuses: []addonsv1.AddonStatus{failed(rejected, "a"), failed(reasons.Retrying, "no answer"), failed(rejected, "a"), failed(reasons.Retrying, "no answer"), failed(rejected, "a")},
			restart:  1, want: []string{rejected + " a"},
		},
		"a cluster that comes and goes": {
			statuses: []addonsv1.AddonStatus{pending(missing, "a"), pending(reasons.Retrying, "no answer"), pending(missing, "a")}, want: []string{missing + " a"},
		},
		"a cluster that comes and goes, and another failure": {
			statuses: []addonsv1.AddonStatus{failed(rejected, "a"), failed(reasons.Retrying, "no answer"), failed(deliver.ReasonHookFailed, "b")},
			want:     []string{rejected + " a", deliver.ReasonHookFailed + " b"},
		},
		"another stack's": {
			statuses: []addonsv1.AddonStatus{failed(invalid, "a"), ofAnother(asked), ofAnother(failed(invalid, "a"))}, want: []string{invalid + " a", invalid + " a"},
		},
		"another stack's, which waits for somebody": {
			statuses: []addonsv1.AddonStatus{pending(missing, "a"), ofAnother(asked), ofAnother(pending(missing, "a"))}, want: []string{missing + " a", missing + " a"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			recorder := events.NewFakeRecorder(100)
			r := &Reconciler{Recorder: recorder}
			before := &addonsv1.ClusterAddon{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "one"}}
			for i, s := range tc.statuses {
				if tc.restart == i {
					r = &Reconciler{Recorder: recorder}
				}
				after := before.DeepCopy()
				after.Status.Addons = []addonsv1.AddonStatus{s}
				r.recordEvents(before, after)
				before = after
			}
			close(recorder.Events)
			var got []string
			for e := range recorder.Events {
				_, e, _ = strings.Cut(e, " ")
				reason, note, _ := strings.Cut(e, " ")
				for _, what := range []string{"pending: ", "failed: "} {
					if _, message, found := strings.Cut(note, what); found {
						reason += " " + message
					}
				}
				got = append(got, reason)
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}

// What waited for a while, and is at the revision that it had, wasn't installed by that.
func TestReadyAgainIsNoInstallation(t *testing.T) {
	status := func(phase addonsv1.AddonPhase, reason string, revision int32) addonsv1.AddonStatus {
		s := addonIn("web", phase, reason, "why")
		s.Revision, s.Version = revision, "1.0.0"
		return s
	}
	const installed, still = "Installed add-on web 1.0.0", "Still installed: add-on web 1.0.0"
	for name, tc := range map[string]struct {
		was  addonsv1.AddonStatus
		want string
	}{
		"it was":                            {status(addonsv1.AddonReady, "", 2), ""},
		"it waited for another one":         {status(addonsv1.AddonPending, reasons.WaitingForDependency, 2), ""},
		"its source was down":               {status(addonsv1.AddonPending, failure.SourceUnavailable, 2), ""},
		"somebody was told of it":           {status(addonsv1.AddonPending, failure.SignatureMissing, 2), still},
		"its stack was undecided":           {status(addonsv1.AddonUnassigned, reasons.StackUndecided, 2), still},
		"it failed":                         {status(addonsv1.AddonFailed, deliver.ReasonHookFailed, 2), installed},
		"it waited, and is another version": {status(addonsv1.AddonPending, reasons.WaitingForDependency, 1), installed},
		"it is new":                         {status(addonsv1.AddonPending, failure.ArtifactPending, 0), installed},
		"it was on the way":                 {status(addonsv1.AddonUpgrading, "", 2), installed},
	} {
		e, got := addonEvent(tc.was, status(addonsv1.AddonReady, "", 2)), ""
		if e != nil {
			got = e.note
		}
		if tc.want == "" && e != nil || !strings.HasPrefix(got, tc.want) {
			t.Errorf("%s: told %q, want %q", name, got, tc.want)
		}
	}
}

// An add-on that another stack takes over as it is was installed before.
func TestTakingOverIsNoInstallation(t *testing.T) {
	status := func(stack string, phase addonsv1.AddonPhase, revision int32) addonsv1.AddonStatus {
		s := addonIn("web", phase, "", "")
		s.Stack, s.Revision = stack, revision
		return s
	}
	ready := status("docker-v1", addonsv1.AddonReady, 1)
	for want, is := range map[string]addonsv1.AddonStatus{
		"":           status("docker-v2", addonsv1.AddonReady, 1),
		"AddonReady": status("docker-v2", addonsv1.AddonReady, 2),
	} {
		before := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Addons: []addonsv1.AddonStatus{ready}}}
		after := &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Addons: []addonsv1.AddonStatus{is}}}
		got := ""
		if events := eventsOf(before, after); len(events) > 0 {
			got = events[0].reason
		}
		if got != want {
			t.Errorf("%s at revision %d: event %q, want %q", is.Phase, is.Revision, got, want)
		}
	}
}
