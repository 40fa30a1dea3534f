// SPDX-License-Identifier: Apache-2.0

package reasons

import (
	"slices"
	"testing"

	addonsv1 "github.com/cluster-chandler/chandler/api/v1beta1"
	"github.com/cluster-chandler/chandler/internal/artifact/failure"
)

// Names share a line of the page only if all of it is so of each of them.
func TestTable(t *testing.T) {
	seen, line := map[string]bool{}, Reason{}
	for i, row := range Table {
		if row.Name == "" || seen[row.Name] {
			t.Errorf("row %d, %q, has no name of its own", i, row.Name)
		}
		seen[row.Name] = true
		if row.Meaning != "" {
			line = row
		} else if !slices.Equal(row.Phases, line.Phases) || row.event() != line.event() {
			t.Errorf("%s differs from %s, with which it shares a line", row.Name, line.Name)
		}
		if row.Is(SourceBad) && row.Is(SourceRead) || row.Is(SourceFailed) && row.Is(SourceRefused) {
			t.Errorf("%s tells two things of the source", row.Name)
		}
		if row.Is(SourceBad) != failure.IsReason(row.Name) {
			t.Errorf("%s is a reason of sources in one of two places", row.Name)
		}
	}
	if !Of("").Is(Passing) || Of("Unheard").Is(Passing) {
		t.Error("what has no reason passes, and what nobody knows doesn't")
	}
}

func TestWarnings(t *testing.T) {
	for _, tc := range []struct {
		reason string
		phase  addonsv1.AddonPhase
		want   bool
	}{
		{ValuesInvalid, addonsv1.AddonFailed, true},
		{Retrying, addonsv1.AddonFailed, false},
		{ValuesNotFound, addonsv1.AddonPending, true},
		{WaitingForDependency, addonsv1.AddonPending, false},
		{"", addonsv1.AddonPending, false},
		{StackUndecided, addonsv1.AddonUnassigned, true},
		{WaitingForDependent, addonsv1.AddonRemoving, false},
		{ValuesInvalid, addonsv1.AddonReady, false},
	} {
		if got := Of(tc.reason).Warns(tc.phase); got != tc.want {
			t.Errorf("%s, %s: %v", tc.phase, tc.reason, got)
		}
	}
}
