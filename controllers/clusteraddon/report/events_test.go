// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/report"
	"github.com/cluster-chandler/chandler/controllers/clusteraddon/result"
	"github.com/cluster-chandler/chandler/internal/deliver"
	"github.com/cluster-chandler/chandler/internal/deliver/object"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
	"github.com/cluster-chandler/chandler/internal/render/job"
)

// with returns a ClusterAddon whose status has an add-on.
func with(s addonsv1.AddonStatus) *addonsv1.ClusterAddon {
	return &addonsv1.ClusterAddon{Status: addonsv1.ClusterAddonStatus{Addons: []addonsv1.AddonStatus{s}}}
}

// eventsOf returns the events of a change of an add-on.
func eventsOf(was, is addonsv1.AddonStatus) []result.Event {
	return (&report.Memory{}).Events(with(was), with(is))
}

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
	for want, all := range cases {
		for _, reason := range all {
			told := eventsOf(addonsv1.AddonStatus{}, addonIn("web", addonsv1.AddonPending, reason, "why"))
			if len(told) > 0 != want || want && (told[0].Kind != corev1.EventTypeWarning || told[0].Reason != reason || told[0].Note != "Add-on web is pending: why") {
				t.Errorf("%q: %+v, want an event: %t", reason, told, want)
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
			known, before := &report.Memory{}, &addonsv1.ClusterAddon{}
			var got []string
			for i, s := range tc.statuses {
				if tc.restart == i {
					known = &report.Memory{}
				}
				after := with(s)
				for _, e := range known.Events(before, after) {
					told := e.Reason
					for _, what := range []string{"pending: ", "failed: "} {
						if _, message, found := strings.Cut(e.Note, what); found {
							told += " " + message
						}
					}
					got = append(got, told)
				}
				before = after
			}
			if fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}

// An event tells how an installation ends, and what goes wrong. What waited for a while, or is taken over by another stack,
// and is at the revision that it had, wasn't installed by that.
func TestEventsTellWhatChanged(t *testing.T) {
	at := func(phase addonsv1.AddonPhase, reason string, revision int32) addonsv1.AddonStatus {
		s := addonIn("web", phase, reason, "why")
		s.Revision, s.Version = revision, "1.0.0"
		return s
	}
	ofAnother := at(addonsv1.AddonReady, "", 2)
	ofAnother.Stack = "previous"
	ready, none := at(addonsv1.AddonReady, "", 2), addonsv1.AddonStatus{}
	const installed, still = "AddonReady Installed add-on web 1.0.0", "AddonReady Still installed: add-on web 1.0.0"
	for name, tc := range map[string]struct {
		was, is addonsv1.AddonStatus
		want    string
	}{
		"nothing changed":                      {ready, ready, ""},
		"an installation starts":               {none, at(addonsv1.AddonInstalling, "", 1), ""},
		"it continues":                         {at(addonsv1.AddonInstalling, "A", 1), at(addonsv1.AddonInstalling, "B", 1), ""},
		"it is ready":                          {at(addonsv1.AddonInstalling, "A", 2), ready, installed},
		"an upgrade starts":                    {at(addonsv1.AddonReady, "", 1), at(addonsv1.AddonUpgrading, "", 2), ""},
		"an upgrade follows the last":          {at(addonsv1.AddonUpgrading, "", 2), at(addonsv1.AddonUpgrading, "", 3), ""},
		"it fails":                             {at(addonsv1.AddonUpgrading, "", 2), at(addonsv1.AddonFailed, "HookFailed", 2), "HookFailed "},
		"it fails for another reason":          {at(addonsv1.AddonFailed, "HookFailed", 2), at(addonsv1.AddonFailed, "ObjectRejected", 2), "ObjectRejected "},
		"it is degraded":                       {ready, at(addonsv1.AddonDegraded, "CrashLoopBackOff", 2), "CrashLoopBackOff "},
		"it is removed":                        {ready, at(addonsv1.AddonRemoving, "", 2), "AddonRemoving "},
		"it waits":                             {none, at(addonsv1.AddonPending, "WaitingForDependency", 0), ""},
		"it has waited for another one":        {at(addonsv1.AddonPending, reasons.WaitingForDependency, 2), ready, ""},
		"its source was down":                  {at(addonsv1.AddonPending, failure.SourceUnavailable, 2), ready, ""},
		"somebody was told of it":              {at(addonsv1.AddonPending, failure.SignatureMissing, 2), ready, still},
		"its stack was undecided":              {at(addonsv1.AddonUnassigned, reasons.StackUndecided, 2), ready, still},
		"it had failed":                        {at(addonsv1.AddonFailed, deliver.ReasonHookFailed, 2), ready, installed},
		"it was degraded":                      {at(addonsv1.AddonDegraded, "CrashLoopBackOff", 2), ready, "AddonReady Healthy again: add-on web 1.0.0"},
		"it waited, and is another version":    {at(addonsv1.AddonPending, reasons.WaitingForDependency, 1), ready, installed},
		"it is new":                            {at(addonsv1.AddonPending, failure.ArtifactPending, 0), ready, installed},
		"it was on the way":                    {at(addonsv1.AddonUpgrading, "", 2), ready, installed},
		"another stack's, as it is":            {ofAnother, ready, ""},
		"another stack's, of another revision": {ofAnother, at(addonsv1.AddonReady, "", 3), installed},
	} {
		got := ""
		for _, e := range eventsOf(tc.was, tc.is) {
			got += e.Reason + " " + e.Note
		}
		if !strings.HasPrefix(got, tc.want) || tc.want == "" && got != "" {
			t.Errorf("%s: told %q, want %q", name, got, tc.want)
		}
	}
}
