// SPDX-License-Identifier: Apache-2.0

package reasons_test

import (
	"slices"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/failure"
	"github.com/cluster-chandler/chandler/internal/reasons"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i, row := range reasons.Table {
		if row.Name == "" || seen[row.Name] {
			t.Errorf("row %d, %q, has no name of its own", i, row.Name)
		}
		seen[row.Name] = true
		if row.Is(reasons.SourceBad) && row.Is(reasons.SourceRead) || row.Is(reasons.SourceFailed) && row.Is(reasons.SourceRefused) {
			t.Errorf("%s tells two things of the source", row.Name)
		}
		if row.Is(reasons.SourceBad) != failure.IsReason(row.Name) {
			t.Errorf("%s is a reason of sources in one of two places", row.Name)
		}
	}
	if !reasons.Of("").Is(reasons.Passing) || reasons.Of("Unheard").Is(reasons.Passing) {
		t.Error("what has no reason passes, and what nobody knows doesn't")
	}
}

func TestWarnings(t *testing.T) {
	for _, tc := range []struct {
		reason string
		phase  addonsv1.AddonPhase
		want   bool
	}{
		{"ValuesInvalid", addonsv1.AddonFailed, true},
		{reasons.Retrying, addonsv1.AddonFailed, false},
		{reasons.ValuesNotFound, addonsv1.AddonPending, true},
		{reasons.WaitingForDependency, addonsv1.AddonPending, false},
		{"", addonsv1.AddonPending, false},
		{reasons.StackUndecided, addonsv1.AddonUnassigned, true},
		{reasons.WaitingForDependent, addonsv1.AddonRemoving, false},
		{"ValuesInvalid", addonsv1.AddonReady, false},
	} {
		if got := reasons.Of(tc.reason).Warns(tc.phase); got != tc.want {
			t.Errorf("%s, %s: %v", tc.phase, tc.reason, got)
		}
	}
}

// A person has to act on what failed, and on what a source has answered. All else passes by itself, or waits for other things.
func TestStalls(t *testing.T) {
	for _, tc := range []struct {
		reason string
		phase  addonsv1.AddonPhase
		want   bool
	}{
		{"HookFailed", addonsv1.AddonFailed, true},
		{"", addonsv1.AddonFailed, true},
		{failure.ArtifactNotFound, addonsv1.AddonPending, true},
		{failure.SourceUnauthorized, addonsv1.AddonPending, true},
		{failure.SourceUntrusted, addonsv1.AddonPending, true},
		{failure.SignatureMissing, addonsv1.AddonPending, true},
		{failure.VerificationPolicyInvalid, addonsv1.AddonPending, true},
		{failure.SourceUnavailable, addonsv1.AddonPending, false},
		{failure.ArtifactPending, addonsv1.AddonPending, false},
		{failure.ArtifactChanged, addonsv1.AddonPending, false},
		{failure.ArtifactNotFound, addonsv1.AddonReady, false},
		{reasons.ValuesNotFound, addonsv1.AddonPending, false},
		{reasons.WaitingForConfirmation, addonsv1.AddonPending, false},
		{reasons.WaitingForDependency, addonsv1.AddonPending, false},
		{"Unheard", addonsv1.AddonPending, false},
		{"", addonsv1.AddonPending, false},
	} {
		if got := reasons.Of(tc.reason).Stalls(tc.phase); got != tc.want {
			t.Errorf("%s, %s: %v", tc.phase, tc.reason, got)
		}
	}
}

func TestMeaningOfEachReason(t *testing.T) {
	for _, row := range reasons.Table {
		if meaning := reasons.Meaning(row.Name); meaning == "" || slices.Contains([]rune(meaning), '`') {
			t.Errorf("%s: %q", row.Name, meaning)
		}
	}
	if got := reasons.Meaning("NoSuchReason"); got != "" {
		t.Error(got)
	}
}
